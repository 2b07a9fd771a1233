"""`MatchingAligner` from end to end, on the bundled samples."""

from __future__ import annotations

import re
import warnings
from functools import cache

import numpy as np
import pytest

from isogloss import samples, store
from isogloss.data import Alignment, Bitext, Links
from isogloss.data.formats import IsoglossWarning
from isogloss.errors import LinksError, ModelError, ParameterError, UsageError
from isogloss.structures import Flat, Matching
from isogloss.tasks.align import MatchingAligner
from isogloss.tasks.align.features import FeatureExtractor
from isogloss.tasks.align.supervised import applying, training
from isogloss.tasks.align.supervised.matching import PlainMatching
from isogloss.tasks.align.supervised.targets import GoldCells
from isogloss.tasks.align.supervised.training import Setting
from isogloss.tasks.align.supervised.validation import cross_validate, learning_curve

CHEAP = ("association", "position", "shape", "lexical")


@cache
def text() -> Bitext:
    return samples.bitext("en-de")


@cache
def gold() -> Links:
    return samples.gold("en-de")


@cache
def extractor() -> FeatureExtractor:
    return FeatureExtractor(CHEAP).fit(text())


@cache
def fitted(trainer: str = "frank-wolfe") -> MatchingAligner:
    aligner = MatchingAligner(trainer=trainer, features=CHEAP, tune=False, iterations=5)
    return aligner.fit(text().part(0, 35), gold()[:35], extractor=extractor())


def held_out() -> tuple[Bitext, Links]:
    return text().part(35, 50), gold()[35:]


def unseen() -> Bitext:
    """Words of the samples, sentences that are not."""
    return Bitext.of(
        [
            ("The woman sees a small book .", "Die Frau sieht ein kleines Buch ."),
            ("", "leer"),
            ("two words", "ein Wort mehr"),
        ]
    )


# --- the structure that learners see


def test_plain_matching_is_flat_of_matching():
    rng = np.random.default_rng(0)
    for shape in ((2, 3), (3, 2), (1, 1), (4, 4), (1, 5)):
        n, m = shape
        scores = rng.normal(size=n * m + n + m)
        plain = PlainMatching(shape).with_scores(scores)
        flat = Flat(Matching(np.zeros(shape))).with_scores(scores)
        assert plain.argmax() == flat.argmax()
        links = plain.argmax()
        assert plain.parts(links).tolist() == flat.parts(links).tolist()
        assert plain.score(links) == pytest.approx(flat.dist.score(links))
        assert plain.log_partition() == pytest.approx(flat.log_partition())
        assert plain.marginals() == pytest.approx(flat.marginals())


# --- learning


@pytest.mark.parametrize("trainer", MatchingAligner.DEFAULTS)
def test_every_trainer_learns(trainer):
    bitext, links = held_out()
    score = fitted(trainer).score(bitext, links)
    rough = np.array([w for name, w in fitted(trainer).weights_.items() if name == "dice"])
    assert score.aer < 35, score
    assert rough[0] > 0


@pytest.mark.parametrize("trainer", MatchingAligner.NEAR)
def test_margins_are_learnt_until_the_optimum_is_near(trainer, monkeypatch):
    features = extractor().transform(text().part(0, 20))
    cells = GoldCells.of(gold()[:20], features.shapes)
    aligner = MatchingAligner(trainer=trainer, features=CHEAP, tune=False)
    (setting,) = aligner.settings()
    problem = training.Problem(aligner, features, cells, setting)
    learner = aligner.learner(problem, setting)
    near = MatchingAligner.NEAR[trainer] * learner.primal(learner.init().weights)
    distances = []
    state = learner.init()
    while not distances or distances[-1] > near:
        state, info = learner.step(state)
        distances.append(info.distance)
    aligner.fit_features(features, cells)
    assert aligner.setting_.iterations == len(distances) == len(aligner.trace_) < setting.iterations
    assert aligner._weights == pytest.approx(problem.weights(state.average))
    assert learner.primal(state.weights) - info.objective * (-1 if trainer == "extragradient" else 1) <= 2 * near
    monkeypatch.setattr(MatchingAligner, "NEAR", {})
    few = MatchingAligner(trainer=trainer, features=CHEAP, tune=False, iterations=3).fit_features(features, cells)
    assert few.setting_.iterations == 3


