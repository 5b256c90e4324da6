"""Parameters of the wrong type get one line, whatever the policy."""

import dataclasses

import pytest

from repro.base.errors import ParamError
from repro.model.policy import make, policies

CASES = [
    (name, field.name, value)
    for name in policies
    for field in dataclasses.fields(policies[name])
    for value in ("x", 1, 2.5, True, (1, 2))
]


@pytest.mark.parametrize(("name", "parameter", "value"), CASES)
def test_a_parameter_is_taken_or_refused_in_one_line(name, parameter, value):
    try:
        made = make(name, **{parameter: value})
    except ParamError as error:
        # lambda_ is spelt lambda by users
        assert parameter.rstrip("_") in str(error) and "\n" not in str(error)
    else:
        assert getattr(made, parameter) == value


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("muri-s", {"noise": "x"}, "noise is 'x'; give a number"),
        ("muri-s", {"blossom": 7}, "blossom is 7; give true or false"),
        ("muri-s", {"ordering": "middle"}, "ordering is 'middle'; give best or worst"),
        ("muri-s", {"max_group": True}, "max_group is True; give a whole number"),
        ("muri-l", {"noise_seed": -1}, "noise_seed is -1"),
        ("tiresias-l", {"thresholds": ("a",)}, "give a number, several by commas"),
    ],
)
def test_messages(name, settings, message):
    with pytest.raises(ParamError, match=message):
        make(name, **settings)


def test_one_value_stands_for_a_list_and_a_whole_number_for_a_number():
    assert make("tiresias-l", thresholds=3200).limits()[0] == 3200
    assert make("muri-s", noise=1).noise == 1
