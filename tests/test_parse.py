"""The dependency parser: keys, scores and gradients by other roads; learning; keeping; the command line."""

from __future__ import annotations

import gzip
import itertools
import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import cli, samples, store
from isogloss.data import Text, Treebank, features_of
from isogloss.data.formats import IsoglossWarning
from isogloss.engine.threads import using_threads
from isogloss.errors import ModelError, ParameterError, TreebankError, UsageError
from isogloss.learners.runner import Interrupted
from isogloss.progress import QuietProgress
from isogloss.structures.tree_parts import FAMILIES, Candidates, TreeParts
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse._numba import features as kernels
from isogloss.tasks.parse.cutting import LONGEST, cut
from isogloss.tasks.parse.explaining import features_of_link
from isogloss.tasks.parse.features import LINK_TEMPLATES, PART_ROLES, PART_TEMPLATES, Templates, splitmix
from isogloss.tasks.parse.filtering import LinkFilter, with_heads
from isogloss.tasks.parse.inference import Shape, best_trees, chances_of
from isogloss.tasks.parse.labels import Labeller, gold_labels
from isogloss.tasks.parse.scoring import LEAST, FeatureSet, Gradient, PartScorer, Table, count_keys
from isogloss.tasks.parse.training import OBJECTIVES, likelihood, risk
from isogloss.tasks.parse.words import ATOMS, PAD, columns_of, encode, values_of

MASK = (1 << 64) - 1


@pytest.fixture(scope="module")
def trees() -> Treebank:
    """24 German sentences, with made-up morphology so that agreement has something to look at."""
    found = Treebank.from_bytes(samples.trees("en-de", "target").encode(), "de.conllu")
    number = [
        "Number=Sing" if len(form) % 2 else "Case=Nom|Number=Plur" for s in range(len(found)) for form in found.words(s)
    ]
    return found.with_columns(feats=number)


# --- keys, by a slow road ---------------------------------------------------------------------------------------------


def mix(h: int) -> int:
    h ^= h >> 32
    h = h * 0xD6E8FEB86659FD93 & MASK
    h ^= h >> 32
    h = h * 0xD6E8FEB86659FD93 & MASK
    return h ^ h >> 32


def string_code(atom: str, text: str) -> int:
    names = (*ATOMS, "attribute", "edge")
    h = 0xCBF29CE484222325 ^ (0x1000 + 16 * names.index(atom))
    for letter in text:
        h = (h ^ ord(letter)) * 0x100000001B3 & MASK
    return mix(h)


def code_at(trees: Treebank, s: int, atom: str, place: int, columns: Any) -> int:
    n = len(trees.words(s))
    if place < 0:
        return string_code("edge", "before")
    if place == 0:
        return string_code("edge", "root")
    if place > n:
        return string_code("edge", "after")
    if atom == "marker":
        return int(encode(trees, columns).codes[trees.offsets[s] + 5 * s + PAD + place, 5])
    names, form = values_of(atom, columns)
    return string_code(atom, form(*(trees.strings(name, s)[place - 1] for name in names)))


def slow_keys(trees: Treebank, s: int, head: int, child: int, columns: Any) -> list[int]:
    """All codes of a link, from the definitions."""
    out = []
    names = Templates.of(LINK_TEMPLATES, columns).names
    for name in names:
        total = splitmix(LINK_TEMPLATES.index(name))
        for k, term in enumerate(name.split(" & ")):
            role, _, rest = term.partition(".")
            atom, _, shift = rest.partition("[")
            place = (head if role == "head" else child) + int(shift.rstrip("]") or 0)
            total += code_at(trees, s, atom, place, columns) * (splitmix(1 << 20 | k) | 1)
        out.append(mix(total & MASK))
    start = [splitmix(2 << 20 | k) for k in range(8)]
    a, b, c = (splitmix(3 << 20 | k) | 1 for k in range(3))
    tag_p, tag_c = (code_at(trees, s, "tag", place, columns) for place in (head, child))

    def key(k: int, value: int, first: int = tag_p) -> int:
        return mix((start[k] + first * a + tag_c * b + value * c) & MASK)

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
            out += [key(2, code), key(6, code, code_at(trees, s, "lemma", head, columns))]
        if theirs is not None:
            out.append(key(3, other))
        if ours is not None and theirs is not None:
            out += [key(4, 2 * k + (ours == theirs) + 1), key(5, (other * c + code) & MASK)]
    if head == 0:
        n = len(trees.words(s))
        out.append(mix((start[7] + tag_c * b + (min(child, 4) * 8 + min(n - child, 4) + 1) * c) & MASK))
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
    begin, terms, factors, dynamic, thirds = features.numbers()[0]
    n, first = int(words.lengths[s]), int(words.starts[s]) + PAD
    sides = np.empty((2, n + 1, len(begin)), np.uint64)
    kernels.sides(words.codes, first, n, begin, terms, factors, sides[0], sides[1])
    room = kernels.most_keys(len(begin), words.features.shape[1])
    codes, which = np.empty(room, np.uint64), np.zeros(room, np.int64)
    given = (words.codes, words.features, words.kinds)
    m = kernels.keys_of_link(head, child, first, n, given, *sides, dynamic, thirds, codes, which)
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


