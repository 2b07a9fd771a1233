"""Classes of words, learnt from the text of both domains, as a view of a parser.

Words that the treebank does not have share a class with words that it has. Texts are looked at in small letters.

References
----------
Dredze et al., EMNLP-CoNLL 2007 (classes by an aggregate Markov model; adapting by them did not help). Koo, Carreras and
Collins, Simple Semi-Supervised Dependency Parsing, ACL 2008 (Brown classes by their first bits). Blitzer, McDonald and
Pereira, EMNLP 2006, for `correspondence_classes`: there, places of words are real-valued features of a tagger; a parser
of links sees which of some regions a word lies in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Text
from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError
from isogloss.learners.word_classes import aggregate_markov, brown_classes, nearest_centres
from isogloss.progress import Progress
from isogloss.tasks.parse.views import WordTable

__all__ = ["brown_view", "correspondence_view", "markov_view"]

BITS = (4, 6)
"""First bits of Brown classes that are features by themselves."""
ROUNDS = 50
COARSE = 4
"""Classes by places come twice: as they are, and so many times fewer."""
TEMPLATES = ("word", "suffix3", "word[-1]", "word[+1]")
"""What pivots are predicted from."""
Texts = Sequence[Treebank | Text]


def _words(texts: Texts, least: int) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """The words that are met often enough, in small letters; their numbers in all texts, −1 for others; offsets."""
    from isogloss.tasks.tag.words import joined

    treebanks = [text if isinstance(text, Treebank) else Treebank.from_text(text) for text in texts]
    ids, types, offsets = joined(treebanks)
    low, mapped = Vocabulary(types).mapped(str.lower)
    of = mapped[ids].astype(np.int64) if len(ids) else np.zeros(0, np.int64)
    often = np.flatnonzero(np.bincount(of, minlength=len(low)) >= least)
    if len(often) < 2:
        raise ParameterError(f"classes of words: fewer than two words are met {least} times or more; give more text")
    numbers = np.full(len(low), -1)
    numbers[often] = np.arange(len(often))
    return [low[int(k)] for k in often], numbers[of], offsets


def brown_view(texts: Texts, classes: int, *, least: int = 2) -> WordTable:
    """Brown classes of the words of some texts: their first four and six bits, and all."""
    words, ids, offsets = _words(texts, least)
    bits = brown_classes(ids, offsets, len(words), classes)
    values = np.empty((len(words), len(BITS) + 1), np.int32)
    for column, length in enumerate((*BITS, None)):
        short = [one[:length] for one in bits]
        values[:, column] = Vocabulary(sorted(set(short))).encode(short)
    return WordTable((*(f"bits{length}" for length in BITS), "class"), Vocabulary(words), values)


def markov_view(
    texts: Texts, classes: int, *, least: int = 2, seed: int = 0, progress: Progress | None = None
) -> WordTable:  # fmt: skip
    """The most probable class of each word of some texts, by an aggregate Markov model."""
    words, ids, offsets = _words(texts, least)
    given = aggregate_markov(ids, offsets, len(words), classes, iterations=ROUNDS, seed=seed, progress=progress)
    return WordTable(("class",), Vocabulary(words), given.argmax(axis=1).astype(np.int32)[:, None])


def correspondence_view(
    source: Treebank | Text,
    target: Treebank | Text,
    classes: int,
    *,
    pivot_count: int,
    seed: int = 0,
    progress: Progress | None = None,
) -> WordTable:
    """Regions of the space in which structural correspondence puts words (`isogloss.tasks.tag.Correspondence`).

    Words of either domain that predict the same frequent words beside them lie in one region.
    """
    from isogloss.tasks.tag.adapting import Correspondence

    found = Correspondence(threshold=pivot_count, templates=TEMPLATES, seed=seed).fit(source, target, progress)
    words = list(found.vocabulary_)
    rows = found.places(Treebank.from_text(Text.of([[word] for word in words])))[:, TEMPLATES.index("word")]
    lies = np.flatnonzero(rows >= 0)
    often = found.counts_.sum(axis=1)[lies]
    points = found.table[rows[lies]].astype(np.float64)
    columns = [nearest_centres(points, k, counts=often) for k in (max(2, classes // COARSE), classes)]
    names = Vocabulary([words[int(k)] for k in lies])
    return WordTable(("region", "place"), names, np.stack(columns, axis=1).astype(np.int32))
