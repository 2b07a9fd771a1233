"""Which rows there are: each is a system, a treebank, and the tags that the system sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from benchmarks.quality.parsing.models import ISOGLOSS, KINDS, MALT, TAGGER, UDPIPE, Model
from benchmarks.quality.parsing.texts import GOLD, LEMMAS, MAIN, OWN, PREDICTED, SETTINGS, SMALL, TEXTS

FIRST, SECOND = Model(ISOGLOSS, "--order 1"), Model(ISOGLOSS, "--order 2")
OURS = (FIRST, SECOND)
MALTPARSER, UDPIPE_1 = Model(MALT), Model(UDPIPE)
PEERS = (UDPIPE_1, MALTPARSER)
MALT_XPOS = Model(MALT, "-if conllx")
"""With the features for CoNLL-X, which look at XPOS in place of UPOS."""
WITH_XPOS = ("en-ewt", "en-lines", "got", "en-partut", "fr-partut", "it-partut")
"""Treebanks whose XPOS says more than UPOS; el repeats it, hu has none."""
OUR_TAGGER = Model(TAGGER)
CROSSING = ("got", "hu", "grc", "la")
"""Treebanks with many crossing links."""
STRAIGHT = ("fr-partut",)
"""Treebanks in which hardly any link crosses another, for comparison."""
SECOND_TRAINERS = {"hu": ("likelihood", "risk")}
"""Trainers of second order, by treebanks: they take minutes."""
CROSSING_PEERS = (Model(MALT, "-pp head"), Model(UDPIPE, "transition_system=swap;transition_oracle=static_lazy"))
"""The peers' own ways to links that cross; as they come, both make projective trees alone."""
TRAINERS = ("likelihood", "risk", "mira", "perceptron")
TREE, FULL = Model(ISOGLOSS, "--order 1 --nonprojective"), Model(ISOGLOSS, "--order 2 --nonprojective")
FACTORS = {
    "TREE": TREE,
    "+ NOCROSS": Model(ISOGLOSS, f"{FULL.options} --factors crossing"),
    "+ GRAND": Model(ISOGLOSS, f"{FULL.options} --factors crossing,grand"),
    "+ CHILDSEQ": Model(ISOGLOSS, f"{FULL.options} --factors crossing,grand,siblings"),
    "+ VALENCE (full)": FULL,
}
"""Nonprojective parsers with more and more scores of more than one link."""
WEAKER = ("not-2", "at-most-one", "exactly-one", "exactly-one-no-2-cycle")
"""What is demanded of links in place of a tree, the weakest first."""
ROUNDS = (1, 2, 3, 5, 10)
USUAL_ROUNDS = 5
MEASURES = ("uas", "las")


@dataclass(frozen=True)
class Job:
    """What makes one row. `tags` is what the system sees; `studies` say who wants the row and are no part of it."""

    text: str
    tags: str
    model: Model
    studies: frozenset[str] = field(default=frozenset(), compare=False)

    def __str__(self) -> str:
        return f"{self.text} {self.tags}: {self.model}"


def decoded(order: int, decoder: str) -> Model:
    """Likelihood, decoded by the expected number of right heads or by the most probable tree; one model for both."""
    return Model(ISOGLOSS, f"--order {order}", "" if decoder == "mbr" else f"decoder={decoder}")


def margins(decoder: str) -> Model:
    """MIRA, decoded by the best tree, as it learns, or as if its scores were log-probabilities."""
    return replace(trained("mira"), decode="" if decoder == "map" else f"decoder={decoder}")


def constrained(constraint: str, *, training: bool) -> Model:
    """First order with less demanded than a tree: in learning as well, or when a model of trees parses."""
    if training:
        return Model(ISOGLOSS, f"--order 1 --constraint {constraint}")
    return replace(TREE, decode=f"constraint={constraint}")


