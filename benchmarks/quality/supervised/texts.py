"""Texts with gold to learn from and gold to be scored on; their features are made once and kept under out/supervised.

The text without labels is that of the unsupervised benchmark, line for line, so that both are fairly compared: the
extractor and the reference aligner have seen the same words and no label.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import isogloss
from benchmarks import scoring
from benchmarks.corpora import Set, all_sets
from isogloss.data import Bitext, Links
from isogloss.tasks.align import HMMAligner
from isogloss.tasks.align.features import SETS, FeatureExtractor, PairFeatures
from isogloss.tasks.align.features.base import PartFeatures
from isogloss.tasks.align.supervised.base import SupervisedAligner
from isogloss.tasks.align.supervised.parts import take_pairs

KEPT = Path("out/supervised")
SOURCES = Path(isogloss.__file__).parent
ALL_SETS = SETS
MAX_LENGTH = 200
POOL = 1000
"""Gold pairs from which those to learn from are drawn; large sets have more than we need in memory."""
POOL_SEED = 2006

Numbers = NDArray[np.int64]
Array = NDArray[Any]


@dataclass(frozen=True)
class Source:
    """Which set a text is of, and which of its splits has gold to learn from."""

    name: str
    data: str
    train: str
    test: str = "test"

    @property
    def shared(self) -> bool:
        """Whether training pairs come first in the same split as test pairs: the papers' division of Hansards."""
        return self.train == self.test


TEXTS = {
    source.name: source
    for source in (
        Source("hansards-2k", "en-fr.hansards", "test"),
        Source("hansards-100k", "hansards-100k", "test"),
        Source("en-cs.czenali", "en-cs.czenali", "dev"),
        Source("grc-fi.helfi", "grc-fi.helfi", "train"),
        Source("ja-en.kftt", "ja-en.kftt", "dev"),
        Source("en-et.xlwa", "en-et.xlwa", "dev"),
        Source("en-ru.xlwa", "en-ru.xlwa", "dev"),
    )
}


@dataclass(frozen=True, eq=False)
class Gold:
    """Sentence pairs with gold links."""

    split: str
    numbers: Numbers
    """Which lines of the split they are, from 0."""
    places: Numbers
    """Which of the pairs whose features are kept."""
    links: Links

    def __len__(self) -> int:
        return len(self.links)

    def take(self, chosen: Numbers) -> Gold:
        """Some of the pairs, in the order given."""
        return Gold(self.split, self.numbers[chosen], self.places[chosen], self.links.take(chosen))


