"""`warm-up`, `sample` and `doctor --environment`: what prepares a machine, and what describes it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from isogloss import cli, samples
from isogloss._version import __version__
from isogloss.cli import _alignment, _common, _environment, warm_up
from isogloss.engine import cache

# --- sample -----------------------------------------------------------------------------------------------------------

FILES = [samples.path("en-de", what).name for what in samples._files("en-de")]


def test_sample_writes_files_and_overwrites_none_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sample", "en-de"]) == 0
    assert capfd.readouterr() == ("", f"isogloss: written: {', '.join(FILES)}\n")
    assert sorted(os.listdir()) == sorted(FILES)
    assert Path(FILES[0]).read_bytes() == samples.path("en-de", "source").read_bytes()
    Path(FILES[1]).unlink()
    Path(FILES[2]).write_text("mine\n")
    assert cli.main(["sample", "en-de", "-q"]) == 2
    assert f"{FILES[2]}: is there already and differs" in capfd.readouterr().err
    assert not Path(FILES[1]).exists() and Path(FILES[2]).read_text() == "mine\n"
    assert cli.main(["sample", "en-de", "--force", "-q"]) == 0
    assert Path(FILES[2]).read_bytes() == samples.path("en-de", "gold").read_bytes()
    assert cli.main(["sample", "en-tr", "-o", "a/b", "-q"]) == 0 and len(os.listdir("a/b")) == 5
    assert cli.main(["sample", "en-tr", "-o", FILES[0]]) == 2 and FILES[0] in capfd.readouterr().err
    assert cli.main(["sample", "xx"]) == 2 and "there are en-de, en-tr" in capfd.readouterr().err


# --- doctor --environment ---------------------------------------------------------------------------------------------


def test_environment_for_bug_reports(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert cli.main(["doctor", "--environment", "--json"]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert facts["isogloss"] == __version__ and facts["python"].startswith(f"{sys.version_info[0]}.")
    assert all(facts[name] for name in ("numpy", "scipy", "numba", "llvmlite", "safetensors", "platform", "processor"))
    assert facts["threads"] >= 1 and facts["memory_mb"] >= (facts["memory_available_mb"] or 0)
    assert facts["cache"] == str(cache.ensure_cache()) and facts["cache_mb"] >= 0 and facts["warm"] in (True, False)
    assert facts["variables"]["OPENBLAS_CORETYPE"] == "Haswell"
    assert cli.main(["doctor", "--environment"]) == 0
    text = capfd.readouterr().out
    assert re.search(r"^numba +\d", text, re.MULTILINE) and "OPENBLAS_CORETYPE=Haswell" in text
    assert cli.main(["doctor", "--environment", FILES[0]]) == 2
    assert cli.main(["doctor"]) == 2 and "--environment" in capfd.readouterr().err.splitlines()[-1]


def test_environment_where_nothing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on Windows, and with little more on macOS."""
    monkeypatch.setattr(_environment, "CPUINFO", tmp_path / "absent")
    monkeypatch.setattr(_environment, "MEMINFO", tmp_path / "absent")
    assert _environment._memory()[1] is None and _environment._processor()
    monkeypatch.delattr(os, "sysconf")
    assert _environment._memory() == (None, None)
    assert _environment._version("no-such-package") is None
    monkeypatch.setattr(cache, "ensure_cache", lambda: None)
    facts = _environment.environment()
    assert (facts["cache"], facts["cache_mb"], facts["warm"]) == (None, 0.0, False)
    assert "memory mb" in _environment.as_text(facts) and "nowhere" in _environment.kernel_cache()


# --- the time of compiling --------------------------------------------------------------------------------------------


