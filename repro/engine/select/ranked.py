"""Driver that turns the keys of an `Order` into starts and stops, event by event."""

import math
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from repro.base.errors import PolicyError
from repro.base.outside import outside_classes
from repro.engine.decision_checks import LateWakes
from repro.engine.policy_answers import linear_key_of, moves_of, ordering_of
from repro.engine.select.changing_keys import REPLACED_METHODS, ChangingKeys
from repro.engine.select.typed import TypedSelection
from repro.engine.type_choice import TypeChoice
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.policy import LinearKey, Order, Ordering, Selection, is_latest_definition
from repro.model.view import View
from repro.placement.base import Placer, answer


class OrderDriver:
    """Drives an `Order` through its selection; the engine uses it like a `DecisionDriver`.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    policy : Order
        Policy of the simulation.
    view : View
        View of the policy.
    placers : mapping of str to Placer
        Placement rule on the nodes of each GPU type; the key None without types.
    reserve_nodes : callable
        Reserves the nodes of a job on GPUs of a type at once (`Holdings.reserve_nodes`).
    type_choice : TypeChoice, optional
        GPU types of the jobs on a cluster with several; None: it has one type, or none.
    """

    rounds: None = None

    def __init__(
        self,
        table: JobTable,
        policy: Order,
        view: View,
        placers: Mapping[str | None, Placer],
        reserve_nodes: Callable[[int, str | None], None],
        type_choice: TypeChoice | None = None,
    ) -> None:
        self.table = table
        self.ordering = ordering_of(policy, view)
        self._is_own_ordering = bool(outside_classes(type(self.ordering)))
        self._late_wakes = LateWakes()
        self.quantum = policy.quantum_s()
        self._changing = ChangingKeys(policy, self.ordering, view)
        make_selection = self.ordering.selection
        #: coefficients of keys that are linear in time, for a simulation in compiled loops
        self.linear_key: LinearKey | None = None
        if (
            make_selection is None
            and policy.preemptive
            and is_latest_definition(policy, "linear_key", REPLACED_METHODS)
        ):
            self.linear_key = linear_key_of(policy, view)
        self.selection: Selection
        #: GPU type of all jobs; None on a cluster with several types or none
        self._only_type = view.gpu_types[0] if len(view.gpu_types) == 1 else None
        self._typed: TypedSelection | None = None
        if type_choice is not None:
            self.selection = self._typed = TypedSelection(
                table, self.ordering, type_choice, placers, reserve_nodes
            )
        elif make_selection is not None:
            self.selection = make_selection(table, self.ordering, view.cluster)
        else:
            capacity = view.cluster.num_gpus
            only_type = self._only_type

            def reserve(job: int) -> None:
                reserve_nodes(job, only_type)

            self.selection = HeapSelection(
                table, self.ordering, placers[self._only_type], reserve, capacity
            )

    @property
    def waits(self) -> bool:
        """Whether a job waits for GPUs."""
        return self.selection.waits

    def arrive(self, job: int, now: float) -> None:
        """React to an arrival."""
        self.ordering.arrive(job, now)
        self._changing.arrive(job, now)
        self.selection.arrive(job, now)

    def finish(self, job: int, now: float) -> None:
        """React to a completion."""
        self._changing.finish(job)
        self.selection.finish(job)
        self.ordering.finish(job, now)

    def step(self, now: float) -> tuple[list[int], list[Run]]:
        """Read the keys that jump, and list the jobs that stop and the gangs that start."""
        if self._is_own_ordering:
            moves = moves_of(self.ordering, now, self.table)
        else:
            moves = self.ordering.moves(now)
        for job in (*moves, *self._changing.to_read(self.selection.running)):
            self.selection.move(job, now)
        stops, starts = self.selection.select(now)
        gpus = self.table.gpus
        if self._typed is not None:
            gpu_type = self._typed.gpu_type
            return stops, [Run((job,), gpus[job], gpu_type(job)) for job in starts]
        return stops, [Run((job,), gpus[job], self._only_type) for job in starts]

    def rate_changed(self, job: int, now: float) -> None:
        """Read the key of a running job again.

        Its rate is not nominal or has changed, its progress begins later, or a failure set it back.
        """
        # other selections read the keys that change with time at every event
        if isinstance(self.selection, HeapSelection):
            self.selection.move(job, now)

    def running(self) -> Iterable[int]:
        """Jobs that hold GPUs, best first if the selection sorts all jobs."""
        return self.selection.running

    def wake(self, now: float) -> float:
        """Instant of the next demotion, promotion or end of a quantum (s)."""
        wake = self.ordering.wake(now)
        # NaN and late wake-ups would stop the time
        if self._is_own_ordering and (math.isnan(wake) or self._late_wakes.are_too_many(wake, now)):
            raise PolicyError(
                f"policy {self.ordering.policy.name!r}: wake of its ordering returned {wake!r:.60} "
                f"at {round(now, 9):g} s; return a later instant (s), or infinity"
            )
        if self.quantum < math.inf and self.selection.waits:
            wake = min(wake, (math.floor(now / self.quantum + 1e-9) + 1) * self.quantum)
        return wake


