"""Taggers from a Wiktionary dictionary and raw text (Li, Graça and Taskar 2012): a row for each text, model and seed.

python -m benchmarks.quality.wikily                    all rows that are missing
python -m benchmarks.quality.wikily --only de,el       some languages
python -m benchmarks.quality.wikily --part models      some of models, coverage, bounds, raw
python -m benchmarks.quality.wikily --again            replace rows that are there
python -m benchmarks.quality.wikily --table            run nothing: write the tables of docs/tag-from-dictionary.md
python -m benchmarks.quality.wikily --choose           dev files only: what options were chosen on

Gold tags are mapped to the 12 universal tags, as the dictionaries have them. German, Spanish and Portuguese are scored
on PUD, Greek on the test file of GDT. Raw text is that of the treebanks of the language which are here, without tags:
the text that is scored, as in the paper, and beside it GSD (de, es) and the other files of GDT (el); Portuguese has PUD
alone. "raw" rows add lines of Europarl. Options were chosen on the dev files of GDT (el) and GSD (de, es); PUD and the
test file of GDT were scored with what was chosen. The names of models are those of the paper: random start, 50
iterations, its features. To these come our rules for punctuation and numerals without an entry, which the paper does
not have; "SHMM-ME, no rules" is without them. "default" is `DictionaryTagger` as it comes.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import rows
from isogloss import __version__
from isogloss.data.bitext import Text
from isogloss.data.tag_dictionary import TagDictionary
from isogloss.data.tagsets import UNIVERSAL12, to_universal12
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.tasks.tag.dictionary import DictionaryTagger, Emitting, used_types
from isogloss.tasks.tag.emissions import WordFeatures
from isogloss.tasks.tag.hmm import fit_hmm

LANGUAGES = {
    "de": ("pud/de", ("de-gsd/dev", "de-gsd/test")),
    "es": ("pud/es", ("es-gsd/dev", "es-gsd/test")),
    "pt": ("pud/pt", ()),
    "el": ("el-gdt/test", ("el-gdt/train", "el-gdt/dev")),
}
"""What is scored, and the further files whose words are read."""
CHOOSING = {
    "de": ("de-gsd/dev", ("de-gsd/test",)),
    "es": ("es-gsd/dev", ("es-gsd/test",)),
    "el": ("el-gdt/dev", ("el-gdt/train",)),
}
PAPER: dict[str, Any] = {"start": "random", "iterations": 50, "first_order": 0, "features": "paper"}
MODELS: dict[str, dict[str, Any]] = {
    "HMM": {**PAPER, "order": 1, "emissions": "table"},
    "SHMM": {**PAPER, "order": 2, "emissions": "table"},
    "HMM-ME": {**PAPER, "order": 1},
    "SHMM-ME": {**PAPER, "order": 2},
    "SHMM-ME, no rules": {**PAPER, "order": 2, "rules": False},
    "default": {},
}
REPORTED = {
    "HMM": {"de": 77.1, "es": 83.9, "pt": 79.1, "el": 73.1},
    "SHMM": {"de": 81.2, "es": 84.5, "pt": 79.9, "el": 73.1},
    "HMM-ME": {"de": 81.2, "es": 84.6, "pt": 83.7, "el": 80.1},
    "SHMM-ME": {"de": 85.8, "es": 86.4, "pt": 84.5, "el": 79.2},
    "covered TBD": {"de": 89.4, "es": 85.1, "pt": 91.5, "el": 79.7},
    "all TBD": {"de": 95.6, "es": 92.1, "pt": 91.2, "el": 87.9},
    "100 sentences": {"de": 80.9, "es": 80.1, "pt": 82.0, "el": 81.6},
}
"""Table 4 of the paper, on treebanks of CoNLL-X and CoNLL 2007."""
REPORTED["SHMM-ME, no rules"] = REPORTED["SHMM-ME"]
SEEDS = (0, 1, 2, 3, 4)
SHARES = (0.2, 0.5, 0.8)
EUROPARL_LINES = 10_000
COLUMNS = (
    "date", "machine", "version", "commit", "command", "part", "language", "text", "raw", "raw_tokens", "model",
    "options", "share", "seed", "words", "accuracy", "known", "accuracy_known", "accuracy_unknown", "gold_allowed",
    "accuracy_gold_allowed", "type_coverage", "clashes", "train_seconds", "train_cpu_seconds", "tokens_per_second",
)  # fmt: skip
KEY = ("part", "language", "raw", "model", "share", "seed")


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("wikily.csv"), COLUMNS, KEY)


def data() -> Path:
    return Path(os.environ.get("ISOGLOSS_DATA", "../shared/data"))


def read(name: str) -> Treebank:
    """A treebank with the 12 universal tags."""
    treebank = Treebank.read(data() / "treebanks" / f"{name}.conllu.gz")
    ids, tags = treebank.columns["upos"]
    names, places = np.unique([tag if tag == "_" else to_universal12(tag) for tag in tags], return_inverse=True)
    return treebank.with_columns(upos=Column(places[ids].astype(np.int32), Vocabulary(names.tolist())))


def sentences(treebank: Treebank) -> list[tuple[str, ...]]:
    return [treebank.words(s) for s in range(len(treebank))]


def europarl(language: str, lines: int) -> list[list[str]]:
    with gzip.open(data() / "bitext" / "europarl-7way" / f"{language}.txt.gz", "rt", encoding="utf-8") as file:
        return [line.split() for _, line in zip(range(lines), file, strict=False)]


class Case:
    """One language: what is scored, what is read, and its dictionary."""

    def __init__(self, language: str, chosen: dict[str, tuple[str, tuple[str, ...]]]) -> None:
        self.language, (self.name, others) = language, chosen[language]
        self.gold, self.others = read(self.name), [read(other) for other in others]
        self.raw = sentences(self.gold) + [words for other in self.others for words in sentences(other)]
        self.dictionary = TagDictionary.read(data() / "tagdict" / f"{language}.tsv.gz")

    def measure(
        self,
        part: str,
        model: str,
        options: dict[str, Any],
        *,
        dictionary: TagDictionary | None = None,
        share: float = 1.0,
        seed: int = 0,
        lines: int = 0,
        tagger: DictionaryTagger | None = None,
    ) -> dict[str, object]:
        """Learn, score once, and say what the errors are."""
        known_by = dictionary or self.dictionary
        raw = Text.of(self.raw + (europarl(self.language, lines) if lines else []))
        wall, cpu = time.perf_counter(), time.process_time()
        tagger = tagger or DictionaryTagger(known_by, seed=seed, **options).fit(raw)
        spent = time.perf_counter() - wall, time.process_time() - cpu
        wall = time.perf_counter()
        found = tagger.predict(self.gold)
        speed = self.gold.n_words / (time.perf_counter() - wall)
        row: dict[str, object] = {
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
            "command": "python -m benchmarks.quality.wikily " + " ".join(sys.argv[1:]), "part": part,
            "language": self.language, "text": self.name, "raw": f"+{lines} lines" if lines else "treebanks",
            "raw_tokens": len(raw.ids.values), "model": model, "share": share, "seed": seed,
            "options": " ".join(f"{key}={value}" for key, value in tagger.options_.items()),
            "train_seconds": spent[0], "train_cpu_seconds": spent[1], "tokens_per_second": round(speed),
        }  # fmt: skip
        row |= self.scores(found, known_by)
        print(self.language, part, model, share, seed, f"{row['accuracy']:.2f}", f"{spent[1]:.0f} s", file=sys.stderr)
        return row

    def scores(self, found: Treebank, dictionary: TagDictionary) -> dict[str, object]:
        """Accuracies of kinds of words, and the most frequent errors on words whose gold tag is not allowed."""
        forms, vocabulary = self.gold.columns["form"]
        ids, tags = self.gold.columns["upos"]
        names = np.array(tags.types)[ids]
        guessed = np.array(found.columns["upos"].vocabulary.types)[found.columns["upos"].ids]
        counted = names != "_"
        right, known = (guessed == names), dictionary.known(vocabulary)[forms]
        places = np.array([dictionary.tags.index(tag) if tag != "_" else 0 for tag in tags.types])[ids]
        allowed = dictionary.allowed(vocabulary)[forms, places]
        pairs: dict[str, int] = {}
        clash = counted & ~allowed
        for word, gold, tag in zip(forms[clash].tolist(), names[clash], guessed[clash], strict=True):
            pair = f"{vocabulary[word].lower()} {gold} as {tag}"
            pairs[pair] = pairs.get(pair, 0) + 1
        most = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:8]

        def share(some: np.ndarray, of: np.ndarray) -> float:
            return 100 * float(some[of & counted].mean()) if (of & counted).any() else float("nan")

        everything = np.ones(len(right), bool)
        return {
            "words": int(counted.sum()), "accuracy": share(right, everything), "known": share(known, everything),
            "accuracy_known": share(right, known), "accuracy_unknown": share(right, ~known),
            "gold_allowed": share(allowed, everything), "accuracy_gold_allowed": share(right, allowed),
            "type_coverage": 100 * float(dictionary.known(vocabulary)[np.unique(forms)].mean()),
            "clashes": "; ".join(f"{pair} {count}" for pair, count in most),
        }  # fmt: skip

    def bounds(self) -> dict[str, TagDictionary]:
        """Dictionaries of the treebanks: of all their words, and of those that the dictionary has as well."""
        everything = [self.gold, *self.others]
        pairs = [
            (word, tag)
            for treebank in everything
            for s in range(len(treebank))
            for word, tag in zip(treebank.words(s), treebank.strings("upos", s), strict=True)
            if tag != "_"
        ]
        full = TagDictionary.of(pairs, "universal12")
        has = {word for word, known in zip(full, self.dictionary.known(list(full), rules=False), strict=True) if known}
        return {"all TBD": full, "covered TBD": TagDictionary({word: full[word] for word in full if word in has})}

    def supervised(self, n: int, options: dict[str, Any]) -> DictionaryTagger:
        """SHMM-ME of the counts of tagged sentences, with a dictionary that allows everything."""
        few = self.others[-1].part(0, n)
        types, ids = used_types(few)
        labels = np.array([UNIVERSAL12.index(tag) for s in range(n) for tag in few.strings("upos", s)])
        features = WordFeatures.learnt(types.types, np.bincount(ids), options["features"])
        tagger = DictionaryTagger(TagDictionary({"\0": "X"}, "universal12"), rules=False, **options)
        fit = fit_hmm(
            ids, few.offsets, np.eye(12, dtype=bool)[labels], features.matrix(types.types), order=options["order"],
            iterations=10, evaluations=50,
        )  # fmt: skip
        tagger._fitted, tagger.trace_ = Emitting.of(fit, types, features), fit.trace
        return tagger


def measure_models(case: Case) -> list[tuple[dict[str, object], Any]]:
    found: list[tuple[dict[str, object], Any]] = []
    for model, options in MODELS.items():
        for seed in SEEDS if model != "default" else SEEDS[:1]:
            key = {"part": "models", "model": model, "share": 1.0, "seed": seed, "raw": "treebanks"}
            found.append((key, lambda m=model, o=options, s=seed: case.measure("models", m, o, seed=s)))
    return found


def measure_coverage(case: Case) -> list[tuple[dict[str, object], Any]]:
    found: list[tuple[dict[str, object], Any]] = []
    for model in ("SHMM-ME", "default"):
        for share in SHARES:
            for seed in SEEDS[:2]:  # of the start, and of which entries are left: both models have the same

                def run(m: str = model, share: float = share, s: int = seed) -> dict[str, object]:
                    part = case.dictionary.sample(share, seed=s)
                    return case.measure("coverage", m, MODELS[m], dictionary=part, share=share, seed=s)

                key = {"part": "coverage", "model": model, "share": share, "seed": seed, "raw": "treebanks"}
                found.append((key, run))
    return found


def measure_bounds(case: Case) -> list[tuple[dict[str, object], Any]]:
    found: list[tuple[dict[str, object], Any]] = []
    made = case.bounds()
    for name in ("covered TBD", "all TBD"):
        key = {"part": "bounds", "model": name, "share": 1.0, "seed": 0, "raw": "treebanks"}
        found.append((key, lambda n=name: case.measure("bounds", n, MODELS["SHMM-ME"], dictionary=made[n])))
    if case.others:  # tagged sentences that are not those scored
        key = {"part": "bounds", "model": "100 sentences", "share": 1.0, "seed": 0, "raw": "treebanks"}

        def run() -> dict[str, object]:
            tagger = case.supervised(100, MODELS["SHMM-ME"])
            return case.measure("bounds", "100 sentences", MODELS["SHMM-ME"], tagger=tagger)

        found.append((key, run))
    return found


def measure_raw(case: Case) -> list[tuple[dict[str, object], Any]]:
    if case.language == "el":
        return []  # Europarl is here in other languages
    found: list[tuple[dict[str, object], Any]] = []
    for model in ("SHMM-ME", "default"):
        for seed in SEEDS[:3] if model != "default" else SEEDS[:1]:
            key = {"part": "raw", "model": model, "share": 1.0, "seed": seed, "raw": f"+{EUROPARL_LINES} lines"}
            found.append((key, lambda m=model, s=seed: case.measure("raw", m, MODELS[m], seed=s, lines=EUROPARL_LINES)))
    return found


PARTS = {"models": measure_models, "coverage": measure_coverage, "bounds": measure_bounds, "raw": measure_raw}


# --- tables


def mean(found: list[rows.Row], name: str = "accuracy") -> float:
    return float(np.mean([float(row[name]) for row in found])) if found else float("nan")


def cell(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.1f}"


NAMES = list(LANGUAGES)
BOTH = ("SHMM-ME", "default")
"""Whose rows are looked at more closely."""


class Found:
    """Rows by their columns."""

    def __init__(self) -> None:
        self.every, self.used = results().read(), rows.Used()

    def __call__(self, **columns: object) -> list[rows.Row]:
        some = [row for row in self.every if all(row[name] == str(value) for name, value in columns.items())]
        for row in some:
            self.used.add(row["model"], f"seed {row['seed']}", row)
        return some


def models_table(find: Found) -> str:
    """All models beside the paper's numbers."""
    lines = [f"| | {' | '.join(NAMES)} | mean | paper: {' | '.join(NAMES)} | mean |", f"|---{'|---' * 10}|"]
    for model in (*MODELS, "covered TBD", "all TBD", "100 sentences"):
        part = "models" if model in MODELS else "bounds"
        ours = [mean(find(part=part, model=model, language=name)) for name in NAMES]
        theirs = [REPORTED.get(model, {}).get(name, float("nan")) for name in NAMES]
        cells = [cell(value) for value in (*ours, float(np.nanmean(ours)) if not np.isnan(ours).all() else np.nan)]
        cells += [cell(value) for value in (*theirs, float(np.mean(theirs)))]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines)


