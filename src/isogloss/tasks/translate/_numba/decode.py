r"""Searching for the best translations of a sentence: hypotheses by the number of words that they have translated.

A *hypothesis* is a translation of some words of the source. It remembers which (`GAP`, the first word that is not
translated, and `MASK`, of which bit k stands for word GAP + k), where its last phrase ended and began, how that phrase
likes to be followed, and the state of the language model; of two that agree in all of it the better one goes on, and
the other is remembered for n-best lists.

Those that have translated m words are made of all that have translated fewer and lack one phrase: the best hypotheses
with the best phrases first, by an estimate in which the language model has not yet seen the words before the phrase
(cube pruning; with unlimited pops every one is made, and the search is exact). `beam` of them go on, by their score and
by what the rest of the sentence will cost at least.

References
----------
Koehn, Pharaoh: a Beam Search Decoder for Phrase-Based Statistical Machine Translation Models, AMTA 2004. Huang and
Chiang, Forest Rescoring, ACL 2007 (cube pruning). Liang et al., COLING-ACL 2006 (adjacent phrases that swap). Tillmann,
A Unigram Orientation Model for Statistical Machine Translation, HLT-NAACL 2004; Koehn et al., Edinburgh System
Description for the 2005 IWSLT Speech Translation Evaluation (orientations before and behind a phrase).
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import GOLDEN, mix
from isogloss.tasks.translate._numba.language_model import ROOT, next_word

__all__ = ["Found", "Options", "Search", "best_of", "orientation", "search"]

Options = namedtuple(
    "Options",
    [
        "spans",  # int64[n_spans, 4]: of all sentences: first word, end, first option, end of its options
        "span_starts",  # int64[n_sentences + 1]
        "lengths",  # int64[n_sentences]: words of each sentence
        "target_starts",  # int64[n_options]: where the words of each option begin
        "target_ends",  # int64[n_options]
        "target_words",  # int32[.]: numbers of the language model
        "copied",  # int32[n_options]: of a copied word that the target does not know its number in the source, or -1
        "scores",  # float64[n_options]: of all that is known of the option by itself
        "distortion",  # float64: what a word of distance between two phrases costs
        "jumps",  # float64[.]: what else a phrase scores that begins at j after one that ended at i: (n + 1) rows of n;
        # or empty
        "jump_starts",  # int64[n_sentences + 1]
        "swaps",  # float64[.]: of two phrases that swap, (first word, words of the first, of the second); or empty
        "swap_starts",  # int64[n_sentences + 1]
        "turns",  # int32[n_options]: a row of the two that follow; or empty, if orientations do not count
        "before",  # float64[n_rows, 3]: of a phrase that is monotone, swapped or neither with what is before it
        "follower",  # int64[n_rows]: a row of `behind`
        "behind",  # float64[n_followers, 3]: of what comes behind it; row 0, of nothing, is 0
    ],
)
"""What translations of some sentences are made of. Options of a span lie in any order."""

Search = namedtuple(
    "Search",
    [
        "beam",  # int64: hypotheses that go on, for each number of words
        "pops",  # int64: hypotheses that are made, for each number of words
        "options",  # int64: of each span
        "reach",  # int64: how far from the first word that is not translated a phrase may end
        "swapping",  # bool: no reordering but of two adjacent phrases
        "longest",  # int64: words of a phrase
        "language_weight",  # float64
    ],
)
"""How to search."""

Found = namedtuple(
    "Found",
    [
        "scores",  # float64[n]: the best first
        "starts",  # int64[n + 1]
        "options",  # int64[.]: options in the order of the translation
    ],
)
"""Translations of one sentence."""

MASK, GAP, END, BEGAN, STATE, BACK, OPTION, OTHER, BEHIND = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""Columns of a hypothesis: OPTION made it from BACK; OTHER is one that agrees with it and is not better. BEHIND is how
its last phrase scores what comes behind, a row of `Options.behind`."""
FIELDS = 9
NONE = -1
FULL = 1 << 62
"""More than there ever is."""


@njit(cache=True, nogil=True)
def _grown(array, n):
    """An array with room for one more than n."""
    if n < len(array):
        return array
    return np.concatenate((array, np.empty_like(array)))


