"""One sentence pair, checked once, in the form every picture is drawn from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from isogloss.errors import LinksError, ParameterError

__all__ = ["Cell", "Kind", "Pair", "Reason"]

Link = tuple[int, int]
Kind = Literal["link", "right", "wrong", "missed", "allowed", "possible", "other", "faint"]

FAINT = 0.01  # posterior below this is not drawn


class Cell(NamedTuple):
    """One square of the grid that has something to show.

    `kind` says what it is of the (first) system's links: a plain ``link`` when there is no gold; else ``right``,
    ``wrong``, ``missed`` (sure in gold) or ``allowed`` (possible in gold, not linked). ``possible`` is an unsure link
    of a pair that is itself gold, ``other`` a link of the second system alone, ``faint`` a probability without a link.
    """

    kind: Kind
    probability: float | None
    gold: Literal["sure", "possible", ""]
    first: bool
    second: bool


class Reason(NamedTuple):
    """Why two words are linked, or are not: what each feature adds, the largest first."""

    features: tuple[tuple[str, float], ...]
    probability: float | None
    text: str | None

    def __str__(self) -> str:
        """
        >>> str(Reason((("hmm", 1.5), ("distance", -0.25)), 0.75, None))
        '0.75: hmm +1.50, distance −0.25'
        """
        added = ", ".join(f"{name} {'−' if value < 0 else '+'}{abs(value):.2f}" for name, value in self.features)
        return added if self.probability is None else f"{self.probability:.2f}: {added}"


@dataclass(frozen=True)
class Pair:
    """A checked dictionary; see `isogloss.show` for its keys."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: dict[Link, float | None]
    possible: frozenset[Link]
    posterior: dict[Link, float]
    sure: frozenset[Link] | None
    allowed: frozenset[Link]
    other: dict[Link, float | None] | None
    names: tuple[str, str]
    line: int | None
    title: str | None
    confidence: float | None
    languages: tuple[str, str] | None
    reasons: dict[Link, Reason]

    @classmethod
    def of(cls, given: Mapping[str, Any], number: int | None = None) -> Pair:
        """Check a dictionary. `number`, from 1, names the pair in messages when it has no line."""
        line = given.get("line")
        place = f"line {line}" if line is not None else f"pair {number}" if number is not None else "the pair"
        source, target = (_words(given, side, place) for side in ("source", "target"))
        shape = (len(source), len(target))
        links = _links(given.get("links"), shape, place, "links")
        posterior = _posterior(given.get("posterior"), shape, place)
        if posterior is not None:
            links = {(i, j): _probability(posterior[i][j]) if p is None else p for (i, j), p in links.items()}
        gold = given.get("gold")
        sure = None if gold is None else frozenset(_links(gold.get("sure"), shape, place, "gold"))
        allowed = frozenset() if gold is None else frozenset(_links(gold.get("possible"), shape, place, "gold"))
        other = given.get("other")
        names, languages = (_two(given, key, place) for key in ("names", "languages"))
        return cls(
            source,
            target,
            links,
            frozenset(_links(given.get("possible"), shape, place, "possible")) - links.keys(),
            _unlinked(posterior or (), links),
            sure,
            allowed - (sure or frozenset()),
            None if other is None else _links(other, shape, place, "other"),
            names or ("first", "second"),
            None if line is None else int(line),
            None if given.get("title") is None else str(given["title"]),
            _probability(given.get("confidence")),
            languages,
            _reasons(given.get("reasons"), shape, place),
        )

    def cells(self) -> dict[Link, Cell]:
        """Everything there is to draw, by (source, target), in reading order."""
        everything = self.links.keys() | self.possible | self.allowed | self.posterior.keys()
        everything |= (self.sure or frozenset()) | (self.other or {}).keys()
        return {link: self._cell(link) for link in sorted(everything)}

    def _cell(self, link: Link) -> Cell:
        first, second = link in self.links, self.other is not None and link in self.other
        gold: Literal["sure", "possible", ""] = ""
        if self.sure is not None and link in self.sure:
            gold = "sure"
        elif link in self.allowed:
            gold = "possible"
        kind: Kind = "faint"
        if first:
            kind = "link" if self.sure is None else "right" if gold else "wrong"
        elif gold:
            kind = "missed" if gold == "sure" else "allowed"
        elif link in self.possible:
            kind = "possible"
        elif second:
            kind = "other"
        probability = self.links.get(link) if first else self.posterior.get(link)
        if probability is None and not first and self.other is not None:
            probability = self.other.get(link)
        return Cell(kind, probability, gold, first, second)

    def mean_probability(self) -> float | None:
        """`confidence` if given, else the mean probability of the links that have one."""
        if self.confidence is not None:
            return self.confidence
        known = [p for p in self.links.values() if p is not None]
        return math.fsum(known) / len(known) if known else None

    def caption(self) -> str:
        """Where the pair is from and what its links come to, in a line.

        >>> Pair.of({"source": ["a"], "target": ["b"], "links": [[0, 0, 0.5]], "gold": {"sure": []}}).caption()
        '1 link: 0 right, 1 wrong, 0 missed, mean probability 0.50'
        """
        count = f"{len(self.links)} link{'' if len(self.links) == 1 else 's'}"
        if self.sure is not None:
            right = len(self.links.keys() & (self.sure | self.allowed))
            missed = len(self.sure - self.links.keys())
            count += f": {right} right, {len(self.links) - right} wrong, {missed} missed"
        parts = [count]
        if self.other is not None:
            parts.append(f"{len(self.links.keys() ^ self.other.keys())} differ from {self.names[1]}")
        if self.confidence is not None:
            parts.append(f"confidence {self.confidence:.2f}")
        elif (mean := self.mean_probability()) is not None:
            parts.append(f"mean probability {mean:.2f}")
        where = [f"line {self.line}"] if self.line is not None else []
        where += [self.title] if self.title else []
        return " · ".join([*where, ", ".join(parts)])

    def explain(self, link: Link, cell: Cell) -> str:
        """What one square means, in words."""
        source, target = self.source[link[0]], self.target[link[1]]
        says = [] if cell.probability is None else [f"{cell.probability:.2f}"]
        in_gold = f"{cell.gold} in gold"
        meaning = {
            "right": in_gold,
            "wrong": "wrong: not in gold",
            "missed": "missed: sure in gold",
            "allowed": "possible in gold, not linked",
            "possible": "possible",
            "other": "wrong: not in gold" if self.sure is not None else None,
            "faint": "not linked",
        }.get(cell.kind)
        says += [meaning] if meaning else []
        if self.other is not None and cell.first != cell.second:
            says.append(f"only {self.names[0 if cell.first else 1]}")
        return f"{source} — {target}" + (": " + ", ".join(says) if says else "")


