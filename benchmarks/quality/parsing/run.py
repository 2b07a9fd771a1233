"""One row: learn from the training part, parse the test part, and score it; each a command under the clock."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import rows, scoring
from benchmarks.clock import measure as clock
from benchmarks.quality.parsing import texts
from benchmarks.quality.parsing.models import ISOGLOSS, TAGGER
from benchmarks.quality.parsing.studies import Job, learner_of
from benchmarks.quality.parsing.texts import KEPT, TEST, Given, code_of, given, gold
from isogloss import __version__
from isogloss.data import Treebank
from isogloss.metrics import score_trees
from isogloss.metrics.parsing import SCORED

FOLDER = Path(__file__).parents[1]
KEY = ("data", "tags", "model", "options", "decode")
COLUMNS = (
    *("date", "machine", "version", "commit", "code", "system_version", "text", *KEY, "n_train", "n_test"),
    *("UAS", "UAS_low", "UAS_high", "LAS", "LAS_low", "LAS_high", "CLAS", "UPOS", "XPOS", "UFeats"),
    *("crossing", "gold_crossing"),
    *("train_seconds", "train_cpu_seconds", "train_mb", "parse_seconds", "parse_cpu_seconds", "parse_mb", "model_mb"),
    *("threads", "command", "signature"),
)
PARSER_SOURCES = ("tasks/parse", *texts.TAGGER_SOURCES)
MEBIBYTE = 1 << 20


class ParsingRows(rows.Rows):
    """Rows of parsing.csv; in those written before a column was there, it is empty."""

    def read(self) -> list[rows.Row]:
        return [dict.fromkeys(self.columns, "") | row for row in super().read()]


def results() -> rows.Rows:
    return ParsingRows(FOLDER / "parsing.csv", COLUMNS, KEY)


def merge(path: Path) -> int:
    """Take over the rows of another file, of this harness or an earlier one; how many there were."""
    found = ParsingRows(path, COLUMNS, KEY).read()
    results().put(dict[str, object](row) for row in found)
    return len(found)


def key_of(job: Job) -> dict[str, object]:
    """The columns that say which run a row is of."""
    model = job.model
    return {
        "data": job.text, "tags": job.tags, "model": model.kind, "options": model.options, "decode": model.decode,
    }  # fmt: skip


def name_of(job: Job) -> str:
    """A short name for files of a job; jobs that do not decode otherwise have the names that they always had."""
    key = {name: value for name, value in key_of(job).items() if name != "decode" or value}
    return hashlib.sha256(repr(sorted(key.items())).encode()).hexdigest()[:16]


def code(job: Job) -> str:
    """A hash of our sources that a row depends on; nothing for peers, of whom `text` says with which tags it was."""
    if job.model.kind == TAGGER:
        return code_of(*texts.TAGGER_SOURCES)
    return code_of(*PARSER_SOURCES) if job.model.kind == ISOGLOSS else ""


@cache
def commit() -> str:
    """Of the checkout when first asked."""
    return rows.commit()


def is_stale(job: Job, row: rows.Row) -> bool:
    """Whether other code of ours, another version of a peer, or other tags have made a row."""
    if texts.is_made(job.text, job.tags) and row["text"] != given(job.text, job.tags).digest:
        return True
    made, now = (version.partition("+")[0] for version in (row["system_version"], job.model.version))  # any build of it
    return row["code"] != code(job) or made != now


def are_comparable(found: Sequence[rows.Row]) -> bool:
    """Whether rows of one treebank may stand beside each other.

    All were given the same files; but peers are not run again for each tagger of ours, so that with predicted tags
    theirs may be rows of the tags of an earlier one.
    """
    ours = [row for row in found if row["model"] == ISOGLOSS]
    alike = ours if ours and all(row["tags"] == texts.PREDICTED for row in found) else found
    return len({row["text"] for row in alike}) <= 1


def measure(job: Job, threads: int, *, again: bool = False) -> dict[str, Any]:
    """The row of a job."""
    version = job.model.version  # first: a peer that is not there is left out before any work
    if job.model.kind == TAGGER:
        return _tagger(job, threads)
    files = given(job.text, job.tags)
    out = trees_of(job)
    borrowed = learner_of(job) != job
    learnt = train(learner_of(job), files, threads, version, again=again and not borrowed, any_threads=borrowed)
    place = model_of(job)
    parsed = clock(job.model.apply(files.test, job.tags, place, out, threads), threads=threads, log=place / "log.txt")
    cost = {f"train_{name}": "" if borrowed else value for name, value in _cost(learnt).items()}
    cost |= {f"parse_{name}": value for name, value in _cost(parsed).items()}
    command = job.model.shown(job.tags, dev=files.dev is not None, threads=threads)
    own = {"text": files.digest, "system_version": version, "model_mb": learnt["model_mb"], "command": command}
    return key_of(job) | scores(job, Treebank.read(out)) | cost | own | about(job, threads)


def train(
    job: Job, files: Given, threads: int, version: str, *, again: bool = False, any_threads: bool = False
) -> dict[str, Any]:
    """Learn, or find what the same system has learnt from the same text before: some learn for an hour.

    On another number of threads it is the same model, which does (`any_threads`) where its cost is not asked for.
    """
    place = model_of(job)
    done = place / "trained.json"
    made = {"code": code(job), "version": version, "text": files.digest, "threads": threads}
    if done.exists() and not again:
        kept: dict[str, Any] = json.loads(done.read_text())
        if made.items() <= (kept | {"threads": threads} if any_threads else kept).items():
            return kept
    place.mkdir(parents=True, exist_ok=True)
    done.unlink(missing_ok=True)
    cost = clock(job.model.train(files, job.tags, place, threads), threads=threads, log=place / "log.txt")
    size = sum(path.stat().st_size for path in place.rglob("model*") if path.is_file())
    size += sum(path.stat().st_size for path in (place / "model").rglob("*") if path.is_file())
    found: dict[str, Any] = made | cost | {"model_mb": size / MEBIBYTE}
    done.write_text(json.dumps(found))
    return found


def _tagger(job: Job, threads: int) -> dict[str, Any]:
    """The row of our tagger, whose tags all parsers are given."""
    cost = texts.tag(job.text, threads)
    predicted = Treebank.read(texts.tagging(job.text) / f"{TEST}.conllu.gz")
    found = scores(job, predicted)
    for name in ("UAS", "LAS"):
        found |= dict.fromkeys((name, f"{name}_low", f"{name}_high"), "")
    found |= dict.fromkeys(("crossing", "gold_crossing"), "")
    found |= {f"train_{name}": value for name, value in _cost(cost["train"]).items()}
    found |= {f"parse_{name}": value for name, value in _cost(cost["parse"]).items()}
    own = {"text": given(job.text, job.tags).digest, "system_version": __version__, "command": cost["command"]}
    return key_of(job) | found | about(job, cost["threads"]) | own | {"code": cost["code"], "CLAS": ""}


def scores(job: Job, predicted: Treebank) -> dict[str, Any]:
    """Scores in percent, with intervals for the first two."""
    score = score_trees(predicted, gold(job.text), seed=scoring.SEED, columns=SCORED)
    found: dict[str, Any] = {"n_train": len(gold(job.text, texts.TRAIN)), "n_test": score.n}
    for name in ("UAS", "LAS", "CLAS", "UPOS", "XPOS", "UFeats"):
        found[name] = score[name.lower()]
    for name in ("UAS", "LAS"):
        found[f"{name}_low"], found[f"{name}_high"] = score.intervals[name.lower()]
    return found | crossing(job.text, predicted) | {"signature": score.signature}


def crossing(text: str, predicted: Treebank) -> dict[str, float]:
    """Words whose link crosses another, in percent: as predicted, and in gold."""
    both = {"crossing": predicted, "gold_crossing": gold(text)}
    return {name: 100 * float(trees.crossing.mean()) for name, trees in both.items()}


def _cost(report: dict[str, Any]) -> dict[str, float]:
    return {"seconds": report["seconds"], "cpu_seconds": report["cpu_seconds"], "mb": report["peak_mb"]}


def about(job: Job, threads: int) -> dict[str, object]:
    return {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": commit(), "code": code(job),
        "threads": threads,
    }  # fmt: skip


def model_of(job: Job) -> Path:
    """Where the model that parses for a job is kept."""
    return KEPT / "models" / name_of(learner_of(job))


def trees_of(job: Job) -> Path:
    """Where the trees of a job are kept, for comparisons between rows."""
    folder = KEPT / "trees"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name_of(job)}.conllu"