@njit(cache=True, nogil=True)
def orientation(end, began, first, until):
    """Of a phrase from `first` to `until`, after one from `began` to `end`: 0 monotone, 1 swapped, 2 neither."""
    if first == end:
        return 0
    return 1 if until == began else 2


@njit(cache=True, nogil=True)
def _alone(options, first, last, grams, most, weight):
    """Options of a span, the best first by their scores and the language model that knows nothing of what is before.

    Returns
    -------
    order : int64[n]
    estimates : float64[n]
    """
    estimates = np.empty(last - first)
    for k in range(first, last):
        state, total = ROOT, 0.0
        for at in range(options.target_starts[k], options.target_ends[k]):
            gained, state = next_word(grams, state, options.target_words[at])
            total += gained
        estimates[k - first] = options.scores[k] + weight * total
    order = np.argsort(-estimates, kind="mergesort")[:most]
    return first + order, estimates[order]


@njit(cache=True, nogil=True)
def _prepared(options, s, grams, settings):
    """The options of a sentence that are looked at: which, their estimates, and where those of each span are.

    Returns
    -------
    chosen : int64[3, n]
        For each orientation, the best first.
    estimates : float64[3, n]
    best : float64[n_words * longest]
        The best estimate of each span, orientations left aside.
    cells : int64[n_words * longest, 2]
        First option and one after the last of the span from word i with k + 1 words, at row i · longest + k.
    """
    n_words, longest = options.lengths[s], settings.longest
    first_span, last_span = options.span_starts[s], options.span_starts[s + 1]
    room = 0
    for span in range(first_span, last_span):
        room += min(settings.options, options.spans[span, 3] - options.spans[span, 2])
    chosen, estimates = np.empty((3, room), np.int64), np.empty((3, room))
    cells, n = np.zeros((n_words * longest, 2), np.int64), 0
    best = np.full(n_words * longest, -np.inf)
    for span in range(first_span, last_span):
        first, last = options.spans[span, 2], options.spans[span, 3]
        if first == last:
            continue
        order, values = _alone(options, first, last, grams, settings.options, settings.language_weight)
        row = options.spans[span, 0] * longest + options.spans[span, 1] - options.spans[span, 0] - 1
        cells[row, 0], cells[row, 1] = n, n + len(order)
        best[row] = values[0]
        for o in range(3):
            if len(options.turns):
                turned = values.copy()
                for k in range(len(order)):
                    turned[k] += options.before[options.turns[order[k]], o]
                places = np.argsort(-turned, kind="mergesort")
                chosen[o, n : n + len(order)] = order[places]
                estimates[o, n : n + len(order)] = turned[places]
            else:
                chosen[o, n : n + len(order)] = order
                estimates[o, n : n + len(order)] = values
        n += len(order)
    return chosen, estimates, best, cells


@njit(cache=True, nogil=True)
def _futures(n_words, longest, estimates):
    """The best that words i … j - 1 can come to, jumps left aside: float64[n_words + 1, n_words + 1]."""
    best = np.full((n_words + 1, n_words + 1), -np.inf)
    for i in range(n_words, -1, -1):
        best[i, i] = 0.0
        for length in range(1, min(longest, n_words - i) + 1):  # the first phrase, and the best of what is behind it
            first = estimates[i * longest + length - 1]
            if first == -np.inf:
                continue
            for j in range(i + length, n_words + 1):
                best[i, j] = max(best[i, j], first + best[i + length, j])
    return best


@njit(cache=True, nogil=True)
def _rest(futures, n_words, gap, mask):
    """The best that all words which are not translated can come to."""
    total, i = 0.0, gap
    while i < n_words:
        if i - gap < 64 and (mask >> np.uint64(i - gap)) & np.uint64(1):
            i += 1
            continue
        if i - gap >= 64 or (mask >> np.uint64(i - gap)) == np.uint64(0):
            return total + futures[i, n_words]
        j = i + 1
        while not ((mask >> np.uint64(j - gap)) & np.uint64(1)):
            j += 1
        total += futures[i, j]
        i = j
    return total


