"""Gandiva as Tiresias simulates it (section 5.3): time slicing of gangs inside sets of nodes."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ClassVar, Literal

from repro.base.errors import ParamError
from repro.model.cluster.spec import Cluster
from repro.model.decision import Decision, RunSet
from repro.model.policy import Play, Policy, register
from repro.model.rules import Completions
from repro.model.settings import Above
from repro.model.view import View
from repro.policies.tiresias._gandiva_run import simulate_steps
from repro.policies.tiresias._gandiva_simulator import stepper


@register("gandiva")
@dataclass(frozen=True)
class Gandiva(Policy):
    """Time slicing only: gangs of one size share node sets, each set rotates every slice.

    Parameters
    ----------
    slice_s : float
        Seconds between rotations.
    step_s : float, optional
        Fixed step (s) at which arrivals, completions and rotations are noticed, counted from the
        last arrival; infinity (rules ``paper``): they are noticed when they happen.
    form : {"paper", "simulator"}, optional
        ``paper``: a job enters the least used set, whole surplus sets close, and opened ones take
        jobs from overfull ones. ``simulator``: everything about node sets is that of the public
        simulator. It counts sets in gangs, deals the jobs of a size out anew when nodes lack or
        a set spans several, and never lowers the usage of a set when a job ends.

    Reference: Tiresias, NSDI 2019, sections 5.1 and 5.3 (its Gandiva baseline); Gandiva, OSDI 2018.
    """

    slice_s: Annotated[float, Above(0, "seconds")] = 60.0
    step_s: Annotated[float, Above(0, "seconds")] | None = None
    form: Literal["paper", "simulator"] | None = None

    time_fields = ("slice_s", "step_s")
    rule_values: ClassVar = {
        "paper": {"step_s": math.inf, "form": "paper"},
        "tiresias": {"step_s": 10.0, "form": "simulator"},
    }

    @property
    def poll_s(self) -> float:
        """Seconds between steps; 0: nothing waits for a step."""
        return 0.0 if self.step_s in (None, math.inf) else self.step_s

    def completions(self) -> Completions:
        """Completions wait for the next step."""
        return Completions(poll_s=self.poll_s)

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the node sets of one run."""
        if self.form != "simulator":
            return _Slicer(self, view)
        if not self.poll_s:
            raise ParamError(
                "gandiva: form=simulator decides at fixed steps; give step_s, 10 in the simulator"
            )
        return stepper(self.slice_s, self.poll_s, view)

    def player(self, cluster: Cluster) -> Play | None:
        """Return the compiled steps of the public simulator, on a cluster such as it knows."""
        alike = len({node.gpus for node in cluster.nodes}) == 1 and not cluster.gpu_types
        if self.form != "simulator" or not alike:
            return None
        return partial(simulate_steps, slice_s=self.slice_s, step_s=self.poll_s)


@dataclass
class _NodeSet:
    """Nodes that serve gangs of one size; the first `capacity` jobs of the list run."""

    capacity: int
    nodes: int
    jobs: list[int] = field(default_factory=list)

    @property
    def overfull(self) -> bool:
        """Whether not all jobs run at once."""
        return len(self.jobs) > self.capacity


def _least_used(sets: list[_NodeSet]) -> _NodeSet:
    return min(sets, key=lambda node_set: len(node_set.jobs))


