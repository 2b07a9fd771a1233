"""The aligners people use: every verb, on the bundled corpora and on texts whose links are known."""

from __future__ import annotations

import json
import math
import signal
from dataclasses import fields

import numpy as np
import pytest

from isogloss import samples, store
from isogloss.data import Alignment, Bitext, Links
from isogloss.errors import BitextError, ModelError, ParameterError, UsageError
from isogloss.learners.runner import Interrupted
from isogloss.metrics import curve, score_links
from isogloss.progress import QuietProgress
from isogloss.tasks.align import HMMAligner, Model1Aligner, Model2Aligner
from isogloss.tasks.align.model import Model
from isogloss.tasks.align.settings import Settings
from isogloss.tasks.align.symmetrise import METHODS

ALIGNERS = {"hmm": HMMAligner, "model1": Model1Aligner, "model2": Model2Aligner}
CONSTRAINTS = ("none", "agreement", "bijective", "symmetric")


@pytest.fixture(scope="module")
def german():
    return samples.bitext("en-de")


@pytest.fixture(scope="module")
def turkish():
    return samples.bitext("en-tr")


@pytest.fixture(scope="module")
def fitted(german):
    return HMMAligner().fit(german)


@pytest.fixture(scope="module")
def synthetic():
    return samples.synthetic(1500, seed=0)


def sets(links):
    return [row.links for row in links]


def same(one, two):
    """Links and their probabilities, to the bit."""
    return all(
        getattr(one, name).tobytes() == getattr(two, name).tobytes()
        for name in ("offsets", "source", "target", "probability")
    )


def again(bitext):
    """The same sentences as another object, so that nothing is remembered of the training."""
    return Bitext.of(bitext)


def files_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# --- fitting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(ALIGNERS))
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_swapping_the_languages_transposes_the_links(turkish, kind, constraint):
    there = ALIGNERS[kind](constraint=constraint).fit_predict(turkish)
    back = ALIGNERS[kind](constraint=constraint).fit_predict(turkish.swapped())
    assert sets(there) == [row.T.links for row in back]
    order = np.lexsort((back.source, back.target, back.pair))
    apart = 0.01 if constraint in ("bijective", "symmetric") else 1e-3  # projections end somewhere in their tolerance
    assert back.probability[order] == pytest.approx(there.probability, abs=apart)


def test_threads_and_seeds_do_not_change_a_bit(tmp_path):
    bitext = samples.synthetic(200, seed=3).bitext
    for name, options in {"one": {"threads": 1}, "two": {"threads": 2}, "seed": {"seed": 7}}.items():
        aligner = HMMAligner(**options).fit(bitext)
        aligner.save(tmp_path / name)
        assert same(aligner.predict(bitext), HMMAligner().fit_predict(bitext))
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    assert files_of(tmp_path / "one")[store.ARRAYS] == files_of(tmp_path / "seed")[store.ARRAYS]


class Stop(QuietProgress):
    """Sends Ctrl-C in the middle of an iteration."""

    def __init__(self, at):
        self.at = at

    def update(self, done, detail=""):
        self.done = done

    def within(self, fraction):
        if getattr(self, "done", 0) == self.at:
            self.at = -1
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("at", [2, 6])
def test_an_interrupted_training_is_resumed_to_the_bit(german, tmp_path, at):
    place = tmp_path / "checkpoint"
    with pytest.raises(Interrupted, match="resume"):
        HMMAligner().fit(german, checkpoint=place, progress=Stop(at))
    resumed = HMMAligner().fit(again(german), checkpoint=place, resume=True)
    whole = HMMAligner().fit(german)
    assert same(resumed.predict(resumed._trained_on[0]), whole.predict(german))
    assert resumed.trace_.tobytes() == whole.trace_.tobytes() and resumed.threshold_ == whole.threshold_
    with pytest.raises(UsageError, match="another run"):
        HMMAligner(iterations=3).fit(german, checkpoint=place, resume=True)
    with pytest.raises(UsageError, match="another run"):
        HMMAligner().fit(samples.bitext("en-tr"), checkpoint=place, resume=True)


def test_nothing_to_learn_from_is_said(german):
    for text, why in (
        (Bitext.of([]), "empty"),
        (Bitext.of([("", "x"), ("y", "")]), "none of the 2 pairs"),
        (Bitext.of([("a b c", "x y z")]), "more than 2 words"),
    ):
        with pytest.raises(BitextError, match=why):
            HMMAligner(max_length=2).fit(text)
    for call in ("predict", "predict_proba", "pair_scores", "update"):
        with pytest.raises(UsageError, match="fit first"):
            getattr(HMMAligner(), call)(german)
    with pytest.raises(UsageError, match="fit first"):
        HMMAligner().save("nowhere")
    with pytest.raises(UsageError, match="fit first"):
        next(HMMAligner().lexicon())


