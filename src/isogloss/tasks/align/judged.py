"""The text of a training, as its training came to judge it: without the own evidence of each sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Links
from isogloss.engine.base import Engine, LocalEngine
from isogloss.tasks.align import decode as decoding
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.evidence import Evidence, Kept
from isogloss.tasks.align.expectation import expect_shard
from isogloss.tasks.align.model import Model
from isogloss.tasks.align.priors import Stems
from isogloss.tasks.align.settings import Settings

if TYPE_CHECKING:
    from isogloss.tasks.align.remote import AlignedText, GatheredCells

__all__ = ["Decoding", "JudgedText"]

Directions = Callable[[Any, Evidence], Links]


class JudgedText:
    """Posteriors of the text that a model was trained on, found anew for a shard whenever they are asked for.

    What is kept of the first time, when the threshold is looked for, are cells that may become links, and scores.

    Parameters
    ----------
    corpus : Corpus
    model : Model
        What was learnt, with an entry for each of the text.
    own : tuple of arrays
        How much of the priors each occurrence is owed, as `Training.estimate` gives it.
    settings : Settings
    before : Kept
        What each cell put into the table.
    stems : Stems, optional
        What is known of cells without an entry.
    """

    def __init__(
        self,
        corpus: Corpus,
        model: Model,
        own: tuple[NDArray[np.float32], ...],
        settings: Settings,
        before: Kept,
        stems: Stems | None = None,
    ) -> None:
        self.stems = stems if corpus.least > 1 else None
        self.corpus, self.model, self.settings, self.before = corpus, model, settings, before
        self.parameters = model.parameters(settings, own)
        self.least = 1.0
        self._chosen = Kept(corpus)

    def pairs(self, shard: int) -> Any:
        """Pairs of one shard with the entries of their cells, valid until the next is asked for."""
        return self.corpus.shard(shard, self.stems)[0]

    def shard(self, shard: int) -> tuple[Any, Evidence]:
        """Pairs and evidence of one shard, valid until the next is asked for."""
        pairs = self.pairs(shard)
        settings = self.settings
        evidence, _ = expect_shard(
            self.corpus, pairs, self.parameters, settings, settings.model, settings.decode_constraint,
            self.before.before(shard, pairs), leave_out=settings.decode_leave_out, learn=False,
        )  # fmt: skip
        return pairs, evidence

    def decode(
        self, least: float, on_shard: Callable[[float], None], engine: Engine | None = None
    ) -> NDArray[np.int64]:
        """How many cells have each posterior (`decode.spectrum`); those from `least` on are kept for links."""
        bins: NDArray[np.int64] = np.zeros(2 * decoding.UNIT + 1, np.int64)
        n_shards, done = len(self.corpus.shards), 0
        on_shard(0.0)
        for found in (engine or LocalEngine()).map(Decoding(self, least), range(n_shards)):
            bins += found.bins
            done += found.keep(self._chosen)
            on_shard(done / n_shards)
        self.corpus.forget_cells()
        self.least = least
        return bins

    def links(self, threshold: float) -> Iterator[Links]:
        """Cells whose posterior reaches the threshold, shard by shard."""
        for shard in range(len(self.corpus.shards)):
            if threshold >= self.least:
                pairs, posterior = self._chosen.shard(shard)
            else:
                pairs, evidence = self.shard(shard)
                posterior = evidence.posterior
            yield decoding.links_above(pairs, posterior, threshold)

    @property
    def scores(self) -> NDArray[np.float64]:
        """Log-probability of each side given the other: float64[n_pairs, 2]."""
        return self._chosen.scores

    def hash(self) -> str:
        """SHA-256 of its words."""
        return self.corpus.hash()

    @cached_property
    def evidence(self) -> Evidence:
        """That of the whole text, cell by cell: for those who need all of it."""
        parts = []
        for shard in range(len(self.corpus.shards)):
            _, evidence = self.shard(shard)
            parts.append(evidence._replace(posterior=evidence.posterior.copy()))
        return Evidence.joined(parts)


class Decoding:
    """Decoding as a function of a shard: how many of its cells have each posterior, and which may become links."""

    name = "decoding"

    def __init__(self, text: JudgedText, least: float) -> None:
        self.text, self.least = text, least

    def __call__(self, shard: int) -> Decoded:
        pairs, evidence = self.text.shard(shard)
        bins = decoding.spectrum(evidence.posterior)
        decoding.drop_below(evidence.posterior, self.least)
        return Decoded(bins, shard, pairs, evidence)

    # --- for workers that are other processes

    def setup(self) -> AlignedText:
        """The text."""
        from isogloss.tasks.align.remote import AlignedText

        return AlignedText(self.text.corpus, self.text.stems)

    def written(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """All that decoding depends on but for its shard."""
        from isogloss.tasks.align.remote import written_step

        return written_step(self.text.parameters, self.text.settings, job="decode", chosen=self.least, keeps=True)

    def gathered(
        self, shards: Sequence[int], found: dict[str, NDArray[Any]], kept: Callable[[int], dict[str, NDArray[Any]]]
    ) -> GatheredCells:
        """What workers found for some shards."""
        from isogloss.tasks.align.remote import GatheredCells

        return GatheredCells(shards, found, kept)


class Decoded(NamedTuple):
    """What is known of the cells of a shard, valid until the next shard is worked on."""

    bins: NDArray[np.int64]
    shard: int
    pairs: Any
    evidence: Evidence

    def keep(self, chosen: Kept) -> int:
        """Keep the cells that may become links; returns how many shards they are of."""
        chosen.put(self.shard, self.pairs, self.evidence)
        return 1