def slow_part_keys(trees: Treebank, s: int, family: str, places: tuple[int, ...], bin_: int, columns: Any) -> list[int]:
    """Keys of a larger part, with variants, from the definitions; `places` are those of PART_ROLES."""
    out = []
    for name in Templates.of(PART_TEMPLATES[family], columns).names:
        total = splitmix(2 + FAMILIES.index(family) << 12 | PART_TEMPLATES[family].index(name))
        for k, term in enumerate(name.split(" & ")):
            role, _, rest = term.partition(".")
            atom, _, shift = rest.partition("[")
            place = places[PART_ROLES[family].index(role)] + int(shift.rstrip("]") or 0)
            total += code_at(trees, s, atom, place, columns) * (splitmix(1 << 20 | k) | 1)
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
    table = Table.of(count_keys(words, features, every, families, trees.heads))
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
        np.add.at(out, gradient.numbers[start:end], gradient.parts[start:end])
    return out


def shape_of(projective: bool, families: tuple[str, ...] = ()) -> Shape:
    return Shape("projective" if projective else "tree", True, families, rounds=50)


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("partial", [True, False])
@pytest.mark.parametrize("objective", [likelihood, risk])
def test_gradients_of_objectives_are_their_derivatives(
    trees: Treebank, projective: bool, partial: bool, objective: Any
) -> None:
    few = trees.part(0, 3)
    scorer, words, _, every = scorer_of(few)
    heads = few.heads.copy()
    if partial:
        heads[[1, 4, 8]] = -1
    sentences, parts, shape = np.arange(3), TreeParts.of(every), shape_of(projective)

    def asked() -> Any:
        return objective(shape.trees(parts, scorer.scores(words, sentences, parts)), heads)

    found = summed(scorer.gradient(words, sentences, parts, asked().values), len(scorer.weights))
    order = np.argsort(-np.abs(found))
    for i in [*order[:6].tolist(), *order[100:600:100].tolist()]:
        before = float(scorer.weights[i])
        values = []
        for step in (0.0625, -0.0625):
            scorer.weights[i] = before + step
            exact = float(scorer.weights[i])
            values.append((exact, float(asked().losses.sum())))
        scorer.weights[i] = before
        slope = (values[0][1] - values[1][1]) / (values[0][0] - values[1][0])
        assert found[i] == pytest.approx(slope, abs=3e-3)


@pytest.mark.parametrize("objective", [likelihood, risk])
def test_gradients_with_larger_parts_are_near_the_derivatives_where_scores_are_small(
    trees: Treebank, objective: Any
) -> None:
    """Of Bethe's log Z, beliefs are the exact derivative once messages rest; of risk, differences are taken anyway."""
    few = trees.part(0, 2)
    scorer, words, _, every = scorer_of(few, FAMILIES, scale=0.02)
    sentences, parts, shape = np.arange(2), TreeParts.of(every, FAMILIES), shape_of(False, FAMILIES)

    def asked() -> Any:
        made = shape.trees(parts, scorer.scores(words, sentences, parts))
        made.tolerance = 1e-12
        return objective(made, few.heads)

    found = summed(scorer.gradient(words, sentences, parts, asked().values), len(scorer.weights))
    for i in np.argsort(-np.abs(found))[:300:60].tolist():
        before = float(scorer.weights[i])
        losses = []
        for step in (0.0625, -0.0625):
            scorer.weights[i] = before + step
            losses.append(float(asked().losses.sum()))
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
    assert likelihood(batch, heads).losses[0] == pytest.approx(-np.log(total[True] / sum(total.values())))


