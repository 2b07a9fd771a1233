"""Training and decoding of the default aligner on a GPU: everything from encoded text to links stays there.

The model, the schedule and the M-step are those of `training.py`; what differs is where arrays lie, and that word types
are numbered by stem, so that the entries of a stem lie side by side. Posteriors and counts are whole numbers there too,
so that a text gives the same bytes in every run. Against the CPU, posteriors differ by rounding alone: see docs/gpu.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Links, Vocabulary
from isogloss.engine.base import Engine
from isogloss.engine.devices import choose
from isogloss.engine.shards import shards
from isogloss.errors import ParameterError
from isogloss.progress import Progress
from isogloss.tasks.align.corpus import Corpus, Encoder
from isogloss.tasks.align.evidence import Evidence
from isogloss.tasks.align.expectation import LEAST
from isogloss.tasks.align.maximisation import START, maximised, shares_of
from isogloss.tasks.align.memory import PER_FORM
from isogloss.tasks.align.model import Model
from isogloss.tasks.align.priors import Cut, _classes, compared
from isogloss.tasks.align.settings import Settings

__all__ = ["DeviceText", "DeviceTraining", "Encoded", "host_bytes", "obstacle", "trained"]

_WORTH = 1_000_000  # source words from which "auto" takes a GPU: those that one way to cut words to stems does for
_LONGEST = 1024  # words of a side that the kernels have room for
_PER_ENTRY = 24  # bytes that the model on the host takes for an entry, at the most
_LIBRARIES = 1_700_000_000  # bytes of torch and CUDA on the host: 100,000 pairs took 1.6 GB in all
_ENTRIES = 0.4  # of the cells, before anything is counted: 0.37 and 0.30 of a million and ten million pairs
_SHORTEST, _ALIKE = 4, 0.6  # letters and likeness from which spelling counts, as in `spelling_prior`


class Encoded(NamedTuple):
    """A text as numbers: what training on a device starts from."""

    source_words: Any  # sequence of str
    source_ids: NDArray[np.int32]
    source_offsets: NDArray[np.int64]
    target_words: Any
    target_ids: NDArray[np.int32]
    target_offsets: NDArray[np.int64]
    skipped: NDArray[np.bool_]

    @classmethod
    def of(cls, text: Encoder) -> Encoded:
        """The forms of a text; pairs that are passed over are empty."""
        source_ids, source_offsets, target_ids, target_offsets = text.whole()
        source, target = (list(side.numbers) for side in text.sides)
        return cls(source, source_ids, source_offsets, target, target_ids, target_offsets, text.all_skipped)


def obstacle(settings: Settings, *, lexicon: bool, longest: int) -> str | None:
    """Why a training cannot run on a GPU, or None."""
    if settings.model != "hmm":
        return f"the model is {settings.model}, and only the HMM is there"
    if settings.constraint not in ("none", "agreement"):
        return f"training with the constraint {settings.constraint} is not there"
    if settings.decode_constraint == "bijective":
        return "decoding with the constraint bijective is not there"
    if settings.decode_constraint == "symmetric" and settings.dual_search != "fixed":
        return f"projections by dual_search={settings.dual_search!r} are not there"
    if (settings.null, settings.final, settings.model1_constraint) != (settings.null_weight, False, "none"):
        return "null='length', final and model1_constraint are not there"
    if settings.learnt_length < min(longest, settings.max_length):
        return f"a sentence has {longest} words, and passing it over in training alone (train_length) is not there"
    if settings.stems and settings.stem_classes > 1:
        return f"words are cut to stems in {settings.stem_classes} ways, and only one is there (see stem_classes)"
    if lexicon:
        return "a lexicon of one's own is not there"
    if longest > _LONGEST:
        return f"a sentence has {longest} words, and {_LONGEST} is the most (see max_length)"
    return None


class DeviceText:
    """The text of a training on a device, with the verbs of `JudgedText`.

    Thresholds and links are found there; everything else is copied to the host when it is first asked for.

    Parameters
    ----------
    training : DeviceTraining
        One that has been run.
    text : Encoder
        What it was made of.
    """

    def __init__(self, training: DeviceTraining, text: Encoder) -> None:
        self.training, self.settings, self._text = training, training.settings, text

    @cached_property
    def model(self) -> Model:
        """What was learnt, with an entry for each of the text."""
        return self.training.fetch_model()

    @cached_property
    def corpus(self) -> Corpus:
        return self._text.with_table(self.model.rows, self.model.columns)

    @cached_property
    def parameters(self) -> Any:
        """As kernels of the processor take them."""
        return self.model.parameters(self.settings)

    def pairs(self, shard: int) -> Any:
        """Pairs of one shard with the entries of their cells, valid until the next is asked for."""
        return self.corpus.shard(shard)[0]

    def shard(self, shard: int) -> tuple[Any, Evidence]:
        """Pairs and evidence of one shard; the pairs are valid until the next is asked for."""
        return self.pairs(shard), self.training.fetch_evidence(*self.corpus.shards[shard])

    def decode(
        self, least: float, on_shard: Callable[[float], None], engine: Engine | None = None
    ) -> NDArray[np.int64]:
        """How many cells have each posterior, see `decode.spectrum`."""
        return self.training.spectrum()

    def links(self, threshold: float) -> Iterator[Links]:
        """The cells whose posterior reaches the threshold, all at once."""
        yield self.training.links(threshold)

    @property
    def scores(self) -> NDArray[np.float64]:
        """Log-probability of each side given the other: float64[n_pairs, 2]."""
        found: NDArray[np.float64] = self.training.scores.cpu().numpy()
        return found

    def hash(self) -> str:
        """SHA-256 of its words."""
        return self._text.hash()

    @cached_property
    def evidence(self) -> Evidence:
        """That of the whole text, cell by cell."""
        return self.training.fetch_evidence()


class DeviceTraining:
    """The training of one text on a device.

    Parameters
    ----------
    text : Encoded
    settings : Settings
    device : str
        As torch names it: "cuda", or "cpu" where Triton interprets its kernels (for tests).
    """

    def __init__(self, text: Encoded, settings: Settings, *, device: str = "cuda") -> None:
        import torch

        from isogloss.tasks.align._gpu import expect as kernels
        from isogloss.tasks.align._gpu.lexicon import index_cells

        self.settings, self.device, self.skipped = settings, device, text.skipped
        _check_ids(text)
        source, target = (_by_class(words, settings.cuts[0]) for words in (text.source_words, text.target_words))
        self.words, self.given_words = (source[0], target[0]), (text.source_words, text.target_words)
        self.place = source[1], target[1]
        self.n_sources, self.n_targets = len(text.source_words), len(text.target_words)
        self.n_pairs = max(1, int((~text.skipped).sum()))
        cell_offsets = np.zeros(len(text.skipped) + 1, np.int64)
        np.cumsum(np.diff(text.source_offsets) * np.diff(text.target_offsets), out=cell_offsets[1:])
        moved = [
            self._put(source[1])[self._put(text.source_ids)], self._put(text.source_offsets),
            self._put(target[1])[self._put(text.target_ids)], self._put(text.target_offsets), self._put(cell_offsets),
        ]  # fmt: skip
        classes = source[2], target[2]
        self.classes = (self._put(classes[0].astype(np.int64)), self._put(classes[1].astype(np.int64)))
        empty = torch.zeros(0, dtype=torch.int32, device=device)
        bare = kernels.Text._make([*moved, empty])
        if max(int(torch.diff(bare.source_offsets).max()), int(torch.diff(bare.target_offsets).max())) > _LONGEST:
            raise ParameterError(f"DeviceTraining: sentences may have {_LONGEST} words at the most")
        stems = self.classes if settings.stems else None
        self.table = index_cells(bare, self.n_sources, self.n_targets, stems, limit=self._limit())
        self.text = bare._replace(cells=self.table.cells)
        self.groups = kernels.buckets(self.text.source_offsets, self.text.target_offsets)
        self.frequency = (
            torch.bincount(self.text.source_ids, minlength=self.n_sources),
            torch.bincount(self.text.target_ids, minlength=self.n_targets),
        )
        self.prior = self._spelling() if settings.spelling else torch.zeros(0, dtype=torch.float32, device=device)
        self.shares = self._class_shares(classes)
        self.posterior = torch.zeros(int(cell_offsets[-1]), dtype=torch.int32, device=device)
        self.nulls = (torch.zeros_like(self.text.source_ids), torch.zeros_like(self.text.target_ids))
        self.scores = torch.full((len(text.skipped), 2), float("nan"), dtype=torch.float64, device=device)
        self.jumps, self.first = np.ones((2, 12)), np.ones((2, 11))
        self.learnt: Any = None
        self.trace: list[float] = []
        self._last: Any = None

    @property
    def iterations(self) -> int:
        return self.settings.model1_iterations + self.settings.iterations

    def run(self, on_step: Callable[[int, float], None] = lambda done, objective: None) -> None:
        """All iterations, then the posteriors that links are read from."""
        for number in range(self.iterations):
            self.step()
            on_step(number + 1, self.trace[-1])
        self.decode()

    def step(self) -> None:
        """One E-step and what it counts."""
        from isogloss.tasks.align._gpu.expect import expect

        settings, number = self.settings, len(self.trace)
        own_stage = number >= settings.model1_iterations
        parameters = self.estimate()
        self.learnt = self._last = None  # room for the counts to come
        self.learnt = expect(
            "hmm" if own_stage else "model1", settings.constraint if own_stage else "none", self.text, parameters,
            self.groups, self.posterior, self.nulls, self.scores,
            leave_out=settings.leave_out if number > settings.model1_iterations else 0.0, learn=True,
            least=LEAST if self._keeps(number) else 1,
        )  # fmt: skip
        if own_stage:
            jumped = self.learnt.jumps
            self.jumps = maximised(jumped[:, 0], jumped[:, 1], self.jumps)
            self.first = maximised(jumped[:, 2, :-1], jumped[:, 3, :-1], self.first)
        self.trace.append(self.learnt.objective / self.n_pairs)

    def _keeps(self, number: int) -> bool:
        """Whether something will be left out of what this step counts, see `Training`."""
        if number + 1 >= self.iterations:
            return self.settings.decode_leave_out > 0
        return self.settings.leave_out > 0 and number >= self.settings.model1_iterations

    def decode(self) -> None:
        """Posteriors under the constraint of decoding, in place of those of the last step."""
        from isogloss.tasks.align._gpu.expect import expect

        settings, parameters = self.settings, self.estimate()
        self.learnt = None  # room for the table on its way to the host
        expect(
            "hmm", settings.decode_constraint, self.text, parameters, self.groups, self.posterior, self.nulls,
            self.scores, steps=settings.dual_steps, rate=settings.dual_rate, tolerance=settings.dual_tolerance,
            leave_out=settings.decode_leave_out,
        )  # fmt: skip

    def estimate(self) -> Any:
        """M-step on the table: counts and priors to what the E-step reads. Kept until the next step."""
        if self._last is None:
            self._last = self._estimate()
        return self._last

    def _estimate(self) -> Any:
        import torch

        from isogloss.tasks.align._gpu.expect import UNIT, Parameters
        from isogloss.tasks.align._gpu.lexicon import blend

        settings, learnt = self.settings, self.learnt
        own = [torch.zeros(n + 1, dtype=torch.float32, device=self.device) for n in (self.n_sources, self.n_targets)]
        stems = self._stems(own) if learnt is not None and settings.stems else None
        weights, mass, columns = blend(
            self.table, learnt.counts if learnt is not None else None, self.prior, stems, self.n_targets, 1.0 / UNIT,
            settings.smoothing if learnt is not None else 1.0, 1.0 if learnt is not None else START,
        )  # fmt: skip
        if learnt is not None:  # the words a type has not met have the smoothing too
            mass += settings.smoothing * (self.n_targets - torch.diff(self.table.rows))
            met = torch.bincount(self.table.columns, minlength=self.n_targets)
            columns += settings.smoothing * (self.n_sources - met)
        nulls = [self._null(side) for side in (0, 1)]
        return Parameters(
            weights, _with_last(mass, 1.0), _with_last(columns, 1.0), nulls[0], nulls[1],
            torch.stack([null[:-1].double().sum() for null in nulls]).float(), self.jumps, self.first,
            settings.null_weight, settings.smoothing, own[0], own[1], *self.shares,
        )  # fmt: skip

    def _stems(self, own: list[Any]) -> tuple[Any, ...]:
        """Sums of pairs of stems and of stems, for `blend`; `own` is filled with what one occurrence adds."""
        import torch

        from isogloss.tasks.align._gpu.expect import UNIT
        from isogloss.tasks.align._gpu.lexicon import group_sums

        table, strength = self.table, self.settings.stems
        sums = group_sums(table.group, self.learnt.counts, len(table.other))
        before = torch.cat([sums.new_zeros(1), torch.cumsum(sums[:, 0], 0)])
        forward = (before[table.starts[1:]] - before[table.starts[:-1]]).double() / UNIT
        forward += 1e-6 * torch.diff(table.starts)
        n = int(self.classes[1][-1]) + 1
        backward = torch.zeros(n, dtype=torch.int64, device=self.device).index_add_(0, table.other, sums[:, -1])
        backward = backward.double() / UNIT + 1e-6 * torch.bincount(table.other, minlength=n)
        own[0][:-1] = torch.clamp(strength / forward[self.classes[0]], max=1e3)
        own[1][:-1] = torch.clamp(strength / backward[self.classes[1]], max=1e3)
        return (sums, *self.classes, forward, backward, *self.shares, strength)

    def _null(self, side: int) -> Any:
        """Pseudo-counts of the null word by type; the last, for unknown words, is half an occurrence."""
        from isogloss.tasks.align._gpu.expect import UNIT

        frequency = self.frequency[side].double()
        total = max(1.0, float(frequency.sum()))
        if self.learnt is None:
            return _with_last(frequency / total, 0.5 / total)
        spread = self.settings.null_smoothing * len(frequency)
        counted = (self.learnt.target_null if side else self.learnt.source_null)[:-1].double() / UNIT
        return _with_last(counted + spread * frequency / total, spread * 0.5 / total)

    def _spelling(self) -> Any:
        """The prior of words that are spelt alike, float32[n_entries]."""
        from isogloss.tasks.align._gpu.spelling import alike

        sides = _letters(*compared(*self.words))
        a, b = (tuple(self._put(array) for array in side) for side in sides)
        ratio = alike(self.table.rows, self.table.columns, a, b, _SHORTEST, _ALIKE)
        ratio.sub_(_ALIKE).div_(1.0 - _ALIKE).clamp_(min=0.0).square_()
        return ratio.mul_(self.settings.spelling)

    def _class_shares(self, classes: tuple[NDArray[np.int32], NDArray[np.int32]]) -> tuple[Any, Any]:
        """Which part of its class each word is; nothing without stems."""
        shares = []
        for kind, frequency in zip(classes, self.frequency, strict=True):
            share = np.zeros(len(kind) + 1, np.float32)
            if self.settings.stems and len(kind):
                share[:-1] = shares_of(kind, frequency.cpu().numpy())
            shares.append(self._put(share))
        return shares[0], shares[1]

    def _put(self, array: NDArray[Any]) -> Any:
        from isogloss.structures._gpu.transfer import put

        return put(array, self.device, pinned=False)

    def _limit(self) -> int:
        """Cells that are sorted at a time: 64 bytes each must fit into a quarter of what memory is free."""
        import torch

        if self.device == "cpu":
            return 1 << 22
        return int(min(1 << 28, max(1 << 20, torch.cuda.mem_get_info()[0] // 256)))

    # --- results

    def spectrum(self) -> NDArray[np.int64]:
        """How many cells have each posterior, as `decode.spectrum`."""
        from isogloss.tasks.align._gpu.decode import count_values

        bins: NDArray[np.int64] = count_values(self.posterior).cpu().numpy()
        return bins

    def links(self, threshold: float) -> Links:
        """All cells whose posterior is at least `threshold`, as `decode.links_above`."""
        from isogloss.tasks.align._gpu.decode import choose_cells
        from isogloss.tasks.align._gpu.expect import UNIT

        least = max(1, int(np.ceil(threshold * 2 * UNIT - 0.01)))
        chosen = choose_cells(self.posterior, self.text.cell_offsets, self.text.target_offsets, least)
        return Links(*chosen, None, None)

    def fetch_model(self, least: float = 0.0) -> Model:
        """The parameters that links were read with, on the host; without entries below `least`, see `Model.pruned`."""
        import torch

        p = self.estimate()
        source, target = (self._put(place.astype(np.int64)) for place in self.place)
        ends = [torch.cat([side, side.new_full((1,), len(side))]) for side in (source, target)]  # unknown words too
        types = self.frequency[0][source], self.frequency[1][target]
        sums = p.source_mass[ends[0]], p.target_mass[ends[1]], p.source_null[ends[0]], p.target_null[ends[1]]
        words = (Vocabulary(side) for side in self.given_words)
        before, after = ([tensor.cpu().numpy() for tensor in tensors] for tensors in (types, (*sums, p.null_mass)))
        table = self._as_given(p, least)
        return Model(*[*words, *before, *table, *after, self.jumps, self.first, np.ones((2, 11)), np.ones((2, 12))])

    def _as_given(self, p: Any, least: float) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """The table on the host, words numbered as they were given; some source types at a time, to need little room.

        Entries below `least` in both directions are left out.
        """
        import torch

        rows = self.table.rows
        place = self._put(self.place[0].astype(np.int64))
        given = self._put(np.argsort(self.place[1]).astype(np.int32))
        sizes = torch.diff(rows)[place]
        kept, columns, weights = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], [np.zeros((0, 2), np.float32)]
        for start, stop in shards(sizes.cpu().numpy(), limit=self._limit()):
            here, long = place[start:stop], sizes[start:stop]
            number = torch.repeat_interleave(torch.arange(stop - start, device=self.device), long)
            entry = (rows[here] - torch.cumsum(long, 0) + long)[number] + torch.arange(len(number), device=self.device)
            if least:
                forward, backward = p.weights[entry, 0], p.weights[entry, 1]
                keep = forward >= least * p.source_mass[here[number]]
                keep |= backward >= least * p.target_mass[self.table.columns[entry].long()]
                number, entry = number[keep], entry[keep]
            target = given[self.table.columns[entry].long()]
            order = torch.sort(number * self.n_targets + target).indices
            kept.append(torch.bincount(number, minlength=stop - start).cpu().numpy())
            columns.append(target[order].cpu().numpy())
            weights.append(p.weights[entry[order]].cpu().numpy())
        return np.cumsum(np.concatenate(kept)), np.concatenate(columns), np.concatenate(weights)

    def fetch_evidence(self, start: int = 0, stop: int | None = None) -> Evidence:
        """Posteriors and log-probabilities of all pairs, or of some, on the host."""
        pairs = slice(start, len(self.skipped) if stop is None else stop)

        def of(offsets: Any) -> slice:
            return slice(int(offsets[pairs.start]), int(offsets[pairs.stop]))

        posterior = self.posterior[of(self.text.cell_offsets)].cpu().numpy().view(np.uint16).reshape(-1, 2)
        parts = of(self.text.source_offsets), of(self.text.target_offsets)
        nulls = [null[part].cpu().numpy().astype(np.uint16) for null, part in zip(self.nulls, parts, strict=True)]
        return Evidence(posterior, nulls[0], nulls[1], self.scores[pairs].cpu().numpy())


def trained(
    aligner: Any, text: Encoder, progress: Progress, *, resume: bool = False, memory: int | None = None
) -> DeviceText | None:
    """Train and decode on the GPU as the options of an `HMMAligner` say, and as `device` says.

    None where there is no GPU or it cannot do it, and "auto" leaves the choice; `ParameterError` where it was asked for
    by name. This process is to take no more than `memory`: with "auto", a GPU is left alone if it would probably take
    more, before its libraries are loaded, because they stay.
    """
    probably = host_bytes(text, int(_ENTRIES * text.cut_cells))
    if aligner.device == "auto" and memory is not None and probably > memory:
        return None
    if choose(aligner.device, worth=text.n_source_words >= _WORTH) != "cuda" or text.all_skipped.all():
        return None
    import torch

    aligner._trained_on = None  # what an earlier training left on the GPU makes room
    given = Encoded.of(text)
    settings = _settings(aligner, given)
    longest = int(max(np.diff(given.source_offsets).max(initial=0), np.diff(given.target_offsets).max(initial=0)))
    reason = obstacle(settings, lexicon=aligner._lexicon is not None, longest=longest)
    if resume:
        reason = "a checkpoint is gone on with where it was written, on the processor"
    if reason is None:
        found = _run(given, settings, progress, None if memory is None else memory - host_bytes(text, 0))
        if not isinstance(found, str):
            return DeviceText(found, text)
        torch.cuda.empty_cache()
        reason = found
    if aligner.device == "cuda":
        raise ParameterError(f"device='cuda': {reason}. Use device='auto' or 'cpu'")
    return None


def host_bytes(text: Encoder, entries: int) -> int:
    """What training on a GPU takes on the host: libraries, the words of the text twice, forms, and the model."""
    n_tokens = sum(int(side.counts.sum()) for side in text.sides)
    forms = sum(len(side.counts) for side in text.sides)
    words = 4 * n_tokens + 16 * len(text.all_skipped)
    return _LIBRARIES + 2 * words + PER_FORM * forms + _PER_ENTRY * entries


def _run(text: Encoded, settings: Settings, progress: Progress, memory: int | None) -> DeviceTraining | str:
    """A whole training, or why there was no room for it; the model on the host is to take no more than `memory`."""
    import torch

    try:
        training = DeviceTraining(text, settings)
        if memory is not None and _PER_ENTRY * len(training.table.columns) > memory:
            return f"the model of this text may take more than the {max(0, memory) / 1e6:,.0f} MB of memory left for it"
        progress.start("Training", training.iterations)
        training.run(lambda done, objective: progress.update(done))
        progress.finish()
        return training
    except (torch.OutOfMemoryError, MemoryError):
        return "the text needs more memory than the GPU has free"


def _settings(aligner: Any, text: Encoded) -> Settings:
    """What the options come to; with `device="cuda"` one way to cut words to stems, if no other number was given."""
    settings: Settings = aligner._asked(len(text.source_ids), len(text.source_words), len(text.target_words))
    if aligner.device == "cuda" and aligner.stem_classes is None:
        return replace(settings, stem_classes=1)
    return settings


def _check_ids(text: Encoded) -> None:
    """Refuse numbers that kernels cannot index with."""
    for words, ids, offsets in (text[:3], text[3:6]):
        whole = len(offsets) == len(text.skipped) + 1 and offsets[0] == 0 and offsets[-1] == len(ids)
        if not len(text.skipped) or not whole or np.diff(offsets).min() < 0:
            raise ParameterError("DeviceTraining: offsets should begin with 0, never fall, and end with the tokens")
        if len(ids) and not 0 <= ids.min() <= ids.max() < len(words):
            raise ParameterError(f"DeviceTraining: numbers of words should be from 0 to {len(words) - 1}")


def _by_class(words: Any, cut: Cut) -> tuple[list[str], NDArray[np.int32], NDArray[np.int32]]:
    """Words in the order of their stems, the new number of each old one, and the class of each new one."""
    kind = _classes(words, cut)[0]
    order = np.argsort(kind, kind="stable")
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    listed = list(words)
    return [listed[k] for k in order.tolist()], place, kind[order]


def _with_last(values: Any, last: float) -> Any:
    """float32, with one more element for unknown words."""
    import torch

    return torch.cat([values, values.new_full((1,), last)]).float()


def _letters(*sides: list[str]) -> list[tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]]:
    """Words as numbers of letters, where they start, and numbers of whole forms (-1: a letter that stands alone)."""
    flat = np.frombuffer("".join("".join(words) for words in sides).encode("utf-32-le", "surrogatepass"), np.uint32)
    numbers = np.unique(flat, return_inverse=True)[1].astype(np.int32)
    same: dict[str, int] = {}
    made, begin = [], 0
    for words in sides:
        starts = np.zeros(len(words) + 1, np.int64)
        np.cumsum([len(word) for word in words], out=starts[1:])
        whole = [same.setdefault(word, len(same)) if len(word) > 1 or not word.isalpha() else -1 for word in words]
        made.append((numbers[begin : begin + starts[-1]], starts, np.array(whole, np.int32)))
        begin += int(starts[-1])
    return made
