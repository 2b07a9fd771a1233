"""Self-training, co-training, EM over hidden labels, and structural learning."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from isogloss.errors import ParameterError, UsageError
from isogloss.features.sparse import Sparse
from isogloss.learners.semi_supervised import (
    CoTraining,
    HiddenLabelNaiveBayes,
    SelfTraining,
    structural_learning,
    view_diagnosis,
)


def views(n: int, d: int = 6, seed: int = 0, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Counts of two views of d features each, independent given the label, and labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    rates = rng.permutation(np.where(np.arange(2 * d) % 2, 0.4, 1.0).repeat(1)).reshape(2, d)
    both = np.concatenate([np.where(y[:, None] == 1, rate, rate[::-1]) for rate in rates], axis=1)
    return rng.poisson(both * noise), y


def hidden(y: np.ndarray, known: int) -> np.ndarray:  # type: ignore[type-arg]
    out = np.full(len(y), -1)
    out[:known] = y[:known]
    return out


# --- hidden labels


def by_hand(X, y, k, weight, smoothing, steps):  # type: ignore[no-untyped-def]
    """EM of naive Bayes with loops, and the objective before each step."""
    n, d = X.shape
    q = np.zeros((n, k))
    for i in range(n):
        if y[i] >= 0:
            q[i, y[i]] = 1
    weights, values = np.where(y >= 0, 1.0, 0.0), []
    for _ in range(steps + 1):
        pi = np.array([smoothing + sum(weights[i] * q[i, c] for i in range(n)) for c in range(k)])
        pi /= pi.sum()
        theta = np.full((k, d), smoothing)
        for c, i, j in itertools.product(range(k), range(n), range(d)):
            theta[c, j] += weights[i] * q[i, c] * X[i, j]
        theta /= theta.sum(axis=1, keepdims=True)
        value = smoothing * (np.log(pi).sum() + np.log(theta).sum())
        for i in range(n):
            joint = np.array([pi[c] * np.prod(theta[c] ** X[i]) for c in range(k)])
            if y[i] >= 0:
                value += np.log(joint[y[i]])
            else:
                value += weight * np.log(joint.sum())
                q[i] = joint / joint.sum()
        values.append(value)
        weights = np.where(y >= 0, 1.0, weight)
    return pi, theta, np.array(values)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_em_is_that_by_hand_and_never_lowers_its_objective(weight: float) -> None:
    rng = np.random.default_rng(4)
    X, y = rng.integers(4, size=(12, 5)), np.array([0, 1, 2, 0, *[-1] * 8])
    found = HiddenLabelNaiveBayes(weight=weight, smoothing=0.5, iterations=6, tolerance=0.0, check=False).fit(X, y)
    pi, theta, values = by_hand(X, y, 3, weight, 0.5, 6 if weight else 0)
    if weight:
        assert found.trace_ == pytest.approx(values[:6])
        assert (np.diff(found.trace_) >= -1e-9).all()
    joint = np.log(pi) + X @ np.log(theta).T
    joint = np.exp(joint - joint.max(axis=1, keepdims=True))
    assert found.predict_proba(X) == pytest.approx(joint / joint.sum(axis=1, keepdims=True))


def test_without_weight_or_without_unlabelled_rows_em_is_the_supervised_classifier() -> None:
    X, y = views(60)
    alone = HiddenLabelNaiveBayes().fit(X[:10], y[:10])
    none = HiddenLabelNaiveBayes(weight=0.0).fit(X, hidden(y, 10))
    self_taught = SelfTraining(threshold=1.5).fit(X, hidden(y, 10))
    taught_alone = SelfTraining().fit(X[:10], y[:10])
    for other in (none, self_taught, taught_alone):
        assert np.array_equal(other.predict_proba(X), alone.predict_proba(X))
    assert self_taught.n_added_ == (0,)


def test_em_helps_where_the_model_fits_and_a_warning_says_where_it_does_harm() -> None:
    X, y = views(600, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fits = HiddenLabelNaiveBayes().fit(X, hidden(y, 12))
    assert fits.score(X, y) > HiddenLabelNaiveBayes(weight=0.0).fit(X, hidden(y, 12)).score(X, y) + 0.02
    rng = np.random.default_rng(0)  # most of what varies, topics of 30 words, has nothing to do with the label
    topic = rng.integers(2, size=600)
    rates = np.where((np.arange(30) % 2)[None] == topic[:, None], 1.5, 0.1)
    clear, y = views(600, seed=1, noise=2.0)
    clash = np.concatenate([clear, rng.poisson(rates)], axis=1)
    with pytest.warns(UserWarning, match="EM does harm"):
        HiddenLabelNaiveBayes().fit(clash, hidden(y, 200))


# --- two views


def test_the_books_of_co_training() -> None:
    """Two of one label and one of the other by each classifier, from a pool that is filled up until nothing is left."""
    X, y = views(80)
    given = hidden(y, 6)
    found = CoTraining([range(6), range(6, 12)], add=[1, 2], pool=10, rounds=9, check=False).fit(X, given)
    assert [len(each) for each in found.added_] == [6] * 9
    rows = np.concatenate(found.added_)
    assert len(set(rows.tolist())) == 54
    assert (rows >= 6).all()
    assert np.array_equal(np.flatnonzero(found.given_ >= 0), np.sort(np.append(rows, np.arange(6))))
    assert np.array_equal(found.given_[:6], y[:6])
    for each in found.added_:
        assert np.bincount(found.given_[each]).tolist() == [2, 4]
    order = np.random.default_rng(0).permutation(np.arange(6, 80))
    for k, each in enumerate(found.added_):  # what is labelled was in the pool: the first 10, and 6 more a round
        assert set(each.tolist()) <= set(order[: 10 + 6 * k].tolist())
    every = CoTraining([range(6), range(6, 12)], pool=10, rounds=1000, check=False).fit(X, given)
    assert (every.given_ >= 0).all()
    assert sum(map(len, every.added_)) == 74


def test_independent_views_teach_each_other() -> None:
    X, y = views(800, noise=0.7, seed=3)
    test, truth = views(800, noise=0.7, seed=3)
    parts = [range(6), range(6, 12)]
    first, last = ([], [])  # type: ignore[var-annotated]
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(400) * 2
        rows = np.stack([order, order + 1], axis=1).ravel()
        for rounds, out in ((1, first), (60, last)):
            made = CoTraining(parts, rounds=rounds, check=False, seed=seed).fit(X[rows], hidden(y[rows], 8))
            out.append(made.score(test, truth))
    assert np.mean(last) > np.mean(first) + 0.02


def test_equal_views_agree_with_one_classifier_and_are_warned_of() -> None:
    X, y = views(100, noise=0.6)
    same = [range(6), range(6)]
    with pytest.warns(UserWarning, match="views are not independent"):
        made = CoTraining(same, rounds=3).fit(X, hidden(y, 40))
    known = made.given_ >= 0
    one = HiddenLabelNaiveBayes().fit(X[known][:, :6], made.given_[known])
    assert np.array_equal(made.predict(X), one.predict(X[:, :6]))


def test_a_view_that_says_nothing_is_warned_of() -> None:
    X, y = views(120)
    told = view_diagnosis(X, y, [range(6), range(6, 12)])
    assert not told.warnings
    assert min(told.accuracies) > told.majority
    blind = np.concatenate([X[:, :6], np.ones((120, 1))], axis=1)
    labels = np.where(np.arange(120) % 5 == 0, 1 - y, y)
    labels[:20] = 1
    assert any("not enough" in line for line in view_diagnosis(blind, labels, [range(6), [6]]).warnings)


# --- what they are given


def test_rows_may_be_sparse_and_labels_words() -> None:
    X, _y = views(60)
    words = [None if k >= 20 else ("no", "yes")[k % 2] for k in range(60)]
    dense = CoTraining([range(6), range(6, 12)], check=False, rounds=5).fit(X, words)
    assert dense.classes_.tolist() == ["no", "yes"]
    indptr = np.arange(0, X.size + 1, 12)
    own = Sparse(indptr, np.tile(np.arange(12, dtype=np.int32), 60), 12, X.ravel().astype(float))
    for other in (sparse.csr_matrix(X), own):
        made = CoTraining([range(6), range(6, 12)], check=False, rounds=5).fit(other, words)
        assert made.predict_proba(other) == pytest.approx(dense.predict_proba(X))
    copy = type(dense)(**dense.get_params())
    assert copy.fit(X, words).predict(X).tolist() == dense.predict(X).tolist()


def test_pipelines_and_searches_of_scikit_learn_take_them() -> None:
    pytest.importorskip("sklearn", minversion="1.6")
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    rng, y = np.random.default_rng(0), np.arange(200) % 2
    words = (["bad", "poor", "awful", "sad", "the", "of"], ["good", "fine", "great", "nice", "the", "of"])
    texts = [" ".join(rng.choice(words[label], 4)) for label in y]
    for made in (
        HiddenLabelNaiveBayes(check=False),
        SelfTraining(base=LogisticRegression(), threshold=0.6),
        CoTraining([range(5), range(5, 10)], check=False),
    ):
        assert make_pipeline(CountVectorizer(), made).fit(texts, hidden(y, 20)).score(texts, y) > 0.8
    search = GridSearchCV(HiddenLabelNaiveBayes(check=False), {"smoothing": [0.1, 1e6]}, cv=3)
    assert search.fit(CountVectorizer().fit_transform(texts), y).best_params_ == {"smoothing": 0.1}


@pytest.mark.parametrize(
    ("made", "X", "y", "words"),
    [
        (HiddenLabelNaiveBayes(), [[1, 2]], [-1], "no row has a label"),
        (HiddenLabelNaiveBayes(), [[1, -2]], [1], "counts, 0 or more"),
        (HiddenLabelNaiveBayes(), [[1, 2]], [1, 2], "1 rows, but 2 labels"),
        (HiddenLabelNaiveBayes(), [[1, np.nan]], [1], "finite"),
        (SelfTraining(), [[1, 2], [2, 1]], [1, "a"], "all whole numbers or all strings"),
        (SelfTraining(), [[1, 2], [2, 1]], [0.0, 0.5], "all whole numbers or all strings"),
        (SelfTraining(), [[1, 2], [2, 1]], [0.0, np.nan], "all whole numbers or all strings"),
        (CoTraining([[True, False], [False, True]]), [[1, 2]], [1], "columns by number"),
        (CoTraining([[0.5], [1]]), [[1, 2]], [1], "columns by number"),
        (CoTraining([[0], [7]]), [[1, 2]], [1], "columns from 0 to 1"),
        (CoTraining(), [[1, 2]], [1], "two lists of columns"),
        (CoTraining([[0], [1]], add=[1, 2, 3]), [[1, 2], [3, 4]], [1, 2], "for each of 2 labels"),
        (CoTraining([[0], [1]], pool=0), [[1, 2], [3, 4]], [1, 2], "pool should be"),
    ],
)
def test_what_makes_no_sense_is_refused(made, X, y, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError, match=words):
        made.fit(X, y)


def test_nothing_is_predicted_before_it_is_learnt_or_of_other_features() -> None:
    with pytest.raises(UsageError, match="call fit first"):
        SelfTraining().predict([[1, 2]])
    with pytest.raises(ParameterError, match="3 features, but 2"):
        SelfTraining().fit([[1, 2], [2, 1]], [0, 1]).predict([[1, 2, 3]])


def test_one_label_and_no_unlabelled_rows() -> None:
    one = CoTraining([[0], [1]]).fit([[1, 2], [2, 1], [1, 1]], [5, 5, -1])
    assert one.predict([[9, 0]]).tolist() == [5]
    assert one.predict_proba([[9, 0]]).tolist() == [[1.0]]


def test_a_label_that_swallows_the_others_is_warned_of() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([[[3, 0], [0, 3]] * 5, rng.poisson([4.0, 0.5], size=(100, 2))])
    with pytest.warns(UserWarning, match="label 0 is"):
        SelfTraining(threshold=0.5).fit(X, [0, 1] * 5 + [-1] * 100)


# --- structural learning


def planted(m: int, n: int, seed: int = 0):  # type: ignore[no-untyped-def]
    """Problems whose predictors lie in a subspace of three dimensions."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(25, 3)))[0].T
    problems = []
    for _ in range(m):
        X = rng.normal(size=(n, 25))
        problems.append((X, X @ (rng.normal(size=3) @ basis) + 0.1 * rng.normal(size=n) > 0))
    return basis, problems


