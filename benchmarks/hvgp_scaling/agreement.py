"""Whether the sides of `hvgp_scaling` compute the same bound, at a small size.

Each comparison gives both sides the same kernel, data and q, and reports the relative difference of
their ELBOs. What remains is the jitter, which the sides add to different matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.negations import principal_negations
from benchmarks.hvgp_scaling.problem import INPUT_DIM, LENGTHSCALE, random_data, random_points
from benchmarks.hvgp_scaling.sides import (
    COREGIONALIZATION,
    DISTINCT,
    SHARED,
    SVGP_LARGE,
    build_model,
)

COMPONENTS, NUM_INDUCING, ROWS = 4, 10, 200


def disagreements(with_gpytorch: bool, seed: int) -> dict[str, float]:
    """Relative differences of ELBOs that must be equal."""
    X, Y = random_data(ROWS, seed)
    size = {"components": COMPONENTS, "num_inducing": NUM_INDUCING, "seed": seed}
    means, roots = _random_q(COMPONENTS, NUM_INDUCING, seed)

    distinct = build_model(DISTINCT, **size)
    set_blocks(distinct, means, roots)
    linear = build_model(COREGIONALIZATION, **size)
    linear.q_mu.assign(means.T)
    linear.q_sqrt.assign(roots)

    shared = build_model(SHARED, **size)
    set_blocks(shared, means, roots)
    Z = random_points(COMPONENTS * NUM_INDUCING, seed)  # the first m are the shared ones
    transforms = principal_negations(COMPONENTS, seed, columns=INPUT_DIM)
    orbit = np.asarray(transforms.orbit(Z[:NUM_INDUCING])).reshape(-1, Z.shape[1])
    found = {
        "hvgp distinct, coregionalization": _relative(distinct.elbo((X, Y)), linear.elbo((X, Y))),
        "hvgp shared, svgp on the orbit": _relative(
            shared.elbo((X, Y)), same_q_on_points(shared, orbit).elbo((X, Y))
        ),
    }
    if with_gpytorch:
        from benchmarks.hvgp_scaling.gpytorch_side import gpytorch_step

        (mean,), (root,) = _random_q(1, COMPONENTS * NUM_INDUCING, seed)
        stock = build_model(SVGP_LARGE, **size)
        stock.q_mu.assign(mean[:, None])
        stock.q_sqrt.assign(root[None])
        loss = gpytorch_step(X, Y, Z, (mean, root))()
        found["gpytorch, svgp"] = _relative(-float(loss), stock.elbo((X, Y)))
    return found


def set_blocks(model: Any, means: Array, roots: Array) -> None:
    """Give each block of an HVGP its mean [m] and root [m, m]."""
    for (q_mu, q_sqrt), mean, root in zip(model.variational_parameters, means, roots, strict=True):
        q_mu.assign(mean.reshape(q_mu.shape))
        q_sqrt.assign(root.reshape(q_sqrt.shape))


def same_q_on_points(model: Any, points: Array) -> Any:
    """gpflow's SVGP with inducing points where `points` determine all of the model's u.

    By Theorem 4.1 of the paper an HVGP with shared Z has the same q(f) as an SVGP on their orbit:
    its q(v) is the HVGP's q(f) there.
    """
    import gpflow

    mean, covariance = model.predict_f(points, full_cov=True)
    kernel = gpflow.kernels.Matern32(lengthscales=LENGTHSCALE)
    jitter = gpflow.default_jitter() * np.eye(len(points))
    return gpflow.models.SVGP(
        kernel,
        gpflow.likelihoods.Gaussian(variance=model.likelihood.variance.numpy()),
        gpflow.inducing_variables.InducingPoints(points),
        q_mu=np.asarray(mean),
        q_sqrt=np.linalg.cholesky(np.asarray(covariance) + jitter),
        whiten=False,
        num_data=model.num_data,
    )


def _random_q(blocks: int, size: int, seed: int) -> tuple[Array, Array]:
    """Means [blocks, size] and roots [blocks, size, size]: nothing special about them."""
    generator = np.random.default_rng(seed + 3)
    means = 0.1 * generator.normal(size=(blocks, size))
    noise = generator.normal(size=(blocks, size, size)) / size
    return means, np.tril(noise) + 0.5 * np.eye(size)


def _relative(ours: Any, theirs: Any) -> float:
    return abs(float(ours) / float(theirs) - 1.0)
