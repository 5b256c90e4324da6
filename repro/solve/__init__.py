"""Solvers of programmes and matchings; each file states the problem that it solves."""
