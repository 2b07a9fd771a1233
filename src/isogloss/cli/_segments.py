"""What `isogloss align` is told of morphemes: the options, what they exclude, and the aligner that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

import typer

from isogloss.cli._common import choice
from isogloss.cli._options import added, declared, described, flag_of
from isogloss.errors import UsageError
from isogloss.tasks.align.options import SegmentedOptions

__all__ = ["AskedSegments", "with_segments"]

PANEL = "Morphemes"
SIDES = ("both", "source", "target")
_REFUSED = {
    "model": "a saved model cuts words as its training did",
    "aligner": "words and their morphemes are linked by HMMs",
    "memory": "the text has to lie in memory",
    "chunk": "morphemes are learnt from the whole text",
    "engine": "the work is done in this process",
}
"""Options that --segment excludes, and why."""


def _segmenter(side: str) -> Any:
    return typer.Option(
        f"--{side}-segmenter",
        metavar="MODEL",
        rich_help_panel=PANEL,
        help=f"With --segment: how the words of the {side} are cut, as `isogloss segment train` has saved it; learnt "
        "from the text without it.",
    )


def _number(name: str, metavar: str) -> Any:
    help = described(declared(SegmentedOptions, name), SegmentedOptions)
    return typer.Option(flag_of(name), metavar=metavar, rich_help_panel=PANEL, show_default=False, help=help)


@dataclass(frozen=True)
class AskedSegments:
    """What a command was told; None where nothing was said."""

    segment: Annotated[
        str | None,
        choice(
            *SIDES, option="--segment", panel=PANEL,
            help="Cut the words of these sides into morphemes, and link words by their morphemes as well: for "
            "languages with many forms of a word.",
        ),
    ] = None  # fmt: skip
    morpheme_weight: Annotated[float | None, _number("morpheme_weight", "X")] = None
    cut_length: Annotated[int | None, _number("cut_length", "N")] = None
    cut_count: Annotated[int | None, _number("cut_count", "N")] = None
    source_segmenter: Annotated[str | None, _segmenter("source")] = None
    target_segmenter: Annotated[str | None, _segmenter("target")] = None

    def check(self, **others: object) -> None:
        """Refuse what does not go together; `others` are options that exclude --segment, by name."""
        if self.segment is None:
            for name, value in (self._numbers | self._segmenters).items():
                if value is not None:
                    raise UsageError(f"{flag_of(name)} says nothing without --segment. Add --segment {_side_of(name)}")
            return
        for name, value in others.items():
            if value:
                raise UsageError(f"--{name} does not go with --segment: {_REFUSED[name]}. Leave out one of the two")
        for side in ("source", "target"):
            if self._segmenters[f"{side}_segmenter"] is not None and self.segment not in (side, "both"):
                raise UsageError(
                    f"--{side}-segmenter says nothing with --segment {self.segment}. Leave it out, or take both sides"
                )

    @property
    def _numbers(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("morpheme_weight", "cut_length", "cut_count")}

    @property
    def _segmenters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("source_segmenter", "target_segmenter")}

    def new(self, options: dict[str, Any]) -> Any:
        """The aligner, with options that are checked."""
        from isogloss.tasks.align import SegmentedAligner

        own = {"segment": self.segment, **self._numbers}
        made = SegmentedAligner(**options, **{name: value for name, value in own.items() if value is not None})
        made.check_params()
        return made

    def segmenters(self, threads: int | None) -> dict[str, Any]:
        """Saved segmenters, for `SegmentedAligner.fit`."""
        from isogloss.cli._models import load_segmenter

        return {name: load_segmenter(path, threads) for name, path in self._segmenters.items() if path is not None}


def _side_of(name: str) -> str:
    """The side that an option speaks of.

    >>> _side_of("target_segmenter"), _side_of("morpheme_weight")
    ('target', 'both')
    """
    side = name.partition("_")[0]
    return side if side in SIDES else "both"


def with_segments(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `segments`, an `AskedSegments`, an option for each field, as Typer looks for them."""
    hints = get_type_hints(AskedSegments, include_extras=True)
    made = {field.name: (hints[field.name], field.default) for field in fields(AskedSegments)}
    return added(command, "segments", made, lambda own, given: command(**own, segments=AskedSegments(**given)))
