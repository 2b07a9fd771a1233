"""`isogloss multiview`: models of two languages teach each other on a bitext without annotation."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import (
    Encoding,
    Errors,
    Json,
    Quiet,
    Resume,
    Threads,
    Tokenise,
    check_output,
    choice,
    compiling,
    progress_for,
    say,
    write_result,
)
from isogloss.cli._evidence import check_bitext, links_option
from isogloss.cli._memory import Look
from isogloss.cli._models import load_aligner, load_multiview
from isogloss.cli._multiview import Reading, load_model, read_annotated, read_pairs
from isogloss.cli._options import with_options
from isogloss.cli._training import Training
from isogloss.cli._treebanks import SaveFolder, standard_input_once
from isogloss.errors import UsageError
from isogloss.tasks.joint.multiview_options import RULES, MultiviewOptions

if TYPE_CHECKING:
    from isogloss.data.sentence_pairs import SentencePairs
    from isogloss.tasks.joint import Multiview

__all__ = ["COMMANDS", "apply", "train"]

LEARNING = "Learning"
WEAK = "What weak models learn from, and retrained ones"
MIXTURES = ("plain", "equal")


def _file(option: str, help: str, metavar: str = "FILE") -> Any:
    return typer.Option(option, metavar=metavar, rich_help_panel=WEAK, help=help)


@with_options(
    MultiviewOptions,
    "candidates", "rule", "decoder", "source_choice", "target_choice", "threshold", "rounds", "l2",
    panel=LEARNING, first=("task",),
)  # fmt: skip
def train(
    bitext: Annotated[
        tuple[str, str],
        typer.Option(
            "--bitext", metavar="SRC TGT", show_default=False,
            help="Two texts, line by line translations: plain text or, for parsers that look at tags, CoNLL-U.",
        ),
    ],
    source_model: Annotated[
        str,
        typer.Option(
            "--source-model", metavar="MODEL", show_default=False,
            help="By `isogloss extract train`, `tag train` or `parse train`, in the language of SRC.",
        ),
    ],
    target_model: Annotated[
        str, typer.Option("--target-model", metavar="MODEL", show_default=False, help="The same in that of TGT.")
    ],
    save: SaveFolder,
    links: Annotated[str | None, links_option()] = None,
    aligner: Annotated[
        str | None,
        typer.Option(
            "--aligner",
            metavar="MODEL",
            help="An aligner by `isogloss align --save`, of more text; otherwise one learns from SRC and TGT.",
        ),
    ] = None,
    retrain: Annotated[
        bool,
        typer.Option(
            "--retrain",
            help="Also learn models of each language alone from what was found: folders source and target in MODEL.",
        ),
    ] = False,
    source_train: Annotated[
        str | None,
        _file(
            "--source-train",
            "What --source-model learnt from. The weak model then learns anew from it, and the retrained one again; "
            "without it, the weak model is the full one without its weights of words, and the retrained one has SRC "
            "alone.",
        ),
    ] = None,
    target_train: Annotated[str | None, _file("--target-train", "The same of --target-model.")] = None,
    source_weak: Annotated[
        str | None, _file("--source-weak", "A weaker model than --source-model, of your own.", "MODEL")
    ] = None,
    target_weak: Annotated[str | None, _file("--target-weak", "The same of --target-model.", "MODEL")] = None,
    mixture: Annotated[
        str | None,
        choice(
            *MIXTURES, option="--mixture", panel=WEAK,
            help="With --retrain: each added sentence counts like any other (plain, the default for names), or all of "
            "them count as much as all others together (equal, the default for tags and trees).",
        ),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    tokenise: Tokenise = None,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Let two models of different languages teach each other on a bitext that nobody annotated.

    It is learnt which names, tags or trees of the two languages go together.

    `isogloss multiview apply` then annotates both sides of a bitext together; with --retrain there are models of one
    language as well, which need no translation.
    """
    check_bitext(bitext)
    _check(retrain=retrain, mixture=mixture, train=(source_train, target_train), weak=(source_weak, target_weak))
    training = Training(save, *bitext, links, source_train, target_train, quiet=quiet)
    declared = MultiviewOptions(**options)
    declared.check_params()
    task = declared.task
    paths = (source_model, target_model)
    with compiling(f"multiview-train-{task}", quiet, "60 s"):
        from isogloss.data.formats import read_links
        from isogloss.data.sentence_pairs import SentencePairs
        from isogloss.tasks.joint import Multiview
        from isogloss.tasks.joint.weakening import learn_weaker
        from isogloss.tasks.transfer.stages import Stages

        progress = progress_for(quiet)
        models = [load_model(task, path, threads) for path in paths]
        pairs = read_pairs(bitext, (models[0], models[1]), paths, Reading(task, tokenise, encoding, errors))
        if links is not None:
            found = read_links(links, bitext=pairs.bitext(), encoding=encoding)
            pairs = SentencePairs(pairs.source, pairs.target, found)
        known = [None if path is None else read_annotated(task, path, encoding, errors)
                 for path in (source_train, target_train)]  # fmt: skip
        ready = [None if path is None else load_model(task, path, threads) for path in (source_weak, target_weak)]
        linker = None if aligner is None else load_aligner(aligner, threads)
        given = [*models, *ready, linker]
        stages = Stages(training.checkpoint, resume, _fingerprint(pairs, known, given, options))
        weak: list[Any] = []
        for name, own, text, model in zip(("source_weak", "target_weak"), ready, known, models, strict=True):
            if own is not None:
                weak.append(own)
            elif text is not None:
                learn = partial(learn_weaker, model, text, progress, **stages.keeping(name))
                weak.append(stages.model(name, learn))
            else:
                weak.append(None)
        both = stages.model(
            "both",
            lambda: Multiview(**options, threads=threads).fit(
                pairs, models[0], models[1], progress, source_weak=weak[0], target_weak=weak[1],
                aligner=linker, **stages.keeping("both"),
            ),
        )  # fmt: skip
        again = None
        if retrain:
            again = both.retrain(pairs, known[0], known[1], progress, mixture=mixture, **stages.keeping("again"))
    told = {
        "task": task, "pairs": len(pairs), "weights": both.feature_weights(), "trace": both.trace_,
        "retrained": again is not None,
    }  # fmt: skip
    training.keep(_Both(both, again), *_lines(both, pairs, again, save), json=told if json else None, checkpoints=())
    stages.discard()


