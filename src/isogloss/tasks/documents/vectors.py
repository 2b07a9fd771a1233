"""Documents as vectors: tf-idf and cosines, over SciPy's sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["cosines", "idf_of", "tf_idf", "unit_rows"]


def idf_of(counts: Any) -> NDArray[np.float64]:
    r"""Inverse document frequency of each column, :math:`\log (n / n_w)`; 0 for a word that no document has.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> np.exp(idf_of(csr_matrix([[2, 1, 0], [0, 1, 0]]))).round(3).tolist()
    [2.0, 1.0, 1.0]
    """
    found = counts.getnnz(axis=0)
    return np.asarray(np.log(counts.shape[0] / np.maximum(found, 1)) * (found > 0), np.float64)


def tf_idf(counts: Any, idf: NDArray[np.float64] | None = None) -> Any:
    """Counts times idf, those of the counts themselves if no others are given; sparse float64[n_documents, n_types]."""
    from scipy.sparse import csr_matrix, diags

    return csr_matrix(counts.astype(np.float64) @ diags(idf_of(counts) if idf is None else idf))


def unit_rows(matrix: Any) -> Any:
    """Rows divided by their Euclidean lengths; rows of zeros stay."""
    from scipy.sparse import diags

    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return diags(1.0 / np.where(lengths > 0, lengths, 1.0)) @ matrix


def cosines(one: Any, other: Any) -> Any:
    """Cosine of every row of one matrix with every row of another, as a sparse matrix."""
    return unit_rows(one) @ unit_rows(other).T
