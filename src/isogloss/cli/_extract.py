"""Tasks of `isogloss extract`: how each is trained, what files it reads, and how it is scored.

A task is a line in `TASKS`; its estimator has `fit(text, dev, progress, checkpoint=..., resume=...)`, `predict(text)`
with a value that has `to_bytes`, `trace_` and `tuning_`, and a saved kind that begins with ``extract.``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from isogloss.cli._treebanks import table_lines
from isogloss.errors import UsageError
from isogloss.estimator import Estimator
from isogloss.tasks.extract.options import EntityOptions

if TYPE_CHECKING:
    from isogloss.data.mentions import Mentions

__all__ = ["KINDS", "SYNTAX", "TASKS", "Task", "read_input", "read_marked", "score_lines", "task_of"]

SYNTAX = ("none", "given", "hidden-dependency", "hidden-constituency")
"""What trees an extractor looks at: none, those of the file, or some that it sums over, which nobody annotated."""
KINDS = ("columns",)
"""What files with names and relations are in."""


class Task(NamedTuple):
    """One thing that can be extracted."""

    estimator: str
    """Where its class lives, as ``module:class``."""
    options: type[Estimator]
    syntax: tuple[str, ...]
    """Which of `SYNTAX` make sense for it."""
    read: Callable[[str, str | None, str, str], Any]
    """The text that it learns from, and that it is scored against: path, format, encoding, errors."""
    described: Callable[[Any, Any], str]
    """What was learnt, in a line: of the estimator and the text."""
    summary: Callable[[Any, Any], dict[str, Any]]
    """The same for ``--json``."""

    def made(self, options: Mapping[str, Any]) -> Any:
        """The estimator."""
        module, _, name = self.estimator.partition(":")
        return getattr(import_module(module), name)(**options)


def read_marked(path: str, format: str | None, encoding: str, errors: str) -> Mentions:
    """Sentences with names, or with names and relations."""
    from isogloss.data.mentions import Mentions

    return Mentions.read(path, format, encoding=encoding, errors=errors)


def _described_names(tagger: Any, text: Mentions) -> str:
    kinds = ", ".join(tagger.types_)
    line = (
        f"{len(tagger.types_)} types of names ({kinds}), {tagger.n_features_:,} attributes, from {text.n_entities:,} "
    )
    return f"{line}names in {len(text):,} sentences, {text.n_words:,} words"


def _summary_of_names(tagger: Any, text: Mentions) -> dict[str, Any]:
    return {
        "sentences": len(text),
        "words": text.n_words,
        "entities": text.n_entities,
        "types": list(tagger.types_),
        "features": tagger.n_features_,
    }


TASKS = {
    "entities": Task(
        "isogloss.tasks.extract:EntityTagger", EntityOptions, ("none",), read_marked, _described_names,
        _summary_of_names,
    ),
}  # fmt: skip
"""By the name that ``--task`` takes; the second part of the kind of its models begins with it."""


def task_of(name: str, syntax: str) -> Task:
    """A task, once it is known that it can use such syntax."""
    task = TASKS[name]
    if syntax not in task.syntax:
        known = " or ".join(task.syntax)
        raise UsageError(
            f"--syntax {syntax}: {name} are found without trees. Leave --syntax out (it is {known} for this task)"
            if task.syntax == ("none",)
            else f"--syntax {syntax}: for {name} it is {known}"
        )
    return task


def read_input(
    path: str, format: str, encoding: str, errors: str, tokenise: Callable[[bytes, str], Any]
) -> Any:  # fmt: skip
    """What a model is applied to: a file with columns or the like, else plain text, a sentence a line."""
    from isogloss.data.formats import parse_mentions, read_bytes
    from isogloss.data.formats.files import name_of
    from isogloss.data.formats.mentions import format_of

    data, name = read_bytes(path, encoding=encoding, errors=errors), name_of(path)
    known = format_of(data) if format == "auto" else None if format == "text" else format
    return tokenise(data, name) if known is None else parse_mentions(data, name, format=known)


def score_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """What a score says, for people."""
    rows = []
    for name in ("precision", "recall", "f1"):
        low, high = told["intervals"].get(name, (told[name], told[name]))
        rows.append((name, f"{told[name]:.2f}", f"({low:.2f} to {high:.2f})"))
    yield from table_lines(("", told["average"], ""), rows, 1)
    yield f"{told['entities']:,} names in {told['n']:,} sentences, {told['found']:,} found, {told['right']:,} right"
    if told["types"]:
        yield ""
        kinds = [
            (kind, f"{row['entities']:,}", *(f"{row[m]:.2f}" for m in ("precision", "recall", "f1")))
            for kind, row in told["types"].items()
        ]
        yield from table_lines(("type", "names", "precision", "recall", "f1"), kinds, 1)
    yield told["signature"]
    if "against" in told:
        other = told["against"]
        low, high = other["interval"]
        spread = f"({low:+.2f} to {high:+.2f})"
        yield f"f1 {other['delta']:+.2f} {spread} against {other['second']:.2f}, p = {other['p_value']:.4f}"
