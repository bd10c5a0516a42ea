"""The command `python -m benchmarks.referees`."""

from benchmarks.referees.benchmark import Referees

Referees.command()
