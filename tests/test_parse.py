"""The dependency parser: keys, scores, parts and gradients by other roads."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data import Treebank, features_of
from isogloss.errors import ParameterError
from isogloss.features import Axis, KeyTable, arcs
from isogloss.features.gradients import Gradient
from isogloss.learners.loglinear import Likelihood
from isogloss.learners.risk import Risk
from isogloss.structures.tree_parts import FAMILIES, Candidates, TreeParts
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse._numba import features as kernels
from isogloss.tasks.parse.features import DYNAMIC, LINK_TEMPLATES, PART_ROLES, PART_TEMPLATES, templates_for
from isogloss.tasks.parse.filtering import LinkFilter, with_heads
from isogloss.tasks.parse.inference import Shape, best_trees, chances_of
from isogloss.tasks.parse.labels import Labeller, LabelLikelihood, gold_labels
from isogloss.tasks.parse.scoring import LEAST, FeatureSet, PartScorer, count_keys
from isogloss.tasks.parse.training import KnownHeads, TreeModel
from isogloss.tasks.parse.words import ATOMS, PAD, columns_of, encode, values_of

MASK = (1 << 64) - 1


# --- keys, by a slow road ---------------------------------------------------------------------------------------------


def mix(h: int) -> int:
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & MASK
    h = (h ^ h >> 27) * 0x94D049BB133111EB & MASK
    return h ^ h >> 31


def factor(place: int) -> int:
    return mix((2**20 + place + 1) * 0x9E3779B97F4A7C15 & MASK) | 1


def start_of(name: str, family: str = "") -> int:
    text = f"{family}: {name}" if family else name
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def string_code(atom: str, text: str) -> int:
    names = (*ATOMS, "attribute", "edge", "view")
    h = 0xCBF29CE484222325 ^ (0x1000 + 16 * names.index(atom))
    for letter in text:
        h = (h ^ ord(letter)) * 0x100000001B3 & MASK
    return mix(h) >> 1


def code_at(trees: Treebank, s: int, atom: str, place: int, columns: Any) -> int:
    n = len(trees.words(s))
    if place < 0:
        return -1
    if place == 0:
        return string_code("edge", "root")
    if place > n:
        return -2
    if atom == "marker":
        return int(encode(trees, columns).codes[trees.offsets[s] + 5 * s + PAD + place, 5])
    names, form = values_of(atom, columns)
    return string_code(atom, form(*(trees.strings(name, s)[place - 1] for name in names)))


def slow_keys(trees: Treebank, s: int, head: int, child: int, columns: Any) -> list[int]:
    """All codes of a link, from the definitions."""
    out = []
    for name in templates_for(LINK_TEMPLATES, columns).names:
        total = start_of(name)
        for k, term in enumerate(name.split(" & ")):
            role, _, rest = term.partition(".")
            atom, _, shift = rest.partition("[")
            place = (head if role == "head" else child) + int(shift.rstrip("]") or 0)
            total += code_at(trees, s, atom, place, columns) * factor(k)
        out.append(mix(total & MASK))
    tag_p, tag_c = (code_at(trees, s, "tag", place, columns) for place in (head, child))

    def key(k: int, *values: int, first: int = tag_p) -> int:
        return mix(sum((v * factor(i) for i, v in enumerate((first, tag_c, *values))), start_of(DYNAMIC[k])) & MASK)

    inner = range(min(head, child) + 1, max(head, child))
    out += list(dict.fromkeys(key(0, code_at(trees, s, "between", k, columns)) for k in inner))[:16]
    tags = [trees.strings("upos", s)[k - 1] for k in inner]
    counts = [sum(tag in kinds for tag in tags) for kinds in (("VERB", "AUX"), ("PUNCT",), ("CCONJ",))]
    out.append(key(1, min(counts[0], 3) * 16 + min(counts[1], 3) * 4 + min(counts[2], 3) + 1))
    bundles = [{}, *(features_of(text) for text in trees.strings("feats", s))]
    for k, name in enumerate(columns.attributes):
        ours, theirs = bundles[child].get(name), bundles[head].get(name)
        code, other = (string_code("attribute", f"{name}={text}") for text in (ours, theirs))
        if ours is not None:
            out += [key(2, code), key(6, code, first=code_at(trees, s, "lemma", head, columns))]
        if theirs is not None:
            out.append(key(3, other))
        if ours is not None and theirs is not None:
            out += [key(4, 2 * k + (ours == theirs) + 1), key(5, other, code)]
    if head == 0:
        n = len(trees.words(s))
        place = min(child, 4) * 8 + min(n - child, 4) + 1
        out.append(mix((start_of(DYNAMIC[7]) + tag_c * factor(0) + place * factor(1)) & MASK))
    return out


def variant(code: int, bin_: int) -> int:
    fingerprint = (code >> 32) ^ (bin_ * 0x9E3779B1 & 0xFFFFFFFF) or 1
    return fingerprint << 32 | (code & 0xFFFFFFF8) | (code + 5 * bin_ & 7)


def bin_of(head: int, child: int) -> int:
    far = abs(head - child)
    return (far if far <= 4 else 5 if far <= 7 else 6 if far <= 12 else 7) + (0 if child > head else 7)


def slow_variants(trees: Treebank, s: int, head: int, child: int, columns: Any) -> list[int]:
    bin_ = bin_of(head, child)
    return [variant(code, b) for code in slow_keys(trees, s, head, child, columns) for b in (0, bin_)]


def fast_keys(words: Any, features: FeatureSet, s: int, head: int, child: int) -> list[int]:
    begin, terms, factors, dynamic, places = features.numbers()[0]
    n, first = int(words.lengths[s]), int(words.starts[s]) + PAD
    sides = np.empty((2, n + 1, len(begin)), np.uint64)
    kernels.sides(words.codes, first, n, begin, terms, factors, sides[0], sides[1])
    room = kernels.most_keys(len(begin), words.features.shape[1])
    codes, which = np.empty(room, np.uint64), np.zeros(room, np.int64)
    m = kernels.keys_of_link(head, child, first, n, words.arrays, *sides, dynamic, places, codes, which)
    assert m <= room
    return [int(code) for code in codes[:m]]


def test_keys_are_those_of_the_definitions(trees: Treebank) -> None:
    columns = columns_of(trees)
    assert columns.attributes == ("Number", "Case")
    words, features = encode(trees, columns), FeatureSet.of(columns)
    assert np.array_equal(words.lengths, trees.lengths)
    for s in (0, 7):
        n = int(trees.lengths[s])
        for head, child in itertools.product(range(n + 1), range(1, n + 1)):
            if head != child:
                assert fast_keys(words, features, s, head, child) == slow_keys(trees, s, head, child, columns)


def test_links_have_the_keys_that_the_shared_language_gives_them(trees: Treebank) -> None:
    """The kernels of parsers walk pairs of words in their own way; on parts made for anybody, keys are the same."""
    columns = columns_of(trees)
    words, features = encode(trees, columns), FeatureSet.of(columns)
    rows = np.concatenate([np.arange(n + 1) + first + PAD for first, n in zip(words.starts, words.lengths)])
    offsets = np.concatenate([[0], np.cumsum(words.lengths + 1)])
    codes = words.codes[rows].view(np.int64)
    parts = arcs(Axis(offsets, **{atom: codes[:, k] for k, atom in enumerate(ATOMS)}))
    found = features.links.keys(parts)
    for s in (0, 7):
        n = int(trees.lengths[s])
        for head, child in itertools.product(range(n + 1), range(1, n + 1)):
            if head != child:
                own = fast_keys(words, features, s, head, child)[: len(features.links)]
                row = found[parts.offsets[s] + head * (n + 1) + child]
                assert row.tolist() == [variant(code, 0) for code in own]


def slow_part_keys(trees: Treebank, s: int, family: str, places: tuple[int, ...], bin_: int, columns: Any) -> list[int]:
    """Keys of a larger part, with variants, from the definitions; `places` are those of PART_ROLES."""
    out = []
    for name in templates_for(PART_TEMPLATES[family], columns).names:
        total = start_of(name, family)
        for k, term in enumerate(name.split(" & ")):
            role, _, rest = term.partition(".")
            atom, _, shift = rest.partition("[")
            place = places[PART_ROLES[family].index(role)] + int(shift.rstrip("]") or 0)
            total += code_at(trees, s, atom, place, columns) * factor(k)
        code = mix(total & MASK)
        out += [variant(code, b) for b in ((bin_,) if family == "valence" else (0,) if bin_ == 0 else (0, bin_))]
    return out


def near(far: int) -> int:
    return 0 if far == 1 else 1 if far <= 3 else 2


def slow_parts(heads: list[int]) -> list[tuple[str, tuple[int, ...], int]]:
    """The larger parts of a tree: family, words, and bin; by another road than runs and pairs of numbers."""
    n, out = len(heads), []
    orders = sorted(
        itertools.permutations(range(3)), key=lambda p: (p[0] < p[1]) + 2 * (p[1] < p[2]) + 4 * (p[0] < p[2])
    )
    for c, h in enumerate(heads, 1):
        if h:
            g = heads[h - 1]
            ranks = tuple(sorted((g, h, c)).index(word) for word in (g, h, c))
            out.append(("grand", (g, h, c), 3 * orders.index(ranks) + near(abs(h - c)) + 1))
    for h in range(n + 1):
        for side in (0, 1):
            if h == n if side else h <= 1:
                continue  # no word that could be a child
            children = [c for c in range(1, n + 1) if heads[c - 1] == h and (c > h) == bool(side)]
            outward = [-1, *(children if side else children[::-1]), n + 1]
            for a, b in itertools.pairwise(outward):
                far = 3 if a < 0 or b > n else near(abs(a - b))
                out.append(("siblings", (h, a, b), 4 * side + far + 1))
            out.append(("valence", (h, h, h), 4 * side + min(len(children), 3) + 1))
    spans = [(min(c, h), max(c, h)) for c, h in enumerate(heads, 1)]
    for j, k in itertools.combinations(range(1, n + 1), 2):
        (a, b), (c, d) = spans[j - 1], spans[k - 1]
        if a < c < b < d or c < a < d < b:
            out.append(("crossing", (j, k, k), 0))
    return out


def scorer_of(
    trees: Treebank, families: tuple[str, ...] = (), *, seed: int = 0, scale: float = 0.1
) -> tuple[PartScorer, Any, Any, Candidates]:
    columns = columns_of(trees)
    words, features, every = encode(trees, columns), FeatureSet.of(columns, families), Candidates.all(trees.lengths)
    table = KeyTable.of(count_keys(words, features, every, families, trees.heads))
    weights = np.random.default_rng(seed).normal(scale=scale, size=len(table)).astype(np.float32)
    return PartScorer(features, table, weights), words, columns, every


def test_supported_features_are_those_of_gold_links(trees: Treebank) -> None:
    few = trees.part(0, 4)
    columns = columns_of(few)
    words, features, every = encode(few, columns), FeatureSet.of(columns), Candidates.all(few.lengths)
    counts: dict[int, int] = {}
    other: set[int] = set()
    for s in range(len(few)):
        n, start = int(few.lengths[s]), int(few.offsets[s])
        for head, child in itertools.product(range(n + 1), range(1, n + 1)):
            if head != child:
                found = slow_variants(few, s, head, child, columns)
                other |= set(found)
                for key in found if head == few.heads[start + child - 1] else ():
                    counts[key] = counts.get(key, 0) + 1
    given = (words, features, every, (), few.heads)
    assert set(count_keys(*given).tolist()) == set(counts)
    assert set(count_keys(*given, min_count=3).tolist()) == {key for key, count in counts.items() if count >= 3}
    assert set(count_keys(*given, support="all").tolist()) == other
    tags = set(count_keys(*given, support="tags").tolist())
    assert set(counts) < tags < other


@pytest.mark.parametrize("family", FAMILIES)
def test_supported_features_of_larger_parts_are_those_of_the_definitions(trees: Treebank, family: str) -> None:
    few = trees.part(3, 6)
    scorer, _, columns, _ = scorer_of(few, (family,))
    links, _, _, _ = scorer_of(few)
    expected = set(links.table.keys.tolist())
    for s in range(len(few)):
        heads = few.heads[few.offsets[s] : few.offsets[s + 1]].tolist()
        for name, places, bin_ in slow_parts(heads):
            if name == family:
                expected |= set(slow_part_keys(few, s, family, places, bin_, columns))
    if family == "crossing":  # these trees do not cross: what is kept is that of words that could
        assert set(links.table.keys.tolist()) < set(scorer.table.keys.tolist())
    else:
        assert set(scorer.table.keys.tolist()) == expected


def test_scores_are_sums_of_weights_and_packed_ones_the_same(trees: Treebank) -> None:
    few = trees.part(0, 3)
    scorer, words, columns, every = scorer_of(few, FAMILIES)
    weight = dict(zip(scorer.table.keys.tolist(), scorer.weights.tolist(), strict=True))
    parts, sentences = TreeParts.of(every, FAMILIES), np.arange(3)
    found = scorer.scores(words, sentences, parts)
    packed = PartScorer.packed(scorer.features, scorer.table.keys, scorer.weights).scores(words, sentences, parts)
    scorer.weights[np.abs(scorer.weights) <= LEAST] = 0  # which packed tables do not keep
    assert scorer.scores(words, sentences, parts) == pytest.approx(packed, abs=1e-9)
    links = parts.of_links(found[parts.link_places], 0.0)
    for s in range(3):
        for head, child in itertools.product(range(len(links[s])), range(1, len(links[s]))):
            if head != child:
                slow = sum(weight.get(key, 0.0) for key in slow_variants(few, s, head, child, columns))
                assert links[s][head, child] == pytest.approx(slow, abs=1e-6)
    rng = np.random.default_rng(0)
    for _ in range(5):  # a whole tree, of which all larger parts are known by another road
        heads = [random_tree(int(n), rng) for n in few.lengths]
        whole = found * parts.indicate(np.concatenate(heads))
        for s, tree in enumerate(heads):
            keys = [key for c, h in enumerate(tree, 1) for key in slow_variants(few, s, h, c, columns)]
            for name, places, bin_ in slow_parts(tree):
                keys += slow_part_keys(few, s, name, places, bin_, columns)
            assert whole[parts.offsets[s] : parts.offsets[s + 1]].sum() == pytest.approx(
                sum(weight.get(key, 0.0) for key in keys), abs=1e-5
            )


@given(st.integers(0, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_parts_have_the_names_of_the_definitions(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    heads = random_tree(n, rng)
    allowed = rng.random((n + 1, n + 1)) < 0.6
    allowed[heads, np.arange(1, n + 1)] = True
    candidates = Candidates.kept([np.ones((3, 3), bool), allowed])
    parts = TreeParts.of(candidates, FAMILIES)
    places = np.flatnonzero(parts.indicate([0, 1, *heads])[parts.offsets[1] :])
    found = [parts.name(1, place) for place in places.tolist()]
    assert [part.nodes for part in found if part.family == "link"] == [(h, c) for c, h in enumerate(heads, 1)]
    expected = set()
    for family, (a, b, c), bin_ in slow_parts(heads):
        if family == "siblings" and not any(allowed[a, j] for j in range(1, n + 1) if j != a and (j > a) == (bin_ > 4)):
            continue  # no word that could be a child on this side
        names = {
            "grand": (a, b, c), "siblings": (a, (bin_ - 1) // 4, None if b < 0 else b, None if c > n else c),
            "valence": (a, (bin_ - 1) // 4, (bin_ - 1) % 4), "crossing": (a, b),
        }  # fmt: skip
        expected.add((family, names[family]))
    sides = {("valence", (0, 0, 0)), ("valence", (1, 0, 0)), ("valence", (n, 1, 0))}  # where there is no word at all
    assert {tuple(part) for part in found if part.family != "link"} - sides == expected - sides


def test_names_of_all_parts_differ() -> None:
    parts = TreeParts.of(Candidates.all([4]), FAMILIES)
    names = {parts.name(0, place) for place in range(parts.n_parts)}
    assert len(names) == parts.n_parts


def random_tree(n: int, rng: np.random.Generator) -> list[int]:
    """Any tree with one root."""
    order = rng.permutation(n) + 1
    heads = [0] * n
    for k in range(1, n):
        heads[order[k] - 1] = int(order[rng.integers(k)])
    return heads


# --- gradients --------------------------------------------------------------------------------------------------------


def summed(gradient: Gradient, n: int) -> np.ndarray:
    out = np.zeros(n)
    for start, end in zip(gradient.places, gradient.ends, strict=True):
        np.add.at(out, gradient.numbers[start:end], gradient.values[start:end])
    return out


def likely(model: TreeModel, known: KnownHeads) -> Any:
    return Likelihood(model, target=known)


def risky(model: TreeModel, known: KnownHeads) -> Any:
    return Risk(model, known)


def shape_of(projective: bool, families: tuple[str, ...] = ()) -> Shape:
    return Shape("projective" if projective else "tree", True, families, rounds=50)


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("partial", [True, False])
@pytest.mark.parametrize("objective", [likely, risky])
def test_gradients_of_objectives_are_their_derivatives(
    trees: Treebank, projective: bool, partial: bool, objective: Any
) -> None:
    few = trees.part(0, 3)
    scorer, words, _, every = scorer_of(few)
    heads = few.heads.copy()
    if partial:
        heads[[1, 4, 8]] = -1
    model = TreeModel(scorer, words, every, shape_of(projective), np.arange(3))
    raised = objective(model, KnownHeads(heads, every.offsets, np.arange(3)))
    found = summed(raised.gradient(scorer.weights, np.arange(3))[1], len(scorer.weights))
    order = np.argsort(-np.abs(found))
    for i in [*order[:6].tolist(), *order[100:600:100].tolist()]:
        before = float(scorer.weights[i])
        values = []
        for step in (0.0625, -0.0625):
            scorer.weights[i] = before + step
            exact = float(scorer.weights[i])
            values.append((exact, raised.gradient(scorer.weights, np.arange(3))[0]))
        scorer.weights[i] = before
        slope = (values[0][1] - values[1][1]) / (values[0][0] - values[1][0])
        assert found[i] == pytest.approx(slope, abs=3e-3)


@pytest.mark.parametrize("objective", [likely, risky])
def test_gradients_with_larger_parts_are_near_the_derivatives_where_scores_are_small(
    trees: Treebank, objective: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of Bethe's log Z, beliefs are the exact derivative once messages rest; of risk, differences are taken anyway."""
    few = trees.part(0, 2)
    scorer, words, _, every = scorer_of(few, FAMILIES, scale=0.02)
    model = TreeModel(scorer, words, every, shape_of(False, FAMILIES), np.arange(2))
    options = {"constraint": "tree", "single_root": True, "iterations": 50, "tolerance": 1e-12}
    monkeypatch.setattr(Shape, "options", property(lambda self: options))
    raised = objective(model, KnownHeads(few.heads, every.offsets, np.arange(2)))
    found = summed(raised.gradient(scorer.weights, np.arange(2))[1], len(scorer.weights))
    for i in np.argsort(-np.abs(found))[:300:60].tolist():
        before = float(scorer.weights[i])
        losses = []
        for step in (0.0625, -0.0625):
            scorer.weights[i] = before + step
            losses.append(raised.gradient(scorer.weights, np.arange(2))[0])
        scorer.weights[i] = before
        assert found[i] == pytest.approx((losses[0] - losses[1]) / 0.125, abs=5e-3)


