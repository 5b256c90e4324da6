"""Measurement of the tables in ``traces/`` from public files: ``python -m tools.calibrate``."""
