r"""Features of pairs of neighbouring links, and of a word's further links, for aligners that score those.

All are 0 or more, so that weights of 0 or more give scores of one sign. What an unsupervised aligner's posteriors say
of a word type, or of a word and the next, is counted over the whole text: of n occurrences with h hits the share is
:math:`(h + 2 h_0) / (n + 2)`, with :math:`h_0` the share over all of them. A pair of the text does not count its own:
what is taken out is what the same posteriors put in.

References
----------
Lacoste-Julien, Taskar, Klein and Jordan, Word Alignment via Quadratic Assignment, NAACL 2006, section 4. We differ:
posteriors stand for links, patterns are counted for a word and the next, and an indicator of each common word, whose
weight gold decides, stands for whether gold ever had the word with several links.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Vocabulary
from isogloss.layout import COUNTS, Layout, Numbers, check, collect
from isogloss.store import prefixed, unprefixed
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.features.base import Floats, PartFeatures, starts_of

__all__ = ["PATTERNS", "VERSIONS", "Habits", "LinkHabits", "fertility_features", "link_pair_features"]

PATTERNS = ("monotone", "inverted", "one_to_two", "two_to_one")
"""Of two links: i-j and (i+1)-(j+1); i-(j+1) and (i+1)-j; i-j and i-(j+1); i-j and (i+1)-j."""

VERSIONS = ("model2_forward", "model2_backward", "model2_product")
"""Model 2 in either direction, and both together, each of which judges how often a pattern occurs."""

_WEIGHT = 2.0  # occurrences that the share over all words counts for
_LAYOUT: Layout = {
    "keys": Numbers("uint64", "n", order="strict"),
    "hits": Numbers("float32", ("n", 3), least=0),
    "occurrences": Numbers("int32", "n", least=0),
    "overall": Numbers("float64", 4, least=0),
    "tokens": Numbers("int64", "types", least=0, below=COUNTS),
    "multiple": Numbers("float64", "types", least=0),
}


@dataclass(frozen=True, eq=False)
class Habits:
    """How words of one language, and words with the next, tend to be linked.

    Parameters
    ----------
    keys, hits, occurrences : uint64[n], float32[n, 3], int32[n]
        Pairs of neighbouring words that occur at least twice: how often they are linked monotonely, crosswise, to one
        word together, and how often they occur.
    overall : float64[4]
        The same over all of them, as shares; and the share of words with two links or more.
    tokens, multiple : int64[n_types], float64[n_types]
        Occurrences of each word form, and those with two links or more.
    """

    keys: NDArray[np.uint64]
    hits: Floats
    occurrences: NDArray[np.int32]
    overall: NDArray[np.float64]
    tokens: NDArray[np.int64]
    multiple: NDArray[np.float64]

    @classmethod
    def of(
        cls, ids: NDArray[np.int32], offsets: NDArray[np.int64], n_types: int, hits: Floats, several: Floats
    ) -> Habits:
        """Add up what was seen of each token: `hits` of it and the next, `several` links or not."""
        keys = _keys(ids, offsets)
        known, at, often = np.unique(keys, return_inverse=True, return_counts=True)
        sums = np.stack([np.bincount(at, hits[:, k], minlength=len(known)) for k in range(3)], axis=1)
        overall = np.zeros(4)
        if (keys > 0).any():
            overall[:3] = hits[keys > 0].mean(axis=0, dtype=np.float64)
        if len(several):
            overall[3] = several[:, 1].mean(dtype=np.float64)
        again = (often > 1) & (known > 0)
        return cls(
            known[again], sums[again].astype(np.float32), often[again].astype(np.int32), overall,
            np.bincount(ids, minlength=n_types).astype(np.int64),
            np.bincount(ids, several[:, 1], minlength=n_types).astype(np.float64),
        )  # fmt: skip

    def shares(
        self, numbers: NDArray[np.int32], offsets: NDArray[np.int64], own: NDArray[np.bool_], hits: Floats
    ) -> Floats:
        """Share of each pattern for each token and the next, float32[n_tokens, 3]; own hits left out where `own`."""
        keys = _keys(numbers, offsets)
        seen, often = np.zeros((len(keys), 3)), np.zeros(len(keys))
        if len(self.keys):
            at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            found = self.keys[at] == keys
            seen = np.where(found[:, None], self.hits[at] - own[:, None] * hits, 0.0)
            often = np.where(found, self.occurrences[at] - own, 0)
        shares = (np.maximum(0.0, seen) + _WEIGHT * self.overall[:3]) / (often[:, None] + _WEIGHT)
        out: Floats = np.minimum(1.0, shares).astype(np.float32)
        return out

    def multiples(self, numbers: NDArray[np.int32], own: NDArray[np.bool_], several: Floats) -> Floats:
        """Share of occurrences with two links or more of each token's form: float32[n_tokens]; own left out."""
        seen = np.append(self.multiple, 0.0)[numbers] - own * several[:, 1]
        often = np.append(self.tokens, 0)[numbers] - own
        share = (np.maximum(0.0, seen) + _WEIGHT * self.overall[3]) / (np.maximum(0, often) + _WEIGHT)
        out: Floats = np.minimum(1.0, share).astype(np.float32)
        return out


