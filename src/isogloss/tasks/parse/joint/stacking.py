r"""A full parser beside the joint model: what it believes of links, and the relations that it finds.

`DependencyParser` looks at links together with their neighbours and has many more features of links, but takes tags as
they come. Both models vote on each link, as in a logarithmic opinion pool:

.. math:: p(t, y \mid w) \propto p_{joint}(t, y \mid w) \prod_{h \to c \in y} q(h \to c \mid w)^{\lambda}

where q are the posteriors of the full parser. They are scores of links that the joint model is given, and messages take
them on to tags. The tree is the one with the most right links in expectation, by the mean of both models' posteriors:
either is sure of errors that the other does not make.

References
----------
Smith, Cohn and Osborne, Logarithmic opinion pools for conditional random fields, ACL 2005; Martins, Das, Smith and
Xing, Stacking dependency parsers, EMNLP 2008 (where the first parser is a feature of the second); Sagae and Lavie,
Parser combination by reparsing, NAACL 2006 (where trees are the best by votes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Column, Treebank
from isogloss.errors import TreebankError
from isogloss.progress import Progress
from isogloss.structures.batch import Stack
from isogloss.tasks.parse.joint.schema import Schema

if TYPE_CHECKING:
    from isogloss.tasks.parse.parser import DependencyParser

__all__ = ["OTHER_SHARE", "as_tagged", "fit_parser", "link_scores", "relations"]

LEAST_BELIEF = 1e-5
OTHER_SHARE = 0.5
"""Of the full parser in the posteriors of links."""


def as_tagged(treebank: Treebank, schema: Schema, values: NDArray[np.int64]) -> Treebank:
    """The sentences with these tags and features, and without the lemmas and tags that new text will not have."""
    upos, feats = schema.columns(values)
    nothing = ["_"] * treebank.n_words
    return treebank.with_columns(upos=upos, feats=feats, lemma=nothing, xpos=nothing)


def fit_parser(tagged: Treebank, progress: Progress, **options: Any) -> DependencyParser:
    """A parser of order 2 that learns from tags of a tagger that has not seen their sentences."""
    from isogloss.tasks.parse.parser import DependencyParser

    ids, vocabulary = tagged.columns["upos"]
    if (ids == vocabulary.index_of("_")).all():
        raise TreebankError(
            f"{tagged.name}: no word has a part of speech, which the parser of stack_links looks at. Add them, or "
            "leave stack_links at 0"
        )
    parser = DependencyParser(**options).fit(tagged, None, progress)
    parser.reading_ = None  # the model around it looks after that
    return parser


def link_scores(beliefs: Stack, weight: float) -> Stack:
    """float64[n + 1, n + 1] for each sentence: scores that links have beforehand, of what the full parser believes."""
    return Stack(weight * np.log(np.maximum(beliefs.values, LEAST_BELIEF)), beliefs.offsets, beliefs.shapes)


def relations(parser: DependencyParser, tagged: Treebank, heads: NDArray[np.int32]) -> Column | None:
    """The relation of each word to its head; None where the treebank had none to learn from."""
    learnt = parser._learnt
    if learnt.labeller is None:
        return None
    return learnt.labeller.predict(learnt.encode(tagged), heads, tagged.offsets)[0]
