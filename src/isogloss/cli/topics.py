"""`isogloss topics`: learn the themes of documents in several languages, apply them, match documents, look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import (
    READING,
    Encoding,
    Errors,
    Json,
    Output,
    Quiet,
    Resume,
    Stopwatch,
    Threads,
    Tokenise,
    check_output,
    choice,
    compiling,
    progress_for,
    say,
    write_json,
    write_result,
)
from isogloss.cli._models import header_of, load_topics
from isogloss.cli._options import with_options
from isogloss.cli._training import Training
from isogloss.cli._treebanks import SaveFolder, standard_input_once
from isogloss.errors import UsageError
from isogloss.tasks.documents.options import TopicOptions

if TYPE_CHECKING:
    from isogloss.data import Documents
    from isogloss.tasks.documents import PolylingualTopics

__all__ = ["COMMANDS", "apply", "match", "score", "train", "words"]

LEARNING, PRUNING = "Learning", "Words"

Model = Annotated[str, typer.Argument(metavar="MODEL", show_default=False, help="A folder by `isogloss topics train`.")]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES...",
        show_default=False,
        help="A file for each language, a document a line: line k of every file is the same document, and an empty "
        "line is one that is missing. Or a folder for each language, with a file for each document.",
    ),
]
Names = Annotated[
    str | None,
    typer.Option(
        "--languages",
        metavar="A,B,...",
        rich_help_panel=READING,
        help="Names of the languages, a name for each file; what the names of files say otherwise.",
    ),
]
FileFormat = Annotated[
    str,
    choice(
        "auto", "lines", "mallet", "folder", option="--format", panel=READING,
        help="`mallet`: a name and a label stand before the text of each line, and the same name is the same document.",
    ),
]  # fmt: skip
Dates = Annotated[
    str | None,
    typer.Option(
        "--dates", metavar="FILE", rich_help_panel=READING,
        help="A date for each document, a line each: 2011, 2011-03 or 2011-03-04.",
    ),
]  # fmt: skip


@with_options(
    TopicOptions, "iterations", "concentration", "beta", "optimise", "burn_in", "blocks", "min_documents", "max_share",
    "drop_frequent", "lowercase", "letters", "prior", "samples", "neighbours", "lean", "seed",
    panel=LEARNING, first=("topics",),
)  # fmt: skip
def train(
    files: Files,
    save: SaveFolder,
    languages: Names = None,
    apart: Annotated[
        bool,
        typer.Option("--apart", help="Lines of different files are different documents. Give --lexicon, too."),
    ] = False,
    lexicon: Annotated[
        list[str] | None,
        typer.Option(
            "--lexicon",
            metavar="[A,B=]FILE",
            show_default=False,
            help="Translations by `isogloss lexicon` from language A to B, which tie languages together where "
            "documents do not; of the first file to the second if none are named. May be given again for others.",
        ),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    format: FileFormat = "auto",
    tokenise: Tokenise = None,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:
    """Learn topics of documents in one or several languages, and keep them in a folder.

    Languages are lined up by the documents that exist in several of them; some such documents are enough. Where there
    are none, --apart and --lexicon line them up by translations of words. Which words are left out is part of the
    model, and done again wherever it is applied.
    """
    training = Training(save, *files, *(_split(one)[1] for one in lexicon or []), quiet=quiet)
    TopicOptions(**options).check_params()
    watch = Stopwatch()
    with compiling("topics-train", quiet, "60 s"):
        from isogloss.tasks.documents import PolylingualTopics

        given = _read(files, languages, format, tokenise, encoding, errors, apart=apart)
        words = _lexicons(lexicon or [], given.languages)
        model = PolylingualTopics(**options, threads=threads)
        model.fit(given, progress_for(quiet), lexicons=words, checkpoint=training.checkpoint, resume=resume)
        n_words = int(model._learnt.words.totals.sum())
    sizes = {language: len(known) for language, known in model.vocabularies_.items()}
    likelihood = float(model.trace_[-1]) / n_words if len(model.trace_) else None
    found = {
        "topics": model.topics, "languages": list(model.languages_), "documents": len(given), "words": n_words,
        "vocabularies": sizes, "log_likelihood_a_word": likelihood, "concentration": float(model.alpha_.sum()),
    }  # fmt: skip
    named = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    lines = [f"{model.topics} topics of {len(given):,} documents, {n_words:,} words; vocabularies: {named}"]
    if likelihood is not None:
        lines.append(f"log-likelihood {likelihood:.4f} a word; {watch.rate(n_words * model.iterations):,.0f} words/s")
    training.keep(model, *lines, json=found if json else None)


def apply(
    model: Model,
    text: Annotated[str, typer.Argument(metavar="IN", show_default=False, help="Documents, a line each.")],
    language: Annotated[
        str | None,
        typer.Option("--language", metavar="NAME", help="The language of IN; the name of the file says it otherwise."),
    ] = None,
    output: Output = None,
    threads: Threads = None,
    quiet: Quiet = False,
    format: FileFormat = "auto",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Write the probability of each topic for each document: a line a document, tabs between topics.

    Words that the model does not know are passed over; a document without any that it knows has the prior.
    """
    check_output(output, [text])
    header_of(model, "topics")
    watch = Stopwatch()
    with compiling("topics-apply", quiet):
        topics = load_topics(model, threads)
        given = _one(topics, text, language, format, encoding, errors)
        found = topics.transform(given)
        write_result(output, ("\t".join(f"{share:.6f}" for share in row) + "\n" for row in found.tolist()))
        unknown = _unknown(topics, given)
    say(f"{len(given):,} documents, {given.n_words:,} words, {unknown:,} of them not in the model, {watch}", quiet)


