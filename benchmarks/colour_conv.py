"""Convolutional GPs on CIFAR-10: van der Wilk, Rasmussen and Hensman 2017, Figure 3.

Ten latent GPs with the same kernel, robust-max likelihood (`--likelihood softmax`: another one,
under which certainty where errors cannot be avoided costs what it should), patches of 5 x 5 pixels:
rbf            a squared exponential on whole images;
weighted       patches of each channel by themselves, one g, a weight for each;
colour_patch   patches of all channels;
additive       the same, k_g being a sum over the channels;
multi_channel  a g for each channel; shared inducing patches, independent q's.
The distance of the patches is three pixels (the paper: one), the same for all. Training is by Adam
as in `mnist_conv`. The file of `--data-dir` holds 5,000 training and 1,000 test images decoded from
JPEG copies: accuracies cannot be the paper's, the order of the models can. `--paper` takes the
paper's sizes (M = 1,000, stride 1, minibatches of 40, learning rate 0.001) and all 50,000 images,
which Keras fetches: days without a GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks._lib.data import add_data_argument, load_images, source_of
from benchmarks._lib.image_models import (
    PaperErrors,
    labelled_rows,
    table_of,
    train_and_judge,
)
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names

# Figure 3 has curves; the text has two final errors.
PAPER = {
    "rbf": PaperErrors(48.6, decimals=1),
    "weighted": PaperErrors(),
    "colour_patch": PaperErrors(),
    "additive": PaperErrors(),
    "multi_channel": PaperErrors(35.4, decimals=1),
}
MODELS = tuple(PAPER)
LIKELIHOODS = ("robust_max", "softmax")


class ColourConv(Benchmark):
    __doc__ = __doc__
    name = "colour_conv"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--models", type=names(MODELS, "models"), default=None)
        parser.add_argument("--steps", type=int, default=None, help="default 1000")
        parser.add_argument("--natural-gradient", type=float, default=None, help="for q")
        parser.add_argument("--likelihood", choices=LIKELIHOODS, default=LIKELIHOODS[0])

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short, softmax = arguments.short, arguments.likelihood == "softmax"
        for model in arguments.models or (("rbf", "multi_channel") if short else MODELS):
            steps = arguments.steps or (5 if short else 1_000)
            yield {
                "model": model,
                "num_inducing": 10 if short else 100,
                "images": 200 if short else 5_000,
                "test_images": 100 if short else 1_000,
                "patch": 5,
                "stride": 3,
                "patches_from": "images",
                "variance": 100.0 if softmax else 10.0,
                "lengthscale": 1.0,
                "rbf_variance": 10.0,
                "rbf_lengthscale": 10.0,
                "steps": steps,
                "batch_size": 50,
                "learning_rate": 0.01,
                "decay_every": max(1, steps // 4),
                "natural_gradient": arguments.natural_gradient,
                "seed": 0,
                "source": source_of(arguments.data_dir),
                **({"likelihood": "softmax"} if softmax else {}),
            }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        rows = labelled_rows(
            load_images("cifar10", arguments.data_dir),
            train=configuration["images"],
            test=configuration["test_images"],
            seed=configuration["seed"],
        )
        return train_and_judge(configuration, rows)

    def table(self, records: Sequence[Record]) -> str:
        return (
            "CIFAR-10 (the paper: M = 1,000, 50,000 images; between its two figures: the other "
            f"models)\n\n{table_of(records, PAPER)}"
        )


if __name__ == "__main__":
    sys.exit(ColourConv().main())
