"""What the runner hands to a kernel and gets back: plain values that may travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DONE, SKIPPED, FAILED = "done", "skipped", "failed"


@dataclass(frozen=True, eq=False)
class Task:
    """A notebook to execute; plain values only, so that it may travel to another machine.

    Parameters
    ----------
    id : str
        Figure id.
    notebook, folder, copy : str
        Paths of the notebook, of its result folder and of the executed copy.
    root : str
        Top of the checkout.
    parameters : mapping
        Values of the parameters cell.
    fingerprint : str
        Written into the result once the notebook has ended well.
    scratch : str
        Folder for sockets and the notebook under execution.
    scheduler : str
        Address of the dask scheduler that takes the notebook's simulations; empty for none.
    """

    id: str
    notebook: str
    folder: str
    copy: str
    root: str
    parameters: Mapping[str, Any]
    fingerprint: str
    scratch: str
    scheduler: str = ""

    @property
    def points(self) -> Path:
        """File in which the notebook tells how many of its simulations are done."""
        return Path(self.scratch) / f"{self.id.replace('/', '-')}.points"

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
