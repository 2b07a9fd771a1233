"""How many words have the right value of each attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Column, Treebank, features_of
from isogloss.metrics.parsing import ParseScore, score_trees
from isogloss.tasks.parse.joint.schema import POS

__all__ = ["JointScore", "attribute_scores", "joint_score", "right_values"]


@dataclass(frozen=True, kw_only=True, repr=False)
class JointScore(ParseScore):
    """A `ParseScore` with every attribute apart.

    Parameters
    ----------
    attributes : mapping of str to dict
        For ``upos`` and each feature, in percent: ``all`` words that are right, and of those that have a value,
        ``non_null``.
    """

    attributes: Mapping[str, Mapping[str, float]] = field(hash=False)

    def _further(self) -> dict[str, Any]:
        return {**super()._further(), "attributes": self.attributes}


def joint_score(predicted: Treebank, gold: Treebank, names: Sequence[str]) -> JointScore:
    """What `score_trees` finds, and the attributes with these names."""
    found = score_trees(predicted, gold)
    known = {each.name: getattr(found, each.name) for each in fields(found)}
    return JointScore(**known, attributes=attribute_scores(predicted, gold, names))


def _values(treebank: Treebank, name: str) -> NDArray[np.object_]:
    """The value of an attribute of each word, "" for none."""
    column: Column = treebank.columns["upos" if name == POS else "feats"]
    if name == POS:
        texts = list(column.vocabulary)
    else:
        bundles = [features_of(text) for text in column.vocabulary]
        texts = [(bundle[name] or name) if name in bundle else "" for bundle in bundles]
    return np.array([*texts, ""], object)[column.ids]


def right_values(predicted: Treebank, gold: Treebank, name: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """bool[n_words]: which words have the right value of an attribute, and which have one at all in gold."""
    truth = _values(gold, name)
    return np.asarray(_values(predicted, name) == truth), np.asarray(truth != "")


def attribute_scores(predicted: Treebank, gold: Treebank, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """For each attribute, in percent: ``all`` words that are right, and of those that have a value, ``non_null``.

    Examples
    --------
    >>> gold = Treebank.of([[{"form": "a", "upos": "X", "feats": "Case=Nom"}, {"form": "b", "upos": "X"}]])
    >>> attribute_scores(gold.with_columns(feats=["Case=Acc", "_"]), gold, ["upos", "Case"])
    {'upos': {'all': 100.0, 'non_null': 100.0}, 'Case': {'all': 50.0, 'non_null': 0.0}}
    """
    scores = {}
    for name in names:
        right, there = right_values(predicted, gold, name)
        scores[name] = {
            "all": 100 * float(right.mean()) if len(right) else 0.0,
            "non_null": 100 * float(right[there].mean()) if there.any() else 0.0,
        }
    return scores
