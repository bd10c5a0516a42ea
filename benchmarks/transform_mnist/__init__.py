"""HVGP on transformed MNIST: transforms that match the data against others."""
