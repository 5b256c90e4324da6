"""Compiled greedy selection that visits only jobs whose order may have changed.

The scan of an ordering policy gives every job, from the smallest key up, its demand if enough GPUs
are idle, and skips it otherwise. A scan at every event would take time proportional to the number
of unfinished jobs. Two rules find the first choice that differs from the previous event:

- A waiting job starts if its gang fits the idle GPUs plus those of running jobs of lower priority.
  Among waiting jobs of equal demand only the best can be the next that starts.
- If running jobs then hold more GPUs than there are, the best of them that no longer fits stops.

All choices of higher priority are final. The rules apply again until nothing changes.
"""

from typing import NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Flags, Floats, Ints
from repro.model.jobs import State


class PairingHeaps(NamedTuple):
    """Waiting and running jobs in pairing heaps; a job is in at most one heap.

    There is a heap of waiting jobs for each demand, the best key on top. The running jobs of a heap
    have one slope of the key, and the worst key is on top.
    """

    #: (jobs, length of a key): keys. The last number of a key is linear in time: at instant t it is
    #: its entry here plus slope * t
    key: Floats
    #: slope of the last number of the key (per second)
    slope: Floats
    #: demand of each job
    gpus: Ints
    #: heap of each job; -1: none
    heap: Ints
    #: number of heaps of waiting jobs; heaps of running jobs have higher numbers
    num_waiting_heaps: int
    #: of each job, -1 for none: first child, next sibling, and previous sibling or else parent
    child: Ints
    after: Ints
    before: Ints
    #: job on top of each heap; -1: none
    top: Ints


def empty(
    gpus: Ints, key_length: int, num_waiting_heaps: int, num_running_heaps: int
) -> PairingHeaps:
    """Empty heaps.

    Parameters
    ----------
    gpus : array of int
        Demand of each job.
    key_length : int
        Length of a key.
    num_waiting_heaps, num_running_heaps : int
        Number of heaps of waiting and of running jobs.
    """
    heap, child, after, before = (np.full(len(gpus), -1) for _ in range(4))
    key = np.zeros((len(gpus), key_length))
    slope = np.zeros(len(gpus))
    top = np.full(num_waiting_heaps + num_running_heaps, -1)
    return PairingHeaps(key, slope, gpus, heap, num_waiting_heaps, child, after, before, top)


@njit()
def _precedes(q: PairingHeaps, job: int, other: int, now: float) -> bool:
    """Whether ``job`` has the smaller key at an instant; row numbers break ties."""
    last = q.key.shape[1] - 1
    for column in range(last):
        if q.key[job, column] != q.key[other, column]:
            return bool(q.key[job, column] < q.key[other, column])
    job_key = q.key[job, last]
    other_key = q.key[other, last]
    if q.slope[job] != 0.0:
        job_key += q.slope[job] * now
    if q.slope[other] != 0.0:
        other_key += q.slope[other] * now
    return bool(job_key < other_key) if job_key != other_key else job < other


@njit()
def _merged(q: PairingHeaps, root: int, other: int, is_running: bool) -> int:
    """Merge two trees of a heap; the root is the best waiting job or the worst running job."""
    # keys in one heap have one slope, so their order at time 0 holds at all times
    if _precedes(q, root, other, 0.0) == is_running:
        root, other = other, root
    sibling = q.child[root]
    q.after[other] = sibling
    q.before[other] = root
    q.child[root] = other
    if sibling >= 0:
        q.before[sibling] = other
    return root


@njit()
def insert(q: PairingHeaps, job: int, heap: int) -> None:
    """Add a job that is in no heap to a heap."""
    q.heap[job] = heap
    q.child[job] = q.after[job] = q.before[job] = -1
    top = q.top[heap]
    q.top[heap] = job if top < 0 else _merged(q, top, job, heap >= q.num_waiting_heaps)


@njit()
def remove(q: PairingHeaps, job: int) -> None:
    """Remove a job from its heap."""
    heap = q.heap[job]
    is_running = q.heap[job] >= q.num_waiting_heaps
    q.heap[job] = -1
    if q.top[heap] == job:
        root = -1
    else:
        root = q.top[heap]
        previous = q.before[job]
        following = q.after[job]
        if q.child[previous] == job:
            q.child[previous] = following
        else:
            q.after[previous] = following
        if following >= 0:
            q.before[following] = previous
    # merge the children in pairs, then merge the pairs from the last to the first
    pairs = -1
    child = q.child[job]
    while child >= 0:
        sibling = q.after[child]
        following = q.after[sibling] if sibling >= 0 else -1
        tree = _merged(q, child, sibling, is_running) if sibling >= 0 else child
        q.after[tree] = pairs
        pairs = tree
        child = following
    while pairs >= 0:
        following = q.after[pairs]
        q.after[pairs] = q.before[pairs] = -1
        root = pairs if root < 0 else _merged(q, root, pairs, is_running)
        pairs = following
    q.top[heap] = root


