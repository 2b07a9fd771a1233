"""The systems that are compared, each run as a program of its own: ours, UDPipe 1 and MaltParser.

Peers are no dependencies of ours. PARSING_PEERS is a Python that has ufal.udpipe (`pip install ufal.udpipe`), MALT_JAR
the jar of MaltParser 1.9 with its `lib` folder beside it, and java is on the PATH; a peer that is absent is left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.quality.parsing.texts import OWN, PREDICTED, Given, command_line
from isogloss import __version__

ISOGLOSS, TAGGER, UDPIPE, MALT = "isogloss", "isogloss-tag", "udpipe", "malt"
KINDS = (ISOGLOSS, TAGGER, UDPIPE, MALT)
DRIVER = Path(__file__).with_name("udpipe.py")
DECODER = Path(__file__).with_name("decode.py")
MALT_OPTIONS = "-a nivreeager -l liblinear"
JAVA_MEMORY = "-Xmx3g"
Command = Sequence[str | Path]


class NotHere(Exception):
    """A system that this machine, or this version, does not have; the message says what to do."""


@dataclass(frozen=True)
class Model:
    """A system with options: flags of its command line, or for UDPipe those of its parser (none is as it comes).

    Ours can also parse otherwise than it learnt: `decode` is "rounds=1", "decoder=map" or "constraint=not-2", or
    several of them with commas between. The model is then that of the same options without it.
    """

    kind: str
    options: str = ""
    decode: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.options}".strip() + (f" [{self.decode}]" if self.decode else "")

    @property
    def version(self) -> str:
        """The version of the system; NotHere if it is not there."""
        if self.kind == UDPIPE:
            return udpipe_version(peers())
        return _malt_version(_jar()) if self.kind == MALT else __version__

    def commands(self, given: Given, tags: str, place: Path, out: Path, threads: int) -> tuple[Command, Command]:
        """To learn in the folder `place`, and to parse the test file into `out`."""
        return self.train(given, tags, place, threads), self.apply(given.test, tags, place, out, threads)

    def train(self, given: Given, tags: str, place: Path, threads: int) -> Command:
        if self.kind == ISOGLOSS:
            dev: list[str | Path] = [] if given.dev is None else ["--dev", given.dev]
            own = ["--tags", "predicted" if tags == OWN else "gold", *self.options.split()]
            save: list[str | Path] = ["--save", place / "model", "--threads", str(threads), "-q"]
            return [command_line(), "parse", "train", given.train, *dev, *save, *own]
        if self.kind == UDPIPE:
            tagger = "" if tags == OWN else "none"
            return [peers(), DRIVER, "train", given.train, given.dev or "", place / "model", tagger, self.options]
        learn: list[str | Path]
        learn = ["-c", "model", "-w", place, "-i", given.train, "-m", "learn", *self._malt_options.split()]
        return [*_malt(), *learn]

    def apply(self, test: Path, tags: str, place: Path, out: Path, threads: int) -> Command:
        if self.kind == ISOGLOSS and self.decode:
            return [sys.executable, DECODER, place / "model", test, out, self.decode, str(threads)]
        if self.kind == ISOGLOSS:
            return [command_line(), "parse", "apply", place / "model", test, "-o", out, "--threads", str(threads), "-q"]
        if self.kind == UDPIPE:
            return [peers(), DRIVER, "apply", place / "model", test, out, "" if tags == OWN else "none"]
        return [*_malt(), "-c", "model", "-w", place, "-i", test, "-o", out, "-m", "parse"]

    def shown(self, tags: str, *, dev: bool, threads: int) -> str:
        """The commands with plain names for files, so that rows read the same on every machine."""
        more = f" {self.options}" if self.options else ""
        if self.kind == ISOGLOSS:
            held_out = " --dev DEV" if dev else ""
            own = f" --tags {PREDICTED}" if tags == OWN else ""
            learn = f"isogloss parse train TRAIN{held_out} --save MODEL{own}{more} --threads {threads}"
            if self.decode:
                return f"{learn}; python decode.py MODEL TEST OUT {self.decode} {threads}"
            return f"{learn}; isogloss parse apply MODEL TEST -o OUT --threads {threads}"
        if self.kind == UDPIPE:
            tagger = "default" if tags == OWN else "none"
            held_out = ", DEV" if dev else ""
            return (
                f"Trainer.train(TRAIN{held_out}, tokenizer=none, tagger={tagger}, parser={self.options or 'default'})"
            )
        java = "java -jar maltparser.jar -c MODEL"
        return f"{java} -m learn -i TRAIN {self._malt_options}; {java} -m parse -i TEST -o OUT"

    @property
    def _malt_options(self) -> str:
        """CoNLL-U, for which MaltParser has features of UPOS, unless the options say otherwise."""
        chosen = self.options if "-if " in self.options else f"-if conllu {self.options}".strip()
        return f"{MALT_OPTIONS} {chosen}"


# --- peers


def peers() -> str:
    python = os.environ.get("PARSING_PEERS")
    if not python:
        raise NotHere("udpipe: set PARSING_PEERS to a python that has it (pip install ufal.udpipe)")
    return python


def _jar() -> Path:
    jar = os.environ.get("MALT_JAR")
    if not jar or not Path(jar).is_file():
        raise NotHere("malt: set MALT_JAR to maltparser-1.9.0.jar, with its lib folder beside it")
    if shutil.which("java") is None:
        raise NotHere("malt: no java on the PATH")
    return Path(jar)


def _malt() -> list[str | Path]:
    return ["java", JAVA_MEMORY, "-jar", _jar()]


@cache
def udpipe_version(python: str) -> str:
    ask = "import importlib.metadata as m, ufal.udpipe; print(m.version('ufal.udpipe'))"
    found = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    if found.returncode:
        raise NotHere("udpipe: the python of PARSING_PEERS has no ufal.udpipe (pip install ufal.udpipe)")
    return found.stdout.strip()


@cache
def _malt_version(jar: Path) -> str:
    with zipfile.ZipFile(jar) as file:
        manifest = file.read("META-INF/MANIFEST.MF").decode()
    found = re.search(r"Implementation-Version:\s*(\S+)", manifest)
    return found[1] if found else "?"
