"""`SpanningTree`: dependency trees that may cross, scored link by link; `SpanningTrees`: many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.ragged import Ragged
from isogloss.engine.devices import current
from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, kept
from isogloss.structures.batch import Batch, Stack, run_sentences
from isogloss.structures.heads import Heads, HeadTree, link_scores
from isogloss.structures.kbest import checked_k, k_best

__all__ = ["SpanningTree", "SpanningTrees"]


class SpanningTree(HeadTree):
    r"""A distribution over the dependency trees of n words, projective or not.

    .. math:: p(y) = \frac{1}{Z} \exp \sum_{j=1}^{n} scores[y_j, j]

    A tree y gives every word 1 … n a head from 0 … n such that all words hang from node 0, the root.

    Parameters
    ----------
    scores : float64[n + 1, n + 1]
        Log score of each link (head, child); −∞ forbids. The diagonal and column 0 are not read, and their marginals
        are 0. The array is copied.
    single_root : bool
        Allow only trees in which the root has one child.

    Notes
    -----
    Everything is exact. `log_partition`, `marginals`, `sample` and `hessian_vector` take O(n³), `argmax` O(n²),
    `k_best` O(k n³). A tree is an int64[n] array, entry w − 1 the head of word w. Without words there is one tree, the
    empty one.

    Z is the determinant of the Kirchhoff matrix [1]_ (section 3.2), and marginals follow from its inverse. We compute
    both without forming it and without one subtraction, so that near-singular matrices lose no digits: every marginal
    is right to a relative error of about n² units in the last place as long as scores differ by some hundreds, and
    where they differ by more, logarithms are used and the error of log Z and of log marginals is about n units in the
    last place of the largest score difference times n (below 1e-8 for n = 200 and scores of ±10⁴). What float64 cannot
    tell to six digits is refused with a `ParameterError`. See `isogloss.structures._numba.escape` for the algorithm.

    References
    ----------
    .. [1] Smith, Efficient Inference for Trees and Alignments, PhD thesis, Johns Hopkins 2010, chapter 3; Smith and
       Smith, EMNLP 2007; Koo, Globerson, Carreras and Collins, EMNLP 2007 (one root child); McDonald and Satta, IWPT
       2007.

    Examples
    --------
    >>> dist = SpanningTree(np.zeros((4, 4)))
    >>> round(float(np.exp(dist.log_partition())), 9), dist.marginals()[0, 1:].round(6).tolist()
    (16.0, [0.5, 0.5, 0.5])
    >>> scores = np.zeros((4, 4)); scores[0, 2] = scores[2, 3] = scores[3, 1] = 1.0
    >>> SpanningTree(scores, single_root=True).argmax().tolist()
    [3, 0, 2]
    """

    def __init__(self, scores: ArrayLike, *, single_root: bool = False) -> None:
        self.scores = link_scores(scores, "SpanningTree")
        self.single_root = bool(single_root)

    def __repr__(self) -> str:
        return f"SpanningTree(n={self.n}, single_root={self.single_root})"

    @classmethod
    def batch(cls, scores: Iterable[ArrayLike], *, single_root: bool = False) -> SpanningTrees:
        """Many sentences at once, one float64[n + 1, n + 1] for each."""
        return SpanningTrees(Stack.of(scores, "SpanningTrees", 2), single_root=single_root)

    @property
    def _alone(self) -> SpanningTrees:
        """A batch of this one sentence: the same kernels give the same bits."""
        size = len(self.scores)
        shapes, offsets = np.array([[size, size]], np.int64), np.array([0, size * size], np.int64)
        return SpanningTrees(Stack(self.scores.ravel(), offsets, shapes), single_root=self.single_root)

    def _solve(self) -> tuple[float, Array]:
        values, marginals, self._in_logs = _solve(self._alone)
        self._refuse(float(values[0]))
        return float(values[0]), marginals[0]

    def log_marginals(self) -> Array:
        """Logarithms of the marginals, right also where a marginal is too small for a number; −∞ for what no tree has.

        For messages of a tree factor, which divide by the scores. Computed in logarithms at every call.
        """
        from isogloss.structures._numba.arithmetic import Logs
        from isogloss.structures._numba.spanning import spanning_trees

        many, values = self._alone, np.empty(1)
        out = np.full(self.scores.size, -np.inf)
        layout = (many.scores.offsets, _sizes(many), self.single_root, True)
        spanning_trees(0, 1, Logs(0), np.ones(1, np.bool_), many.scores.values, *layout, out, values)
        self._refuse(float(values[0]))
        return out.reshape(self.scores.shape)

    def _refuse(self, value: float) -> None:
        if value == -np.inf:
            _raise_infeasible(self)
        if np.isnan(value):
            raise ParameterError(_refusal(self))

    def argmax(self) -> Heads:
        """int64[n]: the best tree; among equals always the same one."""
        values, best = _best(self._alone)
        self._refuse(float(values[0]))
        return np.asarray(best[0])

    def sample(self, rng: np.random.Generator) -> Heads:
        """int64[n]: one tree drawn from the distribution, in O(n³) whatever the scores."""
        marginals = self.marginals()
        many = self._alone
        return np.asarray(_sampled(many, many.scores.like(marginals.ravel()), self._in_logs, rng)[0])

    def k_best(self, k: int) -> list[tuple[float, Heads]]:
        """The `k` best trees with their scores, best first; all if there are fewer.

        Examples
        --------
        >>> [y.tolist() for _, y in SpanningTree(np.log([[1, 3, 2], [1, 1, 4], [1, 5, 1]])).k_best(9)]
        [[0, 1], [2, 0], [0, 0]]
        """
        from isogloss.structures._numba.edmonds import best_tree

        checked_k(k, repr(self))
        heads, restricted = np.zeros(self.n, np.int64), np.empty_like(self.scores)

        def best(fixed: Sequence[int], banned: frozenset[int], /) -> tuple[float, Sequence[int]] | None:
            at = len(fixed)
            restricted[:] = self.scores
            if at:
                restricted[:, 1 : at + 1] = -np.inf
                restricted[fixed, np.arange(1, at + 1)] = self.scores[fixed, np.arange(1, at + 1)]
            if banned:
                restricted[list(banned), at + 1] = -np.inf
            value = best_tree(restricted, self.single_root, heads)
            return None if value == -np.inf else (float(value), heads.tolist())

        found = k_best(best, k)
        if not found:
            _raise_infeasible(self)
        return [(score, np.array(y, np.int64)) for score, y in found]

    def hessian_vector(self, vector: ArrayLike) -> Array:
        r"""How the marginals move when the scores move along `vector`: the second derivative of log Z times a vector.

        .. math:: \frac{d}{d\varepsilon} \mu(scores + \varepsilon\, vector) = \mathrm{Cov}(parts,\ vector \cdot parts)

        With the parts of a gold tree as the vector, it is the gradient of the expected number of right heads, for
        minimum-risk training [1]_ (equations 3.9-3.14); with any other, a step of back-propagation through `marginals`.
        Exact, in O(n³), by carrying derivatives through the sums of `marginals`; what is right there is right here.

        Parameters
        ----------
        vector : float64[n + 1, n + 1]
            Finite; what it holds for forbidden links, on the diagonal and in column 0 does not matter.

        References
        ----------
        .. [1] Smith, PhD thesis, 2010, section 3.2.4.
        """
        array = np.array(vector, np.float64, order="C")
        if array.shape != self.scores.shape:
            raise ParameterError(f"{self!r}: the vector should be {list(self.scores.shape)}, not {list(array.shape)}")
        self.marginals()
        many = self._alone
        return _moved(many, self._in_logs, many.scores.like(array.ravel()))[0]

    def score(self, y: ArrayLike) -> float:
        """Log score of a tree, not normalised; −∞ for heads that are not a tree of this kind."""
        heads = self._checked(y)
        return float(self.scores[heads, np.arange(1, self.n + 1)].sum()) if self._is_tree(heads) else -np.inf

    def _remake(self, scores: Array) -> Self:
        return type(self)(scores, single_root=self.single_root)


class SpanningTrees(Batch[Heads]):
    """Many spanning trees, worked on together on threads: the batch view of `SpanningTree`.

    Parameters
    ----------
    scores : Stack
        One float64[n + 1, n + 1] for each sentence; `SpanningTree.batch` makes it of a list of arrays.

    Examples
    --------
    >>> many = SpanningTree.batch([np.zeros((4, 4)), np.zeros((1, 1)), np.zeros((3, 3))])
    >>> np.exp(many.log_partition()).round(9).tolist(), [len(y) for y in many.argmax()]
    ([16.0, 1.0, 3.0], [3, 0, 2])
    """

    def __init__(self, scores: Stack, *, single_root: bool = False) -> None:
        for s, (rows, columns) in enumerate(scores.shapes.tolist()):
            if rows != columns or rows < 1:
                raise ParameterError(
                    f"SpanningTrees: scores of sentence {s} should be [n + 1, n + 1], not {[rows, columns]}"
                )
        values = scores.checked("SpanningTrees").values.view()
        self.scores = scores.like(kept(values))  # kernels are compiled for one kind of array
        self.single_root = bool(single_root)

    def __getitem__(self, s: int) -> SpanningTree:
        return SpanningTree(self.scores[s], single_root=self.single_root)

    def _remake(self, scores: Stack) -> Self:
        return type(self)(scores, single_root=self.single_root)

    def _take(self, items: NDArray[np.int64]) -> SpanningTrees:
        return self._remake(self.scores.take(items))

    def _solve(self) -> tuple[Array, Stack]:
        values, marginals, self._in_logs = _solve(self)
        refused = np.flatnonzero(np.isnan(values))
        if len(refused):
            raise ParameterError(f"sentence {int(refused[0])}: {_refusal(self[int(refused[0])])}")
        return values, marginals

    def argmax(self) -> Any:
        """Ragged of int64: the best tree of each sentence."""
        values, heads = _best(self)
        self._refuse_infeasible(values)
        return heads

    def sample(self, rng: np.random.Generator) -> Any:
        """Ragged of int64: one tree for each; the same numbers are drawn as by one sentence after the other."""
        marginals = self.marginals()
        return _sampled(self, marginals, self._in_logs, rng)

    def hessian_vector(self, vectors: Stack | Iterable[ArrayLike]) -> Stack:
        """`SpanningTree.hessian_vector` of each sentence with its vector, laid out as `scores`."""
        arrays = [np.asarray(vector, np.float64) for vector in vectors]
        if [list(array.shape) for array in arrays] != self.scores.shapes.tolist():
            raise ParameterError(f"{self!r}: vectors should have the shapes of the scores")
        self.marginals()
        values = np.concatenate([array.ravel() for array in arrays]) if arrays else np.zeros(0)
        return _moved(self, self._in_logs, self.scores.like(values))


def _sizes(many: SpanningTrees) -> NDArray[np.int64]:
    return np.ascontiguousarray(many.scores.shapes[:, 0])


def _starts(many: SpanningTrees) -> NDArray[np.int64]:
    """Where the words of each sentence begin."""
    return np.concatenate([[0], np.cumsum(_sizes(many) - 1)]).astype(np.int64)


def _solve(many: SpanningTrees) -> tuple[Array, Stack, NDArray[np.bool_]]:
    """log Z, marginals, and for which sentences logarithms were needed."""
    from isogloss.structures._numba.arithmetic import Logs, Plain
    from isogloss.structures._numba.spanning import spanning_trees

    scores, count = many.scores, len(many)
    marginals, values = np.zeros(len(scores.values)), np.full(count, np.nan)
    if current() == "cuda" and count:
        from isogloss.structures._gpu import spanning, transfer

        values, marginals = transfer.solved(spanning.spanning_trees, scores, _sizes(many), many.single_root)
    rest = (scores.values, scores.offsets, _sizes(many), many.single_root, False, marginals, values)
    run_sentences(spanning_trees, count, Plain(0), np.isnan(values), *rest)
    in_logs = np.isnan(values)
    if in_logs.any():
        run_sentences(spanning_trees, count, Logs(0), in_logs, *rest)
    return values, scores.like(marginals), in_logs


def _best(many: SpanningTrees) -> tuple[Array, Ragged]:
    from isogloss.structures._numba.edmonds import best_trees

    scores, starts, values = many.scores, _starts(many), np.empty(len(many))
    heads = np.zeros(int(starts[-1]), np.int64)
    layout = (scores.offsets, _sizes(many), many.single_root)
    run_sentences(best_trees, len(many), scores.values, *layout, heads, starts, values)
    return values, Ragged(heads, starts)


def _sampled(many: SpanningTrees, marginals: Stack, in_logs: NDArray[np.bool_], rng: np.random.Generator) -> Ragged:
    from isogloss.structures._numba.arithmetic import Logs, Plain
    from isogloss.structures._numba.spanning_sample import sampled_trees

    scores, starts = many.scores, _starts(many)
    heads, u = np.zeros(int(starts[-1]), np.int64), rng.random(int(starts[-1]))
    rest = (scores.values, scores.offsets, _sizes(many), many.single_root, marginals.values, u, heads, starts)
    in_plain = ~in_logs
    if in_plain.any():
        run_sentences(sampled_trees, len(many), Plain(0), in_plain, *rest)
    in_logs = in_logs | in_plain
    if in_logs.any():
        run_sentences(sampled_trees, len(many), Logs(0), in_logs, *rest)
    return Ragged(heads, starts)


def _moved(many: SpanningTrees, in_logs: NDArray[np.bool_], vectors: Stack) -> Stack:
    from isogloss.structures._numba.arithmetic import Logs, Plain
    from isogloss.structures._numba.spanning import spanning_moments

    scores, moved = many.scores, np.zeros(len(many.scores.values))
    rest = (scores.values, scores.offsets, _sizes(many), many.single_root, vectors.values, moved)
    for arithmetic, chosen in ((Plain(0), ~in_logs), (Logs(0), in_logs)):
        if chosen.any():
            run_sentences(spanning_moments, len(many), arithmetic, chosen, *rest)
    return scores.like(moved)


def _refusal(dist: SpanningTree) -> str:
    finite = dist.scores[np.isfinite(dist.scores)]
    return (
        f"{dist!r}: scores reach from {finite.min():.3g} to {finite.max():.3g}, too far apart for sums over trees in "
        "float64. Scale them down, or forbid with minus infinity instead of large negative numbers"
    )


def _raise_infeasible(dist: SpanningTree) -> NoReturn:
    """Say which words cannot be had."""
    allowed = dist.scores > -np.inf
    allowed[:, 0] = False
    np.fill_diagonal(allowed, True)
    reach = allowed.copy()
    for _ in range(max(1, dist.n).bit_length()):
        reach = (reach.astype(np.float64) @ reach) > 0
    lost = np.flatnonzero(~reach[0])
    if len(lost):
        found = f"no chain of allowed links leads from the root to word {lost[0]}" + (
            f" and {len(lost) - 1} others" if len(lost) > 1 else ""
        )
    else:
        words = [w for w in range(1, dist.n + 1) if reach[w, 1:].all()]
        found = (
            f"the root may not link to word{'s' if len(words) > 1 else ''} {', '.join(map(str, words[:5]))}, and all "
            "words cannot hang from another"
            if words
            else "no word is such that all others can hang from it"
        )
    raise InfeasibleError(f"{dist!r}: no tree is allowed; {found}. Give more links a finite score")
