r"""How far two domains are apart, what that will cost, and what to label next.

.. math:: d = 100 \cdot \Big(1 - \frac1N \sum_i L(f(x_i), domain_i)\Big)

where f is a linear classifier that tells the domains apart and L the modified Huber loss: 100 for domains that it tells
apart without fail, 0 where it can say nothing. On documents that it learnt from (the paper's form) it can always say
something; on held-out ones two halves of one domain are at 0.

References
----------
Blitzer, Dredze and Pereira, ACL 2007, section 6. Ben-David et al., Analysis of Representations for Domain Adaptation,
NIPS 2006 (the error form, 2 (1 − 2ε)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Text
from isogloss.data.labelled import LabelledDocuments, copies_among
from isogloss.engine.threads import using_threads
from isogloss.errors import DocumentsError, ParameterError
from isogloss.features.ngrams import NGrams, plain_form
from isogloss.features.sparse import Sparse
from isogloss.learners.correspondence import modified_huber
from isogloss.learners.linear import LinearWeights, fit_linear
from isogloss.tasks.adapt.classifier import DocumentClassifier, as_labelled
from isogloss.tasks.adapt.learning import fold_numbers
from isogloss.tasks.adapt.model import chosen_rows, joined_rows, scaled

__all__ = [
    "Diagnosis", "Distance", "diagnose", "losses", "proxy_a_distance", "unknown_words", "which_domains_to_label",
    "which_to_label",
]  # fmt: skip

L2 = 1e-3
NEAR, FAR = 10.0, 60.0
"""Distances up to which domains are alike, and from which on little is shared."""
ENOUGH = 5
"""Documents of each label of the source, from which on a classifier is tried."""


@dataclass(frozen=True)
class Distance:
    """How far two domains are apart, in percent.

    held_out : float
        By documents that the classifier did not learn from; never below 0.
    training : float
        By those that it did learn from, as in the paper.
    error : float
        Held-out documents that are taken for the other domain, each domain counting as much as the other.
    """

    held_out: float
    training: float
    error: float

    def __float__(self) -> float:
        return self.held_out


def proxy_a_distance(
    one: Any, other: Any, *, ngrams: int = 1, folds: int = 5, l2: float = L2, seed: int = 0
) -> Distance:
    """How well a linear classifier tells two domains apart.

    Parameters
    ----------
    one, other : LabelledDocuments, Documents, sequence of texts, Sparse or float64[n, d]
        Texts are seen by the sequences of words that are in them; anything else by features of your own, the same for
        both, such as places of documents. Labels are not looked at.
    ngrams : int
        The most words of a sequence, for texts.
    folds : int
        For the held-out form. Copies of a text are in one fold.
    l2 : float
    seed : int

    Examples
    --------
    >>> from isogloss import samples
    >>> books, pans = samples.reviews("books", 80), samples.reviews("kitchen", 80)
    >>> proxy_a_distance(books, pans).held_out > 80, proxy_a_distance(books[:40], books[40:]).held_out < 10
    (True, True)
    """
    rows, copies, n = _rows_of(one, other, ngrams)
    domain = np.repeat([0, 1], [n, rows.n_rows - n])
    if not 0 < n < rows.n_rows:
        raise ParameterError("proxy_a_distance: both domains should have documents")
    counts = np.where(domain == 0, 0.5 / n, 0.5 / (rows.n_rows - n)) * rows.n_rows  # domains count alike
    numbers = fold_numbers(copies, folds, seed)

    def learnt(there: NDArray[np.int64]) -> LinearWeights:
        targets = np.eye(2)[domain[there]]
        return fit_linear(chosen_rows(rows, there), targets, counts=counts[there], penalty=l2)

    away = np.zeros(rows.n_rows)
    for fold in np.unique(numbers):
        there, left = np.flatnonzero(numbers != fold), np.flatnonzero(numbers == fold)
        if len(np.unique(domain[there])) == 2:
            away[left] = learnt(there).scores(chosen_rows(rows, left))[:, 1] * 2
    own = learnt(np.arange(rows.n_rows)).scores(rows)[:, 1] * 2
    signs, shares = 2.0 * domain - 1, counts / counts.sum()
    held_out, training = (100 * (1 - float(shares @ modified_huber(s, signs)[0])) for s in (away, own))
    error = 100 * float(shares @ ((away * signs < 0) + 0.5 * (away == 0)))
    return Distance(max(0.0, held_out), max(0.0, training), error)


def _rows_of(one: Any, other: Any, ngrams: int) -> tuple[Sparse, NDArray[np.int64], int]:
    """Rows of both, of length 1, which of them are copies, and how many are of the first."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        dense = np.concatenate([one, other]).astype(np.float64)
        size = dense.std(axis=0)
        dense = (dense - dense.mean(axis=0)) / np.where(size > 0, size, 1.0) / max(1.0, np.sqrt(dense.shape[1]))
        empty = Sparse(np.zeros(len(dense) + 1, np.int64), np.zeros(0, np.int32), 0, dense=dense)
        return empty, np.arange(len(dense)), len(one)
    if isinstance(one, Sparse) and isinstance(other, Sparse):
        both = joined_rows(one, other)
        return scaled(both, np.ones(both.n_indicators), both.dense), np.arange(both.n_rows), one.n_rows
    first, second = as_labelled(one, "proxy_a_distance"), as_labelled(other, "proxy_a_distance")
    features = NGrams.of([first.text, second.text], longest=ngrams, least=2)
    both = joined_rows(features.matrix(first.text), features.matrix(second.text))
    return scaled(both, np.ones(len(features))), copies_among([first.text, second.text]), len(first)


