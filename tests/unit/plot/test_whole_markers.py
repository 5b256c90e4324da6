"""Markers at the ends of the axes are whole, and points outside have none."""

from __future__ import annotations

import numpy as np
import pytest

from repro.plot import new_figure
from repro.plot.style import render


def plotted(x, y, **style):
    """Line in axes from 0 to 10, after the figure is rendered."""
    figure, (axes,) = new_figure()
    axes.set(xlim=(0, 10), ylim=(0, 10))
    (line,) = axes.plot(x, y, **{"marker": "o", "linestyle": "none", "markersize": 6, **style})
    first = render(figure, "svg")
    assert render(figure, "svg") == first
    return line


@pytest.mark.parametrize("point", [(5, 0), (0, 5), (10, 5), (5, 10), (0, 0), (5, 0.1)])
@pytest.mark.parametrize("linestyle", ["none", "--"])
def test_a_marker_at_an_end_is_whole(point, linestyle):
    x, y = point
    assert not plotted([x, 5], [y, 5], linestyle=linestyle).get_clip_on()


def test_a_line_stays_as_it_is_if_no_marker_is_cut():
    assert plotted([5, 6], [5, 6]).get_clip_on()
    assert plotted([5, 6], [5, np.nan]).get_clip_on()
    # no markers, or none at the points at the ends
    assert plotted([0, 5], [0, 5], marker="").get_clip_on()
    assert plotted([0, 5], [0, 5], markevery=[]).get_clip_on()
    assert plotted([5, 0, 5], [5, 0, 5], markevery=2).get_clip_on()
    assert plotted([5, 0, 5], [5, 0, 5], markevery=slice(0, None, 2)).get_clip_on()


def test_a_part_of_a_marker_too_narrow_to_see_may_be_cut():
    figure, (axes,) = new_figure()
    axes.set(xlim=(0, 10), ylim=(0, 10))
    (line,) = axes.plot([5], [5], marker="o", markersize=6)
    render(figure, "svg")
    points_per_unit = axes.bbox.height * 72 / figure.dpi / 10
    reach = (6 + line.get_markeredgewidth()) / 2
    assert plotted([5], [(reach - 0.1) / points_per_unit]).get_clip_on()
    assert not plotted([5], [(reach - 0.2) / points_per_unit]).get_clip_on()


def test_a_marker_has_the_extents_of_its_shape():
    # A diamond reaches farther down than a horizontal stroke.
    assert not plotted([5], [0.2], marker="D").get_clip_on()
    assert plotted([5], [0.2], marker="_").get_clip_on()


@pytest.mark.parametrize("points", [3, 3000])
def test_points_outside_have_no_marker(points):
    x = np.linspace(-5, 10, points)
    line = plotted(x, np.full(points, 5.0))
    assert not line.get_clip_on()
    assert list(line.get_markevery()) == list(np.flatnonzero(x >= 0))


def test_a_line_that_leaves_the_axes_is_cut_there():
    assert plotted([0, 5, 20], [0, 5, 5], linestyle="-").get_clip_on()


def test_a_line_with_gaps_does_not_leave_the_axes():
    assert not plotted([0, np.nan, 5], [0, np.nan, 5], linestyle="-").get_clip_on()


def test_markers_at_lengths_of_a_line_are_left_to_the_axes():
    assert plotted([0, 5], [0, 5], linestyle="-", markevery=0.1).get_clip_on()
    assert plotted([0, 5], [0, 5], linestyle="-", markevery=(0.0, 0.1)).get_clip_on()


def test_reference_lines_are_left_to_the_axes():
    figure, (axes,) = new_figure()
    line = axes.axhline(0, marker="o")
    axes.set(ylim=(0, 10))
    render(figure, "svg")
    assert line.get_clip_on()
