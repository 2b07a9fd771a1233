"""Isogloss learns from text which exists in two or more languages.

>>> import isogloss as ig
>>> bitext = ig.Bitext.of([("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")])
>>> print(ig.HMMAligner().fit(bitext).predict(bitext)[0])
0-0 1-1
"""

import isogloss._start  # noqa: F401 - first, so that Ctrl-C is no traceback while the rest is imported

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING, Any

from isogloss._version import __version__
from isogloss.engine.numba_cache import prepare

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
    from isogloss.tasks.segment import Segmenter
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

prepare()

_NAMES = {
    "isogloss": "errors metrics samples show",
    "isogloss.data": "Alignment Bitext ConstituentPairs ConstituentTree Constituents Documents Groups "
    "LabelledDocuments Links Mentions Propositions Ragged Segmentation Sentence SentencePairs TagDictionary Text "
    "TreePairs Treebank Vocabulary features_of",
    "isogloss.data.contractions": "Contractions split_bitext split_text",
    "isogloss.data.formats": "BitextLike as_bitext read_bitext read_links stream_bitext write_bitext write_links",
    "isogloss.errors": "IsoglossError",
    "isogloss.metrics": "breakdown_brackets breakdown_trees compare compare_brackets compare_entities "
    "compare_rankings compare_relations compare_roles compare_segmentations compare_trees confusion score_brackets "
    "score_documents score_entities score_links score_ranking score_relations score_roles score_segmentation "
    "score_tags score_translations score_trees compare_translations",
    "isogloss.store": "load",
    "isogloss.tasks.adapt": "DocumentClassifier",
    "isogloss.tasks.align": "HMMAligner ItgAligner MatchingAligner Model1Aligner Model2Aligner QuadraticAligner",
    "isogloss.tasks.align.supervised": "choose_aligner cross_validate learning_curve",
    "isogloss.tasks.align.supervised.suggest": "suggest",
    "isogloss.tasks.documents": "PolylingualTopics",
    "isogloss.tasks.documents.ranking": "BilingualRanker",
    "isogloss.tasks.documents.threads": "Threads",
    "isogloss.tasks.extract": "EntityTagger RelationExtractor RoleLabeller",
    "isogloss.tasks.joint": "BilingualParser JointConstituentAligner JointParserAligner Multiview",
    "isogloss.tasks.parse": "DependencyParser GrammarInducer JointMorphologyParser StyleAdapter",
    "isogloss.tasks.parse.constituency": "ConstituencyParser",
    "isogloss.tasks.parse.joint": "AnalysisDictionary",
    "isogloss.tasks.segment": "Segmenter",
    "isogloss.tasks.tag": "Correspondence CrfTagger DictionaryTagger GraphTagger ProjectedTagger Tagger jackknife",
    "isogloss.tasks.transfer": "DelexicalisedParser TransferredParser transfer_markup",
    "isogloss.tasks.translate": "LanguageModel Lexicon Translator extract_phrases lexicon_from_links",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Alignment", "AnalysisDictionary", "BilingualParser", "BilingualRanker", "Bitext", "BitextLike",
    "ConstituencyParser", "ConstituentPairs", "ConstituentTree", "Constituents", "Contractions", "Correspondence",
    "CrfTagger", "DelexicalisedParser", "DependencyParser", "DictionaryTagger", "DocumentClassifier", "Documents",
    "EntityTagger", "GrammarInducer", "GraphTagger", "Groups", "HMMAligner", "IsoglossError", "ItgAligner",
    "JointConstituentAligner", "JointMorphologyParser", "JointParserAligner", "LabelledDocuments", "LanguageModel",
    "Lexicon", "Links", "MatchingAligner", "Mentions", "Model1Aligner", "Model2Aligner", "Multiview",
    "PolylingualTopics", "ProjectedTagger", "Propositions", "QuadraticAligner", "Ragged", "RelationExtractor",
    "RoleLabeller", "Segmentation", "Segmenter", "Sentence", "SentencePairs", "StyleAdapter", "TagDictionary", "Tagger",
    "Text", "Threads", "TransferredParser", "Translator", "TreePairs", "Treebank", "Vocabulary", "__version__",
    "as_bitext", "breakdown_brackets", "breakdown_trees", "choose_aligner", "compare", "compare_brackets",
    "compare_entities", "compare_rankings", "compare_relations", "compare_roles", "compare_segmentations",
    "compare_translations", "compare_trees", "confusion", "cross_validate", "errors", "extract_phrases", "features_of",
    "jackknife", "learning_curve", "lexicon_from_links", "load", "metrics", "read_bitext", "read_links", "samples",
    "score_brackets", "score_documents", "score_entities", "score_links", "score_ranking", "score_relations",
    "score_roles", "score_segmentation", "score_tags", "score_translations", "score_trees", "show", "split_bitext",
    "split_text", "stream_bitext", "suggest", "transfer_markup", "write_bitext", "write_links",
]  # fmt: skip


if not TYPE_CHECKING:  # so that a checker of types knows the names above, and no others

    def __getattr__(name: str) -> Any:
        """Import what is asked for when it is asked for, so that `import isogloss` costs almost nothing."""
        if name not in _HOMES:
            raise AttributeError(f"module 'isogloss' has no attribute {name!r}")
        home = _HOMES[name]
        found = import_module(f"isogloss.{name}") if home == "isogloss" else getattr(import_module(home), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
