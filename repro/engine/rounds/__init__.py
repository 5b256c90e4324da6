"""Rounds: shares of time turned into who runs where (Gavel, section 5)."""
