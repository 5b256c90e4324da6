"""Gavel's minimum makespan with space sharing (Gavel, sections 4.1 and 4.2).

    min_X max_m num_steps_m / throughput(m, X)
    throughput(m, X) = sum over k in C_m and types j of T^m_kj X_kj

The constraints are those of single jobs, with time summed over the combinations of a job:
sum over k in C_m and types j of X_kj <= 1, and sum_k scale_factor_k X_kj <= num_workers_j.

Ties: X is near the analytic centre of the optima (``tolerance=0``), or of all allocations that
reach the upper end of the bisection. The short jobs of a kind are a pool (``short``), and every
other job is a pool of its own. The time that two pools share GPUs is spread over as few pairs of
jobs as possible, in order of arrival.
"""

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
from repro.policies.gavel._pair_table import ADVICE, PairChoice, PairTable
from repro.policies.gavel.makespan import TOLERANCES, Tolerance
from repro.solve.pairs.makespan import SHORT, makespan_pairs
from repro.solve.pairs.programme import PairableKinds


@register("gavel-makespan-ss")
@dataclass(frozen=True)
class GavelMakespanSS(TypedShares):
    """Minimise the time at which the last job finishes, where two jobs may share the same GPUs.

    Parameters
    ----------
    tolerance : float, optional
        0: the optimum. Otherwise the makespan is bisected, from [100 s, 1e6 s] on, until the upper
        end is at most 1 + tolerance times the lower end. Default: 0 under the paper's rules,
        0.05 under Gavel's.
    pairs : {"all", "working", "useful"}
        Pairs in the programme, as for `gavel-las-ss`.
    short : float
        Jobs that need less than this fraction of the longest job's time are pooled by kind.

    Reference: Gavel, OSDI 2020, sections 4.1 and 4.2 (minimise makespan, space sharing).
    """

    tolerance: Tolerance | None = None
    pairs: PairChoice = "all"
    short: Annotated[float, AtLeast(0)] = SHORT

    pairs_up = True
    # The programme with pairs ends at another optimum than gavel-makespan.
    baseline = Baseline(None, f"{ADVICE}, or take gavel-makespan", model=True)
    needs = frozenset({"throughput", "duration"})
    rule_values: ClassVar = TOLERANCES

    def session(self, view: View) -> Callable[[View], Shares]:
        """Decision function of one simulation, with the remaining steps of every job."""
        table = PairTable(self, view)

        def decide(view: View) -> Shares:
            jobs = view.jobs
            kind_numbers, counts, kind_of_job = table.present(jobs)
            kinds = table.kinds(kind_numbers, counts)
            members, shares, _ = makespan_pairs(
                PairableKinds(kinds.speeds, table.paired(kind_numbers), kinds.widths, kinds.gpus),
                kind_of_job,
                view.work_left(jobs),
                tolerance=self.tolerance or 0.0,
                pairs=self.pairs,
                short=self.short,
            )
            # index -1 (no partner) reads the appended -1
            return Shares(np.append(np.array(jobs), -1)[members], view.gpu_types, shares)

        return decide
