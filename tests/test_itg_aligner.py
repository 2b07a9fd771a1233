"""`ItgAligner`: charts and blocks by hand, latent likelihood by enumeration, and the aligner from end to end."""

from __future__ import annotations

import itertools
import warnings
from functools import cache

import numpy as np
import pytest

from isogloss import samples, store
from isogloss.data import Alignment, Bitext, Links
from isogloss.errors import LinksError, ParameterError
from isogloss.structures import Blocks, Flat, Itg
from isogloss.tasks.align import ItgAligner
from isogloss.tasks.align.features import FeatureExtractor, PairFeatures
from isogloss.tasks.align.supervised.applying import competitive, links_at
from isogloss.tasks.align.supervised.blocks import block_parts, find_candidates, largest_block
from isogloss.tasks.align.supervised.charts import BlockItg, FlatItgs, Pruner
from isogloss.tasks.align.supervised.parts import take_pairs
from isogloss.tasks.align.supervised.targets import GoldCells, link_cost
from isogloss.tasks.align.supervised.training import Problem, Setting
from isogloss.testing import itg_alignments

CHEAP = ("association", "position", "shape", "lexical")
SHAPES = [(2, 3), (0, 0), (3, 3), (1, 4), (4, 1)]


def random_features(rng, shapes, *, posteriors=False) -> PairFeatures:
    sizes = np.array(shapes, np.int64).reshape(-1, 2)
    cells = int(sizes.prod(axis=1).sum())
    fired = rng.integers(0, 3, cells)
    indptr = np.concatenate([[0], np.cumsum(fired)]).astype(np.int64)
    picks = [rng.choice(4, count, replace=False).astype(np.int32) for count in fired]
    names = ("bias", "dice", "x", *(("hmm_forward", "hmm_backward") if posteriors else ()))
    links = rng.random((cells, len(names))).astype(np.float32)
    links[:, 0] = 1.0
    nulls = [rng.random((int(n), 2)).astype(np.float32) for n in sizes.sum(axis=0)]
    lexical = indptr, np.concatenate([np.zeros(0, np.int32), *picks])
    return PairFeatures(sizes, names, links, ("bias", "rare"), *nulls, lexical, tuple(f"w{k}" for k in range(4)))


def random_gold(rng, shapes) -> Links:
    rows = []
    for n, m in shapes:
        draw = rng.random((n, m))
        sure, possible = (frozenset(map(tuple, np.argwhere(flags).tolist())) for flags in (draw < 0.3, draw > 0.8))
        rows.append(Alignment(sure, possible))
    return Links.of(rows)


@cache
def text() -> Bitext:
    return samples.bitext("en-de")


@cache
def gold() -> Links:
    return samples.gold("en-de")


@cache
def extractor(*sets: str) -> FeatureExtractor:
    return FeatureExtractor(sets or CHEAP).fit(text())


@cache
def fitted(trainer: str = "mira", blocks: int | None = None) -> ItgAligner:
    aligner = ItgAligner(trainer=trainer, features=CHEAP, tune=False, iterations=4, blocks=blocks)
    return aligner.fit(text().part(0, 15), gold()[:15], extractor=extractor())


def held_out() -> tuple[Bitext, Links]:
    return text().part(35, 45), gold()[35:45]


# --- blocks and their features


@pytest.mark.parametrize("size", [2, 3, 5])
def test_candidates_are_the_blocks_whose_links_are_all_kept(size):
    rng = np.random.default_rng(0)
    features = random_features(rng, SHAPES)
    keep = rng.random(len(features.links)) < 0.7
    sides = find_candidates(features, size, keep)
    for pair, (n, m) in enumerate(SHAPES):
        flags = keep[features.cells_of(pair)].reshape(n, m)
        for side, blocks in enumerate(sides):
            wanted = []
            for i, j, length in itertools.product(range(n), range(m), range(2, size + 1)):
                rows, columns = (length, 1) if side == 0 else (1, length)
                if i + rows <= n and j + columns <= m and flags[i : i + rows, j : j + columns].all():
                    wanted.append(int(np.ravel_multi_index((i, j, length - 2), (n, m, size - 1))))
            assert blocks.places_of(pair).tolist() == wanted


