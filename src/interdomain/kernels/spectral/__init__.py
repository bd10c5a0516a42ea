"""Kernels given by a spectrum of a few frequencies, which may differ from place to place."""
