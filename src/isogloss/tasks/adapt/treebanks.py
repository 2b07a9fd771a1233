"""What can be said of two treebanks before a parser is moved from one to the other, and where it would lose.

Without trees of the target: how far words and tags are apart, which words are new, and what a parser expects to lose,
by its own posteriors. With some: what it does lose, by what, and whether that looks like other words or like other
guidelines, which no amount of text repairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.labelled import LabelledDocuments
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import TreebankError
from isogloss.metrics.adaptation import Decomposition
from isogloss.progress import Progress
from isogloss.tasks.adapt.distance import FAR, NEAR, proxy_a_distance, unknown_words
from isogloss.tasks.parse.adapting.decomposing import (
    KINDS,
    TagDifferences,
    Tried,
    Unforeseen,
    decompose,
    expected_errors,
    known_words,
    tag_column,
    tag_differences,
    unforeseen,
)

if TYPE_CHECKING:
    from isogloss.tasks.parse import DependencyParser

__all__ = ["Guidelines", "TreebankDiagnosis", "diagnose_treebanks"]

MOST = 2000
"""Sentences that the parser of a diagnosis learns from, at most."""
SCORED = 1000
RUN, PARTS = 10, 5
"""Of runs of so many sentences, every fifth is held out."""
ENOUGH = 200
"""Words with heads of the target, from which on anything is said of guidelines."""
DIFFER = 2.0
"""Guidelines are taken to differ where known words lose more than so many points that are not foreseen, beyond what the
choice of sentences may do. Between pairs with the same guidelines and converted ones: see docs/adapt-parser.md."""
LENGTHS = (1, 2, 3)


@dataclass(frozen=True)
class Guidelines:
    """Whether two treebanks seem to be annotated alike.

    verdict : "alike", "differ" or "unclear"
    foreseen, unforeseen, known, margin, share : float
        See `isogloss.tasks.parse.adapting.decomposing.Unforeseen`.
    links : tuple of str
        Kinds of links, by tags of head and word, that lose most though the words are known.
    """

    verdict: str
    foreseen: float
    unforeseen: float
    known: float
    margin: float
    share: float
    links: tuple[str, ...]


@dataclass(frozen=True)
class TreebankDiagnosis:
    """What can be said of two treebanks, in percent.

    a_distance, a_distance_training : float
        See `isogloss.tasks.adapt.proxy_a_distance`; sentences by their words.
    unknown, unknown_types : float
        Words of the target that the source does not have, as they are met and as different ones.
    tags : tuple of TagDifferences
        Of single tags and of sequences of two and three; empty where a treebank has no tags.
    source_accuracy : float, optional
        UAS of a first-order parser on held-out sentences of the source; where that has trees.
    expected_accuracy, expected_loss : float, optional
        What it can be expected to have in the target, by its posteriors.
    target_accuracy, loss : float, optional
        What it has there, where the target has trees, and what is lost.
    losses : mapping of str to Decomposition
        The loss by tags, unknown words, links and lengths.
    guidelines : Guidelines, optional
    advice : tuple of str
    """

    a_distance: float
    a_distance_training: float
    unknown: float
    unknown_types: float
    tags: tuple[TagDifferences, ...]
    source_accuracy: float | None
    expected_accuracy: float | None
    expected_loss: float | None
    target_accuracy: float | None
    loss: float | None
    losses: Mapping[str, Decomposition]
    guidelines: Guidelines | None
    advice: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def diagnose_treebanks(
    source: Treebank,
    target: Treebank,
    *,
    parser: DependencyParser | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> TreebankDiagnosis:
    """Say how far two treebanks are apart, what a parser of the source loses in the target, why, and what to do.

    Parameters
    ----------
    source : Treebank
        With trees, a parser learns from up to 2,000 of its sentences, and is tried on others.
    target : Treebank
        Trees in it, if there are some, are never learnt from.
    parser : DependencyParser, optional
        Its options are used; of order 1 if not given.

    Examples
    --------
    >>> news = [("Boards", "NOUN", 2), ("meet", "VERB", 0), ("daily", "ADV", 2)]
    >>> bio = [("Cells", "NOUN", 2), ("grow", "VERB", 0), ("slowly", "ADV", 2)]
    >>> found = diagnose_treebanks(Treebank.of([news] * 60), Treebank.of([bio] * 60))
    >>> found.unknown, found.source_accuracy, found.tags[0].distance
    (100.0, 100.0, 0.0)
    """
    for treebank in (source, target):
        if not treebank.n_words:
            raise TreebankError(f"{treebank.name}: has no words. Give a treebank with some sentences of the domain")
    with using_threads(threads):
        apart = proxy_a_distance(_as_documents(source), _as_documents(target))
    unknown, types = unknown_words(source.text(), target.text())
    tagged = _have_tags(source, target)
    tags = tuple(tag_differences(source, target, n) for n in LENGTHS) if tagged else ()
    tried = None
    if tagged and (source.heads >= 0).all() and len(source) >= 2 * PARTS:
        tried = _tried(source, target, parser, threads, progress)
    accuracy = expected = lost = None
    found: Mapping[str, Decomposition] = {}
    guidelines = reached = loss = None
    if tried is not None:
        here, there, known = tried
        accuracy = 100 - 100 * float(here.wrong[here.scored].mean())
        expected = 100 - expected_errors(here, there)
        lost = accuracy - expected
        scored = int(there.scored.sum())
        if scored:
            found = {by: decompose(here, there, by, known) for by in KINDS}
            loss, reached = found["tag"].loss, 100 - found["tag"].target_error
        if scored >= ENOUGH:
            guidelines = _guidelines(here, there, known)
    return TreebankDiagnosis(
        apart.held_out, apart.training, unknown, types, tags, accuracy, expected, lost, reached, loss, found,
        guidelines,
        _advice(apart.held_out, unknown, lost, loss, guidelines),
    )  # fmt: skip


def _as_documents(treebank: Treebank) -> LabelledDocuments:
    return LabelledDocuments(treebank.text(), (None,) * len(treebank), name=treebank.name)


def _have_tags(*treebanks: Treebank) -> bool:
    try:
        tag_column(*treebanks)
    except TreebankError:
        return False
    return True


def _tried(
    source: Treebank,
    target: Treebank,
    parser: DependencyParser | None,
    threads: int | None,
    progress: Progress | None,
) -> tuple[Tried, Tried, frozenset[str]]:
    """A parser of a part of the source, on other parts of it and on the target."""
    from isogloss.tasks.parse import DependencyParser

    options = DependencyParser(order=1).get_params() if parser is None else parser.get_params()
    run = RUN if len(source) >= 2 * RUN * PARTS else 1
    away = np.arange(len(source)) // run % PARTS == PARTS - 1
    train, own = source.take(~away).part(0, MOST), source.take(away).part(0, SCORED)
    learnt = DependencyParser(**options | {"threads": threads}).fit(_seen_alike(train, target), progress=progress)
    there = target.take(_spread(len(target), SCORED))
    return Tried.by(learnt, own), Tried.by(learnt, there), known_words(train)


def _seen_alike(train: Treebank, target: Treebank) -> Treebank:
    """Without columns that the target does not have: a parser should not miss what it has learnt to look at."""
    gone = {}
    for name in ("lemma", "xpos", "feats", "upos"):
        ids, vocabulary = target.columns[name]
        if vocabulary.index_of("_") >= 0 and bool((ids == vocabulary.index_of("_")).all()):
            gone[name] = ["_"] * train.n_words
    return train.with_columns(**gone) if gone else train


def _spread(n: int, most: int) -> NDArray[np.int64]:
    """Numbers of sentences from everywhere, at most so many."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64)) if n else np.zeros(0, np.int64)