def reaches(tree: tuple[int, ...], word: int) -> bool:
    for _ in range(len(tree) + 1):
        if word == 0:
            return True
        word = tree[word - 1]
    return False


def test_sentences_that_no_tree_fits_ask_for_nothing() -> None:
    parts = TreeParts.of(Candidates.all([4, 2]))
    heads = np.array([3, 4, -1, -1, -1, 0], np.int32)  # 3→1 and 4→2 cross
    asked = likelihood(shape_of(True).trees(parts, np.zeros(parts.n_parts)), heads)
    assert asked.values[: parts.offsets[1]] == pytest.approx(0.0)
    assert asked.losses[0] == 0.0 and asked.losses[1] > 0


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
    from isogloss.tasks.parse import labels as module
    from isogloss.tasks.parse._numba.labels import emit_labels

    few = trees.part(0, 4)
    columns = columns_of(few)
    words = encode(few, columns)
    names, gold = gold_labels(few)
    made = Labeller._empty(words, columns, names, few.heads, gold, few.offsets)
    weights = np.random.default_rng(0).normal(scale=0.1, size=len(made.labels)).astype(np.float32)
    most = 2 * (len(made.templates) + 1 + 3 * words.features.shape[1]) * len(names)
    places = np.concatenate([[0], np.cumsum(most * words.lengths)]).astype(np.int64)
    numbers, parts = np.empty(places[-1], np.int32), np.empty(places[-1], np.float32)

    def run() -> tuple[float, np.ndarray]:
        ends, losses = places[:-1].copy(), np.zeros(4)
        given = (words.starts, words.lengths, (words.codes, words.features), module._numbers(made.templates))
        learnt = (made.table.slots, made.rows, made.labels, weights, few.heads, gold, few.offsets, len(names))
        emit_labels(0, 1, np.arange(4), *given, *learnt, places[:-1], numbers, parts, ends, losses)
        return float(losses.sum()), summed(Gradient(places[:-1], ends, numbers, parts), len(weights))

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
    assert -np.log(chances[np.arange(len(gold)), gold]).sum() == pytest.approx(run()[0], rel=1e-4)


# --- learning ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parser(trees: Treebank) -> DependencyParser:
    return DependencyParser(iterations=6).fit(trees, trees)


@pytest.mark.parametrize("trainer", list(OBJECTIVES))
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("order", [1, 2])
def test_a_small_treebank_is_learnt_by_heart(trees: Treebank, trainer: str, projective: bool, order: int) -> None:
    parser = DependencyParser(order=order, trainer=trainer, projective=projective, iterations=8, rounds=3).fit(trees)
    found = parser.predict(trees)
    least = 1 - 1e-9 if trainer == "likelihood" else 0.97 if order == 1 else 0.9  # margins by messages are rough
    assert np.mean(found.heads == trees.heads) > least
    assert parser.families_ == ((), FAMILIES[:3], FAMILIES)[(order - 1) * (2 - projective)]
    same = np.mean([found.strings("deprel", s) == trees.strings("deprel", s) for s in range(len(trees))])
    assert same > (0.9 if trainer == "likelihood" else 0.6)
    assert parser.trace_[-1] < parser.trace_[0] and len(parser.tuning_) == 0


def test_scores_posteriors_entropy_and_confidence(trees: Treebank, parser: DependencyParser) -> None:
    assert parser.score(trees)["uas"] == pytest.approx(parser.tuning_.max())
    chances = parser.predict_proba(trees)
    assert len(chances) == len(trees) and chances[3][:, 1:].sum(axis=0) == pytest.approx(1.0)
    found = parser.predict(trees, confidence=True)
    misc = features_of(found.strings("misc", 3)[1])
    head = int(found.heads[trees.offsets[3] + 1])
    assert float(misc["Confidence"]) == pytest.approx(chances[3][head, 2], abs=1e-4)
    assert 0 < float(misc["LabelConfidence"]) <= 1
    entropy = parser.entropy(trees)
    assert entropy.shape == (len(trees),) and (entropy >= 0).all()
    assert "root" in parser.labels_ and parser.projective_
    best = parser.k_best(trees.part(0, 2), 3)
    assert len(best) == 2 and len(best[0]) == 3
    assert best[0][0][0] >= best[0][1][0] and sum(np.exp(chance) for chance, _ in best[0]) <= 1 + 1e-9


