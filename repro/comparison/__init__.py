"""Policies compared on the same jobs, with intervals: `repro.compare` and ``repro compare``."""
