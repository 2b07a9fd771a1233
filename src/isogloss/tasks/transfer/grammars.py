r"""Grammars of the target language, learnt from what a translation tells of its trees.

A dependency model with valence over tags (`GrammarInducer`) in place of a parser with features. Four ways to learn it,
of which all but the first look at projected links alone:

``quasi``
    a quasi-synchronous grammar beside the most probable source trees, by conditional EM,
    :math:`\max \sum \log \sum_{T, A} p(T, W, A \mid T', W')`, where *A* gives each target word one of the source words
    that it is linked to, or none if it has no link [1]_; chances of configurations stay as they are;
``partial``
    links that arrive through one-to-one word links are known heads, and EM finds the rest;
``hard``
    only sentences all of whose words have such a head are counted;
``posterior``
    EM in which a share of projected links is kept in expectation, :math:`E_q[\text{kept}] \ge \eta` [2]_.

The translation is not needed any more when text is parsed.

References
----------
.. [1] D. A. Smith, Efficient inference for trees and alignments, PhD thesis, Johns Hopkins 2010, section 4.6; the
   baselines, too.
.. [2] Ganchev, Gillenwater and Taskar, Dependency Grammar Induction via Bitext Projection Constraints, ACL 2009: the
   generative model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.links import Links
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.structures.batch import Stack
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.induction import GrammarInducer
from isogloss.tasks.parse.induction.material import marks_of
from isogloss.tasks.transfer.edges import ProjectedEdges
from isogloss.tasks.transfer.likely import confidences

__all__ = ["LINKED", "LONGEST", "LabelledGrammar", "known_trees", "linked_shares", "new_grammar", "with_relations"]

LONGEST = 20
"""Words of sentences that grammars are learnt from, at most: a step of EM is cubic in them, and quadratic in how many
source words a word is linked to. Other limits were not tried."""
STEPS = {"quasi": 30, "partial": 30, "posterior": 30, "hard": 1}
"""Steps of EM, at most. Whole trees are counted once."""
START = {"quasi": "uniform", "partial": "uniform", "posterior": "harmonic", "hard": "uniform"}
"""What EM begins with: configurations or known heads alone (Smith 2010), or nearness as well."""
TOLERANCE = 1e-4


LINKED = 0.9
"""Words of a sentence, without punctuation marks, that have to be linked for a quasi-synchronous grammar, of all;
chosen on development files, as was that configurations are neither learnt nor renormalised."""


def new_grammar(method: str, longest: int, threads: int | None) -> GrammarInducer:
    """A grammar to learn by some method."""
    return GrammarInducer(
        learner="em", start=START[method], iterations=STEPS[method], tolerance=TOLERANCE, longest=longest,
        threads=threads,
    )  # fmt: skip


def known_trees(edges: ProjectedEdges, text: Treebank) -> tuple[Treebank, NDArray[np.float64]]:
    """The text with projected heads, and for each sentence the share of words, without punctuation marks, that have
    one among them; 0 for sentences of marks alone.

    Examples
    --------
    >>> text = Treebank.of([[("she", "PRON"), ("sleeps", "VERB"), (".", "PUNCT")]])
    >>> trees, shares = known_trees(ProjectedEdges.of([0, 3], [0, 1], [2, 0]), text)
    >>> trees.heads.tolist(), shares.tolist()
    ([2, 0, -1], [1.0])
    """
    heads, marks = edges.heads(), marks_of(text)
    first = np.repeat(text.offsets[:-1], text.lengths)
    heads[(heads > 0) & marks[first + np.maximum(heads, 1) - 1]] = -1
    return text.with_columns(heads=heads), _shares(heads >= 0, text)


def linked_shares(links: Links, text: Treebank) -> NDArray[np.float64]:
    """float64[n_sentences]: the share of words, without punctuation marks, that are linked.

    Examples
    --------
    >>> text = Treebank.of([[("she", "PRON"), ("sleeps", "VERB"), (".", "PUNCT")]])
    >>> linked_shares(Links.of([[(0, 0), (1, 0), (2, 2)]]), text).tolist()
    [0.5]
    """
    linked = np.zeros(text.n_words, np.bool_)
    linked[text.offsets[links.pair] + links.target] = True
    return _shares(linked, text)


def _shares(found: NDArray[np.bool_], text: Treebank) -> NDArray[np.float64]:
    """Of the words of each sentence, without marks, those that are found; 0 for sentences of marks alone."""
    words, sentence = ~marks_of(text), np.repeat(np.arange(len(text)), text.lengths)
    counts = [np.bincount(sentence[mask], minlength=len(text)) for mask in (words & found, words)]
    return np.asarray(counts[0] / np.maximum(counts[1], 1))


@dataclass(frozen=True, eq=False)
class LabelledGrammar:
    """Trees of a grammar, with the relations that a parser of tags alone gives to their links.

    Parameters
    ----------
    grammar : GrammarInducer
    labeller : DependencyParser
        Without words.
    """

    grammar: GrammarInducer
    labeller: DependencyParser

    def predict(self, text: Treebank, *, confidence: bool = False) -> Treebank:
        """As `DependencyParser.predict`; confidence in links is the grammar's."""
        found = self.grammar.predict(text, confidence=confidence)
        labelled = with_relations(self.labeller, text, found.heads, confidence=confidence)
        if not confidence:
            return labelled
        return labelled.with_misc("Confidence", [f"{p:.4f}" for p in confidences(found).tolist()])

    def predict_proba(self, text: Treebank) -> Stack:
        """As `GrammarInducer.predict_proba`."""
        return self.grammar.predict_proba(text)

    def complete(self, text: Treebank, *, confidence: bool = False) -> Treebank:
        """As `DependencyParser.complete`, for trees that are whole."""
        return self.labeller.complete(text, confidence=confidence)

    @property
    def threads(self) -> int | None:
        """Of both."""
        return self.grammar.threads

    def use_threads(self, threads: int | None) -> None:
        """Let both use so many."""
        self.grammar.threads = self.labeller.threads = threads


def with_relations(parser: Any, text: Treebank, heads: NDArray[np.int32], *, confidence: bool = False) -> Treebank:
    """Whole trees that a parser has not found itself, with the relations that it gives to their links."""
    nothing = Column(np.zeros(text.n_words, np.int32), Vocabulary(["_"]))
    found: Treebank = parser.complete(text.with_columns(heads=heads, deprel=nothing), confidence=confidence)
    return found
