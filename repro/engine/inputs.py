"""Inputs of a simulation: validation of the trace, notes for users, stand-ins for public data."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from repro.base.counts import quantity
from repro.base.errors import TraceError
from repro.base.units import DAY_S
from repro.engine.setup import Setup
from repro.files import public
from repro.model.families import alias_note
from repro.model.jobs import JobTable, prediction_factors_of
from repro.model.performance import reads_nodes
from repro.model.policy import Order, Policy, policies
from repro.model.rules import Rules
from repro.model.share_policy import share_traits
from repro.perf.model_names import stand_in_note
from repro.perf.on_types import OnTypes
from repro.perf.parameter_server import PlanTimes
from repro.perf.slowdown import Slowed, note_on_levels, note_on_models
from repro.perf.speedup import SpeedUp
from repro.perf.throughput import ThroughputTable
from repro.placement.base import Placer
from repro.trace.history import PUBLIC_SAMPLE, is_stand_in
from repro.trace.load import load
from repro.trace.schema import REQUIRED, validate_in_order

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
    if isinstance(trace, pd.DataFrame):
        for name in REQUIRED:
            if name in trace.index.names and name not in trace:
                raise TraceError(
                    f"trace: {name!r} is in the index, not among the columns; "
                    "trace.reset_index() makes it a column"
                )
        trace = trace.reset_index(drop=True)
    return validate_in_order(trace, ", or the path of a file")


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
    lines += note_on_alias(policy)
    baseline = policy.baseline
    if baseline and baseline.equals(
        policy,
        trace,
        setup.cluster,
        modelled=_has_model(setup),
        failing=bool(setup.settings.added_processes),
        samples_type_order=setup.settings.rounds.samples_type_order,
    ):
        lines.append(baseline.note(policy.name))
    lines += _note_on_relatives(setup)
    lines += _note_on_history(policy, trace)
    lines += note_on_clock(setup.table.clock_start_s)
    perf = setup.settings.perf
    if isinstance(perf, Slowed):
        lines += note_on_levels(perf.slowdown, setup.cluster)
        if perf.slowdown.speed_by_model:
            lines += note_on_models(perf.slowdown, setup.table.models)
    if setup.settings.rules.whole_seconds:
        lines += _note_on_zero_durations(trace, rules)
    lines += _note_on_iterations(setup.table, setup.settings.rules, rules)
    return lines


def _note_on_iterations(table: JobTable, rule_set: Rules, rules: str) -> list[str]:
    """Note on jobs whose iterations take another time than their duration."""
    if not (table.counts_iterations or table.counts_steps):
        return []
    iteration_s = np.array(table.solo) / (rule_set.iterations or 1.0)
    run_s = np.array(table.work) * iteration_s
    duration_s = table.frame["duration"].to_numpy(float)
    difference_s = np.abs(run_s - duration_s)
    # durations are often rounded to whole iterations
    differs = np.flatnonzero((difference_s > iteration_s) & (difference_s > 0.01 * duration_s))
    if not differs.size:
        return []
    first = differs[0]
    jobs = quantity(int(differs.size), "job")
    return [
        f"the iterations of {jobs} take another time than the duration, and rules {rules} count "
        f"iterations (job {table.ids[first]}: iterations of {run_s[first]:g} s, duration "
        f"{duration_s[first]:g} s)"
    ]


def note_on_alias(policy: Policy) -> list[str]:
    """Note on a policy that was asked for by an alias, such as fifo."""
    if not policy.alias:
        return []
    return [alias_note(policy.alias, {name: policies[name] for name in policies})]


def notes_on_nodes(setup: Setup, *, placement_given: bool) -> list[str]:
    """Notes on a finished simulation in which the nodes of gangs had less effect than one expects.

    Parameters
    ----------
    setup : Setup
        The simulation.
    placement_given : bool
        Whether the caller passed a placement.
    """
    perf = setup.settings.perf
    lines: list[str] = []
    if isinstance(perf, Slowed) and perf.starts_without_nodes:
        lines.append(
            f"slowdown: {perf.starts_without_nodes:,} starts of jobs with a fraction of a GPU have "
            f"no nodes and are not slowed down"
        )
    if placement_given and _nodes_have_no_effect(setup):
        name = type(setup.settings.placement).__name__.lower()
        lines.append(
            f"placement {name!r} changes no speed and no start in this run, only the nodes of its "
            f"intervals: give --slowdown (slowdown=...) or a performance model that reads nodes"
        )
    elif placement_given and setup.policy.first_fit:
        name = type(setup.settings.placement).__name__.lower()
        lines.append(
            f"placement {name!r} decides no start under policy {setup.policy.name!r}, which starts "
            f"a gang only if first fit finds nodes for it"
        )
    return lines


def note_on_rollouts(trace: pd.DataFrame) -> list[str]:
    """Note on rollouts: each predicts a JCT by a run with the true durations of the jobs."""
    if prediction_factors_of(trace) is None:
        return []
    return [
        "the runs behind the predicted JCTs have true durations: their errors leave out those of "
        "the predicted durations"
    ]


def _nodes_have_no_effect(setup: Setup) -> bool:
    """Whether the nodes that the placement chose changed no time of the simulation."""
    settings = setup.settings
    placer = setup.placer
    if not placer.tracks_nodes or not setup.holdings.gang_nodes.placement_used:
        return False
    # a rule that refuses gangs although enough GPUs are idle decides when these start
    decides_starts = (
        isinstance(setup.policy, Order)
        and not setup.policy.preemptive
        and type(placer).fits is not Placer.fits
    )
    costs_by_node = settings.overhead is not None and settings.overhead.stays
    reads = reads_nodes(settings.perf) or setup.view.nodes_read or bool(settings.added_processes)
    return not (decides_starts or costs_by_node or reads)


def _note_on_relatives(setup: Setup) -> list[str]:
    """Notes on models for which the performance model has only the values of a related model."""
    # reading the models for a note does not count as a use of the column
    models = {name for name in setup.table.uncounted_models if isinstance(name, str)}
    lines: list[str] = []
    for source in _parts_of(setup.settings.perf):
        if isinstance(source, ThroughputTable) and source.names is not None:
            # `names` has other names of the same models, and no related models
            continue
        if isinstance(source, ThroughputTable | SpeedUp | PlanTimes):
            mapped = [name for name in models if source.own_name(name) != name]
            lines += stand_in_note(source.table_name, mapped)
    return lines


def _parts_of(perf: object) -> Iterator[object]:
    """Performance models that a performance model combines, such as the base of a slow-down."""
    if isinstance(perf, Slowed):
        yield from _parts_of(perf.base)
    elif isinstance(perf, OnTypes):
        yield from (perf.base, perf.throughputs)
    else:
        yield perf


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
    is_public_sample = isinstance(source, str) and source == PUBLIC_SAMPLE
    if not is_public_sample or trace.attrs.get("synthetic"):
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
    # A policy that names nodes itself knows the slow-down. Other policies know the performance
    # model without it.
    perf: object = setup.settings.perf
    if setup.policy.placement != "wished":
        perf = setup.speeds.performance
    if share_traits(setup.policy).pairs_up and isinstance(perf, ThroughputTable):
        return bool(perf.pairs)
    models = setup.table.uncounted_models
    if isinstance(perf, SpeedUp):
        return any(map(perf.covers, models))
    return perf is not None


def replaced_public_data(trace: pd.DataFrame, perf: object, policy: Policy | None) -> list[str]:
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
    table = getattr(perf, "throughputs", perf)
    if trace.attrs.get("stand_in") or (isinstance(table, ThroughputTable) and table.stand_in):
        names.append("throughputs gavel-throughputs")
    source = getattr(policy, "history", None)
    if isinstance(source, str) and is_stand_in(source):
        names.append(f"history {source}")
    return names
