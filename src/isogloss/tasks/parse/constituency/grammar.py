"""Latent grammars of a treebank: learnt by split and merge, and turned into posteriors of labelled spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.constituents import Constituents, unescaped
from isogloss.data.rows import gathered
from isogloss.layout import Layout, Numbers, Strings, check, collect
from isogloss.learners.runner import Keeping, run
from isogloss.learners.split_merge import Several, SplitMerge
from isogloss.progress import Progress
from isogloss.structures.batch import Stack
from isogloss.structures.cfg import Grammar
from isogloss.structures.latent_cells import Cells, Columns, Layer
from isogloss.structures.latent_cfg import LatentGrammar, LatentTrees
from isogloss.structures.span_tree import LabelledSpans, SpanTrees
from isogloss.tasks.parse.constituency.derivations import Derivations, Symbols
from isogloss.tasks.parse.constituency.lexicon import Lexicon, WordCounts
from isogloss.tasks.parse.constituency.pruning import Within, kept_cells, replaced_cells
from isogloss.tasks.parse.constituency.trees import Labels

__all__ = ["GrammarModel", "Posteriors", "lexicon_of"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
_LAST = 1e-9
"""What a word alone counts for when tags are chosen: it decides where the grammars have no tree."""
STEPS = (25, 10)
"""Steps of EM after each split, and after each merge."""
SMOOTHING = 0.01
"""How much of the probabilities of a state is those of its symbol's states on the average."""
MIDDLE = 2
"""Cycles of the grammar that stands between the one without states and those with many."""
UNLIKELY = 1e-5
"""Tags to which a word alone gives less are not looked at beside a model of labelled spans."""
PRUNE = (1e-4, 1e-3)
"""What the grammar without states, and the one with few, must give to a symbol over a span for others to look at it."""

LAYOUT: Layout = {
    "tags": Strings("tags", distinct=True, least=1, cells=True),
    "others": Strings("others", distinct=True, least=1, cells=True),
    "labels": Numbers("int64", "symbols", least=-1, below="n_labels"),
    "changes": Numbers("int64", "unary", least=0, below="n_labels"),
    "binary": Numbers("int64", ("binary", 3), least=0, below="symbols"),
    "unary": Numbers("int64", ("unary", 2), least=0, below="symbols"),
    "words": Strings("words", distinct=True, least=1),
    "counts": Numbers("int64", "words", least=1),
    "entries": Numbers("int64", ("entries", 2), least=0),
}


class Posteriors(NamedTuple):
    """What is known of the spans of some sentences: posteriors of labels, as `SpanTrees` has them, and tags.

    stack : Stack
        float64[n_spans, n_labels] for each sentence.
    tags : list of tuple of str
        The most probable tags of the words of each sentence.
    """

    stack: Stack
    tags: list[tuple[str, ...]]

    def constituents(self) -> Stack:
        """The posterior of each label of each span."""
        return self.stack

    def most_right(self, *, threshold: float = 0.5) -> Sequence[LabelledSpans]:
        """For each sentence the tree with the highest Σ (posterior − threshold)."""
        return SpanTrees(self.stack).most_right(self.stack, threshold=threshold)

    def mixed(self, other: Stack, share: float) -> Posteriors:
        """With those of another model, which have the rest of the weight."""
        return self._replace(stack=self.stack.like(share * self.stack.values + (1.0 - share) * other.values))


@dataclass(frozen=True, eq=False)
class Annotation:
    """One grammar with hidden states, and what it knows of words."""

    grammar: LatentGrammar
    uses: Array
    known: WordCounts

    @classmethod
    def of(cls, grammar: LatentGrammar, uses: Array, lexicon: Lexicon) -> Annotation:
        return cls(grammar, uses, lexicon.estimated(grammar, uses))


