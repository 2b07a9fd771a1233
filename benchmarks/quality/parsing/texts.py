"""The treebanks, and what systems are given of them: plain CoNLL-U with gold tags, with predicted ones, or with none.

Every system reads the same files: ten columns, a word a line, without comments, ranges, empty nodes, enhanced links and
MISC. Heads and relations of test sentences are not in them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import isogloss
from benchmarks.clock import measure
from isogloss.data import Treebank

KEPT = Path("out/parsing")
GOLD, LEMMAS, PREDICTED, OWN = "gold", "gold+lemmas", "predicted", "own"
SETTINGS = (GOLD, PREDICTED, OWN, LEMMAS)
"""Tags and features of gold, and nothing more; those of our tagger, on training sentences by taggers that have not seen
them; the system's own, from words alone; and gold tags with gold lemmas."""
TRAIN, DEV, TEST = "train", "dev", "test"
FOLDS = 5
TAGS = ("upos", "xpos", "feats")
SOURCES = Path(isogloss.__file__).parent
TAGGER_SOURCES = ("tasks/tag", "data", "learners", "structures")


@dataclass(frozen=True)
class Source:
    """Where the parts of a treebank are; `dev` is empty where the training part is what others have for development."""

    name: str
    train: str
    dev: str
    test: str


def _whole(name: str, folder: str) -> Source:
    return Source(name, *(f"{folder}/{part}.conllu.gz" for part in (TRAIN, DEV, TEST)))


def _partut(language: str) -> Source:
    return Source(f"{language}-partut", *(f"partut/{language}.{part}.conllu.gz" for part in (TRAIN, DEV, TEST)))


def _small(name: str, folder: str) -> Source:
    return Source(name, f"{folder}/dev.conllu.gz", "", f"{folder}/test.conllu.gz")


MAIN = (
    _whole("en-ewt", "en-ewt"),
    _whole("en-lines", "en-lines"),
    _whole("el", "el-gdt"),
    _whole("hu", "hu-szeged"),
    _whole("got", "got-proiel"),
    *(_partut(language) for language in ("en", "fr", "it")),
)
"""Those over which means are taken."""
SMALL = (_small("grc", "grc-proiel"), _small("la", "la-proiel"))
"""Many crossing links; the training part is not among our corpora, and the dev part is learnt from."""
TEXTS = {source.name: source for source in (*MAIN, *SMALL)}


def folder_of_treebanks() -> Path:
    """The folder of treebanks behind ISOGLOSS_DATA."""
    folder = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "treebanks"
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not there: set ISOGLOSS_DATA to the folder of corpora.")
    return folder


@cache
def gold(text: str, part: str = TEST) -> Treebank:
    """A part of a treebank as it was published."""
    return Treebank.read(folder_of_treebanks() / getattr(TEXTS[text], part))


# --- what systems are given


@dataclass(frozen=True)
class Given:
    """Files for a system, and a hash of them: rows with the same one are of the same text with the same tags."""

    train: Path
    dev: Path | None
    test: Path
    digest: str


def given(text: str, tags: str) -> Given:
    """The files of a treebank in a setting, made if they are not there."""
    found = _places(text, tags)
    for part, path in found.items():
        if not path.exists():
            _write(path, plain(_tagged(text, part, tags), tags, part))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in found.values())).hexdigest()[:8]
    return Given(found[TRAIN], found.get(DEV), found[TEST], digest)


def is_made(text: str, tags: str) -> bool:
    """Whether the files of a setting are there."""
    return all(path.exists() for path in _places(text, tags).values())


def _places(text: str, tags: str) -> dict[str, Path]:
    folder = KEPT / "text" / text / tags.replace("+", "-")
    return {part: folder / f"{part}.conllu" for part in parts_of(text)}


def parts_of(text: str) -> list[str]:
    return [part for part in (TRAIN, DEV, TEST) if getattr(TEXTS[text], part)]