class Buffers(NamedTuple):
    """Arrays that a selection writes into, so that it allocates none."""

    #: best waiting job of each demand, best first
    waiting: Ints
    #: running jobs that are out of their heaps, or jobs that are demoted
    removed: Ints
    #: choices of a selection; see `select`
    choices: Ints


def buffers_for(q: PairingHeaps) -> Buffers:
    """Buffers for the heaps of a simulation."""
    num_jobs = len(q.gpus)
    return Buffers(
        waiting=np.empty(q.num_waiting_heaps, np.int64),
        removed=np.empty(num_jobs, np.int64),
        choices=np.empty(num_jobs, np.int64),
    )


@njit()
def _rank_waiting(q: PairingHeaps, ranked: Ints) -> int:
    """Write the best waiting job of each demand into ``ranked``, best first; count them."""
    count = 0
    for job in q.top[: q.num_waiting_heaps]:
        if job < 0:
            continue
        rank = count
        while rank > 0 and _precedes(q, job, ranked[rank - 1], 0.0):
            ranked[rank] = ranked[rank - 1]
            rank -= 1
        ranked[rank] = job
        count += 1
    return count


@njit(allocates=True)
def best_waiting(q: PairingHeaps) -> Ints:
    """Best waiting job of each demand, best first."""
    ranked = np.empty(q.num_waiting_heaps, np.int64)
    return ranked[: _rank_waiting(q, ranked)]


@njit()
def _worst_running(q: PairingHeaps, now: float) -> int:
    """Lowest-priority running job; -1: no job runs."""
    worst = -1
    for job in q.top[q.num_waiting_heaps :]:
        if job >= 0 and (worst < 0 or _precedes(q, worst, job, now)):
            worst = job
    return worst


@njit()
def select(q: PairingHeaps, buffers: Buffers, idle: int, now: float) -> tuple[int, int]:
    """Idle GPUs after a selection, and the number of its choices in ``buffers.choices``, in order.

    A choice c >= 0 starts job c. A choice c < 0 stops job -1 - c. A chosen job is in no heap
    afterwards. A choice is final, so keys that are equal up to rounding cannot make the selection
    cycle.
    """
    waiting, removed, choices = buffers
    num_choices = 0
    # running jobs that are out of their heaps during the selection, worst first
    num_removed = 0
    while True:
        num_ranked = _rank_waiting(q, waiting)
        best = waiting[0] if num_ranked else -1
        started = -1
        # best running job that no longer fits
        victim = -1
        # the first n jobs of `removed` and the GPUs that they hold
        n = 0
        released = 0
        # Collect running jobs, worst first. After a start, idle GPUs are negative until the stops
        # that make room for it are chosen. First collect jobs of any priority, until their GPUs
        # make up for negative idle GPUs. Then collect only jobs of lower priority than the best
        # waiting job, until that job fits.
        while True:
            is_short = released < -idle
            if not is_short and (best < 0 or released >= q.gpus[best] - idle):
                break
            if n == num_removed:
                job = _worst_running(q, now)
                if job < 0:
                    break
                removed[num_removed] = job
                num_removed += 1
                heap = q.heap[job]
                remove(q, job)
                # the number is kept for the insertion at the end
                q.heap[job] = heap
            job = removed[n]
            if not is_short and _precedes(q, job, best, now):
                break
            if is_short:
                victim = job
            released += q.gpus[job]
            n += 1
        for job in waiting[:num_ranked]:
            # Choices are made in order of priority: the victim stops before this job is tried.
            if victim >= 0 and _precedes(q, victim, job, now):
                break
            # only running jobs of lower priority make room for the job
            while n > 0 and _precedes(q, removed[n - 1], job, now):
                n -= 1
                released -= q.gpus[removed[n]]
            if q.gpus[job] <= idle + released:
                started = job
                break
        if started >= 0:
            remove(q, started)
            idle -= q.gpus[started]
            choices[num_choices] = started
            num_choices += 1
        elif victim >= 0:
            num_removed = _without(removed, num_removed, victim)
            q.heap[victim] = -1
            idle += q.gpus[victim]
            choices[num_choices] = -1 - victim
            num_choices += 1
        else:
            break
    for job in removed[:num_removed]:
        insert(q, job, q.heap[job])
    return idle, num_choices


@njit()
def _without(jobs: Ints, count: int, job: int) -> int:
    """Remove a job from the first ``count`` jobs, whose order is kept; count the others."""
    left = 0
    for other in jobs[:count]:
        if other != job:
            jobs[left] = other
            left += 1
    return left


