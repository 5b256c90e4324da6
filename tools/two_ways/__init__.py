"""Two ways to one result, compared on random settings: `python -m tools.two_ways --help`."""
