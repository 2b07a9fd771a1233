r"""Another parser's opinion of each link, as marks that a parser sees.

`OtherParser` learns a parser of its own, and says of each link whether it is in that parser's tree, how sure that
parser is, and whether it crosses a link of that tree. Of sentences to learn from it gives the opinion of parsers that
have not learnt from them (jackknifing): what a parser says of its own lesson is better than what it will ever say
again. `GivenLinks` marks links of a given tree whose words are of some kinds: with gold trees this is an oracle, which
tells how much accuracy these links cost.

References
----------
Dredze et al., Frustratingly Hard Domain Adaptation for Dependency Parsing, EMNLP-CoNLL 2007 (both). Martins, Das, Smith
and Xing, Stacking dependency parsers, EMNLP 2008. Nivre and McDonald, Integrating graph-based and transition-based
dependency parsers, ACL 2008.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError
from isogloss.layout import texts
from isogloss.progress import Progress
from isogloss.structures.batch import Stack
from isogloss.tasks.parse.views import Sight, View

if TYPE_CHECKING:
    from isogloss.tasks.parse.parser import DependencyParser

__all__ = ["CROSSES", "GivenLinks", "OtherParser", "out_of_fold"]

FAINT, LIKELY, SURE = 0.01, 0.5, 0.9
"""Borders of posteriors."""
CROSSES = 7
"""The mark of a link that crosses one of the other tree."""


def out_of_fold(parser: DependencyParser, treebank: Treebank, folds: int, progress: Progress | None = None) -> Stack:
    """Posteriors of links by parsers with the same options that have not learnt from the sentence."""
    count = min(folds, len(treebank))
    if count < 2:
        raise ParameterError("OtherParser: two sentences or more are needed for opinions of what was not learnt from")
    fold = np.random.default_rng(parser.seed).permutation(np.arange(len(treebank)) % count)
    found: list[NDArray[np.float64]] = [np.zeros((1, 1))] * len(treebank)
    for number in range(count):
        away = np.flatnonzero(fold == number)
        learnt = type(parser)(**parser.get_params()).fit(treebank.take(fold != number), progress=progress)
        for s, beliefs in zip(away.tolist(), learnt.predict_proba(treebank.take(away)), strict=True):
            found[s] = beliefs
    return _stack(found)


def _stack(arrays: Sequence[NDArray[Any]]) -> Stack:
    shapes = np.array([array.shape for array in arrays], np.int64).reshape(-1, 2)
    offsets = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))]).astype(np.int64)
    return Stack(np.concatenate([np.zeros(0), *(array.ravel() for array in arrays)]), offsets, shapes)


def marks_of(beliefs: Stack) -> Stack:
    """What posteriors of a parser say of each link, as marks.

    1 and 2 for links that are not the best of their word, but are not faint; 3 to 6 for the best, by how sure the
    parser is; `CROSSES` for faint ones that cross the best link of another word.
    """
    from isogloss.tasks.parse._numba.marks import mark_links

    marks = np.zeros(len(beliefs.values), np.uint8)
    borders = np.array([FAINT, 0.1, LIKELY, SURE])
    mark_links(beliefs.offsets, beliefs.shapes[:, 0], beliefs.values, borders, marks)
    return beliefs.like(marks.astype(np.float64))


class OtherParser(View):
    """What another parser thinks of links.

    Parameters
    ----------
    parser : DependencyParser
        Its options say what the other parser is like; it learns when this view does.
    folds : int
        Parts of the lesson; opinions of each are those of a parser that has learnt from the others.
    """

    kind: ClassVar[str] = "parser"
    marks_links = True

    def __init__(self, parser: DependencyParser, folds: int = 5) -> None:
        if folds < 2:
            raise ParameterError(f"OtherParser: folds should be 2 or more, not {folds!r}")
        self.parser, self.folds = parser, folds

    def learn(self, treebank: Treebank, progress: Progress | None = None) -> Sight:
        """Learn from all sentences, and give opinions that are not of their own lesson."""
        beliefs = out_of_fold(self.parser, treebank, self.folds, progress)
        self.parser = type(self.parser)(**self.parser.get_params()).fit(treebank, progress=progress)
        return self._sight(treebank, beliefs)

    def see(self, treebank: Treebank) -> Sight:
        """The opinions of the parser that was learnt."""
        return self._sight(treebank, self.parser.predict_proba(treebank))

    def _sight(self, treebank: Treebank, beliefs: Stack) -> Sight:
        return Sight.nothing(treebank.n_words)._replace(marks=(marks_of(beliefs),))

    def to_parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """For `isogloss.store`."""
        from isogloss.store import hold

        arrays, about = hold("parser", self.parser)
        return arrays, {"kind": self.kind, "parser": about}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Self:
        """The inverse of `to_parts`."""
        from isogloss.store import held
        from isogloss.tasks.parse.parser import DependencyParser

        parser = held("parser", arrays, meta["parser"], DependencyParser)
        if parser._learnt.views:
            raise ValueError("the other parser has views of its own")
        return cls(parser)


class GivenLinks(View):
    """Marks the links of the trees that a treebank has, where head and child have one of some tags each.

    With gold trees in training and in testing this is an oracle: what accuracy it adds is what these links cost.

    Parameters
    ----------
    heads, children : sequence of str
        Tags (UPOS, or XPOS where there is no UPOS), or beginnings of them that end in ``*``; empty for all.
    """

    kind: ClassVar[str] = "given"
    marks_links = True

    def __init__(self, heads: Sequence[str] = (), children: Sequence[str] = ()) -> None:
        self.heads, self.children = tuple(heads), tuple(children)

    def see(self, treebank: Treebank) -> Sight:
        """1 on each of these links."""
        from isogloss.tasks.parse.adapting.decomposing import tags_of

        ids, vocabulary = tags_of(treebank)
        as_head, as_child = (
            np.array([not wanted or any(_fits(tag, one) for one in wanted) for tag in vocabulary], bool)[ids]
            for wanted in (self.heads, self.children)
        )
        marked = []
        for start, stop in zip(treebank.offsets[:-1].tolist(), treebank.offsets[1:].tolist(), strict=True):
            n = stop - start
            grid, heads = np.zeros((n + 1, n + 1)), treebank.heads[start:stop]
            children = np.flatnonzero((heads > 0) & as_child[start:stop])
            children = children[as_head[start + heads[children] - 1]]
            grid[heads[children], children + 1] = 1
            marked.append(grid)
        return Sight.nothing(treebank.n_words)._replace(marks=(_stack(marked),))

    def to_parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """For `isogloss.store`."""
        return {}, {"kind": self.kind, "heads": list(self.heads), "children": list(self.children)}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Self:
        """The inverse of `to_parts`."""
        return cls(texts(meta["heads"], "heads"), texts(meta["children"], "children"))


def _fits(tag: str, wanted: str) -> bool:
    return tag.startswith(wanted[:-1]) if wanted.endswith("*") else tag == wanted
