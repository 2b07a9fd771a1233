r"""Names of a language without annotation, learnt over the links of a bitext whose source side has a tagger.

Hard projection takes the names of the source side for certain and each link too: what is not linked is no name. With
expectations, a source word i is in a name of type X with probability :math:`m_i(X)`, is linked with the target word t
with probability :math:`a_{it}`, and posteriors of the target model are asked for

.. math:: E_q[y_t \text{ is of type } X] \ge \sum_i a_{it}\, m_i(X) \Big/ \max\Big(1, \sum_i a_{it}\Big)

and likewise for words outside of names; what is missing costs its square (posterior regularisation). Words that are
not linked are asked for nothing, so that the model decides about them. A tagger then learns from the names that are
probable under these posteriors.

References
----------
Wang and Manning, Cross-lingual Projected Expectation Regularization for Weakly Supervised Learning, TACL 2014. We
differ: expectations are lower bounds of posterior regularisation (Ganchev, Gillenwater and Taskar, ACL 2009) in place
of squared distances of the model's own expectations, there is no model of noise, and what is kept is a tagger that
learns from the posteriors' names rather than the field itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Bitext
from isogloss.data.formats.convert import as_mentions
from isogloss.data.links import Links
from isogloss.data.mentions import Entity, Mentions
from isogloss.data.sentence_pairs import SentencePairs
from isogloss.engine.threads import using_threads
from isogloss.errors import BitextError, MentionsError, ParameterError
from isogloss.features import Templates
from isogloss.learners.chain_model import ChainModel, LabelPairs, NodeFeatures
from isogloss.learners.posterior.features import Features
from isogloss.learners.posterior.project import Projection, regularise
from isogloss.learners.posterior.smooth import squared_hinge
from isogloss.learners.posterior.together import Together
from isogloss.learners.runner import run
from isogloss.learners.semi_supervised import Alternating
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.chain import Chain
from isogloss.tasks.extract.entities import EntityTagger
from isogloss.tasks.extract.features import WORD_TEMPLATES, seen_words
from isogloss.tasks.extract.labels import NameLabels
from isogloss.tasks.extract.names import chosen_names, name_posteriors
from isogloss.tasks.joint.views.candidates import link_grids
from isogloss.tasks.transfer.names_options import ProjectedNamesOptions

__all__ = ["WantedNames", "carried_names", "carried_types", "expected_names", "project_names", "types_of_words"]

Array = NDArray[np.float64]
CLIMBS = 10
"""Steps of L-BFGS after each projection."""
PIECE = 500
"""Pairs whose links and names are in memory together."""


def types_of_words(posteriors: Array) -> Array:
    """float64[n, n_types + 1]: how probable each word is to be outside of names, and in one of each type.

    posteriors : float64[n, longest, n_types]
        Posteriors of spans, by their first word and their length less 1; see `EntityTagger.predict_proba`.

    >>> types_of_words(np.array([[[0.25], [0.5]], [[0.125], [0.0]]])).tolist()
    [[0.25, 0.75], [0.375, 0.625]]
    """
    n, longest, n_types = posteriors.shape
    out = np.zeros((n, n_types + 1))
    for length in range(1, min(n, longest) + 1):
        for word in range(length):
            out[word : n - length + 1 + word, 1:] += posteriors[: n - length + 1, length - 1]
    out[:, 0] = np.maximum(0.0, 1.0 - out[:, 1:].sum(axis=1))
    return out


def carried_types(types: Array, links: Array) -> Array:
    """float64[n_target, n_types + 1]: what arrives at each target word over probabilities of links.

    >>> carried_types(np.array([[0.25, 0.75], [1.0, 0.0]]), np.array([[0.5, 0.0], [0.0, 0.0]])).tolist()
    [[0.125, 0.375], [0.0, 0.0]]
    """
    arrived = np.einsum("st,sk->tk", links, types)  # not by BLAS, which sums in another order on other threads
    return np.asarray(arrived / np.maximum(1.0, links.sum(axis=0))[:, None])


def carried_names(names: list[Entity], links: list[tuple[int, int]]) -> list[Entity]:
    """Source names on the target side: from the first to the last word that is linked to one of them.

    Where names would overlap, the first is kept.

    >>> carried_names([(0, 2, "PER"), (3, 4, "LOC")], [(0, 1), (1, 3), (3, 2), (4, 0)])
    [(1, 4, 'PER')]
    """
    found: list[Entity] = []
    for begin, end, kind in names:
        words = [target for source, target in links if begin <= source < end]
        if words and all(max(words) < b or e <= min(words) for b, e, _ in found):
            found.append((min(words), max(words) + 1, kind))
    return sorted(found)


@dataclass(frozen=True, eq=False)
class WantedNames:
    r"""What posteriors of tags are asked for, :math:`R(q) = \frac{\sigma}{2} \sum (least - E_q)_+^2`.

    Parameters
    ----------
    least : float64[n_words, n_types + 1]
        For each word outside of names, and in a name of each type.
    strength : float
        σ.
    faint : float
        What is less is not asked for.
    """

    least: Array
    strength: float
    faint: float

    @cached_property
    def _asked(self) -> tuple[Features, Array]:
        used = self.least > self.faint
        numbers = np.where(used, np.cumsum(used.ravel()).reshape(used.shape) - 1, -1)
        tags = np.concatenate([[0], np.repeat(np.arange(1, self.least.shape[1]), 2)])  # O, and B and I of each type
        index = numbers[:, tags].ravel()
        return Features.indexed(index, int(used.sum()), np.full(len(index), -1.0)), -self.least[used]

    def project(self, text: Together, start: Array | None = None) -> Projection[Together]:
        """The nearest distribution that pays least; `text` holds the chains of all sentences."""
        features, bound = self._asked
        return regularise(text, features, squared_hinge(bound, self.strength), tolerance=1e-3, steps=20, start=start)


def project_names(
    bitext: Bitext,
    source: EntityTagger,
    *,
    links: Links | None = None,
    aligner: Any = None,
    progress: Progress | None = None,
    **options: Any,
) -> EntityTagger:
    """A tagger of names for the target language of a bitext.

    Parameters
    ----------
    bitext : Bitext
    source : EntityTagger
        A tagger of the source language.
    links : Links, optional
        Between words, with probabilities if there are any; otherwise those of the aligner.
    aligner : HMMAligner, optional
        One that has learnt; without it and without links, one learns from the bitext.
    progress : Progress, optional
    **options
        See `ProjectedNamesOptions`.

    Returns
    -------
    EntityTagger
        Saved and applied like all others.

    Examples
    --------
    >>> from isogloss.data import Mentions
    >>> english = Mentions.of([("Ada left London".split(), [(0, 1, "PER"), (2, 3, "LOC")])] * 5)
    >>> bitext = Bitext.of([("Ada left London", "Ada verließ London"), ("Ada left Rome", "Ada verließ Rom")] * 5)
    >>> links = Links.of([[(0, 0), (1, 1), (2, 2)]] * 10)
    >>> german = project_names(bitext, EntityTagger(iterations=5).fit(english), links=links)
    >>> print(german.predict(bitext.target)[0])
    [Ada PER] verließ [London LOC]
    """
    asked = ProjectedNamesOptions(**options)
    asked.check_params()
    if not isinstance(source, EntityTagger):
        raise ParameterError(f"project_names: the source model should be an EntityTagger, not {source!r:.60}")
    pairs = SentencePairs(bitext.source, bitext.target, links)
    if not bitext.target.n_words:
        raise BitextError(f"{bitext.target.name}: there are no words, so there is nothing to learn from")
    progress = progress or QuietProgress()
    with using_threads(asked.threads):
        if links is None and aligner is None:
            from isogloss.tasks.align import HMMAligner

            aligner = HMMAligner(threads=asked.threads).fit(bitext, progress=progress)
        learn = _from_names if asked.method == "hard" else _from_expectations
        return learn(pairs, source, aligner, asked, progress)


def _from_names(
    pairs: SentencePairs, source: EntityTagger, aligner: Any, asked: ProjectedNamesOptions, progress: Progress
) -> EntityTagger:
    bitext = pairs.bitext()
    links = aligner.predict(bitext) if pairs.links is None else pairs.links
    names = source.predict(bitext.source)
    found = [carried_names(list(names.entities(s)), sorted(links[s].links)) for s in range(len(bitext))]
    return _tagger_of(as_mentions(bitext.target).with_entities(found), asked, progress)


def _from_expectations(
    pairs: SentencePairs, source: EntityTagger, aligner: Any, asked: ProjectedNamesOptions, progress: Progress
) -> EntityTagger:
    bitext = pairs.bitext()
    wanted = WantedNames(_expected(pairs, source, aligner, progress), float(asked.strength), float(asked.faint))
    text = as_mentions(bitext.target)
    names, _ = expected_names(text, source.types_, wanted, asked, source.longest_, progress)
    return _tagger_of(text.with_entities(names), asked, progress)


def _tagger_of(text: Mentions, asked: ProjectedNamesOptions, progress: Progress) -> EntityTagger:
    if not text.n_entities:
        lower = ", or a lower threshold" if asked.method == "expectations" else ""
        raise MentionsError(
            f"{text.name}: no name arrived over the links, so there is nothing to learn. Are both texts in the right "
            f"order, and does the source model find names in the first one? If so, take more text{lower}"
        )
    return EntityTagger(threads=asked.threads).fit(text, None, progress)


def expected_names(
    text: Mentions, types: tuple[str, ...], wanted: WantedNames, asked: ProjectedNamesOptions, longest: int,
    progress: Progress | None = None,
) -> tuple[list[list[Entity]], Array]:  # fmt: skip
    """Names by the posteriors of a field that is learnt from what is asked of them, and its objective after each step.

    The field is a chain over tags with all attributes of words, in which no name begins right behind another of its
    type: where one ends would be anybody's guess.
    """
    labels = NameLabels(types)
    parts, templates = seen_words(text, tags=False).words(), Templates(WORD_TEMPLATES, kind="word")
    attributes = templates.matrix(parts, templates.index(parts, min_count=asked.min_count))
    features = NodeFeatures(attributes, LabelPairs.all(attributes.n_indicators, labels.n_tags))
    model = ChainModel(features, text.lengths, moves=labels.moves(apart=True))
    learner = Alternating(model, model, wanted.project, l2=float(asked.l2), climbs=CLIMBS)
    found = run(learner, learner.init(), iterations=asked.iterations, progress=progress, name="Learning names")
    last: Any = wanted.project(Together([model.distributions(found.state.weights)]), found.state.start)
    chains, names = last.q.members[0], []
    for start in range(0, len(chains), PIECE):
        some = Chain.batch([chains[s].chain.scores for s in range(start, min(start + PIECE, len(chains)))])
        names += chosen_names(name_posteriors(some, longest), float(asked.threshold), labels)
    return names, np.asarray(found.trace)


def _expected(pairs: SentencePairs, source: EntityTagger, aligner: Any, progress: Progress) -> Array:
    """What is asked of the words of all target sentences."""
    rows = [np.zeros((0, len(source.types_) + 1))]
    progress.start("Carrying names", len(pairs))
    for start in range(0, len(pairs), PIECE):
        some = pairs.take(np.arange(start, min(start + PIECE, len(pairs))))
        grids = link_grids(some, aligner)
        for own, grid in zip(source.predict_proba(some.source), grids, strict=True):  # type: ignore[arg-type]
            rows.append(carried_types(types_of_words(own), grid))
        progress.update(start + len(some))
    return np.concatenate(rows)
