"""What estimators that couple parsers of both sides and an aligner by mean field have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.estimator import Estimator
from isogloss.features.table import KEYS, Index
from isogloss.features.templates import Templates
from isogloss.layout import Layout, Numbers, check, texts
from isogloss.learners.meanfield import CoupledLikelihood, FieldLikelihood, MeanField, mean_field
from isogloss.learners.optimisers import Lbfgs
from isogloss.learners.runner import run
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.batch import Batch
from isogloss.tasks.align import HMMAligner, Model1Aligner, Model2Aligner
from isogloss.tasks.joint.given import hash_of_model
from isogloss.tasks.joint.opinions import fold_rows
from isogloss.tasks.transfer.stages import Stages

__all__ = ["ALIGNERS", "PIECE", "CoupledModels", "Fitted", "Models", "numbered"]

ALIGNERS = (HMMAligner, Model1Aligner, Model2Aligner)
PIECE = 200
"""Pairs that are worked on together when a text is parsed."""
TOLERANCE = 1e-4
"""The relative gain of the objective below which learning ends."""
_LAYOUT: Layout = {"keys": KEYS, "weights": Numbers("float64", "features")}
P = TypeVar("P", bound=Any)
O = TypeVar("O", bound=Any)  # noqa: E741


class Models(NamedTuple):
    """The separate models."""

    source: Any
    target: Any
    aligner: Any


class Fitted(NamedTuple):
    """What was learnt: the separate models, and weights of agreement."""

    models: Models
    tags: tuple[str, ...]
    """Names that features look at."""
    keys: Index
    weights: NDArray[np.float64]


class CoupledModels(Estimator, Generic[P, O]):
    """An estimator over pairs (P), of which separate models have opinions (O).

    A subclass has the options of `isogloss.tasks.joint.options` and says what its components are, which tuples of their
    parts there are, and what of it is known in training.
    """

    _kind: ClassVar[str]
    _parser: ClassVar[type[Any]]
    """The class of the parsers of both sides."""
    trace_: NDArray[np.float64]

    # --- what a subclass writes

    @abstractmethod
    def _usable(self, pairs: Any) -> P:
        """What was given as pairs to learn from, without what is too long; an error says what is wrong with it."""

    @abstractmethod
    def _fresh_parser(self) -> Any:
        """A parser that has learnt nothing yet, with the options that this estimator has of it."""

    @abstractmethod
    def _opinions_of(self, pairs: P, models: Models) -> O:
        """What models that have learnt think of pairs."""

    @abstractmethod
    def _joined(self, parts: list[O]) -> O:
        """Opinions of one text after the other."""

    @abstractmethod
    def _names(self, opinions: O) -> set[str]:
        """Tags and labels that features look at."""

    @abstractmethod
    def _components(self, opinions: O, models: Models) -> list[Batch[Any]]:
        """Alignments, structures of the source and structures of the target."""

    @abstractmethod
    def _agreement(self, components: list[Batch[Any]], opinions: O, models: Models, numbers: dict[str, int]) -> Any:
        """The tuples of their parts: an object with `coupling`, `parts` and `features(templates, numbering)`."""

    @abstractmethod
    def _templates(self) -> Templates:
        """What tuples are seen by."""

    @abstractmethod
    def _known(
        self, components: list[Batch[Any]], pairs: P, opinions: O, models: Models
    ) -> list[Batch[Any]]:  # fmt: skip
        """The components with what is known of them; the same object where nothing is."""

    def _fitting(self, opinions: O, models: Models) -> O:
        """Opinions of models of folds, as if they were those of the models that are kept."""
        return opinions

    # --- learning

    def fit(
        self,
        pairs: P,
        progress: Progress | None = None,
        *,
        source_parser: Any = None,
        target_parser: Any = None,
        aligner: Any = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from trees of both sides and, where there are any, links.

        Parameters
        ----------
        pairs : TreePairs or ConstituentPairs
            Without links, these are summed over: trees alone say what agrees.
        progress : Progress, optional
        source_parser, target_parser : parser, optional
            Parsers that learnt from other text. Without them, parsers learn from these trees; no sentence is judged
            by one that has seen its tree.
        aligner : HMMAligner, Model1Aligner or Model2Aligner, optional
            One that has learnt; otherwise an `HMMAligner` learns from these sentences in the same way.
        checkpoint : path, optional
            A folder that keeps the models that are ready, until `fit` ends.
        resume : bool
            Go on from there.
        """
        self.check_params()
        usable = self._usable(pairs)
        if usable.links is None and self.unlinked != "open":  # type: ignore[attr-defined]
            raise ParameterError(
                f"{type(self).__name__}: unlinked is about links that are known. Leave it out, or give pairs with links"
            )
        for name, parser in (("source_parser", source_parser), ("target_parser", target_parser)):
            if parser is not None and not isinstance(parser, self._parser):
                raise ParameterError(
                    f"{type(self).__name__}: {name} should be a {self._parser.__name__}, not {parser!r}"
                )
        if aligner is not None and not isinstance(aligner, ALIGNERS):
            raise ParameterError(f"{type(self).__name__}: the aligner should be an HMMAligner, not {aligner!r}")
        fingerprint: dict[str, Any] = {}
        if checkpoint is not None:
            given = [hash_of_model(one) for one in (source_parser, target_parser, aligner)]
            fingerprint = {"options": self.options_, "texts": store.data_hash(usable.to_bytes(), *given)}
        stages = Stages(checkpoint, resume, fingerprint)
        progress = progress or QuietProgress()
        try:
            with using_threads(self.threads):  # type: ignore[attr-defined]
                self._learn(usable, Models(source_parser, target_parser, aligner), stages, progress)
        finally:
            progress.finish()
        stages.discard()
        return self

    def _learn(self, pairs: P, given: Models, stages: Stages, progress: Progress) -> None:
        models = self._models(pairs, given, "whole", stages, progress)
        self._agree(pairs, models, self._cross_fitted(pairs, given, stages, progress), stages, progress)

    def _agree(self, pairs: P, models: Models, opinions: O, stages: Stages, progress: Progress) -> None:
        """Learn the weights of agreement, from what other models think of the pairs."""
        opinions = self._fitting(opinions, models)
        tags = tuple(sorted(self._names(opinions)))
        components = self._components(opinions, models)
        agreement = self._agreement(components, opinions, models, numbered(tags))
        templates = self._templates()
        options: Any = self
        index = templates.index(agreement.parts, min_count=options.min_count)
        known = self._known(components, pairs, opinions, models)
        told = (components, known, agreement.coupling, agreement.features(templates, index))
        objective: Any = FieldLikelihood(*told)
        if options.objective == "bound":
            objective = CoupledLikelihood(*told, sweeps=options.sweeps, tolerance=options.tolerance)
        learner = Lbfgs(objective, l2=float(options.l2))
        result = run(
            learner, learner.init(), iterations=options.iterations, tolerance=TOLERANCE, progress=progress,
            name="Learning agreement", every=None, **stages.keeping("weights"),
        )  # fmt: skip
        self._fitted = Fitted(models, tags, index, np.array(result.state.weights))
        self.trace_ = np.asarray(result.trace)

    def _models(self, pairs: P, given: Models, name: str, stages: Stages, progress: Progress) -> Models:
        """The separate models: those that were given, or such as learn from these pairs."""

        def learnt(side: str, trees: Any) -> Any:
            stage = f"{side}-{name}"
            return stages.model(
                stage, lambda: self._fresh_parser().fit(trees, None, progress, **stages.keeping(stage))
            )  # fmt: skip

        aligner = given.aligner
        if aligner is None:
            fresh = HMMAligner(threads=self.threads)  # type: ignore[attr-defined]
            aligner = stages.model(f"aligner-{name}", lambda: fresh.fit(pairs.bitext(), progress=progress))
        return Models(
            given.source or learnt("source", pairs.source), given.target or learnt("target", pairs.target), aligner
        )

    def _cross_fitted(self, pairs: P, given: Models, stages: Stages, progress: Progress) -> O:
        """What models think of the pairs that have not learnt from them."""
        if None not in given:
            return self._opinions_of(pairs, given)
        parts, every = [], np.arange(len(pairs))
        for number, rows in enumerate(fold_rows(len(pairs), self.folds)):  # type: ignore[attr-defined]
            others = pairs.take(np.setdiff1d(every, rows))
            models = self._models(others, given, f"without-{number}", stages, progress)
            parts.append(self._opinions_of(pairs.take(rows), models))
        return self._joined(parts)

    # --- predicting

    def _opinions(self, pairs: P) -> Iterator[O]:
        """What the separate models think of pairs, some at a time."""
        for start in range(0, len(pairs), PIECE):
            some = pairs.take(np.arange(start, min(start + PIECE, len(pairs))))
            yield self._opinions_of(some, self._learnt.models)

    def _found(self, judged: Iterable[O]) -> Iterator[MeanField]:
        """Mean field over pairs, some at a time."""
        learnt, templates, options = self._learnt, self._templates(), self
        for opinions in judged:
            components = self._components(opinions, learnt.models)
            agreement = self._agreement(components, opinions, learnt.models, numbered(learnt.tags))
            worth = agreement.features(templates, learnt.keys).scores(learnt.weights)
            yield mean_field(
                components, agreement.coupling, worth,
                sweeps=options.sweeps, tolerance=options.tolerance,  # type: ignore[attr-defined]
            )  # fmt: skip

    @property
    def _learnt(self) -> Fitted:
        fitted: Fitted | None = vars(self).get("_fitted")
        if fitted is None:
            raise self._has_not_learnt
        return fitted

    @property
    def models_(self) -> Models:
        """The separate models: the parsers of both sides and the aligner."""
        return self._learnt.models

    @property
    def n_features_(self) -> int:
        """How many weights there are."""
        return len(self._learnt.weights)

    # --- keeping

    def _to_saved(self) -> store.Saved:
        learnt = self._learnt
        arrays: dict[str, NDArray[Any]] = {"keys": learnt.keys.keys, "weights": learnt.weights}
        meta: dict[str, Any] = {"tags": list(learnt.tags), "trace": self.trace_.tolist(), "models": {}}
        for name, model in learnt.models._asdict().items():
            own, about = store.hold(name, model)
            arrays |= own
            meta["models"][name] = about
        return store.Saved(self._kind, self.options_, arrays, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        with store.reading("the saved joint model"):
            made, meta = cls.of_options(saved.options), saved.meta
            arrays = check(saved.arrays, _LAYOUT, "the weights of the saved joint model")
            held = {
                name: store.held(name, saved.arrays, meta["models"][name], *classes)
                for name, classes in zip(Models._fields, ((cls._parser,), (cls._parser,), ALIGNERS), strict=True)
            }
            made._fitted = Fitted(
                Models(**held), tuple(texts(meta["tags"], "tags")), Index(arrays["keys"]), arrays["weights"]
            )
            made.trace_ = np.array(meta["trace"], np.float64)
        return made


def numbered(names: tuple[str, ...]) -> dict[str, int]:
    """Numbers of names, from 1.

    >>> numbered(("NOUN", "VERB"))
    {'NOUN': 1, 'VERB': 2}
    """
    return {name: number for number, name in enumerate(names, start=1)}