def passed(rounds: int) -> Model:
    """Second order, parsing with at most so many rounds of messages; it has learnt with five."""
    return replace(SECOND, decode="" if rounds == USUAL_ROUNDS else f"rounds={rounds}")


def shaped(order: int, *, projective: bool) -> Model:
    return Model(ISOGLOSS, f"--order {order} --{'projective' if projective else 'nonprojective'}")


def trained(trainer: str, order: int = 1) -> Model:
    """Relations in a second stage for all; margins are decoded by the best tree, which they are of."""
    decoder = " --decoder map" if trainer in ("mira", "perceptron") else ""
    own = "" if trainer == "likelihood" else f" --trainer {trainer}{decoder}"
    return Model(ISOGLOSS, f"--order {order} --labels second{own}")


def learner_of(job: Job) -> Job:
    """The job whose model a job parses with: its own, unless it decodes otherwise or asks for what is so anyway.

    Where many links cross, `--order` alone learns trees that may cross, and `--nonprojective` adds nothing; where
    hardly any do, `--projective` adds nothing.
    """
    options = job.model.options
    if job.model.kind == ISOGLOSS and job.text in (*CROSSING, *STRAIGHT):
        options = options.removesuffix(" --nonprojective" if job.text in CROSSING else " --projective")
    return replace(job, model=replace(job.model, options=options, decode=""))


def peers_of(text: str, tags: str) -> tuple[Model, ...]:
    """The peers that a treebank has in a setting."""
    if tags == OWN:
        return (UDPIPE_1,)
    return (*PEERS, MALT_XPOS) if text in WITH_XPOS else PEERS


def _wanted() -> Iterator[tuple[str, Job]]:
    for source in MAIN:
        for tags in (GOLD, PREDICTED):
            for each in (*OURS, *PEERS):
                yield "peers", Job(source.name, tags, each)
            if source.name in WITH_XPOS:
                yield "peers", Job(source.name, tags, MALT_XPOS)
        yield "tagging", Job(source.name, PREDICTED, OUR_TAGGER)
        yield "tagging", Job(source.name, OWN, UDPIPE_1)
        for each in (*OURS, UDPIPE_1):
            yield "pipeline", Job(source.name, OWN, each)
        for each in OURS:
            yield "lemmas", Job(source.name, LEMMAS, each)
    for source in SMALL:
        for each in (*OURS, *PEERS):
            yield "small", Job(source.name, GOLD, each)
    for text in CROSSING:
        for each in CROSSING_PEERS:
            yield "crossing", Job(text, GOLD, each)
        for order in (1, 2):
            for projective in (True, False):
                yield "crossing", Job(text, GOLD, shaped(order, projective=projective))
            for decoder in ("mbr", "map"):
                yield "decoders", Job(text, GOLD, decoded(order, decoder))
        for decoder in ("map", "mbr"):
            yield "decoders", Job(text, GOLD, margins(decoder))
        for trainer in TRAINERS:
            yield "trainers", Job(text, GOLD, trained(trainer))
        for trainer in SECOND_TRAINERS.get(text, ()):
            yield "trainers", Job(text, GOLD, trained(trainer, 2))
        for each in FACTORS.values():
            yield "factors", Job(text, GOLD, each)
        for constraint in WEAKER:
            for training in (True, False):
                yield "constraints", Job(text, GOLD, constrained(constraint, training=training))
        yield "constraints", Job(text, GOLD, TREE)
        for rounds in ROUNDS:
            yield "rounds", Job(text, GOLD, passed(rounds))
    for text in STRAIGHT:
        for order in (1, 2):
            for projective in (True, False):
                yield "crossing", Job(text, GOLD, shaped(order, projective=projective))


def jobs() -> list[Job]:
    """Every row once, with all studies that want it."""
    found: dict[Job, set[str]] = {}
    for study, job in _wanted():
        found.setdefault(job, set()).add(study)
    return [replace(job, studies=frozenset(studies)) for job, studies in found.items()]


