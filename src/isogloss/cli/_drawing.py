"""What `isogloss view` does with trees, whatever is drawn of them: a page, one picture, or characters."""

from __future__ import annotations

import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from isogloss.cli._common import check_output, compiling, is_standard_output, write_result
from isogloss.cli._treebanks import read_treebank, standard_input_once
from isogloss.errors import UsageError

if TYPE_CHECKING:
    from isogloss.data.treebank import Treebank

__all__ = ["Drawable", "Drawing", "Painters"]


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


class Drawing(NamedTuple):
    """How trees are to be read and drawn."""

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
