"""`isogloss translate`: learn to translate from a bitext, translate, and score translations."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import (
    Encoding,
    Errors,
    Json,
    Output,
    Quiet,
    Resume,
    Stopwatch,
    Threads,
    check_output,
    choice,
    compiling,
    is_standard_output,
    progress_for,
    say,
    warn,
    write_json,
    write_result,
)
from isogloss.cli._memory import as_remembered
from isogloss.cli._models import header_of, load_translator
from isogloss.cli._options import with_options
from isogloss.cli._reading import ReadingOptions, with_reading
from isogloss.cli._training import Training
from isogloss.cli._treebanks import SaveFolder, standard_input_once
from isogloss.errors import BitextError, IsoglossError, UsageError
from isogloss.tasks.translate.options import STAGES, TAGGED, TranslatorOptions

if TYPE_CHECKING:
    from isogloss.data import Bitext, Text
    from isogloss.tasks.translate import Translation, Translator

__all__ = ["COMMANDS", "apply", "explain", "score", "train"]

SEARCHING = "Searching"
TUNING = "Tuning"
SPARSE = "Sparse features"
BLOCK = 100
"""Lines that are translated at once."""
PARTIAL = ".partial"
BARS = "|||"
"""What stands between the fields of an n-best list; in a translation it is written as Moses writes it."""

Model = Annotated[
    str, typer.Argument(metavar="MODEL", show_default=False, help="A folder by `isogloss translate train`.")
]


@with_reading
@with_options(
    TranslatorOptions,
    "order", "max_length", "least_count", "candidates", "reordering", "distortion_limit", "orientation", "beam", "pops",
    "table_limit",
    "iterations", "nbest", "cap", "passes", "seed",
    panel="Learning",
)  # fmt: skip
@with_options(
    TranslatorOptions,
    "features", "trainer", "update", "proposals", "rate", "dense_rate", "epochs", "learn_on", "feature_count",
    "folds", "batch", "classes",
    panel=SPARSE, instead_of="sparse",
)  # fmt: skip
def train(
    source: Annotated[str, typer.Argument(metavar="SRC", show_default=False, help="Source text, a sentence a line.")],
    target: Annotated[str, typer.Argument(metavar="TGT", show_default=False, help="Its translation, line by line.")],
    save: SaveFolder,
    dev: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--dev", metavar="SRC TGT", show_default=False,
            help="Other sentences and their translations, to tune the weights on. Otherwise every twentieth pair of "
            "the training text is held out for it, about a thousand at most.",
        ),
    ] = None,
    links: Annotated[
        str | None,
        typer.Option("--links", metavar="LINKS", help="Links between words of SRC and TGT; otherwise they are found."),
    ] = None,
    monolingual: Annotated[
        str | None,
        typer.Option("--monolingual", metavar="TEXT", help="More text of the target language, for the language model."),
    ] = None,
    tags: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--tags", metavar="SRC TGT", show_default=False, rich_help_panel=SPARSE,
            help="SRC and TGT as `isogloss tag apply` writes them, in CoNLL-U: their parts of speech take the place of "
            "classes of words.",
        ),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    *,
    asked: ReadingOptions,
    options: dict[str, Any],
    sparse: dict[str, Any],
) -> None:  # fmt: skip
    """Learn to translate from a parallel text.

    Words are linked, phrases are taken from the links, the target side teaches a language model, and the weights of all
    of it are tuned on other sentences. `isogloss translate apply` then translates. With --features, phrases and
    patterns of tags and links have weights too, learnt from training sentences that the rest of the text translates.
    """
    training = Training(save, source, target, links, monolingual, *(dev or ()), *(tags or ()), quiet=quiet)
    options |= sparse
    wanted = TranslatorOptions(**options)
    wanted.check_params()
    if tags is not None and wanted.features not in TAGGED:
        raise UsageError(f"--tags says nothing with --features {wanted.features}. Leave it out, or take pos or all")
    if asked.columns is not None or asked.languages is not None:
        raise UsageError(
            "--columns and --languages are for a text in one file, and SRC and TGT are two. Leave them out"
        )
    if tags is not None and "classes" in sparse:
        raise UsageError("--classes says nothing with --tags, which take the place of classes. Leave one of them out")
    reading = asked.of()
    with compiling("translate-train", quiet, "120 s"):
        from isogloss.data.formats import read_bitext, read_links
        from isogloss.data.treebank import Treebank
        from isogloss.tasks.translate import Translator

        bitext = read_bitext(source, target, **reading)
        held = None if dev is None else read_bitext(*dev, **reading)
        if held is not None:
            _refuse_known(held, bitext)
        given = None if links is None else read_links(links, bitext=bitext)
        more = None
        if monolingual is not None:
            more = _text(monolingual, asked.encoding, asked.errors, reading["tokenise"], reading["normalise"])
        tagged = None if tags is None else (Treebank.read(tags[0]), Treebank.read(tags[1]))
        translator = Translator(**options, threads=threads)
        translator.fit(
            bitext, held, links=given, monolingual=more, tags=tagged, progress=progress_for(quiet),
            checkpoint=training.checkpoint, resume=resume,
        )  # fmt: skip
    stages = [training.checkpoint, *(f"{training.checkpoint}.{stage}" for stage in STAGES)]
    if not len(translator.table_):
        warn(f"{bitext.source.name}, {bitext.target.name}: no links, and so no phrases were found in them: every word "
             "will be copied. Learn from more pairs, or give links with --links")  # fmt: skip
    told = _told_of(translator, len(bitext)) if json else None
    training.keep(translator, *_lines_of(translator), json=told, checkpoints=stages)


def _refuse_known(dev: Bitext, bitext: Bitext) -> None:
    """Refuse to tune on the training text, which phrases and the language model know too well; warn of overlap."""
    pairs = [pair for pair in dev if all(pair)]
    wanted = set(pairs)
    known = {pair for pair in bitext if pair in wanted}
    twice = sum(pair in known for pair in pairs)
    finding = (
        f"{dev.source.name}, {dev.target.name}: {twice:,} of {len(pairs):,} pairs to tune on stand in the training "
        "text, too"
    )
    if pairs and twice == len(pairs):
        raise BitextError(
            f"{finding}, and what is learnt from them knows them too well. Give other sentences with --dev, or leave "
            "it out: some pairs are then held out"
        )
    if 2 * twice >= len(pairs) > 0:
        warn(f"{finding}; weights that are tuned on them trust long phrases too much")


def _text(path: str, encoding: str, errors: str, mode: str, form: Any) -> Text:
    from isogloss.data.formats import read_bytes
    from isogloss.data.formats.files import name_of
    from isogloss.data.tokenise import tokenise_bytes

    return tokenise_bytes(read_bytes(path, encoding=encoding, errors=errors), mode, form, name=name_of(path))


def _lines_of(translator: Translator) -> Iterator[str]:
    table, model = translator.table_, translator.language_model_
    yield (
        f"{len(table):,} phrase pairs ({table.nbytes / 1e6:,.0f} MB), {len(model):,} n-grams of up to {model.order} "
        f"words ({model.nbytes / 1e6:,.0f} MB)"
    )
    if translator.reachable_ is not None:
        yield (
            f"sparse features ({translator.features}): references of {translator.reachable_:.1%} of the sentences that "
            f"they were learnt from can be reached; BLEU {translator.learning_.max():.2f} on dev after the best of "
            f"{len(translator.learning_)} passes over them"
        )
    if len(translator.tuning_):
        best, many = int(translator.tuning_.argmax()) + 1, len(translator.tuning_)
        yield f"BLEU {translator.tuning_.max():.2f} on dev (best of {many} rounds: {best})"


def _told_of(translator: Translator, pairs: int) -> dict[str, Any]:
    table, model = translator.table_, translator.language_model_
    return {
        "pairs": pairs, "phrase_pairs": len(table), "ngrams": len(model), "bytes": table.nbytes + model.nbytes,
        "weights": translator.weights_, "tuning": translator.tuning_,
        "dev": float(translator.tuning_.max()) if len(translator.tuning_) else None,
        "learning": translator.learning_, "reachable": translator.reachable_,
    }  # fmt: skip


@with_options(
    TranslatorOptions, "beam", "pops", "table_limit", "reordering", "distortion_limit", panel=SEARCHING
)  # fmt: skip
def apply(
    model: Model,
    source: Annotated[str, typer.Argument(metavar="IN", show_default=False, help="Text to translate.")],
    output: Output = None,
    nbest: Annotated[
        int | None,
        typer.Option(
            "--nbest", metavar="N", min=1, max=10_000, show_default=False,
            help="The N best translations of each sentence, as `line ||| translation ||| features ||| score`, lines "
            "counted from 0.",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="A JSON object in each line: translations with their phrases and features.")
    ] = False,
    from_disk: Annotated[
        bool,
        typer.Option(
            "--from-disk",
            help="Leave the model in its file and read what the text needs of it; done by itself where the model is "
            "larger than most of the free memory.",
        ),
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on behind the lines that a stopped run left beside its output.")
    ] = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Translate: one line for each line of the input, empty for an empty one.

    Lines are written as they are translated, so that a pipe may wait for each. Options of searching that are not given
    are those of the model.
    """
    watch = Stopwatch()
    check_output(output, [source])
    header_of(model, "translate")
    if resume and (is_standard_output(output) or nbest is not None or json):
        raise UsageError("--resume goes on with a file of plain translations: give -o, without --nbest and --json")
    with compiling("translate-apply", quiet, "60 s"):
        translator = load_translator(model, threads, from_disk)
        if options.get("reordering", "distance") != "distance":  # what the limit of the model has nothing to do with
            translator.set_params(distortion_limit=TranslatorOptions().distortion_limit)
        translator.set_params(**options)
        translator.check_params()
        parts = _Parts(translator, source, encoding, errors)
        if is_standard_output(output) or nbest is not None or json:
            write_result(output, _pieces(translator, parts, nbest, json))
        else:
            _written(translator, parts, str(output), resume, quiet)
    from isogloss.data.rows import counted

    rate = watch.rate(parts.words)
    say(f"{counted(parts.lines, 'line')}, {watch}, {rate:,.0f} words a second", quiet)
    if parts.unknown:
        warn(f"{parts.name}: {parts.unknown:,} of {parts.words:,} words are not known, and were copied")


