"""CPU time of a figure: simulations count where they ran first, once."""

from __future__ import annotations

import time

import pytest

from repro.figures import cache, costs
from repro.figures.costs import COSTS, Costs, Meter


def burn(cpu_s=0.25):
    """Use CPU time."""
    end = time.process_time() + cpu_s
    while time.process_time() < end:
        pass
    return {"burnt": cpu_s}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path))


def test_a_cached_result_costs_what_it_cost_first():
    first = Meter()
    cache.remembered("a1", burn)
    assert first.cpu_s() == pytest.approx(0.25, abs=0.2)
    again = Meter()
    assert cache.remembered("a1", burn) == {"burnt": 0.25}
    assert again.cpu_s() >= 0.25
    assert time.process_time() - again._began < 0.2


def test_a_result_used_twice_counts_once():
    cache.remembered("a1", burn)
    meter = Meter()
    for _ in range(3):
        cache.remembered("a1", burn)
        cache.recall("a1")
    assert 0.25 <= meter.cpu_s() < 0.45


def test_a_part_that_was_cached_counts_in_the_whole_but_not_twice():
    cache.remembered("part", burn)

    def whole():
        cache.remembered("part", burn)
        return burn(0.1)

    meter = Meter()
    cache.remembered("whole", whole)
    assert 0.35 <= meter.cpu_s() < 0.55
    assert dict(COSTS.used)["whole"] >= 0.35


def test_a_part_that_is_computed_within_counts_once():
    def whole():
        cache.remembered("inner", burn)
        return burn(0.1)

    meter = Meter()
    cache.remembered("outer", whole)
    assert 0.35 <= dict(COSTS.used)["outer"] < 0.55
    assert 0.35 <= meter.cpu_s() < 0.6


def test_a_failed_computation_leaves_no_level_behind():
    own = Costs()
    with pytest.raises(ZeroDivisionError), own.computing():
        raise ZeroDivisionError
    own.use("a", 1.0)
    assert own.used == [("a", 1.0)]
    assert costs.COSTS is COSTS
