"""What a parser sees beside words and tags: codes of words, marks on links; and what it is to look at most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from isogloss.data import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ModelError, ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.loglinear import Likelihood
from isogloss.learners.margin import Mira
from isogloss.learners.models import LinearModel, Scaled
from isogloss.structures import Chain, Stack
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse._numba import features as kernels
from isogloss.tasks.parse.adapting import GivenLinks, OtherParser
from isogloss.tasks.parse.adapting.stacking import CROSSES, marks_of, out_of_fold
from isogloss.tasks.parse.cutting import LONGEST
from isogloss.tasks.parse.features import DYNAMIC
from isogloss.tasks.parse.focus import Focus
from isogloss.tasks.parse.inference import Shape
from isogloss.tasks.parse.scoring import FeatureSet, PartScorer
from isogloss.tasks.parse.training import KnownHeads
from isogloss.tasks.parse.views import MOST_VIEWS, Sight, View, WordTable, seen_by, templates_of_atoms
from isogloss.tasks.parse.words import ATOMS, PAD, columns_of, encode
from test_parse import MASK, factor, mix, start_of, string_code


class Marking(View):
    """Marks that a test gives."""

    kind = "test"
    marks_links = True

    def __init__(self, rng: np.random.Generator, most: int = 4) -> None:
        self.rng, self.most = rng, most

    def see(self, treebank: Treebank) -> Sight:
        grids = [self.rng.integers(0, self.most, (n + 1, n + 1)) for n in treebank.lengths.tolist()]
        return Sight.nothing(treebank.n_words)._replace(marks=(Stack.of(grids, "marks", 2),))

    def to_parts(self) -> Any:
        return {}, {"kind": self.kind}

    @classmethod
    def from_parts(cls, arrays: Any, meta: Any) -> Any:
        raise NotImplementedError


def table_of(trees: Treebank, name: str = "kind") -> WordTable:
    words = sorted({word.lower() for s in range(len(trees)) for word in trees.words(s)})
    values = np.array([[len(word) % 3, ord(word[0]) % 2] for word in words[::2]], np.int32)
    return WordTable((name, "odd"), Vocabulary(words[::2]), values)


def keys_of(words: Any, features: FeatureSet, s: int, head: int, child: int) -> list[int]:
    begin, terms, factors, dynamic, places = features.numbers()[0]
    n, first = int(words.lengths[s]), int(words.starts[s]) + PAD
    sides = np.empty((2, n + 1, len(begin)), np.uint64)
    kernels.sides(words.codes, first, n, begin, terms, factors, sides[0], sides[1])
    room = kernels.most_keys(len(begin), words.features.shape[1])
    codes, which = np.empty(room, np.uint64), np.zeros(room, np.int64)
    m = kernels.keys_of_link(head, child, first, n, words.arrays, *sides, dynamic, places, codes, which)
    assert m <= room
    return [int(code) for code in codes[:m]]


def test_codes_and_marks_add_keys_and_change_no_other(trees: Treebank) -> None:
    views: list[View] = [table_of(trees), Marking(np.random.default_rng(0)), Marking(np.random.default_rng(1), 256)]
    sight = seen_by(views, trees)
    plain = columns_of(trees)
    columns = plain._replace(more=sight.names)
    words, features = encode(trees, columns, None, sight), FeatureSet.of(columns)
    usual, old = encode(trees, plain), FeatureSet.of(plain)
    assert columns.atoms == (*ATOMS, "kind", "odd") and words.codes.shape[1] == len(ATOMS) + 2
    extra = features.links.names[len(old.links) :]
    assert extra == templates_of_atoms(("kind", "odd"))["links"]
    for s in (0, 7):
        n = int(trees.lengths[s])
        for head in range(n + 1):
            for child in {1, n} - {head}:
                found = keys_of(words, features, s, head, child)
                before = keys_of(usual, old, s, head, child)
                fixed = len(old.links)
                assert found[:fixed] == before[:fixed]
                assert found[fixed : fixed + len(extra)] == slow_atoms(trees, s, head, child, extra, columns, sight)
                rest = found[fixed + len(extra) :]
                assert rest[: len(before) - fixed] == before[fixed:]
                tags = [string_code("edge", "root"), *(string_code("tag", tag) for tag in trees.strings("upos", s))]
                wanted = []
                for k, stack in enumerate(sight.marks):
                    if mark := int(stack[s][head, child]):
                        pair = tags[head] * factor(0) + tags[child] * factor(1)
                        wanted.append(mix(start_of(DYNAMIC[8]) + (mark + 256 * k) * factor(0) & MASK))
                        wanted.append(mix(start_of(DYNAMIC[9]) + pair + (mark + 256 * k) * factor(2) & MASK))
                assert rest[len(before) - fixed :] == wanted


def slow_atoms(
    trees: Treebank, s: int, head: int, child: int, names: tuple[str, ...], columns: Any, sight: Sight
) -> list[int]:
    first, out = int(trees.offsets[s]), []

    def code(atom: str, place: int) -> int:
        if place == 0:
            return string_code("edge", "root")
        if atom in sight.names:
            return string_code("view", str(sight.values[first + place - 1, sight.names.index(atom)]))
        if atom == "tag":
            return string_code("tag", trees.strings("upos", s)[place - 1])
        row = int(encode(trees, columns, None, sight).starts[s]) + PAD + place
        return int(encode(trees, columns, None, sight).codes[row, ATOMS.index(atom)])

    for name in names:
        total = start_of(name)
        for k, term in enumerate(name.split(" & ")):
            role, _, atom = term.partition(".")
            total += code(atom, head if role == "head" else child) * factor(k)
        out.append(mix(total & MASK))
    return out


@pytest.fixture(scope="module")
def seeing(trees: Treebank) -> DependencyParser:
    other = OtherParser(DependencyParser(order=1, labels="second", iterations=2, prune=0), folds=2)
    return DependencyParser(order=2, iterations=3).fit(trees, views=[table_of(trees), other, GivenLinks(("NOUN",))])


def test_a_parser_keeps_its_views(trees: Treebank, seeing: DependencyParser, tmp_path: Path) -> None:
    seeing.save(tmp_path / "model")
    again = DependencyParser.load(tmp_path / "model")
    for text in (trees, Treebank.of([[], [("Hallo", "INTJ")], [("ein", "DET"), ("Neuwort", "NOUN")]])):
        one, two = seeing.predict(text), again.predict(text)
        assert np.array_equal(one.heads, two.heads) and one.to_bytes() == two.to_bytes()
        assert np.array_equal(seeing.predict_proba(text).values, again.predict_proba(text).values)
    assert again.explain(trees, 3, 1) == seeing.explain(trees, 3, 1)
    names = [entry["feature"] for entry in seeing.explain(trees, 3, 1)["head"]["features"]]
    assert any("mark=0" in name for name in names) and any(".kind=" in name for name in names)


def test_very_long_sentences_have_no_marks_and_are_parsed(trees: Treebank, seeing: DependencyParser) -> None:
    words = [(word, tag) for s in range(len(trees)) for word, tag in zip(trees.words(s), trees.strings("upos", s))]
    long = Treebank.of([(words * 9)[: LONGEST + 30], words[:5]])
    learnt = seeing._learnt
    from isogloss.tasks.parse.cutting import cut

    pieces = cut(long.offsets)
    assert len(pieces) == 4
    seen = learnt.encode(long, pieces)
    whole = int((np.diff(pieces)[:2] * (np.diff(pieces)[:2] + 1)).sum())
    assert not seen.marks[:whole].any() and seen.marks[whole:].any()
    assert seeing.predict(long).heads.min() >= 0


def test_marks_of_posteriors() -> None:
    beliefs = np.zeros((4, 4))
    beliefs[:, 1], beliefs[:, 2], beliefs[:, 3] = [0.0, 0, 0.95, 0.05], [0.6, 0.3, 0, 0.1], [0.0, 0.2, 0.4, 0.4]
    marks = marks_of(Stack.of([beliefs], "beliefs", 2))[0].astype(int)
    assert marks[:, 1].tolist() == [0, 0, 6, 1] and marks[:, 2].tolist() == [5, 2, 0, 2]
    assert marks[2, 3] == 4 and marks[1, 3] == 2  # the first of equally good ones is the best
    crossing = np.zeros((5, 5))
    crossing[3, 1], crossing[0, 2], crossing[0, 3], crossing[2, 4] = 1, 1, 1, 1  # 3 → 1, 2 → 4
    found = marks_of(Stack.of([crossing], "beliefs", 2))[0].astype(int)
    best = {1: 3, 2: 0, 3: 0, 4: 2}
    for child in range(1, 5):
        for head in range(5):
            if head in (child, best[child]):
                continue
            a, b = sorted((head, child))
            crosses = any(
                (a < x < b < y or x < a < y < b)
                for other, above in best.items() if other != child
                for x, y in [sorted((other, above))]
            )  # fmt: skip
            assert (found[head, child] == CROSSES) == crosses, (head, child)


def test_opinions_of_a_lesson_are_those_of_parsers_that_have_not_learnt_from_it(trees: Treebank) -> None:
    parser = DependencyParser(order=1, labels="second", iterations=2, seed=3)
    found = out_of_fold(parser, trees, 2)
    fold = np.random.default_rng(3).permutation(np.arange(len(trees)) % 2)
    other = DependencyParser(order=1, labels="second", iterations=2, seed=3).fit(trees.take(fold != 1))
    for s in np.flatnonzero(fold == 1).tolist():
        assert np.array_equal(found[s], other.predict_proba(trees[s : s + 1])[0])
    with pytest.raises(ParameterError, match="two sentences"):
        out_of_fold(parser, trees[:1], 2)
    with pytest.raises(ParameterError, match="folds"):
        OtherParser(parser, 1)


def test_an_oracle_finds_its_links(trees: Treebank) -> None:
    nouns = GivenLinks((), ("NOUN",))
    marks = nouns.see(trees).marks[0]
    for s in (0, 5):
        heads = trees.heads[trees.offsets[s] : trees.offsets[s + 1]]
        tags = trees.strings("upos", s)
        wanted = {(int(h), c + 1) for c, h in enumerate(heads) if h > 0 and tags[c] == "NOUN"}
        assert set(zip(*(axis.tolist() for axis in np.nonzero(marks[s])), strict=True)) == wanted
    plainer = trees.with_columns(feats=["_"] * trees.n_words)
    few, rest = plainer[:12], plainer[12:]
    options: dict[str, Any] = {"order": 1, "iterations": 20, "rate": 0.5, "prune": 0, "labels": "second"}
    options["templates"] = ["head.tag & child.tag"]  # words of twelve sentences would be learnt by heart instead
    plain, oracle = (DependencyParser(**options).fit(few, views=views) for views in ((), (nouns,)))
    own = np.concatenate([grid.any(axis=0)[1:] for grid in marks])[few.n_words :]
    right = [one.predict(rest).heads == rest.heads for one in (plain, oracle)]
    assert right[1][own].mean() > right[0][own].mean() + 0.1 and right[1].mean() > right[0].mean()
    assert (
        GivenLinks(("N*",)).see(trees).marks[0].values.sum() >= GivenLinks(("NOUN",)).see(trees).marks[0].values.sum()
    )


def test_views_that_do_not_fit_are_refused(trees: Treebank, tmp_path: Path, seeing: DependencyParser) -> None:
    for views, why in (
        ([table_of(trees), table_of(trees)], "names of their own"),
        ([table_of(trees, "lemma")], "names of their own"),
        ([GivenLinks()] * (MOST_VIEWS + 1), "at most 4"),
    ):
        with pytest.raises(ParameterError, match=why):
            DependencyParser(order=1).fit(trees, views=views)
    with pytest.raises(ParameterError, match="no checkpoints"):
        DependencyParser(order=1).fit(trees, views=[table_of(trees)], checkpoint=tmp_path / "c")
    arrays, meta = seeing._to_parts()
    for change in (
        {"views": [{"kind": "moon"}]},
        {"views": meta["views"][:1]},
        {"columns": meta["columns"] | {"more": ["kind"]}},
    ):
        if "moon" in str(change) or "columns" in change:
            with pytest.raises(ModelError):
                seeing._of_parts(arrays, meta | change)


# --- focus ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("trainer", "order"), [("likelihood", 2), ("risk", 1), ("mira", 1)])
def test_weights_of_one_change_nothing(trees: Treebank, trainer: str, order: int) -> None:
    words = np.ones(trees.n_words) if trainer != "likelihood" else None
    parsers = [DependencyParser(order=order, trainer=trainer, iterations=3) for _ in range(2)]
    parsers[0].fit(trees)
    parsers[1].fit(trees, focus=Focus(np.ones(len(trees)), words, lambda keys: np.ones(len(keys))))
    slots = [parser._learnt.scorer.table.slots for parser in parsers]
    assert np.array_equal(*slots)
    assert parsers[0].trace_ == pytest.approx(parsers[1].trace_)


def chains(seed: int) -> tuple[LinearModel, list[NDArray[np.int64]]]:
    rng = np.random.default_rng(seed)
    dists = [Chain(rng.normal(size=(n, 2, 2))) for n in (3, 1, 4)]
    rows = [rng.choice(6, rng.integers(0, 4), replace=False).tolist() for _ in range(sum(d.scores.size for d in dists))]
    return LinearModel(dists, Sparse.of(rows, 6)), [rng.integers(0, 2, len(d.scores)) for d in dists]


def test_an_item_that_counts_twice_is_as_two() -> None:
    model, gold = chains(0)
    weights = np.random.default_rng(1).normal(size=6)
    counted = Likelihood(model, gold=gold, counts=[2.0, 0.0, 0.5])
    plain = Likelihood(model, gold=gold)
    each = [plain.gradient(weights, np.array([k])) for k in range(3)]
    value, gradient = counted.gradient(weights, np.arange(3))
    dense = np.zeros(6)
    gradient.add_to(dense)
    wanted = np.zeros(6)
    for times, (_, one) in zip((2.0, 0.0, 0.5), each, strict=True):
        one.add_to(wanted, times)
    assert value == pytest.approx(2 * each[0][0] + 0.5 * each[2][0]) and dense == pytest.approx(wanted)
    other = np.zeros(6)
    assert counted.add_gradient(weights, other) == pytest.approx(value) and other == pytest.approx(wanted)
    for wrong in ([1.0, 1.0], [1.0, 1.0, -1.0], [1.0, 1.0, np.nan]):
        with pytest.raises(ParameterError, match="counts should be 3 numbers"):
            Likelihood(model, gold=gold, counts=wrong)


def test_scaled_features() -> None:
    model, gold = chains(2)
    scales = np.array([1.0, 0.0, 2.0, 0.5, 1.0, 3.0])
    scaled, weights = Scaled(model, scales), np.random.default_rng(3).normal(size=6)
    objective = Likelihood(scaled, gold=gold)
    value, gradient = objective.gradient(weights, np.arange(3))
    assert value == pytest.approx(Likelihood(model, gold=gold).gradient(weights * scales, np.arange(3))[0])
    dense = np.zeros(6)
    gradient.add_to(dense)
    for j in range(6):
        step = np.zeros(6)
        step[j] = 1e-6
        up, down = (objective.gradient(weights + sign * step, np.arange(3))[0] for sign in (1, -1))
        assert dense[j] == pytest.approx((up - down) / 2e-6, abs=1e-5)
    assert dense[1] == 0
    with pytest.raises(ParameterError, match="6 finite numbers"):
        Scaled(model, np.ones(5))


def test_all_features_times_a_constant_change_no_prediction_of_slack_free_mira() -> None:
    model, gold = chains(4)
    costs = [label_cost(dist, y) for dist, y in zip(model.structures, gold, strict=True)]
    found = []
    plain = model.within([Chain(0 * dist.scores) for dist in model.structures])
    for c in (1.0, 4.0):  # a power of two: rounding is the same
        learner = Mira(Scaled(plain, np.full(6, c)), gold, costs,
                       augmentation=(0.0, 0.0), batch=2)  # fmt: skip
        state = learner.init()
        for _ in range(4):
            state, _ = learner.step(state)
        found.append(state.weights)
    assert np.any(found[0]) and np.array_equal(found[0], 4.0 * found[1])


def label_cost(dist: Any, y: NDArray[np.int64]) -> Any:
    from isogloss.learners.margin import Cost

    cost = np.zeros(dist.scores.shape)
    for t, label in enumerate(y):
        cost[t] = np.arange(2) != label
    return Cost(cost)


def test_wrong_heads_cost_what_the_focus_says(trees: Treebank) -> None:
    few = trees[:5]
    rng = np.random.default_rng(6)
    words, sentences = rng.uniform(0, 3, few.n_words), rng.uniform(0, 3, len(few))
    offsets = few.offsets
    items = np.arange(len(few))
    known = KnownHeads(few.heads, offsets, items, Focus(sentences, words))
    parts = TreeParts.of(Candidates.all(few.lengths), (), items)
    scores = rng.normal(size=parts.n_parts)
    dist = Shape("projective").trees(parts, scores)
    each = words * np.repeat(sentences, few.lengths)
    found = rng.permutation(few.heads)
    costs, constants = known.costs(items, dist)
    total = constants.sum() + (costs * parts.indicate(few.heads)).sum()
    assert total == pytest.approx(0)
    heads = np.concatenate([np.concatenate([[0], np.arange(1, n)]) for n in few.lengths])  # a chain from the left
    total = constants.sum() + (costs * parts.indicate(heads)).sum()
    assert total == pytest.approx(each[heads != few.heads].sum()) and found is not None
    rivals = known.rivals(items, dist, 1.0)
    assert rivals.counts == pytest.approx(sentences)
    best = np.concatenate(dist.with_scores(dist.scores.like(augmented(parts, scores, few.heads, each))).argmax())
    wrong = (best != few.heads) * each
    assert rivals.losses == pytest.approx(np.add.reduceat(wrong, offsets[:-1]))


def augmented(parts: TreeParts, scores: NDArray, heads: NDArray, each: NDArray) -> NDArray:
    found = scores.copy()
    wrong = parts.head != heads[parts.link_words]
    found[parts.link_places[wrong]] += each[parts.link_words[wrong]]
    return found


def test_sentences_that_count_nothing_are_not_learnt_from(trees: Treebank) -> None:
    half = np.arange(len(trees)) % 2
    for trainer in ("likelihood", "mira"):
        options: dict[str, Any] = {"order": 1, "trainer": trainer, "labels": "second", "prune": 0, "iterations": 3}
        counted = DependencyParser(**options).fit(trees, focus=Focus(half.astype(float)))
        own = counted.predict(trees).heads == trees.heads
        of_half = np.repeat(half, trees.lengths) == 1
        assert own[of_half].mean() > own[~of_half].mean() + 0.05


def test_features_that_are_left_out_have_no_weight(trees: Treebank) -> None:
    plain = DependencyParser(order=1, iterations=2).fit(trees)
    half = DependencyParser(order=1, iterations=2).fit(
        trees, focus=Focus(features=lambda keys: (keys % 2).astype(float))
    )
    assert 0.3 < half.n_features_ / plain.n_features_ < 0.7
    assert isinstance(half._learnt.scorer, PartScorer)


def test_a_focus_that_says_nothing_is_refused(trees: Treebank) -> None:
    fit = DependencyParser(order=1).fit
    with pytest.raises(ParameterError, match="sentences should be 24 numbers"):
        fit(trees, focus=Focus(np.ones(3)))
    with pytest.raises(ParameterError, match="words should be"):
        DependencyParser(order=1, trainer="mira").fit(trees, focus=Focus(words=-np.ones(trees.n_words)))
    with pytest.raises(ParameterError, match="focus on words"):
        fit(trees, focus=Focus(words=np.ones(trees.n_words)))
    with pytest.raises(ParameterError, match="perceptron"):
        DependencyParser(order=1, trainer="perceptron").fit(trees, focus=Focus(np.ones(len(trees))))
