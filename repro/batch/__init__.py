"""Many figures: run them, check them, show them."""
