"""Draw the subpackages layer by layer and count their lines: `make architecture`."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import NamedTuple

import marks
import matplotlib

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "repro"
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "architecture.svg"
#: Width of the picture, height of the heading of a box and of a line of text below it (inch).
WIDTH = 11.0
HEADING = 0.68
LINE = 0.16
#: Characters of 9 points per inch.
CHARACTERS = 12.0


class Count(NamedTuple):
    """Files and lines of a package, and how many of the lines are docstrings."""

    files: int = 0
    lines: int = 0
    docstrings: int = 0

    def plus(self, other: Count) -> Count:
        """Add two counts."""
        return Count(*(number + added for number, added in zip(self, other, strict=True)))


def package_layers() -> list[list[str]]:
    """Subpackages of each layer, top layer first, by the import contract in pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(
        contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers"
    )
    return [re.split(r"\s*[:|]\s*", layer) for layer in layers]


def count_file(path: Path) -> Count:
    """Count the lines and the docstring lines of a file."""
    text = path.read_text()
    docstrings = 0
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            docstrings += (first.end_lineno or 0) - first.lineno + 1
    return Count(1, text.count("\n"), docstrings)


def counts() -> dict[str, Count]:
    """Count the files and lines of every subpackage and of single files at the top, by name."""
    sums: dict[str, Count] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        sums[name] = sums.get(name, Count()).plus(count_file(path))
    return sums


def purpose(name: str) -> str:
    """First line of the docstring of a subpackage."""
    path = PACKAGE / name / "__init__.py"
    line = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0]
    return line.rstrip(".").replace("`", "")


def table(sums: dict[str, Count]) -> str:
    """Write the counts as a Markdown table."""
    rows = ["| subpackage | files | lines | docstrings |", "| --- | ---: | ---: | ---: |"]
    ordered = [name for floor in package_layers() for name in floor if name in sums]
    total = Count()
    for name in [*ordered, *sorted(set(sums) - set(ordered))]:
        count = sums[name]
        total = total.plus(count)
        share = count.docstrings / max(count.lines, 1)
        rows.append(f"| {name} | {count.files} | {count.lines:,} | {share:.0%} |")
    share = total.docstrings / total.lines
    rows.append(f"| **all** | **{total.files}** | **{total.lines:,}** | **{share:.0%}** |")
    return "\n".join(rows)


def draw(sums: dict[str, Count], picture: Path = PICTURE) -> None:
    """Draw the subpackages layer by layer: name, purpose, lines."""
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "repro"
    matplotlib.rcParams["svg.fonttype"] = "none"
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    layers = package_layers()
    texts = {
        name: textwrap.wrap(purpose(name), int((WIDTH / len(names) - 0.3) * CHARACTERS))
        for names in layers
        for name in names
    }
    heights = [HEADING + LINE * max(len(texts[name]) for name in names) for names in layers]
    plot, axes = plt.subplots(figsize=(WIDTH, sum(heights) + 0.4))
    axes.set(xlim=(0, WIDTH), ylim=(-0.4, sum(heights)))
    # one unit is one inch
    axes.set_position((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    top = sum(heights)
    for names, height in zip(layers, heights, strict=True):
        width = WIDTH / len(names)
        for column, name in enumerate(names):
            left = column * width + 0.05
            corner = (left, top - height + 0.05)
            box = Rectangle(corner, width - 0.1, height - 0.1, fc="#e8eff6", ec="#40566b")
            axes.add_patch(box)
            axes.text(left + 0.1, top - 0.13, name, va="top", fontsize=11, weight="bold")
            size = f"{sums[name].files} files, {sums[name].lines:,} lines"
            axes.text(left + 0.1, top - 0.34, size, va="top", fontsize=8, color="#555")
            axes.text(left + 0.1, top - 0.52, "\n".join(texts[name]), va="top", fontsize=9)
        top -= height
    axes.text(
        0.05,
        -0.05,
        "A file imports from its own subpackage and from the layers below. "
        "Subpackages of one layer do not import each other.",
        va="top",
        fontsize=9,
    )
    plot.savefig(picture, metadata={"Date": None}, bbox_inches="tight")
    plt.close(plot)


def main() -> int:
    """Write the picture and the counts."""
    sums = counts()
    draw(sums)
    print(f"{PICTURE.name} written")
    marks.write(PAGE, "counts", table(sums))
    return 0


if __name__ == "__main__":
    sys.exit(main())
