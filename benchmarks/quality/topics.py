"""Topics of Europarl speeches: held-out words, retrieval, coherence, glue, speed; beside MALLET, tomotopy and LSI.

python -m benchmarks.quality.topics                       all steps whose rows are missing
python -m benchmarks.quality.topics --only speed,glue/0   steps whose names begin so
python -m benchmarks.quality.topics --list                the names of all steps
python -m benchmarks.quality.topics --again               replace rows that are there
python -m benchmarks.quality.topics --table               run nothing: write the tables of docs/topics.md

1,500 speeches in seven languages: the first 1,200 to learn from, the last 300 held out. Words are written small, those
without a letter or in one document alone are left out, and so are the 25 most frequent of each language, as in the
paper. Settings were chosen with speeches 1,001 to 1,200 held out from the first 1,000. Queries are the first 30 or 60
words of a speech, and so are the candidates. Nats are of one left-to-right run over each speech, topics before being
drawn again. MALLET_HOME names a folder with its classes in `out` and its jars in `lib`, TOMOTOPY_PYTHON a Python that
has tomotopy; without them, their rows are left out.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpora, rows
from benchmarks.clock import measure
from isogloss import __version__
from isogloss.data import Bitext, Documents, Text
from isogloss.learners.dirichlet import Tails
from isogloss.learners.gibbs import Gibbs
from isogloss.learners.topic_words import TopicWords
from isogloss.metrics.ranks import ranks_of
from isogloss.tasks.documents import PolylingualTopics
from isogloss.tasks.documents.bags import bags_of
from isogloss.tasks.documents.divergence import distances
from isogloss.tasks.documents.matching import translated_distances
from isogloss.tasks.documents.topics import _incidence, _Learnt
from isogloss.tasks.documents.vectors import idf_of, tf_idf, unit_rows

LANGUAGES = ("en", "de", "fr", "es", "it", "nl", "pt")
TRAIN, TOPICS, SWEEPS, SEEDS = 1200, 50, 300, (0, 1, 2)
MANY = 200
"""Topics for retrieval, chosen on speeches 1,001 to 1,200."""
PRUNING: dict[str, Any] = {"max_share": 1.0, "drop_frequent": 25}
MANIES = (50, 100, 200, 400, 800, 1600)
GLUE = (0.01, 0.05, 0.1, 0.25, 0.5)
COLUMNS = ("date", "machine", "version", "commit", "step", "system", "setting", "seed", "measure", "value")
PLACE = Path("out/topics")
PAGE = Path(__file__).parents[2] / "docs" / "topics.md"


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("topics.csv"), COLUMNS, ("step", "system", "setting", "seed", "measure"))


@cache
def speeches() -> Documents:
    folder = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "polylingual/europarl-speeches"
    return Documents.read(*(folder / f"{name}.txt.gz" for name in LANGUAGES))


def training() -> Documents:
    return speeches()[:TRAIN]


def held_out() -> Documents:
    return speeches()[TRAIN:]


@cache
def topics(n: int, seed: int, languages: tuple[str, ...] = LANGUAGES) -> PolylingualTopics:
    """A model of the training speeches."""
    model = PolylingualTopics(n, iterations=SWEEPS, seed=seed, threads=1, samples=100, **PRUNING)
    return model.fit(training().in_languages(*languages))


def first_words(documents: Documents, n: int) -> Documents:
    """The first n words of every document, as they stand in the file."""
    texts = [[text.tokens(k)[:n] for k in range(len(text))] for text in documents.texts]
    made = [dict(zip(documents.languages, row, strict=True)) for row in zip(*texts, strict=True)]
    return Documents.of(made)


# --- MALLET


def mallet(arguments: list[str], name: str) -> dict[str, float]:
    home = Path(os.environ.get("MALLET_HOME", ""))
    if not (home / "out" / "cc").is_dir():
        raise FileNotFoundError("set MALLET_HOME to a folder with MALLET's classes in `out` and its jars in `lib`")
    path = ":".join(map(str, [home / "out", *sorted((home / "lib").glob("*.jar"))]))
    java = ["java", "-XX:+UseSerialGC", "-Xmx2g", "-cp", path]
    return measure([*java, *arguments], log=PLACE / f"{name}.log")


def mallet_files(languages: tuple[str, ...]) -> list[str]:
    """The training words that our model sees, as MALLET's instances."""
    made = []
    pruned = training().in_languages(*languages).pruned(min_documents=2, lowercase=True, letters=True, **PRUNING)
    for name in languages:
        goal = PLACE / f"mallet.{name}.bin"
        if not goal.exists():
            text = pruned.text(name)
            lines = (f"d{k}\tx\t{' '.join(text.tokens(k))}\n" for k in range(len(text)))
            goal.with_suffix(".txt").write_text("".join(lines), encoding="utf-8")
            read = ["cc.mallet.classify.tui.Csv2Vectors", "--input", str(goal.with_suffix(".txt")), "--output"]
            how = ["--keep-sequence", "--token-regex", "\\S+", "--line-regex", "^(\\S*)\t(\\S*)\t(.*)$"]
            mallet([*read, str(goal), *how, "--encoding", "UTF-8"], "import")
        made.append(str(goal))
    return made


