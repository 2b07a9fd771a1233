"""Features made in bulk against a slow reference in plain Python; products against dense matrices."""

from __future__ import annotations

import collections
import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import store
from isogloss.engine.threads import using_threads
from isogloss.errors import IsoglossError, ModelError, ParameterError
from isogloss.features import (
    Axis,
    Hashed,
    Index,
    KeyTable,
    Parts,
    Role,
    Sparse,
    Templates,
    TemplateScorer,
    arcs,
    mixing,
    pairs,
    positions,
    spans,
)
from isogloss.features import sparse as sparse_module
from isogloss.features import templates as templates_module

MASK = 2**64 - 1


# --- the reference: one part, one template at a time, Python integers -----------------------------------------------


def splitmix(number):
    """The published generator, draw by draw."""
    h = (number + 1) * 0x9E3779B97F4A7C15 & MASK
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB & MASK
    return h ^ (h >> 31)


UNGOLDEN = pow(0x9E3779B97F4A7C15, -1, 2**64)


def mixed(h):
    return splitmix(h * UNGOLDEN - 1)


def key_of(code, bin_=0):
    upper = (code >> 32) ^ (bin_ * 0x9E3779B1 & 0xFFFFFFFF)
    return (upper or 1) << 32 | (code & 0xFFFFFFF8) | ((code + 5 * bin_) & 7)


def factor(place):
    return splitmix(2**20 + place) | 1


def word_code(axis, name, at, offset):
    """−1 before the sentence, −2 after it, None where the word has no code."""
    s = max(s for s in range(len(axis.offsets) - 1) if axis.offsets[s] <= at and axis.offsets[s] < axis.offsets[s + 1])
    if at + offset < axis.offsets[s]:
        return -1
    if at + offset >= axis.offsets[s + 1]:
        return -2
    code = int(axis.attributes[name][at + offset])
    return None if code < 0 else code


def reference_keys(names, parts, p):
    """The keys of part p: of templates without spans, then of each word of a span."""
    plain, wide = [], []
    for name in names:
        items = []
        for place, word in enumerate(name.split(" & ") if name else []):
            word, _, offset = word.rstrip("]").partition("[")
            role, _, attribute = word.rpartition(".")
            items.append((role, attribute, int(offset or 0), factor(place)))
        total = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        spans = []
        for role, attribute, offset, times in items:
            if not role and attribute in parts.columns:
                code = int(parts.columns[attribute][p])
                code = None if code < 0 else code
            else:
                where = parts.roles[role or "self"]
                if where.until is not None:
                    spans.append((where, attribute, offset, times))
                    continue
                code = None if where.at[p] < 0 else word_code(where.axis, attribute, int(where.at[p]), offset)
            total = None if total is None or code is None else total + code * times
        if not spans:
            plain += [] if total is None else [total]
            continue
        where = spans[0][0]
        for at in range(int(where.at[p]), int(where.until[p])):
            each = total
            for _, attribute, offset, times in spans:
                code = word_code(where.axis, attribute, at, offset)
                each = None if each is None or code is None else each + code * times
            wide += [] if each is None else [(at, len(wide), each)]
    bin_ = 0 if parts.bins is None else int(parts.bins[p])
    found = plain + [each for *_, each in sorted(wide)]
    return [key_of(mixed(total & MASK), b) for total in found for b in ([0, bin_] if bin_ else [0])]


def reference_rows(names, parts):
    return [reference_keys(names, parts, p) for p in range(parts.n_parts)]


@st.composite
def corpora(draw, most=4):
    lengths = draw(st.lists(st.integers(0, most), min_size=1, max_size=4))
    seed = draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Axis(offsets, word=rng.integers(0, 4, n), tag=rng.integers(-1, 3, n))


CHAIN = ["word", "tag", "word[-1]", "word[+2] & tag", "word[-1] & word & word[1]", "length & tag"]
ARCS = [
    "direction",
    "head.word & child.word",
    "head.tag & child.tag & direction & distance",
    "child.tag[-1] & head.tag[+1]",
    "head.tag & between.tag & child.tag",
    "between.word & between.tag[+1]",
]
PAIRS = ["source.word & target.word", "source.tag", "target.tag[-1] & source.tag[-1]"]
SPANS = [
    "length",
    "first.tag[-1] & last.tag[+1]",
    "inside.word & length",
    (),
    "first.word & inside.tag[-1] & last.word",
]


