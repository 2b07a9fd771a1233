"""`Contractions`: which surface words are split, into what, and where they stay whole."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import product
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Text
from isogloss.data.rows import Shown, counted
from isogloss.data.treebank import Treebank
from isogloss.errors import DataError, ParameterError

__all__ = ["Contractions", "Rule"]

Flags = NDArray[np.bool_]
Ids = NDArray[np.int64]

_HEADINGS = ("language", "form", "parts", "whole in", "note")
_GROUP = re.compile(r"\{([^{}]*)\}")
_REFERENCE = re.compile(r"(\d+)(?::(.*))?")
_MOST_ALTERNATIVES = 10_000
_START = "^"
_WILD = "*"


class Rule(NamedTuple):
    """What becomes of a form.

    Parameters
    ----------
    parts : tuple of str
        The words that it is split into; one, if it stays whole. In a pattern, ``*`` in the first stands for what the
        ``*`` of the form stood for.
    whole_in : tuple of str
        Neighbours beside which it stays whole: ``avec_`` before it, ``_mos`` after it. ``*er_`` is any word with that
        end, ``^_`` the beginning of the sentence, and ``!partir_`` an exception; the longest that fits decides.
    note : str
        For people.
    """

    parts: tuple[str, ...]
    whole_in: tuple[str, ...] = ()
    note: str = ""


class _Match(NamedTuple):
    """A word that a rule is of."""

    parts: tuple[str, ...]
    whole_in: tuple[str, ...]
    initial: bool
    """Whether it is split at the beginning of a sentence only, since elsewhere its capital makes it a name."""


class Contractions(Shown, Mapping[str, tuple[str, ...]]):
    """Surface words and the words that they are split into, as treebanks of Universal Dependencies do.

    A word is looked up as it is, then in small letters, and its parts are written as it was: `Della` is `Di la`, and
    `DELLA` is `DI LA`. A form that begins with ``*`` is a pattern: ``*arlo`` is split into ``*ar lo`` wherever a word
    ends so. Words come before patterns, and long patterns before short ones, so that exceptions are entries of one part
    (`parlo` is `parlo`, ``*versi`` is ``*versi``). Patterns are not for words with capitals, which may be names, unless
    they begin a sentence.

    Parameters
    ----------
    rules : mapping of str to Rule, str or sequence of str
        By form; a string has the parts with spaces between them.
    language : str
        The code of the language, if it is known.

    Examples
    --------
    >>> italian = Contractions({"della": "di la", "*arlo": "*ar lo", "parlo": "parlo"})
    >>> italian.split(["Della", "casa", "parlo", ",", "provarlo", "e", "DELLA", "Carlo"])
    [('Di', 'la'), ('casa',), ('parlo',), (',',), ('provar', 'lo'), ('e',), ('DI', 'LA'), ('Carlo',)]
    >>> italian["della"], italian, (italian | Contractions({"nel": "in il"}))["nel"]
    (('di', 'la'), Contractions(2 words, 1 pattern), ('in', 'il'))
    """

    def __init__(self, rules: Mapping[str, Rule | str | Sequence[str]], language: str = "") -> None:
        self.language = language
        self._rules: dict[str, Rule] = {}
        for form, given in rules.items():
            rule = given if isinstance(given, Rule) else Rule(_parts_of(given))
            key = _key(form)
            problem = _problem(key, rule)
            if problem:
                raise ParameterError(f"Contractions: {form!r}: {problem}")
            self._rules[key] = rule
        self._words = {form: rule for form, rule in self._rules.items() if _WILD not in form}
        self._endings = {form[1:]: rule for form, rule in self._rules.items() if _WILD in form}
        self._longest = max(map(len, self._endings), default=0)
        self._known: dict[str, _Match | None] = {}

    # Making ----------------------------------------------------------------------------------------------------------

    @classmethod
    def of_language(cls, language: str) -> Contractions:
        """The list of a language that comes with us, by its code: "de", "it", and so on.

        Examples
        --------
        >>> Contractions.of_language("de").split(["Am", "Haus"])
        [('An', 'dem'), ('Haus',)]
        """
        from isogloss.data.contractions.languages import LANGUAGES

        if language not in LANGUAGES:
            raise ParameterError(
                f"Contractions: there is no list of {language!r}, but of {', '.join(LANGUAGES)}. For another language, "
                "give a table of forms and their parts, or learn them from a treebank"
            )
        name = f"{language}.tsv"
        return cls.from_bytes(resources.files(__package__).joinpath(name).read_bytes(), name)

    @classmethod
    def choose(cls, option: str, text: Text) -> Contractions | None:
        """What ``--contractions`` asks for.

        Parameters
        ----------
        option : str
            "auto" for the list of the language that `text` seems to be in, if it has one; "none" for nothing; the code
            of a language; otherwise a file: a table, or CoNLL-U, by its name, to learn from.
        text : Text
        """
        from isogloss.data.contractions.languages import LANGUAGES, guess_language
        from isogloss.data.formats.conllu import layout_of_name

        if option == "none":
            return None
        if option == "auto":
            language = guess_language(text)
            return None if language is None else cls.of_language(language)
        code = option.isalpha() and len(option) <= 3 and not os.path.exists(option)
        if option in LANGUAGES or code:
            return cls.of_language(option)
        layout = layout_of_name(option)
        return cls.read(option) if layout is None or not layout.groups else cls.learn(Treebank.read(option))

    @classmethod
    def learn(cls, treebank: Treebank, language: str = "", *, min_share: float = 0.5) -> Contractions:
        """The multiword tokens of a treebank.

        A form is kept if more than `min_share` of its uses are split, with the parts that it has most often. One that
        is not always split stays whole next to the words before which two uses or more, and most of them, were whole.

        Examples
        --------
        >>> rows = ["1-2 zum _", "1 zu _", "2 dem _", "3 Haus _"]
        >>> lines = [row.replace(" ", chr(9)) + (chr(9) + "_") * 7 + chr(10) for row in rows]
        >>> Contractions.learn(Treebank.from_bytes("".join([*lines, chr(10)]).encode()))["zum"]
        ('zu', 'dem')
        """
        if not 0 <= min_share < 1:
            raise ParameterError(f"Contractions.learn: min_share should be at least 0 and below 1, not {min_share!r}")
        split: dict[str, Counter[tuple[str, ...]]] = {}
        uses: Counter[str] = Counter()
        after: dict[tuple[str, str], list[int]] = {}
        for surface, parts, before in _surface_words(treebank):
            form = _key(surface)
            uses[form] += 1
            if len(parts) > 1:
                split.setdefault(form, Counter())[tuple(part.lower() for part in parts)] += 1
            after.setdefault((form, before), [0, 0])[len(parts) > 1] += 1
        mostly_whole: dict[str, list[str]] = {}
        for (form, before), (whole, divided) in after.items():
            if whole > max(divided, 1) and not set(before) & set("!*_ "):  # these mean something else in a rule
                mostly_whole.setdefault(form, []).append(f"{before}_")
        rules = {}
        for form, found in sorted(split.items()):
            n_split = found.total()
            parts = max(found, key=lambda parts: (found[parts], parts))
            if n_split > min_share * uses[form] and not _problem(form, Rule(parts)):
                note = "" if n_split == uses[form] else f"split in {n_split} of {uses[form]} uses"
                rules[form] = Rule(parts, tuple(sorted(mostly_whole.get(form, []))) if note else (), note)
        return cls(rules, language)

    @classmethod
    def read(cls, path: str | PathLike[str], **options: Any) -> Contractions:
        """Read a table: columns "form" and "parts", between tabs, with words between spaces.

        Headings are needed only for further columns: "language", "whole in" and "note". Braces stand for alternatives:
        ``*{ar,er}lo`` and ``*{ar,er} lo`` are two rules. In the parts, ``{2}`` is what the second group of the form
        has, and ``{2:x,y}`` has an alternative for each of its own. Lines that begin with ``#`` are comments. Options
        are those of `isogloss.data.formats.read_bytes`.
        """
        from isogloss.data.formats.files import name_of, read_bytes

        return cls.from_bytes(read_bytes(path, **options), name_of(path))

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "<memory>") -> Contractions:
        """The table that some bytes of UTF-8 are; `name` is for messages."""
        try:
            lines = data.decode().removeprefix("\ufeff").split("\n")
        except UnicodeDecodeError as problem:
            raise DataError(f"{name}: byte {problem.start} cannot be read as UTF-8. Save the table as UTF-8") from None
        places = {"form": 0, "parts": 1}
        languages: set[str] = set()
        rules: dict[str, Rule] = {}
        for number, line in enumerate(lines, 1):
            cells = [cell.strip() for cell in line.rstrip("\r").split("\t")]
            if not any(cells) or line.startswith("#"):
                continue
            if not rules and {"form", "parts"} <= set(cells):
                places = {heading: cells.index(heading) for heading in _HEADINGS if heading in cells}
                continue
            row = {heading: cells[at] for heading, at in places.items() if at < len(cells)}
            if not row.get("form") or not row.get("parts"):
                raise DataError(
                    f"{name}, line {number}: no form and parts in {line!r:.60}. Put one tab between the form and its "
                    "parts, and spaces between these"
                )
            languages |= {row["language"]} if row.get("language") else set()
            try:
                expanded = list(_expanded(row["form"], row["parts"]))
            except ValueError as problem:
                raise DataError(f"{name}, line {number}: {problem} in {line!r:.80}") from None
            for form, parts in expanded:
                rule = Rule(parts, tuple(row.get("whole in", "").split()), row.get("note", ""))
                finding = _problem(_key(form), rule)
                if finding:
                    raise DataError(f"{name}, line {number}: {form!r}: {finding}")
                rules[form] = rule
        return cls(rules, languages.pop() if len(languages) == 1 else "")

    def __or__(self, other: Contractions) -> Contractions:
        """The rules of both; where they speak of the same form, those of `other`."""
        return Contractions({**self._rules, **other._rules}, other.language or self.language)

    # Looking ---------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __getitem__(self, form: str) -> tuple[str, ...]:
        return self._rules[_key(form)].parts

    def rule(self, form: str) -> Rule:
        """All that is known of a form."""
        return self._rules[_key(form)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contractions) and (self.language, self._rules) == (other.language, other._rules)

    __hash__ = None  # type: ignore[assignment]

    def _said(self) -> list[str]:
        patterns = [counted(len(self._endings), "pattern")] if self._endings else []
        language = [repr(self.language)] if self.language else []
        return [counted(len(self._words), "word"), *patterns, *language]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[form, " ".join(rule.parts), rule.note] for form, rule in list(self._rules.items())[:most]]
        return {"heads": ["form", "parts", "note"], "rows": rows, "total": len(self)}

    # Splitting -------------------------------------------------------------------------------------------------------

    def split(self, words: Sequence[str]) -> list[tuple[str, ...]]:
        """The parts of each word of a sentence; one that is not split is its only part."""
        found: list[tuple[str, ...]] = []
        initial = True
        for at, word in enumerate(words):
            match = self._match(word)
            if match is not None and match.initial and not initial:
                match = None
            if match is not None and match.whole_in:
                before = words[at - 1] if at else None
                after = words[at + 1] if at + 1 < len(words) else None
                if _stays(match.whole_in, before, after, initial):
                    match = None
            found.append((word,) if match is None else match.parts)
            initial = initial and not is_wordlike(word)
        return found

    def chosen(self, text: Text) -> tuple[Flags, list[tuple[str, ...] | None]]:
        """Which tokens of a text are split, as `split` does it: bool[n_tokens], and the parts of each type, if any."""
        types = text.vocabulary.types
        matches = [self._match(word) for word in types]
        ids, offsets = text.ids.flat, text.ids.offsets - text.ids.offsets[0]
        parts = [None if match is None else match.parts for match in matches]
        chosen = np.array([match is not None for match in matches], bool)[ids] if len(types) else np.zeros(0, bool)
        if not len(ids):
            return chosen, parts
        initial = _is_initial(np.array([is_wordlike(word) for word in types], bool)[ids], offsets)
        only_initial = np.array([match is not None and match.initial for match in matches], bool)
        chosen &= initial | ~only_initial[ids]
        contexts = {match.whole_in for match in matches if match is not None and match.whole_in}
        for context in sorted(contexts):
            of_context = np.array([match is not None and match.whole_in == context for match in matches], bool)
            at = np.flatnonzero(of_context[ids] & chosen)
            chosen[at] = ~_staying(context, types, ids, offsets, initial, at)
        return chosen, parts

    def _match(self, word: str) -> _Match | None:
        """What is split of a word, if anything is."""
        if word not in self._known:
            self._known[word] = self._matched(word)
        return self._known[word]

    def _matched(self, word: str) -> _Match | None:
        key = _key(word)
        rule = self._words.get(key)
        if rule is not None:
            parts = _cased(word, rule.parts)
            return None if parts is None or len(parts) < 2 else _Match(parts, rule.whole_in, False)
        for length in range(min(self._longest, len(key)), 0, -1):
            rule = self._endings.get(key[-length:])
            if rule is None or (length == len(key) and len(rule.parts) > 1):  # a word is never an ending alone
                continue
            stem = unicodedata.normalize("NFC", word)[:-length]
            ordinary = word == word.lower() or word == word[:1] + word[1:].lower()
            if len(rule.parts) < 2 or not ordinary or not stem[-1:].isalpha():
                return None
            parts = (rule.parts[0].replace(_WILD, stem), *rule.parts[1:])
            return _Match(_apostrophes(word, parts), rule.whole_in, word != word.lower())
        return None

    # Writing ---------------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The table as text, which `from_bytes` reads again."""
        lines = ["\t".join(_HEADINGS)]
        for form, rule in self._rules.items():
            lines.append("\t".join([self.language, form, " ".join(rule.parts), " ".join(rule.whole_in), rule.note]))
        return "".join(f"{line}\n" for line in lines).encode()

    def write(self, path: str | PathLike[str]) -> None:
        """Write the table, whole or not at all; ``-`` is standard output."""
        from isogloss.data.formats.files import atomic_write

        with atomic_write(path) as file:
            file.write(self.to_bytes())


