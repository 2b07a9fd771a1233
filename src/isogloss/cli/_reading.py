"""How commands are told to read a bitext: the same options for all of them, handed over as one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, get_type_hints

from isogloss.cli._common import (
    Columns,
    Encoding,
    Errors,
    Format,
    Languages,
    Normalise,
    SourceEncoding,
    TargetEncoding,
    Tokenise,
    two,
)
from isogloss.cli._memory import as_remembered, reading_of
from isogloss.cli._options import added

__all__ = ["ReadingOptions", "with_reading"]


@dataclass(frozen=True)
class ReadingOptions:
    """What a command was told; None where nothing was said."""

    format: Format = "auto"
    encoding: Encoding = "utf-8"
    source_encoding: SourceEncoding = None
    target_encoding: TargetEncoding = None
    errors: Errors = "strict"
    tokenise: Tokenise = None
    normalise: Normalise = None
    columns: Columns = None
    languages: Languages = None

    def of(self, model: str | None = None, source: str | None = None) -> dict[str, Any]:
        """The same as `read_bitext` and `stream_bitext` take it.

        With a saved model, the text `source` is read as that of the model was, unless something else was said; see
        `as_remembered`.
        """
        asked = {
            "tokenise": self.tokenise,
            "normalise": self.normalise,
            "languages": None if self.languages is None else two(str, "--languages en,fr")(self.languages),
        }
        columns = None if self.columns is None else two(int, "--columns 0,1")(self.columns)
        return asdict(self) | {"columns": columns} | as_remembered(asked, reading_of(model), model, source)


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `asked`, a `ReadingOptions`, an option for each field, as Typer looks for them."""
    hints = get_type_hints(ReadingOptions, include_extras=True)
    made = {field.name: (hints[field.name], field.default) for field in fields(ReadingOptions)}
    return added(command, "asked", made, lambda own, given: command(**own, asked=ReadingOptions(**given)))
