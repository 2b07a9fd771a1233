"""Shards of a text for workers that are other processes: how training and decoding are written down and read again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Vocabulary
from isogloss.engine.parcels import Arrays, Parcel
from isogloss.engine.shards import Shard
from isogloss.engine.shelf import Shelf
from isogloss.errors import ModelError
from isogloss.layout import Layout, Numbers, Offsets, check
from isogloss.tasks.align import decode as decoding
from isogloss.tasks.align.corpus import Corpus, Room, Words
from isogloss.tasks.align.evidence import Kept, check_kept
from isogloss.tasks.align.expectation import EStep, Others, expect_shard, no_counts
from isogloss.tasks.align.priors import Stems
from isogloss.tasks.align.settings import Settings

__all__ = ["AlignWorker", "AlignedText", "GatheredCells", "GatheredCounts", "written_step"]

_STEMS = ("members", "member_starts", "starts", "other", "target_class")
_NO_WORDS = Vocabulary(())


class AlignedText:
    """A corpus as workers need it: words are numbers."""

    worker = "isogloss.tasks.align.remote:AlignWorker"

    def __init__(self, corpus: Corpus, stems: Stems | None) -> None:
        self.corpus, self.stems = corpus, stems if corpus.least > 1 else None

    def written(self) -> tuple[Arrays, dict[str, Any]]:
        corpus = self.corpus
        arrays: Arrays = {"rows": corpus.rows, "columns": corpus.columns}
        if self.stems is not None:
            arrays |= {f"stems.{name}": getattr(self.stems, name) for name in _STEMS}
        return arrays, {
            "data": corpus.hash(),
            "least": corpus.least,
            "max_length": corpus.max_length,
            "n_source": len(corpus.source_counts),
            "n_target": len(corpus.target_counts),
        }

    def words(self, shard: int) -> Arrays:
        return self.corpus.words(shard)._asdict()

    @property
    def sizes(self) -> Sequence[int]:
        return [int(self.corpus.words(shard).cell_offsets[-1]) for shard in range(len(self.corpus.shards))]


# --- steps, on the side of the one who waits --------------------------------------------------------------------------


def written_step(parameters: Any, settings: Settings, **more: Any) -> tuple[Arrays, dict[str, Any]]:
    """Parameters as arrays, and everything else as plain data."""
    fields = parameters._asdict()
    numbers = {name: float(fields.pop(name)) for name in ("p0", "floor")}
    return fields, {**numbers, "settings": settings.as_dict(), **more}


class GatheredCounts(NamedTuple):
    """What workers counted in some shards: like `expectation.Expected`."""

    step: EStep
    shards: Sequence[int]
    found: Arrays
    kept: Callable[[int], Arrays]

    @property
    def sums(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Distortion counts and sums of bounds, of each shard."""
        return list(zip(self.found["jumped"], self.found["bounds"], strict=True))

    def add_to(self, counts: NDArray[np.int64], others: Others) -> None:
        """Add the counts of these shards."""
        values = self.found["counts"]
        if "entries" in self.found:
            counts[self.found["entries"]] += values
        else:
            counts += values
        for name, total in others._asdict().items():
            total += self.found[name]

    def keep(self) -> None:
        """What shards hand on stays with the workers, but for the last step: then this process decodes with it."""
        if self.step.keeps and self.step.last:
            _take_over(self.step.before, self.shards, self.kept)


class GatheredCells(NamedTuple):
    """Cells of some shards that may become links: like `judged.Decoded`."""

    shards: Sequence[int]
    found: Arrays
    kept: Callable[[int], Arrays]

    @property
    def bins(self) -> NDArray[np.int64]:
        return self.found["bins"]

    def keep(self, chosen: Kept) -> int:
        """Take over the cells; returns how many shards they are of."""
        _take_over(chosen, self.shards, self.kept)
        return len(self.shards)


def _take_over(into: Kept, shards: Sequence[int], kept: Callable[[int], Arrays]) -> None:
    for shard in shards:
        into.store(shard, {name: array.copy() for name, array in kept(shard).items()})


