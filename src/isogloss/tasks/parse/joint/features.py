"""The templates of links that have tags to choose, in the language of `isogloss.features`.

Words are ``head`` and ``child``, with their ``word`` (the form), ``prefix`` (its first five letters), ``tag`` (a value
that the part of speech may have), ``fixed`` (the part of speech that a tagger found) and ``value`` (a value that some
other ``attribute`` may have, 0 for none). Columns of a link are its ``direction``, its ``shape`` (direction and
length), a part of speech ``between``, the ``attribute`` and ``agreement`` (whether its values are the same).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.features import Templates
from isogloss.features.mixing import factor_of

__all__ = ["FAMILIES", "SEEN", "TRIED", "LinkTemplates", "link_templates"]

SEEN = (
    "direction", "shape", "head.word", "child.word", "head.prefix", "child.prefix", "head.fixed[-1]", "head.fixed",
    "head.fixed[+1]", "child.fixed[-1]", "child.fixed", "child.fixed[+1]",
)  # fmt: skip
"""What kernels see of a link whatever its tags are, in their order."""
TRIED = (("head.tag", "child.tag", "between"), ("attribute", "head.value", "child.value", "agreement"))
"""What they try, in their order: of parts of speech, and of one other attribute."""

FAMILIES = {
    "words": (
        "shape", "head.word & shape", "child.word & shape", "head.word & child.word & direction",
        "head.prefix & shape", "child.prefix & shape", "head.prefix & child.prefix & direction",
        "head.word & child.prefix & direction", "head.prefix & child.word & direction",
    ),
    "tags": (
        "head.tag & shape", "child.tag & shape", "head.tag & child.tag & shape",
        "head.tag & child.tag & head.fixed[-1] & direction", "head.tag & child.tag & head.fixed[+1] & direction",
        "head.tag & child.tag & child.fixed[-1] & direction", "head.tag & child.tag & child.fixed[+1] & direction",
        "head.tag & child.tag & head.fixed[+1] & child.fixed[-1] & shape",
        "head.tag & child.tag & head.fixed[-1] & child.fixed[-1] & shape",
        "head.tag & child.tag & head.fixed[+1] & child.fixed[+1] & shape",
        "head.tag & child.tag & head.fixed[-1] & child.fixed[+1] & shape",
    ),
    "between": ("head.tag & child.tag & between & direction",),
    "tags and words": (
        "head.word & head.tag & shape", "child.word & child.tag & shape",
        "head.word & child.word & head.tag & child.tag & direction", "child.word & head.tag & child.tag & shape",
        "head.word & child.word & child.tag & direction", "head.word & head.tag & child.tag & shape",
        "head.word & child.word & head.tag & direction", "head.prefix & head.tag & shape",
        "child.prefix & child.tag & shape", "head.prefix & child.prefix & head.tag & child.tag & direction",
        "child.prefix & head.tag & child.tag & shape", "head.prefix & head.tag & child.tag & shape",
    ),
    "government": (
        "attribute & child.value & shape", "attribute & child.value & head.fixed & child.fixed & direction",
        "attribute & child.value & head.word & direction",
    ),
    "agreement": (
        "attribute & head.value & child.value", "attribute & agreement", "attribute & head.value & child.value & shape",
        "attribute & agreement & shape", "attribute & head.value & child.value & head.fixed & child.fixed & direction",
        "attribute & agreement & head.fixed & child.fixed & shape",
    ),
}  # fmt: skip
"""WORD-LINK; POS-LINK, of which the third fires once for each part of speech between; MORPH-LINK, where the head has no
value of the attribute, and where it has."""


class LinkTemplates(NamedTuple):
    """All templates as numbers, family after family; those of family *f* are ``families[f]`` … ``families[f + 1] - 1``.

    families : int64[n_families + 1]
    starts : uint64[n_templates]
    begins : int64[n_templates + 1]
        Where the terms of each begin that are seen.
    terms, factors : int64[n_terms], uint64[n_terms]
        What of `SEEN` it is, and what that is multiplied by.
    tried : uint64[n_templates, 4]
        What each of `TRIED` is multiplied by; 0 for those that a template does not look at.
    """

    families: NDArray[np.int64]
    starts: NDArray[np.uint64]
    begins: NDArray[np.int64]
    terms: NDArray[np.int64]
    factors: NDArray[np.uint64]
    tried: NDArray[np.uint64]


@cache
def link_templates() -> LinkTemplates:
    """`FAMILIES` as kernels take them."""
    made = [Templates(names, kind=family) for family, names in FAMILIES.items()]
    lists = [[(str(term), factor_of(place)) for place, term in enumerate(own)] for kind in made for own in kind.terms]
    seen = [[(SEEN.index(term), factor) for term, factor in own if term in SEEN] for own in lists]
    tried = np.zeros((len(lists), max(map(len, TRIED))), np.uint64)
    for t, own in enumerate(lists):
        for term, factor in own:
            for kind in TRIED:
                if term in kind:
                    tried[t, kind.index(term)] = factor
    return LinkTemplates(
        np.concatenate([[0], np.cumsum([len(templates) for templates in made])]).astype(np.int64),
        np.concatenate([templates.starts for templates in made]),
        np.concatenate([[0], np.cumsum([len(own) for own in seen])]).astype(np.int64),
        np.array([number for own in seen for number, _ in own], np.int64),
        np.array([factor for own in seen for _, factor in own], np.uint64),
        tried,
    )
