"""Rectangles: is one wider than tall? Van der Wilk, Rasmussen and Hensman 2017, sections 3.1, 3.2.

1,200 training images of 28 x 28 pixels, each the outline of a rectangle; 50,000 test images; probit
likelihood. The convolutional models have 16 inducing patches of 3 x 3, uniform noise at first, and
are trained by Adam 0.01 with minibatches of 100, as in the paper.
invariant  the same weight for all patches;
weighted   a weight for each;
rbf_full   a squared exponential with an inducing point at every training image and a full q: the
           paper's "1,200 optimally placed inducing points, optimised with BFGS"; L-BFGS here.
The base kernel starts with variance 100 (invariant) or 300 (weighted), which Adam moves by no more
than about 0.01 a step; with --variance 1, as in the paper's code, the same bound takes more steps.
`--natural-gradient` gives q natural gradients, which the paper does not do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks._lib.data import add_data_argument, load_images, source_of
from benchmarks._lib.image_models import PaperErrors, labelled_rows, table_of, train_and_judge
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, names

PAPER = {
    "invariant": PaperErrors(1.4, 0.055, decimals=1),
    "weighted": PaperErrors(0.0, 0.005, decimals=1),
    "rbf_full": PaperErrors(5.0, 0.258, decimals=1),
}
MODELS = tuple(PAPER)
DEFAULT_STEPS = {"invariant": 2_000, "weighted": 3_000, "rbf_full": 500}
DEFAULT_VARIANCE = {"invariant": 100.0, "weighted": 300.0, "rbf_full": 1.0}


class Rectangles(Benchmark):
    __doc__ = __doc__
    name = "rectangles"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--models", type=names(MODELS, "models"), default=MODELS)

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        for model in arguments.models:
            full = model == "rbf_full"
            yield {
                "model": model,
                "num_inducing": 16,
                "images": 200 if short else 1_200,
                "test_images": 200 if short else 50_000,
                "patch": 3,
                "stride": 1,
                "patches_from": "noise",
                "variance": DEFAULT_VARIANCE[model],
                "lengthscale": 1.0,
                "rbf_variance": 1.0,
                "rbf_lengthscale": 3.0,
                "steps": 20 if short else DEFAULT_STEPS[model],
                "batch_size": None if full else 100,
                "learning_rate": None if full else 0.01,
                "decay_every": None,
                "natural_gradient": None,
                "seed": 0,
                "source": source_of(arguments.data_dir),
            }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        rows = labelled_rows(
            load_images("rectangles", arguments.data_dir),
            train=configuration["images"],
            test=configuration["test_images"],
            seed=configuration["seed"],
            largest=1.0,
        )
        return train_and_judge(configuration, rows)

    def table(self, records: Sequence[Record]) -> str:
        return f"Rectangles, 50,000 test images\n\n{table_of(records, PAPER)}"


if __name__ == "__main__":
    sys.exit(Rectangles().main())
