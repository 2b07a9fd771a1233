"""Links in files: round trips, other people's conventions, and input that does not fit its text."""

from __future__ import annotations

import gzip
import os
import random
import re
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data import Alignment, Bitext, Links
from isogloss.data.formats import IsoglossWarning, format_links, parse_links, read_bitext, read_links, write_links
from isogloss.errors import LinksError, ParameterError, UsageError

DATA = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "alignment"

index = st.one_of(st.integers(0, 12), st.integers(0, 999_999))
chance = st.one_of(st.floats(0, 1, width=32), st.sampled_from(np.float32([0, 1, 0.5, 0.03125, 0.99995, 1e-7]).tolist()))
rows = st.lists(st.dictionaries(st.tuples(index, index), st.tuples(st.booleans(), chance), max_size=6), max_size=6)


def links_of(rows) -> Links:
    return Links.of(
        Alignment(
            frozenset(link for link, (possible, _) in row.items() if not possible),
            frozenset(link for link, (possible, _) in row.items() if possible),
            probability={link: p for link, (_, p) in row.items()},
        )
        for row in rows
    )


def text_of(*lengths: tuple[int, int]) -> Bitext:
    return Bitext.of((["s"] * n_source, ["t"] * n_target) for n_source, n_target in lengths)


def by_hand(row, scores: bool) -> str:
    """The line, made by Python's own formatting."""
    marks = {False: "-", True: "p"}
    return " ".join(f"{i}{marks[unsure]}{j}" + f":{p:.4f}" * scores for (i, j), (unsure, p) in sorted(row.items()))


@settings(deadline=None)
@given(rows, st.booleans())
def test_pharaoh_is_written_and_read(rows, scores):
    links = links_of(rows)
    if links.probability is None:
        scores = False
    data = format_links(links, scores=scores)
    assert data.decode().split("\n")[:-1] == [by_hand(row, scores) for row in rows]
    again = parse_links(data, format="pharaoh", index_base=0)
    assert list(again) == list(links)
    if scores and len(links.source):
        assert np.abs(again.probability - links.probability).max() <= 0.5001e-4
        assert format_links(again, scores=True) == data


@settings(deadline=None)
@given(rows, st.booleans(), st.randoms(use_true_random=False))
def test_naacl_is_written_and_read(rows, scores, shuffle):
    links = links_of(rows)
    if links.probability is None:
        scores = False
    data = format_links(links, format="naacl", scores=scores)
    marks = {False: "S", True: "P"}
    assert data.decode().splitlines() == [
        f"{n} {i + 1} {j + 1} {marks[unsure]}" + f" {p:.4f}" * scores
        for n, row in enumerate(rows, 1)
        for (i, j), (unsure, p) in sorted(row.items())
    ]
    lines = data.splitlines(keepends=True)
    shuffle.shuffle(lines)
    again = parse_links(b"".join(lines), format="naacl", n_pairs=len(rows))
    assert list(again) == list(links)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=5), st.data())
def test_giza_is_written_and_read(lengths, data):
    bitext = text_of(*lengths)
    rows = [
        data.draw(st.sets(st.tuples(st.integers(0, m - 1), st.integers(0, n - 1)))) if m and n else set()
        for m, n in lengths
    ]
    written = format_links(rows, format="giza", bitext=bitext)
    again = parse_links(written, format="giza", bitext=bitext)
    assert [set(row.links) for row in again] == rows
    assert [a.T for a in parse_links(written, format="giza", direction="backward", n_pairs=len(rows))] == list(
        Links.of(rows)
    )


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_files(tmp_path, suffix):
    links = [[(0, 0), (1, 2)], [], [(2, 1)]]
    write_links(links, tmp_path / f"links{suffix}")
    assert [sorted(row.links) for row in read_links(tmp_path / f"links{suffix}")] == links
    with pytest.raises(UsageError, match="no such file"):
        read_links(tmp_path / "none")


def test_scores_are_printed_as_printf_prints_them():
    values = np.random.default_rng(0).random(5000, np.float32)
    values[:6] = [0.03125, 0.09375, 0.00005, 1.0, 0.0, 0.99999]
    links = Links(np.array([0, 5000]), np.zeros(5000, np.int32), np.arange(5000, dtype=np.int32), values)
    expected = " ".join(f"0-{j}:{p:.4f}" for j, p in enumerate(values.tolist()))
    assert format_links(links, scores=True).decode() == expected + "\n"
    odd = Links.of(
        [Alignment(frozenset({(0, 0), (0, 1), (0, 2), (0, 3)}), probability={(0, 0): -12.5, (0, 1): 9.99999})]
    )
    odd.probability[3] = np.inf
    assert format_links(odd, scores=True) == b"0-0:-12.5000 0-1:10.0000 0-2 0-3\n"


