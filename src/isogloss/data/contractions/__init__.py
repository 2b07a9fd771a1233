"""Contractions: surface words such as Italian `della` that are several words of a tree, and splitting text at them."""

from isogloss.data.contractions.languages import LANGUAGES, guess_language
from isogloss.data.contractions.splitting import SplitBitext, bitext_of_treebanks, split_bitext, split_text, split_words
from isogloss.data.contractions.table import Contractions

__all__ = [
    "LANGUAGES",
    "Contractions",
    "SplitBitext",
    "bitext_of_treebanks",
    "guess_language",
    "split_bitext",
    "split_text",
    "split_words",
]
