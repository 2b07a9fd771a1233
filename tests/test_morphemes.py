"""Models of morphemes against enumeration: all ways to cut a word, with all types, scored from probabilities alone."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from isogloss.engine.threads import using_threads
from isogloss.errors import ModelError, ParameterError
from isogloss.tasks.segment.affixes import mine_affixes, reachable
from isogloss.tasks.segment.morphemes import LABELS, MODELS, MorphemeModel, MorphemeSettings, _Learning, marks_of
from isogloss.tasks.segment.submodels import PREFIX, STEM, SUFFIX, Emissions, Spelling
from isogloss.tasks.segment.types import Substrings, WordTypes, letters_of

STEMS = ["walk", "talk", "jump", "call", "read", "play", "train", "load"]
WORDS = [a + stem + z for stem in STEMS for a, z in itertools.product(("", "re", "un"), ("", "s", "ed", "ing", "er"))]
PAPER: dict[str, Any] = {"leave_out": False, "base_power": 1.0, "shortest_stem": 1, "longest_affix": 12}


def _fit(words: list[str] = WORDS, **given: Any) -> MorphemeModel:
    return MorphemeModel.fit(WordTypes.of(words), MorphemeSettings(**given))


def _ways(model: MorphemeModel, word: str) -> dict[tuple[tuple[int, int, int], ...], float]:
    """Log score of each way to cut a word with labels, from what the model says of strings, steps and ends."""
    settings, params = model.settings, model.params
    table = dict(zip(model.substrings.strings(model.alphabet), params.table, strict=True))
    letters, k = letters_of(word), settings.n_labels
    number = {letter: i for i, letter in enumerate(model.alphabet)}
    found = {}
    for cuts in itertools.product((False, True), repeat=len(letters) - 1):
        borders = [0, *(t + 1 for t, cut in enumerate(cuts) if cut), len(letters)]
        pieces = list(itertools.pairwise(borders))
        if any(b - a > settings.longest for a, b in pieces):
            continue
        for labels in itertools.product(range(k), repeat=len(pieces)):
            score = params.steps[1, k, labels[0]] + params.steps[1, labels[-1], k]
            for i, ((a, b), label) in enumerate(zip(pieces, labels, strict=True)):
                string = "".join(letters[a:b])
                if string in table:
                    score += table[string][label]
                else:
                    spelt = sum(model.spelling.letters[number.get(one, len(number))] for one in letters[a:b])
                    score += params.unseen[label] + spelt + model.spelling.stop
                score -= (b - a) ** settings.length_penalty if settings.length_penalty else 0.0
                if settings.typed and label == STEM and b - a < settings.shortest_stem:
                    score -= 10.0
                if settings.typed and label != STEM and b - a > settings.longest_affix:
                    score -= 10.0
                score += params.ends[int(b == len(letters)), min(i, 2), label]
                if i:
                    score += params.steps[0, labels[i - 1], label]
            if score > -np.inf:
                found[tuple((a, b, label) for (a, b), label in zip(pieces, labels, strict=True))] = float(score)
    return found


CASES = [
    *({"model": model} for model in MODELS),
    *({"model": model, **PAPER, "length_penalty": 1.6} for model in MODELS),
    *({"model": model, "n_prefixes": 3, "n_suffixes": 6} for model in MODELS),
    {"model": "full", "longest": 3}, {"model": "hmmp", "prefix_may_end": True, "length_penalty": 0.0},
]  # fmt: skip


@pytest.mark.parametrize("given", CASES, ids=lambda one: "-".join(map(str, one.values())))
def test_inference_agrees_with_enumeration(given: dict[str, Any]) -> None:
    model = _fit(**given, iterations=3, first_iterations=2)
    words = ["reads", "unred", "a", "xq", "jumper", "ing"]
    types = model.encode(words)
    believed, viterbi, k = model.posteriors(types), model.most_probable(types), model.settings.n_labels
    for i, word in enumerate(words):
        ways = _ways(model, word)
        whole = np.logaddexp.reduce(list(ways.values()))
        assert believed.log_weights[i] == pytest.approx(whole)
        n = len(word)
        boundaries = np.zeros(n - 1)
        spans: dict[tuple[int, int, int], float] = {}
        for y, score in ways.items():
            chance = np.exp(score - whole)
            for a, b, label in y:
                if a:
                    boundaries[a - 1] += chance
                spans[a, b, label] = spans.get((a, b, label), 0.0) + chance
        assert believed.boundaries[i] == pytest.approx(boundaries, abs=1e-9)
        listed = [(a, b) for a in range(n) for b in range(a + 1, min(n, a + model.settings.longest) + 1)]
        wanted = [[spans.get((a, b, label), 0.0) for label in range(k)] for a, b in listed]
        assert np.asarray(believed.spans[i]) == pytest.approx(np.array(wanted), abs=1e-9)
        best = max(ways, key=ways.__getitem__)
        own = best if model.settings.typed else tuple((a, b, STEM) for a, b, _ in best)
        assert viterbi[i] == own
        cuts: dict[tuple[int, ...], float] = {}
        for y, score in ways.items():
            ends = tuple(end for _, end, _ in y)
            cuts[ends] = cuts.get(ends, 0.0) + float(np.exp(score - whole))
        listed_ways = model.k_best(model.encode([word]), 1000)[0]
        assert own in [y for _, y in listed_ways]
        assert [chance for chance, _ in listed_ways] == pytest.approx(sorted(cuts.values(), reverse=True))
        for chance, y in listed_ways:  # each cut once, whatever its types
            assert chance == pytest.approx(cuts.pop(tuple(end for _, end, _ in y)))


def test_the_decoder_gains_most_in_expectation() -> None:
    model = _fit(iterations=3)
    words = ["reads", "unplayed", "trains", "xq", "loading"]
    for threshold in (0.1, 0.5, 0.9):
        found = model.best(model.encode(words), threshold=threshold)
        sure = model.confidence(model.encode(words), found)
        for i, word in enumerate(words):
            ways = _ways(model, word)
            whole = np.logaddexp.reduce(list(ways.values()))
            chances = {y: np.exp(score - whole) for y, score in ways.items()}
            cuts = {y: frozenset(a for a, _, _ in y if a) for y in ways}
            p = {t: sum(c for y, c in chances.items() if t in cuts[y]) for t in range(1, len(word))}
            gains = {one: sum(p[t] - threshold for t in one) for one in cuts.values()}
            own = frozenset(a for a, _, _ in found[i] if a)
            assert gains[own] >= max(gains.values()) - 0.02
            assert sure[i] == pytest.approx(sum(c for y, c in chances.items() if cuts[y] == own))


def test_counts_of_an_iteration_agree_with_enumeration() -> None:
    words, weights = ["aba", "ab", "bb", "abab"], [1.0, 3.0, 2.0, 0.5]
    settings = MorphemeSettings("full", longest=4, length_penalty=1.2)
    types = WordTypes.of(words, weights)
    substrings, spans = Substrings.grown(types.letters, len(types.alphabet), 4)
    learning = _Learning(types, substrings, spans, settings, mine_affixes(types, 0, 0), np.zeros(0, np.int8))
    params = learning.start()
    params = params._replace(table=params.table + np.random.default_rng(0).normal(size=params.table.shape))
    batch = range(len(words))
    counts = learning.zero_counts()
    counts += learning.expected_counts(batch, learning.distributions(params, batch))
    model = MorphemeModel(settings, tuple(types.alphabet), substrings, params, learning.spelling)
    strings = substrings.strings(types.alphabet)
    table, ends, steps = np.zeros((len(strings), 3)), np.zeros((2, 3, 3)), np.zeros((2, 4, 4))
    largest: dict[tuple[str, int, int, str], float] = {}
    for word, weight in zip(words, weights, strict=True):
        ways = _ways(model, word)
        whole = np.logaddexp.reduce(list(ways.values()))
        for y, score in ways.items():
            chance = weight * np.exp(score - whole)
            steps[1, 3, y[0][2]] += chance
            steps[1, y[-1][2], 3] += chance
            for i, (a, b, label) in enumerate(y):
                table[strings.index(word[a:b]), label] += chance
                ends[int(b == len(word)), min(i, 2), label] += chance
                for place in (a, -1):
                    key = (word, a, label if place < 0 else -1, word[a:b])
                    largest[key] = largest.get(key, 0.0) + chance
                if i:
                    steps[0, y[i - 1][2], label] += chance
    assert counts.table == pytest.approx(table)
    assert counts.ends == pytest.approx(ends)
    assert counts.steps == pytest.approx(steps)
    for node, string in enumerate(strings):
        for label in (-1, 0, 1, 2):
            own = max([v for (_, _, kind, s), v in largest.items() if kind == label and s == string], default=0.0)
            found = counts.largest[node] if label < 0 else counts.largest_typed[node, label]
            assert found == pytest.approx(own)


@pytest.mark.parametrize("model", MODELS)
def test_an_exact_estimate_never_falls(model: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        words = sorted({"".join(rng.choice(list("abc"), rng.integers(1, 8))) for _ in range(40)})
        types = WordTypes.of(words, rng.integers(1, 5, len(words)))
        settings = MorphemeSettings(
            model, 1.3, 15, longest=6, exact=True, **{**PAPER, "longest_affix": 3}, first_iterations=4
        )
        trace = MorphemeModel.fit(types, settings).trace
        rising = trace[settings.warming :]  # ends of words come in when the simpler model is done
        assert len(rising) == 15
        assert (np.diff(rising) >= -1e-7 * np.abs(rising[1:])).all(), np.diff(rising)
        assert rising[-1] > rising[0] + 1e-3


def test_types_that_say_nothing_leave_morphemes_alone() -> None:
    up = _fit(model="up", **PAPER, iterations=4)
    k = 3
    only = np.full((2, k + 1, k + 1), -np.inf)
    only[0, STEM, STEM] = only[1, k, STEM] = only[1, STEM, k] = 0.0
    params = up.params._replace(
        table=np.repeat(up.params.table, k, axis=1), unseen=np.repeat(up.params.unseen, k),
        ends=np.zeros((2, 3, k)), steps=only,
    )  # fmt: skip
    full = replace(up, settings=replace(up.settings, model="full"), params=params)
    types = up.encode(["reads", "unplayed", "zz", "walking"])
    assert full.posteriors(types).log_weights == pytest.approx(up.posteriors(types).log_weights, abs=1e-10)
    assert full.most_probable(types) == up.most_probable(types)
    assert full.posteriors(types).boundaries.flat == pytest.approx(up.posteriors(types).boundaries.flat, abs=1e-10)


def test_the_longest_morpheme_does_not_matter_beyond_the_longest_word() -> None:
    words = [word for word in WORDS if len(word) <= 6]
    short, long = (_fit(words, longest=longest, iterations=5) for longest in (6, 20))
    assert short.trace == pytest.approx(long.trace)
    a, b = (model.posteriors(model.encode(words)) for model in (short, long))
    assert a.boundaries.flat == pytest.approx(b.boundaries.flat)


def test_morphemes_of_one_letter() -> None:
    model = _fit(longest=1, iterations=2)
    for y in model.best(model.encode(["walk", "xy"])):
        assert [b - a for a, b, _ in y] == [1] * len(y)


def test_a_larger_penalty_gives_more_morphemes_and_none_whole_words() -> None:
    for model in ("up", "full"):
        sizes = []
        for penalty in (0.0, 1.2, 1.5, 1.8, 2.2):
            fitted = _fit(model=model, length_penalty=penalty, **PAPER)
            sizes.append(sum(len(y) for y in fitted.most_probable(fitted.encode(WORDS))))
        assert sizes == sorted(sizes)
        assert sizes[0] == len(WORDS)
        assert sizes[-1] > 2 * len(WORDS)


def test_affixes_are_found_and_typed() -> None:
    model = _fit()
    found = model.best(model.encode(["rejumping", "untrains", "walk"]))
    assert found == [
        ((0, 2, PREFIX), (2, 6, STEM), (6, 9, SUFFIX)), ((0, 2, PREFIX), (2, 7, STEM), (7, 8, SUFFIX)), ((0, 4, STEM),)
    ]  # fmt: skip
    assert LABELS[PREFIX] == "prefix"


def test_listed_affixes_alone_are_affixes() -> None:
    types = WordTypes.of(WORDS)
    affixes = mine_affixes(types, 2, 4, longest=4)
    names = [{"".join(types.alphabet[i] for i in one) for one in kind} for kind in affixes]
    assert names == [{"re", "un"}, {"s", "ed", "er", "ing"}]
    model = _fit(n_prefixes=2, n_suffixes=4)
    for word, y in zip(WORDS, model.best(types), strict=True):
        for a, b, label in y:
            assert label == STEM or word[a:b] in names[label // 2]
    up = _fit(model="up", n_prefixes=2, n_suffixes=4)
    for word, y in zip(WORDS, up.most_probable(types), strict=True):
        for (a, b, _), (c, d, _) in itertools.pairwise(y):
            assert word[a:b] in names[0] or word[c:d] in names[1]
    letters = {letter: i for i, letter in enumerate(types.alphabet)}
    assert reachable(tuple(letters[one] for one in "rewalking"), [2, 6], affixes) == 2
    assert reachable(tuple(letters[one] for one in "rewalking"), [3, 6], affixes) == 1


def test_known_boundaries_are_kept_while_it_learns() -> None:
    types = WordTypes.of([*WORDS, "abcdefs", "abcdefs"])
    known: list[Any] = [None] * len(WORDS) + [[3], []]
    marks = marks_of(types, known)
    model = MorphemeModel.fit(types, MorphemeSettings(iterations=3), known=known)
    q = model.distributions(types, marks).argmax()
    assert [[b for _, b, _ in y] for y in q[-2:]] == [[3, 7], [7]]
    short = MorphemeModel.fit(types, MorphemeSettings(iterations=3, longest=3), known=known)
    assert [b for _, b, _ in short.best(types)[-2]][-1] == 7  # a known piece of four letters is cut further
    for wrong in ([[7], []], [[0], []]):
        with pytest.raises(ParameterError, match="cannot be cut after"):
            marks_of(types, [*([None] * len(WORDS)), *wrong])
    with pytest.raises(ParameterError, match="cuts of 1"):
        marks_of(types, [None])


def test_a_weight_is_a_number_of_equal_words() -> None:
    twice = MorphemeModel.fit(WordTypes.of(WORDS + WORDS[:20]), MorphemeSettings(**PAPER))
    weights = np.ones(len(WORDS))
    weights[:20] = 2.0
    weighed = MorphemeModel.fit(WordTypes.of(WORDS, weights), MorphemeSettings(**PAPER))
    assert weighed.trace == pytest.approx(twice.trace)
    assert WordTypes.weighed([1, 4], "tokens").tolist() == [1.0, 4.0]
    with pytest.raises(ParameterError, match="frequencies should be one of"):
        WordTypes.weighed([1], "sqrt")


def test_threads_and_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from isogloss.tasks.segment import morphemes

    with using_threads(1):
        one = _fit(iterations=3)
    with using_threads(2):
        two = _fit(iterations=3)
        monkeypatch.setattr(morphemes, "BATCH", 1000)
        three = _fit(iterations=3)
    for other in (two, three):
        assert np.array_equal(one.params.table, other.params.table)
        assert np.array_equal(one.params.ends, other.params.ends)


def test_words_of_thousands_of_letters() -> None:
    model = _fit(model="up", iterations=2)
    word = "".join(np.random.default_rng(0).choice(list("abcdefghijklmnop"), 5000))
    types = model.encode([word])
    assert model.best(types)[0][-1][1] == 5000
    assert np.isfinite(model.posteriors(types).boundaries.flat).all()


def test_strange_words() -> None:
    model = _fit(iterations=3, longest=5)
    words = ["a", "ж", "e\u0301s", "𐌰𐌱𐌲s", "walk" * 12, "WALKING", "x-y", "33"]
    types = model.encode(words)
    found = model.best(types)
    for word, y in zip(words, found, strict=True):
        assert [a for a, _, _ in y] == [0, *(b for _, b, _ in y[:-1])]
        assert y[-1][1] == len(letters_of(word))
    assert len(letters_of("e\u0301s")) == 2
    assert found[5] == ((0, 4, STEM), (4, 7, SUFFIX))
    listed = _fit(iterations=3, longest=5, n_prefixes=2, n_suffixes=2)
    assert listed.best(types)[4][-1][1] == 48
    assert _fit(["a"]).best(WordTypes.of(["a"])) == [((0, 1, STEM),)]
    with pytest.raises(ParameterError, match="a word is empty"):
        WordTypes.of(["a", ""])


def test_what_is_kept_gives_the_same_and_damage_is_refused() -> None:
    model = _fit(iterations=3)
    arrays, meta = model.to_saved()
    again = MorphemeModel.from_saved(arrays, meta)
    types = model.encode(["rewalking", "zzz", "loads"])
    assert again.best(types) == model.best(types)
    assert np.array_equal(again.posteriors(types).boundaries.flat, model.posteriors(types).boundaries.flat)
    parents = arrays["parents"].copy()
    parents[0] = 3
    deep = {"parents": np.arange(-1, 9999, dtype=np.int32), "letters": np.zeros(10_000, np.int32)}
    for wrong in (
        {**arrays, "parents": parents}, {**arrays, "letters": arrays["letters"] * 0},
        {**arrays, "table": arrays["table"][:, :2]}, {**arrays, **deep, "table": np.zeros((10_000, 3))},
    ):  # fmt: skip
        with pytest.raises(ModelError):
            MorphemeModel.from_saved(wrong, meta)
    for name, value in (("longest", 0), ("model", "none"), ("variance", -1.0), ("exact", True), ("leave_out", 1)):
        with pytest.raises(ModelError):
            MorphemeModel.from_saved(arrays, {**meta, "settings": {**meta["settings"], name: value}})


def test_no_string_is_impossible_however_strange_its_letters() -> None:
    types = WordTypes.of(["ab" * 32, "ab"])
    settings = MorphemeSettings(longest=64, base_power=1.0)
    substrings, _ = Substrings.grown(types.letters, 2, 64)
    emissions = Emissions(settings, substrings, Spelling(np.full(3, -20.0), -1.0), mine_affixes(types, 0, 0))
    n, k = len(substrings), settings.n_labels
    for table, unseen in (emissions.start(), emissions.fit(np.ones((n, k)), np.ones(n), np.ones((n, k)))):
        assert np.isfinite(table).all() and np.isfinite(unseen).all()


def test_settings_that_do_not_go_together() -> None:
    with pytest.raises(ParameterError, match="exact: needs"):
        MorphemeSettings(exact=True)
    with pytest.raises(ParameterError, match="model should be one of"):
        MorphemeSettings("none")


def test_substrings_are_those_of_the_words_and_no_others() -> None:
    words = ["abc", "abd", "bcabc"]
    types = WordTypes.of(words)
    found, spans = Substrings.grown(types.letters, len(types.alphabet), 3)
    wanted = [word[a:b] for word in words for a in range(len(word)) for b in range(a + 1, min(len(word), a + 3) + 1)]
    strings = found.strings(types.alphabet)
    assert [strings[i] for i in spans] == wanted
    assert sorted(strings) == sorted(set(wanted))
    assert found.lengths.tolist() == [len(one) for one in strings]
    assert np.array_equal(found.spans(types.letters), spans)
    small, old = found.kept(np.array([one == "abc" for one in strings]))
    assert small.strings(types.alphabet) == ["a", "ab", "abc"] == [strings[i] for i in old]
    many = WordTypes.of(["".join(np.random.default_rng(i).choice(list("abcdefgh"), 30)) for i in range(40)])
    grown, numbers = Substrings.grown(many.letters, 8, 7)  # the table grows on the way
    assert np.array_equal(grown.spans(many.letters), numbers)
