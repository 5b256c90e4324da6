"""Inputs of a simulation: validation of the trace, notes for users, stand-ins for public data."""

from pathlib import Path

import pandas as pd

from repro.base.errors import TraceError
from repro.engine.setup import Setup
from repro.files import public
from repro.model.policy import Policy
from repro.model.share_policy import share_traits
from repro.perf.model_names import stand_in_note
from repro.perf.parameter_server import PlanTimes
from repro.perf.speedup import SpeedUp
from repro.perf.throughput import ThroughputTable
from repro.trace.history import PUBLIC_SAMPLE, is_stand_in
from repro.trace.load import load
from repro.trace.schema import COLUMNS, REQUIRED, validate

DAY_S = 86_400.0
#: Formats of the traces of Microsoft's Philly cluster, from which `PUBLIC_SAMPLE` has job sizes.
HISTORY_FORMATS = ("tiresias", "philly")


def checked(trace: pd.DataFrame | str | Path) -> pd.DataFrame:
    """Validate a trace; its rows keep the order of the input.

    Parameters
    ----------
    trace : DataFrame, str or Path
        A frame with the columns of the schema, a file, or the name of a public trace.

    Raises
    ------
    TraceError
        If the trace has another type, or breaks a rule of the schema.
    """
    if isinstance(trace, str | Path):
        return load(trace)
    if not isinstance(trace, pd.DataFrame):
        raise TraceError(
            f"the trace is a {type(trace).__name__}; give a DataFrame (pd.DataFrame(...)) with the "
            f"columns {', '.join(REQUIRED)}, or the path of a file"
        )
    name = str(trace.attrs.get("name", "trace"))
    for column in COLUMNS:
        if column in trace:
            _refuse_types(trace, column, name)
    return validate(trace.reset_index(drop=True), name, keep_order=True)


def _refuse_types(trace: pd.DataFrame, column: str, name: str) -> None:
    """Raise TraceError for dates, time spans and Boolean ids, with advice on their conversion."""
    values = trace[column]
    if not isinstance(values, pd.Series):
        return
    if column == "job_id" and values.dtype == bool:
        raise TraceError(f"{name}: column 'job_id' holds true and false; give numbers or text")
    if values.dtype.kind not in "mM":
        return
    seconds = f"trace[{column!r}].dt.total_seconds()"
    if values.dtype.kind == "M":
        seconds = f"(trace[{column!r}] - trace[{column!r}].min()).dt.total_seconds()"
    raise TraceError(f"{name}: column {column!r} holds {values.dtype}; give seconds: {seconds}")


def notes(setup: Setup, trace: pd.DataFrame, rules: str) -> list[str]:
    """Lines on properties of the input that change the meaning of the result.

    Parameters
    ----------
    setup : Setup
        The simulation before its first event.
    trace : DataFrame
        The validated trace.
    rules : str
        Name of the rule set.
    """
    lines: list[str] = []
    policy = setup.policy
    baseline = policy.baseline
    if baseline and baseline.equals(policy, trace, modelled=_has_model(setup)):
        lines.append(baseline.note(policy.name))
    lines += _note_on_relatives(setup)
    lines += _note_on_history(policy, trace)
    lines += note_on_clock(setup.table.clock_start_s)
    if setup.settings.rules.whole_seconds:
        lines += _note_on_zero_durations(trace, rules)
    return lines


def _note_on_relatives(setup: Setup) -> list[str]:
    """Note on models of the trace whose values in the performance model are of a relative."""
    perf = setup.settings.perf
    if not isinstance(perf, ThroughputTable | SpeedUp | PlanTimes):
        return []
    models = {name for name in setup.table.uncounted_models if isinstance(name, str)}
    return stand_in_note(perf.table_name, [name for name in models if perf.own_name(name) != name])


def note_on_clock(clock_start_s: float) -> list[str]:
    """Note on a clock that starts (s) more than a day after time 0 of the trace."""
    if clock_start_s <= DAY_S:
        return []
    return [
        f"the clock starts at the first submission, {clock_start_s:,.0f} s "
        f"({clock_start_s / DAY_S:,.1f} days) after time 0 of the trace"
    ]


def _note_on_history(policy: Policy, trace: pd.DataFrame) -> list[str]:
    """Note on a policy whose history of job sizes comes from another trace, that of Tiresias."""
    source = getattr(policy, "history", None)
    if source != PUBLIC_SAMPLE or trace.attrs.get("synthetic"):
        return []
    name = str(trace.attrs.get("name", ""))
    if public.is_known(name) and public.entry(name).format in HISTORY_FORMATS:
        return []
    return [
        f"history of job sizes: {source}, not this trace; to use other sizes, give --set "
        f"history=… (GPU-seconds of past jobs)"
    ]


def _note_on_zero_durations(trace: pd.DataFrame, rules: str) -> list[str]:
    """Note on jobs whose duration is cut to 0 s; TraceError if all durations are."""
    num_short = int((trace["duration"] < 1).sum())
    num_jobs = len(trace)
    if num_short == num_jobs:
        raise TraceError(
            f"trace {trace.attrs.get('name', 'unnamed')!r}: rules {rules} cut durations to whole "
            f"seconds, and all {num_jobs:,} jobs are shorter than 1 s; give durations in seconds "
            f"(are they in hours?), or use --rules paper"
        )
    if num_short == 0:
        return []
    return [
        f"rules {rules} cut durations to whole seconds: {num_short:,} of {num_jobs:,} jobs are "
        f"shorter than 1 s and run for 0 s"
    ]


def _has_model(setup: Setup) -> bool:
    """Whether the performance model covers some job, or some pair under a policy of pairs."""
    perf = setup.settings.perf
    if share_traits(setup.policy).pairs_up and isinstance(perf, ThroughputTable):
        return bool(perf.pairs)
    models = setup.table.uncounted_models
    if isinstance(perf, SpeedUp):
        return any(map(perf.covers, models))
    return perf is not None


def stand_ins(trace: pd.DataFrame, perf: object, policy: Policy | None) -> list[str]:
    """Public data that a simulation replaces by stand-ins: kind of data and name.

    Parameters
    ----------
    trace : DataFrame
        The trace; its attributes name the source of its durations.
    perf : Performance or None
        The performance model of the simulation.
    policy : Policy or None
        The policy; Gittins policies read a history of service times.
    """
    names: list[str] = []
    if "stand_in_for" in trace.attrs:
        names.append(f"trace {trace.attrs['stand_in_for']}")
    if trace.attrs.get("stand_in") or (isinstance(perf, ThroughputTable) and perf.stand_in):
        names.append("throughputs gavel-throughputs")
    source = getattr(policy, "history", None)
    if isinstance(source, str) and is_stand_in(source):
        names.append(f"history {source}")
    return names