@pytest.mark.parametrize("kind", list(ALIGNERS))
def test_long_pairs_that_are_not_learnt_from_have_links(german, kind):
    long = [k for k, pair in enumerate(german) if max(map(len, pair)) > 7]
    assert 0 < len(long) < len(german)
    aligner = ALIGNERS[kind](train_length=7).fit(german)
    links, usual = aligner.predict(german), ALIGNERS[kind]().fit_predict(german)
    assert len(aligner.skipped_) == 0 and sum(len(links[k].links) for k in long) > 3 * len(long)
    assert not same(links, usual)
    assert all(len(ALIGNERS[kind](max_length=7).fit_predict(german)[k].links) == 0 for k in long[:2])
    with pytest.raises(BitextError, match="more than 1 words"):
        ALIGNERS[kind](train_length=1).fit(Bitext.of([("a b", "c d")]))


def test_a_single_pair_and_single_words_are_enough():
    assert str(HMMAligner().fit_predict(Bitext.of([("yes", "ja")]))[0]) in ("", "0-0")
    links = HMMAligner().fit_predict(Bitext.of([("yes", "ja")] * 3 + [("no", "nein")] * 3))
    assert sets(links) == [{(0, 0)}] * 6


@pytest.mark.parametrize("kind", list(ALIGNERS))
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_ends_of_every_range_stay_finite(kind, constraint):
    """Texts that are all their own evidence, with next to no smoothing or next to nothing else."""
    for rows in ([("a", "b")], [("a", "b c d e f g")], [("a " * 20, "b b b")], [("a b", "c d"), ("a", "c")]):
        text = Bitext.of(rows)
        for smoothing, null in ((1e-9, 1e-6), (1e-9, 0.999), (1e3, 0.5)):
            aligner = ALIGNERS[kind](
                constraint=constraint, smoothing=smoothing, null_smoothing=smoothing, null=null, spelling=0.0, stems=0.0
            ).fit(text)
            chances = aligner.predict_proba(text) + aligner.predict_proba(Bitext.of([*rows, ("zz a", "b qq")]))
            assert np.isfinite(aligner.trace_).all() and np.isfinite(aligner.pair_scores(text)).all()
            assert all(np.isfinite(matrix).all() and (matrix <= 1).all() for matrix in chances)


# --- predicting --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(ALIGNERS))
@pytest.mark.parametrize("constraint", ["agreement", "bijective"])
def test_company_and_saving_make_no_difference(german, tmp_path, kind, constraint):
    """A sentence has the same links in a batch, alone, in chunks, and from a saved model."""
    aligner = ALIGNERS[kind](constraint=constraint).fit(german)
    aligner.save(tmp_path / "model")
    loaded = ALIGNERS[kind].load(tmp_path / "model")
    text = Bitext.of([*german, *samples.bitext("en-tr")])  # the second half is mostly unknown
    whole = loaded.predict(text)
    assert same(whole, aligner.predict(text)) and same(whole, store.load(tmp_path / "model").predict(text))
    for size in (1, 7):
        parts = [loaded.predict(text.part(k, min(k + size, len(text)))) for k in range(0, len(text), size)]
        assert [row for part in parts for row in sets(part)] == sets(whole)
        assert np.concatenate([part.probability for part in parts]).tobytes() == whole.probability.tobytes()
    chances = loaded.predict_proba(text)
    assert all((a == b).all() for a, b in zip(loaded.predict_proba(text.part(40, 60)), chances[40:60], strict=True))


def test_what_was_fitted_is_judged_without_its_own_evidence(german):
    """`predict` of the training text gives the links found in training; of a copy, those of the model as it stands."""
    aligner = HMMAligner().fit(german)
    own, model = aligner.predict(german), aligner.predict(again(german))
    assert same(own, aligner.fit_predict(german)) and not same(own, model)
    kept = HMMAligner(leave_out=0.0, decode_leave_out=0.0).fit(german)  # nothing left out: the model as it stands
    assert sets(kept.predict(german)) == sets(kept.predict(again(german)))


