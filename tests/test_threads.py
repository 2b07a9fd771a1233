"""Threads through documents: graph, weights, draws, what is kept, the command and the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from isogloss import cli, samples, show
from isogloss.data import Documents
from isogloss.errors import DataError, DocumentsError, ModelError, ParameterError, UsageError
from isogloss.tasks.documents.lexrank import lexrank
from isogloss.tasks.documents.thread_graph import thread_graph, word_vectors
from isogloss.tasks.documents.threads import Threads
from isogloss.testing import check_estimator

ARCHIVE = samples.documents("archive")
STORY = {name: name.partition("-")[0] for name in ARCHIVE.ids or ()}


def planted(stories: int = 4, length: int = 6, noise: int = 60, seed: int = 0) -> tuple[Documents, np.ndarray]:
    """Stories whose documents share words with the one before and after, strong ones first, among documents at random;
    and the number of each document's story, −1 for none."""
    rng = np.random.default_rng(seed)
    texts, days, story = [], [], []
    for one in range(stories):
        for t in range(length):
            words = [f"s{one}w{k}" for k in range(2 * t, 2 * t + 6 - (one > 0))] + [f"s{one}"] * 2
            texts.append(" ".join([*words, *(f"n{k}" for k in rng.integers(0, 80, 4))]))
            days.append(np.datetime64("2001-01-01") + 30 * t + one)
            story.append(one)
    for _ in range(noise):
        texts.append(" ".join(f"n{k}" for k in rng.integers(0, 80, 10)))
        days.append(np.datetime64("2001-01-01") + int(rng.integers(0, 30 * length)))
        story.append(-1)
    order = rng.permutation(len(texts))
    made = Documents.of([texts[k] for k in order], dates=[str(days[k]) for k in order])
    return made, np.array(story)[order]


# --- LexRank ----------------------------------------------------------------------------------------------------------


def test_lexrank_solves_its_equation() -> None:
    rng = np.random.default_rng(0)
    graph = rng.random((7, 7)) * (rng.random((7, 7)) < 0.5)
    graph[3] = 0.0
    for weighted, threshold in ((True, 0.0), (False, 0.3)):
        kept = np.where(graph >= threshold, graph, 0.0)
        kept = kept if weighted else (kept > 0).astype(float)
        out = kept.sum(axis=1, keepdims=True)
        steps = np.where(out > 0, kept / np.where(out > 0, out, 1), 1 / 7)
        exact = np.linalg.solve(np.eye(7) - 0.85 * steps.T, np.full(7, 0.15 / 7))
        assert lexrank(graph, weighted=weighted, threshold=threshold) == pytest.approx(exact, abs=1e-9)
    assert lexrank(graph).sum() == pytest.approx(1.0)
    assert lexrank(np.ones((3, 3)), damping=0.0).tolist() == pytest.approx([1 / 3] * 3)
    for wrong in ({"damping": 1.0}, {"threshold": -1.0}, {"iterations": 0}, {"tolerance": 0.0}):
        with pytest.raises(ParameterError, match="lexrank"):
            lexrank(graph, **wrong)
    with pytest.raises(ParameterError, match="square"):
        lexrank(-graph)


# --- the graph --------------------------------------------------------------------------------------------------------


def test_links_lead_from_what_is_linked_and_those_against_time_are_counted() -> None:
    texts = ["a b", "a b", "a c", "a c", "zz"]
    documents = Documents.of(
        texts, ids=list("pqrst"), dates=["2001", "2002", "2002", None, "2004"],
        links=[("q", "p"), ("p", "r"), ("q", "q"), ("r", "q"), ("q", "r"), ("s", "p"), ("p", "s")],
    )  # fmt: skip
    options = Threads(min_documents=1, max_share=1.0)
    graph = thread_graph(documents, options)
    # p -> q; q and r, of one year, link to each other, and so do p and s, of no date: the order of the file decides
    assert graph.edges.tolist() == [[0, 1], [0, 3], [1, 2]]
    assert graph.left_out.against_time == 1 and graph.left_out.to_itself == 1 and graph.left_out.in_circles == 2
    assert graph.left_out.undated == 1 and graph.left_out.alone == 1 and graph.left_out.duplicates == 2
    assert len(thread_graph(documents, options.set_params(revisit=True)).edges) == 5
    assert "1 link to a later document left out" in graph.left_out.words()