def _guidelines(here: Tried, there: Tried, known: frozenset[str]) -> Guidelines:
    told: Unforeseen = unforeseen(here, there, known)
    differ, alike = told.known - told.margin > DIFFER, told.known + told.margin <= DIFFER
    links = [kind.name for kind in decompose(here, there, "link").kinds if kind.adds > 0.25 and (kind.loss or 0) > 10]
    verdict = "differ" if differ else "alike" if alike else "unclear"
    return Guidelines(verdict, told.foreseen, told.unforeseen, told.known, told.margin, told.share, tuple(links[:5]))


def _advice(
    apart: float, unknown: float, expected: float | None, loss: float | None, guidelines: Guidelines | None
) -> tuple[str, ...]:  # fmt: skip
    """What to do next."""
    said: list[str] = []
    if apart <= NEAR:
        said.append("The words of the domains are alike.")
    elif apart >= FAR:
        said.append("The words of the domains differ much.")
    else:
        said.append("The words of the domains differ.")
    if unknown > 10:
        said.append(f"{unknown:.0f}% of the words of the target are new.")
    if expected is None:
        said.append("Trees of the source, and tags of the same kind in both, would show what is likely to be lost.")
        return tuple(said)
    if guidelines is None:
        if expected > 2:
            said.append(f"The parser expects to lose about {expected:.0f} points, by its own posteriors.")
        said.append(
            "Whether guidelines differ cannot be seen without trees of the target: annotate about twenty sentences, "
            "and look again."
        )
        return tuple(said)
    if guidelines.verdict == "differ":
        where = f", most of all {', '.join(guidelines.links[:3])}" if guidelines.links else ""
        said.append(
            f"Guidelines seem to differ{where}: the parser is sure where it is wrong, and errs on words that it knows. "
            "Text without trees will not help. Convert one treebank, or learn the difference from some trees of the "
            "target (isogloss parse restyle)."
        )
    elif loss is not None and loss <= 2:
        said.append("Little is lost: use the parser as it is.")
    else:
        clear = "Guidelines seem to be alike" if guidelines.verdict == "alike" else "Guidelines may differ a little"
        said.append(
            f"{clear}. Try text of the target (isogloss parse train --adapt), though it rarely wins much; trees of the "
            "target, learnt from beside those of the source, win more."
        )
    return tuple(said)