def test_threads_and_seeds(trees: Treebank, parser: DependencyParser) -> None:
    one, two = (DependencyParser(iterations=2, threads=n).fit(trees) for n in (1, 2))
    assert np.array_equal(one._learnt.scorer.table.slots, two._learnt.scorer.table.slots)
    assert np.array_equal(one._learnt.labeller.weights, two._learnt.labeller.weights)
    other = DependencyParser(iterations=2, seed=1).fit(trees)
    assert not np.array_equal(one._learnt.scorer.table.slots, other._learnt.scorer.table.slots)
    with using_threads(1):
        assert parser.predict(trees).to_bytes() == parser.predict(trees).to_bytes()


def test_inference_can_be_another_than_in_training(trees: Treebank) -> None:
    parser = DependencyParser(order=2, iterations=3, rounds=5).fit(trees)
    assert parser.projective_
    for constraint in ("tree", "exactly-one", "exactly-one-no-2-cycle", "at-most-one", "not-2"):
        other = parser.with_inference(constraint=constraint, rounds=2, decoder="map")
        assert np.mean(other.predict(trees).heads == trees.heads) > 0.9
        assert other.rounds == 2 and other.decoder == "map" and parser.rounds == 5
    with pytest.raises(ParameterError):
        parser.with_inference(constraint="forest").predict(trees)


def test_nothing_is_lost_without_pruning(trees: Treebank) -> None:
    every, few = (DependencyParser(iterations=3, prune=prune).fit(trees) for prune in (0.0, 1e-3))
    assert every._learnt.filter is None and few._learnt.filter is not None
    assert np.mean(every.predict(trees).heads == few.predict(trees).heads) > 0.97


def test_part_of_the_heads_is_enough_and_the_rest_is_filled_in(trees: Treebank) -> None:
    heads = trees.heads.copy()
    heads[::3] = -1
    partial = trees.with_columns(heads=heads)
    found = DependencyParser(iterations=8).fit(partial).predict(trees)
    known = heads >= 0
    assert np.mean(found.heads[known] == trees.heads[known]) > 0.97
    assert np.mean(found.heads[~known] == trees.heads[~known]) > 0.4
    assert (
        np.mean(DependencyParser(trainer="mira", iterations=4).fit(partial).predict(trees).heads == trees.heads) > 0.6
    )


def test_saved_parsers_are_the_same(trees: Treebank, parser: DependencyParser, tmp_path: Path) -> None:
    parser.save(tmp_path / "model")
    again = DependencyParser.load(tmp_path / "model")
    assert again.predict(trees, confidence=True).to_bytes() == parser.predict(trees, confidence=True).to_bytes()
    assert isinstance(store.load(tmp_path / "model"), DependencyParser) and again.options_ == parser.options_
    saved = store.read(tmp_path / "model")
    for name, least in (("table", 2), ("filter.table", 100), ("label.table", 1), ("label.rows", 1), ("joint.rows", 1)):
        arrays = {**saved.arrays, name: saved.arrays[name][:-least]}
        store.save(tmp_path / "bad", kind=saved.kind, options=saved.options, arrays=arrays, meta=saved.meta)
        with pytest.raises(ModelError, match=r"bad.*(belong together|no table)"):
            DependencyParser.load(tmp_path / "bad")
    full = {**saved.arrays, "table": np.ones_like(saved.arrays["table"])}  # a search in it would never end
    store.save(tmp_path / "bad", kind=saved.kind, options=saved.options, arrays=full, meta=saved.meta)
    with pytest.raises(ModelError, match="no table"):
        DependencyParser.load(tmp_path / "bad")
    store.save(tmp_path / "bad", kind=saved.kind, options=saved.options, arrays=saved.arrays, meta={})
    with pytest.raises(ModelError, match="damaged"):
        DependencyParser.load(tmp_path / "bad")


