"""`Links`: the links of many sentence pairs as arrays; `Alignment`: the links of one, as a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.bitext import Bitext
from isogloss.data.rows import Rows, counted, gathered, row_numbers

__all__ = ["Alignment", "Links"]

Link = tuple[int, int]


@dataclass(frozen=True)
class Alignment:
    """The links of one sentence pair, from 0, source index first.

    `links` are the sure ones and `possible` the rest (gold only). `probability` gives the posterior of links where it
    is known, `posterior` the whole matrix, [source, target], where it was asked for.

    Examples
    --------
    >>> a = Alignment(frozenset({(0, 0), (1, 2)})); b = Alignment(frozenset({(0, 0)}))
    >>> str(a), str(a & b), str(a.T)
    ('0-0 1-2', '0-0', '0-0 2-1')
    """

    links: frozenset[Link]
    possible: frozenset[Link] = frozenset()
    source: tuple[str, ...] | None = None
    target: tuple[str, ...] | None = None
    probability: Mapping[Link, float] = field(default_factory=dict, compare=False)
    posterior: NDArray[Any] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return " ".join(f"{i}-{j}" for i, j in sorted(self.links))

    def __repr__(self) -> str:
        possible = [f"{len(self.possible)} possible"] if self.possible else []
        return f"Alignment({', '.join([counted(len(self.links), 'link'), *possible])}: {str(self)!r:.60})"

    def __len__(self) -> int:
        return len(self.links)

    def __iter__(self) -> Iterator[Link]:
        return iter(sorted(self.links))

    def __or__(self, other: Alignment) -> Alignment:
        return replace(self, links=self.links | other.links)

    def __and__(self, other: Alignment) -> Alignment:
        return replace(self, links=self.links & other.links)

    @property
    def T(self) -> Alignment:
        """The same links seen from the other language."""
        return Alignment(
            frozenset((j, i) for i, j in self.links),
            frozenset((j, i) for i, j in self.possible),
            self.target,
            self.source,
            {(j, i): p for (i, j), p in self.probability.items()},
            None if self.posterior is None else self.posterior.T,
        )

    def symmetrise(self, other: Alignment, method: str = "grow-diag-final-and") -> Alignment:
        """Combine with the alignment of the other direction, as `isogloss.tasks.align.symmetrise` does."""
        from isogloss.tasks.align.symmetrise import symmetrise

        return replace(self, links=symmetrise(self.links, other.links, None, method))

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as `isogloss.show` takes it."""
        n_source = len(self.source) if self.source else 1 + max((i for i, _ in self.links | self.possible), default=-1)
        n_target = len(self.target) if self.target else 1 + max((j for _, j in self.links | self.possible), default=-1)
        return {
            "source": list(self.source) if self.source else [str(i) for i in range(n_source)],
            "target": list(self.target) if self.target else [str(j) for j in range(n_target)],
            "links": [[i, j, self.probability.get((i, j))] for i, j in sorted(self.links)],
            "possible": [[i, j] for i, j in sorted(self.possible)],
            "posterior": None if self.posterior is None else np.asarray(self.posterior).tolist(),
        }

    def _repr_html_(self) -> str:
        from isogloss import show

        return show.alignment(self.as_dict())


