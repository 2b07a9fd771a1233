"""The doctor finds what was broken on purpose, and nothing in text that is well."""

from __future__ import annotations

import gzip
import json
import unicodedata

import numpy as np
import pytest

from isogloss import samples
from isogloss.cli import main
from isogloss.data.formats.bitexts import lines_of
from isogloss.errors import ParameterError, UsageError
from isogloss.tasks.align.doctor import estimate, examine


@pytest.fixture(scope="module")
def corpus():
    """Lines of a text that is well: source, target."""
    bitext = samples.synthetic(400, seed=2).bitext
    return tuple(lines_of(text).decode().splitlines() for text in (bitext.source, bitext.target))


@pytest.fixture
def look(tmp_path):
    """Write two sides, of lines or of bytes, and examine them."""

    def written(source, target, links=None, **options):
        paths = []
        for name, side in (("source", source), ("target", target), ("links", links)):
            if side is not None:
                data = side if isinstance(side, bytes) else "".join(line + "\n" for line in side).encode()
                (tmp_path / name).write_bytes(data)
                paths.append(str(tmp_path / name))
        return examine(*paths, **options)

    return written


def codes(report, severity=None):
    return {(f.code, f.side) for f in report.findings if severity in (None, f.severity)}


def the(report, code, side=None):
    found = [f for f in report.findings if f.code == code and side in (None, f.side)]
    assert len(found) == 1, f"{code}: {report}"
    return found[0]


def test_nothing_is_odd_about_good_text(corpus, look):
    report = look(*corpus)
    assert not codes(report, "error") and not codes(report, "warning"), str(report)
    for name in samples.names():
        report = examine(*(str(samples.path(name, what)) for what in ("source", "target", "gold")))
        assert report.findings == (), str(report)
        assert "nothing odd" in str(report)


# Lines ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [30, 200, 370])
def test_a_lost_line_is_found_near_where_it_was(corpus, look, where):
    source, target = corpus
    report = look(source, target[:where] + target[where + 1 :])
    found = the(report, "unequal-lines")
    assert found.severity == "error" and found.count == 1
    assert abs(found.lines[0] - (where + 1)) <= 8, found
    assert "the source has 1 more" in found.remedy
    report = look(source[:where] + source[where + 1 :], target)
    found = the(report, "unequal-lines")
    assert abs(found.lines[0] - (where + 1)) <= 8 and "the target has 1 more" in found.remedy


def test_two_lines_lost_far_apart(corpus, look):
    source, target = corpus
    found = the(look(source, target[:100] + target[101:300] + target[301:]), "unequal-lines")
    assert found.count == 2 and abs(found.lines[0] - 101) <= 8 and abs(found.lines[1] - 300) <= 8


def test_lines_out_of_step_though_there_are_as_many(corpus, look):
    source, target = corpus
    shifted = target[:100] + target[101:250] + ["so"] + target[250:]
    found = the(look(source, shifted), "out-of-step")
    assert found.severity == "error" and 130 <= found.count <= 170 and abs(found.lines[0] - 101) <= 8


def test_very_different_numbers_of_lines(corpus, look):
    found = the(look(corpus[0], corpus[1][:10]), "unequal-lines")
    assert found.count == 390 and "lost, joined or split" in found.remedy
    assert the(look(corpus[0][:2], corpus[1][:3]), "unequal-lines").count == 1


def test_empty_repeated_copied_long_and_lopsided_lines(corpus, look):
    source, target = (list(side) for side in corpus)
    source[5], target[6], source[7], target[7] = "", "", "", ""
    source[10], target[10] = source[0], target[0]
    target[20] = source[20] = "eins zwei drei vier fünf"
    source[30] = "w " * 1001
    target[30] = "v " * 900
    target[40] = "v " * 90
    report = look(source, target)
    assert the(report, "half-empty").lines == (6, 7)
    assert the(report, "empty").lines == (8,)
    assert the(report, "duplicates").lines == (11,)
    assert the(report, "untranslated").lines == (21,)
    assert the(report, "long-lines").lines == (31,)
    assert the(report, "length-ratio").lines == (41,)


def test_the_same_file_twice_and_an_empty_file(corpus, look):
    assert the(look(corpus[0], corpus[0]), "same-text").severity == "error"
    report = look(corpus[0], [])
    assert the(report, "empty-file").side == "target" and the(report, "unequal-lines").count == 400


# Bytes and characters ------------------------------------------------------------------------------------------------


