"""Benchmarks of interdomain; `benchmarks/README.md` says how to run and read them."""
