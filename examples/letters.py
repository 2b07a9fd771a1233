"""Handwriting, two words with labels: letters that look alike help one another. `python examples/letters.py`

The penalty interface is general: here it is a graph over images, drawn at random so that the example runs anywhere in
seconds. `benchmarks/quality/letters.py` does the same with the real letters of Kassel and Taskar.
"""

from __future__ import annotations

import numpy as np

from isogloss.features import Sparse
from isogloss.learners.graphs import mutual, nearest, propagate
from isogloss.learners.loglinear import ChainModel, LabelPairs, NodeFeatures
from isogloss.learners.posterior import GraphLaplacian
from isogloss.learners.semi_supervised import Regularised, vertex_features

WORDS = ("tea", "eat", "ate", "neat", "net", "ten", "ant", "tan")
LETTERS = sorted(set("".join(WORDS)))
K, PIXELS, ROUNDS = len(LETTERS), 60, 5


def draw(rng: np.random.Generator, copies: int, noise: float = 0.28) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images of all words, `copies` times each, with noise: pixels, letters, and the length of each word."""
    shapes = rng.random((K, PIXELS)) < 0.4
    words = [word for word in WORDS for _ in range(copies)]
    words = [words[i] for i in rng.permutation(len(words))]
    labels = np.array([LETTERS.index(letter) for word in words for letter in word])
    pixels = shapes[labels] ^ (rng.random((len(labels), PIXELS)) < noise)
    return pixels, labels, np.array([len(word) for word in words])


def model(pixels: np.ndarray, lengths: np.ndarray) -> ChainModel:
    """A field of order 2 that sees which pixels are on."""
    attributes = Sparse.of([np.flatnonzero(image) for image in pixels], PIXELS)
    return ChainModel(NodeFeatures(attributes, LabelPairs.all(PIXELS, K)), lengths, order=2)


def main() -> dict[str, float]:
    pixels, labels, lengths = draw(np.random.default_rng(1), copies=25)
    n_known = 10  # words with labels; the others have none
    cut = int(lengths[:n_known].sum())
    known, rest = model(pixels[:cut], lengths[:n_known]), model(pixels[cut:], lengths[n_known:])
    gold = np.split(labels[:cut], np.cumsum(lengths[:n_known])[:-1])

    # Vertices are images: each is linked to those that look most like it, if they say the same of it.
    graph = mutual(nearest(pixels.astype(float), 10))
    fixed = np.zeros((len(labels), K))
    fixed[np.arange(cut), labels[:cut]] = 1.0
    penalty = GraphLaplacian(graph, np.ones(len(labels)), K, fixed=fixed)
    features = vertex_features(np.arange(cut, len(labels)), len(labels), K)
    learner = Regularised(known, gold, rest, features, penalty, strength=0.3, l2=0.01)

    def error(guesses: np.ndarray) -> float:
        return 100 * float(np.mean(guesses != labels[cut:]))

    def decoded(chains: object) -> np.ndarray:
        return np.asarray(chains.marginals().values.reshape(-1, K).argmax(axis=1))  # type: ignore[attr-defined]

    found = {"propagation": error(propagate(graph, fixed).labels[cut:].argmax(axis=1))}
    state = learner.init()
    found["field of the labelled words"] = error(decoded(rest.distributions(state.weights)))
    for _ in range(ROUNDS):
        state, info = learner.step(state)
        print(f"round {state.iteration}: objective {info.objective:.1f}")
    found["both, neighbours and field"] = error(decoded(learner.expect(state).q.members[0]))
    found["the field they taught"] = error(decoded(rest.distributions(state.weights)))
    for name, value in found.items():
        print(f"{name}: {value:.1f} % of {len(labels) - cut} letters wrong")
    return found


if __name__ == "__main__":
    main()
