"""Outputs of systems seen beside a reference, and beside one another: what a learnt measure is made of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.tokenise import tokenise
from isogloss.metrics.overlap import (
    bleu,
    chrf,
    edit_distance,
    f_measure,
    lcs_length,
    matches,
    ngrams,
    precision_recall,
    words_13a,
)
from isogloss.tasks.documents.index import Index

__all__ = ["OUTPUT_FEATURES", "output_features", "words_of"]

_SHORT = 3
"""Letters of a short word: articles, prepositions and their like in many languages."""
_STEM = 4
_WORD_ORDERS, _LETTER_ORDERS = (1, 2, 3, 4), (1, 2, 3, 4, 5, 6)


def words_of(line: str, lowercase: bool = True) -> list[str]:
    """The tokens of a line."""
    written = line.lower() if lowercase else line
    return [written[start:end] for start, end in tokenise(written)]


class _Seen(NamedTuple):
    """A text in the forms that it is compared in."""

    line: str
    words: list[str]
    cased: list[str]
    grams: list[Counter[Any]]
    letters: list[Counter[Any]]
    stems: list[str]

    @classmethod
    def of(cls, line: str) -> _Seen:
        words, squeezed = words_of(line), "".join(line.split())
        return cls(
            line, words, words_of(line, False), [ngrams(words, n) for n in _WORD_ORDERS],
            [ngrams(squeezed, n) for n in _LETTER_ORDERS], [word[:_STEM] for word in words],
        )  # fmt: skip


def _against(output: _Seen, reference: _Seen, index: Index) -> dict[str, float]:
    found = {
        "chrf": chrf(output.line, reference.line) / 100,
        "bleu": bleu(words_13a(output.line), words_13a(reference.line)) / 100,
    }
    for n, ours, theirs in zip(_WORD_ORDERS, output.grams, reference.grams, strict=True):
        precision, recall = precision_recall(ours, theirs)
        found |= {
            f"words{n}-precision": precision,
            f"words{n}-recall": recall,
            f"words{n}-f": f_measure(precision, recall),
        }
    for n, ours, theirs in zip(_LETTER_ORDERS, output.letters, reference.letters, strict=True):
        found[f"letters{n}-precision"], found[f"letters{n}-recall"] = precision_recall(ours, theirs)
    for n in (1, 2):
        rates = precision_recall(ngrams(output.stems, n), ngrams(reference.stems, n))
        found[f"stems{n}-precision"], found[f"stems{n}-recall"] = rates
    return found | _lengths(output, reference) | _kinds(output, reference) | _weighted(output, reference, index)


def _lengths(output: _Seen, reference: _Seen) -> dict[str, float]:
    ours, theirs = max(1, len(output.words)), max(1, len(reference.words))
    common = lcs_length(output.words, reference.words)
    ratio = math.log(ours / theirs)
    return {
        "subsequence-precision": common / ours,
        "subsequence-recall": common / theirs,
        "edits": -edit_distance(output.words, reference.words) / theirs,
        "stem-edits": -edit_distance(output.stems, reference.stems) / theirs,
        "pieces": -_pieces(output.words, reference.words),
        "length": ours / theirs,
        "too-short": min(0.0, ratio),
        "too-long": -max(0.0, ratio),
        "same-beginning": float(output.words[:1] == reference.words[:1]),
        "same-end": float(output.words[-1:] == reference.words[-1:]),
    }


def _pieces(output: list[str], reference: list[str]) -> float:
    """Into how many runs matched words fall, for each of them: each word goes to the free place nearest to its turn."""
    places: dict[str, list[int]] = {}
    for at, word in enumerate(reference):
        places.setdefault(word, []).append(at)
    last, found = -1, []
    for word in output:
        free = places.get(word)
        if free:
            best = min(range(len(free)), key=lambda k: abs(free[k] - last - 1))
            last = free.pop(best)
            found.append(last)
        else:
            found.append(-2)
    matched = sum(at >= 0 for at in found)
    runs = sum(at >= 0 and at != before + 1 for before, at in pairwise([-3, *found]))
    return runs / max(1, matched)


def _kinds(output: _Seen, reference: _Seen) -> dict[str, float]:
    """Long words, short words and marks apart; letters that the reference has none of; capitals."""
    found: dict[str, float] = {}
    kinds = {
        "long-words": lambda word: len(word) > _SHORT,
        "short-words": lambda word: len(word) <= _SHORT and word.isalpha(),
        "marks": lambda word: not word.isalnum(),
    }
    for name, is_one in kinds.items():
        ours, theirs = (Counter(filter(is_one, each.words)) for each in (output, reference))
        found[f"{name}-precision"], found[f"{name}-recall"] = precision_recall(ours, theirs)
    size = max(1, len(output.words))
    same = matches(output.grams[0], reference.grams[0])
    capitals = (sum(map(str.isupper, each.line)) for each in (output, reference))
    return found | {
        "foreign": -sum(not word.isascii() for word in output.words) / size,
        "same-case": matches(Counter(output.cased), Counter(reference.cased)) / max(1, same),
        "capitals": -abs(next(capitals) - next(capitals)) / max(1, len(reference.words)),
    }


def _weighted(output: _Seen, reference: _Seen, index: Index) -> dict[str, float]:
    """Words in common, weighted by how rare they are; and words that the collection has never seen."""

    def rare(word: str) -> float:
        at = index.words.index_of(word)
        within = int(index.in_documents[at]) if at >= 0 else 0
        return math.log((index.n_documents + 1) / (within + 0.5))

    common = sum(rare(word) * count for (word,), count in (output.grams[0] & reference.grams[0]).items())
    ours, theirs = (sum(map(rare, each.words)) for each in (output, reference))
    strange = sum(word.isalpha() and word not in index.words for word in output.words)
    return {
        "rare-precision": common / ours if ours > 0 else 0.0,
        "rare-recall": common / theirs if theirs > 0 else 0.0,
        "strange": -strange / max(1, len(output.words)),
    }


def _among(outputs: list[_Seen]) -> dict[str, list[float]]:
    """How much an output has in common with the others, on the mean: what many systems say is rarely all wrong."""

    def mean_f(grams: list[Counter[Any]]) -> list[float]:
        found = np.zeros((len(grams), len(grams)))
        for i, one in enumerate(grams):
            for j in range(i):
                found[i, j] = found[j, i] = f_measure(*precision_recall(one, grams[j]))
        return list((found.sum(axis=1) / max(1, len(grams) - 1)).tolist())

    made = {f"others-words{n}": mean_f([each.grams[n - 1] for each in outputs]) for n in (1, 2, 3)}
    return made | {f"others-letters{n}": mean_f([each.letters[n - 1] for each in outputs]) for n in (4, 6)}


def output_features(outputs: Sequence[str], reference: str, index: Index) -> NDArray[np.float64]:
    """float64[n_outputs, n_features], in the order of `OUTPUT_FEATURES`; more is better, as a rule.

    Parameters
    ----------
    outputs : sequence of str
        Of several systems.
    reference : str
        What they should be like.
    index : Index
        Says how rare words are.
    """
    right, seen = _Seen.of(reference), [_Seen.of(output) for output in outputs]
    among = zip(*_among(seen).values(), strict=True)
    rows = [[*_against(each, right, index).values(), *beside] for each, beside in zip(seen, among, strict=True)]
    return np.array(rows, np.float64).reshape(len(seen), len(OUTPUT_FEATURES))


def _names() -> tuple[str, ...]:
    nothing = _Seen.of("")
    return (*_against(nothing, nothing, Index.of([])), *_among([nothing]))


OUTPUT_FEATURES = _names()
