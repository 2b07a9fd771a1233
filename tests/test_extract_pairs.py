"""Relations between names and roles of predicates, with and without hidden trees."""

from __future__ import annotations

import json

import numpy as np
import pytest

from isogloss import samples, store
from isogloss.cli import main
from isogloss.data import Mentions, Propositions, Treebank
from isogloss.data.formats.relations import parse_heads, parse_marked
from isogloss.errors import MentionsError, ParameterError, TreebankError, UsageError
from isogloss.metrics import compare_relations, compare_roles, score_relations, score_roles
from isogloss.tasks.extract import RelationExtractor, RoleLabeller
from isogloss.tasks.extract.name_pairs import Labels, NamePairs, Nodes, pair_problem
from isogloss.tasks.extract.pair_words import lowered
from isogloss.tasks.extract.relations import _checked
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.constituency.words import Known
from isogloss.tasks.tag import CrfTagger
from isogloss.testing import check_estimator

SEMEVAL = (
    b'1\t"The <e1>cup</e1> of hot <e2>tea</e2>."\nContent-Container(e2,e1)\nComment: none\n\n'
    b'2\t"A <e2>dog</e2> saw the <e1>old cat</e1>."\nCause-Effect(e2,e1)\n\n'
    b'3\t"<e1>A</e1> and <e2>B</e2>"\nOther\nComment:\n'
)


@pytest.fixture(scope="module")
def related() -> Mentions:
    return samples.relations("en-de")


@pytest.fixture(scope="module")
def proposed() -> Propositions:
    return samples.propositions("en-de")


# --- files -------------------------------------------------------------------------------------------------------


def test_semeval_is_read_and_answers_are_written():
    given = parse_marked(SEMEVAL)
    assert given.words(0) == ("The", "cup", "of", "hot", "tea", ".")
    assert [given.relations(s) for s in range(3)] == [
        ((1, 0, "Content-Container"),),
        ((0, 1, "Cause-Effect"),),  # the name that is marked second comes first
        (),
    ]
    assert given.entities(1) == ((1, 2, "e"), (4, 6, "e"))
    assert given.to_bytes() == b"1\tContent-Container(e2,e1)\n2\tCause-Effect(e2,e1)\n3\tOther\n"
    assert given[1:].to_bytes() == b"2\tCause-Effect(e2,e1)\n3\tOther\n"


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (b'1\t"<e1>a</e1> b"\nOther\n', "line 1: .* two marked names"),
        (b'1\t"<e1>a</e1> <e2>b</e2>"\nCause-Effect\n', "line 2: .* is no label"),
        (b'1\t"<e1>a</e1> <e2>b</e2>"\nOther\nmore\n', "line 3: 'more' is neither"),
    ],
)
def test_wrong_files_of_semeval_are_refused(text, finding):
    with pytest.raises(MentionsError, match=finding):
        Mentions.from_bytes(text, format="semeval")


def test_conll04_is_written_as_it_was_read(related):
    data = samples.path("en-de", "source-relations").read_bytes()
    assert related.to_bytes() == data
    assert related[3:5].to_bytes() in data
    turned = related.with_relations(
        [[(b, a, label) for a, b, label in related.relations(s)] for s in range(len(related))]
    )
    assert parse_heads(turned.to_bytes()).relations(0) == turned.relations(0)
    for text, finding in ((b"#doc 1\n0\ta\n", "line 2"), (b"#doc 1\n0\ta\tB-X\t['R']\t[]\n", "two lists"),
                          (b"#doc 1\n0\ta\tB-X\t['R']\t[1]\n1\tb\tO\t['N']\t[1]\n", "not both names")):  # fmt: skip
        with pytest.raises(MentionsError, match=finding):
            parse_heads(text)


def test_propositions_are_written_as_they_were_read(proposed):
    data = samples.path("en-de", "source-roles").read_bytes()
    assert proposed.to_bytes() == data
    assert proposed[2:4].to_bytes() in data
    bare = proposed.with_predicates([[] for _ in range(len(proposed))])
    assert Propositions.from_bytes(bare.to_bytes()).n_predicates == 0
    every = [proposed.predicates(s) for s in range(len(proposed))]
    again = Propositions.from_bytes(Propositions.of(proposed.treebank, every).to_bytes())
    assert [again.predicates(s) for s in range(len(again))] == [proposed.predicates(s) for s in range(len(again))]


