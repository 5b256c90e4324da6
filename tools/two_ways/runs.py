"""Pairs of ways to simulate one run."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import pandas as pd

from repro import Order, Policy, RunSet, make, simulate
from repro.base.compiled import CompiledFunction
from repro.base.interpreted import ENV_SECONDS, Interpretation, compiled_only
from repro.engine.select import whole_run
from repro.policies.tiresias import _gandiva_run, gandiva
from repro.trace import synth
from repro.trace.doctor.queue import fifo_starts
from tools.two_ways import jobs
from tools.two_ways.pair import Difference, Pair, between, frames, one_by_one, records, relative

#: Difference of the ends of two runs beyond which they have decided differently (s).
ELASTIC_S = 1e-7
#: The engine simulates event by event if a run may end before all jobs do (s).
_LATE = {"stop_time": 1e12}
#: Units of time in which a run is simulated again to see whether rounding decides a tie.
_UNITS = (1.0, 0.61, 0.83, 1.27, 1.71, 1.93)


@contextlib.contextmanager
def event_by_event() -> Iterator[None]:
    """Let every run of the block go through SimPy, also runs that have a compiled loop."""
    with patch("repro.engine.simulate.simulate_compiled", lambda setup: None):
        yield


@contextlib.contextmanager
def interpreted() -> Iterator[None]:
    """Run compiled functions in Python where that gives the same bits, also those with code."""
    with (
        patch.dict(os.environ, {ENV_SECONDS: "inf"}),
        patch.object(CompiledFunction, "is_compiled", property(lambda function: False)),
        patch.object(
            CompiledFunction,
            "_interpretation",
            property(lambda function: Interpretation(function.py_func, None)),
        ),
    ):
        yield


def _compiled_order(rng: np.random.Generator) -> Difference:
    """An order in one compiled call, and event by event."""
    spec = str(rng.choice(jobs.CLUSTERS))
    trace = jobs.trace(rng, _gpus(spec))
    policy = jobs.linear_order(rng, float(trace["duration"].median()))
    options: dict[str, Any] = {}
    if rng.random() < 0.3:
        trace = jobs.with_predictions(rng, trace)
    if rng.random() < 0.2:
        options["keep_intervals"] = False
    if rng.random() < 0.2:
        options["until"] = list(trace["job_id"][: rng.integers(1, len(trace) + 1)])
    if rng.random() < 0.2:
        options["stop_time"] = float(trace["submit_time"].max() + trace["duration"].median())
    # small blocks, so that some calls end because the record is full
    with (
        patch.object(whole_run, "simulate_order", wraps=whole_run.simulate_order) as spy,
        patch.object(whole_run, "_INTERVALS_PER_CALL", int(rng.choice([8, 64, 100_000]))),
    ):
        fast = simulate(trace, spec, policy, **options)
    assert spy.call_count == 1, f"{policy.name} was not simulated in one compiled call"
    with event_by_event():
        return records(fast, simulate(trace, spec, policy, **options))


def _compiled_gandiva(rng: np.random.Generator) -> Difference:
    """The steps of Gandiva's simulator in compiled loops, and event by event."""
    spec = str(rng.choice(["1x4", "2x4", "3x4", "2x8", "6x4"]))
    trace = jobs.trace(rng, _gpus(spec), most=60)
    # steps of seconds: the longest jobs would take hundreds of thousands of them
    shorter = min(1.0, 2000.0 / trace["duration"].max())
    trace["duration"] = np.ceil(trace["duration"] * shorter)
    start = trace["submit_time"].min()
    trace["submit_time"] = np.floor((trace["submit_time"] - start) * shorter)
    policy = make(
        "gandiva",
        "tiresias",
        slice_s=float(rng.choice([45.0, 60.0, 90.0])),
        step_s=float(rng.choice([5.0, 10.0])),
    )
    at_once = int(rng.choice([3, 50, 10_000]))

    def steps(*values: Any, **named: Any) -> None:
        _gandiva_run.simulate_steps(*values, **named, at_once=at_once)

    with patch.object(gandiva, "simulate_steps", steps):
        fast = simulate(trace, spec, policy, rules="tiresias")
    with event_by_event():
        return records(fast, simulate(trace, spec, policy, rules="tiresias"))


