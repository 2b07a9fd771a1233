"""Peers, run by a Python that has them: `STRUCTURE_PEERS=/path/to/python`, with torch, torch-struct, python-crfsuite.

Reads one problem a line from its input, {"task", "n", "batch", "labels", "threads"}, solves it once and answers
{"seconds", "cpu_seconds", "check"} or {"absent": why}. `check` is a number that both sides should agree on.
"""

from __future__ import annotations

import json
import re
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import problems  # beside this file: the script's own folder is on the path

warnings.filterwarnings("ignore")
Result = dict[str, Any]


def clocked(work: Callable[[], float]) -> Result:
    start, cpu = time.perf_counter(), time.process_time()
    check = work()
    return {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu, "check": check}


def diagonal_roots(scores: Any) -> Any:
    """torch-struct keeps root scores on the diagonal and float32."""
    import torch

    words = scores[:, 1:, 1:].copy()
    at = np.arange(words.shape[1])
    words[:, at, at] = scores[:, 0, 1:]
    return torch.tensor(words, dtype=torch.float32)


def projective(n: int, batch: int, threads: int) -> Result:
    import torch
    from torch_struct import DepTree
    from torch_struct.semirings import LogSemiring

    torch.set_num_threads(threads)
    scores = diagonal_roots(problems.trees(n, batch))
    # what its class DependencyCRF calls; the class itself stumbles over recent torch
    return clocked(lambda: float(DepTree(LogSemiring).marginals(scores.clone().requires_grad_(True))[0, 0, 0]))


def spanning(n: int, batch: int, threads: int) -> Result:
    import torch
    from torch_struct.deptree import deptree_nonproj, deptree_part

    torch.set_num_threads(threads)
    scores = diagonal_roots(problems.trees(n, batch))

    def work() -> float:
        deptree_part(scores, True)
        return float(deptree_nonproj(scores, True)[0, 0, 0])

    return clocked(work)


def spans(n: int, batch: int, labels: int, threads: int) -> Result:
    import torch
    from torch_struct import CKY_CRF
    from torch_struct.semirings import LogSemiring

    torch.set_num_threads(threads)
    scores = torch.tensor(problems.spans(n, batch, labels), dtype=torch.float32)
    return clocked(lambda: float(CKY_CRF(LogSemiring).marginals(scores.clone().requires_grad_(True))[0, 0, 1].sum()))


def grammar(n: int, batch: int, labels: int, threads: int) -> Result:
    import torch
    from torch_struct import CKY
    from torch_struct.semirings import LogSemiring

    torch.set_num_threads(threads)
    tags, weights, roots = (torch.tensor(part, dtype=torch.float32) for part in problems.grammar(n, batch, labels))
    each = weights.expand(batch, *weights.shape), roots.expand(batch, labels)

    def work() -> float:
        given = [part.clone().requires_grad_(True) for part in (tags, *each)]
        value = CKY(LogSemiring).sum(given)
        torch.autograd.grad(value.sum(), given)
        return float(value[0])

    return clocked(work)


def crf(n: int, batch: int, labels: int) -> Result:
    """Seconds a pass of L-BFGS training takes: its own log, divided by the evaluations that each iteration made."""
    import pycrfsuite

    said: list[str] = []

    class Trainer(pycrfsuite.BaseTrainer):  # type: ignore[misc]
        def message(self, message: str) -> None:
            said.append(message)

    attributes, gold = problems.tagging(n, batch, labels)
    trainer = Trainer("lbfgs", {"c2": 1.0, "max_iterations": 10})
    trainer.set_params({"feature.possible_states": True, "feature.possible_transitions": True})
    for sentence, tags in zip(attributes, gold, strict=True):
        trainer.append([[str(a) for a in position] for position in sentence], [str(tag) for tag in tags])
    cpu, start = time.process_time(), time.perf_counter()
    trainer.train("/dev/null")
    share = (time.process_time() - cpu) / (time.perf_counter() - start)
    text = "".join(said)
    seconds = sum(float(found) for found in re.findall(r"Seconds required for this iteration: ([\d.]+)", text))
    passes = sum(int(found) for found in re.findall(r"Line search trials: (\d+)", text))
    losses = re.findall(r"Loss: ([\d.]+)", text)
    return {"seconds": seconds / passes, "cpu_seconds": seconds / passes * share, "check": float(losses[-1])}


def chain_marginals(n: int, batch: int, labels: int) -> Result:
    """Scores, forward and backward of every sentence by a tagger: `set`, then one `marginal`, which triggers both."""
    import os
    import tempfile

    import pycrfsuite

    attributes, gold = problems.tagging(n, batch, labels)
    model = os.path.join(tempfile.mkdtemp(), "model")
    trainer = pycrfsuite.Trainer("lbfgs", {"c2": 1.0, "max_iterations": 3}, verbose=False)
    trainer.set_params({"feature.possible_states": True, "feature.possible_transitions": True})
    for sentence, tags in zip(attributes, gold, strict=True):
        trainer.append([[str(a) for a in position] for position in sentence], [str(tag) for tag in tags])
    trainer.train(model)
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    items = [pycrfsuite.ItemSequence([[str(a) for a in position] for position in sentence]) for sentence in attributes]

    def work() -> float:
        value = 0.0
        for sequence in items:
            tagger.set(sequence)
            value += tagger.marginal("0", 0)
        return value

    result = clocked(work)
    os.unlink(model)
    return result


def solve(problem: dict[str, Any]) -> Result:
    n, batch, threads, labels = (problem[name] for name in ("n", "batch", "threads", "labels"))
    try:
        match problem["task"]:
            case "projective":
                return projective(n, batch, threads)
            case "spanning":
                return spanning(n, batch, threads)
            case "spans":
                return spans(n, batch, labels, threads)
            case "grammar":
                return grammar(n, batch, labels, threads)
            case "crf":
                return crf(n, batch, labels)
            case "chain":
                return chain_marginals(n, batch, labels)
            case other:
                return {"absent": f"no peer for {other}"}
    except ImportError as missing:
        return {"absent": str(missing)}


def version(task: str) -> str:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as of

    package = "python-crfsuite" if task in ("crf", "chain") else "torch-struct"
    try:
        return f"{package} {of(package)}"
    except PackageNotFoundError:
        return f"{package} absent"


if __name__ == "__main__":
    for line in sys.stdin:
        problem = json.loads(line)
        print(json.dumps({**solve(problem), "system": version(problem["task"])}), flush=True)
