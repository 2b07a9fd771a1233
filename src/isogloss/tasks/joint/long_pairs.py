"""Pairs with a very long sentence: work grows with the cube of its length, so that they are left to separate models."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from isogloss.data.formats import IsoglossWarning
from isogloss.data.tree_pairs import TreePairs
from isogloss.tasks.parse.cutting import LONGEST

__all__ = ["Answers", "answers_apart", "are_short", "merged", "without_long"]

P = TypeVar("P", bound=Any)


class Answers(NamedTuple):
    """What was found in some pairs.

    Parameters
    ----------
    source, target : list of int[n_words]
        Heads of each sentence.
    links : list of float32[n_source, n_target]
        Posteriors of word links.
    """

    source: list[Any]
    target: list[Any]
    links: list[NDArray[np.float32]]


def are_short(pairs: Any, longest: int = LONGEST) -> NDArray[np.bool_]:
    """Which pairs have at most `longest` words on either side."""
    return np.asarray(np.maximum(pairs.source.lengths, pairs.target.lengths) <= longest)


def without_long(pairs: P, longest: int = LONGEST) -> P:
    """The pairs that are short enough to be learnt from; a warning says how many are left out."""
    short = are_short(pairs, longest)
    if short.all():
        return pairs
    warnings.warn(
        f"{pairs.source.name}, {pairs.target.name}: {np.count_nonzero(~short)} of {len(pairs)} pairs have a sentence "
        f"of more than {longest} words and are passed over. Are they lists, or several sentences each?",
        IsoglossWarning,
        stacklevel=3,
    )
    return pairs.take(np.flatnonzero(short))  # type: ignore[no-any-return]


def answers_apart(pairs: TreePairs, source_parser: Any, target_parser: Any, aligner: Any) -> Answers:
    """By models that know nothing of each other; parsers cut long sentences into pieces."""
    if not len(pairs):
        return Answers([], [], [])
    heads = []
    for parser, side in ((source_parser, pairs.source), (target_parser, pairs.target)):
        heads.append(np.split(parser.predict(side).heads, side.offsets[1:-1]))
    sizes = zip(pairs.source.lengths.tolist(), pairs.target.lengths.tolist(), strict=True)
    links = [
        np.asarray(one, np.float32) if one.shape == size else np.zeros(size, np.float32)  # those that it passes over
        for one, size in zip(aligner.predict_proba(pairs.bitext()), sizes, strict=True)
    ]
    return Answers(heads[0], heads[1], links)


def merged(short: NDArray[np.bool_], together: Answers, apart: Answers) -> Answers:
    """Answers of short pairs and of the others, in the order of all pairs.

    >>> merged(np.array([True, False]), Answers([1], [2], []), Answers([3], [4], [])).source
    [1, 3]
    """
    sides = []
    for ours, theirs in zip(together, apart, strict=True):
        some = {True: iter(ours), False: iter(theirs)}
        sides.append([next(some[one]) for one in short.tolist()] if ours or theirs else [])
    return Answers(*sides)
