"""Traces of many runs: frames or arrays, checked together."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, ReproError, TraceError, refuse_unknown
from repro.base.typing import Flags, Floats
from repro.engine import arguments, inputs
from repro.files.checks import shown
from repro.model.jobs import prediction_factors_of
from repro.trace.schema import COLUMNS, are_sound

#: Columns of traces that are passed as arrays.
ARRAYS = ("submit_time", "duration", "num_gpus")
#: Largest number of jobs that are checked together, or simulated in one compiled call. A trace with
#: more jobs has a check and a call of its own.
JOBS_PER_CALL = 65_536
_ACCEPTED = (
    "a DataFrame, a list of them or a mapping of labels to them, or the arrays "
    "submit_time, duration and num_gpus by name"
)


@dataclass
class Workload:
    """One trace: its label and columns, and the frame if it was passed as one."""

    label: Hashable
    #: submit times and durations (s), and demands (GPUs), in order of the trace
    submit: Floats
    duration: Floats
    gpus: Floats
    frame: pd.DataFrame | None = None
    #: predicted over true duration of each job; None: true durations are known
    prediction_factor: Floats | None = None

    @property
    def attrs(self) -> Mapping[Any, Any]:
        """Attributes of the frame, set by its loader."""
        return {} if self.frame is None else self.frame.attrs

    def at_load(self, load: float) -> pd.DataFrame:
        """Frame of the trace with submit times divided by ``load``."""
        frame = self.frame
        if frame is None:
            columns = {"submit_time": self.submit, "duration": self.duration, "num_gpus": self.gpus}
            frame = pd.DataFrame({"job_id": np.arange(len(self.submit)), **columns})
        return frame.assign(submit_time=self.submit / load)


@contextlib.contextmanager
def naming(run: str) -> Iterator[None]:
    """Begin the message of an error with the name of a run."""
    try:
        yield
    except ReproError as error:
        error.args = (f"{run}: {error}",)
        raise


def workloads(traces: Any, loads: Floats) -> list[Workload]:
    """Validated traces. An error names a trace and a column that break a rule.

    Parameters
    ----------
    traces : DataFrame, str, Path, sequence or mapping
        See `repro.simulate_many`.
    loads : array of float, shape (loads,)
        Numbers by which submit times are divided. The rules also hold for the quotients.
    """
    if isinstance(traces, pd.DataFrame | str | Path):
        checked = [_of_frame(0, traces)]
    elif isinstance(traces, Mapping) and set(traces) & set(ARRAYS):
        checked = _of_arrays(traces)
    elif isinstance(traces, Mapping):
        checked = [_of_frame(label, frame) for label, frame in traces.items()]
    elif isinstance(traces, Sequence):
        checked = [_of_frame(number, frame) for number, frame in enumerate(traces)]
    else:
        raise TraceError(f"the traces are a {type(traces).__name__}; give {_ACCEPTED}")
    if not checked:
        raise TraceError(f"no traces; give {_ACCEPTED}")
    for rows in of_equal_length(checked):
        submit, duration, gpus = columns_of([checked[row] for row in rows])
        for number in np.flatnonzero(~are_sound(submit / loads.min(), duration, gpus)).tolist():
            _refuse(checked[rows[number]], loads)
    return checked


def of_equal_length(traces: Sequence[Workload]) -> Iterator[list[int]]:
    """Yield groups of traces with equally many jobs, each as the positions of its traces.

    A group has at most `JOBS_PER_CALL` jobs in all, or is a single trace.
    """
    by_length: dict[int, list[int]] = {}
    for position, trace in enumerate(traces):
        by_length.setdefault(len(trace.submit), []).append(position)
    for num_jobs, positions in by_length.items():
        size = max(1, JOBS_PER_CALL // num_jobs)
        for first in range(0, len(positions), size):
            yield positions[first : first + size]


def columns_of(traces: Sequence[Workload]) -> tuple[Floats, Floats, Floats]:
    """Submit times and durations (s), and demands (GPUs), each (traces, jobs)."""
    submit = np.array([trace.submit for trace in traces])
    duration = np.array([trace.duration for trace in traces])
    gpus = np.array([trace.gpus for trace in traces])
    return submit, duration, gpus


def prediction_factors(traces: Sequence[Workload]) -> Floats:
    """Predicted over true duration of each job, (traces, jobs); 1 without predictions."""
    defaults = (np.ones(len(trace.submit)) for trace in traces)
    return np.array(
        [
            default if trace.prediction_factor is None else trace.prediction_factor
            for trace, default in zip(traces, defaults, strict=True)
        ]
    )


def _of_frame(label: Hashable, trace: Any) -> Workload:
    """Trace from a frame, a file or a public name."""
    with naming(f"trace {label}"):
        if not isinstance(trace, pd.DataFrame) or not _has_numbers_only(trace):
            trace = inputs.checked(trace)
        if trace.empty:
            inputs.checked(trace)
        arguments.check_attributes(trace)
    submit, duration, gpus = (trace[name].to_numpy(float) for name in ARRAYS)
    return Workload(label, submit, duration, gpus, trace, prediction_factors_of(trace))


def _has_numbers_only(frame: pd.DataFrame) -> bool:
    """Whether a frame has numbers in the required columns, unique ids, and no optional column."""
    if not frame.columns.is_unique:
        return False
    trace_columns = [name for name in frame.columns if name in COLUMNS]
    if set(trace_columns) != {"job_id", *ARRAYS} or frame["job_id"].dtype != np.int64:
        return False
    numeric = all(
        isinstance(frame[name].dtype, np.dtype) and frame[name].dtype.kind in "iuf"
        for name in ARRAYS
    )
    return numeric and bool(frame["job_id"].is_unique)


def _of_arrays(columns: Mapping[str, Any]) -> list[Workload]:
    """Traces from arrays, (traces, jobs), or (jobs,) for all traces."""
    refuse_unknown("arrays of traces have no column", columns, ARRAYS)
    absent = [name for name in ARRAYS if name not in columns]
    if absent:
        raise TraceError(f"traces: no array {absent[0]!r}; give {', '.join(ARRAYS)}")
    arrays = {name: np.asarray(columns[name]) for name in ARRAYS}
    for name, values in arrays.items():
        if values.dtype.kind not in "iuf":
            raise TraceError(f"traces: array {name!r} holds {values.dtype}; give numbers")
        if values.ndim not in (1, 2):
            raise TraceError(
                f"traces: array {name!r} has {values.ndim} dimensions; give (traces, jobs), or "
                f"(jobs,) for all traces"
            )
    try:
        submit, duration, gpus = np.broadcast_arrays(*arrays.values())
    except ValueError:
        shapes = ", ".join(f"{name} {values.shape}" for name, values in arrays.items())
        raise TraceError(
            f"traces: arrays of different shapes ({shapes}); give (traces, jobs), or (jobs,) for "
            f"all traces"
        ) from None
    rows = zip(*(np.atleast_2d(values) for values in (submit, duration, gpus)), strict=True)
    from_arrays = [
        Workload(number, *(values.astype(float) for values in row))
        for number, row in enumerate(rows)
    ]
    if from_arrays and not len(from_arrays[0].submit):
        raise TraceError("traces: no jobs; a trace holds at least one")
    return from_arrays


def _refuse(trace: Workload, loads: Floats) -> None:
    """Raise for the first rule that a trace breaks, as passed or at a load."""
    with naming(f"trace {trace.label}"):
        inputs.checked(trace.at_load(1.0) if trace.frame is None else trace.frame)
    for load in loads.tolist():
        with naming(f"trace {trace.label} at load {load:g}"):
            inputs.checked(trace.at_load(load))


def checked_loads(loads: Any) -> Floats:
    """Loads as an array; ParamError unless all are positive and finite."""
    given = shown(repr(loads))
    accepted = "give positive numbers, such as (0.8, 1.0, 1.2)"
    try:
        values = np.array([float(load) for load in loads])
    except (TypeError, ValueError):
        raise ParamError(f"loads are {given}; {accepted}") from None
    is_valid: Flags = (values > 0) & np.isfinite(values)
    if not len(values) or not is_valid.all():
        raise ParamError(f"loads are {given}; {accepted}")
    return values
