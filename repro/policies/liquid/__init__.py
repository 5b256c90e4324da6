"""Liquid, TPDS 2022: containers placed one by one or in batches, and the schedulers beside it."""

#: The paper in which these policies are compared.
PAPER = "Liquid, TPDS'22"
