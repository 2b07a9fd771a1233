"""Dictionaries of tags: lookups, reading, diagnostics, samples, the command line, and scoring in a set of tags."""

from __future__ import annotations

import doctest
import gzip
import json
import lzma
import os
import unicodedata
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import cli
from isogloss.data import Text, Treebank
from isogloss.data.dictionary_report import KINDS
from isogloss.data.formats import IsoglossWarning, format_dictionary, parse_dictionary, read_dictionary
from isogloss.data.tag_dictionary import TagDictionary, is_number, is_punctuation
from isogloss.data.tagsets import (
    UD17,
    UNIMORPH,
    UNIVERSAL12,
    WIKTIONARY,
    possible_tags,
    retagged,
    tagset_of,
    to_ud17,
    to_universal12,
)
from isogloss.errors import DataError, IsoglossError, ModelError, ParameterError, TreebankError, UsageError
from isogloss.metrics.parsing import score_trees

DATA = Path(os.environ.get("ISOGLOSS_DATA", Path(__file__).parents[2] / "shared" / "data"))
COUNTS = {"de": 68_060, "es": 242_546, "pt": 43_119, "el": 22_392}  # lines, as the data's own page has them

words = st.text("aAbBéÉ.,12%-", min_size=1, max_size=4)
entries = st.dictionaries(words, st.lists(st.sampled_from(UNIVERSAL12), min_size=1, max_size=3), max_size=12)
sentences = st.lists(st.lists(words, max_size=5), max_size=5)


# Sets of tags --------------------------------------------------------------------------------------------------------


def test_every_tag_of_ud_is_one_of_the_twelve() -> None:
    renamed = {
        "PROPN": "NOUN", "AUX": "VERB", "CCONJ": "CONJ", "SCONJ": "CONJ", "PART": "PRT", "PUNCT": ".", "SYM": "X",
        "INTJ": "X",
    }  # fmt: skip
    assert [to_universal12(tag) for tag in UD17] == [renamed.get(tag, tag) for tag in UD17]
    assert len(UD17) == 17 and len(UNIVERSAL12) == 12 and set(map(to_universal12, UD17)) == set(UNIVERSAL12)
    assert [to_universal12(tag) for tag in UNIVERSAL12] == list(UNIVERSAL12)


def test_the_twelve_stand_for_all_of_ud() -> None:
    """Every UD tag is possible for just one of the twelve: the sets of `possible_tags` are a partition."""
    allowed = [tag for coarse in UNIVERSAL12 for tag in possible_tags(coarse, "ud17")]
    assert sorted(allowed) == sorted(UD17)
    assert all(to_universal12(fine) == coarse for coarse in UNIVERSAL12 for fine in possible_tags(coarse, "ud17"))


@pytest.mark.parametrize("tag", ["_", "NN", "noun", ""])
def test_what_is_no_tag_is_named(tag: str) -> None:
    for translate in (to_universal12, to_ud17):
        with pytest.raises(DataError, match=repr(tag) if tag != "_" else "no tag"):
            translate(tag)


def test_conjunctions_are_two_in_ud() -> None:
    with pytest.raises(DataError, match="CCONJ or SCONJ"):
        to_ud17("CONJ")
    assert [to_ud17(tag) for tag in ("PRT", ".", "NOUN", "AUX")] == ["PART", "PUNCT", "NOUN", "AUX"]


def test_tables_of_labels_hold_tags_of_ud() -> None:
    for table in (WIKTIONARY, UNIMORPH):
        assert {tag for tags in table.values() for tag in tags} <= set(UD17)
    assert all(label == label.lower().strip() for label in WIKTIONARY)
    assert tagset_of([]) is not None


# Entries and lookups -------------------------------------------------------------------------------------------------


def test_words_and_their_tags() -> None:
    found = TagDictionary({"house": ["VERB", "NOUN", "NOUN"], "the": "DET", "nothing": []})
    assert dict(found) == {"house": ("NOUN", "VERB"), "the": ("DET",)}
    assert found.tags == UNIVERSAL12 and found.n_pairs == 3 and len(found) == 2
    assert "nothing" not in found and 3 not in found
    assert {tag: count for tag, count in found.counts().items() if count} == {"NOUN": 1, "VERB": 1, "DET": 1}
    with pytest.raises(KeyError, match="dog"):
        found["dog"]
    assert TagDictionary({"a": "PROPN"}).tags == UD17
    assert TagDictionary({"a": ["NN", "DT"]}).tags == ("DT", "NN")
    assert TagDictionary({"a": "NOUN"}, "any").tags == ("NOUN",)


