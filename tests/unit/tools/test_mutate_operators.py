"""Mutants of a source: what is changed, what never is, and names that stay."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from tools.mutate import blocks, operators, scope
from tools.mutate.blocks import IMPORT

ROOT = Path(__file__).resolve().parents[3]
PATH = "repro/engine/small.py"


def found(source, operator=None):
    """(before, after) of the mutants of a source that compile, all or those of one operator."""
    source = textwrap.dedent(source)
    every = [mutant for mutant in operators.mutants(source, PATH) if mutant.function or operator]
    return [
        mutant.diff(source)
        for mutant in every
        if operator in (None, mutant.operator) and operators.compiles(mutant, source)
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a < b", "a <= b"),
        ("a <= b", "a < b"),
        ("a > b", "a >= b"),
        ("a >= b", "a > b"),
        ("a == b", "a != b"),
        ("a != b", "a == b"),
        ("a is b", "a is not b"),
        ("a is not b", "a is b"),
        ("a in b", "a not in b"),
        ("a not in b", "a in b"),
    ],
)
def test_a_comparison_becomes_its_neighbour_or_opposite(before, after):
    assert found(f"x = {before}", "comparison") == [(f"x = {before}", f"x = {after}")]


def test_each_operator_of_a_chain_changes_alone():
    assert found("x = 0 < a <= b", "comparison") == [
        ("x = 0 < a <= b", "x = 0 <= a <= b"),
        ("x = 0 < a <= b", "x = 0 < a < b"),
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a + b", "a - b"),
        ("a - b", "a + b"),
        ("a * b", "a / b"),
        ("a / b", "a * b"),
        ("a // b", "a * b"),
        ("a % b", "a // b"),
        ("a**b", "a*b"),
        ("a | b", "a & b"),
        ("(a) - (b)", "(a) + (b)"),
        ("-a", "(a)"),
        ("~a", "(a)"),
    ],
)
def test_arithmetic(before, after):
    assert found(f"x = {before}", "arithmetic") == [(f"x = {before}", f"x = {after}")]


def test_an_operator_is_not_mistaken_for_a_sign_in_a_comment():
    source = "x = (a  # a - b\n    + b)"
    assert found(source, "arithmetic") == [("+ b)", "- b)")]


@pytest.mark.parametrize("source", ["x = 'a' + b", "x = [1] + b", "x = {} | b", "x = f'{a}' + b"])
def test_a_sum_that_joins_texts_or_lists_stays(source):
    assert found(source, "arithmetic") == []


def test_in_place_arithmetic():
    assert found("x += 2", "arithmetic") == [("x += 2", "x -= 2")]


def test_boolean_operators():
    assert found("x = a and b or c", "boolean") == [
        ("x = a and b or c", "x = a or b or c"),
        ("x = a and b or c", "x = a and b and c"),
    ]


def test_constants():
    assert found("x = 2**1", "constant") == [
        ("x = 2**1", "x = 3**1"),
        ("x = 2**1", "x = 1**1"),
        ("x = 2**1", "x = 2**2"),
        ("x = 2**1", "x = 2**0"),
    ]
    assert found("x = 0.5", "constant") == [("x = 0.5", "x = 1.5"), ("x = 0.5", "x = (-0.5)")]
    assert found("x = True", "constant") == [("x = True", "x = False")]


def test_conditions_are_negated_once():
    assert found("if a > 1:\n    b()", "negated condition") == [("if a > 1:", "if not (a > 1):")]
    assert found("x = b if a else c", "negated condition") == [
        ("x = b if a else c", "x = b if not (a) else c")
    ]
    assert found("x = [b for b in c if b]", "negated condition") == [
        ("x = [b for b in c if b]", "x = [b for b in c if not (b)]")
    ]
    assert found("x = not a", "negated condition") == [("x = not a", "x = (a)")]
    # the comparison's own mutant is the negation
    assert found("if a == 1:\n    b()", "negated condition") == []


def test_statements_are_dropped_where_no_name_goes_missing():
    source = """
    def f(self):
        a = 1
        self.a = a
        a += 1
        g(a)
        for _ in self:
            break
        if a:
            raise ValueError("text")
        return
    """
    assert [before for before, _ in found(source, "dropped statement")] == [
        "self.a = a",
        "a += 1",
        "g(a)",
        "break",
        'raise ValueError("text")',
        "return",
    ]


def test_functions_are_swapped():
    assert found("x = min(a, b)", "swapped function") == [("x = min(a, b)", "x = max(a, b)")]
    assert found("x = np.floor(a)", "swapped function") == [("x = np.floor(a)", "x = np.ceil(a)")]


def test_keywords_are_removed():
    assert found("x = f(a, b=c, d=e)", "removed keyword") == [
        ("x = f(a, b=c, d=e)", "x = f(a, d=e)"),
        ("x = f(a, b=c, d=e)", "x = f(a, b=c, )"),
    ]


def test_returned_values():
    source = "def f(a):\n    if a:\n        return a > b\n    return a"
    assert found(source, "return value") == [
        ("return a > b", "return not (a > b)"),
        ("return a", "return None"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        '"""Sum of 1 + 2."""',
        "x: Annotated[int, 3] = y",
        "assert a > 1, 2",
        "import numpy as np",
        "warnings.warn('text' + str(1), stacklevel=2)",
        "x = f'{1 + 2:>9}'",
        "for b in zip(c, d, strict=True): e",
        "x = TypeVar('x', bound=1)",
    ],
)
def test_texts_annotations_and_assertions_have_no_mutants(body):
    assert found(f"def f(a):\n    {body}") == []


def test_the_text_of_an_error_has_no_mutants():
    source = "def f(a):\n    raise ValueError('more than', 1 + 2)"
    assert found(source) == [("raise ValueError('more than', 1 + 2)", "pass")]
    assert found("def refused(a) -> ValueError:\n    return ValueError(a > 1)") == []


def test_methods_that_make_a_text_and_decorators_have_no_mutants():
    source = """
    @njit(fastmath=True)
    def f():
        pass
    class A:
        def __repr__(self):
            return 1 + 2
    if TYPE_CHECKING:
        x = 1
    """
    assert found(source, "constant") == []
    assert found(source) == []


def test_positions_count_characters_where_python_counts_bytes():
    assert found("x = g('±…', a < b)", "comparison") == [
        ("x = g('±…', a < b)", "x = g('±…', a <= b)")
    ]


def test_ids_stay_when_other_lines_change():
    source = "def f(a):\n    b = a + 1\n    return a + 1\n"
    longer = "# a comment\n" + source.replace("def f", "\n\ndef f")
    names = [mutant.id for mutant in operators.mutants(source, PATH)]
    assert [mutant.id for mutant in operators.mutants(longer, PATH)] == names
    assert len(set(names)) == len(names)
    changed = [mutant.id for mutant in operators.mutants(source.replace("b =", "c ="), PATH)]
    assert changed != names
    assert set(changed) & set(names)


@pytest.mark.slow
def test_mutants_of_the_package_have_names_of_their_own_and_a_place_in_the_source():
    sources = {path: (ROOT / path).read_text("utf-8") for path in scope.modules(ROOT).values()}
    every = [row for path, source in sources.items() for row in operators.mutants(source, path)]
    assert len({mutant.id for mutant in every}) == len(every) > 10_000
    for mutant in every:
        before, after = mutant.diff(sources[mutant.path])
        assert before != after
    # each hundredth also compiles, but for the few that break a rule of Python
    valid = [operators.compiles(mutant, sources[mutant.path]) for mutant in every[::100]]
    assert sum(valid) > 0.95 * len(valid)


def test_blocks_are_those_that_run():
    source = textwrap.dedent("""
        LIMIT = 3

        def f(a):
            \"\"\"Text.\"\"\"
            if a > LIMIT:
                return 1
            for b in range(a):
                a += b
            return 2

        class A:
            size = 1

            def g(self):
                return self.size
        """)
    lines = {}
    for statement, block in blocks.block_of_statements(ast.parse(source)).items():
        lines.setdefault(block, []).append(ast.unparse(statement).splitlines()[0])
    assert lines[IMPORT] == ["LIMIT = 3", "def f(a):", "class A:", "size = 1", "def g(self):"]
    notes = []
    namespace = {blocks.NOTE: notes.append}
    exec(compile(blocks.instrumented(source, PATH), PATH, "exec"), namespace)
    assert namespace["f"].__doc__ == "Text."

    def reached(call):
        notes.clear()
        call()
        return [line for note in dict.fromkeys(notes) for line in lines[note]]

    start = ["'Text.'", "if a > LIMIT:"]
    assert reached(lambda: namespace["f"](5)) == [*start, "return 1"]
    assert reached(lambda: namespace["f"](1)) == [
        *start,
        "for b in range(a):",
        "a += b",
        "return 2",
    ]
    assert reached(namespace["A"]().g) == ["return self.size"]
    assert namespace["f"](3) == 2


def test_instrumented_modules_of_the_package_compile():
    for path in scope.modules(ROOT).values():
        source = (ROOT / path).read_text("utf-8")
        compile(blocks.instrumented(source, path), path, "exec", dont_inherit=True)


def test_a_mutant_knows_the_block_of_its_statement():
    source = "def f(a):\n    if a > 1:\n        return 5\n    return 6\n"
    of_line = {mutant.line: mutant.block for mutant in operators.mutants(source, PATH)}
    assert of_line == {2: 0, 3: 1, 4: 2}
    assert {mutant.block for mutant in operators.mutants("x = 1\n", PATH)} == {IMPORT}
