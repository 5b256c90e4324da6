"""The placement program against exhaustive search, and the rule that uses it."""

import itertools

import numpy as np
import pytest

from repro.base.errors import ParamError, PolicyError
from repro.model.cluster import Cluster
from repro.placement import make
from repro.placement.ilp import server_sizes
from repro.solve import placement_ilp
from repro.solve.placement_ilp import IlpPlacement, node_traffic, solve


def exhaustive(workers, sizes, free, traffic):
    best = float("inf")
    for counts in itertools.product(*(range(min(idle, workers) + 1) for idle in free)):
        if sum(counts) == workers:
            for servers in itertools.product(range(len(free)), repeat=len(sizes)):
                best = min(best, max(node_traffic(counts, servers, sizes, traffic)))
    return best


def instance(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(1, 5))
    servers = int(rng.integers(1, 5))
    free = rng.integers(0, 4, nodes).tolist()
    free[0] += not sum(free)
    workers = int(rng.integers(1, min(sum(free), 6) + 1))
    # Whole and half numbers in a narrow range make ties common.
    sizes = rng.choice([10.0, 10.0, 25.0, 80.5], servers).tolist()
    traffic = rng.choice([0.0, 0.0, 40.0, 120.5], nodes).tolist()
    return sum(sizes), workers, sizes, free, traffic


@pytest.mark.parametrize("seed", range(60))
def test_optimum_equals_exhaustive_search(seed):
    model, workers, sizes, free, traffic = instance(seed)
    found = solve(model, workers, sizes, free, traffic)
    assert sum(found.workers) == workers
    assert all(count <= idle for count, idle in zip(found.workers, free, strict=True))
    achieved = max(node_traffic(found.workers, found.servers, sizes, traffic))
    assert found.max_traffic == pytest.approx(achieved)
    assert achieved == pytest.approx(exhaustive(workers, sizes, free, traffic), rel=1e-5)


def test_an_instance_is_solved_once(monkeypatch):
    solved = []

    class Counted(placement_ilp._Programme):
        def canonical_optimum(self):
            solved.append(self.workers)
            return super().canonical_optimum()

    monkeypatch.setattr(placement_ilp, "_Programme", Counted)
    placement_ilp._canonical_optimum.cache_clear()
    first = solve(123.0, 3, [100.0, 23.0], [1, 2, 2], [0.0, 4.0, 0.0])
    assert solve(123.0, 3, [100.0, 23.0], [1, 2, 2], [0.0, 4.0, 0.0]) == first
    # the same instance in another unit
    assert solve(246.0, 3, [200.0, 46.0], [1, 2, 2], [0.0, 8.0, 0.0]).servers == first.servers
    assert solved == [3]


@pytest.mark.parametrize("seed", range(20))
def test_permuting_nodes_and_servers_permutes_the_answer(seed):
    model, workers, sizes, free, traffic = instance(seed)
    found = solve(model, workers, sizes, free, traffic)
    rng = np.random.default_rng(seed)
    nodes = rng.permutation(len(free)).tolist()
    order = rng.permutation(len(sizes)).tolist()
    again = solve(
        model,
        workers,
        [sizes[j] for j in order],
        [free[i] for i in nodes],
        [traffic[i] for i in nodes],
    )
    assert again.max_traffic == pytest.approx(found.max_traffic)

    def held(result, sizes, free, traffic):
        # What each node gets, nodes told apart by nothing but what they are like.
        load = [[] for _ in free]
        for size, node in zip(sizes, result.servers, strict=True):
            load[node].append(size)
        like = zip(free, traffic, result.workers, map(sorted, load), strict=True)
        return sorted(map(repr, like))

    permuted = ([sizes[j] for j in order], [free[i] for i in nodes], [traffic[i] for i in nodes])
    assert held(again, *permuted) == held(found, sizes, free, traffic)
    assert solve(model, workers, sizes, free, traffic) == found


def test_equal_nodes_are_filled_in_index_order():
    found = solve(100.0, 2, [50.0, 50.0], [2, 2, 2], [0.0] * 3)
    assert found == IlpPlacement((2, 0, 0), (0, 0), 0.0)


