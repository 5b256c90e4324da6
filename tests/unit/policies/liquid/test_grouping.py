"""The grouping genetic search against exhaustive search, best-fit and itself."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from repro.base.errors import ParamError
from repro.model.cluster import Cluster, Node
from repro.placement.network import Gang, NodeResources, Scoring
from repro.policies.liquid import grouping
from repro.policies.liquid.grouping import (
    GeneticSettings,
    inject,
    instance_of,
    search,
    without_node,
)


def random_batch(number):
    """Random batch that is small enough to enumerate, with used GPUs, racks and domains."""
    rng = np.random.default_rng(number)
    while True:
        nodes = tuple(
            Node(int(rng.integers(1, 5)), None, int(rng.integers(2)), int(rng.integers(5) == 0))
            for _ in range(rng.integers(2, 6))
        )
        idle = [int(rng.integers(0, n.gpus + 1)) if rng.random() < 0.5 else n.gpus for n in nodes]
        gangs = [Gang(1, int(rng.integers(1, 4))) for _ in range(rng.integers(1, 4))]
        count = sum(gang.size for gang in gangs)
        if count <= sum(idle) and len(nodes) ** count <= 50_000:
            return (
                NodeResources(Cluster(nodes), idle),
                gangs,
                float(rng.choice([0.0, 0.3, 0.5, 0.8, 1.0])),
            )


def job_by_job(site, gangs, weight, plan):
    """Sum of scores plus number of nodes in use, job by job."""
    remaining = NodeResources.__new__(NodeResources)
    total = 0.0
    done = 0
    remaining.__dict__.update(site.__dict__, idle=site.idle.copy(), link_mb_s=site.link_mb_s.copy())
    for gang in gangs:
        tasks = [int(node) for node in plan[done : done + gang.size]]
        total += remaining.score(tasks, gang, Scoring(weight))
        remaining.allocate(tasks, gang)
        done += gang.size
    return total + len({*map(int, plan)})


def optimum(site, gangs, weight):
    count = sum(gang.size for gang in gangs)
    plans = np.array(list(itertools.product(range(len(site.idle)), repeat=count)))
    fits = [(plans == node).sum(axis=1) <= idle for node, idle in enumerate(site.idle)]
    plans = plans[np.all(fits, axis=0)]
    values = site.objectives(plans, gangs, weight)
    sampled = plans[np.random.default_rng(0).integers(len(plans))]
    value = site.objectives(sampled[None], gangs, weight)[0]
    assert value == pytest.approx(job_by_job(site, gangs, weight, sampled))
    return values.min()


@pytest.mark.slow
@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(first, marks=pytest.mark.nightly) for first in (50, 100, 150))],
)
def test_no_further_from_the_optimum_than_two_percent(first, seeded):
    for number in range(first, first + 50):
        site, gangs, weight = random_batch(number)
        best = optimum(site, gangs, weight)
        solution = search(site, gangs, weight, GeneticSettings(best_fit=seeded), seed=number)
        if best == np.inf:
            assert solution is None
            continue
        assert solution.objective <= best + 0.02 * max(1, abs(best)), number
        assert solution.objective == pytest.approx(job_by_job(site, gangs, weight, solution.plan))
        used = np.bincount(solution.plan, minlength=len(site.idle))
        assert (used <= site.idle).all()


@pytest.mark.parametrize("nodes", [5, pytest.param(12, marks=pytest.mark.slow)])
def test_never_worse_than_best_fit_and_the_same_for_a_seed(nodes):
    site = NodeResources(Cluster.parse(f"{nodes}x2"))
    gangs = [Gang(1, 2)] * (2 * nodes // 3)
    plan = []
    remaining = NodeResources(Cluster.parse(f"{nodes}x2"))
    for gang in gangs:
        plan += remaining.best_fit(gang, Scoring())
        remaining.allocate(plan[-3:], gang)
    fit = site.objectives(np.array([plan]), gangs, 0.5)[0]
    watched = []
    solution = search(
        site, gangs, seed=3, watch=lambda number, best: watched.append((number, best))
    )
    again = search(site, gangs, seed=3)
    assert solution == again
    assert solution.objective <= fit
    assert (
        [best for _, best in watched] == solution.history == sorted(solution.history, reverse=True)
    )
    assert search(site, gangs, settings=GeneticSettings(near=0.0), seed=3).objective <= fit


def test_generations_without_elite_keep_the_best_ever():
    site = NodeResources(Cluster.parse("6x2"))
    gangs = [Gang(1, 2)] * 4
    solution = search(site, gangs, settings=GeneticSettings(elitist=False, generations=30), seed=1)
    assert solution.objective == min(solution.history)


class RecordingSite(NodeResources):
    """Nodes that record the plans whose objective is computed."""

    def __init__(self, cluster):
        super().__init__(cluster)
        self.plans = []

    def objectives(self, plans, gangs, weight):
        self.plans += map(tuple, plans.tolist())
        return super().objectives(plans, gangs, weight)


@pytest.mark.parametrize(("gangs", "count"), [([Gang(1, 1)] * 2, 6), ([Gang(1, 2), Gang(0, 1)], 4)])
def test_a_small_search_computes_each_plan_once(gangs, count):
    """Two nodes of two GPUs; workers of a job are interchangeable, containers of jobs are not."""
    site = RecordingSite(Cluster.parse("2x2"))
    search(site, gangs, settings=GeneticSettings(generations=20))
    assert len(site.plans) == len(set(site.plans)) == count


@pytest.mark.parametrize("seed", range(3))
def test_a_later_plan_of_equal_objective_does_not_replace_the_best(seed):
    site = NodeResources(Cluster.parse("4x3"))
    gangs = [Gang(1, 2)] * 3
    settings = GeneticSettings(generations=15, population=6, elitist=False)
    solution = search(site, gangs, settings=settings, seed=seed)
    first = 1 + solution.history.index(solution.objective)
    shorter = replace(settings, generations=first)
    assert search(site, gangs, settings=shorter, seed=seed).plan == solution.plan


@pytest.mark.parametrize("best_fit", [True, False])
def test_the_first_individuals_include_the_best_fit_plan(best_fit):
    site = RecordingSite(Cluster.parse("6x4"))
    gangs = [Gang(1, 4)] * 4
    plan = grouping.best_fit(site, gangs, 0.5)
    settings = GeneticSettings(generations=1, population=2, best_fit=best_fit)
    search(site, gangs, settings=settings)
    assert (tuple(plan) in site.plans[:2]) == best_fit


def test_the_first_individuals_include_a_first_fit_plan():
    site = RecordingSite(Cluster.parse("9x2"))
    site.idle[7] = 1
    search(site, [Gang(0, 1)], settings=GeneticSettings(generations=1, population=2))
    # best-fit takes node 7
    assert set(site.plans[:2]) == {(0,), (7,)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("patience", [1, 4])
def test_the_search_ends_after_generations_without_improvement(patience, seed):
    site = NodeResources(Cluster.parse("8x3"))
    settings = GeneticSettings(population=4, patience=patience, best_fit=False)
    history = search(site, [Gang(1, 3)] * 4, settings=settings, seed=seed).history
    assert len(history) - 1 - history.index(history[-1]) == patience


def test_seed_0_is_the_default():
    site = NodeResources(Cluster.parse("6x4"))
    settings = GeneticSettings(generations=1, population=2, best_fit=False)
    plans = [search(site, [Gang(1, 4)] * 4, settings=settings, seed=seed) for seed in (0, 1)]
    assert plans[0] == search(site, [Gang(1, 4)] * 4, settings=settings) != plans[1]


def test_a_container_fits_a_gpu_of_the_memory_that_it_needs():
    site = NodeResources(Cluster((Node(1, gpu_mem_mb=12000.0),)))
    settings = GeneticSettings(best_fit=False)
    assert search(site, [Gang(0, 1, 12000.0)], settings=settings).plan == (0,)


def test_memory_and_bandwidth_hold_in_plans():
    nodes = (Node(4, gpu_mem_mb=4000.0), Node(4, bandwidth_mb_s=200.0), Node(4), Node(4))
    solution = search(NodeResources(Cluster(nodes)), [Gang(1, 2), Gang(1, 3), Gang(0, 1)], seed=2)
    used = np.bincount(solution.plan, minlength=4)
    assert used[0] == 0
    assert used[1] <= 2


def test_no_plan():
    split = Cluster((Node(2, domain=0), Node(2, domain=1)))
    assert search(NodeResources(split), [Gang(1, 2)]) is None
    assert search(NodeResources(split), [Gang(0, 1)]).plan in ((0,), (1,))


@pytest.mark.parametrize("setting", ["generations", "population", "patience"])
def test_settings_out_of_range(setting):
    with pytest.raises(ParamError, match=f"{setting} is 0"):
        GeneticSettings(**{setting: 0})


def test_an_injected_and_an_emptied_node():
    instance = instance_of(NodeResources(Cluster.parse("4x2")), [Gang(1, 2), Gang(0, 1)])
    giver = np.array([0, 0, 1, 1])
    taker = np.array([2, 3, 3, 2])
    # nodes 2 and 3 hold what node 0 brings, so both go; the orphans find idle node 1
    assert inject(instance, giver, taker, 0, False).tolist() == [0, 0, 1, 1]
    child, fits = without_node(instance, np.array([0, 1, 1, 2]), 0, False)
    assert (child.tolist(), fits) == ([2, 1, 1, 2], True)
    # node 0 keeps its containers, and node 1 was idle
    child, fits = without_node(instance, np.array([0, 0, 2, 2]), 2, False)
    assert (child.tolist(), fits) == ([0, 0, 1, 1], True)
    # the orphan goes to a node in use, or to the node of its job
    wide = instance_of(NodeResources(Cluster.parse("4x3")), [Gang(1, 2), Gang(0, 1)])
    for near, node in ((False, 2), (True, 3)):
        child, fits = without_node(wide, np.array([3, 0, 3, 2]), 0, near)
        assert (child.tolist(), fits) == ([3, node, 3, 2], True)
    full = instance_of(NodeResources(Cluster.parse("2x2")), [Gang(1, 2), Gang(0, 1)])
    assert not without_node(full, np.array([0, 0, 1, 1]), 0, False)[1]