@pytest.mark.parametrize(
    "text", ["0.5", "1", ".25", "3.", "1e-3", "1.5E+2", "-0.75", "+0.5", "0." + "3" * 30, "1e-30", "7" * 25]
)
def test_scores_are_read_as_python_reads_them(text):
    found = parse_links(f"0-0:{text}\n".encode()).probability
    assert found is not None and found[0] == np.float32(float(text))


def test_mixtures_order_and_repetition():
    links = parse_links(b"  2-1 1p1:0.25\t0-0\r\n1p1 1-1:0.5 1p1 1-1\n\n3p4")
    assert links.offsets.tolist() == [0, 3, 4, 4, 5]
    assert list(zip(links.source.tolist(), links.target.tolist(), strict=True)) == [
        (0, 0),
        (1, 1),
        (2, 1),
        (1, 1),
        (3, 4),
    ]
    assert links.possible.tolist() == [False, True, False, False, True]  # sure beats possible
    assert np.isnan(links.probability[[0, 2, 4]]).all() and links.probability[[1, 3]].tolist() == [0.25, 0.5]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.booleans()), max_size=30))
def test_order_and_repetition_by_brute_force(tokens):
    line = " ".join(f"{i}{'p' if unsure else '-'}{j}" for i, j, unsure in tokens)
    row = parse_links(line.encode() + b"\n", format="pharaoh", index_base=0)
    sure = {(i, j) for i, j, unsure in tokens if not unsure}
    assert row[0].links == sure and row[0].possible == {(i, j) for i, j, _ in tokens} - sure
    pairs = list(zip(row.source.tolist(), row.target.tolist(), strict=True))
    assert pairs == sorted(set(pairs))


def test_without_scores_and_possibles_there_are_none():
    links = parse_links(b"0-0\n")
    assert links.probability is None and links.possible is None
    assert len(parse_links(b"")) == 0 and len(parse_links(b"\n\n")) == 2


# Bad tokens


@pytest.mark.parametrize(
    ("token", "finding"),
    [
        ("3_4", "is not a link"),
        ("3", "is not a link"),
        ("3-", "is not a link"),
        ("-4", "negative"),
        ("a-b", "is not a link"),
        ("3-4-5", "is not a link"),
        ("3-4x", "is not a link"),
        ("3x4", "is not a link"),
        ("-1-2", "negative"),
        ("1--2", "negative"),
        ("1-99999999999", "too large"),
        ("1-2:", "no number for a score"),
        ("1-2:x", "no number for a score"),
        ("1-2:0.5x", "no number for a score"),
        ("1-2:1e", "no number for a score"),
        ("３-４", "is not a link"),
    ],
)
def test_a_bad_token_is_named_with_its_line(token, finding):
    with pytest.raises(LinksError) as caught:
        parse_links(f"0-0 1-1\n\n2-2 {token} 3-3\n".encode(), "gold.txt")
    message = str(caught.value)
    assert message.startswith(f"gold.txt, line 3: '{token}' ") and finding in message.split("Links are")[0]
    assert "0-0 1-2" in message


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("1 2", "the line ends too soon"),
        ("1 x 2", "'x' is not a word number"),
        ("1 -2 2", "'-2' has a negative index"),
        ("0 1 1", "'0' is sentence 0"),
        ("1 2 3 X", "'X' is neither S nor P"),
        ("1 2 3 S y", "'y'"),
        ("1 2 3 S 0.5 6", "'6'"),
        ("1 2 3x S", "'3x' is not a word number"),
    ],
)
def test_a_bad_naacl_line_is_named(line, finding):
    with pytest.raises(LinksError, match=re.escape(f"gold.txt, line 2: {finding}")):
        parse_links(f"1 1 1 S\n{line}\n1 2 2\n".encode(), "gold.txt")


def test_damage_is_an_error_of_links(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"0-0\n" * 100)[:-5])
    with pytest.raises(LinksError, match=r"a\.gz: the gzip data end too soon"):
        read_links(tmp_path / "a.gz")
    (tmp_path / "b").write_bytes(b"0-0\n\xff\n")
    with pytest.raises(LinksError, match="b, line 2: byte ff"):
        read_links(tmp_path / "b")


