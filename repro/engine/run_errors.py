"""Errors that name the policy of a simulation: exceptions in its code, jobs that never run."""

import contextlib
import sys
import traceback
from collections.abc import Iterator, Mapping

import numpy as np

from repro.base.errors import PolicyError, ReproError
from repro.base.outside import (
    is_of_package,
    last_frame,
    outside_classes,
    place_note,
    shown_frame,
)
from repro.engine.type_choice import TypeChoice
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.policy import Order, Policy
from repro.model.view import View
from repro.placement.base import Placer, answer, rule_name
from repro.placement.by_type import rule_of

#: Libraries that the engine calls. Frames of other modules are in code of the caller.
_LIBRARIES = {*sys.stdlib_module_names, "numpy", "pandas", "scipy", "simpy", "sortedcontainers"}


@contextlib.contextmanager
def naming_the_policy(
    policy: Policy, view: View | None = None, table: JobTable | None = None
) -> Iterator[None]:
    """Turn an exception from the code of a policy into a PolicyError with policy, time and job.

    Without ``view`` and ``table``, the policy fails before the first event.
    """
    try:
        yield
    except ReproError:
        raise
    except (Exception, SystemExit) as error:
        # SimPy raises a copy of the exception of a process
        cause = error.__cause__ or error
        time = "before the first event" if view is None else f"at {view.now:g} s"
        subject = f"policy {policy.name!r} fails {time}"
        fault = f"{type(cause).__name__}: {cause}"
        classes = outside_classes(type(policy))
        callers_modules = _callers_modules(cause)
        if callers_modules and _is_of_process(cause):
            raise
        modules = {
            cls.__module__ for cls in classes or type(policy).__mro__ if issubclass(cls, Policy)
        }
        last = last_frame(cause, modules - {Policy.__module__})
        if last is None and classes:
            # such as the ordering of the policy, in a module of its own
            last = last_frame(cause, callers_modules[:1])
        if last is not None:
            job = last[0].f_locals.get("job")
            job_note = ""
            if table is not None and isinstance(job, int) and 0 <= job < table.count:
                job_note = f", job {table.ids[job]!r}"
            raise PolicyError(f"{subject}{job_note}: {fault} ({shown_frame(*last)})") from error
        if not classes:
            raise
        # the engine failed on what a method of the policy returned
        raise PolicyError(
            f"{subject}: {fault}; check what the methods of class {classes[0].__name__} return"
            f"{place_note(classes[0])}"
        ) from error


def _modules(error: BaseException) -> list[str]:
    """Modules of the frames of an error, the outermost first."""
    frames = traceback.walk_tb(error.__traceback__)
    return [str(frame.f_globals.get("__name__")) for frame, _ in frames]


def _callers_modules(error: BaseException) -> list[str]:
    """Modules of the caller among the frames of an error, the outermost first."""
    return [
        module
        for module in _modules(error)
        if not is_of_package(module) and module.partition(".")[0] not in _LIBRARIES
    ]


def _is_of_process(error: BaseException) -> bool:
    """Whether an error came from an added process, which SimPy calls without the event loop."""
    return next(
        not is_of_package(module)
        for module in _modules(error)
        if module.partition(".")[0] != "simpy"
    )


def never_ends(policy: str, now: float, table: JobTable, runs: Mapping[int, Run]) -> PolicyError:
    """Error of a simulation without future events although jobs are unfinished."""
    partial = [job for job, run in runs.items() if run.waits]
    if partial:
        gpus = sum(runs[job].gpus for job in partial)
        return PolicyError(
            f"policy {policy!r}: deadlock at {now:g} s; {len(partial)} jobs, first "
            f"{table.ids[partial[0]]!r}, hold {gpus:g} GPUs, each waits for more, and no other job "
            f"can run; use a policy that places whole gangs, or a larger cluster"
        )
    first = next(iter(table.active))
    return PolicyError(
        f"policy {policy!r} leaves {len(table.active)} jobs waiting for ever at {now:g} s, first "
        f"{table.ids[first]!r}; every decision must run a job or name a wake-up"
    )


def refused_gang(
    policy: Policy,
    table: JobTable,
    placers: Mapping[str | None, Placer],
    types: TypeChoice | None,
    now: float,
) -> PolicyError | None:
    """Error of a placement that refuses a waiting gang although enough GPUs are idle.

    None: it refuses no gang. Only orders without preemption ask whether a gang fits. ``placers``
    has the rule on the nodes of each GPU type, and ``types`` chooses among several.
    """
    if not isinstance(policy, Order) or policy.preemptive:
        return None
    for job in table.active:
        gpus = table.gpus[job]
        for name in placers if types is None else types.names_by_speed(job):
            placer = placers[name]
            if gpus > placer.free or answer(placer, "fits", gpus):
                continue
            rule = rule_of(placer)
            type_note = "" if name is None else f" of type {name!r}"
            return PolicyError(
                f"placement {rule_name(rule)}: `fits({gpus})` is False{place_note(rule.fits)} at "
                f"{now:g} s although {placer.free} GPUs{type_note} are idle, so job "
                f"{table.ids[job]!r} never starts under policy {policy.name!r}; `fits` must return "
                f"True if `_place` finds nodes"
            )
    return None


def unfinished(policy: str, table: JobTable) -> PolicyError:
    """Error of a compiled run that ends although jobs are unfinished."""
    jobs = np.flatnonzero(np.isnan(table.state.end))
    return PolicyError(
        f"policy {policy!r}: the function that compiled_run(cluster) returned leaves {len(jobs)} "
        f"jobs unfinished, first {table.ids[jobs[0]]!r}; it must write the end of every job"
    )


def livelock(policy: str, now: float, table: JobTable, starts: int) -> PolicyError:
    """Error of a simulation in which jobs start again and again and never progress."""
    return PolicyError(
        f"policy {policy!r}: livelock at {now:g} s; in the last {starts:,} starts none of the "
        f"{len(table.active)} unfinished jobs progressed, because each was stopped, failed or "
        f"paid the cost of a start again before it did any work; use a shorter overhead or repair, "
        f"or longer turns: interval, round_s, quantum, lease, slice_s, thresholds"
    )


def no_work_is_kept(policy: str, now: float, table: JobTable, failures: int) -> PolicyError:
    """Error of a simulation in which jobs fail again and again before their first checkpoint."""
    return PolicyError(
        f"policy {policy!r}: livelock at {now:g} s; in the last {failures:,} failures none of the "
        f"{len(table.active)} unfinished jobs kept any work, because each failed before its next "
        f"checkpoint; use a shorter checkpoint time or a longer mtbf"
    )


def runs_no_job(policy: str, now: float, table: JobTable, decisions: int) -> PolicyError:
    """Error of a simulation in which decision after decision runs no job."""
    first = next(iter(table.active))
    return PolicyError(
        f"policy {policy!r} leaves {len(table.active)} jobs waiting for ever at {now:g} s, first "
        f"{table.ids[first]!r}; its last {decisions:,} decisions run no job and no job is still to "
        f"arrive; run a job, or name a later wake-up"
    )
