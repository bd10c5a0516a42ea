"""Kernels and groups: the decomposition of an invariant kernel, and invariant functions."""
