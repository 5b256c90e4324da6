"""What single figures of Liquid compute."""
