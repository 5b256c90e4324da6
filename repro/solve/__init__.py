"""Programmes and matchings; each file names the problem that it solves."""
