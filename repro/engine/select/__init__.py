"""Which jobs run: selections kept up to date from event to event."""
