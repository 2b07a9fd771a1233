"""What pairs of names, connectors and parts of hidden trees are seen by."""

from __future__ import annotations

from typing import Any

from isogloss.features import Templates
from isogloss.tasks.extract.coupled import coupled_templates

__all__ = ["relation_templates"]

TYPES = "first_type & second_type"

PAIRS: tuple[Any, ...] = (
    (), TYPES, "gap", "names", f"{TYPES} & gap", f"{TYPES} & names", "gap & names",
    "first.word", "second.word", "first.tag", "second.tag", "first.word & second.word", "first.tag & second.tag",
    f"first.word & {TYPES}", f"second.word & {TYPES}", f"first.tag & second.tag & {TYPES}",
)  # fmt: skip
"""The names themselves and how far apart they are: what the paper's baseline sees."""

CONTEXT: tuple[Any, ...] = (
    "first.stem", "second.stem", "first.suffix", "second.suffix", "first.shape", "second.shape",
    "inside.word", "within.word", "opening.word[-1]", "first.word[+1]", "resuming.word[-1]", "second.word[+1]",
    "opening.word[-2] & opening.word[-1]", "second.word[+1] & second.word[+2]", "first.word[+1] & first.word[+2]",
    "resuming.word[-2] & resuming.word[-1]",
    "opening.tag[-1]", "second.tag[+1]", "first.tag[+1]", "resuming.tag[-1]",
    f"opening.word[-1] & {TYPES}", f"first.word[+1] & {TYPES}", f"resuming.word[-1] & {TYPES}",
    f"second.word[+1] & {TYPES}",
    "between.word", f"between.word & {TYPES}", "between.stem", "between.word & gap", "between.word & between.word[+1]",
    "between.tag & between.tag[+1]", "between.word & names", "between.stem & second.stem", "between.stem & first.stem",
    "between.type", "between.word[-1] & between.word & between.word[+1]", "between.tag & between.word[+1]",
    "sequence", f"sequence & {TYPES}", "phrase", f"phrase & {TYPES}", "phrase & second.stem", "first.stem & phrase",
    "phrase & second.suffix", "first.suffix & phrase", "first.suffix & second.suffix", "first.stem & second.suffix",
    "first.suffix & second.stem", "opening.word[-1] & resuming.word[-1]", "many & names", f"many & {TYPES}",
    "first.word[+1] & resuming.word[-1]", "opening.stem[-1] & phrase",
)  # fmt: skip
"""The words inside, around and between."""

PATHS: tuple[Any, ...] = (
    "link", f"link & {TYPES}", "path", f"path & {TYPES}", "relations", f"relations & {TYPES}", "pivot.word",
    f"pivot.word & {TYPES}", "pivot.word & path", "pivot.stem & relations", "pivot.tag & path",
    f"pivot.stem & {TYPES} & link",
)  # fmt: skip
"""The way between two names in a tree that is given."""

CONFIGURATIONS: tuple[Any, ...] = (
    "link", f"link & {TYPES}", "link & gap", "link & names", f"link & {TYPES} & names", f"link & {TYPES} & gap",
    "link & first.tag & second.tag",
)  # fmt: skip
"""The same as connectors to hidden trees see, of trees that are given."""

CONNECTORS: tuple[Any, ...] = (
    (), TYPES, "direction", f"direction & {TYPES}", "gap", "direction & gap", "names", "first.tag & second.tag",
    f"{TYPES} & names", f"{TYPES} & gap & direction",
)  # fmt: skip

LINKS: tuple[Any, ...] = (
    (), "head.tag", "child.tag", "head.word", "child.word", "head.type", "child.type",
    "head.tag & child.tag", "head.type & child.type", "head.word & child.tag", "head.tag & child.word",
    "head.word & child.word", "head.type & child.word", "head.word & child.type",
    "head.type & child.type & child.word[-1]", "head.type & child.type & child.word[+1]",
    "head.type & child.type & head.word[-1]", "head.type & child.type & head.word[+1]",
    "head.type & between.type & child.type", "head.tag & between.tag & child.tag",
    "head.type & child.type & between.word",
    "head.tag & head.tag[+1] & child.tag[-1] & child.tag", "head.tag[-1] & head.tag & child.tag & child.tag[+1]",
    "head.tag[-1] & head.tag & child.tag[-1] & child.tag", "head.tag & head.tag[+1] & child.tag & child.tag[+1]",
)  # fmt: skip
"""Links of hidden trees: templates of McDonald et al. 2005, with types of names. Each fires with its length, too."""

SPANS: tuple[Any, ...] = (
    (), "first.tag", "last.tag", "first.word", "last.word", "first.type", "last.type", "first.tag[-1]", "last.tag[+1]",
    "first.word[-1]", "last.word[+1]", "first.tag & last.tag", "first.type & last.type", "first.word & last.word",
    "first.tag[-1] & last.tag[+1]", "first.tag[-1] & first.tag", "last.tag & last.tag[+1]",
    "first.type & last.type & inside.type", "first.type & last.type & inside.word", "first.word & last.type",
    "first.type & last.word", "first.type & last.type & first.word[-1]", "first.type & last.type & last.word[+1]",
    "first.type & last.type & first.word[+1]", "first.type & last.type & last.word[-1]", "sequence",
)  # fmt: skip
"""Spans of hidden trees: what delimits them. Each fires with its length, too."""


def relation_templates(tree: str, features: str, given: bool) -> dict[str, Templates]:
    """Templates of each family of features."""
    seen = [*PAIRS, *(CONTEXT if features == "all" else ())]
    if given:
        seen += PATHS if features == "all" else CONFIGURATIONS
    return coupled_templates(seen, CONNECTORS, SPANS if tree == "brackets" else LINKS, tree)
