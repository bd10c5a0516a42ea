"""Code for several benchmarks: the runner, its results, measurements, data, models and tables."""
