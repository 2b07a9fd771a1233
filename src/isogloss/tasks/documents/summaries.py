"""Extracts of documents, and everything that they and other summaries are scored by.

`EXTRACTORS` choose sentences: the usual baselines and three that know what a document is about. `MEASURES` compare a
summary with a reference. `score_summaries` has both kinds of measures by system, with intervals over documents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.summaries import Judged, Summaries
from isogloss.errors import DocumentsError, ParameterError
from isogloss.metrics._resampling import interval_of, resampled
from isogloss.metrics.meta import Correlation, meta_table
from isogloss.metrics.overlap import chrf, word_overlap
from isogloss.metrics.rouge import rouge_l, rouge_lsum, rouge_n
from isogloss.metrics.summaries import (
    co_selection,
    cosine,
    fleiss_kappa,
    judge_extract,
    lcs_similarity,
    mean_over_judges,
    relative_utility,
)
from isogloss.tasks.documents.index import Index
from isogloss.tasks.documents.lexrank import lexrank
from isogloss.tasks.documents.outputs import words_of
from isogloss.tasks.documents.vectors import cosines, tf_idf

__all__ = [
    "EXTRACTORS", "MEASURES", "Value", "compare_measures", "extract", "measured", "retrieved", "score_summaries",
    "sentence_scores",
]  # fmt: skip

Array = NDArray[np.float64]
LIKELY = 10.83
"""A word is a signature if chance gives it such a ratio in one of a thousand cases."""


# --- extractors


def _lead(words: list[list[str]], index: Index, rng: np.random.Generator) -> Array:
    return -np.arange(len(words), dtype=np.float64)


def _random(words: list[list[str]], index: Index, rng: np.random.Generator) -> Array:
    return rng.random(len(words))


def _degree(words: list[list[str]], index: Index, rng: np.random.Generator) -> Array:
    """To how many sentences one is alike: cosines of 0.1 and more."""
    return np.asarray((_similarities(words, index) >= 0.1).sum(axis=1), np.float64)


def _lexrank(words: list[list[str]], index: Index, rng: np.random.Generator) -> Array:
    """Cosines below 0.1 are no links."""
    return lexrank(_similarities(words, index), threshold=0.1)


def _similarities(words: list[list[str]], index: Index) -> Array:
    counts = index.encode(words).counts
    found = np.asarray(cosines(*[tf_idf(counts, index._idf)] * 2).toarray())
    np.fill_diagonal(found, 0.0)
    return found


def _centroid(words: list[list[str]], index: Index, rng: np.random.Generator) -> Array:
    r"""C + P + F: the centroid's weight of the words of a sentence, its place, and what it shares with the first.

    .. math:: C_i = \sum_{w \in i} tf(w) idf(w), \quad P_i = \frac{n - i + 1}{n} \max C, \quad F_i = s_1 \cdot s_i

    References
    ----------
    Radev, Jing and Budzikowska, Centroid-based summarization of multiple documents, 2000 (MEAD). F is scaled to
    max C, as P is.
    """
    weighted = tf_idf(index.encode(words).counts, index._idf)
    centroid = np.asarray(weighted.sum(axis=0)).ravel() / max(1, len(words))
    own = np.asarray((weighted > 0) @ centroid).ravel()
    top, n = float(own.max(initial=0.0)), len(words)
    place = top * (n - np.arange(n)) / max(1, n)
    first = np.asarray((weighted @ weighted[:1].T).todense()).ravel() if n else np.zeros(0)
    return np.asarray(own + place + first * (top / max(float(first.max(initial=0.0)), 1e-300)))


def _signatures(words: list[list[str]], index: Index, rng: np.random.Generator) -> Array:
    r"""Σ of the log-likelihood ratios of the signature words of a sentence: those that the document has too often.

    References
    ----------
    Lin and Hovy, The automated acquisition of topic signatures for text summarization, COLING 2000; Dunning 1993.
    """
    here = Counter(word for sentence in words for word in sentence)
    size, whole = here.total(), int(index.occurrences.sum())
    ratios = {}
    for word, count in here.items():
        at = index.words.index_of(word)
        background = int(index.occurrences[at]) if at >= 0 else 0
        ratios[word] = _likelihood_ratio(count, size, background, whole)
    strong = {word: ratio for word, ratio in ratios.items() if ratio > LIKELY and any(map(str.isalpha, word))}
    return np.array([sum(strong.get(word, 0.0) for word in set(sentence)) for sentence in words], np.float64)


def _likelihood_ratio(count: int, size: int, background: int, whole: int) -> float:
    """−2 log λ that a word is more frequent in a document than in a collection; 0 where it is rarer."""

    def log_likelihood(k: int, n: int, p: float) -> float:
        return (k * math.log(p) if k else 0.0) + ((n - k) * math.log(1 - p) if n - k else 0.0)

    if not size or not whole or count / size <= background / whole:
        return 0.0
    together = (count + background) / (size + whole)
    rates = ((count, size, count / size), (background, whole, background / whole))
    return 2 * sum(log_likelihood(k, n, p) - log_likelihood(k, n, together) for k, n, p in rates)


EXTRACTORS: dict[str, Callable[[list[list[str]], Index, np.random.Generator], Array]] = {
    "lead": _lead,
    "random": _random,
    "centroid": _centroid,
    "degree": _degree,
    "lexrank": _lexrank,
    "signatures": _signatures,
}
"""What sentences are worth to each, by name."""


def sentence_scores(sentences: Sequence[str], method: str, *, collection: Index | None = None, seed: int = 0) -> Array:
    """float64[n_sentences]: what each sentence is worth.

    Parameters
    ----------
    sentences : sequence of str
    method : str
        One of `EXTRACTORS`.
    collection : Index, optional
        Of other documents: how rare words are, and what is usual. Of the sentences themselves if not given.
    seed : int
        Of method random.
    """
    if method not in EXTRACTORS:
        raise ParameterError(f"sentence_scores: method should be one of {', '.join(EXTRACTORS)}, not {method!r}")
    words = [words_of(sentence) for sentence in sentences]
    index = Index.of(words) if collection is None else collection
    return EXTRACTORS[method](words, index, np.random.default_rng(seed))


def extract(
    sentences: Sequence[str],
    method: str,
    rate: float | None = None,
    *,
    size: int | None = None,
    by_words: bool = False,
    redundancy: float = 0.0,
    collection: Index | None = None,
    seed: int = 0,
) -> list[int]:
    """The sentences that a method takes, in their order, from 0 on.

    Parameters
    ----------
    sentences, method, collection, seed
        As in `sentence_scores`.
    rate : float
        The share of sentences, or with `by_words` of words, that is taken, rounded up; or `size`, how many.
    redundancy : float
        A sentence is worth less, by this share of the highest worth, times the share of words that it has in common
        with the one taken before that is most like it (MEAD's R). With it, sentences are taken one by one.

    Examples
    --------
    >>> text = ["The cat sat on the mat .", "It rained .", "The cat on the mat was black .", "Dogs bark ."]
    >>> extract(text, "lead", size=2), extract(text, "lexrank", 0.5)
    ([0, 1], [0, 2])
    """
    worth = sentence_scores(sentences, method, collection=collection, seed=seed)
    words = [words_of(sentence) for sentence in sentences]
    if redundancy:
        worth = _one_by_one(worth, words, redundancy)
    lengths = [len(each) for each in words] if by_words else None
    return judge_extract(worth, rate, size=size, lengths=lengths)


def _one_by_one(worth: Array, words: list[list[str]], redundancy: float) -> Array:
    """New worths, by which sentences come in the order in which they are taken."""
    n, top = len(worth), float(np.ptp(worth)) if len(worth) else 0.0
    left: set[int] = set(range(n))
    order: list[int] = []
    common = np.array([[_common(words[i], words[j]) for j in range(n)] for i in range(n)]).reshape(n, n)
    while left:
        seen = {i: max((common[i, j] for j in order), default=0.0) for i in left}
        best = max(sorted(left), key=lambda i: worth[i] - redundancy * top * seen[i])
        order.append(best)
        left.remove(best)
    made = np.empty(n)
    made[order] = -np.arange(n, dtype=np.float64)
    return made


def _common(one: list[str], other: list[str]) -> float:
    size = len(one) + len(other)
    return 2 * (Counter(one) & Counter(other)).total() / size if size else 0.0


def retrieved(index: Index, queries: Sequence[Sequence[str]], texts: Sequence[Sequence[str]]) -> Array:
    """float64[n_queries, n_texts]: inner products of tf-idf vectors, for `metrics.summaries.relevance_correlation`.

    The index is that of full documents, for both documents and summaries.
    """
    asked, found = (tf_idf(index.encode(each).counts, index._idf) for each in (queries, texts))
    return np.asarray((asked @ found.T).toarray())


# --- measures


def _words(text: str) -> list[str]:
    return words_of(text)


MEASURES: dict[str, Callable[[str, str], float]] = {
    **{
        f"rouge-{n}-{rate}": lambda s, r, n=n, rate=rate: getattr(rouge_n(s, r, n), rate)  # type: ignore[misc]
        for n in (1, 2)
        for rate in ("precision", "recall", "f")
    },
    **{
        f"rouge-l-{rate}": lambda s, r, rate=rate: getattr(rouge_l(s, r), rate)  # type: ignore[misc]
        for rate in ("precision", "recall", "f")
    },
    "rouge-lsum-recall": lambda s, r: rouge_lsum(s.split("\n"), r.split("\n")).recall,
    "rouge-lsum-f": lambda s, r: rouge_lsum(s.split("\n"), r.split("\n")).f,
    "chrf": lambda s, r: chrf(" ".join(s.split()), " ".join(r.split())) / 100,
    "cosine": lambda s, r: cosine(_words(s), _words(r)),
    "lcs": lambda s, r: lcs_similarity(_words(s), _words(r)),
    "overlap": lambda s, r: word_overlap(_words(s), _words(r)),
    "overlap-2": lambda s, r: word_overlap(_words(s), _words(r), 2),
}
"""A summary beside a reference, from 0 to 1, by name. Sentences are lines."""


def measured(summaries: Summaries, names: Sequence[str] | None = None) -> dict[str, Array]:
    """float64[n_summaries] for each measure: the mean over the references of each; not a number without any."""
    chosen = list(MEASURES if names is None else names)
    if unknown := [name for name in chosen if name not in MEASURES]:
        raise ParameterError(f"there is no measure {unknown[0]!r}; there are {', '.join(MEASURES)}")
    return {
        name: np.array([mean_over_judges(MEASURES[name], each.text, each.references) for each in summaries], np.float64)
        for name in chosen
    }


class Value(NamedTuple):
    """A mean over documents, with a 95% interval over them; from 0 to 1."""

    mean: float
    interval: tuple[float, float]
    documents: int


def score_summaries(
    summaries: Summaries,
    judged: Mapping[str, Judged] | None = None,
    *,
    names: Sequence[str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
) -> dict[str, dict[str, Value]]:
    """For every system the mean of every measure that can be had, over the documents where it is a number.

    Parameters
    ----------
    summaries : Summaries
    judged : mapping of str to Judged, optional
        For summaries that are extracts: precision, recall, agreement and kappa with the extracts of judges of the same
        size, and relative utility.
    names : sequence of str, optional
        Of `MEASURES`; all if not given.
    bootstrap, seed : int
        Resamples of documents.
    """
    values: dict[str, Array] = {}
    if any(each.references for each in summaries):
        values |= measured(summaries, names)
    if judged is not None:
        values |= _by_judges(summaries, judged)
    if not values:
        raise DocumentsError(f"{summaries.name}: there is nothing to score by. Give a reference to each, or judges")
    found: dict[str, dict[str, Value]] = {}
    tables = {name: summaries.table(own) for name, own in values.items()}
    for column, system in enumerate(summaries.systems):
        own = {name: _value(table[:, column], bootstrap, seed) for name, table in tables.items()}
        found[system] = {name: value for name, value in own.items() if value.documents}
    return found


def _value(column: Array, bootstrap: int, seed: int) -> Value:
    known = column[np.isfinite(column)]
    if not len(known):
        return Value(math.nan, (math.nan, math.nan), 0)
    bounds = (math.nan, math.nan)
    if bootstrap:
        bounds = interval_of(resampled(known, bootstrap, seed).ravel() / len(known))
    return Value(float(known.mean()), bounds, len(known))


def _by_judges(summaries: Summaries, judged: Mapping[str, Judged]) -> dict[str, Array]:
    names = (
        "precision",
        "recall",
        "agreement",
        "kappa",
        "utility",
        "utility-chance",
        "utility-judges",
        "utility-normal",
    )
    made = {name: np.full(len(summaries), math.nan) for name in names}
    for row, each in enumerate(summaries):
        if each.extract is None:
            continue
        if each.document not in judged:
            raise DocumentsError(f"{summaries.name}: no judge has weighed document {each.document!r}")
        document = judged[each.document]
        n, worth = len(document.sentences), document.matrix
        if any(number >= n for number in each.extract):
            raise DocumentsError(
                f"{summaries.name}: the extract of {each.document!r} by {each.system!r} has sentence "
                f"{max(each.extract)}, and the document {n}, from 0 on"
            )
        size = len(set(each.extract))
        if not len(worth) or not size:
            continue
        theirs = [judge_extract(own, size=size) for own in worth]
        found = [co_selection(each.extract, own, n) for own in theirs]
        for name in ("precision", "recall", "agreement"):
            made[name][row] = np.mean([getattr(one, name) for one in found])
        taken = np.zeros((len(theirs) + 1, n), np.bool_)
        for k, own in enumerate([*theirs, list(each.extract)]):
            taken[k, own] = True
        made["kappa"][row] = fleiss_kappa(taken)
        utility = relative_utility(each.extract, worth, subsumed=document.subsumed)
        for name, value in zip(names[4:], utility[:4], strict=True):
            made[name][row] = value
    return made


def compare_measures(
    summaries: Summaries, *, names: Sequence[str] | None = None, further: Mapping[str, Array] | None = None,
    bootstrap: int = 500, seed: int = 0, told: Callable[[str], object] = lambda _: None,
) -> dict[str, Correlation]:  # fmt: skip
    """How far each measure orders systems, and the summaries of each document, as people do; see `metrics.meta`.

    Parameters
    ----------
    summaries : Summaries
        With references and judgements of people; of documents that some system lacks, nothing is taken.
    names : sequence of str, optional
        Of `MEASURES`; all if not given.
    further : mapping of str to float64[n_summaries], optional
        Other measures.
    """
    people = summaries.table([each.human for each in summaries])
    whole = np.isfinite(people).all(axis=1)
    if not whole.any() or people.shape[1] < 3:
        raise DocumentsError(
            f"{summaries.name}: to compare measures, three systems or more are needed, and documents with a judgement "
            "of people ('human') of each"
        )
    values = {**measured(summaries, names), **(further or {})}
    tables = {name: summaries.table(own)[whole] for name, own in values.items()}
    if lost := [name for name, table in tables.items() if not np.isfinite(table).all()]:
        raise DocumentsError(f"{summaries.name}: some summary has no {lost[0]}. Has each a reference?")
    return meta_table(tables, people[whole], bootstrap=bootstrap, seed=seed, told=told)
