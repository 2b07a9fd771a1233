"""The command line: one module for each command, imported when it is called.

To add a command, write ``isogloss/cli/<name>.py`` with one function called `command`, and add a line to `COMMANDS`:

- its parameters are annotated for Typer, best with the options of `isogloss.cli._common` (every command takes `Quiet`),
  and its docstring is the help;
- options of the estimator that it trains are those that the estimator declares: `isogloss.cli._options.with_options`;
- a group of commands (``isogloss tag train``) has a function for each in a dictionary `COMMANDS` instead;
- it imports what is heavy (NumPy, tasks) inside the function, so that ``--help`` answers at once;
- it writes results with `_common.write_result` or `write_json` (standard output or ``-o``, whole or not at all), says
  everything else with `_common.say` and `_common.warn`, and raises `IsoglossError`; it returns nothing, and never exits
  by itself;
- if it uses kernels, a line in `isogloss.cli.warm_up` compiles them beforehand.

The frame turns errors into one line and an exit status: 0 all is well, 1 the data were bad, 2 the call was wrong, 130
somebody stopped it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["COMMANDS", "Command", "main"]


class Command(NamedTuple):
    """Where a command lives, and what it does in a line."""

    module: str
    help: str


COMMANDS = {
    "align": Command(
        "isogloss.cli.align", "Link the words of a parallel text: train and apply, or apply a saved model."
    ),
    "align-worker": Command("isogloss.cli.align_worker", "Do a part of the work of `isogloss align --engine array`."),
    "train-aligner": Command("isogloss.cli.train_aligner", "Learn to align from sentences that were aligned by hand."),
    "suggest": Command("isogloss.cli.suggest", "Say which sentences to align by hand next."),
    "score": Command("isogloss.cli.score", "Score links against gold: precision, recall, F and AER with intervals."),
    "view": Command(
        "isogloss.cli.view", "Look at links, or at trees: one self-contained page, or drawings in the terminal."
    ),
    "lexicon": Command("isogloss.cli.lexicon", "Write a probabilistic lexicon from a model or from links."),
    "phrases": Command("isogloss.cli.phrases", "Write a phrase table from a text and its links."),
    "translate": Command("isogloss.cli.translate", "Translate: train on a parallel text, apply to new text, score."),
    "filter": Command("isogloss.cli.filter", "Score sentence pairs with a model and drop bad ones."),
    "tag": Command("isogloss.cli.tag", "Tag words: train on a treebank, apply to new text, score."),
    "dictionary": Command("isogloss.cli.dictionary", "Say what a dictionary of tags covers, and how well it fits."),
    "parse": Command("isogloss.cli.parse", "Parse sentences: train on a treebank, apply to new text, score."),
    "constituency": Command(
        "isogloss.cli.constituency", "Parse constituents: train on bracketed trees, apply to new text, score."
    ),
    "joint": Command(
        "isogloss.cli.joint", "Parse both sides of a bitext and align their words together: train, apply, score."
    ),
    "multiview": Command(
        "isogloss.cli.multiview", "Let models of two languages teach each other on a bitext: train, apply."
    ),
    "extract": Command(
        "isogloss.cli.extract", "Find names, relations or roles: train on text in which they are marked, apply, score."
    ),
    "segment": Command(
        "isogloss.cli.segment", "Cut words into morphemes: train on text, with or without cut words, apply, score."
    ),
    "threads": Command(
        "isogloss.cli.threads", "Draw threads through documents: story lines that are coherent and unlike each other."
    ),
    "rank": Command(
        "isogloss.cli.rank", "Rank documents or translations: train on graded groups, apply to new ones, score."
    ),
    "topics": Command(
        "isogloss.cli.topics", "Find the themes of documents in several languages: train, apply, match, look, score."
    ),
    "adapt": Command(
        "isogloss.cli.adapt", "Label documents of a new domain: train on labelled ones of another, apply, score."
    ),
    "summaries": Command(
        "isogloss.cli.summaries", "Score summaries, say which measure of them to trust, and make extracts."
    ),
    "split": Command("isogloss.cli.split", "Split contractions as trees do: Italian `della` is `di la`."),
    "doctor": Command("isogloss.cli.doctor", "Say what is odd about a corpus, what to do, and what it will cost."),
    "transfer": Command(
        "isogloss.cli.transfer", "Carry trees, tags, names or markup from one language to another, along links."
    ),
    "transfer-markup": Command("isogloss.cli.transfer_markup", "Carry inline tags of the source into the target."),
    "sample": Command("isogloss.cli.sample", "Write the files of a bundled corpus, to try the other commands on."),
    "warm-up": Command("isogloss.cli.warm_up", "Compile all kernels now, so that no command has to later."),
}
"""Name on the command line -> module and help line, in the order of ``isogloss --help``."""

_HELP = """\
Usage: isogloss COMMAND ...

Isogloss learns from text which exists in two or more languages.

Commands:
{commands}

Options:
  --version    Say which version this is.
  -q, --quiet  Nothing on stderr but warnings and errors; every command takes it.
  -h, --help   This page; `isogloss COMMAND --help` has the options of a command.

Examples:
  isogloss align news.de news.en -o links.txt --scores --save de-en.model
  isogloss align more.de more.en --model de-en.model -o more.txt
  isogloss score links.txt gold.txt
  isogloss view news.de news.en links.txt -o page.html

Results go to stdout or to -o, everything else to stderr. `-` is stdin; .gz, .xz and .zst open by themselves.
Exit status: 0 all is well, 1 bad data, 2 wrong usage, 130 stopped.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status; without arguments, be the program: take them from the system."""
    if arguments is not None:
        return _main(list(arguments))
    from isogloss.cli._frame import as_program

    # Our kernels are threaded; a BLAS that threads dot products of optimisers as well burns processors for nothing.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return as_program(lambda: _main(sys.argv[1:]))


def _main(arguments: list[str]) -> int:
    before: list[str] = []  # --quiet may stand in front of the command as well as behind it
    while arguments and arguments[0] in ("-q", "--quiet"):
        before.append(arguments.pop(0))
    first = arguments[0] if arguments else "--help"
    if "--version" in arguments[: arguments.index("--") if "--" in arguments else None]:
        from isogloss._version import __version__

        return _answer(f"isogloss {__version__}\n")
    if first in ("-h", "--help", "help") and len(arguments) < 2:
        return _answer(_help())
    if first == "help":
        first, arguments = arguments[1], [arguments[1], "--help"]
    from isogloss.cli import _frame

    if first not in COMMANDS:
        return _frame.refuse(first, list(COMMANDS))
    return _frame.run(first, COMMANDS[first].module, [*before, *arguments[1:]])


def _help() -> str:
    width = max(map(len, COMMANDS))
    return _HELP.format(commands="\n".join(f"  {name:{width}}  {entry.help}" for name, entry in COMMANDS.items()))


def _answer(text: str) -> int:
    """Print, whoever reads it: `isogloss --help | head -1` is no error."""
    from isogloss.cli._frame import guarded

    def answer() -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    return guarded(answer)
