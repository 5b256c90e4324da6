"""A cluster of several GPU types as one cluster per type, for policies of groups and divided GPUs.

A job joins one type at its arrival and stays there. The policy decides on each type as on a cluster
of its own, where durations and remaining times are those on the type. Job i joins the type j with
the greatest speed, divided by the load there if above 1:

    argmax over j of  s_ij / max(1, (g_i + sum of g_k over the unfinished jobs k on type j) / G_j)

with s_ij the speed of job i on type j, g_i its demand and G_j the GPUs of type j. A job joins only
types that have enough GPUs for it, that it asks for, and on which the policy can run it.

Ties: the first type in alphabetical order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from repro.base.errors import PolicyError
from repro.engine.decision_checks import check_fields, checked_row, checked_wake
from repro.engine.policy_answers import reasons_of, session_of
from repro.engine.type_choice import TypeChoice
from repro.model.cluster.spec import Cluster
from repro.model.decision import ROW_NUMBER, Run, RunSet
from repro.model.jobs import JobTable
from repro.model.policy import Policy
from repro.model.speeds import Speeds
from repro.model.view import View


class TypeView(View):
    """View of the jobs and nodes of one GPU type. Node numbers count the nodes of the type.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    gpu_type : str
        The GPU type.
    policy : Policy
        Policy on the GPUs of the type.
    perf : Performance or None
        Performance model of the simulation.
    whole : View
        View of the whole cluster, which records the inputs that the policy reads.
    """

    def __init__(
        self,
        table: JobTable,
        gpu_type: str,
        policy: Policy,
        perf: Any,
        whole: View,
    ) -> None:
        cluster = whole.cluster
        self._whole = whole
        #: number in the whole cluster of each node of the type
        self.node_numbers = [
            number for number, node in enumerate(cluster.nodes) if node.gpu_type == gpu_type
        ]
        #: the inverse: number in this view of each node
        self._number_in_view = {number: here for here, number in enumerate(self.node_numbers)}
        nodes = tuple(cluster.nodes[number] for number in self.node_numbers)
        type_cluster = Cluster(nodes, f"{cluster}:{gpu_type}")
        speeds = Speeds(table, perf, {gpu_type: type_cluster.num_gpus})
        super().__init__(table, type_cluster, policy.needs, policy.name, speeds)
        #: unfinished jobs of the type, in order of arrival
        self.members: dict[int, None] = {}

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return self._whole.seed

    @property
    def jobs(self) -> list[int]:
        """Jobs of the type that have arrived and not finished, in order of arrival."""
        return list(self.members)

    @property
    def running(self) -> list[int]:
        """Jobs that hold GPUs of the type, in order of arrival."""
        return [job for job in self.members if self.is_running(job)]

    @property
    def idle_gpus(self) -> list[int]:
        """Idle GPUs of each node of the type."""
        idle = self._whole.idle_gpus
        return [idle[number] for number in self.node_numbers]

    def nodes(self, job: int) -> tuple[tuple[int, int], ...]:
        """Nodes of the job, as (node, GPUs there)."""
        return tuple((self._number_in_view[node], gpus) for node, gpus in self._whole.nodes(job))

    def run(self, job: int) -> Run | None:
        """Gang of the job, with the nodes of its tasks."""
        run = self._whole.run(job)
        if run is None or not run.tasks:
            return run
        return replace(run, tasks=tuple(self._number_in_view[node] for node in run.tasks))


@dataclass
class _Part:
    """One GPU type: its view, and the decision function of the policy there."""

    gpu_type: str
    view: TypeView
    policy: Policy
    decide: Callable[[View], Any]
    #: total demand of its unfinished jobs (GPUs)
    demand: int = 0
    #: whether jobs arrived or finished since its last decision
    changed: bool = True
    #: instant (s) at which it wants to decide even without an event
    wake: float = math.inf
    #: gangs of its last decision, in order; None if it named only changes
    runs: list[Run] | None = None
    #: `RunSet.order` of its last decision
    order: Sequence[int] = ()
    #: gang of each job that a decision has named by its row number instead of a `Run`
    bare_runs: dict[int, Run] = field(default_factory=dict)


class Partition:
    """Decision function of a policy that decides on each GPU type as on a cluster of its own.

    Parameters
    ----------
    policy : Policy
        Policy of the simulation.
    table : JobTable
        Jobs of the simulation.
    choice : TypeChoice
        Speed of each job on each GPU type.
    perf : Performance or None
        Performance model of the simulation.
    view : View
        View of the whole cluster.
    at_intervals : bool
        Whether decisions are made at an interval. Otherwise the policy decides on a type after an
        arrival, a completion or its wake-up there.

    Raises
    ------
    PolicyError
        If the policy could run a job on no type.
    """

    def __init__(
        self,
        policy: Policy,
        table: JobTable,
        choice: TypeChoice,
        perf: Any,
        view: View,
        *,
        at_intervals: bool,
    ) -> None:
        self._table = table
        self._choice = choice
        self._at_intervals = at_intervals
        self._name = policy.name
        self._parts: list[_Part] = []
        for gpu_type in choice.gpu_types:
            assert gpu_type is not None, "a partition is of named types"
            type_policy = policy.on_type(gpu_type, choice.gpu_types)
            part_view = TypeView(table, gpu_type, type_policy, perf, view)
            part_view.holdings = view.holdings
            session = session_of(type_policy, part_view)
            self._parts.append(_Part(gpu_type, part_view, type_policy, session))
        self._part_of: dict[int, _Part] = {}
        reasons = [reasons_of(part.policy, part.view) for part in self._parts]
        #: columns of the types on which the policy can run each job
        self._possible = [self._possible_columns(job, reasons) for job in range(table.count)]

    def __call__(self, view: View) -> RunSet:
        """Let the policy decide on each type that has had an event, and join the decisions."""
        for job in view.finished:
            part = self._part_of.pop(job)
            del part.view.members[job]
            part.bare_runs.pop(job, None)
            part.demand -= self._table.gpus[job]
            part.view.finished.append(job)
            part.changed = True
        fresh: dict[str, list[int]] = {part.gpu_type: [] for part in self._parts}
        for job in view.fresh:
            part = self._join(job)
            fresh[part.gpu_type].append(job)
        decisions = [self._ask(part, view, fresh[part.gpu_type]) for part in self._parts]
        wake = min(part.wake for part in self._parts)
        new_decisions = [decision for decision in decisions if decision is not None]
        runs: list[Run] = []
        if all(decision.keep for decision in new_decisions):
            stop: list[int] = []
            for part, decision in zip(self._parts, decisions, strict=True):
                if decision is not None:
                    part.runs = None
                    runs += self._typed(part, decision)
                    # `+=` would add the numbers of an array
                    stop.extend(decision.stop)
            return RunSet(runs, wake=wake, order=self._joined_order(), keep=True, stop=stop)
        exact = True
        for part, decision in zip(self._parts, decisions, strict=True):
            runs += self._all_runs(part, decision)
            if decision is not None:
                exact = exact and (decision.keep or decision.fill == "exact")
        return RunSet(runs, "exact" if exact else "skip", wake, self._joined_order())

    def _joined_order(self) -> list[int]:
        """Orders of the types, one after the other; empty if no type has one.

        If only some types have an order, the jobs of the others are in the order of their gangs.
        If a decision of these named only changes, they are in the order of arrival.
        """
        if not any(len(part.order) for part in self._parts):
            return []
        joined: list[int] = []
        for part in self._parts:
            if len(part.order):
                joined.extend(part.order)
            elif part.runs is not None:
                joined.extend(job for run in part.runs for job in run.jobs)
            else:
                joined.extend(part.view.members)
        return joined

    def _join(self, job: int) -> _Part:
        """Add a job that arrived to the type on which it would run fastest."""
        speeds = self._choice.speeds(job)
        demand = self._table.gpus[job]

        def shared_speed(column: int) -> float:
            load = (demand + self._parts[column].demand) / self._choice.gpu_counts[column]
            return float(speeds[column] / max(1.0, load))

        part = self._parts[max(self._possible[job], key=shared_speed)]
        self._part_of[job] = part
        part.view.members[job] = None
        part.demand += demand
        part.changed = True
        return part

    def _possible_columns(
        self, job: int, reasons: Sequence[Callable[[int], str] | None]
    ) -> tuple[int, ...]:
        """Columns of the types on which the policy can run a job, in alphabetical order."""
        columns = sorted(self._choice.types_by_speed(job))
        reason_of = {c: reason(job) if (reason := reasons[c]) else "" for c in columns}
        possible = tuple(c for c in columns if not reason_of[c])
        if not possible:
            raise PolicyError(
                f"policy {self._name!r}, GPUs of one type: job {self._table.ids[job]!r} "
                f"{reason_of[columns[0]]}"
            )
        return possible

    def _ask(self, part: _Part, view: View, fresh: Sequence[int]) -> RunSet | None:
        """Decision of the policy on one type; None if the type has had no event."""
        if not (part.changed or self._at_intervals or view.now >= part.wake):
            return None
        part.view.now = view.now
        part.view.changed = part.changed
        part.view.fresh = fresh
        part.changed = False
        decision = part.decide(part.view)
        part.view.finished.clear()
        if not isinstance(decision, RunSet):
            raise PolicyError(
                f"policy {self._name!r} returns {type(decision).__name__} without GPU types; use a "
                f"cluster of one type"
            )
        part.wake = checked_wake(self._name, decision.wake)
        check_fields(self._name, decision)
        part.order = decision.order
        return decision

    def _typed(self, part: _Part, decision: RunSet) -> Iterator[Run]:
        """Gangs of a decision, with their GPU type and with node numbers of the whole cluster."""
        numbers = part.view.node_numbers
        for entry in decision.runs:
            if isinstance(entry, Run):
                tasks = tuple(numbers[node] for node in entry.tasks)
                yield replace(entry, gpu_type=part.gpu_type, tasks=tasks)
                continue
            # a dictionary would find 0.0 at 0; `checked_row` refuses all that is no whole number
            is_whole = isinstance(entry, ROW_NUMBER)
            run = part.bare_runs.get(entry) if is_whole else None
            if run is None:
                demand = self._table.gpus[checked_row(self._name, entry, self._table.count)]
                run = Run((entry,), demand, part.gpu_type)
                part.bare_runs[entry] = run
            yield run

    def _all_runs(self, part: _Part, decision: RunSet | None) -> Iterator[Run]:
        """All gangs of a type after a decision that may name only changes, or be None."""
        if decision is not None and not decision.keep:
            typed = self._typed(part, decision)
            part.runs = list(
                _before_first_misfit(typed, part) if decision.fill == "block" else typed
            )
            yield from part.runs
            return
        if decision is None and part.runs is not None:
            # none of its jobs has arrived or finished since then
            yield from part.runs
            return
        part.runs = None
        changed = [] if decision is None else list(self._typed(part, decision))
        replaced = {job for run in changed for job in run.jobs}
        replaced.update(() if decision is None else decision.stop)
        runs = self._present_runs(part)
        yield from (run for run in runs if not replaced.intersection(run.jobs))
        yield from changed

    def _present_runs(self, part: _Part) -> list[Run]:
        """Gangs that hold GPUs of a type, in the order of their jobs."""
        runs = part.view.holdings.runs if part.view.holdings else {}
        present = (runs[job] for job in part.view.members if job in runs)
        return list({id(run): run for run in present}.values())


def _before_first_misfit(runs: Iterator[Run], part: _Part) -> Iterator[Run]:
    """Gangs up to the first that does not fit the GPUs of the type."""
    left = float(part.view.cluster.num_gpus)
    for run in runs:
        left -= run.charged
        if left < 0:
            return
        yield run
