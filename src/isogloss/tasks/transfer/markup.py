"""Inline tags and placeholders of the source, placed in the target through links.

A pair of tags around source words goes around the target words linked to them; a tag that stands between two words goes
between their translations. Tags nest in the target as they did in the source, every tag is there exactly once, and the
words of the target stay as they are. Where links leave a choice, the choice is reported as a guess.

**Words that lie apart.** A pair of tags is written once, so it covers one run of target words: the run that holds the
most words linked into the pair, less the words in it that are linked elsewhere, and of equal ones the longest. The two
parts of a separable verb are covered with what stands between them if that is short; a stray link far away is left
outside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from isogloss.data import Alignment
from isogloss.errors import LinksError
from isogloss.tasks.transfer._tags import MARKUP, Span, Tag, pairs_of, strip_markup, word_spans

__all__ = ["Guess", "Placement", "Tag", "place_markup", "strip_markup", "transfer_markup"]

Link = tuple[int, int]


class Guess(NamedTuple):
    """A tag whose place the links did not settle.

    Reasons: "unlinked", no word inside the pair of tags has a link; "scattered", its words have links outside of the
    run that was chosen, or others have links into it; "between", the words left and right of the tag are not neighbours
    in the target.
    """

    tag: str
    reason: str


class Placement(NamedTuple):
    """A target line with markup, and what in it is a guess."""

    line: str
    guesses: tuple[Guess, ...]


@dataclass(eq=False)
class _Node:
    """A pair of tags, a single tag, or (without tags) the sentence."""

    opening: Tag | None
    closing: Tag | None
    source: Span
    order: int
    children: list[_Node] = field(default_factory=list)
    target: Span = (0, 0)

    @property
    def is_point(self) -> bool:
        return self.closing is None and self.opening is not None


def transfer_markup(
    source: str,
    target: str,
    links: Alignment | Iterable[Link],
    *,
    placeholders: bool = True,
    tokenise: str = "space",
) -> Placement:
    """Place the markup of a source line in its translation.

    `links` speak of the words that `strip_markup` finds in the source and of those of the target.

    Examples
    --------
    >>> transfer_markup("the <b>red</b> house", "la maison rouge", [(0, 0), (1, 2), (2, 1)]).line
    'la maison <b>rouge</b>'
    """
    tokens, tags = strip_markup(source, placeholders=placeholders, tokenise=tokenise)
    return place_markup(tags, len(tokens), target, links, tokenise=tokenise)


def place_markup(
    tags: Sequence[Tag],
    n_source: int,
    target: str | Sequence[str],
    links: Alignment | Iterable[Link],
    *,
    tokenise: str = "space",
) -> Placement:
    """Place tags in a target line.

    Parameters
    ----------
    tags : sequence of Tag
        As `strip_markup` gave them.
    n_source : int
        How many words the source has without its markup.
    target : str or sequence of str
        The line, which keeps its spaces; or its words.
    links : Alignment or iterable of (source, target)
        The probabilities of an alignment weigh its links.
    tokenise : {"space", "unicode", "characters"}
        What a word of a `target` line is.

    Returns
    -------
    Placement
        With all tags in it. A tag that the target has already, letter for letter, is not placed again.
    """
    line = target if isinstance(target, str) else " ".join(target)
    spans = word_spans(line, tokenise) if isinstance(target, str) else _spans_of(target)
    if not tags:
        return Placement(line, ())
    places = _Places(n_source, len(spans), links)
    root = _tree(tags, n_source, Counter(match.group() for match in MARKUP.finditer(line)))
    root.target = (0, len(spans))
    guesses: list[Guess] = []
    places.settle(root, guesses)
    gaps: list[list[Tag]] = [[] for _ in range(len(spans) + 1)]
    _emit(root, gaps)
    return Placement(_written(line, spans, gaps), tuple(guesses))


def _spans_of(tokens: Sequence[str]) -> list[Span]:
    spans, at = [], 0
    for token in tokens:
        spans.append((at, at + len(token)))
        at += len(token) + 1
    return spans


def _tree(tags: Sequence[Tag], n_source: int, there: Counter[str]) -> _Node:
    """Tags as they nest; those that are `there` already are left out."""
    matched = pairs_of([(tag.kind, tag.key) for tag in tags])
    root = _Node(None, None, (0, n_source), -1)
    path, passed = [root], set[int]()
    for number, tag in enumerate(tags):
        if number in passed:
            continue
        if number not in matched:
            if there[tag.text] > 0:
                there[tag.text] -= 1
                continue
            at = tag.position + tag.inside
            path[-1].children.append(_Node(tag, None, (at, at), number))
        elif matched[number] > number:
            other = tags[matched[number]]
            if there[tag.text] > 0 and there[other.text] > 0:
                there[tag.text] -= 1
                there[other.text] -= 1
                passed.add(matched[number])
                continue
            node = _Node(tag, other, (tag.position, max(tag.position, other.position + other.inside)), number)
            path[-1].children.append(node)
            path.append(node)
        else:
            path.pop()
    return root


class _Places:
    """The links of one pair of sentences, and the places they speak for."""

    def __init__(self, n_source: int, n_target: int, links: Alignment | Iterable[Link]) -> None:
        known = links.probability if isinstance(links, Alignment) else {}
        self.of_source: list[list[int]] = [[] for _ in range(n_source)]
        self.of_target: list[list[tuple[int, float]]] = [[] for _ in range(n_target)]
        for i, j in sorted(set(links)):
            if not (0 <= i < n_source and 0 <= j < n_target):
                raise LinksError(
                    f"link {i}-{j} is outside of {n_source} source and {n_target} target words. Links must be those of "
                    "the source without its markup"
                )
            self.of_source[i].append(j)
            self.of_target[j].append((i, max(float(known.get((i, j), 1.0)), 1e-6)))

    def settle(self, parent: _Node, guesses: list[Guess]) -> None:
        """Find the target span of every child, and of their children."""
        pairs = [node for node in parent.children if not node.is_point]
        whole = next((node for node in pairs if _covers(node, parent)), None)
        owners = self._owners(pairs, parent) if whole is None else dict.fromkeys(range(*parent.target), whole)
        taken, waiting = [], []
        for node in pairs:
            run = parent.target if node is whole else self._run(node, owners, parent)
            if run is None:
                waiting.append(node)
                continue
            node.target = self._stretched(run, node, parent)
            taken.append(node)
            if node is not whole and self._scattered(node):
                guesses.append(Guess(_text(node), "scattered"))
        for node in waiting:
            if not self._fill(node, parent, taken):
                guesses.append(Guess(_text(node), "unlinked"))
            taken.append(node)
        for node in parent.children:
            if node.is_point:
                if not self._put_between(node, parent, taken):
                    guesses.append(Guess(_text(node), "between"))
            else:
                self.settle(node, guesses)

    def _share(self, word: int, source: Span) -> float:
        """Of the links of a target word, the share that goes into `source`."""
        inside = sum(weight for i, weight in self.of_target[word] if source[0] <= i < source[1])
        total = sum(weight for _, weight in self.of_target[word])
        return inside / total if total else 0.0

    def _owners(self, pairs: list[_Node], parent: _Node) -> dict[int, _Node]:
        """For each target word that is linked into one of these pairs of tags, the one it is linked to most."""
        holders: dict[int, list[_Node]] = {}
        for node in pairs:
            for i in range(*node.source):
                holders.setdefault(i, []).append(node)
        owners = {}
        for word in range(*parent.target):
            weights: dict[_Node, float] = {}
            for i, weight in self.of_target[word]:
                for node in holders.get(i, ()):
                    weights[node] = weights.get(node, 0.0) + weight
            if weights:
                owners[word] = max(weights, key=lambda node: (weights[node], -node.order))
        return owners

    def _run(self, node: _Node, owners: dict[int, _Node], parent: _Node) -> Span | None:
        """The run of target words for a pair of tags.

        It starts and ends at words that are linked into the pair, and touches none that belongs to a sibling. None if
        there is no word to put the tags around.
        """
        best: tuple[float, int, int, int] | None = None
        value, start = float("-inf"), 0
        for word in range(*parent.target):
            owner = owners.get(word)
            if owner is None:
                value -= bool(self.of_target[word])
                continue
            if owner is not node:
                value = float("-inf")
                continue
            gain = 2 * self._share(word, node.source) - 1
            if value >= 0:  # going on is as good as starting here
                value += gain
            else:
                value, start = gain, word
            key = (value, word - start, -start, word)
            if best is None or key[:3] > best[:3]:
                best = key
        return None if best is None else (-best[2], best[3] + 1)

    def _stretched(self, run: Span, node: _Node, parent: _Node) -> Span:
        """A pair of tags at the edge of the source takes in words without links at the edge of the target."""
        start, stop = run
        if node.source[0] <= parent.source[0] and not any(self.of_target[parent.target[0] : start]):
            start = parent.target[0]
        if node.source[1] >= parent.source[1] and not any(self.of_target[stop : parent.target[1]]):
            stop = parent.target[1]
        return start, stop

    def _scattered(self, node: _Node) -> bool:
        start, stop = node.target
        away = any(not start <= j < stop for i in range(*node.source) for j in self.of_source[i])
        return away or any(self.of_target[word] and self._share(word, node.source) < 1 for word in range(start, stop))

    def _fill(self, node: _Node, parent: _Node, taken: list[_Node]) -> bool:
        """Place a pair of tags that has no links; whether that is beyond doubt, as it can be if it held nothing.

        It goes around the words without links between the translations of its neighbours, if there are any, or else
        around nothing, where a single tag would go.
        """
        left = self._linked(range(node.source[0] - 1, parent.source[0] - 1, -1), parent)
        right = self._linked(range(node.source[1], parent.source[1]), parent)
        start = parent.target[0] if left is None else max(left[1]) + 1
        stop = parent.target[1] if right is None else min(right[1])
        free = start < stop and node.source[0] < node.source[1] and not any(self.of_target[start:stop])
        if free and all(stop <= other.target[0] or other.target[1] <= start for other in taken):
            node.target = (start, stop)
            return False
        return self._put_between(node, parent, taken) and node.source[0] == node.source[1]

    def _put_between(self, node: _Node, parent: _Node, taken: list[_Node]) -> bool:
        """Place a tag that holds nothing, outside of its siblings; whether that is beyond doubt."""
        at, sure = self._point(node, parent)
        for other in taken:
            if other.target[0] < at < other.target[1]:
                at, sure = other.target[node.order > other.order], False  # to the side where it was in the source
                break
        node.target = (at, at)
        return sure

    def _linked(self, words: range, parent: _Node) -> tuple[int, list[int]] | None:
        """The first of these source words with links into the parent's span: how far it is, and its links."""
        for distance, word in enumerate(words):
            partners = [j for j in self.of_source[word] if parent.target[0] <= j < parent.target[1]]
            if partners:
                return distance, partners
        return None

    def _point(self, node: _Node, parent: _Node) -> tuple[int, bool]:
        """Where a tag goes that stands between two source words, and whether that is beyond doubt."""
        assert node.opening is not None
        (first, last), (before, after) = parent.source, node.source
        if before <= first:
            return parent.target[0], True
        if after >= last:
            return parent.target[1], True
        left = self._linked(range(before - 1, first - 1, -1), parent)
        right = self._linked(range(after, last), parent)
        if left is None and right is None:
            share = (before - first) / max(last - first, 1)
            return parent.target[0] + round(share * (parent.target[1] - parent.target[0])), False
        after_left = parent.target[0] if left is None else max(left[1]) + 1
        before_right = parent.target[1] if right is None else min(right[1])
        if after_left == before_right:
            return after_left, True
        glued_left, glued_right = node.opening.glued
        far_left = float("inf") if left is None else left[0] + 0.5 * (glued_right and not glued_left)
        far_right = float("inf") if right is None else right[0] + 0.25
        return (after_left if far_left <= far_right else before_right), False


