"""Every page of docs/ that shows Python is run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
EXAMPLES = [page for page in PAGES if re.search(r"^```python\n>>> ", page.read_text(encoding="utf-8"), re.MULTILINE)]


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: str(page.relative_to(DOCS)))
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    code = "\n".join(block for block in blocks if block.startswith(">>> "))
    test = doctest.DocTestParser().get_doctest(code, {}, page.name, str(page), 0)
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in link and not link.startswith("#"):
            assert (page.parent / link.partition("#")[0]).exists(), link


def test_what_the_page_of_methods_names_is_there() -> None:
    """Modules exist, and so do tests; a test without its file is of the last one that was named."""
    root, file = DOCS.parent, ""
    counted = [0, 0]
    for name in re.findall(r"`([^`\s]+)`", (DOCS / "methods.md").read_text(encoding="utf-8").partition("\n## ")[2]):
        if "::" in name:
            given, test = name.split("::")
            file = given or file
            assert re.search(rf"^def {re.escape(test)}\(", (root / file).read_text(encoding="utf-8"), re.MULTILINE), (
                name
            )
            counted[0] += 1
        elif re.fullmatch(r"[a-z_]+(/[a-z_0-9]+)*\.py", name):
            assert any((place / name).exists() for place in (root, root / "src/isogloss")) or "/" not in name, name
            counted[1] += 1
    assert min(counted) > 50
