"""Names: labels, models, learning, choosing, keeping, scores and commands."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isogloss import samples
from isogloss.cli import main
from isogloss.data import Mentions, Text
from isogloss.errors import MentionsError, ParameterError, UsageError
from isogloss.features.sparse import Sparse
from isogloss.learners.chain_model import ChainModel, LabelPairs, NodeFeatures
from isogloss.learners.models import Gold
from isogloss.learners.segment_model import SegmentModel
from isogloss.metrics import compare_entities, score_entities
from isogloss.structures import Chain
from isogloss.structures.batch import Stack
from isogloss.tasks.extract import EntityTagger
from isogloss.tasks.extract.labels import NameLabels
from isogloss.tasks.extract.names import chosen_names, name_posteriors
from isogloss.testing import check_estimator
from isogloss.testing.fuzz.models import mentions, new_mentions

WAYS = [(model, trainer) for model in ("chain", "segments") for trainer in ("likelihood", "mira", "perceptron")]
TEXT = samples.mentions("en-de")


@pytest.fixture(scope="module")
def taggers() -> dict[str, EntityTagger]:
    return {model: EntityTagger(model=model, iterations=4).fit(TEXT[10:]) for model in ("chain", "segments")}


# --- labels and models


def test_labels_and_names() -> None:
    labels, moves = NameLabels(("A", "B")), NameLabels(("A", "B")).moves()
    for tags in itertools.product(range(5), repeat=4):
        steps = zip((5, *tags[:-1]), tags, strict=True)
        if all(moves[x, y] for x, y in steps):  # every sequence that is allowed says names, and these say it
            names = labels.names_of_tags(tags)
            assert labels.tags(4, names).tolist() == list(tags)
            assert labels.names_of_segments(labels.segments(4, names)) == names
    assert moves.sum() == 5 * 3 + 3 + 4  # O, B-A and B-B anywhere, and I behind its own B and I


def random_features(rng: Any, n_rows: int, k: int) -> NodeFeatures:
    rows = [rng.choice(4, size=rng.integers(0, 3), replace=False).tolist() for _ in range(n_rows)]
    return NodeFeatures(Sparse.of(rows, 4), LabelPairs.all(4, k))


@pytest.mark.parametrize(("order", "ends"), [(1, True), (1, False), (2, True)])
def test_forbidden_moves_of_a_chain(order: int, ends: bool) -> None:
    rng, labels = np.random.default_rng(order), NameLabels(("A",))
    model = ChainModel(random_features(rng, 4, 3), [3, 0, 1], order=order, ends=ends, moves=labels.moves())
    free = ChainModel(model.features, model.lengths, order=order, ends=ends)
    weights = rng.normal(size=model.n_weights)
    for s, n in enumerate((3, 0, 1)):
        chains = free.distribution(weights, s)
        allowed = [
            y for y in itertools.product(range(3), repeat=n)
            if all(labels.moves()[a, b] for a, b in zip((3, *y[:-1]), y, strict=False))
        ]  # fmt: skip
        wanted = np.log(np.sum(np.exp([chains.score(np.array(y, np.int64)) for y in allowed])))
        assert model.distribution(weights, s).log_partition() == pytest.approx(wanted)
    gold = [np.array([1, 2, 0]), np.array([], np.int64), np.array([1])]
    check_slopes(model, model.gold(gold), weights)
    with pytest.raises(ParameterError, match="sentence 0, position 0: a step is forbidden"):
        model.gold([np.array([2, 2, 0]), np.array([], np.int64), np.array([1])])


def check_slopes(model: Any, target: Any, weights: Any) -> None:
    """The gradient of the likelihood by differences."""
    items = np.arange(len(model))
    slope = np.zeros(len(weights))
    model.likelihood(weights, target, items)[1].add_to(slope)
    for at in range(len(weights)):
        step = np.zeros(len(weights))
        step[at] = 1e-5
        rise = model.likelihood(weights + step, target, items)[0] - model.likelihood(weights - step, target, items)[0]
        assert slope[at] == pytest.approx(rise / 2e-5, abs=1e-6)


def test_segment_models_add_up_what_they_see() -> None:
    """Scores of segments are those of their words and spans; gradients are those of likelihood, and item by item."""
    rng = np.random.default_rng(4)
    lengths, longest, first, inside = [4, 0, 1], 2, [0, 1], [-1, 2]
    rows = [(s, b, w) for s, n in enumerate(lengths) for b in range(n) for w in range(1, min(longest, n - b) + 1)]
    nodes, spans = random_features(rng, 5, 3), random_features(rng, len(rows), 2)
    model = SegmentModel(nodes, spans, lengths, longest, first=first, inside=inside)
    weights = rng.normal(size=model.n_weights)
    own = model.split(weights)
    words, wholes = nodes.nodes(own.nodes), spans.nodes(own.spans)
    batch = model.batch(weights, np.arange(3))
    for number, (s, b, width) in enumerate(rows):
        at = [0, 4, 4][s] + b
        for y in range(2):
            score = words[at, first[y]] + wholes[number, y] + sum(words[at + t, inside[y]] for t in range(1, width))
            score += own.start[y] * (b == 0) + own.end[y] * (b + width == lengths[s])
            if y == 0 and width > 1:
                score = -np.inf
            assert batch[s].segment_scores()[b, width - 1, y] == pytest.approx(score)
    gold = [((0, 1, 0), (1, 3, 1), (3, 4, 1)), (), ((0, 1, 0),)]
    check_slopes(model, Gold(gold), weights)
    values = rng.normal(size=len(batch.scores.values))
    each, whole = np.zeros(model.n_weights), np.zeros(model.n_weights)
    model.gradient(np.arange(3), batch, values).add_to(each)
    for s in range(3):
        part = values[batch.scores.offsets[s] : batch.scores.offsets[s + 1]]
        model.gradient(np.array([s]), batch.take([s]), part).add_to(whole)
    np.testing.assert_allclose(each, whole)


def test_posteriors_of_names_are_sums_over_sequences() -> None:
    rng, labels = np.random.default_rng(7), NameLabels(("A", "B"))
    model = ChainModel(random_features(rng, 4, 5), [3, 1], moves=labels.moves())
    weights = rng.normal(size=model.n_weights)
    batch = model.batch(weights, np.array([0, 1]))
    found = name_posteriors(batch, 3)
    for s, n in enumerate((3, 1)):
        wanted = np.zeros((n, 3, 2))
        for tags in itertools.product(range(5), repeat=n):
            chance = np.exp(batch[s].log_prob(np.array(tags)))
            for begin, end, kind in labels.names_of_tags(tags) if chance > 0 else ():
                wanted[begin, end - begin - 1, labels.types.index(kind)] += chance
        np.testing.assert_allclose(found[s], wanted, atol=1e-12)


def test_chosen_names_have_the_highest_sum() -> None:
    rng, labels = np.random.default_rng(9), NameLabels(("A", "B"))
    for n in range(4):
        chances = rng.random((n, 2, 2)) * np.array([[[0.9], [0.9]]])
        for b in range(n):
            chances[b, max(0, n - b) :] = 0.0
        names = chosen_names(Stack.of([chances]), 0.3, labels)[0]
        spans = [(b, b + w, y) for b in range(n) for w in (1, 2) if b + w <= n for y in (0, 1)]
        best = 0.0
        for size in range(n + 1):
            for some in itertools.combinations(spans, size):
                if all(a[1] <= b[0] for a, b in itertools.pairwise(some)):
                    best = max(best, sum(chances[b, e - b - 1, y] - 0.3 for b, e, y in some))
        value = sum(chances[b, e - b - 1, labels.types.index(kind)] - 0.3 for b, e, kind in names)
        assert value == pytest.approx(best)


# --- the estimator


@pytest.mark.parametrize(("model", "trainer"), WAYS)
def test_it_learns_and_keeps_the_laws(model: str, trainer: str) -> None:
    some = mentions()
    check_estimator(
        lambda **given: EntityTagger(**{"iterations": 2, "model": model, "trainer": trainer, **given}),
        lambda made: made.fit(some), new_mentions(), empty=Mentions.of([]),
        other_fit=lambda made: made.fit(some[:6]), score=lambda made: made.score(some),
    )  # fmt: skip


@pytest.mark.parametrize("model", ["chain", "segments"])
def test_names_of_new_sentences(taggers: dict[str, EntityTagger], model: str) -> None:
    assert taggers[model].score(TEXT[10:]).f1 > 90
    found = taggers[model].predict(Text.of(["Nobody saw Maria Brandt in Salzburg .", ""]), confidence=True)
    assert str(found[0]) == "Nobody saw [Maria Brandt PER] in [Salzburg LOC] ." and len(found) == 2
    assert found.confidence is not None
    chances = taggers[model].predict_proba(found)
    assert chances[0].shape == (7, taggers[model].longest_, 3) and chances[1].shape[0] == 0
    wanted = [chances[0][2, 1, 2], chances[0][5, 0, 0]]  # types are LOC, ORG, PER
    np.testing.assert_allclose(found.confidence, wanted)
    assert all(block.sum(axis=(1, 2)).max(initial=0.0) <= 1 + 1e-9 for block in chances)


@pytest.mark.parametrize("model", ["chain", "segments"])
def test_explanations_add_up(taggers: dict[str, EntityTagger], model: str) -> None:
    """Weights that are listed for a name are those of its score beside words outside, but for steps between labels."""
    tagger = taggers[model]
    text = Text.of(["Maria Brandt sleeps"])
    told = tagger.explain(text, 0, 0, 2)
    assert told["words"] == ["Maria", "Brandt"] and told["type"] == "PER" and told["probability"] > 0.5
    total = sum(entry["weight"] for entry in told["features"])
    learnt = tagger._learnt
    batch = learnt.model(tagger._as_seen(Mentions.from_text(text))).batch(learnt.weights, np.array([0]))
    bare = np.where(np.arange(len(learnt.weights)) < len(learnt.weights) - learnt.n_shared, 0, learnt.weights)
    steps = learnt.model(tagger._as_seen(Mentions.from_text(text))).batch(bare, np.array([0]))
    read = learnt.labels.tags if model == "chain" else learnt.labels.segments
    name, none = read(3, [(0, 2, "PER")]), read(3, [])
    wanted = batch[0].score(name) - batch[0].score(none) - (steps[0].score(name) - steps[0].score(none))
    assert total == pytest.approx(wanted, abs=1e-5)
    with pytest.raises(UsageError, match="there are no words 2 to 5"):
        tagger.explain(text, 0, 2, 5)
    with pytest.raises(UsageError, match="there is no type 'X'; names are LOC, ORG, PER"):
        tagger.explain(text, 0, 0, 1, type="X")


def test_margins_and_long_names() -> None:
    long = Mentions.of([(["a", "B", "C", "D", "E", "f"], [(1, 5, "X")])] * 4)
    for model in ("chain", "segments"):
        short = EntityTagger(model=model, longest=2, iterations=3, trainer="mira").fit(long)
        assert short.longest_ == 2
        assert short.predict(long, confidence=True).n_entities >= 1
    assert EntityTagger("chain", iterations=3, decoder="map", longest=2).fit(long).predict(long).entities(0) == (
        (1, 5, "X"),
    )


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(MentionsError, match="no name is marked, so there is nothing to learn"):
        EntityTagger().fit(Mentions.of([(["a"], [])]))
    with pytest.raises(MentionsError, match="names of this sentence overlap"):
        EntityTagger().fit(Mentions.of([(["a", "b"], [(0, 2, "X"), (1, 2, "X")])]))
    with pytest.raises(MentionsError, match="has no column of parts of speech"):
        EntityTagger(tags="given").fit(TEXT)
    with pytest.raises(ParameterError, match="cannot be taken for sentences with names"):
        EntityTagger().fit("names.conll")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="there is no nose"):
        EntityTagger(templates=["nose"]).fit(TEXT)


# --- scores


def test_scores_are_those_of_conlleval() -> None:
    words = ["a", "b", "c", "d"]
    gold = Mentions.of([(words, [(0, 2, "PER"), (3, 4, "LOC")]), (words, [(1, 2, "PER")]), (words, [])])
    ours = gold.with_entities([[(0, 2, "ORG"), (3, 4, "LOC")], [(1, 2, "PER"), (2, 3, "PER")], []])
    score = score_entities(ours, gold)
    assert (score.right, score.found, score.entities) == (2, 4, 3)
    assert score.precision == 50.0 and score.recall == pytest.approx(200 / 3) and score.f1 == pytest.approx(400 / 7)
    assert score.types["PER"]["precision"] == 50.0 and score.types["ORG"]["f1"] == 0.0
    assert score_entities(gold.with_entities([[], [], []]), gold, bootstrap=0).precision == 0.0
    assert compare_entities(gold, ours, gold, resamples=100).delta == pytest.approx(100 - 400 / 7)
    with pytest.raises(MentionsError, match="2 sentences and <memory> 3: not the same text"):
        score_entities(ours[:2], gold)
    with pytest.raises(MentionsError, match="'x' in <memory>, line 1, where <memory> has 'a'"):
        score_entities(Mentions.of([(["x", "b", "c", "d"], [])] * 3), gold)


# --- commands


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, model, out = samples.path("en-de", "source-names"), tmp_path / "model", tmp_path / "out.conll"
    train = ["extract", "train", str(file), "--task", "entities", "--syntax", "none", "--save", str(model)]
    assert main([*train, "--iterations", "4", "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["types"] == ["LOC", "ORG", "PER"] and told["entities"] == 98 and told["dev"] is None
    assert main(["extract", "apply", str(model), str(file), "-o", str(out), "-q"]) == 0
    assert [line.split(" ")[0] for line in out.read_text().splitlines()] == [
        line.split(" ")[0] for line in file.read_text().splitlines()
    ]
    assert main(["extract", "score", str(out), str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["f1"] > 90 and told["average"] == "micro" and set(told["types"]) == {"LOC", "ORG", "PER"}
    assert main(["extract", "score", str(out), str(file), "--against", str(out)]) == 0
    assert "f1 +0.00" in capsys.readouterr().out
    plain = tmp_path / "text.txt"
    plain.write_text("Maria Brandt sleeps .\n\nPaul is in Oslo .\n")
    assert main(["extract", "apply", str(model), str(plain), "-q"]) == 0
    lines = capsys.readouterr().out.split("\n\n")
    assert lines[0] == "Maria B-PER\nBrandt I-PER\nsleeps O\n. O" and lines[1].startswith("\nPaul B-PER")


def test_commands_refuse_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(samples.path("en-de", "source-names"))
    train = ["extract", "train", file, "--save", str(tmp_path / "m")]
    for given, finding in (
        (["--syntax", "hidden-dependency"], "--syntax hidden-dependency: entities are found without trees"),
        (["--trainer", "perceptron", "--rate", "1"], "EntityTagger: rate says nothing with trainer='perceptron'"),
        (["--task", "nothing"], "'nothing' is not one of entities"),
        (["--tags", "given"], "has no column of parts of speech"),
    ):
        assert main([*train, *given]) in (1, 2)
        assert finding in capsys.readouterr().err
    broken = tmp_path / "broken.conll"
    broken.write_text("a B-X\nb Q-X\n")
    assert main(["extract", "score", str(broken), file]) == 1
    assert "broken.conll, line 2: 'Q-X' in the last column is no tag of names" in capsys.readouterr().err
    parser = tmp_path / "tagger"
    EntityTagger(iterations=1).fit(mentions()).save(parser)
    assert main(["tag", "apply", str(parser), file]) == 2
    assert "isogloss extract apply" in capsys.readouterr().err


def test_chains_of_tags_are_chains() -> None:
    """What the kernel for posteriors is told: marginals of steps, as `Chain` has them."""
    model = ChainModel(random_features(np.random.default_rng(0), 2, 3), [2], moves=NameLabels(("A",)).moves())
    assert isinstance(model.batch(np.zeros(model.n_weights), np.array([0]))[0], Chain)
