"""Which tags a word may have: a morphological dictionary, given or made of a treebank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.errors import DataError, ParameterError
from isogloss.tasks.parse.joint.schema import Schema

__all__ = ["AnalysisDictionary"]

Analysis = tuple[str, str]


class AnalysisDictionary:
    """Analyses of forms, each a part of speech and a bundle of features. A form that is not listed may have any.

    Attributes are restricted one by one: a word may have each value that one of its analyses has.

    Parameters
    ----------
    analyses : mapping of str to (str, str) pairs
        For each form, its analyses as (UPOS, FEATS).

    Examples
    --------
    >>> lexicon = AnalysisDictionary({"arma": [("NOUN", "Case=Nom|Number=Plur"), ("NOUN", "Case=Acc|Number=Plur")]})
    >>> len(lexicon), lexicon["arma"][0], "cano" in lexicon
    (1, ('NOUN', 'Case=Nom|Number=Plur'), False)
    """

    def __init__(self, analyses: Mapping[str, Iterable[Sequence[str]]]) -> None:
        self._analyses: dict[str, tuple[Analysis, ...]] = {}
        for form, listed in analyses.items():
            pairs = [(listed,)] if isinstance(listed, str) else list(listed)
            for pair in pairs:
                if isinstance(pair, str) or len(pair) != 2:
                    raise ParameterError(
                        f"AnalysisDictionary: an analysis of {form!r} is {pair!r}; give pairs such as "
                        "('NOUN', 'Case=Nom|Number=Sing')"
                    )
            if pairs:
                self._analyses[form] = tuple(dict.fromkeys((str(pair[0]), str(pair[1])) for pair in pairs))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> AnalysisDictionary:
        """Lines of a form, a part of speech and a bundle of features (``_`` for none), with tabs between."""
        from isogloss.data.formats.files import read_whole

        listed: dict[str, list[Analysis]] = {}
        try:
            lines = read_whole(path).decode().splitlines()
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not UTF-8 at byte {error.start}; convert it first (iconv -t utf-8)") from error
        for number, line in enumerate(lines, 1):
            fields = line.split("\t")
            if not line.strip() or line.startswith("#"):
                continue
            if len(fields) not in (2, 3) or not all(fields[:2]):
                raise DataError(
                    f"{path}, line {number}: {line[:60]!r} should be a form, a part of speech and features, with tabs "
                    "between, as in 'arma\\tNOUN\\tCase=Acc|Number=Plur'"
                )
            listed.setdefault(fields[0], []).append((fields[1], fields[2] if len(fields) == 3 else "_"))
        if not listed:
            raise DataError(f"{path}: no word is listed. Is it the right file?")
        return cls(listed)

    @classmethod
    def of_treebank(cls, treebank: Treebank, threshold: int = 5) -> AnalysisDictionary:
        """The analyses of forms that a treebank has at least `threshold` times."""
        forms, tags, feats = (treebank.columns[name] for name in ("form", "upos", "feats"))
        counts = np.bincount(forms.ids, minlength=len(forms.vocabulary))
        rows = np.stack([forms.ids, tags.ids, feats.ids], axis=1)[counts[forms.ids] >= threshold]
        listed: dict[str, list[Analysis]] = {}
        for form, tag, bundle in np.unique(rows, axis=0).tolist():
            listed.setdefault(forms.vocabulary[form], []).append((tags.vocabulary[tag], feats.vocabulary[bundle]))
        return cls(listed)

    def with_treebank(self, treebank: Treebank) -> AnalysisDictionary:
        """The same forms with what a treebank says of them as well, so that nothing right is forbidden there."""
        seen = AnalysisDictionary.of_treebank(treebank, 1)
        return AnalysisDictionary({form: [*own, *seen._analyses.get(form, ())] for form, own in self._analyses.items()})

    def __len__(self) -> int:
        return len(self._analyses)

    def __contains__(self, form: object) -> bool:
        return form in self._analyses

    def __getitem__(self, form: str) -> tuple[Analysis, ...]:
        return self._analyses[form]

    def as_dict(self) -> dict[str, list[list[str]]]:
        """Plain data, for JSON."""
        return {form: [list(pair) for pair in pairs] for form, pairs in self._analyses.items()}

    def allowed(self, treebank: Treebank, schema: Schema) -> NDArray[np.bool_]:
        """bool[n_words, n_values]: the values that each word may have; all where nothing is known."""
        forms = treebank.columns["form"]
        starts = schema.starts
        out = np.ones((len(forms.vocabulary), int(starts[-1])), np.bool_)
        for number, form in enumerate(forms.vocabulary):
            for a in range(len(schema.names) if form in self._analyses else 0):
                found = {schema.number(a, pair[a > 0]) for pair in self._analyses[form]} - {-1}
                if found:
                    out[number, starts[a] : starts[a + 1]] = False
                    out[number, starts[a] + np.array(sorted(found))] = True
        return out[forms.ids]