# --- and on the side of those who work --------------------------------------------------------------------------------


_PLACE = "the folder of this run"
_OF_STEMS: Layout = {
    "stems.members": Numbers("int32", "n", least=0, below="n"),
    "stems.member_starts": Offsets("classes", "n"),
    "stems.starts": Offsets("classes", "groups"),
    "stems.other": Numbers("int32", "groups", least=0, below="m"),
    "stems.target_class": Numbers("int32", "m", least=0, below="m"),
}
_OF_SHARD: Layout = {
    "source_ids": Numbers("int32", "a", least=0, below="n"),
    "source_offsets": Offsets("pairs", "a"),
    "target_ids": Numbers("int32", "b", least=0, below="m"),
    "target_offsets": Offsets("pairs", "b"),
}


def _check_setup(arrays: Arrays, n: int, m: int) -> None:
    """Refuse a table that is not one of n source and m target types: kernels index with it."""
    layout: Layout = {"rows": Offsets("n", "entries"), "columns": Numbers("int32", "entries", least=0, below="m")}
    with_stems = "stems.members" in arrays
    check(arrays, layout | _OF_STEMS if with_stems else layout, _PLACE, {"n": n, "m": m})
    if with_stems and arrays["stems.other"].max(initial=-1) > arrays["stems.target_class"].max(initial=-1):
        raise ModelError(f"{_PLACE}: pairs of stems that no word has. Begin the run again, in a new folder")


def _check_step(arrays: Arrays, corpus: Corpus, stems: Stems | None) -> None:
    """Refuse parameters that are not of this table."""
    from isogloss.structures._numba.jumps import BUCKETS, FIRST

    n, m = len(corpus.source_counts) + 1, len(corpus.target_counts) + 1
    sides = {"source": n, "target": m}
    layout: Layout = {
        "weights": Numbers("float32", (len(corpus.columns), 2)),
        "null_mass": Numbers("float32", 2),
        "jumps": Numbers("float64", (2, BUCKETS)),
        "first": Numbers("float64", (2, FIRST)),
        "last": Numbers("float64", (2, FIRST)),
        "diagonal": Numbers("float64", (2, BUCKETS)),
        "pull": Numbers("float32", ("pulls", 2)),
    }
    for side, size in sides.items():
        layout |= {f"{side}_{name}": Numbers("float32", size) for name in ("mass", "null")}
        layout |= {f"{name}_{side}": Numbers("float32", ("cuts", size)) for name in ("own", "share")}
    found = check(arrays, layout, _PLACE)
    if not len(found["own_source"]) or (stems is not None and 0 < len(found["pull"]) < len(stems.other)):
        raise ModelError(f"{_PLACE}: parameters of another table. Begin the run again, in a new folder")


class AlignWorker:
    """Works on groups of shards of one text; what it is told by files is checked before a kernel indexes with it."""

    def __init__(self, setup: Parcel) -> None:
        arrays, meta = setup.arrays, setup.meta
        none = np.zeros(0, np.int64)
        _check_setup(arrays, meta["n_source"], meta["n_target"])
        sides = np.zeros(meta["n_source"], np.int64), np.zeros(meta["n_target"], np.int64)
        self.corpus = Corpus(
            _NO_WORDS, _NO_WORDS, *sides, arrays["rows"], arrays["columns"], [Shard(0, 0)], Shelf(),
            np.zeros(0, bool), meta["max_length"], meta["least"], Room(), (none, none),
        )  # fmt: skip
        self.stems: Stems | None = None
        if "stems.members" in arrays:
            known = {name: arrays[f"stems.{name}"] for name in _STEMS}
            few = np.zeros(0, np.int32)
            self.stems = Stems(group=few, source_class=few, owner=known["other"], **known)
        self.counts = np.zeros((len(self.corpus.columns), 2), np.int64)

    def begin(self, step: Parcel) -> WorkOnCounts | WorkOnCells:
        """The work on one group in one step."""
        return WorkOnCells(self, step) if step.meta["job"] == "decode" else WorkOnCounts(self, step)


