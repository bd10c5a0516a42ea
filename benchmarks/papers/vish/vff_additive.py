"""Additive variational Fourier features (A-VFF) and VISH, on the UCI sets of VISH's Table 1.

Test MSE and NLPD on normalised data (lower is better). Methods, all trained by L-BFGS over every
parameter:
a_vff           a sum of Matern-3/2 kernels on one column each, VariationalFourierFeatures for each,
                30 frequencies per column, in gpflow's SGPR: q is optimal, and joint over the
                columns; only waves, as in the paper.
a_vff_polynomials
                a_vff with three polynomials per column, on the data's own range.
a_vff_mean_field
                a_vff in AdditiveSVGP, with an independent q for each column, at its optimum.
a_gpr           exact regression with this sum of kernels, if there are at most 1,000 rows: the
                limit of both with more frequencies.
vish_truncated  the paper's VISH, as in uci_vish; vish has the full prior.

For the additive models each column is mapped to [0, 1] by the training rows; constant columns are
left out. The interval of a_vff extends beyond the data by --margin lengths of their range on either
side.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import gpflow

import interdomain as idm
from benchmarks._lib.data import Array, load_table, source_of
from benchmarks._lib.optimal_q import OptimalQ
from benchmarks._lib.regression import fit_by_lbfgs, test_errors, vish_model
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.splits import NormalisedSplit, normalise, take_split
from benchmarks.papers.vish.vish_table import SIZES, accuracy_table
from interdomain.inducing_variables import SumInducingVariables, VariationalFourierFeatures

METHODS = ("vish", "vish_truncated", "a_vff", "a_vff_polynomials", "a_vff_mean_field", "a_gpr")
FREQUENCIES = 30  # per column, as in the paper
MARGIN = 1.0  # lengthscales of up to 0.4 lose 0.4% of their variance at the ends of the data
LENGTHSCALE = 0.3  # initial: about the standard deviation of uniform inputs in [0, 1]
BY_DEFAULT = ("vish_truncated", "a_vff", "a_vff_polynomials", "a_gpr")
LARGE = ("kin8nm", "power")  # sets with one split, and without exact regression


class VffAdditive(
    Benchmark,
    data_dir=str,
    datasets=SIZES,
    methods=METHODS,
    splits=range,
    frequencies=int,
    margin=float,
    max_iterations=int,
):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        for dataset in arguments.datasets or (["yacht"] if short else list(SIZES)):
            large = dataset in LARGE
            for split in arguments.splits or range(1 if short or large else 5):
                for method in arguments.methods or BY_DEFAULT[: -1 if large else None]:
                    yield self._training(dataset, method, split, arguments)
        if not arguments.methods and not arguments.datasets and not short:
            yield self._training("concrete", "a_vff_mean_field", 0, arguments)

    def _training(self, dataset: str, method: str, split: int, arguments: Arguments) -> Entries:
        has_features, polynomials = method.startswith("a_vff"), method.endswith("polynomials")
        return {
            "dataset": dataset,
            "method": method,
            "frequencies": (arguments.frequencies or FREQUENCIES) if has_features else None,
            "margin": (arguments.margin or MARGIN) if has_features and not polynomials else None,
            "split": split,
            "seed": split,
            "max_iterations": arguments.max_iterations or (30 if arguments.short else 2_000),
            "source": source_of(arguments.data_dir),
        }

    def table(self, records: Records) -> str:
        return (
            "Bound: the final objective; bounds of the additive models are comparable, a_gpr's is "
            "the evidence.\n\n" + accuracy_table(records, METHODS)
        )

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        table = load_table(configuration["dataset"], arguments.data_dir)
        split = normalise(take_split(table, configuration["split"]))
        method, dataset = configuration["method"], configuration["dataset"]
        vish = method.startswith("vish")
        split = split if vish else unit_inputs(split)
        data, (num_rows, input_dim) = (split.X_train, split.Y_train), split.X_train.shape
        start = time.perf_counter()
        # A Matern-3/2 kernel for each column; the variances add up to one.
        kernel = gpflow.kernels.Sum(
            [
                gpflow.kernels.Matern32(1.0 / input_dim, LENGTHSCALE, active_dims=[column])
                for column in range(input_dim)
            ]
        )
        if vish:
            model: Any = vish_model(data, *SIZES[dataset], truncated=method == "vish_truncated")
        elif method == "a_gpr":
            model = gpflow.models.GPR(data, kernel, noise_variance=0.1)
        else:
            features = fourier_features(
                split.X_train, configuration["frequencies"], configuration["margin"]
            )
            model = gpflow.models.SGPR(data, kernel, features, noise_variance=0.1)
            if method == "a_vff_mean_field":
                likelihood = gpflow.likelihoods.Gaussian(variance=0.1)
                model = idm.models.AdditiveSVGP(kernel, likelihood, features, num_data=num_rows)
        mean_field = method == "a_vff_mean_field"
        trained = OptimalQ(model, data) if mean_field else model
        fit = fit_by_lbfgs(trained, None, configuration["max_iterations"])
        if mean_field:
            trained.assign_q()
        seconds = time.perf_counter() - start
        iv = getattr(model, "inducing_variable", None)
        result = {
            **test_errors(model, split),
            **fit,
            "num_train": num_rows,
            "num_columns": input_dim,
            "num_inducing": None if iv is None else int(iv.num_inducing),
            "fit_seconds": round(seconds, 2),
        }
        if not vish:
            parts = model.kernel.kernels
            result["lengthscales"] = [float(part.lengthscales.numpy()) for part in parts]
            result["variances"] = [float(part.variance.numpy()) for part in parts]
            result["noise_variance"] = float(model.likelihood.variance.numpy())
        return result


def unit_inputs(split: NormalisedSplit) -> NormalisedSplit:
    """Columns mapped to [0, 1] by the training rows; constant columns are left out."""
    lower, upper = split.X_train.min(axis=0), split.X_train.max(axis=0)
    varying = upper > lower
    lower, length = lower[varying], (upper - lower)[varying]
    return replace(
        split,
        X_train=(split.X_train[:, varying] - lower) / length,
        X_test=(split.X_test[:, varying] - lower) / length,
    )


def fourier_features(X: Array, frequencies: int, margin: float | None) -> Any:
    """Features for each column of X: waves, or waves and polynomials if there is no margin."""
    how = {} if margin is None else {"margin": margin, "polynomial_degree": 0}
    make = VariationalFourierFeatures.from_data
    return SumInducingVariables([make(column, frequencies, **how) for column in X.T])


if __name__ == "__main__":
    VffAdditive.command()
