"""Driver that turns decisions of a policy into starts and stops.

A decision names all gangs, or only the changes to the last decision.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from repro.base.errors import PolicyError
from repro.engine.decision_checks import (
    DecisionChecks,
    check_fields,
    checked_wake,
    with_gpu_type,
)
from repro.engine.holdings import Holdings
from repro.engine.type_choice import TypeChoice
from repro.model.decision import GPU_TOLERANCE, NO_CHANGE, Run, RunSet, Shares
from repro.model.jobs import JobTable
from repro.model.policy import Policy
from repro.model.view import View

if TYPE_CHECKING:
    from repro.engine.rounds.mechanism import RoundMechanism


#: Why a job cannot be the host of a gang if the decision names only changes.
_HOLDS_NOTHING = "which holds no GPUs after this decision"


class DecisionDriver:
    """Drives a policy that returns a `RunSet`, or `Shares` for the round mechanism.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    policy : Policy
        Policy of the simulation.
    view : View
        View of the policy.
    holdings : Holdings
        Jobs that hold GPUs.
    make_rounds : callable
        Function that makes the round mechanism when the policy first returns `Shares`.
    decide : callable
        Decision function of the policy for this run.
    choice : TypeChoice, optional
        Choice of GPU types for gangs without a type, under a policy that names types itself. None:
        there is nothing to choose, or no speeds are known.
    """

    def __init__(
        self,
        table: JobTable,
        policy: Policy,
        view: View,
        holdings: Holdings,
        make_rounds: Callable[[], RoundMechanism],
        decide: Callable[[View], object],
        choice: TypeChoice | None,
    ) -> None:
        self.table = table
        self.policy = policy
        self.view = view
        #: round mechanism of a policy that has returned shares
        self.rounds: RoundMechanism | None = None
        self._decide = decide
        self._choice = choice
        self._holdings = holdings
        self._make_rounds = make_rounds
        self._checks = DecisionChecks(table, policy)
        #: gang of each job that a decision has named by its row number instead of a `Run`; cached,
        #: because unchanged gangs are found by identity
        self._bare_runs: dict[int, Run] = {}
        #: jobs of the last decision, in its order; some may hold no GPUs
        self._order: Iterable[int] = ()
        #: jobs whose gangs use GPUs of hosts; some may have stopped
        self._guests: set[int] = set()
        #: whether jobs arrived or finished since the last decision
        self._changed = True
        #: number of jobs that had arrived at the last decision
        self._seen = 0
        #: instant (s) at which the policy wants to decide even without an event
        self._wake = math.inf

    # events --------------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Whether a job waits for GPUs; under rounds, whether any job is unfinished."""
        if self.rounds:
            return bool(self.table.active)
        return len(self.table.active) > len(self._holdings.runs)

    def running(self) -> Iterable[int]:
        """Jobs that hold GPUs, in the order of the decision, or of arrival in rounds.

        Outside rounds, there may be jobs without GPUs among them, which play no role.
        """
        return self.view.running if self.rounds else self._order

    def wake(self, now: float) -> float:
        """Next wake-up of the policy, or next round (s)."""
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
        self._bare_runs.pop(job, None)
        self._guests.discard(job)
        self._changed = True
        if self.rounds:
            self.rounds.finish(job, now)

    def rate_changed(self, job: int, now: float) -> None:
        """Do nothing: the policy reads the rates at its next decision."""

    # decisions -----------------------------------------------------------------------------------

    def step(self, now: float) -> tuple[list[int], list[Run]]:
        """Let the policy decide, and list the jobs that stop and the gangs that start."""
        decision = self._decision(now)
        if decision.keep and self.rounds:
            # the round mechanism counts GPUs and gangs itself
            running = self.table.running
            starts = [run for run in decision.runs if isinstance(run, Run)]
            restarts = [job for run in starts for job in run.jobs if running[job]]
            return [*decision.stop, *restarts], starts
        try:
            if decision.keep:
                return self._named_changes(decision, now)
            return self._differences(decision, now)
        except TypeError:
            # checking the rows of every decision in advance would be slow
            self._checks.check_rows(decision)
            raise

    def _decision(self, now: float) -> RunSet:
        """Decision of the policy, or of the round mechanism."""
        rounds = self.rounds
        if rounds:
            if not rounds.begins_round(now):
                return NO_CHANGE
            must_compute = rounds.record_round(now)
            self._changed |= must_compute
            if rounds.has_allocation and not (self._changed and rounds.may_compute(now)):
                return rounds.next_round(now, self._changed)
        if not self.table.active:
            self._wake = math.inf
            if rounds is None:
                return RunSet(())
            replaced_allocation = rounds.begin_empty_round(now)
            if replaced_allocation:
                self._changed = False
            return NO_CHANGE
        decision = self._ask_policy()
        if isinstance(decision, RunSet):
            self._wake = checked_wake(self.policy.name, decision.wake)
            check_fields(self.policy.name, decision)
            self._checks.check_progress(self._wake, now)
            return decision
        if not isinstance(decision, Shares):
            raise PolicyError(
                f"policy {self.policy.name!r} returned {type(decision).__name__} at {now:g} s; "
                f"decide() returns a RunSet or Shares"
            )
        if rounds is None:
            rounds = self.rounds = self._make_rounds()
            if not rounds.begins_round(now):
                # the policy decides again when the first round begins
                self._changed = True
                return NO_CHANGE
        rounds.set_allocation(decision, now)
        return rounds.next_round(now)

    def _ask_policy(self) -> object:
        """Let the policy decide, with the events since its last decision in its view."""
        view = self.view
        view.changed = self._changed
        self._changed = False
        if self.rounds:
            view.new_pairs = self.rounds.new_pairs
        view.fresh = range(self._seen, self.table.arrived)
        self._seen = self.table.arrived
        decision = self._decide(view)
        view.finished.clear()
        view.new_pairs.clear()
        return decision

    def _differences(self, decision: RunSet, now: float) -> tuple[list[int], list[Run]]:
        """List the stops and starts that turn the present gangs into the gangs of a decision."""
        chosen = self._admitted(decision, now)
        present_runs = self._holdings.runs
        before = [job for job in self._order if job in present_runs]
        # Identity is only a quick first test. A gang that is equal, but another object, does not
        # restart.
        changed = [job for job in before if chosen.get(job) is not present_runs[job]]
        stops = dict.fromkeys(job for job in changed if chosen.get(job) != present_runs[job])
        starts: list[Run] = []
        for job, run in chosen.items():
            if present_runs.get(job) is run:
                continue
            is_new = any(present_runs.get(member) != run for member in run.jobs)
            if job == run.jobs[0] and is_new:
                starts.append(run)
                # a group that changes restarts as a whole
                stops.update(
                    (member, None) for member in run.jobs if present_runs.get(member) == run
                )
        self._order = chosen
        if len(decision.order):
            self._order = self._checks.checked_order(decision.order, chosen, now)
        return list(stops), starts

    def _named_changes(self, decision: RunSet, now: float) -> tuple[list[int], list[Run]]:
        """Check a decision that names only changes, and list its stops and starts."""
        present_runs = self._holdings.runs
        free = self._holdings.free.copy()
        checks = self._checks
        runs = [run if isinstance(run, Run) else self._bare_run(run) for run in decision.runs]
        restarts = [job for run in runs for job in run.jobs if job in present_runs]
        stops = dict.fromkeys([*decision.stop, *restarts])
        for job in stops:
            if job not in present_runs:
                raise checks.error(now, job, "stops it, but it holds no GPUs")
        for run in {id(present_runs[job]): present_runs[job] for job in stops}.values():
            # the GPUs of a group are freed when its last member stops
            remaining = [job for job in run.jobs if present_runs.get(job) is run]
            if all(job in stops for job in remaining):
                free[run.gpu_type] += run.charged
        self._guests.difference_update(stops)
        guests = [present_runs[job] for job in self._guests if job in present_runs]
        kept: dict[int, Run] = {}
        if len(decision.order) or guests or any(run.hosts or run.shared for run in runs):
            kept = {job: run for job, run in present_runs.items() if job not in stops}
        chosen: dict[int, Run] = {}
        holding = ChainMap(chosen, kept)
        starts: list[Run] = []
        for run in runs:
            checks.check_members(run, chosen, now)
            if run.hosts or run.shared:
                checks.check_hosts(run, holding, now, _HOLDS_NOTHING)
                self._guests.update(run.jobs)
            run = with_gpu_type(run, free, None, self._choice, holding)
            if run.charged > free.get(run.gpu_type, -1.0) + GPU_TOLERANCE:
                present_free = free.get(run.gpu_type, 0.0)
                raise checks.too_few_gpus(now, run.jobs[0], run.charged, present_free)
            free[run.gpu_type] -= run.charged
            chosen.update(dict.fromkeys(run.jobs, run))
            starts.append(run)
        for run in guests:
            checks.check_hosts(run, holding, now, _HOLDS_NOTHING)
        self._order = present_runs
        if len(decision.order):
            self._order = checks.checked_order(decision.order, holding, now)
        return list(stops), starts

    def _admitted(self, decision: RunSet, now: float) -> dict[int, Run]:
        """Gang of every job that holds GPUs after a decision, checked."""
        free = self._holdings.capacity.copy()
        present_runs = self._holdings.runs
        checks = self._checks
        chosen: dict[int, Run] = {}
        active = self.table.active
        demand = self.table.gpus
        elastic = self.policy.elastic
        for entry in decision.runs:
            run = entry if isinstance(entry, Run) else self._bare_run(entry)
            if not run.jobs:
                raise checks.no_jobs(run, now)
            job = run.jobs[0]
            # Fast check, which almost every gang passes: it holds its GPUs already, or is one job
            # whose demand fits the free GPUs of its type. Other gangs take the full check below.
            fits = run.gpus <= free.get(run.gpu_type, -1.0) and not (run.hosts or run.shared)
            passes_fast_check = fits and job not in chosen
            if passes_fast_check and (len(run.jobs) > 1 or present_runs.get(job) is run):
                passes_fast_check = all(
                    present_runs.get(member) is run and member not in chosen for member in run.jobs
                )
            elif passes_fast_check:
                is_present = run.gpus > 0 and job in active
                # `demand` comes first: it raises TypeError for a float as row number
                passes_fast_check = is_present and (run.gpus == demand[job] or elastic)
            if passes_fast_check:
                free[run.gpu_type] -= run.gpus
                for member in run.jobs:
                    chosen[member] = run
                continue
            checks.check_members(run, chosen, now)
            if run.hosts or run.shared:
                checks.check_hosts(run, chosen, now)
                self._guests.update(run.jobs)
            run = with_gpu_type(run, free, present_runs.get(job), self._choice, chosen)
            gpu_type = run.gpu_type
            charged = run.charged
            if gpu_type not in free:
                raise checks.error(now, job, f"asks for unknown GPU type {gpu_type!r}")
            if charged <= free[gpu_type] + GPU_TOLERANCE:
                free[gpu_type] -= charged
                chosen.update(dict.fromkeys(run.jobs, run))
            elif decision.fill == "exact":
                raise checks.too_few_gpus(now, job, charged, free[gpu_type])
            elif decision.fill == "block":
                break
        return chosen

    def _bare_run(self, job: int) -> Run:
        """Gang of one job with its demand, the same object at every call."""
        run = self._bare_runs.get(job)
        if run is None:
            demand = self.table.gpus[self._checks.checked_row(job)]
            run = self._bare_runs[job] = Run((job,), demand)
        return run