def coverage_table(find: Found) -> str:
    """Parts of the dictionary."""
    lines = [f"| | entries | words known (%): {' / '.join(NAMES)} | {' | '.join(NAMES)} | mean |", f"|---{'|---' * 7}|"]
    for model in BOTH:
        for share in (*SHARES, 1.0):
            part = "models" if share == 1.0 else "coverage"
            found = [find(part=part, model=model, share=f"{share:.3f}", language=name) for name in NAMES]
            tokens = " / ".join(cell(mean(some, "known")) for some in found)
            ours = [mean(some) for some in found]
            cells = " | ".join(cell(value) for value in (*ours, float(np.mean(ours))))
            lines.append(f"| {model} | {share:.0%} | {tokens} | {cells} |")
    return "\n".join(lines)


def kinds_table(find: Found) -> str:
    """Words that the dictionary has and words that it lacks."""
    wanted = ("known", "accuracy_known", "accuracy_unknown", "gold_allowed", "accuracy_gold_allowed")
    head = "| | | words known | right of these | right of others | gold tag allowed | right of these |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for model in BOTH:
        for name in NAMES:
            found = find(part="models", model=model, language=name)
            lines.append(f"| {model} | {name} | {' | '.join(cell(mean(found, each)) for each in wanted)} |")
    return "\n".join(lines)