def test_options_that_make_no_sense():
    for wrong in ({"format": "moses"}, {"index_base": 2}, {"direction": "up"}):
        with pytest.raises(ParameterError):
            parse_links(b"0-0\n", **wrong)
    with pytest.raises(ParameterError, match="format"):
        format_links([[(0, 0)]], format="moses")
    with pytest.raises(ParameterError, match="no probabilities"):
        format_links([[(0, 0)]], scores=True)
    with pytest.raises(ParameterError, match="bitext"):
        format_links([[(0, 0)]], format="giza")


# Links and their text


def test_lines_must_be_as_many_as_pairs():
    with pytest.raises(LinksError, match="gold has 1 lines but <memory> has 2 pairs"):
        parse_links(b"0-0\n", "gold", bitext=text_of((1, 1), (1, 1)))
    with pytest.raises(LinksError, match="gold has 1 lines but there are 2 pairs"):
        parse_links(b"0-0\n", "gold", n_pairs=2)


@pytest.mark.parametrize(
    ("row", "finding"),
    [
        ("0-0 3-1", "link 3-1 speaks of source word 3, but the sentence has 3 words, 0 to 2 (links like this: 1)"),
        ("0-0 1-5 2-9", "link 1-5 speaks of target word 5, but the sentence has 2 words, 0 to 1 (links like this: 2)"),
    ],
)
def test_indices_out_of_range_are_named(row, finding):
    with pytest.raises(LinksError, match=re.escape(f"gold, line 2: {finding}")):
        parse_links(f"0-0\n{row}\n".encode(), "gold", bitext=text_of((1, 1), (3, 2)))


def test_links_of_empty_sentences_are_out_of_range():
    with pytest.raises(LinksError, match="source word 0, but the sentence has no words"):
        parse_links(b"0-0\n", bitext=text_of((0, 1)))
    with pytest.raises(LinksError, match=r"target word 1, but the sentence has 1 word \("):
        parse_links(b"0-1\n", bitext=text_of((1, 1)))


def test_gold_that_counts_from_one_is_shifted_with_a_warning():
    bitext = text_of((2, 3), (2, 2))
    with pytest.warns(IsoglossWarning, match="gold: no index is 0, and line 1 has one as large"):
        links = parse_links(b"1-1 2p3\n2-1\n", "gold", bitext=bitext)
    assert format_links(links) == b"0-0 1p2\n1-0\n" and links[0].source == ("s", "s")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert format_links(parse_links(b"1-1 2p3\n2-1\n", bitext=bitext, index_base=1)) == b"0-0 1p2\n1-0\n"
        unshifted = parse_links(b"1-1\n1-1\n", bitext=bitext)  # nothing is as large as its sentence
        assert format_links(unshifted) == b"1-1\n1-1\n"
    with pytest.raises(LinksError, match="source word 2"):
        parse_links(b"1-1 2p3\n2-1\n", bitext=bitext, index_base=0)
    with pytest.raises(LinksError, match="target word 3"):
        parse_links(b"0-0 1-3\n\n", bitext=bitext)  # there is a 0
    with pytest.raises(LinksError, match="source word 9"):
        parse_links(b"9-1 2-3\n\n", bitext=bitext)  # a shift would not mend it
    with pytest.raises(LinksError, match="line 2: link 0-1 has an index 0"):
        parse_links(b"1-1\n0-1\n", index_base=1)


def test_without_the_text_there_is_only_a_warning():
    data = b" ".join(b"%d-%d" % (k, k) for k in range(1, 21)) + b"\n"
    with pytest.warns(IsoglossWarning, match="no index is 0"):
        assert format_links(parse_links(data)) == data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse_links(data.replace(b" 20-20", b""))  # 19 links prove nothing
        parse_links(data.replace(b"20-20", b"20-0"))


# Other conventions


def test_naacl_leaves_out_sentences_and_null_links():
    data = b"0003 1 2 P 0.5\n1 2 1\n3 0 4 S\n3 5 0\n1 1 1 S\n"
    links = parse_links(data, n_pairs=4)
    assert [sorted(row.links) for row in links] == [[(0, 0), (1, 0)], [], [], []]
    assert links[2].possible == {(0, 1)} and links.probability.tolist()[2] == 0.5
    assert len(parse_links(data)) == 3
    assert sorted(parse_links(data, index_base=0)[2].links) == [(0, 4), (5, 0)]
    assert len(parse_links(b"2 0 0\n", format="naacl")) == 2
    with pytest.raises(LinksError, match="speaks of sentence 3, but there are 2 pairs"):
        parse_links(data, n_pairs=2)
    with pytest.raises(LinksError, match="sentence 1: link 1-0 speaks of source word 1"):
        parse_links(data, bitext=text_of((1, 1), (1, 1), (9, 9)))
    with pytest.raises(LinksError, match="sentence 900000000"):
        parse_links(b"900000000 1 1\n")


