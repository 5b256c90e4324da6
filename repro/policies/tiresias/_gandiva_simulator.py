"""Gandiva by the rules of the public Tiresias simulator: node sets and their rebalancing.

One call of `step` is one step of the simulator, of 10 s as shipped. The simulator begins a step
with a rebalancing. Here this rebalancing ends the step before, as nothing happens in between. So
the jobs at the heads of their sets after `step` run until the next step.

With n_g jobs and N_g sets of gangs of g GPUs, a set of m_g nodes, b GPUs per node and G GPUs:

    target_g = min(floor(g n_g / (sum_h h n_h) G), g n_g)
    change   = ceil(|N_g m_g b - target_g| / g) sets are closed (surplus) or opened (lack)

Ties: sets of equal usage keep their order in the list of the size. Sizes are visited in the order
16, 1, 2, 4, 24, 32, 8, 64, 12, then the others in ascending order.
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

#: Gang sizes in the simulator's order of visits, that of a dictionary of Python 2. The simulator
#: stops with an error at other sizes. Here other sizes follow in ascending order.
_VISIT_ORDER = (16, 1, 2, 4, 24, 32, 8, 64, 12)
#: Entries of `Sets.tally`, in order:
#: - free nodes,
#: - pending jobs,
#: - valid entries of `Sets.spare`,
#: - 1 if the last rebalancing opened a set,
#: - 1 if the last step moved jobs other than by rotation.
FREE, PENDING, SPARE, OPENED, MOVED = range(5)


class Sets(NamedTuple):
    """All node sets. A gang size is its index in the order of visits, a set is a number.

    The jobs of a set are a linked list. Its first `capacity` jobs run.
    """

    #: (sizes,): GPUs of a gang
    gpus: Ints
    #: (sizes,): nodes of a set
    nodes: Ints
    #: (sizes,): gangs that run at once on a set
    capacity: Ints
    #: (sizes,): number of sets
    num_sets: Ints
    #: (sizes,): number of jobs in the sets
    num_members: Ints
    #: (sizes, nodes of the cluster): sets of each size, roughly the least used first
    order: Ints
    #: (sets,): jobs that entered since the set was opened or refilled; completions do not lower it
    usage: Ints
    #: (sets,): number of jobs
    num_jobs: Ints
    #: (sets,): first job, -1 in an empty set
    first: Ints
    #: (sets,): last job
    last: Ints
    #: (jobs,): gang size
    size: Ints
    #: (jobs,): next job of the set, -1 for the last
    behind: Ints
    #: (jobs,): jobs of a gang size without a set, for which too few nodes are free
    pending: Ints
    #: (nodes of the cluster,): numbers of sets that are not open
    spare: Ints
    #: (jobs,): scratch, jobs of one size while they change sets
    moving: Ints
    #: (5,): see `FREE` and the names after it
    tally: Ints
    #: GPUs of a node
    node_gpus: int
    #: GPUs of the cluster
    num_gpus: int


def nodes_of_sets(cluster: Cluster) -> tuple[int, int]:
    """Nodes that node sets can have, and the GPUs that a set holds on each of its nodes.

    The nodes are those with a GPU that jobs can get. The GPUs are those of the smallest of them.
    """
    gpus = [node.gpus for node in cluster.nodes if node.gpus]
    return len(gpus), min(gpus)


def empty_sets(widths: Floats, cluster: Cluster) -> Sets:
    """Node sets before the first job, for jobs of these demands (GPUs), (jobs,)."""
    gpus = widths.astype(np.int64)
    demands = set(gpus.tolist())
    usual_sizes = [size for size in _VISIT_ORDER if size in demands]
    other_sizes = sorted(demands - set(usual_sizes))
    sizes = np.array([*usual_sizes, *other_sizes])
    index_of = {size: index for index, size in enumerate(sizes.tolist())}
    num_nodes, node_gpus = nodes_of_sets(cluster)
    nodes = -(-sizes // node_gpus)
    num_jobs = len(gpus)
    tally = np.zeros(5, np.int64)
    tally[FREE] = num_nodes
    tally[SPARE] = num_nodes
    return Sets(
        gpus=sizes,
        nodes=nodes,
        capacity=nodes * node_gpus // sizes,
        num_sets=np.zeros(len(sizes), np.int64),
        num_members=np.zeros(len(sizes), np.int64),
        order=np.zeros((len(sizes), num_nodes), np.int64),
        usage=np.zeros(num_nodes, np.int64),
        num_jobs=np.zeros(num_nodes, np.int64),
        first=np.full(num_nodes, -1),
        last=np.full(num_nodes, -1),
        size=np.array([index_of[demand] for demand in gpus.tolist()]),
        behind=np.full(num_jobs, -1),
        pending=np.zeros(num_jobs, np.int64),
        spare=np.arange(num_nodes),
        moving=np.zeros(num_jobs, np.int64),
        tally=tally,
        node_gpus=node_gpus,
        num_gpus=cluster.num_gpus,
    )


# lists of jobs and lists of sets ------------------------------------------------------------------


@njit()
def _append(s: Sets, node_set: int, job: int) -> None:
    """Put a job at the tail of a set."""
    if s.num_jobs[node_set] == 0:
        s.first[node_set] = job
    else:
        s.behind[s.last[node_set]] = job
    s.behind[job] = -1
    s.last[node_set] = job
    s.num_jobs[node_set] += 1


@njit()
def _take_out(s: Sets, node_set: int, num_moving: int) -> int:
    """Move the jobs of a set to `Sets.moving`, behind the ``num_moving`` jobs there.

    Returns the number of jobs that are then in `Sets.moving`.
    """
    job = s.first[node_set]
    while job >= 0:
        s.moving[num_moving] = job
        num_moving += 1
        job = s.behind[job]
    s.num_jobs[node_set] = 0
    s.first[node_set] = -1
    return num_moving


@njit()
def _open(s: Sets, size: int) -> int:
    """Open an empty set at the end of the list of its size, and return it."""
    s.tally[FREE] -= s.nodes[size]
    s.tally[SPARE] -= 1
    node_set = int(s.spare[s.tally[SPARE]])
    s.usage[node_set] = 0
    s.order[size, s.num_sets[size]] = node_set
    s.num_sets[size] += 1
    return node_set


@njit()
def _close(s: Sets, size: int, node_set: int) -> None:
    """Free the nodes of a set that has left the list of its size."""
    s.tally[FREE] += s.nodes[size]
    s.spare[s.tally[SPARE]] = node_set
    s.tally[SPARE] += 1


@njit()
def _first_to_end(order: Ints) -> None:
    """Move the first set of a list to its end."""
    first = order[0]
    for index in range(len(order) - 1):
        order[index] = order[index + 1]
    order[-1] = first


@njit()
def _sort(s: Sets, order: Ints) -> None:
    """Sort sets by usage; sets of equal usage keep their order."""
    for index in range(1, len(order)):
        node_set = order[index]
        target = index
        while target > 0 and s.usage[order[target - 1]] > s.usage[node_set]:
            order[target] = order[target - 1]
            target -= 1
        order[target] = node_set


# one step -----------------------------------------------------------------------------------------


@njit()
def step(
    s: Sets, finished: Flags, some_finished: bool, rotates: bool, first_new: int, end_new: int
) -> None:
    """Simulate one step, at which the jobs ``first_new`` to ``end_new`` - 1 arrive.

    ``finished``, (jobs,): has finished. ``some_finished``: a job finished since the last step.
    ``rotates``: a slice ends at this step.
    """
    s.tally[MOVED] = 0
    has_freed_nodes = _execute(s, finished, some_finished, rotates)
    for job in range(first_new, end_new):
        if not _enter(s, job):
            s.pending[s.tally[PENDING]] = job
            s.tally[PENDING] += 1
    if has_freed_nodes:
        _retry_pending(s)
    _rebalance(s)


@njit()
def _execute(s: Sets, finished: Flags, some_finished: bool, rotates: bool) -> bool:
    """Rotate the sets, remove finished jobs, close empty sets; return whether a set was closed."""
    has_closed = False
    for size in range(len(s.gpus)):
        kept = 0
        for index in range(s.num_sets[size]):
            node_set = s.order[size, index]
            # jobs that finish now still take part in the rotation
            if rotates and s.num_jobs[node_set] > s.capacity[size]:
                _rotate(s, node_set, s.capacity[size])
            if some_finished:
                jobs_before = s.num_jobs[node_set]
                _remove_finished(s, finished, node_set)
                s.num_members[size] -= jobs_before - s.num_jobs[node_set]
            if s.num_jobs[node_set] > 0:
                s.order[size, kept] = node_set
                kept += 1
            else:
                _close(s, size, node_set)
                has_closed = True
        s.num_sets[size] = kept
    return has_closed


@njit()
def _rotate(s: Sets, node_set: int, capacity: int) -> None:
    """Move the jobs that ran to the tail of a set in which other jobs wait."""
    last_run = s.first[node_set]
    for _ in range(capacity - 1):
        last_run = s.behind[last_run]
    s.behind[s.last[node_set]] = s.first[node_set]
    s.first[node_set] = s.behind[last_run]
    s.last[node_set] = last_run
    s.behind[last_run] = -1


@njit()
def _remove_finished(s: Sets, finished: Flags, node_set: int) -> None:
    """Remove finished jobs from a set."""
    job = s.first[node_set]
    s.num_jobs[node_set] = 0
    s.first[node_set] = -1
    while job >= 0:
        behind = s.behind[job]
        if not finished[job]:
            _append(s, node_set, job)
        job = behind


@njit()
def _enter(s: Sets, job: int) -> bool:
    """Put a job into the least used set if it has room for two more gangs, else a new set.

    Without nodes for a new set, the job enters the second least used set. False if the size has no
    set.
    """
    size = s.size[job]
    count = s.num_sets[size]
    if count > 0:
        least = s.order[size, 0]
        _first_to_end(s.order[size, :count])
        # Strictly less: the last gang that a set has capacity for goes to another set if it can.
        if s.usage[least] + 1 < s.capacity[size]:
            _put(s, size, least, job)
            return True
    if s.nodes[size] <= s.tally[FREE]:
        _put(s, size, _open(s, size), job)
        return True
    if count > 0:
        # the least used set has moved to the end of the list
        second = s.order[size, 0]
        _first_to_end(s.order[size, :count])
        _put(s, size, second, job)
        return True
    return False


@njit()
def _put(s: Sets, size: int, node_set: int, job: int) -> None:
    """Put a job into a set of its size, which is the last of the list, and sort the list."""
    _append(s, node_set, job)
    s.num_members[size] += 1
    s.usage[node_set] += 1
    _sort(s, s.order[size, : s.num_sets[size]])


@njit()
def _retry_pending(s: Sets) -> None:
    """Let pending jobs enter. After each job that enters, the simulator skips the next one."""
    kept = 0
    index = 0
    while index < s.tally[PENDING]:
        if _enter(s, s.pending[index]):
            s.tally[MOVED] = 1
            index += 1
            if index == s.tally[PENDING]:
                break
        s.pending[kept] = s.pending[index]
        kept += 1
        index += 1
    s.tally[PENDING] = kept


@njit()
def _rebalance(s: Sets) -> None:
    """Bring the nodes of every gang size towards its share of the demand."""
    s.tally[OPENED] = 0
    total_demand = 0
    for size in range(len(s.gpus)):
        total_demand += s.gpus[size] * s.num_members[size]
    for size in range(len(s.gpus)):
        demand = s.gpus[size] * s.num_members[size]
        if demand == 0:
            continue
        # in this order of operations: the rounding error decides
        share = math.floor(demand / total_demand * s.num_gpus)
        surplus = s.num_sets[size] * s.nodes[size] * s.node_gpus - min(share, demand)
        # as many sets as the surplus has gangs, even if a set serves several gangs
        count = math.ceil(abs(surplus) / s.gpus[size])
        if surplus > 0:
            _shrink(s, size, min(count, s.num_sets[size] - 1))
        elif surplus < 0:
            _expand(s, size, count)


@njit()
def _shrink(s: Sets, size: int, count: int) -> None:
    """Close the first sets, and put each of their jobs into the set that is then least used."""
    if count == 0:
        return
    num_moving = 0
    for index in range(count):
        num_moving = _take_out(s, s.order[size, index], num_moving)
        _close(s, size, s.order[size, index])
    s.num_sets[size] -= count
    order = s.order[size]
    for index in range(s.num_sets[size]):
        order[index] = order[index + count]
    for job in s.moving[:num_moving]:
        _append(s, order[0], job)
        s.usage[order[0]] += 1
        _sort(s, order[: s.num_sets[size]])
    s.tally[MOVED] = 1


@njit()
def _expand(s: Sets, size: int, count: int) -> None:
    """Open sets while nodes are free, and distribute all jobs of the size over all its sets.

    If all ``count`` sets are opened and have one node each, the simulator distributes no jobs. The
    new sets then stay empty and close in the next step.
    """
    opened = min(count, s.tally[FREE] // s.nodes[size])
    for _ in range(opened):
        _open(s, size)
    if opened > 0:
        s.tally[OPENED] = 1
    if opened < count or s.nodes[size] > 1:
        _distribute(s, size)


@njit()
def _distribute(s: Sets, size: int) -> None:
    """Distribute the jobs, set by set, each to the set that is then least used.

    A set that has just got a job stays ahead of sets of equal usage. So the sets take turns from
    first to last, and then from last to first.
    """
    num_sets = s.num_sets[size]
    order = s.order[size, :num_sets]
    num_moving = 0
    for node_set in order:
        num_moving = _take_out(s, node_set, num_moving)
    if num_sets > 1 or s.usage[order[0]] != num_moving:
        s.tally[MOVED] = 1
    for node_set in order:
        s.usage[node_set] = 0
    for position in range(num_moving):
        turn = position // num_sets
        index = position % num_sets
        node_set = order[index if turn % 2 == 0 else num_sets - 1 - index]
        _append(s, node_set, s.moving[position])
        s.usage[node_set] += 1
    # The sets that the last turn did not reach come first, then the sets that it reached. In each
    # part, the set that got a job last is first.
    if num_moving // num_sets % 2 == 1:
        _reverse(order)
    _reverse(order)
    _reverse(order[: num_sets - num_moving % num_sets])


@njit()
def _reverse(order: Ints) -> None:
    """Reverse a list of sets."""
    for index in range(len(order) // 2):
        other = len(order) - 1 - index
        order[index], order[other] = order[other], order[index]


@njit()
def set_heads(s: Sets, heads: Ints) -> int:
    """Write the jobs that run until the next step to ``heads``, (jobs,); return their number."""
    num_heads = 0
    for size in range(len(s.gpus)):
        for node_set in s.order[size, : s.num_sets[size]]:
            job = s.first[node_set]
            for _ in range(min(s.capacity[size], s.num_jobs[node_set])):
                heads[num_heads] = job
                num_heads += 1
                job = s.behind[job]
    return num_heads


@njit()
def ends_slice(now: float, slice_s: float) -> bool:
    """Whether a slice of ``slice_s`` ends at ``now`` (both s)."""
    slices = now / slice_s
    return bool(abs(slices - round(slices)) < 1e-9)


# decisions one by one -----------------------------------------------------------------------------


def stepper(slice_s: float, step_s: float, view: View) -> Callable[[View], RunSet]:
    """Decision function of one run."""
    s = empty_sets(view.widths, view.cluster)
    finished = np.zeros(len(view.widths), np.bool_)
    heads = np.zeros(len(view.widths), np.int64)
    # time of the last step (s)
    last_step = 0.0

    def decide(view: View) -> RunSet:
        """Simulate one step, and name the jobs that run until the next."""
        nonlocal last_step
        now = view.now
        opened_before = s.tally[OPENED]
        some_finished = bool(view.finished)
        finished[view.finished] = True
        rotates = ends_slice(now, slice_s)
        first_fresh = view.arrived - len(view.fresh)
        step(s, finished, some_finished, rotates, first_fresh, view.arrived)
        is_unchanged = not view.changed and not s.tally[MOVED] and s.tally[OPENED] == opened_before
        # An arrival restarts the steps. Other events between steps, as after a failure, do not.
        if view.fresh:
            last_step = now
        while last_step + step_s <= now:
            last_step += step_s
        wake = last_step + step_s
        if is_unchanged:
            wake = _next_change(s, last_step, slice_s, step_s)
        return RunSet(heads[: set_heads(s, heads)].tolist(), "exact", wake)

    return decide


def _next_change(s: Sets, now: float, slice_s: float, step_s: float) -> float:
    """Next step (s) that can change anything, after a step that changed nothing."""
    is_overfull = any(
        (s.num_jobs[s.order[size, : s.num_sets[size]]] > s.capacity[size]).any()
        for size in range(len(s.gpus))
    )
    if not is_overfull:
        return math.inf
    wake = now + step_s
    for _ in range(math.ceil(slice_s / step_s)):
        if ends_slice(wake, slice_s):
            return wake
        wake += step_s
    # No step within a slice's length meets the end of a slice. If slices are whole numbers of
    # steps, no later step does.
    return math.inf if (slice_s / step_s).is_integer() else wake
