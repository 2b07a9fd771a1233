"""What `isogloss view` does with sentences, whatever is drawn of them: a page, one picture, or characters."""

from __future__ import annotations

import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from isogloss.cli._common import check_output, compiling, is_standard_output, say, write_result
from isogloss.cli._treebanks import read_treebank, standard_input_once
from isogloss.errors import DataError, UsageError

if TYPE_CHECKING:
    from isogloss.data.treebank import Treebank

__all__ = ["Drawable", "Drawing", "Painters", "SideBySide", "first_lines", "short_names"]

_LOOKED_AT = 1 << 16


def first_lines(path: str) -> bytes:
    """What a file begins with; nothing of a pipe, which could not be read again."""
    if not os.path.isfile(path):
        return b""
    from isogloss.data.formats.files import pieces

    data = b""
    for piece in pieces(path, _LOOKED_AT):
        data += piece
        if len(data) >= _LOOKED_AT:
            return data[: data.rfind(b"\n", 0, _LOOKED_AT) + 1]
    return data


def short_names(files: Sequence[str]) -> tuple[str, ...]:
    """Names of files without their folders, unless they are the same."""
    names = tuple(os.path.basename(path) for path in files)
    return tuple(files) if len(set(names)) < len(names) else names


class Painters(NamedTuple):
    """Functions of `isogloss.show` that draw a kind of dictionary."""

    page: Callable[..., Iterator[str]]
    svg: Callable[..., str]
    terminal: Callable[..., str]


class Drawable(ABC):
    """Sentences that can be drawn, each as a dictionary of `isogloss.show`."""

    noun: ClassVar[str]
    """What a picture has one of."""
    most: ClassVar[tuple[int, int]]
    """How many are drawn on a page, and in a terminal, if nobody says."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What the page is called."""

    @abstractmethod
    def choose(self, sentences: Sequence[int] | None, limit: int, quiet: bool) -> list[int]:
        """The sentences to show, counted from 0; of those asked for, from 1."""

    @abstractmethod
    def as_dict(self, sentence: int) -> dict[str, Any]:
        """One of them."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """What stands at the top of the page."""

    @abstractmethod
    def painters(self) -> Painters:
        """Who draws the dictionaries."""

    def drawings(self, chosen: Sequence[int], colour: bool) -> Iterator[str]:
        """With characters."""
        width, draw = max(shutil.get_terminal_size().columns, 20), self.painters().terminal
        for number, sentence in enumerate(chosen):
            yield ("\n" if number else "") + draw(self.as_dict(sentence), width=width, colour=colour) + "\n"

    def svg(self, chosen: Sequence[int], output: str) -> str:
        """A single picture."""
        if len(chosen) != 1:
            raise UsageError(
                f"{output}: a picture has one {self.noun}, and there are {len(chosen):,} to draw. Choose one with "
                f"--line N, or write a page: -o {self.noun}s.html"
            )
        return self.painters().svg(self.as_dict(chosen[0])) + "\n"


@dataclass(frozen=True)
class SideBySide(Drawable):
    """Sentences of one file, or of two over the same words, with what differs."""

    most: ClassVar[tuple[int, int]] = (500, 10)
    many: ClassVar[str] = "sentences"
    """What a file has many of."""

    first: Any
    second: Any
    names: tuple[str, ...]

    @property
    def title(self) -> str:
        return " – ".join(self.names)

    @abstractmethod
    def differences(self) -> Sequence[int]:
        """How much of each sentence is another in the second file."""

    def choose(self, sentences: Sequence[int] | None, limit: int, quiet: bool) -> list[int]:
        """The sentences to show, counted from 0; of two files those that differ, the most different first."""
        n = len(self.first)
        for number in sentences or ():
            if number > n:
                raise UsageError(
                    f"--line {number}: {self.first.name} has {n:,} {self.many}. Give a number from 1 to {n}"
                )
        if sentences:
            return [number - 1 for number in sentences]
        if n == 0:
            raise DataError(
                f"{self.first.name}: has no {self.many}, so there is nothing to draw. Is it the right file?"
            )
        if self.second is None:
            if n > limit:
                say(f"the first {limit:,} of {n:,} {self.many} are shown; --limit and --line choose others", quiet)
            return list(range(min(limit, n)))
        counts = self.differences()
        order = sorted((k for k in range(n) if counts[k]), key=lambda k: -counts[k])
        if not order:
            say(f"all {n:,} {self.many} are the same in both; --line draws one", quiet)
        else:
            shown = "they are" if len(order) <= limit else f"the {limit:,} most different are"
            say(
                f"{len(order):,} of {n:,} {self.many} differ, and {shown} shown; --limit and --line choose others",
                quiet,
            )
        return order[:limit]


class Drawing(NamedTuple):
    """How sentences are to be read and drawn."""

    output: str | None
    limit: int | None
    terminal: bool
    sentences: Sequence[int] | None
    title: str | None
    quiet: bool
    format: str
    encoding: str
    errors: str

    def read(self, path: str) -> Treebank:
        """A treebank in the format that was asked for."""
        return read_treebank(path, self.encoding, self.errors, None if self.format == "auto" else self.format)

    def draw(self, files: Sequence[str], make: Callable[[], Drawable], job: tuple[str, str]) -> None:
        """Draw what `make` reads from files; `job` is what is compiled for it, and how long that takes."""
        standard_input_once(*files)
        check_output(self.output, files)
        in_terminal = is_standard_output(self.output) and sys.stdout is not None and sys.stdout.isatty()
        as_svg = self.output is not None and self.output.lower().endswith(".svg") and not self.terminal
        as_characters = self.terminal or in_terminal
        with compiling(job[0], self.quiet, job[1]):
            shown = make()
            quiet = self.quiet or self.limit is not None or as_svg
            chosen = shown.choose(self.sentences, self.limit or shown.most[as_characters], quiet)
            if as_svg:
                assert self.output is not None
                write_result(self.output, shown.svg(chosen, self.output))
            elif as_characters:
                colour = in_terminal and not os.environ.get("NO_COLOR")
                write_result(self.output, shown.drawings(chosen, colour=colour))
            else:
                drawn, title = map(shown.as_dict, chosen), self.title or shown.title
                write_result(self.output, shown.painters().page(drawn, title=title, summary=shown.summary()))
