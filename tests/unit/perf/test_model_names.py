"""One map of model names: every name exists in its table, and every table takes the names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import Cluster, make, simulate
from repro.base.errors import InputWarning, ParamError
from repro.files.tables import ModelTable
from repro.perf import ThroughputTable, load_speedups, pcs_speedups
from repro.perf.iteration_times import iteration_s
from repro.perf.model_names import TABLES, mapped_models
from repro.perf.muri_models import muri_profiles, start_overhead
from repro.perf.parameter_server import named
from repro.perf.synthetic_throughputs import gavel_like
from repro.placement.tiresias_models import by_name, checkpoint_overhead, spread_slowdown

GAVEL = gavel_like()
NAMES = {
    "muri": set(muri_profiles()["model"]),
    "gavel": {model for model, _ in GAVEL.rows},
    "pcs": set(pcs_speedups().curves),
    "liquid": set(named("t4").models),
    "tiresias": set(ModelTable("tiresias_models.csv", ("model",)).frame["model"]),
}
MAP = mapped_models()


@pytest.mark.parametrize("table", TABLES)
def test_the_map_names_models_of_the_tables(table):
    assert {model.names[table] for model in MAP.values() if table in model.names} <= NAMES[table]


@pytest.mark.parametrize("table", ["muri", "pcs", "liquid", "tiresias"])
def test_each_model_of_a_table_has_one_name_of_its_own(table):
    own = [model.names[table] for model in MAP.values() if model.is_itself_in(table)]
    assert sorted(own) == sorted(NAMES[table])


def test_gavels_models_have_a_name_each_with_one_of_their_batch_sizes():
    own = [
        model.names["gavel"].split(" (")[0] for model in MAP.values() if model.is_itself_in("gavel")
    ]
    families = {name.split(" (")[0] for name in NAMES["gavel"]}
    assert sorted(own) == sorted(families)


def test_names_that_a_table_has_stay_the_names_of_its_own_models():
    """Muri's, Liquid's and Tiresias' names are names of the map, each with its own row."""
    for table in ("muri", "liquid", "tiresias"):
        for name in NAMES[table]:
            assert MAP[name].names[table] == name
            assert MAP[name].is_itself_in(table)


def test_batch_sizes_are_those_of_muri():
    sizes = muri_profiles().set_index("model")["batch_size"].to_dict()
    assert {name: MAP[name].batch_size for name in sizes} == sizes


def test_iteration_times_by_hand():
    """Own table first: Muri, Tiresias, PCS; a GPU count between rows has the nearest row's time."""
    assert iteration_s("vgg16", 3) == iteration_s("vgg16", 4) == 0.201
    assert iteration_s("gpt2", 64) == 0.514
    assert iteration_s("resnet50", 2) == 0.300
    assert iteration_s("dcgan", 2) == pytest.approx(0.155580)
    assert iteration_s("dcgan", 40) == pytest.approx(0.044481 / 2)
    assert iteration_s("lm", 1) is None


@pytest.mark.parametrize("gpus", [1, 3, 8, 16, 32, 64])
@pytest.mark.parametrize("model", [name for name, row in MAP.items() if "gavel" in row.names])
def test_the_throughput_table_takes_every_gang_of_a_model_of_the_map(model, gpus):
    """On the reference type an iteration takes its time; other types keep the table's ratios."""
    on_types = {name: GAVEL.steps_per_s(model, gpus, name) for name in ("v100", "p100")}
    own = MAP[model].names["gavel"]
    width = max(width for name, width in GAVEL.rows if name == own and width <= gpus)
    row = GAVEL.rows[own, width]
    assert on_types["p100"] / on_types["v100"] == pytest.approx(row["p100"] / row["v100"])
    seconds = iteration_s(model, gpus)
    expected = row["v100"] * gpus / width if seconds is None else 1 / seconds
    assert on_types["v100"] == pytest.approx(expected)


def test_models_of_the_map_share_gpus_at_the_scale_of_their_throughputs():
    relative = "ResNet-50 (batch size 16)"
    (own,), (partner,) = GAVEL.pair_speeds(relative, 1, "A3C", 1, ["v100"])
    (mapped,), (mapped_partner,) = GAVEL.pair_speeds("vgg16", 1, "A3C", 1, ["v100"])
    alone = GAVEL.steps_per_s(relative, 1, "v100")
    assert mapped * 0.107 == pytest.approx(own / alone)
    assert mapped_partner == partner
    assert not GAVEL.pair_speeds("vgg16", 3, "vgg16", 3, ["v100"]).any()


