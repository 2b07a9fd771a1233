"""What log-linear emissions see of a word type: the word itself if it is frequent, its ending, how it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.learners.multinomials import LogLinearMultinomial

__all__ = ["FEATURES", "LogLinearEmissions", "WordFeatures"]

Array = NDArray[np.float64]

FEATURES: dict[str, tuple[str, ...]] = {
    "paper": ("word", "hyphen", "capital", "suffix2", "suffix3", "digit"),
    "rich": (
        "word", "hyphen", "capital", "capitals", "suffix1", "suffix2", "suffix3", "suffix4", "suffix5", "digit",
    ),
}  # fmt: skip
"""Sets of templates by name. "paper": table 3 of Li, Graça and Taskar, Wiki-ly Supervised Part-of-Speech Tagging,
EMNLP 2012."""

_HYPHENS = frozenset("-‐‑–")
_FLAGS: dict[str, Callable[[str], bool]] = {
    "hyphen": lambda word: not _HYPHENS.isdisjoint(word),
    "capital": lambda word: word[:1].isupper(),
    "capitals": lambda word: len(word) > 1 and word.isupper(),
    "digit": lambda word: any(letter.isdigit() for letter in word),
}


@dataclass(frozen=True)
class WordFeatures:
    """Features of word types, numbered.

    Parameters
    ----------
    templates : tuple of str
        "word" (in small letters), "suffix1" … "suffix9" and "prefix1" … "prefix9" (in small letters), "hyphen",
        "capital" (the first letter), "capitals" (all letters), "digit".
    names : tuple of str
        The features: a template, or ``template=value``.

    Examples
    --------
    >>> types = ["walks", "talks", "Paris"]
    >>> found = WordFeatures.learnt(types, [30, 1, 1], ("word", "suffix2", "capital"), min_count=10, min_types=1)
    >>> found.names
    ('word=walks', 'suffix2=ks', 'capital')
    >>> found.matrix(["Talks"]).toarray().tolist()
    [[0.0, 1.0, 1.0]]
    """

    templates: tuple[str, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        for template in self.templates:
            affix = template[:-1] in ("suffix", "prefix") and template[-1] in "123456789"
            if not affix and template != "word" and template not in _FLAGS:
                known = ", ".join(["word", *_FLAGS, "suffix1", "prefix1"])
                raise ParameterError(f"WordFeatures: no template {template!r}; there are {known} and so on")

    @classmethod
    def learnt(
        cls,
        types: Sequence[str],
        counts: ArrayLike,
        templates: str | Iterable[str] = "paper",
        *,
        min_count: int = 10,
        min_types: int = 20,
    ) -> Self:
        """The features that a text has.

        Parameters
        ----------
        types : sequence of str
        counts : int[n_types]
            How often each occurs in the text.
        templates : str or iterable of str
            A name of `FEATURES`, or templates.
        min_count : int
            A word must occur more often than this to be a feature.
        min_types : int
            A beginning or ending must be that of more types than this.
        """
        if isinstance(templates, str) and templates not in FEATURES:
            raise ParameterError(f"WordFeatures: no set of templates {templates!r}; there are {', '.join(FEATURES)}")
        chosen = FEATURES[templates] if isinstance(templates, str) else tuple(templates)
        empty = cls(chosen, ())
        tally: Counter[str] = Counter()
        often = np.asarray(counts, np.int64).tolist()
        small: set[str] = set()
        for word, count in zip(types, often, strict=True):
            if not count:
                continue
            again = word.lower() in small  # "The" and "the" are one type where case does not count
            small.add(word.lower())
            for name in empty._of(word):
                template = name.partition("=")[0]
                tally[name] += count if template == "word" else not again if "=" in name else 1
        least = {"word": min_count}

        def kept(name: str) -> bool:
            template, valued, _ = name.partition("=")
            return tally[name] > least.get(template, min_types) if valued else True

        return cls(chosen, tuple(name for name in tally if kept(name)))

    def _of(self, word: str) -> Iterator[str]:
        small = word.lower()
        for template in self.templates:
            if template in _FLAGS:
                if _FLAGS[template](word):
                    yield template
            elif template == "word":
                yield f"word={small}"
            elif len(small) >= (n := int(template[-1])):
                yield f"{template}={small[-n:] if template[0] == 's' else small[:n]}"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def of(self, word: str) -> list[int]:
        """The numbers of the features that a word has."""
        return [self._numbers[name] for name in self._of(word) if name in self._numbers]

    def matrix(self, types: Sequence[str]) -> Any:
        """Sparse float64[n_types, n_features]: 1 where a type has a feature."""
        from scipy.sparse import csr_matrix

        rows = [self.of(word) for word in types]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        columns = np.array([number for row in rows for number in row], np.int64)
        return csr_matrix((np.ones(len(columns)), columns, indptr), shape=(len(rows), len(self.names)))


class LogLinearEmissions:
    r"""Emissions of word types from labels, :math:`p(x \mid y) \propto \exp(\lambda_y \cdot f(x))`.

    Types with the same features have the same probability, and most rare types share theirs with many others: they are
    fitted as one, with a weight. That is the same model, ten times as fast.

    Parameters
    ----------
    features : sparse matrix [n_types, n_features]
    k : int
        Labels.
    l2 : float
        1 / variance of the prior on weights.
    allowed : bool[k, n_types], optional
        Types over which the emissions of each label are normalised; all without it.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> emissions = LogLinearEmissions(csr_matrix([[1.0, 0], [1, 0], [0, 1]]), 1, l2=0.01)
    >>> weights = emissions.fit([[4.0, 0.0, 4.0]])
    >>> np.exp(emissions.table(weights)).round(3).tolist()
    [[0.25, 0.25, 0.5]]
    """

    def __init__(self, features: Any, k: int, *, l2: float, allowed: NDArray[np.bool_] | None = None) -> None:
        from scipy.sparse import csr_matrix

        rows = csr_matrix(features, dtype=np.float64)
        rows.sort_indices()
        masks = np.zeros((rows.shape[0], 0), np.bool_) if allowed is None else np.ascontiguousarray(allowed.T)
        groups: dict[bytes, int] = {}
        first: list[int] = []
        of_type = np.empty(rows.shape[0], np.int64)
        ends = rows.indptr.tolist()
        for x in range(rows.shape[0]):
            here = slice(ends[x], ends[x + 1])
            key = masks[x].tobytes() + rows.indices[here].tobytes() + rows.data[here].tobytes()
            of_type[x] = groups.setdefault(key, len(groups))
            if of_type[x] == len(first):
                first.append(x)
        self.k, self.groups, self.n_types = k, of_type, rows.shape[0]
        self._sizes = np.log(np.bincount(of_type, minlength=len(first)))
        self.model = LogLinearMultinomial.conjoined(
            rows[first],
            k,
            l2=l2,
            allowed=None if allowed is None else allowed[:, first],
            base=np.tile(self._sizes, k),
        )

    @property
    def n_weights(self) -> int:
        return self.model.n_weights

    def _grouped(self, counts: ArrayLike) -> Array:
        """float64[k, n_groups] from float64[k, n_types]."""
        return np.stack([np.bincount(self.groups, row, len(self._sizes)) for row in np.asarray(counts, np.float64)])

    def fit(self, counts: ArrayLike, start: Array | None = None, *, tolerance: float = 1e-6, steps: int = 50) -> Array:
        """Weights for expected counts float64[k, n_types]; see `LogLinearMultinomial.fit`."""
        return self.model.fit(self._grouped(counts), start, tolerance=tolerance, steps=steps).weights

    def gradient(self, weights: Array, counts: ArrayLike) -> Array:
        """float64[n_weights]: of Σ counts log p(x|y) and the prior."""
        return self.model.objective(weights, self._grouped(counts))[1]

    def log_prior(self, weights: Array) -> float:
        return self.model.log_prior(weights)

    def table(self, weights: Array) -> Array:
        """float64[k, n_types]: log p(x|y)."""
        logs = self.model.log_probs(weights).reshape(self.k, -1) - self._sizes
        return np.ascontiguousarray(logs[:, self.groups])

    def normalisers(self, weights: Array) -> Array:
        """float64[k]: log Σ_x exp(λ_y · f(x)), by which other types can be scored."""
        logs = self.model.log_probs(weights).reshape(self.k, -1) - self._sizes
        at, rows = np.isfinite(logs).argmax(axis=1), np.arange(self.k)
        scores = self.model._scores(weights).reshape(self.k, -1)
        return np.asarray(scores[rows, at] - logs[rows, at])
