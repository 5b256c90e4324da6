"""Lengths of units of time, in seconds."""

HOUR_S = 3600.0
DAY_S = 86_400.0
