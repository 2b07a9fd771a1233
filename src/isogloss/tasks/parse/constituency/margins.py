"""Max-margin parsing over the trees of a treebank grammar: rules, words at the edges of spans, and other parsers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituent_forms import INSIDE, Markov
from isogloss.data.constituents import Constituents, unescaped
from isogloss.features import Index, Parts, Templates
from isogloss.features.sparse import Sparse
from isogloss.learners.loglinear import AdaGrad, Likelihood
from isogloss.learners.models import LinearModel
from isogloss.learners.runner import run
from isogloss.learners.split_merge import SplitMerge
from isogloss.structures.cfg import Cfg, Derivation
from isogloss.structures.factored_chain import FactoredChains
from isogloss.structures.latent_cfg import LatentGrammar
from isogloss.structures.spans import span_number
from isogloss.tasks.parse.constituency.derivations import Derivations
from isogloss.tasks.parse.constituency.grammar import Annotation, lexicon_of
from isogloss.tasks.parse.constituency.lexicon import Lexicon
from isogloss.tasks.parse.constituency.trees import Labels, Spans
from isogloss.tasks.parse.constituency.words import Sentences, span_parts

__all__ = ["AUXILIARY", "LEXICAL", "TAGGED", "Chart", "FlatSpans", "Generative", "edge_parts", "marked_spans"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
LEXICAL: tuple[str, ...] = (
    "first.word & size", "first.word[-1] & size", "last.word & size", "last.word[+1] & size",
    "first.word[-1] & first.word & size", "last.word & last.word[+1] & size", "first.word[+1] & middle",
)  # fmt: skip
"""Words at the edges of a span, with its length up to 3, and the middle one of three: the paper's seven."""
TAGGED: tuple[str, ...] = (
    *LEXICAL, "first.tag[-1] & size", "first.tag & size", "last.tag & size", "last.tag[+1] & size",
    "first.tag[-1] & first.tag & size", "last.tag & last.tag[+1] & size", "first.tag[-1] & last.tag[+1] & size",
    "first.tag & last.tag & size", "sequence",
)  # fmt: skip
"""With tags as well: what is seen by a classifier that looks at spans one by one."""
AUXILIARY: tuple[str, ...] = ("generative", "flat")
"""Whether the grammar's best tree has a bracket there, and whether the classifier would have one."""
LEAST = 1e-5
"""What the treebank grammar must give to a symbol over a span for it to be in the chart."""
PIECE = 40
"""Sentences whose whole charts are in memory together."""
PASSES, RATE, L2 = 8, 0.2, 1.0
"""How the classifier of spans is learnt."""


@dataclass(frozen=True, eq=False)
class Chart:
    """The trees that are looked at of one sentence.

    Parameters
    ----------
    trees : Cfg
        By the probabilities of the grammar, over the rules among the symbols that are left; −∞ where a symbol may not
        be over a span.
    rules : int64[R + U]
        The numbers of its rules in the grammar.
    symbols : int64[n]
        The numbers of its symbols.
    best : Derivation
        The best tree.
    """

    trees: Cfg
    rules: Ints
    symbols: Ints
    best: Derivation

    def bare(self) -> Cfg:
        """The same trees, with the scores of words and their tags alone."""
        grammar, n = self.trees.grammar, self.trees.n
        given = grammar.split(self.trees.scores)
        inner = np.where((np.arange(len(given.inner))[:, None] < n) | (given.inner == -np.inf), given.inner, 0.0)
        return Cfg(grammar.scores(n, inner=inner, outer=np.where(given.outer == -np.inf, -np.inf, 0.0)), grammar)

    def local(self, tree: Derivation) -> Derivation:
        """A tree of the grammar, with symbols as they are numbered here."""
        number = {symbol: at for at, symbol in enumerate(self.symbols.tolist())}
        return frozenset((i, j, number[seen], number[made]) for i, j, seen, made in tree)


