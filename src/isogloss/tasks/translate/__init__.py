"""From links to what translates: lexicons, phrase tables and translators."""

from isogloss.tasks.translate.language_model import LanguageModel, Perplexity
from isogloss.tasks.translate.lexicon import Lexicon, lexicon_from_links
from isogloss.tasks.translate.phrases import PhrasePair, extract_phrases, write_phrases
from isogloss.tasks.translate.table import TranslationTable
from isogloss.tasks.translate.translator import PhraseStep, Translation, Translator

__all__ = [
    "LanguageModel", "Lexicon", "Perplexity", "PhrasePair", "PhraseStep", "Translation", "TranslationTable",
    "Translator", "extract_phrases", "lexicon_from_links", "write_phrases",
]  # fmt: skip
