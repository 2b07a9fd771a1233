"""Morphemes that come from the words of a translation: against enumeration, and what is left when parts are off."""

from __future__ import annotations

import itertools
import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isogloss import samples
from isogloss.cli import main
from isogloss.data import Bitext, Links, Segmentation
from isogloss.data.ragged import Ragged
from isogloss.errors import SegmentationError, UsageError
from isogloss.learners.runner import Interrupted
from isogloss.progress import QuietProgress
from isogloss.structures import AlignmentChain
from isogloss.tasks.segment import BilingualSegmenter, Segmenter
from isogloss.tasks.segment.bilingual import BilingualModel, BilingualSettings, _Learning
from isogloss.tasks.segment.distortion import FARTHEST, Distortion
from isogloss.tasks.segment.lattices import WordLattices
from isogloss.tasks.segment.morphemes import MorphemeModel, MorphemeSettings
from isogloss.tasks.segment.pairs import Params, SentencePairs
from isogloss.tasks.segment.types import WordTypes

WORDS = ["aba", "ab", "b", "bab"]
SOURCE = [[0, 1], [1], [2, 0, 1], []]
TARGET = [[0, 1], [3], [1, 2], [0]]
PLAIN: dict[str, Any] = {"shortest_stem": 1, "longest_affix": 9, "leave_out": False, "base_power": 1.0}


def pairs_of(words: list[list[int]], source: list[list[int]]) -> SentencePairs:
    sizes = np.array([len(own) for own in source], np.int64)
    owners = [list(range(len(own))) for own in source]
    return SentencePairs(*(Ragged.of(rows, np.int64) for rows in (words, source, owners)), sizes)


def learning_of(settings: MorphemeSettings, own: BilingualSettings, n_source: int = 3) -> tuple[_Learning, Params]:
    types = WordTypes.of(WORDS)
    model = MorphemeModel.fit(types, settings)
    source = SOURCE if n_source else [[] for _ in SOURCE]
    learning = _Learning(pairs_of(TARGET, source), WordLattices.of(types, model, own.least), n_source, model, own)
    return learning, learning.start()


def strange(learning: _Learning, params: Params, seed: int) -> Params:
    """Other numbers everywhere, so that nothing cancels."""
    rng = np.random.default_rng(seed)

    def other(array: Any) -> Any:
        return np.where(np.isfinite(array), rng.normal(-1.0, 1.0, array.shape), array)

    found = {name: other(getattr(params, name)) for name in ("entries", "shares", "table", "ends", "steps", "jumps")}
    return params._replace(**found, done=np.array([99.0]))


def by_hand(learning: _Learning, params: Params, pair: int) -> list[tuple[float, Any, Any]]:
    """Every way to cut and align a sentence: log weight, (word, begin, end, type), and positions (−1 for null)."""
    settings = learning.mono
    k, source = settings.n_labels, SOURCE[pair] if learning.n_source else []
    m = len(source)
    strings = learning.strings.strings(learning.model.alphabet)
    entry = {
        (unit, owner): score
        for unit, owner, score in zip(
            learning.of_entries.tolist(), learning.owners.tolist(), params.entries.tolist(), strict=True
        )
    }
    tables = learning.tables(params)
    start = int(learning.distortion.offsets[learning.distortion.sizes.tolist().index(m)])
    steps = tables[start : start + 2 * (m + 1) ** 2].reshape(2, m + 1, m + 1)
    final = tables[start + 2 * (m + 1) ** 2 :][: m + 1]
    allowed, penalty = settings.allowed_steps(), settings.penalty()
    each = []
    for word in TARGET[pair]:
        letters, ways = WORDS[word], []
        for marks in itertools.product([False, True], repeat=len(letters) - 1):
            cuts = [0, *(t + 1 for t, mark in enumerate(marks) if mark), len(letters)]
            ways += [
                [(word, a, b, label) for (a, b), label in zip(itertools.pairwise(cuts), labels, strict=True)]
                for labels in itertools.product(range(k), repeat=len(cuts) - 1)
            ]
        each.append(ways)
    found = []
    for chosen in itertools.product(*each):
        flat = [one for way in chosen for one in way]
        value, legal = 0.0, True
        for way in chosen:
            for at, (_, a, b, label) in enumerate(way):
                ends, before = int(at == len(way) - 1), way[at - 1][3] if at else k
                legal = legal and allowed[1 if at == 0 else 0, before, label] and (not ends or allowed[1, label, k])
                value += penalty[label, b - a] + params.ends[ends, min(at, 2), label]
                value += params.steps[1 if at == 0 else 0, before, label] + (params.steps[1, label, k] if ends else 0.0)
        if not legal:
            continue
        for positions in itertools.product(range(-1, m), repeat=len(flat)):
            whole, carried = value, m
            for (word, a, b, label), position in zip(flat, positions, strict=True):
                unit = strings.index(WORDS[word][a:b]) * k + label
                owner = learning.n_source if position < 0 else source[position]
                whole += entry[unit, owner]
                whole += steps[1 if a == 0 else 0, carried, m if position < 0 else position]
                carried = carried if position < 0 else position
            found.append((whole + final[carried], flat, positions))
    return found


