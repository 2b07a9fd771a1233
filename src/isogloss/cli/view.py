"""`isogloss view`: look at links, or at trees."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from isogloss.cli._common import (
    READING,
    Output,
    Quiet,
    check_output,
    choice,
    compiling,
    is_standard_output,
    read_gold,
    say,
    two,
    write_result,
)
from isogloss.cli._constituents import KINDS, is_trees
from isogloss.cli._drawing import Drawing
from isogloss.cli._extract import KINDS as MARKED
from isogloss.cli._models import load_aligner
from isogloss.cli._reading import ReadingOptions, with_reading
from isogloss.cli._systems import NamedLinks, check_needed, job_of, named_files, read_named
from isogloss.cli._view_constituents import view_constituents
from isogloss.cli._view_names import is_names, view_names
from isogloss.cli._view_projection import view_projection
from isogloss.cli._view_trees import FORMATS, is_treebank, view_trees
from isogloss.errors import BitextError, UsageError

if TYPE_CHECKING:
    from isogloss.data import Bitext, Links

__all__ = ["command"]

_MOST_ON_A_PAGE = 2000
_MOST_IN_A_TERMINAL = 10
_MOST_REASONS = 300
_MOST_REASONS_OF_A_PAIR = 12
_MOST_FEATURES = 6


Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", show_default=False, help="Source text, or one file with both sides; or a treebank."
    ),
]
Target = Annotated[
    str | None,
    typer.Argument(
        metavar="[TARGET]", show_default=False, help="Its translation, omitted for one file; or other trees, or gold."
    ),
]
LinksFile = Annotated[
    str | None,
    typer.Argument(metavar="[LINKS]", show_default=False, help="The links of two texts, or of two treebanks."),
]
Gold = Annotated[
    str | None,
    typer.Option("--gold", metavar="FILE", help="Gold links, of the whole text or its first lines; or gold trees."),
]
Other = Annotated[
    str | None,
    typer.Option(
        "--compare", "--other", metavar="FILE", help="Links, or trees, of a second system: see where they differ."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="A model by `train-aligner`: say which features decided, where systems differ or gold does.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        metavar="N",
        min=1,
        help=f"How many; {_MOST_ON_A_PAGE} pairs or 500 trees without it, in the terminal {_MOST_IN_A_TERMINAL}.",
    ),
]
Terminal = Annotated[bool, typer.Option("--terminal", help="Draw with characters instead of a page.")]
Line = Annotated[
    list[int] | None,
    typer.Option("--line", metavar="N", min=1, help="Only that line, or sentence; may be given several times."),
]
Sentence = Annotated[list[int] | None, typer.Option("--sentence", min=1, hidden=True)]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="What the page is called.")]
LinksOf = Annotated[
    str | None,
    choice(
        "tokens",
        "words",
        option="--links-of",
        help="What LINKS of two treebanks count: tokens as they are written, or the words that trees have. "
        "[default: tokens]",
    ),
]
Format = Annotated[
    str,
    choice(
        "auto",
        "pair",
        "bars",
        "tsv",
        "tmx",
        *FORMATS,
        *KINDS[:3],
        *MARKED,
        option="--format",
        panel=READING,
        metavar="NAME",
        help="How text is held: two files (pair), `source ||| target` (bars), columns (tsv), tmx; or what trees are "
        f"in: {', '.join((*FORMATS, *KINDS[:3]))}; or what names are in: {', '.join(MARKED)}.",
    ),
]
Languages = Annotated[
    str | None,
    typer.Option(
        "--languages",
        metavar="A,B",
        rich_help_panel=READING,
        help="As `zh,ja`: which two of a TMX file; and, for the browser, whose glyphs to use.",
    ),
]


@with_reading
def command(
    source: Source,
    target: Target = None,
    links: LinksFile = None,
    gold: Gold = None,
    other: Other = None,
    model: Model = None,
    systems: NamedLinks = None,
    output: Output = None,
    limit: Limit = None,
    terminal: Terminal = False,
    line: Line = None,
    sentence: Sentence = None,
    title: Title = None,
    links_of: LinksOf = None,
    quiet: Quiet = False,
    format: Format = "auto",
    *,
    asked: ReadingOptions,
) -> None:
    """Look at links, or at trees: one HTML page that needs no network, or drawings in the terminal.

    The page goes to -o, or to stdout if that is not a terminal; with gold it shows what is right, wrong and missed, and
    can be sorted by that. Of two systems, the pairs where they differ most come first.

    A treebank (CoNLL-U, CoNLL-X, CoNLL-2009, bracketed trees) is drawn as trees, and a second one beside it, with what
    differs marked; -o tree.svg takes a single tree. With LINKS, the second treebank is the translation of the first,
    and what the links carry of the first tree is drawn beside the second (dashed). A file in which names are marked, a
    word and its tag a line, is drawn with these below the words, and a second one beside it.
    """
    lines = [*(line or ()), *(sentence or ())] or None
    bracketed, named = is_trees(source, format), is_names(source, format)
    if bracketed or named or is_treebank(source, format):
        _refuse_for_trees(
            source, model=model, systems=systems, normalise=asked.normalise, columns=asked.columns,
            languages=asked.languages, source_encoding=asked.source_encoding, target_encoding=asked.target_encoding,
            tokenise=asked.tokenise,
        )  # fmt: skip
        drawing = Drawing(output, limit, terminal, lines, title, quiet, format, asked.encoding, asked.errors)
        if named:
            return view_names(_two_at_most(source, target, links, gold, other), drawing)
        if links is not None and target is not None:
            if bracketed:
                raise UsageError(
                    f"view: {source}: links are drawn between treebanks with dependencies, not between constituents. "
                    "Leave out LINKS"
                )
            if gold is not None or other is not None:
                raise UsageError(
                    "view: with links, two treebanks are drawn as they are; leave out --gold and --compare"
                )
            return view_projection((source, target, links), drawing, links_of or "tokens")
        if links_of is not None:
            raise UsageError("view: --links-of says what LINKS of two treebanks count, and there are none")
        files = [path for path in (source, target, gold, other) if path is not None]
        if format == "auto" and any(is_trees(path) != bracketed for path in files):
            raise UsageError(
                f"view: {' and '.join(files)} cannot be drawn together: one has constituents, the other dependencies"
            )
        if len(files) > 2:
            raise UsageError(f"view: two treebanks can be drawn side by side, not {len(files)}: {', '.join(files)}")
        return (view_constituents if bracketed else view_trees)(files, drawing)
    if links_of is not None:
        raise UsageError("view: --links-of is for two treebanks. Leave it out")
    if target is None:
        if source != "-" and not os.path.exists(source):
            raise UsageError(f"{source}: no such file")
        raise UsageError(
            f"view: {source} alone has nothing to show: give SOURCE, TARGET and LINKS, or a treebank"
            + (" with --format conllu, or brackets" if source == "-" else "; --format brackets says that it has trees")
        )
    by_name = named_files(systems)
    texts = _Files(source, None if links is None else target, target if links is None else links, gold, other)
    _check(texts, by_name, model, output)
    reading = asked.of(model, source)
    with compiling("view" if model is None else job_of(model), quiet, "10 s" if model is None else "30 s"):
        shown = _read(texts, reading)
        shown.languages = None if asked.languages is None else two(str, "--languages en,fr")(asked.languages)
        if model is not None:
            shown.aligner = _supervised(model, by_name)
            shown.systems = read_named(by_name, shown.bitext) or None
        _draw(shown, output, terminal, lines, limit, title, quiet)


def _two_at_most(*paths: str | None) -> list[str]:
    files = [path for path in paths if path is not None]
    if len(files) > 2:
        raise UsageError(f"view: two files with names can be drawn side by side, not {len(files)}: {', '.join(files)}")
    return files


class _Files(NamedTuple):
    """What is read: the texts, their links, and links to compare them with."""

    source: str
    target: str | None
    links: str
    gold: str | None
    other: str | None


def _refuse_for_trees(source: str, **given: object) -> None:
    """Options that make no sense for a treebank are not passed over in silence."""
    for name, value in given.items():
        if value:
            option = f"--{'links' if name == 'systems' else name.replace('_', '-')}"
            raise UsageError(
                f"view: {option} is for two texts, but {source} is a treebank. Leave it out, or say what {source} is "
                "with --format"
            )


def _check(files: _Files, named: Mapping[str, str], model: str | None, output: str | None) -> None:
    """Before the work: files and options that do not go together."""
    if [*files, *named.values()].count("-") > 1:
        raise UsageError("standard input can be one of the files only")
    if model is None and named:
        raise UsageError("--links: are for a --model that has them for features, and none is given")
    if model is not None and files.gold is None and files.other is None:
        raise UsageError("--model says why systems differ, or err: give --compare LINKS or --gold GOLD with it")
    check_output(output, [*files, *named.values()])


def _draw(
    shown: _Shown, output: str | None, terminal: bool, lines: Sequence[int] | None, limit: int | None,
    title: str | None, quiet: bool,
) -> None:  # fmt: skip
    as_grids = terminal or (is_standard_output(output) and _is_terminal())
    most = _MOST_IN_A_TERMINAL if as_grids else _MOST_ON_A_PAGE
    chosen = shown.choose(lines, limit, most, quiet)
    shown.explain(chosen, quiet)
    if as_grids:
        write_result(output, _grids(shown, chosen, colour=is_standard_output(output) and _is_terminal()))
    else:
        from isogloss.show import page

        chosen = chosen if lines else sorted(chosen)  # the page itself begins with what differs most
        write_result(output, page(shown.pairs(chosen), title=title or shown.title, summary=shown.summary()))


@dataclass
class _Shown:
    """What there is to show."""

    bitext: Bitext
    links: Links
    gold: Links | None
    other: Links | None
    names: tuple[str, str]
    languages: tuple[str, str] | None = None
    aligner: Any = None
    systems: Mapping[str, Links] | None = None
    reasons: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        names = dict.fromkeys(os.path.basename(text.name) for text in (self.bitext.source, self.bitext.target))
        return " – ".join(names)

    @property
    def n_empty(self) -> int:
        """Pairs with an empty side: there is nothing to draw."""
        return int((self.bitext.cells == 0).sum())

    def choose(self, lines: Sequence[int] | None, limit: int | None, most: int, quiet: bool) -> Sequence[int]:
        """The pairs to show, counted from 0: those asked for, or so many of those that have words on both sides."""
        n_pairs = len(self.bitext)
        if lines:
            for number in lines:
                if number > n_pairs:
                    raise UsageError(f"--line {number}: {self.bitext.source.name} has {n_pairs} lines")
            return [number - 1 for number in lines]
        usable = n_pairs - self.n_empty
        if usable == 0:
            raise BitextError(
                f"{self.bitext.source.name}: no pair has words on both sides, so there is nothing to draw. "
                "Are these the right files?"
            )
        if self.n_empty:
            say(f"left out: {self.n_empty:,} of {n_pairs:,} pairs, where a side is empty", quiet)
        if limit is None and usable > most:
            which = "first" if self.other is None else "most different"
            say(f"the {which} {most:,} of {usable:,} pairs are shown; --limit and --line choose others", quiet)
        order = range(n_pairs) if self.other is None else self._most_different()
        cells = self.bitext.cells
        return [pair for pair in order if cells[pair]][: limit or most]

    def _most_different(self) -> list[int]:
        """All pairs, those first where most links are of one system alone; equals in the order of the text."""
        import numpy as np

        assert self.other is not None
        width = 1 + int(max(self.bitext.target.ids.lengths.max(initial=0), 1))
        height = 1 + int(max(self.bitext.source.ids.lengths.max(initial=0), 1))
        keys = []
        for links in (self.links, self.other):
            sure = links if links.possible is None else links.keep(~links.possible)
            keys.append((sure.pair * height + sure.source) * width + sure.target)
        apart = np.setxor1d(keys[0], keys[1]) // (width * height)
        order: list[int] = np.argsort(-np.bincount(apart, minlength=len(self.bitext)), kind="stable").tolist()
        return order

    def _apart(self, pair: int) -> list[tuple[int, int]]:
        """Links of one system alone; without a second system, those that are wrong or missed."""
        links = self.links[pair].links
        if self.other is not None:
            return sorted(links ^ self.other[pair].links)
        if self.gold is None or pair >= len(self.gold):
            return []
        gold = self.gold[pair]
        return sorted((links - gold.links - gold.possible) | (gold.links - links))

    def explain(self, chosen: Sequence[int], quiet: bool) -> None:
        """Ask the model about the links that differ, of the first pairs chosen, until there are enough for a page."""
        if self.aligner is None:
            return
        room = _MOST_REASONS
        left = 0
        for pair in chosen:
            apart = self._apart(pair)
            told = apart[: min(room, _MOST_REASONS_OF_A_PAIR)]
            room, left = room - len(told), left + len(apart) - len(told)
            if told:
                self.reasons[pair] = [self._reason(pair, i, j) for i, j in told]
        if left:
            say(f"features are given for {_MOST_REASONS - room} links, and left out for {left:,} others", quiet)

    def _reason(self, pair: int, source: int, target: int) -> dict[str, Any]:
        given = {} if self.systems is None else {"links": self.systems}
        answer = self.aligner.explain(self.bitext, pair, source=source, target=target, **given)
        return {
            "source": source,
            "target": target,
            "features": _contributions(answer),
            "probability": answer.get("probability"),
            "text": answer.get("reason"),
        }

    def pairs(self, chosen: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Each pair as `isogloss.show` takes it."""
        for pair in chosen:
            shown = self.links[pair].as_dict()
            shown["source"], shown["target"] = map(list, self.bitext[pair])  # as_dict has numbers for an empty side
            shown["line"] = self.bitext.line_of(pair)
            if self.gold is not None and pair < len(self.gold):
                gold = self.gold[pair]
                shown["gold"] = {"sure": sorted(gold.links), "possible": sorted(gold.possible)}
            if self.other is not None:
                shown["other"], shown["names"] = self.other[pair].as_dict()["links"], self.names
            if pair in self.reasons:
                shown["reasons"] = self.reasons[pair]
            if self.languages is not None:
                shown["languages"] = self.languages
            yield shown

    def summary(self) -> dict[str, Any]:
        """What stands at the top of the page: scores of the whole text if there is gold."""
        facts: dict[str, Any] = {"pairs": len(self.bitext), "links": len(self.links.source)}
        if self.n_empty:
            facts["pairs with an empty side"] = self.n_empty
        if self.gold is None:
            return facts
        from isogloss.metrics import compare, score_links

        n_gold = len(self.gold)
        score = score_links(self.links[:n_gold], self.gold)
        scores = {name: score[name] for name in score.measures}
        facts = {**scores, **facts, "signature": score.signature}
        if self.other is not None:
            comparison = compare(self.links[:n_gold], self.other[:n_gold], self.gold)
            facts |= {f"AER of {self.names[1]}": comparison.second, "comparison": str(comparison)}
        return facts


