"""Throughput estimator: full profiling is exact, more profiling is better, samples are seeded."""

from __future__ import annotations

import random

import numpy as np
import pytest

from repro.base.errors import ParamError
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_files import load_throughputs
from repro.policies.gavel import estimator as module
from repro.policies.gavel.estimator import PairEstimator, complete, retained_fractions

TYPES = ("k80", "p100", "v100")


def measured(models=20, seed=5):
    """Table of models with three latent demands; the overlap of demands slows a pair down."""
    rng = np.random.default_rng(seed)
    demand = rng.dirichlet([0.5] * 3, size=models)
    names = [f"m{row}" for row in range(models)]
    alone = rng.uniform(2, 50, size=(models, len(TYPES)))
    strength = rng.uniform(0.5, 1.5, size=(len(TYPES), 3))
    rows = {(name, 1): dict(zip(TYPES, alone[i], strict=True)) for i, name in enumerate(names)}
    pairs = {}
    for i, one in enumerate(names):
        for k in range(i, models):
            retained = 1 / (1 + (strength * demand[i] * demand[k]).sum(axis=1) * (1 + demand[i, 0]))
            partner_retained = 1 / (
                1 + (strength * demand[i] * demand[k]).sum(axis=1) * (1 + demand[k, 0])
            )
            pairs[one, names[k], 1] = {
                gpu_type: (alone[i, j] * retained[j], alone[k, j] * partner_retained[j])
                for j, gpu_type in enumerate(TYPES)
            }
    return ThroughputTable(rows, "v100", pairs)


TABLE = measured()
MODELS = [model for model, _ in TABLE.rows]


def estimator(**settings):
    return PairEstimator(TABLE, TYPES, **{"references": len(MODELS), **settings})


def error(**settings):
    """Mean error of the estimated fraction of its throughput that a model retains in a pair."""
    estimates = estimator(**settings)
    true = retained_fractions(TABLE, MODELS, TYPES)
    nearest = [MODELS.index(estimates.match(model, model)[1]) for model in MODELS]
    return np.abs(true[nearest][:, :, nearest] - true).mean()


def test_full_profiling_reproduces_the_table():
    exact = estimator(fraction=1.0)
    matches = {model: exact.match(model, model) for model in MODELS}
    for (one, other, _), pair in TABLE.pairs.items():
        speeds = exact.pair_speeds(matches[one], matches[other])
        assert speeds == pytest.approx(np.array([pair[gpu_type] for gpu_type in TYPES]).T)


