"""Treebanks as parsers of several languages see them: universal tags and relations, with words or without."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import TreebankError

__all__ = ["possessives_as_determiners", "universal", "without_words"]


def universal(treebank: Treebank) -> Treebank:
    """Only what languages have in common: words, UPOS, heads, and relations without their subtypes.

    Examples
    --------
    >>> trees = Treebank.of([[("it", "PRON", 2, "expl:impers"), ("rains", "VERB", 0, "root")]])
    >>> universal(trees).strings("deprel", 0)
    ('expl', 'root')
    """
    ids, vocabulary = treebank.columns["upos"]
    if len(ids) and (np.asarray([tag == "_" for tag in vocabulary])[ids]).all():
        raise TreebankError(
            f"{treebank.name}: no word has a tag in column upos, and tags are all that languages have in common here. "
            "Tag it first (isogloss tag apply)"
        )
    relations, names = treebank.columns["deprel"]
    short: dict[str, int] = {}
    place = np.array([short.setdefault(name.partition(":")[0], len(short)) for name in names], np.int32)
    nothing = Column(np.zeros(treebank.n_words, np.int32), Vocabulary(["_"]))
    deprel = Column(place[relations], Vocabulary(short)) if len(names) else nothing
    return treebank.with_columns(lemma=nothing, xpos=nothing, feats=nothing, deprel=deprel)


def without_words(treebank: Treebank) -> Treebank:
    """The same with ``_`` in place of every word, for a parser that looks at tags alone."""
    return treebank.with_columns(form=Column(np.zeros(treebank.n_words, np.int32), Vocabulary(["_"])))


def possessives_as_determiners(treebank: Treebank) -> Treebank:
    """Pronouns that are ``nmod:poss`` of a word behind them become determiners, in tag and relation.

    English treebanks tag *my* and *their* as pronouns. Most others tag such words, which agree with their noun, as
    determiners (German *mein*, Spanish *mi*, French *mon*, Czech *můj*), and that is what is wanted of a translation.

    Examples
    --------
    >>> trees = Treebank.of([[("my", "PRON", 2, "nmod:poss"), ("house", "NOUN", 0, "root")]])
    >>> found = possessives_as_determiners(trees)
    >>> found.strings("upos", 0), found.strings("deprel", 0)
    (('DET', 'NOUN'), ('det', 'root'))
    """
    (tags, tag_names), (relations, names) = treebank.columns["upos"], treebank.columns["deprel"]
    place = np.arange(treebank.n_words) - np.repeat(treebank.offsets[:-1], treebank.lengths) + 1
    found = (tags == tag_names.index_of("PRON")) & (relations == names.index_of("nmod:poss")) & (treebank.heads > place)
    if not found.any():
        return treebank
    return treebank.with_columns(
        upos=_replaced(treebank.columns["upos"], found, "DET"),
        deprel=_replaced(treebank.columns["deprel"], found, "det"),
    )


def _replaced(column: Column, words: NDArray[np.bool_], name: str) -> Column:
    names = Vocabulary(dict.fromkeys([*column.vocabulary, name]))
    return Column(np.where(words, names.index_of(name), column.ids).astype(np.int32), names)