def kinds_of_parts(axis):
    """Parts of every kind, with templates for them; some have bins, some look at words that are not there."""
    other = Axis(axis.offsets, word=axis.attributes["tag"] + 1, tag=axis.attributes["word"])
    sizes = np.diff(axis.offsets)
    heads, found = arcs(axis), spans(axis, 3)
    lonely = Parts(
        found.n_parts, found.offsets, {**found.roles, "last": Role(axis, np.where(np.arange(found.n_parts) % 3, -1, 0))}
    ) if len(axis) else found  # fmt: skip
    return [
        (positions(axis).with_columns(length=np.repeat(sizes, sizes)), CHAIN),
        (heads, ARCS),
        (heads.with_bins(np.arange(heads.n_parts) % 4), ARCS),
        (pairs(axis, other), PAIRS),
        (found, SPANS),
        (found.with_bins(found.columns["length"]), SPANS),
        (lonely.with_columns(length=np.arange(found.n_parts) % 3 - 1), SPANS),
    ]


@given(corpora())
@settings(max_examples=25, deadline=None)
def test_bulk_features_equal_the_slow_reference(axis):
    for parts, names in kinds_of_parts(axis):
        templates = Templates(names)
        wanted = reference_rows(templates.names, parts)
        index = templates.index(parts)
        assert index.keys.tolist() == sorted({key for row in wanted for key in row})
        matrix = templates.matrix(parts, index)
        found = [index.keys[matrix.indices[a:b]].tolist() for a, b in zip(matrix.indptr, matrix.indptr[1:])]
        assert found == wanted
        hashed = templates.matrix(parts, Hashed(7))
        assert hashed.indices.tolist() == [key >> 57 for row in wanted for key in row]
        assert hashed.n_features == 128 and np.array_equal(hashed.indptr, matrix.indptr)


@given(corpora(), st.integers(1, 3), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_supported_features_fire_on_gold_parts_often_enough(axis, least, seed):
    parts, templates = arcs(axis), Templates(ARCS)
    gold = np.random.default_rng(seed).random(parts.n_parts) < 0.3
    rows = reference_rows(templates.names, parts)
    for marked in (None, gold):
        counts = collections.Counter(key for p, row in enumerate(rows) if marked is None or marked[p] for key in row)
        index = templates.index(parts, gold=marked, min_count=least)
        assert index.keys.tolist() == sorted(key for key, count in counts.items() if count >= least)


def test_arcs_lay_out_cells_as_scores_and_bin_distances():
    axis = Axis([0, 3, 4], tag=[0, 1, 2, 0])
    parts = arcs(axis, distances=(1, 2))
    assert parts.n_parts == 10 and parts.offsets.tolist() == [0, 9, 10]
    head, child = parts.roles["head"].at, parts.roles["child"].at
    assert head.tolist() == [-1, 0, 0, -1, -1, 1, -1, 2, -1, -1]  # the root is no child, nobody is its own head
    assert child.tolist() == [-1, 1, 2, -1, -1, 2, -1, 1, -1, -1]
    cells = np.flatnonzero(head >= 0)
    assert parts.columns["direction"][cells].tolist() == [1, 1, 1, 0]
    assert parts.columns["distance"][cells].tolist() == [1, 2, 1, 1]
    matrix = Templates(["head.tag", "direction"]).matrix(parts, Hashed(8))
    assert np.diff(matrix.indptr).tolist() == [2 if h >= 0 else 1 for h in head]


def test_pairs_lay_out_cells_as_scores():
    parts = pairs(Axis([0, 2, 2], word=[5, 6]), Axis([0, 3, 4], word=[1, 2, 3, 4]))
    assert parts.offsets.tolist() == [0, 6, 6]
    assert parts.roles["source"].at.tolist() == [0, 0, 0, 1, 1, 1]
    assert parts.roles["target"].at.tolist() == [0, 1, 2, 0, 1, 2]
    with pytest.raises(ParameterError, match="source side"):
        pairs(Axis([0, 2], word=[5, 6]), Axis([0, 1, 1], word=[1]))


def test_many_blocks_and_threads_give_the_same_bits(monkeypatch):
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 12, 60)
    axis = Axis(
        np.concatenate([[0], np.cumsum(lengths)]),
        word=rng.integers(0, 50, lengths.sum()),
        tag=rng.integers(-1, 9, lengths.sum()),
    )
    parts, templates = arcs(axis), Templates(ARCS)
    index = templates.index(parts)
    whole = templates.matrix(parts, index)
    monkeypatch.setattr(templates_module, "PARTS_PER_BLOCK", 37)
    assert np.array_equal(templates.index(parts).keys, index.keys)
    for threads in (1, 2):
        with using_threads(threads):
            cut = templates.matrix(parts, index)
        assert np.array_equal(cut.indices, whole.indices) and np.array_equal(cut.indptr, whole.indptr)


