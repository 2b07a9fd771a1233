"""One case: a changed model is loaded, everything that it can do is called, and what comes back is looked at."""

from __future__ import annotations

import shutil
import traceback
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from isogloss import store
from isogloss.data import Bitext, Links
from isogloss.data.constituents import Constituents
from isogloss.data.treebank import Treebank
from isogloss.errors import IsoglossError
from isogloss.testing.fuzz import models
from isogloss.testing.fuzz.files import damage
from isogloss.testing.fuzz.mutations import mutate

__all__ = ["Case", "Failure", "Malformed", "exercise", "place_of", "run_case"]

PACKAGE = Path(store.__file__).parent
_AS_FILES, _RAW = 0.2, 0.1
"""Shares of cases that go through files, and of those whose files are changed themselves."""
_SAVED_AGAIN = 0.15
_LISTED = 200
"""Entries of a lexicon that are looked at."""


class Malformed(Exception):
    """A result that no caller could make sense of: links outside of the sentence, tags that are no strings."""


@dataclass(frozen=True)
class Failure:
    """A case that ended in something else than a result or an error of ours."""

    model: str
    seed: int
    error: str
    """The type of the exception, or "crash", "too slow"."""
    place: str
    """File and line of the innermost frame of ours that is known."""
    message: str
    change: str
    """What was done to the model."""

    @property
    def line(self) -> str:
        """Everything in one line."""
        message = " ".join(self.message.split())[:160]
        return f"{self.model} seed {self.seed}: {self.error} at {self.place}: {message} [{self.change}]"


@dataclass(frozen=True)
class Case:
    """A changed model, ready to be loaded and used."""

    change: str
    """What was done to it."""
    load: Callable[[], Any]
    save: bool
    """Whether it is saved and loaded again after use."""

    @classmethod
    def of(cls, model: str, saved: store.Saved, seed: int, scratch: Path) -> Case:
        """Case `seed` of a saved model of `models.MODELS`; it is loaded from memory or from files in `scratch`."""
        rng = np.random.default_rng([zlib.crc32(model.encode()), seed])
        way, save, folder = rng.random(), bool(rng.random() < _SAVED_AGAIN), scratch / "changed.model"
        made, change = (saved, "") if way < _RAW else mutate(saved, rng)
        if way >= _AS_FILES + _RAW:
            module, name = store.KINDS[made.kind].split(":")
            return cls(change, partial(getattr(import_module(module), name)._from_saved, made), save)
        shutil.rmtree(folder, ignore_errors=True)
        store.save(folder, kind=made.kind, options=made.options, arrays=made.arrays, meta=made.meta)
        if way < _RAW:
            change = damage(folder, rng)
        return cls(change, partial(store.load, folder), save)

    def use(self, scratch: Path) -> None:
        """Load the model and call everything that it can do."""
        exercise(self.load(), scratch if self.save else None)


def run_case(model: str, saved: store.Saved, seed: int, scratch: Path) -> Failure | str:
    """A failure, or how the case ended: "used", "refused" by loading, or "stopped" by an error of ours later."""
    case = Case.of(model, saved, seed, scratch)
    outcome = "refused"
    try:
        loaded = case.load()
        outcome = "stopped"
        exercise(loaded, scratch if case.save else None)
        outcome = "used"
    except IsoglossError:
        pass
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # whatever it is, it is what we look for; a panic of safetensors is no `Exception`
        return Failure(model, seed, type(error).__name__, innermost(error), str(error), case.change)
    return outcome


def innermost(error: BaseException) -> str:
    """Where an exception came from; see `place_of`."""
    frames = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    return place_of(frames[::-1])


def place_of(frames: Iterable[tuple[str, int]]) -> str:
    """File and line of the first of some frames that says something: of the package, but not what calls all kernels."""
    passed = (Path(__file__).parent, PACKAGE / "engine" / "threads.py")
    for file, line in frames:
        path = Path(file)
        if path.is_relative_to(PACKAGE) and not any(path.is_relative_to(other) for other in passed):
            return f"{path.relative_to(PACKAGE)}:{line}"
    return "?"


# --- using a model ----------------------------------------------------------------------------------------------------


