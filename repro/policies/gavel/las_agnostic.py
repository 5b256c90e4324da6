"""Gavel's baseline: least attained service that takes all GPU types for equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.optimise.centre import Crowd
from repro.optimise.max_min import Array, Backend, level_shares
from repro.policies.gavel._job_types import JobTypes


@register("las-agnostic")
@dataclass(frozen=True)
class LasAgnostic(Policy):
    """Equal weighted GPU-time for every job, spread over the types as the GPUs are.

    max_X min_i (sf_i / w_i) sum_j X_ij for weights w and gangs of sf GPUs has many optima.

    Parameters
    ----------
    form : {"closed", "centre", "ecos"}, optional
        Which of them: the one in closed form that treats GPU types alike; the analytic centre,
        which hands out spare time; or that of Gavel's own solver (extra ``ecos``), which does so
        too. None: as the rules say.

    References
    ----------
    Gavel, OSDI 2020, section 4.1 (LAS, heterogeneity-agnostic).

    Examples
    --------
    >>> LasAgnostic().under("paper").form
    'closed'
    """

    form: Literal["closed", "centre", "ecos"] | None = None

    needs: ClassVar[frozenset[str]] = frozenset({"priority_weight"})
    tells_types: ClassVar[bool] = False
    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"form": "closed"},
        "gavel": {"form": "centre"},
    }

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of jobs."""
        weights = view.column("priority_weight", 1.0).astype(float).tolist()
        gpus = view.gpu_counts
        types = JobTypes(lambda job: (view.gpus(job), weights[job]))
        solved: dict[object, Array] = {}

        def decide(view: View) -> Shares:
            jobs = view.jobs
            keys, counts, row = types.group(jobs, apart=self.form == "ecos")
            mix = (tuple(keys), counts.tobytes())
            if mix not in solved:
                width, weight = np.array(keys, dtype=float).reshape(-1, 2).T
                if self.form == "closed":
                    solved[mix] = even_shares(width, weight, counts.astype(float), gpus)
                else:
                    values = np.outer(width / weight, np.ones(len(gpus)))
                    crowd = Crowd(values, counts, width, gpus)
                    backend: Backend = "ecos" if self.form == "ecos" else "centre"
                    solved[mix] = level_shares(crowd, np.ones(len(keys)), backend).shares
            return Shares(jobs, view.gpu_types, solved[mix][row])

        return decide


def even_shares(widths: Array, weights: Array, counts: Array, gpus: Array) -> Array:
    """Return r_i W_j / sum W with r_i = min(1, z w_i / sf_i) and z the common weighted GPU-time.

    Parameters
    ----------
    widths, weights, counts : ndarray, shape (types,)
        GPUs of each job, priority weight, jobs of the type.
    gpus : ndarray, shape (GPU types,)
        GPUs of each type.

    Examples
    --------
    >>> even_shares(np.ones(1), np.ones(1), np.array([3]), np.array([1.0, 1.0])).round(3)
    array([[0.333, 0.333]])
    """
    level = min(float((widths / weights).min()), float(gpus.sum() / (counts * weights).sum()))
    time = np.minimum(1.0, level * weights / widths)
    return np.outer(time, gpus / gpus.sum())
