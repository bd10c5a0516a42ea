"""The command `python -m benchmarks.pareto`."""

from benchmarks.pareto.benchmark import Pareto

Pareto.command()
