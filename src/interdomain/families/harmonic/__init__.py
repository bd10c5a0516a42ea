"""Kernels that transformations leave unchanged: their decomposition (HVGP), the part that does not
change (Invariant), and inducing points of both. ``transforms`` is independent of GPflow."""
