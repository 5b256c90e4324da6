"""Tools for authors of policies: a small trace and the conformance battery `check_policy`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Generator, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, PolicyError, TraceError
from repro.engine import arguments
from repro.engine.inputs import checked
from repro.engine.loop import Engine
from repro.engine.policy_answers import check_answers
from repro.engine.rounds.settings import RoundSettings
from repro.engine.select.changing_keys import ChangingKeys
from repro.engine.simulate import simulate
from repro.model.cluster.spec import Cluster
from repro.model.policy import Order, Ordering, Policy, make
from repro.model.records import Result
from repro.model.rules import rules_named
from repro.model.view import View
from repro.placement import base as placement_base
from repro.testing.audit import check_records, serves_exactly
from repro.trace.schema import TIMES

Traces = Mapping[str, pd.DataFrame]
Numbers = tuple[float, ...]
P = TypeVar("P", bound=Policy)
#: Options of `repro.simulate` that leave out ends or intervals of jobs, or add rollouts.
_REFUSED_OPTIONS = ("until", "stop_time", "keep_intervals", "predict", "predict_interval")


def small_trace() -> pd.DataFrame:
    """Six jobs for four GPUs, for examples.

    Returns
    -------
    DataFrame
        Columns job_id, submit_time (s), duration (s), num_gpus.

    Examples
    --------
    >>> small_trace().num_gpus.tolist()
    [2, 1, 4, 1, 2, 4]
    """
    return pd.DataFrame(
        {
            "job_id": [0, 1, 2, 3, 4, 5],
            "submit_time": [0.0, 1.0, 1.0, 4.0, 9.0, 30.0],
            "duration": [10.0, 4.0, 25.0, 3.0, 7.0, 5.0],
            "num_gpus": [2, 1, 4, 1, 2, 4],
        }
    )


def check_policy(
    policy: Policy | str,
    *,
    traces: Traces | Iterable[pd.DataFrame] | pd.DataFrame | None = None,
    cluster: Cluster | str = "2x4",
    **options: Any,
) -> None:
    """Check the rules that every policy keeps; raise on the first that it breaks, else return None.

    A policy object is checked with its own parameters, and a registered name with the default
    parameters. The default traces are short. Check a policy with a threshold in seconds also with a
    small threshold.

    - capacity: jobs hold at most the GPUs of the cluster, of each GPU type and of each node
    - nodes: the GPUs of a job are on nodes of its GPU type
    - gang: a job holds all the GPUs of its demand or none, and never runs twice at once
    - work: served work equals required work
    - ends: the run ends, and every job ends exactly once
    - records: start, JCT and queueing follow from intervals and trace
    - repeatable: the same input gives the same output
    - ids, file order: neither job ids nor the order of rows matter, except in ties
    - alone: a job alone takes its duration, and the costs of its start
    - scaling: if all times of the trace, ``time_fields`` and the interval double, all ends double
    - baseline: under rules ``paper``, all jobs end as under the policy that `Policy.baseline`
      names. `Policy.baseline` also names the inputs that make the two policies differ. Runs with
      them are not checked: changed parameters, columns, a performance model, several domains,
      failures, several GPU types
    - key: `Order.keys` gives the keys of `Order.key`, and while a job runs, its key changes as
      `Order.slope` says. Only for an `Order` without its own `Ordering`, at nominal speed, without
      costs, failures or rounds
    - needs: the policy reads the fields in `needs` and no others
    - blind: without "duration" in `needs`, longer durations change no interval before the first
      completion

    For policies with ``elastic = True``, and with the round setting ``ideal`` (execution without
    rounds), ``alone`` is skipped. The rule ``gang`` then says only that no job runs twice at once.
    The rule ``alone`` is also skipped with a performance model in ``options``, and if completions
    are noticed late (`Policy.completions`). With costs of starts or preemptions, or with late
    completions, ``work`` also accepts more than the required work. The rule ``scaling`` is skipped
    with costs or failures, and under rules other than ``paper``. The rules ``ids`` and ``file
    order`` are skipped if submissions tie.

    Parameters
    ----------
    policy : Policy or str
        The policy, with any settings, or a registered name.
    traces : mapping or iterable of DataFrame, or DataFrame, optional
        Traces to run, by name, or one trace; by default `stress_traces` with ties, wide gangs and
        fractions of seconds.
    cluster : Cluster or str
        Cluster to run them on.
    **options
        Passed to `repro.simulate`: perf, rounds, overhead, placement, rules, interval, seed, and
        others. Every check needs the ends and intervals of all jobs, so until, stop_time,
        keep_intervals, predict and predict_interval are refused.

    Raises
    ------
    PolicyError
        If the policy breaks a rule, is unknown, or its code fails. The message names the rule, the
        trace and the job.
    TraceError
        If a trace breaks its schema.
    ParamError
        If the policy, the cluster or an option is not accepted.

    Examples
    --------
    >>> check_policy("srtf")
    """
    for name in _REFUSED_OPTIONS:
        if name in options:
            raise ParamError(
                f"check_policy takes no {name}: its runs go to the end of all jobs and record all "
                f"intervals; leave it out"
            )
    arguments.check({"policy": policy})
    spec = Cluster.parse(cluster)
    rules = options.get("rules", "paper")
    resolved = make(policy, rules) if isinstance(policy, str) else policy.under(rules)
    check_answers(resolved)
    if traces is None:
        traces = stress_traces(widths_for(resolved, spec, options.get("placement")))
        if "slo" in resolved.needs and resolved.baseline is None:
            traces = {name: _with_deadlines(frame) for name, frame in traces.items()}
    elif isinstance(traces, Mapping):
        traces = {str(name): checked(frame) for name, frame in traces.items()}
    else:
        is_single = isinstance(traces, (pd.DataFrame, str)) or not isinstance(traces, Iterable)
        traces = _by_name([traces] if is_single else traces)
    if not traces:
        raise TraceError("no traces; give a DataFrame, several of them, or leave traces out")
    battery = _Battery(resolved, spec, options)
    for name, trace in traces.items():
        battery.check_trace(name, trace)
    battery.check_needs(traces)


def widths_for(policy: Policy, cluster: Cluster, placement: Any = None) -> list[int]:
    """Default gang sizes (GPUs): powers of two that fit, and all GPUs of the cluster.

    On a cluster with GPU types, the largest size is all GPUs of the most numerous type.
    """
    rule = placement if placement is not None else policy.placement
    rule = placement_base.make(rule) if isinstance(rule, str) else rule
    placer = rule.bind(cluster, np.random.default_rng(0))
    largest = max(cluster.gpu_types.values(), default=cluster.num_gpus)
    powers = [2**n for n in range(largest.bit_length()) if 2**n <= largest]
    return [width for width in sorted({*powers, largest}) if placer.possible(width)]


def stress_traces(widths: list[int], seed: int = 0) -> dict[str, pd.DataFrame]:
    """Small traces with ties, queues and idle times."""
    rng = np.random.default_rng(seed)
    narrow = widths[: max(1, len(widths) - 1)]
    arrivals = np.cumsum(rng.integers(1, 25, 30)).astype(float)
    return {
        "steady": _trace(arrivals, rng.integers(1, 120, 30), rng.choice(narrow, 30)),
        "burst": _trace(np.zeros(12), rng.choice([30, 60], 12), rng.choice(widths, 12)),
        "wide": _trace(arrivals[:16], rng.integers(1, 60, 16), np.resize(widths[::-1], 16)),
        "fractional times": _trace(
            np.cumsum(rng.exponential(9.0, 30)), rng.lognormal(3.5, 1.2, 30), rng.choice(widths, 30)
        ),
        "idle gaps": _trace(np.arange(6) * 500.0, rng.integers(1, 90, 6), np.resize(widths, 6)),
    }


def _by_name(frames: Iterable[Any]) -> dict[str, pd.DataFrame]:
    """Checked traces by name; one without name, or with that of an earlier trace, has a number."""
    traces: dict[str, pd.DataFrame] = {}
    for number, frame in enumerate(map(checked, frames)):
        name = str(frame.attrs.get("name", f"number {number}"))
        traces[f"{name}, number {number}" if name in traces else name] = frame
    return traces


def _with_deadlines(trace: pd.DataFrame) -> pd.DataFrame:
    """Trace in which every job has an SLO, for a policy that does not run without."""
    return trace.assign(slo=np.array([1.5, 6.0, 3.0])[np.arange(len(trace)) % 3])


def _trace(submit: Any, duration: Any, gpus: Any) -> pd.DataFrame:
    """Trace with users, CPU cores, memory, two models and their stages.

    ``submit``, ``duration`` and ``gpus`` have a value per job.
    """
    rows = np.arange(len(submit))
    model = rows % 2
    return pd.DataFrame(
        {
            # Ids differ from row numbers and from the order of submission.
            "job_id": 1000 - 7 * rows,
            "submit_time": np.asarray(submit, float),
            "duration": np.asarray(duration, float),
            "num_gpus": np.asarray(gpus, np.int64),
            "num_cpus": np.asarray(gpus, np.float64) * np.array([1.0, 4.0, 3.0])[rows % 3],
            "memory_mib": np.asarray(gpus, np.float64) * np.array([4096.0, 1024.0])[rows % 2],
            "user": np.array(["ada", "ben", "cy"])[rows % 3],
            "model": np.array(["vgg16", "resnet18"])[model],
            # vgg16 is bound by the network, resnet18 by its input data.
            "stage_storage": np.array([0.05, 0.25])[model],
            "stage_cpu": np.array([0.05, 0.5])[model],
            "stage_gpu": np.array([0.125, 0.1])[model],
            "stage_network": np.array([0.25, 0.05])[model],
            "iteration_time": np.array([0.5, 1.0])[model],
            "iterations": np.asarray(duration, float) / np.array([0.5, 1.0])[model],
        }
    )


def scaled(policy: Policy, factor: float) -> Policy | None:
    """Policy with its `time_fields` and its interval multiplied by a factor.

    None: one of them is a text, or the policy rounds times.
    """
    if policy.rounds_times:
        return None
    changes: dict[str, Any] = {}
    for name in policy.time_fields:
        value = getattr(policy, name)
        if isinstance(value, str):
            return None
        if value is not None:
            is_number = isinstance(value, (int, float))
            changes[name] = value * factor if is_number else tuple(v * factor for v in value)
    changed = dataclasses.replace(policy, **changes) if changes else policy
    interval_s = policy.interval
    # An interval that is no parameter is an attribute of the class.
    if interval_s is not None and changed.interval == interval_s:
        changed = _subclassed(changed, {"interval": interval_s * factor})
    return changed


class _Battery:
    """Checks of a policy on a cluster."""

    def __init__(self, policy: Policy, cluster: Cluster, options: dict[str, Any]) -> None:
        self.policy = policy
        self.cluster = cluster
        self.options = options
        ideal = (options.get("rounds") or {}).get("ideal")
        self.checks_gangs = not policy.elastic and ideal is None
        self.rules = rules_named(options.get("rules", "paper"))
        self.has_artifact_rules = self.rules != rules_named("paper")
        #: whether the policy returns shares, which rounds execute; set by the first run
        self.in_rounds = False

    def run(self, trace: pd.DataFrame, policy: Policy | None = None, **options: Any) -> Result:
        """Simulate a trace with the battery's options, of which ``options`` replace some."""
        options = {"keep_intervals": True, **self.options, **options}
        return simulate(trace, self.cluster, policy or self.policy, **options)

    def broken(self, rule: str, trace: str, job: object, fault: str) -> NoReturn:
        """Raise for a broken rule."""
        raise PolicyError(
            f"policy {self.policy.name!r}, trace {trace!r}: job {job!r} breaks rule {rule!r}: "
            f"{fault}"
        )

    def check_trace(self, name: str, trace: pd.DataFrame) -> None:
        """Check all rules except ``needs`` on a trace."""
        trace.attrs["name"] = name
        self._runs_to_the_end(name, trace)
        result = self.run(trace)
        check_records(
            result,
            self.cluster,
            gang=self.checks_gangs,
            exact=serves_exactly(self.policy, self.rules, self.options, in_rounds=self.in_rounds),
            tick_s=self.rules.tick_s,
            trace=trace,
        )
        ends = result.jobs.set_index("job_id")["end_time"]
        self._same("repeatable", name, ends, self.run(trace), "a second run ends it at")
        submit = trace["submit_time"]
        # Times that are equal in whole seconds tie, and the order of rows decides ties.
        distinct = (submit.astype(int) if self.rules.whole_seconds else submit).is_unique
        if distinct:
            shuffled = self.run(trace.sample(frac=1.0, random_state=1))
            self._same("file order", name, ends, shuffled, "with the rows shuffled it ends at")
            self._ids(name, trace, result)
        self._scaling(name, trace, ends)
        self._baseline(name, trace, ends)
        self._key(name, trace)
        self._alone(name, trace)
        if "duration" not in self.policy.needs:
            self._blind(name, trace, result)

    def _runs_to_the_end(self, name: str, trace: pd.DataFrame) -> None:
        """Check that all jobs end in time.

        The limit is 2 hours plus 50 times the sum of the last submission and all durations. Rules
        with a clock of ticks take no added process. Their compiled loop has a limit of its own.
        """
        limit = 7200.0 + 50 * float(trace["submit_time"].max() + trace["duration"].sum())

        def watchdog(engine: Engine) -> Generator[Any, Any, None]:
            engines.append(engine)
            yield engine.env.timeout(limit)
            job = engine.table.ids[next(iter(engine.table.active))]
            raise PolicyError(
                f"policy {self.policy.name!r}: job {job!r} breaks rule 'ends': it has not ended at "
                f"{limit:g} s; every decision must run a job or name a wake-up that leads to one"
            )

        engines: list[Engine] = []
        try:
            self.run(trace, processes=[] if self.rules.tick_s else [watchdog])
        except PolicyError as error:
            raise PolicyError(f"trace {name!r}: {error}") from error
        self.in_rounds = any(engine.driver.rounds is not None for engine in engines)

    def _same(
        self, rule: str, name: str, ends: pd.Series[float], other: Result, fault: str
    ) -> None:
        """Check that another run has the same ends (s)."""
        again = other.jobs.set_index("job_id")["end_time"].reindex(ends.index)
        close = np.isclose(again, ends, rtol=1e-9, atol=0.0)
        if not close.all():
            job = ends.index.tolist()[int((~close).argmax())]
            self.broken(rule, name, job, f"{fault} {again[job]:g} s instead of {ends[job]:g} s")

    def _ids(self, name: str, trace: pd.DataFrame, result: Result) -> None:
        """Rename the jobs: no JCT may change."""
        renamed = trace.assign(job_id=np.random.default_rng(2).permutation(len(trace)))
        columns = ["num_gpus", "duration", "jct"]
        before = result.jobs.sort_values(columns).reset_index()
        after = self.run(renamed).jobs.sort_values(columns).reset_index()
        differs = ~np.isclose(before["jct"], after["jct"], rtol=1e-9)
        if differs.any():
            job = before["job_id"].tolist()[int(differs.argmax())]
            self.broken("ids", name, job, "its JCT changes with the names of the jobs")

    def _scaling(self, name: str, trace: pd.DataFrame, ends: pd.Series[float]) -> None:
        """Double all times: all ends must double."""
        # A power of two keeps the mantissas, and so all ties.
        factor = 2.0
        policy = scaled(self.policy, factor)
        options = dict(self.options)
        has_overhead = options.get("overhead") is not None or self.policy.overhead() is not None
        has_failures = options.get("failures") is not None
        if policy is None or has_overhead or has_failures or self.has_artifact_rules:
            return
        if options.get("interval"):
            options["interval"] *= factor
        rounds = options.get("rounds") or {}
        options["rounds"] = {**rounds, **RoundSettings.of(rounds).stretched(factor)}
        times = {column: trace[column] * factor for column in TIMES if column in trace}
        result = self.run(trace.assign(**times), policy, **options)
        parameters = {field.name for field in dataclasses.fields(self.policy)}
        others = sorted(parameters - set(self.policy.time_fields))
        hint = f"parameters in seconds belong in `time_fields` (not there: {', '.join(others)}); "
        fault = "with all times doubled it ends at"
        self._same("scaling", name, ends * factor, result, (hint if others else "") + fault)

    def _baseline(self, name: str, trace: pd.DataFrame, ends: pd.Series[float]) -> None:
        """Check that jobs end as under the baseline, in a run without the inputs that it names."""
        baseline = self.policy.baseline
        modelled = self.options.get("perf") is not None or self.policy.performance() is not None
        if baseline is None or baseline.policy is None:
            return
        if self.options.get("rules", "paper") != "paper":
            return
        rounds = RoundSettings.of(self.options.get("rounds") or {})
        if baseline.equals(
            self.policy,
            trace,
            self.cluster,
            modelled=modelled,
            failing=bool(self.options.get("failures") or self.options.get("processes")),
            samples_type_order=rounds.samples_type_order,
        ):
            other = self.run(trace, make(baseline.policy))
            fault = (
                "the run has none of the inputs that distinguish the policy from "
                f"{baseline.policy!r}, which ends the job at"
            )
            self._same("baseline", name, ends, other, fault)

    def _key(self, name: str, trace: pd.DataFrame) -> None:
        """Compare `Order.keys` and `Order.slope` with `Order.key` at every event."""
        policy = self.policy
        is_plain = isinstance(policy, Order) and type(policy).ordering is Order.ordering
        # Speeds other than nominal and late progress change the slope between events.
        options = ("perf", "overhead", "failures", "processes", "rounds")
        has_own_speeds = policy.performance() is not None or policy.overhead() is not None
        if not is_plain or has_own_speeds or any(self.options.get(name) for name in options):
            return
        if self.has_artifact_rules:
            return
        watched = _subclassed(policy, {"ordering": lambda self, view: _WatchedKeys(self, view)})
        try:
            self.run(trace, watched)
        except PolicyError as error:
            raise PolicyError(f"trace {name!r}: {error}") from error

    def _alone(self, name: str, trace: pd.DataFrame) -> None:
        """Run a job of each width alone: it must take its duration, and the costs of its start."""
        if (
            not self.checks_gangs
            or self.policy.completions().poll_s
            or self.options.get("perf") is not None
        ):
            return
        for _, rows in trace.groupby("num_gpus"):
            single = rows.iloc[:1].assign(submit_time=0.0)
            result = self.run(single)
            job: Any = next(result.jobs.itertuples())
            costs_s = result.meta["overhead_s"]
            if costs_s and job.preemptions:
                fault = f"alone it is preempted {job.preemptions} times, at a cost"
                self.broken("alone", name, job.job_id, fault)
            expected_s = job.duration + costs_s
            if not math.isclose(job.jct, expected_s, rel_tol=1e-9):
                fault = f"alone it takes {job.jct:g} s instead of {expected_s:g} s"
                self.broken("alone", name, job.job_id, fault)

    def _blind(self, name: str, trace: pd.DataFrame, result: Result) -> None:
        """Lengthen the jobs: no interval before the first completion may change."""
        first_end = float(result.jobs["end_time"].min())
        factors = np.random.default_rng(3).uniform(1.0, 4.0, len(trace))
        longer = self.run(trace.assign(duration=trace["duration"] * factors))
        before, after = (
            run.intervals[run.intervals["start"] < first_end]
            .assign(end=run.intervals["end"].clip(upper=first_end))
            .set_index(["job_id", "start", "end", "gpus"])
            for run in (result, longer)
        )
        changed = before.index.symmetric_difference(after.index)
        if len(changed):
            job = changed.tolist()[0][0]
            self.broken("blind", name, job, "its true duration matters before it ends")

    def check_needs(self, traces: Traces) -> None:
        """Withhold each declared need in turn: a run on at least one trace must fail."""
        for need in sorted(self.policy.needs):
            policy = _without(self.policy, need)
            try:
                for trace in traces.values():
                    self.run(trace, policy)
            except PolicyError:
                continue
            raise PolicyError(
                f"policy {self.policy.name!r} breaks rule 'needs': it declares {need!r} but reads "
                f"it on none of the traces {', '.join(map(repr, traces))}; drop it from `needs`"
            )


