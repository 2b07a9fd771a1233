"""Make the headline rows again at one commit: what README and the first table of every benchmark page quote, ours only.

python -m benchmarks.headline --list               the items, and what each took the last time
python -m benchmarks.headline                      every item that this commit has not made yet, then the tables
python -m benchmarks.headline --only align/ja-en.kftt    one item, or all of a group: --only parsing
python -m benchmarks.headline --budget 60          end before the item that would not fit into sixty minutes
python -m benchmarks.headline --tables             run nothing: write the tables of all pages from the rows

An item is a command of this folder, run in a process of its own, which writes its rows as they come. What was
interrupted (Ctrl-C) goes on where it was: rows that this commit has made are not made again. The commit is the last one
that changed sources, so that rows may be committed on the way. Rows of peers stay as they are.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from benchmarks import rows

HERE = Path(__file__).parent
COLUMNS = ("date", "machine", "version", "commit", "item", "rows", "seconds", "command")
INTERRUPTED = 130
Key = dict[str, object]


def results() -> rows.Rows:
    """What items took the last time."""
    return rows.Rows(HERE / "headline.csv", COLUMNS, ("item",))


def total_of(*columns: str) -> Callable[[list[rows.Row]], float]:
    """An estimate: the sum of some columns of all rows."""
    return lambda found: sum(float(row[name] or 0) for row in found for name in columns)


@dataclass(frozen=True)
class Item:
    """Some rows, and the command that makes them.

    `keys` says which rows there are: each is some columns with their values, and stands for all rows that have them.
    `estimate` says from these rows how many seconds the command will take, for an item that was never run as one.
    `machine` is that of the peers beside whose seconds its own are quoted.
    """

    name: str
    command: tuple[str, ...]
    file: rows.Rows
    keys: tuple[Key, ...]
    estimate: Callable[[list[rows.Row]], float] | None = None
    machine: str = ""

    def rows(self, *, loose: bool = False) -> list[list[rows.Row]]:
        """The rows of each key; with `loose`, of any version."""
        every = self.file.read()
        asked = ({n: v for n, v in key.items() if not (loose and n == "version")} for key in self.keys)
        wanted = [{name: rows.plain(value) for name, value in key.items()} for key in asked]
        return [[row for row in every if all(row.get(n, "") == v for n, v in key.items())] for key in wanted]

    def is_done(self, commit: str) -> bool:
        """Whether this commit has made all rows."""
        return all(found and all(rows.is_of(row, commit) for row in found) for found in self.rows())

    def seconds(self, ledger: list[rows.Row]) -> tuple[float | None, bool]:
        """How long it takes, as far as is known, and whether that was measured."""
        for row in ledger:
            if row["item"] == self.name:
                return float(row["seconds"]), True
        found = [row for some in self.rows(loose=True) for row in some]
        if "version" in self.file.key:
            found = rows.newest(found, [name for name in self.file.key if name != "version"])
        return (self.estimate(found) if found and self.estimate else None), False


# --- which items there are: those of README first


def items() -> list[Item]:
    return [*_align(), *_parsing(), *_supervised(), *_taggers(), *_joint(), *_others()]


def _align() -> Iterator[Item]:
    from benchmarks import corpora, systems
    from benchmarks.quality import align
    from benchmarks.quality.readme import CLOCKED, THREADS
    from benchmarks.speed import __main__ as speed
    from isogloss import __version__

    ours = {"system": systems.ISOGLOSS, "version": __version__, "options": THREADS}
    command = ("benchmarks.quality.align", "--systems", "isogloss", "--threads", THREADS.removeprefix("threads="))
    for name, data in corpora.all_sets().items():
        if data.has_gold("test"):
            made = (*command, "--outdated", "--sets", name)
            yield Item(f"align/{name}", made, align.results("test"), ({"data": name, **ours},), total_of("seconds"))
    for name in dict.fromkeys((*CLOCKED, speed.SETS[-1])):
        made = ("benchmarks.speed", "--systems", "isogloss", "--threads", "2", "--no-start-up", "--sets", name)
        beside = speed.results().find(data=name, system=systems.EFLOMAL, options=THREADS)
        yield Item(
            f"speed/{name}", made, speed.results(), ({"data": name, **ours},), lambda f: 3 * float(f[-1]["seconds"]),
            beside[-1]["machine"] if beside else "",
        )  # fmt: skip


def _parsing() -> Iterator[Item]:
    from benchmarks.quality.parsing import page, run, search, speed, texts
    from benchmarks.quality.parsing.models import ISOGLOSS
    from benchmarks.quality.parsing.studies import OURS

    quoted = [job for job in page.quoted() if job.model.kind == ISOGLOSS]
    cost = total_of("train_cpu_seconds", "parse_cpu_seconds")
    command = ("benchmarks.quality.parsing", "--outdated", "--quoted", "--only")
    for tags, plain in ((texts.GOLD, True), (texts.PREDICTED, True), (texts.GOLD, False)):
        for text in texts.TEXTS:
            own = [job for job in quoted if (job.text, job.tags, job.model in OURS) == (text, tags, plain)]
            if own:
                kinds = ",".join(dict.fromkeys(str(job.model) for job in own)) if plain else ISOGLOSS
                group = tags if plain else "studies"
                made = (*command, text, "--tags", tags, "--models", kinds)
                keys = tuple(run.key_of(job) for job in own)
                tagging = _tagging(text) if tags == texts.PREDICTED else 0.0
                yield Item(f"parsing/{group}/{text}", made, run.results(), keys, lambda f, t=tagging: t + cost(f))
    clocked: tuple[Key, ...] = tuple({"data": speed.TEXT, "model": m.kind, "options": m.options} for m in OURS)
    made = ("benchmarks.quality.parsing", "--speed", "--outdated", "--models", ISOGLOSS)
    beside = [row for row in speed.results().read() if row["model"] != ISOGLOSS]
    yield Item(
        "parsing/speed", made, speed.results(), clocked, lambda f: 3 * total_of("seconds", "seconds_all")(f),
        beside[-1]["machine"] if beside else "",
    )  # fmt: skip
    names = ("data", "factors", "features", "learnt", "longest")
    for key in dict.fromkeys(tuple(row[name] for name in names) for row in search.results().read()):
        text, factors, features, learnt, longest = key
        asked = {"text": text, "factors": factors, "features": features, "learnt": learnt, "longest": longest}
        chosen = [part for name, value in asked.items() for part in (f"--{name}", value)]
        shown = "-".join(part for part in (text, factors.replace(",", "+"), features, learnt) if part)
        made = ("benchmarks.quality.parsing.search", "--outdated", *chosen)
        # Learning takes about a minute, which rows do not have.
        yield Item(
            f"parsing/search/{shown}", made, search.results(), (dict(zip(names, key, strict=True)),),
            lambda f: 60 + total_of("seconds")(f) + float(f[0]["seconds_exact"]),
        )  # fmt: skip


def _tagging(text: str) -> float:
    """About how long predicted tags take: a tagger of all training sentences, and five of four fifths of them."""
    from benchmarks.quality.parsing import run
    from benchmarks.quality.parsing.models import TAGGER

    found = run.results().find(data=text, model=TAGGER)
    return 5 * total_of("train_cpu_seconds")(found[-1:])


def _supervised() -> Iterator[Item]:
    from benchmarks.quality.supervised import page, run, texts

    quoted = page.quoted()
    for text in texts.TEXTS:
        keys = tuple(run.key_of(job) for job in quoted if job.text == text)
        made = ("benchmarks.quality.supervised", "--outdated", "--quoted", "--only", text)
        cost = total_of("cpu_seconds", "decode_seconds")
        yield Item(f"supervised/{text}", made, run.results(), keys, cost)


def _taggers() -> Iterator[Item]:
    from benchmarks.quality import adapting_tags, agreeing_tags, graph_tagging, projected_tags, wikily

    wiki = "benchmarks.quality.wikily"
    for name in wikily.LANGUAGES:
        for part in ("models", "coverage"):
            shares = (1.0,) if part == "models" else wikily.SHARES
            keys = tuple({"language": name, "part": part, "model": m, "share": s} for m in wikily.BOTH for s in shares)
            made = (wiki, "--outdated", "--only", name, "--part", part, "--models", ";".join(wikily.BOTH))
            yield Item(f"dictionary/{name}/{part}", made, wikily.results(), keys, total_of("train_seconds"))
    for name in agreeing_tags.TREEBANKS:
        made = ("benchmarks.quality.agreeing_tags", "--outdated", "--only", name)
        yield Item(f"agreeing/{name}", made, agreeing_tags.results(), ({"data": name},))
    shown = [name for name in projected_tags.SYSTEMS if _has_all(projected_tags.results(), name)]
    for name in projected_tags.LANGUAGES:
        made = ("benchmarks.quality.projected_tags", "--outdated", "--only", name, "--systems", ";".join(shown))
        keys = tuple({"language": name, "part": "test", "system": system} for system in shown)
        yield Item(f"projected/{name}", made, projected_tags.results(), keys, total_of("train_seconds"))
    for name in graph_tagging.TEXTS:
        made = ("benchmarks.quality.graph_tagging", "--outdated", "--only", name)
        keys = tuple(
            {"text": name, "labels": number, "method": method, "decoder": decoder}
            for number in range(3)
            for method, decoder in graph_tagging.SHOWN
        )
        yield Item(f"neighbours/{name}", made, graph_tagging.results(), keys, _largest("labels"))
    made = ("benchmarks.quality.adapting_tags", "--outdated")
    keys = tuple({"part": "test", "size": size} for size in adapting_tags.SIZES)
    yield Item("adapting", made, adapting_tags.results(), keys, _with_places)


def _with_places(found: list[rows.Row]) -> float:
    """An estimate: places of each model are learnt once for all sizes."""
    places = {row["model"]: float(row["places_seconds"]) for row in found}
    return total_of("train_seconds")(found) + sum(places.values())


def _has_all(file: rows.Rows, system: str) -> bool:
    """Whether the table of projected tags has a line for a system: a row for each language."""
    from benchmarks.quality.projected_tags import LANGUAGES

    return all(file.has(language=name, part="test", system=system) for name in LANGUAGES)


def _largest(group: str) -> Callable[[list[rows.Row]], float]:
    """An estimate from rows whose seconds add up within a group."""

    def estimate(found: list[rows.Row]) -> float:
        most: dict[str, float] = {}
        for row in found:
            most[row[group]] = max(most.get(row[group], 0.0), float(row["seconds"]))
        return sum(most.values())

    return estimate


def _joint() -> Iterator[Item]:
    from benchmarks.quality import joint

    models = joint.COMPARED["pipeline"][:2]
    for name in joint.TEXTS:
        made = ("benchmarks.quality.joint", "--outdated", "--only", name, "--models", ";".join(models))
        keys = tuple({"text": name, "part": "test", "model": model, "measure": "uas"} for model in models)
        cost = total_of("train_cpu_seconds", "predict_cpu_seconds")
        yield Item(f"joint/{name}", made, joint.results(), keys, cost)


def _others() -> Iterator[Item]:
    from benchmarks.quality import letters, variants
    from benchmarks.speed.structures import __main__ as structures
    from isogloss import __version__

    name = variants.SETS.split(",")[0]  # of the first table
    made = ("benchmarks.quality.variants", "--outdated", "--sets", name)
    keys = tuple({"data": name} | {n: getattr(v, n) for n in variants.KEY[1:]} for v in variants.variants())
    yield Item(f"variants/{name}", made, variants.results(), keys)
    for task in structures.TASKS:
        keys = tuple(
            {"task": task.name, "size": n, "labels": labels, "system": f"isogloss {__version__}", "threads": 2}
            for labels in task.labels
            for n in task.sizes
        )
        made = ("benchmarks.speed.structures", "--tasks", task.name)
        every = structures.table_file().find(task=task.name) if task.peer else []
        beside = [row for row in every if not row["system"].startswith("isogloss ")]
        machine = beside[-1]["machine"] if beside else ""
        title = f"structures/{task.name.replace(' ', '-')}"
        yield Item(title, made, structures.table_file(), keys, machine=machine)
    for number in range(3):
        made = ("benchmarks.quality.letters", "--outdated", "--only", str(number))
        same = {"labels": number, "options": letters.shown_options(letters.OPTIONS)}
        keys = tuple({**same, "method": method} for method in letters.METHODS)
        yield Item(f"letters/{number}", made, letters.results(), keys, _largest("labels"))


TABLES = (
    ("benchmarks.quality.align", "--table"),
    ("benchmarks.quality.parsing", "--table"),
    ("benchmarks.quality.supervised", "--table"),
    ("benchmarks.quality.wikily", "--table"),
    ("benchmarks.quality.agreeing_tags", "--table"),
    ("benchmarks.quality.projected_tags", "--table"),
    ("benchmarks.quality.graph_tagging", "--table"),
    ("benchmarks.quality.adapting_tags", "--table"),
    ("benchmarks.quality.joint", "--table"),
    ("benchmarks.quality.variants", "--table"),
    ("benchmarks.speed.structures", "--page"),
    ("benchmarks.quality.letters", "--table"),
)
"""The commands that write the tables of README and of the pages."""


GROUPS = {
    "align": "README, and both tables of quality on this page",
    "speed": "README",
    "parsing": "[parsers](benchmarks-parsing.md): what was asked for, and scores with gold tags; [guide](parse.md)",
    "supervised": "[aligners from gold](benchmarks-supervised.md): what was asked for; [guide](supervised.md)",
    "dictionary": "[taggers from a dictionary](tag-from-dictionary.md)",
    "agreeing": "[taggers of several columns](tag.md)",
    "projected": "[taggers from translations](tag-from-translations.md)",
    "neighbours": "[taggers from few sentences](tag-with-neighbours.md)",
    "adapting": "[taggers for another domain](adapt-tagger.md)",
    "joint": "[morphology and trees together](parse-joint.md)",
    "variants": "[ways to train the aligner](benchmarks-variants.md): the first text",
    "structures": "[speed of structures](structures/speed.md)",
    "letters": "[letters](learners/graphs.md)",
}
"""What the items of a group are quoted by."""


def overview() -> str:
    """A line for each group, with its seconds, and what they come to."""
    ledger, used, total = results().read(), rows.Used(), 0.0
    measured_last = {row["item"]: row for row in ledger}
    lines = ["| group | quoted by | items | of them measured | seconds |", "|---|---|---|---|---|"]
    every = items()
    for group, pages in GROUPS.items():
        own = [item for item in every if item.name.split("/")[0] == group]
        seconds = sum(item.seconds(ledger)[0] or 0.0 for item in own)
        known = [measured_last[item.name] for item in own if item.name in measured_last]
        for row in known:
            used.add(group, row["item"].removeprefix(f"{group}/"), row)
        total += seconds
        lines.append(f"| `{group}` | {pages} | {len(own)} | {len(known)} | {seconds:,.0f} |")
    lines.append(f"| **all** | | {len(every)} | {len(ledger)} | {total:,.0f} ({shown(total)}) |")
    return used.below("\n".join(lines))


# --- running them


class Failure(Exception):
    """A command that failed, or that did not make the rows it is for."""


def command_line(command: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", *command]


def start(command: Sequence[str]) -> None:
    """Run a command of this folder; what it prints for people at work (stderr) is shown, tables are not."""
    with open(os.devnull, "w") as nowhere:
        done = subprocess.run(command_line(command), stdout=nowhere)
    if done.returncode:
        raise Failure(f"python -m {' '.join(command)} ended with status {done.returncode}")


@dataclass
class Report:
    """What a run came to."""

    made: list[str]
    kept: list[str]
    failed: dict[str, str]
    left: list[str]
    interrupted: bool = False

    @property
    def status(self) -> int:
        return INTERRUPTED if self.interrupted else int(bool(self.failed))


def run(
    chosen: Sequence[Item],
    commit: str,
    ledger: rows.Rows,
    *,
    budget: float | None = None,
    work: Callable[[Sequence[str]], None] = start,
    clock: Callable[[], float] = time.perf_counter,
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
) -> Report:
    """Run one item after the other that this commit has not made yet.

    Parameters
    ----------
    chosen : sequence of Item
    commit : str
        Of now; with + at its end nothing counts as made.
    ledger : Rows
        Where seconds of items are written.
    budget : float, optional
        Seconds in all: ends before the first item that is not known to fit.
    work, clock, say
        Run a command, tell the time in seconds, and tell people.
    """
    report = Report([], [], {}, [])
    missing = []
    for item in chosen:
        (report.kept.append(item.name) if item.is_done(commit) else missing.append(item))
    known = {item.name: item.seconds(ledger.read())[0] for item in missing}
    begin = clock()
    for number, item in enumerate(missing):
        expected = [known[each.name] for each in missing[number:]]
        spent, takes = clock() - begin, known[item.name]
        if budget is not None and spent + (takes or 0.0) > budget:
            report.left = [each.name for each in missing[number:]]
            say(f"{item.name} would not fit into {shown(budget)}: ended after {shown(spent)}")
            break
        least = "" if None not in expected else "at least "
        say(
            f"[{number + 1}/{len(missing)}] {item.name}: {'about ' + shown(takes) if takes else 'never measured'}; "
            f"{least}{shown(sum(each or 0.0 for each in expected))} left"
        )
        started = clock()
        try:
            work(item.command)
            if commit and not commit.endswith("+") and not item.is_done(commit):
                raise Failure("ended without making all of its rows at this commit; did the sources change?")
        except KeyboardInterrupt:
            report.interrupted, report.left = True, [each.name for each in missing[number:]]
            say(f"interrupted in {item.name}; the same command goes on here")
            break
        except Failure as problem:
            report.failed[item.name] = str(problem)
            say(f"{item.name}: {problem}")
            continue
        _note(ledger, item, commit, clock() - started)
        report.made.append(item.name)
    return report


def _note(ledger: rows.Rows, item: Item, commit: str, seconds: float) -> None:
    from isogloss import __version__

    row: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": commit, "item": item.name,
        "rows": sum(len(found) for found in item.rows()), "seconds": seconds,
        "command": f"python -m {' '.join(item.command)}",
    }  # fmt: skip
    ledger.put([row])


def shown(seconds: float) -> str:
    """Seconds as people say them.

    Examples
    --------
    >>> shown(42), shown(125), shown(7260)
    ('42 s', '2 min', '2 h 1 min')
    """
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Named(Protocol):
    """Something with a name in groups, such as align/en-et.xlwa."""

    @property
    def name(self) -> str: ...


Some = TypeVar("Some", bound=Named)


def choose(every: Sequence[Some], only: str) -> list[Some]:
    """Items by name, or all of a group; several with commas between."""
    if not only:
        return list(every)
    found: dict[str, Some] = {}
    for wanted in only.split(","):
        some = [item for item in every if item.name == wanted or item.name.startswith(wanted + "/")]
        if not some:
            groups = ", ".join(dict.fromkeys(item.name.split("/")[0] for item in every))
            raise SystemExit(f"--only: there is no item {wanted!r}; --list shows them; groups are {groups}")
        found.update((item.name, item) for item in some)
    return list(found.values())


def at_home(chosen: Sequence[Item], machine: str) -> tuple[list[Item], list[Item]]:
    """Items whose seconds may be measured on this machine, and those that are quoted beside peers of another one."""
    there = [item for item in chosen if item.machine in ("", machine)]
    return there, [item for item in chosen if item not in there]


def listing(chosen: Sequence[Item], commit: str, ledger: list[rows.Row]) -> str:
    """A line for each item: seconds, where they are from, and whether this commit has made it."""
    lines, total, unknown = [], 0.0, 0
    for item in chosen:
        seconds, measured = item.seconds(ledger)
        total, unknown = total + (seconds or 0.0), unknown + (seconds is None)
        took = "        ?" if seconds is None else f"{seconds:7.0f} s"
        source = "" if seconds is None else "measured" if measured else "estimated"
        lines.append(f"{took}  {source:9}  {'done' if item.is_done(commit) else '':4}  {item.name}")
    more = f", and {unknown} never measured" if unknown else ""
    return "\n".join([*lines, f"{len(chosen)} items: {shown(total)}{more}; commit {commit or 'unknown'}"])


def write_tables(work: Callable[[Sequence[str]], None] = start) -> dict[str, str]:
    """Write README and all pages from the rows; what failed, and why."""
    failed = {}
    for command in TABLES:
        try:
            work(command)
        except Failure as problem:
            failed[f"tables of {command[0]}"] = str(problem)
    return failed


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.headline", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--list", action="store_true", help="run nothing: the items, and the seconds of each")
    parser.add_argument("--only", default="", help="an item or a group, as --list names them; several with commas")
    parser.add_argument("--budget", type=float, metavar="MINUTES", help="end before the item that would not fit")
    parser.add_argument("--changed", action="store_true", help="run with changed sources; rows say so by a + ")
    parser.add_argument("--tables", action="store_true", help="run nothing: write the tables of all pages")
    arguments = parser.parse_args(argv)
    if not Path("benchmarks/headline.py").exists():
        raise SystemExit("benchmarks.headline: run it in the root of the checkout, where README.md is.")
    if arguments.tables:
        return _finish(write_tables())
    commit, chosen = rows.commit(), choose(items(), arguments.only)
    if arguments.list:
        print(listing(chosen, commit, results().read()))
        return 0
    if (not commit or commit.endswith("+")) and not arguments.changed:
        raise SystemExit(
            "benchmarks.headline: the sources have changes that are in no commit (or this is no checkout), so that no "
            "row could say what made it. Commit them, or give --changed: rows are then marked with a + and made anew "
            "every time."
        )
    if not arguments.only:
        chosen, elsewhere = at_home(chosen, rows.machine())
        for item in elsewhere:
            print(
                f"left out: {item.name}: peers were clocked on {item.machine}, and this is {rows.machine()}; "
                "--only runs it all the same",
                file=sys.stderr,
            )
    budget = None if arguments.budget is None else 60 * arguments.budget
    report = run(chosen, commit, results(), budget=budget)
    tables = write_tables() if report.made else {}
    print(f"commit {commit}: {len(report.made)} items made, {len(report.kept)} were there, {len(report.failed)} failed")
    if report.left:
        print(f"  not run: {', '.join(report.left)}")
    status = _finish(report.failed | tables)
    return report.status or status


def _finish(failed: dict[str, str]) -> int:
    for name, problem in failed.items():
        print(f"  failed: {name}: {problem}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
