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

import numpy as np

from benchmarks._lib.data import Array, add_data_argument, load_table, source_of
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, indices, names
from benchmarks._lib.splits import NormalisedSplit, normalise, take_split
from benchmarks._lib.tables import PaperFigure, markdown, mean_and_deviation, ranges

KERNELS = ("arc_cosine", "matern52", "arc_cosine_isotropic", "matern52_euclidean")
INDUCING = ("relu", "softplus", "points")
SIZES = ((128, 0), (128, 128), (256, 0))  # (M, K)
ROUTES = ("optimal", "whitened", "unwhitened")
MAX_DEGREE = 5  # the paper's L = 6 levels: 0, ..., 5

# Data set: (splits, iterations of the two phases) of the default run.
DATASETS = {
    "yacht": (5, 50, 500),
    "energy": (5, 50, 200),
    "concrete": (5, 30, 120),
    "kin8nm": (1, 10, 30),
    "power": (1, 10, 30),
}

# Tables 3 (RMSE) and 4 (NLPD) of the paper (paper 002: Tiao, Dutordoir, Picheny, ICML 2023): mean
# and deviation; the columns are relu, softplus and points, each with arc-cosine and Matern-5/2.
_PRINTED = {
    ("yacht", 128, 0): (
        "1.17 0.36, 2.43 0.54, 1.16 0.36, 2.43 0.54, 1.06 0.24, 0.34 0.19",
        "1.81 0.08, 2.51 0.06, 1.80 0.08, 2.51 0.06, 1.50 0.15, 0.33 0.25",
    ),
    ("yacht", 128, 128): (
        "0.59 0.23, 0.51 0.25, 0.60 0.23, 0.49 0.29, 1.06 0.23, 0.34 0.19",
        "0.91 0.26, 0.73 0.40, 0.92 0.26, 0.70 0.41, 1.51 0.17, 0.30 0.23",
    ),
    ("yacht", 256, 0): (
        "1.16 0.35, 2.43 0.54, 1.13 0.36, 2.43 0.54, 1.07 0.23, 0.28 0.14",
        "1.81 0.08, 2.51 0.06, 1.79 0.08, 2.51 0.06, 1.52 0.18, 0.07 0.30",
    ),
    ("energy", 128, 0): (
        "1.36 0.30, 1.58 0.17, 0.95 0.10, 1.53 0.16, 0.47 0.08, 0.47 0.08",
        "1.83 0.12, 2.03 0.04, 1.49 0.04, 2.01 0.04, 0.70 0.17, 0.68 0.20",
    ),
    ("energy", 128, 128): (
        "0.47 0.08, 0.47 0.08, 0.47 0.08, 0.47 0.08, 0.48 0.08, 0.47 0.08",
        "0.68 0.20, 0.68 0.20, 0.69 0.20, 0.69 0.19, 0.70 0.18, 0.67 0.19",
    ),
    ("energy", 256, 0): (
        "0.91 0.08, 1.51 0.15, 0.86 0.08, 1.51 0.15, 0.47 0.08, 0.46 0.08",
        "1.43 0.03, 1.99 0.04, 1.38 0.03, 1.99 0.04, 0.70 0.18, 0.67 0.20",
    ),
    ("concrete", 128, 0): (
        "6.82 0.30, 6.92 0.25, 6.69 0.29, 6.89 0.26, 6.58 0.37, 5.94 0.25",
        "3.33 0.04, 3.36 0.02, 3.31 0.04, 3.36 0.03, 3.30 0.05, 3.19 0.07",
    ),
    ("concrete", 128, 128): (
        "5.93 0.38, 5.87 0.30, 6.06 0.32, 5.91 0.33, 6.40 0.40, 5.75 0.35",
        "3.19 0.08, 3.18 0.08, 3.22 0.08, 3.18 0.08, 3.27 0.06, 3.12 0.08",
    ),
    ("concrete", 256, 0): (
        "6.56 0.20, 6.87 0.26, 6.45 0.24, 6.86 0.26, 6.40 0.35, 5.64 0.29",
        "3.29 0.03, 3.35 0.03, 3.27 0.04, 3.35 0.03, 3.26 0.05, 3.11 0.09",
    ),
    ("kin8nm", 128, 0): (
        "0.12 0.00, 0.10 0.00, 0.10 0.00, 0.10 0.00, 0.10 0.00, 0.08 0.00",
        "-0.69 0.02, -0.78 0.02, -0.83 0.02, -0.82 0.02, -0.85 0.02, -1.03 0.02",
    ),
    ("kin8nm", 128, 128): (
        "0.08 0.00, 0.08 0.00, 0.08 0.00, 0.08 0.00, 0.09 0.00, 0.08 0.00",
        "-1.03 0.02, -1.03 0.02, -1.03 0.02, -1.03 0.02, -0.90 0.01, -1.10 0.02",
    ),
    ("kin8nm", 256, 0): (
        "0.10 0.00, 0.10 0.00, 0.09 0.00, 0.10 0.00, 0.09 0.00, 0.08 0.00",
        "-0.89 0.02, -0.83 0.02, -0.95 0.02, -0.84 0.02, -0.90 0.01, -1.10 0.02",
    ),
    ("power", 128, 0): (
        "4.20 0.16, 4.22 0.15, 4.20 0.16, 4.22 0.15, 3.93 0.18, 3.90 0.19",
        "2.85 0.04, 2.86 0.03, 2.85 0.04, 2.86 0.03, 2.79 0.04, 2.78 0.05",
    ),
    ("power", 128, 128): (
        "3.96 0.18, 3.96 0.19, 3.91 0.19, 3.96 0.19, 3.85 0.18, 3.71 0.19",
        "2.80 0.05, 2.80 0.05, 2.79 0.05, 2.80 0.05, 2.77 0.04, 2.73 0.05",
    ),
    ("power", 256, 0): (
        "4.20 0.16, 4.22 0.15, 4.20 0.16, 4.22 0.15, 3.83 0.19, 3.68 0.19",
        "2.85 0.04, 2.86 0.03, 2.85 0.04, 2.86 0.03, 2.77 0.05, 2.73 0.05",
    ),
}
_COLUMNS = [(iv, kernel) for iv in INDUCING for kernel in ("arc_cosine", "matern52")]


