"""Tags for the text that a tagger would learn from, by taggers that have not seen them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.threads import threads as count_threads
from isogloss.errors import ParameterError
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.tag.crf import CrfTagger
from isogloss.tasks.tag.several import Tagger

__all__ = ["jackknife"]

RUN = 20
"""Sentences that stay together, so that words of one document are not learnt from its next sentence."""


def jackknife(
    treebank: Treebank,
    tagger: CrfTagger | Tagger | None = None,
    folds: int = 5,
    *,
    progress: Progress | None = None,
    threads: int | None = None,
) -> Treebank:
    """The treebank with predicted tags, each sentence tagged by a tagger that learnt from the other folds.

    A parser that will see predicted tags learns from these better than from gold ones.

    Parameters
    ----------
    treebank : Treebank
    tagger : CrfTagger or Tagger, optional
        For its columns and options; what it has learnt is neither used nor changed. ``Tagger()`` if not given.
    folds : int
        Runs of 20 sentences (single ones, if there are few) go to the folds in turn: a whole document in one fold
        would be the fairest, single sentences see the words of their neighbours.
    threads : int, optional
        Folds are worked on side by side; the result is the same.
    """
    tagger = Tagger() if tagger is None else tagger
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= max(2, len(treebank)):
        raise ParameterError(f"jackknife: folds should be 2 or more, and not more than sentences, not {folds!r}")
    taggers = list(tagger.taggers.values()) if isinstance(tagger, Tagger) else [tagger]
    columns = [one.column for one in taggers]
    run = RUN if len(treebank) >= 10 * RUN * folds else 1
    fold = np.arange(len(treebank)) // run % folds
    fold_of_word = np.repeat(fold, treebank.lengths)
    progress = progress or QuietProgress()
    for one in taggers:
        one._gold(treebank)  # an empty column is said before the work

    def work(f: int) -> tuple[int, list[NDArray[np.object_]]]:
        fresh = Tagger.of(*map(copy, taggers))
        for one in fresh.taggers.values():
            one.threads = 1
        found = fresh.fit(treebank.take(fold != f)).predict(treebank.take(fold == f)).columns
        return f, [np.array(found[name].vocabulary.types, object)[found[name].ids] for name in columns]

    out = [np.empty(treebank.n_words, object) for _ in columns]
    progress.start(f"Tagging in {folds} folds", folds)
    pool = ThreadPoolExecutor(count_threads(threads))
    try:
        for done, job in enumerate(as_completed([pool.submit(work, f) for f in range(folds)])):
            f, found = job.result()
            for column, tags in zip(out, found, strict=True):
                column[fold_of_word == f] = tags
            progress.update(done + 1)
    finally:
        pool.shutdown(cancel_futures=True)
        progress.finish()
    predicted: dict[str, Any] = {name: _column(tags) for name, tags in zip(columns, out, strict=True)}
    return treebank.with_predictions(**predicted)


def _column(tags: NDArray[np.object_]) -> Column:
    vocabulary = Vocabulary(sorted(set(tags.tolist())))
    return Column(vocabulary.encode(tags.tolist()), vocabulary)
