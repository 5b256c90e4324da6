"""AntMan: guaranteed jobs own GPUs, opportunistic jobs share them.

Xiao et al., OSDI 2020, as the baseline in the public simulator of Muri, SIGCOMM 2022. Trace column
``priority``: 0 guaranteed, 1 opportunistic. Jobs run to their end without preemption.

1. A guaranteed job of g GPUs owns GPUs of one node, argmax over nodes of min(g, unowned GPUs). If
   these are fewer than g, it keeps them and waits for more GPUs of this node. A job wider than a
   node of W GPUs collects floor(g / W) whole nodes first, then g mod W GPUs of one more. While a
   waiting job keeps GPUs of a node, no other job takes GPUs there. So no jobs wait for each other.
2. An opportunistic job takes the g GPUs of least assumed utilisation, anywhere in the cluster. The
   utilisation is 0.1 for a guaranteed job plus 0.9 for an opportunistic job. GPUs from 0.8 on are
   not available, so that a GPU has at most one guaranteed and one opportunistic job.

A guaranteed job runs as if alone. An opportunistic job takes per iteration (`sharing`):

    tau = max(own solo time, max over guaranteed jobs c on its GPUs of m_c tau_c)

with tau_c the iteration time of c, and m_c the number of iterations that c makes while the
opportunistic job makes one. So jobs that share GPUs need stage times and ``iteration_time``.

Ties: jobs of equal ``priority`` go in order of arrival. Equal nodes and equal GPUs go by
the lowest index. With ``residue``, rounding errors of summed utilisations break ties of GPUs first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from repro.base.errors import TraceError
from repro.model.baseline import Baseline
from repro.model.decision import Run, RunSet
from repro.model.grouped import Grouped
from repro.model.policy import register
from repro.model.view import View
from repro.policies.muri.sharing import Sharing


class _Utilisation(NamedTuple):
    """Assumed utilisation of one GPU."""

    zero: float  #: utilisation of an idle GPU
    collecting: float  #: added when a guaranteed job takes the GPU
    starting: float  #: added when the guaranteed job starts
    guaranteed: float  #: subtracted when the guaranteed job ends
    opportunistic: float  #: utilisation of an opportunistic job
    limit: float  #: from here on the GPU takes no opportunistic job


#: Sums as in the public simulator, in floating point with rounding errors.
RESIDUE = _Utilisation(0.0, 0.1 - 0.01, 0.01, 0.1, 0.9, 0.8)
#: The same in whole per cent.
EXACT = _Utilisation(0, 9, 1, 10, 90, 80)

#: Owner of a GPU that no guaranteed job owns.
UNOWNED = -1


@register("antman")
@dataclass(frozen=True)
class AntMan(Grouped):
    """Guaranteed jobs own their GPUs, opportunistic jobs share them; no job is preempted.

    Trace column ``priority``: 0 guaranteed, 1 opportunistic. Without the column all jobs are
    guaranteed. Guaranteed jobs come first, then opportunistic jobs, each in order of arrival. Every
    job that fits starts. The speed of opportunistic jobs follows
    `repro.policies.muri.sharing.Sharing`.

    Parameters
    ----------
    residue : bool, optional
        Add and subtract assumed utilisations as the public simulator does. Its rounding errors
        decide between equally used GPUs (average JCT up to 2 % apart on its traces). False (rules
        ``paper``): such ties go to the lowest GPU. The rule sets differ in nothing else.

    Reference: Xiao et al., OSDI 2020; Muri, SIGCOMM 2022, public simulator (its AntMan baseline).
    """

    residue: bool | None = None

    needs = frozenset({"priority"})
    # Without opportunistic jobs, yarn-cs makes the same decisions on a single node. On several
    # nodes no policy does, because a waiting job of AntMan collects GPUs.
    baseline = Baseline(
        None,
        "without opportunistic jobs no GPUs are shared; give the column priority (0 guaranteed, "
        "1 opportunistic)",
        columns=("priority",),
    )
    rule_values: ClassVar = {"paper": {"residue": False}, "muri": {"residue": True}}

    def performance(self) -> Sharing:
        """Speed of opportunistic jobs on the GPUs of guaranteed jobs."""
        return Sharing()

    def never_runs(self, view: View) -> Callable[[int], str]:
        """Reason why a guaranteed job does not fit the nodes of the empty cluster."""
        opportunistic = _is_opportunistic(view)
        node_gpus = [node.gpus for node in view.cluster.nodes]
        largest = max(node_gpus)

        def reason(job: int) -> str:
            whole_nodes, remainder = _shape(view.gpus(job), largest)
            num_large_enough = sum(gpus >= remainder for gpus in node_gpus)
            # the whole nodes are among the nodes that are large enough for the remainder
            lacks_last_node = remainder > 0 and num_large_enough == whole_nodes
            if opportunistic[job] or not (
                whole_nodes > node_gpus.count(largest) or lacks_last_node
            ):
                return ""
            return (
                f"asks for {view.gpus(job)} GPUs, as a guaranteed job {whole_nodes} whole nodes of "
                f"{largest} GPUs and {remainder} GPUs of another; {view.cluster} has fewer: use a "
                f"larger cluster"
            )

        return reason

    def session(self, view: View) -> Callable[[View], RunSet]:
        """Decision function of one simulation."""
        return _Session(view, RESIDUE if self.residue else EXACT)


def _shape(gpus: int, largest_node_gpus: int) -> tuple[int, int]:
    """Whole nodes that a gang takes, and its GPUs of one more node."""
    return divmod(gpus, largest_node_gpus) if gpus > largest_node_gpus else (0, gpus)


class _Session:
    """State of one simulation: owners, jobs and utilisations of GPUs, numbered node by node."""

    def __init__(self, view: View, utilisation: _Utilisation) -> None:
        self.opportunistic = _is_opportunistic(view)
        self.utilisation = utilisation
        #: GPUs of each node
        self.nodes: list[range] = []
        for node in view.cluster.nodes:
            begin = self.nodes[-1].stop if self.nodes else 0
            self.nodes.append(range(begin, begin + node.gpus))
        self.node_of = [node for node, gpus in enumerate(self.nodes) for _ in gpus]
        self.largest_node_gpus = max(map(len, self.nodes))
        num_gpus = len(self.node_of)
        #: guaranteed job of each GPU, or `UNOWNED`
        self.owner = [UNOWNED] * num_gpus
        #: assumed utilisation of each GPU
        self.used = [utilisation.zero] * num_gpus
        #: GPUs without a guaranteed job, per node and in the cluster
        self.unowned_on = [len(gpus) for gpus in self.nodes]
        self.unowned = num_gpus
        #: GPUs without an opportunistic job
        self.unshared = num_gpus
        #: waiting jobs in order of arrival
        self.waiting_guaranteed: dict[int, None] = {}
        self.waiting_opportunistic: dict[int, None] = {}
        #: GPUs of each job that runs or collects GPUs
        self.gpus_of: dict[int, list[int]] = {}
        #: waiting guaranteed job -> node of which it keeps GPUs, beyond whole nodes
        self.reserved_node: dict[int, int] = {}
        self.guaranteed_runs: dict[int, Run] = {}
        self.opportunistic_runs: dict[int, Run] = {}

    def __call__(self, view: View) -> RunSet:
        """Start every job that fits."""
        guaranteed_ended = self._end(view.finished)
        for job in view.fresh:
            if self.opportunistic[job]:
                self.waiting_opportunistic[job] = None
            else:
                self.waiting_guaranteed[job] = None
        guaranteed_started = self._start_guaranteed(view)
        started = self._start_opportunistic(view)
        hosts_changed = guaranteed_started or guaranteed_ended
        affected = list(self.opportunistic_runs) if hosts_changed else started
        for job in affected:
            self._update_hosts(job)
        runs = [*self.guaranteed_runs.values(), *self.opportunistic_runs.values()]
        return RunSet(runs, "exact")

    def _end(self, jobs: Sequence[int]) -> bool:
        """Free the GPUs of finished jobs, guaranteed jobs first. True if a guaranteed job ended."""
        guaranteed_ended = False
        for job in sorted(jobs, key=self.opportunistic.__getitem__):
            gpus = self.gpus_of.pop(job)
            if self.opportunistic_runs.pop(job, None):
                self.unshared += len(gpus)
                for gpu in gpus:
                    self.used[gpu] -= self.utilisation.opportunistic
                continue
            del self.guaranteed_runs[job]
            guaranteed_ended = True
            self.unowned += len(gpus)
            for gpu in gpus:
                self.used[gpu] -= self.utilisation.guaranteed
                self.owner[gpu] = UNOWNED
                self.unowned_on[self.node_of[gpu]] += 1
        return guaranteed_ended

    def _shape(self, gpus: int) -> tuple[int, int]:
        """Whole nodes that a gang takes, and its GPUs of one more node."""
        return _shape(gpus, self.largest_node_gpus)

    def _start_guaranteed(self, view: View) -> bool:
        """Start the guaranteed jobs that have collected their GPUs. True if one started."""
        started: list[int] = []
        for job in self.waiting_guaranteed:
            if not self.unowned:
                break
            self.gpus_of.setdefault(job, [])
            if self._collect(job, *self._shape(view.gpus(job))):
                started.append(job)
        for job in started:
            del self.waiting_guaranteed[job]
            self.guaranteed_runs[job] = Run((job,), view.gpus(job))
        return bool(started)

    def _collect(self, job: int, whole_nodes: int, remainder: int) -> bool:
        """Collect GPUs for a guaranteed job. True if it has all of them."""
        gpus_of_job = self.gpus_of[job]
        on_whole_nodes = whole_nodes * self.largest_node_gpus
        for node, gpus in enumerate(self.nodes):
            if len(gpus_of_job) >= on_whole_nodes:
                break
            if self.unowned_on[node] == len(gpus) == self.largest_node_gpus:
                self._own(job, node, self.largest_node_gpus)
        if len(gpus_of_job) < on_whole_nodes:
            return False
        if remainder:
            last_node = self.reserved_node.get(job)
            if last_node is None:
                last_node = self._best_node(remainder)
            if last_node is None:
                return False
            self.reserved_node[job] = last_node
            self._own(job, last_node, on_whole_nodes + remainder - len(gpus_of_job))
        if len(gpus_of_job) < on_whole_nodes + remainder:
            return False
        self.reserved_node.pop(job, None)
        for gpu in gpus_of_job:
            self.used[gpu] += self.utilisation.starting
        return True

    def _best_node(self, gpus: int) -> int | None:
        """First node with that many unowned GPUs, else the first node with most of them.

        Nodes that are reserved or too small do not count. None: no node is left.
        """
        reserved = set(self.reserved_node.values())
        available = {
            node: min(gpus, unowned)
            for node, unowned in enumerate(self.unowned_on)
            if unowned and len(self.nodes[node]) >= gpus and node not in reserved
        }
        return max(available, key=available.__getitem__, default=None)

    def _own(self, job: int, node: int, gpus: int) -> None:
        """Give a job up to ``gpus`` unowned GPUs of a node, the lowest first."""
        unowned = [gpu for gpu in self.nodes[node] if self.owner[gpu] == UNOWNED][:gpus]
        for gpu in unowned:
            self.owner[gpu] = job
            self.used[gpu] += self.utilisation.collecting
        self.unowned_on[node] -= len(unowned)
        self.unowned -= len(unowned)
        self.gpus_of[job].extend(unowned)

    def _start_opportunistic(self, view: View) -> list[int]:
        """Start the opportunistic jobs that fit, on the least used GPUs."""
        started: list[int] = []
        for job in self.waiting_opportunistic:
            if not self.unshared:
                break
            gpus = view.gpus(job)
            if gpus > self.unshared:
                continue
            available = [gpu for gpu, used in enumerate(self.used) if used < self.utilisation.limit]
            self.gpus_of[job] = sorted(available, key=self.used.__getitem__)[:gpus]
            for gpu in self.gpus_of[job]:
                self.used[gpu] += self.utilisation.opportunistic
            self.unshared -= gpus
            started.append(job)
        for job in started:
            del self.waiting_opportunistic[job]
            self.opportunistic_runs[job] = Run((job,), view.gpus(job))
        return started

    def _update_hosts(self, job: int) -> None:
        """Record the running guaranteed jobs on the GPUs of an opportunistic job as its hosts."""
        owners = [self.owner[gpu] for gpu in self.gpus_of[job]]
        running_owners = [owner for owner in owners if owner in self.guaranteed_runs]
        hosts = tuple(sorted(set(running_owners)))
        if self.opportunistic_runs[job].hosts != hosts:
            num_shared = len(running_owners)
            self.opportunistic_runs[job] = Run((job,), len(owners), hosts=hosts, shared=num_shared)


def _is_opportunistic(view: View) -> list[bool]:
    """Whether each job is opportunistic; TraceError for a priority other than 0 and 1."""
    priority = view.column("priority", 0)
    for job, value in enumerate(priority):
        if value not in (0, 1):
            raise TraceError(
                f"{view.source}: {view.row(job)} has priority {value}; antman takes 0 "
                f"(guaranteed) and 1 (opportunistic)"
            )
    return [bool(value == 1) for value in priority]
