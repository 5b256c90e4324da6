"""The job table of one run: constants and state of each job, as columns."""

import math
from collections.abc import Callable, MutableSequence, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd

from repro.base.errors import TraceError
from repro.base.typing import Flags, Floats, Ints
from repro.model.rules import Rules

T = TypeVar("T")
Numbers = MutableSequence[float]
#: Largest accepted demand of a job (GPUs).
MAX_GPUS_PER_JOB = 1_000_000


class State(NamedTuple):
    """State of all jobs of a run: arrays with an entry per job. There is no other copy of them.

    Compiled functions write the arrays in place. Instants are seconds of the clock of the run.
    """

    #: remaining work at the instant `progress_from` (units). Later progress is (now -
    #: progress_from) * rate.
    work_left: Floats
    progress_from: Floats
    #: units of work per second
    rate: Floats
    #: instant at which the previous holders of the job's GPUs have saved and left
    gpus_free_from: Floats
    #: whether the job holds GPUs
    running: Flags
    #: start of the present interval of holding GPUs, and number of these GPUs
    held_since: Floats
    held_gpus: Floats
    #: index in `View.gpu_types` of the GPU type that the job holds (-1: the job waits, or its type
    #: is not recorded)
    type_column: Ints
    #: job that shares the GPUs in rounds (-1: none)
    partner: Ints
    #: time (s) and attained service (GPU-seconds) of earlier intervals of holding GPUs
    earlier_held_s: Floats
    earlier_service: Floats
    first_start: Floats
    end: Floats
    preemptions: Ints
    promotions: Ints

    @classmethod
    def of(cls, work: list[float]) -> "State":
        """State before the run; ``work`` has the units of work of each job."""
        n = len(work)
        numbers = {name: np.zeros(n) for name in cls._fields}
        indices = {name: np.full(n, -1) for name in ("type_column", "partner")}
        counts = {name: np.zeros(n, np.int64) for name in ("preemptions", "promotions")}
        return cls(**numbers | indices | counts)._replace(
            work_left=np.array(work, dtype=float),
            running=np.zeros(n, np.bool_),
            first_start=np.full(n, math.inf),
            end=np.full(n, math.nan),
        )


