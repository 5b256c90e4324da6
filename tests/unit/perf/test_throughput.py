"""Throughput tables: look-up, rates relative to the reference type, errors."""

from __future__ import annotations

import pandas as pd
import pytest

from repro import make, simulate
from repro.base.errors import ParamError
from repro.figures import cache
from repro.model.decision import Run
from repro.model.jobs import JobTable
from repro.perf import ThroughputTable
from repro.perf.throughput_files import load_throughputs

TABLE = ThroughputTable(
    {("a3c", 1): {"v100": 8.0, "k80": 2.0}, ("a3c", 2): {"v100": 12.0, "k80": 4.0}}, "v100"
)


def jobs(**columns):
    base = {"job_id": [0], "submit_time": 0.0, "duration": 3600.0, "num_gpus": 1, "model": "a3c"}
    return pd.DataFrame(base | columns)


@pytest.mark.parametrize(("cluster", "time"), [("1xv100", 1), ("1xk80", 4)])
def test_a_job_on_the_slow_type_takes_longer(cluster, time):
    result = simulate(jobs(), cluster, make("gavel-las", throughputs=TABLE), perf=TABLE)
    assert result.jobs["jct"].tolist() == pytest.approx([3600 * time])


def test_gang_size_chooses_the_row():
    result = simulate(jobs(num_gpus=2), "2xk80", make("las-agnostic"), perf=TABLE)
    assert result.jobs["jct"].tolist() == pytest.approx([3600 * 3])


def test_a_policy_that_does_not_choose_gpu_types_gets_the_fastest():
    result = simulate(jobs(), "1xv100,1xk80", "tiresias-l", perf=TABLE)
    assert result.intervals["gpu_type"].iloc[0] == "v100"


@pytest.mark.parametrize(
    ("columns", "cluster", "word"),
    [
        ({"model": "bert"}, "1xv100", "bert"),
        ({"model": "a3d"}, "1xv100", "'a3d' on 1 GPUs; it has a3c"),
        ({"num_gpus": 4}, "4xv100", "on 4 GPUs; it has gangs of 1, 2"),
        (
            {},
            "1xt4",
            "'t4' .* has k80, v100: give a cluster of these types, such as 8x4:k80",
        ),
        ({}, "1x1", "cluster of types"),
    ],
)
def test_what_the_table_lacks_is_named(columns, cluster, word):
    with pytest.raises(ParamError, match=word):
        simulate(jobs(**columns), cluster, make("las-agnostic"), perf=TABLE)


def test_public_table(mirror):
    path = mirror.parent / "gavel_isolated_throughputs.csv"
    if not path.is_file():
        pytest.skip("no gavel_isolated_throughputs.csv beside the public traces")
    table = load_throughputs(path, "v100")
    assert table.steps_per_s("A3C", 1, "k80") == pytest.approx(3.439, abs=1e-3)


PAIRS = ThroughputTable(
    {
        ("a", 1): {"v100": 8.0, "k80": 2.0},
        ("b", 1): {"v100": 4.0, "k80": 0.5},
        ("a", 2): {"v100": 12.0, "v100_unconsolidated": 6.0, "k80": 4.0},
    },
    "v100",
    {("b", "a", 1): {"v100": (3.0, 5.0), "k80": (0.0, 0.0)}},
)


def held(*models, gpus=1):
    ids = list(range(len(models)))
    return JobTable(
        pd.DataFrame({"job_id": ids, "model": models}).assign(
            submit_time=0.0, duration=60.0, num_gpus=gpus
        )
    )


def test_pairs_are_symmetric():
    assert PAIRS.pair_speeds("b", 1, "a", 1, ("k80", "v100")).tolist() == [[0, 3], [0, 5]]
    assert PAIRS.pair_speeds("a", 1, "b", 1, ("k80", "v100")).tolist() == [[0, 5], [0, 3]]


@pytest.mark.parametrize(
    "pair",
    [("a", 1, "a", 1), ("a", 2, "b", 1), ("a", 1, "x", 1), (None, 1, "a", 1)],
)
def test_unknown_pairs_and_unequal_gangs_reach_nothing(pair):
    assert PAIRS.pair_speeds(*pair, ("k80", "v100", "t4", None)).tolist() == [[0] * 4] * 2


def test_shared_speeds_cannot_be_changed_by_a_caller():
    before = PAIRS.pair_speeds("a", 1, "b", 1, ("v100",)).tolist()
    PAIRS.pair_speeds("a", 1, "b", 1, ("v100",))[...] = 77.0
    assert PAIRS.pair_speeds("a", 1, "b", 1, ("v100",)).tolist() == before


def test_rates_of_two_jobs_are_relative_to_each_alone_on_the_reference():
    table = held("a", "b")
    assert PAIRS.rates(table, Run((0, 1), 1, "v100"), ()) == (5 / 8, 3 / 4)
    assert PAIRS.rates(table, Run((1, 0), 1, "v100"), ()) == (3 / 4, 5 / 8)


