"""Names in two languages, found apart and together, and by models of one language that learnt from a bitext.

python -m benchmarks.quality.multiview                    all rows that are missing
python -m benchmarks.quality.multiview --systems full     some systems
python -m benchmarks.quality.multiview --pairs 2000       with fewer pairs of the bitext; rows are of their own
python -m benchmarks.quality.multiview --again            replace rows that are there
python -m benchmarks.quality.multiview --carried          names of a language without annotation, in two ways
python -m benchmarks.quality.multiview --dev              retrained models on CoNLL-2002 testa and CoNLL04 dev
python -m benchmarks.quality.multiview --table            run nothing: write the tables of docs/multiview.md

The English model learns from the names of CoNLL04 (910 sentences), the Spanish one from CoNLL-2002; weak models learn
from the same text without looks and shapes of words. The bilingual model learns from the first 5,000 pairs of
Europarl, and retrained models learn from their first text and from these and 5,000 more as it annotates them
(`retrained`), or as their own full model does (`self-retrained`). All are scored on the 781 parallel sentences of
Europarl with names that are not among the 40,000 pairs of that bitext; the aligner learns from the words of 20,000.
`--carried` has no model of the language that is scored: names of Spanish are carried into English and German, those of
English into Spanish and German, over the links of 3,000 pairs (`transfer.names.project_names`).
Models and names that were found are kept in out/multiview, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import rows
from benchmarks.corpora import data_folder
from isogloss import __version__
from isogloss.data import Bitext, Mentions, Text
from isogloss.data.joining import join_mentions
from isogloss.data.name_types import shared_type
from isogloss.data.sentence_pairs import SentencePairs
from isogloss.metrics import compare_entities, score_entities
from isogloss.tasks.align import HMMAligner
from isogloss.tasks.extract import EntityTagger
from isogloss.tasks.joint import Multiview
from isogloss.tasks.joint.retraining import retrained
from isogloss.tasks.joint.weakening import learn_weaker
from isogloss.tasks.transfer.names import project_names

PAGE = Path("docs/multiview.md")
OUT = Path("out/multiview")
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "side", "pairs", "system", "test", "f1", "low", "high",
    "precision", "recall", "seconds",
)  # fmt: skip
PAIRED = ("date", "commit", "data", "side", "pairs", "system", "against", "delta", "low", "high", "p")
SIDES = ("en", "es")
PAIRS = 5000
CARRIED_PAIRS = 3000
PIECE = 1000
"""Pairs that are annotated at a time."""
ALIGNED = 20_000
CARRIED = (("es", "en"), ("es", "de"), ("en", "de"), ("en", "es"))
"""From one language to another."""
METHODS = ("hard", "expectations")
RETRAINED = ("self-retrained", "retrained")
JOINT: dict[str, dict[str, Any]] = {
    "bilingual with weak": {"rule": "weak", "decoder": "best"},
    "bilingual": {"rule": "full", "decoder": "best"},
    "product": {"rule": "product", "decoder": "best"},
    "uniform": {"rule": "uniform", "decoder": "best"},
    "most nodes": {"rule": "full", "decoder": "nodes"},
}
"""Systems that look at both sides, with the options of `Multiview.predict`."""
SYSTEMS = ("weak", "full", *JOINT, *RETRAINED)
TITLES = {
    "weak": "weak models", "full": "full models", "bilingual with weak": "bilingual with weak (equation 2)",
    "product": "product (equation 3)", "uniform": "uniform (equation 4)",
    "bilingual": "bilingual with full (equation 5)",
    "most nodes": "equation 5, most right names in expectation",
    "self-retrained": "self-retrained", "retrained": "retrained",
}  # fmt: skip
AGAINST = (
    ("bilingual with weak", "weak"), ("bilingual", "full"), ("bilingual", "product"), ("bilingual", "uniform"),
    ("most nodes", "bilingual"), ("retrained", "self-retrained"), ("retrained", "full"), ("self-retrained", "full"),
)  # fmt: skip


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("multiview.csv"), COLUMNS, ("data", "side", "pairs", "system"))


def compared() -> rows.Rows:
    place = Path(__file__).with_name("multiview-paired.csv")
    return rows.Rows(place, PAIRED, ("data", "side", "pairs", "system", "against"))


# --- text


def europarl(language: str, start: int, stop: int) -> Text:
    """Some lines of the bitext."""
    with gzip.open(data_folder() / "bitext" / "europarl-7way" / f"{language}.txt.gz", "rt", encoding="utf-8") as file:
        return Text.of([line.rstrip("\n") for line in islice(file, start, stop)])


def bitext(languages: tuple[str, ...], start: int, stop: int) -> Bitext:
    return Bitext(*(europarl(language, start, stop) for language in languages))


def parallel_names() -> dict[str, Mentions]:
    """The sentences of Europarl with names in three languages that are not in the bitext."""
    found = {
        language: Mentions.read(data_folder() / "ner" / "europarl-parallel" / f"{language}.conll")
        for language in ("en", "es", "de")
    }
    known = np.ones(len(found["en"]), np.bool_)
    for language, text in found.items():
        with gzip.open(
            data_folder() / "bitext" / "europarl-7way" / f"{language}.txt.gz", "rt", encoding="utf-8"
        ) as file:
            lines = {"".join(line.split()) for line in file}
        known &= np.array(["".join(text.words(s)) in lines for s in range(len(text))])
    return {language: text.take(np.flatnonzero(~known)) for language, text in found.items()}


def with_names(language: str, part: str) -> Mentions:
    """Annotated text: CoNLL04 for English, CoNLL-2002 for Spanish."""
    if language == "en":
        return Mentions.read(data_folder() / "relations" / "conll04" / f"{part}.txt.gz")
    return Mentions.read(data_folder() / "ner" / "conll2002-es" / f"esp.{'testa' if part == 'dev' else part}.gz")


def as_shared(text: Mentions) -> Mentions:
    """Types by the names of CoNLL-2002: Peop is PER."""
    return text.with_entities(
        [[(begin, end, shared_type(kind)) for begin, end, kind in text.entities(s)] for s in range(len(text))]
    )


# --- models, each learnt once for a commit


@dataclass(frozen=True)
class Study:
    """Models of two languages and what they find, kept in a folder."""

    languages: tuple[str, str]
    pairs: int
    commit: str

    @property
    def place(self) -> Path:
        return OUT / self.commit

    def kept(self, name: str, kind: Any, make: Callable[[], Any]) -> Any:
        """A model, loaded or made."""
        path = self.place / name
        if path.exists():
            return kind.load(path)
        self.place.mkdir(parents=True, exist_ok=True)
        began = time.process_time()
        made = make()
        made.save(path)
        path.with_suffix(".seconds").write_text(f"{time.process_time() - began:.3f}")
        print(f"{name}: {time.process_time() - began:.0f} s", flush=True)
        return made

    def full(self, language: str) -> EntityTagger:
        return self.kept(f"full-{language}", EntityTagger, lambda: EntityTagger().fit(with_names(language, "train")))

    def weak(self, language: str) -> EntityTagger:
        text = with_names(language, "train")
        return self.kept(f"weak-{language}", EntityTagger, lambda: learn_weaker(self.full(language), text))

    @cached_property
    def aligner(self) -> HMMAligner:
        name = "-".join(("aligner", *self.languages))
        return self.kept(name, HMMAligner, lambda: HMMAligner().fit(bitext(self.languages, 0, ALIGNED)))

    @cached_property
    def both(self) -> Multiview:
        given = [self.full(language) for language in self.languages]
        weak = dict(zip(("source_weak", "target_weak"), (self.weak(each) for each in self.languages), strict=True))
        text = bitext(self.languages, 0, self.pairs)
        return self.kept(
            "-".join(("both", *self.languages, str(self.pairs))), Multiview,
            lambda: Multiview("entities").fit(text, *given, aligner=self.aligner, **weak),
        )  # fmt: skip

    def annotated(self, system: str) -> list[Mentions]:
        """Twice as many pairs of the bitext as `both` learnt from, by it or by each full model; kept piece by piece."""
        found: list[list[Mentions]] = [[], []]
        for start in range(0, 2 * self.pairs, PIECE):
            name = f"annotated-{system}-{'-'.join(self.languages)}-{self.pairs}-{start}"
            paths = [self.place / f"{name}.{language}.conll" for language in self.languages]
            if not all(path.exists() for path in paths):
                text = bitext(self.languages, start, min(start + PIECE, 2 * self.pairs))
                made = (
                    self.both.predict(text, **JOINT["bilingual"])
                    if system == "retrained"
                    else SentencePairs(*(self.full(each).predict(own) for each, own in
                                         zip(self.languages, (text.source, text.target), strict=True)))
                )  # fmt: skip
                for path, own in zip(paths, (made.source, made.target), strict=True):
                    own.write(path)
                print(name, flush=True)
            for own, path in zip(found, paths, strict=True):
                own.append(Mentions.read(path))
        return [join_mentions(own) for own in found]

    def again(self, system: str, side: int) -> EntityTagger:
        """A model of one language that learnt from its text and from the bitext."""
        language = self.languages[side]

        def learn() -> Any:
            return retrained(self.full(language), with_names(language, "train"), self.annotated(system)[side])

        return self.kept(f"{system}-{language}-{self.pairs}", EntityTagger, learn)

    def found(self, system: str, text: dict[str, Mentions]) -> list[Mentions]:
        """The names of both sides by a system."""
        sides = [text[language] for language in self.languages]
        if system in JOINT:
            pairs = self.both.predict(SentencePairs(*sides), **JOINT[system])
            return [pairs.source, pairs.target]  # type: ignore[list-item]
        models = [
            getattr(self, system)(language) if system in ("weak", "full") else self.again(system, side)
            for side, language in enumerate(self.languages)
        ]
        return [model.predict(own) for model, own in zip(models, sides, strict=True)]

    def paths(self, system: str) -> list[Path]:
        """Where the names that a system finds are kept."""
        own = f"{system}-{self.pairs}".replace(" ", "-")
        return [self.place / f"{own}-{'-'.join(self.languages)}.{language}.conll" for language in self.languages]

    def has(self, system: str) -> bool:
        """Whether they are there."""
        return all(path.exists() for path in self.paths(system))

    def names(self, system: str, text: dict[str, Mentions]) -> list[Mentions]:
        """The same, kept in files, with types by their shared names."""
        paths = self.paths(system)
        if not all(path.exists() for path in paths):
            began = time.process_time()
            for path, names in zip(paths, self.found(system, text), strict=True):
                as_shared(names).write(path)
            paths[0].with_suffix(".seconds").write_text(f"{time.process_time() - began:.3f}")
        return [Mentions.read(path) for path in paths]

    def seconds(self, system: str) -> float:
        return float(self.paths(system)[0].with_suffix(".seconds").read_text())


def measure(study: Study, systems: list[str], again: bool) -> None:
    """Rows of systems, and what differs by more than chance."""
    text, data = parallel_names(), "-".join(study.languages)
    there: dict[str, list[Mentions]] = {}
    for system in systems:
        columns = {"data": data, "pairs": study.pairs, "system": system}
        if not again and results().has(**columns):
            continue
        there[system] = study.names(system, text)
        results().put(_rows(study, system, there[system], text))
        print(system, [score_entities(own, text[each], bootstrap=0).f1
                       for own, each in zip(there[system], study.languages, strict=True)], flush=True)  # fmt: skip
    for first, second in AGAINST:
        if first not in there and second not in there:
            continue
        if all(study.has(system) for system in (first, second)):
            for system in (first, second):
                there.setdefault(system, study.names(system, text))
            compared().put(_paired(study, (first, second), (there[first], there[second]), text))


def _rows(study: Study, system: str, found: list[Mentions], text: dict[str, Mentions]) -> Iterator[dict[str, Any]]:
    for own, language in zip(found, study.languages, strict=True):
        score = score_entities(own, text[language])
        low, high = score.interval
        yield {
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": study.commit,
            "command": "python -m benchmarks.quality.multiview", "data": "-".join(study.languages), "side": language,
            "pairs": study.pairs, "system": system, "test": len(own), "f1": score.f1, "low": low, "high": high,
            "precision": score.precision, "recall": score.recall, "seconds": study.seconds(system),
        }  # fmt: skip


def _paired(
    study: Study, names: tuple[str, str], found: tuple[list[Mentions], list[Mentions]], text: dict[str, Mentions]
) -> Iterator[dict[str, Any]]:
    for language, first, second in zip(study.languages, *found, strict=True):
        told = compare_entities(first, second, text[language])
        yield {
            "date": rows.today(), "commit": study.commit, "data": "-".join(study.languages), "side": language,
            "pairs": study.pairs, "system": names[0], "against": names[1], "delta": told.delta,
            "low": told.interval[0], "high": told.interval[1], "p": told.p_value,
        }  # fmt: skip


def carry(study: Study, again: bool) -> None:
    """Rows of names that were carried into a language without annotation, by both methods."""
    text = parallel_names()
    source, target = study.languages
    data = f"{source} to {target}"
    if not again and all(results().has(data=data, pairs=study.pairs, system=method) for method in METHODS):
        return
    there = {}
    for method in METHODS:
        place = study.place / f"{method}-{source}-{target}-{study.pairs}"

        def learn(method: str = method) -> EntityTagger:
            return project_names(
                bitext(study.languages, 0, study.pairs), study.full(source), aligner=study.aligner, method=method
            )

        found = as_shared(study.kept(place.name, EntityTagger, learn).predict(text[target]))
        there[method], score = found, score_entities(found, text[target])
        low, high = score.interval
        results().put([{
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": study.commit,
            "command": "python -m benchmarks.quality.multiview --carried", "data": data, "side": target,
            "pairs": study.pairs, "system": method, "test": len(found), "f1": score.f1, "low": low, "high": high,
            "precision": score.precision, "recall": score.recall,
            "seconds": float(place.with_suffix(".seconds").read_text()),
        }])  # fmt: skip
        print(data, method, f"{score.f1:.2f}", flush=True)
    told = compare_entities(there["expectations"], there["hard"], text[target])
    compared().put([{
        "date": rows.today(), "commit": study.commit, "data": data, "side": target, "pairs": study.pairs,
        "system": "expectations", "against": "hard", "delta": told.delta, "low": told.interval[0],
        "high": told.interval[1], "p": told.p_value,
    }])  # fmt: skip


def on_dev(study: Study) -> None:
    """F1 of retrained models on other text of the kind that the full models learnt from."""
    for side, language in enumerate(study.languages):
        gold = with_names(language, "dev")
        models = {"weak": study.weak(language), "full": study.full(language)}
        models |= {system: study.again(system, side) for system in RETRAINED}
        for name, model in models.items():
            print(language, name, f"{score_entities(model.predict(gold), gold, bootstrap=0).f1:.2f}", flush=True)


# --- the page


def table() -> str:
    """F1, precision and recall of every system on both sides."""
    used = rows.Used()
    lines = [
        "| | " + " | ".join(f"{side} F1 | P | R" for side in SIDES) + " |",
        "|---|" + "---:|---:|---:|" * len(SIDES),
    ]
    for system in SYSTEMS:
        cells = []
        for side in SIDES:
            for row in results().find(data="-".join(SIDES), side=side, pairs=PAIRS, system=system):
                spread = f"{float(row['f1']):.1f} ({float(row['low']):.1f} to {float(row['high']):.1f})"
                cells.append(" | ".join([spread, *(f"{float(row[key]):.1f}" for key in ("precision", "recall"))]))
                used.add(TITLES[system], side, row)
        if cells:
            lines.append(f"| {TITLES[system]} | " + " | ".join(cells) + " |")
    return used.below("\n".join(lines))


def paired_table() -> str:
    """Differences with intervals, by paired bootstrap."""
    used = rows.Used()
    lines = ["| | " + " | ".join(SIDES) + " |", "|---|" + "---:|" * len(SIDES)]
    for first, second in AGAINST:
        cells = []
        for side in SIDES:
            for row in compared().find(data="-".join(SIDES), side=side, pairs=PAIRS, system=first, against=second):
                spread = f"{float(row['low']):+.1f} to {float(row['high']):+.1f}"
                cells.append(f"{float(row['delta']):+.1f} ({spread}, p = {float(row['p']):.3f})")
                used.add(f"{first}, {second}", side, row)
        if cells:
            lines.append(f"| {first} less {second} | " + " | ".join(cells) + " |")
    return used.below("\n".join(lines))


def carried_table() -> str:
    """F1 of both ways to carry names, and their difference."""
    used = rows.Used()
    lines = ["| | hard: F1 | P | R | expectations: F1 | P | R | difference |", "|---|" + "---:|" * 7]
    for source, target in CARRIED:
        data, cells = f"{source} to {target}", []
        for method in METHODS:
            for row in results().find(data=data, pairs=CARRIED_PAIRS, system=method):
                cells += [f"{float(row[key]):.1f}" for key in ("f1", "precision", "recall")]
                used.add(method, data, row)
        for row in compared().find(data=data, pairs=CARRIED_PAIRS, system="expectations"):
            spread = f"{float(row['low']):+.1f} to {float(row['high']):+.1f}"
            lines.append(f"| {data} | {' | '.join(cells)} | {float(row['delta']):+.1f} ({spread}) |")
    return used.below("\n".join(lines))


def main() -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--systems", default=";".join(SYSTEMS), help="with semicolons")
    asked.add_argument("--pairs", type=int, help=f"{PAIRS} if not given, and {CARRIED_PAIRS} with --carried")
    for flag in ("again", "carried", "dev", "table"):
        asked.add_argument(f"--{flag}", action="store_true")
    given = asked.parse_args()
    if given.table:
        rows.fill(PAGE, "multiview names", table())
        rows.fill(PAGE, "multiview paired", paired_table())
        rows.fill(PAGE, "carried names", carried_table())
        return
    study = Study(SIDES, given.pairs or PAIRS, rows.commit())
    if given.carried:
        for languages in CARRIED:
            carry(Study(languages, given.pairs or CARRIED_PAIRS, study.commit), given.again)
        return
    if given.dev:
        on_dev(study)
        return
    measure(study, given.systems.split(";"), given.again)


if __name__ == "__main__":
    main()
