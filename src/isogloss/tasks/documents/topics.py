"""`PolylingualTopics`: themes of documents that exist in one or several languages, lined up across these."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.documents import Documents
from isogloss.data.formats.convert import DocumentsLike, as_documents
from isogloss.data.reading import TOKENISERS
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.threads import using_threads
from isogloss.errors import DocumentsError, ModelError, ParameterError, UsageError
from isogloss.layout import Layout, Numbers, Offsets, Strings, check, texts, vector
from isogloss.learners.dirichlet import LEAST, Tails
from isogloss.learners.gibbs import Bags, Gibbs, GibbsState
from isogloss.learners.runner import Keeping, run
from isogloss.learners.topic_words import TopicWords, by_runs, by_words
from isogloss.metrics.ranks import RankScore, ranks_of, score_ranks
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.documents.bags import bags_of, in_language
from isogloss.tasks.documents.coherence import Coherence, coherence_of
from isogloss.tasks.documents.divergence import distances
from isogloss.tasks.documents.held_out import HeldOut
from isogloss.tasks.documents.leaning import Lexicons, checked_lexicons, leaning_of
from isogloss.tasks.documents.matching import LexiconLike, translated_distances
from isogloss.tasks.documents.options import TopicOptions

__all__ = ["Candidate", "Neighbour", "PolylingualTopics"]

Array = NDArray[np.float64]
LISTED = 5
"""Topics that an explanation lists."""
LAYOUT: Layout = {
    "words": Strings("types"),
    "sizes": Numbers("int64", "languages", least=0),
    "offsets": Offsets("types", "entries"),
    "entry_topics": Numbers("int16", "entries", least=0, below="topics"),
    "entry_counts": Numbers("int64", "entries", least=1, below=2.0**40),
    "totals": Numbers("int64", ("languages", "topics"), least=0),
    "alphas": Numbers("float64", ("languages + 1", "topics"), least=LEAST / 2, below=1e12),
}


class Neighbour(NamedTuple):
    """A document near another one."""

    document: int
    """Its row among the candidates."""
    distance: float
    """Jensen-Shannon divergence, from 0 to 1."""


class Candidate(NamedTuple):
    """Words of two languages that are among the first of the same topic: perhaps translations."""

    source: str
    target: str
    topic: int
    probability: float
    """Product of both words' probabilities in the topic."""


class _Learnt(NamedTuple):
    """What there is after learning."""

    languages: tuple[str, ...]
    vocabularies: tuple[Vocabulary, ...]
    words: TopicWords
    alphas: Array
    """float64[1 + n_languages, n_topics]: the prior of tuples, and of single documents in each language."""


class _Given(NamedTuple):
    """What the sampler is given, as bytes by which one run is told from another."""

    bags: Bags
    vocabularies: Sequence[Vocabulary]
    leaning: Any

    def to_bytes(self) -> bytes:
        """Words and numbers."""
        words = "\n".join("\t".join(each) for each in self.vocabularies)
        arrays: list[NDArray[Any]] = [self.bags.words, self.bags.segments]
        if self.leaning is not None:
            arrays += [self.leaning.indptr, self.leaning.indices, self.leaning.data]
        return b"".join([words.encode("utf-8", "surrogatepass"), *(array.tobytes() for array in arrays)])