@dataclass(frozen=True, eq=False)
class GrammarModel:
    """Grammars of the same rules: one without states and one with few prune, the posteriors of others are averaged.

    Parameters
    ----------
    symbols : Symbols
    lexicon : Lexicon
    base, middle : Annotation
    fine : tuple of Annotation
    n_labels : int
    """

    symbols: Symbols
    lexicon: Lexicon
    base: Annotation
    middle: Annotation
    fine: tuple[Annotation, ...]
    n_labels: int

    @classmethod
    def fit(
        cls, flat: Constituents, labels: Labels, *, cycles: int, grammars: int, seed: int, progress: Progress,
        keeping: Keeping,
    ) -> tuple[GrammarModel, Array]:  # fmt: skip
        """Learn the trees of a treebank (`Labels.of`); returns the log-likelihoods of all steps, too."""
        derived = Derivations.of(flat, labels)
        lexicon = lexicon_of(flat, derived)
        start = LatentGrammar.flat(derived.rules, lexicon.tags)
        several = Several([
            SplitMerge(derived.trees, cycles=times, steps=STEPS, smoothing=SMOOTHING, words=lexicon.weights, seed=own)
            for times, own in [(min(MIDDLE, cycles), seed), *((cycles, seed + number) for number in range(grammars))]
        ])  # fmt: skip
        result = run(
            several, several.init(start), iterations=several.n_steps, progress=progress, name="Learning a grammar",
            every=None, **keeping.arguments,
        )  # fmt: skip
        base = SplitMerge(derived.trees, cycles=0, words=lexicon.weights)
        plain = base.step(base.init(start))[0].params
        made = [_annotation(one, derived.trees, lexicon) for one in (plain, *result.state.params)]
        found = cls(derived.symbols, lexicon, made[0], made[1], tuple(made[2:]), len(labels.names))
        return found, np.asarray(result.trace)

    # --- parsing

    def posteriors(
        self,
        words: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]] | None = None,
        *,
        prune: tuple[float, float] = PRUNE,
        within: Within | None = None,
    ) -> Posteriors:
        """Posteriors of labels over the spans of sentences.

        Parameters
        ----------
        words : sequence of sequences of str
        tags : sequence of sequences of str, optional
            Words have these if the grammar knows them.
        prune : tuple of float
            What the grammars without states and with few must give to a symbol over a span.
        within : Within, optional
            What another model says of labelled spans: others are not looked at.
        """
        lengths = np.array([len(sentence) for sentence in words], np.int64)
        spans = lengths * (lengths + 1) // 2
        types: dict[tuple[str, str | None], int] = {}
        given: Sequence[Sequence[str | None]] = [[None] * len(one) for one in words] if tags is None else tags
        tokens = np.array(
            [
                types.setdefault((unescaped(word), tag), len(types))
                for sentence, own in zip(words, given, strict=True)
                for word, tag in zip(sentence, own, strict=True)
            ],
            np.int64,
        )
        tables = self._tables(types)
        text = _Read(lengths, tokens, tables)
        cells = self._left(text, prune, within)
        total = np.zeros((int(spans.sum()), self.n_labels))
        chances = _LAST * _chances(self.base, tables[0], len(self.symbols.tags))[tokens]
        tagged = _tag_cells(cells.made, lengths, spans, len(self.symbols.tags))
        onto = Columns(self.symbols.labels, self.symbols.changes, total, 1.0 / len(self.fine))
        for one, table in zip(self.fine, tables[2:], strict=True):
            found = one.grammar.posteriors(lengths, tokens, table, cells, onto)
            chances[tagged[1], tagged[2]] += found.made[tagged[0]]
        offsets = np.concatenate([[0], np.cumsum(spans * self.n_labels)]).astype(np.int64)
        shapes = np.stack([spans, np.full(len(spans), self.n_labels)], axis=1).astype(np.int64)
        stack = Stack(np.minimum(total, 1.0).reshape(-1), offsets, shapes)
        return Posteriors(stack, self._tags(chances, lengths, given))

    def _left(self, text: _Read, prune: tuple[float, float], within: Within | None) -> Cells:
        """The cells that the grammars without states and with few leave, beginning with those of another model."""
        if within is None:
            cells = self._coarse(text, prune[0])
        else:
            likely = _chances(self.base, text.tables[0], len(self.symbols.tags)) > UNLIKELY
            cells = within.cells(self.symbols, text.lengths, text.tokens, likely)
            found = self.base.grammar.posteriors(text.lengths, text.tokens, text.tables[0], cells)
            lost = np.flatnonzero(found.values == -np.inf)
            cells = kept_cells(cells, found, prune[0])
            if len(lost):
                cells = replaced_cells(cells, lost, self._coarse(text.take(lost), prune[0]), text.lengths)
        found = self.middle.grammar.posteriors(text.lengths, text.tokens, text.tables[1], cells)
        fallen = np.repeat(found.values == -np.inf, text.lengths * (text.lengths + 1) // 2)
        return kept_cells(cells, found, prune[1], fallen)

    def _coarse(self, text: _Read, least: float) -> Cells:
        """The cells to which the grammar without states gives more than `least`; all where it has no tree."""
        first = self.base.grammar.coarse(text.lengths, text.tokens, text.tables[0], least=least / 100)
        made, seen = [np.zeros((0, len(self.symbols)), np.bool_)], [np.zeros((0, len(self.symbols)), np.bool_)]
        for value, one in zip(*first._solve(), strict=True):
            parts, every = first.grammar.split(one), value == -np.inf
            made.append((parts.inner > least) | every)
            seen.append(((parts.outer if len(first.grammar.unary) else parts.inner) > least) | every)
        return Cells.of(np.concatenate(made), np.concatenate(seen))

    def _tables(self, types: Mapping[tuple[str, str | None], int]) -> list[Array]:
        """float64[n_types, n_states] for each grammar: how well each word goes with each state of its tags."""
        names = list(dict.fromkeys(word for word, _ in types))
        row = {word: number for number, word in enumerate(names)}
        seen, rows = self.lexicon.seen(names), [row[word] for word, _ in types]
        number = {tag: at for at, tag in enumerate(self.symbols.tags)}
        given = [(at, number[tag]) for at, (_, tag) in enumerate(types) if tag is not None and tag in number]
        tables = []
        for one in (self.base, self.middle, *self.fine):
            table = self.lexicon.table(one.known, seen)[rows]
            states = one.grammar.states
            for at, tag in given:
                own = table[at, states[tag] : states[tag + 1]].copy()
                table[at] = 0.0
                table[at, states[tag] : states[tag + 1]] = own if own.any() else 1.0
            tables.append(table)
        return tables

    def _tags(
        self, chances: Array, lengths: Ints, given: Sequence[Sequence[str | None]]
    ) -> list[tuple[str, ...]]:  # fmt: skip
        best = chances.argmax(axis=1).tolist() if len(chances) else []
        bounds = np.concatenate([[0], np.cumsum(lengths)]).tolist()
        names = self.symbols.tags
        return [
            tuple(tag or names[best[first + at]] for at, tag in enumerate(own))
            for first, own in zip(bounds[:-1], given, strict=True)
        ]

    # --- keeping

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        rules = self.base.grammar.rules
        held = _Held(
            self.symbols.tags, self.symbols.others, self.symbols.labels, self.symbols.changes, rules.binary,
            rules.unary, self.lexicon.words, self.lexicon.counts,
            np.stack([self.lexicon.tags, self.lexicon.forms], axis=1),
        )  # fmt: skip
        arrays = collect(held, LAYOUT)
        for number, one in enumerate((self.base, self.middle, *self.fine)):
            arrays |= store.prefixed(f"{number}.", _numbers(one))
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_labels: int, grammars: int) -> GrammarModel:
        """The inverse of `to_arrays`."""
        place = "the grammar of the saved parser"
        sizes = {"n_labels": n_labels}
        texts = check(arrays, {name: LAYOUT[name] for name in ("tags", "others")}, place)
        sizes["symbols"] = len(texts["tags"]) + len(texts["others"])
        found = check(arrays, LAYOUT, place, sizes)
        entries = found["entries"]
        if len(entries) and (entries.max(axis=0) >= [len(found["tags"]), len(found["words"])]).any():
            raise ValueError("an entry of its lexicon is of a tag or a word that it has not")
        symbols = Symbols(tuple(found["tags"]), tuple(found["others"]), found["labels"], found["changes"])
        lexicon = Lexicon(tuple(found["words"]), found["counts"], entries[:, 0].copy(), entries[:, 1].copy())
        rules = Grammar(sizes["symbols"], found["binary"], found["unary"])
        made = []
        for number in range(grammars + 2):
            own = store.unprefixed(f"{number}.", arrays)
            made.append(_annotation_from(own, rules, lexicon, f"grammar {number} of {place}"))
        if made[0].grammar.n_states != len(symbols):
            raise ValueError("its first grammar has hidden states")
        return cls(symbols, lexicon, made[0], made[1], tuple(made[2:]), n_labels)


