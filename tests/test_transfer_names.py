"""Names carried over links: what arrives, what posteriors are asked for, and the command."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from isogloss import samples
from isogloss.cli import main
from isogloss.data import Bitext, Links, Mentions
from isogloss.errors import BitextError, MentionsError, ParameterError
from isogloss.learners.posterior import Together
from isogloss.metrics import score_entities
from isogloss.structures import FactoredChains
from isogloss.tasks.extract import EntityTagger
from isogloss.tasks.extract.labels import NameLabels
from isogloss.tasks.transfer.names import (
    WantedNames,
    carried_names,
    carried_types,
    expected_names,
    project_names,
    types_of_words,
)
from isogloss.tasks.transfer.names_options import ProjectedNamesOptions


def sample(side: str) -> Mentions:
    return samples.mentions("en-de", side).part(0, 50)


def bitext() -> Bitext:
    return Bitext(sample("source").text(), sample("target").text())


def test_types_of_words_are_sums_of_spans() -> None:
    rng = np.random.default_rng(0)
    n, longest, kinds = 5, 3, 2
    spans = np.zeros((n, longest, kinds))
    for begin, length, kind in product(range(n), range(1, longest + 1), range(kinds)):
        if begin + length <= n:
            spans[begin, length - 1, kind] = 0.05 * rng.random()
    found = types_of_words(spans)
    for t in range(n):
        for kind in range(kinds):
            covering = sum(
                spans[b, size - 1, kind] for b in range(n) for size in range(1, longest + 1) if b <= t < b + size
            )
            assert found[t, 1 + kind] == pytest.approx(covering)
    assert found.sum(axis=1) == pytest.approx(1.0)


def test_what_arrives_is_weighed_by_links() -> None:
    types = np.array([[0.2, 0.8], [1.0, 0.0]])
    links = np.array([[0.9, 0.5, 0.0], [0.3, 0.0, 0.0]])
    found = carried_types(types, links)
    assert found[0] == pytest.approx((0.9 * types[0] + 0.3 * types[1]) / 1.2)  # never more than certain
    assert found[1] == pytest.approx(0.5 * types[0])
    assert (found[2] == 0).all()  # nothing is known of words without links


def test_names_that_would_overlap_are_left_out() -> None:
    assert carried_names([(0, 1, "PER"), (1, 2, "LOC")], [(0, 0), (0, 2), (1, 1)]) == [(0, 3, "PER")]
    assert carried_names([(0, 1, "PER")], []) == []


def test_posteriors_come_to_what_is_asked() -> None:
    """Of words that are linked with certainty; those without links stay as they are."""
    labels, n = NameLabels(("LOC", "PER")), 4
    chains = FactoredChains([np.zeros((n, 5))], np.zeros((5, 5)))
    least = np.zeros((n, 3))
    least[0], least[2] = (0.1, 0.9, 0.0), (1.0, 0.0, 0.0)
    q = WantedNames(least, 1e4, 0.01).project(Together([chains])).q.members[0]
    tags = q.marginals()[0]
    assert labels.n_tags == 5
    assert tags[0, 1:3].sum() == pytest.approx(0.9, abs=1e-2)
    assert tags[2, 0] == pytest.approx(1.0, abs=1e-2)
    assert tags[1] == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("method", ["expectations", "hard"])
def test_names_are_learnt_without_annotation(method: str) -> None:
    source = EntityTagger(iterations=5).fit(samples.mentions("en-de", "source"))
    made = project_names(bitext(), source, method=method)
    score = score_entities(made.predict(bitext().target), sample("target"), bootstrap=0)
    assert set(made.types_) <= set(source.types_)
    assert score.f1 > 40


def test_the_objective_rises_and_words_without_links_are_found_by_their_likes() -> None:
    """Anna is linked in one sentence and not in the next, and is a name in both."""
    text = Mentions.of([(["Anna", "kommt", "heute"], []), (["dort", "wohnt", "Anna", "gern"], [])] * 6)
    least = np.zeros((text.n_words, 2))
    least[:, 0] = 0.95
    first = text.offsets[:-1]
    least[first[::2]] = (0.05, 0.95)
    least[first[1::2] + 2] = 0.0  # not linked
    options = ProjectedNamesOptions(min_count=1, iterations=8)
    names, trace = expected_names(text, ("PER",), WantedNames(least, 10.0, 0.01), options, 4)
    assert names == [[(0, 1, "PER")], [(2, 3, "PER")]] * 6
    assert (np.diff(trace) > -1e-3 * np.abs(trace[1:])).all() and trace[-1] > trace[0]


def test_what_cannot_be_learnt() -> None:
    source = EntityTagger(iterations=3).fit(sample("source"))
    for method in ("hard", "expectations"):
        with pytest.raises(MentionsError, match="no name arrived"):
            project_names(bitext(), source, links=Links.of([[]] * 50), method=method)
    with pytest.raises(BitextError, match="nothing to learn from"):
        project_names(Bitext.of([("Anna", "")]), source)
    with pytest.raises(ParameterError, match="should be an EntityTagger, not 'names'"):
        project_names(bitext(), "names")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="method"):
        project_names(bitext(), source, method="soft")


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    EntityTagger(iterations=4).fit(sample("source")).save("names.en")
    texts = [str(samples.path("en-de", side)) for side in ("source", "target")]
    asked = ["transfer", "names", "--bitext", *texts, "--source-model", "names.en", "--iterations", "5"]
    assert main([*asked, "--save", "names.de", "-q"]) == 0
    assert main(["extract", "apply", "names.de", texts[1], "-o", "found.conll", "-q"]) == 0
    made = project_names(Bitext.read(*texts), EntityTagger.load("names.en"), iterations=5)
    found = made.predict(Bitext.read(*texts).target)
    assert Path("found.conll").read_bytes() == found.to_bytes()
    capsys.readouterr()
    assert main([*asked, "--save", "x", "--method", "hard", "--strength", "3"]) != 0
    assert "strength" in capsys.readouterr().err
    assert main([*asked, "--save", "x", "--links", "l.txt", "--aligner", "a"]) == 2
    assert "--links and --aligner exclude each other" in capsys.readouterr().err
    assert main([*asked[:5], "--source-model", "nothing", "--save", "x"]) != 0
    assert "no such saved model" in capsys.readouterr().err