def test_propositions_with_a_flag_and_multiword_tokens():
    lines = ["# x", "1-2 du _ _ _ _ _ _ _ _", "1 d d X _ _ 2 x _ _ A0", "2 u u VERB _ _ 0 root Y u.01 _", "", ""]
    text = "\n".join(lines).replace(" ", "\t").replace("#\t", "# ").encode()
    given = Propositions.from_bytes(text)
    assert given.predicates(0) == ((1, "u.01", ((0, "A0"),)),)
    assert given.to_bytes() == text
    assert given.with_predicates([[(1, "u.02", ())]]).to_bytes().count(b"u.02") == 1
    with pytest.raises(TreebankError, match="line 1: 12 columns, where a sentence with 0 predicates has 11"):
        Propositions.from_bytes(b"1\ta\ta\tX\t_\t_\t0\troot\t_\t_\t_\tA0\n\n")
    with pytest.raises(ParameterError, match="counted from 0"):
        given.with_predicates([[(5, "u.01", ())]])


# --- scores ------------------------------------------------------------------------------------------------------


def test_the_macro_average_is_that_of_the_official_scorer():
    """By hand: of A one of two is right in its direction; of B all; C is missed; Other does not count."""
    names = [(0, 1, "e"), (1, 2, "e")]
    labels = [[(0, 1, "A")], [(0, 1, "A")], [(0, 1, "B")], [(0, 1, "C")], []]
    gold = Mentions.of([(["x", "y"], names, own) for own in labels])
    found = gold.with_relations([[(0, 1, "A")], [(1, 0, "A")], [(0, 1, "B")], [], [(0, 1, "B")]])
    score = score_relations(found, gold, average="macro", bootstrap=0)
    assert score.f1 == pytest.approx(100 * (0.5 + 2 / 3 + 0) / 3)
    micro = score_relations(found, gold, bootstrap=0)
    assert (micro.precision, micro.recall, micro.average) == (50.0, 50.0, "micro")
    assert micro.unlabelled == pytest.approx(100 * 2 * 3 / 8)
    difference = compare_relations(gold, found, gold, resamples=100)
    assert difference.delta == pytest.approx(50.0) and difference.first == 100.0
    with pytest.raises(MentionsError, match="different names"):
        score_relations(Mentions.of([(["x", "y"], names[:1])] * 5), gold)


def test_roles_are_scored_with_senses(proposed):
    assert float(score_roles(proposed, proposed).semantic) == 100.0
    bare = proposed.with_predicates(
        [[(w, "x.01", ()) for w, _, _ in proposed.predicates(s)] for s in range(len(proposed))]
    )
    assert (score_roles(bare, proposed).f1, score_roles(bare, proposed).senses) == (0.0, 0.0)
    assert compare_roles(proposed, bare, proposed, measure="unlabelled", resamples=50).delta == 100.0


# --- what is seen ------------------------------------------------------------------------------------------------


def test_names_are_one_node_and_pairs_are_coupled_to_what_lies_between():
    given = Mentions.of([(["New", "York", "is", "in", "the", "old", "US"], [(0, 2, "LOC"), (6, 7, "LOC")])])
    nodes, pairs = Nodes.of(given), NamePairs.of(given)
    assert nodes.words(given, 0) == ("New York", "is", "in", "the", "old", "US")
    known = Known.of(lowered(given.columns["form"]), 1)
    for tree, cells in (("projective", [1 * 7 + 6, 6 * 7 + 1]), ("brackets", [20]), ("none", [])):
        problem = pair_problem(given, pairs, known, given.columns["form"], tree)
        assert problem.couplings.cell.tolist() == cells and problem.couplings.lengths.tolist() == [6]
    overlapping = given.with_entities([[(0, 2, "x"), (1, 3, "y")]])
    assert Nodes.of(overlapping).of_name.tolist() == [0, 0]
    seen = pair_problem(overlapping, NamePairs.of(overlapping), known, given.columns["form"], "projective")
    assert not len(seen.couplings.cell)


