"""`isogloss warm-up`: compile every kernel once, so that no later command has to."""

from __future__ import annotations

import shlex
import tempfile
import time
from contextlib import chdir
from pathlib import Path

from isogloss.cli._common import Quiet, progress_for, say
from isogloss.cli._environment import kernel_cache
from isogloss.errors import IsoglossError

__all__ = ["LINES", "command"]

_TEXTS = "en-de.en.txt en-de.de.txt"
_OTHER = "en-tr.en.txt en-tr.tr.txt"
_GOLD = "en-de.gold.txt"
_TREES = "en-de.en.conllu"
_FEW = 12
"""Lines of gold that are enough to use every kernel, and quick to learn from."""

LINES = (
    f"align {_TEXTS} --scores -o hmm.txt --save hmm",
    f"align {_TEXTS} --aligner model1 -o model1.txt",
    f"align {_TEXTS} --aligner model2 --constraint none -o model2.txt",
    f"align {_TEXTS} --constraint bijective --symmetrise grow-diag-final-and -o bijective.txt",
    f"align {_TEXTS} --constraint symmetric --symmetrise union --decode viterbi --lexicon words.tsv -o symmetric.txt",
    f"align {_TEXTS} --chunk 30 --keep-case --tokenise unicode -o chunks.txt",
    f"align {_TEXTS} --model hmm -o applied.txt",
    f"align {_TEXTS} --segment both -o segmented.txt",
    f"train-aligner auto {_TEXTS} few.txt --save auto",
    f"train-aligner matching {_TEXTS} few.txt --no-tune --links hmm=hmm.txt --save matching",
    f"train-aligner matching {_TEXTS} few.txt --no-tune --trainer extragradient --save extragradient",
    f"train-aligner quadratic {_OTHER} en-tr.gold.txt --no-tune --save quadratic",
    f"train-aligner quadratic {_TEXTS} few.txt --no-tune --option pairs=false --save flow",
    f"train-aligner itg {_TEXTS} few.txt --no-tune --save itg",
    f"train-aligner itg {_TEXTS} few.txt --no-tune --trainer mira --save mira-itg",
    f"align {_TEXTS} --model matching --links hmm=hmm.txt --scores -o matching.txt",
    f"align {_OTHER} --model quadratic --scores -o quadratic.txt",
    f"align {_TEXTS} --model flow --scores -o flow.txt",
    f"align {_TEXTS} --model itg --scores -o itg.txt",
    f"suggest {_TEXTS} --gold {_GOLD} -o suggest.txt",
    f"suggest {_TEXTS} --model quadratic -o suggest.txt",
    f"score hmm.txt {_GOLD} --against model1.txt --curve --calibration -o score.txt",
    f"view {_TEXTS} hmm.txt --gold {_GOLD} -o page.html",
    f"view {_TREES} -o trees.html",
    "lexicon hmm -o model.tsv",
    f"lexicon {_TEXTS} hmm.txt -o links.tsv",
    f"phrases {_TEXTS} hmm.txt -o phrases.txt",
    f"filter {_TEXTS} -o kept.en kept.de --scores kept.txt",
    f"filter {_TEXTS} --model hmm --scores kept.txt",
    f"doctor {_TEXTS} hmm.txt -o doctor.txt",
    f"transfer-markup {_TEXTS} hmm.txt -o markup.txt",
    f"transfer markup {_TEXTS} hmm.txt -o markup.txt",
    f"tag train {_TREES} --dev {_TREES} --iterations 2 --save tagger",
    f"tag train {_TREES} --order 2 --decoder viterbi --iterations 2 --save second",
    f"tag train {_TREES} --adapt en-de.en.txt --iterations 2 --save adapted",
    "tag apply tagger en-de.en.txt --confidence -o tagged.conllu",
    "tag apply second en-de.en.txt --confidence -o second.conllu",
    "tag train en-de.en.txt --dictionary tags.tsv --iterations 2 --save dictionary",
    "tag train en-de.en.txt --dictionary tags.tsv --emissions table --order 2 --iterations 2 --save table",
    f"tag train {_TREES} --graph --unlabelled en-de.en.txt --iterations 2 --save graph",
    f"tag train --bitext {_TEXTS} --source-tags tagged.conllu --iterations 2 --save projected",
    f"tag train --bitext {_TEXTS} --source-tags tagged.conllu --learner hmm --iterations 2 --save hidden",
    "tag apply dictionary en-de.en.txt --confidence -o dictionary.conllu",
    "tag apply graph en-de.en.txt --confidence -o graph.conllu",
    "tag apply projected en-de.de.txt --confidence -o projected.conllu",
    "tag score tagged.conllu tagged.conllu -o tags.txt",
    f"dictionary stats tags.tsv {_TREES} -o dictionary.txt",
    f"split en-de.de.txt --contractions {_TREES} -o split.conllu",
    f"parse train {_TREES} --dev {_TREES} --iterations 2 --save parser",
    f"parse train {_TREES} --order 1 --projective --labels second --iterations 2 --save first",
    f"parse train {_TREES} --nonprojective --tags predicted --decoder map --iterations 2 --save crossing",
    f"parse train {_TREES} --trainer risk --iterations 2 --save risk",
    f"parse train {_TREES} --trainer risk --order 1 --projective --iterations 2 --save risk1",
    f"parse train {_TREES} --trainer risk --order 1 --nonprojective --iterations 2 --save risk2",
    f"parse train {_TREES} --trainer mira --order 1 --iterations 2 --save mira",
    f"parse train {_TREES} --trainer perceptron --order 1 --nonprojective --iterations 2 --save perceptron",
    f"parse train-joint {_TREES} --dev {_TREES} --iterations 2 --save joint",
    f"parse train-joint {_TREES} --pipeline --projective --dictionary train --iterations 2 --save pipeline",
    f"parse restyle {_TREES} --old-trees {_TREES} --save restyled",
    f"parse apply restyled {_TREES} --confidence -o parsed.conllu",
    f"parse induce {_TREES} --longest 15 --iterations 2 --save induced",
    f"parse apply induced {_TREES} --confidence -o parsed.conllu",
    f"parse apply parser {_TREES} --confidence -o parsed.conllu",
    f"parse apply first {_TREES} --confidence -o parsed.conllu",
    "parse apply crossing en-de.en.txt --confidence -o parsed.conllu",
    "parse apply joint en-de.en.txt -o parsed.conllu",
    f"parse complete {_TREES} --parser parser -o completed.conllu",
    f"transfer project --bitext {_TEXTS} --source-trees parsed.conllu --links hmm.txt --fill -o carried.conllu",
    f"transfer train --bitext {_TEXTS} --source-treebank {_TREES} --iterations 2 --save transferred",
    f"transfer train --bitext {_TEXTS} --source-treebank {_TREES} --method posterior --iterations 2 --save kept",
    "transfer apply transferred en-de.de.txt --confidence -o transferred.conllu",
    f"transfer combine {_TREES} en-tr.tr.conllu --target en-de.de.conllu --iterations 2 --save several",
    "parse apply several en-de.de.conllu --confidence -o parsed.conllu",
    "parse score parsed.conllu parsed.conllu -o trees.txt",
    "constituency train en-de.en.mrg --dev en-de.en.mrg --iterations 2 --save brackets",
    "constituency train en-de.de.mrg --order 1 --tags gold --decoder map --iterations 2 --save brackets1",
    "constituency train en-de.de.mrg --trainer mira --iterations 2 --save brackets-mira",
    "constituency train en-de.de.mrg --model grammar --cycles 1 --grammars 1 --save brackets-grammar",
    "constituency train en-de.en.mrg --model both --cycles 1 --grammars 1 --iterations 1 --save brackets-both",
    "constituency apply brackets en-de.en.txt -o brackets.mrg",
    "constituency apply brackets-both en-de.en.txt -o brackets.mrg",
    "constituency apply brackets-grammar en-de.de.txt -o brackets.mrg",
    "adapt train reviews.books.tsv --unlabelled reviews.kitchen.tsv --save documents",
    "adapt apply documents reviews.kitchen.tsv -o documents.tsv",
    "adapt score documents.tsv -o documents.txt",
    "adapt train reviews.books.tsv --unlabelled reviews.kitchen.tsv --method scl-mi --save correspondence",
    "adapt diagnose reviews.books.tsv reviews.kitchen.tsv -o diagnosis.txt",
    "extract train en-de.en.conll --dev en-de.en.conll --model chain --iterations 2 --save names",
    "extract train en-de.en.conll --iterations 2 --save segments",
    "extract train en-de.en.conll --model chain --trainer mira --iterations 2 --save names-mira",
    "extract train en-de.en.conll --trainer mira --iterations 2 --save segments-mira",
    "extract apply names en-de.en.txt -o names.conll",
    "extract apply segments en-de.en.conll -o segments.conll",
    "extract score segments.conll en-de.en.conll --against segments.conll -o names.txt",
    "extract train en-de.en.relations.txt --task relations --syntax hidden-constituency --iterations 2 --tagger tagger "
    "--save relations",
    "extract train en-de.en.relations.txt --task relations --syntax hidden-dependency --iterations 2 --save links",
    "extract train en-de.en.relations.txt --task relations --syntax hidden-dependency --crossing --iterations 2 "
    "--save any",
    "extract train en-de.en.up.conllu --task roles --iterations 2 --save roles",
    "extract apply relations en-de.en.relations.txt -o relations.txt",
    "extract apply roles en-de.en.up.conllu -o roles.conllu",
    "extract score relations.txt en-de.en.relations.txt -o relations.score",
    "extract score roles.conllu en-de.en.up.conllu -o roles.score",
    "joint train en-de.en.conllu en-de.de.conllu --order 1 --passes 2 --folds 2 --iterations 2 --save joint",
    "joint train en-de.en.conllu en-de.de.conllu --order 1 --passes 2 --folds 2 --iterations 2 --objective bound "
    "--linking itg --save joint-itg",
    "joint train-constituents en-de.en.conllu en-de.de.conllu --order 1 --passes 2 --folds 2 --iterations 2 "
    "--save phrases",
    "joint apply phrases en-de.en.conllu en-de.de.conllu --out-source phrases.mrg --out-links phrases.l",
    "joint train-bilingual en-de.en.conllu en-de.de.conllu --passes 2 --folds 2 --iterations 2 --save bilingual",
    "joint train-bilingual en-de.en.conllu en-de.de.conllu --coupling synch --source-trees best --passes 1 --order 1 "
    "--iterations 1 --save synchronous",
    "joint apply bilingual en-de.en.conllu en-de.de.conllu --out-target bilingual.de",
    "joint apply joint en-de.en.conllu en-de.de.conllu --out-source joint.en --out-target joint.de --out-links joint.l",
    "joint score joint.en joint.de en-de.en.conllu en-de.de.conllu -o joint.score",
    "joint view joint.en joint.de joint.l -o joint.html",
    "extract train en-de.de.conll --model chain --iterations 2 --save names.de",
    f"transfer names --bitext {_TEXTS} --source-model segments --iterations 2 --save names.carried",
    f"multiview train --bitext {_TEXTS} --source-model segments --target-model names.de --save both --retrain",
    f"multiview apply both {_TEXTS} --out-source both.en --out-target both.de",
    "parse train en-de.de.conllu --nonprojective --iterations 2 --save parser.de",
    "multiview train --bitext en-de.en.conllu en-de.de.conllu --task parse --source-model first "
    "--target-model parser.de --save both-trees",
    "tag train en-de.de.conllu --iterations 2 --save tagger.de",
    "multiview train --bitext en-de.en.conllu en-de.de.conllu --task tag --source-model second "
    "--target-model tagger.de --save both-tags",
    "segment train morphemes.en.txt --rounds 2 --save morphemes",
    "segment train morphemes.en.txt --gold morphemes.en.tsv --rounds 2 --iterations 3 --save cut",
    "segment train en-de.de.txt --bitext en-de.en.txt --rounds 2 --passes 1 --save morphemes.de",
    "segment apply morphemes.de en-de.de.txt --bitext en-de.en.txt -o morphemes.de.tsv",
    "segment links morphemes.de en-de.en.txt en-de.de.txt -o morphemes.links.txt",
    "segment apply morphemes morphemes.en.txt --labels --confidence -o morphemes.tsv",
    "segment apply cut morphemes.en.tsv --labels --confidence -o cut.tsv",
    "segment apply cut morphemes.en.tsv --nbest 2 -o ways.tsv",
    "segment explain cut unluckily -o cut.json --json",
    "segment score cut.tsv morphemes.en.tsv -o cut.txt",
    "threads archive.jsonl -k 2 --length 4 --save threads -o threads.json",
    "threads --model threads -k 2 --length 3 --shorter -o threads.json",
    "rank train groups.jsonl --lexicon words.tsv --iterations 2 --save ranker",
    "rank train outputs.txt --trainer pegasos --iterations 2 --save outputs",
    "rank apply ranker groups.jsonl -o ranking.tsv",
    "rank apply outputs outputs.txt -o outputs.tsv",
    "rank score ranking.tsv groups.jsonl --against ranking.tsv -o ranking.txt",
    "summaries extract documents.jsonl --method lexrank -o extracts.jsonl",
    "summaries score extracts.jsonl --judges documents.jsonl -o extracts.txt",
    "summaries compare summaries.jsonl -o measures.txt",
    "constituency score en-de.en.mrg en-de.en.mrg --breakdown -o brackets.txt",
    f"translate train {_TEXTS} --links hmm.txt --order 3 --iterations 2 --passes 2 --nbest 5 --save translator",
    f"translate train {_TEXTS} --links hmm.txt --order 3 --iterations 2 --passes 2 --nbest 5 --features all "
    "--reordering swap --epochs 1 --feature-count 1 --trainer perceptron --update hybrid --save translator-sparse",
    "translate apply translator-sparse en-de.en.txt -o sparse.txt",
    "translate apply translator en-de.en.txt --nbest 3 -o nbest.txt",
    "translate apply translator en-de.en.txt --reordering swap -o swapped.txt",
    "translate explain translator 'The woman reads .' -o explained.txt",
    "translate score swapped.txt en-de.de.txt --against swapped.txt -o translations.txt",
    f"topics train {_TEXTS} --languages en,de --topics 3 --iterations 12 --burn-in 1 --blocks 2 --save topics",
    f"topics train {_TEXTS} --apart --lexicon words.tsv --topics 3 --iterations 12 --burn-in 1 --save topics-apart",
    "topics apply topics en-de.en.txt --language en -o topics.tsv",
    f"topics match topics {_TEXTS} --source en --target de -o topics.txt",
    f"topics words topics {_TEXTS} --languages en,de -o topics.html",
    f"topics score topics {_TEXTS} --languages en,de -o topics.txt",
)
"""Command lines that use every kernel, on the bundled sample; each may use what those before it wrote."""


