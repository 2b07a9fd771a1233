"""The ways of `isogloss tag train`: from tags, from a dictionary, from neighbours, along links."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isogloss.cli._common import progress_for, warn
from isogloss.cli._evidence import check_bitext
from isogloss.cli._options import flag_of
from isogloss.cli._treebanks import read_either, read_treebank
from isogloss.errors import TreebankError, UsageError
from isogloss.estimator import Estimator
from isogloss.tasks.tag.options import CrfOptions, DictionaryOptions, GraphOptions, ProjectedOptions

if TYPE_CHECKING:
    from isogloss.data.bitext import Text
    from isogloss.data.tag_dictionary import TagDictionary
    from isogloss.data.treebank import Treebank

__all__ = ["Request", "Trained", "way_of"]

FEW_COVERED = 10.0
"""Percent of the words of a text: with fewer in the dictionary, the two hardly belong together."""
MANY_LABELS = 50
"""With neighbours, time and memory grow with the cube of these."""


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    train: str | None
    dev: str | None
    columns: list[str]
    dictionary: str | None
    bitext: tuple[str, str] | None
    source_tags: str | None
    links: str | None
    graph: bool
    unlabelled: str | None
    adapt: str | None
    options: Mapping[str, Any]
    """Of learning, that were given."""
    reading: Mapping[str, str]
    """Encoding, and what to do about errors in it."""
    sides: Mapping[str, Any]
    """Encodings of the two files of the bitext, where they are others."""
    tokenise: str | None
    """How plain text is cut into words; at spaces unless something is said."""
    lookup: Mapping[str, str]
    """Format and tagset of the dictionary, and what to do about tags that are not known."""
    threads: int | None
    quiet: bool
    checkpoint: str | None = None
    """Where learning is kept when it is interrupted."""
    resume: bool = False

    def files(self) -> list[str]:
        """All that are read."""
        named = [self.train, self.dev, self.dictionary, *(self.bitext or ()), self.source_tags, self.links]
        return [name for name in [*named, self.unlabelled, self.adapt] if name is not None]

    def checkpoints(self) -> list[str]:
        """One for each column; `Tagger` names them."""
        return [] if self.checkpoint is None else [f"{self.checkpoint}.{column}" for column in self.columns]

    def treebank(self, path: str) -> Treebank:
        return read_treebank(path, self.reading["encoding"], self.reading["errors"])

    def text(self, path: str) -> Text | Treebank:
        return read_either(path, "auto", **self.reading, tokenise=self.tokenise or "space")

    def tagged(self, path: str | None) -> Treebank | None:
        """A treebank to choose on, which has tags; None for None."""
        if path is None:
            return None
        found = self.treebank(path)
        for column in self.columns:
            if not has_tags(found, column):
                raise TreebankError(
                    f"{found.name}: no word has anything in column {column}, so there is nothing to choose on. Is it "
                    "the right file? --dev needs sentences with tags"
                )
        return found

    def read_dictionary(self, path: str) -> TagDictionary:
        from isogloss.data.tag_dictionary import TagDictionary

        return TagDictionary.read(path, **self.lookup, **self.reading)


@dataclass(frozen=True)
class Trained:
    """A tagger, and what is said of it."""

    tagger: Any
    lines: list[str]
    summary: dict[str, Any]


class _Way(ABC):
    """One way to train."""

    name: str
    options: type[Estimator]
    """What is declared of its estimator."""
    reads: tuple[str, ...]
    """Files."""
    several = False
    """Whether it learns several columns."""
    resumes = False
    """Whether it goes on where it was interrupted."""

    def check(self, request: Request) -> None:
        """Say what is missing, and what makes no sense, before any work."""
        for option, value in request.options.items():
            declared = self.options._options.get(option)
            if declared is None:
                raise UsageError(f"{flag_of(option)} has no meaning {self.name}; leave it out")
            if not declared.allows(value):
                raise UsageError(f"{flag_of(option)} should be {declared.wanted} {self.name}, not {value}")
        for name in ("train", "dev", "source_tags", "links", "unlabelled", "adapt"):
            if getattr(request, name) is not None and name not in self.reads:
                said = "TRAIN" if name == "train" else f"--{name.replace('_', '-')}"
                raise UsageError(f"{said} has no meaning {self.name}; leave it out")
        for name, encoding in request.sides.items():
            if encoding is not None and request.bitext is None:
                raise UsageError(f"--{name.replace('_', '-')} has no meaning {self.name}; give --encoding")
        if request.resume and not self.resumes:
            raise UsageError(f"--resume has no meaning {self.name}; leave it out")
        if len(request.columns) > 1 and not self.several:
            raise UsageError(f"--column should be one column {self.name}, not {','.join(request.columns)}")

    @abstractmethod
    def train(self, request: Request) -> Trained:
        """Do it."""


def _needed(value: str | None, what: str) -> str:
    if value is None:
        raise UsageError(what)
    return value


class _Supervised(_Way):
    name, options, reads = "when learning from tags", CrfOptions, ("train", "dev", "adapt", "unlabelled")
    several = resumes = True

    def check(self, request: Request) -> None:
        super().check(request)
        _needed(
            request.train,
            "what to learn from? Give TRAIN, a treebank with tags; or TEXT and --dictionary; or --bitext and "
            "--source-tags",
        )
        if request.unlabelled is not None and request.adapt is None:
            raise UsageError("--unlabelled is for --graph, or for more text of the domain of TRAIN with --adapt")
        if request.tokenise is not None and request.adapt is None:
            raise UsageError("--tokenise is for plain text, and a treebank says itself what a word is. Leave it out")

    def train(self, request: Request) -> Trained:
        from isogloss.tasks.tag import Tagger

        tagger = Tagger(request.columns, threads=request.threads, **request.options)
        assert request.train is not None
        text = request.treebank(request.train)
        dev = request.tagged(request.dev)
        more: dict[str, Any] = {}
        if request.adapt is not None:
            more["correspondence"] = self._correspondence(request, text)
        tagger.fit(
            text, dev, progress_for(request.quiet), checkpoint=request.checkpoint, resume=request.resume, **more
        )  # fmt: skip
        lines, columns = [], {}
        for name, one in tagger.taggers.items():
            line = f"{name}: {len(one.labels_):,} tags from {len(text):,} sentences, {text.n_words:,} words"
            passes = int(one.tuning_.argmax()) + 1 if len(one.tuning_) else len(one.trace_)
            best = float(one.tuning_.max()) if len(one.tuning_) else None
            if best is not None:
                line += f"; {best:.2f}% right on {request.dev} (best of {one.iterations} passes: {passes})"
            lines.append(line)
            columns[name] = {"labels": len(one.labels_), "dev": best, "passes": passes, "trace": one.trace_}
        return Trained(tagger, lines, {"sentences": len(text), "words": text.n_words, "columns": columns})

    def _correspondence(self, request: Request, text: Treebank) -> Any:
        from isogloss.tasks.tag.adapting import Correspondence

        assert request.adapt is not None
        source = text if request.unlabelled is None else request.text(request.unlabelled)
        found = Correspondence(threads=request.threads)
        return found.fit(source, request.text(request.adapt), progress=progress_for(request.quiet))


class _Dictionary(_Way):
    name, options, reads = "with --dictionary", DictionaryOptions, ("train",)

    def check(self, request: Request) -> None:
        super().check(request)
        _needed(request.train, "--dictionary needs a text to learn from: a sentence a line, or CoNLL-U")

    def train(self, request: Request) -> Trained:
        from isogloss.tasks.tag import DictionaryTagger
        from isogloss.tasks.tag.base import as_treebank

        assert request.train is not None and request.dictionary is not None
        dictionary = request.read_dictionary(request.dictionary)
        tagger = DictionaryTagger(dictionary, column=request.columns[0], threads=request.threads, **request.options)
        text = as_treebank(request.text(request.train))
        tagger.fit(text, progress=progress_for(request.quiet))
        covered = dictionary.coverage(text)
        if covered["token_coverage"] < FEW_COVERED:
            warn(
                f"{request.dictionary} has only {covered['token_coverage']:.1f}% of the words of {text.name}: expect "
                "many wrong tags. Are both of one language? `isogloss dictionary stats` lists the words to add first"
            )
        line = (
            f"{request.columns[0]}: {len(tagger.labels_)} tags from {len(text):,} sentences, {text.n_words:,} words, "
            f"{covered['token_coverage']:.1f}% of them in the dictionary"
        )
        return Trained(tagger, [line], _facts(tagger, text) | {"coverage": covered["token_coverage"]})


class _Graph(_Way):
    name, options, reads = "with --graph", GraphOptions, ("train", "dev", "unlabelled")

    def check(self, request: Request) -> None:
        super().check(request)
        _needed(request.train, "--graph needs TRAIN, a treebank of some sentences with tags")
        _needed(request.unlabelled, "--graph needs --unlabelled TEXT: text without tags, as much as there is")

    def train(self, request: Request) -> Trained:
        from isogloss.tasks.tag import GraphTagger
        from isogloss.tasks.tag.base import as_treebank

        assert request.train is not None and request.unlabelled is not None
        tagger = GraphTagger(request.columns[0], threads=request.threads, **request.options)
        text, more = request.treebank(request.train), as_treebank(request.text(request.unlabelled))
        dev = request.tagged(request.dev)
        if not more.n_words:
            raise TreebankError(
                f"{more.name}: there are no words, so there are no neighbours to learn from. Is it the right file?"
            )
        _warn_of_many_labels(tagger, text)
        tagger.fit(text, more, dev, progress=progress_for(request.quiet))
        line = (
            f"{request.columns[0]}: {len(tagger.labels_)} tags from {len(text):,} sentences with tags and "
            f"{len(more):,} without"
        )
        return Trained(tagger, [line], _facts(tagger, text) | {"unlabelled": len(more)})


class _Projected(_Way):
    name, options, reads = "with --bitext", ProjectedOptions, ("source_tags", "links")

    def check(self, request: Request) -> None:
        super().check(request)
        _needed(
            request.source_tags,
            "--bitext needs --source-tags: SOURCE in CoNLL-U with tags (isogloss tag apply MODEL SOURCE -o FILE)",
        )

    def train(self, request: Request) -> Trained:
        from isogloss.data.bitext import Bitext
        from isogloss.data.formats.links import read_links
        from isogloss.tasks.tag import ProjectedTagger

        assert request.bitext is not None and request.source_tags is not None
        dictionary = None if request.dictionary is None else request.read_dictionary(request.dictionary)
        tagger = ProjectedTagger(dictionary, column=request.columns[0], threads=request.threads, **request.options)
        reading = {**request.reading, **request.sides, "tokenise": request.tokenise or "space"}
        bitext = Bitext.read(*request.bitext, **reading)
        links = None if request.links is None else read_links(request.links, bitext=bitext)
        tagger.fit(bitext, request.treebank(request.source_tags), links=links, progress=progress_for(request.quiet))
        found = tagger.evidence_
        lines = [
            f"{request.columns[0]}: {len(tagger.labels_)} tags from {len(bitext):,} pairs, {found['words']:,} words; "
            f"links decide {100 * found['decided'] / max(1, found['words']):.1f}% of them",
            f"{100 * found['types_known'] / max(1, found['types']):.1f}% of {found['types']:,} word forms have a set "
            f"of tags; {found['tags_a_word']:.2f} tags a word on average",
        ]
        facts = {"sentences": len(bitext), "words": found["words"], "labels": len(tagger.labels_)}
        return Trained(tagger, lines, facts | {"evidence": found, "trace": tagger.trace_})


def has_tags(treebank: Treebank, column: str) -> bool:
    """Whether any word has something in a column."""
    ids, vocabulary = treebank.columns[column]
    return any(vocabulary[number] != "_" for number in set(ids.tolist()))


def _warn_of_many_labels(tagger: Any, text: Treebank) -> None:
    labels = len(set(text.columns[tagger.column].ids.tolist()))
    if labels > MANY_LABELS and tagger.order == 2:
        warn(
            f"{text.name} has {labels} different {tagger.column}: with --graph, time and memory grow with the cube of "
            "their number, and this may take hours. --order 1 is sooner done; `isogloss tag train` without --graph is "
            "made for many tags"
        )


def _facts(tagger: Any, text: Treebank) -> dict[str, Any]:
    return {
        "sentences": len(text), "words": text.n_words, "labels": len(tagger.labels_), "trace": tagger.trace_,
    }  # fmt: skip


def way_of(request: Request) -> _Way:
    """How to train, by what is given."""
    if request.bitext is not None:
        check_bitext(request.bitext)
    if request.bitext is not None and request.graph:
        raise UsageError("--graph and --bitext are two ways to train; give one of them")
    if request.dictionary is not None and request.graph:
        raise UsageError("--graph and --dictionary are two ways to train; give one of them")
    if request.bitext is not None:
        return _Projected()
    if request.source_tags is not None:
        raise UsageError("--source-tags needs --bitext SOURCE TARGET")
    if request.graph:
        return _Graph()
    return _Dictionary() if request.dictionary is not None else _Supervised()
