"""AntMan: guaranteed jobs own GPUs, opportunistic ones use what time those leave."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from repro.base.errors import PolicyError, TraceError
from repro.model.baseline import Baseline
from repro.model.decision import Run, RunSet
from repro.model.grouped import Grouped
from repro.model.policy import register
from repro.model.view import View
from repro.policies.muri.sharing import Sharing

Use = tuple[float, float, float, float, float]

#: Assumed utilisation of a GPU by an owner that still collects, what its start adds, what its end
#: takes away, and that by a guest; a GPU from the last number on takes no guest.
RESIDUE: Use = (0.1 - 0.01, 0.01, 0.1, 0.9, 0.8)
EXACT: Use = (9, 1, 10, 90, 80)

NOBODY = -1


@register("antman")
@dataclass(frozen=True)
class AntMan(Grouped):
    """Guaranteed jobs own their GPUs, opportunistic ones share them; nobody is preempted.

    Trace column ``priority``: 0 guaranteed, 1 opportunistic; without it all jobs are guaranteed.
    Guaranteed jobs go first, then opportunistic ones, each in order of arrival; whoever can start
    does. A guaranteed job goes to the first node with enough GPUs that no other guaranteed job
    owns; if there is none, it takes the most any node has and waits for the rest of that node. A
    job wider than a node collects whole nodes. An opportunistic job takes the least used GPUs of
    the cluster, at most one such job per GPU; its speed follows
    `repro.policies.muri.sharing.Sharing`.

    Parameters
    ----------
    residue : bool, optional
        Add and subtract assumed utilisations as the public simulator does, whose rounding errors
        decide between GPUs equally used (mean JCT up to 2 % apart on its traces); False (rules
        ``paper``): such ties go to the lowest GPU. Nothing else differs between the rules.

    Reference: Xiao et al., OSDI 2020; Muri, SIGCOMM 2022, public simulator (its AntMan baseline).
    """

    residue: bool | None = None

    needs = frozenset({"priority"})
    # yarn-cs on one node only: on several a waiting owner collects GPUs
    baseline = Baseline(
        None,
        "without opportunistic jobs nobody shares GPUs; give the column priority (0 guaranteed, "
        "1 opportunistic)",
        columns=("priority",),
    )
    rule_values: ClassVar = {"paper": {"residue": False}, "muri": {"residue": True}}

    def performance(self) -> Sharing:
        """Return the speed of opportunistic jobs beside guaranteed ones."""
        return Sharing()

    def session(self, view: View) -> Callable[[View], RunSet]:
        """Return the GPUs of one run."""
        return _Ownership(view, residue=bool(self.residue))


class _Ownership:
    """One run: who owns each GPU, who is its guest, how used it is; numbered node by node.

    With ``residue`` utilisations are summed in floating point, with its rounding residue.
    """

    def __init__(self, view: View, *, residue: bool) -> None:
        if len(view.capacity()) > 1:
            raise PolicyError(
                f"antman shares GPUs of one type, the cluster has {dict(view.capacity())}; use a "
                f"cluster of one type"
            )
        priority = view.column("priority", 0)
        wrong = [job for job, value in enumerate(priority) if value not in (0, 1)]
        if wrong:
            raise TraceError(
                f"{view.source}: {view.row(wrong[0])} has priority {priority[wrong[0]]}; antman "
                f"knows 0 (guaranteed) and 1 (opportunistic)"
            )
        self.opportunistic: list[bool] = (priority == 1).tolist()
        use = RESIDUE if residue else EXACT
        self.collecting, self.starting, self.by_owner, self.by_guest, self.limit = use
        self.nodes: list[range] = []
        for node in view.cluster.nodes:
            first = self.nodes[-1].stop if self.nodes else 0
            self.nodes.append(range(first, first + node.gpus))
        self.node_of = [n for n, gpus in enumerate(self.nodes) for _ in gpus]
        self.width = max(len(gpus) for gpus in self.nodes)
        total = len(self.node_of)
        self.owner = [NOBODY] * total
        self.used = [0.0 if residue else 0] * total
        #: GPUs without owner per node and in all, and GPUs without guest
        self.unowned = [len(gpus) for gpus in self.nodes]
        self.free = total
        self.unvisited = total
        #: waiting jobs in order of arrival, and the GPUs running or collecting jobs have
        self.waiting: tuple[dict[int, None], dict[int, None]] = ({}, {})
        self.held: dict[int, list[int]] = {}
        #: node a waiting owner collects GPUs of
        self.home: dict[int, int] = {}
        self.owners: dict[int, Run] = {}
        self.guests: dict[int, Run] = {}
        #: an owner has left since the last decision
        self.owner_left = False

    def _leave(self, jobs: list[int]) -> None:
        """Take back the GPUs of finished jobs, those of owners first."""
        for job in sorted(jobs, key=self.opportunistic.__getitem__):
            gpus = self.held.pop(job)
            if self.guests.pop(job, None):
                self.unvisited += len(gpus)
                for gpu in gpus:
                    self.used[gpu] -= self.by_guest
                continue
            del self.owners[job]
            self.owner_left = True
            self.free += len(gpus)
            for gpu in gpus:
                self.used[gpu] -= self.by_owner
                self.owner[gpu] = NOBODY
                self.unowned[self.node_of[gpu]] += 1

    def __call__(self, view: View) -> RunSet:
        """Start whoever can start."""
        self._leave(view.finished)
        for job in view.fresh:
            self.waiting[self.opportunistic[job]][job] = None
            if not self.opportunistic[job]:
                self._check_possible(view, job)
        moved = self._start_owners(view) or self.owner_left
        self.owner_left = False
        started = self._start_guests(view)
        for job in self.guests if moved else started:
            self._revisit(job)
        return RunSet([*self.owners.values(), *self.guests.values()], "exact")

    def _check_possible(self, view: View, job: int) -> None:
        """Refuse a guaranteed job that no empty cluster has nodes for."""
        whole, rest = self._shape(view.gpus(job))
        fitting = sum(len(gpus) == self.width for gpus in self.nodes)
        remainder = sum(len(gpus) >= rest for gpus in self.nodes)
        if whole > fitting or (rest and remainder == whole):
            raise TraceError(
                f"a guaranteed job of {view.gpus(job)} GPUs takes {whole} whole nodes of "
                f"{self.width} GPUs and {rest} GPUs of another; {view.cluster} has not as many: "
                f"use a larger cluster"
            )

    def _shape(self, gpus: int) -> tuple[int, int]:
        """Return the whole nodes a job takes and the GPUs of one more node."""
        return divmod(gpus, self.width) if gpus > self.width else (0, gpus)

    def _start_owners(self, view: View) -> bool:
        """Start the guaranteed jobs that have collected their GPUs; return whether any did."""
        started: list[int] = []
        for job in self.waiting[0]:
            if not self.free:
                break
            held = self.held.setdefault(job, [])
            if self._collect(job, held, *self._shape(view.gpus(job))):
                started.append(job)
        for job in started:
            del self.waiting[0][job]
            self.home.pop(job, None)
            self.owners[job] = Run((job,), view.gpus(job))
        return bool(started)

    def _collect(self, job: int, held: list[int], whole: int, rest: int) -> bool:
        """Take what there is for an owner, and return whether it has all it needs."""
        for node, gpus in enumerate(self.nodes):
            if len(held) >= whole * self.width:
                break
            if self.unowned[node] == len(gpus) == self.width:
                self._own(job, node, self.width)
        if len(held) < whole * self.width:
            return False
        if rest:
            home = self.home[job] if job in self.home else self._emptiest(rest)
            if home is None:
                return False
            self.home[job] = home
            self._own(job, home, whole * self.width + rest - len(held))
        if len(held) < whole * self.width + rest:
            return False
        for gpu in held:
            self.used[gpu] += self.starting
        return True

    def _emptiest(self, gpus: int) -> int | None:
        """Return the first node with room, else the first of those that have most of it."""
        room = {
            node: min(gpus, unowned)
            for node, unowned in enumerate(self.unowned)
            if unowned and len(self.nodes[node]) >= gpus
        }
        return max(room, key=room.__getitem__, default=None)

    def _own(self, job: int, node: int, gpus: int) -> None:
        """Let a job own up to so many GPUs of a node, the lowest first."""
        free = [gpu for gpu in self.nodes[node] if self.owner[gpu] == NOBODY][:gpus]
        for gpu in free:
            self.owner[gpu] = job
            self.used[gpu] += self.collecting
        self.unowned[node] -= len(free)
        self.free -= len(free)
        self.held[job].extend(free)

    def _start_guests(self, view: View) -> list[int]:
        """Start the opportunistic jobs that find GPUs, the least used first."""
        started: list[int] = []
        for job in self.waiting[1]:
            if not self.unvisited:
                break
            gpus = view.gpus(job)
            if gpus > self.unvisited:
                continue
            open_ = [gpu for gpu, used in enumerate(self.used) if used < self.limit]
            self.held[job] = sorted(open_, key=self.used.__getitem__)[:gpus]
            for gpu in self.held[job]:
                self.used[gpu] += self.by_guest
            self.unvisited -= gpus
            started.append(job)
        for job in started:
            del self.waiting[1][job]
            self.guests[job] = Run((job,), view.gpus(job))
        return started

    def _revisit(self, job: int) -> None:
        """Name the running jobs whose GPUs a guest uses now."""
        owners = [self.owner[gpu] for gpu in self.held[job]]
        shared = [owner for owner in owners if owner in self.owners]
        hosts = tuple(sorted(set(shared)))
        if self.guests[job].hosts != hosts:
            self.guests[job] = Run((job,), len(owners), hosts=hosts, shared=len(shared))
