"""Isogloss learns from text which exists in two or more languages.

>>> import isogloss as ig
>>> bitext = ig.Bitext.of([("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")])
>>> print(ig.HMMAligner().fit(bitext).predict(bitext)[0])
0-0 1-1
"""

import isogloss._start  # noqa: F401 - first, so that Ctrl-C is no traceback while the rest is imported

# isort: split
from typing import TYPE_CHECKING

from isogloss._version import __version__
from isogloss.engine.numba_cache import prepare
from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss import errors, metrics, samples, show
    from isogloss.data import (
        Alignment,
        Bitext,
        ConstituentPairs,
        Constituents,
        ConstituentTree,
        Documents,
        Groups,
        LabelledDocuments,
        Links,
        Mentions,
        Propositions,
        Ragged,
        Segmentation,
        Sentence,
        SentencePairs,
        TagDictionary,
        Text,
        Treebank,
        TreePairs,
        Vocabulary,
        features_of,
    )
    from isogloss.data.contractions import Contractions, split_bitext, split_text
    from isogloss.data.formats import (
        BitextLike,
        as_bitext,
        read_bitext,
        read_links,
        stream_bitext,
        write_bitext,
        write_links,
    )
    from isogloss.errors import IsoglossError
    from isogloss.metrics import (
        breakdown_brackets,
        breakdown_trees,
        compare,
        compare_brackets,
        compare_entities,
        compare_rankings,
        compare_relations,
        compare_roles,
        compare_segmentations,
        compare_translations,
        compare_trees,
        confusion,
        score_brackets,
        score_documents,
        score_entities,
        score_links,
        score_ranking,
        score_relations,
        score_roles,
        score_segmentation,
        score_tags,
        score_translations,
        score_trees,
    )  # fmt: skip
    from isogloss.store import load
    from isogloss.tasks.adapt import DocumentClassifier
    from isogloss.tasks.align import (
        HMMAligner,
        ItgAligner,
        MatchingAligner,
        Model1Aligner,
        Model2Aligner,
        QuadraticAligner,
        SegmentedAligner,
    )
    from isogloss.tasks.align.supervised import choose_aligner, cross_validate, learning_curve
    from isogloss.tasks.align.supervised.suggest import suggest
    from isogloss.tasks.documents import PolylingualTopics
    from isogloss.tasks.documents.ranking import BilingualRanker
    from isogloss.tasks.documents.threads import Threads
    from isogloss.tasks.extract import EntityTagger, RelationExtractor, RoleLabeller
    from isogloss.tasks.joint import BilingualParser, JointConstituentAligner, JointParserAligner, Multiview
    from isogloss.tasks.parse import DependencyParser, GrammarInducer, JointMorphologyParser, StyleAdapter
    from isogloss.tasks.parse.constituency import ConstituencyParser
    from isogloss.tasks.parse.joint import AnalysisDictionary
    from isogloss.tasks.segment import BilingualSegmenter, Segmenter
    from isogloss.tasks.tag import (
        Correspondence,
        CrfTagger,
        DictionaryTagger,
        GraphTagger,
        ProjectedTagger,
        Tagger,
        jackknife,
    )
    from isogloss.tasks.transfer import DelexicalisedParser, TransferredParser, transfer_markup
    from isogloss.tasks.translate import LanguageModel, Lexicon, Translator, extract_phrases, lexicon_from_links
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".": "errors metrics samples show",
            ".data": "Alignment Bitext ConstituentPairs ConstituentTree Constituents Documents Groups "
            "LabelledDocuments Links Mentions Propositions Ragged Segmentation Sentence SentencePairs TagDictionary "
            "Text TreePairs Treebank Vocabulary features_of",
            ".data.contractions": "Contractions split_bitext split_text",
            ".data.formats": "BitextLike as_bitext read_bitext read_links stream_bitext write_bitext write_links",
            ".errors": "IsoglossError",
            ".metrics": "breakdown_brackets breakdown_trees compare compare_brackets compare_entities "
            "compare_rankings compare_relations compare_roles compare_segmentations compare_trees confusion "
            "score_brackets score_documents score_entities score_links score_ranking score_relations score_roles "
            "score_segmentation score_tags score_translations score_trees compare_translations",
            ".store": "load",
            ".tasks.adapt": "DocumentClassifier",
            ".tasks.align": "HMMAligner ItgAligner MatchingAligner Model1Aligner Model2Aligner QuadraticAligner "
            "SegmentedAligner",
            ".tasks.align.supervised": "choose_aligner cross_validate learning_curve",
            ".tasks.align.supervised.suggest": "suggest",
            ".tasks.documents": "PolylingualTopics",
            ".tasks.documents.ranking": "BilingualRanker",
            ".tasks.documents.threads": "Threads",
            ".tasks.extract": "EntityTagger RelationExtractor RoleLabeller",
            ".tasks.joint": "BilingualParser JointParserAligner Multiview JointConstituentAligner",
            ".tasks.parse": "DependencyParser GrammarInducer JointMorphologyParser StyleAdapter",
            ".tasks.parse.constituency": "ConstituencyParser",
            ".tasks.parse.joint": "AnalysisDictionary",
            ".tasks.segment": "Segmenter BilingualSegmenter",
            ".tasks.tag": "Correspondence CrfTagger DictionaryTagger GraphTagger ProjectedTagger Tagger jackknife",
            ".tasks.transfer": "DelexicalisedParser TransferredParser transfer_markup",
            ".tasks.translate": "LanguageModel Lexicon Translator extract_phrases lexicon_from_links",
        },
    )

