"""The event loop: SimPy keeps the time, and a scheduler process handles one event after another."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import simpy

from repro.base.errors import ParamError
from repro.engine.checks import check_failures
from repro.engine.event_times import EventTimes
from repro.engine.run_errors import naming_the_policy, never_ends
from repro.engine.run_settings import Process
from repro.engine.setup import Setup


class Engine:
    """One simulation, event by event. Added processes receive the Engine.

    Parameters
    ----------
    setup : Setup
        Jobs, cluster, policy and placement of the simulation, before its first event.
    """

    def __init__(self, setup: Setup) -> None:
        self.env = simpy.Environment()
        self.policy = setup.policy
        self.settings = setup.settings
        self.table = setup.table
        self.view = setup.view
        self.driver = setup.driver
        self.holdings = setup.holdings
        self._refused_gang = setup.refused_gang
        self._times = EventTimes.of(setup.policy, setup.settings)
        #: jobs that the simulation waits for (None: all jobs), and the number of them unfinished
        self._awaited = setup.awaited
        self._unfinished = self.table.count if self._awaited is None else len(self._awaited)
        overhead = setup.settings.overhead
        #: whether a decision restarts all jobs, so that no decision is made without a reason
        self._restarts_on_change = overhead is not None and overhead.restarts_on_change
        #: event of `poke`, for added processes
        self._poked = self.env.event() if self.settings.added_processes else None

    def run(self) -> None:
        """Simulate until all awaited jobs have finished, or until the stop time."""
        scheduler = self.env.process(self._scheduler())
        for process in self.settings.added_processes:
            self.env.process(self._generator(process))
        with naming_the_policy(self.policy, self.view, self.table):
            try:
                self.env.run(until=scheduler)
            except RuntimeError as error:
                if isinstance(error.__context__, simpy.core.EmptySchedule):
                    raise self._never_ends() from None
                raise

    def _generator(self, process: Process) -> Generator[Any, Any, Any]:
        """Generator that an added process returns; any other value is refused."""
        generator = process(self)
        if not isinstance(generator, Generator):
            name = getattr(process, "__name__", repr(process))
            raise ParamError(
                f"processes: {name} returned {generator!r:.60}, not a generator; a process yields "
                "events, such as engine.env.timeout(60)"
            )
        return generator

    def _scheduler(self) -> Generator[Any, Any, None]:
        """Event loop: sleep until the next event, bring the job table up to it, decide."""
        table = self.table
        view = self.view
        driver = self.driver
        holdings = self.holdings
        times = self._times
        submit = table.submit
        completion_heap = holdings.completions.heap
        stop_time = self.settings.stop_time
        undecided = False
        while self._unfinished:
            completion = times.noticed_at(holdings.completions.earliest(), view.now)
            tie_window_s = times.tie_window_s(completion)
            event = completion
            if table.arrived < table.count and submit[table.arrived] <= completion + tie_window_s:
                event = submit[table.arrived]
            if holdings.renewals is not None:
                event = min(event, holdings.renewals.next_instant())
            next_decision = self._next_decision(undecided)
            # One call may simulate several rounds. Arrivals and completions inside them are handled
            # at the next decision.
            may_be_late = driver.rounds is not None and driver.rounds.simulates_many_rounds
            is_before_decision = event < next_decision < math.inf and next_decision <= stop_time
            is_late = may_be_late and is_before_decision
            instant = next_decision if is_late else min(event, next_decision)
            # No event is left and no job progresses, so failures change nothing. Only a process of
            # the caller may still wake the policy.
            if instant == math.inf and not self.settings.processes:
                raise self._never_ends()
            if instant > stop_time:
                return
            now = view.now = yield from self._sleep(instant)
            # At the earliest completion, or at an arrival that ties with it, completions up to that
            # completion are due. At other events, `completion_factor` decides which are due.
            is_tie = abs(completion - now) <= tie_window_s
            due = completion if is_tie else now * times.completion_factor
            if completion_heap and completion_heap[0][0] <= due:
                undecided = self._complete(due, now, is_late) or undecided
            if holdings.renewals is not None:
                for job in holdings.renew_rates(now):
                    driver.rate_changed(job, now)
            if table.arrived < table.count and submit[table.arrived] <= now * times.arrival_factor:
                self._admit(now * times.arrival_factor, now)
                undecided = True
            if times.decides_at(now):
                self._decide(now)
                undecided = False

    def _next_decision(self, undecided: bool) -> float:
        """Instant (s) of the next decision if no event happens before.

        ``undecided`` says that events have happened since the last decision.
        """
        now = self.view.now
        wake = self.driver.wake(now)
        if self._times.interval is None:
            # rounding may put a wake-up at or before now
            return wake if wake > now else math.nextafter(now, math.inf)
        polls_completions = self._times.poll_s > 0 and bool(self.holdings.runs)
        if self._restarts_on_change and not undecided and wake > now:
            # that jobs wait is no reason to restart all jobs
            return self._times.first_decision(wake)
        if undecided or polls_completions or self.driver.waits or wake < math.inf:
            return self._times.next_decision(now)
        return math.inf

    def _sleep(self, instant: float) -> Generator[Any, Any, float]:
        """Wait until an instant or a `poke`, and return the present time (s)."""
        env = self.env
        if self._poked is None:
            # SimPy adds delays, which may miss the instant by a rounding error
            yield env.timeout(instant - env.now if instant > env.now else 0.0)
            return instant
        events = [self._poked]
        if instant < math.inf:
            events.append(env.timeout(max(0.0, instant - env.now)))
        yield env.any_of(events)
        if self._poked.triggered:
            self._poked = env.event()
            return min(instant, env.now)
        return instant

    def _complete(self, due: float, now: float, is_late: bool) -> bool:
        """End the jobs whose completion is predicted up to ``due`` (s); True if a job ended.

        With ``is_late`` they end at the predicted instant, otherwise now.
        """
        completed = False
        for predicted, job in self.holdings.completions.due(due):
            end = predicted if is_late else now
            self.driver.finish(job, end)
            self.holdings.complete(job, end)
            if self._awaited is None or job in self._awaited:
                self._unfinished -= 1
            completed = True
        return completed

    def _admit(self, due: float, now: float) -> None:
        """Add the jobs that are submitted up to ``due`` (s)."""
        table = self.table
        while table.arrived < table.count and table.submit[table.arrived] <= due:
            job = table.arrived
            table.arrived = job + 1
            table.active[job] = None
            self.driver.arrive(job, now)

    def _decide(self, now: float) -> None:
        """Let the policy decide, carry the decision out, and predict completions."""
        holdings = self.holdings
        driver = self.driver
        # set if a start is charged in every interval between decisions; it then also records
        # progress and predicts completions
        interval_starts = holdings.interval_starts
        if interval_starts is not None:
            holdings.settle(now)
        stops, starts = driver.step(now)
        rounds = driver.rounds
        for job in holdings.apply(stops, starts, now):
            driver.rate_changed(job, now)
        if rounds is not None and rounds.ends is not None:
            holdings.completions.replace(rounds.ends)
            rounds.ends = None
        if interval_starts is not None:
            times = self._times
            # several completions may come before the next decision
            predict_all = times.interval is not None or times.poll_s > 0
            order = driver.running()
            ends = interval_starts.predicted(now, order, times.tie_rel, predict_all=predict_all)
            holdings.completions.replace(ends)

    def _never_ends(self) -> Exception:
        """Error of a simulation without future events although jobs are unfinished."""
        now = self.view.now
        refusal = self._refused_gang(now)
        return refusal or never_ends(self.policy.name, now, self.table, self.holdings.runs)

    # for added processes -------------------------------------------------------------------------

    def poke(self) -> None:
        """Let the policy decide at the present instant."""
        if self._poked is not None and not self._poked.triggered:
            self._poked.succeed()

    def fail(self, node: int, checkpoint_s: float, restart_s: float = 0.0) -> list[object]:
        """Let a node fail now: its jobs lose the work since their last checkpoint.

        The jobs keep their GPUs until the policy decides otherwise, which it may do at once.
        ``overhead_s`` grows by the seconds of lost work and of restarts.

        Parameters
        ----------
        node : int
            Number of the node, from 0.
        checkpoint_s : float
            Seconds between checkpoints, counted from the instant at which a job begins to progress
            after a start or restart, or from a later change of its rate.
        restart_s : float
            Seconds of the restart. A job that still loads or restarts does so first.

        Returns
        -------
        list of object
            Ids of the jobs on the node.

        Raises
        ------
        ParamError
            If the node does not exist, or a time is out of range. If the placement only counts
            GPUs, or jobs pay a start in every interval. Also in rounds of whole steps and in ideal
            execution.
        """
        now = self.view.now = self.env.now
        holdings = self.holdings
        rounds = self.driver.rounds
        check_failures(holdings, None if rounds is None else rounds.settings)
        _check_failure(node, holdings.gang_nodes.num_nodes, checkpoint_s, restart_s)
        hosts = {job for job in holdings.runs if node in dict(holdings.nodes(job))}
        # a gang that only shares GPUs has no nodes of its own, and fails with its hosts
        jobs = [
            job
            for job, run in holdings.runs.items()
            if job in hosts or not hosts.isdisjoint(run.hosts)
        ]
        # a job that waits for the rest of its GPUs has no progress to lose
        progressing = [job for job in jobs if not holdings.runs[job].waits]
        holdings.set_back(progressing, now, checkpoint_s, restart_s)
        for job in progressing:
            self.driver.rate_changed(job, now)
        self.poke()
        return [self.table.ids[job] for job in jobs]


def _check_failure(node: int, num_nodes: int, checkpoint_s: float, restart_s: float) -> None:
    """Raise ParamError if a node does not exist, or a time of a failure is out of range."""
    if node not in range(num_nodes):
        raise ParamError(f"node is {node!r}; give a whole number from 0 to {num_nodes - 1}")
    if not checkpoint_s > 0:
        raise ParamError(f"checkpoint_s is {checkpoint_s!r}; give seconds above 0")
    if not 0 <= restart_s < math.inf:
        raise ParamError(f"restart_s is {restart_s!r}; give finite seconds of 0 or more")
