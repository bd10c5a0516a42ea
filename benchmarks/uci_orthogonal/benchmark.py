"""Tables 3 and 4 of "Spherical Inducing Features for Orthogonally-Decoupled GPs": UCI regression.

Test RMSE and NLPD in original units (lower is better) of SVGP with M inducing variables (K = 0),
and of OrthogonalSVGP with M inducing variables and K orthogonal ones, which are always points.

Inducing variables:
relu, softplus
      ActivationFeatures with the degrees 0 to 5, the paper's L = 6 levels. No more units are used
      than these degrees have harmonics (75 for power, 217 for yacht): others would be dependent;
points
      gpflow's InducingPoints.

Kernels, with one scale per input, all starting at one:
arc_cosine  ArcCosine of order 1;
matern52    SphericalMatern52.

Training as in the paper's Appendix B: inputs and outputs are standardised, the noise variance
starts at 1, the first iterations of L-BFGS are for the inducing variables alone (up to 100 in the
paper), then L-BFGS for everything. q is at its optimum throughout, which is known in closed form;
the paper trains it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks._lib.data import add_data_argument, load_table, source_of
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Benchmark, Configuration, indices, names
from benchmarks._lib.splits import NormalisedSplit, normalise, take_split
from benchmarks._lib.tables import markdown, mean_and_deviation, ranges
from benchmarks.uci_orthogonal.paper import INDUCING, KERNELS, PAPER

SIZES = ((128, 0), (128, 128), (256, 0))  # (M, K)
MAX_DEGREE = 5  # the paper's L = 6 levels: 0, ..., 5
DATASETS = {  # (splits, iterations of the two phases) of the default run
    "yacht": (5, 50, 500),
    "energy": (5, 50, 200),
    "concrete": (5, 30, 120),
    "kin8nm": (1, 10, 30),
    "power": (1, 10, 30),
}


class UciOrthogonal(Benchmark):
    __doc__ = __doc__
    name = "uci_orthogonal"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--datasets", type=names(list(DATASETS), "data sets"), default=None)
        parser.add_argument("--splits", type=indices, default=None, help="0-4; 0 of the last two")
        parser.add_argument("--max-iterations", type=int, default=None, help="of the second phase")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        """All cells of a split before the next split, so that an interrupted run has whole ones."""
        short = arguments.short
        for split in arguments.splits or range(1 if short else 5):
            for dataset in arguments.datasets or (["yacht"] if short else DATASETS):
                splits, first, iterations = DATASETS[dataset]
                if arguments.splits is None and split >= splits:
                    continue
                for kernel in KERNELS:
                    for inducing in INDUCING:
                        for M, K in SIZES[1:2] if short else SIZES:
                            yield {
                                "dataset": dataset,
                                "kernel": kernel,
                                "inducing": inducing,
                                "M": M,
                                "K": K,
                                "split": split,
                                "seed": split,
                                "q": "optimal",
                                "first_iterations": 20 if short else first,
                                "max_iterations": arguments.max_iterations
                                or (20 if short else iterations),
                                "source": source_of(arguments.data_dir),
                            }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        import gpflow

        from benchmarks._lib.optimal_q import OptimalQ
        from benchmarks._lib.regression import fit_by_lbfgs, test_errors

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

    def table(self, records: Sequence[Record]) -> str:
        """One row per cell with both metrics; our figures are means over the finished splits."""
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
        compared = {"rmse": [0, 0], "nlpd": [0, 0]}
        for (*_, max_iterations, source), cell in sorted(groups.items()):
            run, results = cell[0]["configuration"], [record["result"] for record in cell]
            M, used = run["M"], {result["num_inducing"] for result in results}
            row = [run["dataset"], run["kernel"], run["inducing"], f"{M}, {run['K']}"]
            row[-1] += f" ({ranges(used)} used)" if used != {M} else ""
            figures = PAPER[run["dataset"], run["kernel"], run["inducing"], M, run["K"]]
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
            "mean ± deviation over our splits\n(no deviation: one split only) beside the paper's "
            'over 5.\n"undecided": the printed digits do not tell (a deviation of 0.00 may be up '
            "to 0.005).\n\n"
            + markdown(headers, rows)
            + f"\n\nWithin two of the paper's standard deviations: {counts}."
        )


def build_model(configuration: Configuration, split: NormalisedSplit) -> Any:
    """The model of one cell at its initial parameters: unit scales, noise variance 1."""
    import gpflow

    import interdomain as idm
    from benchmarks._lib.regression import inducing_points

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
        # How many units of this activation can be linearly independent with this kernel.
        unit = features(np.eye(1, input_dim + 1), activation, MAX_DEGREE)
        rank = sum(idm.sphere.num_harmonics(input_dim + 1, n) for n in unit.degrees(kernel))
        base = features.from_data(
            kernel, split.X_train, min(M, rank), activation, MAX_DEGREE, seed=seed
        )
    if K == 0:
        return gpflow.models.SVGP(kernel, likelihood, base, num_data=num_rows)
    orthogonal = gpflow.inducing_variables.InducingPoints(points)
    return idm.models.OrthogonalSVGP(kernel, likelihood, base, orthogonal, num_data=num_rows)
