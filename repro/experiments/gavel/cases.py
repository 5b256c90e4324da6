"""Gavel's measurements: one simulation each, of which only the measured jobs are kept."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from repro.core.policy import Policy
from repro.core.records import Result
from repro.errors import ParamError

HOUR_S = 3600.0
#: What is kept of a trace beside each measured job's times.
_TRACE_COLUMNS = ("priority_weight", "slo")


@dataclass(frozen=True)
class Case:
    """One simulation of which only the measured jobs are kept.

    Parameters
    ----------
    trace : str
        Generator.
    options : mapping
        Its options; ``rate`` in jobs per hour. With ``measured``, the number of jobs follows from
        ``horizon_h``.
    seed : int
        Seed of trace and simulation.
    cluster : str
        GPUs by type, or a file.
    policy : Policy
        Policy with its settings.
    rules : str
        Event rules.
    rounds : mapping
        Settings of the round mechanism.
    throughputs : str
        Name of the public throughput table, or a file.
    measured : tuple of two int, optional
        Numbers of the first and the last measured job, from 0; the simulation ends when all of
        these have finished. None: every job.
    horizon_h : float
        Arrivals go on for this long (h) after the last measured job, four times as long where it
        is needed. Measured jobs that wait longer have no end.
    solver_replaced : bool
        Gavel's own solver was asked for, but is not installed; the centre of the optima is taken.
    """

    trace: str
    options: Mapping[str, Any]
    seed: int
    cluster: str
    policy: Policy
    rules: str = "gavel"
    rounds: Mapping[str, Any] = field(default_factory=dict)
    throughputs: str = "gavel-throughputs"
    measured: tuple[int, int] | None = None
    horizon_h: float = 2000.0
    solver_replaced: bool = False


def case(inputs: Mapping[str, Any], label: str, given: Mapping[str, Any]) -> Case:
    """Return the case of a series, without seed and load.

    Parameters
    ----------
    inputs : mapping
        What all series share.
    label : str
        Name of the series; the policy's, unless ``given`` names another.
    given : mapping
        policy, settings, rules, rounds, cluster, options and horizon_h of this series.

    Raises
    ------
    ParamError
        For another key.
    """
    from repro.core.policy import make

    unknown = set(given) - {
        *("policy", "settings", "rules", "rounds", "cluster", "options", "horizon_h")
    }
    if unknown:
        raise ParamError(
            f"series {label!r}: unknown {', '.join(sorted(unknown))} (accepted: policy, settings, "
            f"rules, rounds, cluster, options, horizon_h, rates, seeds, to)"
        )
    rules = given.get("rules", inputs["rules"])
    settings, replaced = solvable(given.get("settings", {}))
    policy = make(given.get("policy", label), rules, **settings)
    return Case(
        trace=inputs["trace"],
        options={**inputs["options"], **given.get("options", {})},
        seed=0,
        cluster=_found(given.get("cluster", inputs["cluster"])),
        policy=policy,
        rules=rules,
        rounds={**inputs["rounds"], **given.get("rounds", {})},
        throughputs=_found(inputs["throughputs"]),
        horizon_h=given.get("horizon_h", Case.horizon_h),
        solver_replaced=replaced,
    )


def solvable(settings: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return settings of a policy with the centre for Gavel's own solver where that is missing.

    Parameters
    ----------
    settings : mapping
        Settings of a policy; "ecos" asks for Gavel's own solver.

    Returns
    -------
    (dict, bool)
        The settings, and whether something was replaced.

    Examples
    --------
    >>> solvable({"tolerance": 0.05})
    ({'tolerance': 0.05}, False)
    """
    from repro.optimise import ecos

    theirs = [name for name, value in settings.items() if value == "ecos"]
    if not theirs or ecos.is_installed():
        return dict(settings), False
    return {**settings, **dict.fromkeys(theirs, "centre")}, True


def solver_note(series: Iterable[str]) -> str:
    """Return what a figure says of the series that should rest on a solver which is not there.

    Examples
    --------
    >>> solver_note(["gavel-las"])
    'without the solver ECOS, by the centre of the optima: gavel-las'
    """
    return f"without the solver ECOS, by the centre of the optima: {'; '.join(series)}"


def measure(case: Case) -> Result:
    """Simulate one case and return the records of its measured jobs.

    Those still unfinished after four times ``horizon_h`` have neither end nor completion time.
    """
    from repro.figures.data import open_trace
    from repro.perf.throughput_files import load_throughputs
    from repro.sim.simulate import simulate

    settings: dict[str, Any] = {"rules": case.rules, "seed": case.seed, "keep_intervals": False}
    settings |= {"perf": load_throughputs(case.throughputs), "rounds": case.rounds}
    horizon_h = case.horizon_h
    while True:
        options = dict(case.options)
        first, last = case.measured or (0, math.inf)
        if case.measured is not None:
            options["jobs"] = case.measured[1] + 1 + math.ceil(options["rate"] * horizon_h)
        trace = open_trace(case.trace, case.seed, **options)[0]
        chosen = trace.index[first : None if math.isinf(last) else int(last) + 1]
        ends: dict[str, Any] = {}
        if case.measured is not None:
            # Without arrivals the cluster empties, and the last measured jobs would run too fast.
            ends = {"until": trace.loc[chosen, "job_id"], "stop_time": trace["submit_time"].max()}
        result = simulate(trace, case.cluster, case.policy, **ends, **settings)
        jobs = result.jobs.loc[chosen]
        if jobs["end_time"].notna().all() or horizon_h > case.horizon_h:
            break
        horizon_h *= 4
    columns = {"submit_h": "submit_time", "end_h": "end_time", "jct_h": "jct"}
    columns |= {"duration_h": "duration"}
    kept = pd.DataFrame({"job_id": jobs["job_id"]})
    kept = kept.assign(**{name: jobs[column] / HOUR_S for name, column in columns.items()})
    kept["num_gpus"] = jobs["num_gpus"]
    for column in set(_TRACE_COLUMNS) & set(trace.columns):
        kept[column] = trace.loc[chosen, column]
    return Result(kept.reset_index(drop=True), result.intervals.iloc[:0], result.meta)


def digest(case: Case) -> str:
    """Return the key under which a case is remembered: equal exactly for the same simulation."""
    from repro import paths
    from repro.figures import cache
    from repro.perf.throughput_files import is_stand_in

    tables = cache.files_hash(sorted(paths.traces_dir().glob("*.csv")))
    own = cache.files_hash(own_files(case))
    return cache.key("gavel-sweep 2", case, tables, own, is_stand_in(case.throughputs))


def own_files(case: Case) -> list[Path]:
    """Return the files of the user's own that a case names."""
    return [Path(name) for name in (case.cluster, case.throughputs) if os.path.isfile(name)]


def _found(text: str) -> str:
    """Return the path of a file of the user's own, found from the project's root, or the text."""
    from repro.figures.data import own_path

    path = own_path(text)
    return str(path) if os.path.isfile(path) else text
