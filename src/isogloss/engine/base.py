"""The seam between what is computed for a shard and where that happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from isogloss.engine.threads import threads as threads_to_use
from isogloss.engine.threads import using_threads

__all__ = ["Engine", "LocalEngine"]

S = TypeVar("S")
R = TypeVar("R")
Total = TypeVar("Total")


class Engine(Protocol):
    """Runs a pure function on every shard and hands back the results in shard order, wherever the work was done.

    A shard is whatever the function takes: a `Shard`, or the number of one. The function may read what it closes over
    (parameters, the encoded corpus) and must change nothing: an engine may run shards at the same time, elsewhere, or
    twice. Whatever the engine, `reduce` combines results in shard order, because sums of floats depend on it.
    """

    def map(self, function: Callable[[S], R], shards: Sequence[S]) -> Iterator[R]:
        """Results of `function` in order, as they come: one for each shard, or for several that follow each other.

        A result is valid until the next is asked for.
        """
        ...

    def reduce(
        self,
        function: Callable[[S], R],
        shards: Sequence[S],
        combine: Callable[[Total, R], Total],
        total: Total,
    ) -> Total:
        """``combine(... combine(combine(total, result 0), result 1) ...)``; `combine` may add in place."""
        ...


class LocalEngine:
    """Shards one after the other in this process; kernels use threads inside a shard.

    Only one shard's results are alive at a time, so that memory does not grow with the corpus.

    Parameters
    ----------
    threads : int, optional
        Threads for each kernel; None takes all cores we may use, or those of the `using_threads` around.
    on_shard : callable, optional
        Told (shards done, shards in all) after each, for progress.

    Examples
    --------
    >>> from isogloss.engine.shards import Shard
    >>> engine = LocalEngine(threads=1)
    >>> engine.reduce(lambda shard: shard.stop - shard.start, [Shard(0, 3), Shard(3, 4)], lambda a, b: a + b, 0)
    4
    """

    def __init__(self, threads: int | None = None, on_shard: Callable[[int, int], object] | None = None):
        self.threads = None if threads is None else threads_to_use(threads)
        self.on_shard = on_shard

    def map(self, function: Callable[[S], R], shards: Sequence[S]) -> Iterator[R]:
        """Results of `function`, one for each shard, in order, each computed when it is asked for."""
        for done, shard in enumerate(shards, 1):
            with using_threads(self.threads):  # not around the yield: the caller's own work needs no lock
                result = function(shard)
            if self.on_shard is not None:
                self.on_shard(done, len(shards))
            yield result
            del result

    def reduce(
        self,
        function: Callable[[S], R],
        shards: Sequence[S],
        combine: Callable[[Total, R], Total],
        total: Total,
    ) -> Total:
        """Combine the results of all shards, in order."""
        for result in self.map(function, shards):
            total = combine(total, result)
        return total
