"""Muri's Algorithm 1: candidates, profiles of jobs, and groups by kind or in list order."""

from repro.policies.muri._grouping.by_kind import GroupsByKind
from repro.policies.muri._grouping.by_list import GroupsByList
from repro.policies.muri._grouping.candidates import Candidates, Entry
from repro.policies.muri._grouping.profiles import Profiles

__all__ = ["Candidates", "Entry", "GroupsByKind", "GroupsByList", "Profiles"]
