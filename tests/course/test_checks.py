"""Messages of checks: the answer, the right answer, the likely mistake."""

from __future__ import annotations

import datetime
from functools import partial

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
        ("6", "gives text, '6', instead of a number, 6.0"),
        ([6.0], "gives a list"),
        (7.5, "gives 7.5 instead of 6.0"),
        (True, "gives True or False"),
    ],
)
def test_what_came_instead_of_a_number(answer, words):
    assert words in told(lambda: answer, gives=6.0)


def test_a_list_of_another_length():
    assert "gives 2 values, [1, 2], instead of 3" in told(lambda: [1, 2], gives=[1, 2, 3])


def test_what_stops_an_answer():
    def empty():
        raise NotImplementedError

    assert "`empty` is still empty" in told(empty, gives=1)
    assert "`empty` is still empty" in told(lambda: empty(), gives=1)
    assert "stopped with ZeroDivisionError" in told(lambda a: 1 / a, 0, gives=1)
    assert "`nowhere` is not defined yet" in told("nowhere", gives=1)
    assert "must be a function, and is a number" in told("NUMBER", gives=1)


def test_only_a_function_of_the_student_is_empty():
    # an AbstractMethodError is a NotImplementedError
    text = told(lambda: len(pd.api.extensions.ExtensionArray()), gives=1)
    assert "stopped with AbstractMethodError" in text
    # an error of C code has no frame of its own, so its last frame is the student's
    text = told(lambda: datetime.tzinfo().utcoffset(None), gives=1)
    assert "stopped with NotImplementedError: a tzinfo subclass must" in text


def test_callables_without_a_name_have_one_in_messages():
    class Doubled:
        def __call__(self, number):
            return number

    assert "max(1, 2) gives 2 instead of 3" in told(partial(max), 1, 2, gives=3)
    assert "Doubled(1) gives 1 instead of 2" in told(Doubled(), 1, gives=2)


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


def test_an_error_is_told_with_what_was_expected():
    def mean_wait(rate):
        return 1 / (1 - rate)

    text = told(
        mean_wait,
        cases=[(0.5,), (1.0,)],
        gives=lambda rate: 2.0 if rate < 1 else np.inf,
        because="the line grows without end",
        see="task 1",
    )
    assert "mean_wait(1.0) stopped with ZeroDivisionError: float division by zero" in text
    assert (
        "the right answer is inf." in text
        and "Why: the line grows" in text
        and "See task 1." in text
    )


def test_the_line_of_an_error_is_that_of_the_students_cell():
    names = {"expect": expect}
    answer = "def decide(look):\n\n    return look()"
    exec(compile(answer, "<cell task-1>", "exec"), names)
    test = "\n" * 9 + "def order(n):\n    return decide(lambda: 1 / n)\nexpect(order, 0, gives=1)"
    with pytest.raises(Wrong, match=r"line 3 of its cell.*the right answer is 1\."):
        exec(compile(test, "<cell test-1>", "exec"), names)


def test_of_mistakes_the_one_that_fits_best_is_named_and_none_that_fits_one_call_alone():
    cases = [(n,) for n in range(1, 9)]
    always = {"always 0": 0, "half": lambda n: n // 2}

    def told_of(answer, gives=lambda n: n, mistakes=always):
        return told(answer, cases=cases, gives=gives, mistakes=mistakes)

    assert "Likely mistake: half." in told_of(lambda n: n // 2)
    # the shortest call that fails is 1 -> 0, which "always 0" and "half" give too
    assert "Likely" not in told_of(lambda n: n - n % 3)
    # right where the mistake would be wrong too: one call of eight says too little
    assert "Likely" not in told_of(lambda n: 0 if n == 8 else n)
    # an edge that the student got right does not hide the mistake
    assert "Likely mistake: always 0." in told_of(lambda n: 1 if n == 1 else 0)
    # "half" is refuted by a call that is right, "half from 2 on" by none
    closer = {**always, "half from 2 on": lambda n: n // 2 if n > 1 else n}
    assert "half from 2 on." in told_of(lambda n: n // 2 if n > 1 else n, mistakes=closer)


@pytest.mark.parametrize(
    ("change", "given", "after"),
    [
        (lambda jobs: jobs.clear(), [3, 1], "[3, 1] becomes []"),
        (lambda jobs: jobs.sort(), [3, 1], "[3, 1] becomes [1, 3]"),
        (lambda jobs: jobs.update(a=2), {"a": 1}, "{'a': 1} becomes {'a': 2}"),
        (lambda jobs: jobs.__setitem__(0, 5.0), np.array([3.0]), "[3.0] becomes [5.0]"),
        (lambda jobs: jobs[0].append(2), [[1]], "[[1]] becomes [[1, 2]]"),
    ],
)
def test_an_answer_that_changes_its_arguments_is_told_so(change, given, after):
    def greedy(jobs):
        change(jobs)
        return 0

    before = repr(given)
    text = told(greedy, given, gives=0, because="so it is")
    assert after in text and "changes an argument" in text and "copy" in text
    assert repr(given) == before, "students get copies"
    assert "gives 0 instead of 1" in told(greedy, given, gives=1), "a wrong answer goes first"


def test_arguments_that_cannot_be_compared_may_change():
    expect(lambda draw: int(draw.integers(1)), np.random.default_rng(1), gives=0)
    expect(lambda values: len(values), [float("nan"), np.inf, None, (1, 2)], gives=4)


def test_values_of_other_sorts_differ():
    assert not same(1, True) and not same([1], {"a": 1}) and not same({"a": 1}, {"b": 1})
    assert same(float("nan"), float("nan")) and same("a", "a") and not same(None, 0)