@njit(cache=True, nogil=True)
def _covered(gap, mask, first, end):
    """GAP and MASK once words first … end - 1 are translated as well; (-1, 0) where one of them was before."""
    length = np.uint64(end - first)
    ones = (np.uint64(1) << length) - np.uint64(1)
    if first - gap >= 64:
        return -1, mask
    ones <<= np.uint64(first - gap)
    if ones & mask:
        return -1, mask
    mask |= ones
    while mask & np.uint64(1):
        mask >>= np.uint64(1)
        gap += 1
    return gap, mask


@njit(cache=True, nogil=True)
def _may_follow(settings, cells, gap, mask, first, end):
    """Whether a phrase may come next, if its words are free."""
    if settings.swapping:
        if mask != np.uint64(0):  # the phrase that was passed over, as a whole
            passed = 0
            while not ((mask >> np.uint64(passed)) & np.uint64(1)):
                passed += 1
            return first == gap and end == gap + passed
        if first == gap:
            return True
        row = gap * settings.longest + first - gap - 1
        return first - gap <= settings.longest and cells[row, 0] < cells[row, 1]
    return first == gap or end - gap <= settings.reach


@njit(cache=True, nogil=True)
def _moved(options, s, settings, hypotheses, h, first, end):
    """The score of going from a hypothesis to a phrase."""
    score, gap = -options.distortion * abs(first - hypotheses[h, END]), hypotheses[h, GAP]
    if len(options.jumps):
        score += options.jumps[options.jump_starts[s] + hypotheses[h, END] * options.lengths[s] + first]
    if settings.swapping and len(options.swaps) and first > gap:
        cell = (gap * settings.longest + first - gap - 1) * settings.longest + end - first - 1
        score += options.swaps[options.swap_starts[s] + cell]
    return score


@njit(cache=True, nogil=True)
def _said(options, option, grams, state):
    """log p of the words of an option after a state, and the state after them."""
    total = 0.0
    for at in range(options.target_starts[option], options.target_ends[option]):
        gained, state = next_word(grams, state, options.target_words[at])
        total += gained
    return total, state


@njit(cache=True, nogil=True)
def _fits(options, option, place, reference):
    """Whether the words of an option are the next ones of the reference; where they end there, or -1."""
    first, last = options.target_starts[option], options.target_ends[option]
    if place + last - first > len(reference):
        return -1
    for at in range(first, last):
        word = options.target_words[at] if options.copied[option] < 0 else -2 - options.copied[option]
        if word != reference[place + at - first]:
            return -1
    return place + last - first


# --- a heap of what may be made next: the best first, of equals that which was thought of first


@njit(cache=True, nogil=True)
def _before(keys, heap, i, j):
    a, b = heap[i], heap[j]
    return keys[a] > keys[b] or (keys[a] == keys[b] and a < b)


@njit(cache=True, nogil=True)
def _down(keys, heap, n, i):
    while True:
        best = i
        for child in (2 * i + 1, 2 * i + 2):
            if child < n and _before(keys, heap, child, best):
                best = child
        if best == i:
            return
        heap[i], heap[best] = heap[best], heap[i]
        i = best


@njit(cache=True, nogil=True)
def _up(keys, heap, i):
    while i > 0:
        above = (i - 1) >> 1
        if not _before(keys, heap, i, above):
            return
        heap[i], heap[above] = heap[above], heap[i]
        i = above


# --- a stack: hypotheses that have translated as many words


@njit(cache=True, nogil=True)
def _slot(slots, hypotheses, mask, end, began, state, behind):
    """Where a hypothesis like this is, or would be."""
    h = mix(np.uint64(mask) + GOLDEN)
    h = mix(h ^ np.uint64(end) ^ (np.uint64(began) << np.uint64(16)) ^ (np.uint64(state) << np.uint64(32)))
    h = mix(h ^ np.uint64(behind))
    last = np.uint64(len(slots) - 1)
    at = h & last
    while slots[at] != NONE:
        other = hypotheses[slots[at]]
        if (
            other[MASK] == mask
            and other[END] == end
            and other[BEGAN] == began
            and other[STATE] == state
            and other[BEHIND] == behind
        ):
            return at
        at = (at + np.uint64(1)) & last
    return at


