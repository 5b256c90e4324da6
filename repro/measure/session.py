"""One run of `repro measure`: folder, device, job types, budget, progress."""

from __future__ import annotations

import datetime
import importlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from repro.base.errors import ParamError
from repro.base.signals import raising_keyboard_interrupt
from repro.measure.budget import Budget
from repro.measure.configuration import Configuration
from repro.measure.gpu import GpuSamples, Nvml, gpu_type_of, nvml
from repro.measure.job_types import JobType
from repro.measure.rows import RowTable

#: Smallest sizes, for --tiny.
_TINY_BATCH = 2
_TINY_WINDOW_S = 0.02


class Machine(NamedTuple):
    """Device of a session, and the facts about it that ``machine.csv`` has."""

    device: str
    gpu_type: str
    gpu: str
    driver: str
    torch: str
    #: memory of the GPU (MiB); None for the CPU
    memory_mb: float | None


@dataclass(frozen=True)
class Session:
    """Arguments of a run that all measurements share.

    Parameters
    ----------
    out : Path
        Folder of the tables.
    jobs : sequence of JobType
        Job types to measure.
    budget : Budget
        Minutes of the run.
    report : callable
        Prints a line of progress.
    machine : Machine
        Device.
    reader : Nvml or None
        Reader of the GPU; None: no samples.
    inputs : Path
        Temporary folder for input files and checkpoints.
    tiny : bool
        Whether batches and windows have their smallest size.
    seed : int
        Seed of random configurations and groups.
    """

    out: Path
    jobs: Sequence[JobType]
    budget: Budget
    report: Callable[[str], None]
    machine: Machine
    reader: Nvml | None
    inputs: Path
    tiny: bool
    seed: int

    def table(self, file: str) -> RowTable:
        """Table of the folder, with the rows of earlier runs."""
        return RowTable(self.out, file)

    def configuration(
        self,
        job: JobType,
        *,
        batch_size: int | None = None,
        input_size: int | None = None,
        precision: str | None = None,
        optimizer: str | None = None,
    ) -> Configuration:
        """Configuration of a job type; by default its own."""
        return Configuration(
            job,
            self.batch_size(batch_size or job.batch_size),
            input_size or job.input_size,
            precision or job.precision,
            optimizer or job.optimizer,
            self.inputs,
            self.machine.device,
        )

    def batch_size(self, batch_size: int) -> int:
        """Batch size, or the smallest one with --tiny."""
        return min(batch_size, _TINY_BATCH) if self.tiny else batch_size

    def window_s(self, seconds: float) -> float:
        """Length of a window (s), or the shortest one with --tiny."""
        return _TINY_WINDOW_S if self.tiny else seconds

    def samples(self, period_s: float = 0.05, *, with_pcie: bool = False) -> GpuSamples:
        """Samples of the GPU in a ``with`` block."""
        return GpuSamples(self.reader, period_s, with_pcie=with_pcie)

    def begins(self, label: str, number: int, total: int) -> bool:
        """Whether there is time for one more measurement; prints a line of progress."""
        used = self.budget.used_s / 60
        where = f"{number + 1} of {total}"
        if self.budget.is_spent:
            self.report(
                f"{self.budget.minutes:g} minutes are used, before {label} ({where}); the same "
                f"command goes on from there"
            )
            return False
        self.report(f"{label} ({where}), {used:.1f} of {self.budget.minutes:g} minutes")
        return True


@contextmanager
def opened(
    out: Path,
    jobs: Sequence[JobType],
    minutes: float,
    report: Callable[[str], None],
    *,
    tiny: bool = False,
    seed: int = 0,
) -> Iterator[Session]:
    """Session on the GPU of this machine, or with ``tiny`` on its CPU.

    Parameters
    ----------
    out : Path
        Folder of the tables; it is made, but not its parent folder.
    jobs : sequence of JobType
        Job types.
    minutes : float
        Budget; no measurement begins after it.
    report : callable
        Prints a line of progress.
    tiny : bool
        Smallest sizes, on the CPU.
    seed : int
        Seed of random configurations and groups.

    Raises
    ------
    ParamError
        If there is no GPU, or the folder has measurements of another one.
    """
    machine = _machine(tiny=tiny)
    if not out.parent.is_dir():
        raise ParamError(f"--out {out}: no folder {out.parent}; make it first")
    out.mkdir(exist_ok=True)
    _write_machine(out, machine)
    inputs = Path(tempfile.mkdtemp(prefix="repro-measure-"))
    try:
        with raising_keyboard_interrupt():
            reader = None if tiny else nvml()
            budget = Budget(minutes)
            yield Session(out, jobs, budget, report, machine, reader, inputs, tiny, seed)
    finally:
        shutil.rmtree(inputs, ignore_errors=True)


def _machine(*, tiny: bool) -> Machine:
    """Facts about the GPU of this machine; ParamError if it has none."""
    torch = importlib.import_module("torch")
    version = str(torch.__version__)
    if tiny:
        return Machine("cpu", "cpu", "none (--tiny)", "", version, None)
    if not torch.cuda.is_available():
        raise ParamError(
            "repro measure: no CUDA GPU is available to PyTorch; run it on a machine with one, or "
            "try it on the CPU with --tiny"
        )
    if (reader := nvml()) is not None:
        # PyTorch would keep a CUDA context in this process, next to those of the jobs
        name = reader.name()
        driver = reader.driver()
        return Machine("cuda", gpu_type_of(name), name, driver, version, reader.memory_mb())
    properties = torch.cuda.get_device_properties(0)
    name = str(properties.name)
    memory_mb = properties.total_memory / 2**20
    return Machine("cuda", gpu_type_of(name), name, "", version, memory_mb)


def _write_machine(out: Path, machine: Machine) -> None:
    """Write ``machine.csv``; refuse a folder with measurements of another GPU."""
    table = RowTable(out, "machine.csv")
    facts = {
        "gpu_type": machine.gpu_type,
        "gpu": machine.gpu,
        "driver": machine.driver,
        "torch": machine.torch,
        "cpu_cores": str(os.cpu_count()),
        "date": datetime.date.today().isoformat(),
    }
    written = {row["name"]: row["value"] for row in table.rows}
    other = written.get("gpu", machine.gpu)
    if other != machine.gpu:
        raise ParamError(
            f"--out {out}: has measurements of {other}, and this machine has {machine.gpu}; give "
            f"another folder"
        )
    missing = [name for name in facts if name not in written]
    table.extend({"name": name, "value": facts[name]} for name in missing)
