"""Picture of one configuration of PCS: its position on a front, its jobs, its classes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.base.units import HOUR_S
from repro.plot import bar_chart, cdf_chart, line_chart, new_figure
from repro.policies.pcs.pcs import Pcs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Lowest prediction error on a logarithmic axis (%).
_LEAST_ERROR = 0.001


def classes(policy: Pcs, work: Floats) -> pd.DataFrame:
    """Share of jobs, work and weight of each class of a configuration, %.

    Parameters
    ----------
    policy : Pcs
        The configuration.
    work : array, shape (jobs,)
        Sizes of the jobs (s on one GPU).

    Examples
    --------
    >>> classes(Pcs((10.0,), (0.75, 0.25)), np.array([1.0, 3.0, 36.0]))["work"].tolist()
    [10.0, 90.0]
    """
    bounds = [*policy.bounds(work), math.inf]
    of_job = np.searchsorted(bounds[:-1], work)
    number = np.bincount(of_job, minlength=len(bounds))
    class_work = np.bincount(of_job, weights=work, minlength=len(bounds))
    names = [f"to {bound / HOUR_S:,.3g} h" for bound in bounds[:-1]]
    return pd.DataFrame(
        {
            "class": [*names, f"above {bounds[-2] / HOUR_S:,.3g} h" if names else "all jobs"],
            "jobs": 100 * number / len(work),
            "work": 100 * class_work / work.sum(),
            "weight": 100 * policy.class_weights(len(bounds)),
        }
    )


def check_chosen(chosen: int, front: pd.DataFrame) -> None:
    """Raise ParamError unless ``chosen`` is a position on a front."""
    if not 0 <= chosen < len(front):
        raise ParamError(
            f"chosen is {chosen}, but {len(front)} configurations of the front are shown; give "
            f"chosen as 0 to {len(front) - 1}, or a smaller every"
        )


def front_view(
    front: pd.DataFrame,
    chosen: int,
    jobs: pd.DataFrame,
    shares: pd.DataFrame,
    worlds: pd.DataFrame,
) -> Figure:
    """Plot a front with one configuration marked, distributions of its jobs, and its classes.

    Parameters
    ----------
    front : DataFrame
        Columns avg_jct_s and avg_pred_err_pct.
    chosen : int
        Label of a row of the front.
    jobs : DataFrame
        Columns jct_s, pred_err_pct and series (the policy), of each job under each policy.
    shares : DataFrame
        `classes` of the chosen configuration.
    worlds : DataFrame
        Columns solution (a row of the front), avg_jct_s and avg_pred_err_pct. A world is the
        workload of the search or a changed one. Bars show the range over the worlds.
    """
    plot, (top, *panels) = new_figure(4, columns=2, height=4.8, rows=2)
    rows = _on_axes(front.assign(series="pcs"))
    line_chart(
        rows,
        x="error",
        y="jct",
        series="series",
        axes=top,
        log="x",
        joined=False,
        title="(a) circle: chosen; bars: in other worlds",
        xlabel="average prediction error (%)",
        ylabel="average JCT (h)",
    )
    top.lines[0].set(markersize=3.5)
    by_solution = _on_axes(worlds).groupby("solution")
    low = by_solution.min()
    high = by_solution.max()
    middle = rows.loc[low.index]
    bars: dict[str, Any] = {"linewidths": 0.8, "zorder": 0}
    # bars of other configurations would hide those of the chosen one
    bars["colors"] = ["#1c1c1c" if row == chosen else "#c9c9c9" for row in middle.index]
    top.hlines(middle["jct"], low["error"], high["error"], **bars)
    top.vlines(middle["error"], low["jct"], high["jct"], **bars)
    top.plot(
        *rows.loc[chosen, ["error", "jct"]],
        "o",
        color="#b23a2e",
        markersize=9,
        markerfacecolor="none",
        markeredgewidth=1.6,
    )
    per_job = jobs.assign(
        jct=jobs["jct_s"] / HOUR_S, error=jobs["pred_err_pct"].clip(lower=_LEAST_ERROR)
    )
    cdf_chart(
        per_job,
        value="jct",
        series="series",
        axes=panels[0],
        log="x",
        title="(b) its jobs",
        xlabel="JCT (h)",
    )
    cdf_chart(
        per_job,
        value="error",
        series="series",
        axes=panels[1],
        log="x",
        title="(c) its errors",
        xlabel="prediction error (%, 0.001: none)",
    )
    bars_by_class = shares.melt("class", var_name="share", value_name="percent")
    bar_chart(
        bars_by_class.assign(text=bars_by_class["percent"].map("{:.3g}".format)),
        group="class",
        value="percent",
        series="share",
        axes=panels[2],
        text="text",
        ylabel="share (%)",
        xlabel="class by size (on one GPU)",
        title="(d) its classes",
    )
    return plot


def _on_axes(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with average JCT in hours and errors clipped for a logarithmic axis."""
    error = rows["avg_pred_err_pct"].clip(lower=_LEAST_ERROR)
    kept = rows.drop(columns="world", errors="ignore")
    return kept.assign(jct=rows["avg_jct_s"] / HOUR_S, error=error)
