"""GPUs whose last holder still writes a checkpoint."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import simulate
from repro.engine.draining import DrainingGpus
from repro.perf.overhead import CheckpointOverhead


def test_the_checkpoint_that_ends_first_is_waited_for():
    draining = DrainingGpus()
    draining.add(1.0, until=30.0)
    draining.add(1.0, until=23.0)
    assert draining.delay(1.0, free=2.0, now=20.0) == 3.0


def test_a_checkpoint_delays_one_gang_only():
    draining = DrainingGpus()
    draining.add(1.0, until=23.0)
    assert draining.delay(1.0, free=1.0, now=20.0) == 3.0
    assert draining.delay(1.0, free=1.0, now=21.0) == 0.0


def test_a_gang_waits_for_checkpoints_on_its_own_gpu_type_only():
    draining = DrainingGpus()
    draining.add(1.0, until=23.0, gpu_type="v100")
    assert draining.delay(1.0, free=1.0, now=20.0, gpu_type="k80") == 0.0
    assert draining.delay(1.0, free=1.0, now=20.0, gpu_type="v100") == 3.0


@pytest.mark.parametrize("cluster", ["1x1:v100", "1x1:v100,1x1:k80"])
def test_idle_gpus_of_another_type_do_not_spare_a_checkpoint(cluster):
    jobs = pd.DataFrame(
        {
            "job_id": ["a", "b"],
            "submit_time": [0.0, 10.0],
            "duration": [100.0, 5.0],
            "num_gpus": 1,
            "model": "vgg19",
            "gpu_type": "v100",
        }
    )
    overhead = CheckpointOverhead({"vgg19": 3.0}, resume=2.0)
    result = simulate(jobs, cluster, "srtf", types="wished", overhead=overhead)
    # b starts after a's checkpoint, from 13 s to 18 s; a resumes at 18 s with 90 s left
    assert result.jobs["end_time"].tolist() == [110.0, 18.0]
