"""Known non-stationary kernels recovered by harmonizable mixtures: Shen, Heinonen and Kaski 2019,
section 5.1 and Figures 3 and 5.

gsm         a generalized spectral mixture of one part on [-1, 1], with
            w(x) = 1 + 0.3 sin(pi x), l(x) = 0.4 + 0.1 cos(pi x), mu(x) = 2 + x;
ifbm_0.5    time-inverted fractional Brownian motion on (0.1, 1.1], h = 1/2: 1 / max(s, t);
ifbm_0.75   the same with h = 3/4, which is smoother.
The paper does not give w, l, mu and h. Each target is approximated by
hmk         a HarmonizableMixture of P components with Q frequencies and complex amplitudes;
sm          a stationary SpectralMixture of as many trainable numbers.

The mean squared error over all pairs of 64 + 64 random places is minimised by Adam, as in the
paper, then that over a regular grid of 81 x 81 by L-BFGS. Reported is the error over a regular grid
of 100 x 100, also relative to the mean square of the target, and beside it the least error that any
stationary function has there. Starts are random: centres spread over the domain (for ifbm in
log t), windows as wide as their distance, frequencies and amplitudes random.

The pictures kernel_recovery.png and kernel_recovery_wigner.png are drawn from the records.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, indices, names
from benchmarks.kernel_recovery.pictures import draw
from benchmarks.kernel_recovery.recovery import recover
from benchmarks.kernel_recovery.starts import KERNELS, stationary_size
from benchmarks.kernel_recovery.table import table_of
from benchmarks.kernel_recovery.targets import TARGETS


class KernelRecovery(Benchmark):
    __doc__ = __doc__
    name = "kernel_recovery"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--targets", type=names(tuple(TARGETS), "targets"), default=None)
        parser.add_argument("--kernels", type=names(KERNELS, "kernels"), default=KERNELS)
        parser.add_argument("--num-components", type=int, default=None, help="P, default 6")
        parser.add_argument("--num-frequencies", type=int, default=None, help="Q, default 3")
        parser.add_argument("--steps", type=int, default=None, help="of Adam, default 2000")
        parser.add_argument("--iterations", type=int, default=None, help="of L-BFGS, default 300")
        parser.add_argument("--seeds", type=indices, default=None, help="default 0-4; sm: 0-1")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        P = arguments.num_components or (3 if short else 6)
        Q = arguments.num_frequencies or (2 if short else 3)
        for kernel in arguments.kernels:
            stationary = kernel == "sm"
            starts = 1 if short else 2 if stationary else 5
            for seed in arguments.seeds or range(starts):
                for target in arguments.targets or TARGETS:
                    yield {
                        "target": target,
                        "kernel": kernel,
                        "num_components": stationary_size(P, Q) if stationary else P,
                        "num_frequencies": 1 if stationary else Q,
                        "steps": arguments.steps or (20 if short else 500 if stationary else 2_000),
                        "batch_size": 64,
                        "learning_rate": 0.02,  # a tenth of it at the end
                        "iterations": arguments.iterations
                        or (5 if short else 100 if stationary else 300),
                        "seed": seed,
                    }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        return recover(configuration)

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)

    def draw(self, folder: Path, records: Sequence[Record], arguments: argparse.Namespace) -> None:
        draw(folder, records)
