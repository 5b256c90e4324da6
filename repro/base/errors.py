"""Errors and warnings of the package. A message is one line with a remedy."""

import difflib
from collections.abc import Collection, Iterable


class ReproError(Exception):
    """Base of errors that users can cause; the command line prints the message and exits with 2.

    The first argument is a one-line message. Further arguments are the items of a list below it.

    >>> print(ReproError("policies of that family:", "gavel-fifo", "yarn-cs"))
    policies of that family:
      gavel-fifo
      yarn-cs
    """

    def __str__(self) -> str:
        return "\n  ".join(map(str, self.args))


class ParamError(ReproError):
    """A parameter, parameter file or command-line value is not accepted."""


class TraceError(ReproError):
    """A trace or cluster file has an invalid value; the message has file, line and column."""


class PolicyError(ReproError):
    """A policy is unknown, reads an input it did not declare, or makes an impossible decision."""


class DataMissingError(ReproError):
    """A public file is unknown or not available, or a table of the checkout is missing."""


class ExtraMissingError(ReproError, ImportError):
    """A package that only some commands need is not installed; the message has the command."""


class ClaimError(ReproError):
    """A claim in a parameter file is malformed, or its notebook gives it no value."""


class InputWarning(UserWarning):
    """A reader of the result must know something about the input, such as an ignored column."""


class StandInWarning(UserWarning):
    """A public trace is not available and a generated stand-in takes its place."""


class CacheWarning(UserWarning):
    """The cache folder cannot be read or written, so its content is computed again."""


class BrokenFileWarning(UserWarning):
    """A file that registers policies, placements or formats fails; its entries are left out."""


def near(name: object, accepted: Iterable[object]) -> str:
    """Hint with the accepted names similar to ``name``; empty if no name is similar.

    >>> near("sede", ["seed", "jobs"])
    "; did you mean 'seed'?"
    """
    matches = difflib.get_close_matches(str(name)[:60], list(map(str, accepted)), n=3)
    return f"; did you mean {' or '.join(map(repr, matches))}?" if matches else ""


def refuse_unknown(subject: str, names: Iterable[str], accepted: Collection[str]) -> None:
    """Raise for the first name that is not accepted.

    ``subject`` begins the message, such as ``'srtf' has no setting``.

    Raises
    ------
    ParamError
        The message lists similar names and all accepted names.
    """
    for name in names:
        if name not in accepted:
            hint = f"{near(name, accepted)} (accepted: {', '.join(accepted) or 'none'})"
            raise ParamError(f"{subject} {name!r:.60}{hint}")
