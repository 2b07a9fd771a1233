"""The pair table on a GPU: which word pairs occur together, and sums over them, as in `_numba.lexicon`.

Entries lie by source type, then by target type. They are found by sorting: the cells of some source types at a time, as
many as fit, are written as keys, sorted, and numbered. Types are expected to lie by class (of stems), so that the pairs
of classes can be numbered in the same pieces.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl

__all__ = ["Table", "blend", "group_sums", "index_cells"]

_MOST = (1 << 31) - 1  # entries that four bytes can number
FIXED = (
    2.0**32
)  # sums of weights by target type are whole numbers in units of 2^-32, so that their order is of no matter
_FIXED = tl.constexpr(FIXED)


class Table(NamedTuple):
    """Entries of a text; `group` and the rest are empty without classes."""

    rows: Any  # int64[n_sources + 1]
    columns: Any  # int32[n_entries]
    cells: Any  # int32[n_cells]
    group: Any  # int32[n_entries]: the pair of classes of each entry
    other: Any  # int32[n_groups]: its target class
    starts: Any  # int64[n_source_classes + 1]: where the groups of a source class start


@triton.jit
def _keys(
    order, sentence, source_ids, source_offsets, target_ids, target_offsets, cell_offsets, ends, first, last, base,
    low, n_targets, keys, places, WORDS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Key and place of every cell of the tokens `order[first:last]`."""
    at = first + tl.program_id(0).to(tl.int64) * WORDS + tl.arange(0, WORDS)
    here = at < last
    token = tl.load(order + at, mask=here, other=0)
    s = tl.load(sentence + token, mask=here, other=0)
    source = tl.load(source_ids + token, mask=here, other=0).to(tl.int64)
    target_at = tl.load(target_offsets + s, mask=here, other=0)
    width = tl.load(target_offsets + s + 1, mask=here, other=0) - target_at
    place = tl.load(cell_offsets + s, mask=here, other=0)
    place += (token - tl.load(source_offsets + s, mask=here, other=0)) * width
    out = tl.load(ends + at, mask=here, other=0) - width - base
    key = (source - low) * n_targets
    widest = tl.max(tl.where(here, width, 0), 0)
    for start in range(0, widest, WIDE):
        j = start + tl.arange(0, WIDE)
        inside = here[:, None] & (j[None, :] < width[:, None])
        target = tl.load(target_ids + target_at[:, None] + j[None, :], mask=inside, other=0).to(tl.int64)
        tl.store(keys + out[:, None] + j[None, :], key[:, None] + target, mask=inside)
        tl.store(places + out[:, None] + j[None, :], place[:, None] + j[None, :], mask=inside)


