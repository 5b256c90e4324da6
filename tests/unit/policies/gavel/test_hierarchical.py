"""Hierarchical fairness: published values, FIFO inside entities, complete runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro import make, simulate
from repro.base.errors import InputWarning, ParamError, TraceError
from repro.solve.entities import Hierarchy, hierarchical_shares
from repro.solve.max_min import normalised

#: Steps/s on K80, P100, V100 of the 18 jobs of Gavel's Figure 11, to four digits.
SPEEDS = np.array(
    [
        [0.9816, 3.074, 5.446],
        [3.439, 5.681, 7.176],
        [0.4583, 1.678, 1.595],
        [7.176, 35.83, 29.95],
        [0.3472, 1.584, 2.497],
        [17.14, 58.17, 64.74],
        [23.79, 77.08, 81.65],
        [0.9816, 3.074, 5.446],
        [0.5048, 2.403, 4.426],
        [5.467, 9.537, 11.06],
        [23.79, 77.08, 81.65],
        [1.752, 5.092, 8.618],
        [6.054, 21.16, 28.24],
        [1.237, 4.888, 7.787],
        [17.14, 58.17, 64.74],
        [0.8856, 7.723, 10.3],
        [5.467, 9.537, 11.06],
        [0.8856, 7.723, 10.3],
    ]
)
ENTITY_WEIGHTS = {0: 1.0, 1: 2.0, 2: 3.0}


def throughput(count, inner="fairness", water_filling="exact", speeds=SPEEDS):
    """Normalised effective throughput of the first ``count`` jobs on 3 + 3 + 3 GPUs."""
    weights = [(i % 2) + 1 if inner == "fairness" else 1 for i in range(count)]
    entities = [i // 6 for i in range(count)]
    speeds = speeds[:count]
    problem = normalised(speeds, np.ones(count), np.ones(count), np.full(3, 3.0), str)
    hierarchy = Hierarchy(ENTITY_WEIGHTS, inner, water_filling)
    shares = hierarchical_shares(problem, weights, entities, hierarchy)
    return (speeds * shares).sum(axis=1) / speeds.mean(axis=1)


@pytest.mark.parametrize("water_filling", ["exact", "published"])
def test_eighteen_jobs_as_published(water_filling):
    aware = throughput(18, water_filling=water_filling)
    np.testing.assert_allclose(
        aware, [0.194, 0.387] * 3 + [0.387, 0.775] * 3 + [0.581, 1.162] * 3, atol=1e-3
    )
    agnostic = throughput(18, water_filling=water_filling, speeds=np.ones((18, 3)))
    np.testing.assert_allclose(agnostic, [1 / 6, 1 / 3] * 3 + [1 / 3, 2 / 3] * 3 + [0.5, 1] * 3)


def test_water_filling_raises_every_job_that_can_rise():
    np.testing.assert_allclose(throughput(2), [1.720, 1.321], atol=1e-3)
    assert throughput(2, water_filling="published")[0] < 1.2
    np.testing.assert_allclose(throughput(1), [5.446 / SPEEDS[0].mean()], rtol=1e-6)


def test_fifo_serves_the_earliest_jobs_of_every_entity():
    # the entities have 1, 2 and 3 sixths of nine GPUs, each job at most one GPU
    throughputs = throughput(18, "fifo", speeds=np.ones((18, 3)))
    expected = [1, 0.5, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0.5, 0]
    np.testing.assert_allclose(throughputs, expected, atol=1e-5)


@pytest.mark.parametrize(("start", "total"), [(25, 8.61), (53, 9.98), (69, 9.16)])
def test_fifo_totals_as_published(start, total):
    throughputs = throughput((start + 3) // 4, "fifo", "published")
    assert throughputs.sum() == pytest.approx(total, abs=0.01)


def test_weights_of_entities_are_checked():
    with pytest.raises(ParamError, match="entity 'x' has weight 0; give a number above 0"):
        Hierarchy({"x": 0}).members(["x"])


@pytest.mark.parametrize("inner", ["fairness", "fifo"])
def test_whole_run(inner):
    count = 12
    trace = pd.DataFrame(
        {
            "job_id": np.arange(count),
            "submit_time": 0.0,
            "duration": 3600.0,
            "num_gpus": 1,
            "entity": ["red"] * 6 + ["blue"] * 6,
        }
    )
    policy = make("gavel-hierarchical", inner=inner, entity_weights={"red": 2.0})
    result = simulate(trace, "3xv100", policy)
    jct = result.jobs["jct"].to_numpy()
    assert result.summary()["n_finished"] == count
    assert jct[:6].max() < jct[6:].max()


def of_entities(entities, column="entity"):
    count = len(entities)
    columns = {"job_id": range(count), "submit_time": 0.0, "duration": 3600.0, "num_gpus": 1}
    return pd.DataFrame({**columns, column: entities})


@pytest.mark.parametrize("column", ["entity", "vc"])
@pytest.mark.parametrize("entities", [[0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0], ["0", "0", "1", "1"]])
@pytest.mark.parametrize("entity", [1, 1.0, "1"])
def test_numbers_name_entities(entities, entity, column):
    policy = make("gavel-hierarchical", entity_weights={entity: 9.0})
    jct = simulate(of_entities(entities, column), "1xv100", policy).jobs["jct"].to_numpy()
    assert jct[2:].max() < jct[:2].max()
    assert jct[2:].mean() < 0.8 * jct[:2].mean()


def test_a_column_of_entities_that_the_trace_lacks_is_named():
    policy = make("gavel-hierarchical", column="entity")
    with pytest.raises(TraceError, match="no column entity, which policy 'gavel-hierarchical'"):
        simulate(of_entities([0, 1], "vc"), "1xv100", policy)


@pytest.mark.parametrize("column", ["entity", "vc"])
def test_a_weight_of_no_entity_is_named(column):
    policy = make("gavel-hierarchical", entity_weights={"bleu": 9.0})
    message = (
        rf"^entity_weights: column {column} of the trace has no entity 'bleu'; did you mean "
        r"'blue'\? \(there are: blue, red\)$"
    )
    with pytest.warns(InputWarning, match=message):
        result = simulate(of_entities(["red", "blue"], column), "1xv100", policy)
    assert result.summary()["n_finished"] == 2


def test_weights_of_a_trace_without_entities_have_no_effect():
    policy = make("gavel-hierarchical", entity_weights={"red": 9.0})
    jobs = of_entities(["red", "blue"]).drop(columns="entity")
    with pytest.warns(InputWarning, match="without entities all jobs belong to one entity"):
        assert simulate(jobs, "1xv100", policy).summary()["n_finished"] == 2
