"""The command `python -m benchmarks.functionals`."""

from benchmarks.functionals.benchmark import Functionals

Functionals.command()
