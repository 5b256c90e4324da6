"""Ranges of the numeric parameters of any policy, and their encoding as a box for the search."""

import contextlib
import keyword
import math
import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from repro.base.errors import ParamError, refuse_unknown
from repro.base.typing import Floats
from repro.model.policy import Policy, parameter_names
from repro.model.settings import check_values
from repro.papers.pcs.encodings import Configuration, Encoding

#: Most numbers of one list of a configuration.
MAX_COUNT = 50
FORM = "give LOW:HIGH, with :log for a logarithmic scale and :MIN-MAX for a list of MIN to MAX"


@dataclass(frozen=True)
class Range:
    """Range of a parameter, or of the numbers of a list.

    Parameters
    ----------
    low, high : float
        Smallest and largest value.
    log : bool
        Whether values are sampled evenly on a logarithmic scale.
    count : tuple of int, optional
        Least and greatest number of values. The parameter is then a list in ascending order, such
        as the thresholds of a queue policy. None: one number.

    Raises
    ------
    ParamError
        If the ends are not finite or not in order, or the number of values is not accepted.

    Examples
    --------
    >>> Range.of("100:1e5:log:1-3")
    Range(low=100.0, high=100000.0, log=True, count=(1, 3))
    """

    low: float
    high: float
    log: bool = False
    count: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ParamError(
                f"a range is {self.low:g} to {self.high:g}; give two finite numbers, the smaller "
                "first"
            )
        if self.log and not self.low > 0:
            raise ParamError(
                f"a range on a logarithmic scale begins at {self.low:g}; give a number above 0"
            )
        if self.count and not 1 <= self.count[0] <= self.count[1] <= MAX_COUNT:
            raise ParamError(
                f"a list has {self.count[0]} to {self.count[1]} numbers; give 1 to {MAX_COUNT}, "
                "the smaller first"
            )

    @classmethod
    def of(cls, value: Any) -> "Range":
        """Range of ``value``: a pair of numbers, text as of ``repro front --search``, a Range."""
        if isinstance(value, Range):
            return value
        if isinstance(value, str):
            return _of_text(value)
        is_pair = isinstance(value, Sequence) and len(value) == 2
        if not is_pair or not all(isinstance(end, numbers.Real) for end in value):
            raise ParamError(f"a range is {value!r:.60}; give (low, high), a Range or its text")
        return cls(float(value[0]), float(value[1]))

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends on the scale of the search."""
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    def value(self, number: float) -> float:
        """Value of the parameter, within the range; ``number`` is on the scale of the search."""
        value = math.exp(number) if self.log else number
        return min(max(value, self.low), self.high)


def _of_text(text: str) -> Range:
    """Range of a text LOW:HIGH[:log][:COUNT or :MIN-MAX]."""
    low, _, remaining = text.partition(":")
    high, *options = remaining.split(":")
    count = None
    try:
        ends = float(low), float(high)
        for option in options:
            if option == "log":
                continue
            least, _, most = option.partition("-")
            # digits alone: int() also accepts blanks and underscores
            if count or not re.fullmatch(r"[0-9]+(-[0-9]+)?", option):
                raise ValueError(option)
            count = int(least), int(most or least)
    except ValueError:
        raise ParamError(f"a range is {text!r:.60}; {FORM}, such as 100:1e5:log:1-3") from None
    return Range(*ends, log="log" in options, count=count)


def ranges_of(policy: type[Policy], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Range of each parameter, or a list of ranges for a list of fixed length.

    Parameters
    ----------
    policy : type
        Class of policies.
    parameters : mapping
        Name -> (low, high), `Range` or its text; or a list of them, for a list of numbers.

    Raises
    ------
    ParamError
        If the ranges are no mapping, there is no parameter, the policy has no parameter of a name,
        a list has no range, or the policy does not accept the ends of a range.

    Examples
    --------
    >>> from repro.model.policy import policies
    >>> ranges_of(policies["tiresias-l"], {"promote_knob": (1, 8)})
    {'promote_knob': Range(low=1.0, high=8.0, log=False, count=None)}
    """
    if not isinstance(parameters, Mapping):
        raise ParamError(
            f"policy {policy.name!r}: the parameters to search are {parameters!r:.60}; give the "
            f"range of each by its name, {_example(policy)}"
        )
    if not parameters:
        raise ParamError(
            f"policy {policy.name!r}: no parameter to search; give some, {_example(policy)}"
        )
    refuse_unknown(f"policy {policy.name!r} has no parameter", parameters, parameter_names(policy))
    ranges: dict[str, Any] = {}
    for name, given in parameters.items():
        is_list = isinstance(given, Sequence) and not isinstance(given, str)
        if is_list and not given:
            raise ParamError(f"{name}: no range; give one for each number of the list")
        has_ranges = is_list and not any(isinstance(item, numbers.Real) for item in given)
        try:
            ranges[name] = [Range.of(item) for item in given] if has_ranges else Range.of(given)
        except ParamError as error:
            raise ParamError(f"{name}: {error}") from None
        for end in ("low", "high"):
            _check(policy, name, _at_end(ranges[name], end))
    return ranges


