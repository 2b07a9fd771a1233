"""Generated reviews of books and of things for the kitchen, to try adaptation on; the views are nobody's.

Some words of praise and blame are used of everything, others of books or of pans alone. So a classifier of books knows
half of what is said about pans, and the other half can be learnt from text without labels.
"""

from __future__ import annotations

import numpy as np

from isogloss.data.labelled import LabelledDocuments
from isogloss.errors import ParameterError

__all__ = ["DOMAINS", "review_files", "reviews"]

DOMAINS = ("books", "kitchen")
_POLAR = {
    "any": (
        ["excellent", "great", "wonderful", "I love it", "highly recommended", "perfect", "worth every cent", "a joy"],
        ["awful", "terrible", "disappointing", "a waste of money", "I regret it", "useless", "do not buy it", "poor"],
    ),
    "books": (
        ["the plot is gripping", "a page turner", "the characters are alive", "engaging prose", "I read it twice",
         "an insightful story", "the ending surprised me", "well researched chapters"],
        ["the plot is predictable", "the characters are flat", "dull prose", "I fell asleep over it",
         "a shallow story", "the ending is silly", "badly edited chapters", "I skipped many pages"],
    ),
    "kitchen": (
        ["the pan heats evenly", "sturdy and easy to clean", "the blades stay sharp", "a breeze to use",
         "the lid fits tightly", "it still works like new", "the espresso is rich", "solid steel"],
        ["the plastic cracked", "it leaks everywhere", "the motor burned out", "the handle broke off",
         "the coating peels", "I returned it", "the lid never fits", "a defective switch"],
    ),
}  # fmt: skip
_PLAIN = {
    "books": ["I got this novel last week", "the author lives abroad", "it has many pages", "my copy is a paperback",
              "the first chapter is about a journey", "I had read the other volume", "it is set in winter"],
    "kitchen": ["I bought this mixer last week", "it came in a box", "the handle is black", "my kitchen is small",
                "we cook every day", "I had another pan before", "it stands beside the oven"],
}  # fmt: skip
_BEGIN = ["I think", "to me", "honestly", "in short", "we found that", "", "", ""]


def reviews(domain: str = "books", n: int = 200, *, share: float = 0.5, seed: int = 0) -> LabelledDocuments:
    """Generated reviews with their labels, ``pos`` and ``neg``.

    Parameters
    ----------
    domain : "books" or "kitchen"
    n : int
        How many.
    share : float
        The share of those that are positive.
    seed : int

    Examples
    --------
    >>> found = reviews("kitchen", 2)
    >>> found.labels, " ".join(found[0].words[:8])
    (('pos', 'neg'), 'Great . To me I bought this mixer')
    """
    if domain not in DOMAINS:
        raise ParameterError(f"reviews: domain should be one of {', '.join(DOMAINS)}, not {domain!r}")
    rng = np.random.default_rng([seed, DOMAINS.index(domain)])
    positive = np.arange(n) < round(share * n)
    order = rng.permutation(n)
    rows = [("pos" if good else "neg", _review(domain, bool(good), rng)) for good in positive[order].tolist()]
    return LabelledDocuments.of(rows, f"reviews.{domain}.tsv")


def _review(domain: str, good: bool, rng: np.random.Generator) -> str:
    sentences = []
    for _ in range(int(rng.integers(3, 7))):
        kind = rng.random()
        if kind < 0.3:
            said = str(rng.choice(_PLAIN[domain]))
        else:
            known = _POLAR["any" if kind < 0.6 else domain]
            said = str(rng.choice(known[0 if good == (rng.random() < 0.95) else 1]))
        begin = str(rng.choice(_BEGIN))
        whole = f"{begin} {said}".strip()
        sentences.append(whole[0].upper() + whole[1:])
    return " ".join(f"{sentence}." for sentence in sentences)


def review_files() -> dict[str, bytes]:
    """200 reviews of each domain as tables of a label and a text, by their names."""
    texts = {}
    for made in map(reviews, DOMAINS):
        pairs = zip(made.labels, made.text.lines or (), strict=True)
        texts[made.name] = "".join(f"{label}\t{line}\n" for label, line in pairs).encode()
    return texts
