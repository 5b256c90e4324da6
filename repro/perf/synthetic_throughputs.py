"""Gavel's job types, and a throughput table like its own: fitted trends, none of the values."""

import functools
import itertools
import math
from dataclasses import dataclass

from repro.files.tables import ModelTable, measured
from repro.perf.throughput import UNCONSOLIDATED, ThroughputTable

GPU_TYPES = ("k80", "p100", "v100")
#: Gangs of distributed job types.
GANGS = (2, 4, 8)
REFERENCE = "v100"
#: Room of a gang's member, in multiples of what the model needs on one GPU.
_GANG_MEMORY = 1.5
_MODELS = ModelTable("gavel_models.csv", ("model", "task", "dataset", "batch_sizes", "distributed"))


@dataclass(frozen=True)
class JobType:
    """A model with its batch size: one row of the throughput table."""

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
    def size(self) -> float:
        """Logarithm to base 2 of the batch size, 0 where there is only one."""
        return math.log2(self.batch_size or 1)


@functools.cache
def job_types() -> tuple[JobType, ...]:
    """Return the 26 job types in the order in which the generators draw them (Gavel, Table 2)."""
    return tuple(
        JobType(row["model"], int(size) if size else None, bool(row["distributed"]))
        for row in _MODELS.frame.fillna({"batch_sizes": ""}).to_dict("records")
        for size in row["batch_sizes"].split() or (None,)
    )


@functools.cache
def gavel_like() -> ThroughputTable:
    """Return a table like Gavel's, from trends fitted per model and GPU type.

    Speeds alone follow a parabola in the logarithms of batch size and speed; scale-out and the
    loss of unconsolidated gangs a line; in a pair each job keeps a part that depends on its own
    model and batch size and on those of the other. Pairs whose memory does not fit have speed 0,
    as have all pairs of distributed gangs, which were never measured.
    """
    held = measured("gavel_speeds").itertuples(index=False)
    fitted = _Fitted({(q, m, gpu_type, int(gang)): terms for q, m, gpu_type, gang, *terms in held})
    every = job_types()
    wide = [job for job in every if job.distributed]
    rows = {(job.name, 1): fitted.one_gpu(job) for job in every}
    rows |= {(job.name, gang): fitted.gang(job, gang) for gang in GANGS for job in wide}
    pairs = {}
    for gang, members in ((1, every), *((gang, wide) for gang in GANGS)):
        for one, other in itertools.combinations_with_replacement(members, 2):
            first, second = sorted((one, other), key=lambda job: job.name)
            gpu_types = [k for k in rows[first.name, gang] if gang == 1 or k in GPU_TYPES]
            pairs[first.name, second.name, gang] = {
                gpu_type: fitted.pair(first, second, gpu_type) if gang == 1 else (0.0, 0.0)
                for gpu_type in gpu_types
            }
    return ThroughputTable(rows, REFERENCE, pairs)


@dataclass(frozen=True)
class _Fitted:
    """The fitted trends, by quantity, model, GPU type and gang: constant, slope and curvature."""

    trends: dict[tuple[str, str, str, int], list[float]]

    def _at(self, quantity: str, job: JobType, gpu_type: str, gang: int = 1) -> float:
        """Return the trend at a job's batch size: its logarithm, or for memory its thousands."""
        constant, slope, curvature = self.trends[quantity, job.model, gpu_type, gang]
        x = (job.batch_size or 0) / 1000 if quantity == "memory" else job.size
        return constant + slope * x + curvature * x * x

    def _alone(self, job: JobType, gpu_type: str) -> float:
        return float(2 ** self._at("alone", job, gpu_type))

    def one_gpu(self, job: JobType) -> dict[str, float]:
        """Return steps/s on one GPU of each type; one GPU is always consolidated."""
        speeds = {gpu_type: self._alone(job, gpu_type) for gpu_type in GPU_TYPES}
        return speeds | {gpu_type + UNCONSOLIDATED: speed for gpu_type, speed in speeds.items()}

    def gang(self, job: JobType, gang: int) -> dict[str, float]:
        """Return steps/s of a gang on each type, on few and on many servers."""
        near = {}
        far = {}
        for gpu_type in GPU_TYPES:
            gain = 2 ** self._at("scale_out", job, gpu_type, gang)
            fits = _GANG_MEMORY * self._at("memory", job, gpu_type) < 1.0
            near[gpu_type] = self._alone(job, gpu_type) * float(gain) if fits else 0.0
            loss = 2 ** self._at("unconsolidated", job, gpu_type, gang)
            far[gpu_type + UNCONSOLIDATED] = near[gpu_type] * float(loss)
        return near | far

    def pair(self, one: JobType, other: JobType, gpu_type: str) -> tuple[float, float]:
        """Return steps/s of each of two one-GPU jobs on one GPU."""
        base = gpu_type.removesuffix(UNCONSOLIDATED)
        if self._at("memory", one, base) + self._at("memory", other, base) > 1.0:
            return 0.0, 0.0
        return self._beside(one, other, base), self._beside(other, one, base)

    def _beside(self, job: JobType, other: JobType, gpu_type: str) -> float:
        lost = self._at("kept", job, gpu_type) + self._at("pressure", other, gpu_type)
        return self._alone(job, gpu_type) * min(1.0, float(2**lost))
