"""QuadraticAligner: fertility and pairs of links, learnt and searched, against enumeration and other aligners."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import samples, store
from isogloss.data import Bitext, Links
from isogloss.errors import ParameterError
from isogloss.metrics import score_links
from isogloss.structures import Matching, neighbour_pairs
from isogloss.structures.matching import Pairs
from isogloss.tasks.align import MatchingAligner, QuadraticAligner
from isogloss.tasks.align.features import PairFeatures
from isogloss.tasks.align.supervised import quadratic
from isogloss.tasks.align.supervised.link_pairs import PATTERNS, find_link_pairs, plausible
from isogloss.tasks.align.supervised.paired_matching import PairedMatching, Search
from isogloss.tasks.align.supervised.targets import GoldCells
from isogloss.tasks.align.supervised.training import Problem
from isogloss.tasks.align.supervised.validation import cross_validate

SETS = ("association", "position")
SMALL = {"features": SETS, "tune": False, "iterations": 4, "threads": 1}
MODELS = [(1, False), (2, False), (1, True), (2, True)]


def random_features(rng: np.random.Generator, shapes: list[tuple[int, int]]) -> PairFeatures:
    sizes = np.array(shapes, np.int64).reshape(-1, 2)
    cells, source, target = int(sizes.prod(axis=1).sum()), int(sizes[:, 0].sum()), int(sizes[:, 1].sum())
    links = rng.random((cells, 3)).astype(np.float32)
    nulls = rng.random((source, 2)).astype(np.float32), rng.random((target, 2)).astype(np.float32)
    return PairFeatures(sizes, ("bias", "dice", "other"), links, ("bias", "rare"), *nulls)


def with_weights(aligner: QuadraticAligner, features: PairFeatures, rng: np.random.Generator) -> QuadraticAligner:
    """The aligner as if it had learnt: random weights of the right signs."""
    aligner._names = aligner.parts(features).names
    lower, upper = aligner.bounds(aligner._names)
    aligner._weights = rng.normal(size=len(aligner._names)) * 1.5
    aligner._weights = np.where(lower == 0, abs(aligner._weights) / 3, aligner._weights)
    aligner._weights = np.where(upper == 0, -abs(aligner._weights) / 3, aligner._weights)
    aligner._weights[:3] = -0.5, 1.5, 1.0  # a few links
    aligner.temperature_, aligner.threshold_ = 1.0, None
    return aligner


@pytest.fixture(scope="module")
def text() -> tuple[Bitext, Links]:
    return samples.bitext("en-de").part(0, 16), samples.gold("en-de")[:16]


@pytest.fixture(scope="module")
def fitted(text) -> QuadraticAligner:
    return QuadraticAligner(**SMALL).fit(*text)


# --- the model class


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), model=st.sampled_from(MODELS), decode=st.sampled_from(["milp", "auto"]))
def test_predictions_are_the_best_of_all_sets_of_links(seed, model, decode):
    rng = np.random.default_rng(seed)
    n, m = (int(k) for k in rng.integers(1, 4, 2))
    fertility, pairs = model
    features = random_features(rng, [(n, m)])
    aligner = with_weights(QuadraticAligner(fertility=fertility, pairs=pairs, decode=decode), features, rng)
    weights = aligner.weights_
    null_names = [f"{name}" for name in features.null_names]
    dice = features.matrix(0, "dice").astype(float)

    def value(links: frozenset[tuple[int, int]]) -> float:
        """From the definition, feature by feature."""
        total = sum(
            weights[name] * float(features.matrix(0, name)[link]) for link in links for name in features.link_names
        )
        for side, (length, nulls) in enumerate(((n, features.source_nulls), (m, features.target_nulls))):
            name = ("source", "target")[side]
            table = dice if side == 0 else dice.T
            for word in range(length):
                degree = sum(link[side] == word for link in links)
                if degree > fertility:
                    return -np.inf
                if degree == 0:
                    for k, own in enumerate(null_names):
                        total += weights[f"{name} null: {own}"] * float(nulls[word, k])
                        if fertility > 1 and own != "bias":
                            total += weights[f"{name} null: not {own}"] * (1 - float(nulls[word, k]))
                if degree > 1:
                    second = float(np.sort(table[word])[-2]) if table.shape[1] > 1 else 0.0
                    for k, own in enumerate(null_names):
                        total += weights[f"{name} further: {own}"] * float(nulls[word, k])
                    total += weights[f"{name} further: second"] * second
                    total += weights[f"{name} further: no_second"] * (1 - second)
        if not pairs:
            return total
        for (i, j), (other, below) in itertools.combinations(sorted(links), 2):
            step = (other - i, below - j)
            names = {(1, 1): "monotone", (1, -1): "inverted", (0, 1): "one_to_two", (1, 0): "two_to_one"}
            if step not in names or (fertility == 1 and 0 in step):
                continue
            both = dice[i, j], dice[other, below]  # words are few: every link is among the three best of its row
            total += weights[f"pair: {names[step]}"] + weights[f"pair: {names[step]}:least"] * min(both)
            total += weights[f"pair: {names[step]}:most"] * max(both)
        return total

    cells = list(itertools.product(range(n), range(m)))
    every = [frozenset(c for c, b in zip(cells, bits) if b) for bits in itertools.product((0, 1), repeat=n * m)]
    found = frozenset(aligner.predict_features(features)[0].links)
    assert value(found) == pytest.approx(max(value(links) for links in every), abs=1e-5)


def test_without_fertility_and_pairs_it_is_the_matching_aligner():
    rng = np.random.default_rng(4)
    features = random_features(rng, [(5, 7), (0, 0), (6, 4), (1, 3)])
    quadratic, matching = QuadraticAligner(fertility=1, pairs=False), MatchingAligner()
    assert quadratic.parts(features).names == matching.parts(features).names
    for aligner in (quadratic, matching):
        aligner._names = aligner.parts(features).names
        aligner._weights = np.random.default_rng(2).normal(size=len(aligner._names))
        aligner.temperature_, aligner.threshold_ = 1.3, None
    a, b = (aligner.predict_features(features, probability=True) for aligner in (quadratic, matching))
    assert [sorted(x.links) for x in a] == [sorted(x.links) for x in b] and len(a.source) > 5
    assert np.allclose(a.probability, b.probability)


def test_without_fertility_and_pairs_it_learns_what_the_matching_aligner_learns(text):
    a, b = (
        kind(regularisation=5.0, missed=3.0, **{**SMALL, "iterations": 200}, **more)
        for kind, more in ((QuadraticAligner, MODEL_M), (MatchingAligner, {}))
    )
    a.fit(*text)
    b.fit(*text, extractor=a.extractor_)
    features, (setting,) = a.extractor_.transform(text[0]), b.settings()
    problem = Problem(b, features, GoldCells.of(text[1], features.shapes), setting)
    learner = b.learner(problem, setting)
    at_start = learner.primal(np.zeros(len(problem.scale)))
    values = [learner.primal(each._weights * problem.scale) for each in (a, b)]
    assert max(a.setting_.iterations, b.setting_.iterations) < 200  # both say that they are near the optimum, and are
    assert abs(values[0] - values[1]) <= max(QuadraticAligner.NEAR["frank-wolfe"], 0.01) * at_start


MODEL_M = {"fertility": 1, "pairs": False}


@pytest.mark.parametrize("model", MODELS)
def test_swapping_the_languages_transposes_the_answer(model):
    rng = np.random.default_rng(11)
    shapes = [(4, 6), (5, 5), (3, 1)]
    features = random_features(rng, shapes)
    turned = PairFeatures(
        features.shapes[:, ::-1].copy(),
        features.link_names,
        np.concatenate(
            [
                features.links[features.cells_of(k)].reshape(*shape, 3).transpose(1, 0, 2).reshape(-1, 3)
                for k, shape in enumerate(shapes)
            ]
        ),
        features.null_names,
        features.target_nulls,
        features.source_nulls,
    )
    aligner = with_weights(QuadraticAligner(fertility=model[0], pairs=model[1], decode="milp"), features, rng)
    mirror = QuadraticAligner(fertility=model[0], pairs=model[1], decode="milp")
    mirror._names = mirror.parts(turned).names
    mirror._weights = np.array([aligner.weights_[_mirrored(name)] for name in mirror._names])
    mirror.temperature_, mirror.threshold_ = 1.0, None
    there, back = aligner.predict_features(features), mirror.predict_features(turned)
    assert [sorted(a.links) for a in there] == [sorted((i, j) for j, i in b.links) for b in back]
    assert any(a.links for a in there)


def _mirrored(name: str) -> str:
    for a, b in (("source ", "target "), ("pair: one_to_two", "pair: two_to_one")):
        for one, two in ((a, b), (b, a)):
            if name.startswith(one):
                return two + name[len(one) :]
    return name


def test_pairs_are_those_of_neighbours_with_a_plausible_link():
    values = np.array([[0.9, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.5]])
    links = np.stack([np.ones(16), values.ravel()], axis=1).astype(np.float32)
    nulls = np.ones((4, 1), np.float32)
    features = PairFeatures(np.array([[4, 4]]), ("bias", "dice"), links, ("bias",), nulls, nulls)
    assert plausible(values.astype(np.float32), 1).sum() == 2
    found = find_link_pairs(features, PATTERNS, near=1)
    assert [(PATTERNS[p], *row) for p, row in zip(found.pattern, found.links.tolist())] == [
        ("monotone", 0, 0, 1, 1), ("monotone", 2, 2, 3, 3), ("one_to_two", 0, 0, 0, 1), ("one_to_two", 3, 2, 3, 3),
        ("two_to_one", 0, 0, 1, 0), ("two_to_one", 2, 3, 3, 3),
    ]  # fmt: skip
    every = find_link_pairs(features, PATTERNS, near=None)
    assert every.counts.tolist() == [9 + 9 + 12 + 12]
    rows = np.asarray(neighbour_pairs(4, 4, monotone=0, inverted=0, one_to_two=0).links)
    assert np.array_equal(rows[found.place], found.links)


# --- the structure


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_paired_matchings_are_matchings_without_the_pairs_that_score_nothing(seed):
    rng = np.random.default_rng(seed)
    links = np.asarray(neighbour_pairs(4, 5, monotone=0, inverted=0, one_to_two=0).links)
    pairs = Pairs(links, np.where(rng.random(len(links)) < 0.5, rng.random(len(links)), 0.0))
    scores, null = rng.normal(size=(4, 5)) - 0.5, -rng.random(4)
    mine, other = PairedMatching(scores, null, 0.0, 2, pairs), Matching(scores, null, 0.0, 2, pairs)
    assert mine.score(mine.argmax()) == pytest.approx(other.score(other.argmax()), abs=1e-5)
    assert mine.relaxation().value == pytest.approx(other.relaxation().value, abs=1e-5)
    total = sum(float((a * b).sum()) for a, b in zip(mine.relaxation().parts, mine.part_scores()))
    assert total == pytest.approx(mine.relaxation().value, abs=1e-5)
    assert mine.relaxation().value >= mine.score(mine.argmax()) - 1e-6
    rounded = PairedMatching(scores, null, 0.0, 2, pairs, search=Search("lp")).solution()
    assert rounded.score <= mine.solution().score + 1e-6 <= rounded.bound + 2e-6
    flow = PairedMatching(scores, null, 0.0, 2, pairs, search=Search(most_pairs=1)).solution()
    assert flow.score <= mine.solution().score + 1e-6 and flow.method == "flow" and not flow.optimal


def test_scores_of_the_wrong_sign_count_as_nothing():
    dist = PairedMatching(np.ones((2, 2)), 0.0, 0.0, 3, neighbour_pairs(2, 2, monotone=1.0))
    links, source, target, first, second, pairs = dist.part_scores()
    off = dist.with_part_scores(links, source, target, first + [1e-17, 2e-17], second - [1.0, 0.5], pairs - 2.0)
    assert off.part_scores()[3].tolist() == [[0.0, 0.0]] * 2
    assert off.part_scores()[4].tolist() == [[-1.0, -1.0]] * 2
    assert off.part_scores()[5].tolist() == [0.0]


# --- learning


@pytest.fixture
def uncalibrated(monkeypatch):
    """Belief propagation takes its time where words cannot be told apart, and links do not depend on it."""
    for aligner in (MatchingAligner, QuadraticAligner):
        monkeypatch.setattr(aligner, "calibrate", lambda self, held_out: (1.0, 0.5))


def toy(seed: int, n: int, double: bool) -> tuple[Bitext, Links]:
    """Word k is translated by k'; with `double`, words 0 to 3 by two words; else "the" and "le" go before each word."""
    rng = np.random.default_rng(seed)
    pairs, gold = [], []
    for _ in range(n):
        words = rng.choice(12, 4, replace=False).tolist()
        source, target, links = [], [], set()
        for word in words:
            if double:
                more = [f"t{word}", f"u{word}"] if word < 4 else [f"t{word}"]
                links |= {(len(source), len(target) + k) for k in range(len(more))}
                source, target = [*source, f"s{word}"], target + more
            else:
                links |= {(len(source), len(target)), (len(source) + 1, len(target) + 1)}
                source, target = [*source, "the", f"s{word}"], [*target, "le", f"t{word}"]
        pairs.append((source, target))
        gold.append(links)
    return Bitext.of(pairs), Links.of(gold)


