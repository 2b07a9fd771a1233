"""`isogloss train-aligner`: learn to align from sentences that a person aligned."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import (
    Json,
    Quiet,
    Threads,
    compiling,
    progress_for,
    read_gold,
    say,
    warn,
    write_json,
)
from isogloss.cli._gold import check_dev, dev_files, joined_text, labelled_pairs, links_of, read_dev, read_text
from isogloss.cli._options import flag_of, with_options
from isogloss.cli._raw import warn_if_raw
from isogloss.cli._reading import ReadingOptions, with_reading
from isogloss.cli._systems import NamedLinks, named_files
from isogloss.errors import LinksError, UsageError
from isogloss.tasks.align.options import ItgOptions, MatchingOptions, QuadraticOptions, SupervisedOptions

if TYPE_CHECKING:
    from isogloss.data import Bitext, Links
    from isogloss.tasks.align.supervised.choosing import Choice

__all__ = ["command"]

LEARNING = "Learning"
ALIGNERS = {"matching": "MatchingAligner", "quadratic": "QuadraticAligner", "itg": "ItgAligner"}
WAYS = {"matching": MatchingOptions, "quadratic": QuadraticOptions, "itg": ItgOptions}
_LEARNING = (
    "features", "trainer", "missed", "iterations", "threshold", "empty", "tune", "lowercase", "max_length", "seed",
)  # fmt: skip
AUTO = "auto"
_VERY_FEW, _FEW = 5, 25
_STRANGE = 0.75
"""An error of the HMM, from 0 to 1, that speaks against the gold: it is below 0.6 on the hardest set we know."""


def _kind(value: str) -> str:
    if value not in (*ALIGNERS, AUTO):
        raise typer.BadParameter(f"'{value}' is not one of {', '.join((*ALIGNERS, AUTO))}")
    return value


@with_reading
@with_options(WAYS, *_LEARNING, panel=LEARNING, first=("lexicon",), flags={"lowercase": "--lowercase/--keep-case"})
def command(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="|".join((*ALIGNERS, AUTO)),
            show_default=False,
            callback=_kind,
            help="Links one to one; words with two links, and neighbours; blocks that a grammar puts together; or that "
            "of them which does best on held-out gold, if it is better than an aligner without gold.",
        ),
    ],
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", show_default=False, help="Source text; or one file with both sides.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="[TARGET]", show_default=False, help="Its translation; omitted for one file.")
    ],
    gold: Annotated[
        str | None,
        typer.Argument(
            metavar="GOLD", show_default=False, help="Links by hand, of all or the first lines; empty: not done."
        ),
    ] = None,
    save: Annotated[str | None, typer.Option("--save", metavar="MODEL", help="Keep the model in this folder.")] = None,
    unlabelled: Annotated[
        tuple[str, str] | None,
        typer.Option("--unlabelled", metavar="SOURCE TARGET", help="More text without links; the more the better."),
    ] = None,
    dev: Annotated[
        tuple[str, str, str] | None,
        typer.Option("--dev", metavar="SOURCE TARGET GOLD", help="Choose settings on this, not on folds of the gold."),
    ] = None,
    links: NamedLinks = None,
    dev_links: Annotated[
        list[str] | None,
        typer.Option("--dev-links", metavar="NAME=FILE", help="The same for the text of --dev."),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            rich_help_panel=LEARNING,
            help="Any other option that the class has in Python; may be given several times.",
        ),
    ] = None,
    *,
    options: dict[str, Any],
    asked: ReadingOptions,
) -> None:
    """Learn to align from sentences that were aligned by hand; fifty to a hundred are enough to begin with.

    GOLD has a line `0-0 1-2 3p4` for each line of the text: source first, counted from 0, p for possible links. It may
    end early, and an empty line says that a pair is not done; the text of such pairs is used without links. Settings
    are chosen by cross-validation within the gold, and with `auto` the kind of aligner too; where that cannot be told
    from the aligner without gold, `auto` keeps the latter, and says so. Apply the model with `isogloss align --model`,
    and ask `isogloss suggest` what to align next.
    """
    began = time.perf_counter()
    if gold is None:
        files: tuple[str, str | None, str] = (source, None, target)
    else:
        files = (source, target, gold)
    named = named_files(links)
    dev_named = dev_files(dev_links)
    _check(files, save, unlabelled, dev, [*named.values(), *dev_named.values()], options, json)
    check_dev(files, dev, named, dev_named)
    if named:
        options["links"] = tuple(named)
    if threads is not None:
        options["threads"] = threads
    reading = asked.of()
    if save is not None:
        from isogloss import store

        store.check_place(save)  # before the work
    with compiling(f"train-{kind}", quiet, "a minute"):
        if "lexicon" in options:
            from isogloss.tasks.align.lexicon import read_lexicon

            options["lexicon"] = list(read_lexicon(options["lexicon"]))  # a wrong file should not cost a training
        own = _own_options(option)
        aligner = None if kind == AUTO else _new(kind, options, own)
        shared = _for_all_kinds(options, own) if kind == AUTO else {}
        skip_empty = {**options, **own}.get("empty", SupervisedOptions().empty) == "skip"
        work = _Work(files, unlabelled, dev, named, dev_named, reading, skip_empty, quiet)
        work.train(aligner, shared)
    if save is not None:
        work.aligner.save(save)
    seconds = time.perf_counter() - began
    work.report(save, seconds)
    if json:
        write_json(work.summary(save, seconds))


def _check(
    files: tuple[str, str | None, str],
    save: str | None,
    unlabelled: tuple[str, str] | None,
    dev: tuple[str, str, str] | None,
    others: list[str],
    options: dict[str, Any],
    json: bool,
) -> None:
    every = [*files, *(unlabelled or ()), *(dev or ()), *others]
    if every.count("-") > 1:
        raise UsageError("standard input can be one of the files only")
    if options.get("features") == () and not others:
        raise UsageError("--features: names no set, so there is nothing to learn. Leave it out to have the usual ones")
    if save is None and not json:
        raise UsageError("train-aligner: what is learnt would be lost: give --save MODEL, or --json to see the report")


def _own_options(given: list[str] | None) -> dict[str, Any]:
    """``["fertility=2", ...]`` as a dictionary: numbers, true, false and null as in JSON, all else as words."""
    import json

    found: dict[str, Any] = {}
    for entry in given or ():
        name, mark, value = entry.partition("=")
        if not name or not mark:
            raise UsageError(f"--option {entry}: should be a name and a value, as --option folds=10")
        try:
            found[name.replace("-", "_")] = json.loads(value)
        except ValueError:
            found[name.replace("-", "_")] = value
    return found


def _new(kind: str, options: dict[str, Any], own: dict[str, Any]) -> Any:
    from isogloss.tasks import align

    made = getattr(align, ALIGNERS[kind], None)
    if made is None:
        raise UsageError(f"train-aligner {kind}: this version of Isogloss has no {ALIGNERS[kind]}")
    known = {name for name, declared in made._options.items() if declared.kept}
    for name in own:
        if name not in known:
            raise UsageError(f"--option {name}: {ALIGNERS[kind]} has no such option; it has {', '.join(sorted(known))}")
    _check_once(options, own)
    aligner = made(**{**options, **own})
    aligner.check_params()
    return aligner


def _check_once(options: dict[str, Any], own: dict[str, Any]) -> None:
    for name in own:
        if name in options:
            raise UsageError(f"--option {name}: is given twice, once as {flag_of(name)}")


def _for_all_kinds(options: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Options of `choose_aligner`; those that not every kind of aligner has are refused."""
    from isogloss.tasks.align.supervised.choosing import check_options, unsuited

    _check_once(options, own)
    every = {**options, **own}
    if (problem := unsuited(list(ALIGNERS), every)) is not None:
        name, reason = problem
        asked = f"--option {name}" if name in own else flag_of(name)
        raise UsageError(
            f"{asked}: {reason}, and auto tries {', '.join(ALIGNERS)}. Leave it out, or name the kind that you want: "
            "isogloss train-aligner itg ..."
        )
    check_options(list(ALIGNERS), every)
    return {name: value for name, value in every.items() if name != "links"}


