"""``repro policies`` lists policies; ``repro new-policy NAME`` writes a policy and its test."""

import dataclasses
import importlib
import json
import keyword
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from repro.base import paths
from repro.base.errors import ParamError, refuse_unknown
from repro.cli.lines import complain
from repro.files.whole import write_whole
from repro.model.families import ALIASES, alias_note
from repro.model.policy import parameter_names, policies

#: Folders of `repro.policies` for a new policy, the default first.
PAPERS = ("own", "tiresias", "muri", "gavel", "liquid", "pcs")

_TEMPLATES = Path(__file__).with_name("templates")


def policies_(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One policy, or a family such as las.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document, nothing else.")
    ] = False,
) -> None:
    """List the scheduling policies with their parameters."""
    if name is not None:
        _show(name, as_json)
        return
    rows = [_policy_row(name) for name in policies]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        settings = ", ".join(f"{name}={value}" for name, value in row["parameters"].items())
        typer.echo(f"{row['name']:<{width}}  {row['summary']}")
        if settings:
            typer.echo(f"{'':<{width}}  --set {settings}")


def _show(name: str, as_json: bool) -> None:
    """Print one policy: its summary, its paper and a line for each parameter."""
    if name not in policies and name in ALIASES:
        complain(alias_note(name, {known: policies[known] for known in policies}))
        name = ALIASES[name]
    row = _policy_row(name) | {"paper": _paper_of(policies[name])}
    if as_json:
        typer.echo(json.dumps(row, indent=2, ensure_ascii=False))
        return
    typer.echo(f"{name}  {row['summary']}")
    typer.echo(f"{'':<{len(name)}}  {row['paper']}")
    for parameter, value in row["parameters"].items():
        typer.echo(f"{'':<{len(name)}}  --set {parameter}={value}")


def _paper_of(policy: type) -> str:
    """Paper of the module or package that a policy is in, or else the name of that package."""
    package = policy.__module__.rpartition(".")[0] or policy.__module__
    of_package = getattr(importlib.import_module(package), "PAPER", package)
    return str(getattr(importlib.import_module(policy.__module__), "PAPER", of_package))


def _policy_row(name: str) -> dict[str, Any]:
    """Name, summary, parameters, needs and placement of a policy."""
    cls = policies[name]
    summary = (cls.__doc__ or "").strip().splitlines()
    return {
        "name": name,
        "summary": summary[0] if summary else "",
        "parameters": {
            parameter: _default(field)
            for parameter, field in zip(parameter_names(cls), dataclasses.fields(cls), strict=True)
        },
        "needs": sorted(cls.needs),
        "placement": cls.placement,
    }


def _default(field: dataclasses.Field[Any]) -> str:
    """Default of a parameter as text; ``…`` if it has none."""
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    return "…" if field.default_factory is dataclasses.MISSING else repr(field.default_factory())


def new_policy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Registered name, such as my-las.")],
    paper: Annotated[
        str, typer.Option(help=f"Folder of the policy: {', '.join(PAPERS)}.")
    ] = PAPERS[0],
    package: Annotated[
        bool, typer.Option("--package", help="Write a package of its own into the folder NAME.")
    ] = False,
) -> None:
    """Write repro/policies/PAPER/NAME.py, an ordering policy, and its test.

    Both run without changes. With --package, or outside a checkout, the folder NAME becomes a
    package. Once the package is installed, repro finds its policy by name.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise ParamError(
            f"policy name {name!r}: use lower-case letters, digits and single hyphens, "
            "beginning with a letter, such as my-las"
        )
    refuse_unknown("unknown folder of policies", [paper], PAPERS)
    root = paths.checkout()
    # a repro that is installed elsewhere would not find a policy written into this checkout
    if not package and root is not None and root == paths.PACKAGE.parent:
        _write_module(name, paper, root)
    elif paper != PAPERS[0]:
        raise ParamError(
            f"--paper {paper}: applies only in the checkout that repro runs from, without "
            "--package; here the policy becomes a package of its own; leave --paper out"
        )
    else:
        _write_package(name, Path.cwd())


def _write_module(name: str, paper: str, root: Path) -> None:
    """Write a policy and its test into the folders of a paper in the checkout ``root``."""
    module = name.replace("-", "_")
    home = root / "repro" / "policies" / paper
    tests = root / "tests" / "unit" / "policies" / paper
    files = {home / f"{module}.py": "policy.py", tests / f"test_{module}.py": "test.py"}
    _refuse_taken(name, files)
    if not (home / "__init__.py").exists():
        files = {home / "__init__.py": "init.py", **files}
    _write_files(name, files, f"repro.policies.{paper}.", root)
    typer.echo(f"next: change the key and the test, then pytest -k {module}")


def _write_package(name: str, here: Path) -> None:
    """Write a package with a policy, its test and its entry point into the folder ``here``."""
    module = name.replace("-", "_")
    files = {
        here / name / f"{module}.py": "policy.py",
        here / name / f"test_{module}.py": "test.py",
        here / name / "pyproject.toml": "pyproject.toml",
    }
    _refuse_taken(name, files)
    _write_files(name, files, "", here)
    typer.echo(f"next: change the key and the test, then pip install -e ./{name} and pytest {name}")


def _refuse_taken(name: str, files: Iterable[Path]) -> None:
    """Refuse the name of a registered policy, and a name whose files exist."""
    if name in policies or any(path.exists() for path in files):
        raise ParamError(f"policy {name!r} exists already; choose another name")


def _write_files(name: str, files: Mapping[Path, str], package: str, root: Path) -> None:
    """Write files from their templates and print their paths below ``root``."""
    fields = {
        "name": name,
        "module": name.replace("-", "_"),
        "package": package,
        "cls": "".join(part.capitalize() for part in name.split("-")),
        "title": name.replace("-", " ").capitalize(),
    }
    for path, template in files.items():
        text = (_TEMPLATES / f"{template}.txt").read_text("utf-8")
        write_whole(path, text.format(**fields).encode())
        typer.echo(f"wrote {path.relative_to(root)}")
