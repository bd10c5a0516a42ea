"""Additive variational Fourier features beside VISH."""
