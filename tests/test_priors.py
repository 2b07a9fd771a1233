"""What is known before counting: spelling, stems and the sums over them, each by a slow and plain road."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isogloss.data import Bitext
from isogloss.errors import DataError
from isogloss.tasks.align._numba.lexicon import group_sums
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.lexicon import lexicon_prior, read_lexicon
from isogloss.tasks.align.priors import Cut, Stems, StemTable, cuts, fold, skeleton, spelling_prior, stem

MANY = settings(max_examples=150, deadline=None, derandomize=True)


def table(n_source, n_target):
    """Every source type with every target type."""
    return np.arange(n_source + 1) * n_target, np.tile(np.arange(n_target, dtype=np.int32), n_source)


def corpus_of(rows):
    return Corpus.of(Bitext.of(rows), lowercase=True, max_length=100)


def entries(corpus):
    """The table as {(source form, target form): entry}."""
    owner = np.repeat(np.arange(len(corpus.source_words)), np.diff(corpus.rows))
    return {
        (corpus.source_words[e], corpus.target_words[f]): k
        for k, (e, f) in enumerate(zip(owner.tolist(), corpus.columns.tolist(), strict=True))
    }


# --- spelling ----------------------------------------------------------------------------------------------------


def common_subsequence(a, b):
    """The textbook table."""
    lengths = np.zeros((len(a) + 1, len(b) + 1), int)
    for i, j in product(range(len(a)), range(len(b))):
        lengths[i + 1, j + 1] = lengths[i, j] + 1 if a[i] == b[j] else max(lengths[i, j + 1], lengths[i + 1, j])
    return int(lengths[-1, -1])


def likeness(a, b, least=0.6):
    """What the docstring says."""
    a, b = fold(a), fold(b)
    if a == b and not (len(a) == 1 and a.isalpha()):
        return 1.0
    if min(len(a), len(b)) < 4 or max(len(a), len(b)) > 64:
        return 0.0
    ratio = 2 * common_subsequence(a, b) / (len(a) + len(b))
    return ((ratio - least) / (1 - least)) ** 2 if ratio > least else 0.0


def spelling_of(source, target):
    rows, columns = table(len(source), len(target))
    return spelling_prior(source, target, rows, columns).reshape(len(source), len(target))


@given(
    st.lists(st.text("abcdé1.", min_size=1, max_size=12), min_size=1, max_size=6),
    st.lists(st.text("abcdе1.", min_size=1, max_size=12), min_size=1, max_size=6),
)
@example(["a" * 63 + "b", "a" * 64, "a" * 65, "b" + "a" * 63], ["a" * 64, "b" * 64, "a" * 65, "ab" * 32])
@example(["abcdefgh" * 8], ["hgfedcba" * 8, "abcdefg" * 9, "bcdefgh" * 9])
@MANY
def test_likeness_of_spelling_equals_the_slow_subsequence(source, target):
    found = spelling_of(source, target)
    for (i, a), (j, b) in product(enumerate(source), enumerate(target)):
        assert found[i, j] == pytest.approx(likeness(a, b), abs=1e-5), (a, b)


def test_likeness_of_spelling_on_real_words():
    found = spelling_of(
        ["nation", "Москва", "1998", "a", ",", "of", "parliament"], ["nation", "Moskva", "a", ",", "or"]
    )
    assert [found[0, 0], found[1, 1], found[4, 3]] == pytest.approx([1, 1, 1])
    assert found[3, 2] == 0.0  # a letter that stands alone says nothing
    assert found[5, 4] == 0.0  # too short to be alike
    assert not found[2].any() and not found[6].any()
    close, far = spelling_of(["parlement"], ["parliament", "predicament"])[0]
    assert 0.0 < far < close < 1.0


def test_beside_a_script_without_vowels_consonants_are_compared():
    arabic, english = ["محمد", "القاهرة", "بوش", "1998"], ["Mohammed", "boss", "1998", "water"]
    found = spelling_of(arabic, english)
    assert found[0, 0] == pytest.approx(1) and found[3, 2] == pytest.approx(1) and not found[:, 3].any()
    assert spelling_of(["mhmd"], ["Mohammed"])[0, 0] < 0.5  # the same letters, but both sides write vowels
    assert spelling_of(["محمد"], ["محمود"])[0, 0] < 1  # and here neither does


def test_no_words_have_no_likeness():
    assert spelling_prior([], [], np.zeros(1, np.int64), np.zeros(0, np.int32)).shape == (0,)


@pytest.mark.parametrize(
    ("word", "folded"),
    [
        ("Straße", "strasse"), ("STRASSE", "strasse"), ("Ångström", "angstrom"), ("naïve", "naive"),  # Latin
        ("Škoda", "skoda"), ("İstanbul", "istanbul"), ("ﬁn", "fin"), ("Việt", "viet"),
        ("Москва", "moskva"), ("МОСКВА", "moskva"), ("ёлка", "elka"), ("объект", "obekt"), ("Київ", "kiiv"),  # Cyrillic
        ("Αθήνα", "athena"), ("λόγος", "logos"), ("ΛΟΓΟΣ", "logos"), ("ψυχή", "psyche"),  # Greek
        ("كِتَاب", "ktb"), ("ホテル", "hoteru"), ("が", "ga"), ("北京", "beijing"), ("서울", "seoul"), ("ไทย", "aithy"),
        ("1998", "1998"), ("—", "—"), ("", ""),
    ],
)  # fmt: skip
def test_fold_knows_scripts(word, folded):
    assert fold(word) == folded
    assert fold(fold(word)) == fold(word)


def test_skeletons():
    found = [skeleton(form) for form in ("mohammed", "obama", "philip", "quebec", "back", "1998", "", "a")]
    assert found == ["mhmd", "obm", "flb", "kbk", "bk", "1998", "", "a"]


@given(st.text(max_size=12))
@MANY
def test_folding_leaves_no_accents_and_forgets_case(word):
    assert not any(unicodedata.combining(c) for c in fold(word))
    assert fold(word) == fold(word.casefold())


# --- stems -------------------------------------------------------------------------------------------------------


def test_stems_are_first_letters():
    assert [stem(w, 4) for w in ("translate", "the", "1998-2001", "-ing", "übersetzen", "")] == [
        "tran", "the", "1998-2001", "-ing", "über", "",
    ]  # fmt: skip
    assert [stem(w, 4, end=True) for w in ("translate", "the", "1998-2001", "ing-", "x1", "")] == [
        "late", "the", "1998-2001", "ing-", "x1", "",
    ]  # fmt: skip


def test_letters_that_say_more_are_fewer():
    """Of Chinese characters one, of kana and Hangul two; the script is that of the letter where the cut begins."""
    assert [stem(w, 4) for w in ("京都市", "ひらがな", "カタカナ", "한국어", "ภาษาไทย", "々々", "𠀀𠀁")] == [
        "京", "ひら", "カタ", "한국", "ภาษา", "々", "𠀀",
    ]  # fmt: skip
    assert [stem(w, 4, end=True) for w in ("京都市", "食べる", "走り屋")] == ["市", "べる", "屋"]
    assert stem("ひらがな", 1) == "ひ"


def test_ways_to_cut():
    assert cuts(4, 1) == (Cut(4),) and cuts(4, 2) == (Cut(4), Cut(3))
    assert cuts(4, 3)[-1] == Cut(3, end=True, factor=0.5)
    assert cuts(1, 2) == (Cut(1), Cut(1))  # no word is cut to nothing


WORDS = ("walk", "walks", "walked", "talk", "12345", "12346", "a", "wal")


def draw_rows(rng, n=30):
    def sentence(prefix):
        return " ".join(prefix * (w[0].isalpha()) + w for w in rng.choice(WORDS, rng.integers(1, 6)))

    return [(sentence(""), sentence("x")) for _ in range(n)]


CUTS = (Cut(4), Cut(3), Cut(2, end=True, factor=0.5))


def cut_by(cut):
    return lambda word: stem(word, cut.length, end=cut.end)


@pytest.mark.parametrize("cut", CUTS)
def test_classes_of_stems_and_their_sums_equal_brute_force(cut):
    rng = np.random.default_rng(1)
    corpus, short = corpus_of(draw_rows(rng)), cut_by(cut)
    stems = Stems.of(corpus.source_words, corpus.target_words, corpus.rows, corpus.columns, cut)
    for words, classes in ((corpus.source_words, stems.source_class), (corpus.target_words, stems.target_class)):
        same = [[short(a) == short(b) for a in words] for b in words]
        assert (classes[:, None] == classes[None, :]).tolist() == same
    counts = rng.integers(0, 10**12, (len(corpus.columns), 2))
    sums = np.zeros((len(stems.owner), 2))
    group_sums(stems.members, stems.member_starts, corpus.rows, stems.group, counts, sums)
    expected = defaultdict(lambda: np.zeros(2))
    for (a, b), k in entries(corpus).items():
        expected[short(a), short(b)] += counts[k]
    assert len(expected) == len(sums)
    for (a, b), k in entries(corpus).items():
        group = stems.group[k]
        assert sums[group] == pytest.approx(expected[short(a), short(b)], rel=1e-12)
        assert stems.owner[group] == stems.source_class[corpus.source_words.index_of(a)]
        assert stems.other[group] == stems.target_class[corpus.target_words.index_of(b)]


def known_model(corpus, rng):
    """What `StemTable` reads of a model."""
    return SimpleNamespace(
        source_words=corpus.source_words, target_words=corpus.target_words, rows=corpus.rows, columns=corpus.columns,
        weights=rng.gamma(1.0, 1.0, (len(corpus.columns), 2)).astype(np.float32),
        source_counts=corpus.source_counts, target_counts=corpus.target_counts,
    )  # fmt: skip


@pytest.mark.parametrize("cut", CUTS)
def test_the_stem_prior_of_new_words_equals_brute_force(cut):
    rng, short = np.random.default_rng(2), cut_by(cut)
    taught = corpus_of(draw_rows(rng))
    model = known_model(taught, rng)
    new = corpus_of([("walking walk talks 12345 unheard", "xwalker xtalk 12346 xwal never"), ("walks", "xtalking")])
    strength = 1.7
    found = StemTable.of(model, strength, cut).prior(
        new, model.source_words.encode(new.source_words), model.target_words.encode(new.target_words)
    )
    sums = defaultdict(lambda: np.zeros(2))
    for (a, b), k in entries(taught).items():
        sums[short(a), short(b)] += model.weights[k]
    forward, backward = defaultdict(float), defaultdict(float)
    for (a, b), (x, y) in sums.items():
        forward[a] += x
        backward[b] += y

    def share(word, words, counts):
        """A known word's part of the occurrences of its stem; a new one is as if it came once more."""
        total = sum(int(n) for w, n in zip(words, counts, strict=True) if short(w) == short(word))
        here = words.index_of(word)
        return counts[here] / total if here >= 0 else 1 / (1 + total)

    some = 0
    for (a, b), k in entries(new).items():
        together = sums.get((short(a), short(b)), np.zeros(2))
        ahead = strength * cut.factor * together[0] / forward[short(a)] if together[0] else 0.0
        back = strength * cut.factor * together[1] / backward[short(b)] if together[1] else 0.0
        ahead *= share(b, model.target_words, model.target_counts)
        back *= share(a, model.source_words, model.source_counts)
        assert found[k] == pytest.approx([ahead, back], rel=1e-5, abs=1e-8), (a, b)
        some += ahead > 0
    assert 3 < some < len(found)


