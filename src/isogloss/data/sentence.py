"""`Sentence`: one sentence of a treebank, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Sentence", "features_of"]


def features_of(bundle: str) -> dict[str, str]:
    """The features of a bundle as CoNLL-U writes it; an entry without ``=`` is its own name with an empty value.

    Examples
    --------
    >>> features_of("Case=Nom|Number=Sing"), features_of("_")
    ({'Case': 'Nom', 'Number': 'Sing'}, {})
    """
    if bundle in ("_", ""):
        return {}
    features = {}
    for entry in bundle.split("|"):
        name, _, value = entry.partition("=")
        features[name] = value
    return features


@dataclass(frozen=True)
class Sentence:
    """One sentence of a `Treebank`, which draws its tree in a notebook.

    Parameters
    ----------
    columns : mapping of str to tuple of str
        What the words have as "form", "lemma", "upos", "xpos", "feats", "deprel", "deps" and "misc".
    heads : tuple of int
        0 for the root, 1 to n for a word, -1 where it is not known.
    title : str
        Its id, or its number in the treebank.
    """

    columns: Mapping[str, tuple[str, ...]] = field(hash=False)
    heads: tuple[int, ...]
    title: str

    @property
    def words(self) -> tuple[str, ...]:
        """The forms."""
        return self.columns["form"]

    def __len__(self) -> int:
        return len(self.heads)

    def __str__(self) -> str:
        return " ".join(self.words)

    def __repr__(self) -> str:
        return f"Sentence({self.title!r}, {str(self)!r:.80})"

    def tree(self) -> dict[str, Any]:
        """Heads, labels and, where MISC has numbers after ``Confidence=``, how sure links are; plain data."""
        tree: dict[str, Any] = {"heads": list(self.heads), "labels": list(self.columns["deprel"])}
        sure = [_confidence(text) for text in self.columns["misc"]]
        if any(value is not None for value in sure):
            tree["confidence"] = sure
        return tree

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as `isogloss.show.tree_svg` takes it."""
        return {"words": list(self.words), "tags": list(self.columns["upos"]), **self.tree(), "title": self.title}

    def _repr_html_(self) -> str:
        from isogloss import show

        return show.tree_svg(self.as_dict(), standalone=False)


def _confidence(misc: str) -> float | None:
    try:
        return float(features_of(misc)["Confidence"])
    except (KeyError, ValueError):
        return None
