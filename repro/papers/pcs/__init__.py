"""What the figures of PCS compute."""
