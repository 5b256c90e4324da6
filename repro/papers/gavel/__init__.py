"""What single figures of Gavel compute."""
