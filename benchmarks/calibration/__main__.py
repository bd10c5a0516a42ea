"""The command `python -m benchmarks.calibration`."""

from benchmarks.calibration.benchmark import Calibration

Calibration.command()
