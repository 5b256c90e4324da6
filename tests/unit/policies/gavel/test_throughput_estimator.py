"""Throughput estimator: full profiling is exact, more of it is better, draws are seeded."""

from __future__ import annotations

import random

import numpy as np
import pytest

from repro.base.errors import ParamError
from repro.perf.throughput import ThroughputTable
from repro.perf.throughput_files import load_throughputs
from repro.policies.gavel.estimator import PairEstimator, complete, slowdowns

TYPES = ("k80", "p100", "v100")


def measured(models=20, seed=5):
    """Return a table of models with three latent demands; a pair slows down by what overlaps."""
    rng = np.random.default_rng(seed)
    demand = rng.dirichlet([0.5] * 3, size=models)
    names = [f"m{i}" for i in range(models)]
    alone = rng.uniform(2, 50, size=(models, len(TYPES)))
    strength = rng.uniform(0.5, 1.5, size=(len(TYPES), 3))
    rows = {(m, 1): dict(zip(TYPES, alone[i], strict=True)) for i, m in enumerate(names)}
    pairs = {}
    for i, one in enumerate(names):
        for k in range(i, models):
            kept = 1 / (1 + (strength * demand[i] * demand[k]).sum(axis=1) * (1 + demand[i, 0]))
            other = 1 / (1 + (strength * demand[i] * demand[k]).sum(axis=1) * (1 + demand[k, 0]))
            pairs[one, names[k], 1] = {
                kind: (alone[i, j] * kept[j], alone[k, j] * other[j])
                for j, kind in enumerate(TYPES)
            }
    return ThroughputTable(rows, "v100", pairs)


TABLE = measured()
MODELS = [model for model, _ in TABLE.rows]


def estimator(**settings):
    return PairEstimator(TABLE, TYPES, **{"references": len(MODELS), **settings})


def error(**settings):
    """Return the mean error of an estimate of what a model keeps of its speed in a pair."""
    believed = estimator(**settings)
    true = slowdowns(TABLE, MODELS, TYPES)
    likened = [MODELS.index(believed.kind(model, model)[1]) for model in MODELS]
    return np.abs(true[likened][:, :, likened] - true).mean()


def test_full_profiling_reproduces_the_table():
    known = estimator(fraction=1.0)
    kinds = {model: known.kind(model, model) for model in MODELS}
    for (one, other, _), pair in TABLE.pairs.items():
        got = known.pair_speeds(kinds[one], kinds[other])
        assert got == pytest.approx(np.array([pair[kind] for kind in TYPES]).T)


