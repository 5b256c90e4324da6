"""Jobs with measured profiles in place of those of the papers."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import simulate
from repro.papers.measured import profiles
from repro.perf.stages import STAGE_COLUMNS
from repro.perf.throughput import ThroughputTable

STAGES = pd.DataFrame(
    {
        "job": ["a", "a", "b"],
        "batch_size": [8, 32, 4],
        "storage_s": 0.1,
        "cpu_s": [1.0, 2.0, 3.0],
        "gpu_s": 0.5,
        "network_s": 4.0,
    }
)


def jobs(**columns):
    frame = {"job_id": [1, 2], "submit_time": 0.0, "duration": 100.0, "num_gpus": [1, 2]}
    return pd.DataFrame({**frame, "model": ["x", "y"], **columns})


@pytest.fixture
def nearest():
    return profiles.nearest_batches(STAGES, {"x": 16, "y": 64}, {"x": "a", "y": "b"})


def test_a_model_has_the_nearest_measured_batch(nearest):
    assert nearest["batch_size"].to_dict() == {"x": 8, "y": 4}
    assert nearest["stage_cpu"].to_dict() == {"x": 1.0, "y": 3.0}


def test_only_gangs_have_a_network_stage(nearest):
    dressed = profiles.with_stages(jobs(stage_gpu=9.0), nearest, network=True)
    assert dressed["stage_network"].tolist() == [0.0, 4.0]
    assert dressed["stage_gpu"].tolist() == [0.5, 0.5]
    assert dressed["iteration_time"].tolist() == pytest.approx([1.6, 7.6])
    assert dressed["iterations"].tolist() == [62, 13]
    assert not profiles.with_stages(jobs(), nearest, network=False)["stage_network"].any()


def test_a_dressed_trace_is_simulated(nearest):
    dressed = profiles.with_stages(jobs(num_gpus=1), nearest, network=True)
    assert set(STAGE_COLUMNS) <= set(dressed)
    assert simulate(dressed, "1x1", "muri-s").summary()["n_finished"] == 2


def test_other_models_are_left_out_and_the_new_type_is_the_reference():
    table = ThroughputTable.of({"a": {"v100": 4.0}, "b": {"v100": 1.0}}, "v100")
    found = profiles.with_measured_type(table, {"a": 12.0}, "h100")
    assert found.rows == {("a", 1): {"v100": 4.0, "h100": 12.0}}
    assert found.reference == "h100"


def test_mean_speed_weighs_types_by_their_gpus():
    table = ThroughputTable.of({"a": {"v100": 4.0, "k80": 1.0}, "b": {"v100": 2, "k80": 1}}, "v100")
    assert profiles.mean_speed(table, {"v100": 3, "k80": 1}) == (3 + 0.375) / 4


def test_pairs_of_equal_stages_gain_what_does_not_overlap():
    stages = pd.DataFrame({"stage_storage": [1.0, 1.0], "stage_gpu": 1.0, "stage_network": 0.0})
    # the data stage of one job runs during the GPU stage of the other
    assert profiles.speeds_in_turn(stages).tolist() == [2.0, 2.0, 2.0]
