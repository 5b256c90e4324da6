"""Gavel's shortest job first on unequal GPU types (Gavel, section 4.2).

    min_X min_m num_steps_m / throughput(m, X)

The optimum gives one job all its time on the GPU type that ends it soonest. The same programme is
then solved for the other jobs on the idle GPUs, and so on. The pairs (m, j) are therefore taken in
ascending order of the remaining duration num_steps_m / T_mj. X_mj = 1 if m has no GPU type yet and
j has scale_factor_m idle GPUs.

Ties: order of arrival, then order in the trace; for one job, alphabetical order of the GPU types.
"""

from dataclasses import dataclass

import numpy as np

from repro.base.typing import Floats
from repro.model.policy import register
from repro.model.typed_shares import Kinds, TypedShares
from repro.policies.gavel._single_type import full_time_shares, remaining_durations


@register("gavel-sjf")
@dataclass(frozen=True)
class GavelSjf(TypedShares):
    """Give jobs one GPU type each, in ascending order of the remaining duration on the type.

    Gangs that do not fit the idle GPUs of a type are skipped.

    Reference: Gavel, OSDI 2020, section 4.2 (shortest job first).
    """

    needs = frozenset({"throughput", "duration"})

    def shares(self, kinds: Kinds) -> Floats:
        """Allocation X, shape (jobs, GPU types); every row is one job."""
        idle_gpus = kinds.gpus.copy()
        durations = remaining_durations(kinds.work_left, kinds.speeds)
        columns: dict[int, int] = {}
        for pair in np.argsort(durations, axis=None, kind="stable").tolist():
            row, column = divmod(pair, len(idle_gpus))
            if not np.isfinite(durations[row, column]) or not idle_gpus.any():
                break
            if row not in columns and kinds.widths[row] <= idle_gpus[column]:
                columns[row] = column
                idle_gpus[column] -= kinds.widths[row]
        return full_time_shares(kinds, columns)
