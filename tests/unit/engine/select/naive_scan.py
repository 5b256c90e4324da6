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
    submit: Fraction
    work: Fraction
    width: int
    rate: Fraction
    left: Fraction
    hold: Fraction | None = None  # since when it holds GPUs, None while waiting
    begins: Fraction = Fraction(0)  # since when it progresses, later than `hold` after a resume
    attained: Fraction = Fraction(0)  # GPU-seconds of earlier holds
    first_start: Fraction | float = math.inf
    end: Fraction | None = None
    preemptions: int = 0
    promotions: int = 0
    # priority clocks of the discretised policies
    queue: int = 0
    clock: Fraction = Fraction(0)
    waits_from: Fraction = Fraction(0)
    nodes: list[tuple[int, int]] = field(default_factory=list)

    @property
    def runs(self):
        return self.hold is not None and self.end is None

    def held_for(self, now):
        return now - self.hold if self.hold is not None else Fraction(0)

    def remaining(self, now):
        return self.left - (max(0, now - self.begins) * self.rate if self.hold is not None else 0)

    def served(self, now):
        return self.attained + self.width * self.held_for(now)

    def executed(self, now):
        return self.clock + self.held_for(now)

    def ends(self):
        return self.begins + self.left / self.rate


KEYS = {
    "sf": lambda job, now: job.width,
    "srtf": lambda job, now: job.remaining(now),
    "srsf": lambda job, now: job.width * job.remaining(now),
    "las-2d": lambda job, now: job.served(now),
    "tiresias-l": lambda job, now: (job.queue, job.first_start, job.submit),
}


def gittins(samples, limits):
    """Key of Tiresias-G: queue, then index with the limit as quantum; the last queue is FIFO."""

    def index(attained, quantum):
        left = [s - attained for s in samples if s > attained]
        served = sum(min(value, quantum) for value in left)
        return Fraction(sum(value <= quantum for value in left)) / served if left else Fraction(0)

    def key(job, now):
        if job.queue == len(limits):
            return job.queue, job.first_start, job.submit
        attained = job.executed(now) * job.width
        return job.queue, -index(attained, Fraction(limits[job.queue])), job.submit

    return key


def make_jobs(rows, rates=None):
    """Rows are (submit, work, width), in order of (submission, id); rates are per width."""
    jobs = []
    for row, (submit, work, width) in enumerate(rows):
        rate = Fraction((rates or {}).get(width, 1))
        submit = Fraction(submit)
        work = Fraction(work)
        jobs.append(Job(row, submit, work, width, rate, left=work, waits_from=submit))
    assert jobs == sorted(jobs, key=lambda job: job.submit)
    return jobs


def preemptive(
    rows, gpus, key, *, quantum=math.inf, limits=(), knob=math.inf, rates=None, resume=0
):
    """Full priority scan at every arrival, completion, quantum, demotion and promotion."""
    jobs = make_jobs(rows, rates)
    now = -math.inf
    key = KEYS.get(key, key)
    limits = [Fraction(limit) for limit in limits]
    quantum, knob = (Fraction(x) if x < math.inf else x for x in (quantum, knob))
    while True:
        unfinished = [job for job in jobs if job.end is None]
        if not unfinished:
            return jobs
        now = _next_event(unfinished, now, quantum, limits, knob)
        here = []
        for job in unfinished:
            if job.runs and job.ends() <= now:
                job.end = now
            elif job.submit <= now:
                here.append(job)
        for job in here:
            _requeue(job, now, limits, knob)
        free = gpus
        for job in sorted(here, key=lambda job: (key(job, now), job.row)):
            if job.width <= free:
                free -= job.width
                if not job.runs:
                    again = job.first_start < math.inf
                    job.hold = now
                    job.begins = now + (resume if again else 0)
                    job.first_start = min(job.first_start, now)
            elif job.runs:
                left = job.remaining(now)
                job.attained = job.served(now)
                job.left = left
                job.clock = job.executed(now)
                job.waits_from = now
                job.hold = None
                job.preemptions += 1


def _next_event(unfinished, now, quantum, limits, knob):
    times = [job.submit for job in unfinished if job.submit > now]
    for job in unfinished:
        if job.runs:
            times.append(job.ends())
            if job.queue < len(limits):
                times.append(job.hold + limits[job.queue] / job.width - job.clock)
        elif knob < math.inf and job.clock > 0:
            times.append(job.waits_from + knob * job.clock)
    if quantum < math.inf and now > -math.inf:
        times.append((math.floor(now / quantum) + 1) * quantum)
    return min(time for time in times if time > now)


def _requeue(job, now, limits, knob):
    if job.runs:
        if job.queue < len(limits) and job.executed(now) * job.width >= limits[job.queue]:
            job.queue += 1
    elif knob < math.inf and job.clock > 0 and now - job.waits_from >= knob * job.clock:
        job.queue = 0
        job.clock = Fraction(0)
        job.waits_from = now
        job.promotions += 1


def first_come(rows, nodes, *, blocking, consolidate):
    """Walk the waiting jobs in order of arrival at every event; nothing is ever stopped."""
    jobs = make_jobs(rows)
    idle = list(nodes)
    now = -math.inf
    while True:
        unfinished = [job for job in jobs if job.end is None]
        if not unfinished:
            return jobs
        now = min(
            [job.ends() for job in unfinished if job.runs]
            + [job.submit for job in unfinished if job.submit > now]
        )
        for job in unfinished:
            if job.runs and job.ends() <= now:
                job.end = now
                for node, count in job.nodes:
                    idle[node] += count
        for job in unfinished:
            if job.end is not None or job.runs or job.submit > now:
                continue
            place = (_consolidated if consolidate else _anywhere)(idle, nodes[0], job.width)
            if place is None:
                if blocking:
                    break
                continue
            job.hold = job.begins = job.first_start = now
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
    place = [(n, size) for n in whole]
    rest = width % size
    if rest:
        tail = next((n for n, c in enumerate(idle) if c >= rest and n not in whole), None)
        if tail is None:
            return None
        place.append((tail, rest))
    return place
