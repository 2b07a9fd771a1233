"""Annotation styles: who heads a coordination, and whether function words are heads or children.

A treebank of Universal Dependencies becomes one of another style, and comes back: pairs of styles for one text, of
which `isogloss.tasks.parse.restyling` learns the way from one to the other.

References
----------
Smith, PhD thesis, Johns Hopkins 2010, section 4.4 and figure 4.1. Popel, Mareček, Štěpánek, Zeman and Žabokrtský,
Coordination structures in dependency treebanks, ACL 2013. Gerdes, Guillaume, Kahane and Perrier, SUD or
surface-syntactic Universal Dependencies, UDW 2018.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from isogloss.data.formats import as_gold
from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError, TreebankError

__all__ = ["COORDINATIONS", "Style", "convert"]

COORDINATIONS = ("ud", "prague", "chain")
SIDES = ("child", "head")
LEVELS = {"case": 0, "cop": 1, "aux": 2, "mark": 3}
"""Relations of function words, from those that become heads nearest to the content word to the outermost."""
BOUND = frozenset({"fixed", "flat", "goeswith", "reparandum"})
"""Relations of words that never leave the word they belong to."""
COMPLEMENT = "comp:"
COORDINATOR = "coord:"
MEMBER = ":co"


class Style(NamedTuple):
    """How trees are annotated; the defaults are those of Universal Dependencies.

    Parameters
    ----------
    coordination : "ud", "prague" or "chain"
        The first conjunct heads the others (Stanford); the last conjunction, or else the last mark between conjuncts,
        heads conjuncts and other conjunctions (Prague); or each conjunct heads the next (Mel'čuk).
    prepositions, copulas, auxiliaries, subordinators : "child" or "head"
        Whether words with the relations ``case``, ``cop``, ``aux`` and ``mark`` are children of the content word, or
        its heads.
    """

    coordination: str = "ud"
    prepositions: str = "child"
    copulas: str = "child"
    auxiliaries: str = "child"
    subordinators: str = "child"

    @property
    def raised(self) -> frozenset[str]:
        """The relations of the words that are heads."""
        return frozenset(name for name, side in zip(LEVELS, self[1:], strict=True) if side == "head")

    def check(self) -> None:
        """`ParameterError` for a style that there is not."""
        for name, value in self._asdict().items():
            known = COORDINATIONS if name == "coordination" else SIDES
            if value not in known:
                raise ParameterError(f"convert: {name} should be one of {', '.join(known)}, not {value!r}")


class Tree(NamedTuple):
    """One sentence; entry 0 of each list is the root's, and stands for nothing.

    Parameters
    ----------
    heads : list of int
    relations : list of str
    """

    heads: list[int]
    relations: list[str]


Change = Callable[[Tree], Tree]


def convert(
    treebank: Treebank,
    coordination: str = "ud",
    prepositions: str = "child",
    copulas: str = "child",
    auxiliaries: str = "child",
    subordinators: str = "child",
    *,
    given: Style = Style(),  # noqa: B008
) -> Treebank:
    """The same sentences with trees of another style; see `Style` for what there is.

    Heads and relations change, and nothing else; enhanced graphs (DEPS) stay as they are. The result is a tree whatever
    the tree was, and links that did not cross as a rule do not cross.

    Function words that become heads take the place and the relation of the content word, which hangs on them as
    ``comp:case``, ``comp:aux:pass`` and so on. Dependents that then lie beyond the function word hang on it, and so
    do conjuncts that have a function word of their own (*in Rome and in Paris*). In Prague style the head of a
    coordination is ``coord:cc`` or ``coord:punct``, and its conjuncts have the relation of the whole and ``:co``;
    dependents of the first conjunct that follow the second hang on the head, as shared ones do. Coordinations without
    a conjunction or a mark between conjuncts stay as they are.

    Parameters
    ----------
    treebank : Treebank
        With the head of every word.
    coordination, prepositions, copulas, auxiliaries, subordinators : str
        The style that is wanted.
    given : Style
        The style that the treebank has.

    Notes
    -----
    To a style and back is the identity, but for: conjuncts with conjuncts of their own in chain style (Prague keeps
    them); subtypes of ``conj`` in Prague style; function words, conjunctions and marks with dependents of their own
    outside of the phrase, other than ``fixed``, ``flat``, ``goeswith`` and ``reparandum``; and what crosses there.

    Examples
    --------
    >>> words = [("in", "ADP", 2, "case"), ("Rome", "PROPN", 0, "root"), ("and", "CCONJ", 4, "cc")]
    >>> trees = Treebank.of([[*words, ("Paris", "PROPN", 2, "conj")]])
    >>> made = convert(trees, "prague", "head")
    >>> made.heads.tolist(), made.strings("deprel", 0)
    ([0, 3, 1, 3], ('root', 'comp:case:co', 'coord:cc', 'comp:case:co'))
    >>> convert(made, given=Style("prague", "head")).heads.tolist()
    [2, 0, 4, 2]
    """
    wanted = Style(coordination, prepositions, copulas, auxiliaries, subordinators)
    wanted.check()
    given.check()
    treebank = _whole(as_gold(treebank))
    heads: list[int] = []
    relations: list[str] = []
    for s in range(len(treebank)):
        start, stop = treebank.offsets[s : s + 2].tolist()
        tree = Tree([0, *treebank.heads[start:stop].tolist()], ["", *treebank.strings("deprel", s)])
        if given != wanted:
            for change in _changes(given, wanted, ("", *treebank.words(s))):
                tree = change(tree)
        heads += tree.heads[1:]
        relations += tree.relations[1:]
    return treebank.with_columns(heads=np.array(heads, np.int32), deprel=relations)


def _whole(treebank: Treebank) -> Treebank:
    """Trees without cycles in which every word has a head; all else is refused by place."""
    treebank.check_trees()
    unknown = np.flatnonzero(treebank.heads < 0)
    if len(unknown):
        sentence, word = treebank.place_of(int(unknown[0]))
        raise TreebankError(
            f"{treebank.name}, {treebank.label_of(sentence)}: word {word + 1} has no head, and a style is that of a "
            "whole tree. Complete the trees first, or leave the sentence out"
        )
    return treebank


def _changes(given: Style, wanted: Style, forms: Sequence[str]) -> list[Change]:
    """What is done to a tree: to Universal Dependencies first, as far as is needed, and on from there."""
    changes: list[Change] = []
    again = given.raised != wanted.raised
    if again or given.coordination != wanted.coordination:
        changes += {"prague": [_from_prague], "chain": [_from_chain]}.get(given.coordination, [])
    if again and given.raised:
        changes.append(_lowered)
    if again and wanted.raised:
        changes.append(lambda tree: _raised(tree, wanted.raised))
    if again or given.coordination != wanted.coordination:
        make: dict[str, list[Change]] = {"prague": [lambda tree: _to_prague(tree, forms)], "chain": [_to_chain]}
        changes += make.get(wanted.coordination, [])
    return changes


def _base(relation: str) -> str:
    return relation.partition(":")[0]


def _children(heads: Sequence[int]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in heads]
    for word in range(1, len(heads)):
        found[heads[word]].append(word)
    return found


# --- function words -------------------------------------------------------------------------------------------------


def _raised(tree: Tree, kinds: frozenset[str]) -> Tree:
    """Function words of these kinds above their content words."""
    heads, relations = tree
    children = _children(heads)
    chains = [_chain(word, children, relations, kinds) for word in range(len(heads))]
    tops = [chain[-1] if chain else word for word, chain in enumerate(chains)]
    made = Tree(heads.copy(), relations.copy())
    above = heads.copy()  # the word that each phrase hangs on
    for word, chain in enumerate(chains):
        if chain:
            for child, place in _carried(word, chain, children[word], tops, chains, relations):
                above[child] = place
    for word in range(1, len(heads)):
        chain = chains[word]
        below = word
        for function in chain:
            made.heads[below], made.relations[below] = function, COMPLEMENT + relations[function]
            below = function
        if below != word or word not in chains[heads[word]]:
            made.heads[below], made.relations[below] = above[word], relations[word]
    return made


def _chain(word: int, children: list[list[int]], relations: Sequence[str], kinds: frozenset[str]) -> list[int]:
    """The function words of a content word, from the inside out; none for function words."""
    if not word or _base(relations[word]) in kinds:
        return []
    own = [child for child in children[word] if _base(relations[child]) in kinds]
    return sorted(own, key=lambda child: (LEVELS[_base(relations[child])], abs(child - word), child))


def _carried(
    word: int,
    chain: list[int],
    children: list[int],
    tops: list[int],
    chains: list[list[int]],
    relations: Sequence[str],
) -> list[tuple[int, int]]:
    """Dependents that hang on one of the function words of their head, and on which."""
    found: list[tuple[int, int]] = []
    free = [c for c in children if c not in chain and _base(relations[c]) not in BOUND]
    for right in (False, True):
        side = [c for c in free if (tops[c] > word) == right]
        reached = -1
        for child in sorted(side, key=lambda c: abs(tops[c] - word)):
            passed = (i for i, f in enumerate(chain) if min(tops[child], word) < f < max(tops[child], word))
            reached = max(reached, *passed, -1)
            if right and chains[child] and _base(relations[child]) == "conj":
                level = LEVELS[_base(relations[chains[child][-1]])]
                equal = (i for i, f in enumerate(chain) if f < word and LEVELS[_base(relations[f])] <= level)
                reached = max(reached, *equal, -1)
            if reached >= 0:
                found.append((child, chain[reached]))
    return found


def _lowered(tree: Tree) -> Tree:
    """The inverse of `_raised`."""
    heads, relations = tree
    below = [0] * len(heads)
    for word in range(len(heads) - 1, 0, -1):
        if relations[word].startswith(COMPLEMENT) and heads[word]:
            below[heads[word]] = word
    content = list(range(len(heads)))
    for word in range(1, len(heads)):
        while below[content[word]]:
            content[word] = below[content[word]]
    made = Tree(heads.copy(), relations.copy())
    for word in range(1, len(heads)):
        head = heads[word]
        if head and below[head] == word:
            made.heads[head], made.relations[head] = content[word], relations[word][len(COMPLEMENT) :]
    for word in range(1, len(heads)):
        head = heads[word]
        if head and below[head] == word:
            continue
        moved = head and below[head] and _base(relations[word]) not in BOUND and _outside(word, head, content[head])
        made.heads[content[word]] = content[head] if moved else head
        made.relations[content[word]] = relations[word]
    return made


def _outside(word: int, function: int, content: int) -> bool:
    """Whether a word does not lie between a function word and its content word."""
    return not min(function, content) < word < max(function, content)


# --- coordination ---------------------------------------------------------------------------------------------------


def _conjuncts(heads: Sequence[int], relations: Sequence[str]) -> dict[int, list[int]]:
    """The conjuncts that follow each first conjunct, in order."""
    found: dict[int, list[int]] = {}
    for word in range(1, len(heads)):
        if 0 < heads[word] < word and _base(relations[word]) == "conj":
            found.setdefault(heads[word], []).append(word)
    return found


def _to_chain(tree: Tree) -> Tree:
    heads = tree.heads.copy()
    for first, others in _conjuncts(*tree).items():
        for before, word in zip([first, *others], others, strict=False):
            heads[word] = before
    return Tree(heads, tree.relations)


def _from_chain(tree: Tree) -> Tree:
    heads = tree.heads.copy()
    for before, others in sorted(_conjuncts(*tree).items()):
        for word in others:  # the conjunct before has its own first conjunct by now
            follows = _base(tree.relations[before]) == "conj" and 0 < tree.heads[before] < before
            heads[word] = heads[before] if follows else before
    return Tree(heads, tree.relations)


class _Coordination(NamedTuple):
    """Conjuncts after the first, the word that heads all, and the other conjunctions and marks between them."""

    others: list[int]
    head: int
    between: list[int]


def _to_prague(tree: Tree, forms: Sequence[str]) -> Tree:
    heads, relations = tree
    found = _coordinations(tree, forms)
    if not found:
        return tree
    member_of = {word: first for first, own in found.items() for word in own.others}
    made = Tree(heads.copy(), relations.copy())
    tops = {first: own.head for first, own in found.items()}
    for word in range(1, len(heads)):  # dependents of first conjuncts that others share, or that lie beyond them
        own = found.get(heads[word])
        if own is None or word in member_of or _base(relations[word]) in BOUND:
            continue
        place = tops.get(word, word)
        inside = place < own.others[-1] and _base(relations[word]) in ("cc", "punct")
        if place > own.others[0] and not inside:
            made.heads[word] = own.head
    for first, own in found.items():
        whole = first
        while whole in member_of:
            whole = member_of[whole]
        inner = first in member_of
        made.heads[own.head] = found[member_of[first]].head if inner else made.heads[first]
        made.relations[own.head] = COORDINATOR + relations[own.head] + MEMBER * inner
        for word in [first, *(c for c in own.others if c not in found)]:
            made.heads[word], made.relations[word] = own.head, relations[whole] + MEMBER
        for word in own.between:
            made.heads[word] = own.head
    return made


def _coordinations(tree: Tree, forms: Sequence[str]) -> dict[int, _Coordination]:
    """Those that have a word to head them, by their first conjuncts."""
    heads, relations = tree
    found: dict[int, _Coordination] = {}
    conjuncts = _conjuncts(heads, relations)
    for first in sorted(conjuncts, reverse=True):  # those within others come first
        between = []
        for before, word in zip([first, *conjuncts[first]], conjuncts[first], strict=False):
            between += [d for d in range(before + 1, word) if heads[d] == word and d not in found]
        joins = [d for d in between if _base(relations[d]) == "cc"]
        marks = [d for d in between if _base(relations[d]) == "punct" and not _encloses(forms[d])]
        if joins or marks:
            chosen = (joins or marks)[-1]
            found[first] = _Coordination(
                conjuncts[first], chosen, [d for d in joins + marks if d != chosen]
            )  # fmt: skip
    return found


def _encloses(form: str) -> bool:
    """Whether a mark is a bracket or a quotation mark."""
    return form in ('"', "'", "``", "''") or unicodedata.category(form[0]) in ("Ps", "Pe", "Pi", "Pf")


def _from_prague(tree: Tree) -> Tree:
    """The inverse of `_to_prague`."""
    heads, relations = tree
    members: dict[int, list[int]] = {}
    for word in range(1, len(heads)):
        if relations[word].endswith(MEMBER) and relations[heads[word]].startswith(COORDINATOR):
            members.setdefault(heads[word], []).append(word)
    if not members:
        return tree
    made = Tree(heads.copy(), relations.copy())
    conjuncts = {word: [_first(member, members) for member in own] for word, own in members.items()}
    for word in range(1, len(heads)):  # what hangs on a coordination and is none of it
        own = conjuncts.get(heads[word])
        if own is None or word in members[heads[word]] or _base(relations[word]) in BOUND:
            continue
        inside = word < max(own) and _base(relations[word]) in ("cc", "punct")
        made.heads[word] = _next(word, own) if inside else own[0]
    for word, own in conjuncts.items():
        if word not in members.get(heads[word], ()):
            made.heads[own[0]], made.relations[own[0]] = made.heads[word], relations[own[0]].removesuffix(MEMBER)
        for other in own[1:]:
            made.heads[other], made.relations[other] = own[0], "conj"
    for word, own in conjuncts.items():
        label = relations[word][len(COORDINATOR) :]
        made.heads[word] = _next(word, own)
        made.relations[word] = label.removesuffix(MEMBER) if word in members.get(heads[word], ()) else label
    return made


def _first(word: int, members: dict[int, list[int]]) -> int:
    """The first conjunct of a coordination, or of the one that is its first member, and so on."""
    while word in members:
        word = members[word][0]
    return word


def _next(word: int, conjuncts: Sequence[int]) -> int:
    """The conjunct that follows a word, or the last one."""
    return min((c for c in conjuncts if c > word), default=conjuncts[-1])