def command(quiet: Quiet = False) -> None:
    """Compile all kernels now, so that no command has to do so when it is first used.

    Runs every command on bundled samples of fifty sentence pairs, in a temporary folder, which takes minutes on the
    first time. Of use when building a container image, or before measuring time.
    """
    from isogloss import samples
    from isogloss.cli import COMMANDS
    from isogloss.cli._frame import call
    from isogloss.engine import cache

    began = time.perf_counter()
    progress = progress_for(quiet)
    with tempfile.TemporaryDirectory(prefix="isogloss-") as folder, chdir(folder):
        for sample in samples.names():
            samples.write(sample, ".")
        for sample in ("archive", "morphemes", "reviews"):
            samples.write(sample, ".")
        _write_others()
        progress.start("Compiling")  # without a total: how long the rest takes cannot be told from what is done
        for number, line in enumerate(LINES, 1):
            name, *arguments = shlex.split(line)
            progress.update(number, f"isogloss {name} ({number} of {len(LINES)})")
            try:
                call(name, COMMANDS[name].module, [*arguments, "--quiet"])
            except IsoglossError as problem:
                raise type(problem)(f"warm-up: isogloss {line}: {problem}") from problem
        progress.finish()
    cache.mark_warm(cache.EVERYTHING)
    say(f"all kernels are compiled, {time.perf_counter() - began:.1f} s; {kernel_cache()}", quiet)


