"""`Threads`: several coherent, different story lines through dated or linked documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import combinations, pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import layout, store
from isogloss.data.documents import Documents
from isogloss.data.rows import counted
from isogloss.engine.threads import using_threads
from isogloss.errors import DataError, DocumentsError, ParameterError
from isogloss.store import Saved
from isogloss.structures.base import InfeasibleError
from isogloss.structures.dpp import Dpp, PathDpp, PathGraph
from isogloss.tasks.documents.thread_graph import LeftOut, ThreadGraph, thread_graph
from isogloss.tasks.documents.thread_options import ThreadOptions

__all__ = ["ThreadSet", "Threads"]

Rows = tuple[int, ...]
OPENING = 200
"""Characters of each document that a model keeps, so that threads can be read."""
TRIES = 1000
"""Draws that may be turned down, one after the other, for documents that two threads share."""

_LAYOUT: layout.Layout = {
    "edges": layout.Numbers("int64", ("m", 2), least=0, below="n"),
    "node_weights": layout.Numbers("float64", "n", least=0, below=1.000001),
    "edge_weights": layout.Numbers("float64", "m", least=0, below=1.000001),
    "features": layout.Numbers("float64", ("n", "d")),
    "days": layout.Numbers("int64", "n", least=-4_000_000, below=4_000_000),
    "dated": layout.Numbers("bool", "n"),
    "ids": layout.Strings("n", distinct=True, least=1),
    "openings": layout.Strings("n"),
}


@dataclass(frozen=True)
class ThreadSet:
    """Threads that were drawn together, the best first.

    Parameters
    ----------
    threads : tuple of tuple of int
        Rows of documents, in the order of the thread.
    ids, dates, openings : tuple of tuple of str
        Their ids, their dates (empty where not known) and how they begin.
    weights : tuple of float
        Salience and coherence of each thread, w(y).
    similarities : tuple of tuple of float
        Of each document and the one after it.
    between : tuple of float
        Cosine of the features of every two threads, in the order of (0, 1), (0, 2), …
    log_determinant : float
        log det(L_Y): quality and diversity of all of them.
    """

    threads: tuple[Rows, ...]
    ids: tuple[tuple[str, ...], ...]
    dates: tuple[tuple[str, ...], ...]
    openings: tuple[tuple[str, ...], ...]
    weights: tuple[float, ...]
    similarities: tuple[tuple[float, ...], ...]
    between: tuple[float, ...]
    log_determinant: float

    def __len__(self) -> int:
        return len(self.threads)

    def __str__(self) -> str:
        return "\n".join(" -> ".join(one) for one in self.ids)

    @property
    def coherence(self) -> float:
        """Mean similarity of neighbours in a thread, in percent; NaN where no thread has two documents."""
        return _mean([cosine for one in self.similarities for cosine in one])

    @property
    def overlap(self) -> float:
        """Mean similarity of two threads, in percent; NaN where there is only one."""
        return _mean(self.between)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, and for `isogloss.show.threads_page`."""
        threads = [
            {
                "weight": weight,
                "documents": [
                    {"id": name, "date": day or None, "text": opening, "similarity": None if k == 0 else near[k - 1]}
                    for k, (name, day, opening) in enumerate(zip(ids, dates, openings, strict=True))
                ],
            }
            for ids, dates, openings, weight, near in zip(
                self.ids, self.dates, self.openings, self.weights, self.similarities, strict=True
            )
        ]
        return {
            "threads": threads,
            "coherence": self.coherence,
            "overlap": self.overlap,
            "log_determinant": self.log_determinant,
        }