def test_a_table_with_models_of_its_own_is_not_extended():
    table = ThroughputTable.of({"vgg16": {"v100": 2.0}, "A3C": {"v100": 1.0}}, "v100")
    assert table.steps_per_s("vgg16", 1, "v100") == 2.0
    with pytest.raises(ParamError, match="gangs of 1 GPU:"):
        table.steps_per_s("vgg16", 2, "v100")
    with pytest.raises(ParamError, match="no model 'bert'"):
        table.steps_per_s("bert", 1, "v100")


def test_speed_up_curves_go_on_for_names_of_the_map_only():
    """VGGNet's curve ends at 8 GPUs."""
    curves = pcs_speedups()
    end = curves.speed("VggnetModel256", 8)
    assert curves.speed("vgg16", 8) == curves.speed("VggnetModel256", 64) == end
    assert curves.speed("vgg16", 16) == 2 * end
    assert pcs_speedups(0.0).speed("vgg16", 16) == end
    rows, row_of = curves.table(["vgg16", "bert"], [16, 2], [0, 1])
    assert rows[row_of[0], 16] == 2 * end
    with pytest.raises(ParamError, match="ends at 8"):
        curves.table(["VggnetModel256"], [16], [0])
    assert load_speedups("pcs-speedups") is curves


def test_liquid_and_tiresias_take_names_of_the_map():
    times = named("t4", relatives=True)
    plan = (0, 0, 1)
    assert times.run_s("vgg19", plan, 16, 100) == times.run_s("vgg16", plan, 16, 100)
    assert named("measured", relatives=True).run_s("vgg19", (0, 0, 0)) == 510.0
    with pytest.raises(ParamError, match="no iteration model for 'bert'"):
        times.run_s("bert", plan, 4, 100)
    assert by_name("largest_ratio")["resnet18"] == by_name("largest_ratio")["resnet50"] == 0.092
    pauses = checkpoint_overhead().pause
    assert pauses["shufflenet_v2_x1_0"] == pauses["googlenet"] == 5.7
    assert spread_slowdown(4).speed("resnet18", 8, 8) == 1.08
    assert start_overhead("vgg11", 2) == start_overhead("vgg16", 2)


def test_liquids_own_lists_and_decisions_have_no_relatives():
    with pytest.raises(ParamError, match="no iteration model for 'vgg19'"):
        named("t4").run_s("vgg19", (0, 0, 1), 16, 100)


def test_a_result_names_the_models_that_have_the_values_of_a_relative():
    trace = pd.DataFrame(
        {
            "job_id": [0, 1],
            "submit_time": 0.0,
            "duration": 60.0,
            "num_gpus": 1,
            "model": ["vgg16", "resnet18"],
        }
    )
    with pytest.warns(InputWarning, match="of a relative"):
        result = simulate(trace, "1xv100,1xk80", "gavel-las", perf=GAVEL)
    assert result.summary()["notes"] == [
        "throughputs by GPU type of a relative (params/model_names.csv): vgg16 as ResNet-50 "
        "(batch size 16)"
    ]


def test_plans_slow_down_a_job_with_an_iteration_time_relative_to_one_node():
    """A duration then is the run time on one node, whatever the table says of its seconds."""
    trace = pd.DataFrame(
        {
            "job_id": [0],
            "submit_time": 0.0,
            "duration": 1000.0,
            "num_gpus": 3,
            "model": ["vgg16"],
            "batch_size": 16,
            "iterations": 500.0,
        }
    )
    times = named("t4")
    one_node = times.run_s("vgg16", (0, 0, 0), 16, 500)
    spread = times.run_s("vgg16", (0, 1, 2), 16, 500)
    policy = make("liquid-even", times="t4")
    absolute = simulate(trace, Cluster.parse("3x4"), policy).jobs["jct"][0]
    relative = simulate(trace.assign(iteration_time=2.0), "3x4", policy).jobs["jct"][0]
    assert absolute == pytest.approx(spread)
    assert relative == pytest.approx(1000 * spread / one_node)
    packed = simulate(trace.assign(iteration_time=2.0), "3x4", make("liquid-pack", times="t4"))
    assert packed.jobs["jct"].tolist() == [1000.0]


def test_values_of_the_map_are_complete():
    assert all(np.isfinite(row.batch_size) and row.batch_size > 0 for row in MAP.values())
