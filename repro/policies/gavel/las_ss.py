"""Gavel's least attained service with space sharing: max-min fairness over jobs and pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.optimise.pairs.programme import TypeShares, programme, shares, solve
from repro.optimise.pairs.rows import spread_evenly, spread_thinly
from repro.policies.gavel._pair_types import Mix, PairTypes

if TYPE_CHECKING:
    from repro.policies.gavel._estimated_pairs import Believed

#: Mixes of jobs whose shares are remembered.
REMEMBERED = 256


@register("gavel-las-ss")
@dataclass(frozen=True)
class GavelLasSS(Policy):
    r"""Maximise the least weighted throughput where two jobs may share the same GPUs.

    max_X min_i (s_i / w_i) thr_i(X) / p_i with thr_i(X) = sum over combinations c that contain i
    and GPU types j of T^i_cj X_cj; p_i is the throughput of the equal share. Jobs of one model,
    gang size and weight get equal shares, so that the programme is one over job types.

    Parameters
    ----------
    pairs : {"all", "working", "useful"}
        Pairs the programme knows: all, also those that run out of memory, as in the public
        simulator; those that run; those that beat time slicing.
    spread : {"all", "few"}
        Time of two job types is divided equally over all pairs of their jobs, or over few pairs
        that give every job the same.
    optimum : {"centre", "vertex"}
        Which of many optima: near the analytic centre, as the public simulator, or a vertex.
    profiled : float, optional
        Part of the pairs of a new one-GPU job with reference models that is measured; its other
        speeds beside others are estimated, and known once a pair has run. None: all are known.
    references : int
        Reference models.
    artifact_index : bool
        Read the measurements where the public simulator reads them (`PairEstimator`).

    References
    ----------
    Gavel, OSDI 2020, sections 4.1 and 4.2 (LAS with space sharing).

    Examples
    --------
    >>> GavelLasSS().spread
    'all'
    """

    pairs: Literal["all", "working", "useful"] = "all"
    spread: Literal["all", "few"] = "all"
    optimum: Literal["centre", "vertex"] = "centre"
    profiled: float | None = None
    references: int = 16
    artifact_index: bool = False

    needs: ClassVar[frozenset[str]] = frozenset({"priority_weight", "throughput"})
    pairs_up: ClassVar[bool] = True

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of jobs."""
        weights = view.column("priority_weight", 1.0).tolist()
        believed = None if self.profiled is None else self._believed(view)
        likeness = believed.kind if believed else (lambda job: None)
        types = PairTypes(
            view,
            lambda job: (view.kind(job), float(weights[job]), likeness(job)),
            believed.speeds if believed else None,
        )
        capacity = np.asarray(view.gpu_counts, dtype=float)
        solved: dict[Any, TypeShares] = {}

        def decide(view: View) -> Shares:
            jobs = view.jobs
            if believed:
                news = [believed.learn(types, *seen) for seen in view.together]
                if any(news):
                    solved.clear()
            if not jobs:
                return Shares((), view.gpu_types, np.zeros((0, len(capacity))))
            mix = types.mix(jobs)
            given = solved.pop(mix.signature, None)
            if given is None:
                given = self._solve(mix, capacity)
            solved[mix.signature] = given
            if len(solved) > REMEMBERED:
                del solved[next(iter(solved))]
            rows = np.array(jobs, dtype=np.int64)
            if self.spread == "all":
                answer = spread_evenly(rows, mix.place, mix.counts, given)
            else:
                answer = spread_thinly(rows, mix.place, 1.0 / mix.counts[mix.place], given)
            return answer.shares(view.gpu_types)

        return decide

    def _believed(self, view: View) -> Believed:
        from repro.policies.gavel._estimated_pairs import Believed

        assert self.profiled is not None
        return Believed(view, self.profiled, self.references, self.artifact_index)

    def _solve(self, mix: Mix, capacity: np.ndarray[Any, Any]) -> TypeShares:
        weights = np.array([weight for _, weight, _ in mix.keys])
        equal = mix.speeds @ capacity / capacity.sum()
        scale = (mix.widths / (weights * equal))[:, None]
        problem = programme(
            mix.speeds * scale, mix.paired * scale[:, None], mix.counts, mix.widths, capacity,
            pairs=self.pairs,
        )  # fmt: skip
        types, kinds = mix.speeds.shape
        return shares(problem, types, kinds, partial(solve, method=self.optimum))
