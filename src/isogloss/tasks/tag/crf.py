"""`CrfTagger`: a linear-chain conditional random field over the tags of one column of a treebank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.threads import threads as count_threads
from isogloss.engine.threads import using_threads
from isogloss.features import KEYS, Index, Templates, blind_to, positions
from isogloss.features.sparse import Sparse
from isogloss.layout import Layout, Numbers, Offsets, check, vector
from isogloss.learners.runner import Keeping
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.lattice import Lattices
from isogloss.tasks.tag.adapting import Adapted, Correspondence
from isogloss.tasks.tag.base import LABELS, ColumnTagger, as_treebank
from isogloss.tasks.tag.candidates import chains_of, log_probs
from isogloss.tasks.tag.explaining import explain
from isogloss.tasks.tag.labels import Units, units_of
from isogloss.tasks.tag.learning import Decoded, Learning, Real, Rows, Settings, Weights, decode, n_triples, rows_of
from isogloss.tasks.tag.options import CrfOptions
from isogloss.tasks.tag.words import template_names, templates_of, word_axis

__all__ = ["CrfTagger"]

DENSE = 10
"""Attributes met this often have weights for all labels, when labels are few."""
FEW_LABELS = 30


_LAYOUT: Layout = {
    "keys": KEYS,
    "starts": Offsets("features", "pairs"),
    "units": Numbers("int32", "pairs", least=0, below="units"),
    "pruner": Numbers("float32", "weights"),
    "nodes": Numbers("float32", "weights"),
    "moves": Numbers("float32", "moves"),
    "triples": Numbers("float32", "triples"),
}


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What was learnt."""

    labels: tuple[str, ...]
    units: Units
    index: Index
    rows: Rows
    weights: Weights
    adapted: Adapted | None = None

    def real(self, treebank: Treebank) -> Real | None:
        """Real-valued attributes of every word."""
        return None if self.adapted is None else self.adapted.real(treebank)


