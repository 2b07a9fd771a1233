"""Treebanks, and texts with names, one after the other as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Text
from isogloss.data.mentions import Mentions
from isogloss.data.ragged import Ragged
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import UsageError

__all__ = ["join_mentions", "join_treebanks"]


def join_treebanks(parts: Sequence[Treebank]) -> Treebank:
    """The sentences of all parts in order, with all columns and heads; named as the first is.

    Comments and multiword tokens are left behind: what is joined is to be learnt from, or scored.

    Examples
    --------
    >>> first, second = (Treebank.of([[(word, "INTJ", 0, "root")]]) for word in ("yes", "no"))
    >>> both = join_treebanks([first, second])
    >>> both, both.words(1), both.strings("deprel", 1), both.heads.tolist()
    (Treebank(2 sentences, 2 words), ('no',), ('root',), [0, 0])
    """
    if not parts:
        raise UsageError("join_treebanks: there is no treebank to join. Give at least one")
    columns = {name: _joined([part.columns[name] for part in parts]) for name in parts[0].columns}
    ids, vocabulary = columns["form"]
    lengths = np.concatenate([part.lengths for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    text = Text(Ragged(ids, offsets), vocabulary, parts[0].name, form=parts[0].form)
    heads = np.concatenate([part.heads for part in parts])
    return Treebank.from_text(text).with_columns(heads=heads, **columns)


def join_mentions(parts: Sequence[Mentions]) -> Mentions:
    """The sentences of all parts in order, with the columns that all have, and with their names; relations are lost.

    Examples
    --------
    >>> first, second = (Mentions.of([([name, "left"], [(0, 1, "PER")])]) for name in ("Ada", "Bob"))
    >>> both = join_mentions([first, second])
    >>> both, both.words(1), both.entities(1)
    (Mentions(2 sentences, 4 words, 2 names), ('Bob', 'left'), ((0, 1, 'PER'),))
    """
    if not parts:
        raise UsageError("join_mentions: there is no text to join. Give at least one")
    shared = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    columns = {name: _joined([part.columns[name] for part in parts]) for name in shared}
    lengths = np.concatenate([part.lengths for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    entities = [part.entities(s) for part in parts for s in range(len(part))]
    return Mentions.bare(offsets, columns, parts[0].name).with_entities(entities)


def _joined(columns: Sequence[Column]) -> Column:
    """One column over the words of all vocabularies."""
    known = Vocabulary(dict.fromkeys(name for column in columns for name in column.vocabulary))
    ids: list[NDArray[np.int32]] = []
    for column in columns:
        numbers = known.encode(column.vocabulary) if len(column.vocabulary) else np.zeros(0, np.int32)
        ids.append(numbers[column.ids].astype(np.int32) if len(column.ids) else np.zeros(0, np.int32))
    return Column(np.concatenate(ids), known)