@pytest.mark.parametrize("pairs", [[("", "NOUN")], [("a", "")]])
def test_neither_word_nor_tag_may_be_empty(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(ParameterError, match="empty"):
        TagDictionary.of(pairs)


def test_a_tag_outside_the_set_is_named() -> None:
    with pytest.raises(ParameterError, match="'PROPN' is not in universal12"):
        TagDictionary({"a": "PROPN"}, "universal12")
    with pytest.raises(ParameterError, match="universal12, ud17"):
        TagDictionary({"a": "PROPN"}, "penn")


def test_lookups_try_the_word_then_small_letters_then_rules() -> None:
    found = TagDictionary({"Essen": "NOUN", "essen": "VERB", "und": "CONJ", "5": "X"})
    types = ["Essen", "ESSEN", "Und", "Hund", "...", "7", "5", "%"]
    rows = {word: {tag for tag, ok in zip(UNIVERSAL12, row, strict=True) if ok}
            for word, row in zip(types, found.allowed(types).tolist(), strict=True)}  # fmt: skip
    everything = set(UNIVERSAL12)
    assert rows == {
        "Essen": {"NOUN"}, "ESSEN": {"VERB"}, "Und": {"CONJ"}, "Hund": everything - {"."}, "...": {"."}, "7": {"NUM"},
        "5": {"X"}, "%": everything,
    }  # fmt: skip
    assert found.known(types).tolist() == [True, True, True, False, True, True, True, False]
    assert found.known(types, rules=False).tolist() == [True, True, True, False, False, False, True, False]
    assert found.known(types, rules=False, fold_case=False).tolist() == [True, *[False] * 5, True, False]
    assert found.allowed(["Und"], fold_case=False).sum() == 11 and found.allowed(["..."], rules=False).all()


def test_entries_of_both_spellings_may_be_united() -> None:
    found = TagDictionary({"Es": "NOUN", "es": "PRON", "und": "CONJ", "Ohm": "NOUN"})
    rows = found.allowed(["Es", "es", "Und", "Ohm", "OHM", "!"], ["NOUN", "PRON", "CONJ", "."], fold_case="both")
    assert rows.astype(int).tolist() == [
        [1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1],
    ]  # fmt: skip


def test_other_tags_may_be_asked_for() -> None:
    found = TagDictionary({"run": ["NOUN", "VERB"], "old": "ADJ"})
    assert found.allowed(["run", "old", "!"], ["VERB", "PUNCT"]).tolist() == [
        [True, False],
        [True, True],
        [False, True],
    ]
    penn = TagDictionary({"run": ["NN", "VB"]})
    assert penn.allowed(["run", "!", "7"]).tolist() == [[True, True]] * 3  # no tag of marks: the rules say nothing
    assert penn.allowed([]).shape == (0, 2)
    assert TagDictionary({}).allowed(["a", "1"]).sum(axis=1).tolist() == [11, 1]


def test_one_letter_may_be_written_in_two_ways() -> None:
    whole, parts = (unicodedata.normalize(form, "été") for form in ("NFC", "NFD"))
    for first, second in ((whole, parts), (parts, whole)):
        found = TagDictionary({first: "NOUN"})
        assert second in found and found[second] == ("NOUN",)
        assert found.known([second, second.upper()], rules=False).all()


@given(entries, st.lists(words, max_size=8), st.booleans(), st.booleans())
def test_allowed_agrees_with_a_loop_over_a_dict(
    table: dict[str, list[str]], types: list[str], fold_case: bool, rules: bool
) -> None:
    expected = []
    for word in types:
        tags = table.get(word)
        if tags is None and fold_case:
            tags = table.get(word.lower())
        if tags is None and rules and all(letter in ".,-" for letter in word):
            tags = ["."]
        if tags is None and rules and is_number(word):
            tags = ["NUM"]
        if tags is None and rules and any(letter.isalnum() for letter in word):
            tags = [tag for tag in UNIVERSAL12 if tag != "."]
        expected.append([tags is None or tag in tags for tag in UNIVERSAL12])
    found = TagDictionary(table, "universal12").allowed(types, fold_case=fold_case, rules=rules)
    assert found.tolist() == expected


def test_what_rules_take_for_punctuation_and_numerals() -> None:
    assert all(map(is_punctuation, ["«", "…", "--", "``", "''", "¿", "。", "[...]"]))
    assert not any(map(is_punctuation, ["", "%", "&", "@", "$", "+", "a.", "€"]))
    assert all(map(is_number, ["0", "1,5", "1.000.000", "-3", "12:30", "1990-95", "10\u00a0000", "٣", "½", "1/2"]))
    assert not any(map(is_number, ["", "3.", "1990s", "III", "-", "1,", "50%", "a1"]))


# Mapping, samples, treebanks, arrays ---------------------------------------------------------------------------------


def test_mapping_to_either_set() -> None:
    fine = TagDictionary({"be": ["AUX", "VERB"], "that": ["SCONJ", "PRON"], "!": "PUNCT"})
    coarse = fine.mapped("universal12")
    assert dict(coarse) == {"be": ("VERB",), "that": ("PRON", "CONJ"), "!": (".",)}
    assert coarse.tags == UNIVERSAL12 and coarse.mapped("universal12") is coarse
    back = coarse.mapped("ud17")
    assert dict(back) == {"be": ("AUX", "VERB"), "that": ("CCONJ", "PRON", "SCONJ"), "!": ("PUNCT",)}
    with pytest.raises(DataError, match="'NN'"):
        TagDictionary({"a": "NN"}).mapped("ud17")


@given(entries, st.sets(st.floats(0, 1), min_size=2, max_size=4), st.integers(0, 3), st.booleans())
def test_a_smaller_sample_is_part_of_a_larger(
    table: dict[str, list[str]], shares: set[float], seed: int, weighted: bool
) -> None:
    whole = TagDictionary(table)
    weights = {word: len(word) ** 3 for word in table} if weighted else None
    samples = [whole.sample(share, seed, weights) for share in sorted(shares)]
    for share, part in zip(sorted(shares), samples, strict=True):
        assert dict(part) == {word: whole[word] for word in part}
        assert part.tags == whole.tags
        if not weighted:
            assert abs(len(part) - share * len(whole)) <= 0.5 + 1e-9
    for small, large in pairwise(samples):
        assert set(small) <= set(large)
    assert dict(whole.sample(1.0, seed, weights)) == dict(whole) and not len(whole.sample(0.0, seed, weights))
    assert list(whole.sample(0.5, seed)) == list(TagDictionary(table).sample(0.5, seed))


def test_a_weighted_sample_covers_a_share_of_the_tokens() -> None:
    generator = np.random.default_rng(5)
    counts = {f"w{k}": int(count) for k, count in enumerate(generator.zipf(1.5, 2000).clip(max=300))}
    whole = TagDictionary(dict.fromkeys(counts, "NOUN"))
    text = Text.of([[word] * count for word, count in counts.items()])
    total = sum(counts.values())
    for share in (0.2, 0.5, 0.8):
        part = whole.sample(share, 3, counts)
        assert abs(part.coverage(text)["token_coverage"] - 100 * share) <= 50 * 300 / total + 1e-6
        assert list(whole.sample(share, 3, text)) == list(part)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_shares_of_samples_are_checked(share: float) -> None:
    with pytest.raises(ParameterError, match="between 0 and 1"):
        TagDictionary({"a": "X"}).sample(share)


def test_the_dictionary_of_a_treebank() -> None:
    trees = Treebank.of([[("run", "VERB"), ("run", "VERB"), ("run", "NOUN"), ("the", "DET"), ("x", "_")]])
    assert dict(TagDictionary.of_treebank(trees)) == {"run": ("NOUN", "VERB"), "the": ("DET",)}
    assert dict(TagDictionary.of_treebank(trees, min_share=0.5)) == {"run": ("VERB",), "the": ("DET",)}
    assert TagDictionary.of_treebank(trees).tags == UD17
    twelve = retagged(trees, "universal12", keep_untagged=True)
    assert TagDictionary.of_treebank(twelve.with_columns(upos=["CONJ"] * 5)).tags == UNIVERSAL12
    assert dict(TagDictionary.of_treebank(Treebank.of([]))) == {}
    for options in ({"column": "tag"}, {"min_share": 2.0}):
        with pytest.raises(ParameterError):
            TagDictionary.of_treebank(trees, **options)  # type: ignore[arg-type]


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.sampled_from([*UD17, "Ä|x"]), max_size=6))
def test_arrays_make_the_same_dictionary(table: dict[str, str]) -> None:
    made = TagDictionary(table)
    again = TagDictionary.from_arrays({name: np.array(array) for name, array in made.to_arrays().items()})
    assert dict(again) == dict(made) and again.tags == made.tags and again.tagset == made.tagset