def test_a_block_has_mean_least_and_every_indicator_of_its_links():
    features = random_features(np.random.default_rng(1), SHAPES)
    parts = block_parts(features, 3)
    for side, (kind, blocks) in enumerate(zip(parts.kinds[3:], parts.candidates, strict=True)):
        column = {name: k for k, name in enumerate(kind.features)}
        assert kind.name == ("source block", "target block")[side] and kind.counts.sum() == len(blocks.pair)
        assert kind.indicators is not None
        for row, (pair, place) in enumerate(zip(blocks.pair.tolist(), blocks.place.tolist(), strict=True)):
            n, m = SHAPES[pair]
            i, j, more = (int(x) for x in np.unravel_index(place, (n, m, 2)))
            rows, columns = (more + 2, 1) if side == 0 else (1, more + 2)
            cells = [
                features.cells_of(pair).start + a * m + b
                for a in range(i, i + rows) for b in range(j, j + columns)
            ]  # fmt: skip
            values = features.links[cells]
            assert kind.values[row, column["x"]] == pytest.approx(values[:, 2].mean(), rel=1e-6)
            assert kind.values[row, column["least dice"]] == values[:, 1].min()
            lengths = [kind.values[row, column[f"length {length}"]] for length in (2, 3)]
            assert lengths == [float(length == more + 2) for length in (2, 3)]
            indptr, indices = features.lexical
            fired = sorted({int(k) for cell in cells for k in indices[indptr[cell] : indptr[cell + 1]]})
            own = kind.indicators[1][kind.indicators[0][row] : kind.indicators[0][row + 1]]
            assert sorted(own.tolist()) == fired


def test_blocks_know_how_their_words_go_together():
    sets = (*CHEAP, "blocks")
    some = extractor(*sets).transform(text().part(0, 4))
    parts = block_parts(some, 3)
    given = extractor(*sets).block_features(text().part(0, 4), some, averaged=())
    for side, (kind, blocks) in enumerate(zip(parts.kinds[3:], parts.candidates, strict=True)):
        column = kind.features.index("ngram_count")
        for row in range(0, len(blocks.pair), 97):
            n, m = some.shape(int(blocks.pair[row]))
            i, j, more = np.unravel_index(blocks.place[row], (n, m, 2))
            there = given.offsets[blocks.pair[row]] + np.ravel_multi_index((side, i, j, more), (2, n, m, 3))
            assert kind.values[row, column] == given.values[there, given.names.index("ngram_count")]
            shape = given.indicators[1][given.indicators[0][there] : given.indicators[0][there + 1]] + len(
                some.lexical_names
            )
            own = kind.indicators[1][kind.indicators[0][row] : kind.indicators[0][row + 1]]
            assert own[own >= len(some.lexical_names)].tolist() == shape.tolist()
    assert any(name.startswith("[") for name in parts.kinds[3].indicator_names)


def test_gold_says_how_large_blocks_are():
    def of(*rows):
        return largest_block(GoldCells.of(Links.of(rows), np.full((len(rows), 2), 6)))

    assert of({(0, 0), (1, 1)}) is None
    assert of({(0, 0), (1, 0)}) == 2
    assert of({(0, 0), (0, 1), (0, 2), (2, 4)}) == 3
    assert of({(0, j) for j in range(6)}) == 4
    assert of({(0, 0), (2, 0)}) is None  # a gap
    assert of({(0, 0), (0, 1), (1, 1)}) is None  # neither side is one word
    assert of({(0, 0), (1, 0)}, *[{(k, k) for k in range(6)}] * 40) is None  # too few of them


# --- structures


