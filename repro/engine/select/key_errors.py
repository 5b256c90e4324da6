"""Error of a key that selections cannot store or compare."""

from typing import Any

from repro.base.errors import PolicyError


def bad_key(policy: str, job_id: object, key: Any) -> PolicyError:
    """Error of a key that is neither a number nor a tuple of as many numbers as other keys.

    NaN is no number.
    """
    return PolicyError(
        f"policy {policy!r}: the key of job {job_id!r} is {key!r}; return a number, or tuples of "
        f"numbers of one fixed length"
    )
