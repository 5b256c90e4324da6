"""Graphs of jobs: weighted edges, the chosen ones bold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import networkx as nx
import pandas as pd
from matplotlib.figure import Figure

from repro.plot.panel import Panel, owner, panel_axes
from repro.plot.style import styled

_CHOSEN, _OTHER = "#1f5fb4", "#9a9a9a"


@styled
def matching_graph(
    edges: pd.DataFrame,
    *,
    ends: tuple[str, str],
    weight: str,
    chosen: str,
    notes: Mapping[str, str] | None = None,
    **panel: Unpack[Panel],
) -> Figure:
    """Draw nodes on a circle and every edge with its weight; chosen edges are thick and solid.

    Parameters
    ----------
    edges : DataFrame
        One row per edge.
    ends : tuple of str
        Columns of the two nodes.
    weight, chosen : str
        Columns of the number written on the edge and of whether it belongs to the matching.
    notes : mapping of str to str, optional
        A second line in each node.
    **panel
        Title and place, see `Panel`.

    Examples
    --------
    >>> rows = pd.DataFrame({"a": ["A"], "b": ["B"], "gamma": [1.0], "in": [True]})
    >>> chart = matching_graph(rows, ends=("a", "b"), weight="gamma", chosen="in")
    >>> [text.get_text() for text in chart.axes[0].texts]
    ['A', 'B', '1']
    """
    axes = panel_axes(panel, height=2.4)
    graph = nx.Graph()
    for one, other, value, picked in zip(
        edges[ends[0]], edges[ends[1]], edges[weight], edges[chosen], strict=True
    ):
        graph.add_edge(str(one), str(other), weight=f"{value:.3g}", picked=bool(picked))
    at = nx.circular_layout(graph)
    for picked, color, width, line in ((False, _OTHER, 0.9, "--"), (True, _CHOSEN, 2.6, "-")):
        some = [(a, b) for a, b, of in graph.edges(data="picked") if of is picked]
        nx.draw_networkx_edges(
            graph, at, edgelist=some, ax=axes, edge_color=color, width=width, style=line,
            node_size=700,
        )  # fmt: skip
    nx.draw_networkx_nodes(
        graph, at, ax=axes, node_color="white", edgecolors="#1c1c1c", linewidths=0.8, node_size=700
    )
    texts = {node: f"{node}\n{notes[node]}" if notes else node for node in graph}
    nx.draw_networkx_labels(graph, at, texts, ax=axes, font_size=7)
    # Off the middle, where the diagonals of a square meet.
    nx.draw_networkx_edge_labels(
        graph, at, nx.get_edge_attributes(graph, "weight"), ax=axes, font_size=7, rotate=False,
        label_pos=0.36, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )  # fmt: skip
    axes.set_axis_off()
    axes.margins(0.16)
    axes.set_title(panel.get("title", ""), loc="left")
    return owner(axes)
