"""Sparse features against features by name, decoding with them against all derivations, and learning across folds."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import samples, store
from isogloss.data import Bitext, Links, Text
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import BitextError, ModelError, ParameterError, UsageError
from isogloss.features import Index
from isogloss.learners.margin import Perceptron
from isogloss.learners.searched import UPDATES, SearchModel, Towards
from isogloss.tasks.translate import Translator
from isogloss.tasks.translate.forced import forced
from isogloss.tasks.translate.language_model import LanguageModel
from isogloss.tasks.translate.learning import CrossFitted, Kind, spread_evenly
from isogloss.tasks.translate.search import BLANKET, Decoder, Searching, first_weights
from isogloss.tasks.translate.sparse import (
    BINS,
    DISTANCES,
    Learnt,
    PhraseTags,
    Reordering,
    phrase_parts,
    phrase_templates,
)
from isogloss.tasks.translate.table import TranslationTable
from isogloss.testing.enumerate import sentence_bleu, translations

SOURCE, TARGET = "abcd", "wxyz"


class Small:
    """A table of a few phrase pairs, tags of all words, sparse weights by the names of features, and a sentence."""

    def __init__(self, draw):
        pairs, links = [], []
        for _ in range(draw(st.integers(1, 5))):
            source = draw(st.lists(st.sampled_from(SOURCE), min_size=1, max_size=4))
            target = draw(st.lists(st.sampled_from(TARGET), min_size=1, max_size=4))
            cells = [(i, j) for i in range(len(source)) for j in range(len(target))]
            pairs.append((source, target))
            links.append(draw(st.sets(st.sampled_from(cells), max_size=4)))
        self.text, self.rng = Bitext.of(pairs), np.random.default_rng(draw(st.integers(0, 2**31)))
        self.table = TranslationTable.of(self.text, Links.of(links), max_length=draw(st.integers(1, 3)))
        self.model = LanguageModel.of(self.text.target, draw(st.integers(1, 2)), words=self.table.target)
        self.dense = self.rng.normal(size=len(BLANKET)).round(3)
        self.sentence = draw(st.lists(st.sampled_from([*SOURCE, "q", "w"]), max_size=4))
        self.swapping = draw(st.booleans())
        self.limit = 0 if self.swapping else draw(st.integers(0, 3))
        self.tag = {word: int(self.rng.integers(0, 2)) for word in self.table.source.types}
        self.by_name: dict = {}

    def weight(self, *name):
        return self.by_name.setdefault(name, float(self.rng.normal()))

    # --- features by name

    def tags(self, words):
        return tuple(self.tag.get(word, 2) for word in words)

    def of_jump(self, i, j):
        where = sum(j - i >= least for least in DISTANCES)
        names = [("distance", where)]
        if i != j:
            names.append(("to", where, *self.tags(self.sentence[j : j + 1])))
            if i < len(self.sentence):
                names.append(("both", where, *self.tags([self.sentence[i], self.sentence[j]])))
        return names

    def of_swap(self, first, middle, end):
        both = self.tags(self.sentence[first:middle]), self.tags(self.sentence[middle:end])
        return [("lengths", middle - first, end - middle), ("tags", *both)]

    # --- as the code has them

    @cached_property
    def decoder(self):
        searching = Searching.exact(distortion_limit=self.limit, swapping=self.swapping, turning=False)
        return Decoder(self.table, self.model, self.dense, searching)

    @cached_property
    def sentences(self):
        return self.decoder.sentences(Text.of([self.sentence]))

    @cached_property
    def reordering(self):
        return Reordering(np.array([self.tag[word] for word in self.table.source.types], np.int64), 2, self.swapping)

    @cached_property
    def cells(self):
        """Cells of jumps and of swaps with the names of their features; none for what does not fit."""
        n, longest = len(self.sentence), self.table.longest
        jumps = [self.of_jump(i, j) for i in range(n + 1) for j in range(n)]
        swaps = []
        if self.swapping:
            spans = [
                (i, i + a, i + a + b) for i in range(n) for a in range(1, longest + 1) for b in range(1, longest + 1)
            ]
            swaps = [self.of_swap(*span) if span[2] <= n else [] for span in spans]
        return jumps, swaps

    def numbered(self):
        """Weights of the numbers that the code gives features: each is of one name, and each name has one number."""
        index = self.reordering.index(self.sentences, self.table)
        weights, names = np.zeros(index.n_features), {}
        for rows, cells in zip(self.reordering.matrices(self.sentences, self.table, index), self.cells, strict=True):
            assert rows.n_rows == len(cells)
            for k, own in enumerate(cells):
                numbers = rows.indices[rows.indptr[k] : rows.indptr[k + 1]].tolist()
                for number, name in zip(numbers, own, strict=True):
                    assert names.setdefault(number, name) == name
                    weights[number] = self.weight(*name)
        assert len(set(names.values())) == len(names) == index.n_features
        return index, weights

    def learnt(self):
        index, weights = self.numbered()
        pairs = self.rng.normal(size=len(self.table)).astype(np.float32)
        return Learnt(pairs, self.reordering, index, weights)

    def listed(self, pairs, scale):
        """The options of a sentence by span."""
        options, sentence, dense = {}, self.sentence, self.dense
        for first in range(len(sentence)):
            for end in range(first + 1, len(sentence) + 1):
                row = self.table.spans(Text.of([sentence]))[0].tolist()
                found = []
                for a, b, begin, until in row:
                    if (a, b) != (first, end):
                        continue
                    for pair in range(begin, until):
                        words = self.table.target_of(pair)
                        scores = self.table.arrays["scores"][pair]
                        own = dense[2] * len(words) + dense[3] + float(dense[4:8] @ scores) + scale * pairs[pair]
                        found.append((words, own, words))
                if not found and end == first + 1:
                    found = [("copied", dense[2] + dense[3], (sentence[first],))]
                if found:
                    options[first, end] = found
        return options

    def every(self, learnt, scale):
        """All derivations, the best first."""
        jump = lambda i, j: -self.dense[1] * abs(i - j) + scale * sum(self.weight(*n) for n in self.of_jump(i, j))  # noqa: E731
        swap = lambda *span: scale * sum(self.weight(*name) for name in self.of_swap(*span))  # noqa: E731
        fluency = lambda words: self.dense[0] * self.model.log_probs(Text.of([words]))[0]  # noqa: E731
        way = {"swapping": True, "swap": swap} if self.swapping else {"limit": self.limit}
        return translations(len(self.sentence), self.listed(learnt.pairs, scale), jump, fluency, **way)


small = st.composite(lambda draw: Small(draw))()


@settings(max_examples=80, deadline=None)
@given(small, st.sampled_from([1.0, -0.5, 0.0]))
def test_the_decoder_with_sparse_features_finds_all_derivations(made, scale):
    learnt = made.learnt()
    decoder = Decoder(made.table, made.model, np.append(made.dense, scale), made.decoder.searching, learnt)
    found = decoder.search(decoder.sentences(Text.of([made.sentence])), 10**6, distinct=False)
    right = made.every(learnt, scale)
    np.testing.assert_allclose(found.scores, [d.score for d in right], atol=1e-5)
    assert sorted(decoder.texts(found)) == sorted(" ".join(d.words) for d in right)
    np.testing.assert_allclose(decoder.features(found) @ decoder.weights, found.scores, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(small, st.data())
def test_forced_decoding_with_sparse_features(made, data):
    learnt = made.learnt()
    every = made.every(learnt, 1.0)
    words = data.draw(st.sampled_from([d.words for d in every]) | st.lists(st.sampled_from(TARGET), max_size=5))
    decoder = Decoder(made.table, made.model, np.append(made.dense, 1.0), made.decoder.searching, learnt)
    found = forced(decoder, Bitext.of([(made.sentence, list(words))]))
    np.testing.assert_allclose(found.scores, [d.score for d in every if d.words == tuple(words)][:1], atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(small)
def test_without_swaps_there_is_one_order(made):
    if not made.swapping:
        return
    learnt = made.learnt()
    barred = np.full(int(made.sentences.swap_starts(made.table.longest)[-1]), -1e6)
    found = made.decoder.search(
        made.sentences, 10**6, distinct=False, swaps=barred, more=learnt.options(made.sentences)
    )
    monotone = Decoder(made.table, made.model, made.dense, Searching.exact(distortion_limit=0, turning=False))
    right = monotone.search(made.sentences, 10**6, distinct=False, more=learnt.options(made.sentences))
    kept = found.scores > -1e5
    np.testing.assert_allclose(found.scores[kept], right.scores, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(small)
def test_features_of_phrase_pairs_have_one_number_for_each_name(made):
    side = made.text.source, made.text.target
    tags = []
    for text, words in zip(side, (made.table.source, made.table.target), strict=True):
        ids = words.encode(text.vocabulary)[text.ids.flat].astype(np.int64)
        tags.append(PhraseTags.of(ids, text.ids.offsets, made.rng.integers(0, 3, len(ids)), len(words), 3, 4))
    parts = phrase_parts(made.table, np.arange(len(made.table)), *tags)
    templates = phrase_templates("all")
    index = templates.index(parts)
    rows, names = templates.matrix(parts, index), {}
    phrase = np.searchsorted(made.table.arrays["pair_starts"], np.arange(len(made.table)), side="right") - 1
    starts, words = made.table.arrays["source_starts"], made.table.arrays["source_words"]
    for pair in range(len(made.table)):
        source = tuple(words[starts[phrase[pair]] : starts[phrase[pair] + 1]].tolist())
        target, links = made.table.target_of(pair), made.table.links_of(pair)
        patterns = [
            side.of_phrases(parts.columns[name][pair : pair + 1]).item()
            for side, name in zip(tags, ("source", "target"), strict=True)
        ]
        shape = (len(source), len(target), links)
        likely = tuple(sum(-score >= least for least in BINS) for score in made.table.arrays["scores"][pair][[0, 2]])
        own = [("pair", source, target), ("target", target), ("likely", *likely), ("lengths", *shape[:2])]
        own += [("tags", *patterns), ("target tags", patterns[1]), ("links", shape)]
        own += [("links and tags", shape, patterns[0]), *(("word", word) for word in target)]
        words_of = [made.table.target.index_of(word) for word in target]
        own += [("linked", source[i], words_of[j]) for i, j in sorted(links)]
        for number, name in zip(rows.indices[rows.indptr[pair] : rows.indptr[pair + 1]].tolist(), own, strict=True):
            assert names.setdefault(number, name) == name
    assert len(set(names.values())) == len(names) == index.n_features


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=6), max_size=6))
def test_tags_of_phrases_are_those_that_they_most_often_have(rows):
    from isogloss.tasks.translate._numba.sparse import phrase_codes

    flat = np.array([pair for row in rows for pair in row], np.int64).reshape(-1, 2)
    offsets = np.cumsum([0, *map(len, rows)])
    found = PhraseTags.of(flat[:, 0].copy(), offsets, flat[:, 1].copy(), 4, 3, 3)
    counts: dict = {}
    for row in rows:
        for first in range(len(row)):
            for end in range(first + 1, min(len(row), first + 3) + 1):
                words, tags = zip(*row[first:end], strict=True)
                counts.setdefault(words, Counter())[tags] += 1
    assert found.words[3] == 3
    for words, seen in counts.items():
        code = np.empty(1, np.int64)
        phrase_codes(np.array([0, len(words)]), np.array(words, np.int32), code)
        pattern, tags = int(found.of_phrases(code)[0]), []
        while pattern:
            tags.append(pattern % found.base - 1)
            pattern //= found.base
        assert seen[tuple(tags)] == max(seen.values())
        if len(words) == 1:
            assert found.words[words[0]] == tags[0]


# --- learning ---------------------------------------------------------------------------------------------------------

PAIRS = samples.bitext("en-de")
GOLD = samples.gold("en-de")


def cross_fitted(update="local", features="all", swapping=True, folds=3, n=30, nbest=8, least=1):
    searching = Searching(beam=20, pops=40, swapping=swapping, distortion_limit=0 if swapping else 4)

    def make(text, links):
        table = TranslationTable.of(text, links, max_length=3)
        return Decoder(table, LanguageModel.of(text.target, 3, words=table.target), first_weights(), searching)

    table = make(PAIRS, GOLD).table
    tags = []
    for text, words in ((PAIRS.source, table.source), (PAIRS.target, table.target)):
        ids = words.encode(text.vocabulary)[text.ids.flat].astype(np.int64)
        tags.append(PhraseTags.of(ids, text.ids.offsets, ids % 5, len(words), 5, 3))
    kind = Kind(features, *tags, Reordering(tags[0].words, 5, swapping))
    return CrossFitted.of(
        PAIRS, GOLD, spread_evenly(PAIRS.cells > 0, n), folds, make, kind, nbest=nbest, update=update, least=least
    )


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("swapping", [False, True])
def test_scores_are_weights_times_the_features_of_candidates(update, swapping):
    search = cross_fitted(update, swapping=swapping)
    rng = np.random.default_rng(1)
    weights = np.concatenate([0.1 * rng.normal(size=search.index.n_features), first_weights()])
    items = rng.permutation(len(search))[:12]
    found, model = search(weights, items), SearchModel(search, len(search), search.n_weights)
    scores = model.batch(weights, items).scores
    for k, item in enumerate(items.tolist()):
        fold = search.folds[search.fold[item]]
        own = scores[k][: len(scores[k]) - (found.right[k] >= 0)]
        assert (np.diff(own) <= 1e-9).all()
        alone = search(weights, items[k : k + 1])
        np.testing.assert_allclose(alone.features.scores(weights), scores[k], atol=1e-9)
        number = search.place[item]
        reference = list(fold.bitext.target[number])
        text = fold.decoder.sentences(fold.bitext.source[number : number + 1])
        more = search_scores(search, item, weights)
        best = fold.decoder.search(text, 8, **more)
        np.testing.assert_allclose(best.scores, own, atol=1e-9)
        right = [sentence_bleu(words.split(), reference) for words in fold.decoder.texts(best)]
        np.testing.assert_allclose(found.qualities[found.starts[k] : found.starts[k] + len(own)], right, atol=1e-12)


def search_scores(search, item, weights):
    """What options and moves of a sentence score, one by one from the rows of the kind."""
    fold, number = search.folds[search.fold[item]], search.place[item]
    text = fold.decoder.sentences(fold.bitext.source[number : number + 1])
    n = search.index.n_features
    rows = search.kind.of_pairs(fold.decoder, np.arange(len(fold.decoder.table)), search.index)
    scores = rows.scores(weights[:n])
    jumps, swaps = search.kind.reordering.matrices(text, fold.decoder.table, search.index)
    more = {"more": np.where(text.pairs >= 0, scores[text.pairs], 0.0), "jumps": jumps.scores(weights[:n])}
    return more | ({"swaps": swaps.scores(weights[:n])} if swaps.n_rows else {})


def test_sentences_are_decoded_without_what_they_taught():
    search = cross_fitted(folds=4, n=40)
    assert sorted(np.concatenate([fold.items for fold in search.folds]).tolist()) == list(range(40))
    once = Counter(word for row in PAIRS.source for word in set(row))
    for fold in search.folds:
        table = fold.decoder.table
        for row in fold.bitext.source:
            for word in row:
                if once[word] == 1:
                    assert not list(table.entries([word]))
        lost = [w for row in fold.bitext.target for w in row if not any(w in r for r in others(fold))]
        unknown = [fold.decoder.language_model._is_unknown[table.target.index_of(word)] for word in lost]
        assert all(unknown)


def others(fold):
    """Target sides of all pairs that are not in a fold."""
    own = {tuple(row) for row in fold.bitext.target}
    return [row for row in PAIRS.target if tuple(row) not in own]


def test_rare_features_are_left_out():
    every, often = cross_fitted(), cross_fitted(least=5)
    counts = Counter()
    for fold, rows in zip(every.folds, every._rows, strict=True):
        features = every.kind.of_pairs(fold.decoder, fold.used, every.index)
        for pair in fold.sentences.pairs[fold.sentences.pairs >= 0].tolist():
            row = int(np.searchsorted(fold.used, pair))
            counts.update(features.indices[features.indptr[row] : features.indptr[row + 1]].tolist())
        counts.update(rows.indices[rows.indptr[rows.jumps] :].tolist())
    kept = [number for number in range(every.index.n_features) if counts[number] >= 5]
    np.testing.assert_array_equal(often.index.keys, every.index.keys[kept])
    assert 0 < len(kept) < every.index.n_features


def test_what_is_reachable_is_what_bold_steps_are_drawn_to():
    search = cross_fitted("bold")
    weights = np.concatenate([np.zeros(search.index.n_features), first_weights()])
    found = search(weights, np.arange(len(search)))
    np.testing.assert_array_equal(found.right >= 0, search.reachable())


def test_threads_and_batches_of_search_change_nothing():
    search = cross_fitted("hybrid")
    weights = np.concatenate([np.full(search.index.n_features, 0.01), first_weights()])
    items = np.arange(len(search))[::-1]
    with using_threads(1):
        one = search(weights, items)
    with using_threads(4):
        four = search(weights, items)
    assert one.features.indices.tobytes() == four.features.indices.tobytes()
    assert one.qualities.tobytes() == four.qualities.tobytes()


@pytest.mark.parametrize("update", UPDATES)
def test_learning_raises_the_quality_of_what_is_found(update):
    search = cross_fitted(update)
    learner = Perceptron(
        SearchModel(search, len(search), search.n_weights), Towards(update), batch=4,
        rates=[(0, 0.2), (search.index.n_features, 0.0)],
    )  # fmt: skip
    state = learner.init(np.concatenate([np.zeros(search.index.n_features), first_weights()]))

    def quality(weights):
        found = search(weights, np.arange(len(search)))
        return found.qualities[found.starts[:-1]].mean()

    before = quality(state.weights)
    for _ in range(4):
        state, info = learner.step(state)
    np.testing.assert_array_equal(state.weights[search.index.n_features :], first_weights())
    if info.updates or update != "bold":
        assert quality(state.average) > before


# --- the estimator ----------------------------------------------------------------------------------------------------

FEW = {
    "iterations": 2,
    "epochs": 2,
    "learn_on": 24,
    "folds": 2,
    "beam": 10,
    "pops": 20,
    "nbest": 6,
    "passes": 2,
    "proposals": 5,
}


@pytest.mark.parametrize("reordering", ["swap", "distance", "monotone"])
@pytest.mark.parametrize(("features", "trainer"), [("phrases", "perceptron"), ("pos", "mira"), ("all", "risk")])
def test_translators_come_back(tmp_path, features, reordering, trainer):
    translator = Translator(features=features, reordering=reordering, rate=0.3, trainer=trainer, **FEW)
    translator.fit(PAIRS[12:], PAIRS[:12], links=GOLD[12:])
    assert 0 <= translator.reachable_ <= 1 and len(translator.learning_) == 2 and "learnt" in translator.weights_
    translator.save(tmp_path / "model")
    again = Translator.load(tmp_path / "model")
    assert again.weights_ == translator.weights_ and again.reachable_ == translator.reachable_
    for one, other in zip(
        translator.predict_nbest(PAIRS.source[:20], 3), again.predict_nbest(PAIRS.source[:20], 3), strict=True
    ):
        assert [(t.text, t.features) for t in one] == [(t.text, t.features) for t in other]
        for t in one:
            assert t.score == pytest.approx(sum(t.features[name] * w for name, w in translator.weights_.items()))


def test_an_interrupted_run_goes_on_to_the_same(tmp_path, monkeypatch):
    given = {"features": "pos", "reordering": "swap", "classes": 6, **FEW}
    whole = Translator(**given).fit(PAIRS[12:], PAIRS[:12], links=GOLD[12:])
    place = tmp_path / "model.checkpoint"
    monkeypatch.setattr(CrossFitted, "reachable", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Translator(**given).fit(PAIRS[12:], PAIRS[:12], links=GOLD[12:], checkpoint=place)
    monkeypatch.undo()
    assert (tmp_path / "model.checkpoint.dense").exists() and not (tmp_path / "model.checkpoint.sparse").exists()
    again = Translator(**given).fit(PAIRS[12:], PAIRS[:12], links=GOLD[12:], checkpoint=place, resume=True)
    assert again.weights_ == whole.weights_
    assert again.predict(PAIRS.source) == whole.predict(PAIRS.source)


def interrupted(search):
    raise KeyboardInterrupt


def test_checkpoints_of_stages_of_another_run_are_refused_before_the_work_or_make_way(tmp_path, monkeypatch):
    place, given = tmp_path / "model.checkpoint", {"features": "phrases", **FEW}
    monkeypatch.setattr(Translator, "_learn_sparse", lambda *given: interrupted(None))
    with pytest.raises(KeyboardInterrupt):
        Translator(**given).fit(PAIRS[12:], PAIRS[:12], links=GOLD[12:], checkpoint=place)
    monkeypatch.setattr(Translator, "_learn", lambda *given: interrupted(None))
    with pytest.raises(UsageError, match=r"model.checkpoint.dense: this checkpoint is of another run"):
        Translator(**given, seed=1).fit(PAIRS[12:], PAIRS[:12], links=GOLD[12:], checkpoint=place, resume=True)
    with pytest.raises(KeyboardInterrupt):
        Translator(**given).fit(PAIRS[12:], PAIRS[:12], links=GOLD[12:], checkpoint=place, resume=True)
    assert (tmp_path / "model.checkpoint.dense").exists()
    with pytest.raises(KeyboardInterrupt):
        Translator(**given, seed=1).fit(PAIRS[12:], PAIRS[:12], links=GOLD[12:], checkpoint=place)
    assert not (tmp_path / "model.checkpoint.dense").exists()


def test_tags_take_the_place_of_classes():
    rows = (
        [[("DET" if len(word) < 4 else "NOUN") for word in row] for row in PAIRS.source],
        [[word[0] for word in row] for row in PAIRS.target],
    )
    given = {"features": "pos", "rate": 0.3, **FEW}
    texts = tuple(Text.of(side) for side in rows)
    trees = tuple(
        Treebank.of([list(zip(words, tags, strict=True)) for words, tags in zip(side, own, strict=True)])
        for side, own in zip((PAIRS.source, PAIRS.target), rows, strict=True)
    )
    learnt = [Translator(**given).fit(PAIRS, links=GOLD, tags=tags) for tags in (texts, trees, None)]
    assert learnt[0]._sparse.n_tags == 2
    np.testing.assert_array_equal(learnt[0]._sparse.pairs, learnt[1]._sparse.pairs)
    assert not np.array_equal(learnt[0]._sparse.pairs, learnt[2]._sparse.pairs)


def test_what_steps_are_drawn_to_matters_where_references_can_be_reached():
    twice = [*range(39), *range(39)]  # in other folds, so that each is known from its double
    given = {**FEW, "features": "phrases", "rate": 0.3, "learn_on": 78, "folds": 5, "iterations": 0}
    text, links = PAIRS.take(twice), GOLD.take(twice)
    found = [
        Translator(**given, trainer=trainer, **({} if trainer == "risk" else {"update": update})).fit(
            text, PAIRS[40:], links=links
        )
        for trainer, update in (("risk", ""), *(("perceptron", update) for update in UPDATES), ("mira", "hybrid"))
    ]
    assert all(0.3 < one.reachable_ < 1 for one in found), [one.reachable_ for one in found]
    assert len({one._sparse.pairs.tobytes() for one in found}) == len(found)


def test_tags_that_do_not_fit_are_refused():
    source, target = Text.of([["X"] * len(row) for row in PAIRS.source]), PAIRS.target
    learn = Translator(features="pos", **FEW)
    with pytest.raises(BitextError, match=r"sentence 1: 1 tag for 6 words of the source side \(\S+, line 1\)"):
        learn.fit(PAIRS, links=GOLD, tags=(Text.of([["X"]] * len(PAIRS)), target))
    with pytest.raises(BitextError, match="tags of 3 sentences were given, and the target side has"):
        learn.fit(PAIRS, links=GOLD, tags=(source, target[:3]))
    with pytest.raises(ParameterError, match="tags say nothing with features='dense'"):
        Translator(iterations=1).fit(PAIRS, links=GOLD, tags=(source, target))


def test_damaged_sparse_features_are_refused():
    made = cross_fitted(n=4, folds=2)
    table = made.folds[0].decoder.table
    learnt = Learnt(np.zeros(len(table), np.float32), made.kind.reordering, Index(made.index.keys[:4]), np.zeros(4))
    arrays = learnt.to_arrays()
    assert len(Learnt.from_arrays(arrays, table, 5, True).weights) == 4
    for name, damaged in (("pairs", arrays["pairs"][1:]), ("tags", arrays["tags"] + 6), ("weights", np.zeros(3))):
        with pytest.raises(ModelError):
            Learnt.from_arrays(arrays | {name: damaged}, table, 5, True)


@pytest.mark.parametrize("tags", [2**53, 500, -1, "5"])
def test_models_with_more_tags_than_numbers_can_hold_are_refused(tmp_path, tags):
    given = {**FEW, "iterations": 0, "features": "pos", "reordering": "swap", "epochs": 1, "classes": 4}
    Translator(**given).fit(PAIRS[12:], PAIRS[:12], links=GOLD[12:]).save(tmp_path / "model")
    saved = store.read(tmp_path / "model")
    assert Translator._from_saved(saved)._sparse.n_tags == saved.meta["sparse"]["tags"]
    saved.meta["sparse"]["tags"] = tags
    with pytest.raises(ModelError, match="'tags' should be a whole number from 0 to 499"):
        Translator._from_saved(saved)


def test_edges():
    nothing = Translator(features="phrases", learn_on=1, **{k: v for k, v in FEW.items() if k != "learn_on"})
    nothing.fit(PAIRS[:6], links=GOLD[:6])
    assert nothing.predict(["", "qqq", "qqq zzz"]) == ["", "qqq", "qqq zzz"]
    copies = Bitext.of([("a b c", "a b c"), ("b c", "b c"), ("c a", "c a"), ("a a b", "a a b")] * 3)
    same = Translator(features="all", reordering="swap", **FEW).fit(copies)
    assert same.predict(["a b c a", "b"]) == ["a b c a", "b"]
