"""Data of Liquid's figures: published bars, percentages and curves."""

import pandas as pd

from repro.files.tables import ModelTable

#: Series of the figures -> our policies.
POLICIES = {
    "liquid": "liquid",
    "random": "liquid-random",
    "even_distributed": "liquid-even",
    "kubernetes": "kubernetes",
    "kubeflow": "kubeflow",
    "hived": "hived",
}
_KEYS = ("figure", "quantity", "group", "series", "value", "certainty")
_BARS = ModelTable("liquid_published.csv", _KEYS)
_CURVES = ModelTable("liquid_curves.csv", ("figure", "job", "gpu", "series", "first_s", "values"))


def bars(figure: str) -> pd.DataFrame:
    """Bars of a figure: quantity, group and series (text), published, certainty."""
    table = _BARS.frame.query("figure == @figure and series.notna()")
    return table.rename(columns={"value": "published"}).drop(columns="figure")


def claim(figure: str, quantity: str) -> float:
    """Number that the paper's text prints, a percentage or a ratio; ``figure`` may be a section."""
    row = _BARS.frame.query("figure == @figure and quantity == @quantity")
    return float(row["value"].item())


def curves(figure: str) -> pd.DataFrame:
    """Curves of a figure in long form: job, gpu, series, t_s (whole seconds), value."""
    table = _CURVES.frame
    table = table[table["figure"] == figure].assign(value=table["values"].str.split())
    table = table.explode("value").astype({"value": float})
    table["t_s"] = table.pop("first_s") + table.groupby(level=0).cumcount()
    return table.drop(columns=["figure", "unit", "values"])