def _elastic_trace(rng: np.random.Generator) -> tuple[pd.DataFrame, str, dict[str, Any]]:
    """Jobs, cluster and performance model for a policy that divides GPUs."""
    spec = str(rng.choice(["1x1", "1x3", "1x5", "2x4", "1x16"]))
    # rounding decides between equal jobs, and the two ways round differently
    trace = jobs.trace(rng, _gpus(spec), most=25, ties=False)
    # a policy that divides GPUs accepts jobs that are wider than the cluster
    trace["num_gpus"] = np.minimum(8, trace["num_gpus"] * rng.choice([1, 1, 2], len(trace)))
    # 40 s at the median: the bound is in seconds
    unit = 40.0 / trace["duration"].median()
    trace["duration"] *= unit
    trace["submit_time"] = (trace["submit_time"] - trace["submit_time"].min()) * unit
    if rng.random() < 0.3:
        trace = jobs.with_predictions(rng, trace)
    if rng.random() < 0.6:
        return jobs.with_models(rng, trace), spec, {"perf": jobs.CURVES}
    return trace, spec, {}


def _compiled_division(rng: np.random.Generator) -> Difference:
    """Divided GPUs in one compiled call, and event by event."""
    name = str(rng.choice(jobs.ELASTIC))
    trace, spec, options = _elastic_trace(rng)
    policy = jobs.elastic(rng, name, 40.0)

    def ends(unit: float, *, compiled: bool) -> Any:
        named = {
            column: trace[column] * unit
            for column in ("submit_time", "duration", "predicted_duration")
            if column in trace
        }
        way = {} if compiled else _LATE
        run = simulate(trace.assign(**named), spec, _in_unit(policy, unit), **options, **way).jobs
        return run[["start_time", "end_time"]].to_numpy() / unit

    difference = between(ends(1.0, compiled=True), ends(1.0, compiled=False))
    if difference <= ELASTIC_S:
        return difference
    # A tie that rounding decides: then one of the two differs from itself in another unit.
    for compiled in (True, False):
        runs = [ends(unit, compiled=compiled) for unit in _UNITS]
        if any(between(run, runs[0]) > ELASTIC_S for run in runs):
            return None
    return difference


def _in_unit(policy: Policy, unit: float) -> Policy:
    """Policy whose parameters in seconds are multiplied by a unit of time."""
    names = {"themis": ("lease",), "pcs": ("thresholds",)}.get(policy.name, ())
    changes = {}
    for name in names:
        value = getattr(policy, name)
        is_tuple = isinstance(value, tuple)
        changes[name] = tuple(part * unit for part in value) if is_tuple else value * unit
    return dataclasses.replace(policy, **changes)  # type: ignore[type-var]


def _compiled_predictions(rng: np.random.Generator) -> Difference:
    """Predicted JCTs inside a compiled run, and by rollouts event by event."""
    name = str(rng.choice([name for name in jobs.ELASTIC if name != "themis"]))
    trace, spec, options = _elastic_trace(rng)
    # rollouts run jobs for their true durations, the compiled loop for the predicted ones
    trace = trace.drop(columns="predicted_duration", errors="ignore").head(12)
    policy = jobs.elastic(rng, name, 40.0)
    fast = simulate(trace, spec, policy, predict=len(trace), **options).jobs
    slow = simulate(trace, spec, policy, predict=len(trace), **options, **_LATE).jobs
    if between(fast["end_time"], slow["end_time"]) > ELASTIC_S:
        return None
    return relative(fast["predicted_jct"], slow["predicted_jct"])


def _kinds_of_max_min(rng: np.random.Generator) -> Difference:
    """Max-min by kinds of jobs, without intervals, and job by job."""
    trace, spec, options = _elastic_trace(rng)
    trace = trace.loc[rng.integers(0, len(trace), len(trace))].reset_index(drop=True)
    trace["job_id"] = np.arange(len(trace))
    by_job = simulate(trace, spec, "max-min", **options)
    by_kind = simulate(trace, spec, "max-min", keep_intervals=False, **options)
    columns = ["start_time", "end_time", "fair_jct", "preemptions"]
    return max(
        relative(by_job.jobs[columns], by_kind.jobs[columns]),
        relative(by_job.summary()["utilisation"], by_kind.summary()["utilisation"]),
    )


