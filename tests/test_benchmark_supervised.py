"""The harness of the supervised benchmark: features out of a larger set, rows told apart, honest choices."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.quality.supervised import active, checks, run, studies, texts, verdicts
from benchmarks.quality.supervised.models import NotYet, model

from isogloss import samples
from isogloss.data import Bitext, Links
from isogloss.structures import Blocks, Itg, Matching
from isogloss.tasks.align.features import FeatureExtractor, PairFeatures


@pytest.fixture(scope="module")
def bitext() -> Bitext:
    return samples.bitext("en-de")


@pytest.fixture(scope="module")
def features(bitext: Bitext) -> PairFeatures:
    return FeatureExtractor(texts.ALL_SETS, threads=1).fit(bitext).transform(bitext)


@pytest.mark.parametrize("sets", [*studies.STEPS, studies.SETS])
def test_selected_features_are_those_of_an_extractor_with_fewer_sets(
    sets: tuple[str, ...], bitext: Bitext, features: PairFeatures
) -> None:
    expected = FeatureExtractor(sets, threads=1).fit(bitext).transform(bitext)
    found = texts.select(features, sets)
    assert found.link_names == expected.link_names and found.null_names == expected.null_names
    assert found.lexical_names == expected.lexical_names
    for name in ("links", "source_nulls", "target_nulls"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (found.lexical is None) == (expected.lexical is None)
    if found.lexical is not None and expected.lexical is not None:
        np.testing.assert_array_equal(found.lexical[1], expected.lexical[1])


def test_features_come_back_from_a_file(tmp_path: Path, bitext: Bitext) -> None:
    given = FeatureExtractor(("association", "lexical", "ibm", "pairs"), threads=1).fit(bitext).transform(bitext)
    np.savez(tmp_path / "kept.npz", **texts.pack(given))
    with np.load(tmp_path / "kept.npz") as arrays:
        found = texts.unpack(dict(arrays))
    assert found.link_names == given.link_names and found.lexical_names == given.lexical_names
    np.testing.assert_array_equal(found.links, given.links)
    assert found.lexical is not None and given.lexical is not None
    np.testing.assert_array_equal(found.lexical[0], given.lexical[0])
    further: dict[str, Any] = dict(given.further)
    assert set(found.further) == set(further) and further
    for name, parts in further.items():
        assert found.further[name].names == parts.names
        np.testing.assert_array_equal(found.further[name].values, parts.values)
        np.testing.assert_array_equal(found.further[name].offsets, parts.offsets)


def test_every_job_has_a_row_of_its_own() -> None:
    keys = [tuple(run.key_of(job).values()) for job in studies.jobs()]
    assert len(set(keys)) == len(keys) > 100
    assert all(job.tags for job in studies.jobs())


def test_jobs_are_chosen_by_study_text_and_model() -> None:
    found = studies.choose("hansards-2k/features,curves", "matching")
    assert {job.model.kind for job in found} == {"matching"}
    assert all({"hansards-2k", "features"} <= job.tags or "curves" in job.tags for job in found)
    assert any("curves" in job.tags for job in found) and any("features" in job.tags for job in found)
    with pytest.raises(SystemExit, match="nonsense"):
        studies.choose("nonsense", "")


def test_compared_rows_are_rows_that_are_run() -> None:
    known = set(studies.jobs())
    every = list(studies.comparisons())
    assert all(pair.better in known and pair.worse in known and pair.better != pair.worse for pair in every)
    keys = [(pair.better.text, pair.better.n_train, pair.title) for pair in every]
    assert len(set(keys)) == len(keys)


def test_verdicts_are_those_of_paired_tests() -> None:
    def test(difference: float, p: float) -> dict[str, str]:
        return {"difference": str(difference), "p": str(p)}

    assert verdicts.judged([9, 8], [test(-1, 0.01)]) == "yes: 9.00, 8.00"
    assert verdicts.judged([9, 8], [test(-1, 0.3)]) == "not shown: 9.00, 8.00 (p = 0.3)"
    assert verdicts.judged([9, 8, 8.1], [test(-1, 0.01), test(0.1, 0.6)]) == "not shown: 9.00, 8.00, 8.10 (p = 0.6)"
    assert verdicts.judged([9, 10], [test(1, 0.01)]).startswith("**no**: 9.00, 10.00")
    assert verdicts.judged([9, 10], [test(1, 0.01)], falling=False) == "yes: 9.00, 10.00"
    assert verdicts.judged([9, 8], [None]) == "*not tested yet*: 9.00, 8.00"


def test_verdicts_ask_for_tests_that_are_made() -> None:
    lines = list(verdicts._hansards(verdicts.Find([]), {}))
    assert len(lines) > 30 and all("not measured yet" in verdict for _, verdict in lines)


def test_draws_are_nested_and_suggestions_see_only_what_is_aligned() -> None:
    assert active.drawn(50, 0).tolist() == active.drawn(50, 0).tolist() != active.drawn(50, 1).tolist()
    gold = Links.of([{(0, 0)}, {(1, 1)}, {(2, 2)}])
    assert [set(row.links) for row in active._only(gold, (2, 0))] == [{(0, 0)}, set(), {(2, 2)}]


def test_the_model_of_a_set_is_chosen_by_cross_validation_not_by_test() -> None:
    models = list(studies.candidates().values())
    jobs = [studies.Job("en-cs.czenali", 100, studies.draw(0), each) for each in models]
    cv = [9.0 + k for k in range(len(jobs))]
    cv[1] = 7.0
    test = [20.0 - error for error in cv]  # the better by cross-validation, the worse on test
    found = [
        {name: str(value) for name, value in run.key_of(job).items()} | {"AER_cv": str(a), "AER": str(b)}
        for job, a, b in zip(jobs, cv, test, strict=True)
    ]
    find = verdicts.Find(found)
    chosen = find.chosen("en-cs.czenali", 100)
    assert chosen is not None and chosen["AER"] == "13.0"
    assert find.chosen("en-cs.czenali", 400) is None


def test_models_that_do_not_exist_say_so() -> None:
    with pytest.raises(NotYet, match="guess"):
        model("matching", trainer="guess").make(0, 1)


def test_nearest_links_of_larger_classes_are_nearer_to_gold(bitext: Bitext) -> None:
    gold = samples.gold("en-de")
    for k in range(20):
        scores = checks._gold_scores(gold, k, tuple(map(len, bitext[k])))
        assert (scores > 0).sum() == len({*gold[k].links, *gold[k].possible}) and set(scores.ravel()) <= {-1.0, 1.0}
        blocks = Itg(scores, blocks=Blocks.from_links(scores, checks.LARGEST_BLOCK, mean=False))
        one, itg, bitg = (
            sum(scores[link] for link in dist.argmax()) for dist in (Matching(scores), Itg(scores), blocks)
        )
        assert one >= itg and bitg >= itg


def test_the_best_dice_of_each_word_is_one_link_a_word() -> None:
    scores = np.array([[0.5, 0.2], [0.0, 0.0], [0.1, 0.9]])
    assert checks._best_of_each(scores) == {(0, 0), (2, 1)}
    assert checks._transposed(checks._best_of_each(scores.T)) == {(0, 0), (2, 1)}