def test_listed_blocks_are_an_itg_in_which_the_others_are_forbidden():
    rng = np.random.default_rng(2)
    features = random_features(rng, [(3, 4)])
    first, second = find_candidates(features, 3, rng.random(12) < 0.8)
    places = first.places_of(0), second.places_of(0)
    zeros = Blocks(np.zeros((3, 4, 2)), np.zeros((3, 4, 2)))
    flat = Flat(BlockItg(Itg(np.zeros((3, 4)), blocks=zeros), places))
    flat = flat.with_scores(rng.normal(size=12 + 7 + len(places[0]) + len(places[1])))
    sides = []
    for at, scores in zip(places, np.split(flat.scores[19:], [len(places[0])]), strict=True):
        side = np.full(24, -np.inf)
        side[at] = scores
        sides.append(side.reshape(3, 4, 2))
    whole = Itg(flat.scores[:12].reshape(3, 4), flat.scores[12:15], flat.scores[15:19], blocks=Blocks(*sides))
    assert flat.log_partition() == pytest.approx(whole.log_partition(), abs=1e-12)
    assert flat.argmax() == whole.argmax()
    allowed = [y for y in itg_alignments(3, 4, 3) if whole.log_prob(y) > -np.inf]
    scores = np.array([flat.parts(y) @ flat.scores for y in allowed])
    assert np.allclose(scores, [whole.score(y) for y in allowed])
    p = np.exp(scores - flat.log_partition())
    assert p.sum() == pytest.approx(1.0) and len(p) < len(itg_alignments(3, 4, 3))
    assert np.allclose(flat.marginals(), sum(q * flat.parts(y) for q, y in zip(p, allowed, strict=True)))
    batch = FlatItgs([flat, Flat(Itg(np.zeros((2, 1))))])
    assert np.array_equal(batch.marginals()[0], flat.marginals()) and batch.marginals()[1].shape == (5,)


def test_costs_of_blocks_are_those_of_their_links():
    rng = np.random.default_rng(3)
    features = random_features(rng, [(3, 3)])
    aligner = ItgAligner(blocks=3)
    aligner.block_size_ = 3
    (flat,) = aligner.structures(features)
    sure = rng.random((3, 3)) < 0.4
    cost = link_cost(sure, ~sure & (rng.random((3, 3)) < 0.3), missed=2.0)
    parts = aligner.spread(flat, cost.parts)
    for y in itg_alignments(3, 3, 3):
        links = np.zeros((3, 3))
        for cell in y:
            links[cell] = 1.0
        assert flat.parts(y) @ parts == pytest.approx((links * cost.parts).sum())


def test_pruning_gets_stricter_until_a_chart_fits():
    rng = np.random.default_rng(4)
    dist, p = Itg(rng.normal(size=(12, 12))), np.eye(12)
    sizes = [dist.prune(p, p, cell_limit=limit).chart_bytes() for limit in (8, 4, 2, 1)]
    assert dist.chart_bytes() > sizes[0] > sizes[1] > sizes[2] > sizes[3]
    for limit, size in zip((8, 4, 2, 1), sizes, strict=True):
        found = Pruner(size, cell_limit=8)(dist, p, p)
        assert found is not None and found.chart_bytes() == size, limit
    assert Pruner(sizes[3] - 1, cell_limit=8)(dist, p, p) is None
    assert Pruner(sizes[3])(dist) is None and Pruner(dist.chart_bytes())(dist) is dist


# --- likelihood