def test_links_have_the_probabilities_of_their_cells(fitted, german):
    links, chances = fitted.predict(german), fitted.predict_proba(german)
    for row, matrix, (source, target) in zip(links, chances, german, strict=True):
        assert matrix.shape == (len(source), len(target)) and matrix.dtype == np.float32
        assert (row.source, row.target) == (source, target)
        assert row.links == {(i, j) for i, j in np.argwhere(matrix >= fitted.threshold_ - 1e-7).tolist()}
        for link, p in row.probability.items():
            assert p == pytest.approx(float(matrix[link]), abs=1e-6)
        assert (matrix.sum(axis=0) <= 1.6).all() and (matrix.sum(axis=1) <= 1.6).all()  # six steps: nearly one to one


def test_unknown_words_empty_sides_and_long_pairs(german):
    aligner = HMMAligner(max_length=30).fit(german)
    rows = [
        ("", ""), ("The woman reads .", ""), ("", "Die Frau"), ("qwx zzz", "vbn jkl"),
        ("The woman reads .", "Die Frau liest ."), ("the " * 31, "die"), ("die", "the " * 31),
        ("Obama 1998 .", "1998 Obama ."), ("x " * 30, "y"),
    ]  # fmt: skip
    links, chances = aligner.predict(Bitext.of(rows)), aligner.predict_proba(Bitext.of(rows))
    assert len(links) == len(rows)
    assert all(not links[k].links for k in (0, 1, 2, 5, 6))
    assert [chances[k].shape for k in (0, 1, 5)] == [(0, 0)] * 3 and chances[8].shape == (30, 1)
    assert all(np.isfinite(matrix).all() for matrix in chances)
    assert {(0, 0), (1, 1), (2, 2), (3, 3)} <= links[4].links
    assert {(0, 1), (1, 0), (2, 2)} <= links[7].links  # unknown, but spelt alike
    nothing = aligner.predict(Bitext.of([]))
    assert len(nothing) == 0 and aligner.predict_proba(Bitext.of([])) == []


def test_new_forms_of_known_stems_are_linked():
    rows = [("they wander far", "sie lauf weit"), ("they wander here", "sie lauf hier"), ("they sit", "sie sitz")] * 3
    new = Bitext.of([("qwx wandering", "laufend vbn")])
    chances = {
        stems: HMMAligner(spelling=0.0, stems=stems).fit(Bitext.of(rows)).predict_proba(new)[0] for stems in (0.0, 2.0)
    }
    assert chances[2.0][1, 0] > 0.5 > chances[2.0][0, 0]
    assert chances[2.0][1, 0] > 2 * chances[0.0][1, 0]


def test_skipped_pairs_of_the_training_are_named(german):
    text = Bitext.of([("", "x"), *german, ("a " * 50, "b")])
    aligner = HMMAligner(max_length=40).fit(text)
    assert aligner.skipped_.tolist() == [0, len(german) + 1]
    links = aligner.predict(text)
    assert len(links) == len(german) + 2 and not links[0].links and not links[len(german) + 1].links


def test_case_is_an_option_and_words_keep_theirs(german):
    shouted = Bitext.of([(tuple(w.upper() for w in a), b) for a, b in german])
    aligner = HMMAligner().fit(german)
    assert sets(aligner.predict(shouted)) == sets(aligner.predict(again(german)))
    assert aligner.predict(shouted)[0].source == shouted[0][0]
    strict = HMMAligner(lowercase=False, spelling=0.0, stems=0.0).fit(german)
    assert sets(strict.predict(shouted)) != sets(strict.predict(again(german)))


# --- thresholds and symmetrisation -------------------------------------------------------------------------------


def test_a_higher_threshold_keeps_a_subset(german):
    before = None
    for threshold in (0.01, 0.2, 0.5, 0.9):
        aligner = HMMAligner(threshold=threshold, iterations=2).fit(german)
        assert aligner.threshold_ == threshold
        now = sets(aligner.predict(german))
        assert before is None or all(a <= b for a, b in zip(now, before, strict=True))
        before = now


def directions(aligner, bitext):
    """Links of each direction, cell by cell in NumPy."""
    corpus, _, evidence = aligner._evidence(bitext)
    cuts, found = corpus.pairs.cell_offsets, ([], [])
    for k in range(len(corpus)):
        cells = evidence.posterior[cuts[k] : cuts[k + 1]].reshape(*corpus.shape(k), 2) / 65535
        for side in (0, 1):
            found[side].append(
                frozenset(map(tuple, np.argwhere(cells[..., side] >= aligner.threshold_ - 1e-9).tolist()))
            )
    return found


