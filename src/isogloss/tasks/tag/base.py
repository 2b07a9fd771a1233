"""`ColumnTagger`: what all taggers of one column have in common, however they learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.formats import as_gold, as_treebank
from isogloss.data.reading import Reading, check_reading
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import TreebankError, UsageError
from isogloss.layout import Layout, Strings
from isogloss.metrics.tagging import TagScore, score_tags
from isogloss.tasks.tag.options import COLUMNS, ColumnOptions

__all__ = ["COLUMNS", "LABELS", "ColumnTagger", "Comparison", "as_treebank"]

LABELS: Layout = {"labels": Strings("k", offsets="label_offsets", distinct=True, least=1, cells=True)}
"""How the tags of a tagger are kept."""
LISTED = 5
"""Tags that explanations list with their probabilities."""


class Comparison(NamedTuple):
    """A word's tag beside another that it might have: what explanations begin with."""

    sentence: Treebank
    """The sentence alone."""
    chances: NDArray[np.float64]
    """float64[n_words, n_labels]."""
    chosen: int
    other: int
    said: dict[str, Any]
    """Word, tag, rival and the most probable tags, as plain data."""


class ColumnTagger(ColumnOptions, ABC):
    """A tagger of one column: `fit` differs, the rest is the same for all.

    A subclass says how it learns (`fit`), which labels there are (`labels_`), how probable they are (`predict_proba`),
    why (`explain`), and what has to be kept (`to_arrays`, `to_meta`, `_restored`).
    """

    _kind: ClassVar[str]
    """Of saved models, such as ``tag.crf``."""

    @property
    @abstractmethod
    def labels_(self) -> tuple[str, ...]:
        """What can be predicted, in the order of the columns of `predict_proba`."""

    @property
    def _learnt(self) -> Any:
        fitted = vars(self).get("_fitted")
        if fitted is None:
            raise self._has_not_learnt
        return fitted

    def _gold(self, treebank: Treebank) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """The tags that occur in the column, sorted, and their numbers for all words."""
        ids, vocabulary = as_gold(treebank).columns[self.column]
        found = sorted(vocabulary[i] for i in np.unique(ids).tolist())
        if not found or found == ["_"]:
            raise TreebankError(
                f"{treebank.name}: no word has anything in column {self.column}, so there is nothing to learn. "
                "Is it the right file, or the right column?"
            )
        return tuple(found), np.asarray(Vocabulary(found).encode(vocabulary)[ids], np.int64)

    # --- predicting

    @abstractmethod
    def predict_proba(self, treebank: Treebank | Text) -> NDArray[np.float64]:
        """float64[n_words, n_labels]: the posterior of each of `labels_` for each word of all sentences."""

    def _best(self, treebank: Treebank) -> NDArray[np.int32]:
        """int32[n_words]: the number of each word's label."""
        return np.asarray(self.predict_proba(treebank).argmax(axis=1), np.int32)

    def predict(self, treebank: Treebank | Text) -> Treebank:
        """The treebank with predicted tags in its column; what stood there is not looked at."""
        treebank = as_treebank(treebank)
        check_reading(self.reading_, treebank)
        found: dict[str, Any] = {self.column: Column(self._best(treebank), Vocabulary(self.labels_))}
        return treebank.with_predictions(**found)

    def confidence(self, treebank: Treebank | Text) -> NDArray[np.float64]:
        """float64[n_words]: the posterior of the most probable tag of each word."""
        return np.asarray(self.predict_proba(treebank).max(axis=1, initial=0.0), np.float64)

    def score(self, treebank: Treebank) -> TagScore:
        """Words with the right tag, in percent; bundles are right as a whole."""
        gold = as_gold(treebank)
        return score_tags(self.predict(gold), gold, [self.column])

    @abstractmethod
    def explain(
        self, treebank: Treebank | Text, sentence: int, word: int, *, rival: str | None = None
    ) -> dict[str, Any]:
        """Why a word gets its tag and not another; plain data.

        Parameters
        ----------
        treebank : Treebank or Text
        sentence, word : int
            From 0.
        rival : str, optional
            The tag to compare with; the second in probability without it.
        """

    def _compare(self, treebank: Treebank | Text, sentence: int, word: int, rival: str | None) -> Comparison:
        """The tag of a word beside `rival`, or beside the second in probability."""
        treebank = as_treebank(treebank)
        if not 0 <= sentence < len(treebank) or not 0 <= word < treebank.lengths[sentence]:
            raise UsageError(f"explain: there is no word {word} in a sentence {sentence}; both are counted from 0")
        one, labels = treebank.part(sentence, sentence + 1), self.labels_
        if rival is not None and rival not in labels:
            raise UsageError(f"explain: the tagger knows no tag {rival!r}; it knows {', '.join(labels)}")
        chances = self.predict_proba(one)
        best = np.argsort(-chances[word], kind="stable").tolist()
        other = labels.index(rival) if rival is not None else best[1 % len(best)]
        said = {
            "word": one.words(0)[word],
            "tag": labels[best[0]],
            "rival": labels[other],
            "probabilities": {labels[y]: float(chances[word, y]) for y in best[:LISTED] if chances[word, y] > 0},
        }
        return Comparison(one, chances, best[0], other, said)

    # --- keeping

    def _to_saved(self) -> store.Saved:
        return store.Saved(self._kind, self.options_, self.to_arrays(), self.all_meta())

    @abstractmethod
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What was learnt, for `isogloss.store`."""

    def to_meta(self) -> dict[str, Any]:
        """What else is remembered, for `isogloss.store`."""
        return {}

    def all_meta(self) -> dict[str, Any]:
        """The same, and how the text was read."""
        return {**self.to_meta(), **Reading.to_meta(self.reading_)}

    def _remember(self, text: Treebank | Text) -> None:
        """Keep what there is to know of the text that is learnt from."""
        self.reading_ = Reading.of(text, frequent=True)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        return cls.from_parts(saved.options, saved.arrays, saved.meta)

    @classmethod
    def from_parts(
        cls, options: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]
    ) -> Self:
        """The inverse of `options_`, `to_arrays` and `all_meta`."""
        with store.reading("the saved tagger"):
            tagger = cls.of_options(options)
            tagger._restore(arrays, meta)
            tagger.reading_ = Reading.from_meta(meta)
        return tagger

    @abstractmethod
    def _restore(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        """Take what was kept. A model folder is not trusted: every array goes through `isogloss.layout.check`."""
