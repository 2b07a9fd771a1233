"""How a constituency parser comes from sentences to trees: distributions, some at a time, and one tree of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituents import Constituents
from isogloss.engine.shards import shards
from isogloss.structures.span_tree import SpanTrees
from isogloss.structures.spans import span_number
from isogloss.tasks.parse.constituency.fitted import FittedSpans
from isogloss.tasks.parse.constituency.model import model_of
from isogloss.tasks.parse.constituency.pruning import Within
from isogloss.tasks.parse.constituency.seen import Seen
from isogloss.tasks.parse.constituency.trees import Labels, Spans, trees_of
from isogloss.tasks.parse.constituency.words import span_parts
from isogloss.tasks.parse.cutting import LONGEST, cut

__all__ = ["Choosing", "distributions", "parsed", "posteriors"]

PIECE = 1 << 16
"""Spans whose scores are in memory together."""


class Choosing(NamedTuple):
    """How a tree is chosen.

    Parameters
    ----------
    cost : float, optional
        What a bracket costs beside its posterior; None for the best tree.
    share : float
        What grammars count for where there are scores of spans, too.
    """

    cost: float | None
    share: float


def distributions(seen: Seen, learnt: FittedSpans, share: float = 0.0) -> Iterator[Any]:
    """Distributions over the trees of all sentences, or their pieces, some at a time."""
    offsets = cut(seen.codes.offsets)
    lengths = np.diff(offsets)
    words = [word for sentence in seen.words for word in sentence]
    tags = [tag for sentence in seen.tags for tag in sentence] if seen.gold else None
    limit = PIECE if learnt.grammar is None else PIECE // 4
    for start, stop in shards(lengths * (lengths + 1) // 2, limit=limit):
        found: Any = None
        if learnt.features.templates:
            some = seen.codes.part(offsets[start : stop + 1])
            parts = span_parts(some)
            kept = None if learnt.filter is None else learnt.filter.kept(some, parts)
            found = model_of(learnt.features, some, parts, kept).batch(learnt.weights, np.arange(stop - start))
        if learnt.grammar is not None:
            bounds = list(pairwise(offsets[start : stop + 1].tolist()))
            given = None if tags is None else [tags[a:b] for a, b in bounds]
            beside = None if found is None else posteriors(found)
            within = None if beside is None else Within(learnt.labels, beside)
            own = learnt.grammar.posteriors([words[a:b] for a, b in bounds], given, within=within)
            found = own if beside is None else own.mixed(beside, share)
        yield found


def parsed(seen: Seen, learnt: FittedSpans, how: Choosing, name: str, confidence: bool = False) -> Constituents:
    """The chosen trees of all sentences; with `confidence`, they have the posterior of each bracket."""
    alone = not learnt.features.templates  # a grammar has tags of its own
    found: list[Spans] = []
    sure: list[dict[tuple[int, int, int], float]] = []
    own_tags: list[str] = []
    for trees in distributions(seen, learnt, how.share):
        best = trees.argmax() if how.cost is None else trees.most_right(threshold=how.cost)
        found += best
        if alone:
            own_tags += [tag for tags in trees.tags for tag in tags]
        if confidence:
            for spans, posterior in zip(best, posteriors(trees), strict=True):
                n = max((end for _, end, _ in spans), default=0)
                sure.append({span: float(posterior[span_number(span[0], span[1], n), span[2]]) for span in spans})
    pieces = cut(seen.codes.offsets)
    if len(pieces) != len(seen.codes.offsets):
        found, sure = _whole(found, sure, pieces, seen.codes.offsets)
    bounds = pairwise(seen.codes.offsets.tolist())
    tags = [tuple(own_tags[a:b]) for a, b in bounds] if alone else seen.tags
    made = trees_of(seen.words, tags, found, learnt.names, name)
    return replace(made, confidence=_confidence(made, found, sure, learnt.names)) if confidence else made


def posteriors(trees: Any) -> Any:
    """float64[n_spans, n_labels] of each sentence."""
    return trees.marginals() if isinstance(trees, SpanTrees) else trees.constituents()


def _whole(
    found: Sequence[Spans], sure: Sequence[Mapping[Any, float]], pieces: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[list[Spans], list[dict[tuple[int, int, int], float]]]:  # fmt: skip
    """Trees of pieces side by side, under the label of the first of them."""
    counts = np.maximum(1, -(-np.diff(offsets) // LONGEST))
    which = np.repeat(np.arange(len(counts)), counts)
    whole: list[set[tuple[int, int, int]]] = [set() for _ in range(len(offsets) - 1)]
    chances: list[dict[tuple[int, int, int], float]] = [{} for _ in whole]
    for number, (start, sentence) in enumerate(zip(pieces[:-1].tolist(), which.tolist(), strict=True)):
        shift = start - int(offsets[sentence])
        for begin, end, label in found[number]:
            whole[sentence].add((begin + shift, end + shift, label))
            if sure:
                chances[sentence][begin + shift, end + shift, label] = sure[number][begin, end, label]
        if counts[sentence] > 1 and shift == 0:
            n = int(offsets[sentence + 1] - offsets[sentence])
            top = max(found[number], key=lambda span: span[1] - span[0])
            whole[sentence].add((0, n, top[2]))
            chances[sentence][0, n, top[2]] = 0.0
    return [frozenset(spans) for spans in whole], chances if sure else []


def _confidence(
    made: Constituents, found: Sequence[Spans], sure: Sequence[Mapping[Any, float]], names: Labels
) -> NDArray[np.float64]:
    """float64[n_nodes]: the posterior of each node; those of a unary chain share theirs, the outermost has 1."""
    out = np.ones(made.n_nodes)
    for number, chances in enumerate(sure):
        by_span = {(begin, end): chance for (begin, end, _), chance in chances.items()}
        first, last = made.node_offsets[number : number + 2].tolist()
        for node in range(first + (names.root is not None), last):
            out[node] = by_span[int(made.begins[node]), int(made.ends[node])]
    return out