def plain(treebank: Treebank, tags: str, part: str) -> bytes:
    """Ten columns with what a setting lets systems see of a part.

    Examples
    --------
    >>> tree = Treebank.of([[("Birds", "NOUN", 2, "nsubj"), ("sing", "VERB", 0, "root")]])
    >>> print(plain(tree, GOLD, TEST).decode().splitlines()[0].replace("\\t", " "))
    1 Birds _ NOUN _ _ _ _ _ _
    """
    seen = {"form", *TAGS}
    if part != TEST:
        seen |= {"deprel"}
    elif tags == OWN:
        seen -= set(TAGS)
    if tags == LEMMAS or (tags == OWN and part != TEST):
        seen |= {"lemma"}
    lines = []
    for k in range(len(treebank)):
        words = treebank.words(k)
        blank = ("_",) * len(words)
        form, lemma, upos, xpos, feats, deprel = (
            treebank.strings(name, k) if name in seen else blank for name in ("form", "lemma", *TAGS, "deprel")
        )
        heads: Sequence[object] = blank
        if part != TEST:
            heads = treebank.heads[treebank.offsets[k] : treebank.offsets[k + 1]].tolist()
        for i, row in enumerate(zip(form, lemma, upos, xpos, feats, heads, deprel, strict=True)):
            lines.append("\t".join((str(i + 1), *map(str, row), "_", "_")))
        lines.append("")
    return ("\n".join(lines) + "\n").encode() if lines else b""


def _tagged(text: str, part: str, tags: str) -> Treebank:
    if tags != PREDICTED:
        return gold(text, part)
    tag(text)
    return Treebank.read(tagging(text) / f"{part}.conllu.gz")


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_bytes(data)
    unfinished.rename(path)


# --- predicted tags


def tagging(text: str) -> Path:
    """Where the predicted tags of a treebank are, with `cost.json`, which is written last."""
    return KEPT / "tags" / text


def columns_to_predict(treebank: Treebank) -> list[str]:
    """Those of upos, xpos and feats that say something: more than one value."""
    return [name for name in TAGS if len(set(treebank.columns[name].ids.tolist())) > 1]


def tag(text: str, threads: int = 1) -> Mapping[str, Any]:
    """Learn our tagger by its command, tag dev and test with it, and the training part in folds; what it cost."""
    place = tagging(text)
    done = place / "cost.json"
    if done.exists():
        kept: dict[str, Any] = json.loads(done.read_text())
        return kept
    place.mkdir(parents=True, exist_ok=True)
    program = command_line()
    train = folder_of_treebanks() / TEXTS[text].train
    names = columns_to_predict(gold(text, TRAIN))
    options = ["--column", ",".join(names), "--threads", str(threads)]
    made = code_of(*TAGGER_SOURCES)
    log = place / "log.txt"
    command: list[str | Path] = [program, "tag", "train", train, "--save", place / "tagger", "-q", *options]
    learnt = measure(command, threads=threads, log=log)
    applied: dict[str, float] = {}
    for part in parts_of(text):
        if part != TRAIN:
            out = place / f"{part}.conllu.gz"
            source = folder_of_treebanks() / getattr(TEXTS[text], part)
            command = [program, "tag", "apply", place / "tagger", source, "-o", out, "-q", "--threads", str(threads)]
            applied = measure(command, threads=threads, log=log)  # of test, which is the last
    in_folds = _in_folds(text, names, threads)
    _write(place / f"{TRAIN}.conllu.gz", gzip.compress(in_folds.to_bytes(), mtime=0))
    cost = {
        "columns": names, "code": made, "threads": threads, "train": learnt, "parse": applied,
        "command": f"isogloss tag train TRAIN --column {','.join(names)} --save MODEL; isogloss tag apply MODEL TEST",
    }  # fmt: skip
    _write(done, json.dumps(cost).encode())
    return cost


def _in_folds(text: str, names: Sequence[str], threads: int) -> Treebank:
    from isogloss.tasks.tag import Tagger, jackknife

    return jackknife(gold(text, TRAIN), Tagger(list(names)), FOLDS, threads=threads)


def forget_stale_tags() -> Iterator[str]:
    """Forget predicted tags that another tagger than this one has made; the treebanks that had them."""
    now = code_of(*TAGGER_SOURCES)
    for text in TEXTS:
        done = tagging(text) / "cost.json"
        if done.exists() and json.loads(done.read_text())["code"] != now:
            done.unlink()
            for path in _places(text, PREDICTED).values():
                path.unlink(missing_ok=True)
            yield text


@cache
def code_of(*folders: str) -> str:
    """A short hash of our sources: two rows with the same one were made by the same code."""
    paths = [path for folder in folders for path in sorted((SOURCES / folder).rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:8]


def command_line() -> Path:
    """Our command line, in the environment that runs this."""
    return Path(sys.executable).with_name("isogloss")
