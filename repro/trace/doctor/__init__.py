"""Checks of a trace before a simulation: demands, times, values, and the queue at its load."""
