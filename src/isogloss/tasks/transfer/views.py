"""Treebanks as parsers of several languages see them: universal tags and relations, with words or without."""

from __future__ import annotations

import numpy as np

from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import TreebankError

__all__ = ["universal", "without_words"]


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
