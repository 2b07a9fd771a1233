"""Training in bounded memory: shards on shelves, cells found anew, tables without rare pairs; against the whole."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Call
from isogloss import samples
from isogloss.data import Bitext
from isogloss.engine.shelf import Shelf
from isogloss.engine.threads import using_threads
from isogloss.errors import BitextError, ModelError, UsageError
from isogloss.learners.runner import run
from isogloss.progress import QuietProgress
from isogloss.tasks.align import HMMAligner
from isogloss.tasks.align import corpus as corpus_module
from isogloss.tasks.align._numba.expect import keep_cells, spread_cells
from isogloss.tasks.align.corpus import Corpus, Room
from isogloss.tasks.align.memory import room_for
from isogloss.tasks.align.settings import Settings
from isogloss.tasks.align.training import Training

SOURCE, TARGET = (samples.path("en-de", side) for side in ("source", "target"))


@pytest.fixture
def bitext() -> Bitext:
    return samples.synthetic(200, seed=3).bitext


@pytest.fixture
def many_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of a few thousand cells has a dozen shards."""
    monkeypatch.setattr(corpus_module, "SHARD", 700)


def cut(bitext, *sizes):
    """The text in parts, of which each has its own numbers of words."""
    rows, parts = list(bitext), []
    while rows:
        for size in sizes:
            if rows:
                parts.append(Bitext.of(rows[:size]))
                rows = rows[size:]
    return parts


def whole(bitext, **more):
    return Corpus.of(bitext, lowercase=True, max_length=100, **more)


def in_parts(parts, **more):
    return Corpus.of_parts(parts, lowercase=True, max_length=100, **more)


# --- shelves -----------------------------------------------------------------------------------------------------


def test_a_shelf_gives_back_what_was_put_there(tmp_path):
    arrays = np.arange(5, dtype=np.int32), np.zeros((0, 3), np.uint16), np.array([[0.5, np.nan]])
    for room in (None, 40, 0):
        shelf = Shelf(room, str(tmp_path))
        shelf.put("a", *arrays)
        shelf.put("b", arrays[0])
        shelf.put("a", *arrays[::-1])
        for found, given_ in zip(shelf.get("a"), arrays[::-1], strict=True):
            assert found.dtype == given_.dtype and found.shape == given_.shape and found.tobytes() == given_.tobytes()
        assert shelf.in_memory <= (room if room is not None else 1000) and "b" in shelf
        assert bool(os.listdir(tmp_path)) == (room is not None)
        shelf.drop("a")
        shelf.drop("a")
        assert "a" not in shelf and shelf.in_memory + shelf.in_files == arrays[0].nbytes
        shelf.close()
        assert not os.listdir(tmp_path) and "b" not in shelf
    shelf = Shelf(0, str(tmp_path))
    shelf.put("a", *arrays)
    del shelf
    assert not os.listdir(tmp_path)


