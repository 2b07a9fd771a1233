"""`check_estimator`: the laws that an estimator has to keep, at once, for ours and for yours."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from isogloss import store
from isogloss._version import __version__
from isogloss.errors import IsoglossError, ParameterError, UsageError
from isogloss.metrics import Score
from isogloss.structures.batch import Stack
from isogloss.testing.learners import same

__all__ = ["check_estimator", "check_options", "check_posteriors"]

Saved = dict[str, bytes]
SUMS = 1e-6
"""How far from 1 posteriors may add up to."""


def check_estimator(
    make: Callable[..., Any],
    fit: Callable[[Any], Any],
    text: Any,
    *,
    empty: Any = None,
    training: Any = None,
    other_fit: Callable[[Any], Any] | None = None,
    score: Callable[[Any], Any] | None = None,
) -> None:
    """Hold an estimator against the laws; AssertionError names the one that is broken.

    Options, see `check_options`. What has learnt nothing says so. `fit` gives the estimator itself and leaves its
    options alone. Fitted again, with one thread or two, or after it had learnt something else, it saves the same bytes.
    What is loaded has the same options, predicts the same to the bit, and saves the same bytes. `predict_proba`, where
    there is one, gives what is said at `check_posteriors`, and `score` an `isogloss.metrics.Score`.

    Parameters
    ----------
    make : callable
        A new estimator; takes its options by name, as a class does.
    fit : callable
        Teaches an estimator, and returns what its `fit` does.
    text
        What `predict` takes.
    empty : optional
        The same without a sentence: there is nothing to predict for it, or it is refused with an `IsoglossError`.
    training : optional
        The text of `fit`, as `predict` takes it, for estimators that treat it as any other: a copy, or a loaded model,
        gives the same. Leave it out where an estimator promises more for the text it learnt from.
    other_fit : callable, optional
        Teaches something else.
    score : callable, optional
        Scores a fitted estimator, and returns what its `score` does.

    Examples
    --------
    >>> from isogloss.data import Text, Treebank
    >>> from isogloss.tasks.tag import CrfTagger
    >>> trees = Treebank.of([[("she", "PRON"), ("sleeps", "VERB")], [("he", "PRON"), ("eats", "VERB")]] * 3)
    >>> check_estimator(CrfTagger, lambda tagger: tagger.fit(trees), Text.of(["he sleeps"]), training=trees)
    """
    check_options(make, fit)
    _check_unfitted(make(), text)
    fitted = make()
    options = dict(fitted.get_params(deep=False))
    kept = copy.deepcopy(options)
    assert fit(fitted) is fitted, "fit does not return the estimator itself"
    after = dict(fitted.get_params(deep=False))
    assert all(after[name] is value for name, value in options.items()), "fit puts other objects in place of options"
    assert same(after, kept), "fit changes what it was given as an option"
    saved = _saved(fitted)
    _check_fitted_again(make, fit, other_fit, saved)
    _check_loaded(fitted, saved, [text] if training is None else [text, training])
    if training is not None:
        copied = fitted.predict(copy.deepcopy(training))
        assert same(fitted.predict(training), copied), "a copy of the training text gets something else"
    if empty is not None:
        _check_empty(fitted, empty)
    if hasattr(fitted, "predict_proba"):
        check_posteriors(fitted.predict_proba(text))
    if score is not None:
        _check_score(score(fitted))


def check_posteriors(found: Any) -> None:
    """The laws of what `predict_proba` gives, by what is predicted.

    Tags: float64[n_words, n_labels] for all sentences, or a dictionary of such by column; each row adds up to 1. Trees:
    a `Stack` of float64[n + 1, n + 1] for each sentence, as (head, child) with the root first; the heads of each word
    add up to 1. Links: a list of float32[n_source, n_target] for each pair, which need not add up to anything. Names:
    a list of float64[n, longest, n_types] for each sentence, by first word, length and type; those that begin with one
    word add up to 1 at most. Borders in words: a list of float64[n - 1] for each word. Tags and trees together: a named
    tuple of both. All are between 0 and 1.
    """
    if isinstance(found, np.ndarray):
        _check_probabilities(found)
        assert found.ndim == 2 and np.allclose(found.sum(axis=1), 1, atol=SUMS), "posteriors of a word are not 1 in all"
    elif isinstance(found, Stack):
        for sentence in found:
            _check_probabilities(sentence)
            assert np.allclose(sentence[:, 1:].sum(axis=0), 1, atol=SUMS), "posteriors of heads are not 1 in all"
            assert not sentence[:, 0].any(), "the root has a head"
    elif isinstance(found, Mapping):
        for each in found.values():
            check_posteriors(each)
    elif isinstance(found, list):
        for each in found:
            _check_probabilities(each)
            if each.ndim == 1:
                continue
            if each.ndim == 3:
                assert (each.sum(axis=(1, 2)) <= 1 + SUMS).all(), "names that begin with a word are more than 1 in all"
                continue
            assert each.ndim == 2, "posteriors of links have a row for each source word, a column for each target word"
    else:
        assert isinstance(found, tuple) and found, f"predict_proba gives a {type(found).__name__}"
        for each in found:
            check_posteriors(each)


def _check_probabilities(found: Any) -> None:
    assert found.dtype.kind == "f" and np.isfinite(found).all(), "posteriors are not numbers"
    assert found.min(initial=0.0) >= 0 and found.max(initial=0.0) <= 1 + SUMS, "posteriors are not from 0 to 1"


def _check_score(found: Any) -> None:
    assert isinstance(found, Score), f"score gives a {type(found).__name__}, not a Score"
    assert found.headline in found.measures, "the headline is no measure"
    assert float(found) == found.value == found[found.headline], "float(score) is not its headline"
    for name in found.measures:
        low, high = found.intervals[name]
        assert 0 <= low <= high <= 100 and 0 <= found[name] <= 100, f"{name} is not in percent"
    assert found.interval == found.intervals[found.headline], "the interval is not that of the headline"
    assert f"|n:{found.n}|" in found.signature and found.signature.endswith(f"|v:{__version__}"), found.signature
    said = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert all(said[name] == found[name] for name in found.measures) and said["signature"] == found.signature
    assert f"{found.value:.2f}" in repr(found) and found.signature in str(found), "its words lack the headline"


def check_options(make: Callable[..., Any], fit: Callable[[Any], Any]) -> None:
    """The laws of options alone.

    The constructor stores the very objects, so that scikit-learn's `clone` works, and checks nothing; `set_params` does
    what the constructor does. An unknown option is refused with the name of one that there is, and a value that makes
    no sense by `fit`, with the name of the option.
    """
    made = make()
    params = made.get_params(deep=False)
    again = type(made)(**params).get_params(deep=False)
    assert list(again) == list(params), "a clone has other options"
    assert all(again[name] is value for name, value in params.items()), "the constructor keeps other objects"
    wrong = object()
    for name in params:
        bad = make()
        assert bad.set_params(**{name: wrong}) is bad, "set_params does not return the estimator itself"
        assert bad.get_params()[name] is wrong, f"set_params does not set {name}"
        stored = type(made)(**{**params, name: wrong}).get_params()[name]
        assert stored is wrong, f"the constructor does not store {name}"
        said = _refusal(partial(fit, bad), ParameterError, f"fit, where {name} is {wrong!r}")
        assert f"{type(made).__name__}: {name} should be" in said, f"of a wrong {name}, fit says: {said}"
    near = max(params, key=len)
    for call in (lambda: type(made)(**{near[:-1]: 1}), lambda: make().set_params(**{near[:-1]: 1})):
        said = _refusal(call, ParameterError, f"an option {near[:-1]}")
        assert f"Did you mean {near!r}?" in said, f"of an unknown option that is nearly {near}, it says: {said}"


def _refusal(call: Callable[[], Any], kind: type[IsoglossError], what: str) -> str:
    """The words with which something is refused."""
    try:
        call()
    except kind as problem:
        return str(problem)
    raise AssertionError(f"{what}: is not refused with {kind.__name__}")


def _saved(estimator: Any) -> Saved:
    """The files of the saved estimator, by name."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        estimator.save(place)
        return {file.name: file.read_bytes() for file in sorted(place.iterdir())}


