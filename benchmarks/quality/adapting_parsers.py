"""Parsers for a new domain, by text without trees: a row for each pair of domains, order, size and way to adapt.

python -m benchmarks.quality.adapting_parsers                          all rows that are missing
python -m benchmarks.quality.adapting_parsers --pairs genia --sizes 500 --orders 1 --only none,brown
python -m benchmarks.quality.adapting_parsers --dev                    score dev files instead: for choosing, no rows
python -m benchmarks.quality.adapting_parsers --losses                 losses by tag, unknown words, links; the oracle
python -m benchmarks.quality.adapting_parsers --again                  replace rows that are there
python -m benchmarks.quality.adapting_parsers --table                  run nothing: write tables of docs/adapt-parser.md

Pairs: `genia`, from the sample of the Wall Street Journal to abstracts of biomedicine, whose noun phrases are bracketed
by other guidelines (both turned from constituents into dependencies by one table of heads); `lines` and `partut`, from
English-EWT to other treebanks of Universal Dependencies; `restyled`, from EWT to EWT with coordination and prepositions
as in Prague, the same sentences under other guidelines. Tags are gold. The text that is adapted to has no trees:
GENIA's `future_use` and `dev`, `train` of LinES and ParTUT, EWT's `dev`. Scored are GENIA's, LinES's and EWT's `test`,
and ParTUT's `dev` and `test`. A tenth of the sample of the Wall Street Journal is held out as the source's own test.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import rows
from isogloss import __version__
from isogloss.data.constituents import Constituents
from isogloss.data.head_rules import dependencies_by_table
from isogloss.data.joining import join_treebanks
from isogloss.data.treebank import Treebank
from isogloss.metrics._resampling import paired
from isogloss.tasks.parse import DependencyParser, StyleAdapter
from isogloss.tasks.parse.adapting import (
    KINDS,
    GivenLinks,
    ParserAdaptation,
    Tried,
    decompose,
    known_words,
    tag_differences,
    unforeseen,
)
from isogloss.tasks.parse.focus import Focus
from isogloss.tasks.parse.styles import convert

PAIRS = ("genia", "lines", "partut", "restyled")
SIZES = ("500", "all")
ORDERS = (1, 2)
MARGINS: dict[str, Any] = {"trainer": "mira", "labels": "second"}
WAYS: dict[str, dict[str, Any]] = {
    "none": {},
    "brown": {},
    "markov": {},
    "correspondence": {},
    "stacking": {},
    "bagging": {},
    "self-training": {},
    "domain-weights": {},
    "feature-weights": {},
    "target-features": {},
    "no-noun-words": {},
    "mira": MARGINS,
    "mira without slack": {**MARGINS, "rate": 1e6},
    "word-weights": MARGINS,
    "50 trees": {},
    "50 trees to restyle by": {},
    "in-domain": {},
}
"""Ways, and what is said to the parser beside its order; `ParserAdaptation` has its defaults."""
AGAINST = {"mira without slack": "mira", "word-weights": "mira"}
"""What a way is compared with, if not with none."""
WITHOUT_TEXT = ("none", "mira", "mira without slack", "stacking", "bagging", "no-noun-words")
"""Those that do not look at the target, and are learnt once for all targets of a source."""
FEW, FEW_WEIGHT = 50, 5.0
HELD_OUT = 9
COLUMNS = (
    "date", "machine", "version", "commit", "command", "pair", "order", "size", "way", "n_train", "n_text", "n_test",
    "words", "uas", "source_uas", "against", "difference", "low", "high", "p", "train_cpu_seconds",
)  # fmt: skip
KEY = ("pair", "order", "size", "way")
LOSSES = (
    "date", "machine", "version", "commit", "pair", "order", "size", "by", "kind", "source_words", "target_words",
    "source_share", "target_share", "source_error", "target_error", "loss", "adds",
)  # fmt: skip
NUMBERS = ("date", "machine", "version", "commit", "pair", "order", "size", "name", "value")
COUNTS = Path("out/adapting_parsers")
PAGE = Path(__file__).parents[2] / "docs" / "adapt-parser.md"


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("adapting_parsers.csv"), COLUMNS, KEY)


def losses() -> rows.Rows:
    place = Path(__file__).with_name("adapting_parsers-losses.csv")
    return rows.Rows(place, LOSSES, ("pair", "order", "size", "by", "kind"))


def numbers() -> rows.Rows:
    place = Path(__file__).with_name("adapting_parsers-numbers.csv")
    return rows.Rows(place, NUMBERS, ("pair", "order", "size", "name"))


# --- texts


def folder() -> Path:
    return Path(os.environ.get("ISOGLOSS_DATA", "../shared/data"))


@cache
def trees(name: str) -> Treebank:
    """A treebank by the name of its file; constituents become dependencies."""
    if name.startswith(("wsj", "genia")):
        return dependencies_by_table(Constituents.read(folder() / "constituency" / f"{name}.mrg.gz"))
    return Treebank.read(folder() / "treebanks" / f"{name}.conllu.gz")


class Pair(NamedTuple):
    """Two domains."""

    source: str
    train: Treebank
    source_test: Treebank
    text: Treebank
    """Of the target; its trees are for the ceiling, and for fifty of them."""
    test: Treebank


@cache
def pair_of(name: str, size: str, dev: bool) -> Pair:
    if name == "genia":
        news = trees("wsj-sample/trees")
        fold = np.arange(len(news)) // 10 % 10
        train, own = news.take(fold != HELD_OUT), news.take(fold == HELD_OUT)
        more = [trees("genia/future_use"), *([] if dev else [trees("genia/dev")])]
        text, test = join_treebanks(more), trees("genia/dev" if dev else "genia/test")
    else:
        train, own = trees("en-ewt/train"), trees("en-ewt/dev" if dev else "en-ewt/test")
        if name == "restyled":
            text, test = trees("en-ewt/dev"), trees("en-ewt/test")
            text, test = (convert(each, "prague", "head") for each in (text, test))
        elif name == "lines":
            text, test = trees("en-lines/train"), trees("en-lines/dev" if dev else "en-lines/test")
        else:
            text = trees("partut/en.train")
            test = join_treebanks([trees("partut/en.dev"), *([] if dev else [trees("partut/en.test")])])
    if size != "all":
        train = train.part(0, int(size))
    return Pair("wsj" if name == "genia" else "ewt", train, own, text, test)


# --- ways


def learnt(pair: Pair, order: int, way: str) -> Any:
    """What has learnt: a parser, or what turns its trees into those of another style."""
    options = {"order": order, **WAYS[way]}
    few = pair.text.take(np.random.default_rng(0).permutation(len(pair.text))[:FEW])
    if way in ("none", "mira", "mira without slack"):
        return DependencyParser(**options).fit(pair.train)
    if way == "in-domain":
        return DependencyParser(**options).fit(pair.text)
    if way == "50 trees":
        counts = np.repeat([1.0, FEW_WEIGHT], [len(pair.train), len(few)])
        return DependencyParser(**options).fit(join_treebanks([pair.train, few]), focus=Focus(counts))
    if way == "50 trees to restyle by":
        return StyleAdapter().fit(few, DependencyParser(**options).fit(pair.train))
    text = pair.text.with_columns(heads=np.full(pair.text.n_words, -1), deprel=["_"] * pair.text.n_words)
    return ParserAdaptation(way).adapt(DependencyParser(**options), pair.train, text)


def right(parser: Any, gold: Treebank) -> NDArray[np.int64]:
    """int64[n_sentences]: words with the right head."""
    found = parser.predict(gold)
    hits = np.concatenate([[0], np.cumsum(found.heads == gold.heads)])
    return np.asarray(hits[gold.offsets[1:]] - hits[gold.offsets[:-1]])


def uas(hits: NDArray[np.int64], gold: Treebank) -> float:
    return 100 * float(hits.sum()) / gold.n_words


def measured(name: str, size: str, order: int, way: str, parser: Any, seconds: float) -> dict[str, object]:
    """A row; counts of sentences are kept for later comparisons."""
    pair = pair_of(name, size, False)
    hits, own = right(parser, pair.test), right(parser, pair.source_test)
    COUNTS.mkdir(parents=True, exist_ok=True)
    np.save(COUNTS / f"{name}-{order}-{size}-{way}.npy", hits)
    row: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": "python -m benchmarks.quality.adapting_parsers", "pair": name, "order": order, "size": size,
        "way": way, "n_train": len(pair.train), "n_text": len(pair.text), "n_test": len(pair.test),
        "words": pair.test.n_words, "uas": uas(hits, pair.test), "source_uas": uas(own, pair.source_test),
        "train_cpu_seconds": f"{seconds:.1f}",
    }  # fmt: skip
    against = AGAINST.get(way, "none")
    place = COUNTS / f"{name}-{order}-{size}-{against}.npy"
    if way != against and place.exists():
        counts = np.stack([hits, np.load(place), pair.test.lengths, pair.test.lengths], axis=1).reshape(-1, 2, 2)
        counts = counts.transpose(0, 2, 1)
        found = paired(counts, lambda c: c[..., 0] / np.maximum(1, c[..., 1]), 10000, 0, "adapting_parsers")
        low, high = found["interval"]
        row |= {"against": against, "difference": found["delta"], "low": low, "high": high, "p": found["p_value"]}
        row["p"] = f"{found['p_value']:.4f}"
    return row


def run(arguments: argparse.Namespace) -> None:
    kept = results()
    there = {tuple(row[name] for name in KEY) for row in kept.read()}
    for size in arguments.sizes.split(","):
        for order in map(int, arguments.orders.split(",")):
            for way in arguments.only.split(","):
                todo = [
                    name for name in arguments.pairs.split(",")
                    if arguments.again or (name, str(order), size, way) not in there
                ]  # fmt: skip
                for names in shared(todo, way):
                    began = time.process_time()
                    parser = learnt(pair_of(names[0], size, arguments.dev), order, way)
                    seconds = time.process_time() - began
                    for name in names:
                        score(name, size, order, way, parser, seconds, arguments.dev)


def shared(names: list[str], way: str) -> list[list[str]]:
    """Pairs that are learnt for together."""
    if way not in WITHOUT_TEXT:
        return [[name] for name in names]
    news = [name for name in names if name == "genia"]
    return [one for one in (news, [name for name in names if name != "genia"]) if one]


def score(name: str, size: str, order: int, way: str, parser: Any, seconds: float, dev: bool) -> None:
    said = f"{name} {size} order {order} {way}:"
    if dev:
        pair = pair_of(name, size, True)
        found = [uas(right(parser, gold), gold) for gold in (pair.test, pair.source_test)]
        print(f"{said} {found[0]:.2f} dev, {found[1]:.2f} source, {seconds:.0f} s", file=sys.stderr, flush=True)
        return
    row = measured(name, size, order, way, parser, seconds)
    results().put([row])
    print(f"{said} {row['uas']:.2f} ({row.get('difference', 0.0):+.2f}, p {row.get('p')})", file=sys.stderr, flush=True)


# --- losses


def measure_losses(arguments: argparse.Namespace) -> None:
    """Where the parser without adaptation loses, and what links between nouns cost (the oracle)."""
    for size in arguments.sizes.split(","):
        for order in map(int, arguments.orders.split(",")):
            for name in arguments.pairs.split(","):
                decomposed(name, size, order)


def decomposed(name: str, size: str, order: int) -> None:
    pair = pair_of(name, size, False)
    base: dict[str, object] = {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(), "pair": name,
        "order": order, "size": size,
    }  # fmt: skip
    parser = learnt(pair, order, "none")
    known = known_words(pair.train)
    here, there = Tried.by(parser, pair.source_test), Tried.by(parser, pair.test)
    for by in KINDS:
        found = decompose(here, there, by, known)
        listed = [
            base | {"by": by, "kind": kind.name, "source_words": kind.source_words, "target_words": kind.target_words,
                    "source_share": kind.source_share, "target_share": kind.target_share,
                    "source_error": "" if kind.source_error is None else kind.source_error,
                    "target_error": "" if kind.target_error is None else kind.target_error,
                    "loss": "" if kind.loss is None else kind.loss, "adds": kind.adds}
            for kind in found.kinds
        ]  # fmt: skip
        losses().put(listed)
    said = {"loss": found.loss, **unforeseen(here, there, known).as_dict()}
    for fine in (True, False):
        for n in (1, 3):
            moved = tag_differences(pair.source_test, pair.test, n, fine=fine)
            said[f"{'fine' if fine else 'coarse'} tags, {n}"] = moved.distance
    nouns = GivenLinks(("NN*", "NOUN", "PROPN"), ("NN*", "NOUN", "PROPN"))
    oracle = DependencyParser(order=order).fit(pair.train, views=[nouns])
    said["without oracle"], said["with oracle"] = (uas(right(one, pair.test), pair.test) for one in (parser, oracle))
    marked = nouns.see(pair.test).marks[0]
    said["oracle on its links"] = on_links(oracle, pair.test, marked)
    said["without oracle on these links"] = on_links(parser, pair.test, marked)
    numbers().put([base | {"name": key, "value": float(value)} for key, value in said.items()])
    print(f"{name} {size} order {order}: {said}", file=sys.stderr, flush=True)


def on_links(parser: Any, gold: Treebank, marked: Any) -> float:
    """UAS of words whose gold link is marked."""
    found = parser.predict(gold)
    children = np.concatenate([grid.any(axis=0)[1:] for grid in marked])
    return 100 * float((found.heads == gold.heads)[children].mean())


# --- tables


def table(size: str, order: int) -> str:
    """A line for each way, a column for each pair: the difference, and whether it is more than chance."""
    kept = {(row["pair"], row["way"]): row for row in results().find(size=size, order=order)}
    if not kept:
        return f"Not measured: `python -m benchmarks.quality.adapting_parsers --sizes {size} --orders {order}` does it."
    used, lines = rows.Used(), [f"| way | {' | '.join(PAIRS)} |", "|---" + "|---:" * len(PAIRS) + "|"]
    for way in WAYS:
        cells = []
        for pair in PAIRS:
            row = kept.get((pair, way))
            if row is None:
                cells.append("")
                continue
            used.add(pair, way, row)
            if way in ("none", "mira"):
                cells.append(f"{float(row['uas']):.2f}")
            elif way == "in-domain":
                cells.append(f"({float(row['uas']):.2f})")
            else:
                mark = "**" if row["p"] and float(row["p"]) < 0.01 else ""
                cells.append(f"{mark}{float(row['difference'] or 0):+.2f}{mark}")
        if any(cells):
            lines.append(f"| {way} | {' | '.join(cells)} |")
    return used.below("\n".join(lines))


MOST = 6
"""Tags that are shown: those that add most to the loss."""
SAID = {
    "loss": "loss", "foreseen": "foreseen", "unforeseen": "not foreseen", "known": "not foreseen, known words",
    "margin": "± of that", "without oracle": "UAS", "with oracle": "UAS with the oracle",
    "without oracle on these links": "UAS of its links", "oracle on its links": "UAS of its links with the oracle",
    "fine tags, 1": "fine tags that differ", "coarse tags, 1": "coarse tags that differ",
}  # fmt: skip
"""Numbers that are shown, and what they are called."""


def measured_losses() -> list[tuple[str, str, str]]:
    """Pairs, sizes and orders with losses: for each pair, the most sentences and the highest order alone."""
    found = {(row["pair"], row["size"], row["order"]) for row in losses().read()}
    best = {pair: max((size == "all", order, size) for one, size, order in found if one == pair) for pair, *_ in found}
    return [(pair, best[pair][2], best[pair][1]) for pair in PAIRS if pair in best]


def losses_table(by: str) -> str:
    used, lines = rows.Used(), ["| pair | kind | of source words | of target words | error there | here | adds |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|")
    for pair, size, order in measured_losses():
        kinds = losses().find(pair=pair, size=size, order=order, by=by)
        if by == "tag":
            kinds = sorted(kinds, key=lambda row: -abs(float(row["adds"])))[:MOST]
        for row in kinds:
            used.add(pair, row["kind"], row)
            numbers_ = [
                f"{float(row[name]):.1f}" if row[name] else ""
                for name in ("source_share", "target_share", "source_error", "target_error")
            ]
            lines.append(f"| {pair} | {row['kind']} | {' | '.join(numbers_)} | {float(row['adds']):+.2f} |")
    return used.below("\n".join(lines))


def numbers_table() -> str:
    found, used = measured_losses(), rows.Used()
    lines = [f"| | {' | '.join(f'{pair}, {size}, order {order}' for pair, size, order in found)} |"]
    lines.append("|---" + "|---:" * len(found) + "|")
    for name, said in SAID.items():
        cells = []
        for pair, size, order in found:
            row = next(iter(numbers().find(pair=pair, size=size, order=order, name=name)), None)
            cells.append("" if row is None else f"{float(row['value']):.2f}")
            if row is not None:
                used.add(pair, said, row)
        lines.append(f"| {said} | {' | '.join(cells)} |")
    return used.below("\n".join(lines))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.adapting_parsers", description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", default=",".join(PAIRS))
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--orders", default=",".join(map(str, ORDERS)))
    parser.add_argument("--only", default=",".join(WAYS))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--losses", action="store_true")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.losses:
        measure_losses(arguments)
    elif not arguments.table:
        run(arguments)
    if PAGE.exists() and not arguments.dev:
        for size in SIZES:
            for order in ORDERS:
                rows.fill(PAGE, f"ways-{size}-{order}", table(size, order))
        for by in ("unknown", "tag"):
            rows.fill(PAGE, f"losses-{by}", losses_table(by))
        rows.fill(PAGE, "numbers", numbers_table())


if __name__ == "__main__":
    main()