def links_of(scores: np.ndarray) -> tuple[TreeParts, np.ndarray]:
    """All links of one sentence, with the scores of a matrix."""
    parts = TreeParts.of(Candidates.all([len(scores) - 1]))
    return parts, scores[parts.head, parts.child]


def test_loss_of_partial_annotation_sums_over_the_trees_that_have_the_known_heads() -> None:
    rng, n = np.random.default_rng(3), 3
    scores = rng.normal(size=(n + 1, n + 1))
    batch = shape_of(False).trees(*links_of(scores))
    heads = np.array([-1, 0, -1], np.int32)
    total = {True: 0.0, False: 0.0}
    for tree in itertools.product(range(n + 1), repeat=n):
        if tree.count(0) != 1 or not all(reaches(tree, w) for w in range(1, n + 1)):
            continue
        weight = np.exp(sum(scores[h, c] for c, h in enumerate(tree, 1)))
        total[all(k < 0 or k == h for k, h in zip(heads, tree, strict=True))] += weight
    wanted = KnownHeads(heads, np.array([0, n]), np.array([0])).wanted(np.array([0]), batch)
    assert wanted.values is not None
    loss = batch.log_partition()[0] - wanted.values[0]
    assert loss == pytest.approx(-np.log(total[True] / sum(total.values())))