@njit(cache=True, nogil=True)
def _wider(slots, hypotheses):
    """A table with twice as many slots."""
    wider = np.full(2 * len(slots), NONE, np.int64)
    for at in range(len(slots)):
        if slots[at] != NONE:
            h = hypotheses[slots[at]]
            wider[_slot(wider, hypotheses, h[MASK], h[END], h[BEGAN], h[STATE], h[BEHIND])] = slots[at]
    return wider


@njit(cache=True, nogil=True)
def _pruned(slots, hypotheses, values, beam):
    """The best hypotheses of a stack, those that agree in all but the language model beside each other, the best first.

    Parameters
    ----------
    values : float64[n, 2]
        Score, and score with what is to come, of each hypothesis.
    """
    n = 0
    for at in range(len(slots)):
        n += slots[at] != NONE
    members, k = np.empty(n, np.int64), 0
    for at in range(len(slots)):
        if slots[at] != NONE:
            members[k] = slots[at]
            k += 1
    members.sort()  # in the order in which they were made, whatever the table
    ranks = np.argsort(-values[members, 1], kind="mergesort")[:beam]
    members = members[ranks]  # the best first; stable sorts keep that among equals
    for column in (BEGAN, END, MASK):
        members = members[np.argsort(hypotheses[members, column], kind="mergesort")]
    return members


@njit(cache=True, nogil=True)
def _turned(stack, hypotheses, values, behind):
    """A stack in the order in which its hypotheses like a phrase behind them, for each orientation of that.

    Returns
    -------
    members : int64[3, n]
        Hypotheses; those that agree in all but the language model stay beside each other, the best first.
    scores : float64[3, n]
    """
    members, scores = np.empty((3, len(stack)), np.int64), np.empty((3, len(stack)))
    for o in range(3):
        members[o] = stack
        for k in range(len(stack)):
            scores[o, k] = values[stack[k], 0] + behind[hypotheses[stack[k], BEHIND], o]
    if len(behind) == 1:
        return members, scores
    for o in range(3):
        i = 0
        while i < len(stack):
            h, j = stack[i], i + 1
            while j < len(stack) and _alike(hypotheses, h, stack[j]):
                j += 1
            order = np.argsort(-scores[o, i:j], kind="mergesort")
            members[o, i:j] = stack[i:j][order]
            scores[o, i:j] = scores[o, i:j][order]
            i = j
    return members, scores


@njit(cache=True, nogil=True)
def _alike(hypotheses, h, other):
    """Whether two hypotheses may go on in the same ways."""
    return (
        hypotheses[other, MASK] == hypotheses[h, MASK]
        and hypotheses[other, END] == hypotheses[h, END]
        and hypotheses[other, BEGAN] == hypotheses[h, BEGAN]
    )


@njit(cache=True, nogil=True)
def _edges(stack, hypotheses, n_words, settings, cells, length, edges, n):
    """Ways to go on from a stack by a phrase of so many words: hypotheses (first, end), first word, words, orientation
    of the phrase."""
    i = 0
    while i < len(stack):
        h = stack[i]
        j = i + 1
        while j < len(stack) and _alike(hypotheses, h, stack[j]):
            j += 1
        gap, mask = hypotheses[h, GAP], np.uint64(hypotheses[h, MASK])
        furthest = max(gap, gap + settings.reach - length)
        if settings.swapping:
            furthest = gap + settings.longest
        for first in range(gap, min(n_words - length, furthest) + 1):
            row = first * settings.longest + length - 1
            if cells[row, 0] == cells[row, 1] or not _may_follow(settings, cells, gap, mask, first, first + length):
                continue
            if _covered(gap, mask, first, first + length)[0] >= 0:
                edges = _grown(edges, n)
                edges[n, 0], edges[n, 1], edges[n, 2], edges[n, 3] = i, j, first, length
                edges[n, 4] = orientation(hypotheses[h, END], hypotheses[h, BEGAN], first, first + length)
                n += 1
        i = j
    return edges, n


