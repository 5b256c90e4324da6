"""Many compiled runs of an order whose keys are linear in time, without a frame per run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from repro.base.compiled import CompiledFunction
from repro.base.errors import ReproError
from repro.base.typing import Flags, Floats, Ints
from repro.engine import checks
from repro.engine.compiled_runs import linear_order
from repro.engine.many_inputs import (
    JOBS_PER_CALL,
    Workload,
    columns_of,
    of_equal_length,
    prediction_factors,
)
from repro.engine.policy_answers import check_answers, linear_key_of
from repro.engine.run_settings import RunSettings
from repro.engine.select import order_batches
from repro.engine.select.order_batches import OrderBatch
from repro.engine.select.whole_run import heaps_of_slopes
from repro.engine.setup import Setup
from repro.model.cluster.spec import Cluster
from repro.model.policy import LinearKey, Order, Policy
from repro.placement import base as placement_base


class ReadsView(Exception):
    """The linear keys of an order read more of a view than the demands."""


class _Demands:
    """The part of a `View` that linear keys may read in a compiled batch: demands (GPUs)."""

    def __init__(self, widths: Floats) -> None:
        self.widths = widths

    def __getattr__(self, name: str) -> Any:
        raise ReadsView(name)


class Outcome(NamedTuple):
    """Metrics of some runs of a policy, as `Result.summary` defines them; a row is a run."""

    #: positions of trace and load
    trace: Ints
    load: Ints
    #: metric -> its value of each run
    metrics: dict[str, Any]
    #: first submission (s), (runs,)
    clock_start: Floats
    #: JCT of each job (s) in order of the trace, (runs, jobs); None unless they are kept
    jct: Floats | None


@dataclass(frozen=True)
class LinearOrder:
    """An order that compiled batches simulate, on one cluster."""

    policy: Order
    #: upper limits of the priority queues (GPU-seconds), as in `LinearKey`
    limits: tuple[float, ...]
    #: time between decisions while jobs wait (s), `Order.quantum_s`
    quantum: float
    num_gpus: int

    @classmethod
    def of(cls, policy: Policy, cluster: Cluster, trace: Workload) -> LinearOrder | None:
        """The order, or None if its runs need `repro.simulate`; ``trace`` is any of the traces."""
        # notes on a baseline or a history depend on the trace; `repro.simulate` writes them
        may_have_notes = policy.baseline is not None or hasattr(policy, "history")
        if not isinstance(policy, Order) or cluster.gpu_types or may_have_notes:
            return None
        frame = trace.at_load(1.0)
        try:
            check_answers(policy)
            settings = RunSettings(
                placement=placement_base.make(policy.placement),
                perf=policy.performance(),
                overhead=policy.overhead(),
                interval=policy.interval,
            )
            order = linear_order(Setup(frame, cluster, policy, settings))
        except ReproError:
            # `repro.simulate` raises the error of this trace
            return None
        if order is None:
            return None
        driver, linear_key = order
        return cls(policy, linear_key.limits, driver.quantum, cluster.num_gpus)

    def fits(self, duration: Floats, gpus: Floats) -> Flags:
        """Whether the runs of traces pass the checks of `repro.engine.checks`, (traces,)."""
        widest: Floats = gpus.max(axis=1)
        fits: Flags = widest <= self.num_gpus
        if self.quantum < np.inf:
            busy_s: Floats = (duration * gpus).sum(axis=1) / self.num_gpus
            # the check adds in another order, so the last digits may differ
            fits &= busy_s < checks.MAX_DECISIONS * self.quantum * (1 - 1e-9)
        return fits

    def linear_key(self, gpus: Ints) -> LinearKey:
        """Keys of the jobs of a run, by their demands."""
        view: Any = _Demands(gpus.astype(float))
        key = linear_key_of(self.policy, view)
        if key is None or key.limits != self.limits:
            raise ReadsView(self.policy.name)
        return key


def simulate_orders(
    order: LinearOrder,
    traces: Sequence[Workload],
    loads: Floats,
    workers: int,
    *,
    keep_jct: bool,
) -> Iterator[Outcome]:
    """Simulate all traces at all loads, except runs that `repro.simulate` refuses.

    Parameters
    ----------
    order : LinearOrder
        Order of the runs.
    traces : sequence of Workload
        Validated traces.
    loads : array of float, shape (loads,)
        Numbers by which submit times are divided.
    workers : int
        Number of threads. Compiled calls run at the same time.
    keep_jct : bool
        Keep the JCT of every job.
    """

    def simulate(call: _Call) -> Outcome:
        outcome = _outcome(order, traces, loads, call)
        return outcome if keep_jct else outcome._replace(jct=None)

    calls = list(_calls(order, traces, loads))
    kernel = order_batches.simulate_runs
    with ThreadPoolExecutor(workers) as pool:
        while calls and isinstance(kernel, CompiledFunction) and not kernel.is_compiled:
            # Until the loop is compiled, runs are interpreted one by one. When interpretation has
            # taken too long, the loop is compiled; see `repro.base.interpreted`.
            call = calls.pop(0)
            for run in range(len(call.trace)):
                if kernel.is_compiled:
                    calls.insert(0, call.part(slice(run, None)))
                    break
                yield simulate(call.part(slice(run, run + 1)))
        yield from map(simulate, calls) if workers == 1 else pool.map(simulate, calls)


@dataclass(frozen=True)
class _Call:
    """Runs of one compiled call, which have equally many jobs."""

    #: position of the trace and of the load of each run
    trace: Ints
    load: Ints

    def part(self, runs: slice) -> _Call:
        """Call of some of the runs."""
        return _Call(self.trace[runs], self.load[runs])


def _calls(order: LinearOrder, traces: Sequence[Workload], loads: Floats) -> Iterator[_Call]:
    """Divide the runs into compiled calls."""
    for positions in of_equal_length(traces):
        submit, duration, gpus = columns_of([traces[position] for position in positions])
        fitting = np.array(positions)[order.fits(duration, gpus)]
        load = np.tile(np.arange(len(loads)), len(fitting))
        runs = _Call(np.repeat(fitting, len(loads)), load)
        runs_per_call = max(1, JOBS_PER_CALL // submit.shape[1])
        for first in range(0, len(load), runs_per_call):
            yield runs.part(slice(first, first + runs_per_call))


def _outcome(order: LinearOrder, traces: Sequence[Workload], loads: Floats, call: _Call) -> Outcome:
    """Simulate the runs of a call."""
    traces_of_runs = [traces[position] for position in call.trace]
    submit_at_load_1, trace_duration, gpus = columns_of(traces_of_runs)
    trace_submit = submit_at_load_1 / loads[call.load][:, None]
    by_submission: Ints | None = None
    if (np.diff(trace_submit) < 0).any():
        by_submission = np.argsort(trace_submit, axis=1, kind="stable")

    def in_submission_order(values: Any) -> Any:
        if by_submission is None:
            return values
        return np.take_along_axis(values, by_submission, axis=1)

    def in_trace_order(values: Any) -> Any:
        if by_submission is None:
            return values
        original = np.empty_like(values)
        np.put_along_axis(original, by_submission, values, axis=1)
        return original

    clock_start = trace_submit.min(axis=1)
    submit = in_submission_order(trace_submit) - clock_start[:, None]
    duration = in_submission_order(trace_duration)
    demands = in_submission_order(gpus.astype(np.int64))
    prediction_factor = in_submission_order(prediction_factors(traces_of_runs))
    batch = _batch(order, submit, duration, demands, prediction_factor, clock_start)
    records = order_batches.simulate_batch(batch)
    jct = in_trace_order(records.end - submit)
    # the same operations as in `repro.model.records`, so that the last digits agree
    end_time = records.end + clock_start[:, None]
    makespan = end_time.max(axis=1) - (submit + clock_start[:, None]).min(axis=1)
    queueing = in_trace_order(records.end - submit - duration)
    median, p95, p99 = np.percentile(jct, [50, 95, 99], axis=1)
    num_jobs = np.full(len(jct), jct.shape[1])
    metrics = {
        "n_jobs": num_jobs,
        "n_finished": num_jobs,
        "avg_jct": jct.mean(axis=1),
        "median_jct": median,
        "p95_jct": p95,
        "p99_jct": p99,
        "makespan": makespan,
        "avg_queueing": queueing.mean(axis=1),
        "preemptions": records.preemptions.sum(axis=1),
        "utilisation": records.held_gpu_s / (order.num_gpus * makespan),
    }
    return Outcome(call.trace, call.load, metrics, clock_start, jct)


def _batch(
    order: LinearOrder,
    submit: Floats,
    duration: Floats,
    gpus: Ints,
    prediction_factor: Floats,
    clock_start: Floats,
) -> OrderBatch:
    """Batch of runs. A row of each array is a run, with its jobs in order of submission."""
    per_second = np.empty(submit.shape)
    per_service = np.empty(submit.shape)
    for run, demands in enumerate(gpus):
        key = order.linear_key(demands)
        per_second[run] = key.per_second
        per_service[run] = key.per_service
    slope = per_service * gpus - per_second * prediction_factor
    running_heap = np.zeros(gpus.shape, np.int64)
    num_running_heaps = 1
    if (slope != slope[0, 0]).any():
        running_heap, num_running_heaps = heaps_of_slopes(slope, order.num_gpus)
    is_demanded = np.zeros(order.num_gpus + 1, np.bool_)
    is_demanded[gpus] = True
    num_waiting_heaps = int(is_demanded.sum())
    waiting_heap = (np.cumsum(is_demanded) - 1)[gpus]
    return OrderBatch(
        submit=submit,
        duration=duration,
        gpus=gpus,
        waiting_heap=waiting_heap,
        running_heap=np.where(running_heap < 0, -1, running_heap + num_waiting_heaps),
        prediction_factor=prediction_factor,
        per_second=per_second,
        per_service=per_service,
        slope=slope,
        clock_start=clock_start,
        num_waiting_heaps=num_waiting_heaps,
        num_running_heaps=num_running_heaps,
        limits=np.array(order.limits, dtype=float),
        quantum=order.quantum,
        num_gpus=order.num_gpus,
    )