def choose(only: str = "", models: str = "", tags: str = "") -> list[Job]:
    """Jobs by treebanks and studies ("hu/peers,crossing" are two groups), by kinds or names of systems, and by tags."""
    every = jobs()
    known = {name for job in every for name in (job.text, *job.studies)}
    groups = [set(group.split("/")) for group in only.split(",")] if only else [set[str]()]
    for group in groups:
        if not group <= known:
            raise SystemExit(f"--only: {', '.join(sorted(group - known))} should be among {', '.join(sorted(known))}")
    names = {*KINDS, *(str(job.model) for job in every)}
    kinds, settings = (set(text.split(",")) if text else set[str]() for text in (models, tags))
    if models in names:  # some have commas themselves
        kinds = {models}
    if not kinds <= names:
        raise SystemExit(f"--models: {', '.join(sorted(kinds - names))} should be among {', '.join(sorted(names))}")
    if not settings <= set(SETTINGS):
        raise SystemExit(f"--tags: {', '.join(sorted(settings - set(SETTINGS)))} should be among {', '.join(SETTINGS)}")
    return [
        job
        for job in every
        if any(group <= {job.text, *job.studies} for group in groups)
        and (not kinds or job.model.kind in kinds or str(job.model) in kinds)
        and (not settings or job.tags in settings)
    ]


def comparisons() -> Iterator[tuple[Job, Job]]:
    """Pairs of rows whose difference is tested: the first is expected to be the better."""
    for source in MAIN:
        for tags in (GOLD, PREDICTED, OWN):
            for ours in OURS:
                for peer in peers_of(source.name, tags):
                    yield Job(source.name, tags, ours), Job(source.name, tags, peer)
            yield Job(source.name, tags, SECOND), Job(source.name, tags, FIRST)
    for text in CROSSING:
        if text not in {source.name for source in MAIN}:
            for ours in OURS:
                for peer in PEERS:
                    yield Job(text, GOLD, ours), Job(text, GOLD, peer)
            yield Job(text, GOLD, SECOND), Job(text, GOLD, FIRST)
        for order, ours in enumerate(OURS, 1):
            for peer in CROSSING_PEERS:
                yield Job(text, GOLD, ours), Job(text, GOLD, peer)
            yield _free_and_bound(text, order)
            yield Job(text, GOLD, decoded(order, "mbr")), Job(text, GOLD, decoded(order, "map"))
        for first, second in _within():
            yield Job(text, GOLD, first), Job(text, GOLD, second)
        for trainer in SECOND_TRAINERS.get(text, ())[1:]:
            yield Job(text, GOLD, trained(trainer, 2)), Job(text, GOLD, trained(TRAINERS[0], 2))
    for text in STRAIGHT:
        for order in (1, 2):
            yield _free_and_bound(text, order)


def _free_and_bound(text: str, order: int) -> tuple[Job, Job]:
    """Trees that may cross against those that may not."""
    free, bound = (shaped(order, projective=projective) for projective in (False, True))
    return Job(text, GOLD, free), Job(text, GOLD, bound)


def _within() -> Iterator[tuple[Model, Model]]:
    """Neighbours in studies of our own parser."""
    steps = list(FACTORS.values())
    yield from zip(steps[1:], steps, strict=False)
    yield FULL, TREE
    yield FULL, steps[1]
    for constraint in WEAKER:
        for training in (True, False):
            yield TREE, constrained(constraint, training=training)
    for constraint in WEAKER[1:]:
        yield constrained(constraint, training=True), constrained(WEAKER[0], training=True)
    yield margins("map"), margins("mbr")
    for trainer in TRAINERS[1:]:
        yield trained(trainer), trained(TRAINERS[0])
    for rounds in ROUNDS:
        if rounds != USUAL_ROUNDS:
            yield passed(USUAL_ROUNDS), passed(rounds)


assert {*CROSSING, *STRAIGHT} <= set(TEXTS)
