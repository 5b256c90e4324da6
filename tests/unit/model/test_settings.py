"""Parameters that a policy does not accept get one line, whatever the policy."""

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import pytest

from repro.base.errors import ParamError
from repro.model.policy import Policy, make, policies
from repro.model.settings import Above, AtLeast, Between, Bound, check_settings

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
        (
            "tiresias-l",
            {"thresholds": ("a",)},
            "give a number of GPU-seconds above 0, or several separated by commas",
        ),
    ],
)
def test_messages(name, settings, message):
    with pytest.raises(ParamError, match=message):
        make(name, **settings)


def test_one_value_stands_for_a_list_and_a_whole_number_for_a_number():
    assert make("tiresias-l", thresholds=3200).limits()[0] == 3200
    assert make("muri-s", noise=1).noise == 1


def bounds_of(hint):
    """Yield (type, bound) of every declared bound in an annotation."""
    if typing.get_origin(hint) is Annotated:
        kind, *bounds = typing.get_args(hint)
        yield from ((kind, bound) for bound in bounds if isinstance(bound, Bound))
        return
    for part in typing.get_args(hint):
        yield from bounds_of(part)


def beyond(kind, bound):
    """Return values that a bound does not accept."""
    step = 1 if kind is int else 1e-9
    # a unit alone bounds nothing
    if bound.low > -math.inf:
        yield bound.low - step if bound.with_low else kind(bound.low)
    if bound.high < math.inf:
        yield bound.high + step if bound.with_high else kind(bound.high)
    elif not bound.with_high:
        yield math.inf
    yield math.nan
    yield "x"
    yield True


def declared():
    for name in policies:
        hints = typing.get_type_hints(policies[name], include_extras=True)
        for parameter in dataclasses.fields(policies[name]):
            hint = hints[parameter.name]
            takes_text = str in typing.get_args(hint)
            for kind, bound in bounds_of(hint):
                for value in beyond(kind, bound):
                    if not (takes_text and isinstance(value, str)):
                        yield name, parameter.name, value


@pytest.mark.parametrize(("name", "parameter", "value"), list(declared()))
def test_every_declared_bound_refuses_what_is_beyond(name, parameter, value):
    called = parameter.rstrip("_")
    line = rf"policy '{name}': {called} is .*; give a "
    for construct in (policies[name], lambda **given: make(name, **given)):
        with pytest.raises(ParamError, match=line) as caught:
            construct(**{parameter: value})
        assert "\n" not in str(caught.value)


def test_most_policies_with_parameters_declare_bounds():
    assert len({name for name, _, _ in declared()}) > 20


@dataclass(frozen=True)
class Sample:
    """Fields of every sort that can be declared."""

    part: Annotated[float, Between(0, 1)] = 0.5
    below: Annotated[float, Between(0, 1, below=True)] = 0.5
    lease: Annotated[float, Above(0, "seconds")] | None = None
    pause: Annotated[float, AtLeast(0, "seconds", finite=True)] = 0.0
    count: Annotated[int, AtLeast(1)] = 1
    weights: tuple[Annotated[float, Above(0)], ...] = ()
    form: Literal["a", "b"] | None = None
    by_name: Mapping[str, float] = field(default_factory=dict)
    switch: bool = False

    def __post_init__(self):
        check_settings("sample:", self)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"part": 2}, "sample: part is 2; give a number from 0 to 1"),
        ({"part": math.nan}, "sample: part is nan; give a number from 0 to 1"),
        ({"below": 1}, "sample: below is 1; give a number from 0 to below 1"),
        ({"lease": 0}, "sample: lease is 0; give a number of seconds above 0 or none"),
        ({"pause": math.inf}, "sample: pause is inf; give a finite number of seconds, 0 or more"),
        ({"count": 0}, "sample: count is 0; give a whole number of 1 or more"),
        ({"count": 1.5}, "sample: count is 1.5; give a whole number of 1 or more"),
        (
            {"weights": (1, 0)},
            "sample: weights is (1, 0); give a number above 0, or several separated by commas",
        ),
        ({"form": "c"}, "sample: form is 'c'; give a or b or none"),
        ({"by_name": 3}, "sample: by_name is 3; give a Mapping (in Python only)"),
        ({"switch": 1}, "sample: switch is 1; give true or false"),
    ],
)
def test_what_is_not_accepted_is_said_in_one_line(given, line):
    with pytest.raises(ParamError) as caught:
        Sample(**given)
    assert str(caught.value) == line


def test_what_is_accepted():
    Sample(part=0, below=0.0, lease=math.inf, pause=0, count=np.int64(2), weights=3)
    Sample(part=np.float32(1), weights=np.array([1.0, 2.0]), form="b", switch=np.True_)
    Sample(weights=[1, 2], by_name={"x": 1.0})


def test_policies_whose_annotations_only_a_function_knows_are_constructed():
    """The bounds of inherited parameters still hold."""
    base = type(make("las-2d"))
    own = dataclass(frozen=True)(
        type("Own", (base,), {"__annotations__": {"extra": "Unknown"}, "extra": None})
    )
    assert own(extra=3).extra == 3
    with pytest.raises(ParamError, match="quantum is -1"):
        own(quantum=-1)


def test_a_default_is_taken_as_it_is():
    @dataclass(frozen=True)
    class Sloppy(Policy):
        pace: float = None

    assert Sloppy().pace is None
