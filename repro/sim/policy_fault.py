"""An error inside the code of a policy, in one line: which policy, when, for which job."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path

from repro.core.policy import Policy
from repro.errors import PolicyError


def policy_fault(
    policy: Policy, error: Exception, now: float, ids: Sequence[object]
) -> PolicyError | None:
    """Return the error that names the policy, or None if its own code did not raise."""
    own = {cls.__module__ for cls in type(policy).__mro__ if issubclass(cls, Policy)}
    own.discard(Policy.__module__)
    # SimPy raises a copy of what a process raised
    cause = error.__cause__ or error
    frames = [
        (frame, line)
        for frame, line in traceback.walk_tb(cause.__traceback__)
        if frame.f_globals.get("__name__") in own
    ]
    if not frames:
        return None
    frame, line = frames[-1]
    job = frame.f_locals.get("job")
    about = f", job {ids[job]!r}" if isinstance(job, int) and 0 <= job < len(ids) else ""
    code = frame.f_code
    return PolicyError(
        f"policy {policy.name!r} fails at {now:g} s{about}: {type(cause).__name__}: {cause} "
        f"({Path(code.co_filename).name}:{line} in {code.co_name}); --debug shows the traceback"
    )