def index_cells(
    text: Any, n_sources: int, n_targets: int, classes: tuple[Any, Any] | None = None, *, limit: int = 1 << 28
) -> Table:
    """Number the word pairs that occur together and write the entry of every cell.

    `text` is a `Text` whose cells are not known yet; `classes` are those of source and target types (int64), the source
    types lying by class. A piece has at most `limit` cells, or those of one source class if they are more.
    """
    device = text.source_ids.device
    classes_given = classes is not None
    source_class = classes[0] if classes is not None else torch.arange(n_sources, device=device)
    n_classes = int(source_class[-1]) + 1 if n_sources else 0
    n_cells = int(text.cell_offsets[-1])
    cells = torch.empty(n_cells, dtype=torch.int32, device=device)
    rows = torch.zeros(n_sources + 1, dtype=torch.int64, device=device)
    starts = torch.zeros(n_classes + 1, dtype=torch.int64, device=device)
    columns, group, other = [], [], []
    n_entries = n_groups = 0

    lengths = torch.diff(text.source_offsets)
    sentence = torch.repeat_interleave(torch.arange(len(lengths), device=device, dtype=torch.int32), lengths)
    order = torch.sort(text.source_ids, stable=True).indices
    ends = torch.cumsum(torch.diff(text.target_offsets)[sentence[order]], 0)
    members = torch.bincount(text.source_ids, minlength=n_sources)
    tokens = torch.cat([members.new_zeros(1), torch.cumsum(members, 0)])
    types = torch.searchsorted(source_class, torch.arange(n_classes + 1, device=device))  # first type of each class
    tokens_at = tokens[types]
    cells_at = torch.cat([ends.new_zeros(1), ends])[tokens_at].cpu().numpy()
    tokens_at, types_at = tokens_at.cpu().numpy(), types.cpu().numpy()
    most_targets = int(classes[1].max()) + 1 if classes is not None else 0

    start = 0
    while start < n_classes:
        stop = max(start + 1, int(np.searchsorted(cells_at, cells_at[start] + limit, side="right")) - 1)
        low, high = int(types_at[start]), int(types_at[stop])
        base, size = int(cells_at[start]), int(cells_at[stop] - cells_at[start])
        keys = torch.empty(size, dtype=torch.int64, device=device)
        places = torch.empty(size, dtype=torch.int64, device=device)
        first, last = int(tokens_at[start]), int(tokens_at[stop])
        if last > first:
            _keys[(triton.cdiv(last - first, 16),)](
                order, sentence, text.source_ids, text.source_offsets, text.target_ids, text.target_offsets,
                text.cell_offsets, ends, first, last, base, low, n_targets, keys, places, WORDS=16, WIDE=32,
            )  # fmt: skip
        found = _numbered(keys, places, cells, n_entries)
        rows[low : high + 1] = n_entries + torch.searchsorted(
            found, torch.arange(high - low + 1, device=device) * n_targets
        )
        source, target = found // n_targets + low, found % n_targets
        columns.append(target.to(torch.int32))
        if classes is not None:
            pairs = classes[0][source] * most_targets + classes[1][target]
            numbers = torch.empty(len(pairs), dtype=torch.int32, device=device)
            kinds = _numbered(pairs, None, numbers, n_groups)
            starts[start : stop + 1] = n_groups + torch.searchsorted(
                kinds, torch.arange(start, stop + 1, device=device) * most_targets
            )
            group.append(numbers)
            other.append((kinds % most_targets).to(torch.int32))
            n_groups += len(kinds)
        n_entries += len(found)
        if n_entries > _MOST:
            raise MemoryError("this text has more than 2^31 pairs of words that occur together")
        start = stop
    empty = torch.zeros(0, dtype=torch.int32, device=device)
    joined = [torch.cat(parts) if parts else empty for parts in (columns, group, other)]
    return Table(rows, joined[0], cells, joined[1], joined[2], starts if classes_given else starts[:0])


def _numbered(keys: Any, places: Any, out: Any, base: int) -> Any:
    """Number distinct keys from `base` on, write the number of each into `out` at its place; returns them sorted."""
    keys, order = torch.sort(keys)
    fresh = torch.ones(len(keys), dtype=torch.bool, device=keys.device)
    torch.ne(keys[1:], keys[:-1], out=fresh[1:])
    number = torch.cumsum(fresh, 0, dtype=torch.int32)
    number += base - 1
    out[order if places is None else places[order]] = number
    return keys[fresh]