def test_existing_traffic_is_avoided():
    found = solve(100.0, 2, [50.0, 50.0], [2, 2], [10.0, 0.0])
    # Leaving node 0 alone cannot beat its 10 MB, so the best node by order takes the job.
    assert found == IlpPlacement((0, 2), (1, 1), 10.0)


def test_one_worker_per_node_spreads_the_servers():
    found = solve(4.0, 4, [1.0] * 4, [1] * 4, [0.0] * 4)
    assert found == IlpPlacement((1, 1, 1, 1), (0, 1, 2, 3), 6.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ((1.0, 2, [1.0], [1] * 9, [0.0] * 9), ParamError, "9 nodes; it takes 1 to 8"),
        ((1.0, 9, [1.0], [9], [0.0]), ParamError, "9 workers; it takes 1 to 8"),
        ((1.0, 0, [1.0], [1], [0.0]), ParamError, "0 workers; it takes 1 to 8"),
        ((9.0, 2, [1.0] * 9, [2], [0.0]), ParamError, "9 parameter servers; it takes 1 to 8"),
        ((1.0, 2, [], [2], [0.0]), ParamError, "0 parameter servers"),
        ((0.0, 2, [0.0], [2], [0.0]), ParamError, "must exceed 0 MB"),
        ((2.0, 2, [3.0, -1.0], [2], [0.0]), ParamError, ">= 0 MB"),
        ((2.0, 2, [1.0], [2], [0.0]), ParamError, "hold 1 MB of a model of 2 MB"),
        ((1.0, 2, [float("nan")], [2], [0.0]), ParamError, "hold nan MB"),
        ((1.0, 2, [1.0], [2, 2], [0.0]), ParamError, "2 nodes but 1 traffic"),
        ((1.0, 2, [1.0], [2], [-1.0]), ParamError, "one value >= 0 per node"),
        ((1.0, 2, [1.0], [1], [0.0]), PolicyError, "2 workers but 1 idle"),
    ],
)
def test_instances_it_refuses(call, error, message):
    with pytest.raises(error, match=message):
        solve(*call)


def test_server_sizes_add_up():
    for share in (0.0, 0.25, 0.3, 0.9, 1.0):
        for servers in range(1, 9):
            sizes = server_sizes(500.0, servers, share)
            assert sum(sizes) == pytest.approx(500.0)
            assert len(sizes) == servers
            assert max(sizes) == pytest.approx(
                500.0 * max(share, 1 / servers) if servers > 1 else 500
            )


def test_rule_spreads_no_gang_that_fits_one_node():
    rule = make("ilp", model_mb={"a": 500.0}, skew={"a": 0.7})
    placer = rule.bind(Cluster.parse("3x4"), np.random.default_rng(0))
    assert placer.take(0, 4, "a") == ((0, 4),)
    assert placer.take(1, 3, "a") == ((1, 3),)
    assert placer.take(2, 1, "a") == ((1, 1),)
    assert all(amount == 0 for node in placer.traffic for amount in node.values())


def test_rule_balances_traffic_and_forgets_it():
    rule = make("ilp", model_mb={"a": 100.0}, skew={"a": 0.5})
    placer = rule.bind(Cluster.parse("4x2"), np.random.default_rng(0))
    placer.take(0, 4, "a")
    loaded = {node for node in range(4) if any(placer.traffic[node].values())}
    assert len(loaded) == 2
    second = placer.take(1, 3, "unlisted")
    assert {node for node, _ in second}.isdisjoint(loaded)
    placer.give_back(0)
    placer.give_back(1)
    assert placer.traffic == [{}, {}, {}, {}]
    assert placer.idle == [2, 2, 2, 2]


def test_rule_places_large_gangs_as_yarn_does():
    cluster = Cluster.parse("4x4")
    ilp = make("ilp", model_mb={}, skew={}).bind(cluster, np.random.default_rng(0))
    yarn = make("yarn").bind(cluster, np.random.default_rng(0))
    assert ilp.take(0, 9, None) == yarn.take(0, 9, None)
    assert [sum(node.values()) for node in ilp.traffic] == pytest.approx(
        # 100 MB in 9 servers; w (M - S) + S (9 - w) with S = 100 w / 9.
        [w * (100 - 100 * w / 9) + 100 * w / 9 * (9 - w) for w in (4, 4, 1, 0)]
    )
