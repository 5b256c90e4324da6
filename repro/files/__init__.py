"""Files as the rest of the package writes them."""
