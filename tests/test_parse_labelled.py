"""Labels found jointly with trees: sums and posteriors by enumeration, gradients by differences, learning, keeping."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isogloss import cli, samples, store
from isogloss.data import Treebank
from isogloss.errors import ModelError, ParameterError
from isogloss.features import KeyTable
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.inference import Shape
from isogloss.tasks.parse.labelled import JointScorer, LabelledTrees, LabelScorer
from isogloss.tasks.parse.labels import gold_labels
from isogloss.tasks.parse.scoring import FeatureSet, PartScorer, count_keys
from isogloss.tasks.parse.training import KnownHeads, TreeModel
from isogloss.tasks.parse.words import columns_of, encode

TINY = Treebank.of(
    [
        [("the", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("sleeps", "VERB", 0, "root")],
        [("eat", "VERB", 0, "root"), ("two", "NUM", 3, "det"), ("cats", "NOUN", 1, "obj")],
    ]
)
SENTENCES = np.arange(2)


class Model:
    """Parts and labels over all links of `TINY`, with random weights."""

    def __init__(self, treebank: Treebank = TINY, *, seed: int = 0, scale: float = 0.3) -> None:
        rng, columns = np.random.default_rng(seed), columns_of(treebank)
        self.words, every = encode(treebank, columns), Candidates.all(treebank.lengths)
        self.names, self.gold = gold_labels(treebank)
        features = FeatureSet.of(columns)
        table = KeyTable.of(count_keys(self.words, features, every, (), treebank.heads))
        empty = LabelScorer.empty(self.words, columns, self.names, treebank.heads, self.gold, treebank.offsets)
        self.all = rng.normal(scale=scale, size=len(table) + len(empty.weights)).astype(np.float32)
        self.weights = self.all[len(table) :]  # of labels
        self.scorer = PartScorer(features, table, self.all[: len(table)])
        self.labels, self.parts, self.offsets = empty.with_weights(self.weights), TreeParts.of(every), treebank.offsets
        self.every = every

    def trees(self, shape: Shape) -> LabelledTrees:
        trees = TreeModel(self.scorer, self.words, self.every, shape, SENTENCES)
        return LabelledTrees(trees, self.labels, self.gold)

    def asked(self, heads: np.ndarray, shape: Shape, items: np.ndarray = SENTENCES) -> tuple[float, Any]:
        """Log-likelihood and gradient of some sentences."""
        known = KnownHeads(heads, self.offsets, SENTENCES)
        return self.trees(shape).likelihood(self.all, known, items)

    def label_scores(self) -> np.ndarray:
        """float64[n_links, n_labels]: log-sum + log probability is the score of a label."""
        sums, chances = self.labels.chances(self.words, SENTENCES, self.parts)
        return np.asarray(sums[:, None] + np.log(chances))


def all_labelled_trees(
    model: Model, s: int, *, projective: bool
) -> list[tuple[tuple[int, ...], tuple[int, ...], float]]:
    """Heads, labels and weight of every labelled tree of a sentence with three words."""
    links = model.parts.link_offsets
    scores = model.scorer.scores(model.words, SENTENCES, model.parts)[model.parts.link_places]
    labelled, out = model.label_scores(), []
    number = {(int(model.parts.head[a]), int(model.parts.child[a])): a for a in range(int(links[s]), int(links[s + 1]))}
    for tree in itertools.product(range(4), repeat=3):
        if tree.count(0) != 1 or not all(reaches(tree, w) for w in (1, 2, 3)) or (projective and crosses(tree)):
            continue
        own = [number[h, c] for c, h in enumerate(tree, 1)]
        for labels in itertools.product(range(len(model.names)), repeat=3):
            total = sum(scores[a] + labelled[a, r] for a, r in zip(own, labels, strict=True))
            out.append((tree, labels, float(np.exp(total))))
    return out


def reaches(tree: tuple[int, ...], word: int) -> bool:
    for _ in range(len(tree) + 1):
        if word == 0:
            return True
        word = tree[word - 1]
    return False


def crosses(tree: tuple[int, ...]) -> bool:
    spans = [sorted((c, h)) for c, h in enumerate(tree, 1)]
    return any(a < c < b < d for (a, b), (c, d) in itertools.permutations(spans, 2))


@pytest.mark.parametrize("projective", [True, False])
def test_posteriors_are_those_of_all_labelled_trees(projective: bool) -> None:
    model = Model()
    shape = Shape("projective" if projective else "tree")
    scores = JointScorer(model.scorer, model.labels).scores(model.words, SENTENCES, model.parts)
    trees = shape.trees(model.parts, scores)
    _, chances = model.labels.chances(model.words, SENTENCES, model.parts)
    posteriors = trees.marginals().values[model.parts.link_places, None] * chances
    for s in range(2):
        every = all_labelled_trees(model, s, projective=projective)
        total = sum(weight for *_, weight in every)
        assert trees.log_partition()[s] == pytest.approx(np.log(total))
        for a in range(int(model.parts.link_offsets[s]), int(model.parts.link_offsets[s + 1])):
            h, c = int(model.parts.head[a]), int(model.parts.child[a])
            for r in range(len(model.names)):
                slow = sum(w for tree, labels, w in every if tree[c - 1] == h and labels[c - 1] == r)
                assert posteriors[a, r] == pytest.approx(slow / total)


def test_scores_of_labels_are_sums_of_the_weights_of_rows() -> None:
    """A change of one weight moves its label alone, at the links that have its feature."""
    model = Model()
    before = model.label_scores()
    for entry in (0, len(model.weights) // 2):
        model.weights[entry] += 1.0
        change = model.label_scores() - before
        model.weights[entry] -= 1.0
        moved = change.round(4) != 0
        assert moved.any() and set(np.flatnonzero(moved.any(axis=0))) == {int(model.labels.labels[entry])}
        assert change[moved] == pytest.approx(1.0, abs=1e-5)
    sums, best = model.labels.log_sums(model.words, SENTENCES, model.parts)
    assert sums == pytest.approx(np.log(np.exp(before).sum(axis=1)))
    assert best == pytest.approx(np.exp(before - sums[:, None]).max(axis=1))


def test_weights_are_of_pairs_met_on_gold_links() -> None:
    model = Model()
    links = TreeParts.of(Candidates(TINY.offsets, np.arange(7), TINY.heads))
    values = np.zeros((6, len(model.names)))
    values[np.arange(6), model.gold] = 1.0
    found = model.labels.gradient(model.words, SENTENCES, links, values)
    met = np.concatenate([found.numbers[a:b] for a, b in zip(found.places, found.ends, strict=True)])
    assert set(met.tolist()) == set(range(len(model.weights)))  # each has a gold link that it is of, with its label


@pytest.mark.parametrize("projective", [True, False])
def test_loss_of_what_is_known_sums_over_the_labelled_trees_that_have_it(projective: bool) -> None:
    model = Model(seed=2)
    heads = np.array([-1, 3, 0, 0, -1, -1], np.int32)
    model.gold[[1, 5]] = -1  # a head without a label; neither; labels without a head at 0 and 4
    for s in range(2):
        value, _ = model.asked(heads, Shape("projective" if projective else "tree"), np.array([s]))
        every = all_labelled_trees(model, s, projective=projective)
        known, labels = heads[3 * s : 3 * s + 3], model.gold[3 * s : 3 * s + 3]
        right = sum(
            w
            for tree, given, w in every
            if all(k in (-1, h) for k, h in zip(known, tree, strict=True))
            and all(k in (-1, r) for k, r in zip(labels, given, strict=True))
        )
        assert value == pytest.approx(np.log(right / sum(w for *_, w in every)))


def summed(gradient: Any, n: int) -> np.ndarray:
    out = np.zeros(n)
    for start, end in zip(gradient.places, gradient.ends, strict=True):
        np.add.at(out, gradient.numbers[start:end], gradient.values[start:end])
    return out


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("partial", [True, False])
def test_gradients_are_derivatives_of_the_loss(projective: bool, partial: bool) -> None:
    model, shape = Model(seed=1), Shape("projective" if projective else "tree")
    heads = TINY.heads.copy()
    if partial:
        heads[[0, 3]] = -1
        model.gold = np.where(np.arange(6) % 3 == 1, -1, model.gold)
    slopes = summed(model.asked(heads, shape)[1], len(model.all))
    border = len(model.all) - len(model.weights)
    for weights, found in ((model.weights, slopes[border:]), (model.scorer.weights, slopes[:border])):
        order = np.argsort(-np.abs(found))
        for i in order[:: max(1, len(order) // 12)].tolist():
            before, losses = float(weights[i]), []
            for step in (0.0625, -0.0625):
                weights[i] = before + step
                losses.append(model.asked(heads, shape)[0])
            weights[i] = before
            assert found[i] == pytest.approx((losses[0] - losses[1]) / 0.125, abs=3e-3)


def test_sentences_that_no_tree_fits_ask_nothing_of_labels() -> None:
    four = Treebank.of([[("a", "X", 3, "x"), ("b", "X", 4, "y"), ("c", "X", 0, "x"), ("d", "X", 3, "y")]])
    model = Model(four.take([0, 0]))
    heads = np.array([3, 4, -1, -1] * 2, np.int32)  # 3→1 and 4→2 cross
    value, gradient = model.asked(heads, Shape("projective"))
    assert value == 0 and not summed(gradient, len(model.all)).any()


def test_links_share_their_value_among_their_labels() -> None:
    """Of any objective over trees with labels summed out, by finite differences of one link's posterior."""
    model, shape = Model(seed=4), Shape("projective")
    trees, one = model.trees(shape), np.array([0])
    batch = trees.batch(model.all, one)
    cost = np.random.default_rng(0).normal(size=batch.layout.n_parts)
    moved = batch.hessian_vector(batch.scores.like(cost)).values
    found = summed(trees.gradient(one, batch, moved), len(model.all))
    for i in np.argsort(-np.abs(found))[:: max(1, len(found) // 9)].tolist():
        before, values = float(model.all[i]), []
        for step in (0.03125, -0.03125):
            model.all[i] = before + step
            values.append(float(cost @ trees.batch(model.all, one).marginals().values))
        model.all[i] = before
        assert found[i] == pytest.approx((values[0] - values[1]) / 0.0625, abs=3e-3)


# --- the parser -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trees() -> Treebank:
    return Treebank.from_bytes(samples.trees("en-de", "target").encode(), "de.conllu")


@pytest.fixture(scope="module")
def parser(trees: Treebank) -> DependencyParser:
    return DependencyParser(labels="joint", iterations=6).fit(trees)


@pytest.mark.parametrize("options", [{}, {"projective": False}, {"order": 2}, {"prune": 0.0}])
def test_small_treebanks_are_learnt_by_heart(trees: Treebank, options: dict[str, Any]) -> None:
    parser = DependencyParser(labels="joint", iterations=6, **options).fit(trees)
    score = parser.score(trees)
    assert score["uas"] > 98 and score["las"] > 98 and parser.trace_[-1] < parser.trace_[0]
    learnt = parser._learnt
    own, _ = learnt.joint.predict(encode(trees, learnt.columns), trees.heads, trees.offsets)
    right = [trees.strings("deprel", s)[i] for s in range(len(trees)) for i in range(int(trees.lengths[s]))]
    assert np.mean([own.vocabulary[i] == name for i, name in zip(own.ids.tolist(), right, strict=True)]) > 0.97


def test_threads_give_the_same(trees: Treebank) -> None:
    one, two = (DependencyParser(labels="joint", iterations=2, threads=n).fit(trees) for n in (1, 2))
    assert np.array_equal(one._learnt.scorer.table.slots, two._learnt.scorer.table.slots)
    assert np.array_equal(one._learnt.joint.weights, two._learnt.joint.weights)
    assert one.predict(trees, confidence=True).to_bytes() == two.predict(trees, confidence=True).to_bytes()


def test_labels_change_what_is_learnt_of_trees(trees: Treebank, parser: DependencyParser) -> None:
    other = DependencyParser(iterations=6, labels="second").fit(trees)
    assert other._learnt.joint is None
    assert not np.array_equal(parser.predict_proba(trees).values, other.predict_proba(trees).values)
    chances = parser.predict_proba(trees)
    assert chances[3][:, 1:].sum(axis=0) == pytest.approx(1.0)


def test_the_best_pass_has_its_own_labels(trees: Treebank) -> None:
    parser = DependencyParser(labels="joint", iterations=5).fit(trees, trees.part(0, 8))
    assert len(parser.tuning_) and parser.score(trees)["las"] > 95


def test_part_of_heads_and_labels_is_enough(trees: Treebank) -> None:
    heads = trees.heads.copy()
    heads[::3] = -1
    names = [label for s in range(len(trees)) for label in trees.strings("deprel", s)]
    partial = trees.with_columns(heads=heads, deprel=["_" if i % 4 == 1 else name for i, name in enumerate(names)])
    parser = DependencyParser(labels="joint", iterations=8).fit(partial)
    assert "_" not in parser.labels_
    found = parser.predict(trees)
    known = heads >= 0
    assert np.mean(found.heads[known] == trees.heads[known]) > 0.97
    assert np.mean(found.heads[~known] == trees.heads[~known]) > 0.4
    assert parser.score(trees)["las"] > 60


def test_without_labels_trees_are_learnt_alone(trees: Treebank) -> None:
    bare = trees.with_columns(deprel=["_"] * trees.n_words)
    parser = DependencyParser(labels="joint", iterations=4).fit(bare)
    assert parser._learnt.joint is None and parser.labels_ == () and parser.score(trees)["uas"] > 90


def test_saved_parsers_are_the_same(trees: Treebank, parser: DependencyParser, tmp_path: Path) -> None:
    parser.save(tmp_path / "model")
    again = DependencyParser.load(tmp_path / "model")
    assert again.labels == "joint"
    assert again.predict(trees, confidence=True).to_bytes() == parser.predict(trees, confidence=True).to_bytes()
    saved = store.read(tmp_path / "model")
    arrays = {**saved.arrays, "joint.rows": saved.arrays["joint.rows"][:-1]}
    store.save(tmp_path / "bad", kind=saved.kind, options=saved.options, arrays=arrays, meta=saved.meta)
    with pytest.raises(ModelError, match=r"bad.*(array|no table)"):
        DependencyParser.load(tmp_path / "bad")


def test_options_are_checked_and_the_command_line_has_them(trees: Treebank, tmp_path: Path) -> None:
    for options in ({"labels": "third"}, {"labels": "joint", "trainer": "mira"}):
        with pytest.raises(ParameterError, match=r"labels"):
            DependencyParser(**options).check_params()
    usual = {trainer: DependencyParser(trainer=trainer).labelling for trainer in ("likelihood", "mira", "risk")}
    assert usual == {"likelihood": "joint", "mira": "second", "risk": "second"}
    trees.write(tmp_path / "train.conllu")
    given = ["parse", "train", str(tmp_path / "train.conllu"), "--save", str(tmp_path / "model")]
    assert cli.main([*given, "--labels", "joint", "--iterations", "2", "-q"]) == 0
    assert DependencyParser.load(tmp_path / "model").options_["labels"] == "joint"
    assert cli.main([*given, "--labels", "third"]) == 2
