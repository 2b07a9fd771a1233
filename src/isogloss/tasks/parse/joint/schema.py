"""Attributes and their values: the part of speech, and the features of Universal Dependencies that occur."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Column, Treebank, bundle_of, features_of
from isogloss.errors import ModelError, ParameterError, TreebankError
from isogloss.layout import texts

__all__ = ["POS", "Schema"]

POS = "upos"
LEAST_SHARE = 5e-4
"""Attributes that fewer words have are left out, unless they are asked for."""
MOST_VALUES = 255


class Schema(NamedTuple):
    """Names of attributes, the part of speech first, and their values; value 0 of all others is "", none.

    Examples
    --------
    >>> trees = Treebank.of([[{"form": "dies", "upos": "NOUN", "feats": "Case=Nom|Number=Sing"}, {"form": "it"}]])
    >>> Schema.of(trees)
    Schema(names=('upos', 'Case', 'Number'), values=(('NOUN', '_'), ('', 'Nom'), ('', 'Sing')))
    """

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, treebank: Treebank, attributes: Sequence[str] | None = None) -> Schema:
        """What a treebank has: its most frequent attributes first, or those that are named."""
        ids, vocabulary = treebank.columns["feats"]
        seen: dict[str, dict[str, int]] = {}
        for bundle, count in zip(vocabulary, np.bincount(ids, minlength=len(vocabulary)).tolist(), strict=True):
            for name, value in features_of(bundle).items() if count else ():
                counts = seen.setdefault(name, {})
                counts[value or name] = counts.get(value or name, 0) + count
        if attributes is None:
            totals = {name: sum(counts.values()) for name, counts in seen.items()}
            names = [name for name in totals if totals[name] >= LEAST_SHARE * treebank.n_words]
            names.sort(key=lambda name: (-totals[name], name))
        else:
            names = [name for name in dict.fromkeys(attributes) if name in seen]  # absent in this language: no matter
        tags = treebank.columns["upos"]
        used = np.unique(tags.ids)
        parts = tuple(sorted(tags.vocabulary[int(i)] for i in used))
        schema = cls((POS, *names), (parts, *(("", *sorted(seen[name])) for name in names)))
        for name, values in zip(schema.names, schema.values, strict=True):
            if len(values) > MOST_VALUES:
                raise TreebankError(
                    f"{treebank.name}: {name} has {len(values)} values, and {MOST_VALUES} are the most that are "
                    "possible. Name the attributes to learn: attributes=[...]"
                )
        return schema

    @classmethod
    def checked(cls, given: Mapping[str, Any]) -> Schema:
        """From what a saved model says."""
        values = tuple(texts(row, "values", cells=True) for row in given["values"])
        schema = cls(texts(given["names"], "names", cells=True), values)
        first = all(row[:1] == ("",) for row in values[1:])
        sizes = all(1 <= len(row) <= MOST_VALUES for row in values)
        if schema.names[:1] != (POS,) or len(schema.names) != len(values) or not first or not sizes:
            raise ModelError("the attributes of the saved parser do not belong together. Train it again")
        return schema

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64[n_attributes]"""
        return np.array([len(values) for values in self.values], np.int64)

    @property
    def starts(self) -> NDArray[np.int64]:
        """int64[n_attributes + 1]: where the values of each attribute start among all."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def numbers(self, treebank: Treebank) -> NDArray[np.int64]:
        """int64[n_words, n_attributes]: the value that each word has; -1 for one that is not known here."""
        out = np.zeros((treebank.n_words, len(self.names)), np.int64)
        for a in range(len(self.names)):
            column = treebank.columns["upos" if a == 0 else "feats"]
            out[:, a] = np.array([self.number(a, text) for text in column.vocabulary] or [0], np.int64)[column.ids]
        return out

    def number(self, attribute: int, text: str) -> int:
        """The value of an attribute in a part of speech or a bundle of features; -1 for one that is not known here."""
        if attribute:
            name = self.names[attribute]
            found = features_of(text)
            text = (found[name] or name) if name in found else ""
        return self.values[attribute].index(text) if text in self.values[attribute] else -1

    def columns(self, numbers: NDArray[Any]) -> tuple[Column, Column]:
        """The columns UPOS and FEATS of these values: int[n_words, n_attributes]."""
        tags = Column.of(self.values[0][v] for v in numbers[:, 0].tolist())
        unique, at = np.unique(numbers[:, 1:], axis=0, return_inverse=True)
        bundles = [
            bundle_of(
                {
                    name: "" if values[v] == name else values[v]
                    for name, values, v in zip(self.names[1:], self.values[1:], row, strict=True)
                    if v
                }
            )
            for row in unique.tolist()
        ]
        return tags, Column.of(bundles[k] for k in at.ravel().tolist())

    def check(self, name: str) -> int:
        """The number of an attribute."""
        if name not in self.names:
            raise ParameterError(f"there is no attribute {name!r}; there are {', '.join(self.names)}")
        return self.names.index(name)
