"""What the benchmarks share: the runner and its results, measuring, data, models, tables."""
