"""The additive models: how they are built and trained on one split."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from benchmarks._lib.data import Array
from benchmarks._lib.runner import Configuration
from benchmarks._lib.splits import NormalisedSplit
from benchmarks._lib.vish_table import SIZES

METHODS = ("vish", "vish_truncated", "a_vff", "a_vff_mean_field", "a_gpr")
MAX_EXACT_ROWS = 1_000
FREQUENCIES = 30  # per column, as in the paper
MARGIN = 1.0  # lengthscales of up to 0.4 lose 0.4% of their variance at the ends of the data
LENGTHSCALE = 0.3  # initial: about the standard deviation of uniform inputs in [0, 1]


def train(configuration: Configuration, split: NormalisedSplit) -> dict[str, Any]:
    """Build, train and judge one model."""
    from benchmarks._lib.optimal_q import OptimalQ
    from benchmarks._lib.regression import fit_by_lbfgs, test_errors, vish_model

    method, dataset = configuration["method"], configuration["dataset"]
    start = time.perf_counter()
    if method.startswith("vish"):
        data = (split.X_train, split.Y_train)
        model: Any = vish_model(data, *SIZES[dataset], truncated=method == "vish_truncated")
    else:
        split = unit_inputs(split)
        model = additive_model(method, split, configuration["frequencies"], configuration["margin"])
    mean_field = method == "a_vff_mean_field"
    trained = OptimalQ(model, (split.X_train, split.Y_train)) if mean_field else model
    fit = fit_by_lbfgs(trained, None, configuration["max_iterations"])
    if mean_field:
        trained.assign_q()
    seconds = time.perf_counter() - start
    iv = getattr(model, "inducing_variable", None)
    return {
        **test_errors(model, split),
        **fit,
        **({} if method.startswith("vish") else additive_parameters(model)),
        "num_train": len(split.X_train),
        "num_columns": split.X_train.shape[1],
        "num_inducing": None if iv is None else int(iv.num_inducing),
        "fit_seconds": round(seconds, 2),
    }


def unit_inputs(split: NormalisedSplit) -> NormalisedSplit:
    """Columns mapped to [0, 1] by the training rows; those that are constant there are left out."""
    lower, upper = split.X_train.min(axis=0), split.X_train.max(axis=0)
    varying = upper > lower
    lower, length = lower[varying], (upper - lower)[varying]
    return replace(
        split,
        X_train=(split.X_train[:, varying] - lower) / length,
        X_test=(split.X_test[:, varying] - lower) / length,
    )


def additive_kernel(input_dim: int) -> Any:
    """A Matern-3/2 kernel for each column; the variances add up to one."""
    import gpflow

    return gpflow.kernels.Sum(
        [
            gpflow.kernels.Matern32(1.0 / input_dim, LENGTHSCALE, active_dims=[column])
            for column in range(input_dim)
        ]
    )


def fourier_features(X: Array, frequencies: int, margin: float) -> Any:
    """Features for each column of X."""
    import interdomain as idm

    return idm.inducing_variables.SumInducingVariables(
        [
            idm.inducing_variables.VariationalFourierFeatures.from_data(
                column, frequencies, margin=margin
            )
            for column in X.T
        ]
    )


def additive_model(
    method: str, split: NormalisedSplit, frequencies: int | None, margin: float | None
) -> Any:
    """One additive model at its initial parameters, on inputs in [0, 1]."""
    import gpflow

    import interdomain as idm

    data = (split.X_train, split.Y_train)
    num_rows, input_dim = split.X_train.shape
    kernel = additive_kernel(input_dim)
    if method == "a_gpr":
        if num_rows > MAX_EXACT_ROWS:
            raise RuntimeError(f"{num_rows} rows are too many for exact regression")
        return gpflow.models.GPR(data, kernel, noise_variance=0.1)
    if frequencies is None or margin is None:
        raise ValueError(f"{method} needs frequencies and a margin")
    features = fourier_features(split.X_train, frequencies, margin)
    if method == "a_vff":
        return gpflow.models.SGPR(data, kernel, features, noise_variance=0.1)
    likelihood = gpflow.likelihoods.Gaussian(variance=0.1)
    return idm.models.AdditiveSVGP(kernel, likelihood, features, num_data=num_rows)


def additive_parameters(model: Any) -> dict[str, Any]:
    """The trained parameters of the kernels and the noise."""
    return {
        "lengthscales": [float(k.lengthscales.numpy()) for k in model.kernel.kernels],
        "variances": [float(k.variance.numpy()) for k in model.kernel.kernels],
        "noise_variance": float(model.likelihood.variance.numpy()),
    }
