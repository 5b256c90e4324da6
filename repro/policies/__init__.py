"""Scheduling policies, a folder for each paper."""
