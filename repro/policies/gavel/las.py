"""Gavel's least attained service: max-min fairness over unequal GPU types, and its baseline."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.model.policy import register
from repro.model.typed_shares import Kinds, TypedShares
from repro.model.view import View
from repro.perf.throughput import ThroughputTable
from repro.solve.ecos import worth_as_written
from repro.solve.max_min import Backend, Crowd, level_shares


@register("gavel-las")
@dataclass(frozen=True)
class GavelLas(TypedShares):
    """Maximise the least weighted throughput, each normalised by the job's equal share.

    max_X min_i (sf_i / w_i) thr_i(X) / thr_i(X^equal) for weights w and gangs of sf GPUs.

    Parameters
    ----------
    throughputs : ThroughputTable, optional
        Steps per second; None: those of the run, and equal speeds where it has none.
    lp_backend : {"centre", "highs", "ecos"}
        Which of many optima: the analytic centre, the vertex with the largest sum, or that of
        Gavel's own solver (extra ``ecos``), which is given every job by itself.

    Reference: Gavel, OSDI 2020, sections 4.1 and 4.2 (LAS, heterogeneity-aware).
    """

    families = ("max-min",)

    throughputs: ThroughputTable | None = None
    lp_backend: Backend = "centre"

    needs = frozenset({"throughput", "priority_weight"})

    def apart(self) -> bool:
        """Tell whether each job has a row of its own, as in the public simulator."""
        return self.lp_backend == "ecos"

    def speeds(self, view: View) -> Callable[[int], Floats]:
        """Return the speeds of a job by the policy's table, if it has one."""
        table = self.throughputs
        types = view.gpu_types
        if table is None:
            return view.speeds

        def found(job: int) -> Floats:
            model = view.model(job)
            width = view.gpus(job)
            speeds = np.array(table.speeds(model, width, types))
            if not speeds.any():
                where = f"{model!r} on {width} GPUs runs on none of {list(types)}"
                raise ParamError(f"{self.name}: {where}")
            return speeds

        return found

    def shares(self, kinds: Kinds) -> Floats:
        """Return X; its programme has a row per kind."""
        if self.lp_backend == "ecos":
            values = worth_as_written(kinds.speeds, kinds.widths, kinds.weights, kinds.gpus)
        else:
            scale = kinds.widths / (kinds.weights * kinds.equal_speeds)
            values = kinds.speeds * scale[:, None]
        crowd = Crowd(values, kinds.counts, kinds.widths, kinds.gpus, kinds.name)
        return level_shares(crowd, np.ones(len(values)), self.lp_backend).shares


@register("las-agnostic")
@dataclass(frozen=True)
class LasAgnostic(TypedShares):
    """Equal weighted GPU-time for every job, spread over the types as the GPUs are.

    max_X min_i (sf_i / w_i) sum_j X_ij for weights w and gangs of sf GPUs has many optima.

    Parameters
    ----------
    form : {"closed", "centre", "ecos"}, optional
        Which of them: the one in closed form that treats GPU types alike; the analytic centre,
        which hands out spare time; or that of Gavel's own solver (extra ``ecos``), which does so
        too. None: as the rules say.

    Reference: Gavel, OSDI 2020, section 4.1 (LAS, heterogeneity-agnostic).
    """

    form: Literal["closed", "centre", "ecos"] | None = None

    needs = frozenset({"priority_weight"})
    tells_types = False
    rule_values: ClassVar = {"paper": {"form": "closed"}, "gavel": {"form": "centre"}}

    def apart(self) -> bool:
        """Tell whether each job has a row of its own, as in the public simulator."""
        return self.form == "ecos"

    def shares(self, kinds: Kinds) -> Floats:
        """Return r_i W_j / sum W with r_i = min(1, z w_i / sf_i), z the common weighted time."""
        widths = kinds.widths
        weights = kinds.weights
        gpus = kinds.gpus
        if self.form == "closed":
            fair = float(gpus.sum() / (kinds.counts * weights).sum())
            level = min(float((widths / weights).min()), fair)
            return np.outer(np.minimum(1.0, level * weights / widths), gpus / gpus.sum())
        values = np.outer(widths / weights, np.ones(len(gpus)))
        crowd = Crowd(values, kinds.counts, widths, gpus, kinds.name)
        backend: Backend = "ecos" if self.form == "ecos" else "centre"
        return level_shares(crowd, np.ones(len(values)), backend).shares
