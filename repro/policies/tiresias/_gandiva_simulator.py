"""Gandiva by the rules of the public Tiresias simulator: node sets, jobs dealt out anew.

One call of `step` is one step of the simulator, of 10 s as shipped. The simulator begins a step
with the rebalancing that here ends the step before. Nothing happens in between, so that the jobs
that `step` leaves at the heads of their sets are those that run until the next step.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Flags, Floats, Ints
from repro.model.cluster.spec import Cluster
from repro.model.decision import RunSet
from repro.model.view import View

#: Gang sizes in the order in which the simulator visits them, that of a dictionary of Python 2.
#: Other sizes, at which it stops with an error, come after these in ascending order.
_VISITED = (16, 1, 2, 4, 24, 32, 8, 64, 12)
#: Entries of `Sets.tally`: nodes of no set, pending jobs, numbers in `Sets.spare`, and whether the
#: last rebalancing opened a set, or the last step moved jobs other than by rotation.
FREE, PENDING, SPARE, OPENED, MOVED = range(5)


class Sets(NamedTuple):
    """All node sets; a gang size is its index in the order of visits, a set is a number.

    Shapes: sizes (sizes,), sets (nodes of the cluster,), jobs (jobs,). The jobs of a set are a
    linked list; the first `capacity` jobs of it run.
    """

    #: of each size: GPUs of a gang, nodes of a set, gangs that run at once on a set
    gpus: Ints
    nodes: Ints
    capacity: Ints
    #: of each size: number of sets, and number of jobs in them
    number: Ints
    members: Ints
    #: (sizes, nodes of the cluster): sets of each size, roughly the least used first
    order: Ints
    #: of each set: jobs that entered since it was opened or dealt out; completions do not lower it
    usage: Ints
    #: of each set: number of jobs, first job and last job (-1: none)
    jobs: Ints
    first: Ints
    last: Ints
    #: of each job: its size, and the job behind it (-1: none)
    size: Ints
    behind: Ints
    #: (jobs,): jobs whose size had no set and no nodes for one
    pending: Ints
    #: (nodes of the cluster,): sets that are not open
    spare: Ints
    #: (jobs,): jobs of one size while they change sets
    moving: Ints
    #: (5,): counts
    tally: Ints
    #: GPUs of a node and of the cluster
    node_gpus: int
    num_gpus: int


def empty_sets(widths: Floats, cluster: Cluster) -> Sets:
    """Node sets before the first job, for jobs that ask for ``widths`` GPUs, (jobs,)."""
    gpus = widths.astype(np.int64)
    asked = set(gpus.tolist())
    known = [size for size in _VISITED if size in asked]
    sizes = np.array([*known, *sorted(asked - set(known))])
    place = {size: at for at, size in enumerate(sizes.tolist())}
    nodes = -(-sizes // cluster.gpus_per_node)
    num_nodes = cluster.num_nodes
    tally = np.zeros(5, np.int64)
    tally[FREE] = tally[SPARE] = num_nodes
    return Sets(
        gpus=sizes,
        nodes=nodes,
        capacity=nodes * cluster.gpus_per_node // sizes,
        number=np.zeros(len(sizes), np.int64),
        members=np.zeros(len(sizes), np.int64),
        order=np.zeros((len(sizes), num_nodes), np.int64),
        usage=np.zeros(num_nodes, np.int64),
        jobs=np.zeros(num_nodes, np.int64),
        first=np.full(num_nodes, -1),
        last=np.full(num_nodes, -1),
        size=np.array([place[width] for width in gpus.tolist()]),
        behind=np.full(len(gpus), -1),
        pending=np.zeros(len(gpus), np.int64),
        spare=np.arange(num_nodes),
        moving=np.zeros(len(gpus), np.int64),
        tally=tally,
        node_gpus=cluster.gpus_per_node,
        num_gpus=cluster.num_gpus,
    )


# lists of jobs and lists of sets ------------------------------------------------------------------


@njit()
def _append(s: Sets, node_set: int, job: int) -> None:
    """Put a job at the tail of a set."""
    if s.jobs[node_set] == 0:
        s.first[node_set] = job
    else:
        s.behind[s.last[node_set]] = job
    s.behind[job] = -1
    s.last[node_set] = job
    s.jobs[node_set] += 1


@njit()
def _empty_out(s: Sets, node_set: int, moved: int) -> int:
    """Move the jobs of a set to `Sets.moving`, from index ``moved`` on.

    Returns the number of jobs in `Sets.moving`.
    """
    job = s.first[node_set]
    while job >= 0:
        s.moving[moved] = job
        moved += 1
        job = s.behind[job]
    s.jobs[node_set] = 0
    s.first[node_set] = -1
    return moved


@njit()
def _open(s: Sets, size: int) -> int:
    """Open an empty set at the end of the list of its size; return it."""
    s.tally[FREE] -= s.nodes[size]
    s.tally[SPARE] -= 1
    node_set = int(s.spare[s.tally[SPARE]])
    s.usage[node_set] = 0
    s.order[size, s.number[size]] = node_set
    s.number[size] += 1
    return node_set


@njit()
def _close(s: Sets, size: int, node_set: int) -> None:
    """Give back the nodes of a set that is no longer in the list of its size."""
    s.tally[FREE] += s.nodes[size]
    s.spare[s.tally[SPARE]] = node_set
    s.tally[SPARE] += 1


@njit()
def _first_to_end(order: Ints) -> None:
    """Put the first set of a list behind the others."""
    first = order[0]
    for place in range(len(order) - 1):
        order[place] = order[place + 1]
    order[-1] = first


@njit()
def _sort(s: Sets, order: Ints) -> None:
    """Sort sets by usage; equal ones keep their order."""
    for place in range(1, len(order)):
        node_set = order[place]
        before = place
        while before > 0 and s.usage[order[before - 1]] > s.usage[node_set]:
            order[before] = order[before - 1]
            before -= 1
        order[before] = node_set


# one step -----------------------------------------------------------------------------------------


@njit()
def step(s: Sets, finished: Flags, some_finished: bool, rotates: bool, new: int, end: int) -> None:
    """Play one step, at which the jobs ``new`` to ``end`` - 1 arrive.

    `finished`, (jobs,): has finished; `some_finished`: a job finished since the last step;
    `rotates`: a slice ends at this step.
    """
    s.tally[MOVED] = 0
    released = _execute(s, finished, some_finished, rotates)
    for job in range(new, end):
        if not _enter(s, job):
            s.pending[s.tally[PENDING]] = job
            s.tally[PENDING] += 1
    if released:
        _retry(s)
    _rebalance(s)


@njit()
def _execute(s: Sets, finished: Flags, some_finished: bool, rotates: bool) -> bool:
    """Rotate the sets, drop finished jobs, close empty sets; return whether a set was closed."""
    released = False
    for size in range(len(s.gpus)):
        kept = 0
        for place in range(s.number[size]):
            node_set = s.order[size, place]
            # jobs that finish now still take part in the rotation
            if rotates and s.jobs[node_set] > s.capacity[size]:
                _rotate(s, node_set, s.capacity[size])
            if some_finished:
                before = s.jobs[node_set]
                _drop(s, finished, node_set)
                s.members[size] -= before - s.jobs[node_set]
            if s.jobs[node_set] > 0:
                s.order[size, kept] = node_set
                kept += 1
            else:
                _close(s, size, node_set)
                released = True
        s.number[size] = kept
    return released


@njit()
def _rotate(s: Sets, node_set: int, capacity: int) -> None:
    """Send the jobs that ran to the tail of a set in which others wait."""
    ran = s.first[node_set]
    for _ in range(capacity - 1):
        ran = s.behind[ran]
    s.behind[s.last[node_set]] = s.first[node_set]
    s.first[node_set] = s.behind[ran]
    s.last[node_set] = ran
    s.behind[ran] = -1


@njit()
def _drop(s: Sets, finished: Flags, node_set: int) -> None:
    """Take finished jobs out of a set."""
    job = s.first[node_set]
    s.jobs[node_set] = 0
    s.first[node_set] = -1
    while job >= 0:
        behind = s.behind[job]
        if not finished[job]:
            _append(s, node_set, job)
        job = behind


@njit()
def _enter(s: Sets, job: int) -> bool:
    """Put a job into a set: one with room to spare, a new one, or the second least used.

    Returns whether there was one.
    """
    size = s.size[job]
    count = s.number[size]
    if count > 0:
        least = s.order[size, 0]
        _first_to_end(s.order[size, :count])
        # strictly less: the last gang that a set has capacity for goes elsewhere if it can
        if s.usage[least] + 1 < s.capacity[size]:
            _take(s, size, least, job)
            return True
    if s.nodes[size] <= s.tally[FREE]:
        _take(s, size, _open(s, size), job)
        return True
    if count > 0:
        # the least used set is at the end of the list by now
        second = s.order[size, 0]
        _first_to_end(s.order[size, :count])
        _take(s, size, second, job)
        return True
    return False


@njit()
def _take(s: Sets, size: int, node_set: int, job: int) -> None:
    """Put a job into a set that is the last of the list of its size, and sort the list."""
    _append(s, node_set, job)
    s.members[size] += 1
    s.usage[node_set] += 1
    _sort(s, s.order[size, : s.number[size]])


@njit()
def _retry(s: Sets) -> None:
    """Let pending jobs enter; after each that does, the simulator skips the next one."""
    kept = 0
    place = 0
    while place < s.tally[PENDING]:
        if _enter(s, s.pending[place]):
            s.tally[MOVED] = 1
            place += 1
            if place == s.tally[PENDING]:
                break
        s.pending[kept] = s.pending[place]
        kept += 1
        place += 1
    s.tally[PENDING] = kept


@njit()
def _rebalance(s: Sets) -> None:
    """Bring the nodes of every gang size towards its share of the demand."""
    s.tally[OPENED] = 0
    total = 0
    for size in range(len(s.gpus)):
        total += s.gpus[size] * s.members[size]
    for size in range(len(s.gpus)):
        demand = s.gpus[size] * s.members[size]
        if demand == 0:
            continue
        # in this order of operations, whose rounding errors decide
        share = math.floor(demand / total * s.num_gpus)
        surplus = s.number[size] * s.nodes[size] * s.node_gpus - min(share, demand)
        # the number of sets is counted in gangs
        number = math.ceil(abs(surplus) / s.gpus[size])
        if surplus > 0:
            _shrink(s, size, min(number, s.number[size] - 1))
        elif surplus < 0:
            _expand(s, size, number)


@njit()
def _shrink(s: Sets, size: int, number: int) -> None:
    """Close the first sets and give each of their jobs to the set that is least used then."""
    if number == 0:
        return
    moved = 0
    for place in range(number):
        moved = _empty_out(s, s.order[size, place], moved)
        _close(s, size, s.order[size, place])
    s.number[size] -= number
    order = s.order[size]
    for place in range(s.number[size]):
        order[place] = order[place + number]
    for job in s.moving[:moved]:
        _append(s, order[0], job)
        s.usage[order[0]] += 1
        _sort(s, order[: s.number[size]])
    s.tally[MOVED] = 1


@njit()
def _expand(s: Sets, size: int, number: int) -> None:
    """Open sets as far as nodes are free, and deal all jobs of the size out among all its sets.

    If all sets were opened and have one node each, the simulator deals no jobs out: the sets stay
    empty and close in the next step.
    """
    opened = min(number, s.tally[FREE] // s.nodes[size])
    for _ in range(opened):
        _open(s, size)
    if opened > 0:
        s.tally[OPENED] = 1
    if opened < number or s.nodes[size] > 1:
        _deal(s, size)


@njit()
def _deal(s: Sets, size: int) -> None:
    """Give the jobs, set by set, each to the set that is least used then.

    A set that took a job stays ahead of sets that are as much used. So the sets take turns from
    first to last and then from last to first.
    """
    number = s.number[size]
    order = s.order[size, :number]
    moved = 0
    for node_set in order:
        moved = _empty_out(s, node_set, moved)
    if number > 1 or s.usage[order[0]] != moved:
        s.tally[MOVED] = 1
    for node_set in order:
        s.usage[node_set] = 0
    for at in range(moved):
        turn = at // number
        place = at % number
        node_set = order[place if turn % 2 == 0 else number - 1 - place]
        _append(s, node_set, s.moving[at])
        s.usage[node_set] += 1
    # the sets of the last turn, latest first, come behind those that it did not reach
    if moved // number % 2 == 1:
        _reverse(order)
    _reverse(order)
    _reverse(order[: number - moved % number])


@njit()
def _reverse(order: Ints) -> None:
    """Reverse a list of sets."""
    for place in range(len(order) // 2):
        other = len(order) - 1 - place
        order[place], order[other] = order[other], order[place]


@njit()
def set_heads(s: Sets, runs: Ints) -> int:
    """Write the jobs that run until the next step to `runs`, (jobs,); return how many."""
    number = 0
    for size in range(len(s.gpus)):
        for node_set in s.order[size, : s.number[size]]:
            job = s.first[node_set]
            for _ in range(min(s.capacity[size], s.jobs[node_set])):
                runs[number] = job
                number += 1
                job = s.behind[job]
    return number


@njit()
def ends_slice(now: float, slice_s: float) -> bool:
    """Whether a slice of ``slice_s`` ends at ``now`` (both s)."""
    slices = now / slice_s
    return bool(abs(slices - round(slices)) < 1e-9)


# decisions one by one -----------------------------------------------------------------------------


def stepper(slice_s: float, step_s: float, view: View) -> Callable[[View], RunSet]:
    """Return the decision function of one run."""
    s = empty_sets(view.widths, view.cluster)
    finished = np.zeros(len(view.widths), np.bool_)
    runs = np.zeros(len(view.widths), np.int64)

    def decide(view: View) -> RunSet:
        """Play one step and name the jobs that run until the next."""
        now = view.now
        opened = s.tally[OPENED]
        finished[view.finished] = True
        step(
            s, finished, bool(view.finished), ends_slice(now, slice_s), view.fresh.start,
            view.fresh.stop,
        )  # fmt: skip
        same = not (view.changed or s.tally[MOVED]) and s.tally[OPENED] == opened
        wake = _next_change(s, now, slice_s, step_s) if same else now + step_s
        return RunSet(runs[: set_heads(s, runs)].tolist(), "exact", wake)

    return decide


def _next_change(s: Sets, now: float, slice_s: float, step_s: float) -> float:
    """Return the next step (s) that can change anything, after one that changed nothing."""
    crowded = any(
        (s.jobs[s.order[size, : s.number[size]]] > s.capacity[size]).any()
        for size in range(len(s.gpus))
    )
    if not crowded:
        return math.inf
    look = now + step_s
    for _ in range(math.ceil(slice_s / step_s)):
        if ends_slice(look, slice_s):
            return look
        look += step_s
    # counted from this arrival, no step ever meets the end of a slice
    return math.inf if (slice_s / step_s).is_integer() else look
