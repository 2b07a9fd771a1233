"""A saved model that a command cannot use is refused with the command that can."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isogloss import samples, store
from isogloss.cli import COMMANDS, main
from isogloss.cli._models import OWN_COMMANDS, USES
from isogloss.engine import cache

SOURCE, TARGET, LINKS = (str(samples.path("en-de", what)) for what in ("source", "target", "gold"))
CALLS = {
    "align": ("align", ["align", SOURCE, TARGET, "--model", "MODEL"]),
    "filter": ("align", ["filter", SOURCE, TARGET, "--model", "MODEL", "--report"]),
    "suggest": ("align", ["suggest", SOURCE, TARGET, "--model", "MODEL"]),
    "view": ("align", ["view", SOURCE, TARGET, LINKS, "--gold", LINKS, "--model", "MODEL", "--terminal"]),
    "transfer-markup": ("align", ["transfer-markup", SOURCE, TARGET, "--model", "MODEL"]),
    "lexicon": ("align", ["lexicon", "MODEL"]),
    "topics": ("topics", ["topics", "apply", "MODEL", SOURCE, "--language", "en"]),
    "tag": ("tag", ["tag", "apply", "MODEL", SOURCE]),
    "parse": ("parse", ["parse", "apply", "MODEL", SOURCE]),
    "constituency": ("constituency", ["constituency", "apply", "MODEL", SOURCE]),
    "extract": ("extract", ["extract", "apply", "MODEL", SOURCE]),
    "segment": ("segment", ["segment", "apply", "MODEL", SOURCE]),
}
"""Command -> the task of its models, and how it is called."""
WRONG = [(name, kind) for name, (task, _) in CALLS.items() for kind in store.KINDS if not kind.startswith(f"{task}.")]


def call(name: str, model: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main([str(model) if part == "MODEL" else part for part in CALLS[name][1]])
    return status, " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("name", "kind"), WRONG)
def test_a_model_of_another_task(
    name: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else is said, not even that kernels have to be compiled first."""
    monkeypatch.setattr(cache, "cold", lambda job: True)
    store.save(tmp_path / "m", kind=kind, options={}, arrays={"weights": np.zeros(1)})
    found, wanted = USES[kind.partition(".")[0]], USES[CALLS[name][0]]
    status, said = call(name, tmp_path / "m", capsys)
    assert status == 2
    place, command = f"isogloss: {tmp_path / 'm'}", OWN_COMMANDS.get(kind, found.command)
    assert said == f"{place}: this is {found.noun} ({kind}), where {wanted.noun} is wanted. Use `{command}`"


@pytest.mark.parametrize("name", CALLS)
def test_checkpoints(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store.save(tmp_path / "run", kind=store.CHECKPOINT, options={}, arrays={"weights": np.zeros(1)})
    (tmp_path / "chunks").mkdir()
    (tmp_path / "chunks" / "run.json").write_text("{}")
    for folder in ("run", "chunks"):
        status, said = call(name, tmp_path / folder, capsys)
        assert status == 1
        assert f"{folder}: this is a checkpoint of" in said and "Continue it with --resume" in said


def test_every_kind_has_a_use() -> None:
    assert {kind.partition(".")[0] for kind in store.KINDS} == set(USES)
    assert {use.command.split()[1] for use in USES.values()} <= set(COMMANDS)
    assert OWN_COMMANDS["parse.transferred"] == "isogloss transfer apply"
    assert set(OWN_COMMANDS) <= set(store.KINDS) and {c.split()[1] for c in OWN_COMMANDS.values()} <= set(COMMANDS)


def test_nobody_else_loads_models() -> None:
    folder = Path(store.__file__).parent / "cli"
    loading = {path.name for path in folder.glob("*.py") if "store.load(" in path.read_text(encoding="utf-8")}
    assert loading == {"_models.py", "_chunks.py"}
