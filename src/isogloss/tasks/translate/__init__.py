"""From links to what translates: lexicons and phrase tables."""

from isogloss.tasks.translate.lexicon import Lexicon, lexicon_from_links
from isogloss.tasks.translate.phrases import PhrasePair, extract_phrases, write_phrases

__all__ = ["Lexicon", "PhrasePair", "extract_phrases", "lexicon_from_links", "write_phrases"]