def test_similar_documents_are_followed_forward_in_time() -> None:
    vectors = word_vectors(ARCHIVE)
    graph = thread_graph(ARCHIVE, Threads(links="similar", successors=4, least_similarity=0.15))
    first, then = graph.edges.T
    assert ARCHIVE.dates is not None and (ARCHIVE.dates[first] < ARCHIVE.dates[then]).all()
    assert np.bincount(first).max() <= 4 and graph.edge_weights.min() >= 0.15
    cosine = (vectors @ vectors.T).toarray()
    assert graph.edge_weights == pytest.approx(cosine[first, then])
    assert graph.node_weights.max() == 1.0 and graph.node_weights.min() > 0
    alone = thread_graph(replace(ARCHIVE, dates=None), Threads(links="similar", least_similarity=0.15))
    assert (alone.edges[:, 0] < alone.edges[:, 1]).all()  # without dates, in the order of the file


def test_features_are_neighbours_or_words_of_length_one() -> None:
    few = ARCHIVE.take(np.arange(12))
    empty = replace(few, texts=tuple(text.take([0, 1]) for text in few.texts), ids=("a", "b"), dates=None)
    assert len(empty) == 2
    for features in ("neighbours", "words"):
        made = thread_graph(ARCHIVE, Threads(features=features, dimensions=5000)).features
        assert np.linalg.norm(made, axis=1) == pytest.approx(np.ones(48))
    documents = Documents.of(["a b", "a b", "", "a"], dates=["2001", "2002", "2003", "2004"])
    graph = thread_graph(documents, Threads(min_documents=1, max_share=1.0, links="similar"))
    assert not graph.features[2].any() and graph.left_out.empty == 1


def test_what_no_graph_can_be_made_of() -> None:
    with pytest.raises(DocumentsError, match="no word is in 3 documents and in at most 25%"):
        Threads().fit(Documents.of(["a b", "c d"]))
    with pytest.raises(DocumentsError, match="there are no links"):
        Threads(links="given").fit(replace(ARCHIVE, links=np.zeros((0, 2), np.int64)))
    with pytest.raises(ParameterError, match="Documents are needed"):
        Threads().fit(["a b"])  # type: ignore[arg-type]
    with pytest.raises(DocumentsError, match="there are no documents"):
        Threads().fit(Documents.of([]))


# --- drawing ----------------------------------------------------------------------------------------------------------


def test_threads_are_paths_in_time_order_and_as_many_as_asked() -> None:
    threads = Threads(3, 4, beta=1.0).fit(ARCHIVE)
    edges = set(map(tuple, threads.graph_.edges.tolist()))
    for found in threads.predict(range(4)):
        assert len(set(found.threads)) == 3
        for path, days in zip(found.threads, found.dates, strict=True):
            assert len(path) == 4 and all(step in edges for step in pairwise(path)) and list(days) == sorted(days)
        assert list(found.weights) == sorted(found.weights, reverse=True)
        assert found.log_determinant <= threads.process.log_bound()
    assert threads.predict([5]) == threads.predict([5]) and len(threads.predict([])) == 0
    with pytest.raises(ParameterError, match="a seed should be"):
        threads.predict([-1])


def test_each_thread_tells_one_of_the_stories() -> None:
    threads = Threads(4, 5).fit(ARCHIVE)
    (found,) = threads.predict([0])
    told = sorted(sorted({STORY[name] for name in path}) for path in found.ids)
    assert told == [["bridge"], ["fever"], ["museum"], ["wind"]]
    assert found.coherence > 20 and found.overlap < 15


def test_options_of_drawing_may_be_changed_without_a_new_graph() -> None:
    threads = Threads(2, 3).fit(ARCHIVE)
    graph = threads.graph_
    assert len(threads.set_params(k=4, length=2).predict()[0]) == 4 and threads.graph_ is graph
    shorter = threads.set_params(shorter=True, length=5, beta=0.0).sample(np.random.default_rng(1))
    assert all(1 <= len(path) <= 5 for path in shorter.threads)
    apart = threads.set_params(disjoint=True, shorter=False, length=3, beta=2.0)
    for seed in range(5):
        used = [row for path in apart.sample(np.random.default_rng(seed)).threads for row in path]
        assert len(set(used)) == len(used)


def test_more_samples_have_a_larger_determinant() -> None:
    threads = Threads(3, 4, samples=1).fit(ARCHIVE)
    single = np.mean([found.log_determinant for found in threads.predict(range(10))])
    many = np.mean([found.log_determinant for found in threads.set_params(samples=20).predict(range(10))])
    assert many > single