@pytest.mark.parametrize("model", ["up", "hmmp-basic", "full"])
@pytest.mark.parametrize("n_source", [3, 0])
def test_sentences_agree_with_enumeration(model: str, n_source: int) -> None:
    """Z, morphemes with their types, alignments, boundaries and the best way."""
    settings = MorphemeSettings(model, 1.2, 2, longest=9, **PLAIN)
    learning, params = learning_of(settings, BilingualSettings(least=0.0), n_source)
    params = strange(learning, params, 7)
    q = learning.distributions(params, range(len(TARGET)))
    k = settings.n_labels
    for pair in range(len(TARGET)):
        ways = by_hand(learning, params, pair)
        values = np.array([value for value, _, _ in ways])
        top = values.max()
        z = top + np.log(np.exp(values - top).sum())
        assert q[pair].log_partition() == pytest.approx(z, rel=1e-10)
        m = len(SOURCE[pair]) if n_source else 0
        wanted: dict[Any, float] = {}
        for value, flat, positions in ways:
            word, last = 0, -1
            for (_, a, b, label), position in zip(flat, positions, strict=True):
                word, last = word + int(a == 0 and last >= 0), b
                key = (word, a, b, label, position)
                wanted[key] = wanted.get(key, 0.0) + float(np.exp(value - z))
        rows = [
            (t, *learning.pairs.lattices.rows[r, :3].tolist())
            for t, word in enumerate(TARGET[pair])
            for r in range(learning.pairs.lattices.rows_at[word], learning.pairs.lattices.rows_at[word + 1])
        ]
        found = q[pair].emission_marginals()
        assert k and len(rows) == len(found)
        for row, own in zip(rows, found.tolist(), strict=True):
            for column, p in enumerate(own):
                assert p == pytest.approx(wanted.get((*row, -1 if column == m else column), 0.0), abs=1e-9)
        best = ways[int(values.argmax())]
        arcs = q[pair].arcs
        read = [(rows[int(arcs[arc, 2])][1:], position) for arc, position in q[pair].argmax()]
        assert [position for _, position in read] == list(best[2])
        assert [row for row, _ in read] == [tuple(one[1:]) for one in best[1]]


def test_borders_are_those_of_enumeration() -> None:
    settings = MorphemeSettings("full", 1.2, 2, longest=9, **PLAIN)
    learning, params = learning_of(settings, BilingualSettings(least=0.0, first_iterations=0))
    params = strange(learning, params, 3)
    model = replace(learning.finished(params, ("x", "y", "z"), np.zeros(0)), settings=BilingualSettings(least=0.0))
    kept = dict(zip(model.units.tolist(), model.entries.tolist(), strict=False))
    assert kept  # what is dropped says no more than its back-off
    judged = next(iter(model.judged(learning.pairs.lattices.types, pairs_of(TARGET, SOURCE))))
    q = next(iter(model.believed(learning.pairs.lattices.types, pairs_of(TARGET, SOURCE))))[2]
    at = 0
    for pair, words in enumerate(TARGET):
        grid = np.zeros((len(SOURCE[pair]), len(words)))
        row = 0
        emission = q[pair].emission_marginals()
        for t, word in enumerate(words):
            border = np.zeros(len(WORDS[word]) - 1)
            for r in range(*learning.pairs.lattices.rows_at[word : word + 2].tolist()):
                begin = int(learning.pairs.lattices.rows[r, 0])
                if begin:
                    border[begin - 1] += emission[row].sum()
                grid[:, t] += emission[row, :-1]
                row += 1
            np.testing.assert_allclose(judged.boundaries[at], border, atol=1e-12)
            cut = judged.cuts[at].tolist()
            assert [a for a, _, _ in cut[1:]] == [b for _, b, _ in cut[:-1]] and cut[-1][1] == len(WORDS[word])
            at += 1
        np.testing.assert_allclose(judged.links[pair], np.minimum(grid, 1.0), atol=1e-12)


