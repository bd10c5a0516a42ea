"""The command `python -m benchmarks.estimators`."""

from benchmarks.estimators.benchmark import EstimatorsBenchmark

EstimatorsBenchmark.command()
