"""Tables of the docs say which commits their rows are from."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import rows

DOCS = Path(__file__).parents[1] / "docs"
FILLED = re.compile(r"<!-- [^>]* -->\n(.*?)<!-- end -->", re.DOTALL)
PAGES = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if any("|---" in table for table in FILLED.findall(path.read_text(encoding="utf-8")))
]
WHOLE = [*sorted(DOCS.glob("benchmarks*.md")), DOCS / "structures/speed.md"]
"""Pages that are generated from the first line to the last."""


def test_examples() -> None:
    assert doctest.testmod(rows).failed == 0


@pytest.mark.parametrize("page", [*PAGES, *WHOLE], ids=lambda page: page.stem)
def test_below_every_generated_table_are_the_commits_of_its_rows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    tables = 0
    for part in [text] if page in WHOLE else FILLED.findall(text):
        blocks = [block for block in part.split("\n\n") if block.strip()]
        for k, block in enumerate(blocks):
            if "|---" in block:
                tables += 1
                after = " ".join(blocks[k + 1 : k + 4])  # two tables of the same rows may share a line
                assert "Commit of all rows:" in after or "Commits of the rows:" in after, block[:200]
    assert tables


def test_a_table_takes_the_rows_since_the_last_one() -> None:
    used = rows.Used()
    used.add("ours", "de", {"commit": "1a"})
    assert used.below("| a |") == "| a |\n\nCommit of all rows: 1a."
    assert used.below("nothing was looked up") == "nothing was looked up"