class _Read(NamedTuple):
    """Sentences as grammars see them: the row of each word in the table of each grammar."""

    lengths: Ints
    tokens: Ints
    tables: list[Array]

    def take(self, items: Ints) -> _Read:
        """Some of the sentences."""
        _, places = gathered(np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64), items)
        return self._replace(lengths=self.lengths[items], tokens=self.tokens[places])


class _Held(NamedTuple):
    """Attributes under the names of `LAYOUT`."""

    tags: tuple[str, ...]
    others: tuple[str, ...]
    labels: Ints
    changes: Ints
    binary: Ints
    unary: Ints
    words: tuple[str, ...]
    counts: Ints
    entries: Ints


def lexicon_of(flat: Constituents, derived: Derivations) -> Lexicon:
    """The words of a treebank, as people write them."""
    forms = flat.columns["form"]
    numbers: dict[str, int] = {}
    used = np.bincount(forms.ids, minlength=len(forms.vocabulary))
    own = np.array(
        [
            numbers.setdefault(unescaped(form), len(numbers)) if count else -1
            for form, count in zip(forms.vocabulary, used.tolist(), strict=True)
        ],
        np.int64,
    )
    counts = np.bincount(own[forms.ids], minlength=len(numbers)).astype(np.int64)
    return Lexicon(tuple(numbers), counts, derived.entries[:, 0].copy(), own[derived.entries[:, 1]])