def test_fertility_is_learnt_where_words_have_two_translations(uncalibrated):
    text, gold = toy(0, 60, double=True)
    train, test = text.part(0, 40), text.part(40, 60)
    about = {"features": ("association",), "tune": False, "iterations": 8}
    one = MatchingAligner(**about).fit(train, gold[:40], unlabelled=test)
    two = QuadraticAligner(fertility=2, pairs=False, **about).fit(train, gold[:40], unlabelled=test)
    assert one.score(test, gold[40:]).recall < 90
    assert two.score(test, gold[40:]).aer < 2
    three = QuadraticAligner(fertility=3, pairs=False, **about).fit(train, gold[:40], unlabelled=test)
    assert three.score(test, gold[40:]).aer < 2


def test_pairs_are_learnt_where_only_neighbours_tell_words_apart(uncalibrated):
    text, gold = toy(1, 30, double=False)
    train, test, held_out = text.part(0, 20), text.part(20, 30), gold[20:]
    about = {"features": ("association",), "tune": False, "iterations": 4}
    alone = MatchingAligner(**about).fit(train, gold[:20], unlabelled=test)
    together = QuadraticAligner(fertility=1, **about).fit(train, gold[:20], unlabelled=test)
    assert alone.score(test, held_out).aer > 20
    assert together.score(test, held_out).aer < 2
    assert together.weights_["pair: monotone"] > 0


