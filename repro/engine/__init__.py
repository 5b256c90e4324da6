"""The simulator: its clock, who holds which GPUs, rounds, orders, divisible GPUs."""
