"""AlloX's matching of waiting jobs to slots. A slot is a GPU and a position in its queue."""

import numpy as np

from repro.base.typing import Floats, Ints

#: A matrix that is built in part starts with few slots per GPU. A greedy assignment gives each GPU
#: type a number of jobs per GPU. The number of slots is this multiple of it, rounded down, plus 2.
DEPTH_MARGIN = 1.3
#: Largest number of entries of the matrix of all slots (80 MB); a larger one is built in part.
MAX_ENTRIES = 10_000_000


def jobs_to_start(durations: Floats, idle_gpus: Ints, waiting_s: Floats) -> list[tuple[int, int]]:
    """Jobs that start now, as (job, GPU type), for the least mean completion time.

    ``durations`` are remaining seconds, shape (jobs, types), infinite where a job cannot run, rows
    by arrival. ``idle_gpus`` counts the idle GPUs of each type. ``waiting_s`` are the seconds since
    arrival, shape (jobs,). `scipy.optimize.linear_sum_assignment` on the matrix of all slots breaks
    ties. Beyond `MAX_ENTRIES` entries the matrix is built in part, and ties may break differently.
    """
    # A job that is k-th from the end of a GPU's queue delays k jobs, itself included, by its
    # duration. Slot (GPU, k) therefore costs k times the duration. On each GPU the job of largest k
    # starts. Columns are ordered by k, then by GPU type, as in the full matrix, where k goes up to
    # the number of jobs. (AlloX, EuroSys 2020, section 4; Gavel, OSDI 2020, section 7.)
    types = np.flatnonzero(idle_gpus > 0)
    rows = np.flatnonzero(np.isfinite(durations[:, types]).any(axis=1))
    if not len(rows):
        return []
    seconds = durations[np.ix_(rows, types)]
    # The cost where a job cannot run exceeds any sum of real costs. A job therefore takes such a
    # slot only if it has no other.
    top = float(seconds[np.isfinite(seconds)].max())
    costs = np.where(np.isfinite(seconds), seconds, top * len(rows) ** 2 + 1.0)
    gpu, k = _match(costs, idle_gpus[types], waiting_s[rows])
    first_jobs: dict[int, int] = {}
    for row in np.argsort(k, kind="stable").tolist():
        first_jobs[int(gpu[row])] = row
    type_of = np.repeat(types, idle_gpus[types])
    return [(int(rows[first_jobs[g]]), int(type_of[g])) for g in sorted(first_jobs)]


def _match(seconds: Floats, idle_gpus: Ints, waiting_s: Floats) -> tuple[Ints, Ints]:
    """GPU of each job, and position of the job from the end of that GPU's queue, from 0.

    A matrix that is too large starts with few slots. A GPU type gets deeper slots only if all its
    slots are full, because an empty slot costs every job less than a deeper one.
    """
    from scipy.optimize import linear_sum_assignment

    jobs = len(seconds)
    type_of = np.repeat(np.arange(len(idle_gpus)), idle_gpus)
    depth = np.full(len(idle_gpus), jobs)
    max_depth = depth
    if jobs * jobs * int(idle_gpus.sum()) > MAX_ENTRIES:
        max_depth = -(-jobs // idle_gpus) + 1
        greedy_depth = DEPTH_MARGIN * _greedy(seconds, idle_gpus) / idle_gpus
        depth = np.minimum(max_depth, greedy_depth.astype(np.int64) + 2)
    while True:
        position = np.arange(1, depth.max() + 1)[:, None]
        k, gpu = np.nonzero(position <= depth[type_of])
        # The waiting time is the same in all slots, but its rounding decides between equal costs.
        costs = seconds[:, type_of[gpu]] * (k + 1.0) + waiting_s[:, None]
        _, slot = linear_sum_assignment(costs)
        used = np.bincount(type_of[gpu[slot]], minlength=len(idle_gpus))
        has_full_slots = (used >= depth * idle_gpus) & (depth < max_depth)
        if not has_full_slots.any():
            return gpu[slot], k[slot]
        depth = np.where(has_full_slots, np.minimum(max_depth, 2 * depth), depth)


def _greedy(seconds: Floats, idle_gpus: Ints) -> Ints:
    """Jobs per GPU type if each job, longest first, takes its cheapest slot; shape (types,)."""
    used = np.zeros(len(idle_gpus), dtype=np.int64)
    for row in np.argsort(-seconds.min(axis=1), kind="stable"):
        used[int((seconds[row] * (used // idle_gpus + 1)).argmin())] += 1
    return used