def match(
    model: Model,
    first: Annotated[str, typer.Argument(metavar="A", show_default=False, help="Documents, a line each.")],
    second: Annotated[
        str, typer.Argument(metavar="B", show_default=False, help="Line k is the translation of line k of A.")
    ],
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="NAME", help="The language of A; the name of the file says it otherwise."),
    ] = None,
    target: Annotated[str | None, typer.Option("--target", metavar="NAME", help="The language of B, likewise.")] = None,
    lexicon: Annotated[
        str | None,
        typer.Option("--lexicon", metavar="FILE", help="Translations of A's words by `isogloss lexicon`, to help."),
    ] = None,
    weight: Annotated[
        float | None,
        typer.Option("--weight", metavar="X", min=0, max=1, help="Of the lexicon beside topics; 0.5 if not given."),
    ] = None,
    output: Output = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Say how often a document of A finds its translation in B by its topics: percent at rank 1, 5, 10 and 20.

    Documents are compared by the Jensen-Shannon divergence of their topics. Lines that are empty in A or in B are left
    out. With --lexicon, topics and translated words are used together, and each alone is told beside it.
    """
    from dataclasses import replace

    check_output(output, [first, second, lexicon])
    standard_input_once(first, second, lexicon)
    if weight is not None and lexicon is None:
        raise UsageError("--weight is that of --lexicon. Give this, too")
    header_of(model, "topics")
    with compiling("topics-match", quiet):
        topics = load_topics(model, threads)
        one = _one(topics, first, source, "auto", encoding, errors)
        other = _one(topics, second, target, "auto", encoding, errors)
        if len(one) != len(other):
            raise UsageError(f"{first} has {len(one)} lines, but {second} {len(other)}: line k should be the same")
        if one.languages == other.languages:
            raise UsageError(f"{first} and {second} are both of the language {one.languages[0]!r}. Give two")
        both = replace(one, texts=(*one.texts, *other.texts), languages=(*one.languages, *other.languages))
        found = {"": topics.score(both)}
        if lexicon is not None:
            found = {"": topics.score(both, lexicon=lexicon, weight=0.5 if weight is None else weight)}
            found |= {
                "topics_alone": topics.score(both),
                "lexicon_alone": topics.score(both, lexicon=lexicon, weight=1),
            }
    if json:
        further = {name: one.as_dict() for name, one in found.items() if name}
        write_json(found[""].as_dict() | further, output)
        return
    said = (f"{name.replace('_', ' ')}: {one}\n" if name else f"{one}\n" for name, one in found.items())
    write_result(output, said)


def words(
    model: Model,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILES...]", show_default=False,
            help="Documents, as for `topics train`, to be shown behind their topics; for a page alone.",
        ),
    ] = None,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Words of each topic and language.")] = 10,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE",
            help="Where the result goes: a page if it ends in .html, and else a table; stdout without it, or for `-`.",
        ),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    languages: Names = None,
    dates: Dates = None,
    format: FileFormat = "auto",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:  # fmt: skip
    """Write the first words of each topic in each language: a table, JSON, or a page to look at.

    Columns of the table: number of the topic, its share of all words, the language, its words. With FILES a page also
    shows documents behind each topic and, with --dates, how large topics were when.
    """
    check_output(output, files or [])
    header_of(model, "topics")
    is_page = output is not None and output.endswith((".html", ".htm"))
    if files and not is_page:
        raise UsageError("FILES are shown on a page alone. Give -o PAGE.html, or leave them out")
    if dates is not None and not files:
        raise UsageError("--dates are those of FILES. Give these, too")
    with compiling("topics-words", quiet):
        from isogloss.tasks.documents.looking import as_page, as_rows

        topics = load_topics(model, threads)
        if is_page:
            from isogloss.show.topics import write_topics

            given = None
            if files:
                named = languages or _languages(topics, files)
                given = _read(files, named, format, topics.tokenise_, encoding, errors, dates)
            write_topics(as_page(topics, given, n), str(output), title=f"Topics of {model}")
            say(f"{output}: {topics.topics} topics in {len(topics.languages_)} languages", quiet)
            return
        rows = as_rows(topics, n)
        if json:
            write_json({"topics": rows}, output)
            return
        lines = (
            f"{row['topic']}\t{row['share']:.4f}\t{language}\t{' '.join(word for word, _ in own)}\n"
            for row in rows for language, own in row["words"].items()
        )  # fmt: skip
        write_result(output, lines)


def score(
    model: Model,
    files: Files,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="Words of a topic that coherence looks at.")] = 10,
    runs: Annotated[int, typer.Option("--runs", metavar="N", min=1, help="Runs over each document.")] = 5,
    resample: Annotated[
        bool,
        typer.Option(
            "--resample/--no-resample",
            help="Draw the topics of words before again at each word: better, and quadratic in a document's length.",
        ),
    ] = True,
    output: Output = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    languages: Names = None,
    format: FileFormat = "auto",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Say how probable documents are (nats a word), and how well the words of topics go together in them.

    Each language is scored by itself, as documents of that language alone, and then all together. The probability is
    that of the left-to-right estimator with the mean at each word; with the mean of whole runs beside it in JSON. Words
    that the model does not know are left out, so that models with other words cannot be compared by it.
    """
    check_output(output, files)
    header_of(model, "topics")
    with compiling("topics-score", quiet):
        topics = load_topics(model, threads)
        named = languages or _languages(topics, files)
        given = _read(files, named, format, topics.tokenise_, encoding, errors)
        _check_languages(topics, given.languages)
        scored = {
            name: topics.held_out(given, language=name, runs=runs, resample=resample).as_dict()
            for name in given.languages
        }
        if len(given.languages) > 1:
            scored["together"] = topics.held_out(given, runs=runs, resample=resample).as_dict()
        coherent = topics.coherence(given, n).as_dict()
    if json:
        write_json({"held_out": scored, "coherence": coherent}, output)
        return
    lines = [
        f"{name or 'documents'}\t{one['nats_per_word']:.4f} nats a word [{one['interval'][0]:.4f}, "
        f"{one['interval'][1]:.4f}]\t{one['words']:,} words, {one['unknown']:,} not in the model"
        for name, one in scored.items()
    ]  # fmt: skip
    lines += [f"{name or 'documents'}\tNPMI {value:.4f}" for name, value in coherent["within"].items()]
    lines += [f"{pair}\tCNPMI {value:.4f}" for pair, value in coherent["across"].items()]
    write_result(output, "\n".join([*lines, ""]))


