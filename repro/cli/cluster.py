"""``repro cluster show``: the nodes, racks and domains of a cluster, as text, picture or JSON."""

import importlib
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from repro.base.counts import quantity
from repro.base.errors import ParamError
from repro.base.extras import needed_for
from repro.cli import complete
from repro.cli.lines import say
from repro.figures.saved import to_json
from repro.files.whole import write_whole
from repro.model.cluster.outline import EqualNodes, domains_of, outline_of
from repro.model.cluster.spec import Cluster
from repro.model.cluster.topology import ROOT, nodes_of_kind

_FORMATS = (".svg", ".png")
#: Nodes that a picture shows one by one.
_MOST_NODES = 24
#: Letters of the name of the cluster in a picture.
_MOST_LETTERS = 80


def show(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC|FILE",
            help="Nodes x GPUs, such as 8x8; 8x4:v100 with a GPU type; 5x32x8 with racks; or a "
            "file of nodes.",
            autocompletion=complete.clusters,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Picture to write, .svg or .png.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, nothing else.")] = False,
) -> None:
    """Print the topology of a cluster as a tree, with its totals; equal nodes are counted."""
    if out is not None:
        _check_out(out)
    cluster = Cluster.parse(spec)
    if out is not None:
        _draw(cluster, out)
    if as_json:
        typer.echo(to_json(_report(cluster)).decode().rstrip())
    else:
        say("\n".join([*_tree_lines(cluster), *_total_lines(cluster)]))


def _check_out(out: Path) -> None:
    """Refuse a file name that does not end like a picture's, and a missing folder."""
    if out.suffix.lower() not in _FORMATS:
        raise ParamError(f"--out {out}: give a name that ends in {' or '.join(_FORMATS)}")
    if not out.parent.is_dir():
        raise ParamError(f"--out {out}: no folder {out.parent}; make it first")


def _draw(cluster: Cluster, out: Path) -> None:
    """Write a picture of the outline of a cluster."""
    with needed_for("a picture of a cluster (--out)", "leave out --out"):
        graph = importlib.import_module("repro.plot.graph")
        style = importlib.import_module("repro.plot.style")
    outline = outline_of(cluster, max_listed_nodes=_MOST_NODES)
    # the title has the name of the cluster, so the root shows the number of GPUs instead
    outline.nodes[ROOT]["label"] = quantity(cluster.num_gpus, "GPU")
    name = str(cluster)
    title = name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"
    chart = graph.topology_graph(outline, ROOT, title=title)
    write_whole(out, style.render(chart, out.suffix.lower()[1:]), parents=False)


def _tree_lines(cluster: Cluster) -> list[str]:
    """Tree of domains, racks and equal nodes, line by line."""
    # networkx loads slowly, so it is imported here; the tree of the cluster needs it, too
    from networkx import Graph, generate_network_text

    outline = Graph(outline_of(cluster, merge_equal_nodes=True))
    return list(generate_network_text(outline, with_labels=True, sources=[ROOT]))


def _total_lines(cluster: Cluster) -> list[str]:
    """Totals of a cluster, line by line."""
    report = _report(cluster)
    by_type = [f"{count:,} {name}" for name, count in report["gpus_by_type"].items()]
    lines = {
        "nodes": f"{report['nodes']:,}",
        "GPUs": f"{report['gpus']:,}{' (' + ', '.join(by_type) + ')' if by_type else ''}",
        "racks": f"{report['racks']:,}",
        "domains": f"{report['domains']:,}",
    }
    if report["used_gpus"]:
        lines["in use"] = f"{quantity(report['used_gpus'], 'GPU')} that jobs cannot get"
    return [f"{name:<7}  {text}" for name, text in lines.items()]


def _report(cluster: Cluster) -> dict[str, Any]:
    """Totals and tree of a cluster, for JSON."""
    domains = domains_of(cluster)
    return {
        "cluster": str(cluster),
        "nodes": cluster.num_nodes,
        "gpus": cluster.num_gpus,
        "gpus_by_type": cluster.gpu_types,
        "used_gpus": sum(node.used for node in cluster.nodes),
        "racks": len(nodes_of_kind(cluster.topology, "rack")),
        "domains": len(domains),
        "tree": [
            {
                "domain": domain.number,
                "racks": [
                    {"switch": rack.switch, "nodes": [_node_row(equal) for equal in rack.nodes]}
                    for rack in domain.racks
                ],
            }
            for domain in domains
        ],
    }


def _node_row(equal: EqualNodes) -> dict[str, Any]:
    """Number and values of equal nodes; an infinite limit is None."""
    values = equal._asdict()
    row = {"count": values.pop("number"), **values}
    return {name: None if value == math.inf else value for name, value in row.items()}
