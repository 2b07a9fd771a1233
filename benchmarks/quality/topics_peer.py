"""What `benchmarks.quality.topics` asks of tomotopy; run by a Python that has it.

topics_peer.py lda TEXT TOPICS SWEEPS SEED     LDA on a document a line, one worker; CPU seconds of sweeping on stdout
"""

import sys
import time

import tomotopy


def main() -> None:
    _, _, text, topics, sweeps, seed = sys.argv
    model = tomotopy.LDAModel(k=int(topics), alpha=0.01, eta=0.01, seed=int(seed))
    with open(text, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                model.add_doc(line.split())
    model.burn_in, model.optim_interval = 50, 10
    model.train(0, workers=1)
    began = time.process_time()
    model.train(int(sweeps), workers=1)
    print(time.process_time() - began, model.num_words * int(sweeps), model.ll_per_word)


if __name__ == "__main__":
    main()
