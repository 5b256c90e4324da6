"""Graphs of jobs: weighted edges, the chosen ones bold."""

from collections.abc import Mapping
from typing import Unpack

import networkx as nx
import pandas as pd
from matplotlib.figure import Figure

from repro.plot.panel import PanelOptions, owner, panel_axes
from repro.plot.style import styled


@styled
def matching_graph(
    edges: pd.DataFrame,
    *,
    ends: tuple[str, str],
    weight: str,
    chosen: str,
    notes: Mapping[str, str] | None = None,
    **panel: Unpack[PanelOptions],
) -> Figure:
    """Draw nodes on a circle and every edge with its weight; chosen edges are thick and solid.

    ``edges`` has a row per edge; ``ends``, ``weight`` and ``chosen`` are columns: the two nodes,
    the number written on the edge, and whether it belongs to the matching. ``notes``: a second line
    in each node.
    """
    axes = panel_axes(panel, height=2.4)
    graph = nx.from_pandas_edgelist(edges, *ends, [weight, chosen])
    at = nx.circular_layout(graph)
    for picked, color, width, line in ((0, "#9a9a9a", 0.9, "--"), (1, "#514b8a", 2.6, "-")):
        some = [(one, other) for one, other, of in graph.edges(data=chosen) if of == picked]
        nx.draw_networkx_edges(
            graph,
            at,
            edgelist=some,
            ax=axes,
            edge_color=color,
            width=width,
            style=line,
            node_size=700,
        )
    nx.draw_networkx_nodes(
        graph, at, ax=axes, node_color="white", edgecolors="#1c1c1c", linewidths=0.8, node_size=700
    )
    texts = {node: f"{node}\n{notes[node]}" if notes else node for node in graph}
    nx.draw_networkx_labels(graph, at, texts, ax=axes, font_size=7)
    weights = {(one, other): f"{of:.3g}" for one, other, of in graph.edges(data=weight)}
    # Off the middle, where the diagonals of a square meet.
    nx.draw_networkx_edge_labels(
        graph,
        at,
        weights,
        ax=axes,
        font_size=7,
        rotate=False,
        label_pos=0.36,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )
    axes.set_axis_off()
    axes.margins(0.16)
    axes.set_title(panel.get("title", ""), loc="left")
    return owner(axes)
