"""Banana with a harmonizable mixture: inducing points against Fourier features."""
