"""python-crfsuite on attributes that somebody else has made; run by a Python that has it, and nothing of ours.

python entities_peer.py train ATTRIBUTES MODEL C1 C2 ITERATIONS
python entities_peer.py apply MODEL ATTRIBUTES OUT

A word a line, its label and its attributes with tabs between them, and an empty line after each sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator


def sentences(path: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Labels and attributes of each sentence."""
    labels: list[str] = []
    attributes: list[list[str]] = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line == "\n":
                yield labels, attributes
                labels, attributes = [], []
                continue
            label, *own = line.rstrip("\n").split("\t")
            labels.append(label)
            attributes.append(own)


def train(path: str, model: str, c1: str, c2: str, iterations: str) -> None:
    import pycrfsuite

    options = {"c1": float(c1), "c2": float(c2), "max_iterations": int(iterations)}
    trainer = pycrfsuite.Trainer("lbfgs", options, verbose=False)
    for labels, attributes in sentences(path):
        if labels:
            trainer.append(pycrfsuite.ItemSequence(attributes), labels)
    trainer.train(model)


def apply(model: str, path: str, out: str) -> None:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    with open(out, "w", encoding="utf-8") as file:
        for _, attributes in sentences(path):
            found = tagger.tag(pycrfsuite.ItemSequence(attributes)) if attributes else []
            file.write("".join(f"{label}\n" for label in found) + "\n")


if __name__ == "__main__":
    {"train": train, "apply": apply}[sys.argv[1]](*sys.argv[2:])
