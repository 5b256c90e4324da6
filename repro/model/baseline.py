"""Baseline of a policy: the policy that it equals while certain inputs are missing."""

import dataclasses
from collections.abc import Collection
from typing import Any, NamedTuple


class Baseline(NamedTuple):
    """Policy that another one equals while none of these inputs is given.

    Parameters
    ----------
    policy : str
        Registered name of the baseline.
    advice : str
        Inputs to give, as a message says it.
    parameters : tuple of str
        Parameters of the policy that make a difference where they are not at their default.
    columns : tuple of str
        Trace columns that make a difference.
    model : bool
        Whether a performance model makes a difference: throughputs by GPU type, speed-up curves,
        run times of plans.

    Examples
    --------
    >>> Baseline("srtf", "give the column slo", columns=("slo",)).columns
    ('slo',)
    """

    policy: str
    advice: str
    parameters: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    model: bool = False

    def also(self, *parameters: str) -> "Baseline":
        """Return this baseline for a policy of which further parameters make a difference."""
        return self._replace(parameters=(*self.parameters, *parameters))

    def equals(self, policy: Any, columns: Collection[str], *, modelled: bool) -> bool:
        """Tell whether a policy is its baseline on a trace with these columns.

        Parameters
        ----------
        policy : Policy
            The policy that declares this baseline.
        columns : collection of str
            Columns of the trace.
        modelled : bool
            Whether the run has a performance model.
        """
        fields = {field.name: field.default for field in dataclasses.fields(policy)}
        chosen = any(getattr(policy, name) != fields[name] for name in self.parameters)
        given = any(name in columns for name in self.columns)
        return not (chosen or given or (self.model and modelled))

    def note(self, name: str) -> str:
        """Line for users of the policy ``name``."""
        return f"policy {name!r} decides as {self.policy!r} here: {self.advice}"
