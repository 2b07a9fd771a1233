"""What passes between the rooms: texts, treebanks, constituents, names, roles, documents, dictionaries, links."""

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
