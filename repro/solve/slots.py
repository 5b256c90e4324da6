"""AlloX's matching of waiting jobs to slots: a GPU, and a place in the queue of that GPU."""

import numpy as np

from repro.base.typing import Floats, Ints

#: Slots given to each type beyond what a greedy assignment uses, as a factor.
ROOM = 1.3
#: Entries of the matrix of all slots up to which it is built whole (80 MB).
LARGEST = 10_000_000


def start_now(durations: Floats, free: Ints, waited: Floats) -> list[tuple[int, int]]:
    """Return (job, type) of the waiting jobs that start so that mean completion time is least.

    ``durations``, shape (jobs, types), are remaining seconds, infinite where a job cannot run, rows
    by arrival; ``free`` counts the free GPUs of each type; ``waited``, shape (jobs,), are seconds
    since arrival. Ties are those of `scipy.optimize.linear_sum_assignment` on the matrix of all
    slots, where it has no more than `LARGEST` entries; beyond, other equal optima may be found.
    """
    # A job that is k-th from the end on a GPU delays k jobs by its duration, itself included, so it
    # costs k times its duration there; jobs are matched to slots (GPU, k), and on each GPU the one
    # of largest k starts. Columns are ordered by k, then by type, as in the full matrix with as
    # many k as there are jobs; of a large one only the part that can be of use is built.
    # (AlloX, EuroSys 2020, section 4; Gavel, OSDI 2020, section 7.)
    types = np.flatnonzero(free > 0)
    rows = np.flatnonzero(np.isfinite(durations[:, types]).any(axis=1))
    if not len(rows):
        return []
    seconds = durations[np.ix_(rows, types)]
    # above any sum of real costs, so that only a job without another slot is matched there
    top = float(seconds[np.isfinite(seconds)].max())
    costs = np.where(np.isfinite(seconds), seconds, top * len(rows) ** 2 + 1.0)
    gpu, k = _match(costs, free[types], waited[rows])
    heads: dict[int, int] = {}
    for row in np.argsort(k, kind="stable").tolist():
        heads[int(gpu[row])] = row
    type_of = np.repeat(types, free[types])
    return [(int(rows[heads[g]]), int(type_of[g])) for g in sorted(heads)]


def _match(seconds: Floats, free: Ints, waited: Floats) -> tuple[Ints, Ints]:
    """Return the GPU of each job and its place from the end of that GPU's queue.

    In a matrix that is too large, a type whose deepest slots stay partly empty needs no deeper
    ones: to every job they would cost more than the empty slot.
    """
    from scipy.optimize import linear_sum_assignment

    jobs = len(seconds)
    type_of = np.repeat(np.arange(len(free)), free)
    most = depth = np.full(len(free), jobs)
    if jobs * jobs * int(free.sum()) > LARGEST:
        most = -(-jobs // free) + 1
        depth = np.minimum(most, (ROOM * _greedy(seconds, free) / free).astype(np.int64) + 2)
    while True:
        place = np.arange(1, depth.max() + 1)[:, None]
        k, gpu = np.nonzero(place <= depth[type_of])
        # what a job has waited is the same in all slots, but its rounding decides between equals
        costs = seconds[:, type_of[gpu]] * (k + 1.0) + waited[:, None]
        _, slot = linear_sum_assignment(costs)
        used = np.bincount(type_of[gpu[slot]], minlength=len(free))
        full = (used >= depth * free) & (depth < most)
        if not full.any():
            return gpu[slot], k[slot]
        depth = np.where(full, np.minimum(most, 2 * depth), depth)


def _greedy(seconds: Floats, free: Ints) -> Ints:
    """Return jobs per type when, longest first, each takes the slot that is cheapest to it."""
    used = np.zeros(len(free), dtype=np.int64)
    for row in np.argsort(-seconds.min(axis=1), kind="stable"):
        used[int((seconds[row] * (used // free + 1)).argmin())] += 1
    return used
