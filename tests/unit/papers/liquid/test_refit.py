"""Parameters of Liquid's model are found again from the times that the model gives."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from repro.papers.liquid.refit import refitted, run_seconds
from repro.perf.parameter_server import named

#: Nodes of a parameter server and two workers, as in Fig 16.
PLANS = [(0, 0, 0), (0, 1, 2), (0, 0, 1), (0, 1, 1)]
FREE = [("*", "pair_mb_s", 10), ("resnet50", "exposed", 1.5)]


def test_changed_parameters_are_found_from_run_times():
    stored = named("k80")
    resnet = stored.models["resnet50"]
    models = {**stored.models, "resnet50": replace(resnet, exposed=0.8 * resnet.exposed)}
    changed = replace(stored, pair_mb_s=1.5 * stored.pair_mb_s, models=models)
    runs = pd.DataFrame(
        [(model, plan, 32, 210) for model in ("resnet50", "vgg16") for plan in PLANS],
        columns=["model", "tasks", "batch_size", "iterations"],
    )
    runs["seconds"] = run_seconds(changed, runs)
    found = refitted(stored, FREE, runs)
    assert found.pair_mb_s == pytest.approx(changed.pair_mb_s, rel=1e-4)
    assert found.models["resnet50"].exposed == pytest.approx(0.8 * resnet.exposed, rel=1e-4)
    assert found.models["vgg16"] == stored.models["vgg16"]
