"""Treebanks: what is read is what is written, and what is wrong is named."""

from __future__ import annotations

import gzip
import itertools
import os
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import samples
from isogloss.data import Column, Text, Treebank, Vocabulary, bundle_of, features_of
from isogloss.data.tokenise import tokenise_text
from isogloss.errors import DataError, ParameterError, TreebankError, UsageError

DATA = Path(os.environ.get("ISOGLOSS_DATA", Path(__file__).parents[2] / "shared" / "data")) / "treebanks"
FILES = sorted(DATA.glob("*/*.conllu.gz"))

SMALL = """\
# newdoc
# sent_id = s-1
# text = vámonos al mar
# parallel_id = x/1
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\t_\tMood=Imp|Number=Plur\t0\troot\t0:root\tA=b
2\tnos\tnosotros\tPRON\t_\tCase=Acc\t1\tobj\t_\t_
2.1\t_\t_\t_\t_\t_\t_\t_\t1:dep\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
3\ta\ta\tADP\tE\t_\t5\tcase\t_\t_
4\tel\tel\tDET\tRD\t_\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\tS\t_\t1\tobl:arg\t_\t_

# text = Sí
1\tSí\tsí\tINTJ\t_\t_\t_\t_\t_\t_

"""

# Random files -------------------------------------------------------------------------------------------------------

cells = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\t\n\r"), min_size=1, max_size=6).filter(
    lambda text: text.strip(" ") != ""
)
COMMENTS = ["#", "# sent_id = a 1", "#text=x", "# parallel_id = p/2 ", "# ünï\tcode", "# newpar"]


