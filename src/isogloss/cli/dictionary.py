"""`isogloss dictionary`: what a dictionary of tags says about a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from isogloss.cli._common import (
    READING,
    Encoding,
    Errors,
    Json,
    Output,
    Quiet,
    check_output,
    choice,
    compiling,
    warn,
    write_json,
    write_result,
)
from isogloss.cli._treebanks import read_either, standard_input_once, table_lines
from isogloss.errors import TreebankError

__all__ = ["COMMANDS", "DictionaryFormat", "DictionaryTagset", "UnknownTags", "report_lines", "stats"]

TextFormat = Annotated[
    str, choice("auto", "conllu", "conllx", "conll2009", "text", option="--format", panel=READING, help="What TEXT is.")
]
DictionaryFormat = Annotated[
    str,
    choice(
        "auto",
        "tsv",
        "unimorph",
        option="--dictionary-format",
        panel=READING,
        help="Words and tags, or lemmas, forms and features.",
    ),
]
DictionaryTagset = Annotated[
    str,
    choice(
        "auto",
        "universal12",
        "ud17",
        "any",
        option="--tagset",
        panel=READING,
        help="What the tags of the dictionary become; `any` keeps them.",
    ),
]
UnknownTags = Annotated[
    str,
    choice(
        "error",
        "drop",
        option="--unknown",
        panel=READING,
        help="Lines of the dictionary whose tags are not known: stop, or leave them out.",
    ),
]


def stats(
    dictionary: Annotated[
        str,
        typer.Argument(
            metavar="DICT", show_default=False, help="A line `word TAB tag` for each pair, or a table of UniMorph."
        ),
    ],
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", show_default=False, help="A sentence a line, words between spaces; or CoNLL-U, with tags."
        ),
    ],
    most: Annotated[int, typer.Option("--most", metavar="N", min=0, help="How many words to list.")] = 10,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    format: TextFormat = "auto",
    dictionary_format: DictionaryFormat = "auto",
    tagset: DictionaryTagset = "auto",
    unknown: UnknownTags = "error",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Say how much of a text a dictionary of tags covers; and, where the text has tags, how well it fits them.

    Shares are in percent. Words are looked up as they are written, then in small letters.
    """
    standard_input_once(dictionary, text)
    check_output(output, [dictionary, text])
    with compiling("dictionary-stats", quiet, "10 s"):
        from isogloss.data.dictionary_report import against, coverage, summary
        from isogloss.data.tag_dictionary import TagDictionary
        from isogloss.data.treebank import Treebank

        reading = {"encoding": encoding, "errors": errors}
        words = TagDictionary.read(dictionary, dictionary_format, tagset=tagset, unknown=unknown, **reading)
        corpus = read_either(text, format, encoding, errors)
        found = coverage(words, corpus, most=most)
        if not found["tokens"]:
            warn(f"{text}: there are no words in it. Is it the right file?")
        report = {"dictionary": summary(words), "coverage": found}
        if isinstance(corpus, Treebank) and any(tag != "_" for tag in corpus.columns["upos"].vocabulary):
            try:
                report["gold"] = against(words, corpus, most=most)
            except TreebankError as problem:  # tags of a language: what is covered can be said all the same
                warn(f"{problem}. The tags of the text are not compared")
    if json:
        write_json(report, output)
    else:
        write_result(output, "\n".join([*report_lines(report), ""]))


def report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """What `stats` found, for people."""
    words, found = report["dictionary"], report["coverage"]
    several = f"; {words['several_words']:,} of several words" if words["several_words"] else ""
    kind = "tags of its own" if words["tagset"] == "any" else words["tagset"]
    yield f"dictionary: {words['words']:,} words, {words['pairs']:,} pairs, {kind}{several}"
    yield f"text: {found['types']:,} types, {found['tokens']:,} tokens"
    yield ""
    shares = ("type_coverage", "token_coverage")
    rows = [_coverage_row("all words", found)]
    rows += [_coverage_row(f"{name} frequency", band) for name, band in found["bands"].items()]
    rows.append(("entry or rule", "", "", *(_share(found[f"{name}_with_rules"]) for name in shares)))
    yield from table_lines(("have an entry", "types", "tokens", "% types", "% tokens"), rows, 1)
    yield ""
    of_words = [
        ("tags a word", _share(found["tags_per_type"]), _share(found["tags_per_token"])),
        ("% with several tags", _share(found["ambiguous_types"]), _share(found["ambiguous_tokens"])),
    ]
    yield from table_lines(("of those", "types", "tokens"), of_words, 1)
    if "gold" in report:
        yield from _gold_lines(report["gold"])
    if found["missing"]:
        yield ""
        missing = [(word, f"{count:,}") for word, count in found["missing"]]
        yield from table_lines(("without an entry", "tokens"), missing, 1)


def _coverage_row(name: str, found: Mapping[str, Any]) -> Sequence[str]:
    shares = (_share(found[share]) for share in ("type_coverage", "token_coverage"))
    return (name, f"{found['types']:,}", f"{found['tokens']:,}", *shares)


def _gold_lines(gold: Mapping[str, Any]) -> Iterator[str]:
    from isogloss.data.dictionary_report import KINDS

    yield ""
    rows = [
        ("of all", _share(gold["gold_allowed"])),
        ("of those with an entry", _share(gold["gold_allowed_covered"])),
    ]
    yield from table_lines(("gold tag is allowed", "% tokens"), rows, 1)
    yield ""
    compared = gold["agreement"]
    title = f"tags of the entry beside those in the text ({compared['types']:,} types)"
    yield from table_lines((title, "% types"), [(kind, _share(compared[kind])) for kind in KINDS], 1)
    if gold["excluded"]:
        yield ""
        excluded = [(word, tag, " ".join(tags), f"{count:,}") for word, tag, count, tags in gold["excluded"]]
        yield from table_lines(("gold tag is excluded", "gold", "entry", "tokens"), excluded, 3)


def _share(value: float) -> str:
    return f"{value:.2f}"


COMMANDS = {"stats": stats}
"""The commands of this group: ``isogloss dictionary stats``."""
