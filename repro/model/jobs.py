"""The job table of one run: what the engine knows about each job, as plain columns."""

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
#: Widest gang that is accepted.
MAX_GPUS_PER_JOB = 1_000_000


class State(NamedTuple):
    """What changes during a run, one array per column, one entry per job; the only book of it.

    Compiled loops write the arrays in place.
    """

    #: units of work left at `since`; progress since then is (now - since) * rate
    left: Floats
    since: Floats
    #: units of work per second
    rate: Floats
    #: instant by which former holders of the present GPUs are done with them
    clean: Floats
    #: whether GPUs are held, since when, how many, the column of their type (-1: not chosen), and
    #: the job they are shared with in rounds (-1: none)
    running: Flags
    hold: Floats
    held: Floats
    on_type: Ints
    partner: Ints
    #: seconds and GPU-seconds held in earlier holds
    seconds: Floats
    service: Floats
    first_start: Floats
    end: Floats
    preemptions: Ints
    promotions: Ints

    @classmethod
    def of(cls, work: list[float]) -> "State":
        """Return the state before the run of jobs with so many units of work."""
        n = len(work)
        time = {name: np.zeros(n) for name in cls._fields}
        none = {name: np.full(n, -1) for name in ("on_type", "partner")}
        counts = {name: np.zeros(n, np.int64) for name in ("preemptions", "promotions")}
        return cls(**time | none | counts)._replace(
            left=np.array(work, dtype=float),
            running=np.zeros(n, np.bool_),
            first_start=np.full(n, math.inf),
            end=np.full(n, math.nan),
        )