def sentence_lines(rng: random.Random, pool: list[str]) -> list[str]:
    """The lines of one sentence; its contents are from the pool."""
    n = rng.randint(1, 5)
    lines = rng.choices(COMMENTS, k=rng.randint(0, 3))
    covered = 0
    for word in range(n + 1):
        if word > 0:
            if word > covered and rng.random() < 0.3:
                covered = rng.randint(word, n)
                lines.append("\t".join([f"{word}-{covered}", *rng.choices(pool, k=9)]))
            row = [str(word), *rng.choices(pool, k=9)]
            row[6] = rng.choice(["_", *map(str, range(n + 1))])
            lines.append("\t".join(row))
        for k in range(rng.choice([0, 0, 0, 2])):
            lines.append("\t".join([f"{word}.{k + 1}", *rng.choices(pool, k=9)]))
    return lines


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, list[list[str]]]:
    """A file and the rows of its words, sentence by sentence."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    pool = ["_", "a", *draw(st.lists(cells, max_size=4))]
    rng = random.Random(draw(st.integers(0, 2**30)))
    blocks = [sentence_lines(rng, pool) for _ in range(draw(st.integers(0, 4)))]
    text = end * draw(st.integers(0, 2))
    for block in blocks:
        text += end.join(block) + end * draw(st.sampled_from([2, 2, 3]))
    text += draw(st.sampled_from(["", "# the end", "# the end" + end]))
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    mark = b"\xef\xbb\xbf" if draw(st.booleans()) else b""
    words = [
        [line for line in block if line.split("\t")[0].isascii() and line.split("\t")[0].isdigit()] for block in blocks
    ]
    return mark + text.encode(), words


@given(files())
@settings(max_examples=200, deadline=None)
def test_a_round_trip_changes_nothing(file: tuple[bytes, list[list[str]]]) -> None:
    data, words = file
    trees = Treebank.from_bytes(data)
    assert trees.to_bytes() == data
    assert trees.lengths.tolist() == [len(rows) for rows in words]
    for sentence, rows in enumerate(words):
        cut = [row.split("\t") for row in rows]
        for place, column in (
            (1, "form"),
            (2, "lemma"),
            (3, "upos"),
            (4, "xpos"),
            (5, "feats"),
            (7, "deprel"),
            (9, "misc"),
        ):
            assert trees.strings(column, sentence) == tuple(row[place] for row in cut)
        heads = trees.heads[trees.offsets[sentence] : trees.offsets[sentence + 1]]
        assert ["_" if head < 0 else str(head) for head in heads] == [row[6] for row in cut]
    same = trees.with_columns(heads=trees.heads, **trees.columns)  # written anew, with equal contents
    assert same.to_bytes() == data
    for word, row in enumerate(itertools.chain.from_iterable(words)):
        assert (
            data.removeprefix(b"\xef\xbb\xbf").split(b"\n")[trees.line_of(word) - 1].decode().removesuffix("\r") == row
        )


@given(files(), st.data())
@settings(max_examples=60, deadline=None)
def test_changes_touch_their_column_alone(file: tuple[bytes, list[list[str]]], data: st.DataObject) -> None:
    before, _ = file
    trees = Treebank.from_bytes(before)
    column = data.draw(st.sampled_from(["form", "lemma", "upos", "xpos", "feats", "deprel", "misc"]))
    rng = random.Random(data.draw(st.integers(0, 2**30)))
    fresh = rng.choices(["_", "é", *data.draw(st.lists(cells, max_size=4))], k=trees.n_words)
    heads = [rng.randint(-1, int(n)) for n in np.repeat(trees.lengths, trees.lengths)]
    after = trees.with_columns(heads=np.array(heads, np.int64), **{column: fresh}).to_bytes()
    place = {"form": 1, "lemma": 2, "upos": 3, "xpos": 4, "feats": 5, "deprel": 7, "misc": 9}[column]
    mark = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
    expected = before.removeprefix(mark).split(b"\n")
    for word in range(trees.n_words):
        line = expected[trees.line_of(word) - 1]
        end = b"\r" if line.endswith(b"\r") else b""
        row = line.removesuffix(end).decode().split("\t")
        row[place], row[6] = fresh[word], "_" if heads[word] < 0 else str(heads[word])
        expected[trees.line_of(word) - 1] = "\t".join(row).encode() + end
    assert after == mark + b"\n".join(expected)


@given(files(), st.data())
@settings(max_examples=60, deadline=None)
def test_parts_and_choices(file: tuple[bytes, list[list[str]]], data: st.DataObject) -> None:
    trees = Treebank.from_bytes(file[0])
    cut = data.draw(st.integers(0, len(trees)))
    mark = trees.source.mark
    if len(trees):
        assert trees.part(0, cut).to_bytes() + trees.part(cut, len(trees)).to_bytes().removeprefix(mark) == file[0]
    numbers = data.draw(st.lists(st.integers(0, len(trees) - 1), max_size=5)) if len(trees) else []
    taken = trees.take(np.array(numbers, np.int64))
    again = Treebank.from_bytes(taken.to_bytes())
    assert [again.words(k) for k in range(len(again))] == [trees.words(number) for number in numbers]
    assert again.heads.tolist() == taken.heads.tolist()
    assert [taken.sent_ids[k] for k in range(len(numbers))] == [trees.sent_ids[number] for number in numbers]
    assert again.sent_ids == taken.sent_ids or not numbers


# By hand ------------------------------------------------------------------------------------------------------------


def test_what_is_read() -> None:
    trees = Treebank.from_bytes(SMALL.encode(), "small.conllu")
    assert len(trees) == 2
    assert trees.words(0) == ("vamos", "nos", "a", "el", "mar")
    assert trees.heads.tolist() == [0, 1, 5, 5, 1, -1]
    assert trees.strings("feats", 0)[:3] == ("Mood=Imp|Number=Plur", "Case=Acc", "_")
    assert trees.strings("deps", 0)[0] == "0:root" and trees.strings("misc", 0)[0] == "A=b"
    assert trees.sent_ids == ("s-1", "") and trees.parallel_ids == ("x/1", "")
    assert trees.comments("text") == ("vámonos al mar", "Sí")
    assert trees.label_of(0) == "sentence s-1" and trees.label_of(1) == "sentence 2"
    assert trees.line_of(0) == 6 and trees.line_of(5) == 15 and trees.place_of(5) == (1, 0)
    assert trees.part(1, 2).line_of(0) == 15 and trees.part(1, 2).words(0) == ("Sí",)
    assert trees.text().tokens(1) == ("Sí",) and len(trees.text()) == 2
    assert trees.part(1, 2).text().tokens(0) == ("Sí",)


def test_a_part_shares_its_vocabulary() -> None:
    trees = Treebank.from_bytes(SMALL.encode())
    assert trees.part(1, 2).columns["upos"].vocabulary is trees.columns["upos"].vocabulary
    assert trees.take(np.array([False, True])).words(0) == ("Sí",)


def test_words_alone_become_a_treebank() -> None:
    trees = Treebank.from_text(Text.of(["a b", "", "c"]))
    assert [trees.words(k) for k in range(3)] == [("a", "b"), (), ("c",)]
    assert trees.heads.tolist() == [-1, -1, -1]
    tagged = trees.with_columns(upos=["X", "Y", "Z"]).to_bytes().decode()
    first, second = "# sent_id = 1\n# text = a b\n1\ta\t_\tX", "# sent_id = 3\n# text = c\n1\tc\t_\tZ"
    assert tagged == first + "\t_" * 6 + "\n2\tb\t_\tY" + "\t_" * 6 + "\n\n" + second + "\t_" * 6 + "\n\n"
    assert trees.part(1, 3).words(1) == ("c",) and trees.part(1, 2).to_bytes() == b""
    assert trees.take([2, 1, 0]).words(2) == ("a", "b")


@pytest.mark.parametrize(
    "text",
    [
        Text.of(["b a b", "c # _ 1-2", "a"]), tokenise_text(["Hello, world!  Wie geht's?", "a\u00a0b c", "3.5 %"]),
        tokenise_text(["ab", "日本", "c d"], mode="characters"),
    ],
)  # fmt: skip
def test_words_are_those_of_the_file_that_is_written(text: Text) -> None:
    made = Treebank.from_text(text)
    made = made.with_predictions(upos=[f"X{k % 3}" for k in range(made.n_words)], heads=[0] * made.n_words)
    for some in (made, made[1:], made.take([2, 0, 2])):
        read = Treebank.from_bytes(some.to_bytes())
        assert read.offsets.tolist() == some.offsets.tolist() and read.heads.tolist() == some.heads.tolist()
        assert read.sent_ids == some.sent_ids and read.comments("text") == some.comments("text")
        assert read.predicted == some.predicted == {"upos", "head"}
        for name in some.columns:
            assert [read.strings(name, k) for k in range(len(read))] == [
                some.strings(name, k) for k in range(len(some))
            ]


def test_words_of_a_text_know_their_line() -> None:
    trees = Treebank.from_text(Text.of(["a b", "", "c"], "text.txt"))
    assert [trees.line_of(word) for word in range(3)] == [1, 1, 3] and trees.part(2, 3).line_of(0) == 3
    assert trees.sent_ids == ("1", "", "3") and trees.label_of(1) == "sentence 2"
    assert Treebank.from_text(Text.of([])).to_bytes() == b"" == Treebank.from_text(Text.of(["", ""])).to_bytes()
    for word in ("a\tb", "", "a\nb"):
        with pytest.raises(TreebankError, match="is empty or has a tab or a line end in it"):
            Treebank.from_text(Text.of([["x", word]]))


def test_misc_keeps_what_is_there() -> None:
    trees = Treebank.from_bytes(SMALL.encode()).with_misc("Confidence", [f"0.{k}" for k in range(6)])
    assert trees.strings("misc", 0)[:2] == ("A=b|Confidence=0.0", "Confidence=0.1")
    assert trees.with_misc("Confidence", ["1"] * 6).strings("misc", 0)[:2] == ("A=b|Confidence=1", "Confidence=1")
    assert "SpaceAfter=No" in trees.to_bytes().decode()


def test_statistics_by_hand() -> None:
    rows = [[("a", "X", 3, "x"), ("b", "X", 4, "y"), ("c", "Y", 0, "x"), ("d", "Y", 3, "_")], [("a", "X", 0, "x")]]
    found = Treebank.of(rows).statistics()
    assert (found["sentences"], found["words"], found["types"], found["upos"], found["labels"]) == (2, 5, 4, 2, 2)
    # links 1-3, 2-4, 0-3, 3-4: 1-3 crosses 2-4, and 0-3 crosses 2-4
    assert found["crossing_words"] == pytest.approx(60.0) and found["crossing_sentences"] == 50.0


@given(st.lists(st.lists(st.integers(-1, 5), min_size=1, max_size=5), max_size=4))
@settings(max_examples=150, deadline=None)
def test_trees_and_crossings_by_enumeration(rows: list[list[int]]) -> None:
    rows = [[min(head, len(row)) for head in row] for row in rows]
    trees = Treebank.of([[{"form": "w", "head": head} for head in row] for row in rows])
    expected = []
    for row in rows:
        links = [(min(k, head), max(k, head)) for k, head in enumerate(row, start=1) if head >= 0]
        for k, head in enumerate(row, start=1):
            a, b = min(k, head), max(k, head)
            expected.append(head >= 0 and any(a < c < b < d or c < a < d < b for c, d in links))
    assert trees.crossing.tolist() == expected

    def wrong(row: list[int]) -> bool:
        walks = []
        for start in range(1, len(row) + 1):
            at = start
            for _ in range(len(row) + 1):
                at = row[at - 1] if at > 0 else at
            walks.append(at > 0)
        return row.count(0) > 1 or any(walks)

    if any(wrong(row) for row in rows):
        with pytest.raises(TreebankError):
            trees.check_trees()
    else:
        trees.check_trees()
        if any(-1 in row for row in rows):
            with pytest.raises(TreebankError, match="no head"):
                trees.check_trees(complete=True)


def test_features() -> None:
    assert features_of("Case=Nom|Gender=Fem,Masc") == {"Case": "Nom", "Gender": "Fem,Masc"}
    assert bundle_of({"gender": "a", "Case": "b", "Number[psor]": "c"}) == "Case=b|gender=a|Number[psor]=c"
    for bundle in ("_", "Case=Nom|Number=Sing", "fem|sg"):
        assert bundle_of(features_of(bundle)) == bundle


# Other formats ------------------------------------------------------------------------------------------------------

ROW = "1\tDas\tder\tART\tPDS\tsg|nom\t2\tSB\t_\t_\n2\tgeht\tgehen\tV\tVVFIN\t_\t0\tROOT\t0\tROOT\n\n"
ROW_2009 = (
    "1\tDas\tder\tdas\tPDS\tART\tnom\t_\t2\t3\tSB\tNK\t_\t_\tA0\n"
    "2\tgeht\tgehen\tgehen\tVVFIN\tVVFIN\t_\t_\t0\t0\tROOT\tROOT\tY\tgehen.1\t_\n\n"
)


def test_conll_x(tmp_path: Path) -> None:
    path = tmp_path / "a.conll.gz"
    path.write_bytes(gzip.compress(ROW.encode()))
    trees = Treebank.read(path)
    assert trees.source.layout.name == "conllx"
    assert trees.strings("upos", 0) == ("ART", "V") and trees.strings("xpos", 0) == ("PDS", "VVFIN")
    assert trees.heads.tolist() == [2, 0] and trees.strings("deprel", 0) == ("SB", "ROOT")
    assert trees.to_bytes() == ROW.encode()
    changed = trees.with_columns(heads=[0, 1], deprel=["A", "B"])
    assert changed.to_bytes().decode() == ROW.replace("2\tSB", "0\tA").replace("0\tROOT\t0", "1\tB\t0")
    with pytest.raises(TreebankError, match="CoNLL-X has no column for misc"):
        trees.with_misc("Confidence", ["1", "1"]).to_bytes()
    trees.with_misc("Confidence", ["1", "1"]).write(tmp_path / "b.conllu")
    assert Treebank.read(tmp_path / "b.conllu").strings("misc", 0) == ("Confidence=1", "Confidence=1")


def test_conll_x_with_eight_columns() -> None:
    text = "1\ta\t_\tX\tX\t_\t0\tROOT\n2\tb\t_\tX\tX\t_\t1\tD\n"
    trees = Treebank.from_bytes(text.encode(), format="conllx")
    assert trees.strings("deprel", 0) == ("ROOT", "D")
    assert trees.with_columns(deprel=["R", "Dep"]).to_bytes().decode() == text.replace("ROOT", "R").replace(
        "\tD", "\tDep"
    )


def test_conll_2009() -> None:
    trees = Treebank.from_bytes(ROW_2009.encode())
    assert trees.source.layout.name == "conll2009"
    assert trees.strings("xpos", 0) == ("PDS", "VVFIN") and trees.strings("upos", 0) == ("_", "_")
    assert trees.heads.tolist() == [2, 0] and trees.strings("deprel", 0) == ("SB", "ROOT")
    assert trees.to_bytes() == ROW_2009.encode()
    assert trees.with_columns(deprel=["X", "Y"]).to_bytes().decode().split("\n")[0].split("\t")[10:12] == ["X", "NK"]
    uneven = ROW_2009.replace("\tA0", "")
    with pytest.raises(TreebankError, match="line 2: 15 columns where the lines before have 14"):
        Treebank.from_bytes(uneven.encode(), "x", format="conll2009")


def test_from_one_format_to_another() -> None:
    trees = Treebank.from_bytes(SMALL.encode())
    other = Treebank.from_bytes(trees.to_bytes("conll2009"))
    assert other.words(0) == trees.words(0) and other.heads.tolist() == trees.heads.tolist()
    assert other.strings("deprel", 0) == trees.strings("deprel", 0) and other.sent_ids == trees.sent_ids
    back = Treebank.from_bytes(other.to_bytes("conllu"))
    assert back.strings("lemma", 0) == trees.strings("lemma", 0)


# What is wrong ------------------------------------------------------------------------------------------------------

GOOD = ["# sent_id = w-7", *(f"{k}\tw{k}\t_\tX\t_\t_\t{k - 1}\tdep\t_\t_" for k in (1, 2, 3))]


def row(id_: str, head: str = "0", n: int = 10) -> str:
    return "\t".join([id_, "w", "_", "X", "_", "_", head, "dep", "_", "_", "_"][:n])


@pytest.mark.parametrize(
    ("line", "broken", "says"),
    [
        (3, row("2", n=9), "9 columns where CoNLL-U has 10"),
        (3, row("2", n=11), "11 columns where CoNLL-U has 10"),
        (3, row("2").replace("\t", " "), "1 column where CoNLL-U has 10.*Some stand between spaces"),
        (3, row("2").replace("\tX\t", "   X  ", 1), "8 columns.*Some stand between spaces"),
        (3, row("x"), "'x', not the number of a word"),
        (3, row("2a"), "'2a', not the number of a word"),
        (3, row(""), "'', not the number of a word"),
        (3, row("2-"), "'2-', not the number of a word"),
        (3, row("-2"), "'-2', not the number of a word"),
        (3, row("3"), "word '3' where word 2 should be"),
        (3, row("1"), "word '1' where word 2 should be"),
        (3, row("3-4"), "multiword token '3-4' before word 2"),
        (3, row("2-1"), "multiword token '2-1' before word 2"),
        (4, row("3-4") + "\n" + row("3", "2"), "multiword token '3-4' in a sentence of 3 words"),
        (3, row("2.1"), "empty node '2.1' after word 1"),
        (3, row("2", "4"), "head '4' in a sentence of 3 words"),
        (3, row("2", "-1"), "head '-1' is not a number"),
        (3, row("2", "1x"), "head '1x' is not a number"),
        (3, row("2", ""), "head '' is not a number"),
        (3, row("2", "99999999999999999999"), "head '99999999999999999999' is not a number"),
        (3, row("2").replace("\tw\t", "\t\t"), "the word itself, is empty"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_broken_lines_are_named(line: int, broken: str, says: str, end: str) -> None:
    first = ["# sent_id = other", row("1"), ""]
    lines = [*first, *GOOD[: line - 1], *broken.split("\n"), *GOOD[line:], "", "# sent_id = last", row("1"), ""]
    with pytest.raises(TreebankError, match=rf"^bad\.conllu, line {3 + line}, sentence w-7: .*{says}"):
        Treebank.from_bytes(end.join(lines).encode(), "bad.conllu")


@pytest.mark.parametrize(
    ("heads", "line", "says"),
    [
        ("0 0 1", 3, "words 1 .'w1'. and 2 .'w2'. are both the root"),
        ("2 3 1", 2, "word 1 .'w1'. is its own ancestor"),
        ("0 2 1", 3, "word 2 .'w2'. is its own head"),
    ],
)
def test_what_is_no_tree_is_named_when_asked(heads: str, line: int, says: str, tmp_path: Path) -> None:
    lines = [GOOD[0], *(f"{k}\tw{k}\t_\tX\t_\t_\t{head}\tdep\t_\t_" for k, head in enumerate(heads.split(), start=1))]
    path = tmp_path / "bad.conllu"
    path.write_text("\n".join([*lines, "", ""]), encoding="utf-8")
    assert Treebank.read(path).heads.tolist() == list(map(int, heads.split()))
    with pytest.raises(TreebankError, match=rf"bad\.conllu, line {line}, sentence w-7: {says}"):
        Treebank.read(path, trees=True)


def test_encodings(tmp_path: Path) -> None:
    path = tmp_path / "latin.conllu"
    path.write_bytes(SMALL.encode("latin-1"))
    with pytest.raises(TreebankError, match=r"latin\.conllu, line 3, sentence s-1: byte e1 cannot be read as UTF-8"):
        Treebank.read(path)
    assert Treebank.read(path, encoding="latin-1").words(1) == ("Sí",)
    path.write_bytes(SMALL.encode("utf-16"))
    with pytest.raises(TreebankError, match="utf-16"):
        Treebank.read(path)
    assert Treebank.read(path, encoding="utf-16").to_bytes() == SMALL.encode()


def test_files(tmp_path: Path) -> None:
    trees = Treebank.from_bytes(SMALL.encode())
    for suffix in (".conllu", ".conllu.gz", ".txt.xz", ".conllu.zst"):
        trees.write(tmp_path / f"a{suffix}")
        assert Treebank.read(tmp_path / f"a{suffix}").to_bytes() == SMALL.encode()
    with pytest.raises(UsageError, match="no such file"):
        Treebank.read(tmp_path / "none.conllu")
    (tmp_path / "cut.conllu.gz").write_bytes((tmp_path / "a.conllu.gz").read_bytes()[:-12])
    with pytest.raises(DataError, match="end too soon"):
        Treebank.read(tmp_path / "cut.conllu.gz")
    with pytest.raises(ParameterError, match="format should be one of conllu"):
        Treebank.read(tmp_path / "a.conllu", "penn")


def test_wrong_changes_are_refused() -> None:
    trees = Treebank.from_bytes(SMALL.encode())
    for change, says in [
        ({"heads": [1, 2]}, "heads should be 6 whole numbers"),
        ({"heads": [0, 1, 2, 3, 4, 2]}, "word 1 of sentence 2 gets head 2, but there are 1 words"),
        ({"heads": [0.5] * 6}, "whole numbers"),
        ({"upos": ["X"]}, "upos has 1 entries for 6 words"),
        ({"upos": ["X"] * 5 + ["a\tb"]}, "tab"),
        ({"upos": ["X"] * 5 + [""]}, "empty"),
        ({"tag": ["X"] * 6}, "no column 'tag'"),
        ({"upos": Column(np.full(6, 3, np.int32), Vocabulary(["a"]))}, "outside its vocabulary"),
    ]:
        with pytest.raises(ParameterError, match=says):
            trees.with_columns(**change)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing", "# a\n\n# b\n\n"])
def test_files_without_sentences(text: str) -> None:
    trees = Treebank.from_bytes(text.encode())
    assert len(trees) == 0 and trees.to_bytes() == text.encode() and trees.sent_ids == ()
    assert trees.statistics()["words"] == 0 and len(trees.part(0, 0)) == 0
    trees.check_trees()


def test_samples_are_trees() -> None:
    for name in samples.names():
        text = samples.trees(name, "target").encode()
        trees = Treebank.from_bytes(text, trees=True)
        trees.check_trees(complete=True)
        assert trees.to_bytes() == text and not trees.crossing.any()


@pytest.mark.data
@pytest.mark.skipif(not FILES, reason="no treebanks behind ISOGLOSS_DATA")
def test_every_treebank_comes_out_as_it_went_in() -> None:
    for path in FILES:
        data = gzip.decompress(path.read_bytes())
        trees = Treebank.from_bytes(data, path.name, trees=True)
        assert trees.to_bytes() == data, path
        assert trees.with_columns(heads=trees.heads, **trees.columns).to_bytes() == data, path
        rows = [line for line in data.decode().split("\n") if line[:1].isdigit() and line.split("\t")[0].isdigit()]
        assert trees.n_words == len(rows), path