def test_a_training_that_has_settled_has_the_same_weights_for_further_passes():
    aligner = MatchingAligner(features=CHEAP, folds=2)
    aligner.fit(text().part(0, 12), gold()[:12], extractor=extractor())
    assert len(aligner.tuning_) == 4 and aligner.setting_.iterations < 100 == aligner.tuning_[0]["iterations"]
    assert all(entry["trainer"] == "frank-wolfe" == aligner.trainer_ for entry in aligner.tuning_)


def test_learning_from_the_cells_of_gold_overfits_what_it_has_seen():
    few = text().part(0, 6)
    aligner = MatchingAligner(features=CHEAP, tune=False, regularisation=1e-3, iterations=40, missed=1.0)
    aligner.fit(few, gold()[:6], extractor=extractor())
    assert aligner.score(few, gold()[:6]).aer < 8  # what is not one to one cannot be had


def test_missed_cost_raises_recall():
    weak = FeatureExtractor(("association",)).fit(text())
    found = []
    for missed in (0.1, 10.0):  # words without links against links that are likely: what dice alone cannot decide
        aligner = MatchingAligner(features=("association",), tune=False, iterations=10, missed=missed)
        found.append(aligner.fit(text().part(0, 35), gold()[:35], extractor=weak).score(*held_out()))
    assert found[0].recall < found[1].recall
    assert found[0].links < found[1].links  # whether the further ones are worse is up to the last bits of the weights


def test_tuning_tries_the_grid_and_keeps_what_the_user_said():
    aligner = MatchingAligner(trainer="mira", features=CHEAP, iterations=2, folds=2)
    aligner.fit(text().part(0, 20), gold()[:20], extractor=extractor())
    assert {row["missed"] for row in aligner.tuning_} == {1.0, 3.0}
    assert {row["iterations"] for row in aligner.tuning_} == {2}
    least = min(row["aer"] for row in aligner.tuning_)
    assert any(row["aer"] == least and row["missed"] == aligner.setting_.missed for row in aligner.tuning_)
    assert aligner.options_["iterations"] == 2 and aligner.options_["missed"] == aligner.setting_.missed
    fixed = MatchingAligner(trainer="mira", features=CHEAP, missed=2.0, folds=2)
    assert {setting.missed for setting in fixed.settings()} == {2.0}


def test_dev_takes_the_place_of_folds():
    dev = text().part(20, 30), gold()[20:30]
    aligner = MatchingAligner(trainer="perceptron", features=CHEAP)
    aligner.fit(text().part(0, 20), gold()[:20], dev=dev, extractor=extractor())
    assert 1 < len(aligner.tuning_) <= 10
    best = min(aligner.tuning_, key=lambda row: row["aer"])
    assert best["iterations"] == aligner.setting_.iterations
    assert aligner.score(*dev).aer == pytest.approx(100 * best["aer"])


def test_temperature_is_fitted_to_dev_where_nothing_is_tuned():
    dev = text().part(20, 35), gold()[20:35]
    make = lambda: MatchingAligner(features=CHEAP, tune=False, iterations=20, regularisation=1e-3)  # noqa: E731
    alone = make().fit(text().part(0, 20), gold()[:20], extractor=extractor())
    beside = make().fit(text().part(0, 20), gold()[:20], dev=dev, extractor=extractor())
    assert beside.weights_ == alone.weights_ and beside.tuning_ == []
    features = extractor().transform(dev[0])
    cells = GoldCells.of(dev[1], features.shapes)
    likelihoods = []
    for aligner in (alone, beside):
        found, _ = training._posteriors(
            aligner, training.HeldOut(features, cells, aligner._weights), aligner.temperature_
        )
        p = np.concatenate([each.ravel() for each in found])
        p = np.clip(p, 1e-6, 1 - 1e-6)[~cells.possible]
        likelihoods.append(np.log(np.where(cells.sure[~cells.possible], p, 1 - p)).sum())
    assert likelihoods[1] > likelihoods[0] and beside.temperature_ > alone.temperature_