@dataclass(frozen=True, eq=False, repr=False)
class Links(Rows[Alignment], Sequence[Alignment]):
    """The links of a whole text: row *i* is ``source[offsets[i]:offsets[i + 1]]`` and the same of `target`.

    Behaves as a sequence of `Alignment`, made when asked for, of which a slice is `Links` again; work in bulk uses the
    arrays. Within a row, links are
    ordered by source, then target.

    Parameters
    ----------
    offsets : int64[n_pairs + 1]
    source, target : int32[n_links]
    probability : float32[n_links], optional
        Posterior of each link.
    possible : bool[n_links], optional
        True where gold marks a link as possible only. Absent: all are sure.
    bitext : Bitext, optional
        The text, so that each `Alignment` knows its words.
    """

    offsets: NDArray[np.int64]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    probability: NDArray[np.float32] | None = None
    possible: NDArray[np.bool_] | None = None
    bitext: Bitext | None = None

    @classmethod
    def of(cls, rows: Iterable[Iterable[Link] | Alignment]) -> Links:
        """From sets of (source, target) pairs, or alignments with their possible links and probabilities."""
        offsets, source, target, possible, probability = [0], [], [], [], []
        some_possible = some_probability = False
        for row in rows:
            alignment = row if isinstance(row, Alignment) else Alignment(frozenset((int(i), int(j)) for i, j in row))
            for i, j in sorted(alignment.links | alignment.possible):
                source.append(i)
                target.append(j)
                possible.append((i, j) not in alignment.links)
                probability.append(alignment.probability.get((i, j), np.nan))
            some_possible |= bool(alignment.possible)
            some_probability |= bool(alignment.probability)
            offsets.append(len(source))
        return cls(
            np.array(offsets, np.int64),
            np.array(source, np.int32),
            np.array(target, np.int32),
            np.array(probability, np.float32) if some_probability else None,
            np.array(possible, bool) if some_possible else None,
        )

    @classmethod
    def above(cls, posteriors: Iterable[ArrayLike], threshold: float, bitext: Bitext | None = None) -> Links:
        """The links of each pair whose posterior, float[n_source, n_target], is above a threshold; they keep it.

        Examples
        --------
        >>> str(Links.above([[[0.9, 0.2], [0.1, 0.6]]], 0.5)[0])
        '0-0 1-1'
        """
        grids = [np.asarray(one, np.float32) for one in posteriors]
        cells = [np.argwhere(one > threshold) for one in grids]
        chances = [one[rows[:, 0], rows[:, 1]] for one, rows in zip(grids, cells, strict=True)]
        rows = np.concatenate([np.zeros((0, 2), np.int64), *cells]).astype(np.int32)
        return cls(
            np.concatenate([[0], np.cumsum([len(own) for own in cells])]).astype(np.int64),
            np.ascontiguousarray(rows[:, 0]),
            np.ascontiguousarray(rows[:, 1]),
            np.concatenate([np.zeros(0, np.float32), *chances]),
            bitext=bitext,
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def _row(self, number: int) -> Alignment:
        rows = slice(*self.offsets[number : number + 2])
        links = list(zip(self.source[rows].tolist(), self.target[rows].tolist(), strict=True))
        unsure = self.possible[rows].tolist() if self.possible is not None else [False] * len(links)
        probability = {}
        if self.probability is not None:
            probability = dict(zip(links, self.probability[rows].tolist(), strict=True))
        source, target = self.bitext[number] if self.bitext is not None else (None, None)
        return Alignment(
            frozenset(link for link, p in zip(links, unsure, strict=True) if not p),
            frozenset(link for link, p in zip(links, unsure, strict=True) if p),
            source,
            target,
            probability,
        )

    def part(self, start: int, stop: int) -> Links:
        """Pairs start..stop-1."""
        stop = max(start, stop)
        first, last = self.offsets[start], self.offsets[stop]
        return Links(
            self.offsets[start : stop + 1] - first,
            self.source[first:last],
            self.target[first:last],
            None if self.probability is None else self.probability[first:last],
            None if self.possible is None else self.possible[first:last],
            None if self.bitext is None else self.bitext.part(start, stop),
        )

    def take(self, numbers: ArrayLike) -> Links:
        """Pairs by their numbers, in that order, or by a mask of booleans."""
        rows = row_numbers(numbers, len(self), "Links")
        offsets, places = gathered(self.offsets, rows)
        return Links(
            offsets,
            self.source[places],
            self.target[places],
            None if self.probability is None else self.probability[places],
            None if self.possible is None else self.possible[places],
            None if self.bitext is None else self.bitext.take(rows),
        )

    def keep(self, chosen: NDArray[np.bool_]) -> Links:
        """Only the links where `chosen` (one flag a link) is true."""
        return Links(
            np.concatenate([[0], np.cumsum(chosen)])[self.offsets],
            self.source[chosen],
            self.target[chosen],
            None if self.probability is None else self.probability[chosen],
            None if self.possible is None else self.possible[chosen],
            self.bitext,
        )

    @property
    def pair(self) -> NDArray[np.int64]:
        """The pair each link belongs to: int64[n_links]."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def symmetrise(self, other: Links, method: str = "grow-diag-final-and") -> Links:
        """Combine, pair by pair, with the links of the other direction (both written source-target)."""
        from isogloss.tasks.align.symmetrise import symmetrise_links

        return replace(symmetrise_links(self, other, method=method), bitext=self.bitext)

    def _said(self) -> list[str]:
        said = [counted(len(self), "pair"), counted(len(self.source), "link")]
        if self.possible is not None:
            said.append(f"{np.count_nonzero(self.possible):,} of them possible")
        return said if self.probability is None else [*said, "with probabilities"]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[number, *_cells(alignment)] for number, alignment in enumerate(self[:most])]
        return {"heads": ["", "source", "target", "links"], "rows": rows, "total": len(self)}


def _cells(alignment: Alignment) -> list[str]:
    words = [" ".join(side or ()) for side in (alignment.source, alignment.target)]
    possible = (f"{i}p{j}" for i, j in sorted(alignment.possible))
    return [*words, " ".join([str(alignment), *possible])]
