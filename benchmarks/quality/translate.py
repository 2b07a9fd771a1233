"""Translators: ours beside Moses, and what a better alignment is worth.

python -m benchmarks.quality.translate                       rows that are missing
python -m benchmarks.quality.translate --only cs-en,de-en    some texts
python -m benchmarks.quality.translate --systems moses       a system (isogloss, moses)
python -m benchmarks.quality.translate --links fast_align    links of another aligner (see `LINKS`)
python -m benchmarks.quality.translate --dev                 variants of options, on dev sentences alone
python -m benchmarks.quality.translate --again               replace rows that are there
python -m benchmarks.quality.translate --compare             paired differences of what is kept under out/
python -m benchmarks.quality.translate --table               run nothing: fill the tables of the page

Weights are tuned on dev with three seeds, and every translator translates the test sentences once. Text is cut at
spaces as it is in the files, for learning and for BLEU. With --dev, weights are tuned on the first half of the dev
sentences and the other half is scored. CPU seconds are of one thread; those of decoding leave starting and loading
aside for both systems. EFLOMAL, FAST_ALIGN and MOSES name the peers' programs.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import re
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from benchmarks import corpora, rows, systems
from benchmarks.quality.translate_peer import Moses
from isogloss import __version__
from isogloss.data import Bitext, Links
from isogloss.data.formats import read_links
from isogloss.metrics import compare_translations, score_links, score_translations
from isogloss.tasks.align.symmetrise import symmetrise_links
from isogloss.tasks.translate import Translator

OUT = Path("out/translate")
SEEDS = (0, 1, 2)
JOINED, VITERBI = ("--symmetrise", "grow-diag-final-and"), ("--decode", "viterbi")
POINTS = ("--decode", "posterior", "--threshold", "points")
"""As many links in each direction as Viterbi has, those with the highest posteriors."""
LINKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "default": (systems.ISOGLOSS, ()),
    "symmetric": (systems.ISOGLOSS, ("--constraint", "symmetric")),
    "agreement, points": (systems.ISOGLOSS, ("--constraint", "agreement", *JOINED, *POINTS)),
    "agreement, Viterbi": (systems.ISOGLOSS, ("--constraint", "agreement", *JOINED, *VITERBI)),
    "symmetric, points": (systems.ISOGLOSS, ("--constraint", "symmetric", *JOINED, *POINTS)),
    "symmetric, Viterbi": (systems.ISOGLOSS, ("--constraint", "symmetric", *JOINED, *VITERBI)),
    "one-way, points": (systems.ISOGLOSS, ("--constraint", "none", *JOINED, *POINTS)),
    "one-way, Viterbi": (systems.ISOGLOSS, ("--constraint", "none", *JOINED, *VITERBI)),
    "eflomal": (systems.EFLOMAL, ()),
    "fast_align": (systems.FAST_ALIGN, ()),
}  # fmt: skip
"""Who finds the links, with which options; links of two directions are joined by grow-diag-final-and."""
BESIDE = [
    *(("isogloss default", f"isogloss {name}") for name in LINKS if name != "default"),
    ("isogloss default", "moses default"),
    *((f"isogloss {kind}, points", f"isogloss {kind}, Viterbi") for kind in ("agreement", "symmetric", "one-way")),
]
"""What is compared on the same sentences: what the first has beyond the second."""
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {}, "without orientation": {"orientation": False}, "monotone": {"reordering": "monotone"},
    "swaps": {"reordering": "swap"}, "pops 500": {"pops": 500}, "n-best 50": {"nbest": 50},
    "phrases of 7": {"max_length": 7}, "order 5": {"order": 5}, "cap 0.01": {"cap": 0.01},
}  # fmt: skip
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "part", "system", "links", "variant", "seed", "pairs",
    "phrase_pairs", "ngrams", "model_mb", "AER", "rounds", "dev", "train_cpu_seconds", "bleu", "bleu_low", "bleu_high",
    "chrf", "signature", "words", "cpu_seconds", "words_per_second", "peak_mb",
)  # fmt: skip
KEY = ("data", "part", "system", "links", "variant", "seed")
PAIRED = ("date", "commit", "data", "first", "second", "seed", "difference", "low", "high", "p")
PAGE = Path("docs/translate.md")


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("translate.csv"), COLUMNS, KEY)


def differences() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("translate-paired.csv"), PAIRED, ("data", "first", "second", "seed"))


# --- texts


@dataclass(frozen=True, eq=False)
class Corpus:
    """A language pair with the lines of its parts, and gold links that are appended to the training text, if any."""

    folder: str
    source: str
    target: str
    parts: dict[str, tuple[str, int, int | None]]
    """Of each part: the first name of its files, the first line, and one after the last."""
    gold: tuple[str, tuple[str, str], str, bool] | None = None
    """Folder, names of source and target, split, and whether its links have to be turned round."""

    def lines(self, part: str, language: str) -> list[str]:
        name, first, last = self.parts[part]
        path = corpora.data_folder() / "bitext" / self.folder / f"{name}.{language}.gz"
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            return [" ".join(line.split()) for line in islice(file, first, last)]

    @cache  # noqa: B019 - a handful of texts, for the whole run
    def bitext(self, part: str) -> Bitext:
        return Bitext.of(list(zip(self.lines(part, self.source), self.lines(part, self.target), strict=True)))

    def appended(self) -> list[tuple[str, str]]:
        """The pairs with gold links."""
        if self.gold is None:
            return []
        folder, names, split, _ = self.gold
        sides = [_lines(corpora.data_folder() / folder / f"{split}.{name}.txt") for name in names]
        return [(a.lower(), b.lower()) for a, b in zip(*sides, strict=True)]

    def right(self) -> Links:
        assert self.gold is not None
        folder, _, split, turned = self.gold
        found = read_links(corpora.data_folder() / folder / f"{split}.gold.txt", index_base=0)
        return Links.of([row.T for row in found]) if turned else found


MULTI30K = {"train": ("train", 0, None), "dev": ("val", 0, None), "test": ("test2016", 0, None)}
TEXTS = {
    **{f"{a}-{b}": Corpus("multi30k", a, b, MULTI30K) for a, b in (("de", "en"), ("fr", "en"), ("en", "de"))},
    "cs-en": Corpus("multi30k", "cs", "en", MULTI30K, ("alignment/en-cs.czenali", ("tgt", "src"), "test", True)),
    "hansards": Corpus(
        "hansards-en-fr", "fr", "en",
        {"train": ("train", 0, 30_000), "dev": ("train", 200_000, 201_000), "test": ("train", 201_000, 203_000)},
        ("bitext/hansards-en-fr", ("tgt", "src"), "test", True),
    ),
}  # fmt: skip
TITLES = {"de-en": "de-en", "fr-en": "fr-en", "cs-en": "cs-en", "en-de": "en-de", "hansards": "fr-en, Hansards"}


@dataclass(frozen=True)
class Joined:
    """The text that aligners get, as `systems.System.run` wants it."""

    name: str

    @property
    def place(self) -> Path:
        return OUT / self.name / "links"

    @property
    def source(self) -> Path:
        return self.place / "source.txt"

    @property
    def target(self) -> Path:
        return self.place / "target.txt"

    @property
    def joint(self) -> Path:
        return self.place / "joint.txt"

    def assemble(self) -> None:
        if self.joint.exists():
            return
        self.place.mkdir(parents=True, exist_ok=True)
        corpus = TEXTS[self.name]
        sides = corpus.lines("train", corpus.source), corpus.lines("train", corpus.target)
        pairs = [*zip(*sides, strict=True), *corpus.appended()]
        self.source.write_text("".join(a + "\n" for a, _ in pairs), encoding="utf-8")
        self.target.write_text("".join(b + "\n" for _, b in pairs), encoding="utf-8")
        self.joint.write_text("".join(f"{a} ||| {b}\n" for a, b in pairs), encoding="utf-8")


@cache
def links_of(data: str, name: str) -> tuple[Links, float | None]:
    """Links of the training text, and AER of the appended pairs."""
    program, options = LINKS[name]
    system, text, corpus = systems.find(program, options), Joined(data), TEXTS[data]
    run = system.kept(text, 1) or system.run(text, 1)  # type: ignore[arg-type]
    found = read_links(run.forward, format="pharaoh", index_base=0)
    if run.backward is not None:
        shapes = [
            (len(a.split()), len(b.split())) for a, b in zip(_lines(text.source), _lines(text.target), strict=True)
        ]
        found = symmetrise_links(
            found, read_links(run.backward, format="pharaoh", index_base=0), shapes, "grow-diag-final-and"
        )
    n = len(corpus.bitext("train"))
    aer = None
    if corpus.gold is not None:
        aer = score_links(found.part(n, len(found)), corpus.right()).aer
    return found.part(0, n), aer


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


# --- measuring


def output(data: str, system: str, links: str, seed: int) -> Path:
    return OUT / data / f"{system}-{links.replace(', ', '-')}-{seed}.txt"


def parts(data: str, dev: bool) -> tuple[Bitext, Bitext]:
    """What is tuned on, and what is scored."""
    corpus = TEXTS[data]
    if not dev:
        return corpus.bitext("dev"), corpus.bitext("test")
    whole = corpus.bitext("dev")
    return whole[: len(whole) // 2], whole[len(whole) // 2 :]


def plain(text: Bitext) -> list[str]:
    return [" ".join(row) for row in text.target]


_MODELS: dict[Any, Any] = {}


def fitted(data: str, links: str, variant: str, seed: int, tune: Bitext | None) -> tuple[Translator, float]:
    """A translator and its CPU seconds; what does not depend on the seed is made once."""
    options = {**VARIANTS[variant], "threads": 1}
    found, _ = links_of(data, links)
    key = (data, links, variant)
    began = time.process_time()
    if key not in _MODELS:
        _MODELS.clear()
        _MODELS[key] = Translator(**options, iterations=0).fit(TEXTS[data].bitext("train"), tune, links=found), 0.0
        _MODELS[key] = _MODELS[key][0], time.process_time() - began
    base, spent = _MODELS[key]
    began = time.process_time()
    made = copy.copy(base).set_params(iterations=Translator().iterations, seed=seed)
    if tune is not None:
        made.tune(tune)
    return made, spent + time.process_time() - began


def measure(data: str, system: str, links: str, variant: str, seed: int, dev: bool) -> dict[str, object]:
    tune, test = parts(data, dev)
    right = plain(test)
    if system == "isogloss":
        made, train_seconds = fitted(data, links, variant, seed, tune)
        made.predict(test.source[:2])
        began = time.process_time()
        lines = made.predict(test.source)
        seconds = time.process_time() - began
        best, rounds = float(made.tuning_.max()), len(made.tuning_)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    else:
        made, _ = fitted(data, links, variant, seed, None)
        moses = Moses(made, [tune.source, test.source], OUT / data / f"moses-{links}")
        weights, best, rounds, train_seconds = moses.tune(tune.source, plain(tune), seed)
        decoded = moses.translate(weights, test.source)
        lines, seconds, peak = decoded.lines, decoded.cpu_seconds, decoded.peak_mb
    if not dev:
        place = output(data, system, links, seed)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    score = score_translations(lines, right, tokenise="none")
    table, model = made.table_, made.language_model_
    aer = links_of(data, links)[1]
    row: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": "python -m benchmarks.quality.translate", "data": data, "part": "dev" if dev else "test",
        "system": system, "links": links, "variant": variant, "seed": seed, "pairs": len(TEXTS[data].bitext("train")),
        "phrase_pairs": len(table), "ngrams": len(model), "model_mb": (table.nbytes + model.nbytes) / 1e6,
        "AER": "" if aer is None else aer, "rounds": rounds, "dev": best, "train_cpu_seconds": train_seconds,
        "bleu": score.bleu, "bleu_low": score.interval[0], "bleu_high": score.interval[1], "chrf": score.chrf,
        "signature": score.signature, "words": test.source.n_words, "cpu_seconds": seconds,
        "words_per_second": test.source.n_words / max(seconds, 1e-9), "peak_mb": peak,
    }  # fmt: skip
    print(
        f"{data} {system} {links} {variant} seed {seed}: BLEU {score.bleu:.2f} (dev {best:.2f}, {rounds} rounds), "
        f"chrF {score.chrf:.2f}, {row['words_per_second']:.0f} words a second, tuned in {train_seconds:.0f} CPU s",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    return row


def compare(data: str) -> None:
    """What is kept, seed by seed."""
    right = plain(TEXTS[data].bitext("test"))
    for first, second in BESIDE:
        for seed in SEEDS:
            places = [output(data, *name.split(" ", 1), seed) for name in (first, second)]
            if not all(place.exists() for place in places):
                continue
            found = compare_translations(_lines(places[0]), _lines(places[1]), right, tokenise="none")
            row: dict[str, object] = {
                "date": rows.today(), "commit": rows.commit(), "data": data, "first": first, "second": second,
                "seed": seed, "difference": found.delta, "low": found.interval[0], "high": found.interval[1],
                "p": f"{found.p_value:.2g}",
            }  # fmt: skip
            differences().put([row])


# --- the tables of the page


def of(data: str, system: str, links: str = "default", variant: str = "default", part: str = "test") -> list[rows.Row]:
    return results().find(data=data, system=system, links=links, variant=variant, part=part)


def spread(found: Sequence[rows.Row], column: str) -> str:
    """A mean with its deviation, and how many tunings it is of where some are missing."""
    values = [float(row[column]) for row in found]
    told = f"{mean(values):.2f} ± {stdev(values):.2f}" if len(values) > 1 else f"{values[0]:.2f}"
    return told if len(values) == len(SEEDS) else f"{told} ({len(values)} tuning{'s' if len(values) > 1 else ''})"


def average(found: Sequence[rows.Row], column: str) -> float:
    return mean(float(row[column]) for row in found)


def paired(data: str, second: str, first: str = "isogloss default") -> tuple[float, float] | None:
    """The mean difference over seeds, and the largest p of one."""
    found = differences().find(data=data, first=first, second=second)
    if not found:
        return None
    return average(found, "difference"), max(float(row["p"]) for row in found)


def told(difference: tuple[float, float] | None) -> str:
    return "" if difference is None else f"{difference[0]:+.2f} (p {difference[1]:.2g})"


def system_table() -> str:
    used = rows.Used()
    lines = [
        "| text | BLEU | of Moses | difference | chrF | of Moses | words a second | of Moses |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for data, title in TITLES.items():
        ours, theirs = of(data, "isogloss"), of(data, "moses")
        if not ours:
            continue
        for row in (*ours, *theirs):
            used.add("", title, row)
        columns = [spread(ours, "bleu"), spread(theirs, "bleu") if theirs else "", told(paired(data, "moses default"))]
        columns += [f"{average(each, 'chrf'):.1f}" if each else "" for each in (ours, theirs)]
        columns += [f"{average(each, 'words_per_second'):,.0f}" if each else "" for each in (ours, theirs)]
        lines.append(f"| {title} | {' | '.join(columns)} |")
    return used.below("\n".join(lines))


def size_table() -> str:
    used = rows.Used()
    lines = ["| text | sentence pairs | phrase pairs | n-grams | model | peak memory | CPU seconds to learn |"]
    lines.append("|---|---|---|---|---|---|---|")
    for data, title in TITLES.items():
        for row in of(data, "isogloss")[:1]:
            used.add("", title, row)
            lines.append(
                f"| {title} | {int(row['pairs']):,} | {int(row['phrase_pairs']):,} | {int(row['ngrams']):,} "
                f"| {float(row['model_mb']):.0f} MB | {float(row['peak_mb']):.0f} MB "
                f"| {float(row['train_cpu_seconds']):.0f} |"
            )
    return used.below("\n".join(lines))


def links_table() -> str:
    used = rows.Used()
    lines = ["| text | links | AER | phrase pairs | BLEU | default − these |", "|---|---|---|---|---|---|"]
    for data in ("cs-en", "hansards"):
        for name in LINKS:
            found = of(data, "isogloss", name)
            if not found:
                continue
            for row in found:
                used.add(TITLES[data], name, row)
            difference = "" if name == "default" else told(paired(data, f"isogloss {name}"))
            lines.append(
                f"| {TITLES[data]} | {name} | {float(found[0]['AER']):.1f} | {int(found[0]['phrase_pairs']):,} "
                f"| {spread(found, 'bleu')} | {difference} |"
            )
    return used.below("\n".join(lines))


def decoding_table() -> str:
    """Links by posteriors beside Viterbi links."""
    used = rows.Used()
    head, lines = ["| text | training | points | Viterbi | difference |", "|---|---|---|---|---|"], []
    for data in ("cs-en", "hansards"):
        for kind, said in (
            ("agreement", "agreement (products)"),
            ("symmetric", "agreement (projected)"),
            ("one-way", "none"),
        ):
            names = [f"{kind}, {how}" for how in ("points", "Viterbi")]
            found = [of(data, "isogloss", name) for name in names]
            if all(found):
                for name, each in zip(names, found, strict=True):
                    for row in each:
                        used.add(TITLES[data], name, row)
                scores = " | ".join(f"{spread(each, 'bleu')} (AER {float(each[0]['AER']):.1f})" for each in found)
                beside = told(paired(data, *(f"isogloss {name}" for name in reversed(names))))
                lines.append(f"| {TITLES[data]} | {said} | {scores} | {beside} |")
    return used.below("\n".join([*head, *lines])) if lines else ""


def variants_table() -> str:
    used = rows.Used()
    texts = [data for data in TITLES if of(data, "isogloss", part="dev")]
    lines = ["| variant | " + " | ".join(f"{TITLES[data]} | words a second" for data in texts) + " |"]
    lines.append("|---" * (1 + 2 * len(texts)) + "|")
    for variant in VARIANTS:
        found = [of(data, "isogloss", variant=variant, part="dev") for data in texts]
        if not all(found):
            continue
        for data, each in zip(texts, found, strict=True):
            used.add(TITLES[data], variant, each[0])
        cells = " | ".join(f"{float(r[0]['bleu']):.2f} | {float(r[0]['words_per_second']):,.0f}" for r in found)
        lines.append(f"| {variant} | {cells} |")
    return used.below("\n".join(lines))


def tables() -> None:
    for name, made in {
        "systems": system_table, "sizes": size_table, "links": links_table, "decoding": decoding_table,
        "variants": variants_table,
    }.items():  # fmt: skip
        rows.fill(PAGE, name, made())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(TEXTS))
    parser.add_argument("--systems", default="isogloss,moses")
    parser.add_argument("--links", default="default")
    parser.add_argument("--variants", default=None, help="with --dev")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        tables()
        return
    for data in asked.only.split(","):
        if asked.compare:
            compare(data)
            continue
        variants = (asked.variants.split(",") if asked.variants else list(VARIANTS)) if asked.dev else ["default"]
        for system in asked.systems.split(","):
            for links in re.split(r",(?! )", asked.links):
                for variant in variants:
                    for seed in [0] if asked.dev else map(int, asked.seeds.split(",")):
                        part = "dev" if asked.dev else "test"
                        key = dict(zip(KEY, (data, part, system, links, variant, seed), strict=True))
                        if not results().is_done(outdated=asked.again, **key):
                            results().put([measure(data, system, links, variant, seed, asked.dev)])


if __name__ == "__main__":
    main()