@pytest.mark.parametrize("method", METHODS)
def test_heuristics_join_the_links_of_both_directions(german, method):
    aligner = HMMAligner(symmetrise=method, iterations=2, constraint="none").fit(german)
    forward, backward = directions(aligner, german)
    links, chances = aligner.predict(german), aligner.predict_proba(german)
    for k, row in enumerate(links):
        source, target = german[k]
        one, two = (
            Alignment(forward[k], source=source, target=target),
            Alignment(backward[k], source=source, target=target),
        )
        assert row.links == one.symmetrise(two, method).links
        assert all(p == pytest.approx(float(chances[k][link]), abs=1e-6) for link, p in row.probability.items())


def test_best_paths_are_functions_and_join(german):
    union, both = (
        HMMAligner(symmetrise=method, decode="viterbi", iterations=2).fit(german).predict(german)
        for method in ("union", "intersection")
    )
    for some, few in zip(union, both, strict=True):
        assert few.links <= some.links
        assert len({i for i, _ in few.links}) == len({j for _, j in few.links}) == len(few.links)  # one to one
        assert len(some.links) <= len(some.source) + len(some.target)
    with pytest.raises(ParameterError, match="symmetrise='grow-diag-final-and'"):
        HMMAligner(decode="viterbi").fit(german)
    with pytest.raises(ParameterError, match="Model1Aligner: final=True is for the HMM"):
        Model1Aligner(final=True).fit(german)


@pytest.mark.parametrize("constraint", ["none", "agreement"])
def test_points_keep_as_many_links_as_best_paths(turkish, constraint):
    aligner = HMMAligner(threshold="points", constraint=constraint).fit(turkish)
    one = HMMAligner(constraint=constraint, decode="viterbi", symmetrise="union").fit(turkish)
    corpus, model, _ = one._evidence(turkish)
    paths = one._best_paths(corpus.pairs, model.parameters(one._settings))
    asked = ((paths[0] >= 0).sum() + (paths[1] >= 0).sum() + 1) // 2
    chances = np.concatenate([matrix.ravel() for matrix in aligner.predict_proba(turkish)])
    kept = len(aligner.predict(turkish).source)
    assert kept >= asked > (chances > aligner.threshold_ + 1e-6).sum()


@pytest.mark.parametrize("constraint", ["none", "agreement"])
def test_points_of_each_direction_keep_as_many_links_as_its_best_path(turkish, constraint, tmp_path):
    """Ganchev et al. 2008: a threshold for each direction, and then their links are joined."""
    options = {"constraint": constraint, "decode_constraint": "none", "remember": False}
    aligner = HMMAligner(threshold="points", symmetrise="union", decode_leave_out=0.0, **options).fit(turkish)
    corpus, model, _ = aligner._evidence(turkish)
    paths = aligner._best_paths(corpus.pairs, model.parameters(aligner._settings))
    directions = aligner.predict_directions(turkish)
    assert aligner.thresholds_[0] != aligner.thresholds_[1]
    for path, threshold, matrices in zip(paths, aligner.thresholds_, directions):
        chances = np.concatenate([matrix.ravel() for matrix in matrices])
        asked, at_least = (path >= 0).sum(), (chances >= threshold - 1e-6).sum()
        assert at_least >= asked > (chances > threshold + 1e-6).sum()  # exactly as many, but for ties
    union = [
        {(int(i), int(j)) for q, t in zip(both, aligner.thresholds_) for i, j in np.argwhere(q >= t - 1e-6)}
        for both in zip(*directions)
    ]
    assert sets(aligner.predict(turkish)) == union
    aligner.save(tmp_path / "points")
    loaded = HMMAligner.load(tmp_path / "points")
    assert loaded.thresholds_ == aligner.thresholds_ and sets(loaded.predict(turkish)) == union
    loaded.threshold_ = 0.4  # one that is given is that of both
    assert loaded.thresholds_ == (0.4, 0.4)


@pytest.mark.parametrize("constraint", ["none", "agreement", "bijective"])
def test_a_tuned_threshold_is_the_best_there_is(turkish, constraint):
    gold = samples.gold("en-tr")
    aligner = HMMAligner(constraint=constraint).fit(turkish)
    untuned = aligner.score(turkish, gold)
    chances = aligner.predict_proba(turkish)
    threshold = aligner.tune_threshold(turkish, gold)
    assert aligner.threshold_ == threshold
    rows = [
        Alignment(frozenset((int(i), int(j)) for i, j in np.argwhere(m > 1e-4)), probability={
            (int(i), int(j)): float(m[i, j]) for i, j in np.argwhere(m > 1e-4)
        })
        for m in chances
    ]  # fmt: skip
    lowest = 100 * curve(Links.of(rows), gold).aer.min()
    assert aligner.score(turkish, gold).aer == pytest.approx(lowest, abs=1e-7)
    assert lowest <= untuned.aer