class PolylingualTopics(TopicOptions):
    r"""Topics of documents in any number of languages, learnt without a dictionary.

    A document, in whatever languages it exists, has shares of topics :math:`\theta_d \sim \mathrm{Dir}(\alpha)`; each
    of its words has a topic drawn from them, and comes from the words of that topic in its language,
    :math:`\phi^l_t \sim \mathrm{Dir}(\beta)`. Since all languages of a document share θ, topics are the same themes in
    all of them [1]_. With one language it is latent Dirichlet allocation. Learnt by collapsed Gibbs sampling
    (`isogloss.learners.gibbs`), with the prior α optimised on the way.

    Where few documents or none exist in several languages, lexicons tie the languages together [2]_: a document leans
    on the documents of the other language that its translated words are most like, whose topics are added to its
    prior (`isogloss.tasks.documents.leaning`).

    Parameters
    ----------
    topics : int
    iterations : int
        Sweeps over all words.
    concentration : float, optional
        Sum of α at first; 0.01 for each topic if not given.
    beta : float
        For each word type, as MALLET has it: the paper calls it a concentration, but uses 0.01 a type.
    optimise, burn_in : int
        After every so many sweeps, beginning after `burn_in`, α is made more likely; 0 for never.
    blocks : int, optional
        1 for the exact sampler; more can use more threads. One for every two million words if not given.
    min_documents, max_share, drop_frequent, lowercase, letters
        Which words are left out, and how they are written; see `Documents.pruned`. It is part of the model.
    prior : "tuples" or "documents"
        α of new documents in a single language: that of training, or one for single documents of its language, which
        is learnt after training from the topics that their words have.
    samples : int
        The topics of a new document are the mean of so many Gibbs samples, after as many that are not used.
    neighbours, lean : int, float
        With lexicons: on how many documents of another language each document leans, and with what weight: 1 gives them
        together the weight of one document of their average length.
    seed : int
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    languages_ : tuple of str
    vocabularies_ : dict of str to Vocabulary
    alpha_ : float64[n_topics]
    trace_ : float64[n_sweeps]
        log P(w, z), looked at every tenth sweep.

    References
    ----------
    .. [1] Mimno, Wallach, Naradowsky, Smith and McCallum, Polylingual topic models, EMNLP 2009.
    .. [2] Hao and Paul, Learning multilingual topics from incomparable corpora, COLING 2018.

    Examples
    --------
    >>> sea, wood = {"en": "ship sea ship", "de": "Schiff Meer"}, {"en": "tree leaf", "de": "Baum Blatt Blatt"}
    >>> model = PolylingualTopics(2, iterations=100, max_share=1.0, lowercase=False).fit([sea, wood] * 5)
    >>> found = model.transform([{"de": "Schiff Meer Meer"}, {"en": "a leaf"}])
    >>> bool(found[0].argmax() != found[1].argmax()), found.shape
    (True, (2, 2))
    """

    _kind: ClassVar[str] = "topics.polylingual"

    # --- learning

    def fit(
        self,
        documents: DocumentsLike,
        progress: Progress | None = None,
        *,
        lexicons: Lexicons | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn the topics of documents; a language may be missing in any of them.

        Parameters
        ----------
        documents : Documents, or a list of mappings by language, or of strings
        progress : Progress, optional
        lexicons : mapping of pairs of languages to lexicons, optional
            ``{("en", "fr"): "words.tsv"}``, a file as `isogloss lexicon` writes it or pairs of words with weights: ties
            languages together where documents do not.
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt so far; see `isogloss.learners.runner.run`.
        resume : bool
            Go on from there, to the bit as if nothing had happened.
        """
        self.check_params()
        progress = progress or QuietProgress()
        given = as_documents(documents)
        pruned = self._pruned(given)
        vocabularies = tuple(text.vocabulary for text in pruned.texts)
        bags, _ = bags_of(pruned, pruned.languages, vocabularies, lowercase=False)
        leaning = None
        if checked_lexicons(lexicons, pruned.languages) and self.lean:
            leaning = leaning_of(pruned, lexicons or {}, self.neighbours, self.lean, lowercase=self.lowercase)
        keeping = Keeping.of(checkpoint, resume, self.options_, [_Given(bags, vocabularies, leaning)])
        sampler = Gibbs(
            bags, self.topics, concentration=self._first_concentration, beta=self.beta, optimise=self.optimise,
            burn_in=self.burn_in, blocks=self.blocks, leaning=leaning, seed=self.seed,
        )  # fmt: skip
        try:
            with using_threads(self.threads):
                result = run(
                    sampler, sampler.init(), iterations=self.iterations, progress=progress, name="Sampling topics",
                    every=None, **keeping.arguments,
                )  # fmt: skip
                self._keep(given, pruned, sampler, result.state)
        finally:
            progress.finish()
        self.trace_ = np.asarray(result.trace, np.float64)
        return self

    @property
    def _first_concentration(self) -> float:
        return 0.01 * self.topics if self.concentration is None else float(self.concentration)

    def _pruned(self, documents: Documents) -> Documents:
        """Documents with the words that are left; an error if there are none."""
        if not documents.n_words:
            raise DocumentsError(f"{documents.name}: there are no words, so there is nothing to learn")
        pruned = documents.pruned(
            min_documents=self.min_documents, max_share=self.max_share, drop_frequent=self.drop_frequent,
            lowercase=self.lowercase, letters=self.letters,
        )  # fmt: skip
        if not pruned.n_words:
            raise DocumentsError(
                f"{documents.name}: no word is left. Leave out fewer of them, as with min_documents=1, max_share=1 and "
                "drop_frequent=0"
            )
        return pruned

    def _keep(self, given: Documents, pruned: Documents, sampler: Gibbs, state: GibbsState) -> None:
        bags, offsets_and_counts = sampler.bags, sampler.word_topics(state)
        single = [
            Tails.of(state.topics, *bags.edges(language), self.topics).fixed_point(state.alpha, steps=200)
            for language in range(bags.n_languages)
        ]
        prior = state.alpha
        if sampler.leaning is not None:  # new documents lean on none, so that their prior has to say it all
            prior = Tails.of(state.topics, *bags.edges(), self.topics).fixed_point(state.alpha, steps=200)
        words = TopicWords(*offsets_and_counts, bags.sizes, float(self.beta))
        vocabularies = tuple(text.vocabulary for text in pruned.texts)
        self._fitted = _Learnt(pruned.languages, vocabularies, words, np.stack([prior, *single]))
        self._trained = bags, state.topics
        self.tokenise_ = next((text.form.tokenise for text in given.texts if text.form is not None), "space")

    # --- what was learnt

    @property
    def _learnt(self) -> _Learnt:
        if not hasattr(self, "_fitted"):
            raise self._has_not_learnt
        return self._fitted

    @property
    def languages_(self) -> tuple[str, ...]:
        """Names of languages."""
        return self._learnt.languages

    @property
    def vocabularies_(self) -> dict[str, Vocabulary]:
        """The words of each language."""
        return dict(zip(self._learnt.languages, self._learnt.vocabularies, strict=True))

    @property
    def alpha_(self) -> Array:
        """float64[n_topics]: the prior of documents' topics."""
        return np.asarray(self._learnt.alphas[0], np.float64)

    def _language(self, language: str) -> int:
        if language not in self._learnt.languages:
            there = ", ".join(self._learnt.languages)
            raise ParameterError(f"there is no language {language!r} in this model; there is {there}")
        return self._learnt.languages.index(language)

    def probabilities(self, language: str) -> Array:
        """float64[n_types, n_topics]: φ, the probability of each word of a language in each topic."""
        return self._learnt.words.probabilities(self._language(language))

    def top_words(self, n: int = 10) -> list[dict[str, list[tuple[str, float]]]]:
        """For each topic and language the most probable words with their probabilities.

        Words that the topic never had are left out: a topic that a language does not use has none.
        """
        found: list[dict[str, list[tuple[str, float]]]] = [{} for _ in range(self.topics)]
        for number, (language, words) in enumerate(self.vocabularies_.items()):
            phi, numbers = self.probabilities(language), self._top_numbers(number, n)
            for t, own in enumerate(numbers):
                found[t][language] = [(words[w], float(phi[w, t])) for w in own]
        return found

    def _top_numbers(self, language: int, n: int) -> list[list[int]]:
        """For each topic the numbers of its most frequent words, the earlier of those that are alike first."""
        words = self._learnt.words
        first, size = int(words.sizes[:language].sum()), int(words.sizes[language])
        own = slice(words.offsets[first], words.offsets[first + size])
        types = np.repeat(np.arange(size), np.diff(words.offsets[first : first + size + 1]))
        order = np.lexsort((types, -words.counts[own], words.topics[own]))
        topics, types = words.topics[own][order], types[order]
        starts = np.searchsorted(topics, np.arange(self.topics + 1))
        return [types[a : min(b, a + n)].tolist() for a, b in pairwise(starts)]

    def shares(self) -> dict[str, Array]:
        """float64[n_topics] for each language: the share of its words that have each topic in training."""
        totals = self._learnt.words.totals
        return {name: totals[k] / max(1, totals[k].sum()) for k, name in enumerate(self._learnt.languages)}

    def training_mixtures(self, language: str | None = None) -> Array:
        r"""float64[n_documents, n_topics] of the documents of training, from the topics that their words have there.

        .. math:: \hat\theta^l_{dt} = \frac{N^l_{td} + \alpha_t}{N^l_d + A}

        in one language, or in all together. A loaded model does not know them any more.
        """
        alpha = self.alpha_
        if not hasattr(self, "_trained"):
            raise UsageError("training_mixtures: a loaded model does not know its training documents. Use transform")
        bags, topics = self._trained
        begins, ends = bags.edges(None if language is None else self._language(language))
        rows = np.repeat(np.arange(len(begins)), ends - begins)
        places = np.repeat(begins - (np.cumsum(ends - begins) - (ends - begins)), ends - begins) + np.arange(len(rows))
        counts = np.zeros((len(begins), self.topics))
        np.add.at(counts, (rows, topics[places]), 1.0)
        return np.asarray((counts + alpha) / (counts.sum(axis=1, keepdims=True) + alpha.sum()), np.float64)

    # --- new documents

    def _bags(self, documents: DocumentsLike, language: str | None) -> tuple[Bags, NDArray[np.int64], Any]:
        learnt = self._learnt
        given = in_language(as_documents(documents), language, learnt.languages)
        bags, unknown = bags_of(given, learnt.languages, learnt.vocabularies, lowercase=self.lowercase)
        lengths = np.diff(bags.segments).reshape(-1, bags.n_languages) > 0
        alone = lengths.sum(axis=1) == 1
        single = self.prior == "documents"
        return bags, unknown, np.where(alone & single, 1 + lengths.argmax(axis=1), 0).astype(np.int64)

    def transform(self, documents: DocumentsLike, *, language: str | None = None) -> Array:
        """float64[n_documents, n_topics]: shares of topics of each document, which add up to 1.

        Parameters
        ----------
        documents : Documents, Text, or a list
            In one or several of the languages of the model; words that it does not know are passed over. A document
            without a known word has the prior.
        language : str, optional
            Look at this language alone; of documents without the name of a language, which it is.
        """
        bags, _, prior = self._bags(documents, language)
        with using_threads(self.threads):
            return self._learnt.words.mixtures(
                bags, self._learnt.alphas, prior, burn_in=self.samples, samples=self.samples, seed=self.seed
            )

    def predict_proba(self, documents: DocumentsLike, *, language: str | None = None) -> Array:
        """The same as `transform`."""
        return self.transform(documents, language=language)

    def predict(self, documents: DocumentsLike, *, language: str | None = None) -> NDArray[np.int64]:
        """int64[n_documents]: the topic with the largest share."""
        return np.asarray(self.transform(documents, language=language).argmax(axis=1), np.int64)

    def held_out(
        self,
        documents: DocumentsLike,
        *,
        language: str | None = None,
        runs: int = 5,
        resample: bool = True,
    ) -> HeldOut:
        """How probable documents are, by the left-to-right estimator in both of its forms.

        Parameters
        ----------
        documents, language
            As in `transform`. To compare with LDA of one language, name that language: each document is then one of a
            single language, under this model's words and prior.
        runs : int
            Independent runs over each document.
        resample : bool
            Draw the topics of all words before again at each word: better, and quadratic in the length of a document.
        """
        if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
            raise ParameterError(f"held_out: runs should be a positive integer, not {runs!r}")
        bags, unknown, prior = self._bags(documents, language)
        with using_threads(self.threads):
            chances = self._learnt.words.chances(
                bags, self._learnt.alphas, prior, runs=runs, resample=bool(resample), seed=self.seed
            )
        offsets = bags.offsets
        return HeldOut(by_words(chances, offsets), by_runs(chances, offsets), np.diff(offsets), unknown, runs)

    def nearest(
        self, documents: DocumentsLike, candidates: DocumentsLike, n: int = 10, *,
        language: str | None = None, candidate_language: str | None = None,
    ) -> list[list[Neighbour]]:  # fmt: skip
        """For each document the candidates, perhaps of another language, whose topics are nearest."""
        first = self.transform(documents, language=language)
        second = self.transform(candidates, language=candidate_language)
        with using_threads(self.threads):
            found = distances(first, second)
        order = np.argsort(found, axis=1, kind="stable")[:, :n]
        return [[Neighbour(int(c), float(found[d, c])) for c in row] for d, row in enumerate(order)]

    def score(
        self,
        documents: DocumentsLike,
        *,
        source: str | None = None,
        target: str | None = None,
        lexicon: LexiconLike | None = None,
        weight: float = 0.5,
        bootstrap: int = 1000,
    ) -> RankScore:
        """How often a document in one language finds itself in another, by Jensen-Shannon divergence.

        With a lexicon from source to target, by a mean of that and of the distance of translated words
        (`isogloss.tasks.documents.matching.translated_distances`).

        Parameters
        ----------
        documents : Documents
            Those that have both languages are queries and candidates; the others are left out.
        source, target : str, optional
            The language of queries and of candidates; the first and the last that the documents have if not given.
        lexicon : path or pairs of words, optional
            As `isogloss lexicon` writes it, or as ``[("sea", "Meer", 0.9)]``.
        weight : float
            The weight of the lexicon in the mean, from 0 to 1.
        bootstrap : int
            Resamples of queries for intervals; 0 for none.
        """
        given = in_language(as_documents(documents), None, self._learnt.languages)
        source, target = source or given.languages[0], target or given.languages[-1]
        both = given.present[:, [given.language(source), given.language(target)]].all(axis=1)
        some = given.take(np.flatnonzero(both))
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
            raise ParameterError(f"score: weight should be a number from 0 to 1, not {weight!r}")
        first, second = (self.transform(some, language=name) for name in (source, target))
        with using_threads(self.threads):
            apart, how = distances(first, second), f"{source}-{target}|distance:js"
        if lexicon is not None:
            words = translated_distances(some.text(source), some.text(target), lexicon, lowercase=self.lowercase)
            apart, how = (1 - weight) * apart + weight * words, f"{how}+lexicon|weight:{weight:g}"
        return score_ranks(ranks_of(apart), len(some), how=how, bootstrap=bootstrap)

    def coherence(self, documents: DocumentsLike, n: int = 10) -> Coherence:
        """Whether the first n words of each topic occur together in documents: NPMI of each language, and across."""
        given = as_documents(documents)
        learnt = self._learnt
        given = in_language(given, None, learnt.languages)
        counts, words = {}, {}
        for name in given.languages:
            number = self._language(name)
            own = given.in_languages(name)
            bags, _ = bags_of(own, (name,), (learnt.vocabularies[number],), lowercase=self.lowercase)
            counts[name] = _incidence(bags)
            words[name] = self._top_numbers(number, n)
        return coherence_of(counts, words, n)

    def lexicon(self, source: str, target: str, n: int = 1) -> list[Candidate]:
        """Candidates for translations: each of the first n words of a topic in one language with each in the other.

        At most n² for each topic, the most probable first; a pair that several topics have stands once.
        """
        tops = self.top_words(n)
        best: dict[tuple[str, str], Candidate] = {}
        for t, topic in enumerate(tops):
            for one, p in topic[source] if self._language(source) >= 0 else ():
                for other, q in topic[target] if self._language(target) >= 0 else ():
                    known = best.get((one, other))
                    if known is None or known.probability < p * q:
                        best[one, other] = Candidate(one, other, t, p * q)
        return sorted(best.values(), key=lambda pair: (-pair.probability, pair.source, pair.target))

    def explain(self, documents: DocumentsLike, document: int = 0, *, language: str | None = None) -> dict[str, Any]:
        """Why a document has its topics; plain data.

        Returns
        -------
        dict
            `id`; `topics`, the largest with their `share`, their first `words` in each language, and `because`: the
            words of the document that are likely to be of that topic, with their number and the probability that they
            are, φ θ divided by its sum over topics; and `unknown`, the number of words that the model does not know.
        """
        given = as_documents(documents)
        if not 0 <= document < len(given):
            raise UsageError(f"explain: there is no document {document} among {len(given)}; they count from 0")
        one = given.take([document])
        bags, unknown, _ = self._bags(one, language)
        share = self.transform(one, language=language)[0]
        learnt, tops = self._learnt, self.top_words(LISTED)
        numbers, times = np.unique(bags.words, return_counts=True)
        of_words = self._posteriors(numbers, share)
        names = [word for words in learnt.vocabularies for word in words]
        best = np.argsort(-share, kind="stable")[:LISTED]
        found = []
        for t in best.tolist():
            order = np.argsort(-of_words[:, t] * times, kind="stable")
            because = [
                {"word": names[numbers[k]], "times": int(times[k]), "probability": float(of_words[k, t])}
                for k in order.tolist() if of_words[k, t] >= 1 / max(2, LISTED)
            ]  # fmt: skip
            words = {name: [word for word, _ in own] for name, own in tops[t].items()}
            found.append({"topic": t, "share": float(share[t]), "words": words, "because": because})
        return {"id": given.id_of(document), "topics": found, "unknown": int(unknown.sum())}

    def _posteriors(self, numbers: NDArray[np.int32], share: Array) -> Array:
        """float64[n, n_topics]: the topic of each word, given the shares of its document."""
        words = self._learnt.words
        out = np.empty((len(numbers), self.topics))
        edges = np.cumsum(words.sizes)
        for k, number in enumerate(numbers.tolist()):
            language = int(np.searchsorted(edges, number, side="right"))
            row = np.full(self.topics, words.beta)
            own = slice(words.offsets[number], words.offsets[number + 1])
            row[words.topics[own]] += words.counts[own]
            out[k] = row / (words.totals[language] + words.sizes[language] * words.beta) * share
        return np.asarray(out / out.sum(axis=1, keepdims=True), np.float64)

    # --- keeping

    def _to_saved(self) -> store.Saved:
        learnt = self._learnt
        packed, offsets = store.pack_strings([word for words in learnt.vocabularies for word in words])
        arrays: dict[str, NDArray[Any]] = {
            "words": packed, "words_offsets": offsets, "sizes": learnt.words.sizes, "offsets": learnt.words.offsets,
            "entry_topics": learnt.words.topics, "entry_counts": learnt.words.counts, "totals": learnt.words.totals,
            "alphas": learnt.alphas,
        }  # fmt: skip
        meta = {"languages": list(learnt.languages), "tokenise": self.tokenise_, "trace": self.trace_.tolist()}
        return store.Saved(self._kind, self.options_, arrays, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        with store.reading("the saved model of topics"):
            model = cls.of_options(saved.options)
            languages = texts(saved.meta["languages"], "languages", cells=True)
            sizes = {"languages": len(languages), "topics": int(model.topics)}
            made = check(saved.arrays, LAYOUT, "the topics of this model", sizes)
            own = TopicWords(
                made["offsets"], made["entry_topics"], made["entry_counts"], made["totals"], made["sizes"],
                float(model.beta),
            )  # fmt: skip
            vocabularies = _vocabularies(made["words"], made["sizes"])
            _check_totals(own)
            model._fitted = _Learnt(languages, vocabularies, own, made["alphas"])
            model.trace_ = vector(saved.meta["trace"], "trace")
            model.tokenise_ = saved.meta["tokenise"]
            if model.tokenise_ not in TOKENISERS:
                raise ModelError(f"the topics of this model: words were made by {model.tokenise_!r:.40}")
        return model


def _incidence(bags: Bags) -> Any:
    """How often each word of one language is in each document, sparse."""
    from scipy.sparse import csr_matrix

    ones = np.ones(len(bags.words), np.int64)
    made = csr_matrix((ones, bags.words.astype(np.int64), bags.offsets), shape=(bags.n_documents, int(bags.sizes[0])))
    made.sum_duplicates()
    return made


def _vocabularies(words: list[str], sizes: NDArray[np.int64]) -> tuple[Vocabulary, ...]:
    if sum(sizes.tolist()) != len(words):
        raise ModelError("the topics of this model: sizes of vocabularies are not those of its words")
    edges = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    return tuple(Vocabulary(words[a:b]) for a, b in pairwise(edges))


def _check_totals(words: TopicWords) -> None:
    """Refuse sums that are not those of the counts."""
    sums = np.zeros_like(words.totals)
    language = np.repeat(np.arange(len(words.sizes)), words.sizes)
    of_entries = np.repeat(language, np.diff(words.offsets))
    np.add.at(sums, (of_entries, words.topics), words.counts)
    if not np.array_equal(sums, words.totals):
        raise ModelError("the topics of this model: sums of counts are not those of their words")
