"""Whole numbers of 0 or more: what counts as one, their text, and errors for other values."""

import numbers

from repro.base.errors import ParamError


def is_count(value: object) -> bool:
    """Whether a value is a whole number of 0 or more; Boolean values are not numbers.

    >>> is_count(3), is_count(3.0), is_count(-1), is_count(True)
    (True, False, False, False)
    """
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return is_whole and int(value) >= 0  # type: ignore[call-overload]


def quantity(number: int, noun: str, verb: str = "", plural_verb: str = "") -> str:
    """Number, noun and verb that agree.

    >>> quantity(1, "job"), quantity(1200, "job", "demands", "demand")
    ('1 job', '1,200 jobs demand')
    """
    text = f"{number:,} {noun}{'' if number == 1 else 's'}"
    used_verb = verb if number == 1 else plural_verb
    return f"{text} {used_verb}" if used_verb else text


def check_seed(seed: object) -> None:
    """Refuse an argument ``seed`` that is no whole number of 0 or more."""
    if not is_count(seed):
        raise ParamError(f"seed={seed!r}: give a whole number of 0 or more")


def refuse_below(option: str, number: int | None, least: int, noun: str = "a whole number") -> None:
    """Refuse the value of an option of the command line that is below the least; None passes.

    >>> refuse_below("-j", 2, 1, "a number of notebooks")
    """
    if number is not None and number < least:
        raise ParamError(f"{option} {number}: give {noun} of {least} or more")
