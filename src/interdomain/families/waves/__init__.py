"""Stationary kernels made periodic on a box, and Fourier features of boxes and intervals."""
