"""Banana classification with a harmonizable mixture: inducing points against Fourier features
(Shen, Heinonen and Kaski 2019, section 5.2, Figure 2 and section 6.2 of the supplement).

400 training rows of two inputs, 4,900 test rows, Bernoulli likelihood, P = 4 components of two
frequencies. The kernel is learned by a full variational GP (gpflow's VGP); sparse models then start
with that kernel:
full                the VGP;
points              SVGP with 6, 8, 12, 18 and 24 inducing points, at first by k-means;
fourier             AdditiveSVGP with 2, 4, 6 and 8 frequencies for each component: q is mean-field;
fourier_joint       SVGP with the same features and a joint q.
200 natural gradient steps for q alone are followed by 700 rounds of a natural gradient step for q
and an Adam step for everything else (the kernel too; with `--kernels fixed` all but the kernel).
Of five restarts, other k-means or frequencies with some noise, the one with the highest training
accuracy counts (of equal ones that with the highest bound).

Compared are models of equal numbers of variational parameters: M + M (M + 1) / 2 for each block of
M variables, a frequency having two, or one if it is zero.

The picture, banana_hmk.png, is drawn from the records.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks._lib.data import add_data_argument, source_of
from benchmarks._lib.results import Record, ResultFile
from benchmarks._lib.runner import Benchmark, Configuration, indices, names, result_folder
from benchmarks.banana_hmk.models import FULL, banana, full_record, train_full, train_sparse
from benchmarks.banana_hmk.pictures import draw
from benchmarks.banana_hmk.table import table_of

SIZES = {
    "points": (6, 8, 12, 18, 24),
    "fourier": (2, 4, 6, 8),
    "fourier_joint": (2, 4, 6, 8),
}
KERNELS = ("fixed", "trained")
NUM_COMPONENTS = 4


class BananaHmk(Benchmark):
    __doc__ = __doc__
    name = "banana_hmk"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--models", type=names(tuple(SIZES), "sparse models"), default=None)
        parser.add_argument("--num-frequencies", type=int, default=2, help="of each component")
        parser.add_argument("--full-steps", type=int, default=None, help="of the VGP, default 200")
        parser.add_argument("--rounds", type=int, default=None, help="default 700")
        parser.add_argument(
            "--kernels",
            type=names(KERNELS, "ways with the kernel"),
            default=None,
            help="in phase 2",
        )
        parser.add_argument("--seeds", type=indices, default=None, help="restarts, default 0-4")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        full = {
            "model": FULL,
            "num_components": NUM_COMPONENTS,
            "num_frequencies": arguments.num_frequencies,
            "full_steps": arguments.full_steps or (5 if short else 200),
            "learning_rate": 0.01,
            "natural_gradient": 0.1,
            "source": source_of(arguments.data_dir),
        }
        yield full
        for seed in arguments.seeds or ([0] if short else range(5)):
            for kernel in arguments.kernels or KERNELS[: 1 if short else None]:
                for model in arguments.models or tuple(SIZES):
                    for size in SIZES[model][: 1 if short else None]:
                        yield {
                            **full,
                            "model": model,
                            "size": size,
                            "q_steps": 5 if short else 200,
                            "rounds": arguments.rounds or (5 if short else 700),
                            "kernel": kernel,
                            "seed": seed,
                        }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        data = banana(arguments.data_dir)
        if configuration["model"] == FULL:
            return train_full(configuration, data)
        file = ResultFile(result_folder(arguments) / f"{self.name}.jsonl")
        return train_sparse(configuration, data, full_record(configuration, file.records()))

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)

    def draw(self, folder: Path, records: Sequence[Record], arguments: argparse.Namespace) -> None:
        draw(folder, records, banana(arguments.data_dir))
