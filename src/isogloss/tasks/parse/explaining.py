"""Why a word has its head: features of links with their weights, and the parts that a tree gains and loses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isogloss.data.treebank import Treebank, features_of
from isogloss.errors import ParameterError
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import BINS
from isogloss.tasks.parse.features import ROLES, bin_name, numbered
from isogloss.tasks.parse.inference import best_trees
from isogloss.tasks.parse.scoring import PartScorer
from isogloss.tasks.parse.views import Sight, seen_by
from isogloss.tasks.parse.words import ATOMS, PAD, Columns, Words, values_of

if TYPE_CHECKING:
    from isogloss.tasks.parse.fitted import Fitted

__all__ = ["explain", "features_of_link"]


def explain(
    learnt: Fitted, alone: Treebank, trees: LoopyTrees, word: int, rival: int | None, decoder: str = "mbr"
) -> dict[str, Any]:  # fmt: skip
    """Compare the link to `word` (from 0) of a treebank of one sentence with the link from another head."""
    n = int(alone.lengths[0])
    head = int(best_trees(trees, decoder)[word])
    chances = trees.beliefs_of_links()[0][:, word + 1]
    if rival is None:
        others = np.where(np.arange(n + 1) == head, -1.0, chances)
        others[word + 1] = -1.0
        rival = int(others.argmax()) if n > 1 else head
    if not 0 <= rival <= n or rival == word + 1:
        raise ParameterError(
            f"explain: head {rival} of word {word + 1} is not in the sentence; 0 is the root, 1 … {n} words"
        )
    forms = ("ROOT", *alone.words(0))
    found: dict[str, Any] = {"word": forms[word + 1]}
    for name, number in (("head", head), ("rival", rival)):
        features = features_of_link(learnt, alone, number, word + 1)
        found[name] = {
            "number": number,
            "word": forms[number],
            "probability": float(chances[number]),
            "score": sum(entry["weight"] for entry in features),
            "features": sorted(features, key=lambda entry: -abs(entry["weight"])),
        }
    ours = {(entry["feature"], entry["bin"]): entry["weight"] for entry in found["head"]["features"]}
    theirs = {(entry["feature"], entry["bin"]): entry["weight"] for entry in found["rival"]["features"]}
    differences = {key: ours.get(key, 0.0) - theirs.get(key, 0.0) for key in {**ours, **theirs}}
    ranked = sorted(differences.items(), key=lambda entry: (-abs(entry[1]), entry[0]))
    found["difference"] = [{"feature": name, "bin": bin_, "weight": value} for (name, bin_), value in ranked if value]
    return found | {"parts": _gained_and_lost(trees, forms, word, head, rival, decoder)}


def _gained_and_lost(
    trees: LoopyTrees, forms: tuple[str, ...], word: int, head: int, rival: int, decoder: str
) -> list[dict[str, Any]]:
    """What the best tree with one head of a word has and that with another has not, and the other way round.

    Scores, with the other sign for parts of the rival's tree, add up to the difference of the scores of both trees.
    Nothing, where no tree that the parser looks at has the rival.
    """
    known = np.full(len(forms) - 1, -1)
    parts, scores = trees.layout, trees.scores.values
    if rival not in parts.head[parts.link_words == word]:
        return []
    known[word] = head
    change = parts.indicate(best_trees(trees.having(known), decoder))
    known[word] = rival
    other = trees.having(known)
    if not other.partitions_and_beliefs()[0][0] > -np.inf:
        return []
    change -= parts.indicate(best_trees(other, decoder))
    found = []
    for place in np.flatnonzero(change).tolist():
        family, nodes = parts.name(0, place)
        found.append({
            "tree": "head" if change[place] > 0 else "rival", "part": family, "nodes": nodes,
            "words": _words_of(family, nodes, forms), "score": float(change[place] * scores[place]),
        })  # fmt: skip
    return sorted(found, key=lambda entry: -abs(entry["score"]))


def _words_of(family: str, nodes: tuple[int | None, ...], forms: tuple[str, ...]) -> str:
    """A part for people to read."""
    if family in ("siblings", "valence"):
        head, side = forms[int(nodes[0] or 0)], "right" if nodes[1] else "left"
        if family == "valence":
            return f"{head}, {nodes[2]}{' or more' if nodes[2] == BINS - 1 else ''} on the {side}"
        before, after = ("–" if node is None else forms[node] for node in nodes[2:])
        return f"{head} → {before}, {after} on the {side}"
    return (", " if family == "crossing" else " → ").join(forms[int(node or 0)] for node in nodes)


def features_of_link(learnt: Fitted, alone: Treebank, head: int, child: int) -> list[dict[str, Any]]:
    """The features of one link that have a weight: template with its values, direction and length, and weight."""
    from isogloss.features._numba.mixing import key_of
    from isogloss.features._numba.table import find
    from isogloss.tasks.parse._numba import features

    kernels: Any = features
    scorer, columns, sight = learnt.scorer, learnt.columns, seen_by(learnt.views, alone)
    words = learnt.encode(alone)
    begin, terms, factors, dynamic, places = scorer.features.numbers()[0]
    n, first = int(words.lengths[0]), int(words.starts[0]) + PAD
    sides = np.empty((2, n + 1, len(begin)), np.uint64)
    kernels.sides(words.codes, first, n, begin, terms, factors, sides[0], sides[1])
    room = kernels.most_keys(len(begin), words.features.shape[1])
    codes, which = np.empty(room, np.uint64), np.zeros(room, np.int64)
    m = kernels.keys_of_link(head, child, first, n, words.arrays, *sides, dynamic, places, codes, which)
    names = _static(scorer, alone, columns, words, sight, head, child)
    names += _dynamic(alone, columns, words, sight, head, child)
    assert len(names) == m
    slots, bin_ = scorer.table.slots, int(kernels.bin_of(head, child))
    mask = np.uint64(len(slots) // 2 - 1)
    found: list[dict[str, Any]] = []
    for name, code in zip(names, codes[:m], strict=True):
        for variant in (0, bin_):
            slot = find(slots, mask, np.uint64(key_of(code, variant)))
            if slot >= 0:
                weight = float(slots[2 * slot + 1 : 2 * slot + 2].view(np.float32)[0])
                found.append({"feature": name, "bin": bin_name(variant), "weight": weight})
    return found


def _static(
    scorer: PartScorer, alone: Treebank, columns: Columns, words: Words, sight: Sight, head: int, child: int
) -> list[str]:  # fmt: skip
    """Templates with values in their places: ``head.tag=NOUN & child.tag=DET``."""
    n, first = int(words.lengths[0]), int(words.starts[0]) + PAD
    lemmas = {int(words.codes[first + i, 1]): text for i, text in enumerate(_texts(alone, "lemma", columns), 1)}
    parts: list[list[str]] = [[] for _ in scorer.features.links.names]
    atoms = columns.atoms
    for template, role, shift, atom in numbered(scorer.features.links, atoms).terms.tolist():
        place = (head if role == 0 else child) + shift
        name = f"{ROLES[role]}.{atoms[atom]}{f'[{shift:+d}]' if shift else ''}"
        if place == 0 or not 0 < place <= n:
            value = "ROOT" if place == 0 else "^" if place < 0 else "$"
        elif atoms[atom] == "marker":
            value = lemmas.get(int(words.codes[first + place, 5]), "none or to the right")
        elif atom >= len(ATOMS):
            value = str(sight.values[place - 1, atom - len(ATOMS)])
        else:
            value = _texts(alone, atoms[atom], columns)[place - 1]
        parts[template].append(f"{name}={value}")
    return [" & ".join(part) for part in parts]


def _texts(alone: Treebank, atom: str, columns: Columns) -> list[str]:
    names, form = values_of(atom, columns)
    return [form(*values) for values in zip(*(alone.strings(name, 0) for name in names), strict=True)]


def _dynamic(
    alone: Treebank, columns: Columns, words: Words, sight: Sight, head: int, child: int
) -> list[str]:  # fmt: skip
    """Names of what may fire more than once, in the order of the kernel."""
    from isogloss.tasks.parse._numba.features import MOST_BETWEEN

    tags = ["ROOT", *_texts(alone, "tag", columns)]
    pair = f"head.tag={tags[head]} & child.tag={tags[child]}"
    low, high = min(head, child), max(head, child)
    between = list(dict.fromkeys(_texts(alone, "between", columns)[low : high - 1]))[:MOST_BETWEEN]
    names = [f"{pair} & between={text}" for text in between]
    first = int(words.starts[0]) + PAD
    kinds = words.kinds[first + low + 1 : first + high]
    counted = ",".join(str(min(3, int(np.count_nonzero(kinds == kind)))) for kind in (1, 2, 3))
    names.append(f"{pair} & verbs, marks and conjunctions between={counted}")
    bundles = [{}, *(features_of(bundle) for bundle in alone.strings("feats", 0))]
    lemma = ("ROOT", *_texts(alone, "lemma", columns))[head]
    for attribute in columns.attributes:
        ours, theirs = bundles[child].get(attribute), bundles[head].get(attribute)
        if ours is not None:
            names.append(f"{pair} & feature of child={attribute}={ours}")
            names.append(f"head.lemma={lemma} & child.tag={tags[child]} & feature of child={attribute}={ours}")
        if theirs is not None:
            names.append(f"{pair} & feature of head={attribute}={theirs}")
        if ours is not None and theirs is not None:
            names.append(f"{pair} & agreement={attribute}:{'yes' if ours == theirs else 'no'}")
            names.append(f"{pair} & feature of both={attribute}={theirs}/{ours}")
    if head == 0:
        n = int(words.lengths[0])
        names.append(f"child.tag={tags[child]} & place in sentence={min(child, 4)} of {min(n - child, 4)} to the end")
    for view, stack in enumerate(sight.marks):
        if mark := int(stack[0][head, child]):
            said = f"mark={view}:{mark}"
            names += [said, f"{pair} & {said}"]
    return names
