"""Saved models with something wrong in them are refused or do no harm: no crash, no foreign exception, no hang."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isogloss import store
from isogloss.errors import IsoglossError, ModelError
from isogloss.testing.fuzz import MODELS, Children, Report, children, damage, fuzz, mutate, run_case
from isogloss.testing.fuzz.cases import Case, Malformed, exercise

FEW, MANY, CHECKED = 20, 4000, 300
"""Cases of each model: in every run, with `slow`, and with bounds checked in kernels."""
COSTLY = ("align.matching", "align.quadratic", "align.itg", "parse.dependency")
"""Kinds of which a case takes longer, so that there are a quarter as many: 10⁵ in all."""


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Where a model of `MODELS` is saved; it is learnt when it is first asked for."""
    place, known = tmp_path_factory.mktemp("models"), dict[str, Path]()

    def folder(model: str) -> Path:
        if model not in known:
            known[model] = place / model.replace("/", "-")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # there is little to learn from
                MODELS[model]().save(known[model])
        return known[model]

    return folder


@pytest.fixture(scope="module")
def runner() -> Iterator[Children]:
    """One process for the cases of all models: to start it takes longer than to run them."""
    with Children() as shared:
        yield shared


@pytest.fixture(scope="module")
def strict(request: pytest.FixtureRequest) -> Iterator[Children]:
    """The same, with bounds checked in kernels."""
    with Children(request.config.cache.mkdir("checked-kernels")) as shared:
        yield shared


def told(report: Report) -> str:
    """One failure for each place, so that many of the same do not hide others."""
    places = {(found.error, found.place): found.line for found in report.failures}
    return "\n".join([f"{len(report.failures)} failures at {len(places)} places", *places.values()])


@pytest.mark.parametrize("model", MODELS)
def test_changed_models_do_no_harm(model: str, saved: Callable[[str], Path], runner: Children) -> None:
    report = fuzz(model, saved(model), count=FEW, children=runner)
    assert not report.failures, told(report)
    assert sum(report.outcomes.values()) == FEW


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_many_changed_models_do_no_harm(model: str, saved: Callable[[str], Path], runner: Children) -> None:
    count = MANY // 4 if model.startswith(COSTLY) else MANY
    report = fuzz(model, saved(model), FEW, count, children=runner)
    assert not report.failures, told(report)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_changed_models_keep_kernels_within_bounds(model: str, saved: Callable[[str], Path], strict: Children) -> None:
    report = fuzz(model, saved(model), FEW + MANY, CHECKED, children=strict)
    assert not report.failures, told(report)


@pytest.mark.parametrize("model", MODELS)
def test_every_array_is_declared(model: str, saved: Callable[[str], Path]) -> None:
    """An array of another type is refused, whichever it is: nothing is taken unchecked."""
    whole = store.read(saved(model))
    module, name = store.KINDS[whole.kind].split(":")
    load = getattr(import_module(module), name)._from_saved
    load(whole)
    for array, values in whole.arrays.items():
        other = np.zeros(values.shape, np.int8 if values.dtype.kind == "f" else np.float16)
        with pytest.raises(ModelError):
            load(replace(whole, arrays={**whole.arrays, array: other}))


@pytest.mark.parametrize("model", ["align.matching", "align.quadratic", "align.itg"])
def test_a_lexicon_cannot_point_outside_of_its_words(model: str, saved: Callable[[str], Path], tmp_path: Path) -> None:
    """Kernels write where these numbers say: such a model, its checksum right, once ended the process."""
    whole = store.read(saved(model))
    rows, columns = (whole.arrays[f"extractor.dictionary/{name}"] for name in ("rows", "columns"))
    for name, wrong in (("columns", columns + 10**6), ("columns", columns - 10**6), ("rows", rows * 10**6)):
        arrays = whole.arrays | {f"extractor.dictionary/{name}": wrong}
        store.save(tmp_path / "crafted", kind=whole.kind, options=whole.options, arrays=arrays, meta=whole.meta)
        with pytest.raises(ModelError, match=f"crafted.*dictionary/{name}"):
            store.load(tmp_path / "crafted")


def test_every_kind_is_tried() -> None:
    assert {model.partition("/")[0] for model in MODELS} == set(store.KINDS)


# --- whether the fuzzer itself finds what it should


