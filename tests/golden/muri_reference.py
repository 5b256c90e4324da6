"""The public Muri simulator's rules as their description has them, in plain lists.

Independent of the package on purpose: every job is looked at in every event and the cluster is
refilled from scratch. Seconds, floats. Slow, short, and only there to be compared with.
"""

from __future__ import annotations

import csv
import math

import numpy as np
from muri_reference_groups import Muri
from muri_reference_sharing import AntMan

SOLO = 1.015  # measured iteration times are stretched by this much


class Job:
    def __init__(self, number, row, overheads):
        self.number = number
        self.gpus = int(row["num_gpu"])
        self.submit = float(row["submit_time"]) / 1000
        self.duration = float(row["duration"]) / 1000
        self.priority = int(row.get("priority", 0))
        # in this order: the last bit decides between jobs of equal length (trace4, trace4_pr)
        self.solo = float(row["iteration_time"]) * SOLO / 1000
        self.stages = tuple(float(row[f"resource_time_{i}"]) / 1000 for i in range(3))
        self.overhead = overheads[row["model_name"], self.gpus]
        self.remaining = float(row["iterations"])
        self.executed = 0.0  # wall time spent running
        self.last = self.submit
        self.running = False
        self.tau = self.solo
        self.charge = self.overhead
        self.start = self.end = None


def read_rows(path):
    with open(path, newline="") as handle:
        return list(csv.DictReader(handle))


def exactly(a, b):
    return a == b


def nearly(a, b):
    return math.isclose(a, b, rel_tol=1e-9)


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-4)


def next_completion(runnable, now, same):
    """Earliest predicted end and the jobs that share it, compared in list order."""
    finish = math.inf
    ready = []
    for job in runnable:
        if job.running:
            end = now + job.remaining * job.tau
            if ready and same(end, finish):
                ready.append(job)
            elif end < finish:
                finish = end
                ready = [job]
    return finish, ready


def simulate(rows, policy, overheads, nodes=8, size=8, **options):
    """Jobs in trace order, with `start` and `end`."""
    jobs = [Job(number, row, overheads) for number, row in enumerate(rows)]
    arrivals = sorted(jobs, key=lambda job: job.submit)
    scheduler = SCHEDULERS[policy](nodes, size, **options)
    runnable = []
    now = 0.0
    wake = math.inf
    finish = math.inf
    ready = []
    while arrivals or runnable:
        submit = arrivals[0].submit if arrivals else math.inf
        now = min(submit, finish)
        fresh = submit == now or scheduler.together(submit, finish)
        over = ready if finish == now or scheduler.together(submit, finish) else []
        if fresh:
            now = submit
        if wake < now:
            now = wake
            fresh = False
            over = []
        if now == math.inf:
            raise RuntimeError("nothing runs and nothing arrives")
        for job in over:
            job.end = now
            job.running = False
            runnable.remove(job)
            scheduler.leave(job)
        while fresh and arrivals and nearly(arrivals[0].submit, submit):
            job = arrivals.pop(0)
            runnable.append(job)
            scheduler.arrive(job)
        for job in runnable:
            if job.running:
                job.remaining -= max(now - job.last - job.charge, 0) / job.tau
                # left to right: the other order can stop just short of a queue limit for ever
                job.executed = job.executed + now - job.last
            job.last = now
        wake = scheduler.decide(now, runnable)
        for job in runnable:
            if job.running and job.start is None:
                job.start = now
        finish, ready = next_completion(runnable, now, scheduler.same)
    return jobs


def average_jct(jobs):
    return sum(job.end - job.submit for job in jobs) / len(jobs)


def makespan(jobs):
    return max(job.end for job in jobs)


def p99_jct(jobs):
    return sorted(job.end - job.submit for job in jobs)[math.floor(0.99 * len(jobs))]


def place(free, size, gpus):
    """First fit; a job wider than a node takes whole idle nodes. Changes `free`."""
    whole, rest = divmod(gpus, size) if gpus > size else (0, gpus)
    taken = [index for index, count in enumerate(free) if count == size][:whole]
    if len(taken) < whole:
        return False
    if rest:
        fits = (i for i, count in enumerate(free) if count >= rest and i not in taken)
        index = next(fits, None)
        if index is None:
            return False
        free[index] -= rest
    for index in taken:
        free[index] = 0
    return True


class Greedy:
    """Sort, empty the cluster, refill it by first fit, skip what does not fit."""

    same = staticmethod(nearly)
    together = staticmethod(exactly)

    def __init__(self, nodes, size):
        self.nodes = nodes
        self.size = size
        self.total = nodes * size

    def arrive(self, job):
        pass

    def leave(self, job):
        pass

    def decide(self, now, runnable):
        self.order(now, runnable)
        free = [self.size] * self.nodes
        left = self.total
        for job in runnable:
            job.running = job.gpus <= left and place(free, self.size, job.gpus)
            if job.running:
                left -= job.gpus
        return math.inf