@dataclass(frozen=True, eq=False)
class Generative:
    """A treebank grammar: rules by their shares in a treebank, words smoothed (GENERATIVE).

    Parameters
    ----------
    derived : Derivations
    plain : Annotation
        One state a symbol.
    labels : Labels
    lexicon : Lexicon

    References
    ----------
    Taskar, Klein, Collins, Koller and Manning, Max-margin parsing, EMNLP 2004; Klein and Manning, Accurate
    unlexicalized parsing, ACL 2003 (labels above, and sisters). We differ: a unary chain is a rule of the grammar, not
    a compound symbol, and the other splits of their symbols are not made.
    """

    derived: Derivations
    plain: Annotation
    labels: Labels
    lexicon: Lexicon

    @classmethod
    def fit(cls, trees: Constituents, markov: Markov) -> Generative:
        """Read it off trees without function tags and traces."""
        labels, flat = Labels.of(trees)
        derived = Derivations.of(flat, labels, markov)
        lexicon = lexicon_of(flat, derived)
        learner = SplitMerge(derived.trees, cycles=0, words=lexicon.weights)
        grammar = learner.step(learner.init(LatentGrammar.flat(derived.rules, lexicon.tags)))[0].params
        uses = grammar.annotated(derived.trees).word_uses()
        return cls(derived, Annotation.of(grammar, uses, lexicon), labels, lexicon)

    @property
    def free(self) -> Bools:
        """bool[S]: symbols that are no constituents: tags, and what binarising has added."""
        added = [name.startswith(INSIDE) for name in self.derived.symbols.others]
        return np.array([True] * len(self.derived.symbols.tags) + added)

    def right(self) -> list[Derivation]:
        """The trees that it was read off, as derivations."""
        nodes = np.split(self.derived.trees.nodes, self.derived.trees.starts[1:-1])
        return [_derivation(rows.tolist()) for rows in nodes]

    def charts(
        self, words: Sequence[Sequence[str]], right: Sequence[Derivation] | None = None, least: float = LEAST
    ) -> Iterator[Chart | None]:
        """The chart of each sentence, with the cells of the right tree; None where the grammar has no tree."""
        for first in range(0, len(words), PIECE):
            some = [[unescaped(word) for word in sentence] for sentence in words[first : first + PIECE]]
            types: dict[str, int] = {}
            tokens = np.array([types.setdefault(word, len(types)) for own in some for word in own], np.int64)
            table = self.lexicon.table(self.plain.known, self.lexicon.seen(list(types)))
            lengths = np.array([len(own) for own in some], np.int64)
            trees = self.plain.grammar.coarse(lengths, tokens, table, least=least / 100)
            for k, (value, posterior) in enumerate(zip(*trees._solve(), strict=True)):
                if value == -np.inf or not lengths[k]:
                    yield None
                    continue
                yield self._chart(trees[k], posterior, None if right is None else right[first + k], least)

    def _chart(self, whole: Cfg, posterior: Array, right: Derivation | None, least: float) -> Chart:
        rules, n = self.derived.rules, whole.n
        found = rules.split(posterior)
        made = found.inner > least
        seen = found.outer > least if len(rules.unary) else made
        for i, j, top, own in right or ():
            made[span_number(i, j, n), own] = seen[span_number(i, j, n), top] = True
        symbols = np.flatnonzero(made.any(axis=0) | seen.any(axis=0))
        grammar, numbers = rules.part(symbols)
        made, seen = made[:, symbols], seen[:, symbols]
        if not len(grammar.unary):  # one layer: what is made is seen
            made, seen = made & seen, seen[:0]
        given = rules.split(whole.scores)
        words, tops = given.inner[:, symbols], given.outer[: len(seen), symbols]
        scores = np.concatenate([given.binary, given.unary])[numbers]
        binary, unary = scores[: len(grammar.binary)], scores[len(grammar.binary) :]
        likely = grammar.scores(n, binary, unary, np.where(made, words, -np.inf), np.where(seen, tops, -np.inf))
        trees = Cfg(likely, grammar)
        return Chart(trees, numbers, symbols, trees.argmax())

    def brackets(self, charts: Sequence[Chart | None], lengths: Ints) -> Bools:
        """bool[n_spans]: which spans of sentences have a label in the grammar's best trees."""
        found = (frozenset() if chart is None else self.spans(chart.best, chart.symbols)[0] for chart in charts)
        return marked_spans(found, lengths)

    def spans(self, tree: Derivation, symbols: Ints) -> tuple[Spans, list[str]]:
        """The labelled spans of a tree whose symbols are these, and the tags of its words."""
        own, found, tags = self.derived.symbols, set(), {}
        unary = self.derived.rules._numbers[1]
        for i, j, seen, made in tree:
            top, low = int(symbols[seen]), int(symbols[made])
            label = int(own.labels[top] if top == low else own.changes[unary[top, low]])
            if label >= 0:
                found.add((i, j, label))
            if j - i == 1:
                tags[i] = own.tags[low]
        return frozenset(found), [tags[i] for i in range(len(tags))]


