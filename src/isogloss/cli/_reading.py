"""How commands are told to read a bitext: the same options for all of them, handed over as one object."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import wraps
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
    """Give a command that takes `asked`, a `ReadingOptions`, an option for each field, as Typer looks for them.

    An option that the command declares itself stays its own, and is handed over both ways.
    """
    signature = inspect.signature(command)
    own = [parameter for name, parameter in signature.parameters.items() if name != "asked"]
    known = {parameter.name for parameter in own}

    @wraps(command)
    def told(**given: Any) -> None:
        asked = ReadingOptions(**{field.name: given[field.name] for field in fields(ReadingOptions)})
        command(**{parameter.name: given[parameter.name] for parameter in own}, asked=asked)

    hints = get_type_hints(ReadingOptions, include_extras=True) | get_type_hints(command, include_extras=True)
    further = [
        inspect.Parameter(field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=field.default)
        for field in fields(ReadingOptions)
        if field.name not in known
    ]
    parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in (*own, *further)]
    told.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    told.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return told
