"""Programmes in which two jobs may share a GPU."""
