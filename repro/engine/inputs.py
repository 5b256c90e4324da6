"""Inputs of a run: validation of the trace, notes on what the inputs change, stand-ins."""

from pathlib import Path

import pandas as pd

from repro.base.errors import TraceError
from repro.engine.loop import Engine
from repro.files import public
from repro.model.policy import Policy
from repro.model.share_policy import share_traits
from repro.perf.speedup import SpeedUp
from repro.perf.throughput import ThroughputTable
from repro.trace.history import PUBLIC_SAMPLE, is_stand_in
from repro.trace.load import load
from repro.trace.schema import COLUMNS, REQUIRED, validate

DAY_S = 86_400.0
#: Formats of public traces of the cluster whose job sizes `PUBLIC_SAMPLE` has.
HISTORY_FORMATS = ("tiresias", "philly")


def checked(trace: pd.DataFrame | str | Path) -> pd.DataFrame:
    """Return a validated trace, its rows in the order given.

    Parameters
    ----------
    trace : DataFrame, str or Path
        A frame with the columns of the schema, or a file or public name to load.

    Raises
    ------
    TraceError
        If it is something else, or breaks a rule of the schema.
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
    """Refuse dates and time spans of pandas, with the way to seconds, and ids that are no names."""
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


def notes(engine: Engine, trace: pd.DataFrame, rules: str) -> list[str]:
    """Lines on properties of the input that change the meaning of the result.

    Parameters
    ----------
    engine : Engine
        The run, not started yet.
    trace : DataFrame
        The validated trace.
    rules : str
        Name of the rule set.
    """
    found = list[str]()
    policy = engine.policy
    table = engine.table
    baseline = policy.baseline
    if baseline and baseline.equals(policy, trace, modelled=_modelled(engine)):
        found.append(baseline.note(policy.name))
    found += _other_history(policy, trace)
    if table.clock_start_s > DAY_S:
        found.append(
            f"the clock starts at the first submission, {table.clock_start_s:,.0f} s "
            f"({table.clock_start_s / DAY_S:,.1f} days) after 0 of the trace"
        )
    if engine.settings.rules.whole_seconds:
        found += _cut_to_nothing(trace, rules)
    return found


def _other_history(policy: Policy, trace: pd.DataFrame) -> list[str]:
    """Note on a policy that takes job sizes of Tiresias's trace for those of another trace."""
    source = getattr(policy, "history", None)
    if source != PUBLIC_SAMPLE or trace.attrs.get("synthetic"):
        return []
    name = str(trace.attrs.get("name", ""))
    if public.is_known(name) and public.entry(name).format in HISTORY_FORMATS:
        return []
    return [
        f"history of job sizes: {source}, not this trace; --set history=… takes GPU-seconds of "
        f"past jobs"
    ]


def _cut_to_nothing(trace: pd.DataFrame, rules: str) -> list[str]:
    """Note on the jobs that whole seconds cut to 0 s; an error if all jobs are."""
    short = int((trace["duration"] < 1).sum())
    jobs = len(trace)
    if short == jobs:
        raise TraceError(
            f"trace {trace.attrs.get('name', 'unnamed')!r}: rules {rules} cut durations to whole "
            f"seconds, and all {jobs:,} jobs are shorter than 1 s; give durations in seconds (are "
            f"they in hours?), or use --rules paper"
        )
    if short == 0:
        return []
    return [
        f"rules {rules} cut durations to whole seconds: {short:,} of {jobs:,} jobs are shorter "
        f"than 1 s and run for 0 s"
    ]


def _modelled(engine: Engine) -> bool:
    """Tell whether a performance model says anything that the policy asks about the jobs."""
    perf = engine.settings.perf
    if share_traits(engine.policy).pairs_up and isinstance(perf, ThroughputTable):
        return bool(perf.pairs)
    models = engine.table.unread_models
    if isinstance(perf, SpeedUp):
        return any(model in perf.curves for model in models)
    return perf is not None


def stand_ins(trace: pd.DataFrame, perf: object, policy: Policy) -> list[str]:
    """Names of the public data that a run replaces by stand-ins, with their sort.

    Parameters
    ----------
    trace : DataFrame
        The trace; its attributes keep where its durations are from.
    perf : Performance or None
        The performance model of the run.
    policy : Policy
        The policy; Gittins policies read a history of service times.
    """
    found = list[str]()
    if "stand_in_for" in trace.attrs:
        found.append(f"trace {trace.attrs['stand_in_for']}")
    if trace.attrs.get("stand_in") or (isinstance(perf, ThroughputTable) and perf.stand_in):
        found.append("throughputs gavel-throughputs")
    source = getattr(policy, "history", None)
    if isinstance(source, str) and is_stand_in(source):
        found.append(f"history {source}")
    return found
