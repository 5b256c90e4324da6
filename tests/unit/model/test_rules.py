"""The table of rule sets in `repro.model.rules` lists all rules that differ from ``paper``."""

import dataclasses
import math

import pytest

from repro.base.errors import ParamError
from repro.engine.rounds.settings import RoundSettings
from repro.model import rules
from repro.model.policy import policies
from repro.model.rules import RULES, rules_named

ENGINE = "RULES"
ROUNDS = "RULES (rounds)"


def table_rows():
    """Rows of the table of the module: rule, value of paper, rule set, its value, where."""
    lines = rules.__doc__.splitlines()
    frame = [number for number, line in enumerate(lines) if line.startswith("===")]
    ends = [match + 1 for match in positions_of_blanks(lines[frame[0]])]
    for line in lines[frame[1] + 1 : frame[2]]:
        rule, paper, rule_sets, value, where = (
            line[start:end].strip()
            for start, end in zip([0, *ends], [*ends, len(line)], strict=True)
        )
        yield from (
            (rule, paper, rule_set, value, source)
            for rule_set in rule_sets.split(", ")
            for source in where.split(", ")
        )


def positions_of_blanks(line):
    return [position for position, letter in enumerate(line) if letter == " "]


def text(value):
    """Value as the table shows it."""
    if isinstance(value, tuple):
        numbers = ", ".join(f"{number:g}" for number in value)
        return f"({numbers},)" if len(value) == 1 else f"({numbers})"
    return "inf" if value == math.inf else str(value)


def rows_of_engine():
    paper = RULES["paper"]
    for rule_set, values in RULES.items():
        for field in dataclasses.fields(values):
            usual = getattr(paper, field.name)
            value = getattr(values, field.name)
            if value != usual and field.name != "rounds":
                yield field.name, text(usual), rule_set, text(value), ENGINE
        for name, value in values.rounds.items():
            usual = getattr(RoundSettings(), name)
            if value != usual:
                yield name, text(usual), rule_set, text(value), ROUNDS


def rows_of_policies():
    for name in policies:
        policy = policies[name]
        paper = policy.rule_values.get("paper", {})
        for rule_set, values in policy.rule_values.items():
            for parameter, value in values.items():
                if value != paper[parameter]:
                    module = policy.__module__.rpartition(".")[2]
                    yield parameter, text(paper[parameter]), rule_set, text(value), module


def test_the_table_has_the_rules_of_the_engine():
    rows = [row for row in table_rows() if row[-1] in (ENGINE, ROUNDS)]
    assert sorted(rows) == sorted(rows_of_engine())


def test_the_table_has_the_rules_of_all_policies():
    rows = [row for row in table_rows() if row[-1] not in (ENGINE, ROUNDS) and "." not in row[-1]]
    assert len(rows) == len(set(rows))
    assert set(rows) == set(rows_of_policies())


def test_other_rules_name_the_module_that_defines_them():
    others = {where for *_, where in table_rows() if "." in where}
    assert others == {"engine.simulate", "engine.elastic", "cli.simulate"}


def test_the_table_fits_on_a_screen():
    lines = rules.__doc__.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100


def test_an_unknown_rule_set_is_refused():
    with pytest.raises(ParamError, match="unknown rules 'papers'; did you mean 'paper'"):
        rules_named("papers")