def test_beta_makes_threads_better_and_the_constant_makes_them_differ() -> None:
    def mean(threads: Threads, **options: Any) -> tuple[float, float]:
        threads.set_params(**{"constant": 0.0} | options)
        rng = np.random.default_rng(0)
        drawn = [threads.sample(rng) for _ in range(100)]
        return float(np.mean([found.weights for found in drawn])), float(np.mean([found.overlap for found in drawn]))

    threads = Threads(4, 4).fit(ARCHIVE)
    low, middle, high = (mean(threads, beta=beta) for beta in (1.0, 4.0, 12.0))
    assert low[0] < middle[0] < high[0] and low[1] < middle[1] < high[1]  # quality rises, diversity falls
    noisy = Threads(4, 4, min_documents=1, neighbours=8).fit(planted()[0])
    assert mean(noisy, beta=0.0, constant=3.0)[1] < mean(noisy, beta=0.0)[1] - 2


def test_planted_stories_are_found_and_alone_the_strongest_is_told_again() -> None:
    documents, story = planted()
    threads = Threads(4, 4, min_documents=1, neighbours=8, node_weight=0.5, beta=8.0, constant=0.0).fit(documents)
    rng = np.random.default_rng(0)

    def told(sets: list[Any]) -> tuple[float, float]:
        """Share of threads within one story; mean number of stories that a set has whole threads of."""
        whole = [[set(story[list(path)].tolist()) for path in found.threads] for found in sets]
        pure = [[next(iter(one)) for one in each if len(one) == 1 and -1 not in one] for each in whole]
        return sum(map(len, pure)) / (4 * len(sets)), float(np.mean([len(set(each)) for each in pure]))

    together, alone = (told([draw(rng) for _ in range(40)]) for draw in (threads.sample, threads.independent))
    assert together[0] > 0.9 and together[1] > 2.7  # of four
    assert alone[0] > 0.9 and alone[1] < 1.7


def test_subsets_without_threads() -> None:
    threads = Threads().fit(ARCHIVE)
    assert len(set(threads.subset(6))) == 6 and set(threads.subset(6)) <= set(ARCHIVE.ids or ())
    assert threads.subset(6, seed=1) == threads.subset(6, seed=1)
    assert 0 < len(threads.subset()) < 48


def test_threads_that_cannot_be() -> None:
    threads = Threads(2, 20).fit(ARCHIVE)
    with pytest.raises(DataError, match=r"no thread has 20 documents; the longest way along the links has 1[0-9]. Ask"):
        threads.predict()
    assert threads.set_params(shorter=True).predict()[0].threads
    with pytest.raises(DataError, match=r"k = 60 threads are asked for, .* at most 4[0-9] can be unlike each other"):
        threads.set_params(k=60, length=2, shorter=False).predict()
    with pytest.raises(DataError, match="1000 sets of threads in a row were turned down"):
        threads.set_params(k=16, length=4, disjoint=True, beta=6.0, samples=1).predict()


# --- keeping ----------------------------------------------------------------------------------------------------------


def test_threads_keep_the_laws_of_estimators() -> None:
    check_estimator(
        lambda **more: Threads(**{"k": 2, "length": 3, "samples": 2, "dimensions": 8, **more}),
        lambda threads: threads.fit(ARCHIVE),
        [0, 1],
        empty=[],
        other_fit=lambda threads: threads.fit(ARCHIVE[:30]),
    )


def test_damaged_graphs_are_refused(tmp_path: Path) -> None:
    from isogloss import store

    threads = Threads(2, 3).fit(ARCHIVE)
    threads.save(tmp_path / "m")
    saved = store.read(tmp_path / "m")
    edges = saved.arrays["edges"]
    for wrong in (edges + 48, -edges - 1, np.vstack([edges, edges[:1]])):
        arrays = saved.arrays | {"edges": wrong}
        arrays["edge_weights"] = np.resize(arrays["edge_weights"], len(wrong))
        with pytest.raises(ModelError):
            Threads._from_saved(replace(saved, arrays=arrays))


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    nodes, edges = tmp_path / "nodes.tsv", tmp_path / "edges.tsv"
    rows = [ARCHIVE[k] for k in range(len(ARCHIVE))]
    nodes.write_text("".join(f"{one.id}\t{one.date}\t{' '.join(one.words['en'])}\n" for one in rows))
    edges.write_text("".join(f"{one.id}\t{to}\n" for one in rows for to in one.links))
    return nodes, edges