@pytest.mark.parametrize("leave_out", [False, True])
def test_without_a_source_it_is_the_model_of_words(leave_out: bool) -> None:
    """Learnt on from where the other ends, step by step."""
    words = [word for word, _ in samples.morphemes().part(0, 40).words()]
    types = WordTypes.of([word.lower() for word in words])
    settings = MorphemeSettings("full", 1.3, 3, leave_out=leave_out)
    before = MorphemeModel.fit(types, settings)
    after = MorphemeModel.fit(types, replace(settings, iterations=5))
    own = BilingualSettings(iterations=2, first_iterations=0, least=0.0)
    pairs = pairs_of([[t] for t in range(len(types))], [[] for _ in range(len(types))])
    found = BilingualModel.fit(types, pairs, [], replace(before, threshold=0.5), own)
    ours, theirs = found.words.posteriors(types), after.posteriors(types)
    np.testing.assert_allclose(ours.boundaries.flat, theirs.boundaries.flat, atol=2e-4)
    np.testing.assert_allclose(found.words.params.steps, after.params.steps, atol=1e-4)
    np.testing.assert_allclose(found.words.params.ends, after.params.ends, atol=1e-4)


def test_uniform_positions_without_types_are_the_tokeniser_of_chung_and_gildea() -> None:
    """Each morpheme comes from any position alike, whatever the others do: words are independent."""
    settings = MorphemeSettings("up", 1.2, 2, longest=9, **PLAIN)
    learning, params = learning_of(settings, BilingualSettings(least=0.0, distortion="uniform"))
    rng = np.random.default_rng(1)
    params = params._replace(entries=rng.normal(size=params.entries.shape), done=np.array([9.0]))
    q = learning.distributions(params, range(len(TARGET)))
    strings = learning.strings.strings(learning.model.alphabet)
    entry = dict(zip(zip(learning.of_entries.tolist(), learning.owners.tolist(), strict=True), params.entries.tolist(),
                     strict=True))  # fmt: skip
    for pair, words in enumerate(TARGET):
        owners = [*SOURCE[pair], 3]
        value = 0.0
        for word in words:
            letters = WORDS[word]
            ways = []
            for marks in itertools.product([False, True], repeat=len(letters) - 1):
                cuts = [0, *(t + 1 for t, mark in enumerate(marks) if mark), len(letters)]
                weight = 1.0
                for a, b in itertools.pairwise(cuts):
                    unit = strings.index(letters[a:b])
                    weight *= np.mean([np.exp(entry[unit, e]) for e in owners]) * np.exp(-((b - a) ** 1.2))
                ways.append(weight)
            value += np.log(sum(ways))
        assert q[pair].log_partition() == pytest.approx(value, rel=1e-10)


def test_whole_words_without_types_are_an_alignment_hmm() -> None:
    settings = MorphemeSettings("up", 0.0, 2, longest=9, **PLAIN)
    learning, params = learning_of(settings, BilingualSettings(least=1.0 - 1e-12))
    params = strange(learning, params._replace(table=params.table), 5)._replace(ends=params.ends, steps=params.steps)
    lattices = learning.pairs.lattices
    whole = lattices.rows[:, 1] - lattices.rows[:, 0] == lattices.types.letters.lengths[lattices.words_of_rows]
    q = learning.distributions(params, range(len(TARGET)))
    tables = learning.tables(params)
    for pair, words in enumerate(TARGET):
        m = len(SOURCE[pair])
        start = int(learning.distortion.offsets[learning.distortion.sizes.tolist().index(m)])
        across = tables[start + (m + 1) ** 2 :][: (m + 1) ** 2].reshape(m + 1, m + 1)
        final = tables[start + 2 * (m + 1) ** 2 :][: m + 1]
        keep = np.concatenate([whole[slice(*lattices.rows_at[w : w + 2])] for w in words])
        scores = q[pair]._kinds(q[pair].scores)[0]
        frozen = q[pair].with_emission(np.where(keep[:, None], scores, -np.inf))
        null = np.exp(across[:, m])
        if m and not np.allclose(null, null[0]):
            null_shift = across[:, :m] - np.log(1.0 - null)[:, None]  # rows differ in how probable null is
            hmm_value = _forward(scores[keep], across, final)
            assert null_shift.shape == (m + 1, m)
            assert frozen.log_partition() == pytest.approx(hmm_value, rel=1e-10)
            continue
        jump = across[:, :m] - np.log1p(-null[0]) if m else np.zeros((1, 0))
        hmm = AlignmentChain(scores[keep][:, :m], scores[keep][:, m], jump[m], jump[:m], float(null[0]), final)
        assert frozen.log_partition() == pytest.approx(hmm.log_partition(), rel=1e-10)


