"""Pairs of universal tags that are head and child in most languages, for grammars that are to be guided by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.tagsets import UD17
from isogloss.errors import DataError

__all__ = ["RULE_SETS", "RuleSet", "rule_tables"]


class RuleSet(NamedTuple):
    """Tags of the root's child, and for each tag of a head those of its children."""

    roots: tuple[str, ...]
    children: dict[str, tuple[str, ...]]


RULE_SETS = {
    "ud": RuleSet(
        ("VERB",),
        {
            "VERB": ("NOUN", "PROPN", "PRON", "ADV", "VERB", "AUX", "SCONJ", "PART"),
            "NOUN": ("ADJ", "DET", "NOUN", "NUM", "ADP", "PROPN"),
            "PROPN": ("PROPN", "ADP", "DET"),
            "PRON": ("ADP",),
            "ADJ": ("ADV", "AUX"),
        },
    ),
    "function-heads": RuleSet(
        ("AUX", "VERB"),
        {
            "VERB": ("NOUN", "PROPN", "PRON", "ADV", "VERB"),
            "AUX": ("VERB",),
            "NOUN": ("ADJ", "DET", "NOUN", "NUM"),
            "PROPN": ("PROPN",),
            "ADP": ("NOUN", "PROPN"),
            "ADJ": ("ADV",),
        },
    ),
}
"""``function-heads`` are the thirteen rules of Naseem et al., EMNLP 2010, table 1, with proper nouns as nouns. ``ud``
has content words as heads, as Universal Dependencies do: verbs stand above auxiliaries, nouns above adpositions."""


def rule_tables(name: str, tags: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """bool[k, k] of (head, child) and bool[k] of the root's child, for the tags of a grammar.

    Examples
    --------
    >>> pairs, roots = rule_tables("ud", ["NOUN", "VERB"])
    >>> pairs.tolist(), roots.tolist()
    ([[True, False], [True, True]], [False, True])
    """
    known = set(UD17)
    if not known.issuperset(tags):
        strange = sorted(set(tags) - known)
        raise DataError(
            f"rules are about the tags of Universal Dependencies, and {strange[0]!r} is none of them. Take the column "
            "upos, or leave rules out"
        )
    chosen, number = RULE_SETS[name], {tag: at for at, tag in enumerate(tags)}
    pairs, roots = np.zeros((len(tags), len(tags)), np.bool_), np.array([tag in chosen.roots for tag in tags], np.bool_)
    for head, children in chosen.children.items():
        for child in children:
            if head in number and child in number:
                pairs[number[head], number[child]] = True
    return pairs, roots
