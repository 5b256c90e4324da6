"""Gavel's round rules written anew with lists and dictionaries; imports nothing of the package.

Rules as the specification of the public simulator lists them: rounds end with the last whole step,
X no sooner than an interval after the last, priorities by the part of the time, deficits as second
key, one queue per GPU type, pairs that begin with no time received, and jobs and pairs without a
share that take GPUs and are dropped.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass
class Job:
    """One job: arrival (s), training steps, gang, steps per second on each type."""

    arrival: float
    steps: float
    gang: int
    speed: dict[str, float]
    done: float = 0.0
    end: float | None = None


@dataclass
class Reference:
    """One run; ``policy(ids, jobs) -> {entry: {type: share}}`` with entries ids or pairs of ids."""

    jobs: list[Job]
    gpus: dict[str, int]
    policy: object
    pair_speed: object = None
    length: float = 360.0
    interval: float = 1920.0
    shuffled: bool = False
    #: GPUs left over idle rather than serve a job without a share, as under FIFO
    idle: bool = False
    seed: int = 0
    now: float = 0.0
    x: dict = field(default_factory=dict)
    time: dict = field(default_factory=dict)
    owed: dict = field(default_factory=dict)
    total: dict = field(default_factory=dict)
    known: set = field(default_factory=set)

    def speeds(self, entry, kind):
        """Steps per second of every member of an entry."""
        if isinstance(entry, int):
            return [self.jobs[entry].speed[kind]]
        return self.pair_speed(self.jobs[entry[0]], self.jobs[entry[1]], kind)

    def entries(self, active):
        """Single jobs and pairs in the order in which they came into being."""
        found = []
        for number, job in enumerate(active):
            found.append(job)
            if self.pair_speed:
                found += [
                    (other, job)
                    for other in active[:number]
                    if self.jobs[other].gang == self.jobs[job].gang
                ]
        return found

    def run(self):
        """Return the end of every job."""
        kinds = sorted(self.gpus)
        self.total = dict.fromkeys(kinds, 0.0)
        stream = random.Random(self.seed + 5)
        order_of_arrival = sorted(range(len(self.jobs)), key=lambda j: self.jobs[j].arrival)
        waiting = list(order_of_arrival)
        active = []
        running = []
        last_reset = 0.0
        need = True
        round_end = 0.0
        now = 0.0
        while waiting or active:
            if running:
                now = max(end for _, _, end, _ in running)
            elif waiting:
                now = self.jobs[waiting[0]].arrival
            else:
                # 0 stands for never
                last_reset = 0.0
            for entry, kind, end, steps in running:
                spent = end - round_end
                self.total[kind] += spent
                self.time[entry][kind] += spent
                for job, count in zip(members(entry), steps, strict=True):
                    self.jobs[job].done += count
                    if self.jobs[job].steps - self.jobs[job].done <= 0:
                        self.jobs[job].end = end
                        active.remove(job)
                        need = True
            if running:
                round_end = now
            while waiting and self.jobs[waiting[0]].arrival <= now:
                active.append(waiting.pop(0))
                need = True
            entries = self.entries(active)
            for entry in entries:
                prior = self.length / 2 if isinstance(entry, int) else 0.0
                self.time.setdefault(entry, dict.fromkeys(kinds, prior))
                self.owed.setdefault(entry, dict.fromkeys(kinds, 0.0))
            if need and (now - last_reset >= self.interval or last_reset == 0):
                for entry in entries:
                    for kind in kinds:
                        share = self.x.get(entry, {}).get(kind, 0.0)
                        received = self.time[entry][kind] - self.length / 2
                        self.owed[entry][kind] += share * (now - last_reset) - received
                        self.time[entry][kind] = self.length / 2
                self.now = now
                self.x = self.policy(active, self.jobs)
                self.known = set(active)
                listed = [entry for entry in entries if entry in self.x]
                self.total = dict.fromkeys(kinds, len(listed) * self.length / 2)
                last_reset = now
                need = False
            running = self.choose(entries, now, stream)
        return [job.end for job in self.jobs]

    def choose(self, entries, now, stream):
        """Return (entry, type, end, steps) of the next round."""
        types = sorted(self.gpus, reverse=True)
        if self.shuffled:
            stream.shuffle(types)
        taken = set()
        chosen = []
        for kind in types:
            free = self.gpus[kind]
            ranked = sorted(entries, key=lambda e, k=kind: self.key(e, k), reverse=True)
            for entry in ranked:
                gang = self.jobs[members(entry)[0]].gang
                if free <= 0:
                    break
                if taken & set(members(entry)) or gang > free:
                    continue
                if min(self.speeds(entry, kind)) <= 0:
                    continue
                if self.idle and self.key(entry, kind)[0] <= 0:
                    continue
                # pairs the policy left out; those of newcomers may be chosen, but do not run
                if entry not in self.x and set(members(entry)) <= self.known:
                    continue
                taken |= set(members(entry))
                free -= gang
                chosen.append((entry, kind))
        rounds = []
        for entry, kind in chosen:
            if entry not in self.x:
                continue
            steps = []
            ends = []
            for job, speed in zip(members(entry), self.speeds(entry, kind), strict=True):
                left = self.jobs[job].steps - self.jobs[job].done
                steps.append(min(int(speed * self.length), left))
                ends.append(now + steps[-1] / speed)
            rounds.append((entry, kind, max(ends), steps))
        return rounds

    def key(self, entry, kind):
        """Return (priority, deficit, share)."""
        share = self.x.get(entry, {}).get(kind, 0.0)
        part = self.time[entry][kind] / self.total[kind] if self.total[kind] else 0.0
        if share == 0 or min(self.speeds(entry, kind)) <= 0:
            priority = 0.0
        else:
            priority = share / part if part else share * 1e9
        return priority, self.owed[entry][kind], share


def members(entry):
    """Return the jobs of an entry."""
    return (entry,) if isinstance(entry, int) else entry
