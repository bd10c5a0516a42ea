"""Simulation-based calibration: ranks of the truth under the predictive of every model."""
