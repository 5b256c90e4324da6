"""Muri (SIGCOMM 2022) and AntMan."""

#: The paper in which these policies are compared.
PAPER = "Muri, SIGCOMM'22"