def _words(given: Mapping[str, Any], side: str, place: str) -> tuple[str, ...]:
    words = given.get(side)
    if words is None:
        raise ParameterError(f"show: {place} has no '{side}'; give the dictionary of Alignment.as_dict()")
    if isinstance(words, str):
        raise ParameterError(f"show: '{side}' of {place} should be a list of words, not a string; split it first")
    return tuple(str(word) for word in words)


def _two(given: Mapping[str, Any], key: str, place: str) -> tuple[str, str] | None:
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, str) or len(value) != 2:
        raise ParameterError(f"show: '{key}' of {place} should be two strings, not {value!r}")
    return str(value[0]), str(value[1])


def _links(
    given: Iterable[Sequence[Any]] | None, shape: tuple[int, int], place: str, key: str
) -> dict[Link, float | None]:
    links: dict[Link, float | None] = {}
    for entry in given or ():
        i, j = int(entry[0]), int(entry[1])
        if not (0 <= i < shape[0] and 0 <= j < shape[1]):
            raise LinksError(
                f"show: link {i}-{j} in '{key}' of {place} is outside a pair of {shape[0]} and {shape[1]} words. "
                "Do the links belong to another text, or count from 1?"
            )
        links[i, j] = _probability(entry[2]) if len(entry) > 2 else None
    return dict(sorted(links.items()))


def _reasons(given: Iterable[Mapping[str, Any]] | None, shape: tuple[int, int], place: str) -> dict[Link, Reason]:
    found: dict[Link, Reason] = {}
    for entry in given or ():
        (link,) = _links([[entry["source"], entry["target"]]], shape, place, "reasons")
        features = tuple((str(name), float(value)) for name, value in entry.get("features", ()))
        text = entry.get("text")
        found[link] = Reason(features, _probability(entry.get("probability")), None if text is None else str(text))
    return found


def _posterior(
    given: Iterable[Iterable[Any]] | None, shape: tuple[int, int], place: str
) -> Sequence[Sequence[float]] | None:
    if given is None:
        return None
    rows = [[float(p) for p in row] for row in given]
    if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows):
        raise LinksError(
            f"show: 'posterior' of {place} should have {shape[0]} rows (source) of {shape[1]} numbers (target). "
            "Is it transposed?"
        )
    return rows


def _unlinked(posterior: Sequence[Sequence[float]], links: Mapping[Link, Any]) -> dict[Link, float]:
    """What is worth a dot; most of a posterior is next to nothing. NaN compares as false."""
    return {
        (i, j): p
        for i, row in enumerate(posterior)
        for j, p in enumerate(row)
        if FAINT <= p < math.inf and (i, j) not in links
    }


def _probability(value: Any) -> float | None:
    """A number, or None for what is not known; arrays mark that with NaN."""
    return float(value) if value is not None and math.isfinite(value) else None
