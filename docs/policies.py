"""Write docs/policies.md from the policies and their docstrings: `make policies-page`."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from repro.cli.policy_facts import BASE_COLUMNS, COLUMNS, Facts, facts, grouped
from repro.files.whole import write_whole
from repro.model.policy import policies

PAGE = Path(__file__).resolve().parent / "policies.md"
WIDTH = 120

HEAD = """\
# Policies

Each section explains a policy. `make policies-page` writes this page from the docstrings.
`repro policies` lists all policies, and `repro policies NAME` prints the section of one policy. The
policies are sorted by paper, and shared baselines come last.

A formula is in the notation of its paper. If several policies of one module share a formula, only
the first section has it, and the others name that section.

- *parameter*: `--set NAME=VALUE` sets it. A number without a unit is a ratio, a weight, a seed or a
  count.
- *by rules*: the default depends on the rule set (`--rules`). A rule set also changes rules of the
  engine: [rules.md](rules.md), [rules-gavel.md](rules-gavel.md), [rules-pcs.md](rules-pcs.md).
- *Also needs*, *Uses if present*: trace columns. Every policy also needs the columns of every
  trace: {base}.
- *Knows*: what a policy reads of a job beyond its submission, its demand and its attained service.
- *Also called*: other names that commands accept.
- *Family*: a name for several policies. A command that gets a family in place of a policy ends, and
  lists these policies.
- *GPU types*: how jobs get their GPU types on a cluster of several types. Policies that decide on
  each type separately read durations and remaining times on that type. On a cluster of one type all
  policies do. Orders on several types read the durations of the trace.
- *Rules*: rule sets under which the policy runs.
- *Placement by default*: with `count` a gang needs enough idle GPUs on any nodes. With `yarn` it
  waits for the fewest nodes of one switch. With `wished` the policy names the nodes. A condition on
  first fit holds under any placement.

Examples run as they are, on generated traces. [crossing.md](crossing.md) shows which policy runs on
which paper's jobs.
"""


def text() -> str:
    """The page."""
    base = ", ".join(f"`{column}`" for column in BASE_COLUMNS)
    parts = [HEAD.format(base=base).rstrip()]
    own = [name for name in policies if policies[name].__module__.startswith("repro.policies.")]
    for title, names in grouped(own).items():
        parts.append(f"## {title}")
        formulas: dict[str, str] = {}
        for name in names:
            entry = facts(name)
            parts.append(section(entry, formulas.get(entry.formula)))
            formulas.setdefault(entry.formula, name)
    return "\n\n".join(parts) + "\n"


def section(entry: Facts, same_formula: str | None) -> str:
    """Section of a policy; ``same_formula`` is an earlier policy with the same formula."""
    parts = [f"### `{entry.name}`", flowed(entry.summary)]
    if entry.rule:
        parts.append(markdown(entry.rule))
    if same_formula:
        parts.append(f"The section of `{same_formula}` has the formula.")
    elif entry.formula:
        parts.append(markdown(entry.formula))
    if entry.parameters:
        parts.append(parameter_table(entry))
    parts.append(fact_list(entry))
    parts.append(f"```sh\n{entry.example}\n```")
    return "\n\n".join(parts)


def parameter_table(entry: Facts) -> str:
    """Parameters of a policy, a row for each."""
    lines = ["| parameter | default | accepts | meaning |", "|---|---|---|---|"]
    for parameter in entry.parameters:
        default = f"`{parameter.set_default}`" if parameter.set_default else "empty"
        if parameter.by_rules:
            by_rules = (f"{rules} `{value}`" for rules, value in parameter.by_rules.items())
            default = f"by rules: {', '.join(by_rules)}"
        cells = (f"`{parameter.name}`", default, parameter.accepts, parameter.meaning)
        lines.append(f"| {' | '.join(map(cell, cells))} |")
    return "\n".join(lines)


def fact_list(entry: Facts) -> str:
    """Paper, columns, knowledge, GPU types, rules and placement, a line for each."""
    facts_of = {"Paper": entry.reference or entry.paper}
    if entry.aliases:
        facts_of["Also called"] = ", ".join(f"`{alias}`" for alias in entry.aliases)
    if entry.families:
        facts_of["Family"] = ", ".join(f"`{family}`" for family in entry.families)
    if entry.requires:
        needed = [
            " or ".join(f"`{column}` ({COLUMNS[column]})" for column in columns)
            for columns in entry.requires
        ]
        facts_of["Also needs"] = ", ".join(needed)
    if entry.columns:
        used = (f"`{column}` ({COLUMNS[column]})" for column in entry.columns)
        facts_of["Uses if present"] = ", ".join(used)
    facts_of["Knows"] = "nothing more" if entry.knowledge == "none" else entry.knowledge
    facts_of["GPU types"] = entry.gpu_types
    if entry.elastic:
        facts_of["GPUs"] = "a job may hold fewer GPUs than its demand, or more"
    refused = [rules for rules, effect in entry.rules.items() if effect.refused]
    runs = [rules for rules in entry.rules if rules not in refused]
    facts_of["Rules"] = ", ".join(f"`{rules}`" for rules in runs)
    condition = "; a gang starts only if first fit finds nodes for it" if entry.first_fit else ""
    facts_of["Placement by default"] = f"`{entry.placement}`{condition}"
    return "\n".join(flowed(f"- {name}: {fact}", "  ") for name, fact in facts_of.items())


def markdown(docstring: str) -> str:
    """Text of a docstring as Markdown."""
    return docstring.replace("``", "`")


def cell(content: str) -> str:
    """Text as a cell of a table."""
    return content.replace("|", "\\|").replace("\n- ", "<br>- ").replace("\n", " ")


def flowed(line: str, indent: str = "") -> str:
    """Text in lines of at most `WIDTH` characters."""
    return textwrap.fill(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def main() -> int:
    """Write the page."""
    write_whole(PAGE, text().encode())
    print(f"{PAGE.name} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
