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
from repro.engine.compiled_runs import sampled_jobs, simulate_compiled, why_not_compiled
from repro.engine.conformal import bounds_at_arrival
from repro.engine.failures import Failures
from repro.engine.ignored import TYPES_ALIKE
from repro.engine.loop import Engine
from repro.engine.overheads import named_overhead
from repro.engine.policy_answers import check_answers
from repro.engine.rollouts import predicted_jcts
from repro.engine.rounds.settings import RoundSettings
from repro.engine.run_records import AddedRecords, close_intervals, records_of
from repro.engine.run_settings import Process, RunSettings, TypeRule
from repro.engine.setup import Setup
from repro.model.cluster.spec import Cluster
from repro.model.performance import Overhead, Performance
from repro.model.policy import Policy, make
from repro.model.records import Result
from repro.model.rules import Rules, rules_named
from repro.model.speeds import ByType
from repro.perf.on_types import OnTypes
from repro.perf.overhead import CheckpointOverhead, StartOverhead
from repro.perf.slowdown import Slowdown, Slowed, slowed
from repro.perf.speedup import pcs_speedups
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_files import throughputs_of
from repro.placement import base as placement_base
from repro.placement.base import Placement
from repro.placement.count import Count
from repro.placement.wished import Wished


def simulate(
    trace: pd.DataFrame | str | Path,
    cluster: Cluster | str,
    policy: Policy | str,
    *,
    placement: Placement | str | None = None,
    rules: str = "paper",
    perf: Performance | None = None,
    slowdown: float | str | Slowdown | None = None,
    overhead: Overhead | str | float | None = None,
    interval: float | None = None,
    rounds: Mapping[str, Any] | None = None,
    seed: int = 0,
    until: Iterable[object] | None = None,
    stop_time: float = math.inf,
    keep_intervals: bool | None = None,
    predict: int | None = None,
    predict_interval: float | None = None,
    failures: Failures | str | None = None,
    processes: Sequence[Process] = (),
    types: TypeRule = "fastest",
    require_speeds: bool = False,
) -> Result:
    """Simulate one policy on one trace.

    Parameters
    ----------
    trace : DataFrame, str or Path
        Jobs, times in seconds. `repro.load` reads a file or the name of a public trace. Every frame
        is validated by the schema of traces, also a frame that `repro.load` returned. With column
        ``predicted_duration`` (`repro.predict_durations`) policies know these durations, and jobs
        run their true ones.
    cluster : Cluster or str
        Cluster, or spec such as ``"8x8"``.
    policy : Policy or str
        Policy, or registered name. Parameters that are None get the values of ``rules``.
    placement : Placement or str, optional
        Placement rule; by default that of the policy.
    rules : {"paper", "tiresias", "muri", "gavel", "pcs"}
        Rule set: the event rules of the paper, or of the public simulator of a paper.
    perf : Performance, optional
        Performance model. By default the model of the policy, under rules ``pcs`` PCS's speed-up
        curves, else nominal speed. On a cluster with GPU types, the rates of the default are
        multiplied by the throughputs of the trace or of a ThroughputTable passed here
        (`repro.perf.OnTypes`).
    slowdown : float, str or Slowdown, optional
        Factor of the time of a gang on more nodes than it needs, on top of ``perf``. Text is as for
        ``--slowdown``: ``node=1.2,rack=1.5``, or ``tiresias``. The placement is then ``yarn`` by
        default, if that of the policy only counts GPUs.
    overhead : Overhead, str or float, optional
        Costs of starts and preemptions: ``"none"``, ``"tiresias"``, ``"h100"``, a measured folder,
        seconds that a resumed job loses (`repro.engine.overheads`), or a model. By default those of
        the rules or of ``rounds``, else those of the policy, else none.
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
        Number of jobs, sampled by ``seed``, whose completion is predicted at their arrival, as if
        no further job arrived. By default all jobs if the rules are ``pcs`` or
        ``predict_interval`` is passed, else none. Elastic policies with a compiled rule predict
        inside the run, from the durations that the scheduler knows. For all others each prediction
        is a run of its own (`engine.rollouts`), in which jobs have their true durations.
    predict_interval : float, optional
        Give each predicted job an interval that holds its JCT with this probability (above 0, below
        1). It follows from the jobs of its class that ended before (`repro.engine.conformal`).
    failures : Failures or str, optional
        Random failures of nodes, such as ``"mtbf=86400,repair=600,checkpoint=3600"`` (s). The
        default placement is then ``yarn``, which chooses nodes.
    processes : sequence of callables
        Functions that take the `Engine` and return a SimPy process, such as node failures. See
        `Engine.fail` and `Engine.poke`.
    types : {"fastest", "wished"}
        GPU type of a job if the policy names none, on a cluster with several: by speed and load
        (`repro.engine.select.typed`, `repro.engine.partition`), or as the trace column ``gpu_type``
        says.
    require_speeds : bool
        Refuse a cluster with GPU types if the run has no speeds by GPU type. By default all types
        then count as equally fast, as a line of the result says.

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
    is_pcs = rule_set.ticks_per_second > 1
    trace = inputs.checked(trace)
    arguments.check_attributes(trace)
    cluster = Cluster.parse(cluster) if isinstance(cluster, str) else cluster
    policy = make(policy, rules) if isinstance(policy, str) else policy.under(rules)
    check_answers(policy)
    round_options = dict(rounds or {})
    if trace.attrs.get("synthetic"):
        # Gavel's public simulator resets its timer only for traces that it reads
        round_options.setdefault("idle_reset", False)
    round_settings = _round_settings(rules, rule_set, round_options)
    base = _performance(perf, policy, trace, cluster, is_pcs=is_pcs)
    if require_speeds and cluster.gpu_types and not isinstance(base, ByType):
        raise ParamError(
            f"require_speeds: {cluster} has the GPU types {', '.join(cluster.gpu_types)}, and the "
            f"run has no speeds by type; give --throughputs (perf=load_throughputs(…)), or leave "
            f"require_speeds out"
        )
    if failures is not None:
        failures = Failures.parse(failures) if isinstance(failures, str) else failures
        _refuse_failures(policy)
    needs_nodes = "failures" if failures else ""
    if slowdown is not None:
        needs_nodes = "slowdown"
    rule = _placement(placement, policy, needs_nodes)
    perf = base if slowdown is None else slowed(base, Slowdown.of(slowdown), cluster)
    if isinstance(perf, Slowed):
        # a model of the caller may have counted the starts of an earlier run
        perf.starts_without_nodes = 0
    # an overhead of the caller, or of the rules, replaces that of the rounds
    takes_rounds_overhead = (
        overhead is None and not rule_set.start_overhead and not round_settings.whole_steps
    )
    if overhead is None:
        rules_overhead = _overhead(rule_set, round_settings)
        overhead = rules_overhead or policy.overhead()
        # 0 s of the rounds do not replace the costs of a policy
        takes_rounds_overhead &= overhead is rules_overhead
    elif not isinstance(overhead, Overhead):
        overhead = named_overhead(overhead)
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
        failures=failures,
        types=types,
    )
    started = time.perf_counter()
    with compile_watch() as watch:
        setup = Setup(trace, cluster, policy, settings)
        # with predict=0 the records have the column of predictions, too
        asks_for_predictions = predict is not None or num_predicted > 0
        reason = why_not_compiled(setup) if is_pcs or asks_for_predictions else ""
        if reason and is_pcs:
            raise ParamError(f"rules {rules}: {reason}; use rules other than pcs")
        if reason and settings.added_processes and num_predicted:
            option = _option_of_predictions(predict, predict_interval)
            raise ParamError(
                f"{option}: failures and added processes are not foreseen; leave them out"
            )
        notes = inputs.notes(setup, trace, rules)
        for note in notes:
            warnings.warn(note, InputWarning, stacklevel=2)
        added = simulate_compiled(setup)
        if added is None:
            Engine(setup).run()
        if settings.ends_early and settings.keep_intervals:
            close_intervals(setup)
        # before the rollouts: the performance model counts starts, and would count theirs too
        notes_on_nodes = inputs.notes_on_nodes(setup, placement_given=placement is not None)
        if reason:
            added = _with_rollouts(setup, added, trace, cluster, policy, settings)
            notes += inputs.note_on_rollouts(trace) if num_predicted else []
    notes += notes_on_nodes
    wall_s = time.perf_counter() - started - watch.seconds
    result = records_of(
        setup,
        added or AddedRecords(),
        rules=rules,
        ignored=_unused(
            setup,
            trace,
            rounds or (),
            takes_rounds_overhead=takes_rounds_overhead,
            placement_given=placement is not None,
            has_types=bool(cluster.gpu_types),
        ),
        notes=[*map(str, trace.attrs.get("notes", ())), *notes],
        rollout_reason=reason,
        stand_in=inputs.replaced_public_data(trace, base, policy),
        wall_s=wall_s,
    )
    return result if predict_interval is None else _with_intervals(result, predict_interval)


def _performance(
    perf: Performance | None,
    policy: Policy,
    trace: pd.DataFrame,
    cluster: Cluster,
    *,
    is_pcs: bool,
) -> Performance | None:
    """Performance model of a simulation; on GPU types a throughput table multiplies its rates."""
    base = policy.performance()
    if base is None and is_pcs:
        base = pcs_speedups()
    throughputs = perf if isinstance(perf, ThroughputTable) else None
    # rules pcs know no GPU types
    if perf is None and cluster.gpu_types and not is_pcs:
        throughputs = throughputs_of(trace)
    if throughputs is not None and base is not None and cluster.gpu_types:
        return OnTypes(base, throughputs)
    if perf is not None:
        return perf
    return base if throughputs is None else throughputs


def _refuse_failures(policy: Policy) -> None:
    """Raise ParamError for a policy whose jobs lie on no node that could fail."""
    if policy.elastic:
        raise ParamError(
            f"failures: policy {policy.name!r} divides GPUs into shares that lie on no node; take "
            f"a policy of whole gangs, or leave failures out"
        )


def _with_rollouts(
    setup: Setup,
    added: AddedRecords | None,
    trace: pd.DataFrame,
    cluster: Cluster,
    policy: Policy,
    settings: RunSettings,
) -> AddedRecords:
    """Records of a finished run with the predicted JCTs of its sampled jobs."""
    wanted = sampled_jobs(setup.table.count, settings.predict, settings.seed)

    def setup_of(arrivals: int, job_id: object) -> Setup:
        rollout_settings = dataclasses.replace(
            settings,
            arrivals=arrivals,
            until=[job_id],
            stop_time=math.inf,
            keep_intervals=False,
            predict=0,
        )
        return Setup(trace, cluster, policy, rollout_settings)

    records = added or AddedRecords()
    predicted = predicted_jcts(setup, wanted, setup_of)
    return records._replace(columns={**records.columns, "predicted_jct": predicted})


def _placement(placement: Placement | str | None, policy: Policy, needs_nodes: str) -> Placement:
    """Placement rule of a simulation, by default the rule of the policy.

    If an option ``needs_nodes``, the rule chooses nodes, by default ``yarn`` in place of ``count``.
    """
    rule = policy.placement if placement is None else placement
    if needs_nodes and placement is None and rule == "count":
        rule = "yarn"
    made = placement_base.make(rule) if isinstance(rule, str) else rule
    if policy.placement == "wished" and not isinstance(made, Wished):
        raise ParamError(
            f"placement {type(made).__name__.lower()!r}: policy {policy.name!r} names the nodes of "
            f"its jobs itself; leave the placement out"
        )
    if needs_nodes and isinstance(made, Count):
        raise ParamError(
            f"{needs_nodes}: placement 'count' chooses no nodes; give one that does, such as yarn, "
            f"skew, liquid or random"
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
    setup: Setup,
    trace: pd.DataFrame,
    rounds: Iterable[str],
    *,
    takes_rounds_overhead: bool,
    placement_given: bool,
    has_types: bool,
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
    takes_rounds_overhead : bool
        Whether the round setting ``preemption_overhead_s`` is the overhead of the simulation.
    placement_given : bool
        Whether the caller passed a placement.
    has_types : bool
        Whether the cluster of the caller has GPU types.
    """
    mechanism = setup.driver.rounds
    unused_settings = set(rounds)
    overhead_setting = unused_settings & {"preemption_overhead_s"}
    if mechanism is not None:
        unused_settings &= mechanism.settings.unused(mechanism.traits.tells_types)
    if takes_rounds_overhead:
        unused_settings -= overhead_setting
    elif mechanism is None or not mechanism.settings.whole_steps:
        # rounds of whole steps charge it themselves
        unused_settings |= overhead_setting
    options = sorted(unused_settings)
    if placement_given and not setup.holdings.gang_nodes.placement_used:
        options.insert(0, "placement")
    if setup.settings.seed and not setup.used_seed:
        options.insert(0, "seed")
    follows_types = "gpu_type" in setup.table.read
    if setup.settings.types == "wished" and not follows_types:
        options.append("types")
    if has_types and not setup.speeds.has_throughputs and not follows_types:
        options.append(TYPES_ALIKE)
    unused = {
        "columns": [str(name) for name in trace.columns if name not in setup.table.read],
        "file_columns": list(trace.attrs.get("unread", ())),
        "rows": dict(trace.attrs.get("dropped", {})),
        "options": options,
    }
    return {name: values for name, values in unused.items() if values}
