"""`Chain`: sequences of labels, scored by neighbours, of order 1 or 2; `Chains`: many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.ragged import Ragged
from isogloss.engine.devices import current
from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, Program, checked_scores, kept, numbers
from isogloss.structures.batch import ProgramBatch, Stack, run_sentences
from isogloss.structures.kbest import checked_k
from isogloss.structures.semiring import LOG, Semiring

__all__ = ["Chain", "Chains"]

Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Chain(Program[Labels]):
    r"""A distribution over sequences :math:`y_0 \dots y_{n-1}` of `k` labels.

    .. math:: p(y) = \frac{1}{Z} \exp \sum_t scores[t, y_{t-1}, y_t]
        \qquad\text{or}\qquad \frac{1}{Z} \exp \sum_t scores[t, y_{t-2}, y_{t-1}, y_t]

    Parameters
    ----------
    scores : float64[n, k, k] or float64[n, k, k, k]
        Log score of each step; the number of axes tells the order, 1 or 2, and −∞ forbids. What lies before the
        beginning counts as label 0: at t = 0 only ``scores[0, 0, :]`` (``scores[0, 0, 0, :]``) is read, and at t = 1
        of order 2 only ``scores[1, 0, :, :]``; the marginals of the rest are 0. The array is copied.
    mask : bool[n, k], optional
        Labels allowed at each position. The same as −∞ for every step into the others, and kept by `with_scores`.

    Notes
    -----
    Everything is exact: log Z, marginals, best and drawn sequence in O(n k²) or O(n k³), the m best in m times that.
    A chain of no positions has one sequence, the empty one, and log Z = 0. Where every sequence is forbidden,
    `InfeasibleError` says where the last path breaks off.

    References
    ----------
    Rabiner, A tutorial on hidden Markov models, Proceedings of the IEEE 77(2), 1989, section III. Order 2 as in He,
    Gillenwater and Taskar, Graph-Based Posterior Regularization for Semi-Supervised Structured Prediction, CoNLL 2013.

    Examples
    --------
    >>> dist = Chain(np.log([[[0.5, 0.5], [1, 1]], [[0.9, 0.1], [0.2, 0.8]]]))
    >>> dist.argmax().tolist(), round(dist.log_partition(), 12) + 0.0, round(float(dist.marginals()[1, 0, 1]), 3)
    ([0, 0], 0.0, 0.05)
    >>> [(round(float(np.exp(score)), 2), y.tolist()) for score, y in dist.k_best(3)]
    [(0.45, [0, 0]), (0.4, [1, 1]), (0.1, [1, 0])]
    >>> Chain(dist.scores, mask=[[True, True], [False, True]]).argmax().tolist()
    [1, 1]
    """

    def __init__(self, scores: ArrayLike, *, mask: ArrayLike | None = None) -> None:
        array = numbers(scores, "Chain: scores")
        if array.ndim not in (3, 4) or len(set(array.shape[1:])) != 1:
            raise ParameterError(
                f"Chain: scores should be [n, k, k], or [n, k, k, k] for order 2, not {list(array.shape)}"
            )
        self.mask = None if mask is None else _checked_mask(mask, array.shape[:2], "Chain: mask")
        self.scores = checked_scores(_masked(array, self.mask), "Chain: scores", array.shape)

    @classmethod
    def _of(cls, scores: Array, mask: Mask | None) -> Self:
        """From scores that are already checked and masked."""
        made = cls.__new__(cls)
        made.scores, made.mask = scores, mask
        return made

    @classmethod
    def factored(
        cls,
        nodes: ArrayLike,
        transitions: ArrayLike,
        start: ArrayLike | None = None,
        end: ArrayLike | None = None,
        *,
        pairs: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> Self:
        """From scores of labels and of transitions that are the same at every position.

        Parameters
        ----------
        nodes : float64[n, k]
            Log score of each label at each position.
        transitions : float64[k, k] or float64[k, k, k]
            Log score of y[t] after y[t-1], or of y[t] after y[t-2] and y[t-1]: the number of axes tells the order.
        start, end : float64[k], optional
            Log score of the first and of the last label; 0 unless given.
        pairs : float64[k, k], optional
            At order 2, log score of y[t] after y[t-1], also at t = 1, where there is no y[t-2] yet; 0 unless given.
        mask : bool[n, k], optional
            As for `Chain`.

        See Also
        --------
        FactoredChains : the same for many sentences, without an array of n k² numbers for each.

        Examples
        --------
        >>> dist = Chain.factored(np.zeros((3, 2)), np.log([[0.9, 0.1], [0.2, 0.8]]), start=np.log([0.5, 0.5]))
        >>> dist.argmax().tolist(), round(float(np.exp(dist.log_partition())), 9)
        ([0, 0, 0], 1.0)
        """
        from isogloss.structures.factored_chain import FactoredChain

        return cls(FactoredChain(nodes, transitions, start, end, pairs=pairs).steps(), mask=mask)

    @classmethod
    def batch(cls, scores: Stack | Iterable[ArrayLike], *, mask: Iterable[ArrayLike] | None = None) -> Chains:
        """Many chains of one order, worked on together; `mask`, if given, has one array for each."""
        return Chains(scores, mask=mask)

    @property
    def n(self) -> int:
        """Number of positions."""
        return int(self.scores.shape[0])

    @property
    def k(self) -> int:
        """Number of labels."""
        return int(self.scores.shape[1])

    @property
    def order(self) -> int:
        """How many labels before it a label depends on: 1 or 2."""
        return self.scores.ndim - 2

    def __repr__(self) -> str:
        return f"Chain(n={self.n}, k={self.k}{', order=2' if self.order == 2 else ''})"

    # --- the program

    def _sweep(self, semiring: Semiring, u: Array) -> tuple[float, Array]:
        from isogloss.structures._numba.chain import chain

        grad = np.zeros(self.scores.size)
        value = chain(semiring, self.scores.reshape(-1), self.n, self.k, self._contexts, grad, u)
        return float(value), grad.reshape(self.scores.shape)

    def _solve(self) -> tuple[float, Array]:
        from isogloss.structures._numba.chain_scaled_steps import chains_log

        size = self.scores.size
        offsets, shapes = np.array([0, size]), np.array([[self.n, self.k, self._contexts]])
        grad, values = np.empty(size + 8), np.empty(1)  # the kernel reads eight at a time
        chains_log(0, 1, LOG, self.order, self.scores.reshape(-1), offsets, shapes, grad, values)
        if values[0] == -np.inf:
            self._raise_infeasible()
        return float(values[0]), grad[:size].reshape(self.scores.shape)

    @property
    def _contexts(self) -> int:
        return self.k if self.order == 2 else 1

    def _draws(self) -> int:
        return self.n

    def _raise_infeasible(self) -> NoReturn:
        broken = _breaks_at(self.scores)
        raise InfeasibleError(
            f"{self!r}: no sequence is allowed; nothing reaches position {broken} of {self.n} with {self.k} states. "
            "Give at least one path a finite score"
        )

    def _read(self, parts: Array) -> Labels:
        if parts.shape[0] == 0 or self.k == 0:
            return np.zeros(0, np.int64)
        return np.asarray(parts.reshape(self.n, -1, self.k).sum(axis=1).argmax(axis=1), np.int64)

    def _remake(self, scores: Array) -> Self:
        return self._of(kept(_masked(scores, self.mask)), self.mask)

    # --- views

    def node_marginals(self) -> Array:
        """float64[n, k]: posterior of each label at each position."""
        return np.asarray(self.pair_marginals().sum(axis=1))

    def pair_marginals(self) -> Array:
        """float64[n, k, k]: posterior of each pair (y[t-1], y[t]); at t = 0 in row 0."""
        return self.marginals() if self.order == 1 else np.asarray(self.marginals().sum(axis=1))

    def triple_marginals(self) -> Array:
        """float64[n, k, k, k]: posterior of each triple (y[t-2], y[t-1], y[t]), laid out as the scores of order 2.

        At order 1 by independence: p(h, i, j) = p(h, i) p(i, j) / p(i).
        """
        if self.order == 2:
            return self.marginals()
        pairs = self.pair_marginals()
        out = np.zeros((*pairs.shape, self.k))
        out[:2, 0] = pairs[:2]
        nodes = pairs[1:-1].sum(axis=1)[:, None, :, None]
        product = pairs[1:-1, :, :, None] * pairs[2:, None, :, :]
        np.divide(product, nodes, out=out[2:], where=nodes > 0)
        return out

    def k_best(self, k: int) -> list[tuple[float, Labels]]:
        """The `k` best sequences with their scores, best first; fewer if fewer are allowed."""
        from isogloss.structures._numba.chain import k_best

        size = checked_k(k, f"{self!r}: k_best")
        if self.n == 0:
            return [(0.0, np.zeros(0, np.int64))]
        size = min(size, self.k ** min(self.n, 64))
        found, labels = np.full(size, -np.inf), np.zeros((size, self.n), np.int64)
        if size:
            k_best(self.scores.ravel(), self.n, self.k, self._contexts, size, found, labels)
        if not size or found[0] == -np.inf:
            self._raise_infeasible()
        return [(float(score), y) for score, y in zip(found, labels, strict=True) if score > -np.inf]

    def score(self, y: ArrayLike) -> float:
        """Log score of a sequence, not normalised."""
        return float(self.scores[self._steps(y)].sum())

    def parts(self, y: ArrayLike) -> Array:
        """1 for each step that the sequence takes, 0 elsewhere, shaped like `scores`."""
        out = np.zeros_like(self.scores)
        out[self._steps(y)] = 1.0
        return out

    def _steps(self, y: ArrayLike) -> tuple[NDArray[np.int64], ...]:
        labels = checked_labels(y, self.n, self.k, repr(self))
        return (np.arange(self.n), *_windows(labels, self.order))


class Chains(ProgramBatch[Labels]):
    """Many chains of one order, of any lengths and numbers of labels, worked on together: the batch view of `Chain`.

    Parameters
    ----------
    scores : Stack, or iterable of float64[n, k, k] or of float64[n, k, k, k]
        One array for each sentence, as for `Chain`. A Stack is taken as it is, not copied.
    mask : iterable of bool[n, k], optional
        One array for each sentence, as for `Chain`.

    Examples
    --------
    >>> many = Chain.batch([np.zeros((2, 3, 3)), np.zeros((0, 1, 1)), np.zeros((3, 2, 2))])
    >>> np.exp(many.log_partition()).round(6).tolist(), [len(y) for y in many.argmax()]
    ([9.0, 1.0, 8.0], [2, 0, 3])
    """

    def __init__(self, scores: Stack | Iterable[ArrayLike], *, mask: Iterable[ArrayLike] | None = None) -> None:
        stack = _stacked(scores)
        if stack.shapes.shape[1] not in (3, 4):
            axes = stack.shapes.shape[1]
            raise ParameterError(f"Chains: scores should be [n, k, k], or [n, k, k, k] for order 2, not {axes} axes")
        for s in np.flatnonzero((stack.shapes[:, 1:] != stack.shapes[:, 1:2]).any(axis=1))[:1]:
            raise ParameterError(f"Chains: scores of sentence {s} should be [n, k, k], not {stack.shapes[s].tolist()}")
        self.masks: list[Mask] | None = None
        if mask is not None:
            each = list(mask)
            if len(each) != len(stack):
                raise ParameterError(
                    f"Chains: {len(each)} masks were given for {len(stack)} sentences; give one for each"
                )
            self.masks = [
                _checked_mask(one, shape[:2], f"Chains: mask of sentence {s}")
                for s, (one, shape) in enumerate(zip(each, stack.shapes, strict=True))
            ]
        self.scores = self._covered(stack)

    def _covered(self, stack: Stack) -> Stack:
        if self.masks is None:
            return stack
        blocks = [_masked(block, mask).ravel() for block, mask in zip(stack, self.masks, strict=True)]
        return stack.like(kept(np.concatenate([np.zeros(0), *blocks])))

    @property
    def order(self) -> int:
        """1 or 2."""
        return int(self.scores.shapes.shape[1]) - 2

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64[n_sentences]."""
        return self.scores.shapes[:, 0]

    def __getitem__(self, s: int) -> Chain:
        return Chain._of(self.scores[s], None if self.masks is None else self.masks[s])

    def _sweep(self, semiring: Semiring, u: Array, starts: NDArray[np.int64]) -> tuple[Array, Stack]:
        from isogloss.structures._numba.chain import chains

        stack, shapes = self.scores, self._sizes()
        grad, values = np.zeros(len(stack.values)), np.empty(len(self))
        run_sentences(
            chains, len(self), semiring, stack.values, stack.offsets, shapes, grad, u, starts, values
        )  # fmt: skip
        return values, stack.like(grad)

    def _solve(self) -> tuple[Array, Stack]:
        stack = self.scores
        if current() == "cuda" and self.order == 1:
            from isogloss.structures._gpu import chain, transfer

            if len(stack) and stack.shapes[:, 1].max() <= chain.MOST_LABELS:
                values, grad = transfer.solved(chain.chains_log, stack, stack.shapes)
                return values, stack.like(grad)
        from isogloss.structures._numba.chain_scaled_steps import chains_log

        grad, values = np.empty(len(stack.values) + 8), np.empty(len(self))  # the kernel reads eight at a time
        run_sentences(
            chains_log, len(self), LOG, self.order, stack.values, stack.offsets, self._sizes(), grad, values
        )  # fmt: skip
        return values, stack.like(grad[:-8])

    def _sizes(self) -> NDArray[np.int64]:
        """int64[n_sentences, 3]: length, labels and contexts, for the kernels."""
        k = self.scores.shapes[:, 1]
        return np.stack([self.lengths, k, k if self.order == 2 else np.ones_like(k)], axis=1)

    def _draws(self) -> NDArray[np.int64]:
        return self.lengths

    def _structures(self, parts: Stack) -> Sequence[Labels]:
        starts = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        used = np.flatnonzero(parts.values)  # one step for each position, in order
        sentence = np.repeat(np.arange(len(self)), self.lengths)
        labels = (used - parts.offsets[sentence]) % np.maximum(parts.shapes[sentence, 1], 1)
        return list(Ragged(labels, starts))

    def _remake(self, scores: Stack) -> Self:
        made = type(self).__new__(type(self))
        made.masks = self.masks
        made.scores = made._covered(scores)
        return made

    def _take(self, items: NDArray[np.int64]) -> Chains:
        made = type(self).__new__(type(self))
        made.masks = None if self.masks is None else [self.masks[s] for s in items.tolist()]
        made.scores = self.scores.take(items)
        return made

    def node_marginals(self) -> Stack:
        """float64[n, k] for each sentence: posterior of each label at each position."""
        nodes = [self._nodes(block) for block in self.marginals()]
        return Stack.of(nodes, "Chains: node marginals", rank=2)

    @staticmethod
    def _nodes(marginals: Array) -> Any:
        return marginals.sum(axis=tuple(range(1, marginals.ndim - 1)))


