"""Gandiva as the public Tiresias simulator plays it: node sets that are dealt out again."""

import math
from operator import attrgetter

from repro.core.decision import RunSet
from repro.core.view import View

#: Gang sizes in the order in which the simulator visits them, that of a dictionary of Python 2.
#: Other sizes, which it does not know, come after these, in ascending order.
_ORDER = (16, 1, 2, 4, 24, 32, 8, 64, 12)


class _NodeSet:
    """Nodes that serve gangs of one size; the first jobs of the list run."""

    __slots__ = ("jobs", "usage")

    def __init__(self, usage: int) -> None:
        #: jobs taken in since the set was opened or dealt out; completions do not lower it
        self.usage = usage
        self.jobs: list[int] = []


_usage = attrgetter("usage")


class _Size:
    """All node sets of one gang size, roughly the least used first."""

    def __init__(self, gpus: int, node_gpus: int) -> None:
        self.gpus = gpus
        #: nodes of a set, and gangs that run at once on it
        self.nodes = math.ceil(gpus / node_gpus)
        self.capacity = self.nodes * node_gpus // gpus
        self.sets: list[_NodeSet] = []

    @property
    def demand(self) -> int:
        """GPUs that all jobs of the size ask for."""
        return self.gpus * sum(len(node_set.jobs) for node_set in self.sets)

    def take(self, job: int, node_set: _NodeSet) -> None:
        """Give a job to a set that is out of the list, and put the set back."""
        node_set.jobs.append(job)
        node_set.usage += 1
        self.sets.append(node_set)
        self.sets.sort(key=_usage)

    def deal(self) -> bool:
        """Deal all jobs out among all sets; tell whether a set or its jobs moved.

        Every job goes to the set that is first in the list by usage. A set keeps its place ahead
        of those that are as full, so the sets take turns first to last, then last to first.
        """
        before = [(node_set, node_set.jobs) for node_set in self.sets]
        jobs = [job for node_set in self.sets for job in node_set.jobs]
        sets = self.sets
        number = len(sets)
        for place, node_set in enumerate(sets):
            there = jobs[place :: 2 * number]
            back = jobs[2 * number - 1 - place :: 2 * number]
            dealt = [0] * (len(there) + len(back))
            dealt[::2] = there
            dealt[1::2] = back
            node_set.jobs = dealt
            node_set.usage = len(dealt)
        rounds, last = divmod(len(jobs), number)
        if rounds % 2:
            sets.reverse()
        sets[:] = sets[last:] + sets[:last][::-1]
        return before != [(node_set, node_set.jobs) for node_set in sets]

    def spread(self, jobs: list[int]) -> None:
        """Give each job to the least used set at its turn."""
        for job in jobs:
            first = self.sets[0]
            first.jobs.append(job)
            first.usage += 1
            self.sets.sort(key=_usage)