def test_labels_have_a_direction(related):
    labels = Labels.of(related)
    assert Labels.read(labels.written) == labels
    pairs = NamePairs.of(related)
    right = pairs.labels(related, labels)
    for s in range(len(related)):
        own = range(int(pairs.offsets[s]), int(pairs.offsets[s + 1]))
        told = {pairs.relation(p, int(right[p]), labels) for p in own if right[p] >= 0}
        assert told == set(related.relations(s))


# --- estimators --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"syntax": "none"}, {"syntax": "hidden-constituency", "bits": 8}])
def test_relation_extractors_keep_the_laws(related, options):
    some, empty = related[:10], related[:0]
    check_estimator(
        lambda **given: RelationExtractor(**{"iterations": 2, **options, **given}),
        lambda made: made.fit(some), related, empty=empty, training=some,
        other_fit=lambda made: made.fit(related[10:16]), score=lambda made: made.score(related),
    )  # fmt: skip


def test_role_labellers_keep_the_laws(proposed):
    some = proposed[:8]
    check_estimator(
        lambda **given: RoleLabeller(**{"iterations": 2, "bits": 8, **given}),
        lambda made: made.fit(some), proposed, empty=proposed[:0], training=some,
        other_fit=lambda made: made.fit(proposed[8:12]), score=lambda made: made.score(proposed),
    )  # fmt: skip


@pytest.mark.parametrize("syntax", ["none", "hidden-dependency", "hidden-constituency"])
def test_relations_are_learnt_and_trees_can_be_looked_at(related, syntax):
    extractor = RelationExtractor(syntax=syntax).fit(related[:40], related[40:])
    assert extractor.score(related[40:]).f1 > 80 and len(extractor.tuning_)
    found = extractor.predict(related, confidence=True)
    assert found.n_relations == len(found.relation_confidence) and (found.relation_confidence > 0.2).all()
    posteriors = extractor.predict_proba(related)
    assert [len(own) for own in posteriors] == np.diff(NamePairs.of(related).offsets).tolist()
    if syntax == "none":
        with pytest.raises(UsageError, match="there are none"):
            extractor.latent_trees(related)
        return
    trees = extractor.latent_trees(related[:3])
    assert all(0 <= chance <= 1 + 1e-9 for tree in trees for chance in tree.probability)
    assert all((tree.heads is None) != (tree.spans is None) for tree in trees)


def test_given_syntax_needs_a_parser_and_carries_it_along(related, tmp_path):
    trees = Treebank.from_bytes(samples.trees("en-de", "source").encode())
    parser = DependencyParser(order=1, tags="predicted", iterations=2).fit(trees)
    tagger = CrfTagger(order=1, iterations=2).fit(trees)
    made = RelationExtractor(syntax="given", iterations=3)
    for wrong in ({}, {"parser": tagger}, {"parser": parser, "tagger": parser}):
        with pytest.raises(ParameterError):
            made.fit(related, **wrong)
    made.fit(related, parser=parser, tagger=tagger).save(tmp_path / "given")
    loaded = store.load(tmp_path / "given")
    assert loaded.predict(related).to_bytes() == made.predict(related).to_bytes()
    with pytest.raises(ParameterError, match="no parser is looked at"):
        RelationExtractor(syntax="none").fit(related, parser=parser)


def test_roles_in_all_four_conditions(proposed):
    for syntax in ("none", "given", "joint", "hidden-dependency"):
        labeller = RoleLabeller(syntax=syntax, iterations=4).fit(proposed)
        score = labeller.score(proposed)
        assert score.f1 > 85 and score.senses == 100.0
        if syntax == "joint":
            heads, _ = labeller.latent_trees(proposed)
            right = np.concatenate(heads) == proposed.treebank.heads
            assert right.mean() > 0.8  # trees are learnt as well
    lacking = Propositions.of(Treebank.of([[("a", "X"), ("b", "VERB")]]), [[(1, "b.01", ((0, "A"),))]])
    with pytest.raises(TreebankError, match="has no head"):
        RoleLabeller(syntax="given").fit(lacking)
    assert RoleLabeller(syntax="none", iterations=1).fit(lacking).predict(lacking).n_predicates == 1


