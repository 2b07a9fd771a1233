"""Before and after a change of the core: quality, seconds, memory and lines of code of two checkouts, side by side.

python -m benchmarks.core --before ../other                  a folder with another checkout
python -m benchmarks.core --before df22950                   a commit: checked out in a temporary folder
python -m benchmarks.core --before df22950 --only tag/en-ewt     one item, or all of a group: --only parse
python -m benchmarks.core --before ../other --quick          fewer iterations, once: to try it; rows go to out/core
python -m benchmarks.core --list                             run nothing: the items
python -m benchmarks.core --table                            run nothing: write docs/benchmarks-core.md from the rows

Every item is a whole command, or two of them (learn and apply), run in processes of their own with the sources of
either checkout: before, after, before, after, and so on. The least of the tries counts, of each of wall seconds, CPU
seconds and memory, so that the first try may compile kernels. Both outputs are scored on the same gold, and their
difference is tested by the paired bootstrap; this checkout, which is the one after the change, does so. What both
commits have rows of is not run again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import isogloss
from benchmarks import clock, corpora, rows, scoring
from benchmarks.headline import choose
from benchmarks.lines import lines_by_package
from isogloss.data import Treebank
from isogloss.data.formats import read_links
from isogloss.metrics import compare, compare_trees, score_links, score_trees
from isogloss.metrics.parsing import SCORED

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent
PAGE = Path("docs/benchmarks-core.md")
KEPT = Path("out/core")
BEFORE, AFTER = "before", "after"
TIMES = 3
SIGNIFICANT = 0.05
COSTS = ("cpu_seconds", "seconds", "peak_mb")
COLUMNS = (
    *("date", "machine", BEFORE, AFTER, "item", "measure", "score_before", "spread_before", "score_after"),
    *("spread_after", "difference", "low", "high", "p", "same_output"),
    *(f"{name}_{side}" for name in COSTS for side in (BEFORE, AFTER)),
    *("tries", "threads", "command", "signature"),
)
LINE_COLUMNS = ("date", BEFORE, AFTER, "package", "lines_before", "lines_after")


def results(folder: Path = HERE) -> rows.Rows:
    return rows.Rows(folder / "core.csv", COLUMNS, ("item", "measure"))


def line_results(folder: Path = HERE) -> rows.Rows:
    return rows.Rows(folder / "core-lines.csv", LINE_COLUMNS, ("package",))


# --- the items


@dataclass(frozen=True)
class Judged:
    """Two outputs beside each other, in one measure, in percent."""

    measure: str
    scores: tuple[float, float]
    spreads: tuple[float, float]
    """Half the width of the 95% intervals."""
    difference: float
    low: float
    high: float
    p: float
    signature: str


Command = list[str | Path]
Commands = Callable[[Path, bool], list[Command]]
"""Arguments of `isogloss`, command by command, from a folder for what they write and whether it should be quick."""
Judge = Callable[[Path, Path], Iterator[Judged]]
OUTPUT = "output"
"""The file in that folder which is scored."""


@dataclass(frozen=True)
class Item:
    """Something that people do, as commands, and how it is scored."""

    name: str
    commands: Commands
    judge: Judge


def items() -> list[Item]:
    found = [_align("hansards-10k"), _align("en-cs.czenali"), _supervised(), _tag()]
    found += [_dictionary(language) for language in ("de", "el")]
    found += [_parse(text, order) for text in ("el", "hu") for order in (1, 2)]
    return [*found, _joint()]


def _iterations(quick: bool) -> list[str | Path]:
    return ["--iterations", "1"] if quick else []


def _align(name: str) -> Item:
    def commands(place: Path, quick: bool) -> list[Command]:
        data = corpora.all_sets()[name]
        data.assemble()
        return [["align", data.source, data.target, "-o", place / OUTPUT, *_iterations(quick)]]

    def judge(before: Path, after: Path) -> Iterator[Judged]:
        data = corpora.all_sets()[name]
        yield _links(before, after, data, data.lines["test"])

    return Item(f"align/{name}", commands, judge)


HANSARDS, N_TRAIN = "en-fr.hansards", 100


def _supervised() -> Item:
    """Matching on Hansards: the first 100 pairs with gold are learnt from, the other 347 are scored."""

    def commands(place: Path, quick: bool) -> list[Command]:
        data = corpora.all_sets()[HANSARDS]
        data.assemble()
        gold, start = KEPT / "hansards.gold", data.lines["test"].start
        known = data.gold("test").read_text(encoding="utf-8").splitlines()[:N_TRAIN]
        gold.write_text("\n" * start + "\n".join(known) + "\n", encoding="utf-8")  # an empty line: not aligned by hand
        learn: Command = ["train-aligner", "matching", data.source, data.target, gold, "--no-tune"]
        apply: Command = ["align", data.source, data.target, "--model", place / "model", "-o", place / OUTPUT]
        return [[*learn, "--save", place / "model", *_iterations(quick)], apply]

    def judge(before: Path, after: Path) -> Iterator[Judged]:
        data = corpora.all_sets()[HANSARDS]
        lines = data.lines["test"]
        yield _links(before, after, data, range(lines.start + N_TRAIN, lines.stop))

    return Item("supervised/hansards-100", commands, judge)


def _tag() -> Item:
    def commands(place: Path, quick: bool) -> list[Command]:
        from benchmarks.quality.parsing.texts import OWN, given

        files = given("en-ewt", OWN)  # the test part has words alone
        learn: Command = ["tag", "train", files.train, "--column", "upos,feats", "--save", place / "model"]
        return [[*learn, *_iterations(quick)], ["tag", "apply", place / "model", files.test, "-o", place / OUTPUT]]

    return Item("tag/en-ewt", commands, lambda before, after: _trees(before, after, "en-ewt", ("upos", "ufeats")))


def _dictionary(language: str) -> Item:
    """As in the benchmark of dictionaries: the words of the treebanks of the language, and Wiktionary."""

    def commands(place: Path, quick: bool) -> list[Command]:
        from benchmarks.quality import wikily

        case = wikily.Case(language, wikily.LANGUAGES)
        text, test = KEPT / f"{language}.txt", KEPT / f"{language}.conllu"
        text.write_text("\n".join(" ".join(words) for words in case.raw) + "\n", encoding="utf-8")
        nothing = Treebank.of([[(word, "_", -1, "_") for word in case.gold.words(s)] for s in range(len(case.gold))])
        test.write_bytes(nothing.to_bytes())
        words = wikily.data() / "tagdict" / f"{language}.tsv.gz"
        learn: Command = ["tag", "train", text, "--dictionary", words, "--save", place / "model", *_iterations(quick)]
        return [learn, ["tag", "apply", place / "model", test, "-o", place / OUTPUT]]

    def judge(before: Path, after: Path) -> Iterator[Judged]:
        from benchmarks.quality import wikily

        yield from _compared(before, after, wikily.read(wikily.LANGUAGES[language][0]), ("upos",))

    return Item(f"dictionary/{language}", commands, judge)


def _parse(text: str, order: int) -> Item:
    def commands(place: Path, quick: bool) -> list[Command]:
        from benchmarks.quality.parsing.texts import GOLD, given

        files = given(text, GOLD)
        learn: Command = ["parse", "train", files.train, "--dev", files.dev or "", "--order", str(order)]
        apply: Command = ["parse", "apply", place / "model", files.test, "-o", place / OUTPUT]
        return [[*learn, "--save", place / "model", *_iterations(quick)], apply]

    return Item(f"parse/{text}-order-{order}", commands, lambda b, a: _trees(b, a, text, ("uas", "las")))


def _joint() -> Item:
    def commands(place: Path, quick: bool) -> list[Command]:
        from benchmarks.quality.parsing.texts import OWN, given

        files = given("hu", OWN)
        learn: Command = ["parse", "train-joint", files.train, "--save", place / "model", *_iterations(quick)]
        return [learn, ["parse", "apply", place / "model", files.test, "-o", place / OUTPUT]]

    return Item("joint/hu", commands, lambda b, a: _trees(b, a, "hu", ("uas", "upos", "ufeats")))


# --- scores


def _links(before: Path, after: Path, data: corpora.Set, lines: range) -> Judged:
    """Alignment error rates on some lines of the text, which are the last of the test split."""
    both = [read_links(path, format="pharaoh", index_base=0).part(lines.start, lines.stop) for path in (before, after)]
    every = scoring.gold(data.gold("test"))
    gold = every.part(len(every) - len(lines), len(every))
    scores = [score_links(links, gold, seed=scoring.SEED) for links in both]
    for side, score in zip((BEFORE, AFTER), scores, strict=True):
        _say(f"  {side:6} {score}")
    test = compare(both[1], both[0], gold, seed=scoring.SEED)
    return _judged("aer", scores, test)


def _trees(before: Path, after: Path, text: str, measures: Sequence[str]) -> Iterator[Judged]:
    from benchmarks.quality.parsing.texts import gold

    return _compared(before, after, gold(text), measures)


def _compared(before: Path, after: Path, gold: Treebank, measures: Sequence[str]) -> Iterator[Judged]:
    both = [Treebank.read(path) for path in (before, after)]
    scores = [score_trees(trees, gold, seed=scoring.SEED, columns=SCORED) for trees in both]
    for measure in measures:
        for side, score in zip((BEFORE, AFTER), scores, strict=True):
            low, high = score.intervals[measure]
            value = getattr(score, measure)
            _say(f"  {side:6} {measure.upper()} = {value:.2f} ± {(high - low) / 2:.1f} | {score.signature}")
        yield _judged(measure, scores, compare_trees(both[1], both[0], gold, measure=measure, seed=scoring.SEED))


def _judged(measure: str, scores: Sequence[Any], test: Any) -> Judged:
    values = [float(getattr(score, measure)) for score in scores]
    spreads = [(score.intervals[measure][1] - score.intervals[measure][0]) / 2 for score in scores]
    return Judged(
        measure, (values[0], values[1]), (spreads[0], spreads[1]), test.delta, test.interval[0],
        test.interval[1], test.p_value, scores[1].signature,
    )  # fmt: skip


# --- two checkouts


@dataclass(frozen=True)
class Checkout:
    """Sources of ours somewhere, and their commit."""

    folder: Path
    commit: str

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.folder / "src")}

    def check(self) -> None:
        """See that a process with this environment runs these sources and no others."""
        ask = [sys.executable, "-c", "import isogloss; print(isogloss.__file__)"]
        found = _output(ask, self.environment)
        if not Path(found).resolve().is_relative_to(self.folder.resolve()):
            raise SystemExit(f"benchmarks.core: {self.folder} is to be run, but Python finds {found}")


def _output(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    made = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **(environment or {})}
    )
    return made.stdout.strip()


@contextmanager
def checkout(wanted: str) -> Iterator[Checkout]:
    """A folder as it is, or a commit in a temporary folder that is taken away again."""
    folder = Path(wanted).absolute()
    if (folder / "src/isogloss").is_dir():
        yield Checkout(folder, rows.commit(folder))
        return
    asked = subprocess.run(["git", "rev-parse", "--verify", "--quiet", f"{wanted}^{{commit}}"], capture_output=True)
    if asked.returncode:
        raise SystemExit(f"--before: {wanted!r} is neither a folder with src/isogloss nor a commit")
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) / "before"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(place), wanted], check=True)
        try:
            yield Checkout(place, rows.commit(place))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(place)], check=True)


def run_item(
    item: Item,
    sides: dict[str, Checkout],
    times: int,
    threads: int,
    *,
    quick: bool,
    keep: Callable[[list[dict[str, Any]]], object] = lambda made: None,
) -> list[dict[str, Any]]:
    """The rows of an item: both checkouts take turns. `keep` is handed those of the tries so far, turn by turn."""
    least: dict[str, dict[str, float]] = {}
    outputs: dict[str, Path] = {}
    made: list[dict[str, Any]] = []
    shown = ""
    for number in range(times):
        for side, sources in sides.items():
            place = KEPT / item.name.replace("/", "-") / side
            place.mkdir(parents=True, exist_ok=True)
            outputs[side] = place / OUTPUT
            outputs[side].unlink(missing_ok=True)
            commands = item.commands(place, quick)
            shown = "; ".join(f"isogloss {' '.join(_plain(part) for part in command)}" for command in commands)
            cost = _clocked(commands, sources, threads, place / "log.txt")
            least[side] = {name: min(cost[name], least.get(side, cost)[name]) for name in COSTS}
            _say(
                f"{item.name} {number + 1}/{times} {side:6} {cost['cpu_seconds']:8.1f} CPU s {cost['seconds']:8.1f} s "
                f"{cost['peak_mb']:6.0f} MB"
            )
        same = len({hashlib.sha256(path.read_bytes()).hexdigest() for path in outputs.values()}) == 1
        common: dict[str, Any] = {
            "date": rows.today(), "machine": rows.machine(), "item": item.name, "same_output": "yes" if same else "no",
            "tries": number + 1, "threads": threads, "command": shown,
        } | {side: sources.commit for side, sources in sides.items()}  # fmt: skip
        common |= {f"{name}_{side}": least[side][name] for name in COSTS for side in sides}
        made = [common | _row(judged) for judged in item.judge(outputs[BEFORE], outputs[AFTER])]
        keep(made)
    return made


def _clocked(commands: list[Command], sources: Checkout, threads: int, log: Path) -> dict[str, float]:
    """Seconds of all commands together, and the most memory that one of them took."""
    total = dict.fromkeys(COSTS, 0.0)
    for command in commands:
        whole = [sys.executable, "-m", "isogloss", *command, "--threads", str(threads), "-q"]
        cost = clock.measure(whole, threads=threads, log=log, environment=sources.environment)
        total = {name: total[name] + cost[name] for name in COSTS} | {"peak_mb": max(total["peak_mb"], cost["peak_mb"])}
    return total


def _plain(part: str | Path) -> str:
    """Names of files without their folders, so that rows read the same on every machine."""
    return part.name if isinstance(part, Path) else part


def _row(judged: Judged) -> dict[str, Any]:
    return {
        "measure": judged.measure, "score_before": judged.scores[0], "score_after": judged.scores[1],
        "spread_before": judged.spreads[0], "spread_after": judged.spreads[1], "difference": judged.difference,
        "low": judged.low, "high": judged.high, "p": f"{judged.p:.4f}", "signature": judged.signature,
    }  # fmt: skip


# --- lines of code


def count_lines(sides: dict[str, Checkout], file: rows.Rows) -> None:
    """Write the rows of all packages that either checkout has."""
    counts = {side: lines_by_package(sources.folder) for side, sources in sides.items()}
    common = {"date": rows.today()} | {side: sources.commit for side, sources in sides.items()}
    file.path.unlink(missing_ok=True)  # a package that is gone from both has no row
    file.put(
        common | {"package": name} | {f"lines_{side}": counts[side].get(name, 0) for side in sides}
        for name in sorted(counts[BEFORE].keys() | counts[AFTER].keys())
        if any(counts[side].get(name) for side in sides)
    )


# --- tables

INTRO = """\
# Benchmarks: the core, before and after

