"""Kernels on images that compare patches: one function of all patches, or one for each channel."""
