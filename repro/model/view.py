"""Read access of a policy: arrived jobs, plus the columns named in `needs`."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats, Ints
from repro.model.cluster.spec import Cluster, gpus_by_type
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Curves
from repro.model.speeds import Speeds


class Places(Protocol):
    """Who holds which GPUs."""

    runs: dict[int, Run]

    def nodes(self, job: int) -> tuple[tuple[int, int], ...]:
        """Return (node, GPUs there) of the gang a job belongs to."""

    def idle(self) -> list[int] | None:
        """Return the idle GPUs of every node, None if nodes are not told apart."""


class View:
    """Read-only window of a policy on one run; jobs are named by row number, times are seconds.

    A word in brackets must be in the policy's `needs`. ``policy`` is a name for messages.

    Time and events
        - ``now``: the instant of the decision
        - ``changed``: whether an event happened since the last decision
        - ``fresh``, ``finished``: rows that arrived, and that finished, since then
        - ``seed``: seed of the run

    Jobs present
        - ``jobs``: arrived and not finished, in order of arrival
        - ``arrived``: number of jobs that have arrived
        - ``is_unfinished(job)``: arrived and not finished

    A job
        - ``submit(job)``, ``submits``: submission time; of all jobs of the trace
        - ``gpus(job)``, ``widths``: demand (GPUs); of all jobs of the trace
        - ``run_seconds(job)``, ``run_seconds_of(jobs)``: time it has held GPUs
        - ``attained(job)``: attained service (GPU-seconds)
        - ``duration(job)``: true duration [duration]
        - ``remaining(job)``, ``remaining_of(jobs)``: true remaining time alone [duration]
        - ``work(fastest)``: work of all jobs on one GPU, given their speeds [duration]
        - ``iteration_s(job)``: time of one iteration alone [iteration_time]
        - ``steps_left(jobs)``: training steps left [duration]
        - ``step_s(jobs)``: time of a step where no table tells speeds [duration]
        - ``column(name)``, ``has_column(name)``: a column of the trace [its name]
        - ``job_id(job)``, ``row(job)``, ``source``: names for messages
        - ``note_promotion(job)``: counts a starvation promotion in the records

    Cluster
        - ``cluster``: nodes, switches, GPU types
        - ``gpu_types``, ``gpu_counts``: GPU types in alphabetical order, GPUs of each
        - ``capacity()``: GPUs by type
        - ``idle_gpus``: idle GPUs of each node, under a placement that tells nodes apart

    Speed
        - ``rate(job)``: present speed relative to running alone
        - ``curves()``: speed-up curves, and the curve of every job
        - ``speeds(job)``: steps/s on each GPU type [throughput]
        - ``pair_speeds(one, other)``, ``pairs``: steps/s on the same GPUs [throughput]
        - ``kind(job)``, ``kind_codes``: what jobs of equal speeds have in common [throughput]
        - ``model(job)``: the model that the job trains [throughput]
        - ``throughputs``: the throughput table of the run [throughput]

    Who runs where
        - ``running``, ``is_running(job)``: jobs that hold GPUs
        - ``held(job)``: GPUs that the job holds
        - ``run(job)``: the gang that the job runs in
        - ``nodes(job)``: nodes that the job is on, with GPUs there
        - ``together``: pairs that began to share GPUs since the last decision
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
        self._table = table
        self.cluster = cluster
        self.needs = needs
        self._policy = policy
        self._speeds = speeds or Speeds(table, None, gpus_by_type(cluster))
        self._seed = seed
        #: set by the engine
        self.places: Places | None = None
        #: whether the policy has asked for the seed
        self.seed_read = False
        self.now = 0.0
        #: events since the last decision, for policies that only react to changes
        self.changed = True
        #: (row, row, GPU type) of pairs that began to share GPUs since the last decision
        self.together: list[tuple[int, int, str | None]] = []
        #: rows that finished, and rows that arrived, since the last decision
        self.finished: list[int] = []
        self.fresh = range(0)

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
        held = self._table.running
        return [job for job in self._table.active if held[job]]

    def is_running(self, job: int) -> bool:
        """Tell whether the job holds GPUs."""
        return bool(self._table.running[job])

    def job_id(self, job: int) -> object:
        """Return the name of the job in the trace, for messages."""
        return self._table.ids[job]

    def gpus(self, job: int) -> int:
        """Return the GPUs the job asks for."""
        return self._table.gpus[job]

    @property
    def widths(self) -> Floats:
        """GPUs every job of the trace asks for."""
        return np.array(self._table.gpus, dtype=float)

    @property
    def submits(self) -> Floats:
        """Submission time of every job of the trace (s)."""
        return np.array(self._table.submit)

    def work(self, fastest: Floats) -> Floats:
        """Return what every job takes on one GPU (s) at these speeds S(gpus); needs ``"duration"``.

        The trace's own ``service`` is this product before it was rounded.
        """
        self._require("duration")
        table = self._table
        product = np.array(table.duration) * fastest
        if "service" not in table.frame:
            return product
        service = np.array(table.column("service", gaps=True), dtype=float)
        return np.where(np.isclose(service, product, rtol=1e-9, atol=0.0), service, product)

    def curves(self) -> tuple[Floats, Ints]:
        """Return speed-up curves and the curve of every job, see `Curves`; 0 where it is linear."""
        table = self._table
        if not isinstance(self._speeds.model, Curves):
            return np.zeros((1, 2)), np.zeros(table.count, np.int64)
        return self._speeds.model.table(table.models, table.gpus, table.ids)

    def held(self, job: int) -> float:
        """Return the GPUs the job holds now."""
        table = self._table
        return table.held[job] if table.running[job] else 0.0

    def run(self, job: int) -> Run | None:
        """Return the gang the job runs in, with its GPU type and the nodes of named tasks.

        None while it waits, and in rounds of shares where nobody records who holds what.
        """
        return self.places.runs.get(job) if self.places else None

    def nodes(self, job: int) -> tuple[tuple[int, int], ...]:
        """Return where the job sits: (node, GPUs there); empty if it waits or nodes are alike."""
        return self.places.nodes(job) if self.places else ()

    @property
    def idle_gpus(self) -> list[int]:
        """Idle GPUs of each node of `cluster`; needs a placement that tells nodes apart."""
        idle = self.places.idle() if self.places else None
        if idle is None:
            raise PolicyError(
                f"policy {self._policy!r} reads idle GPUs by node, but the placement only counts "
                f"GPUs; give one that tells nodes apart, such as placement='yarn'"
            )
        return idle

    def submit(self, job: int) -> float:
        """Return the submission time (s)."""
        return self._table.submit[job]

    def rate(self, job: int) -> float:
        """Return the speed relative to running alone: 1 while waiting, 0 while loading."""
        table = self._table
        if not table.running[job]:
            return 1.0
        return table.rate[job] * table.solo[job] if self.now >= table.since[job] else 0.0

    def run_seconds(self, job: int) -> float:
        """Return the seconds the job has held GPUs (t_J in Tiresias)."""
        return self._table.run_seconds(job, self.now)

    def run_seconds_of(self, jobs: Ints) -> Floats:
        """Return the seconds each of several jobs has held GPUs."""
        state = self._table.state
        now = np.where(state.running[jobs], self.now - state.hold[jobs], 0.0)
        seconds: Floats = state.seconds[jobs] + now
        return seconds

    def attained(self, job: int) -> float:
        """Return the attained service in GPU-seconds (W_J * t_J in Tiresias)."""
        return self._table.attained(job, self.now)

    def duration(self, job: int) -> float:
        """Return the true duration (s); needs ``"duration"``."""
        self._require("duration")
        return self._table.duration[job]

    def remaining(self, job: int) -> float:
        """Return the true work left (s alone at the GPUs asked for); needs ``"duration"``."""
        self._require("duration")
        return self._table.remaining(job, self.now) * self._table.solo[job]

    def remaining_of(self, jobs: Ints) -> Floats:
        """Return the true work left of several jobs (s alone); needs ``"duration"``."""
        self._require("duration")
        solo: Floats = self._table.derived("solo", lambda: np.array(self._table.solo))
        return self._table.units_left(jobs, self.now) * solo[jobs]

    def iteration_s(self, job: int) -> float:
        """Return the seconds of one iteration alone; needs ``"iteration_time"``, NaN if unknown."""
        self._require("iteration_time")
        return self._table.iteration_s(job)

    @property
    def source(self) -> str:
        """Name of the trace, for messages."""
        return self._table.source

    def has_column(self, name: str) -> bool:
        """Whether the trace has values in the column; needs its name."""
        self._require(name)
        return self._table.has(name)

    def row(self, job: int) -> str:
        """Row and id of a job in the trace, as messages name it."""
        return self._table.row(job)

    def column(
        self, name: str, default: object = None, *, gaps: bool = False
    ) -> np.ndarray[Any, Any]:
        """Whole trace column, or ``default`` for every job; needs its name.

        Parameters
        ----------
        name : str
            Name of the column.
        default : object, optional
            Value of every job where the trace has no such column; None: an error.
        gaps : bool
            The policy knows what a job without a value means; else a gap is an error.

        Raises
        ------
        PolicyError
            If the policy does not declare the column, or the trace lacks it.
        TraceError
            If a job has no value in the column.
        """
        self._require(name)
        frame = self._table.frame
        if default is not None and not self._table.has(name):
            return np.full(self._table.count, default)
        if name not in frame:
            raise PolicyError(
                f"policy {self._policy!r} needs trace column {name!r}; the trace has "
                f"{', '.join(map(str, frame.columns))}"
            )
        self._table.read.add(name)
        if not gaps:
            advice = "leave the job out" if default is None else "drop the column"
            self._table.refuse_gaps(name, f"fill it or {advice}")
        return frame[name].to_numpy()

    def note_promotion(self, job: int) -> None:
        """Count a starvation promotion in the records."""
        self._table.promotions[job] += 1

    @property
    def gpu_types(self) -> tuple[str | None, ...]:
        """GPU types in alphabetical order; (None,) on a cluster without types."""
        return self._speeds.gpu_types

    @property
    def gpu_counts(self) -> Floats:
        """GPUs of each of `gpu_types`."""
        return self._speeds.gpu_counts

    @property
    def kind_codes(self) -> Ints:
        """A number for every job of the run, equal where `kind` is; needs "throughput"."""
        self._require("throughput")
        return self._speeds.codes

    @property
    def pairs(self) -> Floats:
        """Steps/s of jobs of two kinds on the same GPUs, see `Speeds.pairs`; needs "throughput"."""
        self._require("throughput")
        return self._speeds.pairs

    def kind(self, job: int) -> tuple[str | None, int]:
        """Return what jobs of equal throughput have in common: (model, GPUs asked for)."""
        self._require("throughput")
        return self._speeds.kind(job)

    def model(self, job: int) -> str | None:
        """Return the model the job trains, for a throughput table of the policy's own."""
        self._require("throughput")
        return self._table.named_models(f"the throughput table of policy {self._policy!r}")[job]

    @property
    def throughputs(self) -> object | None:
        """The throughput table of the run, to be profiled; needs "throughput", None if unknown."""
        self._require("throughput")
        return self._speeds.perf

    def speeds(self, job: int) -> Floats:
        """Return steps/s on each type, 0 = cannot run, ones if unknown; needs "throughput"."""
        self._require("throughput")
        return self._speeds.of(job)

    def pair_speeds(self, one: int, other: int) -> Floats:
        """Return steps/s of two jobs on the same GPUs, (2, types), 0 = no; needs "throughput"."""
        self._require("throughput")
        return self._speeds.pair(one, other)

    def steps_left(self, jobs: Sequence[int]) -> Floats:
        """Return the training steps left of jobs, seconds if none are counted; needs "duration"."""
        self._require("duration")
        return self._table.units_left(jobs, self.now) * self._speeds.steps_per_unit(jobs)

    def step_s(self, jobs: Sequence[int]) -> Floats | float:
        """Return the seconds of a step where no table tells speeds, else 1; needs "duration"."""
        self._require("duration")
        return 1.0 if self._speeds.known else self._speeds.steps_per_unit(jobs)

    def capacity(self) -> Mapping[str | None, int]:
        """Return GPUs per type; a cluster without types has the one key None."""
        return gpus_by_type(self.cluster)
