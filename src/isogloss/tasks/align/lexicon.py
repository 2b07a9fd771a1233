"""Word pairs and their probabilities: out of a model, and into one as a prior."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Vocabulary
from isogloss.data.formats import read_bytes
from isogloss.errors import DataError
from isogloss.tasks.align.model import Model

__all__ = ["LexiconEntry", "entries_of", "lexicon_prior", "read_lexicon"]

_WEIGHT = 10.0  # pseudo-count of a pair that comes without one

Pair = tuple[str, str, float]


class LexiconEntry(NamedTuple):
    """A word pair: p(target | source), p(source | target), and how often the two are expected to be linked."""

    source: str
    target: str
    forward: float
    backward: float
    links: float


def entries_of(model: Model, least: float) -> Iterator[LexiconEntry]:
    """Pairs that reach `least` in one direction; by source word, the most probable first."""
    owner = np.repeat(np.arange(len(model.source_words)), np.diff(model.rows))
    forward = model.weights[:, 0] / model.source_mass[owner]
    backward = model.weights[:, 1] / model.target_mass[model.columns]
    chosen = np.flatnonzero((forward >= least) | (backward >= least))
    chosen = chosen[np.lexsort((model.columns[chosen], -forward[chosen], owner[chosen]))]
    count = model.weights[chosen].mean(axis=1)
    source, target = model.source_words.types, model.target_words.types
    for k, e, f, c in zip(chosen.tolist(), owner[chosen].tolist(), model.columns[chosen].tolist(), count.tolist()):
        yield LexiconEntry(source[e], target[f], float(forward[k]), float(backward[k]), c)


def read_lexicon(lexicon: str | PathLike[str] | Iterable[tuple[Any, ...]]) -> list[Pair]:
    """Word pairs from a file (source, target and perhaps a weight on a line, between tabs or spaces) or from tuples.

    What `isogloss lexicon` writes has a heading, which is passed over.
    """
    if not isinstance(lexicon, str | PathLike):
        return [(str(row[0]), str(row[1]), float(row[2]) if len(row) > 2 else _WEIGHT) for row in lexicon]
    pairs: list[Pair] = []
    for number, line in enumerate(read_bytes(lexicon).decode().split("\n"), start=1):
        fields = line.split("\t") if "\t" in line else line.split()
        fields = [field.strip() for field in fields]
        if not any(fields) or (number == 1 and fields[:3] == ["source", "target", "target_given_source"]):
            continue
        try:
            source, target = fields[:2]
            weight = float(fields[2]) if len(fields) > 2 else _WEIGHT
            if not (source and target and 0 <= weight < np.inf):
                raise ValueError
        except ValueError:
            raise DataError(
                f"{fspath(lexicon)}, line {number}: {line.strip()[:60]!r} is no word pair: "
                "each line should have a source word, a target word and perhaps a weight, between tabs"
            ) from None
        pairs.append((source, target, weight))
    return pairs


class Entries(Protocol):
    """A table of word pairs, such as that of a corpus."""

    @property
    def source_words(self) -> Vocabulary: ...

    @property
    def target_words(self) -> Vocabulary: ...

    @property
    def rows(self) -> NDArray[np.int64]: ...

    @property
    def columns(self) -> NDArray[np.int32]: ...


def lexicon_prior(lexicon: Iterable[Pair], corpus: Entries, lowercase: bool) -> NDArray[np.float32]:
    """Pseudo-count of every entry of a corpus: float32[n_entries]."""
    prior = np.zeros(len(corpus.columns), np.float32)
    for source, target, weight in lexicon:
        if lowercase:
            source, target = source.lower(), target.lower()
        e, f = corpus.source_words.index_of(source), corpus.target_words.index_of(target)
        if e >= 0 and f >= 0:
            row = slice(corpus.rows[e], corpus.rows[e + 1])
            prior[row][corpus.columns[row] == f] += weight
    return prior
