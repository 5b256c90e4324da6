"""Traces: jobs from files in published formats (`load`), or drawn by generators (`synth`)."""