def _derivation(rows: Sequence[Sequence[int]]) -> Derivation:
    """Nodes of `LatentTrees`, children first, as (i, j, seen, made)."""
    spans: list[tuple[int, int]] = []
    for at, (_, _, _, _, left, right) in enumerate(rows):
        spans.append((at, at + 1) if left < 0 else (spans[left][0], spans[right][1]))
    return frozenset((i, j, row[1], row[0]) for (i, j), row in zip(spans, rows, strict=True))


def marked_spans(trees: Iterable[Spans], lengths: Ints) -> Bools:
    """bool[n_spans]: which spans have a label, one sentence after the other."""
    firsts = np.concatenate([[0], np.cumsum(lengths * (lengths + 1) // 2)]).astype(np.int64)
    out = np.zeros(int(firsts[-1]), bool)
    for spans, first, n in zip(trees, firsts.tolist(), lengths.tolist(), strict=False):
        out[[first + span_number(i, j, n) for i, j, _ in spans]] = True
    return out


def edge_parts(words: Sentences, **told: Ints) -> Parts:
    """All spans of sentences, with columns for `LEXICAL` and `TAGGED`, and what other parsers told of them."""
    parts = span_parts(words)
    width = parts.roles["last"].at - parts.roles["first"].at + 1
    size, middle = np.where(width <= 3, width, 0), np.where(width == 3, 1, -1)
    return replace(parts.with_columns(size=size, middle=middle, **told), bins=None)


@dataclass(frozen=True, eq=False)
class FlatSpans:
    r"""Whether spans are constituents, each looked at by itself.

    .. math:: p(bracket \mid i, j) = \frac{1}{1 + \exp(-w \cdot f(x, i, j))}

    The sentence's spans are a chain of two tags without transitions, so that the learners of chains learn it.

    References
    ----------
    Taskar et al. 2004, section 5.2: the flat classifier of LEXICAL+AUX.
    """

    index: Index
    weights: Array

    @classmethod
    def fit(cls, parts: Parts, gold: Bools, *, seed: int = 0) -> FlatSpans:
        """Learn which spans are constituents, bool[n_spans]."""
        index = Templates(TAGGED, kind="flat").index(parts, min_count=2)
        model = _decisions(parts, index)
        target = model.gold([np.asarray(gold[a:b], np.int64) for a, b in pairwise(parts.offsets.tolist())])
        learner = AdaGrad(Likelihood(model, target=target), rate=RATE, l2=L2, batch=16, seed=seed, average_from=1)
        result = run(learner, learner.init(), iterations=PASSES)
        return cls(index, np.asarray(result.state.average, np.float64))

    def chances(self, parts: Parts) -> Array:
        """float64[n_spans]: the probability that each is a constituent."""
        features = Templates(TAGGED, kind="flat").matrix(parts, self.index)
        found: Array = 1.0 / (1.0 + np.exp(-features.scores(self.weights)))
        return found


def _decisions(parts: Parts, index: Index) -> LinearModel:
    """A chain of yes and no for the spans of each sentence."""
    features = Templates(TAGGED, kind="flat").matrix(parts, index)
    counts = np.diff(features.indptr)
    indptr = np.concatenate([[0], np.cumsum(np.stack([np.zeros_like(counts), counts], axis=1).ravel())])
    chains = FactoredChains([np.zeros((n, 2)) for n in np.diff(parts.offsets).tolist()], np.zeros((2, 2)))
    return LinearModel(chains, Sparse(indptr, features.indices, features.n_indicators))