def _keys(ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    from isogloss.tasks.align._numba.spans import span_keys

    keys = np.zeros((len(ids), 1), np.uint64)
    span_keys(ids, offsets, keys)
    return keys[:, 0]


@dataclass(frozen=True, eq=False)
class LinkHabits:
    """Habits of both languages, and the threshold from which a posterior is a link."""

    source: Habits
    target: Habits
    threshold: float

    @classmethod
    def of(cls, corpus: Corpus, posterior: Floats, threshold: float) -> LinkHabits:
        """Count the text that an aligner's posteriors float32[n_cells] are of."""
        pairs = corpus.pairs
        hits, several = _seen(corpus, posterior, threshold)
        return cls(
            Habits.of(pairs.source_ids, pairs.source_offsets, len(corpus.source_words), hits[0], several[0]),
            Habits.of(pairs.target_ids, pairs.target_offsets, len(corpus.target_words), hits[1], several[1]),
            threshold,
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, under names of their own."""
        source, target = collect(self.source, _LAYOUT), collect(self.target, _LAYOUT)
        return {**prefixed("source/", source), **prefixed("target/", target), "threshold": np.array(self.threshold)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_source: int, n_target: int) -> LinkHabits:
        """What `arrays` gave, for texts of so many source and target types."""
        source, target = (
            Habits(**check(unprefixed(f"{side}/", arrays), _LAYOUT, f"the link counts ({side})", {"types": n_types}))
            for side, n_types in (("source", n_source), ("target", n_target))
        )
        threshold = check(arrays, {"threshold": Numbers("float64", least=0, below=1.5)}, "the link counts")["threshold"]
        return cls(source, target, float(threshold))


def _seen(corpus: Corpus, posterior: Floats, threshold: float) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Hits of each token and the next, and second links of each token, of both sides."""
    from isogloss.tasks.align._numba.spans import pattern_hits, several

    pairs = corpus.pairs
    sizes = len(pairs.source_ids), len(pairs.target_ids)
    hits = np.zeros((sizes[0], 3), np.float32), np.zeros((sizes[1], 3), np.float32)
    second = np.zeros((sizes[0], 2), np.float32), np.zeros((sizes[1], 2), np.float32)
    where = pairs.source_offsets, pairs.target_offsets, pairs.cell_offsets, posterior
    pattern_hits(*where, *hits)
    several(*where, threshold, *second)
    return hits, second


def link_pair_features(
    habits: Mapping[str, LinkHabits],
    corpus: Corpus,
    numbers: tuple[NDArray[np.int32], NDArray[np.int32]],
    inside: NDArray[np.bool_],
    dice: Floats,
    posteriors: Mapping[str, Floats],
) -> PartFeatures:
    """Features of all pairs of neighbouring links.

    A constant and the lesser Dice of the two links; with an aligner's posteriors the lesser posterior, their product,
    and how often the pattern of the pair occurs with the source word (and the next) and the target word (and the next);
    the last two again by each of `VERSIONS` that there is. Rows of a pair are in the order of `neighbour_pairs` with
    all four patterns.

    Parameters
    ----------
    habits, posteriors : mapping of str to LinkHabits, mapping of str to float32[n_cells]
        By judge: "" is the one whose posteriors count as links.
    """
    from isogloss.tasks.align._numba.spans import fill_pairs

    pairs = corpus.pairs
    n, m = np.diff(pairs.source_offsets), np.diff(pairs.target_offsets)
    less_n, less_m = np.maximum(0, n - 1), np.maximum(0, m - 1)
    starts = starts_of(2 * less_n * less_m + n * less_m + less_n * m)
    judges = [name for name in ("", *VERSIONS) if name in habits]
    names = ["bias", "least_dice", *(("least", "product") if judges else ())]
    names += [f"{name}{'_' if name else ''}{side}_share" for name in judges for side in ("source", "target")]
    shares = [np.zeros((len(ids), len(judges), 4), np.float32) for ids in (pairs.source_ids, pairs.target_ids)]
    for k, name in enumerate(judges):
        for side, found in enumerate(_pattern_shares(habits[name], corpus, numbers, inside, posteriors[name])):
            shares[side][:, k] = found
    values = np.zeros((starts[-1], len(names)), np.float32)
    p = posteriors[""] if judges else np.zeros(0, np.float32)
    fill_pairs(
        pairs.source_offsets, pairs.target_offsets, pairs.cell_offsets, dice, p, shares[0], shares[1], starts, values
    )
    return PartFeatures(tuple(names), values, starts)


def _pattern_shares(
    habits: LinkHabits,
    corpus: Corpus,
    numbers: tuple[NDArray[np.int32], NDArray[np.int32]],
    inside: NDArray[np.bool_],
    posterior: Floats,
) -> Iterator[Floats]:
    """How often each of `PATTERNS` occurs with each token (and the next), float32[n_tokens, 4] of either side."""
    pairs = corpus.pairs
    hits, second = _seen(corpus, posterior, habits.threshold)
    for k, (side, ids, offsets) in enumerate(
        (
            (habits.source, pairs.source_ids, pairs.source_offsets),
            (habits.target, pairs.target_ids, pairs.target_offsets),
        )
    ):
        own = np.repeat(inside, np.diff(offsets))
        found = side.shares(numbers[k][ids], offsets, own, hits[k])
        several = side.multiples(numbers[k][ids], own, second[k])
        order = (several, found[:, 2]) if k == 0 else (found[:, 2], several)  # one to two, two to one
        yield np.stack([found[:, 0], found[:, 1], *order], axis=1)


def fertility_features(
    habits: LinkHabits | None,
    corpus: Corpus,
    numbers: tuple[NDArray[np.int32], NDArray[np.int32]],
    inside: NDArray[np.bool_],
    counts: tuple[NDArray[np.int64], NDArray[np.int64]],
    posterior: Floats | None,
    common: Sequence[Vocabulary] = (),
) -> tuple[PartFeatures, PartFeatures]:
    """Features of a further link of each word, of source words and of target words.

    A constant, four bands of frequency (up to 1, 10, 100 sentence pairs, and more), and with an aligner's posteriors:
    the share of the form's occurrences with two links or more (`multiple`, and `single` is the rest) and the posterior
    of this word's second best link (`second`, and `no_second` is the rest). Each of the words of `common`, of source
    and target, has an indicator.
    """
    pairs = corpus.pairs
    made = []
    second = None if habits is None or posterior is None else _seen(corpus, posterior, habits.threshold)[1]
    for k, (ids, offsets) in enumerate(
        ((pairs.source_ids, pairs.source_offsets), (pairs.target_ids, pairs.target_offsets))
    ):
        count = counts[k]
        columns: dict[str, NDArray[Any]] = {
            "bias": np.ones(len(ids)), "rare": count <= 1, "seldom": (count > 1) & (count <= 10),
            "common": (count > 10) & (count <= 100), "frequent": count > 100,
        }  # fmt: skip
        if habits is not None and second is not None:
            side = (habits.source, habits.target)[k]
            share = side.multiples(numbers[k][ids], np.repeat(inside, np.diff(offsets)), second[k])
            columns |= {"multiple": share, "single": 1.0 - share}
            columns |= {"second": second[k][:, 0], "no_second": 1.0 - second[k][:, 0]}
        values = np.stack(list(columns.values()), axis=1).astype(np.float32)
        fired, names = None, tuple[str, ...]()
        if common:
            which = common[k].encode((corpus.source_words, corpus.target_words)[k])[ids]
            fired = starts_of((which >= 0).astype(np.int64)), which[which >= 0].astype(np.int32)
            names = tuple(f"word:{word}" for word in common[k].types)
        made.append(PartFeatures(tuple(columns), values, offsets, fired, names))
    return made[0], made[1]
