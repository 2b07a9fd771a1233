"""`Correspondence`: what words and endings of two domains have in common, learnt from text without tags.

A tagger that learns from news knows nothing of the words of medicine. In text of both, words that stand between the
same frequent words get the same place in a table, whichever domain they are from; the tagger learns what places mean
from the tagged domain, and finds the words of the other there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.threads import using_threads
from isogloss.errors import DataError, UsageError
from isogloss.estimator import THREADS, Estimator, option
from isogloss.features import KEYS, Axis, Index, Parts, Templates, positions
from isogloss.layout import COUNTS, Layout, Numbers, Strings, check, number
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.tag.base import as_treebank
from isogloss.tasks.tag.learning import Learning, Real
from isogloss.tasks.tag.words import AFFIX, joined, template_names, templates_of, word_axis

__all__ = ["BLOCKS", "Adapted", "Correspondence"]

BLOCKS = (
    "form", "word", *(f"prefix{n}" for n in range(2, AFFIX)), *(f"suffix{n}" for n in range(1, AFFIX + 1)),
    "shape", "look", "word[-1]", "word[+1]", "word[-2]", "word[+2]",
    "suffix2[-1]", "suffix2[+1]", "suffix3[-1]", "suffix3[+1]", "look[-1]", "look[+1]",
)  # fmt: skip
"""The templates that are projected unless others are given: a table of places for each."""
POSITIONS = {-1: "left", 0: "middle", 1: "right"}
FURTHEST = 2
"""Of the neighbours that `Correspondence.neighbours` can speak of."""


_LAYOUT: Layout = {
    "keys": KEYS,
    "table": Numbers("float32", ("features", "h")),
    "strengths": Numbers("float64", ("blocks", "h")),
    "words": Strings("words", offsets="word_offsets", distinct=True),
    "counts": Numbers("int64", ("words", 2), least=0, below=COUNTS),
    "pivots": Strings("pivots", offsets="pivot_offsets"),
}
_KEPT: Layout = {
    "blocks": Numbers("int32", "real", least=0, below="blocks"),
    "dimensions": Numbers("int32", "real", least=0, below="h"),
}


class Correspondence(Estimator):
    r"""Places of words, beginnings, endings and neighbours, in which those of two domains lie side by side.

    Pivots are words that are frequent in both domains, on the left of a position, at it and on its right. Each is
    predicted from all attributes of the position that are not made of the pivot itself; what an attribute says about
    pivots, in few dimensions, is its place. See `isogloss.learners.correspondence` for the method.

    Parameters
    ----------
    templates : sequence of str, optional
        Attributes that have places, see `isogloss.features`: each template is a block of its own.
    h : int
        Dimensions of the places of a block.
    threshold : int
        Pivots are words that occur more often than this in each domain, whatever their case.
    regularisation : float
        λ of the predictors of pivots.
    tolerance : float
        How exact predictors are, see `isogloss.learners.correspondence.predictors`.
    min_count : int
        Attributes that occur less often have no place.
    positive : bool
        Whether what speaks against a pivot is left out.
    normalise : bool
        Whether all places are equally far from the origin. Otherwise those of rare attributes are close to it.
    scale : float
        How large places are beside the other attributes of a tagger, by the sums of a mean word; of labelled text.
    kept : float
        Share of the dimensions, of all blocks together, that a tagger keeps: those that differ most between labels.
    l1 : float
        The tagger's penalty on their weights.
    seed : int
        Of the order of positions.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    pivots_ : tuple of (str, str)
        Position ("left", "middle" or "right") and word.
    vocabulary_ : Vocabulary
        All words of the texts, in small letters.
    counts_ : int64[n_words, 2]
        How often each occurs in the source and in the target.

    References
    ----------
    Blitzer, McDonald and Pereira, EMNLP 2006. Theirs are h = 25 (20 to 100 made no difference), a threshold of 50 for
    100,000 sentences of each domain, and a scale of 5; half of the dimensions kept. `normalise` is ours: without it the
    best scale of our tagger was 2, with it 1, on news held out and on the development text of another domain.

    Examples
    --------
    >>> news = Text.of(["the dog is here", "the cat was there", "a dog was here", "a cat is there"] * 5)
    >>> bio = Text.of(["the gene is here", "a gene was there", "the cell was here", "a cell is there"] * 5)
    >>> found = Correspondence(h=2, threshold=3).fit(news, bio)
    >>> sorted(entry["word"] for entry in found.neighbours("gene", n=2, domain="source"))
    ['cat', 'dog']
    """

    templates: Sequence[str | Sequence[str]] | None = option(
        default=None, kind=(list, tuple), kw_only=False,
        help="Attributes that have places: each template is a block of its own.",
    )  # fmt: skip
    h: int = option(default=25, least=0, help="Dimensions of the places of a block.")
    threshold: int = option(
        default=20, least=0, help="Pivots are words that occur more often than this in each domain."
    )
    regularisation: float = option(default=1e-4, above=0, help="Penalty on the weights of the predictors of pivots.")
    tolerance: float = option(default=0.01, above=0, help="How exact predictors are.")
    min_count: int = option(default=2, least=1, help="Attributes that occur less often have no place.")
    positive: bool = option(default=True, help="Leave out what speaks against a pivot.")
    normalise: bool = option(default=True, help="Make all places equally far from the origin.")
    scale: float = option(default=1.0, least=0, help="How large places are beside the other attributes of a tagger.")
    kept: float = option(default=0.5, above=0, most=1, help="Share of the dimensions that a tagger keeps.")
    l1: float = option(default=0.1, least=0, help="The tagger's penalty on their weights.")
    seed: int = option(default=0, least=0, help="Seed of the order of positions.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        self._templates  # noqa: B018 - says which template makes no sense

    @property
    def _templates(self) -> Templates:
        return templates_of(template_names(self.templates, BLOCKS))

    @property
    def _blocks(self) -> list[Templates]:
        return [templates_of((template,)) for template in template_names(self.templates, BLOCKS)]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the blocks, one for each template."""
        return self._templates.names

    def __repr__(self) -> str:
        return f"Correspondence({len(self._templates.names)} templates, h={self.h})"

    # --- learning

    def fit(
        self, source: Treebank | Text, target: Treebank | Text | None = None, progress: Progress | None = None
    ) -> Self:
        """Learn from text of two domains; tags are not looked at.

        Parameters
        ----------
        source : Treebank or Text
            Of the domain that has tags.
        target : Treebank or Text, optional
            Of the domain that has none; without it, pivots are the frequent words of the source alone (the method of
            Ando and Zhang).
        progress : Progress, optional
        """
        from isogloss.learners.correspondence import Design, View, project

        self.check_params()
        progress = progress or QuietProgress()
        texts = [as_treebank(text) for text in (source, target) if text is not None]
        ids, types, offsets = joined(texts)
        words = Vocabulary(types).mapped(str.lower)
        of_source = np.arange(len(ids)) < texts[0].n_words
        at = words[1][ids]
        counts = np.stack([np.bincount(at[here], minlength=len(words[0])) for here in (of_source, ~of_source)], axis=1)
        chosen = self._pivots(counts[:, : len(texts)], words[0], texts)
        with using_threads(self.threads):
            parts = positions(word_axis(ids, types, offsets))
            index = self._templates.index(parts, min_count=self.min_count)
            places = self._places(parts, index)
            blocks = np.full(index.n_features + 1, -1, np.int32)
            for b in range(len(self.names)):
                blocks[places[:, b][places[:, b] >= 0]] = b
            design = Design(_rows(places, index.n_features), blocks, len(self.names))
            views = [
                View(_there(at, offsets, step, chosen, len(words[0])), len(chosen), self._made_of(step, blocks))
                for step in POSITIONS
            ]
            progress.start("Predicting pivots", len(views) * len(chosen))
            done = [0]

            def told(more: int) -> None:
                done[0] += more
                progress.update(done[0])

            names = ("regularisation", "tolerance", "positive", "seed")
            given: dict[str, Any] = {name: getattr(self, name) for name in names}
            try:
                found = project(design, views, h=self.h, told=told, **given)
            finally:
                progress.finish()
        self._index, self._table, self.strengths_ = index, found.table[:-1], found.strengths
        if self.normalise:
            self._table = _unit(self._table)
        self.vocabulary_, self.counts_ = words[0], counts.astype(np.int64)
        self.pivots_ = tuple((place, words[0][i]) for place in POSITIONS.values() for i in chosen.tolist())
        return self

    def _pivots(self, counts: NDArray[np.int64], words: Vocabulary, texts: Sequence[Treebank]) -> NDArray[np.int64]:
        found = np.flatnonzero((counts > self.threshold).all(axis=1))
        if not len(found):
            names = " and in ".join(text.name for text in texts)
            most = int(counts.min(axis=1).max(initial=0))
            raise DataError(
                f"Correspondence: no word occurs more than {self.threshold} times in {names}, so there are no pivots; "
                f"the most that one reaches is {most}. Give more text, or, in Python, a lower threshold "
                f"(Correspondence(threshold={max(0, most - 1)}))"
            )
        return found

    def _made_of(self, step: int, blocks: NDArray[np.int32]) -> NDArray[np.bool_]:
        """bool[n_columns]: columns of templates that look at the word there."""
        hidden = np.array([step in _steps(name) for name in self.names] + [False])
        return hidden[blocks]  # the column that is always there has block −1

    # --- using

    def places(self, text: Treebank | Text) -> NDArray[np.int32]:
        """int32[n_words, n_blocks]: the row of `table` for each template at each position; −1 for none."""
        trees = as_treebank(text)
        ids, vocabulary = trees.columns["form"]
        with using_threads(self.threads):
            return self._places(positions(word_axis(ids, vocabulary.types, trees.offsets)), self._learnt[0])

    def _places(self, parts: Parts, index: Index) -> NDArray[np.int32]:
        out = np.empty((parts.n_parts, len(self._blocks)), np.int32)
        for b, block in enumerate(self._blocks):
            out[:, b] = index.numbers(np.ascontiguousarray(block.keys(parts)[:, 0]))
        return out

    @property
    def table(self) -> NDArray[np.float32]:
        """float32[n_attributes, h]: the place of each attribute, of all blocks together."""
        return self._learnt[1]

    @property
    def _learnt(self) -> tuple[Index, NDArray[np.float32]]:
        if not hasattr(self, "_table"):
            raise UsageError("this Correspondence has learnt nothing yet: call fit first")
        return self._index, self._table

    def transform(self, text: Treebank | Text) -> NDArray[np.float32]:
        """float32[n_words, n_blocks * h]: the places of all attributes of each word, block after block."""
        from isogloss.learners._numba.pivots import look_up_rows

        places, table = self.places(text), self.table
        out = np.empty((len(places), len(self.names) * self.h), np.float32)
        look_up_rows(places, table, out)
        return out

    def real(self, text: Treebank | Text) -> Real:
        """All dimensions of all blocks as attributes of a tagger, as they are."""
        blocks = np.repeat(np.arange(len(self.names), dtype=np.int32), self.h)
        dimensions = np.tile(np.arange(self.h, dtype=np.int32), len(self.names))
        return Real(self.places(text), self.table, blocks, dimensions, np.float32(self.l1))

    def neighbours(
        self, word: str, n: int = 10, *, template: str = "word", domain: str | None = None
    ) -> list[dict[str, Any]]:
        """The words whose attribute lies closest to that of a word, by the cosine of their places.

        Parameters
        ----------
        word : str
            In any case.
        n : int
        template : str
            A template of one attribute, such as ``word``, ``suffix3`` or ``word[-1]``.
        domain : "source" or "target", optional
            List words that occur in this domain only, not in the other.

        Returns
        -------
        list of dict
            ``word``, ``cosine``, ``source`` and ``target`` (how often it occurs), the closest first.
        """
        if template not in self.names or "&" in template:
            known = ", ".join(name for name in self.names if name and "&" not in name)
            raise UsageError(f"neighbours: template should be one of {known}, not {template!r}")
        if domain not in (None, "source", "target"):
            raise UsageError(f"neighbours: domain should be source or target, not {domain!r}")
        words = [*self.vocabulary_.types, word.lower()]
        copies = np.repeat(np.arange(len(words), dtype=np.int32), 2 * FURTHEST + 1)  # between words like itself
        ends = np.arange(len(words) + 1, dtype=np.int64) * (2 * FURTHEST + 1)
        parts = positions(word_axis(copies, words, ends))
        keys = self._blocks[self.names.index(template)].keys(parts)[FURTHEST :: 2 * FURTHEST + 1, 0]
        index, table = self._learnt
        at = index.numbers(np.ascontiguousarray(keys))
        if at[-1] < 0 or not table[at[-1]].any():
            return []
        unit = _unit(table).astype(np.float64)
        cosines = np.where(at[:-1] >= 0, unit[at[:-1]] @ unit[at[-1]], -np.inf)
        cosines[at[:-1] == at[-1]] = -np.inf  # itself, or words with the same ending
        if domain is not None:
            own = 0 if domain == "source" else 1
            cosines[(self.counts_[:, own] == 0) | (self.counts_[:, 1 - own] > 0)] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:n]
        return [
            {"word": words[i], "cosine": float(cosines[i]), "source": int(self.counts_[i, 0]),
             "target": int(self.counts_[i, 1])}
            for i in best.tolist() if np.isfinite(cosines[i])
        ]  # fmt: skip

    # --- keeping

    @property
    def options_(self) -> dict[str, Any]:
        """Every option that is saved with a tagger; templates are written out, whatever the usual ones will be."""
        return super().options_ | {"templates": template_names(self.templates, BLOCKS)}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What was learnt, for `isogloss.store`."""
        index, table = self._learnt
        blob, offsets = store.pack_strings(self.vocabulary_.types)
        pivots, ends = store.pack_strings([f"{place} {word}" for place, word in self.pivots_])
        return {
            "keys": index.keys, "table": table, "strengths": self.strengths_, "words": blob, "word_offsets": offsets,
            "counts": self.counts_, "pivots": pivots, "pivot_offsets": ends,
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, options: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of `options_` and `to_arrays`."""
        made = cls.of_options(options)
        found = check(arrays, _LAYOUT, "the saved correspondence", {"h": made.h, "blocks": len(made.names)})
        made._index, made._table, made.strengths_ = Index(found["keys"]), found["table"], found["strengths"]
        made.vocabulary_, made.counts_ = Vocabulary(found["words"]), found["counts"]
        made.pivots_ = tuple((place, word) for place, word in (entry.split(" ", 1) for entry in found["pivots"]))
        return made


