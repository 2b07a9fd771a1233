"""Grammars whose symbols have hidden states: sums over the annotations of given trees, and over pruned charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks
from isogloss.errors import ParameterError
from isogloss.structures.base import Array
from isogloss.structures.batch import Stack, run_sentences
from isogloss.structures.cfg import NEGLIGIBLE, Cfgs, Grammar
from isogloss.structures.latent_cells import CellPosteriors, Cells, Columns

__all__ = ["Annotated", "LatentGrammar", "LatentTrees"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
BLOCKS = 8
"""Counts are summed in so many parts, whatever the number of threads."""
_NEVER = 1e-10
"""The share of staying as it is, for a symbol that always has a unary rule below it."""


class LatentTrees(NamedTuple):
    """Given trees, whose nodes come children first, one tree after the other.

    starts : int64[n_trees + 1]
    nodes : int64[n_nodes, 6]
        The symbol made, the symbol seen, the number of the binary rule or of the entry of the lexicon, the number of
        the unary rule or −1, and the two nodes below, counted from the first of the tree, or −1 for words.
    """

    starts: Ints
    nodes: Ints


@dataclass(frozen=True, eq=False)
class LatentGrammar:
    r"""A grammar in which each symbol A has states A₁, A₂, … that no treebank shows.

    .. math:: p(tree) = \sum_{states} root(A_x) \prod p(A_x \to B_y\,C_z) \prod p(A_x \to B_y) \prod p(word \mid A_x)

    A symbol that is seen has a unary rule below it, or is made (`stay`); one that is made has a binary rule or a word.

    Parameters
    ----------
    rules : Grammar
        Rules over symbols.
    tags : int64[E]
        The symbol of each entry of the lexicon.
    sizes : int64[S]
        How many states each symbol has.
    binary, unary, stay, words, root : float64[...]
        Probabilities as blocks [states of A, states of B, states of C], one after the other in the order of the rules;
        of `stay` and `root` one for each state. Those of words may have any factor that depends on the word alone.

    References
    ----------
    Matsuzaki, Miyao and Tsujii, Probabilistic CFG with latent annotations, ACL 2005; Petrov, Barrett, Thibaux and
    Klein, Learning accurate, compact, and interpretable tree annotation, ACL 2006.

    Examples
    --------
    >>> rules = Grammar(2, [[0, 1, 1]])                                   # S → X X
    >>> flat = LatentGrammar.flat(rules, np.array([1, 1]))                # X has two words
    >>> flat = flat.estimated(np.array([3.0, 3.0, 6.0, 4.0, 2.0, 3.0, 0.0]))
    >>> flat.binary.tolist(), flat.words.round(2).tolist()
    ([1.0], [0.67, 0.33])
    >>> flat.split(np.random.default_rng(0)).sizes.tolist()
    [2, 2]
    """

    rules: Grammar
    tags: Ints
    sizes: Ints
    binary: Array
    unary: Array
    stay: Array
    words: Array
    root: Array

    @classmethod
    def flat(cls, rules: Grammar, tags: Ints) -> LatentGrammar:
        """One state for each symbol, and equal weights."""
        ones = [np.ones(size) for size in (len(rules.binary), len(rules.unary), rules.n_symbols, len(tags))]
        binary, unary, stay, words = ones
        return cls(rules, tags, np.ones(rules.n_symbols, np.int64), binary, unary, stay, words, stay.copy())

    def __repr__(self) -> str:
        return f"LatentGrammar({self.rules!r}, {self.n_states} states)"

    # --- where everything is

    @property
    def n_states(self) -> int:
        """States of all symbols together."""
        return int(self.sizes.sum())

    @cached_property
    def states(self) -> Ints:
        """int64[S + 1]: the first state of each symbol among all."""
        return _starts(self.sizes)

    @cached_property
    def of_binary(self) -> Ints:
        """int64[R + 1]: where the block of each binary rule begins."""
        return _starts(self.sizes[self.rules.binary].prod(axis=1))

    @cached_property
    def of_unary(self) -> Ints:
        """int64[U + 1]: where the block of each unary rule begins."""
        return _starts(self.sizes[self.rules.unary].prod(axis=1))

    @cached_property
    def of_words(self) -> Ints:
        """int64[E + 1]: where the states of each entry of the lexicon begin."""
        return _starts(self.sizes[self.tags])

    @cached_property
    def _parents(self) -> tuple[Ints, Ints, Ints]:
        """The state on the left-hand side of each weight: of binary rules, of unary ones, of words."""
        found = []
        for rules, offsets in ((self.rules.binary, self.of_binary), (self.rules.unary, self.of_unary)):
            heads = self.sizes[rules[:, 0]]
            inner = np.diff(offsets) // np.maximum(heads, 1)
            first = np.repeat(self.states[rules[:, 0]], heads)
            own = first + np.arange(len(first)) - np.repeat(_starts(heads)[:-1], heads)
            found.append(np.repeat(own, np.repeat(inner, heads)))
        lexical = np.repeat(self.states[self.tags] - self.of_words[:-1], self.sizes[self.tags])
        return found[0], found[1], lexical + np.arange(len(lexical))

    def _kinds(self, vector: Array) -> list[Array]:
        """Numbers for all weights by kinds: binary, unary, stay, words, root."""
        own = (self.binary, self.unary, self.stay, self.words, self.root)
        return np.split(vector, np.cumsum([len(one) for one in own])[:-1])

    # --- learning

    def annotated(self, trees: LatentTrees, shares: Array | None = None) -> Annotated:
        """Sums over all annotations of given trees: log probabilities and expected uses of all weights."""
        from isogloss.structures._numba.latent_trees import sum_annotations

        n_weights = sum(len(one) for one in (self.binary, self.unary, self.stay, self.words, self.root))
        asked = np.empty(0) if shares is None else shares
        losses, counts = np.zeros((BLOCKS, self.n_states // 2 + 1)), np.zeros((BLOCKS, n_weights))
        values = np.empty(len(trees.starts) - 1)
        run_blocks(
            sum_annotations, BLOCKS, *trees, self.sizes, self.binary, self.unary, self.stay, self.words, self.root,
            self.of_binary, self.of_unary, self.of_words, self.states, asked, counts, losses, values,
        )  # fmt: skip
        return Annotated(self, values, counts.sum(axis=0), losses.sum(axis=0))

    def estimated(self, counts: Array, *, smoothing: float = 0.0, words: Any = None) -> LatentGrammar:
        """The grammar with the probabilities that expected uses give.

        Parameters
        ----------
        counts : float64[n_weights]
        smoothing : float
            How much of the probabilities of a state is those of its symbol's states on the average.
        words : callable, optional
            Uses of entries, and of states of tags, to weights of entries; shares of the uses of states without it.
        """
        binary, unary, stay, lexical, root = self._kinds(counts)
        of_binary, of_unary, of_words = self._parents
        totals = _tally(of_binary, binary, self.n_states)
        passes = _tally(of_unary, unary, self.n_states) + stay
        used = _tally(of_words, lexical, self.n_states)
        made = replace(
            self, binary=binary / _safe(totals)[of_binary], unary=unary / _safe(passes)[of_unary],
            stay=stay / _safe(passes), root=root / root.sum(),
            words=lexical / _safe(used)[of_words] if words is None else words(self, lexical, used),
        )  # fmt: skip
        return made.smoothed(smoothing) if smoothing else made

    def smoothed(self, share: float) -> LatentGrammar:
        """Probabilities of each state moved towards the mean of its symbol's states (Petrov et al. 2006, 2.4)."""
        binary, unary, stay, words = self.binary.copy(), self.unary.copy(), self.stay.copy(), self.words.copy()
        heads = (self.rules.binary[:, 0], self.rules.unary[:, 0], np.arange(self.rules.n_symbols), self.tags)
        places = (self.of_binary, self.of_unary, self.states, self.of_words)
        for values, symbols, offsets in zip((binary, unary, stay, words), heads, places, strict=True):
            wide = self.sizes[symbols]
            for number in np.flatnonzero(wide > 1).tolist():
                block = values[offsets[number] : offsets[number + 1]].reshape(int(wide[number]), -1)
                block += share * (block.mean(axis=0) - block)
        return replace(self, binary=binary, unary=unary, stay=stay, words=words)

    def split(self, rng: np.random.Generator, noise: float = 0.01) -> LatentGrammar:
        """Each state in two, which share its probabilities but for a little noise."""
        twice = replace(self, sizes=2 * self.sizes)
        binary, unary = np.empty(8 * len(self.binary)), np.empty(4 * len(self.unary))
        for whole, halves, rules, offsets in (
            (self.binary, binary, self.rules.binary, self.of_binary),
            (self.unary, unary, self.rules.unary, self.of_unary),
        ):
            more = 2 ** rules.shape[1]
            for number, rule in enumerate(rules):
                block = whole[offsets[number] : offsets[number + 1]].reshape(self.sizes[rule])
                for axis in range(block.ndim):
                    block = block.repeat(2, axis=axis)
                halves[more * offsets[number] : more * offsets[number + 1]] = block.ravel() / (more / 2)
        kinds = [binary, unary, self.stay.repeat(2), self.words.repeat(2), self.root.repeat(2) / 2]
        kinds = [kind * (1.0 + noise * rng.uniform(-1.0, 1.0, len(kind))) for kind in kinds]
        return replace(twice, binary=kinds[0], unary=kinds[1], stay=kinds[2], words=kinds[3], root=kinds[4])

    def merged(self, joined: Bools, frequencies: Array) -> LatentGrammar:
        """Neighbouring states, first and second, third and fourth … of a symbol, as one again where `joined` says so.

        Parameters
        ----------
        joined : bool[n_states // 2]
            For each two states among all.
        frequencies : float64[n_states]
            How often each state is used: the one state has the mean of their probabilities, so weighted.
        """
        sums, means, sizes = [], [], []
        for symbol, wide in enumerate(self.sizes.tolist()):
            first = int(self.states[symbol])
            pairs = [joined[(first + a) // 2] if a + 1 < wide else True for a in range(0, wide, 2)]
            number = np.cumsum([0, *(step for one in pairs for step in (not one, 1))])[:wide]
            sizes.append(int(number[-1]) + 1)
            add = np.zeros((wide, sizes[-1]))
            add[np.arange(wide), number] = 1.0
            weights = add * np.maximum(frequencies[first : first + wide], 1e-100)[:, None]
            sums.append(add)
            means.append((weights / weights.sum(axis=0)).T)
        binary, unary = [], []
        for at, (a, b, c) in enumerate(self.rules.binary.tolist()):
            block = self.binary[self.of_binary[at] : self.of_binary[at + 1]]
            block = means[a] @ block.reshape(int(self.sizes[a]), -1)
            block = block.reshape(-1, int(self.sizes[b]), int(self.sizes[c])) @ sums[c]
            binary.append((sums[b].T @ block).ravel())
        for at, (a, b) in enumerate(self.rules.unary.tolist()):
            block = self.unary[self.of_unary[at] : self.of_unary[at + 1]]
            unary.append((means[a] @ block.reshape(int(self.sizes[a]), int(self.sizes[b])) @ sums[b]).ravel())
        stay = [means[a] @ self.stay[self.states[a] : self.states[a + 1]] for a in range(len(sizes))]
        root = [self.root[self.states[a] : self.states[a + 1]] @ sums[a] for a in range(len(sizes))]
        words = [
            means[a] @ self.words[self.of_words[e] : self.of_words[e + 1]] for e, a in enumerate(self.tags.tolist())
        ]
        joints = (np.concatenate([np.zeros(0), *kind]) for kind in (binary, unary, stay, words, root))
        return LatentGrammar(self.rules, self.tags, np.array(sizes, np.int64), *joints)

    # --- parsing

    def coarse(self, lengths: Ints, tokens: Ints, table: Array, *, least: float = NEGLIGIBLE) -> Cfgs:
        """All trees of sentences, for a grammar with one state a symbol.

        Parameters
        ----------
        lengths : int64[n_sentences]
        tokens : int64[n_words]
            The row of each word in `table`, float64[n_types, n_states].
        least : float
            See `Cfgs`.
        """
        if self.n_states != self.rules.n_symbols:
            raise ParameterError(f"{self!r}: the charts of all spans are for grammars with one state a symbol")
        with np.errstate(divide="ignore"):
            stay = np.log(np.maximum(self.stay, _NEVER))
            binary, unary, root = np.log(self.binary), np.log(self.unary), np.log(self.root)
            words = np.log(table)
        unary = unary - stay[self.rules.unary[:, 0]]
        sizes = np.array([self.rules.n_parts(n) for n in lengths.tolist()], np.int64)
        offsets, values = _starts(sizes), np.empty(int(sizes.sum()))
        for s, n in enumerate(lengths.tolist()):
            parts = self.rules.split(values[offsets[s] : offsets[s + 1]])
            first = int(lengths[:s].sum())
            parts.binary[...], parts.unary[...], parts.inner[n:] = binary, unary, 0.0
            parts.inner[:n] = words[tokens[first : first + n]]
            top = parts.outer if len(self.rules.unary) else parts.inner
            if len(self.rules.unary):
                parts.outer[...] = stay
            top[-1:] += root
        return Cfgs(Stack(values, offsets, sizes[:, None]), self.rules, least=least)

    @cached_property
    def _by_pairs(self) -> tuple[Ints, ...]:
        order, pairs, starts, parents, *_ = self.rules._sorted.pairs
        table = np.full(self.rules.n_symbols**2, -1, np.int64)
        table[pairs[:, 0] * self.rules.n_symbols + pairs[:, 1]] = np.arange(len(pairs))
        return table, starts, parents, order

    @cached_property
    def _by_upper(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Unary rules by their left-hand sides: their order, where those of each symbol begin, and what is below."""
        order = np.argsort(self.rules.unary[:, 0], kind="stable").astype(np.int64)
        upper, lower = self.rules.unary[order].T
        starts = np.searchsorted(upper, np.arange(self.rules.n_symbols + 1)).astype(np.int64)
        return order, starts, np.ascontiguousarray(lower), self.of_unary[:-1][order]

    def posteriors(
        self, lengths: Ints, tokens: Ints, table: Array, cells: Cells, onto: Columns | None = None
    ) -> CellPosteriors:
        """Posteriors of sentences over the cells that are left.

        Parameters
        ----------
        lengths, tokens, table
            As for `coarse`.
        cells : Cells
            Which symbols may be made, and be seen from above, over each span, one sentence after the other.
        onto : Columns, optional
            A table to which posteriors of symbols that are made and seen, and of unary rules, are added.
        """
        from isogloss.structures._numba.latent_charts import latent_posteriors

        spans = lengths * (lengths + 1) // 2
        total, symbols = int(spans.sum()), self.rules.n_symbols
        for layer in cells:
            if len(layer.bounds) != total + 1 or not layer.holds(symbols):
                raise ParameterError(
                    f"{self!r}: cells are given for {len(layer.bounds) - 1} spans; they should be symbols below "
                    f"{symbols} over {total}"
                )
        if onto is None:
            none = np.full(symbols, -1, np.int64)
            onto = Columns(none, np.zeros(len(self.rules.unary), np.int64), np.zeros((total, 0)))
        order, *by_upper = self._by_upper
        found = CellPosteriors(
            np.empty(len(lengths)), np.empty(len(cells.made.symbols)), np.empty(len(cells.seen.symbols))
        )
        run_sentences(
            latent_posteriors, len(lengths), lengths, _starts(lengths), _starts(spans), tokens, table, self.sizes,
            self.states, *self._by_pairs, self.of_binary, self.binary, *by_upper, self.unary, self.stay, self.root,
            *cells.made, *cells.seen, onto.of_symbol, onto.of_unary[order], float(onto.share), found.made, found.seen,
            onto.totals, found.values,
        )  # fmt: skip
        return found


class Annotated(NamedTuple):
    """Given trees under a grammar, summed over their annotations.

    grammar : LatentGrammar
    values : float64[n_trees]
        Log probabilities.
    counts : float64[n_weights]
        Expected uses of all weights: binary, unary, stay, words, root.
    losses : float64[n_states // 2]
        What the log probability of all trees would lose, about, were neighbouring states of a symbol one state.
    """

    grammar: LatentGrammar
    values: Array
    counts: Array
    losses: Array

    def log_partition(self) -> Array:
        """Log probabilities of the trees, for `isogloss.learners.em`."""
        return self.values

    def word_uses(self) -> Array:
        """Expected uses of the entries of the lexicon, as blocks of states."""
        return self.grammar._kinds(self.counts)[3]

    def frequencies(self) -> Array:
        """float64[n_states]: how often each state is used, made or seen."""
        grammar = self.grammar
        binary, unary, _, words, _ = grammar._kinds(self.counts)
        of_binary, of_unary, of_words = grammar._parents
        places, uses = np.concatenate([of_binary, of_unary, of_words]), np.concatenate([binary, unary, words])
        return _tally(places, uses, grammar.n_states)


def _starts(sizes: Sequence[int] | Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _tally(places: Ints, values: Array, size: int) -> Array:
    """float64[size]: the sum of the values of each place."""
    return np.asarray(np.bincount(places, values, size), np.float64)


def _safe(totals: Array) -> Array:
    return np.where(totals > 0, totals, 1.0)