def mallet_train(languages: tuple[str, ...], n: int, sweeps: int, seed: int, state: Path | None) -> dict[str, float]:
    given = ["cc.mallet.topics.PolylingualTopicModel", "--language-inputs", *mallet_files(languages)]
    given += ["--num-topics", str(n), "--num-iterations", str(sweeps), "--random-seed", str(seed + 1)]
    given += ["--alpha", str(0.01 * n), "--optimize-interval", "10", "--optimize-burn-in", "50"]
    given += ["--show-topics-interval", "100000"]
    return mallet(given + (["--output-state", str(state)] if state else []), "train")


def mallet_model(seed: int) -> PolylingualTopics:
    """What MALLET has learnt, as a model of ours, so that both are scored by the same estimators."""
    state = PLACE / f"mallet.{seed}.state.gz"
    if not state.exists():
        mallet_train(LANGUAGES, TOPICS, SWEEPS, seed, state)
    like = topics(TOPICS, SEEDS[0])
    learnt = like._learnt
    first = np.concatenate([[0], np.cumsum(learnt.words.sizes)])
    table = np.zeros((int(first[-1]), TOPICS), np.int64)
    documents: list[list[int]] = [[] for _ in range(TRAIN)]
    with gzip.open(state, "rt", encoding="utf-8") as file:
        for line in file:
            if line.startswith("#"):
                continue
            document, language, _, _, word, topic = line.split(" ")
            number = learnt.vocabularies[int(language)].index_of(word)
            table[first[int(language)] + number, int(topic)] += 1
            documents[int(document)].append(int(topic))
    language = np.repeat(np.arange(len(LANGUAGES)), learnt.words.sizes)
    totals = np.array([table[language == k].sum(axis=0) for k in range(len(LANGUAGES))])
    at, found = np.nonzero(table)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=len(table)))]).astype(np.int64)
    words = TopicWords(offsets, found.astype(np.int16), table[at, found], totals, learnt.words.sizes, 0.01)
    ends = np.cumsum([len(each) for each in documents])
    flat = np.array([t for each in documents for t in each])
    begins = ends - np.array([len(each) for each in documents])
    alpha = Tails.of(flat, begins, ends, TOPICS).fixed_point(np.full(TOPICS, 0.1), steps=2000)  # its file lacks it
    made = PolylingualTopics(TOPICS, samples=100, threads=1, **PRUNING)
    made._fitted = _Learnt(learnt.languages, learnt.vocabularies, words, np.tile(alpha, (1 + len(LANGUAGES), 1)))
    return made


# --- steps, each of which gives (system, setting, seed, measure, value)

Found = tuple[str, str, int, str, float]


def quality(system: str, seed: int) -> Iterator[Found]:
    """Held-out words, coherence and retrieval at 50 topics, ours and MALLET's."""
    model = mallet_model(seed) if system == "mallet" else topics(TOPICS, seed)
    for name in LANGUAGES:
        yield system, name, seed, "nats", model.held_out(held_out(), language=name, runs=1).nats_per_word
    coherent = model.coherence(speeches())
    yield system, "all", seed, "npmi", coherent.npmi
    yield system, "all", seed, "cnpmi", coherent.cnpmi
    for n in (30, 60):
        some = first_words(held_out(), n)
        values = [model.score(some, source="en", target=name, bootstrap=0).top1 for name in LANGUAGES[1:]]
        yield system, f"{n} words", seed, "top1", float(np.mean(values))


