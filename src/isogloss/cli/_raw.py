"""A glance at text that is split at spaces: has anybody tokenised it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.cli._frame import warn

if TYPE_CHECKING:
    from isogloss.data import Bitext
    from isogloss.data.reading import Reading

__all__ = ["warn_if_raw"]


def warn_if_raw(bitext: Bitext, remembered: Reading | None = None) -> None:
    """Say in one line which sides look raw, and what to do; `remembered` is what a model that is applied remembers."""
    from isogloss.tasks.align._doctor_sides import raw_findings

    sides = {"source": bitext.source, "target": bitext.target}
    found = [
        (text.name, finding)
        for role, text in sides.items()
        if text.form is not None and text.form.tokenise == "space"
        for finding in raw_findings(text, role)
    ]
    if not found:
        return
    remedy = found[0][1].remedy
    if remembered is not None and remembered.options:  # which would refuse another tokeniser
        remedy = "Tokenise it first, as the text that the model learnt from was"
    warn("; ".join(dict.fromkeys(f"{name}: {finding.message}" for name, finding in found)) + f". {remedy}")
