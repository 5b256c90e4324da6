"""Shortest job first on unequal GPU types.

Key of job i on type j: rem_i / T_ij. Ties: order of arrival, then order of the GPU types.
"""

from dataclasses import dataclass

import numpy as np

from repro.base.typing import Floats
from repro.model.policy import register
from repro.model.typed_shares import Kinds, TypedShares
from repro.policies.gavel._one_type import remaining_s, whole_time


@register("gavel-sjf")
@dataclass(frozen=True)
class GavelSjf(TypedShares):
    """Minimise the shortest remaining duration, min_X min_i rem_i / thr_i(X), one job at a time.

    The programme for one job gives it all its time on the type that ends it soonest; the same is
    then solved for the other jobs on the GPUs left. So pairs of job and type are taken by
    remaining duration, those without room skipped; equal durations go by order of arrival.

    Reference: Gavel, OSDI 2020, section 4.2 (shortest job first).
    """

    needs = frozenset({"throughput", "duration"})

    def shares(self, kinds: Kinds) -> Floats:
        """Return X; every row is one job."""
        free = kinds.gpus.copy()
        durations = remaining_s(kinds.steps_left, kinds.speeds)
        place: dict[int, int] = {}
        for pair in np.argsort(durations, axis=None, kind="stable").tolist():
            row, column = divmod(pair, len(free))
            if not np.isfinite(durations[row, column]) or not free.any():
                break
            if row not in place and kinds.widths[row] <= free[column]:
                place[row] = column
                free[column] -= kinds.widths[row]
        return whole_time(kinds, place)