@njit()
def _move(q: PairingHeaps, jobs: Ints, heaps: Ints) -> None:
    """Move jobs to other heaps in order (-1: to no heap)."""
    for n in range(len(jobs)):
        if q.heap[jobs[n]] >= 0:
            remove(q, jobs[n])
        if heaps[n] >= 0:
            insert(q, jobs[n], heaps[n])


@njit(allocates=True)
def move_then_best_waiting(q: PairingHeaps, jobs: Ints, heaps: Ints) -> Ints:
    """Move jobs to other heaps in order (-1: to no heap), then list the best waiting jobs."""
    _move(q, jobs, heaps)
    return best_waiting(q)


@njit()
def move_then_select(
    q: PairingHeaps, buffers: Buffers, jobs: Ints, heaps: Ints, idle: int, now: float
) -> tuple[int, int]:
    """Move jobs to other heaps in order (-1: to no heap), then `select`."""
    _move(q, jobs, heaps)
    return select(q, buffers, idle, now)


class OrderConstants(NamedTuple):
    """Constants of the simulation of an order; see `repro.model.policy.LinearKey`."""

    #: heap of each job while it waits, and while it runs (-1: see `_running_heap`)
    waiting_heap: Ints
    running_heap: Ints
    #: by job: predicted over true remaining time
    prediction_factor: Floats
    #: by job: factors of remaining time (s) and attained service (GPU-seconds) in its key
    per_second: Floats
    per_service: Floats
    #: slope of each key while the job runs (per second)
    slope: Floats
    #: submission of each job (s), and time of a unit of its work alone (s)
    submit: Floats
    solo: Floats
    #: attained service (GPU-seconds) at which a job leaves each priority queue; empty: the order
    #: has no priority queues
    limits: Floats
    #: whether the simulation waits for the end of each job
    awaited: Flags
    #: an arrival at up to ``arrival_factor`` * now counts as now
    arrival_factor: float
    #: seconds between decisions while jobs wait
    quantum: float
    #: instant (s) at which the simulation ends
    stop_time: float


class Progress(NamedTuple):
    """State of `simulate_events` beyond the state of the jobs."""

    now: float
    #: number of jobs that have arrived
    arrived: int
    #: number of awaited jobs that have not finished
    unfinished: int
    #: number of GPUs that no job holds
    idle: int
    #: number of jobs that wait
    waiting: int


@njit()
def _running_heap(q: PairingHeaps, constants: OrderConstants, job: int) -> int:
    """Heap of a job that runs.

    If there are fewer heaps than slopes, it is an empty heap, or one whose jobs have the slope of
    the job. A heap per GPU is enough, because every running job holds a GPU.
    """
    if constants.running_heap[job] >= 0:
        return int(constants.running_heap[job])
    heap = q.num_waiting_heaps
    while q.top[heap] >= 0 and q.slope[q.top[heap]] != constants.slope[job]:
        heap += 1
    return heap


@njit(inline="always")
def _insert_with_key(
    q: PairingHeaps, state: State, constants: OrderConstants, job: int, now: float, is_running: bool
) -> None:
    """Store the key of a job that is in no heap, and add it to its heap."""
    last = q.key.shape[1] - 1
    if len(constants.limits):
        # the first number of the key, the queue, changes only at demotions
        q.key[job, last] = state.first_start[job]
    else:
        remaining_s = state.work_left[job] * constants.solo[job] * constants.prediction_factor[job]
        q.key[job, last] = (
            constants.per_second[job] * remaining_s
            + constants.per_service[job] * state.earlier_service[job]
        )
    q.slope[job] = constants.slope[job] if is_running else 0.0
    if q.slope[job] != 0.0:
        q.key[job, last] -= q.slope[job] * now
    insert(q, job, _running_heap(q, constants, job) if is_running else constants.waiting_heap[job])


@njit(inline="always")
def _plan_demotion(
    demotions: PairingHeaps, q: PairingHeaps, state: State, constants: OrderConstants, job: int
) -> None:
    """Add the instant at which a running job reaches the limit of its queue."""
    if len(constants.limits):
        limit = constants.limits[int(q.key[job, 0])]
        if limit < np.inf:
            seconds_left = limit / q.gpus[job] - state.earlier_held_s[job]
            demotions.key[job, 0] = state.held_since[job] + seconds_left
            insert(demotions, job, 0)


@njit(inline="always")
def _give_back(
    state: State, ends: PairingHeaps, demotions: PairingHeaps, job: int, now: float
) -> None:
    """Record the service of a job that stops or ends; remove its end and its demotion."""
    state.earlier_service[job] += (now - state.held_since[job]) * state.held_gpus[job]
    state.earlier_held_s[job] += now - state.held_since[job]
    state.running[job] = False
    remove(ends, job)
    if demotions.heap[job] >= 0:
        remove(demotions, job)


