"""Policies of divisible GPUs (PCS 2024)."""