def reaches(tree: tuple[int, ...], word: int) -> bool:
    for _ in range(len(tree) + 1):
        if word == 0:
            return True
        word = tree[word - 1]
    return False


def test_sentences_that_no_tree_fits_ask_for_nothing() -> None:
    parts = TreeParts.of(Candidates.all([4, 2]))
    heads = np.array([3, 4, -1, -1, -1, 0], np.int32)  # 3→1 and 4→2 cross
    trees, both = shape_of(True).trees(parts, np.zeros(parts.n_parts)), np.arange(2)
    found = KnownHeads(heads, np.array([0, 4, 6]), both).found(both, trees)
    values, total = found.wanted.values, trees.log_partition()
    assert found.wanted.parts[: parts.offsets[1]] == pytest.approx(trees.marginals().values[: parts.offsets[1]])
    assert values is not None and values[0] == total[0] and values[1] < total[1]
    assert found.impossible.tolist() == [True, False]


@pytest.mark.parametrize("projective", [True, False])
def test_minimum_risk_tree_has_the_most_right_heads_in_expectation(projective: bool) -> None:
    rng, n = np.random.default_rng(0), 4
    batch = shape_of(projective).trees(*links_of(rng.normal(size=(n + 1, n + 1))))
    marginals = batch.beliefs_of_links()
    found = best_trees(batch, "mbr")
    exact = batch.tree_factor()[0]
    best = max(
        sum(marginals[0][h, c] for c, h in enumerate(tree, 1))
        for tree in itertools.product(range(n + 1), repeat=n)
        if exact.log_prob(np.array(tree)) > -np.inf
    )
    assert chances_of(marginals, found).sum() == pytest.approx(best)
    with pytest.raises(ParameterError, match="mbr"):
        best_trees(batch, "best")


