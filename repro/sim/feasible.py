"""Whether an allocation matrix can be carried out on a cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from repro.errors import PolicyError
from repro.sim.speeds import Speeds

#: Relative overshoot of shares put down to rounding in the policy's solver.
TOLERANCE = 1e-6

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def checked(
    members: Ints,
    x: Floats,
    widths: Ints,
    speeds: Speeds,
    ids: Sequence[object],
    who: str,
    now: float,
) -> Floats:
    """Return shares without the rounding errors of a solver.

    Parameters
    ----------
    members : ndarray, shape (rows, 2)
        Row numbers of the jobs of each row, -1 for none.
    x : ndarray, shape (rows, GPU types)
        Shares of time.
    widths : ndarray, shape (jobs,)
        GPUs every job of the trace asks for.
    speeds : Speeds
        The GPUs of each type.
    ids : sequence
        Names of the jobs of the trace, for messages.
    who : str
        Whose shares they are, for messages.
    now : float
        When (s), for messages.

    Raises
    ------
    PolicyError
        If shares are negative, add up to more than 1 for a job, or to more GPUs than there are.
    """
    jobs, two = members[:, 0], members[:, 1] >= 0
    width = widths[jobs]
    if two.any() and (width[two] != widths[members[two, 1]]).any():
        raise PolicyError(f"{who}: jobs that share GPUs must be of one size")
    used = width @ x
    limits = speeds.gpu_counts
    spent = x @ np.ones(x.shape[1])
    time = np.bincount(jobs, spent, minlength=1)
    if two.any():
        more = np.bincount(members[two, 1], spent[two], minlength=len(time))
        more[: len(time)] += time
        time = more
    if len(x) and (
        not x.min() >= -TOLERANCE
        or time.max() > 1 + TOLERANCE
        or (used > limits * (1 + TOLERANCE)).any()
    ):
        wrong = _violated(members, x, time.astype(float), used, speeds, ids)
        raise PolicyError(f"{who}: shares must {wrong[0]}: at {now:g} s {wrong[1]}")
    trimmed: Floats = np.clip(x, 0.0, None) * np.minimum(1.0, limits / np.maximum(used, 1e-300))
    return trimmed


def _violated(
    members: Ints, x: Floats, time: Floats, used: Floats, speeds: Speeds, ids: Sequence[object]
) -> tuple[str, str]:
    """Say what impossible shares violate, and where or by whom most."""
    kinds, limits = speeds.gpu_types, speeds.gpu_counts
    if not x.min() >= -TOLERANCE:
        # of several, a number that is none comes first
        row, column = (int(at) for at in np.unravel_index(x.argmin(), x.shape))
        one, two = (ids[job] for job in members[row])
        whose = f"job {one!r}" if members[row, 1] < 0 else f"jobs {one!r} and {two!r}"
        return "be >= 0", f"that of {whose} in {kinds[column]!r} is {x[row, column]:g}"
    if time.max() > 1 + TOLERANCE:
        job = int(time.argmax())
        return "sum to at most 1 per job", f"those of job {ids[job]!r} sum to {time[job]:.9g}"
    column = int((used / np.maximum(limits, 1e-300)).argmax())
    taken = f"they take {used[column]:.9g} of {limits[column]:g} GPUs of {kinds[column]!r}"
    return "fit the GPUs of each type", taken