class HeapSelection:
    """Selection by compiled heaps (`JobHeaps`), updated only where keys change.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    ordering : Ordering
        Keys of the jobs.
    placer : Placer
        Placement rule on the cluster.
    reserve_nodes : callable
        Reserves the nodes of a selected job, before the next job is tried.
    capacity : int
        GPUs of the cluster.
    """

    def __init__(
        self,
        table: JobTable,
        ordering: Ordering,
        placer: Placer,
        reserve_nodes: Callable[[int], None],
        capacity: int,
    ) -> None:
        from repro.engine.select.job_heaps import JobHeaps

        self.table = table
        self.ordering = ordering
        self.placer = placer
        self.reserve_nodes = reserve_nodes
        self.preemptive = ordering.policy.preemptive
        self.blocking = ordering.policy.blocking
        self.idle = capacity
        self._heaps = JobHeaps(table, ordering.policy.name)
        self._waiting: set[int] = set()
        self._running: dict[int, None] = {}
        #: best waiting job of each demand, best first, after the last change of the heaps
        self._best_waiting: list[int] = []
        #: heap of (instant in s, running job that starts to progress at the instant)
        self._loading: list[tuple[float, int]] = []
        #: last instant in `_loading` of each job (s)
        self._loads_until: dict[int, float] = {}

    @property
    def waits(self) -> bool:
        """Whether a job waits."""
        return bool(self._waiting)

    @property
    def running(self) -> Iterable[int]:
        """Jobs that hold GPUs, in order of their last start or jump of the key."""
        return self._running

    def arrive(self, job: int, now: float) -> None:
        """Add a waiting job."""
        self._waiting.add(job)
        self._heaps.add_waiting(job, self.ordering.key(job, now))

    def finish(self, job: int) -> None:
        """Remove a finished job."""
        del self._running[job]
        self.idle += self.table.gpus[job]
        if self.preemptive:
            self._heaps.remove(job)

    def move(self, job: int, now: float) -> None:
        """Read the key of a job again after a jump."""
        if job in self._waiting:
            self.arrive(job, now)
        elif job in self._running and self.preemptive:
            del self._running[job]
            self._run(job, now)
            progress_from = self.table.progress_from[job]
            # a job that fails again and again is pushed once for each failure, not once for each
            # earlier entry
            if progress_from > now and self._loads_until.get(job) != progress_from:
                self._loads_until[job] = progress_from
                heappush(self._loading, (progress_from, job))

    def select(self, now: float) -> tuple[list[int], list[int]]:
        """Jobs that stop, and jobs that start, both in the order of their choice."""
        if not self._waiting:
            return [], []
        if not self.preemptive:
            return [], self._start_fitting(now)
        while self._loading and self._loading[0][0] <= now:
            self.move(heappop(self._loading)[1], now)
        stops: list[int] = []
        starts: list[int] = []
        self.idle, choices = self._heaps.select(self.idle, now)
        for choice in choices:
            if choice >= 0:
                self._waiting.remove(choice)
                self.ordering.start(choice, now)
                self._run(choice, now)
                starts.append(choice)
            else:
                job = -1 - choice
                del self._running[job]
                self.ordering.stop(job, now)
                self.arrive(job, now)
                stops.append(job)
        return stops, starts

    def _start_fitting(self, now: float) -> list[int]:
        """Start waiting jobs that fit, best first; running jobs keep their GPUs."""
        refused_demands: set[int] = set()
        starts: list[int] = []
        while self.idle > 0:
            if self._heaps.changed:
                self._best_waiting = self._heaps.best_waiting()
            job = self._best_fitting(refused_demands)
            if job is None:
                break
            self._waiting.remove(job)
            self._heaps.remove(job)
            self.idle -= self.table.gpus[job]
            self.ordering.start(job, now)
            self.reserve_nodes(job)
            self._running[job] = None
            starts.append(job)
        return starts

    def _best_fitting(self, refused_demands: set[int]) -> int | None:
        """Best waiting job that fits. Demands that do not fit are added to ``refused_demands``.

        The result is None if no job fits, or if a job that does not fit blocks all jobs behind it.
        """
        gpus = self.table.gpus
        for job in self._best_waiting:
            demand = gpus[job]
            if demand in refused_demands:
                continue
            if answer(self.placer, "fits", demand):
                return job
            if self.blocking:
                return None
            refused_demands.add(demand)
        return None

    def _run(self, job: int, now: float) -> None:
        """Add a running job."""
        slope = self.ordering.slope(job)
        self._running[job] = None
        self._heaps.add_running(job, self.ordering.key(job, now), slope, now)
