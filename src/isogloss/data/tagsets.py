"""Sets of part-of-speech tags, and what the labels of other resources are in them.

Two sets are known by name: ``universal12``, the twelve of Petrov et al., and ``ud17``, the UPOS tags of Universal
Dependencies. Labels of dictionaries (Wiktionary, UniMorph) are kept in one table, as the UD tags that such an entry may
have; the twelve follow from these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import DataError, ParameterError, TreebankError

__all__ = [
    "TAGSETS",
    "UD17",
    "UNIMORPH",
    "UNIVERSAL12",
    "WIKTIONARY",
    "Tagset",
    "normal_label",
    "possible_tags",
    "retagged",
    "tagset_named",
    "tagset_of",
    "to_ud17",
    "to_universal12",
    "translator",
]

UNIVERSAL12 = ("NOUN", "VERB", "ADJ", "ADV", "PRON", "DET", "ADP", "NUM", "CONJ", "PRT", ".", "X")
"""The twelve tags of S. Petrov, D. Das and R. McDonald, A Universal Part-of-Speech Tagset, LREC 2012."""

UD17 = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ",
    "SYM", "VERB", "X",
)  # fmt: skip
"""The UPOS tags of Universal Dependencies 2, in alphabetical order."""


class Tagset(NamedTuple):
    """A set of tags that has a name.

    Parameters
    ----------
    name : str
    tags : tuple of str
        In a fixed order.
    punctuation, number : str
        The tags of punctuation marks and of numerals.
    """

    name: str
    tags: tuple[str, ...]
    punctuation: str
    number: str


TAGSETS = {
    "universal12": Tagset("universal12", UNIVERSAL12, ".", "NUM"),
    "ud17": Tagset("ud17", UD17, "PUNCT", "NUM"),
}
"""The sets by name."""

_TO_12 = {
    **{tag: tag for tag in UNIVERSAL12},
    "PROPN": "NOUN",
    "AUX": "VERB",
    "CCONJ": "CONJ",
    "SCONJ": "CONJ",
    "PART": "PRT",
    "PUNCT": ".",
    "SYM": "X",
    "INTJ": "X",
}
_TO_17 = {tag: tuple(fine for fine in UD17 if _TO_12[fine] == tag) for tag in UNIVERSAL12}
_RENAMED = {"PRT": "PART", ".": "PUNCT"}


def tagset_named(name: str) -> Tagset:
    """The set of that name."""
    if name not in TAGSETS:
        raise ParameterError(f"the tag set should be one of {', '.join(TAGSETS)}, not {name!r}")
    return TAGSETS[name]


def tagset_of(tags: Iterable[str]) -> Tagset | None:
    """The first set that has all these tags; NOUN and VERB alone are of both, and taken to be of the twelve.

    Examples
    --------
    >>> tagset_of(["NOUN", "CONJ"]).name, tagset_of(["NOUN", "PROPN"]).name, tagset_of(["NN"])
    ('universal12', 'ud17', None)
    """
    given = set(tags)
    return next((found for found in TAGSETS.values() if given <= set(found.tags)), None)


def to_universal12(tag: str) -> str:
    """One of the twelve tags for a UD tag, or for one of the twelve.

    PROPN is NOUN, AUX is VERB, CCONJ and SCONJ are CONJ, PART is PRT, PUNCT is ``.``, SYM and INTJ are X. Anything
    else, ``_`` too, is a `DataError`: a tag that nobody knows is not X.

    Examples
    --------
    >>> [to_universal12(tag) for tag in ("PROPN", "ADJ", "PUNCT", "PRT")]
    ['NOUN', 'ADJ', '.', 'PRT']
    """
    if tag not in _TO_12:
        raise _foreign(tag, "universal12")
    return _TO_12[tag]


def to_ud17(tag: str) -> str:
    """The UD tag for a UD tag, or for one of the twelve where there is just one name for it.

    PRT is PART and ``.`` is PUNCT; NOUN, VERB, X and the others that UD has too stay. CONJ may be CCONJ or SCONJ, and
    is a `DataError` as all other tags are.

    Examples
    --------
    >>> [to_ud17(tag) for tag in ("PROPN", "ADJ", "PRT", ".")]
    ['PROPN', 'ADJ', 'PART', 'PUNCT']
    """
    found = _RENAMED.get(tag, tag)
    if found not in UD17:
        raise _foreign(tag, "ud17")
    return found


def translator(tagset: str) -> Callable[[str], str]:
    """`to_universal12` or `to_ud17`, by the name of the set."""
    return {"universal12": to_universal12, "ud17": to_ud17}[tagset_named(tagset).name]


def retagged(treebank: Treebank, tagset: str, column: str = "upos", *, keep_untagged: bool = False) -> Treebank:
    """The same treebank with its tags in another set.

    Parameters
    ----------
    tagset : {"universal12", "ud17"}
    column : str
    keep_untagged : bool
        Words without a tag (``_``) stay so; otherwise they are an error.

    Raises
    ------
    TreebankError
        A tag has no name there; the message has the file and the line.

    Examples
    --------
    >>> trees = Treebank.of([[("She", "PRON"), ("sleeps", "VERB"), (".", "PUNCT")]])
    >>> retagged(trees, "universal12").strings("upos", 0)
    ('PRON', 'VERB', '.')
    """
    translate = translator(tagset)
    ids, vocabulary = treebank.columns[column]
    numbers: dict[str, int] = {}
    place = np.zeros(len(vocabulary), np.int32)
    for number in np.unique(ids).tolist():
        tag = vocabulary[number]
        try:
            new = tag if keep_untagged and tag == "_" else translate(tag)
            place[number] = numbers.setdefault(new, len(numbers))
        except DataError as problem:
            word = int(np.argmax(ids == number))
            sentence, at = treebank.place_of(word)
            form = treebank.words(sentence)[at]
            where = f"{treebank.name}, line {treebank.line_of(word)}, word {form!r}"
            raise TreebankError(f"{where}: {problem}") from None
    changed: dict[str, Any] = {column: Column(place[ids], Vocabulary(numbers))}
    return treebank.with_columns(**changed)


def _foreign(tag: str, name: str) -> DataError:
    if tag == "CONJ":
        return DataError("tag 'CONJ' may be CCONJ or SCONJ in ud17. Compare in universal12 (--tagset universal12)")
    if tag == "_":
        return DataError(f"there is no tag ('_') to find in {name}. Tag the words first")
    return DataError(
        f"tag {tag!r} is in neither universal12 nor ud17. Those of {name} are {' '.join(TAGSETS[name].tags)}"
    )


def possible_tags(tag: str, name: str) -> tuple[str, ...]:
    """All tags of a set that a tag of either set may stand for: NOUN of the twelve is NOUN or PROPN in UD.

    Used for entries of dictionaries, which say what is possible.
    """
    if name == "universal12":
        return (to_universal12(tag),)
    return _TO_17[tag] if tag in _TO_17 else (to_ud17(tag),)


# Labels of dictionaries ----------------------------------------------------------------------------------------------

_VERB = ("VERB", "AUX")  # dictionaries call auxiliaries verbs
_NAME = ("NOUN", "PROPN")
_CONJUNCTION = ("CCONJ", "SCONJ")
_DROPPED: tuple[str, ...] = ()

# Read as: heading of an entry, in small letters and without brackets -> UD tags that the entry may have.
_HEADINGS: dict[tuple[str, ...], str] = {
    ("NOUN",): "noun, "
    "n, common noun, noun form, plural noun, noun plural, mass noun, verbal noun, counter, classifier, "
    "measure word, noun phrase, substantive, collective noun, abstract noun",
    ("PROPN",): "proper noun, name, proper name, propernoun, proper noun form, given name, surname, family name, "
    "toponym, place name, first name",
    _NAME: "acronym, abbreviation, abbreviations, abbrev, acronym or abbreviation",
    _VERB: "verb, v, verb form, verbform, verb phrase, phrasal verb, transitive verb, intransitive verb, "
    "reflexive verb, copula, auxiliary verb, modal verb, conjugated verb, infinitive, gerund, supine, participle, "
    "participle form, past participle, present participle, converb",
    ("AUX",): "auxiliary, aux, modal",
    ("ADJ",): "adjective, adj, adjective form, adjectival, adjectival noun, comparative, superlative, "
    "possessive adjective, predicative, adj noun, adj phrase, adjective phrase, comparative adjective, "
    "superlative adjective",
    ("ADV",): "adverb, "
    "adv, adverb form, adverbial, adv phrase, adverbial phrase, pronominal adverb, comparative adverb, "
    "interrogative adverb, superlative adverb",
    ("PRON",): "pronoun, "
    "pron, pronoun form, personal pronoun, possessive pronoun, relative pronoun, reflexive pronoun, "
    "interrogative pronoun, demonstrative pronoun, indefinite pronoun",
    ("DET",): "determiner, det, article, art, definite article, indefinite article, demonstrative determiner, "
    "possessive determiner, quantifier, demonstrative adjective, determiner form",
    ("ADP",): "adposition, adp, preposition, prep, postposition, postp, circumposition, circumpos, ambiposition",
    ("NUM",): "numeral, num, number, cardinal number, cardinal numeral, ordinal number, ordinal numeral, cardinal, "
    "ordinal, numeral form, cardinal num, fraction",
    _CONJUNCTION: "conjunction, conj",
    ("CCONJ",): "coordinating conjunction, cconj",
    ("SCONJ",): "subordinating conjunction, sconj, subordinator, complementizer, complementiser",
    ("PART",): "particle, prt, part, verb particle, interrogative particle, negative particle, modal particle, "
    "possessive particle, infinitive marker",
    ("PUNCT",): "punctuation mark, punctuation, punct, punctuation marks",
    ("INTJ",): "interjection, intj, interj, exclamation, ideophone, onomatopoeia",
    ("SYM",): "symbol, sym, symbols, mathematical symbol, currency symbol",
    ("X",): "letter, character, phrase, foreign word, x, proverb, idiom, expression, letters",
    _DROPPED: "initialism, prefix, suffix, affix, infix, interfix, circumfix, contraction, contr, romanization, "
    "romanisation, combining form, clitic, root, stem, syllable, prep phrase, prepositional phrase, diacritical mark, "
    "ligature, han character, hanzi, hanja, kanji, hiragana, katakana, pinyin, romaji, jyutping, soft redirect, "
    "hard redirect, misspelling, typographic variant, etymology, pronunciation, preverb, prenoun",
}

WIKTIONARY: Mapping[str, tuple[str, ...]] = {
    label: tags for tags, labels in _HEADINGS.items() for label in labels.split(", ")
}
"""Part-of-speech headings of Wiktionary and of its extracts -> UD tags that such an entry may have.

