"""`isogloss align`: its options and files with a stand-in for the aligner, then the real one on the bundled samples."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from conftest import Answer, Call
from isogloss import cli, samples, store
from isogloss._version import __version__
from isogloss.data import Bitext, Links, Vocabulary, formats
from isogloss.engine import cache
from isogloss.tasks import align as tasks
from isogloss.tasks.align.languages import KnownWords

SCRIPT = "import sys; from isogloss.cli import main; sys.exit(main())"


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# A stand-in ----------------------------------------------------------------------------------------------------------


class Diagonal:
    """Links word k with word k, and remembers how it was called."""

    calls: ClassVar[list[tuple[Any, ...]]] = []
    known_words_ = (KnownWords(Vocabulary([]), np.zeros(0, np.int64)),) * 2
    reading_ = None
    supervised = False

    def __init__(self, *, threshold: Any = "auto", max_length: int = 1000, **options: Any) -> None:
        self.threshold, self.max_length = threshold, max_length
        self.options = options
        self.seen = 0
        self.calls.append(("new", dict(options, threshold=threshold, max_length=max_length)))

    @property
    def options_(self) -> dict[str, Any]:
        return {**self.options, "max_length": self.max_length}

    def _learn(self, bitext: Bitext) -> None:
        self.seen += len(bitext)
        self.data_hash_ = store.data_hash(bitext.source.ids, bitext.target.ids)
        self.trace_, self.threshold_ = np.array([-2.0, -1.0]), 0.5

    def fit(self, bitext: Bitext, *, checkpoint: Any = None, resume: bool = False, progress: Any = None) -> Diagonal:
        self.calls.append(("fit", len(bitext), checkpoint, resume))
        self._learn(bitext)
        return self

    def update(self, bitext: Bitext, *, progress: Any = None) -> Diagonal:
        self.calls.append(("update", len(bitext)))
        self._learn(bitext)
        return self

    def fit_predict(self, bitext: Bitext, **more: Any) -> Links:
        return self.fit(bitext, **more).predict(bitext)

    def predict(self, bitext: Bitext) -> Links:
        self.calls.append(("predict", len(bitext)))
        lengths = np.minimum(bitext.source.ids.lengths, bitext.target.ids.lengths)
        links = Links.of([(k, k) for k in range(n if n <= self.max_length else 0)] for n in lengths.tolist())
        return Links(links.offsets, links.source, links.target, np.full(len(links.source), 0.75, np.float32))

    def check_params(self) -> None: ...

    def pair_scores(self, bitext: Bitext) -> None: ...

    def save(self, path: str | Path) -> None:
        store.save(path, kind="diagonal", options=self.options_, arrays={"seen": np.array([self.seen])}, meta={})

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Diagonal:
        aligner = cls(**saved.options)
        aligner.seen = int(saved.arrays["seen"][0])
        aligner._learn(Bitext.of([]))
        return aligner


@pytest.fixture
def diagonal(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """The calls of the stand-in, which takes the place of the aligner."""
    monkeypatch.setattr(tasks, "HMMAligner", Diagonal, raising=False)
    monkeypatch.setattr(cache, "cold", lambda job: False)  # its kernels are not the real ones
    monkeypatch.setitem(store.KINDS, "diagonal", f"{__name__}:Diagonal")
    Diagonal.calls.clear()
    yield Diagonal.calls


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Four pairs: one with an empty side, one too long for `--max-length 3`."""
    write(tmp_path / "source", "a b\n\nc\nd e f g\n")
    write(tmp_path / "target", "A B\nX\nC\nD E F G\n")
    return tmp_path


LINES = "0-0 1-1\n\n0-0\n0-0 1-1 2-2 3-3\n"


def test_links_go_to_stdout_or_a_file(isogloss: Call, diagonal: Any, text: Path) -> None:
    answer = isogloss("align", text / "source", text / "target")
    assert answer.status == 0 and answer.out == LINES
    assert "4 pairs, 7 links, 1 skipped (1 empty: line 2)" in answer.err and "pairs/s" in answer.err
    answer = isogloss("align", text / "source", text / "target", "-o", text / "links", "--scores", "--quiet")
    assert answer == (0, "", "")
    assert (
        text / "links"
    ).read_text() == "0-0:0.7500 1-1:0.7500\n\n0-0:0.7500\n0-0:0.7500 1-1:0.7500 2-2:0.7500 3-3:0.7500\n"
    assert diagonal[-2] == ("fit", 4, str(text / "links.checkpoint"), False)
    assert isogloss("align", text / "source", text / "target", "-o", "-", "--quiet").out == LINES