def _read(cell: str) -> PaperFigure:
    mean, deviation = cell.split()
    return PaperFigure(float(mean), float(deviation), mean_decimals=2, deviation_decimals=2)


# (data set, kernel, inducing variable, M, K): (RMSE, NLPD).
PAPER: dict[tuple[str, str, str, int, int], tuple[PaperFigure, PaperFigure]] = {
    (dataset, kernel, iv, M, K): (_read(rmse), _read(nlpd))
    for (dataset, M, K), rows in _PRINTED.items()
    for (iv, kernel), rmse, nlpd in zip(_COLUMNS, *(row.split(", ") for row in rows), strict=True)
}


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


def build_model(
    kernel_name: str, iv_name: str, M: int, K: int, split: NormalisedSplit, seed: int, whiten: bool
) -> Any:
    """The model of one cell at its initial parameters: unit scales, noise variance 1."""
    import gpflow

    import interdomain as idm
    from benchmarks._lib.regression import inducing_points

    num_rows, input_dim = split.X_train.shape
    kernel = build_kernel(kernel_name, input_dim)
    likelihood = gpflow.likelihoods.Gaussian(variance=1.0)
    points = inducing_points(split.X_train, M + K if iv_name == "points" else max(K, 1), seed)
    points = np.random.default_rng(seed).permutation(points)
    if iv_name == "points":
        base = gpflow.inducing_variables.InducingPoints(points[:M])
        points = points[M:]
    else:
        num_units = min(M, rank(kernel, iv_name, input_dim + 1))
        base = idm.inducing_variables.ActivationFeatures.from_data(
            kernel, split.X_train, num_units, iv_name, MAX_DEGREE, seed=seed
        )
    if K == 0:
        return gpflow.models.SVGP(kernel, likelihood, base, num_data=num_rows, whiten=whiten)
    orthogonal = gpflow.inducing_variables.InducingPoints(points)
    return idm.models.OrthogonalSVGP(
        kernel, likelihood, base, orthogonal, num_data=num_rows, whiten=whiten
    )


def build_kernel(name: str, input_dim: int) -> Any:
    """A kernel with unit scales."""
    import gpflow

    import interdomain as idm

    ones = np.ones(input_dim)
    if name == "arc_cosine_isotropic":
        return idm.kernels.ArcCosine(1)
    if name == "arc_cosine":
        return idm.kernels.ArcCosine(1, weight_variances=ones)
    if name == "matern52":
        return idm.kernels.SphericalMatern52(weight_variances=ones, lengthscale=1.0)
    return gpflow.kernels.Matern52(lengthscales=ones)


