"""Space sharing: least attained service and least makespan where jobs may run in pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.kinds import Kinds, KindTable
from repro.core.policy import register
from repro.core.typed_shares import Solved, TypedShares
from repro.core.view import View
from repro.errors import ParamError
from repro.estimate.throughput import PairEstimator
from repro.optimise.max_min import equal_share
from repro.optimise.pairs.makespan import SHORT, makespan_pairs
from repro.optimise.pairs.programme import KindShares, PairCrowd, programme, shares, solve
from repro.optimise.pairs.rows import spread_evenly, spread_thinly
from repro.perf.synthetic_throughputs import job_types
from repro.perf.throughput import ThroughputTable
from repro.policies.gavel.makespan import TOLERANCES, check_tolerance
from repro.typing import Floats, Ints

Pairs = Literal["all", "working", "useful"]


@register("gavel-las-ss")
@dataclass(frozen=True)
class GavelLasSS(TypedShares):
    """Maximise the least weighted throughput where two jobs may share the same GPUs.

    max_X min_i (s_i / w_i) thr_i(X) / p_i with thr_i(X) = sum over combinations c that contain i
    and GPU types j of T^i_cj X_cj; p_i is the throughput of the equal share.

    Parameters
    ----------
    pairs : {"all", "working", "useful"}
        Pairs the programme knows: all, also those that run out of memory, as in the public
        simulator; those that run; those that beat time slicing.
    spread : {"all", "few"}
        Time of two kinds of jobs is divided equally over all pairs of their jobs, or over few
        pairs that give every job the same.
    optimum : {"centre", "vertex"}
        Which of many optima: near the analytic centre, as the public simulator, or a vertex.
    profiled : float, optional
        Part of the pairs of a new one-GPU job with reference models that is measured; its other
        speeds beside others are estimated, and known once a pair has run. None: all are known.
    references : int
        Reference models.
    artifact_index : bool
        Read the measurements where the public simulator reads them (`PairEstimator`).

    Reference: Gavel, OSDI 2020, sections 4.1 and 4.2 (LAS with space sharing).
    """

    pairs: Pairs = "all"
    spread: Literal["all", "few"] = "all"
    optimum: Literal["centre", "vertex"] = "centre"
    profiled: float | None = None
    references: int = 16
    artifact_index: bool = False

    pairs_up = True
    needs = frozenset({"priority_weight", "throughput"})
    remembered = 256

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers solved mixes of kinds."""
        estimates = None
        if self.profiled is not None:
            estimates = EstimatedPairs(view, self.profiled, self.references, self.artifact_index)
        table = PairTable(self, view, estimates)
        solved: Solved[KindShares] = Solved(self.remembered)

        def decide(view: View) -> Shares:
            changed = [table.observe(*seen) for seen in view.together]
            if any(changed):
                solved.clear()
            jobs = np.array(view.jobs)
            numbers, counts, row = table.present(view.jobs)
            kinds = table.of(numbers, counts)
            given = solved(numbers, counts, lambda: self._solve(kinds, table.paired(numbers)))
            if self.spread == "all":
                members, fractions = spread_evenly(jobs, row, counts, given)
            else:
                members, fractions = spread_thinly(jobs, row, 1.0 / counts[row], given)
            return Shares(members, view.gpu_types, fractions)

        return decide

    def _solve(self, kinds: Kinds, paired: Floats) -> KindShares:
        """Return X of kinds and pairs of kinds."""
        equal = equal_share(kinds.speeds, kinds.gpus)
        scale = (kinds.widths / (kinds.weights * equal))[:, None]
        crowd = PairCrowd(kinds.speeds * scale, paired * scale[:, None], kinds.widths, kinds.gpus)
        problem = programme(crowd, kinds.counts, pairs=self.pairs)
        return shares(problem, partial(solve, method=self.optimum))


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

    tolerance: float | None = None
    pairs: Pairs = "all"
    short: float = SHORT

    pairs_up = True
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


