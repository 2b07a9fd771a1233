"""Kernels are compiled once: a second process takes every one of them from the disk."""

from __future__ import annotations

import subprocess
import sys

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
