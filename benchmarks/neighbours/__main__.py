"""The command `python -m benchmarks.neighbours`."""

from benchmarks.neighbours.benchmark import NeighboursBenchmark

NeighboursBenchmark.command()