def test_the_filter_keeps_a_tree_and_what_is_likely(trees: Treebank) -> None:
    columns = columns_of(trees)
    words = encode(trees, columns)
    chosen = LinkFilter.fit(words, columns, trees.heads, Shape("projective"), threshold=0.05)
    few = chosen.candidates(words)
    assert few.n_links < Candidates.all(trees.lengths).n_links / 2 and with_heads(few, trees.heads) > 0.95
    assert with_heads(chosen.candidates(words, trees.heads), trees.heads) == 1.0
    weak = LinkFilter.fit(words, columns, trees.heads, Shape("not-2"), threshold=0.05)
    assert weak.shape.constraint == "tree"  # a comparison of constraints is not one of candidates
    parts = TreeParts.of(few)
    assert (Shape("projective").trees(parts, np.zeros(parts.n_parts)).log_partition() >= 0).all()


def test_gradient_of_labels_is_the_derivative_of_their_loss(trees: Treebank) -> None:
    few = trees.part(0, 4)
    columns = columns_of(few)
    words = encode(few, columns)
    names, gold = gold_labels(few)
    made = Labeller._empty(words, columns, names, few.heads, gold, few.offsets)
    weights = np.random.default_rng(0).normal(scale=0.1, size=len(made.labels)).astype(np.float32)
    objective = LabelLikelihood(made, words, few.heads, gold, few.offsets)

    def run() -> tuple[float, np.ndarray]:
        value, lists = objective.gradient(weights, np.arange(4))
        return value, summed(lists, len(weights))

    _, found = run()
    for i in np.argsort(-np.abs(found))[:200:25].tolist():
        before = float(weights[i])
        weights[i] = before + 0.0625
        above = run()[0]
        weights[i] = before - 0.0625
        below = run()[0]
        weights[i] = before
        assert found[i] == pytest.approx((above - below) / 0.125, abs=5e-3)
    chances = Labeller(names, made.templates, made.table, made.rows, made.labels, weights).predict_proba(
        words, few.heads, few.offsets
    )
    assert chances.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    assert -np.log(chances[np.arange(len(gold)), gold]).sum() == pytest.approx(-run()[0], rel=1e-4)


@pytest.mark.parametrize(
    ("templates", "finding"),
    [
        (["head.tag & child.wrod"], "'child.wrod' should be a word and what to look at.*there are word, lemma, tag"),
        (["grandparent.tag"], "'grandparent.tag' should be a word.*words are head, child,"),
        (["direction"], "'direction' should be a word"),
        (["head.tag[+3]"], "looks further than 2 words away"),
        (["head.tag &"], "'' in 'head.tag &' should be a name"),
        (["head.tag", "head.tag"], "'head.tag' is there twice"),
        ([("head.tag",)], "should be a string"),
    ],
)
def test_templates_that_links_cannot_have_are_refused(templates: Any, finding: str) -> None:
    with pytest.raises(ParameterError, match=finding):
        DependencyParser(templates=templates).check_params()