@pytest.mark.parametrize("blocks", [None, 2])
@pytest.mark.parametrize("targets", ["latent", "fixed"])
@pytest.mark.parametrize("costs", [None, (2.0, 0.5)])
def test_likelihood_and_its_gradient_are_those_of_all_alignments_listed(blocks, targets, costs):
    shapes, rng = [(2, 3), (3, 3), (1, 4)], np.random.default_rng(5)
    features, cells = random_features(rng, shapes), GoldCells.of(random_gold(rng, shapes), np.array(shapes))
    aligner = ItgAligner(trainer="softmax-margin" if costs else "likelihood", blocks=blocks, targets=targets)
    aligner.block_size_ = blocks
    missed, spurious = costs or (1.0, 1.0)
    problem = Problem(aligner, features, cells, Setting(missed=missed, spurious=spurious, regularisation=0.5))
    learner = aligner.learner(problem, problem.setting)
    weights = rng.normal(0, 0.5, problem.model.n_weights)
    value = -0.25 * weights @ weights
    scores = np.split(problem.model.features.scores(weights), np.cumsum([len(f.scores) for f in problem.flats])[:-1])
    for k, (flat, own) in enumerate(zip(problem.flats, scores, strict=True)):
        sure, possible = cells.of_pair(k)
        every = itg_alignments(*shapes[k], blocks or 1)
        total = np.array([flat.parts(y) @ own for y in every])
        loss = [
            sum(cell not in y for cell in map(tuple, np.argwhere(sure).tolist()))
            + sum(not (sure | possible)[cell] for cell in y)
            for y in every
        ]
        inside = [all((sure | possible)[cell] for cell in y) for y in every]
        chosen = np.array([of == min(loss) and ok for of, ok in zip(loss, inside, strict=True)])
        if targets == "fixed":
            assert chosen[every.index(problem.targets[k])]
            chosen = np.array([y == problem.targets[k] for y in every])
        below = total
        if costs:  # what sure links cost if all are missed is a constant, which no weight changes
            wrong = ~(sure | possible)
            more = np.array([sum(spurious * wrong[cell] - missed * sure[cell] for cell in y) for y in every])
            below = total + more
            value += more[chosen].sum() if targets == "fixed" else 0.0
        value += np.logaddexp.reduce(total[chosen]) - np.logaddexp.reduce(below)
    state = learner.init(weights)
    assert state.value == pytest.approx(value, abs=1e-9)
    for k in rng.choice(len(weights), 10, replace=False):
        step = np.zeros(len(weights))
        step[k] = 1e-5
        slope = (learner.init(weights + step).value - learner.init(weights - step).value) / 2e-5
        assert state.gradient[k] == pytest.approx(slope, abs=1e-5)


def test_likelihood_never_falls_and_links_are_those_above_the_threshold():
    aligner = fitted("likelihood")
    assert (np.diff(aligner.trace_) >= 0).all() and aligner.trace_[-1] < 0
    assert aligner.temperature_ == 1.0 and aligner.threshold_ == 0.33
    bitext, _ = held_out()
    for p, found in zip(aligner.predict_proba(bitext), aligner.predict(bitext), strict=True):
        assert found.links == set(map(tuple, np.argwhere(p >= np.float32(0.33)).tolist()))
        assert (p.sum(axis=0) <= 1 + 1e-5).all() and (p.sum(axis=1) <= 1 + 1e-5).all()


def test_threshold_may_be_found_on_held_out_folds_and_the_simple_grammar_taken():
    options = {"features": CHEAP, "iterations": 2, "folds": 2, "blocks": None}
    aligner = ItgAligner(trainer="likelihood", threshold="auto", grammar="simple", **options)
    aligner.fit(text().part(0, 12), gold()[:12], extractor=extractor())
    assert aligner.threshold_ is not None and 0.05 <= aligner.threshold_ <= 0.95 and aligner.temperature_ == 1.0
    assert len(aligner.tuning_) == 1
    normal = ItgAligner(trainer="likelihood", grammar="normal", tune=False, **options)
    normal.fit(text().part(0, 12), gold()[:12], extractor=extractor())
    assert normal.weights_ != aligner.weights_


# --- the aligner


@pytest.mark.parametrize("trainer", ["mira", "likelihood", "softmax-margin"])
def test_learns_from_gold(trainer):
    bitext, links = held_out()
    assert fitted(trainer).score(bitext, links).aer < 35