def alone(seed: int) -> Iterator[Found]:
    """Held-out words of LDA of each language by itself."""
    for name in LANGUAGES:
        own = topics(TOPICS, seed, (name,))
        yield "LDA", name, seed, "nats", own.held_out(held_out(), language=name, runs=1).nats_per_word


def granularity(n: int) -> Iterator[Found]:
    """Topics that German uses with the other languages and alone, and first words of topics that are translations."""
    reference = {(source.lower(), target.lower()) for source, target, chance in _lexicon("fr") if chance >= 0.1}
    together, own = topics(n, 0), topics(n, 0, ("de",))
    for system, model in (("isogloss", together), ("LDA", own)):
        share = model.shares()["de"]
        yield system, f"de, {n} topics", 0, "used", float((share > 1e-4).sum())
    pairs = [(each.source, each.target) for each in together.lexicon("en", "fr", 1)]
    yield "isogloss", f"en-fr, {n} topics", 0, "translations", float(sum(pair in reference for pair in pairs))


def others() -> Iterator[Found]:
    """English queries find their translations by cross-lingual LSI, and by a lexicon of our aligner."""
    for name in LANGUAGES[1:]:
        table = _lexicon(name)
        for n in (30, 60):
            some = first_words(held_out(), n)
            yield "LSI", f"en-{name}, {n} words", 0, "top1", _lsi(name, some)
            words = translated_distances(some.text("en"), some.text(name), table)
            yield "lexicon", f"en-{name}, {n} words", 0, "top1", _top1(words)


def retrieval(seed: int) -> Iterator[Found]:
    """English queries find their translations by topics, and by topics with the lexicon."""
    model = topics(MANY, seed)
    single = PolylingualTopics(**{**model.get_params(), "prior": "documents"})
    single._fitted = model._fitted
    for name in LANGUAGES[1:]:
        table = _lexicon(name)
        for n in (30, 60):
            some, setting = first_words(held_out(), n), f"en-{name}, {n} words"
            words = translated_distances(some.text("en"), some.text(name), table)
            first, second = (model.transform(some, language=each) for each in ("en", name))
            apart = distances(first, second)
            yield "topics", setting, seed, "top1", _top1(apart)
            yield "topics+lexicon", setting, seed, "top1", _top1(0.5 * apart + 0.5 * words)
            yield "topics, cosine", setting, seed, "top1", _top1(1 - _unit(first) @ _unit(second).T)
            value = single.score(some, source="en", target=name, bootstrap=0).top1
            yield "topics, prior of documents", setting, seed, "top1", value


def _unit(rows_: np.ndarray) -> np.ndarray:
    return np.asarray(rows_ / np.linalg.norm(rows_, axis=1, keepdims=True))


def _top1(apart: np.ndarray) -> float:
    return 100 * float((ranks_of(apart) == 1).mean())