def exercise(loaded: Any, scratch: Path | None = None) -> None:
    """Call everything that a model can do, on text of all sorts; with `scratch`, also save it and load that."""
    repr(loaded)
    use: Callable[[Any], None] = _use_annotator
    if type(loaded).__module__.startswith("isogloss.tasks.align"):
        use = _use_aligner
    elif type(loaded).__module__.startswith("isogloss.tasks.parse.constituency"):
        use = _use_brackets
    elif type(loaded).__module__ == "isogloss.tasks.joint.multiview":
        use = _use_sentence_pairs
    elif type(loaded).__module__ == "isogloss.tasks.joint.constituents":
        use = _use_constituent_pairs
    elif type(loaded).__module__.startswith("isogloss.tasks.joint"):
        use = _use_tree_pairs
    elif type(loaded).__module__.startswith("isogloss.tasks.extract"):
        use = _use_extractor
    elif type(loaded).__module__.startswith("isogloss.tasks.segment"):
        use = _use_segmenter
    elif type(loaded).__module__.startswith("isogloss.tasks.documents.threads"):
        use = _use_threads
    elif type(loaded).__module__ == "isogloss.tasks.documents.ranking":
        use = _use_ranker
    elif type(loaded).__module__.startswith("isogloss.tasks.documents"):
        use = _use_topics
    elif type(loaded).__module__.startswith("isogloss.tasks.adapt"):
        use = _use_classifier
    elif type(loaded).__module__.startswith("isogloss.tasks.translate"):
        use = _use_translator
    use(loaded)
    if scratch is not None:
        folder = scratch / "again.model"
        shutil.rmtree(folder, ignore_errors=True)
        loaded.save(folder)
        use(store.load(folder))


def _use_translator(translator: Any) -> None:
    text = models.new_bitext()
    found = translator.predict(text.source)
    _check(len(found) == len(text), "there are more or fewer translations than sentences")
    for one, every in zip(found, translator.predict_nbest(text.source, 3), strict=True):
        _check(len(every) <= 3 and (not every or every[0].text == one), "the best of several is another one")
        for each in every:
            _check(bool(np.isfinite(list(each.features.values())).all()), "a feature is not a number")
            repr(each.as_dict())
    translator.explain("the woman qqq")
    _check(translator.reachable(text).shape == (len(text),), "reachable has another length than the text")
    translator.score(text)
    next(iter(translator.table_.entries(["the"])), None)
    for name in ("weights_", "options_", "tuning_", "trace_"):
        getattr(translator, name)


def _use_tree_pairs(joint: Any) -> None:
    pairs = models.tree_pairs().take([0, 2, 5])
    found = joint.predict(pairs)
    _check(len(found) == len(found.links) == 3, "there are more or fewer pairs than before")
    _check(np.array_equal(found.target.lengths, pairs.target.lengths), "words were lost")
    found.source.check_trees(complete=True)
    for grid in joint.predict_proba(pairs).links:
        _check(bool((grid >= 0).all() and (grid <= 1).all()), "posteriors are not from 0 to 1")
    joint.separate(pairs)


def _use_constituent_pairs(joint: Any) -> None:
    pairs = models.constituent_pairs().take([0, 2, 5])
    found, posteriors = joint.predict(pairs), joint.predict_proba(pairs)
    _check(len(found) == len(found.links) == 3, "there are more or fewer pairs than before")
    _check(np.array_equal(found.target.lengths, pairs.target.lengths), "words were lost")
    for grid in (*posteriors.source, *posteriors.target, *posteriors.links):
        _check(bool((grid >= 0).all() and (grid <= 1).all()), "posteriors are not from 0 to 1")
    found.source.to_bytes()
    joint.separate(pairs)


def _use_sentence_pairs(both: Any) -> None:
    pairs = models.sentence_pairs(both.task).take([0, 2, 5])
    for found in (both.predict(pairs), both.predict(pairs, rule="uniform", decoder="nodes"), both.separate(pairs)):
        _check(len(found) == 3, "there are more or fewer pairs than before")
        _check(np.array_equal(found.target.lengths, pairs.target.lengths), "words were lost")
        found.source.to_bytes()
    both.score(pairs)
    _check(all(isinstance(name, str) for name in both.feature_weights()), "a feature has no name")


def _use_aligner(aligner: Any) -> None:
    text = models.new_bitext()
    _check_links(aligner.predict(text), text)
    _check_grids(aligner.predict_proba(text), text)
    if hasattr(aligner, "predict_directions"):
        for grids in aligner.predict_directions(text):
            _check_grids(grids, text)
    _check(aligner.pair_scores(text).shape == (len(text),), "pair_scores has another length than the text")
    for pair, words in ((1, {"source": 0}), (4, {"target": 1}), (3, {"source": 0})):
        aligner.explain(text, pair, **words)
    if not aligner.supervised:
        for entry in islice(aligner.lexicon(least=0.0), _LISTED):
            _check(isinstance(entry.source, str) and isinstance(entry.target, str), f"lexicon gives {entry!r}")
    if aligner.supervised:
        _check(all(isinstance(name, str) for name in aligner.feature_weights()), "a feature has no name")
    aligner.score(models.bitext(), models.links())


