"""What PCS costs, in units of a bare event loop measured in the same run; see test_bench.py."""

from __future__ import annotations

import pytest
from costs import measure

from repro import load, simulate
from repro.papers.pcs import artifact

TRACES = "abdullahfsm+PCS/simulation/traces"


def chosen(name, cluster):
    """Return a policy; jct, bal and pred are the configurations that the artifact ships."""
    return artifact.policy(f"pcs-{name}" if name in ("jct", "bal", "pred") else name, cluster)


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("jct", 12),
        ("bal", 12),
        ("pred", 12),
        ("srsf-elastic", 2),
        ("fifo-elastic", 2),
        ("max-min", 4),
        ("afs", 12),
        ("themis", 60),
    ],
)
@pytest.mark.parametrize("cluster", ["6214e9", "b436b2"])
def test_a_thousand_jobs_all_predicted(benchmark, mirror, cluster, name, limit):
    trace = load(mirror / TRACES / f"trace_{cluster}.csv", "pcs").head(1001)
    policy = chosen(name, cluster)
    simulate(trace.head(20), "1x64", policy, rules="pcs")
    cost, result = measure(
        benchmark,
        f"pcs-{cluster}, 1,001 jobs, {name}",
        3,
        simulate,
        trace,
        "1x64",
        policy,
        rules="pcs",
    )
    assert result.jobs["predicted_jct"].notna().all()
    assert cost <= limit


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("predict", [0, 5000])
@pytest.mark.parametrize(
    "name", ["jct", "bal", "pred", "srsf-elastic", "fifo-elastic", "max-min", "afs", "themis"]
)
def test_fifty_thousand_jobs(benchmark, mirror, name, predict):
    trace = load(mirror / TRACES / "trace_6214e9.csv", "pcs")
    policy = chosen(name, "6214e9")
    simulate(trace.head(20), "1x64", policy, rules="pcs")
    cost, result = measure(
        benchmark,
        f"pcs-6214e9, 51,258 jobs, {name}, {predict} predictions",
        1,
        simulate,
        trace,
        "1x64",
        policy,
        rules="pcs",
        predict=predict,
    )
    assert result.jobs["predicted_jct"].notna().sum() == predict
    limit = 120
    if predict:
        limit = 3000 if name == "themis" else 1500
    assert cost <= limit
