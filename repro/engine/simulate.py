"""`simulate`: trace, cluster, policy in; records out."""

import dataclasses
import math
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro.base.compiled import compile_watch
from repro.base.errors import InputWarning, ParamError
from repro.engine import arguments, inputs
from repro.engine.conformal import online
from repro.engine.holdings import RunSettings
from repro.engine.loop import Engine
from repro.engine.rounds.settings import RoundSettings
from repro.model.cluster.spec import Cluster
from repro.model.performance import Overhead, Performance
from repro.model.policy import Policy, make
from repro.model.records import Result
from repro.model.rules import Rules, rules_named
from repro.perf.overhead import CheckpointOverhead, StartOverhead
from repro.perf.speedup import pcs_speedups
from repro.perf.throughput_files import throughputs_of
from repro.placement import base as placement_base
from repro.placement.base import Placement

Process = Callable[[Engine], Generator[Any, Any, Any]]


def simulate(
    trace: pd.DataFrame | str | Path,
    cluster: Cluster | str,
    policy: Policy | str,
    *,
    placement: Placement | str | None = None,
    rules: str = "paper",
    perf: Performance | None = None,
    overhead: Overhead | None = None,
    interval: float | None = None,
    rounds: Mapping[str, Any] | None = None,
    seed: int = 0,
    until: Iterable[object] | None = None,
    stop_time: float = math.inf,
    keep_intervals: bool | None = None,
    predict: int | None = None,
    predict_interval: float | None = None,
    processes: Sequence[Process] = (),
) -> Result:
    """Run one policy on one trace.

    Parameters
    ----------
    trace : DataFrame, str or Path
        Jobs, times in seconds; a file or the name of a public trace is read by `repro.load`. Every
        frame is validated by the schema of traces, whatever was done to it since it was loaded.
    cluster : Cluster or str
        Cluster or spec such as ``"8x8"``.
    policy : Policy or str
        A policy, or a registered name (then with the defaults of ``rules``).
    placement : Placement or str, optional
        Placement rule; the policy's own by default.
    rules : {"paper", "tiresias", "muri", "gavel", "pcs"}
        Event rules: the paper's, or those of a paper's public simulator.
    perf : Performance, optional
        How fast jobs run on what they hold; by default the policy's own model, else nominal speed.
    overhead : Overhead, optional
        What starts and preemption cost; by default what the rules say, under ``paper`` nothing.
    interval : float, optional
        Decide only every so many seconds; by default as the policy says, else at every event.
    rounds : mapping, optional
        Settings of rounds other than those of the rules (`repro.engine.rounds.settings`).
    seed : int
        Seed of placements and policies that draw.
    until, stop_time : iterable of job ids, optional, and float
        Stop when these jobs have finished, or at this instant (s); others may have no end.
    keep_intervals : bool, optional
        Record the intervals in which jobs hold GPUs, by default under all rules but ``pcs``.
    predict : int, optional
        Predict the completion of so many jobs at their arrival, drawn from ``seed``; by default of
        all under rules ``pcs`` and where intervals are wanted, else of none. Only with policies of
        divisible GPUs.
    predict_interval : float, optional
        Give predicted jobs the interval that holds their JCT with this probability (above 0, below
        1), told from the jobs of their class that had ended before (`repro.engine.conformal`).
    processes : sequence of callables
        Extra SimPy processes, such as node failures: see `Engine.run` and `Engine.fail`.

    Returns
    -------
    Result
        Records; ``result.summary()`` for the headline numbers. Times are those of the trace; inside
        the run, and for ``processes``, the clock starts at the first submission (under rules
        tiresias and muri at 0 of the trace).

    Raises
    ------
    TraceError, PolicyError
        If the trace breaks a rule of its schema, lacks a value that is read, or a job can never
        fit; if the policy breaks a rule.
    ParamError
        If an argument, or an attribute of the trace, is not what it should be.

    Warns
    -----
    InputWarning
        If the policy is given nothing in which it differs from its baseline, the clock starts more
        than a day after 0, or whole seconds leave a job none.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> simulate(small_trace(), "1x4", "srtf").summary()["n_finished"]
    6
    """
    # the arguments alone, as no other name is bound yet
    arguments.check(locals())
    chosen = rules_named(rules)
    divided = chosen.grid > 1
    trace = inputs.checked(trace)
    arguments.check_attributes(trace)
    spec = Cluster.parse(cluster) if isinstance(cluster, str) else cluster
    resolved = make(policy, rules) if isinstance(policy, str) else policy.under(rules)
    given = dict(rounds or {})
    if trace.attrs.get("synthetic"):
        # the public simulator resets where it reads a trace, not where it draws jobs itself
        given.setdefault("idle_reset", False)
    how = _round_settings(rules, chosen, given)
    if perf is None:
        perf = resolved.performance()
    if divided and perf is None:
        perf = pcs_speedups()
    if perf is None and spec.gpu_types:
        perf = throughputs_of(trace)
    rule = placement if placement is not None else resolved.placement
    rule = placement_base.make(rule) if isinstance(rule, str) else rule
    if overhead is None:
        overhead = _overhead(chosen, how) or resolved.overhead()
    interval = interval if interval is not None else resolved.interval
    keep = keep_intervals if keep_intervals is not None else not divided
    number = _predicted(len(trace), predict, predict_interval, divided=divided)
    settings = RunSettings(
        chosen, how, perf, overhead, interval, seed, until, stop_time, keep, number
    )
    started = time.perf_counter()
    with compile_watch() as watch:
        engine = Engine(trace, spec, resolved, rule, settings)
        if (divided or number) and (why := engine.undivided(processes)):
            wanted = f"predict={number}"
            if predict is None:
                wanted = f"predict_interval={predict_interval}"
            what = f"rules {rules}" if divided else wanted
            raise ParamError(f"{what}: {why}; use other rules, and no predictions")
        notes = inputs.notes(engine, trace, rules)
        for note in notes:
            warnings.warn(note, InputWarning, stacklevel=2)
        engine.run(processes)
    wall_s = time.perf_counter() - started - watch.seconds
    ignored = _unused(engine, trace, rounds or (), placed=placement is not None)
    result = engine.result(
        rules=rules,
        ignored=ignored,
        notes=[*map(str, trace.attrs.get("notes", ())), *notes],
        stand_in=inputs.stand_ins(trace, perf, resolved),
        wall_s=wall_s,
    )
    return result if predict_interval is None else _with_intervals(result, predict_interval)