def test_shares_of_a_stem_add_up():
    """Given a stem, its known words share the prior out between them and nothing is lost."""
    rng = np.random.default_rng(3)
    corpus = corpus_of(draw_rows(rng))
    model = known_model(corpus, rng)
    same = np.arange(len(corpus.source_words), dtype=np.int32), np.arange(len(corpus.target_words), dtype=np.int32)
    full = corpus_of([(" ".join(corpus.source_words), " ".join(corpus.target_words))])
    assert list(full.source_words) == list(corpus.source_words)
    prior = StemTable.of(model, 2.5, Cut(4)).prior(full, *same)
    by_source = prior[:, 0].reshape(len(full.source_words), -1).sum(axis=1)
    assert by_source == pytest.approx(np.full(len(by_source), 2.5), rel=1e-4)


# --- the user's lexicon ------------------------------------------------------------------------------------------


def test_a_lexicon_becomes_pseudo_counts_of_its_entries():
    corpus = corpus_of([("the house", "das Haus"), ("the mouse", "die Maus")])
    given_ = [("House", "haus"), ("house", "Haus", 2), ("the", "die", 0.5), ("the", "katze"), ("house", "maus")]
    prior = lexicon_prior(read_lexicon(given_), corpus, lowercase=True)
    places = entries(corpus)
    assert prior[places["house", "haus"]] == 12.0 and prior[places["the", "die"]] == 0.5
    assert prior.sum() == 12.5  # words that are not here, or never meet, have no entry
    cased = Corpus.of(Bitext.of([("The house", "das Haus")]), lowercase=False, max_length=9)
    assert lexicon_prior(read_lexicon([("the", "das"), ("The", "das")]), cased, lowercase=False).sum() == 10.0


