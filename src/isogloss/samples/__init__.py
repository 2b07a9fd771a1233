"""Small corpora written for this project, so that every example runs offline, and a generator of synthetic ones.

>>> from isogloss import samples
>>> samples.names()
('en-de', 'en-tr')
>>> text, gold = samples.bitext("en-de"), samples.gold("en-de")
>>> " ".join(text[1][1]), str(gold[1])
('Die Kinder spielen im Garten .', '0-0 1-1 3-2 4-3 5-3 6-4 7-5')
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from isogloss.data import Bitext, Constituents, Documents, Links, Mentions, Propositions, Segmentation
from isogloss.errors import ParameterError
from isogloss.samples.reviews import review_files, reviews
from isogloss.samples.synthetic import SyntheticBitext, SyntheticGrammar, synthetic
from isogloss.samples.writing import write_whole

__all__ = [
    "SyntheticBitext",
    "SyntheticGrammar",
    "bitext",
    "constituents",
    "documents",
    "gold",
    "mentions",
    "morphemes",
    "names",
    "path",
    "propositions",
    "relations",
    "reviews",
    "synthetic",
    "trees",
    "write",
]

_LANGUAGES = {"en-de": ("en", "de"), "en-tr": ("en", "tr")}
_DOCUMENTS = {
    "parliament": ("parliament.en.txt", "parliament.de.txt", "parliament.fr.txt", "parliament.dates.txt"),
    "archive": ("archive.jsonl",),
}
"""Collections of documents, which are no bitexts, and their files."""
_WORDS = {"morphemes": ("morphemes.en.txt", "morphemes.en.tsv")}
"""Lists of words, and their files: all words, and some of them with morphemes."""
_SOME = {"constituents": ("en-de",), "names": ("en-de",), "relations": ("en-de",), "roles": ("en-de",)}
"""The corpora that have what only some have."""
What = Literal[
    "source", "target", "gold", "source-trees", "target-trees", "source-constituents", "target-constituents",
    "source-names", "target-names", "source-relations", "source-roles",
]  # fmt: skip
_FILES: dict[What, str] = {
    "source": "{name}.{source}.txt",
    "target": "{name}.{target}.txt",
    "gold": "{name}.gold.txt",
    "source-trees": "{name}.{source}.conllu",
    "target-trees": "{name}.{target}.conllu",
    "source-constituents": "{name}.{source}.mrg",
    "target-constituents": "{name}.{target}.mrg",
    "source-names": "{name}.{source}.conll",
    "target-names": "{name}.{target}.conll",
    "source-relations": "{name}.{source}.relations.txt",
    "source-roles": "{name}.{source}.up.conllu",
}


def _files(name: str) -> list[What]:
    """What a corpus has: only some have trees of constituents, names, relations and roles."""
    return [what for what in _FILES if name in _SOME.get(what.rpartition("-")[2], (name,))]


def names() -> tuple[str, ...]:
    """The bundled corpora, each named by its two languages, source first."""
    return tuple(_LANGUAGES)


def path(name: str, what: What) -> Path:
    """Where a file of a corpus is, for the command line and for programs that read files.

    Examples
    --------
    >>> path("en-tr", "target").name
    'en-tr.tr.txt'
    """
    if name not in _LANGUAGES:
        raise ParameterError(f"samples: no bitext {name!r}; there are {', '.join(_LANGUAGES)}")
    if what not in _files(name):
        raise ParameterError(f"samples: {name} has no {what!r}; ask for one of {', '.join(_files(name))}")
    source, target = _LANGUAGES[name]
    return Path(str(files(__name__) / _FILES[what].format(name=name, source=source, target=target)))


def write(name: str, folder: str | Path, *, force: bool = False) -> list[Path]:
    """Write the files of a corpus into a folder, which is made if it is not there; returns where they are.

    A file that is there already and differs is refused, before anything is written, unless `force` is given.

    Examples
    --------
    >>> import tempfile
    >>> [path.name for path in write("en-tr", tempfile.mkdtemp())][:3]
    ['en-tr.en.txt', 'en-tr.tr.txt', 'en-tr.gold.txt']
    """
    if name == "reviews":
        return write_whole(folder, review_files(), force=force)
    if name not in (*_LANGUAGES, *_DOCUMENTS, *_WORDS):
        known = ", ".join([*_LANGUAGES, *_DOCUMENTS, *_WORDS, "reviews"])
        raise ParameterError(f"samples: no corpus {name!r}; there are {known}")
    plain = {**_DOCUMENTS, **_WORDS}
    found = _plain_files(plain[name]) if name in plain else [path(name, what) for what in _files(name)]
    return write_whole(folder, {file.name: file.read_bytes() for file in found}, force=force)


def bitext(name: str = "en-de") -> Bitext:
    """The sentence pairs of a corpus, 50 of each."""
    return Bitext.read(path(name, "source"), path(name, "target"))


def _plain_files(names: tuple[str, ...]) -> list[Path]:
    return [Path(str(files(__name__) / file)) for file in names]


def documents(name: str = "parliament") -> Documents:
    """Documents: speeches in three languages ("parliament"), or news items with links ("archive"), all with dates.

    Ninety short speeches in English, German and French, a few of them without one of the languages, are of six themes:
    fisheries, energy, farming, budget, asylum and health. Forty-eight news items of seven years are four stories, and
    what else was in the paper.

    Examples
    --------
    >>> documents()
    Documents(90 documents, en, de and fr, 21,304 words, 'parliament')
    >>> documents("archive")[2].id, documents("archive")[24].links
    ('fever-1', ('museum-3', 'museum-4'))
    """
    if name not in _DOCUMENTS:
        raise ParameterError(f"samples: no collection of documents {name!r}; there are {', '.join(_DOCUMENTS)}")
    *texts, last = _plain_files(_DOCUMENTS[name])
    return replace(Documents.read(*texts, dates=last) if texts else Documents.read(last), name=name)


def morphemes(name: str = "morphemes") -> Segmentation:
    """English words with their morphemes, 240 of the 469 words of `morphemes.en.txt`.

    Examples
    --------
    >>> morphemes()[4], morphemes()[0]
    ((('baby', 's'),), (('angry', 'er'),))
    """
    if name not in _WORDS:
        raise ParameterError(f"samples: no words {name!r}; there are {', '.join(_WORDS)}")
    return Segmentation.read(_plain_files(_WORDS[name])[1])


def gold(name: str = "en-de") -> Links:
    """The links of a corpus, written for this project: sure ones in `links`, others in `possible`, pair by pair."""
    from isogloss.data.formats import read_links

    return read_links(path(name, "gold"), format="pharaoh", index_base=0, bitext=bitext(name))


def trees(name: str = "en-de", side: Literal["source", "target"] = "source") -> str:
    """The dependency trees of one side, CoNLL-U text: tree *k* belongs to pair *k*, from the first pair on.

    Examples
    --------
    >>> trees("en-de", "target").splitlines()[1]
    '# text = Die Frau liest ein Buch .'
    """
    if side not in ("source", "target"):
        raise ParameterError(f"samples: side should be 'source' or 'target', not {side!r}")
    return path(name, "source-trees" if side == "source" else "target-trees").read_text(encoding="utf-8")


def constituents(name: str = "en-de", side: Literal["source", "target"] = "source") -> Constituents:
    """Trees of constituents of one side, in the manner of the Penn treebank (English) and of TIGER (German).

    Those of English are of all 50 sentences, and ten more; those of German of the first 40.

    Examples
    --------
    >>> print(constituents("en-de", "target")[0])
    (S (NP (ART Die) (NN Frau)) (VVFIN liest) (NP (ART ein) (NN Buch)) ($. .))
    """
    if side not in ("source", "target"):
        raise ParameterError(f"samples: side should be 'source' or 'target', not {side!r}")
    return Constituents.read(path(name, "source-constituents" if side == "source" else "target-constituents"))


def mentions(name: str = "en-de", side: Literal["source", "target"] = "source") -> Mentions:
    """The sentences of one side of a corpus and 40 (English) or 30 (German) more, with persons, places, organisations.

    Examples
    --------
    >>> print(mentions()[2])
    Yesterday [Anna PER] bought three books in [Berlin LOC] .
    """
    if side not in ("source", "target"):
        raise ParameterError(f"samples: side should be 'source' or 'target', not {side!r}")
    return Mentions.read(path(name, "source-names" if side == "source" else "target-names"))


def relations(name: str = "en-de") -> Mentions:
    """Fifty English sentences with persons, places and organisations, and relations between them, as in CoNLL04.

    Examples
    --------
    >>> relations()[1].relations[:2]
    ((0, 1, 'Work_For'), (0, 2, 'Live_In'))
    """
    return Mentions.read(path(name, "source-relations"))


def propositions(name: str = "en-de") -> Propositions:
    """The first English sentences of a corpus with their predicates and roles, as in Universal Propositions.

    Examples
    --------
    >>> print(propositions()[0])
    The woman reads a book . | reads.read.01(ARG0: woman, ARG1: book)
    """
    return Propositions.read(path(name, "source-roles"))
