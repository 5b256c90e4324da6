"""JCTs in isolated shares, by hand."""

import numpy as np
import pytest
from hand_traces import trace

from repro.base.interpreted import Interpretation
from repro.comparison.isolated import isolated_jcts
from repro.comparison.runs import fairness


def jcts(*rows, gpus):
    submit, duration, demand = np.array(rows, float).T.copy()
    return isolated_jcts(submit, duration, demand, float(gpus)).tolist()


def test_two_wide_jobs_halve_the_cluster():
    assert jcts((0, 10, 2), (0, 10, 2), gpus=2) == [20.0, 20.0]
    # alone for 5 s, both at half speed for 10 s, the second alone for 5 s
    assert jcts((0, 10, 2), (5, 10, 2), gpus=2) == [15.0, 15.0]


def test_a_job_gets_nothing_of_what_others_leave():
    # 4 GPUs for 2 jobs: the narrow one needs 1, the wide one stays at 2 of 4
    assert jcts((0, 10, 1), (0, 10, 4), gpus=4) == [10.0, 15.0]


def test_an_empty_cluster_waits_for_the_next_job():
    assert jcts((3, 10, 1), (100, 10, 1), gpus=1) == [10.0, 10.0]


def test_rho_is_in_the_order_of_the_trace():
    jobs = trace((5, 10, 2), (0, 10, 2))
    assert fairness(jobs, np.array([30.0, 15.0]), 2).tolist() == pytest.approx([2.0, 1.0])


def test_a_long_interpretation_ends_within_the_loop(monkeypatch):
    monkeypatch.setenv("REPRO_PYTHON_S", "0.05")
    at_once = trace(*((0, 100 + job, 1) for job in range(3000)))
    columns = [at_once[name].to_numpy(float) for name in ("submit_time", "duration", "num_gpus")]
    interpretation = Interpretation(isolated_jcts.py_func, None)
    is_done, _ = interpretation.try_once((*columns, 4.0), {})
    assert not is_done
