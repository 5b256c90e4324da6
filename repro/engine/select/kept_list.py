"""Compiled list of unfinished jobs that keeps its order from event to event.

An event may sort the list stably, then scans it once. The list is nearly in order after the
previous event. So the sort merges the few ascending stretches that it finds.
"""

from typing import NamedTuple

import numpy as np

from repro.base.compiled import njit
from repro.base.typing import Flags, Floats, Ints


class KeptList(NamedTuple):
    """Jobs in the order of the list, with what the scan reads of each.

    An entry is void if `position` of its job is another entry. A job that leaves the list or moves
    to its end leaves a void entry until the next event.
    """

    #: (entries,): jobs in the order of the list, and space for a merge
    entries: Ints
    spare: Ints
    #: (jobs,): entry of each job; -1: the job is not in the list
    position: Ints
    #: (jobs, numbers of a key): keys, the smallest first
    key: Floats
    #: (jobs,): demand of each job (GPUs)
    gpus: Ints
    #: (jobs,): whether each job holds GPUs
    holds: Flags
    #: (jobs,): jobs that the last scan stops, and jobs that it starts
    stops: Ints
    starts: Ints


def empty(gpus: Ints, key_length: int) -> KeptList:
    """Empty list for jobs of these demands (GPUs), with keys of ``key_length`` numbers."""
    count = len(gpus)
    entries, spare = (np.zeros(2 * count, np.int64) for _ in range(2))
    stops, starts = (np.zeros(count, np.int64) for _ in range(2))
    position = np.full(count, -1)
    key = np.zeros((count, key_length))
    return KeptList(entries, spare, position, key, gpus, np.zeros(count, np.bool_), stops, starts)


@njit()
def _precedes(k: KeptList, job: int, other: int) -> bool:
    """Whether the key of ``job`` is smaller than the key of ``other``."""
    for column in range(k.key.shape[1]):
        if k.key[job, column] != k.key[other, column]:
            return bool(k.key[job, column] < k.key[other, column])
    return False


@njit()
def drop_void(k: KeptList, length: int) -> int:
    """Remove the void entries among the first ``length``. The result is the number of jobs."""
    count = 0
    for entry in range(length):
        job = k.entries[entry]
        if k.position[job] == entry:
            k.entries[count] = job
            k.position[job] = count
            count += 1
    return count


@njit()
def _stretch_end(k: KeptList, begin: int, count: int) -> int:
    """End of the stretch of ascending keys that begins at an entry."""
    end = begin + 1
    while end < count and not _precedes(k, k.entries[end], k.entries[end - 1]):
        end += 1
    return min(end, count)


@njit()
def _merge(k: KeptList, begin: int, middle: int, end: int) -> None:
    """Merge two neighbouring stretches into `KeptList.spare`, at equal keys the first one first."""
    left = begin
    right = middle
    for entry in range(begin, end):
        takes_right = left == middle or (
            right < end and _precedes(k, k.entries[right], k.entries[left])
        )
        if takes_right:
            k.spare[entry] = k.entries[right]
            right += 1
        else:
            k.spare[entry] = k.entries[left]
            left += 1


@njit()
def _write_positions(k: KeptList, count: int) -> None:
    """Write the position of each of the first ``count`` jobs."""
    for entry in range(count):
        k.position[k.entries[entry]] = entry


@njit()
def sort(k: KeptList, length: int) -> int:
    """Remove void entries and sort the list stably. The result is the number of jobs."""
    count = drop_void(k, length)
    while _stretch_end(k, 0, count) < count:
        begin = 0
        while begin < count:
            middle = _stretch_end(k, begin, count)
            end = _stretch_end(k, middle, count)
            _merge(k, begin, middle, end)
            begin = end
        for entry in range(count):
            k.entries[entry] = k.spare[entry]
    _write_positions(k, count)
    return count


@njit()
def _scan(k: KeptList, count: int, num_gpus: int, holders: int) -> tuple[int, int]:
    """Fill `KeptList.stops` and `starts` in list order; jobs that do not fit are skipped.

    ``holders`` is the number of jobs that hold GPUs. The result is the number of stops and starts.
    """
    free = num_gpus
    kept = 0
    num_stops = 0
    num_starts = 0
    for entry in range(count):
        job = k.entries[entry]
        if k.gpus[job] <= free:
            free -= k.gpus[job]
            if k.holds[job]:
                kept += 1
            else:
                k.starts[num_starts] = job
                num_starts += 1
        elif k.holds[job]:
            k.stops[num_stops] = job
            num_stops += 1
        # no GPU is idle and all jobs that hold GPUs have been scanned
        elif free == 0 and kept + num_stops == holders:
            break
    return num_stops, num_starts


@njit()
def _move_holders_ahead(k: KeptList, count: int) -> None:
    """Move jobs that hold GPUs ahead of the others. Both keep their order."""
    ahead = 0
    behind = 0
    for entry in range(count):
        job = k.entries[entry]
        if k.holds[job]:
            k.entries[ahead] = job
            ahead += 1
        else:
            k.spare[behind] = job
            behind += 1
    for entry in range(behind):
        k.entries[ahead + entry] = k.spare[entry]
    _write_positions(k, count)


@njit()
def select(
    k: KeptList,
    length: int,
    num_gpus: int,
    holders: int,
    sorts: bool,
    running_first: bool,
    moved: bool,
) -> tuple[int, int, int]:
    """Sort the list, choose the jobs that run, and mark them.

    Parameters
    ----------
    k : KeptList
        The list. `KeptList.stops`, `starts` and `holds` are written.
    length : int
        Number of entries, void entries included.
    num_gpus : int
        GPUs of the cluster.
    holders : int
        Number of jobs that hold GPUs.
    sorts : bool
        Whether to sort the list first.
    running_first : bool
        Whether to move jobs that hold GPUs ahead afterwards, if a job starts, stops or has
        ``moved``.
    moved : bool
        Whether a job was moved to the end of the list since the last event.

    Returns
    -------
    tuple of int
        Number of jobs in the list, number of stops, number of starts.
    """
    count = sort(k, length) if sorts else drop_void(k, length)
    num_stops, num_starts = _scan(k, count, num_gpus, holders)
    for choice in range(num_stops):
        k.holds[k.stops[choice]] = False
    for choice in range(num_starts):
        k.holds[k.starts[choice]] = True
    if running_first and (moved or num_stops + num_starts > 0):
        # the next stable sort restores the order of unequal keys
        _move_holders_ahead(k, count)
    return count, num_stops, num_starts
