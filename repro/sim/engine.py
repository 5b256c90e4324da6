"""The engine: SimPy keeps the time, one scheduler process wakes, advances, asks and applies."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from heapq import heappop
from typing import Any

import numpy as np
import pandas as pd
import simpy

from repro.cluster.spec import Cluster, gpus_by_type
from repro.core.jobs import JobTable
from repro.core.performance import Overhead, Performance
from repro.core.policy import Order, Policy
from repro.core.records import Result, collect
from repro.core.speeds import Speeds
from repro.core.view import View
from repro.errors import ParamError, PolicyError, ReproError, TraceError
from repro.placement.base import Placement
from repro.placement.by_type import by_type
from repro.sim.drivers import Driver, driver_for
from repro.sim.holdings import Holdings
from repro.sim.policy_fault import policy_fault
from repro.sim.rounds.mechanism import RoundMechanism
from repro.sim.rounds.settings import RoundSettings
from repro.sim.whole_decisions import DecidedDriver

#: Decisions of one run at most, as far as its interval, rounds or quantum tell beforehand.
MAX_DECISIONS = 10_000_000


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
    whole_seconds, file_ties, iterations, steps : optional
        Time base, tie order and unit of work, see `JobTable`.
    tie_rel : float
        Completions predicted within this relative distance of the earliest count as one event
        (where starts are paid in every interval).
    rounds : RoundSettings, optional
        How rounds go for policies that return `Shares`.
    seed : int
        Seed of the run, shown to policies that draw.
    until : iterable of job ids, optional
        Stop when these jobs have finished; None: when all have.
    stop_time : float
        Stop at this instant (s) at the latest.
    keep_intervals : bool
        Record the intervals in which jobs hold GPUs.
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
        iterations: float | None = None,
        steps: bool = False,
        tie_rel: float = 0.0,
        rounds: RoundSettings | None = None,
        seed: int = 0,
        until: Iterable[object] | None = None,
        stop_time: float = math.inf,
        keep_intervals: bool = True,
    ) -> None:
        self.table = JobTable(
            trace,
            whole_seconds=whole_seconds,
            file_ties=file_ties,
            iterations=iterations,
            steps=steps,
        )
        self.cluster, self.policy = cluster, policy
        self.interval, self._tie_rel = interval, tie_rel
        self.env = simpy.Environment()
        self.placer = placement.bind(cluster, rng)
        typed = {} if isinstance(policy, Order) else by_type(placement, cluster, rng)
        self.speeds = speeds = Speeds(self.table, perf, gpus_by_type(cluster))
        self.view = View(self.table, cluster, policy.needs, policy.name, speeds, seed)
        self.holdings = Holdings(
            self.table, cluster, policy.name, self.placer, typed, perf, overhead, keep_intervals
        )

        settings = rounds or RoundSettings()

        def mechanism() -> RoundMechanism:
            if interval is not None:
                raise ParamError(
                    f"interval is {interval:g} s, but policy {policy.name!r} returns shares, whose "
                    f"rounds have a length of their own; set round_s={interval:g} instead"
                )
            return RoundMechanism(
                self.table,
                speeds,
                policy.name,
                settings,
                tells_types=policy.tells_types,
                pairs_up=policy.pairs_up,
                idle_ok=policy.idle_ok,
                seed=seed,
                ahead=not keep_intervals and self.holdings.light and self._poked is None,
            )

        with self._naming_the_policy():
            self.driver: Driver = driver_for(
                self.table, policy, self.view, self.placer, self.holdings.take, mechanism
            )
        self._next = 0
        self._awaited, self._stop = self._rows(until), stop_time
        self._poked: simpy.Event | None = None
        self._check_fits()
        if interval is not None:
            self._check_pace("interval", interval)
        elif isinstance(policy, Order):
            self._check_pace("quantum", policy.quantum_s())
        elif settings.ideal is None:
            # before a policy that returns shares solves its first programme
            self._check_pace("round_s", settings.round_s)

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

    @property
    def draws(self) -> bool:
        """Whether the policy or its rounds draw from the seed of the run."""
        rounds = self.driver.rounds if isinstance(self.driver, DecidedDriver) else None
        return self.view.seed_read or (rounds is not None and rounds.shuffles)

    def _check_pace(self, name: str, seconds: float) -> None:
        """Refuse a time between decisions so short that the run would never end."""
        if seconds == math.inf:
            return
        table = self.table
        work = sum(u * s * g for u, s, g in zip(table.work, table.solo, table.gpus, strict=True))
        least = work / self.cluster.num_gpus / MAX_DECISIONS
        if seconds < least:
            raise ParamError(
                f"{name} is {seconds:g} s: the jobs keep {self.cluster} busy for "
                f"{work / self.cluster.num_gpus:,.0f} s, more than {MAX_DECISIONS:,} decisions; "
                f"give {least:.1g} s or more"
            )

    def _rows(self, until: Iterable[object] | None) -> set[int] | None:
        if until is None:
            return None
        row = {job: number for number, job in enumerate(self.table.ids)}
        try:
            return {row[job] for job in until}
        except KeyError as error:
            raise ParamError(f"until names job {error}, which is not in the trace") from None

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
            with self._naming_the_policy():
                self.env.run(until=scheduler)
        except RuntimeError as error:
            if isinstance(error.__context__, simpy.core.EmptySchedule):
                raise self._waiting_for_ever() from None
            raise

    @contextlib.contextmanager
    def _naming_the_policy(self) -> Iterator[None]:
        """Let an error inside the code of the policy say whose it is."""
        try:
            yield
        except ReproError:
            raise
        except Exception as error:
            fault = policy_fault(self.policy, error, self.view.now, self.table.ids)
            if fault is None:
                raise
            raise fault from error

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
        table, holdings = self.table, self.holdings
        finish, epoch = holdings.finish, holdings.epoch
        driver, view, submit, count = self.driver, self.view, self.table.submit, self.table.count
        awaited, left = self._awaited, count
        active, interval, polled = table.active, self.interval, self.policy.polled()
        settles, tie_s = holdings.settles, self.policy.tie_s
        tie_rel = 0.0 if self.policy.exact_ties else self._tie_rel
        arrivals_near = 1.0 + self._tie_rel
        dirty = False
        while awaited if awaited is not None else left:
            while finish and epoch[finish[0][1]] != finish[0][2]:
                heappop(finish)
            ends = target = finish[0][0] if finish and not polled else math.inf
            near = max(tie_s, tie_rel * target) if tie_s and target < math.inf else 0.0
            if self._next < count and submit[self._next] <= target + near:
                target = submit[self._next]
            wake = self._decision_time(dirty)
            # whoever plays rounds to their end need not hear at once what happens meanwhile
            late = target < wake < math.inf and wake <= self._stop and driver.patient
            target = wake if late else min(target, wake)
            if target == math.inf and self._poked is None:
                raise self._waiting_for_ever()
            if target > self._stop:
                return
            now = yield from self._sleep(target)
            view.now = now
            # an arrival takes the completion next to it along, and only that one
            due = ends if abs(ends - now) <= near else now
            while finish and finish[0][0] <= due:
                end, job, stamp = heappop(finish)
                if epoch[job] == stamp:
                    ended = end if late else now
                    driver.finish(job, ended)
                    holdings.complete(job, ended)
                    if awaited:
                        awaited.discard(job)
                    left -= 1
                    dirty = True
            while self._next < count and submit[self._next] <= now * arrivals_near:
                job = self._next
                self._next += 1
                active[job] = None
                table.arrived = self._next
                driver.arrive(job, now)
                dirty = True
            if interval is None or _on_grid(now, interval):
                if settles:
                    holdings.settle(now)
                stops, starts = driver.step(now)
                holdings.foretold = driver.foretells
                holdings.apply(stops, starts, now, driver.rate_changed)
                if holdings.foretold and (endings := driver.endings()) is not None:
                    holdings.expect(endings)
                if settles:
                    holdings.foresee(now, driver.running(), tie_rel)
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

    def result(self, meta: dict[str, Any]) -> Result:
        """Return the records of the finished run."""
        self.driver.tell()
        return collect(
            self.table,
            self.holdings.intervals,
            self.table.positions,
            meta | {"num_gpus": self.cluster.num_gpus, "overhead_s": self.holdings.overhead_s},
        )


def _on_grid(now: float, interval: float) -> bool:
    return abs(now / interval - round(now / interval)) < 1e-9