def runs_of(p, threshold):
    """Competitive thresholding cell by cell."""
    kept = {(i, j) for i in range(p.shape[0]) for j in range(p.shape[1]) if p[i, j] >= threshold}
    while True:
        gone = set()
        for axis in (0, 1):
            for line in {cell[axis] for cell in kept}:
                own = sorted(cell for cell in kept if cell[axis] == line)
                best = max(own, key=lambda cell: (p[cell], -cell[1 - axis]))
                for cell in own:
                    low, high = sorted((cell[1 - axis], best[1 - axis]))
                    between = {(line, k) if axis == 0 else (k, line) for k in range(low, high + 1)}
                    if not between <= kept:
                        gone.add(cell)
        if not gone:
            return kept
        kept -= gone


def test_competitive_thresholding_keeps_one_run_a_word():
    rng = np.random.default_rng(5)
    scattered = 0
    for shape in [(0, 0), (1, 0), (1, 1), (1, 7), (6, 1), *[(5, 7)] * 40, *[(8, 4)] * 40]:
        p = np.round(rng.random(shape), 2)  # with ties
        found = competitive(p, 0.45)
        assert links_at(found) == runs_of(p, 0.45)
        assert len(set(p.ravel())) < p.size or links_at(competitive(p.T, 0.45)) == {(j, i) for i, j in links_at(found)}
        scattered += int((p >= 0.45).sum() - found.sum())
    assert scattered > 100


def test_competitive_links_are_among_those_above_the_threshold():
    features = extractor().transform(text().part(0, 15))
    plain = fitted("likelihood")
    options = plain.get_params() | {"competitive": True, "threshold": 0.1}
    some = ItgAligner(**options).fit_features(features, gold()[:15])
    every = ItgAligner(**options | {"competitive": False}).fit_features(features, gold()[:15])
    assert some.weights_ == every.weights_
    kept, above = (each.predict_features(features) for each in (some, every))
    assert all(a.links <= b.links for a, b in zip(kept, above)) and len(kept.source) < len(above.source)
    assert ItgAligner(competitive=True).ways() == ("likelihood",)
    for given in ({"trainer": "mira"}, {"missed": 3.0}, {"targets": "gold", "blocks": None}):
        with pytest.raises(ParameterError):
            ItgAligner(competitive=True, **given).check_params()


def test_best_links_are_an_alignment_of_the_grammar():
    bitext, _ = held_out()
    for blocks in (None, 2):
        found = fitted("mira", blocks).predict(bitext)
        assert found.probability is not None
        for (source, target), alignment in zip(bitext, found, strict=True):
            size = Blocks(*(np.zeros((len(source), len(target), 1)) for _ in range(2)))
            Itg(np.zeros((len(source), len(target))), blocks=size).terminals(alignment.links)
            assert blocks or len({i for i, _ in alignment.links}) == len(alignment.links)


@pytest.mark.parametrize(("trainer", "blocks"), [("mira", None), ("mira", 2), ("likelihood", None)])
def test_a_saved_model_gives_the_same(tmp_path, trainer, blocks):
    aligner = fitted(trainer, blocks)
    aligner.save(tmp_path / "itg.model")
    loaded = store.load(tmp_path / "itg.model")
    assert isinstance(loaded, ItgAligner) and loaded.options_ == aligner.options_
    assert loaded.block_size_ == blocks and loaded.weights_ == aligner.weights_
    new = Bitext.of([("The woman sees a small book .", "Die Frau sieht ein kleines Buch ."), ("", "leer")])
    first, second = aligner.predict(new), loaded.predict(new)
    assert [a.links for a in first] == [a.links for a in second] and len(second[1]) == 0
    assert np.array_equal(first.probability, second.probability)


@pytest.mark.parametrize(("trainer", "blocks"), [("mira", 2), ("likelihood", None)])
def test_threads_do_not_matter(trainer, blocks):
    features = extractor().transform(text().part(0, 12))
    found = []
    for threads in (1, 2):
        aligner = ItgAligner(
            trainer=trainer, blocks=blocks, features=CHEAP, tune=False, iterations=2, threads=threads
        ).fit_features(features, gold()[:12])
        found.append((aligner._weights, aligner.predict_features(features)))
    assert np.array_equal(found[0][0], found[1][0])
    assert [a.links for a in found[0][1]] == [a.links for a in found[1][1]]