def test_the_order_of_templates_and_sentences_does_not_move_features():
    one, two = Axis([0, 2, 5], word=[1, 2, 3, 1, 1]), Axis([0, 3, 5], word=[3, 1, 1, 1, 2])
    first = Templates(["word", "word[-1]"]).index(positions(one))
    second = Templates(["word[-1]", "word"]).index(positions(two))
    assert np.array_equal(first.keys, second.keys)


def test_keys_are_the_same_in_every_process():
    """Pinned: a saved index is of use only as long as keys stay what they are."""
    code = (
        "from isogloss.features import Axis, Templates, positions\n"
        "print(Templates(['word & tag[-1]', 'word']).keys(positions(Axis([0, 2], word=[3, 4], tag=[5, 6]))).tolist())"
    )
    seen = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
        for env in (
            {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)},
            {"PYTHONHASHSEED": "2", "PYTHONPATH": ":".join(sys.path)},
        )
    }
    assert seen == {str(PINNED) + "\n"}


PINNED = [[4819585951362768736, 10887911309655581548], [2577017462910061311, 11409317384928611018]]


def test_index_round_trip_through_a_saved_model(tmp_path):
    axis = Axis([0, 4, 9], word=np.arange(9) % 5)
    templates, parts = Templates(["word", "word[-1] & word"]), positions(axis)
    index = templates.index(parts)
    store.save(tmp_path / "m", kind="toy", options={"templates": templates.names}, arrays=index.to_arrays())
    saved = store.read(tmp_path / "m")
    again = Index.from_arrays(saved.arrays)
    matrix = Templates(saved.options["templates"]).matrix(parts, again)
    assert np.array_equal(matrix.indices, templates.matrix(parts, index).indices)
    for damaged in ([3, 3], [4, 2], [0, 7]):
        with pytest.raises(ModelError, match="ascending"):
            Index(damaged)


def test_unknown_features_are_left_out_and_absent_codes_do_not_fire():
    templates = Templates(["word"])
    index = templates.index(positions(Axis([0, 2], word=[1, 2])))
    later = templates.matrix(positions(Axis([0, 4], word=[2, 9, -1, 1])), index)
    assert np.diff(later.indptr).tolist() == [1, 0, 0, 1]
    empty = templates.matrix(positions(Axis([0, 2], word=[1, 2])), Index([]))
    assert empty.n_features == 0 and empty.scores([]).tolist() == [0.0, 0.0]


def test_bytes_for_each_part():
    rng = np.random.default_rng(0)
    axis = Axis([0, 40], word=rng.integers(0, 9, 40), tag=rng.integers(0, 5, 40))
    templates = Templates(["head.word", "child.word", "head.tag & child.tag", "direction & distance", ()])
    parts = arcs(axis)
    matrix = templates.matrix(parts, templates.index(parts))
    assert matrix.nbytes == 8 * (parts.n_parts + 1) + 4 * len(matrix.indices)
    assert matrix.nbytes / parts.n_parts < 8 + 4 * len(templates) + 0.1


@pytest.mark.parametrize(
    ("templates", "finding"),
    [
        (["wo rd"], "should be a name"),
        (["word", "word"], "twice"),
        (["wrod"], "there is no wrod; these parts have .*word"),
        (["head.word"], "no head.word"),
        (["size[1]"], "no neighbours"),
        (["a.word & b.word"], "one span"),
    ],
)
def test_templates_that_make_no_sense_say_why(templates, finding):
    axis = Axis([0, 2], word=[1, 2])
    parts = positions(axis).with_columns(size=[1, 2])
    spans = {name: Role(axis, np.zeros(2, int), np.ones(2, int)) for name in "ab"}
    parts = Parts(2, parts.offsets, {**parts.roles, **spans}, parts.columns)
    with pytest.raises(ParameterError, match=finding):
        Templates(templates).matrix(parts, Hashed(4))


