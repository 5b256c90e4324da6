"""Skew and fits against numbers worked out by hand."""

import numpy as np
import pytest

from repro.base.errors import ParamError
from repro.papers.tiresias import models as models


def test_listed_tensors_agree_with_the_table_of_models():
    from repro.placement.tiresias_models import tiresias_models

    table = tiresias_models()
    sizes = models.tensor_sizes()
    assert sorted(sizes) == sorted(table.index.drop("googlenet"))
    for model, tensors in sizes.items():
        assert len(tensors) == table["tensors_from_1mb"][model]
        assert sum(tensors) == pytest.approx(table["large_tensors_mb"][model], abs=0.05)
        assert max(tensors) == table["largest_mb"][model]


def test_round_robin_by_hand():
    # servers 0 and 1 get 4 + 1 and 1 + 1 of 7
    assert models.server_skew([4.0, 1.0, 1.0, 1.0], 2) == pytest.approx(5 / 3.5)
    assert models.server_skew([3.0], 4) == 4.0
    assert models.server_skew([1.0, 2.0, 3.0], 1) == 1.0


@pytest.mark.parametrize(("tensors", "servers"), [([], 2), ([1.0], 0)])
def test_skew_needs_tensors_and_servers(tensors, servers):
    with pytest.raises(ParamError, match="at least one of each"):
        models.server_skew(tensors, servers)


def test_fit_recovers_a_plane_and_says_how_well():
    rng = np.random.default_rng(0)
    a, b = rng.random(20), rng.random(20)
    fit = models.linear_fit(2 + 3 * a - b, a, b)
    assert [fit.intercept, *fit.slopes] == pytest.approx([2, 3, -1])
    assert fit.r2 == pytest.approx(1)
    assert fit.at([1.0], [1.0]) == pytest.approx([4])
    noisy = models.linear_fit(rng.random(20), a)
    assert noisy.adjusted_r2 < noisy.r2 < 0.5
    assert sum(noisy.residuals) == pytest.approx(0)


def test_pack_limit_lies_midway_between_the_nearest_jobs():
    skews = [0.61, 0.75, 0.146, 0.04]
    loses = [True, True, False, False]
    assert models.pack_limit(skews, loses) == pytest.approx((0.61 + 0.146) / 2, abs=1e-6)
    assert models.predicted_to_lose(skews, loses).tolist() == loses


def test_a_job_unlike_the_others_is_predicted_wrongly():
    # without the third job the limit is 0.5, below its skew
    predicted = models.predicted_to_lose(
        [0.1, 0.9, 0.6, 0.0, 1.0], [False, True, False, False, True]
    )
    assert predicted.tolist() == [False, True, True, False, True]


@pytest.mark.parametrize("loses", [[True, True, True], [False, False, False], []])
def test_a_pack_limit_needs_jobs_that_lose_and_jobs_that_do_not(loses):
    with pytest.raises(ParamError, match="give some of both"):
        models.pack_limit([0.1, 0.5, 0.9][: len(loses)], loses)


def test_a_prediction_without_a_job_needs_others_that_lose():
    with pytest.raises(ParamError, match="history: 1 of 1 jobs lose"):
        models.predicted_to_lose([0.1, 0.9], [False, True])


def test_a_fit_of_a_constant_explains_no_part_of_a_variance():
    fit = models.linear_fit([3.0, 3.0, 3.0, 3.0], [1.0, 2.0, 4.0, 5.0])
    assert [fit.intercept, *fit.slopes] == pytest.approx([3, 0])
    assert np.isnan(fit.r2) and np.isnan(fit.adjusted_r2)
    # the mean of three times 0.1 is no 0.1
    assert np.isnan(models.linear_fit([0.1, 0.1, 0.1], [1.0, 2.0, 4.0]).r2)
