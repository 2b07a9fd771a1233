"""How a grammar is learnt from tags: where it begins, EM, and what is demanded of posteriors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.learners.em import EM, ProjectCorpus
from isogloss.learners.multinomials import dirichlet_divergence, mixture_split, normalise
from isogloss.learners.posterior import Features, Groups, Together, edge_types, regularise
from isogloss.learners.posterior.project import Outcome
from isogloss.learners.runner import run
from isogloss.progress import Progress
from isogloss.structures import Stack, ValenceTrees
from isogloss.tasks.parse.induction.grammar import Events, TagText, ValenceGrammar

__all__ = ["GrammarModel", "allowed_links", "at_least", "learn", "sparsity", "starting_events"]

Array = NDArray[np.float64]
Tables = dict[str, Array]
FLOOR = 1e-6
"""Added to the counts that a grammar begins with, so that nothing is impossible that no count speaks for."""
URGENCY = 10.0
"""What rules may cost a link, in nats, at most."""
CONSTANT = 0.0
"""Added to distances by the harmonic start."""


@dataclass(frozen=True, eq=False)
class GrammarModel:
    """Grammars of one text, for `EM`: the text is one batch.

    Parameters are tables by name, and `prior`, a number: what the objective has besides the likelihood, under a
    Dirichlet prior.

    Parameters
    ----------
    text : TagText
    classes : (int, int)
        V_s and V_c.
    back_off : float
        λ, the weight of a head's own children; 1 for none but those.
    alpha : float
        Of the Dirichlet prior of every multinomial, by mean-field variational EM; 0 for plain EM.
    nearest_first : bool
    allowed : float64[n_links], optional
        −∞ for links that no tree may have, 0 for the others; see `allowed_links`.
    """

    text: TagText
    classes: tuple[int, int]
    back_off: float = 1.0
    alpha: float = 0.0
    nearest_first: bool = True
    allowed: Array | None = None

    def grammar(self, params: Tables) -> ValenceGrammar:
        """The grammar with these tables."""
        tables = {name: params[name] for name in ValenceGrammar.LAYOUT}
        return ValenceGrammar(**tables, back_off=self.back_off, nearest_first=self.nearest_first)

    def first(self, events: Events) -> Tables:
        """Parameters to begin with, from counts: children are alike in all classes of valence, and in the back-off."""
        level = events.levelled()
        floored = Events(level.root + FLOOR, level.stop + FLOOR, level.child + FLOOR)
        return self._tables(floored, floored.child, floored.child.sum(axis=0))

    # --- what EM asks

    def zero_counts(self) -> Events:
        return Events.none(self.text.n_tags, self.classes)

    def distributions(self, params: Tables, batch: Sequence[TagText]) -> ValenceTrees:
        trees = self.grammar(params).trees(self.text)
        if self.allowed is None:
            return trees
        return trees.with_scores(trees.scores.like(trees.scores.values + self.allowed))

    def expected_counts(self, batch: Sequence[TagText], q: ValenceTrees) -> Events:
        return Events.of(self.text, q, self.classes)

    def maximise(self, counts: Events) -> Tables:
        return self._tables(counts, counts.child, counts.child.sum(axis=0))

    def improve(self, params: Tables, counts: Events) -> Tables:
        """The M-step; children are split between both tables by what each had to do with them."""
        if self.back_off == 1.0:
            return self.maximise(counts)
        own, shared = mixture_split(counts.child, (self.back_off, params["child"]), (1 - self.back_off, params["back"]))
        return self._tables(counts, own, shared.sum(axis=0))

    def log_prior(self, params: Tables) -> float:
        return float(params["prior"][0])

    def _tables(self, events: Events, own: Array, shared: Array) -> Tables:
        counts = {"root": events.root, "stop": events.stop, "child": own, "back": shared}
        variational = self.alpha > 0
        tables = {name: normalise(table, alpha=self.alpha, variational=variational) for name, table in counts.items()}
        used = [name for name in counts if name != "back" or self.back_off < 1]
        prior = -sum(dirichlet_divergence(counts[name], self.alpha) for name in used) if variational else 0.0
        return {**tables, "prior": np.array([prior])}


# --- where it begins


def starting_events(text: TagText, classes: tuple[int, int], start: str, nearest_first: bool = True) -> Events:
    """Counts to begin with.

    ``harmonic``: every word is the root as often as any other, or hangs on the others in inverse proportion to their
    distance. ``distance``: projective trees in which each link of d words has weight 1/d. ``uniform``: all alike.

    References
    ----------
    Klein and Manning, ACL 2004, section 3, in words; the distribution of the number of children is ours.
    """
    from isogloss.tasks.parse._numba.induction import harmonic_counts

    found = Events.none(text.n_tags, classes)
    if start == "harmonic":
        harmonic_counts(text.tags, text.offsets, CONSTANT, nearest_first, found.root, found.stop, found.child)
    elif start == "distance":
        scores = np.where(text.between_words, -np.log(np.maximum(text.distances, 1)), 0.0)
        found = events_of_links(text, classes, scores, nearest_first)
    elif start != "uniform":
        raise ParameterError(f"start should be harmonic, distance or uniform, not {start!r}")
    return found


def events_of_links(text: TagText, classes: tuple[int, int], scores: Array, nearest_first: bool = True) -> Events:
    """Counts under trees that have log scores of links alone, float64[n_links]."""
    stops, children = np.zeros(len(text.nodes) * 4 * classes[0]), np.zeros(len(scores) * classes[1])
    trees = ValenceTrees(*text.stacks(scores, stops, children, classes), nearest_first=nearest_first)
    return Events.of(text, trees, classes)


def links_of(scores: Stack, kept: NDArray[np.int64], offsets: NDArray[np.int64], sentences: Sequence[int]) -> Array:
    """Of scores of all links of a treebank those between kept words.

    Parameters
    ----------
    scores : Stack
        float64[n + 1, n + 1] for each sentence of the treebank.
    kept : int64[n_kept]
        The words that are kept, from 0 within their sentence.
    offsets : int64[len(sentences) + 1]
        Where the kept words of each of the `sentences` begin.
    """
    found = [np.zeros(0)]
    for at, sentence in enumerate(sentences):
        nodes = np.concatenate([[0], kept[offsets[at] : offsets[at + 1]] + 1])
        found.append(scores[sentence][np.ix_(nodes, nodes)].ravel())
    return np.concatenate(found)


def allowed_links(text: TagText, heads: NDArray[np.integer]) -> Array:
    """float64[n_links]: −∞ for links to words whose head is known to be another, 0 for the others.

    Under such scores all trees have the heads that are known, and inside and outside sums are those of these trees
    alone: EM with partial supervision (Pereira and Schabes, Inside-outside reestimation from partially bracketed
    corpora, ACL 1992, for brackets).

    Parameters
    ----------
    heads : int[n_words]
        0 for the root, 1 to n within the sentence, −1 where not known.

    Examples
    --------
    >>> text = TagText([0, 0], [0, 2], 1)
    >>> allowed_links(text, np.array([2, -1])).reshape(3, 3)[:, 1]               # of word 1
    array([-inf, -inf,   0.])
    """
    _, known = text.at_ends(text.of_nodes(np.asarray(heads, np.int64) + 1))  # 0 for the root and where not known
    return np.where((known > 0) & (text.ends[0] != known - 1), -np.inf, 0.0)


# --- what is demanded of posteriors


def sparsity(
    text: TagText,
    trees: ValenceTrees,
    sigma: float,
    root_sigma: float,
    *,
    symmetric: bool,
    gap: float,
    steps: int,
) -> ProjectCorpus:
    """The penalty on pairs of tags (head, child) that the text needs: Gillenwater et al. 2010, section 3.

    Every group (head tag, child tag) costs `sigma` times its largest expectation, `root_sigma` if the head is the root.
    """
    features, groups = edge_types(Together(trees), text.sentences(), text.n_tags, symmetric=symmetric)
    strengths = np.full(int(groups.max(initial=-1)) + 1, sigma)
    rooted = features.expectations(text.from_root.astype(np.float64)) > 0
    strengths[groups[rooted]] = root_sigma
    return _projection(features, Groups(groups, strengths), gap, steps)


def at_least(
    text: TagText, allowed: NDArray[np.bool_], roots: NDArray[np.bool_], share: float, *, gap: float, steps: int
) -> ProjectCorpus:
    """The demand that in expectation `share` of all words hang on a head that rules allow.

    Where no trees are like that, or hardly any, they come as near as `URGENCY` nats a link make them.

    Parameters
    ----------
    allowed : bool[k, k]
        (head, child).
    roots : bool[k]
        The tags that the root may have.

    References
    ----------
    Naseem, Chen, Barzilay and Johnson, Using universal linguistic knowledge to guide grammar induction, EMNLP 2010: one
    constraint for all sentences together. Theirs is a Bayesian model; ours is posterior regularisation with EM.
    """
    head, child = text.link_tags
    ruled = np.where(text.from_root, roots[child], allowed[head, child] & text.between_words)
    features = Features.indexed(np.where(ruled, 0, -1), 1, np.full(len(ruled), -1.0))
    return _projection(features, Groups([0], URGENCY, [-share * len(text.tags)]), gap, steps)


def _projection(features: Features, penalty: Any, gap: float, steps: int) -> ProjectCorpus:
    def project(trees: Together, start: Array | None) -> Outcome[Together]:
        return regularise(trees, features, penalty, tolerance=gap, steps=steps, start=start)

    return project


# --- learning


def learn(
    model: GrammarModel,
    events: Events,
    project: Callable[[ValenceTrees], ProjectCorpus | None],
    *,
    iterations: int,
    viterbi: int = 0,
    tolerance: float = 0.0,
    progress: Progress | None = None,
    **keeping: Any,
) -> tuple[ValenceGrammar, Array, dict[str, Array]]:
    """EM from the counts `events`; gives the grammar, the objective of each step, and what else was watched.

    The objective never falls under plain EM and a Dirichlet prior, nor under a penalty that is solved exactly.
    """
    params = model.first(events)
    demanded = project(model.distributions(params, [model.text]))
    learner: EM[Any, Any, Any] = EM(model, [[model.text]], project_corpus=demanded)
    name = "Inducing a grammar"
    result = run(
        learner, learner.init(params), iterations=iterations, tolerance=tolerance, progress=progress, name=name,
        **keeping,
    )  # fmt: skip
    params = result.state.params
    if viterbi:
        hard: EM[Any, Any, Any] = EM(model, [[model.text]], hard=True)
        params = run(
            hard, hard.init(params), iterations=viterbi, tolerance=tolerance, progress=progress, name="Viterbi"
        ).state.params
    return model.grammar(params), result.trace, result.watched
