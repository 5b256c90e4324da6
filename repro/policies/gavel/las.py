"""Gavel's least attained service (LAS): max-min fairness (Gavel, sections 4.1 and 4.2).

Heterogeneity-aware, ``gavel-las``:

    max_X min_m (scale_factor_m / w_m) throughput(m, X) / throughput(m, X^equal)

Heterogeneity-agnostic, ``las-agnostic``, the same with all T_mj = 1:

    max_X min_m (scale_factor_m / w_m) sum_j X_mj

Ties: jobs of one kind have equal shares. Many X reach the optimum. ``lp_backend`` of
``gavel-las`` and ``form`` of ``las-agnostic`` choose among these optima:

- ``centre``: the analytic centre.
- ``highs``: the vertex with the largest sum of weighted normalised throughputs.
- ``closed``: a closed form that treats all GPU types alike.
- ``ecos``: the optimum of Gavel's own solver.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Floats, Ints
from repro.model.policy import register
from repro.model.typed_shares import Kinds, TypedShares
from repro.model.view import View
from repro.perf.throughput import ThroughputTable
from repro.solve.ecos import accurate_weights, simulator_values
from repro.solve.max_min import Backend, JobKinds, level_shares


@register("gavel-las")
@dataclass(frozen=True)
class GavelLas(TypedShares):
    """Maximise the least weighted throughput, each normalised by the job's equal share.

    Parameters
    ----------
    throughputs : ThroughputTable, optional
        Steps per second. None: the table of the run, and equal speeds where it has none.
    lp_backend : {"centre", "highs", "ecos"}
        Optimum among many: the analytic centre, the vertex with the largest sum of weighted
        normalised throughputs, or the optimum of Gavel's own solver (extra ``ecos``). This solver
        gets a row per job.

    Reference: Gavel, OSDI 2020, sections 4.1 and 4.2 (LAS, heterogeneity-aware).
    """

    families = ("max-min",)

    throughputs: ThroughputTable | None = None
    lp_backend: Backend = "centre"

    needs = frozenset({"throughput", "priority_weight"})

    def jobs_are_kinds(self) -> bool:
        """Whether every job is a kind of its own: with ``ecos``, as in the public simulator."""
        return self.lp_backend == "ecos"

    def key(self, view: View) -> Callable[[int], Hashable]:
        """Key of the kind of a job; a table of the policy has speeds by model."""
        key = super().key(view)
        if self.throughputs is None:
            return key
        return lambda job: (view.model(job), key(job))

    def codes(self, view: View) -> Ints | None:
        """Kind of each job of the run as a number, (jobs,); None with a table of the policy."""
        return super().codes(view) if self.throughputs is None else None

    def speeds(self, view: View) -> Callable[[int], Floats]:
        """Throughputs (steps/s) on all GPU types as a function of the job."""
        table = self.throughputs
        gpu_types = view.gpu_types
        if table is None:
            return view.speeds

        def speeds_in_table(job: int) -> Floats:
            model = view.model(job)
            width = view.gpus(job)
            in_table = np.array(table.speeds(model, width, gpu_types))
            speeds: Floats = np.where(view.gpu_counts >= width, in_table, 0.0)
            if not speeds.any():
                raise ParamError(
                    f"{self.name}: {model!r} on {width} GPUs runs on none of {list(gpu_types)}"
                )
            return speeds

        return speeds_in_table

    def shares(self, kinds: Kinds) -> Floats:
        """Allocation X, shape (kinds, GPU types)."""
        if self.lp_backend == "ecos":
            weights = accurate_weights(kinds.weights)
            values = simulator_values(kinds.speeds, kinds.widths, weights, kinds.gpus)
        else:
            scale = kinds.widths / (kinds.weights * kinds.equal_speeds)
            values = kinds.speeds * scale[:, None]
        problem = JobKinds(values, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
        return level_shares(problem, np.ones(len(values)), self.lp_backend).shares


@register("las-agnostic")
@dataclass(frozen=True)
class LasAgnostic(TypedShares):
    """Equal weighted GPU-time for every job, spread over the types in proportion to their GPUs.

    Parameters
    ----------
    form : {"closed", "centre", "ecos"}, optional
        Optimum among many. ``closed``: X_mj = r_m num_workers_j / sum_j num_workers_j, with
        r_m = min(1, z w_m / scale_factor_m) and z the largest common level. ``centre``: the
        analytic centre, which distributes spare time. ``ecos``: the optimum of Gavel's own solver
        (extra ``ecos``), which distributes spare time too. Default: ``closed`` under the paper's
        rules, ``centre`` under Gavel's.

    Reference: Gavel, OSDI 2020, section 4.1 (LAS, heterogeneity-agnostic).
    """

    form: Literal["closed", "centre", "ecos"] | None = None

    needs = frozenset({"priority_weight"})
    tells_types = False
    rule_values: ClassVar = {"paper": {"form": "closed"}, "gavel": {"form": "centre"}}

    def jobs_are_kinds(self) -> bool:
        """Whether every job is a kind of its own: with ``ecos``, as in the public simulator."""
        return self.form == "ecos"

    def shares(self, kinds: Kinds) -> Floats:
        """Allocation X, shape (kinds, GPU types)."""
        if self.form == "closed":
            return _closed_form(kinds)
        values = np.outer(kinds.widths / kinds.weights, np.ones(len(kinds.gpus)))
        problem = JobKinds(values, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
        backend: Backend = "ecos" if self.form == "ecos" else "centre"
        return level_shares(problem, np.ones(len(values)), backend).shares


def _closed_form(kinds: Kinds) -> Floats:
    """r_m num_workers_j / sum_j num_workers_j, shape (kinds, GPU types).

    The level z is bounded by the GPUs of the cluster, and by the time of each job.
    """
    widths = kinds.widths
    weights = kinds.weights
    gpus = kinds.gpus
    gpu_bound = float(gpus.sum() / (kinds.counts * weights).sum())
    time_bound = float((widths / weights).min())
    level = min(time_bound, gpu_bound)
    return np.outer(np.minimum(1.0, level * weights / widths), gpus / gpus.sum())
