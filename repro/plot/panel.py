"""New figures, and the labels, scales and legend of a panel of any chart."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypedDict

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.markers import CARETDOWN, CARETUP
from matplotlib.transforms import ScaledTranslation

from repro.base.errors import ParamError, refuse_unknown
from repro.plot.published_marks import legend_keys
from repro.plot.style import Chart, styled

P = ParamSpec("P")
#: Width in inches of a figure over one and over two columns of a paper.
COLUMN_INCHES = {1: 3.33, 2: 7.0}
_TITLE_INCHES = 0.17
_SIDE_BY_SIDE = {tuple: HandlerTuple(ndivide=None, pad=0.4)}


class PanelOptions(TypedDict, total=False):
    """Keywords of every chart: labels, scales and the panel it is drawn into."""

    #: axis labels with units
    xlabel: str
    ylabel: str
    title: str
    #: logarithmic axes: "x", "y" or "xy"; True: the value axis of bars and distributions
    log: bool | str
    #: height of a thin horizontal line (1 for normalised bars); on a log axis bars start there.
    #: Gantt charts and heat maps have no such line
    reference: float | None
    #: ranges of the axes
    xlim: tuple[float, float]
    ylim: tuple[float, float]
    #: width of a new figure in paper columns, 1 or 2
    columns: int
    #: panel to draw into; a new figure when left out
    axes: Axes


def chart(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorate a chart: it refuses unknown keywords and has the project's style."""
    own_names = [name for name in inspect.signature(draw).parameters if name != "panel"]
    accepted = [*own_names, *PanelOptions.__annotations__]

    @functools.wraps(draw)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Figure:
        refuse_unknown(f"{draw.__name__} has no keyword", kwargs, accepted)
        return draw(*args, **kwargs)

    return styled(checked)