def clashes_list(find: Found) -> str:
    found = [(name, row) for name in NAMES for row in find(part="models", model="default", language=name)]
    return "\n".join(f"* {name}: {row['clashes']}" for name, row in found)


def raw_table(find: Found) -> str:
    """Lines of Europarl beside the text that is tagged."""
    lines = ["| | tokens of raw text (de / es / pt) | de | es | pt | CPU seconds |", "|---|---|---|---|---|---|"]
    for model in BOTH:
        for part in ("models", "raw"):
            found = [find(part=part, model=model, language=name) for name in NAMES[:3]]
            size = " / ".join(f"{mean(some, 'raw_tokens'):,.0f}" if some else "" for some in found)
            seconds = " / ".join(cell(mean(some, "train_cpu_seconds")) for some in found)
            lines.append(f"| {model} | {size} | {' | '.join(cell(mean(some)) for some in found)} | {seconds} |")
    return "\n".join(lines)


TABLES = {
    "models": models_table, "coverage": coverage_table, "kinds": kinds_table, "clashes": clashes_list, "raw": raw_table,
}  # fmt: skip


def write_tables() -> None:
    """Put the tables between their markers on the docs page."""
    find = Found()
    for name, made in TABLES.items():
        rows.fill(Path("docs/tag-from-dictionary.md"), f"wikily {name}", find.used.below(made(find)))


