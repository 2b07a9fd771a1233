"""Belief propagation over the links of many sentences on a GPU, as `_numba.loopy`: all sentences of a batch at once.

The messages and their order are those of the kernel for the processor; so are the rounds, since a sentence whose
messages have come to rest is left alone. Links lie in dense arrays [sentence, head, child], pairs of links
(grandparents) in [sentence, head, grandparent, child], and the children of a head on one side by their distance from
it, in runs [sentence, 2 * head + side, distance]; where there is no candidate, a link has the probability 0, which is
as if it were not there. Sentences are sorted by length into buckets, whose arrays are padded.

There are the constraints of trees and the families of grandparents, siblings and valences; the caller turns to the
processor for others, and for sentences whose sums do not fit (NaN).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from isogloss.structures._gpu.eisner import MOST_NODES, marginal_trees
from isogloss.structures._gpu.spanning import spanning_trees

__all__ = ["FAMILIES", "Layout", "believe"]

FAMILIES = ("grand", "siblings", "valence")
_APART, _MOST, _TINY, _LEAST = 200.0, 60.0, 1e-30, 1e-300  # as in `_numba.loopy` and `_numba.loopy_heads`
_STEP = 4  # nodes by which buckets grow


class Layout(NamedTuple):
    """Where the parts of all sentences lie, on the device: for each kind its sentence, its nodes, and its place."""

    lengths: Any  # int64[n_sentences]
    link: tuple[Any, ...]  # sentence, head, child, place
    grand: tuple[Any, ...] | None  # sentence, head, grandparent, child, place
    pairs: tuple[Any, ...] | None  # sentence, run, later distance (0: none), earlier distance, place
    valence: tuple[Any, ...] | None  # sentence, run, bin, place
    n_parts: int
    bins: int

    @classmethod
    def of(cls, parts: Any, put: Any) -> Layout:
        """The layout of `TreeParts`; `put` moves an array to the device."""
        lengths, link_offsets, pair_offsets, run_offsets = map(put, parts.layout[:4])
        head, child, upper, lower, run_starts, run_links = (put(x).long() for x in parts.layout[4:10])
        begins, bins = put(parts.begins), parts.layout[11]
        owner = _owners(link_offsets)
        number = torch.arange(len(head), device=head.device)
        link = (owner, head, child, number - link_offsets[owner] + begins[owner, 0])
        grand = siblings = valence = None
        if "grand" in parts.families:
            s = _owners(pair_offsets)
            above, below = upper + link_offsets[s], lower + link_offsets[s]
            place = torch.arange(len(upper), device=head.device) - pair_offsets[s] + begins[s, 1]
            grand = (s, head[below], head[above], child[below], place)
        runs = 2 * lengths + 2
        run_owner = torch.repeat_interleave(torch.arange(len(lengths), device=head.device), runs)
        run_number = torch.arange(len(run_owner), device=head.device) - _before(runs)[run_owner]
        if "siblings" in parts.families:
            at = run_offsets[run_owner] + run_number
            first, size = run_starts[at], run_starts[at + 1] - run_starts[at]
            counts = torch.where(size > 0, (size + 1) * (size + 2) // 2, 0)
            run = torch.repeat_interleave(torch.arange(len(counts), device=head.device), counts)
            k = torch.arange(len(run), device=head.device) - _before(counts)[run]
            later = ((1.0 + torch.sqrt(8.0 * k.double() + 1.0)) / 2.0).long()
            later -= (later * (later - 1) // 2 > k).long()
            earlier = k - later * (later - 1) // 2
            s = run_owner[run]
            distance = (child - head).abs()[run_links + link_offsets[owner]]
            base = link_offsets[s] + first[run] - 1
            far = torch.where(later <= size[run], distance[(base + later).clamp(max=len(head) - 1)], 0)
            near = torch.where(earlier > 0, distance[(base + earlier).clamp(min=0)], 0)
            before = _before(torch.zeros_like(lengths).index_add_(0, run_owner, counts))
            place = begins[s, 2] + torch.arange(len(run), device=head.device) - before[s]
            siblings = (s, run_number[run], far, near, place)
        if "valence" in parts.families:
            s = torch.repeat_interleave(run_owner, bins)
            inside = run_number.repeat_interleave(bins)
            v = torch.arange(len(s), device=head.device) % bins
            valence = (s, inside, v, begins[s, 3] + inside * bins + v)
        return cls(lengths, link, grand, siblings, valence, parts.n_parts, bins)


def _before(counts: Any) -> Any:
    return torch.cumsum(counts, 0) - counts


def _owners(offsets: Any) -> Any:
    """The sentence of each element."""
    return torch.repeat_interleave(torch.arange(len(offsets) - 1, device=offsets.device), torch.diff(offsets))


def believe(
    layout: Layout, scores: Any, projective: bool, single: bool, iterations: int, tolerance: float
) -> tuple[Any, Any, Any, Any]:
    """Bethe's log Z, beliefs of all parts, rounds, and what the tree hears of each link; all on the device.

    log Z is NaN where the processor has to do it: a sentence without words, one that is too long, sums that do not fit,
    or no tree at all.
    """
    device, sizes = scores.device, layout.lengths + 1
    values = torch.full((len(sizes),), math.nan, dtype=torch.float64, device=device)
    beliefs = torch.zeros(layout.n_parts, dtype=torch.float64, device=device)
    rounds = torch.zeros(len(sizes), dtype=torch.int64, device=device)
    heard = torch.zeros(len(layout.link[0]), dtype=torch.float64, device=device)
    low = 1
    while low < min(MOST_NODES, int(sizes.max()) if len(sizes) else 0):
        high = low + _STEP
        chosen = torch.nonzero((sizes > low) & (sizes <= high)).flatten()
        for some in torch.split(chosen, _room(high, device)) if len(chosen) else ():
            batch = _Bucket(layout, scores, some, int(sizes[some].max()), projective, single)
            batch.run(iterations, tolerance)
            values[some], rounds[some] = batch.value, batch.rounds
            batch.write(beliefs, heard)
        low = high
    return values, beliefs, rounds, heard


def _room(size: int, device: Any) -> int:
    """Sentences that are worked on together: some twenty arrays of size³ must fit into half of the memory."""
    free = torch.cuda.mem_get_info()[0] if device.type == "cuda" else 1 << 30
    return max(1, int(free // 2 // (20 * 8 * size**3)))


def _softplus(x: Any) -> Any:
    return torch.clamp(x, min=0.0) + torch.log1p(torch.exp(-x.abs()))


def _others(x: Any, dim: int) -> Any:
    """Sums along an axis without each element itself, by adding from both sides."""
    left = torch.cumsum(x, dim)
    right = torch.flip(torch.cumsum(torch.flip(x, (dim,)), dim), (dim,))
    out = torch.zeros_like(x)
    n = x.shape[dim]
    out.narrow(dim, 1, n - 1).add_(left.narrow(dim, 0, n - 1))
    out.narrow(dim, 0, n - 1).add_(right.narrow(dim, 1, n - 1))
    return out


class _Bucket:
    """Sentences of about one length."""

    def __init__(self, layout: Layout, scores: Any, chosen: Any, n: int, projective: bool, single: bool) -> None:
        device = scores.device
        self.n, self.count, self.projective, self.single = n, len(chosen), projective, single
        slot = torch.full((len(layout.lengths),), -1, dtype=torch.int64, device=device)
        slot[chosen] = torch.arange(len(chosen), device=device)
        self.sizes = layout.lengths[chosen] + 1

        def cells(kind: tuple[Any, ...], *shape: int) -> tuple[Any, Any, Any]:
            """Numbers of the parts of these sentences, their cells, and their places among all parts."""
            mine = torch.nonzero(slot[kind[0]] >= 0).flatten()
            cell = slot[kind[0][mine]]
            for nodes, length in zip(kind[1:-1], shape, strict=True):
                cell = cell * length + nodes[mine]
            return mine, cell, kind[-1][mine]

        self.links, self.cell, self.place = cells(layout.link, n, n)
        shape = (self.count, n, n)
        self.total = torch.full(shape, -math.inf, dtype=torch.float64, device=device)
        self.total.view(-1)[self.cell] = scores[self.place]
        self.candidate = torch.zeros(shape, dtype=torch.bool, device=device)
        self.candidate.view(-1)[self.cell] = True
        zeros = torch.zeros_like(self.total)
        self.told, self.shares, self.belief = zeros, zeros.clone(), zeros.clone()
        self.chance = zeros.clone()
        self.grand = self.pairs = self.valence = None
        if layout.grand is not None:
            self.grand = cells(layout.grand, n, n, n)[1:]
            self.grand_weight = self._laid(self.grand, scores, n, n, n)
            self.there = torch.zeros_like(self.grand_weight, dtype=torch.bool)
            self.there.view(-1)[self.grand[0]] = True
            self.spoken = self.there.any(dim=2)  # by head, child: whether a link has any above it
            self.grand_told, self.upper_told = zeros.clone(), torch.ones_like(self.grand_weight)
        self.places = _run_places(n, device)
        self.in_run = torch.zeros((self.count, 2 * n), dtype=torch.bool, device=device)
        mine = torch.arange(2 * n, device=device) < 2 * self.sizes[:, None]
        if layout.pairs is not None:
            self.pairs = cells(layout.pairs, 2 * n, n, n)[1:]
            self.pair_weight = self._laid(self.pairs, scores, 2 * n, n, n)
            self.pair_told = zeros.clone()
            self.in_run = self._by_run(self.candidate.double()).sum(dim=2) > 0
        if layout.valence is not None:
            self.valence = cells(layout.valence, 2 * n, layout.bins)[1:]
            self.count_weight = self._laid(self.valence, scores, 2 * n, layout.bins)
            self.count_weight[~mine] = 1.0
            self.count_told = zeros.clone()

    def _laid(self, cells: tuple[Any, Any], scores: Any, *shape: int) -> Any:
        """e^score in a dense array, 0 where there is no part."""
        out = torch.zeros((self.count, *shape), dtype=torch.float64, device=scores.device)
        out.view(-1)[cells[0]] = torch.exp(torch.clamp(scores[cells[1]], max=_MOST))
        return out

    def _by_run(self, x: Any) -> Any:
        """[sentence, head, child] as [sentence, run, distance]; 0 where there is no word."""
        there, index = self.places[:2]
        return torch.where(there, x.reshape(self.count, -1)[:, index], 0.0)

    def _by_link(self, x: Any) -> Any:
        """The other way round."""
        return x.reshape(self.count, -1)[:, self.places[2]]

    def run(self, iterations: int, tolerance: float) -> None:
        """Rounds of messages, then beliefs and log Z."""
        self.rounds = torch.zeros(self.count, dtype=torch.int64, device=self.total.device)
        self.value = self._tree()
        self.live = torch.isfinite(self.value)
        families = self.grand is not None, self.pairs is not None, self.valence is not None
        if families == (True, False, False):  # a sentence without grandparents has nothing more to say
            self.live &= self.spoken.any(dim=2).any(dim=1)
        for _ in range(iterations if any(families) else 0):
            if not bool(self.live.any()):
                break
            self.rounds += self.live
            before = self.total
            state = self._state()
            if families[0]:
                self._settle()
                self._grands()
                self._settle()
            if families[1]:
                self._runs()
                self._settle()
            if families[2]:
                self._counts()
            value = self._tree()
            self._restore(state)  # of sentences that had come to rest before
            self.value = torch.where(self.live, value, self.value)
            change = torch.where(
                torch.isfinite(self.total), (self.total - before).abs() / self.total.abs().clamp(min=1.0), 0.0
            )
            self.live = self.live & torch.isfinite(self.value) & (change.amax(dim=(1, 2)) > tolerance)
        self.heard = self.total - self.told
        self._conclude(families)

    def _state(self) -> dict[str, Any]:
        names = ["total", "told", "shares", "belief"]
        names += ["grand_told", "upper_told"] if self.grand is not None else []
        names += ["pair_told"] if self.pairs is not None else []
        names += ["count_told"] if self.valence is not None else []
        return {name: getattr(self, name) for name in names}

    def _restore(self, state: dict[str, Any]) -> None:
        if bool(self.live.all()):
            return
        for name, old in state.items():
            live = self.live.reshape(-1, *[1] * (old.ndim - 1))
            setattr(self, name, torch.where(live, getattr(self, name), old))

    def _tree(self) -> Any:
        """Let the tree speak; beliefs of links, and its log Z."""
        heard = self.total - self.told
        top = heard.amax(dim=1, keepdim=True)
        low = torch.where(heard > -math.inf, torch.maximum(heard, top - _APART), -math.inf)
        inside = torch.arange(self.n, device=low.device)
        own = (inside < self.sizes[:, None])[:, :, None] & (inside < self.sizes[:, None])[:, None, :]
        offsets = torch.cat([self.sizes.new_zeros(1), torch.cumsum(self.sizes**2, 0)])
        solve = marginal_trees if self.projective else spanning_trees
        value, marginals = solve(low[own], offsets, self.sizes, self.single)
        self.belief = torch.zeros_like(low)
        self.belief[own] = marginals
        self.belief = torch.where(self.candidate, self.belief, 0.0)
        rest = _others(self.belief, 1)
        free = heard > -math.inf
        safe = torch.where(free, heard, 0.0)
        self.shares = torch.where(free, torch.log(self.belief.clamp(min=_TINY)) - safe, self.shares)
        message = self.shares - torch.log(rest.clamp(min=_TINY))
        self.told = torch.where(free, message, self.told)
        self.total = torch.where(free, safe + message, self.total)
        return value

    def _settle(self) -> None:
        """Probabilities of the heads of every word, of which it has one, and log-odds that are theirs."""
        heard = self.total - self.told
        x = heard + self.shares
        top = x.amax(dim=1, keepdim=True)
        x = torch.where(x > -math.inf, torch.exp(x - torch.where(top > -math.inf, top, 0.0)), 0.0)
        self.chance = x / x.sum(dim=1, keepdim=True).clamp(min=_LEAST)
        rest = _others(self.chance, 1)
        free = heard > -math.inf
        total = torch.log(self.chance.clamp(min=_TINY)) - torch.log(rest.clamp(min=_TINY))
        self.total = torch.where(free, total, self.total)
        self.told = torch.where(free, total - torch.where(free, heard, 0.0), self.told)

    def _above(self) -> tuple[Any, Any, Any]:
        """For each link: the chances of those above it by all but these pairs, their sum, and what is expected."""
        chance = torch.where(self.there, self.chance.transpose(1, 2)[:, :, :, None], 0.0)
        rest = torch.clamp(1.0 - chance.sum(dim=2), min=0.0)
        chance = chance / self.upper_told
        whole = chance.sum(dim=2) + rest
        worth = (chance * self.grand_weight).sum(dim=2) + rest
        return chance, whole, worth / whole.clamp(min=_LEAST)

    def _grands(self) -> None:
        _, _, worth = self._above()
        chance = torch.sigmoid(self.total - self.grand_told)
        message = torch.where(self.spoken, torch.log(worth.clamp(min=_TINY)), self.grand_told)
        news = message - self.grand_told
        w = torch.clamp(1.0 + chance[:, :, None, :] * (self.grand_weight - 1.0), min=_TINY)
        w = torch.where(self.there, w, 1.0)
        news = news + torch.log(w / self.upper_told).sum(dim=3).transpose(1, 2)
        self.grand_told, self.upper_told = message, w
        self.total = self.total + news

    def _listen(self, told: Any) -> tuple[Any, Any]:
        """Chances of links by run, without what the runs said, and the sums of log (1 + odds)."""
        heard = self.total - told
        free = self.candidate & (heard > -math.inf)
        plus = torch.where(free, _softplus(torch.where(free, heard, 0.0)), 0.0)
        return self._by_run(torch.where(self.candidate, torch.sigmoid(heard), 0.0)), self._by_run(plus).sum(dim=2)

    def _speak(self, true: Any, false: Any, told: Any) -> Any:
        odds = torch.log(true.clamp(min=_LEAST) / false.clamp(min=_LEAST)).clamp(-_MOST, _MOST)
        message = torch.where(self.candidate, self._by_link(odds), told)
        self.total = self.total + torch.where(self.candidate, message - told, 0.0)
        return message

    def _runs(self, beliefs: Any = None) -> Any:
        """Let runs of siblings speak; or, given room for them, write their beliefs and return log Z of each run."""
        chance, plus = self._listen(self.pair_told)
        weight, n = self.pair_weight, self.n
        node = torch.arange(n, device=chance.device)
        behind = [weight[:, :, 0]] * (n + 1)  # from n on there are no words: what comes after the last
        size = torch.zeros_like(plus)
        for j in range(n - 1, 0, -1):
            p, after = chance[:, :, j, None], behind[j + 1] if j < n - 1 else weight[:, :, 0]
            now = (1.0 - p) * after + p * weight[:, :, j] * after[:, :, j, None]
            now = torch.where(node < j, now, 0.0)
            top = now.amax(dim=2, keepdim=True)
            top = torch.where(top > 0.0, top, 1.0)
            size += torch.log(top[:, :, 0])
            behind[j] = now / top
        size += torch.log(behind[1][:, :, 0].clamp(min=_LEAST)) + plus
        ahead = torch.zeros_like(behind[1])
        ahead[:, :, 0] = 1.0
        true, false = torch.ones_like(chance), torch.ones_like(chance)
        for j in range(1, n):
            p, after = chance[:, :, j, None], behind[j + 1] if j < n - 1 else weight[:, :, 0]
            into = ahead * weight[:, :, j]
            entering, passing = into.sum(dim=2), (ahead * after).sum(dim=2)
            true[:, :, j], false[:, :, j] = entering * after[:, :, j], passing
            if beliefs is not None:
                scale = chance[:, :, j] * true[:, :, j] + (1.0 - chance[:, :, j]) * false[:, :, j]
                beliefs[:, :, j] = into * (p * after[:, :, j, None]) / scale[:, :, None].clamp(min=_LEAST)
            ahead = (1.0 - p) * ahead
            ahead[:, :, j] = chance[:, :, j] * entering
            top = ahead.amax(dim=2, keepdim=True)
            ahead = ahead / torch.where(top > 0.0, top, 1.0)
        if beliefs is None:
            self.pair_told = self._speak(true, false, self.pair_told)
            return None
        last = ahead * weight[:, :, 0]
        beliefs[:, :, 0] = last / last.sum(dim=2, keepdim=True).clamp(min=_LEAST)
        return torch.where(self.in_run, size, 0.0)

    def _counts(self, final: bool = False) -> Any:
        """Let numbers of children speak; or, in the end, return their beliefs and log Z of each run."""
        chance, plus = self._listen(self.count_told)
        weight, n = self.count_weight, self.n
        more = torch.cat([torch.arange(1, weight.shape[2]), torch.tensor([weight.shape[2] - 1])]).to(weight.device)
        behind = [weight] * (n + 1)
        for j in range(n - 1, 0, -1):
            p = chance[:, :, j, None]
            behind[j] = (1.0 - p) * behind[j + 1] + p * behind[j + 1][:, :, more]
        ahead = torch.zeros_like(weight)
        ahead[:, :, 0] = 1.0
        true, false = torch.ones_like(chance), torch.ones_like(chance)
        for j in range(1, n):
            p, after = chance[:, :, j, None], behind[j + 1]
            true[:, :, j], false[:, :, j] = (ahead * after[:, :, more]).sum(dim=2), (ahead * after).sum(dim=2)
            moved = torch.cat([torch.zeros_like(ahead[:, :, :1]), ahead[:, :, :-1]], dim=2)
            moved[:, :, -1] += ahead[:, :, -1]
            ahead = (1.0 - p) * ahead + p * moved
        if not final:
            self.count_told = self._speak(true, false, self.count_told)
            return None
        last = ahead * weight
        size = torch.log(behind[1][:, :, 0].clamp(min=_LEAST)) + plus
        return last / last.sum(dim=2, keepdim=True).clamp(min=_LEAST), size

    def _conclude(self, families: tuple[bool, bool, bool]) -> None:
        """Beliefs of families, and Bethe's log Z."""
        value = self.value
        if families[0]:
            self._settle()
            chance, whole, worth = self._above()
            own = torch.sigmoid(self.total - self.grand_told)
            sums = torch.clamp(1.0 + own * (worth - 1.0), min=_TINY)
            self.grand_belief = chance * self.grand_weight
            self.grand_belief *= (own / whole.clamp(min=_LEAST) / sums)[:, :, None, :]
            said = torch.clamp(1.0 + own * (torch.exp(self.grand_told) - 1.0), min=_TINY)
            part = torch.where(self.spoken, torch.log((sums * whole / said).clamp(min=_LEAST)), 0.0)
            value = value + part.sum(dim=(1, 2))
        if families[1]:
            self.pair_belief = torch.zeros_like(self.pair_weight)
            value = value + self._runs(self.pair_belief).sum(dim=1)
        if families[2]:
            self.count_belief, size = self._counts(final=True)
            value = value + size.sum(dim=1)
        degree = families[1] + families[2]
        if degree:
            free = self.total > -math.inf
            sums = torch.where(free, _softplus(torch.where(free, self.total, 0.0)), 0.0).sum(dim=(1, 2))
            value = value - degree * sums
        self.value = torch.where(torch.isfinite(self.value), value, math.nan)

    def write(self, beliefs: Any, heard: Any) -> None:
        """What is believed, at its places among all parts."""
        heard[self.links] = self.heard.reshape(-1)[self.cell]
        beliefs[self.place] = self.belief.reshape(-1)[self.cell]
        if self.grand is not None:
            beliefs[self.grand[1]] = self.grand_belief.reshape(-1)[self.grand[0]]
        if self.pairs is not None:
            beliefs[self.pairs[1]] = self.pair_belief.reshape(-1)[self.pairs[0]]
        if self.valence is not None:
            beliefs[self.valence[1]] = self.count_belief.reshape(-1)[self.valence[0]]


def _run_places(n: int, device: Any) -> tuple[Any, Any, Any]:
    """For runs and distances, whether there is a word and which link it is; for links, their place among runs."""
    run, distance = torch.arange(2 * n, device=device)[:, None], torch.arange(n, device=device)[None, :]
    head = run // 2
    child = torch.where(run % 2 == 1, head + distance, head - distance)
    there = (distance > 0) & (child > 0) & (child < n)
    index = torch.where(there, head * n + child, 0)
    above, below = torch.arange(n, device=device)[:, None], torch.arange(n, device=device)[None, :]
    back = (2 * above + (below > above).long()) * n + (below - above).abs()
    return there, index, back.reshape(n, n)
