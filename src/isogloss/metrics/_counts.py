"""Counting links in bulk: what every score is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Links
from isogloss.data.formats import as_links
from isogloss.errors import LinksError

__all__ = [
    "COLUMNS",
    "check_rows",
    "contained",
    "counts_by_pair",
    "gold_keys",
    "link_keys",
    "rates",
    "sorted_once",
]

COLUMNS = ("links", "sure hits", "hits", "sure", "gold")
"""|A|, |A ∩ S|, |A ∩ P|, |S| and |P|, with the sure links among the possible ones."""

Keys = NDArray[np.int64]


def check_rows(first: Links, second: Links, first_name: str, second_name: str) -> None:
    """Both must speak of the same number of sentence pairs."""
    if len(first) != len(second):
        raise LinksError(
            f"{first_name} has {len(first)} sentence pairs but {second_name} has {len(second)}: "
            "they are compared line by line. Was a line lost, or is one of them of another text?"
        )


def link_keys(*all_links: Links) -> tuple[list[Keys], int]:
    """A number for every link, equal exactly for equal (pair, source, target), and ordered as they are.

    Returns
    -------
    keys : list of int64[n_links], one array for each argument
    stride : int
        ``key // stride`` is the pair.
    """
    for links in all_links:
        if min(links.source.min(initial=0), links.target.min(initial=0)) < 0:
            raise LinksError("score: links have negative indices; they count from 0, and null is never a link")
    n_source = 1 + max(int(links.source.max(initial=0)) for links in all_links)
    n_target = 1 + max(int(links.target.max(initial=0)) for links in all_links)
    if max(len(links) for links in all_links) * n_source * n_target >= 1 << 63:
        raise LinksError(
            f"score: links reach source word {n_source - 1} and target word {n_target - 1}; no sentence is that long. "
            "Is this a file of links?"
        )
    keys = [(links.pair * n_source + links.source) * n_target + links.target for links in all_links]
    return keys, n_source * n_target


def contained(some: Keys, among: Keys) -> NDArray[np.bool_]:
    """For each of `some`, whether it is in `among`, which is sorted."""
    if len(among) == 0:
        return np.zeros(len(some), bool)
    at = np.searchsorted(among, some)
    at[at == len(among)] = 0
    found: NDArray[np.bool_] = among[at] == some
    return found


def sorted_once(keys: Keys) -> Keys:
    """Sorted, without repetition; at no cost where links already are in order, as they nearly always are.

    Not `numpy.unique`: its newer versions hash integers, which was many times slower than sorting for these keys.
    """
    if np.all(keys[1:] > keys[:-1]):
        return keys
    keys = np.sort(keys)
    once: Keys = keys[np.append(True, keys[1:] != keys[:-1])]
    return once


def gold_keys(gold: Links, keys: Keys) -> tuple[Keys, Keys]:
    """The keys of the sure links and those of all links of the gold, each sorted and once."""
    sure: Keys = keys if gold.possible is None else keys[~gold.possible]
    return sorted_once(sure), sorted_once(keys)


def counts_by_pair(predicted: Links, gold: Links) -> NDArray[np.int64]:
    """What a score needs to know of each pair; a link written twice counts once.

    Returns
    -------
    int64[n_pairs, 5]
        In the order of `COLUMNS`.
    """
    predicted, gold = as_links(predicted), as_links(gold)
    check_rows(predicted, gold, "the prediction", "the gold")
    (predicted_keys, all_gold), stride = link_keys(predicted, gold)
    links = sorted_once(predicted_keys)
    sure, allowed = gold_keys(gold, all_gold)
    groups = (links, links[contained(links, sure)], links[contained(links, allowed)], sure, allowed)
    by_pair: NDArray[np.int64] = np.stack([np.bincount(k // stride, minlength=len(gold)) for k in groups], axis=1)
    return by_pair


def _share(part: NDArray[Any], whole: NDArray[Any], of_nothing: float) -> NDArray[np.float64]:
    part, whole = np.asarray(part, float), np.asarray(whole, float)
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), of_nothing)


def rates(counts: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
    r"""Precision, recall, balanced F and alignment error rate of summed counts.

    .. math:: P = \frac{|A\cap P|}{|A|}, \quad R = \frac{|A\cap S|}{|S|}, \quad F = \frac{2PR}{P+R}, \quad
              AER = 1 - \frac{|A\cap S| + |A\cap P|}{|A| + |S|}

    Parameters
    ----------
    counts : array[..., 5]
        In the order of `COLUMNS`.

    Returns
    -------
    dict of float64[...]
        Precision of no links is 1, recall of no sure links is 1, and the error of nothing against nothing is 0.
    """
    links, sure_hits, hits, sure, _ = np.moveaxis(np.asarray(counts), -1, 0)
    precision, recall = _share(hits, links, 1.0), _share(sure_hits, sure, 1.0)
    return {
        "precision": precision,
        "recall": recall,
        "f1": _share(2 * precision * recall, precision + recall, 0.0),
        "aer": 1.0 - _share(sure_hits + hits, links + sure, 1.0),
    }