def _sentences(words: tuple[str, ...]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for word in words:
        found[-1].append(word)
        if word in (".", "!", "?"):
            found.append([])
    return [sentence for sentence in found if sentence]


def _lexicon(name: str) -> list[tuple[str, str, float]]:
    """Of our aligner, learnt from training speeches that have as many sentences in both languages."""
    from isogloss.tasks.align import HMMAligner

    pairs = []
    for k in range(TRAIN):
        one, other = (_sentences(training().text(each).tokens(k)) for each in ("en", name))
        if len(one) == len(other):
            pairs += list(zip(one, other, strict=True))
    aligner = HMMAligner(threads=1).fit(Bitext(Text.of(p[0] for p in pairs), Text.of(p[1] for p in pairs)))
    return [(entry.source, entry.target, entry.forward) for entry in aligner.lexicon(least=0.01)]


def _lsi(name: str, some: Documents, dimensions: int = 100) -> float:
    """Cross-lingual LSI: truncated SVD of joined tf-idf vectors, counts as 1 + log."""
    from scipy.sparse import hstack
    from scipy.sparse.linalg import svds

    pair = training().in_languages("en", name).pruned(min_documents=2, lowercase=True, letters=True, **PRUNING)
    parts, idfs = [], []
    for text in pair.texts:
        counts = _logs(pair.counts(pair.languages[pair.texts.index(text)]))
        idfs.append(idf_of(counts))
        parts.append(unit_rows(tf_idf(counts, idfs[-1])))
    _, _, found = svds(hstack(parts).tocsr(), k=dimensions, random_state=0)
    edge, placed = parts[0].shape[1], []
    for number, language in enumerate(("en", name)):
        words = pair.text(language).vocabulary
        bags, _ = bags_of(some.in_languages(language), (language,), (words,), lowercase=True)
        own = found[:, :edge] if number == 0 else found[:, edge:]
        placed.append(unit_rows(tf_idf(_logs(_incidence(bags)), idfs[number])) @ own.T)
    first, second = (each / np.maximum(1e-12, np.linalg.norm(each, axis=1, keepdims=True)) for each in placed)
    return _top1(1 - first @ second.T)


def _logs(counts: Any) -> Any:
    made = counts.astype(np.float64)
    made.data = 1 + np.log(made.data)
    return made


def glue(seed: int, share: float) -> Iterator[Found]:
    """Documents torn apart by language: how far apart their topics are, by the share of speeches left whole."""
    whole = training().in_languages("en", "de", "fr", "it")
    order = np.random.default_rng(seed).permutation(len(whole))
    kept = round(share * len(whole))
    made = [dict(whole[int(k)].words) for k in order[:kept]]
    torn = order[kept:]
    made += [{name: words} for k in torn for name, words in whole[int(k)].words.items()]
    model = PolylingualTopics(100, iterations=200, seed=seed, threads=1, **PRUNING).fit(Documents.of(made))
    own = [model.training_mixtures(name) for name in model.languages_]
    places = [kept + 4 * np.arange(len(torn)) + k for k in range(4)] if share < 1 else [np.arange(kept)] * 4
    values = [
        distances(own[a][places[a][i : i + 1]], own[b][places[b][i : i + 1]])[0, 0]
        for a in range(4) for b in range(a) for i in range(len(places[0]))
    ]  # fmt: skip
    yield "isogloss", f"{share:g}", seed, "js", float(np.mean(values))


def apart(seed: int) -> Iterator[Found]:
    """English from one half of the speeches and French from the other: nothing is parallel, but for a lexicon."""
    whole = _pair(training())
    even = np.arange(0, TRAIN, 2)
    torn = Documents.apart(whole.in_languages("en").take(even), whole.in_languages("fr").take(even + 1))
    table = {("en", "fr"): _europarl_lexicon()}
    for system, given, lexicons in (
        ("apart", torn, None),
        ("apart, with a lexicon", torn, table),
        ("half of the speeches, whole", whole.take(even), None),
    ):  # fmt: skip
        model = PolylingualTopics(TOPICS, iterations=SWEEPS, seed=seed, threads=1, **PRUNING)
        model.fit(given, lexicons=lexicons)
        yield system, "en-fr", seed, "cnpmi", model.coherence(_pair(speeches())).cnpmi
        yield system, "en-fr, whole speeches", seed, "top1", model.score(_pair(held_out()), bootstrap=0).top1
        for name in ("en", "fr"):
            yield system, name, seed, "nats", model.held_out(_pair(held_out()), language=name, runs=1).nats_per_word


def _pair(documents: Documents) -> Documents:
    return documents.in_languages("en", "fr")


@cache
def _europarl_lexicon() -> list[tuple[str, str, float]]:
    """Of our aligner, learnt from 5,000 pairs of sentences of Europarl."""
    from isogloss.tasks.align import HMMAligner

    files = (corpora.data_folder() / "bitext" / "europarl-7way" / f"{name}.txt.gz" for name in ("en", "fr"))
    aligner = HMMAligner(threads=1).fit(Bitext.read(*files)[:5000])
    return [(entry.source, entry.target, entry.forward) for entry in aligner.lexicon(least=0.05)]


SHORT, LONG = 50, 200
"""Sweeps of a short and a long run: the difference leaves out what begins and ends a run."""


def speed(system: str, setting: str, seed: int) -> Iterator[Found]:
    """Words in a CPU second, one thread."""
    languages = tuple(setting.split("+"))
    text = training().in_languages(*languages).pruned(min_documents=2, lowercase=True, letters=True, **PRUNING)
    n_words = text.n_words * (LONG - SHORT)
    if system == "mallet":
        spent = [mallet_train(languages, TOPICS, sweeps, seed, None)["cpu_seconds"] for sweeps in (SHORT, LONG)]
        yield system, setting, seed, "words_per_cpu", n_words / (spent[1] - spent[0])
    elif system == "tomotopy":
        yield system, setting, seed, "words_per_cpu", _tomotopy(text, LONG - SHORT, seed)
    else:
        yield system, setting, seed, "words_per_cpu", n_words / _own(text, TOPICS, SHORT, LONG, seed)


def growth(n: int) -> Iterator[Found]:
    """Words in a CPU second with more topics."""
    text = training().pruned(min_documents=2, lowercase=True, letters=True, **PRUNING)
    yield "isogloss", f"7 languages, {n} topics", 0, "words_per_cpu", text.n_words * 20 / _own(text, n, 60, 80, 0)


def _own(text: Documents, n: int, short: int, long: int, seed: int) -> float:
    """CPU seconds from sweep `short` to sweep `long`."""
    vocabularies = tuple(each.vocabulary for each in text.texts)
    bags, _ = bags_of(text, text.languages, vocabularies, lowercase=False)
    sampler = Gibbs(bags, n, concentration=0.01 * n, seed=seed, blocks=1)
    state = sampler.init()
    for number in range(long):
        if number == short:
            began = time.process_time()
        state, _ = sampler.step(state)
    return time.process_time() - began


def _tomotopy(text: Documents, sweeps: int, seed: int) -> float:
    python = os.environ.get("TOMOTOPY_PYTHON", "")
    if not Path(python).is_file():
        raise FileNotFoundError("set TOMOTOPY_PYTHON to a Python that has tomotopy")
    lines = PLACE / "tomotopy.txt"
    lines.write_text("".join(" ".join(text.texts[0].tokens(k)) + "\n" for k in range(len(text))), encoding="utf-8")
    peer = [python, str(Path(__file__).with_name("topics_peer.py")), "lda", str(lines), str(TOPICS), str(sweeps)]
    said = subprocess.run([*peer, str(seed)], capture_output=True, text=True, check=True).stdout.split()
    return float(said[1]) / float(said[0])


STEPS: dict[str, Callable[[], Iterator[Found]]] = {
    **{
        f"speed/{setting}/{seed}/{system}": partial(speed, system, setting, seed)
        for setting in ("en+fr", "en") for seed in SEEDS
        for system in ("isogloss", "mallet", *(["tomotopy"] if setting == "en" else []))
    },
    **{f"retrieval/{seed}": partial(retrieval, seed) for seed in SEEDS},
    "retrieval/others": others,
    **{f"glue/{seed}/{share:g}": partial(glue, seed, share) for seed in SEEDS for share in (*GLUE, 1.0)},
    **{f"apart/{seed}": partial(apart, seed) for seed in SEEDS},
    **{f"growth/{n}": partial(growth, n) for n in MANIES},
    **{f"quality/isogloss/{seed}": partial(quality, "isogloss", seed) for seed in SEEDS},
    **{f"quality/LDA/{seed}": partial(alone, seed) for seed in SEEDS},
    **{f"granularity/{n}": partial(granularity, n) for n in (50, 200, 400)},
    **{f"quality/mallet/{seed}": partial(quality, "mallet", seed) for seed in SEEDS},
}  # fmt: skip


# --- tables


def _cell(part: str, digits: int = 2, **asked: object) -> str:
    """The mean over seeds, and the range where there are several."""
    wanted = results().find(**asked)
    found = [float(row["value"]) for row in wanted if row["step"].startswith(f"{part}/")]
    if not found:
        return ""
    spread = f" ({min(found):.{digits}f} to {max(found):.{digits}f})" if len(found) > 1 else ""
    return f"{np.mean(found):.{digits}f}{spread}"


def _rows(lines: list[list[str]]) -> str:
    head, *body = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, "|" + "---|" * len(lines[0]), *body])


