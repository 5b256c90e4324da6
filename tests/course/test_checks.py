"""Messages of checks: what came, what should have, the mistake's name, nothing unfriendly."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro.course import Wrong, expect
from repro.course.checks import same


def told(function, *arguments, **how):
    with pytest.raises(Wrong) as caught:
        expect(function, *arguments, **how)
    return str(caught.value)


def test_right_answers_pass_in_silence():
    expect(lambda: np.array([1.0, 2.0]), gives=(1, 2))
    expect(lambda: pd.Series([0.1 + 0.2]), gives=[0.3])
    expect(lambda a, b: a + b, cases=[(1, 2), (3, 4)], gives=lambda a, b: b + a)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "a `return` missing"),
        (float("nan"), "NaN"),
        ("6", "gives text, '6'; expected is a number: 6.0"),
        ([6.0], "gives a list"),
        (7.5, "gives 7.5, expected is 6.0"),
        (True, "gives True or False"),
    ],
)
def test_what_came_instead_of_a_number(answer, words):
    assert words in told(lambda: answer, gives=6.0)


def test_a_list_of_another_length():
    assert "gives 2 values, [1, 2]; expected are 3" in told(lambda: [1, 2], gives=[1, 2, 3])


def test_what_stops_an_answer():
    def empty():
        raise NotImplementedError

    assert "`empty` is still empty" in told(empty, gives=1)
    assert "stopped with ZeroDivisionError" in told(lambda a: 1 / a, 0, gives=1)
    assert "`nowhere` is not defined yet" in told("nowhere", gives=1)
    assert "must be a function, and is a number" in told("NUMBER", gives=1)


NUMBER = 3


def test_the_mistake_that_explains_all_cases_is_named():
    mistakes = {"first": lambda a, b: a, "sum": lambda a, b: a + b}
    text = told(
        lambda a, b: a + b,
        cases=[(3, 0), (2, 5)],
        gives=lambda a, b: a * b + 1,
        mistakes=mistakes,
        because="so it is",
        see="Tiresias, section 3.2",
    )
    assert "Likely mistake: sum." in text
    assert "Why: so it is." in text and "See Tiresias, section 3.2." in text
    assert "Likely" not in told(lambda: 3, gives=1, mistakes={"broken": lambda: 1 / 0, "two": 2})


def test_arguments_are_copies():
    def greedy(jobs):
        jobs.clear()
        return 0

    jobs = [1]
    expect(greedy, jobs, gives=0)
    assert jobs == [1]


def test_values_of_other_sorts_differ():
    assert not same(1, True) and not same([1], {"a": 1}) and not same({"a": 1}, {"b": 1})
    assert same(float("nan"), float("nan")) and same("a", "a") and not same(None, 0)