def test_damaged_arrays_are_refused() -> None:
    arrays = TagDictionary({"a": "NOUN", "b": "VERB"}).to_arrays()
    for change in ({"sets": np.array([0, 9])}, {"table": np.zeros((2, 3), bool)}, {"sets": np.zeros(1, np.int32)}):
        with pytest.raises(ModelError, match="damaged"):
            TagDictionary.from_arrays({**arrays, **change})
    with pytest.raises(ModelError, match="'words'"):
        TagDictionary.from_arrays({name: array for name, array in arrays.items() if name != "words"})


# Reading -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("w\tNOUN\nw\tVERB\nw\tNOUN", ("NOUN", "VERB")),
        ("w\tNOUN VERB", ("NOUN", "VERB")),
        ("w\tNOUN,VERB", ("NOUN", "VERB")),
        ("w\tNOUN|VERB", ("NOUN", "VERB")),
        ("w\tNOUN; VERB ", ("NOUN", "VERB")),
        ("w\tNOUN\t17\tanything", ("NOUN",)),
        ("w\tProper noun", ("NOUN",)),
        ("w\tVerb form", ("VERB",)),
        ("w\tParticiple", ("VERB",)),
        ("w\tNoun, Proper noun; Verb", ("NOUN", "VERB")),
        ("w\tadj\nw\tintj", ("ADJ", "X")),
        ("w\tConjunction", ("CONJ",)),
        ("w\tPunctuation mark", (".",)),
        ("w\t.", (".",)),
        ("w\tCONJ PROPN", ("NOUN", "CONJ")),
        ("w\tNoun\nw\tSuffix", ("NOUN",)),
        ("word\ttag\nw\tNOUN", ("NOUN",)),
        ("# a remark\n\nw\tNOUN\n\n", ("NOUN",)),
        ("\ufeffw\tNOUN\r\nw\tVERB\r\n", ("NOUN", "VERB")),
    ],
)
def test_tables_of_words_and_tags(line: str, tags: tuple[str, ...]) -> None:
    found = parse_dictionary(line.encode())
    assert dict(found) == {"w": tags} and found.tags == UNIVERSAL12