class Threads(ThreadOptions):
    r"""Draw k threads, each a path of `length` documents, that are salient, coherent and unlike each other.

    .. math:: P(Y) \propto \det L_Y, \quad q(y) = e^{\beta w(y)}, \quad
        w(y) = a \sum_t \mathrm{LexRank}(y_t) + b \sum_t \cos(y_t, y_{t+1}), \quad \phi(y) = \sum_t \phi(y_t)

    `fit` makes the graph: links as they are given, or from each document to later ones that are similar; node weights a
    and edge weights b are two coefficients, and features φ say which documents are most similar to a document, by a
    random projection. `predict` draws. Both are exact but for the projection. A thread reads from early to late: a link
    (a citation) leads from what is linked to what links to it.

    k, length, shorter, beta, node_weight, edge_weight, constant, samples and disjoint may be changed between
    draws (`set_params`); the others belong to the graph.

    References
    ----------
    Gillenwater, Kulesza and Taskar, Discovering Diverse and Salient Threads in Document Collections, EMNLP 2012. We
    differ: see docs/methods.md. LexRank is divided by its largest value, features have length 1 before the projection,
    and the constant is appended after it.

    Examples
    --------
    >>> words = ["storm flood rain", "flood rain river", "river flood dam"], ["vote party poll", "poll vote seat"]
    >>> documents = Documents.of([*words[0], *words[1]], dates=["2001", "2002", "2003", "2001", "2002"])
    >>> threads = Threads(2, 2, min_documents=1, max_share=1.0, neighbours=2).fit(documents)
    >>> found, = threads.predict([0])
    >>> sorted({document > "3" for document in thread} for thread in found.ids)      # each tells one story
    [{False}, {True}]
    """

    _kind = "threads.paths"

    def fit(self, documents: Documents) -> Self:
        """Make the graph."""
        self.check_params()
        if not isinstance(documents, Documents):
            raise ParameterError(f"Threads: Documents are needed, not {type(documents).__name__}")
        if not len(documents):
            raise DocumentsError(f"{documents.name}: there are no documents")
        with using_threads(self.threads):
            graph = thread_graph(documents, self)
        self.ids_ = tuple(documents.id_of(k) for k in range(len(documents)))
        none = np.full(len(documents), "NaT", "datetime64[D]")
        self.dates_ = none if documents.dates is None else documents.dates.astype("datetime64[D]")
        self.openings_ = tuple(_opening(documents, k) for k in range(len(documents)))
        self.graph_ = graph
        self.reading_ = None
        self._forget()
        return self

    def _forget(self) -> None:
        self._made: tuple[Any, PathDpp] | None = None
        self._cosine_of: tuple[ThreadGraph, dict[tuple[int, int], float]] | None = None

    # --- what there is

    @property
    def left_out_(self) -> LeftOut:
        """What the graph is made without."""
        return self._graph.left_out

    @property
    def _graph(self) -> ThreadGraph:
        if not hasattr(self, "graph_"):
            raise self._has_not_learnt
        return self.graph_

    @property
    def process(self) -> PathDpp:
        """The distribution over sets of threads, for the options as they are now."""
        graph = self._graph
        self.check_params()
        key = (self.k, self.length, self.shorter, self.beta, self.node_weight, self.edge_weight, self.constant)
        if self._made is None or self._made[0] != key:
            self._made = key, self._process(graph)
        return self._made[1]

    def _process(self, graph: ThreadGraph) -> PathDpp:
        n = len(self.ids_)
        paths = PathGraph(n, graph.edges, self.length)
        nodes = 2.0 * self.beta * self.node_weight * graph.node_weights
        edges = 2.0 * self.beta * self.edge_weight * graph.edge_weights
        features = _with_constant(graph.features, self.constant)
        if self.shorter:
            paths = paths.with_end()
            nodes, edges = np.append(nodes, 0.0), np.append(edges, np.zeros(n + 1))
            features = np.vstack([features, np.zeros(features.shape[1])])
        made = PathDpp(paths, np.concatenate([nodes, edges]), features, size=self.k)
        try:
            made.log_partition()
        except InfeasibleError:
            raise DataError(self._why_not(made)) from None
        return made

    def _why_not(self, made: PathDpp) -> str:
        """Why there are no such threads, and what is possible."""
        if made.paths.steps[0] == -np.inf:
            longest = made.graph.longest()
            return (
                f"Threads: no thread has {self.length} documents; the longest way along the links has {longest}. Ask "
                f"for length {longest} at most, or let threads be shorter"
            )
        rank = PathDpp(made.graph, made.scores, made.features).spectrum.rank
        more = "more dimensions" if rank >= self._graph.features.shape[1] else "a lower beta"
        return (
            f"Threads: k = {self.k} threads are asked for, and the features of threads span "
            f"{counted(rank, 'dimension')}, so that at most {rank} can be unlike each other. Ask for {rank} at most, "
            f"or try {more}"
        )

    # --- drawing

    def predict(self, seeds: Iterable[int] | None = None) -> list[ThreadSet]:
        """For each seed, a set of threads: the one with the largest determinant of `samples` draws.

        Without seeds there is one set, with the option `seed`.
        """
        process = self.process
        chosen = _checked_seeds([self.seed] if seeds is None else seeds)
        return [self._best(process, np.random.default_rng(seed)) for seed in chosen]

    def sample(self, rng: np.random.Generator) -> ThreadSet:
        """One draw from the distribution over sets of threads."""
        process = self.process
        return self._as_set(process, self._drawn(process, rng))

    def subset(self, size: int | None = None, seed: int = 0) -> tuple[str, ...]:
        """Ids of documents that are central and unlike each other: a k-DPP, or a DPP of any size, without threads."""
        graph = self._graph
        scores = 2.0 * self.beta * self.node_weight * graph.node_weights
        process = Dpp(scores, _with_constant(graph.features, self.constant), size=size)
        return tuple(self.ids_[row] for row in process.sample(np.random.default_rng(seed)))

    def independent(self, rng: np.random.Generator) -> ThreadSet:
        """k threads, each drawn as if it were the only one (k = 1): for comparison. They may be the same."""
        process = self.process
        alone = PathDpp(process.graph, process.scores, process.features, size=1)
        return self.described([self._without_end(next(iter(alone.sample(rng)))) for _ in range(self.k)])

    def _best(self, process: PathDpp, rng: np.random.Generator) -> ThreadSet:
        drawn = [self._drawn(process, rng) for _ in range(self.samples)]
        return self._as_set(process, max(drawn, key=process.score))

    def _drawn(self, process: PathDpp, rng: np.random.Generator) -> frozenset[Rows]:
        for _ in range(TRIES):
            drawn = process.sample(rng)
            rows = [self._without_end(path) for path in drawn]
            if self.disjoint and len({row for path in rows for row in set(path)}) < sum(len(set(p)) for p in rows):
                continue
            return drawn
        raise DataError(
            f"Threads: {TRIES} sets of threads in a row were turned down, because two of them share a document. Ask "
            "for fewer or shorter threads, or let them share (disjoint=False)"
        )

    def _without_end(self, path: Rows) -> Rows:
        return tuple(row for row in path if row < len(self.ids_))

    def _as_set(self, process: PathDpp, drawn: frozenset[Rows]) -> ThreadSet:
        return self.described([self._without_end(path) for path in drawn], process.score(drawn))

    def described(self, threads: Sequence[Rows], log_determinant: float = float("nan")) -> ThreadSet:
        """Threads, however they were found, with what there is to say of them; rows of documents, best first.

        Neighbours need not be linked: similarities of pairs without a link are NaN.
        """
        graph = self._graph
        cosine = self._cosines
        near = {path: tuple(cosine.get(step, float("nan")) for step in pairwise(path)) for path in threads}
        weight = {
            path: self.node_weight * float(graph.node_weights[list(path)].sum()) + self.edge_weight * sum(near[path])
            for path in threads
        }
        order = sorted(threads, key=lambda path: (-weight[path], path))
        vectors = np.array([graph.features[list(path)].sum(axis=0) for path in order])
        lengths = np.linalg.norm(vectors, axis=1)
        used = [row for path in order for row in path]
        written = dict(zip(used, _written(self.dates_[used], self._unit), strict=True))
        units = vectors / np.where(lengths > 0, lengths, 1.0)[:, None]
        return ThreadSet(
            tuple(order),
            tuple(tuple(self.ids_[row] for row in path) for path in order),
            tuple(tuple(written[row] for row in path) for path in order),
            tuple(tuple(self.openings_[row] for row in path) for path in order),
            tuple(weight[path] for path in order),
            tuple(near[path] for path in order),
            tuple(float(units[a] @ units[b]) for a, b in combinations(range(len(order)), 2)),
            log_determinant,
        )

    @property
    def _unit(self) -> str:
        """How exact dates are: Y where all are the first day of a year, M where of a month, D otherwise."""
        known = self.dates_[~np.isnat(self.dates_)]
        return next((unit for unit in "YM" if (known.astype(f"datetime64[{unit}]") == known).all()), "D")

    @property
    def _cosines(self) -> dict[tuple[int, int], float]:
        graph = self._graph
        if self._cosine_of is None or self._cosine_of[0] is not graph:
            pairs = ((first, then) for first, then in graph.edges.tolist())
            self._cosine_of = graph, dict(zip(pairs, graph.edge_weights.tolist(), strict=True))
        return self._cosine_of[1]

    # --- keeping

    def _to_saved(self) -> Saved:
        graph = self._graph
        dated = ~np.isnat(self.dates_)
        arrays = {
            "edges": graph.edges, "node_weights": graph.node_weights, "edge_weights": graph.edge_weights,
            "features": graph.features, "dated": dated,
            "days": np.where(dated, self.dates_.astype(np.int64), 0),
        }  # fmt: skip
        for name, strings in (("ids", self.ids_), ("openings", self.openings_)):
            arrays[name], arrays[f"{name}_offsets"] = store.pack_strings(strings)
        return Saved(self._kind, self.options_, arrays, {"left_out": asdict(graph.left_out)})

    @classmethod
    def _from_saved(cls, saved: Saved) -> Self:
        with store.reading("the saved threads"):
            made = cls.of_options(saved.options)
            found = layout.check(saved.arrays, _LAYOUT, "the graph of these threads")
            counts = {each.name: int(saved.meta["left_out"][each.name]) for each in fields(LeftOut)}
            PathGraph(len(found["ids"]), found["edges"], 1)  # refuses an edge that is there twice
            graph = {name: found[name] for name in ("edges", "node_weights", "edge_weights", "features")}
            made.graph_ = ThreadGraph(**graph, left_out=LeftOut(**counts))
            made.ids_, made.openings_ = tuple(found["ids"]), tuple(found["openings"])
            days = found["days"].astype("datetime64[D]")
            made.dates_ = np.where(found["dated"], days, np.datetime64("NaT", "D")).astype("datetime64[D]")
            made._forget()
        return made


def _opening(documents: Documents, row: int) -> str:
    """How a document begins: as it was written, where that is known, in the first language that has it."""
    for text in documents.texts:
        if len(text.ids[row]):
            whole = text.lines[row] if text.lines is not None else " ".join(text.tokens(row))
            if len(whole) <= OPENING:
                return whole
            return whole[:OPENING].rpartition(" ")[0] + " …"
    return ""


def _with_constant(features: NDArray[np.float64], constant: float) -> NDArray[np.float64]:
    return np.hstack([features, np.full((len(features), 1), float(constant))]) if constant else features


def _checked_seeds(seeds: Iterable[int]) -> list[int]:
    found = list(seeds)
    for seed in found:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise ParameterError(f"Threads: a seed should be a whole number, 0 or more, not {seed!r}")
    return found


def _written(days: NDArray[np.datetime64], unit: str) -> list[str]:
    return ["" if np.isnat(day) else str(day) for day in days.astype(f"datetime64[{unit}]")]


def _mean(values: Sequence[float]) -> float:
    return 100.0 * float(np.mean(values)) if len(values) else float("nan")