@pytest.mark.parametrize("trainer", QuadraticAligner.DEFAULTS)
def test_signs_hold_after_training_and_words_have_no_more_links_than_allowed(text, trainer, fitted):
    text = text[0].part(0, 10), text[1][:10]
    aligner = QuadraticAligner(trainer=trainer, fertility=3, **SMALL).fit(*text, extractor=fitted.extractor_)
    weights = aligner.weights_
    signs = {"pair": 1, "source further": -1, "target further": -1, "source null": -1, "target null": -1}
    for name, weight in weights.items():
        assert weight * signs.get(name.split(": ")[0], 0) >= 0, name
    assert any(weight for name, weight in weights.items() if name.startswith("pair"))
    features = aligner.extractor_.transform(text[0])
    for dist in aligner.distributions(features, aligner.parts(features), aligner._weights):
        assert (np.asarray(dist.fertility.source) >= 0).all() and (np.diff(dist.fertility.target, axis=1) >= 0).all()
        assert dist.pairs is None or (np.asarray(dist.pairs.scores) >= 0).all()
    for alignment in aligner.predict(text[0]):
        for side in (0, 1):
            assert np.bincount([link[side] for link in alignment.links], minlength=1).max() <= 3
    assert score_links(aligner.predict(text[0]), text[1], bootstrap=0).aer < 50