@pytest.mark.parametrize(
    ("members", "word"), [((0, 1, 2), "groups of 3 jobs"), ((0, 2), "no pair of 'a' on 1 and 'a'")]
)
def test_groups_that_the_table_lacks_are_refused(members, word):
    with pytest.raises(ParamError, match=word):
        PAIRS.rates(held("a", "b", "a"), Run(members, 1, "v100"), ())


def test_a_reference_the_model_cannot_run_on_is_named():
    table = ThroughputTable.of({"a": {"v100": 0.0, "k80": 1.0}}, "v100")
    with pytest.raises(ParamError, match="0 steps/s for 'a' on 1 GPUs of type 'v100'"):
        table.rates(held("a"), Run((0,), 1, "k80"), ())


@pytest.mark.parametrize(
    ("server_gpus", "nodes", "rate"),
    [
        (2, ((0, 2),), 1.0),
        (2, ((0, 1), (1, 1)), 0.5),
        (1, ((0, 1), (1, 1)), 1.0),
        (0, ((0, 1), (1, 1)), 1.0),
        ({"v100": 2, "k80": 1}, ((0, 1), (1, 1)), 0.5),
        ({"v100": 1, "k80": 2}, ((0, 1), (1, 1)), 1.0),
    ],
)
def test_gangs_on_more_servers_than_needed_are_unconsolidated(server_gpus, nodes, rate):
    table = ThroughputTable(PAIRS.rows, "v100", server_gpus=server_gpus)
    assert table.rates(held("a", gpus=2), Run((0,), 2, "v100"), nodes) == (rate,)
    assert table.gpu_types == ("k80", "v100")


def test_the_result_cache_tells_tables_apart():
    other = {("b", "a", 1): {"v100": (3.0, 5.5), "k80": (0.0, 0.0)}}
    PAIRS.pair_speeds("a", 1, "b", 1, ("v100",))
    fresh = ThroughputTable(dict(reversed(PAIRS.rows.items())), "v100", dict(PAIRS.pairs))
    assert cache.key(PAIRS) == cache.key(fresh)
    assert cache.key(PAIRS) != cache.key(ThroughputTable(PAIRS.rows, "v100", other))
    assert cache.key(PAIRS) != cache.key(ThroughputTable(PAIRS.rows, "v100"))


def test_a_table_of_the_policy_has_speeds_by_model_without_one_of_the_run():
    """The job that gains from the fast type has it, though all types run it equally fast."""
    own = ThroughputTable.of(
        {"a3c": {"v100": 8.0, "k80": 2.0}, "lm": {"v100": 1.0, "k80": 2.0}}, "v100"
    )
    trace = jobs(job_id=[0, 1], model=["a3c", "lm"])
    result = simulate(trace, "1xv100,1xk80", make("gavel-las", throughputs=own))
    types = result.intervals.groupby("job_id")["gpu_type"].unique().map(list).to_dict()
    assert types == {0: ["v100"], 1: ["k80"]}


@pytest.mark.parametrize("on_reference", [0.0, 9.0])
def test_a_pair_of_a_gang_that_the_reference_type_cannot_run_is_not_scaled(on_reference):
    rows = {("x", 2): {"v100": 10.0, "k80": 5.0}, ("x", 4): {"v100": on_reference, "k80": 8.0}}
    pairs = {("x", "x", 4): {"k80": (4.0, 3.0)}}
    table = ThroughputTable(rows, "v100", pairs, names={"y": "x"})
    assert table.pair_speeds("y", 4, "y", 4, ["k80"]).tolist() == [[4.0], [3.0]]
    assert table.pair_speeds("x", 4, "y", 4, ["k80"]).tolist() == [[4.0], [3.0]]
    assert table.steps_per_s("y", 4, "k80") == (8.0 if on_reference else 10.0)


def test_the_map_of_names_is_looked_up_once_per_model(monkeypatch):
    """Finding the map looks for its file, which policies that ask for every pair must not do."""
    looked_up = []

    def name_in(table, model):
        looked_up.append(model)
        return {"vgg16": "m"}.get(model, "")

    monkeypatch.setattr("repro.perf.throughput.name_in", name_in)
    table = ThroughputTable({("m", 1): {"v100": 2.0}}, "v100")
    for _ in range(3):
        assert [table.own_name(model) for model in ("m", "vgg16", "other")] == ["m", "m", "other"]
    assert looked_up == ["m", "vgg16", "other"]


@pytest.mark.parametrize("speed", [-1.0, float("nan"), float("inf"), "2", None])
def test_a_throughput_is_a_number(speed):
    with pytest.raises(
        ParamError, match="steps/s for 'a3c' on 1 GPUs of type 'k80'; give a finite"
    ):
        ThroughputTable.of({"a3c": {"v100": 8.0, "k80": speed}}, "v100")
