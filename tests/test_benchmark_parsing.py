"""The harness of the parsing benchmark: what systems are shown, rows told apart, honest verdicts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.quality.parsing import __main__ as main
from benchmarks.quality.parsing import paired, run, speed, studies, texts, verdicts
from benchmarks.quality.parsing.models import MALT, UDPIPE, Model, NotHere

from isogloss import samples
from isogloss.data import Treebank


@pytest.fixture(scope="module")
def trees() -> Treebank:
    return Treebank.from_bytes(samples.trees("en-de", "target").encode(), "de.conllu")


def columns(data: bytes) -> list[set[str]]:
    words = [line.split("\t") for line in data.decode().splitlines() if line]
    assert all(len(word) == 10 for word in words)
    return [{word[i] for word in words} for i in range(10)]


@pytest.mark.parametrize("tags", texts.SETTINGS)
def test_test_sentences_never_show_their_trees(tags: str, trees: Treebank) -> None:
    found = columns(texts.plain(trees, tags, texts.TEST))
    for hidden in (6, 7, 8, 9):
        assert found[hidden] == {"_"}
    assert (found[3] == {"_"}) == (tags == texts.OWN)
    assert (found[2] == {"_"}) == (tags != texts.LEMMAS)


@pytest.mark.parametrize("tags", texts.SETTINGS)
def test_training_sentences_keep_words_tags_and_trees(tags: str, trees: Treebank) -> None:
    data = texts.plain(trees, tags, texts.TRAIN)
    again = Treebank.from_bytes(data, "plain.conllu")
    assert again.heads.tolist() == trees.heads.tolist()
    for name in ("form", "upos", "xpos", "feats", "deprel"):
        assert [again.strings(name, k) for k in range(len(again))] == [
            trees.strings(name, k) for k in range(len(trees))
        ]
    assert (columns(data)[2] == {"_"}) == (tags in (texts.GOLD, texts.PREDICTED))


def test_columns_that_say_nothing_are_not_predicted() -> None:
    tree = Treebank.of([[("Birds", "NOUN", 2, "nsubj"), ("sing", "VERB", 0, "root")]])
    assert texts.columns_to_predict(tree) == ["upos"]


def test_every_job_has_its_own_row_and_files() -> None:
    every = studies.jobs()
    assert (
        len({tuple(run.key_of(job).values()) for job in every})
        == len({run.name_of(job) for job in every})
        == len(every)
    )
    asked = {(job.text, job.tags, job.model) for job in every}
    for first, second in studies.comparisons():
        assert first.text == second.text and first.tags == second.tags
        assert (first.text, first.tags, first.model) in asked and (second.text, second.tags, second.model) in asked


def test_jobs_are_chosen_by_text_study_system_and_tags() -> None:
    chosen = studies.choose("hu/peers", "malt", "gold")
    assert [str(job) for job in chosen] == ["hu gold: malt"]
    assert {job.text for job in studies.choose("hu/peers,el/tagging")} == {"hu", "el"}
    assert {job.model for job in studies.choose(models="isogloss --order 2")} == {studies.SECOND}
    for wrong in ({"only": "xx"}, {"models": "xx"}, {"tags": "xx"}):
        with pytest.raises(SystemExit, match="xx"):
            studies.choose(**wrong)


def test_absent_peers_say_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PARSING_PEERS", "MALT_JAR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NotHere, match="PARSING_PEERS"):
        _ = Model(UDPIPE).version
    with pytest.raises(NotHere, match="MALT_JAR"):
        _ = Model(MALT).version


def test_commands_hide_places_and_follow_tags(tmp_path: Path) -> None:
    given = texts.Given(tmp_path / "a", tmp_path / "b", tmp_path / "c", "0")
    for tags, expected in ((texts.OWN, "predicted"), (texts.PREDICTED, "gold"), (texts.GOLD, "gold")):
        command = [str(part) for part in studies.SECOND.train(given, tags, tmp_path, 1)]
        assert command[command.index("--tags") + 1] == expected
        assert command[command.index("--order") + 1] == "2"
        assert str(tmp_path) not in studies.SECOND.shown(tags, dev=True, threads=1)
    no_dev = texts.Given(tmp_path / "a", None, tmp_path / "c", "0")
    assert "--dev" not in studies.FIRST.train(no_dev, texts.GOLD, tmp_path, 1)


def test_rows_are_wanted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    job = studies.choose("hu/peers", "malt", "gold")[0]
    found = {tuple(str(value) for value in run.key_of(job).values()): {"code": ""}}
    monkeypatch.setattr(run, "is_stale", lambda job, row: True)
    assert main.is_wanted(job, {}, again=False, stale=False)
    assert not main.is_wanted(job, found, again=False, stale=False)
    assert main.is_wanted(job, found, again=False, stale=True)


def test_a_trained_model_is_used_again_only_for_the_same_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[Any] = []

    def clock(command: Any, **more: Any) -> dict[str, float]:
        calls.append(command)
        return {"seconds": 1.0, "cpu_seconds": 1.0, "peak_mb": 1.0}

    monkeypatch.setattr(run, "clock", clock)
    monkeypatch.setattr(run, "KEPT", tmp_path)
    job = studies.Job("hu", texts.GOLD, studies.FIRST)
    for digest, again in (("a", False), ("a", False), ("b", False), ("b", True)):
        given = texts.Given(tmp_path / "a", None, tmp_path / "c", digest)
        run.train(job, given, 1, "1.0", again=again)
    assert len(calls) == 3


# --- verdicts


def row(text: str, model: Model, uas: float, las: float, digest: str = "x") -> dict[str, str]:
    key = {name: str(value) for name, value in run.key_of(studies.Job(text, texts.GOLD, model)).items()}
    return key | {"UAS": str(uas), "LAS": str(las), "text": digest}


def outcome(text: str, measure: str, difference: float, p: float) -> dict[str, str]:
    names = {"first": str(studies.SECOND), "second": str(studies.UDPIPE_1)}
    numbers = {"difference": str(difference), "p": str(p)}
    return {"data": text, "tags": texts.GOLD, "measure": measure} | names | numbers


def test_the_mean_is_over_treebanks_that_both_have_with_the_same_tags() -> None:
    ours, peer = studies.SECOND, studies.UDPIPE_1
    found = [row("hu", ours, 80, 70), row("hu", peer, 79, 71), row("el", ours, 90, 85), row("el", peer, 80, 75)]
    found += [row("got", ours, 90, 85, "x"), row("got", peer, 10, 5, "y"), row("en-ewt", ours, 99, 99)]
    find = verdicts.Find(found, [])
    assert find.common(texts.GOLD, (ours, peer)) == ["el", "hu"]
    verdict = verdicts.better_on_the_mean(find, texts.GOLD, ours, peer)
    assert verdict == "yes: UAS 85.00 and 79.50, LAS 77.50 and 73.00 (2 of 8 treebanks so far)"
    worse = verdicts.Find([row("hu", ours, 80, 70), row("hu", peer, 79, 71)], [])
    assert verdicts.better_on_the_mean(worse, texts.GOLD, ours, peer).startswith("**no**")
    assert verdicts.better_on_the_mean(find, texts.GOLD, ours, studies.MALTPARSER) == verdicts.NOT_YET


def test_only_significant_losses_count() -> None:
    ours, peer = studies.SECOND, studies.UDPIPE_1
    fine = [outcome("hu", "uas", -0.3, 0.2), outcome("hu", "las", 2.0, 0.001)]
    assert verdicts.nowhere_worse(verdicts.Find([], fine), texts.GOLD, ours, peer).startswith("yes")
    bad = [*fine, outcome("el", "las", -1.0, 0.01)]
    verdict = verdicts.nowhere_worse(verdicts.Find([], bad), texts.GOLD, ours, peer)
    assert verdict.startswith("**no**: el LAS -1.00")


def test_rates_leave_out_what_it_takes_to_start() -> None:
    once, several = {"seconds": 3.0, "cpu_seconds": 3.0}, {"seconds": 7.0, "cpu_seconds": 9.0, "peak_mb": 10.0}
    found = speed.rates(once, several, 1000)
    assert found["per_second"] == pytest.approx(1000 * (speed.TIMES - 1) / 4)
    assert speed.rates(several, once | {"peak_mb": 1.0}, 1000)["per_second"] == ""


def test_trees_that_are_not_those_of_the_row_are_not_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trees: Treebank
) -> None:
    job = studies.Job("hu", texts.GOLD, studies.FIRST)
    monkeypatch.setattr(run, "KEPT", tmp_path)
    monkeypatch.setattr(paired, "gold", lambda text: trees)
    assert paired._trees(job, {"UAS": "100", "LAS": "100"}) is None
    trees.write(run.trees_of(job))
    assert paired._trees(job, {"UAS": "100", "LAS": "100"}) is not None
    assert paired._trees(job, {"UAS": "99", "LAS": "99"}) is None
