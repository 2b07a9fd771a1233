"""Which kind of aligner is best for a text: `choose_aligner`, and `train-aligner auto`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isogloss import cli, samples, store
from isogloss.data import Bitext, Links
from isogloss.data.formats import IsoglossWarning
from isogloss.errors import LinksError, ParameterError, UsageError
from isogloss.metrics import score_links
from isogloss.progress import QuietProgress
from isogloss.tasks.align import HMMAligner, ItgAligner, MatchingAligner, QuadraticAligner
from isogloss.tasks.align.supervised import choosing, cross_validate
from isogloss.tasks.align.supervised.choosing import Choice, choose_aligner

CLASSES: dict[str, Any] = {"matching": MatchingAligner, "quadratic": QuadraticAligner, "itg": ItgAligner}
CONTESTANTS = ("matching", "quadratic", "itg/likelihood", "itg/mira", "itg/softmax-margin")
SMALL: dict[str, Any] = {"features": ("association", "position"), "iterations": 2, "tune": False}
N = 16


def text(start: int = 0, stop: int = N) -> tuple[Bitext, Links]:
    return samples.bitext("en-de").part(start, stop), samples.gold("en-de")[start:stop]


class Recorder(QuietProgress):
    """What a person would see."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, float | None]] = []
        self.shares: list[tuple[float, str]] = []

    def start(self, name: str, total: float | None = None) -> None:
        self.stages.append((name, total))

    def update(self, done: float, detail: str = "") -> None:
        self.shares.append((done, detail))


@pytest.fixture(scope="module")
def seen() -> Recorder:
    return Recorder()


@pytest.fixture(scope="module")
def choice(seen: Recorder) -> Choice:
    return choose_aligner(*text(), folds=2, progress=seen, **SMALL)


# choosing ------------------------------------------------------------------------------------------------------------


def new(contestant: str, **options: Any) -> Any:
    kind, _, way = contestant.partition("/")
    return CLASSES[kind](**options, **({"trainer": way} if way else {}))


@pytest.mark.parametrize("kind", CONTESTANTS)
def test_errors_are_those_of_cross_validation_by_itself(choice: Choice, kind: str) -> None:
    alone = cross_validate(lambda: new(kind, **SMALL), *text(), folds=2)
    assert choice.errors[kind] == alone.score and "aer" in choice.errors[kind].intervals
    if kind != choice.best:
        found = choice.comparisons[kind]
        assert found.second == alone.score.aer and found.first == choice.errors[choice.best].aer and found.n == N


def test_the_best_is_trained_on_all_gold(choice: Choice, tmp_path: Path) -> None:
    assert choice.errors[choice.best].aer <= min(score.aer for score in choice.errors.values()) + choosing.TIE
    assert set(choice.comparisons) == set(CONTESTANTS) - {choice.best} and not choice.failed
    assert choice.is_supervised and choice.unsupervised is None and choice.gain is None  # no HMM among the features
    assert (choice.n_pairs, choice.n_gold, choice.folds) == (N, N, 2)
    alone = new(choice.best, **SMALL).fit(*text())
    assert type(choice.aligner) is type(alone) and choice.aligner.n_gold_ == N
    assert choice.aligner.weights_ == alone.weights_ and choice.aligner.temperature_ == alone.temperature_
    choice.aligner.save(tmp_path / "m")
    alone.save(tmp_path / "alone")
    other = text(30, 40)[0]
    kept: Any = store.load(tmp_path / "m")
    assert np.array_equal(kept.predict(other).source, alone.predict(other).source)
    sizes = [sum(file.stat().st_size for file in (tmp_path / name).rglob("*")) for name in ("m", "alone")]
    assert abs(sizes[0] - sizes[1]) < 200  # nothing is kept that only other kinds need


@pytest.mark.parametrize("kind", CLASSES)
def test_an_extractor_has_only_what_its_kind_needs(kind: str) -> None:
    found = choose_aligner(*text(), folds=2, kinds=[kind], **SMALL)
    assert found.kind == kind and list(found.errors) == [name for name in CONTESTANTS if name.startswith(kind)]
    assert set(found.aligner.extractor_.sets) == set(CLASSES[kind](**SMALL).new_extractor().sets)


def test_words(choice: Choice) -> None:
    words = str(choice)
    errors = ", ".join(f"{kind} {choice.errors[kind].aer:.2f}" for kind in CONTESTANTS)
    assert f"AER in 2-fold cross-validation within the gold, default settings: {errors}; taken: {choice.best}" in words
    plain = json.loads(json.dumps(choice.as_dict()))
    assert plain["kind"] == choice.kind and plain["held_out"] == "folds" and plain["failed"] == {}
    assert plain["errors"]["itg/mira"]["aer"] == choice.errors["itg/mira"].aer and plain["unsupervised"] is None