def _check_unfitted(made: Any, text: Any) -> None:
    for name in ("predict", "predict_proba"):
        if hasattr(made, name):
            said = _refusal(partial(getattr(made, name), text), UsageError, f"{name} before fit")
            assert "call fit first" in said, f"{name} before fit says: {said}"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        said = _refusal(lambda: made.save(place), UsageError, "save before fit")
        assert "call fit first" in said, f"save before fit says: {said}"
        assert not place.exists(), "save before fit leaves a folder"


def _check_fitted_again(
    make: Callable[..., Any], fit: Callable[[Any], Any], other_fit: Callable[[Any], Any] | None, saved: Saved
) -> None:
    again = fit(make())
    assert _saved(again) == saved, "a second estimator learns something else from the same"
    assert _saved(fit(again)) == saved, "fitted again, it knows something else"
    if other_fit is not None:
        assert _saved(fit(other_fit(make()))) == saved, "what it had learnt before is not forgotten by fit"
    for threads in (1, 2):
        assert _saved(fit(make(threads=threads))) == saved, f"with {threads} threads, it learns something else"


def _check_loaded(fitted: Any, saved: Saved, texts: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        fitted.save(place)
        known = [store.load] if store.read_header(place)["kind"] in store.KINDS else []
        for load in (type(fitted).load, *known):
            loaded = load(place)
            assert type(loaded) is type(fitted), f"what is loaded is a {type(loaded).__name__}"
            assert _saved(loaded) == saved, "what is loaded saves something else"
            assert same(loaded.options_, fitted.options_), "what is loaded has other options"
            for text in texts:
                assert same(loaded.predict(text), fitted.predict(text)), "what is loaded predicts something else"


def _check_empty(fitted: Any, empty: Any) -> None:
    try:
        found = fitted.predict(empty)
    except IsoglossError:
        return
    assert len(found) == 0, f"for a text without sentences, predict gives {len(found)}"
