"""Keys that order jobs, numbers or tuples of numbers: the check and its error."""

from typing import Any

from repro.base.errors import PolicyError


def is_key(key: Any, length: int = 0) -> bool:
    """Whether a key is a number or a tuple of numbers without NaN; 0: a tuple of any length.

    >>> is_key((1, 2.0), 2), is_key(float("nan")), is_key("a")
    (True, False, False)
    """
    numbers = key if isinstance(key, tuple) else (key,)
    if length and len(numbers) != length:
        return False
    try:
        return all(float(number) == number for number in numbers)
    except (TypeError, ValueError):
        return False


def bad_key(policy: str, job_id: object, key: Any) -> PolicyError:
    """PolicyError for a key that is no number and no tuple of as many numbers as other keys.

    NaN is no number.
    """
    return PolicyError(
        f"policy {policy!r}: the key of job {job_id!r} is {key!r:.60}; return a number, or "
        f"tuples of numbers of one fixed length"
    )


def bad_slope(policy: str, job_id: object, slope: Any) -> PolicyError:
    """Error of a slope of a key that is no finite number."""
    return PolicyError(
        f"policy {policy!r}: the slope of the key of job {job_id!r} is {slope!r:.60}; return the "
        f"change of the key per second, a finite number"
    )