# Words ---------------------------------------------------------------------------------------------------------------


def _key(word: str) -> str:
    """How a word is looked up: composed, in small letters, with a plain apostrophe."""
    return unicodedata.normalize("NFC", word).lower().replace("’", "'")


def _parts_of(given: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(given.split()) if isinstance(given, str) else tuple(given)


def is_wordlike(word: str) -> bool:
    """Whether there is a letter or a digit in it."""
    return any(map(str.isalnum, word))


def _cased(word: str, parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """The parts in the capitals of the word; None if its capitals are of neither kind."""
    if word == word.lower():
        cased = parts
    elif word == word[:1].upper() + word[1:].lower():
        cased = (parts[0][:1].upper() + parts[0][1:], *parts[1:])
    elif word == word.upper():
        cased = tuple(part.upper() for part in parts)
    else:
        return None
    return _apostrophes(word, cased)


def _apostrophes(word: str, parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.replace("'", "’") for part in parts) if "’" in word else parts


def _problem(form: str, rule: Rule) -> str:
    """What is wrong with a rule, and what to do; empty if nothing is."""
    if not form or any(map(str.isspace, form)):
        return "a form is one word without spaces"
    if not rule.parts or any(not part or any(map(str.isspace, part)) for part in rule.parts):
        return "the parts are one word or several, and no word may be empty or have a space in it"
    if set("{}") & set("".join([form, *rule.parts])):
        return "braces are for tables, where they stand for alternatives"
    if set("\t\r\n") & set(rule.note):
        return "a note is on one line, without tabs"
    wild = [_WILD in form[1:], form.startswith(_WILD) and len(form) < 2, _WILD in "".join(rule.parts[1:])]
    if any(wild) or form.startswith(_WILD) != (rule.parts[0].count(_WILD) == 1) or rule.parts[0].count(_WILD) > 1:
        return "* may stand once, at the beginning of the form before other letters, and then in the first part"
    for item in rule.whole_in:
        bare = item.removeprefix("!")
        word = bare.removeprefix("_") if bare.startswith("_") else bare.removesuffix("_")
        if not word or word == bare or set(word.removeprefix(_WILD)) & set("!*_"):
            return f"{item!r} is no neighbour. Write avec_ for a word before the form, and _avec for one after it"
    return ""


def _expanded(form: str, parts: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The rules that braces stand for.

    Examples
    --------
    >>> list(_expanded("*{a,e}-{se,me}", "*{ar,er} {se,me}"))[1:3]
    [('*a-me', ('*ar', 'me')), ('*e-se', ('*er', 'se'))]
    >>> list(_expanded("*-{se}-{ia}", "*{2} {1}"))
    [('*-se-ia', ('*ia', 'se'))]
    """
    groups = [group.split(",") for group in _GROUP.findall(form)]
    if np.prod([len(group) for group in groups], initial=1) > _MOST_ALTERNATIVES:
        raise ValueError(f"the braces stand for more than {_MOST_ALTERNATIVES} rules")
    found: list[tuple[int, list[str]]] = []
    for text in _GROUP.findall(parts):
        reference = _REFERENCE.fullmatch(text)
        at = len(found) if reference is None else int(reference[1]) - 1
        if not 0 <= at < len(groups):
            raise ValueError(f"the parts have a group {{{text}}} that the form has not")
        inside = text if reference is None else reference[2]
        alternatives = groups[at] if inside is None else inside.split(",")
        if len(alternatives) != len(groups[at]):
            raise ValueError(f"{{{text}}} should have {len(groups[at])} alternatives, as in the form")
        found.append((at, alternatives))
    for numbers in product(*(range(len(group)) for group in groups)):
        of_form = iter([group[number] for group, number in zip(groups, numbers, strict=True)])
        of_parts = iter([alternatives[numbers[at]] for at, alternatives in found])
        filled = _GROUP.sub(lambda _, values=of_parts: next(values), parts)  # type: ignore[misc]
        yield _GROUP.sub(lambda _, values=of_form: next(values), form), tuple(filled.split())  # type: ignore[misc]


# Neighbours ----------------------------------------------------------------------------------------------------------


def _says_whole(neighbours: Iterable[str], word: str) -> bool:
    """Whether the longest of some patterns that fits a word says that what stands beside it stays whole."""
    key, longest, whole = _key(word), -1, False
    for neighbour in neighbours:
        bare = neighbour.removeprefix("!")
        fits = key.endswith(bare[1:]) if bare.startswith(_WILD) else key == bare
        size = len(bare) + (not bare.startswith(_WILD))  # a word says more than an ending as long
        if fits and size > longest:
            longest, whole = size, bare == neighbour
    return whole


def _sides(whole_in: Iterable[str]) -> tuple[list[str], list[str]]:
    """Neighbours before and after, without the line that stands for the form."""
    before = [item[:-1] for item in whole_in if item.endswith("_")]
    after = [item.replace("_", "", 1) for item in whole_in if not item.endswith("_")]
    return before, after


def _stays(whole_in: tuple[str, ...], before: str | None, after: str | None, initial: bool) -> bool:
    left, right = _sides(whole_in)
    if initial and _START in left:
        return True
    return (before is not None and _says_whole(left, before)) or (after is not None and _says_whole(right, after))


def _staying(
    whole_in: tuple[str, ...], types: Sequence[str], ids: NDArray[Any], offsets: Ids, initial: Flags, at: Ids
) -> Flags:
    """`_stays` for the tokens `at` of a text: bool[n_at]."""
    left, right = _sides(whole_in)
    stays = initial[at] if _START in left else np.zeros(len(at), bool)
    has_before = ~np.isin(at, offsets[:-1])
    has_after = ~np.isin(at + 1, offsets[1:])
    for neighbours, there, step in ((left, has_before, -1), (right, has_after, 1)):
        beside = at[there] + step
        used = np.unique(ids[beside])
        whole = np.zeros(len(types), bool)
        whole[used] = [_says_whole(neighbours, types[number]) for number in used.tolist()]
        stays[there] |= whole[ids[beside]]
    return stays


def _is_initial(wordlike: Flags, offsets: Ids) -> Flags:
    """Whether no token with a letter or a digit stands before a token in its sentence: bool[n_tokens]."""
    total = np.zeros(len(wordlike) + 1, np.int64)
    np.cumsum(wordlike, out=total[1:])
    before_sentence = np.repeat(total[offsets[:-1]], np.diff(offsets))
    initial: Flags = total[:-1] == before_sentence
    return initial


# Treebanks -----------------------------------------------------------------------------------------------------------


def _surface_words(treebank: Treebank) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The surface words of a treebank: their form, their parts, and what `learn` calls the word before."""
    forms = treebank.columns["form"]
    words = [forms.vocabulary.types[number] for number in forms.ids.tolist()]
    ranges = {first: (stop, form) for first, stop, form in treebank.ranges.rows()}
    for start, stop in zip(treebank.offsets[:-1].tolist(), treebank.offsets[1:].tolist(), strict=True):
        at, before, initial = start, _START, True
        while at < stop:
            end, surface = ranges.get(at, (at + 1, words[at]))
            yield surface, tuple(words[at:end]), _START if initial else _key(before)
            at, before, initial = end, surface, initial and not is_wordlike(surface)
