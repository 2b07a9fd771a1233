"""How good are these constituents? Scores by the rules of EVALB, comparisons, and where the errors are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituent_forms import ROOTS, stripped
from isogloss.data.constituents import EMPTY_TAG, Constituents, unescaped
from isogloss.data.formats.brackets import check_same_words, difference_of_words
from isogloss.data.treebank import Column
from isogloss.errors import ParameterError, TreebankError
from isogloss.metrics._resampling import Difference, paired
from isogloss.metrics.scores import F1Score, Sample

__all__ = [
    "COLLINS", "MEASURES", "BracketComparison", "BracketRules", "BracketScore", "breakdown_brackets",
    "compare_brackets", "score_brackets",
]  # fmt: skip

MEASURES = ("precision", "recall", "f1", "exact", "tags")

Ids = NDArray[np.int64]


class BracketRules(NamedTuple):
    """What is compared, as the parameter files of EVALB say it.

    delete : frozenset of str
        Labels of nodes, and tags of words, that do not count: words with such a tag are taken out of both trees.
    equal : tuple of (str, str)
        Labels, and tags, that count as the same.
    """

    delete: frozenset[str]
    equal: tuple[tuple[str, str], ...] = ()

    @property
    def recipe(self) -> str:
        """What a signature says of them."""
        told = " ".join(sorted(self.delete - set(ROOTS) - {EMPTY_TAG}))
        same = " ".join(f"{a}={b}" for a, b in self.equal)
        return "|".join(filter(None, [f"delete:roots {EMPTY_TAG} {told}".rstrip(), same and f"equal:{same}"]))


PUNCTUATION = frozenset({",", ":", "``", "''", ".", "$,", "$.", "$(", "$[", "$*LRB*", "$-LRB-", "PUNCT"})
"""Tags of punctuation in the Penn treebank, in STTS (NEGRA, TIGER), and in Universal Dependencies."""
COLLINS = BracketRules(frozenset({*ROOTS, EMPTY_TAG}) | PUNCTUATION, (("ADVP", "PRT"),))
"""COLLINS.prm of EVALB: roots, traces and punctuation do not count, and ADVP is PRT. EVALB knows the root TOP and the
punctuation of the Penn treebank alone; here every outer bracket is a root, and other tagsets have punctuation too."""


@dataclass(frozen=True, kw_only=True, repr=False)
class BracketScore(F1Score):
    """Labelled brackets that are right, in percent.

    Parameters
    ----------
    precision, recall, f1 : float
        Of labelled brackets.
    exact : float
        Sentences whose brackets are all right.
    tags : float
        Words with the right tag, among those that count.
    crossing : float
        Brackets of a sentence, on the average, that cross one of gold: a number, not percent.
    no_crossing : float
        Sentences without any.
    brackets, found, words : int
        Brackets of gold, brackets that were found, and words that count.
    """

    exact: float
    tags: float
    crossing: float
    no_crossing: float
    brackets: int
    words: int

    @property
    def measures(self) -> tuple[str, ...]:
        """All of them."""
        return MEASURES

    def _shown(self) -> tuple[str, ...]:
        return ("f1", "precision", "recall", "exact", "tags")

    def _further(self) -> dict[str, Any]:
        names = ("crossing", "no_crossing", "brackets", "found", "words")
        return {name: self[name] for name in names}


def score_brackets(
    predicted: Constituents,
    gold: Constituents,
    *,
    longest: int | None = None,
    rules: BracketRules = COLLINS,
    bootstrap: int = 1000,
    seed: int = 0,
) -> BracketScore:
    r"""Score labelled brackets as EVALB does, with Collins's parameters.

    A bracket is a node with its label, first and last word. Words whose tag in gold is punctuation, and traces, are
    taken out first; then nodes without words, and the outermost bracket, whatever it is called. Function tags do not
    count (``NP-SBJ`` is ``NP``), and a label that occurs twice over the same words has to be found twice:

    .. math:: P = \frac{\text{right}}{\text{found}}, \quad R = \frac{\text{right}}{\text{gold}}, \quad
              F_1 = \frac{2PR}{P+R}

    We differ in one thing: EVALB leaves sentences out where a tagger took punctuation for a word, or a word for
    punctuation; here gold alone says which words count, and all sentences do. A sentence for which nothing was found
    (no words) counts as one without right brackets.

    Parameters
    ----------
    predicted, gold : Constituents
        The same words in the same sentences, but for traces of gold.
    longest : int, optional
        Score sentences of at most so many words, traces not counted; all if not given.
    rules : BracketRules
        What is compared.
    bootstrap : int
        Resamples of sentences for the 95% percentile intervals; 0 for none.
    seed : int
        Of the bootstrap.

    References
    ----------
    S. Sekine and M. J. Collins, EVALB, 1997. M. Collins, PhD thesis, Pennsylvania 1999, chapter 7.

    Examples
    --------
    >>> gold = Constituents.of(["(S (NP-SBJ (DT the) (NN dog)) (VP (VBZ sleeps)) (. .))"])
    >>> score = score_brackets(Constituents.of(["(S (NP (DT the)) (VP (NN dog) (VBZ sleeps)) (. .))"]), gold)
    >>> score.precision, score.recall, score.exact, score.tags, score.crossing
    (33.33333333333333, 33.33333333333333, 0.0, 100.0, 1.0)
    """
    counts, long_enough = _counts(predicted, gold, rules)
    if not gold.n_words:
        raise TreebankError(f"{gold.name}: there are no words, so there is nothing to score. Is it the right file?")
    chosen = np.ones(len(gold), bool) if longest is None else long_enough <= longest
    sample = Sample(counts[chosen], _rates, bootstrap, seed)
    value = sample.percent()
    total = counts[chosen].sum(axis=0)
    value["crossing"] /= 100
    limit = "" if longest is None else f"longest:{longest}"
    signature = sample.signed("evalb", rules.recipe, limit, f"n:{int(chosen.sum())}", f"brackets:{total[_GOLD]}")
    return BracketScore(
        **value, n=int(chosen.sum()), brackets=int(total[_GOLD]), found=int(total[_FOUND]), words=int(total[_WORDS]),
        signature=signature, sample=sample,
    )  # fmt: skip


_RIGHT, _FOUND, _GOLD, _EXACT, _SENTENCES, _TAGS, _WORDS, _CROSSING, _NO_CROSSING = range(9)


def _rates(counts: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
    """The measures of summed counts: float64[...] each, of array[..., 9]."""
    c = np.moveaxis(np.asarray(counts, float), -1, 0)

    def share(part: Any, whole: Any) -> NDArray[np.float64]:
        return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)

    return {
        "precision": share(c[_RIGHT], c[_FOUND]),
        "recall": share(c[_RIGHT], c[_GOLD]),
        "f1": share(2 * c[_RIGHT], c[_FOUND] + c[_GOLD]),
        "exact": share(c[_EXACT], c[_SENTENCES]),
        "tags": share(c[_TAGS], c[_WORDS]),
        "crossing": share(c[_CROSSING], c[_SENTENCES]),
        "no_crossing": share(c[_NO_CROSSING], c[_SENTENCES]),
    }


# Counting ------------------------------------------------------------------------------------------------------------


class _Brackets(NamedTuple):
    """Brackets that count: sentence, first word, the word behind the last (among words that count), and label."""

    sentence: Ids
    begin: Ids
    end: Ids
    label: Ids


def _numbered(columns: Sequence[Column], rules: BracketRules, cut: bool) -> tuple[list[Ids], list[str]]:
    """Labels, or tags, of several as one numbering; those that do not count are -1."""
    same = {b: a for a, b in rules.equal}
    numbers: dict[str, int] = {}
    found = []
    for column in columns:
        mapping = []
        for text in column.vocabulary:
            name = text.partition("-")[0].partition("=")[0] if cut else text
            name = "" if cut and text == EMPTY_TAG else name
            deleted = name in rules.delete
            mapping.append(-1 if deleted else numbers.setdefault(same.get(name, name), len(numbers)))
        found.append(np.array(mapping, np.int64)[column.ids] if mapping else np.zeros(0, np.int64))
    return found, list(numbers)


def _kept_words(trees: Constituents, rules: BracketRules) -> NDArray[np.bool_]:
    """Which words count, by their own tags."""
    deleted = np.array([tag in rules.delete for tag in trees.columns["tag"].vocabulary], bool)
    return ~deleted[trees.columns["tag"].ids] if len(deleted) else np.zeros(0, bool)


def _real_words(trees: Constituents) -> NDArray[np.bool_]:
    """Which words are there: all but traces."""
    trace = trees.columns["tag"].vocabulary.index_of(EMPTY_TAG)
    return np.asarray(trees.columns["tag"].ids != trace)


def _brackets(trees: Constituents, kept: NDArray[np.bool_], labels: Ids) -> _Brackets:
    before = np.concatenate([[0], np.cumsum(kept)])
    starts = trees.offsets[:-1]
    sentence = trees.sentence_of_node
    begin = before[starts[sentence] + trees.begins] - before[starts[sentence]]
    end = before[starts[sentence] + trees.ends] - before[starts[sentence]]
    counts = (end > begin) & (labels >= 0)
    return _Brackets(sentence[counts], begin[counts], end[counts], labels[counts])


def _lines_up(predicted: Constituents, gold: Constituents) -> tuple[Ids, Ids, NDArray[np.bool_]]:
    """Words of both that are the same, without traces, and which sentences have a prediction."""
    if len(predicted) != len(gold):
        raise _unequal(predicted, gold)
    ours, theirs = np.flatnonzero(_real_words(predicted)), np.flatnonzero(_real_words(gold))
    sizes = [
        np.bincount(np.searchsorted(trees.offsets, words, side="right") - 1, minlength=len(gold))
        for trees, words in ((predicted, ours), (gold, theirs))
    ]
    there = (sizes[0] > 0) | (sizes[1] == 0)
    theirs = theirs[there[np.searchsorted(gold.offsets, theirs, side="right") - 1]]
    vocabulary: dict[str, int] = {}
    both = []
    for trees, words in ((predicted, ours), (gold, theirs)):
        mapping = [vocabulary.setdefault(unescaped(form), len(vocabulary)) for form in trees.columns["form"].vocabulary]
        both.append(np.array(mapping, np.int64)[trees.columns["form"].ids[words]] if mapping else np.zeros(0, np.int64))
    if not np.array_equal(np.where(there, sizes[0], 0), np.where(there, sizes[1], 0)) or not np.array_equal(
        both[0], both[1]
    ):
        plain = [stripped(trees, functions=False) for trees in (predicted, gold)]
        for number in np.flatnonzero(there).tolist():
            check_same_words(plain[0], plain[1], number)
    return ours, theirs, there


def _unequal(predicted: Constituents, gold: Constituents) -> TreebankError:
    """To be raised where there are more trees on one side, with the first tree whose words are others."""
    ours, theirs = (stripped(trees, functions=False) for trees in (predicted, gold))
    both = range(min(len(ours), len(theirs)))
    there = (n for n in both if ours.lengths[n])  # a sentence may have no prediction
    apart = next(filter(None, (difference_of_words(ours, theirs, number) for number in there)), None)
    short = min(predicted, gold, key=len).name
    where = f"the first {len(both):,} are of the same words: was {short} cut short?"
    if apart is not None:
        where = f"they part at {apart}"
    return TreebankError(
        f"{predicted.name} has {len(predicted):,} trees but {gold.name} has {len(gold):,}. Scores are of the same "
        f"sentences, and {where}"
    )


def _counts(predicted: Constituents, gold: Constituents, rules: BracketRules) -> tuple[NDArray[np.int64], Ids]:
    """What a score needs to know of each sentence: int64[n_sentences, 9]; and how many words each has."""
    for trees in (predicted, gold):
        if not isinstance(trees, Constituents):
            raise ParameterError(
                f"score: give Constituents, as Constituents.read('gold.mrg'), not {type(trees).__name__}"
            )
    if predicted.discontinuous.any() or gold.discontinuous.any():
        raise TreebankError("score: brackets of discontinuous trees cannot be scored; make them continuous first")
    ours, theirs, there = _lines_up(predicted, gold)
    kept = _kept_words(gold, rules)
    ours_kept = np.zeros(predicted.n_words, bool)
    ours_kept[ours] = kept[theirs]
    (our_labels, their_labels), _ = _numbered((predicted.labels, gold.labels), rules, cut=True)
    found, right = _brackets(predicted, ours_kept, our_labels), _brackets(gold, kept, their_labels)
    n = len(gold)
    counts = np.zeros((n, 9), np.int64)
    counts[:, _RIGHT] = np.bincount(_matched(found, right).sentence, minlength=n)
    counts[:, _FOUND] = np.bincount(found.sentence, minlength=n)
    counts[:, _GOLD] = np.bincount(right.sentence, minlength=n)
    exact = (counts[:, _RIGHT] == counts[:, _FOUND]) & (counts[:, _RIGHT] == counts[:, _GOLD])
    counts[:, _EXACT] = exact & there
    counts[:, _SENTENCES] = 1
    within = np.searchsorted(gold.offsets, theirs, side="right") - 1
    nothing = BracketRules(frozenset(), rules.equal)
    (our_tags, their_tags), _ = _numbered((predicted.columns["tag"], gold.columns["tag"]), nothing, cut=False)
    counts[:, _TAGS] = np.bincount(within[kept[theirs] & (our_tags[ours] == their_tags[theirs])], minlength=n)
    every = np.repeat(np.arange(n), gold.lengths)
    counts[:, _WORDS] = np.bincount(every[kept], minlength=n)
    counts[:, _CROSSING] = np.bincount(found.sentence[_crossing(found, right, n)], minlength=n)
    counts[:, _NO_CROSSING] = counts[:, _CROSSING] == 0
    return counts, np.bincount(every[_real_words(gold)], minlength=n)


def _matched(found: _Brackets, right: _Brackets) -> _Brackets:
    """Brackets that are in both, as often as in both."""
    a, b = np.stack(found, axis=1), np.stack(right, axis=1)
    kinds, inverse = np.unique(np.concatenate([a, b]), axis=0, return_inverse=True)
    numbers = inverse.reshape(-1)
    ours, theirs = (np.bincount(part, minlength=len(kinds)) for part in (numbers[: len(a)], numbers[len(a) :]))
    both = np.repeat(kinds, np.minimum(ours, theirs), axis=0)
    return _Brackets(*(both[:, k] for k in range(4)))


def _crossing(found: _Brackets, right: _Brackets, n: int) -> NDArray[np.bool_]:
    """Which of the brackets found cross one of gold."""
    crosses = np.zeros(len(found.sentence), bool)
    ends = np.searchsorted(right.sentence, np.arange(n + 1))
    own = np.searchsorted(found.sentence, np.arange(n + 1))
    for sentence in range(n):
        a, b = slice(own[sentence], own[sentence + 1]), slice(ends[sentence], ends[sentence + 1])
        begin, end = found.begin[a, None], found.end[a, None]
        low, high = right.begin[None, b], right.end[None, b]
        crosses[a] = (((low < begin) & (begin < high) & (high < end)) | (
            (begin < low) & (low < end) & (end < high)
        )).any(axis=1)  # fmt: skip
    return crosses


# Comparing -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BracketComparison(Difference):
    """The difference of two systems in one of `MEASURES`: a positive `delta` says that the first is better."""

    measure: str = "f1"

    def as_dict(self) -> dict[str, Any]:
        """Plain data; rates, difference and interval in percent, the p-value as it is."""
        return {"measure": self.measure, **super().as_dict()}

    def __str__(self) -> str:
        return self.said_of(self.measure)


def compare_brackets(
    a: Constituents,
    b: Constituents,
    gold: Constituents,
    *,
    measure: str = "f1",
    longest: int | None = None,
    rules: BracketRules = COLLINS,
    resamples: int = 10_000,
    seed: int = 0,
) -> BracketComparison:
    """Is one set of trees better than another, or is it the choice of sentences?

    Both are scored on the same resamples of sentences (Koehn 2004); the p-value is two-sided and never 0.
    """
    if measure not in MEASURES:
        raise ParameterError(f"compare_brackets: measure should be one of {', '.join(MEASURES)}, not {measure!r}")
    (first, lengths), (second, _) = _counts(a, gold, rules), _counts(b, gold, rules)
    counts = np.stack([first, second], axis=1)
    if longest is not None:
        counts = counts[lengths <= longest]
    found = paired(counts, lambda summed: _rates(summed)[measure], resamples, seed, "compare_brackets")
    return BracketComparison(**found, measure=measure)


# Where the errors are ------------------------------------------------------------------------------------------------


def breakdown_brackets(
    predicted: Constituents, gold: Constituents, by: str = "label", *, rules: BracketRules = COLLINS
) -> dict[str, dict[str, float]]:
    """Brackets by kind.

    Parameters
    ----------
    by : {"label", "width", "length"}
        The label; how many words a bracket has; how many its sentence has.

    Returns
    -------
    dict
        For each kind that occurs, labels by how frequent they are in gold: `brackets` of gold, `found`, and in percent
        `precision`, `recall` and `f1`.

    Examples
    --------
    >>> gold = Constituents.of(["(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))"])
    >>> breakdown_brackets(Constituents.of(["(S (NP (DT the)) (NN dog) (VP (VBZ sleeps)))"]), gold)["NP"]
    {'brackets': 1, 'found': 1, 'precision': 0.0, 'recall': 0.0, 'f1': 0.0}
    """
    if by not in ("label", "width", "length"):
        raise ParameterError(f"breakdown_brackets: by should be label, width or length, not {by!r}")
    ours, theirs, _ = _lines_up(predicted, gold)
    kept = _kept_words(gold, rules)
    ours_kept = np.zeros(predicted.n_words, bool)
    ours_kept[ours] = kept[theirs]
    (our_labels, their_labels), names = _numbered((predicted.labels, gold.labels), rules, cut=True)
    found, right = _brackets(predicted, ours_kept, our_labels), _brackets(gold, kept, their_labels)
    starts = np.array([2, 3, 6, 11, 21]) if by == "width" else np.array([11, 21, 31, 41])
    if by != "label":
        edges = [1, *starts.tolist()]
        names = [f"{a}-{b - 1}" if b > a + 1 else str(a) for a, b in zip(edges, [*edges[1:], 0], strict=True)]
        names[-1] = f"{edges[-1]}-"
    words = np.bincount(np.repeat(np.arange(len(gold)), gold.lengths)[_real_words(gold)], minlength=len(gold))

    def kinds(brackets: _Brackets) -> Ids:
        if by == "label":
            return brackets.label
        sizes = brackets.end - brackets.begin if by == "width" else words[brackets.sentence]
        return np.searchsorted(starts, sizes, side="right")

    size = len(names)
    many, all_, hits = (np.bincount(kinds(b), minlength=size) for b in (right, found, _matched(found, right)))
    order = np.argsort(-many, kind="stable").tolist() if by == "label" else range(size)
    return {
        names[k]: {
            "brackets": int(many[k]),
            "found": int(all_[k]),
            "precision": 100 * float(hits[k] / max(all_[k], 1)),
            "recall": 100 * float(hits[k] / max(many[k], 1)),
            "f1": 200 * float(hits[k] / max(many[k] + all_[k], 1)),
        }
        for k in order
        if many[k] or all_[k]
    }
