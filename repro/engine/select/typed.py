"""Selection on a cluster with several GPU types: each gang holds GPUs of one type.

At every event jobs are taken in order of their keys. A job that runs keeps its GPU type while the
jobs before it leave it enough GPUs there. Any other job takes the fastest type with enough idle
GPUs. If no type has enough, a preemptive order also counts the GPUs of the running jobs behind it.
The job then takes the fastest type with enough GPUs, and jobs behind it stop or change their type.

Ties: order of submission, then order in the trace. Equally fast types: alphabetical.
"""

from collections.abc import Callable, Iterable, Mapping
from heapq import merge

from sortedcontainers import SortedList

from repro.engine.type_choice import TypeChoice
from repro.model.jobs import JobTable
from repro.model.keys import bad_key, is_key
from repro.model.policy import Key, Ordering
from repro.placement.base import Placer, answer

#: Key of a job and its row number.
Entry = tuple[Key, int]


class TypedSelection:
    """Selection of jobs and of their GPU types, by key.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    ordering : Ordering
        Keys of the jobs.
    choice : TypeChoice
        GPU types of each job.
    placers : mapping of str to Placer
        Placement rule on the nodes of each GPU type.
    reserve_nodes : callable
        Reserves the nodes of a job on GPUs of a type, before the next job is tried.
    """

    def __init__(
        self,
        table: JobTable,
        ordering: Ordering,
        choice: TypeChoice,
        placers: Mapping[str | None, Placer],
        reserve_nodes: Callable[[int, str | None], None],
    ) -> None:
        self._table = table
        self._gpus = table.gpus
        self._ordering = ordering
        self._choice = choice
        self._preemptive = ordering.policy.preemptive
        self._blocking = ordering.policy.blocking
        self._placers = [placers[gpu_type] for gpu_type in choice.gpu_types]
        self._reserve_nodes = reserve_nodes
        self._capacity = [int(count) for count in choice.gpu_counts]
        self._waiting: SortedList[Entry] = SortedList()
        self._entry_of: dict[int, Entry] = {}
        #: running job -> column of its GPU type
        self._column_of: dict[int, int] = {}

    @property
    def waits(self) -> bool:
        """Whether a job waits."""
        return bool(self._waiting)

    @property
    def running(self) -> Iterable[int]:
        """Jobs that hold GPUs, in order of their last start."""
        return self._column_of

    def gpu_type(self, job: int) -> str | None:
        """GPU type of a job that runs."""
        return self._choice.gpu_types[self._column_of[job]]

    def arrive(self, job: int, now: float) -> None:
        """Add a waiting job."""
        entry = (self._key(job, now), job)
        self._entry_of[job] = entry
        self._waiting.add(entry)

    def finish(self, job: int) -> None:
        """Remove a finished job."""
        del self._column_of[job]

    def move(self, job: int, now: float) -> None:
        """Read the key of a waiting job again; `select` reads the keys of running jobs."""
        if job in self._entry_of:
            self._waiting.remove(self._entry_of.pop(job))
            self.arrive(job, now)

    def select(self, now: float) -> tuple[list[int], list[int]]:
        """Jobs that stop, and jobs that start; a job in both moves to another GPU type."""
        if not self._waiting:
            return [], []
        if not self._preemptive:
            return [], self._start_fitting(now)
        before = dict(self._column_of)
        chosen = self._chosen(now)
        stops = [job for job, column in before.items() if chosen.get(job) != column]
        starts = [job for job, column in chosen.items() if before.get(job) != column]
        for job in stops:
            del self._column_of[job]
            if job not in chosen:
                self._ordering.stop(job, now)
                self.arrive(job, now)
        for job in starts:
            self._column_of[job] = chosen[job]
            if job not in before:
                self._waiting.remove(self._entry_of.pop(job))
                self._ordering.start(job, now)
        return stops, starts

    def _start_fitting(self, now: float) -> list[int]:
        """Start waiting jobs for which nodes are idle, by key; running jobs keep their GPUs."""
        starts: list[int] = []
        #: demands that found no nodes, by the types on which the job can run
        refused: set[tuple[int, tuple[int, ...]]] = set()
        for _, job in list(self._waiting):
            demand = self._gpus[job]
            columns = self._choice.types_by_speed(job)
            if (demand, columns) in refused:
                continue
            fitting = (c for c in columns if answer(self._placers[c], "fits", demand))
            taken = next(fitting, None)
            if taken is None:
                if self._blocking:
                    break
                refused.add((demand, columns))
                continue
            self._column_of[job] = taken
            self._waiting.remove(self._entry_of.pop(job))
            self._ordering.start(job, now)
            self._reserve_nodes(job, self._choice.gpu_types[taken])
            starts.append(job)
        return starts

    def _chosen(self, now: float) -> dict[int, int]:
        """Column of the GPU type of each job that runs from now on, in the order of choice."""
        gpus = self._gpus
        # `left`: GPUs that the jobs chosen so far do not hold. `idle`: the same without the GPUs of
        # running jobs that are not tried yet.
        left = self._capacity.copy()
        idle = self._capacity.copy()
        for job, held_on in self._column_of.items():
            idle[held_on] -= gpus[job]
        chosen: dict[int, int] = {}
        refused: set[tuple[int, tuple[int, ...]]] = set()
        running = sorted((self._key(job, now), job) for job in self._column_of)
        for _, job in merge(running, self._waiting):
            if not any(left):
                break
            demand = gpus[job]
            held_column = self._column_of.get(job)
            if held_column is not None:
                idle[held_column] += demand
            column = held_column
            if held_column is None or left[held_column] < demand:
                columns = self._choice.types_by_speed(job)
                if (demand, columns) in refused:
                    continue
                column = _first_with(demand, columns, idle, left)
            if column is None:
                refused.add((demand, columns))
                continue
            chosen[job] = column
            left[column] -= demand
            idle[column] -= demand
        return chosen

    def _key(self, job: int, now: float) -> Key:
        """Key of a job, after a check that it is a number or a tuple of numbers."""
        key = self._ordering.key(job, now)
        if not is_key(key):
            raise bad_key(self._ordering.policy.name, self._table.ids[job], key)
        return key


def _first_with(
    demand: int, columns: tuple[int, ...], idle: list[int], left: list[int]
) -> int | None:
    """First type with enough idle GPUs; else the first with enough GPUs that no chosen job holds.

    ``idle`` and ``left`` are the GPUs of each type, as in `TypedSelection._chosen`.
    """
    for gpus in (idle, left):
        for column in columns:
            if gpus[column] >= demand:
                return column
    return None