@njit(cache=True, nogil=True)
def search(options, s, grams, begin, end, settings, forced, reference):
    """All hypotheses of a sentence that were made, and those that have translated all of it.

    Parameters
    ----------
    begin, end : int
        Words of the language model for the beginning and the end of a sentence.
    forced : bool
        Only translations whose words are those of `reference`. The place in it is the state then.
    reference : int32[.]
        Negative for words that the language model does not know, which only a copied word may be.

    Returns
    -------
    hypotheses : int64[n, FIELDS]
    values : float64[n, 2]
        Score; score with what the rest comes to at best. Those of whole translations have the end of the sentence.
    complete : int64[.]
        Hypotheses that have translated all words.
    """
    n_words, longest, weight = options.lengths[s], settings.longest, settings.language_weight
    chosen, estimates, alone_best, cells = _prepared(options, s, grams, settings)
    futures, turning = _futures(n_words, longest, alone_best), len(options.turns) > 0
    said, place = np.zeros(len(reference) + 1), np.int64(grams.follows[1 + begin])
    if forced:
        for k in range(len(reference)):
            gained, place = next_word(grams, place, reference[k] if reference[k] >= 0 else begin - 1)
            said[k + 1] = said[k] + gained
    last_state = place
    hypotheses, values = np.empty((256, FIELDS), np.int64), np.empty((256, 2))
    hypotheses[0] = 0
    hypotheses[0, STATE] = 0 if forced else np.int64(grams.follows[1 + begin])
    hypotheses[0, BACK] = hypotheses[0, OPTION] = hypotheses[0, OTHER] = NONE
    values[0, 0], values[0, 1] = 0.0, futures[0, n_words]
    made = 1
    stacks, heads = [np.zeros((3, 1), np.int64)], [np.zeros((3, 1))]
    if n_words == 0:
        values[0, 0] = weight * next_word(grams, last_state if forced else np.int64(grams.follows[1 + begin]), end)[0]
        if forced and len(reference):
            stacks[0] = np.zeros((3, 0), np.int64)
    edges = np.empty((256, 5), np.int64)
    for m in range(1, n_words + 1):
        n_edges = 0
        for length in range(1, min(longest, m) + 1):
            stack = stacks[m - length][0]
            edges, n_edges = _edges(stack, hypotheses, n_words, settings, cells, length, edges, n_edges)
        # Candidates: the edge, a hypothesis and an option of it, what is known of the rest and of the words before.
        keys, true = np.empty(2 * n_edges + 16), np.empty(2 * n_edges + 16)
        states = np.empty(2 * n_edges + 16, np.int64)
        items = np.empty((2 * n_edges + 16, 3), np.int64)
        heap = np.empty(2 * n_edges + 16, np.int64)
        constants, after, n_all, n_edges = np.empty(n_edges), np.empty((n_edges, 2), np.int64), n_edges, 0
        for edge in range(n_all):
            o, before = edges[edge, 4], m - edges[edge, 3]
            h, first = stacks[before][o, edges[edge, 0]], edges[edge, 2]
            gap, mask = _covered(hypotheses[h, GAP], np.uint64(hypotheses[h, MASK]), first, first + edges[edge, 3])
            rest = _rest(futures, n_words, gap, mask)
            if rest == -np.inf:  # of what is left, no option may be taken: this leads nowhere
                continue
            e = n_edges
            n_edges += 1
            edges[e] = edges[edge]
            after[e, 0], after[e, 1] = gap, np.int64(mask)
            constants[e] = _moved(options, s, settings, hypotheses, h, first, first + edges[e, 3]) + rest
            row = first * longest + edges[e, 3] - 1
            keys[e] = heads[before][o, edges[e, 0]] + constants[e] + estimates[o, cells[row, 0]]
            true[e] = np.nan
            items[e, 0], items[e, 1], items[e, 2] = e, edges[e, 0], 0
            heap[e] = e
        n_items = n_heap = n_edges
        for i in range(n_heap // 2 - 1, -1, -1):
            _down(keys, heap, n_heap, i)
        slots, used, popped = np.full(64, NONE, np.int64), 0, 0
        while n_heap and popped < settings.pops:
            item = heap[0]
            e, i, j = items[item, 0], items[item, 1], items[item, 2]
            first, length, o = edges[e, 2], edges[e, 3], edges[e, 4]
            row = first * longest + length - 1
            h, option = stacks[m - length][o, i], chosen[o, cells[row, 0] + j]
            estimate = heads[m - length][o, i] + constants[e] + estimates[o, cells[row, 0] + j]
            alone = estimates[o, cells[row, 0] + j] - options.scores[option]
            if turning:
                alone -= options.before[options.turns[option], o]
            if np.isnan(true[item]):
                if forced:
                    state = np.int64(_fits(options, option, hypotheses[h, STATE], reference))
                    total = said[state] - said[hypotheses[h, STATE]] if state >= 0 else 0.0
                else:
                    total, state = _said(options, option, grams, hypotheses[h, STATE])
                states[item] = state
                true[item] = estimate - alone + weight * total
                keys[item] = true[item]
                _down(keys, heap, n_heap, 0)
                if heap[0] != item:
                    continue
            n_heap -= 1
            heap[0] = heap[n_heap]
            _down(keys, heap, n_heap, 0)
            # Its neighbours: the next option, and for the best option the next hypothesis.
            difference = true[item] - estimate
            for turn in range(2):
                ii, jj = (i, j + 1) if turn == 0 else (i + 1, 0)
                if (turn == 0 and cells[row, 0] + jj >= cells[row, 1]) or (turn == 1 and (j > 0 or ii >= edges[e, 1])):
                    continue
                if n_items == len(keys):
                    keys, true, states = _grown(keys, n_items), _grown(true, n_items), _grown(states, n_items)
                    items, heap = _grown(items, n_items), _grown(heap, n_items)
                guess = heads[m - length][o, ii] + constants[e] + estimates[o, cells[row, 0] + jj]
                keys[n_items] = guess + difference
                true[n_items] = np.nan
                items[n_items, 0], items[n_items, 1], items[n_items, 2] = e, ii, jj
                heap[n_heap] = n_items
                _up(keys, heap, n_heap)
                n_items += 1
                n_heap += 1
            state = states[item]
            if forced and (state < 0 or (m == n_words and state != len(reference))):
                continue
            popped += 1
            rest = _rest(futures, n_words, after[e, 0], np.uint64(after[e, 1]))
            if made == len(hypotheses):
                hypotheses, values = _grown(hypotheses, made), _grown(values, made)
            began, behind = np.int64(0), np.int64(0)
            if turning:
                began, behind = first, options.follower[options.turns[option]]
            hypotheses[made, BEHIND] = behind
            hypotheses[made, MASK], hypotheses[made, GAP] = after[e, 1], after[e, 0]
            hypotheses[made, END], hypotheses[made, BEGAN], hypotheses[made, STATE] = first + length, began, state
            hypotheses[made, BACK], hypotheses[made, OPTION], hypotheses[made, OTHER] = h, option, NONE
            values[made, 1], values[made, 0] = true[item], true[item] - rest
            if m == n_words:
                finished = next_word(grams, last_state if forced else state, end)[0]
                values[made, 0] += weight * finished
                values[made, 1] = values[made, 0]
            if 2 * (used + 1) > len(slots):
                slots = _wider(slots, hypotheses)
            at = _slot(slots, hypotheses, after[e, 1], first + length, began, state, behind)
            known = slots[at]
            if known == NONE:
                slots[at] = made
                used += 1
            elif values[made, 0] > values[known, 0]:
                hypotheses[made, OTHER] = known
                slots[at] = made
            else:
                hypotheses[made, OTHER] = hypotheses[known, OTHER]
                hypotheses[known, OTHER] = made
            made += 1
        kept = _pruned(slots, hypotheses, values, settings.beam if m < n_words else FULL)
        members, scores = _turned(kept, hypotheses, values, options.behind)
        stacks.append(members)
        heads.append(scores)
    return hypotheses[:made], values[:made], stacks[n_words][0].copy()


@njit(cache=True, nogil=True)
def _with_words(options, option, key):
    """A number for the words of an option and those behind it, of which `key` is the number."""
    if options.copied[option] >= 0:
        return mix(key ^ mix(np.uint64(options.copied[option]) ^ GOLDEN))
    for at in range(options.target_ends[option] - 1, options.target_starts[option] - 1, -1):
        key = mix(key ^ (np.uint64(options.target_words[at]) + GOLDEN))
    return key


@njit(cache=True, nogil=True)
def _added(seen, n, key):
    """Put a number that is not 0 into a set, with open addressing: the set, and whether the number is new."""
    if 2 * (n + 1) > len(seen):
        old = seen
        seen = np.zeros(2 * len(old), np.uint64)
        for other in old:
            at = other & np.uint64(len(seen) - 1)
            while other and seen[at]:
                at = (at + np.uint64(1)) & np.uint64(len(seen) - 1)
            if other:
                seen[at] = other
    at = key & np.uint64(len(seen) - 1)
    while seen[at]:
        if seen[at] == key:
            return seen, False
        at = (at + np.uint64(1)) & np.uint64(len(seen) - 1)
    seen[at] = key
    return seen, True


@njit(cache=True, nogil=True)
def best_of(options, hypotheses, values, complete, many, distinct):
    """The best translations, the best first; of those with the same words only the best, if they should be distinct.

    A translation is found from its end: the score of a hypothesis is the best of all that lead to it, so that what is
    taken from a heap first is best. Of two ways from a hypothesis to the end with the same words, the second can only
    lead to translations that the first leads to as well, and is left.
    """
    keys, items = np.empty(256), np.empty((256, 2), np.int64)  # hypothesis, and what comes after it
    after, heap, tails = np.empty(256), np.empty(256, np.int64), np.empty(256, np.uint64)
    n_items = n_heap = 0
    for c in range(len(complete)):
        h = complete[c]
        while h != NONE:
            keys, items, tails = _grown(keys, n_items), _grown(items, n_items), _grown(tails, n_items)
            after, heap = _grown(after, n_items), _grown(heap, n_items)
            keys[n_items], after[n_items], tails[n_items] = values[h, 0], 0.0, np.uint64(0)
            items[n_items, 0], items[n_items, 1] = h, NONE
            heap[n_heap] = n_items
            _up(keys, heap, n_heap)
            n_items += 1
            n_heap += 1
            h = hypotheses[h, OTHER]
    scores, starts = np.empty(16), np.zeros(17, np.int64)
    chosen, n_chosen, n_found = np.empty(256, np.int64), 0, 0
    seen, n_seen = np.zeros(256, np.uint64), 0
    while n_heap and n_found < many:
        item = heap[0]
        n_heap -= 1
        heap[0] = heap[n_heap]
        _down(keys, heap, n_heap, 0)
        h = items[item, 0]
        before, tail = hypotheses[h, BACK], tails[item]
        if distinct:
            if hypotheses[h, OPTION] != NONE:
                tail = _with_words(options, hypotheses[h, OPTION], tail)
            seen, new = _added(seen, n_seen, mix(tail ^ mix(np.uint64(before + 1) + GOLDEN)) | np.uint64(1))
            if not new:
                continue
            n_seen += 1
        if before != NONE and hypotheses[before, BACK] != NONE:
            gained = after[item] + values[h, 0] - values[before, 0]
            while before != NONE:
                keys, items, tails = _grown(keys, n_items), _grown(items, n_items), _grown(tails, n_items)
                after, heap = _grown(after, n_items), _grown(heap, n_items)
                keys[n_items], after[n_items], tails[n_items] = values[before, 0] + gained, gained, tail
                items[n_items, 0], items[n_items, 1] = before, item
                heap[n_heap] = n_items
                _up(keys, heap, n_heap)
                n_items += 1
                n_heap += 1
                before = hypotheses[before, OTHER]
            continue
        at = item
        while at != NONE:  # from the first phrase to the last
            if hypotheses[items[at, 0], OPTION] != NONE:
                chosen = _grown(chosen, n_chosen)
                chosen[n_chosen] = hypotheses[items[at, 0], OPTION]
                n_chosen += 1
            at = items[at, 1]
        scores, starts = _grown(scores, n_found), _grown(starts, n_found + 1)
        scores[n_found] = keys[item]
        n_found += 1
        starts[n_found] = n_chosen
    return scores[:n_found].copy(), starts[: n_found + 1].copy(), chosen[:n_chosen].copy()
