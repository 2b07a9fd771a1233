"""Types of names: what the labels of one corpus are called in others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from isogloss.data.mentions import Mentions

__all__ = ["SHARED", "renamed", "shared_type", "shared_types"]

SHARED = {
    "PER": ("PER", "PERS", "PERSON", "PEOP", "PEOPLE"),
    "LOC": ("LOC", "LOCATION", "PLACE", "GPE"),
    "ORG": ("ORG", "ORGANIZATION", "ORGANISATION", "GROUP"),
    "MISC": ("MISC", "MISCELLANEOUS", "OTHER", "OTH"),
}
"""The four types of CoNLL-2002 and 2003 with their other names, in capitals: those of CoNLL04 (Peop, Loc, Org, Other)
and of OntoNotes are among them."""
_KNOWN = {name: kind for kind, names in SHARED.items() for name in names}


def shared_type(label: str) -> str:
    """What CoNLL-2002 calls a type of names; a type that it does not have stays as it is.

    >>> [shared_type(label) for label in ("Peop", "Other", "location", "DATE")]
    ['PER', 'MISC', 'LOC', 'DATE']
    """
    return _KNOWN.get(re.sub(r"[^A-Z]", "", label.upper()), label)


def shared_types(found: Iterable[str], gold: Iterable[str]) -> dict[str, str]:
    """What types of one text are called in another that has none of them: each type of `found` with that of `gold`.

    Empty where some type is in both, so that nothing has to be renamed, or where no two are the same.

    >>> shared_types(["Loc", "Peop"], ["LOC", "MISC", "PER"])
    {'Loc': 'LOC', 'Peop': 'PER'}
    >>> shared_types(["LOC", "Peop"], ["LOC", "PER"])
    {}
    """
    theirs = {shared_type(label): label for label in sorted(set(gold))}
    ours = sorted(set(found))
    if set(ours) & set(theirs.values()):
        return {}
    return {label: theirs[shared_type(label)] for label in ours if shared_type(label) in theirs}


def renamed(text: Mentions, names: Mapping[str, str]) -> Mentions:
    """The text with other names of types; those that are not among `names` stay.

    >>> text = Mentions.of([(["Ada", "left"], [(0, 1, "Peop")])])
    >>> renamed(text, {"Peop": "PER"}).entities(0)
    ((0, 1, 'PER'),)
    """
    entities = [text.entities(s) for s in range(len(text))]
    return text.with_entities([[(begin, end, names.get(kind, kind)) for begin, end, kind in own] for own in entities])
