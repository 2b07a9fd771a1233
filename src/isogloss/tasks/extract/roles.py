"""`RoleLabeller`: arguments of predicates with their roles, and senses, with syntax that nobody had to annotate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.propositions import Predicate, Propositions
from isogloss.data.reading import check_reading
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError, TreebankError
from isogloss.features import Templates
from isogloss.layout import Strings, check
from isogloss.learners.passes import Course
from isogloss.learners.runner import Keeping
from isogloss.metrics.roles import RoleScore, score_roles
from isogloss.progress import Progress
from isogloss.structures.batch import Stack
from isogloss.tasks.extract.coupled import Problem
from isogloss.tasks.extract.fitted_pairs import FittedPairs, chosen_labels
from isogloss.tasks.extract.pair_labeller import PairLabeller
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


class RoleLabeller(RoleOptions, PairLabeller):
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
    _saved_as: ClassVar[str] = "the saved model of roles"

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
        given = _checked(propositions, "fit", heads=self.syntax in ("given", "joint"))
        other = None if dev is None else _checked(dev, "fit", heads=self.syntax == "given")
        with self._course(progress, checkpoint, resume, [given, other]) as course, using_threads(self.threads):
            if not given.n_arguments:
                raise TreebankError(
                    f"{given.name}: no predicate has an argument, so there is nothing to learn. Is it the right file?"
                )
            self._learn(given, other, course)
        return self._learnt_from(given.treebank)

    def _learn(self, given: Propositions, dev: Propositions | None, course: Course) -> None:
        course.progress.start("Collecting features", 1)
        roles = tuple(sorted({given.roles.vocabulary[number] for number in np.unique(given.roles.ids).tolist()}))
        known = Known.of(lowered(given.treebank.columns["form"]), self.min_word)
        pairs = ArgumentPairs.of(given)
        problem, right = self._problem(given, pairs, known), pairs.labels(given, roles)
        unfinished = self._unfinished(
            roles, known, problem, right, self._templates, min_count=self.min_count, start=float(self.start)
        )
        self._senses = self._learnt_senses(given, known, course) if self.senses else None
        fitted, passed = self._raise_likelihood(
            course, "Learning roles", unfinished, problem, right,
            trees=_heads(given) if self.syntax == "joint" else None,
            score=None if dev is None else self._held_out(dev, known),
        )  # fmt: skip
        self._take(fitted, passed.losses(len(right)), passed.scores)

    def _learnt_senses(self, given: Propositions, known: Known, course: Course) -> Senses:
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
        unfinished = self._unfinished(labels, known, problem, right, sense_templates(), min_count=1, start=0.0)
        fitted, _ = self._raise_likelihood(
            course._replace(keeping=Keeping()), "Learning senses", unfinished, problem, right
        )
        return Senses(inventory, fitted)

    def _held_out(self, dev: Propositions, known: Known) -> Callable[[FittedPairs], float]:
        pairs = ArgumentPairs.of(dev)
        problem = self._problem(dev, pairs, known)

        def f1(learnt: FittedPairs) -> float:
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
        each = learnt.posteriors(problem, self.at_most_one)
        chosen = [chosen_labels(chances, rows, float(self.threshold)) for chances, rows in each]
        labels = np.concatenate([np.zeros(0, np.int64), *chosen])
        arguments: list[list[tuple[int, str]]] = [[] for _ in range(given.n_predicates)]
        for p in np.flatnonzero(labels >= 0).tolist():
            arguments[int(pairs.predicate[p])].append((int(pairs.argument[p]), learnt.labels[int(labels[p])]))
        found = iter(arguments)
        predicates: list[list[Predicate]] = []
        for s in range(len(given)):
            predicates.append([(word, sense, tuple(next(found))) for word, sense, _ in given.predicates(s)])
        return given.with_predicates(predicates)

    def _with_senses(self, given: Propositions) -> Propositions:
        if self._senses is None:
            return given
        fitted = self._senses.fitted
        each = [rows for _, rows in fitted.posteriors(sense_problem(given, fitted.words), False)]
        rows = np.concatenate([np.zeros((0, len(fitted.labels))), *each])
        found = iter(self._senses.chosen(rows, _lemmas(given)))
        predicates = [
            [(word, next(found), arguments) for word, _, arguments in given.predicates(s)] for s in range(len(given))
        ]
        return given.with_predicates(predicates)

    def predict_proba(self, propositions: Propositions) -> list[NDArray[np.float64]]:
        """The posterior of each role of each pair: float64[n_pairs, n_roles] for each sentence.

        Pairs are all other words of the first predicate, then those of the second, and so on; roles are `roles_`.
        """
        learnt = self._learnt
        given = _checked(propositions, "predict_proba", heads=self.syntax == "given")
        with using_threads(self.threads):
            return self._chances(self._problem(given, ArgumentPairs.of(given), learnt.words), learnt)

    def latent_trees(self, propositions: Propositions) -> tuple[list[NDArray[np.int64]], Stack]:
        """The most probable hidden tree of each sentence as heads, and posteriors of links [n+1, n+1] (head, child)."""
        learnt, given = self._with_trees(), _checked(propositions, "latent_trees", heads=False)
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

    # --- keeping

    def _to_parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays = store.prefixed("roles.", self._learnt.to_arrays())
        if self._senses is not None:
            listed = [f"{lemma} {sense}" for lemma, own in self._senses.inventory.items() for sense in own]
            blob, offsets = store.pack_strings(listed)
            arrays |= store.prefixed("senses.", self._senses.fitted.to_arrays())
            arrays |= {"inventory": blob, "inventory_offsets": offsets}
        return arrays, {}

    def _of_parts(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> FittedPairs:
        self._senses = None
        if self.senses:
            own = FittedPairs.from_arrays(store.unprefixed("senses.", arrays), sense_templates(), self.bits)
            self._senses = Senses(_inventory(arrays, own.labels), own)
        return FittedPairs.from_arrays(store.unprefixed("roles.", arrays), self._templates, self.bits)


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