@dataclass(frozen=True, eq=False)
class Adapted:
    """A correspondence as a tagger uses it: larger, and with the dimensions that tell labels apart.

    scale : float
        By which places are multiplied.
    blocks, dimensions : int32[n_real]
        Of those that are kept; see `isogloss.tasks.tag.learning.Real`.
    """

    correspondence: Correspondence
    scale: float
    blocks: NDArray[np.int32]
    dimensions: NDArray[np.int32]

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        return (self.correspondence.table * self.scale).astype(np.float32)

    def real(self, text: Treebank | Text) -> Real:
        """The attributes of every word of a text."""
        l1 = np.float32(self.correspondence.l1)
        return Real(self.correspondence.places(text), self._table, self.blocks, self.dimensions, l1)

    @classmethod
    def of(
        cls,
        correspondence: Correspondence,
        treebank: Treebank,
        n_attributes: float,
        learning: Callable[[Real], Learning],
    ) -> Adapted:
        """Made for a tagger that learns from a treebank.

        Parameters
        ----------
        n_attributes : float
            Binary attributes of the mean word: the measure of `scale`.
        learning : callable
            The tagger's learning with such real-valued attributes, for choosing dimensions.
        """
        real = correspondence.real(treebank)
        size = real.mean_size()
        scale = correspondence.scale * n_attributes / size if size else 0.0
        kept = np.ones(len(real.blocks), np.bool_)
        if correspondence.kept < 1 and len(kept):
            kept = learning(real.scaled(scale)).telling(correspondence.kept)
        return cls(correspondence, scale, real.blocks[kept], real.dimensions[kept])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        return {"blocks": self.blocks, "dimensions": self.dimensions} | self.correspondence.to_arrays()

    def to_meta(self) -> dict[str, Any]:
        """For `isogloss.store`."""
        return {"options": self.correspondence.options_, "scale": self.scale}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Adapted:
        """The inverse of `to_arrays` and `to_meta`."""
        correspondence = Correspondence.from_arrays(meta["options"], arrays)
        sizes = {"blocks": len(correspondence.names), "h": correspondence.h}
        found = check(arrays, _KEPT, "the saved correspondence", sizes)
        return cls(correspondence, number(meta["scale"], "scale", least=0.0), found["blocks"], found["dimensions"])


