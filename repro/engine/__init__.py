"""Simulator: setup, event loop, jobs that hold GPUs, rounds, selections, elastic policies."""
