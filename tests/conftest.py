"""Property tests try the same examples every time; HYPOTHESIS_PROFILE=explore looks for new ones."""

import os
import signal

import pytest
from hypothesis import settings

from isogloss import samples
from isogloss.data import Treebank

settings.register_profile("same", derandomize=True, deadline=None)  # machines are shared, and kernels compile
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job that a shell script put in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def trees() -> Treebank:
    """24 German sentences, with made-up morphology so that agreement has something to look at."""
    found = Treebank.from_bytes(samples.trees("en-de", "target").encode(), "de.conllu")
    number = [
        "Number=Sing" if len(form) % 2 else "Case=Nom|Number=Plur" for s in range(len(found)) for form in found.words(s)
    ]
    return found.with_columns(feats=number)