def toy(**arrays: Any) -> store.Saved:
    header = np.frombuffer(json.dumps({"a": [1, {"b": 2.5}]}).encode(), np.uint8)
    blob, offsets = store.pack_strings(["one", "two", "three"])
    found = {"header": header, "words": blob, "words_offsets": offsets, "rows": np.arange(4), "w": np.ones((3, 2))}
    return store.Saved("align.hmm", {"alpha": 0.1, "names": ["x"]}, found | arrays, {"threshold": 0.5})


def test_a_seed_always_makes_the_same_changes() -> None:
    for seed in range(100):
        (one, said), (other, again) = (mutate(toy(), np.random.default_rng(seed)) for _ in range(2))
        assert said == again and list(one.arrays) == list(other.arrays) and repr(one.options) == repr(other.options)
        for name in one.arrays:
            np.testing.assert_array_equal(one.arrays[name], other.arrays[name], strict=True)


def test_changes_are_of_all_sorts_and_leave_the_model_alone() -> None:
    valid = toy()
    before = {name: array.copy() for name, array in valid.arrays.items()}
    rng = np.random.default_rng(0)
    made = [mutate(valid, rng) for _ in range(6000)]
    for name, array in before.items():
        np.testing.assert_array_equal(valid.arrays[name], array, strict=True)
    said = " ".join(change for _, change in made)
    for part in (
        "as JSON",
        "is of float16",
        "is deleted",
        "words_offsets: string",
        "are exchanged",
        "has columns",
        "nan",
    ):
        assert part in said
    assert {saved.kind for saved, _ in made} == set(store.KINDS)


def test_damaged_files_have_the_right_checksum(tmp_path: Path) -> None:
    valid = toy()
    refused = 0
    for seed in range(60):
        folder = tmp_path / f"{seed}.model"
        store.save(folder, kind=valid.kind, options=valid.options, arrays=valid.arrays, meta=valid.meta)
        damage(folder, np.random.default_rng(seed))
        try:
            store.read(folder)
        except IsoglossError as error:
            assert "checksum" not in str(error) or "sha256" in (folder / store.HEADER).read_text(errors="replace")
            refused += 1
    assert 30 < refused < 60


def test_foreign_exceptions_are_failures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Case, "of", lambda *given: Case("a change", lambda: 1 / 0, False))
    found = run_case("align.hmm", toy(), 3, tmp_path)
    assert not isinstance(found, str)
    assert found.line == "align.hmm seed 3: ZeroDivisionError at ?: division by zero [a change]"


ODD_CHILD = """
import os
from isogloss.testing.fuzz import child

def run_case(model, saved, seed, scratch):
    if seed == 2:
        os.abort()
    while seed == 4:
        pass
    return "used"

child.run_case, child.exercise = run_case, lambda *given: None
child.main()
"""


def test_crashes_and_long_waits_are_failures(
    saved: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "child.py").write_text(ODD_CHILD)
    monkeypatch.setattr(children, "CHILD", (sys.executable, str(tmp_path / "child.py")))
    monkeypatch.setattr(children, "SECONDS", 0.3)
    monkeypatch.setattr(children, "_PATIENCE", 3)  # nothing is compiled
    report = fuzz("align.hmm", saved("align.hmm"), count=6)
    assert [(found.seed, found.error, found.message) for found in report.failures] == [
        (2, "crash", "SIGABRT"), (4, "too slow", "takes more than 1 s")
    ]  # fmt: skip
    assert report.outcomes == {"used": 4, "failed": 2}


BEYOND = """
import numpy as np
from numba import njit
from isogloss.testing.fuzz import cases, child

@njit
def beyond(x):
    return x[7]

cases.Case.of = lambda *given: cases.Case("a change", lambda: beyond(np.zeros(3)), False)
child.exercise = lambda *given: None
child.main()
"""


def test_bounds_are_checked_where_that_is_asked_for(
    saved: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "child.py").write_text(BEYOND)
    monkeypatch.setattr(children, "CHILD", (sys.executable, str(tmp_path / "child.py")))
    with Children(tmp_path / "kernels") as strict:
        report = fuzz("align.hmm", saved("align.hmm"), count=1, children=strict)
    assert [found.error for found in report.failures] == ["IndexError"]


def test_results_are_looked_at(saved: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    aligner = store.load(saved("align.hmm"))
    exercise(aligner)
    links = aligner.predict([("a b", "c d")] * 6)
    monkeypatch.setattr(type(aligner), "predict", lambda self, text: links)
    with pytest.raises(Malformed, match=r"link .* in a pair of 0"):
        exercise(aligner)