class _Parts:
    """The input, some lines at a time, read as the model's text was."""

    def __init__(self, translator: Translator, path: str, encoding: str, errors: str) -> None:
        from isogloss.data.formats.files import name_of

        self.translator, self.path, self.encoding, self.errors = translator, path, encoding, errors
        self.form = as_remembered({"tokenise": None, "normalise": None}, translator.reading_, None)
        self.name = name_of(path)
        self.lines = self.words = self.unknown = 0

    def texts(self, skip: int = 0) -> Iterator[Text]:
        """All but the first lines."""
        from isogloss.data.formats import open_lines
        from isogloss.data.tokenise import tokenise_bytes

        for block in open_lines(self.path, size=BLOCK, encoding=self.encoding, errors=self.errors, eager=True):
            text = tokenise_bytes(block, self.form["tokenise"], self.form["normalise"], name=self.name)
            before, self.lines = self.lines, self.lines + len(text)
            if self.lines <= skip:
                continue
            text = text[max(0, skip - before) :]
            self.words += text.n_words
            if text.n_words:
                known = self.translator.table_.source.encode(text.vocabulary)
                self.unknown += int((known[text.ids.flat] < 0).sum())
            yield text
        if self.lines < skip:
            raise BitextError(
                f"{self.name}: has {self.lines:,} lines, and {skip:,} were translated before. Is it another text?"
            )