def tables() -> dict[str, str]:
    quality = [["", "isogloss", "MALLET", "LDA of the language alone"]]
    for name in LANGUAGES:
        cells = [
            _cell("quality", 3, system=each, setting=name, measure="nats") for each in ("isogloss", "mallet", "LDA")
        ]
        quality.append([f"nats a word, {name}", *cells])
    for title, setting, measure_, digits in (
        ("NPMI", "all", "npmi", 3), ("CNPMI", "all", "cnpmi", 3),
        ("rank 1, 30 words", "30 words", "top1", 1), ("rank 1, 60 words", "60 words", "top1", 1),
    ):  # fmt: skip
        both = (
            _cell("quality", digits, system=each, setting=setting, measure=measure_) for each in ("isogloss", "mallet")
        )
        quality.append([title, *both, ""])
    systems = ("topics", "LSI", "lexicon", "topics+lexicon", "topics, cosine", "topics, prior of documents")
    found = [["rank 1, percent", *systems]]
    for n in (30, 60):
        for name in LANGUAGES[1:]:
            setting = f"en-{name}, {n} words"
            found.append([setting, *(_cell("retrieval", 1, system=each, setting=setting) for each in systems)])
    torn = [["speeches left whole", *(f"{share:.0%}" for share in (*GLUE, 1.0))]]
    torn.append(["mean JS", *(_cell("glue", 3, setting=f"{share:g}") for share in (*GLUE, 1.0))])
    fast = [["million words in a CPU second", "isogloss", "MALLET", "tomotopy"]]
    for setting in ("en+fr", "en"):
        fast.append(
            [f"{setting}, 50 topics", *(_millions(each, setting) for each in ("isogloss", "mallet", "tomotopy"))]
        )
    grown = [["topics", *map(str, MANIES)]]
    grown.append(["seven languages", *(_millions("isogloss", f"7 languages, {n} topics") for n in MANIES)])
    fine = [["topics", "used in German, with six languages", "used in German alone", "first words en-fr: translations"]]
    for n in (50, 200, 400):
        asked = [("isogloss", f"de, {n} topics"), ("LDA", f"de, {n} topics"), ("isogloss", f"en-fr, {n} topics")]
        fine.append([str(n), *(_cell("granularity", 0, system=each, setting=setting) for each, setting in asked)])
    ways = ("apart", "apart, with a lexicon", "half of the speeches, whole")
    tied = [["English and French", *ways]]
    for title, setting, measure_, digits in (
        ("CNPMI", "en-fr", "cnpmi", 3), ("rank 1, whole speeches", "en-fr, whole speeches", "top1", 1),
        ("nats a word, en", "en", "nats", 3), ("nats a word, fr", "fr", "nats", 3),
    ):  # fmt: skip
        tied.append([title, *(_cell("apart", digits, system=way, setting=setting, measure=measure_) for way in ways)])
    made = {
        "apart": _rows(tied), "quality": _rows(quality), "retrieval": _rows(found), "glue": _rows(torn),
        "speed": f"{_rows(fast)}\n\n{_rows(grown)}", "granularity": _rows(fine),
    }  # fmt: skip
    return {name: _below(name, text) for name, text in made.items()}


