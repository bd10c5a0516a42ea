"""The benchmark of rows that are linear functionals of f."""
