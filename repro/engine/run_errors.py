"""Errors that name the policy of a simulation: exceptions in its code, jobs that never run."""

import contextlib
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType

from repro.base.errors import PolicyError, ReproError
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.model.policy import Policy
from repro.model.view import View


@contextlib.contextmanager
def naming_the_policy(policy: Policy, view: View, table: JobTable) -> Iterator[None]:
    """Turn an exception from the code of a policy into a PolicyError with policy, time and job."""
    try:
        yield
    except ReproError:
        raise
    except Exception as error:
        # SimPy raises a copy of the exception of a process
        cause = error.__cause__ or error
        last = _last_frame(cause, policy)
        if last is None:
            raise
        frame, line = last
        job = frame.f_locals.get("job")
        ids = table.ids
        job_note = ""
        if isinstance(job, int) and 0 <= job < len(ids):
            job_note = f", job {ids[job]!r}"
        raise PolicyError(
            f"policy {policy.name!r} fails at {view.now:g} s{job_note}: "
            f"{type(cause).__name__}: {cause} ({Path(frame.f_code.co_filename).name}:{line} in "
            f"{frame.f_code.co_name})"
        ) from error


def _last_frame(error: BaseException, policy: Policy) -> tuple[FrameType, int] | None:
    """Innermost frame in the modules of a policy, and its line; None: no frame is there."""
    modules = {cls.__module__ for cls in type(policy).__mro__ if issubclass(cls, Policy)}
    modules.discard(Policy.__module__)
    frames = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__") in modules
    ]
    return frames[-1] if frames else None


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


def livelock(policy: str, now: float, table: JobTable, starts: int) -> PolicyError:
    """Error of a simulation in which jobs start again and again and never progress."""
    return PolicyError(
        f"policy {policy!r}: livelock at {now:g} s; in the last {starts:,} starts none of the "
        f"{len(table.active)} unfinished jobs progressed, because each was stopped or failed too "
        f"early; use a shorter overhead or repair, or longer turns: interval, round_s, quantum, "
        f"lease, slice_s, thresholds"
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
