"""How good are these tags and trees? Scores as the CoNLL 2018 shared task defines them, and where the errors are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.formats import as_gold
from isogloss.data.tagsets import retagged
from isogloss.data.treebank import Column, Treebank
from isogloss.errors import ParameterError, TreebankError
from isogloss.metrics._resampling import Difference, paired
from isogloss.metrics._surface import paired_words
from isogloss.metrics._written import NEEDS, SCORED, left_out
from isogloss.metrics.scores import Sample, Score

__all__ = [
    "CONTENT_RELATIONS",
    "MEASURES",
    "SCORED",
    "UNIVERSAL_FEATURES",
    "Confusion",
    "ParseComparison",
    "ParseScore",
    "breakdown_trees",
    "compare_trees",
    "confusion",
    "left_out",
    "score_trees",
]

MEASURES = tuple(NEEDS)

# fmt: off
CONTENT_RELATIONS = frozenset(
    [
        "nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp", "obl", "vocative", "expl", "dislocated", "advcl", "advmod",
        "discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed", "flat", "compound", "list",
        "parataxis", "orphan", "goeswith", "reparandum", "root", "dep",
    ]
)
UNIVERSAL_FEATURES = frozenset(
    [
        "PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number", "Case", "Definite",
        "Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident", "Polarity", "Person", "Polite",
    ]
)
# fmt: on

_DISTANCES = ("root", "1", "2", "3-6", "7-10", "11-")
_DISTANCE_STARTS = (1, 2, 3, 7, 11)

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, repr=False)
class ParseScore(Score):
    """Words that are right, in percent. What is not scored is not a number, and not in `as_dict`.

    Parameters
    ----------
    uas, las : float
        Words with the right head, and with the right head and universal relation.
    clas : float
        F of the latter among content words, so that determiners, case marks, auxiliaries and punctuation do not count.
    upos, xpos, ufeats : float
        Words with the right universal tag, language-specific tag, and bundle of universal features.
    words, heads : int
        Words of gold, and those whose head it knows: `uas`, `las` and `clas` are of these.
    word_f1 : float
        F of the words themselves, if they were found in the surface text; not a number if both have the same words.
    left_out : mapping of str to str
        By measure, why it is not scored.
    """

    uas: float
    las: float
    clas: float
    upos: float
    xpos: float
    ufeats: float
    words: int
    heads: int
    word_f1: float = math.nan
    left_out: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def measures(self) -> tuple[str, ...]:
        """Those that are scored."""
        found = tuple(name for name in MEASURES if name not in self.left_out)
        return found if math.isnan(self.word_f1) else (*found, "word_f1")

    @property
    def headline(self) -> str:
        """`las`; where relations are not scored `uas`, and without trees the first measure that is."""
        return next((name for name in ("las", "uas") if name in self.measures), self.measures[0])

    def _shown(self) -> tuple[str, ...]:
        return tuple(name for name in ("uas", "las") if name in self.measures) or self.measures

    def _further(self) -> dict[str, Any]:
        return {"words": self.words, "heads": self.heads, "left_out": dict(self.left_out)}


def score_trees(
    predicted: Treebank,
    gold: Treebank,
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    tagset: str | None = None,
    columns: Sequence[str] | None = None,
    words: str = "gold",
) -> ParseScore:
    r"""Score tags and trees of the same words or, with ``words="surface"``, of the same text.

    With :math:`c(\cdot)` the words right, :math:`n` the words, and :math:`g, s` the content words by the relation of
    gold and by that of the prediction:

    .. math:: UAS = \frac{c(\text{head})}{n}, \quad LAS = \frac{c(\text{head, relation})}{n}, \quad
              CLAS = \frac{2\,c(\text{head, relation; content in gold})}{g + s}

    Relations are compared without their subtype (``obl:arg`` is ``obl``), bundles of features in their universal
    features alone, and punctuation counts as any word does, but for CLAS. Words whose head gold does not know are left
    out of the three. A measure of nothing is 0.

    In surface text, a system may split other words than gold does. Words are then paired by their characters
    (`isogloss.metrics._surface`), and with :math:`n_g, n_s` the words of both, all measures are F:

    .. math:: F = \frac{2\,c(\cdot)}{n_g + n_s}

    A head is right if it is paired with the head in gold. Sentences may differ as well.

    Only what the system wrote is scored: what it carried along from gold says nothing about it. Taggers and parsers
    remember what they predicted, and CoNLL-U keeps it in a comment; of other files all columns are scored that are not
    empty.

    Parameters
    ----------
    predicted, gold : Treebank
        The same words in the same sentences, or the same text; white space within a word is not looked at.
    bootstrap : int
        Resamples of sentences for the 95% percentile intervals; 0 for none.
    seed : int
        Of the bootstrap.
    tagset : {"universal12", "ud17"}, optional
        Compare universal tags in this set, of both sides; a tag that it cannot hold is an error.
    columns : sequence of {"head", "deprel", "upos", "xpos", "feats"}, optional
        Score these, whoever wrote them.
    words : {"gold", "surface"}
        Whether both must have the same words, or only the same text.

    References
    ----------
    D. Zeman et al., CoNLL 2018 Shared Task: Multilingual Parsing from Raw Text to Universal Dependencies, section 4,
    and its evaluation script, to which these are equal.

    Examples
    --------
    >>> gold = Treebank.of([[("She", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root"), (".", "PUNCT", 2, "punct")]])
    >>> score = score_trees(gold.with_columns(heads=[2, 0, 1]), gold, bootstrap=0)
    >>> print(score)  # doctest: +ELLIPSIS
    UAS = 66.67, LAS = 66.67 | punct:yes|subtypes:no|n:1|words:3|seed:0|v:...
    >>> score.clas, score.upos, round(float(score), 2)
    (100.0, 100.0, 66.67)
    """
    predicted, gold = as_gold(predicted), as_gold(gold)
    if tagset is not None:
        predicted, gold = retagged(predicted, tagset), retagged(gold, tagset)
    counts = _counts(predicted, gold, words)
    omitted = left_out(predicted, gold, columns)
    if len(omitted) == len(MEASURES):
        reasons = "; ".join(dict.fromkeys(omitted.values()))
        raise TreebankError(
            f"{predicted.name}: nothing in it can be scored against {gold.name} ({reasons}). Are they the right files?"
        )
    sample = Sample(counts, _rates, bootstrap, seed)
    value = {name: math.nan if name in omitted else rate for name, rate in sample.percent().items()}
    if words == "gold":
        value["word_f1"] = math.nan
    n_words, heads = (int(counts[:, place].sum()) for place in (_WORDS, _HEADS))
    known = "" if n_words == heads else f"heads:{heads}"
    tags = "" if tagset is None else f"tagset:{tagset}"
    paired_by = "" if words == "gold" else "paired:characters"
    signature = sample.signed("punct:yes", "subtypes:no", paired_by, f"n:{len(gold)}", f"words:{n_words}", known, tags)
    return ParseScore(
        **value, n=len(gold), words=n_words, heads=heads, signature=signature, sample=sample, left_out=omitted
    )


# Counting ------------------------------------------------------------------------------------------------------------

(
    _WORDS, _FOUND_WORDS, _PAIRS, _HEADS, _FOUND_HEADS, _ATTACHED, _LABELLED,
    _CONTENT, _FOUND_CONTENT, _CONTENT_RIGHT, _UPOS, _XPOS, _UFEATS,
) = range(13)  # fmt: skip


class _Words(NamedTuple):
    """What is right, word by word: bool[n_words] each."""

    known: Flags
    attached: Flags
    labelled: Flags


def universal(relation: str) -> str:
    """A relation without its subtype."""
    return relation.partition(":")[0]


def _universal_features(bundle: str) -> str:
    return "|".join(sorted(entry for entry in bundle.split("|") if entry.partition("=")[0] in UNIVERSAL_FEATURES))


def _in_common(first: Column, second: Column, form: Callable[[str], str] = str) -> tuple[Ids, Ids, list[str]]:
    """Two columns numbered alike: int64[n_words] each, equal exactly where `form` of the strings is."""
    numbers: dict[str, int] = {}
    both = []
    for ids, vocabulary in (first, second):
        mapping = [numbers.setdefault(form(text), len(numbers)) for text in vocabulary]
        both.append(np.array(mapping, np.int64)[ids] if mapping else np.zeros(0, np.int64))
    return both[0], both[1], list(numbers)


def _check_words(predicted: Treebank, gold: Treebank) -> None:
    """Both must have the same words."""
    if len(predicted) == len(gold) and np.array_equal(predicted.offsets, gold.offsets):
        ours, theirs, _ = _in_common(
            predicted.columns["form"], gold.columns["form"], lambda form: "".join(form.split())
        )
        if np.array_equal(ours, theirs):
            return
    for sentence in range(min(len(predicted), len(gold))):
        ours_here, theirs_here = ([" ".join(w.split()) for w in trees.words(sentence)] for trees in (predicted, gold))
        if ["".join(w.split()) for w in ours_here] == ["".join(w.split()) for w in theirs_here]:
            continue
        at = next((k for k, (a, b) in enumerate(zip(ours_here, theirs_here, strict=False)) if a != b), None)
        place = f"{gold.label_of(sentence)} (number {sentence + 1})"
        if at is None:
            finding = f"{len(ours_here)} words in {predicted.name} but {len(theirs_here)} in {gold.name}"
        else:
            finding = (
                f"word {at + 1} is {ours_here[at]!r} in {predicted.name} but {theirs_here[at]!r} in {gold.name} "
                f"(line {gold.line_of(int(gold.offsets[sentence]) + at)})"
            )
        raise TreebankError(
            f"{place}: {finding}. Scores are of the same words: apply the model to the words of the gold file"
        )
    raise TreebankError(
        f"{predicted.name} has {len(predicted)} sentences but {gold.name} has {len(gold)}. "
        "Scores are of the same sentences: was the output cut short?"
    )


def _right(predicted: Treebank, gold: Treebank) -> tuple[_Words, tuple[Ids, Ids, list[str]]]:
    _check_words(as_gold(predicted), as_gold(gold))
    relations = _in_common(predicted.columns["deprel"], gold.columns["deprel"], universal)
    known = gold.heads >= 0
    attached = known & (predicted.heads == gold.heads)
    return _Words(known, attached, attached & (relations[0] == relations[1])), relations


class _Pairs(NamedTuple):
    """Words of a prediction and of gold that are the same: int64[n_pairs], and the sentence of gold of each word."""

    ours: Ids
    theirs: Ids
    our_sentence: Ids
    their_sentence: Ids


def _pairs(predicted: Treebank, gold: Treebank, words: str) -> _Pairs:
    if words not in ("gold", "surface"):
        raise ParameterError(f"words should be 'gold' or 'surface', not {words!r}")
    sentence = np.repeat(np.arange(len(gold)), gold.lengths)
    if words == "gold":
        _check_words(as_gold(predicted), as_gold(gold))
        same = np.arange(gold.n_words)
        return _Pairs(same, same, sentence, sentence)
    ours, theirs, cover, gold_cover = paired_words(as_gold(predicted), as_gold(gold))
    within = np.searchsorted(gold_cover.sentences, cover.start, side="right") - 1
    return _Pairs(ours, theirs, np.minimum(within, len(gold) - 1), sentence)


def _heads_among_all(treebank: Treebank) -> Ids:
    """The number of each word's head among all words of the treebank; -1 for the root, -2 where it is not known."""
    starts = np.repeat(treebank.offsets[:-1], treebank.lengths)
    heads: Ids = np.where(treebank.heads > 0, starts + treebank.heads - 1, -1 - (treebank.heads < 0))
    return heads


def _counts(predicted: Treebank, gold: Treebank, words: str = "gold") -> NDArray[np.int64]:
    """What a score needs to know of each sentence of gold: int64[n_sentences, 13]."""
    pairs = _pairs(predicted, gold, words)
    our_relations, their_relations, names = _in_common(predicted.columns["deprel"], gold.columns["deprel"], universal)
    content = np.array([name in CONTENT_RELATIONS for name in names], bool)
    known = gold.heads >= 0
    counts_here = np.ones(predicted.n_words, bool)  # but for words whose head gold does not know
    counts_here[pairs.ours] = known[pairs.theirs]
    partner = np.full(predicted.n_words, -3)  # nobody's head
    partner[pairs.ours] = pairs.theirs
    heads, gold_heads = _heads_among_all(predicted), _heads_among_all(gold)
    meant = np.where(heads >= 0, partner[heads], heads)[pairs.ours]
    attached = known[pairs.theirs] & (meant == gold_heads[pairs.theirs])
    labelled = attached & (our_relations[pairs.ours] == their_relations[pairs.theirs])
    counts = np.zeros((len(gold), 13), np.int64)

    def count(place: int, sentences: Ids, flags: Flags | None = None) -> None:
        chosen = sentences if flags is None else sentences[flags]
        counts[:, place] = np.bincount(chosen, minlength=len(gold))

    of_pair = pairs.their_sentence[pairs.theirs]
    count(_WORDS, pairs.their_sentence)
    count(_FOUND_WORDS, pairs.our_sentence)
    count(_PAIRS, of_pair)
    count(_HEADS, pairs.their_sentence, known)
    count(_FOUND_HEADS, pairs.our_sentence, counts_here)
    count(_ATTACHED, of_pair, attached)
    count(_LABELLED, of_pair, labelled)
    count(_CONTENT, pairs.their_sentence, known & content[their_relations])
    count(_FOUND_CONTENT, pairs.our_sentence, counts_here & content[our_relations])
    count(_CONTENT_RIGHT, of_pair, labelled & content[their_relations][pairs.theirs])
    for place, column, form in ((_UPOS, "upos", str), (_XPOS, "xpos", str), (_UFEATS, "feats", _universal_features)):
        first, second, _ = _in_common(predicted.columns[column], gold.columns[column], form)
        count(place, of_pair, first[pairs.ours] == second[pairs.theirs])
    return counts


def _rates(counts: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
    """The measures of summed counts: float64[...] each, of array[..., 13]. Of the same words, F is accuracy."""
    c = np.moveaxis(np.asarray(counts, float), -1, 0)

    def balanced(right: int, gold: int, found: int) -> NDArray[np.float64]:
        whole = c[gold] + c[found]
        return np.where(whole > 0, 2 * c[right] / np.where(whole > 0, whole, 1.0), 0.0)

    return {
        "uas": balanced(_ATTACHED, _HEADS, _FOUND_HEADS),
        "las": balanced(_LABELLED, _HEADS, _FOUND_HEADS),
        "clas": balanced(_CONTENT_RIGHT, _CONTENT, _FOUND_CONTENT),
        "upos": balanced(_UPOS, _WORDS, _FOUND_WORDS),
        "xpos": balanced(_XPOS, _WORDS, _FOUND_WORDS),
        "ufeats": balanced(_UFEATS, _WORDS, _FOUND_WORDS),
        "word_f1": balanced(_PAIRS, _WORDS, _FOUND_WORDS),
    }


# Comparing -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParseComparison(Difference):
    """The difference of two systems in one of `MEASURES`: a positive `delta` says that the first is better."""

    measure: str = "las"

    def as_dict(self) -> dict[str, Any]:
        """Plain data; rates, difference and interval in percent, the p-value as it is."""
        return {"measure": self.measure, **super().as_dict()}

    def __str__(self) -> str:
        return self.said_of(self.measure)


def compare_trees(
    a: Treebank,
    b: Treebank,
    gold: Treebank,
    *,
    measure: str = "las",
    resamples: int = 10_000,
    seed: int = 0,
    words: str = "gold",
) -> ParseComparison:
    """Is one set of trees better than another, or is it the choice of sentences?

    Both are scored on the same resamples of sentences (Koehn 2004); the p-value is two-sided and never 0. With
    ``words="surface"``, words are paired by their characters, as in `score_trees`, and "word_f1" is a measure too.
    """
    measures = MEASURES if words == "gold" else (*MEASURES, "word_f1")
    if measure not in measures:
        raise ParameterError(f"compare_trees: measure should be one of {', '.join(measures)}, not {measure!r}")
    counts = np.stack([_counts(a, gold, words), _counts(b, gold, words)], axis=1)  # [n_sentences, 2, 13]
    found = paired(counts, lambda summed: _rates(summed)[measure], resamples, seed, "compare_trees")
    return ParseComparison(**found, measure=measure)


# Where the errors are ------------------------------------------------------------------------------------------------


def breakdown_trees(predicted: Treebank, gold: Treebank, by: str = "distance") -> dict[str, dict[str, float]]:
    """Attachment by kinds of words or links.

    Parameters
    ----------
    by : {"distance", "deprel", "upos", "xpos", "length"}
        The distance between a word and its head; its universal relation; its tag in gold; the length of its sentence.

    Returns
    -------
    dict
        For each kind that occurs, in order of distance and length, otherwise the most frequent first: `words` of that
        kind in gold; `predicted`, words of that kind in the prediction; and in percent `uas` and `las` of the words
        of gold, and `precision`, of the words predicted to be of that kind those that are right (in head, and for
        "deprel" in relation too).

    Examples
    --------
    >>> gold = Treebank.of([[("a", "X", 2, "det"), ("b", "Y", 0, "root"), ("c", "X", 1, "obj")]])
    >>> breakdown_trees(gold.with_columns(heads=[2, 0, 2]), gold)["1"]
    {'words': 1, 'predicted': 2, 'uas': 100.0, 'las': 100.0, 'precision': 50.0}
    """
    right, relations = _right(predicted, gold)
    ours, theirs, names = _kinds(predicted, gold, by, relations)
    size = len(names)
    known = right.known
    words, found = (np.bincount(ids[known], minlength=size) for ids in (theirs, ours))
    heads, labels = (np.bincount(theirs[flags], minlength=size) for flags in (right.attached, right.labelled))
    hits = np.bincount(ours[right.labelled if by == "deprel" else right.attached], minlength=size)
    order = range(size) if by in ("distance", "length") else np.argsort(-words, kind="stable").tolist()
    return {
        names[k]: {
            "words": int(words[k]),
            "predicted": int(found[k]),
            "uas": 100 * float(heads[k] / max(words[k], 1)),
            "las": 100 * float(labels[k] / max(words[k], 1)),
            "precision": 100 * float(hits[k] / max(found[k], 1)),
        }
        for k in order
        if words[k] or found[k]
    }


def _kinds(
    predicted: Treebank, gold: Treebank, by: str, relations: tuple[Ids, Ids, list[str]]
) -> tuple[Ids, Ids, list[str]]:
    """The kind of each word in the prediction and in gold, and what the kinds are called."""
    if by == "deprel":
        return relations
    if by in ("upos", "xpos"):
        ids, vocabulary = gold.columns[by]
        return ids.astype(np.int64), ids.astype(np.int64), list(vocabulary)
    if by == "distance":
        return _distances(predicted), _distances(gold), [*_DISTANCES, "unknown"]
    if by == "length":
        starts = np.array([11, 21, 31, 41])
        group = np.repeat(np.searchsorted(starts, gold.lengths, side="right"), gold.lengths)
        return group, group, ["1-10", "11-20", "21-30", "31-40", "41-"]
    raise ParameterError(f"breakdown_trees: by should be distance, deprel, upos, xpos or length, not {by!r}")


def _distances(trees: Treebank) -> Ids:
    """The bin of each word's distance from its head, in `_DISTANCES`."""
    place = np.arange(trees.n_words) - np.repeat(trees.offsets[:-1], trees.lengths) + 1
    distance = np.maximum(np.abs(place - trees.heads), 1)  # a word that is its own head is no root
    binned = np.searchsorted(np.array(_DISTANCE_STARTS), distance, side="right")
    return np.where(trees.heads == 0, 0, np.where(trees.heads < 0, len(_DISTANCES), binned)).astype(np.int64)


class Confusion(NamedTuple):
    """What is taken for what.

    Parameters
    ----------
    names : tuple of str
        The most frequent in gold first.
    counts : int64[n, n]
        ``counts[i, j]`` words have ``names[i]`` in gold and ``names[j]`` in the prediction.
    """

    names: tuple[str, ...]
    counts: NDArray[np.int64]

    def worst(self, most: int = 10) -> list[tuple[str, str, int]]:
        """The most frequent errors: gold, prediction, words."""
        wrong = self.counts.copy()
        np.fill_diagonal(wrong, 0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:most]
        pairs = ((int(at) // len(self.names), int(at) % len(self.names)) for at in order)
        return [(self.names[i], self.names[j], int(wrong[i, j])) for i, j in pairs if wrong[i, j]]


def confusion(
    predicted: Treebank, gold: Treebank, column: str = "deprel", *, subtypes: bool = False, attached: bool = False
) -> Confusion:
    """What labels, or tags, are taken for what.

    Parameters
    ----------
    column : str
        "deprel", "upos", "xpos" or another.
    subtypes : bool
        Keep the subtypes of relations.
    attached : bool
        Count only words whose head is right.
    """
    right, relations = _right(predicted, gold)
    if column not in gold.columns:
        raise ParameterError(f"confusion: no column {column!r}; there are {', '.join(gold.columns)}")
    if column != "deprel" or subtypes:
        relations = _in_common(predicted.columns[column], gold.columns[column])
    ours, theirs, names = relations
    chosen = right.attached if attached else np.ones(gold.n_words, bool)
    size = len(names)
    counts = np.bincount(theirs[chosen] * size + ours[chosen], minlength=size * size).reshape(size, size)
    used = np.flatnonzero(counts.sum(axis=0) + counts.sum(axis=1))
    order = used[np.argsort(-counts.sum(axis=1)[used], kind="stable")]
    return Confusion(tuple(names[k] for k in order), counts[np.ix_(order, order)])