def _without_intervals(rng: np.random.Generator) -> Difference:
    """A run whose intervals are recorded, and without."""
    spec = str(rng.choice(jobs.CLUSTERS))
    # max-min goes by kinds without intervals, which is a pair of its own
    divided = [name for name in jobs.ELASTIC if name != "max-min"]
    name = str(rng.choice([*jobs.LINEAR, *divided, "yarn-cs", "best-effort", "sjf", "sf"]))
    if name in jobs.ELASTIC:
        trace, spec, options = _elastic_trace(rng)
        policy = jobs.elastic(rng, name, 40.0)
    else:
        trace = jobs.trace(rng, _gpus(spec))
        options = {"placement": "yarn"} if rng.random() < 0.5 else {}
        policy = make(name)
    runs = [
        simulate(trace, spec, policy, keep_intervals=keep, **options).jobs for keep in (True, False)
    ]
    return frames(*runs)


def _interpretation(rng: np.random.Generator) -> Difference:
    """Compiled loops interpreted, and as machine code."""
    kind = rng.choice(["elastic", "order", "list", "gandiva", "typed"])
    if kind == "elastic":
        name = str(rng.choice(jobs.ELASTIC))
        trace, spec, options = _elastic_trace(rng)
        options["predict"] = 3
        policy: Policy = jobs.elastic(rng, name, 40.0)
    elif kind == "typed":
        trace, spec, options = _typed(rng, most=12)
        policy = make(str(rng.choice(["gavel-las", "las-agnostic", "fifo-agnostic", "gavel-fifo"])))
    elif kind == "gandiva":
        spec = "2x4"
        trace = jobs.trace(rng, 8, most=20)
        trace["submit_time"] -= trace["submit_time"].min()
        # rules tiresias cut durations to whole seconds
        trace["duration"] = np.ceil(trace["duration"])
        policy = make("gandiva", "tiresias", slice_s=float(trace["duration"].median()))
        policy = dataclasses.replace(policy, step_s=policy.slice_s / 3)  # type: ignore[attr-defined]
        options = {"rules": "tiresias"}
    else:
        spec = str(rng.choice(jobs.CLUSTERS))
        trace = jobs.trace(rng, _gpus(spec), most=20)
        scale_s = float(trace["duration"].median())
        policy = jobs.linear_order(rng, scale_s) if kind == "order" else _listed(rng, scale_s)
        options = {"placement": "yarn"} if rng.random() < 0.3 else {}
    with interpreted():
        slow = simulate(trace, spec, policy, **options)
    with compiled_only():
        return records(slow, simulate(trace, spec, policy, **options))


def _listed(rng: np.random.Generator, scale_s: float) -> Policy:
    """Policy that keeps one list of unfinished jobs."""
    history = tuple(np.sort(scale_s * rng.lognormal(0.0, 1.0, 12)).tolist())
    limits = tuple((scale_s * np.array([0.5, 3.0])).tolist())
    events = {"thresholds": limits, "exact_demotion": False, "history_ties": True}
    name, settings = (
        ("srsf", {"history_ties": True}),
        ("tiresias-l", {**events, "promote_knob": float(rng.choice([1.0, 2.0, 8.0]))}),
        ("tiresias-l", {**events, "whole_second_limits": True, "skip_queues": True}),
        ("tiresias-g", {**events, "history": history}),
        ("gittins-2d", {"history": history}),
    )[rng.integers(5)]
    return make(name, **settings)


def _typed(
    rng: np.random.Generator, *, most: int = 30, gangs: bool = True
) -> tuple[pd.DataFrame, str, dict[str, Any]]:
    """Jobs with throughputs by GPU type, a cluster of several types, and options of the rounds."""
    spec = str(rng.choice(["3xv100,2xp100,4xk80", "2xv100,2xk80", "2xv100,2xp100,2xk80"]))
    trace = synth.make(
        "gavel-multiple" if gangs and rng.random() < 0.5 else "gavel-single",
        int(rng.integers(1_000_000)),
        jobs=int(rng.integers(2, most + 1)),
        rate=float(rng.uniform(0.2, 1.5)),
        throughputs="gavel-like-throughputs",
    )
    # the first job stays, whatever its gang; the cluster has two GPUs of each type
    fits = trace["num_gpus"] <= 2
    trace = trace[fits] if fits.any() else trace.head(1).assign(num_gpus=1)
    rounds: dict[str, Any] = {}
    if rng.random() < 0.3:
        rounds["round_s"] = float(rng.choice([60.0, 720.0, 900.0]))
    if rng.random() < 0.3:
        rounds["min_realloc_interval_s"] = float(rng.choice([0.0, 1920.0]))
    if rng.random() < 0.3:
        rounds["preemption_overhead_s"] = 30.0
    options = {"rounds": rounds, "seed": int(rng.integers(100))}
    return trace.reset_index(drop=True), spec, options