def test_other_encodings_are_recognised(corpus, look):
    german = ["Das schöne Mädchen läuft über die Straße .", "Größe und Höhe ."] * 20
    english = ["The fine girl runs across the street .", "Size and height ."] * 20
    latin = "".join(line + "\n" for line in german).encode("latin-1")
    found = the(look(english, latin), "encoding")
    assert (found.severity, found.side, found.count, found.lines[0]) == ("error", "target", 40, 1)
    assert "--target-encoding latin-1" in found.remedy
    assert look(english, latin, encoding="latin-1").worst != "error"
    assert look(english, latin, target_encoding="latin-1").worst != "error"
    windows = "„Das ist so …“ , sagte er ruhig .\n".encode("cp1252") * 40
    assert "--target-encoding cp1252" in the(look(english, windows), "encoding").remedy
    wide = "".join(line + "\n" for line in german).encode("utf-16")
    assert "--target-encoding utf-16" in the(look(english, wide), "encoding").remedy
    bare = "".join(line + "\n" for line in german).encode("utf-16-le")
    assert "--target-encoding utf-16-le" in the(look(english, bare), "encoding").remedy
    assert "--target-encoding utf-16-le" in the(look(english, bare, target_encoding="utf-16"), "encoding").remedy
    with pytest.raises(ParameterError, match="encoding should be a text encoding"):
        look(english, german, encoding="klingon")
    japanese = ("これはとても長い文です。" * 3 + "\n").encode("shift_jis") * 40
    assert "shift_jis" in the(look(english, japanese), "encoding").remedy
    russian = "Это длинное предложение о городе\n".encode("cp1251") * 40
    assert "cp1251" in the(look(english, russian), "encoding").remedy


def test_a_few_wrong_bytes_in_good_text(look):
    german = ["schön und größer".encode()] * 40
    german[7] = b"sch\xf6n"
    report = look(["fine and larger"] * 40, b"\n".join(german) + b"\n")
    found = the(report, "encoding")
    assert (found.count, found.lines) == (1, (8,)) and "--errors replace" in found.remedy


def test_marks_ends_and_odd_characters(corpus, look):
    source, target = (list(side) for side in corpus)
    source[3] = "na\u00efve caf\u00e9".encode().decode("cp1252")
    source[4] += " lost\ufffd"
    source[5] += " bell\x07"
    source[6] += " break\u2028here"
    source[7] += " no\u00a0break"
    source[8] += " zero\u200bwidth"
    source[9] += " &amp; <b>bold</b>"
    data = b"\xef\xbb\xbf" + "".join(line + "\r\n" for line in source).encode()
    report = look(data, target)
    for code, line in {
        "mojibake": 4,
        "replacement-characters": 5,
        "control-characters": 6,
        "line-separators": 7,
        "odd-spaces": 8,
        "invisible-characters": 9,
        "entities": 10,
        "tags": 10,
    }.items():
        found = the(report, code, "source")
        assert (found.count, found.lines) == (1, (line,)), found
    assert the(report, "byte-order-mark").severity == the(report, "crlf").severity == "note"
    assert not codes(report, "error")
    mixed = "".join(line + ("\r\n" if k % 2 else "\n") for k, line in enumerate(corpus[0])).encode()
    assert the(look(mixed, target), "crlf").severity == "warning"
    old = "\r".join(corpus[0]).encode()
    assert the(look(old, target), "carriage-returns").severity == "error"


