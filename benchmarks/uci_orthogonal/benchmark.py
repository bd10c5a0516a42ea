"""Tables 3 and 4 of "Spherical Inducing Features for Orthogonally-Decoupled GPs": UCI regression.

Test RMSE and NLPD in original units (lower is better) of SVGP with M inducing variables (K = 0),
and of OrthogonalSVGP with M inducing variables and K orthogonal ones, which are always points.

Inducing variables:
relu, softplus
      ActivationFeatures with the degrees 0 to 5, the paper's L = 6 levels. No more units are used
      than these degrees have harmonics (75 for power, 217 for yacht): others would be dependent;
points
      gpflow's InducingPoints.

Kernels, all scales starting at one:
arc_cosine  ArcCosine of order 1, with one scale per input;
matern52    SphericalMatern52, with one scale per input;
arc_cosine_isotropic
            ArcCosine of order 1 with the same scale for all inputs; not run unless asked for;
matern52_euclidean
            gpflow's Matern52 with one scale per input, for points only; not run unless asked for.

Training as in the paper's Appendix B: inputs and outputs are standardised, the noise variance
starts at 1, the first iterations of L-BFGS are for the inducing variables and q alone (up to 100 in
the paper), then L-BFGS for everything. The routes (--q) differ in how they treat q:
optimal     q is at its optimum throughout, which is known in closed form;
whitened    q is a parameter like others, of the whitened variables, starting at N(0, I);
unwhitened  the same of the variables themselves: what the paper did.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks._lib.data import add_data_argument, load_table, source_of
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, indices, names
from benchmarks._lib.splits import normalise, take_split
from benchmarks.uci_orthogonal.cells import DATASETS, INDUCING, KERNELS, ROUTES, SIZES
from benchmarks.uci_orthogonal.models import build_model, fit_in_two_phases, in_original_units
from benchmarks.uci_orthogonal.table import table_of


class UciOrthogonal(Benchmark):
    __doc__ = __doc__
    name = "uci_orthogonal"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--datasets", type=names(list(DATASETS), "data sets"), default=None)
        parser.add_argument("--kernels", type=names(KERNELS, "kernels"), default=None)
        parser.add_argument("--inducing", type=names(INDUCING, "inducing variables"), default=None)
        parser.add_argument(
            "--sizes", type=sizes, default=None, help="(M, K), such as 128+0,128+128 (default: all)"
        )
        parser.add_argument(
            "--splits",
            type=indices,
            default=None,
            help="such as 0-4 (default: 0-4, but 0 of kin8nm and power)",
        )
        parser.add_argument("--q", choices=ROUTES, default="optimal", help="how q is found")
        parser.add_argument(
            "--first-iterations", type=int, default=None, help="of the first phase's L-BFGS"
        )
        parser.add_argument(
            "--max-iterations", type=int, default=None, help="of the second phase's L-BFGS"
        )

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        """All cells of a split before the next split, so that an interrupted run has whole ones."""
        short = arguments.short
        datasets = arguments.datasets or (["yacht"] if short else list(DATASETS))
        most = 1 if short else max(splits for splits, _, _ in DATASETS.values())
        for split in arguments.splits or range(most):
            for dataset in datasets:
                default_splits, *phases = DATASETS[dataset]
                if arguments.splits is None and split >= default_splits:
                    continue
                first = arguments.first_iterations or (20 if short else phases[0])
                iterations = arguments.max_iterations or (20 if short else phases[1])
                for kernel in arguments.kernels or ["arc_cosine", "matern52"]:
                    for iv in arguments.inducing or INDUCING:
                        if kernel == "matern52_euclidean" and iv != "points":
                            continue  # activation features need a zonal kernel
                        for M, K in arguments.sizes or ([(128, 128)] if short else SIZES):
                            yield {
                                "dataset": dataset,
                                "kernel": kernel,
                                "inducing": iv,
                                "M": M,
                                "K": K,
                                "split": split,
                                "seed": split,
                                "q": arguments.q,
                                "first_iterations": first,
                                "max_iterations": iterations,
                                "source": source_of(arguments.data_dir),
                            }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        from benchmarks._lib.regression import test_errors

        table = load_table(configuration["dataset"], arguments.data_dir)
        split = normalise(take_split(table, configuration["split"]))
        start = time.perf_counter()
        model = build_model(
            configuration["kernel"],
            configuration["inducing"],
            configuration["M"],
            configuration["K"],
            split,
            configuration["seed"],
            whiten=configuration["q"] != "unwhitened",
        )
        first, second = fit_in_two_phases(
            model,
            (split.X_train, split.Y_train),
            optimal_q=configuration["q"] == "optimal",
            first_iterations=configuration["first_iterations"],
            max_iterations=configuration["max_iterations"],
        )
        seconds = time.perf_counter() - start
        return {
            **in_original_units(test_errors(model, split), split),
            "num_inducing": int(model.inducing_variable.num_inducing),
            **second,
            "elbo": float(model.elbo((split.X_train, split.Y_train))),
            "first_phase": first,
            "noise_variance": float(model.likelihood.variance.numpy()),
            "fit_seconds": round(seconds, 2),
        }

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)


def sizes(text: str) -> list[tuple[int, int]]:
    """The pairs (M, K) that `--sizes 128+0,128+128` names."""
    try:
        pairs = [tuple(int(number) for number in part.split("+")) for part in text.split(",")]
        return [(M, K) for M, K in pairs]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of sizes: write 128+0,128+128"
        ) from None
