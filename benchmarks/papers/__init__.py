"""A folder for each paper, with the benchmarks that repeat its tables and figures."""
