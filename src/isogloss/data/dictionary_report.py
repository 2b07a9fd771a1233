"""How well a dictionary of tags fits: how much of a text it covers, and whether it says what others say.

All is plain data, shares in percent; a share of nothing is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Text
from isogloss.data.tag_dictionary import TagDictionary, types_of
from isogloss.data.tagsets import UD17, retagged, tagset_of
from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["BANDS", "KINDS", "against", "agreement", "coverage", "summary"]

BANDS = {"low": (0.0, 0.01), "medium": (0.01, 0.1), "high": (0.1, np.inf)}
"""Bands of frequency: the count of a word over that of the most frequent one, from and below."""

KINDS = ("identical", "superset", "subset", "overlap", "disjoint")
"""How two sets of tags of a word may lie: the first has the same tags, more, fewer, some others, or all others."""


def summary(dictionary: TagDictionary) -> dict[str, Any]:
    """What is in a dictionary: words, pairs of word and tag, entries of several words, and words of each tag."""
    return {
        "words": len(dictionary),
        "pairs": dictionary.n_pairs,
        "several_words": sum(len(word.split()) > 1 for word in dictionary),
        "tagset": "any" if dictionary.tagset is None else dictionary.tagset.name,
        "tags": dictionary.counts(),
    }


def coverage(dictionary: TagDictionary, text: Text | Treebank, *, most: int = 10) -> dict[str, Any]:
    """How much of a text has an entry.

    Words are looked up as `TagDictionary.allowed` does: as they are written, then in small letters.

    Returns
    -------
    dict
        `types` and `tokens` of the text; `type_coverage` and `token_coverage`, the shares that have an entry;
        `type_coverage_with_rules` and `token_coverage_with_rules`, that have one or are punctuation marks or numerals;
        `bands`, the first four for words of "low", "medium" and "high" frequency (`BANDS`). Of the types and tokens
        with an entry, `tags_per_type` and `tags_per_token`, how many tags they may have on average, and
        `ambiguous_types` and `ambiguous_tokens`, the shares that may have more than one. `missing`: the most frequent
        words that neither an entry nor a rule says anything of, with their counts.

    References
    ----------
    S. Li, J. Graça and B. Taskar, Wiki-ly Supervised Part-of-Speech Tagging, EMNLP 2012, section 3.

    Examples
    --------
    >>> words = TagDictionary({"the": "DET", "house": ["NOUN", "VERB"]})
    >>> found = coverage(words, Text.of(["The house , the old house"]))
    >>> found["type_coverage"], round(found["token_coverage"], 2), found["tags_per_token"], found["missing"]
    (60.0, 66.67, 1.5, [('old', 1)])
    """
    types, counts = types_of(text)
    at = dictionary.entries_of(types)
    entry = at >= 0
    sizes = dictionary.sizes(at[entry])
    weights = counts[entry]
    relative = counts / max(int(counts.max(initial=0)), 1)
    bands = {
        name: _covered(entry[inside], counts[inside])
        for name, (low, high) in BANDS.items()
        for inside in [(relative >= low) & (relative < high)]
    }
    known = dictionary.known(types)
    with_rules = _covered(known, counts)
    return {
        **_covered(entry, counts),
        **{f"{name}_with_rules": with_rules[name] for name in ("type_coverage", "token_coverage")},
        "bands": bands,
        "tags_per_type": _ratio(sizes.sum(), len(sizes)),
        "tags_per_token": _ratio(sizes @ weights, weights.sum()),
        "ambiguous_types": 100 * _ratio((sizes > 1).sum(), len(sizes)),
        "ambiguous_tokens": 100 * _ratio(weights[sizes > 1].sum(), weights.sum()),
        "missing": [(types[place], int(counts[place])) for place in _most_frequent(counts * ~known, most)],
    }


def _covered(entry: NDArray[np.bool_], counts: NDArray[np.int64]) -> dict[str, Any]:
    return {
        "types": len(counts),
        "tokens": int(counts.sum()),
        "type_coverage": 100 * _ratio(entry.sum(), len(counts)),
        "token_coverage": 100 * _ratio(counts[entry].sum(), counts.sum()),
    }


def _ratio(part: Any, whole: Any) -> float:
    return float(part) / float(whole) if whole else 0.0


def _most_frequent(counts: ArrayLike, most: int) -> Iterator[int]:
    """Where the largest counts are, the first of equal ones first, none that is 0."""
    given = np.asarray(counts)
    for place in np.argsort(-given, kind="stable")[: max(most, 0)].tolist():
        if given[place]:
            yield place


def agreement(dictionary: TagDictionary, other: TagDictionary) -> dict[str, Any]:
    """How the entries of a dictionary compare with those of another, in words that both have.

    Words of `other` are looked up in `dictionary` as they are written, then in small letters. If one has the twelve
    tags and one those of UD, they are compared in the twelve.

    Returns
    -------
    dict
        `types`, words of `other` that `dictionary` has, and the shares of them whose set of tags in `dictionary` is
        `identical` to that in `other`, a `superset`, a `subset`, an `overlap` of some tags, or `disjoint`: together
        100.

    References
    ----------
    S. Li, J. Graça and B. Taskar, EMNLP 2012, section 3.3.

    Examples
    --------
    >>> ours = TagDictionary({"today": ["ADV", "NOUN"], "run": "VERB", "old": "ADJ"})
    >>> theirs = TagDictionary({"today": "ADV", "Run": ["VERB", "NOUN"], "old": "ADJ", "new": "ADJ"})
    >>> {name: round(share) for name, share in agreement(ours, theirs).items() if share}
    {'types': 3, 'identical': 33, 'superset': 33, 'subset': 33}
    """
    ours, theirs = _alike(dictionary, other)
    tags = tuple(dict.fromkeys([*ours.tags, *theirs.tags]))
    words = [word for word, known in zip(theirs, ours.known(list(theirs), rules=False).tolist(), strict=True) if known]
    first, second = (found.allowed(words, tags, rules=False) for found in (ours, theirs))
    more, fewer, common = (first & ~second).any(1), (second & ~first).any(1), (first & second).any(1)
    kinds = (~more & ~fewer, more & ~fewer, ~more & fewer, more & fewer & common, ~common)
    shares = {name: 100 * _ratio(np.sum(flags), len(words)) for name, flags in zip(KINDS, kinds, strict=True)}
    return {"types": len(words), **shares}


def _alike(first: TagDictionary, second: TagDictionary) -> tuple[TagDictionary, TagDictionary]:
    """Both in one set of tags."""
    if first.tagset == second.tagset or first.tagset is None or second.tagset is None:
        return first, second  # tags of no known set are compared by their names
    return first.mapped("universal12"), second.mapped("universal12")


def against(dictionary: TagDictionary, treebank: Treebank, column: str = "upos", *, most: int = 10) -> dict[str, Any]:
    """How the entries of a dictionary fit the tags that words have in a treebank.

    Words without a tag (``_``) are not looked at. Tags of the treebank are mapped to the set of the dictionary.

    Returns
    -------
    dict
        `tokens` that have a tag; `gold_allowed`, the share of them that may have it, by an entry, a rule, or because
        nothing is known of the word: no tagger that keeps to the dictionary gets more of them right.
        `gold_allowed_covered`, the share of those with an entry whose entry has the tag. `agreement`, as `agreement`
        has it with the treebank as the other dictionary. `excluded`: the most frequent words whose entry lacks the
        tag: word, tag, count and the tags of the entry.
    """
    if column not in treebank.columns:
        raise ParameterError(f"against: no column {column!r}; there are {', '.join(treebank.columns)}")
    dictionary, treebank = _in_one_set(dictionary, treebank, column)
    (forms, words), (labels, names) = treebank.columns["form"], treebank.columns[column]
    seen, counts = np.unique(forms.astype(np.int64) * max(len(names), 1) + labels, return_counts=True)
    tagged = seen % max(len(names), 1) != names.index_of("_")
    pairs = [divmod(pair, len(names)) for pair in seen[tagged].tolist()]
    counts = counts[tagged]
    types = [words.types[form] for form, _ in pairs]
    tags = tuple(dict.fromkeys([*dictionary.tags, *names]))
    column_of = {tag: number for number, tag in enumerate(tags)}
    right = np.array([column_of[names[label]] for _, label in pairs], np.int64)
    fits = dictionary.allowed(types, tags)[np.arange(len(types)), right]
    at = dictionary.entries_of(types)
    entry = at >= 0
    excluded = [
        (types[place], tags[right[place]], int(counts[place]), dictionary.tags_of(int(at[place])))
        for place in _most_frequent(counts * (entry & ~fits), most)
    ]
    return {
        "tokens": int(counts.sum()),
        "gold_allowed": 100 * _ratio(counts[fits].sum(), counts.sum()),
        "gold_allowed_covered": 100 * _ratio(counts[fits & entry].sum(), counts[entry].sum()),
        "agreement": agreement(dictionary, TagDictionary.of_treebank(treebank, column)),
        "excluded": excluded,
    }


def _in_one_set(dictionary: TagDictionary, treebank: Treebank, column: str) -> tuple[TagDictionary, Treebank]:
    """Both in the set of the dictionary, or in the twelve where the treebank has no finer tags."""
    if dictionary.tagset is None:
        return dictionary, treebank
    wanted = dictionary.tagset.name
    ids, names = treebank.columns[column]
    here = {names[number] for number in np.unique(ids).tolist()} - {"_"}
    if wanted == "ud17" and not here <= set(UD17) and tagset_of(here) is not None:
        wanted = "universal12"
    return dictionary.mapped(wanted), retagged(treebank, wanted, column, keep_untagged=True)
