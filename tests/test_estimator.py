"""Options are declared once; constructors store, `check_params` checks, and scikit-learn's ways work."""

import copy
import inspect

import numpy as np
import pytest

from isogloss.errors import ParameterError
from isogloss.estimator import Estimator, option


class Toy(Estimator):
    column: str = option(default="upos", choices=("upos", "feats"), kw_only=False, help="What is predicted.")
    order: int = option(default=2, choices=(1, 2), help="Labels that a score looks at.")
    rounds: int = option(default=5, least=1, most=9, help="How often messages are passed.")
    rate: float = option(default=0.3, above=0, help="Length of steps.")
    share: float | None = option(default=None, kind=float, least=0, below=1, help="What is left out.")
    soft: bool = option(default=False, help="Whether links decide nothing.")
    templates: tuple[str, ...] | None = option(default=None, kind=(tuple, list), help="What words are seen by.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, help="Cores to use.")


class Child(Toy):
    rounds: int = option(default=7, least=1, help="How often messages are passed.")
    extra: str = option(default="x", help="Something more.")


def test_options_are_stored_as_they_are_given():
    templates = ["word"]
    toy = Toy("feats", rate="fast", templates=templates)
    assert toy.column == "feats" and toy.rate == "fast" and toy.templates is templates and toy.order == 2
    assert toy.get_params() == {
        "column": "feats", "order": 2, "rounds": 5, "rate": "fast", "share": None, "soft": False,
        "templates": ["word"], "threads": None,
    }  # fmt: skip


class Named(Estimator):
    _words: list[str] | None = option(default=None, kind=list, alias="words", help="What words there are.")
    limit: float | str | None = option(default="auto", choices=("auto", None), kind=float, above=0, below=1, help="x")

    def words(self) -> int:
        return len(self._words or ())


def test_an_option_may_have_the_name_of_a_method():
    named = Named(words=["a"])
    assert named.words() == 1 and named.get_params()["words"] == ["a"] == named.options_["words"]
    assert named.set_params(words=["a", "b"]).words() == 2 and "words" in inspect.signature(Named).parameters
    with pytest.raises(ParameterError, match="Named: words should be a list, or None, not 3"):
        Named(words=3).check_params()


def test_words_are_right_beside_numbers():
    for limit in ("auto", None, 0.5):
        Named(limit=limit).check_params()
    for limit in ("best", 1, True):
        with pytest.raises(ParameterError, match="limit should be 'auto' or a number above 0 and below 1, or None"):
            Named(limit=limit).check_params()


def test_what_depends_on_the_machine_is_not_saved():
    assert "threads" not in Toy(threads=2).options_ and Toy(threads=2).options_["rounds"] == 5


def test_a_subclass_adds_and_changes_options():
    assert next(iter(Child().get_params())) == "column"
    assert Child().rounds == 7 and Child(extra="y").extra == "y" and Toy().rounds == 5
    assert not hasattr(Toy(), "extra") and not hasattr(Toy, "rounds")


def test_signatures_are_what_people_expect():
    found = inspect.signature(Child)
    assert found.parameters["column"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert found.parameters["rounds"].kind is inspect.Parameter.KEYWORD_ONLY and found.parameters["rounds"].default == 7


def test_scikit_learn_can_clone_and_set():
    """What `sklearn.base.clone` does, which asks that the constructor keeps the very objects."""
    toy = Toy(templates=["word"], rate=1.5)
    params = toy.get_params(deep=False)
    again = type(toy)(**params)
    assert all(getattr(again, name) is value for name, value in params.items())
    assert toy.set_params(rate=2.0, order=1) is toy and (toy.rate, toy.order) == (2.0, 1)
    assert copy.deepcopy(toy).get_params() == toy.get_params()


@pytest.mark.parametrize(
    "given",
    [
        {}, {"column": "feats"}, {"order": 1}, {"order": np.int64(1)}, {"rounds": 9}, {"rate": 1}, {"share": 0},
        {"rate": np.float32(0.5)}, {"share": 0.5}, {"soft": True}, {"templates": ["a"]}, {"threads": 3},
    ],
)  # fmt: skip
def test_what_makes_sense_passes(given):
    Toy(**given).check_params()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"column": "lemma"}, "column should be one of 'upos', 'feats', not 'lemma'"),
        ({"column": ["upos"]}, "column should be one of"),
        ({"order": True}, "order should be one of 1, 2, not True"),
        ({"order": 1.0}, "order should be one of 1, 2, not 1.0"),
        ({"order": None}, "order should be one of"),
        ({"rounds": 0}, "rounds should be an integer from 1 to 9, not 0"),
        ({"rounds": 10**400}, "rounds should be an integer from 1 to 9"),
        ({"rounds": 2.5}, "rounds should be an integer"),
        ({"rounds": True}, "rounds should be an integer"),
        ({"rounds": "3"}, "rounds should be an integer"),
        ({"rate": 0}, "rate should be a number above 0, not 0"),
        ({"rate": float("nan")}, "rate should be a number above 0, not nan"),
        ({"rate": float("inf")}, "rate should be a number above 0, not inf"),
        ({"rate": 10**400}, "rate should be a number above 0, not 1000"),
        ({"rate": None}, "rate should be a number above 0"),
        ({"share": 1}, "share should be a number from 0 below 1, or None, not 1"),
        ({"soft": 1}, "soft should be True or False, not 1"),
        ({"templates": "word"}, "templates should be a tuple or a list, or None, not 'word'"),
        ({"threads": 0}, "threads should be an integer from 1 to 2147483647, or None, not 0"),
    ],
)
def test_what_makes_no_sense_is_refused_when_checked(given, words):
    toy = Toy(**given)
    with pytest.raises(ParameterError, match=f"^Toy: {words}"):
        toy.check_params()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Toy(round=3), "Toy has no option 'round'. Did you mean 'rounds'?"),
        (lambda: Toy(zzz=3), "Toy has no option 'zzz'. It has column, order, "),
        (lambda: Toy().set_params(rats=1), "Toy has no option 'rats'. Did you mean 'rate'?"),
        (lambda: Toy("upos", 2), "Toy: 2 options without names; give column"),
        (lambda: Toy("upos", column="feats"), "Toy: column is given twice"),
    ],
)
def test_unknown_names_get_a_suggestion(call, words):
    with pytest.raises(ParameterError) as found:
        call()
    assert str(found.value).startswith(words)


