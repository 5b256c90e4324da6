"""Jobs that hold GPUs: decisions are carried out and progress is recorded here."""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby

from repro.base.errors import PolicyError
from repro.engine.completions import CompletionQueue
from repro.engine.draining import DrainingGpus
from repro.engine.gang_nodes import GangNodes
from repro.engine.interval_starts import IntervalStarts
from repro.engine.livelock import LivelockCheck
from repro.engine.overhead_costs import OverheadCosts
from repro.engine.rates import RunRates
from repro.engine.renewals import Renewals, renewals_refused
from repro.engine.run_settings import RunSettings
from repro.model.cluster.spec import Cluster
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Renewing
from repro.model.records import Intervals, Nodes
from repro.placement.base import Placer


class Holdings:
    """Gangs that hold GPUs, with their nodes, rates and predicted completions.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    cluster : Cluster
        Cluster of the simulation.
    policy : str
        Name of the policy, for messages.
    placer : Placer
        Placement rule on the whole cluster.
    placer_by_type : mapping of str to Placer
        Placement rule on the nodes of each GPU type; empty if the run does not distinguish types.
    settings : RunSettings
        Options of the simulation.
    type_names : iterable of str
        GPU types of the cluster, also if they have no effect, for the records.
    refused_gang : callable
        Error of a placement that refuses a waiting gang at an instant (s), or None.
    """

    def __init__(
        self,
        table: JobTable,
        cluster: Cluster,
        policy: str,
        placer: Placer,
        placer_by_type: Mapping[str | None, Placer],
        settings: RunSettings,
        type_names: Iterable[str],
        refused_gang: Callable[[float], PolicyError | None],
    ) -> None:
        perf = settings.perf
        overhead = settings.overhead
        self.table = table
        #: gang of every job that holds GPUs
        self.runs: dict[int, Run] = {}
        #: GPUs of each type in the cluster. `free` has those that no job holds.
        self.capacity: dict[str | None, float] = {
            name: float(type_placer.num_gpus) for name, type_placer in placer_by_type.items()
        } or {None: float(cluster.num_gpus)}
        self.free = self.capacity.copy()
        #: number of each GPU type. `State.type_column` has it for every job that holds GPUs.
        self._column = {name: column for column, name in enumerate(sorted(self.capacity, key=str))}
        #: seconds of starts, checkpoints and lost work so far
        self.overhead_s = 0.0
        self.completions = CompletionQueue(table.count)
        self.draining = DrainingGpus()
        counts_only = bool(placer_by_type) and not placer.tracks_nodes and overhead is None
        self.gang_nodes = GangNodes(
            table, cluster, policy, placer, placer_by_type, counts_only=counts_only
        )
        #: instant at which the last start of each job, or its restart after a failure, ends (s)
        self._loaded_at: dict[int, float] = {}
        self.costs: OverheadCosts | None = None
        if overhead is not None:
            self.costs = OverheadCosts(table, overhead, self.gang_nodes, self._loaded_at)
        #: set if a start is charged in every interval. Completions are then predicted after each
        #: decision, otherwise at the start of each job.
        self.interval_starts: IntervalStarts | None = None
        if overhead is not None and overhead.every_interval:
            self.interval_starts = IntervalStarts(table, overhead, self.runs)
        needs_unit_s = self.interval_starts is not None
        self.rates = RunRates(table, cluster, policy, perf, needs_unit_s=needs_unit_s)
        #: set if the performance model changes rates while jobs run
        self.renewals: Renewals | None = None
        if isinstance(perf, Renewing):
            if self.interval_starts is not None:
                raise renewals_refused()
            self.renewals = Renewals(table, perf, self.runs)
        self._livelock = LivelockCheck(table, policy, self.runs, refused_gang)
        self.intervals = Intervals(placer.tracks_nodes, type_names, placer.takes_wishes)
        self._keeps_intervals = settings.keep_intervals

    # nodes of jobs: `repro.model.view.HeldGpus` --------------------------------------------------

    def nodes(self, job: int) -> Nodes:
        """(Node, number of GPUs on it) of the gang of a job, by ascending node."""
        run = self.runs.get(job)
        return self.gang_nodes.of(run.jobs[0]) if run else ()

    def idle(self) -> list[int] | None:
        """Idle GPUs of every node; None if the placement rule only counts GPUs."""
        return self.gang_nodes.idle()

    # decisions -----------------------------------------------------------------------------------

    def apply(self, stops: list[int], starts: list[Run], now: float) -> list[int]:
        """Carry out a decision: first jobs stop, then gangs start.

        Parameters
        ----------
        stops : list of int
            Jobs that lose their GPUs. A job that is also in ``starts`` exchanges its GPUs.
        starts : list of Run
            Gangs that get GPUs.
        now : float
            Present time (s).

        Returns
        -------
        list of int
            Jobs of ``starts`` whose rate is not nominal, or whose progress begins after ``now``.
        """
        if stops:
            starting_jobs = {job for run in starts for job in run.jobs}
            preempted = [job for job in stops if job not in starting_jobs]
            pauses: dict[int, float] = {}
            if self.costs is not None:
                restarts = [job for job in stops if job in starting_jobs]
                self.costs.note_restarts(restarts, self.runs, now)
                pauses = self.costs.pauses(preempted)
            self._stop(stops, now, pauses)
            for job in preempted:
                self.table.preemptions[job] += 1
        not_nominal = [job for run in starts for job in self._start(run, now)]
        if not self.runs:
            self._livelock.note_idle_decision(now)
        return not_nominal

    def reserve_nodes(self, job: int, gpu_type: str | None) -> None:
        """Choose the nodes of a job before its start, so that later choices see them occupied."""
        self.gang_nodes.place(Run((job,), self.table.gpus[job], gpu_type))

    def complete(self, job: int, now: float) -> None:
        """End a job, which has no work left, and free its GPUs."""
        table = self.table
        table.work_left[job] = 0.0
        self._livelock.note_progress()
        if self.interval_starts is not None:
            self.overhead_s += self.interval_starts.last_start_s(job)
        elif self.costs is not None:
            self.overhead_s += self.costs.save_s(job)
        if job in self.runs:
            self._give_back(self.runs[job], (job,), now)
        table.end[job] = now
        del table.active[job]

    def _start(self, run: Run, now: float) -> list[int]:
        """Give a gang its GPUs, and list its members that are not at nominal rate from now on."""
        table = self.table
        nodes = self.gang_nodes.of_start(run)
        if run.waits:
            self._hold_waiting(run, now)
            return []
        rates, unit_s = self.rates.of(run, nodes)
        rates = [self.rates.positive(job, rate) for job, rate in zip(run.jobs, rates, strict=True)]
        charged = run.charged
        # instant at which earlier jobs have left the GPUs
        free_from = now
        if self.draining.checkpoints.get(run.gpu_type):
            free = self.free[run.gpu_type]
            free_from = now + self.draining.delay(charged, free, now, run.gpu_type)
        self.free[run.gpu_type] -= charged
        # `interval_starts` charges starts and predicts completions itself
        predicts = self.interval_starts is None
        start_costs = self.costs if predicts else None
        if self.interval_starts is not None:
            self.interval_starts.start(run, rates, unit_s)
        column = self._column.get(run.gpu_type, -1)
        not_nominal: list[int] = []
        for job, rate in zip(run.jobs, rates, strict=True):
            begin = free_from
            if start_costs is not None:
                begin, start_s = start_costs.begin(run, job, free_from)
                self.overhead_s += start_s
            if now < table.first_start[job]:
                table.first_start[job] = now
            table.running[job] = True
            table.type_column[job] = column
            table.held_since[job] = now
            table.held_gpus[job] = run.gpus
            table.progress_from[job] = begin
            table.gpus_free_from[job] = free_from
            table.rate[job] = rate / table.solo[job]
            self.runs[job] = run
            if predicts:
                self._predict(job, begin)
            if rate != 1.0 or begin > now:
                not_nominal.append(job)
        if self.renewals is not None:
            self.renewals.note_start(run)
            self.renewals.plan(run, nodes, max(table.progress_from[job] for job in run.jobs))
        return not_nominal

    def _hold_waiting(self, run: Run, now: float) -> None:
        """Give a job some of its GPUs, while it waits for the others."""
        table = self.table
        job = run.jobs[0]
        self.free[run.gpu_type] -= run.gpus
        table.running[job] = True
        table.type_column[job] = self._column.get(run.gpu_type, -1)
        table.held_since[job] = now
        table.held_gpus[job] = run.gpus
        table.progress_from[job] = now
        table.gpus_free_from[job] = now
        table.rate[job] = 0.0
        if self.interval_starts is not None:
            self.interval_starts.wait(job)
        self.runs[job] = run

    def _stop(self, jobs: list[int], now: float, pauses: Mapping[int, float]) -> None:
        """Stop jobs; ``pauses`` has the seconds of their checkpoints."""
        table = self.table
        runs = self.runs
        work_left = table.work_left
        progress_from = table.progress_from
        rate = table.rate
        lost_starts = 0
        has_progressed = False
        for job in jobs:
            progress_s = now - progress_from[job]
            remaining = work_left[job]
            # the overhead has the whole start, but the job does not spend the rest of it
            if self.costs is not None:
                self.overhead_s += self.costs.change_at_stop(job, now)
            elif job in self._loaded_at:
                self.overhead_s -= max(0.0, self._loaded_at.pop(job) - now)
            if progress_s > 0.0:
                remaining -= progress_s * rate[job]
                has_progressed = True
            else:
                lost_starts += 1
            work_left[job] = remaining if remaining > 0.0 else 0.0
            if job in pauses:
                if progress_s >= 0.0:
                    until = now + pauses[job]
                    self.overhead_s += until - now
                else:
                    # a job without progress has nothing to checkpoint, and stops loading
                    until = max(now, table.gpus_free_from[job])
                run = runs[job]
                self.draining.add(run.charged / len(run.jobs), until, run.gpu_type)
        for run, members in groupby(jobs, runs.__getitem__):
            self._give_back(run, tuple(members), now)
        if has_progressed:
            self._livelock.note_progress()
        elif self.costs is not None and self.interval_starts is None:
            self._livelock.note_lost_starts(lost_starts, now)

    def _give_back(self, run: Run, jobs: tuple[int, ...], now: float) -> None:
        """Close the intervals of members that stop or end. The last member frees the GPUs."""
        table = self.table
        for job in jobs:
            del self.runs[job]
            self.record(run, job, now)
            table.running[job] = False
            table.type_column[job] = -1
            self.completions.invalidate(job)
        if self.runs.keys().isdisjoint(run.jobs):
            self.free[run.gpu_type] += run.charged
            self.gang_nodes.give_back(run)

    def record(self, run: Run, job: int, now: float) -> None:
        """Record the interval of a job since its last change of GPUs or rate."""
        table = self.table
        start = table.held_since[job]
        if self._keeps_intervals:
            leader = run.jobs[0]
            intervals = self.intervals
            charged = run.charged / len(run.jobs)
            rate = table.rate[job] * table.solo[job]
            gpu_type = intervals.types[run.gpu_type]
            intervals.rows.fromlist([job, leader, start, now, charged, run.gpus, rate, gpu_type])
            if intervals.nodes is not None:
                intervals.nodes.append(self.gang_nodes.of(leader))
            if intervals.tasks is not None:
                intervals.tasks.append(run.tasks)
        table.earlier_held_s[job] += now - start
        table.earlier_service[job] += (now - start) * table.held_gpus[job]

    # progress and predicted completions ----------------------------------------------------------

    def settle(self, now: float) -> None:
        """Record the progress since the last decision, if a start is charged in every interval."""
        if self.interval_starts is None:
            return
        spent_s, has_progressed = self.interval_starts.settle(now)
        for start_s in spent_s:
            self.overhead_s += start_s
        if has_progressed:
            self._livelock.note_progress()
        else:
            self._livelock.note_lost_starts(len(self.runs), now)

    def renew_rates(self, now: float) -> list[int]:
        """Apply the rate changes that are due, and list the jobs whose rate changed."""
        if self.renewals is None:
            return []
        return [job for run in self.renewals.due(now) for job in self._apply_new_rates(run, now)]

    def _apply_new_rates(self, run: Run, now: float) -> list[int]:
        """Record the progress of a gang at its old rates, apply new rates, and list its members."""
        table = self.table
        nodes = self.gang_nodes.of(run.jobs[0])
        members = [job for job in run.jobs if self.runs.get(job) is run]
        for job in members:
            done = max(0.0, now - table.progress_from[job]) * table.rate[job]
            table.work_left[job] = max(0.0, table.work_left[job] - done)
            table.progress_from[job] = max(now, table.progress_from[job])
        rates = dict(zip(run.jobs, self.rates.of(run, nodes)[0], strict=True))
        for job in members:
            self.record(run, job, now)
            table.held_since[job] = now
            table.rate[job] = self.rates.positive(job, rates[job]) / table.solo[job]
            self.completions.invalidate(job)
            self._predict(job, table.progress_from[job])
        if self.renewals is not None:
            self.renewals.plan(run, nodes, max(table.progress_from[job] for job in members))
        return members

    def set_back(
        self, jobs: Iterable[int], now: float, checkpoint_s: float, restart_s: float
    ) -> None:
        """Set running jobs back to their last checkpoint. They progress again after a restart.

        Parameters
        ----------
        jobs : iterable of int
            Jobs that lose the work since their last checkpoint.
        now : float
            Present time (s).
        checkpoint_s : float
            Seconds between checkpoints, counted from the last start of progress or change of rate.
        restart_s : float
            Seconds of the restart. A job that still loads or restarts does so first.
        """
        table = self.table
        lost_starts = 0
        has_progressed = False
        keeps_work = False
        for job in jobs:
            progress_s = max(0.0, now - table.progress_from[job])
            # a job that has done its work only saves; it loses the begun save as well
            work_s = min(progress_s, table.work_left[job] / table.rate[job])
            lost_work_s = math.fmod(work_s, checkpoint_s)
            if progress_s > 0.0:
                has_progressed = True
            else:
                lost_starts += 1
            keeps_work = keeps_work or work_s > lost_work_s
            table.work_left[job] -= (work_s - lost_work_s) * table.rate[job]
            table.progress_from[job] = max(now, table.progress_from[job]) + restart_s
            self._loaded_at[job] = table.progress_from[job]
            self.overhead_s += lost_work_s + (progress_s - work_s) + restart_s
            self.completions.invalidate(job)
            self._predict(job, table.progress_from[job])
        if keeps_work:
            self._livelock.note_progress()
        elif has_progressed:
            self._livelock.note_lost_work(now)
        else:
            self._livelock.note_lost_starts(lost_starts, now)

    def _predict(self, job: int, begin: float) -> None:
        """Predict the completion of a job that progresses from ``begin`` (s) on."""
        end = begin + self.table.work_left[job] / self.table.rate[job]
        if self.costs is not None:
            end += self.costs.save_s(job)
        self.completions.add(job, end)
