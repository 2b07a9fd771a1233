"""Lexicons and phrase tables against counting by definition."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import samples
from isogloss.cli import main
from isogloss.data import Alignment, Bitext, Links
from isogloss.errors import LinksError, ParameterError
from isogloss.tasks.translate import extract_phrases, lexicon_from_links, write_phrases


@st.composite
def linked_texts(draw, max_pairs=6, max_words=6):
    """A bitext of few words, with any links, some of them with more words than a phrase may have."""
    pairs, links = [], []
    for _ in range(draw(st.integers(0, max_pairs))):
        source = draw(st.lists(st.sampled_from("abc"), max_size=max_words))
        target = draw(st.lists(st.sampled_from("xyz|"), max_size=max_words))
        cells = [(i, j) for i in range(len(source)) for j in range(len(target))]
        pairs.append((source, target))
        links.append(draw(st.sets(st.sampled_from(cells), max_size=8)) if cells else set())
    return Bitext.of(pairs), Links.of(links)


def enumerate_phrases(bitext, links, max_length):
    """Every pair of spans, by the definition: some link inside, none that leaves on one side only."""
    found = []
    for (source, target), row in zip(bitext, links, strict=True):
        for a in range(len(source)):
            for b in range(a + 1, min(a + max_length, len(source)) + 1):
                for c in range(len(target)):
                    for d in range(c + 1, min(c + max_length, len(target)) + 1):
                        inside = {(i, j) for i, j in row.links if a <= i < b and c <= j < d}
                        torn = any((a <= i < b) != (c <= j < d) for i, j in row.links)
                        if inside and not torn:
                            shifted = tuple(sorted((i - a, j - c) for i, j in inside))
                            found.append((source[a:b], target[c:d], shifted))
    return found


def word_probabilities(bitext, links):
    """p(t|s) and p(s|t), null included, counted one link at a time."""
    counts = Counter()
    for (source, target), row in zip(bitext, links, strict=True):
        for i, j in row.links:
            counts[source[i], target[j]] += 1
        for i, word in enumerate(source):
            counts[word, None] += all(link[0] != i for link in row.links)
        for j, word in enumerate(target):
            counts[None, word] += all(link[1] != j for link in row.links)
    of_source, of_target = Counter(), Counter()
    for (s, t), count in counts.items():
        of_source[s] += count
        of_target[t] += count
    forward = {(s, t): count / of_source[s] for (s, t), count in counts.items() if count}
    backward = {(s, t): count / of_target[t] for (s, t), count in counts.items() if count}
    return counts, forward, backward


def lexical_weight(words, others, links, probability):
    """Of `words` given `others`; links are (place in words, place in others)."""
    weight = 1.0
    for k, word in enumerate(words):
        partners = [others[m] for n, m in links if n == k] or [None]
        weight *= sum(probability[word, other] for other in partners) / len(partners)
    return weight


def rows_of(bitext, links, **options):
    return [pair for part in extract_phrases(bitext, links, **options) for pair in part]


@settings(deadline=None, max_examples=60)
@given(linked_texts(), st.integers(1, 9))
def test_phrases_are_those_of_the_definition(text, max_length):
    bitext, links = text
    occurrences = enumerate_phrases(bitext, links, max_length)
    count, of_source, of_target = Counter(), Counter(), Counter()
    alignments = defaultdict(Counter)
    for source, target, inside in occurrences:
        count[source, target] += 1
        of_source[source] += 1
        of_target[target] += 1
        alignments[source, target][inside] += 1
    _, forward, backward = word_probabilities(bitext, links)
    rows = rows_of(bitext, links, max_length=max_length)
    assert Counter({(row.source, row.target): row.pair_count for row in rows}) == count
    assert len(rows) == len(count)
    for row in rows:
        seen = alignments[row.source, row.target]
        assert seen[row.links] == max(seen.values())
        assert (row.source_count, row.target_count) == (of_source[row.source], of_target[row.target])
        assert row.target_given_source == pytest.approx(row.pair_count / of_source[row.source])
        assert row.source_given_target == pytest.approx(row.pair_count / of_target[row.target])
        assert row.target_lexical == pytest.approx(
            lexical_weight(
                row.target,
                row.source,
                [(j, i) for i, j in row.links],
                {(t, s): p for (s, t), p in forward.items()},
            )
        )
        assert row.source_lexical == pytest.approx(lexical_weight(row.source, row.target, row.links, backward))


@settings(deadline=None, max_examples=40)
@given(linked_texts(), st.integers(1, 30))
def test_small_blocks_give_the_same_table(text, block):
    bitext, links = text
    assert rows_of(bitext, links, block=block) == rows_of(bitext, links)


def test_order_is_alphabetical_then_by_count():
    bitext = samples.bitext("en-de")
    rows = rows_of(bitext, samples.gold("en-de"))
    keys = [(row.source, -row.pair_count) for row in rows]
    assert keys == sorted(keys)
    assert len(rows) > 1000


def test_table_reads_back(tmp_path):
    bitext, gold = samples.bitext("en-tr"), samples.gold("en-tr")
    counts = write_phrases(bitext, gold, tmp_path / "table.gz", block=200)
    rows = rows_of(bitext, gold)
    lines = gzip.decompress((tmp_path / "table.gz").read_bytes()).decode().splitlines()
    assert len(lines) == len(rows) == counts.pairs
    assert counts.occurrences == sum(row.pair_count for row in rows)
    for line, row in zip(lines, rows, strict=True):
        source, target, scores, links, numbers = line.split(" ||| ")
        assert (tuple(source.split(" ")), tuple(target.split(" "))) == (row.source, row.target)
        assert [float(score) for score in scores.split(" ")] == pytest.approx(row[2:6], rel=1e-5)
        assert [f"{float(score):.6g}" for score in scores.split(" ")] == [f"{score:.6g}" for score in row[2:6]]
        assert links == " ".join(f"{i}-{j}" for i, j in row.links)
        assert tuple(map(int, numbers.split(" "))) == row[7:]


@pytest.mark.parametrize("value", [1, 0.5, 0.0001, 9.99999e-05, 9.999996e-05, 0.9999997, 1 / 3, 2e-7, 1.25e-100, 1e-10])
def test_numbers_are_written_as_printf_does(value):
    from isogloss.tasks.translate._numba.phrases import _put_number

    out = np.zeros(32, np.uint8)
    end = _put_number(out, 0, value)
    assert out[:end].tobytes().decode() == f"{value:.6g}"


def test_bars_in_words_are_escaped(tmp_path):
    write_phrases(Bitext.of([("a|b", "|||")]), Links.of([[(0, 0)]]), tmp_path / "table")
    assert (tmp_path / "table").read_text() == "a&#124;b ||| &#124;&#124;&#124; ||| 1 1 1 1 ||| 0-0 ||| 1 1 1\n"


def test_least_count_drops_rows_only():
    bitext, gold = samples.bitext("en-de"), samples.gold("en-de")
    assert rows_of(bitext, gold, least_count=2) == [row for row in rows_of(bitext, gold) if row.pair_count >= 2]


def test_empty_texts_and_texts_without_links():
    assert rows_of(Bitext.of([]), Links.of([])) == []
    assert rows_of(Bitext.of([("", ""), ("a b", "x"), ("", "x")]), Links.of([[], [], []])) == []


def test_order_of_links_does_not_matter():
    bitext, links = Bitext.of([("a b", "x y"), ("b", "y x")]), Links.of([{(0, 0), (0, 1), (1, 0)}, {(0, 0), (0, 1)}])
    turned = Links(links.offsets, links.source[[2, 1, 0, 4, 3]], links.target[[2, 1, 0, 4, 3]])
    assert rows_of(bitext, turned) == rows_of(bitext, links)


def test_part_of_a_text_counts_for_itself():
    bitext, gold = samples.bitext("en-de"), samples.gold("en-de")
    alone = Bitext.of(list(bitext)[10:20])
    assert rows_of(bitext.part(10, 20), gold.part(10, 20)) == rows_of(alone, gold.part(10, 20))
    there, here = (list(lexicon_from_links(text, gold.part(10, 20))) for text in (bitext.part(10, 20), alone))
    assert there == here


def test_phrases_of_another_text_are_refused():
    bitext = Bitext.of([("a b", "x y")])
    with pytest.raises(LinksError, match="line 1: link 0-2"):
        rows_of(bitext, Links.of([[(0, 2)]]))
    with pytest.raises(LinksError, match="links for 2 pairs"):
        lexicon_from_links(bitext, Links.of([[], []]))
    with pytest.raises(ParameterError, match="max_length"):
        extract_phrases(bitext, Links.of([[]]), max_length=0)
    with pytest.raises(ParameterError, match="least_count"):
        lexicon_from_links(bitext, Links.of([[]]), least_count=float("nan"))


@settings(deadline=None, max_examples=60)
@given(linked_texts())
def test_lexicon_is_relative_frequencies(text):
    bitext, links = text
    counts, forward, backward = word_probabilities(bitext, links)
    lexicon = lexicon_from_links(bitext, links)
    expected = {pair: count for pair, count in counts.items() if count and None not in pair}
    assert {(entry.source, entry.target): entry.expected_count for entry in lexicon} == expected
    for entry in lexicon:
        assert entry.target_given_source == pytest.approx(forward[entry.source, entry.target])
        assert entry.source_given_target == pytest.approx(backward[entry.source, entry.target])
    rows = [(entry.source, -entry.target_given_source, entry.target) for entry in lexicon]
    assert rows == sorted(rows)
    for word in bitext.source.vocabulary:
        found = lexicon.translations(word)
        assert sum(p for _, p in found) + lexicon.null_share(word) == pytest.approx(1)
        assert dict(found) == pytest.approx({t: p for (s, t), p in forward.items() if s == word and t is not None})


def test_lexicon_counts_probabilities():
    links = Links.of([Alignment(frozenset({(0, 0), (0, 1)}), probability={(0, 0): 0.75, (0, 1): 0.25})])
    lexicon = lexicon_from_links(Bitext.of([("a b", "x y")]), links)
    assert [tuple(entry) for entry in lexicon] == [("a", "x", 0.75, 1.0, 0.75), ("a", "y", 0.25, 1.0, 0.25)]
    assert lexicon.null_share("b") == 1
    assert [entry.target for entry in lexicon_from_links(lexicon_text(), links, least_count=0.5)] == ["x"]


def lexicon_text():
    return Bitext.of([("a b", "x y")])


def test_possible_links_are_left_out():
    links = Links.of([Alignment(frozenset({(0, 0)}), frozenset({(1, 1)}))])
    assert [entry[:2] for entry in lexicon_from_links(lexicon_text(), links)] == [("a", "x")]
    assert {row.links for row in rows_of(lexicon_text(), links)} == {((0, 0),)}


# The commands --------------------------------------------------------------------------------------------------------


def run(capsysbinary, *arguments):
    status = main([str(argument) for argument in arguments])
    told = capsysbinary.readouterr()
    return status, told.out.decode(), told.err.decode()


SAMPLE = [samples.path("en-de", what) for what in ("source", "target", "gold")]


def test_phrases_command(tmp_path, capsysbinary):
    status, out, err = run(capsysbinary, "phrases", *SAMPLE, "--max-length", 3, "--least-count", 2)
    expected = rows_of(samples.bitext("en-de"), samples.gold("en-de"), max_length=3, least_count=2)
    assert status == 0 and len(out.splitlines()) == len(expected)
    assert out.splitlines()[0].startswith(" ".join(expected[0].source) + " ||| ")
    assert f"{len(expected)} phrase pairs" in err
    assert run(capsysbinary, "phrases", *SAMPLE, "-o", tmp_path / "table", "-q")[1:] == ("", "")
    assert len((tmp_path / "table").read_text().splitlines()) == len(rows_of(*sample()))


def sample():
    return samples.bitext("en-de"), samples.gold("en-de")


def test_lexicon_command_from_links(capsysbinary):
    status, out, _ = run(capsysbinary, "lexicon", *SAMPLE, "--least", 0)
    rows = [line.split("\t") for line in out.splitlines()]
    assert status == 0 and rows[0][0] == "source"
    expected = list(lexicon_from_links(*sample()))
    assert [tuple(row[:2]) for row in rows[1:]] == [entry[:2] for entry in expected]
    assert [float(row[2]) for row in rows[1:]] == pytest.approx([entry[2] for entry in expected], rel=1e-5)
    _, out, _ = run(capsysbinary, "lexicon", *SAMPLE, "--json", "--top", 1, "--null")
    entries = [json.loads(line) for line in out.splitlines()]
    assert len({entry["source"] for entry in entries}) == len(entries)
    assert any(entry["target"] == "NULL" for entry in entries)


def test_lexicon_command_from_a_model(tmp_path, capsysbinary):
    from isogloss.tasks.align import HMMAligner

    HMMAligner().fit(samples.bitext("en-de")).save(tmp_path / "model")
    status, out, err = run(capsysbinary, "lexicon", tmp_path / "model", "--least", 0.2, "--top", 2)
    rows = [line.split("\t") for line in out.splitlines()][1:]
    assert status == 0 and rows and f"{len(rows)} word pairs" in err
    keys = [(row[0], -float(row[2])) for row in rows]
    assert keys == sorted(keys)
    assert max(Counter(row[0] for row in rows).values()) <= 2 and min(float(row[2]) for row in rows) >= 0.2
    assert ["book", "buch"] in [row[:2] for row in rows]


def test_commands_refuse(tmp_path, capsysbinary):
    assert run(capsysbinary, "lexicon", tmp_path / "missing")[0] == 2
    assert run(capsysbinary, "lexicon", *SAMPLE, "--tsv", "--json")[0] == 2
    assert run(capsysbinary, "phrases", *SAMPLE[:2], samples.path("en-tr", "gold"))[0] == 1
    assert run(capsysbinary, "phrases", *SAMPLE, "-o", SAMPLE[0])[0] == 2