# --- more text, and what is known beforehand ---------------------------------------------------------------------


def test_update_keeps_what_was_known_and_learns_what_is_new():
    text = samples.synthetic(600, seed=3)
    first, second, unseen = text.bitext.part(0, 250), text.bitext.part(250, 500), text.bitext.part(500, 600)
    aligner = HMMAligner().fit(first)
    known = {(e.source, e.target): e for e in aligner.lexicon(least=0.0)}
    words = {w.lower() for pair in second for side in pair for w in side}
    before = score_links(aligner.predict(unseen), text.links.part(500, 600)).aer
    old = score_links(aligner.predict(again(first)), text.links.part(0, 250)).aer
    assert aligner.update(second) is aligner
    now = {(e.source, e.target): e for e in aligner.lexicon(least=0.0)}
    assert known.keys() <= now.keys()
    untouched = [pair for pair in known if pair[0] not in words and pair[1] not in words]
    assert len(untouched) > 100
    assert all(now[pair] == known[pair] for pair in untouched)  # words that did not come again
    old_words = {source for source, _ in known}
    assert any(e.source in words and e.source not in old_words and e.forward > 0.3 for e in now.values())
    assert score_links(aligner.predict(unseen), text.links.part(500, 600)).aer < before - 1
    assert score_links(aligner.predict(again(first)), text.links.part(0, 250)).aer < old + 1
    assert same(aligner.predict(second), aligner.predict(second))


def test_update_counts_every_word_once():
    """Pseudo-counts and their sums still belong together, and what comes twice counts twice."""
    bitext = samples.synthetic(200, seed=4).bitext
    aligner = HMMAligner().fit(bitext.part(0, 100))
    for _ in range(2):
        aligner.update(bitext.part(100, 200))
    model = aligner._model
    assert model.null_mass == pytest.approx([model.source_null[:-1].sum(), model.target_null[:-1].sum()], rel=1e-4)
    assert model.source_counts.sum() == sum(
        len(source) for part in ((0, 100), (100, 200), (100, 200)) for source, _ in bitext.part(*part)
    )


def test_probabilities_add_up_after_an_update():
    bitext = samples.synthetic(200, seed=4).bitext
    model = HMMAligner().fit(bitext.part(0, 100)).update(bitext.part(100, 200))._model
    owner = np.repeat(np.arange(len(model.source_words)), np.diff(model.rows))
    rows = np.bincount(owner, model.weights[:, 0]) / model.source_mass[:-1]
    columns = np.bincount(model.columns, model.weights[:, 1]) / model.target_mass[:-1]
    assert rows.max() < 1.01 and columns.max() < 1.01


def test_an_update_without_usable_pairs_changes_nothing(german):
    aligner = HMMAligner().fit(german)
    before = aligner.predict(again(german))
    aligner.update(Bitext.of([("", "x")]))
    assert same(before, aligner.predict(again(german)))


def test_a_lexicon_pulls_links(tmp_path):
    """Two words that always come together, crosswise: only a dictionary can tell which is which."""
    rows = [("red car", "wagen roter")] * 4
    options = {"spelling": 0.0, "stems": 0.0, "threshold": 0.4}
    pulled = HMMAligner(lexicon=[("red", "roter"), ("Car", "Wagen", 10)], **options).fit_predict(Bitext.of(rows))
    assert sets(pulled) == [{(0, 1), (1, 0)}] * 4
    other = HMMAligner(lexicon=[("red", "wagen"), ("car", "roter")], **options).fit_predict(Bitext.of(rows))
    assert sets(other) == [{(0, 0), (1, 1)}] * 4
    path = tmp_path / "lexicon.tsv"
    path.write_text("red\troter\ncar\twagen\n", encoding="utf-8")
    assert sets(HMMAligner(lexicon=path, **options).fit_predict(Bitext.of(rows))) == sets(pulled)


# --- looking inside ----------------------------------------------------------------------------------------------