def test_json_lines_and_tables_give_the_same_threads(
    tables: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    docs = str(samples.write("archive", tmp_path)[0])
    nodes, edges = map(str, tables)
    out, page = str(tmp_path / "threads.json"), str(tmp_path / "page.html")
    asked = ["-k", "4", "--length", "5", "--seed", "0"]
    assert cli.main(["threads", "--documents", nodes, "--links", edges, *asked, "-o", out, "--page", page]) == 0
    said = capfd.readouterr()
    assert said.out == "" and "4 threads of 5 documents through 48, 81 links" in said.err
    found = json.loads(Path(out).read_text())
    assert [len(thread["documents"]) for thread in found["threads"]] == [5] * 4
    assert found["options"]["k"] == 4 and found["documents"] == 48 and found["left_out"]["against_time"] == 0
    assert cli.main(["threads", docs, *asked, "--save", str(tmp_path / "m"), "-q"]) == 0
    again = json.loads(capfd.readouterr().out)
    for one, other in zip(found["threads"], again["threads"], strict=True):
        assert [each["id"] for each in one["documents"]] == [each["id"] for each in other["documents"]]
    assert cli.main(["threads", "--model", str(tmp_path / "m"), *asked, "-q"]) == 0
    assert json.loads(capfd.readouterr().out)["threads"] == again["threads"]
    assert cli.main(["threads", "--model", str(tmp_path / "m"), "-k", "2", "--length", "3", "--text", "-q"]) == 0
    assert capfd.readouterr().out.count("──") == 2
    text = Path(page).read_text()
    assert text.count("<svg") == 1 and text.count('<li id="t') == 20 and "<script" not in text


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "give DOCS.jsonl, or --documents NODES.tsv"),
        (["DOCS", "--documents", "DOCS"], 2, "one of these"),
        (["DOCS", "--links", "DOCS"], 2, "--links goes with --documents"),
        (["DOCS", "--length", "30"], 1, "the longest way along the links has"),
        (["DOCS", "-k", "99", "--length", "2"], 1, "at most"),
        (["DOCS", "-k", "0"], 2, "-k"),
        (["DOCS", "--follow", "nothing"], 2, "links should be one of"),
        (["BAD"], 1, "line 2: 'soon' is not a date"),
        (["DOCS", "--beta", "-1"], 2, "beta"),
        (["--model", "M", "--neighbours", "4"], 2, "--neighbours belongs to the graph"),
        (["--model", "M", "--save", "N"], 2, "--save goes with documents"),
        (["DOCS", "-o", "DOCS"], 2, "read and written at once"),
        (["none.jsonl"], 2, "no such file"),
    ],
)  # fmt: skip
def test_what_the_command_refuses(
    arguments: list[str], status: int, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    docs, bad, model = tmp_path / "docs.jsonl", tmp_path / "bad.jsonl", tmp_path / "model"
    docs.write_bytes(samples.write("archive", tmp_path)[0].read_bytes())
    bad.write_text('{"id": 1, "text": "x"}\n{"id": 2, "text": "y", "date": "soon"}\n')
    if "--model" in arguments:
        Threads(2, 3).fit(ARCHIVE).save(model)
    place = {"DOCS": str(docs), "BAD": str(bad), "M": str(model), "N": str(tmp_path / "new")}
    assert cli.main(["threads", *(place.get(word, word) for word in arguments)]) == status
    said = " ".join(capfd.readouterr().err.split())
    assert words in said and "Traceback" not in said


# --- the page ---------------------------------------------------------------------------------------------------------


def test_pictures_are_well_formed_whatever_the_dates() -> None:
    (found,) = Threads(3, 4).fit(ARCHIVE).predict()
    record = found.as_dict()
    for dates in (None, "2001", "2001-05", "2001-02-29"):
        for thread in record["threads"]:
            for each in thread["documents"]:
                each |= {"date": dates, "id": "<&>"}
        picture = ElementTree.fromstring(show.threads_svg(record))
        assert len(picture.findall(".//{http://www.w3.org/2000/svg}circle")) == 12
        page = "".join(show.threads_page(record))
        assert "<&>" not in page and "http" not in re.sub(r'http-equiv|xmlns="[^"]*"', "", page)
    assert "".join(show.threads_page({"threads": []})).count("nothing to show") == 1
    assert show.threads_terminal({"threads": []}) == ""
    with pytest.raises(ParameterError, match="threads need documents with id and text"):
        show.threads_svg({"threads": [{"documents": [{"id": "a"}]}]})
    with pytest.raises(ParameterError, match="at least 20 columns"):
        show.threads_terminal(record, width=3)


def test_before_fit_nothing_is_drawn() -> None:
    for call in (lambda: Threads().predict(), lambda: Threads().subset(2), lambda: Threads().process):
        with pytest.raises(UsageError, match="call fit first"):
            call()
