"""Properties of shares: hand-made instances in which each holds or fails."""

from __future__ import annotations

import numpy as np
import pytest

from repro.base.errors import PolicyError
from repro.papers.gavel.properties import drf_gaps, drf_tasks, gaps, rule_of

#: Two jobs on one fast and one slow GPU; the second is as fast on both.
SPEEDS = np.array([[4.0, 1.0], [1.0, 1.0]])
ONE_EACH = np.ones(2)
HONEST = SPEEDS[:1]


def test_the_example_of_dominant_resource_fairness():
    # Ghodsi et al., section 4.1: 9 CPUs, 18 GB; tasks of <1, 4> and <3, 1>: 3 and 2 of them
    most = np.array([[3.0, 12.0], [9.0, 3.0]])  # at most three tasks of each
    assert drf_tasks(most, np.array([9.0, 18.0])) * 3 == pytest.approx([3, 2])


def test_a_job_that_has_its_bundle_leaves_the_rest_to_others():
    assert drf_tasks(np.array([[1.0], [4.0]]), np.array([4.0])) == pytest.approx([1, 0.75])


def test_an_equal_part_of_all_is_safe_and_wasteful():
    found = gaps(rule_of("isolated"), SPEEDS, ONE_EACH, np.array([[1.0, 4.0]]))
    assert found["sharing incentive"] == pytest.approx(0)
    assert found["strategy-proofness"] == pytest.approx(0)
    # 5/8 and 1; the best is 1 and 1
    assert found["Pareto efficiency"] == pytest.approx(2 / 1.625 - 1)


def test_all_that_ask_for_the_fastest_type_share_it_and_idle_the_other():
    both = np.array([[4.0, 1.0], [4.0, 2.0]])
    found = gaps(rule_of("drf"), both, ONE_EACH, np.array([[1.0, 4.0]]))
    # each has 1/2 of the fast GPU instead of 1/2 of both
    assert found["sharing incentive"] == pytest.approx(1 - 0.5 / 0.75)
    # to ask for the slow GPU gives 1/4 of the speed: worse than half of the fast one
    assert found["strategy-proofness"] == pytest.approx((0.25 - 0.5) / 0.625)


def test_max_min_fairness_is_won_over_by_a_lie():
    # to belittle the slow GPU, of which it gets most, buys the first job time on the fast one:
    # 0.895 and 0.105 of them become 0.868 and 0.132
    three = np.array([[2.0, 1.0], [4.0, 1.0], [4.0, 1.0]])
    lie = np.array([[2.0, 0.9]])
    won = gaps(rule_of("gavel-las"), three, ONE_EACH, lie)["strategy-proofness"]
    assert won == pytest.approx((1.132 - 1.105) / 1.0, abs=1e-3)  # 1/3 of both would give 1
    assert gaps(rule_of("gavel-strategy-proof"), three, ONE_EACH, lie)["strategy-proofness"] < 0


def test_the_truth_gains_nothing():
    for policy in ("gavel-las", "gavel-max-throughput", "gavel-water-filling", "drf"):
        found = gaps(rule_of(policy), SPEEDS, ONE_EACH, HONEST)
        assert found["strategy-proofness"] == pytest.approx(0, abs=1e-9)


def test_fixed_bundles_keep_all_three():
    rng = np.random.default_rng(3)
    for _ in range(20):
        bundles = rng.lognormal(size=(5, 3))
        lies = bundles[0] * rng.lognormal(size=(4, 3))
        assert max(drf_gaps(bundles, np.full(3, 2.0), lies).values()) < 1e-9


def test_a_policy_without_a_formula_is_refused():
    with pytest.raises(PolicyError, match="no formula of shares"):
        rule_of("tiresias-l")


@pytest.mark.parametrize(
    ("policy", "inputs"),
    [
        ("gavel-makespan", "duration"),
        ("gavel-sjf", "duration"),
        ("gavel-hierarchical", "entity, vc"),
    ],
)
def test_a_policy_that_reads_more_than_speeds_is_refused(policy, inputs):
    with pytest.raises(PolicyError, match=f"policy '{policy}' reads {inputs}; give a policy whose"):
        rule_of(policy)


def test_a_policy_without_shares_of_kinds_is_refused():
    with pytest.raises(PolicyError, match="policy 'gavel-las-ss' is no formula of shares"):
        rule_of("gavel-las-ss")
