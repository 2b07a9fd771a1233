"""`isogloss transfer train` and `isogloss transfer apply`: a tagger and parser for a language without a treebank."""

from __future__ import annotations

import time
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from isogloss.cli._common import (
    Encoding,
    Errors,
    Json,
    Output,
    Quiet,
    Resume,
    SourceEncoding,
    TargetEncoding,
    Threads,
    Tokenise,
    check_output,
    compiling,
    progress_for,
    say,
    write_result,
)
from isogloss.cli._evidence import bitext_option, check_bitext, dictionary_option, links_option, source_trees_option
from isogloss.cli._models import header_of, load_parser
from isogloss.cli._options import with_options
from isogloss.cli._training import Training
from isogloss.cli._treebanks import InFormat, SaveFolder, read_either, read_treebank, standard_input_once
from isogloss.cli.dictionary import DictionaryFormat, DictionaryTagset, UnknownTags
from isogloss.errors import UsageError
from isogloss.tasks.transfer.options import TransferOptions

if TYPE_CHECKING:
    from isogloss.tasks.transfer import TransferredParser

__all__ = ["Files", "Manner", "apply", "train", "transfer"]

EVIDENCE = "What to learn from"
LEARNING = "Learning"

BitextFiles = Annotated[
    tuple[str, str], bitext_option("Text in the language that has a treebank, and its translation.")
]
SourceTreebank = Annotated[
    str | None,
    typer.Option(
        "--source-treebank", metavar="TRAIN", show_default=False,
        help="Trees of the language of SOURCE, in CoNLL-U, of any text; not needed with --source-trees.",
    ),
]  # fmt: skip
DictionaryFile = Annotated[
    str | None,
    dictionary_option("Words of the target language with the tags they may have, a pair a line.", EVIDENCE),
]
LinksFile = Annotated[str | None, links_option(EVIDENCE)]
SourceTrees = Annotated[
    str | None, source_trees_option("SOURCE in CoNLL-U with tags and trees; parsed anew without it.", EVIDENCE)
]
TargetTags = Annotated[
    str | None,
    typer.Option(
        "--target-tags", metavar="FILE", rich_help_panel=EVIDENCE,
        help="Tagged sentences of the target language, in CoNLL-U: its tagger is learnt from them.",
    ),
]  # fmt: skip
TargetTrees = Annotated[
    str | None,
    typer.Option(
        "--target-trees", metavar="FILE", rich_help_panel=EVIDENCE,
        help="Trees of the target language, if there are a few: they are learnt from as well.",
    ),
]  # fmt: skip