def test_repr_has_what_differs_from_the_defaults():
    assert repr(Toy()) == "Toy()" and repr(Toy(rate=1.0, soft=True)) == "Toy(rate=1.0, soft=True)"


def test_options_that_equal_their_defaults_are_not_shown():
    assert repr(Toy(column="".join(["up", "os"]), rate=float("0.3"), rounds=7)) == "Toy(rounds=7)"


# --- options that need others


class Company(Estimator):
    """With options that say something in some company only."""

    trainer: str = option(default="mira", choices=("mira", "risk"), help="How weights are found.")
    rules: str | None = option(default=None, choices=(None, "ud"), help="What is asked of trees.")
    cap: float = option(default=1.0, above=0, needs={"trainer": ("mira", "other")}, help="The longest step.")
    steps: int = option(default=3, needs=({"trainer": ("risk",)}, {"rules": ("ud",)}), help="Steps for each.")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"cap": 2.0, "trainer": "risk"},
            "Company: cap says nothing with trainer='risk'. Leave it out, or take trainer 'mira'",
        ),
        (
            {"steps": 4},
            "Company: steps says nothing with trainer='mira' and rules=None. Leave it out, or take trainer 'risk', or "
            "rules 'ud'",
        ),
        ({"cap": 2.0}, ""),
        ({"cap": 1.0, "trainer": "risk"}, ""),
        ({"steps": 4, "rules": "ud"}, ""),
        ({"steps": 4, "trainer": "risk"}, ""),
    ],
)
def test_options_need_company(given, words):
    made = Company(**given)
    if not words:
        made.check_params()
        assert Company.of_options(given).get_params() == made.get_params()
        return
    with pytest.raises(ParameterError) as refused:
        made.check_params()
    assert str(refused.value) == words
    forgiven = Company.of_options(given)
    idle = next(iter(given))
    assert forgiven.get_params() == {**made.get_params(), idle: Company().get_params()[idle]}
