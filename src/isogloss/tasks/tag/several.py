"""`Tagger`: taggers of several columns in one."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.formats import as_gold
from isogloss.data.reading import Reading, check_reading
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError
from isogloss.metrics.tagging import TagScore, score_tags
from isogloss.progress import Progress
from isogloss.tasks.tag.agreeing import Combinations
from isogloss.tasks.tag.base import COLUMNS, ColumnTagger, as_treebank
from isogloss.tasks.tag.crf import CrfTagger
from isogloss.tasks.tag.options import TaggerOptions
from isogloss.tasks.tag.words import template_names

__all__ = ["Tagger", "Tags"]


class Tags(NamedTuple):
    """One column of tags.

    labels : int32[n_words]
        Numbers of the `labels_` of its tagger.
    chances : float64[n_words], optional
        The posterior of each.
    """

    labels: NDArray[np.int32]
    chances: NDArray[np.float64] | None = None


class Tagger(TaggerOptions):
    """Tags several columns, each by a tagger of its own; one folder holds them all.

    Columns do not contradict each other: words have combinations of tags that some word of the training text had, see
    `isogloss.tasks.tag.agreeing.Combinations`.

    Parameters
    ----------
    columns : sequence of str
        Of "upos", "xpos" and "feats".
    order, decoder, iterations, rate, l1, l2, min_count, templates, margin, most, seed, threads
        Options of `CrfTagger`, the same for all columns.

    Attributes
    ----------
    taggers : dict of str to ColumnTagger
        By column, in the order of the file.

    Examples
    --------
    >>> trees = Treebank.of([[("she", "PRON"), ("sleeps", "VERB")], [("he", "PRON"), ("eats", "VERB")]] * 5)
    >>> Tagger(["upos"]).fit(trees).predict(Text.of(["he sleeps"])).strings("upos", 0)
    ('PRON', 'VERB')
    """

    _kind: ClassVar[str] = "tag.several"
    _own: bool = True
    """Whether its taggers follow from its options, and were not given to `of`."""
    _taggers: dict[str, Any] | None = None
    _combinations: Combinations | None = None
    """Those of the training text; not known for models of older versions, and for taggers that were fitted alone."""

    @classmethod
    def of(cls, *taggers: ColumnTagger) -> Self:
        """From taggers with options of their own, fitted or not; one of any kind, or several that are `CrfTagger`.

        `fit` then teaches these, and `set_params` changes them all; its options are those of the first.
        """
        first = taggers[0].get_params() if isinstance(taggers[0], CrfTagger) else {}
        shared = {name: value for name, value in first.items() if name in cls._options}
        made = cls(tuple(tagger.column for tagger in taggers), **shared)
        made._check_columns()
        given = {tagger.column: tagger for tagger in taggers}
        made._own, made._taggers = False, {column: given[column] for column in _in_order(made.columns)}
        return made

    @property
    def taggers(self) -> dict[str, Any]:
        """By column, what does the work; before `fit`, taggers that have learnt nothing."""
        return self._new() if self._taggers is None else self._taggers

    def _new(self) -> dict[str, Any]:
        given = {name: value for name, value in self.get_params().items() if name != "columns"}
        return {column: CrfTagger(column, **given) for column in _in_order(self.columns)}

    def _to_teach(self) -> dict[str, Any]:
        """What `fit` teaches: new taggers with the options of the day, or those that were given to `of`."""
        return self._new() if self._own else self.taggers

    def set_params(self, **given: Any) -> Self:
        """Change options; what was learnt with the old ones stays until `fit` is called again."""
        super().set_params(**given)
        if not self._own:
            for tagger in self.taggers.values():
                tagger.set_params(**{name: value for name, value in given.items() if name != "columns"})
        return self

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        self._check_columns()
        for tagger in self._to_teach().values():
            tagger.check_params()

    def _check_columns(self) -> None:
        columns = list(self.columns)
        if not columns or len(set(columns)) < len(columns) or not set(columns) <= set(COLUMNS):
            raise ParameterError(
                f"Tagger: columns should be some of {', '.join(map(repr, COLUMNS))}, each once, not {self.columns!r}"
            )

    @property
    def options_(self) -> dict[str, Any]:
        """Every option that is saved with a model; columns in the order of the file, and templates written out."""
        written = {"columns": tuple(_in_order(self.columns)), "templates": template_names(self.templates)}
        return super().options_ | written

    @property
    def reading_(self) -> Reading | None:  # type: ignore[override]
        """The file that it learnt from, how it was read and its frequent words; None for models of older versions."""
        reading: Reading | None = next(iter(self.taggers.values())).reading_
        return reading

    def fit(
        self,
        treebank: Treebank,
        dev: Treebank | None = None,
        progress: Progress | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
        **more: Any,
    ) -> Self:
        """Learn all columns of a treebank, one after the other; the rest is that of `CrfTagger.fit`.

        Every column has a checkpoint of its own, with its name at the end.
        """
        self.check_params()
        taggers = self._to_teach()
        gold = [tagger._gold(treebank) for tagger in taggers.values()]  # an empty column is said before the work
        for column, tagger in taggers.items():
            own = None if checkpoint is None else f"{fspath(checkpoint)}.{column}"
            tagger.fit(treebank, dev, progress, checkpoint=own, resume=resume, **more)
        self._taggers, self._combinations = taggers, None
        if len(taggers) > 1:
            self._combinations = Combinations.of([ids for _, ids in gold], [len(labels) for labels, _ in gold])
        return self

    def predict(self, treebank: Treebank | Text) -> Treebank:
        """The treebank with predicted tags in all columns."""
        given = as_treebank(treebank)
        columns: dict[str, Any] = {
            column: Column(found.labels, Vocabulary(self.taggers[column].labels_))
            for column, found in self.tags(given).items()
        }
        return given.with_predictions(**columns)

    def tags(self, treebank: Treebank | Text, *, confidence: bool = False) -> dict[str, Tags]:
        """By column, what `predict` finds as numbers and, with `confidence`, the posterior of each tag."""
        given = as_treebank(treebank)
        check_reading(self.reading_, given)
        if self._combinations is None:
            return {
                column: Tags(tagger._best(given), tagger.confidence(given) if confidence else None)
                for column, tagger in self.taggers.items()
            }
        decoded = [tagger.decode(given) for tagger in self.taggers.values()]
        agreed = self._combinations.agreed(decoded)
        if not confidence:
            return dict(zip(self.taggers, map(Tags, agreed), strict=True))
        return {
            column: Tags(labels, (found if tagger.decoder == "marginal" else tagger._decode(given)).chance_of(labels))
            for (column, tagger), found, labels in zip(self.taggers.items(), decoded, agreed, strict=True)
        }

    def predict_proba(self, treebank: Treebank | Text) -> dict[str, Any]:
        """By column, the posteriors of `CrfTagger.predict_proba`: of each column by itself."""
        return {column: tagger.predict_proba(treebank) for column, tagger in self.taggers.items()}

    def score(self, treebank: Treebank) -> TagScore:
        """Words with the right tags, in percent: in all columns, and by column."""
        gold = as_gold(treebank)
        return score_tags(self.predict(gold), gold, tuple(self.taggers))

    def explain(self, treebank: Treebank | Text, sentence: int, word: int) -> dict[str, dict[str, Any]]:
        """By column, `CrfTagger.explain`: why the column by itself would have its tag."""
        return {column: tagger.explain(treebank, sentence, word) for column, tagger in self.taggers.items()}

    # --- keeping

    def _to_saved(self) -> store.Saved:
        """All taggers; one alone is saved as a `CrfTagger`."""
        if len(self.taggers) == 1:
            alone: CrfTagger = next(iter(self.taggers.values()))
            return alone._to_saved()
        return store.Saved(self._kind, **self.to_parts())

    def to_parts(self) -> dict[str, Any]:
        """Options, arrays and meta for `isogloss.store`, for models that carry a tagger along."""
        return {
            "options": {column: tagger.options_ for column, tagger in self.taggers.items()},
            "arrays": {
                f"{column}.{name}": array
                for column, tagger in self.taggers.items()
                for name, array in tagger.to_arrays().items()
            }
            | ({} if self._combinations is None else self._combinations.to_arrays()),
            "meta": {column: tagger.all_meta() for column, tagger in self.taggers.items()},
        }

    @classmethod
    def from_parts(cls, options: Any, arrays: Any, meta: Any) -> Self:
        """The inverse of `to_parts`."""
        with store.reading("the saved tagger"):
            columns = [column for column in COLUMNS if column in options]
            taggers = [
                CrfTagger.from_parts(options[column], store.unprefixed(f"{column}.", arrays), meta[column])
                for column in columns
            ]
            if [tagger.column for tagger in taggers] != columns or len(columns) < len(options):
                raise ValueError(f"it has taggers of {', '.join(map(repr, options))}")
            made = cls.of(*taggers)
            made._combinations = Combinations.from_arrays(arrays, [len(one.labels_) for one in taggers])
            return made

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """What `save` wrote, here or in a tagger of one column; `ModelError` names the folder that cannot be read."""
        kind = store.read_header(path)["kind"]
        if kind != cls._kind and kind.startswith("tag."):
            return cls.of(store.load(path))
        return super().load(path)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        return cls.from_parts(saved.options, saved.arrays, saved.meta)


def _in_order(columns: Sequence[str]) -> list[str]:
    """The columns in the order of the file."""
    return sorted(columns, key=lambda column: [*COLUMNS, column].index(column))
