"""Kernels for a GPU against those for the processor.

They run where torch sees a GPU; and, slowly and on little data, on the processor where Triton interprets its kernels
(``TRITON_INTERPRET=1``, with torch and triton installed). Elsewhere only the choice of the device is tested.
"""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import numpy as np
import pytest

from isogloss import samples
from isogloss.engine import devices
from isogloss.errors import ParameterError
from isogloss.structures import Chain, ProjectiveTree, SpanningTree
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.align import HMMAligner, decode
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.device import DeviceTraining, Encoded, Fetched, obstacle
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
        ({}, False, 100, None),
        ({"constraint": "symmetric"}, False, 100, "symmetric"),
        ({"decode_constraint": "bijective"}, False, 100, "bijective"),
        ({}, True, 100, "lexicon"),
        ({}, False, 2000, "2000 words"),
    ],
)
def test_obstacles_are_named(options, lexicon, longest, reason):
    found = obstacle(HMMAligner(**options)._asked(), lexicon=lexicon, longest=longest)
    assert (found is None) == (reason is None) and (reason or "") in (found or "")


def test_what_lies_on_the_device_is_fetched_once_and_can_be_copied():
    calls = []
    lazy = Fetched(lambda: calls.append(1) or ["a", "b"])
    twin = copy.copy(lazy)
    assert not calls and len(lazy) == 2 and lazy.index("b") == 1 and len(calls) == 1
    assert twin.count("a") == 1


# --- the aligner


@pytest.fixture(scope="module")
def both(device):
    """The sample, trained on the processor and on the device, with few iterations where kernels are interpreted."""
    n, options = (6, {"model1_iterations": 1, "iterations": 1}) if device == "cpu" else (None, {})
    bitext = samples.bitext("en-de")[:n]
    aligner = HMMAligner(device="cpu", **options).fit(bitext)
    training = DeviceTraining(Encoded.of(bitext, lowercase=True, max_length=1000), aligner._settings, device=device)
    training.run()
    return bitext, aligner, training


def test_one_step_is_that_of_the_processor_but_for_rounding(both):
    bitext, aligner, training = both
    corpus = Corpus.of(bitext, lowercase=True, max_length=1000)
    here = Training(corpus, aligner._settings)
    state, info = here.step(here.begin())
    text = Encoded.of(bitext, lowercase=True, max_length=1000)
    there = DeviceTraining(text, training.settings, device=training.device)
    there.step()
    assert np.abs(there.fetch_evidence().posterior.astype(int) - state.evidence.posterior).max() <= 1
    assert there.trace[0] == pytest.approx(info.objective, abs=1e-4)
    assert abs(int(there.learnt.counts.sum()) - int(state.counts.sum())) <= 2 * corpus.n_cells


def test_posteriors_are_those_of_the_processor(both):
    bitext, aligner, training = both
    _, _, here = aligner._evidence(bitext)
    there = training.fetch_evidence()
    assert np.abs(there.posterior.astype(int) - here.posterior).max() <= UNITS
    assert np.abs(there.scores - here.scores).max() < 1e-2
    assert np.allclose(training.trace, aligner.trace_, atol=1e-3)


def test_links_are_those_of_the_processor(both):
    """But for cells whose posterior lies as near to the threshold as posteriors may differ."""
    bitext, aligner, training = both
    near = UNITS / 65535
    for low, high in ((aligner.threshold_, aligner.threshold_ - near), (aligner.threshold_ + near, aligner.threshold_)):
        few, many = training.links(low, bitext), decode.links_above(*_posteriors(aligner), high)
        assert _as_set(few) <= _as_set(many)
        few, many = decode.links_above(*_posteriors(aligner), low), training.links(high, bitext)
        assert _as_set(few) <= _as_set(many)
    assert len(_as_set(training.links(aligner.threshold_, bitext))) > 10


def _posteriors(aligner):
    _, corpus, evidence = aligner._trained_on
    return corpus.pairs, evidence.posterior


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
        for model in (aligner._own_model, training.fetch_model())
    )
    assert here.keys() == there.keys()
    assert max(np.abs(here[pair] - there[pair]).max() for pair in here) < 1e-2


def test_two_runs_on_the_device_give_the_same_bytes(both):
    bitext, _, training = both
    again = DeviceTraining(
        Encoded.of(bitext, lowercase=True, max_length=1000), training.settings, device=training.device
    )
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
    here, there = HMMAligner(device="cpu").fit(bitext), HMMAligner(device="cuda").fit(bitext)
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


def test_numbers_that_cannot_be_indexed_with_are_refused(device):
    text = Encoded.of(samples.bitext("en-de"), lowercase=True, max_length=1000)
    settings = HMMAligner()._asked()
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
    aligner = HMMAligner(device="cpu", model1_iterations=1, iterations=1, dual_steps=1).fit(
        list(zip(source, target, strict=True))
    )
    bitext, _, here = aligner._trained_on
    training = DeviceTraining(Encoded.of(bitext, lowercase=True, max_length=1000), aligner._settings, device=device)
    training.run()
    assert np.abs(training.fetch_evidence().posterior.astype(int) - here.posterior).max() <= UNITS


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
