"""Tiny models of every kind, learnt in a second from a few sentences, whose arrays are all there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from isogloss import samples
from isogloss.data import (
    Bitext,
    Candidate,
    Constituents,
    Documents,
    Group,
    Groups,
    LabelledDocuments,
    Links,
    Mentions,
    Propositions,
    Segmentation,
    Text,
)
from isogloss.data.tag_dictionary import TagDictionary
from isogloss.data.treebank import Column, Treebank
from isogloss.errors import ParameterError

__all__ = [
    "DICTIONARY", "MODELS", "bitext", "constituents", "cut_words", "documents", "kind_of", "labelled", "links",
    "mentions", "monolingual", "new_documents", "new_labelled", "new_ranked", "new_words", "proposed", "ranked",
    "related", "sentence_pairs", "tree_pairs", "treebank",
]  # fmt: skip

_PAIRS = 12
_LONG, _SHORTER = 60, 15
LEXICON = [("the", "die"), ("woman", "frau"), ("book", "buch", 3.0), ("unheard-of", "unerhört")]


@cache
def treebank() -> Treebank:
    """Sentences with tags, features and trees: the first ones of a sample, with features, and some that cross."""
    trees = Treebank.from_bytes(samples.trees("en-de", "target").encode())
    rows = []
    for s in range(_PAIRS):
        columns = (trees.strings(name, s) for name in ("upos", "deprel", "lemma"))
        heads = trees.heads[trees.offsets[s] : trees.offsets[s + 1]].tolist()
        rows.append(
            [
                (word, tag, head, label, lemma, tag[:1], _FEATURES.get(tag, "_"))
                for word, tag, label, lemma, head in zip(trees.words(s), *columns, heads, strict=True)
            ]
        )
    crossing = [
        ("Ein", "DET", 2, "det"),
        ("Buch", "NOUN", 4, "obj"),
        ("ihr", "PRON", 4, "iobj"),
        ("gab", "VERB", 0, "root"),
    ]
    crossing += [("rotes", "ADJ", 2, "amod")]
    return Treebank.of([*rows, *[crossing] * 3])


_FEATURES = {"NOUN": "Case=Nom|Number=Sing", "DET": "Case=Nom", "VERB": "Number=Sing|Person=3", "PRON": "Person=3"}


@cache
def bitext() -> Bitext:
    """Pairs to learn links from."""
    return samples.bitext("en-de").part(0, _PAIRS)


@cache
def links() -> Links:
    """Their gold links."""
    found: Links = samples.gold("en-de")[:_PAIRS]
    return found


@cache
def new_bitext() -> Bitext:
    """Pairs to apply aligners to: known, unknown and no words, one word, and long ones."""
    own = bitext()
    many: tuple[list[str], list[str]] = [], []
    for k in range(_PAIRS):
        for side, words in zip(many, own[k], strict=True):
            side.extend(words)
    pairs: list[tuple[Sequence[str] | str, Sequence[str] | str]] = [
        ("", ""),
        ("the", "die"),
        ("", "die Frau"),
        ("qqq", "zzz xxx"),
        own[1],
        (many[0][:_LONG], many[1][:_SHORTER]),
    ]
    return Bitext.of(pairs)


@cache
def new_treebank() -> Treebank:
    """Sentences to apply taggers and parsers to: known, unknown and no words, one word with a head, and a long one."""
    own = treebank()
    tagged = [list(zip(own.words(s), own.strings("upos", s), strict=True)) for s in range(_PAIRS)]
    many = [word for sentence in tagged for word in sentence]
    return Treebank.of(
        [[], [("Frau", "NOUN", 0, "root")], [("qqq", "X"), ("!!", "PUNCT"), ("7", "NUM")], tagged[1], many[:_LONG]]
    )


DICTIONARY = [("the", "die"), ("the", "der", 0.3), ("woman", "frau"), ("book", "buch"), ("children", "kinder")]


@cache
def ranked() -> Groups:
    """Queries, with graded sentences of two languages in the place of documents."""
    text, made = bitext(), []
    for k in range(6):
        sides = []
        for side, words in enumerate(zip(*(text[(k + step) % _PAIRS] for step in (0, 1, 3, 6)), strict=True)):
            sides.append(
                tuple(
                    Candidate(
                        f"{side}{n}", " ".join(own), title=" ".join(own[:2]) if n % 2 else "", url=f"http://{k}.{n}/{side}",
                        grade=float((0, 2, 1, 0)[(n + k) % 4]), features={"length": float(len(own) + side * n)},
                    )
                    for n, own in enumerate(words)
                )
            )  # fmt: skip
        queries = [" ".join(words[1:4]) for words in text[k]]
        made.append(Group(f"q{k}", sides[0], queries[0], "", sides[1], queries[1]))
    return Groups(tuple(made))


@cache
def compared() -> Groups:
    """References, with outputs of several systems."""
    text = bitext().source
    made = []
    for k in range(6):
        words = text.tokens(k)
        outputs = (words, words[1:], words[::-1], ("nothing", "of", "that"), text.tokens(k + 1))
        members = (Candidate(str(n), " ".join(own), grade=float(-(n + k) % 4)) for n, own in enumerate(outputs))
        made.append(Group(str(k), tuple(members), reference=" ".join(words)))
    return Groups(tuple(made))


@cache
def new_ranked() -> Groups:
    """Groups to apply rankers to: without documents, with one, with unknown words, without help, and known ones."""
    known = ranked()[2]
    strange = Candidate("x", "qqq zzz", url="x")
    return Groups(
        (
            Group("none", ()), Group("one", (strange,), "qqq", "qqq"), replace(known, id="bare", others=()),
            replace(known, id="strange", others=(strange, Candidate("y"))), known,
        )
    )  # fmt: skip


# --- models


def _aligner(name: str, **options: Any) -> Any:
    from isogloss.tasks import align

    return getattr(align, name)(lexicon=LEXICON, **options).fit(bitext())


def _supervised(name: str, **options: Any) -> Any:
    from isogloss.tasks import align

    options = {"tune": False, "iterations": 2, "lexicon": LEXICON} | options
    return getattr(align, name)(**options).fit(bitext(), links())


def _crf(adapted: bool = False, **options: Any) -> Any:
    from isogloss.tasks.tag import CrfTagger
    from isogloss.tasks.tag.adapting import Correspondence

    correspondence = None
    if adapted:
        correspondence = Correspondence(h=2, threshold=2, min_count=1).fit(treebank(), Text.of(_text() * 2))
    return CrfTagger(iterations=2, **options).fit(treebank(), correspondence=correspondence)


def _ranker(outputs: bool = False, **options: Any) -> Any:
    from isogloss.tasks.documents.ranking import BilingualRanker

    return BilingualRanker(regularisation=0.01, iterations=2, **options).fit(compared() if outputs else ranked())


def _several() -> Any:
    from isogloss.tasks.tag import Tagger

    return Tagger(["upos", "feats"], iterations=2).fit(treebank())


def _text() -> list[list[str]]:
    return [list(treebank().words(s)) for s in range(len(treebank()))]


def _dictionary(**options: Any) -> Any:
    from isogloss.tasks.tag import DictionaryTagger

    words = TagDictionary.of_treebank(treebank().part(0, 8))
    return DictionaryTagger(words, iterations=2, first_order=1, **options).fit(Text.of(_text()))


def _projected(**options: Any) -> Any:
    from isogloss.tasks.tag import ProjectedTagger

    tagged = Treebank.from_bytes(samples.trees("en-de", "source").encode()).part(0, _PAIRS)
    words = TagDictionary.of_treebank(treebank().part(0, 4))
    counted: dict[str, Any] = {"min_count": 1} if options["learner"] == "crf" else {}
    return ProjectedTagger(words, iterations=3, **counted, **options).fit(bitext(), tagged, links=links())


def _graph(**options: Any) -> Any:
    from isogloss.tasks.tag import GraphTagger

    return GraphTagger(iterations=1, neighbours=2, **options).fit(treebank().part(0, 5), Text.of(_text()))


def _parser(**options: Any) -> Any:
    from isogloss.tasks.parse import DependencyParser

    return DependencyParser(iterations=2, **options).fit(treebank())


def _adapted_parser() -> Any:
    """A parser with views of every kind: classes of words, links of another parser, and given ones."""
    from isogloss.tasks.parse import DependencyParser
    from isogloss.tasks.parse.adapting import GivenLinks, OtherParser
    from isogloss.tasks.parse.adapting.classes import brown_view

    trees = treebank()
    views = [
        brown_view([trees], 3, least=1), OtherParser(DependencyParser(order=1, iterations=1), 2),
        GivenLinks(("NOUN",), ("V*",)),
    ]  # fmt: skip
    return DependencyParser(order=1, iterations=2).fit(trees, views=views)


def _joint(**options: Any) -> Any:
    from isogloss.tasks.parse import JointMorphologyParser

    seen: dict[str, Any] = {"threshold": 1} if options.get("dictionary") == "train" else {}
    return JointMorphologyParser(iterations=2, tag_iterations=2, **seen, **options).fit(treebank())


def _transferred(**options: Any) -> Any:
    from isogloss.tasks.transfer import TransferredParser

    trees = Treebank.from_bytes(samples.trees("en-de", "source").encode()).part(0, _PAIRS)
    return TransferredParser(iterations=2, contractions="de", **options).fit(bitext(), source=trees, links=links())


def _restyled(carried: bool, **options: Any) -> Any:
    from isogloss.tasks.parse import StyleAdapter
    from isogloss.tasks.parse.styles import convert

    few = convert(treebank(), "chain", "head", subordinators="head")
    return StyleAdapter(iterations=5, **options).fit(few, _parser(order=1) if carried else treebank())


def _induced(**options: Any) -> Any:
    from isogloss.tasks.parse import GrammarInducer

    return GrammarInducer(iterations=2, longest=30, **options).fit(treebank())


def _delexicalised(target: bool = False) -> Any:
    from isogloss.tasks.transfer import DelexicalisedParser

    tagged = Treebank.from_bytes(samples.trees("en-de", "source").encode()).part(0, _PAIRS)
    return DelexicalisedParser(iterations=2).fit([treebank(), tagged], new_treebank() if target else None)


@cache
def constituents() -> Constituents:
    """Trees of constituents to learn from."""
    return samples.constituents("en-de", "target").part(0, _PAIRS)


def _constituency(**options: Any) -> Any:
    from isogloss.tasks.parse.constituency import ConstituencyParser

    passes: dict[str, Any] = {} if options.get("model") == "grammar" else {"iterations": 2, "min_count": 2}
    return ConstituencyParser(**passes, **options).fit(constituents())


@cache
def mentions() -> Mentions:
    """Sentences with names, and tags beside the words, to learn from."""
    found = samples.mentions("en-de").part(50, 50 + _PAIRS)
    tags = Column.of(word[:1] for s in range(len(found)) for word in found.words(s))
    return replace(found, columns={**found.columns, "tag": tags}, source=None)


@cache
def new_mentions() -> Mentions:
    """Sentences to look for names in: no words, one, unknown ones, and many."""
    own = mentions()
    many = [word for s in range(_PAIRS) for word in own.words(s)][:_LONG]
    made = Mentions.of(
        [([], []), (["Anna"], [(0, 1, "PER")]), (["qqq", "!!", "7"], []), (own.words(1), []), (many, [])]
    )
    return replace(made, columns={**made.columns, "tag": made.columns["form"]})


def _entities(**options: Any) -> Any:
    from isogloss.tasks.extract import EntityTagger

    return EntityTagger(iterations=2, **options).fit(mentions())


@cache
def cut_words() -> Segmentation:
    """Words with their morphemes."""
    return samples.morphemes().part(0, 60)


@cache
def new_words() -> Text:
    """Lines to be cut: without words, of one letter, of letters that nobody has met, of long words, and many."""
    many = " ".join(samples.morphemes().text.tokens(s)[0] for s in range(60, 90))
    return Text.of(["", "x", "\U00010330\U00010331 e\u0301te\u0301 7", "unhappily" * 12, many])


def _segmenter(supervised: bool, **options: Any) -> Any:
    from isogloss.tasks.segment import Segmenter

    gold = cut_words() if supervised else None
    return Segmenter(rounds=2, iterations=5, **options).fit(cut_words().text, gold)


def _bilingual_segmenter(**options: Any) -> Any:
    from isogloss.tasks.segment import BilingualSegmenter

    return BilingualSegmenter(rounds=2, passes=2, **options).fit(bitext())


def _relations(**options: Any) -> Any:
    from isogloss.tasks.extract import RelationExtractor

    helpers = {}
    if options["syntax"] == "given":
        helpers = {"parser": _parser(order=1, tags="predicted"), "tagger": _crf(order=1)}
    if options["syntax"].startswith("hidden"):
        options["bits"] = 6
    return RelationExtractor(iterations=2, **options).fit(related(), **helpers)


@cache
def related() -> Mentions:
    """Sentences with relations to learn from."""
    return samples.relations("en-de").part(0, _PAIRS)


@cache
def new_related() -> Mentions:
    """Sentences to look for relations in: no words, one name, names that overlap, and many."""
    own = related()
    words = [word for s in range(4) for word in own.words(s)]
    names = [(k, k + 1, "Loc" if k % 3 else "Peop") for k in range(0, len(words), 4)]
    few = [(["Anna"], [(0, 1, "PER")]), (["a", "b", "c"], [(0, 2, "x"), (1, 3, "y"), (1, 2, "x")])]
    return Mentions.of([([], []), *few, (own.words(1), own.entities(1)), (words, names)])


@cache
def proposed() -> Propositions:
    """Sentences with roles to learn from."""
    return samples.propositions("en-de").part(0, _PAIRS)


@cache
def new_proposed() -> Propositions:
    """Sentences to look for roles in: no words, one word that is a predicate, none, and known ones."""
    own = proposed()
    rows = [[], [("run", "VERB", 0, "root")], [("qqq", "X", 0, "root"), ("!!", "PUNCT", 1, "punct")]]
    made = Propositions.of(Treebank.of(rows), [[], [(0, "run.01", ())], []])
    tree = own.treebank[1]
    words = list(zip(tree.words, tree.columns["upos"], tree.heads, tree.columns["deprel"], strict=True))
    return Propositions.of(Treebank.of([*rows, words]), [*(made.predicates(s) for s in range(3)), own.predicates(1)])


def _roles(**options: Any) -> Any:
    from isogloss.tasks.extract import RoleLabeller

    if options["syntax"] not in ("none", "given"):
        options["bits"] = 6
    return RoleLabeller(iterations=2, **options).fit(proposed())


def _threads(**options: Any) -> Any:
    from isogloss.tasks.documents.threads import Threads

    return Threads(2, 3, samples=2, min_documents=2, **options).fit(samples.documents("archive")[:24])


@cache
def documents() -> Documents:
    """Documents in two languages to learn topics from, some of them in one alone."""
    pairs = bitext()
    rows = [{"en": pairs[k][0], "de": pairs[k][1]} for k in range(len(pairs))]
    rows[3].pop("en")
    rows[4].pop("de")
    return Documents.of([{name: [*words, *words] for name, words in row.items()} for row in rows])


@cache
def new_documents() -> Documents:
    """Documents to find topics of: no words, one, unknown ones, known ones, many, and in both languages."""
    own = bitext()
    many = [word for k in range(_PAIRS) for word in own[k][0]]
    rows: list[dict[str, Any]] = [
        {"en": "", "de": ""}, {"en": "the"}, {"de": "qqq zzz"}, {"en": own[1][0], "de": own[1][1]}, {"en": many},
    ]  # fmt: skip
    return Documents.of(rows)


def _topics(**options: Any) -> Any:
    from isogloss.tasks.documents import PolylingualTopics

    return PolylingualTopics(5, iterations=3, samples=3, min_documents=1, **options).fit(documents())


@cache
def labelled() -> LabelledDocuments:
    """Documents with labels to learn from, one of which has no words."""
    return LabelledDocuments.of([("neg", "", ""), *_reviewed("books")])


@cache
def new_labelled() -> LabelledDocuments:
    """Documents of another domain: no words, one, unknown ones, and generated reviews."""
    few = [("pos", "", ""), ("neg", "", "great"), ("pos", "qqq", "zzz 7")]
    return LabelledDocuments.of([*few, *_reviewed("kitchen")])


def _reviewed(domain: str) -> list[tuple[str, str, str]]:
    """Labels, titles (the first sentence) and texts."""
    made = samples.reviews(domain, 24)
    cut = [line.partition(". ") for line in made.text.lines or ()]
    return [(str(label), title, rest) for label, (title, _, rest) in zip(made.labels, cut, strict=True)]


@cache
def tree_pairs() -> Any:
    """Sentences of a sample with trees on both sides and links."""
    from isogloss.data.tree_pairs import TreePairs

    sides = [Treebank.from_bytes(samples.trees("en-de", side).encode()) for side in ("source", "target")]
    return TreePairs(sides[0], sides[1], samples.gold("en-de")[: len(sides[0])]).take(range(_PAIRS))


def _paired_parser(**options: Any) -> Any:
    from isogloss.tasks.joint import JointParserAligner

    return JointParserAligner(order=1, passes=1, folds=2, iterations=2, **options).fit(tree_pairs())


@cache
def constituent_pairs() -> Any:
    """The same with constituents made from the trees."""
    from isogloss.data.constituent_pairs import ConstituentPairs

    return ConstituentPairs.from_dependencies(tree_pairs())


def _paired_constituents(**options: Any) -> Any:
    from isogloss.tasks.joint import JointConstituentAligner

    return JointConstituentAligner(order=1, passes=1, folds=2, iterations=2, **options).fit(constituent_pairs())


def _bilingual(**options: Any) -> Any:
    from isogloss.tasks.joint import BilingualParser

    return BilingualParser(order=1, passes=1, folds=2, **{"iterations": 2, **options}).fit(tree_pairs())


@cache
def sentence_pairs(task: str = "entities") -> Any:
    """Pairs to learn from: with names, or with tags and trees, and links."""
    from isogloss.data.sentence_pairs import SentencePairs

    if task != "entities":
        given = tree_pairs()
        return SentencePairs(given.source, given.target, given.links)
    sides = [samples.mentions("en-de", side).part(0, 50) for side in ("source", "target")]
    rows = [2, 6, 14, 19, 20, 34, 38, 43, 0]
    named = [Mentions.of((side.words(s), side.entities(s)) for s in rows) for side in sides]
    return SentencePairs(named[0], named[1], links=samples.gold("en-de").take(rows))


@cache
def monolingual(task: str) -> tuple[Any, Any]:
    """Models of both languages of these pairs."""
    pairs = sentence_pairs(task)
    if task == "entities":
        from isogloss.tasks.extract import EntityTagger

        return EntityTagger(iterations=3).fit(pairs.source), EntityTagger("chain", iterations=2).fit(pairs.target)
    if task == "tag":
        from isogloss.tasks.tag import CrfTagger

        return CrfTagger(iterations=2).fit(pairs.source), CrfTagger(order=2, iterations=2).fit(pairs.target)
    from isogloss.tasks.parse import DependencyParser

    first, second = DependencyParser(order=1, iterations=2), DependencyParser(projective=False, iterations=2)
    return first.fit(pairs.source), second.fit(pairs.target)


def _multiview(task: str, **options: Any) -> Any:
    from isogloss.tasks.joint import Multiview

    return Multiview(task, candidates=4, **options).fit(sentence_pairs(task), *monolingual(task))


def _classifier(three: bool = False, **options: Any) -> Any:
    from isogloss.tasks.adapt import DocumentClassifier

    given = labelled()
    if three:
        given = given.with_labels(["so-so" if k % 3 == 0 else label for k, label in enumerate(given.labels)])
    few = new_labelled()[:8] if options.get("method") == "scl-mi" else None
    return DocumentClassifier(min_count=2, folds=3, **options).fit(given, new_labelled(), few)


def _translator(**options: Any) -> Any:
    from isogloss.tasks.translate import Translator

    options = {"order": 3, "iterations": 2, "nbest": 5, "passes": 2} | options
    return Translator(**options).fit(bitext(), bitext()[:4], links=links())


MODELS: dict[str, Callable[[], Any]] = {
    "adapt.documents": partial(_classifier, rounds=2),
    "adapt.documents/none": partial(_classifier, method="none", ngrams=1, values="counts"),
    "adapt.documents/scl": partial(_classifier, method="scl", dimensions=3, blocks=True, positive=True),
    "adapt.documents/corrected": partial(_classifier, method="scl-mi", dimensions=3, masking="own"),
    "adapt.documents/by-label": partial(_classifier, method="scl-mi", dimensions=3, correction_by="label"),
    "adapt.documents/three": partial(_classifier, three=True, rounds=1, loss="logistic", weighting="none"),
    "align.hmm": partial(_aligner, "HMMAligner"),
    "align.hmm/viterbi": partial(_aligner, "HMMAligner", symmetrise="grow-diag-final-and", decode="viterbi"),
    "align.hmm/bijective": partial(
        _aligner,
        "HMMAligner",
        constraint="bijective",
        lowercase=False,
        threshold="points",
        symmetrise="union",
        null="length",
        final=True,
    ),
    "align.model1": partial(_aligner, "Model1Aligner"),
    "align.model2": partial(_aligner, "Model2Aligner"),
    "align.segmented": partial(_aligner, "SegmentedAligner"),
    "align.segmented/target": partial(_aligner, "SegmentedAligner", segment="target", threshold=0.3, lowercase=False),
    "align.matching": partial(_supervised, "MatchingAligner"),
    "align.matching/threshold": partial(_supervised, "MatchingAligner", threshold=0.5),
    "align.quadratic": partial(_supervised, "QuadraticAligner", fertility=2, pairs=True),
    "align.quadratic/flow": partial(_supervised, "QuadraticAligner", fertility=2, pairs=False),
    "align.itg": partial(_supervised, "ItgAligner", blocks=2),
    "align.itg/mira": partial(_supervised, "ItgAligner", blocks=None, trainer="mira"),
    "tag.crf/1": partial(_crf, order=1),
    "tag.crf/2": partial(_crf, order=2, decoder="viterbi"),
    "tag.crf/feats": partial(_crf, column="feats"),
    "tag.crf/adapted": partial(_crf, adapted=True),
    "tag.several": _several,
    "tag.dictionary/HMM": partial(_dictionary, order=1, emissions="table"),
    "tag.dictionary/SHMM": partial(_dictionary, order=2, emissions="table", decoder="viterbi"),
    "tag.dictionary/HMM-ME": partial(_dictionary, order=1, features="paper"),
    "tag.dictionary/SHMM-ME": partial(_dictionary, order=2, restrict_support=True),
    "tag.projected/crf": partial(_projected, learner="crf"),
    "tag.projected/crf-2": partial(_projected, learner="crf", order=2, soft=True),
    "tag.projected/hmm": partial(_projected, learner="hmm"),
    "tag.graph/1": partial(_graph, order=1),
    "tag.graph/2": partial(_graph, order=2),
    "parse.dependency/1": partial(_parser, order=1, projective=True, prune=0.0),
    "parse.dependency/1-crossing": partial(_parser, order=1, projective=False, labels="second"),
    "parse.dependency/2": partial(_parser, order=2, projective=True, labels="second", decoder="map"),
    "parse.dependency/2-crossing": partial(_parser, order=2, projective=False),
    "parse.dependency/mira": partial(_parser, order=2, trainer="mira"),
    "parse.dependency/tags": partial(_parser, order=1, tags="predicted"),
    "parse.dependency/views": _adapted_parser,
    "constituency.span/1": partial(_constituency, order=1, prune=0.0),
    "constituency.span/2": partial(_constituency, order=2),
    "constituency.span/grammar": partial(_constituency, model="grammar", cycles=1, grammars=2),
    "constituency.span/both": partial(_constituency, model="both", cycles=1, grammars=1, tags="gold", order=1),
    "constituency.span/gold": partial(_constituency, order=2, tags="gold", decoder="map"),
    "extract.entities/chain": partial(_entities, model="chain", tags="given"),
    "extract.entities/segments": partial(_entities, model="segments", longest=3),
    "segment.bilingual": _bilingual_segmenter,
    "segment.bilingual/up": partial(_bilingual_segmenter, model="up", longest=4, distortion="uniform"),
    "segment.morphemes": partial(_segmenter, True),
    "segment.morphemes/up": partial(_segmenter, True, model="up", longest=4, rewrites=0),
    "segment.morphemes/text": partial(_segmenter, False),
    "extract.relations/none": partial(_relations, syntax="none", features="pairs"),
    "extract.relations/given": partial(_relations, syntax="given"),
    "extract.relations/links": partial(_relations, syntax="hidden-dependency", crossing=True),
    "extract.relations/spans": partial(_relations, syntax="hidden-constituency", at_most_one=True),
    "extract.roles/given": partial(_roles, syntax="given", senses=False),
    "extract.roles/joint": partial(_roles, syntax="joint", features="pairs"),
    "extract.roles/hidden": partial(_roles, syntax="hidden-dependency"),
    "extract.entities/mira": partial(_entities, model="segments", trainer="mira"),
    "threads.paths": partial(_threads, dimensions=6),
    "threads.paths/similar": partial(_threads, links="similar", shorter=True, constant=0.5, features="words"),
    "rank.pairs/two": partial(_ranker, lexicon=DICTIONARY, constraints=2, scale="all"),
    "rank.pairs/one": partial(_ranker, constraints=0, aggregator="max"),
    "rank.pairs/outputs": partial(_ranker, outputs=True, trainer="pegasos"),
    "parse.transferred": _transferred,
    "parse.transferred/delexicalised": partial(_transferred, method="delexicalised"),
    "parse.transferred/quasi": partial(_transferred, method="quasi"),
    "parse.induced/dmv": partial(_induced, learner="em", punctuation=True),
    "parse.induced/extended": partial(_induced, model="extended"),
    "parse.delexicalised": _delexicalised,
    "parse.delexicalised/target": partial(_delexicalised, target=True),
    "joint.bilingual": _bilingual,
    "joint.bilingual/best": partial(_bilingual, source_trees="best", coupling="mono", grain="coarse", tags="predicted"),
    "joint.constituents": partial(_paired_constituents, grain="coarse"),
    "joint.constituents/free": partial(_paired_constituents, nulls="free", tags="predicted", objective="fields"),
    "joint.multiview": partial(_multiview, "entities"),
    "joint.multiview/tag": partial(_multiview, "tag", decoder="nodes"),
    "joint.multiview/parse": partial(_multiview, "parse", decoder="nodes"),
    "joint.pairs": partial(_paired_parser, grain="coarse"),
    "joint.pairs/itg": partial(_paired_parser, linking="itg", tags="predicted", objective="bound"),
    "parse.joint": partial(_joint, dictionary="train"),
    "parse.joint/pipeline": partial(_joint, joint=False, projective=False),
    "parse.joint/stacked": partial(_joint, stack_links=1.0),
    "parse.restyled": partial(_restyled, carried=True),
    "topics.polylingual": _topics,
    "translate.phrases": _translator,
    "translate.phrases/sparse": partial(
        _translator, features="all", feature_count=1, reordering="swap", epochs=2, folds=2, rate=0.3
    ),
    "translate.phrases/swap": partial(_translator, reordering="swap", orientation=False, iterations=0, order=1),
    "topics.polylingual/documents": partial(_topics, prior="documents", lowercase=False),
    "parse.restyled/given": partial(_restyled, carried=False, l2=0.1, relations=False, decoder="map"),
}
"""What makes each model, by its kind and, behind a slash, what is special about it."""


def kind_of(model: str) -> str:
    """The kind of a model of `MODELS`.

    >>> kind_of("tag.crf/2")
    'tag.crf'
    """
    if model not in MODELS:
        raise ParameterError(f"there is no model {model!r}; there are {', '.join(MODELS)}")
    return model.partition("/")[0]
