"""Small dense systems against LAPACK."""

from __future__ import annotations

import numpy as np
import pytest

from repro.solve.pairs.interior import factorise


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 11, 55])
def test_cholesky_and_right_hand_side_are_those_of_lapack(size):
    rng = np.random.default_rng(size)
    root = rng.standard_normal((size, size + 2))
    matrix = root @ root.T
    right = rng.standard_normal(size)
    upper = np.column_stack([np.triu(matrix), right])
    factorise(upper)
    lower = np.linalg.cholesky(matrix)
    assert np.triu(upper[:, :size]) == pytest.approx(lower.T)
    assert upper[:, size] == pytest.approx(np.linalg.solve(lower, right), rel=1e-6, abs=1e-8)