def _forward(emission: Any, across: Any, final: Any) -> float:
    """log Z of an HMM whose states are a link, or null with the position of the last one."""
    n, width = emission.shape
    m, carried = width - 1, {width - 1: 0.0}
    for t in range(n):
        after: dict[int, list[float]] = {}
        for i, value in carried.items():
            for j in range(m):
                after.setdefault(j, []).append(value + across[i, j] + emission[t, j])
            after.setdefault(i, []).append(value + across[i, m] + emission[t, m])
        carried = {i: float(np.logaddexp.reduce(each)) for i, each in after.items()}
    return float(np.logaddexp.reduce([value + final[i] for i, value in carried.items()]))


@pytest.mark.parametrize("distortion", ["uniform", "learnt"])
@pytest.mark.parametrize("model", ["up", "full"])
def test_the_objective_never_falls_where_the_estimate_is_exact(distortion: str, model: str) -> None:
    from isogloss.learners.em import EM
    from isogloss.learners.runner import run

    exact = MorphemeSettings(
        model, 1.2, 3, first_iterations=0, exact=True, leave_out=False, base_power=1.0, shortest_stem=1,
        longest_affix=12,
    )  # fmt: skip
    own = BilingualSettings(first_iterations=0, least=0.0, distortion=distortion, exact=True)
    learning, params = learning_of(exact, own)
    em: EM[Any, Any, Any] = EM(learning, learning.pairs.batches())
    trace = run(em, em.init(params), iterations=12).trace
    assert trace[-1] > trace[0] and (np.diff(trace) >= -1e-9 * np.abs(trace[:-1])).all()


def test_what_comes_from_a_word_adds_up_to_one_with_the_share_of_the_rest() -> None:
    settings = MorphemeSettings("full", 1.2, 2, longest=9)
    learning, params = learning_of(settings, BilingualSettings(least=0.0))
    counts = learning.zero_counts()
    for batch in learning.pairs.batches():
        counts += learning.expected_counts(batch, learning.distributions(params, batch))
    assert counts.entries.sum() == pytest.approx(counts.arcs.sum(), rel=1e-9)
    after, k = learning.improve(params, counts), settings.n_labels
    base = np.exp(after.table).ravel()
    for owner in range(4):
        for label in range(k):
            mine = (learning.owners == owner) & (learning.of_entries % k == label)
            others = np.setdiff1d(np.arange(label, len(base), k), learning.of_entries[mine])
            whole = np.exp(after.entries[mine]).sum() + np.exp(after.shares[owner * k + label]) * base[others].sum()
            rest = np.exp(after.shares[owner * k + label]) * (1.0 - base[label::k].sum())
            assert whole + rest == pytest.approx(1.0, abs=1e-9)
    heavy = learning_of(settings, BilingualSettings(least=0.0, source_weight=1e12))[0].improve(params, counts)
    np.testing.assert_allclose(heavy.entries, np.log(base)[learning.of_entries], rtol=1e-6)


def test_steps_add_up_to_one_and_follow_counts() -> None:
    sizes = np.array([0, 1, 3, 2 * FARTHEST + 5])
    distortion, rng = Distortion(sizes, 10.0), np.random.default_rng(2)
    weights = rng.normal(size=distortion.n_weights)
    tables = distortion.tables(weights)
    for m, start in zip(sizes.tolist(), distortion.offsets.tolist(), strict=False):
        steps = np.exp(tables[start : start + 2 * (m + 1) ** 2]).reshape(2, m + 1, m + 1)
        np.testing.assert_allclose(steps.sum(axis=2), 1.0, rtol=1e-12)
        if m > 2 * FARTHEST:  # jumps that are far are alike
            assert steps[0, 0, m - 1] == pytest.approx(steps[0, 0, m - 2], rel=1e-12)
    counts = rng.random(len(tables))
    before = float(counts @ tables) + distortion.log_prior(weights)
    fitted = distortion.fit(counts, weights)
    assert float(counts @ distortion.tables(fitted)) + distortion.log_prior(fitted) > before
    monotone = np.zeros(len(tables))
    block = int(distortion.offsets[2])
    monotone[block + 16 + np.array([3 * 4, 1, 4 + 2])] = 50.0  # across borders: none yet to 0, 0 to 1, 1 to 2
    near = np.exp(distortion.tables(distortion.fit(monotone, np.zeros(distortion.n_weights))))[block + 16 : block + 32]
    assert near.reshape(4, 4)[0, 1] > 0.8 > 0.3 > near.reshape(4, 4)[0, 2]


