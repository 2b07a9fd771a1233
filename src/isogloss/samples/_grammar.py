"""The synchronous grammar of the synthetic bitexts as tables: categories, relations, closed classes, frequencies.

Both languages share one tree. A relation says on which side of its head a dependent stands and how far out; the source
takes the side written here, the target the same or the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["CLOSED", "OPEN", "RELATIONS", "TAGS", "VARIANTS", "Tables", "closed_words", "tables"]

# Open classes first: their number is part of the number of a concept.
TAGS = ("NOUN", "VERB", "ADJ", "DET", "ADP", "PRON", "ADV", "SCONJ", "CCONJ", "PUNCT", "AUX", "PART")
NOUN, VERB, ADJ, DET, ADP, PRON, ADV, SCONJ, CCONJ, PUNCT, AUX, PART = range(len(TAGS))
OPEN = 3
_SHARE_OF_STEMS = (0.5, 0.3, 0.2)

# A stem is a concept times its variant: the usual word, a synonym, the second word of a two-word expression.
VARIANTS = 3

# name, left of its head in the source, distance from the head (0 touches it)
_RELATIONS = (
    ("root", False, 0),
    ("nsubj", True, 5),
    ("obj", False, 2),
    ("obl", False, 4),
    ("advmod", True, 3),
    ("ccomp", False, 6),
    ("det", True, 5),
    ("amod", True, 2),
    ("nmod", False, 3),
    ("case", True, 6),
    ("mark", True, 8),
    ("conj", False, 7),
    ("cc", True, 9),
    ("acl", False, 4),
    ("punct", False, 10),
    ("compound", False, 0),
    ("compound:prt", False, 5),  # beyond objects: the verb and its particle are often apart
    ("aux", True, 1),
    ("discourse", True, 1),
)
RELATIONS = tuple(name for name, _, _ in _RELATIONS)
ROOT, NSUBJ, OBJ, OBL, ADVMOD, CCOMP, DETR, AMOD, NMOD, CASE, MARK, CONJ, CC, ACL, PUNCTR = range(15)
COMPOUND, PARTICLE, AUXR, DISCOURSE = range(15, 19)

# relation -> (tag of the dependent, how often it is a pronoun, relation and tag of the dependent's function word)
_NONE = -1
_UNITS = {
    ROOT: (VERB, 0.0, _NONE, _NONE),
    NSUBJ: (NOUN, 0.3, _NONE, _NONE),
    OBJ: (NOUN, 0.1, _NONE, _NONE),
    OBL: (NOUN, 0.0, CASE, ADP),
    ADVMOD: (ADV, 0.0, _NONE, _NONE),
    CCOMP: (VERB, 0.0, MARK, SCONJ),
    DETR: (DET, 0.0, _NONE, _NONE),
    AMOD: (ADJ, 0.0, _NONE, _NONE),
    NMOD: (NOUN, 0.0, CASE, ADP),
    CONJ: (NOUN, 0.0, CC, CCONJ),
    ACL: (VERB, 0.0, MARK, SCONJ),
    PUNCTR: (PUNCT, 0.0, _NONE, _NONE),
}

# head -> (relation, weight, how many at most)
_RULES: dict[int, tuple[tuple[int, float, int], ...]] = {
    NOUN: ((DETR, 0.3, 1), (AMOD, 0.3, 2), (NMOD, 0.15, 1), (CONJ, 0.07, 1), (ACL, 0.05, 1)),
    VERB: ((NSUBJ, 0.25, 1), (OBJ, 0.3, 1), (OBL, 0.2, 2), (ADVMOD, 0.12, 1), (CCOMP, 0.08, 1)),
    ADJ: ((ADVMOD, 0.15, 1),),
}

# Classes of words that are listed: name, how many. The last four live on one side only.
CLOSED = (
    ("DET", 4),
    ("ADP", 8),
    ("PRON", 6),
    ("ADV", 20),
    ("SCONJ", 3),
    ("CCONJ", 2),
    ("PUNCT", 2),
    ("of nouns", 3),
    ("of verbs", 3),
    ("of others", 3),
    ("particles", 8),
)
OF_NOUNS, OF_VERBS, OF_OTHERS, PARTICLES = 7, 8, 9, 10

# Zipf-Mandelbrot shift: the commonest *content* word has a share of a percent or two, unlike "the".
SHIFT = 10.0

# Places in Tables.knobs.
TAIL, FREE, FERTILITY, NULL, AMBIGUITY, SHORTEST, LONGEST = range(7)


class Tables(NamedTuple):
    """What the kernel reads.

    Attributes
    ----------
    key : uint64[2]
        Seeds of the sentences and of the properties of concepts.
    knobs : float64[7]
        Exponent of the tail's quantiles ``growth / (1 - growth)``, chance that a dependent changes sides, share of
        two-word concepts, chance of a word without counterpart beside each word, share of synonyms, lengths.
    shares : float64[14, n]
        Cumulative shares of the words of the three open classes (of their core: the rest is the tail) and the closed.
    counts : int64[14, 2]
        How many words a class has in `shares`, and the number of the first word of a closed class.
    relations : int64[19, 3]
        Left of the head in the source? In the target? Distance from the head.
    units : float64[19, 4]
        What stands in a relation: see `_UNITS`.
    rules : float64[3, 5, 3]
        By head: relation, cumulative weight, limit.
    """

    key: NDArray[np.uint64]
    knobs: NDArray[np.float64]
    shares: NDArray[np.float64]
    counts: NDArray[np.int64]
    relations: NDArray[np.int64]
    units: NDArray[np.float64]
    rules: NDArray[np.float64]


def tables(seed: int, options: dict[str, Any]) -> Tables:
    """The tables of one grammar; `options` are those of `SyntheticGrammar`."""
    tail = options["growth"] / (1 - options["growth"])
    null = options["null"] / (1 - options["null"])
    free = options["reordering"] * options["freedom"]
    knobs = [tail, free, options["fertility"], null, options["ambiguity"], *options["lengths"]]
    shares, counts = _shares(options["vocabulary"], tail)
    units = np.full((len(RELATIONS), 4), float(_NONE))
    for relation, unit in _UNITS.items():
        units[relation] = unit
    return Tables(
        key=np.random.SeedSequence(seed).generate_state(2, np.uint64).astype(np.uint64),
        knobs=np.array(knobs, np.float64),
        shares=shares,
        counts=counts,
        relations=_relations(seed, options["reordering"]),
        units=units,
        rules=_rules(),
    )


def closed_words(name: str) -> range:
    """The numbers of the words of a closed class."""
    start = 0
    for other, n in CLOSED:
        if other == name:
            return range(start, start + n)
        start += n
    raise KeyError(name)


def _shares(vocabulary: int, tail: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Cumulative shares: Zipf-Mandelbrot beside a tail of mass `tail` for open classes, Zipf for closed ones."""
    sizes = [max(1, round(share * vocabulary)) for share in _SHARE_OF_STEMS] + [n for _, n in CLOSED]
    first = [0] * OPEN + [closed_words(name).start for name, _ in CLOSED]
    shares = np.ones((len(sizes), max(sizes)))
    for row, n in enumerate(sizes):
        weights = 1 / (np.arange(1, n + 1) + (SHIFT if row < OPEN else 0.0))
        shares[row, :n] = np.cumsum(weights) / (weights.sum() + (tail if row < OPEN else 0.0))
        if row >= OPEN or tail == 0:
            shares[row, n - 1] = 1.0  # rounding must not let a draw fall past the last word
    return shares, np.array([sizes, first], np.int64).T.copy()


def _relations(seed: int, reordering: float) -> NDArray[np.int64]:
    """Sides and distances; the target turns a share `reordering` of the relations, a growing set as the share grows."""
    source = np.array([left for _, left, _ in _RELATIONS])
    turning = [r for r in range(len(RELATIONS)) if r not in (ROOT, PUNCTR)]
    order = np.random.default_rng([seed, 1]).permutation(len(turning))
    turned = np.zeros(len(RELATIONS), bool)
    turned[turning] = (order + 0.5) / len(turning) < reordering
    return np.stack([source, source ^ turned, [distance for _, _, distance in _RELATIONS]], axis=1).astype(np.int64)


def _rules() -> NDArray[np.float64]:
    table = np.zeros((OPEN, 5, 3))
    table[:, :, 1] = -1.0  # never drawn
    for head, rules in _RULES.items():
        weight = 0.0
        for k, (relation, share, limit) in enumerate(rules):
            weight += share
            table[head, k] = relation, weight, limit
    return table
