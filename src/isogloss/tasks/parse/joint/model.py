"""`JointMorphologyParser`: parts of speech, morphology and trees, each with an eye on the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.formats import as_gold, as_treebank
from isogloss.data.reading import Reading, check_reading
from isogloss.data.treebank import Column, Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import ModelError, ParameterError, TreebankError, UsageError
from isogloss.estimator import option
from isogloss.features import KeyTable
from isogloss.layout import Layout, Numbers, check, vector
from isogloss.learners.runner import Keeping, run
from isogloss.learners.tuning import Tuned
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.batch import Stack
from isogloss.tasks.parse.joint.analyses import AnalysisDictionary
from isogloss.tasks.parse.joint.schema import Schema
from isogloss.tasks.parse.joint.scoring import JointScore, joint_score
from isogloss.tasks.parse.joint.stacking import OTHER_SHARE, as_tagged, fit_parser, link_scores, relations
from isogloss.tasks.parse.joint.tagging import TAGGING, Known, allowed_values, best_values, jackknifed, spread
from isogloss.tasks.parse.joint.text import clamped, known_features, see, sentences_of
from isogloss.tasks.parse.joint.training import (
    Inference,
    JointLikelihood,
    Settings,
    all_beliefs,
    learner_of,
    link_table,
    shape_of,
)
from isogloss.tasks.parse.options import JointOptions

if TYPE_CHECKING:
    from isogloss.tasks.parse.parser import DependencyParser

__all__ = ["JointMorphologyParser", "Posteriors"]

LEAST_BELIEF = 1e-5
LEAST = 1e-4
"""Weights up to this size are not kept."""


class Posteriors(NamedTuple):
    """What the model believes.

    Parameters
    ----------
    links : Stack
        float64[n + 1, n + 1] for each sentence: the posterior of each link (head, child), the root first.
    tags : mapping of str to float64[n_words, n_values]
        For ``upos`` and each feature, the posterior of its values, in the order of `JointMorphologyParser.values_`.
    """

    links: Stack
    tags: dict[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What was learnt."""

    schema: Schema
    features: NDArray[np.uint64]
    tagger: NDArray[np.float64]
    links: KeyTable
    weights: NDArray[np.float64]
    dictionary: AnalysisDictionary | None
    parser: DependencyParser | None = None