def _read(files: _Files, reading: dict[str, Any]) -> _Shown:
    from isogloss.data.formats import read_bitext, read_links

    source, target, links, gold, other = files
    bitext = read_bitext(source, target, **reading)
    names = [os.path.basename(path) for path in (links, other or "")]
    if names[0] == names[1]:  # runs of one name in two folders
        names = [links, other or ""]
    return _Shown(
        bitext,
        read_links(links, bitext=bitext),
        None if gold is None else read_gold(gold, bitext),
        None if other is None else read_links(other, bitext=bitext),
        (names[0], names[1]),
    )


def _supervised(path: str, named: dict[str, str]) -> Any:
    """A model that can say what features add."""
    from isogloss.cli.train_aligner import ALIGNERS

    aligner = load_aligner(path)
    if not aligner.supervised:
        raise UsageError(
            f"--model {path}: the {type(aligner).__name__} that is kept here has no features to speak of; "
            "`isogloss train-aligner auto` keeps one like it where gold does not show that another is better. Name a "
            f"kind that has features: `isogloss train-aligner {next(iter(ALIGNERS))}`"
        )
    check_needed(aligner, named, path)
    return aligner


def _contributions(answer: Mapping[str, Any]) -> list[tuple[str, float]]:
    """What features add to a link, less what they would add to leaving its words alone; the largest, and the rest."""
    found = [(entry["feature"], entry["contribution"]) for entry in answer.get("features", ())]
    for null in answer.get("nulls", {}).values():
        found += [(entry["feature"], -entry["contribution"]) for entry in null["features"]]
    found = sorted((entry for entry in found if entry[1]), key=lambda entry: -abs(entry[1]))
    rest = found[_MOST_FEATURES:]
    return found[:_MOST_FEATURES] + ([(f"{len(rest)} others", sum(value for _, value in rest))] if rest else [])


def _grids(shown: _Shown, chosen: Sequence[int], colour: bool) -> Iterator[str]:
    from isogloss.show import terminal

    width = max(shutil.get_terminal_size().columns, 20)
    colour = colour and not os.environ.get("NO_COLOR")
    for number, pair in enumerate(shown.pairs(chosen)):
        yield ("\n" if number else "") + terminal(pair, width=width, colour=colour) + "\n"


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()