def _pieces(translator: Translator, parts: _Parts, nbest: int | None, json: bool) -> Iterator[str]:
    if nbest is None and not json:
        for line in translator.predict_parts(parts.texts()):
            yield line + "\n"
        return
    for number, found in enumerate(translator.predict_nbest_parts(parts.texts(), nbest or 1)):
        yield _json_line(found, nbest) if json else "".join(_nbest_line(number, one) for one in found)


def _json_line(found: list[Translation], nbest: int | None) -> str:
    import json

    every = [one.as_dict() for one in found]
    told: Any = every if nbest is not None else (every[0] if every else None)
    return json.dumps(told, ensure_ascii=False) + "\n"


def _nbest_line(number: int, one: Translation) -> str:
    features = " ".join(f"{name}= {value:.6g}" for name, value in one.features.items())
    text = one.text.replace(BARS, "&#124;" * len(BARS))
    return f"{number} ||| {text} ||| {features} ||| {one.score:.6g}\n"


def _written(translator: Translator, parts: _Parts, output: str, resume: bool, quiet: bool) -> None:
    """Translate into a file beside the output, which becomes the output when all is done."""
    from isogloss.learners.runner import Interrupted

    partial = output + PARTIAL
    done = 0
    if resume and os.path.exists(partial):
        with open(partial, "rb+") as file:
            kept = file.read()
            kept = kept[: kept.rfind(b"\n") + 1]
            file.truncate(len(kept))
            done = kept.count(b"\n")
        say(f"{partial}: going on behind line {done:,}", quiet)
    progress = progress_for(quiet)
    progress.start("Translating")
    try:
        with open(partial, "ab" if done else "wb") as file:
            for line in translator.predict_parts(parts.texts(done)):
                file.write(line.encode("utf-8", "backslashreplace") + b"\n")
                done += 1
                if done % BLOCK == 0:
                    file.flush()
                    progress.update(done, f"{done:,} lines")
    except KeyboardInterrupt as stop:
        raise Interrupted(f"{str(stop) or 'stopped by Ctrl-C'}. {_kept(partial, done)}") from None
    except IsoglossError:
        say(_kept(partial, done), quiet)
        raise
    finally:
        progress.finish()
    with open(partial, "rb") as file:
        write_result(output, iter(lambda: file.read(1 << 20), b""))
    os.unlink(partial)