class JointMorphologyParser(JointOptions):
    r"""Finds tags, morphological features and trees together.

    .. math:: p(t, y \mid w) \propto \exp\Big(\sum_{a,i} \theta \cdot f(t_{a,i}, w)
        + \sum_{a,i} \theta \cdot f(t_{a,i}, t_{a,i+1}) + \sum_{a,i} \theta \cdot f(t_{pos,i}, t_{a,i})
        + \sum_{h \to c \in y} \Big[\theta \cdot f(w, h, c) + \sum_a \theta \cdot f(t_{a,h}, t_{a,c}, w)\Big]\Big)

    over all values of all attributes and all trees [1]_, so that an adjective helps to find the case of its noun, and
    its case helps to find the noun. Inference is loopy belief propagation, and answers are those with the most right
    values, and right heads, in expectation. With ``joint=False`` the same factors work one after the other: a tagger,
    and a parser that takes its tags for granted.

    Parameters
    ----------
    attributes : sequence of str, optional
        Features to predict; all that one word in two thousand has, if not given.
    joint : bool
        Whether tags and trees are found together.
    dictionary : "train", AnalysisDictionary or mapping, optional
        Which analyses words may have: those seen in training, for words seen often enough, or those of a dictionary,
        together with those of its words in training. Other words may have any.
    threshold : int
        How often a word must be seen for ``dictionary="train"``.
    iterations : int
        Passes over the treebank; with `dev` the best number up to this.
    tag_iterations : int
        Passes of the tagger.
    bp_iterations : int
        Rounds of messages.
    rate : float
        Length of steps (AdaGrad).
    variance : float
        Of the Gaussian prior of weights.
    prune : float
        Values of tags to which the tagger gives less are left out of the joint model; 0 keeps all, which is slow.
    reach : int
        Features of words are also kept for wrong links up to this length, not only for right ones.
    government : bool
        Whether links also look at a value that the child has and the head has not, such as the case of a verb's object
        or of what a noun governs; without it, as in the paper, links look at agreement alone.
    stack : float
        How much the joint model listens to the tagger: this times the logarithm of what a tagger believes that has not
        seen the sentence is added to the score of each value; 0 lets it learn all anew, as in the paper.
    stack_links : float
        How much it listens to a `DependencyParser` of order 2, which is learnt from the tagger's tags: this times the
        logarithm of what it believes is added to the score of each link when sentences are parsed. Trees are then the
        best by the mean of what both believe, and there are relations. 0 goes without, as in the paper.
    tags : "predicted" or "gold"
        With ``joint=False`` only: "gold" takes the tags that are given instead of the tagger's.
    projective, single_root : bool
        Whether no links may cross, and whether the root has one child.
    batch : int
        Sentences of a step.
    seed : int
        Of the order of sentences.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    trace_ : float64[n_passes]
        Log-likelihood of a word (Bethe's) less the prior of weights, in each pass, as it was met.
    tuning_ : float64[n_passes]
        UAS on dev after each pass; empty without dev.
    reading_ : Reading or None
        The file that it learnt from, how it was read and its frequent words; None for models of older versions.

    References
    ----------
    .. [1] Lee, Naradowsky and Smith, A discriminative model for joint morphological disambiguation and dependency
       parsing, ACL 2011. We differ: AdaGrad, tags pruned by the tagger, one root child, MORPH-LINK also looks at
       direction, length and the fixed parts of speech, and TAG-UNIGRAM at the words beside.

    Examples
    --------
    >>> trees = Treebank.of([[("bona", "ADJ", 2, "amod", "_", "_", "Case=Nom"), ("puella", "NOUN", 0, "root", "_", "_",
    ...                       "Case=Nom")]] * 6)
    >>> parser = JointMorphologyParser(iterations=3, tag_iterations=3).fit(trees)
    >>> found = parser.predict(Treebank.of([[("bona",), ("filia",)]]))
    >>> found.strings("upos", 0), found.strings("feats", 0), found.heads.tolist()
    (('ADJ', 'NOUN'), ('Case=Nom', 'Case=Nom'), [2, 0])
    """

    _kind: ClassVar[str] = "parse.joint"
    dictionary: str | AnalysisDictionary | Mapping[str, Any] | None = option(
        default=None, kind=(str, AnalysisDictionary, Mapping), kept=False, help="Which analyses words may have."
    )

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        if self.tags == "gold" and self.joint:
            raise ParameterError(
                f"JointMorphologyParser: tags should be 'predicted', or 'gold' with joint=False, not {self.tags!r}"
            )
        if isinstance(self.dictionary, str) and self.dictionary != "train":
            raise ParameterError(
                f"JointMorphologyParser: dictionary should be 'train', a AnalysisDictionary or a mapping of forms to "
                f"analyses, not {self.dictionary!r}"
            )

    def __repr__(self) -> str:
        return f"JointMorphologyParser(joint={self.joint}, projective={self.projective})"

    # --- learning

    def fit(
        self,
        treebank: Treebank,
        dev: Treebank | None = None,
        progress: Progress | None = None,
        *,
        like: JointMorphologyParser | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn tags and trees of a treebank; sentences that lack a head teach tags only.

        Parameters
        ----------
        treebank : Treebank
        dev : Treebank, optional
            Other sentences; the number of passes is that of the best UAS on them.
        progress : Progress, optional
        like : JointMorphologyParser, optional
            One that was fitted to the same sentences with the same options of tagging, and in this process: its tagger
            is taken over, so that a pipeline and a joint model can be compared in less time.
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt of trees so far; see `isogloss.learners.runner.run`.
        resume : bool
            Go on from there, to the bit as if nothing had happened.
        """
        self.check_params()
        progress = progress or QuietProgress()
        _check(as_gold(treebank), single_root=self.single_root)
        if dev is not None:
            _check(dev, single_root=self.single_root)
        keeping = Keeping.of(checkpoint, resume, self.options_, [treebank, dev])
        with using_threads(self.threads):
            try:
                self._fit(treebank, dev, progress, like, keeping)
            finally:
                progress.finish()
        return self

    def _fit(
        self,
        treebank: Treebank,
        dev: Treebank | None,
        progress: Progress,
        like: JointMorphologyParser | None,
        keeping: Keeping,
    ) -> None:
        wanted = _complete(treebank)
        if not wanted:
            raise TreebankError(
                f"{treebank.name}: no sentence has heads for all words, so there is nothing to learn. Is it the right "
                "file?"
            )
        schema, seen = Schema.of(treebank, self.attributes), see(treebank)
        features, gold = known_features(seen), schema.numbers(treebank)
        whole = self._lexicon(treebank)
        if self.tags == "gold":
            tagger = np.zeros(shape_of(schema, len(features))[1])
            allowed, context, prior = clamped(gold, schema), gold[:, 0], None
        else:
            if like is None:
                known = Known(treebank, schema, seen, features, gold)
                settings = Settings(self.tag_iterations, self.rate, self.variance, self.batch, self.seed)
                self._jackknifed = jackknifed(known, self._lexicon, settings, progress)
            else:
                self._jackknifed = like._taken_over(treebank, schema)
            tagger, chances = self._jackknifed
            allowed, context = self._candidates(chances, schema, gold if self.joint else None)
            prior = self._prior(chances)
        parser = self._parser_of(
            treebank, schema, gold if self.tags == "gold" else best_values(chances, schema), progress
        )
        fixed = gold if self.joint or self.tags == "gold" else np.full_like(gold, -1)
        sentences = sentences_of(treebank, seen, features, schema, allowed, context, fixed, wanted, prior)
        progress.start("Collecting features", 1)
        links = link_table(sentences, len(schema.names), self.reach, self.government)
        shape, size = shape_of(schema, len(features), links, self.government)
        self._fitted = _Fitted(schema, features, tagger, links, np.zeros(0), whole, parser)
        settings = Settings(self.iterations, self.rate, self.variance, self.batch, self.seed)
        objective = JointLikelihood(sentences, shape, size, self._how)
        learner = Tuned(
            learner_of(objective, settings, progress.within),
            None if dev is None else partial(self._uas, dev),
            "UAS {:.2f} on dev",
        )
        found = run(
            learner, learner.init(), iterations=self.iterations, progress=progress, name="Learning", every=None,
            **keeping.arguments,
        )  # fmt: skip
        self._fitted = replace(self._fitted, weights=found.state.weights)
        self.trace_, self.tuning_ = found.trace / max(1, objective.n_words), np.array(found.state.scores)
        self.reading_ = Reading.of(treebank, frequent=True)

    def _parser_of(
        self, treebank: Treebank, schema: Schema, values: NDArray[np.int64], progress: Progress
    ) -> DependencyParser | None:
        """The full parser beside the joint model, if there is to be one."""
        if not self.stack_links:
            return None
        options = {"single_root": self.single_root, "seed": self.seed, "threads": self.threads}
        projective = self.projective or None  # where links may cross, as it is in the treebank
        return fit_parser(as_tagged(treebank, schema, values), progress, projective=projective, **options)

    def _uas(self, dev: Treebank, weights: NDArray[np.float64]) -> float:
        """Right heads of other sentences with these weights, in percent."""
        self._fitted = replace(self._learnt, weights=weights)
        heads, known = self._decode(self._infer(dev)[0]), dev.heads >= 0
        return 100 * float(np.mean(heads[known] == dev.heads[known])) if known.any() else 0.0

    def _taken_over(self, treebank: Treebank, schema: Schema) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The tagger, and what taggers believe that did not see a sentence, for another parser of the same text."""
        if not hasattr(self, "_jackknifed") or self._learnt.schema != schema:
            raise UsageError("fit: `like` should be a parser that was fitted to the same sentences just before")
        if len(self._jackknifed[1]) != treebank.n_words:
            raise UsageError(f"fit: `like` was fitted to other sentences than those of {treebank.name}")
        return self._jackknifed

    @property
    def _how(self) -> Inference:
        rounds = self.bp_iterations if self.joint else 1
        return Inference(True, self.joint, self.projective, self.single_root, rounds)

    def _lexicon(self, treebank: Treebank) -> AnalysisDictionary | None:
        if self.dictionary is None:
            return None
        if isinstance(self.dictionary, str):
            return AnalysisDictionary.of_treebank(treebank, self.threshold)
        given = (
            self.dictionary if isinstance(self.dictionary, AnalysisDictionary) else AnalysisDictionary(self.dictionary)
        )
        return given.with_treebank(treebank)

    def _candidates(
        self, chances: NDArray[np.float64], schema: Schema, gold: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Values that words may have, and their fixed parts of speech, from what the tagger believes."""
        best = best_values(chances, schema)
        allowed = clamped(best, schema)
        if self.joint:
            allowed |= (chances >= self.prune) & (chances > 0)
            if gold is not None:
                allowed |= clamped(gold, schema)
        return allowed, best[:, 0]

    def _prior(self, chances: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """What the tagger believes, as a score of each value; it did not see the sentence when it learnt."""
        return self.stack * np.log(np.maximum(chances, LEAST_BELIEF)) if self.joint and self.stack else None

    # --- predicting

    def predict(self, treebank: Treebank | Text, *, confidence: bool = False) -> Treebank:
        """The treebank with predicted tags, features and heads; without `stack_links`, relations are left open (``_``).

        With `confidence`, MISC gets ``Confidence``, the posterior of each link.
        """
        from isogloss.tasks.parse.inference import chances_of

        given = self._given(treebank)
        with using_threads(self.threads):
            links, tags = self._infer(given)
            heads = self._decode(links)
        schema = self._learnt.schema
        best = best_values(tags, schema)
        upos, feats = schema.columns(best)
        found = given.with_columns(deprel=["_"] * given.n_words).with_predictions(heads=heads)
        labels = self._relations(given, best, heads)
        if labels is not None:
            found = found.with_predictions(deprel=labels)
        if self.tags != "gold":
            found = found.with_predictions(upos=upos, feats=feats)
        if confidence:
            found = found.with_misc("Confidence", [f"{p:.4f}" for p in chances_of(links, heads).tolist()])
        return found

    def predict_proba(self, treebank: Treebank | Text) -> Posteriors:
        """Posteriors of links and of the values of tags."""
        given = self._given(treebank)
        with using_threads(self.threads):
            links, tags = self._infer(given)
        schema = self._learnt.schema
        starts = schema.starts.tolist()
        return Posteriors(links, {name: tags[:, starts[a] : starts[a + 1]] for a, name in enumerate(schema.names)})

    def _given(self, text: Treebank | Text) -> Treebank:
        """The sentences to parse; those that were read unlike the text of the training are said to be."""
        treebank = as_treebank(text)
        check_reading(self.reading_, treebank)
        return treebank

    def _infer(self, treebank: Treebank) -> tuple[Stack, NDArray[np.float64]]:
        """Posteriors of links, and of all values of all words: float64[n_words, n_values]."""
        learnt = self._learnt
        schema, seen = learnt.schema, see(treebank)
        chances = np.zeros((treebank.n_words, int(schema.starts[-1])))
        none = np.full((treebank.n_words, len(schema.names)), -1, np.int64)
        if self.tags == "gold":
            given = np.maximum(schema.numbers(treebank), 0)
            allowed, context, prior = clamped(given, schema), given[:, 0], None
        else:
            allowed = allowed_values(treebank, schema, learnt.dictionary)
            plain = sentences_of(treebank, seen, learnt.features, schema, allowed, none[:, 0], none)
            shape, _ = shape_of(schema, len(learnt.features))
            for s, (tags, _, _) in enumerate(all_beliefs(plain, shape, learnt.tagger, TAGGING)):
                spread(treebank, s, plain[s], tags, schema, chances)
            allowed, context = self._candidates(chances, schema, None)
            prior = self._prior(chances)
        beside = before = None
        if learnt.parser is not None:
            values = given if self.tags == "gold" else best_values(chances, schema)
            beside = learnt.parser.predict_proba(as_tagged(treebank, schema, values))
            before = link_scores(beside, self.stack_links)
        sentences = sentences_of(treebank, seen, learnt.features, schema, allowed, context, none, None, prior, before)
        shape, _ = shape_of(schema, len(learnt.features), learnt.links, self.government)
        sizes = treebank.lengths + 1
        offsets = np.concatenate([[0], np.cumsum(sizes * sizes)]).astype(np.int64)
        links = np.zeros(int(offsets[-1]))
        for s, (tags, link, _) in enumerate(all_beliefs(sentences, shape, learnt.weights, self._how)):
            links[offsets[s] : offsets[s + 1]] = link.ravel()
            if self.joint or self.tags == "gold":
                spread(treebank, s, sentences[s], tags, schema, chances)
        if beside is not None:
            links = OTHER_SHARE * beside.values + (1 - OTHER_SHARE) * links
        return Stack(links, offsets, np.stack([sizes, sizes], axis=1)), chances

    def _relations(self, treebank: Treebank, values: NDArray[np.int64], heads: NDArray[np.int32]) -> Column | None:
        """The relation of each word to its head, where a parser beside this one has learnt any."""
        learnt = self._learnt
        if learnt.parser is None:
            return None
        with using_threads(self.threads):
            return relations(learnt.parser, as_tagged(treebank, learnt.schema, values), heads)

    def _decode(self, links: Stack) -> NDArray[np.int32]:
        """Heads of the trees with the most right links in expectation."""
        from isogloss.structures.projective_batch import ProjectiveTrees
        from isogloss.structures.spanning import SpanningTrees

        kind = ProjectiveTrees if self.projective else SpanningTrees
        found = kind(links, single_root=self.single_root).argmax()
        return np.concatenate([np.zeros(0, np.int32), *found]).astype(np.int32)

    def score(self, treebank: Treebank) -> JointScore:
        """UAS, UPOS, UFeats and the rest of `isogloss.metrics.score_trees` in percent, and `attributes`."""
        gold = as_gold(treebank)
        return joint_score(self.predict(gold), gold, self._learnt.schema.names)

    @property
    def values_(self) -> dict[str, tuple[str, ...]]:
        """The values of ``upos`` and of each feature; "" is none."""
        schema = self._learnt.schema
        return dict(zip(schema.names, schema.values, strict=True))

    @property
    def labels_(self) -> tuple[str, ...]:
        """The relations that can be predicted; none without `stack_links`."""
        beside = self._learnt.parser
        return () if beside is None else beside.labels_

    @property
    def _learnt(self) -> _Fitted:
        if not hasattr(self, "_fitted"):
            raise self._has_not_learnt
        return self._fitted

    # --- keeping

    def _to_saved(self) -> store.Saved:
        learnt = self._learnt
        arrays: dict[str, NDArray[Any]] = {"features": learnt.features, "links": learnt.links.slots}
        for name, weights in (("tagger", learnt.tagger), ("weights", learnt.weights)):
            places = np.flatnonzero(np.abs(weights) > LEAST)
            arrays |= {f"{name}.places": places, f"{name}.values": weights[places]}
        more, parser = store.hold("parser", learnt.parser)
        arrays |= more
        meta = {
            "schema": learnt.schema._asdict(),
            "dictionary": None if learnt.dictionary is None else learnt.dictionary.as_dict(),
            "parser": parser,
            "sizes": [len(learnt.tagger), len(learnt.weights)],
            "trace": self.trace_.tolist(),
            "tuning": self.tuning_.tolist(),
            **Reading.to_meta(self.reading_),
        }
        return store.Saved(self._kind, self.options_, arrays, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        from isogloss.tasks.parse.parser import DependencyParser

        meta, arrays = saved.meta, saved.arrays
        with store.reading("the saved parser"):
            parser = cls.of_options(saved.options)
            schema = Schema.checked(meta["schema"])
            links = KeyTable.ready(arrays["links"], "links", "the saved parser")
            found = check({**arrays, "numbers": links.payload}, _LAYOUT, "the features of the saved parser")
            features = found["features"]
            tagger = _spread(arrays, "tagger", shape_of(schema, len(features))[1])
            weights = _spread(arrays, "weights", shape_of(schema, len(features), links)[1])
            lexicon = None if meta["dictionary"] is None else AnalysisDictionary(meta["dictionary"])
            beside = meta.get("parser") and store.held("parser", arrays, meta["parser"], DependencyParser)
            if (beside is None) != (parser.stack_links == 0):
                raise ModelError("the saved parser lacks the parser that it listens to. Train it again")
            parser._fitted = _Fitted(schema, features, tagger, links, weights, lexicon, beside)
            parser.trace_, parser.tuning_ = vector(meta["trace"], "trace"), vector(meta["tuning"], "tuning")
            parser.reading_ = Reading.from_meta(meta)
        return parser


_LAYOUT: Layout = {
    "features": Numbers("uint64", "features", order="strict"),
    "numbers": Numbers("uint32", "links", below="links"),
}
"""Of what is kept; `numbers` are those that the table of links has."""


def _spread(arrays: Mapping[str, NDArray[Any]], name: str, size: int) -> NDArray[np.float64]:
    """float64[size]: weights of which only those that are not 0 are kept."""
    layout: Layout = {
        f"{name}.places": Numbers("int64", "kept", least=0, below=size, order="strict"),
        f"{name}.values": Numbers("float64", "kept"),
    }
    places, values = check(arrays, layout, "the weights of the saved parser").values()
    out = np.zeros(size)
    out[places] = values
    return out


def _check(treebank: Treebank, *, single_root: bool) -> None:
    """Two roots (if there may be but one) and cycles are refused, with their place."""
    if single_root:
        treebank.check_trees()
    else:
        treebank.with_columns(heads=np.where(treebank.heads == 0, -1, treebank.heads)).check_trees()


def _complete(treebank: Treebank) -> list[int]:
    """The sentences in which every word has a head."""
    lacking = np.repeat(np.arange(len(treebank)), treebank.lengths)[treebank.heads < 0]
    return [int(s) for s in np.setdiff1d(np.flatnonzero(treebank.lengths > 0), lacking)]
