"""What single figures compute beyond the general metrics, one module per group of figures."""
