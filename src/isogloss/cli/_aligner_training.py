"""What `isogloss train-aligner` does: read gold, learn from it, and say how well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from isogloss.cli._common import progress_for, read_gold, say, warn
from isogloss.cli._gold import check_dev, joined_text, labelled_pairs, links_of, read_dev, read_text
from isogloss.cli._raw import warn_if_raw
from isogloss.errors import LinksError, UsageError

if TYPE_CHECKING:
    from isogloss.data import Bitext, Links
    from isogloss.tasks.align.supervised.choosing import Choice

__all__ = ["AlignerTraining", "GoldFiles"]

_VERY_FEW, _FEW = 5, 25
_STRANGE = 0.75
"""An error of the HMM, from 0 to 1, that speaks against the gold: it is below 0.6 on the hardest set we know."""


class GoldFiles(NamedTuple):
    """What is read to learn from gold.

    Parameters
    ----------
    text : (str, str or None, str)
        Source, target and gold; without a target, both sides are in one file.
    unlabelled : (str, str), optional
        More text.
    dev : (str, str, str), optional
        Source, target and gold to choose settings on.
    named, dev_named : dict of str to str
        Links of other systems, for the text and for that of `dev`.
    """

    text: tuple[str, str | None, str]
    unlabelled: tuple[str, str] | None
    dev: tuple[str, str, str] | None
    named: dict[str, str]
    dev_named: dict[str, str]

    @property
    def others(self) -> list[str]:
        """Links of other systems."""
        return [*self.named.values(), *self.dev_named.values()]

    def check(self) -> None:
        """Refuse files that do not go together."""
        every = [*self.text, *(self.unlabelled or ()), *(self.dev or ()), *self.others]
        if every.count("-") > 1:
            raise UsageError("standard input can be one of the files only")
        check_dev(self.text, self.dev, self.named, self.dev_named)


class AlignerTraining:
    """One training: what it is given, and what came of it.

    Parameters
    ----------
    files : GoldFiles
    reading : dict
        How bitexts are read.
    skip_empty : bool
        Whether a line of gold without links says that the pair is not done.
    quiet : bool
    """

    def __init__(self, files: GoldFiles, reading: dict[str, Any], skip_empty: bool, quiet: bool) -> None:
        from isogloss.data.formats import read_bitext

        self.quiet = quiet
        source, target, gold = files.text
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
        self.links = links_of(files.named, text, rows)
        two = {**reading, "format": "auto", "columns": None, "languages": None}  # those are for single files
        more = None if files.unlabelled is None else read_bitext(*files.unlabelled, **two)
        self.n_more = 0 if more is None else len(more)
        self.text = joined_text(rest, more)
        self.dev: tuple[Bitext, Links] | None = None
        self.dev_links: dict[str, Links] | None = None
        if files.dev is not None:
            self.dev, self.dev_links = read_dev(files.dev, files.dev_named, two)

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
