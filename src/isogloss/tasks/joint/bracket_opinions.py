"""What separate parsers of constituents and an aligner think of pairs, and the structures that are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituent_forms import collapsed, without_root
from isogloss.data.constituent_pairs import ConstituentPairs
from isogloss.data.constituents import Constituents
from isogloss.data.links import Links
from isogloss.structures import Bichart, Bitrees, SpanTrees
from isogloss.structures.base import kept
from isogloss.structures.batch import Stack
from isogloss.structures.bichart import PATTERNS
from isogloss.structures.spans import span_number
from isogloss.tasks.joint.opinions import CONFIDENT, FAINT_HEAD, FAINT_LINK, FEW
from isogloss.tasks.parse.constituency.trees import Labels, as_spans, plain

__all__ = ["BracketOpinions", "bispan_component", "bracket_component", "known_terminals", "nearest_trees"]

BROKEN = 2
"""Bispans may break so many links that are more probable than `CONFIDENT` (Burkett et al., section 7)."""
BRACKETINGS = float(np.log(4.0))
"""What a terminal costs: a sentence of n terminals has about 4ⁿ binary trees, which would be a prize for links."""
TERMINALS = {"one": (0,), "words": (0, 1, 2, 3, 4), "all": tuple(range(len(PATTERNS)))}
"""Patterns of terminals by the option `blocks`."""
WRONG = 0.5
"""What a wrong bracket costs beside a right one, where the tree nearest to gold is looked for."""


class BracketOpinions(NamedTuple):
    """Posteriors of separate models for some pairs, and the tags of the words.

    Parameters
    ----------
    source, target : Stack
        float64[n_spans, n_labels] of each sentence.
    links : Stack
        float64[n_source, n_target] of each pair.
    source_tags, target_tags : list of str
        A tag for each word.
    source_labels, target_labels : tuple of str
        Labels of brackets, in the order of the columns.
    """

    source: Stack
    target: Stack
    links: Stack
    source_tags: list[str]
    target_tags: list[str]
    source_labels: tuple[str, ...]
    target_labels: tuple[str, ...]

    @classmethod
    def of(cls, pairs: ConstituentPairs, source_parser: Any, target_parser: Any, aligner: Any) -> BracketOpinions:
        """By models that have learnt."""
        sides, tags = [], []
        for parser, trees in ((source_parser, pairs.source), (target_parser, pairs.target)):
            tags.append([tag for sentence in parser._seen(trees, parser._learnt).tags for tag in sentence])
            sides.append(Stack.of(parser.predict_proba(trees), "brackets", 2))
        found = aligner.predict_proba(pairs.bitext())
        sizes = zip(pairs.source.lengths.tolist(), pairs.target.lengths.tolist(), strict=True)
        links = [
            np.asarray(one, np.float64) if one.shape == size else np.zeros(size)  # pairs that it passes over
            for one, size in zip(found, sizes, strict=True)
        ]
        labels = source_parser.labels_, target_parser.labels_
        return cls(sides[0], sides[1], Stack.of(links, "links", 2), tags[0], tags[1], *labels)

    @classmethod
    def joined(cls, parts: Sequence[BracketOpinions]) -> BracketOpinions:
        """Those of one text after the other, with the labels of all."""
        source = tuple(sorted({label for part in parts for label in part.source_labels}))
        target = tuple(sorted({label for part in parts for label in part.target_labels}))
        alike = [part.with_labels(source, target) for part in parts]
        stacks = ([getattr(part, name) for part in alike] for name in ("source", "target", "links"))
        sides = [Stack.of([one for stack in side for one in stack], "posteriors", 2) for side in stacks]
        source_tags = [tag for part in parts for tag in part.source_tags]
        target_tags = [tag for part in parts for tag in part.target_tags]
        return cls(sides[0], sides[1], sides[2], source_tags, target_tags, source, target)

    def with_labels(self, source: tuple[str, ...], target: tuple[str, ...]) -> BracketOpinions:
        """With columns for these labels; those that the parsers have never seen are 0."""
        sides = [
            Stack.of((_by_name(one, own, wanted) for one in stack), "posteriors", 2)
            for stack, own, wanted in (
                (self.source, self.source_labels, source),
                (self.target, self.target_labels, target),
            )
        ]
        return self._replace(source=sides[0], target=sides[1], source_labels=source, target_labels=target)


def _by_name(posteriors: NDArray[np.float64], own: Sequence[str], wanted: Sequence[str]) -> NDArray[np.float64]:
    """The columns of some labels."""
    out = np.zeros((len(posteriors), len(wanted)))
    place = {name: column for column, name in enumerate(own)}
    for column, name in enumerate(wanted):
        if name in place:
            out[:, column] = posteriors[:, place[name]]
    return out


def bracket_component(posteriors: Stack, prune: float) -> SpanTrees:
    """Trees whose brackets are scored by log odds of their posteriors against there being none.

    A parser that scores brackets one by one is given back as it was. Brackets that are improbable, and not in the best
    tree, are left out.
    """
    logs = np.empty(len(posteriors.values))
    for s, one in enumerate(posteriors):
        none = np.maximum(1.0 - one.sum(axis=1), FAINT_HEAD)
        own = np.log(np.maximum(one, FAINT_HEAD)) - np.log(none)[:, None]
        logs[posteriors.offsets[s] : posteriors.offsets[s + 1]] = own.ravel()
    every = SpanTrees(posteriors.like(kept(logs)))
    best = every.parts(every.argmax()).values > 0
    keep = best | (posteriors.values >= max(prune, 0.0))
    return every.with_scores(posteriors.like(kept(np.where(keep, logs, -np.inf))))


def nearest_trees(component: SpanTrees, trees: Constituents, labels: Labels, posteriors: Stack) -> SpanTrees:
    """The component with only that tree of each sentence that is nearest to gold among those it may have."""
    flat = plain(trees)
    gold = as_spans(collapsed(flat if labels.root is None else without_root(flat)), labels)
    gain = FEW * posteriors.values - WRONG
    wide = len(labels.names)
    for s, spans in enumerate(gold):
        n, start = int(trees.lengths[s]), int(component.scores.offsets[s])
        for i, j, label in spans:
            gain[start + span_number(i, j, n) * wide + label] += 1.0 + WRONG
    allowed = component.scores.values > -np.inf
    judged = component.with_scores(component.scores.like(kept(np.where(allowed, gain, -np.inf))))
    return component.clamp(judged.argmax())


def bispan_component(posteriors: Stack, blocks: str, nulls: str, prune: float, prune_bispans: float) -> Bitrees:
    """Derivations whose terminals are scored by log odds of the links that they have.

    Bispans that break too many probable links, and then those that are improbable without any coupling and not in the
    best derivation, are left out.
    """
    charts, scores = [], []
    for one in posteriors:
        chart = Bichart.of(
            [one >= max(prune, 1e-12)], TERMINALS[blocks], confident=[one >= CONFIDENT], broken=BROKEN
        )  # fmt: skip
        whole = Bitrees(chart, Stack.of([_terminal_scores(chart, one)]), nulls=nulls)
        first = int(chart.first_cells[0])
        keep = whole.marginals()[0][first:] >= prune_bispans
        keep |= whole.parts(whole.argmax())[0][first:] > 0
        charts.append(chart.kept(keep))
        scores.append(_terminal_scores(charts[-1], one))
    return Bitrees(Bichart.joined(charts), Stack.of(scores, "bispans", 1), nulls=nulls)


def _terminal_scores(chart: Bichart, posterior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of one pair: terminals by the log odds of their links; 0 for words without links and for bispans."""
    out = np.zeros(int(chart.n_parts[0]))
    first = int(chart.first_terms[0])
    out[first : first + len(chart.terms)] = -BRACKETINGS
    clear = np.clip(posterior, FAINT_LINK, 1 - FAINT_LINK)
    term, i, j = chart.links_of(0)
    np.add.at(out, first + term, np.log(clear[i, j] / (1 - clear[i, j])))
    return out


def known_terminals(component: Bitrees, links: Links, unlinked: str) -> Bitrees:
    """The component with the derivations alone whose links are nearest to those that are known.

    Links between words of which neither is linked are left open, or are wrong ("absent").
    """
    levels = np.zeros(len(component.scores.values))
    chart = component.chart
    for s, (n, m) in enumerate(chart.sizes.tolist()):
        own = slice(links.offsets[s], links.offsets[s + 1])
        i, j = links.source[own], links.target[own]
        there = np.zeros((n, m), np.bool_)
        there[i, j] = True
        touched = np.asarray(there.any(axis=1))[:, None] | np.asarray(there.any(axis=0))[None, :]
        worth = np.where(touched | (unlinked == "absent"), -1.0, 0.0)
        worth[i, j] = 1.0
        if links.possible is not None:
            maybe = links.possible[own]
            worth[i[maybe], j[maybe]] = 0.0
        term, first, second = chart.links_of(s)
        start = int(component.scores.offsets[s] + chart.first_terms[s])
        np.add.at(levels, start + term, worth[first, second])
    return component.restricted(levels)
