"""Saved models on the command line: what each kind is used for, and the one way to load them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from isogloss.errors import ModelError, UsageError

if TYPE_CHECKING:
    from isogloss.tasks.adapt import DocumentClassifier
    from isogloss.tasks.documents import PolylingualTopics
    from isogloss.tasks.documents.ranking import BilingualRanker
    from isogloss.tasks.documents.threads import Threads
    from isogloss.tasks.joint import BilingualParser, JointConstituentAligner, JointParserAligner, Multiview
    from isogloss.tasks.parse import DependencyParser, GrammarInducer, JointMorphologyParser, StyleAdapter
    from isogloss.tasks.parse.constituency import ConstituencyParser
    from isogloss.tasks.segment import BilingualSegmenter, Segmenter
    from isogloss.tasks.tag import CrfTagger, Tagger
    from isogloss.tasks.transfer import DelexicalisedParser, TransferredParser
    from isogloss.tasks.translate import Translator

    AnyParser = (
        DelexicalisedParser
        | DependencyParser
        | GrammarInducer
        | JointMorphologyParser
        | StyleAdapter
        | TransferredParser
    )

__all__ = [
    "USES", "Use", "check_dependency_parser", "header_of", "load_aligner", "load_classifier",
    "load_constituency_parser", "load_crf_tagger", "load_dependency_parser", "load_extractor", "load_joint",
    "load_multiview", "load_parser", "load_ranker", "load_segmenter", "load_tagger", "load_threads", "load_topics",
    "load_translator",
]  # fmt: skip


class Use(NamedTuple):
    """What models of a task are called, and which command applies them."""

    noun: str
    command: str


USES = {
    "adapt": Use("a classifier of documents", "isogloss adapt apply"),
    "align": Use("an aligner", "isogloss align --model"),
    "tag": Use("a tagger", "isogloss tag apply"),
    "parse": Use("a dependency parser", "isogloss parse apply"),
    "extract": Use("an extractor of names or relations", "isogloss extract apply"),
    "joint": Use("a joint parser and aligner", "isogloss joint apply"),
    "constituency": Use("a constituency parser", "isogloss constituency apply"),
    "threads": Use("a graph of documents", "isogloss threads --model"),
    "rank": Use("a ranker", "isogloss rank apply"),
    "topics": Use("a model of topics", "isogloss topics apply"),
    "segment": Use("a segmenter of words", "isogloss segment apply"),
    "translate": Use("a translator", "isogloss translate apply"),
}
"""By the first part of the kinds in `isogloss.store.KINDS`."""
OWN_COMMANDS = {"parse.transferred": "isogloss transfer apply", "joint.multiview": "isogloss multiview apply"}
"""Commands that are for one kind alone."""


def header_of(path: str, task: str, wanted: str | None = None) -> dict[str, Any]:
    """The header of a saved model; one of another task is refused with the command that it is for.

    `wanted` says what is wanted, where that is not what models of the task are called.

    Checkpoints, and kinds of later versions, pass: `store.load` has words for them.
    """
    from isogloss import store
    from isogloss.cli._chunks import is_checkpoint

    if is_checkpoint(path):
        raise ModelError(f"{path}: this is a checkpoint of `isogloss align`, not a model. Continue it with --resume")
    header = store.read_header(path)
    kind = header["kind"]
    found = USES.get(kind.partition(".")[0]) if kind in store.KINDS else None
    if found is not None and found is not USES[task]:
        raise UsageError(
            f"{path}: this is {found.noun} ({kind}), where {wanted or USES[task].noun} is wanted. Use "
            f"`{OWN_COMMANDS.get(kind, found.command)}`"
        )
    return header


def _load(path: str, task: str, wanted: str | None = None) -> Any:
    from isogloss import store

    header_of(path, task, wanted)
    return store.load(path)


def load_aligner(path: str, threads: int | None = None) -> Any:
    """A saved aligner of any kind."""
    aligner = _load(path, "align")
    aligner.threads = threads
    if (extractor := getattr(aligner, "extractor_", None)) is not None:
        extractor.threads = threads
    return aligner


def load_parser(path: str, threads: int | None = None) -> AnyParser:
    """A saved parser of any kind."""
    parser: AnyParser = _load(path, "parse")
    parser.threads = threads
    return parser


def load_constituency_parser(path: str, threads: int | None = None) -> ConstituencyParser:
    """A saved parser of constituents."""
    parser: ConstituencyParser = _load(path, "constituency")
    parser.threads = threads
    if parser.tagger_ is not None:
        parser.tagger_.threads = threads
    return parser


def load_classifier(path: str, threads: int | None = None) -> DocumentClassifier:
    """A saved classifier of documents."""
    classifier: DocumentClassifier = _load(path, "adapt")
    classifier.threads = threads
    return classifier


def load_extractor(path: str, threads: int | None = None) -> Any:
    """A saved extractor of any kind."""
    extractor = _load(path, "extract")
    extractor.threads = threads
    return extractor


def load_joint(path: str, threads: int | None = None) -> JointParserAligner | JointConstituentAligner | BilingualParser:
    """A saved parser of both sides of a bitext and aligner of their words, or of one with the help of the other."""
    from isogloss.tasks.joint import BilingualParser, JointConstituentAligner, JointParserAligner

    joint = _load(path, "joint")
    if not isinstance(joint, JointParserAligner | JointConstituentAligner | BilingualParser):
        raise UsageError(
            f"{path}: these are models of two languages that annotate a bitext. Use `isogloss multiview apply`, or "
            "give a model by `isogloss joint train`"
        )
    for one in (joint, *joint.models_):
        one.threads = threads
    return joint


def load_multiview(path: str, threads: int | None = None) -> Multiview:
    """Saved models of two languages that annotate a bitext together."""
    from isogloss.tasks.joint import Multiview

    both = _load(path, "joint", "a model by `isogloss multiview train`")
    if not isinstance(both, Multiview):
        raise UsageError(
            f"{path}: this parses and aligns a bitext. Use `isogloss joint apply`, or give a model by "
            "`isogloss multiview train`"
        )
    for one in (both, *both.models_):
        one.threads = threads
        for tagger in getattr(one, "taggers", {}).values():
            tagger.threads = threads
    return both


def load_threads(path: str) -> Threads:
    """A saved graph that threads are drawn from."""
    threads: Threads = _load(path, "threads")
    return threads


def load_ranker(path: str, threads: int | None = None) -> BilingualRanker:
    """A saved ranker."""
    ranker: BilingualRanker = _load(path, "rank")
    ranker.threads = threads
    return ranker


def load_topics(path: str, threads: int | None = None) -> PolylingualTopics:
    """A saved model of topics."""
    model: PolylingualTopics = _load(path, "topics")
    model.threads = threads
    return model


def load_translator(path: str, threads: int | None = None, from_disk: bool = False) -> Translator:
    """A saved translator; its arrays stay in their file if that is asked for, or if they would take most of memory."""
    from isogloss import store
    from isogloss.cli._room import most_of_what_is_free

    room = most_of_what_is_free()
    header = header_of(path, "translate")
    large = room is not None and isinstance(header.get("bytes"), int) and header["bytes"] > room
    translator: Translator = store.load(path, mapped=from_disk or large)
    translator.threads = threads
    return translator


def load_segmenter(path: str, threads: int | None = None) -> Segmenter | BilingualSegmenter:
    """A saved segmenter, which may have learnt from a translation."""
    segmenter: Segmenter | BilingualSegmenter = _load(path, "segment")
    segmenter.threads = threads
    return segmenter


def check_dependency_parser(path: str) -> None:
    """Refuse what is no parser, and parsers that cannot take heads as given."""
    kind = header_of(path, "parse")["kind"]
    if kind not in ("parse.dependency", "parse.transferred"):
        raise UsageError(
            f"{path}: this parser ({kind}) cannot take heads as given. Train one with `isogloss parse train`, or "
            "`isogloss transfer train`"
        )


def load_dependency_parser(path: str, threads: int | None = None) -> DependencyParser:
    """A saved parser that can take heads as given; of a transferred one, the parser of words with tags."""
    from isogloss.tasks.parse import DependencyParser

    check_dependency_parser(path)
    loaded = _load(path, "parse")
    parser: DependencyParser = loaded if isinstance(loaded, DependencyParser) else loaded.parser_
    parser.threads = threads
    return parser


def load_tagger(path: str, threads: int | None = None) -> Tagger:
    """A saved tagger of any kind, as one of one column or several."""
    from isogloss.tasks.tag import Tagger

    loaded = _load(path, "tag")
    tagger = loaded if isinstance(loaded, Tagger) else Tagger.of(loaded)
    for one in tagger.taggers.values():
        one.threads = threads
    return tagger


def load_crf_tagger(path: str, threads: int | None = None) -> CrfTagger:
    """A saved tagger of one column that learnt from tags; of several columns, the finest tags for parts of speech."""
    from isogloss.tasks.tag import CrfTagger

    taggers = load_tagger(path, threads).taggers
    found = next((taggers[column] for column in ("xpos", "upos") if column in taggers), None)
    if not isinstance(found, CrfTagger):
        raise UsageError(f"{path}: this tagger did not learn from tags. Train one with `isogloss tag train`")
    return found