@triton.jit
def _group_sums(group, counts, sums, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    g = tl.load(group + at, mask=here, other=0).to(tl.int64)
    for d in tl.static_range(WIDTH):
        x = tl.load(counts + WIDTH * at + d, mask=here, other=0)
        tl.atomic_add(sums + WIDTH * g + d, x, mask=here & (x > 0), sem="relaxed")


def group_sums(group: Any, counts: Any, n_groups: int) -> Any:
    """sums[group] = sum of counts[entry], whole numbers: int64[n_groups, 1 or 2]."""
    sums = torch.zeros((n_groups, counts.shape[1]), dtype=torch.int64, device=counts.device)
    if len(group):
        _group_sums[(triton.cdiv(len(group), 1024),)](
            group, counts, sums, len(group), WIDTH=counts.shape[1], BLOCK=1024
        )
    return sums


@triton.jit
def _blend(
    rows, columns, counts, prior, group, sums, source_class, target_class, forward, backward, share_source,
    share_target, weights, source_mass, target_mass, unit, floor, scale, strength,
    WIDTH: tl.constexpr, PRIOR: tl.constexpr, STEMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The entries of one source type."""
    word = tl.program_id(0)
    first, last = tl.load(rows + word), tl.load(rows + word + 1)
    mass = tl.zeros((BLOCK,), tl.float64)
    if STEMS:
        share = tl.load(share_source + word).to(tl.float64)
        total = tl.load(forward + tl.load(source_class + word))
    for start in range(first, last, BLOCK):
        at = start + tl.arange(0, BLOCK)
        here = at < last
        column = tl.load(columns + at, mask=here, other=0)
        x = tl.zeros((BLOCK,), tl.float64) + floor
        y = x
        if WIDTH > 0:
            x += tl.load(counts + WIDTH * at, mask=here, other=0).to(tl.float64) * unit
            y += tl.load(counts + WIDTH * at + WIDTH - 1, mask=here, other=0).to(tl.float64) * unit
        if PRIOR:
            known = scale * tl.load(prior + at, mask=here, other=0.0).to(tl.float64)
            x += known
            y += known
        if STEMS:
            g = tl.load(group + at, mask=here, other=0).to(tl.int64)
            there = tl.load(backward + tl.load(target_class + column, mask=here, other=0), mask=here, other=1.0)
            up = tl.load(sums + WIDTH * g, mask=here, other=0).to(tl.float64) * unit + 1e-6
            down = tl.load(sums + WIDTH * g + WIDTH - 1, mask=here, other=0).to(tl.float64) * unit + 1e-6
            x += strength * up / total * tl.load(share_target + column, mask=here, other=0.0).to(tl.float64)
            y += strength * down / there * share
        tl.store(weights + 2 * at, x.to(tl.float32), mask=here)
        tl.store(weights + 2 * at + 1, y.to(tl.float32), mask=here)
        mass += tl.where(here, x, 0.0)
        tl.atomic_add(target_mass + column, (y * _FIXED + 0.5).to(tl.int64), mask=here, sem="relaxed")
    tl.store(source_mass + word, tl.sum(mass, 0))


def blend(
    table: Table, counts: Any, prior: Any, stems: Any, n_targets: int, unit: float, floor: float, scale: float
) -> tuple[Any, Any, Any]:
    """Weights float32[n_entries, 2] from counts and priors, and their sums by type, float64.

    `counts` is None at the very start; `prior` may be empty; `stems` is None or (sums, source class, target class, sums
    of source classes, of target classes, shares of source types, of target types, strength).
    """
    device = table.columns.device
    n_sources = len(table.rows) - 1
    weights = torch.empty((len(table.columns), 2), dtype=torch.float32, device=device)
    source_mass = torch.zeros(n_sources, dtype=torch.float64, device=device)
    target_mass = torch.zeros(n_targets, dtype=torch.int64, device=device)
    none = torch.zeros(1, dtype=torch.int64, device=device)
    sums, source_class, target_class, forward, backward, share_source, share_target, strength = (
        stems if stems is not None else (none,) * 7 + (0.0,)
    )
    _blend[(n_sources,)](
        table.rows, table.columns, none if counts is None else counts, prior, table.group, sums, source_class,
        target_class, forward, backward, share_source, share_target, weights, source_mass, target_mass, unit, floor,
        scale, strength, WIDTH=0 if counts is None else counts.shape[1], PRIOR=len(prior) > 0,
        STEMS=stems is not None, BLOCK=256, num_warps=4,
    )  # fmt: skip
    return weights, source_mass, target_mass.double() / FIXED