def rank(kernel: Any, activation: str, dimension: int) -> int:
    """How many units of this activation can be linearly independent with this kernel."""
    import interdomain as idm

    unit = np.eye(1, dimension)
    features = idm.inducing_variables.ActivationFeatures(unit, activation, MAX_DEGREE)
    return sum(idm.sphere.num_harmonics(dimension, degree) for degree in features.degrees(kernel))


def fit_in_two_phases(
    model: Any,
    data: tuple[Array, Array],
    *,
    optimal_q: bool,
    first_iterations: int,
    max_iterations: int,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The paper's Appendix B: first all but the kernel and the noise, then everything.

    :param optimal_q: whether q is kept at its optimum rather than trained.
    :returns: how the phases ended.
    """
    import gpflow

    from benchmarks._lib.optimal_q import OptimalQ
    from benchmarks._lib.regression import fit_by_lbfgs

    bound = OptimalQ(model, data) if optimal_q else model
    external = None if optimal_q else data
    held = [p for part in (model.kernel, model.likelihood) for p in part.trainable_parameters]
    gpflow.set_trainable(held, False)
    first = fit_by_lbfgs(bound, external, first_iterations)
    gpflow.set_trainable(held, True)
    second = fit_by_lbfgs(bound, external, max_iterations)
    if isinstance(bound, OptimalQ):
        bound.assign_q()
    return first, second


def in_original_units(errors: dict[str, float], split: NormalisedSplit) -> dict[str, float]:
    """RMSE and NLPD in the units of the table, from MSE and NLPD in those of `split`."""
    scale = float(split.Y_scale.item())
    return {
        "rmse": float(np.sqrt(errors["mse"])) * scale,
        "nlpd": errors["nlpd"] + float(np.log(scale)),
    }


def table_of(records: Sequence[Record]) -> str:
    """One row per cell with both metrics; our figures are means over the finished splits."""
    names_of_group = ("dataset", "kernel", "inducing", "M", "K", "q", "max_iterations", "source")
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        group = tuple(record["configuration"][name] for name in names_of_group)
        groups.setdefault(group, []).append(record)
    rows = []
    compared = {"rmse": [0, 0], "nlpd": [0, 0]}
    for group in sorted(groups, key=_position):
        found = groups[group]
        dataset, kernel, iv, M, K, q, max_iterations, source = group
        splits = ranges(record["configuration"]["split"] for record in found)
        unfinished = sum(not record["result"]["converged"] for record in found)
        used = {record["result"]["num_inducing"] for record in found}
        row = [dataset, kernel, iv, f"{M}, {K}"]
        row[-1] += f" ({ranges(used)} used)" if used != {M} else ""
        for i, metric in enumerate(("rmse", "nlpd")):
            values = [record["result"][metric] for record in found]
            printed_kernel = kernel.removesuffix("_isotropic").removesuffix("_euclidean")
            figures = PAPER.get((dataset, printed_kernel, iv, M, K))
            paper = figures[i] if figures else None
            compared[metric][1] += paper is not None
            if any(value is None for value in values):
                row += ["not finite", str(paper or ""), "no, worse"]
                continue
            verdict = paper.verdict(float(np.mean(values))) if paper else ""
            compared[metric][0] += verdict == "yes"
            row += [mean_and_deviation(values), str(paper or ""), verdict]
        seconds = np.mean([record["result"]["fit_seconds"] for record in found])
        row += [
            f"{splits} ({'stored' if source == 'files' else 'seeded'})",
            q,
            f"{seconds:.1f}",
            f"{unfinished} of {len(found)} at {max_iterations}",
        ]
        rows.append(row)
    headers = ["data", "kernel", "inducing", "M, K"]
    for metric in ("RMSE", "NLPD"):
        headers += [metric, "paper", "within 2 sd"]
    headers += ["splits", "q", "fit s", "not converged"]
    counts = ", ".join(
        f"{metric.upper()} {within} of {total}" for metric, (within, total) in compared.items()
    )
    return (
        "Tables 3 and 4 of the paper: test RMSE and NLPD in original units, lower is better; mean "
        "± deviation over our splits\n(no deviation: one split only) beside the paper's over 5.\n"
        '"undecided": the printed digits do not tell (a deviation of 0.00 may be up to 0.005).\n\n'
        + markdown(headers, rows)
        + f"\n\nWithin two of the paper's standard deviations: {counts}."
    )


def _position(group: tuple[Any, ...]) -> tuple[Any, ...]:
    dataset, kernel, iv, M, K, q, max_iterations, source = group
    order = (list(DATASETS).index(dataset), KERNELS.index(kernel), INDUCING.index(iv))
    return (*order, M + K, K == 0, M, ROUTES.index(q), max_iterations, source)
