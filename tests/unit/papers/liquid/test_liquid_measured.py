"""Tables measured on one H100, and the same jobs simulated."""

from __future__ import annotations

import pandas as pd
import pytest

from repro.base import paths
from repro.base.errors import TraceError
from repro.papers.liquid import measured

FOLDER = paths.traces_dir() / "measured"


def test_every_table_is_read():
    sizes = {name: len(measured.rows(name, FOLDER / f"{name}.csv")) for name in measured.TABLES}
    wanted = {"isolated": 48, "colocated": 238, "interleave": 262, "pause": 8, "sequence": 16}
    wanted |= {"sequence_gpu": 8755}
    assert sizes == wanted


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("mps,a,first,fast,50,100", "2:iters_per_s: not a number (fast)"),
        ("mps,a,first,5,,100", "2:gpu_util_mean: missing value"),
        ("mps,a,first,5,-1,100", "2:gpu_util_mean: negative (-1)"),
        ("mps,,first,5,50,100", "2:job: missing value"),
        ("mps,a,first,5", "2: 4 fields where 6 are expected"),
    ],
)
def test_a_bad_row_names_file_line_and_column(tmp_path, line, says):
    path = tmp_path / "isolated.csv"
    path.write_text(f"mode,job,when,iters_per_s,gpu_util_mean,reserved_mb\n{line}\n")
    with pytest.raises(TraceError) as problem:
        measured.rows("isolated", path)
    assert str(problem.value).startswith(f"{path}:{says}")
    assert "\n" not in str(problem.value)


def test_a_missing_column_is_named(tmp_path):
    path = tmp_path / "pause.csv"
    path.write_text("job,launch_total_s\nvgg16,3\n")
    with pytest.raises(TraceError, match=r"save_d2h_s,.* missing column"):
        measured.rows("pause", path)


def test_models_not_measured_get_the_mean():
    pause = measured.rows("pause", FOLDER / "pause.csv")
    phases = measured.launch_and_save(pause, ["vgg16", "neumf"])
    assert phases.launch["vgg16"] == pytest.approx(12.4275)
    assert phases.launch["neumf"] == pytest.approx(pause["launch_total_s"].mean())


def test_jobs_alone_are_the_mean_of_their_measurements():
    isolated = measured.rows("isolated", FOLDER / "isolated.csv")
    found = measured.alone(isolated).loc["neumf"]
    rates = isolated.query("job == 'neumf' and mode == 'timeslice'")["iters_per_s"]
    assert found["iters_per_s"] == pytest.approx(rates.mean())
    assert found[["gpu_util", "gpu_mem_mb"]].tolist() == pytest.approx([49.36, 704], abs=0.01)


def test_pairs_run_at_measured_speeds_and_others_at_half():
    alone = pd.DataFrame({"iters_per_s": [10.0, 4.0]}, ["a", "b"])
    pairs = pd.DataFrame({"job_a": ["b"], "job_b": ["a"], "norm_a": [0.5], "norm_b": [1.2]})
    speeds = measured.pair_speeds(alone, pairs)
    # no job is faster than alone
    assert speeds.pair_speeds("b", 1, "a", 1, ["h100"])[:, 0].tolist() == [2.0, 10.0]
    assert speeds.pair_speeds("a", 1, "a", 1, ["h100"])[:, 0].tolist() == [5.0, 5.0]


def test_a_pair_measured_twice_has_the_mean_of_both_in_any_order():
    alone = pd.DataFrame({"iters_per_s": [10.0, 4.0]}, ["a", "b"])
    pairs = pd.DataFrame(
        {"job_a": ["b", "a"], "job_b": ["a", "b"], "norm_a": [0.5, 0.8], "norm_b": [0.6, 0.25]}
    )
    for table in (pairs, pairs[::-1]):
        speeds = measured.pair_speeds(alone, table)
        # a 0.6 and 0.8 of 10, b 0.5 and 0.25 of 4
        assert speeds.pair_speeds("a", 1, "b", 1, ["h100"])[:, 0].tolist() == [7.0, 1.5]
