"""Base of all other packages: errors, folders, types of arrays, compiled loops."""