__all__ = [
    "Alignment",
    "AnalysisDictionary",
    "BilingualParser",
    "BilingualRanker",
    "BilingualSegmenter",
    "Bitext",
    "BitextLike",
    "ConstituencyParser",
    "ConstituentPairs",
    "ConstituentTree",
    "Constituents",
    "Contractions",
    "Correspondence",
    "CrfTagger",
    "DelexicalisedParser",
    "DependencyParser",
    "DictionaryTagger",
    "DocumentClassifier",
    "Documents",
    "EntityTagger",
    "GrammarInducer",
    "GraphTagger",
    "Groups",
    "HMMAligner",
    "IsoglossError",
    "ItgAligner",
    "JointConstituentAligner",
    "JointMorphologyParser",
    "JointParserAligner",
    "LabelledDocuments",
    "LanguageModel",
    "Lexicon",
    "Links",
    "MatchingAligner",
    "Mentions",
    "Model1Aligner",
    "Model2Aligner",
    "Multiview",
    "PolylingualTopics",
    "ProjectedTagger",
    "Propositions",
    "QuadraticAligner",
    "Ragged",
    "RelationExtractor",
    "RoleLabeller",
    "Segmentation",
    "SegmentedAligner",
    "Segmenter",
    "Sentence",
    "SentencePairs",
    "StyleAdapter",
    "TagDictionary",
    "Tagger",
    "Text",
    "Threads",
    "TransferredParser",
    "Translator",
    "TreePairs",
    "Treebank",
    "Vocabulary",
    "__version__",
    "as_bitext",
    "breakdown_brackets",
    "breakdown_trees",
    "choose_aligner",
    "compare",
    "compare_brackets",
    "compare_entities",
    "compare_rankings",
    "compare_relations",
    "compare_roles",
    "compare_segmentations",
    "compare_translations",
    "compare_trees",
    "confusion",
    "cross_validate",
    "errors",
    "extract_phrases",
    "features_of",
    "jackknife",
    "learning_curve",
    "lexicon_from_links",
    "load",
    "metrics",
    "read_bitext",
    "read_links",
    "samples",
    "score_brackets",
    "score_documents",
    "score_entities",
    "score_links",
    "score_ranking",
    "score_relations",
    "score_roles",
    "score_segmentation",
    "score_tags",
    "score_translations",
    "score_trees",
    "show",
    "split_bitext",
    "split_text",
    "stream_bitext",
    "suggest",
    "transfer_markup",
    "write_bitext",
    "write_links",
]  # fmt: skip

prepare()
