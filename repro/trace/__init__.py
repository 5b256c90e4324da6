"""Traces: jobs read from files in published formats (`load`) or generated (`synth`)."""
