"""Computations of the tour of the five papers."""
