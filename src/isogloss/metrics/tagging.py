"""How good are these tags? Words with the right tag, column by column, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.formats import as_gold
from isogloss.data.treebank import Treebank
from isogloss.errors import TreebankError
from isogloss.metrics.scores import Sample, Score

__all__ = ["TagScore", "score_tags"]


@dataclass(frozen=True, kw_only=True, repr=False)
class TagScore(Score):
    """Words with the right tag, in percent; bundles of features are right as a whole. Not a number without words.

    Parameters
    ----------
    accuracy : float
        Words that are right in all columns.
    columns : mapping of str to float
        By column, words that are right in it; ``score["upos"]`` is the same.
    words : int
    """

    accuracy: float
    columns: Mapping[str, float] = field(hash=False)
    words: int

    @property
    def measures(self) -> tuple[str, ...]:
        """`accuracy`, and the columns."""
        return ("accuracy", *self.columns)

    @property
    def headline(self) -> str:
        """Always `accuracy`."""
        return "accuracy"

    def __getitem__(self, name: str) -> Any:
        return self.columns[name] if name in self.columns else super().__getitem__(name)

    def _shown(self) -> tuple[str, ...]:
        return tuple(self.columns) if len(self.columns) == 1 else self.measures

    def _further(self) -> dict[str, Any]:
        return {"words": self.words}


def score_tags(
    predicted: Treebank, gold: Treebank, columns: Sequence[str] = ("upos",), *, bootstrap: int = 1000, seed: int = 0
) -> TagScore:
    """Score tags of the same words, as they stand: subtypes, language-specific features and all.

    Parameters
    ----------
    predicted, gold : Treebank
    columns : sequence of {"upos", "xpos", "feats"}
    bootstrap, seed
        As in `score_trees`.

    Examples
    --------
    >>> gold = Treebank.of([[("She", "PRON"), ("sleeps", "VERB")]])
    >>> score = score_tags(gold.with_columns(upos=["PRON", "NOUN"]), gold, bootstrap=0)
    >>> score, float(score), score["upos"]  # doctest: +ELLIPSIS
    (UPOS = 50.00 | columns:upos|n:1|words:2|seed:0|v:..., 50.0, 50.0)
    """
    predicted, gold = as_gold(predicted), as_gold(gold)
    if predicted.n_words != gold.n_words:
        raise TreebankError(
            f"{predicted.name} has {predicted.n_words} words and {gold.name} {gold.n_words}: not the same text"
        )
    right = {column: _right(predicted, gold, column) for column in columns}
    counted = [np.ones(gold.n_words, np.bool_), np.logical_and.reduce(list(right.values())), *right.values()]
    sums = np.zeros((gold.n_words + 1, len(counted)), np.int64)
    np.cumsum(np.stack(counted, axis=1), axis=0, out=sums[1:])
    names = ("accuracy", *columns)

    def rates(counts: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
        words, *hits = np.moveaxis(np.asarray(counts, float), -1, 0)
        whole = np.where(words > 0, words, math.nan)
        return dict(zip(names, (part / whole for part in hits), strict=True))

    sample = Sample(np.diff(sums[gold.offsets], axis=0), rates, bootstrap, seed)
    accuracy, *each = sample.percent().values()
    signature = sample.signed(f"columns:{'+'.join(columns)}", f"n:{len(gold)}", f"words:{gold.n_words}")
    by_column = dict(zip(columns, each, strict=True))
    return TagScore(
        accuracy=accuracy, columns=by_column, words=gold.n_words, n=len(gold), signature=signature, sample=sample
    )


def _right(predicted: Treebank, gold: Treebank, column: str) -> NDArray[np.bool_]:
    """bool[n_words]: whether a word has the same in a column."""
    ids, vocabulary = predicted.columns[column]
    truth, types = gold.columns[column]
    return np.asarray(types.encode(vocabulary)[ids] == truth) if len(ids) else np.zeros(0, np.bool_)
