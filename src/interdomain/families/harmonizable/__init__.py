"""Harmonizable mixture kernels, whose frequencies vary over the input space, spectral mixture
kernels, and Fourier features (Shen et al. 2019)."""
