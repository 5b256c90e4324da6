"""Checks of decisions: gangs are whole, hosts run, GPUs suffice. Errors name time and job."""

from collections.abc import Mapping
from dataclasses import replace

from repro.base.errors import PolicyError
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.policy import Policy


class DecisionChecks:
    """Checks of the runs that a policy decides on.

    Parameters
    ----------
    table : JobTable
        Jobs of the run.
    policy : Policy
        Policy of the run.
    """

    def __init__(self, table: JobTable, policy: Policy) -> None:
        self._table = table
        self._policy = policy

    def check_members(self, run: Run, chosen: Mapping[int, Run], now: float) -> None:
        """Check that the members of a run are present, named once, and get their whole demand.

        ``chosen`` has the runs that the decision names before.
        """
        for job in run.jobs:
            if job not in self._table.active or job in chosen:
                state = "twice" if job in chosen else "which is not waiting or running"
                raise self.error(now, job, f"names it {state}")
        if not run.gpus > 0:
            raise self.error(now, run.jobs[0], f"gives it {run.gpus:g} GPUs; more than 0")
        if self._policy.elastic:
            return
        for job in run.jobs:
            demand = self._table.gpus[job]
            if run.gpus != demand and not (run.waits and run.gpus < demand):
                raise self.error(
                    now,
                    job,
                    f"gives it {run.gpus:g} GPUs but it asks for {demand}; "
                    f"all or none, unless the policy declares `elastic = True`",
                )

    def check_hosts(self, run: Run, chosen: Mapping[int, Run], now: float) -> None:
        """Check that the hosts of a run are chosen before it and have the GPUs that it shares."""
        absent = [job for job in run.hosts if job not in chosen]
        if absent:
            raise self.error(
                now, run.jobs[0], f"shares GPUs with row {absent[0]}, which does not run"
            )
        host_gpus = sum({id(chosen[job]): chosen[job].gpus for job in run.hosts}.values())
        if not 0 <= run.shared <= min(run.gpus, host_gpus):
            raise self.error(
                now,
                run.jobs[0],
                f"shares {run.shared:g} of its {run.gpus:g} GPUs with jobs that hold {host_gpus:g}",
            )

    def known_row(self, job: int) -> int:
        """``job``, after a check that it is a row number of the trace."""
        if not 0 <= job < self._table.count:
            raise PolicyError(f"policy {self._policy.name!r} names unknown row number {job!r}")
        return job

    def too_few_gpus(self, now: float, job: int, gpus: float, free: float) -> PolicyError:
        """Error of a run that gets more GPUs than are free."""
        return self.error(now, job, f"gives it {gpus:g} GPUs where {free:g} are left")

    def error(self, now: float, job: int, mistake: str) -> PolicyError:
        """Error of a decision, with policy, time and job."""
        return PolicyError(
            f"policy {self._policy.name!r}, time {now:g} s, job {self._table.ids[job]!r}: {mistake}"
        )


def with_gpu_type(run: Run, free: Mapping[str | None, float], held: Run | None) -> Run:
    """``run`` with a GPU type, on a cluster that has types.

    A run without a type stays on the type of ``held``, the run of its first job, if that has enough
    free GPUs. Else it goes to the type with most free GPUs.
    """
    if run.gpu_type is not None or None in free:
        return run
    if held is not None and free.get(held.gpu_type, 0.0) >= run.gpus:
        return replace(run, gpu_type=held.gpu_type)
    return replace(run, gpu_type=max(free, key=lambda name: (free[name], str(name))))
