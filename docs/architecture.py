"""Draw the floors of the package and count its lines: `make architecture`."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import marks
import matplotlib

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "repro"
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "architecture.svg"


class Count(NamedTuple):
    """Files and lines of a package, and how many of the lines are docstrings."""

    files: int = 0
    lines: int = 0
    docstrings: int = 0

    def plus(self, other: Count) -> Count:
        """Return the sum of two counts."""
        return Count(*(mine + more for mine, more in zip(self, other, strict=True)))


def floors() -> list[list[str]]:
    """Return the packages of each floor, top floor first, as the import contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (one["layers"] for one in settings["contracts"] if one["type"] == "layers")
    return [re.split(r"\s*[:|]\s*", layer) for layer in layers]


def count_file(path: Path) -> Count:
    """Count the lines and the docstring lines of one file."""
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
    """Return the counts of every package and of the single files at the top, by name."""
    found: dict[str, Count] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        found[name] = found.get(name, Count()).plus(count_file(path))
    return found


def total(found: dict[str, Count]) -> Count:
    """Return the counts of the whole package."""
    whole = Count()
    for one in found.values():
        whole = whole.plus(one)
    return whole


def arrows() -> dict[tuple[str, str], int]:
    """Return how many files of a package import another one."""
    import grimp

    graph = grimp.build_graph("repro", include_external_packages=False)
    found: dict[tuple[str, str], int] = {}
    for module in graph.modules:
        for target in graph.find_modules_directly_imported_by(module):
            ends = [name.split(".")[1] for name in (module, target) if "." in name]
            if len(ends) == 2 and ends[0] != ends[1]:
                found[ends[0], ends[1]] = found.get((ends[0], ends[1]), 0) + 1
    return found


def purpose(name: str) -> str:
    """Return what a package says of itself, up to the first full stop or colon."""
    path = PACKAGE / name / "__init__.py"
    path = path if path.is_file() else PACKAGE / f"{name}.py"
    line = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0]
    return line.rstrip(".").replace("`", "")


def table(found: dict[str, Count]) -> str:
    """Return the counts as a Markdown table."""
    rows = ["| package | files | lines | docstrings |", "| --- | ---: | ---: | ---: |"]
    ordered = [name for floor in floors() for name in floor if name in found]
    rest = sorted(set(found) - set(ordered))
    for name in [*ordered, *rest]:
        one = found[name]
        share = one.docstrings / max(one.lines, 1)
        rows.append(f"| {name} | {one.files} | {one.lines:,} | {share:.0%} |")
    whole = total(found)
    share = whole.docstrings / whole.lines
    rows.append(f"| **all** | **{whole.files}** | **{whole.lines:,}** | **{share:.0%}** |")
    return "\n".join(rows)


def draw(found: dict[str, Count]) -> None:
    """Draw the floors: who imports whom, how large each is, what it is for."""
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "repro"
    matplotlib.rcParams["svg.fonttype"] = "none"
    import matplotlib.pyplot as plt

    names = [name for floor in floors() for name in floor]
    place = {name: number for number, name in enumerate(names)}
    plot, (who, size) = plt.subplots(
        1,
        2,
        sharey=True,
        figsize=(13, 0.3 * len(names) + 1.2),
        width_ratios=[1, 1.1],
        gridspec_kw={"wspace": 0.02},
    )
    for (one, other), files in arrows().items():
        if one in place and other in place:
            upward = place[other] < place[one]
            who.scatter(
                place[other],
                place[one],
                s=14 + 5 * files,
                lw=0,
                color="#c62828" if upward else "#40566b",
            )
    who.plot([-0.5, len(names) - 0.5], [-0.5, len(names) - 0.5], color="#999", lw=0.8)
    who.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    who.set_yticks(range(len(names)), names, fontsize=9)
    who.xaxis.tick_top()
    who.grid(color="#eee", lw=0.6)
    who.set_axisbelow(True)
    who.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5))
    who.set_xlabel(
        "A dot: files of the row import the column, larger where more do.\n"
        "Right of the line: downward. An import upward would be red, left of it."
    )
    lines = [found[name].lines / 1000 for name in names]
    size.barh(range(len(names)), lines, height=0.7, color="#9bb7d4")
    for name, long in zip(names, lines, strict=True):
        size.text(long + 0.05, place[name], purpose(name), va="center", fontsize=7.5)
    size.set(xlim=(0, 2.6 * max(lines)), xlabel="thousand lines, and what each floor is for")
    size.tick_params(left=False)
    for axes in (who, size):
        axes.spines[:].set_visible(False)
    plot.savefig(PICTURE, metadata={"Date": None}, bbox_inches="tight")
    plt.close(plot)


def main() -> int:
    """Write the picture and the counts."""
    found = counts()
    draw(found)
    print(f"{PICTURE.name} written")
    marks.write(PAGE, "counts", table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
