"""The doctor's look at one side: bytes, characters, words."""

from __future__ import annotations

import codecs
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Text
from isogloss.data.formats import read_bitext
from isogloss.data.formats.files import check_encoding, name_of, read_whole
from isogloss.errors import DataError, UsageError
from isogloss.tasks.align.doctor import Finding

__all__ = ["Side", "examine_side", "raw_findings", "read_sides"]

_SHOWN = 5
_GLANCE = 1000
"""Lines, from all over a text, that show whether it is tokenised."""
_SEVERAL = 5
"""Different words with punctuation at them that there should be: a few abbreviations have it too."""

_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_BREAK = re.compile("[\u0085\u2028\u2029]")
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d+|#x[0-9a-fA-F]+);")
_TAG = re.compile(r"</?[A-Za-z][\w:.-]*/?>|</?[A-Za-z][\w:.-]*$")
_GLUED = re.compile(
    r"\w[,;!?…]$|\w{3,}[.:]$|\w[)»”\"]+[.,;:!?]*$|^[(«„“\"¿¡]+\w|[^\W\d]\S*[،؛؟।॥、。，！？；：」』）]+$"
)
_ALONE = re.compile(r"[,;!?….:()«»„“”\"¿¡،؛؟।॥、。，！？；：「」『』（）]+$")
_GLUED_TAG = re.compile(r"\w</?[A-Za-z][\w:.-]*/?>|</?[A-Za-z][\w:.-]*/?>\w|[\"']/?>\w")
_SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "MYANMAR", "KHMER")
_EAST_ASIAN = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"}  # written together
_NO_SCRIPT = {"", "MICRO", "FEMININE", "MASCULINE", "MODIFIER", "MATHEMATICAL", "DOUBLE", "SCRIPT", "BLACK", "TURNED"}
_ALIKE = {"LATIN", "CYRILLIC", "GREEK"}  # scripts that share letter shapes


@dataclass(eq=False)
class Side:
    """One side as far as it could be read."""

    role: str
    text: Text
    readable: bool = True

    @cached_property
    def types(self) -> list[str]:
        """The word types."""
        return self.text.vocabulary.types

    @cached_property
    def ids(self) -> NDArray[np.int32]:
        """The word numbers of all lines, one after the other."""
        ids: NDArray[np.int32] = self.text.ids.flat
        return ids

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How often each word type occurs."""
        return np.bincount(self.ids, minlength=len(self.types))

    @cached_property
    def scripts(self) -> list[str]:
        """The script of each word type, empty for words without letters."""
        return [_script_of(word) for word in self.types]

    def per_line(self, of_type: NDArray[Any]) -> NDArray[Any]:
        """The sum, over the words of each line, of a number that each type has."""
        sums = np.zeros(len(self.ids) + 1, np.int32 if of_type.dtype == bool else np.float64)
        np.cumsum(of_type[self.ids], out=sums[1:])
        edges = self.text.ids.offsets - self.text.ids.offsets[0]
        found: NDArray[Any] = sums[edges[1:]] - sums[edges[:-1]]
        return found

    def flags(self, test: Callable[[str], Any], ascii: bool = True) -> NDArray[np.bool_]:
        """For each word type, whether it passes a test; without `ascii`, one that words in ASCII never pass."""
        if ascii:
            return np.fromiter((bool(test(word)) for word in self.types), bool, len(self.types))
        found = np.zeros(len(self.types), bool)
        found[[number for number in self._beyond_ascii if test(self.types[number])]] = True
        return found

    @cached_property
    def _beyond_ascii(self) -> list[int]:
        return [number for number, word in enumerate(self.types) if not word.isascii()]

    def lines_with(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The lines, from 0, in which one of the chosen types stands."""
        at = np.flatnonzero(chosen[self.ids])
        rows: NDArray[np.int64] = np.searchsorted(self.text.ids.offsets - self.text.ids.offsets[0], at, "right") - 1
        rows = rows[np.concatenate([np.ones(min(len(rows), 1), bool), rows[1:] != rows[:-1]])]
        return rows


