"""Times on a GPU: the aligner on synthetic text, and marginals of structures in batches.

Run on a machine with a GPU, and with Numba if the same work is to be timed on its cores too:

    python -m benchmarks.gpu align --pairs 1000000
    python -m benchmarks.gpu align --pairs 1000000 --device cpu --threads 1
    python -m benchmarks.gpu structures --batch 4096 --words 20

A row goes to `benchmarks/gpu.csv` (or `--csv`) for each thing that was timed: what, its size, device, version of torch,
commit, seconds, and what says that it was right (for links, precision and recall against those planted in the text).
Kernels are compiled before the clock starts. The text is made anew: words by Zipf's law, translations one to one and
locally reordered, a tenth of the words by chance. The clock of the aligner starts with numbers in the memory of the
host and stops with links there.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import rows

FIELDS = ("what", "size", "device", "torch", "seconds", "check", "commit", "date")
_SMALL = 2000  # pairs of the text that compiles the kernels


def synthetic(n_pairs: int, words: int, vocabulary: int, seed: int) -> tuple[Any, np.ndarray]:
    """An `Encoded` text of `words` by `words` a pair, and the planted source position of each target word, or -1.

    A target sentence is the translated source, with neighbours swapped by chance; a tenth of it is replaced by words
    that have nothing to do with the source. Names of words share no letters across the languages, but for one in
    twenty, which is the same in both.
    """
    import torch

    from isogloss.tasks.align.device import Encoded

    where = "cuda" if torch.cuda.is_available() else "cpu"
    rng = torch.Generator(where).manual_seed(seed)
    translation = torch.randperm(vocabulary, generator=rng, device=where).int()
    shares = 1.0 / (torch.arange(vocabulary, device=where, dtype=torch.float64) + 2.7)
    table = torch.cumsum(shares / shares.sum(), 0).float()

    def chance(*shape: int) -> Any:
        return torch.rand(shape, generator=rng, device=where)

    def by_zipf(*shape: int) -> Any:
        return torch.searchsorted(table, chance(*shape)).clamp_(max=vocabulary - 1)

    source = np.empty(n_pairs * words, np.int32)
    target, planted = np.empty_like(source), np.empty_like(source)
    piece = max(1, (1 << 24) // words)
    for start in range(0, n_pairs, piece):
        n = min(piece, n_pairs - start)
        here = slice(start * words, (start + n) * words)
        drawn = by_zipf(n, words)
        place = torch.argsort(torch.arange(words, device=where) + 3.0 * chance(n, words), dim=1)
        noise = chance(n, words) < 0.1
        there = translation[torch.where(noise, by_zipf(n, words), torch.gather(drawn, 1, place))]
        for array, values in ((source, drawn), (target, there), (planted, torch.where(noise, -1, place))):
            array[here] = values.flatten().int().cpu().numpy()
    translation = translation.cpu().numpy()
    offsets = np.arange(n_pairs + 1, dtype=np.int64) * words
    names = (
        [_name(k, "aeiou", "bcdfg") for k in range(vocabulary)],
        [_name(k, "wxyz", "klmnp") for k in range(vocabulary)],
    )
    for k in range(0, vocabulary, 20):
        names[1][translation[k]] = names[0][k]
    text = Encoded(names[0], source, offsets, names[1], target, offsets, np.zeros(n_pairs, bool))
    return text, planted


def _name(number: int, vowels: str, others: str) -> str:
    """Letters by turns from both lists, at least four."""
    letters = []
    while number or len(letters) < 4:
        letter = others if len(letters) % 2 == 0 else vowels
        letters.append(letter[number % len(letter)])
        number //= len(letter)
    return "".join(letters)


def check_links(links: Any, planted: np.ndarray, words: int) -> str:
    """Precision and recall against the planted links, in percent."""
    right = int((planted[links.pair * words + links.target] == links.source).sum())
    return (
        f"precision {100 * right / max(1, len(links.source)):.2f} recall {100 * right / int((planted >= 0).sum()):.2f}"
    )


def align(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows for the aligner."""
    on_gpu = arguments.device == "cuda"
    vocabulary = arguments.vocabulary or min(500_000, max(2_000, arguments.pairs // 5))
    if on_gpu:
        _on_gpu(*synthetic(_SMALL, arguments.words, 2000, 1), arguments.words)
    else:
        _on_cpu(*synthetic(_SMALL, arguments.words, 2000, 1), arguments.words, arguments.threads)
    text, planted = synthetic(arguments.pairs, arguments.words, vocabulary, 0)
    if on_gpu:
        times, check = _on_gpu(text, planted, arguments.words)
    else:
        times, check = _on_cpu(text, planted, arguments.words, arguments.threads)
    size = f"{arguments.pairs} pairs, {arguments.words} words, {vocabulary} types"
    return [{"what": f"align, {part}", "size": size, "seconds": seconds, "check": check} for part, seconds in times]


def _settings(text: Any) -> Any:
    from isogloss.tasks.align.hmm import HMMAligner

    return HMMAligner(stem_classes=1)._asked(len(text.source_ids), len(text.source_words), len(text.target_words))


def _on_gpu(text: Any, planted: np.ndarray, words: int) -> tuple[list[tuple[str, float]], str]:
    import torch

    from isogloss.tasks.align.decode import expected_f_threshold
    from isogloss.tasks.align.device import DeviceTraining

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times: list[tuple[str, float]] = []
    start = last = time.perf_counter()

    def lap(part: str) -> None:
        nonlocal last
        torch.cuda.synchronize()
        now = time.perf_counter()
        times.append((part, now - last))
        last = now

    training = DeviceTraining(text, _settings(text))
    lap("table and priors")
    for number in range(training.iterations):
        training.step()
        lap(f"step {number + 1}")
    training.decode()
    lap("decoding")
    links = training.links(expected_f_threshold(training.spectrum()))
    lap("links")
    times.append(("all", time.perf_counter() - start))
    peak = torch.cuda.max_memory_allocated() / 1e9
    check = f"{check_links(links, planted, words)}; {len(training.table.columns)} entries, {peak:.1f} GB"
    return times, check


def _on_cpu(text: Any, planted: np.ndarray, words: int, threads: int | None) -> tuple[list[tuple[str, float]], str]:
    from isogloss.data import Bitext, Ragged, Text, Vocabulary
    from isogloss.engine.threads import using_threads
    from isogloss.tasks.align.hmm import HMMAligner

    sides = [
        Text(Ragged(ids, offsets), Vocabulary(names))
        for names, ids, offsets in ((text[0], text[1], text[2]), (text[3], text[4], text[5]))
    ]
    bitext = Bitext(*sides)
    start = time.perf_counter()
    with using_threads(threads):
        links = HMMAligner(threads=threads, device="cpu", stem_classes=1).fit_predict(bitext)
    return [("all", time.perf_counter() - start)], check_links(links, planted, words)


def structures(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rows for log Z and marginals of a batch: on one core, on the GPU with scores there, and from host to host."""
    import torch

    from isogloss.engine.devices import using_device
    from isogloss.engine.threads import using_threads

    for name, batch, kernel in _batches(arguments.batch, arguments.words):
        if arguments.only not in name:
            continue
        size = f"{arguments.batch} sentences, {arguments.words} to {arguments.words + 5} words"

        def on_gpu(batch: Any = batch) -> Any:
            with using_device("cuda"):
                return batch.with_scores(batch.scores).marginals()

        def on_core(batch: Any = batch) -> Any:
            with using_threads(1):
                return batch.with_scores(batch.scores).marginals()

        on_core(batch.take(np.arange(min(len(batch), 64))))  # compiles
        start = time.perf_counter()
        right = on_core()
        core = time.perf_counter() - start
        if core < 1.0:
            core = _median(on_core, 3)
        there, inside = _median(on_gpu, 5), _median(kernel(), 5)
        check = f"marginals differ by {float(np.abs(on_gpu().values - right.values).max()):.1e}"
        torch.cuda.empty_cache()
        for part, seconds in (("one core", core), ("GPU, host to host", there), ("GPU, scores there", inside)):
            row = {"what": f"{name}, {part}", "size": size, "seconds": seconds, "check": check}
            if part == "one core":
                yield row | {"device": rows.machine(), "torch": ""}
            else:
                yield row | {"check": f"{check}; {core / seconds:.0f} times one core"}


def _median(work: Any, repeats: int) -> float:
    """The median of several runs, after one that compiles."""
    import torch

    work()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _batches(count: int, words: int) -> Any:
    """Names, batches on the host, and what makes a call on the device whose scores are there already."""
    from isogloss.structures import Chain, ProjectiveTree, SpanningTree
    from isogloss.structures._gpu import chain, eisner, loopy, spanning
    from isogloss.structures._gpu.transfer import put
    from isogloss.structures.loopy import LoopyTrees
    from isogloss.structures.tree_parts import Candidates, TreeParts

    rng = np.random.default_rng(0)
    lengths = rng.integers(words, words + 6, count)

    def ready(kernel: Any, batch: Any, *more: Any) -> Any:
        stack = batch.scores
        moved = [put(x) if isinstance(x, np.ndarray) else x for x in (stack.values, stack.offsets, *more)]
        return lambda: kernel(*moved)

    chains = Chain.batch([rng.normal(size=(n, 17, 17)) for n in lengths])
    yield "chain, 17 labels", chains, lambda: ready(chain.chains_log, chains, chains.scores.shapes)
    links = [2.0 * rng.normal(size=(n + 1, n + 1)) for n in lengths]
    trees = ProjectiveTree.batch(links)
    yield "projective trees", trees, lambda: ready(eisner.marginal_trees, trees, lengths + 1, False)
    spans = SpanningTree.batch(links, single_root=True)
    yield "spanning trees, one root", spans, lambda: ready(spanning.spanning_trees, spans, lengths + 1, True)
    parts = TreeParts.of(Candidates.all(lengths), ["grand", "siblings"])
    scores = rng.normal(size=parts.n_parts)
    for constraint in ("tree", "projective"):
        beliefs = LoopyTrees(parts, scores, constraint=constraint)

        def kernel(projective: bool = constraint == "projective") -> Any:
            layout, there = loopy.Layout.of(parts, put), put(scores)
            return lambda: loopy.believe(layout, there, projective, False, 5, 1e-4)

        yield f"beliefs, {constraint}, grandparents and siblings", beliefs, kernel


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--csv", type=Path, default=Path(__file__).with_suffix(".csv"))
    commands = parser.add_subparsers(dest="command", required=True)
    aligner = commands.add_parser("align")
    aligner.add_argument("--pairs", type=int, default=1_000_000)
    aligner.add_argument("--words", type=int, default=20)
    aligner.add_argument("--vocabulary", type=int, default=None)
    aligner.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    aligner.add_argument("--threads", type=int, default=None)
    aligner.set_defaults(measure=align)
    batches = commands.add_parser("structures")
    batches.add_argument("--batch", type=int, default=4096)
    batches.add_argument("--words", type=int, default=20)
    batches.add_argument("--only", default="", help="those with this in their name")
    batches.set_defaults(measure=structures)
    arguments = parser.parse_args(given)
    found = arguments.measure(arguments)
    write(arguments.csv, found, getattr(arguments, "device", "cuda"))


def write(path: Path, found: Iterable[dict[str, Any]], device: str) -> None:
    """Append rows, and show them."""
    where, version = rows.machine(), ""
    if device == "cuda":
        import torch

        where, version = torch.cuda.get_device_name(), torch.__version__
    fresh = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if fresh:
            writer.writeheader()
        for row in found:
            row = {"device": where, "torch": version, "commit": rows.commit(), "date": rows.today(), **row}
            row["seconds"] = f"{row['seconds']:.4g}"
            writer.writerow(row)
            file.flush()
            print(*(row[name] for name in ("what", "size", "device", "seconds", "check")), sep="\t", file=sys.stderr)


if __name__ == "__main__":
    main()
