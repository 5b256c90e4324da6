"""Graphs: jobs with the edges of a matching in bold, and the tree of a cluster."""

from collections.abc import Mapping
from typing import Any, Unpack

import networkx as nx
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from repro.plot.panel import PanelOptions, chart, owner, panel_axes


@chart
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


#: Height of a row of the tree of a cluster (inches).
_ROW_INCHES = 0.24
#: Distance between an entry and the vertical line on its left, as a fraction of a level.
_TRUNK = 0.08
#: Fill of the entries of such a tree that are not nodes.
_FILLS = {"root": "#1c1c1c", "domain": "#6d6d6d", "rack": "#b4b4b4"}
_UNTYPED = "#dcdaf0"


@chart
def topology_graph(outline: Any, root: Any, **panel: Unpack[PanelOptions]) -> Figure:
    """Draw the outline of a cluster from left to right: cluster, domains, racks, nodes.

    Parameters
    ----------
    outline : networkx.DiGraph
        A tree whose entries have ``label``, ``kind`` (root, domain, rack, node) and ``gpu_type``,
        such as `repro.model.cluster.outline.outline_of`.
    root : hashable
        Root of the tree.
    **panel
        Labels and panel of the chart.
    """
    panel.setdefault("columns", 2)
    positions = _tree_positions(outline, root)
    lowest = min(y for _, y in positions.values())
    axes = panel_axes(panel, height=_ROW_INCHES * (1.5 - lowest) + 0.3)
    deepest = max(x for x, _ in positions.values())
    for parent, child in outline.edges:
        (left, above), (right, below) = positions[parent], positions[child]
        corner = right - _TRUNK
        axes.plot(
            [left, corner, corner, right],
            [above, above, below, below],
            color="#9a9a9a",
            linewidth=0.8,
            zorder=0,
        )
    types = sorted({name for _, name in outline.nodes(data="gpu_type") if name is not None})
    palette = dict(zip(types, sns.color_palette("deep", len(types)).as_hex(), strict=True))
    for entry, values in outline.nodes(data=True):
        kind = values["kind"]
        fill = _FILLS.get(kind) or palette.get(values["gpu_type"], _UNTYPED)
        nx.draw_networkx_nodes(
            outline,
            positions,
            nodelist=[entry],
            ax=axes,
            node_color=fill,
            node_shape="s" if kind == "node" else "o",
            edgecolors="#1c1c1c",
            linewidths=0.6,
            node_size=42,
        )
        is_leaf = outline.out_degree(entry) == 0
        axes.annotate(
            values["label"],
            positions[entry],
            (6, 0) if is_leaf else (-3, 4),
            textcoords="offset points",
            ha="left",
            va="center" if is_leaf else "bottom",
            fontsize=7,
        )
    axes.set_axis_off()
    axes.set_xlim(-0.05, deepest + 0.95)
    axes.set_ylim(lowest - 0.6, 0.9)
    axes.set_title(panel.get("title", ""), loc="left")
    return owner(axes)


def _tree_positions(tree: Any, root: Any) -> dict[Any, tuple[float, float]]:
    """Position of each entry: its depth, and its row; an entry is in the middle of its children."""
    rows: dict[Any, float] = {}
    next_row = 0
    for entry in nx.dfs_postorder_nodes(tree, root):
        children = list(tree.successors(entry))
        if children:
            rows[entry] = (rows[children[0]] + rows[children[-1]]) / 2
        else:
            rows[entry] = float(next_row)
            next_row -= 1
    depths = nx.single_source_shortest_path_length(tree, root)
    return {entry: (float(depths[entry]), row) for entry, row in rows.items()}
