"""Known non-stationary kernels, recovered by harmonizable mixtures."""