def test_loose_pruning_changes_nothing_and_strict_pruning_forbids():
    rng = np.random.default_rng(6)
    shapes = [(4, 4), (3, 5), (5, 3), (4, 3), (3, 4), (5, 5)]
    features, links = random_features(rng, shapes, posteriors=True), random_gold(rng, shapes)

    def trained(**options):
        aligner = ItgAligner(trainer="likelihood", blocks=2, tune=False, iterations=3, **options)
        return aligner.fit_features(features, links)

    free, loose = trained(prune=False), trained(cell_limit=1000, negligible=0.0)
    assert np.array_equal(free._weights, loose._weights)
    strict = trained(negligible=0.5)
    allowed = np.maximum(features.links[:, 3], features.links[:, 4]) >= 0.5
    posterior = strict.link_probabilities(strict.distributions(features, strict.parts(features), strict._weights))
    flat = np.concatenate([p.ravel() for p in posterior])
    assert (flat[~allowed] == 0).all() and (flat[allowed] > 0).all()


def test_long_pairs_are_matchings_and_are_not_learnt_from():
    features = extractor().transform(text().part(0, 14))
    sizes = [Itg(np.zeros(shape)).chart_bytes() for shape in features.shapes.tolist()]
    limit = int(np.median(sizes))
    large = np.array(sizes) > limit
    options = {"features": CHEAP, "tune": False, "iterations": 2, "chart_limit": limit}
    options |= {"trainer": "mira", "blocks": None}
    with pytest.warns(UserWarning, match=f"{large.sum()} of 14 gold pairs are too long"):
        aligner = ItgAligner(**options).fit_features(features, gold()[:14])
    assert aligner.n_gold_ == (~large).sum()
    without = ItgAligner(**options).fit_features(
        take_pairs(features, ~large), GoldCells.of(gold()[:14], features.shapes).take(~large)
    )
    assert np.array_equal(without._weights, aligner._weights)
    dists = aligner.distributions(features, aligner.parts(features), aligner._weights)
    assert dists.large.tolist() == large.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        posteriors = dists.marginals()
    for pair, (best, p) in enumerate(zip(aligner.predict_features(features), posteriors, strict=True)):
        assert best.links == dists[pair].argmax() and p.shape == features.shape(pair)
    with pytest.raises(LinksError, match="chart_limit"):
        ItgAligner(**(options | {"chart_limit": 1})).fit_features(features, gold()[:14])


def test_blocks_are_learnt_where_gold_has_them():
    rng = np.random.default_rng(7)
    rows, links = [], []
    words = {"a": "x", "b": "y", "c": "z1 z2", "d": "w"}
    for _ in range(40):
        source = rng.choice(list(words), 4, replace=False).tolist()
        target, row, at = [], set(), 0
        for i, word in enumerate(source):
            for piece in words[word].split():
                target.append(piece)
                row.add((i, at))
                at += 1
        rows.append((" ".join(source), " ".join(target)))
        links.append(row)
    bitext, all_links = Bitext.of(rows), Links.of(links)
    one = ItgAligner(features=("association", "position"), tune=False, iterations=5, blocks=None)
    many = ItgAligner(features=("association", "position"), tune=False, iterations=5, trainer="mira")
    soft = ItgAligner(features=("association", "position"), tune=False, iterations=10, blocks=2, trainer="likelihood")
    train = bitext.part(0, 25), all_links[:25]
    test = bitext.part(25, 40), all_links[25:]
    assert one.fit(*train, unlabelled=test[0]).score(*test).recall < 90
    for aligner in (many, soft):
        aligner.fit(*train, unlabelled=test[0])
        assert aligner.block_size_ == 2 and "blocks" in aligner.extractor_.sets
        assert aligner.score(*test).aer == 0.0
    told = many.explain(test[0], 0, source=next(i for i, word in enumerate(test[0][0][0]) if word == "c"))
    assert told["linked"] and "block" in told["reason"]
    best = told["blocks"][0]
    assert best["kind"] == "target block" and best["words"] == [["c"], ["z1", "z2"]] and best["linked"]
    assert best["score"] == pytest.approx(sum(entry["contribution"] for entry in best["features"]))


