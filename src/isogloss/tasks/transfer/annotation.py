"""Tags, morphology, trees and names of one side, carried to the other through links, with where they came from.

| what | column | provenance in MISC |
|---|---|---|
| heads | HEAD, DEPREL | ``Proj``: the source word, from 1, whose link was carried; ``ProjConf``: how probable it is |
| tags, feats | UPOS, FEATS | ``TagProj``: the source word that the word is linked with; ``TagProjConf``: the link |
| names | MISC, under the key of the source | the same key with ``Conf`` behind it, on the first word of a name |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Bitext
from isogloss.data.links import Links
from isogloss.data.sentence import features_of
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError, TreebankError
from isogloss.tasks.transfer.edges import ProjectedEdges, project_edges

__all__ = [
    "NAME_KEYS", "WHAT", "Partners", "check_request", "project_annotation", "project_columns", "project_names",
]  # fmt: skip

WHAT = ("heads", "tags", "feats", "names")
"""What can be carried."""
NAME_KEYS = ("NER", "Entity")
"""Under which names are looked for in MISC, as ``NER=B-PER``."""
_COLUMNS = {"tags": "upos", "feats": "feats"}


class Partners(NamedTuple):
    """The source word that each target word is linked with most probably.

    Parameters
    ----------
    word : int64[n_words]
        Among all words of the source treebank; −1 for words without links.
    place : int64[n_words]
        The same from 1 within its sentence; 0 without.
    probability : float64[n_words]
    """

    word: NDArray[np.int64]
    place: NDArray[np.int64]
    probability: NDArray[np.float64]

    @classmethod
    def of(cls, source: Treebank, bitext: Bitext, links: Links) -> Partners:
        """Along the links of a bitext whose source side the treebank is."""
        from isogloss.tasks.tag.projection import best_links, check_links, first_words

        check_links(bitext, links)
        first = first_words(bitext, source)
        link = best_links(bitext, links)
        held = link >= 0
        at = link[held]
        word, place, chance = np.full(len(link), -1, np.int64), np.zeros(len(link), np.int64), np.zeros(len(link))
        word[held] = first[links.pair[at]] + links.source[at]
        place[held] = links.source[at] + 1
        known = np.ones(len(at)) if links.probability is None else links.probability[at].astype(np.float64)
        chance[held] = np.where(np.isnan(known), 1.0, known)
        return cls(word, place, chance)


def project_annotation(
    source: Treebank,
    bitext: Bitext,
    links: Links,
    *,
    target: Treebank | None = None,
    what: Sequence[str] = ("heads", "tags", "feats"),
    threshold: float = 0.0,
    edges: ProjectedEdges | None = None,
) -> Treebank:
    """The target text with what links carry to it.

    Parameters
    ----------
    source : Treebank
        The source side, sentence by sentence the words of the bitext; it may lack sentences for empty lines.
    bitext : Bitext
    links : Links
    target : Treebank, optional
        The target side with columns of its own, which stay where nothing arrives.
    what : sequence of str
        Some of `WHAT`.
    threshold : float
        What is less probable than this is not carried: P(link) of tags, features and names, P(link) · P(link) · P(edge)
        of heads.
    edges : ProjectedEdges, optional
        In place of those of `project_edges`: filtered, edited by rules, or soft.

    Examples
    --------
    >>> bitext = Bitext.of([("she sleeps", "sie schläft")])
    >>> trees = Treebank.of([[("she", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root")]])
    >>> found = project_annotation(trees, bitext, Links.of([[(0, 0), (1, 1)]]))
    >>> found.heads.tolist(), found.strings("upos", 0), found.strings("misc", 0)[0]
    ([2, 0], ('PRON', 'VERB'), 'Proj=1|ProjConf=1.0000|TagProj=1|TagProjConf=1.0000')
    """
    check_request(source, bitext, what, threshold, target)
    found = Treebank.from_text(bitext.target) if target is None else target
    if "heads" in what:
        found = (project_edges(source, bitext, links) if edges is None else edges).as_treebank(found, threshold)
    partners = Partners.of(source, bitext, links)
    columns = [_COLUMNS[name] for name in WHAT if name in what and name in _COLUMNS]
    if columns:
        found = project_columns(source, found, partners, columns, threshold)
    return project_names(source, found, partners, threshold) if "names" in what else found


def check_request(
    source: Treebank, bitext: Bitext, what: Sequence[str], threshold: float = 0.0, target: Treebank | None = None
) -> None:
    """Refuse what `project_annotation` would, before links are looked for: treebanks of other words, no names."""
    from isogloss.tasks.tag.projection import first_words

    wrong = sorted(set(what) - set(WHAT))
    if wrong or not what:
        raise ParameterError(f"what should be some of {', '.join(WHAT)}, not {', '.join(wrong) or 'nothing'}")
    if not 0 <= threshold <= 1:
        raise ParameterError(f"threshold should be from 0 to 1, not {threshold!r}")
    first_words(bitext, source)
    if target is not None:
        first_words(bitext.swapped(), target)
    if "names" in what:
        _name_key(source)


def project_columns(
    source: Treebank, target: Treebank, partners: Partners, columns: Sequence[str], threshold: float = 0.0
) -> Treebank:
    """Copy columns from the source word that each word is linked with, where there is something to copy."""
    linked = np.flatnonzero((partners.word >= 0) & (partners.probability >= threshold))
    carried = np.zeros(target.n_words, np.bool_)
    found = target
    for column in columns:
        own, other = target.columns[column], source.columns[column]
        names = dict.fromkeys([*own.vocabulary, *other.vocabulary])
        numbers = {name: number for number, name in enumerate(names)}
        of_source = np.array([numbers[name] for name in other.vocabulary], np.int32)
        nothing = other.vocabulary.index_of("_")
        held = linked[other.ids[partners.word[linked]] != nothing] if len(linked) else linked
        ids = own.ids.copy()
        ids[held] = of_source[other.ids[partners.word[held]]] if len(held) else 0
        carried[held] = True
        fresh: dict[str, Any] = {column: Column(ids, Vocabulary(names))}
        found = found.with_predictions(**fresh)
    return _with_provenance(found, partners, carried, "TagProj")


def _with_provenance(
    target: Treebank, partners: Partners, carried: NDArray[np.bool_], key: str
) -> Treebank:  # fmt: skip
    rows = list(zip(carried.tolist(), partners.place.tolist(), partners.probability.tolist(), strict=True))
    found = target.with_misc(key, [str(place) if held else None for held, place, _ in rows])
    return found.with_misc(f"{key}Conf", [f"{chance:.4f}" if held else None for held, _, chance in rows])


# --- names


class _Name(NamedTuple):
    """Words first … last − 1 of all, and what they are."""

    first: int
    last: int
    kind: str


def project_names(source: Treebank, target: Treebank, partners: Partners, threshold: float = 0.0) -> Treebank:
    """Carry names, marked in MISC as ``NER=B-PER``, ``NER=I-PER`` (or ``Entity=``).

    A target word belongs to the name that the source word it is linked with belongs to. Words of a name make one run:
    the one with the most of them; words without links in between are part of it. The probability of a name is the mean
    of those of its links.
    """
    key = _name_key(source)
    owner = np.full(source.n_words + 1, -1, np.int64)  # the last stands for words without links
    names = list(_names(source, key))
    for number, name in enumerate(names):
        owner[name.first : name.last] = number
    mine = np.where(partners.probability >= threshold, owner[partners.word], -1)
    labels: list[str | None] = [None] * target.n_words
    sure: list[str | None] = [None] * target.n_words
    words: dict[int, list[int]] = {}
    for word in np.flatnonzero(mine >= 0).tolist():
        words.setdefault(int(mine[word]), []).append(word)
    for number, its in words.items():
        run = _longest(its, partners.word)
        for word in range(run[0], run[-1] + 1):
            labels[word] = f"{'B' if word == run[0] else 'I'}-{names[number].kind}"
        sure[run[0]] = f"{float(np.mean(partners.probability[run])):.4f}"
    return target.with_misc(key, labels).with_misc(f"{key}Conf", sure)


def _longest(words: list[int], partner: NDArray[np.int64]) -> list[int]:
    """Of words of one name, in order, the most that follow each other but for words without links."""
    runs = [[words[0]]]
    for word in words[1:]:
        if (partner[runs[-1][-1] + 1 : word] < 0).all():
            runs[-1].append(word)
        else:
            runs.append([word])
    return max(runs, key=len)


def _name_key(source: Treebank) -> str:
    vocabulary = source.columns["misc"].vocabulary
    for key in NAME_KEYS:
        if any(f"{key}=" in text and key in features_of(text) for text in vocabulary):
            return key
    raise TreebankError(
        f"{source.name}: no word has {' or '.join(f'{key}=B-…' for key in NAME_KEYS)} in MISC, so there are no names "
        "to carry. Leave names out of --what, or mark them"
    )


def _names(source: Treebank, key: str) -> Iterator[_Name]:
    """Names of all sentences, in order; labels are B-kind, I-kind and O."""
    ids, vocabulary = source.columns["misc"]
    labels = [features_of(text).get(key, "O") if f"{key}=" in text else "O" for text in vocabulary]
    starts = set(source.offsets[:-1].tolist())
    open_: tuple[int, str] | None = None
    for word, number in enumerate(ids.tolist()):
        mark, _, kind = labels[number].partition("-")
        if mark not in ("B", "I", "O") or (mark == "O") == bool(kind):
            raise TreebankError(
                f"{source.name}, line {source.line_of(word)}: {key}={labels[number]} is not B-kind, I-kind or O. Write "
                f"names as {key}=B-PER on their first word and {key}=I-PER on the others"
            )
        goes_on = mark == "I" and open_ is not None and open_[1] == kind and word not in starts
        if open_ is not None and not goes_on:
            yield _Name(open_[0], word, open_[1])
            open_ = None
        if mark != "O" and not goes_on:
            open_ = (word, kind)
    if open_ is not None:
        yield _Name(open_[0], source.n_words, open_[1])
