"""Outcome of a comparison: metrics per run, means with intervals, pictures, report, files."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.comparison.intervals import mean_intervals
from repro.figures.saved import to_json
from repro.files.spreadsheet import safe_cells
from repro.files.whole import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHARTS = ("jct", "load")
#: Smaller values of a metric, in its unit, are rounding errors of sums.
_ROUNDING = 1e-9
#: Files of a comparison.
FILES = ("comparison.csv", "summary.csv", "result.json", "report.md", "jct.svg", "load.svg")


class Metric(NamedTuple):
    """Heading and unit of a metric. ``scale`` times a value of the frame is in the unit."""

    heading: str
    unit: str
    scale: float = 1.0

    @property
    def label(self) -> str:
        """Heading with unit."""
        return f"{self.heading} ({self.unit})" if self.unit else self.heading


METRICS = {
    "avg_jct": Metric("mean JCT", "s"),
    "median_jct": Metric("median JCT", "s"),
    "p95_jct": Metric("p95 JCT", "s"),
    "p99_jct": Metric("p99 JCT", "s"),
    "makespan": Metric("makespan", "s"),
    "avg_queueing": Metric("queueing", "s"),
    "avg_rho": Metric("mean rho", ""),
    "max_rho": Metric("max rho", ""),
    "avg_pred_err": Metric("pred. error", "%"),
    "p99_pred_err": Metric("p99 pred. error", "%"),
    "preemptions": Metric("preemptions", ""),
    "utilisation": Metric("utilisation", "%", 100.0),
    "cpu_s_per_job": Metric("CPU/job", "ms", 1000.0),
}


@dataclass(frozen=True)
class Comparison:
    """Policies compared on the same jobs: what `repro.compare` returns.

    Parameters
    ----------
    frame : DataFrame
        A row per run, by load, then sample, then policy. Columns: policy, load (offered load that
        was asked for; NaN without loads), seed or window, offered_load, n_jobs, n_finished,
        avg_jct, median_jct, p95_jct, p99_jct, makespan, avg_queueing (s), avg_rho and max_rho
        (finish-time fairness: JCT over JCT in an isolated share), avg_pred_err and p99_pred_err
        (%), preemptions, utilisation (0 to 1), cpu_s_per_job (s).
    reference : str
        Policy to which differences refer.
    refused : mapping
        Policies that cannot run on the input, with the reason.
    notes : list of str
        Terms of the comparison, a line each: rules, costs, placement, knowledge, dressing, samples.
    meta : mapping
        trace, its format and the options of its reader or generator, cluster, rules, policies
        (settings by label), throughputs and reference_gpu (of the argument, else of the trace), and
        the other arguments.
    jcts : mapping
        JCTs of all jobs (s) by policy and position of the load in `loads`, an array per sample.
    seed : int
        Seed of the bootstrap.

    Examples
    --------
    >>> from repro import compare
    >>> from repro.testing import small_trace
    >>> result = compare(small_trace(), "1x4", "srtf,tiresias-l", loads=[0.5, 1.0], workers=1)
    >>> result.policies, result.loads, result.sample
    (['srtf', 'tiresias-l'], [0.5, 1.0], 'seed')
    >>> result.table().query("metric == 'avg_jct'")[["load", "policy", "mean"]].round(1)
        load      policy  mean
    0    0.5        srtf  11.9
    13   0.5  tiresias-l  16.1
    26   1.0        srtf  11.9
    39   1.0  tiresias-l  14.6
    """

    frame: pd.DataFrame
    reference: str
    refused: Mapping[str, str]
    notes: Sequence[str]
    meta: Mapping[str, Any]
    jcts: Mapping[tuple[str, int], Sequence[np.ndarray[Any, Any]]] = field(repr=False)
    seed: int = 0

    @property
    def sample(self) -> str:
        """Column of the samples: seed or window."""
        return "window" if "window" in self.frame else "seed"

    @property
    def policies(self) -> list[str]:
        """Policies that ran, in the order of the call."""
        return list(dict.fromkeys(self.frame["policy"]))

    @property
    def loads(self) -> list[float]:
        """Offered loads, in the order of the call; a single NaN without loads."""
        values = self.frame["load"].tolist()
        # dict.fromkeys merges NaNs only if all of them are the same object
        return list(dict.fromkeys(math.nan if math.isnan(load) else load for load in values))

    def table(self) -> pd.DataFrame:
        """Means with 95 % intervals, and paired differences to the reference.

        Returns
        -------
        DataFrame
            A row per load, policy and metric. Columns: load, policy, metric, samples, mean, low,
            high (mean over samples with its interval), difference, difference_low,
            difference_high (mean over samples of policy minus reference), difference_percent (of
            the mean of the reference). NaN where a sample has no value, and ends of intervals are
            NaN with one sample.
        """
        loads = self.loads
        policies = self.policies
        metrics = list(METRICS)
        num_samples = self.frame[self.sample].nunique()
        indexed = self.frame.set_index(["policy", self.sample])
        blocks = []
        for load in loads:
            at_load = indexed[_is_load(indexed["load"], load)]
            blocks += [at_load.loc[policy, metrics].to_numpy(float) for policy in policies]
        # (samples, loads, policies, metrics)
        values = np.stack(blocks, axis=1).reshape(
            num_samples, len(loads), len(policies), len(metrics)
        )
        reference_index = policies.index(self.reference)
        differences = values - values[:, :, reference_index : reference_index + 1]
        columns = np.concatenate(
            [values.reshape(num_samples, -1), differences.reshape(num_samples, -1)], axis=1
        )
        low, high = (ends.reshape(2, -1) for ends in mean_intervals(columns, self.seed))
        mean, difference = columns.mean(axis=0).reshape(2, -1)
        reference_mean = np.broadcast_to(
            mean.reshape(values.shape[1:])[:, reference_index : reference_index + 1],
            values.shape[1:],
        )
        rows = pd.MultiIndex.from_product([range(len(loads)), policies, metrics])
        return pd.DataFrame(
            {
                "load": np.array(loads)[rows.get_level_values(0)],
                "policy": rows.get_level_values(1),
                "metric": rows.get_level_values(2),
                "samples": num_samples,
                "mean": mean,
                "low": low[0],
                "high": high[0],
                "difference": difference,
                "difference_low": low[1],
                "difference_high": high[1],
                "difference_percent": _percent(difference, reference_mean.ravel()),
            }
        )

    def plot(self, chart: str = "jct", metric: str = "avg_jct") -> Figure:
        """Draw distributions of the JCT, or a metric against the load.

        Bands and error bars are 95 % intervals. Needs the extra ``figures``.

        Parameters
        ----------
        chart : {"jct", "load"}
            ``jct``: distributions of the JCT, a panel per load, with the jobs of all samples in one
            distribution. ``load``: two panels, the metric, and its paired difference to the
            reference (%). With one load they have a bar per policy.
        metric : str
            Metric of chart ``load``, a column of `frame`.

        Returns
        -------
        matplotlib.figure.Figure
            The picture; ``savefig`` writes it.

        Raises
        ------
        ParamError
            If chart or metric is unknown.
        ExtraMissingError
            If matplotlib is not installed.
        """
        if chart not in CHARTS:
            raise ParamError(f"chart is {chart!r}; give {' or '.join(CHARTS)}")
        if metric not in METRICS:
            raise ParamError(f"metric is {metric!r}; give one of {', '.join(METRICS)}")
        # repro.plot needs an extra and takes a second to import
        charts = importlib.import_module("repro.comparison.charts")
        figure: Figure = (
            charts.jct_chart(self) if chart == "jct" else charts.load_chart(self, metric)
        )
        return figure

    def headline(self) -> pd.DataFrame:
        """Table for readers: a row per load and policy, texts with units in the headings."""
        table = self.table()
        cells = table.set_index(["load", "policy", "metric"])
        rows = []
        for load in self.loads:
            at_load = cells[_is_load(cells.index.get_level_values("load"), load)].droplevel("load")
            for policy in self.policies:
                of_policy = at_load.loc[policy]
                rows.append(self._row(load, policy, of_policy))
        frame = pd.DataFrame(rows)
        return frame.loc[:, (frame != "").any(axis=0)]

    def _row(self, load: float, policy: str, metrics: pd.DataFrame) -> dict[str, str]:
        """Texts of a row of `headline`."""
        jct: dict[str, float] = metrics.loc["avg_jct"].to_dict()  # type: ignore[assignment]
        means: dict[str, float] = metrics["mean"].to_dict()  # type: ignore[assignment]
        difference = ""
        if policy != self.reference:
            interval = _interval(jct["difference_low"], jct["difference_high"], _signed)
            percent = f"{jct['difference_percent']:+z,.1f}".replace("+0.0", "0.0")
            difference = f"{_signed(jct['difference'])}{interval} ({percent} %)"
        row = {
            "load": "" if math.isnan(load) else f"{load:g}",
            "policy": policy,
            METRICS["avg_jct"].label: f"{_number(jct['mean'])}"
            f"{_interval(jct['low'], jct['high'], _number)}",
            f"against {self.reference} (s)": difference,
        }
        for name, metric in METRICS.items():
            if name != "avg_jct":
                row[metric.label] = _number(metric.scale * means[name])
        return row

    def text(self) -> str:
        """`headline` as aligned lines."""
        table = self.headline()
        names = [str(name) for name in table]
        rows = [names, *table.to_numpy().tolist()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(names))]
        aligned = [
            [
                cell.ljust(width) if name in ("load", "policy") else cell.rjust(width)
                for name, width, cell in zip(names, widths, row, strict=True)
            ]
            for row in rows
        ]
        return "\n".join("  ".join(row).rstrip() for row in aligned)

    def report(self) -> str:
        """Report in Markdown: table, policies that cannot run, terms, pictures."""
        table = self.headline()
        names = [str(name) for name in table]
        rule = ["---" if name in ("load", "policy") else "---:" for name in names]
        rows: list[list[str]] = [names, rule, *table.to_numpy().tolist()]
        lines = [
            f"# {', '.join(self.policies)} on {self.meta['trace']}, {self.meta['cluster']}",
            "",
            *(f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in rows),
            "",
            "Brackets: 95 % interval of the mean. All other columns are means over the samples;",
            "`summary.csv` has the interval and the paired difference of every metric,",
            "`comparison.csv` the metrics of every run.",
            "",
            "![Job completion times](jct.svg)",
            "",
            "![Mean JCT, and its paired difference to the reference](load.svg)",
            "",
            "## Policies that cannot run on this input",
            "",
            *([f"- {name}: {reason}" for name, reason in self.refused.items()] or ["None."]),
            "",
            "## Equal terms",
            "",
            *(f"- {note}" for note in self.notes),
        ]
        return "\n".join(lines) + "\n"

    def write(self, folder: str | Path) -> None:
        """Write comparison.csv, summary.csv, result.json, report.md, jct.svg and load.svg.

        Parameters
        ----------
        folder : str or Path
            Folder of the files; a missing folder is made. A file is written whole or not at all.
        """
        charts = importlib.import_module("repro.comparison.charts")
        where = Path(folder)
        contents = {
            "comparison.csv": _csv(self.frame),
            "summary.csv": _csv(self.table()),
            "result.json": to_json(self.content()),
            "report.md": self.report().encode(),
            "jct.svg": charts.svg(charts.jct_chart(self)),
            "load.svg": charts.svg(charts.load_chart(self)),
        }
        for name, data in contents.items():
            write_whole(where / name, data)

    def content(self) -> dict[str, Any]:
        """Content of ``result.json``: arguments, reference, refusals, terms, and the table."""
        table = self.table()
        return {
            "kind": "comparison",
            **self.meta,
            "reference": self.reference,
            "loads": self.loads,
            "samples": {"kind": self.sample, "labels": self.frame[self.sample].unique()},
            "refused": self.refused,
            "notes": self.notes,
            "summary": table.to_dict("records"),
        }


def _is_load(column: Any, load: float) -> Any:
    """Rows of a load; NaN equals NaN."""
    values = np.asarray(column, float)
    return np.isnan(values) if math.isnan(load) else values == load


def _percent(difference: Floats, base: Floats) -> Floats:
    """Difference in percent of the base, NaN where the base is 0."""
    has_base = np.isfinite(base) & (base != 0)
    percent: Floats = np.full(len(base), np.nan)
    percent[has_base] = 100 * difference[has_base] / base[has_base]
    return percent


def _interval(low: float, high: float, to_text: Callable[[float], str]) -> str:
    """Interval as text, empty without one."""
    return "" if math.isnan(low) else f" [{to_text(low)}; {to_text(high)}]"


def _signed(value: float) -> str:
    """Difference as text: the digits of `_number` with a sign, and no sign for 0."""
    text = _number(abs(value))
    sign = "-" if value < 0 else "+"
    return text if text == "0" else f"{sign}{text}"


def _number(value: float) -> str:
    """Number as text: whole from 100 on, else with at most three digits.

    It is empty for NaN, and 0 for a rounding error.
    """
    if math.isnan(value):
        return ""
    if abs(value) < _ROUNDING:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _escaped(cell: str) -> str:
    """Cell of a Markdown table."""
    return cell.replace("|", "\\|")


def _csv(frame: pd.DataFrame) -> bytes:
    """Frame as CSV with `safe_cells`."""
    return bytes(safe_cells(frame).to_csv(index=False, lineterminator="\n").encode())