def test_the_same_weights_on_one_thread_and_two():
    found = [
        MatchingAligner(features=CHEAP, tune=False, iterations=3, threads=threads)
        .fit(text().part(0, 20), gold()[:20], extractor=extractor())
        for threads in (1, 2)
    ]  # fmt: skip
    assert found[0].weights_ == found[1].weights_
    assert found[0].temperature_ == found[1].temperature_
    first, second = (aligner.predict(text().part(20, 50)) for aligner in found)
    assert first.source.tolist() == second.source.tolist() and first.target.tolist() == second.target.tolist()
    assert first.probability.tolist() == second.probability.tolist()


@pytest.mark.parametrize("targets", ["latent", "fixed", "gold"])
def test_targets_of_all_kinds(targets):
    for trainer in ("mira", "frank-wolfe", "extragradient"):
        aligner = MatchingAligner(features=CHEAP, tune=False, targets=targets, trainer=trainer, iterations=4)
        aligner.fit(text().part(0, 20), gold()[:20], extractor=extractor())
        assert aligner.score(*held_out()).aer < 50


def test_pairs_without_gold_are_passed_over_unless_asked_for():
    rows = [gold()[k] if k % 2 else Alignment(frozenset()) for k in range(20)]
    make = lambda **more: MatchingAligner(features=CHEAP, tune=False, iterations=2, **more)  # noqa: E731
    skipping = make().fit(text().part(0, 20), Links.of(rows), extractor=extractor())
    learning = make(empty="learn").fit(text().part(0, 20), Links.of(rows), extractor=extractor())
    assert (skipping.n_gold_, learning.n_gold_) == (10, 20)
    counts = [len(aligner.predict(text()).source) for aligner in (skipping, learning)]
    assert counts[1] < counts[0]


# --- applying


def test_predictions_are_matchings_with_probabilities():
    found = fitted().predict(text())
    assert len(found) == len(text()) and found.bitext is text()
    assert ((found.probability >= 0) & (found.probability <= 1)).all()
    proba = fitted().predict_proba(text())
    for k, row in enumerate(found):
        assert len({i for i, _ in row.links}) == len(row.links) == len({j for _, j in row.links})
        assert proba[k].shape == tuple(map(len, text()[k]))
        assert proba[k].sum(axis=0).max() <= 1 + 1e-4 and proba[k].sum(axis=1).max() <= 1 + 1e-4
        assert all(p == pytest.approx(proba[k][link], abs=1e-6) for link, p in row.probability.items())


def test_temperature_makes_probabilities_honest():
    """Links of held-out pairs are right about as often as they say."""
    aligner = MatchingAligner(features=CHEAP, folds=4, iterations=5, missed=1.0, regularisation=1.0)
    aligner.fit(text().part(0, 35), gold()[:35], extractor=extractor())
    bitext, links = held_out()
    found = aligner.predict(bitext)
    right = [(link in links[k].links) or (link in links[k].possible) for k, row in enumerate(found) for link in row]
    assert abs(float(found.probability.mean()) - np.mean(right)) < 0.15


def test_temperatures_where_beliefs_do_not_settle_are_given_up_soon():
    shape = FeatureExtractor(("shape",)).fit(text())  # most words look alike as little as others: ties
    aligner = MatchingAligner(features=("shape",), trainer="perceptron", tune=False)
    aligner.fit(text(), gold(), extractor=shape)
    features = shape.transform(text())
    own = training.HeldOut(features, GoldCells.of(gold(), features.shapes), aligner._weights)
    looked_at: list[int] = []
    plain = aligner.distributions
    aligner.distributions = lambda some, *more: looked_at.append(len(some)) or plain(some, *more)
    warm = training._settled_posterior(aligner, [own], aligner.temperature_)
    assert sum(looked_at) == 50
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        every, _ = training._posteriors(aligner, own, aligner.temperature_)
        assert warm.tolist() == np.concatenate([p.ravel() for p in every]).tolist()
    looked_at.clear()
    assert training._settled_posterior(aligner, [own] * 20, aligner.temperature_ / 4) is None
    assert sum(looked_at) < 200  # of a thousand


