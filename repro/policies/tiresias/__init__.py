"""Tiresias (NSDI 2019) and the policies it is compared with."""

#: The paper in which these policies are compared.
PAPER = "Tiresias, NSDI'19"
