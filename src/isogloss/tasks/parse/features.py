"""The templates of parsers, in the language of `isogloss.features`.

A template is a string such as ``"head.lemma & child.tag & child.tag[+1]"``: codes of `isogloss.tasks.parse.words.ATOMS`
of a link's head or child, or of a word one or two places before or after. Every template fires twice: as it is, and
together with the direction and the length of the link, its bin (`bin_name`). Parts with more than one link have their
own, `PART_TEMPLATES`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.features.templates import Numbered, Templates, Term
from isogloss.tasks.parse.words import ATOMS, PAD, Columns

__all__ = [
    "DYNAMIC", "FILTER_TEMPLATES", "LABEL_DYNAMIC", "LABEL_TEMPLATES", "LINK_ROLES", "LINK_TEMPLATES", "PART_ROLES",
    "PART_TEMPLATES", "ROLES", "bin_name", "lexical", "numbered", "templates_for",
]  # fmt: skip

LINK_TEMPLATES = (
    # one word
    "head.word", "head.word & head.fine", "head.lemma", "head.lemma & head.tag", "head.tag", "head.fine",
    "child.word", "child.word & child.fine", "child.lemma", "child.lemma & child.tag", "child.tag", "child.fine",
    # both
    "head.word & head.fine & child.word & child.fine", "head.fine & child.word & child.fine",
    "head.word & child.word & child.fine", "head.word & head.fine & child.fine",
    "head.word & head.fine & child.word", "head.word & child.word", "head.fine & child.fine", "head.tag & child.tag",
    "head.lemma & child.lemma", "head.lemma & head.tag & child.tag", "head.tag & child.lemma & child.tag",
    "head.lemma & head.tag & child.lemma & child.tag", "head.tag & child.fine", "head.fine & child.tag",
    # neighbours
    "head.fine & head.fine[+1] & child.fine[-1] & child.fine",
    "head.fine[-1] & head.fine & child.fine[-1] & child.fine",
    "head.fine & head.fine[+1] & child.fine & child.fine[+1]",
    "head.fine[-1] & head.fine & child.fine & child.fine[+1]",
    "head.fine & child.fine[-1] & child.fine", "head.fine & child.fine & child.fine[+1]",
    "head.fine[-1] & head.fine & child.fine", "head.fine & head.fine[+1] & child.fine",
    "head.tag & head.tag[+1] & child.tag[-1] & child.tag", "head.tag[-1] & head.tag & child.tag[-1] & child.tag",
    "head.tag & head.tag[+1] & child.tag & child.tag[+1]", "head.tag[-1] & head.tag & child.tag & child.tag[+1]",
    "head.tag & child.tag[-1] & child.tag", "head.tag & child.tag & child.tag[+1]",
    "head.tag[-1] & head.tag & child.tag", "head.tag & head.tag[+1] & child.tag",
    "head.tag & child.tag[-2] & child.tag[-1] & child.tag", "head.tag & child.tag & child.tag[+1] & child.tag[+2]",
    "head.tag[-2] & head.tag[-1] & head.tag & child.tag", "head.tag & head.tag[+1] & head.tag[+2] & child.tag",
    "head.tag & child.lemma[-1] & child.tag", "head.tag & child.tag & child.lemma[+1]",
    "head.lemma[-1] & head.tag & child.tag", "head.tag & head.lemma[+1] & child.tag",
    # what marks the phrase of the child, or of the head
    "head.tag & child.marker & child.tag", "head.lemma & child.marker & child.tag", "head.lemma & child.marker",
    "head.lemma & child.marker & child.lemma", "head.marker & head.tag & child.tag",
    "head.marker & head.tag & child.marker & child.tag",
    # features
    "head.tag & child.bundle", "head.bundle & child.tag", "head.bundle & child.bundle & head.tag & child.tag",
    "head.lemma & child.tag & child.bundle",
)  # fmt: skip

FILTER_TEMPLATES = (
    "head.tag & child.tag", "head.fine & child.fine", "head.tag & child.tag[-1] & child.tag",
    "head.tag & child.tag & child.tag[+1]", "head.tag[-1] & head.tag & child.tag",
    "head.tag & head.tag[+1] & child.tag",
)  # fmt: skip
"""A few that are quick, to choose the links that all others are worth looking at for."""

PART_TEMPLATES = {
    "grand": (
        "grandparent.tag & head.tag & child.tag", "grandparent.fine & head.fine & child.fine",
        "grandparent.tag & child.tag", "grandparent.fine & child.fine",
        "grandparent.lemma & head.tag & child.tag", "grandparent.tag & head.lemma & child.tag",
        "grandparent.tag & head.tag & child.lemma", "grandparent.lemma & head.tag & child.lemma",
        "grandparent.lemma & head.lemma & child.tag", "grandparent.tag & head.lemma & child.lemma",
        "grandparent.lemma & child.lemma", "grandparent.tag & child.lemma", "grandparent.lemma & child.tag",
        "grandparent.tag & head.tag & child.tag & child.tag[+1]",
        "grandparent.tag & head.tag & child.tag[-1] & child.tag",
        "grandparent.tag & head.tag[-1] & head.tag & child.tag",
        "grandparent.tag & head.tag & head.tag[+1] & child.tag",
    ),
    "siblings": (
        "previous.tag & head.tag & child.tag", "previous.fine & head.fine & child.fine", "previous.tag & child.tag",
        "previous.fine & child.fine", "head.lemma & previous.tag & child.tag", "head.tag & previous.lemma & child.tag",
        "head.tag & previous.tag & child.lemma", "head.lemma & previous.lemma & child.tag",
        "head.lemma & previous.tag & child.lemma", "head.tag & previous.lemma & child.lemma",
        "previous.lemma & child.lemma", "previous.tag & child.lemma", "previous.lemma & child.tag",
        "head.tag & previous.tag & child.tag & child.tag[+1]", "head.tag & previous.tag & child.tag[-1] & child.tag",
        "head.tag & previous.marker & previous.tag & child.marker & child.tag",
    ),
    "valence": (
        "head.tag", "head.fine", "head.word", "head.lemma & head.tag", "head.tag & head.tag[+1]",
        "head.tag[-1] & head.tag", "head.bundle & head.tag",
    ),
    "crossing": (
        "child.tag", "next.tag", "child.tag & next.tag", "child.fine", "next.fine", "child.fine & next.fine",
    ),
}  # fmt: skip
"""Templates of `isogloss.structures.tree_parts.FAMILIES`. Of siblings, the child is the one further from the head; of
crossing links, ``child`` and ``next`` are the words they lead to, from left to right."""

PART_ROLES = {
    "grand": ("grandparent", "head", "child"),
    "siblings": ("head", "previous", "child"),
    "valence": ("head", "head", "head"),
    "crossing": ("child", "next", "next"),
}
"""The roles of the three words of a part."""

DYNAMIC = (
    "head.tag & child.tag & between", "head.tag & child.tag & verbs, marks and conjunctions between",
    "head.tag & child.tag & feature of child", "head.tag & child.tag & feature of head",
    "head.tag & child.tag & agreement", "head.tag & child.tag & feature of both",
    "head.lemma & child.tag & feature of child", "child.tag & place in sentence", "mark",
    "head.tag & child.tag & mark",
)  # fmt: skip
"""Templates that may fire more than once on a link, or look at more than codes."""

ROLES = ("head", "child", "grandparent", "previous", "next", "first", "last")
"""Words that templates may look at: of the link; and, when the tree is known, the head of the head, the siblings beside
the child, and the outermost children of the child."""

LINK_ROLES = ROLES[:2]

LABEL_TEMPLATES = (
    "child.tag", "child.fine", "child.word", "child.lemma", "child.bundle", "child.marker & child.tag",
    "head.tag", "head.fine", "head.lemma", "head.word", "head.tag & child.tag", "head.fine & child.fine",
    "head.lemma & child.tag", "head.tag & child.lemma", "head.lemma & child.lemma", "head.word & child.fine",
    "head.fine & child.word", "head.tag & child.word & child.fine", "head.lemma & child.fine",
    "head.tag & child.bundle", "head.bundle & child.bundle", "head.lemma & child.bundle",
    "head.bundle & child.tag",
    "head.tag & child.tag & child.marker", "head.lemma & child.tag & child.marker",
    "child.tag[-1] & child.tag & child.tag[+1]", "head.tag & child.tag & child.tag[+1]",
    "head.tag & child.tag & child.tag[-1]", "head.tag & child.tag & child.lemma[+1]",
    "head.tag & child.tag & child.lemma[-1]", "head.tag & head.tag[+1] & child.tag",
    "head.tag & head.tag[-1] & child.tag",
    "grandparent.tag & head.tag & child.tag", "grandparent.lemma & head.tag & child.tag",
    "previous.tag & head.tag & child.tag", "next.tag & head.tag & child.tag", "previous.lemma & head.tag & child.tag",
    "next.lemma & head.tag & child.tag", "previous.fine & head.fine & child.fine", "next.fine & head.fine & child.fine",
    "previous.tag & child.tag & next.tag & head.tag",
    "head.tag & child.tag & first.tag", "head.tag & child.tag & last.tag", "head.tag & child.tag & first.lemma",
    "head.tag & child.tag & last.lemma", "head.lemma & child.tag & first.lemma", "child.tag & first.tag & last.tag",
    "child.fine & first.fine", "child.fine & last.fine", "child.lemma & first.lemma",
)  # fmt: skip

LABEL_DYNAMIC = (
    "head.tag & child.tag & missing neighbours", "head.tag & child.tag & feature of child",
    "head.lemma & feature of child", "head.tag & child.tag & agreement",
)  # fmt: skip
"""Those of labels that may fire more than once, or look at more than codes."""

N_BINS = 7
_LENGTHS = ("1", "2", "3", "4", "5 to 7", "8 to 12", "13 or more")


def bin_name(number: int) -> str:
    """Direction and length that a bin stands for; nothing for 0.

    Examples
    --------
    >>> bin_name(0), bin_name(1), bin_name(12)
    ('', 'child 1 to the right', 'child 5 to 7 to the left')
    """
    if number == 0:
        return ""
    side = "right" if number <= N_BINS else "left"
    return f"child {_LENGTHS[(number - 1) % N_BINS]} to the {side}"


def templates_for(
    names: Sequence[str], columns: Columns | None = None, *, kind: str = "", roles: Sequence[str] = ROLES
) -> Templates:
    """Templates, without those that say nothing with these columns; what a parser cannot look at is refused.

    `kind` keeps templates of the same name apart that share a table; `roles` are the words that parts have.
    """
    for name in names:
        if not isinstance(name, str):
            raise ParameterError(f"template {name!r} should be a string, such as 'head.tag & child.tag'")
    made = Templates(names, kind=kind)
    made.numbered(roles, ATOMS if columns is None else columns.atoms, reach=PAD)
    if columns is None:
        return made
    told = [name for name, own in zip(made.names, made.terms, strict=True) if _telling(own, columns)]
    return Templates(told, kind=kind)


def numbered(templates: Templates, atoms: Sequence[str] = ATOMS) -> Numbered:
    """Templates as the kernels of parsers take them; `atoms` are the columns of codes."""
    return templates.numbered(ROLES, atoms, reach=PAD)


_TAGS = frozenset({"tag", "fine", "between", "bundle"})


def lexical(templates: Templates) -> NDArray[np.bool_]:
    """bool[n_templates]: whether a template looks at words, or what views say of them, and not at tags alone."""
    looks = (any(term.name not in _TAGS for term in own) for own in templates.terms)
    return np.fromiter(looks, np.bool_, len(templates))


def _telling(terms: Sequence[Term], columns: Columns) -> bool:
    """Whether a template differs from the one with tags in place of fine tags or bundles."""
    atoms = {term.name for term in terms}
    return not ("fine" in atoms and not columns.fine) and not ("bundle" in atoms and not columns.attributes)
