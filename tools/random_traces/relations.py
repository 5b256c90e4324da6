"""Metamorphic relations: changes of a case after which the times of its jobs are known."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from repro.engine.elastic import Elastic
from repro.engine.rounds.settings import RoundSettings
from repro.figures.data import stream
from repro.model.cluster.spec import Cluster
from repro.model.policy import Order
from repro.model.records import Result
from repro.model.rules import RULES
from repro.model.share_policy import SharePolicy
from repro.perf.overhead import CheckpointOverhead
from repro.perf.throughput import ThroughputTable
from repro.testing import scaled
from repro.trace.schema import COLUMNS, RESOLUTION, TIMES
from tools.random_traces.cases import DYADIC_S, MODELS, Case

Run = Callable[..., Result]
#: Times are doubled, because a power of two changes no digit of a sum.
FACTOR = 2.0


@dataclass(frozen=True)
class Change:
    """A changed case, and what must be equal in its run.

    Parameters
    ----------
    case : Case
        The changed case.
    options : dict
        Further changed arguments of `repro.simulate`.
    column : str
        Column of `Result.jobs` that is compared.
    factor : float
        The column of the changed run is that of the first run times this factor.
    rel, absolute : float
        Accepted distance, relative and in seconds; both 0: equal to the last bit.
    names : dict
        Id in the changed case of each id, if they differ.
    before : Case, optional
        The case to compare with, if it is not the one that was drawn.
    """

    case: Case
    options: dict[str, Any] = field(default_factory=dict)
    column: str = "end_time"
    factor: float = 1.0
    rel: float = 0.0
    absolute: float = 0.0
    names: Mapping[Any, Any] | None = None
    before: Case | None = None


@dataclass(frozen=True)
class Relation:
    """A relation between two runs.

    Parameters
    ----------
    name : str
        Short name.
    statement : str
        What is changed, and what is equal.
    make : callable
        Change of a case; None: the relation does not apply to it.
    excepted : mapping of str to str
        Policies of which it does not hold, with the reason.
    """

    name: str
    statement: str
    make: Callable[[Case], Change | None]
    excepted: Mapping[str, str] = field(default_factory=dict)

    def applies(self, case: Case) -> bool:
        """Whether the relation applies to a case."""
        return case.policy not in self.excepted and self.make(case) is not None

    def fault(self, case: Case, result: Result, run: Run) -> str:
        """Job whose time differs, empty if none does."""
        change = self.make(case)
        if change is None:
            return ""
        if change.before is not None:
            result = run(change.before)
        before = result.jobs.set_index("job_id")[change.column] * change.factor
        after = run(change.case, **change.options).jobs.set_index("job_id")[change.column]
        names = before.index if change.names is None else before.index.map(change.names)
        changed = after.reindex(names).to_numpy(float)
        distance = np.abs(changed - before.to_numpy(float))
        accepted = change.absolute + change.rel * np.abs(before.to_numpy(float))
        # NaN is a fault, too
        is_far = ~(distance <= accepted)
        if not is_far.any():
            return ""
        job = int(is_far.argmax())
        return (
            f"job {before.index[job]}: {change.column} {float(changed[job])!r} instead of "
            f"{float(before.iloc[job])!r} s"
        )


def _rng(case: Case, purpose: str) -> np.random.Generator:
    return stream(purpose, case.policy, case.rules, case.seed, case.index)


def _permuted_rows(case: Case) -> Change:
    """Rows in another order; jobs of one submission time keep theirs, because it decides ties."""
    times = case.trace["submit_time"]
    if RULES[case.rules].whole_seconds:
        times = np.floor(times)
    instants = np.unique(times)
    order = _rng(case, "rows").permutation(len(instants))
    place = dict(zip(instants.tolist(), order.tolist(), strict=True))
    rows = np.argsort(times.map(place).to_numpy(), kind="stable")
    return Change(replace(case, trace=case.trace.iloc[rows].reset_index(drop=True)))


def _other_ids(case: Case) -> Change:
    """Other ids of jobs, in another order."""
    ids = case.trace["job_id"].tolist()
    others = [f"job-{number}" for number in _rng(case, "ids").permutation(len(ids))]
    trace = case.trace.assign(job_id=others)
    return Change(replace(case, trace=trace), names=dict(zip(ids, others, strict=True)))


def _doubled_times(case: Case) -> Change | None:
    """All times doubled: of jobs, policy, rounds, costs and failures."""
    policy = scaled(case.made(), FACTOR)
    if policy is None or case.rules != "paper":
        return None
    if case.settings.get("tolerance"):
        # the bisection of a makespan has fixed first bounds
        return None
    options = dict(case.options)
    if "interval" in options:
        options["interval"] *= FACTOR
    if "rounds" in options:
        settings = RoundSettings.of(options["rounds"])
        options["rounds"] = options["rounds"] | settings.stretched(FACTOR)
    overhead = options.get("overhead")
    if isinstance(overhead, CheckpointOverhead):
        options["overhead"] = CheckpointOverhead(
            {}, overhead.resume * FACTOR, overhead.default_pause * FACTOR
        )
    if "failures" in options:
        words = [word.split("=") for word in options["failures"].split(",")]
        options["failures"] = ",".join(f"{name}={float(s) * FACTOR!r}" for name, s in words)
    doubled = {name: case.trace[name] * FACTOR for name in TIMES if name in case.trace}
    names = dict.fromkeys([*case.settings, *policy.time_fields])
    values = {name: getattr(policy, name) for name in names}
    settings_of = {name: value for name, value in values.items() if value is not None}
    changed = replace(
        case, trace=case.trace.assign(**doubled), settings=settings_of, options=options
    )
    return Change(changed, factor=FACTOR, rel=_rounding(case))


def _shifted_times(case: Case) -> Change | None:
    """All submissions later by the same time; the clock starts at the first submission."""
    if RULES[case.rules].trace_clock or not case.is_dyadic or case.rules == "pcs":
        return None
    later = case.trace["submit_time"] + 977 * 4 * DYADIC_S
    return Change(replace(case, trace=case.trace.assign(submit_time=later)), column="jct")


def _split_nodes(case: Case) -> Change | None:
    """Every node cut into two nodes with half its GPUs, where placement only counts GPUs."""
    policy = case.made()
    cluster = Cluster.parse(case.cluster)
    counts_only = case.options.get("placement", policy.placement) == "count"
    needs_nodes = "slowdown" in case.options or "failures" in case.options
    selects_by_nodes = getattr(policy, "refill", False) or getattr(policy, "form", "") == "shares"
    if selects_by_nodes:
        return None
    if not counts_only or needs_nodes or any(node.gpus % 2 for node in cluster.nodes):
        return None
    halves = []
    for words in case.cluster.split(","):
        grid, _, gpu_type = words.partition(":")
        *switches, nodes, gpus = grid.split("x")
        counts = [*switches, str(2 * int(nodes)), str(int(gpus) // 2)]
        halves.append("x".join(counts) + (f":{gpu_type}" if gpu_type else ""))
    return Change(replace(case, cluster=",".join(halves)))


def _later_jobs(case: Case) -> Change | None:
    """More jobs, submitted long after all others have ended."""
    if "failures" in case.options or case.options.get("predict"):
        return None
    if case.settings.get("size_error") or case.settings.get("noise"):
        # sampled for all jobs at once
        return None
    if RULES[case.rules].rounds and isinstance(case.made(), SharePolicy):
        # a job that reaches an idle cluster may wait for the next arrival
        return None
    late = case.trace.iloc[:2].copy()
    late["job_id"] = [10_000 + number for number in range(len(late))]
    if "priority" in late:
        # two guaranteed jobs of AntMan share no GPUs, which some stage times do not allow
        late["priority"] = 0
    # an upper bound of the end of the others: all alone, at the least speed, and starts
    late_s = 2.0**21 + 4096 * float(case.trace["duration"].sum())
    if late_s > float(COLUMNS["submit_time"].high):
        return None
    if np.spacing(2 * late_s) > RESOLUTION * float(late["duration"].min()):
        # so short a job is refused at so late a time
        return None
    late["submit_time"] = late_s
    trace = pd.concat([case.trace, late], ignore_index=True)
    return Change(replace(case, trace=trace))


def _doubled_types(case: Case) -> Change | None:
    """Jobs of one GPU on GPUs of one type, or on twice as many types of equal speed."""
    if not isinstance(case.made(), Order) or len(case.options) > 2:
        return None
    if case.settings.get("promote_knob") or getattr(case.made(), "history_ties", False):
        # a job that moves to the other type stops and starts, which promotions and ties remember
        return None
    nodes = max(1, Cluster.parse(case.cluster).num_nodes // 2)
    gpus = 2
    trace = case.trace.assign(num_gpus=1)
    speeds = {"v100": 2.0, "w100": 2.0}
    table = ThroughputTable({(model, 1): speeds for model in MODELS}, "v100")
    options = case.options | {"perf": table}
    options.pop("types", None)
    one = replace(case, trace=trace, cluster=f"{2 * nodes}x{gpus}:v100", options=options)
    two = replace(one, cluster=f"{nodes}x{gpus}:v100,{nodes}x{gpus}:w100")
    # a job that moves to the other type adds up its work in more parts
    return Change(two, before=one, rel=1e-12)


def _event_by_event(case: Case) -> Change | None:
    """The run event by event, not in one compiled call, because a process is added to it."""
    if case.rules == "pcs" or case.options.get("predict") is not None:
        return None
    if case.settings.get("size_error") or case.settings.get("resize_s"):
        # these need the compiled loop
        return None
    has_no_work = RULES[case.rules].whole_seconds and (case.trace["duration"] < 1.0).any()
    if case.policy == "themis" and has_no_work:
        # the compiled loop ends a job of 0 s without a lease, the other gives it one
        return None

    def nothing(engine: Any) -> Generator[Any, Any, None]:
        yield engine.env.timeout(0)

    # both round sums of divided GPUs differently
    absolute = 1e-7 if isinstance(case.made(), Elastic) else 0.0
    rel = 1e-9 if absolute else 0.0
    return Change(case, {"processes": [nothing]}, absolute=absolute, rel=rel)


def _without_intervals(case: Case) -> Change:
    """The run without records of intervals."""
    # policies that divide GPUs then add up equal jobs together
    rel = 1e-12 if isinstance(case.made(), Elastic) else 0.0
    # which a clock of ticks can round to the next tick
    ticks_per_second = RULES[case.rules].ticks_per_second
    absolute = 1.5 / ticks_per_second if ticks_per_second > 1 else 0.0
    return Change(case, {"keep_intervals": False}, rel=rel, absolute=absolute)


def _rounding(case: Case) -> float:
    """Relative distance that rounding may cause where a solver or a sum is not exact."""
    return 1e-9 if isinstance(case.made(), SharePolicy | Elastic) else 0.0


RELATIONS = (
    Relation(
        "rows",
        "rows permuted; jobs of one submission time keep their order: ends to the last bit",
        _permuted_rows,
    ),
    Relation("ids", "other ids: ends to the last bit", _other_ids),
    Relation(
        "scaled",
        "all times doubled (rules paper): ends doubled to the last bit; policies that share or "
        "divide GPUs to 1e-9",
        _doubled_times,
    ),
    Relation(
        "shifted",
        "submissions later by 977/1024 s (rules paper and gavel): JCTs to the last bit",
        _shifted_times,
    ),
    Relation(
        "nodes",
        "every node cut into two, placement count (not with `refill` or for `themis` by shares, "
        "which select jobs by nodes): ends to the last bit",
        _split_nodes,
        {
            "antman": "guaranteed jobs own GPUs of single nodes",
            "gandiva": "gangs of one size own whole nodes",
            "muri-l": "groups are fitted to nodes",
            "muri-s": "groups are fitted to nodes",
        },
    ),
    Relation(
        "later",
        "two jobs more, submitted after all others have ended (not rounds under rules gavel, where "
        "jobs may wait for the next arrival): ends of the others to the last bit",
        _later_jobs,
    ),
    Relation(
        "types",
        "jobs of one GPU, two types of equal speed in place of one (policies that only rank jobs): "
        "ends to 1e-12",
        _doubled_types,
    ),
    Relation(
        "events",
        "event by event in place of compiled calls: ends to the last bit; divided GPUs to 1e-7 s",
        _event_by_event,
    ),
    Relation(
        "records",
        "no intervals recorded: ends to the last bit; divided GPUs to 1e-12, rules pcs to a tick",
        _without_intervals,
    ),
)
