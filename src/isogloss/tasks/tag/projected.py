"""`ProjectedTagger`: a tagger from a bitext whose source side is tagged, with or without a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Bitext, Text
from isogloss.data.links import Links
from isogloss.data.tag_dictionary import TagDictionary
from isogloss.data.tagsets import retagged, tagset_of
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import BitextError, TreebankError
from isogloss.estimator import option
from isogloss.layout import check, vector
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.tag.base import LABELS, ColumnTagger, as_treebank
from isogloss.tasks.tag.dictionary import Emitting, emitting_arrays, emitting_of, used_types
from isogloss.tasks.tag.emissions import WordFeatures
from isogloss.tasks.tag.hmm import TokenLabels, fit_hmm
from isogloss.tasks.tag.latent import LatentCrf
from isogloss.tasks.tag.options import ProjectedOptions
from isogloss.tasks.tag.projection import Constraints, Projected, carried, constraints, expectations, first_words

__all__ = ["ProjectedTagger"]

DICTIONARY = "dictionary."
"""Before the names of a dictionary's arrays in a saved model."""


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What was learnt."""

    labels: tuple[str, ...]
    model: LatentCrf | Emitting


class ProjectedTagger(ProjectedOptions, ColumnTagger):
    r"""Tags words of a language without tagged text, from links to a language that has a tagger.

    Two kinds of evidence say which tags a word of the bitext may have. *Types*: a word form has the tags of its
    dictionary entry; without one, those that reach it along links in at least `type_share` of the cases. *Tokens*: a
    word linked with probability `threshold` or more to a word whose tag its form may have keeps that tag alone. The
    tagger maximises the probability of what is allowed,

    .. math:: \sum_x \log \sum_{y \in Y(x)} p(y \mid x) \quad\text{or}\quad \sum_x \log \sum_{y \in Y(x)} p(x, y),

    as a conditional random field (`learner` "crf") or a hidden Markov model with features of words ("hmm").

    Parameters
    ----------
    dictionary : TagDictionary, optional
        Tags are then those of its set, and source tags are brought into that.
    learner : "crf" or "hmm"
    order : int
        Tags before a word's own that its score looks at: 1 or 2.
    threshold : float
        Least probability of a link that decides on the tag of a word.
    type_share : float
        Tags that reach a form less often than this are left out.
    doubt : float
        Dictionary entries whose tags get a smaller share than this of what links carry to them (of five or more) gain
        the tags that do reach them: a dictionary may lack a use, or have conventions of its own.
    soft : bool
        Links decide nothing: posteriors are asked to give a projected tag at least the probability of its link,
        :math:`E_q[y_t = tag] \ge p(link)`, and pay where they do not (posterior regularisation).
    strength : float
        What they pay, with `soft`.
    l2 : float
        Penalty on the field's weights; of the Markov model's, where it is 1 / variance.
    iterations : int
        Steps of L-BFGS, or of EM.
    min_count : int
        Attributes of words that are met less often are left out of the field.
    column : str
        Of the source treebank, and what is predicted.
    seed : int
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    trace_ : float64[n_steps]
        The objective, after each step; it never falls (with `soft`, as far as projections converge).
    evidence_ : dict
        How many words links decide, how many forms have a set of tags, and how many tags a word has on average.

    References
    ----------
    Täckström, Das, Petrov, McDonald and Nivre, Token and Type Constraints for Cross-Lingual Part-of-Speech Tagging,
    TACL 2013. Li, Graça and Taskar, EMNLP 2012 (the Markov model). Ganchev, Gillenwater and Taskar, Dependency Grammar
    Induction via Bitext Projection Constraints, ACL 2009 (expectations in place of projected structure).

    Examples
    --------
    >>> bitext = Bitext.of([("the house", "das Haus"), ("the dog sleeps", "der Hund schläft")] * 4)
    >>> house, dog = [("the", "DET"), ("house", "NOUN")], [("the", "DET"), ("dog", "NOUN"), ("sleeps", "VERB")]
    >>> tagged = Treebank.of([house, dog] * 4)
    >>> links = Links.of([[(0, 0), (1, 1)], [(0, 0), (1, 1), (2, 2)]] * 4)
    >>> tagger = ProjectedTagger().fit(bitext, tagged, links=links)
    >>> tagger.predict(Text.of(["das Haus schläft"])).strings("upos", 0)
    ('DET', 'NOUN', 'VERB')
    """

    _kind: ClassVar[str] = "tag.projected"
    dictionary: TagDictionary | None = option(
        default=None, kind=TagDictionary, kw_only=False, kept=False, help="The tags that words may have, beside links."
    )

    def __repr__(self) -> str:
        return f"ProjectedTagger({self.dictionary!r}, learner={self.learner!r}, order={self.order})"

    # --- learning

    def fit(
        self,
        bitext: Bitext,
        source: Treebank,
        *,
        links: Links | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from a bitext.

        Parameters
        ----------
        bitext : Bitext
        source : Treebank
            The source side, with tags: the same words, sentence by sentence.
        links : Links, optional
            With probabilities; otherwise those that `HMMAligner` finds in the bitext.
        progress : Progress, optional
        """
        self.check_params()
        progress = progress or QuietProgress()
        text = Treebank.from_text(bitext.target)
        if not text.n_words:
            raise BitextError(
                f"{bitext.target.name}: there are no words, so there is nothing to learn from. Is it the right file?"
            )
        labels, tagged = self._labels(source)
        first_words(bitext, source)  # says what does not fit before links are looked for, which may take long
        if links is None:
            links = self._linked(bitext, progress)
        projected = carried(bitext, links, tagged, labels, self.column)
        ids, vocabulary = text.columns["form"]
        found = constraints(
            ids,
            vocabulary.types,
            labels,
            dictionary=self.dictionary,
            projected=projected,
            threshold=2.0 if self.soft else self.threshold,
            share=self.type_share,
            doubt=self.doubt,
        )
        self._lexicon = _widened(self.dictionary, vocabulary.types, labels, found.gained)
        self.evidence_ = _evidence(found, projected, self.threshold)
        with using_threads(self.threads):
            learn = self._learn_field if self.learner == "crf" else self._learn_markov
            model, self.trace_ = learn(text, found, projected, progress)
        self._fitted = _Fitted(labels, model)
        self._remember(text)
        return self

    def _labels(self, source: Treebank) -> tuple[tuple[str, ...], Treebank]:
        """The tags that are predicted, and the source with tags among them."""
        ids, vocabulary = source.columns[self.column]
        used = {vocabulary[i] for i in np.unique(ids).tolist()} - {"_"}
        if not used:
            raise TreebankError(
                f"{source.name}: no word has a tag in column {self.column}. Tag it first: isogloss tag apply MODEL TEXT"
            )
        if self.dictionary is None:
            known = tagset_of(used) if self.column == "upos" else None
            return tuple(sorted(used, key=(known.tags if known else sorted(used)).index)), source
        named = tagset_of(self.dictionary.tags)
        if named is None or self.column != "upos":
            if not used & set(self.dictionary.tags):
                raise TreebankError(
                    f"{source.name}: none of its tags ({_some(used)}) is one of the dictionary's "
                    f"({_some(self.dictionary.tags)}), so links carry nothing. Bring both into one set of tags, or "
                    "leave one of them out"
                )
            return self.dictionary.tags, source
        return self.dictionary.tags, retagged(source, named.name, self.column, keep_untagged=True)

    def _linked(self, bitext: Bitext, progress: Progress) -> Links:
        from isogloss.tasks.align import HMMAligner

        return HMMAligner(threads=self.threads).fit_predict(bitext, progress=progress)

    def _learn_field(
        self, text: Treebank, found: Constraints, projected: Projected, progress: Progress
    ) -> tuple[LatentCrf, NDArray[np.float64]]:
        wanted = expectations(projected, found, self.strength) if self.soft else None
        return LatentCrf.learn(
            text,
            found.words,
            order=self.order,
            l2=self.l2,
            iterations=self.iterations,
            min_count=self.min_count,
            wanted=wanted,
            progress=progress,
        )

    def _learn_markov(
        self, text: Treebank, found: Constraints, projected: Projected, progress: Progress
    ) -> tuple[Emitting, NDArray[np.float64]]:
        types, ids = used_types(text)
        shares = found.types[text.columns["form"].vocabulary.encode(types)].astype(np.float64)
        features = WordFeatures.learnt(types.types, np.bincount(ids, minlength=len(types)))
        fit = fit_hmm(
            ids,
            text.offsets,
            found.words,
            features.matrix(types.types),
            n_types=len(types),
            order=self.order,
            iterations=self.iterations,
            variance=10.0 / self.l2,
            initial=(shares / shares.sum(axis=1, keepdims=True)).T,
            seed=self.seed,
            project=expectations(projected, found, self.strength).within(found.words).project if self.soft else None,
            progress=progress,
        )
        return Emitting.of(fit, types, features), fit.trace

    # --- predicting

    @property
    def labels_(self) -> tuple[str, ...]:
        """What can be predicted."""
        labels: tuple[str, ...] = self._learnt.labels
        return labels

    def _allowed(self, treebank: Treebank) -> NDArray[np.bool_]:
        """bool[n_words, k]: what the dictionary allows; words that it does not know may be anything."""
        ids, vocabulary = treebank.columns["form"]
        if self._lexicon is None:
            return np.ones((len(ids), len(self.labels_)), np.bool_)
        return np.asarray(self._lexicon.allowed(vocabulary.types, self.labels_, fold_case="both")[ids])

    def predict_proba(self, treebank: Treebank | Text) -> NDArray[np.float64]:
        """float64[n_words, n_labels]: the posterior of each of `labels_` for each word of all sentences."""
        treebank = as_treebank(treebank)
        model, allowed = self._learnt.model, self._allowed(treebank)
        with using_threads(self.threads):
            if isinstance(model, LatentCrf):
                return np.asarray(model.chains(treebank, allowed).marginals().values.reshape(-1, model.k))
            ids, vocabulary = treebank.columns["form"]
            labelled = TokenLabels(ids, treebank.offsets, allowed)
            return np.asarray(model.over(vocabulary.types).posterior(labelled))

    def explain(
        self, treebank: Treebank | Text, sentence: int, word: int, *, rival: str | None = None
    ) -> dict[str, Any]:
        """Why a word gets its tag: what the dictionary allows and, of a field, what each attribute adds; plain data."""
        found = self._compare(treebank, sentence, word, rival)
        form, model, entry = found.said["word"], self._learnt.model, None
        if self._lexicon is not None and self._lexicon.known([form])[0]:
            entry = [self.labels_[y] for y in np.flatnonzero(self._allowed(found.sentence)[word]).tolist()]
        attributes = []
        if isinstance(model, LatentCrf):
            attributes = model.reasons(found.sentence, word, found.chosen, found.other)
        return {**found.said, "dictionary": entry, "attributes": attributes}

    # --- keeping

    def to_meta(self) -> dict[str, Any]:
        """What else is remembered, for `isogloss.store`."""
        return {"trace": self.trace_.tolist(), "evidence": self.evidence_}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What was learnt, for `isogloss.store`."""
        learnt = self._learnt
        blob, offsets = store.pack_strings(learnt.labels)
        arrays: dict[str, NDArray[Any]] = {"labels": blob, "label_offsets": offsets}
        arrays |= learnt.model.to_arrays() if isinstance(learnt.model, LatentCrf) else emitting_arrays(learnt.model)
        if self._lexicon is not None:
            arrays |= store.prefixed(DICTIONARY, self._lexicon.to_arrays())
        return arrays

    def _restore(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        labels = tuple(check(arrays, LABELS, "the tags of the saved tagger")["labels"])
        kept = store.unprefixed(DICTIONARY, arrays)
        self.dictionary = self._lexicon = TagDictionary.from_arrays(kept) if kept else None
        if self.learner == "crf":
            model: LatentCrf | Emitting = LatentCrf.from_arrays(arrays, len(labels), self.order)
        else:
            model = emitting_of(arrays, len(labels), self.order, "paper")
        self._fitted = _Fitted(labels, model)
        self.trace_, self.evidence_ = vector(meta["trace"], "trace"), dict(meta["evidence"])


def _widened(
    dictionary: TagDictionary | None, types: Sequence[str], labels: tuple[str, ...], gained: NDArray[np.bool_]
) -> TagDictionary | None:
    """The dictionary with the tags that its entries gained."""
    if dictionary is None or not gained.any():
        return dictionary
    changed = [types[x] for x in np.flatnonzero(gained.any(axis=1)).tolist()]
    tags = dictionary.allowed(changed, labels, fold_case="both") | gained[gained.any(axis=1)]
    fresh = [(word, labels[y]) for word, row in zip(changed, tags, strict=True) for y in np.flatnonzero(row).tolist()]
    pairs = ((word, tag) for word, listed in dictionary.items() for tag in listed)
    return TagDictionary.of([*pairs, *fresh], None if dictionary.tagset is None else dictionary.tagset.name)


def _some(tags: Iterable[str], most: int = 5) -> str:
    """Their names, of many only the first."""
    names = sorted(tags)
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def _evidence(found: Constraints, projected: Projected, threshold: float) -> dict[str, Any]:
    n = max(1, len(found.words))
    return {
        "linked": int((projected.labels >= 0).sum()),
        "sure": int(projected.sure(threshold).sum()),
        "decided": int(found.decided.sum()),
        "words": len(found.words),
        "types_known": int(found.known.sum()),
        "types": len(found.known),
        "tags_a_word": float(found.words.sum() / n),
    }
