"""The command `python -m benchmarks.startup`."""

from benchmarks.startup.benchmark import Startup

Startup.command()
