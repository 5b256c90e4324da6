"""The list of unfinished jobs in plain Python: what the compiled list must equal (no tests)."""

from __future__ import annotations


class PlainResort:
    """Sort the whole list of unfinished jobs at every event, scan it, and part it."""

    def __init__(
        self,
        table,
        ordering,
        cluster,
        *,
        running_first=False,
        history_ties=False,
        always_sorts=False,
        drifts=None,
    ):
        self.table = table
        self.ordering = ordering
        self.capacity = cluster.num_gpus
        self.running_first = running_first
        self.history_ties = history_ties
        self.always_sorts = always_sorts
        self.order = []
        self.holders = set()
        self.moved = False

    @property
    def waits(self):
        return len(self.order) > len(self.holders)

    @property
    def running(self):
        return [job for job in self.order if job in self.holders]

    def arrive(self, job, now):
        self.order.append(job)

    def finish(self, job):
        self.order.remove(job)
        self.holders.discard(job)

    def move(self, job, now):
        self.order.remove(job)
        self.order.append(job)
        self.moved = True

    def select(self, now):
        demand = sum(self.table.gpus[job] for job in self.order)
        if demand > self.capacity or self.always_sorts:
            self.order.sort(key=lambda job: self.key(job, now))
        free = self.capacity
        chosen = set()
        for job in self.order:
            if self.table.gpus[job] <= free:
                free -= self.table.gpus[job]
                chosen.add(job)
        stops = [job for job in self.order if job in self.holders and job not in chosen]
        starts = [job for job in self.order if job in chosen and job not in self.holders]
        for job in stops:
            self.ordering.stop(job, now)
        for job in starts:
            self.ordering.start(job, now)
        self.holders = chosen
        if self.running_first and (starts or stops or self.moved):
            self.moved = False
            waiting = [job for job in self.order if job not in chosen]
            self.order = self.running + waiting
        return stops, starts

    def key(self, job, now):
        """Every key anew, one by one; the row breaks ties unless the list's order does."""
        key = self.ordering.key(job, now)
        return key if self.history_ties else (key, job)
