"""What the runner hands to a kernel and gets back: plain values that may travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DONE, SKIPPED, FAILED = "done", "skipped", "failed"


@dataclass(frozen=True)
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
    """

    id: str
    notebook: str
    folder: str
    copy: str
    root: str
    parameters: Mapping[str, Any]
    fingerprint: str
    scratch: str


@dataclass(frozen=True)
class Outcome:
    """How a notebook ended."""

    id: str
    status: str
    wall_s: float = 0.0
    verdicts: tuple[str, ...] = ()
    error: str = ""
    warnings: tuple[str, ...] = ()
