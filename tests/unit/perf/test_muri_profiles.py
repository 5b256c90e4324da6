"""The table of Muri's eight models: against the public traces, look-ups, a broken table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from repro.base import paths
from repro.base.errors import ParamError
from repro.perf import muri_models

STAGES = ["stage_data", "stage_gpu", "stage_network"]


@pytest.mark.parametrize("name", ["trace1", "trace4", "cluster"])
def test_the_table_is_what_the_public_traces_say(mirror: Path, name: str) -> None:
    folder = mirror / "Rivendile+Muri"
    file = folder / f"simulator/trace-data/{name}.csv"
    if name == "cluster":
        file = folder / "cluster_exp/trace-data/cluster_trace.csv"
    trace = pd.read_csv(file)
    table = muri_models.muri_profiles().set_index(["model", "num_gpus"])
    ours = table.loc[list(zip(trace["model_name"], trace["num_gpu"], strict=True))]
    odd = (trace["resource_time_0"] == 103).to_numpy()
    assert odd.sum() == (5 if name == "cluster" else 0)
    for position, column in enumerate(STAGES):
        theirs = trace[f"resource_time_{position}"].to_numpy(float) / 1000
        np.testing.assert_array_equal(ours[column].to_numpy()[~odd], theirs[~odd])
        np.testing.assert_allclose(ours[column].to_numpy()[odd] / 7, theirs[odd], rtol=0.08)
    np.testing.assert_array_equal(ours["iteration_time"], trace["iteration_time"] / 1000)
    np.testing.assert_array_equal(ours["batch_size"], trace["batch_size"])


def test_the_longest_stage_agrees_with_the_label() -> None:
    table = muri_models.muri_profiles()
    at_16 = table[table["num_gpus"] == 16]
    label = at_16["bottleneck"].replace({"storage": "data", "cpu": "data"})
    longest = map(str, at_16[STAGES].idxmax(axis=1))
    assert list(longest) == [f"stage_{name}" for name in label]


def test_forty_eight_rows_in_seconds() -> None:
    table = muri_models.muri_profiles()
    assert len(table) == 48 == len(table.groupby(["model", "num_gpus"]))
    assert table.loc[table["num_gpus"] == 1, "stage_network"].eq(0).all()
    assert table["iteration_time"].between(0.1, 1.1).all()


def test_the_table_cannot_be_changed_by_its_readers() -> None:
    table = muri_models.muri_profiles()
    table.loc[0, "iteration_time"] = 99.0
    assert muri_models.muri_profiles().loc[0, "iteration_time"] == 0.107


@pytest.mark.parametrize(
    ("model", "gpus", "seconds"),
    [
        ("a2c", 1, 38),
        ("a2c", 8, 46),
        ("A2C", 2, 39),
        ("dqn", 12, 8),
        ("dqn", 11, 6),
        ("shufflenet_v2_x1_0", 24, 8),
        ("shufflenet_v2_x1_0", 23, 7),
        ("vgg19", 512, 10),
        ("resnet18", 3, 5),
        ("resnet18", 6, 7),
    ],
)
def test_overhead_of_the_nearest_number_of_gpus(model: str, gpus: int, seconds: float) -> None:
    assert muri_models.start_overhead(model, gpus) == seconds


def test_unknown_model_names_the_nearest() -> None:
    with pytest.raises(ParamError, match=r"unknown model 'vgg15'; did you mean 'vgg1.*known: vgg"):
        muri_models.start_overhead("vgg15", 1)
    with pytest.raises(ParamError, match="give 1 or more"):
        muri_models.start_overhead("dqn", 0)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("107 191", "107", r"muri_profiles.csv:3: iteration_ms is '107 201.*one time of 0 or more"),
        ("446 441", "446 -441", r"csv:10: data_ms"),
        ("0.5 0.5 0.5", "0.5 x 0.5", r"csv:7: data_ms"),
        ("overhead_s", "overhead", "no column overhead_s"),
    ],
)
def test_a_damaged_table_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, old: str, new: str, says: str
) -> None:
    text = (paths.params_dir() / "muri_profiles.csv").read_text(encoding="utf-8")
    head, columns, rest = text.split("\n", 2)
    body = f"{columns}\n{rest}".replace(old, new, 1)
    (tmp_path / "muri_profiles.csv").write_text(f"{head}\n{body}", encoding="utf-8")
    monkeypatch.setattr(paths, "params_dir", lambda: tmp_path)
    with pytest.raises(ParamError, match=says):
        muri_models._read.__wrapped__()


def test_a_missing_table_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paths, "params_dir", lambda: tmp_path)
    with pytest.raises(ParamError, match="missing"):
        muri_models._read.__wrapped__()
