"""Baseline of a policy: the policy that it equals if a run lacks certain inputs."""

import dataclasses
from typing import Any, NamedTuple

import pandas as pd

from repro.model.cluster.spec import Cluster


class Baseline(NamedTuple):
    """Policy with the same decisions as the declaring policy, in a run without certain inputs.

    The two policies differ as soon as a run has one of the inputs.

    Parameters
    ----------
    policy : str, optional
        Registered name of the baseline. None: without the inputs the declaring policy lacks what
        its paper adds, but equals no other policy to the last digit.
    advice : str
        Advice of the warning, such as "give the column slo".
    parameters : tuple of str
        Parameters of the policy that count as inputs if they differ from their default.
    columns : tuple of str
        Trace columns that count as inputs. A column without values counts as absent.
    model : bool
        Whether the performance model of a run counts as input, such as throughputs by GPU type,
        speed-up curves or run times of plans.
    domains : bool
        Whether nodes in several domains count as input.
    failures : bool
        Whether failures of nodes and other added processes count as input.
    type_order : bool
        Whether several GPU types count as input where rounds sample the order of the types under
        policies that ignore them (round setting ``shuffle_types``).

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
    domains: bool = False
    failures: bool = False
    type_order: bool = False

    def also(self, *parameters: str) -> "Baseline":
        """Same baseline, in which further ``parameters`` of the policy also count as inputs."""
        return self._replace(parameters=(*self.parameters, *parameters))

    def equals(
        self,
        policy: Any,
        trace: pd.DataFrame,
        cluster: Cluster,
        *,
        modelled: bool,
        failing: bool,
        samples_type_order: bool,
    ) -> bool:
        """Whether the policy equals its baseline in a run: the run has none of the inputs.

        Parameters
        ----------
        policy : Policy
            Policy that declares this baseline.
        trace : DataFrame
            Jobs of the run.
        cluster : Cluster
            Cluster of the run.
        modelled : bool
            Whether the run has a performance model.
        failing : bool
            Whether the run has failures or other added processes.
        samples_type_order : bool
            Whether rounds of the run sample the order of GPU types under policies that ignore them.
        """
        defaults = {field.name: field.default for field in dataclasses.fields(policy)}
        has_parameter = any(getattr(policy, name) != defaults[name] for name in self.parameters)
        has_column = any(name in trace and trace[name].notna().any() for name in self.columns)
        has_model = self.model and modelled
        has_domains = self.domains and len({node.domain for node in cluster.nodes}) > 1
        has_failures = self.failures and failing
        has_type_order = self.type_order and samples_type_order and len(cluster.gpu_types) > 1
        return not (
            has_parameter
            or has_column
            or has_model
            or has_domains
            or has_failures
            or has_type_order
        )

    def note(self, name: str) -> str:
        """Warning of one line for users of the policy ``name``."""
        if self.policy is None:
            return f"policy {name!r} cannot do what its paper adds in this run: {self.advice}"
        return f"policy {name!r} makes the decisions of {self.policy!r} in this run: {self.advice}"
