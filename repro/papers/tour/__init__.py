"""What the tour of the five papers computes."""
