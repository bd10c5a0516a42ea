"""Dutordoir, Durrande & Hensman 2020, "Sparse Gaussian processes with spherical harmonic
features": VISH; and the variational Fourier features of Hensman, Durrande & Solin 2018."""
