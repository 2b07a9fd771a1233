"""Tasks of `isogloss extract`: how each is trained, what files it reads, and how it is scored.

A task is a line in `TASKS`; its estimator has `fit(text, dev, progress, checkpoint=..., resume=...)`, `predict(text)`
with a value that has `to_bytes`, `trace_` and `tuning_`, and a saved kind that begins with ``extract.``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from isogloss.cli._common import say
from isogloss.cli._treebanks import table_lines
from isogloss.errors import UsageError
from isogloss.estimator import Estimator
from isogloss.tasks.extract.options import EntityOptions
from isogloss.tasks.extract.pair_options import RelationOptions, RoleOptions

if TYPE_CHECKING:
    from isogloss.data.mentions import Mentions
    from isogloss.data.propositions import Propositions

__all__ = [
    "KINDS",
    "ROLES",
    "SYNTAX",
    "TASKS",
    "Task",
    "read_input",
    "read_marked",
    "read_scored",
    "score_lines",
    "scores_of",
    "task_of",
    "with_types_of",
]

SYNTAX = ("none", "given", "joint", "hidden-dependency", "hidden-constituency")
"""What trees an extractor looks at: none, given ones, those of the file in learning alone, or hidden ones that it sums
over, which nobody annotated."""
KINDS = ("semeval", "conll04", "columns")
"""What files with names and relations are in."""
_MEASURES = ("precision", "recall", "f1", "unlabelled", "senses", "semantic")
_COUNTED = (("names", "entities", "types"), ("relations", "relations", "labels"), ("arguments", "arguments", ""))
"""What scores count: the noun, its count, and what there is a line for."""
ROLES = "up"
"""What files with predicates and roles are in: Universal Propositions."""


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
    helpers: tuple[str, ...] = ()
    """Which of a tagger and a parser its estimator can be given."""

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


def read_propositions(path: str, format: str | None, encoding: str, errors: str) -> Propositions:
    """Sentences with predicates and roles; they are in one format."""
    from isogloss.data.propositions import Propositions

    if format not in (None, ROLES):
        raise UsageError(f"--format {format}: files of roles are in the format of Universal Propositions, {ROLES}")
    return Propositions.read(path, encoding=encoding, errors=errors)


def _described_relations(extractor: Any, text: Mentions) -> str:
    kinds = ", ".join(dict.fromkeys(label.removesuffix("^-1") for label in extractor.labels_))
    line = f"relations {kinds}, {extractor.n_features_:,} weights, from {text.n_relations:,} relations in "
    return f"{line}{len(text):,} sentences with {text.n_entities:,} names"


def _summary_of_relations(extractor: Any, text: Mentions) -> dict[str, Any]:
    return {
        "sentences": len(text), "words": text.n_words, "entities": text.n_entities, "relations": text.n_relations,
        "labels": list(extractor.labels_), "features": extractor.n_features_,
    }  # fmt: skip


def _described_roles(labeller: Any, text: Propositions) -> str:
    line = f"{len(labeller.roles_)} roles, {labeller.n_features_:,} weights, from {text.n_arguments:,} arguments of "
    return f"{line}{text.n_predicates:,} predicates in {len(text):,} sentences"


def _summary_of_roles(labeller: Any, text: Propositions) -> dict[str, Any]:
    return {
        "sentences": len(text), "predicates": text.n_predicates, "arguments": text.n_arguments,
        "roles": list(labeller.roles_), "features": labeller.n_features_,
    }  # fmt: skip


TASKS = {
    "entities": Task(
        "isogloss.tasks.extract:EntityTagger", EntityOptions, ("none",), read_marked, _described_names,
        _summary_of_names,
    ),
    "relations": Task(
        "isogloss.tasks.extract:RelationExtractor", RelationOptions,
        ("none", "given", "hidden-dependency", "hidden-constituency"), read_marked, _described_relations,
        _summary_of_relations, ("tagger", "parser"),
    ),
    "roles": Task(
        "isogloss.tasks.extract:RoleLabeller", RoleOptions, ("none", "given", "joint", "hidden-dependency"),
        read_propositions, _described_roles, _summary_of_roles,
    ),
}  # fmt: skip
"""By the name that ``--task`` takes; the second part of the kind of its models begins with it."""


def task_of(name: str, syntax: str | None) -> Task:
    """A task, once it is known that it can use such syntax."""
    task = TASKS[name]
    if syntax is not None and syntax not in task.syntax:
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
    from isogloss.data.formats.propositions import are_propositions, parse_propositions

    data, name = read_bytes(path, encoding=encoding, errors=errors), name_of(path)
    if format == ROLES or (format == "auto" and are_propositions(data)):
        return parse_propositions(data, name)
    known = format_of(data) if format == "auto" else None if format == "text" else format
    return tokenise(data, name) if known is None else parse_mentions(data, name, format=known)


def read_scored(found: str, gold: str, format: str, encoding: str, errors: str) -> tuple[Any, Any]:
    """What was found, and what is right: names, relations or roles, as the file of gold says.

    Of SemEval, what was found is a number and a label a line, as `isogloss extract apply` writes it.
    """
    from isogloss.data.formats.relations import MarkedSource, read_answers

    right = read_input(gold, format, encoding, errors, _no_text)
    if isinstance(getattr(right, "source", None), MarkedSource):
        return read_answers(found, right, encoding, errors), right
    return read_input(found, format, encoding, errors, _no_text), right


def with_types_of(found: Any, gold: Any, quiet: bool) -> Any:
    """Names with the types of gold, where those of two corpora are the same under other names."""
    from isogloss.data.mentions import Mentions
    from isogloss.data.name_types import renamed, shared_types

    if not isinstance(found, Mentions) or not isinstance(gold, Mentions) or gold.n_relations:
        return found
    names = shared_types(*({kind for s in range(len(own)) for _, _, kind in own.entities(s)} for own in (found, gold)))
    if names:
        say(
            f"types of names count as the same: {', '.join(f'{ours} as {theirs}' for ours, theirs in names.items())}",
            quiet,
        )
        return renamed(found, names)
    return found


def _no_text(data: bytes, name: str) -> Any:
    from isogloss.data.formats import parse_mentions

    return parse_mentions(data, name)


def scores_of(gold: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What scores, and what compares two systems, for what a file of gold has marked."""
    from isogloss import metrics
    from isogloss.data.propositions import Propositions

    if isinstance(gold, Propositions):
        return metrics.score_roles, metrics.compare_roles
    if gold.n_relations:
        return metrics.score_relations, metrics.compare_relations
    return metrics.score_entities, metrics.compare_entities


def score_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """What a score says, for people."""
    rows = []
    measures = [name for name in _MEASURES if name in told]
    for name in measures:
        low, high = told["intervals"].get(name, (told[name], told[name]))
        rows.append((name, f"{told[name]:.2f}", f"({low:.2f} to {high:.2f})"))
    yield from table_lines(("", told["average"], ""), rows, 1)
    noun, things, by = next(row for row in _COUNTED if row[1] in told)
    yield f"{told[things]:,} {noun} in {told['n']:,} sentences, {told['found']:,} found, {told['right']:,} right"
    if told.get(by):
        yield ""
        kinds = [
            (kind, f"{row[things]:,}", *(f"{row[m]:.2f}" for m in ("precision", "recall", "f1")))
            for kind, row in told[by].items()
        ]
        yield from table_lines((by.removesuffix("s"), noun, "precision", "recall", "f1"), kinds, 1)
    yield told["signature"]
    if "against" in told:
        other = told["against"]
        low, high = other["interval"]
        spread = f"({low:+.2f} to {high:+.2f})"
        yield f"f1 {other['delta']:+.2f} {spread} against {other['second']:.2f}, p = {other['p_value']:.4f}"