def test_progress_is_one_stage_that_only_grows(choice: Choice, seen: Recorder) -> None:
    assert seen.stages[-1] == ("Choosing an aligner", 1.0)
    assert [name for name, _ in seen.stages].count("Choosing an aligner") == 1
    shares = [done for done, detail in seen.shares if "fold" in detail or "training" in detail]
    assert shares == sorted(shares) and 0 <= shares[0] < 0.5 < shares[-1] <= 1
    details = list(dict.fromkeys(detail for _, detail in seen.shares))
    folds = [f"{kind}, fold {k} of 2" for k in (1, 2) for kind in CONTESTANTS]
    assert details[-11:] == [*folds, f"training {choice.best}"]


def chooser() -> choosing._Choosing:
    aligners = {kind: made(**SMALL) for kind, made in CLASSES.items()}
    return choosing._Choosing(aligners, None, None, QuietProgress())


def test_the_simpler_kind_where_errors_are_the_same() -> None:
    whole = [(k, k) for k in range(1000)]
    gold = Links.of([whole, whole])
    one_less, few_less = Links.of([whole, whole[1:]]), Links.of([whole, whole[5:]])  # AER 0.00025 and 0.00125
    assert chooser()._compare({"matching": gold, "quadratic": gold, "itg": gold}, gold)[0] == "matching"
    assert chooser()._compare({"matching": one_less, "quadratic": gold, "itg": gold}, gold)[0] == "matching"
    assert chooser()._compare({"matching": few_less, "quadratic": gold, "itg": gold}, gold)[0] == "quadratic"
    assert chooser()._compare({"matching": few_less, "quadratic": few_less, "itg": one_less}, gold)[0] == "itg"
    _, errors, comparisons = chooser()._compare({"matching": few_less, "itg": gold}, gold)
    assert list(comparisons) == ["matching"] and comparisons["matching"].delta == -errors["matching"].aer


def test_a_kind_that_fails_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ItgAligner, "_chart", lambda *_: None)  # as if every chart were too large
    with pytest.warns(IsoglossWarning, match="itg/mira is passed over: ItgAligner: no chart of the gold pairs fits"):
        found = choose_aligner(*text(), folds=2, kinds=["itg", "matching"], **SMALL)
    assert found.kind == "matching" and list(found.errors) == ["matching"] and not found.comparisons
    assert "no chart" in found.failed["itg/likelihood"]
    with pytest.warns(IsoglossWarning), pytest.raises(LinksError, match=r"no kind .* itg/mira: .* no chart"):
        choose_aligner(*text(), folds=2, kinds=["itg"], **SMALL)


def test_faults_of_the_program_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise TypeError("a fault")

    monkeypatch.setattr(MatchingAligner, "learner", broken)
    with pytest.raises(TypeError, match="a fault"):
        choose_aligner(*text(), folds=2, kinds=["matching"], **SMALL)


def test_much_gold_is_compared_on_some_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "ENOUGH", 10)
    found = [choose_aligner(*text(), folds=2, kinds=["matching"], seed=seed, **SMALL) for seed in (0, 0, 1)]
    assert (found[0].n_pairs, found[0].n_gold) == (10, N) and found[0].errors["matching"].n == 10
    assert "(10 of 16 pairs, drawn by the seed)" in str(found[0])
    assert found[0].errors == found[1].errors != found[2].errors
    assert found[0].aligner.weights_ == MatchingAligner(**SMALL).fit(*text()).weights_


def test_on_dev() -> None:
    (bitext, gold), dev = text(), text(20, 30)
    found = choose_aligner(bitext, gold, dev=dev, kinds=["matching", "itg"], **SMALL)
    alone = {kind: new(kind, **SMALL).fit(bitext, gold) for kind in CONTESTANTS if kind != "quadratic"}
    for kind, aligner in alone.items():
        assert found.errors[kind].aer == score_links(aligner.predict(dev[0]), dev[1]).aer
    assert found.folds is None and "AER on dev, default settings: matching" in str(found)
    with pytest.raises(UsageError, match="without dev"):
        choose_aligner(bitext, gold, dev_links={}, **SMALL)


