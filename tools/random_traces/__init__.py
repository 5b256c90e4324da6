"""Random traces under every policy and rule set, checked without the engine."""
