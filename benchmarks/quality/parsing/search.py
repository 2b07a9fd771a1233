"""What belief propagation misses: its trees beside those of the exact program, over the same scores.

python -m benchmarks.quality.parsing.search                        hu, up to 30 words, 1 to 20 rounds
python -m benchmarks.quality.parsing.search --text hu,el --longest 0   two treebanks, sentences of any length
python -m benchmarks.quality.parsing.search --features smith       with the features of the dissertation
python -m benchmarks.quality.parsing.search --prune 0              over all links, not those that a quick parser leaves

A projective second-order parser learns from the sentences without crossing links; on those of the test part, the tree
with the most right heads in expectation is found by belief propagation and by the exact O(n⁴) program. Rows go to
parsing-search.csv. The search error is 1 − the share of links of the exact tree that belief propagation finds, a mean
over sentences (Smith 2010, section 2.9.2, which reports 0.4% for GRAND and 2.4% with CHILDSEQ after 10 rounds). The
parser learns with exact sums, as there, and once more with beliefs, as ours usually does. Its features of GRAND and
CHILDSEQ look at words as well as tags, and have more to say than those of the dissertation, which look at tags alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks import rows
from benchmarks.quality.parsing import run
from benchmarks.quality.parsing.exact import ExactParser, exact
from benchmarks.quality.parsing.texts import GOLD, KEPT, TEXTS, code_of, given, gold
from isogloss import __version__
from isogloss.data import Treebank
from isogloss.engine.threads import using_threads
from isogloss.structures import ProjectiveTrees
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import TreeParts
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.features import LINK_TEMPLATES, PART_TEMPLATES
from isogloss.tasks.parse.inference import best_trees

TEXT, LONGEST = "hu", 30
FACTORS = (("grand",), ("grand", "siblings"))
ROUNDS = (1, 2, 3, 5, 10, 20)
EXACT, BELIEFS = "exact", "beliefs"
LEARNERS: dict[str, type[DependencyParser]] = {EXACT: ExactParser, BELIEFS: DependencyParser}
"""With what sums the parser learns."""
LABELS = "second"
"""Relations are learnt after trees, since exact sums are of trees alone."""
OURS, SMITH = "", "smith"
LINKS_OF_SMITH = (
    "head.word & head.fine", "head.word", "head.fine", "child.word & child.fine", "child.word", "child.fine",
    "head.word & head.fine & child.word & child.fine", "head.fine & child.word & child.fine",
    "head.word & child.word & child.fine", "head.word & head.fine & child.fine",
    "head.word & head.fine & child.word", "head.word & child.word", "head.fine & child.fine",
    "head.lemma & child.lemma", "head.tag & child.tag", "head.fine & head.fine[+1] & child.fine[-1] & child.fine",
    "head.fine[-1] & head.fine & child.fine[-1] & child.fine",
    "head.fine & head.fine[+1] & child.fine & child.fine[+1]",
    "head.fine[-1] & head.fine & child.fine & child.fine[+1]",
)  # fmt: skip
PARTS_OF_SMITH = {
    "grand": ("grandparent.fine & head.fine & child.fine", "grandparent.tag & head.tag & child.tag"),
    "siblings": (
        "previous.fine & child.fine", "previous.tag & child.tag", "previous.fine & head.fine & child.fine",
        "previous.tag & head.tag & child.tag",
    ),
}  # fmt: skip
"""Smith 2010, sections 2.8.1 and 2.8.2; all together with directions and lengths, as ours."""
KEY = ("data", "factors", "features", "learnt", "longest", "prune", "rounds")
COLUMNS = (
    *("date", "machine", "version", "commit", "code", *KEY, "sentences", "words", "search_error", "same_trees"),
    *("belief_error", "UAS", "UAS_exact", "seconds", "seconds_exact", "threads", "command"),
)
COMMAND = "python -m benchmarks.quality.parsing.search"
Array = NDArray[np.float64]
Heads = NDArray[np.int32]


def command(text: str, features: str, way: str, longest: int, prune: str) -> str:
    """What makes a row."""
    given = {"text": (text, TEXT), "features": (features, OURS), "longest": (longest, LONGEST), "prune": (prune, "")}
    flags = [f"--{name} {value}" for name, (value, usual) in given.items() if value != usual]
    return " ".join([COMMAND, *flags, f"--learnt {way}"])


def results() -> rows.Rows:
    return run.ParsingRows(run.FOLDER / "parsing-search.csv", COLUMNS, KEY)


@contextmanager
def using_features(name: str) -> Iterator[tuple[str, ...]]:
    """Templates of links; inside, larger parts have the features of that name."""
    if name != SMITH:
        yield LINK_TEMPLATES
        return
    with patch.dict(PART_TEMPLATES, PARTS_OF_SMITH):
        yield LINKS_OF_SMITH


# --- one treebank


@dataclass(frozen=True)
class Found:
    """Trees, posteriors of links and seconds of one way to find them."""

    heads: Heads
    posteriors: Array
    seconds: float


def by_beliefs(parts: TreeParts, values: Array, rounds: int, *, single_root: bool) -> Found:
    start = time.perf_counter()
    trees = LoopyTrees(parts, values, constraint="projective", single_root=single_root, iterations=rounds)
    heads = best_trees(trees, "mbr")
    return Found(heads, trees.beliefs_of_links().values, time.perf_counter() - start)


def by_program(parts: TreeParts, values: Array, *, single_root: bool) -> Found:
    """Seconds are of the program alone, without the making of its arrays."""
    heads, posteriors, seconds = [np.zeros(0, np.int32)], [np.zeros(0)], 0.0
    for _, trees, _ in exact(parts, values, single_root=single_root):
        start = time.perf_counter()
        marginals = trees.marginals()
        worth = np.where(trees.scores.values > -np.inf, marginals.values, -np.inf)
        best = ProjectiveTrees(trees.scores.like(worth), single_root=single_root).argmax()
        seconds += time.perf_counter() - start
        heads += [np.asarray(one, np.int32) for one in best]
        posteriors.append(marginals.values)
    return Found(np.concatenate(heads), np.concatenate(posteriors), seconds)


def compared(found: Found, right: Found, gold_heads: Heads, lengths: NDArray[np.int64]) -> dict[str, float]:
    """In percent: what the search misses of each sentence, and how right either is."""
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    missed = np.add.reduceat((found.heads != right.heads).astype(float), starts) / lengths
    return {
        "search_error": 100 * float(missed.mean()), "same_trees": 100 * float((missed == 0).mean()),
        "belief_error": 100 * float(np.abs(found.posteriors - right.posteriors).sum() / (2 * lengths.sum())),
        "UAS": 100 * float((found.heads == gold_heads).mean()),
        "UAS_exact": 100 * float((right.heads == gold_heads).mean()),
        "seconds": found.seconds, "seconds_exact": right.seconds,
    }  # fmt: skip


def projective(treebank: Treebank, longest: int = 0) -> NDArray[np.int64]:
    """Numbers of the sentences in which nothing crosses, up to a length (0: any)."""
    crosses = np.add.reduceat(treebank.crossing.astype(np.int64), treebank.offsets[:-1]) > 0
    return np.flatnonzero(~crosses & (treebank.lengths > 0) & ((treebank.lengths <= longest) | (longest == 0)))


def parser_of(
    text: str, factors: Sequence[str], features: str, learnt: str, prune: str, threads: int, *, again: bool
) -> DependencyParser:  # fmt: skip
    """Learn from the sentences in which nothing crosses, or load what the same code has learnt from them."""
    files = given(text, GOLD)
    kind = [*factors, learnt, *([features] if features else []), *([f"prune{prune}"] if prune else [])]
    place = KEPT / "search" / f"{text}-{'-'.join(kind)}"
    done = place / "trained.json"
    made = {"code": code_of(*run.PARSER_SOURCES), "text": files.digest, "labels": LABELS}
    if not again and done.exists() and json.loads(done.read_text()) == made:
        parser = DependencyParser.load(place / "model")
        parser.threads = threads
        return parser
    place.mkdir(parents=True, exist_ok=True)
    done.unlink(missing_ok=True)
    train, dev = (_straight(path) for path in (files.train, files.dev))
    assert train is not None
    with using_features(features) as links:
        made_parser = LEARNERS[learnt](
            projective=True, order=2, factors=factors, templates=links, labels=LABELS, threads=threads,
            **({"prune": float(prune)} if prune else {}),
        )  # fmt: skip
        made_parser.fit(train, dev).save(place / "model")
    done.write_text(json.dumps(made))
    return parser_of(text, factors, features, learnt, prune, threads, again=False)


def _straight(path: Path | None) -> Treebank | None:
    if path is None:
        return None
    treebank = Treebank.read(path)
    return treebank.take(projective(treebank))


def measure(
    text: str,
    factors: Sequence[str],
    features: str,
    way: str,
    longest: int,
    prune: str,
    threads: int,
    *,
    again: bool = False,
) -> Iterator[dict[str, Any]]:
    """A row for each number of rounds."""
    with using_features(features):
        parser = parser_of(text, factors, features, way, prune, threads, again=again)
    right_trees = gold(text)
    chosen = projective(right_trees, longest)
    right_trees = right_trees.take(chosen)
    learnt, _, words = parser._seen(Treebank.read(given(text, GOLD).test).take(chosen))
    single_root, sentences = learnt.shape.single_root, np.arange(len(words))
    with using_threads(threads):
        parts = TreeParts.of(learnt.candidates(words), learnt.shape.families)
        values = learnt.tree_scorer.scores(words, sentences, parts)
        few = TreeParts.of(learnt.candidates(words), learnt.shape.families, sentences[:1])
        by_beliefs(few, values[: few.n_parts], 1, single_root=single_root)  # kernels are compiled before they are timed
        by_program(few, values[: few.n_parts], single_root=single_root)
        reference = by_program(parts, values, single_root=single_root)
        for rounds in ROUNDS:
            found = by_beliefs(parts, values, rounds, single_root=single_root)
            yield {
                "data": text, "factors": ",".join(factors), "features": features, "learnt": way, "longest": longest,
                "prune": prune, "rounds": rounds, "sentences": len(right_trees), "words": right_trees.n_words,
                "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": run.commit(),
                "command": command(text, features, way, longest, prune),
                "code": code_of(*run.PARSER_SOURCES), "threads": threads,
            } | compared(found, reference, right_trees.heads, right_trees.lengths)  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.parsing.search", description=__doc__.split("\n")[0])
    parser.add_argument("--text", default=TEXT, help=f"treebanks, of {', '.join(TEXTS)}; default: {TEXT}")
    parser.add_argument("--longest", type=int, default=LONGEST, help="words of a sentence at most; 0 for any number")
    parser.add_argument("--learnt", default=",".join(LEARNERS), help="with exact sums, beliefs, or both (default)")
    parser.add_argument("--features", default=OURS, choices=[OURS, SMITH], help="of the dissertation; default: ours")
    parser.add_argument("--prune", default="", help="as for the parser, 0 for all links; default: as it comes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--factors", default="", help="one of grand and grand,siblings; default: both")
    parser.add_argument("--again", action="store_true", help="learn anew")
    parser.add_argument("--outdated", action="store_true", help="leave rows that this commit has made")
    arguments = parser.parse_args(argv)
    texts = arguments.text.split(",")
    if not set(texts) <= set(TEXTS):
        raise SystemExit(f"--text: {arguments.text} should be among {', '.join(TEXTS)}")
    ways = arguments.learnt.split(",")
    if not set(ways) <= set(LEARNERS):
        raise SystemExit(f"--learnt: {arguments.learnt} should be among {', '.join(LEARNERS)}")
    chosen = [factors for factors in FACTORS if arguments.factors in ("", ",".join(factors))]
    if not chosen:
        raise SystemExit(f"--factors: {arguments.factors} should be grand or grand,siblings")
    run.commit()
    for text, factors, way in product(texts, chosen, ways):
        key = {"data": text, "factors": ",".join(factors), "features": arguments.features, "learnt": way}
        key |= {"prune": arguments.prune}
        same = key | {"longest": arguments.longest, "rounds": ROUNDS[-1]}  # the last that is written
        if arguments.outdated and results().is_done(**same, outdated=True):
            continue
        options = (arguments.features, way, arguments.longest, arguments.prune, arguments.threads)
        for row in measure(text, factors, *options, again=arguments.again):
            results().put([row])
            said = f"{text} {row['factors']:15} {way:7} {row['rounds']:2} rounds: error {row['search_error']:.2f}%"
            print(f"{said}, {row['seconds']:.1f} s beside {row['seconds_exact']:.1f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
