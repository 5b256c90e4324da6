"""Random traces under every policy and rule set: no violation, and runs that must agree do."""

from __future__ import annotations

import pytest

from tools.random_traces import cases
from tools.random_traces.check import check
from tools.random_traces.run import description

PAIRS = cases.pairs()
POLICIES = sorted({policy for policy, _ in PAIRS})
SEED = 42


def faults(policy, rules, indices):
    """Descriptions of the violations of some cases."""
    verdicts = [check(policy, rules, SEED, index) for index in indices]
    return [description(verdict) for verdict in verdicts if verdict.fault]


@pytest.mark.parametrize("policy", POLICIES)
def test_ten_traces(policy):
    rules = [rules for name, rules in PAIRS if name == policy]
    found = [
        text
        for number, name in enumerate(rules)
        for text in faults(policy, name, range(number, 10, len(rules)))
    ]
    assert not found


@pytest.mark.nightly
@pytest.mark.parametrize(("policy", "rules"), PAIRS)
def test_two_hundred_traces(policy, rules):
    assert not faults(policy, rules, range(200))
