"""Tables 3 and 4 of "Spherical Inducing Features for Orthogonally-Decoupled GPs": UCI regression.

Test RMSE and NLPD in original units (lower is better). The models are SVGP with M inducing
variables (K = 0), and OrthogonalSVGP with M inducing variables and K orthogonal points.

Inducing variables:
relu, softplus
      ActivationFeatures with the degrees 0 to 5, the paper's L = 6 levels. The number of units is
      at most the number of harmonics of these degrees (75 for power, 217 for yacht): more units
      would be dependent.
points
      gpflow's InducingPoints.

Kernels, with one scale per input, all starting at one:
arc_cosine  ArcCosine of order 1.
matern52    SphericalMatern52.

Training as in the paper's Appendix B: inputs and outputs are standardised, and the noise variance
starts at 1. L-BFGS first trains only the inducing variables (up to 100 iterations in the paper),
then everything. q is at its closed-form optimum throughout; the paper trains it.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.data import load_table, source_of
from benchmarks._lib.optimal_q import OptimalQ
from benchmarks._lib.regression import fit_by_lbfgs, inducing_points, test_errors
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Record, Records
from benchmarks._lib.splits import NormalisedSplit, normalise, take_split
from benchmarks._lib.tables import PaperFigure, markdown, mean_and_deviation, ranges

KERNELS = ("arc_cosine", "matern52")
INDUCING = ("relu", "softplus", "points")
SIZES = ((128, 0), (128, 128), (256, 0))  # (M, K)
MAX_DEGREE = 5  # the paper's L = 6 levels: 0, ..., 5
DATASETS = {  # (splits, iterations of the two phases) of the default run
    "yacht": (5, 50, 500),
    "energy": (5, 50, 200),
    "concrete": (5, 30, 120),
    "kin8nm": (1, 10, 30),
    "power": (1, 10, 30),
}

# Tables 3 (RMSE) and 4 (NLPD) of the paper (Tiao, Dutordoir, Picheny, ICML 2023), by data set, M
# and K: mean and deviation; the columns are relu, softplus and points, each with arc-cosine and
# Matern-5/2.
PRINTED = """
yacht 128 0 RMSE: 1.17 0.36, 2.43 0.54, 1.16 0.36, 2.43 0.54, 1.06 0.24, 0.34 0.19
yacht 128 0 NLPD: 1.81 0.08, 2.51 0.06, 1.80 0.08, 2.51 0.06, 1.50 0.15, 0.33 0.25
yacht 128 128 RMSE: 0.59 0.23, 0.51 0.25, 0.60 0.23, 0.49 0.29, 1.06 0.23, 0.34 0.19
yacht 128 128 NLPD: 0.91 0.26, 0.73 0.40, 0.92 0.26, 0.70 0.41, 1.51 0.17, 0.30 0.23
yacht 256 0 RMSE: 1.16 0.35, 2.43 0.54, 1.13 0.36, 2.43 0.54, 1.07 0.23, 0.28 0.14
yacht 256 0 NLPD: 1.81 0.08, 2.51 0.06, 1.79 0.08, 2.51 0.06, 1.52 0.18, 0.07 0.30
energy 128 0 RMSE: 1.36 0.30, 1.58 0.17, 0.95 0.10, 1.53 0.16, 0.47 0.08, 0.47 0.08
energy 128 0 NLPD: 1.83 0.12, 2.03 0.04, 1.49 0.04, 2.01 0.04, 0.70 0.17, 0.68 0.20
energy 128 128 RMSE: 0.47 0.08, 0.47 0.08, 0.47 0.08, 0.47 0.08, 0.48 0.08, 0.47 0.08
energy 128 128 NLPD: 0.68 0.20, 0.68 0.20, 0.69 0.20, 0.69 0.19, 0.70 0.18, 0.67 0.19
energy 256 0 RMSE: 0.91 0.08, 1.51 0.15, 0.86 0.08, 1.51 0.15, 0.47 0.08, 0.46 0.08
energy 256 0 NLPD: 1.43 0.03, 1.99 0.04, 1.38 0.03, 1.99 0.04, 0.70 0.18, 0.67 0.20
concrete 128 0 RMSE: 6.82 0.30, 6.92 0.25, 6.69 0.29, 6.89 0.26, 6.58 0.37, 5.94 0.25
concrete 128 0 NLPD: 3.33 0.04, 3.36 0.02, 3.31 0.04, 3.36 0.03, 3.30 0.05, 3.19 0.07
concrete 128 128 RMSE: 5.93 0.38, 5.87 0.30, 6.06 0.32, 5.91 0.33, 6.40 0.40, 5.75 0.35
concrete 128 128 NLPD: 3.19 0.08, 3.18 0.08, 3.22 0.08, 3.18 0.08, 3.27 0.06, 3.12 0.08
concrete 256 0 RMSE: 6.56 0.20, 6.87 0.26, 6.45 0.24, 6.86 0.26, 6.40 0.35, 5.64 0.29
concrete 256 0 NLPD: 3.29 0.03, 3.35 0.03, 3.27 0.04, 3.35 0.03, 3.26 0.05, 3.11 0.09
kin8nm 128 0 RMSE: 0.12 0.00, 0.10 0.00, 0.10 0.00, 0.10 0.00, 0.10 0.00, 0.08 0.00
kin8nm 128 0 NLPD: -0.69 0.02, -0.78 0.02, -0.83 0.02, -0.82 0.02, -0.85 0.02, -1.03 0.02
kin8nm 128 128 RMSE: 0.08 0.00, 0.08 0.00, 0.08 0.00, 0.08 0.00, 0.09 0.00, 0.08 0.00
kin8nm 128 128 NLPD: -1.03 0.02, -1.03 0.02, -1.03 0.02, -1.03 0.02, -0.90 0.01, -1.10 0.02
kin8nm 256 0 RMSE: 0.10 0.00, 0.10 0.00, 0.09 0.00, 0.10 0.00, 0.09 0.00, 0.08 0.00
kin8nm 256 0 NLPD: -0.89 0.02, -0.83 0.02, -0.95 0.02, -0.84 0.02, -0.90 0.01, -1.10 0.02
power 128 0 RMSE: 4.20 0.16, 4.22 0.15, 4.20 0.16, 4.22 0.15, 3.93 0.18, 3.90 0.19
power 128 0 NLPD: 2.85 0.04, 2.86 0.03, 2.85 0.04, 2.86 0.03, 2.79 0.04, 2.78 0.05
power 128 128 RMSE: 3.96 0.18, 3.96 0.19, 3.91 0.19, 3.96 0.19, 3.85 0.18, 3.71 0.19
power 128 128 NLPD: 2.80 0.05, 2.80 0.05, 2.79 0.05, 2.80 0.05, 2.77 0.04, 2.73 0.05
power 256 0 RMSE: 4.20 0.16, 4.22 0.15, 4.20 0.16, 4.22 0.15, 3.83 0.19, 3.68 0.19
power 256 0 NLPD: 2.85 0.04, 2.86 0.03, 2.85 0.04, 2.86 0.03, 2.77 0.05, 2.73 0.05
"""


def figures_of_paper() -> dict[tuple[Any, ...], list[PaperFigure]]:
    """RMSE and NLPD by data set, kernel, inducing variable, M and K."""
    found: dict[tuple[Any, ...], list[PaperFigure]] = {}
    for line in PRINTED.strip().splitlines():
        place, _, cells = line.partition(": ")
        dataset, M, K, _ = place.split()
        columns = itertools.product(INDUCING, KERNELS)
        for (iv, kernel), cell in zip(columns, cells.split(", "), strict=True):
            figure = PaperFigure(*map(float, cell.split()), mean_decimals=2)
            found.setdefault((dataset, kernel, iv, int(M), int(K)), []).append(figure)
    return found


class UciOrthogonal(Benchmark, data_dir=str, datasets=DATASETS, splits=range, max_iterations=int):
    def configurations(self, arguments: Arguments) -> Configurations:
        """All cells split by split, so that an interrupted run has whole tables."""
        short = arguments.short
        for split in arguments.splits or range(1 if short else 5):
            for dataset in arguments.datasets or (["yacht"] if short else DATASETS):
                splits, first, iterations = DATASETS[dataset]
                if arguments.splits is None and split >= splits:
                    continue
                first, iterations = (20, 20) if short else (first, iterations)
                cells = itertools.product(KERNELS, INDUCING, SIZES[1:2] if short else SIZES)
                for kernel, inducing, (M, K) in cells:
                    yield {
                        "dataset": dataset,
                        "kernel": kernel,
                        "inducing": inducing,
                        "M": M,
                        "K": K,
                        "split": split,
                        "seed": split,
                        "q": "optimal",
                        "first_iterations": first,
                        "max_iterations": arguments.max_iterations or iterations,
                        "source": source_of(arguments.data_dir),
                    }

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        table = load_table(configuration["dataset"], arguments.data_dir)
        split = normalise(take_split(table, configuration["split"]))
        start = time.perf_counter()
        model = build_model(configuration, split)
        bound = OptimalQ(model, (split.X_train, split.Y_train))
        held = [p for part in (model.kernel, model.likelihood) for p in part.trainable_parameters]
        gpflow.set_trainable(held, False)
        first = fit_by_lbfgs(bound, None, configuration["first_iterations"])
        gpflow.set_trainable(held, True)
        second = fit_by_lbfgs(bound, None, configuration["max_iterations"])
        bound.assign_q()
        seconds = time.perf_counter() - start
        errors, scale = test_errors(model, split), float(split.Y_scale.item())
        return {
            "rmse": float(np.sqrt(errors["mse"])) * scale,
            "nlpd": errors["nlpd"] + float(np.log(scale)),
            "num_inducing": int(model.inducing_variable.num_inducing),
            **second,
            "elbo": float(model.elbo((split.X_train, split.Y_train))),
            "first_phase": first,
            "noise_variance": float(model.likelihood.variance.numpy()),
            "fit_seconds": round(seconds, 2),
        }

    def table(self, records: Records) -> str:
        """One row for each cell with both metrics; our figures are means over finished splits."""
        order = (list(DATASETS), list(KERNELS), list(INDUCING))
        groups: dict[tuple[Any, ...], list[Record]] = {}
        for record in records:
            run = record["configuration"]
            names = (run["dataset"], run["kernel"], run["inducing"])
            places = (choices.index(name) for choices, name in zip(order, names, strict=True))
            M, K = run["M"], run["K"]
            key = (*places, M + K, K == 0, run["max_iterations"], run["source"])
            groups.setdefault(key, []).append(record)
        rows = []
        printed = figures_of_paper()
        compared = {"rmse": [0, 0], "nlpd": [0, 0]}
        for (*_, max_iterations, source), cell in sorted(groups.items()):
            run, results = cell[0]["configuration"], [record["result"] for record in cell]
            M, used = run["M"], {result["num_inducing"] for result in results}
            row = [run["dataset"], run["kernel"], run["inducing"], f"{M}, {run['K']}"]
            row[-1] += f" ({ranges(used)} used)" if used != {M} else ""
            figures = printed[run["dataset"], run["kernel"], run["inducing"], M, run["K"]]
            for metric, paper in zip(compared, figures, strict=True):
                values = [result[metric] for result in results]
                verdict = "no, worse"
                if None not in values:
                    verdict = paper.verdict(float(np.mean(values)))
                compared[metric][0] += verdict == "yes"
                compared[metric][1] += 1
                shown = "not finite" if None in values else mean_and_deviation(values)
                row += [shown, str(paper), verdict]
            unfinished = sum(not result["converged"] for result in results)
            splits = ranges(record["configuration"]["split"] for record in cell)
            row += [
                f"{splits} ({'stored' if source == 'files' else 'seeded'})",
                f"{np.mean([result['fit_seconds'] for result in results]):.1f}",
                f"{unfinished} of {len(cell)} at {max_iterations}",
            ]
            rows.append(row)
        headers = ["data", "kernel", "inducing", "M, K"]
        for metric in ("RMSE", "NLPD"):
            headers += [metric, "paper", "within 2 sd"]
        headers += ["splits", "fit s", "not converged"]
        counts = ", ".join(
            f"{metric.upper()} {within} of {total}" for metric, (within, total) in compared.items()
        )
        return (
            "Tables 3 and 4 of the paper: test RMSE and NLPD in original units, lower is better; "
            "mean ± deviation over our splits\n(no deviation: one split only) next to the paper's "
            'over 5.\n"undecided": the printed digits do not suffice (a deviation 0.00 may be up '
            "to 0.005).\n\n"
            + markdown(headers, rows)
            + f"\n\nWithin two of the paper's standard deviations: {counts}."
        )


def build_model(configuration: Entries, split: NormalisedSplit) -> Any:
    """The model of one cell at its initial parameters: unit scales, noise variance 1."""
    M, K, activation, seed = (configuration[key] for key in ("M", "K", "inducing", "seed"))
    num_rows, input_dim = split.X_train.shape
    ones = np.ones(input_dim)
    kernel: Any = idm.kernels.ArcCosine(1, weight_variances=ones)
    if configuration["kernel"] == "matern52":
        kernel = idm.kernels.SphericalMatern52(weight_variances=ones, lengthscale=1.0)
    likelihood = gpflow.likelihoods.Gaussian(variance=1.0)
    number = M + K if activation == "points" else max(K, 1)
    points = inducing_points(split.X_train, number, seed)
    points = np.random.default_rng(seed).permutation(points)
    if activation == "points":
        base: Any = gpflow.inducing_variables.InducingPoints(points[:M])
        points = points[M:]
    else:
        features = idm.inducing_variables.ActivationFeatures
        # The number of units of this activation that can be linearly independent with this kernel.
        unit = features(np.eye(1, input_dim + 1), activation, MAX_DEGREE)
        rank = sum(idm.sphere.num_harmonics(input_dim + 1, n) for n in unit.degrees(kernel))
        base = features.from_data(
            kernel, split.X_train, min(M, rank), activation, MAX_DEGREE, seed=seed
        )
    if K == 0:
        return gpflow.models.SVGP(kernel, likelihood, base, num_data=num_rows)
    orthogonal = gpflow.inducing_variables.InducingPoints(points)
    return idm.models.OrthogonalSVGP(kernel, likelihood, base, orthogonal, num_data=num_rows)


if __name__ == "__main__":
    UciOrthogonal.command()
