"""Who holds which GPUs since when: carries decisions out and books what follows from them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import cast

import numpy as np

from repro.base.errors import ParamError, PolicyError
from repro.engine.rounds.settings import RoundSettings
from repro.model.cluster.spec import Cluster
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.performance import Overhead, Paced, Performance
from repro.model.records import Intervals, Nodes
from repro.model.rules import Rules
from repro.model.speeds import ByType
from repro.placement.base import Placer


@dataclass(frozen=True)
class RunSettings:
    """The options of `repro.simulate`, with names and defaults resolved."""

    rules: Rules = field(default_factory=Rules)
    rounds: RoundSettings = field(default_factory=RoundSettings)
    perf: Performance | None = None
    overhead: Overhead | None = None
    interval: float | None = None
    seed: int = 0
    until: Iterable[object] | None = None
    stop_time: float = math.inf
    keep_intervals: bool = True
    #: jobs to predict, None: all
    predict: int | None = 0


class Holdings:
    """The GPUs of one run; ``typed`` are the placers by GPU type of policies that name types."""

    def __init__(
        self,
        table: JobTable,
        cluster: Cluster,
        policy: str,
        placer: Placer,
        typed: Mapping[str | None, Placer],
        settings: RunSettings,
    ) -> None:
        self.table = table
        self.perf = settings.perf
        self._by_type = isinstance(settings.perf, ByType)
        self.overhead = settings.overhead
        self.placer = placer
        self._typed = typed
        self._policy = policy
        self._cluster = cluster
        #: GPUs of each type, and those that nobody holds
        self.capacity = {name: float(one.num_gpus) for name, one in typed.items()} or {
            None: float(cluster.num_gpus)
        }
        self.free = self.capacity.copy()
        self._column = {name: column for column, name in enumerate(sorted(self.capacity, key=str))}
        self.settles = self.overhead is not None and self.overhead.every_interval
        self._paced = self.perf if self.settles and isinstance(self.perf, Paced) else None
        self.intervals = Intervals(placer.tracks_nodes, cluster.gpu_types, placer.takes_wishes)
        self._keeps = settings.keep_intervals
        #: GPUs of a type are alike and starting is free
        self.light = bool(typed) and not placer.tracks_nodes and self.overhead is None

        #: heap of (predicted completion, job, epoch); entries of a past epoch are stale
        self.finish: list[tuple[float, int, int]] = []
        self.epoch = [0] * table.count
        self.overhead_s = 0.0
        #: where the first host of a guest sat
        self._guests: dict[int, Nodes] = {}
        #: of jobs that go on in other company: where they sat, when they began, their last step
        self._before: dict[int, tuple[Nodes, float, float]] = {}
        #: whether the placement rule was asked for a place
        self.places = False
        self._nodes: dict[int, Nodes] = {}
        #: what every job that holds GPUs runs in: the one book of it
        self.runs: dict[int, Run] = {}
        #: GPUs that are still checkpointed, and until when
        self._draining: list[tuple[float, float]] = []
        #: where intervals pay starts, of each job: its own (s), that of its group, seconds per unit
        self._starts: list[float] = []
        self._paid_s, self._pace = np.zeros((2, table.count if self.settles else 0))

    def nodes(self, job: int) -> Nodes:
        """Return (node, GPUs there) of the gang a job belongs to, by ascending node."""
        run = self.runs.get(job)
        return self._nodes.get(run.jobs[0], ()) if run else ()

    def idle(self) -> list[int] | None:
        """Return the idle GPUs of every node, None if the placement does not tell nodes apart."""
        if not self.placer.tracks_nodes:
            return None
        left = [node.gpus for node in self._cluster.nodes]
        for placer in (self.placer, *self._typed.values()):
            for node, gpus in placer.taken():
                left[node] -= gpus
        return left

    # intervals that all pay a start ------------------------------------------------------------

    def settle(self, now: float) -> None:
        """Book the progress of every running job since the last decision, less its start."""
        state = self.table.state
        rows = np.fromiter(self.runs, np.int64, len(self.runs))
        # the order of operations is the simulator's: small differences grow from event to event
        progress = now - state.since[rows] - self._paid_s[rows]
        some = progress > 0
        begun = rows[some]
        state.left[begun] -= progress[some] / self._pace[begun]
        for start_s in self._paid_s[begun].tolist():
            self.overhead_s += start_s
        state.since[rows] = now

    def predict_all(self, now: float, order: Iterable[int], tie_rel: float, *, far: bool) -> None:
        """Predict every completion anew; a last interval turns out to have no start to pay.

        Completions within ``tie_rel`` of the earliest come at one instant, that of the first of
        them in ``order``. Unless ``far``, one that is earliest by more is predicted alone: before
        any other comes, all are predicted anew.
        """
        rows = np.fromiter(self.runs, np.int64, len(self.runs))
        ends = now + self.table.state.left[rows] * self._pace[rows]
        jobs = rows.tolist()
        seconds = ends.tolist()
        first = min(seconds, default=math.inf)
        alone = np.count_nonzero(ends <= first * (1.0 + 4.0 * tie_rel)) == 1
        if alone and not far:
            jobs = [jobs[seconds.index(first)]]
            seconds = [first]
        elif not alone:
            end_of = dict(zip(jobs, seconds, strict=True))
            jobs = [job for job in order if job in end_of]
            seconds = [*map(end_of.__getitem__, jobs)]
            first = math.inf
            for end in seconds:
                if end < first and not math.isclose(end, first, rel_tol=tie_rel):
                    first = end
            near = partial(math.isclose, first, rel_tol=tie_rel)
            seconds = [first if near(end) else end for end in seconds]
        self.expect(zip(seconds, jobs, strict=True))

    def expect(self, ends: Iterable[tuple[float, int]]) -> None:
        """Replace all predicted completions."""
        self.finish[:] = [(end, job, self.epoch[job]) for end, job in ends]
        heapify(self.finish)

    def _predict(self, job: int, begin: float) -> None:
        """Predict the completion of a job that progresses from ``begin`` on."""
        ends = begin + self.table.left[job] / self.table.rate[job]
        if self.overhead is not None:
            ends += self.overhead.save_s(self.table, job)
        heappush(self.finish, (ends, job, self.epoch[job]))

    def _last_step(self, job: int) -> float:
        """Return when a running job will have made its last step."""
        table = self.table
        return table.since[job] + table.left[job] / table.rate[job]

    def set_back(
        self, node: int, now: float, checkpoint_s: float, restart_s: float, foreseen: bool
    ) -> list[int]:
        """Return the jobs on a node to their last checkpoint, unless rounds foresee their ends."""
        if not self.placer.tracks_nodes or self.settles or foreseen:
            raise ParamError(
                "nodes can fail only under a placement that tells them apart, such as "
                "'yarn', and under rules that let jobs progress from event to event"
            )
        table = self.table
        places = ((job, self._nodes.get(run.jobs[0], ())) for job, run in self.runs.items())
        jobs = [job for job, nodes in places if any(one == node for one, _ in nodes)]
        for job in jobs:
            done = max(0.0, now - table.since[job])
            lost = math.fmod(done, checkpoint_s)
            table.left[job] -= (done - lost) * table.rate[job]
            table.since[job] = max(now, table.since[job]) + restart_s
            self.overhead_s += lost + restart_s
            self.epoch[job] += 1
            self._predict(job, table.since[job])
        return jobs

    # applying decisions ------------------------------------------------------------------------

    def apply(self, stops: list[int], starts: list[Run], now: float) -> list[int]:
        """Carry a decision out; return the jobs that start at another speed than nominal."""
        table = self.table
        cost = self.overhead
        self._before.clear()
        if stops:
            again = {job for run in starts for job in run.jobs}
            if cost is not None and cost.stays:
                where = {job: self._where(self.runs[job]) for job in stops if job in again}
                self._before = {
                    job: (nodes, table.since[job], self._last_step(job))
                    for job, nodes in where.items()
                    if not self.runs[job].waits
                }
            paused = [job for job in stops if job not in again]
            pauses = {} if cost is None else {job: cost.pause_s(table, job) for job in paused}
            self._release(stops, now, pauses)
            for job in paused:
                table.preemptions[job] += 1
        return [job for run in starts for job in self._start(run, now)]

    def _where(self, run: Run) -> Nodes:
        """Return where a gang sits, a guest where its first host does or did."""
        return self._nodes.get(run.jobs[0]) or self._guests.get(run.jobs[0], ())

    def take(self, job: int) -> None:
        """Place a job at once (policies whose next choice depends on where this one went)."""
        self._nodes[job] = self._place(Run((job,), self.table.gpus[job]))

    def _start(self, run: Run, now: float) -> list[int]:
        """Give a run its GPUs; return the members whose speed is not the nominal one."""
        table = self.table
        leader = run.jobs[0]
        overhead = self.overhead
        changed: list[int] = []
        charged = run.gpus - run.shared
        nodes: Nodes = ()
        if not self.light and charged and charged == int(charged):
            self.places = True
            # a rule that only counts GPUs is not asked: the decision was counted already
            if leader not in self._nodes and (self.placer.tracks_nodes or run.tasks):
                self._nodes[leader] = self._place(run)
            nodes = self._nodes.get(leader, ())
        rates: Sequence[float] = (run.gpus / table.gpus[leader],)
        paces: Sequence[float] = ()
        if run.waits:
            self._wait(run, now)
            return changed
        if self.perf is not None or len(run.jobs) > 1:
            rates, paces = self._rates(run, nodes)
        clean = now + (self._drain_delay(charged, now) if self._draining else 0.0)
        self.free[run.gpu_type] -= charged
        if overhead is not None and self.settles:
            if not self._starts:
                self._starts.extend(map(partial(overhead.start_s, table), range(table.count)))
            start_s = sum(map(self._starts.__getitem__, run.jobs))
            if not paces:
                paces = [table.solo[job] / rate for job, rate in zip(run.jobs, rates, strict=True)]
            for job, pace in zip(run.jobs, paces, strict=True):
                self._paid_s[job] = start_s
                self._pace[job] = pace
        column = self._column.get(run.gpu_type, -1)
        for job, rate in zip(run.jobs, rates, strict=True):
            begin = clean
            if overhead is not None and not self.settles:
                begin = self._progresses_from(run, job, clean)
            if not rate > 0:
                raise PolicyError(
                    f"policy {self._policy!r} runs job {table.ids[job]!r} at rate {rate:g}"
                )
            if now < table.first_start[job]:
                table.first_start[job] = now
            table.running[job] = True
            table.on_type[job] = column
            table.hold[job] = now
            table.held[job] = run.gpus
            table.since[job] = begin
            table.clean[job] = clean
            table.rate[job] = rate / table.solo[job]
            self.runs[job] = run
            if not self.settles:
                self._predict(job, begin)
            if rate != 1.0 or begin > now:
                changed.append(job)
        return changed

    def _wait(self, run: Run, now: float) -> None:
        """Let a job hold GPUs while it waits for more."""
        table = self.table
        job = run.jobs[0]
        self.free[run.gpu_type] -= run.gpus
        table.running[job] = True
        table.hold[job] = now
        table.held[job] = run.gpus
        table.since[job] = now
        table.clean[job] = now
        table.rate[job] = 0.0
        table.on_type[job] = self._column.get(run.gpu_type, -1)
        self.runs[job] = run

    def _progresses_from(self, run: Run, job: int, clean: float) -> float:
        """Return when a job that starts, resumes or goes on in other company will progress."""
        table = self.table
        cost = cast(Overhead, self.overhead)
        nodes, since, last = self._before.get(job, (None, 0.0, math.inf))
        if nodes == self._where(run):
            # one that saves already has no step left to make
            return last if last <= clean else max(clean, since)
        again = table.first_start[job] < math.inf
        resume = (cost.resume_s if again else cost.start_s)(table, job)
        self.overhead_s += resume + cost.save_s(table, job)
        begin = clean + resume
        if run.hosts:
            self._guests[job] = self._nodes.get(run.hosts[0], ())
        for host in run.hosts if cost.follows else ():
            last = self._last_step(host)
            saved = last + cost.save_s(table, host)
            begin = max(begin, saved, last + cost.handover_s(table, job))
        return begin

    def _rates(self, run: Run, nodes: Nodes) -> tuple[Sequence[float], Sequence[float]]:
        """Return the speed of every member relative to running alone, and seconds per unit."""
        table = self.table
        if self._by_type and run.gpu_type is None:
            raise self._untyped()
        if self._paced is not None:
            paces = self._paced.paces(table, run, nodes)
            pairs = zip(run.jobs, paces, strict=True)
            return [table.solo[job] / pace for job, pace in pairs], paces
        if self.perf is not None:
            return self.perf.rates(table, run, nodes), ()
        raise PolicyError(
            f"policy {self._policy!r} groups jobs; simulate it with a performance model "
            f"(perf=...) that says how fast the members run"
        )

    def _untyped(self) -> ParamError:
        """Error of a run whose speeds depend on GPU types that nobody has chosen."""
        if not self._cluster.gpu_types:
            return ParamError(
                f"a throughput table knows speeds by GPU type, {self._cluster} names no types; "
                f"give a cluster of types (such as 2xv100,2xk80), or leave the table out"
            )
        return ParamError(
            f"policy {self._policy!r} does not choose GPU types, which a throughput table needs; "
            f"take one that does (such as gavel-las), or a cluster without types"
        )

    def _place(self, run: Run) -> Nodes:
        placer = self._typed.get(run.gpu_type, self.placer)
        leader = run.jobs[0]
        self.places = True
        if not run.tasks:
            model = self.table.models[leader] if placer.reads_model else None
            return placer.take(leader, int(run.gpus - run.shared), model)
        if len(run.tasks) != run.gpus:
            raise PolicyError(
                f"policy {self._policy!r} names nodes for {len(run.tasks)} tasks of job "
                f"{self.table.ids[leader]!r} that holds {run.gpus:g} GPUs; one GPU per task"
            )
        return placer.claim(leader, run.tasks)

    def _release(self, jobs: list[int], now: float, pauses: Mapping[int, float]) -> None:
        """Take the GPUs of jobs away, book their progress; ``pauses``: seconds to checkpoint."""
        table = self.table
        runs = self.runs
        left = table.left
        since = table.since
        rate = table.rate
        for job in jobs:
            gone = now - since[job]
            ahead = left[job] - gone * rate[job] if gone > 0.0 else left[job]
            left[job] = ahead if ahead > 0.0 else 0.0
            if job in pauses:
                # a job that has not begun has nothing to checkpoint, and no more to load
                until = now + pauses[job] if gone >= 0.0 else max(now, table.clean[job])
                self.overhead_s += until - now if gone >= 0.0 else until - since[job]
                self._draining.append((until, runs[job].charged / len(runs[job].jobs)))
        for run, members in groupby(jobs, runs.__getitem__):
            self._book(run, tuple(members), now)

    def complete(self, job: int, now: float) -> None:
        """Let a job end."""
        table = self.table
        table.left[job] = 0.0
        if job in self.runs:
            self._book(self.runs[job], (job,), now)
        table.end[job] = now
        del table.active[job]

    def _book(self, run: Run, jobs: tuple[int, ...], now: float) -> None:
        """Close the intervals of members of a gang that stop holding GPUs."""
        table = self.table
        leader = run.jobs[0]
        spans = self.intervals
        charged = run.gpus - run.shared
        gpu_type = spans.types[run.gpu_type]
        share = charged / len(run.jobs)
        for job in jobs:
            del self.runs[job]
            start = table.hold[job]
            if self._keeps:
                rate = table.rate[job] * table.solo[job]
                spans.rows.fromlist([job, leader, start, now, share, run.gpus, rate, gpu_type])
                if spans.nodes is not None:
                    spans.nodes.append(self._nodes.get(leader, ()))
                if spans.tasks is not None:
                    spans.tasks.append(run.tasks)
            table.seconds[job] += now - start
            table.service[job] += (now - start) * table.held[job]
            table.running[job] = False
            table.on_type[job] = -1
            self.epoch[job] += 1
        if self.runs.keys().isdisjoint(run.jobs):
            self.free[run.gpu_type] += charged
            if leader in self._nodes:
                del self._nodes[leader]
                self._typed.get(run.gpu_type, self.placer).give_back(leader)

    def _drain_delay(self, gpus: float, now: float) -> float:
        """Return how long a gang waits for GPUs whose former holders still checkpoint."""
        draining = [entry for entry in self._draining if entry[0] > now]
        clean = sum(self.free.values()) - sum(held for _, held in draining)
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
