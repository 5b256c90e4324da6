"""The style of every figure, captions, and picture files with the same bytes on every machine."""

import base64
import functools
import io
import re
import textwrap
from collections.abc import Callable
from typing import Any, ClassVar, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from repro.plot.whole_markers import show_whole_markers

#: Height of a line of a caption (inches) and its letters per inch.
_LINE_INCHES = 0.11
_CHARS_PER_INCH = 24
#: Digits of a panel's position: far below a pixel, far above rounding errors.
_POSITION_DIGITS = 10

#: Number of marks above which an SVG has its large series as pixels. A symbol is a mark. Five
#: points of a line, or of an area's border, also count as a mark: they take as many bytes as a
#: symbol.
MOST_MARKS = 20_000
_POINTS_PER_MARK = 5
#: Number of marks above which a series becomes pixels in an SVG with more than `MOST_MARKS`.
_LARGE_SERIES = 100
#: Other fonts for readers without ours. Verdana has nearly the same widths.
_FONT = re.compile(rb"font-family: 'DejaVu Sans'(?!,)")
_FONTS = b"font-family: 'DejaVu Sans', Verdana, sans-serif"

#: Lengths of ticks, typographic points.
_TICKS = {"major": 3, "minor": 2}
# seaborn's theme, with the sizes that fit a paper's columns.
RC: Any = {
    **sns.axes_style("ticks"),
    **sns.plotting_context("paper"),
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
    **{f"{axis}tick.{level}.size": size for axis in "xy" for level, size in _TICKS.items()},
    **{f"{axis}tick.{level}.width": 0.6 for axis in "xy" for level in _TICKS},
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
    """A figure that a notebook shows without pyplot, as an SVG."""

    #: whether a notebook has shown it
    shown = False
    #: adds what needs every panel, such as a shared legend; None once it has run
    completion: Callable[[Figure], object] | None = None
    #: changes a chart before a notebook shows it; None unless the user changed inputs of the figure
    before_shown: ClassVar[Callable[[Figure], None] | None] = None
    #: Charts whose cells wait for their picture. None: cells show a picture at once. A batch waits
    #: for the saved file, so that each chart is drawn once.
    waiting: ClassVar[list["Chart"] | None] = None
    #: the cell's output that waits for the picture
    _output: Any = None

    def complete(self) -> None:
        """Add what needs every panel, before the chart is shown or saved.

        A second call changes nothing.
        """
        completion = self.completion
        self.completion = None
        if completion is not None:
            completion(self)

    # IPython calls this before any formatter that pyplot registers for figures.
    def _ipython_display_(self) -> None:
        from IPython.display import display

        self.complete()
        if Chart.before_shown is not None:
            Chart.before_shown(self)
        if Chart.waiting is None:
            self.display_svg(render(self, "svg"))
            return
        # True: a new id
        display_id = self._output.display_id if self._output is not None else True
        text = {"text/plain": "<picture, shown once the figure is saved>"}
        self._output = display(text, raw=True, display_id=display_id)  # type: ignore[no-untyped-call]
        if self not in Chart.waiting:
            Chart.waiting.append(self)

    def display_svg(self, svg: bytes) -> None:
        """Show the chart's SVG, in the cell that waits for it or else in the running cell."""
        from IPython.display import display

        # JupyterLab shows no output of type image/svg+xml in a notebook that it does not trust,
        # such as one that a batch has run.
        address = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
        # as large as a PNG of the chart; pages show it at most as wide as their text
        width = round(self.get_figwidth() * RC["savefig.dpi"])
        image = f'<img src="{address}" width="{width}" alt="chart">'
        picture = {"text/html": image, "text/plain": "<picture>"}
        if self._output is None:
            display(picture, raw=True)  # type: ignore[no-untyped-call]
        else:
            self._output.update(picture, raw=True)
        self.shown = True

    @classmethod
    def show_waiting(cls, without: Figure | None = None) -> None:
        """Show the charts that cells wait for, except one; later charts are shown at once."""
        charts = cls.waiting or []
        cls.waiting = None
        for chart in charts:
            if chart is not without:
                chart.display_svg(render(chart, "svg"))


class SteadyLayout(ConstrainedLayoutEngine):
    """Constrained layout with the same positions, to the last bit, in every process.

    Its solver orders unknowns by their addresses in memory, which changes the last bits. An SVG
    names clip paths by a hash of all bits.
    """

    def execute(self, fig: Figure) -> Any:
        """Lay the figure out, round the position of each panel, and make its markers whole."""
        grids = super().execute(fig)
        for axes in fig.axes:
            if axes.get_in_layout():
                corners = axes.get_position(original=True).get_points()
                _move(axes, Bbox(np.round(corners, _POSITION_DIGITS)))
            show_whole_markers(axes)
        return grids


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run a drawing function under the project's style, without a change of global settings."""

    @functools.wraps(draw)
    def under_style(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(RC):
            return draw(*args, **kwargs)

    return under_style


def caption(figure: Figure, text: str) -> None:
    """Add a strip with a text, wrapped to the figure's width, at the bottom of a figure."""
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
            0.5,
            0.03 / total,
            "\n".join(lines),
            ha="center",
            va="bottom",
            fontsize=5.2,
            color="#444444",
            linespacing=1.25,
            gid="caption",
        )


def render(figure: Figure, file_format: str) -> bytes:
    """Draw a figure as ``png`` or ``svg``; equal figures give equal bytes on every machine."""
    metadata = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}[file_format]
    buffer = io.BytesIO()
    engine = figure.get_layout_engine()
    if type(engine) is ConstrainedLayoutEngine:
        compress: bool = engine._compress  # type: ignore[attr-defined]
        figure.set_layout_engine(SteadyLayout(compress=compress, **engine.get()))
    # A draw starts from the positions that the last draw left, so put panels back on their grid.
    for axes in figure.axes:
        grid = axes.get_subplotspec()
        if grid is not None and axes.get_in_layout():
            _move(axes, grid.get_position(figure))
    if file_format == "svg":
        _rasterise(figure)
    with mpl.rc_context(RC):
        figure.savefig(buffer, format=file_format, metadata=metadata)
    return _FONT.sub(_FONTS, buffer.getvalue()) if file_format == "svg" else buffer.getvalue()


def _rasterise(figure: Figure) -> None:
    """Turn the large series of an SVG with more than `MOST_MARKS` marks into pixels.

    A small series would take more bytes as pixels.
    """
    series: list[tuple[float, Artist]] = []
    for axes in figure.axes:
        series += [(_marks_of_line(line), line) for line in axes.lines]
        series += [(_marks_of_group(group), group) for group in axes.collections]
    if sum(marks for marks, _ in series) > MOST_MARKS:
        for marks, artist in series:
            artist.set_rasterized(bool(marks > _LARGE_SERIES))


def _marks_of_line(line: Line2D) -> float:
    """Number of marks of a line."""
    points = np.size(line.get_xdata())
    has_symbol = line.get_marker() not in ("None", "none", " ", "", None)
    each_point = has_symbol and line.get_markevery() is None
    return points if each_point else points / _POINTS_PER_MARK


def _marks_of_group(group: Collection) -> float:
    """Number of marks of symbols, areas or cells that were plotted together."""
    corners = sum(np.shape(path.vertices)[0] for path in group.get_paths())
    return float(max(corners / _POINTS_PER_MARK, np.shape(group.get_offsets())[0]))


def _move(axes: Axes, box: Bbox) -> None:
    """Move a panel and put it back into the layout, from which `set_position` removes it."""
    axes.set_position(box)
    axes.set_in_layout(True)
