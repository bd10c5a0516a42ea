"""HVGP's Figure 6: the error of the Nystrom approximation, tr(Kff - Kfu Kuu^-1 Kuf) / N.

3,000 random rows, standardised; Matern-3/2 with variance 1 and the median distance as its one
lengthscale, not trained. Inducing points are centres of k-means; L-BFGS then optimises them on the
trace error. The table has both errors.
svgp_m, svgp_2m     M and 2M inducing points.
axes_8xm            8 components from the negation of three groups of columns through the data mean.
pca_8xm             8 components from the negation of three groups of principal directions.
The components have M inducing points each, and the errors are summed over components (eq. 24).
"""

from __future__ import annotations

import time
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

import interdomain as idm
from benchmarks._lib.data import load_table, source_of
from benchmarks._lib.regression import inducing_points, median_distance
from benchmarks._lib.results import figures
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.tables import tabulated
from benchmarks.papers.hvgp.negations import axis_negations
from interdomain.diagnostics.variance import nystrom_trace_error

DATASETS = ("kin8nm", "power", "protein", "keggdirected")
MODELS = ("svgp_m", "svgp_2m", "axes_8xm", "pca_8xm")
NUM_GROUPS = 3


class Nystrom(Benchmark, data_dir=str, datasets=DATASETS, models=MODELS, max_iterations=int):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for dataset in arguments.datasets or (["kin8nm"] if short else DATASETS):
            for model in arguments.models or MODELS:
                yield {
                    "dataset": dataset,
                    "model": model,
                    "num_inducing": 10 if short else 100,
                    "rows": 300 if short else 3_000,
                    "max_iterations": arguments.max_iterations or (5 if short else 40),
                    "seed": 0,
                    "source": source_of(arguments.data_dir),
                }

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        seed, size = configuration["seed"], configuration["num_inducing"]
        rows = load_table(configuration["dataset"], arguments.data_dir).X
        rows = rows[np.random.default_rng(seed).permutation(len(rows))[: configuration["rows"]]]
        centred = rows - rows.mean(axis=0)
        scale = centred.std(axis=0)
        X = centred / np.where(scale > 1e-12, scale, 1.0)  # constant columns become zero
        lengthscale = median_distance(X, seed)
        kernel: Any = gpflow.kernels.Matern32(lengthscales=lengthscale)
        if configuration["model"] in ("svgp_m", "svgp_2m"):
            count = size if configuration["model"] == "svgp_m" else 2 * size
            points: Any = gpflow.inducing_variables.InducingPoints(inducing_points(X, count, seed))
        else:
            principal = configuration["model"] == "pca_8xm"
            make = idm.transforms.PrincipalNegation.from_data if principal else axis_negations
            kernel = idm.kernels.HarmonicKernel(kernel, make(X, NUM_GROUPS))
            points = idm.inducing_variables.HarmonicInducingPoints.from_data(
                kernel, X, size, seed=seed
            )

        def error() -> tf.Tensor:  # not per row: L-BFGS stops where gradients are below 1e-5
            return nystrom_trace_error(kernel, points, X)

        before, start = float(error()), time.perf_counter()
        options = {"maxiter": configuration["max_iterations"]}
        outcome = gpflow.optimizers.Scipy().minimize(
            error, points.trainable_variables, options=options
        )
        return {
            "lengthscale": lengthscale,
            "before": before / len(X),
            "after": float(error()) / len(X),
            "iterations": int(outcome.nit),
            "evaluations": int(outcome.nfev),
            "converged": bool(outcome.success),
            "fit_seconds": round(time.perf_counter() - start, 2),
        }

    def table(self, records: Records) -> str:
        """One row for each data set and model."""
        order = [(dataset, model) for dataset in DATASETS for model in MODELS]
        rows = [
            {**one, "ended": f"{'yes' if one['converged'] else 'no'}, {one['iterations']}"}
            for one in figures(records)
        ]
        rows.sort(key=lambda one: order.index((one["dataset"], one["model"])))
        return (
            "Nystrom trace error per row (variance 1, so it is a fraction), lower is better. The "
            "paper's Figure 6 gives no numbers: 8xM below 2M and M, and PCA usually below axes.\n\n"
            + tabulated(
                rows,
                "data = dataset; M = num_inducing; rows = rows ,; model; "
                "error / N, k-means = before .4f; optimised = after .4f; "
                "L-BFGS s = fit_seconds .0f; converged, iterations = ended",
            )
        )


if __name__ == "__main__":
    Nystrom.command()
