"""What the runner hands to a kernel and gets back: plain values that may travel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.figures.params import FigureEntry

DONE = "done"
SKIPPED = "skipped"
FAILED = "failed"


@dataclass(frozen=True, eq=False)
class Task:
    """A notebook to execute; plain values only, so that it may travel to another machine.

    ``parameters`` go into the parameters cell, ``fingerprint`` into the result. ``scratch`` is a
    folder for sockets; ``scheduler`` the address of a dask scheduler for the simulations, or empty;
    ``cpus`` how many processes may run them otherwise, 0 for one per CPU.
    """

    entry: FigureEntry
    parameters: Mapping[str, Any]
    fingerprint: str
    scratch: Path
    scheduler: str = ""
    cpus: int = 0

    @property
    def id(self) -> str:
        """Id of the figure."""
        return self.entry.id

    @property
    def folder(self) -> Path:
        """Where the notebook writes its results."""
        return Path(self.parameters["out"]) / self.id

    @property
    def points(self) -> Path:
        """File in which the notebook tells how many of its simulations are done."""
        return self.scratch / f"{self.id.replace('/', '-')}.points"

    def points_done(self) -> str:
        """Return ``3`` or ``3/231`` simulations, or an empty text if none is told of."""
        try:
            return self.points.read_text()
        except OSError:
            return ""


@dataclass(frozen=True)
class Outcome:
    """How a notebook ended; ``cell`` is the number, as in ``In [3]``, of the one that failed."""

    id: str
    status: str
    wall_s: float = 0.0
    verdicts: tuple[str, ...] = ()
    error: str = ""
    cell: int | None = None
    warnings: tuple[str, ...] = ()


#: The figures that run, and since when.
Begun = dict[Task, float]
Watch = Callable[[Begun], None]