def test_a_lexicon_is_read_from_a_file(tmp_path):
    path = tmp_path / "lexicon.tsv"
    path.write_text("house\tHaus\n\nmouse Maus 3.5\nice cream\tEis\t2\n", encoding="utf-8")
    assert read_lexicon(path) == [("house", "Haus", 10.0), ("mouse", "Maus", 3.5), ("ice cream", "Eis", 2.0)]
    for line in ("house", "house\t\t3", "house\tHaus\tmany", "house\tHaus\t-1", "house\tHaus\tnan", "a\tb\tinf"):
        path.write_text(f"mouse\tMaus\n{line}\n", encoding="utf-8")
        with pytest.raises(DataError, match="line 2"):
            read_lexicon(path)


# --- numbering of forms and pairs --------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_the_table_of_word_pairs_is_every_pair_that_meets(seed):
    rng = np.random.default_rng(seed)
    rows = [
        tuple(" ".join(rng.choice(["Aa", "aa", "b", "C", "ß", "SS"], rng.integers(0, 5))) for _ in range(2))
        for _ in range(6)
    ]
    corpus = corpus_of(rows)
    meet = {(a.lower(), b.lower()) for source, target in rows for a in source.split() for b in target.split()}
    places = entries(corpus)
    assert set(places) == meet and len(places) == len(corpus.columns)
    pairs = corpus.pairs
    for s, (source, target) in enumerate(rows):
        cells = pairs.cells[pairs.cell_offsets[s] : pairs.cell_offsets[s + 1]].tolist()
        assert cells == [places[a.lower(), b.lower()] for a in source.split() for b in target.split()]
    used = [(source, target) for source, target in rows if source and target]
    assert corpus.source_counts.sum() == sum(len(source.split()) for source, _ in used)
    assert all(
        corpus.source_counts[k] == sum(source.lower().split().count(w) for source, _ in used)
        for k, w in enumerate(corpus.source_words)
    )