def test_tags_of_ud_stay_and_headings_may_become_such() -> None:
    assert parse_dictionary(b"w\tPROPN\nx\tNOUN\n")["w"] == ("PROPN",)
    assert parse_dictionary(b"w\tPROPN\nx\tNOUN\n", tagset="universal12")["w"] == ("NOUN",)
    assert parse_dictionary(b"x\tNOUN\n", tagset="ud17")["x"] == ("NOUN",)
    assert parse_dictionary(b"x\tNOUN\ny\tPRT\n", tagset="ud17")["x"] == ("NOUN", "PROPN")
    fine = parse_dictionary(b"w\tProper noun\nx\tVerb\ny\tAUX\nz\tConjunction\n", tagset="ud17")
    assert dict(fine) == {"w": ("PROPN",), "x": ("AUX", "VERB"), "y": ("AUX",), "z": ("CCONJ", "SCONJ")}


def test_all_labels_dropped_is_no_entry() -> None:
    found = parse_dictionary(b"nessa\tContraction\na\tNoun\nbi-\tPrefix\n")
    assert list(found) == ["a"] and found.allowed(["nessa"], rules=False).all()


def test_entries_of_several_words_are_kept_and_never_met() -> None:
    found = parse_dictionary(b"of course\tADV\nof\tADP\n")
    assert found["of course"] == ("ADV",) and found.known(["of", "course"]).tolist() == [True, False]


