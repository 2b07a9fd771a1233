r"""Structural correspondence learning: features of two domains that predict the same things are alike.

Text without labels poses problems of its own: does a frequent feature, a *pivot*, occur here? Linear predictors
:math:`w_\ell` of many pivots from all other features are the columns of a matrix W. What a feature says about pivots is
its row, and the first left singular vectors of W put rows into few dimensions: features of either domain that predict
the same pivots lie side by side.

.. math::

    w_\ell = \arg\min_w \frac1N \sum_i L(w \cdot x_i, p_\ell(x_i)) + \lambda \|w\|^2, \qquad
    W_+ = \max(W, 0), \qquad W_+^{(b)} = U D V^\top, \qquad \theta^{(b)} = U_{[:, 1:h]}^\top

with one singular value decomposition for each block b of features (a template). Nothing here knows of words: rows are
instances, columns are binary features, each of one block.

References
----------
Blitzer, McDonald and Pereira, Domain Adaptation with Structural Correspondence Learning, EMNLP 2006, figure 3 and
section 4. Ando and Zhang, A Framework for Learning Predictive Structures from Multiple Tasks and Unlabeled Data, JMLR
2005 (the loss, the positive part, blocks; with one domain this is their method). We differ: the loss is a mean, since
λ = 10⁻⁴ beside a sum over hundreds of thousands of rows would be no penalty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse

__all__ = [
    "Design", "Projection", "View", "modified_huber", "mutual_information", "predictors", "present_predictors",
    "project", "singular_blocks",
]  # fmt: skip

Array = NDArray[np.float64]

WIDTH = 16
"""Predictors that are learnt together: two lines of memory for each feature."""
ORDERS = 4
"""Orders of rows, which passes take in turn."""
DENSE = 1 << 20
"""Matrices with fewer cells are decomposed whole."""
FULL, NARROW, ROWS = 0.1, 4000, 10000
"""Matrices with a larger share of entries that are not 0, and this many columns at most, are multiplied
with themselves, so many rows at a time."""
NEGLIGIBLE = 1e-6
"""Singular values that are smaller than this share of the largest are taken for 0."""


def modified_huber(predictions: ArrayLike, signs: ArrayLike) -> tuple[Array, Array]:
    r"""The loss of predictions of −1 or +1, and its derivative in the prediction.

    .. math:: L(p, y) = \max(0, 1 - py)^2 \text{ for } py \ge -1, \quad -4py \text{ otherwise}

    Examples
    --------
    >>> loss, slope = modified_huber([2.0, 0.0, -1.0, -3.0], [1, 1, 1, 1])
    >>> loss.tolist(), slope.tolist()
    ([0.0, 1.0, 4.0, 12.0], [-0.0, -2.0, -4.0, -4.0])
    """
    y = np.asarray(signs, np.float64)
    agreement = np.asarray(predictions, np.float64) * y
    short = np.maximum(0.0, 1.0 - agreement)
    far = agreement < -1.0
    return np.where(far, -4.0 * agreement, short**2), y * np.where(far, -4.0, -2.0 * short)


class View(NamedTuple):
    """Pivots that are found in the same way, such as the word on the left.

    classes : int32[n_rows]
        The pivot that is there in each row, −1 for none: one at most.
    n_classes : int
    hidden : bool[n_columns]
        Features that are made of the same thing, and would give the pivot away.
    """

    classes: NDArray[np.int32]
    n_classes: int
    hidden: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Design:
    """Instances by their features.

    matrix : Sparse
        Binary features of every instance.
    blocks : int32[n_columns]
        The block of each column, −1 for columns that help predicting but are not projected.
    n_blocks : int
    """

    matrix: Sparse
    blocks: NDArray[np.int32]
    n_blocks: int

    def __post_init__(self) -> None:
        if self.matrix.dense.shape[1] or len(self.matrix.values):
            raise ParameterError("Design: features should be binary")
        blocks, n = self.blocks, self.matrix.n_indicators
        if blocks.shape != (n,) or (n and not -1 <= int(blocks.min()) <= int(blocks.max()) < self.n_blocks):
            raise ParameterError(f"Design: there should be {n} numbers of blocks, from -1 to {self.n_blocks - 1}")


class Projection(NamedTuple):
    """Where each feature lies.

    table : float32[n_columns, h]
        Row j is column j of the θ of its block; rows of columns that are not projected are 0. A block that has fewer
        than h dimensions ends in zeros. Rows of a block, as columns, are orthonormal or 0.
    strengths : float64[n_blocks, h]
        Singular values.
    """

    table: NDArray[np.float32]
    strengths: Array


def predictors(
    matrix: Sparse,
    view: View,
    *,
    regularisation: float = 1e-4,
    tolerance: float = 0.01,
    passes: int = 100,
    positive: bool = True,
    seed: int = 0,
    told: Callable[[int], None] | None = None,
) -> sparse.csc_matrix:
    """The predictors of all pivots of a view, by the other features.

    Parameters
    ----------
    matrix : Sparse
        Binary.
    view : View
    regularisation : float
        λ.
    tolerance : float
        Ends when no derivative of the dual (its variables go from 0 to 4) is larger than this in a whole pass.
    passes : int
        At most.
    positive : bool
        Only weights above 0 are kept: features that are never met with a pivot have none.
    seed : int
        Of the order of rows.
    told : callable, optional
        Told how many more predictors are ready.

    Returns
    -------
    scipy.sparse.csc_matrix of float64[n_columns, n_classes]
    """
    from isogloss.learners._numba.pivots import pivots

    if not regularisation > 0:
        raise ParameterError(f"predictors: regularisation should be above 0, not {regularisation!r}")
    shown = _without(matrix, view.hidden)
    rng = np.random.default_rng(seed)
    orders = np.stack([rng.permutation(shown.n_rows) for _ in range(ORDERS)]).astype(np.int32)
    starts = range(0, view.n_classes, WIDTH)
    found: list[Any] = [None] * len(starts)

    def work(block: int, count: int) -> None:
        first = starts[block]
        weights = np.zeros((shown.n_indicators, min(WIDTH, view.n_classes - first)))
        given = (orders, shown.indptr, shown.indices, view.classes, first, regularisation, tolerance, passes)
        pivots(*given, weights)
        found[block] = sparse.csc_matrix(np.maximum(weights, 0.0) if positive else weights)
        if told is not None:
            told(weights.shape[1])

    with using_threads():
        run_blocks(work, len(starts))
    empty = sparse.csc_matrix((shown.n_indicators, 0))
    return sparse.csc_matrix(sparse.hstack([empty, *found]))


def present_predictors(
    matrix: Sparse,
    columns: NDArray[np.int64],
    hidden: Any,
    *,
    regularisation: float = 1e-4,
    tolerance: float = 0.05,
    passes: int = 100,
    positive: bool = False,
    seed: int = 0,
    sizes: ArrayLike | None = None,
) -> sparse.csc_matrix:
    """The predictors of features of which a row may have many, by the other features.

    Parameters
    ----------
    matrix : Sparse
        Binary.
    columns : int64[m]
        The features that are pivots.
    hidden : sparse matrix [n_columns, m]
        Not 0 where a predictor does not see a feature: at least its own pivot.
    regularisation, tolerance, passes, positive, seed
        As in `predictors`.
    sizes : float64[n_rows], optional
        What the features of each row are, if not 1: with 1/√(number of features) all rows have length 1.

    Returns
    -------
    scipy.sparse.csc_matrix of float64[n_columns, m]
    """
    from isogloss.learners._numba.pivots import present_pivots

    if not regularisation > 0:
        raise ParameterError(f"present_predictors: regularisation should be above 0, not {regularisation!r}")
    wide = matrix.n_indicators
    each = np.ones(matrix.n_rows) if sizes is None else np.ascontiguousarray(sizes, np.float64)
    if each.shape != (matrix.n_rows,):
        raise ParameterError(f"present_predictors: sizes should be {matrix.n_rows} numbers, not {list(each.shape)}")
    ones = np.ones(len(matrix.indices), np.uint8)
    present = sparse.csc_matrix((ones, matrix.indices, matrix.indptr), shape=(wide, matrix.n_rows)).T.tocsc()
    masks = sparse.csc_matrix(hidden)
    rng = np.random.default_rng(seed)
    orders = np.stack([rng.permutation(matrix.n_rows) for _ in range(ORDERS)]).astype(np.int32)
    starts = range(0, len(columns), WIDTH)
    found: list[Any] = [None] * len(starts)

    def work(block: int, count: int) -> None:
        mine = slice(starts[block], starts[block] + WIDTH)
        there = np.ascontiguousarray(present[:, columns[mine]].toarray())
        shown = np.ascontiguousarray((masks[:, mine].toarray() == 0).astype(np.float64))
        weights = np.zeros(shown.shape)
        given = (orders, matrix.indptr, matrix.indices, each, there, shown, regularisation, tolerance, passes)
        present_pivots(*given, weights)
        found[block] = sparse.csc_matrix(np.maximum(weights, 0.0) if positive else weights)

    with using_threads():
        run_blocks(work, len(starts))
    return sparse.csc_matrix(sparse.hstack([sparse.csc_matrix((wide, 0)), *found]))


def mutual_information(matrix: Sparse, targets: ArrayLike) -> Array:
    r"""float64[n_columns]: what the presence of each feature says of the label, in nats.

    .. math:: I(f; Y) = \sum_{a \in \{0, 1\}} \sum_y P(a, y) \log \frac{P(a, y)}{P(a) P(y)}

    Parameters
    ----------
    matrix : Sparse
    targets : float64[n_rows, n_labels]

    Examples
    --------
    >>> rows = Sparse.of([[0, 1], [0, 1], [1], [1]], 3)
    >>> mutual_information(rows, [[1, 0], [1, 0], [0, 1], [0, 1]]).round(3).tolist()
    [0.693, 0.0, 0.0]
    """
    wanted = np.asarray(targets, np.float64)
    total = max(float(wanted.sum()), 1e-300)
    plain = Sparse(matrix.indptr, matrix.indices, matrix.n_indicators)
    there = np.stack([plain.totals(column) for column in wanted.T]) / total
    labels = wanted.sum(axis=0)[:, None] / total
    found = np.zeros(matrix.n_indicators)
    for joint in (there, labels - there):
        share = joint.sum(axis=0)
        expected = labels * share
        fits = (joint > 0) & (expected > 0)
        found += (joint * np.log(np.where(fits, joint / np.where(fits, expected, 1.0), 1.0))).sum(axis=0)
    return np.maximum(found, 0.0)


def _without(matrix: Sparse, hidden: NDArray[np.bool_]) -> Sparse:
    """The same rows without some columns, whose numbers stay."""
    if hidden.shape != (matrix.n_indicators,):
        raise ParameterError(f"View: hidden should be {matrix.n_indicators} booleans, not {list(hidden.shape)}")
    shown = ~hidden[matrix.indices]
    before = np.concatenate([[0], np.cumsum(shown)])
    return Sparse(before[matrix.indptr], matrix.indices[shown], matrix.n_indicators)


def singular_blocks(weights: Any, blocks: NDArray[np.int32], n_blocks: int, h: int) -> Projection:
    """The first h left singular vectors of each block of rows.

    The largest entry of each vector is positive, so that the result is the same wherever it is computed.

    Parameters
    ----------
    weights : sparse float64[n_columns, m]
    blocks : int32[n_columns]
    n_blocks, h : int
    """
    rows = sparse.csr_matrix(weights)
    table, strengths = np.zeros((rows.shape[0], h), np.float32), np.zeros((n_blocks, h))
    for b in range(n_blocks):
        mine = np.flatnonzero((blocks == b) & (np.diff(rows.indptr) > 0))  # rows of zeros stay zeros
        if not len(mine) or not h:
            continue
        vectors, values = _left_vectors(rows[mine], h)
        table[mine, : len(values)] = vectors
        strengths[b, : len(values)] = values
    return Projection(table, strengths)


def _left_vectors(matrix: Any, h: int) -> tuple[Array, Array]:
    """U[:, :r] and D[:r], for r the smaller of h and the rank."""
    from scipy.sparse.linalg import svds

    least = min(matrix.shape)
    if matrix.shape[0] * matrix.shape[1] <= DENSE or h >= least - 1:
        vectors, values, _ = np.linalg.svd(matrix.toarray(), full_matrices=False)
    elif matrix.nnz > FULL * matrix.shape[0] * matrix.shape[1] and matrix.shape[1] <= NARROW:
        vectors, values = _by_products(matrix, h)
    else:
        start = np.random.default_rng(0).normal(size=least)
        vectors, values, _ = svds(matrix, k=h, v0=start, return_singular_vectors="u")
        order = np.argsort(-values, kind="stable")
        vectors, values = vectors[:, order], values[order]
    held = min(h, int(np.count_nonzero(values > NEGLIGIBLE * values.max(initial=0.0))))
    vectors, values = vectors[:, :held], values[:held]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(held)])
    return vectors * signs, values


def _by_products(matrix: Any, h: int) -> tuple[Array, Array]:
    """The same of a tall matrix with few zeros: eigenvectors of WᵀW, which is small, and what W makes of them.

    What rounding adds to small values is taken out again by an orthogonal basis of the result.
    """
    from scipy.linalg import eigh

    wide = matrix.shape[1]
    products = np.zeros((wide, wide))
    for first in range(0, matrix.shape[0], ROWS):
        part = matrix[first : first + ROWS].toarray()
        products += part.T @ part
    _, right = eigh(products, subset_by_index=[wide - h, wide - 1])
    basis, small = np.linalg.qr(matrix @ right[:, ::-1])
    turned, values, _ = np.linalg.svd(small)
    return basis @ turned, values


def project(
    design: Design,
    views: Sequence[View],
    *,
    h: int = 25,
    positive: bool = True,
    told: Callable[[int], None] | None = None,
    **options: Any,
) -> Projection:
    """Learn predictors of the pivots of all views, and the projection of every block of features.

    Parameters
    ----------
    design : Design
        Instances of both domains (of one, for the method of Ando and Zhang).
    views : sequence of View
    h : int
        Dimensions for each block.
    positive : bool
        Decompose the positive part of weights.
    **options
        Of `predictors`.

    Examples
    --------
    Features 0 and 1 are met with pivot 0, features 2 and 3 with pivot 1:

    >>> design = Design(Sparse.of([[0], [1], [2], [3]] * 9, 4), np.zeros(4, np.int32), 1)
    >>> view = View(np.array([0, 0, 1, 1] * 9, np.int32), 2, np.zeros(4, bool))
    >>> table = project(design, [view], h=2).table
    >>> (table @ table.T > 0.1)[:2].tolist()
    [[True, True, False, False], [True, True, False, False]]
    """
    found = [predictors(design.matrix, view, positive=positive, told=told, **options) for view in views]
    empty = sparse.csc_matrix((design.matrix.n_indicators, 0))
    return singular_blocks(sparse.hstack([empty, *found]), design.blocks, design.n_blocks, h)
