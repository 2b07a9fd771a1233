"""Arrays of saved models are checked against their declaration before anything is done with them."""

import numpy as np
import pytest

from isogloss.errors import ModelError
from isogloss.layout import (
    Layout,
    Numbers,
    Offsets,
    Strings,
    check,
    check_table,
    collect,
    integer,
    number,
    texts,
    vector,
)
from isogloss.store import pack_strings

LAYOUT: Layout = {
    "words": Strings("n", distinct=True, least=1),
    "rows": Offsets("n", "k"),
    "columns": Numbers("int32", "k", least=0, below="n"),
    "weights": Numbers("float32", ("k", 2)),
    "keys": Numbers("uint64", "keys", order="strict"),
    "logs": Numbers("float64", "n", below=0.5, logs=True),
    "total": Numbers("int64", least=1),
}


def good() -> dict[str, np.ndarray]:
    blob, offsets = pack_strings(["the", "house", "né"])
    return {
        "words": blob,
        "words_offsets": offsets,
        "rows": np.array([0, 2, 2, 4]),
        "columns": np.array([0, 2, 1, 2], np.int32),
        "weights": np.ones((4, 2), np.float32),
        "keys": np.array([1, 5, 2**64 - 1], np.uint64),
        "logs": np.array([-np.inf, 0.0, -3.0]),
        "total": np.array(7),
    }


def test_what_is_as_declared_comes_back():
    arrays = good()
    found = check(arrays, LAYOUT, "toy")
    assert found["words"] == ["the", "house", "né"]
    assert all(np.array_equal(found[name], arrays[name]) for name in LAYOUT if name != "words")


def test_what_is_collected_is_as_declared():
    class Toy:
        pass

    toy = Toy()
    for name, value in check(good(), LAYOUT, "toy").items():
        setattr(toy, name, value)
    again = collect(toy, LAYOUT)
    assert again.keys() == good().keys()
    assert all(np.array_equal(again[name], array) for name, array in good().items())


def test_kernels_get_native_arrays_in_c_order():
    arrays = good() | {"weights": np.ones((2, 4), ">f4").T}
    found = check(arrays, LAYOUT, "toy")["weights"]
    assert found.flags.c_contiguous and found.dtype.isnative


@pytest.mark.parametrize(
    ("name", "array", "finding"),
    [
        ("rows", None, "array 'rows' is missing"),
        ("words_offsets", None, "array 'words_offsets' is missing"),
        ("rows", np.array([0.0, 2.0, 2.0, 4.0]), r"array 'rows' is float64\[4\] and should be int64\[4\]"),
        ("rows", np.array([0, 2, 4]), r"array 'rows' is int64\[3\] and should be int64\[4\]"),
        ("rows", np.array([[0, 2, 2, 4]]), r"array 'rows' is int64\[1, 4\] and should be int64\[4\]"),
        ("rows", np.array([0, 3, 2, 4]), "array 'rows' does not go from 0 to 4"),
        ("rows", np.array([0, 2, 2, 5]), "array 'rows' does not go from 0 to 4"),
        ("rows", np.array([-1, 2, 2, 4]), "array 'rows' does not go from 0 to 4"),
        ("columns", np.array([0, 3, 1, 2], np.int32), "array 'columns' has 3 where numbers should be at most 2"),
        ("columns", np.array([0, -1, 1, 2], np.int32), "array 'columns' has -1 where numbers should be at least 0"),
        ("weights", np.ones((4, 3), np.float32), r"array 'weights' is float32\[4, 3\] and should be float32\[4, 2\]"),
        ("weights", np.full((4, 2), np.nan, np.float32), "infinite, not numbers"),
        ("weights", np.full((4, 2), np.inf, np.float32), "infinite, not numbers"),
        ("weights", np.full((4, 2), -1e35, np.float32), "larger than 1e\\+30"),
        ("keys", np.array([1, 1], np.uint64), "array 'keys' is not in ascending order"),
        ("keys", np.array([2, 1], np.uint64), "array 'keys' is not in ascending order"),
        ("logs", np.array([0.0, 0.6, 0.0]), "array 'logs' has 0.6 where numbers should be below 0.5"),
        ("logs", np.array([0.0, np.nan, 0.0]), "infinite, not numbers"),
        ("logs", np.array([0.0, np.inf, 0.0]), "infinite, not numbers"),
        ("total", np.array([7]), r"array 'total' is int64\[1\] and should be int64\[\]"),
        ("total", np.array(0), "should be at least 1"),
        ("words_offsets", np.array([0, 3, 8, 12]), "array 'words_offsets' does not go from 0 to 11"),
        ("words_offsets", np.array([0, 9, 8, 11]), "array 'words_offsets' does not go from 0 to 11"),
        ("words", np.frombuffer(b"\xff" * 11, np.uint8), "not UTF-8"),
    ],
)
def test_what_is_not_as_declared_is_refused(name, array, finding):
    arrays = good()
    del arrays[name]
    if array is not None:
        arrays[name] = array
    with pytest.raises(ModelError, match=finding):
        check(arrays, LAYOUT, "toy")