def test_the_lexicon_has_probabilities(fitted, german):
    entries = list(fitted.lexicon(least=0.0))
    forward, backward = {}, {}
    for e in entries:
        assert 0 <= e.forward <= 1 and 0 <= e.backward <= 1 and e.links >= 0
        forward[e.source] = forward.get(e.source, 0.0) + e.forward
        backward[e.target] = backward.get(e.target, 0.0) + e.backward
    assert max(forward.values()) <= 1 + 1e-4 and max(backward.values()) <= 1 + 1e-4
    best = {}
    for e in entries:
        best.setdefault(e.source, e)
        assert e.forward <= best[e.source].forward + 1e-6  # the most probable comes first
    assert (best["."].target, best["woman"].target, best["book"].target) == (".", "frau", "buch")
    few = list(fitted.lexicon(least=0.3))
    assert 0 < len(few) < len(entries) and all(max(e.forward, e.backward) >= 0.3 for e in few)


def test_pair_scores_tell_translations_from_strangers(german):
    text = samples.synthetic(400, seed=6).bitext
    aligner = HMMAligner().fit(text.part(0, 300))
    held = list(text.part(300, 400))
    true = aligner.pair_scores(Bitext.of(held))
    strangers = aligner.pair_scores(Bitext.of([(a, held[(k + 1) % 100][1]) for k, (a, _) in enumerate(held)]))
    assert np.isfinite(true).all() and np.mean(true > strangers) > 0.9 and true.mean() > strangers.mean() + 0.5
    odd = aligner.pair_scores(Bitext.of([("", "x"), *held[:2], ("a " * 1001, "b")]))
    assert np.isnan(odd[[0, 3]]).all() and odd[1:3] == pytest.approx(true[:2], abs=1e-6)
    swapped = HMMAligner().fit(text.part(0, 300).swapped()).pair_scores(Bitext.of(held).swapped())
    assert swapped == pytest.approx(true, abs=1e-3)


@pytest.mark.parametrize("constraint", ["none", "agreement"])
def test_explanations_agree_with_the_links(turkish, constraint):
    aligner = HMMAligner(constraint=constraint).fit(turkish)
    for tuned in (False, True):
        if tuned:
            aligner.tune_threshold(turkish, samples.gold("en-tr"))
        links, chances = aligner.predict(turkish), aligner.predict_proba(turkish)
        for pair, (source, target) in enumerate(turkish):
            for side, words, others in (("source", source, target), ("target", target, source)):
                for position, word in enumerate(words):
                    told = aligner.explain(turkish, pair, **{side: position})
                    row = chances[pair][position] if side == "source" else chances[pair][:, position]
                    assert told["word"] == word and len(told["candidates"]) == min(5, len(others))
                    assert told["candidates"][0]["posterior"] == pytest.approx(row.max(), abs=1e-4)
                    for candidate in told["candidates"]:
                        at = candidate["position"]
                        link = (position, at) if side == "source" else (at, position)
                        assert candidate["word"] == others[at]
                        assert candidate["posterior"] == pytest.approx(row[at], abs=1e-4)
                        assert candidate["linked"] == (link in links[pair].links)
                        assert 0 <= candidate["p_target_given_source"] <= 1
                    assert -1e-3 <= told["null"] <= 1
                    best = told["candidates"][0]
                    assert ("is linked to" in told["reason"]) == best["linked"] and word in told["reason"]
    assert json.loads(json.dumps(told)) == told


def test_explanations_of_odd_words(fitted):
    text = Bitext.of([("The qwx .", "Das vbn ."), ("", "x")])
    told = fitted.explain(text, 0, source=1)
    assert told["seen"] == 0 and ("never seen" in told["reason"]) != told["candidates"][0]["linked"]
    assert "passed over" in fitted.explain(text, 1, target=0)["reason"]
    for options in ({}, {"source": 0, "target": 0}, {"source": 9}, {"target": -1}):
        with pytest.raises(UsageError, match="explain"):
            fitted.explain(text, 0, **options)
    with pytest.raises(UsageError, match="no pair 2"):
        fitted.explain(text, 2, source=0)


# --- keeping -----------------------------------------------------------------------------------------------------


def test_options_and_threshold_survive_saving(german, tmp_path):
    options = {"constraint": "bijective", "iterations": 2, "smoothing": 0.01, "threshold": "points", "lowercase": False}
    aligner = HMMAligner(**options, dual_steps=3, seed=5).fit(german)
    aligner.save(tmp_path / "model")
    loaded = HMMAligner.load(tmp_path / "model")
    assert loaded.options_ == aligner.options_ and loaded.threshold_ == aligner.threshold_
    assert options.items() <= loaded.options_.items() and loaded.options_["dual_steps"] == 3
    loaded.save(tmp_path / "again")
    assert files_of(tmp_path / "model") == files_of(tmp_path / "again")
    loaded.update(german)  # a loaded model can go on learning
    with pytest.raises(ModelError):
        Model1Aligner.load(tmp_path / "model")


