"""Groups as numbers: what each document is seen by, what pairs of documents are seen by, and scales for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.groups import Candidate, Group, Groups
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError
from isogloss.layout import Layout, Numbers, Strings, check, collect, integer
from isogloss.tasks.documents.dictionaries import Translations, url_similarity
from isogloss.tasks.documents.index import MEASURES, Index
from isogloss.tasks.documents.outputs import OUTPUT_FEATURES, output_features, words_of
from isogloss.tasks.documents.ranking_options import FEATURES

__all__ = ["Extracted", "Extractor", "Scale", "comparable", "min_max"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_FIELDS = ("title", "text", "all")
_BY_DICTIONARY = {"dic": ("dic",), "ratio": ("forward", "backward"), "mt": ("translated", "returned")}


class Extracted(NamedTuple):
    """A group: x of its candidates, y of the documents in the other language, s of every two of both."""

    own: Array
    """float64[n_candidates, n_own]."""
    other: Array
    """float64[n_others, n_other]."""
    similarity: Array
    """float64[n_candidates, n_others, n_similarities]."""

    def with_others(self, rows: Indices) -> Extracted:
        """With some of the documents in the other language."""
        return Extracted(self.own, self.other[rows], self.similarity[:, rows])


def comparable(grades: Array, other_grades: Array) -> tuple[Indices, Indices]:
    r"""Which candidates should be above which, and which documents of the other language may be beside them.

    .. math:: (e, c) \succ (e', c') \iff C(e) > C(e') \text{ and } C(c) \ge C(c')

    Both conditions are about one language, so that the pairs of pairs are all combinations of the two lists: [n, 2] of
    candidates and [m, 2] of others. Where a grade is not known, a candidate is compared with none, and a document of
    the other language with itself.

    References
    ----------
    Gao et al. 2009, definition 2.

    Examples
    --------
    >>> better, beside = comparable(np.array([2.0, 0.0, 0.0]), np.array([1.0, 0.0]))
    >>> better.tolist(), beside.tolist()
    ([[0, 1], [0, 2]], [[0, 0], [0, 1], [1, 1]])
    """
    better = np.argwhere(grades[:, None] > grades[None, :])
    same = np.eye(len(other_grades), dtype=np.bool_)
    beside = np.argwhere(same | (other_grades[:, None] >= other_grades[None, :]))
    return better.astype(np.int64), beside.astype(np.int64)


# --- scales


def min_max(values: Array) -> Array:
    """Columns from 0 to 1 over all but the last axis; 0 where all are the same."""
    if not values.size:
        return values
    around = tuple(range(values.ndim - 1))
    low, high = values.min(axis=around), values.max(axis=around)
    return np.where(high > low, (values - low) / np.where(high > low, high - low, 1.0), 0.0)


@dataclass(frozen=True, eq=False)
class Scale:
    """How features are scaled: in each group, or by what was seen of all.

    Parameters
    ----------
    name : "group", "all" or "none"
    middles, widths : float64[n_features]
        Of x, y and s, one after the other.
    """

    name: str
    middles: Array
    widths: Array

    @classmethod
    def of(cls, name: str, groups: Sequence[Extracted], sizes: tuple[int, int, int]) -> Scale:
        """Learnt from groups; the same for all of them unless it is `all`."""
        middles, widths = np.zeros(sum(sizes)), np.ones(sum(sizes))
        if name == "all":
            first = 0
            for which, size in enumerate(sizes):
                some = (each[which].reshape(-1, size) for each in groups if each[which].size)
                rows = np.concatenate([np.zeros((0, size)), *some])
                if len(rows):
                    spread = rows.std(axis=0)
                    middles[first : first + size] = rows.mean(axis=0)
                    widths[first : first + size] = np.where(spread > 1e-12, spread, 1.0)
                first += size
        return cls(name, middles, widths)

    def __call__(self, group: Extracted) -> Extracted:
        if self.name == "group":
            return Extracted(*map(min_max, group))
        if self.name == "none":
            return group
        ends = np.cumsum([0, *(each.shape[-1] for each in group)]).tolist()
        cuts = [slice(a, b) for a, b in pairwise(ends)]
        return Extracted(*((each - self.middles[c]) / self.widths[c] for each, c in zip(group, cuts, strict=True)))


# --- features


@dataclass(frozen=True, eq=False)
class Extractor:
    """What groups are seen by, learnt from groups without their grades.

    Parameters
    ----------
    kinds : tuple of str
        Of `ranking_options.FEATURES`, those that are there.
    own_names, other_names : tuple of str
        Features that candidates, and documents in the other language, come with.
    titles : bool
        Whether documents have titles.
    index, other_index : Index
        Of the words of the collection, and of that in the other language; of references for outputs.
    translations : Translations, optional
    """

    kinds: tuple[str, ...]
    own_names: tuple[str, ...]
    other_names: tuple[str, ...]
    titles: bool
    index: Index
    other_index: Index
    translations: Translations | None = None

    @classmethod
    def of(
        cls, groups: Groups, *, kinds: Sequence[str] | None, bilingual: bool, lexicon: Any, least: float
    ) -> Extractor:
        """Learnt from groups; `kinds` that are asked for and cannot be had are refused."""
        there = _possible(groups, bilingual, lexicon is not None)
        if lexicon is not None and not there.keys() & set(_BY_DICTIONARY):
            raise ParameterError(
                "BilingualRanker: a lexicon says nothing without texts in another language to pair documents with: in "
                f'{groups.name}, none is marked by "other": true, or constraints is 0. Leave it out'
            )
        if kinds is not None:
            for kind in kinds:
                if kind not in there:
                    why = (
                        f"what they need is not in {groups.name}"
                        if kind in FEATURES
                        else f"there are {', '.join(FEATURES)}"
                    )
                    raise ParameterError(f"BilingualRanker: features of kind {kind!r}: {why}")
            there = {kind: why for kind, why in there.items() if kind in kinds}
        if not there:
            raise ParameterError(
                f"BilingualRanker: {groups.name} has nothing to see its candidates by. Give features, a query and "
                "texts, or a reference and texts"
            )
        members = (each for group in groups for each in group.candidates)
        others = (each for group in groups for each in group.others) if bilingual else iter(())
        if "output" in there:
            index = Index.of([words_of(group.reference) for group in groups])
        else:
            index = Index.of(_distinct(members)) if there.keys() & {"index", *_BY_DICTIONARY} else Index.of([])
        other = Index.of(_distinct(others)) if there.keys() & {"index", *_BY_DICTIONARY} else Index.of([])
        translations = None
        if there.keys() & set(_BY_DICTIONARY):
            translations = Translations.of(lexicon, index, other, least=least, lowercase=True)
        titles = any(each.title for group in groups for each in group.candidates + group.others)
        given = groups.feature_names if "given" in there else ()
        beside = groups.other_feature_names if "given" in there and bilingual else ()
        return cls(tuple(there), given, beside, titles, index, other, translations)

    @property
    def fields(self) -> tuple[str, ...]:
        """Parts of documents that similarities are of."""
        return _FIELDS if self.titles else ("text",)

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Names of all features: of candidates, of documents in the other language, of pairs."""
        of_index = (*MEASURES, *(("has-title",) if self.titles else ())) if "index" in self.kinds else ()
        of_output = OUTPUT_FEATURES if "output" in self.kinds else ()
        own = (*self.own_names, *of_index, *of_output)
        other = (*self.other_names, *(of_index if self.other_index.n_documents else ()))
        pairs = [
            f"{name}-{field}"
            for kind, names in _BY_DICTIONARY.items() if kind in self.kinds
            for field in self.fields for name in names
        ]  # fmt: skip
        return own, other, (*pairs, *(("url",) if "url" in self.kinds else ()))

    def __call__(self, group: Group, bilingual: bool = True) -> Extracted:
        """The features of a group, as they are before scaling."""
        others = group.others if bilingual else ()
        sizes = tuple(map(len, self.names))
        own = self._documents(group.candidates, group.query, self.own_names, self.index)
        if "output" in self.kinds:
            texts = [each.text for each in group.candidates]
            own = np.hstack([own, output_features(texts, group.reference, self.index)])
        other = self._documents(others, group.other_query, self.other_names, self.other_index)
        pairs = self._pairs(group.candidates, others)
        made = (own, other[:, : sizes[1]], pairs)
        return Extracted(*(each.reshape(*each.shape[:-1], n) for each, n in zip(made, sizes, strict=True)))

    def _documents(self, members: Sequence[Candidate], query: str, names: tuple[str, ...], index: Index) -> Array:
        given = np.zeros((len(members), len(names)))
        at = {name: number for number, name in enumerate(names)}
        for row, each in enumerate(members):
            for name, value in each.features.items():
                if name in at:
                    given[row, at[name]] = value
        columns: list[Array] = []
        if "index" in self.kinds:
            encoded, words = index.encode([_words(each, "all") for each in members]), words_of(query)
            columns += [measure(index, words, encoded) for measure in MEASURES.values()]
            if self.titles:
                columns.append(np.array([float(bool(each.title)) for each in members], np.float64))
        return np.hstack([given, *(column[:, None] for column in columns)])

    def _pairs(self, members: Sequence[Candidate], others: Sequence[Candidate]) -> Array:
        found: list[Array] = []
        if self.translations is not None:
            by_field = {
                field: self.translations.compare(
                    *([_words(each, field) for each in side] for side in (members, others))
                )
                for field in self.fields
            }
            found = [
                getattr(by_field[field], name)
                for kind, names in _BY_DICTIONARY.items() if kind in self.kinds
                for field in self.fields for name in names
            ]  # fmt: skip
        if "url" in self.kinds:
            found.append(np.array([[url_similarity(a.url, b.url) for b in others] for a in members], np.float64))
        shape = (len(members), len(others))
        return np.stack([each.reshape(shape) for each in found], axis=-1) if found else np.zeros((*shape, 0))

    # --- keeping

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and what a header should say."""
        arrays: dict[str, NDArray[Any]] = {}
        meta: dict[str, Any] = {
            "kinds": list(self.kinds), "own_names": list(self.own_names), "other_names": list(self.other_names),
            "titles": self.titles, "documents": [self.index.n_documents, self.other_index.n_documents],
            "translations": self.translations is not None,
        }  # fmt: skip
        for name, index in (("own", self.index), ("other", self.other_index)):
            arrays |= {f"{name}.{key}": array for key, array in collect(index, _INDEX).items()}
        if self.translations is not None:
            arrays |= {f"translations.{key}": array for key, array in collect(self.translations, _ENTRIES).items()}
        return arrays, meta

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Extractor:
        """The inverse, which trusts nothing."""
        from isogloss.layout import texts
        from isogloss.store import unprefixed

        made = []
        for name, number in zip(("own", "other"), meta["documents"], strict=True):
            found = check(unprefixed(f"{name}.", arrays), _INDEX, "the collection of this model")
            documents = integer(number, "documents", most=2**40)
            if (found["in_documents"] > documents).any() or (found["in_documents"] > found["occurrences"]).any():
                raise ValueError("a word is in more documents than there are, or than it occurs in")
            made.append(Index(Vocabulary(found["words"]), found["in_documents"], found["occurrences"], documents))
        kinds = texts(meta["kinds"], "kinds")
        if not all(kind in FEATURES for kind in kinds) or not isinstance(meta["titles"], bool):
            raise ValueError(f"features of kinds {kinds}")
        if bool(meta["translations"]) != bool(set(kinds) & set(_BY_DICTIONARY)):
            raise ValueError("similarities without a dictionary, or a dictionary for none")
        translations = None
        if meta["translations"]:
            sizes = {"sources": len(made[0].words), "targets": len(made[1].words)}
            entries = check(unprefixed("translations.", arrays), _ENTRIES, "the dictionary of this model", sizes)
            translations = Translations(made[0], made[1], entries["source"], entries["target"], entries["chance"])
        own, other = (texts(meta[name], name) for name in ("own_names", "other_names"))
        return cls(kinds, own, other, meta["titles"], made[0], made[1], translations)


_INDEX: Layout = {
    "words": Strings("types", distinct=True),
    "in_documents": Numbers("int64", "types", least=1, below=2**40),
    "occurrences": Numbers("int64", "types", least=1, below=2**40),
}
_ENTRIES: Layout = {
    "source": Numbers("int32", "entries", least=0, below="sources"),
    "target": Numbers("int32", "entries", least=0, below="targets"),
    "chance": Numbers("float64", "entries", least=0.0, below=1.0 + 1e-9),
}


def _possible(groups: Groups, bilingual: bool, lexicon: bool) -> dict[str, bool]:
    """Kinds of features that the data allow."""
    others = bilingual and any(group.others for group in groups)
    texts = any(each.text or each.title for group in groups for each in group.candidates)
    foreign = others and any(each.text or each.title for group in groups for each in group.others)
    urls = others and any(each.url for group in groups for each in group.others)
    found = {
        "given": any(each.features for group in groups for each in group.candidates),
        "index": texts and any(group.query for group in groups),
        "output": texts and any(group.reference for group in groups),
        **dict.fromkeys(_BY_DICTIONARY, texts and foreign and lexicon),
        "url": urls and any(each.url for group in groups for each in group.candidates),
    }
    return {kind: True for kind, is_there in found.items() if is_there}


def _words(document: Candidate, field: str) -> Sequence[str]:
    whole = {"title": document.title, "text": document.text, "all": f"{document.title}\n{document.text}"}
    return _cut(whole[field])


@lru_cache(1 << 12)
def _cut(text: str) -> tuple[str, ...]:
    """A document is met in many groups."""
    return tuple(words_of(text))


def _distinct(documents: Iterable[Candidate]) -> Iterable[Sequence[str]]:
    """The words of each document once, however many groups it is in."""
    seen: set[tuple[str, str]] = set()
    for each in documents:
        key = (each.title, each.text)
        if key not in seen:
            seen.add(key)
            yield _words(each, "all")
