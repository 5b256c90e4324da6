"""Ratios of means over the same samples."""

import pandas as pd
import pytest

from repro.base.errors import ParamError
from repro.papers.measured.ratios import ratio_rows

SAMPLES = pd.DataFrame({0: [2.0, 1.0], 1: [6.0, 3.0], 2: [4.0, 3.0]}, index=["a", "b"])


def test_ratios_are_of_means_over_the_same_samples():
    table = ratio_rows(SAMPLES, SAMPLES.loc[["b", "b"]])
    assert table["n"].tolist() == [3, 3]
    assert table.loc["a", "ratio"] == pytest.approx(4 / (7 / 3))
    # every resample lies between the least and the largest ratio of a sample
    assert 4 / 3 <= table.loc["a", "low"] <= table.loc["a", "high"] <= 2
    assert table.loc["b", ["ratio", "low", "high"]].tolist() == [1, 1, 1]


@pytest.mark.parametrize("references", [SAMPLES.loc[["b"]], SAMPLES[[0, 1]]])
def test_a_row_without_its_reference_is_refused(references):
    with pytest.raises(ParamError, match="give each row a reference"):
        ratio_rows(SAMPLES, references)