#: Policies of shares whose rounds one call simulates.
_SPACE_SHARING = ("gavel-las-ss", "gandiva-ss")
_ROUNDS = (
    *("gavel-las", "las-agnostic", "fifo-agnostic", "gavel-fifo", "gavel-ftf", "gavel-makespan"),
    *_SPACE_SHARING,
)


def _rounds(rng: np.random.Generator) -> Difference:
    """Rounds of whole steps in one compiled call, and one by one."""
    policy = str(rng.choice(_ROUNDS))
    shares_gpus = policy in _SPACE_SHARING
    trace, spec, options = _typed(rng, most=12 if shares_gpus else 30, gangs=not shares_gpus)
    rules = str(rng.choice(["gavel", "gavel", "paper"]))
    runs = [
        simulate(trace, spec, policy, rules=rules, keep_intervals=keep, **options).jobs
        for keep in (True, False)
    ]
    return frames(*runs, rtol=True)


def _ideal_rounds(rng: np.random.Generator) -> Difference:
    """Ideal execution of shares with intervals and without."""
    policy = str(rng.choice(["gavel-las", "gavel-fifo", "gavel-ftf"]))
    trace, spec, options = _typed(rng)
    rules, ideal = (("paper", "fluid"), ("gavel", "fluid"), ("gavel", "artifact"))[rng.integers(3)]
    options["rounds"] = {"ideal": ideal}
    runs = [
        simulate(trace, spec, policy, rules=rules, keep_intervals=keep, **options).jobs
        for keep in (True, False)
    ]
    return frames(*runs, rtol=True)


@dataclass(frozen=True)
class Sorted(Policy):
    """Decides as an order does, by a sort of all unfinished jobs at every decision."""

    order: Order

    needs: ClassVar[frozenset[str]] = frozenset({"duration"})

    def decide(self, view: Any) -> RunSet:
        """Run the jobs with the smallest keys that fit; without preemption, running jobs first."""
        keys = {job: self.order.key(view, job) for job in view.jobs}
        ranked = sorted(view.jobs, key=lambda job: (keys[job], view.submit(job), job))
        kept = [] if self.order.preemptive else [job for job in ranked if view.is_running(job)]
        idle = view.cluster.num_gpus - sum(map(view.gpus, kept))
        starts = []
        for job in ranked:
            if job in kept:
                continue
            if view.gpus(job) <= idle:
                idle -= view.gpus(job)
                starts.append(job)
            elif self.order.blocking:
                break
        return RunSet([*kept, *starts])


def _sorted_jobs(rng: np.random.Generator) -> Difference:
    """An order by heaps that follow changes, and by a sort of all jobs at every decision."""
    spec = str(rng.choice(jobs.CLUSTERS))
    trace = jobs.trace(rng, _gpus(spec))
    name = str(rng.choice(["srtf", "srsf", "sf", "sjf", "best-effort", "yarn-cs"]))
    order = make(name)
    assert isinstance(order, Order)
    with event_by_event():
        heaps = simulate(trace, spec, order, placement="count")
    # by default some orders place gangs by nodes
    return frames(heaps.jobs, simulate(trace, spec, Sorted(order), placement="count").jobs)


@dataclass(frozen=True)
class FirstFit(Policy):
    """Starts jobs in order of arrival where they fit; names all that run, or only the new ones."""

    names_changes: bool = False

    def decide(self, view: Any) -> RunSet:
        """Start the waiting jobs that fit."""
        running = [job for job in view.jobs if view.is_running(job)]
        idle = view.cluster.num_gpus - sum(view.gpus(job) for job in running)
        starts = []
        for job in view.jobs:
            if not view.is_running(job) and view.gpus(job) <= idle:
                idle -= view.gpus(job)
                starts.append(job)
        if self.names_changes:
            return RunSet(starts, keep=True)
        return RunSet([*running, *starts], fill="exact")


