"""Selections: the jobs that run under an `Order`, kept up to date from event to event."""
