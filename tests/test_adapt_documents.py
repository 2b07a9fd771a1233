"""Documents of a new domain: tables, sequences of words, linear classifiers, proportions of labels, self-training."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from isogloss import samples, store
from isogloss.cli import main
from isogloss.data import LabelledDocuments, Text
from isogloss.data.formats.labelled import parse_labelled, read_labelled, scored_columns, written
from isogloss.data.labelled import copies_among
from isogloss.errors import DocumentsError, ModelError, ParameterError, UsageError
from isogloss.features.ngrams import NGrams, plain_form
from isogloss.features.sparse import Sparse
from isogloss.learners.linear import LinearLoss, fit_linear, naive_bayes_weights, softmax
from isogloss.learners.optimisers import Lbfgs, WholeObjective
from isogloss.learners.runner import run
from isogloss.learners.semi_supervised import (
    confusion_proportions,
    em_proportions,
    stable_features,
    with_proportions,
)
from isogloss.tasks.adapt import DocumentClassifier

RNG = np.random.default_rng(3)


# --- tables


def test_columns_by_number_by_name_and_by_themselves(tmp_path: Path) -> None:
    rows = [("pos", "5.0", "Fine", "I liked it."), ("neg", "1.0", "No", "Bad, 7 times.")]
    body = "".join("\t".join(row) + "\n" for row in rows)
    plain, headed = tmp_path / "plain.tsv.gz", tmp_path / "headed.tsv"
    plain.write_bytes(gzip.compress(body.encode()))
    headed.write_text("kind\tstars\ttitle\tbody\n" + body)
    by_number = read_labelled(plain, label=0, text=[2, 3])
    assert by_number.labels == ("pos", "neg")
    assert by_number[1].words == ("No", "Bad", ",", "7", "times", ".")
    for other in (
        read_labelled(plain),  # stars are numbers, and no text
        read_labelled(headed, label="kind", text=["title", "body"]),
        read_labelled(headed, label=0, text=[2, 3], heading=True),
    ):
        assert [tuple(one) for one in other] == [tuple(one) for one in by_number]
    assert read_labelled(plain, label=None, text=[3]).labels == (None, None)


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (b"pos\tfine\nneg\n", {}, r"t\.tsv, line 2: 1 column where there should be 2"),
        (b"pos\tfine\nneg\tbad\tmore\n", {}, r"t\.tsv, line 2: 3 columns where the table begins with 2"),
        (b"pos\tfine\n\nneg\tbad\n", {}, r"t\.tsv, line 2: is empty"),
        (b"pos\tfine\n\tbad\n", {}, r"t\.tsv, line 2: column 0 should have a label"),
        (b"pos\tfine\n", {"label": 4}, r"t\.tsv, line 1: there is no column 4"),
        (b"kind\ttext\npos\tfine\n", {"label": "class"}, r"no column is called 'class'; there are kind, text"),
        (b"", {"label": "class"}, r"t\.tsv: is empty"),
        (b"", {}, r"t\.tsv: has no documents"),
        (b"1\t2\n", {"label": 0, "text": [5]}, "there is no column 5, but 2 columns with numbers from 0"),
    ],
)
def test_wrong_tables_are_refused_with_file_and_line(table: bytes, options: dict, words: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(DocumentsError, match=words):
        parse_labelled(table, "t.tsv", **options)


def test_the_label_is_no_text_and_columns_of_a_heading_are_found_again() -> None:
    for options in ({"label": 0, "text": [0, 1]}, {"label": "kind", "text": [1, "kind"]}):
        with pytest.raises(UsageError, match="is the label, and cannot be text as well"):
            parse_labelled(b"kind\ttext\npos\tfine\n", "t.tsv", **options)  # type: ignore[arg-type]
    assert parse_labelled(b"fine\nbad\n", text=[0]).labels == (None, None)
    table = b"kind\ttitle\tbody\npos\tFine\tI liked it.\n"
    columns = parse_labelled(table, label="kind").columns
    assert columns is not None
    assert columns.text == ("title", "body")
    swapped = parse_labelled(b"body\tx\ttitle\nI liked it.\t7\tFine\n", label=None, text=columns.text)
    assert swapped[0].words == ("Fine", "I", "liked", "it", ".")
    twice = parse_labelled(b"kind\ttext\ttext\npos\tFine\tI liked it.\n", heading=True).columns
    assert twice is not None
    assert twice.text == (1, 2)


def test_a_heading_that_was_written_is_known_again() -> None:
    table = written(parse_labelled(b"kind\ttext\npos\tfine\n", heading=True), ["neg"], [0.75])
    assert table == b"kind\ttext\tpredicted\tprobability\npos\tfine\tneg\t0.7500\n"
    assert scored_columns(table, "t.tsv", 0) == scored_columns(table, "t.tsv", "kind") == (["neg"], ["pos"])


def test_words_of_each_column_are_those_of_its_cells() -> None:
    cells = ["", "Fine!", "I liked it, 7 times.", "don't", " a  b ", "über", "x" * 9, "e\u0301t\u00e9"]
    rows = [("pos", *(cells[k] for k in RNG.integers(len(cells), size=3))) for _ in range(40)]
    found = LabelledDocuments.of(rows)
    table = "".join("\t".join(row) + "\n" for row in rows).encode()
    read = parse_labelled(table, text=[1, 2, 3])
    for documents in (found, read, found.take(np.arange(39, -1, -1)).take(np.arange(39, -1, -1)), found[:40]):
        for k in range(3):
            own = LabelledDocuments.of([(row[0], row[k + 1]) for row in rows]).text
            column = documents.column(k)
            assert [column.tokens(i) for i in range(40)] == [own.tokens(i) for i in range(40)]
    assert parse_labelled(table, text=[1]).cuts is None
    assert [found[5:9].column(1).tokens(i) for i in range(4)] == [found.column(1).tokens(i) for i in range(5, 9)]
    with pytest.raises(ParameterError, match="no column 3"):
        found.column(3)
    with pytest.raises(ParameterError, match="each should be a string"):
        LabelledDocuments.of([("pos", ["a"], "b")])


def test_copies_of_a_text_stay_on_one_side() -> None:
    texts = [f"review number {'x' * (k // 2)} of a book{'!' * (k % 2)}" for k in range(60)]  # pairs of copies
    documents = LabelledDocuments.of([("pos" if k // 2 % 2 else "neg", text) for k, text in enumerate(texts)])
    for seed in range(5):
        learnt, scored = documents.held_out(0.2, seed)
        copies = documents.duplicates()
        assert not set(copies[learnt]) & set(copies[scored])
        assert sorted([*learnt, *scored]) == list(range(60))
        assert [documents.take(scored).labels.count(label) for label in ("pos", "neg")] == [6, 6]


def test_copies_are_found_among_several_tables() -> None:
    one, other = (LabelledDocuments.of(texts).text for texts in (["a b", "c"], ["d", "A b!", "c", "d"]))
    assert copies_among([one, other]).tolist() == [0, 1, 2, 0, 1, 2]
    assert copies_among([]).tolist() == []


# --- sequences of words


def test_sequences_of_words_are_those_that_are_counted_by_hand() -> None:
    words = ["a", "b", "c", "B", "7", "8"]
    texts = [[words[k] for k in RNG.integers(6, size=n)] for n in (0, 1, 2, 7, 9, 4, 12)]
    for longest, least in itertools.product((1, 2, 3), (1, 2, 3)):
        known = NGrams.of([Text.of(texts[:3]), Text.of(texts[3:])], longest=longest, least=least)
        lists = [_sequences([plain_form(word) for word in text], longest) for text in texts]
        every = {one for found in lists for one in found}
        wanted = {one for one in every if sum(one in found for found in lists) >= least}
        assert set(known.names) == {" ".join(one) for one in wanted}
        new = [*texts, ["c", "q", "a", "b", "7"]]
        matrix, names = known.matrix(Text.of(new), counts=True), known.names
        for row, text in enumerate(new):
            own = _sequences([plain_form(word) for word in text], longest)
            at = slice(matrix.indptr[row], matrix.indptr[row + 1])
            got = {names[c]: int(v) for c, v in zip(matrix.indices[at].tolist(), matrix.values[at], strict=True)}
            assert got == {" ".join(one): own.count(one) for one in own if one in wanted}
        again = NGrams.from_arrays(known.to_arrays())
        assert again.names == known.names


def _sequences(words: list[str], longest: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for n in range(1, longest + 1) for i in range(len(words) - n + 1)]


def test_damaged_sequences_are_refused() -> None:
    arrays = NGrams.of([Text.of(["a b c a b"])], longest=3).to_arrays()
    for name, wrong, words in (
        ("before", 99, "not in order"), ("last", -1, "last"), ("last", 3, "last"), ("sizes", 7, "do not fit"),
    ):  # fmt: skip
        damaged = {key: value.copy() for key, value in arrays.items()}
        damaged[name][0] = wrong
        with pytest.raises((ValueError, ModelError), match=words):
            NGrams.from_arrays(damaged)


# --- linear classifiers


@pytest.mark.parametrize("loss", ["huber", "logistic"])
@pytest.mark.parametrize("labels", [2, 3])
def test_the_gradient_is_that_of_the_loss(loss: str, labels: int) -> None:
    rows = Sparse.of([[0, 2], [1], [], [0, 1, 3], [3]], 4, dense=RNG.normal(size=(5, 2)))
    targets = RNG.dirichlet(np.ones(labels), size=5)
    scores = 1 if labels == 2 else labels
    problem = LinearLoss(
        rows, targets, loss=loss, counts=[1, 2, 0.5, 1, 3], penalty=np.arange(6) / 10,
        centre=RNG.normal(size=(scores, 6)),
    )  # fmt: skip
    at = RNG.normal(size=problem.n_weights)
    slope = np.zeros(problem.n_weights)
    value = problem.add_gradient(at, slope)
    for k in range(problem.n_weights):
        move = np.zeros(problem.n_weights)
        move[k] = 1e-6
        up, down = (problem.add_gradient(at + sign * move, np.zeros_like(slope)) for sign in (1, -1))
        assert slope[k] == pytest.approx((up - down) / 2e-6, abs=1e-5)
    parts = sum(problem.gradient(at, np.array([i]))[0] for i in range(5))
    assert parts == pytest.approx(value)  # items and their shares of the penalty


def test_two_labels_by_one_score_are_those_by_two() -> None:
    """With l2 on both of two scores, each is minus the other, and the penalty is half of that of one score."""
    rows = Sparse.of([[0, 2], [1], [0, 1, 3], [3], [2, 3]], 4)
    y = np.array([0, 1, 1, 0, 1])
    one = fit_linear(rows, np.eye(2)[y], loss="logistic", penalty=0.02, tolerance=1e-12, iterations=500)
    from scipy.optimize import minimize

    dense = np.zeros((5, 4))
    for i in range(5):
        dense[i, rows.indices[rows.indptr[i] : rows.indptr[i + 1]]] = 1

    def cost(w: np.ndarray) -> float:  # type: ignore[type-arg]
        margins = (dense @ w[:4] + w[4]) * (2 * y - 1)
        return float(np.logaddexp(0, -margins).mean() + 0.02 * w[:4] @ w[:4])

    found = minimize(cost, np.zeros(5), tol=1e-12)
    assert one.weights[0] == pytest.approx(found.x[:4], abs=1e-4)
    assert one.bias[0] == pytest.approx(found.x[4], abs=1e-4)


def test_a_pull_towards_other_weights_and_known_biases() -> None:
    rows, targets = Sparse.of([[0], [1]], 2), np.eye(2)
    strong = fit_linear(rows, targets, penalty=1e6, centre=[[0.3, -0.2]], bias=[0.25])
    assert strong.weights[0] == pytest.approx([0.3, -0.2], abs=1e-4)
    assert strong.bias.tolist() == [0.25]


class Flat(WholeObjective):
    """−Σ w⁴, whose gradient becomes so small that its square is 0 in floats."""

    n_weights = 3

    def add_gradient(self, weights, out, items=None):  # type: ignore[no-untyped-def]
        out -= 4 * weights**3
        return -float((weights**4).sum())


def test_a_gradient_that_vanishes_is_no_error() -> None:
    learner = Lbfgs(Flat())
    found = run(learner, learner.init(np.array([1.0, 2.0, 3.0])), iterations=3000).state.weights
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 1e-6


def test_weights_of_naive_bayes_are_ratios_of_counts() -> None:
    rows = Sparse.of([[0, 1], [1, 2], [2]], 3)
    targets = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    found = naive_bayes_weights(rows, targets, smoothing=0.5)
    own, others = np.array([1, 1, 0]) + 0.5, np.array([0, 1, 2]) + 0.5
    assert found[0] == pytest.approx(np.log(own / own.sum()) - np.log(others / others.sum()))


# --- proportions


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("sharpness", [1.0, 3.0])
def test_posteriors_with_proportions_are_tilted_and_nearest(labels: int, sharpness: float) -> None:
    scores, shares = RNG.normal(size=(7, labels)), RNG.dirichlet(5 * np.ones(labels))
    found = with_proportions(scores, shares, sharpness=sharpness, tolerance=1e-9)
    assert found.posterior.mean(axis=0) == pytest.approx(shares, abs=1e-6)
    assert found.posterior == pytest.approx(softmax(sharpness * scores + found.offsets), abs=1e-6)
    p = softmax(sharpness * scores)
    own = float((found.posterior * np.log(found.posterior / p)).sum())
    assert found.divergence == pytest.approx(own, abs=1e-6)
    for _ in range(50):  # no other posteriors with these proportions are nearer
        move = RNG.normal(size=p.shape) * 0.02
        move -= move.mean(axis=0)
        move -= move.mean(axis=1, keepdims=True)
        other = found.posterior + move
        if (other > 0).all():
            assert float((other * np.log(other / p)).sum()) >= own - 1e-9


def test_sharp_posteriors_are_the_best_items_of_each_label() -> None:
    scores = np.stack([np.zeros(10), RNG.permutation(10) / 3], axis=1)
    sharp = with_proportions(scores, [0.7, 0.3], sharpness=300.0).posterior[:, 1]
    assert (sharp > 0.5).sum() == 3
    assert set(np.flatnonzero(sharp > 0.5)) == set(np.argsort(-scores[:, 1])[:3])


def test_proportions_hold_where_all_items_are_wholly_sure() -> None:
    for far in (30.0, 1e3, 1e6):
        found = with_proportions([[far, -far]] * 5, [0.4, 0.6])
        assert found.posterior.mean(axis=0) == pytest.approx([0.4, 0.6], abs=1e-3)
    with pytest.raises(ParameterError, match="finite"):
        with_proportions([[np.nan, 0.0]], [0.5, 0.5])


def test_a_label_without_share_is_given_to_nothing() -> None:
    found = with_proportions(np.zeros((4, 3)), [0.5, 0.0, 0.5]).posterior
    assert found[:, 1].tolist() == [0.0] * 4
    assert with_proportions(np.zeros((0, 2)), [0.5, 0.5]).posterior.shape == (0, 2)
    with pytest.raises(ParameterError, match="sum to 1"):
        with_proportions(np.zeros((4, 2)), [0.5, 0.6])


def test_em_finds_the_most_likely_proportions() -> None:
    posteriors, trained = RNG.dirichlet([0.5, 0.5], size=400), np.array([0.4, 0.6])
    found = em_proportions(posteriors, trained)

    def likelihood(share: float) -> float:
        return float(np.log((posteriors / trained) @ np.array([share, 1 - share])).sum())

    grid = np.linspace(0.01, 0.99, 197)
    assert found[0] == pytest.approx(grid[np.argmax([likelihood(share) for share in grid])], abs=0.006)
    assert em_proportions(np.tile(trained, (5, 1)), trained) == pytest.approx(trained)  # nothing is known


def test_few_items_move_proportions_little() -> None:
    posteriors, trained = np.tile([0.6, 0.4], (20, 1)), np.array([0.5, 0.5])
    assert em_proportions(posteriors, trained)[0] > 0.99
    held = em_proportions(posteriors, trained, strength=50)
    grid = np.linspace(0.01, 0.99, 981)
    values = [20 * np.log(share * 1.2 + (1 - share) * 0.8) + 25 * np.log(share * (1 - share)) for share in grid]
    assert held[0] == pytest.approx(grid[np.argmax(values)], abs=1e-3)
    many = em_proportions(np.tile(posteriors, (500, 1)), trained, strength=50)
    assert many[0] > 0.97


def test_both_estimates_find_a_shift_of_labels_alone() -> None:
    means, trained = np.array([-1.0, 1.0]), np.array([0.5, 0.5])

    def items(share: float, n: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
        y = (RNG.random(n) < share).astype(int)
        x = RNG.normal(means[y])
        return y, softmax(np.stack([-x, x], axis=1))

    y, known = items(0.5, 4000)
    _, new = items(0.8, 4000)
    assert em_proportions(new, trained)[1] == pytest.approx(0.8, abs=0.04)
    assert confusion_proportions(known, y, new)[1] == pytest.approx(0.8, abs=0.04)
    with pytest.raises(ParameterError, match="each label"):
        confusion_proportions(known, np.zeros_like(y), new)


def test_stable_words_move_with_labels_and_not_otherwise() -> None:
    """Word 0 is of one label, 1 of the other; 2 is neutral and stays, 3 is neutral and becomes rare."""
    known = Sparse.of([[0, 2, 3]] * 40 + [[1, 2, 3]] * 40, 5)
    new = Sparse.of([[0, 2]] * 57 + [[1, 2]] * 18 + [[0, 2, 3]] * 3 + [[1, 2, 3]] * 2, 5)
    targets = np.repeat(np.eye(2), 40, axis=0)
    assert stable_features(known, targets, new, [0.75, 0.25], window=0.3).tolist() == [True, True, True, False, False]
    assert not stable_features(known, targets, new, [0.25, 0.75], window=0.3)[1]


# --- the classifier


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_self_training_learns_words_that_only_the_new_domain_has(share: float) -> None:
    books, pans = samples.reviews("books", 300), samples.reviews("kitchen", 300, share=share)
    others = samples.reviews("kitchen", 300, share=share, seed=1)
    base = DocumentClassifier("none").fit(books, pans)
    adapted = DocumentClassifier().fit(books, pans)
    assert float(adapted.score(others)) > float(base.score(others)) + 2
    assert adapted.prior_[1] == pytest.approx(share, abs=0.1)
    labels = adapted.predict(["The coating peels. The motor burned out.", "The blades stay sharp. Solid steel."])
    assert labels == ("neg", "pos")
    given = DocumentClassifier(prior={"pos": share, "neg": 1 - share}).fit(books, pans)
    assert given.prior_.tolist() == pytest.approx([1 - share, share])


def test_titles_count_by_themselves(tmp_path: Path) -> None:
    """A word says in the title what it does not in the text: learnt where columns are seen, and not else."""
    rows = []
    for k in range(60):
        good, other = k % 2, k // 2 % 2
        title = f"great {'xyz'[k % 3]}" if good else "poor"
        rows.append(
            ("pos" if good else "neg", title, f"{'great' if other else 'so'} it is a long text {k % 7} of words")
        )
        if not good:
            rows.append(("neg", "poor", "great it is a long text of words"))
    documents = LabelledDocuments.of(rows)
    new = LabelledDocuments.of([(None, "great", "it is a long text"), (None, "it", "is a great long text")])
    seen = DocumentClassifier("none", min_count=2, folds=2).fit(documents)
    joined = DocumentClassifier("none", min_count=2, folds=2, own_columns=False).fit(documents)
    assert seen._fitted.features.columns == (0,)
    assert np.ptp(seen.predict_proba(new)[:, 1]) > np.ptp(joined.predict_proba(new)[:, 1]) + 0.1
    seen.save(tmp_path / "m")
    assert np.array_equal(store.load(tmp_path / "m").predict_proba(new), seen.predict_proba(new))
    plain = [" ".join(row[1:]) for row in rows[:4]]  # texts of one column have no titles
    assert seen.predict_proba(plain).shape == (4, 2)


def test_without_unlabelled_documents_all_methods_are_one() -> None:
    books, others = samples.reviews("books", 60), samples.reviews("books", 20, seed=1)
    base = DocumentClassifier("none", min_count=2).fit(books)
    for more in (None, []):
        same = DocumentClassifier(min_count=2).fit(books, more)
        assert np.array_equal(same.predict_proba(others), base.predict_proba(others))


def test_a_label_that_no_new_document_has_is_not_given() -> None:
    rows = [(label, f"{label} word{k} {label}ish x{k % 5}") for k in range(20) for label in ("a", "b", "c")]
    texts = [text for _, text in rows]
    found = DocumentClassifier(min_count=1, folds=3, rounds=1, prior=["a=1", "b=1", "c=0"]).fit(rows, texts)
    assert set(found.predict([*texts, "cish c"])) == {"a", "b"}
    two = DocumentClassifier(min_count=1, folds=3, rounds=1, prior=["a=1", "b=0"])
    assert set(two.fit(rows[::3] + rows[1::3], texts).predict(["bish b", ""])) == {"a"}


def test_labels_of_unlabelled_documents_are_not_looked_at() -> None:
    books, pans = samples.reviews("books", 60), samples.reviews("kitchen", 60)
    swapped = pans.with_labels(["pos" if label == "neg" else "neg" for label in pans.labels])
    one, other = (DocumentClassifier(rounds=1).fit(books, target).predict_proba(pans) for target in (pans, swapped))
    assert np.array_equal(one, other)


def test_more_than_two_labels(tmp_path: Path) -> None:
    rows = [(label, f"{label} word{k} {label}ish x{k % 5}") for k in range(20) for label in ("a", "b", "c")]
    for loss in ("huber", "logistic"):
        found = DocumentClassifier(min_count=1, folds=3, loss=loss, prior=["a=1", "b=1", "c=1"]).fit(
            rows, [text for _, text in rows]
        )
        assert found.predict(["b bish", "cish", "aish a"]) == ("b", "c", "a")
        assert found.predict_proba(["b", ""]).sum(axis=1) == pytest.approx([1, 1])
        assert found.prior_.tolist() == pytest.approx([1 / 3] * 3)
    found.save(tmp_path / "m")
    assert store.load(tmp_path / "m").predict_proba(["b bish"]) == pytest.approx(found.predict_proba(["b bish"]))


def test_what_makes_no_sense_is_refused() -> None:
    books = samples.reviews("books", 20)
    with pytest.raises(DocumentsError, match="1 label among 2 documents"):
        DocumentClassifier().fit([("pos", "a"), ("pos", "b"), (None, "c")])
    with pytest.raises(DocumentsError, match="no word is in 1000 documents or more"):
        DocumentClassifier(min_count=1000).fit(books, books)
    with pytest.raises(ParameterError, match="prior should have a share for each label, neg, pos"):
        DocumentClassifier(prior={"pos": 1.0}, min_count=1).fit(books, books)
    with pytest.raises(ParameterError, match="prior should be shares"):
        DocumentClassifier(prior=["pos"]).fit(books, books)
    with pytest.raises(ParameterError, match="give LabelledDocuments"):
        DocumentClassifier().fit("books.tsv")
    with pytest.raises(UsageError, match="fit first"):
        DocumentClassifier().predict(["a"])


# --- commands


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["sample", "reviews", "-q"]) == 0
    return tmp_path


def test_commands(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["adapt", "train", "reviews.books.tsv", "--unlabelled", "reviews.kitchen.tsv", "--save", "m"]
    assert main([*line, "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["columns"] == {"label": 0, "text": [1]}
    assert "taken to be neg" in told.err
    assert main(["adapt", "apply", "m", "reviews.kitchen.tsv", "-o", "out.tsv", "-q"]) == 0
    first = (tables / "out.tsv").read_text().splitlines()[0].split("\t")
    assert len(first) == 4
    assert first[2] in ("neg", "pos")
    assert 0.5 <= float(first[3]) <= 1
    assert main(["adapt", "score", "out.tsv", "--label", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    low, high = found["intervals"]["accuracy"]
    assert 75 < low < found["accuracy"] < high <= 100
    assert found["n"] == 200


def test_labels_in_the_file_are_not_looked_at(tables: Path) -> None:
    """With other labels, or words in place of them, or a heading, what is predicted is the same."""
    assert main(["adapt", "train", "reviews.books.tsv", "--method", "none", "--save", "m", "-q"]) == 0
    rows = (tables / "reviews.kitchen.tsv").read_text().splitlines()
    other = "".join(f"?\t{row.split(chr(9))[1]}\n" for row in rows)
    (tables / "other.tsv").write_text(other)
    (tables / "headed.tsv").write_text("x\tbody\n" + other)
    found = []
    lines = [["reviews.kitchen.tsv"], ["other.tsv"], ["headed.tsv", "--heading"], ["headed.tsv", "--text", "body"]]
    for line in lines:
        assert main(["adapt", "apply", "m", *line, "-o", "out.tsv", "-q"]) == 0
        written = (tables / "out.tsv").read_text().splitlines()
        found.append([row.split("\t")[-2:] for row in written if not row.startswith("x\t")])
    assert found[0] == found[1] == found[2] == found[3]
    assert (tables / "out.tsv").read_text().splitlines()[0] == "x\tbody\tpredicted\tprobability"
    assert main(["adapt", "score", "out.tsv", "--label", "x", "--json", "-o", "s.json"]) == 0
    assert json.loads((tables / "s.json").read_text())["accuracy"] == 0


def test_what_was_not_done_is_said(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["adapt", "train", "reviews.books.tsv", "--save", "m"]) == 0
    assert "nothing was adapted: give documents of the new domain, --unlabelled TARGET" in capsys.readouterr().err
    (tables / "headed.tsv").write_text("kind\ttext\n" + (tables / "reviews.books.tsv").read_text())
    given = ["--method", "none", "--unlabelled", "reviews.kitchen.tsv"]
    assert main(["adapt", "train", "headed.tsv", *given, "--save", "n"]) == 0
    told = capsys.readouterr().err
    assert "no other line has the label of line 1, kind" in told
    assert "taken to be" not in told  # proportions are of self-training


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        ("train reviews.books.tsv --label 7 --save m", 1, "there is no column 7"),
        ("train reviews.books.tsv --prior pos --save m", 2, "prior should be shares"),
        ("train reviews.books.tsv --method none --rounds 3 --save m", 2, "rounds says nothing with method='none'"),
        ("train none.tsv --save m", 2, "none.tsv: no such file"),
        ("apply reviews.books.tsv reviews.books.tsv", 1, "a saved model is a folder"),
        ("train reviews.books.tsv --text 0,1 --save m", 2, "column 0 is the label"),
        ("train reviews.books.tsv --method scl --save m", 2, "needs documents of the new domain: --unlabelled TARGET"),
        ("train reviews.books.tsv --unlabelled plain.txt --save m", 1, "plain.txt, line 1: there is no column 1"),
        ("train plain.txt --save m", 1, "plain.txt: no document has a label"),
        ("train empty.tsv --save m", 1, "empty.tsv: has no documents"),
        ("train blank.tsv --save m", 1, "blank.tsv, line 2: is empty"),
        ("diagnose reviews.books.tsv empty.tsv", 1, "empty.tsv: has no documents"),
        ("score reviews.books.tsv", 1, "line 1: the last two columns should be a label and its probability"),
        ("train reviews.books.tsv --label 1 --text 0 --save m", 1, "are too many for"),
        ("train reviews.books.tsv --target-labels plain.tsv --save m", 1, "'POS'; there labels are neg, pos. Write"),
        ("score bare.tsv", 1, "bare.tsv: column 0 is empty. Name the column"),
    ],
)
def test_wrong_calls(tables: Path, capsys: pytest.CaptureFixture[str], line: str, status: int, words: str) -> None:
    (tables / "plain.txt").write_text("good\nbad\n")
    (tables / "plain.tsv").write_text("POS\tgood\n")
    (tables / "bare.tsv").write_text("\tgood\tpos\t0.75\n")
    (tables / "empty.tsv").write_text("")
    (tables / "blank.tsv").write_text("pos\tgood\n\nneg\tbad\n")
    assert main(["adapt", *line.split()]) == status
    assert words in capsys.readouterr().err


def test_what_is_odd_about_a_score_is_said(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tables / "out.tsv").write_text("pos\tA\tpos\t0.75\n\tB\tneg\t0.75\nneg\tC\tpos\t0.75\n")
    assert main(["adapt", "score", "out.tsv", "--json"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert (found["n"], found["accuracy"]) == (2, 50.0)
    assert "1 document without a label in column 0: passed over" in told.err
    assert main(["adapt", "score", "out.tsv", "--label", "1"]) == 0
    told = capsys.readouterr()
    assert "no label of column 1 is ever among those predicted, neg, pos: is it the right column?" in told.err
    (tables / "many.tsv").write_text("".join(f"label{k}\ttext\tpos\t0.75\n" * (1 + (k == 40)) for k in range(50)))
    assert main(["adapt", "score", "many.tsv", "-q"]) == 0
    told = capsys.readouterr()
    assert "and 21 labels of fewer documents" in told.out
    assert "label40" in told.out
    assert not told.err


def test_proportions_of_wholly_sure_posteriors_and_of_labels_that_were_not_there() -> None:
    sure = np.eye(2)[[0] * 6 + [1] * 2]
    assert em_proportions(sure, [0.5, 0.5]) == pytest.approx([0.75, 0.25], abs=1e-6)
    mixed = np.concatenate([[[1.0, 0.0]], np.tile([0.1, 0.9], (20, 1))])
    assert em_proportions(mixed, [0.5, 0.5])[1] > 0.9  # one sure item does not rule out what the others say
    assert np.isfinite(em_proportions(np.zeros((3, 2)), [0.5, 0.5])).all()
    assert em_proportions(np.zeros((0, 2)), [0.3, 0.7]) == pytest.approx([0.3, 0.7])
    for trained in ([0.0, 1.0], [1.0, 0.0]):
        with pytest.raises(ParameterError, match="among those learnt from"):
            em_proportions(sure, trained)
    with pytest.raises(ParameterError, match="finite"):
        em_proportions([[np.nan, 1.0]], [0.5, 0.5])
