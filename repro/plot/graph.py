"""Weighted graphs of jobs with the edges of a matching in bold."""

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
    """Draw nodes on a circle and edges with their weights; matched edges are thick and solid.

    ``edges`` has a row per edge. Its columns ``ends`` are the two nodes, ``weight`` is the number
    on the edge, ``chosen`` says whether the matching has it. ``notes`` are the second lines in the
    nodes.
    """
    axes = panel_axes(panel, height=2.4)
    graph = nx.from_pandas_edgelist(edges, *ends, [weight, chosen])
    positions = nx.circular_layout(graph)
    for in_matching, color, width, line in ((0, "#9a9a9a", 0.9, "--"), (1, "#514b8a", 2.6, "-")):
        edge_list = [(a, b) for a, b, matched in graph.edges(data=chosen) if matched == in_matching]
        nx.draw_networkx_edges(
            graph,
            positions,
            edgelist=edge_list,
            ax=axes,
            edge_color=color,
            width=width,
            style=line,
            node_size=700,
        )
    nx.draw_networkx_nodes(
        graph,
        positions,
        ax=axes,
        node_color="white",
        edgecolors="#1c1c1c",
        linewidths=0.8,
        node_size=700,
    )
    texts = {node: f"{node}\n{notes[node]}" if notes else node for node in graph}
    nx.draw_networkx_labels(graph, positions, texts, ax=axes, font_size=7)
    weights = {(a, b): f"{number:.3g}" for a, b, number in graph.edges(data=weight)}
    # The diagonals of a square meet in the middle, so labels are moved off it.
    nx.draw_networkx_edge_labels(
        graph,
        positions,
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
