"""Convolutional GPs on MNIST: van der Wilk, Rasmussen and Hensman 2017, section 3.1 and Table 1.

zero_one   zeros against ones: 50 inducing patches, probit likelihood;
ten        all classes: ten latent GPs with the same kernel, robust-max likelihood, four kernels.

Patches are 5 x 5. Their distance is one pixel in the paper; two is the default for ten classes: a
quarter of the patches, a sixteenth of the work for their variances. Inducing patches are different
patches of training images, the RBF's inducing points are training images. "weighted_rbf" has a
joint q of all 2M variables, as in the paper's code for Table 1; "weighted_rbf_mean_field", run only
when asked for, has not. Training is by Adam; the learning rate is divided by the cube root of ten
three times, as in the paper's code. `--paper` takes the sizes of Table 1 (M = 750, stride 1,
minibatches of 200, learning rate 0.001, variance and lengthscale of the patch kernel one at first):
days without a GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks._lib.data import add_data_argument, load_images, only_classes, source_of
from benchmarks._lib.image_models import (
    PaperErrors,
    labelled_rows,
    table_of,
    train_and_judge,
)
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names

TASKS = ("zero_one", "ten")
DEFAULT_MODELS = {
    "zero_one": ("invariant",),
    "ten": ("rbf", "invariant", "weighted", "weighted_rbf"),
}
MODELS = DEFAULT_MODELS["ten"]
PAPER = {
    "zero_one": {"invariant": PaperErrors(0.3, decimals=1)},
    "ten": {
        "rbf": PaperErrors(1.90, 0.068),
        "invariant": PaperErrors(2.08, 0.077),
        "weighted": PaperErrors(1.22, 0.048),
        "weighted_rbf": PaperErrors(1.17, 0.039),
    },
}
TITLES = {
    "zero_one": "MNIST, zeros against ones",
    "ten": "MNIST, ten classes (the paper: M = 750)",
}
NUM_IMAGES = {"zero_one": 12_665, "ten": 60_000}
# At first; those of the paper's code are all one.
VARIANCE, LENGTHSCALE, RBF_LENGTHSCALE = 10.0, 2.0, 10.0


class MnistConv(Benchmark):
    __doc__ = __doc__
    name = "mnist_conv"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--tasks", type=names(TASKS, "tasks"), default=None)
        parser.add_argument("--models", type=names(MODELS, "models"), default=None)
        parser.add_argument("--steps", type=int, default=None, help="default 3000")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        for task in arguments.tasks or TASKS:
            ten = task == "ten"
            for model in arguments.models or DEFAULT_MODELS[task]:
                if short and arguments.models is None and model in ("rbf", "weighted"):
                    continue
                steps = arguments.steps or (5 if short else 3_000)
                yield {
                    "task": task,
                    "model": model,
                    "num_inducing": 10 if short else 200 if ten else 50,
                    "images": 500 if short else NUM_IMAGES[task],
                    "test_images": 100 if short else 10_000,
                    "patch": 5,
                    "stride": 2 if ten else 1,
                    "patches_from": "images",
                    "variance": VARIANCE,
                    "lengthscale": LENGTHSCALE,
                    "rbf_variance": 10.0 if model == "rbf" else 1.0,
                    "rbf_lengthscale": RBF_LENGTHSCALE,
                    "steps": steps,
                    "batch_size": 100,
                    "learning_rate": 0.01,
                    "decay_every": max(1, steps // 4),
                    "natural_gradient": None,
                    "seed": 0,
                    "source": source_of(arguments.data_dir),
                }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        images = load_images("mnist", arguments.data_dir)
        if configuration["task"] == "zero_one":
            images = only_classes(images, 2)
        rows = labelled_rows(
            images,
            train=configuration["images"],
            test=configuration["test_images"],
            seed=configuration["seed"],
        )
        return train_and_judge(configuration, rows)

    def table(self, records: Sequence[Record]) -> str:
        return tables(records)


def tables(records: Sequence[Record]) -> str:
    """A table for each task."""
    parts = []
    for task in TASKS:
        found = [record for record in records if record["configuration"]["task"] == task]
        if found:
            parts.append(f"{TITLES[task]}\n\n{table_of(found, PAPER[task])}")
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(MnistConv().main())
