"""Orders by arrival and by known size, and scripted decisions."""

#: The paper in which these policies are compared.
PAPER = "Tiresias, NSDI'19"
