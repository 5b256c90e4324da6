"""Read access of a policy to a run: arrived jobs, and the inputs named in `needs`."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats, Ints
from repro.model.cluster.spec import Cluster, gpus_by_type
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Curves
from repro.model.speeds import Speeds


class HeldGpus(Protocol):
    """GPUs that jobs hold, as the engine records them."""

    #: gang of each running job
    runs: dict[int, Run]

    def nodes(self, job: int) -> tuple[tuple[int, int], ...]:
        """Nodes of the gang of a job, as (node, GPUs there)."""

    def idle(self) -> list[int] | None:
        """Idle GPUs of each node; None if the placement does not track nodes."""


def exact_work(product: Floats, service: Floats) -> Floats:
    """Work of each job (s on one GPU), (jobs,): ``service`` where it differs only by rounding.

    Parameters
    ----------
    product : array
        Duration times speed-up at the demand of each job (s on one GPU), (jobs,).
    service : array
        Trace column ``service`` (s on one GPU), (jobs,). If a value differs from the product by
        more than a relative 1e-9, the trace has other durations, and the work is the product.

    Examples
    --------
    >>> exact_work(np.array([0.1 + 0.2, 5.0]), np.array([0.3, 7.0])).tolist()
    [0.3, 5.0]
    """
    return np.where(np.isclose(service, product, rtol=1e-9, atol=0.0), service, product)


class View:
    """Read-only view of a run for a policy. Jobs are row numbers, and times are seconds.

    A word in brackets is an input that the policy must declare in `needs`. Reading an input that is
    not declared is a PolicyError. Arrays of all jobs have the shape (jobs,), by row number. Row
    numbers follow the order of submission. Arrays of several ``jobs`` have one entry for each of
    them.

    If the trace has the column ``predicted_duration``, a policy sees predicted durations and
    remaining times. They are the true values times a factor of the job, its predicted over its true
    duration. Without the column they are the true values. Jobs always run their true durations.

    Time and events
        - ``now``: present instant
        - ``changed``: whether an event happened since the last decision
        - ``fresh``, ``finished``: jobs that arrived, and that finished, since the last decision
        - ``seed``: seed of the run

    Jobs present
        - ``jobs``: arrived and not finished, in order of arrival
        - ``arrived``: number of jobs that have arrived
        - ``is_unfinished(job)``: arrived and not finished

    A job
        - ``submit(job)``, ``submits``: submission time, of a job and of all jobs of the trace
        - ``gpus(job)``, ``gpus_of(jobs)``, ``widths``: demand (GPUs), of a job, of several, of all
          jobs of the trace
        - ``run_seconds(job)``, ``run_seconds_of(jobs)``: time for which a job has held GPUs
        - ``attained(job)``, ``attained_of(jobs)``: attained service (GPU-seconds)
        - ``duration(job)``: time that the job takes alone, as predicted [duration]. With a
          throughput table and a single GPU type in the view, it is the time on that type;
          otherwise it is that on the type of the trace. Remaining times and work refer to the same
          type
        - ``trace_duration(job)``: duration in the trace, as predicted. It differs from ``duration``
          under rules that count iterations [duration]
        - ``remaining(job)``, ``remaining_of(jobs)``: remaining time alone, as predicted [duration]
        - ``remaining_rate(job)``: fall of ``remaining`` per second [duration]
        - ``work(full_speed)``: true work of all jobs (s on one GPU), from the speed-up of each
          on its demand [duration]
        - ``trace_work(full_speed)``: the same on the GPU type of the trace [duration]
        - ``prediction_factors``: predicted over true duration of all jobs [duration]
        - ``true_remaining_of(jobs)``: true remaining time alone. It serves to compute the progress
          of jobs, and policies decide by ``remaining_of`` [duration]
        - ``deadlines()``: deadlines of all jobs [duration, slo]
        - ``iteration_s(job)``: time of an iteration alone [iteration_time]
        - ``work_left(jobs)``: remaining work, as predicted: training steps with a throughput
          table, else seconds [duration]
        - ``work_per_step(jobs)``: divisor that turns ``work_left`` into steps [duration]
        - ``column(name)``, ``has_column(name)``: column of the trace [the column]
        - ``job_id(job)``, ``row(job)``, ``source``: names for messages
        - ``note_promotion(job)``: counts a promotion of a starved job in the records

    Cluster
        - ``cluster``: nodes, switches, GPU types
        - ``gpu_types``, ``gpu_counts``: GPU types in alphabetical order, GPUs of each
        - ``capacity()``: GPUs by type
        - ``idle_gpus``: idle GPUs of each node, under a placement that tracks nodes

    Speed
        - ``rate(job)``: present speed over that alone on the type of the trace
        - ``curves()``: speed-up curves, and the curve of each job
        - ``speeds(job)``: throughput on each GPU type (steps/s) [throughput]
        - ``pair_speeds(job, partner)``: throughput of two jobs on shared GPUs [throughput]
        - ``pairs``: throughput of any two kinds on shared GPUs [throughput]
        - ``kind(job)``, ``kind_codes``: kind of a job, equal for equal speeds [throughput]
        - ``model(job)``: model that the job trains [throughput]
        - ``throughputs``: throughput table of the run [throughput]

    Running jobs
        - ``running``, ``is_running(job)``: jobs that hold GPUs
        - ``held(job)``: number of GPUs that the job holds
        - ``run(job)``: gang of the job
        - ``nodes(job)``: nodes of the job, with its GPUs there
        - ``new_pairs``: pairs that began to share GPUs since the last decision

    Parameters
    ----------
    table : JobTable
        Jobs and their state. The engine makes the view; policies only read it.
    cluster : Cluster
        Cluster of the run.
    needs : frozenset of str
        Inputs that the policy declares.
    policy : str
        Name of the policy, for messages.
    speeds : Speeds, optional
        Speeds by GPU type. None: nominal speed on all types.
    seed : int
        Seed of the run.

    Examples
    --------
    A policy reads the view in its key, here the attained service of a job (GPU-seconds):

    >>> from dataclasses import dataclass
    >>> from repro import Order, simulate
    >>> from repro.testing import small_trace
    >>> @dataclass(frozen=True)
    ... class LeastService(Order):
    ...     def key(self, view, job):
    ...         return view.attained(job)
    ...     def slope(self, view, job):
    ...         return view.gpus(job)
    >>> simulate(small_trace(), "1x4", LeastService()).summary()["n_finished"]
    6
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
        self.needs = frozenset(needs)
        self._policy = policy
        self._speeds = speeds or Speeds(table, None, gpus_by_type(cluster))
        self._seed = seed
        #: GPUs that jobs hold, set by the engine
        self.holdings: HeldGpus | None = None
        #: whether the policy has read the seed
        self.seed_read = False
        #: whether the policy has asked for nodes of jobs or idle GPUs of nodes
        self.nodes_read = False
        self.now = 0.0
        #: whether an event happened since the last decision
        self.changed = True
        #: (job, job, GPU type) of pairs that began to share GPUs since the last decision
        self.new_pairs: list[tuple[int, int, str | None]] = []
        #: jobs that finished, and jobs that arrived, since the last decision
        self.finished: list[int] = []
        self.fresh: Sequence[int] = range(0)

    def _require(self, need: str) -> None:
        """Raise PolicyError unless the policy declares the input ``need``."""
        if need not in self.needs:
            raise PolicyError(
                f"policy {self._policy!r} reads {need!r} which it does not declare; "
                f"add it to its `needs`"
            )

    @property
    def seed(self) -> int:
        """Seed of the run, for policies with random choices."""
        self.seed_read = True
        return self._seed

    @property
    def jobs(self) -> list[int]:
        """Jobs that have arrived and not finished, in order of arrival."""
        return list(self._table.active)

    @property
    def arrived(self) -> int:
        """Number of jobs that have arrived: rows 0 to ``arrived`` - 1."""
        return self._table.arrived

    def is_unfinished(self, job: int) -> bool:
        """Whether the job has arrived and not finished."""
        return job in self._table.active

    @property
    def running(self) -> list[int]:
        """Jobs that hold GPUs, in order of arrival."""
        is_running = self._table.running
        return [job for job in self._table.active if is_running[job]]

    def is_running(self, job: int) -> bool:
        """Whether the job holds GPUs."""
        return bool(self._table.running[job])

    def job_id(self, job: int) -> object:
        """Id of the job in the trace, for messages."""
        return self._table.ids[job]

    def gpus(self, job: int) -> int:
        """Demand of the job (GPUs)."""
        return self._table.gpus[job]

    def gpus_of(self, jobs: Ints) -> Floats:
        """Demand of each of ``jobs`` (GPUs), (jobs,)."""
        gpus: Floats = self._table.derived("gpus", lambda: np.array(self._table.gpus, dtype=float))
        return gpus[jobs]

    @property
    def widths(self) -> Floats:
        """Width of each job of the trace: the GPUs it demands, (jobs,)."""
        return np.array(self._table.gpus, dtype=float)

    @property
    def submits(self) -> Floats:
        """Submission time of each job of the trace (s), (jobs,)."""
        return np.array(self._table.submit)

    def work(self, full_speed: Floats) -> Floats:
        """True work of each job (s on one GPU), (jobs,); input "duration".

        Work is duration times ``full_speed``, the speed-up S(demand) of each job. The trace column
        ``service`` may have the same work without the rounding of this product. Its value is taken
        instead where it is within a relative 1e-9 of the product.
        """
        work = self.trace_work(full_speed)
        return work if self._slowdowns is None else work * self._slowdowns

    def trace_work(self, full_speed: Floats) -> Floats:
        """True work of each job on the GPU type of the trace (s on one GPU), (jobs,).

        Input "duration".
        """
        self._require("duration")
        table = self._table
        product = np.array(table.solo_duration) * full_speed
        if "service" not in table.frame:
            return product
        return exact_work(product, np.array(table.column("service", gaps=True), dtype=float))

    def curves(self) -> tuple[Floats, Ints]:
        """Speed-up curves, and the curve of each job (0: linear); see `Curves`."""
        table = self._table
        if not isinstance(self._speeds.performance, Curves):
            return np.zeros((1, 2)), np.zeros(table.count, np.int64)
        return self._speeds.performance.table(table.models, table.gpus, table.ids)

    def held(self, job: int) -> float:
        """GPUs that the job holds."""
        table = self._table
        return table.held_gpus[job] if table.running[job] else 0.0

    def run(self, job: int) -> Run | None:
        """Gang of the job, with its GPU type and the nodes of its tasks.

        None while the job waits. Also None if the policy returns `Shares` and the rounds record no
        gangs.
        """
        return self.holdings.runs.get(job) if self.holdings else None

    def nodes(self, job: int) -> tuple[tuple[int, int], ...]:
        """Nodes of the job, as (node, GPUs there); empty if it waits or nodes are not tracked."""
        self.nodes_read = True
        return self.holdings.nodes(job) if self.holdings else ()

    @property
    def idle_gpus(self) -> list[int]:
        """Idle GPUs of each node of `cluster`. The placement must track nodes."""
        self.nodes_read = True
        idle = self.holdings.idle() if self.holdings else None
        if idle is None:
            raise PolicyError(
                f"policy {self._policy!r} reads idle GPUs by node, but the placement only counts "
                f"GPUs; give one that tracks nodes, such as placement='yarn'"
            )
        return idle

    def submit(self, job: int) -> float:
        """Submission time of the job (s)."""
        return self._table.submit[job]

    def rate(self, job: int) -> float:
        """Speed over that alone in the trace; 1 if the job waits, 0 before a start is complete."""
        table = self._table
        if not table.running[job]:
            return 1.0
        return table.rate[job] * table.solo[job] if self.now >= table.progress_from[job] else 0.0

    def run_seconds(self, job: int) -> float:
        """Time for which the job has held GPUs (s), t_J of Tiresias."""
        return self._table.run_seconds(job, self.now)

    def run_seconds_of(self, jobs: Ints) -> Floats:
        """Time for which each of ``jobs`` has held GPUs (s), (jobs,)."""
        state = self._table.state
        present = np.where(state.running[jobs], self.now - state.held_since[jobs], 0.0)
        seconds: Floats = state.earlier_held_s[jobs] + present
        return seconds

    def attained(self, job: int) -> float:
        """Attained service (GPU-seconds), W_J * t_J of Tiresias."""
        return self._table.attained(job, self.now)

    def attained_of(self, jobs: Ints) -> Floats:
        """Attained service of each of ``jobs`` (GPU-seconds), (jobs,)."""
        state = self._table.state
        present_s = self.now - state.held_since[jobs]
        present = np.where(state.running[jobs], present_s * state.held_gpus[jobs], 0.0)
        service: Floats = state.earlier_service[jobs] + present
        return service

    def duration(self, job: int) -> float:
        """Time that the job takes alone, as predicted (s); input "duration".

        It is the duration in the trace, or under rules that count iterations their time. With
        throughputs and a single GPU type in the view, it is the time on that type.
        """
        self._require("duration")
        return self._on_type(job, self._table.as_predicted(job, self._table.solo_duration[job]))

    def trace_duration(self, job: int) -> float:
        """Duration of the job in the trace, as predicted (s); input "duration".

        `duration` is another time if the rule set counts iterations. Both refer to the same GPU
        type.
        """
        self._require("duration")
        return self._on_type(job, self._table.as_predicted(job, self._table.duration[job]))

    def remaining(self, job: int) -> float:
        """Remaining time of the job alone on its demand, as predicted (s); input "duration"."""
        self._require("duration")
        table = self._table
        in_trace = table.as_predicted(job, table.remaining(job, self.now) * table.solo[job])
        return self._on_type(job, in_trace)

    def remaining_of(self, jobs: Ints) -> Floats:
        """Remaining time of ``jobs``, each alone, as predicted (s), (jobs,); input "duration"."""
        return self._as_predicted(jobs, self.true_remaining_of(jobs))

    def true_remaining_of(self, jobs: Ints) -> Floats:
        """Remaining time of ``jobs``, each alone, without prediction error (s), (jobs,).

        It serves to compute the progress of jobs. For decisions, policies read `remaining_of`
        instead. Input "duration".
        """
        self._require("duration")
        solo: Floats = self._table.derived("solo", lambda: np.array(self._table.solo))
        in_trace: Floats = self._table.units_left(jobs, self.now) * solo[jobs]
        return in_trace if self._slowdowns is None else in_trace * self._slowdowns[jobs]

    def remaining_rate(self, job: int) -> float:
        """Fall of `remaining` per second of a running job.

        It is `rate` times the predicted over the true duration and, with a single GPU type in the
        view, times the time on that type over the time in the trace. A key that is the remaining
        time falls at this rate, so its `Order.slope` is minus this rate. Input "duration".
        """
        self._require("duration")
        return self._on_type(job, self._table.as_predicted(job, self.rate(job)))

    @cached_property
    def _slowdowns(self) -> Floats | None:
        """Time alone on the only GPU type of the view over that in the trace, (jobs,).

        None: the view has several types, or no throughputs.
        """
        speeds = self._speeds
        if not speeds.has_throughputs or len(speeds.gpu_types) > 1:
            return None
        return speeds.slowdowns(speeds.gpu_types[0])

    def _on_type(self, job: int, value: float) -> float:
        """Quantity proportional to the duration of a job, on the GPU type of the view."""
        return value if self._slowdowns is None else value * float(self._slowdowns[job])

    @property
    def prediction_factors(self) -> Floats | None:
        """Predicted over true duration of each job of the trace, (jobs,); input "duration".

        None: the trace has no predictions, so true durations are known.
        """
        self._require("duration")
        factors = self._table.prediction_factors
        if factors is not None:
            factors = factors.view()
            factors.setflags(write=False)
        return factors

    def _as_predicted(self, jobs: Sequence[int] | Ints, true_values: Floats) -> Floats:
        """Predicted values of a quantity proportional to the duration, of each of ``jobs``."""
        factors = self._table.prediction_factors
        if factors is None:
            return true_values
        predicted: Floats = true_values * factors[np.asarray(jobs, dtype=np.int64)]
        return predicted

    def deadlines(self) -> Floats:
        """Deadline of each job of the trace (s), (jobs,); inputs "duration" and "slo".

        A deadline is submission + slo x true duration, a promise of the trace that does not depend
        on predictions. It is infinity for a job without an SLO.
        """
        self._require("duration")
        slo = np.asarray(self.column("slo", np.nan, gaps=True), dtype=float)
        factors = np.where(np.isnan(slo), np.inf, slo)
        deadlines: Floats = self.submits + factors * np.array(self._table.duration)
        return deadlines

    def iteration_s(self, job: int) -> float:
        """Time of an iteration alone (s), NaN if unknown; input "iteration_time"."""
        self._require("iteration_time")
        return self._table.iteration_s(job)

    @property
    def source(self) -> str:
        """Name of the trace, for messages."""
        return self._table.source

    def has_column(self, name: str) -> bool:
        """Whether the trace has values in the column, which `needs` must name."""
        self._require(name)
        return self._table.has(name)

    def row(self, job: int) -> str:
        """Text such as ``row 3 (job 17)`` that names a job of the trace in messages."""
        return self._table.row_label(job)

    def column(
        self, name: str, default: object = None, *, gaps: bool = False
    ) -> np.ndarray[Any, Any]:
        """Column of the trace, (jobs,), or ``default`` for every job. `needs` must name the column.

        Parameters
        ----------
        name : str
            Name of the column.
        default : object, optional
            Value of every job if the trace lacks the column; None: an error.
        gaps : bool
            True: jobs may lack a value. False: the first gap is an error.

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
        """Count a promotion of a starved job in the records."""
        self._table.promotions[job] += 1

    @property
    def gpu_types(self) -> tuple[str | None, ...]:
        """GPU types in alphabetical order; (None,) on a cluster without types."""
        return self._speeds.gpu_types

    @property
    def gpu_counts(self) -> Floats:
        """GPUs of each of `gpu_types`, (GPU types,)."""
        return self._speeds.gpu_counts.copy()

    @property
    def kind_codes(self) -> Ints:
        """Kind of each job of the run as a number, (jobs,); input "throughput"."""
        self._require("throughput")
        return self._speeds.kind_codes

    @property
    def pairs(self) -> Floats:
        """Throughput of two kinds on the same GPUs, see `Speeds.pairs`; input "throughput"."""
        self._require("throughput")
        return self._speeds.pairs

    def kind(self, job: int) -> tuple[str | None, int]:
        """Kind of a job, equal for equal throughputs: (model, demand); input "throughput"."""
        self._require("throughput")
        return self._speeds.kind(job)

    def model(self, job: int) -> str | None:
        """Model of the job, for a throughput table of the policy; input "throughput"."""
        self._require("throughput")
        return self._table.named_models(f"the throughput table of policy {self._policy!r}")[job]

    @property
    def throughputs(self) -> object | None:
        """Throughput table of the run, None if there is none; input "throughput"."""
        self._require("throughput")
        return self._speeds.throughput_model

    def speeds(self, job: int) -> Floats:
        """Throughput on each GPU type (steps/s), (GPU types,); input "throughput".

        It is 0 if the job cannot run on the type, and 1 without a throughput table.
        """
        self._require("throughput")
        return self._speeds.speeds_of(job)

    def pair_speeds(self, job: int, partner: int) -> Floats:
        """Throughput of two jobs on the same GPUs (steps/s), (2, GPU types); input "throughput".

        It is 0 if the two jobs cannot share GPUs of the type.
        """
        self._require("throughput")
        return self._speeds.pair(job, partner)

    def work_left(self, jobs: Sequence[int]) -> Floats:
        """Remaining work of ``jobs``, as predicted, (jobs,); input "duration".

        With a throughput table: training steps. Without one: seconds alone on the demand.
        """
        self._require("duration")
        true_work = self._table.units_left(jobs, self.now) * self._speeds.steps_per_unit(jobs)
        return self._as_predicted(jobs, true_work)

    def work_per_step(self, jobs: Sequence[int]) -> Floats | float:
        """Divisor that turns `work_left` of ``jobs`` into steps, (jobs,); input "duration".

        With a throughput table: 1. Without a table: time alone (s) of a step, or of an iteration
        under `Rules.iterations`. If the rules count neither, a step is a second.
        """
        self._require("duration")
        return 1.0 if self._speeds.has_throughputs else self._speeds.steps_per_unit(jobs)

    def capacity(self) -> Mapping[str | None, int]:
        """GPUs of each type. A cluster without types has one entry, with the key None."""
        return gpus_by_type(self.cluster)
