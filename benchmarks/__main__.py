"""A short version of every benchmark, to see that all of them work: `python -m benchmarks`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks._lib.data import add_data_argument
from benchmarks._lib.runner import Benchmark
from benchmarks.additive import AdditiveTables
from benchmarks.airline_scale import AirlineScale
from benchmarks.any_likelihood import AnyLikelihood
from benchmarks.banana_degree import BananaDegree
from benchmarks.banana_hmk import BananaHmk
from benchmarks.collapsed_step import CollapsedStep
from benchmarks.convolutional import ConvolutionalGps
from benchmarks.data_pass import DataPass
from benchmarks.deep_conv import DeepConv
from benchmarks.deep_uci import DeepUci
from benchmarks.elevation import Elevation
from benchmarks.globe import Globe
from benchmarks.hvgp_scaling import HvgpScaling
from benchmarks.hvgp_tables import HvgpTables
from benchmarks.image_patches import ImagePatches
from benchmarks.kernel_recovery import KernelRecovery
from benchmarks.neighbours import NeighboursBenchmark
from benchmarks.nystrom import Nystrom
from benchmarks.pareto.benchmark import Pareto
from benchmarks.snelson import Snelson
from benchmarks.solar import Solar
from benchmarks.startup.benchmark import Startup
from benchmarks.terrain import Terrain
from benchmarks.transform_mnist import TransformMnist
from benchmarks.uci_orthogonal.benchmark import UciOrthogonal
from benchmarks.uci_vish import UciVish
from benchmarks.vff_additive import VffAdditive

BENCHMARKS: dict[str, type[Benchmark]] = {
    benchmark.name: benchmark
    for benchmark in (
        CollapsedStep,
        DeepUci,
        DataPass,
        Terrain,
        NeighboursBenchmark,
        AnyLikelihood,
        AdditiveTables,
        Pareto,
        UciVish,
        VffAdditive,
        HvgpScaling,
        HvgpTables,
        Elevation,
        Globe,
        Nystrom,
        TransformMnist,
        UciOrthogonal,
        Snelson,
        ConvolutionalGps,
        DeepConv,
        ImagePatches,
        KernelRecovery,
        BananaDegree,
        BananaHmk,
        Solar,
        AirlineScale,
        Startup,
    )
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the short versions one after the other; the status is 1 when one of them failed."""
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
            options += ["--data-dir", str(arguments.data_dir)]
        status = max(status, benchmark.main(options))
    return status


if __name__ == "__main__":
    sys.exit(main())