def test_options_reach_the_aligner(isogloss: Call, diagonal: Any, text: Path) -> None:
    files = text / "source", text / "target", "-q"
    isogloss("align", *files)
    assert diagonal[0] == ("new", {"threshold": "auto", "max_length": 1000})
    diagonal.clear()
    given = "--constraint none --iterations 3 --threshold 0.3 --symmetrise union --decode viterbi --keep-case --seed 7"
    answer = isogloss("align", *files, *given.split(), "--threads", 1, "--max-length", 3, "--lexicon", text / "source")
    assert answer == (0, "0-0 1-1\n\n0-0\n\n", "")
    expected = {
        "constraint": "none",
        "iterations": 3,
        "threshold": 0.3,
        "symmetrise": "union",
        "decode": "viterbi",
        "lowercase": False,
        "seed": 7,
        "threads": 1,
        "max_length": 3,
        "lexicon": str(text / "source"),
    }
    assert diagonal[0] == ("new", expected)
    isogloss("align", *files, "--threshold", "points")
    assert diagonal[-3][1]["threshold"] == "points"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--threshold", "1.5"], "a number above 0 and below 1"),
        (["--threshold", "high"], "a number above 0 and below 1"),
        (["--constraint", "fair"], "'none', 'agreement', 'bijective', 'symmetric'"),
        (["--iterations", "-1"], "--iterations"),
        (["--json"], "-o"),
        (["--resume"], "-o"),
        (["-o", "/dev/null", "--resume"], "not a file"),
        (["--scores", "--links-format", "giza"], "GIZA"),
        (["--model", "m", "--save", "n"], "one of the two"),
        (["--model", "m", "--constraint", "none"], "--constraint is for training"),
        (["--model", "m", "--keep-case"], "--keep-case is for training"),
        (["--model", "m", "--aligner", "hmm"], "--aligner is for training"),
        (["--model", "m", "--resume", "-o", "x"], "trains nothing"),
        (["--model", "nowhere"], "no such saved model"),
        (["--save", "no/where/model"], "no folder"),
        (["-o", "no/where/links"], "no folder"),
        (["--columns", "first"], "two values"),
        (["--gold", "nothing"], "no such file"),
        (["--nothing"], "--nothing"),
    ],
)
def test_wrong_usage(isogloss: Call, diagonal: Any, text: Path, arguments: list[str], word: str) -> None:
    answer = isogloss("align", text / "source", text / "target", *arguments)
    assert answer.status == 2 and answer.out == "" and word in answer.err and answer.err.count("\n") == 1
    assert not any(call[0] == "fit" for call in diagonal)


def test_an_input_is_never_overwritten(isogloss: Call, diagonal: Any, text: Path) -> None:
    os.symlink(text / "source", text / "link")
    for path in (text / "source", text / "link"):
        answer = isogloss("align", text / "source", text / "target", "-o", path)
        assert answer.status == 2 and "read and written" in answer.err
    assert (text / "source").read_text().startswith("a b\n")


def test_summary_for_programs(isogloss: Call, diagonal: Any, text: Path) -> None:
    gold = write(text / "gold", "0-0\n\n")  # of the first two pairs
    files = text / "source", text / "target", "-o", text / "links", "--max-length", 3
    answer = isogloss("align", *files, "--json", "--gold", gold, "--save", text / "model")
    found = json.loads(answer.out)
    assert (found["pairs"], found["links"], found["skipped"]) == (4, 3, 2)
    assert found["skipped_lines"] == {"empty": [2], "too long": [4]}
    assert found["objective"] == [-2.0, -1.0] and found["threshold"] == 0.5 and found["version"] == __version__
    assert found["seconds"] > 0 and found["peak_memory_mb"] > 10 and len(found["data_hash"]) == 64
    assert found["options"]["max_length"] == 3 and found["model"] == str(text / "model")
    assert found["score"]["n"] == 2 and found["score"]["precision"] == 50 and found["score"]["recall"] == 100
    assert "1 empty: line 2; 1 longer than 3 words (--max-length): line 4" in answer.err
    again = json.loads(isogloss("align", *files, "--json", "--quiet").out)
    assert again["data_hash"] == found["data_hash"]