class JobTable:
    """Jobs of one run as columns, by row number.

    Rows are in order of submission, and in the order of the trace for equal times. The attributes
    named as fields of `State` read and write its entries, such as ``table.work_left[job]``.
    """

    def __init__(self, trace: pd.DataFrame, rules: Rules | None = None) -> None:
        rules = rules or Rules()
        submit = trace["submit_time"]
        duration = trace["duration"]
        if rules.whole_seconds:
            submit = submit.astype("int64")
            duration = duration.astype("int64")
        #: start of the clock, in time of the trace (s)
        self.clock_start_s = 0.0 if rules.trace_clock else float(submit.min())
        order = pd.Index(np.argsort(submit.to_numpy(), kind="stable"))
        #: the trace in order of submission
        self.frame = trace.iloc[order].reset_index(drop=True)
        #: position in the trace of each row of `frame`
        self.positions = order
        #: number of jobs
        self.count = len(trace)
        self.ids: list[object] = self.frame["job_id"].tolist()
        submit = submit.astype(float) - self.clock_start_s
        self.submit: list[float] = submit.iloc[order].tolist()
        #: columns of the trace that the run has read
        self.read = {"job_id", "submit_time", "num_gpus"}
        self._duration: list[float] = duration.iloc[order].astype(float).tolist()
        self._columns: dict[str, list[Any]] = {}
        self._prediction_factors = prediction_factors_of(self.frame)
        #: whether the trace has values in a column, by name
        self._has: dict[str, bool] = {}
        #: columns in which `refuse_gaps` found a value for every job
        self._complete: set[str] = set()
        self._derived: dict[str, Any] = {}
        self.counts_iterations = rules.iterations is not None
        self.counts_steps = rules.steps
        #: ``work``: work of each job (units). ``solo``: time of a unit of work of each job that
        #: runs alone (s). A unit is an iteration under `Rules.iterations`, a training step under
        #: `Rules.steps`, or else a second on as many GPUs as the job demands.
        self.work, self.solo = self._work_and_solo(rules)
        #: number of jobs that have arrived: rows 0 to ``arrived`` - 1
        self.arrived = 0
        #: model of each job; reading it, unlike `models`, does not count as a use of the column
        self.uncounted_models: list[str | None] = [None] * self.count
        if "model" in self.frame:
            self.uncounted_models = self.frame["model"].tolist()
        self.gpus: list[int] = self.frame["num_gpus"].astype(int).tolist()
        self.state = State.of(self.work)
        # entries of memory views are Python numbers, read three times as fast as those of arrays
        arrays: tuple[Any, ...] = self.state
        columns = [cast(Numbers, memoryview(array)) for array in arrays]
        self.work_left, self.progress_from, self.rate = columns[:3]
        self.gpus_free_from, self.running = columns[3:5]
        self.held_since, self.held_gpus, self.type_column, self.partner = columns[5:9]
        self.earlier_held_s, self.earlier_service, self.first_start, self.end = columns[9:13]
        self.preemptions, self.promotions = columns[13:]
        #: jobs that have arrived and not finished, in order of arrival: the keys of the dictionary
        self.active: dict[int, None] = {}

    def _work_and_solo(self, rules: Rules) -> tuple[list[float], list[float]]:
        """Work of each job (units), and time of a unit alone (s), as the rules count work."""
        if rules.iterations is not None:
            return self._in_iterations(rules.iterations)
        if rules.steps:
            return self._in_steps()
        return self.duration, [1.0] * self.count

    def _in_steps(self) -> tuple[list[float], list[float]]:
        """Training steps of each job, and time of a step alone (s)."""
        self._require("iterations", "give the training steps")
        steps = list(map(float, self.column("iterations")))
        if not self.has("iteration_time"):
            if 0.0 in steps:
                raise TraceError(
                    f"{self.source}: {self.row_label(steps.index(0.0))} has 0 iterations and a "
                    f"duration; give its training steps, or a column iteration_time (s)"
                )
            durations = self.duration
            return steps, [total / count for total, count in zip(durations, steps, strict=True)]
        # the time of a step is exact, whereas durations are rounded
        self.refuse_gaps("iteration_time", "fill it or drop the column")
        return steps, list(map(float, self.column("iteration_time")))

    def _in_iterations(self, factor: float) -> tuple[list[float], list[float]]:
        """Count of iterations of each job, and time of an iteration alone (s).

        The time is that of the trace, times ``factor``.
        """
        for name in ("iterations", "iteration_time"):
            self._require(name, "give iterations and iteration_time (s)")
        # Muri's simulator multiplies milliseconds, and the last bit of the product orders jobs of
        # equal length.
        solo = [
            round(float(seconds) * 1000.0, 6) * factor / 1000.0
            for seconds in self.column("iteration_time")
        ]
        return list(map(float, self.column("iterations"))), solo

    def _require(self, name: str, hint: str) -> None:
        """Raise TraceError unless every job has a value in the column."""
        advice = (
            f"these rules count work in iterations: {hint}; repro trace dress adds iterations and "
            f"iteration_time to a trace; or use --rules paper"
        )
        if name not in self.frame:
            raise TraceError(f"{self.source}: no column {name!r}; {advice}")
        self.refuse_gaps(name, advice)

    @property
    def duration(self) -> list[float]:
        """Duration of each job in the trace (s)."""
        self.read.add("duration")
        return self._duration

    @property
    def solo_duration(self) -> list[float]:
        """Time that each job takes alone (s), from its iterations where the rules count them."""
        if not (self.counts_iterations or self.counts_steps):
            return self.duration
        return self.derived(
            "solo duration",
            lambda: [units * unit_s for units, unit_s in zip(self.work, self.solo, strict=True)],
        )

    @property
    def prediction_factors(self) -> Floats | None:
        """Predicted over true duration of each job, (jobs,); None: true durations are known."""
        if self._prediction_factors is not None:
            self.read.add("predicted_duration")
        return self._prediction_factors

    def as_predicted(self, job: int, true_value: float) -> float:
        """Predicted value of a quantity that is proportional to the duration of a job."""
        factors = self.prediction_factors
        return true_value if factors is None else true_value * factors.item(job)

    @property
    def source(self) -> str:
        """Name of the trace, for messages."""
        return str(self.frame.attrs.get("name", "the trace"))

    @property
    def models(self) -> list[str | None]:
        """Model of each job; None or NaN where the trace has none."""
        self.read.add("model")
        return self.uncounted_models

    def named_models(self, reader: str) -> list[str]:
        """Model of each job, for a ``reader`` that requires a model for every job.

        Parameters
        ----------
        reader : str
            Reader of the models for the message, such as "a throughput table".

        Raises
        ------
        TraceError
            If the trace has no column of models, or a job has no model.
        """
        if not self.has("model"):
            raise TraceError(f"{self.source} has no column 'model', which {reader} needs; add it")
        self.refuse_gaps("model", f"{reader} needs it: fill it or leave the job out")
        return cast(list[str], self.models)

    def has(self, name: str) -> bool:
        """Whether the trace has the column; a column without values counts as absent."""
        if name not in self._has:
            self._has[name] = name in self.frame and bool(self.frame[name].notna().any())
        return self._has[name]

    def column(self, name: str, *, gaps: bool = False) -> list[Any]:
        """Column of the trace by row number; KeyError if the trace lacks it.

        Parameters
        ----------
        name : str
            Name of the column.
        gaps : bool
            True: jobs may lack a value. False: the first gap is a TraceError.
        """
        values = self._columns.get(name)
        if values is None:
            values = self._columns[name] = self.frame[name].tolist()
            self.read.add(name)
        if not gaps:
            self.refuse_gaps(name, "fill it or leave the job out")
        return values

    def refuse_gaps(self, name: str, advice: str) -> None:
        """Raise TraceError for the first row of the trace without a value in a column."""
        if name in self._complete:
            return
        gaps = np.flatnonzero(self.frame[name].isna().to_numpy())
        if gaps.size:
            first = min(gaps.tolist(), key=self.positions.__getitem__)
            more = f" ({gaps.size - 1:,} more like it)" if gaps.size > 1 else ""
            raise TraceError(
                f"{self.source}: {self.row_label(first)} has no {name}; {advice}{more}"
            )
        self._complete.add(name)

    def row_label(self, job: int) -> str:
        """Row and id of a job for messages; rows count from 0, as in a DataFrame."""
        return f"row {self.positions[job]} (job {self.ids[job]})"

    def derived(self, name: str, make: Callable[[], T]) -> T:
        """Value that ``make`` computes from the trace, once per run and name."""
        if name not in self._derived:
            self._derived[name] = make()
        value: T = self._derived[name]
        return value

    def iteration_s(self, job: int) -> float:
        """Time of an iteration alone (s); NaN if the trace lacks it."""
        if self.counts_iterations:
            return self.solo[job]
        if "iteration_time" not in self.frame:
            return math.nan
        return float(self.column("iteration_time", gaps=True)[job])

    def remaining(self, job: int, now: float) -> float:
        """Remaining work of a job (units)."""
        if not self.running[job]:
            return self.work_left[job]
        return self.work_left[job] - max(0.0, now - self.progress_from[job]) * self.rate[job]

    def units_left(self, jobs: Sequence[int] | Ints, now: float) -> Floats:
        """Remaining work of several jobs (units), (jobs,)."""
        state = self.state
        rows = np.asarray(jobs, dtype=np.int64)
        progress = np.maximum(0.0, now - state.progress_from[rows]) * state.rate[rows]
        remaining: Floats = state.work_left[rows] - np.where(state.running[rows], progress, 0.0)
        return remaining

    def run_seconds(self, job: int, now: float) -> float:
        """Time for which a job has held GPUs (s)."""
        return self.earlier_held_s[job] + (now - self.held_since[job] if self.running[job] else 0.0)

    def attained(self, job: int, now: float) -> float:
        """Attained service of a job (GPU-seconds)."""
        present = (now - self.held_since[job]) * self.held_gpus[job] if self.running[job] else 0.0
        return self.earlier_service[job] + present


def prediction_factors_of(trace: pd.DataFrame) -> Floats | None:
    """Predicted over true duration of each job, (jobs,); None without column predicted_duration.

    A column without values counts as absent.

    >>> trace = pd.DataFrame({"duration": [10.0, 8.0], "predicted_duration": [5.0, 8.0]})
    >>> prediction_factors_of(trace)
    array([0.5, 1. ])
    """
    if "predicted_duration" not in trace or trace["predicted_duration"].isna().all():
        return None
    predicted = trace["predicted_duration"].to_numpy(float)
    factors: Floats = predicted / trace["duration"].to_numpy(float)
    return factors