def test_pairs_without_gold_are_not_judged() -> None:
    bitext, gold = text()
    some = Links.of([() if k % 4 == 0 else row for k, row in enumerate(gold)])
    found = choose_aligner(bitext, some, folds=2, kinds=["matching"], **SMALL)
    assert found.n_pairs == found.n_gold == found.errors["matching"].n == 12 == found.aligner.n_gold_
    assert found.aligner.weights_ == MatchingAligner(**SMALL).fit(bitext, some).weights_


def test_links_by_others_and_settings_that_are_searched() -> None:
    bitext, gold = text()
    diagonal = {"diagonal": Links.of([(k, k) for k in range(min(map(len, pair)))] for pair in bitext)}
    options = {"features": ("association",), "iterations": 2}
    found = choose_aligner(bitext, gold, folds=2, kinds=["matching"], links=diagonal, **options)
    alone = MatchingAligner(links=["diagonal"], folds=2, **options).fit(bitext, gold, links=diagonal)
    assert found.aligner.weights_ == alone.weights_ and found.aligner.weights_["links:diagonal"]
    assert found.aligner.tuning_ == alone.tuning_ != []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fertility": 2}, "fertility: an option of quadratic only"),
        ({"blocks": None}, "blocks: an option of itg only"),
        ({"trainer": "frank-wolfe"}, "trainer: only matching and quadratic can be trained by frank-wolfe"),
        ({"regularisation": 2.0}, "in another sense"),
        ({"depth": 3}, "no kind has such an option"),
        ({"trainer": "adam"}, "trainer should be one of"),
        ({"kinds": "itg"}, "kinds should be some of"),
        ({"kinds": []}, "kinds should be some of"),
        ({"folds": 1}, "folds should be an integer from 2"),
        ({"level": 2.0}, "level should be from 0 to 1"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        choose_aligner(*text(), **options)


def test_options_of_the_one_kind_that_is_asked_for() -> None:
    assert choosing.unsuited(["quadratic"], {"fertility": 1, "regularisation": 2.0}) is None
    with pytest.raises(ParameterError):
        choosing.check_options(["quadratic"], {"fertility": 0})


def test_gold_that_says_too_little() -> None:
    with pytest.raises(LinksError, match="one pair with gold cannot tell"):
        choose_aligner(*text(0, 1), **SMALL)
    bitext, _ = text()
    with pytest.raises(LinksError, match="no links at all"):
        choose_aligner(bitext, Links.of([()] * N), **SMALL)


# the aligner without gold ---------------------------------------------------------------------------------------------


def judge(best: Links, plain: Links, gold: Links, level: float = choosing.LEVEL) -> bool:
    """Whether the best is told from the aligner without gold."""
    _, gain = chooser()._against(best, plain, gold)
    assert gain is not None
    return gain.delta < 0 and gain.p_value < level


def test_an_aligner_is_told_from_another_where_most_pairs_speak_for_it() -> None:
    whole = [(k, k) for k in range(10)]
    gold = Links.of([whole] * 20)
    worse = Links.of([whole[:7]] * 20)
    once = Links.of([whole[:7], *[whole] * 19])
    assert judge(gold, worse, gold) and not judge(worse, gold, gold)
    assert not judge(gold, once, gold) and not judge(gold, gold, gold)
    assert chooser()._against(gold, None, gold) == (None, None)


@pytest.fixture(scope="module")
def kept_choice() -> Choice:
    """Nothing can be told apart at level 0."""
    return choose_aligner(*text(), folds=2, level=0.0, kinds=["matching"], **{**SMALL, "features": ("hmm",)})


def test_the_aligner_without_gold_is_kept_where_gold_cannot_tell(kept_choice: Choice, tmp_path: Path) -> None:
    choice, (bitext, gold) = kept_choice, text()
    assert choice.kind == "hmm" and choice.best == "matching" and not choice.is_supervised
    plain = HMMAligner(max_length=200).fit(bitext)
    assert choice.unsupervised is not None and choice.gain is not None
    assert choice.unsupervised.aer == score_links(plain.predict(bitext), gold).aer == choice.gain.second
    assert choice.gain.first == choice.errors["matching"].aer
    assert type(choice.aligner) is HMMAligner
    choice.aligner.save(tmp_path / "m")
    plain.save(tmp_path / "alone")
    other = text(30, 40)[0]
    links = [[str(row) for row in store.load(tmp_path / name).predict(other)] for name in ("m", "alone")]
    assert links[0] == links[1]
    words = str(choice)
    assert f"best: matching; without gold, by the HMM alone, {choice.unsupervised.aer:.2f}. matching " in words
    assert words.endswith(f"(p = {choice.gain.p_value:.2g}), so the HMM is kept")
    plain_words = json.loads(json.dumps(choice.as_dict()))
    assert plain_words["kind"] == "hmm" and plain_words["gain"]["p_value"] == choice.gain.p_value


def test_whatever_gold_says_the_best_is_taken_at_level_1(kept_choice: Choice) -> None:
    found = choose_aligner(*text(), folds=2, level=1.0, kinds=["matching"], **{**SMALL, "features": ("hmm",)})
    assert found.kind == "matching" and found.gain is not None and kept_choice.gain == found.gain
    assert f"; taken: matching; without gold, by the HMM alone, {found.gain.second:.2f} (p = " in str(found)


# train-aligner auto --------------------------------------------------------------------------------------------------

QUICK = ("--no-tune", "--iterations", "2", "--option", "folds=2", "--features", "association,position")
WITH_HMM = (*QUICK[:-1], "association,position,hmm")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("auto")
    for part in ("source", "target"):
        shutil.copy(samples.path("en-de", part), place / part)
    lines = Path(samples.path("en-de", "gold")).read_text().splitlines(keepends=True)
    (place / "gold").write_text("".join(lines[:N]))
    return place


def test_auto_says_what_each_kind_did(place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = [str(place / name) for name in ("source", "target", "gold")]
    assert cli.main(["train-aligner", "auto", *files, *QUICK, "--save", str(tmp_path / "m"), "--json"]) == 0
    out, err = capfd.readouterr()
    found = json.loads(out)
    choice = found["choice"]
    errors = {kind: choice["errors"][kind]["aer"] for kind in CONTESTANTS}
    assert found["aligner"] == choice["kind"] and errors[choice["best"]] <= min(errors.values()) + 0.05
    assert set(choice["comparisons"]) == set(CONTESTANTS) - {choice["best"]}
    words = ", ".join(f"{kind} {aer:.2f}" for kind, aer in errors.items())
    assert f"AER in 2-fold cross-validation within the gold, default settings: {words}; taken: {choice['best']}" in err
    kept: Any = store.load(tmp_path / "m")
    assert type(kept) is CLASSES[choice["kind"]] and kept.n_gold_ == N
    bitext, gold = text()
    options = {"tune": False, "iterations": 2, "features": ("association", "position")}
    whole = samples.bitext("en-de").part(N, 50)
    assert kept.weights_ == new(choice["best"], **options).fit(bitext, gold, whole).weights_
    assert cli.main(["align", *files[:2], "--model", str(tmp_path / "m"), "-q"]) == 0
    assert capfd.readouterr().out.count("\n") == 50


def test_auto_says_that_it_keeps_the_aligner_without_gold(
    place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "_contestants", lambda aligners: {"matching": aligners["matching"]})
    (tmp_path / "gold").write_text("".join((place / "gold").read_text().splitlines(keepends=True)[:3]))
    files = [str(place / "source"), str(place / "target"), str(tmp_path / "gold")]
    assert cli.main(["train-aligner", "auto", *files, *WITH_HMM, "--save", str(tmp_path / "m"), "--json"]) == 0
    out, err = capfd.readouterr()
    found = json.loads(out)
    assert (
        found["aligner"] == "hmm" and found["gold_pairs"] == 3 and found["weights"] == {} and found["trainer"] is None
    )
    assert (
        "compared on 3 pairs" in err
        and "so the HMM is kept" in err
        and "have the other all the same: isogloss train-aligner matching" in err
    )
    assert store.read_header(tmp_path / "m")["kind"] == "align.hmm"
    assert cli.main(["align", *files[:2], "--model", str(tmp_path / "m"), "-q"]) == 0
    assert capfd.readouterr().out.count("\n") == 50


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--option", "fertility=2"], "--option fertility: an option of quadratic only, and auto tries matching, quad"),
        (["--option", "cell-limit=2"], "--option cell_limit: an option of itg only"),
        (["--trainer", "extragradient"], "--trainer: only matching can be trained by extragradient"),
        (["--trainer", "adam"], "'adam' should be one of"),
        (["--option", "depth=3"], "no kind has such an option"),
        (["--option", "iterations=3", "--iterations", "2"], "given twice"),
        (["--option", "regularisation=3"], "another sense"),
        (["--features", "dice"], "there is no set of features"),
    ],
)
def test_wrong_calls(place: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    files = [str(place / name) for name in ("source", "target", "gold")]
    assert cli.main(["train-aligner", "auto", *files, "--save", str(place / "m"), *arguments]) == 2
    err = capfd.readouterr().err
    assert words in err and err.count("\n") == 1 and not (place / "m").exists()
