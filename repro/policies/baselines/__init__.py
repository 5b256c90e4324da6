"""Orders by arrival and by known size, and scripted decisions."""
