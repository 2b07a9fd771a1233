"""UDPipe 1 as two commands, run by a Python that has ufal.udpipe and need not have anything else.

python udpipe.py train TRAIN DEV MODEL TAGGER PARSER    options as UDPipe has them: "", "none" or "iterations=10;..."
python udpipe.py apply MODEL TEST OUT TAGGER            TAGGER "none" leaves the tags as they are given
"""

from __future__ import annotations

import sys
from typing import Any

METHOD = "morphodita_parsito"


def read(path: str) -> Any:
    """Sentences of a file; none for an empty name."""
    from ufal.udpipe import InputFormat, ProcessingError, Sentence, Sentences

    sentences = Sentences()
    if not path:
        return sentences
    with open(path, encoding="utf-8") as file:
        text = file.read()
    reader, error, sentence = InputFormat.newConlluInputFormat(), ProcessingError(), Sentence()
    reader.setText(text)
    while reader.nextSentence(sentence, error):
        sentences.push_back(sentence)
        sentence = Sentence()
    if error.occurred():
        sys.exit(f"{path}: {error.message}")
    return sentences


def train(source: str, dev: str, model: str, tagger: str, parser: str) -> None:
    from ufal.udpipe import ProcessingError, Trainer

    error = ProcessingError()
    found = Trainer.train(METHOD, read(source), read(dev), Trainer.NONE, tagger, parser, error)
    if error.occurred():
        sys.exit(error.message)
    with open(model, "wb") as file:
        file.write(bytes(found))


def apply(model: str, source: str, out: str, tagger: str) -> None:
    from ufal.udpipe import Model, Pipeline, ProcessingError

    loaded = Model.load(model)
    if loaded is None:
        sys.exit(f"{model}: UDPipe cannot read this model")
    pipeline, error = Pipeline(loaded, "conllu", tagger, Pipeline.DEFAULT, "conllu"), ProcessingError()
    with open(source, encoding="utf-8") as file:
        text = pipeline.process(file.read(), error)
    if error.occurred():
        sys.exit(error.message)
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(*sys.argv[2:])
    else:
        apply(*sys.argv[2:])
