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
    run = RUN if len(treebank) >= 10 * RUN * folds else 1
    fold = np.arange(len(treebank)) // run % folds
    fold_of_word = np.repeat(fold, treebank.lengths)
    progress = progress or QuietProgress()
    for one in taggers:
        one._gold(treebank)  # an empty column is said before the work

    def work(number: int, f: int) -> tuple[int, int, NDArray[np.object_]]:
        fresh = copy(taggers[number])
        fresh.threads = 1
        found = fresh.fit(treebank.take(fold != f)).predict(treebank.take(fold == f)).columns[fresh.column]
        return number, f, np.array(found.vocabulary.types, object)[found.ids]

    jobs = [(number, f) for number in range(len(taggers)) for f in range(folds)]
    out = [np.empty(treebank.n_words, object) for _ in taggers]
    progress.start(f"Tagging in {folds} folds", len(jobs))
    pool = ThreadPoolExecutor(count_threads(threads))
    try:
        for done, job in enumerate(as_completed([pool.submit(work, *job) for job in jobs])):
            number, f, tags = job.result()
            out[number][fold_of_word == f] = tags
            progress.update(done + 1)
    finally:
        pool.shutdown(cancel_futures=True)
        progress.finish()
    columns: dict[str, Any] = {one.column: _column(tags) for one, tags in zip(taggers, out, strict=True)}
    return treebank.with_predictions(**columns)


def _column(tags: NDArray[np.object_]) -> Column:
    vocabulary = Vocabulary(sorted(set(tags.tolist())))
    return Column(vocabulary.encode(tags.tolist()), vocabulary)
