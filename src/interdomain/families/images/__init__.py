"""Convolutional kernels of images, and their inducing patches."""
