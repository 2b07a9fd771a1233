"""Inline tags and placeholders: finding them in a line.

Markup are tags of XML and HTML (``<b>``, ``</b>``, ``<g id="1">``, ``<x/>``, ``<br>``); the codes of TMX and XLIFF
(``<bpt i="1">...</bpt>`` with what is inside it, ``<ept>``, ``<ph>``, ``<it>``, ``<bx/>``, ``<ex/>``, ``<sc/>``,
``<ec/>``, ``<pc>``, ``<mrk>``); comments; and placeholders: ``{0}``, ``{{name}}``, ``${name}``, ``%{name}``, ``%s``,
``%1$d``, ``%(name)s``. Everything else is text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from isogloss.errors import ParameterError

__all__ = ["MARKUP", "Span", "Tag", "pairs_of", "strip_markup", "word_spans"]

Span = tuple[int, int]

_ATTRIBUTES = r"""(?:\s+[^\s<>/="']+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>]*[^\s"'<>/]))?)*+\s*+"""
_TAGS = rf"""
    <(?P<code>bpt|ept|ph|it|ut)\b(?P<code_attributes>{_ATTRIBUTES})>.*?</(?P=code)\s*>
  | <(?P<slash>/)?(?P<name>[A-Za-z][\w:.-]*+)(?P<attributes>{_ATTRIBUTES})(?P<empty>/)?>
  | <!--.*?-->
"""
_PLACEHOLDERS = r"""
    \{\{[^{}<>]*\}\} | [$%]?\{[\w.:,+-]*\}
  | %\(\w+\)[-#0+]*\d*(?:\.\d+)?[a-zA-Z]
  | (?<!\d)%(?:\d+\$)?[-#0+]*\d*(?:\.\d+)?(?:hh|h|ll|l)?[sdifuxXeEgGc@](?!\w)
"""
_TAG = re.compile(f"{_TAGS}", re.VERBOSE)
MARKUP = re.compile(f"{_TAGS}|(?P<placeholder>{_PLACEHOLDERS})", re.VERBOSE)
_ATTRIBUTE = re.compile(r"""([^\s<>/="']+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>/]+))""")
_WORD = re.compile(r"[^ \t-\r]+")

# Elements that HTML never closes, and the codes of TMX and XLIFF that start or end a span by themselves: the attributes
# in which the two ends name each other.
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
_STARTS = {"bpt": ("i", "rid", "id"), "bx": ("rid", "id"), "sc": ("id",), "sm": ("id",)}
_ENDS = {"ept": ("i", "rid", "id"), "ex": ("rid", "id"), "ec": ("startRef", "id"), "em": ("startRef", "id")}
_PARTNER = {"ept": "bpt", "ex": "bx", "ec": "sc", "em": "sm"}


class Tag(NamedTuple):
    """A tag, and where it stood among the words of its line.

    `kind` is open, close or point; `key` is what an opening and its closing tag have in common. `position` counts the
    words that end before the tag; if `inside`, the next word started before it. `glued` says whether it touched what
    stood left and right of it.
    """

    text: str
    kind: str
    key: str
    position: int
    inside: bool
    glued: tuple[bool, bool]


def strip_markup(line: str, *, placeholders: bool = True, tokenise: str = "space") -> tuple[list[str], list[Tag]]:
    """The words of a line without its markup, and the markup.

    Parameters
    ----------
    line : str
        Tags may stand by themselves or touch words. A tag of a pair leaves nothing behind, so ``un<b>do</b>`` is one
        word; any other tag and a placeholder leave a space.
    placeholders : bool
        Whether ``{0}``, ``%s`` and the like are markup; otherwise they are words.
    tokenise : {"space", "unicode", "characters"}
        What a word is, as in `read_bitext`.

    Examples
    --------
    >>> tokens, tags = strip_markup('Click <b>here</b> , {0} !')
    >>> tokens
    ['Click', 'here', ',', '!']
    >>> [(tag.text, tag.kind, tag.position) for tag in tags]
    [('<b>', 'open', 1), ('</b>', 'close', 2), ('{0}', 'point', 3)]
    """
    found = list((MARKUP if placeholders else _TAG).finditer(line))
    kinds = [_kind(match) for match in found]
    matched = pairs_of(kinds)
    plain, places, end = [], [], 0
    length = 0
    for number, match in enumerate(found):
        before = line[end : match.start()]
        plain.append(before if number in matched else before + " ")
        places.append(length + len(before))
        length += len(plain[-1])
        end = match.end()
    text = "".join([*plain, line[end:]])
    spans = word_spans(text, tokenise)
    tags = []
    position = 0
    for number, (match, (kind, key), place) in enumerate(zip(found, kinds, places, strict=True)):
        while position < len(spans) and spans[position][1] <= place:
            position += 1
        inside = position < len(spans) and spans[position][0] < place
        glued = match.start() > 0 and not line[match.start() - 1].isspace()
        glues = match.end() < len(line) and not line[match.end()].isspace()
        tags.append(Tag(match.group(), kind if number in matched else "point", key, position, inside, (glued, glues)))
    return [text[start:stop] for start, stop in spans], tags


def _kind(match: re.Match[str]) -> tuple[str, str]:
    """Open, close or point; and what the two ends of a pair share."""
    parts = match.groupdict()
    name = parts["code"] or parts["name"]
    if name is None:
        return "point", ""
    lower = name.lower()
    if lower in _STARTS or lower in _ENDS:
        if parts["code"] or parts["empty"]:
            attributes = _attributes(parts["code_attributes"] or parts["attributes"] or "")
            wanted = {**_STARTS, **_ENDS}[lower]
            value = next((attributes[key] for key in wanted if key in attributes), None)
            kind = "open" if lower in _STARTS else "close"
            return (kind, f"{_PARTNER.get(lower, lower)} {value}") if value is not None else ("point", "")
        return "point", ""
    if parts["slash"]:
        return "close", lower
    return ("point" if parts["code"] or parts["empty"] or lower in _VOID else "open"), lower


def _attributes(text: str) -> dict[str, str]:
    return {found[1]: found[2] or found[3] or found[4] or "" for found in _ATTRIBUTE.finditer(text)}


def pairs_of(kinds: Sequence[tuple[str, str]]) -> dict[int, int]:
    """Which tags are the two ends of a pair, both ways; pairs that cross are not pairs."""
    matched: dict[int, int] = {}
    waiting: list[int] = []
    for number, (kind, key) in enumerate(kinds):
        if kind == "open":
            waiting.append(number)
        elif kind == "close":
            depth = next((d for d in range(len(waiting) - 1, -1, -1) if kinds[waiting[d]][1] == key), None)
            if depth is not None:
                matched[waiting[depth]], matched[number] = number, waiting[depth]
                del waiting[depth:]
    return matched


def word_spans(text: str, tokenise: str) -> list[Span]:
    """Where each word of a line starts and ends, in characters."""
    if tokenise == "space":
        return [match.span() for match in _WORD.finditer(text)]
    if tokenise not in ("unicode", "characters"):
        raise ParameterError(f"tokenise should be space, unicode or characters, not {tokenise!r}")
    from isogloss.data.tokenise import tokenise_text

    spans = tokenise_text([text], tokenise).spans
    assert spans is not None
    return [(start, stop) for start, stop in spans[0].tolist()]
