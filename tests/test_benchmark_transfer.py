"""What the benchmarks of transferred parsers reckon with."""

from __future__ import annotations

import pytest
from benchmarks.quality import several_sources, transfer, transfer_grammar
from benchmarks.quality.transfer_bible import scored_verses, verse
from benchmarks.quality.transfer_curves import worth

from isogloss.data import Treebank
from isogloss.tasks.transfer import DelexicalisedParser, TransferredParser


@pytest.mark.parametrize(
    ("points", "reached", "wanted"),
    [
        ([(10, 50.0), (100, 70.0)], 60.0, "32"),
        ([(100, 70.0), (10, 50.0)], 70.0, "more than 100"),
        ([(10, 50.0), (100, 70.0)], 49.0, "fewer than 10"),
        ([(10, 50.0), (30, 49.0), (100, 70.0)], 50.0, "32"),
    ],
)
def test_a_score_is_worth_the_trees_where_the_curve_reaches_it(
    points: list[tuple[int, float]], reached: float, wanted: str
) -> None:
    assert worth(points, reached) == wanted


def test_verses_that_are_scored_are_known_by_their_names() -> None:
    assert (verse("MATT_5.1"), verse("ROM_2.11"), verse("1.49.2")) == ("MAT 5:1", "ROM 2:11", "")
    gold = Treebank.of([[{"form": "videns", "misc": "Ref=MATT_5.1"}, {"form": "a", "misc": "Gloss=x|ref=JOHN_1.2"}]])
    assert scored_verses(gold) == {"MAT 5:1", "JHN 1:2"}


def test_options_of_all_methods_make_sense() -> None:
    for settings in (transfer.METHODS | transfer.CHOICES).values():
        options = {name: value for name, value in settings.items() if name not in ("dictionary", "trees")}
        TransferredParser(**options).check_params()
    for given in transfer_grammar.METHODS.values():
        assert given is None or TransferredParser(**given).learns_grammar
        TransferredParser(**(given or {})).check_params()
    for options in several_sources.METHODS.values():
        DelexicalisedParser(**options).check_params()


def test_neighbours_are_heads() -> None:
    text = Treebank.of([[("a", "X"), ("b", "X"), ("c", "X")], [("d", "X")]])
    assert transfer_grammar.neighbours(text, -1).heads.tolist() == [0, 1, 2, 0]
    assert transfer_grammar.neighbours(text, 1).heads.tolist() == [2, 3, 0, 0]
