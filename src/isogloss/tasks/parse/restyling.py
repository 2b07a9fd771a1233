r"""Learning another annotation style from a few trees, by looking at the old style's trees of the same sentences.

.. math:: p(T \mid T', W) \propto \exp \sum_{x \to y \in T} w \cdot f(x, y, W) + v \cdot g(x, y, T', W)

Features f are those of any parser, here without words, since there are few trees; g are those of a quasi-synchronous
grammar: how x and y stand to each other in the old tree T' (`isogloss.tasks.parse.configurations`), with their tags.
Sums over all trees T are exact.

References
----------
Smith, PhD thesis, Johns Hopkins 2010, sections 4.1 to 4.4. Smith and Eisner, Parser adaptation and projection with
quasi-synchronous grammar features, EMNLP 2009. We differ: paths through the old tree with its relations are features
as well, and relations of the new style are learnt, as changes of old ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.features import Axis, Index, Parts, Role, Sparse, Templates
from isogloss.features.scorer import TemplateScorer
from isogloss.learners.chain_model import ChainModel, LabelPairs, NodeFeatures
from isogloss.learners.loglinear import Lbfgs, Likelihood, LinearModel
from isogloss.learners.runner import run
from isogloss.structures.base import Array, kept
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.parse.configurations import configurations, paths
from isogloss.tasks.parse.inference import Shape
from isogloss.tasks.parse.training import KnownHeads
from isogloss.tasks.parse.words import ATOMS, PAD, Columns, Words, code_of, encode

__all__ = [
    "LABEL_TEMPLATES", "PENALTIES", "Edits", "LabelLesson", "Learnt", "LinkLesson", "OldTrees", "choose",
    "given_relations", "label_scores", "link_templates", "trees_of",
]  # fmt: skip

TARGET_TEMPLATES = (
    "head.tag & child.tag & direction", "head.fine & child.fine & direction", "head.tag & child.tag & reach",
    "child.tag & reach", "head.tag & reach", "head.tag & child.lemma & direction", "head.lemma & child.tag & direction",
    "head.tag & child.tag[-1] & child.tag & direction", "head.tag & child.tag & child.tag[+1] & direction",
    "head.tag[-1] & head.tag & child.tag & direction", "head.tag & head.tag[+1] & child.tag & direction",
)  # fmt: skip
"""f: what is seen of a link by itself; `reach` is direction and length."""

SOURCE_TEMPLATES = (
    "configuration", "configuration & direction",
    "configuration & head.tag", "configuration & child.tag", "configuration & head.tag & child.tag",
    "configuration & head.fine", "configuration & child.fine", "configuration & head.fine & child.fine",
    "configuration & head.tag & child.tag & direction",
)  # fmt: skip
"""g: how the words stand to each other in the old tree, with their tags, coarse and fine."""

RELATION_TEMPLATES = (
    "path", "path & head.tag", "path & child.tag", "path & head.tag & child.tag", "inner", "inner & child.tag",
    "inner & head.tag & child.tag", "way & head.tag & child.tag", "way & child.tag", "way & child.relation",
    "configuration & child.relation", "configuration & head.relation",
    "configuration & head.relation & child.relation", "configuration & child.relation & child.above",
)  # fmt: skip
"""The same with relations of the old tree, and whole paths through it; ours."""

LABEL_TEMPLATES = (
    "child.tag", "child.relation", "child.relation & child.tag", "child.relation & child.above", "child.above",
    "head.tag & child.tag", "head.fine & child.fine", "path", "path & child.tag", "way & child.tag", "inner",
    "configuration & child.relation", "configuration & child.relation & head.relation", "configuration & head.relation",
    "configuration & head.tag & child.tag", "head.relation & child.relation & child.above", "child.lemma & child.tag",
)  # fmt: skip
"""What decides a relation of a link of the new tree."""

PENALTIES = (1.0, 0.3, 0.1, 0.03)
"""Among these λ₂ is chosen, from the strongest to the weakest."""
USUAL_PENALTY = 0.3
"""Where there are too few trees to choose."""
TOLERANCE = 1e-3
_LENGTHS = (1, 2, 3, 4, 5, 8, 13)
"""Where bins of lengths begin."""


def link_templates(relations: bool) -> tuple[str, ...]:
    """What links are seen by, with the relations of the old tree or without."""
    return TARGET_TEMPLATES + SOURCE_TEMPLATES + (RELATION_TEMPLATES if relations else ())


# --- what is seen ---------------------------------------------------------------------------------------------------


class OldTrees:
    """Sentences with trees of the old style, as features look at them.

    Parameters
    ----------
    seen : Treebank
        With the tags that are looked at, and heads and relations of the old style.
    columns : Columns
    offsets : int64[n_sentences + 1], optional
        Where sentences begin and end, if it is not as in the treebank: pieces of very long ones.
    """

    def __init__(self, seen: Treebank, columns: Columns, offsets: NDArray[np.int64] | None = None) -> None:
        self.offsets = seen.offsets if offsets is None else offsets
        self.lengths = np.diff(self.offsets)
        self.heads = _within(seen.heads, seen.offsets, self.offsets)
        words = encode(seen, columns, self.offsets)
        relations = _relation_codes(seen)
        nodes = self._nodes(words)
        tags = words.codes[nodes, ATOMS.index("tag")]
        own = np.arange(len(self.heads)) + np.repeat(np.arange(1, len(self.lengths) + 1), self.lengths)
        self.node_offsets = np.concatenate([[0], np.cumsum(self.lengths + 1)]).astype(np.int64)
        above = self.node_offsets[:-1].repeat(self.lengths) + np.maximum(self.heads, 0)  # of words, as nodes
        of_nodes = np.full(len(nodes), -1, np.int64)
        of_nodes[own] = relations.astype(np.int64)
        over = np.full(len(nodes), -1, np.int64)
        over[own] = np.where(self.heads > 0, of_nodes[above], -1)
        atoms = {atom: words.codes[nodes, i].astype(np.int64) for i, atom in enumerate(ATOMS)}
        self.axis = Axis(self.node_offsets, **atoms, relation=of_nodes, above=over)
        self._pairs = configurations(self.heads, self.offsets)
        self._paths = paths(self.heads, self.offsets, relations, tags[own])

    @staticmethod
    def _nodes(words: Words) -> NDArray[np.int64]:
        """Where the root and the words of all sentences stand among the rows of `words`."""
        sizes = words.lengths + 1
        first = np.cumsum(sizes) - sizes
        return np.asarray(np.arange(int(sizes.sum())) + np.repeat(words.starts + PAD - first, sizes))

    def __len__(self) -> int:
        return len(self.lengths)

    def parts(
        self, sentences: NDArray[np.int64], head: NDArray[np.int32], child: NDArray[np.int32], counts: NDArray[np.int64]
    ) -> Parts:
        """Links of some sentences, `counts` of each, as templates look at them."""
        which = np.repeat(sentences, counts)
        sizes = self.lengths[which] + 1
        cell = self._pairs.offsets[which] + head.astype(np.int64) * sizes + child
        right = child > head
        length = np.searchsorted(_LENGTHS, np.abs(child - head), side="right")
        columns = {
            "direction": right.astype(np.int64),
            "reach": np.where(right, length, -length) + len(_LENGTHS),
            "configuration": self._pairs.values[cell].astype(np.int64),
            "path": self._paths.relations[cell],
            "inner": self._paths.inner[cell],
            "way": self._paths.tags[cell],
        }
        first = self.node_offsets[which]
        roles = {"head": Role(self.axis, first + head), "child": Role(self.axis, first + child)}
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Parts(int(offsets[-1]), offsets, roles, columns)

    def links(self, sentences: NDArray[np.int64]) -> tuple[TreeParts, Parts]:
        """All links that some sentences may have."""
        layout = TreeParts.of(Candidates.all(self.lengths[sentences]))
        return layout, self.parts(sentences, layout.head, layout.child, np.diff(layout.link_offsets))

    def tree(self, sentences: NDArray[np.int64], heads: NDArray[np.int32]) -> Parts:
        """The links of trees: one for each word, heads of −1 counting as the root."""
        lengths = self.lengths[sentences]
        child = np.arange(1, len(heads) + 1) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return self.parts(sentences, np.maximum(heads, 0), child.astype(np.int32), lengths)


def _relation_codes(seen: Treebank) -> NDArray[np.uint64]:
    ids, vocabulary = seen.columns["deprel"]
    return np.array([code_of("attribute", name) for name in vocabulary], np.uint64)[ids]


def _within(heads: NDArray[np.int32], offsets: NDArray[np.int64], pieces: NDArray[np.int64]) -> NDArray[np.int32]:
    """Heads within pieces of sentences; those in another piece become the root."""
    if len(offsets) == len(pieces):
        return heads
    sentence = np.searchsorted(offsets, pieces[:-1], side="right") - 1
    lengths = np.diff(pieces)
    shift = np.repeat(pieces[:-1] - offsets[sentence], lengths)
    moved = heads - shift
    outside = (moved < 1) | (moved > np.repeat(lengths, lengths))
    return np.where(heads < 0, -1, np.where(outside, 0, moved)).astype(np.int32)


# --- what is learnt -------------------------------------------------------------------------------------------------


class Learnt(NamedTuple):
    """Features and their weights.

    Parameters
    ----------
    numbering : Index
    weights : float64[n_features], or float64[n_pairs] for labels
    pairs : LabelPairs, optional
        Which features have weights for which labels; None for links, whose features have one weight each.
    """

    numbering: Index
    weights: Array
    pairs: LabelPairs | None = None


@dataclass(frozen=True, eq=False)
class LinkLesson:
    """Links of new trees, beside old trees of the same sentences.

    Parameters
    ----------
    old : OldTrees
    heads : int32[n_words]
        Of the new style; −1 where not known.
    shape : Shape
    templates : Templates
    iterations : int
        Steps of L-BFGS, at most.
    """

    old: OldTrees
    heads: NDArray[np.int32]
    shape: Shape
    templates: Templates
    iterations: int

    def learn(self, sentences: NDArray[np.int64], penalties: Sequence[float]) -> Iterator[Learnt]:
        """Weights for each penalty in turn, from where the one before ended."""
        layout, parts = self.old.links(sentences)
        index = self.templates.index(parts)
        objective = self._objective(sentences, layout, self.templates.matrix(parts, index))
        for weights in _weights(objective, penalties, self.iterations):
            yield Learnt(index, weights)

    def loss(self, sentences: NDArray[np.int64], learnt: Learnt) -> float:
        """−Σ log p(new tree) of some sentences."""
        layout, parts = self.old.links(sentences)
        objective = self._objective(sentences, layout, self.templates.matrix(parts, learnt.numbering))
        return -objective.add_gradient(learnt.weights, np.zeros(len(learnt.weights)))

    def _objective(self, sentences: NDArray[np.int64], layout: TreeParts, features: Sparse) -> Likelihood:
        trees = self.shape.trees(layout, np.zeros(layout.n_parts))
        model, heads = LinearModel(trees, features), _of(sentences, self.heads, self.old.offsets)
        if heads.min(initial=0) >= 0:
            return Likelihood(model, soft=layout.stack(layout.indicate(heads)))
        offsets = np.concatenate([[0], np.cumsum(layout.lengths)]).astype(np.int64)
        return Likelihood(model, target=KnownHeads(heads, offsets, np.arange(len(sentences))))


def trees_of(
    old: OldTrees, sentences: NDArray[np.int64], templates: Templates, learnt: Learnt, shape: Shape
) -> LoopyTrees:
    """Distributions over the new trees of some sentences."""
    layout, parts = old.links(sentences)
    return shape.trees(layout, kept(TemplateScorer(templates, parts, learnt.numbering).scores(learnt.weights)))


def _of(sentences: NDArray[np.int64], values: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[Any]:
    """What the words of some sentences have."""
    each = [values[offsets[s] : offsets[s + 1]] for s in sentences.tolist()]
    return np.concatenate([np.zeros(0, values.dtype), *each])


def _weights(objective: Likelihood, penalties: Sequence[float], iterations: int) -> Iterator[Array]:
    weights = None
    for l2 in penalties:
        learner = Lbfgs(objective, l2=l2)
        weights = run(learner, learner.init(weights), iterations=iterations, tolerance=TOLERANCE).state.weights
        yield weights


def choose(
    lesson: LinkLesson | LabelLesson, sentences: NDArray[np.int64], folds: int, seed: int
) -> tuple[float, NDArray[np.float64]]:
    """The penalty with the least loss on trees that were left out, and the losses of all `PENALTIES`."""
    losses = np.zeros(len(PENALTIES))
    if len(sentences) < 2:
        return USUAL_PENALTY, losses
    shuffled = np.random.default_rng(seed).permutation(sentences)
    for fold in range(min(folds, len(sentences))):
        out = np.zeros(len(shuffled), np.bool_)
        out[fold :: min(folds, len(sentences))] = True
        for i, learnt in enumerate(lesson.learn(np.sort(shuffled[~out]), PENALTIES)):
            losses[i] += lesson.loss(np.sort(shuffled[out]), learnt)
    return PENALTIES[int(losses.argmin())], losses


# --- relations ------------------------------------------------------------------------------------------------------


class Edits:
    """Relations of the new style as changes of old ones, so that those which few trees do not have stay possible.

    A change takes the old relation of the word, of its old head, or of the head of that; drops what follows some colon,
    and adds something: ``own -co +`` makes ``obj`` of ``obj:co``, and ``above - +co`` gives a word the relation of its
    old head, with ``:co``. All else is a relation by itself.

    Parameters
    ----------
    names : sequence of str
        Changes and relations, as `label_of` writes them.

    Examples
    --------
    >>> Edits.label_of("obj:co", ("conj", "obj", "root")), Edits.label_of("case", ("obl", "root", "_"))
    ('above - +co', '= case')
    >>> Edits(["above - +co", "= case"]).applied(("conj", "iobj", "root"))
    ['iobj:co', 'case']
    """

    SOURCES = ("own", "above", "over")

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._parsed = [self._parse(name) for name in self.names]

    @classmethod
    def label_of(cls, relation: str, given: Sequence[str]) -> str:
        """The change that makes a relation of those of the word, its old head and the head of that."""
        wanted = relation.split(":")
        for source, text in zip(cls.SOURCES, given, strict=True):
            have = text.split(":")
            same = 0
            while same < min(len(have), len(wanted)) and have[same] == wanted[same]:
                same += 1
            if same and text != "_":
                return f"{source} -{':'.join(have[same:])} +{':'.join(wanted[same:])}"
        return f"= {relation}"

    @classmethod
    def _parse(cls, name: str) -> tuple[int, str, str]:
        if name.startswith("= ") and len(name) > 2:
            return -1, "", name[2:]
        source, _, rest = name.partition(" -")
        drop, _, add = rest.partition(" +")
        if source not in cls.SOURCES or " +" not in rest:
            raise ValueError(f"{name!r} is no change of a relation")
        return cls.SOURCES.index(source), drop and ":" + drop, add and ":" + add

    def applied(self, given: Sequence[str]) -> list[str]:
        """What every change makes of relations; "" where one cannot be made."""
        found = []
        for source, drop, add in self._parsed:
            text = given[source] if source >= 0 else ""
            if source >= 0 and (text in ("", "_") or not text.endswith(drop) or text == drop):
                found.append("")
            else:
                found.append(text.removesuffix(drop) + add)
        return found


def given_relations(seen: Treebank) -> list[tuple[str, str, str]]:
    """The old relations of every word, of its head, and of the head of that; ``_`` where there is none."""
    found: list[tuple[str, str, str]] = []
    for s in range(len(seen)):
        start, stop = seen.offsets[s : s + 2].tolist()
        heads, names = [0, *seen.heads[start:stop].tolist()], ("_", *seen.strings("deprel", s))
        above = [max(head, 0) for head in heads]
        found += [(names[i], names[above[i]], names[above[above[i]]]) for i in range(1, len(names))]
    return found


@dataclass(frozen=True, eq=False)
class LabelLesson:
    """Relations of the links of new trees: maximum entropy over changes of old relations, link by link.

    Parameters
    ----------
    old : OldTrees
    heads : int32[n_words]
        Of the new style.
    labels : int64[n_words]
        Numbers of changes, −1 where the relation or the head is not known.
    k : int
        Number of changes.
    templates : Templates
    iterations : int
    """

    old: OldTrees
    heads: NDArray[np.int32]
    labels: NDArray[np.int64]
    k: int
    templates: Templates
    iterations: int

    def learn(self, sentences: NDArray[np.int64], penalties: Sequence[float]) -> Iterator[Learnt]:
        """Weights for each penalty in turn, from where the one before ended."""
        parts = self._parts(sentences)
        index, labels = self.templates.index(parts), self._labels(sentences)
        features = self.templates.matrix(parts, index)
        pairs = LabelPairs.supported(features, labels, self.k)
        for weights in _weights(self._objective(features, pairs, labels), penalties, self.iterations):
            yield Learnt(index, weights[: len(pairs.labels)], pairs)

    def loss(self, sentences: NDArray[np.int64], learnt: Learnt) -> float:
        """−Σ log p(change) of the words of some sentences."""
        assert learnt.pairs is not None
        features = self.templates.matrix(self._parts(sentences), learnt.numbering)
        objective = self._objective(features, learnt.pairs, self._labels(sentences))
        weights = np.concatenate([learnt.weights, np.zeros(objective.n_weights - len(learnt.weights))])
        return -objective.add_gradient(weights, np.zeros(len(weights)))

    def _parts(self, sentences: NDArray[np.int64]) -> Parts:
        return self.old.tree(sentences, _of(sentences, self.heads, self.old.offsets))

    def _labels(self, sentences: NDArray[np.int64]) -> NDArray[np.int64]:
        return _of(sentences, self.labels, self.old.offsets)

    def _objective(self, features: Sparse, pairs: LabelPairs, labels: NDArray[np.int64]) -> Likelihood:
        """Each word is a chain of its own; words without a label may have any."""
        model = ChainModel(NodeFeatures(features, pairs), np.ones(len(labels), np.int64), ends=False)
        if labels.min(initial=0) >= 0:
            return Likelihood(model, gold=labels[:, None])
        allowed = np.ones((len(labels), self.k), np.bool_)
        allowed[labels >= 0] = False
        allowed[np.flatnonzero(labels >= 0), labels[labels >= 0]] = True
        return Likelihood(model, within=model.within(allowed))


def label_scores(old: OldTrees, heads: NDArray[np.int32], templates: Templates, learnt: Learnt) -> Array:
    """float64[n_words, k]: scores of all changes for the links of new trees."""
    assert learnt.pairs is not None
    features = templates.matrix(old.tree(np.arange(len(old)), heads), learnt.numbering)
    return NodeFeatures(features, learnt.pairs).nodes(learnt.weights)