def _check(
    *, retrain: bool, mixture: str | None, train: tuple[str | None, str | None], weak: tuple[str | None, str | None]
) -> None:
    """Refuse what says nothing."""
    if mixture is not None and not retrain:
        raise UsageError("--mixture says nothing without --retrain. Leave it out, or give --retrain")
    if mixture is not None and not any(train):
        raise UsageError("--mixture is of two texts. Give --source-train or --target-train as well")
    for side, text, model in zip(("source", "target"), train, weak, strict=True):
        if text is not None and model is not None and not retrain:
            raise UsageError(
                f"--{side}-train is for weak and retrained models, and the weak one is given (--{side}-weak). Leave "
                "one out, or give --retrain"
            )


def _fingerprint(
    pairs: SentencePairs, known: list[Any], models: list[Any], options: dict[str, Any]
) -> dict[str, Any]:  # fmt: skip
    from isogloss.store import data_hash
    from isogloss.tasks.joint.given import hash_of_model
    from isogloss.tasks.joint.multiview import text_hash

    texts = [text_hash(pairs), *(None if one is None else data_hash(one.to_bytes()) for one in known)]
    return {"options": options, "texts": texts, "models": [hash_of_model(one) for one in models]}


class _Both:
    """A bilingual model with the monolingual ones that were retrained, to be saved."""

    def __init__(self, both: Multiview, retrained: tuple[Any, Any] | None) -> None:
        self.both, self.retrained = both, retrained

    def save(self, path: str) -> None:
        self.both.save(path, retrained=self.retrained)


