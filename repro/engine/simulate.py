"""`simulate`: trace, cluster and policy in, records out."""

import dataclasses
import math
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro.base.compiled import compile_watch
from repro.base.errors import InputWarning, ParamError
from repro.engine import arguments, inputs
from repro.engine.compiled_runs import simulate_compiled, why_not_compiled
from repro.engine.conformal import bounds_at_arrival
from repro.engine.loop import Engine
from repro.engine.rounds.settings import RoundSettings
from repro.engine.run_records import AddedRecords, records_of
from repro.engine.run_settings import Process, RunSettings
from repro.engine.setup import Setup
from repro.model.cluster.spec import Cluster
from repro.model.performance import Overhead, Performance
from repro.model.policy import Policy, make
from repro.model.records import Result
from repro.model.rules import Rules, rules_named
from repro.perf.overhead import CheckpointOverhead, StartOverhead
from repro.perf.slowdown import Slowdown, slowed
from repro.perf.speedup import pcs_speedups
from repro.perf.throughput_files import throughputs_of
from repro.placement import base as placement_base
from repro.placement.base import Placement
from repro.placement.count import Count


def simulate(
    trace: pd.DataFrame | str | Path,
    cluster: Cluster | str,
    policy: Policy | str,
    *,
    placement: Placement | str | None = None,
    rules: str = "paper",
    perf: Performance | None = None,
    slowdown: float | str | Slowdown | None = None,
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
    """Simulate one policy on one trace.

    Parameters
    ----------
    trace : DataFrame, str or Path
        Jobs, times in seconds. `repro.load` reads a file or the name of a public trace. Every frame
        is validated by the schema of traces, also a frame that `repro.load` returned.
    cluster : Cluster or str
        Cluster, or spec such as ``"8x8"``.
    policy : Policy or str
        Policy, or registered name. Parameters that are None get the values of ``rules``.
    placement : Placement or str, optional
        Placement rule; by default that of the policy.
    rules : {"paper", "tiresias", "muri", "gavel", "pcs"}
        Rule set: the event rules of the paper, or of the public simulator of a paper.
    perf : Performance, optional
        Performance model. By default the first of these: the model of the policy, PCS's speed-up
        curves under rules ``pcs``, the throughputs of the trace on a cluster with GPU types,
        nominal speed.
    slowdown : float, str or Slowdown, optional
        A gang on more nodes than it needs takes so many times as long, on top of ``perf``. Text as
        for ``--slowdown``: ``node=1.2,rack=1.5``, or ``tiresias``. The placement is then ``yarn``
        by default, if that of the policy only counts GPUs.
    overhead : Overhead, optional
        Costs of starts and preemptions; by default those of the rules or of ``rounds``, else those
        of the policy, else none.
    interval : float, optional
        Seconds between decisions; by default as the policy says, else a decision at every event.
    rounds : mapping, optional
        Settings of rounds that replace those of the rules (`repro.engine.rounds.settings`).
    seed : int
        Seed of random placements, policies and rounds.
    until : iterable of job ids, optional
        The simulation ends when these jobs have finished. Other jobs may have no end.
    stop_time : float
        The simulation ends at this time in the trace (s). Jobs may have no end.
    keep_intervals : bool, optional
        Record the intervals in which jobs hold GPUs; by default under all rules but ``pcs``.
    predict : int, optional
        Number of jobs, sampled by ``seed``, whose completion is predicted at their arrival. By
        default all jobs if the rules are ``pcs`` or ``predict_interval`` is passed, else none. Only
        with elastic policies.
    predict_interval : float, optional
        Give each predicted job an interval that holds its JCT with this probability (above 0, below
        1). It follows from the jobs of its class that ended before (`repro.engine.conformal`).
    processes : sequence of callables
        Functions that take the `Engine` and return a SimPy process, such as node failures. See
        `Engine.fail` and `Engine.poke`.

    Returns
    -------
    Result
        Records; ``result.summary()`` has the headline numbers. Times are those of the trace. Inside
        the simulation, and for ``processes``, the clock starts at the first submission (under rules
        tiresias and muri at time 0 of the trace).

    Raises
    ------
    TraceError
        If the trace breaks its schema, lacks a value that is read, or has a job that never fits.
    PolicyError
        If a decision of the policy is not possible, or its code fails.
    ParamError
        If an argument, or an attribute of the trace, has a value that is not accepted.

    Warns
    -----
    InputWarning
        If the policy decides like its baseline on these inputs, if its history of job sizes comes
        from another trace, if the clock starts more than a day after time 0 of the trace, or if a
        duration is cut to 0 s.

    Examples
    --------
    >>> from repro.testing import small_trace
    >>> simulate(small_trace(), "1x4", "srtf").summary()["n_finished"]
    6
    """
    # no other local name is bound yet
    arguments.check(locals())
    rule_set = rules_named(rules)
    # Only rules pcs round instants to a grid. They have defaults of their own for perf, predict and
    # keep_intervals.
    is_pcs = rule_set.grid > 1
    trace = inputs.checked(trace)
    arguments.check_attributes(trace)
    cluster = Cluster.parse(cluster) if isinstance(cluster, str) else cluster
    policy = make(policy, rules) if isinstance(policy, str) else policy.under(rules)
    round_options = dict(rounds or {})
    if trace.attrs.get("synthetic"):
        # Gavel's public simulator resets its timer only for traces that it reads
        round_options.setdefault("idle_reset", False)
    round_settings = _round_settings(rules, rule_set, round_options)
    if perf is None:
        perf = policy.performance()
    if perf is None and is_pcs:
        perf = pcs_speedups()
    if perf is None and cluster.gpu_types:
        perf = throughputs_of(trace)
    base = perf
    rule = _placement(placement, policy, has_slowdown=slowdown is not None)
    if slowdown is not None:
        perf = slowed(base, Slowdown.of(slowdown), cluster)
    if overhead is None:
        overhead = _overhead(rule_set, round_settings) or policy.overhead()
    num_predicted = _number_predicted(len(trace), predict, predict_interval, is_pcs=is_pcs)
    settings = RunSettings(
        placement=rule,
        rules=rule_set,
        rounds=round_settings,
        perf=perf,
        overhead=overhead,
        interval=policy.interval if interval is None else interval,
        seed=seed,
        until=until,
        stop_time=stop_time,
        keep_intervals=not is_pcs if keep_intervals is None else keep_intervals,
        predict=num_predicted,
        processes=processes,
    )
    started = time.perf_counter()
    with compile_watch() as watch:
        setup = Setup(trace, cluster, policy, settings)
        reason = why_not_compiled(setup) if is_pcs or num_predicted else ""
        if reason:
            option = f"rules {rules}"
            if not is_pcs:
                option = _option_of_predictions(predict, predict_interval)
            raise ParamError(
                f"{option}: {reason}; use rules other than pcs, and leave out predict and "
                f"predict_interval"
            )
        notes = inputs.notes(setup, trace, rules)
        for note in notes:
            warnings.warn(note, InputWarning, stacklevel=2)
        added = simulate_compiled(setup)
        if added is None:
            Engine(setup).run()
    notes += inputs.notes_on_nodes(setup, placement_given=placement is not None)
    wall_s = time.perf_counter() - started - watch.seconds
    result = records_of(
        setup,
        added or AddedRecords(),
        rules=rules,
        ignored=_unused(setup, trace, rounds or (), placement_given=placement is not None),
        notes=[*map(str, trace.attrs.get("notes", ())), *notes],
        stand_in=inputs.stand_ins(trace, base, policy),
        wall_s=wall_s,
    )
    return result if predict_interval is None else _with_intervals(result, predict_interval)


def _placement(
    placement: Placement | str | None, policy: Policy, *, has_slowdown: bool = False
) -> Placement:
    """Placement rule of a simulation, by default the rule of the policy.

    Under a slow-down the rule chooses nodes, by default ``yarn`` in place of ``count``.
    """
    rule = policy.placement if placement is None else placement
    if has_slowdown and placement is None and rule == "count":
        rule = "yarn"
    made = placement_base.make(rule) if isinstance(rule, str) else rule
    if has_slowdown and isinstance(made, Count):
        raise ParamError(
            "slowdown: placement 'count' chooses no nodes; give one that does, such as yarn, skew, "
            "liquid or random"
        )
    return made


def _number_predicted(
    num_jobs: int, predict: int | None, level: float | None, *, is_pcs: bool
) -> int:
    """Count the jobs to predict; ``level`` is the probability of their intervals."""
    if level is not None and predict == 0:
        raise ParamError(
            "predict=0 predicts no job, so predict_interval has no effect; leave one of them out"
        )
    if predict is not None:
        return predict
    return num_jobs if is_pcs or level is not None else 0


def _option_of_predictions(predict: int | None, level: float | None) -> str:
    """Argument for predictions, as the caller passed it."""
    return f"predict_interval={level}" if predict is None else f"predict={predict}"


def _with_intervals(result: Result, level: float) -> Result:
    """Add an interval to each predicted JCT, by class if the policy has classes."""
    jobs = result.jobs
    job_class = np.asarray(jobs.get("job_class", np.zeros(len(jobs))), np.int64)
    submit, jct, predicted = jobs[["submit_time", "jct", "predicted_jct"]].to_numpy(float).T
    low, high = bounds_at_arrival(submit, jct, predicted, job_class, level)
    with_bounds = jobs.assign(predicted_jct_low=low, predicted_jct_high=high)
    meta = result.meta | {"predict_interval": level}
    return dataclasses.replace(result, jobs=with_bounds, meta=meta)


def _round_settings(rules: str, rule_set: Rules, options: Mapping[str, Any]) -> RoundSettings:
    """Combine the settings of rounds of a rule set with the options of the caller."""
    settings = RoundSettings.of({**rule_set.rounds, **options})
    if settings.whole_steps and not rule_set.steps:
        raise ParamError(
            f"round setting whole_steps counts training steps, but rules {rules!r} do not; use "
            "rules gavel, or leave it out"
        )
    return settings


def _overhead(rule_set: Rules, rounds: RoundSettings) -> Overhead | None:
    """Overhead under a rule set; None: the rule set has no overhead."""
    if rule_set.start_overhead:
        return StartOverhead()
    if rounds.preemption_overhead_s and not rounds.whole_steps:
        return CheckpointOverhead({}, resume=rounds.preemption_overhead_s)
    return None


def _unused(
    setup: Setup, trace: pd.DataFrame, rounds: Iterable[str], *, placement_given: bool
) -> dict[str, Any]:
    """List the inputs that a finished simulation did not use: columns, rows, options.

    Parameters
    ----------
    setup : Setup
        The simulation.
    trace : DataFrame
        The validated trace.
    rounds : iterable of str
        Names of the round settings that the caller passed.
    placement_given : bool
        Whether the caller passed a placement.
    """
    mechanism = setup.driver.rounds
    unused_settings = set(rounds)
    if mechanism is not None:
        unused_settings &= mechanism.settings.unused(mechanism.traits.tells_types)
    options = sorted(unused_settings)
    if placement_given and not setup.holdings.gang_nodes.placement_used:
        options.insert(0, "placement")
    if setup.settings.seed and not setup.used_seed:
        options.insert(0, "seed")
    if setup.cluster.gpu_types and not setup.speeds.has_throughputs:
        options.append("GPU types of the cluster")
    unused = {
        "columns": [str(name) for name in trace.columns if name not in setup.table.read],
        "file_columns": list(trace.attrs.get("unread", ())),
        "rows": dict(trace.attrs.get("dropped", {})),
        "options": options,
    }
    return {name: values for name, values in unused.items() if values}