class _Work:
    """What both kinds of work share: shards that come and go, and the step."""

    def __init__(self, worker: AlignWorker, step: Parcel) -> None:
        from isogloss.tasks.align._numba.expect import Parameters

        self.corpus, self.stems, self.meta = worker.corpus, worker.stems, step.meta
        _check_step(step.arrays, self.corpus, self.stems)
        numbers = {"p0": self.meta["p0"], "floor": np.float32(self.meta["floor"])}
        self.parameters = Parameters(**step.arrays, **numbers)
        self.settings = Settings(**self.meta["settings"])
        self.kept = Kept(self.corpus)

    def put(self, shard: int, words: Arrays, before: Arrays | None) -> None:
        known = {"n": len(self.corpus.source_counts), "m": len(self.corpus.target_counts)}
        check(words, _OF_SHARD, _PLACE, known)
        self.corpus.shelf.put(f"words-{shard}", *(words[name] for name in Words._fields))
        if before is not None:
            check_kept(before, self.corpus, shard, _PLACE)
            self.kept.store(shard, before)

    def drop(self, shard: int) -> None:
        self.corpus.shelf.drop(f"words-{shard}")
        self.kept.drop(shard)


class WorkOnCounts(_Work):
    """The E-step of a group of shards."""

    def __init__(self, worker: AlignWorker, step: Parcel) -> None:
        super().__init__(worker, step)
        self.counts, self.others = worker.counts, no_counts(self.corpus, self.stems)
        self.counts[:] = 0
        self.sums: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        self.step = EStep(
            "", self.corpus, self.stems, self.kept, self.parameters, self.settings, self.meta["kind"],
            self.meta["constraint"], leave_out=self.meta["leave_out"], keeps=self.meta["keeps"],
        )  # fmt: skip

    def add(self, shard: int, words: Arrays, before: Arrays | None) -> Arrays | None:
        """Work on a shard; returns its evidence, if that is kept."""
        self.put(shard, words, before)
        found = self.step(shard)
        found.add_to(self.counts, self.others)
        found.keep()
        self.sums += found.sums
        handed_on = self.kept.stored(shard) if self.step.keeps else None
        self.drop(shard)
        return handed_on

    def result(self) -> Arrays:
        """Counts of entries, a row for each that has some unless most have; and all the rest."""
        jumped, bounds = (np.stack(column) for column in zip(*self.sums, strict=True))
        counts, entries = self.counts, np.flatnonzero(self.counts.any(axis=1))
        found: Arrays = {**self.others._asdict(), "jumped": jumped, "bounds": bounds}
        if 2 * len(entries) < len(counts):
            found["entries"], counts = entries.astype(np.min_scalar_type(len(counts))), counts[entries]
        found["counts"] = counts.astype(np.uint32 if counts.max(initial=0) < 1 << 32 else np.int64)
        return found


class WorkOnCells(_Work):
    """Decoding of a group of shards."""

    def __init__(self, worker: AlignWorker, step: Parcel) -> None:
        super().__init__(worker, step)
        self.bins: NDArray[np.int64] = np.zeros(2 * decoding.UNIT + 1, np.int64)

    def add(self, shard: int, words: Arrays, before: Arrays | None) -> Arrays | None:
        """Decode a shard; returns cells that may become links."""
        self.put(shard, words, before)
        pairs, _ = self.corpus.shard(shard, self.stems)
        evidence, _ = expect_shard(
            self.corpus, pairs, self.parameters, self.settings, self.settings.model, self.settings.decode_constraint,
            self.kept.before(shard, pairs), leave_out=self.settings.decode_leave_out, learn=False,
        )  # fmt: skip
        self.bins += decoding.spectrum(evidence.posterior)
        decoding.drop_below(evidence.posterior, self.meta["chosen"])
        self.kept.put(shard, pairs, evidence)
        handed_on = self.kept.stored(shard)
        self.drop(shard)
        return handed_on

    def result(self) -> Arrays:
        return {"bins": self.bins}