class SimulatorSlicer:
    """Node sets of one run; one call is one step of the simulator.

    A step of the simulator begins with the rebalancing that here ends the step before. Nothing
    happens in between, and so the decision is what runs until the next step.
    """

    def __init__(self, slice_s: float, step_s: float, view: View) -> None:
        self.slice_s = slice_s
        self.step_s = step_s
        self.node_gpus = view.cluster.gpus_per_node
        self.num_gpus = view.cluster.num_gpus
        #: nodes of no set
        self.free = view.cluster.num_nodes
        widths = {int(gpus) for gpus in view.widths}
        known = [gpus for gpus in _ORDER if gpus in widths]
        self.sizes = {
            gpus: _Size(gpus, self.node_gpus) for gpus in [*known, *sorted(widths - set(known))]
        }
        #: jobs of sizes without a set
        self.pending: list[int] = []
        #: whether jobs changed place other than by rotation
        self.moved = False

    def __call__(self, view: View) -> RunSet:
        """Play one step and name the jobs that run until the next."""
        now = view.now
        before = self._numbers()
        self.moved = False
        released = self._execute(view)
        for job in view.fresh:
            if not self._enter(job, view.gpus(job)):
                self.pending.append(job)
        if released:
            self._retry(view)
        self._rebalance()
        runs = [
            job
            for size in self.sizes.values()
            for node_set in size.sets
            for job in node_set.jobs[: size.capacity]
        ]
        settled = not (view.changed or self.moved) and self._numbers() == before
        return RunSet(runs, "exact", self._wake(now, settled))

    def _numbers(self) -> list[int]:
        """All numbers on which, apart from who is where, the next step depends."""
        sets = [node_set for size in self.sizes.values() for node_set in size.sets]
        usage = [node_set.usage for node_set in sets]
        return [self.free, len(self.pending), *usage, *(len(node_set.jobs) for node_set in sets)]

    def _execute(self, view: View) -> bool:
        """Rotate the sets, drop finished jobs, close empty sets; tell whether one was closed."""
        rotates = self._rotates(view.now)
        finished = set(view.finished)
        released = False
        for size in self.sizes.values():
            for node_set in size.sets:
                # who finished now still takes part in the rotation
                if rotates and len(node_set.jobs) > size.capacity:
                    jobs = node_set.jobs
                    node_set.jobs = jobs[size.capacity :] + jobs[: size.capacity]
                if finished and not finished.isdisjoint(node_set.jobs):
                    node_set.jobs = [job for job in node_set.jobs if job not in finished]
            kept = [node_set for node_set in size.sets if node_set.jobs]
            if len(kept) < len(size.sets):
                self.free += size.nodes * (len(size.sets) - len(kept))
                size.sets = kept
                released = True
        return released

    def _enter(self, job: int, gpus: int) -> bool:
        """Give a job a set: one with room to spare, a new one, or the second least used."""
        size = self.sizes[gpus]
        if size.sets:
            least = size.sets.pop(0)
            # strictly less: the last gang of a set goes elsewhere if it can
            if least.usage + 1 < size.capacity:
                size.take(job, least)
                return True
            size.sets.append(least)
        if size.nodes <= self.free:
            self.free -= size.nodes
            size.take(job, _NodeSet(0))
            return True
        if size.sets:
            # the least used set has just gone to the end of the list
            size.take(job, size.sets.pop(0))
            return True
        return False

    def _retry(self, view: View) -> None:
        """Let pending jobs enter; behind each that does, the simulator misses the next."""
        place = 0
        while place < len(self.pending):
            job = self.pending[place]
            if self._enter(job, view.gpus(job)):
                del self.pending[place]
                self.moved = True
            place += 1

    def _rebalance(self) -> None:
        """Bring the nodes of every gang size towards its share of the demand."""
        demands = [(size, size.demand) for size in self.sizes.values()]
        total = sum(demand for _, demand in demands)
        for size, demand in demands:
            if not demand:
                continue
            # in the order of the simulator, whose rounding decides
            share = math.floor(demand / total * self.num_gpus)
            held = len(size.sets) * size.nodes * self.node_gpus
            surplus = held - min(share, demand)
            # sets are counted in gangs
            count = math.ceil(abs(surplus) / size.gpus)
            if surplus > 0:
                self._shrink(size, min(count, len(size.sets) - 1))
            elif surplus < 0:
                self._expand(size, count)

    def _shrink(self, size: _Size, count: int) -> None:
        """Close the first sets and send their jobs to the others."""
        if not count:
            return
        closed = size.sets[:count]
        del size.sets[:count]
        self.free += size.nodes * count
        size.spread([job for node_set in closed for job in node_set.jobs])
        self.moved = True

    def _expand(self, size: _Size, count: int) -> None:
        """Open sets as far as nodes are free, and deal all jobs out.

        Where all sets of one node could be opened, nothing is dealt: those sets stay empty and
        close again in the next step.
        """
        opened = min(count, self.free // size.nodes)
        self.free -= size.nodes * opened
        size.sets += [_NodeSet(0) for _ in range(opened)]
        if opened < count or size.nodes > 1:
            self.moved |= size.deal()

    def _rotates(self, now: float) -> bool:
        """Tell whether a slice ends now."""
        slices = now / self.slice_s
        return abs(slices - round(slices)) < 1e-9

    def _wake(self, now: float, settled: bool) -> float:
        """The instant of the next step (s) that changes anything; after a settled one, none does but rotation."""
        look = now + self.step_s
        if not settled:
            return look
        crowded = any(
            len(node_set.jobs) > size.capacity
            for size in self.sizes.values()
            for node_set in size.sets
        )
        if not crowded:
            return math.inf
        for _ in range(math.ceil(self.slice_s / self.step_s)):
            if self._rotates(look):
                return look
            look += self.step_s
        # counted from this arrival, no step ever meets the end of a slice
        return math.inf if (self.slice_s / self.step_s).is_integer() else look
