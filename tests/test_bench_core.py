"""Before and after a change of the core: two checkouts are run in turns, compared in pairs, and remembered."""

from __future__ import annotations

import contextlib
import doctest
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import clock, core, core_seeds, lines, rows
from benchmarks.core import AFTER, BEFORE, Checkout, Item, Judged

Sides = dict[str, Checkout]


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sides:
    monkeypatch.chdir(tmp_path)  # out/ is below the working directory
    return {side: Checkout(tmp_path / side, name) for side, name in ((BEFORE, "1234abc"), (AFTER, "5678def"))}


class Machine:
    """Stands for the clock: writes what a checkout would write, and takes less time from try to try."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, texts: dict[str, str]) -> None:
        self.texts, self.order = texts, list[str]()
        monkeypatch.setattr(clock, "measure", self.measure)

    def measure(
        self, command: list[str | Path], threads: int, log: Path, environment: dict[str, str]
    ) -> dict[str, float]:
        side = Path(environment["PYTHONPATH"]).parts[-2]
        self.order.append(side)
        output = Path(command[command.index("-o") + 1])
        output.write_text(self.texts[side])
        seconds = {BEFORE: 10.0, AFTER: 5.0}[side] - self.order.count(side)
        return {"seconds": seconds, "cpu_seconds": 2 * seconds, "peak_mb": 100.0 + len(self.order)}


def judge(before: Path, after: Path) -> Iterator[Judged]:
    values = float(before.read_text()), float(after.read_text())
    yield Judged("uas", values, (0.5, 0.6), values[1] - values[0], -0.1, 0.3, 0.01, "n:1")


ITEM = Item("fake/one", lambda place, quick: [["parse", "apply", place / "model", "-o", place / core.OUTPUT]], judge)


def test_checkouts_take_turns_and_the_least_of_the_tries_counts(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, {BEFORE: "80.0", AFTER: "80.5"})
    (row,) = core.run_item(ITEM, sides, 3, 1, quick=False)
    assert machine.order == [BEFORE, AFTER] * 3
    assert (row["seconds_before"], row["seconds_after"], row["cpu_seconds_after"]) == (7.0, 2.0, 4.0)
    assert (row["peak_mb_before"], row["peak_mb_after"]) == (101.0, 102.0)
    assert (row[BEFORE], row[AFTER], row["same_output"], row["tries"]) == ("1234abc", "5678def", "no", 3)
    assert (row["score_before"], row["score_after"], row["difference"], row["p"]) == (80.0, 80.5, 0.5, "0.0100")
    assert row["command"] == "isogloss parse apply model -o output"
    assert set(row) == set(core.COLUMNS)


def test_rows_are_written_turn_by_turn(sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stops a run keeps the tries that are done, and the item is not yet done."""
    machine = Machine(monkeypatch, {BEFORE: "80.0", AFTER: "80.5"})
    file = core.results(tmp_path)
    written: list[tuple[int, str]] = []

    def keep(made: list[dict[str, object]]) -> None:
        file.put(made)
        written.append((len(machine.order), file.read()[0]["tries"]))

    core.run_item(ITEM, sides, 2, 1, quick=False, keep=keep)
    assert written == [(2, "1"), (4, "2")] and len(file.read()) == 1
    assert core.is_done(file, ITEM, sides, 2) and not core.is_done(file, ITEM, sides, 3)


