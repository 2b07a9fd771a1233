r"""Self-training of document classifiers as posterior regularisation with proportions of labels.

Rounds of two steps. Documents without labels get posteriors, :math:`q \propto p^\beta` under the constraint that labels
have their proportions among them (`isogloss.learners.semi_supervised.with_proportions`); then the classifier learns
from the labelled documents and from q. What a document is labelled by was never learnt from that document: documents
are cut into folds, and each fold is labelled by the rule of the others. Otherwise rare words confirm the first guess
for ever, because they occur in no other document.

Proportions are estimated before the first round, by EM on the posteriors of a classifier that sees stable words alone
(`isogloss.learners.semi_supervised.stable_features`); self-training itself confirms whatever proportions it is given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.features.sparse import Sparse
from isogloss.learners.linear import LinearWeights, softmax
from isogloss.learners.semi_supervised import em_proportions, stable_features, with_proportions
from isogloss.progress import Progress
from isogloss.tasks.adapt.model import Rule, calibrate, calibrated, chosen_rows

__all__ = ["Problem", "estimated_prior", "fold_numbers", "out_of_fold", "self_train"]

Array = NDArray[np.float64]
STEPS = 3
"""Times that stable words are chosen anew, by the proportions found so far."""
OFTEN = 0.0125
"""Stable words are in at least this share of the documents of either domain."""
STRENGTH = 50.0
"""As how many documents it counts that proportions of labels are those of the source."""
NEVER = 50.0
"""What is taken from the log posterior of a label that no document has."""
ROUGH = 1e-3
"""Penalty of the classifier that proportions are estimated by: it has few features, and need not be sharp."""


WHOLE = 3
"""Rounds that take posteriors as they are found; later ones average, as what folds say of each other may swing."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Labelled documents, then unlabelled ones, as rows of features.

    rows : Sparse
    targets : float64[n_labelled, n_labels]
        Labels of the first rows.
    folds : int64[n]
        The fold of each document; copies of a text are in one fold.
    settings : dict
        Of `Rule.learnt`.
    counts : float64[n_labelled]
        What each labelled document counts; those without a label count 1.
    short : bool[n_features]
        Features that proportions are estimated by, if they are stable: words and pairs of words.
    """

    rows: Sparse
    targets: Array
    folds: NDArray[np.int64]
    settings: dict[str, Any]
    counts: Array
    short: NDArray[np.bool_]

    @property
    def n_known(self) -> int:
        return len(self.targets)

    def part(self, numbers: NDArray[np.int64]) -> Sparse:
        return chosen_rows(self.rows, numbers)

    @property
    def known(self) -> Sparse:
        return self.rows.rows(0, self.n_known)

    @property
    def new(self) -> Sparse:
        return self.rows.rows(self.n_known, self.rows.n_rows)

    @property
    def shares(self) -> Array:
        """float64[n_labels]: of labels among labelled documents."""
        return np.asarray(self.targets.mean(axis=0))

    def counted(self, targets: Array) -> Array:
        """float64[n]: what each row of some targets counts; the labelled ones are first."""
        return np.append(self.counts, np.ones(len(targets) - self.n_known))


def fold_numbers(copies: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """int64[n]: a fold for each document, the same for copies."""
    order = np.random.default_rng(seed).permutation(int(copies.max(initial=-1)) + 1)
    return np.asarray(order[copies] % folds, np.int64)


def out_of_fold(problem: Problem, targets: Array, **options: Any) -> Array:
    """float64[n, n_labels]: scores of every row of `targets` by a rule that did not learn from its fold.

    `targets` may have the labelled rows alone, or all; options are those of `Rule.learnt`.
    """
    n = len(targets)
    folds, scores, counts = problem.folds[:n], np.zeros((n, targets.shape[1])), problem.counted(targets)
    for fold in np.unique(folds):
        there, away = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if not len(there) or not (targets[there].sum(axis=0) > 0).all():
            there = np.arange(n)
        rule = Rule.learnt(problem.part(there), targets[there], counts[there], **options, **problem.settings)
        scores[away] = rule.scores(problem.part(away))
    return scores


def estimated_prior(problem: Problem, window: float) -> Array:
    """float64[n_labels]: how frequent labels are among the unlabelled documents.

    What is known says less of documents of another domain than of its own, and the posteriors of these are nearer to
    those of a document without words. So such a document leaves all labels as probable as in the source (`centred`);
    with a bias of its own, the label that it speaks for would be found too often.
    """
    problem = replace(problem, settings=problem.settings | {"l2": ROUGH})
    known, new, prior = problem.known, problem.new, problem.shares
    least = max(1, round(OFTEN * min(known.n_rows, new.n_rows)))
    for _ in range(STEPS):
        stable = stable_features(known, problem.targets, new, prior, window=window, least=least) & problem.short
        if not stable.any():
            return problem.shares
        seen: dict[str, Any] = {"columns": stable, "centred": True}
        rule = Rule.learnt(known, problem.targets, problem.counts, **seen, **problem.settings)
        sure = calibrate(out_of_fold(problem, problem.targets, **seen), problem.targets, centred=True)
        posteriors = softmax(calibrated(sure, rule.scores(new)))
        prior = em_proportions(posteriors, problem.shares, strength=STRENGTH)
    return prior


def self_train(
    problem: Problem, prior: Array, *, rounds: int, sharpness: float, progress: Progress
) -> tuple[Rule, LinearWeights, Array]:
    """The rule after some rounds, how sure it is, and how much posteriors changed in each round."""
    known, n = problem.targets, problem.n_known
    settings = problem.settings
    sure = calibrate(out_of_fold(problem, known), known)
    rule = Rule.learnt(problem.known, known, problem.counts, **settings)
    scores = calibrated(sure, rule.scores(problem.new))
    q, trace = with_proportions(scores, prior, sharpness=sharpness).posterior, []
    for done in range(rounds):
        progress.update(done)
        raw = out_of_fold(problem, np.concatenate([known, q]))
        sure = calibrate(raw[:n], known)
        fresh = with_proportions(calibrated(sure, raw[n:]), prior, sharpness=sharpness)
        trace.append(float(np.abs(fresh.posterior - q).sum(axis=1).mean() / 2))
        part = 1.0 if done < WHOLE else 1 / (done - WHOLE + 2)
        q = (1 - part) * q + part * fresh.posterior
    targets = np.concatenate([known, q])
    rule = Rule.learnt(problem.rows, targets, problem.counted(targets), **settings)
    moved = np.where(prior > 0, with_proportions(calibrated(sure, raw[n:]), prior).offsets, -NEVER)
    more = moved[1:] - moved[:1] if len(moved) == 2 else moved
    return rule, LinearWeights(sure.weights, sure.bias + more), np.array(trace)