def test_hinge_of_the_relaxation_is_above_that_of_sets_of_links(text, fitted, monkeypatch):
    monkeypatch.setattr(quadratic, "Search", lambda _, limit: Search("milp", limit))  # rounding may miss the target
    features = fitted.extractor_.transform(text[0].part(0, 6))
    cells = GoldCells.of(text[1][:6], features.shapes)
    values = []
    for relaxed in (True, False):
        aligner = QuadraticAligner(**{**SMALL, "relaxed": relaxed})
        setting = aligner.settings()[0]
        problem = Problem(aligner, features, cells, setting)
        hinge = aligner.learner(problem, setting).hinge
        weights = fitted._weights * problem.scale
        values.append([hinge.at(weights, item).value for item in range(6)])
    above, below = np.array(values)
    assert (above >= below - 1e-6).all() and (below >= -1e-6).all() and above.sum() > 0


def test_gold_with_more_links_than_allowed_can_be_kept_as_it_is():
    text, gold = toy(2, 12, double=True)
    aligner = QuadraticAligner(fertility=1, targets="gold", **SMALL)
    assert aligner.fit(text, gold).score(text, gold).precision > 80
    dist = PairedMatching(np.zeros((2, 3)), 0.0, 0.0, 2, neighbour_pairs(2, 3, one_to_two=0.0))
    links, source, target, more, further, pairs = dist.kinds_of_any(np.array([[True, True, True], [False] * 3]))
    assert links.sum() == 3 and (source.tolist(), target.tolist()) == ([0, 1], [0, 0, 0])
    assert (more.tolist(), further.tolist()) == ([[1], [0]], [[0], [0], [0]])
    assert pairs.tolist() == [1, 1, 0, 0, 0, 0, 0]


