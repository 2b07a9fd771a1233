"""Latent annotations by split and merge: hidden states of symbols, found by EM from trees that do not show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.learners import em
from isogloss.structures.latent_cfg import Annotated, LatentGrammar, LatentTrees

__all__ = ["Several", "SeveralState", "SplitMerge"]

Words = Callable[[LatentGrammar, NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
_ARRAYS = ("sizes", "binary", "unary", "stay", "words", "root")


@dataclass(frozen=True)
class _Model:
    """What EM asks: sums over annotations of the trees, and the grammar that expected uses give."""

    smoothing: float
    words: Words | None

    def zero_counts(self) -> float:
        return 0.0

    def distributions(self, params: LatentGrammar, batch: Sequence[LatentTrees]) -> list[Annotated]:
        return [params.annotated(trees) for trees in batch]

    def expected_counts(self, item: LatentTrees, q: Annotated) -> NDArray[np.float64]:
        return q.counts

    def improve(self, params: LatentGrammar, counts: Any) -> LatentGrammar:
        return params.estimated(counts, smoothing=self.smoothing, words=self.words)


class SplitMerge:
    """EM over the annotations of given trees, whose states are split in two again and again, and half of them merged.

    The first step estimates the grammar that the trees show. In each cycle every state is split in two with a little
    noise, EM tells the two apart, the halves that matter least to the likelihood of the trees are merged again, and EM
    goes on a little: so that states are where they are needed.

    Parameters
    ----------
    trees : LatentTrees
    cycles : int
    steps : (int, int)
        Steps of EM after each split, and after each merge.
    share : float
        Which part of all splits is undone.
    smoothing : float
        How much of the probabilities of a state is those of its symbol's states on the average, in every M-step. The
        log-likelihood never falls between a split and a merge if this is 0 and `words` is not given.
    words : callable, optional
        See `LatentGrammar.estimated`.
    seed : int
        Seed of the noise.

    References
    ----------
    Petrov, Barrett, Thibaux and Klein, Learning accurate, compact, and interpretable tree annotation, ACL 2006.

    Examples
    --------
    >>> from isogloss.learners.runner import run
    >>> from isogloss.structures.cfg import Grammar
    >>> rules = Grammar(2, [[0, 1, 1]])                                   # S → X X, X → w | v
    >>> pair = lambda a, b: [[1, 1, a, -1, -1, -1], [1, 1, b, -1, -1, -1], [0, 0, 0, -1, 0, 1]]
    >>> nodes = np.array([row for a, b in [(0, 1)] * 16 for row in pair(a, b)])
    >>> learner = SplitMerge(LatentTrees(np.arange(0, 49, 3), nodes), cycles=1, steps=(30, 5), smoothing=0.0)
    >>> found = run(learner, learner.init(LatentGrammar.flat(rules, np.array([1, 1]))), iterations=learner.n_steps)
    >>> found.state.params.sizes.tolist(), round(float(found.trace[-1]), 2)          # one X for w, and one for v
    ([1, 2], 0.0)
    """

    def __init__(
        self, trees: LatentTrees, *, cycles: int, steps: tuple[int, int] = (20, 10), share: float = 0.5,
        smoothing: float = 0.01, words: Words | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        self.trees, self.cycles, self.steps, self.share, self.seed = trees, cycles, steps, share, seed
        self._em: em.EM[LatentGrammar, LatentTrees, Any] = em.EM(_Model(smoothing, words), [[trees]])

    @property
    def n_steps(self) -> int:
        """Steps of EM in all."""
        return 1 + self.cycles * sum(self.steps)

    def init(self, grammar: LatentGrammar) -> em.State[LatentGrammar]:
        """The state before the first step, of `LatentGrammar.flat`."""
        return em.init(grammar)

    def step(self, state: em.State[LatentGrammar]) -> tuple[em.State[LatentGrammar], em.Info]:
        """One E-step and one M-step, after a split or a merge where it is time for one."""
        cycle, at = divmod(state.iteration - 1, max(1, sum(self.steps)))
        if state.iteration and cycle < self.cycles:
            if at == 0:
                state = state._replace(params=state.params.split(np.random.default_rng([self.seed, cycle])))
            elif at == self.steps[0]:
                state = state._replace(params=self._merged(state.params))
        return self._em.step(state)

    def _merged(self, grammar: LatentGrammar) -> LatentGrammar:
        """Without the splits that matter least."""
        used = grammar.annotated(self.trees).frequencies()
        both = np.maximum(used.reshape(-1, 2).sum(axis=1), 1e-100).repeat(2)
        losses = grammar.annotated(self.trees, used / both).losses[: grammar.n_states // 2]
        joined = np.zeros(len(losses), np.bool_)
        joined[np.argsort(losses, kind="stable")[: round(self.share * len(losses))]] = True
        return grammar.merged(joined, used)

    def dump(self, state: em.State[LatentGrammar]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The state for a checkpoint."""
        grammar = state.params
        arrays = {name: getattr(grammar, name) for name in _ARRAYS}
        rules = {"rules.binary": grammar.rules.binary, "rules.unary": grammar.rules.unary, "tags": grammar.tags}
        return arrays | rules, {"iteration": state.iteration, "n_symbols": grammar.rules.n_symbols}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> em.State[LatentGrammar]:
        """The state of a checkpoint."""
        from isogloss.structures.cfg import Grammar

        rules = Grammar(meta["n_symbols"], arrays["rules.binary"], arrays["rules.unary"])
        grammar = LatentGrammar(rules, arrays["tags"], *(arrays[name] for name in _ARRAYS))
        return em.State(grammar, meta["iteration"])


class SeveralState(NamedTuple):
    """Grammars that are done, and the state of the one whose turn it is."""

    done: tuple[LatentGrammar, ...]
    now: em.State[LatentGrammar]
    start: LatentGrammar
    iteration: int = 0

    @property
    def params(self) -> tuple[LatentGrammar, ...]:
        """The grammars, once all are done."""
        return self.done


class Several:
    """Several `SplitMerge`, of different seeds, one after the other: one learner for `runner.run`."""

    def __init__(self, learners: Sequence[SplitMerge]) -> None:
        self.learners = list(learners)

    @property
    def n_steps(self) -> int:
        """Steps of EM in all."""
        return sum(learner.n_steps for learner in self.learners)

    def init(self, grammar: LatentGrammar) -> SeveralState:
        """The state before the first step."""
        return SeveralState((), em.init(grammar), grammar)

    def step(self, state: SeveralState) -> tuple[SeveralState, em.Info]:
        """One step of the learner whose turn it is."""
        learner = self.learners[len(state.done)]
        now, info = learner.step(state.now)
        done = state.done
        if now.iteration == learner.n_steps:
            done, now = (*done, now.params), em.init(state.start)
        return SeveralState(done, now, state.start, state.iteration + 1), info

    def dump(self, state: SeveralState) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The state for a checkpoint."""
        arrays: dict[str, NDArray[Any]] = {}
        meta: dict[str, Any] = {"iteration": state.iteration, "each": []}
        for number, one in enumerate([*map(em.init, state.done), state.now, em.init(state.start)]):
            own, told = self.learners[0].dump(one)
            arrays |= store.prefixed(f"{number}.", own)
            meta["each"].append(told)
        return arrays, meta

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> SeveralState:
        """The state of a checkpoint."""
        *done, now, start = (
            self.learners[0].restore(store.unprefixed(f"{number}.", arrays), told)
            for number, told in enumerate(meta["each"])
        )
        return SeveralState(tuple(one.params for one in done), now, start.params, meta["iteration"])
