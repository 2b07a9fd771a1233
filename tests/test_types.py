"""What checkers of types see: estimators have their options, and `fit` and `predict` say what they take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RIGHT = """
import isogloss as ig
from isogloss.data.formats import as_bitext
from pathlib import Path

ig.CrfTagger("xpos", order=1)
ig.DependencyParser(order=1)
ig.JointMorphologyParser(joint=False)
for given in (Path("a"), Path("b")):
    as_bitext(given)
as_bitext(("a.txt", Path("b.txt")))
as_bitext([("das Haus", "the house")])
as_bitext([["das Haus", "the house"]])
as_bitext([(["das", "Haus"], "the house")])
as_bitext([{"source": "das Haus", "target": "the house"}])
"""
WRONG = {
    'ig.HMMAlinger': '"HMMAlinger"; maybe "HMMAligner"?',
    'ig.CrfTagger(ordre=1)': 'Unexpected keyword argument "ordre" for "CrfTagger"',
    'ig.CrfTagger(reading_=None)': 'Unexpected keyword argument "reading_" for "CrfTagger"',
    'as_bitext(["das Haus"])': 'List item 0 has incompatible type "str"; expected "tuple[Any, Any]',
    'as_bitext(ig.Text.of(["das Haus"]))': 'Argument 1 to "as_bitext" has incompatible type "Text"',
    'as_bitext(ig.Treebank.of([]))': 'Argument 1 to "as_bitext" has incompatible type "Treebank"',
    'ig.CrfTagger().predict("das Haus")': 'Argument 1 to "predict" of "ColumnTagger" has incompatible type "str"',
}  # fmt: skip


@pytest.mark.slow
def test_what_a_checker_of_types_says(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    script = tmp_path / "use.py"
    script.write_text(RIGHT + "\n".join(WRONG) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    found = {line.split(":")[1]: line for line in done.stdout.splitlines() if "error:" in line and "use.py" in line}
    first = len(RIGHT.splitlines()) + 1
    for number, (call, said) in enumerate(WRONG.items(), first):
        assert said in found.pop(str(number), ""), (call, done.stdout)
    assert not found, done.stdout