class _WatchedKeys(Ordering):
    """Plain `Ordering` that compares `keys` and `slope` of its policy with `key` at every event."""

    def __init__(self, policy: Order, view: View) -> None:
        super().__init__(policy, view)
        self._changing = ChangingKeys(policy, Ordering(policy, view), view)
        #: key, slope and instant (s) of each running job at the last event
        self._last: dict[int, tuple[Numbers, float, float]] = {}

    def arrive(self, job: int, now: float) -> None:
        self._changing.arrive(job, now)

    def finish(self, job: int, now: float) -> None:
        self._changing.finish(job)
        self._last.pop(job, None)

    def moves(self, now: float) -> list[int]:
        self._compare_keys(now)
        self._compare_slopes(now)
        # as `ChangingKeys` does for a plain `Ordering`
        return self._changing.to_read(self.view.running)

    def _compare_keys(self, now: float) -> None:
        """Compare the keys of all jobs present in one array with their keys one by one."""
        jobs = np.array(self.view.jobs, dtype=np.int64)
        together = self.keys(jobs, now) if len(jobs) else None
        if together is None:
            return
        for job, row in zip(jobs.tolist(), np.asarray(together).tolist(), strict=True):
            one = _numbers(self.key(job, now))
            if not _are_close(one, _numbers(row), 1e-9):
                text = f"`keys` gives {row} at {now:g} s, and `key` gives {self.key(job, now)}"
                raise self._broken(job, text)

    def _compare_slopes(self, now: float) -> None:
        """Compare the keys of running jobs with those at the last event plus their slopes."""
        last = self._last
        self._last = {}
        for job in self.view.running:
            numbers = _numbers(self.key(job, now))
            if self._changing.are_read(job):
                continue
            if job in last:
                before, slope, instant = last[job]
                expected = (*before[:-1], before[-1] + slope * (now - instant))
                if not _are_close(numbers, expected, 1e-6):
                    raise self._broken(
                        job,
                        f"its key is {numbers[-1]:g} at {now:g} s; the key at {instant:g} s and "
                        f"`slope` ({slope:g} per second) give {expected[-1]:g}",
                    )
            self._last[job] = numbers, self.slope(job), now

    def _broken(self, job: int, fault: str) -> PolicyError:
        """Error for a key that breaks the rule ``key``."""
        return PolicyError(
            f"policy {self.policy.name!r}: job {self.view.job_id(job)!r} breaks rule 'key': {fault}"
        )


