"""What a dependency parser has learnt, and how it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.errors import ModelError
from isogloss.layout import integer, number, texts
from isogloss.structures.loopy import CONSTRAINTS
from isogloss.structures.tree_parts import FAMILIES, Candidates
from isogloss.tasks.parse.features import FILTER_TEMPLATES
from isogloss.tasks.parse.filtering import LinkFilter
from isogloss.tasks.parse.held_out import Scorer
from isogloss.tasks.parse.inference import MOST_ROUNDS, Shape
from isogloss.tasks.parse.labelled import JointScorer, LabelScorer
from isogloss.tasks.parse.labels import Labeller
from isogloss.tasks.parse.scoring import FeatureSet, PartScorer
from isogloss.tasks.parse.views import View, seen_by, views_from
from isogloss.tasks.parse.words import Columns, Words, encode

if TYPE_CHECKING:
    from isogloss.data.treebank import Treebank
    from isogloss.tasks.tag import Tagger

__all__ = ["Fitted"]

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was learnt: which columns are looked at, weights of parts, and the models before and after them."""

    columns: Columns
    shape: Shape
    scorer: PartScorer
    filter: LinkFilter | None = None
    joint: LabelScorer | None = None
    labeller: Labeller | None = None
    tagger: Tagger | None = None
    views: tuple[View, ...] = ()

    def encode(self, seen: Treebank, offsets: NDArray[np.int64] | None = None) -> Words:
        """Sentences with the tags that the parser looks at, as codes."""
        return encode(seen, self.columns, offsets, seen_by(self.views, seen) if self.views else None)

    @property
    def tree_scorer(self) -> Scorer:
        """What scores trees: parts, with labels summed out of links if they are joint."""
        return self.scorer if self.joint is None else JointScorer(self.scorer, self.joint)

    def candidates(self, words: Words, given: NDArray[np.int32] | None = None) -> Candidates:
        """The links that are looked at; `given` are heads that are known, −1 elsewhere."""
        return Candidates.all(words.lengths) if self.filter is None else self.filter.candidates(words, given=given)

    # --- keeping

    def to_parts(self) -> tuple[Arrays, dict[str, Any]]:
        """Arrays and a header for `isogloss.store`."""
        arrays: Arrays = {"table": self.scorer.table.slots}
        meta: dict[str, Any] = {"columns": self.columns._asdict(), "shape": asdict(self.shape), "filter": None}
        if self.filter is not None:
            arrays["filter.table"] = self.filter.scorer.table.slots
            meta["filter"] = {"shape": asdict(self.filter.shape), "threshold": self.filter.threshold}
        if self.joint is not None:
            arrays |= store.prefixed("joint.", self.joint.to_arrays())
        if self.labeller is not None:
            arrays |= store.prefixed("label.", self.labeller.to_arrays())
        if self.tagger is not None:
            parts = self.tagger.to_parts()
            arrays |= store.prefixed("tagger.", parts["arrays"])
            meta["tagger"] = {"options": parts["options"], "meta": parts["meta"]}
        if self.views:
            made = [view.to_parts() for view in self.views]
            for number, (own, _) in enumerate(made):
                arrays |= store.prefixed(f"view{number}.", own)
            meta["views"] = [about for _, about in made]
        return arrays, meta

    @classmethod
    def from_parts(
        cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any], templates: tuple[str, ...]
    ) -> Fitted:
        """The inverse of `to_parts`."""
        columns = Columns.checked(meta["columns"])
        chosen = None
        if meta["filter"] is not None:
            quick = FeatureSet.of(columns._replace(more=()), (), FILTER_TEMPLATES)
            scorer = PartScorer.ready(quick, arrays["filter.table"], "filter.table")
            threshold = number(meta["filter"]["threshold"], "threshold", least=0.0, most=1.0)
            chosen = LinkFilter(scorer, replace(_shape(meta["filter"]["shape"]), families=()), threshold)
        joint, labels, tagger = *(store.unprefixed(name, arrays) for name in ("joint.", "label.")), None
        if meta.get("tagger") is not None:
            from isogloss.tasks.tag import Tagger

            own = store.unprefixed("tagger.", arrays)
            tagger = Tagger.from_parts(meta["tagger"]["options"], own, meta["tagger"]["meta"])
        views = views_from(arrays, meta.get("views", ()), _views())
        if tuple(name for view in views for name in view.atoms) != columns.more:
            raise ModelError("the saved parser looks at other codes of words than its views give. Train it again")
        shape = _shape(meta["shape"])
        features = FeatureSet.of(columns, shape.families, templates)
        return cls(
            columns, shape, PartScorer.ready(features, arrays["table"], "table"), filter=chosen,
            joint=LabelScorer.from_arrays(joint, columns) if joint else None,
            labeller=Labeller.from_arrays(labels, columns) if labels else None, tagger=tagger, views=views,
        )  # fmt: skip


def _views() -> Mapping[str, type[View]]:
    """The views that a parser may have, by kind."""
    from isogloss.tasks.parse.adapting import GivenLinks, OtherParser
    from isogloss.tasks.parse.views import WordTable

    return {view.kind: view for view in (WordTable, OtherParser, GivenLinks)}


def _shape(given: Mapping[str, Any]) -> Shape:
    rounds = integer(given["rounds"], "rounds", least=1, most=MOST_ROUNDS)
    shape = Shape(str(given["constraint"]), bool(given["single_root"]), texts(given["families"], "families"), rounds)
    if shape.constraint not in CONSTRAINTS or not set(shape.families) <= set(FAMILIES):
        raise ModelError("the saved parser has parts that this version does not know. Train it again, or update")
    return shape