def test_calibration_looks_at_few_pairs_and_few_cells():
    features = extractor().transform(text())
    own = training.HeldOut(features, GoldCells.of(gold(), features.shapes), np.zeros(1))
    sizes = np.cumsum(features.shapes.prod(axis=1))
    for pairs, cells, wanted in ((7, 10**6, 7), (50, int(sizes[9]), 10), (50, int(sizes[9]) - 1, 9), (50, 1, 1)):
        some = training._first(own, pairs, cells)
        assert len(some.features) == len(some.gold) == wanted
        assert some.gold.sure.tolist() == own.gold.sure[: sizes[wanted - 1]].tolist()


def test_threshold_takes_cells_by_probability():
    aligner = MatchingAligner(features=CHEAP, tune=False, iterations=3, threshold=0.3)
    aligner.fit(text().part(0, 20), gold()[:20], extractor=extractor())
    proba, links = aligner.predict_proba(text()), aligner.predict(text())
    for k, row in enumerate(links):
        assert row.links == {tuple(cell) for cell in np.argwhere(proba[k] >= np.float32(0.3)).tolist()}
    aligner.threshold_ = 0.9
    assert len(aligner.predict(text()).source) < len(links.source)
    auto = MatchingAligner(features=CHEAP, tune=False, iterations=3, threshold="auto")
    auto.fit(text().part(0, 20), gold()[:20], extractor=extractor())
    assert 0 < auto.threshold_ < 1


def test_empty_and_long_pairs_have_a_row_without_links():
    aligner = MatchingAligner(features=CHEAP, tune=False, iterations=2, max_length=5)
    aligner.fit(text().part(0, 20), gold()[:20])
    found = aligner.predict(unseen())
    assert len(found) == 3 and not found[0].links and not found[1].links and found[2].links
    scores = aligner.pair_scores(unseen())
    assert np.isnan(scores[:2]).all() and 0 <= scores[2] <= 1
    assert [p.shape for p in aligner.predict_proba(unseen())] == [(0, 0), (0, 0), (2, 3)]
    assert aligner.explain(unseen(), 0, source=0)["reason"].startswith("the pair was passed over")


def test_long_texts_are_worked_on_in_pieces(monkeypatch):
    whole = fitted().predict(text())
    monkeypatch.setattr(applying, "CELLS", 200)
    pieces = fitted().predict(text())
    for name in ("offsets", "source", "target", "probability"):
        assert getattr(pieces, name).tolist() == getattr(whole, name).tolist()


def test_pair_scores_know_translations():
    shuffled = Bitext.of((text()[k][0], text()[(k + 7) % 50][1]) for k in range(35, 50))
    assert fitted().pair_scores(text().part(35, 50)).mean() > fitted().pair_scores(shuffled).mean() + 0.1


# --- explaining


def test_contributions_sum_to_the_score():
    aligner = fitted()
    bitext, pair = text(), 37
    linked = aligner.predict(bitext)[pair].links
    n, m = map(len, bitext[pair])
    for i, j in [*sorted(linked)[:2], (0, m - 1), (n - 1, 0)]:
        told = aligner.explain(bitext, pair, source=i, target=j)
        assert sum(entry["contribution"] for entry in told["features"]) == pytest.approx(told["score"])
        nulls = told["nulls"]
        for side in ("source", "target"):
            assert sum(e["contribution"] for e in nulls[side]["features"]) == pytest.approx(nulls[side]["score"])
        assert told["gain"] == pytest.approx(told["score"] - nulls["source"]["score"] - nulls["target"]["score"])
        assert told["linked"] == ((i, j) in linked)
        sizes = [abs(entry["contribution"]) for entry in told["features"]]
        assert sizes == sorted(sizes, reverse=True)
        assert all(entry["source"] == i for entry in told["competitors"]["source"])
        assert all(entry["target"] == j for entry in told["competitors"]["target"])
        assert told["words"] == [bitext[pair][0][i], bitext[pair][1][j]]
    alone = aligner.explain(bitext, pair, target=0)
    assert alone["target"] == 0 and alone["probability"] == max(
        [alone["probability"], *(entry["probability"] for entry in alone["competitors"]["target"])]
    )


