"""`StyleAdapter`: a parser for a new annotation style, from one of an old style and a few trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.formats import as_gold, as_treebank
from isogloss.data.reading import Reading, check_reading
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import ModelError, ParameterError, TreebankError
from isogloss.features import Index, Templates
from isogloss.features.table import KEYS
from isogloss.layout import Layout, Numbers, Offsets, Strings, check, number
from isogloss.learners.chain_model import LabelPairs
from isogloss.metrics.parsing import ParseScore, score_trees
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.batch import Stack
from isogloss.structures.loopy import LoopyTrees
from isogloss.tasks.parse.cutting import LONGEST, cut, joined
from isogloss.tasks.parse.inference import Shape, best_trees, cells_of, chances_of, pieces
from isogloss.tasks.parse.lesson import checked
from isogloss.tasks.parse.options import RestyleOptions
from isogloss.tasks.parse.parser import DependencyParser
from isogloss.tasks.parse.restyling import (
    LABEL_TEMPLATES,
    Edits,
    LabelLesson,
    Learnt,
    LinkLesson,
    OldTrees,
    choose,
    given_relations,
    label_scores,
    link_templates,
    trees_of,
)
from isogloss.tasks.parse.training import known_sentences
from isogloss.tasks.parse.words import Columns, columns_of

__all__ = ["StyleAdapter"]

_LINKS: Layout = {"keys": KEYS, "weights": Numbers("float64", "features")}
_LABELS: Layout = {
    "keys": KEYS,
    "names": Strings("names", offsets="name_offsets", distinct=True, least=1),
    "starts": Offsets("features", "weights"),
    "labels": Numbers("int32", "weights", least=0, below="names"),
    "weights": Numbers("float64", "weights"),
}


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What was learnt from trees of the new style; `edits` and `labels` are None where they had no relations."""

    columns: Columns
    shape: Shape
    links: Learnt
    edits: Edits | None
    labels: Learnt | None