def _rows(places: NDArray[np.int32], always: int) -> Any:
    """A binary matrix of the attributes of each position, and of one that all have."""
    from isogloss.features.sparse import Sparse

    full = np.concatenate([places, np.full((len(places), 1), always, np.int32)], axis=1)
    indptr = np.concatenate([[0], np.cumsum((full >= 0).sum(axis=1))])
    return Sparse(indptr, full[full >= 0], always + 1)


def _there(
    words: NDArray[np.int32], offsets: NDArray[np.int64], step: int, pivots: NDArray[np.int64], n_types: int
) -> NDArray[np.int32]:
    """int32[n_words]: which pivot is so many steps to the right of each position; −1 for none, and outside."""
    numbers = np.full(n_types, -1, np.int32)
    numbers[pivots] = np.arange(len(pivots))
    axis = Axis(offsets)
    at = np.arange(len(words)) + step
    inside = (at >= axis.starts) & (at < axis.stops)
    return np.where(inside, numbers[words[np.where(inside, at, 0)]], -1).astype(np.int32)


def _steps(name: str) -> set[int]:
    """The neighbours that a template looks at: ``word[-1] & word`` looks at −1 and 0."""
    return {int(item.partition("[")[2][:-1] or 0) for item in name.split(" & ")}


def _unit(table: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1; zeros stay zeros."""
    lengths = np.sqrt((table.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return (table / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
