"""Normal equations of pairs by blocks of one width against dense ones."""

from __future__ import annotations

import numpy as np
import pytest

from repro.solve.pairs import interior as blockwise
from repro.solve.pairs.programme import PairableKinds, programme


def instance(seed, widths, pairs):
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.5, 2.0, (9, 3))
    paired = values[:, None] * rng.uniform(0.3, 1.0, (9, 9, 3))
    counts = rng.integers(1, 4, 9).astype(float)
    wide = rng.choice(widths, 9).astype(float)
    job_kinds = PairableKinds(values, paired, wide, np.full(3, 4.0))
    problem = programme(job_kinds, counts, pairs=pairs)
    dense = np.zeros((len(problem.limits), len(problem.first_kind)))
    np.add.at(dense, (problem.rows.T, np.arange(len(problem.first_kind))), problem.coefs.T)
    return problem, dense, blockwise.find_runs(problem.rows, problem.blocks), rng


@pytest.mark.parametrize("pairs", ["all", "useful"])
@pytest.mark.parametrize("widths", [(1,), (1, 2, 4), (1, 2, 8)])
@pytest.mark.parametrize("seed", range(3))
def test_products_and_solutions_are_the_dense_ones(seed, widths, pairs):
    problem, dense, runs, rng = instance(seed, widths, pairs)
    size, count = dense.shape
    coefs = np.ascontiguousarray(problem.coefs.T)
    blocks = problem.blocks
    product = np.empty(size)
    transposed_product = np.empty(count)
    x, y = rng.standard_normal(count), rng.standard_normal(size)
    blockwise.times(runs, coefs, x, product)
    blockwise.times_transposed(runs, coefs, y, transposed_product)
    assert product == pytest.approx(dense @ x)
    assert transposed_product == pytest.approx(dense.T @ y)
    width = rng.uniform(0.1, 2.0, count)
    slack = rng.uniform(0.1, 2.0, size)
    normal = (dense * width) @ dense.T + np.diag(slack)
    upper = np.empty((size, size + 2))
    inverse = np.empty(size)
    side_a, side_b, side_c = rng.standard_normal((3, size))
    right_sides = np.stack([side_a, side_b, side_c], axis=1)
    blockwise.normal_matrix(runs, blocks, coefs, width, slack, upper)
    blockwise.factorise_blocks(upper, blocks, side_a, side_b, inverse)
    blockwise.solve_blocks(upper, blocks, inverse, side_c)
    assert np.stack([side_a, side_b, side_c], axis=1) == pytest.approx(
        np.linalg.solve(normal, right_sides)
    )


def test_runs_hold_every_column_once():
    problem, _, runs, _ = instance(4, (1, 2), "all")
    ends = runs[:, 0] + runs[:, 1]
    assert runs[0, 0] == 0 and ends[-1] == len(problem.first_kind)
    assert (runs[1:, 0] == ends[:-1]).all() and len(runs) < len(problem.first_kind) / 2