def test_explain_says_what_is_not_there():
    for problem, options in (("name a word", {}), ("no source word 99", {"source": 99}), ("no target", {"target": -1})):
        with pytest.raises(UsageError, match=problem):
            fitted().explain(text(), 0, **options)
    with pytest.raises(UsageError, match="there is no pair 50"):
        fitted().explain(text(), 50, source=0)


# --- keeping


def test_saved_and_loaded_gives_the_same_links(tmp_path):
    aligner = MatchingAligner(tune=False, iterations=3, missed=2.0, seed=3, threshold=0.4)
    aligner.fit(text().part(0, 20), gold()[:20])
    aligner.save(tmp_path / "m")
    new = unseen()
    for again in (store.load(tmp_path / "m"), MatchingAligner.load(tmp_path / "m")):
        assert type(again) is MatchingAligner
        assert again.weights_ == aligner.weights_ and again.options_ == aligner.options_
        assert again.threshold_ == 0.4 and again.setting_ == aligner.setting_
        first, second = aligner.predict(new), again.predict(new)
        for name in ("offsets", "source", "target", "probability"):
            assert getattr(first, name).tolist() == getattr(second, name).tolist()
    aligner.save(tmp_path / "twice")
    for name in ("model.json", "model.safetensors"):
        assert (tmp_path / "m" / name).read_bytes() == (tmp_path / "twice" / name).read_bytes()


def test_damaged_model_is_refused(tmp_path):
    fitted().save(tmp_path / "m")
    saved = store.read(tmp_path / "m")
    weights, without = saved.arrays["weights"], {n: a for n, a in saved.arrays.items() if n != "trace"}
    bare = {n: a for n, a in saved.arrays.items() if not n.startswith("extractor.counts")}
    words = {**saved.arrays, "names.offsets": saved.arrays["names.offsets"][:-1]}
    for change, finding in (
        (
            {"arrays": {**saved.arrays, "weights": weights[:-1]}},
            rf"'weights' is float64\[{len(weights) - 1}\] and should be float64\[{len(weights)}\]",
        ),
        (
            {"arrays": {**saved.arrays, "weights": weights * np.nan}},
            "'weights' has numbers that are infinite, not numbers",
        ),
        ({"arrays": without}, "'trace' is missing"),
        ({"arrays": bare}, "the word counts of this model: array .* is missing"),
        ({"arrays": words}, "array 'weights' is float64"),
        ({"options": {**saved.options, "trainer": "magic"}}, "trainer should be one of"),
        ({"options": {**saved.options, "magic": 1}}, "magic"),
        ({"options": {**saved.options, "links": ["eflomal"]}}, "links by nobody, and its options say eflomal"),
        ({"meta": {**saved.meta, "temperature": 0}}, "'temperature' should be a number from 1e-06"),
        ({"meta": {**saved.meta, "setting": {"cost": 1}}}, "cost"),
        ({"meta": {}}, "KeyError: 'tuning'"),
    ):
        kept = {"options": saved.options, "arrays": saved.arrays, "meta": saved.meta, **change}
        store.save(tmp_path / "b", kind=saved.kind, **kept)
        with pytest.raises(ModelError, match=f"^{re.escape(str(tmp_path / 'b'))}: .*{finding}.*again"):
            MatchingAligner.load(tmp_path / "b")


def same_length(view):
    return np.equal.outer([len(word) for word in view.source], [len(word) for word in view.target])


def ends(view):
    last = {}
    for k in (1, 2):
        sides = ([word[-k:] for word in side] for side in (view.source, view.target))
        last[f"last{k}"] = np.array([[a == b for b in columns] for rows, columns in [tuple(sides)] for a in rows])
    return last


