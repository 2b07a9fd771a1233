"""Structural correspondence of documents: pivots, what predicts them, and where other words lie beside that.

References
----------
Blitzer, Dredze and Pereira, Biographies, Bollywood, Boom-boxes and Blenders, ACL 2007 (pivots by mutual information,
correction with a few labels). Blitzer, McDonald and Pereira, EMNLP 2006 (masks, rescaling, positive part, blocks).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import DocumentsError
from isogloss.features.sparse import Sparse
from isogloss.learners.correspondence import mutual_information, present_predictors, singular_blocks
from isogloss.tasks.adapt.seen import Seen

__all__ = ["Places", "choose_pivots", "learn_places", "masks", "unit_sizes"]

Array = NDArray[np.float64]
LARGER = 5.0
"""How large the mean of places is beside that of words, in the 1-norm, as in the paper of 2006."""


def unit_sizes(rows: Sparse) -> Array:
    """float64[n_rows]: what the features of each row are if rows are to have length 1."""
    return np.asarray(1 / np.sqrt(np.maximum(np.diff(rows.indptr), 1.0)))


@dataclass(frozen=True, eq=False)
class Places:
    """Where documents lie by their words: (Σ size · table[word] − centre) / spread, sizes being `unit_sizes`.

    Without the sizes, the first thing that places say of a document is how long it is.

    table : float32[n_features, h]
    centre, spread : float64[h]
    """

    table: NDArray[np.float32]
    centre: Array
    spread: Array

    @classmethod
    def none(cls, n_features: int) -> Places:
        """No places at all."""
        return cls(np.zeros((n_features, 0), np.float32), np.zeros(0), np.ones(0))

    def raw(self, rows: Sparse) -> Array:
        """float64[n, h]: where documents lie before they are centred and rescaled."""
        plain = Sparse(rows.indptr, rows.indices, rows.n_indicators)
        columns = [plain.scores(column) for column in self.table.T.astype(np.float64)]
        sums = np.stack(columns, axis=1) if columns else np.zeros((rows.n_rows, 0))
        return sums * unit_sizes(rows)[:, None]

    def of(self, rows: Sparse) -> Array:
        """float64[n, h]."""
        return np.asarray((self.raw(rows) - self.centre) / self.spread)

    def fitted(self, rows: Sparse, rescale: str) -> Places:
        """With centre and spread as the rows of training ask for.

        length: the mean of places is as long as the words of a document are, in the 2-norm; standard: mean 0 and
        variance 1 in each dimension; norm: five times as large as the words in the 1-norm, and not centred.
        """
        found = self.raw(rows)
        centre, spread = np.zeros(found.shape[1]), np.ones(found.shape[1])
        if rescale in ("length", "standard"):
            centre = found.mean(axis=0)
        if rescale == "length":
            spread[:] = float(np.sqrt(((found - centre) ** 2).sum(axis=1)).mean()) if len(found) else 1.0
        elif rescale == "standard":
            spread = found.std(axis=0)
        elif rescale == "norm":
            words = float((np.diff(rows.indptr) * unit_sizes(rows)).mean())
            spread[:] = float(np.abs(found).sum(axis=1).mean()) / (LARGER * words) if words > 0 else 1.0
        return Places(self.table, centre, np.where(spread > 0, spread, 1.0))

    def centred(self, rows: Sparse) -> Places:
        """The same where these rows are of another domain, in which documents lie around another point."""
        return Places(self.table, self.raw(rows).mean(axis=0), self.spread)


def choose_pivots(source: Sparse, target: Sparse, targets: Array | None, *, number: int, least: int) -> NDArray[Any]:
    """int64[m]: features in more than `least` documents of both domains.

    The most frequent ones or, with labels of the source, those that say most about them. The frequency of a feature is
    that of the domain where it is rarer; of equally good features the first are taken.
    """
    met = [
        Sparse(rows.indptr, rows.indices, rows.n_indicators).totals(np.ones(rows.n_rows)) for rows in (source, target)
    ]
    both = np.minimum(*met)
    found = np.flatnonzero(both > least)
    if not len(found):
        raise DocumentsError(
            f"no word is in more than {least} documents of both domains, so there are no pivots. Give more documents, "
            f"or a lower pivot_count; the most that one reaches is {int(both.max(initial=0))}"
        )
    good = both if targets is None else mutual_information(source, targets)
    return found[np.lexsort((found, -good[found]))][:number]


def masks(features: Seen, pivots: NDArray[np.int64], masking: str) -> Any:
    """Sparse [n_features, m]: what the predictor of each pivot does not see.

    own: the pivot; words: all that shares a word with it; pivots: all pivots.
    """
    from scipy.sparse import csc_matrix

    n, m = len(features), len(pivots)
    if masking == "own":
        return csc_matrix((np.ones(m), (pivots, np.arange(m))), shape=(n, m))
    if masking == "pivots":
        rows, columns = np.repeat(pivots, m), np.tile(np.arange(m), m)
        return csc_matrix((np.ones(m * m), (rows, columns)), shape=(n, m))
    parts = features.parts()
    lengths = [len(one) for one in parts]
    made = csc_matrix(
        (np.ones(sum(lengths)), (np.repeat(np.arange(n), lengths), np.concatenate(parts))),
        shape=(n, 1 + max((int(part.max()) for part in parts), default=0)),
    )
    return csc_matrix(made @ made[pivots].T)


def learn_places(
    features: Seen,
    source: Sparse,
    target: Sparse,
    pivots: NDArray[np.int64],
    *,
    dimensions: int,
    masking: str,
    positive: bool,
    blocks: bool,
    regularisation: float,
    seed: int,
) -> Places:
    """Predict pivots in the documents of both domains, and decompose the predictors."""
    both = Sparse(
        np.concatenate([source.indptr, source.indptr[-1] + target.indptr[1:]]),
        np.concatenate([source.indices, target.indices]), source.n_indicators,
    )  # fmt: skip
    hidden = masks(features, pivots, masking)
    options: dict[str, Any] = {"regularisation": regularisation, "positive": positive, "seed": seed}
    weights = present_predictors(both, pivots, hidden, sizes=unit_sizes(both), **options)
    kinds = np.zeros(len(features), np.int32)
    if blocks:
        kinds = features.kinds
    n_blocks = int(kinds.max(initial=0)) + 1
    table = singular_blocks(weights, kinds, n_blocks, dimensions).table
    if blocks:  # each block has dimensions of its own
        wide = np.zeros((len(table), n_blocks * dimensions), np.float32)
        for block in range(n_blocks):
            wide[kinds == block, block * dimensions : (block + 1) * dimensions] = table[kinds == block]
        table = wide
    kept = np.abs(table).sum(axis=0) > 0
    return Places(np.ascontiguousarray(table[:, kept]), np.zeros(int(kept.sum())), np.ones(int(kept.sum())))