@with_options(
    TransferOptions, "sentences", "longest", "iterations", "rounds", "share", "shares", "draws", "seed", panel=LEARNING,
    first=("method", "model", "order", "contractions"),
)  # fmt: skip
def train(
    bitext: BitextFiles,
    save: SaveFolder,
    source_treebank: SourceTreebank = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    dictionary: DictionaryFile = None,
    links: LinksFile = None,
    source_trees: SourceTrees = None,
    target_tags: TargetTags = None,
    target_trees: TargetTrees = None,
    dictionary_format: DictionaryFormat = "auto",
    tagset: DictionaryTagset = "auto",
    unknown: UnknownTags = "error",
    tokenise: Tokenise = None,
    encoding: Encoding = "utf-8",
    source_encoding: SourceEncoding = None,
    target_encoding: TargetEncoding = None,
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:
    """Learn a tagger and a parser for the language of TARGET, which has no treebank.

    A tagger and a parser are learnt from TRAIN and applied to SOURCE; words are linked; tags and trees are carried to
    TARGET; and what arrives there teaches a tagger and a parser, which need no translation any more. `isogloss transfer
    apply` then tags and parses new text. See docs/parse-from-translations.md.
    """
    if source_treebank is None and source_trees is None:
        raise UsageError(
            "give --source-treebank: trees of the language of SOURCE; or --source-trees: SOURCE with trees"
        )
    files = Files(bitext, source_treebank, source_trees, links, dictionary, target_tags, target_trees)
    lookup = {"format": dictionary_format, "tagset": tagset, "unknown": unknown}
    sides = {"source_encoding": source_encoding, "target_encoding": target_encoding, "tokenise": tokenise or "space"}
    reading = {"encoding": encoding, "errors": errors}
    transfer(files, save, options, reading, sides, lookup, Manner(threads, quiet, resume, json))


@dataclass(frozen=True)
class Files:
    """What there is to learn from."""

    bitext: tuple[str, str]
    source_treebank: str | None = None
    source_trees: str | None = None
    links: str | None = None
    dictionary: str | None = None
    target_tags: str | None = None
    target_trees: str | None = None

    def check(self) -> None:
        """Refuse what cannot be meant."""
        check_bitext(self.bitext)
        _, *others = astuple(self)
        standard_input_once(*self.bitext, *others)


class Manner(NamedTuple):
    """How a command goes about its work."""

    threads: int | None
    quiet: bool
    resume: bool
    json: bool


def transfer(
    files: Files,
    save: str,
    options: dict[str, Any],
    reading: dict[str, Any],
    sides: dict[str, Any],
    lookup: dict[str, Any],
    manner: Manner,
) -> None:
    """Learn a `TransferredParser` from files, save it, and say what was done."""
    files.check()
    training = Training(save, quiet=manner.quiet)
    told = TransferOptions(**options)
    told.check_params()
    with compiling(f"transfer-train-{told.method}-{told.order}", manner.quiet, "3 minutes"):
        from isogloss.data.bitext import Bitext
        from isogloss.data.formats import read_links
        from isogloss.data.tag_dictionary import TagDictionary
        from isogloss.tasks.transfer import TransferredParser

        pairs = Bitext.read(files.bitext[0], files.bitext[1], **reading, **sides)
        words = None if files.dictionary is None else TagDictionary.read(files.dictionary, **lookup, **reading)
        named = {
            "treebank": files.source_treebank, "source": files.source_trees, "target": files.target_tags,
            "trees": files.target_trees,
        }  # fmt: skip
        trees = {name: None if path is None else read_treebank(path, **reading) for name, path in named.items()}
        links = None if files.links is None else read_links(files.links, bitext=pairs)
        parser = TransferredParser(words, threads=manner.threads, **options)
        parser.fit(
            pairs, **trees, links=links, progress=progress_for(manner.quiet),
            checkpoint=training.checkpoint, resume=manner.resume,
        )  # fmt: skip
    training.keep(parser, *_described(parser), json=parser.report_ if manner.json else None, checkpoints=())


def _described(parser: TransferredParser) -> list[str]:
    """What was done, and how sure it is."""
    found = parser.report_
    lines = [f"{found['pairs']:,} pairs, {found['target_words']:,} words of the target language"]
    if found["split"]:
        of = f" of {found['language']}" if found["language"] else ""
        lines.append(f"{found['split']:,} of them by splitting contractions{of}")
    lines.append(f"{len(parser.tagger_.labels_)} tags, {found['tags']}")
    if "projected" in found:
        lines.append(f"{100 * found['projected']:.0f}% of the trees came through {found['links']:,} links")
    if "confidence" in found:
        lines.append(
            f"{found['sentences']:,} trees were learnt from; by their probabilities, "
            f"{100 * found['confidence']:.0f}% of all completed heads are right"
        )
    elif "sentences" in found:
        lines.append(f"a grammar of tags was learnt from {found['sentences']:,} sentences")
    if found.get("unsure_words"):
        lines.append(f"to annotate next: tags of {', '.join(found['unsure_words'])} (--dictionary)")
    if found.get("unsure_lines"):
        numbers = ", ".join(f"{line:,}" for line in found["unsure_lines"])
        lines.append(f"or trees of lines {numbers} of the target text (--target-trees), of which it is least sure")
    return lines


def apply(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", show_default=False, help="A folder by `isogloss transfer train`.")
    ],
    text: Annotated[
        str,
        typer.Argument(
            metavar="IN", show_default=False, help="Plain text, a sentence a line; or CoNLL-U, whose words stay."
        ),
    ],
    output: Output = None,
    keep_tags: Annotated[bool, typer.Option("--keep-tags", help="Parse with the UPOS that CoNLL-U has.")] = False,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Write the probability of each link into MISC: Confidence=0.98.")
    ] = False,
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws",
            metavar="N",
            min=1,
            max=100,
            show_default=False,
            help="Tags to draw for each word; 1 takes the best, and is fastest. [default: that of the model]",
        ),
    ] = None,
    threads: Threads = None,
    quiet: Quiet = False,
    format: InFormat = "auto",
    tokenise: Tokenise = None,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Tag and parse text. Contractions of plain text are split and written as multiword tokens.

    CoNLL-U keeps its words, and what stood in UPOS, HEAD and DEPREL is replaced.
    """
    from isogloss.data.treebank import Treebank

    began = time.perf_counter()
    check_output(output, [text])
    header_of(model, "parse")  # a wrong model is refused before anything is compiled for it
    with compiling("transfer-apply", quiet):
        from isogloss.tasks.transfer import TransferredParser

        parser = load_parser(model, threads)
        if not isinstance(parser, TransferredParser):
            raise UsageError(f"{model}: this parser was not transferred. Use `isogloss parse apply`")
        given = read_either(text, format, encoding=encoding, errors=errors, tokenise=tokenise or "space")
        if keep_tags and not isinstance(given, Treebank):
            raise UsageError(f"{text}: --keep-tags needs CoNLL-U with tags, and this is plain text")
        if keep_tags and draws is not None:
            raise UsageError("--draws is for tags that are predicted, and --keep-tags takes those that are there")
        parser.draws = parser.draws if draws is None else draws
        parsed = parser.predict(given, tags="given" if keep_tags else "predicted", confidence=confidence)
        write_result(output, parsed.to_bytes())
    seconds = time.perf_counter() - began
    say(f"{len(parsed):,} sentences, {parsed.n_words:,} words parsed, {seconds:.1f} s", quiet)
