"""Why a word was linked, or was not."""

from __future__ import annotations

from typing import Any

import numpy as np

from isogloss.data import Bitext
from isogloss.errors import UsageError
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.decode import UNIT
from isogloss.tasks.align.evidence import Evidence
from isogloss.tasks.align.model import Model

__all__ = ["explain"]


def explain(
    bitext: Bitext,
    corpus: Corpus,
    model: Model,
    evidence: Evidence,
    threshold: float,
    pair: int,
    *,
    source: int | None = None,
    target: int | None = None,
    top: int = 5,
) -> dict[str, Any]:
    """The best candidates of one word as plain data; see `HMMAligner.explain`."""
    here = bitext[pair]
    side = 0 if source is not None else 1
    position = source if source is not None else target
    assert position is not None
    if not 0 <= position < len(here[side]):
        raise UsageError(f"explain: pair {pair} has no {('source', 'target')[side]} word {position}")
    word = here[side][position]
    answer: dict[str, Any] = {"pair": pair, "side": ("source", "target")[side], "position": position, "word": word}
    n, m = corpus.shape(pair)
    if n == 0 or m == 0:
        return answer | {
            "null": 1.0,
            "candidates": [],
            "reason": "the pair was passed over: a side is empty or too long",
        }
    base = int(corpus.pairs.cell_offsets[pair])
    cells = base + position * m + np.arange(m) if side == 0 else base + np.arange(n) * m + position
    posterior = evidence.posterior[cells].astype(float) / UNIT
    entries = corpus.pairs.cells[cells]
    e = corpus.pairs.source_ids[corpus.pairs.source_offsets[pair] :][:n]
    f = corpus.pairs.target_ids[corpus.pairs.target_offsets[pair] :][:m]
    forward = model.weights[entries, 0] / model.source_mass[e[position] if side == 0 else e]
    backward = model.weights[entries, 1] / model.target_mass[f if side == 0 else f[position]]
    mean = posterior.mean(axis=1)
    order = np.argsort(-mean, kind="stable")[:top]
    answer["null"] = round(float(1.0 - posterior[:, 1 - side].sum()), 4)
    answer["candidates"] = [
        {
            "position": int(k),
            "word": here[1 - side][k],
            "posterior": round(float(mean[k]), 4),
            "forward": round(float(posterior[k, 0]), 4),
            "backward": round(float(posterior[k, 1]), 4),
            "p_target_given_source": float(f"{forward[k]:.4g}"),
            "p_source_given_target": float(f"{backward[k]:.4g}"),
            "linked": bool(2 * UNIT * (mean[k] - threshold) >= -0.01),  # as `links_above` has it
        }
        for k in order
    ]
    seen = int((model.source_counts if side == 0 else model.target_counts)[(e if side == 0 else f)[position]])
    answer["seen"] = seen
    answer["reason"] = _reason(word, answer, seen, threshold)
    return answer


def _reason(word: str, answer: dict[str, Any], seen: int, threshold: float) -> str:
    best = answer["candidates"][0]
    if best["linked"]:
        return f"{word} is linked to {best['word']}: their posterior {best['posterior']:.2f} reaches {threshold:.2f}"
    words = f"{word} has no link: its best candidate {best['word']} has a posterior of {best['posterior']:.2f}, "
    words += f"below {threshold:.2f}"
    if seen == 0:
        return words + "; the word was never seen in training"
    if abs(best["forward"] - best["backward"]) > 0.5 * max(best["forward"], best["backward"]):
        return words + "; the two directions disagree about it"
    if answer["null"] > 0.5:
        return words + f"; it is most probably a word without partner ({answer['null']:.2f})"
    if seen <= 2:
        return words + f"; it was seen only {seen} times"
    return words + "; several candidates share the probability"
