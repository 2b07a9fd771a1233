"""Property tests try the same examples every time; HYPOTHESIS_PROFILE=explore looks for new ones."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from isogloss import cli, samples
from isogloss.data import Treebank
from isogloss.engine import cache

SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # machines are shared, and kernels compile
settings.register_profile("same", derandomize=True, **SHARED)
settings.register_profile("explore", **SHARED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job that a shell script put in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def silent_compiling(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process do not say that they compile, whatever the cache has; some tests look at the cache."""
    if request.module.__name__ not in ("test_engine", "test_warm_up"):
        monkeypatch.setattr(cache, "cold", lambda job="kernels": False)


class Answer(NamedTuple):
    """What a command line gives."""

    status: int
    out: str
    err: str


Call = Callable[..., Answer]


@pytest.fixture
def isogloss(capfd: pytest.CaptureFixture[str]) -> Call:
    """Run a command line in this process."""

    def call(*arguments: str | Path | int) -> Answer:
        capfd.readouterr()
        status = cli.main([str(argument) for argument in arguments])
        return Answer(status, *capfd.readouterr())

    return call


@pytest.fixture(scope="module")
def trees() -> Treebank:
    """24 German sentences, with made-up morphology so that agreement has something to look at."""
    found = Treebank.from_bytes(samples.trees("en-de", "target").encode(), "de.conllu")
    number = [
        "Number=Sing" if len(form) % 2 else "Case=Nom|Number=Plur" for s in range(len(found)) for form in found.words(s)
    ]
    return found.with_columns(feats=number)
