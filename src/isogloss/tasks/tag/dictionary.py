"""`DictionaryTagger`: a tagger from text without tags and a dictionary that says which tags words may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.tag_dictionary import TagDictionary
from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError, TreebankError, UsageError
from isogloss.estimator import option
from isogloss.layout import Layout, Numbers, Strings, check, vector
from isogloss.progress import Progress
from isogloss.tasks.tag.base import ColumnTagger, as_treebank
from isogloss.tasks.tag.emissions import FEATURES, WordFeatures
from isogloss.tasks.tag.hmm import Hmm, HmmFit, TokenLabels, fit_hmm
from isogloss.tasks.tag.options import DictionaryOptions

__all__ = ["DictionaryTagger", "Emitting", "emitting_arrays", "emitting_of", "guessed", "used_types"]

Array = NDArray[np.float64]
PREFIX = "dictionary."
"""Of the names of the dictionary's arrays in a saved model."""


@dataclass(frozen=True, eq=False)
class Emitting:
    """A hidden Markov model with its words: what scores any text, new words too.

    Parameters
    ----------
    model : Hmm
    types : Vocabulary
        Of the text that it has learnt from, in the order of the columns of `model.emissions`.
    features : WordFeatures, optional
        With weights float64[k, n_features] and normalisers float64[k]; without, emissions are tables.
    """

    model: Hmm
    types: Vocabulary
    features: WordFeatures | None = None
    weights: Array | None = None
    normalisers: Array | None = None

    @classmethod
    def of(cls, fit: HmmFit, types: Vocabulary, features: WordFeatures | None) -> Emitting:
        """What `fit_hmm` has learnt of a text with these types."""
        return cls(fit.model, types, features, fit.weights, fit.normalisers)

    def emissions(self, types: Sequence[str]) -> Array:
        r"""float64[k, n_types]: log p(x|y) of any types.

        A new word is scored by its features as if it were one more type, :math:`e^{s} / (Z_y + e^{s})`; without
        features, all tags are as likely to emit it.
        """
        numbers = self.types.encode(types)
        out = np.zeros((self.model.k, len(numbers)))
        seen = numbers >= 0
        out[:, seen] = self.model.emissions[:, numbers[seen]]
        if self.features is None or self.weights is None or self.normalisers is None or seen.all():
            return out
        fresh = np.flatnonzero(~seen)
        scores = (self.features.matrix([types[i] for i in fresh.tolist()]) @ self.weights.T).T
        out[:, fresh] = scores - np.logaddexp(self.normalisers[:, None], scores)
        return out

    def over(self, types: Sequence[str]) -> Hmm:
        """The model of a text with these types."""
        return Hmm(self.model.transitions, self.emissions(types))