def test_pruning_drops_what_is_improbable_both_ways(fitted):
    model = fitted._trained_on[1].model
    owner = np.repeat(np.arange(len(model.source_words)), np.diff(model.rows))
    forward = model.weights[:, 0] / model.source_mass[owner]
    backward = model.weights[:, 1] / model.target_mass[model.columns]
    for least in (1e-6, 0.01, 0.3):
        kept, keep = model.pruned(least), (forward >= least) | (backward >= least)
        assert (np.repeat(np.arange(len(model.source_words)), np.diff(kept.rows)) == owner[keep]).all()
        assert (kept.columns == model.columns[keep]).all() and (kept.weights == model.weights[keep]).all()
    assert 0 < len(model.pruned(0.3).columns) < len(model.columns)


def arrays_of(aligner):
    return aligner._model.arrays()


def damaged(arrays, name, how):
    array = arrays[name]
    changed = {"short": array[:-1], "long": np.concatenate([array, array[-1:]])}
    return {**arrays, name: changed[how]}


LENGTHS = ("rows", "weights", "columns", "source_mass", "target_mass", "source_null", "target_null")
OTHERS = ("jumps", "first", "diagonal", "null_mass", "source_counts", "target_counts")


@pytest.mark.parametrize("how", ["short", "long"])
@pytest.mark.parametrize("name", LENGTHS)
def test_tables_that_do_not_fit_are_refused(fitted, name, how):
    with pytest.raises(ModelError, match="array"):
        Model.from_arrays(damaged(arrays_of(fitted), name, how))


@pytest.mark.parametrize("how", ["short", "long"])
@pytest.mark.parametrize("name", OTHERS)
def test_distortion_that_does_not_fit_is_refused(fitted, name, how):
    """Kernels read these without looking at their size."""
    with pytest.raises(ModelError):
        Model.from_arrays(damaged(arrays_of(fitted), name, how))


def test_damaged_models_are_refused(fitted, tmp_path):
    place = tmp_path / "model"
    fitted.save(place)
    whole = files_of(place)
    broken = bytearray(whole[store.ARRAYS])
    broken[len(broken) // 2] ^= 1
    for name, contents in (
        (store.ARRAYS, bytes(broken)), (store.ARRAYS, whole[store.ARRAYS][:-9]),
        (store.HEADER, b"{"), (store.HEADER, b"[]"),
    ):  # fmt: skip
        (place / name).write_bytes(contents)
        with pytest.raises(ModelError):
            HMMAligner.load(place)
        (place / name).write_bytes(whole[name])
    assert HMMAligner.load(place).threshold_ == fitted.threshold_
    saved = store.read(place)
    for options in (
        {**saved.options, "smoothing": -1},
        {**saved.options, "unheard": 1},
        {**saved.options, "null": "much"},
    ):
        store.save(place, kind="align.hmm", options=options, arrays=saved.arrays, meta=saved.meta)
        with pytest.raises(ModelError, match="the saved aligner is damaged"):
            HMMAligner.load(place)
    rows = saved.arrays["rows"].copy()
    rows[1] = rows[-1] + 1
    for arrays in (
        {**saved.arrays, "rows": rows},
        {**saved.arrays, "columns": saved.arrays["columns"] + len(fitted._model.target_words)},
        {name: array for name, array in saved.arrays.items() if name != "jumps"},
    ):
        store.save(place, kind="align.hmm", options=saved.options, arrays=arrays, meta=saved.meta)
        with pytest.raises(ModelError):
            HMMAligner.load(place)
    with pytest.raises(UsageError):
        HMMAligner.load(tmp_path / "nowhere")


# --- options -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("constraint", "bijection"), ("decode_constraint", ""), ("iterations", -1), ("iterations", 2.5),
        ("iterations", True), ("threshold", 0.0), ("threshold", 1.5), ("threshold", "best"), ("threshold", math.nan),
        ("threshold", True), ("symmetrise", "diag"), ("decode", "beam"), ("smoothing", 0.0), ("smoothing", math.inf),
        ("smoothing", "little"), ("null", 1.0), ("null", -0.1), ("spelling", -1.0), ("stems", math.nan),
        ("stem_length", 0), ("max_length", 0), ("seed", -1), ("dual_rate", 0.0), ("dual_steps", -1), ("leave_out", 1.5),
        ("null_smoothing", 0.0),
    ],
)  # fmt: skip
def test_nonsense_is_refused_by_name(option, value):
    with pytest.raises(ParameterError, match=option) as refused:
        HMMAligner(**{option: value}).check_params()
    assert repr(value) in str(refused.value)


