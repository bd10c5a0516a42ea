"""Convolutional kernels of images, and inducing patches."""
