"""Speed-up curves from files, strict curves, and the table that loops read."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro import make, simulate
from repro.base import paths
from repro.base.errors import ParamError, TraceError
from repro.files import tables
from repro.perf import SpeedUp, load_speedups, pcs_speedups, speedup

CURVES = SpeedUp({"vgg": (1.0, 1.5, 1.8, 2.0), "gan": (1.0, 0.9)}, strict=True)
#: Model, longest curve and speed-up there, as the paper's reproduction notes have them.
MODELS = {
    "VggnetModel256": (8, 6.61),
    "GooglenetModel128": (20, 8.45),
    "Inception4Model256": (52, 31.9),
    "Resnet50Model128": (28, 10.7),
    "DcganModel256": (20, 6.34),
    "VideopredictionModel64": (28, 5.14),
    "ChatbotModel256": (4, 1.73),
    "DeepspeechModel64": (20, 2.01),
    "TransformerModel256": (44, 14.2),
}


@pytest.fixture
def read(tmp_path):
    def _read(text):
        path = tmp_path / "curves.csv"
        path.write_text(text)
        return load_speedups(path)

    return _read


def test_the_nine_models_of_pcs():
    curves = pcs_speedups().curves
    assert list(curves) == list(MODELS)
    for model, (gpus, most) in MODELS.items():
        assert len(curves[model]) == gpus
        assert curves[model][0] == 1
        assert curves[model][-1] == pytest.approx(most, rel=5e-3)
    # efficiency goes up again on the way
    assert curves["VggnetModel256"][2] / 3 == pytest.approx(0.797, abs=5e-4)
    assert curves["VggnetModel256"][3] / 4 == pytest.approx(0.869, abs=5e-4)


def test_the_table_is_what_was_taken_from_the_artifact(mirror):
    extracted = mirror.parent / "pcs_speedups.csv"
    if not extracted.is_file():
        pytest.skip("no pcs_speedups.csv beside the mirror of the public traces")
    # a file says nothing of jobs without a curve, nor of names in other tables
    assert replace(load_speedups(extracted), rounded=True) == replace(pcs_speedups(), names={})


def test_a_broken_table_is_named(tmp_path, monkeypatch):
    text = (paths.params_dir() / "pcs_speedups.csv").read_text()
    monkeypatch.setattr(tables.paths, "params_dir", lambda: tmp_path)
    pcs_speedups.cache_clear()
    for cell in ("0", "x", "inf"):
        (tmp_path / "pcs_speedups.csv").write_text(text.replace("346970", cell))
        tables._read_table.cache_clear()
        with pytest.raises(ParamError, match=r"pcs_speedups.csv:4: us_per_iteration is '.*; give "):
            pcs_speedups()
    tables._read_table.cache_clear()


@pytest.mark.parametrize(
    "text",
    [
        "model,gpus,us_per_iteration\na,1,12\nb,1,7\na,3,4\na,2,8\n",
        "model,gpus,speedup,note\nb,1,2,\na,2,1.5,x\na,1,1,\na,3,3,\n",
    ],
)
def test_rows_in_any_order(read, text):
    curves = read(text)
    assert dict(curves.curves) == {"a": (1, 1.5, 3), "b": (1,)}
    assert curves.strict


@pytest.mark.parametrize(
    ("rows", "start"),
    [
        ("gpus,us_per_iteration\n1,3\n", "1:model: missing column"),
        ("model,gpus,s\na,1,3\n", "1: give one column us_per_iteration or speedup, not both"),
        ("model,gpus,us_per_iteration,speedup\na,1,3,1\n", "1: give one column us_per_iteration"),
        ("model,gpus,speedup\n,1,1\n", "2:model: missing value (empty); the name of a model"),
        (
            "model,gpus,speedup\na,1,1\na,3,2\n",
            "3:gpus: a smaller number of GPUs is missing (3); each model has a row",
        ),
        (
            "model,gpus,speedup\na,2,1\n",
            "2:gpus: a smaller number of GPUs is missing (2); each model has a row for 1,",
        ),
        ("model,gpus,speedup\na,1,1\na,0,2\n", "3:gpus: too small (0); "),
        ("model,gpus,speedup\na,1,1\na,1.5,2\n", "3:gpus: not a whole number (1.5); "),
        ("model,gpus,speedup\na,1,1\na,1e9,2\n", "3:gpus: too large (1e9); "),
        ("model,gpus,speedup\na,1,1\nb,1,1\na,1,2\n", "4:gpus: given twice (1); "),
        ("model,gpus,speedup\na,1,1\na,2,0\n", "3:speedup: not positive (0); a speed-up is above "),
        ("model,gpus,us_per_iteration\na,1,-1\n", "2:us_per_iteration: not positive (-1); a time "),
        ("model,gpus,us_per_iteration\na,1,inf\n", "2:us_per_iteration: not finite (inf); "),
        ("model,gpus,us_per_iteration\na,1,x\n", "2:us_per_iteration: not a number (x); "),
        ("model,gpus,us_per_iteration\na,1,\n", "2:us_per_iteration: missing value (empty); "),
        (
            "model,gpus,us_per_iteration\na,1,1e300\na,2,1e-300\n",
            "3:us_per_iteration: no finite speed-up over 1 GPU (1e-300); ",
        ),
        (
            "model,gpus,speedup\na,1,1e300\na,2,1e-300\n",
            "3:speedup: no finite speed-up over 1 GPU (1e-300); ",
        ),
    ],
)
def test_what_is_refused(read, rows, start):
    with pytest.raises(TraceError) as refused:
        read(rows)
    message = str(refused.value)
    assert "\n" not in message
    assert message.partition("curves.csv:")[2].startswith(start)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(TraceError, match=r"none.csv: no such file"):
        load_speedups(tmp_path / "none.csv")


def test_a_strict_model_without_a_curve_is_refused():
    columns = {"job_id": ["j7"], "submit_time": 0.0, "duration": 1.0, "num_gpus": 1}
    trace = pd.DataFrame({**columns, "model": "lstm"})
    for curves in (CURVES, SpeedUp(strict=True)):
        with pytest.raises(
            ParamError, match=r"job 'j7' is of model 'lstm', .*\(known: (vgg, gan|none)"
        ):
            simulate(trace, "1x4", make("fifo-elastic"), perf=curves)
        with pytest.raises(ParamError, match="job 'j7' is of model 'lstm'"):
            curves.table(["lstm"], [1], ["j7"])
    for model in (None, "", float("nan")):
        trace["model"] = [model]
        result = simulate(trace, "1x4", make("fifo-elastic"), perf=CURVES)
        assert result.jobs["jct"].tolist() == [1.0]


def test_the_table_of_a_trace():
    speeds, row = CURVES.table(
        ["gan", None, "vgg", "gan", float("nan"), ""], [2, 5, 1, 1, 1, 1], "abcdef"
    )
    assert row.tolist() == [1, 0, 2, 1, 0, 0]
    assert speeds.tolist() == [
        [0, 1, 2, 3, 4, 5, 6],
        [0, 1, 0.9, 0.9, 0.9, 0.9, 0.9],
        [0, 1, 1.5, 1.8, 2, 2, 2],
    ]
    # as wide as this trace needs, not as the curve
    assert CURVES.table(["vgg"], [1], "a")[0].tolist() == [[0, 1, 2], [0, 1, 1.5]]
    assert CURVES.table([], [], [])[1].tolist() == []
    with pytest.raises(ParamError, match=r"job 'a' asks for 3 GPUs but .* of 'gan' ends at 2"):
        CURVES.table(["gan"], [3], "a")


@given(st.lists(st.sampled_from([None, *MODELS]), min_size=1), st.data())
def test_the_table_says_what_speed_says(models, data):
    curves = pcs_speedups()
    longest = [52 if model is None else MODELS[model][0] for model in models]
    gpus = [data.draw(st.integers(1, most)) for most in longest]
    speeds, row = curves.table(models, gpus, range(len(models)))
    assert speeds.shape[1] == max(gpus) + 2
    for model, asked, place in zip(models, gpus, row, strict=True):
        assert speeds[place, asked] == curves.speed(model, asked)
        assert speeds[place, asked + 1] == curves.speed(model, asked + 1)


@pytest.mark.parametrize("demands", [(1, 64), (64, 1)])
def test_the_order_of_jobs_changes_no_curve_of_the_map_of_names(demands):
    """Such a curve goes on beyond its end, for the widest job of all."""
    curves = pcs_speedups()
    assert "vgg16" not in curves.curves and curves.covers("vgg16")
    speeds, row = curves.table(["vgg16", "vgg16"], demands, "ab")
    assert row[0] == row[1]
    assert [speeds[row[0], gpus] for gpus in range(1, 66)] == [
        curves.speed("vgg16", gpus) for gpus in range(1, 66)
    ]


def test_lists_have_no_gaps_by_their_form():
    rows = list(csv.DictReader(speedup._PUBLISHED.path.read_text().splitlines()[1:]))
    assert sum(len(row["us_per_iteration"].split()) for row in rows) == 224
    assert np.isfinite([len(curve) for curve in pcs_speedups().curves.values()]).all()