def test_explains_links():
    bitext, _ = held_out()
    told = fitted().explain(bitext, 0, source=0)
    assert told["score"] == pytest.approx(sum(entry["contribution"] for entry in told["features"]))
    assert "blocks" not in told


@pytest.mark.parametrize(
    "options",
    [
        {"blocks": 1}, {"blocks": "some"}, {"blocks": True}, {"grammar": "odd"}, {"trainer": "odd"}, {"confident": 2},
        {"cell_limit": -1}, {"cell_limit": 1.5}, {"chart_limit": 2**40}, {"negligible": "x"},
        {"targets": "gold", "trainer": "mira", "blocks": 2}, {"targets": "gold", "trainer": "likelihood"}, {"odd": 1},
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ParameterError):
        ItgAligner(**options).check_params()


def test_the_trainer_is_chosen_where_settings_are(tmp_path):
    features = extractor().transform(text().part(0, 12))
    options = {"blocks": None, "features": CHEAP, "folds": 2, "iterations": 2}
    aligner = ItgAligner(**options).fit_features(features, gold()[:12])
    tried = {row["trainer"]: [] for row in aligner.tuning_}
    for row in aligner.tuning_:
        tried[row["trainer"]].append(row["aer"])
    assert tuple(tried) == ItgAligner().ways() and [len(errors) for errors in tried.values()] == [1, 2, 2]
    best = min(tried, key=lambda way: min(tried[way]))
    assert aligner.trainer_ == best and aligner.trainer == "auto" and aligner.options_["trainer"] == best
    alone = ItgAligner(trainer=best, **options).fit_features(features, gold()[:12])
    assert alone.weights_ == aligner.weights_ and alone.temperature_ == aligner.temperature_
    assert alone.tuning_ == [row for row in aligner.tuning_ if row["trainer"] == best]
    aligner.extractor_ = extractor()
    for way in tried:  # whichever it is, a saved model knows it
        aligner.take_way(way)
        aligner.save(tmp_path / way)
        loaded = store.load(tmp_path / way)
        assert isinstance(loaded, ItgAligner) and loaded.trainer_ == way and loaded.trainer == "auto"


def test_what_is_given_leaves_the_trainers_that_heed_it():
    assert ItgAligner().ways() == ("likelihood", "mira", "softmax-margin") and ItgAligner().way == "likelihood"
    assert ItgAligner(missed=3.0).ways() == ItgAligner(spurious=2.0).ways() == ("mira", "softmax-margin")
    assert ItgAligner(targets="gold", blocks=None).ways() == ("mira",)
    assert ItgAligner(targets="gold", blocks=None).way == "mira"
    for given in ({"missed": 3.0}, {"spurious": 2.0}):
        with pytest.raises(ParameterError, match="trainer"):
            ItgAligner(trainer="likelihood", **given).check_params()
    with pytest.raises(ParameterError, match="regularisation"):
        ItgAligner(regularisation=2.0).check_params()


def test_targets_suit_the_trainer():
    aims = {trainer: ItgAligner(trainer=trainer).aim for trainer in ItgAligner.DEFAULTS}
    assert aims == {"likelihood": "latent", "mira": "fixed", "softmax-margin": "latent"}
    assert ItgAligner(targets="fixed").aim == "fixed" and ItgAligner().get_params()["targets"] is None
    assert ItgAligner().options_["targets"] == "latent"


def test_gold_outside_the_grammar_can_be_a_target_of_mira():
    features = extractor().transform(text().part(0, 8))
    options = {"trainer": "mira", "blocks": None, "features": CHEAP, "tune": False, "iterations": 2}
    aligner = ItgAligner(targets="gold", **options).fit_features(features, gold()[:8])
    assert len(aligner.predict_features(features)) == 8
