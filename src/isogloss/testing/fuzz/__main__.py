"""The command: `python -m isogloss.testing.fuzz --kind align.matching --from 0 --count 1000`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

from isogloss import store
from isogloss.testing.fuzz.cases import Case
from isogloss.testing.fuzz.children import Children, fuzz
from isogloss.testing.fuzz.models import MODELS


def main() -> int:
    """Run cases and print those that failed, a line each; the exit status says whether there were any."""
    parser = argparse.ArgumentParser(prog="python -m isogloss.testing.fuzz", description=__doc__)
    parser.add_argument("--kind", help="a kind such as tag.crf, or one model of it such as tag.crf/2; all by default")
    parser.add_argument("--from", dest="first", type=int, default=0, help="first seed")
    parser.add_argument("--count", type=int, default=100, help="number of seeds for each model")
    parser.add_argument("--kernels", type=Path, help="check bounds in kernels, which are kept in this folder")
    parser.add_argument("--show", type=int, metavar="SEED", help="run one case in this process, with its traceback")
    given = parser.parse_args()
    chosen = [name for name in MODELS if given.kind in (None, name, name.partition("/")[0])]
    if not chosen:
        parser.error(f"there is no kind or model {given.kind!r}; there are {', '.join(MODELS)}")
    with Children(given.kernels) as children:
        failed = [name for name in chosen if _tried(name, given, children)]
    return int(bool(failed))


def _tried(name: str, given: argparse.Namespace, children: Children) -> bool:
    """Run cases of one model; whether any failed."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "valid.model"
        warnings.simplefilter("ignore")
        MODELS[name]().save(folder)
        if given.show is not None:
            _show(name, folder, given.show, Path(place))
            return False
        report = fuzz(
            name, folder, given.first, given.count, children=children,
            tell=lambda found: print(found.line, flush=True),
        )  # fmt: skip
    counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(report.outcomes.items()))
    print(f"{name}: {counts}", file=sys.stderr, flush=True)
    return bool(report.failures)


def _show(name: str, folder: Path, seed: int, scratch: Path) -> None:
    case = Case.of(name, store.read(folder), seed, scratch)
    print(f"{name} seed {seed}: {case.change}", flush=True)
    case.use(scratch)


if __name__ == "__main__":
    sys.exit(main())