def finding(
    side: str,
    severity: str,
    code: str,
    lines: Sequence[int] | NDArray[np.int64],
    message: str,
    remedy: str,
    count: int | None = None,
) -> Finding:
    """A finding about lines, which are counted from 0 here; ``{n lines}`` in the message says how many there are."""
    n = len(lines) if count is None else count
    shown = tuple(int(line) + 1 for line in lines[:_SHOWN])
    message = message.replace("{n lines}", f"{n:,} line{'' if n == 1 else 's'}")
    return Finding(severity, code, side, n, message, remedy, shown)


# Bytes ---------------------------------------------------------------------------------------------------------------


def read_sides(source: str, target: str | None, reading: dict[str, Any], findings: list[Finding]) -> list[Side]:
    """Read what can be read, and say what would stop others."""
    paths = [("source", source), ("target", target)] if target is not None else [("both", source)]
    sides = []
    for role, path in paths:
        if target is None and path == "-":
            raise UsageError("<stdin>: the doctor reads a file with both sides twice. Put it in a file first")
        try:
            data = read_whole(path)
        except DataError as problem:
            findings.append(Finding("error", "unreadable", role, 1, str(problem), "Copy or make the file again"))
            continue
        data, encoding = _decoded(data, role, name_of(path), reading, findings)
        if target is None:
            return _split(path, {**reading, "encoding": encoding, "errors": "replace"}, findings)
        sides.append(Side(role, _text(data, name_of(path), reading)))
    return sides


def _text(data: bytes, name: str, reading: dict[str, Any]) -> Text:
    if reading.get("tokenise", "space") == "space":
        return Text.from_bytes(data, name)
    from isogloss.data.tokenise import tokenise_bytes

    return tokenise_bytes(data, reading["tokenise"], name=name)


