"""Policies, one per file; the registry imports every module of this package."""
