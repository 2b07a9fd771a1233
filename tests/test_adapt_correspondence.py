"""Structural correspondence of documents, the correction with few labels, and distances between domains."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from isogloss import samples
from isogloss.cli import main
from isogloss.data import LabelledDocuments, Text
from isogloss.errors import DocumentsError
from isogloss.features.ngrams import NGrams
from isogloss.features.sparse import Sparse
from isogloss.learners.correspondence import modified_huber, mutual_information, present_predictors
from isogloss.tasks.adapt import (
    DocumentClassifier,
    diagnose,
    losses,
    proxy_a_distance,
    which_domains_to_label,
    which_to_label,
)
from isogloss.tasks.adapt.correspondence import choose_pivots, learn_places, masks
from isogloss.tasks.adapt.model import Corrected, Rule, calibrate, calibrated
from isogloss.tasks.adapt.seen import Seen

RNG = np.random.default_rng(5)
X = (RNG.random((30, 8)) < 0.4).astype(float)
ROWS = Sparse.of([np.flatnonzero(row) for row in X], 8)
BOOKS, PANS = samples.reviews("books", 80), samples.reviews("kitchen", 80)


@pytest.mark.parametrize("seed", range(3))
def test_information_is_that_of_a_table_of_two_by_two(seed: int) -> None:
    y = np.random.default_rng(seed).integers(2, size=30)
    found = mutual_information(ROWS, np.eye(2)[y])
    for f in range(8):
        wanted = 0.0
        for a in (0, 1):
            for label in (0, 1):
                both, one, other = np.mean((X[:, f] == a) & (y == label)), np.mean(X[:, f] == a), np.mean(y == label)
                wanted += both * np.log(both / (one * other)) if both else 0.0
        assert found[f] == pytest.approx(wanted, abs=1e-12)


def test_information_of_a_perfect_and_of_an_independent_feature() -> None:
    rows = Sparse.of([[0, 1], [0], [1], []], 2)
    found = mutual_information(rows, np.eye(2)[[1, 1, 0, 0]])
    assert found == pytest.approx([np.log(2), 0.0])


def test_predictors_of_pivots_are_those_of_a_generic_solver_and_do_not_see_what_is_hidden() -> None:
    hidden = np.zeros((8, 2))
    hidden[[0, 3], 0], hidden[[1], 1] = 1, 1
    sizes = RNG.random(30) + 0.2
    options = {"regularisation": 0.01, "tolerance": 1e-9, "passes": 20000}
    found = present_predictors(ROWS, np.array([0, 1]), hidden, sizes=sizes, **options)  # type: ignore[arg-type]
    for pivot in (0, 1):
        seen = hidden[:, pivot] == 0

        def cost(w: np.ndarray, pivot: int = pivot, seen: np.ndarray = seen) -> float:  # type: ignore[type-arg]
            return float(modified_huber(sizes * (X[:, seen] @ w), 2 * X[:, pivot] - 1)[0].mean() + 0.01 * w @ w)

        wanted = minimize(cost, np.zeros(int(seen.sum())), tol=1e-12).x
        own = found.toarray()[:, pivot]
        assert own[seen] == pytest.approx(wanted, abs=1e-4)
        assert (own[~seen] == 0).all()


def test_masks() -> None:
    features = Seen(NGrams.of([Text.of(["good book", "bad book", "good film"])], longest=2))
    names = np.array(features.whole.names)
    pivots = np.array([list(names).index("good"), list(names).index("bad book")])
    hidden = {kind: masks(features, pivots, kind).toarray() != 0 for kind in ("own", "words", "pivots")}
    assert set(names[hidden["own"][:, 0]]) == {"good"}
    assert set(names[hidden["words"][:, 0]]) == {"good", "good book", "good film"}
    assert set(names[hidden["words"][:, 1]]) == {"bad", "book", "bad book", "good book"}
    assert all(set(names[column]) == {"good", "bad book"} for column in hidden["pivots"].T)


def test_a_pivot_is_hidden_in_titles_too() -> None:
    table = LabelledDocuments.of([("pos", "good", "a good book"), ("neg", "bad", "a bad book")])
    features = Seen.of([table], longest=1, least=1)
    names = [*features.whole.names, *(f"title {name}" for name in features.own[0].names)]
    hidden = masks(features, np.array([names.index("good")]), "words").toarray()[:, 0] != 0
    assert {name for name, away in zip(names, hidden, strict=True) if away} == {"good", "title good"}
    assert len(set(features.kinds.tolist())) == 2


def learnt(**more: object) -> tuple[Seen, Sparse, Sparse, np.ndarray]:  # type: ignore[type-arg]
    features = Seen.of([BOOKS, PANS], longest=2, least=2)
    targets = np.eye(2)[BOOKS.numbers(("neg", "pos"))]
    return features, features.matrix(BOOKS), features.matrix(PANS), targets


PLACES = {"dimensions": 5, "masking": "words", "positive": False, "blocks": False, "regularisation": 1e-3, "seed": 0}


def test_places_are_orthonormal_and_depend_on_pivots_alone() -> None:
    features, source, target, targets = learnt()
    often = choose_pivots(source, target, None, number=30, least=3)
    telling = choose_pivots(source, target, targets, number=30, least=3)
    assert set(often) != set(telling)
    for blocks in (False, True):
        table = learn_places(features, source, target, telling, **{**PLACES, "blocks": blocks}).table  # type: ignore[arg-type]
        assert table.T @ table == pytest.approx(np.eye(table.shape[1]), abs=1e-4)
    every = choose_pivots(source, target, None, number=10**6, least=3)
    same = choose_pivots(source, target, targets, number=10**6, least=3)
    one, other = (learn_places(features, source, target, np.sort(p), **PLACES).table for p in (every, same))  # type: ignore[arg-type]
    assert np.array_equal(one, other)
    with pytest.raises(DocumentsError, match="no word is in more than 500 documents"):
        choose_pivots(source, target, None, number=30, least=500)


@pytest.mark.parametrize("rescale", ["length", "standard", "norm", "none"])
def test_places_do_not_grow_with_documents_and_are_as_large_as_asked(rescale: str) -> None:
    features, source, target, targets = learnt()
    pivots = choose_pivots(source, target, targets, number=30, least=3)
    places = learn_places(features, source, target, pivots, **PLACES).fitted(source, rescale)  # type: ignore[arg-type]
    here, words = places.of(source), np.diff(source.indptr)
    raw = np.stack([places.table[source.indices[a:b]].sum(axis=0) for a, b in zip(source.indptr, source.indptr[1:])])
    assert places.raw(source) == pytest.approx(raw / np.sqrt(words)[:, None], abs=1e-5)
    if rescale == "length":
        assert np.linalg.norm(here, axis=1).mean() == pytest.approx(1, abs=0.05)
    elif rescale == "standard":
        assert here.std(axis=0) == pytest.approx(np.ones(5))
    elif rescale == "norm":
        assert np.abs(here).sum(axis=1).mean() == pytest.approx(5 * np.sqrt(words).mean())
    if rescale in ("length", "standard"):
        assert here.mean(axis=0) == pytest.approx(np.zeros(5), abs=1e-9)
        moved = places.centred(target).of(target)
        assert moved.mean(axis=0) == pytest.approx(np.zeros(5), abs=1e-9)
        assert np.abs(places.of(target).mean(axis=0)).max() > 0.05  # the other domain lies elsewhere


def test_a_correction_moves_between_the_source_and_the_labels() -> None:
    features, source, target, targets = learnt()
    pivots = choose_pivots(source, target, targets, number=30, least=3)
    places = learn_places(features, source, target, pivots, **PLACES).fitted(source, "standard")  # type: ignore[arg-type]
    rule = Rule.learnt(
        source, targets, np.ones(len(targets)), weighting="none", loss="huber", l2=1e-3, places=places, places_l2=1e-3
    )
    few, labels = target.rows(0, 20), np.eye(2)[PANS[:20].numbers(("neg", "pos"))]
    n, h = len(features), 5
    told = {"loss": "huber", "by": "label"}
    stiff = Corrected.learnt(rule, few, labels, l2=0.1, places_l2=1e7, **told)  # type: ignore[arg-type]
    assert stiff.linear.weights[:, n : n + h] == pytest.approx(rule.linear.weights[:, n:], abs=1e-4)
    frozen = Corrected.learnt(rule, few, labels, l2=1e7, places_l2=1e7, **told)  # type: ignore[arg-type]
    alone = places.of(target) @ rule.linear.weights[0, n:] + frozen.linear.bias[0]
    assert np.diff(frozen.scores(target), axis=1)[:, 0] == pytest.approx(alone, abs=1e-2)
    for by in ("score", "label"):
        none = Corrected.learnt(rule, target.rows(0, 0), np.zeros((0, 2)), loss="huber", l2=0.1, places_l2=0.1, by=by)
        assert np.array_equal(none.linear.weights[:, n : n + h], rule.linear.weights[:, n:])
        assert not none.linear.weights[:, :n].any()
        if by == "score":
            assert none.scores(target) == pytest.approx(rule.scores(target))


@pytest.mark.parametrize("three", [False, True])
def test_a_correction_by_scores_begins_at_the_rule_of_the_source(three: bool) -> None:
    features, source, target, targets = learnt()
    if three:
        targets = np.concatenate([targets, np.zeros((len(targets), 1))], axis=1)
        targets[::3] = [0, 0, 1]
    pivots = choose_pivots(source, target, targets, number=30, least=3)
    places = learn_places(features, source, target, pivots, **PLACES).fitted(source, "length")  # type: ignore[arg-type]
    rule = Rule.learnt(
        source, targets, np.ones(len(targets)), weighting="none", loss="huber", l2=1e-3, places=places, places_l2=1e-3
    )
    few, labels = target.rows(0, 20), targets[:20]
    frozen = Corrected.learnt(rule, few, labels, loss="huber", l2=1e7, places_l2=1e7)
    shift = frozen.scores(target) - rule.scores(target)  # no more than the bias moves
    assert shift == pytest.approx(np.tile(shift[:1], (len(shift), 1)), abs=1e-3)
    loose = Corrected.learnt(rule, few, labels, loss="huber", l2=1e-4, places_l2=1e-4)
    assert (loose.scores(few).argmax(axis=1) == labels.argmax(axis=1)).all()


def test_a_handful_of_labels_of_the_target_does_no_harm() -> None:
    """Biases and how sure scores are would be learnt from next to nothing: labels were found the wrong way round."""
    others, more = samples.reviews("kitchen", 100, seed=1), samples.reviews("kitchen", 40, seed=9)
    base = float(DocumentClassifier("none", min_count=2).fit(BOOKS, PANS).score(others))
    for seed, n in enumerate((1, 2, 3, 4, 6, 8)):
        few = more.take(np.random.default_rng(seed).permutation(40)[:n])
        assert float(DocumentClassifier("none", min_count=2).fit(BOOKS, PANS, few).score(others)) > base - 8
    assert float(DocumentClassifier("none", min_count=2).fit(BOOKS, PANS, more).score(others)) >= base
    loose = DocumentClassifier("none", min_count=2, correction=0.1).fit(BOOKS, PANS, more)
    assert float(loose.score(others)) > base


def test_scores_of_two_labels_are_never_turned_round() -> None:
    scores = np.array([[-1.0, 1.0], [1.0, -1.0], [-0.2, 0.2], [0.3, -0.3]])
    for rightly in (False, True):
        best = scores.argmax(axis=1)
        sure = calibrate(scores, np.eye(2)[best if rightly else 1 - best])
        assert np.array_equal(calibrated(sure, scores).argmax(axis=1), best)


def test_a_few_labels_do_not_move_the_border_between_labels() -> None:
    scores = np.array([[-1.0, 1.0], [1.0, -1.0], [-0.2, 0.2], [-0.3, 0.3], [-0.1, 0.1]])
    targets = np.eye(2)[[1, 0, 0, 0, 0]]
    assert calibrate(scores, targets).bias[0] < -0.5
    sure = calibrate(scores, targets, decided=True)
    assert sure.bias.tolist() == [0.0]
    assert np.array_equal(calibrated(sure, scores).argmax(axis=1), scores.argmax(axis=1))
    few = samples.reviews("kitchen", 60, seed=9)
    few = few.take(
        np.sort(np.concatenate([np.flatnonzero(few.numbers(("neg", "pos")) == k)[: 12 + 8 * k] for k in (0, 1)]))
    )
    learnt = DocumentClassifier("scl-mi", min_count=2, pivots=20, dimensions=5).fit(BOOKS, PANS, few)
    raw = learnt._fitted.rule.scores(learnt._fitted.features.matrix(PANS))
    assert np.array_equal(learnt.predict_proba(PANS).argmax(axis=1), raw.argmax(axis=1))


def test_self_training_without_text_learns_from_labels_of_the_target_like_those_of_the_source() -> None:
    few = samples.reviews("kitchen", 20, seed=9)
    together = [(one.label, one.words) for one in (*BOOKS, *few)]
    joined = DocumentClassifier("none", min_count=2).fit(together)
    for target in (None, []):
        equal = DocumentClassifier(min_count=2, target_weight=1).fit(BOOKS, target, few)
        assert equal.predict_proba(PANS) == pytest.approx(joined.predict_proba(PANS), abs=1e-6)
    heavy = DocumentClassifier(min_count=2).fit(BOOKS, None, few)
    assert not np.allclose(heavy.predict_proba(PANS), equal.predict_proba(PANS))


def planted(own: str, n: int, seed: int, *, shared: bool = True) -> list[tuple[str, str]]:
    """Documents with words of their domain and words of both that tell the label, and words that tell nothing."""
    rng, found = np.random.default_rng(seed), []
    for k in range(n):
        label = ("neg", "pos")[k % 2]
        words = [f"{own}-{label}-{word}" for word in rng.integers(8, size=4)]
        words += [f"both-{label}-{word}" for word in rng.integers(6, size=3 * shared)]
        words += [f"any-{word}" for word in rng.integers(20, size=6)]
        found.append((label, " ".join(rng.permutation(words))))
    return found


@pytest.mark.parametrize("positive", [False, True])
def test_words_of_the_new_domain_are_known_by_the_pivots_that_they_predict(positive: bool) -> None:
    new = planted("pan", 200, 3, shared=False)  # nothing in them was ever seen with a label
    given = planted("book", 200, 1), [text for _, text in planted("pan", 200, 2)]
    options = {"ngrams": 1, "min_count": 2, "weighting": "none"}
    base = float(DocumentClassifier("none", **options).fit(*given).score(new))
    adapted = DocumentClassifier("scl-mi", pivots=12, dimensions=4, positive=positive, **options).fit(*given)
    assert base < 65
    assert float(adapted.score(new)) > 90


def test_without_a_number_of_pivots_each_method_has_its_own() -> None:
    texts = planted("book", 120, 1), planted("pan", 120, 2)
    options = {"ngrams": 2, "min_count": 1, "pivot_count": 0, "dimensions": 3}
    for method, number in (("scl", 1000), ("scl-mi", 100)):
        one, other = (DocumentClassifier(method, pivots=m, **options).fit(*texts) for m in (None, number))
        assert np.array_equal(one.predict_proba(texts[1]), other.predict_proba(texts[1]))
    fewer = DocumentClassifier("scl-mi", pivots=5, **options).fit(*texts)
    assert not np.allclose(fewer.predict_proba(texts[1]), other.predict_proba(texts[1]))


def test_labels_that_the_source_does_not_have_are_refused() -> None:
    with pytest.raises(DocumentsError, match="has the label 'so-so'"):
        DocumentClassifier("none", min_count=1).fit(BOOKS, PANS, [("so-so", "a pan")])


# --- distances


def test_distances() -> None:
    apart = proxy_a_distance(BOOKS, PANS)
    assert apart.held_out > 80
    assert float(proxy_a_distance(PANS, BOOKS)) == pytest.approx(apart.held_out, abs=3)
    halves = proxy_a_distance(BOOKS[:40], BOOKS[40:])
    assert halves.held_out < 5 < halves.training  # what was learnt from can always be told apart
    words = [LabelledDocuments.of([f"{w}{k % 3} {w}{k % 5}" for k in range(40)]) for w in "ab"]
    assert float(proxy_a_distance(*words)) > 90
    own = [RNG.normal(size=(60, 4)) + shift for shift in (0.0, 3.0)]
    assert float(proxy_a_distance(*own)) > 60 > float(proxy_a_distance(own[0][:30], own[0][30:]))


def test_which_domains_and_documents_to_label() -> None:
    more = samples.reviews("books", 80, seed=3)
    found = which_domains_to_label({"books": BOOKS, "more books": more, "pans": PANS}, 2)
    assert {name for name, _ in found} & {"books", "more books"}
    assert "pans" in {name for name, _ in found}
    assert found[1][1] < found[0][1]
    base = DocumentClassifier("none", min_count=2).fit(BOOKS)
    numbers, useful = which_to_label(base, PANS, 10)
    assert len(set(numbers.tolist())) == 10
    assert (np.diff(useful) <= 0).all()


def test_losses_of_the_paper() -> None:
    found = losses({"none": [72.8], "scl-mi": [79.7]}, [80.4])
    assert found["none"]["loss"] == pytest.approx(7.6)
    assert found["scl-mi"]["reduction"] == pytest.approx(90.8, abs=0.1)


def test_a_diagnosis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    alike = diagnose(BOOKS.unlabelled(), samples.reviews("books", 80, seed=4))
    assert alike.a_distance < 10
    assert alike.expected_loss is None
    assert alike.advice[0].startswith("The domains are alike")
    few = [(label, f"{label} text {k}") for k in range(6) for label in ("a", "b")]
    for little in (few[:4], [(label, label) for label, _ in few], [("a", "one"), ("b", "other")] * 6):
        told = diagnose(little, ["another text"] * 3)  # too few documents, too few words, too many copies
        assert told.source_accuracy is None or np.isfinite(told.source_accuracy)
        assert (told.source_accuracy is None) == (told.expected_loss is None)
    assert diagnose(few[:4], ["another text"]).advice[-1].startswith("Labels of the source would show")
    monkeypatch.chdir(tmp_path)
    assert main(["sample", "reviews", "-q"]) == 0
    assert main(["adapt", "diagnose", "reviews.books.tsv", "reviews.kitchen.tsv", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["a_distance"] > 80
    assert 0 < told["unknown"] < 100
    assert told["expected_loss"] >= 0
    assert sum(told["prior"].values()) == pytest.approx(100)
