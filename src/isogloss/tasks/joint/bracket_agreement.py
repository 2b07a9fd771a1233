"""How constituents of two sentences and bispans between them agree: tuples of parts, and what they are seen by.

============  ==================================================================================================
source        a bracket of the source, by its log odds, and `target` one of the target: what the parsers count
odds          a terminal, by the log odds of its links: what the aligner counts
terminal      a terminal as such: its pattern, how far it is from the diagonal, tags of single words
bispan        a bispan as such: differences in size and place of its two sides, links inside and across its border
align-source  a bispan and a bracket over its source words, and `align-target` the same of the target
align-both    a bispan and brackets over both its sides
============  ==================================================================================================

The last three are the six templates of Burkett, Blitzer and Klein [1]_ for phrases: by the kind alone (coarse), and
with labels (fine). Words are nodes without a choice, so that their part-of-speech templates are features of terminals.
Trees are not binarised here, so that there are no synthetic nodes.

References
----------
.. [1] Burkett, Blitzer and Klein, Joint parsing and alignment with weakly synchronized grammars, NAACL 2010, section 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.features.parts import Axis, Parts, Role
from isogloss.features.sparse import Sparse
from isogloss.features.table import Numbering
from isogloss.features.templates import Templates
from isogloss.learners.meanfield import Coupling
from isogloss.structures import Bitrees, SpanTrees
from isogloss.structures.bichart import PATTERNS
from isogloss.tasks.joint.bracket_opinions import BracketOpinions

__all__ = ["KINDS", "BracketAgreement", "bracket_templates"]

KINDS = ("source", "target", "odds", "terminal", "bispan", "align-source", "align-target", "align-both")
_NUMBER = {name: number for number, name in enumerate(KINDS)}
SHAPES = ("pattern", "distance", "size", "place", "inside", "across")
"""What terminals and bispans are seen by, in bins."""
ROLES = (*SHAPES, "first", "second")
"""The last two are labels, or tags of single words, of source and target."""
DISTANCES = (0.02, 0.05, 0.1, 0.2, 0.4)
SIZES = (0.5, 1.5, 3.5, 6.5)
DENSITIES = (0.1, 0.3, 0.5, 0.8)
CROSSINGS = (0.05, 0.25, 0.75, 1.5)
"""Where bins begin: of distances between relative places, differences of sizes, links inside and across."""
Ints = NDArray[np.int64]


def bracket_templates(grain: str) -> Templates:
    """Kind and shape; kind with labels of one or both sides."""
    coarse = ["kind", *(f"kind & {shape}.code" for shape in SHAPES)]
    fine = ["kind & first.code", "kind & second.code", "kind & first.code & second.code"]
    return Templates([*(coarse if grain != "fine" else coarse[:1]), *(fine if grain != "coarse" else ())], kind="joint")


class _Rows:
    """Tuples of one pair: bispan or terminal, brackets of both sides (−1 for none), codes and values."""

    def __init__(self, kind: str, n: int, **given: Any) -> None:
        self.kind = np.full(n, _NUMBER[kind], np.int64)
        self.value = np.broadcast_to(np.asarray(given.pop("value", 1.0), np.float64), n)
        self.parts = np.stack([_column(given.pop(name, -1), n) for name in ("bispan", "source", "target")], axis=1)
        self.codes = np.stack([_column(given.pop(name, -1), n) for name in ROLES], axis=1)


def _column(values: Any, n: int) -> Ints:
    return np.broadcast_to(np.asarray(values, np.int64), n)


class BracketAgreement:
    """The tuples of some pairs, for `mean_field`, with what they are seen by.

    Parameters
    ----------
    components : derivations, trees of the source and trees of the target
    opinions : BracketOpinions
    names : dict of str to int
        Numbers of labels and tags, from 1; others are not seen.
    which : str
        The option `coupling`.
    """

    def __init__(
        self,
        components: list[Any],
        opinions: BracketOpinions,
        names: dict[str, int],
        which: str,
    ) -> None:
        bispans, source, target = components
        sizes = [len(one.scores.values) for one in components]
        codes = [
            np.array([names.get(label, -1) for label in side], np.int64)
            for side in (opinions.source_labels, opinions.target_labels)
        ]
        tags = [
            np.array([names.get(tag, -1) for tag in side], np.int64)
            for side in (opinions.source_tags, opinions.target_tags)
        ]
        words = [np.concatenate([[0], np.cumsum(bispans.chart.sizes[:, k])]) for k in (0, 1)]
        rows: list[_Rows] = []
        counts, shifts = [], []
        starts = np.concatenate([[0], np.cumsum(sizes)])
        for s in range(len(bispans)):
            own = [side[at[s] : at[s + 1]] for side, at in zip(tags, words, strict=True)]
            made = [*_alone(bispans, opinions.links[s], own, s)]
            made += _brackets(source, codes[0], s, "source") + _brackets(target, codes[1], s, "target")
            if which != "none":
                made += _aligned(bispans, source, target, codes, s, which)
            counts.append(sum(len(one.kind) for one in made))
            shifts.append([starts[k] + components[k].scores.offsets[s] for k in range(3)])
            rows += made
        self.offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        owner = np.repeat(np.arange(len(counts)), counts)
        parts = np.concatenate([np.zeros((0, 3), np.int64), *(one.parts for one in rows)])
        moved = parts + np.array(shifts, np.int64).reshape(-1, 3)[owner]
        self.coupling = Coupling(sizes, np.where(parts < 0, -1, moved))
        self.value = np.concatenate([np.zeros(0), *(one.value for one in rows)])
        self.kinds = np.concatenate([np.zeros(0, np.int64), *(one.kind for one in rows)])
        seen = np.concatenate([np.zeros((0, len(ROLES)), np.int64), *(one.codes for one in rows)])
        axis = Axis([0, int(seen.max(initial=0)) + 1], code=np.arange(int(seen.max(initial=0)) + 1))
        roles = {name: Role(axis, np.ascontiguousarray(seen[:, k])) for k, name in enumerate(ROLES)}
        self.parts = Parts(len(self.value), self.offsets, roles, {"kind": self.kinds})

    def features(self, templates: Templates, numbering: Numbering) -> Sparse:
        """A row for each tuple: indicators, times what the tuple is worth."""
        plain = templates.matrix(self.parts, numbering)
        values = np.repeat(self.value, np.diff(plain.indptr))
        return Sparse(plain.indptr, plain.indices, plain.n_indicators, values)


def _alone(bispans: Bitrees, posterior: NDArray[np.float64], tags: list[Ints], s: int) -> list[_Rows]:
    """Terminals and bispans by themselves."""
    chart = bispans.chart
    cells, terms = chart.cells_of(s).astype(np.int64), chart.terms_of(s).astype(np.int64)
    first_term, first_cell = int(chart.first_terms[s]), int(chart.first_cells[s])
    n, m = posterior.shape
    i, k, j, h = cells.T
    apart = np.abs((i + k) / (2 * max(1, n)) - (j + h) / (2 * max(1, m)))
    far = np.searchsorted(DISTANCES, apart, side="right")
    at = terms[:, 0]
    numbers = first_term + np.arange(len(terms))
    # tags are those of the single word on that side, if there is one
    first = np.where(k[at] - i[at] == 1, np.append(tags[0], -1)[np.minimum(i[at], n)], -1)
    second = np.where(h[at] - j[at] == 1, np.append(tags[1], -1)[np.minimum(j[at], m)], -1)
    kinds = np.array([pattern.n_source * 8 + pattern.n_target for pattern in PATTERNS], np.int64)
    worth = bispans.scores[s][numbers]
    sums = np.zeros((n + 1, m + 1))
    sums[1:, 1:] = posterior.cumsum(axis=0).cumsum(axis=1)
    inside = sums[k, h] - sums[i, h] - sums[k, j] + sums[i, j]
    across = sums[k, m] - sums[i, m] + sums[n, h] - sums[n, j] - 2 * inside
    density = inside / np.minimum(k - i, h - j)
    return [
        _Rows("odds", len(terms), bispan=numbers, pattern=kinds[terms[:, 1]], value=worth),
        _Rows("terminal", len(terms), bispan=numbers, pattern=kinds[terms[:, 1]], distance=far[at], first=first,
              second=second),
        _Rows("bispan", len(cells), bispan=first_cell + np.arange(len(cells)), place=far,
              size=np.searchsorted(SIZES, np.abs((k - i) - (h - j)), side="right"),
              inside=np.searchsorted(DENSITIES, density, side="right"),
              across=np.searchsorted(CROSSINGS, across, side="right")),
    ]  # fmt: skip


def _brackets(component: SpanTrees, codes: Ints, s: int, side: str) -> list[_Rows]:
    """Brackets of one side that are looked at, by their scores."""
    scores = component.scores[s]
    spans, labels = np.nonzero(scores > -np.inf)
    given = {side: spans * scores.shape[1] + labels, "first" if side == "source" else "second": codes[labels]}
    return [_Rows(side, len(spans), value=scores[spans, labels], **given)]


def _span_numbers(first: Ints, last: Ints, n: int) -> Ints:
    """Numbers of spans, as `span_number` has them."""
    shorter = last - first - 1
    return np.asarray(shorter * n - shorter * (shorter - 1) // 2 + first)


def _listed(scores: NDArray[np.float64]) -> tuple[Ints, Ints]:
    """Where the allowed labels of each span begin, and the cells of all of them."""
    allowed = scores > -np.inf
    starts = np.concatenate([[0], np.cumsum(allowed.sum(axis=1))]).astype(np.int64)
    return starts, np.flatnonzero(allowed)


def _aligned(
    bispans: Bitrees, source: SpanTrees, target: SpanTrees, codes: list[Ints], s: int, which: str
) -> list[_Rows]:
    """Bispans with brackets over their source words, over their target words, and over both."""
    chart = bispans.chart
    cells = chart.cells_of(s).astype(np.int64)
    n, m = chart.sizes[s].tolist()
    numbers = int(chart.first_cells[s]) + np.arange(len(cells))
    sides = []
    for component, first, last, size in ((source, 0, 1, n), (target, 2, 3, m)):
        starts, places = _listed(component.scores[s])
        span = _span_numbers(cells[:, first], cells[:, last], size)
        sides.append((starts[span], starts[span + 1] - starts[span], places, component.scores[s].shape[1]))
    found = []
    (begin, many, places, wide), (other_begin, other_many, other_places, other_wide) = sides
    if which != "both":
        rows, own = _expanded(many)
        left = places[begin[rows] + own]
        given = {"bispan": numbers[rows], "source": left, "first": codes[0][left % wide]}
        found.append(_Rows("align-source", len(rows), **given))
        rows, own = _expanded(other_many)
        right = other_places[other_begin[rows] + own]
        given = {"bispan": numbers[rows], "target": right, "second": codes[1][right % other_wide]}
        found.append(_Rows("align-target", len(rows), **given))
    if which != "partial":
        rows, own = _expanded(many * other_many)
        left = places[begin[rows] + own // np.maximum(1, other_many[rows])]
        right = other_places[other_begin[rows] + own % np.maximum(1, other_many[rows])]
        given = {"bispan": numbers[rows], "source": left, "target": right}
        given |= {"first": codes[0][left % wide], "second": codes[1][right % other_wide]}
        found.append(_Rows("align-both", len(rows), **given))
    return found


def _expanded(counts: Ints) -> tuple[Ints, Ints]:
    """For each of some counts its row, so often, and numbers from 0 on."""
    rows = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(counts)
    return rows, np.arange(len(rows)) - np.repeat(ends - counts, counts)
