"""The harness of the parsing benchmark: what systems are shown, rows told apart, honest verdicts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.quality.parsing import __main__ as main
from benchmarks.quality.parsing import decode, orderings, paired, run, search, sections, speed, studies, texts, verdicts
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


def test_rows_of_another_version_are_stale_and_of_another_build_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    job = studies.choose("hu/peers", "malt", "gold")[0]
    monkeypatch.setattr(Model, "version", property(lambda self: "1.9.0+fast"))
    monkeypatch.setattr(texts, "is_made", lambda text, tags: False)
    rows = [{"code": "", "system_version": version} for version in ("1.9.0", "1.9.0+fast", "1.9.1")]
    assert [run.is_stale(job, row) for row in rows] == [False, False, True]


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
    given = texts.Given(tmp_path / "a", None, tmp_path / "c", "b")
    run.train(job, given, 2, "1.0", any_threads=True)
    assert len(calls) == 3
    run.train(job, given, 2, "1.0")
    assert len(calls) == 4


def test_rows_that_decode_otherwise_borrow_a_model_and_keep_their_own_trees(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run, "KEPT", tmp_path)
    own = studies.Job("hu", texts.GOLD, studies.FIRST)
    for model in (studies.decoded(1, "map"), studies.TREE, studies.constrained("not-2", training=False)):
        job = studies.Job("hu", texts.GOLD, model)
        assert run.model_of(job) == run.model_of(own) and run.trees_of(job) != run.trees_of(own)
    for text, model in (("el", studies.TREE), ("hu", studies.constrained("not-2", training=True))):
        job = studies.Job(text, texts.GOLD, model)
        assert studies.learner_of(job) == job
    straight = studies.STRAIGHT[0]
    for order, model in enumerate(studies.OURS, 1):  # projective trees are what it learns there anyway
        bound, free = (studies.Job(straight, texts.GOLD, studies.shaped(order, projective=p)) for p in (True, False))
        assert studies.learner_of(bound).model == model and studies.learner_of(free) == free
    assert studies.learner_of(studies.Job("hu", texts.GOLD, studies.margins("mbr"))).model == studies.trained("mira")
    steps = list(studies.FACTORS.values())
    assert len({run.model_of(studies.Job("hu", texts.GOLD, model)) for model in steps}) == len(steps)


def test_links_cross_where_the_option_to_let_them_is_taken_for_granted() -> None:
    from isogloss.tasks.parse.parser import CROSSING

    try:
        shares, straight = (
            [100 * texts.gold(text, texts.TRAIN).crossing.mean() for text in names]
            for names in (studies.CROSSING, studies.STRAIGHT)
        )
    except (SystemExit, OSError):
        pytest.skip("no treebanks here")
    assert min(shares) > CROSSING >= max(straight)


def test_kept_models_parse_in_other_ways(tmp_path: Path, trees: Treebank) -> None:
    from isogloss.tasks.parse import DependencyParser

    parser = DependencyParser(iterations=1, projective=False).fit(trees)
    parser.save(tmp_path / "model")
    trees.write(tmp_path / "test.conllu")
    for way in ("decoder=map", "constraint=not-2", "rounds=1,decoder=map"):
        given: dict[str, Any] = dict(decode.ways(way))
        decode.main(*(str(tmp_path / name) for name in ("model", "test.conllu", "out.conllu")), way, "1")
        expected = parser.with_inference(**given).predict(trees).heads
        assert Treebank.read(tmp_path / "out.conllu").heads.tolist() == expected.tolist()
    command = studies.decoded(1, "map").apply(tmp_path / "t", texts.GOLD, tmp_path, tmp_path / "o", 1)
    assert "decoder=map" in command and "decoder=map" in studies.decoded(1, "map").shown(
        texts.GOLD, dev=True, threads=1
    )


def test_rows_without_newer_columns_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "FOLDER", tmp_path)
    job = studies.choose("hu/peers", "malt", "gold")[0]
    old = {name: str(value) for name, value in run.key_of(job).items() if name != "decode"} | {"UAS": "74.1"}
    (tmp_path / "parsing.csv").write_text(f"{','.join(old)}\n{','.join(old.values())}\n")
    (found,) = run.results().read()
    assert found["decode"] == found["crossing"] == ""
    assert verdicts.Find([found], [])(job) == found
    (tmp_path / "parsing.csv").rename(tmp_path / "other.csv")
    monkeypatch.chdir(tmp_path)
    run.results().put([run.key_of(job) | {"UAS": 1.0, "decode": "rounds=1"}])
    assert run.merge(tmp_path / "other.csv") == 1
    assert sorted((each["decode"], each["UAS"]) for each in run.results().read()) == [
        ("", "74.1"),
        ("rounds=1", "1.000"),
    ]


def test_crossing_links_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    straight, crossed = ([("a", "X", h, "dep") for h in heads] for heads in ((0, 1, 2, 3), (3, 4, 0, 3)))
    monkeypatch.setattr(run, "gold", lambda text: Treebank.of([straight]))
    assert run.crossing("hu", Treebank.of([crossed])) == {"crossing": 75.0, "gold_crossing": 0.0}


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
    assert verdict == "so far: UAS 85.00 and 79.50, LAS 77.50 and 73.00 (2 of 8 treebanks)"
    every = [row(source.name, each, uas, uas) for source in texts.MAIN for each, uas in ((ours, 80), (peer, 70))]
    verdict = verdicts.better_on_the_mean(verdicts.Find(every, []), texts.GOLD, ours, peer)
    assert verdict == "yes: UAS 80.00 and 70.00, LAS 80.00 and 70.00"
    worse = verdicts.Find([row("hu", ours, 80, 70), row("hu", peer, 79, 71)], [])
    assert verdicts.better_on_the_mean(worse, texts.GOLD, ours, peer).startswith("**no**")
    assert verdicts.better_on_the_mean(find, texts.GOLD, ours, studies.MALTPARSER) == verdicts.NOT_YET


def test_only_significant_losses_count() -> None:
    ours, peer = studies.SECOND, studies.UDPIPE_1
    fine = [outcome("hu", "uas", -0.3, 0.2), outcome("hu", "las", 2.0, 0.001)]
    assert verdicts.nowhere_worse(verdicts.Find([], fine), texts.GOLD, ours, peer).startswith("so far")
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


def test_peers_may_have_had_the_tags_of_an_earlier_tagger() -> None:
    def made(model: str, tags: str, text: str) -> dict[str, str]:
        return {"model": model, "tags": tags, "text": text}

    ours, peer = made("isogloss", texts.PREDICTED, "now"), made("udpipe", texts.PREDICTED, "before")
    assert run.are_comparable((ours, peer))
    assert not run.are_comparable((ours, made("isogloss", texts.PREDICTED, "before"), peer))
    assert not run.are_comparable((made("isogloss", texts.GOLD, "now"), made("udpipe", texts.GOLD, "before")))
    assert not run.are_comparable((peer, made("malt", texts.PREDICTED, "long ago")))


def test_rows_without_trees_are_compared_by_their_intervals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "KEPT", tmp_path)
    jobs = [studies.Job("hu", texts.GOLD, model) for model in (studies.FIRST, studies.UDPIPE_1)]
    ours, theirs = (
        {f"UAS{end}": str(uas + by) for end, by in (("", 0), ("_low", -1), ("_high", 1))} for uas in (90, 88)
    )
    found = [each | {"text": "a", "commit": made} for each, made in ((ours, "1a"), (theirs, "2b"))]
    test = paired._compare(*jobs, *found, "uas")
    assert (test["how"], test["commit"], test["difference"]) == (paired.APART, "1a", 2.0)
    assert test["low"] == pytest.approx(2 - 2**0.5)
    assert test["p"] == "0.0056"


# --- orderings


def shares(text: str, model: Model, uas: float, crossing: float) -> dict[str, str]:
    return row(text, model, uas, uas) | {"crossing": str(crossing), "gold_crossing": "4.0"}


def test_orderings_say_where_they_hold_and_where_rows_are_missing() -> None:
    tree, nocross, full = studies.TREE, orderings.NOCROSS, studies.FULL
    found = [row("got", each, uas, 0) for each, uas in ((tree, 70), (nocross, 71), (full, 72))]
    found += [row("hu", each, uas, 0) for each, uas in ((tree, 70), (nocross, 70), (full, 72))]
    lines = dict(orderings.all_of(verdicts.Find(found, []), []))
    expected = (
        "*open*: held on got (70.00 < 71.00 < 72.00); not on hu (70.00 = 70.00 < 72.00); not measured yet: grc, la"
    )
    assert lines["UAS: TREE < TREE+NOCROSS < full"] == expected
    assert lines["UAS, MIRA: minimum risk below best tree, p < 0.05"] == orderings.NOT_YET
    assert orderings.verdict({"a": (False, "x"), "b": (True, "y")}).startswith("**no**")


def test_verdicts_follow_from_significance() -> None:
    both = studies.decoded(1, "mbr"), studies.decoded(1, "map")
    names = {"first": str(both[0]), "second": str(both[1])}

    def said(**gaps: tuple[float, float]) -> str:
        tests = [outcome(text, "uas", *gap) | names for text, gap in gaps.items()]
        return orderings.tested(verdicts.Find([], tests), *both)

    assert said() == orderings.NOT_YET
    sure, chance = (0.25, 0.01), (0.4, 0.2)
    assert said(got=sure, la=sure, hu=chance, grc=chance).startswith("yes: held on got (+0.25, p = 0.01), la")
    assert "cannot be told apart on hu (+0.40, p = 0.2)" in said(got=sure, la=sure, hu=chance, grc=chance)
    assert said(got=sure, la=chance).startswith("*open*") and said(got=sure, la=chance).endswith(": hu, grc")
    assert said(got=sure, la=chance, hu=chance, grc=chance).startswith("**no**")
    assert said(got=sure, la=sure, hu=(-0.3, 0.01)).startswith("**no**")


def test_rows_of_other_texts_are_in_no_ordering() -> None:
    found = [row("got", studies.TREE, 70, 0), row("got", studies.FULL, 72, 0, "y")]
    assert orderings.ascending(verdicts.Find(found, []), "got", (studies.TREE, studies.FULL)) is None


def test_crossing_links_should_come_nearer_to_gold() -> None:
    for nocross, holds in ((4.5, True), (3.5, True), (6.5, False), (1.0, False)):
        found = [shares("got", studies.TREE, 70, 6), shares("got", orderings.NOCROSS, 70, nocross)]
        seen = orderings.crossings(verdicts.Find(found, []), "got")
        assert seen is not None and seen[0] == holds


def test_weaker_constraints_hurt_only_where_the_difference_is_significant() -> None:
    name = studies.WEAKER[0]
    both = {"first": str(studies.TREE), "second": str(studies.constrained(name, training=True))}
    for difference, p, holds in ((12.3, 0.0002, True), (0.07, 0.4, False), (-0.3, 0.01, False)):
        test = outcome("got", "uas", difference, p) | both
        seen = orderings.weaker_is_worse(verdicts.Find([], [test]), "got", [name], training=True)
        assert seen == (holds, f"{name} {-difference:+.2f}, p = {p}")
    assert orderings.weaker_is_worse(verdicts.Find([], []), "got", [name], training=True) is None


def test_a_rate_is_that_of_the_whole_command_too_and_stands_beside_that_of_peers() -> None:
    ours, malt = (
        {"model": model.kind, "options": model.options, "per_second_whole": whole, "per_second": rate}
        for model, whole, rate in ((studies.FIRST, "601", "1712"), (studies.MALTPARSER, "1053", "2511"))
    )
    cost = {"train_seconds": "1", "train_threads": "1", "train_mb": "1", "parse_mb": "1"}
    lines = dict(verdicts._speed([ours | cost, malt]))
    said = "the whole command: **no**, 601, MaltParser 1,053; once started: yes, 1,712, MaltParser 2,511"
    assert lines["Isogloss, order 1: 1,500 sentences of en-ewt a second on 2 threads"] == said


def errors(values: list[float]) -> list[dict[str, str]]:
    key = {"data": "hu", "factors": "grand", "features": "", "learnt": "exact", "longest": "30"}
    pairs = zip(search.ROUNDS, values, strict=True)
    return [key | {"rounds": str(rounds), "search_error": str(value)} for rounds, value in pairs]


def test_search_errors_should_fall() -> None:
    falling, rising = [2.0, 1.0, 0.6, 0.45, 0.4, 0.4], [0.1, 0.2, 0.4, 0.4, 0.4, 0.4]
    assert orderings.searched(errors(falling), "grand", "", "exact", 0.4).startswith(
        "yes: after 1, 2, 3, 5, 10, 20 rounds hu"
    )
    assert orderings.searched(errors(rising), "grand", "", "exact", 0.4).startswith("**no**")
    whole = [row | {"prune": "0"} for row in errors(falling)]  # over all links: runs of their own
    both = orderings.searched(errors(rising) + whole, "grand", "", "exact", 0.4)
    assert both.startswith("**no**") and "up to 30 words, all links: 2.00%" in both
    assert orderings.searched(errors(falling)[:3], "grand", "", "exact", 0.4) == orderings.NOT_YET
    assert orderings.searched(errors(falling), "grand,siblings", "", "exact", 2.4) == orderings.NOT_YET


def test_tables_mark_missing_rows_and_significant_differences() -> None:
    nothing = verdicts.Find([], [])
    for section in (sections.factors, sections.constraints, sections.decoders, sections.trainers, sections.rounds):
        assert section(nothing) == sections.NOT_YET
    assert sections.searches([]) == sections.NOT_YET
    found = [shares("got", studies.TREE, 70, 6), shares("got", orderings.NOCROSS, 71, 5)]
    names = {"first": str(orderings.NOCROSS), "second": str(studies.TREE), "difference": "1.0", "p": "0.01"}
    test = {"data": "got", "tags": texts.GOLD, "measure": "uas"} | names
    table = sections.factors(verdicts.Find(found, [test]))
    assert "| TREE | 70.00 / 70.00 | 6.0 | · | · |" in table
    assert "| + NOCROSS | 71.00 / 71.00 \\* | 5.0 |" in table and "| *gold* |  | 4.0 |  | · |" in table
    assert "| + NOCROSS against TREE | +1.00 (0.01) | · |" in table