def _split(path: str, reading: dict[str, Any], findings: list[Finding]) -> list[Side]:
    """The two sides of a file that holds both."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bitext = read_bitext(path, **reading)
    except DataError as problem:
        findings.append(Finding("error", "unreadable", "both", 1, str(problem), "Give two files, or mend that line"))
        return []
    return [Side("source", bitext.source), Side("target", bitext.target)]


def _decoded(data: bytes, role: str, name: str, reading: dict[str, Any], findings: list[Finding]) -> tuple[bytes, str]:
    """The text as UTF-8, and what it was written in; findings about its bytes."""
    encoding = reading.get(f"{role}_encoding")
    if encoding is None:
        encoding = reading.get("encoding", "utf-8")
    known = check_encoding(encoding) or "utf-8"
    option = "--encoding" if role == "both" else f"--{role}-encoding"
    if not data:
        findings.append(finding(role, "error", "empty-file", [], f"{name} is empty", "Is it the right file?", 1))
        return data, encoding
    wide = _wide(data)
    if wide not in (None, known) and known in ("utf-8", "utf-16", "utf-32"):
        message = f"{name} is written in {wide.upper()}, not in {known.upper()}"
        findings.append(finding(role, "error", "encoding", [], message, f"Give {option} {wide}", 1))
        encoding = known = wide
    if known != "utf-8":
        return data.decode(encoding, "replace").removeprefix("\ufeff").encode("utf-8", "replace"), encoding
    if data.startswith(codecs.BOM_UTF8):
        data = data.removeprefix(codecs.BOM_UTF8)
        remedy = "Isogloss leaves it out; `sed -i '1s/^\\xEF\\xBB\\xBF//' FILE` removes it for other programs"
        message = "the file begins with a byte order mark"
        findings.append(finding(role, "note", "byte-order-mark", [0], message, remedy))
    _line_ends(data, role, findings)
    try:
        data.decode()
    except UnicodeDecodeError:
        encoding = _not_utf8(data, role, option, findings)
        return data.decode(encoding, "replace").encode(), encoding
    return data, encoding


def _wide(data: bytes) -> str | None:
    """UTF-16 or UTF-32, by its mark or by where the NUL bytes are."""
    for mark, name in (
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return name
    zero = np.frombuffer(data[:100_000], np.uint8) == 0
    even, odd = zero[::2].mean(), zero[1::2].mean() if len(zero) > 1 else 0.0
    if max(even, odd) < 0.2:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _line_ends(data: bytes, role: str, findings: list[Finding]) -> None:
    n_lines, n_crlf = data.count(b"\n"), data.count(b"\r\n")
    lone = data.count(b"\r") - n_crlf
    if n_lines == 0 and lone:
        remedy = "Write them as LF: tr '\\r' '\\n' < FILE > FIXED"
        message = "lines end in a carriage return alone, so the file is one line"
        findings.append(finding(role, "error", "carriage-returns", [0], message, remedy))
    elif n_crlf:
        severity, how = ("note", "lines end in CRLF") if n_crlf == n_lines else ("warning", "some lines end in CRLF")
        remedy = "Isogloss takes it for white space; `dos2unix FILE` removes it for other programs"
        message = f"{how} ({n_crlf:,} of {n_lines:,})"
        findings.append(finding(role, severity, "crlf", [], message, remedy, n_crlf))


def _not_utf8(data: bytes, role: str, option: str, findings: list[Finding]) -> str:
    """Say so; the encoding that does the least harm."""
    wrong, n_fine = [], 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        if not line.isascii():
            try:
                line.decode()
                n_fine += 1
            except UnicodeDecodeError:
                wrong.append(number)
    guess = _guessed(b"\n".join(lines[number] for number in wrong[:2000]))
    message = "bytes that are not UTF-8 in {n lines}"
    if n_fine > len(wrong) / 9:
        remedy = f"Most of the text is UTF-8, these lines perhaps {guess}: mend them, or go on with --errors replace"
        findings.append(finding(role, "error", "encoding", wrong, message, remedy))
        return "utf-8"
    remedy = f"Perhaps {guess}? Then give {option} {guess.split()[0]}; or --errors replace"
    findings.append(finding(role, "error", "encoding", wrong, message, remedy))
    return guess.split()[0]


def _guessed(sample: bytes) -> str:
    """Which encoding bytes that are not UTF-8 may be in."""
    values = np.frombuffer(sample, np.uint8)
    high = values >= 0x80
    letters = high | ((values | 32) - ord("a") < 26)
    if high.sum() < 0.4 * max(letters.sum(), 1):
        return "cp1252" if ((values >= 0x80) & (values < 0xA0)).any() else "latin-1"
    for name, script in (("shift_jis", "HIRAGANA"), ("euc_jp", "HIRAGANA"), ("euc_kr", "HANGUL"), ("gb18030", "CJK")):
        try:
            text = sample.decode(name)
        except UnicodeDecodeError:
            continue
        if any(_script(letter) == script for letter in text):
            return name
    return "cp1251 (or another of a script other than Latin)"


# Characters and words ------------------------------------------------------------------------------------------------


def examine_side(side: Side, findings: list[Finding]) -> None:
    """All that can be seen on one side alone."""
    if not len(side.text):
        return
    _characters(side, findings)
    _normal_forms(side, findings)
    _tokens(side, findings)
    _case(side, findings)
    _scripts(side, findings)


def _characters(side: Side, findings: list[Finding]) -> None:
    for code, severity, test, message, remedy in (
        (
            "mojibake",
            "warning",
            _is_mojibake,
            "UTF-8 that was read as Windows-1252 and written again (Ã© for é) in {n lines}",
            "If all of the file is so: iconv -f utf-8 -t cp1252 FILE > FIXED; else make the text anew from its source",
        ),
        (
            "replacement-characters",
            "warning",
            lambda word: "\ufffd" in word,
            "U+FFFD, the mark of a character that was lost in an earlier conversion, in {n lines}",
            "Make the text anew from its source, or drop these lines",
        ),
        (
            "control-characters",
            "warning",
            _CONTROL.search,
            "control characters (NUL and the like) in {n lines}",
            "Remove them: LC_ALL=C tr -d '\\000-\\010\\016-\\037\\177' < FILE > FIXED",
        ),
        (
            "line-separators",
            "warning",
            _BREAK.search,
            "U+2028, U+2029 or U+0085, at which other programs break lines, in {n lines}",
            "Isogloss does not; replace them by spaces: sed 's/\\xE2\\x80[\\xA8\\xA9]\\|\\xC2\\x85/ /g' FILE > FIXED",
        ),
        (
            "odd-spaces",
            "warning",
            _SPACE.search,
            "no-break and other spaces that do not separate words in {n lines}",
            "Replace them by spaces, or give --tokenise unicode",
        ),
        (
            "invisible-characters",
            "warning",
            _INVISIBLE.search,
            "invisible characters (zero-width, soft hyphens, directions), which make words differ, in {n lines}",
            "Remove them, or give --tokenise unicode",
        ),
        (
            "entities",
            "note",
            _ENTITY.search,
            "character entities (&amp;, &#39;) in {n lines}",
            "Fine if both sides have them alike; else unescape them (html.unescape in Python)",
        ),
        (
            "tags",
            "note",
            _TAG.search,
            "inline tags in {n lines}",
            "Align without them and put them back afterwards: isogloss transfer-markup FILE --strip -o PLAIN",
        ),
    ):
        chosen = side.flags(test, code in ("control-characters", "entities", "tags"))
        if chosen.any():
            findings.append(finding(side.role, severity, code, side.lines_with(chosen), message, remedy))


def _is_mojibake(word: str) -> bool:
    try:
        raw = word.encode("cp1252")
    except UnicodeEncodeError:
        try:
            raw = word.encode("latin-1")
        except UnicodeEncodeError:
            return False
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _normal_forms(side: Side, findings: list[Finding]) -> None:
    composed = [word if word.isascii() else unicodedata.normalize("NFC", word) for word in side.types]
    odd = np.fromiter((a is not b and a != b for a, b in zip(composed, side.types, strict=True)), bool, len(composed))
    if odd.any():
        twins = len(composed) - len(set(composed))
        mixed = f"; words that are written in both ways: {twins:,}" if twins else ""
        message = f"letters that are not in composed form (NFC) in {{n lines}}{mixed}"
        severity = "warning" if twins else "note"
        findings.append(
            finding(side.role, severity, "normal-form", side.lines_with(odd), message, "Give --normalise NFC")
        )
    curly = side.flags(lambda word: "’" in word, False)
    straight = side.flags(lambda word: "'" in word and len(word) > 1)
    uses = [int(side.counts[chosen].sum()) for chosen in (curly, straight)]
    if min(uses) > 0.02 * sum(uses) and min(uses) > 2:
        rarer = curly if uses[0] < uses[1] else straight
        message = f"apostrophes are written in two ways: ’ {uses[0]:,} times, ' {uses[1]:,} times"
        remedy = 'Write them in one: sed "s/’/\'/g" FILE > FIXED'
        findings.append(
            finding(side.role, "note", "apostrophes", side.lines_with(rarer), message, remedy, count=min(uses))
        )


def _tokens(side: Side, findings: list[Finding]) -> None:
    spaceless = np.fromiter((script in _SPACELESS for script in side.scripts), bool, len(side.types))
    n_spaceless = int(side.counts[spaceless].sum())
    if n_spaceless:
        sizes = np.fromiter(map(len, side.types), np.int64, len(side.types))
        mean = float((sizes * side.counts)[spaceless].sum()) / n_spaceless
        if mean > 6:
            message = f"words in a script without spaces have {mean:.0f} letters on average: the text is not segmented"
            remedy = (
                "Segment it with a tool for its language, or give --tokenise unicode, which cuts it into characters"
            )
            findings.append(
                finding(side.role, "warning", "unsegmented", side.lines_with(spaceless & (sizes > 6)), message, remedy)
            )
            return
    glued, n_glued, n_alone = _punctuation(side)
    share = n_glued / max(n_glued + n_alone, 1)
    several = n_glued > _SEVERAL and np.count_nonzero(glued) >= _SEVERAL
    if several and share > 0.3:
        message = f"the text does not look tokenised: {share:.0%} of the punctuation marks cling to words"
        remedy = "Give --tokenise unicode, or tokenise it with a tool for its language"
        findings.append(finding(side.role, "warning", "untokenised", side.lines_with(glued), message, remedy))
    elif several and share > 0.05:
        message = f"some lines do not look tokenised: {share:.0%} of the punctuation marks cling to words"
        remedy = "Were two kinds of text put together? Tokenise all of it alike"
        findings.append(finding(side.role, "note", "unevenly-tokenised", side.lines_with(glued), message, remedy))


def _punctuation(side: Side) -> tuple[NDArray[np.bool_], int, int]:
    """Words that punctuation clings to, how often they occur, and how often punctuation stands alone."""
    glued = side.flags(lambda word: _GLUED.search(_ENTITY.sub("", word) if "&" in word else word))
    n_glued, n_alone = (int(side.counts[chosen].sum()) for chosen in (glued, side.flags(_ALONE.match)))
    return glued, n_glued, n_alone


def raw_findings(text: Text, role: str) -> list[Finding]:
    """What speaks for a text that nobody tokenised, from a glance at lines all over it.

    Entities alone do not: tokenisers write them where punctuation stands apart.
    """
    lines = range(0, len(text), max(1, len(text) // _GLANCE))[:_GLANCE]
    side = Side(role, Text.of((text.tokens(line) for line in lines), text.name))
    found: list[Finding] = []
    _tokens(side, found)
    found = [one for one in found if one.code != "unevenly-tokenised"]
    tags, entities = side.flags(_GLUED_TAG.search), side.flags(_ENTITY.search)
    _, n_glued, n_alone = _punctuation(side)
    marked = side.lines_with(tags | entities if n_alone <= n_glued else tags)
    if len(marked) > 1 and len(marked) >= 0.01 * len(side.text):
        example = next(word for word, tag, entity in zip(side.types, tags, entities, strict=True) if tag or entity)
        message = f"the text has markup in its words, such as {example}"
        remedy = (
            "Give --tokenise unicode, which sets it apart; or take it out first: isogloss transfer-markup FILE --strip"
        )
        found.append(finding(role, "warning", "markup", marked, message, remedy))
    return found


def _case(side: Side, findings: list[Finding]) -> None:
    upper = side.flags(lambda word: len(word) > 1 and word.isupper())
    cased = side.flags(lambda word: len(word) > 1 and (word.isupper() or word.lower() != word or word.upper() != word))
    n_upper, n_cased = side.per_line(upper), side.per_line(cased)
    shouting = np.flatnonzero((n_cased >= 3) & (n_upper == n_cased))
    if shouting.size and shouting.size < 0.5 * len(side.text):
        remedy = "Nothing to do: words are compared without case, unless --keep-case is given"
        findings.append(
            finding(side.role, "note", "capitals", shouting, "nothing but capital letters in {n lines}", remedy)
        )


def _scripts(side: Side, findings: list[Finding]) -> None:
    amounts: Counter[str] = Counter()
    for script, count in zip(side.scripts, side.counts.tolist(), strict=True):
        amounts[script] += count
    total = sum(count for script, count in amounts.items() if script)
    if not total:
        return
    usual = {script for script, count in amounts.items() if count >= 0.05 * total} | {""}
    if usual & _EAST_ASIAN:
        usual |= _EAST_ASIAN
    letters = np.fromiter((script != "" for script in side.scripts), bool, len(side.types))
    foreign = np.fromiter((script not in usual for script in side.scripts), bool, len(side.types))
    n_foreign, n_letters = side.per_line(foreign), side.per_line(letters)
    lines = np.flatnonzero((n_foreign >= 2) & (n_foreign > 0.6 * n_letters))
    if lines.size:
        common = Counter({s: c for s, c in amounts.items() if s not in usual}).most_common(2)
        message = f"another script ({', '.join(s.title() for s, _ in common)}) than in the rest in {{n lines}}"
        remedy = "Another language? drop them: isogloss filter SOURCE TARGET -o KEPT_SOURCE KEPT_TARGET"
        findings.append(finding(side.role, "warning", "other-script", lines, message, remedy))
    mixed = side.flags(_mixes_scripts, False)
    if mixed.any():
        message = "words that mix letters of Latin, Cyrillic or Greek, which only look alike, in {n lines}"
        remedy = "Mend them at their source: such words match no others"
        findings.append(finding(side.role, "warning", "mixed-script", side.lines_with(mixed), message, remedy))


@lru_cache(1 << 16)
def _script(letter: str) -> str:
    """The script of a letter by its Unicode name, empty if it is none."""
    if not letter.isalpha():
        return ""
    name = re.split("[ -]", unicodedata.name(letter, "").replace("FULLWIDTH ", "").replace("HALFWIDTH ", ""))
    return "" if name[0] in _NO_SCRIPT else name[0]


def _script_of(word: str) -> str:
    if word.isascii():
        return "LATIN" if any(map(str.isalpha, word)) else ""
    return next((script for script in map(_script, word) if script), "")


def _mixes_scripts(word: str) -> bool:
    return len({_script(letter) for letter in word} & _ALIKE) > 1
