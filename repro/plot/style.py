"""One look for every figure: column widths, fonts, legends, and files that are stable bytes."""

from __future__ import annotations

import functools
import io
import textwrap
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox, ScaledTranslation

from repro.errors import ParamError

#: Width in inches of a figure over one and over two columns of a paper.
COLUMN_INCHES = {1: 3.33, 2: 7.0}
_LINE_INCHES = 0.11
_TITLE_INCHES = 0.17
_PUBLISHED = "published"
_CHARS_PER_INCH = 24
#: Digits of a place on the figure: far below a pixel, far above what rounding leaves.
_PLACE_DIGITS = 10

# matplotlib's types list every setting by name; Any keeps the table readable.
RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "legend.fontsize": 6.5,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "figure.dpi": 150,
    "savefig.dpi": 200,
    "svg.hashsalt": "repro",
    "svg.fonttype": "none",
}

P = ParamSpec("P")
R = TypeVar("R")


class Chart(Figure):
    """A figure that notebooks show without pyplot and its global list of figures."""

    def _repr_png_(self) -> bytes:
        return render(self, "png")


class SteadyLayout(ConstrainedLayoutEngine):
    """Constrained layout that gives the same places to the last bit in every process.

    Its solver orders unknowns by their addresses, so that the last bits of a place follow the
    addresses too; an SVG names its clip paths by a hash of all bits.
    """

    def execute(self, fig: Figure) -> Any:
        """Lay the figure out and round the place of each panel."""
        grids = super().execute(fig)
        for axes in fig.axes:
            if axes.get_in_layout():
                corners = axes.get_position(original=True).get_points()
                _place(axes, Bbox(np.round(corners, _PLACE_DIGITS)))
        return grids


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run a drawing function under the project's style, leaving the global settings alone."""

    @functools.wraps(draw)
    def under_style(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(RC):
            return draw(*args, **kwargs)

    return under_style


@styled
def new_figure(
    panels: int = 1, *, columns: int = 1, height: float = 2.2, rows: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure of column width with its panels.

    Parameters
    ----------
    panels : int
        Number of axes.
    columns : {1, 2}
        Width in paper columns (3.33 or 7 inches).
    height : float
        Height in inches.
    rows : int
        Rows the panels are spread over.

    Returns
    -------
    tuple of Figure and list of Axes

    Raises
    ------
    ParamError
        If columns is neither 1 nor 2.

    Examples
    --------
    >>> figure, axes = new_figure(3, columns=2)
    >>> len(axes), float(figure.get_figwidth())
    (3, 7.0)
    """
    if columns not in COLUMN_INCHES:
        raise ParamError(f"a figure is 1 or 2 columns wide, not {columns!r}")
    figure = Chart(figsize=(COLUMN_INCHES[columns], height), layout="constrained")
    FigureCanvasAgg(figure)
    across = -(-panels // rows)
    return figure, [figure.add_subplot(rows, across, number + 1) for number in range(panels)]


def axes_or_new(axes: Axes | None, columns: int, height: float = 2.2) -> Axes:
    """Return the given axes, or those of a new one-panel figure."""
    return new_figure(columns=columns, height=height)[1][0] if axes is None else axes


def owner(axes: Axes) -> Figure:
    """Return the figure that holds ``axes``."""
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure


def published_style(marker: str = "D", color: str = "#000000") -> dict[str, Any]:
    """Return the keywords of a published value: an open marker without a line."""
    return {
        "linestyle": "none",
        "marker": marker,
        "markerfacecolor": "white",
        "markeredgecolor": color,
        "markeredgewidth": 0.9,
        "zorder": 5,
    }


def legend(axes: Axes, *, published: bool = False) -> None:
    """Put the legend above the axes, in as many columns as its labels leave room for."""
    handles, labels = axes.get_legend_handles_labels()
    handles = list(handles)
    if published:
        handles.append(Line2D([], [], **published_style(color="#555555")))
        labels.append(_PUBLISHED)
    if not handles:
        return
    figure = owner(axes)
    width = figure.get_figwidth() * axes.get_position().width
    label_inches = 0.38 + 0.048 * max(map(len, labels))
    columns = max(1, min(len(labels), int(width / label_inches)))
    axes.legend(
        handles,
        labels,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        bbox_transform=axes.transAxes
        + ScaledTranslation(
            0, _TITLE_INCHES if axes.get_title(loc="left") else 0, figure.dpi_scale_trans
        ),
        ncols=columns,
        handlelength=2.4,
        columnspacing=1.0,
        borderaxespad=0.2,
    )


@styled
def shared_legend(figure: Figure) -> None:
    """Replace the legends of all panels by one above them; lines and bars stand side by side.

    Parameters
    ----------
    figure : Figure
        With finished panels.

    Examples
    --------
    >>> figure, axes = new_figure(2, columns=2)
    >>> for panel in axes:
    ...     _ = panel.plot([0, 1], label="one")
    ...     legend(panel)
    >>> shared_legend(figure)
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['one']
    """
    found: dict[str, dict[type, Any]] = {}
    published = False
    for axes in figure.axes:
        held = axes.get_legend()
        if held is None:
            continue
        published |= any(text.get_text() == _PUBLISHED for text in held.get_texts())
        held.remove()
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, {}).setdefault(type(handle), handle)
    handles: list[Any] = [tuple(kinds.values()) for kinds in found.values()]
    labels = list(found)
    if published:
        handles.append((Line2D([], [], **published_style(color="#555555")),))
        labels.append(_PUBLISHED)
    across = figure.get_figwidth() / (0.55 + 0.048 * max(map(len, labels), default=1))
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=max(1, min(len(labels), int(across))),
        handlelength=4.0,
        columnspacing=1.4,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0.4)},
    )


def caption(figure: Figure, text: str) -> None:
    """Write the title line under a figure, on a strip added to its height.

    Parameters
    ----------
    figure : Figure
        Grows by the height of the text.
    text : str
        Wrapped to the width of the figure.
    """
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(text, int(width * _CHARS_PER_INCH)) or [""]
    strip = _LINE_INCHES * len(lines) + 0.05
    total = height + strip
    figure.set_size_inches(width, total)
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0, strip / total, 1, height / total))
    else:
        figure.subplots_adjust(bottom=(strip + 0.4) / total)
    with mpl.rc_context(RC):
        figure.text(
            0.5, 0.03 / total, "\n".join(lines), ha="center", va="bottom", fontsize=5.2,
            color="#444444", linespacing=1.25, gid="caption",
        )  # fmt: skip


def render(figure: Figure, kind: str) -> bytes:
    """Return the figure as bytes without dates, versions or random ids.

    Parameters
    ----------
    figure : Figure
        Any matplotlib figure.
    kind : {"png", "svg"}
        File format.

    Returns
    -------
    bytes
        The same for the same figure, however often and wherever it is drawn with these libraries.
    """
    metadata = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}[kind]
    buffer = io.BytesIO()
    engine = figure.get_layout_engine()
    if type(engine) is ConstrainedLayoutEngine:
        compress: bool = engine._compress  # type: ignore[attr-defined]
        figure.set_layout_engine(SteadyLayout(compress=compress, **engine.get()))
    _restart_layout(figure)
    with mpl.rc_context(RC):
        figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def _restart_layout(figure: Figure) -> None:
    """Put the panels back on their grid.

    Each draw goes on from the layout of the one before and moves it a little, so a figure that was
    shown first would be saved as other bytes than one that was not.
    """
    for axes in figure.axes:
        grid = axes.get_subplotspec()
        if grid is not None and axes.get_in_layout():
            _place(axes, grid.get_position(figure))


def _place(axes: Axes, box: Bbox) -> None:
    """Move a panel that stays in the layout; `set_position` alone takes it out."""
    axes.set_position(box)
    axes.set_in_layout(True)