def test_wrong_input_says_so():
    axis = Axis([0, 2], word=[1, 2])
    with pytest.raises(ParameterError, match="word: there should be 2 integer codes"):
        Axis([0, 2], word=[1])
    with pytest.raises(ParameterError, match="integer codes"):
        Axis([0, 2], word=[1.0, 2.0])
    with pytest.raises(ParameterError, match="offsets"):
        Axis([0, 2, 1], word=[1])
    with pytest.raises(ParameterError, match="bits"):
        Hashed(31)
    with pytest.raises(ParameterError, match="gold"):
        Templates(["word"]).index(positions(axis), gold=[True])
    with pytest.raises(ParameterError, match="many keys"):
        Templates(["between.word"]).keys(arcs(axis))
    matrix = Sparse.of([[0], [1]], 2)
    for call in (lambda: matrix.scores([1.0]), lambda: matrix.totals([1.0]), lambda: Sparse.of([[2]], 2)):
        with pytest.raises(IsoglossError):
            call()


# --- products ------------------------------------------------------------------------------------------------------


def dense_of(matrix):
    out = np.zeros((matrix.n_rows, matrix.n_features))
    for r in range(matrix.n_rows):
        for i in range(matrix.indptr[r], matrix.indptr[r + 1]):
            out[r, matrix.indices[i]] += matrix.values[i] if len(matrix.values) else 1.0
    out[:, matrix.n_indicators :] = matrix.dense
    return out


@st.composite
def matrices(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    rows, columns, width = draw(st.integers(0, 6)), draw(st.integers(1, 5)), draw(st.integers(0, 2))
    lengths = rng.integers(0, 5, rows)
    indices = rng.integers(0, columns, lengths.sum())
    values = rng.normal(size=len(indices)) if draw(st.booleans()) else None
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return Sparse(indptr, indices, columns, values, rng.normal(size=(rows, width))), rng


@given(matrices())
@settings(max_examples=60, deadline=None)
def test_products_equal_those_of_the_dense_matrix(drawn):
    matrix, rng = drawn
    full = dense_of(matrix)
    weights, x = rng.normal(size=matrix.n_features), rng.normal(size=matrix.n_rows) * (rng.random(matrix.n_rows) < 0.7)
    np.testing.assert_allclose(matrix.scores(weights), full @ weights, atol=1e-12)
    np.testing.assert_allclose(matrix.totals(x), full.T @ x, atol=1e-12)
    a, b = sorted(rng.integers(0, matrix.n_rows + 1, 2))
    np.testing.assert_allclose(matrix.rows(a, b).scores(weights), full[a:b] @ weights, atol=1e-12)
    out = np.zeros(matrix.n_features)
    matrix.add_totals(x[a:b], out, a, b)
    np.testing.assert_allclose(out, full[a:b].T @ x[a:b], atol=1e-12)
    fires = np.zeros(matrix.n_features, bool)
    fires[matrix.n_indicators :] = True
    for r in range(a, b):
        fires[matrix.indices[matrix.indptr[r] : matrix.indptr[r + 1]]] = True
    support = matrix.support([(a, b)])
    assert sorted(support.tolist()) == np.flatnonzero(fires).tolist()


def test_products_do_not_depend_on_threads_or_on_the_way_they_are_cut(monkeypatch):
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 9, 3000)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    matrix = Sparse(indptr, rng.zipf(1.5, lengths.sum()) % 700, 700, dense=rng.normal(size=(3000, 2)))
    weights, x = rng.normal(size=702), rng.normal(size=3000) * (rng.random(3000) < 0.8)
    with using_threads(1):
        scores, totals = matrix.scores(weights), matrix.totals(x)  # by rows
    monkeypatch.setattr(sparse_module, "ROWS_PER_BLOCK", 100)
    monkeypatch.setattr(sparse_module, "ENTRIES_PER_BLOCK", 500)
    with using_threads(2):
        assert np.array_equal(matrix.scores(weights), scores)
        assert np.array_equal(matrix.totals(x), totals)  # by columns