def test_costs_are_chosen_without_pairs(text):
    few = text[0].part(0, 8), text[1][:8]
    aligner = QuadraticAligner(features=("association",), folds=2, iterations=2, threads=1).fit(*few)
    assert len(aligner.tuning_) == 1 and aligner.setting_.iterations == 2
    given = QuadraticAligner(features=("association",), folds=2, iterations=2, missed=4.0)
    assert [setting.missed for setting in given.settings()] == [4.0]


# --- the contract


def test_one_line_in_one_line_out_and_probabilities_are_probabilities(fitted):
    odd = Bitext.of([(["the"], []), (["the", "house"], ["das", "Haus"]), ([], []), (["x"], ["y", "z", "w"])])
    links = fitted.predict(odd)
    assert len(links) == 4 and len(links[0].links) == len(links[2].links) == 0
    assert all(0 <= p <= 1 for p in links.probability)
    proba = fitted.predict_proba(odd)
    assert [p.shape for p in proba] == [(0, 0), (2, 2), (0, 0), (1, 3)]


def test_saved_models_predict_the_same(fitted, text, tmp_path):
    fitted.save(tmp_path / "model")
    for loaded in (QuadraticAligner.load(tmp_path / "model"), store.load(tmp_path / "model")):
        assert (loaded.fertility, loaded.pairs, loaded.near, loaded.decode) == (2, True, 3, "auto")
        new = samples.bitext("en-de").part(30, 36)
        assert loaded.weights_ == fitted.weights_
        assert str(loaded.predict(new)) == str(fitted.predict(new))


def test_threads_change_nothing(text):
    few = text[0].part(0, 8), text[1][:8]
    one, two = (QuadraticAligner(**{**SMALL, "threads": threads}).fit(*few) for threads in (1, 2))
    assert one.weights_ == two.weights_ and one.temperature_ == two.temperature_
    assert np.array_equal(one.predict(text[0]).probability, two.predict(text[0]).probability)


def test_settings_are_chosen_and_folds_work(text):
    aligner = QuadraticAligner(features=SETS, fertility=2, pairs=False, iterations=2, folds=2)
    found = cross_validate(lambda: aligner, *text, folds=2)
    assert len(found.links) == len(text[0]) and found.score.aer < 50
    assert len({found["missed"] for found in aligner.tuning_}) >= 2


def test_explanations_add_up(fitted, text):
    bitext = text[0]
    alignment = next(a for a in fitted.predict(bitext) if len(a.links) > 3)
    pair = [sorted(a.links) for a in fitted.predict(bitext)].index(sorted(alignment.links))
    i, j = sorted(alignment.links)[1]
    answer = fitted.explain(bitext, pair, source=i, target=j)
    assert answer["linked"] and answer["further"]["source"]["links"] >= 1
    for side in ("source", "target"):
        part = answer["further"][side]
        assert part["penalty"] >= 0
        assert -sum(f["contribution"] for f in part["features"]) == pytest.approx(part["penalty"], abs=1e-6)
    for entry in answer["pairs"]:
        assert entry["score"] == pytest.approx(sum(f["contribution"] for f in entry["features"]), abs=1e-6)
        assert max(abs(entry["source"] - i), abs(entry["target"] - j)) == 1 and entry["pattern"] in PATTERNS
        assert entry["linked"] == ((entry["source"], entry["target"]) in alignment.links)
    assert answer["support"] == pytest.approx(sum(e["score"] for e in answer["pairs"] if e["linked"]))


def test_time_is_limited(fitted, text):
    quick = QuadraticAligner(**{**SMALL, "time_limit": 1e-9})
    for name in ("_names", "_weights", "extractor_", "temperature_", "threshold_"):
        setattr(quick, name, getattr(fitted, name))
    links = quick.predict(text[0], probability=False)
    assert len(links) == len(text[0]) and score_links(links, text[1], bootstrap=0).aer < 50


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        ({"fertility": 0}, "fertility should be an integer from 1 to 100"),
        ({"fertility": None}, "fertility should be an integer from 1 to 100"),
        ({"near": 0}, "near should be an integer from 1 to"),
        ({"decode": "ilp"}, "decode should be"),
        ({"time_limit": 0}, "time_limit should be a number above 0, or None"),
        ({"pairs": 1}, "pairs should be True or False"),
        ({"trainer": "lbfgs"}, "trainer should be one of"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, finding):
    with pytest.raises(ParameterError, match=finding):
        QuadraticAligner(**options).check_params()
