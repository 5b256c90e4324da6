"""Baseline of a policy: the policy that it equals while certain inputs are missing."""

import dataclasses
from typing import Any, NamedTuple

import pandas as pd


class Baseline(NamedTuple):
    """Policy that another one equals while none of these inputs is given.

    Parameters
    ----------
    policy : str, optional
        Registered name of the baseline. None: no policy decides the same to the last digit, though
        this one lacks what sets it apart.
    advice : str
        Inputs to give, as a message says it.
    parameters : tuple of str
        Parameters of the policy that make a difference where they are not at their default.
    columns : tuple of str
        Trace columns that make a difference; one without any value counts as absent.
    model : bool
        Whether a performance model makes a difference: throughputs by GPU type, speed-up curves,
        run times of plans.

    Examples
    --------
    >>> Baseline("srtf", "give the column slo", columns=("slo",)).columns
    ('slo',)
    """

    policy: str | None
    advice: str
    parameters: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    model: bool = False

    def also(self, *parameters: str) -> "Baseline":
        """Return this baseline for a policy of which further parameters make a difference."""
        return self._replace(parameters=(*self.parameters, *parameters))

    def equals(self, policy: Any, trace: pd.DataFrame, *, modelled: bool) -> bool:
        """Tell whether a policy is given nothing in which it differs from its baseline.

        Parameters
        ----------
        policy : Policy
            The policy that declares this baseline.
        trace : DataFrame
            The trace.
        modelled : bool
            Whether the run has a performance model.
        """
        fields = {field.name: field.default for field in dataclasses.fields(policy)}
        chosen = any(getattr(policy, name) != fields[name] for name in self.parameters)
        given = any(name in trace and trace[name].notna().any() for name in self.columns)
        return not (chosen or given or (self.model and modelled))

    def note(self, name: str) -> str:
        """Line for users of the policy ``name``."""
        if self.policy is None:
            return f"policy {name!r} lacks what sets it apart here: {self.advice}"
        return f"policy {name!r} decides as {self.policy!r} here: {self.advice}"
