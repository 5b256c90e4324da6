"""The simulation core: engine, decisions, records."""
