"""The public Tiresias simulator's rules as their description has them, in plain lists.

Independent of the package on purpose: one loop per family of schedules, integer seconds, every job
looked at in every event. Slow, short, and only there to be compared with.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal


@dataclass(eq=False)
class Job:
    number: int
    width: int
    submit: int
    duration: int
    running: bool = False
    progress: int = 0  # total_executed
    executed: int = 0  # priority clock
    pending: int = 0  # last_pending
    queue: int = 0
    end: int | None = None
    preempt: int = 0
    promote: int = 0


def jobs_of(rows):
    """Rows are (width, submit, duration); sorted by submission, stable."""
    jobs = [Job(n, w, int(float(s)), int(float(d))) for n, (w, s, d) in enumerate(rows)]
    return sorted(jobs, key=lambda job: job.submit)


def in_input_order(jobs):
    return sorted(jobs, key=lambda job: job.number)


# fifo and fjf ----------------------------------------------------------------------------------


def count_place(nodes, size, width):
    """Scheme count: any free GPUs."""
    if sum(nodes) < width:
        return None
    taken = []
    for index, free in enumerate(nodes):
        part = min(free, width - sum(n for _, n in taken))
        if part:
            taken.append((index, part))
    return taken


def yarn_place(nodes, size, width):
    """Scheme yarn, one switch: first fit, or whole idle nodes and first fit for the rest."""
    if width <= size:
        for index, free in enumerate(nodes):
            if free >= width:
                return [(index, width)]
        return None
    taken = []
    for index, free in enumerate(nodes):
        if free == size and len(taken) < width // size:
            taken.append((index, size))
    if len(taken) < width // size:
        return None
    rest = width % size
    if rest:
        for index, free in enumerate(nodes):
            if free >= rest and (index, size) not in taken:
                return [*taken, (index, rest)]
        return None
    return taken


def switched(place_of, switches):
    """Everything in one switch; the first switch that fits."""

    def place(nodes, size, width):
        per_switch = len(nodes) // switches
        for begin in range(0, len(nodes), per_switch):
            found = place_of(nodes[begin : begin + per_switch], size, width)
            if found is not None:
                return [(begin + index, count) for index, count in found]
        return None

    return place


def non_preemptive(rows, num_nodes, size, schedule, scheme, switches=1):
    place_of = {"count": count_place, "yarn": switched(yarn_place, switches)}[scheme]
    arrivals = jobs_of(rows)
    everything = list(arrivals)
    nodes = [size] * num_nodes
    # running: (end, job, place)
    waiting = []
    running = []
    while arrivals or running:
        times = [end for end, _, _ in running] + [job.submit for job in arrivals[:1]]
        now = min(times)
        for entry in list(running):
            if entry[0] == now:
                entry[1].end = now
                for index, count in entry[2]:
                    nodes[index] += count
                running.remove(entry)
        while arrivals and arrivals[0].submit == now:
            waiting.append(arrivals.pop(0))
        for job in list(waiting):
            if sum(nodes) == 0:
                break
            place = place_of(nodes, size, job.width)
            if place is None:
                if schedule == "fifo":
                    break
                continue
            for index, count in place:
                nodes[index] -= count
            waiting.remove(job)
            running.append((now + job.duration, job, place))
    return in_input_order(everything)


# sjf, shortest, shortest-gpu -------------------------------------------------------------------


def known_durations(rows, gpus, schedule):
    rank = {
        "sjf": lambda job: job.width,
        "shortest": lambda job: job.duration - job.progress,
        "shortest-gpu": lambda job: (job.duration - job.progress) * job.width,
    }[schedule]
    arrivals = jobs_of(rows)
    everything = list(arrivals)
    runnable = []
    last = 0
    while arrivals or runnable:
        ends = [last + job.duration - job.progress for job in runnable if job.running]
        now = min(ends + [job.submit for job in arrivals[:1]])
        for job in runnable:
            if job.running:
                job.progress += now - last
        last = now
        for job in list(runnable):
            if job.running and job.progress == job.duration:
                job.end = now
                runnable.remove(job)
        while arrivals and arrivals[0].submit == now:
            runnable.append(arrivals.pop(0))
        runnable.sort(key=rank)
        free = gpus
        for job in runnable:
            if job.width <= free:
                free -= job.width
                job.running = True
            elif job.running:
                job.running = False
                job.preempt += 1
    return in_input_order(everything)


# dlas-gpu and dlas-gpu-gittins -----------------------------------------------------------------


def half_up(value, digits):
    return float(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


class GittinsTable:
    """Index per sample of a history; E from S and not from S - a, integer division."""

    def __init__(self, samples, delta):
        self.samples = sorted(int(float(s)) for s in samples)
        n = len(self.samples)
        self.index = []
        for value in self.samples:
            a = value - 1
            i = len([s for s in self.samples if s <= a])
            if a + delta > self.samples[-1] - 1:
                k = n - 1
            else:
                k = len([s for s in self.samples if s <= a + delta])
            share = half_up((k - i) / (n - i), 5)
            expected = (sum(self.samples[i:k]) + delta * (n - k)) // (n - i)
            self.index.append(half_up(share * 1e6 / expected, 4) if expected else 0.0)

    def __call__(self, attained):
        for sample, index in zip(self.samples, self.index, strict=True):
            if sample > attained:
                return index
        return 0.0


def discretised(rows, gpus, limits, *, knob=0, gittins=None):
    """Late demotion, cumulative waiting clock, running jobs before pending ones in a queue.

    knob 0 is off; gittins is a table, by which every queue is sorted before the scan.
    """
    arrivals = jobs_of(rows)
    everything = list(arrivals)
    last = 0
    jump = None
    queues = [[] for _ in range(len(limits) + 1)]
    while arrivals or any(queues):
        jobs = [job for queue in queues for job in queue]
        ends = [last + job.duration - job.progress for job in jobs if job.running]
        times = ends + [job.submit for job in arrivals[:1]]
        now = min(times) if times else jump
        if jump is not None and jump < now:
            now = jump
        # 1. completions, arrivals
        for job in jobs:
            if job.running and job.progress + now - last == job.duration:
                job.end = now
                job.running = False
                queues[job.queue].remove(job)
        fresh = []
        while arrivals and arrivals[0].submit == now:
            fresh.append(arrivals.pop(0))
        queues[0].extend(fresh)
        # 2. clocks, demotion, promotion; in order of arrival
        runnable = [job for job in everything if job.end is None and job.submit <= now]
        for job in runnable:
            if job in fresh:
                continue
            if job.running:
                job.progress += now - last
                job.executed += now - last
                if job.queue < len(limits) and job.executed * job.width >= limits[job.queue]:
                    queues[job.queue].remove(job)
                    job.queue += 1
                    queues[job.queue].append(job)
            else:
                if job.executed > 0:
                    job.pending += now - last
                if (
                    knob > 0
                    and job.queue > 0
                    and job.executed > 0
                    and job.pending >= int(job.executed * knob)
                ):
                    queues[job.queue].remove(job)
                    job.queue = job.executed = job.pending = 0
                    job.promote += 1
                    queues[0].append(job)
        last = now
        # 3. scan
        if gittins is not None:
            for queue in queues:
                queue.sort(
                    key=lambda job: (gittins(job.executed * job.width), -job.submit), reverse=True
                )
        free = gpus
        preempted = []
        started = []
        for queue in queues:
            for job in queue:
                if job.width <= free:
                    free -= job.width
                    if not job.running:
                        started.append(job)
                elif job.running:
                    preempted.append(job)
        # 4. apply, partition
        for job in preempted:
            job.running = False
            job.preempt += 1
        for job in started:
            job.running = True
        for queue in queues:
            queue[:] = [j for j in queue if j.running] + [j for j in queue if not j.running]
        # 5. next jump
        jumps = []
        for queue in queues:
            for job in queue:
                if job.running and job.queue < len(limits):
                    jumps.append(now + (limits[job.queue] - job.executed) // job.width)
                elif not job.running and knob > 0 and job.queue > 0 and job.executed > 0:
                    wait = int(job.executed * knob - job.pending)
                    if wait > 0:
                        jumps.append(now + wait)
        jump = min((time for time in jumps if time > now), default=None)
    return in_input_order(everything)
