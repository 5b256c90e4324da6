"""At the end of a run: every cost, and how busy the cluster was."""

import costs


def pytest_terminal_summary(terminalreporter):
    if costs.NOTED:
        terminalreporter.section("costs")
        for line in costs.lines():
            terminalreporter.write_line(line)
