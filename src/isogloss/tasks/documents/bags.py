"""Documents as bags of known words, which is all that a model of topics sees of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isogloss.data.documents import Documents
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError
from isogloss.learners.gibbs import Bags

__all__ = ["bags_of", "in_language", "joined"]


def in_language(documents: Documents, language: str | None, known: Sequence[str]) -> Documents:
    """Documents in one language, or in all that they have, by the names that a model has for languages.

    One language without a name is the one that is asked for, or the only one that is known.
    """
    if language is not None and language not in known:
        raise ParameterError(f"there is no language {language!r} in this model; there is {', '.join(known) or 'none'}")
    if documents.languages == ("",) and "" not in known:
        if language is None and len(known) > 1:
            raise ParameterError(f"{documents.name}: which language is it? The model has {', '.join(known)}")
        return replace(documents, languages=(known[0] if language is None else language,))
    made = documents if language is None else documents.in_languages(language)
    for name in made.languages:
        if name not in known:
            raise ParameterError(
                f"{documents.name}: there is no language {name!r} in this model; there is {', '.join(known)}"
            )
    return made


def bags_of(
    documents: Documents, languages: Sequence[str], vocabularies: Sequence[Vocabulary], *, lowercase: bool
) -> tuple[Bags, NDArray[np.int64]]:
    """Their words that are known, and how many of each document are not: int64[n_documents]."""
    form = str.lower if lowercase else str
    flats, lengths, unknown = [], [], np.zeros(len(documents), np.int64)
    first = np.concatenate([[0], np.cumsum([len(words) for words in vocabularies])])
    for number, (language, words) in enumerate(zip(languages, vocabularies, strict=True)):
        if language not in documents.languages:
            flats.append(np.zeros(0, np.int64))
            lengths.append(np.zeros(len(documents), np.int64))
            continue
        text = documents.text(language)
        ids = words.encode(form(word) for word in text.vocabulary).astype(np.int64)
        flat = ids[text.ids.flat] if text.n_words else np.zeros(0, np.int64)
        rows = np.repeat(np.arange(len(documents)), text.ids.lengths)
        unknown += np.bincount(rows[flat < 0], minlength=len(documents))
        lengths.append(np.bincount(rows[flat >= 0], minlength=len(documents)))
        flats.append(flat[flat >= 0] + first[number])
    return joined(flats, lengths, [len(words) for words in vocabularies]), unknown


def joined(flats: Sequence[NDArray[np.int64]], lengths: Sequence[NDArray[np.int64]], sizes: Sequence[int]) -> Bags:
    """Words of several languages, each document by document, as bags: document by document, language by language."""
    n_languages, n_documents = len(flats), len(lengths[0])
    segments = np.concatenate([[0], np.cumsum(np.stack(lengths, axis=1).ravel())]).astype(np.int64)
    words = np.empty(segments[-1], np.int32)
    for number, (flat, own) in enumerate(zip(flats, lengths, strict=True)):
        begins = segments[number:-1:n_languages] if n_documents else segments[:0]
        shift = np.repeat(begins - (np.cumsum(own) - own), own)
        words[shift + np.arange(len(flat))] = flat
    return Bags(words, segments, np.array(sizes, np.int64))