def test_the_table_of_keys_grows_and_keeps_its_counts():
    """More features than the table first has room for, some of them met before and after it grew."""
    words = np.concatenate([[3, 3], np.arange(70_000), np.arange(0, 70_000, 7)])
    parts, templates = positions(Axis([0, len(words)], word=words)), Templates(["word"])
    assert templates.index(parts).n_features == 70_000
    often = templates.index(parts, min_count=2)
    expected = templates.index(positions(Axis([0, 10_001], word=np.append(np.arange(0, 70_000, 7), 3))))
    assert np.array_equal(often.keys, expected.keys)
    assert templates.index(parts, min_count=3).n_features == 1


@pytest.mark.parametrize("indptr", [[0, 5], [1, 1], [0, 2, 1], [], [[0, 1]]])
def test_rows_that_kernels_could_not_read_are_refused(indptr):
    with pytest.raises(ParameterError, match="indptr should begin with 0"):
        Sparse(indptr, [0], 1)


def test_parts_that_look_outside_the_words_are_refused():
    axis = Axis([0, 2], word=[1, 2])
    offsets = np.array([0, 2])
    wrong = (Role(axis, np.array([0, 2])), Role(axis, np.array([0])), Role(axis, np.array([0, 1]), np.array([1, 3])))
    for role in wrong:
        with pytest.raises(ParameterError, match="role self should have 2 places"):
            Parts(2, offsets, {"self": role})
    with pytest.raises(ParameterError, match="column distance should have 2 codes"):
        Parts(2, offsets, {}, {"distance": np.array([1])})


def test_totals_need_room_for_all_features():
    with pytest.raises(ParameterError, match="totals are 3 numbers"):
        Sparse.of([[0, 2]], 3).add_totals([1.0], np.zeros(2))


# --- the mixer and the table ----------------------------------------------------------------------------------------


def test_mixers_of_kernels_and_of_python_agree_with_the_published_generator():
    from isogloss.features._numba import mixing as kernels

    assert [splitmix(k) for k in range(2)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]  # of the authors' program
    for number in (*range(9), 2**20 + 3, MASK, 2**63, 0xDEADBEEF):
        assert mixing.splitmix(number) == splitmix(number)
        assert mixing.mix(number) == int(kernels.mix(np.uint64(number))) == mixed(number)
        for bin_ in (0, 1, 14):
            assert int(kernels.key_of(np.uint64(number), bin_)) == key_of(number, bin_)
    assert [mixing.factor_of(k) for k in range(3)] == [factor(k) for k in range(3)]