def test_explanations_add_up_to_the_score(trees: Treebank, parser: DependencyParser) -> None:
    for word in (0, 4):
        found = parser.explain(trees, 2, word)
        for name in ("head", "rival"):
            link = found[name]
            assert sum(entry["weight"] for entry in link["features"]) == pytest.approx(link["score"], abs=1e-4)
        assert sum(entry["weight"] for entry in found["difference"]) == pytest.approx(
            found["head"]["score"] - found["rival"]["score"], abs=1e-4
        )
        assert found["head"]["probability"] >= found["rival"]["probability"]
        alone = trees.part(2, 3)
        (whole,) = parser._trees(encode(alone, parser._learnt.columns))
        totals = []
        for name in ("head", "rival"):
            known = np.full(alone.n_words, -1)
            known[word] = found[name]["number"]
            totals.append(whole.layout.indicate(best_trees(whole.having(known), "mbr")) @ whole.scores.values)
        assert sum(entry["score"] for entry in found["parts"]) == pytest.approx(totals[0] - totals[1])
        assert {entry["tree"] for entry in found["parts"]} == {"head", "rival"}
        assert found["parts"][0]["part"] == "link" and " → " in found["parts"][0]["words"]
    learnt = parser._learnt
    alone = trees.part(2, 3)
    names = features_of_link(learnt.scorer, alone, learnt.columns, encode(alone, learnt.columns), 3, 1)
    assert any(entry["feature"].startswith("head.tag=") for entry in names)
    assert parser.explain(trees, 2, 0, rival=0)["rival"]["word"] == "ROOT"
    assert any(parser.explain(trees, 2, word, rival=0)["parts"] == [] for word in range(4))  # it is not a candidate
    for place in ((99, 0), (0, 99)):
        with pytest.raises(ParameterError, match="explain"):
            parser.explain(trees, *place)


def test_sentences_of_no_word_and_of_one(parser: DependencyParser) -> None:
    found = parser.predict(Treebank.of([[], [("Ja", "INTJ")], []]))
    assert found.heads.tolist() == [0] and len(found) == 3
    assert len(parser.predict(Treebank.of([]))) == 0
    assert parser.entropy(Treebank.of([])).shape == (0,)


def test_very_long_sentences_are_parsed_in_pieces(parser: DependencyParser, trees: Treebank) -> None:
    words = [("Die", "DET"), ("Frau", "NOUN"), ("liest", "VERB"), (".", "PUNCT")] * 350
    found = parser.predict(Treebank.of([words[:4], words, words[:5]]))
    found.check_trees()
    assert found.heads[:4].tolist() == parser.predict(Treebank.of([words[:4]])).heads.tolist()
    long = found.part(1, 2)
    pieces = cut(long.offsets)
    assert np.diff(pieces).max() <= LONGEST and len(pieces) == 7
    assert np.count_nonzero(long.heads == 0) == 1
    with pytest.warns(IsoglossWarning, match="1 of 25 sentences"):
        odd = [("x", "X", 0, "root")] + [("y", "X", 1, "dep")] * LONGEST
        assert DependencyParser(order=1, iterations=1).fit(Treebank.of([*rows_of(trees), odd])).n_features_ > 0


def rows_of(trees: Treebank) -> list[list[tuple[str, str, int, str]]]:
    """Sentences as lists of (form, tag, head, relation)."""
    return [
        list(
            zip(
                trees.words(s), trees.strings("upos", s), trees.heads[trees.offsets[s] : trees.offsets[s + 1]].tolist(),
                trees.strings("deprel", s), strict=True,
            )
        )
        for s in range(len(trees))
    ]  # fmt: skip


