"""Plans as groups of containers, and the least objective of a small batch."""

from __future__ import annotations

import numpy as np

from repro.papers.liquid.plans import lanes, least_objective, sampled_batch
from repro.policies.liquid.grouping import best_fit


def test_an_empty_node_keeps_its_lane():
    bars = lanes({"a": ["J1-PS1", "J1-W1"], "b": []}, {"b": ", emptied"})
    assert bars["node"].tolist() == ["a", "a", "b, emptied"]
    assert bars["end"].tolist() == [1, 2, 0]


def test_no_plan_is_below_the_least_objective():
    site, gangs = sampled_batch(np.random.default_rng(0), 3, 2, 3, 2)
    least = least_objective(site, gangs, 0.5)
    plan = best_fit(site, gangs, 0.5)
    assert least <= site.objectives(plan[None], gangs, 0.5)[0]
