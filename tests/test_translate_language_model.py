"""The language model against Kneser-Ney by its definition, and against what `lmplz` and `query` print."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import samples
from isogloss.data import Text, Vocabulary
from isogloss.errors import DataError, ModelError, ParameterError
from isogloss.tasks.translate.language_model import FALLBACK, LanguageModel
from isogloss.testing.enumerate import kneser_ney

ENGLISH = samples.bitext("en-de").source
KENLM = (81.99464995799377, 43.8086281683752, 114, 33)
texts = st.lists(st.lists(st.sampled_from("abcde"), max_size=7), min_size=1, max_size=12)


def log_probs(model, sentences):
    return model.log_probs(Text.of(sentences))


@settings(max_examples=60, deadline=None)
@given(texts, texts, st.integers(1, 4))
def test_probabilities_are_those_of_the_definition(learnt, asked, order):
    model = LanguageModel.of(Text.of(learnt), order)
    right = kneser_ney(learnt, order, FALLBACK)
    for sentence, found in zip(asked, log_probs(model, asked), strict=True):
        padded = ["<s>", *sentence, "</s>"]
        expected = sum(right(padded[i], padded[:i]) for i in range(1, len(padded)))
        assert found == pytest.approx(expected, abs=1e-5)


@settings(max_examples=30, deadline=None)
@given(texts, st.lists(st.sampled_from("abcdefg"), max_size=5), st.integers(1, 4))
def test_probabilities_of_what_comes_next_sum_to_one(learnt, history, order):
    from isogloss.tasks.translate._numba.language_model import next_word

    model = LanguageModel.of(Text.of(learnt), order)
    state = model.grams.follows[1 + model.begin]
    for word in history:
        number = model.words.index_of(word)
        state = next_word(model.grams, state, model.unknown if number < 0 else number)[1]
    total = sum(
        math.exp(next_word(model.grams, state, word)[0]) for word in range(len(model.words) + 3) if word != model.begin
    )
    assert total == pytest.approx(1, abs=1e-5)


def test_an_order_of_the_sample_agrees_with_the_definition():
    rows = [list(row) for row in ENGLISH[:150]]
    model, right = LanguageModel.of(Text.of(rows), 3), kneser_ney(rows, 3, FALLBACK)
    for sentence, found in zip(rows[:5], log_probs(model, rows[:5]), strict=True):
        padded = ["<s>", *sentence, "</s>"]
        assert found == pytest.approx(sum(right(padded[i], padded[:i]) for i in range(1, len(padded))), abs=1e-4)


def test_perplexities_are_those_that_kenlm_prints():
    """Of `lmplz -o 3 --discount_fallback` on the first 40 sentences of the sample and `query` on the others."""
    model = LanguageModel.of(ENGLISH[:40], 3)
    found = model.perplexity(ENGLISH[40:])
    assert (found.words, found.unknown) == KENLM[2:]
    assert found.including == pytest.approx(KENLM[0], rel=1e-4)
    assert found.excluding == pytest.approx(KENLM[1], rel=1e-4)


def test_words_that_never_occur_are_as_likely_as_unknown_ones():
    text = Text.of(["a b", "b a b"])
    wide = LanguageModel.of(text, 2, words=Vocabulary("xbay"))
    plain = LanguageModel.of(text, 2)
    asked = Text.of(["a x", "zz b", "y"])
    np.testing.assert_allclose(wide.log_probs(asked), plain.log_probs(asked), rtol=1e-6)
    assert wide.perplexity(asked).unknown == plain.perplexity(asked).unknown == 3


def test_nothing_and_empty_sentences():
    empty = LanguageModel.of(Text.of([]), 3)
    assert np.isfinite(empty.log_probs(Text.of(["a b", ""]))).all()
    model = LanguageModel.of(Text.of(["", "a", ""]), 3)
    assert model.log_probs(Text.of([""]))[0] < 0
    assert len(model.log_probs(Text.of([]))) == 0


def test_something_is_left_for_words_that_never_followed():
    """Counts of counts 4, 4 and 8 give bigrams that occur twice a discount of exactly 0."""
    model = LanguageModel.of(Text.of([*"abccddeeefffggghhh"]), 2)
    assert np.isfinite(model.arrays["backoffs"]).all()
    assert np.isfinite(log_probs(model, [["c", "a"]])).all()
    LanguageModel.from_arrays(model.words, 2, model.arrays)


@settings(max_examples=20, deadline=None)
@given(texts, texts, st.integers(1, 3))
def test_arpa_files_come_back(tmp_path_factory, learnt, asked, order):
    path = tmp_path_factory.mktemp("arpa") / "model.arpa"
    model = LanguageModel.of(Text.of(learnt), order)
    model.write_arpa(path)
    again = LanguageModel.read_arpa(path)
    assert again.order == order
    np.testing.assert_allclose(log_probs(again, asked), log_probs(model, asked), atol=1e-4)


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        ("", "there are no n-grams"),
        ("\\1-grams:\nx\ta\n", "line 2"),
        ("\\1-grams:\n400\ta\n", "line 2"),
        ("\\1-grams:\nnan\ta\n", "line 2"),
        ("\\1-grams:\n-1\ta\t1e9\n", "line 2"),
        ("\\1-grams:\n-1\ta\t-1\n\\2-grams:\n-1\ta b\n", "not among the words alone"),
        ("\\1-grams:\n-1\ta\t-1\n-1\tb\t-1\n\\2-grams:\n-1\ta b\t-1\n\\3-grams:\n-1\tb a b\n", "goes on from none"),
    ],
)
def test_damaged_arpa_files_are_refused(tmp_path, content, finding):
    path = tmp_path / "model.arpa"
    path.write_text(content)
    with pytest.raises(DataError, match=finding):
        LanguageModel.read_arpa(path)


def test_arpa_files_of_other_programs(tmp_path):
    """With carriage returns, a word with a separator of lines in it, and a weight for a word that nothing follows."""
    lines = ["\\data\\", "ngram 1=5", "ngram 2=1", "", "\\1-grams:", "-99\t<s>\t0", "-inf\t</s>", "-1\ta\t-0.5"]
    lines += ["-2\tb\u2028c\t-3", "-3\t<unk>", "", "\\2-grams:", "-0.25\ta b\u2028c", "", "\\end\\", ""]
    (tmp_path / "model.arpa").write_bytes("\r\n".join(lines).encode())
    model = LanguageModel.read_arpa(tmp_path / "model.arpa")
    assert list(model.words) == ["a", "b\u2028c"]
    found = log_probs(model, [["a", "b\u2028c", "a"]])[0] / np.log(10)
    assert found == pytest.approx(-1 - 0.25 + (-3 - 1) + (-0.5 - 99), rel=1e-6)


def test_words_with_a_meaning_in_arpa_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="'<s>' is a word of the text"):
        LanguageModel.of(Text.of(["a <s> b"]), 2).write_arpa(tmp_path / "model.arpa")


@pytest.mark.parametrize("order", [0, 17])
def test_orders_out_of_range_are_refused(order):
    with pytest.raises(ParameterError, match="order"):
        LanguageModel.of(Text.of(["a"]), order)


@pytest.mark.parametrize("name", ["words", "follows", "starts", "shorter", "lengths"])
def test_damaged_arrays_are_refused(name):
    model = LanguageModel.of(Text.of(["a b c", "b c a"]), 3)
    arrays = {key: array.copy() for key, array in model.arrays.items()}
    assert len(LanguageModel.from_arrays(model.words, 3, arrays)) == len(model)
    arrays[name][len(arrays[name]) // 2] += 100
    with pytest.raises(ModelError):
        LanguageModel.from_arrays(model.words, 3, arrays)
