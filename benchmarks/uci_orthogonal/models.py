"""The model of one cell: how it is built, trained in two phases, and judged."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.splits import NormalisedSplit

MAX_DEGREE = 5  # the paper's L = 6 levels: 0, ..., 5


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
