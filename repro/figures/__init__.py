"""The interface of notebooks: a figure with its parameters, data, claims and results."""
