"""`RoleLabeller`: arguments of predicates with their roles, and senses, with syntax that nobody had to annotate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.propositions import Predicate, Propositions
from isogloss.data.reading import Reading, check_reading
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError, TreebankError, UsageError
from isogloss.features import Templates
from isogloss.layout import Strings, check, vector
from isogloss.learners.runner import Keeping
from isogloss.metrics.roles import RoleScore, score_roles
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.batch import Stack
from isogloss.tasks.extract.coupled import CoupledFeatures, Problem
from isogloss.tasks.extract.fitted_pairs import TREE_OF, FittedPairs, Learnt, chosen_labels, learn_pairs
from isogloss.tasks.extract.pair_options import RoleOptions
from isogloss.tasks.extract.pair_words import lowered
from isogloss.tasks.extract.role_pairs import (
    ArgumentPairs,
    argument_problem,
    role_templates,
    sense_problem,
    sense_templates,
)
from isogloss.tasks.parse.constituency.words import Known
from isogloss.tasks.parse.cutting import LONGEST

__all__ = ["RoleLabeller"]

UNKNOWN_SENSE = ".01"
"""What is behind the lemma in the sense of a predicate that was never met."""
_INVENTORY = {"inventory": Strings("inventory", distinct=True)}


@dataclass(frozen=True, eq=False)
class Senses:
    """Senses of predicates: which ones each lemma was met with, and what chooses among them.

    Parameters
    ----------
    inventory : mapping of str to tuple of str
        By lemma, senses in alphabetical order.
    fitted : FittedPairs
        Whose labels are senses without their lemma.
    """

    inventory: Mapping[str, tuple[str, ...]]
    fitted: FittedPairs

    def chosen(self, posteriors: NDArray[np.float64], lemmas: list[str]) -> list[str]:
        """The most probable of the senses that each lemma was met with."""
        number = {label: k for k, label in enumerate(self.fitted.labels)}
        found = []
        for row, lemma in zip(posteriors, lemmas, strict=True):
            met = self.inventory.get(lemma, (lemma + UNKNOWN_SENSE,))
            found.append(max(met, key=lambda sense, row=row, lemma=lemma: row[number[_ending(sense, lemma)]]))  # type: ignore[misc]
        return found


def _ending(sense: str, lemma: str) -> str:
    """A sense without its lemma, where it begins with it: ``.01`` of ``come.01``."""
    return sense[len(lemma) :] if sense.startswith(lemma) and len(sense) > len(lemma) else sense


class RoleLabeller(RoleOptions):
    r"""Finds the arguments of predicates that are given, with their roles and the senses of the predicates.

    Every word of a sentence may be an argument of every predicate, with one role or none. With hidden syntax there is a
    dependency tree over the sentence as well, whose link from the predicate to the word, or back, speaks for or against
    it; trees are summed out, exactly and in closed form [1]_ (`isogloss.structures.HiddenTrees`). Senses are predicted
    independently of everything else, among those that a lemma was met with.

    Parameters
    ----------
    syntax : "none", "given", "joint" or "hidden-dependency"
        What is known of trees: nothing; those of the file, in learning and in applying; those of the file in learning,
        while they are summed over in applying (joint syntax and semantics [2]_); or nothing, but there are hidden ones.
    features : "all" or "pairs"
        Whether pairs are seen by the words around and between, or by the two words and their distance alone, as in
        [1]_: then what lies between has a say through trees only.
    senses : bool
        Whether senses are learnt and predicted; otherwise those of the file are left as they are.
    at_most_one, threshold, iterations, rate, l2, batch, min_count, min_word, bits, start, crossing, seed, threads
        As of `RelationExtractor`.

    Attributes
    ----------
    roles_ : tuple of str
    trace_ : float64[n_passes]
        Loss of a pair in each pass, as it was met.
    tuning_ : float64[n_passes]
        F1 on dev after each pass; empty without dev.

    References
    ----------
    .. [1] Naradowsky, Riedel and Smith, Improving NLP through marginalization of hidden syntactic structure, EMNLP
       2012. We differ: an argument may also be the head of its predicate.
    .. [2] Smith, Efficient inference for trees and alignments, PhD thesis, Johns Hopkins 2010, section 5.2.2.

    Examples
    --------
    >>> from isogloss.data import Treebank
    >>> words = [("she", "PRON", 2, "nsubj", "she"), ("eats", "VERB", 0, "root", "eat"), ("it", "PRON", 2, "obj", "it")]
    >>> given = Propositions.of(Treebank.of([words] * 4), [[(1, "eat.01", ((0, "A0"), (2, "A1")))]] * 4)
    >>> labeller = RoleLabeller(iterations=5).fit(given)
    >>> print(labeller.predict(given[:1])[0])
    she eats it | eats.eat.01(A0: she, A1: it)
    """

    _kind: ClassVar[str] = "extract.roles"

    @property
    def _tree(self) -> str:
        return "spanning" if self.crossing else TREE_OF[self.syntax]

    @property
    def _templates(self) -> dict[str, Templates]:
        return role_templates(self._tree, self.features, self.syntax == "given")

    # --- learning

    def fit(
        self,
        propositions: Propositions,
        dev: Propositions | None = None,
        progress: Progress | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn the roles of a text.

        Parameters
        ----------
        propositions : Propositions
        dev : Propositions, optional
            Other sentences; the number of passes is that of the best F1 on them.
        progress : Progress, optional
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt so far; see `isogloss.learners.runner.run`.
        resume : bool
            Go on from there, to the bit as if nothing had happened.
        """
        self.check_params()
        progress = progress or QuietProgress()
        given = _checked(propositions, "fit", heads=self.syntax in ("given", "joint"))
        held_out = None if dev is None else _checked(dev, "fit", heads=self.syntax == "given")
        keeping = Keeping.of(checkpoint, resume, self.options_, [given, held_out])
        if not given.n_arguments:
            raise TreebankError(
                f"{given.name}: no predicate has an argument, so there is nothing to learn. Is it the right file?"
            )
        try:
            with using_threads(self.threads):
                self._learn(given, held_out, progress, keeping)
        finally:
            progress.finish()
        self.reading_ = Reading.of(given.treebank, frequent=True)
        return self

    def _learn(self, given: Propositions, dev: Propositions | None, progress: Progress, keeping: Keeping) -> None:
        progress.start("Collecting features", 1)
        roles = sorted({given.roles.vocabulary[number] for number in np.unique(given.roles.ids).tolist()})
        known = Known.of(lowered(given.treebank.columns["form"]), self.min_word)
        pairs = ArgumentPairs.of(given)
        problem = self._problem(given, pairs, known)
        right = pairs.labels(given, roles)
        features = CoupledFeatures.collected(
            self._templates, problem, right, len(roles), min_count=self.min_count, bits=self.bits
        )
        unfinished = FittedPairs(tuple(roles), known, features, features.start(float(self.start)))
        self._senses = self._learnt_senses(given, known, progress) if self.senses else None
        learnt = learn_pairs(
            self, unfinished, problem, right, score=self._held_out(unfinished, dev),
            trees=_heads(given) if self.syntax == "joint" else None, progress=progress, keeping=keeping,
            name="Learning roles",
        )  # fmt: skip
        self._fitted, self.trace_, self.tuning_ = learnt.fitted, learnt.trace, learnt.tuning

    def _learnt_senses(self, given: Propositions, known: Known, progress: Progress) -> Senses:
        """Learn which sense of its lemma a predicate has."""
        met: dict[str, set[str]] = {}
        lemmas = _lemmas(given)
        written = [given.senses.vocabulary[int(number)] for number in given.senses.ids]
        for lemma, sense in zip(lemmas, written, strict=True):
            met.setdefault(lemma, set()).add(sense)
        inventory = {lemma: tuple(sorted(own)) for lemma, own in sorted(met.items())}
        endings = [_ending(sense, lemma) for lemma, sense in zip(lemmas, written, strict=True)]
        labels = tuple(sorted({*endings, UNKNOWN_SENSE}))
        number = {label: k for k, label in enumerate(labels)}
        right = np.array([number[ending] for ending in endings], np.int64)
        problem = sense_problem(given, known)
        features = CoupledFeatures.collected(
            sense_templates(), problem, right, len(labels), min_count=1, bits=self.bits
        )
        unfinished = FittedPairs(labels, known, features, features.start(0.0))
        learnt: Learnt = learn_pairs(
            self, unfinished, problem, right, score=None, progress=progress, keeping=Keeping.of(None, False, {}, []),
            name="Learning senses",
        )  # fmt: skip
        return Senses(inventory, learnt.fitted)

    def _held_out(self, unfinished: FittedPairs, dev: Propositions | None) -> Any:
        if dev is None:
            return None
        pairs = ArgumentPairs.of(dev)
        problem = self._problem(dev, pairs, unfinished.words)

        def f1(weights: NDArray[np.float32]) -> float:
            learnt = replace(unfinished, weights=np.asarray(weights, np.float32))
            return float(score_roles(self._found(dev, pairs, problem, learnt), dev, bootstrap=0).f1)

        return f1

    def _problem(self, given: Propositions, pairs: ArgumentPairs, known: Known) -> Problem:
        return argument_problem(given, pairs, known, self._tree, trees=self.syntax == "given")

    # --- predicting

    def predict(self, propositions: Propositions) -> Propositions:
        """The same sentences and predicates, with their arguments and senses; what was there is not looked at."""
        learnt = self._learnt
        given = _checked(propositions, "predict", heads=self.syntax == "given")
        check_reading(self.reading_, given.treebank)
        pairs = ArgumentPairs.of(given)
        with using_threads(self.threads):
            found = self._found(given, pairs, self._problem(given, pairs, learnt.words), learnt)
            return self._with_senses(found)

    def _found(self, given: Propositions, pairs: ArgumentPairs, problem: Problem, learnt: FittedPairs) -> Propositions:
        """With arguments; senses are as they were."""
        wide, done = len(learnt.labels), 0
        chosen = []
        for batch in learnt.batches(problem, self.at_most_one):
            for posterior in batch.marginals():
                many = int(pairs.offsets[done + 1] - pairs.offsets[done])
                chosen.append(chosen_labels(posterior, many, wide, float(self.threshold)))
                done += 1
        labels = np.concatenate([np.zeros(0, np.int64), *chosen])
        arguments: list[list[tuple[int, str]]] = [[] for _ in range(given.n_predicates)]
        for p in np.flatnonzero(labels >= 0).tolist():
            arguments[int(pairs.predicate[p])].append((int(pairs.argument[p]), learnt.labels[int(labels[p])]))
        each = iter(arguments)
        predicates: list[list[Predicate]] = []
        for s in range(len(given)):
            predicates.append([(word, sense, tuple(next(each))) for word, sense, _ in given.predicates(s)])
        return given.with_predicates(predicates)

    def _with_senses(self, given: Propositions) -> Propositions:
        if self._senses is None:
            return given
        fitted = self._senses.fitted
        rows = np.concatenate([np.zeros((0, len(fitted.labels))), *self._sense_rows(given, fitted)])
        found = iter(self._senses.chosen(rows, _lemmas(given)))
        predicates = [
            [(word, next(found), arguments) for word, _, arguments in given.predicates(s)] for s in range(len(given))
        ]
        return given.with_predicates(predicates)

    def _sense_rows(self, given: Propositions, fitted: FittedPairs) -> list[NDArray[np.float64]]:
        wide, found = len(fitted.labels), []
        for batch in fitted.batches(sense_problem(given, fitted.words), False):
            found += [row[len(row) // (1 + wide) :].reshape(-1, wide) for row in batch.marginals()]
        return found

    def predict_proba(self, propositions: Propositions) -> list[NDArray[np.float64]]:
        """The posterior of each role of each pair: float64[n_pairs, n_roles] for each sentence.

        Pairs are all other words of the first predicate, then those of the second, and so on; roles are `roles_`.
        """
        learnt = self._learnt
        given = _checked(propositions, "predict_proba", heads=self.syntax == "given")
        pairs, wide = ArgumentPairs.of(given), len(learnt.labels)
        with using_threads(self.threads):
            problem = self._problem(given, pairs, learnt.words)
            each = [own for batch in learnt.batches(problem, self.at_most_one) for own in batch.marginals()]
        many = np.diff(pairs.offsets).tolist()
        return [own[n : n * (1 + wide)].reshape(n, wide).copy() for own, n in zip(each, many, strict=True)]

    def latent_trees(self, propositions: Propositions) -> tuple[list[NDArray[np.int64]], Stack]:
        """The most probable hidden tree of each sentence as heads, and posteriors of links [n+1, n+1] (head, child)."""
        learnt, given = self._learnt, _checked(propositions, "latent_trees", heads=False)
        if self._tree == "none":
            raise UsageError(f"latent_trees: there are none with syntax {self.syntax!r}")
        pairs = ArgumentPairs.of(given)
        heads: list[NDArray[np.int64]] = []
        chances: list[NDArray[np.float64]] = []
        with using_threads(self.threads):
            for batch in learnt.batches(self._problem(given, pairs, learnt.words), self.at_most_one):
                trees = batch.trees()
                heads += [np.asarray(tree, np.int64) for tree in trees.argmax()]
                chances += list(trees.marginals())
        return heads, Stack.of(chances, "latent_trees", 2)

    def score(self, propositions: Propositions) -> RoleScore:
        """F1 of arguments with and without roles, and senses, in percent."""
        return score_roles(self.predict(propositions), propositions)

    @property
    def roles_(self) -> tuple[str, ...]:
        """Roles, in the order of `predict_proba`."""
        return self._learnt.labels

    @property
    def n_features_(self) -> int:
        """How many weights roles have."""
        return len(self._learnt.weights)

    @property
    def _learnt(self) -> FittedPairs:
        if not hasattr(self, "_fitted"):
            raise self._has_not_learnt
        return self._fitted

    # --- keeping

    def _to_saved(self) -> store.Saved:
        arrays = store.prefixed("roles.", self._learnt.to_arrays())
        if self._senses is not None:
            listed = [f"{lemma} {sense}" for lemma, own in self._senses.inventory.items() for sense in own]
            blob, offsets = store.pack_strings(listed)
            arrays |= store.prefixed("senses.", self._senses.fitted.to_arrays())
            arrays |= {"inventory": blob, "inventory_offsets": offsets}
        meta = {"trace": self.trace_.tolist(), "tuning": self.tuning_.tolist()}
        return store.Saved(self._kind, self.options_, arrays, meta | Reading.to_meta(self.reading_))

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        arrays, meta = saved.arrays, saved.meta
        with store.reading("the saved model of roles"):
            made = cls.of_options(saved.options)
            made._fitted = FittedPairs.from_arrays(store.unprefixed("roles.", arrays), made._templates, made.bits)
            made._senses = None
            if made.senses:
                own = FittedPairs.from_arrays(store.unprefixed("senses.", arrays), sense_templates(), made.bits)
                made._senses = Senses(_inventory(arrays, own.labels), own)
            made.trace_, made.tuning_ = vector(meta["trace"], "trace"), vector(meta["tuning"], "tuning")
            made.reading_ = Reading.from_meta(meta)
        return made


def _inventory(arrays: Mapping[str, NDArray[Any]], labels: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Senses by lemma, all of which have a label."""
    found: dict[str, list[str]] = {}
    for line in check(arrays, _INVENTORY, "the saved model of roles")["inventory"]:  # type: ignore[arg-type]
        lemma, _, sense = line.rpartition(" ")
        if _ending(sense, lemma) not in labels:
            raise ValueError(f"the sense {sense!r} of {lemma!r} has no weights")
        found.setdefault(lemma, []).append(sense)
    if UNKNOWN_SENSE not in labels:
        raise ValueError(f"{UNKNOWN_SENSE} is no sense")
    return {lemma: tuple(own) for lemma, own in found.items()}


def _lemmas(given: Propositions) -> list[str]:
    """The lemma of each predicate, or its form in small letters where there is none."""
    lemma, form = given.treebank.columns["lemma"], given.treebank.columns["form"]
    at = np.repeat(given.treebank.offsets[:-1], np.diff(given.offsets)) + given.words
    found = []
    for k in at.tolist():
        own = lemma.vocabulary[int(lemma.ids[k])]
        found.append((form.vocabulary[int(form.ids[k])] if own == "_" else own).lower())
    return found


def _heads(given: Propositions) -> list[NDArray[np.int64]]:
    cuts = given.treebank.offsets
    return [given.treebank.heads[a:b].astype(np.int64) for a, b in pairwise(cuts)]


def _checked(given: Any, place: str, *, heads: bool) -> Propositions:
    if not isinstance(given, Propositions):
        raise ParameterError(
            f"{place}: give Propositions, as Propositions.read('up.conllu'), not {type(given).__name__}"
        )
    lengths = np.diff(given.treebank.offsets)
    if (lengths > LONGEST).any():
        s = int(np.flatnonzero(lengths > LONGEST)[0])
        raise TreebankError(
            f"{given.name}, sentence {s + 1}: {lengths[s]} words; roles are looked for in sentences of up to {LONGEST}"
        )
    if heads and (given.treebank.heads < 0).any():
        at = int(np.flatnonzero(given.treebank.heads < 0)[0])
        s = int(np.searchsorted(given.treebank.offsets, at, side="right"))
        raise TreebankError(
            f"{given.name}, sentence {s}: a word has no head, and trees are to be looked at. Take hidden ones, or none"
        )
    return given