def _below(part: str, table: str) -> str:
    """A table with the commits of its rows, or that there are none."""
    used, steps = rows.Used(), ("speed", "growth") if part == "speed" else (part,)
    own = [row for row in results().read() if row["step"].partition("/")[0] in steps]
    for row in own:
        used.add(row["system"], row["step"].partition("/")[0], row)
    return used.below(table) if own else f"Not measured yet: `python -m benchmarks.quality.topics --only {part}`."


def _millions(system: str, setting: str) -> str:
    found = [
        float(row["value"]) / 1e6 for row in results().find(system=system, setting=setting, measure="words_per_cpu")
    ]
    return (
        f"{np.mean(found):.1f}" + (f" ({min(found):.1f} to {max(found):.1f})" if len(found) > 1 else "")
        if found
        else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    PLACE.mkdir(parents=True, exist_ok=True)
    if asked.table:
        for name, text in tables().items():
            rows.fill(PAGE, f"topics-{name}", text)
        return
    chosen = [step for step in STEPS if step.startswith(tuple(asked.only.split(",")))]
    if asked.list:
        print("\n".join(chosen))
        return
    for step in chosen:
        if not asked.again and results().has(step=step):
            continue
        try:
            found = list(STEPS[step]())
        except FileNotFoundError as problem:
            print(f"{step}: left out: {problem}", file=sys.stderr)
            continue
        head = {"date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit()}
        names = ("system", "setting", "seed", "measure", "value")
        results().put({**head, "step": step, **dict(zip(names, row, strict=True))} for row in found)
        print(step, *(f"{row[1]} {row[3]} {row[4]:.3f}" for row in found), flush=True)


if __name__ == "__main__":
    main()
