"""`PolylingualTopics` on documents in several languages: what it finds, what it says of it, and odd documents."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from isogloss import samples
from isogloss.data import Documents, Text, Vocabulary
from isogloss.errors import DocumentsError, ParameterError, UsageError
from isogloss.learners.runner import Interrupted
from isogloss.metrics.ranks import ranks_of, score_ranks
from isogloss.progress import QuietProgress
from isogloss.tasks.documents import PolylingualTopics
from isogloss.tasks.documents.bags import bags_of
from isogloss.tasks.documents.coherence import npmi
from isogloss.tasks.documents.divergence import distances, divergence

HELD_OUT = 75


@cache
def fitted() -> PolylingualTopics:
    return PolylingualTopics(8, iterations=300, max_share=0.3).fit(samples.documents()[:HELD_OUT])


def test_themes_are_lined_up_across_languages() -> None:
    model = fitted()
    known = {"en": ["fishermen", "carbon", "refugees"], "de": ["fischer", "kohlenstoff", "flüchtlinge"],
             "fr": ["pêcheurs", "carbone", "réfugiés"]}  # fmt: skip
    topics = {
        name: [int(model.probabilities(name)[model.vocabularies_[name].index_of(word)].argmax()) for word in words]
        for name, words in known.items()
    }
    assert topics["en"] == topics["de"] == topics["fr"] and len(set(topics["en"])) == 3
    found = model.score(samples.documents()[HELD_OUT:], source="en", target="fr")
    assert found.top1 >= 70 and found.top5 >= found.top1 and found.n == found.candidates
    assert found.interval[0] <= found.top1 <= found.interval[1]


def test_words_and_shares() -> None:
    model = fitted()
    top = model.top_words(5)
    assert len(top) == 8 and set(top[0]) == {"en", "de", "fr"}
    for row in top:
        for name, words in row.items():
            chances = [chance for _, chance in words]
            assert chances == sorted(chances, reverse=True) and len(words) <= 5
            assert all(word in model.vocabularies_[name] for word, _ in words)
    for language in model.languages_:
        assert model.shares()[language].sum() == pytest.approx(1)
        assert model.probabilities(language).sum(axis=0) == pytest.approx(np.ones(8))


def test_documents_of_one_language_or_of_several() -> None:
    model, documents = fitted(), samples.documents()[HELD_OUT:]
    whole = model.transform(documents)
    english = model.transform(documents, language="en")
    assert whole.shape == english.shape == (15, 8)
    assert np.array_equal(english, model.transform(documents.in_languages("en")))
    assert np.array_equal(english, model.transform(documents.text("en"), language="en"))
    strings = [" ".join(documents.text("en").tokens(k)) for k in range(15)]
    assert np.array_equal(english, model.transform(strings, language="en"))
    assert not np.array_equal(english, whole)
    assert np.array_equal(model.predict(documents), whole.argmax(axis=1))
    assert np.array_equal(model.transform(documents.take([3]))[0], whole[3])
    with pytest.raises(ParameterError, match="no language 'es' in this model; there is en, de, fr"):
        model.transform(strings, language="es")
    with pytest.raises(ParameterError, match="which language is it"):
        model.transform(strings)
    with pytest.raises(ParameterError, match="cannot be taken for documents"):
        model.transform(3)  # type: ignore[arg-type]


def test_documents_without_known_words_have_the_prior() -> None:
    model = fitted()
    found = model.transform([{"en": ""}, {"en": "zzz qqq"}, {"de": "qqq"}])
    assert found == pytest.approx(np.tile(model.alpha_ / model.alpha_.sum(), (3, 1)))
    held_out = model.held_out([{"en": "zzz qqq"}, {"en": "coal zzz"}])
    assert held_out.unknown.tolist() == [2, 1] and held_out.n_words.tolist() == [0, 1]
    assert held_out.by_words[0] == held_out.by_runs[0] == 0.0 and held_out.by_words[1] < 0


def test_training_mixtures_are_nearer_in_a_document_than_across() -> None:
    model = fitted()
    english, french = model.training_mixtures("en"), model.training_mixtures("fr")
    both = samples.documents()[:HELD_OUT].present[:, [0, 2]].all(axis=1)
    assert english.sum(axis=1) == pytest.approx(np.ones(HELD_OUT))
    apart = distances(english[both], french[both])
    assert np.diagonal(apart).mean() < 0.5 * apart.mean()
    alpha = model.alpha_
    missing = np.flatnonzero(~samples.documents()[:HELD_OUT].present[:, 0])
    assert len(missing) and english[missing[0]] == pytest.approx(alpha / alpha.sum())


def test_glue_draws_languages_together(tmp_path: Path) -> None:
    """Of documents whose languages are torn apart, topics agree the more, the more others are left whole."""
    documents = samples.documents()
    whole = documents.take(np.flatnonzero(documents.present.all(axis=1)))
    seen = []
    for glue in (0, 15, 45):
        rows = [dict(whole[k].words) for k in range(glue)]
        torn = [{name: words} for k in range(glue, len(whole)) for name, words in whole[k].words.items()]
        model = PolylingualTopics(8, iterations=200, max_share=0.3, seed=3).fit(Documents.of([*rows, *torn]))
        own = [model.training_mixtures(name) for name in ("en", "de", "fr")]
        n = len(whole) - 45
        at = glue + 3 * np.arange(len(whole) - glue)[-n:]
        pairs = [distances(own[a][at + a], own[b][at + b]).diagonal() for a, b in ((0, 1), (0, 2), (1, 2))]
        seen.append(float(np.mean(pairs)))
    assert seen[0] > seen[1] > seen[2]


def torn() -> Documents:
    """The sample, each document in one language alone: English or German."""
    whole = samples.documents()[:HELD_OUT].in_languages("en", "de")
    even = np.arange(0, HELD_OUT - 1, 2)
    return Documents.apart(whole.in_languages("en").take(even), whole.in_languages("de").take(even + 1))


def test_a_lexicon_ties_what_no_document_does() -> None:
    pairs = [(pair.source, pair.target) for pair in fitted().lexicon("en", "de", 8)]
    new = samples.documents()[HELD_OUT:].in_languages("en", "de")
    options = {"iterations": 150, "max_share": 0.3}
    apart = PolylingualTopics(8, **options).fit(torn())
    tied = PolylingualTopics(8, **options).fit(torn(), lexicons={("en", "de"): pairs})
    found = [model.score(new, source="en", target="de").top5 for model in (apart, tied)]
    assert found[1] > found[0] + 20
    none = PolylingualTopics(8, **options, lean=0).fit(torn(), lexicons={("en", "de"): pairs})
    assert np.array_equal(none.alpha_, apart.alpha_) and np.array_equal(none.trace_, apart.trace_)
    with pytest.raises(ParameterError, match="should be the names of two languages of the documents, which have en"):
        PolylingualTopics(8).fit(torn(), lexicons={("en", "fr"): pairs})


def test_nearest_documents_and_lexicon() -> None:
    model, documents = fitted(), samples.documents()[HELD_OUT:]
    found = model.nearest(documents, documents, 3, language="en", candidate_language="fr")
    assert [len(row) for row in found] == [3] * 15
    for row in found:
        assert [each.distance for each in row] == sorted(each.distance for each in row)
    candidates = model.lexicon("en", "fr", 3)
    assert 0 < len(candidates) <= 9 * 8 and len(model.lexicon("en", "fr", 1)) <= 8
    assert len({(pair.source, pair.target) for pair in candidates}) == len(candidates)
    with pytest.raises(ParameterError, match="no language 'es'"):
        model.lexicon("en", "es")


def test_explanations_name_the_words() -> None:
    model = fitted()
    found = model.explain([{"en": "Coal and carbon emissions zzz ."}])
    first = found["topics"][0]
    assert {"carbon", "emissions"} <= {row["word"] for row in first["because"]} and found["unknown"] >= 2
    assert set(first["words"]) == {"en", "de", "fr"} and 0 < first["share"] <= 1
    with pytest.raises(UsageError, match="there is no document 5 among 1"):
        model.explain([{"en": "a"}], 5)


def test_coherence_is_high_for_themes_and_low_for_words_at_random() -> None:
    model, documents = fitted(), samples.documents()
    found = model.coherence(documents)
    assert found.npmi > 0.3 and found.cnpmi > 0.3 and set(found.across) == {("en", "de"), ("en", "fr"), ("de", "fr")}
    none = PolylingualTopics(8, iterations=0, max_share=0.3).fit(documents)
    assert none.coherence(documents).npmi < found.npmi and none.coherence(documents).cnpmi < found.cnpmi
    alone = model.coherence(documents.in_languages("en"))
    assert math.isnan(alone.cnpmi) and alone.within["en"] == pytest.approx(found.within["en"])


def test_npmi_by_hand() -> None:
    from scipy.sparse import csr_matrix

    seen = csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 0]]))
    expected = math.log((1 / 4) / (1 / 2 * 1 / 2)) / -math.log(1 / 4)
    assert npmi(seen, seen)[0, 1] == pytest.approx(expected) and npmi(seen, seen)[0, 2] == -1
    assert npmi(seen, seen)[1, 2] == pytest.approx(math.log((1 / 4) / (1 / 2 * 1 / 4)) / -math.log(1 / 4))
    always = csr_matrix(np.ones((3, 1)))
    assert npmi(always, always)[0, 0] == 1 and npmi(always[:0], always[:0])[0, 0] == -1


def test_divergence_keeps_its_laws() -> None:
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(5), 2)
    assert divergence([p, q]) == pytest.approx(divergence([q, p])) and divergence([p, p, p]) == pytest.approx(
        0, abs=1e-12
    )
    assert 0 < divergence([p, q]) < 1 and divergence(np.eye(4)) == pytest.approx(1)
    m = (p + q) / 2
    expected = 0.5 * (p * np.log2(p / m)).sum() + 0.5 * (q * np.log2(q / m)).sum()
    assert divergence([p, q]) == pytest.approx(expected)
    rows = rng.dirichlet(np.full(4, 0.1), 40)
    table = distances(rows, rows)
    assert table == pytest.approx(table.T) and table.diagonal() == pytest.approx(np.zeros(40), abs=1e-12)
    assert distances(np.eye(2), np.eye(2)).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ParameterError, match="two or more distributions"):
        divergence([[0.5, 0.6], [0.5, 0.5]])


def test_ranks() -> None:
    assert ranks_of([[0.1, 0.5, 0.1], [0.3, 0.2, 0.1], [1, 1, 1]]).tolist() == [2, 2, 3]
    with pytest.raises(ParameterError, match="candidate k is right"):
        ranks_of([[0.1, 0.2]])
    score = score_ranks([1, 1, 6, 30], 40)
    assert (score.top1, score.top5, score.top10, score.top20) == (50, 50, 75, 75) and float(score) == 50


def test_both_forms_of_the_held_out_probability() -> None:
    model, documents = fitted(), samples.documents()[HELD_OUT:]
    few, many = (model.held_out(documents, language="de", runs=runs) for runs in (1, 20))
    assert few.by_words == pytest.approx(few.by_runs)  # of one run they are the same
    assert not np.allclose(many.by_words, many.by_runs)
    low, high = many.interval()
    assert low <= many.nats_per_word <= high and many.nats_per_word == pytest.approx(few.nats_per_word, abs=0.05)
    assert model.held_out(documents, language="de", resample=False).nats_per_word < 0
    with pytest.raises(ParameterError, match="runs should be a positive integer"):
        model.held_out(documents, runs=0)
    together = model.held_out(documents)
    assert together.n_words.sum() == sum(
        model.held_out(documents, language=name).n_words.sum() for name in model.languages_
    )


def test_it_is_better_than_words_by_their_frequency() -> None:
    documents = samples.documents()
    one = PolylingualTopics(1, iterations=1, max_share=0.3).fit(documents[:HELD_OUT])
    assert fitted().held_out(documents[HELD_OUT:], language="en").nats_per_word > (
        one.held_out(documents[HELD_OUT:], language="en").nats_per_word
    )
    assert (one.transform(documents) == 1).all() and one.predict(documents).tolist() == [0] * 90


@pytest.mark.parametrize(
    "rows",
    [
        [{"en": "a a a a", "de": "b b"}] * 3,
        [{"en": "a b"}, {"en": "b c"}, {"de": ""}, {"en": "a", "de": ""}],
        [{"en": ""}, {"en": "a"}],
        [{"en": "a b " * 2000}],
    ],
    ids=["one word", "a language without words", "an empty document", "a long one"],
)
def test_odd_documents(rows: list[dict[str, str]]) -> None:
    model = PolylingualTopics(3, iterations=20, min_documents=1, max_share=1.0).fit(rows)
    assert np.isfinite(model.trace_).all()
    assert model.transform(rows).sum(axis=1) == pytest.approx(np.ones(len(rows)))
    assert np.isfinite(model.held_out(rows[:1], resample=False).nats_per_word)
    model.top_words(3)
    model.coherence(rows, 3)


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(DocumentsError, match="there are no words"):
        PolylingualTopics(2).fit(["", ""])
    with pytest.raises(DocumentsError, match="no word is left"):
        PolylingualTopics(2).fit(["a b", "c d"])
    with pytest.raises(UsageError, match="call fit first"):
        PolylingualTopics(2).top_words()
    with pytest.raises(ParameterError, match="topics should be an integer from 1"):
        PolylingualTopics(0).fit(["a b"])


def test_pruning_belongs_to_the_model(tmp_path: Path) -> None:
    documents = Documents.of(["Sea sea Ship 12", "sea Ship boat", "Tree tree leaf ,", "leaf Tree root"])
    model = PolylingualTopics(2, iterations=30, max_share=1.0).fit(documents)
    assert sorted(model.vocabularies_[""]) == ["leaf", "sea", "ship", "tree"]
    model.save(tmp_path / "m")
    loaded = PolylingualTopics.load(tmp_path / "m")
    assert loaded.get_params() == model.get_params()
    assert np.array_equal(loaded.transform(["SEA ship zzz"]), model.transform(["sea SHIP"]))
    with pytest.raises(UsageError, match="does not know its training documents"):
        loaded.training_mixtures()


class StopAfter(QuietProgress):
    """Presses Ctrl-C after some sweeps."""

    def __init__(self, sweeps: int) -> None:
        super().__init__()
        self.sweeps = sweeps

    def update(self, done: int, detail: str = "") -> None:
        if done == self.sweeps:
            raise KeyboardInterrupt


def test_training_that_was_stopped_goes_on_to_the_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOGLOSS_CHECKPOINT_SECONDS", "0")
    documents = samples.documents()[:20]
    make = PolylingualTopics(4, iterations=30, burn_in=5).get_params()
    whole = PolylingualTopics(**make).fit(documents)
    with pytest.raises(Interrupted):
        PolylingualTopics(**make).fit(documents, StopAfter(17), checkpoint=tmp_path / "run")
    resumed = PolylingualTopics(**make).fit(documents, checkpoint=tmp_path / "run", resume=True)
    for model, name in ((whole, "a"), (resumed, "b")):
        model.save(tmp_path / name)
    files = [sorted((tmp_path / name).iterdir()) for name in "ab"]
    assert [f.read_bytes() for f in files[0]] == [f.read_bytes() for f in files[1]]
    with pytest.raises(UsageError, match="another run"):
        PolylingualTopics(**{**make, "beta": 0.5}).fit(documents, checkpoint=tmp_path / "run", resume=True)


def test_bags_are_in_order_of_documents_and_languages() -> None:
    documents = Documents.of([{"en": "a b", "de": "x"}, {"de": "y x"}, {"en": "b"}])
    words = [text.vocabulary for text in documents.texts]
    bags, unknown = bags_of(documents, documents.languages, words, lowercase=False)
    assert bags.words.tolist() == [0, 1, 2, 3, 2, 1] and bags.segments.tolist() == [0, 2, 3, 3, 5, 6, 6]
    assert unknown.tolist() == [0, 0, 0] and bags.language.tolist() == [0, 0, 1, 1, 1, 0]
    only, unknown = bags_of(
        documents.in_languages("de"), documents.languages, [words[0], Vocabulary(words[1][:1])], lowercase=True
    )
    assert only.words.tolist() == [2, 2] and unknown.tolist() == [0, 1, 0]


def test_a_text_is_documents_of_one_language() -> None:
    model = PolylingualTopics(2, iterations=10, min_documents=1, max_share=1.0).fit(Text.of(["a b", "c d"]))
    assert model.languages_ == ("",) and model.transform(Text.of(["a"])).shape == (1, 2)
