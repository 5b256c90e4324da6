"""Liquid, TPDS 2022: its schedulers, and the schedulers that it is compared with."""

#: The paper in which these policies are compared.
PAPER = "Liquid, TPDS'22"
