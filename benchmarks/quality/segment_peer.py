"""Morfessor 2.0.6 as a program of its own: learn from a list of words, or cut one. Runs in a Python that has it.

segment_peer.py train WORDS MODEL CORPUSWEIGHT
segment_peer.py apply WORDS MODEL OUT
"""

from __future__ import annotations

import sys


def main() -> None:
    import morfessor

    todo, words, model, last = sys.argv[1:]
    io = morfessor.MorfessorIO()
    with open(words, encoding="utf-8") as file:
        listed = file.read().splitlines()
    if todo == "train":
        learning = morfessor.BaselineModel(corpusweight=float(last))
        learning.load_data([(1, word) for word in listed])
        learning.train_batch()
        io.write_binary_model_file(model, learning)
        return
    learnt = io.read_binary_model_file(model)
    with open(last, "w", encoding="utf-8") as file:
        for word in listed:
            file.write(" ".join(learnt.viterbi_segment(word)[0]) + "\n")


if __name__ == "__main__":
    main()