A3 = b"""# Sentence pair (1) source length 4 target length 5 alignment score : 1.2e-05
je ne sais ({ pas .
NULL ({ 2 }) I ({ 1 }) do ({ }) n't ({ 3 5 }) ({ ({ 4 })
# Sentence pair (3) source length 1 target length 0 alignment score : 1

NULL ({ }) word ({ })
"""


def test_giza_records():
    links = parse_links(A3)
    assert [sorted(row.links) for row in links] == [[(0, 0), (2, 2), (2, 4), (3, 3)], [], []]
    assert sorted(parse_links(A3, direction="backward")[0].links) == [(0, 0), (2, 2), (3, 3), (4, 2)]
    parse_links(A3, bitext=text_of((4, 5), (1, 1), (1, 0)))
    with pytest.raises(LinksError, match="sentence 1: link 2-4 speaks of target word 4"):
        parse_links(A3, bitext=text_of((4, 4), (1, 1), (1, 0)))


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        (b"# Sentence pair (3)", b"Sentence pair (3)", "line 4: 'Sentence' does not start a record"),
        (b"# Sentence pair (3)", b"# Sentence pair", "line 4: '#' does not start a record"),
        (b"do ({ })", b"do { })", "line 3: '{' stands where '({' should be"),
        (b"word ({ })", b"word ({ 1", "line 6: the line ends too soon"),
        (b"({ 3 5 })", b"({ 3 x })", "line 3: 'x' is not a word number"),
        (b"({ 3 5 })", b"({ 3 0 })", "line 3: '0' is not a word number"),
    ],
)
def test_broken_giza_records_are_named(old, new, finding):
    with pytest.raises(LinksError, match=re.escape(finding)):
        parse_links(A3.replace(old, new), format="giza")


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"\n\n0-0\n", 3), (b"1 1 1\n", 1), (b"1 1 1 S 0.5\r\n", 1), (A3, 3), (b"\n", 1)],
)
def test_the_format_is_found(data, expected):
    assert len(parse_links(data)) == expected


@pytest.mark.parametrize("line", [b"{} 1 1 S\n", b"# Sentence pair ({}) source length 1\nx\nNULL ({ }) y ({ 1 })\n"])
def test_a_sentence_number_does_not_fill_the_memory(line):
    """Fifteen bytes would otherwise become gigabytes of empty rows."""
    assert len(parse_links(line.replace(b"{}", b"2000000"))) == 2_000_000
    with pytest.raises(LinksError, match="speaks of sentence 90000000, but the number of its links is 1"):
        parse_links(line.replace(b"{}", b"90000000"))


def test_naacl_parts_are_numbered_on():
    assert format_links([[(0, 0)], [(1, 1)]], format="naacl", first=11) == b"11 1 1 S\n12 2 2 S\n"


def test_a_part_is_written_as_a_part():
    links = parse_links(b"0-0\n1-1 2-2\n3-3\n")
    assert format_links(links[1:3]) == b"1-1 2-2\n3-3\n"


def test_millions_of_links_a_second():
    """Far below what is measured (10 and more), so that a slow machine passes and a Python loop does not."""
    rng = np.random.default_rng(1)
    n_rows, width = 20_000, 25
    source, target = rng.integers(0, 60, (2, n_rows * width)).astype(np.int32)
    links = Links(np.arange(n_rows + 1, dtype=np.int64) * width, source, target)
    parse_links(format_links(links[:1]), index_base=0)  # kernels are loaded now
    start = time.process_time()
    data = format_links(links)
    middle = time.process_time()
    parse_links(data)
    end = time.process_time()
    assert source.size / (middle - start) > 2e6 and source.size / (end - middle) > 1e6


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason="no corpora here")
def test_gold_in_the_wild():
    folders = [folder for folder in sorted(DATA.iterdir()) if (folder / "test.gold.txt").exists()]
    for folder in random.Random(3).sample(folders, min(6, len(folders))):
        bitext = read_bitext(folder / "test.src.txt", folder / "test.tgt.txt")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gold = read_links(folder / "test.gold.txt", bitext=bitext)
        words = (folder / "test.gold.txt").read_text().split()
        assert len(gold) == len(bitext) and len(gold.source) == len(words)
        assert (0 if gold.possible is None else gold.possible.sum()) == sum("p" in word for word in words)