def test_what_cannot_be_learnt_is_refused(trees: Treebank, parser: DependencyParser) -> None:
    with pytest.raises(TreebankError, match="no word has a head"):
        DependencyParser().fit(Treebank.of([[("a", "X"), ("b", "X")]]))
    two = Treebank.of([[("a", "X", 0, "root"), ("b", "X", 0, "root")]])
    with pytest.raises(TreebankError, match=r"line 2.*both the root"):
        DependencyParser().fit(two)
    assert DependencyParser(single_root=False, iterations=2).fit(two).predict(two).heads.tolist() == [0, 0]
    cycle = Treebank.of([[("a", "X", 2, "dep"), ("b", "X", 1, "dep"), ("c", "X", 0, "root")]])
    for single in (True, False):
        with pytest.raises(TreebankError, match="own ancestor"):
            DependencyParser(single_root=single).fit(cycle)
    with pytest.raises(TreebankError, match="no word has a tag in column upos"):
        parser.predict(Text.of(["das Haus"]))
    with pytest.raises(UsageError, match="learnt nothing"):
        DependencyParser().predict(trees)


@pytest.mark.parametrize(
    "options",
    [{"order": 3}, {"order": 1, "factors": ["grand"]}, {"order": 2, "factors": ["uncles"]}, {"constraint": "forest"},
     {"prune": 1.0}, {"support": "most"}, {"rounds": 0}, {"trainer": "em"}, {"decoder": "best"}, {"tags": "none"},
     {"iterations": 0}, {"rate": 0.0}, {"l2": -1.0}, {"templates": ["head.colour"]}, {"templates": ["head.tag[+3]"]}],
)  # fmt: skip
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        DependencyParser(**options)


class Stop(QuietProgress):
    """Sends Ctrl-C in the middle of a pass."""

    def __init__(self, stage: str, at: int) -> None:
        self.stage, self.at, self.now, self.done = stage, at, "", 0.0

    def start(self, name: str, total: float | None = None) -> None:
        self.now, self.done = name, 0.0

    def update(self, done: float, detail: str = "") -> None:
        self.done = done

    def within(self, fraction: float) -> None:
        if self.now == self.stage and self.done == self.at:
            self.at = -1
            signal.raise_signal(signal.SIGINT)


def model_files(parser: DependencyParser, place: Path) -> dict[str, bytes]:
    parser.save(place)
    return {path.name: path.read_bytes() for path in place.iterdir()}


@pytest.mark.parametrize(("options", "at", "dev"), [
    ({}, 0, False), ({}, 3, True), ({"labels": "second", "order": 1}, 2, True),
    ({"trainer": "mira", "order": 1}, 1, False),
])  # fmt: skip
def test_interrupted_learning_is_resumed_to_the_bit(
    trees: Treebank, tmp_path: Path, options: dict[str, Any], at: int, dev: bool
) -> None:
    given, place = (trees, trees.part(0, 8) if dev else None), tmp_path / "checkpoint"
    with pytest.raises(Interrupted, match=f"keeps iteration {at + 1} of 5.*resume"):
        DependencyParser(iterations=5, **options).fit(*given, Stop("Learning links", at), checkpoint=place)
    resumed = DependencyParser(iterations=5, **options).fit(*given, checkpoint=place, resume=True)
    whole = DependencyParser(iterations=5, **options).fit(*given)
    assert model_files(resumed, tmp_path / "resumed") == model_files(whole, tmp_path / "whole")
    with pytest.raises(UsageError, match=r"another run: .*options\.seed was 0 and is 1"):
        DependencyParser(iterations=5, seed=1, **options).fit(*given, checkpoint=place, resume=True)
    with pytest.raises(UsageError, match="another run: data was"):
        DependencyParser(iterations=5, **options).fit(trees.part(0, 20), given[1], checkpoint=place, resume=True)


# --- the command line -------------------------------------------------------------------------------------------------


