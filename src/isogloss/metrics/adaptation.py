r"""Where a system loses, on the way from one domain to another: the loss taken apart by kinds of words.

With shares of kinds :math:`a_c` in the source's test and :math:`b_c` in the target's, and errors :math:`e_c, f_c` of
each kind, the loss is

.. math:: \sum_c b_c f_c - \sum_c a_c e_c = \sum_c \big[\, b_c (f_c - e_c) + (b_c - a_c)(e_c - e) \,\big]

where e is the error of all words of the source. The first part of each kind is what it loses; the second what is lost
because there is more of it, which counts only if it is harder than the rest. What kinds add sums to the loss.

References
----------
Dredze et al., Frustratingly Hard Domain Adaptation for Dependency Parsing, EMNLP-CoNLL 2007, section 3, where each
kind's loss is given and its share, but not how both make the whole. Ben-David et al., NIPS 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError

__all__ = ["Decomposition", "Kind", "Side", "decompose_loss"]


class Side(NamedTuple):
    """The words of one domain that are scored.

    kinds : int64[n]
        The kind of each.
    wrong : bool[n]
    """

    kinds: NDArray[np.int64]
    wrong: NDArray[np.bool_]


@dataclass(frozen=True)
class Kind:
    """What one kind of words loses; all but counts in percent, or points of percent.

    source_error, target_error : float, optional
        None where a domain has none of this kind; what it adds is then reckoned as if it had no error of its own.
    loss : float, optional
        Target error less source error.
    adds : float
        To the loss of all words: `by_error`, since words of this kind have more errors, and `by_share`, since there
        are more of them.
    """

    name: str
    source_words: int
    target_words: int
    source_share: float
    target_share: float
    source_error: float | None
    target_error: float | None
    loss: float | None
    by_error: float
    by_share: float
    adds: float


@dataclass(frozen=True)
class Decomposition:
    """A loss taken apart.

    source_error, target_error, loss : float
        Of all words, in percent.
    kinds : tuple of Kind
        Those that add most first.
    """

    source_error: float
    target_error: float
    loss: float
    kinds: tuple[Kind, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def of(self, name: str) -> Kind:
        """One kind by its name."""
        for kind in self.kinds:
            if kind.name == name:
                return kind
        raise ParameterError(
            f"Decomposition: no kind {name!r}; there are {', '.join(kind.name for kind in self.kinds)}"
        )


def decompose_loss(source: Side, target: Side, names: Sequence[str]) -> Decomposition:
    """Take the loss from one domain to the other apart by kinds of words.

    Parameters
    ----------
    source, target : Side
        Words of the source that the system did not learn from, and of the target.
    names : sequence of str
        What kinds are called.

    Examples
    --------
    >>> here = Side(np.array([0, 0, 1, 1]), np.array([False, False, True, False]))
    >>> there = Side(np.array([0, 1, 1, 1]), np.array([False, True, True, False]))
    >>> found = decompose_loss(here, there, ["known", "unknown"])
    >>> found.loss, [(kind.name, round(kind.loss, 6), round(kind.adds, 6)) for kind in found.kinds]
    (25.0, [('unknown', 16.666667, 18.75), ('known', 0.0, 6.25)])
    """
    n = len(names)
    here, there = (np.bincount(side.kinds, minlength=n).astype(float) for side in (source, target))
    if len(here) > n or len(there) > n or not here.sum() or not there.sum():
        raise ParameterError("decompose_loss: both domains should have words, and kinds be numbers of names")
    bad, worse = (np.bincount(side.kinds[side.wrong], minlength=n).astype(float) for side in (source, target))
    error, other = bad.sum() / here.sum(), worse.sum() / there.sum()
    shares, others = here / here.sum(), there / there.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        errors, theirs = bad / here, worse / there
    own = np.where(here > 0, np.nan_to_num(errors), error)  # what is not met has the error of all
    by_error = others * (np.where(there > 0, np.nan_to_num(theirs), own) - own)
    by_share = (others - shares) * (own - error)
    kinds = []
    for k in np.lexsort((np.arange(n), -(by_error + by_share))).tolist():
        if not here[k] and not there[k]:
            continue
        first = 100 * float(errors[k]) if here[k] else None
        second = 100 * float(theirs[k]) if there[k] else None
        kinds.append(
            Kind(
                names[k], int(here[k]), int(there[k]), 100 * float(shares[k]), 100 * float(others[k]), first, second,
                None if first is None or second is None else second - first, 100 * float(by_error[k]),
                100 * float(by_share[k]), 100 * float(by_error[k] + by_share[k]),
            )
        )  # fmt: skip
    return Decomposition(100 * float(error), 100 * float(other), 100 * float(other - error), tuple(kinds))