# --- reading


def _read(
    files: list[str], languages: str | None, format: str, tokenise: str | None, encoding: str, errors: str,
    dates: str | None = None, *, apart: bool = False,
) -> Documents:  # fmt: skip
    from isogloss.data import Documents
    from isogloss.data.formats.documents import languages_of

    standard_input_once(*files, dates)
    named = None if languages is None else [name.strip() for name in languages.split(",")]
    if named is not None and len(named) != len(files) and not _are_json(files):
        raise UsageError(f"--languages names {len(named)} languages, but there are {len(files)} files")
    how = {
        "format": None if format == "auto" else format, "tokenise": tokenise, "encoding": encoding, "errors": errors
    }  # fmt: skip
    if not apart:
        return Documents.read(*files, languages=named, dates=dates, **how)
    if len(files) < 2 or _are_json(files):
        raise UsageError("--apart is for several files, one for each language, with a document a line")
    own = zip(files, named or languages_of(files), strict=True)
    return Documents.apart(*(Documents.read(path, languages=[name], **how) for path, name in own))


def _split(lexicon: str) -> tuple[str, str]:
    """The languages that stand before a file of translations, and the file."""
    before, sign, after = lexicon.partition("=")
    return (before, after) if sign and before.count(",") == 1 else ("", lexicon)