def test_an_item_is_run_once_for_two_commits(sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = core.results(tmp_path)
    Machine(monkeypatch, {BEFORE: "80.0", AFTER: "80.0"})
    assert not core.is_done(file, ITEM, sides, 1)
    file.put(core.run_item(ITEM, sides, 1, 1, quick=False))
    assert core.is_done(file, ITEM, sides, 1)
    assert not core.is_done(file, ITEM, sides, 3)  # with fewer tries than are asked for
    assert not core.is_done(file, ITEM, {**sides, AFTER: Checkout(tmp_path, "9999999")}, 1)
    changed = {**sides, AFTER: Checkout(tmp_path / AFTER, "5678def+")}
    file.put(core.run_item(ITEM, changed, 1, 1, quick=False))
    assert not core.is_done(file, ITEM, changed, 1)


def test_the_table_says_what_is_the_same_what_is_significant_and_the_ratios(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = core.results(tmp_path)
    Machine(monkeypatch, {BEFORE: "80.0", AFTER: "80.5"})
    file.put(core.run_item(ITEM, sides, 1, 1, quick=False))
    head, _, line, _, below = core.table(file.read()).splitlines()
    wanted = "fake/one | UAS | 80.00 ± 0.5 | 80.50 ± 0.6 | +0.50 [-0.10, +0.30] | **0.0100** | 18.0 → 8.0 | 0.44"
    assert line.startswith(f"| {wanted} | 9.0 → 4.0 | 0.44 | 101 → 102 | 1.01 |")
    assert line.count("|") == head.count("|")
    assert below.startswith("Commits of the rows: before 1234abc, after 5678def.")
    Machine(monkeypatch, {BEFORE: "80.0", AFTER: "80.0"})
    file.put(core.run_item(ITEM, sides, 1, 1, quick=False))
    assert "| the same output |" in core.table(file.read())


def test_the_page_is_made_and_filled(sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(core, "HERE", tmp_path)
    monkeypatch.setattr(core, "results", lambda folder=tmp_path, made=core.results: made(folder))
    monkeypatch.setattr(core, "line_results", lambda folder=tmp_path, made=core.line_results: made(folder))
    core.line_results().put([{"package": "data", "lines_before": 1500, "lines_after": 750, BEFORE: "1", AFTER: "2"}])
    core.write_page()
    core.write_page()  # a second time changes nothing
    text = (tmp_path / core.PAGE).read_text(encoding="utf-8")
    assert "No rows yet." in text and "| data | 1,500 | 750 | 0.50 |" in text
    assert text.count("| **all** |") == 1 and "Commits of the rows: before 1, after 2." in text


def test_lines_are_counted_without_docstrings_comments_and_blanks(tmp_path: Path) -> None:
    source = '''"""A module.

It has a long docstring.
"""

import os  # needed

# alone

LIMIT = 3
"""What it is for."""


class Thing:
    """A thing."""

    text = """two lines
    of text"""

    def act(self) -> None:
        """Act."""
        print(
            LIMIT,
        )
'''
    assert lines.code_lines(source) == 9
    for name in ("tasks/align/a.py", "tasks/align/features/b.py", "tasks/tag/c.py", "data/d.py", "e.py"):
        path = tmp_path / "src/isogloss" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a = 1\n\nb = 2\n")
    assert lines.lines_by_package(tmp_path) == {"(no package)": 2, "data": 2, "tasks/align": 4, "tasks/tag": 2}


def test_packages_of_either_checkout_are_counted(sides: Sides, tmp_path: Path) -> None:
    for side, name in ((BEFORE, "old"), (AFTER, "new")):
        for path in (tmp_path / side / "src/isogloss" / name / "a.py", tmp_path / side / "src/isogloss/data/b.py"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("a = 1\n")
    file = core.line_results(tmp_path)
    core.count_lines(sides, file)
    found = {row["package"]: (row["lines_before"], row["lines_after"]) for row in file.read()}
    assert found == {"data": ("1", "1"), "new": ("0", "1"), "old": ("1", "0")}
    assert "| new | 0 | 1 | new |" in core.line_table(file.read())


def test_a_commit_is_checked_out_for_a_while_and_a_folder_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        made = subprocess.run(["git", *who, *arguments], check=True, capture_output=True, text=True)
        return made.stdout.strip()

    git("init", "-q")
    module = tmp_path / "src/isogloss/__init__.py"
    module.parent.mkdir(parents=True)
    module.write_text("old = 1\n")
    git("add", "-A")
    git("commit", "-qm", "old")
    old = git("rev-parse", "--short", "HEAD")
    module.write_text("new = 1\n")
    git("commit", "-qam", "new")
    with core.checkout(old) as found:
        assert found.commit == old
        assert (found.folder / "src/isogloss/__init__.py").read_text() == "old = 1\n"
    assert not found.folder.exists()
    assert git("worktree", "list").count("\n") == 0
    with core.checkout(str(tmp_path)) as found:
        assert (found.folder, found.commit) == (tmp_path, git("rev-parse", "--short", "HEAD"))
        found.check()
    with pytest.raises(SystemExit, match="neither a folder with src/isogloss nor a commit"), core.checkout("nowhere"):
        pass


def test_sources_that_python_does_not_find_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is to be run, but Python finds"):
        Checkout(tmp_path, "1234abc").check()


def test_items_have_names_of_their_own() -> None:
    names = [item.name for item in core.items()]
    assert len(set(names)) == len(names) == 11


def test_examples() -> None:
    assert doctest.testmod(lines).failed == 0
    assert rows.plain(1.0) == "1.000"


def test_items_are_learnt_with_another_seed_and_rows_of_seeds_are_remembered(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(monkeypatch, {BEFORE: "80.0", AFTER: "80.5"})
    monkeypatch.setattr(core_seeds, "results", lambda: rows.Rows(tmp_path / "s.csv", core_seeds.COLUMNS, KEY_OF_SEEDS))
    monkeypatch.setattr(core, "checkout", lambda wanted: contextlib.nullcontext(sides[BEFORE]))
    monkeypatch.setattr(core_seeds, "Checkout", lambda folder, commit: sides[AFTER])
    monkeypatch.setattr(Checkout, "check", lambda self: None)
    core_seeds.run([ITEM], "1234abc", range(2), 1)
    found = core_seeds.results().read()
    assert [(row["item"], row["seed"], row["score_after"]) for row in found] == [
        ("fake/one", "0", "80.500"), ("fake/one", "1", "80.500"),
    ]  # fmt: skip
    assert found[1]["command"].endswith("--seed 1") and machine.order == [BEFORE, AFTER] * 2
    core_seeds.run([ITEM], "1234abc", range(2), 1)
    assert len(machine.order) == 4  # nothing was missing


KEY_OF_SEEDS = ("item", "measure", "seed")


def test_the_table_of_seeds_has_students_interval() -> None:
    common = {"item": "a/b", "measure": "uas", BEFORE: "1", AFTER: "2"}
    scores = [("80.0", "81.0"), ("80.2", "81.4"), ("79.8", "80.6")]
    found = [common | {"score_before": b, "score_after": a} for b, a in scores]
    # differences 1.0, 1.2, 0.8: mean 1, standard error 0.2 / √3, t(2) at 97.5% is 4.3027
    assert "| a/b | UAS | 3 | 80.00 ± 0.20 | 81.00 ± 0.40 | +1.00 [+0.50, +1.50] | **0.0131** |" in core_seeds.table(
        found
    )
    assert "| 80.00 ± ? | 81.00 ± ? | +1.00 |  |" in core_seeds.table(found[:1])
