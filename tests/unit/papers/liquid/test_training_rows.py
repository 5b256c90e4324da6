"""Training rows: the marginal-utility rule, synthetic profiles, measured profiles and bad files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro.base import paths
from repro.base.errors import ParamError, TraceError
from repro.papers.liquid import training_rows
from repro.papers.liquid.training_rows import (
    BANDWIDTHS_MB_S,
    ENOUGH,
    FEATURES,
    LABELS,
    MEASURED_FEATURES,
    WORKERS,
    image_s,
    marginal_utility,
    measured,
    step_s,
    synthetic,
)
from repro.perf.parameter_server import named

PROFILES = paths.traces_dir() / "measured" / "profiles.csv"


def test_enough_workers_of_the_three_models():
    found = {
        name: WORKERS[marginal_utility(image_s(named("k80"), name, 32))]
        for name in ("vgg16", "resnet50", "inception3")
    }
    assert found == {"vgg16": 5, "resnet50": 7, "inception3": 8}


def test_enough_is_the_first_that_no_later_one_beats_by_eps():
    assert marginal_utility([10.0, 5.0, 4.9, 4.8], 0.05) == 1
    assert marginal_utility([10.0, 5.0, 4.9, 4.8], 0.01) == 3
    assert marginal_utility([1.0, 1.2, 1.5]) == 0
    for times, eps in (([], 0.05), ([1.0, 0.0], 0.05), ([1.0, np.nan], 0.05), ([1.0], 1.0)):
        with pytest.raises(ParamError):
            marginal_utility(times, eps)


def test_bandwidth_times_fall_and_end_with_computation():
    times = step_s(named("k80"), "vgg16", 32)
    assert len(times) == len(BANDWIDTHS_MB_S) and (np.diff(times) < 0).all()
    assert times[0] == pytest.approx(32 / 35.4 + 2 * 553 / 25)


def test_synthetic_rows_repeat_and_keep_their_ranges():
    table = synthetic(np.random.default_rng(1), 300)
    pd.testing.assert_frame_equal(table, synthetic(np.random.default_rng(1), 300))
    assert [name for name in (*FEATURES, *LABELS, *ENOUGH) if name not in table] == []
    assert set(table["batch_size"]) == set(range(4, 33, 4))
    assert set(table["num_batches"]) <= set(range(200, 1001, 50))
    single = table["num_ps"] == 0
    assert set(table[single]["gpus_per_task"]) == {1, 2} and set(table[single]["role"]) == {0}
    assert set(table[~single]["num_workers"]) == set(range(1, 9))
    assert (table[single]["bandwidth_kb_s"] == 0).all()
    assert table[["gpu_util_pct", "gpu_util_std_pct"]].max().max() <= 100
    assert (table[list(LABELS)] == np.floor(table[list(LABELS)])).all(axis=None)


def test_synthetic_labels_without_noise():
    table = synthetic(np.random.default_rng(2), 200, ["vgg16"], noise=0, outliers=0)
    server = table[table["role"] == 1]
    worker = table[table["role"] == 0]
    assert set(server["gpu_mem_mb"]) == {600 + 2048, 600 + 1024}
    assert set(worker["gpu_mem_mb"]) == {600 + 4096 + size for size in (256, 512, 1024, 2048)}
    one = worker[(worker["num_ps"] == 1) & (worker["num_workers"] == 2)].iloc[0]
    period = one["batch_size"] / 35.4 + 2 * 2 * 553 / 798
    assert one["bandwidth_kb_s"] == np.floor(1000 * 553 / period)
    # what its server receives from two workers
    twin = server.loc[one.name - 1]
    assert twin["bandwidth_kb_s"] == pytest.approx(2 * one["bandwidth_kb_s"], abs=2)


def test_unknown_models_and_times_are_refused():
    with pytest.raises(ParamError, match=r"no profiles of 'bert' \(accepted: vgg16"):
        synthetic(np.random.default_rng(0), 5, ["bert"])
    with pytest.raises(ParamError, match="'measured', whose run times do not depend on batch"):
        synthetic(np.random.default_rng(0), 5, gpu="measured")


def test_measured_rows_leave_out_and_count_errors():
    table = measured(PROFILES)
    raw = pd.read_csv(PROFILES)
    ran = raw[raw["status"] == "ok"].reset_index(drop=True)
    assert (len(table), table.attrs["left_out"]) == (399, 14)
    assert [name for name in MEASURED_FEATURES if name not in table] == []
    pd.testing.assert_series_equal(table["gpu_mem_mb"], ran["gpu_mem_nvml_mb"], check_names=False)
    assert table["bandwidth_kb_s"].max() == 1000 * ran["ps_mb_s_each_way"].max()


@pytest.fixture
def spoilt(tmp_path):
    def _spoilt(line, column, value):
        lines = PROFILES.read_text().splitlines()[:6]
        header = lines[0].split(",")
        fields = lines[line - 1].split(",")
        fields[header.index(column)] = value
        lines[line - 1] = ",".join(fields)
        path = tmp_path / "profiles.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    return _spoilt


@pytest.mark.parametrize(
    ("line", "column", "value", "rule"),
    [
        (3, "iter_s", "fast", "not a number"),
        (2, "gpu_mem_nvml_mb", "", "missing value"),
        (4, "batch_size", "-4", "negative"),
        (5, "status", "perhaps", "unknown status"),
        (6, "model", "", "missing value"),
    ],
)
def test_a_bad_row_names_file_line_and_column(spoilt, line, column, value, rule):
    path = spoilt(line, column, value)
    with pytest.raises(TraceError, match=rf"profiles.csv:{line}:{column}: {rule}") as caught:
        measured(path)
    assert "\n" not in str(caught.value)


def test_a_row_that_failed_may_have_gaps(spoilt):
    path = spoilt(3, "iter_s", "")
    text = path.read_text().splitlines()
    text[2] = text[2].replace(",ok,", ",error,")
    path.write_text("\n".join(text) + "\n")
    assert (len(measured(path)), measured(path).attrs["left_out"]) == (4, 1)


def test_a_measured_file_without_a_column_or_without_rows_that_ran(tmp_path):
    path = tmp_path / "profiles.csv"
    path.write_text("model,batch_size\nvgg16,4\n")
    with pytest.raises(TraceError, match=r"profiles.csv:1:precision,.*: missing column"):
        measured(path)
    lines = PROFILES.read_text().splitlines()[:3]
    path.write_text("\n".join(line.replace(",ok,", ",error,") for line in lines) + "\n")
    with pytest.raises(TraceError, match=r"profiles.csv: none of its 2 rows ran"):
        measured(path)


def test_the_table_of_synthetic_profiles_has_the_models_of_the_iteration_model():
    assert list(training_rows._GENERATED.column("noise")) == list(named("k80").models)
