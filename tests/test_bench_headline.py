"""The headline rows: which items there are, and that a run goes on where it was interrupted."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import headline, rows
from benchmarks.headline import Failure, Item

COMMIT = "1234abc"


class Machine:
    """Makes rows of fake items, each in ten seconds, and tells its own time."""

    def __init__(self, file: rows.Rows, commit: str = COMMIT) -> None:
        self.file, self.commit = file, commit
        self.now, self.done = 0.0, list[str]()
        self.broken, self.interrupt_at = set[str](), ""
        self.said: list[str] = []

    def work(self, command: Sequence[str]) -> None:
        (name,) = command
        self.now += 10.0
        if name == self.interrupt_at:
            raise KeyboardInterrupt
        if name in self.broken:
            raise Failure("it fell over")
        self.done.append(name)
        for number in (1, 2):
            self.file.put([{"data": name, "number": number, "commit": self.commit, "score": 1.5}])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> rows.Rows:
    monkeypatch.chdir(tmp_path)  # locks go to out/ of the working directory
    return rows.Rows(tmp_path / "rows.csv", ("data", "number", "commit", "score"), ("data", "number"))


@pytest.fixture
def ledger(tmp_path: Path, file: rows.Rows) -> rows.Rows:
    return rows.Rows(tmp_path / "headline.csv", headline.COLUMNS, ("item",))


def make_items(file: rows.Rows, names: str = "abc") -> list[Item]:
    return [Item(f"fake/{n}", (n,), file, ({"data": n, "number": 1}, {"data": n, "number": 2})) for n in names]


def go(machine: Machine, ledger: rows.Rows, **more: object) -> headline.Report:
    items = make_items(machine.file)
    return headline.run(
        items, machine.commit, ledger, work=machine.work, clock=lambda: machine.now, say=machine.said.append, **more
    )


def test_what_a_commit_has_made_is_not_made_again(file: rows.Rows, ledger: rows.Rows) -> None:
    first = Machine(file)
    assert go(first, ledger).made == ["fake/a", "fake/b", "fake/c"]
    again = Machine(file)
    report = go(again, ledger)
    assert (report.made, report.kept, again.done, report.status) == ([], ["fake/a", "fake/b", "fake/c"], [], 0)
    assert go(Machine(file, "5678def"), ledger).made == ["fake/a", "fake/b", "fake/c"]
    assert {row["commit"] for row in file.read()} == {"5678def"}


def test_an_interrupted_run_goes_on(file: rows.Rows, ledger: rows.Rows) -> None:
    machine = Machine(file)
    machine.interrupt_at = "b"
    report = go(machine, ledger)
    assert (report.made, report.left, report.status) == (["fake/a"], ["fake/b", "fake/c"], headline.INTERRUPTED)
    later = Machine(file)
    assert go(later, ledger).made == ["fake/b", "fake/c"]
    assert later.done == ["b", "c"]


def test_an_item_with_some_of_its_rows_is_not_done(file: rows.Rows, ledger: rows.Rows) -> None:
    file.put([{"data": "a", "number": 1, "commit": COMMIT}])
    item = make_items(file)[0]
    assert not item.is_done(COMMIT)
    file.put([{"data": "a", "number": 2, "commit": "0000000"}])
    assert not item.is_done(COMMIT)
    file.put([{"data": "a", "number": 2, "commit": COMMIT}])
    assert item.is_done(COMMIT)


def test_nothing_counts_as_made_by_sources_with_changes(file: rows.Rows, ledger: rows.Rows) -> None:
    for _ in range(2):
        report = go(Machine(file, COMMIT + "+"), ledger)
        assert (len(report.made), report.kept) == (3, [])
    assert {row["commit"] for row in file.read()} == {COMMIT + "+"}


def test_a_failure_is_told_and_the_others_are_run(file: rows.Rows, ledger: rows.Rows) -> None:
    machine = Machine(file)
    machine.broken = {"b"}
    report = go(machine, ledger)
    assert (report.made, report.failed, report.status) == (["fake/a", "fake/c"], {"fake/b": "it fell over"}, 1)
    assert [row["item"] for row in ledger.read()] == ["fake/a", "fake/c"]


def test_a_table_that_cannot_be_written_keeps_none_from_being_written() -> None:
    asked: list[str] = []

    def work(command: Sequence[str]) -> None:
        asked.append(command[0])
        if command[0].endswith("joint"):
            raise Failure("no place for it")

    assert headline.write_tables(work) == {"tables of benchmarks.quality.joint": "no place for it"}
    assert asked == [command[0] for command in headline.TABLES]


def test_a_command_that_makes_rows_of_another_commit_has_failed(file: rows.Rows, ledger: rows.Rows) -> None:
    machine = Machine(file, "5678def")  # the sources changed under way
    items = make_items(file, "a")
    report = headline.run(items, COMMIT, ledger, work=machine.work, clock=lambda: machine.now, say=machine.said.append)
    assert report.made == [] and "did the sources change" in report.failed["fake/a"]


def test_a_run_ends_before_an_item_that_would_not_fit(file: rows.Rows, ledger: rows.Rows) -> None:
    go(Machine(file), ledger)  # every item is known to take ten seconds
    machine = Machine(file, "5678def")
    report = go(machine, ledger, budget=25.0)
    assert (report.made, report.left, report.status) == (["fake/a", "fake/b"], ["fake/c"], 0)
    assert machine.now == 20.0
    assert go(Machine(file, "5678def"), ledger, budget=25.0).made == ["fake/c"]


def test_time_left_is_told_from_the_last_run(file: rows.Rows, ledger: rows.Rows) -> None:
    machine = Machine(file)
    go(machine, ledger)
    assert machine.said[0] == "[1/3] fake/a: never measured; at least 0 s left"
    machine = Machine(file, "5678def")
    go(machine, ledger)
    assert machine.said == [
        "[1/3] fake/a: about 10 s; 30 s left",
        "[2/3] fake/b: about 10 s; 20 s left",
        "[3/3] fake/c: about 10 s; 10 s left",
    ]
    (row,) = (row for row in ledger.read() if row["item"] == "fake/b")
    assert (row["commit"], row["rows"], float(row["seconds"])) == ("5678def", "2", 10.0)


def test_the_listing_says_what_is_measured_estimated_and_done(file: rows.Rows, ledger: rows.Rows) -> None:
    first, second, third = make_items(file)
    go_once = Machine(file)
    headline.run([first], COMMIT, ledger, work=go_once.work, clock=lambda: go_once.now, say=go_once.said.append)
    file.put([{"data": "b", "number": 1, "commit": "old", "score": 4.0}])
    guessed = Item(second.name, second.command, file, second.keys, headline.total_of("score"))
    lines = headline.listing([first, guessed, third], COMMIT, ledger.read()).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["10", "s", "measured", "done", "fake/a"],
        ["4", "s", "estimated", "fake/b"],
        ["?", "fake/c"],
    ]
    assert lines[3] == f"3 items: 14 s, and 1 never measured; commit {COMMIT}"


def test_rows_of_an_earlier_version_are_estimated_from_but_not_done(tmp_path: Path) -> None:
    file = rows.Rows(tmp_path / "versions.csv", ("date", "data", "version", "commit", "seconds"), ("data", "version"))
    for version, seconds in (("0.1", 50.0), ("0.2", 7.0)):
        file.path.parent.mkdir(exist_ok=True)
        file.put([{"date": "2026-11-16", "data": "a", "version": version, "commit": COMMIT, "seconds": seconds}])
    item = Item("a", (), file, ({"data": "a", "version": "0.3"},), headline.total_of("seconds"))
    assert item.seconds([]) == (7.0, False)
    assert not item.is_done(COMMIT)


def test_seconds_beside_peers_are_those_of_their_machine(file: rows.Rows) -> None:
    plain, clocked = Item("align/a", ("a",), file, ()), Item("speed/a", ("b",), file, (), machine="a fast one")
    assert headline.at_home([plain, clocked], "a fast one") == ([plain, clocked], [])
    assert headline.at_home([plain, clocked], "another") == ([plain], [clocked])


def test_items_are_chosen_by_name_and_by_group(file: rows.Rows) -> None:
    every = [*make_items(file), Item("fakes", ("d",), file, ())]
    assert [item.name for item in headline.choose(every, "fake/b")] == ["fake/b"]
    assert [item.name for item in headline.choose(every, "fake")] == ["fake/a", "fake/b", "fake/c"]
    assert headline.choose(every, "") == every
    with pytest.raises(SystemExit, match="groups are fake, fakes"):
        headline.choose(every, "fak")


def test_a_module_can_tell_rows_of_this_commit(file: rows.Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    file.put([{"data": "a", "number": 1, "commit": COMMIT}])
    for now, done in ((COMMIT, True), ("5678def", False), (COMMIT + "+", False), ("", False)):
        monkeypatch.setattr(rows, "commit", lambda now=now: now)
        assert file.is_done(outdated=True, data="a", number=1) == done
        assert file.is_done(outdated=False, data="a", number=1)
        assert not file.is_done(outdated=False, data="b")


def test_the_commit_is_the_last_that_changed_sources(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *who, *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    (tmp_path / "src").mkdir()
    (tmp_path / "benchmarks/quality").mkdir(parents=True)
    (tmp_path / "src/a.py").write_text("a = 1\n")
    git("add", "-A")
    git("commit", "-qm", "sources")
    first = git("rev-parse", "--short", "HEAD")
    assert rows.commit(tmp_path) == first
    (tmp_path / "benchmarks/quality/a.csv").write_text("score\n1\n")
    git("add", "-A")
    git("commit", "-qm", "rows")
    assert rows.commit(tmp_path) == first
    (tmp_path / "benchmarks/quality/a.py").write_text("a = 1\n")
    assert rows.commit(tmp_path) == first + "+"
    git("add", "-A")
    git("commit", "-qm", "how it is measured")
    assert rows.commit(tmp_path) == git("rev-parse", "--short", "HEAD") != first


@pytest.fixture(scope="module")
def every() -> list[Item]:
    """The real items, whose alignment sets are those of the corpora."""
    if not (Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "alignment/sets.tsv").exists():
        pytest.skip("set ISOGLOSS_DATA to the folder of corpora")
    return headline.items()


@pytest.mark.data
def test_every_item_runs_a_command_that_there_is_and_its_rows_have_commits(every: list[Item]) -> None:
    assert len({item.name for item in every}) == len(every) > 50
    root = Path(__file__).parents[1]
    for item in every:
        module = root.joinpath(*item.command[0].split("."))
        source = module.with_suffix(".py") if module.with_suffix(".py").exists() else module / "__main__.py"
        text = source.read_text(encoding="utf-8")
        for option in re.findall(r"--[a-z-]+", " ".join(part for part in item.command if part.startswith("--"))):
            assert f'"{option}"' in text, f"{item.name}: {source.name} has no {option}"
        assert item.keys and "commit" in item.file.columns, item.name
    assert {item.name.split("/")[0] for item in every} == set(headline.GROUPS)


@pytest.mark.data
def test_the_items_are_what_readme_and_the_first_tables_quote(every: list[Item]) -> None:
    """Every row of ours behind a first table is a row of some item, but for those that no row is there of yet."""
    from benchmarks.quality import graph_tagging, joint, projected_tags, readme, wikily
    from benchmarks.quality.parsing import page as parsing
    from benchmarks.quality.supervised import page as supervised

    covered = {
        (item.file.path.name, tuple(row[name] for name in item.file.key))
        for item in every
        for some in item.rows(loose=True)
        for row in some
    }

    def check(file: rows.Rows, wanted: list[rows.Row]) -> None:
        assert wanted
        missing = [key for row in wanted if (file.path.name, key := tuple(row[n] for n in file.key)) not in covered]
        assert not missing, f"{file.path.name}: {missing[:3]}"

    names = {item.name for item in every}
    assert {f"align/{name}" for some in readme.ERRORS.values() for name in some} <= names
    assert {f"speed/{name}" for name in readme.CLOCKED} <= names
    find = wikily.Found()
    find.used = used = _Rows()
    wikily.coverage_table(find)
    check(wikily.results(), used.rows)
    shown = [row for row in graph_tagging.results().read() if (row["method"], row["decoder"]) in graph_tagging.SHOWN]
    check(graph_tagging.results(), [row for row in shown if int(row["labels"]) < 3])
    lines = projected_tags.table("test")
    quoted = [
        row for row in projected_tags.results().read() if row["part"] == "test" and f"| {row['system']} |" in lines
    ]
    check(projected_tags.results(), quoted)
    both = joint.COMPARED["pipeline"][:2]
    check(joint.results(), [r for r in joint.test_rows().values() if r["model"] in both and r["measure"] == "uas"])
    for page in (parsing, supervised):
        file = page.run.results()
        keys = {tuple(str(value) for value in page.run.key_of(job).values()) for job in page.quoted()}
        ours = [
            r for r in file.read() if tuple(r[n] for n in page.run.KEY) in keys and r["model"] not in ("udpipe", "malt")
        ]
        check(file, ours)


class _Rows(rows.Used):
    """Rows that a table takes."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[rows.Row] = []

    def add(self, column: str, line: str, row: rows.Row) -> None:
        self.rows.append(row)


def test_examples() -> None:
    assert doctest.testmod(headline).failed == 0