def test_score_right_away(isogloss: Call, diagonal: Any, text: Path) -> None:
    gold = write(text / "gold", "0-0\n\n")
    line = "precision 50.00, recall 100.00, f1 66.67, AER = 33.33"
    answer = isogloss("align", text / "source", text / "target", "-o", text / "links", "--gold", gold)
    assert answer.status == 0 and answer.out.startswith(line)
    answer = isogloss("align", text / "source", text / "target", "--gold", gold, "--quiet")
    assert answer.out == LINES and answer.err.startswith(f"isogloss: {line}")
    isogloss("align", text / "source", text / "target", "-q", "-o", text / "links", "--save", text / "model")
    streamed = "--model", text / "model", "--chunk", 1
    answer = isogloss("align", text / "source", text / "target", "-o", text / "links", "--gold", gold, *streamed)
    assert answer.out.startswith(line)
    for more in ((), streamed):
        answer = isogloss("align", text / "source", text / "target", "--gold", write(text / "long", "\n" * 9), *more)
        assert answer.status == 1 and "long has 9 lines but" in answer.err
        answer = isogloss("align", text / "source", text / "target", "--gold", write(text / "off", "0-9\n"), *more)
        assert answer.status == 1 and "off, line 1: link 0-9" in answer.err


def test_a_model_is_applied_part_by_part(isogloss: Call, diagonal: Any, text: Path) -> None:
    isogloss("align", text / "source", text / "target", "--save", text / "model")
    diagonal.clear()
    files = "align", text / "source", text / "target", "--model", text / "model"
    assert isogloss(*files, "--chunk", 3, "--quiet") == (0, LINES, "")
    assert [call for call in diagonal if call[0] in ("fit", "predict")] == [("predict", 3), ("predict", 1)]
    answer = isogloss(*files, "-o", text / "naacl", "--links-format", "naacl", "--chunk", 3, "--max-length", 2)
    assert (
        text / "naacl"
    ).read_text() == "1 1 1 S\n1 2 2 S\n3 1 1 S\n" and "1 longer than 2 words (--max-length): line 4" in answer.err
    empty = write(text / "empty", "")
    assert isogloss("align", empty, empty, "--model", text / "model", "-q").out == ""


def test_chunks_are_learnt_one_after_the_other(isogloss: Call, diagonal: Any, text: Path) -> None:
    files = "align", text / "source", text / "target", "-o", text / "links", "--chunk", 3
    answer = isogloss(*files, "--save", text / "model")
    assert answer.status == 0 and (text / "links").read_text() == LINES
    steps = [call[:2] for call in diagonal if call[0] != "new"]
    assert steps == [("fit", 3), ("update", 1), ("predict", 3), ("predict", 1)]
    assert store.read(text / "model").arrays["seen"].tolist() == [4]
    assert sorted(path.name for path in text.iterdir()) == ["links", "model", "source", "target"]
    answer = isogloss("align", "-", "--chunk", 3)
    assert answer.status == 2 and "read once" in answer.err


