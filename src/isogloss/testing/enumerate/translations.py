"""All derivations of phrase-based translations, and Kneser-Ney probabilities by the book."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Derivation", "kneser_ney", "sentence_bleu", "translations"]

Span = tuple[int, int]
Words = tuple[Any, ...]


class Derivation(NamedTuple):
    """A translation with how it was made."""

    score: float
    words: Words
    steps: tuple[tuple[Span, Any], ...]
    """Spans in the order of the translation, each with the name of what it was translated by."""


def translations(
    n: int,
    options: Mapping[Span, Sequence[tuple[Any, float, Words]]],
    jump: Callable[[int, int], float],
    fluency: Callable[[Words], float],
    *,
    limit: int | None = None,
    swapping: bool = False,
    swap: Callable[[int, int, int], float] | None = None,
    turn: Callable[[tuple[Span, Any] | None, tuple[Span, Any]], float] | None = None,
) -> list[Derivation]:
    """Every way to translate n words, the best first.

    Parameters
    ----------
    options : mapping
        For each span (first word, end) what it may become: a name, a score and words.
    jump : callable
        The score of beginning a phrase at the second place, after one that ended at the first.
    fluency : callable
        The score of all words as a sentence.
    limit : int, optional
        A phrase that does not begin with the first free word ends at most so many words behind it.
    swapping : bool
        Instead of the limit: a phrase may pass over words that are the next phrase, and no others.
    swap : callable, optional
        With `swapping`, the score of two phrases (first word, where they meet, end) that are swapped.
    turn : callable, optional
        The score of a step after another one, or after none; a step is a span and a name.
    """

    def grow(done: frozenset[int], last: int, steps: tuple[Any, ...], score: float) -> Iterator[Derivation]:
        free = [i for i in range(n) if i not in done]
        if not free:
            words = tuple(word for _, _, own in steps for word in own)
            yield Derivation(score + fluency(words), words, tuple((span, name) for span, name, _ in steps))
            return
        for span in sorted(options):
            first, end = span
            if not options[span] or done & set(range(first, end)):
                continue
            more = 0.0
            if swapping:
                passed = [i for i in range(free[0], n) if i not in done and any(j in done for j in range(i + 1, n))]
                if passed:
                    if span != (passed[0], passed[-1] + 1):
                        continue
                elif first > free[0]:
                    if not options.get((free[0], first)):
                        continue
                    more = swap(free[0], first, end) if swap is not None else 0.0
            elif first > free[0] and limit is not None and end - free[0] > limit:
                continue
            for name, own, words in options[span]:
                total = score + own + jump(last, first) + more
                if turn is not None:
                    total += turn(steps[-1][:2] if steps else None, (span, name))
                yield from grow(done | set(range(first, end)), end, (*steps, (span, name, words)), total)

    return sorted(grow(frozenset(), 0, (), 0.0), key=lambda d: -d.score)


def kneser_ney(sentences: Sequence[Sequence[Any]], order: int, fallback: Sequence[float]) -> Callable[..., float]:
    """log p(word | the words before it, back to "<s>") by interpolated modified Kneser-Ney, from its definition.

    "</s>" ends sentences; whatever never occurs is "<unk>".
    """
    raw: Counter[Words] = Counter()
    for sentence in sentences:
        padded = ("<s>", *sentence, "</s>")
        for k in range(1, order + 1):
            raw.update(padded[i : i + k] for i in range(len(padded) - k + 1))
    before: dict[Words, set[Any]] = defaultdict(set)
    for gram in raw:
        before[gram[1:]].add(gram[0])
    adjusted = {
        gram: count if len(gram) == order or gram[0] == "<s>" else len(before[gram])
        for gram, count in raw.items()
        if gram != ("<s>",)
    }
    discounts = {}
    for k in range(1, order + 1):
        n = Counter(min(a, 5) for gram, a in adjusted.items() if len(gram) == k)
        found = None
        if n[1] and n[2] and n[3]:
            y = n[1] / (n[1] + 2 * n[2])
            found = [c - (c + 1) * y * n[c + 1] / n[c] for c in (1, 2, 3)]
        if found is None or not all(0 < d <= c for c, d in enumerate(found, 1)):
            found = list(fallback)
        discounts[k] = [0.0, *found]
    types = {gram[0] for gram in adjusted if len(gram) == 1} | {"<unk>"}

    def probability(word: Any, history: Words) -> float:
        after = {gram[-1]: a for gram, a in adjusted.items() if gram[:-1] == history}
        if not after:
            return probability(word, history[1:]) if history else 1 / len(types)
        total, d = sum(after.values()), discounts[len(history) + 1]
        left = sum(d[min(a, 3)] for a in after.values()) / total
        a = after.get(word, 0)
        below = probability(word, history[1:]) if history else 1 / len(types)
        return (a - d[min(a, 3)]) / total + left * below

    def log_probability(word: Any, history: Sequence[Any]) -> float:
        known = word if word in types else "<unk>"
        return math.log(probability(known, tuple(history)[max(0, len(history) - order + 1) :]))

    return log_probability


def sentence_bleu(words: Sequence[Any], reference: Sequence[Any]) -> float:
    """Σ BLEU_m / 2^(5 − m) over m = 1 … 4, BLEU_m being that of n-grams up to m."""
    if not words:
        return 0.0
    brevity = min(1.0, math.exp(1 - len(reference) / len(words)))
    total, product = 0.0, 1.0
    for m in range(1, 5):
        ours = Counter(tuple(words[i : i + m]) for i in range(len(words) - m + 1))
        theirs = Counter(tuple(reference[i : i + m]) for i in range(len(reference) - m + 1))
        right = sum(min(count, theirs[gram]) for gram, count in ours.items())
        product *= right / sum(ours.values()) if ours else 0.0
        total += brevity * product ** (1 / m) / 2 ** (5 - m)
    return total