def no_ranges(policy: type[Policy]) -> ParamError:
    """Error of a search without ranges, with an example."""
    return ParamError(
        f"policy {policy.name!r}: give the parameters to search and their ranges, "
        f"{_example(policy)}"
    )


def ranges_encoding(policy: type[Policy], ranges: Mapping[str, Any]) -> Encoding:
    """Box of the ranges, and the configuration of each of its points.

    A parameter of whole numbers gets whole numbers. The configuration of a point is None if the
    policy does not accept it, such as thresholds that are not in ascending order.

    Parameters
    ----------
    policy : type
        Class of policies.
    ranges : mapping
        As `ranges_of` returns them.

    Examples
    --------
    >>> from repro.model.policy import policies
    >>> tiresias = policies["tiresias-l"]
    >>> code = ranges_encoding(tiresias, {"thresholds": Range(100, 900, count=(1, 2))})
    >>> code.decode(np.array([2.5, 700.0, 300.0]))
    {'thresholds': (300.0, 700.0)}
    """
    whole = {name: not _accepts_fractions(policy, name, item) for name, item in ranges.items()}
    ends: list[tuple[float, float]] = []
    for name, item in ranges.items():
        for single in item if isinstance(item, list) else [item]:
            if single.count:
                # the whole part is the number of values
                ends.append((single.count[0], single.count[1] + 1.0))
            ends += [_ends(single, whole[name])] * (single.count[1] if single.count else 1)
    low, high = np.array(ends, dtype=float).T

    def decode(point: Floats) -> Configuration | None:
        remaining = [float(number) for number in point]
        configuration: Configuration = {}
        for name, item in ranges.items():
            if isinstance(item, list):
                values = [_value(single, remaining.pop(0), whole[name]) for single in item]
                configuration[name] = tuple(values)
            elif item.count:
                count = min(int(remaining.pop(0)), item.count[1])
                numbers_of_list = [remaining.pop(0) for _ in range(item.count[1])]
                values = [_value(item, number, whole[name]) for number in numbers_of_list]
                configuration[name] = tuple(sorted(values[:count]))
            else:
                configuration[name] = _value(item, remaining.pop(0), whole[name])
        with contextlib.suppress(ParamError):
            policy(**fields_of(configuration))
            return configuration
        return None

    return Encoding(low, high, decode)


def fields_of(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a policy from the names of its parameters: ``lambda`` is the field ``lambda_``."""
    return {
        f"{name}_" if keyword.iskeyword(name) else name: value
        for name, value in configuration.items()
    }


def _example(policy: type[Policy]) -> str:
    """Example of ranges, with the parameters of a policy."""
    names = ", ".join(parameter_names(policy)) or "none"
    return (
        "such as parameters={'promote_knob': (1, 8)} or --search promote_knob=1:8 (parameters of "
        f"the policy: {names})"
    )


def _ends(single: Range, whole: bool) -> tuple[float, float]:
    """Ends of a range on the scale of the search.

    A range of whole numbers is wider by a half at both ends, so that each has the same weight. On
    a logarithmic scale only the upper end moves, and the weights differ.
    """
    if not whole:
        return single.ends
    widened = Range(single.low - 0.5 * (not single.log), single.high + 0.5, single.log)
    return widened.ends


def _value(single: Range, number: float, whole: bool) -> float:
    """Value of the parameter at a position on the scale of the search, rounded if ``whole``."""
    if not whole:
        return single.value(number)
    value = math.exp(number) if single.log else number
    return min(max(round(value), math.ceil(single.low)), math.floor(single.high))


def _at_end(item: Any, end: str) -> Any:
    """Smallest or largest value of a parameter, whole if it can be."""
    if isinstance(item, list):
        return tuple(_at_end(single, end) for single in item)
    value = getattr(item, end)
    value = int(value) if value == int(value) else value
    return (value,) if item.count else value


def _check(policy: type[Policy], name: str, value: Any) -> None:
    """Raise ParamError for a value that the policy does not accept."""
    check_values(f"policy {policy.name!r}:", policy, fields_of({name: value}))


def _accepts_fractions(policy: type[Policy], name: str, item: Any) -> bool:
    """Whether a parameter accepts numbers that are not whole."""
    single = item[0] if isinstance(item, list) else item
    fraction = math.nextafter(single.low, single.high)
    is_list = isinstance(item, list) or single.count
    with contextlib.suppress(ParamError):
        _check(policy, name, (fraction,) if is_list else fraction)
        return True
    return False
