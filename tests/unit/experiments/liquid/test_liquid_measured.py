"""Tables measured on one H100, and the same jobs simulated."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import paths
from repro.errors import TraceError
from repro.experiments.liquid import measured
from repro.perf.side_by_side import ByUtilisation, MeasuredPairs

FOLDER = paths.traces_dir() / "measured"


def test_every_table_is_read():
    sizes = {name: len(measured.rows(name, FOLDER / f"{name}.csv")) for name in measured.TABLES}
    wanted = {"isolated": 48, "colocated": 238, "pause": 8, "sequence": 16, "sequence_gpu": 8755}
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


def test_pairs_are_at_most_as_fast_as_alone():
    rows = [("mps", "a", "b", 1.5, 0.5), ("mps", "a", "b", 1.0, 0.25)]
    table = pd.DataFrame(rows, columns=["mode", "job_a", "job_b", "norm_a", "norm_b"])
    assert measured.pair_speeds(table, "mps") == MeasuredPairs({("a", "b"): (1.0, 0.375)})


@pytest.mark.parametrize("model", ["cnn_mnist", "neumf"])
def test_two_jobs_in_a_row_take_about_as_long_as_measured(model):
    phases = measured.launch_and_save(measured.rows("pause", FOLDER / "pause.csv"), [model])
    alone = measured.alone(measured.rows("isolated", FOLDER / "isolated.csv")).loc[model]
    runs = measured.rows("sequence", FOLDER / "sequence.csv").query("model == @model")
    for way, rows in runs.groupby("scenario"):
        work = rows["iters"].iloc[0] / alone["iters_per_s"]
        perf = ByUtilisation(0.1)
        jobs = measured.two_in_a_row(model, work, phases, way, perf, alone["gpu_util"])
        makespan = max(job.left_at for job in jobs)
        assert makespan == pytest.approx(rows["makespan_s"].iloc[0], rel=0.2), way
