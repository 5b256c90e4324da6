"""Drives policies that return whole decisions, or the changes to the last one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from repro.base.errors import PolicyError
from repro.engine.holdings import Holdings
from repro.model.decision import NOTHING, Run, RunSet, Shares
from repro.model.jobs import JobTable
from repro.model.policy import Policy
from repro.model.view import View

if TYPE_CHECKING:
    from repro.engine.rounds.mechanism import RoundMechanism

EPSILON_GPUS = 1e-9


class DecidedDriver:
    """Drives a policy that returns whole decisions; `Shares` go through the round mechanism."""

    def __init__(
        self,
        table: JobTable,
        policy: Policy,
        view: View,
        holdings: Holdings,
        mechanism: Callable[[], RoundMechanism],
    ) -> None:
        self.table = table
        self.policy = policy
        self.view = view
        self.decide = policy.session(view)
        self._mechanism = mechanism
        self._holdings = holdings
        self._bare: dict[int, Run] = {}
        #: jobs that hold GPUs, and perhaps some that did, in the order of the decision
        self._order: Iterable[int] = ()
        #: of a policy that returned shares
        self.rounds: RoundMechanism | None = None
        self._changed = True
        self._wake = math.inf

    @property
    def waits(self) -> bool:
        """Whether a job waits for GPUs."""
        if self.rounds:
            return bool(self.table.active)
        return len(self.table.active) > len(self._holdings.runs)

    def running(self) -> Iterable[int]:
        """Return the jobs that hold GPUs, in the order of the decision, or of arrival in rounds."""
        return self.view.running if self.rounds else self._order

    def wake(self, now: float) -> float:
        """Return the instant the policy asked for, or the next round."""
        if self.rounds and self.table.active:
            return min(self._wake, self.rounds.next_boundary(now))
        return self._wake

    def arrive(self, job: int, now: float) -> None:
        """React to an arrival."""
        self._changed = True
        if self.rounds:
            self.rounds.arrive(job)

    def finish(self, job: int, now: float) -> None:
        """React to a completion."""
        self.view.finished.append(job)
        self._bare.pop(job, None)
        self._changed = True
        if self.rounds:
            self.rounds.finish(job, now)

    def rate_changed(self, job: int, now: float) -> None:
        """Do nothing: the policy is asked anew at every event."""

    def step(self, now: float) -> tuple[list[int], list[Run]]:
        """Ask the policy and return what differs from what is held."""
        decision = self._decision(now)
        if decision.keep and self.rounds:
            # the mechanism counts GPUs and gangs itself
            running = self.table.running
            runs = [run for run in decision.runs if isinstance(run, Run)]
            again = [job for run in runs for job in run.jobs if running[job]]
            return [*decision.stop, *again], runs
        if decision.keep:
            return self._change(decision, now)
        chosen = self._admit(decision, now)
        held = self._holdings.runs
        before = [job for job in self._order if job in held]
        changed = [job for job in before if chosen.get(job) is not held[job]]
        stops = dict.fromkeys(job for job in changed if chosen.get(job) != held[job])
        starts: list[Run] = []
        for job, run in chosen.items():
            if held.get(job) is run:
                continue
            if job == run.jobs[0] and any(held.get(member) != run for member in run.jobs):
                starts.append(run)
                # a group that changes restarts as a whole
                stops.update((m, None) for m in run.jobs if held.get(m) == run)
        self._order = decision.order or chosen
        return list(stops), starts

    def _decision(self, now: float) -> RunSet:
        """Return what the policy wants, or what the rounds of its shares choose."""
        rounds = self.rounds
        if rounds:
            if not rounds.boundary(now):
                return NOTHING
            self._changed |= rounds.settle(now)
            if rounds.has_shares and not (self._changed and rounds.may_compute(now)):
                return rounds.next_round(now, self._changed)
        if not self.table.active:
            self._wake = math.inf
            if rounds is None:
                return RunSet(())
            if rounds.clear(now):
                self._changed = False
            return NOTHING
        self.view.changed = self._changed
        self._changed = False
        if rounds:
            self.view.together = rounds.together
        self.view.fresh = range(self.view.fresh.stop, self.table.arrived)
        decision = self.decide(self.view)
        self.view.finished.clear()
        self.view.together.clear()
        if isinstance(decision, RunSet):
            self._wake = decision.wake
            return decision
        if not isinstance(decision, Shares):
            raise PolicyError(
                f"policy {self.policy.name!r} returned {type(decision).__name__} at {now:g} s; "
                f"decide() returns a RunSet or Shares"
            )
        if rounds is None:
            rounds = self.rounds = self._mechanism()
            if not rounds.boundary(now):
                self._changed = True
                return NOTHING
        rounds.adopt(decision, now)
        return rounds.next_round(now)

    def _change(self, decision: RunSet, now: float) -> tuple[list[int], list[Run]]:
        """Carry out a decision that names changes only."""
        held = self._holdings.runs
        free = self._holdings.free.copy()
        runs = [run if isinstance(run, Run) else self._alone(run) for run in decision.runs]
        again = [job for run in runs for job in run.jobs if job in held]
        stops = dict.fromkeys([*decision.stop, *again])
        for job in stops:
            if job not in held:
                raise self._wrong(now, job, "stops it, but it holds no GPUs")
        for run in {id(held[job]): held[job] for job in stops}.values():
            # the GPUs of a group come back with its last member
            if not [job for job in run.jobs if job not in stops and held.get(job) is run]:
                free[run.gpu_type] += run.gpus - run.shared
        begun: dict[int, Run] = {}
        starts: list[Run] = []
        for run in runs:
            run = self._checked(run, begun, free, now, {})
            charged = run.gpus - run.shared
            if charged > free.get(run.gpu_type, -1.0):
                raise self._too_many(now, run.jobs[0], run.gpus, free.get(run.gpu_type, 0.0))
            free[run.gpu_type] -= charged
            begun.update(dict.fromkeys(run.jobs, run))
            starts.append(run)
        self._order = decision.order or held
        return list(stops), starts

    def _admit(self, decision: RunSet, now: float) -> dict[int, Run]:
        """Check a decision and return the run of every job that holds GPUs."""
        free = self._holdings.capacity.copy()
        held = self._holdings.runs
        chosen: dict[int, Run] = {}
        active = self.table.active
        asked = self.table.gpus
        elastic = self.policy.elastic
        for entry in decision.runs:
            run = entry if isinstance(entry, Run) else self._alone(entry)
            job = run.jobs[0]
            # almost every run is held already, or one job on a known type with room to spare
            if (
                run.gpus <= free.get(run.gpu_type, -1.0)
                and not (run.hosts or run.shared)
                and job not in chosen
                and (
                    all(held.get(one) is run and one not in chosen for one in run.jobs)
                    if len(run.jobs) > 1 or held.get(job) is run
                    else run.gpus > 0 and job in active and (elastic or run.gpus == asked[job])
                )
            ):
                free[run.gpu_type] -= run.gpus
                for one in run.jobs:
                    chosen[one] = run
                continue
            run = self._checked(run, chosen, free, now, held)
            if run.hosts or run.shared:
                self._check_hosts(run, chosen, now)
            name = run.gpu_type
            charged = run.gpus - run.shared
            if name not in free:
                raise self._wrong(now, job, f"asks for unknown GPU type {name!r}")
            if charged <= free[name] + EPSILON_GPUS:
                free[name] -= charged
                chosen.update(dict.fromkeys(run.jobs, run))
            elif decision.fill == "exact":
                raise self._too_many(now, job, charged, free[name])
            elif decision.fill == "block":
                break
        return chosen

    def _alone(self, job: int) -> Run:
        """Return the run of a bare row number, the same object each time."""
        run = self._bare.get(job)
        if run is None:
            if not 0 <= job < self.table.count:
                raise PolicyError(f"policy {self.policy.name!r} names unknown row number {job!r}")
            run = self._bare[job] = Run((job,), self.table.gpus[job])
        return run

    def _checked(
        self,
        run: Run,
        chosen: Mapping[int, Run],
        free: Mapping[str | None, float],
        now: float,
        held: Mapping[int, Run],
    ) -> Run:
        """Return a run with its GPU type, that ``held`` if it may, after checking its members."""
        for job in run.jobs:
            if job not in self.table.active or job in chosen:
                state = "twice" if job in chosen else "which is not waiting or running"
                raise self._wrong(now, job, f"names it {state}")
        if not run.gpus > 0:
            raise self._wrong(now, run.jobs[0], f"gives it {run.gpus:g} GPUs; more than 0")
        for job in () if self.policy.elastic else run.jobs:
            asked = self.table.gpus[job]
            if run.gpus != asked and not (run.waits and run.gpus < asked):
                raise self._wrong(
                    now,
                    job,
                    f"gives it {run.gpus:g} GPUs but it asks for {asked}; "
                    f"all or none, unless the policy declares `elastic = True`",
                )
        if run.gpu_type is None and None not in free:
            # it stays on the type it is on if that has room; else it goes to the emptiest
            last = held.get(run.jobs[0])
            if last is not None and free.get(last.gpu_type, 0.0) >= run.gpus:
                return replace(run, gpu_type=last.gpu_type)
            return replace(run, gpu_type=max(free, key=lambda name: (free[name], str(name))))
        return run

    def _check_hosts(self, run: Run, chosen: Mapping[int, Run], now: float) -> None:
        """Check that a gang shares GPUs with jobs that run, and no more than they hold."""
        absent = [job for job in run.hosts if job not in chosen]
        if absent:
            raise self._wrong(
                now, run.jobs[0], f"shares GPUs with row {absent[0]}, which does not run"
            )
        theirs = sum({id(chosen[job]): chosen[job].gpus for job in run.hosts}.values())
        if not 0 <= run.shared <= min(run.gpus, theirs):
            raise self._wrong(
                now,
                run.jobs[0],
                f"shares {run.shared:g} of its {run.gpus:g} GPUs with jobs that hold {theirs:g}",
            )

    def _too_many(self, now: float, job: int, gpus: float, left: float) -> PolicyError:
        return self._wrong(now, job, f"gives it {gpus:g} GPUs where {left:g} are left")

    def _wrong(self, now: float, job: int, what: str) -> PolicyError:
        return PolicyError(
            f"policy {self.policy.name!r}, time {now:g} s, job {self.table.ids[job]!r}: {what}"
        )