def test_what_cannot_be_learnt_is_said(related, proposed):
    with pytest.raises(MentionsError, match=r"has no relations .* \(semeval\) .* \(conll04\) have them; columns"):
        RelationExtractor().fit(related.with_relations([[]] * len(related)))
    with pytest.raises(ParameterError, match="give Mentions"):
        RelationExtractor().fit(["a"])
    with pytest.raises(TreebankError, match="no predicate has an argument"):
        RoleLabeller().fit(proposed.with_predicates([[]] * len(proposed)))
    with pytest.raises(ParameterError, match="give Propositions"):
        RoleLabeller().fit(related)
    with pytest.raises(MentionsError, match="Cut it"):
        _checked(Mentions.of([(["a"] * 300, [])]), "fit")


def test_a_sense_that_was_never_met_is_the_first(proposed):
    labeller = RoleLabeller(syntax="none", iterations=1).fit(proposed)
    new = Propositions.of(Treebank.of([[("zorks", "VERB", 0, "root", "zork")]]), [[(0, "_", ())]])
    assert labeller.predict(new).predicates(0)[0][1] == "zork.01"


# --- commands ----------------------------------------------------------------------------------------------------


def test_the_commands_for_relations_and_roles(tmp_path, capsys):
    file, model, out = tmp_path / "semeval.txt", tmp_path / "model", tmp_path / "out.txt"
    file.write_bytes(SEMEVAL * 4)
    numbered = SEMEVAL + SEMEVAL.replace(b"1\t", b"4\t").replace(b"2\t", b"5\t").replace(b"3\t", b"6\t")
    file.write_bytes(numbered)
    assert (
        main(["extract", "train", str(file), "--task", "relations", "--iterations", "4", "--save", str(model), "-q"])
        == 0
    )
    assert main(["extract", "apply", str(model), str(file), "-o", str(out), "-q"]) == 0
    assert [line.split("\t")[0] for line in out.read_text().splitlines()] == list("123456")
    assert main(["extract", "score", str(out), str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["average"] == "macro" and 0 <= told["f1"] <= 100
    (tmp_path / "short.txt").write_text("1\tOther\n")
    assert main(["extract", "score", str(tmp_path / "short.txt"), str(file)]) == 1
    assert "no line for sentence 2" in capsys.readouterr().err
    plain = tmp_path / "plain.txt"
    plain.write_text("She sleeps .\n")
    assert main(["extract", "apply", str(model), str(plain), "-q"]) == 2
    assert "names have to be marked" in capsys.readouterr().err
    roles = str(samples.path("en-de", "source-roles"))
    train = [
        "extract",
        "train",
        roles,
        "--task",
        "roles",
        "--syntax",
        "joint",
        "--iterations",
        "2",
        "--save",
        str(model),
    ]
    assert main([*train, "--tagger", "x"]) == 2
    assert main([*train, "-q"]) == 0
    assert main(["extract", "apply", str(model), roles, "-o", str(out), "-q"]) == 0
    assert main(["extract", "score", str(out), roles, "--against", str(out)]) == 0
    assert "senses" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("labels", "heads"),
    [
        ("[" * 100_000, "[1]"),
        ("['a']", "[" * 100_000),
        ("['a']", "[1, 2]"),
        ("['a']", f"[{'9' * 6000}]"),
        ("f('a')", "[1]"),
    ],
    ids=["deep labels", "deep heads", "lengths", "long number", "a call"],
)
def test_lists_of_relations_are_read_as_lists_and_as_nothing_else(labels: str, heads: str) -> None:
    text = f"#doc 1\n0\tRome\tB-Loc\t{labels}\t{heads}\n"
    with pytest.raises(MentionsError, match=r"line 2: .* two lists of the same length"):
        parse_heads(text.encode())