def _check_links(found: Links, text: Bitext) -> None:
    _check(len(found) == len(text), "there are more or fewer rows of links than pairs")
    for row in range(len(text)):
        n_source, n_target = map(len, text[row])
        for i, j in found[row].links:
            _check(
                0 <= i < n_source and 0 <= j < n_target, f"link {i}-{j} in a pair of {n_source} and {n_target} words"
            )


def _check_grids(grids: list[Any], text: Bitext) -> None:
    _check(len(grids) == len(text), "there are more or fewer grids than pairs")
    for row, grid in enumerate(grids):
        _check(grid.shape == tuple(map(len, text[row])) or not grid.size, f"a grid of {grid.shape} for pair {row}")


def _use_annotator(model: Any) -> None:
    """Taggers and parsers."""
    trees = models.new_treebank()
    found = model.predict(trees)
    _check_columns(found, trees)
    if type(model).__module__.startswith("isogloss.tasks.parse"):
        _check_heads(found)
        _check_columns(model.predict(trees, confidence=True), trees)
    model.predict_proba(trees)
    for name in ("confidence", "entropy"):
        if hasattr(model, name):
            getattr(model, name)(trees)
    if hasattr(model, "k_best"):
        model.k_best(trees, 2)
    if hasattr(model, "explain"):
        for sentence, word in ((1, 0), (2, 1), (4, 30)):
            model.explain(trees, sentence, word)
    model.score(models.treebank())
    for name in ("labels_", "values_", "options_"):
        getattr(model, name, None)


def _use_segmenter(segmenter: Any) -> None:
    """Segmenters of words."""
    if hasattr(segmenter, "segmenter_"):
        _use_bilingual_segmenter(segmenter)
        segmenter = segmenter.segmenter_
    text = models.new_words()
    found = segmenter.predict(text)
    _check(found.n_words == text.n_words == len(segmenter.predict_proba(text)), "there are more or fewer words")
    found.to_bytes(labels=True, confidence=True)
    ways = segmenter.predict_k_best(text, 3)
    _check(all(own and all(morphemes for _, morphemes in own) for own in ways), "a word has no morphemes")
    for word in ("unhappily", "7"):
        segmenter.explain(word)
    segmenter.score(models.cut_words())
    for name in ("n_features_", "n_rules_", "supervised_", "options_"):
        getattr(segmenter, name)


def _use_bilingual_segmenter(segmenter: Any) -> None:
    """Segmenters that look at a translation."""
    pairs = models.new_bitext()
    found, believed = segmenter.predict(pairs), segmenter.predict_proba(pairs)
    _check(found.n_words == pairs.target.n_words == len(believed.borders), "there are more or fewer words")
    _check(len(believed.links) == len(segmenter.links(pairs)) == len(pairs), "there are more or fewer pairs")
    found.to_bytes(labels=True)
    for name in ("n_translations_", "length_penalty_", "options_"):
        getattr(segmenter, name)


def _use_brackets(parser: Any) -> None:
    """Parsers of constituents."""
    text = models.new_treebank()
    rows = range(len(text))
    words, tags = [text.words(row) for row in rows], [text.strings("upos", row) for row in rows]
    given = Constituents.assembled(words, tags, [[] for _ in rows])
    for found in (parser.predict(given), parser.predict(given, confidence=True)):
        _check(len(found) == len(text) and found.n_words == text.n_words, "there are more or fewer words than before")
        found.to_bytes()
    _check(len(parser.predict_proba(given)) == len(text), "there are more or fewer posteriors than sentences")
    if parser.model == "span":
        parser.k_best(given.take(given.lengths <= 8), 2)  # a search for each span
        parser.explain(given, 3, 0, 2)
    parser.score(models.constituents())
    for name in ("labels_", "options_", "n_features_"):
        getattr(parser, name, None)


def _use_extractor(extractor: Any) -> None:
    """Extractors of names, or of what stands between words."""
    if not hasattr(extractor, "types_"):
        _use_pairs(extractor)
        return
    text = models.new_mentions()
    for found in (extractor.predict(text), extractor.predict(text, confidence=True)):
        _check(len(found) == len(text) and found.n_words == text.n_words, "there are more or fewer words than before")
        found.to_bytes()
    _check(len(extractor.predict_proba(text)) == len(text), "there are more or fewer posteriors than sentences")
    extractor.explain(text, 3, 0, 1)
    extractor.score(models.mentions())
    for name in ("types_", "options_", "n_features_"):
        getattr(extractor, name, None)


