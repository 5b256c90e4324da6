"""Two ways to one result give it, on random settings (`python -m tools.two_ways --help`)."""

from __future__ import annotations

import pytest

from tools.two_ways import catalogue, measure
from tools.two_ways.pair import Pair

#: Seed of the cases: those of the table in docs/quality.md.
SEED = 42
PAIRS = [pytest.param(pair, id=pair.name) for pair in catalogue.PAIRS]


def check(pair: Pair, cases: range) -> None:
    """Every case keeps the statement of its pair, and most cases are not set aside."""
    if lacking := catalogue.missing(pair):
        pytest.skip(f"the package {', '.join(lacking)} (extra) is not installed")
    differences = list(pair.differences(SEED, cases))
    assert len(differences) == len(cases)
    for case, difference in zip(cases, differences, strict=True):
        assert pair.accepts(difference), measure.broken(pair, SEED, case, difference)
    assert differences.count(None) <= len(cases) / 2


@pytest.mark.parametrize("pair", PAIRS)
def test_a_few_random_cases(pair):
    check(pair, range(pair.quick))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("pair", PAIRS)
def test_many_random_cases(pair):
    check(pair, range(pair.quick, pair.long))
