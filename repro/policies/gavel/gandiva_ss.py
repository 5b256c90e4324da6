"""Gandiva-style packing: random pairs share GPUs while more are asked for than there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.optimise.pairs.rows import Rows
from repro.policies.gavel._packing import RandomPairs, other_pairs, pair_gains
from repro.policies.gavel.isolated import isolated_shares


@register("gandiva-ss")
@dataclass(frozen=True)
class GandivaSS(Policy):
    """Pack random pairs of jobs of equal gang size; time is divided equally, whatever the GPU type.

    Pairs last until a member leaves or together they are slower than one alone. While all jobs find
    GPUs of their own each has its own, and the pairs are only remembered.

    Parameters
    ----------
    worth : float
        Least gain of a pair: both jobs' throughput relative to running alone, summed over the GPU
        types.
    any_pair : bool, optional
        Any two jobs, not only each alone, may take GPUs that are left over, as in the public
        simulator; a row per pair of jobs. Default: under Gavel's rules.

    References
    ----------
    Gavel, OSDI 2020, section 7.1 (LAS with Gandiva-style space sharing); Gandiva, OSDI 2018.
    """

    worth: float = 1.0
    any_pair: bool | None = None

    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"any_pair": False},
        "gavel": {"any_pair": True},
    }
    needs: ClassVar[frozenset[str]] = frozenset({"throughput"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs_up", bool(self.any_pair))

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run, which remembers the pairs."""
        gpus = np.asarray(view.gpu_counts, dtype=float)
        pairs = RandomPairs(view.seed, pair_gains(view), self.worth)

        def decide(view: View) -> Shares:
            jobs = view.jobs
            width = {job: view.gpus(job) for job in jobs}
            members = pairs.update(jobs, list(width.values()), int(gpus.sum()))
            wide = np.array([width[job] for job, _ in members], dtype=float)
            # who is packed may still run alone on GPUs that are left over
            packed = [(job, -1) for pair in members if pair[1] >= 0 for job in pair]
            rows = np.array(members + packed, dtype=np.int64)
            if self.any_pair:
                rows = np.concatenate([rows, other_pairs(jobs, list(width.values()), members)])
            shares = np.zeros((len(rows), len(gpus)))
            shares[: len(members)] = isolated_shares(wide, gpus)
            return Rows(rows, shares).shares(view.gpu_types)

        return decide
