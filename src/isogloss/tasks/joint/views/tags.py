"""Tagged words as nodes: `CrfTagger` and `Tagger` in two languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isogloss.data.formats import as_treebank
from isogloss.data.joining import join_treebanks
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError
from isogloss.metrics.tagging import TagScore, score_tags
from isogloss.tasks.joint.views.base import COLUMNS, Array, Nodes, Ranked, View
from isogloss.tasks.tag import CrfTagger, Tagger

__all__ = ["TAGS", "TagView"]

Words = NDArray[np.str_]
Model = CrfTagger | Tagger


def crf_of(model: Model) -> CrfTagger:
    """The tagger of one column that candidates come from: of parts of speech if there are several columns."""
    if isinstance(model, CrfTagger):
        return model
    found = next((model.taggers[name] for name in ("upos", "xpos", *model.taggers) if name in model.taggers), None)
    if not isinstance(found, CrfTagger):
        raise ParameterError("Multiview: this tagger did not learn from tags. Train one with `isogloss tag train`")
    return found


class TagView(View):
    """Tags of one column; a node is a word with its tag. An analysis is an array of strings, one for each word."""

    task: ClassVar[str] = "tag"
    noun: ClassVar[str] = "tag"
    words: ClassVar[tuple[str, ...]] = ("form", "word")
    weaker: ClassVar[tuple[str, ...]] = ("prefix", "suffix")
    mixture: ClassVar[str] = "equal"

    def classes(self) -> tuple[type, ...]:
        """`CrfTagger`, or a `Tagger` of which one column is looked at."""
        return (CrfTagger, Tagger)

    def check(self, model: Any, what: str) -> None:
        """`ParameterError` for a model of another task, or one that learnt otherwise."""
        super().check(model, what)
        crf_of(model)

    def sentences(self, given: Any) -> Treebank:
        """`Treebank`; tags that it has are not looked at."""
        return as_treebank(given)

    def k_best(self, model: Model, sentences: Treebank, k: int) -> Ranked:
        """The most probable sequences of tags."""
        own = crf_of(model)
        names = np.array(own.labels_)
        return [[(score, names[tags]) for score, tags in best] for best in own.k_best(sentences, k)]

    def log_prob(self, model: Model, sentences: Treebank, analyses: Sequence[Sequence[Words]]) -> list[Array]:
        """Log-probabilities of whole sequences of tags."""
        own = crf_of(model)
        known = Vocabulary(own.labels_)
        numbers = [[known.encode(tags.tolist()).astype(np.int64) for tags in some] for some in analyses]
        return own.log_prob(sentences, numbers)

    def nodes(
        self, sentences: Treebank, sentence: int, analyses: Sequence[Words], labels: Mapping[str, int]
    ) -> Nodes:  # fmt: skip
        """A node for each word."""
        n = int(sentences.lengths[sentence])
        words = np.tile(np.arange(n), len(analyses))
        tags = np.array([labels.get(tag, -1) for own in analyses for tag in own.tolist()], np.int64)
        table = np.zeros((len(words), len(COLUMNS)), np.int64)
        table[:, 0], table[:, 1], table[:, 2], table[:, 3], table[:, 4] = words, words + 1, tags, words, -1
        return Nodes.distinct(table, [n] * len(analyses))

    def labels(self, model: Model) -> tuple[str, ...]:
        """Tags."""
        return crf_of(model).labels_

    def expected(
        self, sentences: Treebank, sentence: int, ranked: Sequence[Words], chances: Array, model: Model
    ) -> Words:
        """The most probable tag of each word."""
        names = self.labels(model)
        known = Vocabulary(names)
        worth = np.zeros((int(sentences.lengths[sentence]), len(names)))
        for tags, chance in zip(ranked, chances.tolist(), strict=True):
            worth[np.arange(len(tags)), known.encode(tags.tolist())] += chance
        return np.asarray(np.array(names)[worth.argmax(axis=1)])

    def annotated(self, model: Model, sentences: Treebank, analyses: Sequence[Words]) -> Treebank:
        """The sentences with these tags; other columns of the tagger are as it finds them by itself."""
        found = model.predict(sentences) if isinstance(model, Tagger) and len(model.taggers) > 1 else sentences
        own = crf_of(model)
        column: dict[str, Any] = {own.column: Column.of(str(tag) for tags in analyses for tag in tags)}
        return found.with_predictions(**column)

    def without_words(self, model: Model) -> CrfTagger:
        """The tagger of the column that is looked at, without its weights of whole words."""
        return crf_of(model).blind_to(self.words)

    def fresh(self, model: Model, blind_to: Sequence[str] = ()) -> Model:
        """With fewer templates; of a column alone if it is to be weaker."""
        own = crf_of(model)
        if blind_to or isinstance(model, CrfTagger):
            return CrfTagger(**(own.options_ | {"threads": own.threads} | own.templates_without(blind_to)))
        return Tagger(**model.get_params())

    def joined(self, texts: Sequence[Treebank]) -> Treebank:
        """One treebank."""
        return join_treebanks(texts)

    def score(self, found: Treebank, gold: Treebank, **options: Any) -> TagScore:
        """Words with the right tags."""
        return score_tags(found, gold, **options)


TAGS = TagView()
