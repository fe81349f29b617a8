"""Measurements of what the project promises, as ratios within one run wherever a ratio can say it.

`python -m benchmarks` runs them all and prints a table; `python -m benchmarks.NAME --json FILE` runs one. A goal that is not
reached is shown as such, and does not change the exit code: that says only whether the measuring itself went well.
"""
