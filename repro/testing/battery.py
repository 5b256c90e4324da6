"""Tools for people who write policies: a small trace and the conformance battery `check_policy`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd

from repro.base.errors import PolicyError
from repro.engine.loop import Engine
from repro.engine.simulate import simulate
from repro.model.cluster.spec import Cluster
from repro.model.policy import Policy, make
from repro.model.records import Result
from repro.model.rules import rules_named
from repro.model.view import View
from repro.placement import base as placement_base
from repro.testing.audit import check_records

if TYPE_CHECKING:
    from repro.engine.rounds.mechanism import RoundMechanism

Traces = Mapping[str, pd.DataFrame]


def small_trace() -> pd.DataFrame:
    """Return six jobs for four GPUs, for examples."""
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
    traces: Traces | Iterable[pd.DataFrame] | None = None,
    cluster: Cluster | str = "2x4",
    **options: Any,
) -> None:
    """Check that a policy keeps the rules every policy must keep, or raise which one it breaks.

    It runs to the end; GPUs never exceed the cluster's (capacity); a job holds all the GPUs it
    asked for or none, once (gang); served work equals required work (work); every job ends exactly
    once (ends); the same input gives the same output (repeatable); neither job ids (ids) nor the
    order of the file (file order) matter beyond ties; a job alone takes its duration (alone); time
    has no unit (scaling); nothing is read that is not in `needs`, and everything in `needs` is
    (needs); undeclared durations have no influence (blind).

    Policies with ``elastic = True`` are not asked for gang and alone; ``time_fields`` are scaled
    along. Work and alone allow for the costs of ``overhead``, a performance model, and completions
    noticed late (`Policy.completions`).

    Parameters
    ----------
    policy : Policy or str
        The policy, with any settings, or a registered name.
    traces : mapping or iterable of DataFrame, optional
        Traces to run, by name; a handful that stress ties, wide gangs and fractions by default.
    cluster : Cluster or str
        Where to run them.
    **options
        Passed to `repro.simulate`: perf, rounds, overhead, placement, rules, interval, seed.

    Examples
    --------
    >>> check_policy("srtf")
    """
    spec = Cluster.parse(cluster)
    rules = options.get("rules", "paper")
    resolved = make(policy, rules) if isinstance(policy, str) else policy.under(rules)
    if traces is None:
        traces = stress_traces(widths_for(resolved, spec, options.get("placement")))
    elif not isinstance(traces, Mapping):
        frames = list(traces)
        traces = {str(f.attrs.get("name", f"number {n}")): f for n, f in enumerate(frames)}
    battery = _Battery(resolved, spec, options)
    for name, trace in traces.items():
        battery.check_trace(name, trace.reset_index(drop=True))
    battery.check_needs(traces)


def widths_for(policy: Policy, cluster: Cluster, placement: Any = None) -> list[int]:
    """Return the default gang sizes: powers of two that fit, and the whole cluster."""
    rule = placement if placement is not None else policy.placement
    rule = placement_base.make(rule) if isinstance(rule, str) else rule
    placer = rule.bind(cluster, np.random.default_rng(0))
    top = max(cluster.gpu_types.values(), default=cluster.num_gpus)
    doubled = [2**n for n in range(top.bit_length()) if 2**n <= top]
    return [width for width in sorted({*doubled, top}) if placer.possible(width)]


def stress_traces(widths: list[int], seed: int = 0) -> dict[str, pd.DataFrame]:
    """Return small traces in which jobs tie, queue, cross and leave the cluster idle."""
    rng = np.random.default_rng(seed)
    small = widths[: max(1, len(widths) - 1)]
    whole = np.cumsum(rng.integers(1, 25, 30)).astype(float)
    return {
        "steady": _trace(whole, rng.integers(1, 120, 30), rng.choice(small, 30)),
        "burst": _trace(np.zeros(12), rng.choice([30, 60], 12), rng.choice(widths, 12)),
        "wide": _trace(whole[:16], rng.integers(1, 60, 16), np.resize(widths[::-1], 16)),
        "fractions": _trace(
            np.cumsum(rng.exponential(9.0, 30)), rng.lognormal(3.5, 1.2, 30), rng.choice(widths, 30)
        ),
        "idle gaps": _trace(np.arange(6) * 500.0, rng.integers(1, 90, 6), np.resize(widths, 6)),
    }


def _trace(submit: Any, duration: Any, gpus: Any) -> pd.DataFrame:
    rows = np.arange(len(submit))
    kind = rows % 2
    return pd.DataFrame(
        {
            # neither 0, 1, 2, … nor in order of submission: ids are not row numbers
            "job_id": 1000 - 7 * rows,
            "submit_time": np.asarray(submit, float),
            "duration": np.asarray(duration, float),
            "num_gpus": np.asarray(gpus, np.int64),
            "user": np.array(["ada", "ben", "cy"])[rows % 3],
            "model": np.array(["vgg16", "resnet18"])[kind],
            # one is bound by the network, the other by its data
            "stage_storage": np.array([0.05, 0.25])[kind],
            "stage_cpu": np.array([0.05, 0.5])[kind],
            "stage_gpu": np.array([0.125, 0.1])[kind],
            "stage_network": np.array([0.25, 0.05])[kind],
            "iteration_time": np.array([0.5, 1.0])[kind],
            "iterations": np.asarray(duration, float) / np.array([0.5, 1.0])[kind],
        }
    )


def scaled(policy: Policy, factor: float) -> Policy | None:
    """Return the policy with its `time_fields` multiplied, None if one of them cannot be."""
    changes: dict[str, Any] = {}
    for name in policy.time_fields:
        value = getattr(policy, name)
        if isinstance(value, str):
            return None
        if value is not None:
            single = isinstance(value, (int, float))
            changes[name] = value * factor if single else tuple(v * factor for v in value)
    return dataclasses.replace(policy, **changes) if changes else policy


class _Battery:
    """One policy on one cluster."""

    def __init__(self, policy: Policy, cluster: Cluster, options: dict[str, Any]) -> None:
        self.policy = policy
        self.cluster = cluster
        self.options = options
        ideal = (options.get("rounds") or {}).get("ideal")
        self.gang = not policy.elastic and ideal is None
        self.rules = rules_named(options.get("rules", "paper"))
        self.simulator = self.rules != rules_named("paper")
        #: what realises the policy's shares, if it returns any; known after the first run
        self.mechanism: RoundMechanism | None = None

    def run(self, trace: pd.DataFrame, policy: Policy | None = None, **options: Any) -> Result:
        return simulate(trace, self.cluster, policy or self.policy, **{**self.options, **options})

    def broken(self, rule: str, trace: str, job: object, what: str) -> NoReturn:
        raise PolicyError(
            f"policy {self.policy.name!r}, trace {trace!r}: job {job!r} breaks rule {rule!r}: "
            f"{what}"
        )

    def check_trace(self, name: str, trace: pd.DataFrame) -> None:
        trace.attrs["name"] = name
        self._runs_to_the_end(name, trace)
        result = self.run(trace)
        free = self.options.get("overhead") is None and not self.rules.start_overhead
        exact = free and not self.policy.completions().poll_s
        check_records(result, self.cluster, gang=self.gang, exact=exact)
        ends = result.jobs.set_index("job_id")["end_time"]
        self._same("repeatable", name, ends, self.run(trace), "a second run ends it at")
        submit = trace["submit_time"]
        # times that are one after cutting are a tie, which the order of the file decides
        distinct = (submit.astype(int) if self.rules.whole_seconds else submit).is_unique
        if distinct:
            shuffled = self.run(trace.sample(frac=1.0, random_state=1))
            self._same("file order", name, ends, shuffled, "with the rows shuffled it ends at")
            self._ids(name, trace, result)
        self._scaling(name, trace, ends)
        self._baseline(name, trace, ends)
        self._alone(name, trace)
        if "duration" not in self.policy.needs:
            self._blind(name, trace, result)

    def _runs_to_the_end(self, name: str, trace: pd.DataFrame) -> None:
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
            self.run(trace, processes=[watchdog])
        except PolicyError as error:
            raise PolicyError(f"trace {name!r}: {error}") from error
        self.mechanism = getattr(engines[0].driver, "rounds", None)

    def _same(self, rule: str, name: str, ends: pd.Series[float], other: Result, what: str) -> None:
        again = other.jobs.set_index("job_id")["end_time"].reindex(ends.index)
        close = np.isclose(again, ends, rtol=1e-9, atol=0.0)
        if not close.all():
            job = ends.index.tolist()[int((~close).argmax())]
            self.broken(rule, name, job, f"{what} {again[job]:g} s instead of {ends[job]:g} s")

    def _ids(self, name: str, trace: pd.DataFrame, result: Result) -> None:
        other = trace.assign(job_id=np.random.default_rng(2).permutation(len(trace)))
        columns = ["num_gpus", "duration", "jct"]
        before, after = (
            r.jobs.sort_values(columns).reset_index() for r in (result, self.run(other))
        )
        differs = ~np.isclose(before["jct"], after["jct"], rtol=1e-9)
        if differs.any():
            job = before["job_id"].tolist()[int(differs.argmax())]
            self.broken("ids", name, job, "its JCT changes with the names of the jobs")

    def _scaling(self, name: str, trace: pd.DataFrame, ends: pd.Series[float]) -> None:
        factor = 2.0  # a power of two leaves the mantissas, and so every tie, as they are
        policy = scaled(self.policy, factor)
        options = dict(self.options)
        if policy is None or options.get("overhead") is not None or self.simulator:
            return
        if options.get("interval"):
            options["interval"] *= factor
        if self.mechanism is not None:
            longer = self.mechanism.settings.stretched(factor)
            options["rounds"] = {**(options.get("rounds") or {}), **longer}
        times = {c: trace[c] * factor for c in ("submit_time", "duration")}
        result = self.run(trace.assign(**times), policy, **options)
        self._same("scaling", name, ends * factor, result, "with all times doubled it ends at")

    def _baseline(self, name: str, trace: pd.DataFrame, ends: pd.Series[float]) -> None:
        baseline = self.policy.baseline
        modelled = self.options.get("perf") is not None or self.policy.performance() is not None
        if baseline is None or baseline.policy is None:
            return
        if self.options.get("rules", "paper") != "paper":
            return
        if baseline.equals(self.policy, trace, modelled=modelled):
            other = self.run(trace, make(baseline.policy))
            what = f"without what it declares, {baseline.policy!r} ends it at"
            self._same("baseline", name, ends, other, what)

    def _alone(self, name: str, trace: pd.DataFrame) -> None:
        if (
            not self.gang
            or self.policy.completions().poll_s
            or self.options.get("perf") is not None
        ):
            return
        for _, rows in trace.groupby("num_gpus"):
            one = rows.iloc[:1].assign(submit_time=0.0)
            job: Any = next(self.run(one).jobs.itertuples())
            if not math.isclose(job.jct, job.duration, rel_tol=1e-9):
                what = f"alone it takes {job.jct:g} s instead of {job.duration:g} s"
                self.broken("alone", name, job.job_id, what)

    def _blind(self, name: str, trace: pd.DataFrame, result: Result) -> None:
        """Lengthen the jobs: up to the first completion nothing may change."""
        first = float(result.jobs["end_time"].min())
        factors = np.random.default_rng(3).uniform(1.0, 4.0, len(trace))
        longer = self.run(trace.assign(duration=trace["duration"] * factors))
        before, after = (
            r.intervals[r.intervals["start"] < first]
            .assign(end=r.intervals["end"].clip(upper=first))
            .set_index(["job_id", "start", "end", "gpus"])
            for r in (result, longer)
        )
        other = before.index.symmetric_difference(after.index)
        if len(other):
            self.broken(
                "blind", name, other.tolist()[0][0], "its true duration matters before it ends"
            )

    def check_needs(self, traces: Traces) -> None:
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


def _without(policy: Policy, need: str) -> Policy:
    """Return a copy of a policy whose view withholds one of its declared needs."""
    kind: Any = type(policy)

    def narrowed(view: View) -> View:
        view.needs -= {need}
        return view

    body: dict[str, Any] = {}
    for name in {"session", "ordering"} & set(dir(kind)):
        made = getattr(kind, name)
        body[name] = lambda self, view, made=made: made(self, narrowed(view))
    settings = {f.name: getattr(policy, f.name) for f in dataclasses.fields(policy) if f.init}
    other: Policy = type(kind.__name__, (kind,), body)(**settings)
    return other
