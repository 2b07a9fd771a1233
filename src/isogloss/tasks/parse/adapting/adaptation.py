"""`ParserAdaptation`: a parser that learns from a treebank, and from text of the domain that it is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from isogloss.data.bitext import Text
from isogloss.data.formats import as_gold, as_treebank
from isogloss.data.joining import join_treebanks
from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError, TreebankError
from isogloss.progress import Progress
from isogloss.tasks.parse.adapting.bagging import bagged, bags_of, surest
from isogloss.tasks.parse.adapting.options import WITH_TAGS, AdaptationOptions
from isogloss.tasks.parse.focus import Focus
from isogloss.tasks.parse.views import View

if TYPE_CHECKING:
    from isogloss.tasks.parse.parser import DependencyParser

__all__ = ["ParserAdaptation"]


class _Lesson(NamedTuple):
    """What a parser is told besides its options."""

    treebank: Treebank
    focus: Focus | None = None
    views: tuple[View, ...] = ()


class ParserAdaptation(AdaptationOptions):
    """Ways to make a parser that learns in one domain better in another, of which there is only text.

    Each changes what `DependencyParser.fit` is given, and nothing else: sentences, words or features that count more
    (`Focus`), classes of words or links of another parser as further features (`View`), or sentences that parsers have
    labelled. The result is an ordinary parser. None of them closes a gap that comes from other guidelines, and with
    much data and a parser of order 2 most do nothing (docs/adapt-parser.md): measure.

    Parameters
    ----------
    method : str
        One of `isogloss.tasks.parse.adapting.options.METHODS`.
    classes, word_count, pivot_count : int
        Of classes of words.
    folds, bags, bag_size : int
        Of parsers that label for others.
    share, weight : float
        Of self-training.
    form : "log" or "frequency"
        Of word-weights, which needs a parser with trainer "mira" or "risk".
    seed : int

    References
    ----------
    Dredze, Blitzer, Talukdar, Ganchev, Graça and Pereira, Frustratingly Hard Domain Adaptation for Dependency Parsing,
    EMNLP-CoNLL 2007.

    Examples
    --------
    >>> from isogloss.tasks.parse import DependencyParser
    >>> trees = Treebank.of([[("she", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root")]] * 5)
    >>> text = Treebank.of([[("he", "PRON"), ("eats", "VERB")]] * 5)
    >>> adaptation = ParserAdaptation("brown", classes=2)
    >>> parser = adaptation.adapt(DependencyParser(order=1, iterations=3), trees, text)
    >>> parser.predict(text[:1]).heads.tolist()
    [2, 0]
    """

    def adapt(
        self,
        parser: DependencyParser,
        treebank: Treebank,
        unlabelled: Treebank | Text,
        dev: Treebank | None = None,
        progress: Progress | None = None,
    ) -> DependencyParser:
        """Let a parser learn from a treebank, adapted to a text; the parser itself is returned.

        Parameters
        ----------
        parser : DependencyParser
            What it has learnt before is forgotten.
        treebank : Treebank
        unlabelled : Treebank or Text
            Of the new domain; trees in it are not looked at. Some methods need tags, unless the parser predicts them.
        dev : Treebank, optional
            To choose the number of passes by.
        """
        self.check_params()
        parser.check_params()
        treebank, text = as_gold(treebank), as_treebank(unlabelled)
        if not text.n_words:
            raise TreebankError(f"{text.name}: there are no words in it, so there is nothing to adapt to")
        if self.method == "word-weights" and parser.trainer not in ("mira", "risk"):
            raise ParameterError(
                "ParserAdaptation: word-weights weigh losses of words, which likelihood does not have. Take a parser "
                "with trainer 'mira' or 'risk'"
            )
        if self.method in WITH_TAGS:
            text = _tagged(parser, treebank, text, progress)
        lesson = _WAYS[self.method](self, parser, treebank, text, progress)
        return parser.fit(lesson.treebank, dev, progress, focus=lesson.focus, views=lesson.views)


def _tagged(parser: DependencyParser, treebank: Treebank, text: Treebank, progress: Progress | None) -> Treebank:
    """The text with the tags that it has or, for a parser that predicts tags, those of a tagger."""
    if parser.tags == "predicted":
        from isogloss.tasks.parse.words import columns_of
        from isogloss.tasks.tag import Tagger

        found = columns_of(treebank)
        names = [found.tag] + (["xpos"] if found.fine == "xpos" else []) + (["feats"] if found.attributes else [])
        return Tagger(names, seed=parser.seed, threads=parser.threads).fit(treebank, None, progress).predict(text)
    ids, vocabulary = text.columns["upos" if _has(treebank, "upos") else "xpos"]
    if vocabulary.index_of("_") >= 0 and (ids == vocabulary.index_of("_")).all():
        raise TreebankError(
            f"{text.name}: no word has a tag, and this way to adapt looks at tags. Tag the text first (isogloss tag "
            "apply), or train with --tags predicted"
        )
    return text


def _has(treebank: Treebank, column: str) -> bool:
    ids, vocabulary = treebank.columns[column]
    return not (vocabulary.index_of("_") >= 0 and bool((ids == vocabulary.index_of("_")).all()))


# --- the methods ------------------------------------------------------------------------------------------------------

Way = Callable[[ParserAdaptation, Any, Treebank, Treebank, Progress | None], _Lesson]


def _brown(own: ParserAdaptation, parser: Any, treebank: Treebank, text: Treebank, progress: Any) -> _Lesson:
    from isogloss.tasks.parse.adapting.classes import brown_view

    return _Lesson(treebank, views=(brown_view([treebank, text], own.classes, least=own.word_count),))


def _markov(own: ParserAdaptation, parser: Any, treebank: Treebank, text: Treebank, progress: Any) -> _Lesson:
    from isogloss.tasks.parse.adapting.classes import markov_view

    made = markov_view([treebank, text], own.classes, least=own.word_count, seed=own.seed, progress=progress)
    return _Lesson(treebank, views=(made,))


def _correspondence(own: ParserAdaptation, parser: Any, treebank: Treebank, text: Treebank, progress: Any) -> _Lesson:
    from isogloss.tasks.parse.adapting.classes import correspondence_view

    given: dict[str, Any] = {"pivot_count": own.pivot_count, "seed": own.seed, "progress": progress}
    return _Lesson(treebank, views=(correspondence_view(treebank, text, own.classes, **given),))


def _stacking(own: ParserAdaptation, parser: Any, treebank: Treebank, text: Treebank, progress: Any) -> _Lesson:
    """A first-order parser with margins: another order, other losses, other errors."""
    from isogloss.tasks.parse.adapting.stacking import OtherParser

    options = {name: getattr(parser, name) for name in ("projective", "single_root", "seed", "threads")}
    other = type(parser)(order=1, trainer="mira", labels="second", **options)
    return _Lesson(treebank, views=(OtherParser(other, own.folds),))


def _bagging(own: ParserAdaptation, parser: Any, treebank: Treebank, text: Treebank, progress: Any) -> _Lesson:
    bags = bags_of(len(treebank), own.bags, min(own.bag_size, len(treebank)), own.seed)
    return _Lesson(bagged(parser, treebank, bags, own.seed, progress))


def _self_training(own: ParserAdaptation, parser: Any, treebank: Treebank, text: Treebank, progress: Any) -> _Lesson:
    first = type(parser)(**parser.get_params()).fit(treebank, progress=progress)
    more = surest(first, text, own.share)
    counts = np.repeat([1.0, float(own.weight)], [len(treebank), len(more)])
    return _Lesson(join_treebanks([treebank, more]), Focus(counts))


def _domain_weights(own: ParserAdaptation, parser: Any, treebank: Treebank, text: Treebank, progress: Any) -> _Lesson:
    from isogloss.tasks.parse.adapting.weighting import domain_weights

    return _Lesson(treebank, Focus(domain_weights(treebank, text, seed=own.seed)))


def _word_weights(own: ParserAdaptation, parser: Any, treebank: Treebank, text: Treebank, progress: Any) -> _Lesson:
    from isogloss.tasks.parse.adapting.weighting import word_weights

    return _Lesson(treebank, Focus(words=word_weights(treebank, text, form=own.form)))


def _feature_weights(own: ParserAdaptation, parser: Any, treebank: Treebank, text: Treebank, progress: Any) -> _Lesson:
    from isogloss.tasks.parse.adapting.weighting import feature_scales, target_counts

    return _Lesson(treebank, Focus(features=feature_scales(target_counts(parser, treebank, text))))


def _target_features(own: ParserAdaptation, parser: Any, treebank: Treebank, text: Treebank, progress: Any) -> _Lesson:
    from isogloss.tasks.parse.adapting.weighting import feature_scales, target_counts

    return _Lesson(treebank, Focus(features=feature_scales(target_counts(parser, treebank, text), soft=False)))


def _no_noun_words(own: ParserAdaptation, parser: Any, treebank: Treebank, text: Treebank, progress: Any) -> _Lesson:
    from isogloss.tasks.parse.adapting.weighting import between_nouns

    return _Lesson(treebank, Focus(features=between_nouns(parser, treebank)))


_WAYS: Mapping[str, Way] = {
    "brown": _brown,
    "markov": _markov,
    "correspondence": _correspondence,
    "stacking": _stacking,
    "bagging": _bagging,
    "self-training": _self_training,
    "domain-weights": _domain_weights,
    "word-weights": _word_weights,
    "feature-weights": _feature_weights,
    "target-features": _target_features,
    "no-noun-words": _no_noun_words,
}
