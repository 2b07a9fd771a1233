"""`isogloss rank`: learn to rank documents or translations, rank them, and score what was ranked."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from isogloss.cli._common import (
    Encoding,
    Errors,
    Json,
    Output,
    Quiet,
    Resume,
    Threads,
    check_output,
    compiling,
    progress_for,
    say,
    write_json,
    write_result,
)
from isogloss.cli._models import header_of, load_ranker
from isogloss.cli._options import with_options
from isogloss.cli._training import Training
from isogloss.cli._treebanks import SaveFolder, standard_input_once
from isogloss.tasks.documents.ranking_options import RankerOptions

__all__ = ["COMMANDS", "apply", "score", "train"]

LEARNING = "Learning"

GroupsFile = Annotated[
    str,
    typer.Argument(
        metavar="GROUPS",
        show_default=False,
        help="A JSON object a line, for each candidate: group, id, grade, and query, text, features ...; or "
        "`group ||| rank ||| reference ||| output`, a higher rank being better.",
    ),
]


@with_options(
    RankerOptions,
    "choose", "least", "scale", "trainer", "regularisation", "folds", "balance", "most_pairs", "iterations",
    "tolerance", "seed",
    panel=LEARNING, first=("constraints", "aggregator", "features", "lexicon"),
)  # fmt: skip
def train(
    groups: GroupsFile,
    save: SaveFolder,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:
    """Learn to rank from groups whose candidates have grades.

    Candidates are documents found by a query, helped by documents in another language (`"other": true`) if there are
    any; or outputs of systems beside a reference; or anything with features. `isogloss rank apply` then ranks new ones.
    """
    training = Training(save, groups, options.get("lexicon"), quiet=quiet)
    told = RankerOptions(**options)
    told.check_params()
    with compiling(f"rank-train-{told.trainer}", quiet, "10 s"):
        from isogloss.data.formats.groups import read_groups
        from isogloss.data.rows import counted
        from isogloss.tasks.documents.ranking import BilingualRanker

        given = read_groups(groups, encoding=encoding, errors=errors)
        ranker = BilingualRanker(**options, threads=threads)
        ranker.fit(given, progress_for(quiet), checkpoint=training.checkpoint, resume=resume)
    weights = ranker.feature_weights()
    kinds = ", ".join(ranker._learnt.extractor.kinds)
    line = (
        f"{counted(len(given), 'group')}, {counted(given.n_candidates, 'candidate')}, "
        f"{counted(len(weights), 'feature')} ({kinds}), regularisation {ranker.regularisation_:g}"
    )
    found = {
        "groups": len(given), "candidates": given.n_candidates, "regularisation": ranker.regularisation_,
        "rounds": len(ranker.trace_), "trace": ranker.trace_, "weights": weights,
    }  # fmt: skip
    training.keep(ranker, line, json=found if json else None)


def apply(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", show_default=False, help="A folder by `isogloss rank train`.")
    ],
    groups: GroupsFile,
    output: Output = None,
    threads: Threads = None,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Rank the candidates of groups: group, id, place from 1 on, and score, between tabs.

    Lines are in the order of the file. Grades that are there are not looked at.
    """
    began = time.perf_counter()
    check_output(output, [groups])
    header_of(model, "rank")
    with compiling("rank-apply", quiet, "10 s"):
        from isogloss.data.formats.groups import read_groups, write_ranking
        from isogloss.data.rows import counted

        ranker = load_ranker(model, threads)
        given = read_groups(groups, encoding=encoding, errors=errors)
        write_result(output, write_ranking(given, ranker.predict(given)))
    seconds = time.perf_counter() - began
    say(f"{counted(len(given), 'group')}, {counted(given.n_candidates, 'candidate')}, {seconds:.1f} s", quiet)


def score(
    found: Annotated[
        str, typer.Argument(metavar="OUT", show_default=False, help="A ranking by `isogloss rank apply`.")
    ],
    gold: Annotated[str, typer.Argument(metavar="GOLD", show_default=False, help="The same groups, with grades.")],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="FILE", help="Another ranking: is the difference more than chance?"),
    ] = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Score a ranking against grades: pairs in the right order, and Kendall's tau, in percent, with intervals.

    Pairs with the same grade are left out; a pair that the ranking ties is not right. Intervals are over groups.
    """
    check_output(output, [found, gold, against])
    standard_input_once(found, gold, against)
    from isogloss.data.formats.groups import read_groups, read_ranking
    from isogloss.metrics.ranking import compare_rankings, score_ranking

    right = read_groups(gold, encoding=encoding, errors=errors)
    ours = read_ranking(found, right)
    measured = score_ranking(ours, right)
    told = measured.as_dict()
    lines = [str(measured), f"TAU = {measured.tau:.2f} | groups:{measured.groups}"]
    if against is not None:
        theirs = read_ranking(against, right)
        told["against"] = {}
        for measure in ("pairs", "tau"):
            gain = compare_rankings(ours, theirs, right, measure=measure)
            told["against"][measure] = gain.as_dict()
            lines.append(str(gain))
    if json:
        write_json(told, output)
        return
    write_result(output, "\n".join([*lines, ""]))


COMMANDS = {"train": train, "apply": apply, "score": score}
"""The commands of this group: ``isogloss rank train`` and so on."""
