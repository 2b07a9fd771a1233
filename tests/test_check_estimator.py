"""`check_estimator` finds what is wrong with an estimator, and ours keep its laws."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest

from isogloss import samples, store
from isogloss.data import Bitext, Documents, Groups, TagDictionary, Text, Treebank
from isogloss.errors import UsageError
from isogloss.estimator import Estimator, option
from isogloss.metrics import score_tags
from isogloss.tasks.adapt import DocumentClassifier
from isogloss.tasks.align import (
    HMMAligner,
    ItgAligner,
    MatchingAligner,
    Model1Aligner,
    Model2Aligner,
    QuadraticAligner,
    SegmentedAligner,
)
from isogloss.tasks.documents import PolylingualTopics
from isogloss.tasks.documents.ranking import BilingualRanker
from isogloss.tasks.joint import BilingualParser, JointConstituentAligner, JointParserAligner, Multiview
from isogloss.tasks.parse import DependencyParser, JointMorphologyParser, StyleAdapter
from isogloss.tasks.parse.styles import convert
from isogloss.tasks.segment import BilingualSegmenter, Segmenter
from isogloss.tasks.tag import CrfTagger, DictionaryTagger, GraphTagger, ProjectedTagger, Tagger
from isogloss.tasks.transfer import DelexicalisedParser
from isogloss.tasks.translate import Translator
from isogloss.testing import check_effects, check_estimator
from isogloss.testing.fuzz.models import (
    DICTIONARY,
    bitext,
    constituent_pairs,
    cut_words,
    documents,
    labelled,
    links,
    monolingual,
    new_documents,
    new_labelled,
    new_ranked,
    new_words,
    ranked,
    sentence_pairs,
    tree_pairs,
    treebank,
)


class Toy(Estimator):
    """Knows words, and finds those that it knows; `flaw` says what it does wrong."""

    flaw: ClassVar[str] = ""
    ignored: list[str] | None = option(default=None, kind=(list, tuple), help="Words that are passed over.")
    least: int = option(default=1, least=1, help="How often a word has to be seen.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, help="Cores to use.")

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        if self.flaw == "copies" and isinstance(self.ignored, list):
            self.ignored = list(self.ignored)

    def fit(self, words: list[str]) -> Any:
        if self.flaw != "checks nothing":
            self.check_params()
        if self.flaw == "changes options":
            self.least = 2
        if self.flaw == "changes lists" and self.ignored is not None:
            self.ignored.append("x")
        before = getattr(self, "words_", ()) if self.flaw == "remembers" else ()
        self.words_ = (*before, *(word for word in words if words.count(word) >= self.least))
        if self.flaw == "threads" and self.threads == 2:
            self.words_ = self.words_[::-1]
        self.text_ = words
        return None if self.flaw == "returns nothing" else self

    def _check_fitted(self) -> None:
        if not hasattr(self, "words_") and self.flaw != "says nothing":
            raise UsageError("this Toy has learnt nothing yet: call fit first")

    def predict(self, words: list[str]) -> list[bool]:
        self._check_fitted()
        found = [word in getattr(self, "words_", ()) for word in words]
        if self.flaw == "adds" or (self.flaw == "knows its text" and words is self.text_):
            found.append(True)
        return found

    def score(self, words: list[str]) -> Any:
        tags = Treebank.of([[(word, str(found)) for word, found in zip(words, self.predict(words))]])
        score = score_tags(tags, Treebank.of([[(word, "True") for word in words]]))
        if self.flaw == "scores a dictionary":
            return score.as_dict()
        return replace(score, accuracy=5000.0) if self.flaw == "scores too high" else score

    def save(self, path: Any) -> None:
        self._check_fitted()
        kept = self.words_[1:] if self.flaw == "forgets" else self.words_
        store.save(path, kind="toy", options=self.options_, arrays={}, meta={"words": kept})

    @classmethod
    def load(cls, path: Any) -> Any:
        saved = store.read(path, kind="toy")
        made = cls(**({} if cls.flaw == "forgets options" else saved.options))
        made.words_, made.text_ = tuple(saved.meta["words"]), None
        return made


def check_toy(flaw: str) -> None:
    kind = type("Toy", (Toy,), {"flaw": flaw})
    words = ["das", "Haus", "das", "Buch"]
    check_estimator(
        lambda **more: kind(**{"ignored": ["und"], **more}), lambda toy: toy.fit(words), ["das", "Kind"], empty=[],
        training=words, other_fit=lambda toy: toy.fit(["ein"]), score=lambda toy: toy.score(["das", "Kind"]),
    )  # fmt: skip


def test_a_right_toy_passes() -> None:
    check_toy("")


@pytest.mark.parametrize(
    ("flaw", "words"),
    [
        ("copies", "the constructor keeps other objects"),
        ("checks nothing", "fit, where ignored is .*: is not refused with ParameterError"),
        ("changes options", "fit puts other objects in place of options"),
        ("changes lists", "fit changes what it was given as an option"),
        ("remembers", "fitted again, it knows something else"),
        ("threads", "with 2 threads, it learns something else"),
        ("returns nothing", "fit does not return the estimator itself"),
        ("says nothing", "predict before fit: is not refused with UsageError"),
        ("adds", "for a text without sentences, predict gives 1"),
        ("knows its text", "what is loaded predicts something else"),
        ("forgets", "what is loaded saves something else"),
        ("forgets options", "what is loaded saves something else"),
        ("scores a dictionary", "score gives a dict, not a Score"),
        ("scores too high", "accuracy is not in percent"),
    ],
)
def test_flaws_are_found(flaw: str, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_toy(flaw)


class Effects(Toy):
    """Counts a word as known that is seen so often; `flaw` says which option does something else than it says."""

    way: str = option(default="all", choices=("all", "first"), help="Which words are known.")
    fast: bool = option(default=False, effect=False, help="Whether to hurry.")
    few: int = option(default=5, least=1, needs={"way": ("first",)}, help="How many words are first.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help="Cores to use.")

    def check_params(self) -> None:
        if self.flaw != "lets pass":
            super().check_params()

    def fit(self, words: list[str]) -> Any:
        super().fit([word for word in words if self.flaw == "ignores" or word not in (self.ignored or ())])
        if self.way == "first" and self.flaw != "inert":
            self.words_ = self.words_[: self.few]
        if (self.flaw == "fast matters" and self.fast) or (self.flaw == "by chance" and next(CHANCE)):
            self.words_ = ()
        return self


CHANCE = itertools.cycle([True, False])


def check_toy_effects(flaw: str) -> None:
    kind = type("Effects", (Effects,), {"flaw": flaw})
    words = ["das", "Haus", "das", "Buch", "und", "ein", "Kind", "das"]
    check_effects(
        kind, lambda toy: toy.fit(words), words, ways=[{"way": "all"}, {"way": "first"}],
        trials={"ignored": [["das"]], "least": [2], "few": [2]},
    )  # fmt: skip


def test_options_with_effects_pass() -> None:
    check_toy_effects("")


@pytest.mark.parametrize(
    ("flaw", "words"),
    [
        ("ignores", r"Effects: ignored changes nothing with way='all': \['das'\]; ignored .* with way='first'"),
        ("inert", "few changes nothing with way='first': 2"),
        ("fast matters", "fast is declared as without effect, and True changes the result"),
        ("lets pass", "few has not what it needs, and is not refused with way='all'"),
        ("by chance", "it learns something else each time with way='all'"),
    ],
)
def test_options_without_effect_are_found(flaw: str, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_toy_effects(flaw)


TREES = treebank()
TEXT = Text.of([TREES.words(s) for s in range(len(TREES))])
TAGGED = Treebank.from_bytes(samples.trees("en-de", "source").encode()).part(0, len(bitext()))
WORDS = TagDictionary.of_treebank(TREES.part(0, 8))
NEW = Treebank.of([[("Die", "DET"), ("Frau", "NOUN"), ("schläft", "VERB")], [("Unerhört", "ADJ"), ("!", "PUNCT")]])
NEW_PAIRS = Bitext.of([("The woman sleeps .", "Die Frau schläft ."), ("Unheard of !", "Unerhört !")])
PARSER = partial(DependencyParser, iterations=2)
JOINT = partial(JointMorphologyParser, iterations=2, tag_iterations=2)

READERS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any], Callable[[Any], Any], Any]] = {
    "CrfTagger": (partial(CrfTagger, iterations=2), lambda e: e.fit(TREES), lambda e: e.fit(TREES[:5]), TREES),
    "Tagger": (
        partial(Tagger, ["feats", "upos"], iterations=2), lambda e: e.fit(TREES), lambda e: e.fit(TREES[:5]), TREES,
    ),
    "DictionaryTagger": (
        partial(DictionaryTagger, WORDS, iterations=2), lambda e: e.fit(TEXT), lambda e: e.fit(TEXT[:5]), TEXT,
    ),
    "ProjectedTagger": (
        partial(ProjectedTagger, WORDS, iterations=2, min_count=1),
        lambda e: e.fit(bitext(), TAGGED, links=links()),
        lambda e: e.fit(bitext()[:5], TAGGED[:5], links=links()[:5]),
        bitext().target,
    ),
    "GraphTagger": (
        partial(GraphTagger, iterations=1, neighbours=2),
        lambda e: e.fit(TREES[:5], TEXT),
        lambda e: e.fit(TREES[:3], TEXT[:9]),
        TEXT,
    ),
    "DependencyParser": (PARSER, lambda e: e.fit(TREES), lambda e: e.fit(TREES[:5]), TREES),
    "JointMorphologyParser": (JOINT, lambda e: e.fit(TREES), lambda e: e.fit(TREES[:5]), TREES),
    "JointMorphologyParser, stacked": (
        partial(JOINT, stack_links=1.0), lambda e: e.fit(TREES), lambda e: e.fit(TREES[:5]), TREES,
    ),
    "StyleAdapter": (
        partial(StyleAdapter, iterations=5),
        lambda e: e.fit(convert(TREES, "chain", "head"), PARSER(order=1).fit(TREES)),
        lambda e: e.fit(TREES[:5], PARSER(order=1).fit(TREES[:5])),
        TREES,
    ),
    "DelexicalisedParser": (
        partial(DelexicalisedParser, iterations=2),
        lambda e: e.fit([TREES, TAGGED]),
        lambda e: e.fit({"a": TREES[:5]}, NEW),
        TREES,
    ),
}  # fmt: skip
"""Estimator -> how it is made, taught, taught something else, and the text that it learns from."""


@pytest.mark.parametrize("name", READERS)
def test_taggers_and_parsers(name: str) -> None:
    make, fit, other, training = READERS[name]
    score = lambda e: e.score(TREES)  # noqa: E731 - all of them take a treebank
    check_estimator(make, fit, NEW, empty=Text.of([]), training=training, other_fit=other, score=score)


@pytest.mark.parametrize("method", ["self-training", "none"])
def test_classifiers_of_documents(method: str) -> None:
    more = {"rounds": 2} if method == "self-training" else {}
    make = partial(DocumentClassifier, method=method, min_count=2, folds=3, **more)
    check_estimator(
        make, lambda e: e.fit(labelled(), new_labelled()), new_labelled(), empty=[],
        other_fit=lambda e: e.fit(labelled()[:15]), score=lambda e: e.score(labelled()),
    )  # fmt: skip


@pytest.mark.parametrize("kind", [HMMAligner, Model1Aligner, Model2Aligner, SegmentedAligner])
def test_aligners_without_gold(kind: type) -> None:
    """What they say of the text that they learnt from is more than a saved model says of it, unless told otherwise."""
    check_estimator(
        kind, lambda e: e.fit(bitext()), NEW_PAIRS, empty=Bitext.of([]), other_fit=lambda e: e.fit(bitext()[:5]),
        score=lambda e: e.score(bitext(), links()),
    )  # fmt: skip


def test_aligners_that_do_not_remember_their_text() -> None:
    make = partial(HMMAligner, remember=False)
    check_estimator(make, lambda e: e.fit(bitext()), NEW_PAIRS, training=bitext())
    text = bitext()
    fitted = HMMAligner().fit(text)
    own, any_text = fitted.predict_proba(text), fitted.set_params(remember=False).predict_proba(text)
    assert not all(np.array_equal(a, b) for a, b in zip(own, any_text, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(any_text, fitted.predict_proba(text[:]), strict=True))


@pytest.mark.parametrize("options", [{}, {"linking": "itg", "objective": "bound", "grain": "coarse"}])
def test_parsers_of_both_sides(options: dict[str, Any]) -> None:
    pairs = tree_pairs()
    check_estimator(
        partial(JointParserAligner, order=1, passes=2, folds=2, iterations=2, **options), lambda e: e.fit(pairs),
        pairs.take([1, 3]), empty=pairs.take([]), other_fit=lambda e: e.fit(pairs.take(range(6))),
        score=lambda e: e.score(pairs),
    )  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"objective": "fields", "tags": "predicted", "nulls": "free"}])
def test_constituents_of_both_sides(options: dict[str, Any]) -> None:
    pairs = constituent_pairs()
    check_estimator(
        partial(JointConstituentAligner, order=1, passes=2, folds=2, iterations=2, **options), lambda e: e.fit(pairs),
        pairs.take([1, 3]), empty=pairs.take([]), other_fit=lambda e: e.fit(pairs.take(range(6))),
        score=lambda e: e.score(pairs),
    )  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"coupling": "synch", "source_trees": "best"}])
def test_bilingual_parsers(options: dict[str, Any]) -> None:
    pairs = tree_pairs()
    check_estimator(
        partial(BilingualParser, order=1, passes=2, folds=2, iterations=2, **options), lambda e: e.fit(pairs),
        pairs.take([1, 3]), empty=pairs.take([]), other_fit=lambda e: e.fit(pairs.take(range(6))),
        score=lambda e: e.score(pairs),
    )  # fmt: skip


@pytest.mark.parametrize("task", ["entities", "tag", "parse"])
def test_models_that_teach_each_other(task: str) -> None:
    pairs, models = sentence_pairs(task), monolingual(task)
    check_estimator(
        partial(Multiview, task, candidates=4, rounds=3), lambda e: e.fit(pairs, *models), pairs.take([1, 3]),
        empty=pairs.take([]), other_fit=lambda e: e.fit(pairs.take(range(6)), *models), score=lambda e: e.score(pairs),
    )  # fmt: skip


@pytest.mark.parametrize("supervised", [True, False])
def test_segmenters(supervised: bool) -> None:
    words = cut_words()
    check_estimator(
        partial(Segmenter, rounds=2, iterations=5),
        lambda e: e.fit(words.text, words if supervised else None),
        new_words(),
        empty=Text.of([]),
        training=words.text,
        other_fit=lambda e: e.fit(words.text[:20], words[:20]),
        score=lambda e: e.score(words),
    )


def test_segmenters_that_learn_from_a_translation() -> None:
    text = bitext()
    check_estimator(
        partial(BilingualSegmenter, rounds=2, passes=2), lambda e: e.fit(text), NEW_PAIRS, empty=text[:0],
        training=text, other_fit=lambda e: e.fit(text[:3]), score=lambda e: e.score(text, links()),
    )  # fmt: skip


def test_topics() -> None:
    check_estimator(
        partial(PolylingualTopics, 4, iterations=6, samples=3, min_documents=1),
        lambda e: e.fit(documents()), new_documents(), empty=Documents.of([{"en": "a"}])[:0], training=documents(),
        other_fit=lambda e: e.fit(documents()[:5]), score=lambda e: e.score(documents()),
    )  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {}, {"reordering": "swap", "orientation": False},
        {"features": "all", "feature_count": 1, "proposals": 5, "epochs": 2, "folds": 2, "rate": 0.3},
    ],
)  # fmt: skip
def test_translators(options: dict[str, Any]) -> None:
    text = bitext()
    check_estimator(
        partial(Translator, order=3, iterations=2, nbest=10, passes=2, **options),
        lambda e: e.fit(text, text[:4], links=links()), NEW_PAIRS.source, empty=Text.of([]), training=text.source,
        other_fit=lambda e: e.fit(text[:5], links=links()[:5]), score=lambda e: e.score(text),
    )  # fmt: skip


@pytest.mark.parametrize("kind", [MatchingAligner, QuadraticAligner, ItgAligner])
def test_aligners_with_gold(kind: type) -> None:
    check_estimator(
        partial(kind, tune=False, iterations=2), lambda e: e.fit(bitext(), links()), NEW_PAIRS, empty=Bitext.of([]),
        other_fit=lambda e: e.fit(bitext()[:5], links()[:5]), score=lambda e: e.score(bitext(), links()),
    )  # fmt: skip


@pytest.mark.parametrize(
    "options", [{"lexicon": DICTIONARY, "constraints": 2}, {"constraints": 0, "trainer": "pegasos"}]
)
def test_rankers(options: dict[str, Any]) -> None:
    check_estimator(
        partial(BilingualRanker, **options, iterations=4), lambda e: e.fit(ranked()), new_ranked(), empty=Groups(()),
        training=ranked(), other_fit=lambda e: e.fit(ranked()[:3]), score=lambda e: e.score(ranked()),
    )  # fmt: skip