def test_a_stopped_run_in_chunks_goes_on(
    isogloss: Call, diagonal: Any, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ["align", text / "source", text / "target", "-o", text / "links", "--chunk", 1]

    def stop(self: Diagonal, bitext: Bitext, *, progress: Any = None) -> Diagonal:
        if bitext.line_of(0) == 3:
            raise KeyboardInterrupt
        return update(self, bitext, progress=progress)

    update = Diagonal.update
    monkeypatch.setattr(Diagonal, "update", stop)
    answer = isogloss(*files)
    assert answer.status == 130 and "keeps the model of 2 parts" in answer.err and "--resume" in answer.err
    assert not (text / "links").exists()
    monkeypatch.setattr(Diagonal, "update", update)
    answer = isogloss(*files, "--resume", "--seed", 3)
    assert answer.status == 2 and "seed was None and is 3" in answer.err
    assert "without --chunk" not in answer.err and "with --chunk" in isogloss(*files[:-2], "--resume").err
    diagonal.clear()
    answer = isogloss(*files, "--resume", "--save", text / "model")
    assert answer.status == 0 and (text / "links").read_text() == LINES
    assert [call for call in diagonal if call[0] in ("fit", "update")] == [("update", 1)] * 2
    assert store.read(text / "model").arrays["seen"].tolist() == [4]
    assert not (text / "links.checkpoint").exists()


def test_a_changed_text_is_not_resumed(
    isogloss: Call, diagonal: Any, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ["align", text / "source", text / "target", "-o", text / "links", "--chunk", 2]
    with monkeypatch.context() as patch:
        patch.setattr(Diagonal, "update", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(5))
        assert isogloss(*files).status == 130
    before = (text / "source").read_text()
    write(text / "source", "z" + before)
    answer = isogloss(*files, "--resume")
    assert answer.status == 2 and "the text has changed" in answer.err
    write(text / "links.checkpoint" / "run.json", "{")
    answer = isogloss(*files, "--resume")
    assert answer.status == 1 and "damaged" in answer.err
    assert isogloss(*files).status == 0 and not (text / "links.checkpoint").exists()


def test_interrupted_reading_leaves_nothing(isogloss: Call, diagonal: Any, text: Path) -> None:
    stopped = Diagonal.predict
    try:
        Diagonal.predict = lambda *_: os.kill(os.getpid(), signal.SIGTERM)  # type: ignore[assignment, method-assign]
        answer = isogloss("align", text / "source", text / "target", "-o", text / "links")
    finally:
        Diagonal.predict = stopped  # type: ignore[method-assign]
    assert answer.status == 130 and "Traceback" not in answer.err
    assert sorted(path.name for path in text.iterdir()) == ["source", "target"]


def test_full_disk_and_memory(isogloss: Call, diagonal: Any, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = isogloss("align", text / "source", text / "target", "-o", "/dev/full")
    assert answer.status == 1 and "disk is full" in answer.err and answer.err.count("isogloss:") == 1

    def too_much(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Diagonal, "fit_predict", too_much)
    answer = isogloss("align", text / "source", text / "target", "-o", text / "links")
    assert answer.status == 1 and "--chunk" in answer.err and not (text / "links").exists()


# The aligner itself --------------------------------------------------------------------------------------------------

SOURCE, TARGET, GOLD = (samples.path("en-de", what) for what in ("source", "target", "gold"))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the links and the model of the English-German sample."""
    folder = tmp_path_factory.mktemp("trained")
    arguments = ["align", SOURCE, TARGET, "-o", folder / "links", "--save", folder / "model", "--scores", "--quiet"]
    assert cli.main(list(map(str, arguments))) == 0
    return folder


def test_sample_is_aligned_well(isogloss: Call, trained: Path) -> None:
    assert sorted(path.name for path in trained.iterdir()) == ["links", "model"]
    lines = (trained / "links").read_text().split("\n")
    assert len(lines) == 51 and lines[-1] == ""
    found = json.loads(isogloss("score", trained / "links", GOLD, "--json", "--calibration").out)
    assert found["aer"] < 35 and found["n"] == 50


def test_threads_and_runs_give_the_same_bytes(isogloss: Call, trained: Path, tmp_path: Path) -> None:
    for threads in (1, 2):
        isogloss("align", SOURCE, TARGET, "--scores", "--threads", threads, "-o", tmp_path / f"{threads}")
        assert (tmp_path / f"{threads}").read_bytes() == (trained / "links").read_bytes()


def test_a_sentence_has_the_same_links_in_any_company(isogloss: Call, trained: Path) -> None:
    whole = isogloss("align", SOURCE, TARGET, "--model", trained / "model", "--scores", "-q")
    parts = isogloss("align", SOURCE, TARGET, "--model", trained / "model", "--scores", "-q", "--chunk", 7)
    assert whole.status == 0 and whole == parts and whole.out.count("\n") == 50


def test_a_pipe_is_answered_line_by_line(trained: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, "align", "-", "--model", str(trained / "model"), "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(2):
            process.stdin.write(b"The house is old . ||| Das Haus ist alt .\n")
            process.stdin.flush()
            assert b"1-1" in process.stdout.readline()  # comes while the pipe is still open
        process.stdin.close()
        assert process.wait(60) == 0 and process.stdout.read() == b""


def test_pairs_in_one_file_and_compressed(isogloss: Call, trained: Path, tmp_path: Path) -> None:
    sides = (path.read_text(encoding="utf-8").splitlines() for path in (SOURCE, TARGET))
    both = "".join(f"{left} ||| {right}\n" for left, right in zip(*sides, strict=True))
    with gzip.open(tmp_path / "both.gz", "wt", encoding="utf-8") as file:
        file.write(both)
    isogloss("align", tmp_path / "both.gz", "-o", tmp_path / "links.gz", "--scores")
    expected = (trained / "links").read_bytes()
    assert gzip.decompress((tmp_path / "links.gz").read_bytes()) == expected
    command = [sys.executable, "-c", SCRIPT, "align", "-", "--scores", "--quiet"]
    done = subprocess.run(command, input=both.encode(), capture_output=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, b"")


def test_marks_and_line_ends_do_not_matter(isogloss: Call, trained: Path, tmp_path: Path) -> None:
    write(tmp_path / "source", b"\xef\xbb\xbf" + SOURCE.read_bytes())
    write(tmp_path / "target", TARGET.read_bytes().replace(b"\n", b"\r\n"))
    isogloss("align", tmp_path / "source", tmp_path / "target", "-o", tmp_path / "links", "--scores")
    assert (tmp_path / "links").read_bytes() == (trained / "links").read_bytes()


def test_odd_lines_keep_their_places(isogloss: Call, tmp_path: Path) -> None:
    """An empty pair, an empty side, a line of 5,000 words, and U+2028, which is no end of a line."""
    source, target = (path.read_text(encoding="utf-8").splitlines() for path in (SOURCE, TARGET))
    source[3] = target[3] = source[5] = ""
    source[7] = target[7] = "so " * 5000
    source[9] += " a\u2028b \u0085 c"
    write(tmp_path / "source", "\n".join(source) + "\n")
    write(tmp_path / "target", "\n".join(target))
    answer = isogloss("align", tmp_path / "source", tmp_path / "target", "-o", tmp_path / "links")
    lines = (tmp_path / "links").read_text().split("\n")
    assert answer.status == 0 and len(lines) == 51
    assert lines[3] == lines[5] == lines[7] == "" and lines[9] != ""
    assert "3 skipped (2 empty: lines 4, 6; 1 longer than 1000 words (--max-length): line 8)" in answer.err


def test_the_same_file_twice_is_said(isogloss: Call) -> None:
    answer = isogloss("align", SOURCE, SOURCE, "-q")
    assert answer.status == 0 and answer.out.startswith("0-0 1-1 2-2")
    assert answer.err.startswith("isogloss: warning: ") and "both source and target" in answer.err


def test_bad_text_is_refused(isogloss: Call, trained: Path, tmp_path: Path) -> None:
    short = write(tmp_path / "short", TARGET.read_bytes().split(b"\n", 1)[1])
    latin = write(tmp_path / "latin", b"one\nan \xe9clair\n")
    two = write(tmp_path / "two", "eins\nein Eclair\n")
    empty = write(tmp_path / "empty", "")
    for model in ((), ("--model", trained / "model")):
        rest = ("-o", tmp_path / "links", *model)
        answer = isogloss("align", SOURCE, short, *rest)
        assert answer.status == 1 and f"{SOURCE} has 50 lines but {short} has 49" in answer.err
        answer = isogloss("align", latin, two, *rest)
        assert answer.status == 1 and "latin, line 2: byte e9" in answer.err and "--encoding latin-1" in answer.err
        assert isogloss("align", SOURCE, tmp_path / "nothing", *rest).status == 2
        assert isogloss("align", SOURCE, *rest).status == 1  # no ||| in it
        assert not list(tmp_path.glob("*links*")) and not list(tmp_path.glob(".*"))
    assert isogloss("align", latin, two, "--encoding", "latin-1").status == 0
    assert isogloss("align", latin, two, "--errors", "replace").status == 0
    answer = isogloss("align", empty, empty)
    assert answer.status == 1 and "empty: is empty" in answer.err
    blank = write(tmp_path / "blank", "\n\n")
    answer = isogloss("align", blank, blank)
    assert answer.status in (0, 1) and answer.out in ("\n\n", "") and "inside Isogloss" not in answer.err


def test_bad_models_are_refused(isogloss: Call, trained: Path, tmp_path: Path) -> None:
    def apply(model: Path) -> Answer:
        return isogloss("align", SOURCE, TARGET, "--model", model)

    assert apply(tmp_path / "nothing").status == 2
    for name, change in {
        "cut": lambda folder: os.truncate(folder / "model.safetensors", 100),
        "foreign": lambda folder: write(folder / "model.json", '{"format": "other"}'),
        "text": lambda folder: write(folder / "model.json", "not json"),
        "later": lambda folder: _edit(folder / "model.json", version=99),
        "kind": lambda folder: _edit(folder / "model.json", kind="parse.tree"),
        "lost": lambda folder: (folder / "model.safetensors").unlink(),
    }.items():
        model = tmp_path / name
        shutil.copytree(trained / "model", model)
        change(model)
        answer = apply(model)
        assert answer.status == 1 and answer.out == "" and answer.err.count("\n") == 1, name
        assert name in answer.err and "inside Isogloss" not in answer.err


def _edit(path: Path, **changes: Any) -> None:
    write(path, json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("aligner", ["model1", "model2"])
def test_other_aligners(isogloss: Call, aligner: str) -> None:
    answer = isogloss("align", SOURCE, TARGET, "--aligner", aligner, "-q")
    assert answer.status == 0 and answer.out.count("\n") == 50 and answer.out.count("-") > 200


@pytest.mark.parametrize("constraint", ["none", "agreement", "bijective"])
def test_other_constraints_and_methods(isogloss: Call, constraint: str) -> None:
    files = "align", SOURCE, TARGET, "--constraint", constraint, "-q"
    posterior = isogloss(*files)
    grown = isogloss(*files, "--symmetrise", "grow-diag-final-and", "--decode", "viterbi")
    assert posterior.status == grown.status == 0 and posterior.out.count("\n") == grown.out.count("\n") == 50


def test_unknown_method_is_wrong_usage(isogloss: Call) -> None:
    answer = isogloss("align", SOURCE, TARGET, "--symmetrise", "shrink")
    assert answer.status == 2 and "shrink" in answer.err and "grow-diag" in answer.err


def test_chunks_with_the_aligner(isogloss: Call, tmp_path: Path) -> None:
    answer = isogloss("align", SOURCE, TARGET, "-o", tmp_path / "links", "--chunk", 20, "--gold", GOLD, "--json")
    assert answer.status == 0 and json.loads(answer.out)["score"]["aer"] < 50
    assert [path.name for path in tmp_path.iterdir()] == ["links"]


def test_chunks_stopped_and_resumed_give_the_same_bytes(
    isogloss: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ["align", SOURCE, TARGET, "--chunk", 15, "--scores"]
    assert isogloss(*files, "-o", tmp_path / "whole").status == 0
    update = tasks.HMMAligner.update

    def stop(self: tasks.HMMAligner, bitext: Bitext, **more: Any) -> tasks.HMMAligner:
        if bitext.line_of(0) > 30:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(self, bitext, **more)

    with monkeypatch.context() as patch:
        patch.setattr(tasks.HMMAligner, "update", stop)
        assert isogloss(*files, "-o", tmp_path / "links").status == 130
    assert isogloss(*files, "-o", tmp_path / "links", "--resume").status == 0
    assert (tmp_path / "links").read_bytes() == (tmp_path / "whole").read_bytes()


def test_links_of_a_saved_model_may_be_chosen_anew(isogloss: Call, trained: Path) -> None:
    files = "align", SOURCE, TARGET, "--model", trained / "model", "-q"
    plain = isogloss(*files).out
    assert isogloss(*files, "--threshold", "0.01").out.count("-") > plain.count("-")
    assert isogloss(*files, "--threshold", "0.99").out.count("-") < plain.count("-")
    union, both = (isogloss(*files, "--symmetrise", method).out for method in ("union", "intersection"))
    assert both.count("-") < union.count("-")
    assert isogloss(*files, "--max-length", 1).out == "\n" * 50
    for wrong in (["--symmetrise", "shrink"], ["--decode", "viterbi"], ["--threshold", "auto"]):
        answer = isogloss(*files, *wrong)
        assert answer.status == 2 and answer.err.count("\n") == 1, answer


def test_first_run_says_that_it_compiles(isogloss: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "cold", lambda job: True)
    monkeypatch.setattr(cache, "mark_warm", lambda job: None)
    words = "first use of this command: compiling kernels, about 30 s; later runs start at once"
    assert words in isogloss("align", SOURCE, TARGET).err
    assert words not in isogloss("align", SOURCE, TARGET, "-q").err


SLOW = """
import sys, time
from isogloss.cli import _common
from isogloss.tasks.align.training import Training
_common._compile_aligner = lambda: None  # where kernels are cold, it trains too, in steps that do not count
step = Training.step
def slow_step(self, state):
    print("step", file=sys.stderr, flush=True)
    time.sleep(0.3)
    return step(self, state)
Training.step = slow_step
"""


def _words_after(number: int, process: subprocess.Popen[str]) -> str:
    """Send a signal, and return what the process says before it ends."""
    assert process.stderr is not None
    process.send_signal(number)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.stderr.read()


def _stopped_in(n_steps: int, number: int, arguments: list[str]) -> tuple[int, str]:
    """Run with slow steps of training, send a signal in the n-th, and return the status and the words."""
    command = [sys.executable, "-c", SLOW + SCRIPT, *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        before = ""
        while before.count("step\n") < n_steps and (line := process.stderr.readline()):
            before += line
        words = _words_after(number, process)
    return process.returncode, words


@pytest.mark.parametrize(("number", "n_steps"), [(signal.SIGTERM, 3), (signal.SIGINT, 8)])
def test_stopped_and_resumed_gives_the_same_bytes(isogloss: Call, tmp_path: Path, number: int, n_steps: int) -> None:
    """Stopped in the iterations of Model 1, and in those of the HMM."""
    bitext = samples.synthetic(300, seed=1).bitext
    formats.write_bitext(bitext, tmp_path / "source", tmp_path / "target")
    files = ["align", str(tmp_path / "source"), str(tmp_path / "target"), "--scores", "--iterations", "5"]
    assert isogloss(*files, "-o", tmp_path / "whole", "--threads", 1).status == 0
    checkpoint = tmp_path / "links.checkpoint"
    stopped = [*files, "-o", str(tmp_path / "links")]
    status, words = _stopped_in(n_steps, number, stopped)
    assert status == 130 and "--resume" in words and "Traceback" not in words, words
    assert not (tmp_path / "links").exists() and checkpoint.exists()
    answer = isogloss(*stopped, "--resume", "--iterations", 6)
    assert answer.status == 2 and "another run" in answer.err
    assert isogloss(*stopped, "--resume").status == 0
    assert (tmp_path / "links").read_bytes() == (tmp_path / "whole").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["links", "source", "target", "whole"]


def test_stopped_while_applying_leaves_no_file(trained: Path, tmp_path: Path) -> None:
    """A pipe without an end, and nothing half-written after it."""
    command = [
        sys.executable,
        "-c",
        SCRIPT,
        "align",
        "-",
        "--model",
        str(trained / "model"),
        "-o",
        str(tmp_path / "links"),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write("The house ||| Das Haus\n")
        process.stdin.flush()
        while not list(tmp_path.glob(".links*")) and process.poll() is None:
            time.sleep(0.01)
        words = _words_after(signal.SIGTERM, process)
    assert process.returncode == 130 and words == "isogloss: stopped by SIGTERM\n"
    assert not list(tmp_path.iterdir())
