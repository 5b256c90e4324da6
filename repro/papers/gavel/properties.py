"""Sharing incentive, Pareto efficiency and strategy-proofness of shares, measured on instances."""

from collections.abc import Callable

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats
from repro.model.policy import make
from repro.model.typed_shares import Kinds, TypedShares
from repro.policies.gavel.isolated import isolated_shares
from repro.solve.linear import minimise

#: What each job says of its speeds, of shape (jobs, types), and the GPUs, to the shares of each.
Rule = Callable[[Floats, Floats], Floats]
DRF = "drf"


def rule_of(policy: str) -> Rule:
    """Return what a policy gives to single-GPU jobs of equal weight; for "drf", see `drf_tasks`.

    Dominant resource fairness needs a bundle of each job: one GPU of the type it is fastest on.
    """
    if policy == DRF:
        return _by_fastest_type
    made = make(policy)
    if not isinstance(made, TypedShares):
        raise PolicyError(f"policy {policy!r} is no formula of shares; give gavel-las or alike")

    def shares(speeds: Floats, gpus: Floats) -> Floats:
        one = np.ones(len(speeds))
        found = made.shares(Kinds(speeds, gpus, one, one, one))
        assert found is not None
        return found

    return shares


def drf_tasks(bundles: Floats, capacity: Floats) -> Floats:
    """Return what part of its bundle each job gets under dominant resource fairness.

    All dominant shares rise together; a job stops where it has its bundle, or where a resource of
    it is used up (Ghodsi et al., NSDI 2011). ``bundles`` have shape (jobs, resources).
    """
    pace = 1 / (bundles / capacity).max(axis=1)
    tasks = np.zeros(len(bundles))
    free = capacity.astype(float)
    rises = pace > 0
    while rises.any():
        used = (pace[:, None] * bundles)[rises].sum(axis=0)
        room = np.append(free[used > 0] / used[used > 0], ((1 - tasks) / pace)[rises])
        tasks[rises] += room.min() * pace[rises]
        free = free - room.min() * used
        full = free <= 1e-12 * capacity
        rises &= (tasks < 1 - 1e-12) & ~(bundles[:, full] > 0).any(axis=1)
    return tasks


def _by_fastest_type(speeds: Floats, gpus: Floats) -> Floats:
    wanted = np.eye(len(gpus))[speeds.argmax(axis=1)]
    shares: Floats = drf_tasks(wanted, gpus)[:, None] * wanted
    return shares


def gaps(rule: Rule, speeds: Floats, gpus: Floats, lies: Floats) -> dict[str, float]:
    """Return how far a rule is from each property on one instance; up to 0 where it has it.

    ``sharing incentive``: the largest part that a job loses against its own 1/n of every type.
    ``Pareto efficiency``: how much more all could get in sum, each counted in units of its fastest
    type, while none gets less, as a part of that sum. ``strategy-proofness``: what the first job
    gains at most if it reports one of ``lies`` as its speeds, as a part of that 1/n.
    """
    scaled = speeds / speeds.max(axis=1, keepdims=True)
    got = (scaled * rule(speeds, gpus)).sum(axis=1)
    alone = (scaled * isolated_shares(np.ones(len(speeds)), gpus)).sum(axis=1)
    told = [rule(np.vstack([lie, speeds[1:]]), gpus)[0] @ scaled[0] for lie in lies]
    jobs, types = scaled.shape
    time = np.repeat(np.eye(jobs), types, axis=1)
    used = np.tile(np.eye(types), jobs)
    bounds = np.concatenate([np.ones(jobs), gpus, 1e-9 - got])
    best = minimise(-scaled.ravel(), np.vstack([time, used, -time * scaled.ravel()]), bounds)
    return {
        "sharing incentive": float((1 - got / alone).max()),
        "Pareto efficiency": float(-best.fun / got.sum() - 1),
        "strategy-proofness": float((max(told) - got[0]) / alone[0]),
    }


def drf_gaps(bundles: Floats, capacity: Floats, lies: Floats) -> dict[str, float]:
    """Return the same of dominant resource fairness where jobs need fixed bundles of resources."""
    tasks = drf_tasks(bundles, capacity)
    free = capacity - tasks @ bundles
    alone = np.minimum((capacity / len(bundles) / bundles).min(axis=1), 1)
    more = np.minimum((np.maximum(free, 0) / bundles).min(axis=1), 1 - tasks)
    told = []
    for lie in lies:
        given = drf_tasks(np.vstack([lie, bundles[1:]]), capacity)[0] * lie
        told.append(min((given / bundles[0]).min(), 1.0))
    return {
        "sharing incentive": float((1 - tasks / alone).max()),
        "Pareto efficiency": float((more / tasks).max()),
        "strategy-proofness": float((max(told) - tasks[0]) / alone[0]),
    }