def _lexicons(given: list[str], languages: tuple[str, ...]) -> dict[tuple[str, str], str]:
    """By pairs of languages."""
    found: dict[tuple[str, str], str] = {}
    for one in given:
        names, path = _split(one)
        first, second = (name.strip() for name in names.split(",")) if names else (languages[0], languages[-1])
        if not names and len(languages) != 2:
            raise UsageError(
                f"--lexicon {path}: there are {len(languages)} languages. Say which it translates, such as "
                f"--lexicon {languages[0]},{languages[-1]}={path}"
            )
        if first == second or not {first, second} <= set(languages):
            raise UsageError(f"--lexicon {one}: should name two of the languages, which are {', '.join(languages)}")
        if (first, second) in found:
            raise UsageError(f"--lexicon {one}: is a second one from {first} to {second}. Join the files")
        found[first, second] = path
    return found


def _one(
    topics: PolylingualTopics, path: str, language: str | None, format: str, encoding: str, errors: str
) -> Documents:
    """Documents of one language, read as the model's were."""
    if language is None and not _are_json([path]) and len(topics.languages_) == 1:
        language = topics.languages_[0]
    elif language is None:
        language = _languages(topics, [path])
    elif language not in topics.languages_:
        language = language.lower()
    given = _read([path], language or None, format, topics.tokenise_, encoding, errors)
    _check_languages(topics, given.languages, path)
    if len(given.languages) > 1:
        raise UsageError(f"{path}: is in {', '.join(given.languages)}. Say which of them is meant")
    return given


def _languages(topics: PolylingualTopics, files: list[str]) -> str | None:
    """What the names of files say of their languages; JSON lines say it themselves."""
    from isogloss.data.formats.documents import languages_of

    return None if _are_json(files) else ",".join(languages_of(files, topics.languages_))


def _are_json(files: list[str]) -> bool:
    from isogloss.data.formats.document_records import is_json_lines

    return any(map(is_json_lines, files))


def _check_languages(topics: PolylingualTopics, names: tuple[str, ...], path: str = "") -> None:
    for name in names:
        if name not in topics.languages_:
            place = f"{path}: " if path else ""
            raise UsageError(
                f"{place}there is no language {name!r} in this model; there is {', '.join(topics.languages_)}. "
                "Say which it is, or give the file such a name"
            )


def _unknown(topics: PolylingualTopics, given: Documents) -> int:
    _, unknown, _ = topics._bags(given, None)
    return int(unknown.sum())


COMMANDS = {"train": train, "apply": apply, "match": match, "words": words, "score": score}
"""The commands of this group: ``isogloss topics train`` and so on."""
