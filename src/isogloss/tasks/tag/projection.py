r"""What links carry from tagged words to words without tags, and which tags words may have then.

*Token* evidence: the tag of the source word that a word is linked to, with the posterior of the link. *Type* evidence:
how often each tag reaches a word form. A dictionary, where there is one, says more of types than links do.

References
----------
Das and Petrov, Unsupervised Part-of-Speech Tagging with Bilingual Graph-Based Projections, ACL 2011. Täckström, Das,
Petrov, McDonald and Nivre, Token and Type Constraints for Cross-Lingual Part-of-Speech Tagging, TACL 2013: types keep
tags above a share, tokens keep their projected tag if their type allows it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Bitext
from isogloss.data.links import Links
from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import LinksError, ParameterError, TreebankError
from isogloss.learners.posterior import Features, Projection, Together, regularise, squared_hinge

if TYPE_CHECKING:
    from isogloss.data.tag_dictionary import TagDictionary

__all__ = [
    "Constraints", "Expectations", "Projected", "best_links", "carried", "check_links", "constraints", "expectations",
    "first_words", "type_counts", "type_sets",
]  # fmt: skip

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
LEAST = 1e-6
ENOUGH = 5.0
"""Links, counted by their probabilities, that may contradict a dictionary."""


@dataclass(frozen=True, eq=False)
class Projected:
    """The tag that reaches each word of the target text.

    Parameters
    ----------
    labels : int32[n_words]
        Number of the tag at the other end of the most probable link; −1 for words without links, and for tags that are
        not among those asked for.
    probability : float64[n_words]
        Of that link; 0 without.
    """

    labels: NDArray[np.int32]
    probability: Floats

    def sure(self, threshold: float) -> Mask:
        """bool[n_words]: words with a tag by a link at least as probable as this."""
        return (self.labels >= 0) & (self.probability >= threshold)

    def take(self, words: NDArray[np.int64] | slice) -> Projected:
        """Of some words only, in that order."""
        return Projected(self.labels[words], self.probability[words])


def carried(bitext: Bitext, links: Links, source: Treebank, tags: tuple[str, ...], column: str = "upos") -> Projected:
    """Carry the tags of source words along links.

    Parameters
    ----------
    bitext : Bitext
    links : Links
        With probabilities; without, every link counts as certain. Possible links of gold do not count.
    source : Treebank
        The source side with tags, sentence by sentence the words of the bitext; it may lack sentences for empty lines.
    tags : tuple of str
        Names of tags, in the order of their numbers.
    column : str
        Of the treebank.
    """
    check_links(bitext, links)
    first = first_words(bitext, source)
    ids, vocabulary = source.columns[column]
    numbers = Vocabulary(tags).encode(vocabulary)[ids] if len(ids) else np.zeros(0, np.int32)
    link = best_links(bitext, links)
    labels, best = np.full(len(link), -1, np.int32), np.zeros(len(link))
    held, at = link >= 0, link[link >= 0]
    labels[held] = numbers[first[links.pair[at]] + links.source[at]]
    best[held] = 1.0 if links.probability is None else links.probability[at].astype(np.float64)
    best[labels < 0] = 0.0
    return Projected(labels, best)


def best_links(bitext: Bitext, links: Links) -> NDArray[np.int64]:
    """int64[n_words]: the number of the most probable link of each target word, −1 for words without.

    Without probabilities, and of equals, the first link of the row. Possible links of gold do not count.
    """
    starts = bitext.target.ids.offsets - bitext.target.ids.offsets[0]  # a part of a text begins anywhere
    used = np.arange(len(links.source)) if links.possible is None else np.flatnonzero(~links.possible)
    chances = np.ones(len(used)) if links.probability is None else links.probability[used].astype(np.float64)
    word = starts[links.pair[used]] + links.target[used]
    # The last written wins: by word, then probability; of equals, the first link of the row.
    order = np.lexsort((-used, chances, word))
    best = np.full(int(starts[-1]), -1, np.int64)
    best[word[order]] = used[order]
    return best


def first_words(bitext: Bitext, source: Treebank) -> NDArray[np.int64]:
    """int64[n_pairs]: the first word of each pair in the treebank, which may lack sentences for empty lines.

    Raises
    ------
    TreebankError
        The words are not those of the bitext's source side; the message has the first line that differs.
    """
    name, lengths = bitext.source.name, bitext.source.ids.lengths
    rows = np.flatnonzero(lengths) if len(source) != len(bitext) else np.arange(len(bitext))
    if len(source) != len(rows):
        raise TreebankError(
            f"{source.name} has {len(source):,} sentences and {name} {len(bitext):,} lines: tag the very text that is "
            f"linked, line by line (isogloss tag apply MODEL {name})"
        )
    other = np.flatnonzero(source.lengths != lengths[rows])
    if len(other):
        s = int(other[0])
        raise TreebankError(
            f"{source.name}, sentence {s + 1}: {source.lengths[s]} words, and {lengths[rows[s]]} in {name}, line "
            f"{bitext.line_of(int(rows[s]))}. Tag the words of the bitext as they are (isogloss tag apply MODEL {name})"
        )
    _check_words(bitext, source)
    first = np.zeros(len(bitext), np.int64)
    first[rows] = source.offsets[:-1]
    return first


def _check_words(bitext: Bitext, source: Treebank) -> None:
    """That the words are the same, but for case and composition: other tags would be carried otherwise."""
    (ids, forms), text = source.columns["form"], bitext.source
    known, of_text = text.vocabulary.mapped(_folded)
    of_source = known.encode(_folded(form) for form in forms)
    other = np.flatnonzero(of_source[ids] != of_text[text.ids.flat]) if len(ids) else ids
    if len(other):
        word = int(other[0])
        line = bitext.line_of(int(np.searchsorted(text.ids.offsets, text.ids.offsets[0] + word, side="right")) - 1)
        raise TreebankError(
            f"{source.name}, line {source.line_of(word)}: '{forms[int(ids[word])]}' where {text.name}, line {line}, "
            f"has '{text.vocabulary[int(text.ids.flat[word])]}' ({len(other):,} of {len(ids):,} words differ). Tag "
            f"the words of the bitext as they are (isogloss tag apply MODEL {text.name})"
        )


def _folded(form: str) -> str:
    return unicodedata.normalize("NFC", form.casefold())


def check_links(bitext: Bitext, links: Links) -> None:
    """`LinksError` unless there is a row for each pair, and all links lie within their sentences."""
    if len(links) != len(bitext):
        raise LinksError(f"{len(links):,} rows of links for {len(bitext):,} pairs: are the links of this text?")
    outside = links.source >= bitext.source.ids.lengths[links.pair]
    outside |= links.target >= bitext.target.ids.lengths[links.pair]
    outside |= (links.source < 0) | (links.target < 0)
    if outside.any():
        pair = int(links.pair[np.flatnonzero(outside)[0]])
        raise LinksError(f"pair {pair + 1}: a link goes past the end of the sentence. Are the links of this text?")


def type_counts(projected: Projected, ids: NDArray[np.int32], n_types: int, k: int) -> Floats:
    """float64[n_types, k]: how often each tag reaches each type, links counted by their probabilities."""
    held = projected.labels >= 0
    at = ids[held].astype(np.int64) * k + projected.labels[held]
    return np.bincount(at, projected.probability[held], minlength=n_types * k).reshape(n_types, k).astype(np.float64)


def type_sets(counts: Floats, share: float) -> tuple[Mask, Mask]:
    """Tags that have at least a share of what reaches a type; all, for types that no links reach.

    Returns
    -------
    allowed : bool[n_types, k]
    known : bool[n_types]
        Types that evidence decides on.

    Examples
    --------
    >>> allowed, known = type_sets(np.array([[8.0, 1.0, 1.0], [0.0, 0.0, 0.0]]), 0.2)
    >>> allowed.tolist(), known.tolist()
    ([[True, False, False], [True, True, True]], [True, False])
    """
    if not 0 <= share <= 1:
        raise ParameterError(f"type_share should be from 0 to 1, not {share!r}")
    totals = counts.sum(axis=1)
    known = totals >= LEAST
    allowed = counts >= np.maximum(share * totals, LEAST)[:, None]
    allowed[np.arange(len(counts)), counts.argmax(axis=1)] = True
    allowed[~known] = True
    return allowed, known


@dataclass(frozen=True, eq=False)
class Constraints:
    """Which tags each word of a text may have, and why.

    Parameters
    ----------
    types : bool[n_types, k]
        By type: from the dictionary, or from what links carried.
    words : bool[n_words, k]
        By word: the types', narrowed where a link decides.
    decided : bool[n_words]
        Words that a link decides.
    known : bool[n_types]
        Types that the dictionary or links decide on.
    gained : bool[n_types, k]
        Tags that links add to entries of the dictionary.
    """

    types: Mask
    words: Mask
    decided: Mask
    known: Mask
    gained: Mask


def constraints(
    ids: NDArray[np.int32],
    types: Sequence[str],
    tags: tuple[str, ...],
    *,
    dictionary: TagDictionary | None,
    projected: Projected | None,
    threshold: float,
    share: float,
    doubt: float = 0.0,
) -> Constraints:
    """Type and token constraints together; either may be missing.

    A type has the tags of its dictionary entry, else those that links carry to it above a share, else all. An entry
    whose tags get less than `doubt` of what reaches it along at least `ENOUGH` links gains those above the share:
    dictionaries lack uses, and have other conventions than treebanks. A word that is linked with at least `threshold`
    to one whose tag lies in its type's set keeps that tag alone.
    """
    k = len(tags)
    allowed, known = np.ones((len(types), k), np.bool_), np.zeros(len(types), np.bool_)
    gained = np.zeros_like(allowed)
    if projected is not None:
        counts = type_counts(projected, ids, len(types), k)
        allowed, known = type_sets(counts, share)
    if dictionary is not None:
        listed = dictionary.known(types)
        entries = dictionary.allowed(types, tags, fold_case="both")
        if projected is not None:
            totals = counts.sum(axis=1)
            doubtful = listed & (totals >= ENOUGH) & ((counts * entries).sum(axis=1) < doubt * totals)
            gained = doubtful[:, None] & allowed & ~entries
        allowed[listed] = (entries | gained)[listed]
        known |= listed
    allowed[~allowed.any(axis=1)] = True  # an entry with tags of another set says nothing
    words, decided = allowed[ids], np.zeros(len(ids), np.bool_)
    if projected is not None:
        at = np.flatnonzero(projected.sure(threshold))
        at = at[words[at, projected.labels[at]]]
        words[at] = False
        words[at, projected.labels[at]] = True
        decided[at] = True
    return Constraints(allowed, words, decided, known, gained)


@dataclass(frozen=True, eq=False)
class Expectations:
    r"""What posteriors are asked for: a projected tag should have at least the probability of its link.

    .. math:: R(q) = \frac{\sigma}{2} \sum_t \big(p(link_t) - E_q[y_t = tag_t]\big)_+^2

    Parameters
    ----------
    places : int64[m]
        ``word * k + tag`` of each word that is linked.
    least : float64[m]
        Probability of its link.
    strength : float
        σ.
    size : int
        Words times tags.
    """

    places: NDArray[np.int64]
    least: Floats
    strength: float
    size: int

    @cached_property
    def _features(self) -> Features:
        index = np.full(self.size, -1, np.int64)
        index[self.places] = np.arange(len(self.places))
        return Features.indexed(index, len(self.places), np.full(self.size, -1.0))

    def within(self, words: NDArray[np.bool_]) -> Expectations:
        """The same for chains over lists of labels, of which bool[n_words, k] are allowed: places are in the lists."""
        numbers = np.cumsum(words.ravel()) - 1
        return Expectations(numbers[self.places], self.least, self.strength, int(words.sum()))

    def project(self, text: Together, start: Floats | None = None) -> Projection[Together]:
        """The nearest distribution that pays least; `text` holds the chains of all sentences."""
        penalty = squared_hinge(-self.least, self.strength)
        return regularise(text, self._features, penalty, tolerance=1e-3, steps=20, start=start)


def expectations(projected: Projected, found: Constraints, strength: float) -> Expectations:
    """Of all words that are linked to one whose tag they may have."""
    n, k = found.words.shape
    words = np.flatnonzero(projected.labels >= 0)
    words = words[found.words[words, projected.labels[words]]]
    return Expectations(words * k + projected.labels[words], projected.probability[words], strength, n * k)
