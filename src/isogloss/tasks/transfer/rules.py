"""Rules that edit projected edges, where two treebanks have different conventions.

A rule is a function of the words of a sentence, their tags and the edges that arrived, which returns other edges. Rules
are applied one after the other, and what is learnt from edges does not know of them:

>>> def articles_hang_on_the_next_word(words, tags, edges):
...     return rehung(edges, {(child + 1, child) for child, tag in enumerate(tags[:-1], 1) if tag == "DET"})
>>> trees = Treebank.of([[("das", "DET"), ("Haus", "NOUN")]])
>>> edges = ProjectedEdges.of(trees.offsets, [0, 1], [0, 1])
>>> with_rules(edges, trees, [articles_hang_on_the_next_word]).head.tolist()
[2, 1]

`SPANISH` and `BULGARIAN` are those of the reference, as examples. They were made for the CoNLL-X treebanks of these
languages and for English trees of the Penn Treebank, in which prepositions and auxiliaries have children; of trees of
Universal Dependencies, in which all languages agree, they would make something else.

References
----------
Ganchev, Gillenwater and Taskar, ACL 2009, section 5.3 and appendix. Triggers are given there in words, and the list of
twelve auxiliaries of Bulgarian not at all: here tags say what an auxiliary is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError
from isogloss.tasks.transfer.edges import ProjectedEdges

__all__ = ["BULGARIAN", "SPANISH", "Edges", "Rule", "adopted", "particle", "rehung", "with_rules"]

Edges = frozenset[tuple[int, int]]
"""Pairs (head, child), both from 1; a head of 0 is the root."""
Rule = Callable[[Sequence[str], Sequence[str], Edges], Iterable[tuple[int, int]]]

NOUNS = ("NOUN", "PROPN")
_PHRASE = ("DET", "ADJ", "NUM", *NOUNS)


def with_rules(
    edges: ProjectedEdges, target: Treebank, rules: Sequence[Rule], *, column: str = "upos"
) -> ProjectedEdges:
    """Apply rules to the edges of every sentence, in order.

    Edges that stay keep their probabilities and relations. Those that a rule makes have probability 1 and no relation.

    Parameters
    ----------
    edges : ProjectedEdges
    target : Treebank
        The words and their tags; it may lack sentences without words.
    rules : sequence of Rule
    column : str
        Which tags rules see.
    """
    filled = np.flatnonzero(edges.lengths)
    rows = filled if len(target) != len(edges) else np.arange(len(edges))
    if not np.array_equal(target.lengths, edges.lengths[rows]):
        raise ParameterError(
            f"with_rules: {target.name} has {target.n_words:,} words in {len(target):,} sentences, and the edges are "
            f"of {edges.n_words:,} in {len(edges):,}; give the sentences that they were projected to"
        )
    word: list[int] = []
    head: list[int] = []
    old: list[int] = []
    for number, s in enumerate(rows.tolist()):
        first, begin = int(edges.offsets[s]), int(edges.starts[s])
        here = slice(begin, int(edges.starts[s + 1]))
        given = list(zip(edges.head[here].tolist(), edges.child[here].tolist(), strict=True))
        made: Edges = frozenset(given)
        for rule in rules:
            made = frozenset(rule(target.words(number), target.strings(column, number), made))
        places = {edge: begin + k for k, edge in enumerate(given)}
        n = int(edges.lengths[s])
        wrong = sorted((above, child) for above, child in made if not (0 <= above <= n and 1 <= child <= n))
        if wrong:
            raise ParameterError(f"with_rules: a rule made the edge {wrong[0]} in a sentence of {n} words")
        for above, child in sorted(made, key=lambda edge: (edge[1], edge[0])):
            word.append(first + child - 1)
            head.append(above)
            old.append(places.get((above, child), -1))
    was = np.array(old, np.int64)
    known, at = was >= 0, np.maximum(was, 0)
    if not len(edges.word):
        return ProjectedEdges.of(edges.offsets, word, head, names=edges.names)
    return ProjectedEdges.of(
        edges.offsets, word, head, np.where(known, edges.probability[at], 1.0),
        np.where(known, edges.relation[at], -1), np.where(known, edges.origin[at], 0), edges.names,
    )  # fmt: skip


# --- what rules are made of


def rehung(edges: Iterable[tuple[int, int]], links: Iterable[tuple[int, int]]) -> Edges:
    """The edges with `links` in place of all others that lead to the same children."""
    fresh = frozenset(links)
    children = {child for _, child in fresh}
    return frozenset(edge for edge in edges if edge[1] not in children) | fresh


def adopted(
    edges: Iterable[tuple[int, int]], old: int, new: int, only: Callable[[int], bool] = lambda child: True
) -> Edges:
    """The edges in which children of word `old` hang on `new`, those for which `only` is true.

    Examples
    --------
    >>> sorted(adopted({(1, 2), (1, 3), (0, 1)}, 1, 3))                        # 3 does not become its own child
    [(0, 1), (1, 3), (3, 2)]
    """
    return frozenset(
        (new, child) if head == old and child != new and only(child) else (head, child) for head, child in edges
    )


def _next(tags: Sequence[str], start: int, wanted: Iterable[str]) -> int | None:
    """The first word after `start` that has one of these tags, before any punctuation."""
    for place in range(start + 1, len(tags) + 1):
        if tags[place - 1] in wanted:
            return place
        if tags[place - 1] == "PUNCT":
            return None
    return None


# --- Spanish


def main_verbs(words: Sequence[str], tags: Sequence[str], edges: Edges) -> Edges:
    """S1: a main verb heads the auxiliary before it and adopts its children; the only main verb is the root.

    It also heads pronouns, adverbs and common nouns that stand directly before the auxiliary.
    """
    verbs = [place for place, tag in enumerate(tags, 1) if tag == "VERB"]
    for place, tag in enumerate(tags, 1):
        verb = _next(tags, place, ("VERB",)) if tag == "AUX" else None
        if verb is None:
            continue
        edges = rehung(adopted(edges, place, verb), {(verb, place)})
        if place > 1 and tags[place - 2] in ("PRON", "ADV", "NOUN"):
            edges = rehung(edges, {(verb, place - 1)})
    if len(verbs) == 1:
        edges = rehung((edge for edge in edges if edge[0] > 0), {(0, verbs[0])})
    return _without_loops(edges)


def adjectives(words: Sequence[str], tags: Sequence[str], edges: Edges) -> Edges:
    """S2: of an adjective and a noun that stand side by side, the first heads the second and adopts its children."""
    for place in range(1, len(tags)):
        pair = (tags[place - 1], tags[place])
        if pair in (("ADJ", "NOUN"), ("NOUN", "ADJ")):
            above = sorted(head for head, child in edges if child == place + 1 and head != place)
            edges = adopted(edges, place + 1, place) - {(place + 1, place)}
            edges = rehung(edges, {(place, place + 1)})
            if above and not any(child == place for _, child in edges):  # what headed the second heads the first
                edges |= {(above[0], place)}
    return _without_loops(edges)


def prepositions(words: Sequence[str], tags: Sequence[str], edges: Edges) -> Edges:
    """S3: prepositions hang on the first main verb, but "de" between noun phrases on the nearest noun before it."""
    verb = next((place for place, tag in enumerate(tags, 1) if tag == "VERB"), None)
    for place, tag in enumerate(tags, 1):
        if tag != "ADP":
            continue
        noun = _noun_before(words, tags, place)
        if noun is not None:
            edges = rehung(edges, {(noun, place)})
        elif verb is not None:
            edges = rehung(edges, {(verb, place)})
    return _without_loops(edges)


def _noun_before(words: Sequence[str], tags: Sequence[str], place: int) -> int | None:
    """The noun that a "de" between two noun phrases belongs to."""
    if words[place - 1].lower() not in ("de", "del") or place in (1, len(tags)) or tags[place] not in _PHRASE:
        return None
    for before in range(place - 1, 0, -1):
        if tags[before - 1] in NOUNS:
            return before
        if tags[before - 1] not in _PHRASE:
            return None
    return None


# --- Bulgarian


def particle(word: str) -> Rule:
    """B1 and B3 to B7: a word heads all words up to the next verb, and adopts their nouns, prepositions, particles and
    adverbs."""
    kinds = (*NOUNS, "ADP", "PART", "ADV")

    def rule(words: Sequence[str], tags: Sequence[str], edges: Edges) -> Edges:
        for place, form in enumerate(words, 1):
            verb = _next(tags, place, ("VERB",)) if form.lower() == word else None
            if verb is None:
                continue
            for below in range(place + 1, verb + 1):
                edges = adopted(edges, below, place, lambda child: tags[child - 1] in kinds)
            own = sorted(head for head, child in edges if child == verb and not place <= head <= verb)
            edges = rehung(edges, {(place, below) for below in range(place + 1, verb + 1)})
            if own:  # it takes the place of the verb
                edges = rehung(edges, {(own[0], place)})
        return _without_loops(edges)

    return rule


def auxiliaries(words: Sequence[str], tags: Sequence[str], edges: Edges) -> Edges:
    """B2: auxiliaries head main verbs, and adopt their children."""
    for place, tag in enumerate(tags, 1):
        verb = _next(tags, place, ("VERB",)) if tag == "AUX" else None
        if verb is not None:
            above = sorted(head for head, child in edges if child == verb and head != place)
            edges = rehung(adopted(edges, verb, place), {(place, verb)})
            if above:
                edges = rehung(edges, {(above[0], place)})
    return _without_loops(edges)


def _without_loops(edges: Iterable[tuple[int, int]]) -> Edges:
    return frozenset((head, child) for head, child in edges if head != child)


SPANISH: tuple[Rule, ...] = (main_verbs, adjectives, prepositions)
"""S1 to S3."""
BULGARIAN: tuple[Rule, ...] = (particle("да"), auxiliaries, *map(particle, ("ще", "ли", "какво", "не", "за")))
"""B1 to B7."""
