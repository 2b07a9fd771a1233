"""`EntityTagger`: names of persons, places and whatever else a text was annotated with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Text
from isogloss.data.formats.convert import as_mentions
from isogloss.data.mentions import Entity, Mentions
from isogloss.data.reading import check_reading
from isogloss.engine.threads import using_threads
from isogloss.errors import MentionsError, ParameterError, UsageError
from isogloss.features import Templates, blind_to
from isogloss.layout import integer
from isogloss.learners.loglinear import Likelihood
from isogloss.learners.passes import Course, LearntInPasses, learner_of
from isogloss.metrics.names import EntityScore, score_entities
from isogloss.progress import Progress
from isogloss.structures.batch import Stack
from isogloss.tasks.extract.features import (
    SPAN_TEMPLATES,
    TAG_TEMPLATES,
    WORD_TEMPLATES,
    Seen,
    Supported,
    seen_words,
)
from isogloss.tasks.extract.labels import OUTSIDE, NameLabels
from isogloss.tasks.extract.names import FittedNames, GoldNames, chosen_names, gold_words, name_posteriors
from isogloss.tasks.extract.options import EntityOptions

__all__ = ["EntityTagger"]

PIECE = 256
"""Sentences whose spans and scores are in memory together."""
LISTED = 5
"""Types that explanations list with their probabilities."""
Given = Mentions | Text


class EntityTagger(EntityOptions, LearntInPasses[FittedNames]):
    r"""Finds names in text, learnt from sentences whose names are marked.

    With ``model="chain"`` words are tagged: B where a name of some type begins, I where it goes on, O outside [1]_,

    .. math:: p(y \mid x) \propto \exp \sum_t \Big(\sum_a w[a, y_t] + v[y_{t-1}, y_t]\Big),

    in which I after anything but B or I of its type is forbidden. With ``model="segments"`` a name has, beside the
    weights of its words, weights of attributes of all of it: its words in order, how they are written, its length, what
    stands before and behind it [2]_.

    Parameters
    ----------
    model : "segments" or "chain"
    trainer : "likelihood", "mira" or "perceptron"
        What is learnt: probabilities of names, or margins.
    decoder : "mbr" or "map", optional
        The names with the highest sum of posteriors, less `threshold` for each; or those of the best sequence. If not
        given, the former for likelihood, the latter for margins.
    threshold : float
        What a name costs with decoder "mbr".
    tags : "none" or "given"
        Whether to look at parts of speech that a file has beside the words.
    longest : int
        The most words of a name; never more than the longest name of training has.
    iterations : int
        Passes over the text; with `dev` the best number up to this.
    rate : float, optional
        Length of steps; for MIRA the longest.
    l2 : float
        Penalty on the squares of weights, ½ l2 ‖w‖² beside the log-likelihood of all sentences.
    batch : int
        Sentences of a step.
    min_count : int
        Attributes that are met less often are left out.
    templates, span_templates : sequence of str, optional
        What words and, with segments, names as a whole are seen by; those of `isogloss.tasks.extract.features`
        otherwise.
    seed : int
        Seed of the order of sentences.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    types_ : tuple of str
        Types of names, in the order of the last axis of `predict_proba`.
    longest_ : int
        The most words of a name that is looked for by posteriors, or as a segment.
    trace_ : float64[n_passes]
        Loss of a word in each pass, as it was met.
    tuning_ : float64[n_passes]
        F1 on dev after each pass; empty without dev.

    References
    ----------
    .. [1] Lafferty, McCallum and Pereira, Conditional random fields, ICML 2001; McCallum and Li, CoNLL 2003.
    .. [2] Sarawagi and Cohen, Semi-Markov conditional random fields for information extraction, NIPS 2004.

    Examples
    --------
    >>> one = ("Ada lives in London".split(), [(0, 1, "PER"), (3, 4, "LOC")])
    >>> text = Mentions.of([one, ("Bob left London".split(), [(0, 1, "PER"), (2, 3, "LOC")])] * 4)
    >>> tagger = EntityTagger(iterations=5).fit(text)
    >>> print(tagger.predict(Text.of(["Ada left London"]))[0])
    [Ada PER] left [London LOC]
    """

    _kind: ClassVar[str] = "extract.entities"
    _saved_as: ClassVar[str] = "the saved model of names"

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        self._word_templates, self._span_templates  # noqa: B018 - says which template makes no sense

    @property
    def word_templates(self) -> tuple[Any, ...]:
        """What words are seen by: `templates`, or the usual ones."""
        usual = WORD_TEMPLATES + (TAG_TEMPLATES if self.tags == "given" else ())
        return tuple(usual if self.templates is None else self.templates)

    @property
    def _word_templates(self) -> Templates:
        return Templates(self.word_templates, kind="word")

    @property
    def _span_templates(self) -> Templates | None:
        if self.model == "chain":
            return None
        return Templates(SPAN_TEMPLATES if self.span_templates is None else self.span_templates, kind="span")

    @property
    def choosing(self) -> str:
        """How names are chosen: as `decoder` says or, if that is not given, as suits the trainer."""
        return self.decoder or ("mbr" if self.trainer == "likelihood" else "map")

    # --- learning

    def fit(
        self,
        mentions: Mentions,
        dev: Mentions | None = None,
        progress: Progress | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn the names of a text.

        Parameters
        ----------
        mentions : Mentions
            Relations between names are not looked at.
        dev : Mentions, optional
            Other sentences; the number of passes is that of the best F1 on them.
        progress : Progress, optional
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt so far; see `isogloss.learners.runner.run`.
        resume : bool
            Go on from there, to the bit as if nothing had happened.
        """
        self.check_params()
        mentions, dev = as_mentions(mentions), None if dev is None else as_mentions(dev)
        with self._course(progress, checkpoint, resume, [mentions, dev]) as course, using_threads(self.threads):
            _check_names(mentions, dev)
            self._learn(mentions, dev, course)
        return self._learnt_from(mentions.text())

    def _learn(self, mentions: Mentions, dev: Mentions | None, course: Course) -> None:
        course.progress.start("Collecting attributes", 1)
        labels = NameLabels.of(mentions)
        entities = [mentions.entities(s) for s in range(len(mentions))]
        longest = min(self.longest, int((mentions.ends - mentions.begins).max()))
        unfinished, model, gold = self._collected(mentions, labels, entities, longest)
        likely = Likelihood(model, gold=gold.structures) if self.trainer == "likelihood" else None
        learner = learner_of(model, gold, self.pass_settings, course.progress.within, likelihood=likely)
        score = None if dev is None else self._held_out(unfinished, dev)
        passed = course.run(learner, "Learning names", score)
        fitted = replace(unfinished, weights=np.asarray(passed.weights, np.float32)).compact()
        self._take(fitted, passed.losses(mentions.n_words), passed.scores)

    def _collected(
        self, mentions: Mentions, labels: NameLabels, entities: list[tuple[Entity, ...]], longest: int
    ) -> tuple[FittedNames, Any, GoldNames]:
        """What has weights, the model of the text, and what is right."""
        seen, lengths = seen_words(mentions, tags=self.tags == "given"), mentions.lengths
        tags = gold_words(labels, entities, lengths)
        flat = np.concatenate([np.zeros(0, np.int64), *tags])
        words, on_words = Supported.collected(
            self._word_templates, seen.words(), flat, labels.n_tags, self.min_count
        )  # fmt: skip
        nothing = np.zeros(0, np.float32)
        if self._span_templates is None:
            made = FittedNames(labels, longest, words, None, nothing)
            return made, made.model_over(on_words, lengths), GoldNames(tags)
        cut = [_shortened(own, longest) for own in entities]
        segments = [labels.segments(n, own) for own, n in zip(cut, lengths.tolist(), strict=True)]
        parts = seen.spans(longest)
        right = np.full(parts.n_parts, -1, np.int64)
        for s, y in enumerate(segments):  # words outside are seen as words alone
            names = [segment for segment in y if segment[2] != OUTSIDE]
            right[_rows(names, int(lengths[s]), longest, int(parts.offsets[s]))] = [label for _, _, label in names]
        spans, on_spans = Supported.collected(self._span_templates, parts, right, labels.n_labels, self.min_count)
        made = FittedNames(labels, longest, words, spans, nothing)
        return made, made.model_over(on_words, lengths, on_spans), GoldNames(segments)

    def _held_out(self, unfinished: FittedNames, dev: Mentions) -> Callable[[NDArray[Any]], float]:
        models = list(self._models(dev, unfinished))

        def f1(weights: NDArray[Any]) -> float:
            learnt = replace(unfinished, weights=np.asarray(weights, np.float32))
            found = [names for some, _ in self._found(models, learnt) for names in some]
            return float(score_entities(dev.with_entities(found), dev, bootstrap=0).f1)

        return f1

    # --- predicting

    def predict(self, text: Given, *, confidence: bool = False) -> Mentions:
        """The names of a text; those that it has are not looked at.

        With `confidence`, the result has the posterior of each name.
        """
        mentions, learnt = as_mentions(text), self._learnt
        check_reading(self.reading_, mentions.text())
        names: list[list[Entity]] = []
        sure: list[list[float]] = []
        with using_threads(self.threads):
            for some, posteriors in self._found(self._models(mentions, learnt), learnt, confidence):
                names += some
                if posteriors is not None:
                    sure += [_chances(own, row, learnt.labels) for own, row in zip(some, posteriors, strict=True)]
        return mentions.with_entities(names, sure if confidence else None)

    def predict_proba(self, text: Given) -> list[NDArray[np.float64]]:
        """The posterior of each type for each span: float64[n, longest_, n_types] for each sentence.

        Entry [b, l - 1, t] is that of the span of l words that begins with word b; types are `types_`.
        """
        learnt = self._learnt
        with using_threads(self.threads):
            models = self._models(as_mentions(text), learnt)
            return [
                np.array(one) for batch in _batches(models, learnt) for one in name_posteriors(batch, learnt.longest)
            ]

    def k_best(self, text: Given, k: int) -> list[list[tuple[float, tuple[Entity, ...]]]]:
        """The `k` most probable sets of names of each sentence, best first, each with its log-probability.

        They are the best analyses of the whole sentence; what decoder "mbr" finds need not be among them.
        """
        learnt, found = self._learnt, []
        with using_threads(self.threads):
            for batch in _batches(self._models(as_mentions(text), learnt), learnt):
                for total, own in zip(batch.log_partition().tolist(), batch.k_best(k), strict=True):
                    found.append([(score - total, tuple(learnt.names_of(y))) for score, y in own])
        return found

    def log_prob(self, text: Given, names: Sequence[Sequence[Iterable[Entity]]]) -> list[NDArray[np.float64]]:
        """The log-probabilities of sets of names, any number for each sentence; −∞ for what the model cannot make."""
        mentions, learnt = as_mentions(text), self._learnt
        found: list[NDArray[np.float64]] = []
        if len(names) != len(mentions):
            raise ParameterError(f"log_prob: names of {len(names)} sentences were given for {len(mentions)}")
        with using_threads(self.threads):
            for batch in _batches(self._models(mentions, learnt), learnt):
                for s, total in enumerate(batch.log_partition().tolist()):
                    dist, n = batch[s], int(mentions.lengths[len(found)])
                    made = (learnt.analysis(n, own) for own in names[len(found)])
                    scores = [-np.inf if y is None else dist.score(y) - total for y in made]
                    found.append(np.array(scores, np.float64))
        return found

    def templates_without(self, attributes: Sequence[str]) -> dict[str, Any]:
        """Options in which no template looks at some attributes.

        A phrase as a whole is made of words, and how it is written is made of looks.
        """
        whole = [*attributes, *(name for name, of in (("phrase", "word"), ("written", "look")) if of in attributes)]
        found: dict[str, Any] = {"templates": blind_to(self.word_templates, attributes)}
        if self.model == "segments":
            own = SPAN_TEMPLATES if self.span_templates is None else self.span_templates
            found["span_templates"] = blind_to(own, whole)
        return found

    def blind_to(self, attributes: Sequence[str]) -> EntityTagger:
        """The same weights, but for those of templates that look at some attributes: a weaker tagger.

        See `isogloss.features.blind_to` and `templates_without`.
        """
        learnt = self._learnt
        made = EntityTagger(**(self.get_params() | self.templates_without(attributes)))
        made._take(learnt.seen_by(made._word_templates, made._span_templates), self.trace_, self.tuning_)
        made.reading_ = self.reading_
        return made

    def score(self, mentions: Mentions) -> EntityScore:
        """Precision, recall and F1 of names, exact in words and type, in percent."""
        gold = as_mentions(mentions)
        return score_entities(self.predict(gold), gold)

    def explain(
        self, text: Given, sentence: int, begin: int, end: int, *, type: str | None = None
    ) -> dict[str, Any]:  # fmt: skip
        """Why the words begin … end - 1 are a name, or are none; plain data.

        Parameters
        ----------
        text : Mentions or Text
        sentence, begin, end : int
            From 0; `end` is behind the last word.
        type : str, optional
            The type to speak of; the most probable one without it.

        Returns
        -------
        dict
            `words`, `type`, its `probability`, the probabilities of all `types`, and `features`: what fires on each
            word and on the name as a whole, with its weight for the type less that outside of names, the largest first.
        """
        from isogloss.tasks.extract.explaining import features_of

        mentions, learnt = as_mentions(text), self._learnt
        n = int(mentions.lengths[sentence]) if 0 <= sentence < len(mentions) else 0
        if not 0 <= begin < end <= n or end - begin > learnt.longest:
            raise UsageError(
                f"explain: there are no words {begin} to {end} in a sentence {sentence}, or more than the "
                f"{learnt.longest} that a name may have; all count from 0"
            )
        if type is not None and type not in learnt.labels.types:
            raise UsageError(f"explain: there is no type {type!r}; names are {', '.join(learnt.labels.types)}")
        one = mentions.part(sentence, sentence + 1)
        row = self.predict_proba(one)[0][begin, end - begin - 1]
        best = np.argsort(-row, kind="stable").tolist()
        chosen = best[0] if type is None else learnt.labels.types.index(type)
        return {
            "words": list(one.words(0)[begin:end]),
            "type": learnt.labels.types[chosen],
            "probability": float(row[chosen]),
            "types": {learnt.labels.types[k]: float(row[k]) for k in best[:LISTED]},
            "features": features_of(learnt, self._as_seen(one), begin, end, chosen),
        }

    def _as_seen(self, mentions: Mentions) -> Seen:
        return seen_words(mentions, tags=self.tags == "given")

    def _models(self, mentions: Mentions, learnt: FittedNames) -> Iterator[Any]:
        """Models of all sentences, some at a time: there are many spans."""
        for start in range(0, len(mentions), PIECE):
            yield learnt.model(self._as_seen(mentions.part(start, start + PIECE)))

    def _found(
        self, models: Iterable[Any], learnt: FittedNames, confidence: bool = False
    ) -> Iterator[tuple[list[list[Entity]], Stack | None]]:
        """Names of all sentences, some at a time, and posteriors of spans if they are asked for."""
        labels, longest = learnt.labels, learnt.longest
        for batch in _batches(models, learnt):
            if self.choosing == "mbr":
                posteriors = name_posteriors(batch, longest)
                yield chosen_names(posteriors, float(self.threshold), labels), posteriors
                continue
            names = [learnt.names_of(y) for y in batch.argmax()]
            widest = max((end - begin for own in names for begin, end, _ in own), default=1)
            yield names, name_posteriors(batch, max(longest, widest)) if confidence else None

    @property
    def types_(self) -> tuple[str, ...]:
        """Types of names."""
        return self._learnt.labels.types

    @property
    def longest_(self) -> int:
        """The most words of a name."""
        return self._learnt.longest

    @property
    def n_features_(self) -> int:
        """How many attributes have weights."""
        return self._learnt.n_features

    # --- keeping

    @property
    def options_(self) -> dict[str, Any]:
        """Every option as it was used; what is kept with a model."""
        spans = SPAN_TEMPLATES if self.span_templates is None and self.model == "segments" else self.span_templates
        used = {"templates": self.word_templates, "span_templates": spans, "decoder": self.choosing}
        return super().options_ | used

    def _to_parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return self._learnt.to_arrays(), {"longest": self.longest_}

    def _of_parts(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> FittedNames:
        longest = integer(meta["longest"], "longest", least=1, most=self.longest)
        return FittedNames.from_arrays(arrays, longest, self._word_templates, self._span_templates)


def _check_names(mentions: Mentions, dev: Mentions | None) -> None:
    if not mentions.n_entities:
        raise MentionsError(f"{mentions.name}: no name is marked, so there is nothing to learn. Is it the right file?")
    if dev is not None and not dev.n_words:
        raise MentionsError(f"{dev.name}: there are no words, so that no pass is better than another on it")


def _batches(models: Iterable[Any], learnt: FittedNames) -> Iterator[Any]:
    """Distributions of the sentences of each model."""
    for model in models:
        yield model.batch(learnt.weights, np.arange(len(model)))


def _shortened(entities: tuple[Entity, ...], longest: int) -> list[Entity]:
    """Names that are too long for a segment, cut into several: the model sees at least where they begin."""
    return [
        (at, min(at + longest, end), kind) for begin, end, kind in entities for at in range(begin, end, longest)
    ]  # fmt: skip


def _rows(segments: Any, n: int, longest: int, start: int) -> NDArray[np.int64]:
    """Where segments are among all spans of a sentence, by their first word and then by their length."""
    counts = np.minimum(n - np.arange(n), longest)
    before = np.cumsum(counts) - counts
    return np.array([start + before[begin] + end - begin - 1 for begin, end, _ in segments], np.int64)


def _chances(names: list[Entity], posteriors: NDArray[np.float64], labels: NameLabels) -> list[float]:
    return [float(posteriors[begin, end - begin - 1, labels.types.index(kind)]) for begin, end, kind in names]
