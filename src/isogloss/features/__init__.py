"""What parts are seen by: one language of templates, one mixer of keys, one table, and a scorer that walks templates.

The same for words of a sentence, pairs of words, spans and pairs of sentences; it knows codes, never words or tasks.
"""

from isogloss.features.gradients import Gradient
from isogloss.features.parts import Axis, Parts, Role, arcs, pairs, phrases, positions, spans
from isogloss.features.scorer import TemplateScorer
from isogloss.features.sparse import Sparse
from isogloss.features.table import KEYS, Hashed, Index, KeyTable, Numbering
from isogloss.features.templates import Templates, blind_to

__all__ = [
    "KEYS", "Axis", "Gradient", "Hashed", "Index", "KeyTable", "Numbering", "Parts", "Role", "Sparse",
    "TemplateScorer", "Templates", "arcs", "blind_to", "pairs", "phrases", "positions", "spans",
]  # fmt: skip
