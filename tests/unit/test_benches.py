"""What benches hand to policies is all that policies ask for; the suite skips the benches."""

import importlib.util
from pathlib import Path

import pytest

from repro import make

BENCH = Path(__file__).resolve().parents[1] / "bench"


@pytest.fixture
def allocation(monkeypatch):
    """The bench of one allocation, as a module."""
    monkeypatch.syspath_prepend(str(BENCH))
    spec = importlib.util.spec_from_file_location("allocation", BENCH / "test_bench_gavel_lp.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_policies_can_decide_on_the_view_of_the_bench(allocation):
    for policy in allocation.LIMITS:
        run = allocation.view(jobs=60)
        shares = make(policy, rules="paper").session(run)(run).fractions
        assert shares.sum() > 0.9 * run.gpu_counts.sum(), policy