def checked_labels(y: ArrayLike, n: int, k: int, place: str) -> Labels:
    """`y` as int64[n], once it is known to be a sequence of labels."""
    given = np.asarray(y)
    labels = np.asarray(given, np.int64)
    whole = given.dtype.kind in "iub" or np.array_equal(labels, given)
    if labels.shape != (n,) or not whole or (n and not 0 <= labels.min() <= labels.max() < k):
        raise ParameterError(f"{place}: a sequence is {n} states from 0 to {k - 1}, not {y!r}")
    return labels


def _windows(labels: Labels, order: int) -> tuple[Labels, ...]:
    """(y[t-1], y[t]) or (y[t-2], y[t-1], y[t]) for every t, with 0 before the beginning."""
    padded = np.concatenate([np.zeros(order, np.int64), labels])
    return tuple(padded[back : back + len(labels)] for back in range(order + 1))


def _checked_mask(mask: ArrayLike, shape: Sequence[int], place: str) -> Mask:
    array = np.array(mask)
    if array.dtype != np.bool_ or array.shape != tuple(shape):
        wanted = [int(length) for length in shape]
        raise ParameterError(f"{place} should be bool{wanted}, not {array.dtype}{list(array.shape)}")
    array.flags.writeable = False
    return array


def _masked(scores: Array, mask: Mask | None) -> Array:
    if mask is None:
        return scores
    n, k = mask.shape
    return np.where(mask.reshape(n, *[1] * (scores.ndim - 2), k), scores, -np.inf)


def _stacked(scores: Stack | Iterable[ArrayLike]) -> Stack:
    if isinstance(scores, Stack):
        return scores.checked("Chains: scores")
    blocks = [numbers(block, f"Chains: scores: sentence {s}") for s, block in enumerate(scores)]
    return Stack.of(blocks, "Chains: scores", blocks[0].ndim if blocks else 3)


def _breaks_at(scores: Array) -> int:
    """The first position that no allowed path reaches."""
    n, k = len(scores), int(scores.shape[1])
    contexts = k if scores.ndim == 4 else 1
    reached = np.zeros((k, contexts), np.bool_)  # state (h, i)
    for t in range(n):
        if k == 0:
            return t
        allowed = scores[t].reshape(k, contexts, k) > -np.inf
        if t == 0:
            into = np.zeros((contexts, k), np.bool_)
            into[0] = allowed[0, 0]
        else:
            into = (allowed & reached[:, :, None]).any(axis=0)
        if not into.any():
            return t
        reached = into.reshape(k, contexts)
    return len(scores)
