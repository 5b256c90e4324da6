"""A case on GPU types gives what `repro.simulate` gives."""

import pytest

import repro
from repro.figures import sweep
from repro.testing import small_trace


@pytest.mark.parametrize("policy", ["muri-s", "antman", "srtf", "gavel-las"])
def test_a_policy_with_a_model_of_its_own_runs_at_the_speed_of_each_type(
    policy, tmp_path, monkeypatch
):
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path))
    jobs = repro.dress(small_trace())
    cluster = "1x4:v100,1x4:k80"
    case = sweep.Case(jobs, cluster, policy).resolved()
    ends = repro.simulate(jobs, cluster, policy).jobs["end_time"]
    assert sweep.outcome(case).jobs["end_time"].tolist() == ends.tolist()
