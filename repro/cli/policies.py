"""``repro policies`` lists and explains policies; ``repro new-policy`` writes one and its test."""

import dataclasses
import importlib.util
import json
import keyword
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from repro.base import paths
from repro.base.errors import ParamError, refuse_unknown
from repro.cli import complete
from repro.cli.lines import complain, say
from repro.cli.policy_facts import BASE_COLUMNS, COLUMNS, Facts, facts, grouped
from repro.files.whole import write_whole
from repro.model.families import ALIASES, alias_note
from repro.model.policy import policies

#: Folders of `repro.policies` for a new policy, the default first.
PAPERS = ("own", "tiresias", "muri", "gavel", "liquid", "pcs")

#: Width of lines, and of the column of labels (characters).
_WIDTH = 100
_LABEL = 12
#: Whether a policy divides GPUs -> what a running job holds.
_GPUS = {
    True: "a job may hold fewer GPUs than its demand, or more",
    False: "a running job holds its demand",
}

_TEMPLATES = Path(__file__).with_name("templates")


def policies_(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A policy, an alias such as fifo, or a family such as las.",
            autocompletion=complete.policies_and_families,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document, nothing else.")
    ] = False,
) -> None:
    """List the policies by paper, or explain one of them.

    With NAME: rule and formula, parameters with meaning and unit, columns of the trace, knowledge,
    GPU types, rule sets, placement and an example.
    """
    if name is not None:
        _explain(name, as_json)
        return
    all_facts = [facts(name) for name in policies]
    if as_json:
        rows = [_row(entry) for entry in all_facts]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    summaries = {entry.name: entry.summary for entry in all_facts}
    width = max(map(len, summaries), default=0)
    for title, names in grouped(summaries).items():
        say(title)
        for name in names:
            say(f"  {name:<{width}}  {summaries[name]}")
        say("")
    say("`repro policies NAME` explains one, such as `repro policies tiresias-l`.")


def _explain(name: str, as_json: bool) -> None:
    """Print all facts about one policy."""
    if name not in policies and name in ALIASES:
        complain(alias_note(name, {known: policies[known] for known in policies}))
        name = ALIASES[name]
    entry = facts(name)
    if as_json:
        typer.echo(json.dumps(_row(entry) | _details(entry), indent=2, ensure_ascii=False))
        return
    for line in explanation(entry):
        say(line)


def _row(entry: Facts) -> dict[str, Any]:
    """Facts of a policy, for the list of policies and for the policy's own document."""
    return {
        "name": entry.name,
        "summary": entry.summary,
        "parameters": {parameter.name: parameter.default for parameter in entry.parameters},
        "needs": list(entry.needs),
        "placement": entry.placement,
        "paper": entry.paper,
        "group": entry.group,
    }


def _details(entry: Facts) -> dict[str, Any]:
    """Further facts of a policy, for its own document only."""
    return {
        "reference": entry.reference,
        "rule": entry.rule,
        "formula": entry.formula,
        "parameter_details": [dataclasses.asdict(parameter) for parameter in entry.parameters],
        "requires": [list(columns) for columns in entry.requires],
        "columns": {column: COLUMNS.get(column, "") for column in entry.columns},
        "knowledge": entry.knowledge,
        "gpu_types": {"aware": entry.aware_of_types, "choice": entry.gpu_types},
        "rules": {rules: dataclasses.asdict(effect) for rules, effect in entry.rules.items()},
        "elastic": entry.elastic,
        "families": list(entry.families),
        "aliases": list(entry.aliases),
        "example": entry.example,
    }


def explanation(entry: Facts) -> list[str]:
    """Lines that explain a policy on a terminal."""
    lines = [f"{entry.name}  {entry.summary}", ""]
    lines += _labelled("paper", entry.paper)
    if entry.reference:
        lines += _labelled("source", entry.reference)
    if entry.aliases or entry.families:
        names = [f"also called {', '.join(entry.aliases)}"] if entry.aliases else []
        names += [f"family {', '.join(entry.families)}"] if entry.families else []
        lines += _labelled("names", "; ".join(names))
    for label, text in (("rule", entry.rule), ("formula", entry.formula)):
        if text:
            lines += ["", label, *textwrap.indent(text.replace("``", ""), "  ").splitlines()]
    lines += ["", "parameters (--set NAME=VALUE)" if entry.parameters else "parameters  none"]
    for parameter in entry.parameters:
        lines.append(f"  --set {parameter.name}={parameter.set_default}")
        for paragraph in (parameter.accepts, *parameter.meaning.splitlines()):
            lines += _wrapped(paragraph, "      ")
        if parameter.by_rules:
            defaults = (f"{rules} {value}" for rules, value in parameter.by_rules.items())
            lines += _wrapped(f"Default by rules: {', '.join(defaults)}.", "      ")
    lines.append("")
    needed = [" or ".join(columns) for columns in entry.requires]
    lines += _labelled("needs", ", ".join((*BASE_COLUMNS, *needed)))
    required = [column for columns in entry.requires for column in columns]
    for column in required:
        lines += _labelled("", f"{column}: {COLUMNS.get(column, '')}".removesuffix(": "))
    lines += _labelled("uses", ", ".join(entry.columns) or "no other column")
    for column in entry.columns:
        lines += _labelled("", f"{column}: {COLUMNS.get(column, '')}".removesuffix(": "))
    lines += _labelled("knows", _knowledge(entry))
    lines += _labelled("GPU types", entry.gpu_types)
    lines += _labelled("GPUs", _GPUS[entry.elastic])
    lines += _rule_lines(entry)
    condition = "; a gang starts only if first fit finds nodes for it" if entry.first_fit else ""
    lines += _labelled("placement", f"{entry.placement} by default{condition}")
    return [*lines, "", "example", f"  {entry.example}"]


def _knowledge(entry: Facts) -> str:
    """What a policy knows about jobs, in words."""
    if entry.knowledge == "none":
        return "nothing of a job but its submission, its demand and its attained service"
    return entry.knowledge


def _rule_lines(entry: Facts) -> list[str]:
    """Lines on the rule sets: those under which the policy runs, and what differs there."""
    runs = [rules for rules, effect in entry.rules.items() if not effect.refused]
    lines = _labelled("rules", ", ".join(runs))
    for rules, effect in entry.rules.items():
        settings = ", ".join(f"{name}={value}" for name, value in effect.parameters.items())
        if effect.refused or settings:
            lines += _labelled("", f"{rules}: {effect.refused or settings}")
    return lines


def _labelled(label: str, text: str) -> list[str]:
    """Lines of a fact, the label in front of the first; no line for an empty text."""
    lines = _wrapped(text, " " * _LABEL)
    if not lines:
        return []
    return [f"{label:<{_LABEL}}{lines[0][_LABEL:]}", *lines[1:]]


def _wrapped(text: str, indent: str) -> list[str]:
    """Lines of at most `_WIDTH` characters."""
    hanging = indent + "  " if text.startswith("- ") else indent
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def new_policy(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the policy, such as my-las.")
    ],
    paper: Annotated[
        str,
        typer.Option(
            metavar="P",
            help=f"Folder of the policy: {', '.join(PAPERS)}.",
            autocompletion=complete.policy_folders,
        ),
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
    # the entry point would load the other module, or other code the policy
    spec = importlib.util.find_spec(module)
    # a folder without code has no origin
    if spec is not None and spec.origin is not None:
        raise ParamError(
            f"policy name {name!r}: a Python module {module!r} exists already; choose another name"
        )
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
