"""Baselines: orders by arrival, known duration and deadline, dominant shares, and scripts."""

#: The paper in which these policies are compared. A module of another paper has its own `PAPER`.
PAPER = "Tiresias, NSDI'19"
