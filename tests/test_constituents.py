"""Trees of constituents: brackets in and out, other formats, and other forms that can be undone."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data import Constituents, Treebank
from isogloss.data.constituent_forms import continuous, from_dependencies, stripped, without_root
from isogloss.data.constituents import escaped, unescaped
from isogloss.data.head_rules import bare, head_child, heads_by_table, heads_from_dependencies
from isogloss.errors import ParameterError, TreebankError

LABELS = ["S", "NP", "VP", "NP-SBJ-1", "PP=2", "X|Y", ""]
TAGS = ["NN", "DT", "-NONE-", "-LRB-", ",", "P$"]
WORDS = ["a", "b", "-LRB-", "*T*-1", "ä", "1\\/2"]


def random_tree(rng: random.Random, n: int, depth: int = 0) -> str:
    if n == 1 and (depth > 4 or rng.random() < 0.6):
        return f"({rng.choice(TAGS)} {rng.choice(WORDS)})"
    k = rng.randint(1, min(n, 4))
    cuts = [0, *sorted(rng.sample(range(1, n), k - 1)), n]
    if k == 1 and depth > 5:
        cuts = list(range(n + 1))
    children = [random_tree(rng, b - a, depth + 1) for a, b in pairwise(cuts)]
    return f"({rng.choice(LABELS)} {' '.join(children)})"


def plain(text: str) -> list[str]:
    return re.findall(r"[()]|[^\s()]+", text)


def by_stack(text: str) -> tuple[list[str], list[str], list[tuple[int, int, str]]]:
    """Words, tags and (begin, end, label) in pre-order, read in another way than ours."""
    words, tags, nodes, stack = [], [], [], []
    for match in re.finditer(r"\(\s*([^\s()]*)\s*([^\s()]+)\s*\)|\(\s*([^\s()]*)|(\))", text):
        if match[2] is not None:
            words.append(match[2])
            tags.append(match[1])
        elif match[4]:
            begin, label, place = stack.pop()
            nodes[place] = (begin, len(words), label)
        else:
            stack.append((len(words), match[3], len(nodes)))
            nodes.append((0, 0, ""))
    return words, tags, nodes


@given(st.integers(0, 10**6), st.lists(st.integers(1, 9), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_brackets_are_read_as_another_reader_reads_them(seed: int, lengths: list[int]) -> None:
    rng = random.Random(seed)
    texts = [random_tree(rng, n) for n in lengths]
    space = rng.choice(["\n", "\n\n", " ", "\r\n"])
    trees = Constituents.from_bytes(space.join(texts).encode())
    assert len(trees) == len(texts)
    for tree, text in zip(trees, texts, strict=True):
        words, tags, nodes = by_stack(text)
        assert (list(tree.words), list(tree.tags), tree.brackets()) == (words, tags, nodes)
        assert plain(str(tree)) == plain(text)
    again = Constituents.from_bytes(trees.to_bytes("pretty"))
    assert [str(tree) for tree in again] == [str(tree) for tree in trees]
    assert trees.to_bytes() == space.join(texts).encode()
    assert Constituents.from_bytes(trees.to_bytes("line")).to_bytes() == trees.to_bytes("line")


@given(st.integers(0, 10**6), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_forms_can_be_undone(seed: int, n: int) -> None:
    rng = random.Random(seed)
    trees = Constituents.of([random_tree(rng, n) for _ in range(3)])
    before = [str(tree) for tree in trees]
    assert [str(tree) for tree in trees.collapsed().expanded()] == before
    for direction in ("left", "right", "head"):
        how = {"horizontal": rng.choice([None, 0, 1, 2]), "vertical": rng.randint(1, 3), "tags": rng.random() < 0.5}
        binary = trees.binarised(direction=direction, **how)
        assert [str(tree) for tree in binary.unbinarised()] == before
        assert binary.n_nodes == 0 or binary.statistics()["most_children"] <= 2


def test_rows_and_slices_keep_their_text() -> None:
    text = b"( (S (NN a)) )\n\n(NP\n  (DT b)\n  (NN c))\n(X (Y d))"
    trees = Constituents.from_bytes(text, "file.mrg")
    assert (len(trees), trees.n_words, trees.n_nodes) == (3, 4, 4)
    assert trees[1:].to_bytes() == b"\n(NP\n  (DT b)\n  (NN c))\n(X (Y d))"
    assert trees.take([2, 0]).to_bytes() == b"(X (Y d))\n( (S (NN a)) )\n"
    assert [trees.line_of(k) for k in range(3)] == [1, 3, 6]
    assert trees[::-1].line_of(0) == 6
    assert str(trees[-1]) == "(X (Y d))"
    both = Constituents.joined([trees[:1], trees[1:]])
    assert [str(tree) for tree in both] == [str(tree) for tree in trees]
    assert trees.text()[1] == ("b", "c")
    with pytest.raises(IndexError):
        trees[3]


def test_empty_lines_are_sentences_where_that_is_asked() -> None:
    text = b"(A b)\n\n(C d)\n\n"
    assert len(Constituents.from_bytes(text)) == 2
    trees = Constituents.from_bytes(text, empty_lines=True)
    assert [len(tree) for tree in trees] == [1, 0, 1, 0]
    assert trees.to_bytes("line") == text
    assert [len(tree) for tree in Constituents.from_bytes(b"()\n(())\n(A b)")] == [0, 0, 1]


@pytest.mark.parametrize(
    ("text", "line", "finding"),
    [
        ("(S (NP (NN x))", 1, "never ends"),
        ("(S (NN x))\n\n(NP (X", 3, "never ends"),
        ("(S (NN x)))", 1, "never opened"),
        ("(S\n (NP the dog))", 2, "two words"),
        ("(S the (NN x))", 1, "has no tag"),
        ("( x)", 1, "has no tag"),
        ("(S (NN x) y)", 1, "has no tag"),
        ("\nhello", 2, "outside of all brackets"),
        ("(S (NP) (NN x))", 1, "has no word in it"),
        ("(S () (NN x))", 1, "has no word in it"),
        ("(S (VP ()) (NN x))", 1, "has no word in it"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, finding: str) -> None:
    with pytest.raises(TreebankError, match=rf"bad\.mrg, line {line}: .*{finding}"):
        Constituents.from_bytes(text.encode(), "bad.mrg")


def test_traces_and_functions_are_stripped() -> None:
    text = "( (S (NP-SBJ-1 (-NONE- *)) (VP (VBD was) (NP=2 (-NONE- *-1)) (PRT|ADVP (RP up)))) )"
    trees = Constituents.of([text])
    assert str(stripped(trees)[0]) == "( (S (VP (VBD was) (PRT|ADVP (RP up)))))"
    assert str(stripped(trees, functions=False, empty=True)[0]) == "( (S (VP (VBD was) (PRT|ADVP (RP up)))))"
    assert str(stripped(trees, empty=False)[0]).startswith("( (S (NP (-NONE- *))")
    assert str(without_root(stripped(trees))[0]) == "(S (VP (VBD was) (PRT|ADVP (RP up))))"
    assert bare("-LRB-") == "-LRB-"


def test_binarising_remembers_what_it_is_asked_to() -> None:
    trees = Constituents.of(["(S (NP (NN a)) (, ,) (VP (VB b)) (. .))"])
    assert str(trees.binarised(horizontal=0)[0]) == "(S (NP (NN a)) (@S (, ,) (@S (VP (VB b)) (. .))))"
    everything = "(S (NP (NN a)) (@S|NP (, ,) (@S|,_NP (VP (VB b)) (. .))))"
    assert str(trees.binarised()[0]) == everything
    left = "(S (@S|. (@S|VP_. (NP (NN a)) (, ,)) (VP (VB b))) (. .))"
    assert str(trees.binarised(direction="left")[0]) == left
    head = "(S (NP (NN a)) (@S|NP (, ,) (@S|, (VP (VB b)) (. .))))"
    assert str(trees.binarised(direction="head", horizontal=1)[0]) == head
    above = "(S (NP^S (NN^NP a)) (@S (,^S ,) (@S (VP^S (VB^VP b)) (.^S .))))"
    assert str(trees.binarised(horizontal=0, vertical=2, tags=True)[0]) == above
    with pytest.raises(ParameterError, match="direction"):
        trees.binarised(direction="up")
    with pytest.raises(TreebankError, match="'@'"):
        Constituents.of(["(@S (A b))"]).binarised()
    with pytest.raises(TreebankError, match=r"'\+'"):
        Constituents.of(["(A+B (C d))"]).collapsed()


def test_words_are_escaped_both_ways() -> None:
    assert [unescaped(word) for word in ("-LRB-", "-RCB-", "1\\/2", "-lrb-")] == ["(", "}", "1/2", "-lrb-"]
    assert escaped("(x)") == "-LRB-x-RRB-"
    made = Constituents.assembled([["("]], [["("]], [[("NP", [0])]])
    assert str(made[0]) == "(NP (-LRB- -LRB-))"


# Discontinuous trees -------------------------------------------------------------------------------------------------

EXPORT = """%% a comment
#FORMAT 3
#BOT ORIGIN
0 none
#EOT ORIGIN
#BOS 1 1 2 3 %% sentence
Darüber\tPROAV\t--\tMO\t500
muss\tVMFIN\t--\tHD\t502
nachgedacht\tVVPP\t--\tHD\t500
werden\tVAINF\t--\tHD\t501
.\t$.\t--\t--\t0
#500\tVP\t--\tOC\t501
#501\tVP\t--\tOC\t502
#502\tS\t--\t--\t0
#EOS 1
"""


def test_negra_export_is_read_and_made_continuous() -> None:
    trees = Constituents.from_bytes(EXPORT.encode(), "t.export")
    assert trees[0].brackets() == [(0, 5, "VROOT"), (0, 4, "S"), (0, 4, "VP-OC"), (0, 3, "VP-OC")]
    assert trees.discontinuous.tolist() == [False, False, True, True]
    assert trees.strings("function", 0) == ("MO", "HD", "HD", "HD", "--")
    assert trees.to_bytes() == EXPORT.encode()
    with pytest.raises(TreebankError, match="this tree is discontinuous"):
        trees.to_bytes("line")
    flat = trees.continuous()
    whole = "(VROOT (S (VP-OC (PROAV Darüber)) (VMFIN muss) (VP-OC (VVPP nachgedacht) (VAINF werden))) ($. .))"
    assert str(flat[0]) == whole
    assert flat.strings("function", 0) == trees.strings("function", 0)


def test_version_four_has_lemmas() -> None:
    rows = "#FORMAT 4\n#BOS 1\nHaus\tHaus\tNN\tNeut\tHD\t500\n#500\t--\tNP\t--\t--\t0\n#EOS 1\n"
    trees = Constituents.from_bytes(rows.encode())
    assert str(trees[0]) == "(VROOT (NP (NN Haus)))"
    assert trees.strings("lemma", 0) == ("Haus",)
    assert trees.strings("morph", 0) == ("Neut",)


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("#EOS 1\n", "", "line 6: the sentence that begins here never ends"),
        ("#BOS 1 1 2 3 %% sentence\n", "", "line 6: .* outside of all sentences"),
        ("MO\t500", "MO\t599", "hangs on 599"),
        ("OC\t501\n#501", "OC\t777\n#501", "line 12: node #500 hangs on 777"),
        ("#501\tVP\t--\tOC\t502", "#500\tVP\t--\tOC\t502", "there twice"),
        ("#501\tVP\t--\tOC\t502", "#501\tVP\t--\tOC\t500", "hangs below itself"),
        ("muss\tVMFIN\t--\tHD\t502", "muss\tVMFIN\t502", "line 8: .* should have columns"),
    ],
)
def test_wrong_export_is_said_with_its_line(old: str, new: str, finding: str) -> None:
    assert old in EXPORT
    with pytest.raises(TreebankError, match=finding):
        Constituents.from_bytes(EXPORT.replace(old, new).encode(), "t.export")


def test_discbracket_is_read() -> None:
    text = b"(S (VP (V 0=Ruf) (PRT 2=an)) (NP (PRO 1=sie)))"
    trees = Constituents.from_bytes(text, "t.dbr")
    assert (trees.words(0), trees.tags(0)) == (("Ruf", "sie", "an"), ("V", "PRO", "PRT"))
    assert trees[0].brackets() == [(0, 3, "S"), (0, 3, "VP"), (1, 2, "NP")]
    assert str(trees[0]) == text.decode()
    assert str(continuous(trees)[0]) == "(S (VP (V Ruf)) (NP (PRO sie)) (PRT an))"
    assert str(continuous(trees, np.array([0, 2, 1], np.int32))[0]) == "(S (V Ruf) (NP (PRO sie)) (VP (PRT an)))"
    assert not Constituents.from_bytes(text, format="brackets").discontinuous.any()
    with pytest.raises(TreebankError, match="numbered 0 to 0"):
        Constituents.from_bytes(b"(S (V 1=x))", format="discbracket")
    with pytest.raises(ParameterError, match="format should be"):
        Constituents.from_bytes(text, format="penn")


@given(st.integers(0, 10**6), st.integers(1, 10))
@settings(max_examples=60, deadline=None)
def test_raising_makes_any_dependency_tree_continuous(seed: int, n: int) -> None:
    rng = random.Random(seed)
    order = rng.sample(range(1, n + 1), n)
    heads = [0] * n
    for k in range(1, n):
        heads[order[k] - 1] = order[rng.randrange(k)]
    tree = Treebank.of([[{"form": f"w{k}", "upos": rng.choice("AB"), "head": head} for k, head in enumerate(heads)]])
    made = from_dependencies(tree)
    assert made.words(0) == tree.words(0)
    assert not made.discontinuous.any()
    assert made.labels.vocabulary[made.labels.ids[0]] == "ROOT"
    assert made.n_nodes == 1 + len(set(heads) - {0})  # a node for each word that has something below it
    assert str(Constituents.of([str(made[0])])[0]) == str(made[0])
    if not tree.crossing.any():
        found = heads_from_dependencies(made, tree)
        for (begin, end, label), head in zip(made[0].brackets()[1:], found[1:].tolist(), strict=True):
            assert tree.strings("upos", 0)[head] == label
            below = {head}
            while len(more := below | {k for k in range(n) if heads[k] - 1 in below}) > len(below):
                below = more
            assert below == set(range(begin, end))


# Heads ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "children", "head"),
    [
        ("S", "NP VP .", 1),
        ("VP", "VBD VP", 0),
        ("VP", "TO VP", 0),
        ("NP", "DT NN POS", 2),
        ("NP", "NP PP", 0),
        ("NP", "NP , NP", 0),
        ("NP", "DT JJ NN NN", 3),
        ("NP", "CD", 0),
        ("NP", "DT", 0),
        ("PP", "ADVP IN NP", 1),
        ("VP", "VP CC VP", 0),
        ("SBAR", "IN S", 0),
        ("SBAR", "WHNP S", 0),
        ("PRN", ", S ,", 1),
        ("XX", "A B", 0),
    ],
)
def test_heads_by_table(label: str, children: str, head: int) -> None:
    assert head_child(label, children.split()) == head


def test_heads_of_whole_trees() -> None:
    trees = Constituents.of(["(S (NP (NP (DT the) (NN cat)) (PP (IN on) (NP (NN x)))) (VP (VBZ is) (ADJP (JJ old))))"])
    assert heads_by_table(trees).tolist() == [4, 1, 1, 2, 3, 4, 5]
