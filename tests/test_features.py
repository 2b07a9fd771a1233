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
from isogloss.learners import features as features_module
from isogloss.learners import sparse as sparse_module
from isogloss.learners.features import Axis, Hashed, Index, Parts, Role, Sparse, Templates, arcs, pairs, positions

MASK = 2**64 - 1


# --- the reference: one part, one template at a time, Python integers -----------------------------------------------


def mixed(h, code):
    z = (h + (code & MASK) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    z ^= z >> 31
    return z or 1


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
    """The keys of part p, template by template."""
    out = []
    for name in names:
        items = []
        for word in name.split(" & "):
            word, _, offset = word.rstrip("]").partition("[")
            role, _, attribute = word.rpartition(".")
            items.append((role, attribute, int(offset or 0)))
        columns = [i for i in items if not i[0] and i[1] in parts.columns]
        plain = [i for i in items if i not in columns and parts.roles[i[0] or "self"].until is None]
        spans = [i for i in items if i not in columns and i not in plain]
        key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        for item in [i for i in items if i not in spans]:
            if item in columns:
                code = int(parts.columns[item[1]][p])
                code = None if code < 0 else code
            else:
                role = parts.roles[item[0] or "self"]
                code = None if role.at[p] < 0 else word_code(role.axis, item[1], int(role.at[p]), item[2])
            key = None if key is None or code is None else mixed(key, code)
        if not spans:
            out += [] if key is None else [key]
            continue
        role = parts.roles[spans[0][0]]
        for at in range(int(role.at[p]), int(role.until[p])):
            each = key
            for _, attribute, offset in spans:
                code = word_code(role.axis, attribute, at, offset)
                each = None if each is None or code is None else mixed(each, code)
            out += [] if each is None else [each]
    return out


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


def canonical(names):
    return Templates(names).names


@given(corpora())
@settings(max_examples=25, deadline=None)
def test_bulk_features_equal_the_slow_reference(axis):
    for parts, names in (
        (positions(axis).with_columns(length=np.repeat(np.diff(axis.offsets), np.diff(axis.offsets))), CHAIN),
        (arcs(axis), ARCS),
        (pairs(axis, Axis(axis.offsets, word=axis.attributes["tag"] + 1, tag=axis.attributes["word"])), PAIRS),
    ):
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
    monkeypatch.setattr(features_module, "PARTS_PER_BLOCK", 37)
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
        "from isogloss.learners.features import *\n"
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


PINNED = [[6410081835783824386, 4851001621056075119], [5792549490260307134, 7736158210989414325]]


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
