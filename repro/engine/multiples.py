"""Multiples of an interval of time, up to rounding."""

import math

#: Largest distance of a quotient from a whole number that counts as a rounding error. For quotients
#: whose floats lie further apart than this, it is the distance between two floats.
ROUNDING = 1e-9


def is_multiple(instant: float, interval: float) -> bool:
    """Whether an instant (s) is a multiple of an interval (s).

    >>> is_multiple(3 * 0.1, 0.1), is_multiple(0.25, 0.1)
    (True, False)
    """
    quotient = instant / interval
    return abs(quotient - round(quotient)) <= _rounding(quotient)


def first_multiple(instant: float, interval: float) -> float:
    """First multiple of an interval (s) at or after an instant (s).

    >>> first_multiple(20.0, 10.0), first_multiple(21.0, 10.0)
    (20.0, 30.0)
    """
    quotient = instant / interval
    return math.ceil(quotient - _rounding(quotient)) * interval


def next_multiple(instant: float, interval: float) -> float:
    """First multiple of an interval (s) after an instant (s).

    >>> next_multiple(20.0, 10.0), next_multiple(21.0, 10.0)
    (30.0, 30.0)
    """
    quotient = instant / interval
    return (math.floor(quotient + _rounding(quotient)) + 1) * interval


def _rounding(quotient: float) -> float:
    """Largest distance of ``quotient`` from a whole number that counts as a rounding error."""
    return max(ROUNDING, math.ulp(quotient))