def _predicted(jobs: int, number: int | None, level: float | None, *, divided: bool) -> int:
    """Return how many of the jobs are predicted, where ``level`` is that of intervals."""
    if level is not None and number == 0:
        raise ParamError("predict_interval: predict=0 leaves no job to give one; leave out either")
    every = jobs if divided or level is not None else 0
    return every if number is None else number


def _with_intervals(result: Result, level: float) -> Result:
    """Return a result whose predictions have intervals, told apart by class where there are any."""
    jobs = result.jobs
    group = np.asarray(jobs.get("job_class", np.zeros(len(jobs))), np.int64)
    submit, jct, predicted = jobs[["submit_time", "jct", "predicted_jct"]].to_numpy(float).T
    low, high = online(submit, jct, predicted, group, level)
    found = jobs.assign(predicted_jct_low=low, predicted_jct_high=high)
    return dataclasses.replace(result, jobs=found, meta=result.meta | {"predict_interval": level})


def _round_settings(name: str, rules: Rules, given: Mapping[str, Any]) -> RoundSettings:
    """Return how rounds go under rules, with what the caller changed."""
    how = RoundSettings.of({**rules.rounds, **given})
    if how.whole_steps and not rules.steps:
        raise ParamError(
            f"round setting whole_steps counts training steps, rules {name!r} do not; use rules "
            "gavel, or leave it off"
        )
    return how


def _overhead(rules: Rules, rounds: RoundSettings) -> Overhead | None:
    """Return what starts cost where the caller does not say."""
    if rules.start_overhead:
        return StartOverhead()
    if rounds.preemption_overhead_s and not rounds.whole_steps:
        return CheckpointOverhead({}, resume=rounds.preemption_overhead_s)
    return None


def _unused(
    engine: Engine, trace: pd.DataFrame, rounds: Iterable[str], *, placed: bool
) -> dict[str, Any]:
    """Return what a finished run was given and did not use: columns, rows, options.

    ``rounds`` are the settings of rounds that the caller gave, ``placed`` whether a placement was.
    """
    mechanism = engine.driver.rounds
    idle = set(rounds)
    if mechanism is not None:
        idle &= mechanism.settings.unused(mechanism.traits.tells_types)
    alike = bool(engine.cluster.gpu_types) and not engine.speeds.known
    found = {
        "columns": [str(name) for name in trace.columns if name not in engine.table.read],
        "file_columns": list(trace.attrs.get("unread", ())),
        "rows": dict(trace.attrs.get("dropped", {})),
        "options": [
            *(["seed"] if engine.settings.seed and not engine.draws else []),
            *(["placement"] if placed and not engine.holdings.places else []),
            *sorted(idle),
            *(["GPU types of the cluster"] if alike else []),
        ],
    }
    return {name: what for name, what in found.items() if what}