def test_other_columns_and_other_tags() -> None:
    assert parse_dictionary(b"German\tHaus\tNoun\t# house\n", columns=(1, 2))["Haus"] == ("NOUN",)
    assert dict(parse_dictionary(b"der\tART PRELS\n,\t$,\n", tagset="any")) == {",": ("$,",), "der": ("ART", "PRELS")}


def test_tables_of_unimorph() -> None:
    data = (
        "sehen\tsah\tV;IND;PST;3;SG\nsehen\tgesehen\tV.PTCP;PST\nHaus\tHäuser\tN;NOM;PL\nsehen\tsehend\tV;V.PTCP;PRS\n"
        "ich\tmir\tPRO;DAT;SG\nregnen\t—\tV;IMP\nsein\tist da\tV;IND\n"
    ).encode()
    found = parse_dictionary(data)
    assert dict(found) == {
        "sah": ("VERB",), "gesehen": ("VERB", "ADJ"), "Häuser": ("NOUN",), "sehend": ("VERB", "ADJ"), "mir": ("PRON",),
        "ist da": ("VERB",),
    }  # fmt: skip
    assert parse_dictionary(data, tagset="ud17")["sah"] == ("AUX", "VERB")
    assert parse_dictionary(b"a\tNOUN\tN\n")["a"] == ("NOUN",)
    assert parse_dictionary(b"ev\tevler\tN(x);PL\nol\tolan\tV.PTCP.ACT;PRS\n")["olan"] == ("VERB", "ADJ")
    with pytest.raises(DataError, match=r"line 1: 2 columns where at least 3 .* Put one tab between lemma, form and"):
        parse_dictionary(b"a\tb\n", format="unimorph")
    with pytest.raises(DataError, match=r"1 of 1 lines .* 'PST;3' \(line 1\)"):
        parse_dictionary(b"a\tb\tPST;3\n", format="unimorph")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\tNOUN\nhouse NOUN\n", "words.tsv, line 2: no tab in 'house NOUN'. Put one tab between word and tag"),
        (b"a\tNOUN\n\tNOUN\n", "words.tsv, line 2: there is no word in"),
        (b"a\tNOUN\nb\t \n", "words.tsv, line 2: there is no tag in"),
        (b"", "words.tsv: there are no words and tags in it"),
        (b"# nothing\n", "words.tsv: there are no words and tags in it"),
        (b"word\ttag\n", "words.tsv: there are no words and tags in it"),
        (b"a\tNOUN\nb\tNUON\nc\tBrivla\nd\tNUON\n", "words.tsv: 3 of 4 lines have tags that are not known: 'NUON' (2 "
         "lines, the first is 2), 'Brivla' (line 3)"),
        (b"a\tNOUN\nb\t\xe9\n", "words.tsv, line 2: byte e9"),
        (b"\xff\xfea\0\t\0", "words.tsv, line 1: the byte order mark says UTF-16"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_named(data: bytes, message: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.tsv").write_bytes(data)
    with pytest.raises(DataError) as caught:
        read_dictionary("words.tsv")
    assert str(caught.value).startswith(message), caught.value


def test_lines_with_unknown_tags_may_be_left_out() -> None:
    with pytest.warns(IsoglossWarning, match="1 of 2 lines .* left out"):
        found = parse_dictionary(b"a\tNOUN\nb\tBrivla\n", unknown="drop")
    assert list(found) == ["a"]


def test_wrong_options_and_files_are_wrong_usage() -> None:
    for option in ("format", "tagset", "unknown"):
        with pytest.raises(ParameterError, match=option):
            parse_dictionary(b"a\tNOUN\n", **{option: "nonsense"})
    with pytest.raises(UsageError, match="no such file"):
        TagDictionary.read("no-such-file.tsv")


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_what_is_written_is_read(suffix: str, tmp_path: Path) -> None:
    made = TagDictionary({"été": ["NOUN", "VERB"], "of course": "ADV", "#": "X", "!": "."})
    path = tmp_path / f"words.tsv{suffix}"
    made.write(path)
    assert dict(TagDictionary.read(path)) == dict(made)
    raw = path.read_bytes()
    plain = {".gz": gzip.decompress, ".xz": lzma.decompress, "": bytes}.get(suffix)
    assert plain is None or plain(raw) == format_dictionary(made)
    latin = tmp_path / "latin.tsv"
    latin.write_bytes("été\tNOUN\n".encode("latin-1"))
    assert "été" in TagDictionary.read(latin, encoding="latin-1")


def test_what_no_table_can_hold_is_not_written() -> None:
    with pytest.raises(DataError, match="cannot be written"):
        format_dictionary(TagDictionary({"a\tb": "NOUN"}))


@settings(max_examples=200)
@given(st.binary(max_size=60) | st.text("ab\t\n#;| NOUVERB.").map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    try:
        found = parse_dictionary(text.encode())
    except IsoglossError:
        return
    assert all(word and tags for word, tags in found.items())


# Coverage and agreement ----------------------------------------------------------------------------------------------


def test_coverage_by_hand() -> None:
    """100 tokens of "the", 20 of "house", 2 of "old", 1 each of "Old", "7" and "dog"."""
    text = Text.of(["the " * 100 + "house " * 20 + "old old Old 7 dog"])
    found = TagDictionary({"the": "DET", "house": ["NOUN", "VERB"], "old": "ADJ"}).coverage(text)
    assert (found["types"], found["tokens"]) == (6, 125)
    assert found["type_coverage"] == pytest.approx(100 * 4 / 6)
    assert found["token_coverage"] == pytest.approx(100 * 123 / 125)
    assert found["type_coverage_with_rules"] == pytest.approx(100 * 5 / 6)
    assert found["token_coverage_with_rules"] == pytest.approx(100 * 124 / 125)
    bands = found["bands"]
    assert [(bands[name]["types"], bands[name]["tokens"]) for name in ("low", "medium", "high")] == [
        (0, 0), (4, 5), (2, 120),  # 1 of 100 is where the middle begins
    ]  # fmt: skip
    assert bands["medium"]["type_coverage"] == 50.0 and bands["medium"]["token_coverage"] == 60.0
    assert bands["high"]["type_coverage"] == 100.0 and bands["low"]["type_coverage"] == 0.0
    assert found["tags_per_type"] == pytest.approx(5 / 4)
    assert found["tags_per_token"] == pytest.approx((100 + 2 * 20 + 3) / 123)
    assert found["ambiguous_types"] == 25.0 and found["ambiguous_tokens"] == pytest.approx(100 * 20 / 123)
    assert found["missing"] == [("dog", 1)]


def test_coverage_of_part_of_a_text_is_of_that_part() -> None:
    text = Text.of(["a b", "c c", "a"])
    found = TagDictionary({"c": "NOUN"}).coverage(text[1:2])
    assert (found["types"], found["tokens"], found["token_coverage"]) == (1, 2, 100.0)


def test_agreement_by_hand() -> None:
    theirs = {"a": "NOUN", "b": "NOUN", "c": ["NOUN", "VERB"], "d": ["NOUN", "VERB"], "E": "ADJ", "f": "X", "g": "DET"}
    ours = {"a": "NOUN", "b": ["NOUN", "VERB"], "c": "VERB", "d": ["VERB", "ADJ"], "e": "ADV", "h": "X", "g": "DET"}
    found = TagDictionary(ours).agreement(TagDictionary(theirs))
    sixth = pytest.approx(100 / 6)
    assert found == {
        "types": 6, "identical": pytest.approx(200 / 6), "superset": sixth, "subset": sixth, "overlap": sixth,
        "disjoint": sixth,
    }  # fmt: skip


def test_sets_of_tags_are_brought_together() -> None:
    coarse, fine = TagDictionary({"Rom": "NOUN", "ist": "VERB"}), TagDictionary({"Rom": "PROPN", "ist": "AUX"})
    assert coarse.agreement(fine)["identical"] == fine.agreement(coarse)["identical"] == 100.0
    trees = Treebank.of([[("Rom", "PROPN"), ("ist", "AUX")]])
    assert coarse.against(trees)["gold_allowed"] == fine.against(trees)["gold_allowed"] == 100.0
    twelve = Treebank.of([[("Rom", "NOUN"), ("und", "CONJ")]])
    assert fine.against(twelve)["agreement"] == {**dict.fromkeys(KINDS, 0.0), "types": 1, "identical": 100.0}


def test_against_a_treebank_by_hand() -> None:
    trees = Treebank.of(
        [
            [("Es", "PRON"), ("war", "AUX"), ("1990", "NUM"), ("!", "PUNCT"), ("Wort", "NOUN"), ("?", "X")],
            [("Es", "PRON"), ("es", "PRON"), ("war", "VERB"), ("_", "_")],
        ]
    )
    found = TagDictionary({"Es": "NOUN", "es": "PRON", "war": "VERB"}).against(trees, most=5)
    assert found["tokens"] == 9
    assert found["gold_allowed"] == pytest.approx(100 * 6 / 9)  # not Es twice, nor "?" by its rule
    assert found["gold_allowed_covered"] == pytest.approx(100 * 3 / 5)
    assert found["excluded"] == [("Es", "PRON", 2, ("NOUN",))]
    third = pytest.approx(100 / 3)
    assert found["agreement"]["identical"] == pytest.approx(200 / 3) and found["agreement"]["disjoint"] == third
    with pytest.raises(TreebankError, match="line 1, word 'a': tag 'NN'"):
        TagDictionary({"a": "NOUN"}).against(Treebank.of([[("a", "NN")]]))
    assert TagDictionary({"a": "NN"}).against(Treebank.of([[("a", "NN")]]))["gold_allowed_covered"] == 100.0
    with pytest.raises(ParameterError, match="column"):
        TagDictionary({"a": "NN"}).against(trees, "tag")


@given(entries, entries, sentences)
def test_shares_are_shares(table: dict[str, list[str]], other: dict[str, list[str]], text: list[list[str]]) -> None:
    ours, theirs = TagDictionary(table), TagDictionary(other)
    found = ours.coverage(Text.of(text))
    tokens = [word for sentence in text for word in sentence]
    expected = [word in table or word.lower() in table for word in tokens]
    assert found["tokens"] == len(tokens)
    assert found["token_coverage"] == pytest.approx(100 * np.mean(expected) if tokens else 0.0)
    for part in (found, *found["bands"].values()):
        assert all(0 <= part[name] <= 100 for name in ("type_coverage", "token_coverage"))
    for kind in ("types", "tokens"):
        assert sum(band[kind] for band in found["bands"].values()) == found[kind]
    compared = ours.agreement(theirs)
    assert sum(compared[kind] for kind in KINDS) == pytest.approx(100 if compared["types"] else 0)
    assert ours.agreement(ours)["identical"] == (100 if len(ours) else 0)


# Scoring in a set of tags --------------------------------------------------------------------------------------------


def test_tags_are_compared_in_one_set() -> None:
    gold = Treebank.of([[("Rom", "PROPN"), ("und", "CCONJ"), ("ist", "AUX"), (".", "PUNCT")]])
    coarse = gold.with_columns(upos=["NOUN", "CONJ", "NOUN", "."])
    assert score_trees(coarse, gold, bootstrap=0).upos == 0.0
    score = score_trees(coarse, gold, bootstrap=0, tagset="universal12")
    assert score.upos == 75 and "|tagset:universal12|" in score.signature and score.measures == ("upos",)
    fine = gold.with_columns(upos=["NOUN", "CCONJ", "AUX", "."])
    assert score_trees(fine, gold, bootstrap=0, tagset="ud17").upos == 75
    with pytest.raises(TreebankError, match="<memory>, line 2, word 'und': tag 'CONJ' may be CCONJ or SCONJ"):
        score_trees(coarse, gold, bootstrap=0, tagset="ud17")


def test_retagging_looks_only_at_what_is_there() -> None:
    trees = Treebank.of([[("a", "NN")], [("b", "NOUN")]])
    assert retagged(trees.part(1, 2), "ud17").strings("upos", 0) == ("NOUN",)
    with pytest.raises(TreebankError, match="'NN'"):
        retagged(trees, "ud17")
    with pytest.raises(ParameterError, match="universal12, ud17"):
        retagged(trees, "penn")


# Command line --------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "words.tsv").write_text("the\tDeterminer\nhouse\tNoun\nhouse\tVerb\nold\tNoun\nof course\tAdverb\n")
    (tmp_path / "text.txt").write_text("The old house .\nThe dog\n")
    rows = [[("The", "DET"), ("old", "ADJ"), ("house", "NOUN"), (".", "PUNCT")], [("The", "DET"), ("dog", "NOUN")]]
    trees = Treebank.of(rows)
    trees.write(tmp_path / "gold.conllu")
    trees.with_columns(upos=["DET", "NOUN", "NOUN", ".", "DET", "NOUN"]).write(tmp_path / "found.conllu")
    return tmp_path


def test_statistics_of_plain_text(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["dictionary", "stats", str(files / "words.tsv"), str(files / "text.txt"), "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"dictionary", "coverage"}
    assert found["dictionary"]["words"] == 4 and found["dictionary"]["several_words"] == 1
    expected = TagDictionary.read(files / "words.tsv").coverage(Text.of(["The old house .", "The dog"]))
    assert found["coverage"] == json.loads(json.dumps(expected))


def test_statistics_of_tagged_text(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(files / "words.tsv"), str(files / "gold.conllu")]
    assert cli.main(["dictionary", "stats", *names, "--json", "-q"]) == 0
    gold = json.loads(capsys.readouterr().out)["gold"]
    assert gold["excluded"] == [["old", "ADJ", 1, ["NOUN"]]] and gold["gold_allowed"] == pytest.approx(500 / 6)
    assert cli.main(["dictionary", "stats", *names, "-o", str(files / "out.txt"), "-q"]) == 0
    shown = (files / "out.txt").read_text()
    for line in ("dictionary: 4 words, 5 pairs, universal12; 1 of several words", "text: 5 types, 6 tokens"):
        assert line in shown.splitlines()
    assert [line.split() for line in shown.splitlines() if line.startswith(("old", "dog", "superset"))] == [
        ["superset", "33.33"], ["old", "ADJ", "NOUN", "1"], ["dog", "1"],
    ]  # fmt: skip


def test_the_page_shows_what_the_command_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[1] / "docs" / "dictionaries.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(page, {}, "page", None, None))  # makes the files
    capsys.readouterr()
    assert cli.main(["dictionary", "stats", "words.tsv", "gold.conllu", "-q"]) == 0
    assert f"```\n{capsys.readouterr().out}```" in page


def test_tags_of_a_language_are_not_compared(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Treebank.of([[("the", "DT"), ("house", "NN")]]).write(files / "penn.conllu")
    assert cli.main(["dictionary", "stats", str(files / "words.tsv"), str(files / "penn.conllu"), "--json"]) == 0
    answer = capsys.readouterr()
    assert "gold" not in json.loads(answer.out) and "'DT' is in neither" in answer.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["words.tsv", "nowhere.txt"], 2, "nowhere.txt: no such file"),
        (["text.txt", "text.txt"], 1, "text.txt, line 1: no tab"),
        (["-", "-"], 2, "standard input"),
        (["words.tsv", "text.txt", "--tagset", "penn"], 2, "penn"),
    ],
)
def test_wrong_calls_are_explained(
    arguments: list[str], status: int, message: str, files: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    assert cli.main(["dictionary", "stats", *arguments]) == status
    assert message in capsys.readouterr().err


def test_the_command_scores_in_a_set(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(files / "found.conllu"), str(files / "gold.conllu")]
    assert cli.main(["tag", "score", *names, "--tagset", "universal12", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["upos"] == pytest.approx(500 / 6)
    assert cli.main(["tag", "score", *names, "--tagset", "ud17"]) == 0
    assert "upos in ud17" in capsys.readouterr().out
    Treebank.read(names[0]).with_columns(upos=["CONJ"] * 6).write(names[0])
    assert cli.main(["tag", "score", *names, "--tagset", "ud17"]) == 1
    assert "found.conllu, line 1, word 'The': tag 'CONJ'" in capsys.readouterr().err


# Real dictionaries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", COUNTS)
def test_real_dictionaries(language: str) -> None:
    path = DATA / "tagdict" / f"{language}.tsv.gz"
    if not path.exists():
        pytest.skip("no dictionaries behind ISOGLOSS_DATA")
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]
    found = TagDictionary.read(path)
    assert len(lines) == COUNTS[language]
    pairs = {(unicodedata.normalize("NFC", word.strip()), tag) for word, tag in (line.split("\t") for line in lines)}
    assert found.n_pairs == len(pairs) and len(found) == len({word for word, _ in pairs})
    assert found.tags == UNIVERSAL12
    assert set(found.items()) >= {(word, (tag,)) for word, tag in list(pairs)[:50] if len(found[word]) == 1}
    assert all(tag in found[word] for word, tag in pairs)
