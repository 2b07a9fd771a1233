"""`DocumentClassifier`: labels of documents, learnt in one domain and adapted to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.documents import Documents
from isogloss.data.labelled import Columns, LabelledDocuments, copies_among
from isogloss.data.reading import Reading
from isogloss.data.rows import counted
from isogloss.engine.threads import using_threads
from isogloss.errors import DocumentsError, ParameterError
from isogloss.features.sparse import Sparse
from isogloss.layout import vector
from isogloss.learners.linear import LinearWeights
from isogloss.metrics.documents import DocumentScore, score_documents
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.adapt.correspondence import choose_pivots, learn_places
from isogloss.tasks.adapt.learning import (
    Problem,
    estimated_prior,
    fold_numbers,
    out_of_fold,
    self_train,
)
from isogloss.tasks.adapt.model import Corrected, FittedClassifier, Rule, calibrate, chosen_rows, joined_rows
from isogloss.tasks.adapt.options import DocumentOptions, shares_of
from isogloss.tasks.adapt.seen import Seen

__all__ = ["DocumentClassifier", "as_labelled"]

DocumentsLike = LabelledDocuments | Documents | Sequence[Any]
ENOUGH = 10
"""Labelled documents of each label, from which on they say how sure a corrected rule is."""

MANY = 20
"""Labels that are as many as half of the documents, and more than this, are taken for a wrong column."""
PIVOTS = {"scl": 1000, "scl-mi": 100}
"""Maximum number of pivots of each method, where it is not given."""


class DocumentClassifier(DocumentOptions):
    r"""Labels documents by their words, and adapts to documents of another domain that have no labels.

    A linear classifier over sequences of words, weighted as by naive Bayes, with the modified Huber loss. With
    unlabelled documents of a new domain, self-training: these documents are labelled under the constraint that labels
    have their proportions, :math:`\frac1n \sum_i q_i(y) = \pi_y`, and the classifier learns from both. Proportions are
    estimated from words that are equally frequent in both domains.

    Parameters
    ----------
    method : "self-training", "scl", "scl-mi" or "none"
    ngrams : int
        Maximum length of the sequences of words.
    values : "presence" or "counts"
    min_count : int
        Sequences in fewer documents are left out; unlabelled documents count.
    own_columns : bool
        Where the text is of several columns, such as a title and a body, words of all columns but the longest are
        features of their own, beside the same words of the whole document (`isogloss.tasks.adapt.seen`).
    weighting : "naive-bayes" or "none"
    loss : "huber" or "logistic"
    l2 : float
        λ, beside the mean loss.
    prior : "estimated", "source", mapping of str to float, or strings such as "pos=0.7"
        π.
    rounds, sharpness : int, float
        Number of rounds of self-training, and how sure its labels are.
    folds : int
    stable : float
        Words whose frequency moved by more than this log ratio have no say in the estimate of proportions.
    pivots, pivot_count, dimensions, masking, rescale, own_centre, positive, blocks, pivot_l2, places_l2
        Options of structural correspondence (scl, scl-mi); see the help of each.
    correction, correction_by, target_weight : float, "score" or "label", float
        How labels of the target are used.
    seed : int
    threads : int, optional

    Attributes
    ----------
    labels_ : tuple of str
        In the order of `predict_proba`.
    prior_ : float64[n_labels]
        The proportions of labels that the unlabelled documents were held to; those of the source without any.
    trace_ : float64[n_rounds]
        How much posteriors changed in each round: the mean share of probability that moved, from 0 to 1.

    References
    ----------
    Wang and Manning, Baselines and Bigrams, ACL 2012 (weights of naive Bayes). Ganchev et al., Posterior Regularization
    for Structured Latent Variable Models, JMLR 2010. Saerens et al., Neural Computation 2002 (EM for proportions).

    Examples
    --------
    >>> books = [("pos", "a gripping plot , great"), ("neg", "a dull plot , awful")] * 5
    >>> kitchen = ["a sturdy pan , great", "great and sturdy", "awful , it leaks", "the pan leaks , awful"] * 3
    >>> classifier = DocumentClassifier(min_count=1).fit(books, kitchen)
    >>> classifier.predict(["it leaks", "sturdy"])
    ('neg', 'pos')
    """

    _kind: ClassVar[str] = "adapt.documents"

    # --- learning

    def fit(
        self,
        documents: DocumentsLike,
        unlabelled: DocumentsLike | None = None,
        target_labels: DocumentsLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from documents of a source domain, and adapt to others.

        Parameters
        ----------
        documents : LabelledDocuments, or sequence of (label, text)
            Those whose label is None are not learnt from.
        unlabelled : LabelledDocuments, Documents, or sequence of texts
            Documents of the target domain. Labels that they have are not looked at.
        target_labels : LabelledDocuments, or sequence of (label, text)
            A few labelled documents of the target domain. With self-training they are learnt from like those of the
            source; otherwise the rule of the source is corrected with them (`isogloss.tasks.adapt.model.Corrected`).
        progress : Progress, optional
        """
        self.check_params()
        progress = progress or QuietProgress()
        source, few = _with_labels(documents), None if target_labels is None else _with_labels(target_labels)
        names = source.names
        if len(names) < 2:
            if not names:
                raise DocumentsError(
                    f"{source.name}: no document has a label, so there is nothing to learn from. Give documents with "
                    "labels: in a table, the label is a column beside the text"
                )
            raise DocumentsError(
                f"{source.name}: {counted(len(names), 'label')} among {counted(len(source), 'document')}; there should "
                "be two or more. Is it the right column?"
            )
        if few is not None and (strange := sorted(set(few.names) - set(names))):
            raise DocumentsError(
                f"{few.name}: no document of {source.name} has the label {strange[0]!r}; there labels are "
                f"{', '.join(names[:MANY])}. Write labels alike in both"
            )
        if len(names) > max(MANY, len(source) / 2):
            raise DocumentsError(
                f"{source.name}: {len(names)} labels are too many for {counted(len(source), 'document')}. Is it the "
                "right column?"
            )
        target = None if unlabelled is None else as_labelled(unlabelled, "fit").unlabelled()
        try:
            with using_threads(self.threads):
                progress.start("Learning documents", self.rounds)
                self._learn(source, target, few, progress)
        finally:
            progress.finish()
        self.reading_, self.columns_ = Reading.of(source.text), source.columns
        return self

    def _learn(
        self,
        source: LabelledDocuments,
        target: LabelledDocuments | None,
        few: LabelledDocuments | None,
        progress: Progress,
    ) -> None:
        names, taught = source.names, self.method == "self-training"
        training = taught and target is not None and len(target) > 0
        given = [one for one in (source, few, target) if one is not None]
        features = Seen.of(given, longest=self.ngrams, least=self.min_count, columns=self.own_columns)
        if not len(features):
            raise DocumentsError(
                f"{source.name}: no word is in {self.min_count} documents or more, so there is nothing to learn from. "
                f"Give more than {counted(sum(map(len, given)), 'document')}, or a lower min_count"
            )
        rows = [features.matrix(one, counts=self.values == "counts") for one in given]
        known = [one for one in given if one is source or (one is few and taught)]
        targets = np.eye(len(names))[np.concatenate([one.numbers(names) for one in known])]
        counts = np.concatenate(
            [np.full(len(one), 1.0 if one is source else float(self.target_weight)) for one in known]
        )
        settings: dict[str, Any] = {"weighting": self.weighting, "loss": self.loss, "l2": float(self.l2)}
        used = [*known, target] if training and target is not None else known
        joined = reduce(joined_rows, rows[: len(used)])
        folds = fold_numbers(copies_among([one.text for one in used]), self.folds, self.seed)
        problem = Problem(joined, targets, folds, settings, counts, features.short)
        self.prior_, self.trace_, rule = problem.shares, np.zeros(0), None
        if training:
            self.prior_ = self._prior(problem, names)
            options: dict[str, Any] = {"rounds": self.rounds, "sharpness": float(self.sharpness)}
            rule, sure, self.trace_ = self_train(problem, self.prior_, progress=progress, **options)
        else:
            if self.method in ("scl", "scl-mi") and target is not None and len(target):
                settings |= self._places(features, rows[0], rows[-1], targets)
            rule = Rule.learnt(problem.known, targets, counts, **settings)
            sure = calibrate(out_of_fold(problem, targets), targets)
            if "places" in settings and self.own_centre and self.rescale in ("length", "standard"):
                rule = replace(rule, places=rule.places.centred(rows[-1]))
        found: Rule | Corrected = rule
        if few is not None and not taught:
            found, sure = self._corrected(rule, rows[1], few, names, sure)
        self._fitted = FittedClassifier(names, features, found, sure)

    def _places(self, features: Seen, source: Sparse, target: Sparse, targets: NDArray[Any]) -> dict[str, Any]:
        """Places of words, as the rule of the source is to see them."""
        labels = targets if self.method == "scl-mi" else None
        number = PIVOTS[self.method] if self.pivots is None else self.pivots
        pivots = choose_pivots(source, target, labels, number=number, least=self.pivot_count)
        found = learn_places(
            features, source, target, pivots, dimensions=self.dimensions, masking=self.masking, positive=self.positive,
            blocks=self.blocks, regularisation=float(self.pivot_l2), seed=self.seed,
        )  # fmt: skip
        return {"places": found.fitted(source, self.rescale), "places_l2": float(self.places_l2)}

    def _corrected(
        self, rule: Rule, rows: Sparse, few: LabelledDocuments, names: tuple[str, ...], sure: LinearWeights
    ) -> tuple[Corrected, LinearWeights]:
        """The rule corrected with a few labels, and how sure it is, by labels that it was not corrected with."""
        targets, strength = np.eye(len(names))[few.numbers(names)], float(self.correction)
        options: dict[str, Any] = {
            "loss": self.loss, "l2": strength, "places_l2": strength, "by": self.correction_by,
        }  # fmt: skip
        folds, scores = fold_numbers(few.duplicates(), self.folds, self.seed), np.zeros(targets.shape)
        for fold in np.unique(folds):
            there, away = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            part = Corrected.learnt(rule, chosen_rows(rows, there), targets[there], **options)
            scores[away] = part.scores(chosen_rows(rows, away))
        if (targets.sum(axis=0) >= ENOUGH).all():  # otherwise it stays as sure as in the source
            sure = calibrate(scores, targets, decided=True)
        return Corrected.learnt(rule, rows, targets, **options), sure

    def _prior(self, problem: Problem, names: tuple[str, ...]) -> NDArray[np.float64]:
        shares = shares_of(self.prior)
        if shares is not None:
            if set(shares) != set(names):
                raise ParameterError(
                    f"DocumentClassifier: prior should have a share for each label, {', '.join(names)}, not for "
                    f"{', '.join(shares)}"
                )
            return np.array([shares[name] for name in names])
        return problem.shares if self.prior == "source" else estimated_prior(problem, float(self.stable))

    # --- predicting

    def predict(self, documents: DocumentsLike) -> tuple[str, ...]:
        """The most probable label of each document; the first of equally probable ones."""
        names = self._learnt.labels
        return tuple(names[k] for k in self.predict_proba(documents).argmax(axis=1).tolist())

    def predict_proba(self, documents: DocumentsLike) -> NDArray[np.float64]:
        """float64[n_documents, n_labels]: the posterior of each label; labels are `labels_`."""
        learnt, given = self._learnt, as_labelled(documents, "predict_proba")
        with using_threads(self.threads):
            return learnt.posteriors(given, self.values == "counts")

    def score(self, documents: DocumentsLike) -> DocumentScore:
        """Documents that get the right label, in percent; those without a label are passed over."""
        given = as_labelled(documents, "score")
        known = given.take(np.array([label is not None for label in given.labels], bool))
        return score_documents(self.predict(known), known.labels)

    @property
    def labels_(self) -> tuple[str, ...]:
        """In the order of `predict_proba`."""
        return self._learnt.labels

    @property
    def n_features_(self) -> int:
        """Sequences of words that are known."""
        return len(self._learnt.features)

    @property
    def _learnt(self) -> FittedClassifier:
        if not hasattr(self, "_fitted"):
            raise self._has_not_learnt
        return self._fitted

    # --- keeping

    def _to_saved(self) -> store.Saved:
        learnt, columns = self._learnt, self.columns_
        meta: dict[str, Any] = {
            "prior": self.prior_.tolist(), "trace": self.trace_.tolist(),
            "columns": None if columns is None else columns._asdict(), "own_columns": list(learnt.features.columns),
        }  # fmt: skip
        return store.Saved(self._kind, self.options_, learnt.to_arrays(), meta | Reading.to_meta(self.reading_))

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        with store.reading("the saved classifier of documents"):
            made = cls.of_options(saved.options)
            made._fitted = FittedClassifier.from_arrays(saved.arrays, _numbers_of(saved.meta["own_columns"]))
            made.prior_, made.trace_ = vector(saved.meta["prior"], "prior"), vector(saved.meta["trace"], "trace")
            if made._fitted.features.longest != made.ngrams or len(made.prior_) != len(made._fitted.labels):
                raise ValueError("what was learnt does not fit the options")
            made.columns_ = _columns_of(saved.meta["columns"])
            made.reading_ = Reading.from_meta(saved.meta)
        return made