class Benchmark:
    """One text: gold to learn from (the pool) and to be scored on, features, and links of the unsupervised default."""

    def __init__(self, source: Source, threads: int) -> None:
        self.source, self.threads = source, threads
        self.data: Set = all_sets()[source.data]
        self.data.assemble()
        self._loaded: dict[tuple[str, ...], PairFeatures] = {}
        self.feature_seconds: dict[tuple[str, ...], tuple[float, float]] = {}
        """By sets of features: to learn from the text without labels, and to make features of pool and test pairs."""

    @cached_property
    def text(self) -> Bitext:
        return Bitext.read(self.data.source, self.data.target)

    @cached_property
    def pool(self) -> Gold:
        """Pairs that may be learnt from; for Hansards, all that have gold."""
        n = len(self.data.lines[self.source.train])
        numbers = np.arange(n)
        if not self.source.shared and n > POOL:
            numbers = np.sort(np.random.default_rng(POOL_SEED).permutation(n)[:POOL])
        return Gold(self.source.train, numbers, np.arange(len(numbers)), self._gold(self.source.train, numbers))

    def test(self, n_train: int) -> Gold:
        """Pairs to be scored on: for Hansards, those after the first `n_train`."""
        if self.source.shared:
            return self.pool.take(np.arange(n_train, len(self.pool)))
        numbers = np.arange(len(self.data.lines[self.source.test]))
        return Gold(self.source.test, numbers, len(self.pool) + numbers, self._gold(self.source.test, numbers))

    def _gold(self, split: str, numbers: Numbers) -> Links:
        return scoring.gold(self.data.gold(split)).take(numbers)

    def bitext(self, gold: Gold) -> Bitext:
        start = self.data.lines[gold.split].start
        return Bitext.of(self.text[start + k] for k in gold.numbers.tolist())

    # --- features

    def features(self, gold: Gold, aligner: SupervisedAligner) -> PairFeatures:
        """What an aligner learns from."""
        sets = aligner.new_extractor().sets
        further = [name for name in sets if name not in ALL_SETS]  # these depend on which other sets there are
        if further:
            return take_pairs(self._features(sets), gold.places)
        return select(take_pairs(self._features(ALL_SETS), gold.places), sets)

    def _features(self, sets: tuple[str, ...]) -> PairFeatures:
        """Of pool and test pairs, kept in a file."""
        if sets not in self._loaded:
            path = KEPT / f"{self.source.name}-{'+'.join(sets)}.npz"
            arrays = self._keep(path, sets, lambda: self._make(sets))
            self._loaded.clear()  # one at a time in memory
            self._loaded[sets] = unpack(arrays)
            fit, transform = arrays["seconds"].tolist()
            self.feature_seconds[sets] = fit, transform
        return self._loaded[sets]

    def _make(self, sets: tuple[str, ...]) -> dict[str, Array]:
        start = time.perf_counter()
        extractor = FeatureExtractor(sets, max_length=MAX_LENGTH, threads=self.threads).fit(self.text)
        fitted = time.perf_counter()
        text = [self.bitext(self.pool)] if self.source.shared else [self.bitext(self.pool), self.bitext(self.test(0))]
        arrays = pack(extractor.transform(Bitext.of(pair for part in text for pair in part)))
        return arrays | {"seconds": np.array([fitted - start, time.perf_counter() - fitted])}

    def _keep(self, path: Path, sets: tuple[str, ...], make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
        """What a file has, unless text or code have changed since."""
        key = self._key(sets)
        if path.exists():
            with np.load(path) as kept:
                if str(kept["key"]) == key:
                    return dict(kept)
        KEPT.mkdir(parents=True, exist_ok=True)
        arrays = {**make(), "key": np.array(key)}
        unfinished = path.with_suffix(".unfinished.npz")
        with open(unfinished, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        unfinished.rename(path)
        return arrays

    def _key(self, sets: tuple[str, ...]) -> str:
        digest = hashlib.sha256(repr((sets, MAX_LENGTH, POOL, POOL_SEED)).encode())
        for path in (self.data.source, self.data.target):
            digest.update(path.read_bytes())
        digest.update(code_of("tasks/align", "data", besides="supervised").encode())
        return digest.hexdigest()

    # --- the unsupervised default

    @cached_property
    def _reference(self) -> dict[str, Array]:
        return self._keep(KEPT / f"{self.source.name}-hmm.npz", (), self._align)

    def _align(self) -> dict[str, Array]:
        start = time.perf_counter()
        lines = self.data.lines[self.source.test]
        links = HMMAligner(threads=self.threads).fit(self.text).predict(self.text).part(lines.start, lines.stop)
        seconds = np.array(time.perf_counter() - start)
        return {"offsets": links.offsets, "source": links.source, "target": links.target, "seconds": seconds}

    def reference(self, n_train: int) -> Links:
        """What the unsupervised default, trained on the same text, says about the test pairs."""
        kept = self._reference
        links = Links(kept["offsets"], kept["source"], kept["target"], None, None)
        return links.part(n_train, len(links)) if self.source.shared else links

    @property
    def reference_seconds(self) -> float:
        return float(self._reference["seconds"])


@cache
def benchmark(name: str, threads: int) -> Benchmark:
    return Benchmark(TEXTS[name], threads)


def select(features: PairFeatures, sets: tuple[str, ...]) -> PairFeatures:
    """Only the features of some sets, as an extractor with these sets makes them."""
    wanted = FeatureExtractor(sets)
    links = [features.column(name) for name in wanted.link_names]
    nulls = [features.null_names.index(name) for name in wanted.null_names]
    lexical = "lexical" in sets
    return replace(
        features,
        link_names=wanted.link_names,
        links=np.ascontiguousarray(features.links[:, links]),
        null_names=wanted.null_names,
        source_nulls=np.ascontiguousarray(features.source_nulls[:, nulls]),
        target_nulls=np.ascontiguousarray(features.target_nulls[:, nulls]),
        lexical=features.lexical if lexical else None,
        lexical_names=features.lexical_names if lexical else (),
    )


@cache
def code_of(*folders: str, besides: str = "") -> str:
    """A short hash of sources: two rows with the same one were made by the same code."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((SOURCES / folder).rglob("*.py")):
            if not besides or besides not in path.relative_to(SOURCES).parts:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def pack(features: PairFeatures | PartFeatures, prefix: str = "") -> dict[str, Array]:
    """Plain arrays for a file."""
    arrays: dict[str, Array] = {}
    for field in fields(features):
        value = getattr(features, field.name)
        if isinstance(value, Mapping):
            for name, parts in value.items():
                arrays |= pack(parts, f"{prefix}{field.name}/{name}/")
        elif field.name in ("lexical", "indicators"):
            arrays |= {f"{prefix}{field.name}.{k}": array for k, array in enumerate(value or ())}
        else:
            arrays[prefix + field.name] = np.asarray(value)
    return arrays


def unpack(arrays: Mapping[str, Array]) -> PairFeatures:
    """What `pack` packed."""
    more = dict.fromkeys(name.split("/")[1] for name in arrays if name.startswith("further/"))
    further = {name: PartFeatures(**_fields(PartFeatures, arrays, f"further/{name}/")) for name in more}
    own = _fields(PairFeatures, arrays, "")
    return PairFeatures(**(own | {"further": further} if further else own))


def _fields(kind: type[Any], arrays: Mapping[str, Array], prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in (field.name for field in fields(kind)):
        array = arrays.get(prefix + name)
        if array is not None:
            found[name] = tuple(array.tolist()) if name.endswith("names") else array
        elif f"{prefix}{name}.0" in arrays:
            found[name] = arrays[f"{prefix}{name}.0"], arrays[f"{prefix}{name}.1"]
    return found
