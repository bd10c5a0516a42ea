"""Shen, Heinonen & Kaski 2019, "Harmonizable mixture kernels with variational Fourier
features"."""
