"""Baselines: orders by arrival and by known duration, and scripted decisions."""

#: The paper in which these policies are compared.
PAPER = "Tiresias, NSDI'19"