def _kept(partial: str, lines: int) -> str:
    return f"{partial} keeps {lines:,} lines: run the same again with --resume to go on behind them"


def explain(
    model: Model,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", show_default=False, help="A sentence, in quotes.")],
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show which phrases a translation is made of, and what it comes to in each feature."""
    header_of(model, "translate")
    with compiling("translate-apply", quiet, "60 s"):
        from isogloss.data.tokenise import tokenise_bytes

        translator = load_translator(model)
        form = as_remembered({"tokenise": None, "normalise": None}, translator.reading_, model)
        text = tokenise_bytes(sentence.replace("\n", " ").encode(), form["tokenise"], form["normalise"])
        if not text.n_words:
            raise UsageError("there is no sentence to translate. Give one, in quotes")
        found = translator.predict_nbest(text, 1)[0][0]
    if json:
        write_json(found.as_dict(), output)
        return
    rows = [
        f"{' '.join(found.source[p.first : p.end])} -> {' '.join(p.words)}{'' if p.known else '  (copied)'}"
        for p in found.phrases
    ]
    weights = translator.weights_
    sums = [
        f"{name:20} {value:10.3f} x {weights[name]:8.3f} = {value * weights[name]:10.3f}"
        for name, value in found.features.items()
    ]
    write_result(output, "\n".join([found.text, "", *rows, "", *sums, f"{'score':20} {found.score:34.3f}", ""]))


def score(
    found: Annotated[str, typer.Argument(metavar="OUT", show_default=False, help="Translations, a line each.")],
    references: Annotated[str, typer.Argument(metavar="REF", show_default=False, help="The right ones, line by line.")],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="OUT2", help="Translations of another system, to compare with."),
    ] = None,
    cut: Annotated[
        str,
        choice(
            "13a", "none", "intl", "char", "zh", option="--tokenise",
            help="How sacrebleu cuts words for BLEU; none for text with spaces between all tokens.",
        ),
    ] = "13a",
    resamples: Annotated[
        int, typer.Option("--resamples", metavar="N", min=1, help="Resamples of sentences, for intervals.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the resamples.")] = 0,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:  # fmt: skip
    """Score translations: BLEU and chrF by sacrebleu, with their signatures and 95% intervals.

    With --against, the difference of two systems on the same sentences, with the p-value of a paired bootstrap.
    """
    check_output(output, [found, references, against])
    standard_input_once(found, references, against)
    from isogloss.metrics import compare_translations, score_translations

    right = _sentences(references, encoding, errors)
    if not any(map(str.strip, right)):
        raise BitextError(f"{references}: there is no sentence to score against. Is this the right file?")
    each = [(path, _sentences(path, encoding, errors)) for path in (found, against) if path is not None]
    for path, lines in each:
        if len(lines) != len(right):
            raise BitextError(
                f"{path} has {len(lines)} lines but {references} has {len(right)}: line k of one is scored against "
                "line k of the other. Was a line lost or joined?"
            )
    scores = [score_translations(lines, right, tokenise=cut, bootstrap=resamples, seed=seed) for _, lines in each]
    told: dict[str, Any] = scores[0].as_dict()
    words = [str(scores[0]), f"chrF: {scores[0].chrf_signature}"]
    if against is not None:
        told["against"] = scores[1].as_dict()
        words.append(f"{against}: {scores[1]}")
        for measure in scores[0].measures:
            difference = compare_translations(
                each[0][1], each[1][1], right, tokenise=cut, measure=measure, resamples=resamples, seed=seed
            )
            told.setdefault("differences", {})[measure] = difference.as_dict()
            words.append(str(difference))
    if json:
        write_json(told, output)
        return
    write_result(output, "\n".join([*words, ""]))


def _sentences(path: str, encoding: str, errors: str) -> list[str]:
    from isogloss.data.formats import read_bytes

    data = read_bytes(path, encoding=encoding, errors=errors)
    lines = data.decode("utf-8", "replace").split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


COMMANDS = {"train": train, "apply": apply, "explain": explain, "score": score}
"""The commands of this group: ``isogloss translate train`` and so on."""
