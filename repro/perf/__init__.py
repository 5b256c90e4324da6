"""How fast jobs run on what they hold, and what preemption costs."""
