"""Configuration of a worker: job type, sizes, precision, optimizer, and where it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from repro.measure.job_types import JobType


@dataclass(frozen=True)
class Configuration:
    """What a worker trains.

    Parameters
    ----------
    job : JobType
        Job type.
    batch_size : int
        Samples of an iteration.
    input_size : int
        Side of the images, or tokens of a sequence.
    precision : str
        One of `repro.measure.job_types.PRECISIONS`.
    optimizer : str
        One of `repro.measure.job_types.OPTIMIZERS`.
    inputs : Path
        Folder of the input files.
    device : str
        ``cuda`` or ``cpu``.
    """

    job: JobType
    batch_size: int
    input_size: int
    precision: str
    optimizer: str
    inputs: Path
    device: str
