"""``repro policies`` lists them; ``repro new-policy NAME`` writes one to fill in, with its test."""

import dataclasses
import json
import keyword
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from repro.base import paths
from repro.base.errors import ParamError
from repro.files.whole import write_whole
from repro.model.policy import policies, spellings

_TEMPLATES = paths.PACKAGE / "cli" / "templates"


def policies_(
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document, nothing else.")
    ] = False,
) -> None:
    """List the scheduling policies with their parameters."""
    rows = [_row(name) for name in policies]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        settings = ", ".join(f"{name}={value}" for name, value in row["parameters"].items())
        typer.echo(f"{row['name']:<{width}}  {row['summary']}")
        if settings:
            typer.echo(f"{'':<{width}}  --set {settings}")


def _row(name: str) -> dict[str, Any]:
    cls = policies[name]
    summary = (cls.__doc__ or "").strip().splitlines()
    return {
        "name": name,
        "summary": summary[0] if summary else "",
        "parameters": {
            name: _default(field)
            for name, field in zip(spellings(cls), dataclasses.fields(cls), strict=True)
        },
        "needs": sorted(cls.needs),
        "placement": cls.placement,
    }


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    return "…" if field.default_factory is dataclasses.MISSING else repr(field.default_factory())


def new_policy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Registered name, such as my-las.")],
    package: Annotated[
        bool, typer.Option("--package", help="Write a package of its own into the folder NAME.")
    ] = False,
) -> None:
    """Write repro/policies/NAME.py and its test, ready to run and to change.

    With --package, and outside a checkout, it is a package of its own: once it is installed, its
    policy is found by name like any other.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise ParamError(
            f"policy name {name!r}: use lower-case letters, digits and single hyphens, "
            "beginning with a letter, such as my-las"
        )
    module = name.replace("-", "_")
    root = paths.checkout()
    # a package that was installed does not read the files of a checkout
    inside = not package and root is not None and root == paths.PACKAGE.parent
    if inside and root is not None:
        folders = {"policy.py": root / "repro/policies", "test.py": root / "tests/unit/policies"}
    else:
        root = Path.cwd() / name
        folders = dict.fromkeys(("policy.py", "test.py", "pyproject.toml"), root)
    named = {"policy.py": f"{module}.py", "test.py": f"test_{module}.py"}
    files = {
        folder / named.get(part, part): (_TEMPLATES / f"{part}.txt").read_text("utf-8")
        for part, folder in folders.items()
    }
    if name in policies or any(path.exists() for path in files):
        raise ParamError(f"policy {name!r} exists already; choose another name")
    words = {
        "name": name,
        "module": module,
        "package": "repro.policies." if inside else "",
        "cls": "".join(part.capitalize() for part in name.split("-")),
        "title": name.replace("-", " ").capitalize(),
    }
    for path, text in files.items():
        write_whole(path, text.format(**words).encode())
        typer.echo(f"wrote {path.relative_to(root if inside else Path.cwd())}")
    then = f"pytest -k {module}" if inside else f"pip install -e ./{name} and pytest {name}"
    typer.echo(f"next: fill in decide(), then {then}")