Headings with () are those of parts of words, of scripts, and of strings that are several words (contractions): entries
that say nothing about a word's tag. Participles are verbs, after Li et al. 2012.
"""

UNIMORPH: Mapping[str, tuple[str, ...]] = {
    "N": ("NOUN",), "PROPN": ("PROPN",), "ADJ": ("ADJ",), "PRO": ("PRON",), "CLF": ("NOUN",), "ART": ("DET",),
    "DET": ("DET",), "V": _VERB, "V.PTCP": ("VERB", "ADJ"), "V.CVB": ("VERB", "ADV"), "V.MSDR": ("VERB", "NOUN"),
    "ADV": ("ADV",), "AUX": ("AUX",), "ADP": ("ADP",), "COMP": ("SCONJ",), "CONJ": _CONJUNCTION, "NUM": ("NUM",),
    "PART": ("PART",), "INTJ": ("INTJ",), "PRON": ("PRON",), "PREP": ("ADP",), "POST": ("ADP",),
}  # fmt: skip
"""Parts of speech of UniMorph -> UD tags. Participles (V.PTCP), converbs (V.CVB) and masdars (V.MSDR) are verbs that do
the work of adjectives, adverbs and nouns, and treebanks differ in which of the two they tag."""


def normal_label(label: str) -> str:
    """A heading as `WIKTIONARY` has it: small letters, no braces or numbers, one space between words.

    Examples
    --------
    >>> normal_label("{{Proper_noun|de}}"), normal_label("Verb 2"), normal_label("Verb form")
    ('proper noun', 'verb', 'verb form')
    """
    bare = label.strip().strip("{}=").partition("|")[0].replace("_", " ").replace("-", " ")
    return " ".join(word for word in bare.lower().split() if not word.isdigit())
