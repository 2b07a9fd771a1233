r"""EM for both directions at once, as a learner that `learners.runner` drives.

A step is an E-step over shards of the text and an M-step on the table. Three things set it apart from textbook EM:

- *Constraints* act on the posteriors before they are counted: agreement multiplies both directions' posteriors [1]_,
  bijectivity and symmetry project them [2]_.
- *Own evidence is left out*: a cell is judged by :math:`c(e, f) - q_{ij}`, the counts without what it put in itself in
  the step before. It is what a collapsed sampler does, in expectation (CVB0 [3]_), and it stops words that occur once
  from being pinned to whatever they were first thrown together with. With this on, the objective is no longer a bound
  that can only rise; with `leave_out=0` it is (see the tests). It begins with the second step of the model itself:
  posteriors of Model 1 are spread over all cells, and those of the model over few, which can be kept.
- *Priors* (smoothing, spelling, stems, a lexicon) are pseudo-counts in the table.

The E-step of a shard is a function of the parameters, the words of the shard and what it put into the table before.
The entries of its cells are found anew each time, so that between two steps a pair has its words and the few cells
that are kept, and memory grows with the different word pairs rather than with the cells of the text.

References
----------
.. [1] Liang, Taskar and Klein, Alignment by Agreement, NAACL 2006, section 3. Distortion and null counts come from each
   direction's own posteriors.
.. [2] Graça, Ganchev and Taskar, CL 2010, section 3.
.. [3] Asuncion, Welling, Smyth and Teh, On Smoothing and Inference for Topic Models, UAI 2009, section 3.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.base import Engine, LocalEngine
from isogloss.layout import Layout, Numbers, check
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.evidence import CHECKPOINT, Kept
from isogloss.tasks.align.expectation import EStep, Others, State, no_counts
from isogloss.tasks.align.maximisation import MStep, maximised
from isogloss.tasks.align.model import Model
from isogloss.tasks.align.priors import Stems
from isogloss.tasks.align.settings import Settings

__all__ = ["Info", "Training"]

_DUMPED = ("counts", "jumps", "first", "last", "diagonal")


class Info(NamedTuple):
    """What a person wants to watch: objective per pair, mean violation of the constraint."""

    objective: float
    violation: float


class Training:
    """Learner for one text: `begin`, `step`, and `model` of a state.

    Parameters
    ----------
    corpus, settings
    base : Model, optional
        What was learnt before, laid out for this corpus (`Model.fitted_to`): its weights become priors.
    lexicon : float32[n_entries], optional
        Pseudo-counts from the user's own lexicon.
    on_shard : callable, optional
        Told which part of the shards of a step is done.
    engine : Engine, optional
        Where shards are worked on; by default in this process. The result is the same.
    """

    def __init__(
        self,
        corpus: Corpus,
        settings: Settings,
        *,
        base: Model | None = None,
        lexicon: NDArray[np.float32] | None = None,
        on_shard: Callable[[float], None] | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.corpus, self.settings, self.base = corpus, settings, base
        self.engine = LocalEngine() if engine is None else engine
        self.on_shard = on_shard or (lambda fraction: None)
        some = settings.learnt_length < corpus.max_length
        self.n_pairs = max(1, corpus.within(settings.learnt_length) if some else int((~corpus.skipped).sum()))
        self._last: tuple[int, NDArray[np.int64], tuple[Model, tuple[NDArray[np.float32], ...]]] | None = None
        self._maximise = MStep(corpus, settings, base, lexicon)

    @property
    def stems(self) -> Stems | None:
        """By the first way to cut words: what cells without an entry go by."""
        return self._maximise.stems

    def begin(self) -> State:
        """Nothing counted yet; distortion uniform, or as learnt before."""
        from isogloss.structures._numba.jumps import BUCKETS, FIRST

        known = self.base
        return State(
            0,
            np.zeros((len(self.corpus.columns), 2), np.int64),
            no_counts(self.corpus, self.stems),
            np.ones((2, BUCKETS)) if known is None else known.jumps,
            np.ones((2, FIRST)) if known is None else known.first,
            np.ones((2, FIRST)) if known is None else known.last,
            np.ones((2, BUCKETS)) if known is None else known.diagonal,
            Kept(self.corpus),
        )

    @property
    def iterations(self) -> int:
        """Steps of the whole schedule: Model 1, then the model itself."""
        return self._of_model1 + self.settings.iterations

    @property
    def _of_model1(self) -> int:
        """Steps of Model 1 that come first; the very first has no constraint, since a uniform table has nothing to say.

        Model 1 without constraint has no such steps: they would be like its own.
        """
        free = self.settings.model == "model1" and self.settings.constraint == "none"
        return 0 if self.base is not None or free else self.settings.model1_iterations

    def step(self, state: State) -> tuple[State, Info]:
        """One E-step and M-step."""
        from isogloss.structures._numba.jumps import BUCKETS, FIRST, ROWS

        settings, corpus = self.settings, self.corpus
        own_stage = state.iteration >= self._of_model1
        kind = settings.model if own_stage else "model1"
        constraint = settings.constraint if own_stage else settings.model1_constraint if state.iteration else "none"
        leave_out = settings.leave_out if state.iteration > self._of_model1 else 0.0
        model, own = self.estimate(state)
        self._last = None
        started = state.iteration > 0 or self.base is not None
        parameters = model.parameters(settings, own, floor=None if started else 1.0)
        work = EStep(
            f"step-{state.iteration:03d}", corpus, self.stems if corpus.least > 1 else None, state.evidence, parameters,
            settings, kind, constraint, leave_out=leave_out, keeps=self._keeps(state.iteration),
            last=state.iteration + 1 >= self.iterations,
        )  # fmt: skip
        counts = state.counts
        counts[:] = 0
        others = no_counts(corpus, self.stems)
        jumped, sums = np.zeros((2, ROWS, BUCKETS)), np.zeros(3)
        done = 0
        self.on_shard(0.0)
        for found in self.engine.map(work, range(len(corpus.shards))):
            found.add_to(counts, others)
            for of_jumps, of_bounds in found.sums:  # floats, in the order of shards whoever worked on them
                jumped += of_jumps
                sums += of_bounds
                done += 1
            found.keep()
            self.on_shard(done / len(corpus.shards))
        jumps, first, last, diagonal = state.jumps, state.first, state.last, state.diagonal
        if kind == "hmm":
            jumps = maximised(jumped[:, 0], jumped[:, 1], jumps)
            first = maximised(jumped[:, 2, :FIRST], jumped[:, 3, :FIRST], first)
            if settings.final:
                last = maximised(jumped[:, 4, :FIRST], jumped[:, 5, :FIRST], last)
        elif kind == "model2":
            diagonal = maximised(jumped[:, 0], jumped[:, 1], diagonal)
        after = State(state.iteration + 1, counts, others, jumps, first, last, diagonal, state.evidence)
        return after, Info(sums[0] / self.n_pairs, sums[1] / self.n_pairs)

    def _keeps(self, iteration: int) -> bool:
        """Whether something will be left out of what this step counts, in the next step or in decoding."""
        if iteration + 1 >= self.iterations:
            return self.settings.decode_leave_out > 0
        return self.settings.leave_out > 0 and iteration >= self._of_model1

    def forget(self) -> None:
        """Let go of the last estimate, and the counts that it was made of."""
        self._last = None

    def model(self, state: State) -> Model:
        """The parameters that the counts of a state give."""
        return self.estimate(state)[0]

    def estimate(self, state: State) -> tuple[Model, tuple[NDArray[np.float32], ...]]:
        """M-step on the table: counts and priors to weights and their sums, and what leaving out needs to know.

        The last estimate is kept, because a model is asked for when its state is about to be decoded.
        """
        if self._last is None or self._last[0] != state.iteration or self._last[1] is not state.counts:
            self._last = None  # room for the next
            self._last = (state.iteration, state.counts, self._maximise(state))
        return self._last[2]

    # --- checkpoints

    def dump(self, state: State) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays = {name: getattr(state, name) for name in _DUMPED} | state.others._asdict()
        return arrays | state.evidence.arrays(), {"iteration": state.iteration}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> State:
        wanted, _ = self.dump(self.begin())
        layout: Layout = {name: Numbers(array.dtype.name, array.shape) for name, array in wanted.items()}
        found = {name: array.copy() for name, array in check(arrays, layout, CHECKPOINT).items()}
        others = Others(*(found[name] for name in Others._fields))
        kept = Kept.from_arrays(self.corpus, arrays)
        return State(int(meta["iteration"]), others=others, evidence=kept, **{name: found[name] for name in _DUMPED})
