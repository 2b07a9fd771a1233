"""Documents in several languages: rows, links, dates, pruning, files of lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isogloss.data import Documents
from isogloss.errors import DocumentsError, ParameterError


def some() -> Documents:
    rows = [{"en": "the house", "de": "das Haus"}, {"de": "ein Buch"}, {"en": "a book , a book"}]
    return Documents.of(
        rows, ids=["a", "b", "c"], dates=["2011", "2011-03-04", None], links=[("a", "b"), ("c", "a")]
    )  # fmt: skip


def test_a_document_has_its_languages_date_and_links() -> None:
    first = some()[0]
    assert (first.id, dict(first.words), first.links) == ("a", {"en": ("the", "house"), "de": ("das", "Haus")}, ("b",))
    assert first.date is not None and first.date.isoformat() == "2011-01-01"
    assert some()[2].date is None and "de" not in some()[2].words


def test_documents_that_are_taken_keep_their_ids_and_the_links_among_them() -> None:
    taken = some().take([2, 0])
    assert [taken.id_of(k) for k in range(2)] == ["c", "a"]
    assert taken.links.tolist() == [[0, 1]]
    assert some()[1:].links.tolist() == []
    assert some()[1:][0].words == {"de": ("ein", "Buch")}


def test_counts_are_those_of_words() -> None:
    documents = some()
    counts = documents.counts("en").toarray()
    types = documents.text("en").vocabulary
    assert counts[2, types.index_of("book")] == 2 and counts[1].sum() == 0
    assert counts.sum() == documents.text("en").n_words
    part = documents[2:]
    assert part.counts("en").toarray().tolist() == [counts[2].tolist()]


def test_pruning_drops_what_it_says() -> None:
    documents = Documents.of(["A b , c", "a b 12", "a d", ""])
    assert documents.pruned(lowercase=True, min_documents=2)[0].words == {"": ("a", "b")}
    assert documents.pruned(lowercase=True, max_share=0.7, letters=True)[0].words == {"": ("b", "c")}
    assert documents.pruned(lowercase=True, drop_frequent=2, letters=True)[0].words == {"": ("c",)}
    assert len(documents.pruned(min_documents=9)) == 4
    assert documents.pruned(min_documents=9).n_words == 0


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(DocumentsError, match="more than one document"):
        Documents.of(["a", "b"], ids=["x", "x"])
    with pytest.raises(DocumentsError, match="no document has that id"):
        Documents.of(["a"], ids=["x"], links=[("x", "y")])
    with pytest.raises(ParameterError, match="there is no language 'fr'; there is en, de"):
        some().text("fr")
    with pytest.raises(ValueError, match="not a date"):
        Documents.of(["a"], dates=["yesterday"])


def test_line_k_of_every_file_is_the_same_document(tmp_path: Path) -> None:
    (tmp_path / "en.txt").write_text("the house\n\na book\n")
    (tmp_path / "speech.de.txt").write_text("das Haus\nein Hund\n\n")
    documents = Documents.read(tmp_path / "en.txt", tmp_path / "speech.de.txt")
    assert documents.languages == ("en", "de")
    assert documents.present.tolist() == [[True, True], [False, True], [True, False]]
    (tmp_path / "fr.txt").write_text("la maison\n")
    with pytest.raises(DocumentsError, match="Was a line lost"):
        Documents.read(tmp_path / "en.txt", tmp_path / "fr.txt")


def test_documents_that_are_set_apart_keep_their_words_and_dates() -> None:
    first = Documents.of([{"en": "a b"}, {"en": ""}, {"en": "c"}], dates=["2011", None, "2012"])
    second = Documents.of([{"de": "x"}, {"de": "y z"}])
    found = Documents.apart(first, second)
    assert [dict(one.words) for one in found] == [{"en": ("a", "b")}, {}, {"en": ("c",)}, {"de": ("x",)},
                                                  {"de": ("y", "z")}]  # fmt: skip
    assert [one.date is None for one in found] == [False, True, False, True, True]
    with pytest.raises(DocumentsError, match="named twice"):
        Documents.apart(first, first)


def test_no_documents_are_documents() -> None:
    nothing = Documents.of([])
    assert len(nothing) == 0 and nothing.pruned().n_words == 0 and nothing.counts().shape == (0, 0)
    assert np.asarray(nothing.present).shape == (0, 1)
