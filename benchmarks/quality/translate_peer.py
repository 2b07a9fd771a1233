"""Moses as a peer of `benchmarks.quality.translate`: our models in its formats, tuned and run as its own programs.

MOSES is a folder with `moses`, `kbmira` and `extractor`. Both decoders get the same phrase pairs with the same scores
and orientations (those of the sentences at hand), the same language model, the same beam and limits; Moses tunes with
its own batch MIRA, as its `mert-moses.pl --batch-mira` does, for as many rounds as we do.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import clock
from benchmarks.systems import NotHere
from isogloss.data import Text
from isogloss.metrics import score_translations
from isogloss.tasks.translate import Translator
from isogloss.tasks.translate.table import ORIENTATIONS, SCORES

PROGRAMS = ("moses", "kbmira", "extractor")
FEATURES = {
    "LexicalReordering0": [0.3] * len(ORIENTATIONS), "Distortion0": [0.3], "LM0": [0.5], "WordPenalty0": [-1.0],
    "PhrasePenalty0": [0.2], "TranslationModel0": [0.2] * len(SCORES),
}  # fmt: skip
"""The features that Moses tunes, with the weights it begins with."""
PATIENCE = 3
"""Rounds without a better one before tuning stops, as ours does."""
Weights = dict[str, list[float]]


def programs() -> dict[str, Path]:
    folder = os.environ.get("MOSES")
    if not folder or any(not (Path(folder) / name).exists() for name in PROGRAMS):
        raise NotHere(f"Moses: set MOSES to a folder with {', '.join(PROGRAMS)} (github.com/moses-smt/mosesdecoder).")
    return {name: (Path(folder) / name).absolute() for name in PROGRAMS}


def escaped(words: str) -> str:
    """Words as Moses reads them, to which a bar means something."""
    return words.replace("|", "&#124;")


@dataclass(frozen=True)
class Decoded:
    """What Moses wrote for a text, and what it cost beside starting."""

    lines: list[str]
    cpu_seconds: float
    peak_mb: float


class Moses:
    """Our models for some sentences, in a folder that Moses works in."""

    def __init__(self, translator: Translator, texts: Sequence[Text], place: Path) -> None:
        self.programs, self.translator, self.place = programs(), translator, place.absolute()
        self.place.mkdir(parents=True, exist_ok=True)
        self.search = (
            "-s",
            str(translator.beam),
            "-search-algorithm",
            "1",
            "-cube-pruning-pop-limit",
            str(translator.pops),
        )
        self._write_tables(texts)
        translator.language_model_.write_arpa(str(self.place / "lm.arpa"))

    def _write_tables(self, texts: Sequence[Text]) -> None:
        """The phrase pairs that these sentences may use."""
        table = self.translator.table_
        found = np.concatenate([table.spans(text)[0][:, 2:] for text in texts])
        arrays = table.arrays
        with open(self.place / "phrases.txt", "w") as phrases, open(self.place / "turns.txt", "w") as turns:
            for first, last in np.unique(found[found[:, 0] < found[:, 1]], axis=0).tolist():
                phrase = int(np.searchsorted(arrays["pair_starts"], first, "right")) - 1
                start, end = arrays["source_starts"][phrase : phrase + 2]
                source = " ".join(table.source.types[word] for word in arrays["source_words"][start:end].tolist())
                for pair in range(first, last):
                    sides = f"{escaped(source)} ||| {escaped(' '.join(table.target_of(pair)))} |||"
                    scores = " ".join(f"{value:.7g}" for value in np.exp(arrays["scores"][pair].astype(float)))
                    orders = " ".join(f"{value:.7g}" for value in np.exp(table.orientation_of(pair)))
                    phrases.write(f"{sides} {scores}\n")
                    turns.write(f"{sides} {orders}\n")

    def _configure(self, weights: Weights) -> Path:
        own, path = self.translator, self.place / "moses.ini"
        shown = "\n".join(f"{name}= {' '.join(map(str, values))}" for name, values in weights.items())
        path.write_text(
            "[input-factors]\n0\n[mapping]\n0 T 0\n"
            f"[distortion-limit]\n{own.distortion_limit}\n[feature]\nUnknownWordPenalty\nWordPenalty\nPhrasePenalty\n"
            f"PhraseDictionaryMemory name=TranslationModel0 num-features={len(SCORES)} path={self.place}/phrases.txt "
            f"input-factor=0 output-factor=0 table-limit={own.table_limit}\n"
            f"LexicalReordering name=LexicalReordering0 num-features={len(ORIENTATIONS)} "
            f"type=wbe-msd-bidirectional-fe-allff input-factor=0 output-factor=0 path={self.place}/turns.txt\n"
            f"Distortion\nKENLM name=LM0 factor=0 path={self.place}/lm.arpa order={own.order}\n"
            f"[weight]\nUnknownWordPenalty0= 1\n{shown}\n"
        )  # fmt: skip
        return path

    def _run(self, weights: Weights, source: Path, *more: str) -> tuple[list[str], dict[str, float]]:
        out = self.place / "out.txt"
        command = [
            self.programs["moses"], "-f", self._configure(weights), "-i", source, "-threads", "1", "-v", "0",
            *self.search, *more,
        ]  # fmt: skip
        cost = clock.measure([str(part) for part in command], out, 1, self.place / "log.txt")
        lines = out.read_text(encoding="utf-8").split("\n")[:-1]
        return [" ".join(line.replace("&#124;", "|").split()) for line in lines], cost

    def _put(self, name: str, lines: Sequence[str]) -> Path:
        path = self.place / name
        path.write_text("".join(escaped(line) + "\n" for line in lines), encoding="utf-8")
        return path

    def tune(self, source: Text, references: Sequence[str], seed: int) -> tuple[Weights, float, int, float]:
        """Weights of the round that was best on dev, BLEU there, rounds, and CPU seconds."""
        own, tried = self.translator, []
        place, right = self._put("dev.txt", _lines(source)), self._put("dev.right", references)
        weights = {name: list(values) for name, values in FEATURES.items()}
        files: list[str] = []
        spent = 0.0
        for run in range(own.iterations):
            nbest = self.place / f"{run}.nbest"
            lines, cost = self._run(weights, place, "-n-best-list", str(nbest), str(own.nbest), "distinct")
            spent += cost["cpu_seconds"]
            if run == 0:  # programs that tune go by the order of n-best lists
                with open(nbest, encoding="utf-8") as file:
                    fields = file.readline().split(" ||| ")[2].split()
                weights = {name: weights[name] for name in (each[:-1] for each in fields if each.endswith("="))}
            found = score_translations(lines, list(references), tokenise="none", bootstrap=0).bleu
            tried.append((found, {name: list(values) for name, values in weights.items()}))
            best_run = max(range(len(tried)), key=lambda k: tried[k][0])
            if run + 1 == own.iterations or run - best_run >= PATIENCE:
                break
            data = [self.place / f"{run}.features", self.place / f"{run}.scores"]
            before = _cpu()
            self._call("extractor", "--sctype", "BLEU", "--scconfig", "case:true", "-r", right, "-n", nbest,
                       "--scfile", data[1], "--ffile", data[0])  # fmt: skip
            files += ["--ffile", str(data[0]), "--scfile", str(data[1])]
            dense = [f"{name}= {value}\n" for name, values in weights.items() for value in values]
            (self.place / "dense").write_text("".join(dense))
            self._call("kbmira", "--sctype", "BLEU", "--dense-init", self.place / "dense", *files, "-o",
                       self.place / "tuned", "-r", str(seed))  # fmt: skip
            spent += _cpu() - before
            values = np.array([float(line.split()[1]) for line in (self.place / "tuned").read_text().splitlines()])
            values /= np.abs(values).sum()
            at = 0
            for name, old in weights.items():
                weights[name], at = values[at : at + len(old)].tolist(), at + len(old)
        best, chosen = max(tried, key=lambda pair: pair[0])
        return chosen, best, len(tried), spent

    def _call(self, program: str, *arguments: object) -> None:
        with open(self.place / "log.txt", "w") as log:
            subprocess.run([self.programs[program], *map(str, arguments)], stderr=log, stdout=log, check=True)

    def translate(self, weights: Weights, source: Text) -> Decoded:
        """All sentences; what starting costs is found with one alone, and taken off."""
        lines = _lines(source)
        _, start = self._run(weights, self._put("one.txt", lines[:1]))
        found, cost = self._run(weights, self._put("in.txt", lines))
        return Decoded(found, cost["cpu_seconds"] - start["cpu_seconds"], cost["peak_mb"])


def _lines(text: Text) -> list[str]:
    return [" ".join(text.tokens(k)) for k in range(len(text))]


def _cpu() -> float:
    times = os.times()
    return times.children_user + times.children_system
