"""Gavel (OSDI 2020) and the policies it is compared with."""

#: The paper in which these policies are compared.
PAPER = "Gavel, OSDI'20"