class Shortest(Greedy):
    def __init__(self, nodes, size, per_gpu):
        super().__init__(nodes, size)
        self.per_gpu = per_gpu

    def order(self, now, runnable):
        runnable.sort(key=lambda j: j.remaining * j.solo * (j.gpus if self.per_gpu else 1))


class Tiresias:
    """Three queues by attained service; GPUs are counted, nodes are not looked at."""

    same = staticmethod(exactly)
    together = staticmethod(exactly)
    limits = (3250, 7200)

    def __init__(self, nodes, size):
        self.total = nodes * size
        self.queues = [[], [], []]
        self.queue_of = {}

    def arrive(self, job):
        self.queues[0].append(job)
        self.queue_of[job] = 0

    def leave(self, job):
        self.queues[self.queue_of[job]].remove(job)

    def due(self, job, now):
        """When a running job reaches the limit of its queue."""
        if self.queue_of[job] == 2:
            return math.inf
        return math.ceil(self.limits[self.queue_of[job]] / job.gpus) - job.executed + now

    def decide(self, now, runnable):
        for job in runnable:
            queue = self.queue_of[job]
            if not job.running or queue == 2:
                continue
            # a last bit short of the limit is there: its time would never come
            if job.executed * job.gpus >= self.limits[queue] or self.due(job, now) <= now:
                self.queues[queue].remove(job)
                self.queues[queue + 1].append(job)
                self.queue_of[job] = queue + 1
        free = self.total
        wake = math.inf
        for job in [job for queue in self.queues for job in queue]:
            job.running = job.gpus <= free
            if job.running:
                free -= job.gpus
        for queue in self.queues:
            queue[:] = [j for j in queue if j.running] + [j for j in queue if not j.running]
            wake = min([wake, *(self.due(job, now) for job in queue if job.running)])
        return wake


class Themis(Greedy):
    """Finish-time fairness; the share in the denominator lacks the speed, as published."""

    def __init__(self, nodes, size):
        super().__init__(nodes, size)
        # by job: x, share, remaining then
        self.shares = {}
        self.phi = {}
        self.before = {}
        self.promised = {}
        self.cost = {}
        self.last = 0.0

    def order(self, now, runnable):
        dt = now - self.last
        self.last = now
        for job in runnable:
            if job in self.phi:
                self.cost[job] += (self.before[job] - job.remaining) / self.phi[job]
                self.promised[job] += self.shares[job] * dt
            else:
                self.cost[job] = self.promised[job] = 0.0
            self.before[job] = job.remaining
            self.phi[job] = min(1.0, math.ceil(self.total / len(runnable)) / job.gpus)
        if not runnable:
            return
        elapsed = np.array([now - job.submit for job in runnable])
        work = np.array([job.remaining * job.solo for job in runnable])
        gpus = np.array([job.gpus for job in runnable])
        alone = np.array(
            [self.cost[job] + job.remaining / self.phi[job] for job in runnable], dtype=float
        )

        def shares(rho):
            slack = rho * alone - elapsed
            return np.divide(work, slack, out=np.full(len(work), np.inf), where=slack > 0)

        def feasible(x):
            return x.max() <= 1 and gpus @ x <= self.total

        low = high = max((elapsed / alone).max(), 1e-12)
        while not feasible(shares(high)):
            low, high = high, 2 * high
        for _ in range(100):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            low, high = (low, middle) if feasible(shares(middle)) else (middle, high)
        for job, x in zip(runnable, shares(high).tolist(), strict=True):
            self.shares[job] = x
        runnable.sort(key=self.rank, reverse=True)

    def rank(self, job):
        x = self.shares[job]
        ran = job.executed
        return (x / ran if ran else x * 1e9, self.promised[job] - ran, x)

    def decide(self, now, runnable):
        super().decide(now, runnable)
        runnable.sort(key=lambda job: -job.gpus)
        return math.inf


SCHEDULERS = {
    "srtf": lambda nodes, size: Shortest(nodes, size, per_gpu=False),
    "srsf": lambda nodes, size: Shortest(nodes, size, per_gpu=True),
    "tiresias": Tiresias,
    "themis": Themis,
    "antman": AntMan,
    "muri-s": lambda nodes, size, **options: Muri(nodes, size, place, known=True, **options),
    "muri-l": lambda nodes, size, **options: Muri(nodes, size, place, known=False, **options),
}
