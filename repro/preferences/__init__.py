"""What an operator prefers, and the configurations of PCS that come nearest to it."""