def _covers(node: _Node, parent: _Node) -> bool:
    """Whether a pair of tags holds all the words that its parent does."""
    inside = node.source[0] <= parent.source[0] and node.source[1] >= parent.source[1]
    return inside and node.source[0] < node.source[1]


def _text(node: _Node) -> str:
    assert node.opening is not None
    return node.opening.text


def _emit(node: _Node, gaps: list[list[Tag]]) -> None:
    """Write the tags of a node into the gaps between target words, in the order in which they are to stand."""
    if node.opening is not None:
        gaps[node.target[0]].append(node.opening)
    for child in sorted(node.children, key=lambda child: (*child.target, child.order)):
        _emit(child, gaps)
    if node.closing is not None:
        gaps[node.target[1]].append(node.closing)


def _written(line: str, spans: Sequence[Span], gaps: Sequence[Sequence[Tag]]) -> str:
    edges = [(0, 0), *spans, (len(line), len(line))]
    pieces: list[str] = []
    for number, tags in enumerate(gaps):
        space = line[edges[number][1] : edges[number + 1][0]]
        pieces += _gap(space, tags, number > 0, number < len(spans)) if tags else [space]
        if number < len(spans):
            pieces.append(line[slice(*spans[number])])
    return "".join(pieces)


def _gap(space: str, tags: Sequence[Tag], word_before: bool, word_after: bool) -> Iterator[str]:
    """Tags between two words or at an edge of the line, spaced as in the source, with the space that was there."""
    if not word_before or not word_after:
        outer, space = space, " "
    elif not space:
        yield from (tag.text for tag in tags)
        return
    breaks = [word_before, *[True] * (len(tags) - 1), word_after]
    for number, tag in enumerate(tags):
        if tag.kind != "open" and tag.glued[0]:
            breaks[number] = False
        if tag.kind != "close" and tag.glued[1]:
            breaks[number + 1] = False
    if word_before and word_after and not any(breaks):
        opening = next((number for number, tag in enumerate(tags) if tag.kind == "open"), len(tags))
        breaks[opening] = True
    if not word_before:
        yield outer
    for number, text in enumerate([*(tag.text for tag in tags), ""]):
        if breaks[number]:
            yield space
            space = " "
        yield text
    if word_before and not word_after:
        yield outer
