"""Options of translators: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from typing import ClassVar

from isogloss.estimator import THREADS, Estimator, option

__all__ = ["REORDERING", "TranslatorOptions"]

REORDERING = ("distance", "swap", "monotone")
"""How phrases may change places."""


class TranslatorOptions(Estimator):
    """Options of `Translator`."""

    _title: ClassVar[str] = "Translator"

    order: int = option(default=4, least=1, most=16, help="Words of the longest n-grams of the language model.")
    max_length: int = option(default=5, least=1, most=7, help="The most words of a phrase, on either side.")
    least_count: int = option(default=1, least=1, help="Phrase pairs that occur less often are left out.")
    candidates: int = option(
        default=100, least=1, help="Translations of a source phrase that are kept, those that occur most often."
    )
    reordering: str = option(
        default="distance", choices=REORDERING,
        help="How phrases may change places: within a limit (distance), only two that are neighbours (swap), or not "
        "at all (monotone).",
    )  # fmt: skip
    distortion_limit: int = option(
        default=6, least=1, most=50, needs={"reordering": ("distance",)},
        help="How far from the first word that is not translated yet a phrase may end.",
    )  # fmt: skip
    orientation: bool = option(
        default=True, help="Learn for each phrase pair how it likes to be placed beside its neighbours (lexicalised "
        "reordering)."
    )  # fmt: skip
    beam: int = option(
        default=100, least=1, help="Partial translations that go on, for each number of words translated."
    )
    pops: int = option(
        default=200, least=1, help="Partial translations that are made, for each number of words translated."
    )
    table_limit: int = option(default=20, least=1, help="Translations of a source phrase that are looked at.")
    iterations: int = option(default=10, least=0, most=1000, help="Rounds of tuning on dev; 0 keeps the first weights.")
    nbest: int = option(default=100, least=2, most=10_000, help="Translations of a sentence that tuning learns from.")
    cap: float = option(default=0.003, above=0, help="The most that one sentence may change the weights by.")
    passes: int = option(default=20, least=1, most=1000, help="Passes of tuning over all translations found so far.")
    seed: int = option(default=0, least=0, help="Seed of the order of sentences in tuning.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)