def test_the_error_falls_with_the_part_that_is_profiled():
    errors = [
        np.mean([error(fraction=part, references=14, seed=seed) for seed in range(3)])
        for part in (0.0, 0.1, 0.3, 1.0)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 3
    assert error(fraction=1.0, references=len(MODELS)) == 0


def test_a_pair_that_has_run_is_known_exactly_and_no_other_is():
    guessed = estimator(fraction=0.0, references=2, seed=3)
    first = guessed.kind(0, "m0")
    second = guessed.kind(1, "m7")
    before = guessed.pair_speeds(first, second)
    with_itself = guessed.pair_speeds(first, first)
    guessed.observe(second, first)
    true = np.array([TABLE.pairs["m0", "m7", 1][kind] for kind in TYPES]).T
    assert not np.allclose(before, true)
    assert guessed.pair_speeds(first, second) == pytest.approx(true)
    assert guessed.pair_speeds(second, first) == pytest.approx(true[::-1])
    assert np.array_equal(guessed.pair_speeds(first, first), with_itself)


def test_two_jobs_keep_of_their_speeds_what_their_references_do():
    guessed = estimator(fraction=0.0, references=3, seed=4)
    one = guessed.kind(0, "m5")
    other = guessed.kind(1, "m9")
    kept = slowdowns(TABLE, MODELS, TYPES)[MODELS.index(one[1]), :, MODELS.index(other[1])]
    alone = [TABLE.rows["m5", 1][kind] for kind in TYPES]
    assert guessed.pair_speeds(one, other)[0] == pytest.approx(alone * kept)


def test_a_pair_is_known_only_on_the_type_it_has_run_on():
    guessed = estimator(fraction=0.0, references=2, seed=3)
    first = guessed.kind(0, "m0")
    second = guessed.kind(1, "m7")
    before = guessed.pair_speeds(first, second)
    guessed.observe(first, second, "p100")
    after = guessed.pair_speeds(first, second)
    assert after[:, [0, 2]].tolist() == before[:, [0, 2]].tolist()
    assert after[:, 1] == pytest.approx(TABLE.pairs["m0", "m7", 1]["p100"])


def test_references_are_drawn_in_the_order_of_the_models_given():
    forth = estimator(fraction=0.0, references=5)
    back = estimator(fraction=0.0, references=5, models=MODELS[::-1])
    assert [MODELS.index(name) for name in back.references] == [
        len(MODELS) - 1 - MODELS.index(name) for name in forth.references
    ]


def test_draws_are_those_of_the_artifact_stream():
    stream = random.Random(7 + 4)
    chosen = sorted(stream.sample(range(len(MODELS)), 6))
    guessed = estimator(fraction=0.0, references=6, seed=7)
    assert guessed.references == tuple(MODELS[row] for row in chosen)
    expected = [stream.choice(guessed.references) for _ in range(4)]
    assert [guessed.kind(job, "m1")[1] for job in range(4)] == expected


def test_profiling_draws_once_per_type_and_reference_and_once_per_job():
    stream = random.Random(2 + 4)
    stream.sample(range(len(MODELS)), 5)
    guessed = estimator(fraction=1e-12, references=5, seed=2)
    for job in range(3):
        [stream.uniform(0, 1) for _ in range(5 * len(TYPES))]
        expected = stream.choice(guessed.references)
        assert guessed.kind(job, "m4") == guessed.kind(job, "m4") == ("m4", expected)


def test_the_same_seed_gives_the_same_answers_and_another_gives_others():
    def answers(seed):
        believed = estimator(fraction=0.15, references=8, seed=seed)
        return [believed.kind(job, MODELS[job % 20]) for job in range(40)]

    assert answers(1) == answers(1)
    assert answers(1) != answers(2)


def test_measurements_at_the_columns_of_the_artifact_belong_to_other_models():
    right = error(fraction=1.0, references=10)
    assert error(fraction=1.0, references=10, artifact_index=True) > 1.5 * right
    every = {"fraction": 1.0, "references": len(MODELS)}
    assert error(**every, artifact_index=True) == error(**every) == 0


def test_jobs_that_cannot_share_keep_nothing():
    rows = {("a", 1): {"v100": 10.0}, ("b", 1): {"v100": 0.0}}
    pairs = {("b", "a", 1): {"v100": (3.0, 4.0)}}
    kept = slowdowns(ThroughputTable(rows, "v100", pairs), ["a", "b"], ["v100", "k80"])
    assert kept[:, 0].tolist() == [[0, 0.4], [0, 0]]
    assert not kept[:, 1].any()


def test_completion_keeps_what_is_known_and_recovers_a_matrix_of_low_rank():
    rng = np.random.default_rng(0)
    whole = rng.uniform(0.2, 1, (12, 3)) @ rng.uniform(0.2, 1, (3, 30))
    known = rng.random(whole.shape) < 0.7
    filled = complete(np.where(known, whole, np.nan), known, rank=3, penalty=1e-3)
    assert np.array_equal(filled[known], whole[known])
    assert np.abs(filled - whole).mean() < 0.02


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


def test_a_job_of_an_unknown_model_is_named():
    with pytest.raises(ParamError, match="job 3: the throughput table has no pairs of model 'xx'"):
        estimator().kind(3, "xx")


def test_published_throughputs_come_out_of_full_profiling_and_roughly_of_a_fifth(mirror):
    folder = mirror / "stanford-futuredata+gavel" / "scheduler"
    table = load_throughputs(folder / "simulation_throughputs.json")
    models = [model for model, gang in table.rows if gang == 1]
    true = slowdowns(table, models, TYPES)

    def error(fraction):
        known = PairEstimator(table, TYPES, fraction=fraction, references=len(models))
        likened = [models.index(known.kind(model, model)[1]) for model in models]
        return np.abs(true[likened][:, :, likened] - true).mean()

    known = PairEstimator(table, TYPES, fraction=1.0, references=len(models))
    one, other = (known.kind(model, model) for model in ("A3C", "LM (batch size 20)"))
    expected = table.pair_speeds("A3C", 1, "LM (batch size 20)", 1, TYPES)
    assert known.pair_speeds(one, other) == pytest.approx(expected)
    assert error(1.0) == 0
    assert error(0.2) < error(0.0) / 2


@pytest.mark.parametrize("part", [0.0, 0.3, 1.0])
def test_completion_is_the_regression_of_every_row_by_itself(part):
    rng = np.random.default_rng(4)
    values = rng.uniform(0, 1, (6, 4)) @ rng.uniform(0, 1, (4, 9))
    known = rng.random(values.shape) < 0.7
    known[: round(6 * part)] = True
    draw = np.random.default_rng(0)
    left, right = draw.standard_normal((6, 3)), draw.standard_normal((9, 3))
    before = left @ right.T
    for _ in range(100):
        for factor, other, seen, target in (
            (left, right, known, values),
            (right, left, known.T, values.T),
        ):
            for row in range(len(factor)):
                a = other[seen[row]]
                factor[row] = np.linalg.solve(
                    a.T @ a + 0.1 * np.eye(3), a.T @ target[row, seen[row]]
                )
        product = left @ right.T
        if np.sqrt(((product - before) ** 2).mean()) < 1e-3:
            break
        before = product
    found = complete(values, known, rank=3, penalty=0.1)
    assert found == pytest.approx(np.where(known, values, product), abs=1e-9)
