"""Gandiva as Tiresias simulates it (section 5.3): time slicing of gangs inside sets of nodes.

Gangs of one size of g GPUs share node sets. A set has ceil(g / GPUs per node) nodes. Its capacity
is floor(nodes x GPUs per node / g) gangs, and its first jobs up to the capacity run. On unequal
nodes, a set holds on each node as many GPUs as the smallest node has. At the end of every slice the
jobs that ran go to the tail. With n_g jobs of size g and G GPUs, rebalancing brings the GPUs of a
size towards

    min(g n_g, floor(G g n_g / sum_h h n_h)).

Ties: of equally used sets the first in the list of the size. Sizes are rebalanced in ascending
order (``paper``), or in the order 16, 1, 2, 4, 24, 32, 8, 64, 12, then ascending (``simulator``).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ClassVar, Literal

from repro.base.errors import ParamError
from repro.model.cluster.spec import Cluster
from repro.model.decision import Decision, RunSet
from repro.model.policy import CompiledRun, Policy, register
from repro.model.rules import Completions
from repro.model.settings import Above
from repro.model.view import View
from repro.policies.tiresias._gandiva_run import simulate_steps
from repro.policies.tiresias._gandiva_simulator import nodes_of_sets, stepper


@register("gandiva")
@dataclass(frozen=True)
class Gandiva(Policy):
    """Time slicing only: gangs of one size share node sets, and each set rotates every slice.

    Parameters
    ----------
    slice_s : float
        Seconds between rotations.
    step_s : float, optional
        Period (s) of the steps at which completions and rotations take effect. Every arrival is a
        step, and the next steps are counted from it. Sets rotate only at steps whose instant is a
        multiple of ``slice_s``. Infinity (rules ``paper``): completions and rotations take effect
        at once.
    form : {"paper", "simulator"}, optional
        Rules of the node sets: of the paper, or of the public simulator. They differ in three
        points.

        - Number of sets to close or open. ``paper``: surplus or lack of GPUs divided by the GPUs of
          a set. ``simulator``: divided by the gang size.
        - Usage of a set. ``paper``: its jobs. ``simulator``: all jobs that entered since the set
          was opened or refilled, so that the usage does not fall when a job ends.
        - Jobs of new sets. ``paper``: they come from overfull sets. ``simulator``: if nodes are
          short or sets have several nodes, all jobs of the size are distributed again.

    Reference: Tiresias, NSDI 2019, sections 5.1 and 5.3 (its Gandiva baseline); Gandiva, OSDI 2018.
    """

    slice_s: Annotated[float, Above(0, "seconds")] = 60.0
    step_s: Annotated[float, Above(0, "seconds")] | None = None
    form: Literal["paper", "simulator"] | None = None

    names_types: ClassVar[bool] = False
    time_fields = ("slice_s", "step_s")
    rule_values: ClassVar = {
        "paper": {"step_s": math.inf, "form": "paper"},
        "tiresias": {"step_s": 10.0, "form": "simulator"},
    }

    @property
    def poll_s(self) -> float:
        """Seconds between steps; 0: events take effect at once."""
        return 0.0 if self.step_s in (None, math.inf) else self.step_s

    def completions(self) -> Completions:
        """Completions take effect at the next step."""
        return Completions(poll_s=self.poll_s, decides=self.form == "simulator")

    def session(self, view: View) -> Callable[[View], Decision]:
        """Decision function of one simulation, with its node sets."""
        if self.form != "simulator":
            return _Slicer(self, view)
        if view.gpu_types != (None,):
            raise ParamError(
                "gandiva: form=simulator knows no GPU types; give form=paper, or a cluster without "
                "types"
            )
        if not self.poll_s:
            raise ParamError(
                "gandiva: form=simulator decides at fixed steps; give step_s, 10 in the simulator"
            )
        return stepper(self.slice_s, self.poll_s, view)

    def never_runs(self, view: View) -> Callable[[int], str]:
        """Reason why a job finds no node set: the cluster has too few nodes."""
        num_nodes, node_gpus = nodes_of_sets(view.cluster)
        num_gpus = node_gpus * num_nodes

        def reason(job: int) -> str:
            if view.gpus(job) <= num_gpus:
                return ""
            return (
                f"asks for {view.gpus(job)} GPUs, and a set of all nodes has {num_gpus}, "
                f"{node_gpus} on each node"
            )

        return reason

    def compiled_run(self, cluster: Cluster) -> CompiledRun | None:
        """Compiled steps of the public simulator, for equal nodes without GPU types."""
        equal_nodes = len({node.gpus for node in cluster.nodes}) == 1 and not cluster.gpu_types
        if self.form != "simulator" or not equal_nodes:
            return None
        return partial(simulate_steps, slice_s=self.slice_s, step_s=self.poll_s)


@dataclass
class _NodeSet:
    """Nodes that serve gangs of one size. The first `capacity` jobs of the list run."""

    capacity: int
    nodes: int
    jobs: list[int] = field(default_factory=list)

    @property
    def is_overfull(self) -> bool:
        """Whether some of its jobs wait."""
        return len(self.jobs) > self.capacity


def _least_used(sets: list[_NodeSet]) -> _NodeSet:
    """First of the sets with the fewest jobs."""
    return min(sets, key=lambda node_set: len(node_set.jobs))


class _Slicer:
    """Node sets in form ``paper``."""

    def __init__(self, policy: Gandiva, view: View) -> None:
        self.policy = policy
        self.free_nodes, self.node_gpus = nodes_of_sets(view.cluster)
        self.num_gpus = view.cluster.num_gpus
        #: gang size (GPUs) -> its node sets
        self.sets: dict[int, list[_NodeSet]] = {}
        #: unfinished job -> gang size (GPUs)
        self.gang_sizes: dict[int, int] = {}
        #: jobs of a gang size without a set, for which too few nodes are free
        self.pending: list[int] = []

    def __call__(self, view: View) -> Decision:
        """Remove completed jobs, rotate, enter new jobs, and rebalance."""
        now = view.now
        jobs = view.jobs
        before = self._fingerprint()
        has_freed_nodes = self._remove_completed(jobs) if view.changed else False
        if self._ends_slice(now):
            self._rotate(view)
        for job in jobs:
            if job not in self.gang_sizes:
                self.gang_sizes[job] = view.gpus(job)
                if not self._enter(job):
                    self.pending.append(job)
        if has_freed_nodes:
            self.pending = [job for job in self.pending if not self._enter(job)]
        self._rebalance()
        running = [
            job for node_set in self._all_sets() for job in node_set.jobs[: node_set.capacity]
        ]
        is_settled = not view.changed and self._fingerprint() == before
        return RunSet(running, "exact", self._wake(now, is_settled))

    def _all_sets(self) -> Iterator[_NodeSet]:
        """Node sets of all sizes."""
        for sets in self.sets.values():
            yield from sets

    def _fingerprint(self) -> list[int]:
        """Numbers that decide the next step if no job arrives or completes."""
        jobs = (len(node_set.jobs) for node_set in self._all_sets())
        return [self.free_nodes, len(self.pending), *jobs]

    def _ends_slice(self, now: float) -> bool:
        """Whether a slice ends now."""
        slices = now / self.policy.slice_s
        return abs(slices - round(slices)) < 1e-9

    def _wake(self, now: float, is_settled: bool) -> float:
        """Time of the next decision (s). A settled step changed nothing."""
        is_overfull = any(node_set.is_overfull for node_set in self._all_sets())
        step_s = self.policy.poll_s
        slice_s = self.policy.slice_s
        if not step_s:
            rotation = (math.floor(now / slice_s + 1e-9) + 1) * slice_s
            return rotation if is_overfull or self.pending else math.inf
        if not is_settled:
            return now + step_s
        if not is_overfull:
            return math.inf
        wake = now + step_s
        for _ in range(math.ceil(slice_s / step_s)):
            if self._ends_slice(wake):
                return wake
            wake += step_s
        # No step within a slice's length meets the end of a slice. If slices are whole numbers of
        # steps, no later step does.
        return math.inf if (slice_s / step_s).is_integer() else wake

    def _remove_completed(self, jobs: list[int]) -> bool:
        """Remove completed jobs and empty sets. True if nodes became free."""
        for job in self.gang_sizes.keys() - set(jobs):
            for node_set in self.sets.get(self.gang_sizes.pop(job), []):
                if job in node_set.jobs:
                    node_set.jobs.remove(job)
        free_before = self.free_nodes
        for gpus, sets in self.sets.items():
            self.free_nodes += sum(node_set.nodes for node_set in sets if not node_set.jobs)
            self.sets[gpus] = [node_set for node_set in sets if node_set.jobs]
        return self.free_nodes > free_before

    def _rotate(self, view: View) -> None:
        """Send the jobs that ran to the tail of every overfull set."""
        for node_set in self._all_sets():
            if node_set.is_overfull:
                # A stable sort, in which waiting jobs (False) come first.
                node_set.jobs.sort(key=view.is_running)

    def _open_set(self, gpus: int) -> _NodeSet | None:
        """Open a set for gangs of this size, if its nodes are free."""
        nodes = math.ceil(gpus / self.node_gpus)
        if nodes > self.free_nodes:
            return None
        self.free_nodes -= nodes
        node_set = _NodeSet(nodes * self.node_gpus // gpus, nodes)
        self.sets.setdefault(gpus, []).append(node_set)
        return node_set

    def _enter(self, job: int) -> bool:
        """Put a job into the least used set. False if the size has no set.

        If the job would fill this set, a new set is opened instead where nodes are free.
        """
        gpus = self.gang_sizes[job]
        sets = self.sets.get(gpus)
        chosen = _least_used(sets) if sets else None
        # As in the public simulator, the last gang of a set goes to another set if it can.
        if chosen is None or len(chosen.jobs) + 1 >= chosen.capacity:
            chosen = self._open_set(gpus) or chosen
        if chosen is None:
            return False
        chosen.jobs.append(job)
        return True

    def _rebalance(self) -> None:
        """Bring the nodes of every gang size towards its share of the demand."""
        demand = {
            gpus: gpus * sum(len(node_set.jobs) for node_set in sets)
            for gpus, sets in self.sets.items()
        }
        total_demand = sum(demand.values())
        for gpus in sorted(demand):
            if not demand[gpus]:
                continue
            sets = self.sets[gpus]
            set_gpus = sets[0].nodes * self.node_gpus
            present_gpus = len(sets) * set_gpus
            target_gpus = min(demand[gpus] * self.num_gpus // total_demand, demand[gpus])
            count = abs(target_gpus - present_gpus) // set_gpus
            if target_gpus < present_gpus:
                self._shrink(sets, min(count, len(sets) - 1))
            elif target_gpus > present_gpus:
                self._grow(gpus, count + 1)

    def _shrink(self, sets: list[_NodeSet], count: int) -> None:
        """Close the first sets, and move their jobs to the others."""
        closed = sets[:count]
        del sets[:count]
        self.free_nodes += sum(node_set.nodes for node_set in closed)
        for job in [job for node_set in closed for job in node_set.jobs]:
            _least_used(sets).jobs.append(job)

    def _grow(self, gpus: int, count: int) -> None:
        """Open sets while sets are overfull, and fill them from the tails of overfull sets."""
        for _ in range(count):
            overfull = [node_set for node_set in self.sets[gpus] if node_set.is_overfull]
            opened = self._open_set(gpus) if overfull else None
            if opened is None:
                return
            while len(opened.jobs) < opened.capacity and any(
                node_set.is_overfull for node_set in overfull
            ):
                fullest = max(overfull, key=lambda node_set: len(node_set.jobs))
                opened.jobs.append(fullest.jobs.pop())
