"""Markers at the ends of the axes are plotted whole; points outside the axes have no marker."""

from numbers import Integral

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.transforms import Bbox

from repro.base.typing import Flags, Floats, Ints

#: Rounding error of a position (typographic points).
_ROUNDING_POINTS = 1e-3
#: The axes may cut this width of a marker, because nobody sees it (typographic points).
_UNSEEN_POINTS = 0.15


def show_whole_markers(axes: Axes) -> None:
    """Stop the axes from cutting the markers of points at the ends of the axes.

    The axes must have their final size, because markers do not shrink with the axes. Points
    outside get no marker. A line that leaves the axes stays cut, and so do its markers.
    """
    pixels_per_point = axes.get_figure(root=True).dpi / 72  # type: ignore[union-attr]
    size = np.array(axes.bbox.size, float) / pixels_per_point
    for line in axes.lines:
        # Reference lines have a transform of their own.
        if not line.get_clip_on() or line.get_transform() != axes.transData:
            continue
        marked = _marked_points(line)
        extents = _marker_extents(line)
        if extents is None or not marked.size:
            continue
        # Typographic points from the lower left corner of the axes.
        pixels = axes.transData.transform(np.asarray(line.get_xydata(), float))
        positions = (pixels - axes.bbox.p0) / pixels_per_point
        inside = _within(positions, positions, size, _ROUNDING_POINTS)
        shown = marked[inside[marked]]
        lower = positions[shown] + extents.p0
        upper = positions[shown] + extents.p1
        if _within(lower, upper, size, _UNSEEN_POINTS).all():
            continue
        outside = np.isfinite(positions).all(axis=1) & ~inside
        if outside.any():
            if line.get_linestyle() != "None":
                continue
            line.set_markevery(shown.tolist())
            # Of a long line, matplotlib keeps the part inside the axes. It must be chosen again.
            line.recache(always=True)
        line.set_clip_on(False)
        # The layout ignores the whole markers, so that a second picture has the same bytes.
        line.set_in_layout(False)


def _within(lower: Floats, upper: Floats, size: Floats, tolerance: float) -> Flags:
    """Whether boxes between two corners, (boxes, 2) each, are inside axes of a size, (2,)."""
    fits: Flags = (lower >= -tolerance) & (upper <= size + tolerance)
    return np.asarray(fits.all(axis=1), bool)


def _marked_points(line: Line2D) -> Ints:
    """Indices of the points of a line that have a marker."""
    every = line.get_markevery()
    points = np.arange(np.size(line.get_xdata()))
    if every is None or isinstance(every, Integral):
        return points[::every]
    # Markers at equal lengths of a line (float or tuple) may lie between two points.
    return points[:0] if isinstance(every, float | tuple) else points[every]


def _marker_extents(line: Line2D) -> Bbox | None:
    """Extents of a line's markers around their points (typographic points); None without marker."""
    style = MarkerStyle(line.get_marker())
    outline = style.get_path().transformed(style.get_transform())
    if not np.size(outline.vertices):
        return None
    corners = outline.get_extents().get_points() * line.get_markersize()
    return Bbox(corners).padded(line.get_markeredgewidth() / 2)