def test_damaged_compression_is_a_finding(corpus, look):
    data = gzip.compress("".join(line + "\n" for line in corpus[0]).encode())
    assert not codes(look(data, corpus[1]), "error")
    assert the(look(data[: len(data) // 2], corpus[1]), "unreadable").side == "source"


def test_words_in_two_normal_forms(look):
    composed = ["das schöne Mädchen läuft"] * 30
    mixed = [unicodedata.normalize("NFD", line) if k % 3 == 0 else line for k, line in enumerate(composed)]
    english = ["the fine girl runs"] * 30
    found = the(look(english, mixed), "normal-form")
    assert (found.severity, found.count) == ("warning", 10) and "both ways: 3" in found.message
    all_apart = [unicodedata.normalize("NFD", line) for line in composed]
    assert the(look(english, all_apart), "normal-form").severity == "note"


def test_text_that_is_not_tokenised(look):
    raw = ["Well, he came home; she did not (yet).", "Did they see it? No!"] * 10
    cut = ["Nun , er kam heim ; sie nicht ( noch ) .", "Haben sie es gesehen ? Nein !"] * 10
    report = look(raw, cut)
    assert the(report, "untokenised").side == "source" and "--tokenise unicode" in the(report, "untokenised").remedy
    assert "untokenised" not in {code for code, _ in codes(look(raw, cut, tokenise="unicode"))}
    japanese = ["これはとても長い文です。", "空白がありません。"] * 10
    assert the(look(cut, japanese), "unsegmented").side == "target"
    assert "unsegmented" not in {code for code, _ in codes(look(cut, [" ".join(line) for line in japanese]))}


def test_wrong_scripts_and_languages(corpus, look):
    source, target = (list(side) for side in corpus)
    target[50] = "это совсем другой язык"
    source[60] = "p\u0430ypal login"  # a Cyrillic letter among Latin ones
    long = [k for k in range(100, 400) if len(source[k].split()) > 9 and len(target[k].split()) > 9]
    source[long[0]], target[long[0]] = target[long[0]], source[long[0]]
    target[long[1]] = source[long[2]]
    report = look(source, target)
    assert the(report, "other-script").lines == (51,)
    assert the(report, "mixed-script").lines == (61,)
    assert long[0] + 1 in the(report, "swapped").lines
    assert long[1] + 1 in the(report, "other-language", "target").lines


def test_apostrophes_and_capitals(look):
    lines = ["it's", "it’s"] * 10 + ["ALL OF THIS IS LOUD"] + ["so he said it quietly"] * 9
    report = look(lines, ["x"] * 30)
    assert the(report, "apostrophes").count == 10
    assert the(report, "capitals").lines == (21,)


# Links ---------------------------------------------------------------------------------------------------------------


def test_links_that_count_from_one_or_do_not_fit(corpus, look):
    source, target = corpus
    made = samples.synthetic(400, seed=2).links
    rows = [[(i, j) for i, j in row] for row in made]

    def text(shape):
        return [" ".join(shape(i, j) for i, j in row) for row in rows]

    assert not codes(look(source, target, text(lambda i, j: f"{i}-{j}")), "error")
    found = the(look(source, target, text(lambda i, j: f"{i + 1}-{j + 1}")), "one-based")
    assert found.side == "links" and "--index-base 1" in found.remedy
    assert the(look(source, target, text(lambda i, j: f"{j}-{i}")), "turned").severity == "error"
    assert the(look(source, target, text(lambda i, j: f"{i + 9}-{j}")), "links-range").lines[0] == 1
    assert the(look(source, target, ["0-0"] * 401), "links-lines").severity == "error"
    assert the(look(source, target, ["0-0"] * 30), "links-lines").severity == "note"
    assert the(look(source, target, ["0-0 1_1"] * 400), "unreadable").side == "links"
    assert the(look(source, target, [""] * 400), "no-links").count == 400


# Numbers -------------------------------------------------------------------------------------------------------------


def test_statistics_are_counts(corpus, look):
    report = look(*corpus)
    for numbers, side in zip(report.statistics, corpus, strict=True):
        words = [word for line in side for word in line.split()]
        assert (numbers.lines, numbers.words, numbers.types) == (400, len(words), len(set(words)))
        assert numbers.once == sum(words.count(word) == 1 for word in set(words))
        assert numbers.longest == max(len(line.split()) for line in side)


def test_estimate_counts_cells_and_word_pairs():
    bitext = samples.bitext("en-de")
    cost = estimate(bitext, threads=2)
    pairs = {(s.lower(), t.lower()) for source, target in bitext for s in source for t in target}
    assert cost.cells == sum(len(source) * len(target) for source, target in bitext)
    assert cost.word_pairs == len(pairs)
    assert estimate(bitext, threads=1).seconds > cost.seconds


def test_estimate_of_a_sample_of_word_pairs_is_close():
    bitext = samples.synthetic(20_000, seed=1).bitext
    cost = estimate(bitext)
    assert cost.cells > 2_000_000  # so that word pairs are sampled
    lowered = (
        text.vocabulary.mapped(str.lower)[1][text.ids.values].astype(np.int64)
        for text in (bitext.source, bitext.target)
    )
    source, target = (
        np.split(ids, text.ids.offsets[1:-1]) for ids, text in zip(lowered, (bitext.source, bitext.target), strict=True)
    )
    seen = [(s[:, None] * 10**7 + t[None, :]).ravel() for s, t in zip(source, target, strict=True)]
    assert cost.word_pairs == pytest.approx(len(set(np.concatenate(seen).tolist())), rel=0.02)


# The command ---------------------------------------------------------------------------------------------------------


def run(capsysbinary, *arguments):
    status = main([str(argument) for argument in arguments])
    told = capsysbinary.readouterr()
    return status, told.out.decode(), told.err.decode()


def test_command(tmp_path, capsysbinary):
    sides = [samples.path("en-de", what) for what in ("source", "target", "gold")]
    status, out, err = run(capsysbinary, "doctor", *sides)
    assert status == 0 and "nothing odd was found" in out and "isogloss align will take about" in out
    short = tmp_path / "short"
    short.write_text("".join(sides[1].read_text().splitlines(keepends=True)[:-1]))
    status, out, err = run(capsysbinary, "doctor", sides[0], short)
    assert status == 1 and "error: both: the source has 50 lines, the target 49" in out
    assert err == "isogloss: 1 error that should be mended before aligning\n"
    status, out, _ = run(capsysbinary, "doctor", sides[0], short, "--json")
    report = json.loads(out)
    assert status == 1 and report["findings"][0]["code"] == "unequal-lines" and report["estimate"] is None
    assert run(capsysbinary, "doctor", tmp_path / "missing", short)[0] == 2


def test_command_on_one_file_with_both_sides(tmp_path, capsysbinary):
    both = tmp_path / "both.tsv"
    lines = zip(*(samples.path("en-tr", side).read_text().splitlines() for side in ("source", "target")), strict=True)
    both.write_text("".join(f"{source}\t{target}\n" for source, target in lines))
    status, out, _ = run(capsysbinary, "doctor", both)
    assert status == 0 and out.count("50 ") >= 2
    with both.open("a") as file:
        file.write("no second column\n")
    status, out, _ = run(capsysbinary, "doctor", both)
    assert status == 1 and "line 51" in out
    with pytest.raises(UsageError):
        examine("-")