def choose() -> None:
    """Settings on dev files, printed: nothing is kept."""
    grid = [
        {**MODELS["SHMM-ME"]}, {**MODELS["HMM-ME"]}, {**MODELS["SHMM-ME"], "restrict_support": True}, {},
        *({"iterations": n, "first_order": 0, "order": o} for n in (5, 10) for o in (1, 2)),
        {"features": "paper"}, {"start": "random"}, {"iterations": 8, "first_order": 3}, {"iterations": 50},
    ]  # fmt: skip
    for options in grid:
        found = [Case(name, CHOOSING).measure("choose", "", options)["accuracy"] for name in CHOOSING]
        print(options, *(f"{value:.2f}" for value in found), f"mean {np.mean(found):.2f}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.wikily", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="languages, such as de,el; default: all")
    parser.add_argument("--part", default="", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--models", default="", help=f"of the part models, with ; between: {'; '.join(MODELS)}")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--table", action="store_true", help="run nothing: write the tables of the docs page")
    parser.add_argument("--choose", action="store_true", help="print what settings do on dev files")
    arguments = parser.parse_args(argv)
    if arguments.table:
        write_tables()
        return
    if arguments.choose:
        choose()
        return
    file = results()
    for name in arguments.only.split(",") if arguments.only else LANGUAGES:
        case = Case(name, LANGUAGES)
        for part in arguments.part.split(",") if arguments.part else PARTS:
            for key, run in PARTS[part](case):
                if arguments.models and part == "models" and key["model"] not in arguments.models.split(";"):
                    continue
                if arguments.again or not file.is_done(language=name, **key, outdated=arguments.outdated):
                    file.put([run()])


if __name__ == "__main__":
    main()
