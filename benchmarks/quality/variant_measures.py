"""What is measured of a way to train the aligner, with what chance does to it: every measure on the same resamples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import scoring
from benchmarks.corpora import Set
from isogloss.data import Bitext, Links
from isogloss.metrics import bijectivity, curve, score_by_frequency, score_links, symmetry
from isogloss.metrics._resampling import resampled
from isogloss.tasks.align import HMMAligner
from isogloss.tasks.align import decode as decoding
from isogloss.tasks.align.symmetrise import symmetrise_links

LEAST = 1 / (2 * decoding.UNIT)  # the smallest posterior that is told from 0
RESAMPLES = 2000
RARE = 5  # a word is rare that occurs fewer times in the text
THRESHOLDS = (0.2, 0.3, 0.4, 0.5)
RECALL = 0.85  # at which precisions are compared
BINS = 60  # of thresholds, on curves of resamples
GROWN = "grow-diag-final-and"
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """A measure in percent, and its values on resamples of the sentence pairs, the same for every measure of a set."""

    value: float
    draws: Numbers

    def __add__(self, other: Measured) -> Measured:
        return Measured(self.value + other.value, self.draws + other.draws)

    def __sub__(self, other: Measured) -> Measured:
        return Measured(self.value - other.value, self.draws - other.draws)

    def halved(self) -> Measured:
        return Measured(self.value / 2, self.draws / 2)

    def below(self, other: Measured) -> Measured:
        """By how many percent it is below another."""
        return Measured(100 * (1 - self.value / other.value), 100 * (1 - self.draws / other.draws))

    @property
    def p_value(self) -> float:
        """Two-sided, that it differs from 0; never 0 itself."""
        tail = min(np.count_nonzero(self.draws <= 0), np.count_nonzero(self.draws >= 0))
        return min(1.0, 2 * (1 + tail) / (1 + len(self.draws)))


def measured(counts: NDArray[Any], rate: Callable[[NDArray[Any]], Any]) -> Measured:
    """The rate (0 to 1) of the summed counts array[n_pairs, ...]."""
    drawn = resampled(counts, RESAMPLES, scoring.SEED)
    return Measured(100 * float(rate(counts.sum(axis=0))), 100 * np.asarray(rate(drawn), float))


def _share(counts: NDArray[Any]) -> NDArray[Any]:
    return counts[..., 0] / np.maximum(1, counts[..., 1])


class Outcome:
    """A trained aligner on the text of a set: the links of a split, read from it in several ways."""

    def __init__(self, aligner: HMMAligner, data: Set, bitext: Bitext) -> None:
        self.data, self.bitext = data, bitext
        self.aligner = aligner.fit(bitext)
        self._corpus, self._model, self._evidence = self.aligner._evidence(bitext)
        self.violation = self._violation()

    def _violation(self) -> float:
        """How far decoding leaves posteriors from the constraint, on the mean of all pairs."""
        offsets, posterior = self._corpus.pairs.cell_offsets, self._evidence.posterior / decoding.UNIT
        found = []
        for k in range(len(self._corpus)):
            n, m = self._corpus.shape(k)
            if n and m:
                forward, backward = np.moveaxis(posterior[offsets[k] : offsets[k + 1]].reshape(n, m, 2), -1, 0)
                if self.aligner.options_["decode_constraint"] == "bijective":
                    found.append(max(0.0, forward.sum(axis=1).max() - 1, backward.sum(axis=0).max() - 1))
                else:
                    found.append(float(np.linalg.norm(forward - backward)))
        return float(np.mean(found))

    @cached_property
    def gold(self) -> Links:
        return scoring.gold(self.data.gold("test"))

    def above(self, threshold: float, direction: decoding.Direction = "both", split: str = "test") -> Links:
        """Cells of a split whose posterior reaches a threshold."""
        links = decoding.links_above(self._corpus.pairs, self._evidence.posterior, threshold, direction)
        return self._part(links, split)

    @cached_property
    def joined(self) -> Links:
        """Links as `predict` gives them: the mean of both directions above the label-free threshold."""
        return self.above(self.aligner.threshold_)

    @cached_property
    def directional(self) -> tuple[Links, Links]:
        """Posterior decoding of each direction by itself, each with its own label-free threshold."""
        return self._direction("forward"), self._direction("backward")

    def _direction(self, direction: decoding.Direction) -> Links:
        bins = decoding.spectrum(self._evidence.posterior, direction)
        return self.above(decoding.expected_f_threshold(bins), direction)

    @cached_property
    def _whole_paths(self) -> tuple[Links, Links]:
        parameters = self._model.parameters(self.aligner._settings)
        found = self.aligner._best_paths(self._corpus.pairs, parameters)
        return decoding.links_of_paths(self._corpus.pairs, *found)

    @cached_property
    def paths(self) -> tuple[Links, Links]:
        """Viterbi paths of each direction: the parameters as they stand, nothing projected and nothing left out."""
        forward, backward = self._whole_paths
        return self._part(forward, "test"), self._part(backward, "test")

    @cached_property
    def points(self) -> tuple[Links, Links]:
        """Posterior decoding of each direction with as many links as its Viterbi paths have in the whole text."""
        names: tuple[decoding.Direction, ...] = ("forward", "backward")
        forward, backward = (
            self.above(
                decoding.points_threshold(decoding.spectrum(self._evidence.posterior, name), len(path.source)), name
            )
            for name, path in zip(names, self._whole_paths, strict=True)
        )
        return forward, backward

    def together(self, both: tuple[Links, Links], method: str) -> Links:
        """Links of both directions joined."""
        return symmetrise_links(*both, np.array(self.data.shapes("test")), method)

    def _part(self, links: Links, split: str) -> Links:
        lines = self.data.lines[split]
        return links.part(lines.start, lines.stop)

    @property
    def dev_threshold(self) -> float | None:
        """The threshold that is best on the dev split; None where there is none."""
        if not self.data.has_gold("dev"):
            return None
        dev = curve(self.above(LEAST, split="dev"), scoring.gold(self.data.gold("dev")))
        return min(1.0, dev.best_threshold())

    def measures(self) -> dict[str, Measured]:
        """Everything, by the name of its column."""
        found = {
            "AER": self._aer(self.joined),
            "viterbi_forward": self._aer(self.paths[0]),
            "viterbi_backward": self._aer(self.paths[1]),
            "viterbi_both": self._aer(self.together(self.paths, "intersection")),
            "viterbi_grown": self._aer(self.together(self.paths, GROWN)),
            "posterior_forward": self._aer(self.directional[0]),
            "posterior_backward": self._aer(self.directional[1]),
            "points_forward": self._aer(self.points[0]),
            "points_backward": self._aer(self.points[1]),
            "points_grown": self._aer(self.together(self.points, GROWN)),
            "symmetry": self._symmetry(),
            "one_to_one_forward": self._one_to_one(self.directional[0]),
            "one_to_one_backward": self._one_to_one(self.directional[1]),
        }
        found |= {f"AER_{threshold}": self._aer(self.above(threshold)) for threshold in THRESHOLDS}
        return found | self._of_curve() | self._by_frequency()

    def _aer(self, links: Links) -> Measured:
        sample = score_links(links, self.gold, bootstrap=0).sample
        return measured(sample.counts, lambda counts: sample.rates(counts)["aer"])

    def _symmetry(self) -> Measured:
        """Sizes of intersections and unions are those of shares and of single links: |A∪B| = (|A| + |B|) / (1 + s)."""
        rows = []
        for k in range(len(self.gold)):
            forward, backward = (links.part(k, k + 1) for links in self.directional)
            union = (len(forward.source) + len(backward.source)) / (1 + (share := symmetry(forward, backward)))
            rows.append((share * union, union))
        return measured(np.array(rows), _share)

    def _one_to_one(self, links: Links) -> Measured:
        parts = [links.part(k, k + 1) for k in range(len(self.gold))]
        return measured(np.array([(bijectivity(one) * len(one.source), len(one.source)) for one in parts]), _share)

    def _of_curve(self) -> dict[str, Measured]:
        """Lowest AER, area, and precision at a recall; resamples have a grid of thresholds, the values all."""
        every, exact = self.above(LEAST), curve(self.above(LEAST), self.gold)
        assert every.probability is not None
        sample = score_links(every, self.gold, bootstrap=0).sample
        layers = [
            score_links(every.keep(every.probability >= least), self.gold, bootstrap=0).sample.counts
            for least in np.linspace(1, 0, BINS, endpoint=False) ** 2
        ]
        drawn = sample.rates(resampled(np.stack(layers, axis=1), RESAMPLES, scoring.SEED))
        precision, recall = drawn["precision"], drawn["recall"]
        trapezoids = np.diff(recall, axis=1) * (precision[:, 1:] + precision[:, :-1]) / 2
        area = trapezoids.sum(axis=1) + recall[:, 0] * (1 + precision[:, 0]) / 2  # from the empty set on
        reached = np.where((recall >= RECALL).any(axis=1), (recall >= RECALL).argmax(axis=1), BINS - 1)
        at = min(int(np.searchsorted(exact.recall, RECALL)), len(exact.recall) - 1)
        return {
            "AER_lowest": Measured(100 * float(exact.aer.min()), 100 * drawn["aer"].min(axis=1)),
            "area": Measured(100 * exact.area, 100 * area),
            "P_at_R": Measured(100 * float(exact.precision[at]), 100 * precision[np.arange(RESAMPLES), reached]),
        }

    def _by_frequency(self) -> dict[str, Measured]:
        """Precision and recall of links of rare and of common words."""
        lines = self.data.lines["test"]
        text = self.bitext.part(lines.start, lines.stop)
        scores = score_by_frequency(self.joined, self.gold, text, RARE, training=self.bitext, bootstrap=0)
        found = {}
        for kind, score in scores.items():
            for name, short in (("precision", "P"), ("recall", "R")):
                sample = score.sample
                found[f"{kind}_{short}"] = measured(
                    sample.counts, lambda counts, name=name, sample=sample: sample.rates(counts)[name]
                )
        return found
