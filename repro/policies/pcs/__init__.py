"""Policies of divisible GPUs (PCS 2024)."""

#: The paper in which these policies are compared.
PAPER = "PCS, 2024"