@styled
def new_figure(
    panels: int = 1,
    *,
    columns: int = 1,
    height: float = 2.2,
    rows: int = 1,
    widths: Sequence[float] | None = None,
    heights: Sequence[float] | None = None,
    legend: Literal["shared", "panels"] | None = None,
) -> tuple[Figure, list[Axes]]:
    """Make an empty figure with panels in some ``rows``, of equal or given relative sizes.

    It is 1 or 2 paper ``columns`` wide (3.33 or 7 inches) and ``height`` inches high. By default,
    several panels share one legend above them, and a single panel has its own. ``legend`` overrides
    this: "shared" or "panels".
    """
    if columns not in COLUMN_INCHES:
        raise ParamError(f"a figure is 1 or 2 columns wide, not {columns!r}")
    figure = Chart(figsize=(COLUMN_INCHES[columns], height), layout="constrained")
    FigureCanvasAgg(figure)
    if legend == "shared" or (legend is None and panels > 1):
        figure.completion = shared_legend
    columns_of_panels = -(-panels // rows)
    grid = figure.add_gridspec(rows, columns_of_panels, width_ratios=widths, height_ratios=heights)
    return figure, [figure.add_subplot(grid[number]) for number in range(panels)]


def panel_axes(panel: PanelOptions, height: float = 2.2) -> Axes:
    """Axes that the keywords name, or the axes of a new figure, ``height`` inches high."""
    if "axes" in panel:
        return panel["axes"]
    return new_figure(columns=panel.get("columns", 1), height=height)[1][0]


def finish(axes: Axes, panel: PanelOptions) -> Figure:
    """Set scales, ranges, labels and legend of a panel; return its figure."""
    log = str(panel.get("log") or "")
    axes.set(**{f"{axis}scale": "log" for axis in "xy" if axis in log})
    axes.set(**{name: limits for name, limits in panel.items() if name in ("xlim", "ylim")})
    axes.set(xlabel=panel.get("xlabel", ""), ylabel=panel.get("ylabel", ""))
    axes.set_title(panel.get("title", ""), loc="left")
    _mark_points_outside(axes)
    legend(axes)
    return owner(axes)


def draw_reference(axes: Axes, panel: PanelOptions) -> None:
    """Draw the thin horizontal line of a panel, if it has one."""
    reference = panel.get("reference")
    if reference is not None:
        axes.axhline(reference, color="#555555", linewidth=0.7, linestyle=":")


def _mark_points_outside(axes: Axes) -> None:
    """Mark points above or below the range of the vertical axis by arrows at its ends.

    At each end, the first arrow of a line also shows the value of its point.
    """
    # On an inverted axis (lanes, rows of a matrix) no point is outside.
    if axes.yaxis_inverted() or axes.xaxis_inverted():
        return
    low, high = axes.get_ylim()
    left, right = axes.get_xlim()
    # A rounding error is not outside.
    above = high + 1e-6 * abs(high)
    below = low - 1e-6 * abs(low)
    for line in list(axes.lines):
        x = np.asarray(line.get_xdata(), float)
        y = np.asarray(line.get_ydata(), float)
        # Reference lines have no points, and some curves have markers in the legend only.
        if line.get_transform() != axes.transData or line.get_markevery() == []:
            continue
        for edge, marker, beyond in ((high, CARETUP, y > above), (low, CARETDOWN, y < below)):
            beyond &= (left <= x) & (x <= right) & np.isfinite(y)
            if line.get_marker() in ("None", "", None) or not beyond.any():
                continue
            color = line.get_color()
            axes.plot(
                x[beyond],
                np.full(beyond.sum(), edge),
                linestyle="none",
                marker=marker,
                color=color,
                markersize=4,
                clip_on=False,
                label="_outside",
            )
            # Only the first arrow has space for the value of its point.
            first = int(np.flatnonzero(beyond)[0])
            axes.annotate(
                f"{y[first]:.3g}",
                (x[first], edge),
                (-4, -1 if edge == high else 1),
                textcoords="offset points",
                ha="right",
                va="top" if edge == high else "bottom",
                fontsize=5.2,
                color=color,
                bbox={"color": "white", "pad": 0.4},
            )


def owner(axes: Axes) -> Figure:
    """Figure of some axes."""
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure


def turn_long_labels(axes: Axes, names: Sequence[str]) -> None:
    """Slant the names below the horizontal axis if they would overlap."""
    inches = owner(axes).get_figwidth() * axes.get_position().width
    if max(map(len, names), default=0) * len(names) > 17 * inches:
        axes.tick_params(axis="x", rotation=40)
        for text in axes.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")


def _legend_layout(
    handles: Sequence[Any], labels: Sequence[str], inches: float, length: float
) -> Any:
    """Columns of a legend that is ``inches`` wide, and length of its keys (font sizes).

    ``length`` is the least length of a key; keys of several shapes are longer.
    """
    shapes = max((len(handle) for handle in handles if isinstance(handle, tuple)), default=1)
    length = max(length, 0.85 * shapes)
    width = 0.16 + 0.09 * length + 0.048 * max(map(len, labels), default=1)
    return {"ncols": max(1, min(len(labels), int(inches / width))), "handlelength": length}


def legend(axes: Axes) -> None:
    """Put the legend above the axes."""
    handles, labels = map(list, axes.get_legend_handles_labels())
    for keys, label in legend_keys([axes]):
        handles.append(keys)
        labels.append(label)
    if not handles:
        return
    figure = owner(axes)
    above = _TITLE_INCHES if axes.get_title(loc="left") else 0
    axes.legend(
        handles,
        labels,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        bbox_transform=axes.transAxes + ScaledTranslation(0, above, figure.dpi_scale_trans),
        columnspacing=1.0,
        borderaxespad=0.2,
        handler_map=_SIDE_BY_SIDE,
        **_legend_layout(handles, labels, figure.get_figwidth() * axes.get_position().width, 2.4),
    )


@styled
def shared_legend(figure: Figure) -> Figure:
    """Replace the legends of all panels by one legend above them; return the figure.

    Figures of `new_figure` get it when they are shown or saved, unless each panel has its own
    legend. Lines and bars with the same label share one key that shows both.
    """
    handles_of: dict[str, dict[type, Any]] = {}
    panels = [axes for axes in figure.axes if axes.get_legend() is not None]
    for axes in panels:
        axes.get_legend().remove()  # type: ignore[union-attr]
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles_of.setdefault(label, {}).setdefault(type(handle), handle)
    handles: list[Any] = [tuple(by_type.values()) for by_type in handles_of.values()]
    labels = list(handles_of)
    for keys, label in legend_keys(panels):
        handles.append(keys)
        labels.append(label)
    if not handles:
        return figure
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        columnspacing=1.4,
        handler_map=_SIDE_BY_SIDE,
        **_legend_layout(handles, labels, figure.get_figwidth(), 4.0),
    )
    return figure