def test_unknown_options_are_refused(german):
    with pytest.raises(ParameterError, match=r"HMMAligner has no option 'iteration'. Did you mean 'iterations'"):
        HMMAligner(iteration=3)
    with pytest.raises(ParameterError, match="threads"):
        HMMAligner(threads=0).fit(german)


def test_the_size_of_each_text_decides_anew(monkeypatch):
    from isogloss.tasks.align import settings as module

    monkeypatch.setattr(module, "_LARGE", 300)
    monkeypatch.setattr(module, "_SPREAD", 0.1)
    aligner, types = HMMAligner(), []
    for name, classes in (("en-de", 1), ("en-tr", 3)):
        text = samples.bitext(name).part(0, 50 if name == "en-de" else 20)
        used = aligner.fit(text).options_
        types.append(np.sqrt(len(aligner._model.source_words) * len(aligner._model.target_words)))
        assert used["stem_classes"] == classes and used["smoothing"] == pytest.approx(0.1 / types[-1])
    assert types[0] != types[1]
    given = HMMAligner(stem_classes=2, smoothing=0.5).fit(samples.bitext("en-de")).options_  # what was given stays
    assert (given["stem_classes"], given["smoothing"]) == (2, 0.5)


def test_options_are_kept_as_given_and_told_as_used():
    aligner = Model2Aligner(constraint="symmetric", threshold=0.25, iterations=3, lexicon=[("a", "b")], threads=2)
    given = aligner.get_params()
    assert given["dual_steps"] is given["decode_constraint"] is None and given["lexicon"] == [("a", "b")]
    assert aligner.set_params(lexicon=None).get_params()["lexicon"] is None and callable(aligner.lexicon)
    used = aligner.options_
    assert set(used) == {field.name for field in fields(Settings)}
    assert (used["model"], used["dual_steps"], used["decode_constraint"]) == ("model2", 200, "symmetric")
    assert (used["dual_search"], used["train_length"]) == ("adaptive", 1000)
    options = {name: value for name, value in json.loads(json.dumps(used)).items() if name != "model"}
    assert Model2Aligner(**options).options_ == used
    usual = HMMAligner().options_
    assert (usual["dual_steps"], usual["decode_constraint"], usual["iterations"]) == (9, "symmetric", 5)
    assert usual["dual_search"] == "fixed"


def test_a_new_fit_uses_new_options(german):
    aligner = HMMAligner(iterations=2).fit(german)
    aligner.set_params(iterations=1, model1_iterations=1)
    assert aligner.options_["iterations"] == 2 and aligner.get_params()["iterations"] == 1
    assert len(aligner.fit(german).trace_) == 2 and aligner.options_["iterations"] == 1


# --- orderings that the literature reports -----------------------------------------------------------------------


def test_constraints_lower_the_error(synthetic):
    """Liang et al. 2006, Graça et al. 2010: agreement, bijectivity and symmetry each beat independent training."""
    aer = {
        kind: {
            constraint: aligner(constraint=constraint)
            .fit(synthetic.bitext)
            .score(synthetic.bitext, synthetic.links)
            .aer
            for constraint in (CONSTRAINTS if kind == "hmm" else ("none", "agreement"))
        }
        for kind, aligner in ALIGNERS.items()
    }
    for kind, errors in aer.items():
        assert all(error < errors["none"] for name, error in errors.items() if name != "none"), (kind, errors)
    assert aer["hmm"]["none"] < aer["model2"]["none"] < aer["model1"]["none"]
    assert aer["hmm"]["agreement"] < aer["model2"]["agreement"] < aer["model1"]["agreement"]
    assert aer["hmm"]["symmetric"] < aer["hmm"]["bijective"]


def test_more_text_lowers_the_error(synthetic):
    gold = synthetic.links.part(0, 100)
    errors = []
    for n in (100, 400, 1500):
        text = synthetic.bitext.part(0, n)
        errors.append(score_links(HMMAligner().fit_predict(text).part(0, 100), gold).aer)
    assert errors[0] > errors[1] + 2 and errors[1] > errors[2] + 2


def test_priors_and_leaving_out_help(synthetic):
    text, gold = synthetic.bitext.part(0, 500), synthetic.links.part(0, 500)
    best = HMMAligner().fit(text).score(text, gold).aer
    for option in ({"stems": 0.0}, {"leave_out": 0.0, "decode_leave_out": 0.0}, {"spelling": 0.0}):
        assert best < HMMAligner(**option).fit(text).score(text, gold).aer, option
