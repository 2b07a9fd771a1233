"""Contractions: which words are split, into what, and the way back."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Call
from isogloss.data import Bitext, Links, Text, Treebank
from isogloss.data.contractions import (
    LANGUAGES,
    Contractions,
    guess_language,
    split_bitext,
    split_text,
    split_words,
)
from isogloss.data.contractions.table import Rule
from isogloss.data.tokenise import tokenise_text
from isogloss.errors import DataError, LinksError, ParameterError, UsageError

DATA = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "treebanks"
ITALIAN = Contractions.of_language("it")


def table(*rows: str) -> bytes:
    return "".join(row.replace(" | ", "\t") + "\n" for row in rows).encode()


def conllu(*sentences: str) -> Treebank:
    """Sentences such as "1-2:della 1:di 2:la 3:casa"."""
    lines = []
    for sentence in sentences:
        for word in sentence.split():
            number, _, form = word.partition(":")
            lines.append("\t".join([number, form, *"_" * 8]))
        lines.append("")
    return Treebank.from_bytes("".join(f"{line}\n" for line in lines).encode())


# Words ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("della", ("di", "la")),
        ("Della", ("Di", "la")),
        ("DELLA", ("DI", "LA")),
        ("dElla", ("dElla",)),
        ("dell'", ("di", "l'")),
        ("dell’", ("di", "l’")),
        ("DELL’", ("DI", "L’")),
        ("farlo", ("far", "lo")),
        ("parlo", ("parlo",)),
        ("andarsene", ("andar", "se", "ne")),
        ("analizzandolo", ("analizzando", "lo")),
        ("diversi", ("diversi",)),  # *versi stays, though *ersi is split
        ("versi", ("versi",)),
        ("muoversi", ("muover", "si")),
        ("casa", ("casa",)),
        ("", ("",)),
    ],
)
def test_words(word: str, parts: tuple[str, ...]) -> None:
    assert ITALIAN.split(["e", word])[1] == parts


def test_capitals_make_names_of_patterns_but_not_of_words() -> None:
    spanish = Contractions.of_language("es")
    assert spanish.split(["Hacerlo", "Hacerlo", "Del"]) == [("Hacer", "lo"), ("Hacerlo",), ("De", "el")]
    assert spanish.split(["«", "Hacerlo"])[1] == ("Hacer", "lo")
    assert spanish.split(["HACERLO"]) == [("HACERLO",)]


def test_a_letter_in_capitals() -> None:
    assert Contractions.of_language("pt").split(["À", "À"]) == [("A", "a"), ("A", "a")]


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert Contractions.of_language("pt").split(["fazê-lo".replace("ê", "e\u0302")]) == [("fazer", "o")]
    assert Contractions.of_language("de").split(["fu\u0308rs"]) == [("für", "das")]


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("fi-lo", "fiz o"),
        ("fazê-lo", "fazer o"),
        ("pô-las", "pôr as"),
        ("dispô-lo", "dispor o"),
        ("apoiamo-lo", "apoiamos o"),
        ("congratulamo-nos", "congratulamos nos"),
        ("dizem-no", "dizem o"),
        ("dou-lha", "dou lhe a"),
        ("ajudar-nos-ia", "ajudaria nos"),
        ("fá-lo-á", "fará o"),
        ("vê-se-lhe", "vê se lhe"),
        ("guarda-chuva", "guarda-chuva"),
    ],
)
def test_portuguese_pronouns(word: str, parts: str) -> None:
    assert Contractions.of_language("pt").split(["e", word])[1] == tuple(parts.split())


@pytest.mark.parametrize(
    ("language", "word", "parts"),
    [
        ("cs", "kdybych", "když bych"),
        ("pl", "wyprodukowalibyśmy", "wyprodukowali by śmy"),
        ("pl", "kapitałem", "kapitałem"),
        ("pl", "przyszedłem", "przyszedł em"),
        ("pl", "byłam", "była m"),
        ("pl", "żebyśmy", "żeby śmy"),
        ("fi", "miksen", "miksi en"),
        ("ca", "convertir-se", "convertir se"),
        ("el", "Στην", "Σ την"),
        ("es", "llevárselo", "llevar se lo"),
        ("es", "comparte", "comparte"),
        ("es", "gobiernos", "gobiernos"),
        ("gl", "coa", "con a"),
    ],
)
def test_what_the_pages_of_the_languages_say(language: str, word: str, parts: str) -> None:
    assert Contractions.of_language(language).split([word])[0] == tuple(parts.split())


def test_neighbours_decide() -> None:
    french = Contractions.of_language("fr")
    for sentence, is_split in (
        ("le rôle des pays", True),
        ("avec des pays", False),
        ("Des pays", False),
        ("créer des pays", False),
        ("le dossier des pays", True),  # *ier is an exception of *er
        ("parler des pays", True),
    ):
        words = sentence.split()
        at = [word.lower() for word in words].index("des")
        assert (len(french.split(words)[at]) == 2) == is_split, sentence
    portuguese = Contractions.of_language("pt")
    for sentence, is_split in (("que nos países", True), ("que nos permite", False), ("que nos encontramos", False)):
        assert (len(portuguese.split(sentence.split())[1]) == 2) == is_split, sentence


def test_the_longest_neighbour_decides_and_words_before_endings() -> None:
    rules = Contractions({"x": Rule(("a", "b"), ("*r_", "!*er_", "fer_", "_,", "!_s", "_*s"))})
    cases = {
        ("ar", "x"): 1,
        ("er", "x"): 2,
        ("fer", "x"): 1,
        ("o", "x", ","): 1,
        ("o", "x", "s"): 2,
        ("o", "x", "os"): 1,
    }
    for words, size in cases.items():
        assert len(rules.split(words)[1]) == size, words


WORDS = st.lists(
    st.sampled_from(
        ["des", "Des", "DES", "du", "créer", "dossier", "avec", ",", "pays", "Farlo", "farlo", "nos", "os", "3"]
    ),
    max_size=7,
)


@settings(deadline=None)
@given(st.lists(WORDS, max_size=5))
def test_a_text_is_split_as_its_sentences_are(sentences: list[list[str]]) -> None:
    rules = Contractions.of_language("fr") | ITALIAN | Contractions({"nos": Rule(("em", "os"), ("_*", "!_*s"))})
    text = Text.of([["x"], *sentences])[1:]  # a slice, whose first row does not start at 0
    words, surface = split_words(text, rules)
    at = 0
    for sentence, given_words in enumerate(sentences):
        expected = rules.split(given_words)
        assert words[sentence] == tuple(part for parts in expected for part in parts)
        at += sum(map(len, expected))
    assert at == words.n_words == len(surface)
    sizes = [len(parts) for given_words in sentences for parts in rules.split(given_words)]
    assert surface.tolist() == np.repeat(np.arange(len(sizes)), sizes).tolist()
    assert sorted(set(words.vocabulary)) == sorted({word for row in words for word in row})


# Tables --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_lists_are_read_and_written(language: str, tmp_path: Path) -> None:
    rules = Contractions.of_language(language)
    assert rules.language == language and len(rules) > 5
    rules.write(tmp_path / "rules.tsv")
    assert Contractions.read(tmp_path / "rules.tsv") == rules
    assert Contractions.from_bytes(rules.to_bytes()).to_bytes() == rules.to_bytes()


def test_a_table_without_headings() -> None:
    rules = Contractions.from_bytes(table("# ours", "", "zum | zu dem", "am | an dem"))
    assert dict(rules) == {"zum": ("zu", "dem"), "am": ("an", "dem")} and rules.language == ""


@pytest.mark.parametrize(
    ("row", "finding"),
    [
        ("zum zu dem", "no form and parts"),
        ("zum | ", "no form and parts"),
        ("z um | zu dem", "one word without spaces"),
        ("*um | zu dem", r"\* may stand once"),
        ("um | *zu dem", r"\* may stand once"),
        ("u*m | zu dem", r"\* may stand once"),
        ("* | * dem", r"\* may stand once"),
        ("{a,b}m | {a} dem", "should have 2 alternatives"),
        ("am | {a} dem", "a group .a. that the form has not"),
    ],
)
def test_a_table_with_a_mistake(row: str, finding: str) -> None:
    with pytest.raises(DataError, match=f"mine.tsv, line 2: .*{finding}"):
        Contractions.from_bytes(table("im | in dem", row), "mine.tsv")


def test_a_neighbour_without_a_place() -> None:
    with pytest.raises(DataError, match="line 2: 'zum': 'avec' is no neighbour"):
        Contractions.from_bytes(table("form | parts | whole in", "zum | zu dem | avec"))
    with pytest.raises(ParameterError, match="'zum': '_' is no neighbour"):
        Contractions({"zum": Rule(("zu", "dem"), ("_",))})
    with pytest.raises(ParameterError, match="a note is on one line"):
        Contractions({"zum": Rule(("zu", "dem"), (), "a\tb")})
    for wrong in ("_!", "!!x_", "a*_", "_x_", "!_"):
        with pytest.raises(ParameterError, match="is no neighbour"):
            Contractions({"zum": Rule(("zu", "dem"), (wrong,))})


def test_other_mistakes() -> None:
    with pytest.raises(ParameterError, match="no list of 'nl', but of ca, cs"):
        Contractions.of_language("nl")
    with pytest.raises(DataError, match="cannot be read as UTF-8"):
        Contractions.from_bytes(b"f\xfcrs\tf\xfcr das\n")
    with pytest.raises(UsageError, match="no such file"):
        Contractions.choose("nowhere.tsv", Text.of([]))


def test_rules_of_both() -> None:
    both = ITALIAN | Contractions({"della": "della"})
    assert both.split(["della", "nel"]) == [("della",), ("in", "il")] and both.language == "it"


def test_what_the_option_means(tmp_path: Path) -> None:
    german = Text.of(["Der Hund und die Katze sind in dem Haus , und das ist nicht gut für die Maus ."] * 5)
    auto = Contractions.choose("auto", german)
    assert auto is not None and auto.language == "de"
    assert Contractions.choose("none", german) is None
    assert Contractions.choose("auto", Text.of(["x y z"])) is None
    assert Contractions.choose("it", german) == ITALIAN
    (tmp_path / "mine.tsv").write_bytes(table("zum | zu dem"))
    assert dict(Contractions.choose(str(tmp_path / "mine.tsv"), german) or {}) == {"zum": ("zu", "dem")}


# Learning ------------------------------------------------------------------------------------------------------------


def test_learning_keeps_what_is_mostly_split() -> None:
    trees = conllu(
        "1-2:Della 1:Di 2:la 3:casa",
        "1:a 2-3:della 2:di 3:la 4:della",  # two of three are split
        "1:del 2-3:del 2:di 3:il",  # one of two
        "1-2:dei 1:di 2:i 3-4:dei 3:di 4:gli 5-6:dei 5:di 6:i",
    )
    rules = Contractions.learn(trees, "it")
    assert dict(rules) == {"della": ("di", "la"), "dei": ("di", "i")} and rules.language == "it"
    assert rules.rule("della").note == "split in 2 of 3 uses" and rules.rule("dei").note == ""
    assert dict(Contractions.learn(trees, min_share=0.4))["del"] == ("di", "il")
    with pytest.raises(ParameterError, match="min_share"):
        Contractions.learn(trees, min_share=1.0)


def test_learning_neighbours() -> None:
    whole = ["1:con 2:dei"] * 2 + ["1:! 2:dei"] * 2 + ["1:ha 2:dei"] + ["1:dei"] * 2
    rules = Contractions.learn(conllu(*whole, *["1:x 2-3:dei 2:di 3:i"] * 9))
    assert rules.rule("dei").whole_in == ("^_", "con_")  # two uses or more; "!" means something else
    assert [len(rules.split(words)[-1]) for words in (["con", "dei"], ["ha", "dei"], ["Dei"])] == [1, 2, 1]
    assert Contractions.from_bytes(rules.to_bytes()) == rules


ODD = st.text("aB'’*_!^#{}=-é", min_size=1, max_size=3)


@settings(deadline=None)
@given(st.lists(st.tuples(ODD, st.lists(ODD, min_size=1, max_size=3)), min_size=1, max_size=6))
def test_whatever_is_learnt_is_written_and_read_again(tokens: list[tuple[str, list[str]]]) -> None:
    lines, number = [], 1
    for surface, parts in tokens:
        if len(parts) > 1:
            lines.append("\t".join([f"{number}-{number + len(parts) - 1}", surface, *"_" * 8]))
        for part in parts:
            lines.append("\t".join([str(number), part, *"_" * 8]))
            number += 1
    rules = Contractions.learn(Treebank.from_bytes("".join(f"{line}\n" for line in [*lines, ""]).encode()))
    assert Contractions.from_bytes(rules.to_bytes()) == rules
    rules.split([surface for surface, _ in tokens])


def test_learning_of_a_treebank_without_any() -> None:
    assert len(Contractions.learn(Treebank.of([[("a", "X")]]))) == 0


# Text ----------------------------------------------------------------------------------------------------------------


def test_ranges_are_written_and_read_again() -> None:
    text = tokenise_text(["Della casa, farlo.", "", "La casa della Anna"])
    trees = split_text(text, ITALIAN)
    expected = [
        "# sent_id = 1",
        "# text = Della casa, farlo.",
        "1-2 Della _ _ _ _ _ _ _ _",
        "1 Di _ _ _ _ _ _ _ _",
        "2 la _ _ _ _ _ _ _ _",
        "3 casa _ _ _ _ _ _ _ SpaceAfter=No",
        "4 , _ _ _ _ _ _ _ _",
        "5-6 farlo _ _ _ _ _ _ _ SpaceAfter=No",
        "5 far _ _ _ _ _ _ _ _",
        "6 lo _ _ _ _ _ _ _ _",
        "7 . _ _ _ _ _ _ _ _",
    ]
    assert trees.to_bytes().decode().replace("\t", " ").splitlines()[: len(expected)] == expected
    again = Treebank.from_bytes(trees.to_bytes())
    assert again.ranges.rows() == trees.ranges.rows() == [(0, 2, "Della"), (4, 6, "farlo"), (9, 11, "della")]
    assert again.ranges.misc == trees.ranges.misc == ("_", "SpaceAfter=No", "_")
    assert [again.words(k) for k in range(2)] == [trees.words(0), trees.words(2)]
    assert trees.words(1) == () and trees.line_of(7) == 3


def test_ranges_of_some_sentences() -> None:
    trees = split_text(Text.of(["della casa", "la casa", "a b del"]), ITALIAN)
    read = Treebank.from_bytes(trees.to_bytes())
    for treebank in (trees, read):
        assert treebank[1:].ranges.rows() == [(4, 6, "del")]
        assert treebank.take([2, 0, 0]).ranges.rows() == [(2, 4, "del"), (4, 6, "della"), (7, 9, "della")]
        assert treebank[1:2].ranges.rows() == []
    assert trees.take([2, 0, 0]).to_bytes() == read.take([2, 0, 0]).to_bytes()


def test_ranges_of_a_slice_of_text() -> None:
    text = tokenise_text(["la casa", "della casa.", "a b del"])[1:]
    trees = split_text(text, ITALIAN)
    assert trees.ranges.rows() == [(0, 2, "della"), (6, 8, "del")] and trees.comments("text") == (
        "della casa.",
        "a b del",
    )
    assert Treebank.from_bytes(trees.to_bytes()).ranges.rows() == trees.ranges.rows()


def test_predictions_stand_in_the_lines_of_words() -> None:
    trees = split_text(Text.of(["della casa"]), ITALIAN)
    tagged = trees.with_predictions(upos=["ADP", "DET", "NOUN"], heads=[3, 3, 0])
    lines = tagged.to_bytes().decode().replace("\t", " ").splitlines()
    assert lines[3:] == ["1-2 della _ _ _ _ _ _ _ _", "1 di _ ADP _ _ 3 _ _ _", "2 la _ DET _ _ 3 _ _ _",
                         "3 casa _ NOUN _ _ 0 _ _ _", ""]  # fmt: skip
    assert b"1-2" not in tagged.to_bytes("conllx")


def test_other_formats_have_no_ranges() -> None:
    assert Treebank.of([[("a", "X")]]).ranges.rows() == []
    assert Treebank.from_bytes(b"1\ta\t_\t_\t_\t_\t0\t_\n", format="conllx").ranges.rows() == []
    assert split_text(Text.of([]), ITALIAN).ranges.rows() == []


def test_nothing_to_split() -> None:
    text = Text.of(["la casa", ""])
    assert (
        split_text(text, ITALIAN).to_bytes() == split_text(text, None).to_bytes() == Treebank.from_text(text).to_bytes()
    )


def test_parts_that_do_not_fit_their_text() -> None:
    text, words = Text.of(["a b", "c"]), Text.of(["a b1 b2", "c"])
    Treebank.from_split(text, words, np.array([0, 1, 1, 2]))
    for wrong in ([0, 1, 1], [0, 1, 1, 1], [1, 0, 1, 2], [0, 1, 2, 2], [0, 0, 1, 3]):
        with pytest.raises(ParameterError, match="from_split"):
            Treebank.from_split(text, words, np.array(wrong))


# Bitexts -------------------------------------------------------------------------------------------------------------


def test_links_are_carried_there_and_back() -> None:
    bitext = Bitext.of([("la casa", "the house"), ("della casa", "of the house"), ("", ""), ("farlo", "zum Tor")])
    split = split_bitext(bitext[1:], ITALIAN, Contractions.of_language("de"))
    assert split.bitext[0] == (("di", "la", "casa"), ("of", "the", "house"))
    assert split.bitext[2] == (("far", "lo"), ("zu", "dem", "Tor"))
    assert [row.tolist() for row in split.source_words] == [[0, 0, 1], [], [0, 0]]
    assert split.bitext.line_of(0) == 2
    links = Links.of([{(0, 0), (0, 1), (1, 2)}, set(), {(0, 0)}])
    there = split.split_links(links)
    assert [row.links for row in there] == [
        {(0, 0), (1, 0), (0, 1), (1, 1), (2, 2)}, set(), {(0, 0), (0, 1), (1, 0), (1, 1)}
    ]  # fmt: skip
    back = split.surface_links(there)
    assert [row.links for row in back] == [row.links for row in links]
    assert there[0].source == ("di", "la", "casa") and back[0].source == ("della", "casa")


SIDES = st.lists(st.sampled_from(["della", "farlo", "casa", "andarsene", "x"]), max_size=4)


@settings(deadline=None)
@given(st.data())
def test_links_are_carried_as_by_hand(data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(SIDES, SIDES), max_size=4))
    split = split_bitext(Bitext.of(pairs), ITALIAN, ITALIAN)
    rows, expected = [], []
    for source, target in pairs:
        cells = [(i, j) for i in range(len(source)) for j in range(len(target))]
        row = data.draw(st.sets(st.sampled_from(cells))) if cells else set()
        places = []
        for words in (source, target):
            sizes = [len(parts) for parts in ITALIAN.split(words)]
            places.append([range(sum(sizes[:k]), sum(sizes[: k + 1])) for k in range(len(words))])
        rows.append(row)
        expected.append({(a, b) for i, j in row for a in places[0][i] for b in places[1][j]})
    links = Links.of(rows)
    there = split.split_links(links)
    assert [row.links for row in there] == expected
    assert [row.links for row in split.surface_links(there)] == rows


def test_probabilities_and_possible_links() -> None:
    split = split_bitext(Bitext.of([("della", "of the")]), ITALIAN)
    links = Links(
        np.array([0, 3]), np.array([0, 0, 1], np.int32), np.array([0, 1, 1], np.int32),
        np.array([0.5, 0.2, 0.7], np.float32), np.array([True, True, False]),
    )  # fmt: skip
    back = split.surface_links(links)
    assert back[0].links == {(0, 1)} and back[0].possible == {(0, 0)}
    assert back.probability is not None and back.probability.tolist() == pytest.approx([0.5, 0.7])
    there = split.split_links(back)
    assert there.probability is not None and there.probability.tolist() == pytest.approx([0.5, 0.7, 0.5, 0.7])
    assert there.possible is not None and there.possible.tolist() == [True, False, True, False]


def test_links_of_something_else() -> None:
    split = split_bitext(Bitext.of([("della casa", "x")]), ITALIAN)
    with pytest.raises(LinksError, match="links of 2 pairs were given for 1"):
        split.split_links(Links.of([set(), set()]))
    with pytest.raises(LinksError, match="pair 1: a link has source word 2, but there are 2, counted from 0"):
        split.split_links(Links.of([{(2, 0)}]))
    split.surface_links(Links.of([{(2, 0)}]))
    with pytest.raises(LinksError, match="target word 1, but there are 1"):
        split.surface_links(Links.of([{(0, 1)}]))


# Languages -----------------------------------------------------------------------------------------------------------

SAID = {
    "es": "El gobierno de la región dijo que no hay más dinero para los niños y que las obras se harán en el año .",
    "it": "Il governo della regione ha detto che non ci sono più soldi per i bambini e che le opere si faranno .",
    "pt": "O governo da região disse que não há mais dinheiro para as crianças e que as obras se fazem em um ano .",
    "fr": "Le gouvernement de la région a dit qu' il n' y a plus d' argent pour les enfants et que cela est ainsi .",
    "cs": "Vláda řekla , že se to stane , ale že je to na nich a že by si to měli jen před tím a po tom jako jsou .",
}


@pytest.mark.parametrize("language", SAID)
def test_languages(language: str) -> None:
    assert guess_language(Text.of([SAID[language]] * 8)) == language


@pytest.mark.parametrize(
    "sentence",
    [
        "Guvernul a spus că nu mai sunt bani pentru copii și că lucrările se vor face în acest an .",
        "In principio erat verbum et verbum erat apud deum et deus erat verbum quod non est de hoc mundo .",
        "Lo govèrn de la region a dich que i a pas mai d' argent per los enfants e que las òbras son per l' an .",
        "Vláda povedala , že sa to stane , ale že je to na nich a že by si to mali len pred tým a po tom ako sú .",
        "De regering van de regio zei dat er geen geld meer is voor de kinderen en dat het werk in het jaar komt .",
        "al del al del al del",
        "1 2 3 , .",
    ],
)
def test_languages_that_we_have_no_list_of(sentence: str) -> None:
    assert guess_language(Text.of([sentence] * 8)) is None


def test_little_text_is_of_no_language() -> None:
    assert guess_language(Text.of(["la casa"])) is None and guess_language(Text.of([])) is None


# On treebanks --------------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="needs treebanks in ISOGLOSS_DATA")
@pytest.mark.parametrize(
    ("language", "name", "precision", "recall"),
    [
        ("de", "de-gsd/dev", 100.0, 100.0),
        ("fr", "partut/fr.dev", 90.0, 100.0),
        ("it", "partut/it.dev", 99.0, 100.0),
        ("es", "es-gsd/dev", 98.0, 99.0),
        ("el", "el-gdt/dev", 100.0, 100.0),
    ],
)
def test_quality(language: str, name: str, precision: float, recall: float) -> None:
    found = quality(Contractions.of_language(language), Treebank.read(DATA / f"{name}.conllu.gz"))
    assert found[0] >= precision and found[1] >= recall, found


def quality(rules: Contractions, gold: Treebank) -> tuple[float, float]:
    """Precision and recall of split words with the right parts, in percent."""
    ranges = {first: (stop, form) for first, stop, form in gold.ranges.rows()}
    right = found = wanted = 0
    for sentence in range(len(gold)):
        words, start = gold.words(sentence), int(gold.offsets[sentence])
        surface, parts, at = [], [], 0
        while at < len(words):
            stop, form = ranges.get(start + at, (start + at + 1, words[at]))
            surface.append(form)
            parts.append(tuple(words[at : stop - start]))
            at = stop - start
        for ours, theirs in zip(rules.split(surface), parts, strict=True):
            found += len(ours) > 1
            wanted += len(theirs) > 1
            right += len(ours) > 1 and [w.lower() for w in ours] == [w.lower() for w in theirs]
    return 100 * right / found, 100 * right / wanted


# The command ---------------------------------------------------------------------------------------------------------


def test_command(isogloss: Call, tmp_path: Path) -> None:
    (tmp_path / "text.it").write_text("La porta della casa .\n\n" + f"{SAID['it']}\n" * 8, encoding="utf-8")
    answer = isogloss("split", tmp_path / "text.it", "-o", tmp_path / "out.conllu")
    assert answer.status == 0 and "split as those of it" in answer.err and "1 empty line has no place" in answer.err
    assert "10 sentences, 181 words, of which 9 were split: 190 words of trees" in answer.err
    trees = Treebank.read(tmp_path / "out.conllu")
    assert trees.words(0) == ("La", "porta", "di", "la", "casa", ".") and trees.ranges.forms[0] == "della"
    assert trees.comments("text")[0] == "La porta della casa ."
    kept = isogloss("split", tmp_path / "text.it", "--contractions", "none", "-q")
    assert kept.status == 0 and "1-2" not in kept.out and "3\tdella\t" in kept.out
    german = isogloss("split", tmp_path / "text.it", "--contractions", "de", "-q")
    assert "della" in german.out and "3-4" not in german.out


def test_command_with_a_treebank_to_learn_from(isogloss: Call, tmp_path: Path) -> None:
    (tmp_path / "train.conllu").write_bytes(conllu("1-2:della 1:di 2:la").to_bytes())
    (tmp_path / "text.txt").write_text("della del\n", encoding="utf-8")
    answer = isogloss("split", tmp_path / "text.txt", "--contractions", tmp_path / "train.conllu", "-q")
    assert "1-2\tdella" in answer.out and "3\tdel\t" in answer.out


def test_command_that_is_wrong(isogloss: Call, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("della del\n", encoding="utf-8")
    unsure = isogloss("split", tmp_path / "text.txt")
    assert unsure.status == 0 and "in none of the languages" in unsure.err and "1\tdella" in unsure.out
    unknown = isogloss("split", tmp_path / "text.txt", "--contractions", "nl")
    assert unknown.status == 2 and "there is no list of 'nl', but of ca, cs" in unknown.err
    missing = isogloss("split", tmp_path / "text.txt", "--contractions", tmp_path / "no.tsv")
    assert missing.status == 2 and "no such file" in missing.err
    (tmp_path / "trees.conllu").write_bytes(conllu("1:a").to_bytes())
    treebank = isogloss("split", tmp_path / "trees.conllu")
    assert treebank.status == 2 and "says itself what a word is" in treebank.err
