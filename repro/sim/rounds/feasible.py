"""Whether an allocation matrix can be carried out on a cluster."""

from collections.abc import Sequence

import numpy as np

from repro.core.speeds import Speeds
from repro.errors import PolicyError
from repro.typing import Floats, Ints

#: Relative overshoot of shares put down to rounding in the policy's solver.
TOLERANCE = 1e-6


def checked(
    members: Ints,
    x: Floats,
    widths: Ints,
    speeds: Speeds,
    ids: Sequence[object],
    who: str,
    now: float,
) -> Floats:
    """Return shares without the rounding errors of a solver, or raise PolicyError.

    Shares are at least 0, sum to at most 1 per job, and take no more GPUs than there are.
    ``members`` has shape (rows, 2) with -1 for none, ``widths`` the GPUs of all jobs of the trace;
    ``ids``, ``who`` and ``now`` are for messages.
    """
    from repro.sim.rounds.ledger_kernels import trim

    x = np.ascontiguousarray(x, dtype=float)
    possible, trimmed = trim(members, x, widths, speeds.gpu_counts, TOLERANCE)
    if not possible:
        rule, what = _violated(members, x, widths, speeds, ids)
        raise PolicyError(f"{who}: {rule}: at {now:g} s {what}")
    found: Floats = trimmed
    return found


def in_order(members: Ints, x: Floats) -> tuple[Ints, Floats]:
    """Return rows and shares in the order in which jobs and their pairs came into being.

    Jobs that are all alone stay in the order of the policy.
    """
    one, two = members[:, 0], members[:, 1]
    pairs = two >= 0
    if not pairs.any():
        return members, x
    swapped = pairs & (two < one)
    if swapped.any():
        members = np.where(swapped[:, None], members[:, ::-1], members)
        one, two = members[:, 0], members[:, 1]
    jobs = int(members.max(initial=0)) + 2
    place = np.where(two < 0, one * jobs - 1, two * jobs + one)
    if (place[1:] > place[:-1]).all():
        return members, x
    order = np.argsort(place, kind="stable")
    return members[order], x[order]


def _violated(
    members: Ints, x: Floats, widths: Ints, speeds: Speeds, ids: Sequence[object]
) -> tuple[str, str]:
    """Say which rule impossible shares violate, and where or by whom most."""
    types, limits = speeds.gpu_types, speeds.gpu_counts
    # a NaN is reported before other violations
    if not x.min() >= -TOLERANCE:
        row, column = (int(at) for at in np.unravel_index(x.argmin(), x.shape))
        whose = f"that of {_named(members[row], ids)} in {types[column]!r} is {x[row, column]:g}"
        return "shares must be >= 0", whose
    one, two = members[:, 0], members[:, 1]
    pairs, gangs = two >= 0, widths[one]
    unequal = pairs & (gangs != widths[two])
    if unequal.any():
        row = int(unequal.argmax())
        asked = f"{_named(members[row], ids)} ask for {gangs[row]} and {widths[two[row]]} GPUs"
        return "jobs that share GPUs must be of one size", asked
    row_time = x.sum(axis=1)
    time = np.bincount(one, row_time, len(widths))
    time += np.bincount(two[pairs], row_time[pairs], len(widths))
    if time.max() > 1 + TOLERANCE:
        job = int(time.argmax())
        whose = f"those of job {ids[job]!r} sum to {time[job]:.9g}"
        return "shares must sum to at most 1 per job", whose
    used = gangs @ x
    column = int((used / np.maximum(limits, 1e-300)).argmax())
    taken = f"they take {used[column]:.9g} of {limits[column]:g} GPUs of {types[column]!r}"
    return "shares must fit the GPUs of each type", taken


def _named(row: Sequence[int] | Ints, ids: Sequence[object]) -> str:
    """Return the words that name the jobs of a row."""
    one, two = row
    return f"job {ids[one]!r}" if two < 0 else f"jobs {ids[one]!r} and {ids[two]!r}"
