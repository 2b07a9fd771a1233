"""Numerical tests as other processors would run them: `make test-portable`.

The order of sums depends on the processor: OpenBLAS has kernels for each family, NumPy takes the widest vectors that
there are, and Numba compiles for the machine it runs on. Each setting below lets this machine play another one, in a
process of its own. Links of the bundled samples should be the same on all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SAMPLES = HERE.parent / "src" / "isogloss" / "samples"
SETTINGS = {
    "AVX2 (Haswell, Zen)": {"OPENBLAS_CORETYPE": "Haswell"},
    "AVX-512 (Skylake-X)": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "SSE4 (Nehalem)": {"OPENBLAS_CORETYPE": "Nehalem"},
    "any 64-bit processor": {
        "OPENBLAS_CORETYPE": "Prescott",
        "NUMBA_CPU_NAME": "generic",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL",
    },
}
NEEDS = {"AVX-512 (Skylake-X)": "avx512f", "AVX2 (Haswell, Zen)": "avx2"}
"""What the processor has to have for a setting, in the words of /proc/cpuinfo; kernels for less run everywhere."""
TESTS = {
    "structures": """
        aligned_segments bitrees brackets cfg chain chain2 dpp factorgraph factorgraph_several family_tree hidden_trees
        itg jumps latent_cfg lattice loopy loopy_pairs matching projective propagators search_error semimarkov
        semimarkov2 spanning valence
    """,
    "learners": """
        backoff check_learner conserved correspondence dirichlet em exponentiated features gibbs graphs harmonic
        kbest_mira learners loglinear margin margin_growth meanfield minibatches multiview_learner pairs passes
        posterior posterior_groups risk rule_model searched semi_supervised topic_words word_classes
    """,
    "tasks": """
        adapt_correspondence adapt_documents align_features align_part_features aligner constituency
        constituency_grammar decode expect extract extract_pairs induction induction_evidence itg_aligner
        joint_constituents joint_pairs matching_aligner metrics morphemes option_effects overlap parse parse_joint
        parse_joint_stacking parse_labelled parse_quick priors quadratic_aligner quality_gate quasi ranking segment
        segment_bilingual segment_text segmented_aligner summaries tag tag_adapting tag_dictionary_tagger tag_graph
        tag_hmm tag_projected threads topics training transfer_completing transfer_conserving transfer_several
        transfer_soft_tags translate_language_model translate_search translate_sparse
    """,
}
"""Files whose results are sums of floats, without `test_` and `.py`."""


def possible(setting: str) -> bool:
    """Whether this processor can play that one."""
    flags = Path("/proc/cpuinfo")
    return setting not in NEEDS or not flags.exists() or NEEDS[setting] in flags.read_text().split()


def links(variables: dict[str, str]) -> list[bytes]:
    """What `isogloss align` writes for the bundled samples."""
    align = [sys.executable, "-m", "isogloss", "align", "--quiet", "-o", "-"]
    texts = ([SAMPLES / f"en-{other}.{side}.txt" for side in ("en", other)] for other in ("de", "tr"))
    environment = os.environ | variables
    return [subprocess.run([*align, *text], env=environment, capture_output=True, check=True).stdout for text in texts]


def main() -> None:
    files = [str(HERE / f"test_{name}.py") for names in TESTS.values() for name in names.split()]
    command = [sys.executable, "-m", "pytest", "-n", "2", "-m", "not slow and not data", *files]
    failed, here = [], links({})
    for setting, variables in SETTINGS.items():
        if not possible(setting):
            print(f"{setting}: left out, this processor has no {NEEDS[setting]}", flush=True)
            continue
        print(f"{setting}: {' '.join(f'{name}={value!r}' for name, value in variables.items())}", flush=True)
        if links(variables) != here:
            failed.append(f"{setting} (other links of the samples)")
        if subprocess.run(command, env=os.environ | variables).returncode:
            failed.append(setting)
    if failed:
        raise SystemExit(f"Tests fail on: {', '.join(failed)}")


if __name__ == "__main__":
    main()
