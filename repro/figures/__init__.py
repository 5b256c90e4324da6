"""What a notebook talks to: one figure, its parameters, data, claims and record."""
