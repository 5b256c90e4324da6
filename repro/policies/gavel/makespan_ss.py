"""Least makespan where two jobs may share the same GPUs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from repro.model.baseline import Baseline
from repro.model.decision import Shares
from repro.model.policy import register
from repro.model.settings import AtLeast
from repro.model.typed_shares import TypedShares
from repro.model.view import View
from repro.policies.gavel._pair_table import ADVICE, Pairs, PairTable
from repro.policies.gavel.makespan import TOLERANCES, Tolerance
from repro.solve.pairs.makespan import SHORT, makespan_pairs
from repro.solve.pairs.programme import PairCrowd


@register("gavel-makespan-ss")
@dataclass(frozen=True)
class GavelMakespanSS(TypedShares):
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

    Reference: Gavel, OSDI 2020, sections 4.1 and 4.2 (minimise makespan, space sharing).
    """

    tolerance: Tolerance | None = None
    pairs: Pairs = "all"
    short: Annotated[float, AtLeast(0)] = SHORT

    pairs_up = True
    # of many optima the programme with pairs ends at another than gavel-makespan
    baseline = Baseline(None, f"{ADVICE}, or take gavel-makespan", model=True)
    needs = frozenset({"throughput", "duration"})
    rule_values: ClassVar = TOLERANCES

    def session(self, view: View) -> Callable[[View], Shares]:
        """Return the decision function of one run; jobs of a kind differ in the steps left."""
        table = PairTable(self, view)

        def decide(view: View) -> Shares:
            jobs = view.jobs
            numbers, counts, row = table.present(jobs)
            kinds = table.of(numbers, counts)
            members, fractions, _ = makespan_pairs(
                PairCrowd(kinds.speeds, table.paired(numbers), kinds.widths, kinds.gpus),
                row,
                view.steps_left(jobs),
                tolerance=self.tolerance or 0.0,
                pairs=self.pairs,
                short=self.short,
            )
            return Shares(np.append(np.array(jobs), -1)[members], view.gpu_types, fractions)

        return decide