def test_the_error_falls_with_the_profiled_fraction():
    errors = [
        np.mean([error(fraction=fraction, references=14, seed=seed) for seed in range(3)])
        for fraction in (0.0, 0.1, 0.3, 1.0)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 3
    assert error(fraction=1.0, references=len(MODELS)) == 0


def test_only_a_pair_that_has_run_is_known_exactly():
    estimates = estimator(fraction=0.0, references=2, seed=3)
    first = estimates.match(0, "m0")
    second = estimates.match(1, "m7")
    before = estimates.pair_speeds(first, second)
    with_itself = estimates.pair_speeds(first, first)
    estimates.observe(second, first)
    true = np.array([TABLE.pairs["m0", "m7", 1][gpu_type] for gpu_type in TYPES]).T
    assert not np.allclose(before, true)
    assert estimates.pair_speeds(first, second) == pytest.approx(true)
    assert estimates.pair_speeds(second, first) == pytest.approx(true[::-1])
    assert np.array_equal(estimates.pair_speeds(first, first), with_itself)


def test_two_jobs_retain_the_fractions_of_their_references():
    estimates = estimator(fraction=0.0, references=3, seed=4)
    one = estimates.match(0, "m5")
    other = estimates.match(1, "m9")
    retained = retained_fractions(TABLE, MODELS, TYPES)[
        MODELS.index(one[1]), :, MODELS.index(other[1])
    ]
    alone = [TABLE.rows["m5", 1][gpu_type] for gpu_type in TYPES]
    assert estimates.pair_speeds(one, other)[0] == pytest.approx(alone * retained)


def test_a_pair_is_known_only_on_the_type_it_has_run_on():
    estimates = estimator(fraction=0.0, references=2, seed=3)
    first = estimates.match(0, "m0")
    second = estimates.match(1, "m7")
    before = estimates.pair_speeds(first, second)
    estimates.observe(first, second, "p100")
    after = estimates.pair_speeds(first, second)
    assert after[:, [0, 2]].tolist() == before[:, [0, 2]].tolist()
    assert after[:, 1] == pytest.approx(TABLE.pairs["m0", "m7", 1]["p100"])


def test_references_are_sampled_in_the_order_of_the_models():
    forward = estimator(fraction=0.0, references=5)
    backward = estimator(fraction=0.0, references=5, models=MODELS[::-1])
    assert [MODELS.index(name) for name in backward.references] == [
        len(MODELS) - 1 - MODELS.index(name) for name in forward.references
    ]


def test_samples_come_from_the_artifact_stream():
    stream = random.Random(7 + 4)
    reference_rows = sorted(stream.sample(range(len(MODELS)), 6))
    estimates = estimator(fraction=0.0, references=6, seed=7)
    assert estimates.references == tuple(MODELS[row] for row in reference_rows)
    expected = [stream.choice(estimates.references) for _ in range(4)]
    assert [estimates.match(job, "m1")[1] for job in range(4)] == expected


def test_profiling_samples_once_per_type_and_reference_and_once_per_job():
    stream = random.Random(2 + 4)
    stream.sample(range(len(MODELS)), 5)
    estimates = estimator(fraction=1e-12, references=5, seed=2)
    for job in range(3):
        [stream.uniform(0, 1) for _ in range(5 * len(TYPES))]
        expected = stream.choice(estimates.references)
        assert estimates.match(job, "m4") == estimates.match(job, "m4") == ("m4", expected)


def test_the_seed_decides_the_matches():
    def matches(seed):
        estimates = estimator(fraction=0.15, references=8, seed=seed)
        return [estimates.match(job, MODELS[job % 20]) for job in range(40)]

    assert matches(1) == matches(1)
    assert matches(1) != matches(2)


def test_measurements_at_the_columns_of_the_artifact_belong_to_other_models():
    right_columns = error(fraction=1.0, references=10)
    assert error(fraction=1.0, references=10, artifact_index=True) > 1.5 * right_columns
    full = {"fraction": 1.0, "references": len(MODELS)}
    assert error(**full, artifact_index=True) == error(**full) == 0


def test_jobs_that_cannot_share_retain_nothing():
    rows = {("a", 1): {"v100": 10.0}, ("b", 1): {"v100": 0.0}}
    pairs = {("b", "a", 1): {"v100": (3.0, 4.0)}}
    retained = retained_fractions(ThroughputTable(rows, "v100", pairs), ["a", "b"], ["v100", "k80"])
    assert retained[:, 0].tolist() == [[0, 0.4], [0, 0]]
    assert not retained[:, 1].any()


def test_completion_keeps_known_entries_and_recovers_a_matrix_of_low_rank():
    rng = np.random.default_rng(0)
    matrix = rng.uniform(0.2, 1, (12, 3)) @ rng.uniform(0.2, 1, (3, 30))
    known = rng.random(matrix.shape) < 0.7
    filled = complete(np.where(known, matrix, np.nan), known, rank=3, penalty=1e-3)
    assert np.array_equal(filled[known], matrix[known])
    assert np.abs(filled - matrix).mean() < 0.02


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fraction": 1.5}, "profiling fraction is 1.5; give a number from 0 to 1"),
        ({"references": 21}, "give 1 to 20"),
        ({"references": 0}, "give 1 to 20"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, message):
    with pytest.raises(ParamError, match=message):
        estimator(**settings)


def test_completed_fractions_below_0_count_as_0(monkeypatch):
    # fractions next to a, b and c: cosine 0.89 and 0.8 to (1, 0, 0), 0.45 and 0.57 to (1, 0, -1)
    retained = {"a": (1.0, 0.0, 0.5), "b": (0.8, 0.6, 0.0), "c": (0.0, 0.1, 1.0)}
    rows = {(model, 1): {"v100": 1.0} for model in "abc"}
    pairs = {
        (one, other, 1): {"v100": (retained[one]["abc".index(other)], retained[other][number])}
        for number, one in enumerate("abc")
        for other in "abc"[number:]
    }
    table = ThroughputTable(rows, "v100", pairs)
    completed = np.array([[1.0, 0.0, -1.0]] * 4)
    monkeypatch.setattr(module, "complete", lambda values, known: completed)
    estimates = PairEstimator(table, ["v100"], fraction=1e-12, references=3)
    assert estimates.match(0, "c") == ("c", "a")


def test_a_job_of_an_unknown_model_is_named():
    with pytest.raises(ParamError, match="job 3: the throughput table has no pairs of model 'xx'"):
        estimator().match(3, "xx")


def test_full_profiling_gives_the_published_throughputs_and_a_fifth_comes_near(mirror):
    folder = mirror / "stanford-futuredata+gavel" / "scheduler"
    table = load_throughputs(folder / "simulation_throughputs.json")
    models = [model for model, gang in table.rows if gang == 1]
    true = retained_fractions(table, models, TYPES)

    def error(fraction):
        estimates = PairEstimator(table, TYPES, fraction=fraction, references=len(models))
        nearest = [models.index(estimates.match(model, model)[1]) for model in models]
        return np.abs(true[nearest][:, :, nearest] - true).mean()

    exact = PairEstimator(table, TYPES, fraction=1.0, references=len(models))
    one, other = (exact.match(model, model) for model in ("A3C", "LM (batch size 20)"))
    expected = table.pair_speeds("A3C", 1, "LM (batch size 20)", 1, TYPES)
    assert exact.pair_speeds(one, other) == pytest.approx(expected)
    assert error(1.0) == 0
    assert error(0.2) < error(0.0) / 2


@pytest.mark.parametrize(
    ("full_rows", "density", "penalty"),
    # the last matrix still changes after 100 sweeps
    [(0.0, 0.7, 0.1), (0.3, 0.7, 0.1), (1.0, 0.7, 0.1), (0.0, 0.5, 0.01)],
)
def test_completion_is_a_separate_regression_of_every_row(full_rows, density, penalty):
    rng = np.random.default_rng(4)
    values = rng.uniform(0, 1, (6, 4)) @ rng.uniform(0, 1, (4, 9))
    known = rng.random(values.shape) < density
    known[: round(6 * full_rows)] = True
    start = np.random.default_rng(0)
    left = start.standard_normal((6, 3))
    right = start.standard_normal((9, 3))
    before = left @ right.T
    for _ in range(100):
        for factor, other, seen, target in (
            (left, right, known, values),
            (right, left, known.T, values.T),
        ):
            for row in range(len(factor)):
                basis = other[seen[row]]
                factor[row] = np.linalg.solve(
                    basis.T @ basis + penalty * np.eye(3), basis.T @ target[row, seen[row]]
                )
        product = left @ right.T
        if np.sqrt(((product - before) ** 2).mean()) < 1e-3:
            break
        before = product
    filled = complete(values, known, rank=3, penalty=penalty)
    assert filled == pytest.approx(np.where(known, values, product), abs=1e-9)
