"""Stationary kernels summed over the images of a box, with its waves as eigenfunctions."""
