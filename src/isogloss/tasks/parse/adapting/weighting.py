r"""What should count more when a parser learns for another domain: sentences, words and features like those there.

`domain_weights` asks a classifier that tells the domains apart by the sequences of tags in a sentence;
`word_weights` and `feature_scales` count how often the target has a word or a feature,
:math:`\omega \propto \log(1 + c_{target})`, with mean 1. `feature_scales` without `soft`, and `between_nouns`, say
which features a parser could do without.

References
----------
Dredze et al., Frustratingly Hard Domain Adaptation for Dependency Parsing, EMNLP-CoNLL 2007, section 4. The paper does
not say how counts become weights; logarithms are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.linear import fit_linear, softmax
from isogloss.structures.tree_parts import Candidates
from isogloss.tasks.parse.adapting.decomposing import tag_column, tags_of
from isogloss.tasks.parse.features import LINK_TEMPLATES
from isogloss.tasks.parse.filtering import LinkFilter
from isogloss.tasks.parse.scoring import FeatureSet, count_keys, counted_keys
from isogloss.tasks.parse.words import columns_of, encode

__all__ = ["between_nouns", "domain_weights", "feature_scales", "target_counts", "word_weights"]

Array = NDArray[np.float64]
Scales = Callable[[NDArray[np.uint64]], Array]
LONGEST = 3
"""Tags of a sequence, by which sentences are told apart."""
L2 = 1e-3


def domain_weights(source: Treebank, target: Treebank, *, folds: int = 5, seed: int = 0) -> Array:
    r"""float64[n_sentences]: how much each sentence of the source looks like one of the target, with mean 1.

    P(target | sentence) of a logistic regression on the sequences of one to three tags that are there, learnt from the
    other folds: of sentences that it has learnt from it would say where they are from, and all weights be 0. The
    domains count alike; for two halves of one domain, weights are near 1.

    References
    ----------
    Dredze et al. 2007: "weights from a domain classifier trained on unlabelled data".
    """
    if not len(source) or not len(target):
        raise ParameterError("domain_weights: both domains should have sentences")
    rows = _sequences([source, target])
    n = len(source)
    domain = np.repeat([0, 1], [n, len(target)])
    counts = np.where(domain == 0, 0.5 / n, 0.5 / len(target)) * len(domain)
    fold = np.random.default_rng(seed).permutation(np.arange(len(domain)) % folds)
    chances = np.full(n, 0.5)
    for number in range(folds):
        there, away = np.flatnonzero(fold != number), np.flatnonzero((fold == number) & (domain == 0))
        if len(np.unique(domain[there])) < 2 or not len(away):
            continue
        targets = np.eye(2)[domain[there]]
        rule = fit_linear(_rows(rows, there), targets, counts=counts[there], loss="logistic", penalty=L2)
        chances[away] = softmax(rule.scores(_rows(rows, away)))[:, 1]
    return np.asarray(chances / chances.mean())


def _rows(rows: Sparse, numbers: NDArray[np.int64]) -> Sparse:
    from isogloss.data.rows import gathered

    indptr, at = gathered(rows.indptr, numbers)
    return Sparse(indptr, rows.indices[at], rows.n_indicators, rows.values[at])


def _sequences(treebanks: list[Treebank]) -> Sparse:
    """Sequences of tags of each sentence, of all treebanks one after the other; rows have length 1."""
    numbers: dict[str, int] = {}
    column, ids, ends = tag_column(*treebanks), [], []
    for treebank in treebanks:
        own, vocabulary = treebank.columns[column]
        ids.append(np.array([numbers.setdefault(tag, len(numbers)) for tag in vocabulary] or [0], np.int64)[own])
        ends.append(np.repeat(treebank.offsets[1:], treebank.lengths) + sum(len(one) for one in ids[:-1]))
    tags, last = np.concatenate(ids), np.concatenate(ends)
    lengths = np.concatenate([treebank.lengths for treebank in treebanks])
    size, sentence = len(numbers) + 1, np.repeat(np.arange(len(lengths)), lengths)
    at, code, found = np.arange(len(tags)), np.zeros(len(tags), np.int64), []
    for n in range(LONGEST):
        inside = at + n < last
        code = code * size + np.where(inside, tags[np.where(inside, at + n, 0)] + 1, 0)
        found.append(np.stack([sentence[inside], (code * LONGEST + n)[inside]]))
    of, codes = np.concatenate(found, axis=1)
    used, columns = np.unique(codes, return_inverse=True)
    cells = np.unique(of * max(1, len(used)) + columns)  # that it is there, not how often
    row = cells // max(1, len(used))
    counts = np.bincount(row, minlength=len(lengths))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    values = 1 / np.sqrt(np.maximum(1, counts))[row]
    return Sparse(indptr, (cells % max(1, len(used))).astype(np.int32), len(used), values)


def word_weights(source: Treebank, target: Treebank, *, form: str = "log") -> Array:
    r"""float64[n_words]: what a wrong head of each word of the source is to cost, by how often the target has it.

    .. math:: \omega_t \propto \log(1 + c_{target}(word_t)) \quad\text{or}\quad c_{target}(word_t)

    with mean 1 over words. Words in small letters.

    Parameters
    ----------
    form : {"log", "frequency"}
    """
    if form not in ("log", "frequency"):
        raise ParameterError(f"word_weights: form should be 'log' or 'frequency', not {form!r}")
    counts: dict[str, int] = {}
    ids, vocabulary = target.columns["form"]
    for word, count in zip(vocabulary, np.bincount(ids, minlength=len(vocabulary)).tolist(), strict=True):
        counts[word.lower()] = counts.get(word.lower(), 0) + count
    ids, vocabulary = source.columns["form"]
    found = np.array([counts.get(word.lower(), 0) for word in vocabulary] or [0], np.float64)[ids]
    found = np.log1p(found) if form == "log" else found
    mean = float(found.mean()) if len(found) else 0.0
    return np.asarray(found / mean) if mean > 0 else np.ones(len(found))


# --- features


class Counted(NamedTuple):
    """Keys of features, ascending, and how often each fires."""

    keys: NDArray[np.uint64]
    counts: NDArray[np.int64]

    def of(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How often these fire."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.counts[at], 0)


def target_counts(parser: Any, source: Treebank, target: Treebank) -> Counted:
    """How often features of a parser fire on links and larger parts that are worth a look in the target.

    Trees of the target are not known, so that all parts count which a quick first look leaves: that of a `LinkFilter`
    learnt from the source.

    Parameters
    ----------
    parser : DependencyParser
        Its options say what parts and templates there are.
    source : Treebank
        With trees.
    target : Treebank
        With tags; trees are not looked at.
    """
    columns = columns_of(source, lemma=parser.tags == "gold")
    shape, words = parser._shape(source), encode(source, columns)
    chosen = LinkFilter.fit(
        words, columns, source.heads, shape, threshold=float(parser.prune) or 1e-3, seed=parser.seed
    )
    features = FeatureSet.of(columns, shape.families, parser.link_templates)
    unseen = encode(target, columns)
    nothing = np.full(int(unseen.lengths.sum()), -1, np.int32)
    keys, counts = counted_keys(unseen, features, chosen.candidates(unseen), shape.families, nothing, support="all")
    order = np.argsort(keys)
    return Counted(keys[order], counts[order].astype(np.int64))


def feature_scales(counts: Counted, *, soft: bool = True) -> Scales:
    r"""What features are multiplied by, of how often the target has them: log(1 + c) with mean 1, or 1 and 0.

    Parameters
    ----------
    counts : Counted
        Of `target_counts`.
    soft : bool
        Otherwise features that the target does not have are left out, and others stay as they are.
    """

    def scales(keys: NDArray[np.uint64]) -> Array:
        found = counts.of(keys)
        if not soft:
            return (found > 0).astype(np.float64)
        logs = np.log1p(found)
        mean = float(logs[logs > 0].mean()) if (logs > 0).any() else 1.0
        return np.asarray(np.maximum(logs / mean, FAINT))

    return scales


FAINT = 0.05
"""Features that the target does not have are not quite gone: they may still help to explain the source."""


def between_nouns(parser: Any, source: Treebank) -> Scales:
    """Leaves out what is seen of both words where a noun hangs on a noun: features that may not carry over.

    That of one word, and of tags, stays.
    """
    columns = columns_of(source, lemma=parser.tags == "gold")
    words = encode(source, columns)
    names = tuple(name for name in LINK_TEMPLATES if _both_words(name))
    features = FeatureSet.of(columns, (), names)
    ids, vocabulary = tags_of(source)
    noun = np.array([tag[:2] == "NN" or tag in ("NOUN", "PROPN") for tag in vocabulary] or [False])[ids]
    first = np.repeat(source.offsets[:-1], source.lengths)
    above = np.maximum(first + source.heads - 1, 0)
    some = (source.heads > 0) & noun & noun[above] if len(noun) else np.zeros(0, np.bool_)
    heads = np.where(some, source.heads, -1).astype(np.int32)
    rest = np.where(some, -1, source.heads).astype(np.int32)
    every = Candidates.all(words.lengths)
    own, others = (count_keys(words, features, every, (), some) for some in (heads, rest))
    gone = np.setdiff1d(own, others)

    def scales(keys: NDArray[np.uint64]) -> Array:
        return np.where(np.isin(keys, gone), 0.0, 1.0)

    return scales


def _both_words(name: str) -> bool:
    """Whether a template looks at the word of the head and at that of the child."""
    seen = {term.partition("[")[0] for term in name.split(" & ")}
    return bool(seen & {"head.word", "head.lemma"}) and bool(seen & {"child.word", "child.lemma"})
