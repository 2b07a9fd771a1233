"""The doctor's look at links and gold."""

from __future__ import annotations

import warnings

import numpy as np

from isogloss.data import Bitext, Links
from isogloss.data.formats import read_links
from isogloss.errors import DataError
from isogloss.tasks.align._doctor_sides import finding
from isogloss.tasks.align.doctor import Finding

__all__ = ["examine_links"]


def examine_links(path: str, bitext: Bitext, findings: list[Finding]) -> None:
    """Whether links fit the text, and whether they count as we do."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            links = read_links(path, index_base="auto")
    except DataError as problem:
        findings.append(Finding("error", "unreadable", "links", 1, str(problem), "Mend that line"))
        return
    if len(links) != len(bitext):
        severity = "note" if len(links) < len(bitext) else "error"
        message = f"there are links for {len(links):,} pairs, the text has {len(bitext):,}"
        remedy = "Fine for gold of the first lines; else it belongs to another text"
        findings.append(finding("links", severity, "links-lines", [], message, remedy, abs(len(links) - len(bitext))))
        if len(links) > len(bitext):
            return
        bitext = bitext.part(0, len(links))
    if _fits(links, bitext, findings):
        _amount(links, bitext, findings)


def _fits(links: Links, bitext: Bitext, findings: list[Finding]) -> bool:
    pair = links.pair
    n_source, n_target = bitext.source.ids.lengths[pair], bitext.target.ids.lengths[pair]
    outside = (links.source >= n_source) | (links.target >= n_target)
    if not outside.any():
        lowest = min(int(links.source.min(initial=1)), int(links.target.min(initial=1)))
        if lowest > 0 and len(links.source) >= 20:
            message = "no index is 0: the links may count words from 1"
            findings.append(
                finding("links", "warning", "one-based", [], message, "If so, read them with --index-base 1", 1)
            )
        return True
    lines = np.flatnonzero(np.bincount(pair[outside], minlength=len(links)))
    count = int(outside.sum())
    from_one = (links.source >= 1) & (links.target >= 1) & (links.source <= n_source) & (links.target <= n_target)
    turned = (links.source < n_target) & (links.target < n_source)
    if from_one.all():
        message, code = f"{count:,} links point one word beyond their sentence, and no index is 0", "one-based"
        remedy = "They count words from 1: `isogloss score` sees that when it is given the text, or give --index-base 1"
        findings.append(finding("links", "warning", code, lines, message, remedy, count))
        return False
    if turned.all():
        message, code = f"{count:,} links are outside their sentences, but none would be if target came first", "turned"
        remedy = "Links are written source-target; exchange the two files, or the two numbers"
    else:
        message, code = f"{count:,} links are outside their sentences", "links-range"
        remedy = "They belong to another text, or to another tokenisation of it"
    findings.append(finding("links", "error", code, lines, message, remedy, count))
    return False


def _amount(links: Links, bitext: Bitext, findings: list[Finding]) -> None:
    counts = np.diff(links.offsets)
    full = (bitext.source.ids.lengths > 0) & (bitext.target.ids.lengths > 0)
    none = np.flatnonzero((counts == 0) & full)
    if none.size:
        severity = "warning" if none.size > 0.05 * len(links) else "note"
        message, remedy = "no links in {n lines}", "Look at them with isogloss view; they may be no translations"
        findings.append(finding("links", severity, "no-links", none, message, remedy))
    words = np.minimum(bitext.source.ids.lengths, bitext.target.ids.lengths)
    dense = np.flatnonzero((counts > 4 * words) & (counts > 20))
    if dense.size:
        message = "more than four links a word in {n lines}"
        remedy = "Were whole phrases linked word by word, or is it a union of two directions?"
        findings.append(finding("links", "note", "many-links", dense, message, remedy))
