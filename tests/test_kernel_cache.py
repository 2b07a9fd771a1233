"""Kernels are compiled once: a second process takes every one of them from the disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from isogloss.metrics._numba import sequences

EVERY_STRUCTURE = """
from numba.core import event

compiled = []


class Listener(event.Listener):
    def on_start(self, found):
        compiled.append(str(found.data["dispatcher"]))

    def on_end(self, found):
        pass


event.register("numba:compile", Listener())
import numba
import numpy as np
from isogloss.structures import Chain, Itg, Matching, ProjectiveTree, SpanningTree

rng = np.random.default_rng(0)


def use(dist, *more):
    dist.log_partition(), dist.marginals(), dist.argmax(), dist.sample(rng)
    for name in more:
        getattr(dist, name)(3) if name == "k_best" else getattr(dist, name)()


chain = [rng.normal(size=(n, 3, 3)) for n in (1, 4)]
tree = [rng.normal(size=(n + 1, n + 1)) for n in (1, 4)]
use(Chain(chain[1]), "k_best"), use(Chain.batch(chain))
use(Chain(rng.normal(size=(4, 2, 2, 2))), "k_best")
use(ProjectiveTree(tree[1]), "k_best", "max_marginals"), use(ProjectiveTree.batch(tree))
use(ProjectiveTree(tree[1], single_root=True))
use(SpanningTree(tree[1]), "k_best"), use(SpanningTree.batch(tree))
use(SpanningTree(tree[1], single_root=True))
use(Itg(rng.normal(size=(3, 2)), np.zeros(3), np.zeros(2)))
use(Matching(rng.normal(size=(3, 2))), "k_best")
ours = sorted(set(compiled))
numba.njit(lambda x: x + 1)(1)  # to know that the listener hears
print(len(compiled) - len(ours) > 0, len(ours), ours)
"""


def test_a_second_process_compiles_nothing() -> None:
    told = []
    for _ in range(2):  # the first may have to compile
        done = subprocess.run([sys.executable, "-c", EVERY_STRUCTURE], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        told = done.stdout.split(maxsplit=2)
    assert told[0] == "True", "the listener hears nothing"
    assert told[1] == "0", told[2]


ONE_KERNEL = """
import numpy as np
from isogloss.metrics._numba.sequences import edits

print("asks", flush=True)
edits(np.arange(3), np.arange(2))
print(sum(edits.stats.cache_misses.values()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files are locked otherwise there")
def test_processes_that_start_together_compile_a_kernel_once(tmp_path: Path) -> None:
    """Both lack it, and wait for a third; then one compiles it, and the other takes what was compiled."""
    import fcntl

    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    call = [sys.executable, "-c", ONE_KERNEL]
    with open(sequences.__file__) as source:
        fcntl.flock(source, fcntl.LOCK_EX)
        both = [subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for process in both:
            assert process.stdout is not None
            assert process.stdout.readline() == "asks\n"
        with pytest.raises(subprocess.TimeoutExpired):
            both[0].wait(0.5)
    assert sorted(process.communicate()[0] for process in both) == ["0\n", "1\n"]