def _lines(both: Multiview, pairs: SentencePairs, again: tuple[Any, Any] | None, save: str) -> list[str]:
    """What was learnt, for people."""
    from isogloss.data.rows import counted

    low, high = (f"{one:.1f}" for one in both.agreement_)
    lines = [
        f"{counted(len(pairs), 'pair')}, {counted(both.n_features_, 'weight')}; of what the full models find, the weak "
        f"ones find {low} (source) and {high} (target) in 100"
    ]
    if again is not None:
        lines.append(
            f"retrained models of one language each in {save.rstrip('/')}/source and {save.rstrip('/')}/target"
        )
    return lines


def apply(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", show_default=False, help="A folder by `isogloss multiview train`.")
    ],
    source: Annotated[str, typer.Argument(metavar="SRC", show_default=False, help="Sentences, as for training.")],
    target: Annotated[str, typer.Argument(metavar="TGT", show_default=False, help="Their translations.")],
    out_source: Annotated[
        str | None, typer.Option("--out-source", metavar="FILE", help="Write SRC with what is found here.")
    ] = None,
    out_target: Annotated[
        str | None, typer.Option("--out-target", metavar="FILE", help="Write TGT with what is found here.")
    ] = None,
    rule: Annotated[
        str | None,
        choice(*RULES, option="--rule", help="What chooses among pairs of analyses; as in training if not given."),
    ] = None,
    separate: Annotated[
        bool, typer.Option("--separate", help="By the models of each language alone, to compare with.")
    ] = False,
    links: Annotated[
        str | None,
        typer.Option(
            "--links", metavar="FILE", help="Links between words, a line a pair; by the model's aligner if not given."
        ),
    ] = None,
    threads: Threads = None,
    quiet: Quiet = False,
    tokenise: Tokenise = None,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Annotate both sides of a bitext together: names in columns, tags and trees in CoNLL-U.

    What SRC and TGT have marked themselves is not looked at, but for tags that parsers ask for.
    """
    began = time.perf_counter()
    if out_source is None and out_target is None:
        raise UsageError("nothing would be written. Give --out-source or --out-target")
    if out_source == out_target:
        raise UsageError(f"{out_source}: two results cannot go to one file. Give each its own")
    if separate and (rule is not None or links is not None):
        raise UsageError("--separate looks at no pairs: leave out --rule and --links, or --separate")
    standard_input_once(source, target, links)
    for path in (out_source, out_target):
        check_output(path, [source, target, links])
    with compiling("multiview-apply", quiet):
        from isogloss.data import Text
        from isogloss.data.formats import read_links
        from isogloss.data.rows import counted
        from isogloss.data.sentence_pairs import SentencePairs

        loaded = load_multiview(model, threads)
        how = Reading(loaded.task, tokenise, encoding, errors)
        pairs = read_pairs((source, target), loaded.models_[:2], (model, model), how)
        if links is not None:
            found = read_links(links, bitext=pairs.bitext(), encoding=encoding)
            pairs = SentencePairs(pairs.source, pairs.target, found)
        elif not separate:
            Look(loaded.models_.aligner, model).at(pairs.bitext())
        made = loaded.separate(pairs) if separate else loaded.predict(pairs, rule=rule)
        for path, side in ((out_source, made.source), (out_target, made.target)):
            if path is not None:
                assert not isinstance(side, Text)  # models annotate it
                write_result(path, side.to_bytes())
    say(f"{counted(len(made), 'pair')}, {time.perf_counter() - began:.1f} s", quiet)


COMMANDS = {"train": train, "apply": apply}
"""The commands of this group: ``isogloss multiview train`` and so on."""
