"""Where `isogloss align` has its work done: what was asked for, checked, and made."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isogloss.errors import UsageError

if TYPE_CHECKING:
    from isogloss.engine.workers import WorkerEngine

__all__ = ["ENGINES", "AskedEngine"]

ENGINES = ("local", "processes", "ray", "array")


class AskedEngine(NamedTuple):
    """The options of the command."""

    engine: str
    workers: int | None
    groups: int | None
    address: str | None
    work_folder: str | None

    @property
    def is_local(self) -> bool:
        return self.engine == "local"

    def check(self, **others: object) -> None:
        """Refuse what does not go together; `others` are options that exclude workers, by name."""
        flags = {"--workers": self.workers, "--groups": self.groups, "--work-folder": self.work_folder}
        if self.is_local:
            for flag, value in {**flags, "--address": self.address}.items():
                if value is not None:
                    raise UsageError(f"{flag} is for other processes. Say which: --engine processes, ray or array")
            return
        if self.address is not None and self.engine != "ray":
            raise UsageError(f"--address is that of a Ray cluster, and --engine {self.engine} has none. Leave it out")
        if (self.engine == "array" or self.address is not None) and self.work_folder is None:
            raise UsageError(f"--engine {self.engine}: name a folder that all workers see, with --work-folder")
        for name, other in others.items():
            if other:
                why = {
                    "resume": "a run on workers is taken up from its --work-folder, by the same command",
                    "model": "a saved model is applied in this process",
                    "chunk": "workers learn from the whole text",
                }[name]
                raise UsageError(f"--{name} does not go with --engine {self.engine}: {why}. Leave out one of the two")

    def made(self, threads: int | None) -> WorkerEngine:
        """The engine; each worker has `threads`, or its share of the cores of this machine."""
        from isogloss.engine.threads import available
        from isogloss.engine.workers import ArrayEngine, ProcessEngine

        workers = self.workers or (1 if self.engine == "array" else available())
        share = 1 if self.address is not None else max(1, available() // workers)
        own = threads or share
        if self.engine == "array":
            return ArrayEngine(self.work_folder, workers=workers, groups=self.groups)
        if self.engine == "processes":
            return ProcessEngine(self.work_folder, workers=workers, groups=self.groups, threads=own)
        from isogloss.engine.on_ray import RayEngine

        return RayEngine(self.work_folder, workers=workers, groups=self.groups, threads=own, address=self.address)
