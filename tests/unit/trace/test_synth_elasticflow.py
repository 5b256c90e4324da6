"""ElasticFlow-like traces against the public ones: distributions, totals and stand-ins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from repro.base.errors import ParamError, StandInWarning
from repro.figures.data import STAND_IN, open_trace
from repro.trace import load, synth
from repro.trace.synth.elasticflow import CLUSTERS


def draw(seed, **options):
    return synth.make("elasticflow-like", np.random.default_rng(seed), **options)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_distributions_are_those_of_the_real_trace(mirror, monkeypatch, cluster):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    public = load.load(f"elasticflow-{cluster:02}")
    drawn = draw(cluster, cluster=cluster)
    # many jobs of a cluster last equally long, between two of the measured quantiles
    assert ks_2samp(drawn["duration"], public["duration"]).statistic <= 0.12
    gaps = [frame["submit_time"].diff()[1:] for frame in (drawn, public)]
    assert ks_2samp(*gaps).statistic <= 0.05
    counts = [frame["num_gpus"].value_counts().to_dict() for frame in (drawn, public)]
    assert counts[0] == counts[1]
    work = [(frame["duration"] * frame["num_gpus"]).sum() for frame in (drawn, public)]
    assert work[0] == pytest.approx(work[1], rel=0.02)
    spans = [np.ptp(frame["submit_time"]) for frame in (drawn, public)]
    assert spans[0] == pytest.approx(spans[1], rel=0.01)


def test_fewer_jobs_come_at_the_same_rate():
    few = draw(0, cluster=7, jobs=1000)
    all_jobs = draw(0, cluster=7)
    rates = [(len(jobs) - 1) / jobs["submit_time"].max() for jobs in (few, all_jobs)]
    assert rates[0] == pytest.approx(rates[1], rel=0.05)


def test_a_missing_file_has_a_stand_in(monkeypatch, tmp_path):
    monkeypatch.delenv("REPRO_TRACE_MIRROR", raising=False)
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path))
    with pytest.warns(StandInWarning):
        trace, provenance = open_trace("elasticflow-10", 0)
    assert provenance.kind == STAND_IN
    assert len(trace) == 260


def test_unknown_cluster():
    with pytest.raises(ParamError, match="cluster=11: give 1 to 10"):
        draw(0, cluster=11)