def _changes(rng: np.random.Generator) -> Difference:
    """Decisions that name every gang that runs, and decisions that name only changes."""
    spec = str(rng.choice(jobs.CLUSTERS))
    trace = jobs.trace(rng, _gpus(spec))
    options = {"placement": str(rng.choice(["count", "skew", "random"]))}
    whole, changes = (
        simulate(trace, spec, FirstFit(names_changes), **options) for names_changes in (False, True)
    )
    return records(whole, changes)


def _fifo_queue(rng: np.random.Generator) -> Difference:
    """Starts of the trace doctor's queue, and of policy yarn-cs in the engine."""
    spec = str(rng.choice(jobs.CLUSTERS))
    trace = jobs.trace(rng, _gpus(spec)).sort_values("submit_time", kind="stable")
    trace["submit_time"] -= trace["submit_time"].min()
    trace["job_id"] = np.arange(len(trace))
    columns = (trace[name].to_numpy() for name in ("submit_time", "duration", "num_gpus"))
    starts = fifo_starts(*columns, _gpus(spec))
    run = simulate(trace, spec, "yarn-cs", placement="count").jobs
    return relative(starts, run["start_time"])


def _gpus(spec: str) -> int:
    """GPUs of a cluster such as 2x4."""
    nodes, gpus = map(int, spec.split("x"))
    return nodes * gpus


PAIRS: Sequence[Pair] = (
    Pair(
        "order",
        "an order with linear keys in one compiled call",
        "event by event",
        0.0,
        "s",
        one_by_one(_compiled_order),
        quick=40,
        long=2000,
    ),
    Pair(
        "gandiva",
        "steps of Gandiva's simulator in compiled loops",
        "event by event",
        0.0,
        "s",
        one_by_one(_compiled_gandiva),
        quick=6,
        long=1000,
    ),
    Pair(
        "divided-gpus",
        "policies that divide GPUs in one compiled call",
        "event by event",
        ELASTIC_S,
        "s",
        one_by_one(_compiled_division),
        quick=25,
        long=1000,
        aside="rounding decides a tie: one of the ways differs from itself in another unit of time",
    ),
    Pair(
        "predictions",
        "predicted JCTs inside the compiled run",
        "by rollouts, event by event",
        1e-9,
        "relative",
        one_by_one(_compiled_predictions),
        quick=8,
        long=1000,
        aside="the two runs differ already, by a tie",
    ),
    Pair(
        "max-min-kinds",
        "max-min by kinds of equal jobs",
        "job by job",
        1e-9,
        "relative",
        one_by_one(_kinds_of_max_min),
        quick=25,
        long=1000,
    ),
    Pair(
        "intervals",
        "runs that record intervals",
        "runs that do not",
        0.0,
        "s",
        one_by_one(_without_intervals),
        quick=25,
        long=1000,
    ),
    Pair(
        "interpreted",
        "compiled loops as machine code",
        "interpreted",
        0.0,
        "s",
        one_by_one(_interpretation),
        quick=15,
        long=1000,
    ),
    Pair(
        "rounds",
        "rounds of shares in one compiled call",
        "one by one",
        0.0,
        "relative",
        one_by_one(_rounds),
        quick=8,
        long=1000,
    ),
    Pair(
        "ideal",
        "ideal execution of shares without intervals",
        "with intervals",
        0.0,
        "relative",
        one_by_one(_ideal_rounds),
        quick=6,
        long=1000,
    ),
    Pair(
        "heaps",
        "an order by heaps that follow changes",
        "by a sort of all jobs at every decision",
        0.0,
        "s",
        one_by_one(_sorted_jobs),
        quick=25,
        long=1000,
    ),
    Pair(
        "changes",
        "decisions that name every gang",
        "decisions that name changes",
        0.0,
        "s",
        one_by_one(_changes),
        quick=25,
        long=1000,
    ),
    Pair(
        "doctor-queue",
        "starts by the compiled queue of `repro trace doctor`",
        "by the engine under yarn-cs",
        0.0,
        "relative",
        one_by_one(_fifo_queue),
        quick=25,
        long=1000,
    ),
)
