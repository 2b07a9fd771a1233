"""Names as nodes: `EntityTagger` in two languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from isogloss.data.formats.convert import as_mentions
from isogloss.data.joining import join_mentions
from isogloss.data.mentions import Entity, Mentions
from isogloss.data.name_types import shared_type
from isogloss.metrics.names import EntityScore, score_entities
from isogloss.tasks.extract import EntityTagger
from isogloss.tasks.joint.views.base import Array, Nodes, Ranked, View

__all__ = ["NAMES", "NameView"]


class NameView(View):
    """Sets of names that do not overlap; every name is a node."""

    task: ClassVar[str] = "entities"
    noun: ClassVar[str] = "name"
    words: ClassVar[tuple[str, ...]] = ("form", "word")
    weaker: ClassVar[tuple[str, ...]] = ("look", "shape")
    mixture: ClassVar[str] = "plain"

    def classes(self) -> tuple[type, ...]:
        """`EntityTagger`."""
        return (EntityTagger,)

    def sentences(self, given: Any) -> Mentions:
        """`Mentions`; names that they have are not looked at."""
        return as_mentions(given)

    def k_best(self, model: EntityTagger, sentences: Mentions, k: int) -> Ranked:
        """The most probable sets of names."""
        return model.k_best(sentences, k)

    def log_prob(self, model: EntityTagger, sentences: Mentions, analyses: Sequence[Sequence[Any]]) -> list[Array]:
        """Log-probabilities of the whole sentence with these names."""
        return model.log_prob(sentences, analyses)

    def nodes(
        self, sentences: Mentions, sentence: int, analyses: Sequence[Sequence[Entity]], labels: Mapping[str, int]
    ) -> Nodes:
        """A node for each name."""
        rows = [(b, e, labels.get(kind, -1), -1, -1, 0) for names in analyses for b, e, kind in names]
        return Nodes.distinct(np.array(rows, np.int64), [len(names) for names in analyses])

    def labels(self, model: EntityTagger) -> tuple[str, ...]:
        """Types of names."""
        return model.types_

    def shared(self, label: str) -> str:
        """CoNLL04's Peop is a PER, its Other a MISC."""
        return shared_type(label)

    def expected(
        self, sentences: Mentions, sentence: int, ranked: Sequence[Any], chances: Array, model: EntityTagger
    ) -> tuple[Entity, ...]:
        """The names, none overlapping, with the highest Σ (posterior − threshold of the tagger)."""
        worth: dict[Entity, float] = {}
        for names, chance in zip(ranked, chances.tolist(), strict=True):
            for name in names:
                worth[name] = worth.get(name, 0.0) + chance
        least = float(model.threshold)
        return _heaviest({name: value - least for name, value in worth.items() if value > least})

    def annotated(self, model: EntityTagger, sentences: Mentions, analyses: Sequence[Sequence[Entity]]) -> Mentions:
        """The sentences with these names."""
        return sentences.with_entities(analyses)

    def fresh(self, model: EntityTagger, blind_to: Sequence[str] = ()) -> EntityTagger:
        """With fewer templates of words and of spans."""
        return EntityTagger(**(model.options_ | {"threads": model.threads} | model.templates_without(blind_to)))

    def joined(self, texts: Sequence[Mentions]) -> Mentions:
        """One text."""
        return join_mentions(texts)

    def score(self, found: Mentions, gold: Mentions, **options: Any) -> EntityScore:
        """F1 of names."""
        return score_entities(found, gold, **options)


def _heaviest(worth: dict[Entity, float]) -> tuple[Entity, ...]:
    """Names that do not overlap with the largest sum, by the places where they end."""
    names = sorted(worth, key=lambda name: (name[1], name[0], name[2]))
    best, taken = np.zeros(len(names) + 1), [-1] * (len(names) + 1)
    ends = np.array([name[1] for name in names])
    for k, name in enumerate(names, start=1):
        before = int(np.searchsorted(ends, name[0], side="right"))
        gain = best[before] + worth[name]
        best[k], taken[k] = (gain, before) if gain > best[k - 1] else (best[k - 1], -1)
    found: list[Entity] = []
    k = len(names)
    while k:
        if taken[k] >= 0:
            found.append(names[k - 1])
            k = taken[k]
        else:
            k -= 1
    return tuple(found[::-1])


NAMES = NameView()
