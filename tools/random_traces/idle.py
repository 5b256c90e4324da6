"""Promises of policies about idle GPUs, and the check of a run's records against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from repro.base.typing import Flags, Floats
from repro.model.cluster.spec import Cluster
from repro.model.performance import Overhead
from repro.model.policy import Order, policies
from repro.model.records import Result
from repro.model.rules import RULES
from repro.model.share_policy import SharePolicy, share_traits
from tools.random_traces.cases import Case

#: Instants within this fraction of the last end are one instant.
_INSTANT = 1e-9
#: Instants from the begin of a round to the time at which its jobs run.
_AFTER = 4
#: Rounding errors of sums of GPUs are smaller than this.
_ROUNDING_GPUS = 1e-6


class Promise(NamedTuple):
    """Promise of a policy about idle GPUs.

    ``when`` says when no GPU is idle. ``gangs``: no waiting job fits the idle GPUs of a type, at
    any time. ``rounds``: the same at the begin of each round. ``demand``: jobs hold all GPUs, or
    the sum of their demands, at any time. ``never``: the policy leaves GPUs idle; ``reason`` says
    why.
    """

    when: Literal["gangs", "rounds", "demand", "never"]
    reason: str = ""


_LIQUID = Promise("never", "jobs are placed in order; one that does not fit blocks the others")
#: Policies that promise less than others of their form.
PROMISES: Mapping[str, Promise] = {
    "yarn-cs": Promise("never", "a job that does not fit blocks all jobs behind it"),
    "gandiva": Promise("never", "gangs of one size own node sets, which may be idle"),
    "antman": Promise("never", "the first guaranteed job that does not fit blocks those behind it"),
    "muri-s": Promise("never", "groups of equal demand are fixed until the next decision"),
    "muri-l": Promise("never", "groups of equal demand are fixed until the next decision"),
    "drf": Promise("never", "CPU cores and memory run out before GPUs do"),
    "reservation": Promise("never", "GPUs are reserved for later times"),
    "themis": Promise("never", "GPUs of a lease are given when the next lease begins"),
    "afs": Promise("never", "GPUs that gain no speed stay idle"),
    "pcs": Promise("never", "demand caps (zeta_min) leave GPUs idle"),
    "fifo-elastic": Promise("demand"),
    "max-min": Promise("demand"),
    "srsf-elastic": Promise("demand"),
    "allox": Promise("never", "a job waits in the queue of the GPU that was matched to it"),
    **dict.fromkeys(
        (
            *("liquid", "liquid-batch", "liquid-even", "liquid-pack", "liquid-random"),
            *("hived", "kubeflow", "kubernetes"),
        ),
        _LIQUID,
    ),
}


def promise_of(policy: str) -> Promise:
    """Promise of a policy; orders promise gangs, policies of shares promise rounds."""
    if policy in PROMISES:
        return PROMISES[policy]
    cls = policies[policy]
    return Promise("gangs" if issubclass(cls, Order) else "rounds")


def idle_fault(case: Case, result: Result) -> str:
    """Fault of a run in which a GPU is idle against the promise of its policy; empty: none."""
    promise = promise_of(case.policy)
    if promise.when == "never" or not _applies(case, promise):
        return ""
    spans = _Spans(case, result)
    if promise.when == "demand":
        return spans.unmet_demand()
    if promise.when == "gangs":
        return spans.waiting_gang(spans.instants())
    begins = spans.round_starts(case.options["rounds"]["round_s"])
    return spans.waiting_gang(begins + _AFTER * spans.instant_s, begins)


def _applies(case: Case, promise: Promise) -> bool:
    """Whether the options of a case leave the promise as it is."""
    options = case.options
    policy = case.made()
    costs: list[Overhead | Any] = [options.get("overhead"), policy.overhead()]
    if any(costs) or options.get("interval") or policy.interval or policy.completions().poll_s:
        return False
    if "types" in options or "failures" in options:
        # a wish narrows the GPUs of a job; a failed job keeps its GPUs
        return False
    if promise.when == "demand":
        # a policy that divides GPUs decides on each GPU type by itself
        return "perf" not in options and not case.settings.get("resize_s")
    if promise.when == "gangs":
        # selection by nodes: whether a gang fits depends on the nodes
        return not getattr(policy, "refill", False)
    rounds = options.get("rounds", {})
    if not isinstance(policy, SharePolicy) or RULES[case.rules].rounds:
        return False
    changed = ("ideal", "drop_unallocated", "preemption_overhead_s", "min_realloc_interval_s")
    return not share_traits(policy).idle_ok and not any(rounds.get(name) for name in changed)


class _Spans:
    """Intervals of a run as arrays, (jobs,) and (intervals,)."""

    def __init__(self, case: Case, result: Result) -> None:
        jobs = result.jobs
        row = {job_id: number for number, job_id in enumerate(jobs["job_id"])}
        spans = result.intervals
        self.ids = jobs["job_id"].tolist()
        self.submit: Floats = jobs["submit_time"].to_numpy(float)
        self.end: Floats = jobs["end_time"].to_numpy(float)
        self.demand: Floats = jobs["num_gpus"].to_numpy(float)
        self.start_of: Floats = spans["start"].to_numpy(float)
        self.end_of: Floats = spans["end"].to_numpy(float)
        self.gpus_of: Floats = spans["gpus"].to_numpy(float)
        self.job_of = np.array([row[job_id] for job_id in spans["job_id"]])
        cluster = Cluster.parse(case.cluster)
        self.num_gpus = cluster.num_gpus
        self.capacity: dict[str | None, float] = {None: float(cluster.num_gpus)}
        self.type_of = np.array([None] * len(spans), object)
        if "gpu_type" in spans and spans["gpu_type"].notna().all():
            self.capacity = {name: float(count) for name, count in cluster.gpu_types.items()}
            self.type_of = spans["gpu_type"].to_numpy(object)
        self.has_nodes = "nodes" in spans
        self.has_trace_clock = RULES[case.rules].trace_clock
        # rounding to ticks moves instants by up to half a tick
        ticks_per_second = RULES[case.rules].ticks_per_second
        tick_s = 1 / ticks_per_second if ticks_per_second > 1 else 0.0
        self.instant_s = max(tick_s, _INSTANT * float(self.end.max()))

    def instants(self) -> Floats:
        """Middle of each time between two events (s)."""
        events = np.unique(np.concatenate([self.submit, self.start_of, self.end_of]))
        is_apart = np.diff(events) > 2 * self.instant_s
        middle: Floats = (events[:-1] + events[1:])[is_apart] / 2
        return middle

    def round_starts(self, round_s: float) -> Floats:
        """Begin of each round (s), counted from the start of the clock."""
        first = 0.0 if self.has_trace_clock else float(self.submit.min())
        count = int(np.ceil((self.end.max() - first) / round_s))
        begins: Floats = first + round_s * np.arange(count)
        return begins

    def waiting_gang(self, times: Floats, decided: Floats | None = None) -> str:
        """A job that waits although a GPU type has enough idle GPUs, at one of the times (s).

        A job counts if it was submitted by the decision (``decided``, by default ``times``).
        """
        if self.has_nodes:
            # whether a gang fits also depends on the placement rule
            return ""
        known = times if decided is None else decided
        idle = [
            capacity - self._held(times, self.type_of == name)
            for name, capacity in self.capacity.items()
        ]
        most_idle = np.max(idle, axis=0)
        for job, job_id in enumerate(self.ids):
            holds = self._held(times, self.job_of == job) > _ROUNDING_GPUS
            is_present = (self.submit[job] <= known) & (times < self.end[job])
            fits = is_present & ~holds & (self.demand[job] <= most_idle + _ROUNDING_GPUS)
            if fits.any():
                instant = int(fits.argmax())
                return (
                    f"job {job_id!r} waits for {self.demand[job]:g} GPUs at "
                    f"{times[instant]:g} s, and {most_idle[instant]:g} are idle"
                )
        return ""

    def _held(self, times: Floats, chosen: Flags | slice = slice(None)) -> Floats:
        """GPUs held in the chosen intervals, all by default, (times,)."""
        gpus = self.gpus_of[chosen]
        begun = _sum_until(times, self.start_of[chosen], gpus)
        return begun - _sum_until(times, self.end_of[chosen], gpus)

    def unmet_demand(self) -> str:
        """An instant at which jobs hold fewer GPUs than the cluster and their demands allow."""
        times = self.instants()
        held = self._held(times)
        present = _sum_until(times, self.submit, self.demand)
        present -= _sum_until(times, self.end, self.demand)
        wanted = np.minimum(self.num_gpus, present)
        is_short = held < wanted - _ROUNDING_GPUS
        if is_short.any():
            instant = int(is_short.argmax())
            return (
                f"jobs hold {held[instant]:g} GPUs at {times[instant]:g} s and could use "
                f"{wanted[instant]:g}"
            )
        return ""


def _sum_until(times: Floats, instants: Floats, amounts: Floats) -> Floats:
    """Sum of the amounts whose instant is at most each time, (times,)."""
    order = np.argsort(instants)
    sums = np.append(0.0, np.cumsum(amounts[order]))
    total: Floats = sums[np.searchsorted(instants[order], times, side="right")]
    return total
