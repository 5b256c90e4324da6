"""Rounds: allocation X, as shares of time, turned into jobs on GPUs (Gavel, section 5)."""