class _Slicer:
    """Node sets of one run."""

    def __init__(self, policy: Gandiva, view: View) -> None:
        self.policy = policy
        self.node_gpus = view.cluster.gpus_per_node
        self.num_gpus = view.cluster.num_gpus
        self.free = view.cluster.num_nodes
        self.sets: dict[int, list[_NodeSet]] = {}
        self.known: dict[int, int] = {}
        self.pending: list[int] = []

    def __call__(self, view: View) -> Decision:
        """Notice completions, rotate, take arrivals in, rebalance."""
        now = view.now
        jobs = view.jobs
        before = self._sizes()
        freed = self._leave(jobs) if view.changed else False
        if self._rotates(now):
            self._rotate(view)
        for job in jobs:
            if job not in self.known:
                self.known[job] = view.gpus(job)
                if not self._enter(job):
                    self.pending.append(job)
        if freed:
            self.pending = [job for job in self.pending if not self._enter(job)]
        self._rebalance()
        runs = [job for sets in self.sets.values() for s in sets for job in s.jobs[: s.capacity]]
        settled = not view.changed and self._sizes() == before
        return RunSet(runs, "exact", self._wake(now, settled))

    def _sizes(self) -> list[int]:
        """Return the numbers on which alone the next step depends if nobody comes or goes."""
        jobs = (len(node_set.jobs) for sets in self.sets.values() for node_set in sets)
        return [self.free, len(self.pending), *jobs]

    def _rotates(self, now: float) -> bool:
        """Tell whether a slice ends now."""
        slices = now / self.policy.slice_s
        return abs(slices - round(slices)) < 1e-9

    def _wake(self, now: float, settled: bool) -> float:
        """Return when to decide again (s); a step that is settled changed nothing."""
        crowded = any(s.overfull for sets in self.sets.values() for s in sets)
        step = self.policy.poll_s
        slice_s = self.policy.slice_s
        if not step:
            rotation = (math.floor(now / slice_s + 1e-9) + 1) * slice_s
            return rotation if crowded or self.pending else math.inf
        if settled and not crowded:
            return math.inf
        look = now + step
        for _ in range(math.ceil(slice_s / step) if settled else 0):
            if self._rotates(look):
                return look
            look += step
        # counted from this arrival, no step ever meets the end of a slice
        return math.inf if settled and (slice_s / step).is_integer() else look

    def _leave(self, jobs: list[int]) -> bool:
        """Drop finished jobs; return whether nodes came free."""
        for job in self.known.keys() - set(jobs):
            for node_set in self.sets.get(self.known.pop(job), []):
                if job in node_set.jobs:
                    node_set.jobs.remove(job)
        before = self.free
        for gpus, sets in self.sets.items():
            self.free += sum(node_set.nodes for node_set in sets if not node_set.jobs)
            self.sets[gpus] = [node_set for node_set in sets if node_set.jobs]
        return self.free > before

    def _rotate(self, view: View) -> None:
        """Send the jobs that ran to the tail of every overfull set."""
        for sets in self.sets.values():
            for node_set in sets:
                if node_set.overfull:
                    # a stable sort: False, who waits, comes first
                    node_set.jobs.sort(key=view.is_running)

    def _new_set(self, gpus: int) -> _NodeSet | None:
        """Open a set for gangs of this size if nodes are free."""
        nodes = math.ceil(gpus / self.node_gpus)
        if nodes > self.free:
            return None
        self.free -= nodes
        node_set = _NodeSet(nodes * self.node_gpus // gpus, nodes)
        self.sets.setdefault(gpus, []).append(node_set)
        return node_set

    def _enter(self, job: int) -> bool:
        """Give a job a set: one with room to spare, a new one, or the least used one."""
        gpus = self.known[job]
        sets = self.sets.get(gpus)
        least = _least_used(sets) if sets else None
        if least is None or len(least.jobs) + 1 >= least.capacity:
            least = self._new_set(gpus) or least
        if least is not None:
            least.jobs.append(job)
        return least is not None

    def _rebalance(self) -> None:
        """Bring the nodes of every gang size towards its share of the demand."""
        demand = {g: g * sum(len(s.jobs) for s in sets) for g, sets in self.sets.items()}
        total = sum(demand.values())
        for gpus in sorted(demand):
            if not demand[gpus]:
                continue
            sets = self.sets[gpus]
            held = sum(s.nodes for s in sets) * self.node_gpus
            target = min(demand[gpus] * self.num_gpus // total, demand[gpus])
            count = abs(target - held) // (sets[0].nodes * self.node_gpus)
            if target < held:
                self._shrink(sets, min(count, len(sets) - 1))
            elif target > held:
                self._grow(gpus, count + 1)

    def _shrink(self, sets: list[_NodeSet], count: int) -> None:
        """Close sets and send their jobs to the others."""
        closed = sets[:count]
        del sets[:count]
        self.free += sum(node_set.nodes for node_set in closed)
        for job in [job for node_set in closed for job in node_set.jobs]:
            _least_used(sets).jobs.append(job)

    def _grow(self, gpus: int, count: int) -> None:
        """Open sets while jobs queue, and fill them from the tails of overfull ones."""
        for _ in range(count):
            crowded = [s for s in self.sets[gpus] if s.overfull]
            fresh = self._new_set(gpus) if crowded else None
            if fresh is None:
                return
            while len(fresh.jobs) < fresh.capacity and any(s.overfull for s in crowded):
                fresh.jobs.append(max(crowded, key=lambda s: len(s.jobs)).jobs.pop())