class CrfTagger(CrfOptions, ColumnTagger):
    r"""Tags words by a conditional random field of order 1 or 2, learnt from a treebank alone.

    .. math:: p(y \mid x) \propto \exp \sum_t \Big(\sum_a w[a, y_t] + v[y_{t-1}, y_t] + u[y_{t-2}, y_{t-1}, y_t]\Big)

    with attributes *a* of word t: the word, its beginnings and endings, how it is written, its neighbours. In bundles
    of features (column "feats") each part, such as ``Case=Nom``, has weights as well. Labels that a model of single
    words finds far worse than the best are left out of a word's list, so that hundreds of labels stay fast.

    Parameters
    ----------
    column : "upos", "xpos" or "feats"
        What is predicted.
    order : int
        Labels before a word's own that its score looks at: 1 or 2.
    decoder : "marginal" or "viterbi"
        The most probable label of each word, or the most probable sequence.
    iterations : int
        Passes over the text; with `dev` the best number up to this.
    rate, l1, l2 : float
        Length of steps, and penalties on weights; l1 leaves few weights that are not 0.
    min_count : int
        Attributes that are met less often are left out.
    templates : sequence of str, optional
        What words are seen by, see `isogloss.features`; those of `isogloss.tasks.tag.words` otherwise.
    margin : float
        Labels whose score for a word by itself is lower than the best by more than this are left out.
    most : int
        Labels of a word that are looked at, at most.
    seed : int
        Of the order of sentences.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    labels_ : tuple of str
        What can be predicted, in the order of the columns of `predict_proba`.
    trace_ : float64[n_passes]
        Log-likelihood of a word in each pass, as it was met.
    tuning_ : float64[n_passes]
        Accuracy on dev after each pass, in percent; empty without dev.

    Examples
    --------
    >>> trees = Treebank.of([[("she", "PRON"), ("sleeps", "VERB")], [("he", "PRON"), ("eats", "VERB")]] * 5)
    >>> tagger = CrfTagger().fit(trees)
    >>> tagger.predict(Text.of(["she eats"])).strings("upos", 0)
    ('PRON', 'VERB')
    """

    _kind: ClassVar[str] = "tag.crf"

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        self._templates  # noqa: B018 - says which template makes no sense

    @property
    def _templates(self) -> Templates:
        return templates_of(template_names(self.templates))

    @property
    def options_(self) -> dict[str, Any]:
        """Every option that is saved with a model; templates are written out, whatever the usual ones will be."""
        return super().options_ | {"templates": template_names(self.templates)}

    @property
    def _settings(self) -> Settings:
        return Settings(
            self.order, self.iterations, self.rate, self.l1, self.l2, self.margin, self.most, self.seed
        )  # fmt: skip

    # --- learning

    def fit(
        self,
        treebank: Treebank,
        dev: Treebank | None = None,
        progress: Progress | None = None,
        *,
        correspondence: Correspondence | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn the tags of a treebank.

        Parameters
        ----------
        treebank : Treebank
            Words that have ``_`` in the column learn that: it is a tag like others.
        dev : Treebank, optional
            Other sentences; the number of passes is that of the best accuracy on them.
        progress : Progress, optional
        correspondence : Correspondence, optional
            Learnt from text without tags, also of another domain: words have its places as attributes beside the
            others. It is saved with the tagger.
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt of chains so far; see `isogloss.learners.runner.run`.
        resume : bool
            Go on from there, to the bit as if nothing had happened.
        """
        self.check_params()
        known = (
            {} if correspondence is None else {"correspondence": store.data_hash(*correspondence.to_arrays().values())}
        )
        keeping = Keeping.of(checkpoint, resume, {**self.options_, **known}, [treebank, dev])
        progress = progress or QuietProgress()
        labels, gold = self._gold(treebank)
        units = units_of(labels, split=self.column == "feats")
        with using_threads(self.threads):
            parts = positions(word_axis(*_words(treebank)))
            index = self._templates.index(parts, min_count=self.min_count)
            attributes = self._templates.matrix(parts, index)
            rows = rows_of(attributes, gold, units, dense=DENSE if len(labels) <= FEW_LABELS else 1 << 62)
        # Not held while learning: `jackknife` learns several taggers side by side.
        given = (attributes, treebank.offsets, gold, rows, units, self._settings)
        adapted = None
        if correspondence is not None:
            n_attributes = len(attributes.indices) / treebank.n_words
            adapted = Adapted.of(correspondence, treebank, n_attributes, partial(Learning, *given))
        unfinished = _Fitted(labels, units, index, rows, _NOTHING, adapted)
        learning = Learning(*given, real=unfinished.real(treebank))
        score = None if dev is None else self._scorer(dev, unfinished)
        try:
            best, trace, scores = learning.run(
                score=score, threads=count_threads(self.threads), progress=progress,
                keeping={"every": None, "name": f"Learning {self.column}", **keeping.arguments},
            )  # fmt: skip
        finally:
            progress.finish()
        self.trace_, self.tuning_ = trace / max(1, len(gold)), scores
        self._fitted = _compact(replace(unfinished, weights=best))
        self._remember(treebank)
        return self

    def _scorer(self, dev: Treebank, unfinished: _Fitted) -> Callable[[Weights], float]:
        """Accuracy on other sentences, in percent."""
        with using_threads(self.threads):
            attributes, real = self._attributes(dev, unfinished.index), unfinished.real(dev)
        ids, vocabulary = dev.columns[self.column]
        gold = Vocabulary(unfinished.labels).encode(vocabulary)[ids]

        def score(weights: Weights) -> float:
            given = (unfinished.rows, unfinished.units, weights, self._settings)
            with using_threads(self.threads):
                found = decode(attributes, dev.offsets, *given, real, hard=self.decoder == "viterbi")
            return 100 * float(np.mean(found.labels == gold)) if len(gold) else 0.0

        return score

    # --- predicting

    def _best(self, treebank: Treebank) -> NDArray[np.int32]:
        return self.decode(treebank).labels

    def decode(self, treebank: Treebank | Text) -> Decoded:
        """The labels of each word, and those that were worth a look: posteriors, or those of `decode` with `hard`."""
        return self._decode(as_treebank(treebank), hard=self.decoder == "viterbi")

    def predict_proba(self, treebank: Treebank | Text) -> NDArray[np.float64]:
        """float64[n_words, n_labels]: the posterior of each of `labels_` for each word of all sentences."""
        treebank = as_treebank(treebank)
        found = self._decode(treebank)
        out = np.zeros((treebank.n_words, len(self.labels_)))
        rows, columns = np.nonzero(found.lists >= 0)
        out[rows, found.lists[rows, columns]] = found.chances[rows, columns]
        return out

    def k_best(self, treebank: Treebank | Text, k: int) -> list[list[tuple[float, NDArray[np.int64]]]]:
        """The `k` most probable sequences of tags of each sentence, numbers of `labels_`, with log-probabilities.

        Of the labels that are worth a look at each word, as everything else of this tagger.
        """
        with using_threads(self.threads):
            chains = self._chains(as_treebank(treebank))
            totals = chains.log_partition().tolist()
            return [
                [(score - total, y) for score, y in own] for total, own in zip(totals, chains.k_best(k), strict=True)
            ]

    def log_prob(
        self, treebank: Treebank | Text, tags: Sequence[Sequence[NDArray[np.int64]]]
    ) -> list[NDArray[np.float64]]:
        """The log-probabilities of sequences of tags, numbers of `labels_`, any number for each sentence.

        −∞ where a word has a tag that is not worth a look, or −1.
        """
        with using_threads(self.threads):
            return log_probs(self._chains(as_treebank(treebank)), tags)

    def _chains(self, treebank: Treebank) -> Lattices:
        learnt = self._learnt
        given = (treebank.offsets, learnt.rows, learnt.units, learnt.weights, self._settings, learnt.real(treebank))
        return chains_of(self._attributes(treebank, learnt.index), *given)

    def templates_without(self, attributes: Sequence[str]) -> dict[str, Any]:
        """Options in which no template looks at some attributes; see `isogloss.features.blind_to`."""
        return {"templates": blind_to(template_names(self.templates), attributes)}

    def blind_to(self, attributes: Sequence[str]) -> CrfTagger:
        """The same weights, but for those of templates that look at some attributes: a weaker tagger."""
        learnt = self._learnt
        made = CrfTagger(**(self.get_params() | self.templates_without(attributes)))
        made._fitted, made.trace_, made.tuning_, made.reading_ = learnt, self.trace_, self.tuning_, self.reading_
        return made

    def confidence(self, treebank: Treebank | Text) -> NDArray[np.float64]:
        """float64[n_words]: the posterior of the most probable tag of each word."""
        chances = self._decode(as_treebank(treebank)).chances
        return np.asarray(chances.max(axis=1, initial=0.0), np.float64)

    def explain(
        self, treebank: Treebank | Text, sentence: int, word: int, *, rival: str | None = None
    ) -> dict[str, Any]:
        """Why a word gets its tag and not another: what each attribute and each neighbour adds; plain data."""
        return explain(self, self._compare(treebank, sentence, word, rival), word)

    @property
    def labels_(self) -> tuple[str, ...]:
        """What can be predicted."""
        labels: tuple[str, ...] = self._learnt.labels
        return labels

    def _attributes(self, treebank: Treebank, index: Index) -> Sparse:
        return self._templates.matrix(positions(word_axis(*_words(treebank))), index)

    def _decode(self, treebank: Treebank, *, hard: bool = False) -> Decoded:
        learnt = self._learnt
        with using_threads(self.threads):
            attributes = self._attributes(treebank, learnt.index)
            given = (learnt.rows, learnt.units, learnt.weights, self._settings)
            return decode(attributes, treebank.offsets, *given, learnt.real(treebank), hard=hard)

    # --- keeping

    def to_meta(self) -> dict[str, Any]:
        """What else is remembered, for `isogloss.store`."""
        meta: dict[str, Any] = {"trace": self.trace_.tolist(), "tuning": self.tuning_.tolist()}
        adapted = self._learnt.adapted
        return meta if adapted is None else meta | {"correspondence": adapted.to_meta()}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Weights, for `isogloss.store`."""
        learnt = self._learnt
        blob, offsets = store.pack_strings(learnt.labels)
        arrays: dict[str, NDArray[Any]] = {"labels": blob, "label_offsets": offsets, "keys": learnt.index.keys}
        arrays |= {"starts": learnt.rows.starts, "units": learnt.rows.units}
        if learnt.adapted is not None:
            arrays |= store.prefixed(_KEPT, learnt.adapted.to_arrays())
        return arrays | dict(vars(learnt.weights))

    def _restore(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        labels = tuple(check(arrays, LABELS, "the tags of the saved tagger")["labels"])
        units = units_of(labels, split=self.column == "feats")
        adapted = None
        if "correspondence" in meta:
            adapted = Adapted.from_parts(store.unprefixed(_KEPT, arrays), meta["correspondence"])
        n_units = len(arrays["units"])
        sizes = {
            "units": units.size, "moves": units.size**2, "triples": n_triples(units.k, self.order),
            "weights": n_units + (0 if adapted is None else len(adapted.blocks)) * units.size,
        }  # fmt: skip
        found = check(arrays, _LAYOUT, "the weights of the saved tagger", sizes)
        rows = Rows(found["starts"], found["units"])
        weights = Weights(*(found[name] for name in ("pruner", "nodes", "moves", "triples")))
        self._fitted = _Fitted(labels, units, Index(found["keys"]), rows, weights, adapted)
        self.trace_, self.tuning_ = vector(meta["trace"], "trace"), vector(meta["tuning"], "tuning")


_KEPT = "correspondence."
"""Before the names of arrays of a correspondence that is saved with a tagger."""
_NOTHING = Weights(*(np.zeros(0, np.float32) for _ in range(4)))


def _words(treebank: Treebank) -> tuple[NDArray[np.int32], Sequence[str], NDArray[np.int64]]:
    ids, vocabulary = treebank.columns["form"]
    return ids, vocabulary.types, treebank.offsets


def _compact(fitted: _Fitted) -> _Fitted:
    """The same without weights that are 0, and without attributes that have none but these."""
    starts, weights = fitted.rows.starts, fitted.weights
    n_pairs = len(fitted.rows.units)  # weights of real-valued attributes stand behind these, and stay
    held = (weights.pruner[:n_pairs] != 0) | (weights.nodes[:n_pairs] != 0)
    before = np.concatenate([[0], np.cumsum(held)])
    sizes = np.diff(before[starts])
    used = sizes > 0
    rows = Rows(np.concatenate([[0], np.cumsum(sizes[used])]).astype(np.int64), fitted.rows.units[held])
    pruner, nodes = (np.concatenate([x[:n_pairs][held], x[n_pairs:]]) for x in (weights.pruner, weights.nodes))
    small = Weights(pruner, nodes, weights.moves.copy(), weights.triples.copy())
    return replace(fitted, index=Index(fitted.index.keys[used]), rows=rows, weights=small)
