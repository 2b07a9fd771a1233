"""A treebank as the joint model sees it: codes of words, features of tags, and the values that each word may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.structures.batch import Stack
from isogloss.tasks.parse.joint._numba.layout import Sentence
from isogloss.tasks.parse.joint.schema import Schema

__all__ = ["Seen", "clamped", "known_features", "see", "sentences_of"]

LONGEST_SUFFIX = 12
LONGEST_PREFIX = 4
LINK_PREFIX = 5
_SALT = 0x2011
_NO_SCORES = np.zeros((0, 0))
_EDGES = ("\x02before", "\x02root", "\x02after")


@dataclass(frozen=True, eq=False)
class Seen:
    """Words of a treebank as codes.

    Parameters
    ----------
    words, prefixes : uint64[n_words]
    features : uint64[n_features]
        Codes of what TAG-UNIGRAM looks at; those of word k are ``features[starts[k]:starts[k + 1]]``.
    starts : int64[n_words + 1]
    kept : bool[n_features]
        Features that count even if they occur once: the word itself.
    """

    words: NDArray[np.uint64]
    prefixes: NDArray[np.uint64]
    features: NDArray[np.uint64]
    starts: NDArray[np.int64]
    kept: NDArray[np.bool_]


def _codes(strings: Sequence[str]) -> NDArray[np.uint64]:
    from isogloss.tasks.parse._numba.codes import string_codes

    joined = "".join(strings).encode("utf-32-le", "surrogatepass")
    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)), out=offsets[1:])
    out = np.empty(len(strings), np.uint64)
    string_codes(np.frombuffer(joined, np.uint32), offsets, _SALT, out)
    return out


def _own_features(form: str) -> list[str]:
    """What a form alone says: itself, all suffixes, short prefixes, its shape. The word comes first."""
    small = form.lower()
    found = ["w" + small, "bias"]
    found += ["s" + small[-k:] for k in range(1, min(len(small), LONGEST_SUFFIX) + 1)]
    found += ["p" + small[:k] for k in range(1, min(len(small) - 1, LONGEST_PREFIX) + 1)]
    shape = "".join(
        mark
        for mark, there in (
            ("A", form[:1].isupper()), ("B", form[1:] != small[1:]), ("1", any(c.isdigit() for c in form)),
            ("-", "-" in form[1:]), (".", not any(c.isalnum() for c in form)),
        )
        if there
    )  # fmt: skip
    return [*found, "h" + shape]


def see(treebank: Treebank) -> Seen:
    """The words of a treebank."""
    ids, vocabulary = treebank.columns["form"]
    used, numbers = np.unique(ids, return_inverse=True)
    forms = [vocabulary[int(i)] for i in used]
    small = [form.lower() for form in forms]
    own = [_own_features(form) for form in forms]
    counts = np.array([len(found) for found in own], np.int64)
    codes = _codes([text for found in own for text in found])
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    around = np.stack([_codes([kind + text for text in (*small, *_EDGES[::2])]) for kind in "ln"])
    tails = np.stack([_codes([kind + text[-3:] for text in (*small, *_EDGES[::2])]) for kind in "LN"])
    before, after = np.roll(numbers, 1), np.roll(numbers, -1)
    filled = treebank.lengths > 0
    before[treebank.offsets[:-1][filled]] = len(forms)
    after[treebank.offsets[1:][filled] - 1] = len(forms) + 1
    per_word = counts[numbers] + 4
    starts = np.concatenate([[0], np.cumsum(per_word)]).astype(np.int64)
    features = np.zeros(int(starts[-1]), np.uint64)
    inner = np.arange(int(counts[numbers].sum())) - np.repeat(
        np.cumsum(counts[numbers]) - counts[numbers], counts[numbers]
    )
    features[np.repeat(starts[:-1], counts[numbers]) + inner] = codes[
        np.repeat(first[numbers], counts[numbers]) + inner
    ]
    for k, found in enumerate((around[0][before], around[1][after], tails[0][before], tails[1][after])):
        features[starts[1:] - 4 + k] = found
    kept = np.zeros(len(features), np.bool_)
    kept[starts[:-1]] = True
    return Seen(_codes(small)[numbers], _codes(["5" + w[:LINK_PREFIX] for w in small])[numbers], features, starts, kept)


def known_features(seen: Seen) -> NDArray[np.uint64]:
    """uint64[n]: codes of the features that have weights, sorted: those that occur twice, and all words."""
    codes, counts = np.unique(seen.features, return_counts=True)
    words = np.unique(seen.features[seen.kept])
    return np.union1d(codes[counts >= 2], words)


def clamped(numbers: NDArray[np.int64], schema: Schema) -> NDArray[np.bool_]:
    """bool[n_words, n_values]: these values alone, int64[n_words, n_attributes]."""
    out = np.zeros((len(numbers), int(schema.starts[-1])), np.bool_)
    out[np.arange(len(numbers))[:, None], schema.starts[:-1] + numbers] = True
    return out


def sentences_of(
    treebank: Treebank,
    seen: Seen,
    keys: NDArray[np.uint64],
    schema: Schema,
    allowed: NDArray[np.bool_],
    context: NDArray[np.int64],
    gold: NDArray[np.int64],
    numbers: Sequence[int] | None = None,
    prior: NDArray[np.float64] | None = None,
    links: Stack | None = None,
) -> list[Sentence]:
    """Sentences for the kernels.

    Parameters
    ----------
    allowed : bool[n_words, n_values]
        At least one value of each attribute.
    context : int64[n_words]
        The fixed part of speech of each word.
    gold : int64[n_words, n_attributes]
        Right values; where they are not allowed, or -1, the first that is allowed.
    numbers : sequence of int, optional
        Of the sentences that are wanted.
    prior : float64[n_words, n_values], optional
        Scores that values have beforehand.
    links : Stack, optional
        float64[n + 1, n + 1] for each sentence: scores that links have beforehand.
    """
    found = np.searchsorted(keys, seen.features)
    found[found == len(keys)] = 0
    known = keys[found] == seen.features if len(keys) else np.zeros(len(found), np.bool_)
    known_before = np.concatenate([[0], np.cumsum(known)]).astype(np.int64)
    feature_ids = found[known].astype(np.int64)
    feature_starts = known_before[seen.starts]
    starts, n_attributes = schema.starts, len(schema.names)
    counts = np.add.reduceat(allowed, starts[:-1], axis=1, dtype=np.int64)
    _, value = np.nonzero(allowed)
    attribute = np.repeat(np.arange(n_attributes), schema.sizes)[value]
    local = value - starts[attribute]
    known_scores = np.zeros(len(value)) if prior is None else prior[allowed]
    first = np.concatenate([[0], np.cumsum(counts.sum(axis=1))]).astype(np.int64)
    places = _gold_places(allowed, gold, starts)
    root_values = np.zeros(n_attributes, np.int64)
    root_values[0] = schema.sizes[0]
    edges = _codes(["\x02root", "\x025root"])
    out = []
    for s in range(len(treebank)) if numbers is None else numbers:
        a, b = int(treebank.offsets[s]), int(treebank.offsets[s + 1])
        own = np.concatenate([np.ones(n_attributes, np.int64), counts[a:b].ravel()])
        out.append(
            Sentence(
                np.concatenate([edges[:1], seen.words[a:b]]),
                np.concatenate([edges[1:], seen.prefixes[a:b]]),
                np.concatenate([[-1, schema.sizes[0]], context[a:b], [-1]]).astype(np.int64),
                np.concatenate([[0], feature_starts[a : b + 1] - feature_starts[a]]).astype(np.int64),
                feature_ids[feature_starts[a] : feature_starts[b]],
                np.concatenate([[0], np.cumsum(own)]).astype(np.int64),
                np.concatenate([root_values, local[first[a] : first[b]]]).astype(np.int64),
                np.concatenate([np.zeros(n_attributes), known_scores[first[a] : first[b]]]),
                np.concatenate([np.zeros(n_attributes, np.int64), places[a:b].ravel()]).astype(np.int64),
                np.concatenate([[-1], treebank.heads[a:b]]).astype(np.int64),
                _NO_SCORES if links is None else links[s],
            )
        )
    return out


def _gold_places(allowed: NDArray[np.bool_], gold: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n_words, n_attributes]: which of the allowed values is the right one."""
    before = np.concatenate([np.zeros((len(allowed), 1), np.int64), np.cumsum(allowed, axis=1)], axis=1)
    at = starts[:-1] + np.maximum(gold, 0)
    rows = np.arange(len(allowed))[:, None]
    places = before[rows, at] - before[rows, np.broadcast_to(starts[:-1], at.shape)]
    return np.where((gold >= 0) & allowed[rows, at], places, 0)