def test_a_planted_subspace_is_found_and_the_objective_never_rises() -> None:
    basis, problems = planted(15, 120)
    found = structural_learning(problems, 3, regularisation=0.1, rounds=4)
    assert found.theta @ found.theta.T == pytest.approx(np.eye(3), abs=1e-9)
    cosines = np.linalg.svd(found.theta @ basis.T, compute_uv=False)
    assert cosines.min() > 0.95
    random = np.linalg.qr(np.random.default_rng(1).normal(size=(25, 3)))[0].T
    assert np.linalg.svd(random @ basis.T, compute_uv=False).min() < 0.5
    assert len(found.trace) == 8
    assert (np.diff(found.trace) <= 1e-6).all()


def test_the_objective_is_that_of_the_paper_and_predictors_are_those_of_a_generic_solver() -> None:
    _, problems = planted(3, 15)
    small = [(X[:, :4], y) for X, y in problems]
    found = structural_learning(small, 2, regularisation=0.05, rounds=1)

    def loss(u: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:  # type: ignore[type-arg]
        margins = (X @ u[:4] + u[4]) * (2.0 * y - 1)
        return float(np.where(margins >= -1, np.maximum(0, 1 - margins) ** 2, -4 * margins).mean())

    values = [
        minimize(lambda u, X=X, y=y: loss(u, X, y) + 0.05 * u[:4] @ u[:4], np.zeros(5), tol=1e-12) for X, y in small
    ]
    assert found.weights == pytest.approx(np.stack([each.x[:4] for each in values]), abs=1e-3)
    assert found.trace[0] == pytest.approx(sum(each.fun for each in values), abs=1e-5)
    vectors = np.linalg.svd(found.weights.T)[0][:, :2]
    assert found.theta.T @ found.theta == pytest.approx(vectors @ vectors.T, abs=1e-9)
    away = found.weights - found.weights @ found.theta.T @ found.theta
    after = sum(loss(each.x, X, y) for each, (X, y) in zip(values, small, strict=True)) + 0.05 * (away**2).sum()
    assert found.trace[1] == pytest.approx(after, abs=1e-4)


def test_structure_helps_most_with_few_labels() -> None:
    _basis, problems = planted(16, 120, seed=2)
    (X, y), auxiliary = problems[0], problems[1:]
    found = structural_learning(auxiliary, 3, regularisation=0.1)
    from isogloss.learners.linear import fit_linear

    gains = []
    for n in (8, 80):
        scores = []
        for places in (None, found.places(X)):
            dense = X if places is None else np.concatenate([X, places], axis=1)
            rows = Sparse(np.zeros(121, np.int64), np.zeros(0, np.int32), 0, dense=dense)
            penalty = np.append(np.full(25, 0.1), np.full(dense.shape[1] - 25, 0.01))
            rule = fit_linear(rows.rows(0, n), np.eye(2)[y[:n].astype(int)], penalty=penalty)
            scores.append((rule.scores(rows).argmax(axis=1) == y)[80:].mean())
        gains.append(scores[1] - scores[0])
    assert gains[0] > max(gains[1], 0.05)


def test_wrong_problems_are_refused() -> None:
    _, problems = planted(2, 10)
    with pytest.raises(ParameterError, match="the same features"):
        structural_learning([problems[0], (problems[1][0][:, :3], problems[1][1])], 2)
    with pytest.raises(ParameterError, match="problem 0 has 10 rows and 3 answers"):
        structural_learning([(problems[0][0], [1, 0, 1])], 2)