def test_affixes_are_linked_with_function_words() -> None:
    """A made language whose suffixes say what the other language says with words of their own."""
    stems = {"talo": "house", "auto": "car", "koira": "dog", "kala": "fish", "metsa": "wood", "silta": "bridge",
             "pullo": "bottle", "kirje": "letter"}  # fmt: skip
    cases = {"ssa": "in", "lle": "to", "sta": "from", "": "the"}
    pairs = [(f"{word} {own}", stem + end) for stem, own in stems.items() for end, word in cases.items()]
    held = [pairs.pop(at) for at in (14, 9, 4)]
    segmenter = BilingualSegmenter().fit(Bitext.of(pairs))
    new = Bitext.of(held)
    right = Segmentation.of([(text, [text[:-3], text[-3:]]) for _, text in held])
    assert segmenter.predict(new).analyses == right.analyses
    assert [str(one) for one in segmenter.links(new)] == ["0-0 1-0"] * 3
    assert segmenter.score(new, Links.of([[(0, 0), (1, 0)]] * 3)).aer == 0.0
    believed = segmenter.predict_proba(new)
    assert all(grid.min() > 0.5 for grid in believed.links) and all(own[-3] > 0.5 for own in believed.borders)
    assert isinstance(segmenter.segmenter_, Segmenter)
    assert segmenter.segmenter_.predict(new.target).analyses == right.analyses
    assert segmenter.links(new, threshold=1.0).source.size == 0


def test_the_source_may_be_cut() -> None:
    stems = {"talo": "haus", "auto": "wagen", "koira": "hund", "kala": "fisch"}
    ends = {"ssa": "en", "lle": "es", "sta": "er", "": ""}
    rows = [(stem + end, word + other, [word, other] if other else [word]) for stem, word in stems.items()
            for end, other in ends.items()]  # fmt: skip
    bitext = Bitext.of([(source, target) for target, source, _ in rows])
    cut = Segmentation.of([(source, pieces) for _, source, pieces in rows])
    segmenter = BilingualSegmenter(length_penalty=1.4).fit(bitext, source_morphemes=cut)
    assert "@@en" in segmenter._learnt.vocabulary
    assert segmenter.predict(bitext, cut)[1] == (("talo", "lle"),)
    assert {str(one) for one in segmenter.links(bitext, cut)} == {"0-0"}
    with pytest.raises(SegmentationError, match="learnt from morphemes of the source"):
        segmenter.predict(bitext)
    with pytest.raises(SegmentationError, match="not the words of"):
        segmenter.predict(bitext[:3], cut)


def test_words_that_people_have_cut_keep_their_boundaries() -> None:
    pairs = [(f"{end} {word}", stem + suffix) for stem, word in (("talo", "house"), ("auto", "car"), ("kala", "fish"))
             for suffix, end in (("", "a"), ("ssa", "in"), ("lle", "to"))]  # fmt: skip
    gold = Segmentation.of([("talossa", ["tal", "ossa"]), ("kalalle", ["kala", "lle"])])
    segmenter = BilingualSegmenter(length_penalty=1.4).fit(Bitext.of(pairs), gold)
    assert segmenter.predict(Bitext.of(pairs[1:2]))[0] in ((("tal", "ossa"),), (("talo", "ssa"),))
    alone = BilingualSegmenter(length_penalty=1.4).fit(Bitext.of(pairs))
    assert not np.array_equal(segmenter.trace_, alone.trace_)


def test_empty_sides_and_unknown_words() -> None:
    pairs = Bitext.of([("the house", "talo"), ("", "auto talossa"), ("car", ""), ("", "")])
    segmenter = BilingualSegmenter(passes=1, rounds=2).fit(pairs)
    new = Bitext.of([("", ""), ("house of cards", "xyz\U00010330 talo " + "a" * 80), ("the", "")])
    found = segmenter.predict(new)
    assert [len(line) for line in found] == [0, 3, 0] and "".join(found[1][2]) == "a" * 80
    assert [grid.shape for grid in segmenter.predict_proba(new).links] == [(0, 0), (3, 3), (1, 0)]
    with pytest.raises(SegmentationError, match="no words to learn from"):
        BilingualSegmenter().fit(Bitext.of([("a", "")]))


