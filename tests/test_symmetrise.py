"""Symmetrisation against a transcription of Moses' own procedure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data import Alignment, Links
from isogloss.errors import LinksError, ParameterError
from isogloss.tasks.align.symmetrise import METHODS, symmetrise, symmetrise_links


class _Scanned:
    """A sorted set whose iteration sees what is inserted after its place while it runs, as std::set does."""

    def __init__(self, points):
        self.points = set(points)

    def __iter__(self):
        last = (-1, -1)
        while True:
            later = [point for point in self.points if point > last]
            if not later:
                return
            last = min(later)
            yield last


def moses(forward, backward, n_source, n_target, method):
    """What symal does, with dense arrays, counting from 1, points as (target, source).

    `b[t]` is the source word of target word t in the forward direction, `a[s]` the target word of source word s in the
    backward one; 0 is null.
    """
    a, b = [0] * (n_source + 1), [0] * (n_target + 1)
    for s, t in forward:
        assert b[t + 1] == 0
        b[t + 1] = s + 1
    for s, t in backward:
        assert a[s + 1] == 0
        a[s + 1] = t + 1
    direct = [(a[s], s) for s in range(1, n_source + 1) if a[s]]
    inverse = [(t, b[t]) for t in range(1, n_target + 1) if b[t]]
    union = set(direct) | set(inverse)
    current = _Scanned(set(direct) & set(inverse))
    if method == "union":
        current = _Scanned(union)
    elif method != "intersection":
        label = dict.fromkeys(direct, -1)
        label.update(dict.fromkeys(inverse, 1))
        label.update(dict.fromkeys(current.points, 2))
        source_covered = {s for _, s in current.points}
        target_covered = {t for t, _ in current.points}
        neighbours = [(-1, 0), (0, -1), (1, 0), (0, 1)]
        if "diag" in method:
            neighbours += [(-1, -1), (-1, 1), (1, -1), (1, 1)]

        def add(point):
            current.points.add(point)
            label[point] = 2
            target_covered.add(point[0])
            source_covered.add(point[1])

        added = True
        while added:
            added = False
            for t, s in current:
                for dt, ds in neighbours:
                    near = (t + dt, s + ds)
                    if not (1 <= near[0] <= n_target and 1 <= near[1] <= n_source):
                        continue
                    if b[near[0]] != near[1] and a[near[1]] != near[0]:
                        continue
                    if not (near[0] in target_covered and near[1] in source_covered):
                        add(near)
                        added = True
        if "final" in method:
            for wanted in (1, -1):
                for t, s in sorted(union):
                    if label[t, s] != wanted:
                        continue
                    if method.endswith("-and"):
                        fits = t not in target_covered and s not in source_covered
                    else:
                        fits = not (t in target_covered and s in source_covered)
                    if fits:
                        add((t, s))
    return frozenset((s - 1, t - 1) for t, s in current.points)


@st.composite
def directions(draw, most=9):
    """Two functions between words, biased towards agreement so that there is something to grow from."""
    n_source, n_target = draw(st.integers(1, most)), draw(st.integers(1, most))
    b = draw(st.lists(st.integers(-1, n_source - 1), min_size=n_target, max_size=n_target))
    a = draw(st.lists(st.integers(-1, n_target - 1), min_size=n_source, max_size=n_source))
    for s in range(n_source):
        if draw(st.booleans()):  # let this source word point at a target word that points back
            a[s] = b.index(s) if s in b else a[s]
    forward = frozenset((s, t) for t, s in enumerate(b) if s >= 0)
    backward = frozenset((s, t) for s, t in enumerate(a) if t >= 0)
    return forward, backward, (n_source, n_target)


@settings(max_examples=300, deadline=None)
@given(directions(), st.sampled_from(METHODS))
def test_agrees_with_moses(case, method):
    forward, backward, shape = case
    assert symmetrise(forward, backward, shape, method) == moses(forward, backward, *shape, method)


@settings(max_examples=60, deadline=None)
@given(st.lists(directions(), max_size=6), st.sampled_from(METHODS))
def test_bulk_agrees_with_moses_pair_by_pair(cases, method):
    forward, backward = Links.of(f for f, _, _ in cases), Links.of(b for _, b, _ in cases)
    shapes = np.array([shape for _, _, shape in cases]).reshape(-1, 2)
    both = symmetrise_links(forward, backward, shapes, method)
    assert [row.links for row in both] == [moses(f, b, *shape, method) for f, b, shape in cases]
    rows = [
        list(zip(both.source[a:z].tolist(), both.target[a:z].tolist())) for a, z in zip(both.offsets, both.offsets[1:])
    ]
    assert rows == [sorted(row) for row in rows]


def test_bulk_agrees_with_moses_on_long_sentences():
    rng = np.random.default_rng(3)
    cases = []
    for _ in range(60):
        n_source, n_target = rng.integers(1, 50, 2).tolist()
        near = np.arange(n_target) * n_source // n_target + rng.integers(-2, 3, n_target)
        forward = {(int(s), t) for t, s in enumerate(near) if 0 <= s < n_source}
        near = np.arange(n_source) * n_target // n_source + rng.integers(-2, 3, n_source)
        backward = {(s, int(t)) for s, t in enumerate(near) if 0 <= t < n_target}
        cases.append((forward, backward, (n_source, n_target)))
    forward, backward = Links.of(f for f, _, _ in cases), Links.of(b for _, b, _ in cases)
    answers = {}
    for method in METHODS:
        answers[method] = [row.links for row in symmetrise_links(forward, backward, method=method)]
        assert answers[method] == [moses(f, b, *shape, method) for f, b, shape in cases]
    assert len({tuple(answer) for answer in answers.values()}) == len(METHODS), "the case tells all methods apart"


many_to_many = st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 4)), max_size=20)


@settings(max_examples=100, deadline=None)
@given(many_to_many, many_to_many)
def test_laws_on_any_links(forward, backward):
    result = {method: symmetrise(forward, backward, (7, 5), method) for method in METHODS}
    assert result["intersection"] == forward & backward
    assert result["union"] == forward | backward
    for links in result.values():
        assert result["intersection"] <= links <= result["union"]
    for grown in ("grow", "grow-diag"):
        assert result[grown] <= result[f"{grown}-final-and"]
        assert result[grown] <= result[f"{grown}-final"]
    final = result["grow-diag-final"]
    assert {s for s, _ in final} == {s for s, _ in result["union"]}, "final covers every word that has any link"
    assert {t for _, t in final} == {t for _, t in result["union"]}


# Written by the program itself (mosesdecoder, symal), for three pairs on which all its methods differ.
OFFICIAL = [
    {
        "shape": (9, 6),
        "forward": "0-0 2-1 2-2 3-3 5-5 7-4",
        "backward": "0-1 1-2 2-2 3-3 4-2 5-5 6-3 7-3",
        "intersection": "2-2 3-3 5-5",
        "union": "0-0 0-1 1-2 2-1 2-2 3-3 4-2 5-5 6-3 7-3 7-4",
        "grow": "1-2 2-1 2-2 3-3 5-5",
        "grow-final": "0-0 1-2 2-1 2-2 3-3 4-2 5-5 6-3 7-4",
        "grow-final-and": "0-0 1-2 2-1 2-2 3-3 5-5 7-4",
        "grow-diag": "0-0 0-1 1-2 2-1 2-2 3-3 4-2 5-5",
        "grow-diag-final": "0-0 0-1 1-2 2-1 2-2 3-3 4-2 5-5 6-3 7-4",
        "grow-diag-final-and": "0-0 0-1 1-2 2-1 2-2 3-3 4-2 5-5 7-4",
    },
    {
        "shape": (8, 7),
        "forward": "1-1 3-3 4-2 4-4 6-5 7-6",
        "backward": "0-0 1-2 2-1 3-3 4-3 5-4 6-6",
        "intersection": "3-3",
        "union": "0-0 1-1 1-2 2-1 3-3 4-2 4-3 4-4 5-4 6-5 6-6 7-6",
        "grow": "3-3 4-2 4-3 4-4 5-4",
        "grow-final": "0-0 1-1 2-1 3-3 4-2 4-3 4-4 5-4 6-5 7-6",
        "grow-final-and": "0-0 1-1 3-3 4-2 4-3 4-4 5-4 6-5 7-6",
        "grow-diag": "3-3 4-2 4-3 4-4 5-4 6-5 6-6 7-6",
        "grow-diag-final": "0-0 1-1 2-1 3-3 4-2 4-3 4-4 5-4 6-5 6-6 7-6",
        "grow-diag-final-and": "0-0 1-1 3-3 4-2 4-3 4-4 5-4 6-5 6-6 7-6",
    },
    {
        "shape": (5, 7),
        "forward": "0-2 0-4 1-3 2-1 3-5 4-6",
        "backward": "0-1 1-1 2-1 3-2",
        "intersection": "2-1",
        "union": "0-1 0-2 0-4 1-1 1-3 2-1 3-2 3-5 4-6",
        "grow": "0-1 0-2 1-1 2-1",
        "grow-final": "0-1 0-2 0-4 1-1 1-3 2-1 3-5 4-6",
        "grow-final-and": "0-1 0-2 1-1 2-1 3-5 4-6",
        "grow-diag": "0-1 1-1 2-1 3-2",
        "grow-diag-final": "0-1 0-4 1-1 1-3 2-1 3-2 3-5 4-6",
        "grow-diag-final-and": "0-1 1-1 2-1 3-2 4-6",
    },
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", OFFICIAL, ids=["9x6", "8x7", "5x7"])
def test_gives_what_the_official_program_wrote(case, method):
    links = {
        name: {tuple(map(int, link.split("-"))) for link in case[name].split()} for name in case if name != "shape"
    }
    assert symmetrise(links["forward"], links["backward"], case["shape"], method) == links[method]
    assert moses(links["forward"], links["backward"], *case["shape"], method) == links[method], "the oracle is right"


def test_direct_neighbours_need_grow_and_diagonal_ones_diag():
    # 1-0 is a straight neighbour of 0-0, and 1-1 of 1-0, once that is chosen
    forward, backward = {(0, 0), (1, 1)}, {(0, 0), (1, 0)}
    assert symmetrise(forward, backward, (2, 2), "grow") == {(0, 0), (1, 0), (1, 1)}
    assert symmetrise({(0, 0), (1, 1)}, {(0, 0)}, (2, 2), "grow") == {(0, 0)}
    assert symmetrise({(0, 0), (1, 1)}, {(0, 0)}, (2, 2), "grow-diag") == {(0, 0), (1, 1)}


def test_final_takes_the_forward_direction_first():
    # nothing in common, every link far from every other; 0-0 and 0-3 compete for source word 0 under final-and
    forward, backward = {(0, 3)}, {(0, 0)}
    assert symmetrise(forward, backward, (1, 4), "grow-diag-final-and") == {(0, 3)}
    assert symmetrise(backward, forward, (1, 4), "grow-diag-final-and") == {(0, 0)}
    assert symmetrise(forward, backward, (1, 4), "grow-diag-final") == {(0, 0), (0, 3)}


def test_final_goes_by_target_then_source():
    # three forward links; 4-0 is before 0-4 in target order, and shuts out 4-2 (same source word)
    forward = {(0, 4), (4, 0), (4, 2)}
    assert symmetrise(forward, set(), (5, 5), "grow-diag-final-and") == {(4, 0), (0, 4)}


def test_growth_scans_by_target_and_sees_what_it_adds():
    # from 1-1 the straight neighbours are (target - 1), (source - 1), (target + 1), (source + 1)
    forward, backward = {(1, 1), (2, 2)}, {(1, 1), (0, 0), (2, 1)}
    # 2-1 straight, then diagonal 0-0 and 2-2, each of which covers a new word
    assert symmetrise(forward, backward, (3, 3), "grow-diag") == {(1, 1), (2, 1), (0, 0), (2, 2)}
    # a chain that runs against the scan needs a round a link
    chain = {(k, k) for k in range(12)}
    assert symmetrise(chain, {(11, 11)}, (12, 12), "grow-diag") == chain
    assert symmetrise(chain, {(11, 11)}, (12, 12), "grow") == {(11, 11)}


def test_order_of_neighbours_decides_who_is_shut_out():
    # 1-1 is agreed and all four corners are in the union. As (target, source) the corners come in the order 0 0, 0 2,
    # 2 0, 2 2: the first covers two new words, the next two one each, and 2-2 finds both its words covered.
    forward, backward = {(1, 1), (0, 0), (2, 2)}, {(1, 1), (0, 2), (2, 0)}
    assert symmetrise(forward, backward, (3, 3), "grow-diag") == {(1, 1), (0, 0), (2, 0), (0, 2)}


def test_the_textbook_sentence():
    """The Spanish sentence by which Koehn explains growing; the directional links are ours."""
    target = ["Mary", "did", "not", "slap", "the", "green", "witch"]
    source = ["Maria", "no", "daba", "una", "bofetada", "a", "la", "bruja", "verde"]
    at = lambda s, t: (source.index(s), target.index(t))  # noqa: E731
    forward = {at("Maria", "Mary"), at("no", "not"), at("no", "did"), at("bofetada", "slap"), at("la", "the")}
    forward |= {at("verde", "green"), at("bruja", "witch")}
    backward = {at("Maria", "Mary"), at("no", "not"), at("daba", "slap"), at("una", "slap"), at("bofetada", "slap")}
    backward |= {at("la", "the"), at("a", "the"), at("verde", "green"), at("bruja", "witch")}
    agreed = symmetrise(forward, backward, (9, 7), "intersection")
    assert agreed == {(0, 0), (1, 2), (4, 3), (6, 4), (8, 5), (7, 6)}
    grown = symmetrise(forward, backward, (9, 7), "grow-diag-final-and")
    assert grown == agreed | {at("no", "did"), at("daba", "slap"), at("una", "slap"), at("a", "the")}


def test_swapping_languages_transposes_plain_combinations():
    forward, backward = {(0, 0), (1, 1), (1, 2)}, {(0, 0), (1, 1), (2, 2)}
    turn = lambda links: frozenset((t, s) for s, t in links)  # noqa: E731
    for method in ("intersection", "union"):
        straight = symmetrise(forward, backward, (3, 3), method)
        assert symmetrise(turn(backward), turn(forward), (3, 3), method) == turn(straight)


def test_rows_in_any_order_and_links_written_twice():
    indices = np.array([[2, 0, 1, 0, 1, 0], [2, 0, 1, 0, 0, 1]], np.int32)  # the first row has 0-0 twice
    untidy = Links(np.array([0, 4, 4, 6]), *indices)
    tidy = Links.of([{(0, 0)}, set(), {(0, 1)}])
    both = symmetrise_links(untidy, tidy, method="grow-diag")
    assert [str(row) for row in both] == ["0-0 1-1 2-2", "", "0-1 1-0"]
    assert both.source.dtype == both.target.dtype == np.int32 and both.offsets.dtype == np.int64


def test_alignment_and_possible_links():
    a, b = Alignment(frozenset({(0, 0), (1, 1)})), Alignment(frozenset({(0, 0)}), frozenset({(1, 1)}))
    assert str(a.symmetrise(b, "intersection")) == "0-0"
    assert [str(row) for row in symmetrise_links(Links.of([a]), Links.of([b]), method="intersection")] == ["0-0"]


def test_nothing_at_all():
    empty = Links.of([])
    assert len(symmetrise_links(empty, empty)) == 0
    assert symmetrise(set(), set(), (0, 0)) == frozenset()
    assert symmetrise(set(), {(1, 0)}, (2, 1), "grow-diag") == frozenset()


def test_errors_say_what_and_where():
    with pytest.raises(ParameterError, match=r"'gdfa'.*grow-diag-final-and"):
        symmetrise(set(), set(), (1, 1), "gdfa")
    with pytest.raises(LinksError, match=r"3 pairs .* 2 of"):
        symmetrise_links(Links.of([[], [], []]), Links.of([[], []]))
    with pytest.raises(LinksError, match=r"backward link 0-4 of pair 1 is outside its 2 source and 4 target"):
        symmetrise_links(Links.of([[], []]), Links.of([[], [(0, 4)]]), np.array([[9, 9], [2, 4]]))
    with pytest.raises(LinksError, match="shape"):
        symmetrise_links(Links.of([[]]), Links.of([[]]), np.array([1, 2]))
    with pytest.raises(LinksError, match="negative"):
        symmetrise({(-1, 0)}, {(0, 0)}, None, "grow-diag")
