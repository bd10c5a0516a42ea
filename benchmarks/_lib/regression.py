"""Regression models of GPflow for the UCI benchmarks: building, training and evaluation."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import pdist

import interdomain as idm
from benchmarks._lib.data import Array
from benchmarks._lib.prediction import Predictor, gaussian_errors
from benchmarks._lib.splits import NormalisedSplit


def inducing_points(X: Array, num_inducing: int, seed: int) -> Array:
    """Centres of k-means, [num_inducing, D].

    If there are fewer distinct rows than points (yacht: 277 rows for M = 294), the points are all
    rows and perturbed copies of some rows.
    """
    rows = np.unique(X, axis=0)
    if len(rows) > num_inducing:
        centres, _ = kmeans2(rows, num_inducing, minit="++", seed=seed)
        rows = np.unique(centres, axis=0)
    generator = np.random.default_rng(seed)
    copies = rows[generator.integers(len(rows), size=num_inducing - len(rows))]
    return np.concatenate([rows, copies + 0.1 * generator.normal(size=copies.shape)])


def median_distance(X: Array, seed: int, max_rows: int = 3_000) -> float:
    """The median heuristic for a lengthscale: the median distance between rows of X."""
    rows = np.random.default_rng(seed).permutation(len(X))[:max_rows]
    return float(np.median(pdist(X[rows])))


def vish_model(
    data: tuple[Array, Array], num_inducing: int, max_degree: int, *, truncated: bool
) -> gpflow.models.SGPR:
    """VISH with the size of the paper, at its initial parameters: unit scales, noise variance 0.1.

    :param truncated: whether the kernel has the finite rank of the harmonics.
    """
    input_dim = data[0].shape[1]
    kernel = idm.kernels.SphericalMatern32(weight_variances=np.ones(input_dim))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, input_dim, max_degree)
    if int(harmonics.num_inducing) != num_inducing:
        raise RuntimeError(
            f"degree {max_degree} gives {int(harmonics.num_inducing)} harmonics, "
            f"the paper has {num_inducing}"
        )
    prior = idm.kernels.FiniteRank(kernel, harmonics) if truncated else kernel
    return gpflow.models.SGPR(data, prior, harmonics, noise_variance=0.1)


def fit_by_lbfgs(
    model: Any, data: tuple[Array, Array] | None, max_iterations: int
) -> dict[str, Any]:
    """Train all parameters on the whole data by L-BFGS, with a progress bar.

    :param data: for a model with external data (SVGP); None if the model holds its data.
    :returns: the final objective (bound or marginal likelihood), iterations, and how it ended.
    """
    whole = isinstance(model, idm.models.StructuredSGPR)
    options = {"subset_size": None} if whole else {}
    outcome = idm.fit(model, data, steps=max_iterations, options=options)
    return {
        "objective": outcome.elbo,
        "iterations": outcome.steps,
        "converged": outcome.converged,
        "ended": outcome.message,
    }


def test_errors(model: Any, split: NormalisedSplit, batch_size: int = 2_000) -> dict[str, float]:
    """Test MSE and mean negative log predictive density, in the units of `split`."""
    mean, variance = Predictor(model, split.X_test.shape[1], cached=False)(split.X_test, batch_size)
    errors = gaussian_errors(split.Y_test, mean, variance + model.likelihood.variance.numpy())
    return {"mse": errors["rmse"] ** 2, "nlpd": errors["nll"]}


test_errors.__test__ = False  # type: ignore[attr-defined]  # pytest: this is no test
