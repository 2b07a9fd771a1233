"""The graph that threads run through: which document may follow which, how good that is, what documents are like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.documents import Documents
from isogloss.errors import DocumentsError
from isogloss.learners.graphs import nearest
from isogloss.structures.dpp import projected
from isogloss.tasks.documents.lexrank import lexrank
from isogloss.tasks.documents.thread_options import ThreadOptions
from isogloss.tasks.documents.vectors import tf_idf, unit_rows

__all__ = ["LeftOut", "ThreadGraph", "thread_graph", "word_vectors"]

Array = NDArray[np.float64]
FEWEST, MOST = 10, 1000
"""Neighbours that are looked at in small and in large collections."""
EDGES_AT_ONCE = 100_000


@dataclass(frozen=True)
class LeftOut:
    """What the graph is made without, and what is odd about the documents; all are numbers."""

    against_time: int = 0
    """Links to a document that is later."""
    to_itself: int = 0
    in_circles: int = 0
    """Links against the order of the documents, among documents that links lead round and round."""
    undated: int = 0
    """Documents without a date where others have one."""
    empty: int = 0
    """Documents without a word that counts: they are like nothing."""
    duplicates: int = 0
    """Documents with the text of one before them."""
    alone: int = 0
    """Documents that nothing leads to or from."""

    def words(self) -> list[str]:
        """What there is to say."""
        said = {
            "against_time": "link{s} to a later document left out",
            "to_itself": "link{s} of a document to itself left out",
            "in_circles": "link{s} that would lead back to where a thread has been left out",
            "undated": "document{s} without a date",
            "empty": "document{s} without a word that counts",
            "duplicates": "document{s} with the same text as another",
            "alone": "document{s} that no link leads to or from",
        }
        found = [(getattr(self, name), text) for name, text in said.items()]
        return [f"{count:,} {text.format(s='s'[: count != 1])}" for count, text in found if count]


@dataclass(frozen=True, eq=False)
class ThreadGraph:
    """What threads are drawn from.

    Parameters
    ----------
    edges : int64[n_edges, 2]
        From the document that comes first to the one that follows it in a thread.
    node_weights : float64[n]
        LexRank, the largest 1.
    edge_weights : float64[n_edges]
        Cosines of tf-idf.
    features : float64[n, dimensions]
        Of length 1 before the projection; 0 for documents without words.
    left_out : LeftOut
    """

    edges: NDArray[np.int64]
    node_weights: Array
    edge_weights: Array
    features: Array
    left_out: LeftOut


def word_vectors(documents: Documents, *, min_documents: int = 3, max_share: float = 0.25) -> Any:
    """tf-idf of each document, rows of length 1; the languages of a document side by side. Sparse [n, n_types].

    Words are written small, and count if they have a letter and are neither too rare nor too common.
    """
    from scipy.sparse import hstack

    pruned = documents.pruned(min_documents=min_documents, max_share=max_share, lowercase=True, letters=True)
    return unit_rows(hstack([tf_idf(pruned.counts(language)) for language in pruned.languages]).tocsr()).tocsr()


def thread_graph(documents: Documents, options: ThreadOptions) -> ThreadGraph:
    """The graph of some documents; `DocumentsError` if nothing leads anywhere."""
    n = len(documents)
    vectors = word_vectors(documents, min_documents=options.min_documents, max_share=options.max_share)
    empty = np.diff(vectors.indptr) == 0
    if empty.all():
        raise DocumentsError(
            f"{documents.name}: no word is in {options.min_documents} documents and in at most {options.max_share:.0%} "
            "of them, so that nothing can be said of their likeness. Lower min_documents, or raise max_share"
        )
    many = options.neighbours or min(MOST, max(FEWEST, n // 50))
    near = nearest(vectors, many, seed=options.seed)
    alike = _alike(near, options.least_similarity)
    given = options.links == "given" or (options.links == "auto" and len(documents.links) > 0)
    if given and not len(documents.links):
        raise DocumentsError(f"{documents.name}: there are no links. Give some, or follow similar documents instead")
    found = _given(documents, options.revisit) if given else (_similar(documents, alike, options), 0, 0, 0)
    edges = found[0]
    rank = lexrank(alike)
    texts = [tuple(text.ids[k].tobytes() for text in documents.texts) for k in range(n)]
    dates = documents.dates
    left_out = LeftOut(
        *found[1:],
        0 if dates is None else int(np.isnat(dates).sum()), int(empty.sum()),
        n - int(empty.sum()) - len({text for text, gone in zip(texts, empty.tolist(), strict=True) if not gone}),
        n - len(np.unique(edges)),
    )  # fmt: skip
    made = vectors if options.features == "words" else _indicators(near, empty)
    features = projected(made, options.dimensions, np.random.default_rng(options.seed))
    return ThreadGraph(edges, rank / rank.max(), _cosines(vectors, edges), np.ascontiguousarray(features), left_out)


def _alike(near: Any, least: float) -> Any:
    """The symmetric graph of neighbours that are similar enough."""
    some = near.copy()
    some.data[some.data < least] = 0.0
    some.eliminate_zeros()
    return some.maximum(some.T).tocsr()


def _given(documents: Documents, revisit: bool) -> tuple[NDArray[np.int64], int, int, int]:
    """Links turned round: from what is linked (earlier) to what links to it; how many are left out, in order: against
    time, in place, and in circles, such as those of papers of one year which cite each other."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    edges = np.unique(documents.links[:, ::-1], axis=0)
    looped = edges[:, 0] == edges[:, 1]
    edges = edges[~looped]
    against = np.zeros(len(edges), np.bool_)
    if documents.dates is not None:
        against = documents.dates[edges[:, 0]] > documents.dates[edges[:, 1]]  # false where a date is not known
    edges = edges[~against]
    circling = np.zeros(len(edges), np.bool_)
    if not revisit:
        n = len(documents)
        steps = csr_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
        part = connected_components(steps, connection="strong")[1]
        circling = (part[edges[:, 0]] == part[edges[:, 1]]) & (edges[:, 0] > edges[:, 1])
    return edges[~circling], int(against.sum()), int(looped.sum()), int(circling.sum())


def _similar(documents: Documents, alike: Any, options: ThreadOptions) -> NDArray[np.int64]:
    """From each document to those after it that are most like it; without dates, after it in the file."""
    dates = np.arange(len(documents)) if documents.dates is None else documents.dates
    pairs = alike.tocoo()
    use = dates[pairs.row] < dates[pairs.col]
    first, then, cosine = pairs.row[use], pairs.col[use], pairs.data[use]
    order = np.lexsort((then, -cosine, first))
    first, then = first[order].astype(np.int64), then[order].astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=len(documents)))])
    place = np.arange(len(first)) - starts[first]
    kept = place < options.successors
    return np.column_stack([first[kept], then[kept]])


def _indicators(near: Any, empty: NDArray[np.bool_]) -> Any:
    """Which documents are most similar to each, itself among them, as rows of length 1; none for empty documents."""
    from scipy.sparse import diags

    made = near.copy()
    made.data[:] = 1.0
    return unit_rows((made + diags((~empty).astype(np.float64))).tocsr()).tocsr()


def _cosines(vectors: Any, edges: NDArray[np.int64]) -> Array:
    found = np.zeros(len(edges))
    for at in range(0, len(edges), EDGES_AT_ONCE):
        some = edges[at : at + EDGES_AT_ONCE]
        products = vectors[some[:, 0]].multiply(vectors[some[:, 1]])
        found[at : at + len(some)] = np.asarray(products.sum(axis=1)).ravel()
    return np.clip(found, 0.0, 1.0)
