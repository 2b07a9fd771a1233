"""Every option of every estimator changes what it learns, is refused, or is declared as without effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest

from isogloss import samples, store
from isogloss.data import Bitext, ConstituentPairs, Links, SentencePairs, TagDictionary, Text, Treebank, TreePairs
from isogloss.tasks.parse.options import CONSTRAINTS
from isogloss.tasks.parse.styles import convert
from isogloss.testing import check_effects
from isogloss.testing.fuzz.models import (
    DICTIONARY,
    bitext,
    constituent_pairs,
    constituents,
    cut_words,
    documents,
    labelled,
    links,
    mentions,
    monolingual,
    new_documents,
    new_labelled,
    new_mentions,
    new_treebank,
    new_words,
    proposed,
    ranked,
    related,
    sentence_pairs,
    tree_pairs,
    treebank,
)

TREES = treebank()
TEXT = Text.of([TREES.words(s) for s in range(len(TREES))])
TAGGED = Treebank.from_bytes(samples.trees("en-de", "source").encode()).part(0, len(bitext()))
WORDS = TagDictionary.of_treebank(TREES.part(0, 8))
LEXICON = [("the", "die"), ("woman", "frau"), ("book", "buch", 3.0)]


PAIRS, FEW = bitext().part(0, 5), TREES[8:]
LENGTHS = PAIRS.target.ids.lengths.tolist()
GOLD = Links.of(  # several links of a word, and a pair without any
    [{*row, *((i, j + 1) for i, j in row if j + 1 < LENGTHS[k])} for k, row in enumerate(links()[:4])] + [set()]
)
FEATURES = ("association", "position", "hmm")
EXTRACTED = {
    "lexicon": [LEXICON],
    "features": [("position",)],
    "links": [],
    "extra": [],
    "max_length": [6],
    "targets": [{"targets": "latent", "features": ("position",)}, "gold"],
    "folds": [{"folds": 2, "tune": True, "threshold": "auto"}],
    "regularisation": [1e-4],
    "seed": [{"seed": 1, "trainer": trainer} for trainer in ("frank-wolfe", "mira", "subgradient", "perceptron")],
}


def with_gold(aligner: Any) -> Any:
    """Teaches an aligner; features that were made before are taken again, since that takes longest."""
    extractor = aligner.new_extractor()
    key = repr(sorted(extractor.get_params().items()))
    if key not in _EXTRACTORS:
        _EXTRACTORS[key] = extractor.fit(PAIRS)
    return aligner.fit(PAIRS, GOLD, extractor=_EXTRACTORS[key])


_EXTRACTORS: dict[str, Any] = {}


def ambiguous() -> tuple[Bitext, Treebank, Links]:
    """Two words, to which links of several probabilities carry several tags."""
    rows = [[("dog", "NOUN"), ("runs", "VERB")]] * 6
    rows += [[("run", "VERB"), ("dog", "NOUN")]] * 3 + [[("new", "ADJ"), ("run", "VERB")]]
    pairs = Bitext.of([(" ".join(word for word, _ in row), "gehen Sendung") for row in rows])
    found = Links.of([[(0, 0), (1, 1)]] * len(rows))
    return pairs, Treebank.of(rows), replace(found, probability=np.tile(np.float32([0.95, 0.5, 0.6, 0.92]), 5))


AMBIGUOUS = ambiguous()


ARCHIVE = samples.documents("archive")
ARCHIVE = ARCHIVE.linked([*((ARCHIVE.id_of(a), ARCHIVE.id_of(b)) for a, b in ARCHIVE.links), ("wind-8", "wind-9")])
ARCHIVE = replace(ARCHIVE, dates=None)  # links that go in a circle


SOME_LINKED = tree_pairs().take(range(6))
SOME_LINKED = TreePairs(
    SOME_LINKED.source, SOME_LINKED.target, Links.of([list(row)[::2] for row in SOME_LINKED.links or ()])
)
SOME_CONSTITUENTS = ConstituentPairs.from_dependencies(SOME_LINKED)


def unlinked(task: str) -> SentencePairs:
    """Pairs whose links the aligner finds."""
    given = sentence_pairs(task)
    return SentencePairs(given.source, given.target)


class Case(NamedTuple):
    """How an estimator is tried: options beside the defaults, what it learns from, and what is special."""

    options: Mapping[str, Any]
    fit: Callable[[Any], Any]
    text: Any
    ways: Sequence[Mapping[str, Any]] = ({},)
    trials: Mapping[str, Sequence[Any]] = {}


def sparse(**options: Any) -> dict[str, Any]:
    """Options of a translator with sparse features."""
    return {"features": "all", "feature_count": 1, "proposals": 6, "epochs": 2, "rate": 0.2, **options}


CASES: dict[str, Case] = {
    "adapt.documents": Case(
        {"min_count": 1, "folds": 3},
        lambda e: e.fit(labelled(), new_labelled(), new_labelled()[:8]),
        new_labelled(),
        ways=[{"method": name} for name in ("self-training", "scl", "scl-mi", "none")],
        trials={
            "pivots": [2],
            "pivot_count": [12],
            "dimensions": [1],
            "places_l2": [0.5],
            "pivot_l2": [0.1],
            "rescale": [{"rescale": name, "method": "scl", "places_l2": 0.1} for name in ("norm", "none")],
            "prior": [{"prior": {"pos": 0.9, "neg": 0.1}, "method": "self-training"}],
            "stable": [{"stable": 0.1, "method": "self-training"}],
            "seed": [1],
        },
    ),
    **{
        f"align.{name}": Case(
            {"iterations": 1, "model1_iterations": 1},
            lambda e: e.fit(bitext()),
            bitext(),
            trials={
                "lexicon": [LEXICON],
                "max_length": [6],
                "train_length": [6],
                "smoothing": [1.0],
                "model1_constraint": [{"model1_constraint": "agreement", "model1_iterations": 3}],
                "decode": [{"decode": "viterbi", "symmetrise": "union"}],
                "leave_out": [{"leave_out": 0.0, "iterations": 3}],
                **({} if name == "hmm" else {"final": []}),  # only the HMM takes it
            },
        )
        for name in ("hmm", "model1", "model2")
    },
    "align.segmented": Case(
        {"iterations": 1, "model1_iterations": 1},
        lambda e: e.fit(bitext()),
        bitext(),
        trials={
            "lexicon": [LEXICON],
            "max_length": [6],
            "train_length": [6],
            "smoothing": [1.0],
            "model1_constraint": [{"model1_constraint": "agreement", "model1_iterations": 3}],
            "leave_out": [{"leave_out": 0.0, "iterations": 3}],
            "symmetrise": [],  # refused
            "decode": [],
            "cut_count": [1],
        },
    ),
    "align.matching": Case(
        {"tune": False, "iterations": 2, "features": FEATURES},
        with_gold,
        PAIRS,
        ways=[{"trainer": name} for name in ("frank-wolfe", "extragradient", "mira", "subgradient", "perceptron")],
        trials=EXTRACTED,
    ),
    "align.quadratic": Case(
        {"tune": False, "iterations": 1, "features": ("position", "hmm"), "pairs": False},
        with_gold,
        PAIRS,
        ways=[{"trainer": name} for name in ("frank-wolfe", "mira")],
        trials={
            **EXTRACTED,
            "pairs": [{"pairs": True, "near": 1, "trainer": "mira"}],
            "near": [{"near": 1, "pairs": True, "trainer": "mira", "decode": "lp"}],
            "decode": [{"decode": "lp", "pairs": True, "near": 1, "trainer": "mira"}],
            "relaxed": [{"relaxed": False, "pairs": True, "near": 1, "decode": "lp", "trainer": "frank-wolfe"}],
            "time_limit": [],
            "seed": [{"seed": 1, "trainer": "mira"}],
        },
    ),
    "align.itg": Case(
        {"tune": False, "iterations": 2, "features": FEATURES},
        with_gold,
        PAIRS,
        ways=[{"trainer": name} for name in ("likelihood", "mira", "softmax-margin")],
        trials={
            **EXTRACTED,
            "chart_limit": [100_000],
            "competitive": [{"competitive": True, "threshold": 0.01, "trainer": "likelihood"}],
            "tune": [{"tune": True, "threshold": "auto", "trainer": "mira"}],
        },
    ),
    "constituency.span": Case(
        {"iterations": 2, "tags": "gold", "min_count": 2},
        lambda e: e.fit(constituents()[:8]),
        constituents(),
        ways=[{"trainer": name} for name in ("likelihood", "mira", "perceptron")],
        trials={
            "rate": [1e-5],
            "templates": [],
            "tags": [{"tags": "predicted", "trainer": "likelihood"}],
            "decoder": [
                {"decoder": "map", "trainer": "likelihood"},
                {"decoder": "mbr", "trainer": "mira"},
                {"decoder": "mbr", "trainer": "perceptron", "threshold": 0.9},
            ],
            "model": [{"model": "both", "cycles": 1, "grammars": 1, "trainer": "likelihood"}],
            "cycles": [{"cycles": 1, "model": "both", "grammars": 1, "trainer": "likelihood"}],
            "grammars": [{"grammars": 1, "model": "both", "cycles": 1, "trainer": "likelihood"}],
            "share": [{"share": 0.1, "model": "both", "cycles": 1, "grammars": 1, "trainer": "likelihood"}],
        },
    ),
    "extract.entities": Case(
        {"iterations": 2},
        lambda e: e.fit(mentions()),
        new_mentions(),
        ways=[{"model": model, "trainer": name} for model in ("chain", "segments") for name in ("likelihood", "mira")],
        trials={
            "templates": [("word", "look")],
            "span_templates": [{"span_templates": ("length",), "model": "segments"}],
            "longest": [1],
            "trainer": [{"trainer": "perceptron", "model": "chain"}],
            "decoder": [{"decoder": "mbr", "threshold": 0.99, "trainer": "mira"}],
            "threshold": [0.9],
            "tags": ["given"],
        },
    ),
    "extract.relations": Case(
        {"iterations": 2},
        lambda e: e.fit(related()),
        samples.relations("en-de"),
        ways=[{"syntax": name} for name in ("none", "hidden-dependency", "hidden-constituency")],
        trials={"threshold": [0.02], "syntax": ["hidden-dependency"], "min_count": [3], "min_word": [5], "bits": [5]},
    ),
    "extract.roles": Case(
        {"iterations": 2, "senses": False},
        lambda e: e.fit(proposed()),
        samples.propositions("en-de"),
        ways=[{"syntax": name} for name in ("none", "given", "joint", "hidden-dependency")],
        trials={"threshold": [0.02], "senses": [True], "min_count": [3], "min_word": [5], "bits": [5]},
    ),
    "segment.morphemes": Case(
        {"rounds": 3, "iterations": 10},
        lambda e: e.fit(cut_words().text, cut_words()),
        new_words(),
        ways=[{"model": name} for name in ("up", "full")],
        trials={
            "model": ["up", "hmmp", "hmmp-basic"],
            "gold_as": [{"gold_as": "constraints", "iterations": 100}],
            "longest": [3],
            "min_count": [3],
            "rewrites": [0],
            "l2": [10.0],
            "frequencies": ["types"],
            "length_penalty": [2.0],
        },
    ),
    "segment.bilingual": Case(
        {"rounds": 3, "passes": 2},
        lambda e: e.fit(bitext()),
        bitext(),
        ways=[{"model": name} for name in ("up", "full")],
        trials={
            "model": ["up", "hmmp", "hmmp-basic"],
            "distortion": ["uniform"],
            "longest": [3],
            "frequencies": ["types"],
            "length_penalty": [2.0],
            "least": [0.3],
        },
    ),
    "joint.bilingual": Case(
        {"order": 1, "passes": 1, "iterations": 2, "min_count": 1},
        lambda e: e.fit(SOME_LINKED.take([0, 1, 2, 3])),
        tree_pairs().take([0, 4]),
        trials={
            "source_trees": ["best", {"source_trees": "given", "folds": 5}],
            "heads": [1],
            "weights": [{"weights": "fixed", "coupling": "mono", "iterations": 10, "min_count": 3}],
            "prune_links": [0.5],
            "threshold": [0.9],
            "rounds": [1],
            "min_count": [20],
            "rate": [1e-6],
            "l2": [50.0],
            "batch": [1],
            "folds": [3],
            "seed": [],
        },
    ),
    "joint.constituents": Case(
        {"order": 1, "passes": 1, "folds": 2, "iterations": 2, "min_count": 1},
        lambda e: e.fit(SOME_CONSTITUENTS),
        constituent_pairs().take([0, 4]),
        trials={
            "prune_brackets": [0.4],
            "prune_links": [0.5],
            "prune_bispans": [0.3],
            "threshold": [0.9],
            "sweeps": [1],
            "tolerance": [0.9],
            "min_count": [20],
            "seed": [],
        },
    ),
    "joint.multiview": Case(
        {"candidates": 4, "rounds": 3},
        lambda e: e.fit(unlinked(e.task), *monolingual(e.task)),
        SentencePairs(*(samples.mentions("en-de", side).part(0, 50) for side in ("source", "target"))),
        trials={"task": [], "rule": ["uniform"], "threshold": [0.95], "rounds": [1]},
    ),
    "joint.pairs": Case(
        {"order": 1, "passes": 1, "folds": 2, "iterations": 2, "min_count": 1},
        lambda e: e.fit(SOME_LINKED),
        tree_pairs().take([0, 4]),
        trials={
            "prune_heads": [0.4],
            "prune_links": [0.5],
            "threshold": [0.9],
            "sweeps": [1],
            "tolerance": [0.9],
            "min_count": [20],
            "seed": [],
        },
    ),
    "parse.delexicalised": Case({"iterations": 1}, lambda e: e.fit([FEW, TAGGED[:5]], FEW), new_treebank()),
    "parse.dependency": Case(
        {"iterations": 2, "order": 1, "projective": False},
        lambda e: e.fit(FEW),
        new_treebank(),
        ways=[{"trainer": name} for name in ("likelihood", "risk", "mira", "perceptron")],
        trials={
            "rate": [1e-6],
            "templates": [("head.word", "child.tag")],
            "factors": [{"factors": ("grand",), "order": 2, "trainer": "likelihood"}],
            "rounds": [{"rounds": 1, "order": 2, "trainer": "likelihood"}],
            "tags": [{"tags": "predicted", "trainer": "likelihood"}],
            "decoder": [{"decoder": "map", "trainer": name} for name in ("likelihood", "mira")],
            "constraint": [{"constraint": name, "trainer": "likelihood"} for name in CONSTRAINTS if name != "tree"],
        },
    ),
    "parse.induced": Case(
        {"iterations": 2, "longest": 30},
        lambda e: e.fit(FEW),
        new_treebank(),
        ways=[*({"learner": name} for name in ("sparse", "em", "dirichlet")), {"learner": "em", "rules": "ud"}],
        trials={
            "longest": [6],
            "back_off": [{"back_off": 1.0, "model": "extended"}],
            "tolerance": [{"tolerance": 1.0, "iterations": 4}],
            "dual_steps": [1],
            "column": [],
        },
    ),
    "parse.joint": Case(
        {"iterations": 1, "tag_iterations": 1},
        lambda e: e.fit(FEW),
        FEW[:3],
        trials={
            "dictionary": [{"dictionary": "train", "threshold": 1}],
            "attributes": [("Case",)],
            "threshold": [{"threshold": 1, "dictionary": "train"}],
            "tags": [{"tags": "gold", "joint": False}],
        },
    ),
    "parse.transferred": Case(
        {"iterations": 1, "contractions": "de"},
        lambda e: e.fit(PAIRS, source=TAGGED[:5], links=links()[:5]),
        PAIRS.target,
        trials={
            "dictionary": [WORDS],
            "contractions": ["none"],
            "longest": [8],
            "share": [{"share": 0.1, "method": "posterior"}],
            "shares": [{"shares": "agreement", "method": "posterior"}],
            "model": [{"model": "grammar", "method": "posterior"}],
        },
    ),
    "parse.restyled": Case(
        {"iterations": 5, "l2": 1.0},
        lambda e: e.fit(convert(FEW, "chain", "head"), FEW),
        TREES,
        trials={
            "l2": [100.0],
            "folds": [],
            "seed": [],
            "decoder": [{"decoder": "map", "l2": l2} for l2 in (0.01, 10.0, 100.0)],
        },
    ),
    "rank.pairs": Case(
        {"regularisation": 0.02, "iterations": 3, "constraints": 3, "lexicon": DICTIONARY},
        lambda e: e.fit(ranked()),
        ranked(),
        ways=[{"trainer": "dual"}, {"trainer": "pegasos"}],
        trials={
            "features": [("index", "url")],
            "lexicon": [DICTIONARY[1:]],
            "least": [0.5],
            "regularisation": [0.5],
            "folds": [{"folds": 2, "regularisation": None}],
            "most_pairs": [3],
            "tolerance": [{"tolerance": 0.9, "trainer": "dual"}],
            "iterations": [
                {"iterations": 1, "tolerance": 0.0, "trainer": "dual"},
                {"iterations": 1, "trainer": "pegasos"},
            ],
        },
    ),
    "topics.polylingual": Case(
        {"iterations": 5, "min_documents": 1, "samples": 3, "optimise": 2, "burn_in": 1},
        lambda e: e.fit(documents(), lexicons={("en", "de"): [("parliament", "parlament")]}),
        new_documents(),
        trials={
            "neighbours": [1],
            "lean": [0.0],
            "max_share": [0.2],
            "concentration": [5.0],
            "drop_frequent": [3],
            "topics": [3],
            "iterations": [2],
            "burn_in": [3],
            "optimise": [0],
            "beta": [1.0],
            "samples": [9],
            "blocks": [3],
            "min_documents": [3],
        },
    ),
    "translate.phrases": Case(
        {"iterations": 2, "nbest": 10, "passes": 2},
        lambda e: e.fit(samples.bitext("en-de")[:40], samples.bitext("en-de")[40:], links=samples.gold("en-de")[:40]),
        samples.bitext("en-de")[30:].source,
        trials={
            "candidates": [1],
            "beam": [1],
            "pops": [{"pops": 2, "distortion_limit": 1}],
            "table_limit": [1],
            "distortion_limit": [1],
            "cap": [1e-4],
            "nbest": [{"nbest": 2, "iterations": 6}, {"nbest": 3, "iterations": 6, "cap": 0.1}],
            "features": [{"features": name, "feature_count": 1} for name in ("phrases", "pos", "all")],
            "trainer": [sparse(trainer=name) for name in ("perceptron", "mira")],
            "update": [],  # no reference can be reached: `test_translate_sparse` looks at it
            "proposals": [sparse(proposals=2)],
            "rate": [sparse(rate=0.5)],
            "dense_rate": [sparse(dense_rate=1.0)],
            "epochs": [sparse(epochs=1)],
            "learn_on": [sparse(learn_on=10)],
            "feature_count": [sparse(feature_count=4)],
            "folds": [sparse(folds=3)],
            "batch": [sparse(batch=4)],
            "classes": [sparse(classes=3)],
        },
    ),
    "tag.crf": Case({"iterations": 2}, lambda e: e.fit(TREES), new_treebank(), trials={"templates": [("word",)]}),
    "threads.paths": Case(
        {"k": 3, "length": 3, "samples": 2, "dimensions": 8, "min_documents": 2},
        lambda e: e.fit(ARCHIVE),
        [0, 1],
        trials={
            "links": ["similar"],  # auto is given here
            "least_similarity": [0.3],
            "successors": [{"successors": 1, "links": "similar"}],
            "revisit": [{"revisit": True, "links": "given"}],
            "shorter": [{"shorter": True, "beta": 0.0, "length": 6}],
            "disjoint": [{"disjoint": True, "beta": 6.0}],
        },
    ),
    "tag.several": Case(
        {"iterations": 2},
        lambda e: e.fit(TREES),
        new_treebank(),
        trials={"templates": [("word",)], "columns": [("upos",)]},
    ),
    "tag.dictionary": Case(
        {"iterations": 2, "dictionary": WORDS},
        lambda e: e.fit(TEXT),
        TEXT,
        ways=[{"emissions": "features"}, {"emissions": "table"}, {"emissions": "features", "method": "gradient"}],
        trials={
            "dictionary": [TagDictionary.of_treebank(TREES.part(0, 4))],
            "features": ["paper"],
            "decoder": [{"decoder": "viterbi", "emissions": "features"}],
        },
    ),
    "tag.graph": Case(
        {"iterations": 1, "neighbours": 2},
        lambda e: e.fit(TREES[:5], TEXT),
        TEXT,
        trials={
            "tolerance": [{"tolerance": 100.0, "iterations": 3}],
            "seed": [],
            "templates": [("word",)],
            "suffixes": [("en",)],
        },
    ),
    "tag.projected": Case(
        {"iterations": 2, "dictionary": TagDictionary({"gehen": "ADV"})},
        lambda e: e.fit(*AMBIGUOUS[:2], links=AMBIGUOUS[2]),
        Text.of(["gehen Sendung !", "Sendungen gehen"]),
        ways=[{"learner": name, "soft": soft} for name in ("crf", "hmm") for soft in (False, True)],
        trials={"column": [], "iterations": [30], "dictionary": [TagDictionary({"Sendung": "NOUN"})]},
    ),
}


def test_all_kinds_are_tried() -> None:
    assert CASES.keys() == store.KINDS.keys()


@pytest.mark.parametrize("kind", CASES)
def test_every_option_says_something(kind: str) -> None:
    case = CASES[kind]
    module, name = store.KINDS[kind].split(":")
    made = getattr(import_module(module), name)
    check_effects(
        lambda **given: made(**{**case.options, **given}), case.fit, case.text, ways=case.ways, trials=case.trials
    )
