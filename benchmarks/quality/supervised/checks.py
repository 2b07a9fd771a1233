"""What the papers say of structures and trainers rather than of aligners: one row a comparison, supervised-checks.csv.

python -m benchmarks.quality.supervised.checks           all of them
python -m benchmarks.quality.supervised.checks dice      one: dice, oracle, annealing or rounding

All are on Hansards (`hansards-2k`, 100 pairs to learn from and 347 to test), and oracles on the test pairs of
`en-et.xlwa` too, whose gold has many blocks. Where charts are not pruned, on pairs of up to `LONGEST` words.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import rows, scoring
from benchmarks.quality.supervised import run
from benchmarks.quality.supervised.texts import Benchmark, Gold, benchmark
from isogloss.data import Links
from isogloss.learners.margin import Mira
from isogloss.metrics import compare
from isogloss.structures import Blocks, Itg, Matching
from isogloss.tasks.align import ItgAligner, MatchingAligner, QuadraticAligner
from isogloss.tasks.align.supervised.parts import take_pairs

COLUMNS = (
    "date", "machine", "version", "commit", "check", "data", "first", "second", "n_test", "AER", "against",
    "difference", "low", "high", "p", "remark",
)  # fmt: skip
KEY = ("check", "data", "first", "second")
HANSARDS, BLOCKS = "hansards-2k", "en-et.xlwa"
N_TRAIN = 100
LONGEST = 25
LARGEST_BLOCK = 4


def results() -> rows.Rows:
    return rows.Rows(run.FOLDER / "supervised-checks.csv", COLUMNS, KEY)


class Found(NamedTuple):
    """Two systems on the same pairs: the first should be better."""

    data: str
    first: str
    second: str
    links: tuple[Links, Links]
    gold: Links
    remark: str = ""


def _short(place: Benchmark, gold: Gold) -> Gold:
    lengths = [place.bitext(gold).source.ids.lengths, place.bitext(gold).target.ids.lengths]
    return gold.take(np.flatnonzero(np.maximum(*lengths) <= LONGEST))


# --- no learning: Dice alone, and gold alone


def dice() -> Iterator[Found]:
    """Matching on raw Dice against the best Dice of each word; ITG against matching."""
    place = benchmark(HANSARDS, 1)
    test = _short(place, place.test(N_TRAIN))
    features = place.features(test, MatchingAligner(features=("association",), threads=1))
    scores = [features.matrix(k, "dice").astype(np.float64) for k in range(len(test))]
    made = {
        "best Dice of each source word": Links.of(_best_of_each(own) for own in scores),
        "best Dice of each target word": Links.of(_transposed(_best_of_each(own.T)) for own in scores),
        "matching": Links.of(Matching(own).argmax() for own in scores),
        "ITG": Links.of(Itg(own).argmax() for own in scores),
    }
    for first, second in (
        ("matching", "best Dice of each source word"), ("matching", "best Dice of each target word"),
        ("ITG", "matching"),
    ):  # fmt: skip
        yield Found(HANSARDS, first, second, (made[first], made[second]), test.links, f"up to {LONGEST} words")


def _best_of_each(scores: NDArray[np.float64]) -> set[tuple[int, int]]:
    return {(i, int(row.argmax())) for i, row in enumerate(scores) if row.max(initial=0.0) > 0}


def _transposed(links: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(i, j) for j, i in links}


def oracle() -> Iterator[Found]:
    """The links of each class that are nearest to gold: 1 for sure and possible links, -1 for others, 0 for nulls."""
    for name in (HANSARDS, BLOCKS):
        place = benchmark(name, 1)
        test = _short(place, place.test(N_TRAIN if name == HANSARDS else 0))
        shapes = np.stack([place.bitext(test).source.ids.lengths, place.bitext(test).target.ids.lengths], axis=1)
        scores = [_gold_scores(test.links, k, tuple(shape)) for k, shape in enumerate(shapes.tolist())]
        made = {
            "1-1": Links.of(Matching(own).argmax() for own in scores),
            "ITG": Links.of(Itg(own).argmax() for own in scores),
            "BITG": Links.of(
                Itg(own, blocks=Blocks.from_links(own, LARGEST_BLOCK, mean=False)).argmax() for own in scores
            ),
        }
        for first, second in (("1-1", "ITG"), ("BITG", "1-1")):
            yield Found(name, first, second, (made[first], made[second]), test.links, f"up to {LONGEST} words")


def _gold_scores(gold: Links, pair: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    out = np.full(shape, -1.0)
    for i, j in {*gold[pair].links, *gold[pair].possible}:
        out[i, j] = 1.0
    return out


# --- learning


class Annealed(ItgAligner):
    """MIRA whose loss augmentation is not that of `ItgAligner`."""

    augmentation = (0.0, 0.5)

    def learner(self, problem: Any, setting: Any) -> Any:
        about: dict[str, Any] = {"passes": setting.passes, "seed": self.seed, "augmentation": self.augmentation}
        return Mira(problem.model, problem.targets, problem.costs, cap=setting.regularisation, **about)


def annealing() -> Iterator[Found]:
    """MIRA with augmentation that rises, with the same all the time, and without, towards gold as it is."""
    place = benchmark(HANSARDS, 1)
    test, made = place.test(N_TRAIN), dict[str, Links]()
    for name, augmentation, targets in (
        ("annealed", (0.0, 0.5), None), ("fixed", (0.5, 0.5), None), ("plain", (0.0, 0.0), "gold"),
    ):  # fmt: skip
        options: dict[str, Any] = {"trainer": "mira", "blocks": None, "tune": False, "threads": 1, "targets": targets}
        aligner = Annealed(**options)
        aligner.augmentation = augmentation
        made[name] = _learnt(place, aligner, test)
    for second in ("fixed", "plain"):
        yield Found(
            HANSARDS, "annealed", second, (made["annealed"], made[second]), test.links, "MIRA ITG, all features"
        )


def _learnt(place: Benchmark, aligner: Any, test: Gold) -> Links:
    train = place.pool.take(np.arange(N_TRAIN))
    aligner.calibrate = lambda held_out: (1.0, 0.5)  # temperatures make no link
    aligner.fit_features(place.features(train, aligner), train.links)
    found: Links = aligner.predict_features(place.features(test, aligner))
    return found


def rounding() -> Iterator[Found]:
    """M+F+Q searched by rounding the relaxation, and by the integer program."""
    place = benchmark(HANSARDS, 1)
    test = place.test(N_TRAIN)
    aligner = QuadraticAligner(tune=False, threads=1, decode="lp", time_limit=None)
    rounded = _learnt(place, aligner, test)
    features = place.features(test, aligner)
    exact = aligner.set_params(decode="milp").predict_features(features)
    fractional = some = 0
    for k in range(len(test)):
        own = take_pairs(features, np.array([k]))
        (dist,) = aligner.distributions(own, aligner.parts(own), aligner._weights)
        links = dist.relaxation().links
        broken = int(((links > 1e-6) & (links < 1 - 1e-6)).sum())
        fractional, some = fractional + broken, some + bool(broken)
    share = 100 * fractional / sum(features.shapes.prod(axis=1))
    remark = f"all features; {100 * some / len(test):.1f}% of pairs with fractions, {share:.3f}% of all links"
    yield Found(HANSARDS, "rounded relaxation", "integer program", (rounded, exact), test.links, remark)


CHECKS: dict[str, Callable[[], Iterator[Found]]] = {
    "dice": dice, "oracle": oracle, "annealing": annealing, "rounding": rounding,
}  # fmt: skip


def measure(names: Sequence[str]) -> None:
    """Make the rows of some checks."""
    from isogloss import __version__

    about = {"date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit()}
    for name in names:
        for found in CHECKS[name]():
            test = compare(*found.links, found.gold, seed=scoring.SEED)
            row = {
                **about, "check": name, "data": found.data, "first": found.first, "second": found.second,
                "n_test": len(found.gold), "AER": test.first, "against": test.second, "difference": test.delta,
                "low": test.interval[0], "high": test.interval[1], "p": f"{test.p_value:.4f}", "remark": found.remark,
            }  # fmt: skip
            results().put([row])
            print(f"{name}: {found.data}: {found.first} against {found.second}: {test}", file=sys.stderr, flush=True)


def table() -> str:
    """All rows, in Markdown."""
    lines = ["| check | text | | AER | | AER | difference [95%] | p | |\n|" + "---|" * 9]
    found = results().read()
    for row in found:
        gap = f"{float(row['difference']):+.2f} [{float(row['low']):+.2f}, {float(row['high']):+.2f}]"
        numbers = f"{row['first']} | {float(row['AER']):.2f} | {row['second']} | {float(row['against']):.2f}"
        lines.append(f"| {row['check']} | {row['data']} | {numbers} | {gap} | {row['p']} | {row['remark']} |")
    return "\n".join([*lines, "", rows.commits((row["check"], row["data"], row) for row in found)])


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measure(sys.argv[1:] or list(CHECKS))