def _numbers(key: Any) -> Numbers:
    """Numbers of a key, which is a number or a tuple or list of numbers."""
    return tuple(key) if isinstance(key, (tuple, list)) else (key,)


def _are_close(first: Numbers, second: Numbers, tolerance: float) -> bool:
    """Whether two keys agree up to a relative and absolute tolerance."""
    return len(first) == len(second) and all(
        math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
        for a, b in zip(first, second, strict=True)
    )


def _without(policy: Policy, need: str) -> Policy:
    """Copy of a policy whose view withholds one of its declared needs."""

    def narrowed(view: View) -> View:
        view.needs = view.needs - {need}
        return view

    body: dict[str, Any] = {}
    for name in {"session", "ordering"} & set(dir(type(policy))):
        method = getattr(type(policy), name)
        body[name] = lambda self, view, method=method: method(self, narrowed(view))
    return _subclassed(policy, body)


def _subclassed(policy: P, body: dict[str, Any]) -> P:
    """Policy with the same parameters, of a subclass with the attributes ``body``."""
    policy_class: Any = type(policy)
    settings = {
        field.name: getattr(policy, field.name)
        for field in dataclasses.fields(policy)
        if field.init
    }
    subclass: Any = type(policy_class.__name__, (policy_class,), body)
    subclassed: P = subclass(**settings)
    return subclassed
