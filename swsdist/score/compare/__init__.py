"""Systems beside each other: tests, intervals, breakdowns."""
