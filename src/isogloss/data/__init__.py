"""What passes between the rooms: texts, treebanks, constituents, names, roles, documents, dictionaries, links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss.data.bitext import Bitext, Text
    from isogloss.data.constituent_pairs import ConstituentPairs
    from isogloss.data.constituents import Constituents, ConstituentTree
    from isogloss.data.documents import Document, Documents
    from isogloss.data.groups import Candidate, Group, Groups
    from isogloss.data.labelled import LabelledDocument, LabelledDocuments
    from isogloss.data.links import Alignment, Links
    from isogloss.data.mentions import Mentioned, Mentions
    from isogloss.data.propositions import Proposed, Propositions
    from isogloss.data.ragged import Ragged
    from isogloss.data.segmentation import Segmentation
    from isogloss.data.sentence_pairs import SentencePairs
    from isogloss.data.tag_dictionary import TagDictionary
    from isogloss.data.tree_pairs import TreePairs
    from isogloss.data.treebank import Column, Sentence, Treebank, bundle_of, features_of
    from isogloss.data.vocabulary import Vocabulary
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".constituent_pairs": "ConstituentPairs",
            ".bitext": "Bitext Text",
            ".constituents": "Constituents ConstituentTree",
            ".documents": "Document Documents",
            ".groups": "Candidate Group Groups",
            ".labelled": "LabelledDocument LabelledDocuments",
            ".links": "Alignment Links",
            ".mentions": "Mentioned Mentions",
            ".propositions": "Proposed Propositions",
            ".ragged": "Ragged",
            ".segmentation": "Segmentation",
            ".sentence_pairs": "SentencePairs",
            ".tag_dictionary": "TagDictionary",
            ".tree_pairs": "TreePairs",
            ".treebank": "Column Sentence Treebank bundle_of features_of",
            ".vocabulary": "Vocabulary",
        },
    )

__all__ = [
    "Alignment",
    "Bitext",
    "Candidate",
    "Column",
    "ConstituentPairs",
    "ConstituentTree",
    "Constituents",
    "Document",
    "Documents",
    "Group",
    "Groups",
    "LabelledDocument",
    "LabelledDocuments",
    "Links",
    "Mentioned",
    "Mentions",
    "Proposed",
    "Propositions",
    "Ragged",
    "Segmentation",
    "Sentence",
    "SentencePairs",
    "TagDictionary",
    "Text",
    "TreePairs",
    "Treebank",
    "Vocabulary",
    "bundle_of",
    "features_of",
]
