"""Checks of decisions: gangs get their demands, GPUs suffice, and hosts hold GPUs.

A host is a job whose GPUs another gang uses as well. Errors name time and job.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import get_args

from repro.base.errors import PolicyError
from repro.engine.type_choice import TypeChoice
from repro.model.decision import ROW_NUMBER, Fill, Run, RunSet
from repro.model.jobs import JobTable
from repro.model.policy import Policy

#: Largest number of decisions in a row that name a wake-up at or before their own instant.
MAX_LATE_WAKES = 1000


class LateWakes:
    """Count of decisions in a row whose wake-ups (s) do not let the time advance.

    Rounding may put a wake-up at or before the decision that names it. The engine then decides
    again one floating-point number later. Only many such decisions in a row are a mistake.
    """

    def __init__(self) -> None:
        self._last_decision = -math.inf
        self._in_a_row = 0

    def are_too_many(self, wake: float, now: float) -> bool:
        """Count a decision; return whether more than `MAX_LATE_WAKES` in a row were late."""
        is_stuck = wake <= now <= math.nextafter(self._last_decision, math.inf)
        self._in_a_row = self._in_a_row + 1 if is_stuck else 0
        self._last_decision = now
        return self._in_a_row > MAX_LATE_WAKES


class DecisionChecks:
    """Checks of the gangs in the decisions of a policy.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    policy : Policy
        Policy of the simulation.
    """

    def __init__(self, table: JobTable, policy: Policy) -> None:
        self._table = table
        self._policy = policy
        self._late_wakes = LateWakes()

    def check_progress(self, wake: float, now: float) -> None:
        """Raise PolicyError if the wake-ups of a policy (s) do not let the time advance."""
        if self._late_wakes.are_too_many(wake, now):
            # the time has advanced by these decisions, each by one floating-point number
            time = f"{round(now, 9):g}"
            raise PolicyError(
                f"policy {self._policy.name!r}, time {time} s: RunSet(wake={round(wake, 9):g}) is "
                f"not after the present instant, {MAX_LATE_WAKES:,} times in a row; give an "
                f"instant (s) after view.now, such as view.now + 60"
            )

    def check_members(self, run: Run, chosen: Mapping[int, Run], now: float) -> None:
        """Check that the members of a gang are present, named once, and get their demand.

        A gang with `Run.waits` may get fewer GPUs. An elastic policy may give any number above 0.
        ``chosen`` has the gangs that the decision names before this gang.
        """
        if not run.jobs:
            raise self.no_jobs(run, now)
        for number, job in enumerate(run.jobs):
            if not isinstance(job, ROW_NUMBER):
                self.checked_row(job)
            if job in chosen or job in run.jobs[:number]:
                raise self.error(now, job, "names the job twice")
            if job not in self._table.active:
                raise self.error(now, job, "names a job that is neither waiting nor running")
        if not run.gpus > 0:
            raise self.error(now, run.jobs[0], f"gives it {run.gpus:g} GPUs; give more than 0")
        if self._policy.elastic:
            return
        for job in run.jobs:
            demand = self._table.gpus[job]
            if run.gpus != demand and not (run.waits and run.gpus < demand):
                raise self.error(
                    now,
                    job,
                    f"gives it {run.gpus:g} GPUs, but its demand is {demand}; "
                    f"give all or none, or declare `elastic = True` in the policy",
                )

    def check_hosts(
        self,
        run: Run,
        holding: Mapping[int, Run],
        now: float,
        absence: str = "which the decision does not name before it",
    ) -> None:
        """Check that the hosts of a gang hold GPUs, and that these suffice.

        ``holding`` has the gangs of jobs that can be hosts. ``absence`` is for the message: it says
        why a job that is not in ``holding`` cannot be a host.
        """
        absent = [job for job in run.hosts if job not in holding]
        if absent:
            host = self._table.ids[self.checked_row(absent[0])]
            raise self.error(now, run.jobs[0], f"shares GPUs with job {host!r}, {absence}")
        host_gpus = sum({id(holding[job]): holding[job].gpus for job in run.hosts}.values())
        if not 0 <= run.shared <= min(run.gpus, host_gpus):
            raise self.error(
                now,
                run.jobs[0],
                f"shares {run.shared:g} of its {run.gpus:g} GPUs with jobs that hold {host_gpus:g}",
            )

    def checked_order(
        self, order: Iterable[int], holders: Iterable[int], now: float
    ) -> dict[int, None]:
        """Jobs of `RunSet.order`, each once; PolicyError unless they include all ``holders``."""
        ordered = dict.fromkeys(map(self.checked_row, order))
        for job in holders:
            if job not in ordered:
                raise self.error(
                    now,
                    job,
                    "holds GPUs, but RunSet.order does not name it; name all jobs that hold GPUs, "
                    "or leave order out",
                )
        return ordered

    def check_rows(self, decision: RunSet) -> None:
        """Check that the gangs of a decision have row numbers of jobs, and numbers of GPUs."""
        rows = list(decision.stop)
        for run in decision.runs:
            if not isinstance(run, Run):
                rows.append(run)
                continue
            for name in ("jobs", "hosts"):
                jobs = getattr(run, name)
                if not isinstance(jobs, Collection):
                    raise self._no_rows(name, jobs)
                rows.extend(jobs)
            for name in ("gpus", "shared"):
                gpus = getattr(run, name)
                if not isinstance(gpus, Real):
                    raise PolicyError(
                        f"policy {self._policy.name!r} names Run({name}={gpus!r}); give a number "
                        f"of GPUs"
                    )
        for row in rows:
            self.checked_row(row)

    def checked_row(self, job: int) -> int:
        """``job``, after a check that it is a row number of the trace."""
        return checked_row(self._policy.name, job, self._table.count)

    def too_few_gpus(self, now: float, job: int, gpus: float, free: float) -> PolicyError:
        """Error of a gang that gets more GPUs than are free."""
        return self.error(now, job, f"gives it {gpus:g} GPUs, but only {free:g} are free")

    def no_jobs(self, run: Run, now: float) -> PolicyError:
        """Error of a gang without jobs, or whose jobs are no collection."""
        if not isinstance(run.jobs, Collection):
            return self._no_rows("jobs", run.jobs)
        return PolicyError(
            f"policy {self._policy.name!r}, time {now:g} s: a Run without jobs; name at least one"
        )

    def _no_rows(self, name: str, jobs: object) -> PolicyError:
        """Error of a field of a gang that is no collection of row numbers."""
        return PolicyError(
            f"policy {self._policy.name!r} names Run({name}={jobs!r}); give a tuple of row numbers"
        )

    def error(self, now: float, job: int, mistake: str) -> PolicyError:
        """Error of a decision, with policy, time and job."""
        job_id = self._table.ids[self.checked_row(job)]
        return PolicyError(
            f"policy {self._policy.name!r}, time {now:g} s, job {job_id!r}: {mistake}"
        )


def checked_row(policy_name: str, job: int, count: int) -> int:
    """``job``, after a check that it is a row number of a trace of ``count`` jobs.

    Raises
    ------
    PolicyError
        If it is not.
    """
    if not isinstance(job, Integral) or not 0 <= job < count:
        raise PolicyError(f"policy {policy_name!r} names unknown row number {job!r}")
    return job


def checked_wake(policy_name: str, wake: object) -> float:
    """Instant of the next decision (s) that a policy returned.

    Raises
    ------
    PolicyError
        If it is no number.
    """
    if isinstance(wake, Real) and not math.isnan(wake):
        return float(wake)
    raise PolicyError(
        f"policy {policy_name!r} returned RunSet(wake={wake!r}); give the instant (s) of the next "
        "decision, or leave wake out to decide at events only"
    )


def check_fields(policy_name: str, decision: RunSet) -> None:
    """Check the fields of a decision other than the instant of waking.

    Raises
    ------
    PolicyError
        If ``fill`` is not a value of `Fill`, or ``runs``, ``order`` or ``stop`` is no collection,
        or if there are jobs in ``stop`` without ``keep``.
    """
    fill: object = decision.fill
    if not isinstance(fill, str) or fill not in get_args(Fill):
        raise PolicyError(
            f"policy {policy_name!r} returned RunSet(fill={fill!r}); give skip, block or exact"
        )
    for name in ("runs", "order", "stop"):
        values = getattr(decision, name)
        # the engine goes through a field several times, and an iterator ends after the first
        if not isinstance(values, Collection):
            raise PolicyError(
                f"policy {policy_name!r} returned RunSet with {name} of type "
                f"{type(values).__name__}; give a list or tuple"
            )
    if len(decision.stop) and not decision.keep:
        raise PolicyError(
            f"policy {policy_name!r} returned RunSet(stop=…) without keep=True; without keep, "
            f"every job that runs does not name stops anyway"
        )


def with_gpu_type(
    run: Run,
    free: Mapping[str | None, float],
    present_run: Run | None,
    choice: TypeChoice | None,
    holding: Mapping[int, Run],
) -> Run:
    """Choose the GPU type of a gang without a type, on a cluster that has types.

    A gang that shares GPUs runs on the type of its first host, which is in ``holding``. Another
    gang stays on the type of ``present_run``, the present gang of its first job, if this type
    has enough free GPUs. Otherwise ``choice`` gives the fastest type with enough free GPUs. If no
    type has enough, the gang goes to the type with the most free GPUs, among the types on which all
    its jobs can run. If ``choice`` is None, no speeds are known, and the gang goes to the type with
    the most free GPUs.
    """
    if run.gpu_type is not None or None in free:
        return run
    if run.hosts:
        return replace(run, gpu_type=holding[run.hosts[0]].gpu_type)
    if present_run is not None and free.get(present_run.gpu_type, 0.0) >= run.gpus:
        return replace(run, gpu_type=present_run.gpu_type)
    names: list[str | None] = list(free)
    if choice is not None:
        common = set.intersection(*(set(choice.types_by_speed(job)) for job in run.jobs))
        by_speed = [choice.gpu_types[c] for c in choice.types_by_speed(run.jobs[0]) if c in common]
        fitting = next((name for name in by_speed if free[name] >= run.charged), None)
        if fitting is not None:
            return replace(run, gpu_type=fitting)
        # If no type suits all members, any type gives one of them the rate 0. The engine then
        # refuses the gang.
        names = list(by_speed) or names
    return replace(run, gpu_type=max(names, key=lambda name: (free[name], str(name))))