class Stop(QuietProgress):
    """Sends Ctrl-C before the third step of a stage."""

    def __init__(self, stage: str) -> None:
        self.stage, self.now = stage, ""

    def start(self, name: str, total: float | None = None) -> None:
        self.now = name

    def update(self, done: float, detail: str = "") -> None:
        if self.now == self.stage and done == 2:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("stage", "kept"), [("Learning morphemes", ".text"), ("Learning morphemes and their translations", "")]
)
def test_what_was_stopped_goes_on_to_the_bit(stage: str, kept: str, tmp_path: Path) -> None:
    pairs, place = samples.bitext("en-de").part(0, 12), tmp_path / "checkpoint"
    made: dict[str, Any] = {"rounds": 3, "passes": 2}
    with pytest.raises(Interrupted, match=rf"checkpoint{kept} keeps iteration 3 of .*resume"):
        BilingualSegmenter(**made).fit(pairs, progress=Stop(stage), checkpoint=place)
    with pytest.raises(UsageError, match=r"another run: options\.rounds was 3 and is 4"):
        BilingualSegmenter(**{**made, "rounds": 4}).fit(pairs, checkpoint=place, resume=True)
    for number, checkpoint in enumerate((place, None)):
        found = BilingualSegmenter(**made).fit(pairs, checkpoint=checkpoint, resume=number == 0)
        found.save(tmp_path / str(number))
    for name in ("model.safetensors", "model.json"):
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()


def test_commands_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sample", "en-tr", "-q"]) == 0
    train = ["segment", "train", "en-tr.tr.txt", "--rounds", "3", "--passes", "2"]
    assert main([*train, "--bitext", "en-tr.en.txt", "--save", "m", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    lines = (tmp_path / "en-tr.tr.txt").read_text(encoding="utf-8").splitlines()
    assert told["pairs"] == len(lines) and told["translations"] > 100 and len(told["trace"]) == 5
    assert not list(tmp_path.glob("*.checkpoint*"))
    assert main(["segment", "links", "m", "en-tr.en.txt", "en-tr.tr.txt", "-o", "links.txt"]) == 0
    assert len((tmp_path / "links.txt").read_text().splitlines()) == len(lines)
    assert main(["score", "links.txt", "en-tr.gold.txt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["aer"] < 70
    apply = ["segment", "apply", "m", "en-tr.tr.txt"]
    assert main([*apply, "--bitext", "en-tr.en.txt", "-o", "cut.tsv", "--labels"]) == 0
    cut = (tmp_path / "cut.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in cut] == [" ".join(line.split()) for line in lines]
    assert main([*apply, "-o", "alone.tsv", "--confidence"]) == 0
    assert main(["segment", "explain", "m", "evlerde"]) == 0
    assert main([*train, "--bitext", "cut.tsv", "--save", "n"]) == 0  # a translation that is cut
    assert main(["segment", "links", "n", "cut.tsv", "en-tr.tr.txt", "-o", "own.txt"]) == 0
    (tmp_path / "short.txt").write_text("one line\n")
    capsys.readouterr()
    assert main(["segment", "train", "en-tr.tr.txt", "--rounds", "1", "--save", "words", "-q"]) == 0
    for arguments, status, words in (
        ([*train, "--bitext", "short.txt", "--save", "o"], 1, "short.txt has 1 lines but en-tr.tr.txt has"),
        ([*train, "--save", "o"], 2, "--passes says nothing without --bitext"),
        ([*train, "--bitext", "en-tr.en.txt", "--l2", "1", "--save", "o"], 2, "--l2 says nothing with --bitext"),
        ([*apply, "--bitext", "en-tr.en.txt", "--confidence"], 2, "are for words without a translation"),
        (["segment", "links", "n", "en-tr.en.txt", "en-tr.tr.txt"], 1, "has learnt from morphemes of the source"),
        (["segment", "links", "words", "en-tr.en.txt", "en-tr.tr.txt"], 2, "learnt without a translation"),
    ):
        assert main(arguments) == status, arguments
        assert words in " ".join(capsys.readouterr().err.split()), arguments