class StyleAdapter(RestyleOptions):
    r"""Parses sentences in a new annotation style, by what an old style's trees of the same sentences look like.

    .. math:: p(T \mid T', W) \propto \exp \sum_{x \to y \in T} w \cdot f(x, y, W) + v \cdot g(x, y, T', W)

    over all trees T, where T' is the old tree [1]_. The features g are the configuration of x and y in T' (the same
    link, the other way round, siblings, ...) with their tags, and, unless `relations` is off, paths through T' with its
    relations. A few trees of the new style are enough, since most links are the same or change in the same way;
    without any, the old trees are given back. New relations are learnt as changes of old ones.

    Parameters
    ----------
    relations : bool
        Whether relations of the old trees, and paths through them, are looked at, or configurations alone as in the
        reference.
    l2 : float, optional
        Penalty on the squares of weights, ½ l2 ‖w‖² beside the log-likelihood; chosen by cross-validation if not given.
    folds : int
        Parts that the trees are cut into for that.
    iterations : int
        Maximum number of steps of L-BFGS.
    decoder : "mbr" or "map"
        The tree with the most right heads in expectation, or the most probable one.
    single_root : bool
        Whether the root has one child.
    seed : int
        Seed of the cut into folds.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    l2_ : float
        The penalty of links; 0 where there was nothing to learn from.
    losses_ : float64[n_penalties]
        Loss on trees that were left out, for each of `isogloss.tasks.parse.restyling.PENALTIES`; empty if none was
        chosen.
    reading_ : Reading or None
        The file of the few trees, how it was read and its frequent words.

    References
    ----------
    .. [1] Smith, PhD thesis, Johns Hopkins 2010, sections 4.1 to 4.4. Smith and Eisner, Parser adaptation and
       projection with quasi-synchronous grammar features, EMNLP 2009.

    Examples
    --------
    >>> words = [("in", "ADP", 2, "case"), ("Rome", "PROPN", 3, "obl"), ("lives", "VERB", 0, "root")]
    >>> old = Treebank.of([words, [("she", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root")]])
    >>> new = old.with_columns(heads=[3, 1, 0, 2, 0], deprel=["obl", "comp", "root", "nsubj", "root"])
    >>> adapter = StyleAdapter(l2=0.1).fit(new, old)
    >>> other = [("cats", "NOUN", 2, "nsubj"), ("sleep", "VERB", 0, "root"), ("on", "ADP", 4, "case")]
    >>> found = adapter.predict(Treebank.of([[*other, ("sofas", "NOUN", 2, "obl")]]))
    >>> found.heads.tolist(), found.strings("deprel", 0)
    ([2, 0, 2, 3], ('nsubj', 'root', 'obl', 'comp'))
    """

    _kind: ClassVar[str] = "parse.restyled"

    def __repr__(self) -> str:
        return f"StyleAdapter(relations={self.relations}, l2={self.l2!r})"

    # --- learning

    def fit(self, treebank: Treebank, old: DependencyParser | Treebank, progress: Progress | None = None) -> Self:
        """Learn a style from a few trees.

        Parameters
        ----------
        treebank : Treebank
            Trees of the new style, perhaps none. Words may lack heads (−1).
        old : DependencyParser or Treebank
            A parser of the old style, which the adapter carries along; or old trees of the same sentences. Then the
            text of `predict` has to have old trees as well.
        progress : Progress, optional
        """
        self.check_params()
        progress = progress or QuietProgress()
        if not isinstance(old, DependencyParser | Treebank):
            raise ParameterError(
                f"StyleAdapter: old should be a DependencyParser or a Treebank with old trees, not {old!r}"
            )
        few, parser = checked(treebank, self.single_root), None
        if isinstance(old, Treebank):
            seen = _same_words(as_gold(old), as_gold(treebank))
            seen = seen.take(np.flatnonzero(seen.lengths <= LONGEST))  # as `checked` leaves them
        else:
            parser, seen = old, _parsed(old, few)
        try:
            with using_threads(self.threads):
                fitted, l2, losses = self._learn(few, seen, parser, progress)
        finally:
            progress.finish()
        self._parser, self._fitted, self.l2_, self.losses_ = parser, fitted, l2, losses
        self.reading_ = Reading.of(few, frequent=True)
        return self

    def _learn(
        self, few: Treebank, seen: Treebank, parser: DependencyParser | None, progress: Progress
    ) -> tuple[_Fitted | None, float, NDArray[np.float64]]:
        """Links first, then relations; nothing where no head is known."""
        sentences = known_sentences(few.heads, few.lengths)
        if not len(sentences):
            return None, 0.0, np.zeros(0)
        columns = columns_of(seen) if parser is None else parser._learnt.columns
        shape, old = Shape("tree", bool(self.single_root)), OldTrees(seen, columns)
        links = LinkLesson(old, few.heads, shape, self._templates, self.iterations)
        progress.start("Learning links", 1)
        learnt, l2, losses = self._weights(links, sentences)
        edits, labels = _edits(few, seen)
        if edits is None:
            return _Fitted(columns, shape, learnt, None, None), l2, losses
        progress.start("Learning relations", 1)
        lesson = LabelLesson(old, few.heads, labels, len(edits.names), Templates(LABEL_TEMPLATES), self.iterations)
        return _Fitted(columns, shape, learnt, edits, self._weights(lesson, sentences)[0]), l2, losses

    def _weights(
        self, lesson: LinkLesson | LabelLesson, sentences: NDArray[np.int64]
    ) -> tuple[Learnt, float, NDArray[np.float64]]:
        """Features and weights, the penalty, and the losses that it was chosen by."""
        l2, losses = (self.l2, np.zeros(0)) if self.l2 is not None else choose(lesson, sentences, self.folds, self.seed)
        (learnt,) = lesson.learn(sentences, [float(l2)])
        return learnt, float(l2), losses

    @property
    def _templates(self) -> Templates:
        return Templates(link_templates(bool(self.relations)))

    # --- predicting

    def predict(self, treebank: Treebank | Text, *, confidence: bool = False) -> Treebank:
        """The treebank with heads and relations of the new style.

        An adapter that was given old trees takes those of the treebank, one that was given a parser finds them itself.
        With `confidence`, MISC gets ``Confidence``, the posterior of each link, once something has been learnt.
        """
        learnt, seen = self._given(treebank, confidence)
        if learnt is None:
            return seen
        heads, relations, chances = [np.zeros(0, np.int32)], list[str](), [np.zeros(0)]
        with using_threads(self.threads):
            for part in _pieces(seen):
                offsets = cut(part.offsets)
                old = OldTrees(part, learnt.columns, offsets)
                trees = self._trees(old, learnt)
                found = best_trees(trees, self.decoder)
                heads.append(joined(found, offsets, part.offsets)[0])
                if learnt.edits is not None and learnt.labels is not None:
                    scores = label_scores(old, found, Templates(LABEL_TEMPLATES), learnt.labels)
                    relations += _relations(learnt.edits, scores, given_relations(part))
                if confidence:
                    chances.append(chances_of(trees.beliefs_of_links(), found))
        made = seen.with_predictions(heads=np.concatenate(heads))
        if learnt.edits is not None:
            made = made.with_predictions(deprel=relations)
        if confidence:
            made = made.with_misc("Confidence", [f"{p:.4f}" for p in np.concatenate(chances).tolist()])
        return made

    def predict_proba(self, treebank: Treebank | Text) -> Stack:
        """The posterior of each link: float64[n + 1, n + 1] for each sentence, as (head, child), the root first.

        Where nothing has been learnt, those of the old parser, or 1 and 0 for given trees.
        """
        learnt, seen = self._given(treebank)
        if learnt is None and self._parser is not None:
            return self._parser.predict_proba(treebank)
        sizes = seen.lengths + 1
        offsets = np.concatenate([[0], np.cumsum(sizes * sizes)]).astype(np.int64)
        values = np.zeros(int(offsets[-1]))
        empty = Stack(values, offsets, np.stack([sizes, sizes], axis=1))
        if learnt is None:
            values[cells_of(empty, np.maximum(seen.heads, 0))] = 1.0
            return empty
        with using_threads(self.threads):
            olds = (OldTrees(part, learnt.columns) for part in _pieces(seen))
            found = [self._trees(old, learnt).beliefs_of_links().values for old in olds]
        return empty.like(np.concatenate([np.zeros(0), *found]))

    def score(self, treebank: Treebank, old: Treebank | None = None) -> ParseScore:
        """UAS, LAS, CLAS and the rest of `isogloss.metrics.score_trees`, in percent.

        `old` has old trees of the same sentences, for adapters that do not carry a parser.
        """
        gold = as_gold(treebank)
        return score_trees(self.predict(gold if old is None else old), gold)

    def _trees(self, old: OldTrees, learnt: _Fitted) -> LoopyTrees:
        """Distributions over the trees of all sentences."""
        return trees_of(old, np.arange(len(old)), self._templates, learnt.links, learnt.shape)

    def _given(self, text: Treebank | Text, confidence: bool = False) -> tuple[_Fitted | None, Treebank]:
        """What was learnt, and the sentences with tags and trees of the old style."""
        treebank = as_treebank(text)
        self._check_fitted()
        check_reading(self.reading_, treebank)
        if self._parser is not None:
            return self._fitted, _parsed(self._parser, treebank, confidence and self._fitted is None)
        if len(treebank.heads) and not (treebank.heads >= 0).any():
            raise TreebankError(
                f"{treebank.name}: no word has a head, and this model was given old trees in place of a parser. Give "
                "text with trees of the old style, or learn with a parser (isogloss parse restyle --parser)"
            )
        return self._fitted, treebank

    @property
    def parser_(self) -> DependencyParser | None:
        """The parser of the old style; None where old trees were given."""
        self._check_fitted()
        return self._parser

    def _check_fitted(self) -> None:
        if not hasattr(self, "_fitted"):
            raise self._has_not_learnt

    @property
    def n_features_(self) -> int:
        """How many weights links have."""
        self._check_fitted()
        return 0 if self._fitted is None else self._fitted.links.numbering.n_features

    # --- keeping

    def _to_saved(self) -> store.Saved:
        old, fitted = self.parser_, self._fitted
        arrays: dict[str, NDArray[Any]] = {}
        meta: dict[str, Any] = {"l2": self.l2_, "losses": self.losses_.tolist(), "old": None, "columns": None}
        if old is not None:
            arrays, meta["old"] = store.hold("old", old)
        if fitted is not None:
            meta |= {"columns": fitted.columns._asdict(), "shape": asdict(fitted.shape)}
            links = {"keys": fitted.links.numbering.keys, "weights": fitted.links.weights}
            arrays |= store.prefixed("links.", links)
            arrays |= store.prefixed("labels.", _label_arrays(fitted))
        meta |= Reading.to_meta(self.reading_)
        return store.Saved(self._kind, self.options_, arrays, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        meta = saved.meta
        with store.reading("the saved parser"):
            made = cls.of_options(saved.options)
            made._parser = None
            if meta["old"] is not None:
                made._parser = store.held("old", saved.arrays, meta["old"], DependencyParser)
            made._fitted = None if meta["columns"] is None else _fitted_from(saved.arrays, meta)
            made.l2_ = number(meta["l2"], "l2", least=0.0)
            made.losses_ = np.array([number(loss, "losses") for loss in meta["losses"]])
            made.reading_ = Reading.from_meta(meta)
        return made


def _pieces(treebank: Treebank) -> Iterator[Treebank]:
    """Sentences a few at a time, so that memory does not grow with the text."""
    return (treebank.part(int(some[0]), int(some[-1]) + 1) for some in pieces(treebank.lengths))


def _parsed(parser: DependencyParser, treebank: Treebank, confidence: bool = False) -> Treebank:
    """Old trees by the old parser, with the tags that it looks at."""
    return parser.predict(treebank, confidence=confidence) if treebank.n_words else treebank


def _same_words(old: Treebank, few: Treebank) -> Treebank:
    """Old trees, if they are of the same sentences."""
    if len(old) != len(few):
        raise TreebankError(
            f"{old.name} has {len(old)} sentences and {few.name} {len(few)}: old trees should be of the same sentences"
        )
    for s in range(len(old)):
        if old.words(s) != few.words(s):
            raise TreebankError(
                f"{few.label_of(s)}: its words in {few.name} are not those in {old.name}. Old trees should be of the "
                "same sentences, in the same order"
            )
    if len(old.heads) and not (old.heads >= 0).any():
        raise TreebankError(f"{old.name}: no word has a head, where old trees are wanted. Is it the right file?")
    old.check_trees()
    return old


def _edits(few: Treebank, seen: Treebank) -> tuple[Edits | None, NDArray[np.int64]]:
    """Changes that make new relations of old ones, and their numbers for all words; None if there are no relations."""
    ids, vocabulary = few.columns["deprel"]
    given = given_relations(seen)
    labels = [
        "" if head < 0 or vocabulary[i] == "_" else Edits.label_of(vocabulary[i], own)
        for i, head, own in zip(ids.tolist(), few.heads.tolist(), given, strict=True)
    ]
    names = sorted(set(labels) - {""})
    numbers = {name: i for i, name in enumerate(names)}
    found = np.array([numbers.get(label, -1) for label in labels], np.int64)
    return (Edits(names) if names else None), found


def _relations(edits: Edits, scores: NDArray[np.float64], given: list[tuple[str, str, str]]) -> list[str]:
    """The relation of each word by the best change that can be made; as it was where none can."""
    made: dict[tuple[str, str, str], list[str]] = {}
    found = []
    for word, own in enumerate(given):
        each = made.get(own)
        if each is None:
            each = made[own] = edits.applied(own)
        order = np.argsort(-scores[word], kind="stable").tolist()
        found.append(next((each[i] for i in order if each[i]), own[0]))
    return found


def _label_arrays(fitted: _Fitted) -> dict[str, NDArray[Any]]:
    if fitted.labels is None or fitted.edits is None:
        return {}
    assert fitted.labels.pairs is not None
    names, offsets = store.pack_strings(fitted.edits.names)
    kept: dict[str, NDArray[Any]] = {
        "keys": fitted.labels.numbering.keys,
        "weights": fitted.labels.weights,
        "names": names,
        "name_offsets": offsets,
    }
    return kept | fitted.labels.pairs.to_arrays()


def _fitted_from(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> _Fitted:
    place = "the saved parser"
    columns = Columns.checked(meta["columns"])
    shape = Shape(str(meta["shape"]["constraint"]), bool(meta["shape"]["single_root"]))
    if shape.constraint != "tree":
        raise ModelError(f"{place} has trees that this version does not know. Train it again, or update")
    links = check(store.unprefixed("links.", arrays), _LINKS, f"the links of {place}")
    learnt = Learnt(Index(links["keys"]), links["weights"])
    own = store.unprefixed("labels.", arrays)
    if not own:
        return _Fitted(columns, shape, learnt, None, None)
    found = check(own, _LABELS, f"the relations of {place}")
    pairs = LabelPairs(found["starts"], found["labels"], len(found["names"]))
    return _Fitted(
        columns, shape, learnt, Edits(found["names"]), Learnt(Index(found["keys"]), found["weights"], pairs)
    )  # fmt: skip
