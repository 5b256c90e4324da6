"""The engine: SimPy keeps the time, one scheduler process wakes, advances, asks and applies."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from heapq import heappop
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import simpy

from repro.base.errors import ParamError, PolicyError, ReproError, TraceError
from repro.base.typing import Flags
from repro.engine.holdings import Holdings, RunSettings, no_renewals
from repro.engine.select.ranked import RankedDriver
from repro.engine.whole_decisions import DecidedDriver
from repro.model.cluster.spec import Cluster, gpus_by_type
from repro.model.elastic import SAME_INSTANT, Elastic
from repro.model.jobs import JobTable
from repro.model.performance import Curves, Renewing
from repro.model.policy import Order, Policy, speaks_for
from repro.model.records import Result, collect
from repro.model.speeds import Speeds
from repro.model.view import View
from repro.placement.base import Placement
from repro.placement.by_type import by_type

if TYPE_CHECKING:
    from repro.engine.rounds.mechanism import RoundMechanism

#: Decisions of one run at most, as far as its interval, rounds or quantum tell beforehand.
MAX_DECISIONS = 10_000_000
#: Methods that a class with compiled loops of its own for a whole run answers for.
_DECISIONS = ("decide", "session", "completions")


class Engine:
    """One run. Use `repro.simulate`, also to add SimPy processes of your own."""

    def __init__(
        self,
        trace: pd.DataFrame,
        cluster: Cluster,
        policy: Policy,
        placement: Placement,
        settings: RunSettings,
    ) -> None:
        self.table = JobTable(trace, settings.rules)
        stop_time = settings.stop_time - self.table.clock_start_s
        settings = dataclasses.replace(settings, stop_time=stop_time)
        self.cluster = cluster
        self.policy = policy
        self.settings = settings
        self.placement = placement
        self.interval = settings.interval
        noticed = policy.completions()
        #: distances (s, relative) within which a completion and what is next to it are one event
        self._tie_s = noticed.tie_s
        self._tie_rel = settings.rules.tie_rel if noticed.tie_rel is None else noticed.tie_rel
        self._poll_s = noticed.poll_s
        #: multiple of an instant up to which completions are at that instant
        self._same_instant = SAME_INSTANT if policy.elastic else 1.0
        self.env = simpy.Environment()
        self._rng = np.random.default_rng(settings.seed)
        self._undrawn = self._rng.bit_generator.state
        self.placer = placement.bind(cluster, self._rng)
        typed = {} if isinstance(policy, Order) else by_type(placement, cluster, self._rng)
        self.speeds = Speeds(self.table, settings.perf, gpus_by_type(cluster))
        self.view = View(self.table, cluster, policy.needs, policy.name, self.speeds, settings.seed)
        self.holdings = Holdings(self.table, cluster, policy.name, self.placer, typed, settings)
        self.view.places = self.holdings
        #: more columns of the job records, and GPU-seconds held where no intervals tell
        self.columns: dict[str, Any] = {}
        self.held_s: float | None = None
        self._poked: simpy.Event | None = None
        with self._naming_the_policy():
            self.driver: RankedDriver | DecidedDriver = (
                RankedDriver(self.table, policy, self.view, self.placer, self.holdings.take)
                if isinstance(policy, Order)
                else DecidedDriver(self.table, policy, self.view, self.holdings, self._mechanism)
            )
        self._next = 0
        self._unfinished = self.table.count
        self._awaited = self._rows(settings.until)
        self._check_fits()
        if self._poll_s:
            self._check_pace("step_s", self._poll_s)
        if self.interval is not None:
            self._check_pace("interval", self.interval)
        elif isinstance(policy, Order):
            self._check_pace("quantum", policy.quantum_s())
        elif settings.rounds.ideal is None:
            # before a policy that returns shares solves its first programme
            self._check_pace("round_s", settings.rounds.round_s)

    def _mechanism(self) -> RoundMechanism:
        """Return the rounds of a policy that returned shares."""
        if self.interval is not None:
            raise ParamError(
                f"interval is {self.interval:g} s, but policy {self.policy.name!r} returns shares, "
                f"whose rounds have a length of their own; set round_s={self.interval:g} instead"
            )
        # compiled loops take longer to import than most runs without rounds
        from repro.engine.rounds.ideal import Ideal
        from repro.engine.rounds.mechanism import GridRounds
        from repro.engine.rounds.whole_steps import WholeSteps

        how = self.settings.rounds
        perf = self.settings.perf
        if isinstance(perf, Renewing):
            raise no_renewals()
        spans = self.holdings.intervals.blocks if self.settings.keep_intervals else None
        tells = self.speeds.tell_rates(perf)
        if how.ideal:
            if self.holdings.overhead is not None:
                raise ParamError(
                    "in ideal execution nobody starts or stops, so no overhead can be paid; leave "
                    "out the overhead, or choose rules without one"
                )
            return Ideal(
                self.table,
                self.speeds,
                self.policy,
                how,
                books=True,
                spans=spans,
                perf=None if tells else perf,
            )
        # whole steps alone do not need rates
        tells = tells or (how.whole_steps and spans is None)
        return (WholeSteps if how.whole_steps else GridRounds)(
            self.table,
            self.speeds,
            self.policy,
            how,
            seed=self.settings.seed,
            spans=spans,
            books=tells and self.holdings.light and self._poked is None,
        )

    def _check_fits(self) -> None:
        never = isinstance(self.policy, Order) and not self.policy.preemptive
        limit = self.cluster.num_gpus
        if not isinstance(self.policy, Order) and not self.policy.elastic:
            # what a policy decides is a gang on GPUs of one type
            limit = max(gpus_by_type(self.cluster).values(), default=limit)
        one_type = " of one type" if limit < self.cluster.num_gpus else ""
        for job, gpus in enumerate(self.table.gpus):
            # one of divisible GPUs just gets less
            if (gpus > limit and not self.policy.elastic) or (
                never and not self.placer.possible(gpus)
            ):
                raise TraceError(
                    f"job {self.table.ids[job]!r} asks for {gpus} GPUs and can never run on "
                    f"{self.cluster} ({limit} GPUs{one_type}"
                    f"{', under this placement' if gpus <= limit else ''}); use a larger cluster "
                    f"or drop the job"
                )

    @property
    def draws(self) -> bool:
        """Whether placement, policy, rounds or a choice of predictions drew from the run's seed."""
        drawn = self._rng.bit_generator.state != self._undrawn or self.view.seed_read
        drawn = drawn or 0 < (self.settings.predict or 0) < self.table.count
        return drawn or (self.driver.rounds is not None and self.driver.rounds.shuffles)

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
        """Return the row numbers of the jobs awaited; None: all jobs."""
        if until is None:
            return None
        row = {job: number for number, job in enumerate(self.table.ids)}
        try:
            return {row[job] for job in until}
        except (KeyError, TypeError) as error:
            raise ParamError(f"until names job {error}, which is not in the trace") from None

    # the clock ---------------------------------------------------------------------------------

    def run(self, processes: Sequence[Callable[[Engine], Generator[Any, Any, Any]]] = ()) -> None:
        """Run until every job has finished.

        Each of ``processes`` is called with the engine and returns a SimPy process generator that
        is added to the same environment; it may call `fail`, or `poke` to force a decision now.
        """
        if not processes and self._played():
            return
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

    def _played(self) -> bool:
        """Simulate the run in compiled loops, if its decisions need nothing but numbers."""
        holdings = self.holdings
        driver = self.driver
        nominal = holdings.perf is None and holdings.overhead is None and self.interval is None
        nominal = nominal and not self.placer.tracks_nodes
        if not isinstance(driver, RankedDriver):
            return (nominal and self._play_alone()) or (not self.undivided() and self._divide())
        steady = driver.steady
        if steady is None or not nominal or self._tie_s:
            return False
        from repro.engine.select.whole_run import play

        holdings.places = True
        play(
            self.table,
            steady,
            self.cluster.num_gpus,
            driver.quantum,
            holdings.intervals,
            self.settings,
            self._awaited,
        )
        return True

    def _play_alone(self) -> bool:
        """Simulate the run in the compiled loops of the policy, if it has any."""
        settings = self.settings
        policy = self.policy
        if self._awaited is not None or settings.stop_time < math.inf:
            return False
        player = policy.player(self.cluster)
        if player is None or not speaks_for(policy, "player", _DECISIONS):
            return False
        self.holdings.places = True
        player(
            self.table, self.cluster, self.holdings.intervals if settings.keep_intervals else None
        )
        return True

    def undivided(self, processes: Sequence[object] = ()) -> str:
        """Say why the run cannot go by the compiled clock of divisible GPUs, if it cannot."""
        settings = self.settings
        policy = self.policy
        if not isinstance(policy, Elastic) or policy.rule is None:
            return f"policy {policy.name!r} has no compiled rule to divide GPUs by"
        hindrances = {
            "processes are added": bool(processes),
            "starts cost time": settings.overhead is not None,
            "decisions are made at intervals": self.interval is not None,
            "the placement tells nodes apart": self.placer.tracks_nodes,
            "the run ends before all jobs do": (
                self._awaited is not None or settings.stop_time < math.inf
            ),
            "the performance model knows no speed-up curves": not isinstance(
                settings.perf, Curves | None
            ),
            "rates change during a run": isinstance(settings.perf, Renewing),
        }
        return next((why for why, so in hindrances.items() if so), "")

    def _divide(self) -> bool:
        """Simulate a run of divisible GPUs by the compiled clock."""
        from repro.engine.elastic import simulate_divided

        settings = self.settings
        policy = cast(Elastic, self.policy)
        with self._naming_the_policy():
            self.columns, self.held_s = simulate_divided(
                self.table,
                policy,
                self.view,
                self.holdings.intervals if settings.keep_intervals else None,
                grid=settings.rules.grid,
                wanted=sample(self.table.count, settings.predict, settings.seed),
            )
        return True

    def poke(self) -> None:
        """Wake the scheduler at the present instant (for added processes)."""
        if self._poked is not None and not self._poked.triggered:
            self._poked.succeed()

    def fail(self, node: int, checkpoint_s: float, restart_s: float = 0.0) -> list[object]:
        """Let a node fail now: its jobs go on from their last checkpoint (for added processes).

        The jobs, whose ids are returned, keep their GPUs until the policy, which decides at once,
        says otherwise. Checkpoints are counted from each start or restart, ``restart_s`` is until
        the jobs progress again. Seconds of work done twice and of restarts are added to
        ``overhead_s``. The placement has to tell nodes apart.
        """
        now = self.view.now = self.env.now
        rounds = self.driver.rounds
        foreseen = rounds is not None and rounds.foresees
        jobs = self.holdings.set_back(node, now, checkpoint_s, restart_s, foreseen)
        for job in jobs:
            self.driver.rate_changed(job, now)
        self.poke()
        return [self.table.ids[job] for job in jobs]

    @contextlib.contextmanager
    def _naming_the_policy(self) -> Iterator[None]:
        """Let an error inside the code of the policy say whose it is."""
        try:
            yield
        except ReproError:
            raise
        except Exception as error:
            own = {cls.__module__ for cls in type(self.policy).__mro__ if issubclass(cls, Policy)}
            own.discard(Policy.__module__)
            # SimPy raises a copy of what a process raised
            cause = error.__cause__ or error
            frames = [
                (frame, line)
                for frame, line in traceback.walk_tb(cause.__traceback__)
                if frame.f_globals.get("__name__") in own
            ]
            if not frames:
                raise
            frame, line = frames[-1]
            job = frame.f_locals.get("job")
            ids = self.table.ids
            code = frame.f_code
            about = f", job {ids[job]!r}" if isinstance(job, int) and 0 <= job < len(ids) else ""
            raise PolicyError(
                f"policy {self.policy.name!r} fails at {self.view.now:g} s{about}: "
                f"{type(cause).__name__}: {cause} ({Path(code.co_filename).name}:{line} in "
                f"{code.co_name})"
            ) from error

    def _waiting_for_ever(self) -> PolicyError:
        active = self.table.active
        if half := [job for job, run in self.holdings.runs.items() if run.waits]:
            gpus = sum(self.holdings.runs[job].gpus for job in half)
            return PolicyError(
                f"policy {self.policy.name!r}: deadlock at {self.view.now:g} s; {len(half)} jobs, "
                f"first {self.table.ids[half[0]]!r}, hold {gpus:g} GPUs, each waits for more, and "
                f"none is left to run; use a policy that places whole gangs, or a larger cluster"
            )
        return PolicyError(
            f"policy {self.policy.name!r} leaves {len(active)} jobs waiting for ever at "
            f"{self.view.now:g} s, first {self.table.ids[next(iter(active))]!r}; every decision "
            f"must run a job or name a wake-up"
        )

    def _scheduler(self) -> Generator[Any, Any, None]:
        """Sleep until the next event, bring the job table up to it, decide; again and again."""
        table = self.table
        driver = self.driver
        view = self.view
        submit = self.table.submit
        interval = self.interval
        stop = self.settings.stop_time
        finish = self.holdings.finish
        arrivals_near = 1.0 + self.settings.rules.tie_rel
        dirty = False
        while self._unfinished if self._awaited is None else self._awaited:
            ends, near = self._next_completion()
            event = ends
            if self._next < table.count and submit[self._next] <= ends + near:
                event = submit[self._next]
            event = min(event, self.holdings.next_renewal())
            wake = self._decision_time(dirty)
            # a driver that simulates whole rounds can receive events late, at the round's end
            late = event < wake < math.inf and wake <= stop
            late = late and driver.rounds is not None and driver.rounds.takes_late_events
            target = wake if late else min(event, wake)
            if target == math.inf and self._poked is None:
                raise self._waiting_for_ever()
            if target > stop:
                return
            now = view.now = yield from self._sleep(target)
            # at most one completion within `near` of an arrival is processed with it
            due = ends if abs(ends - now) <= near else now * self._same_instant
            if finish and finish[0][0] <= due:
                dirty = self._complete(due, now, late) or dirty
            for job in self.holdings.renew(now):
                driver.rate_changed(job, now)
            if self._next < table.count and submit[self._next] <= now * arrivals_near:
                self._admit(now * arrivals_near, now)
                dirty = True
            if interval is None or abs(now / interval - round(now / interval)) < 1e-9:
                self._decide(now)
                dirty = False

    def _next_completion(self) -> tuple[float, float]:
        """Return the next predicted completion, and the time within which an arrival joins it."""
        finish = self.holdings.finish
        epoch = self.holdings.epoch
        while finish and epoch[finish[0][1]] != finish[0][2]:
            heappop(finish)
        if not finish or self._poll_s == math.inf:
            return math.inf, 0.0
        ends = finish[0][0]
        if self._poll_s:
            look = self.view.now + self._poll_s
            while look < ends:
                look += self._poll_s
            return look, 0.0
        return ends, max(self._tie_s, self._tie_rel * ends) if self._tie_s else 0.0

    def _complete(self, due: float, now: float, late: bool) -> bool:
        """Book the completions predicted until ``due``; tell whether there were any."""
        finish = self.holdings.finish
        epoch = self.holdings.epoch
        some = False
        while finish and finish[0][0] <= due:
            end, job, stamp = heappop(finish)
            if epoch[job] == stamp:
                ended = end if late else now
                self.driver.finish(job, ended)
                self.holdings.complete(job, ended)
                if self._awaited:
                    self._awaited.discard(job)
                self._unfinished -= 1
                some = True
        return some

    def _admit(self, due: float, now: float) -> None:
        """Book the arrivals until ``due``."""
        table = self.table
        while self._next < table.count and table.submit[self._next] <= due:
            job = self._next
            self._next = table.arrived = job + 1
            table.active[job] = None
            self.driver.arrive(job, now)

    def _decide(self, now: float) -> None:
        """Ask the driver who starts and stops, and carry it out."""
        holdings = self.holdings
        driver = self.driver
        if holdings.settles:
            holdings.settle(now)
        stops, starts = driver.step(now)
        rounds = driver.rounds
        for job in holdings.apply(stops, starts, now):
            driver.rate_changed(job, now)
        if rounds is not None and rounds.ends is not None:
            holdings.expect(rounds.ends)
            rounds.ends = None
        if holdings.settles:
            far = self.interval is not None or self._poll_s > 0
            holdings.predict_all(now, driver.running(), self._tie_rel, far=far)

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
        """Return the next instant at which a decision is due though nothing happens."""
        now = self.view.now
        wake = self.driver.wake(now)
        if self.interval is None:
            # a rule may ask for an instant that rounding puts at or before now: take the next one
            return wake if wake > now else math.nextafter(now, math.inf)
        unseen = self._poll_s and self.holdings.runs
        if dirty or unseen or self.driver.waits or wake < math.inf:
            return (math.floor(now / self.interval + 1e-9) + 1) * self.interval
        return math.inf

    def result(self, **known: Any) -> Result:
        """Return the records of the finished run; ``known`` is added to their ``meta``."""
        table = self.table
        holdings = self.holdings
        meta = {
            "policy": self.policy.name,
            "settings": repr(self.policy),
            "trace": table.frame.attrs.get("name", "trace"),
            "cluster": str(self.cluster),
            "placement": repr(self.placement),
            "num_gpus": self.cluster.num_gpus,
            "overhead_s": holdings.overhead_s,
            "held_s": self.held_s,
        }
        rounds = self.driver.rounds
        if rounds is not None and rounds.settings.gang_tries:
            self.columns["given_up"] = rounds.rule.lost >= rounds.settings.gang_tries
        result = collect(table, holdings.intervals, table.positions, meta | known)
        order = np.argsort(table.positions.to_numpy())
        return dataclasses.replace(
            result, jobs=result.jobs.assign(**{k: v[order] for k, v in self.columns.items()})
        )


def sample(jobs: int, number: int | None, seed: int) -> Flags:
    """Return which jobs are predicted: all (None), or so many drawn from a seed."""
    wanted = np.zeros(jobs, np.bool_)
    drawn = np.random.default_rng([seed, jobs]).permutation(jobs)
    wanted[drawn[:number]] = True
    return wanted