<!-- Made by `python -m benchmarks.core` from the rows in benchmarks/core.csv and benchmarks/core-lines.csv. -->

What a change of the core did to what people run: whole commands, learning and applying, with the sources before and
after it, in turns on the same machine. Scores are those of the test files, ± half of the 95% interval; the difference
is after − before, with the interval and the p-value of the paired bootstrap on both outputs (10,000 resamples). AER is
better when lower, the others when higher. Seconds and memory are the least of the tries; × is after / before.

```
python -m benchmarks.core --before COMMIT      # all items, about seventy minutes; --only, --times, --quick
python -m benchmarks.core --table              # this page
```

## Commands

<!-- core -->
<!-- end -->

## Seeds

Whether a difference above is more than chance: the same commands with several seeds on both sides. Means over seeds ±
their standard deviation, and the mean of the differences of each seed, with Student's interval.

```
python -m benchmarks.core_seeds --before COMMIT --only dictionary/de --seeds 8
```

<!-- core seeds -->
<!-- end -->

## Lines of code

Without docstrings, comments and blank lines, by package.

<!-- core lines -->
<!-- end -->
"""


def table(found: list[rows.Row]) -> str:
    """A line for each item and measure; what it costs stands in the first of an item."""
    if not found:
        return "No rows yet."
    head = "| | measure | before | after | difference [95%] | p | CPU s | × | wall s | × | MB | × |"
    lines, seen = [head, "|" + "---|" * 12], set[str]()
    for row in found:
        scores = " | ".join(
            f"{float(row[f'score_{side}']):.2f} ± {float(row[f'spread_{side}']):.1f}" for side in (BEFORE, AFTER)
        )
        gap = f"{float(row['difference']):+.2f} [{float(row['low']):+.2f}, {float(row['high']):+.2f}]"
        if row["same_output"] == "yes":
            gap = "the same output"
        p = f"**{row['p']}**" if float(row["p"]) < SIGNIFICANT else row["p"]
        first = row["item"] not in seen
        cells = (_cost(row, name) if first else " | " for name in COSTS)
        name = row["item"] if first else ""
        lines.append(f"| {name} | {row['measure'].upper()} | {scores} | {gap} | {p} | {' | '.join(cells)} |")
        seen.add(row["item"])
    return "\n".join([*lines, "", _provenance(found)])


def _cost(row: rows.Row, name: str) -> str:
    before, after = (float(row[f"{name}_{side}"]) for side in (BEFORE, AFTER))
    digits = 0 if name == "peak_mb" else 1
    return f"{before:.{digits}f} → {after:.{digits}f} | {after / before:.2f}"


def _provenance(found: list[rows.Row]) -> str:
    """What stands below the tables."""
    pairs = dict.fromkeys((row[BEFORE], row[AFTER]) for row in found)
    made = "; ".join(f"before {before or 'not recorded'}, after {after or 'not recorded'}" for before, after in pairs)
    if "machine" not in found[0]:
        return f"Commits of the rows: {made}."
    machines, dates, tries, threads = (
        ", ".join(sorted({row[name] for row in found})) for name in ("machine", "date", "tries", "threads")
    )
    return f"Commits of the rows: {made}. {machines}, {dates}, the least of {tries} tries, threads: {threads}."


def line_table(found: list[rows.Row]) -> str:
    if not found:
        return "No rows yet."
    lines = ["| package | before | after | × |", "|---|---|---|---|"]
    numbers = [(row["package"], int(row["lines_before"]), int(row["lines_after"])) for row in found]
    total = ("**all**", sum(before for _, before, _ in numbers), sum(after for _, _, after in numbers))
    for name, before, after in (*numbers, total):
        ratio = f"{after / before:.2f}" if before else "new"
        lines.append(f"| {name} | {before:,} | {after:,} | {ratio} |")
    return "\n".join([*lines, "", _provenance(found)])


def write_page() -> None:
    """Fill the tables of the page, which is made if it is not there."""
    if not PAGE.exists():
        PAGE.write_text(INTRO, encoding="utf-8")
    rows.fill(PAGE, "core", table(results().read()))
    rows.fill(PAGE, "core lines", line_table(line_results().read()))


# --- running


def is_done(file: rows.Rows, item: Item, sides: dict[str, Checkout], times: int) -> bool:
    """Whether rows of both commits are there, with tries enough; sources with changes are always run."""
    commits = {side: sources.commit for side, sources in sides.items()}
    found = file.find(item=item.name, **commits)
    known = all(commit and not commit.endswith("+") for commit in commits.values())
    return known and bool(found) and all(int(row["tries"]) >= times for row in found)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.core", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--before", help="another checkout (a folder), or a commit")
    parser.add_argument("--only", default="", help="an item or a group, as --list names them; several with commas")
    parser.add_argument("--times", type=int, help=f"tries of each side; default: {TIMES}, with --quick 1")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one iteration, to try it; rows and table to out/core")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--list", action="store_true", help="run nothing: the items")
    parser.add_argument("--table", action="store_true", help="run nothing: print the tables and write the page")
    arguments = parser.parse_args(argv)
    chosen = choose(items(), arguments.only)
    if arguments.list:
        print("\n".join(item.name for item in chosen))
        return 0
    if not arguments.table:
        if not arguments.before:
            parser.error("--before: name another checkout or a commit to compare with")
        times = arguments.times or (1 if arguments.quick else TIMES)
        _run(chosen, arguments.before, times, arguments.threads, quick=arguments.quick, again=arguments.again)
    folder = KEPT if arguments.quick else HERE
    print(f"{table(results(folder).read())}\n\n{line_table(line_results(folder).read())}")
    if not arguments.quick:
        write_page()
    return 0


def _run(chosen: Sequence[Item], before: str, times: int, threads: int, *, quick: bool, again: bool) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    folder = KEPT if quick else HERE
    if not Path(isogloss.__file__).resolve().is_relative_to(ROOT.resolve()):
        raise SystemExit(f"benchmarks.core: Python finds {isogloss.__file__}; set PYTHONPATH to {ROOT / 'src'}")
    with checkout(before) as other:
        sides = {BEFORE: other, AFTER: Checkout(ROOT, rows.commit(ROOT))}
        for side, sources in sides.items():
            sources.check()
            _say(f"{side}: {sources.commit or 'no commit'}")
        count_lines(sides, line_results(folder))
        file = results(folder)
        for item in chosen:
            if again or quick or not is_done(file, item, sides, times):
                run_item(item, sides, times, threads, quick=quick, keep=file.put)


if __name__ == "__main__":
    sys.exit(main())