def test_strings_may_not_come_twice_or_be_missing():
    for words, finding in ((["a", "b", "a"], "the same string twice"), ([], "has 0 strings and should have 1")):
        blob, offsets = pack_strings(words)
        with pytest.raises(ModelError, match=finding):
            check({"words": blob, "words_offsets": offsets}, {"words": LAYOUT["words"]}, "toy")


def test_offsets_of_nothing_are_refused():
    with pytest.raises(ModelError, match="should be int64"):
        check({"rows": np.zeros(0, np.int64)}, {"rows": Offsets("n", 0)}, "toy")


@pytest.mark.parametrize("value", [None, True, "1", [1], float("nan"), float("inf"), 10**400, 2.0, -0.5])
def test_numbers_of_headers_are_in_range(value):
    with pytest.raises(ModelError, match="'threshold' should be a number from 0 to 1"):
        number(value, "threshold", least=0, most=1)


@pytest.mark.parametrize("value", [None, True, "1", 1.0, -1, 10**400])
def test_whole_numbers_of_headers_are_in_range(value):
    with pytest.raises(ModelError, match="'rounds' should be a whole number from 0 to 9"):
        integer(value, "rounds", most=9)


@pytest.mark.parametrize("value", [None, "abc", {"a": 1}, [1, "a"], [True], [10**400]])
def test_vectors_of_headers_are_lists_of_numbers(value):
    with pytest.raises(ModelError, match="'trace' should be a list of numbers"):
        vector(value, "trace")


@pytest.mark.parametrize("value", [None, "abc", {"a": 1}, ["a", 1], ["a", "a"]])
def test_texts_of_headers_are_lists_of_different_strings(value):
    with pytest.raises(ModelError, match="'names' should be a list of different strings"):
        texts(value, "names")


def test_tables_have_free_slots_everywhere():
    rng = np.random.default_rng(0)
    check_table(rng.random(1 << 15) < 0.4, "toy")
    long_run = np.arange(1 << 15) % (1 << 15) < 5000
    around = (np.arange(1 << 15) - 3000) % (1 << 15) >= (1 << 15) - 5000
    for filled in (np.zeros(0, bool), np.zeros(12, bool), np.arange(16) < 9, np.ones(16, bool), long_run, around):
        with pytest.raises(ModelError, match="no table of features"):
            check_table(filled, "toy")


@pytest.mark.parametrize("word", ["", "a\tb", "a\n", "\r", "\ud800"])
def test_what_is_written_to_tables_can_be(word):
    blob, offsets = pack_strings(["ok", word])
    with pytest.raises(ModelError, match="cannot be written"):
        check({"tags": blob, "tags_offsets": offsets}, {"tags": Strings("n", cells=True)}, "toy")
    if word:
        with pytest.raises(ModelError, match="cannot be written"):
            texts(["ok", word], "values", cells=True)
