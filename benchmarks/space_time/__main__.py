"""The command `python -m benchmarks.space_time`."""

from benchmarks.space_time.benchmark import SpaceTime

SpaceTime.command()
