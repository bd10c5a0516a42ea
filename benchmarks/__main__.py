"""A short version of every benchmark, which tests that all of them work: `python -m benchmarks`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from benchmarks._lib.data import add_data_argument
from benchmarks._lib.runner import Benchmark

MODULES = """deep_uci fast_sums terrain splines functionals.benchmark space_time.benchmark
neighbours.benchmark
heaton referees.benchmark estimators.benchmark calibration.benchmark any_likelihood additive
pareto.benchmark
papers.vish.uci_vish papers.vish.vff_additive hvgp_scaling papers.hvgp.hvgp_tables
papers.hvgp.elevation globe papers.hvgp.nystrom papers.hvgp.transform_mnist
papers.activation.uci_orthogonal papers.activation.snelson papers.convolutional.convolutional
papers.hvgp.deep_conv papers.hvgp.image_patches papers.harmonizable.kernel_recovery
papers.vish.banana_degree papers.harmonizable.banana_hmk papers.harmonizable.solar airline_scale
startup.benchmark""".split()
"""Modules in the order in which they run; each has one benchmark class."""


def _class_in(module: str) -> type[Benchmark]:
    found = importlib.import_module(f"benchmarks.{module}")
    return next(kind for kind in Benchmark.__subclasses__() if kind.__module__ == found.__name__)


BENCHMARKS = {kind.name: kind for kind in map(_class_in, MODULES)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the short versions one after the other; the exit status is 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add_data_argument(parser)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(BENCHMARKS)}")
    arguments = parser.parse_args(argv)
    unknown = set(arguments.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"there are no benchmarks named {sorted(unknown)}")
    status = 0
    for name in arguments.names or BENCHMARKS:
        print(f"\n## {name}\n", flush=True)
        options = ["--short", "--rerun"]
        benchmark = BENCHMARKS[name]()
        if arguments.data_dir is not None and "--data-dir" in benchmark._parser().format_usage():
            options += ["--data-dir", arguments.data_dir]
        status = max(status, benchmark.main(options))
    return status


if __name__ == "__main__":
    sys.exit(main())
