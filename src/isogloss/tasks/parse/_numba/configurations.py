"""How two words stand to each other in a tree; see `isogloss.tasks.parse.configurations`."""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.features._numba.mixing import mix

__all__ = ["configure", "trace_paths"]

SAME, PARENT_CHILD, CHILD_PARENT, SIBLINGS, GRANDPARENT, C_COMMAND, NONE = range(7)
UNKNOWN = -1
UP, DOWN, HIDDEN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
ROOT = np.uint64(0x27D4EB2F165667C5)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def configure(block, blocks, offsets, heads, places, out):
    """int8[n + 1, n + 1] for each sentence from ``places[s]`` on: the configuration of every pair of nodes."""
    for s in range(block, len(offsets) - 1, blocks):
        first, n = offsets[s] - 1, offsets[s + 1] - offsets[s]  # word i stands at first + i
        above = np.zeros(n + 1, np.bool_)
        for y in range(n + 1):
            above[:] = False
            node = y
            for _ in range(n):
                if node <= 0:
                    break
                node = heads[first + node]
                if node >= 0:
                    above[node] = True
            of_y = heads[first + y] if y > 0 else UNKNOWN
            over = heads[first + of_y] if of_y > 0 else UNKNOWN
            for x in range(n + 1):
                of_x = heads[first + x] if x > 0 else UNKNOWN
                if x == y:
                    found = SAME
                elif of_y == x:
                    found = PARENT_CHILD
                elif of_x == y:
                    found = CHILD_PARENT
                elif of_x >= 0 and of_x == of_y:
                    found = SIBLINGS
                elif over == x:
                    found = GRANDPARENT
                elif of_x >= 0 and above[of_x] and not above[x]:
                    found = C_COMMAND
                else:
                    found = NONE
                out[places[s] + x * (n + 1) + y] = found


@njit(cache=True, nogil=True)
def _depths(first, n, heads, depths):
    """How far each node is from the root, or from a word whose head is not known."""
    for word in range(n + 1):
        depth, node = 0, word
        while node > 0 and heads[first + node] >= 0 and depth <= n:
            node = heads[first + node]
            depth += 1
        depths[word] = depth


@njit(cache=True, nogil=True)
def trace_paths(block, blocks, offsets, heads, relations, tags, longest, places, out):
    """Codes of the way from one node to another, int64[3, n + 1, n + 1] for each sentence; −1 where there is none.

    By all relations on it; by all but that of the link down from the first node, if no link leads up and another
    follows; and by the tags of the nodes on it. `relations` and `tags` are codes of words, ROOT stands for the root.
    """
    for s in range(block, len(offsets) - 1, blocks):
        first, n = offsets[s] - 1, offsets[s + 1] - offsets[s]
        depths = np.zeros(n + 1, np.int64)
        _depths(first, n, heads, depths)
        for x in range(n + 1):
            for y in range(n + 1):
                at = places[s] + x * (n + 1) + y
                a, b, length, hidden = x, y, 0, False
                up, down, shown, passed = np.uint64(1), np.uint64(2), np.uint64(2), np.uint64(3)
                while a != b and length <= longest:
                    climbs = depths[a] >= depths[b]
                    node = a if climbs else b
                    if node == 0 or heads[first + node] < 0:
                        length = longest
                    else:
                        above = heads[first + node]
                        if climbs:
                            up = mix(up * UP + relations[first + node])
                            a = above
                        else:
                            down = mix(down * DOWN + relations[first + node])
                            hidden = above == x and a == x and length > 0
                            shown = mix(shown * DOWN + (HIDDEN if hidden else relations[first + node]))
                            b = above
                        if a != b or (a != x and a != y):
                            passed = mix(passed * (UP if climbs else DOWN) + (tags[first + above] if above else ROOT))
                        else:
                            passed = mix(passed * (UP if climbs else DOWN))
                    length += 1
                there = 0 < length <= longest
                out[0, at] = np.int64(mix(up + down * HIDDEN) >> _ONE) if there else -1
                out[1, at] = np.int64(mix(up + shown * HIDDEN) >> _ONE) if there and hidden else -1
                out[2, at] = np.int64(mix(passed) >> _ONE) if there else -1
