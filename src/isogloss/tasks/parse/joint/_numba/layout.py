"""What kernels of the joint model are given: one sentence, the shape of the model, and what the messages say."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Graph", "Sentence", "Shape"]


class Sentence(NamedTuple):
    """One sentence of n words. Node 0 is the root, nodes 1 … n the words; a variable is node * n_attributes + a."""

    words: Any
    """uint64[n + 1]: codes of forms."""
    prefixes: Any
    """uint64[n + 1]: codes of their first five letters."""
    context: Any
    """int64[n + 3]: the fixed part of speech of node i at i + 1, with one place before and one after."""
    feature_starts: Any
    """int64[n + 2]: where the features of each node start in `features`."""
    features: Any
    """int64[n_features]: what TAG-UNIGRAM looks at, numbered; node 0 has none."""
    starts: Any
    """int64[n_variables + 1]: where the values that a variable may have start in `values`."""
    values: Any
    """int64[n_values]: values allowed, as numbers within their attribute; the root's part of speech is `sizes[0]`."""
    prior: Any
    """float64[n_values]: a score that each value has beforehand."""
    gold: Any
    """int64[n_variables]: which of the allowed values is right."""
    heads: Any
    """int64[n + 1]: the right head of each word."""
    links: Any
    """float64[n + 1, n + 1]: a score that each link has beforehand; float64[0, 0] for none."""


class Shape(NamedTuple):
    """Where the weights of each kind of factor are in the one vector of all."""

    sizes: Any
    """int64[n_attributes]: number of values; those of attribute 0 are parts of speech, value 0 of others is null."""
    value_starts: Any
    """int64[n_attributes + 1]: value v of attribute a is ``value_starts[a] + v`` among all values."""
    bigrams: Any
    """int64[n_attributes]: where [sizes + 1, sizes + 1] weights of neighbours start; the last value is the edge."""
    consistency: Any
    """int64[n_attributes]: where [sizes[0], sizes[a]] weights of a part of speech and a value start."""
    link_start: int
    """Where weights of links start; feature k of them is at ``link_start + k``."""
    government: bool
    """Whether MORPH-LINK also fires where the head has no value of the child's attribute."""
    table: Any
    """uint32[2 · size]: the features of links with their numbers; see `isogloss.features.table.KeyTable`."""
    templates: Any
    """`isogloss.tasks.parse.joint.features.LinkTemplates`"""


class Graph(NamedTuple):
    """The factors of a sentence, and messages. Logarithms throughout, up to a constant for each message."""

    totals: Any
    """float64[n_values]: unary scores and all messages to a value."""
    from_chain: Any
    """float64[n_values]: what TAG-BIGRAM says."""
    to_attribute: Any
    """float64[n_values]: what TAG-CONSISTENCY says to other attributes."""
    to_pos: Any
    """float64[n_nodes * n_attributes, n_pos]: what it says to the part of speech."""
    link_totals: Any
    """float64[n + 1, n + 1]: log-odds of links: static scores and all messages."""
    from_tree: Any
    """float64[n + 1, n + 1]"""
    head: Any
    """int64[n_factors]: the nodes of each ternary factor that is not constant."""
    child: Any
    attribute: Any
    cells: Any
    """int64[n_factors + 1]: where its table starts in `tables`."""
    rooms: Any
    """int64[n_factors + 1]: where its messages start: first to the values of the head, then to those of the child."""
    tables: Any
    """float64[n_cells]: exp(score - top), for each pair of values."""
    scores: Any
    """float64[n_cells]: scores."""
    tops: Any
    """float64[n_factors]: the largest score of each table."""
    to_link: Any
    """float64[n_factors]: log-odds that the factor gives its link."""
    to_tags: Any
    """float64[n_rooms]"""
    given: Any
    """float64[n_rooms]: what the tags told the factor last, as probabilities."""
    fired: Any
    """uint32[n]: features of links that fire, numbered from `link_start` on: of each link those of WORD-LINK, then
    those of each cell that has any."""
    fired_ends: Any
    """int64[n_lists + 1]: where the list of each link or cell ends, after a 0."""
    fired_first: Any
    """int64[n + 1, n + 1]: the number of the first list of each link."""
