"""Small dense systems against LAPACK."""

from __future__ import annotations

import numpy as np
import pytest

from repro.optimise.dense import back_solve, factorise


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 11, 55])
def test_cholesky_and_solution_are_those_of_lapack(size):
    rng = np.random.default_rng(size)
    root = rng.standard_normal((size, size + 2))
    matrix, right = root @ root.T, rng.standard_normal(size)
    upper, x = np.triu(matrix), right.copy()
    factorise(upper)
    assert np.triu(upper) == pytest.approx(np.linalg.cholesky(matrix).T)
    back_solve(upper, x)
    assert x == pytest.approx(np.linalg.solve(matrix, right), rel=1e-6, abs=1e-8)
