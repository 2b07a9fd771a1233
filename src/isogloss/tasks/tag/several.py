"""`Tagger`: taggers of several columns in one."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Self

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.reading import Reading
from isogloss.data.treebank import Treebank
from isogloss.errors import ModelError, ParameterError
from isogloss.progress import Progress
from isogloss.tasks.tag.base import COLUMNS, ColumnTagger, as_treebank
from isogloss.tasks.tag.crf import CrfTagger

__all__ = ["Tagger"]


class Tagger:
    """Tags several columns, each by a tagger of its own; one folder holds them all.

    Parameters
    ----------
    columns : sequence of str
        Of "upos", "xpos" and "feats".
    **options
        Of `CrfTagger`, the same for all.

    Attributes
    ----------
    taggers : dict of str to ColumnTagger
        By column.

    Examples
    --------
    >>> trees = Treebank.of([[("she", "PRON"), ("sleeps", "VERB")], [("he", "PRON"), ("eats", "VERB")]] * 5)
    >>> Tagger(["upos"]).fit(trees).predict(Text.of(["he sleeps"])).strings("upos", 0)
    ('PRON', 'VERB')
    """

    _kind: ClassVar[str] = "tag.several"

    def __init__(self, columns: Sequence[str] = ("upos", "feats"), **options: Any) -> None:
        if isinstance(columns, str) or not columns or len(set(columns)) < len(columns):
            raise ParameterError(f"Tagger: columns should be a list of different columns, not {columns!r}")
        self.taggers: dict[str, Any] = {column: CrfTagger(column, **options) for column in columns}

    @classmethod
    def of(cls, *taggers: ColumnTagger) -> Self:
        """From taggers with options of their own, fitted or not; one of any kind, or several that are `CrfTagger`."""
        made = cls([tagger.column for tagger in taggers])
        made.taggers = {tagger.column: tagger for tagger in taggers}
        return made

    def __repr__(self) -> str:
        return f"Tagger({list(self.taggers)})"

    @property
    def columns(self) -> tuple[str, ...]:
        """What is predicted."""
        return tuple(self.taggers)

    @property
    def reading_(self) -> Reading | None:
        """The file that it learnt from, how it was read and its frequent words; None for models of older versions."""
        reading: Reading | None = next(iter(self.taggers.values())).reading_
        return reading

    def fit(
        self, treebank: Treebank, dev: Treebank | None = None, progress: Progress | None = None, **more: Any
    ) -> Self:
        """Learn all columns of a treebank, one after the other; `more` goes to `CrfTagger.fit`."""
        for tagger in self.taggers.values():
            tagger._gold(treebank)  # an empty column is said before the work
        for tagger in self.taggers.values():
            tagger.fit(treebank, dev, progress, **more)
        return self

    def predict(self, treebank: Treebank | Text) -> Treebank:
        """The treebank with predicted tags in all columns."""
        found = as_treebank(treebank)
        for tagger in self.taggers.values():
            found = tagger.predict(found)
        return found

    def predict_proba(self, treebank: Treebank | Text) -> dict[str, Any]:
        """By column, the posteriors of `CrfTagger.predict_proba`."""
        return {column: tagger.predict_proba(treebank) for column, tagger in self.taggers.items()}

    def score(self, treebank: Treebank) -> dict[str, float]:
        """Words with the right tag, in percent, by column."""
        scores: dict[str, float] = {}
        for tagger in self.taggers.values():
            scores |= tagger.score(treebank)
        return scores

    def explain(self, treebank: Treebank | Text, sentence: int, word: int) -> dict[str, dict[str, Any]]:
        """By column, `CrfTagger.explain`."""
        return {column: tagger.explain(treebank, sentence, word) for column, tagger in self.taggers.items()}

    # --- keeping

    def save(self, path: str | PathLike[str]) -> None:
        """Write a folder with all taggers; see `isogloss.store`. One alone is saved as a `CrfTagger`."""
        if len(self.taggers) == 1:
            next(iter(self.taggers.values())).save(path)
            return
        parts = self.to_parts()
        store.save(path, kind=self._kind, **parts)

    def to_parts(self) -> dict[str, Any]:
        """Options, arrays and meta for `isogloss.store`, for models that carry a tagger along."""
        return {
            "options": {column: tagger.options_ for column, tagger in self.taggers.items()},
            "arrays": {
                f"{column}.{name}": array
                for column, tagger in self.taggers.items()
                for name, array in tagger.to_arrays().items()
            },
            "meta": {column: tagger.all_meta() for column, tagger in self.taggers.items()},
        }

    @classmethod
    def from_parts(cls, options: Any, arrays: Any, meta: Any) -> Self:
        """The inverse of `to_parts`."""
        taggers = []
        for column, given in sorted(options.items(), key=lambda entry: [*COLUMNS, entry[0]].index(entry[0])):
            own = {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith(f"{column}.")}
            if not isinstance(given, dict) or column not in meta:
                raise ModelError(f"the saved taggers are damaged: nothing is known of {column}. Train them again")
            taggers.append(CrfTagger.from_parts(given, own, meta[column]))
        return cls.of(*taggers)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """What `save` wrote, here or in a tagger of one column; `ModelError` names the folder that cannot be read."""
        kind = store.read_header(path)["kind"]
        if kind != cls._kind and kind.startswith("tag."):
            return cls.of(store.load(path))
        return cls._from_saved(store.read(path, kind=cls._kind))

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        return cls.from_parts(saved.options, saved.arrays, saved.meta)
