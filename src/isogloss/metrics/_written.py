"""Which measures say something about a system: those of columns that it wrote and that gold has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError

__all__ = ["NEEDS", "SCORED", "columns_of", "left_out"]

NEEDS: Mapping[str, tuple[str, ...]] = {
    "uas": ("head",),
    "las": ("head", "deprel"),
    "clas": ("head", "deprel"),
    "upos": ("upos",),
    "xpos": ("xpos",),
    "ufeats": ("feats",),
}
"""The columns that each measure looks at."""

SCORED = ("head", "deprel", "upos", "xpos", "feats")
"""The columns that there are measures of."""


def columns_of(measures: Sequence[str]) -> tuple[str, ...]:
    """The columns that some measures look at."""
    return tuple(dict.fromkeys(column for name in measures for column in NEEDS[name]))


def left_out(predicted: Treebank, gold: Treebank, columns: Sequence[str] | None) -> dict[str, str]:
    """By measure, why it is not scored; what is not here is.

    Columns that are asked for are scored whatever is in them. Otherwise gold should have something there, and the
    system should have written it: if `Treebank.predicted` knows, it decides, and if not, whatever is not empty counts.
    """
    if columns is not None:
        unknown = [column for column in columns if column not in SCORED]
        if unknown or isinstance(columns, str):
            raise ParameterError(
                f"score_trees: columns should be a list of some of {', '.join(SCORED)}, not {columns!r}"
            )
    if not gold.n_words:
        return {}
    reasons = {column: _reason(predicted, gold, column, columns) for column in SCORED}
    found = {}
    for measure, needed in NEEDS.items():
        why = [reason for column in needed if (reason := reasons[column]) is not None]
        if why:
            found[measure] = why[0]
    return found


def _reason(predicted: Treebank, gold: Treebank, column: str, columns: Sequence[str] | None) -> str | None:
    if columns is not None:
        return None if column in columns else f"{column} was not asked for"
    if _is_empty(gold, column):
        return f"{gold.name} has no {column}"
    if column in predicted.predicted:
        return None
    if predicted.predicted:
        return f"{column} was not predicted: {predicted.name} carries along what was there"
    return f"{predicted.name} has no {column}" if _is_empty(predicted, column) else None


def _is_empty(treebank: Treebank, column: str) -> bool:
    if column == "head":
        return not bool((treebank.heads >= 0).any())
    ids, vocabulary = treebank.columns[column]
    return bool(np.all(ids == vocabulary.index_of("_")))