# --- cells that are kept -----------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([0, 1, 3, 40, 65_534, 65_535, 65_536, 140_000]), min_size=1, max_size=4),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_cells_that_are_kept_come_back(sizes, seed):
    """Also where the next cell that is not 0 is further away than a gap can say."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    posterior = np.zeros((offsets[-1], 2), np.uint16)
    if len(posterior):
        chosen = np.concatenate([rng.integers(0, len(posterior), 20), [len(posterior) - 1]])
        posterior[chosen] = rng.integers(0, 3, (len(chosen), 2)) * 30_000
    starts, kept = keep_cells(offsets, posterior)
    found = np.full_like(posterior, 7)
    spread_cells(offsets, starts, kept, found)
    assert (found == posterior).all() and starts[-1] == len(kept)
    assert np.count_nonzero(kept[:, 1:].any(axis=1)) == np.count_nonzero(posterior.any(axis=1))


# --- shards ------------------------------------------------------------------------------------------------------


def test_a_text_in_parts_is_the_text(bitext, many_shards):
    rows = [("", "x"), *bitext, ("a " * 101, "b")]
    text = Bitext.of(rows)
    one, other = whole(text), in_parts(cut(text, 7, 1, 40), shelf=Shelf(0), room=Room(listed=50))
    assert len(one.shards) > 5 and one.shards == other.shards and one.hash() == other.hash()
    assert list(one.source_words) == list(other.source_words) and list(one.target_words) == list(other.target_words)
    for name in ("rows", "columns", "skipped", "source_counts", "target_counts"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    assert one.skipped.nonzero()[0].tolist() == [0, len(rows) - 1]
    starts = [0, *(shard.stop for shard in one.shards)]
    assert starts[-1] == len(rows) and [shard.start for shard in one.shards] == starts[:-1]
    assert one.hash() != whole(bitext).hash()


def test_entries_of_cells_are_kept_where_there_is_room_for_them(bitext, many_shards, monkeypatch):
    anew, kept = in_parts([bitext], shelf=Shelf(0)), in_parts([bitext], shelf=Shelf())
    cells = sum(kept.words(shard).cell_offsets[-1] for shard in range(len(kept.shards)))
    assert kept.cells == cells and not anew.shelf.has_room(1)
    taken = kept.shelf.in_memory
    for _ in range(2):
        for shard in range(len(kept.shards)):
            assert (kept.shard(shard)[0].cells == anew.shard(shard)[0].cells).all()
            assert f"cells-{shard}" in kept.shelf and f"cells-{shard}" not in anew.shelf
    assert kept.shelf.in_memory == taken + 4 * cells
    kept.forget_cells()
    assert kept.shelf.in_memory == taken and (kept.shard(1)[0].cells == anew.shard(1)[0].cells).all()
    tight = in_parts([bitext], shelf=Shelf(taken + 11 * cells))
    tight.shard(0)
    assert "cells-0" not in tight.shelf
    monkeypatch.setattr(corpus_module, "KEPT_CELLS", cells - 1)
    long = in_parts([bitext], shelf=Shelf())
    long.shard(0)
    assert "cells-0" not in long.shelf


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_a_text_of_many_shards_is_that_of_one(bitext, monkeypatch, threads):
    one = whole(bitext)
    assert len(one.shards) == 1
    monkeypatch.setattr(corpus_module, "SHARD", 60)
    with using_threads(threads):
        many = in_parts(cut(bitext, 50), shelf=Shelf(2000), room=Room(listed=900))
        assert len(many.shards) > 2 * corpus_module._BLOCKS
        assert many.rows.tobytes() == one.rows.tobytes() and many.columns.tobytes() == one.columns.tobytes()
        for shard in [*range(len(many.shards)), 0, 5, 6, 6, 2]:  # in whatever order, whatever was fetched ahead
            pairs, where = many.shard(shard)
            words = many.words(shard)
            assert all((a == b).all() for a, b in zip(pairs, words, strict=False))
            assert all((a == b).all() for a, b in zip(where, words.occurrences(len(many.source_words)), strict=True))


def test_cells_have_the_entry_of_their_words(bitext, many_shards):
    corpus = whole(bitext)
    met = Counter()
    for shard, (start, stop) in enumerate(corpus.shards):
        pairs, _ = corpus.shard(shard)
        owner = np.repeat(np.arange(len(corpus.source_words)), np.diff(corpus.rows))
        for s in range(stop - start):
            n, m = corpus.shape(start + s)
            entries = pairs.cells[pairs.cell_offsets[s] :][: n * m].reshape(n, m)
            source, target = (tuple(word.lower() for word in side) for side in bitext[start + s])
            for i in range(n):
                for j in range(m):
                    words = source[i], target[j]
                    entry = entries[i, j]
                    assert words == (corpus.source_words[owner[entry]], corpus.target_words[corpus.columns[entry]])
                    met[words] += 1
    assert len(met) == len(corpus.columns)
    assert (
        corpus.pairs.cells == np.concatenate([corpus.shard(k)[0].cells.copy() for k in range(len(corpus.shards))])
    ).all()


def arrays_of(aligner, links):
    found = {name: array.tobytes() for name, array in aligner._model.arrays().items()}
    return found | {
        "trace": aligner.trace_.tobytes(),
        "threshold": aligner.threshold_,
        "links": [array.tobytes() for array in (links.offsets, links.source, links.target, links.probability)],
    }


@pytest.mark.parametrize("options", [{}, {"symmetrise": "grow-diag-final-and"}, {"threshold": "points"}])
def test_memory_files_parts_and_threads_change_nothing(bitext, many_shards, options):
    from isogloss.tasks.align.decode import joined

    aligner = HMMAligner(threads=1, **options)
    expected = arrays_of(aligner, aligner.fit_predict(bitext))
    for threads, room, sizes in ((2, None, (200,)), (1, 0, (13, 60)), (4, 5000, (1, 3))):
        other = HMMAligner(threads=threads, **options)
        with using_threads(threads):
            corpus = in_parts(cut(bitext, *sizes), shelf=Shelf(room), room=Room(listed=700))
            other._fit(None, bitext, corpus, QuietProgress(), checkpoint=None, resume=False)
        assert (corpus.shelf.in_files > 0) == (room is not None)
        assert arrays_of(other, joined(other.predict_parts())) == expected


def test_what_needs_every_cell_finds_it_again(bitext, many_shards):
    """Links below the threshold that decoding kept, and posteriors of all cells."""
    aligner = HMMAligner(threads=1).fit(bitext)
    text = aligner._trained_on[1]
    aligner.threshold_ = 0.01
    links, posteriors = aligner.predict(bitext), aligner.predict_proba(bitext)
    assert text.least > 0.01
    for pair, matrix in zip(links, posteriors, strict=True):
        assert pair.links == {(int(i), int(j)) for i, j in np.argwhere(matrix >= 0.01)}
    assert aligner.pair_scores(bitext).shape == (len(bitext),) and np.isfinite(text.scores).all()
    assert aligner.explain(bitext, 150, source=0)["candidates"]


def test_a_new_text_is_aligned_a_part_at_a_time(bitext, monkeypatch):
    from isogloss.tasks.align import hmm as module

    aligner, new = HMMAligner(threads=1).fit(bitext), samples.synthetic(60, seed=4).bitext
    once = aligner.predict(new)
    monkeypatch.setattr(module, "SHARD", 500)
    parts = aligner.predict(new)
    for name in ("offsets", "source", "target", "probability"):
        assert getattr(once, name).tobytes() == getattr(parts, name).tobytes()
    assert parts.bitext is new and len(aligner.predict(new[:0])) == 0


def test_a_training_in_files_is_resumed_to_the_bit(bitext, many_shards, tmp_path):
    class Stop(QuietProgress):
        done = 0

        def update(self, done, detail=""):
            self.done = done

        def within(self, fraction):
            if self.done == 7 and fraction > 0.5:
                self.done = -1
                os.kill(os.getpid(), 2)

    from isogloss.learners.runner import Interrupted
    from isogloss.tasks.align.decode import joined

    parts, place = cut(bitext, 30), tmp_path / "kept"
    memory = 10**9
    with pytest.raises(Interrupted, match="resume"):
        HMMAligner().fit_parts(parts, memory=memory, checkpoint=place, progress=Stop())
    again = HMMAligner().fit_parts(parts, memory=memory, checkpoint=place, resume=True)
    once = HMMAligner()
    assert arrays_of(again, joined(again.predict_parts())) == arrays_of(once, once.fit_predict(bitext))


def test_evidence_of_another_text_is_refused(bitext):
    options = Settings.of("hmm", HMMAligner().get_params())
    training = Training(whole(bitext), options)
    result = run(training, training.begin(), iterations=training.iterations)
    arrays, meta = training.dump(result.state)
    assert training.restore(arrays, meta).iteration == training.iterations
    far = arrays["evidence.0.cells"].copy()
    far[0, 0] = 60_000
    short = arrays["evidence.0.source_null"][1:]
    for name, wrong in (("cells", far), ("source_null", short), ("scores", arrays["evidence.0.scores"][1:])):
        with pytest.raises(ModelError):
            training.restore({**arrays, f"evidence.0.{name}": wrong}, meta)
    with pytest.raises(ModelError):
        training.restore({**arrays, "counts": arrays["counts"][1:]}, meta)


# --- tables without rare pairs -----------------------------------------------------------------------------------


def cells_by_pair(bitext):
    return Counter((a.lower(), b.lower()) for source, target in bitext for a in source for b in target)


@pytest.mark.parametrize("capacity", [3000, 1000, 200])
def test_a_table_that_does_not_fit_has_the_frequent_pairs(bitext, many_shards, capacity):
    counts = cells_by_pair(bitext)
    kept = {(a, b) for a, b in counts if a[:2] == b[:2] and counts[a, b] == 1}
    assert 10 < len(kept) < 200

    made = []

    def wanted(source, target):
        made.append(1)

        def stay(rows, columns):
            owner = np.repeat(np.arange(len(rows) - 1), np.diff(rows))
            return np.array([(source[e], target[f]) in kept for e, f in zip(owner, columns)], bool)

        return stay

    room = Room(entries=lambda forms: capacity, listed=90, wanted=wanted)
    corpus = in_parts(cut(bitext, 50), room=room)
    owner = np.repeat(np.arange(len(corpus.source_words)), np.diff(corpus.rows))
    found = {(corpus.source_words[e], corpus.target_words[f]) for e, f in zip(owner, corpus.columns)}
    assert corpus.least > 1 and len(made) == 1  # what is known of all words is looked up once, not for each range
    assert found == {pair for pair, n in counts.items() if n >= corpus.least} | kept
    fewer = {pair for pair, n in counts.items() if n >= corpus.least - 1} | kept
    assert len(found) <= capacity < len(fewer)
    for side, words in enumerate((corpus.source_words, corpus.target_words)):
        gone = Counter(pair[side] for pair in counts.keys() - found)
        assert corpus.dropped[side].tolist() == [gone[word] for word in words]


@pytest.mark.parametrize("stems", [0.0, 2.0])
def test_cells_without_entry_count_for_their_words_and_stems(bitext, many_shards, stems):
    corpus = in_parts([bitext], room=Room(entries=lambda forms: 3000, classes=lambda forms: 5000))
    training = Training(corpus, Settings.of("hmm", HMMAligner(stems=stems).get_params()))
    state = training.begin()
    for _ in range(training.iterations):
        model = training.model(state)
        assert np.isfinite(model.weights).all() and (model.source_mass > 0).all() and (model.target_mass > 0).all()
        state, info = training.step(state)
        assert np.isfinite(info.objective)
    posterior, source, groups, entries = (np.zeros(2, np.int64) for _ in range(4))
    for shard in range(len(corpus.shards)):
        _, found = state.evidence.shard(shard)
        posterior += found.sum(axis=0, dtype=np.int64)
        cells = corpus.shard(shard, training.stems)[0].cells
        entries += found[cells >= 0].sum(axis=0, dtype=np.int64)
        groups += found[cells < -1].sum(axis=0, dtype=np.int64)
        source += found[cells < 0].sum(axis=0, dtype=np.int64)
    assert (state.counts.sum(axis=0) == entries).all() and 0 < source[0] < posterior[0]
    assert state.others.stray_source.sum() == source[0] and state.others.stray_target.sum() == source[1]
    assert (state.others.stray_pairs.sum(axis=0) == groups).all() and bool(groups.any()) == (stems > 0)


def test_cells_without_entry_have_the_pair_of_their_stems(bitext, many_shards):
    corpus = in_parts([bitext], room=Room(entries=lambda forms: 3000, classes=lambda forms: 5000))
    stems = Training(corpus, Settings.of("hmm", HMMAligner().get_params())).stems
    known = {(int(a), int(b)): k for k, (a, b) in enumerate(zip(stems.owner, stems.other, strict=True))}
    owner = np.repeat(np.arange(len(corpus.source_words)), np.diff(corpus.rows))
    table = {(int(e), int(f)): k for k, (e, f) in enumerate(zip(owner, corpus.columns))}
    assert 0 < len(known) <= 5000
    for e, f in table:
        pair = stems.source_class[e], stems.target_class[f]
        assert stems.group[table[e, f]] == known.get(pair, len(known))
    for shard in range(len(corpus.shards)):
        pairs, _ = corpus.shard(shard, stems)
        for s in range(len(pairs.cell_offsets) - 1):
            source = pairs.source_ids[slice(*pairs.source_offsets[s : s + 2])].tolist()
            target = pairs.target_ids[slice(*pairs.target_offsets[s : s + 2])].tolist()
            expected = [
                table.get((e, f), -2 - known.get((stems.source_class[e], stems.target_class[f]), -1))
                for e in source
                for f in target
            ]
            assert pairs.cells[slice(*pairs.cell_offsets[s : s + 2])].tolist() == expected


def test_little_room_still_finds_most_links(bitext):
    corpus = in_parts([bitext], room=Room(entries=lambda forms: 3000, classes=lambda forms: 5000))
    small, full = HMMAligner(stem_classes=1), HMMAligner(stem_classes=1)  # as in texts that take so much room
    small._fit(bitext, bitext, corpus, QuietProgress(), checkpoint=None, resume=False)
    a, b = small.predict(bitext), full.fit_predict(bitext)
    same = sum(len(x.links & y.links) for x, y in zip(a, b, strict=True))
    assert same > 0.8 * len(b.source) and same > 0.8 * len(a.source)


def test_threads_and_files_change_nothing_with_little_room(bitext, many_shards):
    found = []
    for threads, shelf in ((1, Shelf()), (2, Shelf(0)), (4, Shelf(3000))):
        aligner = HMMAligner(threads=threads)
        with using_threads(threads):
            room = Room(entries=lambda forms: 3000, classes=lambda forms: 5000, listed=700 * threads)
            corpus = in_parts(cut(bitext, 11, 50), shelf=shelf, room=room)
            aligner._fit(bitext, bitext, corpus, QuietProgress(), checkpoint=None, resume=False)
        assert corpus.least > 1
        found.append(arrays_of(aligner, aligner.predict(bitext)))
    assert found[0] == found[1] == found[2]


def test_room_is_shared_out_or_refused():
    room = room_for(4 * 10**9)
    assert room.entries is not None and room.classes is not None
    assert 10**7 < room.entries(100_000) < 4 * 10**9 / 50 and room.classes(100_000) < room.entries(100_000)
    assert room.entries(10**6) < room.entries(10)
    with pytest.raises(UsageError, match=r"allow .* MB or more"):
        room.entries(10**8)


def test_parts_of_nothing_are_refused(bitext):
    with pytest.raises(BitextError, match="no parts"):
        HMMAligner().fit_parts([])
    with pytest.raises(BitextError, match="none of the 1 pairs"):
        HMMAligner().fit_parts([Bitext.of([("", "x")])])
    saved = HMMAligner().fit(bitext)
    saved._trained_on = None
    with pytest.raises(UsageError, match="saved model"):
        next(saved.predict_parts())


# --- the command -------------------------------------------------------------------------------------------------


def test_bounded_memory_writes_the_same_files(isogloss: Call, tmp_path, many_shards):
    plain = ["align", SOURCE, TARGET, "--scores", "--quiet"]
    assert isogloss(*plain, "-o", tmp_path / "a", "--save", tmp_path / "model").status == 0
    for more in (("--memory", "1GB"), ("--memory", "1GB", "--threads", 2)):
        answer = isogloss(*plain, "-o", tmp_path / "b", "--save", tmp_path / "bounded", *more)
        assert answer == (0, "", "") and (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        for name in ("model.json", "model.safetensors"):
            assert (tmp_path / "model" / name).read_bytes() == (tmp_path / "bounded" / name).read_bytes()
    giza = ["--links-format", "giza"]
    for more in ((), ("--memory", "1GB")):
        assert isogloss(*plain[:3], *giza, *more, "-q", "-o", tmp_path / f"giza{len(more)}").status == 0
    assert (tmp_path / "giza0").read_bytes() == (tmp_path / "giza2").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "bounded", "giza0", "giza2", "model"]


def test_memory_that_makes_no_sense(isogloss: Call, tmp_path):
    for size, why in (("much", "no size"), ("4XB", "no size"), ("1MB", "at the least")):
        answer = isogloss("align", SOURCE, TARGET, "--memory", size)
        assert answer.status == 2 and why in answer.err
    answer = isogloss("align", SOURCE, TARGET, "--memory", "1GB", "--chunk", 10)
    assert answer.status == 2 and "--chunk" in answer.err
    answer = isogloss("align", "-", "--memory", "1GB")
    assert answer.status == 2 and "read once" in answer.err


def test_large_files_are_read_in_parts_by_themselves(isogloss: Call, tmp_path, monkeypatch):
    from isogloss.cli import _room

    plain = ["align", SOURCE, TARGET, "--quiet"]
    assert not _room.is_large(str(SOURCE), str(TARGET)) and not _room.is_large("-", None)
    whole = isogloss(*plain)
    monkeypatch.setattr(_room, "_LARGE", 100)
    monkeypatch.setattr(HMMAligner, "fit_predict", None)  # the way of small texts
    assert _room.is_large(str(SOURCE), None) and not _room.is_large("-", str(TARGET)) and isogloss(*plain) == whole
    assert whole.status == 0 and whole.out.count("\n") == 50
    free = _room.most_of_what_is_free()
    assert free is None or free >= _room.LEAST
