"""Periodized stationary kernels on a box, and Fourier features of boxes and intervals."""
