"""Gavel's job types, and the stand-in for its throughput table, made from fitted trends."""

import functools
import itertools
import math
from dataclasses import dataclass

from repro.files.tables import ModelTable, measured
from repro.perf.throughput import UNCONSOLIDATED, ThroughputTable

GPU_TYPES = ("k80", "p100", "v100")
#: Widths (GPUs) of the gangs of distributed job types.
GANG_WIDTHS = (2, 4, 8)
REFERENCE = "v100"
#: Memory of a member of a gang, relative to the memory of the model on one GPU.
_GANG_MEMORY = 1.5
_MODELS = ModelTable("gavel_models.csv", ("model", "task", "dataset", "batch_sizes", "distributed"))


@dataclass(frozen=True)
class JobType:
    """A model with its batch size. The throughput table has a row for each of its gang sizes."""

    model: str
    batch_size: int | None
    distributed: bool

    @property
    def name(self) -> str:
        """Name in traces and throughput tables."""
        if self.batch_size is None:
            return self.model
        return f"{self.model} (batch size {self.batch_size})"

    @property
    def log2_batch_size(self) -> float:
        """Logarithm to base 2 of the batch size, 0 if the model has no batch size."""
        return math.log2(self.batch_size or 1)


@functools.cache
def job_types() -> tuple[JobType, ...]:
    """Gavel's 26 job types (Table 2), in the order in which the generators sample them."""
    return tuple(
        JobType(row["model"], int(size) if size else None, bool(row["distributed"]))
        for row in _MODELS.frame.fillna({"batch_sizes": ""}).to_dict("records")
        for size in row["batch_sizes"].split() or (None,)
    )


@functools.cache
def gavel_like() -> ThroughputTable:
    """Stand-in for Gavel's throughput table, from trends fitted per model and GPU type.

    Let b be the logarithm of the batch size. The logarithm of the throughput of a job alone is a
    parabola in b. The logarithm of the gain by scale-out is linear in b, and so is the logarithm of
    the factor of unconsolidated gangs. In a pair each job keeps a part of its throughput that
    depends on model and batch size of both. Pairs that do not fit into memory have throughput 0,
    and so have all pairs of distributed gangs, which were never measured.
    """
    rows_of_file = measured("gavel_speeds").itertuples(index=False)
    fitted = _Fitted(
        {
            (quantity, model, gpu_type, int(width)): terms
            for quantity, model, gpu_type, width, *terms in rows_of_file
        }
    )
    jobs = job_types()
    distributed = [job for job in jobs if job.distributed]
    rows = {(job.name, 1): fitted.one_gpu(job) for job in jobs}
    rows |= {
        (job.name, width): fitted.gang(job, width) for width in GANG_WIDTHS for job in distributed
    }
    pairs = {}
    for members in itertools.combinations_with_replacement(jobs, 2):
        first, second = sorted(members, key=lambda job: job.name)
        pairs[first.name, second.name, 1] = {
            gpu_type: fitted.pair(first, second, gpu_type) for gpu_type in rows[first.name, 1]
        }
    for width in GANG_WIDTHS:
        for members in itertools.combinations_with_replacement(distributed, 2):
            first, second = sorted(members, key=lambda job: job.name)
            pairs[first.name, second.name, width] = dict.fromkeys(GPU_TYPES, (0.0, 0.0))
    return ThroughputTable(rows, REFERENCE, pairs)


@dataclass(frozen=True)
class _Fitted:
    """Fitted trends by quantity, model, GPU type and width: constant, slope and curvature."""

    trends: dict[tuple[str, str, str, int], list[float]]

    def _trend(self, quantity: str, job: JobType, gpu_type: str, width: int = 1) -> float:
        """Trend at a job's batch size.

        The variable is log2 of the batch size. For memory it is the batch size in thousands.
        """
        constant, slope, curvature = self.trends[quantity, job.model, gpu_type, width]
        x = (job.batch_size or 0) / 1000 if quantity == "memory" else job.log2_batch_size
        return constant + slope * x + curvature * x * x

    def _alone(self, job: JobType, gpu_type: str) -> float:
        """Steps/s of a job alone on one GPU."""
        return float(2 ** self._trend("alone", job, gpu_type))

    def one_gpu(self, job: JobType) -> dict[str, float]:
        """Steps/s on one GPU of each type. Consolidation makes no difference."""
        speeds = {gpu_type: self._alone(job, gpu_type) for gpu_type in GPU_TYPES}
        return speeds | {gpu_type + UNCONSOLIDATED: speed for gpu_type, speed in speeds.items()}

    def gang(self, job: JobType, width: int) -> dict[str, float]:
        """Steps/s of a gang on each type, consolidated and unconsolidated."""
        consolidated = {}
        unconsolidated = {}
        for gpu_type in GPU_TYPES:
            gain = 2 ** self._trend("scale_out", job, gpu_type, width)
            fits = _GANG_MEMORY * self._trend("memory", job, gpu_type) < 1.0
            speed = self._alone(job, gpu_type) * float(gain) if fits else 0.0
            consolidated[gpu_type] = speed
            spread_factor = 2 ** self._trend("unconsolidated", job, gpu_type, width)
            unconsolidated[gpu_type + UNCONSOLIDATED] = speed * float(spread_factor)
        return consolidated | unconsolidated

    def pair(self, first: JobType, second: JobType, gpu_type: str) -> tuple[float, float]:
        """Steps/s of each of two one-GPU jobs that share a GPU."""
        base = gpu_type.removesuffix(UNCONSOLIDATED)
        if self._trend("memory", first, base) + self._trend("memory", second, base) > 1.0:
            return 0.0, 0.0
        return self._shared(first, second, base), self._shared(second, first, base)

    def _shared(self, job: JobType, other: JobType, gpu_type: str) -> float:
        """Steps/s of a job that shares one GPU with another.

        The part of its throughput that it keeps is the product of two factors. ``kept`` is that of
        the job itself, ``pressure`` that of the other job; the file has their logarithms.
        """
        log2_part = self._trend("kept", job, gpu_type) + self._trend("pressure", other, gpu_type)
        return self._alone(job, gpu_type) * min(1.0, float(2**log2_part))
