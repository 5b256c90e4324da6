"""The greedy scan done naively: at every event every job is looked at anew, in plain Python.

What the incremental backlog must equal. All arithmetic is on fractions, so that no rounding decides
a tie or puts a crossing before or after its instant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class Job:
    row: int
    submit: float
    work: float
    width: int
    left: float = 0.0
    since: float | None = None  # None while waiting
    attained: float = 0  # GPU-seconds up to `since`
    first_start: float = math.inf
    end: float | None = None
    preemptions: int = 0
    promotions: int = 0
    # priority clocks of the discretised policy
    queue: int = 0
    clock: float = 0
    waits_from: float = 0.0
    nodes: list[tuple[int, int]] = field(default_factory=list)

    def remaining(self, now: float) -> float:
        return self.left - (now - self.since if self.since is not None else 0.0)

    def served(self, now: float) -> float:
        return self.attained + (self.width * (now - self.since) if self.since is not None else 0.0)

    def executed(self, now: float) -> float:
        return self.clock + (now - self.since if self.since is not None else 0.0)


KEYS = {
    "sf": lambda job, now: job.width,
    "srtf": lambda job, now: job.remaining(now),
    "srsf": lambda job, now: job.width * job.remaining(now),
    "las-2d": lambda job, now: job.served(now),
    "tiresias-l": lambda job, now: (job.queue, job.first_start, job.submit),
}


def make_jobs(rows):
    """Rows are (submit, work, width), in order of (submission, id)."""
    exact = [(Fraction(submit), Fraction(work), width) for submit, work, width in rows]
    jobs = [Job(i, s, w, g, left=w, waits_from=s) for i, (s, w, g) in enumerate(exact)]
    assert jobs == sorted(jobs, key=lambda job: job.submit)
    return jobs


def preemptive(rows, gpus, name, *, quantum=math.inf, limits=(), knob=math.inf):
    """Full priority scan at every arrival, completion, quantum, demotion and promotion."""
    jobs, key, now = make_jobs(rows), KEYS[name], -math.inf
    limits = [Fraction(limit) for limit in limits]
    quantum, knob = (Fraction(x) if x < math.inf else x for x in (quantum, knob))
    while True:
        unfinished = [job for job in jobs if job.end is None]
        if not unfinished:
            return jobs
        now = _next_event(unfinished, now, quantum, limits, knob)
        here = []
        for job in unfinished:
            if job.since is not None and job.since + job.left <= now:
                job.end = now
            elif job.submit <= now:
                here.append(job)
        for job in here:
            _requeue(job, now, limits, knob)
        free = gpus
        for job in sorted(here, key=lambda job: (key(job, now), job.row)):
            if job.width <= free:
                free -= job.width
                if job.since is None:
                    job.since = now
                    job.first_start = min(job.first_start, now)
            elif job.since is not None:
                job.left, job.attained = job.remaining(now), job.served(now)
                job.clock, job.waits_from = job.executed(now), now
                job.since = None
                job.preemptions += 1


def _next_event(unfinished, now, quantum, limits, knob):
    times = [job.submit for job in unfinished if job.submit > now]
    for job in unfinished:
        if job.submit > now:
            continue
        if job.since is not None:
            times.append(job.since + job.left)
            if job.queue < len(limits):
                times.append(job.since + limits[job.queue] / job.width - job.clock)
        elif knob < math.inf and job.clock > 0:
            times.append(job.waits_from + knob * job.clock)
    if quantum < math.inf and now > -math.inf:
        times.append((math.floor(now / quantum) + 1) * quantum)
    return min(time for time in times if time > now)


def _requeue(job, now, limits, knob):
    if job.since is not None:
        if job.queue < len(limits) and job.executed(now) * job.width >= limits[job.queue]:
            job.queue += 1
    elif knob < math.inf and job.clock > 0 and now - job.waits_from >= knob * job.clock:
        job.queue, job.clock, job.waits_from = 0, 0, now
        job.promotions += 1


def first_come(rows, nodes, *, blocking, consolidate):
    """Walk the waiting jobs in order of arrival at every event; nothing is ever stopped."""
    jobs, idle, now = make_jobs(rows), list(nodes), -math.inf
    while True:
        unfinished = [job for job in jobs if job.end is None]
        if not unfinished:
            return jobs
        now = min(
            [job.since + job.left for job in unfinished if job.since is not None]
            + [job.submit for job in unfinished if job.submit > now]
        )
        for job in unfinished:
            if job.since is not None and job.since + job.left <= now:
                job.end = now
                for node, count in job.nodes:
                    idle[node] += count
        for job in unfinished:
            if job.end is not None or job.since is not None or job.submit > now:
                continue
            place = (_consolidated if consolidate else _anywhere)(idle, nodes[0], job.width)
            if place is None:
                if blocking:
                    break
                continue
            job.since = job.first_start = now
            job.nodes = place
            for node, count in place:
                idle[node] -= count


def _anywhere(idle, size, width):
    if sum(idle) < width:
        return None
    place = []
    for node, count in enumerate(idle):
        if width and count:
            place.append((node, min(width, count)))
            width -= place[-1][1]
    return place


def _consolidated(idle, size, width):
    """First node with room; wider gangs on whole idle nodes plus a first-fit node for the rest."""
    if width <= size:
        return next(([(n, width)] for n, count in enumerate(idle) if count >= width), None)
    whole = [n for n, count in enumerate(idle) if count == size][: width // size]
    if len(whole) < width // size:
        return None
    place, rest = [(n, size) for n in whole], width % size
    if rest:
        tail = next((n for n, c in enumerate(idle) if c >= rest and n not in whole), None)
        if tail is None:
            return None
        place.append((tail, rest))
    return place