def test_compiling_is_no_part_of_the_speed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    now, compiled = [100.0], [5.0]
    monkeypatch.setattr(_common.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(_common, "compile_seconds", lambda: compiled[0])
    watch = _common.Stopwatch()
    now[0], compiled[0] = 140.0, 35.0
    assert (watch.seconds, watch.compiling, watch.rate(50)) == (40.0, 30.0, 5.0)
    assert str(watch) == "40.0 s (30.0 s of it compiling)"
    run = _alignment.Alignments("a", "b", {}, None, False, "pharaoh", None, False, watch)
    run.tally.pairs = 50
    run.report(None, False, None)
    assert "50 pairs, 0 links, 0 skipped, 40.0 s (30.0 s of it compiling), 5 pairs/s" in capfd.readouterr().err
    compiled[0] = 5.0
    assert str(watch) == "40.0 s"


# --- warm-up ----------------------------------------------------------------------------------------------------------


def lines_of(*names: str) -> list[list[str]]:
    every = [shlex.split(line) for line in warm_up.LINES]
    return [line for line in every if line[: len(names)] == list(names)]


def test_warm_up_leaves_out_no_command_and_no_kind() -> None:
    for name, entry in cli.COMMANDS.items():
        if name in ("sample", "warm-up", "align-worker"):  # without kernels, or with those of `align`
            continue
        for one in getattr(import_module(entry.module), "COMMANDS", {None: None}):
            assert lines_of(*filter(None, (name, one))), f"warm-up runs no {name} {one or ''}"
    train_aligner = import_module("isogloss.cli.train_aligner")
    for kind in (*train_aligner.ALIGNERS, train_aligner.AUTO):
        assert lines_of("train-aligner", kind), kind
    choices = {"align": ("--aligner", ["model1", "model2"]), "parse": ("--trainer", ["risk", "mira", "perceptron"])}
    choices["tag"] = ("--learner", ["hmm"])
    for name, (option, values) in choices.items():
        given = [line[line.index(option) + 1] for line in lines_of(name) if option in line]
        assert sorted(set(given)) == sorted(values)
    for way in ("--dictionary", "--graph", "--bitext", "--adapt", "--order"):
        assert any(way in line for line in lines_of("tag", "train")), way
    for line in map(shlex.split, warm_up.LINES):
        assert {"-o", "--save", "--scores", "--out-links", "--out-target"} & set(line), "the result would go to stdout"


def test_warm_up_runs_its_lines_and_marks_everything_warm(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    marked: list[str] = []
    monkeypatch.setattr(cache, "mark_warm", marked.append)
    monkeypatch.setattr(warm_up, "LINES", ("score en-de.gold.txt en-de.gold.txt -o score.txt",))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["warm-up"]) == 0
    assert re.search(r"all kernels are compiled, .* MB, are in ", capfd.readouterr().err)
    assert marked[-1] == cache.EVERYTHING and os.listdir() == []
    monkeypatch.setattr(warm_up, "LINES", ("score nothing nothing -o score.txt",))
    assert cli.main(["warm-up"]) == 2
    assert "warm-up: isogloss score nothing nothing" in capfd.readouterr().err


AFTERWARDS = [
    "align en-tr.en.txt en-tr.tr.txt -o links.txt --scores --save hmm",
    "align en-tr.en.txt en-tr.tr.txt --model hmm -o again.txt",
    "train-aligner quadratic en-tr.en.txt en-tr.tr.txt en-tr.gold.txt --no-tune --save quadratic",
    "align en-tr.en.txt en-tr.tr.txt --model quadratic -o again.txt",
    "score links.txt en-tr.gold.txt -o score.txt",
    "view en-tr.en.txt en-tr.tr.txt links.txt -o page.html",
    "phrases en-tr.en.txt en-tr.tr.txt links.txt -o phrases.txt",
    "filter en-tr.en.txt en-tr.tr.txt -o kept.en kept.tr",
    "tag train en-tr.tr.conllu --save tagger",
    "tag apply tagger en-tr.tr.txt -o tagged.conllu",
    "parse train en-tr.tr.conllu --order 1 --save first",
    "parse train en-tr.tr.conllu --save parser",
    "parse apply parser en-tr.tr.conllu -o parsed.conllu",
    "parse train en-tr.tr.conllu --trainer mira --tags predicted --save mira",
    "parse train-joint en-tr.tr.conllu --save joint",
]


@pytest.mark.slow
def test_after_warm_up_nothing_is_compiled(tmp_path: Path) -> None:
    """On another text, in a cache of its own."""
    kernels = tmp_path / "kernels"
    environment: dict[str, Any] = {**os.environ, "NUMBA_CACHE_DIR": str(kernels)}

    def run(line: str) -> str:
        command = [sys.executable, "-m", "isogloss", *shlex.split(line)]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        return done.stderr

    run("sample en-tr")
    assert str(kernels) in run("warm-up")
    before = {path.name for path in kernels.rglob("*.nb?")}
    for line in AFTERWARDS:
        assert "compiling" not in run(line), line
        assert {path.name for path in kernels.rglob("*.nb?")} == before, line