class JobTable:
    """What is known about each job, by row number in order of submission, equals as in the trace.

    ``table.left[job]`` and so on read and write the columns of `State` one by one.
    """

    def __init__(self, trace: pd.DataFrame, rules: Rules | None = None) -> None:
        rules = rules or Rules()
        submit = trace["submit_time"]
        work = trace["duration"]
        if rules.whole_seconds:
            submit = submit.astype("int64")
            work = work.astype("int64")
        #: instant of the trace at which the clock starts (s)
        self.clock_start_s = 0.0 if rules.trace_clock else float(submit.min())
        order = pd.Index(np.argsort(submit.to_numpy(), kind="stable"))
        #: rows of the trace, in the order used here
        self.frame = trace.iloc[order].reset_index(drop=True)
        #: position in the trace of each row used here
        self.positions = order
        n = self.count = len(trace)
        self.ids: list[object] = self.frame["job_id"].tolist()
        submit = submit.astype(float) - self.clock_start_s
        self.submit: list[float] = submit.iloc[order].tolist()
        #: trace columns that this run has read
        self.read = {"job_id", "submit_time", "num_gpus"}
        self._duration: list[float] = work.iloc[order].astype(float).tolist()
        self._columns: dict[str, list[Any]] = {}
        #: whether the trace has values in a column, and the columns without a gap
        self._has: dict[str, bool] = {}
        self._complete: set[str] = set()
        self._derived: dict[str, Any] = {}
        #: units of work (seconds at the reference allocation, or iterations), and the seconds one
        #: unit takes alone
        self.counts_iterations = rules.iterations is not None
        self.counts_steps = rules.steps
        if rules.iterations is not None:
            self.work, self.solo = self._in_iterations(trace, rules.iterations)
        elif not rules.steps:
            self.work = self.duration
            self.solo = [1.0] * n
        else:
            self._require(trace, "iterations", "give the training steps")
            self.work = list(map(float, self.column("iterations")))
            if self.has("iteration_time"):
                # durations are rounded
                self.refuse_gaps("iteration_time", "fill it or drop the column")
                self.solo = list(map(float, self.column("iteration_time")))
            else:
                self.solo = [s / n for s, n in zip(self.duration, self.work, strict=True)]
        #: rows below this number have arrived
        self.arrived = 0
        #: `models` for those whom it does not influence
        self.unread_models: list[str | None] = (
            self.frame["model"].tolist() if "model" in self.frame else [None] * n
        )
        self.gpus: list[int] = self.frame["num_gpus"].astype(int).tolist()
        self.state = State.of(self.work)
        # entries of memory views are plain numbers, three times as fast as those of arrays
        arrays: tuple[Any, ...] = self.state
        columns = [cast(Numbers, memoryview(array)) for array in arrays]
        self.left, self.since, self.rate, self.clean, self.running = columns[:5]
        self.hold, self.held, self.on_type, self.partner = columns[5:9]
        self.seconds, self.service, self.first_start, self.end = columns[9:13]
        self.preemptions, self.promotions = columns[13:]
        #: arrived and not finished, in order of arrival
        self.active: dict[int, None] = {}

    def _in_iterations(self, trace: pd.DataFrame, factor: float) -> tuple[list[float], list[float]]:
        for name in ("iterations", "iteration_time"):
            self._require(trace, name, "give iterations and iteration_time (s)")
        # the product is taken in milliseconds: its last bit decides between jobs of equal length
        solo = [
            round(float(seconds) * 1000.0, 6) * factor / 1000.0
            for seconds in self.column("iteration_time")
        ]
        return list(map(float, self.column("iterations"))), solo

    def _require(self, trace: pd.DataFrame, name: str, hint: str) -> None:
        """Raise unless every job has the column."""
        advice = f"these rules count work in iterations: {hint}, or use --rules paper"
        if name not in self.frame:
            raise TraceError(f"{self.source}: no column {name!r}; {advice}")
        self.refuse_gaps(name, advice)

    @property
    def duration(self) -> list[float]:
        """Seconds the trace says each job takes."""
        self.read.add("duration")
        return self._duration

    @property
    def source(self) -> str:
        """Name of the trace, for messages."""
        return str(self.frame.attrs.get("name", "the trace"))

    @property
    def models(self) -> list[str | None]:
        """Model of each job, None or NaN where the trace names none."""
        self.read.add("model")
        return self.unread_models

    def named_models(self, reader: str) -> list[str]:
        """Model of each job, for a ``reader`` that knows nothing about jobs without one.

        Parameters
        ----------
        reader : str
            What needs the models, for the message, such as "a throughput table".

        Raises
        ------
        TraceError
            If the trace has no column of models, or a job has none.
        """
        if not self.has("model"):
            raise TraceError(f"{self.source} has no column model, which {reader} needs; fill one")
        self.refuse_gaps("model", f"{reader} needs it: fill it or leave the job out")
        return cast(list[str], self.models)

    def has(self, name: str) -> bool:
        """Whether the trace has the column; one without any value counts as absent."""
        known = self._has.get(name)
        if known is None:
            known = name in self.frame and bool(self.frame[name].notna().any())
            self._has[name] = known
        return known

    def column(self, name: str, *, gaps: bool = False) -> list[Any]:
        """Trace column by row number; KeyError if there is none.

        Parameters
        ----------
        name : str
            Name of the column.
        gaps : bool
            The reader knows what a job without a value means; else a gap is a TraceError.
        """
        values = self._columns.get(name)
        if values is None:
            values = self._columns[name] = self.frame[name].tolist()
            self.read.add(name)
        if not gaps:
            self.refuse_gaps(name, "fill it or leave the job out")
        return values

    def refuse_gaps(self, name: str, advice: str) -> None:
        """Raise for the first row of the trace without a value in a column that is read."""
        if name in self._complete:
            return
        gaps = np.flatnonzero(self.frame[name].isna().to_numpy())
        if gaps.size:
            first = min(gaps.tolist(), key=self.positions.__getitem__)
            more = f" ({gaps.size - 1:,} more like it)" if gaps.size > 1 else ""
            raise TraceError(f"{self.source}: {self.row(first)} has no {name}; {advice}{more}")
        self._complete.add(name)

    def row(self, job: int) -> str:
        """Row and id of a job, as messages name it; rows count from 0, as in a DataFrame."""
        return f"row {self.positions[job]} (job {self.ids[job]})"

    def derived(self, name: str, make: Callable[[], T]) -> T:
        """Return what ``make`` says about the whole trace, asked once per run and name."""
        if name not in self._derived:
            self._derived[name] = make()
        found: T = self._derived[name]
        return found

    def iteration_s(self, job: int) -> float:
        """Return the seconds one iteration takes alone, NaN if the trace does not say."""
        if self.counts_iterations:
            return self.solo[job]
        if "iteration_time" not in self.frame:
            return math.nan
        return float(self.column("iteration_time", gaps=True)[job])

    def remaining(self, job: int, now: float) -> float:
        """Return the units of work left."""
        if not self.running[job]:
            return self.left[job]
        return self.left[job] - max(0.0, now - self.since[job]) * self.rate[job]

    def units_left(self, jobs: Sequence[int] | Ints, now: float) -> Floats:
        """Return the units of work left of several jobs."""
        state = self.state
        rows = np.asarray(jobs, dtype=np.int64)
        gone = np.maximum(0.0, now - state.since[rows]) * state.rate[rows]
        left: Floats = state.left[rows] - np.where(state.running[rows], gone, 0.0)
        return left

    def run_seconds(self, job: int, now: float) -> float:
        """Return the seconds during which the job has held GPUs."""
        return self.seconds[job] + (now - self.hold[job] if self.running[job] else 0.0)

    def attained(self, job: int, now: float) -> float:
        """Return the attained service (GPU-seconds)."""
        held = (now - self.hold[job]) * self.held[job] if self.running[job] else 0.0
        return self.service[job] + held
