"""The table of ten models: recomputed ratios, published claims, look-ups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from repro.base import paths
from repro.base.errors import ParamError
from repro.placement import tiresias_models
from repro.trace.synth.testbed import MODELS

SENSITIVE = ["vgg19", "vgg16", "vgg11", "alexnet"]


def test_ratios_follow_from_sizes() -> None:
    table = tiresias_models.tiresias_models().reset_index()
    np.testing.assert_allclose(
        table["largest_mb"] / table["size_mb"], table["largest_ratio"], atol=6e-4
    )


def test_the_table_matches_the_testbed_models() -> None:
    assert tiresias_models.tiresias_models().reset_index()["model"].tolist() == list(MODELS)


def test_pause_follows_the_number_of_tensors() -> None:
    table = tiresias_models.tiresias_models().reset_index()
    slope, offset = np.polyfit(table["tensors"], table["pause_s"], 1)
    fit = np.corrcoef(table["tensors"], table["pause_s"])[0, 1] ** 2
    assert table["pause_s"].mean() == pytest.approx(10.37)
    assert (slope, offset) == pytest.approx((0.0329, 1.19), abs=0.005)
    assert fit > 0.98


def test_only_the_skewed_models_lose_from_random_placement() -> None:
    for name in tiresias_models.tiresias_models().reset_index()["model"]:
        row = tiresias_models.tiresias_models().loc[name]
        assert (row["random_speed"] < 1) == (name in SENSITIVE) == (row["largest_ratio"] > 0.5)


def test_large_tensors_are_part_of_the_model() -> None:
    table = tiresias_models.tiresias_models()
    assert (table["large_tensors_mb"].dropna() <= table["size_mb"].drop("googlenet")).all()
    assert table["large_tensors_mb"].isna().sum() == 1


def test_every_row_names_its_source() -> None:
    sources = tiresias_models.tiresias_models()["source"]
    assert sources.str.contains("Table 6; Figure 4; Figure 3").all()


def test_lookups() -> None:
    overhead = tiresias_models.checkpoint_overhead()
    assert overhead.pause["vgg19"] == 2.7 and overhead.resume == 50.0
    relatives = {"resnet18": "resnet50", "shufflenet_v2_x1_0": "googlenet"}
    own = tiresias_models.tiresias_models()["pause_s"].to_dict()
    assert len(own) == 10
    assert overhead.pause == own | {name: own[other] for name, other in relatives.items()}
    assert overhead.default_pause == pytest.approx(10.37)
    assert tiresias_models.spread_slowdown(4).speed("resnet50", 8, machines=4) == 1.08


def test_the_caller_cannot_change_the_table() -> None:
    table = tiresias_models.tiresias_models().reset_index()
    table.loc[:, "pause_s"] = 0.0
    assert tiresias_models.checkpoint_overhead().pause["vgg19"] == 2.7


def test_a_damaged_table_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "params_dir", lambda: tmp_path)
    with pytest.raises(ParamError, match=r"tiresias_models.csv: the table of models is missing"):
        tiresias_models.tiresias_models().reset_index()
    pd.DataFrame({"model": ["a"]}).to_csv(tmp_path / "tiresias_models.csv", index=False)
    with pytest.raises(ParamError, match="no column label, largest_ratio"):
        tiresias_models.tiresias_models().reset_index()
