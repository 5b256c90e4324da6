"""Sharing incentive, Pareto efficiency and strategy-proofness, measured on instances."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats
from repro.model.policy import make
from repro.model.typed_shares import Kinds, TypedShares
from repro.policies.gavel.isolated import isolated_shares
from repro.solve.linear import minimise_linear

#: Function of reported speeds, (jobs, types), and GPUs, (types,), that computes the allocation X.
AllocationRule = Callable[[Floats, Floats], Floats]
DRF = "drf"
#: Inputs of a policy that an allocation rule has: speeds, and equal weights.
_INPUTS = {"throughput", "priority_weight"}


class Instance(NamedTuple):
    """Speeds (jobs, types), GPUs (types,) and lies (lies, types) of a random instance.

    ``job_factors``, (jobs, 1), multiply the speeds of a job on all types.
    """

    speeds: Floats
    gpus: Floats
    lies: Floats
    job_factors: Floats


def rule_of(policy: str) -> AllocationRule:
    """Allocation rule of a policy for single-GPU jobs of equal weight; for "drf", see `drf_tasks`.

    Under dominant resource fairness a job's bundle is one GPU of the type it is fastest on.

    Raises
    ------
    PolicyError
        If the policy computes no shares from the speeds of jobs alone.
    """
    if policy == DRF:
        return _by_fastest_type
    policy_object = make(policy)
    if not (
        isinstance(policy_object, TypedShares)
        and type(policy_object).shares is not TypedShares.shares
    ):
        raise PolicyError(f"policy {policy!r} is no formula of shares; give gavel-las or alike")
    if further_inputs := sorted(policy_object.needs - _INPUTS):
        raise PolicyError(
            f"policy {policy!r} reads {', '.join(further_inputs)}; give a policy whose shares "
            f"follow from speeds alone, such as gavel-las"
        )

    def shares(speeds: Floats, gpus: Floats) -> Floats:
        ones = np.ones(len(speeds))
        allocation = policy_object.shares(Kinds(speeds, gpus, ones, ones, ones))
        assert allocation is not None
        return allocation

    return shares


def drf_tasks(bundles: Floats, capacity: Floats) -> Floats:
    """Fraction of its bundle that each job gets under dominant resource fairness, (jobs,).

    All dominant shares rise together. A job stops when it has its bundle or when one of its
    resources is used up (Ghodsi et al., NSDI 2011). ``bundles`` has shape (jobs, resources).
    """
    rate = 1 / (bundles / capacity).max(axis=1)
    tasks = np.zeros(len(bundles))
    free = capacity.astype(float)
    rises = rate > 0
    while rises.any():
        used = (rate[:, None] * bundles)[rises].sum(axis=0)
        # the next event: a resource is used up, or a job has its bundle
        limits = np.append(free[used > 0] / used[used > 0], ((1 - tasks) / rate)[rises])
        tasks[rises] += limits.min() * rate[rises]
        free = free - limits.min() * used
        full = free <= 1e-12 * capacity
        rises &= (tasks < 1 - 1e-12) & ~(bundles[:, full] > 0).any(axis=1)
    return tasks


def _by_fastest_type(speeds: Floats, gpus: Floats) -> Floats:
    bundles = np.eye(len(gpus))[speeds.argmax(axis=1)]
    shares: Floats = drf_tasks(bundles, gpus)[:, None] * bundles
    return shares


def gaps(rule: AllocationRule, speeds: Floats, gpus: Floats, lies: Floats) -> dict[str, float]:
    """Distance of a rule from each property on one instance; at most 0 if the property holds.

    ``sharing incentive``: the largest relative loss of a job against 1/n of every type.
    ``Pareto efficiency``: the largest relative gain of the sum of throughputs if no job loses;
    a throughput counts in units of the job's fastest type. ``strategy-proofness``: the largest
    gain of the first job that reports one of ``lies`` as its speeds, over its throughput with 1/n.
    """
    scaled = speeds / speeds.max(axis=1, keepdims=True)
    throughput = (scaled * rule(speeds, gpus)).sum(axis=1)
    isolated = (scaled * isolated_shares(np.ones(len(speeds)), gpus)).sum(axis=1)
    after_lie = [rule(np.vstack([lie, speeds[1:]]), gpus)[0] @ scaled[0] for lie in lies]
    jobs, types = scaled.shape
    # constraints on X: time of each job, GPUs of each type, and no job loses throughput
    time_rows = np.repeat(np.eye(jobs), types, axis=1)
    gpu_rows = np.tile(np.eye(types), jobs)
    rows = np.vstack([time_rows, gpu_rows, -time_rows * scaled.ravel()])
    bounds = np.concatenate([np.ones(jobs), gpus, 1e-9 - throughput])
    best = minimise_linear(-scaled.ravel(), rows, bounds)
    return {
        "sharing incentive": float((1 - throughput / isolated).max()),
        "Pareto efficiency": float(-best.fun / throughput.sum() - 1),
        "strategy-proofness": float((max(after_lie) - throughput[0]) / isolated[0]),
    }


def sampled_instance(rng: np.random.Generator, inputs: Mapping[str, Any]) -> Instance:
    """Random instance: numbers of jobs and GPUs are uniform, speeds and lies are log-normal.

    Besides random lies the first job tries to report that it runs on one GPU type only.
    """
    types = len(inputs["speeds"])
    fewest_jobs, most_jobs = inputs["jobs"]
    jobs = rng.integers(fewest_jobs, most_jobs, endpoint=True)
    fewest_gpus, most_gpus = inputs["gpus"]
    gpus = rng.integers(fewest_gpus, most_gpus, types, endpoint=True).astype(float)
    job_factors = rng.lognormal(0, inputs["spread"][0], (jobs, 1))
    speeds = job_factors * inputs["speeds"] * rng.lognormal(0, inputs["spread"][1], (jobs, types))
    reports = speeds[0] * rng.lognormal(0, inputs["spread"][1], (inputs["lies"], types))
    lies = np.vstack([speeds[0] * np.where(np.eye(types), 1, 0.01), reports])
    return Instance(speeds, gpus, lies, job_factors)


def drf_gaps(bundles: Floats, capacity: Floats, lies: Floats) -> dict[str, float]:
    """`gaps` of dominant resource fairness where jobs need fixed bundles of resources."""
    tasks = drf_tasks(bundles, capacity)
    free = capacity - tasks @ bundles
    isolated = np.minimum((capacity / len(bundles) / bundles).min(axis=1), 1)
    gain = np.minimum((np.maximum(free, 0) / bundles).min(axis=1), 1 - tasks)
    after_lie = []
    for lie in lies:
        received = drf_tasks(np.vstack([lie, bundles[1:]]), capacity)[0] * lie
        after_lie.append(min((received / bundles[0]).min(), 1.0))
    return {
        "sharing incentive": float((1 - tasks / isolated).max()),
        "Pareto efficiency": float((gain / tasks).max()),
        "strategy-proofness": float((max(after_lie) - tasks[0]) / isolated[0]),
    }
