"""Which cells of a grammar's chart are worth a look: by a model of labelled spans, and by coarser grammars."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituent_forms import INSIDE, JOINT
from isogloss.data.rows import gathered
from isogloss.structures.batch import Stack, run_sentences
from isogloss.structures.latent_cells import CellPosteriors, Cells, Layer
from isogloss.tasks.parse.constituency.derivations import Symbols

__all__ = ["LEAST", "Within", "kept_cells", "replaced_cells"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
LEAST = 3e-4
"""What labelled spans must give to a symbol over a span for grammars to look at it."""


class Within(NamedTuple):
    """What a model of labelled spans says, and from where on it is believed.

    labels : tuple of str
        Unary chains as compound labels.
    posteriors : Stack
        float64[n_spans, n_labels] for each sentence.
    least : float
    """

    labels: tuple[str, ...]
    posteriors: Stack
    least: float = LEAST

    def cells(self, symbols: Symbols, lengths: Ints, tokens: Ints, likely: Bools) -> Cells:
        """The cells that are left.

        Parameters
        ----------
        symbols : Symbols
        lengths : int64[n_sentences]
        tokens : int64[n_words]
            The row of each word in `likely`, bool[n_types, n_tags]: which tags it may have.
        """
        from isogloss.tasks.parse.constituency._numba.cells import vouch_cells

        starts, firsts = _starts(lengths * (lengths + 1) // 2), _starts(lengths)
        made, seen = np.empty((2, int(starts[-1]), len(symbols)), np.bool_)
        posteriors = self.posteriors.values.view()
        posteriors.flags.writeable = False  # so that the kernel is compiled for one type
        run_sentences(
            vouch_cells, len(lengths), lengths, firsts, starts, tokens, likely, posteriors, self.posteriors.offsets,
            *_ends(self.labels, symbols), self.least, made, seen,
        )  # fmt: skip
        return Cells.of(made, seen)


def _ends(labels: tuple[str, ...], symbols: Symbols) -> tuple[Ints, Ints, Ints]:
    """The symbols at both ends of the chain of each label, and the symbol inside of each symbol; −1 for none."""
    number = {name: len(symbols.tags) + at for at, name in enumerate(symbols.others)}
    chains = [label.split(JOINT) for label in labels]
    firsts, lasts = ([number.get(chain[end], -1) for chain in chains] for end in (0, -1))
    inside = [-1] * len(symbols.tags) + [number.get(INSIDE + name, -1) for name in symbols.others]
    return np.array(firsts, np.int64), np.array(lasts, np.int64), np.array(inside, np.int64)


def kept_cells(cells: Cells, found: CellPosteriors, least: float, every: Bools | None = None) -> Cells:
    """The cells with more posterior than `least`, and all of the spans that `every` names."""
    layers = []
    for layer, posterior in zip(cells, (found.made, found.seen), strict=True):
        chosen = posterior > least
        layers.append(layer.kept(chosen if every is None else chosen | every[layer.spans]))
    return Cells(*layers)


def replaced_cells(cells: Cells, sentences: Ints, others: Cells, lengths: Ints) -> Cells:
    """With the cells of some sentences in place of their own."""
    starts, layers = _starts(lengths * (lengths + 1) // 2), []
    for layer, other in zip(cells, others, strict=True):
        counts = np.diff(layer.bounds)
        counts[gathered(starts, sentences)[1]] = np.diff(other.bounds)
        bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        symbols, own = np.empty(int(bounds[-1]), np.int64), np.ones(int(bounds[-1]), bool)
        own[gathered(bounds[starts], sentences)[1]] = False
        left = np.ones(len(layer.symbols), bool)
        left[gathered(layer.bounds[starts], sentences)[1]] = False
        symbols[own], symbols[~own] = layer.symbols[left], other.symbols
        layers.append(Layer(bounds, symbols))
    return Cells(*layers)


def _starts(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
