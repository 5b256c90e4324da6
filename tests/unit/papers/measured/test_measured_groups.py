"""Groups measured on one GPU: periods, lengthening of stages and factors, by hand."""

import pandas as pd
import pytest

from repro.base.errors import ParamError, TraceError
from repro.papers.measured import groups

ALONE = {"mode": "alone", "group": "alone", "storage_s": 0.0, "network_s": 0.0}


def row(job, cpu_s, gpu_s, rate, norm, **more):
    return {**ALONE, "jobs": "a+b", "job": job, "cpu_s": cpu_s, "gpu_s": gpu_s, "n": 10} | {
        "iso_rate": 0.25,
        "rate": rate,
        "norm": norm,
        **more,
    }


@pytest.fixture
def rows():
    """Two jobs of 4 s alone: a is 2 s on the CPU and 2 s on the GPU, b is 1 s and 3 s."""
    return pd.DataFrame(
        [
            row("a", 2.0, 2.0, 0.25, 1.0),
            row("b", 1.0, 3.0, 0.25, 1.0),
            row("a", 2.0, 2.0, 0.2, 0.8, mode="lock", group="0"),
            row("b", 1.0, 3.0, 0.2, 0.8, mode="lock", group="0"),
            row("a", 2.0, 3.0, 0.2, 0.8, mode="free", group="0"),
            row("b", 1.0, 4.0, 0.2, 0.8, mode="free", group="0"),
            row("a", 2.0, 2.4, 0.25, 1.0, mode="free", group="1"),
            row("b", 1.0, 3.0, 0.25, 1.0, mode="free", group="1"),
        ]
    )


def test_period_of_equation_3_and_measured_period(rows):
    locked = groups.groups(rows).query("mode == 'lock'").iloc[0]
    # Eq 3 with b one stage ahead of a: max(0, 1) + max(2, 3) + max(2, 0)
    assert (locked["predicted_s"], locked["predicted_speed"]) == (6.0, 8 / 6)
    assert (locked["period_s"], locked["speed"]) == pytest.approx((5.0, 1.6))
    assert (locked["size"], locked["iterations"]) == (2, 20)


def test_lengthening_by_the_share_of_time_of_the_others(rows):
    first = groups.lengthening(rows).query("group == '0' and resource == 'gpu'").set_index("job")
    assert first["others"].to_dict() == pytest.approx({"a": 0.8, "b": 0.6})
    assert first["longer"].to_dict() == pytest.approx({"a": 0.5, "b": 1 / 3})


def test_short_stages_do_not_count(rows):
    assert set(groups.lengthening(rows)["resource"]) == {"cpu", "gpu"}


def test_the_factor_is_the_slope_through_zero(rows):
    sums = groups.factor_sums(groups.lengthening(rows))
    gpu = sums[(sums["resource"] == "gpu") & (sums["group"] == "0")].iloc[0]
    assert gpu["product"] / gpu["square"] == pytest.approx((0.8 * 0.5 + 0.6 / 3) / (0.64 + 0.36))
    assert gpu["stages"] == 2


def test_a_group_is_predicted_by_the_factors_of_the_others(rows):
    predicted = groups.predicted_speeds(rows, ["gpu"]).set_index("group")
    other = groups.factor_sums(groups.lengthening(rows)).query("group == '1' and resource == 'gpu'")
    factor = (other["product"] / other["square"]).iloc[0]
    rates = groups.model({"gpu": factor}, ["gpu"]).rates_of([(0, 2, 2, 0), (0, 1, 3, 0)])
    assert predicted.loc["0", "by_contention"] == pytest.approx(sum(rates))
    assert predicted.loc["0", "speed"] == pytest.approx(1.6)


def test_a_prediction_needs_another_group(rows):
    lonely = rows[rows["group"].isin(["alone", "0"])]
    with pytest.raises(TraceError, match=r"group '0': no other group of mode free .* cpu"):
        groups.predicted_speeds(lonely)


def test_a_resource_without_long_stages_needs_no_factor(rows):
    # no job of the fixture reads or sends
    predicted = groups.predicted_speeds(rows)
    assert predicted["by_contention"].tolist() == pytest.approx(
        groups.predicted_speeds(rows, ["cpu", "gpu"])["by_contention"].tolist()
    )


def test_a_model_refuses_a_resource_that_has_no_factor():
    with pytest.raises(ParamError, match="no factor of network; give one"):
        groups.model({"gpu": 0.5}, ["gpu", "network"])
    with pytest.raises(ParamError, match="'disk'"):
        groups.model({"gpu": 0.5}, ["gpu", "disk"])
