"""Kernels for a GPU against those for the processor.

They run where torch sees a GPU; and, slowly and on little data, on the processor where Triton interprets its kernels
(``TRITON_INTERPRET=1``, with torch and triton installed). Elsewhere only the choice of the device is tested.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from isogloss import samples
from isogloss.engine import devices
from isogloss.errors import ParameterError
from isogloss.progress import QuietProgress
from isogloss.structures import Chain, ProjectiveTree, SpanningTree
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.align import HMMAligner, decode
from isogloss.tasks.align._numba.expect import no_evidence
from isogloss.tasks.align.corpus import Corpus, Encoder
from isogloss.tasks.align.device import DeviceText, DeviceTraining, Encoded, host_bytes, obstacle, trained
from isogloss.tasks.align.expectation import LEAST, expect_shard
from isogloss.tasks.align.training import Training

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
UNITS = 64  # of 65535: how far posteriors of the whole training may drift apart; 23 was seen on the sample


@pytest.fixture(scope="module")
def device() -> str:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    if torch.cuda.is_available():
        return "cuda"
    if INTERPRETED:
        return "cpu"
    pytest.skip("no GPU")


# --- the choice of the device


def test_cpu_is_the_cpu_and_auto_without_a_gpu_too(monkeypatch):
    monkeypatch.setattr(devices, "_PLACES", ("/nowhere/nvidia0",))
    assert devices.choose("cpu") == devices.choose("auto") == "cpu"
    assert not devices.likely()


def test_missing_torch_is_said_with_what_to_install(monkeypatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(ParameterError, match=r"torch is not installed.*isogloss\[gpu\]"):
        devices.choose("cuda")


def test_a_gpu_that_torch_does_not_see_is_said(monkeypatch):
    class Torch:
        __version__ = "2.x"

        class cuda:
            @staticmethod
            def is_available():
                return False

    monkeypatch.setattr(devices, "find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "torch", Torch)
    with pytest.raises(ParameterError, match="sees no GPU"):
        devices.choose("cuda")
    monkeypatch.setattr(devices, "_PLACES", ("/",))
    assert devices.choose("auto") == "cpu"


def test_auto_imports_no_torch_for_small_texts(monkeypatch):
    monkeypatch.setattr(devices, "likely", lambda: True)
    monkeypatch.setattr(devices, "find_spec", lambda name: pytest.fail("looked for torch"))
    assert devices.choose("auto", worth=False) == "cpu"


def test_using_device_is_left_again():
    with devices.using_device("cpu"):
        assert devices.current() == "cpu"
    assert devices.current() == "cpu"


def test_nobody_imports_torch_unasked():
    code = "import sys, isogloss.tasks.align.hmm, isogloss.structures.loopy; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_command_says_what_is_missing(monkeypatch, isogloss, tmp_path):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    text = tmp_path / "text"
    text.write_text("das Haus ||| the house\n")
    answer = isogloss("align", text, "--device", "cuda")
    assert answer.status == 2 and "isogloss[gpu]" in answer.err


@pytest.mark.parametrize(
    ("options", "lexicon", "longest", "reason"),
    [
        ({"stem_classes": 1}, False, 100, None),
        ({"stems": 0.0}, False, 100, None),
        ({}, False, 100, "3 ways"),
        ({"constraint": "symmetric"}, False, 100, "symmetric"),
        ({"decode_constraint": "bijective"}, False, 100, "bijective"),
        ({"stem_classes": 1, "dual_search": "adaptive"}, False, 100, "dual_search='adaptive'"),
        ({"stem_classes": 1, "null": "length"}, False, 100, "null='length'"),
        ({"stem_classes": 1, "final": True}, False, 100, "final"),
        ({"stem_classes": 1, "model1_constraint": "agreement"}, False, 100, "model1_constraint"),
        ({"stem_classes": 1, "train_length": 40}, False, 100, "train_length"),
        ({"stem_classes": 1, "train_length": 100}, False, 100, None),
        ({"stem_classes": 1}, True, 100, "lexicon"),
        ({"stem_classes": 1}, False, 2000, "2000 words"),
    ],
)
def test_obstacles_are_named(options, lexicon, longest, reason):
    found = obstacle(HMMAligner(**options)._asked(), lexicon=lexicon, longest=longest)
    assert (found is None) == (reason is None) and (reason or "") in (found or "")


def test_auto_leaves_what_the_gpu_cannot_do_and_cuda_says_it(monkeypatch):
    """Without a GPU: the choice is made before anything is copied there."""
    pytest.importorskip("torch")
    monkeypatch.setattr("isogloss.tasks.align.device.choose", lambda device, worth: "cuda")
    text = Encoder.of([samples.bitext("en-de")], lowercase=True, max_length=1000)
    assert trained(HMMAligner(), text, QuietProgress()) is None
    for options, reason in (({"stem_classes": 3}, "3 ways"), ({"constraint": "symmetric"}, "symmetric")):
        with pytest.raises(ParameterError, match=f"device='cuda'.*{reason}"):
            trained(HMMAligner(device="cuda", **options), text, QuietProgress())
    with pytest.raises(ParameterError, match="checkpoint"):
        trained(HMMAligner(device="cuda"), text, QuietProgress(), resume=True)


# --- the aligner


@pytest.fixture(scope="module")
def both(device):
    """The sample, trained on the processor and on the device, with few iterations where kernels are interpreted."""
    n, options = (6, {"model1_iterations": 1, "iterations": 2}) if device == "cpu" else (None, {})
    bitext = samples.bitext("en-de")[:n]
    aligner = HMMAligner(device="cpu", stem_classes=1, **options).fit(bitext)
    training = DeviceTraining(encoded(bitext), aligner._settings, device=device)
    training.run()
    return bitext, aligner, training


def read(bitext):
    return Encoder.of([bitext], lowercase=True, max_length=1000)


def encoded(bitext):
    return Encoded.of(read(bitext))


def test_one_step_is_that_of_the_processor_but_for_rounding(both):
    bitext, _, training = both
    corpus, settings = Corpus.of(bitext, lowercase=True, max_length=1000), training.settings
    here = Training(corpus, settings)
    state = here.begin()
    model, own = here.estimate(state)
    pairs, parameters = corpus.pairs, model.parameters(settings, own, floor=1.0)
    evidence, _ = expect_shard(
        corpus, pairs, parameters, settings, "model1", "none", no_evidence(pairs), leave_out=0.0, learn=True
    )
    there = DeviceTraining(encoded(bitext), settings, device=training.device)
    there.step()
    assert np.abs(there.fetch_evidence().posterior.astype(int) - evidence.posterior).max() <= 1
    state, info = here.step(state)
    assert there.trace[0] == pytest.approx(info.objective, abs=1e-4)
    assert abs(int(there.learnt.counts.sum()) - int(state.counts.sum())) <= 2 * corpus.n_cells


def test_a_step_that_is_left_out_of_the_next_counts_no_cells_that_are_nearly_0(both):
    bitext, _, training = both
    here = Training(Corpus.of(bitext, lowercase=True, max_length=1000), training.settings)
    there = DeviceTraining(encoded(bitext), training.settings, device=training.device)
    state = here.begin()
    for _ in range(there.iterations):
        state, _ = here.step(state)
        there.step()
    known, found = state.evidence.shard(0)[1].astype(int), there.fetch_evidence().posterior
    assert np.abs(known - found).max() <= UNITS
    most = found.max(axis=1)
    assert (most == 0).any() and most[most > 0].min() >= LEAST
    assert int(there.learnt.counts.sum()) == int(found[:, 0].sum(dtype=np.int64))  # of both directions, which agree


def test_posteriors_are_those_of_the_processor(both):
    bitext, aligner, training = both
    _, _, here = aligner._evidence(bitext)
    there = training.fetch_evidence()
    assert np.abs(there.posterior.astype(int) - here.posterior).max() <= UNITS
    assert np.abs(there.scores - here.scores).max() < 1e-2
    assert np.allclose(training.trace, aligner.trace_, atol=1e-3)


def test_links_are_those_of_the_processor(both):
    """But for cells whose posterior lies as near to the threshold as posteriors may differ."""
    _, aligner, training = both
    near = UNITS / 65535
    for low, high in ((aligner.threshold_, aligner.threshold_ - near), (aligner.threshold_ + near, aligner.threshold_)):
        few, many = training.links(low), decode.links_above(*_posteriors(aligner), high)
        assert _as_set(few) <= _as_set(many)
        few, many = decode.links_above(*_posteriors(aligner), low), training.links(high)
        assert _as_set(few) <= _as_set(many)
    assert len(_as_set(training.links(aligner.threshold_))) > 10


def _posteriors(aligner):
    text = aligner._trained_on[1]
    return text.corpus.pairs, text.evidence.posterior


def _as_set(links):
    return set(zip(links.pair.tolist(), links.source.tolist(), links.target.tolist(), strict=True))


def test_the_table_is_that_of_the_processor(both):
    _, aligner, training = both
    here, there = (
        {
            (model.source_words.types[e], model.target_words.types[model.columns[k]]): model.weights[k]
            for e in range(len(model.source_words))
            for k in range(model.rows[e], model.rows[e + 1])
        }
        for model in (aligner._trained_on[1].model, training.fetch_model())
    )
    assert here.keys() == there.keys()
    assert max(np.abs(here[pair] - there[pair]).max() for pair in here) < 1e-2


def test_the_text_on_the_device_has_the_verbs_of_that_on_the_processor(both):
    bitext, aligner, training = both
    here, there = aligner._trained_on[1], DeviceText(training, read(bitext))
    assert there.hash() == here.hash() == there.corpus.hash()
    assert np.array_equal(there.corpus.rows, here.corpus.rows)
    assert np.abs(there.scores - here.scores).max() < 1e-2
    assert there.decode(0.05, lambda done: None).sum() == here.corpus.n_cells
    pairs, evidence = there.shard(0)
    for name in ("source_ids", "source_offsets", "target_ids", "target_offsets", "cell_offsets"):
        assert np.array_equal(getattr(pairs, name), getattr(here.pairs(0), name))
    owner = np.repeat(np.arange(len(there.corpus.source_words)), np.diff(there.corpus.rows))
    cell = pairs.cell_offsets[1] + 1  # the second target word of the second pair, beside its first source word
    entry = pairs.cells[cell]
    assert owner[entry] == pairs.source_ids[pairs.source_offsets[1]]
    assert there.corpus.columns[entry] == pairs.target_ids[pairs.target_offsets[1] + 1]
    assert np.array_equal(evidence.posterior, there.evidence.posterior)
    part = training.fetch_evidence(2, 4)
    assert np.array_equal(part.posterior, evidence.posterior[pairs.cell_offsets[2] : pairs.cell_offsets[4]])
    assert np.array_equal(part.target_null, evidence.target_null[pairs.target_offsets[2] : pairs.target_offsets[4]])
    paths = [aligner._best_paths(text.pairs(0), text.parameters) for text in (here, there)]
    assert all(np.mean(a == b) > 0.95 for a, b in zip(*paths, strict=True))


@pytest.mark.parametrize("piece", [1 << 22, 7])
def test_a_table_comes_back_in_the_order_of_the_text(both, monkeypatch, piece):
    """However much of it is sorted at a time; without improbable entries it is what the processor keeps."""
    _, aligner, training = both
    monkeypatch.setattr(DeviceTraining, "_limit", lambda self: piece)
    model, other = training.fetch_model(), aligner._trained_on[1].model
    assert list(model.source_words.types) == list(other.source_words.types)
    assert np.array_equal(model.target_counts, other.target_counts)
    assert np.allclose(model.source_mass, other.source_mass, atol=1e-2)
    assert np.allclose(model.target_null, other.target_null, atol=1e-2)
    for e in range(len(model.source_words)):
        mine, theirs = (slice(each.rows[e], each.rows[e + 1]) for each in (model, other))
        order = np.argsort(other.columns[theirs])
        assert np.array_equal(model.columns[mine], other.columns[theirs][order])
        assert np.allclose(model.weights[mine], other.weights[theirs][order], atol=1e-2)
    few = training.fetch_model(least=1e-2)
    assert 0 < len(few.columns) < len(model.columns)
    assert np.array_equal(few.rows, model.pruned(1e-2).rows) and np.array_equal(few.columns, model.pruned(1e-2).columns)


def test_words_of_a_script_without_vowels_are_compared_by_consonants(device):
    from isogloss.tasks.align.priors import spelling_prior

    pairs = [
        (["محمد", "في", "لندن"], ["Mohammed", "in", "London"]),
        (["بوش", "زار", "باريس"], ["Bush", "visited", "Paris"]),
    ]
    bitext = HMMAligner(iterations=1).fit(pairs)._trained_on[0]
    settings = HMMAligner(stem_classes=1)._asked()
    there = DeviceTraining(encoded(bitext), settings, device=device)
    prior = spelling_prior(*there.words, there.table.rows.cpu().numpy(), there.table.columns.cpu().numpy())
    assert (prior > 0.5).sum() >= 3
    assert np.allclose(there.prior.cpu().numpy(), settings.spelling * prior, atol=1e-6)


def test_two_runs_on_the_device_give_the_same_bytes(both):
    bitext, _, training = both
    again = DeviceTraining(encoded(bitext), training.settings, device=training.device)
    again.step()
    assert again.trace[0] == training.trace[0]
    if training.device == "cuda":
        for _ in range(1, again.iterations):
            again.step()
        again.decode()
        assert bool((again.posterior == training.posterior).all())


def test_an_aligner_on_the_gpu_has_all_its_verbs(device, tmp_path):
    if device != "cuda":
        pytest.skip("no GPU")
    bitext = samples.bitext("en-de")
    here, there = HMMAligner(device="cpu", stem_classes=1).fit(bitext), HMMAligner(device="cuda").fit(bitext)
    assert isinstance(there._trained_on[1], DeviceText) and there.options_ == here.options_
    assert there.data_hash_ == here.data_hash_
    assert str(here.predict(bitext)[3]) == str(there.predict(bitext)[3])
    for p, q in zip(here.predict_proba(bitext), there.predict_proba(bitext), strict=True):
        assert np.abs(p - q).max() < 2e-3
    assert np.abs(here.pair_scores(bitext) - there.pair_scores(bitext)).max() < 1e-3
    assert there.explain(bitext, 0, source=0).keys() == here.explain(bitext, 0, source=0).keys()
    there.save(tmp_path / "model")
    loaded = HMMAligner.load(tmp_path / "model")
    here.save(tmp_path / "other")
    other = HMMAligner.load(tmp_path / "other")
    assert [str(a) for a in loaded.predict(bitext)] == [str(a) for a in other.predict(bitext)]


def test_a_text_in_parts_is_learnt_on_the_gpu_too_if_its_model_fits_into_memory(device):
    if device != "cuda":
        pytest.skip("no GPU")
    bitext = samples.bitext("en-de")
    parts = [bitext.part(0, 20), bitext.part(20, len(bitext))]
    whole, pieces = HMMAligner(device="cuda").fit(bitext), HMMAligner(device="cuda").fit_parts(parts)
    assert isinstance(pieces._trained_on[1], DeviceText) and pieces.threshold_ == whole.threshold_
    assert _as_set(decode.joined(pieces.predict_parts())) == _as_set(whole.predict(bitext))
    with pytest.raises(ParameterError, match="of memory"):
        trained(HMMAligner(device="cuda"), read(bitext), QuietProgress(), memory=1000)


def test_a_gpu_is_left_alone_where_its_libraries_do_not_fit_into_memory(monkeypatch):
    text = read(samples.bitext("en-de"))
    asked = []
    monkeypatch.setattr("isogloss.tasks.align.device.choose", lambda name, worth: asked.append(name) or "cpu")
    assert host_bytes(text, 10**9) > 24 * 10**9 + host_bytes(text, 0) - 1 > 1.7e9
    assert trained(HMMAligner(), text, QuietProgress(), memory=10**9) is None and not asked
    assert trained(HMMAligner(), text, QuietProgress(), memory=2 * 10**9) is None and asked == ["auto"]
    assert trained(HMMAligner(), text, QuietProgress()) is None and asked == ["auto", "auto"]


def test_numbers_that_cannot_be_indexed_with_are_refused(device):
    text = encoded(samples.bitext("en-de"))
    settings = HMMAligner(stem_classes=1)._asked()
    for wrong in (
        text._replace(source_ids=text.source_ids + 1_000_000),
        text._replace(target_ids=text.target_ids - 1),
        text._replace(source_offsets=text.source_offsets[::-1].copy()),
        text._replace(target_offsets=text.target_offsets[:-1]),
    ):
        with pytest.raises(ParameterError, match="DeviceTraining"):
            DeviceTraining(wrong, settings, device=device)
    long = np.zeros(1025, np.int32), np.array([0, 1025])
    with pytest.raises(ParameterError, match="1024"):
        DeviceTraining(Encoded(["a"], *long, ["b"], *long, np.zeros(1, bool)), settings, device=device)


@pytest.mark.parametrize("size", [16, 32, 64])
def test_pairs_of_every_bucket(device, size):
    """Lengths at the edges of a bucket, one side short."""
    rng = np.random.default_rng(size)
    shapes = [(size, 1), (2, size)] if device == "cpu" else [(size, 1), (2, size), (size, size), (size - 1, size // 2)]
    source = [[f"w{k}" for k in rng.integers(0, 30, n)] for n, _ in shapes]
    target = [[f"w{k}" for k in rng.integers(0, 30, m)] for _, m in shapes]
    aligner = HMMAligner(device="cpu", stem_classes=1, model1_iterations=1, iterations=1, dual_steps=1).fit(
        list(zip(source, target, strict=True))
    )
    bitext, here = aligner._trained_on
    training = DeviceTraining(encoded(bitext), aligner._settings, device=device)
    training.run()
    assert np.abs(training.fetch_evidence().posterior.astype(int) - here.evidence.posterior).max() <= UNITS


# --- structures


def on(device, kernel, batch, *more):
    from isogloss.structures._gpu import transfer

    return transfer.solved(kernel, batch.scores, *more, device=device)


def test_chains(device):
    from isogloss.structures._gpu.chain import chains_log

    rng = np.random.default_rng(0)
    arrays = [2.0 * rng.normal(size=(n, k, k)) for n, k in ((5, 3), (1, 4), (0, 2), (4, 17), (2, 40))]
    arrays[0][2, 1] = -np.inf
    many = Chain.batch(arrays)
    values, marginals = on(device, chains_log, many, many.scores.shapes)
    assert np.allclose(values, many.log_partition(), atol=1e-10)
    assert np.allclose(marginals, many.marginals().values, atol=1e-12)


@pytest.mark.parametrize("single_root", [False, True])
def test_trees(device, single_root):
    from isogloss.structures._gpu.eisner import marginal_trees
    from isogloss.structures._gpu.spanning import spanning_trees

    rng = np.random.default_rng(1)
    arrays = [3.0 * rng.normal(size=(n, n)) for n in (2, 5, 8, 17, 1, 3)]
    arrays[1][[0, 3], 2] = -np.inf
    sizes = np.array([len(array) for array in arrays])
    for kind, kernel in ((ProjectiveTree, marginal_trees), (SpanningTree, spanning_trees)):
        many = kind.batch(arrays, single_root=single_root)
        values, marginals = on(device, kernel, many, sizes, single_root)
        assert np.allclose(values, many.log_partition(), atol=1e-8)
        assert np.allclose(marginals, many.marginals().values, atol=1e-8)


def test_trees_that_do_not_fit_are_left_to_the_processor(device):
    from isogloss.structures._gpu.eisner import MOST_NODES, marginal_trees
    from isogloss.structures._gpu.spanning import spanning_trees

    impossible = np.full((4, 4), -np.inf)
    impossible[1, 2] = impossible[2, 3] = impossible[3, 1] = 0.0  # a ring without root
    steep = np.zeros((4, 4))
    steep[0, 1:] = -1e5  # what float64 cannot hold
    arrays = [impossible, steep, np.zeros((MOST_NODES + 1, MOST_NODES + 1))]
    sizes = np.array([len(array) for array in arrays])
    stack = ProjectiveTree.batch([np.zeros(array.shape) for array in arrays]).scores
    many = type("Many", (), {"scores": stack.like(np.concatenate([array.ravel() for array in arrays]))})
    assert np.isnan(on(device, marginal_trees, many, sizes, False)[0]).all()
    values, marginals = on(device, spanning_trees, many, sizes, False)
    assert np.isnan(values[:2]).all() and np.isfinite(marginals).all()


@pytest.mark.parametrize("constraint", ["tree", "projective"])
@pytest.mark.parametrize(
    "families", [(), ("grand",), ("siblings",), ("valence",), ("grand", "siblings", "valence")], ids="-".join
)
def test_beliefs(device, constraint, families):
    from isogloss.structures._gpu import loopy, transfer

    rng = np.random.default_rng(2)
    allowed = [rng.random((n + 1, n + 1)) < 0.7 for n in (4, 6)]
    for matrix in allowed:
        matrix[0] = True
    for candidates in (Candidates.all([3, 1, 5]), Candidates.kept(allowed)):
        parts = TreeParts.of(candidates, families)
        scores = rng.normal(size=parts.n_parts)
        here = LoopyTrees(parts, scores, constraint=constraint)._run
        layout = loopy.Layout.of(parts, lambda array: transfer.put(array, device))
        found = loopy.believe(layout, transfer.put(scores, device), constraint == "projective", False, 5, 1e-4)
        for mine, theirs in zip(here, map(transfer.fetched, found), strict=True):
            assert np.allclose(mine, theirs, atol=1e-8)


def test_batches_are_solved_where_they_are_told_to(device):
    if device != "cuda":
        pytest.skip("no GPU")
    rng = np.random.default_rng(3)
    links = [rng.normal(size=(n, n)) for n in (4, 9, 70)]
    ring = np.full((4, 4), -np.inf)
    ring[0, 1] = ring[1, 2] = ring[2, 3] = 0.0
    parts = TreeParts.of(Candidates.all([3, 0, 5]), ["grand", "siblings"])
    batches = [
        Chain.batch([rng.normal(size=(n, 5, 5)) for n in (3, 0, 8)]),
        ProjectiveTree.batch([*links, ring]),
        SpanningTree.batch([*links, ring], single_root=True),
        LoopyTrees(parts, rng.normal(size=parts.n_parts)),
    ]
    for batch in batches:
        with devices.using_device("cuda"):
            there = batch.with_scores(batch.scores)
            marginals = there.marginals()
        assert np.allclose(there.log_partition(), batch.log_partition(), atol=1e-8)
        assert np.allclose(marginals.values, batch.marginals().values, atol=1e-8)
