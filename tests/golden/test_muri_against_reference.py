"""The engine under rules ``muri`` and the independent reference agree job by job, to the bit."""

from __future__ import annotations

import muri_cases as cases
import muri_reference as reference
import numpy as np
import pytest

import repro
from repro.model.policy import make

SIMPLE = ("srtf", "srsf", "tiresias-l", "antman")


def unmatched(rng):
    return {
        "blossom": False,
        "max_group": int(rng.choice([2, 3, 4])),
        "ordering": str(rng.choice(["best", "worst"])),
        "autopack": bool(rng.random() < 0.5),
    }


def assert_equal(both, rng):
    for policy in SIMPLE:
        here, there = both.ends(policy)
        assert np.array_equal(here, there), policy
    for policy in ("muri-s", "muri-l"):
        settings = unmatched(rng)
        here, there = both.ends(policy, **settings)
        assert np.array_equal(here, there), (policy, settings)


@pytest.mark.parametrize("seed", range(10))
def test_subsets_of_public_traces_end_at_the_same_instants(mirror, tmp_path, seed):
    rng = np.random.default_rng(seed)
    nodes, size = cases.CLUSTERS[seed % len(cases.CLUSTERS)]
    assert_equal(cases.Both(cases.subset(mirror, rng), nodes, size, tmp_path), rng)


@pytest.mark.parametrize("seed", range(25))
def test_generated_traces_end_at_the_same_instants(tmp_path, seed):
    rng = np.random.default_rng(1000 + seed)
    nodes, size = cases.CLUSTERS[seed % len(cases.CLUSTERS)]
    assert_equal(cases.Both(cases.generated(rng), nodes, size, tmp_path), rng)


@pytest.mark.parametrize(("trace", "first"), [("trace3", 100), ("trace1", 700), ("trace4", 1500)])
@pytest.mark.parametrize("cluster", [(8, 8), (4, 8)])
def test_themis_ends_at_the_same_instants_where_its_solution_is_unique(
    mirror, tmp_path, trace, first, cluster
):
    """Where many jobs arrive at once, ties are decided by how far the solver gets."""
    rows = reference.read_rows(mirror / cases.FOLDER / f"{trace}.csv")
    both = cases.Both(rows[first : first + 120], *cluster, tmp_path)
    here, there = both.ends("themis")
    np.testing.assert_allclose(here, there, rtol=1e-9)


@pytest.mark.parametrize("policy", ["muri-s", "muri-l"])
@pytest.mark.parametrize("settings", [{}, {"max_group": 3}, {"autopack": True}], ids=str)
def test_matched_groups_are_as_good_on_average(tmp_path, policy, settings):
    """Ties between equal matchings are broken otherwise; over many traces that evens out."""
    ratios = []
    for seed in range(15):
        rng = np.random.default_rng(2000 + seed)
        both = cases.Both(cases.generated(rng), *cases.CLUSTERS[seed % 5], tmp_path)
        ratios.append(both.average_jct(policy, **settings))
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.03)
    assert np.max(np.abs(np.log(ratios))) < 0.25


@pytest.mark.parametrize("seed", range(12))
def test_the_first_matching_weighs_the_same(tmp_path, seed):
    """All jobs at once, pairs only: every candidate is matched, so the weights are comparable."""
    rng = np.random.default_rng(3000 + seed)
    rows = [row | {"submit_time": 0} for row in cases.generated(rng)]
    nodes, size = cases.CLUSTERS[seed % len(cases.CLUSTERS)]
    both = cases.Both(rows, nodes, size, tmp_path)
    known = reference.SCHEDULERS["muri-l"](nodes, size, packing_num=2)
    jobs = [reference.Job(n, row, cases.overheads()) for n, row in enumerate(both.rows)]
    # new jobs of equal priority stand in the order of the file
    there = known.match(known.candidates(jobs))
    chosen = make("muri-l", "muri", max_group=2)
    found = repro.simulate(both.frame, f"{nodes}x{size}", chosen, rules="muri").intervals
    first = found[found["start"] == 0].drop_duplicates("job_id")
    place = {int(row["job_id"]): n for n, row in enumerate(both.rows)}
    here = [
        [jobs[place[job]] for job in members["job_id"]] for _, members in first.groupby("group")
    ]

    def weight(groups):
        pairs = [group for group in groups if len(group) == 2]
        return sum(known.weight((one.stages,), (other.stages,)) for one, other in pairs)

    assert sorted(map(len, here)) == sorted(map(len, there))
    assert weight(here) == pytest.approx(weight(there), rel=1e-7)