class DictionaryTagger(DictionaryOptions, ColumnTagger):
    r"""Tags words by a hidden Markov model that has never seen a tagged sentence.

    .. math:: p(x, y) = \prod_t p(y_t \mid y_{t-1}, y_{t-2})\, p(x_t \mid y_t), \qquad
        p(x \mid y) \propto \exp(\lambda_y \cdot f(x))

    is learnt by EM from raw text, where a word of the dictionary may have only the tags of its entry, and other words
    all. `order` and `emissions` give the four models of the paper: HMM (1, "table"), SHMM (2, "table"), HMM-ME (1,
    "features") and SHMM-ME (2, "features"). Its settings are ``start="random", features="paper", iterations=50,
    first_order=0``; the defaults are ours, and better.

    Parameters
    ----------
    dictionary : TagDictionary
        Needed to `fit`; a model that is loaded brings its own.
    column : str
        Where predicted tags are put.
    order : 1 or 2
        Tags before a word's own that it depends on.
    emissions : "features" or "table"
    features : str or sequence of str
        "paper", "rich", or templates of `isogloss.tasks.tag.emissions.WordFeatures`.
    iterations : int
        Of EM, or of L-BFGS. Few are enough, and more make tags drift away from what the dictionary means by them.
    first_order : int
        How many of these, at order 2, are those of a model of order 1, as which it begins.
    variance : float
        Of the Gaussian prior on the weights of features.
    restrict_support : bool
        Normalise p(x|y) over words that may have tag y, not over all.
    smoothing : float
        Added to counts of transitions.
    decoder : "marginal" or "viterbi"
        The most probable tag of each word, or the most probable sequence.
    rules : bool
        Punctuation marks and numerals that have no entry may only be that.
    start : "dictionary" or "random"
        Where learning begins. "dictionary": a known word's tags are equally likely, and an unknown word has those of
        entries with the same ending (`guessed`). "random": emissions are random, as in the paper.
    method : "em" or "gradient"
        "gradient": L-BFGS on the likelihood of the text itself.
    seed : int
        Of the random emissions to begin with.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    trace_ : float64[n_steps]
        Log-likelihood of the text and log priors, which never fall; at order 2, of the steps of order 2.

    References
    ----------
    Li, Graça and Taskar, Wiki-ly Supervised Part-of-Speech Tagging, EMNLP 2012. Rules for punctuation and numerals, the
    start from the dictionary, the smoothing of transitions and the scoring of new words are ours.

    Examples
    --------
    >>> words = TagDictionary({"the": "DET", "a": "DET", "dog": "NOUN", "sleeps": "VERB", "runs": ["VERB", "NOUN"]})
    >>> text = Text.of(["the dog sleeps", "a dog runs", "the cat sleeps", "the runs", "a cat runs"] * 4)
    >>> tagger = DictionaryTagger(words, order=1).fit(text)
    >>> tagger.predict(Text.of(["a cat runs"])).strings("upos", 0)
    ('DET', 'NOUN', 'VERB')
    """

    _kind: ClassVar[str] = "tag.dictionary"
    dictionary: TagDictionary | None = option(
        default=None, kind=TagDictionary, kw_only=False, kept=False, help="The tags that words may have."
    )

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        if self.method == "gradient" and self.emissions == "table":
            raise ParameterError("DictionaryTagger: method 'gradient' is for emissions 'features'; tables need 'em'")
        known = isinstance(self.features, str) and self.features in FEATURES
        if not known:
            WordFeatures(() if isinstance(self.features, str) else tuple(self.features), ())
        if isinstance(self.features, str) and not known:
            raise ParameterError(
                f"DictionaryTagger: features should be one of {', '.join(map(repr, FEATURES))}, or templates, "
                f"not {self.features!r}"
            )

    def __repr__(self) -> str:
        name = ("HMM", "SHMM")[self.order - 1] + ("-ME" if self.emissions == "features" else "")
        return f"DictionaryTagger({name}, {self.dictionary!r})"

    # --- learning

    def fit(self, text: Text | Treebank, progress: Progress | None = None) -> Self:
        """Learn from raw text.

        Parameters
        ----------
        text : Text or Treebank
            Tags of a treebank are not looked at. The text that is to be tagged may be part of it: the more, the better.
        progress : Progress, optional
        """
        self.check_params()
        dictionary = self._dictionary()
        treebank = as_treebank(text)
        if not treebank.n_words:
            raise TreebankError(
                f"{treebank.name}: there are no words, so there is nothing to learn from. Is it the right file?"
            )
        types, ids = used_types(treebank)
        allowed, counts = dictionary.allowed(types, rules=self.rules), np.bincount(ids, minlength=len(types))
        features, initial = None, None
        if self.emissions == "features":
            features = WordFeatures.learnt(types.types, counts, self.features)
        if self.start == "dictionary":
            initial = guessed(dictionary, types.types, counts, rules=self.rules).T
        with using_threads(self.threads):
            fit = fit_hmm(
                ids,
                treebank.offsets,
                allowed[ids],
                None if features is None else features.matrix(types.types),
                n_types=len(types),
                order=self.order,
                iterations=self.iterations,
                first_order=self.first_order,
                variance=self.variance,
                restrict_support=self.restrict_support,
                smoothing=self.smoothing,
                method=self.method,
                initial=initial,
                seed=self.seed,
                progress=progress,
            )
        self._fitted, self.trace_ = Emitting.of(fit, types, features), fit.trace
        self._remember(treebank)
        return self

    def _dictionary(self) -> TagDictionary:
        if self.dictionary is None:
            raise UsageError("DictionaryTagger: give a dictionary: DictionaryTagger(TagDictionary.read('words.tsv'))")
        if not len(self.dictionary):
            raise UsageError("DictionaryTagger: the dictionary has no entries, so that all words may be anything")
        return self.dictionary

    # --- predicting

    @property
    def labels_(self) -> tuple[str, ...]:
        """The tags of the dictionary."""
        return self._dictionary().tags

    def _text(self, treebank: Treebank) -> tuple[Hmm, TokenLabels]:
        ids, vocabulary = treebank.columns["form"]
        learnt: Emitting = self._learnt
        allowed = self._dictionary().allowed(vocabulary, rules=self.rules)
        return learnt.over(vocabulary.types), TokenLabels(ids, treebank.offsets, allowed[ids])

    def predict_proba(self, treebank: Treebank | Text) -> Array:
        """float64[n_words, n_labels]: the posterior of each of `labels_` for each word of all sentences."""
        with using_threads(self.threads):
            model, labelled = self._text(as_treebank(treebank))
            return model.posterior(labelled)

    def _best(self, treebank: Treebank) -> NDArray[np.int32]:
        if self.decoder == "marginal":
            return super()._best(treebank)
        with using_threads(self.threads):
            model, labelled = self._text(treebank)
            return model.best(labelled).astype(np.int32)

    def explain(
        self, treebank: Treebank | Text, sentence: int, word: int, *, rival: str | None = None
    ) -> dict[str, Any]:
        """Why a word gets its tag and not another; plain data.

        ``allowed``: what the dictionary or a rule allows, and whether it does; ``emission``: log p(x|tag) − log
        p(x|rival); ``features``: what each feature adds to it, the largest first (the rest is the normaliser's);
        ``neighbours``: what the transitions from the tags before and to those after add.
        """
        _, chances, chosen, other, said = self._compare(treebank, sentence, word, rival)
        labels, dictionary, learnt, form = self.labels_, self._dictionary(), self._learnt, said["word"]
        emitted = learnt.emissions([form])[:, 0]
        with np.errstate(invalid="ignore"):
            difference = float(np.nan_to_num(emitted[chosen] - emitted[other], posinf=np.inf))
        return said | {
            "allowed": [labels[y] for y in np.flatnonzero(dictionary.allowed([form], rules=self.rules)[0])],
            "known": bool(dictionary.known([form], rules=self.rules)[0]),
            "emission": difference,
            "features": _feature_weights(learnt, form, chosen, other),
            "neighbours": _neighbours(learnt.model, labels, chances.argmax(axis=1), word, chosen, other),
        }

    # --- keeping

    def to_meta(self) -> dict[str, Any]:
        """What else is remembered, for `isogloss.store`."""
        return {"trace": self.trace_.tolist()}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Parameters, words and the dictionary, for `isogloss.store`."""
        learnt: Emitting = self._learnt
        arrays: dict[str, NDArray[Any]] = {
            PREFIX + name: array for name, array in self._dictionary().to_arrays().items()
        }
        return arrays | emitting_arrays(learnt)

    def _restore(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        own = store.unprefixed(PREFIX, arrays)
        self.dictionary = TagDictionary.from_arrays(own)
        self._fitted = emitting_of(arrays, len(self.dictionary.tags), self.order, self.features)
        self.trace_ = vector(meta["trace"], "trace")


def guessed(
    dictionary: TagDictionary,
    types: Sequence[str],
    counts: ArrayLike | None = None,
    *,
    rules: bool = True,
    longest: int = 5,
    strength: float = 5.0,
    rare: float = 10.0,
) -> Array:
    r"""float64[n_types, n_tags]: p(tag | word), as far as a dictionary says, before any text is looked at.

    The tags of an entry are equally likely. A word without one is judged by the entries that end as it does, and begin
    with a capital as it does: with :math:`n_s` of them for ending *s*, and :math:`s'` its ending without the first
    letter,

    .. math:: p_s = \frac{\sum_{x\ \text{in}\ s} p(\cdot \mid x) + c\, p_{s'}}{n_s + c}

    Parameters
    ----------
    dictionary : TagDictionary
    types : sequence of str
    counts : int[n_types], optional
        How often each occurs in a text. Where the dictionary lacks frequent words, these are often of small classes,
        which endings do not tell: a word without an entry that occurs n times has a share (1 − c) n / (n + rare) of
        all tags alike, with c the share of words met more than `rare` times that have entries.
    rules : bool
        See `TagDictionary.allowed`.
    longest : int
        Letters of endings, at most.
    strength : float
        c: entries that the shorter ending counts for.
    rare : float

    References
    ----------
    Endings interpolated from short to long: Brants, TnT, ANLP 2000, section 2.3.
    """
    allowed, known = dictionary.allowed(types, rules=rules).astype(np.float64), dictionary.known(types, rules=rules)
    out = allowed / allowed.sum(axis=1, keepdims=True)
    entries = list(dictionary)
    shares = dictionary.allowed(entries, rules=False).astype(np.float64)
    shares /= shares.sum(axis=1, keepdims=True)
    every = (shares.sum(axis=0) + 0.5) / (len(entries) + 0.5 * shares.shape[1])
    groups: dict[tuple[bool, str], int] = {}
    members = [
        (groups.setdefault(ending, len(groups)), x)
        for x, word in enumerate(entries)
        for ending in _endings(word, longest)
    ]
    where, which = np.array(members, np.int64).reshape(-1, 2).T
    sums = np.stack([np.bincount(where, column[which], len(groups)) for column in shares.T], axis=1)
    for x in np.flatnonzero(~known).tolist():
        guess = every
        for ending in _endings(types[x], longest):
            if ending not in groups:
                break
            row = sums[groups[ending]]
            guess = (row + strength * guess) / (row.sum() + strength)
        out[x] = np.where(allowed[x] > 0, guess, 0.0)
        out[x] /= out[x].sum()
    if counts is not None:
        n = np.asarray(counts, np.float64)
        covered = float(known[n > rare].mean()) if (n > rare).any() else 1.0
        doubt = ((1 - covered) * n / (n + rare))[~known, None]
        out[~known] = (1 - doubt) * out[~known] + doubt * (allowed / allowed.sum(axis=1, keepdims=True))[~known]
    return np.asarray(out, np.float64)


def _endings(word: str, longest: int) -> list[tuple[bool, str]]:
    """Whether a word begins with a capital, with each of its endings, from the empty one on."""
    small, capital = word.lower(), word[:1].isupper()
    return [(capital, small[len(small) - n :]) for n in range(min(longest, len(small)) + 1)]


def used_types(treebank: Treebank) -> tuple[Vocabulary, NDArray[np.int64]]:
    """The word types that occur in a treebank, and the number of each word's: int64[n_words]."""
    ids, vocabulary = treebank.columns["form"]
    used = np.bincount(ids, minlength=len(vocabulary)) > 0
    numbers = np.cumsum(used) - 1
    return Vocabulary([vocabulary[i] for i in np.flatnonzero(used).tolist()]), numbers[ids].astype(np.int64)


_EMITTING: Layout = {
    "types": Strings("types", offsets="type_offsets", distinct=True),
    "emissions": Numbers("float64", ("k", "types"), below=1.0001, logs=True),
}
_LOG_LINEAR: Layout = {
    "features": Strings("features", offsets="feature_offsets", distinct=True),
    "weights": Numbers("float64", ("k", "features")),
    "normalisers": Numbers("float64", "k"),
}


def emitting_arrays(learnt: Emitting) -> dict[str, NDArray[Any]]:
    """A model and its words, for `isogloss.store`. Tables of emissions are kept; log-linear ones made again."""
    blob, offsets = store.pack_strings(learnt.types)
    arrays: dict[str, NDArray[Any]] = {"types": blob, "type_offsets": offsets, "transitions": learnt.model.transitions}
    arrays["emissions"] = learnt.model.emissions
    if learnt.features is not None and learnt.weights is not None and learnt.normalisers is not None:
        arrays["features"], arrays["feature_offsets"] = store.pack_strings(learnt.features.names)
        arrays |= {"weights": learnt.weights, "normalisers": learnt.normalisers}
    return arrays


def emitting_of(arrays: Mapping[str, NDArray[Any]], k: int, order: int, templates: str | Sequence[str]) -> Emitting:
    """The inverse of `emitting_arrays`; sizes are checked, since kernels trust them."""
    place = "the probabilities of the saved tagger"
    transitions: Layout = {"transitions": Numbers("float64", (k + 1,) * order + (k,), least=0, below=1.0001)}
    found = check(arrays, _EMITTING | transitions, place, {"k": k})
    features, weights, normalisers = None, None, None
    if "weights" in arrays:
        chosen = FEATURES[templates] if isinstance(templates, str) else tuple(templates)
        learnt = check(arrays, _LOG_LINEAR, place, {"k": k})
        features, weights, normalisers = (learnt[name] for name in _LOG_LINEAR)
        features = WordFeatures(chosen, tuple(features))
    model = Hmm(found["transitions"], found["emissions"])
    return Emitting(model, Vocabulary(found["types"]), features, weights, normalisers)


def _feature_weights(learnt: Emitting, form: str, chosen: int, other: int) -> list[dict[str, Any]]:
    if learnt.features is None or learnt.weights is None:
        return []
    found = [
        {"feature": learnt.features.names[f], "weight": float(learnt.weights[chosen, f] - learnt.weights[other, f])}
        for f in learnt.features.of(form)
    ]
    return sorted(found, key=lambda entry: -abs(entry["weight"]))


def _neighbours(
    model: Hmm, labels: Sequence[str], tags: NDArray[np.intp], word: int, chosen: int, other: int
) -> list[dict[str, Any]]:
    """What the transitions that a word takes part in add, with the most probable tags around it."""
    k, order, names = model.k, model.order, (*labels, "(outside)")
    around = [k, k, *tags.tolist()]
    found = []
    for step in range(order + 1):
        at = word + step
        if at >= len(tags):
            break
        logs = []
        for tag in (chosen, other):
            row = list(around)
            row[word + 2] = tag
            logs.append(float(np.log(model.transitions[tuple(row[at + 2 - order : at + 3])])))
        place = around[word + 1] if step == 0 else around[word + 2 + step]
        where = ("before", "after", "after that")[step]
        found.append({"place": where, "tag": names[place], "weight": logs[0] - logs[1]})
    return found