@given(st.integers(0, 2**31), st.integers(0, 300))
@settings(max_examples=25, deadline=None)
def test_tables_find_what_was_put_in_and_nothing_else(seed, count):
    """Keys that crowd in a few slots, of which some share their fingerprint."""
    from isogloss.features._numba.table import find, insert, room_for

    rng = np.random.default_rng(seed)
    drawn = (rng.integers(1, 40, count).astype(np.uint64) << np.uint64(32)) | rng.integers(0, 40, count).astype(
        np.uint64
    )
    slots, counts, used = np.zeros(4, np.uint64), np.zeros(4, np.int32), 0
    for key in drawn:
        slots, counts = room_for(slots, counts, used, 1)
        used += insert(slots, counts, key)
    wanted = collections.Counter(drawn.tolist())
    assert used == len(wanted) and 2 * used <= len(slots)
    assert {int(key): int(n) for key, n in zip(slots, counts) if key} == dict(wanted)
    keys = np.array(sorted(wanted), np.uint64)
    index = Index(keys)
    others = np.setdiff1d(np.concatenate([drawn + np.uint64(1 << 40), drawn + np.uint64(1)]), keys)
    assert index.numbers(keys).tolist() == list(range(len(keys)))
    assert (index.numbers(others) == -1).all() and index.numbers(np.zeros(1, np.uint64)).tolist() == [-1]
    table = KeyTable.of(keys, (keys >> np.uint64(32)).astype(np.uint32))  # the payload is the fingerprint
    mask = np.uint64(len(table.slots) // 2 - 1)
    assert all(table.slots[2 * find(table.slots, mask, key) + 1] == key >> np.uint64(32) for key in keys)
    assert sorted(table.payload.tolist()) == sorted((keys >> np.uint64(32)).tolist())


def test_kinds_keep_templates_of_the_same_name_apart():
    parts = positions(Axis([0, 2], word=[1, 2]))
    plain, valence = Templates(["word"]).keys(parts), Templates(["word"], kind="valence").keys(parts)
    assert len({*plain.ravel().tolist(), *valence.ravel().tolist()}) == 4


# --- walking templates ----------------------------------------------------------------------------------------------


@given(corpora(), st.integers(0, 99), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=25, deadline=None)
def test_walking_templates_gives_what_the_matrix_gives(axis, seed, dtype):
    rng = np.random.default_rng(seed)
    for parts, names in kinds_of_parts(axis):
        templates = Templates(names)
        for numbering in (Hashed(6), templates.index(parts, min_count=2), templates.index(parts), Index([])):
            scorer, matrix = TemplateScorer(templates, parts, numbering), templates.matrix(parts, numbering)
            weights = rng.normal(size=numbering.n_features).astype(dtype)
            values = (rng.normal(size=parts.n_parts) * (rng.random(parts.n_parts) < 0.6)).astype(dtype)
            np.testing.assert_allclose(scorer.scores(weights), matrix.scores(weights), atol=1e-12)
            found = scorer.gradient(values, least=0.1)
            assert found.values.dtype == dtype and len(found.places) == len(scorer) == len(axis.offsets) - 1
            for s, (a, b) in enumerate(zip(parts.offsets, parts.offsets[1:])):
                own = slice(found.places[s], found.ends[s])
                total = np.zeros(numbering.n_features)
                np.add.at(total, found.numbers[own], found.values[own])
                kept = np.where(np.abs(values[a:b]) > 0.1, values[a:b], 0.0)
                np.testing.assert_allclose(total, matrix.rows(a, b).totals(kept), atol=1e-12)


def test_some_sentences_on_any_threads_score_the_same():
    rng = np.random.default_rng(5)
    lengths = rng.integers(0, 9, 50)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    axis = Axis(offsets, word=rng.integers(0, 20, offsets[-1]), tag=rng.integers(-1, 4, offsets[-1]))
    parts, templates = arcs(axis), Templates(ARCS)
    scorer = TemplateScorer(templates, parts, templates.index(parts))
    weights = rng.normal(size=scorer.n_features).astype(np.float32)
    with using_threads(1):
        whole = scorer.scores(weights)
    chosen = rng.permutation(50)[:20]
    rows = np.concatenate([np.arange(parts.offsets[s], parts.offsets[s + 1]) for s in chosen])
    values = rng.normal(size=len(rows))
    found = []
    for threads in (1, 2):
        with using_threads(threads):
            assert np.array_equal(scorer.scores(weights, chosen), whole[rows])
            one = scorer.gradient(values, chosen)
        kept = np.concatenate([np.arange(a, b) for a, b in zip(one.places, one.ends)])
        found.append((one.places.tolist(), one.ends.tolist(), one.numbers[kept].tolist(), one.values[kept].tolist()))
    assert found[0] == found[1] and len(found[0][2]) > 1000
    none = scorer.gradient([], [])
    assert not len(none.places) and not len(none.numbers) and not len(scorer.scores(weights, []))


def test_walking_says_what_is_wrong():
    parts = positions(Axis([0, 2], word=[1, 2]))
    scorer = TemplateScorer(Templates(["word"]), parts, Hashed(4))
    with pytest.raises(ParameterError, match="weights should be 16 numbers"):
        scorer.scores(np.zeros(3))
    with pytest.raises(ParameterError, match="values should be 2 numbers"):
        scorer.gradient([1.0])
    with pytest.raises(ParameterError, match="sentences should be numbers from 0 to 0"):
        scorer.scores(np.zeros(16), [1])
    with pytest.raises(ParameterError, match=r"there is no head\.word"):
        TemplateScorer(Templates(["head.word"]), parts, Hashed(4))
    with pytest.raises(ParameterError, match="longest should be 1 or more"):
        spans(Axis([0, 2]), 0)
    with pytest.raises(ParameterError, match="bins should be numbers from 0 on"):
        parts.with_bins([1, -1])
    with pytest.raises(ParameterError, match="Parts: offsets should begin with 0"):
        Parts(2, np.array([0, 1]))