def _annotation(grammar: LatentGrammar, trees: LatentTrees, lexicon: Lexicon) -> Annotation:
    return Annotation.of(grammar, grammar.annotated(trees).word_uses(), lexicon)


def _chances(plain: Annotation, table: Array, n_tags: int) -> Array:
    """float64[n_types, n_tags]: the probabilities of the tags of words by themselves."""
    alone = (table * plain.known.totals)[:, :n_tags]
    found: Array = alone / alone.sum(axis=1, keepdims=True)
    return found


def _tag_cells(made: Layer, lengths: Ints, spans: Ints, n_tags: int) -> tuple[Ints, Ints, Ints]:
    """The cells of tags over single words, with their words among all and their tags."""
    word = np.full(int(spans.sum()), -1, np.int64)
    first = np.repeat(np.cumsum(spans) - spans, lengths)
    numbers = np.arange(len(first))
    word[first + numbers - np.repeat(np.cumsum(lengths) - lengths, lengths)] = numbers
    where = word[made.spans]
    cells = np.flatnonzero((where >= 0) & (made.symbols < n_tags))
    return cells, where[cells], made.symbols[cells]


def _numbers(one: Annotation) -> dict[str, NDArray[Any]]:
    grammar = one.grammar
    kinds = {"binary": grammar.binary, "unary": grammar.unary, "stay": grammar.stay, "root": grammar.root}
    return {"sizes": grammar.sizes} | {
        name: kind.astype(np.float32) for name, kind in (kinds | {"uses": one.uses}).items()
    }


def _annotation_from(arrays: Mapping[str, NDArray[Any]], rules: Grammar, lexicon: Lexicon, place: str) -> Annotation:
    sizes = check(arrays, {"sizes": Numbers("int64", rules.n_symbols, least=1, below=2**10)}, place)["sizes"]
    empty = np.zeros(0)
    bare = LatentGrammar(rules, lexicon.tags, sizes, empty, empty, empty, empty, empty)
    wanted = {
        "binary": int(bare.of_binary[-1]), "unary": int(bare.of_unary[-1]), "stay": bare.n_states,
        "root": bare.n_states, "uses": int(bare.of_words[-1]),
    }  # fmt: skip
    layout: Layout = {name: Numbers("float32", size, least=0.0) for name, size in wanted.items()}
    found = {name: array.astype(np.float64) for name, array in check(arrays, layout, place).items()}
    if not found["uses"].sum() > 0:
        raise ValueError("no word of its lexicon is used")
    uses = found.pop("uses")
    return Annotation.of(LatentGrammar(rules, lexicon.tags, sizes, words=empty, **found), uses, lexicon)