def _with_labels(documents: Any) -> LabelledDocuments:
    """Those of some documents whose label is known."""
    given = as_labelled(documents, "fit")
    return given.take(np.array([label is not None for label in given.labels], bool))


def _numbers_of(given: Any) -> tuple[int, ...]:
    """Numbers of columns of a saved model."""
    found = tuple(given)
    if any(not isinstance(one, int) or isinstance(one, bool) or one < 0 for one in found) or len(set(found)) < len(
        found
    ):
        raise ValueError("columns have numbers from 0, each once")
    return found


def _columns_of(given: Any) -> Columns | None:
    """Columns of a saved model."""
    if given is None:
        return None
    label, text = given["label"], tuple(given["text"])
    fine = all(isinstance(one, int | str) and not isinstance(one, bool) for one in text) and text
    if not fine or not isinstance(label, int | str | None) or not isinstance(given["heading"], bool):
        raise ValueError("columns have numbers from 0, or names")
    return Columns(label, text, given["heading"])


def as_labelled(documents: Any, place: str) -> LabelledDocuments:
    """What people hand in, as documents with or without labels."""
    if isinstance(documents, LabelledDocuments):
        return documents
    if isinstance(documents, Documents):
        return LabelledDocuments(documents.text(), (None,) * len(documents), name=documents.name)
    if isinstance(documents, Sequence) and not isinstance(documents, str | bytes):
        return LabelledDocuments.of(documents)
    raise ParameterError(
        f"{place}: give LabelledDocuments, as LabelledDocuments.read('reviews.tsv'), or a list of texts, not "
        f"{type(documents).__name__}"
    )