def test_features_of_your_own_are_given_again(tmp_path):
    """What a function computes cannot be in the file, so the loaded model must call it, and in its own column."""
    folder = tmp_path / "m"
    aligner = MatchingAligner(features=("association",), extra=[same_length, ends], tune=False, iterations=3)
    aligner.fit(text().part(0, 20), gold()[:20]).save(folder)
    again = MatchingAligner.load(folder, extra=[same_length, ends])
    first, second = aligner.predict_proba(unseen()), again.predict_proba(unseen())
    assert all(a.tolist() == b.tolist() for a, b in zip(first, second, strict=True))
    again.save(tmp_path / "twice")
    assert (tmp_path / "twice" / "model.json").read_bytes() == (folder / "model.json").read_bytes()
    nothing = MatchingAligner.load(folder, extra=[lambda view: 0 * same_length(view), ends])
    assert any(a.tolist() != b.tolist() for a, b in zip(first, nothing.predict_proba(unseen()), strict=True))
    place = f"^{re.escape(str(folder))}: "
    for load, finding in (
        (lambda: MatchingAligner.load(folder), r"\(same_length, last1, last2\).*MatchingAligner.load\(path, extra="),
        (lambda: MatchingAligner.load(folder, extra=[ends]), "extra has 1 function, and the model was trained with 2"),
        (lambda: MatchingAligner.load(folder, extra=[ends, same_length]), "same_length stands in the place of last1"),
    ):
        with pytest.raises(ModelError, match=place + f".*{finding}"):
            load()
    fitted().save(tmp_path / "plain")
    with pytest.raises(ModelError, match="trained with 0: leave out extra"):
        MatchingAligner.load(tmp_path / "plain", extra=[ends])
    with pytest.raises(ModelError, match="features of your own"):
        store.load(folder)


# --- wrong input


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        ({"trainer": "sgd"}, "trainer should be one of 'frank-wolfe'"),
        ({"targets": "none"}, "targets should be"),
        ({"missed": -1}, "missed should be a number from 0"),
        ({"iterations": 0}, "iterations should be an integer from 1"),
        ({"iterations": True}, "iterations should be an integer"),
        ({"folds": 1}, "folds should be an integer from 2"),
        ({"seed": -1}, "seed should be an integer from 0"),
        ({"seed": "x"}, "seed should be an integer"),
        ({"max_length": None}, "max_length should be an integer"),
        ({"tune": "no"}, "tune should be True or False"),
        ({"lowercase": 2}, "lowercase should be True or False"),
        ({"threshold": 1.5}, "threshold should be"),
        ({"regularisation": float("nan")}, "regularisation should be"),
        ({"features": ("magic",)}, "there is no set of features"),
    ],
)
def test_options_that_make_no_sense(options, finding):
    with pytest.raises(ParameterError, match=finding):
        MatchingAligner(**options).check_params()
    with pytest.raises(ParameterError, match=finding):
        MatchingAligner(**options).fit(text(), gold())


def test_options_are_kept_as_they_are_given():
    sets = ["association"]
    aligner = MatchingAligner(features=sets, extra=(len,), threads=3)
    given = aligner.get_params()
    assert given["features"] is sets and given["targets"] is None and given["trainer"] == "frank-wolfe"
    assert aligner.kept_options["targets"] == "fixed"
    assert not {"extra", "threads", "dictionary"} & aligner.options_.keys()
    assert type(aligner)(**given).get_params() == given


def test_gold_that_teaches_nothing():
    small = text().part(0, 2)
    aligner = MatchingAligner(features=CHEAP, tune=False)
    with pytest.raises(LinksError, match="no links at all"):
        aligner.fit(small, Links.of([set(), set()]))
    possible = Links.of([Alignment(frozenset(), frozenset({(0, 0)}))] * 2)
    with pytest.raises(LinksError, match=r"only possible links.*i-j"):
        aligner.fit(small, possible)
    with pytest.raises(LinksError, match="2 sentence pairs but"):
        aligner.fit(text(), gold()[:2])
    with pytest.raises(UsageError, match="learnt nothing yet"):
        aligner.predict(text())
    with pytest.warns(IsoglossWarning, match="gold for 2 sentence pairs is little"):
        aligner.fit(small, gold()[:2], extractor=extractor())