@njit()
def simulate_events(
    q: PairingHeaps,
    ends: PairingHeaps,
    demotions: PairingHeaps,
    buffers: Buffers,
    state: State,
    constants: OrderConstants,
    progress: Progress,
    spans: Floats,
) -> tuple[Progress, bool, int]:
    """Simulate events until the simulation ends, or more than half of ``spans`` is filled.

    Parameters
    ----------
    q : PairingHeaps
        Waiting and running jobs.
    ends : PairingHeaps
        One heap: running jobs by the instant of their completion.
    demotions : PairingHeaps
        One heap: running jobs by the instant of their demotion.
    buffers : Buffers
        Overwritten.
    state : State
        State of the jobs, written in place.
    constants : OrderConstants
        Constants of the simulation.
    progress : Progress
        Progress so far.
    spans : array of float, shape (3, intervals)
        Filled with the intervals in which jobs held GPUs: job, start and end (s). There are
        at least two columns for each GPU of the cluster.

    Returns
    -------
    tuple
        Progress, whether the simulation has ended, and the number of intervals in ``spans``.
    """
    now, arrived, unfinished, idle, waiting = progress
    count = 0
    # an event closes at most one interval per running job, so half of `spans` has space for it
    half = spans.shape[1] // 2
    while unfinished > 0:
        if count > half:
            return Progress(now, arrived, unfinished, idle, waiting), False, count
        target = ends.key[ends.top[0], 0] if ends.top[0] >= 0 else np.inf
        if arrived < len(constants.submit) and constants.submit[arrived] <= target:
            target = constants.submit[arrived]
        wake = demotions.key[demotions.top[0], 0] if demotions.top[0] >= 0 else np.inf
        if constants.quantum < np.inf and waiting > 0:
            wake = min(wake, (np.floor(now / constants.quantum + 1e-9) + 1.0) * constants.quantum)
        # rounding may put a wake-up at or before now
        target = min(target, wake if wake > now else np.nextafter(now, np.inf))
        if target == np.inf or target > constants.stop_time:
            break
        now = target
        # completions
        while ends.top[0] >= 0 and ends.key[ends.top[0], 0] <= now:
            job = ends.top[0]
            spans[0, count] = job
            spans[1, count] = state.held_since[job]
            spans[2, count] = now
            count += 1
            _give_back(state, ends, demotions, job, now)
            remove(q, job)
            idle += q.gpus[job]
            state.work_left[job] = 0.0
            state.end[job] = now
            unfinished -= constants.awaited[job]
        # arrivals
        while (
            arrived < len(constants.submit)
            and constants.submit[arrived] <= now * constants.arrival_factor
        ):
            _insert_with_key(q, state, constants, arrived, now, False)
            waiting += 1
            arrived += 1
        # demotions
        demoted = 0
        while demotions.top[0] >= 0 and demotions.key[demotions.top[0], 0] <= now:
            buffers.removed[demoted] = demotions.top[0]
            demoted += 1
            remove(demotions, demotions.top[0])
        for job in buffers.removed[:demoted]:
            remove(q, job)
            q.key[job, 0] += 1.0
            insert(q, job, _running_heap(q, constants, job))
            _plan_demotion(demotions, q, state, constants, job)
        # decision: all stops come before the first start
        if waiting == 0:
            continue
        idle, num_choices = select(q, buffers, idle, now)
        choices = buffers.choices[:num_choices]
        for choice in choices:
            if choice >= 0:
                continue
            job = -1 - choice
            waiting += 1
            spans[0, count] = job
            spans[1, count] = state.held_since[job]
            spans[2, count] = now
            count += 1
            _give_back(state, ends, demotions, job, now)
            state.work_left[job] -= (now - state.progress_from[job]) * state.rate[job]
            _insert_with_key(q, state, constants, job, now, False)
            state.work_left[job] = max(0.0, state.work_left[job])
            state.preemptions[job] += 1
        for job in choices:
            if job < 0:
                continue
            waiting -= 1
            state.first_start[job] = min(state.first_start[job], now)
            _insert_with_key(q, state, constants, job, now, True)
            state.running[job] = True
            state.held_gpus[job] = q.gpus[job]
            state.held_since[job] = state.progress_from[job] = state.gpus_free_from[job] = now
            state.rate[job] = 1.0 / constants.solo[job]
            ends.key[job, 0] = now + state.work_left[job] / state.rate[job]
            insert(ends, job, 0)
            _plan_demotion(demotions, q, state, constants, job)
    return Progress(now, arrived, unfinished, idle, waiting), True, count