# --- what to label


def which_to_label(
    classifier: DocumentClassifier, documents: Any, n: int = 50
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Which documents to label next: numbers of `n` documents, the most useful first, and how useful each is.

    A document is useful if the classifier is unsure of it (the entropy of its posterior, from 0 to 1) and it is like
    others (its mean cosine with all documents, beside the largest): few labels should not go to oddities.
    """
    given = as_labelled(documents, "which_to_label")
    posteriors = classifier.predict_proba(given)
    unsure = -(posteriors * np.log(np.maximum(posteriors, 1e-300))).sum(axis=1) / np.log(posteriors.shape[1])
    features = NGrams.of([given.text], longest=1)
    rows = scaled(features.matrix(given.text), np.ones(len(features)))
    alike = rows.scores(rows.totals(np.ones(rows.n_rows))) / max(1, rows.n_rows)
    useful = unsure * alike / max(float(alike.max(initial=0.0)), 1e-300)
    best = np.argsort(-useful, kind="stable")[:n]
    return best, useful[best]


def which_domains_to_label(domains: Mapping[str, Any], n: int = 1, **options: Any) -> list[tuple[str, float]]:
    """Which domains to label so that every domain is near to one that has labels.

    Each step takes the domain that most lowers the mean distance of all domains to the nearest labelled one.

    Returns
    -------
    list of (str, float)
        Names in the order in which to label, and the mean distance that is left, in percent.
    """
    names = list(domains)
    apart = np.zeros((len(names), len(names)))
    for i in range(len(names)):
        for j in range(i):
            apart[i, j] = apart[j, i] = float(proxy_a_distance(domains[names[j]], domains[names[i]], **options))
    nearest, found = np.full(len(names), 100.0), list[tuple[str, float]]()
    for _ in range(min(n, len(names))):
        left = [
            np.inf if any(names[k] == name for name, _ in found) else float(np.minimum(nearest, apart[k]).mean())
            for k in range(len(names))
        ]
        best = int(np.argmin(left))
        nearest = np.minimum(nearest, apart[best])
        found.append((names[best], left[best]))
    return found


# --- a diagnosis


@dataclass(frozen=True)
class Diagnosis:
    """What can be said of two domains before anything is labelled, in percent.

    a_distance, a_distance_training : float
        See `proxy_a_distance`.
    unknown : float
        Words of the target, as they are met, that the source does not have; and `unknown_types`, of different words.
    source_accuracy : float, optional
        Of a classifier of the source, held out; where the source has labels.
    expected_accuracy, expected_loss : float, optional
        What it can be expected to have on the target, by how much less sure it is there, and what is lost.
    prior : dict, optional
        How frequent labels seem to be in the target.
    advice : tuple of str
    """

    a_distance: float
    a_distance_training: float
    unknown: float
    unknown_types: float
    source_accuracy: float | None
    expected_accuracy: float | None
    expected_loss: float | None
    prior: Mapping[str, float] | None
    advice: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def diagnose(source: Any, target: Any, *, threads: int | None = None) -> Diagnosis:
    """Say how far two domains are apart, what is likely to be lost, and what to do next.

    Parameters
    ----------
    source : LabelledDocuments, Documents or sequence of texts
        With labels, each of which has five documents or more, a classifier is tried as well.
    target : the same; labels are not looked at.
    """
    first, second = as_labelled(source, "diagnose"), as_labelled(target, "diagnose").unlabelled()
    with using_threads(threads):
        apart = proxy_a_distance(first, second)
    unknown, types = unknown_words(first.text, second.text)
    accuracy = expected = prior = None
    fewest = min((first.labels.count(name) for name in first.names), default=0)
    if len(first.names) > 1 and fewest >= ENOUGH and second.text.n_words:
        with suppress(DocumentsError):  # no word is met often enough
            accuracy, expected, prior = _expected(first, second, threads)
    lost = None if accuracy is None or expected is None else accuracy - expected
    return Diagnosis(
        apart.held_out, apart.training, unknown, types, accuracy, expected, lost, prior,
        _advice(apart.held_out, unknown, lost),
    )  # fmt: skip


def unknown_words(source: Text, target: Text) -> tuple[float, float]:
    """Words of the target that the source does not have, in percent: as they are met, and of different words."""
    numbers, met = dict[str, int](), []
    for text in (source, target):
        own = np.array([numbers.setdefault(plain_form(word), len(numbers)) for word in text.vocabulary], np.int64)
        ids = np.asarray(text.ids.flat)
        met.append(own[ids] if len(ids) else np.zeros(0, np.int64))
    here, there = (np.bincount(words, minlength=len(numbers)) for words in met)
    fresh = (here == 0) & (there > 0)
    types = 100 * float(fresh.sum()) / max(1, int((there > 0).sum()))
    return 100 * float(there[fresh].sum()) / max(1, int(there.sum())), types


def _expected(
    source: LabelledDocuments, target: LabelledDocuments, threads: int | None
) -> tuple[float, float, dict[str, float]]:
    """Accuracy on held-out documents of the source, what is to be expected of the target, and shares of labels there.

    Accuracy falls by as much as the mean posterior of the best label does.
    """
    source = source.take(np.array([label is not None for label in source.labels], bool))
    learnt, scored = source.held_out(0.2)
    if not len(scored):
        raise DocumentsError(f"{source.name}: nearly all documents are copies of one text")
    base = DocumentClassifier("none", threads=threads).fit(source, target)
    part = DocumentClassifier("none", threads=threads).fit(source.take(learnt), target)
    here, there = part.predict_proba(source.take(scored)).max(axis=1), base.predict_proba(target).max(axis=1)
    accuracy = float(part.score(source.take(scored)))
    expected = accuracy - 100 * max(0.0, float(here.mean() - there.mean()))
    adapted = DocumentClassifier(rounds=1, threads=threads).fit(source, target)
    return accuracy, expected, dict(zip(adapted.labels_, (100 * adapted.prior_).tolist(), strict=True))


def _advice(apart: float, unknown: float, lost: float | None) -> tuple[str, ...]:
    """What to do next."""
    said: list[str] = []
    if apart <= NEAR:
        said.append("The domains are alike: use the source as it is.")
    elif apart < FAR:
        said.append("The domains differ: adapt to unlabelled documents of the target.")
    else:
        said.append("The domains differ much: adapt to unlabelled documents, and label some of the target.")
    if unknown > 10:
        said.append(f"{unknown:.0f}% of the words of the target are new: more unlabelled documents of it will help.")
    if lost is None:
        said.append(
            f"Labels of the source would show what is likely to be lost: two or more, with {ENOUGH} or more different "
            "documents each."
        )
    elif lost > 5:
        said.append(f"About {lost:.0f} points are likely to be lost without adaptation; fifty labels would show it.")
    return tuple(said)


def losses(accuracies: Mapping[str, Sequence[float]], in_domain: Sequence[float]) -> dict[str, dict[str, float]]:
    """Adaptation losses of methods: what each loses beside a classifier of the target domain, on the mean of pairs.

    Parameters
    ----------
    accuracies : mapping of str to sequence of float
        For each method, and ``"none"`` among them, its accuracy on each pair of domains.
    in_domain : sequence of float
        What a classifier that learnt from the target has, for each pair.

    Returns
    -------
    dict
        For each method its mean ``accuracy`` and ``loss``, and ``reduction``: how much of the loss of ``none`` is gone,
        in percent.

    Examples
    --------
    >>> round(losses({"none": [72.8], "scl-mi": [79.7]}, [80.4])["scl-mi"]["reduction"], 1)
    90.8
    """
    best = np.asarray(in_domain, float)
    base = float((best - np.asarray(accuracies["none"], float)).mean())
    found = {}
    for name, values in accuracies.items():
        lost = float((best - np.asarray(values, float)).mean())
        gone = 100 * (base - lost) / base if base else float("nan")
        found[name] = {"accuracy": float(np.mean(values)), "loss": lost, "reduction": gone}
    return found
