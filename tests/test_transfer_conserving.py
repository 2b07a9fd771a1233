"""Parsers that keep a share of projected edges in expectation."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError
from isogloss.features import KeyTable
from isogloss.learners.loglinear import Likelihood
from isogloss.learners.runner import run
from isogloss.learners.stochastic import AdaGrad
from isogloss.structures.tree_parts import Candidates
from isogloss.tasks.parse.held_out import HeldOut
from isogloss.tasks.parse.inference import Shape, best_trees
from isogloss.tasks.parse.labelled import LabelledTrees
from isogloss.tasks.parse.scoring import FeatureSet, PartScorer, count_keys
from isogloss.tasks.parse.training import FLOOR, KnownHeads, TreeModel
from isogloss.tasks.parse.words import Columns, columns_of, encode
from isogloss.tasks.transfer.baselines import random_trees
from isogloss.tasks.transfer.conserving import ConservedEdges, agreed_shares
from isogloss.tasks.transfer.edges import ProjectedEdges

DATA = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "treebanks"


def model_of(treebank: Treebank, shape: Shape | None = None, labels: bool = False) -> TreeModel:
    columns = columns_of(treebank)
    words, every = encode(treebank, columns), Candidates.all(treebank.lengths)
    features = FeatureSet.of(columns, (shape or Shape()).families)
    table = KeyTable.of(count_keys(words, features, every, (), treebank.heads, support="all"))
    scorer = PartScorer(features, table, np.zeros(0, np.float32))
    model = TreeModel(scorer, words, every, shape or Shape(), np.arange(len(treebank)))
    if labels:
        found = LabelledTrees.of(model, treebank, columns, treebank.heads)
        assert found is not None
        return found
    return model


def noisy(treebank: Treebank, seed: int, kept: float = 0.5, wrong: float = 0.3) -> ProjectedEdges:
    """Some of the gold links, and a share of others in their place."""
    rng = np.random.default_rng(seed)
    word = np.flatnonzero(rng.random(treebank.n_words) < kept)
    length = np.repeat(treebank.lengths, treebank.lengths)[word]
    own = word - np.repeat(treebank.offsets[:-1], treebank.lengths)[word] + 1
    other = rng.integers(0, length + 1)
    other = np.where(other == own, 0, other)
    head = np.where(rng.random(len(word)) < wrong, other, treebank.heads[word])
    return ProjectedEdges.of(treebank.offsets, word, head, rng.random(len(word)))


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_gradient_is_the_derivative_of_the_divergence(
    trees: Treebank, projective: bool, labels: bool, weighted: bool
) -> None:
    few = trees.part(0, 4)
    model = model_of(few, Shape("projective" if projective else "tree"), labels)
    edges = noisy(few, 1, kept=0.9)
    target = ConservedEdges(edges, model.sentences, 0.9, weighted=weighted, tolerance=1e-9)
    raised, items = Likelihood(model, target=target), np.arange(4)
    rng = np.random.default_rng(0)
    weights = rng.normal(scale=0.2, size=model.n_weights).astype(np.float32)
    value, gradient = raised.gradient(weights, items)
    assert (target.gains > 0).sum() >= 3
    places, much = gradient.merged()
    if not labels:
        kept = target.kept(items, model.batch(weights, items))
        assert value == pytest.approx(-kept.divergence.sum())
    for at in np.argsort(-np.abs(much))[[0, 1, 5, 20, 100]].tolist():
        found = []
        for step in (0.03125, -0.03125):
            moved = weights.copy()
            moved[places[at]] += np.float32(step)
            found.append((float(moved[places[at]]), raised.gradient(moved, items)[0]))
        slope = (found[0][1] - found[1][1]) / (found[0][0] - found[1][0])
        assert much[at] == pytest.approx(slope, abs=2e-3)


def test_what_is_asked_for_is_kept_and_nothing_is_asked_without_edges(trees: Treebank) -> None:
    model = model_of(trees)
    edges = noisy(trees, 2, wrong=0.0).take(np.arange(len(trees)))
    edges = edges.keep(edges.sentence != 3)
    target = ConservedEdges(edges, model.sentences, 0.9, tolerance=1e-6)
    items = np.array([3, 0, 7])
    batch = model.batch(np.zeros(model.n_weights, np.float32), items)
    wanted = target.wanted(items, batch)
    per_link, own = batch.layout.link_offsets, batch.marginals().values
    assert np.array_equal(wanted.parts[: per_link[1]], own[: per_link[1]])
    assert wanted.values[0] == batch.log_partition()[0]
    for k, s in ((1, 0), (2, 7)):
        here = slice(per_link[k], per_link[k + 1])
        links = zip(batch.layout.head[here].tolist(), batch.layout.child[here].tolist(), strict=True)
        chance = dict(zip(links, wanted.parts[here].tolist(), strict=True))
        of_edges = edges.take([s])
        kept = [chance[h, c] for h, c in zip(of_edges.head.tolist(), of_edges.child.tolist(), strict=True)]
        assert np.mean(kept) == pytest.approx(0.9, abs=1e-5)


def test_larger_parts_are_refused(trees: Treebank) -> None:
    model = model_of(trees, Shape(families=("grand",)))
    target = ConservedEdges(noisy(trees, 2), model.sentences)
    with pytest.raises(ParameterError, match="order=1"):
        target.wanted(np.arange(2), model.batch(np.zeros(model.n_weights, np.float32), np.arange(2)))
    with pytest.raises(ParameterError, match="from 0 to 1"):
        ConservedEdges(noisy(trees, 2), model.sentences, 1.2)


@pytest.mark.parametrize("warm", [True, False])
def test_parsers_learn_from_noisy_edges(trees: Treebank, warm: bool) -> None:
    model, edges = model_of(trees), noisy(trees, 3)
    target = ConservedEdges(edges, model.sentences, 0.9, warm=warm)
    learner = AdaGrad(
        Likelihood(model, target=target, least=1e-3), rate=0.1, batch=8, damping=0.0, floor=FLOOR, in_place=True
    )
    found = run(learner, learner.init(), iterations=12)
    heads = best_trees(model.batch(found.state.weights, np.arange(len(trees))), "mbr")
    assert found.trace[-1] > found.trace[0]
    assert edges.conserved(heads).mean() > 0.7
    known = np.zeros(trees.n_words, np.bool_)
    known[edges.word[edges.head == trees.heads[edges.word]]] = True
    right = heads == trees.heads
    assert right[~known].mean() > 0.35  # of words that no right edge speaks for; one in eight or so by chance


def uas_of(target: ConservedEdges | KnownHeads, model: TreeModel, dev: Treebank, columns: Columns) -> float:
    learner = AdaGrad(
        Likelihood(model, target=target, least=1e-3), rate=0.1, batch=16, damping=0.0, floor=FLOOR, in_place=True
    )
    found = run(learner, learner.init(), iterations=5)
    held_out = HeldOut(encode(dev, columns), Candidates.all(dev.lengths), dev.heads)
    return held_out.uas(model.scorer.with_weights(found.state.weights), model.shape, "mbr")


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="needs treebanks in ISOGLOSS_DATA")
@pytest.mark.parametrize(("kept", "wrong"), [(0.5, 0.0), (1.0, 0.3), (0.5, 0.3)])
def test_expectations_are_better_than_trees_completed_at_random(kept: float, wrong: float) -> None:
    """Where edges are missing, where they are wrong, and where both is so."""
    train, dev = (Treebank.read(DATA / f"partut/en.{part}.conllu.gz") for part in ("train", "dev"))
    train = train.take(np.flatnonzero(train.lengths <= 15)[:250])
    edges, columns = noisy(train, 1, kept, wrong), columns_of(train, lemma=False)
    words, every, features = encode(train, columns), Candidates.all(train.lengths), FeatureSet.of(columns)
    heads, sentences = random_trees(edges, seed=1), np.arange(len(train))
    table = KeyTable.of(count_keys(words, features, every, (), heads, support="tags"))
    model = TreeModel(PartScorer(features, table, np.zeros(0, np.float32)), words, every, Shape(), sentences)
    by_chance = uas_of(KnownHeads(heads, train.offsets, sentences), model, dev, columns)
    assert uas_of(ConservedEdges(edges, sentences, 0.9), model, dev, columns) > by_chance + 4, by_chance


@pytest.mark.parametrize("seed", range(5))
def test_shares_by_agreement_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = [3, 0, 5, 1, 4]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    word = np.array([w for w in range(13) if rng.random() < 0.7 and w != 8])  # that one has no other word beside it
    first = offsets[np.searchsorted(offsets, word, side="right") - 1]
    size = np.diff(offsets)[np.searchsorted(offsets, word, side="right") - 1]
    head = np.array([rng.choice([h for h in range(n + 1) if h != w - f + 1]) for w, f, n in zip(word, first, size)])
    edges = ProjectedEdges.of(offsets, word, head, None, rng.integers(0, 2, len(word)), None, ("a", "b"))
    heads = np.where(rng.random(13) < 0.6, 0, 1).astype(np.int32)
    heads[edges.word[::2]] = edges.head[::2]
    found = agreed_shares(edges, heads, 0.8)
    classes: dict[tuple[int, int], list[int]] = {}
    sides = [2 if h == 0 else int(h > c) for h, c in zip(edges.head, edges.child, strict=True)]
    for e, side in enumerate(sides):
        classes.setdefault((int(edges.relation[e]), side), []).append(int(heads[edges.word[e]] == edges.head[e]))
    mean = np.mean([x for some in classes.values() for x in some])
    own = [
        min(1.0, max(0.0, 1 - 0.2 * (1 - np.mean(classes[int(edges.relation[e]), side])) / (1 - mean)))
        for e, side in enumerate(sides)
    ]
    for s in range(5):
        mine = [own[e] for e in range(len(own)) if edges.sentence[e] == s]
        assert found[s] == pytest.approx(np.mean(mine) if mine else 0.8)


def test_shares_by_agreement_where_all_or_nothing_agrees() -> None:
    edges = ProjectedEdges.of([0, 2], [0, 1], [2, 0])
    assert agreed_shares(edges, np.array([2, 0], np.int32), 0.9).tolist() == [1.0]
    assert agreed_shares(edges, np.array([0, 1], np.int32), 0.9) == pytest.approx([0.9])
    none = ProjectedEdges.of([0, 2, 2], [], [])
    assert agreed_shares(none, np.array([0, 1], np.int32), 0.9).tolist() == [0.9, 0.9]