class _Work:
    """One training: what it is given, and what came of it."""

    def __init__(
        self,
        files: tuple[str, str | None, str],
        unlabelled: tuple[str, str] | None,
        dev: tuple[str, str, str] | None,
        named: dict[str, str],
        dev_named: dict[str, str],
        reading: dict[str, Any],
        skip_empty: bool,
        quiet: bool,
    ) -> None:
        from isogloss.data.formats import read_bitext

        self.quiet = quiet
        source, target, gold = files
        text = read_text(source, target, reading)
        warn_if_raw(text)
        links = read_gold(gold, text)
        self.bitext, self.gold, rest, rows = labelled_pairs(text, links, skip_empty)
        if not len(self.bitext):
            raise LinksError(
                f"{gold}: no line has links, so there is nothing to learn from. Write source-target, counted from 0, "
                "as 0-0 1-2 in the lines of the pairs that you aligned"
            )
        self.n_pairs, self.n_gold_lines = len(text), len(links)
        self.links = links_of(named, text, rows)
        two = {**reading, "format": "auto", "columns": None, "languages": None}  # those are for single files
        more = None if unlabelled is None else read_bitext(*unlabelled, **two)
        self.n_more = 0 if more is None else len(more)
        self.text = joined_text(rest, more)
        self.dev: tuple[Bitext, Links] | None = None
        self.dev_links: dict[str, Links] | None = None
        if dev is not None:
            self.dev, self.dev_links = read_dev(dev, dev_named, two)

    def train(self, aligner: Any, options: dict[str, Any]) -> None:
        """Learn, and see how well on pairs that were held out; without an aligner, that of the best kind."""
        if _VERY_FEW <= len(self.bitext) < _FEW:  # below, the aligner warns
            say(
                f"gold of {_count(len(self.bitext), 'pair')} is little: expect fifty to a hundred to be needed. "
                "`isogloss suggest` says which to align next",
                self.quiet,
            )
        self.aligner: Any
        others = {"links": self.links, "dev_links": self.dev_links}
        progress = progress_for(self.quiet)
        self.choice: Choice | None = None
        if aligner is None:
            from isogloss.tasks.align.supervised.choosing import choose_aligner

            about = {"dev": self.dev, "progress": progress, **others, **options}
            self.choice = choose_aligner(self.bitext, self.gold, self.text, **about)
            self.aligner = self.choice.aligner
        else:
            self.aligner = aligner.fit(self.bitext, self.gold, self.text, self.dev, progress, **others)
        self.supervised = self.choice is None or self.choice.is_supervised
        self.baseline = self._baseline()
        if self.baseline is not None and self.baseline > _STRANGE:
            warn(
                f"the gold and an HMM of the text hardly agree (AER {100 * self.baseline:.1f}). Is the gold of this "
                "text, line for line, with the source first and words counted from 0? Or is there little text: give "
                "more as --unlabelled"
            )

    @property
    def held_out(self) -> float | None:
        """The error, from 0 to 1, of the settings chosen, on pairs that were not trained on."""
        errors = [entry["aer"] for entry in self.aligner.tuning_] if self.supervised else []
        return min(errors) if errors else None

    def _baseline(self) -> float | None:
        """The error of the unsupervised aligner behind the features on the same pairs."""
        if self.choice is not None and self.choice.unsupervised is not None:
            return self.choice.unsupervised.aer / 100
        extractor = self.aligner.extractor_
        if "hmm" not in extractor.sets:
            return None
        from isogloss.tasks.align.supervised.targets import GoldCells, error_rate

        bitext, gold, links = self.bitext, self.gold, self.links
        if self.dev is not None:
            (bitext, gold), links = self.dev, self.dev_links
        features = extractor.transform(bitext, links)
        linked = features.links[:, features.column("hmm_link")] > 0
        return error_rate(linked, GoldCells.of(gold, features.shapes))

    # --- words

    def report(self, save: str | None, seconds: float) -> None:
        """What was learnt from, how well, and with which settings, for people."""
        for line in self._lines():
            say(line, self.quiet)
        where = f"saved in {save}" if save is not None else "not saved (no --save)"
        say(f"{where}, {seconds:.1f} s", self.quiet)

    def _lines(self) -> list[str]:
        aligner, sure = self.aligner, self._n_sure()
        used = f"{_count(self.n_gold, 'pair')} with gold ({sure:,} sure, {len(self.gold.source) - sure:,} possible)"
        without = self.n_pairs - len(self.bitext)
        used += f", {_count(without, 'pair')} of the text without" if without else ""
        used += f", {_count(self.n_more, 'unlabelled pair')}" if self.n_more else ""
        lines = [f"{'learnt from' if self.supervised else 'compared on'} {used}"]
        if passed := len(self.bitext) - self.n_gold:
            reason = f"a side is empty or longer than {aligner.max_length} words, or the aligner cannot take it"
            lines.append(f"{_count(passed, 'pair')} with gold passed over: {reason} (--max-length)")
        if self.choice is not None:
            lines.append(str(self.choice))
            if not self.supervised:
                best = self.choice.best.partition("/")[0]
                lines.append(
                    "the model is that HMM, which knows the text and no gold, and is for new text: `isogloss align` "
                    "without a model aligns this text better. Align more by hand (`isogloss suggest` says what), or "
                    f"have the other all the same: isogloss train-aligner {best}"
                )
                return lines
        if self.held_out is not None:
            folds = f"in {min(aligner.folds, self.n_gold)}-fold cross-validation within the gold"
            line = f"AER {100 * self.held_out:.2f} {folds if self.dev is None else 'on --dev'}"
            tried = len(aligner.tuning_)
            line += f" (the best of {tried} settings, so a little too good)" if tried > 1 else ""
            if self.baseline is not None:
                line += f"; without gold, by the HMM alone, {100 * self.baseline:.2f}"
            lines.append(line)
        chosen = {name: value for name, value in aligner.setting_.as_dict().items() if value is not None}
        words = ", ".join(f"{name} {value:g}" for name, value in chosen.items() if name != "passes")
        lines.append(f"trainer {aligner.trainer_}, {words}")
        return lines

    @property
    def n_gold(self) -> int:
        """Pairs with gold that were learnt from, or compared on."""
        return self.aligner.n_gold_ if self.supervised else self.choice.n_gold  # type: ignore[union-attr]

    def _n_sure(self) -> int:
        possible = self.gold.possible
        return len(self.gold.source) - (0 if possible is None else int(possible.sum()))

    def summary(self, save: str | None, seconds: float) -> dict[str, Any]:
        """The same for programs; errors in percent."""
        from isogloss._version import __version__
        from isogloss.cli._alignment import peak_memory

        aligner, sure = self.aligner, self._n_sure()
        learnt: dict[str, Any] = {
            "trainer": None,
            "setting": None,
            "tuning": [],
            "temperature": None,
            "objective": [],
            "weights": {},
        }
        if self.supervised:
            tuning = [{**entry, "aer": 100 * entry["aer"]} for entry in aligner.tuning_]
            learnt = {
                "trainer": aligner.trainer_, "setting": aligner.setting_.as_dict(), "tuning": tuning,
                "temperature": aligner.temperature_, "objective": aligner.trace_, "weights": aligner.feature_weights(),
            }  # fmt: skip
        return {
            "aligner": aligner._kind.removeprefix("align."),
            "choice": None if self.choice is None else self.choice.as_dict(),
            "pairs": self.n_pairs,
            "gold_lines": self.n_gold_lines,
            "gold_pairs": self.n_gold,
            "sure": sure,
            "possible": len(self.gold.source) - sure,
            "unlabelled_pairs": self.n_pairs - len(self.bitext) + self.n_more,
            "held_out": "dev" if self.dev is not None else "folds" if not self.supervised or aligner.tune else None,
            "aer": None if self.held_out is None else 100 * self.held_out,
            "aer_hmm": None if self.baseline is None else 100 * self.baseline,
            "threshold": aligner.threshold_,
            **learnt,
            "options": aligner.options_,
            "seconds": seconds,
            "peak_memory_mb": peak_memory(),
            "model": save,
            "version": __version__,
        }


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s'[: number != 1]}"
