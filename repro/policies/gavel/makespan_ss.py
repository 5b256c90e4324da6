"""Gavel's minimum makespan with space sharing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import register
from repro.core.view import View
from repro.optimise.pairs.makespan import SHORT, makespan_pairs
from repro.optimise.pairs.programme import PairCrowd
from repro.optimise.pairs.rows import Rows
from repro.policies.gavel._space_sharing import PairTable, SpaceSharing
from repro.policies.gavel.makespan import TOLERANCES, check_tolerance


@register("gavel-makespan-ss")
@dataclass(frozen=True)
class GavelMakespanSS(SpaceSharing):
    """Minimise the time at which the last job finishes, where two jobs may share the same GPUs.

    min_X max_i rem_i / thr_i(X), with thr_i(X) summed over the combinations that contain job i.

    Parameters
    ----------
    tolerance : float, optional
        0: the optimum. Otherwise a bisection of the makespan stops within this part of it, and
        the shares are amid all that reach its end. None: as the rules say.
    pairs : {"all", "working", "useful"}
        As for `gavel-las-ss`.
    short : float
        Jobs that need less than this part of the longest job's time are pooled by kind.

    References
    ----------
    Gavel, OSDI 2020, sections 4.1 and 4.2 (minimise makespan, space sharing).
    """

    tolerance: float | None = None
    pairs: Literal["all", "working", "useful"] = "all"
    short: float = SHORT

    needs = frozenset({"throughput", "duration"})
    rule_values: ClassVar = TOLERANCES

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run; jobs of a kind differ in the steps left."""
        table = PairTable(self, view)

        def decide(view: View) -> Shares:
            jobs = view.jobs
            numbers, counts, row = table.present(jobs)
            kinds = table.of(numbers, counts)
            shares, _ = makespan_pairs(
                PairCrowd(kinds.speeds, table.paired(numbers), kinds.widths, kinds.gpus),
                row,
                view.steps_left(jobs),
                tolerance=self.tolerance or 0.0,
                pairs=self.pairs,
                short=self.short,
            )
            members = np.append(np.array(jobs), -1)[shares.members]
            return Rows(members, shares.fractions).shares(view.gpu_types)

        return decide
