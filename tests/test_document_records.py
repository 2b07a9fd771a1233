"""JSON lines and tables of documents: what is read, and what is refused in which words."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from isogloss.data import Documents
from isogloss.data.formats import IsoglossWarning
from isogloss.data.formats.document_records import read_document_tables, read_json_documents
from isogloss.errors import DocumentsError, UsageError


def written(folder: Path, name: str, text: str) -> Path:
    place = folder / name
    place.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return place


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def test_one_id_in_several_languages_is_one_document(tmp_path: Path) -> None:
    place = written(
        tmp_path, "docs.jsonl.gz",
        lines(
            {"id": "a", "date": "2011-03", "language": "en", "text": "The house, red.\nOld.", "links": ["b"]},
            {"id": "a", "language": "de", "text": "Das Haus", "links": ["b", "c"], "other": 1},
            {"id": "b", "date": 2010, "language": "de", "text": "Buch"},
            {"id": "c", "date": None, "language": "en", "text": ""},
        ) + "\n",
    )  # fmt: skip
    for documents in (read_json_documents(place), Documents.read(place)):
        assert documents.ids == ("a", "b", "c") and documents.languages == ("en", "de")
        assert documents[0].words == {"en": ("The", "house", ",", "red", ".", "Old", "."), "de": ("Das", "Haus")}
        assert documents.dates is not None
        assert [str(day) for day in documents.dates] == ["2011-03-01", "2010-01-01", "NaT"]
        assert documents.links.tolist() == [[0, 1], [0, 2]]
        assert documents.present.tolist() == [[True, True], [False, True], [False, False]]
    assert read_json_documents(place, tokenise="space")[0].words["en"][1] == "house,"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"id": "a", "text": "x"}\n\n{"id": "b", "text": \n', r"line 3: this is not JSON \(Expecting value"),
        ("[1]\n", "line 1: an object with id, date, language, text, links is needed"),
        ('{"text": "x"}', "line 1: there is no 'id'"),
        ('{"id": "a"}', "line 1: there is no 'text'"),
        ('{"id": "", "text": "x"}', "line 1: the id is empty"),
        ('{"id": true, "text": "x"}', "line 1: the id should be a string, not 'true'"),
        ('{"id": 1, "text": 2}', "line 1: text should be a string"),
        ('{"id": 1, "text": "x", "language": 3}', "line 1: language should be a string"),
        ('{"id": 1, "text": "x", "links": "b"}', "line 1: links should be a list of ids"),
        ('{"id": 1, "text": "x", "date": "last week"}', "line 1: 'last week' is not a date: write 2011, 2011-03"),
        ('{"id": 1, "text": "x", "date": "2011-13-01"}', "line 1: '2011-13-01' is not a date"),
        ('{"id": 1, "text": "x", "date": [2011]}', "line 1: the date should be a string"),
        ('{"id": 1, "text": "x"}\n{"id": "1", "text": "y"}', "line 2: the id '1' is that of line 1 already"),
        (
            '{"id": 1, "text": "x", "language": "en"}\n{"id": 1, "text": "y", "language": "en"}',
            "line 2: the id '1' is that of line 1 already in the language 'en'",
        ),
        (
            '{"id": 1, "text": "x", "language": "en", "date": "2011"}\n'
            '{"id": 1, "text": "y", "language": "de", "date": "2012"}',
            "line 2: '1' is of 2012-01-01, but on line 1 it is of 2011-01-01",
        ),
        ("\n\n", "there is no document in it"),
        ("[" * 100_000, "line 1: this is not JSON"),
    ],
)  # fmt: skip
def test_bad_json_names_its_line(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentsError, match=words) as found:
        read_json_documents(written(tmp_path, "docs.jsonl", text))
    assert "docs.jsonl" in str(found.value)


def test_links_to_documents_that_are_not_there_are_counted(tmp_path: Path) -> None:
    place = written(
        tmp_path, "docs.jsonl", lines({"id": "a", "text": "x", "links": ["b", "z", "y"]}, {"id": "b", "text": ""})
    )
    with pytest.warns(IsoglossWarning, match=r"2 links with an id that no document has \('z' on line 1\) left out"):
        assert read_json_documents(place).links.tolist() == [[0, 1]]


def test_tables(tmp_path: Path) -> None:
    nodes = written(tmp_path, "nodes.tsv.gz", "a\t2001\tThe house\nb\t\tA\tbook\r\n\nc\t2003-05-06\t\n")
    edges = written(tmp_path, "edges.tsv", "b\ta\nc\ta\nb\ta\n")
    documents = read_document_tables(nodes, edges)
    assert documents.ids == ("a", "b", "c") and documents.links.tolist() == [[1, 0], [2, 0]]
    assert documents[1].words == {"": ("A", "book")} and documents[1].date is None
    assert str(documents[2].date) == "2003-05-06" and not documents[2].words
    assert read_document_tables(nodes).links.tolist() == []
    assert read_document_tables(written(tmp_path, "undated", "a\t\tx\n")).dates is None


@pytest.mark.parametrize(
    ("nodes", "edges", "words"),
    [
        ("a\t2001\tx\nb 2001 x\n", "", r"nodes, line 2: 1 column in 'b 2001 x'; a line is id TAB date TAB text"),
        ("a\tsoon\tx\n", "", "nodes, line 1: 'soon' is not a date"),
        ("a\t2001\tx\na\t2001\ty\n", "", "nodes, line 2: the id 'a' is that of line 1 already"),
        ("\t2001\tx\n", "", "nodes, line 1: the id is empty"),
        ("", "", "nodes: there is no document in it"),
        ("a\t2001\tx\n", "a\n", "edges, line 1: 'a' is not two ids with a tab between them"),
        ("a\t2001\tx\n", "p\tq\nq\tp\n", "edges: no line has two ids of .*nodes; line 1 names 'p'"),
    ],
)
def test_bad_tables_name_their_line(nodes: str, edges: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentsError, match=words):
        read_document_tables(written(tmp_path, "nodes", nodes), written(tmp_path, "edges", edges))


def test_links_of_tables_that_lead_elsewhere_are_counted(tmp_path: Path) -> None:
    nodes, edges = written(tmp_path, "nodes", "a\t2001\tx\nb\t2002\ty\n"), written(tmp_path, "edges", "b\ta\nb\tz\n")
    with pytest.warns(IsoglossWarning, match=r"edges: 1 link with an id that no document has \('z' on line 2\)"):
        assert read_document_tables(nodes, edges).links.tolist() == [[1, 0]]


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_json_documents(tmp_path / "none.jsonl")


def test_the_archive_is_as_it_is_described() -> None:
    from isogloss import samples

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        documents = samples.documents("archive")
    assert len(documents) == 48 and documents.dates is not None
    later, earlier = documents.links.T
    assert len(documents.links) == 81 and (documents.dates[later] > documents.dates[earlier]).all()
    assert np.all(np.diff(documents.dates.astype(np.int64)) >= 0)
