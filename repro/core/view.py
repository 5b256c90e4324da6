"""What a policy is allowed to see: the jobs so far, and of their secrets only what it declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from repro.cluster.spec import Cluster, gpus_by_type
from repro.core.jobs import JobTable
from repro.core.speeds import Speeds
from repro.errors import PolicyError


class Untold(Protocol):
    """What keeps count of progress by itself."""

    def tell(self) -> None:
        """Write into the job table what it was not yet told."""

    def units_left(self, jobs: Sequence[int]) -> npt.NDArray[np.float64] | None:
        """Return the units of work left of several jobs; None: ask the job table."""


class View:
    """Read-only window on one run.

    Parameters
    ----------
    table : JobTable
        The engine's job table.
    cluster : Cluster
        The cluster.
    needs : frozenset of str
        Declared by the policy: ``"duration"`` opens true durations and remaining work; any other
        name opens the trace column of that name.
    policy : str
        Name for messages.
    speeds : Speeds, optional
        Throughputs by GPU type, opened by ``"throughput"``; unknown by default.
    seed : int
        Seed of the run, for policies that draw.
    """

    def __init__(
        self,
        table: JobTable,
        cluster: Cluster,
        needs: frozenset[str],
        policy: str,
        speeds: Speeds | None = None,
        seed: int = 0,
    ) -> None:
        self._table, self.cluster, self.needs, self._policy = table, cluster, needs, policy
        self._speeds = speeds or Speeds(table, None, gpus_by_type(cluster))
        self._seed = seed
        #: whether the policy has asked for the seed
        self.seed_read = False
        self.now = 0.0
        #: events since the last decision, for policies that only react to changes
        self.changed = True
        #: (row, row, GPU type) of pairs that began to share GPUs since the last decision
        self.together: list[tuple[int, int, str | None]] = []
        #: rows that finished since the last decision
        self.finished: list[int] = []
        #: what keeps count of progress by itself, and whether the job table knows of it
        self._rounds: Untold | None = None
        self._told = True

    @property
    def _progress(self) -> JobTable:
        """The job table with what jobs hold and held, and how far they are."""
        if not self._told and self._rounds:
            self._told = True
            self._rounds.tell()
        return self._table

    def ask_later(self, rounds: Untold) -> None:
        """Let progress be asked for when the policy does."""
        self._rounds, self._told = rounds, False

    def _require(self, need: str) -> None:
        if need not in self.needs:
            raise PolicyError(
                f"policy {self._policy!r} reads {need!r} which it does not declare; "
                f"add it to its `needs`"
            )

    @property
    def seed(self) -> int:
        """Seed of the run, for policies that draw."""
        self.seed_read = True
        return self._seed

    @property
    def jobs(self) -> list[int]:
        """Row numbers of the jobs that have arrived and not finished, in order of arrival."""
        return list(self._table.active)

    @property
    def arrived(self) -> int:
        """Number of jobs that have arrived; they are rows 0 to this number less one."""
        return self._table.arrived

    def is_unfinished(self, job: int) -> bool:
        """Tell whether the job has arrived and not finished."""
        return job in self._table.active

    @property
    def running(self) -> list[int]:
        """Row numbers of the jobs that hold GPUs, in order of arrival."""
        held = self._progress.running
        return [job for job in self._table.active if held[job]]

    def is_running(self, job: int) -> bool:
        """Tell whether the job holds GPUs."""
        return self._progress.running[job]

    def job_id(self, job: int) -> object:
        """Return the name of the job in the trace, for messages."""
        return self._table.ids[job]

    def gpus(self, job: int) -> int:
        """Return the GPUs the job asks for."""
        return self._table.gpus[job]

    def held(self, job: int) -> float:
        """Return the GPUs the job holds now."""
        table = self._progress
        return table.held[job] if table.running[job] else 0.0

    def submit(self, job: int) -> float:
        """Return the submission time (s)."""
        return self._table.submit[job]

    def first_start(self, job: int) -> float:
        """Return the instant the job first got GPUs (s), infinity if never."""
        return self._progress.first_start[job]

    def rate(self, job: int) -> float:
        """Return the speed relative to running alone now, 1 (nominal) while waiting.

        It is 0 while a job holds GPUs that are still being checkpointed or loaded.
        """
        table = self._progress
        if not table.running[job]:
            return 1.0
        return table.rate[job] * table.solo[job] if self.now >= table.since[job] else 0.0

    def run_seconds(self, job: int) -> float:
        """Return the seconds the job has held GPUs (t_J in Tiresias)."""
        return self._progress.run_seconds(job, self.now)

    def attained(self, job: int) -> float:
        """Return the attained service in GPU-seconds (W_J * t_J in Tiresias)."""
        return self._progress.attained(job, self.now)

    def waiting(self, job: int) -> float:
        """Return the seconds since the job last held GPUs, 0 while it runs."""
        return 0.0 if self._progress.running[job] else self.now - self._table.last_stop[job]

    def duration(self, job: int) -> float:
        """Return the true duration (s); needs ``"duration"``."""
        self._require("duration")
        return self._table.duration[job]

    def remaining(self, job: int) -> float:
        """Return the true work left (s alone at the GPUs asked for); needs ``"duration"``."""
        self._require("duration")
        return self._progress.remaining(job, self.now) * self._table.solo[job]

    def iteration_s(self, job: int) -> float:
        """Return the seconds of one iteration alone; needs ``"iteration_time"``, NaN if unknown."""
        self._require("iteration_time")
        return self._table.iteration_s(job)

    @property
    def source(self) -> str:
        """Name of the trace, for messages."""
        return str(self._table.frame.attrs.get("name", "the trace"))

    def has_column(self, name: str) -> bool:
        """Tell whether the trace has the column; needs its name."""
        self._require(name)
        return name in self._table.frame

    def column(self, name: str, default: object = None) -> npt.NDArray[np.generic]:
        """Return a whole trace column, indexed by row number; needs its name.

        A trace without the column yields ``default`` for every job, or an error if that is None.
        """
        self._require(name)
        frame = self._table.frame
        if name not in frame and default is not None:
            return np.full(self._table.count, default)
        if name not in frame:
            raise PolicyError(
                f"policy {self._policy!r} needs trace column {name!r}; the trace has "
                f"{', '.join(map(str, frame.columns))}"
            )
        self._table.read.add(name)
        column: npt.NDArray[np.generic] = frame[name].to_numpy()
        return column

    def note_promotion(self, job: int) -> None:
        """Count a starvation promotion in the records."""
        self._table.promotions[job] += 1

    @property
    def gpu_types(self) -> tuple[str | None, ...]:
        """GPU types in alphabetical order; (None,) on a cluster without types."""
        return self._speeds.gpu_types

    @property
    def gpu_counts(self) -> npt.NDArray[np.float64]:
        """GPUs of each of `gpu_types`."""
        return self._speeds.gpu_counts

    def kind(self, job: int) -> tuple[str | None, int]:
        """Return what jobs of equal throughput have in common: (model, GPUs asked for)."""
        self._require("throughput")
        return self._speeds.kind(job)

    def model(self, job: int) -> str | None:
        """Return the model the job trains, for a throughput table of the policy's own."""
        self._require("throughput")
        return self._table.models[job]

    @property
    def throughputs(self) -> object | None:
        """The throughput table of the run, to be profiled; needs "throughput", None if unknown."""
        self._require("throughput")
        return self._speeds.table

    def speeds(self, job: int) -> npt.NDArray[np.float64]:
        """Return steps per second on each of `gpu_types`, 0 = cannot run; needs "throughput".

        Ones where the run has no throughputs.
        """
        self._require("throughput")
        return self._speeds.of(job)

    def pair_speeds(self, one: int, other: int) -> npt.NDArray[np.float64]:
        """Return steps per second of two jobs on the same GPUs; needs "throughput".

        Shape (2, GPU types); zeros where they cannot share (memory, unequal gangs, unknown).
        """
        self._require("throughput")
        return self._speeds.pair(one, other)

    def remaining_steps(self, job: int) -> float:
        """Return the training steps left; needs ``"duration"``.

        Seconds where the trace does not count steps.
        """
        return float(self.steps_left([job])[0])

    def steps_left(self, jobs: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return the training steps left of several jobs, as `remaining_steps`."""
        self._require("duration")
        units = self._rounds.units_left(jobs) if self._rounds else None
        if units is None:
            table, now = self._progress, self.now
            units = np.array([table.remaining(job, now) for job in jobs])
        return units * self._speeds.steps_per_unit(jobs)

    def capacity(self) -> Mapping[str | None, int]:
        """Return GPUs per type; a cluster without types has the one key None."""
        return gpus_by_type(self.cluster)