def _use_ranker(ranker: Any) -> None:
    """Rankers of documents and of outputs."""
    for groups in (models.new_ranked(), models.compared()):
        for group, own in zip(groups, ranker.predict(groups), strict=True):
            _check(own.shape == (len(group.candidates),), f"{own.shape} scores for {len(group.candidates)} candidates")
            _check(not np.isnan(own).any(), "a score is not a number")
        ranker.pair_scores(groups)
    ranker.score(models.ranked())
    _check(all(isinstance(name, str) for name in ranker.feature_weights()), "a feature has no name")


def _use_pairs(extractor: Any) -> None:
    """Extractors of relations and of roles."""
    of_names = hasattr(extractor, "labels_")
    text, gold = (models.new_related(), models.related()) if of_names else (models.new_proposed(), models.proposed())
    found = [extractor.predict(text)]
    if of_names:
        found.append(extractor.predict(text, confidence=True))
    for each in found:
        _check(len(each) == len(text), "there are more or fewer sentences than before")
        if not of_names:
            each.to_bytes()
    _check(len(extractor.predict_proba(text)) == len(text), "there are more or fewer posteriors than sentences")
    if extractor.syntax not in ("none", "given"):
        extractor.latent_trees(text)
    extractor.score(gold)
    for name in ("labels_", "roles_", "options_", "n_features_"):
        getattr(extractor, name, None)


def _use_threads(threads: Any) -> None:
    """Graphs that threads are drawn from."""
    for found in threads.predict([0, 1]):
        _check(len(found) == threads.k, "there are more or fewer threads than were asked for")
        for path, names in zip(found.threads, found.ids, strict=True):
            _check(len(path) == len(names) <= threads.length, "a thread has another length")
            _check(all(0 <= row < len(threads.ids_) for row in path), "a thread has a document that is not there")
        repr(found.as_dict())
    threads.independent(np.random.default_rng(0))
    threads.subset(1)
    for name in ("left_out_", "options_"):
        getattr(threads, name)


def _use_topics(model: Any) -> None:
    """Models of topics."""
    text = models.new_documents()
    known = [name for name in text.languages if name in model.languages_]
    text = text.in_languages(*known) if known else text
    found = model.transform(text)
    _check(found.shape == (len(text), model.topics), "there are more or fewer shares than documents and topics")
    _check(bool((found >= 0).all() and np.allclose(found.sum(axis=1), 1)), "shares of topics do not add up to 1")
    model.predict(text)
    held_out = model.held_out(text, runs=2)
    _check(bool(np.isfinite(held_out.by_words).all() and np.isfinite(held_out.by_runs).all()), "a log is not a number")
    model.top_words(3)
    model.shares()
    model.coherence(text, 3)
    model.lexicon(model.languages_[0], model.languages_[-1], 2)
    model.nearest(text, text, 2)
    model.explain(text, 3)
    model.score(text)
    for name in ("languages_", "alpha_", "options_"):
        getattr(model, name, None)


def _use_classifier(classifier: Any) -> None:
    """Classifiers of documents."""
    text = models.new_labelled()
    found, posteriors = classifier.predict(text), classifier.predict_proba(text)
    _check(len(found) == len(text) == len(posteriors), "there are more or fewer labels than documents")
    _check(set(found) <= set(classifier.labels_), "a label is not among those that are known")
    classifier.score(text)
    for name in ("options_", "n_features_", "prior_", "trace_", "columns_"):
        getattr(classifier, name)


def _check_columns(found: Treebank, given: Treebank) -> None:
    _check(len(found) == len(given) and found.n_words == given.n_words, "there are more or fewer words than before")
    for name, (ids, vocabulary) in found.columns.items():
        size = len(vocabulary)
        _check(len(ids) == given.n_words, f"column {name} has {len(ids)} entries for {given.n_words} words")
        _check(bool(((ids >= 0) & (ids < size)).all()), f"column {name} has a number that is none of a tag")
        _check(all(isinstance(vocabulary[i], str) for i in np.unique(ids).tolist()), f"{name} has tags of another type")
    found.to_bytes()


def _check_heads(found: Treebank) -> None:
    lengths = np.repeat(found.lengths, found.lengths)
    _check(bool(((found.heads >= 0) & (found.heads <= lengths)).all()), "a head is outside of the sentence")


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Malformed(otherwise)