def run(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


@pytest.fixture
def files(tmp_path: Path, trees: Treebank) -> Path:
    trees.write(tmp_path / "train.conllu.gz")
    trees.part(0, 8).write(tmp_path / "dev.conllu")
    return tmp_path


def test_from_the_command_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, dev, model = files / "train.conllu.gz", files / "dev.conllu", files / "model"
    assert run("parse", "train", train, "--dev", dev, "--save", model, "--iterations", 6, "--json", "-q") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["sentences"] == 24 and summary["dev"] > 90 and summary["projective"]
    out = files / "out.conllu.gz"
    assert run("parse", "apply", model, dev, "-o", out, "--confidence") == 0
    assert "8 sentences" in capsys.readouterr().err
    text = gzip.decompress(out.read_bytes()).decode()
    assert "Confidence=" in text and text.splitlines()[1] == dev.read_text().splitlines()[0]
    assert text.startswith("# isogloss_predicted = HEAD DEPREL")
    assert run("parse", "score", out, dev, "--json") == 0
    scored = json.loads(capsys.readouterr().out)
    assert {"uas", "las", "clas"} <= scored.keys() and scored["uas"] > 90
    assert sorted(scored["left_out"]) == ["ufeats", "upos", "xpos"]  # the tags are those of dev
    assert run("parse", "score", out, dev) == 0
    assert capsys.readouterr().out.startswith("uas")


def test_resuming_from_the_command_line(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, kept = files / "model", files / "model.checkpoint"
    train = ("parse", "train", files / "train.conllu.gz", "--save", model, "--iterations", 4)
    for stage, words in (
        ("Choosing links", "Choosing links: stopped by Ctrl-C. Nothing was kept\n"),
        ("Learning links", "model.checkpoint keeps iteration 2 of 4: run the same again with --resume"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr("isogloss.cli.parse.progress_for", lambda quiet, stage=stage: Stop(stage, 1))
            assert run(*train, *(["--resume"] if kept.exists() else [])) == 130
        assert words in capsys.readouterr().err
        assert kept.exists() == (stage != "Choosing links") and not model.exists()
    assert run(*train, "--resume") == 0 and not kept.exists()
    assert run(*train[:4], files / "other", *train[5:]) == 0
    assert (files / "other" / store.ARRAYS).read_bytes() == (model / store.ARRAYS).read_bytes()
    assert "no checkpoint" not in capsys.readouterr().err
    assert run(*train, "--resume") == 0
    assert "no checkpoint yet, so this starts from the beginning" in capsys.readouterr().err


def test_predicted_tags_from_the_command_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out, text = files / "model", files / "out.conllu", files / "plain.txt"
    options = ("--tags", "predicted", "--iterations", 6, "-q")
    assert (
        run("parse", "train", files / "train.conllu.gz", "--dev", files / "dev.conllu", "--save", model, *options) == 0
    )
    text.write_text("Die Frau liest ein Buch .\n", encoding="utf-8")
    assert run("parse", "apply", model, text, "-o", out, "-q") == 0
    found = Treebank.read(out)
    assert found.heads.tolist() == [2, 3, 0, 5, 3, 3] and found.strings("upos", 0)[:3] == ("DET", "NOUN", "VERB")
    capsys.readouterr()


@pytest.mark.parametrize(
    ("bad", "status", "finding"),
    [
        ("1\ta\t_\tX\t_\t_\t2\tdep\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n\n", 1, "ancestor"),
        ("1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\t_\t0\troot\t_\t_\n\n", 1, "both the root"),
        ("1\ta\t_\tX\t_\t_\t5\troot\t_\t_\n\n", 1, "head '5'"),
        ("1\ta\tX\t0\troot\n\n", 1, "line 1"),
        ("2\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n", 1, "line 1"),
    ],
)  # fmt: skip
def test_bad_treebanks_are_named(
    tmp_path: Path, bad: str, status: int, finding: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    (tmp_path / "bad.conllu").write_text(bad)
    assert run("parse", "train", tmp_path / "bad.conllu", "--save", tmp_path / "model", "-q") == status
    error = capsys.readouterr().err
    assert "bad.conllu" in error and finding in error
    assert not (tmp_path / "model").exists()


def test_wrong_calls(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = files / "train.conllu.gz"
    assert run("parse", "train", train, "--save", files / "model", "--order", 3) == 2
    assert run("parse", "train", train, "--save", files / "model", "--order", 1, "--factors", "grand") == 2
    assert "order 2" in capsys.readouterr().err
    assert run("parse", "train", train, "--save", files / "none" / "model") == 2
    assert run("parse", "apply", files / "model", train, "-o", files / "out.conllu") == 2
    assert not (files / "out.conllu").exists()
    assert run("parse", "train", "-", "--dev", "-", "--save", files / "model") == 2
    assert run("parse", "train", train, "--save", files / "model", "--tags", "silver") == 2
    capsys.readouterr()
