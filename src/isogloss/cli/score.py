"""`isogloss score`: how good are these links?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import (
    Json,
    Output,
    Quiet,
    check_output,
    choice,
    compiling,
    write_json,
    write_result,
)
from isogloss.cli._reading import ReadingOptions, with_reading
from isogloss.errors import LinksError, UsageError

if TYPE_CHECKING:
    from isogloss.data import Bitext, Links
    from isogloss.metrics import AlignmentScore, Calibration, Comparison, Curve

__all__ = ["command"]

_HELD_LINKS = ("auto", "pharaoh", "naacl", "giza")


@with_reading
def command(
    links: Annotated[str, typer.Argument(metavar="LINKS", show_default=False, help="The links to score.")],
    gold: Annotated[
        str,
        typer.Argument(metavar="GOLD", show_default=False, help="Gold links: `i-j` sure, `ipj` possible; or NAACL."),
    ],
    source_file: Annotated[
        str | None, typer.Option("--source-file", metavar="FILE", help="The source text: indices are checked with it.")
    ] = None,
    target_file: Annotated[str | None, typer.Option("--target-file", metavar="FILE", help="The target text.")] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="LINKS", help="Other links: is the difference more than chance?")
    ] = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Precision and recall over thresholds (`align --scores`).")
    ] = False,
    calibration: Annotated[
        bool, typer.Option("--calibration", help="Whether links of probability p are right in a share p of cases.")
    ] = False,
    bootstrap: Annotated[
        int | None,
        typer.Option(
            "--bootstrap",
            metavar="N",
            min=0,
            help="Resamples for intervals, 0 for none; 1000 without it, to compare 10000.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the random number generator.")] = 0,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    index_base: Annotated[
        str, choice("auto", "0", "1", option="--index-base", panel="Reading", help="What indices of gold count from.")
    ] = "auto",
    links_format: Annotated[
        str, choice(*_HELD_LINKS, option="--links-format", panel="Reading", help="How LINKS is written.")
    ] = "auto",
    gold_format: Annotated[
        str, choice(*_HELD_LINKS, option="--gold-format", panel="Reading", help="How GOLD is written.")
    ] = "auto",
    *,
    asked: ReadingOptions,
) -> None:
    """Score links against gold: precision, recall, balanced F and AER, in percent, with 95% intervals.

    With the two texts, every index is checked against its sentence, and gold that counts words from 1 is recognised.
    """
    if target_file is not None and source_file is None:
        raise UsageError("--target-file is there but --source-file is not; give both, or one file with both sides")
    named = [links, gold, against, source_file, target_file]
    if named.count("-") > 1:
        raise UsageError("standard input can be one of the files only")
    check_output(output, named)
    with compiling("score", quiet, "10 s"):
        from isogloss.data.formats import read_bitext

        reading = asked.of()
        bitext = None if source_file is None else read_bitext(source_file, target_file, **reading)
        base = index_base if index_base == "auto" else int(index_base)
        files = _Files(bitext, gold, {"format": gold_format, "index_base": base})
        report = _Report(files, files.of(links, links_format), bootstrap, seed)
        if against is not None:
            report.compare(against, files.of(against, links_format))
        if curve:
            report.add_curve()
        if calibration:
            report.add_calibration()
        if json:
            write_json(report.as_dict(), output)
        else:
            write_result(output, str(report))


class _Files:
    """Gold and the links that speak of the same sentence pairs."""

    def __init__(self, bitext: Bitext | None, path: str, options: dict[str, Any]) -> None:
        from isogloss.data.formats import parse_links, read_bytes
        from isogloss.data.formats.files import name_of

        self.bitext, self.path, self.name, self.options = bitext, path, name_of(path), options
        self.data = read_bytes(path)  # kept: standard input can be read once
        self.gold = parse_links(self.data, self.name, bitext=bitext, **options)
        if not len(self.gold.source):
            raise LinksError(f"{self.name}: there are no links, so there is nothing to score. Is it the right file?")

    def of(self, path: str, format: str) -> Links:
        """Links for the pairs of gold. Numbered formats leave out pairs without links, so the other file counts."""
        from isogloss.data.formats import parse_links, read_bytes
        from isogloss.data.formats.files import name_of

        data, name = read_bytes(path), name_of(path)
        links = parse_links(data, name, bitext=self.bitext, format=format)
        self._check_order(links, path, name)
        n_links, n_gold = len(links), len(self.gold)
        try:
            if n_links < n_gold:
                return parse_links(data, name, n_pairs=n_gold, format=format)
            if n_gold < n_links:
                self.gold = parse_links(self.data, self.name, n_pairs=n_links, **self.options)
        except LinksError:
            raise LinksError(
                f"{name} has {n_links} lines but {self.name} has {n_gold}: line k of both should speak of sentence "
                "pair k. Score the links of the text that the gold is of"
            ) from None
        return links

    def _check_order(self, links: Links, path: str, name: str) -> None:
        """Refuse gold where the links should be: only gold has possible links, only systems have probabilities."""
        if links.possible is not None and self.gold.possible is None:
            found, marked, plain = "possible links, as gold has", name, self.name
        elif self.gold.probability is not None and links.probability is None:
            found, marked, plain = "probabilities, as links of a system have", self.name, name
        else:
            return
        raise UsageError(
            f"{marked} has {found}, and {plain} has none. The links to score come first, then gold: isogloss score "
            f"{self.path} {path}. If the order is right, take them out of {marked}"
        )


class _Report:
    """Everything that was asked for, for people and for programs."""

    def __init__(self, files: _Files, links: Links, bootstrap: int | None, seed: int) -> None:
        from isogloss.metrics import score_links

        self.files, self.links, self.bootstrap, self.seed = files, links, bootstrap, seed
        self.score: AlignmentScore = score_links(
            links, files.gold, bootstrap=1000 if bootstrap is None else bootstrap, seed=seed
        )
        self.other: tuple[str, AlignmentScore, Comparison] | None = None
        self.curve: Curve | None = None
        self.calibration: Calibration | None = None

    def compare(self, path: str, other: Links) -> None:
        from isogloss.metrics import compare, score_links

        resamples = 10_000 if self.bootstrap is None else self.bootstrap
        comparison = compare(self.links, other, self.files.gold, resamples=resamples, seed=self.seed)
        score = score_links(other, self.files.gold, bootstrap=min(resamples, 1000), seed=self.seed)
        self.other = (path, score, comparison)

    def add_curve(self) -> None:
        from isogloss.metrics import curve

        self.curve = curve(self.links, self.files.gold)

    def add_calibration(self) -> None:
        from isogloss.metrics import calibration

        self.calibration = calibration(self.links, self.files.gold)

    def as_dict(self) -> dict[str, Any]:
        report = self.score.as_dict()
        if self.other is not None:
            path, score, comparison = self.other
            report["against"] = {"file": path, **score.as_dict()}
            report["comparison"] = comparison.as_dict()
        if self.curve is not None:
            report["curve"] = {**self.curve.as_dict(), "best_threshold": self.curve.best_threshold()}
        if self.calibration is not None:
            report["calibration"] = self.calibration.as_dict()
        return report

    def __str__(self) -> str:
        score, lines = self.score, []
        for name in score.measures:
            low_high = score.intervals.get(name)
            interval = "" if low_high is None else f"  [{low_high[0]:.2f}, {low_high[1]:.2f}]"
            lines.append(f"{name:9}  {score[name]:6.2f}{interval}")
        lines.append(f"links      {score.links:6,}  gold: {score.sure:,} sure, {score.possible:,} possible")
        lines.append(str(self.score))
        if self.other is not None:
            path, score, comparison = self.other
            lines += [f"{path}: {score}", str(comparison)]
        if self.curve is not None:
            best = int(self.curve.aer.argmin())
            lines.append(
                f"curve: area {100 * self.curve.area:.2f}; lowest AER {100 * self.curve.aer[best]:.2f}, of links with "
                f"probability {self.curve.threshold[best]:.4f} and more, had it been chosen on this gold"
            )
        if self.calibration is not None:
            lines.append(str(self.calibration))
        return "\n".join(lines) + "\n"