def _write_others() -> None:
    """What some commands read besides the files of the samples: a few lines of gold, and dictionaries."""
    gold = Path(_GOLD).read_text(encoding="utf-8").splitlines(keepends=True)
    Path("few.txt").write_text("".join(gold[:_FEW]), encoding="utf-8")
    rows = [line.split("\t") for line in Path(_TREES).read_text(encoding="utf-8").splitlines() if "\t" in line]
    tags = sorted({f"{row[1].lower()}\t{row[3]}\n" for row in rows})
    Path("tags.tsv").write_text("".join(tags), encoding="utf-8")
    Path("words.tsv").write_text("woman\tFrau\n", encoding="utf-8")
    for name, lines in _groups().items():
        Path(name).write_text("".join(lines), encoding="utf-8")


def _groups() -> dict[str, list[str]]:
    """Two groups of documents in two languages, and two of translations."""
    ours = '{{"group": "{0}", "id": "{1}", "grade": {1}, "query": "woman", "text": "the {2} woman reads {1}"}}\n'
    theirs = '{{"group": "{0}", "id": "{1}", "grade": {1}, "query": "Frau", "text": "eine Frau {2}", "other": true}}\n'
    cells = [(group, grade, word) for group in "ab" for grade, word in enumerate(("old", "young", "tall"))]
    return {
        "groups.jsonl": [line.format(*cell) for line in (ours, theirs) for cell in cells],
        "documents.jsonl": [
            '{"document": "a", "sentences": ["a cat", "a dog"], "utilities": {"x": [1, 0], "y": [1, 1]}}'
        ],
        "summaries.jsonl": [
            f'{{"document": "a", "system": "{k}", "summary": "a cat {k}", "reference": "a cat 0", "human": {k}}}\n'
            for k in range(3)
        ],
        "outputs.txt": [f"{group} ||| {grade} ||| a tall woman ||| a {word} man\n" for group, grade, word in cells],
    }
