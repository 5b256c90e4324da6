"""Speed-up curves: interpolation, caps, and jobs that shrink and grow in a run."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import make, simulate
from repro.base.errors import ParamError
from repro.perf import SpeedUp

CURVES = SpeedUp({"vgg": (1.0, 1.5, 1.8, 2.0)})


@pytest.mark.parametrize(
    ("gpus", "speed"), [(0, 0), (0.5, 0.5), (1, 1), (1.5, 1.25), (3, 1.8), (3.5, 1.9), (9, 2)]
)
def test_curve(gpus, speed):
    assert CURVES.speed("vgg", gpus) == pytest.approx(speed)


def test_without_a_curve_speed_is_linear():
    assert CURVES.speed("lstm", 7.5) == CURVES.speed(None, 7.5) == 7.5


def test_two_elastic_jobs():
    # J1 holds 4 of 4 GPUs, J2 waits for none but gets what is left: none, then all
    trace = pd.DataFrame(
        {
            "job_id": ["J1", "J2"],
            "submit_time": [0.0, 0.0],
            "duration": [10.0, 10.0],
            "num_gpus": [3, 2],
            "model": ["vgg", "vgg"],
        }
    )
    jobs = simulate(trace, "1x4", make("fifo-elastic"), perf=CURVES).jobs
    # J2 runs on one GPU at 1/1.5 for 10 s, then on two
    assert jobs["end_time"].tolist() == pytest.approx([10, 10 + 10 - 10 / 1.5])


def test_too_short_a_curve_is_an_error():
    trace = pd.DataFrame(
        {"job_id": [0], "submit_time": 0.0, "duration": 1.0, "num_gpus": 6, "model": "vgg"}
    )
    with pytest.raises(ParamError, match="ends at 4"):
        simulate(trace, "1x8", make("fifo-elastic"), perf=CURVES)
