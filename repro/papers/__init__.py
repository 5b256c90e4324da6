"""What only the figures of one paper need, a folder for each paper."""
