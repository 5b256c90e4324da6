"""Tasks and outcomes of a batch: plain values that may travel to another machine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.figures import variation
from repro.figures.params import FigureEntry

DONE = "done"
SKIPPED = "skipped"
FAILED = "failed"


@dataclass(frozen=True, eq=False)
class Task:
    """A notebook to execute."""

    entry: FigureEntry
    #: values for the parameters cell
    parameters: Mapping[str, Any]
    #: hash of all inputs of the result, see `repro.figures.fingerprint.fingerprint`
    fingerprint: str
    #: folder for sockets and logs
    scratch: Path
    #: inputs that differ from the parameter file's, see `repro.figures.variation.differences`
    changed: Mapping[str, list[Any]] = field(default_factory=dict)
    #: whether the run writes a PNG beside the SVG
    png: bool = False
    #: further environment variables of the kernel
    variables: Mapping[str, str] = field(default_factory=dict)
    #: processes for simulations without a scheduler; 0: one per CPU
    cpus: int = 0
    #: seconds for which each loop is interpreted before it is compiled; None: the default
    python_s: float | None = None

    @property
    def id(self) -> str:
        """Id of the figure."""
        return self.entry.id

    @property
    def folder(self) -> Path:
        """Folder of the notebook's results."""
        profile = str(self.parameters["profile"])
        out = Path(self.parameters["out"])
        return variation.folder(out, self.id, self.changed, profile)

    @property
    def executed_notebook(self) -> Path:
        """Executed copy of the notebook."""
        if self.changed:
            return self.folder / f"{self.entry.stem}.ipynb"
        return self.entry.executed_notebook

    @property
    def progress_file(self) -> Path:
        """File into which the notebook writes the number of its simulations that are done."""
        return self.scratch / f"{self.id.replace('/', '-')}.progress"

    def simulations_done(self) -> str:
        """Read the progress, ``3`` or ``3/231`` simulations; empty before the first."""
        try:
            return self.progress_file.read_text()
        except OSError:
            return ""


@dataclass(frozen=True)
class Outcome:
    """How a notebook ended, or why it was not run."""

    id: str
    #: `DONE`, `SKIPPED` or `FAILED`
    status: str
    wall_s: float = 0.0
    #: counts of verdicts in words
    summary: str = ""
    error: str = ""
    #: number of the cell that failed, as in ``In [3]``
    cell: int | None = None
    warnings: tuple[str, ...] = ()
    #: how the inputs differ from the parameter file's, in words
    variation: str = ""


#: Start times (s, monotonic clock) of the running notebooks.
StartTimes = dict[Task, float]
#: Function that shows the running notebooks.
Watch = Callable[[StartTimes], None]
