"""AlloX's matching of waiting jobs to slots; a slot is a GPU and a position in its queue."""

import numpy as np

from repro.base.typing import Floats, Ints

#: Slots of each type relative to a greedy assignment.
ROOM = 1.3
#: Largest number of entries of the matrix of all slots (80 MB); a larger one is built in part.
LARGEST = 10_000_000


def start_now(durations: Floats, free: Ints, waited: Floats) -> list[tuple[int, int]]:
    """Jobs that start now, as (job, GPU type), for the least mean completion time.

    ``durations`` are remaining seconds, shape (jobs, types), infinite where a job cannot run, rows
    by arrival. ``free`` counts the idle GPUs of each type. ``waited`` are seconds since arrival,
    shape (jobs,). `scipy.optimize.linear_sum_assignment` on the matrix of all slots breaks ties.
    Beyond `LARGEST` entries the matrix is built in part, and another optimum may be returned.
    """
    # A job that is k-th from the end of a GPU's queue delays k jobs, itself included, by its
    # duration. Slot (GPU, k) therefore costs k times the duration. On each GPU the job of largest k
    # starts. Columns are ordered by k, then by GPU type, as in the full matrix, where k goes up to
    # the number of jobs. (AlloX, EuroSys 2020, section 4; Gavel, OSDI 2020, section 7.)
    types = np.flatnonzero(free > 0)
    rows = np.flatnonzero(np.isfinite(durations[:, types]).any(axis=1))
    if not len(rows):
        return []
    seconds = durations[np.ix_(rows, types)]
    # Above any sum of real costs, so that a job takes such a slot only if it has no other.
    top = float(seconds[np.isfinite(seconds)].max())
    costs = np.where(np.isfinite(seconds), seconds, top * len(rows) ** 2 + 1.0)
    gpu, k = _match(costs, free[types], waited[rows])
    heads: dict[int, int] = {}
    for row in np.argsort(k, kind="stable").tolist():
        heads[int(gpu[row])] = row
    type_of = np.repeat(types, free[types])
    return [(int(rows[heads[g]]), int(type_of[g])) for g in sorted(heads)]


def _match(seconds: Floats, free: Ints, waited: Floats) -> tuple[Ints, Ints]:
    """GPU of each job, and its position from the end of that GPU's queue.

    A matrix that is too large starts with few slots. A GPU type gets deeper slots only if its
    deepest slots are full: to every job a deeper slot costs more than an empty one.
    """
    from scipy.optimize import linear_sum_assignment

    jobs = len(seconds)
    type_of = np.repeat(np.arange(len(free)), free)
    depth = np.full(len(free), jobs)
    most = depth
    if jobs * jobs * int(free.sum()) > LARGEST:
        most = -(-jobs // free) + 1
        depth = np.minimum(most, (ROOM * _greedy(seconds, free) / free).astype(np.int64) + 2)
    while True:
        position = np.arange(1, depth.max() + 1)[:, None]
        k, gpu = np.nonzero(position <= depth[type_of])
        # The time waited is the same in all slots, but its rounding decides between equal costs.
        costs = seconds[:, type_of[gpu]] * (k + 1.0) + waited[:, None]
        _, slot = linear_sum_assignment(costs)
        used = np.bincount(type_of[gpu[slot]], minlength=len(free))
        full = (used >= depth * free) & (depth < most)
        if not full.any():
            return gpu[slot], k[slot]
        depth = np.where(full, np.minimum(most, 2 * depth), depth)


def _greedy(seconds: Floats, free: Ints) -> Ints:
    """Jobs per GPU type if each, longest first, takes its cheapest slot; shape (types,)."""
    used = np.zeros(len(free), dtype=np.int64)
    for row in np.argsort(-seconds.min(axis=1), kind="stable"):
        used[int((seconds[row] * (used // free + 1)).argmin())] += 1
    return used