class PairTable(KindTable):
    """A `KindTable` that also has the speeds of two kinds on the same GPUs, or estimates of them.

    With estimates, jobs that resemble unlike reference models are of different kinds.
    """

    def __init__(
        self, policy: TypedShares, view: View, estimates: EstimatedPairs | None = None
    ) -> None:
        key = plain = policy.key(view)
        if estimates:
            like = estimates.likeness
            key = lambda job: (plain(job), like(job))  # noqa: E731
        super().__init__(view, key, policy.speeds(view), policy.weight(view))
        self._estimates = estimates
        self._pair = estimates.speeds if estimates else view.pair_speeds
        self._paired = np.empty((0, 0, len(view.gpu_types)))
        self._seen: set[tuple[int, int, str | None]] = set()

    def paired(self, numbers: Ints) -> Floats:
        """Return steps per second of a job of kind a that shares its GPUs with one of b, at [a, b].

        Shape (kinds, kinds, GPU types).
        """
        self.learn()
        found: Floats = self._paired[numbers[:, None], numbers]
        return found

    def learn(self) -> None:
        """Look up new kinds, alone and beside all others."""
        super().learn()
        known, size = len(self._paired), len(self.keys)
        if size > known:
            paired = np.zeros((size, size, self._paired.shape[2]))
            paired[:known, :known] = self._paired
            for b in range(known, size):
                for a in range(b + 1):
                    paired[a, b], paired[b, a] = self._pair(self.examples[a], self.examples[b])
            self._paired = paired

    def observe(self, one: int, other: int, gpu_type: str | None) -> bool:
        """Note that two jobs have shared GPUs; tell whether that changed the speeds of pairs."""
        a, b = self.numbers([one, other]).tolist()
        if not self._estimates or (a, b, gpu_type) in self._seen:
            return False
        self._seen.add((a, b, gpu_type))
        if not self._estimates.observe(one, other, gpu_type) or max(a, b) >= len(self._paired):
            return False
        before = self._paired[[a, b], [b, a]]
        self._paired[a, b], self._paired[b, a] = self._pair(one, other)
        return not np.array_equal(before, self._paired[[a, b], [b, a]])


class EstimatedPairs:
    """Estimated speeds of pairs of one-GPU jobs; those of gangs, and what runs at all, are known.

    Parameters as for `GavelLasSS`.
    """

    def __init__(self, view: View, profiled: float, references: int, artifact_index: bool) -> None:
        table = view.throughputs
        if not isinstance(table, ThroughputTable):
            raise ParamError(
                "profiled: the run has no throughput table to profile; give --throughputs or a "
                "trace that names one, or leave profiled out"
            )
        known = {model for model, gang in table.rows if gang == 1}
        drawn = [one.name for one in job_types() if one.name in known]
        self._view = view
        self._likeness: dict[int, tuple[str, str] | None] = {}
        self._estimator = PairEstimator(
            table,
            tuple(map(str, view.gpu_types)),
            fraction=profiled,
            references=references,
            seed=view.seed,
            artifact_index=artifact_index,
            models=drawn if len(drawn) == len(known) else sorted(known),
        )

    def likeness(self, job: int) -> tuple[str, str] | None:
        """Return what decides the estimates of a job, its model and the nearest reference model.

        None for a gang.
        """
        if job not in self._likeness:
            model, gang = self._view.kind(job)
            self._likeness[job] = self._estimator.kind(job, str(model)) if gang == 1 else None
        return self._likeness[job]

    def speeds(self, one: int, other: int) -> Floats:
        """Return the estimated steps per second of two jobs on the same GPUs, 0 = out of memory."""
        true = self._view.pair_speeds(one, other)
        a, b = self.likeness(one), self.likeness(other)
        if a is None or b is None:
            return true
        return np.where(true > 0, self._estimator.pair_speeds(a, b), 0.0)

    def observe(self, one: int, other: int, gpu_type: str | None) -> bool:
        """Measure two jobs that have shared GPUs; tell whether their speeds were estimates."""
        a, b = self.likeness(one), self.likeness(other)
        if a is None or b is None:
            return False
        self._estimator.observe(a, b, gpu_type)
        return True
