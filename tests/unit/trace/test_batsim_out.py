"""Workloads of Batsim as `repro.trace.load.write` writes them."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.base.errors import InputWarning
from repro.trace.load import format_to_write, load, write
from repro.trace.schema import MAX_TIME_S, validate

JOBS = pd.DataFrame(
    {
        "job_id": ["w0!b", "w0!a", "w0!c"],
        "submit_time": [0.0, 2.5, 3.0],
        "duration": [10.0, 4.25, 10.0],
        "num_gpus": [2, 1, 4],
        "time_limit": [60.0, np.nan, 9.0],
    }
)
KEPT = ("job_id", "submit_time", "duration", "num_gpus")


def test_a_workload_by_hand(tmp_path):
    path = tmp_path / "jobs.json"
    with pytest.warns(InputWarning) as caught:
        write(JOBS, path)
    assert [str(warning.message) for warning in caught] == [
        "1 job written without a time limit: Batsim stops a job at its limit, and the run is "
        "longer",
        "nb_res is 4, the GPUs of the widest job: a trace has no cluster; write the GPUs of yours",
    ]
    assert json.loads(path.read_text()) == {
        "nb_res": 4,
        "jobs": [
            {"id": "w0!b", "subtime": 0, "res": 2, "walltime": 60, "profile": "delay_10"},
            {"id": "w0!a", "subtime": 2.5, "res": 1, "walltime": -1, "profile": "delay_4.25"},
            {"id": "w0!c", "subtime": 3, "res": 4, "walltime": -1, "profile": "delay_10"},
        ],
        "profiles": {
            "delay_10": {"type": "delay", "delay": 10},
            "delay_4.25": {"type": "delay", "delay": 4.25},
        },
    }
    # a job is a line, so that differences of two files are readable
    assert path.read_text().splitlines()[3].strip().startswith('{"id": "w0!b", "subtime": 0')


def test_what_batsim_cannot_hold_is_said(tmp_path):
    jobs = JOBS.assign(gpu_share=[0.5, 1.0, 1.0], user="ann", model="vgg16")
    with pytest.warns(InputWarning) as caught:
        write(jobs, tmp_path / "jobs.json")
    assert [str(warning.message) for warning in caught][:2] == [
        "1 job with a part of a GPU written with whole GPUs",
        "not written, as Batsim has no field for them: user, model",
    ]


def test_the_size_of_the_cluster_is_written_again(tmp_path):
    path = tmp_path / "jobs.json"
    workload = {
        "nb_res": 64,
        "jobs": [{"id": 7, "subtime": 0, "res": 2, "profile": "p"}],
        "profiles": {"p": {"type": "delay", "delay": 5}},
    }
    path.write_text(json.dumps(workload))
    frame = load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(frame, tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text())["nb_res"] == 64
    # a size that the widest job does not fit is not taken over
    with pytest.warns(InputWarning, match="nb_res is 99"):
        write(frame.assign(num_gpus=99), tmp_path / "again.json")


def test_the_ending_names_the_format(tmp_path):
    assert format_to_write(tmp_path / "JOBS.JSON") == "batsim"
    with pytest.warns(InputWarning):
        write(JOBS, tmp_path / "jobs.txt", "batsim")
    assert load(tmp_path / "jobs.txt").attrs["format"] == "batsim"


times = st.floats(0, MAX_TIME_S / 4, allow_subnormal=False)
spans = st.floats(1e3, MAX_TIME_S / 4)
ids = st.lists(st.integers(0, 10**9), unique=True, min_size=1, max_size=8)
names = st.lists(
    st.text("abcXYZ é!._-", min_size=1).filter(str.strip), unique=True, min_size=1, max_size=8
)


@given(ids=st.one_of(ids, names), data=st.data())
def test_a_written_workload_reads_as_the_same_jobs(ids, data, tmp_path_factory):
    def column(values):
        return data.draw(st.lists(values, min_size=len(ids), max_size=len(ids)))

    jobs = validate(
        pd.DataFrame(
            {
                "job_id": ids,
                "submit_time": column(times),
                "duration": column(spans),
                "num_gpus": column(st.integers(1, 4096)),
                "time_limit": np.array(column(st.none() | spans), float),
            }
        )
    )
    path = tmp_path_factory.mktemp("batsim") / "jobs.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        write(jobs, path)
    again = load(path, "batsim")
    for name in KEPT:
        assert again[name].tolist() == jobs[name].tolist()
    limits = jobs["time_limit"].where(jobs["time_limit"] >= jobs["duration"])
    read_limits = again.get("time_limit", pd.Series(np.nan, again.index))
    assert read_limits.fillna(-1).tolist() == limits.fillna(-1).tolist()
