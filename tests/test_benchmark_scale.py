"""The synthetic text of the scale benchmark: nested, always the same, of the lengths and words it was fitted to."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import scale, synthetic

from isogloss import samples


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> synthetic.Generator:
    place = tmp_path_factory.mktemp("text")
    bitext = samples.bitext("en-de")
    for side, text in (("source", bitext.source), ("target", bitext.target)):
        (place / side).write_text("\n".join(" ".join(words) for words in text) + "\n", encoding="utf-8")
    text: Any = SimpleNamespace(source=place / "source", target=place / "target", assemble=lambda: None)
    return synthetic.Generator.of(text)


def test_a_longer_text_begins_with_the_shorter(generator: synthetic.Generator) -> None:
    short, long = list(generator.pairs(300)), list(islice(generator.pairs(25_000), 20_500))
    assert len(short) == 300 and long[:300] == short and len(long) == 20_500
    assert long[20_000:20_010] != long[:10]


def test_lengths_and_words_are_those_of_the_text(generator: synthetic.Generator) -> None:
    pairs = list(generator.pairs(3_000))
    lengths = {(len(a.split()), len(b.split())) for a, b in pairs}
    assert lengths <= {tuple(both) for both in generator.lengths.tolist()}
    words = {word for a, _ in pairs for word in a.split()}
    known = set(generator.source.words)
    assert len(words & known) > 0.9 * len(known)
    assert len(words - known) > 100  # and goes on growing
    half = {word for a, _ in pairs[:1_500] for word in a.split()}
    assert len(words) > 1.2 * len(half)


def test_what_it_is_fitted_by_can_be_taken_elsewhere(
    generator: synthetic.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator.write(tmp_path / "fit.npz")
    monkeypatch.setenv("SYNTHETIC_FIT", str(tmp_path / "fit.npz"))
    monkeypatch.setattr(synthetic, "OUT", tmp_path)
    monkeypatch.setattr(synthetic, "AT_ONCE", 100)
    source, target = synthetic.assemble(300, processes=2)
    pairs = list(generator.pairs(300))
    assert source.read_text(encoding="utf-8").splitlines() == [a for a, _ in pairs]
    assert target.read_text(encoding="utf-8").splitlines() == [b for _, b in pairs]
    joint = (source.parent / "joint.lower.txt").read_text(encoding="utf-8").splitlines()
    assert joint == [f"{a} ||| {b}".lower() for a, b in pairs]
    assert synthetic.assemble(300) == (source, target)
    with pytest.raises(SystemExit, match="multiple of 100"):
        synthetic.assemble(250)


def test_rows_become_a_table() -> None:
    row = {"data": "joined-100", "pairs": "100", "system": "isogloss", "options": "threads=1 memory=4GB"}
    row |= {"seconds": "2.0", "cpu_seconds": "3.0", "peak_mb": "250.4"}
    line = "| joined-100 | 100 | isogloss | threads=1 memory=4GB | 2 | 3 | 250 | 30.00 |"
    assert scale.table([row]).splitlines()[-1] == line
    with pytest.raises(SystemExit, match="joined-NUMBER"):
        scale.files_of("other-5")
