"""The command line: its frame, `score` and `view`."""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from conftest import Call
from isogloss import cli, samples
from isogloss._version import __version__
from isogloss.cli import _frame
from isogloss.data.formats import IsoglossWarning
from isogloss.errors import DataError, ParameterError, UsageError


def shell(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command line in a process of its own."""
    script = "import sys; from isogloss.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, **options)


GOLD = samples.path("en-de", "gold")
SOURCE = samples.path("en-de", "source")
TARGET = samples.path("en-de", "target")


# The frame -----------------------------------------------------------------------------------------------------------


def test_version_and_help(isogloss: Call) -> None:
    assert isogloss("--version") == (0, f"isogloss {__version__}\n", "")
    assert isogloss("score", "--version").out == f"isogloss {__version__}\n"
    for arguments in (["--help"], ["-h"], ["help"], []):
        answer = isogloss(*arguments)
        assert answer.status == 0 and answer.err == ""
        assert all(f"\n  {name} " in answer.out for name in cli.COMMANDS)


@pytest.mark.parametrize("name", ["align", "score", "view"])
def test_help_of_commands_is_plain_and_has_quiet(isogloss: Call, name: str) -> None:
    answer = isogloss(name, "--help")
    assert answer.status == 0 and answer.err == ""
    assert answer.out.startswith(f"Usage: isogloss {name} [OPTIONS] ")
    assert "--quiet" in answer.out and "\x1b" not in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80
    assert isogloss("help", name) == answer
    assert isogloss("--quiet", name, "-h") == answer


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from isogloss.cli import main; main(['--help']); main(['align', '--help']); "
        "print([name for name in ('numpy', 'numba', 'scipy', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_is_fast() -> None:
    def seconds() -> float:
        began = time.perf_counter()
        assert shell("--help").returncode == 0
        return time.perf_counter() - began

    assert min(seconds() for _ in range(3)) < 0.5


def test_wrong_words_are_usage_errors(isogloss: Call) -> None:
    assert isogloss("scroe") == (2, "", "isogloss: no such command: 'scroe'. Did you mean 'score'?\n")
    answer = isogloss("--fast")
    assert answer.status == 2 and answer.err.startswith("isogloss: no such option: '--fast'")
    answer = isogloss("score", GOLD, GOLD, "--fast")
    assert answer.status == 2 and answer.out == "" and "--fast" in answer.err and answer.err.count("\n") == 1
    answer = isogloss("score", GOLD)
    assert answer.status == 2 and "GOLD" in answer.err
    answer = isogloss("score", GOLD, GOLD, "--seed", "x")
    assert answer.status == 2 and "--seed" in answer.err
    answer = isogloss("view", SOURCE, TARGET, GOLD, "--errors", "shrug")
    assert answer.status == 2 and "'shrug' is not one of strict, replace, ignore" in answer.err


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """A command `stub` that does what it is told."""

    def make(work: Callable[[], object]) -> None:
        module = types.ModuleType("isogloss_stub")

        def command() -> None:
            work()

        module.command = command  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "isogloss_stub", module)
        monkeypatch.setitem(cli.COMMANDS, "stub", cli.Command("isogloss_stub", "For tests."))

    return make


def _raise(problem: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise problem

    return work


@pytest.mark.parametrize(
    ("problem", "status", "line"),
    [
        (DataError("a.txt, line 3: bad\nvery bad"), 1, "isogloss: a.txt, line 3: bad very bad\n"),
        (UsageError("a.txt: no such file"), 2, "isogloss: a.txt: no such file\n"),
        (ParameterError("seed should be an integer"), 2, "isogloss: seed should be an integer\n"),
        (KeyboardInterrupt(), 130, "isogloss: stopped by Ctrl-C\n"),
        (BrokenPipeError(32, "Broken pipe"), 0, ""),
        (FileNotFoundError(2, "No such file or directory", "b.txt"), 2, "isogloss: b.txt: no such file or directory\n"),
        (OSError(28, "No space left on device"), 1, "isogloss: no space left on device\n"),
        (SystemExit(3), 3, ""),
    ],
)
def test_errors_are_one_line_and_a_status(
    isogloss: Call, stub: Any, problem: BaseException, status: int, line: str
) -> None:
    stub(_raise(problem))
    assert isogloss("stub") == (status, "", line)


def test_memory_and_our_own_mistakes(isogloss: Call, stub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stub(_raise(MemoryError()))
    answer = isogloss("stub")
    assert answer.status == 1 and "not enough memory" in answer.err and "--chunk" in answer.err
    stub(_raise(ZeroDivisionError("division by zero")))
    answer = isogloss("stub")
    assert answer.status == 1 and answer.err.count("\n") == 1
    assert "ZeroDivisionError: division by zero" in answer.err and "report" in answer.err
    monkeypatch.setenv("ISOGLOSS_DEBUG", "1")
    assert "Traceback" in isogloss("stub").err


def test_warnings_are_one_line_once_and_ours_alone(isogloss: Call, stub: Any) -> None:
    def work() -> None:
        for _ in range(2):
            warnings.warn("odd\nvery odd", IsoglossWarning, stacklevel=1)
            warnings.warn("a library is old", DeprecationWarning, stacklevel=1)
            warnings.warn("overflow", RuntimeWarning, stacklevel=1)

    stub(work)
    assert isogloss("stub") == (0, "", "isogloss: warning: odd very odd\n")


def test_sigterm_unwinds(isogloss: Call, stub: Any) -> None:
    cleaned = []

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        finally:
            cleaned.append(True)

    before = signal.getsignal(signal.SIGTERM)
    stub(work)
    assert isogloss("stub") == (130, "", "isogloss: stopped by SIGTERM\n")
    assert cleaned and signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_not_lost_where_python_cannot_raise(isogloss: Call, stub: Any, number: int) -> None:
    class Last:
        def __del__(self) -> None:
            os.kill(os.getpid(), number)
            sum(range(10))

    def work() -> None:
        last = Last()
        del last
        time.sleep(5)
        pytest.fail("the signal was lost")

    stub(work)
    name = "SIGTERM" if number == signal.SIGTERM else "Ctrl-C"
    assert isogloss("stub") == (130, "", f"isogloss: stopped by {name}\n")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (["align", SOURCE, TARGET, "--tokenise", "characters"], ["align", SOURCE, TARGET, "--tokenize", "characters"]),
        (["align", SOURCE, TARGET, "--normalise=NFKC"], ["align", SOURCE, TARGET, "--normalize=NFKC"]),
        (["align", SOURCE, TARGET, "--symmetrise", "union"], ["align", "--symmetrize", "union", SOURCE, TARGET]),
        (["tag", "train", "t", "--graph", "--unlabelled", "u"], ["tag", "train", "t", "--graph", "--unlabeled", "u"]),
        (["tag", "train", "t", "--neighbours", "9"], ["tag", "train", "t", "--neighbors", "9"]),
        (["tag", "apply", "m", "text", "-o", "out"], ["tag", "apply", "text", "-o", "out", "--model", "m"]),
        (["parse", "apply", "m", "text"], ["parse", "apply", "--model=m", "text"]),
        (["parse", "apply", "m", "-"], ["parse", "apply", "-", "--model", "m"]),
        (["lexicon", "m", "--top", "1"], ["lexicon", "--model", "m", "--top", "1"]),
    ],
)
def test_other_spellings(monkeypatch: pytest.MonkeyPatch, ours: list[Any], theirs: list[Any]) -> None:
    """They ask for the same call, with the same values."""
    called: list[Any] = []
    parse = _frame._parse

    def parsed(name: str, function: Callable[..., None], arguments: list[str]) -> Callable[[], None]:
        @functools.wraps(function)
        def record(**values: Any) -> None:
            called.append((name, values))

        return cast(Callable[[], None], parse(name, record, arguments))

    monkeypatch.setattr(_frame, "_parse", parsed)
    save = ["--save", "saved"] if ours[1] == "train" else []
    assert [cli.main([*map(str, line), *save]) for line in (ours, theirs)] == [0, 0]
    assert called[0] == called[1]


def test_other_spellings_are_in_no_help(isogloss: Call) -> None:
    for words in (["align"], ["tag", "train"], ["tag", "apply"], ["parse", "apply"], ["lexicon"]):
        answer = isogloss(*words, "--help")
        assert not re.search("tokeniz|normaliz|symmetriz|neighbor|unlabeled", answer.out), answer.out
        assert len(re.findall(r"^ +--model ", answer.out, re.MULTILINE)) == (words == ["align"])
    missing = isogloss("tag", "apply", "text", "--model")
    assert missing.status == 2 and "--model needs the folder" in missing.err
    twice = isogloss("tag", "apply", "m", "text", "--model", "m")
    assert twice.status == 2 and twice.err.count("\n") == 1
    assert "--tokenized" in isogloss("align", SOURCE, TARGET, "--tokenized", "x").err


def test_closed_and_full_streams_are_no_traceback() -> None:
    python = f"{sys.executable} -c 'import sys; from isogloss.cli import main; sys.exit(main())'"

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)

    assert run(f"set -o pipefail; {python} --help | head -1").stderr == ""
    page = run(f"set -o pipefail; {python} view '{SOURCE}' '{TARGET}' '{GOLD}' --quiet | head -c 10")
    assert (page.returncode, page.stderr) == (0, "")
    assert run(f"{python} score nothing nothing 2>&-").returncode == 2
    closed = run(f"{python} score '{GOLD}' - --quiet >&- <&-")
    assert closed.returncode == 1 and "<stdin>: there are no links" in closed.stderr
    full = run(f"{python} score '{GOLD}' '{GOLD}' --quiet > /dev/full")
    assert full.returncode == 1 and full.stderr.startswith("isogloss: ") and "Traceback" not in full.stderr


# score ---------------------------------------------------------------------------------------------------------------


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Three pairs: texts, gold, and links of which P, R, F and AER are known.

    A = 4 links, S = 4, A and S = 2, A and P = 3: precision 3/4, recall 2/4, F 0.6, AER 1 - 5/8.
    """
    write(tmp_path / "source", "a b c\nd e\nf\n")
    write(tmp_path / "target", "A B C\nD E\nF\n")
    write(tmp_path / "gold", "0-0 1-1 2p2\n0-0\n0-0\n")
    write(tmp_path / "links", "0-0:0.9 1-1:0.8 2-2:0.7\n1-1:0.6\n\n")
    return tmp_path


def test_score_in_json(isogloss: Call, small: Path) -> None:
    answer = isogloss("score", small / "links", small / "gold", "--json", "--quiet")
    assert answer.status == 0 and answer.err == ""
    found = json.loads(answer.out)
    assert [found[name] for name in ("precision", "recall", "f1", "aer")] == pytest.approx([75, 50, 60, 37.5])
    assert found["links"] == 4 and found["n"] == 3
    assert set(found["intervals"]) == {"precision", "recall", "f1", "aer"} and "seed:0" in found["signature"]
    other = json.loads(isogloss("score", small / "links", small / "gold", "--json", "--bootstrap", "0").out)
    assert other["intervals"] == {} and other["aer"] == found["aer"]


def test_score_for_people_and_to_a_file(isogloss: Call, small: Path) -> None:
    answer = isogloss("score", small / "links", small / "gold", "--bootstrap", "0")
    lines = answer.out.splitlines()
    assert re.fullmatch(r"precision +75\.00", lines[0]) and re.fullmatch(r"aer +37\.50", lines[3])
    assert lines[-1].startswith("AER = 37.50 | links:sure+possible|")
    assert isogloss("score", small / "links", small / "gold", "--bootstrap", "0", "-o", small / "out").out == ""
    assert (small / "out").read_text() == answer.out


def test_score_compares_and_judges_probabilities(isogloss: Call, small: Path) -> None:
    write(small / "other", "0-0 1-1\n0-0\n0-0\n")
    arguments = ["score", small / "links", small / "gold", "--against", small / "other", "--curve", "--calibration"]
    found = json.loads(isogloss(*arguments, "--json", "--bootstrap", "50").out)
    assert found["comparison"]["first"] == pytest.approx(37.5) and found["comparison"]["second"] == 0
    assert found["against"]["aer"] == 0 and found["comparison"]["resamples"] == 50
    # of 0.9, 0.8 and 0.6 (0.7 is possible only), the first two are right
    assert found["calibration"]["error"] == pytest.approx(100 * (0.1 + 0.2 + 0.6) / 3)
    assert found["curve"]["best_threshold"] == pytest.approx(0.7, abs=1e-6)
    text = isogloss(*arguments, "--bootstrap", "50").out
    assert "ΔAER = +37.50" in text and "ECE = 30.00" in text and "curve: area" in text
    answer = isogloss("score", small / "other", small / "gold", "--calibration")
    assert answer.status == 1 and "--scores" in answer.err


def test_score_notices_gold_in_the_wrong_place(isogloss: Call, small: Path) -> None:
    plain = write(small / "plain", "0-0 1-1\n0-0\n0-0\n")
    for first, second in (("gold", "plain"), ("gold", "links"), ("plain", "links")):
        answer = isogloss("score", small / first, small / second)
        assert answer.status == 2 and answer.out == "" and answer.err.count("\n") == 1
        assert f"isogloss score {small / second} {small / first}." in answer.err
    assert isogloss("score", small / "links", small / "gold", "--against", small / "gold").status == 0
    assert isogloss("score", plain, small / "gold").status == 0 and isogloss("score", plain, plain).status == 0


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_score_refuses_gold_without_links(isogloss: Call, small: Path, text: str) -> None:
    answer = isogloss("score", write(small / "empty", text), small / "empty")
    assert answer.status == 1 and answer.out == ""
    assert (
        answer.err == f"isogloss: {small / 'empty'}: there are no links, so there is nothing to score. "
        "Is it the right file?\n"
    )


def test_score_names_both_counts(isogloss: Call, small: Path) -> None:
    short = write(small / "short", "0-0\n")
    answer = isogloss("score", short, small / "gold")
    assert answer.status == 1 and answer.out == "" and answer.err.count("\n") == 1
    assert f"{short} has 1 lines but {small / 'gold'} has 3" in answer.err
    assert "has 3 lines but" in isogloss("score", small / "links", short).err


def test_score_reads_numbered_gold(isogloss: Call, small: Path) -> None:
    """Pairs at the end without a link are not in a NAACL file."""
    write(small / "naacl", "1 1 1 S\n1 2 2 S\n1 3 3 P\n2 1 1 S\n")
    found = json.loads(isogloss("score", small / "links", small / "naacl", "--json").out)
    assert found["n"] == 3 and found["sure"] == 3 and found["precision"] == pytest.approx(75)


def test_score_with_texts_checks_indices(isogloss: Call, small: Path) -> None:
    texts = ["--source-file", small / "source", "--target-file", small / "target"]
    assert isogloss("score", small / "links", small / "gold", *texts).status == 0
    write(small / "beyond", "0-0 7-1\n0-0\n0-0\n")
    answer = isogloss("score", small / "links", small / "beyond", *texts)
    assert answer.status == 1 and "beyond, line 1: link 7-1 speaks of source word 7" in answer.err
    write(small / "from-one", "1-1 2-2 3p3\n1-1\n1-1\n")
    answer = isogloss("score", small / "links", small / "from-one", *texts, "--json", "--quiet")
    assert answer.status == 0 and json.loads(answer.out)["aer"] == pytest.approx(37.5)
    assert answer.err.startswith("isogloss: warning: ") and "counts from 1" in answer.err
    answer = isogloss("score", small / "links", small / "from-one", "--index-base", "1", "--json")
    assert answer.err == "" and json.loads(answer.out)["aer"] == pytest.approx(37.5)


def test_score_reads_stdin_and_compressed(small: Path) -> None:
    with gzip.open(small / "gold.gz", "wb") as file:
        file.write((small / "gold").read_bytes())
    with open(small / "links", encoding="utf-8") as links:
        done = shell("score", "-", small / "gold.gz", "--json", stdin=links)
    assert done.returncode == 0 and json.loads(done.stdout)["aer"] == pytest.approx(37.5)
    assert shell("score", "-", "-", input="").returncode == 2


def test_score_refuses_bad_files(isogloss: Call, small: Path) -> None:
    answer = isogloss("score", small / "nothing", small / "gold")
    assert answer.status == 2 and "nothing: no such file" in answer.err
    answer = isogloss("score", write(small / "bad", "0-0\n0:1\n\n"), small / "gold")
    assert answer.status == 1 and "bad, line 2" in answer.err
    answer = isogloss("score", write(small / "latin", b"0-0\n\xe9\n\n"), small / "gold")
    assert answer.status == 1 and "latin, line 2" in answer.err
    answer = isogloss("score", small / "links", small / "gold", "--target-file", small / "target")
    assert answer.status == 2 and "--source-file" in answer.err
    answer = isogloss("score", small / "links", small / "gold", "-o", small / "gold")
    assert answer.status == 2 and "read and written" in answer.err
    answer = isogloss("score", small / "links", small / "gold", "-o", small / "no" / "where")
    assert answer.status == 2 and "no folder" in answer.err
    assert (small / "gold").read_text().startswith("0-0 1-1")


# view ----------------------------------------------------------------------------------------------------------------


def records(page: str) -> list[dict[str, Any]]:
    """The pairs in a page."""
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found
    pairs: list[dict[str, Any]] = json.loads(found[1])
    return pairs


def test_view_writes_a_page(isogloss: Call, small: Path) -> None:
    arguments = ["view", small / "source", small / "target", small / "links"]
    answer = isogloss(*arguments, "--gold", small / "gold", "--other", small / "gold", "-o", small / "page.html")
    assert (answer.status, answer.out) == (0, "")
    page = (small / "page.html").read_text(encoding="utf-8")
    assert "37.50" in page and "source – target" in page and "http://" not in page.replace("http://www.w3.org", "")
    pairs = records(page)
    assert [pair["line"] for pair in pairs] == [1, 2, 3]
    assert pairs[0]["source"] == ["a", "b", "c"] and pairs[0]["links"][0] == [0, 0, 0.9]
    assert pairs[0]["gold"] == {"sure": [[0, 0], [1, 1]], "possible": [[2, 2]]}
    assert pairs[0]["names"] == ["links", "gold"]
    assert isogloss(*arguments, "--gold", small / "gold", "--other", small / "gold").out == page


def test_view_limits_and_lines(isogloss: Call, small: Path) -> None:
    arguments = ["view", small / "source", small / "target", small / "links"]
    assert [pair["line"] for pair in records(isogloss(*arguments, "--limit", "2").out)] == [1, 2]
    assert [pair["line"] for pair in records(isogloss(*arguments, "--line", "3", "--line", "1").out)] == [3, 1]
    answer = isogloss(*arguments, "--line", "4")
    assert answer.status == 2 and "has 3 lines" in answer.err


def test_view_in_the_terminal(isogloss: Call, small: Path) -> None:
    answer = isogloss("view", small / "source", small / "target", small / "links", "--terminal", "--line", "1")
    assert answer.status == 0 and "\x1b" not in answer.out
    assert answer.out.splitlines()[-2].startswith("line 1 · 3 links")
    many = isogloss("view", SOURCE, TARGET, GOLD, "--terminal")
    assert many.out.count("line ") == 10 and "the first 10 of 50 pairs" in many.err
    assert isogloss("view", SOURCE, TARGET, GOLD, "--terminal", "--quiet").err == ""


def test_view_of_one_file_with_both_sides_and_empty_pairs(isogloss: Call, small: Path) -> None:
    both = write(small / "both", "a b ||| A\n\n ||| X\n")
    links = write(small / "three", "0-0\n\n\n")
    answer = isogloss("view", both, links, "--gold", write(small / "first", "1-0\n"))
    pairs = records(answer.out)
    assert [pair["source"] for pair in pairs] == [["a", "b"]] and pairs[0]["gold"]["sure"] == [[1, 0]]
    assert answer.err == "isogloss: left out: 2 of 3 pairs, where a side is empty\n"
    assert "<dt>Pairs with an empty side</dt><dd><bdi>2</bdi></dd>" in answer.out
    pairs = records(isogloss("view", both, links, "--gold", small / "first", "--line", 3).out)
    assert pairs[0]["source"] == [] and pairs[0]["target"] == ["X"] and "gold" not in pairs[0]
    assert isogloss("view", both, links, "--terminal", "--limit", 1, "--quiet").err == ""
    other = records(isogloss("view", both, links, "--compare", write(small / "else", "1-0\n\n\n")).out)
    assert [pair["line"] for pair in other] == [1]
    answer = isogloss("view", write(small / "none", " ||| X\n"), write(small / "no-links", "\n"))
    assert answer.status == 1 and "no pair has words on both sides" in answer.err
    assert isogloss("view", both).status == 2


def test_view_refuses_links_of_another_text(isogloss: Call, small: Path) -> None:
    answer = isogloss("view", small / "source", small / "target", GOLD, "-o", small / "page.html")
    assert answer.status == 1 and "has 50 lines but" in answer.err
    assert not (small / "page.html").exists()
    answer = isogloss("view", small / "source", SOURCE, small / "links")
    assert answer.status == 1 and "has 3 lines but" in answer.err
