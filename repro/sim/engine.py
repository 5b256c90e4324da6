"""The engine: SimPy keeps the time, one scheduler process wakes, advances, asks and applies."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

import numpy as np
import pandas as pd
import simpy

from repro.cluster.spec import Cluster
from repro.errors import PolicyError, TraceError
from repro.placement.base import Placement
from repro.placement.by_type import by_type
from repro.policies.base import Order, Policy
from repro.sim.decision import Run
from repro.sim.drivers import Driver, driver_for
from repro.sim.jobs import JobTable
from repro.sim.records import Intervals, Nodes, Result, collect
from repro.sim.rounds import RoundMechanism
from repro.sim.view import View


class Performance(Protocol):
    """How fast jobs run on what they hold."""

    def rates(self, table: JobTable, run: Run, nodes: Nodes) -> Sequence[float]:
        """Return work per second of every member of ``run``."""


class Overhead(Protocol):
    """What preemption costs."""

    def pause_s(self, table: JobTable, job: int) -> float:
        """Return the seconds a preempted job keeps its GPUs to checkpoint."""

    def resume_s(self, table: JobTable, job: int) -> float:
        """Return the seconds a resumed job holds its GPUs before it progresses."""


class Engine:
    """One run. Use `repro.simulate` unless you add SimPy processes of your own.

    Parameters
    ----------
    trace : DataFrame
        Validated trace.
    cluster : Cluster
        The cluster.
    policy : Policy
        With every rule resolved (`Policy.under`).
    placement : Placement
        Where gangs go.
    rng : numpy.random.Generator
        For placements that draw.
    perf, overhead : optional
        Performance model and preemption costs; None: nominal speed, free preemption.
    interval : float, optional
        Decide only at multiples of this many seconds; None: at every event.
    whole_seconds, file_ties : bool
        Time base and tie order, see `JobTable`.
    rounds : dict, optional
        Settings of the `RoundMechanism` for policies that return `Shares`.
    """

    def __init__(
        self,
        trace: pd.DataFrame,
        cluster: Cluster,
        policy: Policy,
        placement: Placement,
        rng: np.random.Generator,
        *,
        perf: Performance | None = None,
        overhead: Overhead | None = None,
        interval: float | None = None,
        whole_seconds: bool = False,
        file_ties: bool = False,
        rounds: dict[str, Any] | None = None,
    ) -> None:
        self.table = JobTable(trace, whole_seconds=whole_seconds, file_ties=file_ties)
        self.cluster, self.policy, self.perf, self.overhead = cluster, policy, perf, overhead
        self.interval = interval
        self.env = simpy.Environment()
        self.placer = placement.bind(cluster, rng)
        self._typed = {} if isinstance(policy, Order) else by_type(placement, cluster, rng)
        self.view = View(self.table, cluster, policy.needs, policy.name)
        self.intervals = Intervals(self.placer.tracks_nodes, bool(cluster.gpu_types))
        mechanism = RoundMechanism(self.table, cluster, policy.name, **rounds) if rounds else None
        self.driver: Driver = driver_for(
            self.table, policy, self.view, self.placer, self._take, mechanism
        )
        self.overhead_s = 0.0
        self._finish: list[tuple[float, int, int]] = []
        self._epoch = [0] * self.table.count
        self._nodes: dict[int, Nodes] = {}
        self._groups: dict[int, Run] = {}
        self._draining: list[tuple[float, float]] = []
        self._busy = 0.0
        self._next = 0
        self._done = 0
        self._poked: simpy.Event | None = None
        self._check_fits()

    def _check_fits(self) -> None:
        never = isinstance(self.policy, Order) and not self.policy.preemptive
        limit = self.cluster.num_gpus
        for job, gpus in enumerate(self.table.gpus):
            if gpus > limit or (never and not self.placer.possible(gpus)):
                raise TraceError(
                    f"job {self.table.ids[job]!r} asks for {gpus} GPUs and can never run on "
                    f"{self.cluster} ({limit} GPUs"
                    f"{', under this placement' if gpus <= limit else ''}); use a larger cluster "
                    f"or drop the job"
                )

    # the clock ---------------------------------------------------------------------------------

    def run(self, processes: Sequence[Callable[[Engine], Generator[Any, Any, Any]]] = ()) -> None:
        """Run until every job has finished.

        Parameters
        ----------
        processes : sequence of callables
            Each is called with the engine and returns a SimPy process generator that is added to
            the same environment; it may call `poke` to force a decision now.
        """
        if processes:
            self._poked = self.env.event()
        scheduler = self.env.process(self._scheduler())
        for process in processes:
            self.env.process(process(self))
        try:
            self.env.run(until=scheduler)
        except RuntimeError as error:
            if isinstance(error.__context__, simpy.core.EmptySchedule):
                raise self._waiting_for_ever() from None
            raise

    def _waiting_for_ever(self) -> PolicyError:
        active = self.table.active
        return PolicyError(
            f"policy {self.policy.name!r} leaves {len(active)} jobs waiting for ever at "
            f"{self.view.now:g} s, first {self.table.ids[next(iter(active))]!r}; every decision "
            f"must run a job or name a wake-up"
        )

    def poke(self) -> None:
        """Wake the scheduler at the present instant (for added processes)."""
        if self._poked is not None and not self._poked.triggered:
            self._poked.succeed()

    def _scheduler(self) -> Generator[Any, Any, None]:
        table, finish, epoch = self.table, self._finish, self._epoch
        driver, view, submit, count = self.driver, self.view, self.table.submit, self.table.count
        active, interval, polled = table.active, self.interval, self.policy.polled()
        dirty = False
        while self._done < count:
            while finish and epoch[finish[0][1]] != finish[0][2]:
                heappop(finish)
            target = finish[0][0] if finish and not polled else math.inf
            if self._next < count and submit[self._next] < target:
                target = submit[self._next]
            target = min(target, self._decision_time(dirty))
            if target == math.inf and self._poked is None:
                raise self._waiting_for_ever()
            now = yield from self._sleep(target)
            view.now = now
            while finish and finish[0][0] <= now:
                _, job, stamp = heappop(finish)
                if epoch[job] == stamp:
                    self._complete(job, now)
                    dirty = True
            while self._next < count and submit[self._next] <= now:
                job = self._next
                self._next += 1
                active[job] = None
                driver.arrive(job, now)
                dirty = True
            if interval is None or _on_grid(now, interval):
                self._apply(*driver.step(now), now)
                dirty = False

    def _sleep(self, target: float) -> Generator[Any, Any, float]:
        env = self.env
        if self._poked is None:
            # the clock adds delays, which may miss the target by one rounding; the target counts
            yield env.timeout(target - env.now if target > env.now else 0.0)
            return target
        waits = [self._poked]
        if target < math.inf:
            waits.append(env.timeout(max(0.0, target - env.now)))
        yield env.any_of(waits)
        if self._poked.triggered:
            self._poked = env.event()
            return min(target, env.now)
        return target

    def _decision_time(self, dirty: bool) -> float:
        now = self.view.now
        wake = self.driver.wake(now)
        if self.interval is None:
            # a rule may ask for an instant that rounding puts at or before now: take the next one
            return wake if wake > now else math.nextafter(now, math.inf)
        if dirty or self.driver.waits or wake < math.inf:
            return (math.floor(now / self.interval + 1e-9) + 1) * self.interval
        return math.inf

    # applying decisions ------------------------------------------------------------------------

    def _apply(self, stops: list[int], starts: list[Run], now: float) -> None:
        table = self.table
        if stops:
            again = {job for run in starts for job in run.jobs}
            for job in stops:
                moved = job in again
                self._release(job, now, pause=not moved)
                if not moved:
                    table.preemptions[job] += 1
        for run in starts:
            self._start(run, now)

    def _take(self, job: int) -> None:
        """Place a job at once (policies whose next choice depends on where this one went)."""
        table = self.table
        self._nodes[job] = self.placer.take(job, table.gpus[job], table.models[job])

    def _start(self, run: Run, now: float) -> None:
        table, leader = self.table, run.jobs[0]
        nodes: Nodes = ()
        if not run.parts and run.gpus == int(run.gpus):
            if leader not in self._nodes:
                self._nodes[leader] = self._place(run)
            nodes = self._nodes[leader]
        rates: Sequence[float]
        if self.perf is not None:
            rates = self.perf.rates(table, run, nodes)
        elif len(run.jobs) > 1:
            raise PolicyError(
                f"policy {self.policy.name!r} groups jobs; simulate it with a performance model "
                f"(perf=...) that says how fast the members run"
            )
        else:
            rates = (run.gpus / table.gpus[leader],)
        delay = self._drain_delay(run.gpus, now) if self._draining else 0.0
        self._busy += run.gpus
        for job, rate in zip(run.jobs, rates, strict=True):
            begin = now + delay
            if self.overhead is not None and table.first_start[job] < math.inf:
                resume = self.overhead.resume_s(table, job)
                self.overhead_s += resume
                begin += resume
            if not rate > 0:
                raise PolicyError(
                    f"policy {self.policy.name!r} runs job {table.ids[job]!r} at rate {rate:g}"
                )
            table.first_start[job] = min(table.first_start[job], now)
            table.running[job] = True
            table.hold[job], table.held[job] = now, run.gpus
            table.since[job], table.rate[job], table.clean[job] = begin, rate, now + delay
            self._groups[job] = run
            heappush(self._finish, (begin + table.left[job] / rate, job, self._epoch[job]))
            if rate != 1.0 or begin > now:
                self.driver.rate_changed(job, now)

    def _place(self, run: Run) -> Nodes:
        placer, leader = self._typed.get(run.gpu_type, self.placer), run.jobs[0]
        if not run.tasks:
            return placer.take(leader, int(run.gpus), self.table.models[leader])
        if len(run.tasks) != run.gpus:
            raise PolicyError(
                f"policy {self.policy.name!r} names nodes for {len(run.tasks)} tasks of job "
                f"{self.table.ids[leader]!r} that holds {run.gpus:g} GPUs; one GPU per task"
            )
        return placer.claim(leader, run.tasks)

    def _release(self, job: int, now: float, *, pause: bool) -> None:
        """Take the GPUs of a job away and book its progress."""
        table, run = self.table, self._groups[job]
        begun = now >= table.since[job]
        table.left[job] = max(0.0, table.remaining(job, now))
        self._book(job, now)
        if pause and self.overhead is not None:
            # a job that has not begun has nothing to checkpoint, and no more to load
            until = now + self.overhead.pause_s(table, job) if begun else max(now, table.clean[job])
            self.overhead_s += until - now if begun else until - table.since[job]
            self._draining.append((until, table.held[job] / len(run.jobs)))

    def _complete(self, job: int, now: float) -> None:
        table = self.table
        table.left[job] = 0.0
        self.driver.finish(job, now)
        self._book(job, now)
        table.end[job] = now
        del table.active[job]
        self._done += 1

    def _book(self, job: int, now: float) -> None:
        """Close the interval of a job that stops holding GPUs."""
        table = self.table
        run = self._groups.pop(job)
        start, held = table.hold[job], table.held[job]
        nodes = self._nodes.get(run.jobs[0], ())
        share = held / len(run.jobs)
        self.intervals.add(job, start, now, share, table.rate[job], nodes, run.gpu_type)
        table.seconds[job] += now - start
        table.service[job] += (now - start) * held
        table.running[job] = False
        table.last_stop[job] = now
        self._epoch[job] += 1
        if not any(member in self._groups for member in run.jobs):
            self._busy -= held
            if run.jobs[0] in self._nodes:
                del self._nodes[run.jobs[0]]
                self._typed.get(run.gpu_type, self.placer).give_back(run.jobs[0])

    def _drain_delay(self, gpus: float, now: float) -> float:
        """Return how long a gang waits for GPUs whose former holders still checkpoint."""
        draining = [entry for entry in self._draining if entry[0] > now]
        clean = self.cluster.num_gpus - self._busy - sum(held for _, held in draining)
        missing = gpus - max(0.0, clean)
        heapify(draining)
        until = now
        while missing > 1e-9 and draining:
            until, held = heappop(draining)
            if held > missing:
                heappush(draining, (until, held - missing))
            missing -= held
        self._draining = draining
        return until - now

    def result(self, meta: dict[str, Any]) -> Result:
        """Return the records of the finished run."""
        return collect(
            self.table,
            self.intervals,
            self.table.positions,
            meta | {"num_gpus": self.cluster.num_gpus, "overhead_s": self.overhead_s},
        )


def _on_grid(now: float, interval: float) -> bool:
    return abs(now / interval - round(now / interval)) < 1e-9