def test_one_pair_of_gold_is_enough_to_run():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        aligner = MatchingAligner(features=CHEAP).fit(text().part(0, 1), gold()[:1], extractor=extractor())
    assert len(aligner.predict(text())) == 50


# --- other systems' links, and features of one's own


def test_links_of_others_and_features_of_your_own():
    own = lambda view: (np.arange(len(view.source))[:, None] == np.arange(len(view.target))).astype(float)  # noqa: E731
    oracle = {"oracle": gold()[:30]}
    aligner = MatchingAligner(features=("association",), links=["oracle"], extra=[own], tune=False)
    aligner.fit(text().part(0, 30), gold()[:30], links=oracle)
    assert aligner.weights_["links:oracle"] == max(aligner.weights_.values())
    found = aligner.predict(text().part(30, 50), links={"oracle": gold()[30:]})
    assert len(found) == 20
    with pytest.raises(UsageError, match="oracle"):
        aligner.predict(text())


def test_links_of_others_for_dev():
    parts = [(text().part(a, b), gold()[a:b]) for a, b in ((0, 20), (20, 35))]
    make = lambda: MatchingAligner(features=("association",), links=["oracle"], iterations=3, missed=1.0)  # noqa: E731
    given = {"links": {"oracle": parts[0][1]}}
    good = make().fit(*parts[0], dev=parts[1], dev_links={"oracle": parts[1][1]}, **given)
    nothing = Links.of([set()] * 15)
    bad = make().fit(*parts[0], dev=parts[1], dev_links={"oracle": nothing}, **given)
    assert good.weights_["links:oracle"] > 0
    assert max(row["aer"] for row in good.tuning_) < min(row["aer"] for row in bad.tuning_)
    for options, words in (
        ({"dev": parts[1], **given}, r"dev_links: those of nobody were given, and features are those of oracle"),
        ({"dev_links": given["links"], **given}, "without dev"),
        ({"links": {"someone": parts[0][1]}}, r": links: those of someone were given, and .* oracle"),
        ({}, ": links: those of nobody were given"),
    ):
        with pytest.raises(UsageError, match=words):
            make().fit(*parts[0], **options)
    assert len(make().fit_predict(*parts[0], **given)) == 20


# --- validation


def test_cross_validation_predicts_each_pair_once_from_the_others():
    small = lambda: MatchingAligner(features=CHEAP, tune=False, iterations=3)  # noqa: E731
    found = cross_validate(small, text(), gold(), folds=3, seed=1, extractor=extractor())
    assert len(found.links) == 50 and len(found.scores) == 3
    fold = found.folds[1]
    rest = np.setdiff1d(np.arange(50), fold)
    again = small().fit(
        Bitext.of(text()[k] for k in rest), Links.of(gold()[k] for k in rest), extractor=extractor()
    )  # fmt: skip
    assert again.predict(text().part(int(fold[0]), int(fold[0]) + 1))[0].links == found.links[int(fold[0])].links
    same = found.compare(found, resamples=200)
    assert same.delta == 0 and same.p_value == 1.0
    with pytest.raises(ParameterError, match="folds"):
        cross_validate(small, text(), gold(), folds=1, extractor=extractor())


def test_learning_curve_falls():
    small = lambda: MatchingAligner(features=CHEAP, tune=False, iterations=3)  # noqa: E731
    points = learning_curve(
        small, text().part(0, 35), gold()[:35], held_out(), sizes=(2, 35, 100), repeats=2, extractor=extractor()
    )
    assert [(point.size, len(point.aers)) for point in points] == [(2, 2), (35, 1)]
    assert points[1].mean < points[0].mean
    assert points[1].as_dict()["aer"] == points[1].mean


def test_settings_go_through_json():
    setting = Setting(2.0, 1.0, 5, 10, None)
    assert Setting.from_dict(setting.as_dict()) == setting
