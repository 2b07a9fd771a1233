"""Saved models with something wrong in them, to see what loading and using them does.

A saved model may come from anywhere, and its checksum is no proof of what it holds. `mutate` changes a model in one to
three places, `damage` the files of one; `run_case` loads the result and calls everything that the model can do. Only
`IsoglossError` may come out, or results that are well formed, within some seconds and a gigabyte. `fuzz` runs cases in
a process of their own (`Children`), since kernels that index out of bounds may end the process.

    python -m isogloss.testing.fuzz --kind align.matching --from 0 --count 1000
"""

from isogloss.testing.fuzz.cases import Failure, run_case
from isogloss.testing.fuzz.children import Children, Report, fuzz
from isogloss.testing.fuzz.files import damage
from isogloss.testing.fuzz.models import MODELS
from isogloss.testing.fuzz.mutations import mutate

__all__ = ["MODELS", "Children", "Failure", "Report", "damage", "fuzz", "mutate", "run_case"]
