"""What passes between the rooms: texts, vocabularies, ragged arrays and links."""

from isogloss.data.bitext import Bitext, Text
from isogloss.data.links import Alignment, Links
from isogloss.data.ragged import Ragged
from isogloss.data.vocabulary import Vocabulary

__all__ = ["Alignment", "Bitext", "Links", "Ragged", "Text", "Vocabulary"]
