"""The models that `hvgp_scaling` compares, and one training step of each.

Data: `rows` random rows of 8 inputs, as a minibatch of a million. Kernel: gpflow's Matern-3/2 with
one lengthscale. J = log2(T) groups of principal directions are negated, which gives T components.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.negations import principal_negations
from benchmarks.hvgp_scaling.problem import (
    INPUT_DIM,
    LENGTHSCALE,
    NOISE_VARIANCE,
    NUM_DATA,
    random_data,
    random_points,
)

SVGP, SVGP_LARGE = "svgp m", "svgp Tm"
SHARED, DISTINCT = "hvgp shared", "hvgp distinct"
COREGIONALIZATION, GPYTORCH = "coregionalization", "gpytorch Tm"
SIDES = (SVGP, SVGP_LARGE, SHARED, DISTINCT, COREGIONALIZATION, GPYTORCH)


def build_model(
    side: str,
    *,
    components: int,
    num_inducing: int,
    seed: int,
    devices: list[str] | None = None,
) -> Any:
    """The GPflow model of one side at its initial parameters."""
    import gpflow

    import interdomain as idm

    kernel = gpflow.kernels.Matern32(lengthscales=LENGTHSCALE)
    likelihood = gpflow.likelihoods.Gaussian(variance=NOISE_VARIANCE)
    if side in (SVGP, SVGP_LARGE):
        count = num_inducing if side == SVGP else components * num_inducing
        Z = gpflow.inducing_variables.InducingPoints(random_points(count, seed))
        return gpflow.models.SVGP(kernel, likelihood, Z, num_data=NUM_DATA)

    transforms = principal_negations(components, seed, columns=INPUT_DIM)
    distinct = random_points(components * num_inducing, seed)
    distinct = distinct.reshape(components, num_inducing, INPUT_DIM)
    if side == COREGIONALIZATION:
        return _coregionalization(idm.kernels.HarmonicKernel(kernel, transforms), distinct)
    if side not in (SHARED, DISTINCT):
        raise ValueError(f"side is {side!r}: no GPflow model has that name")
    Z = distinct[0] if side == SHARED else distinct
    return idm.models.HVGP(kernel, likelihood, Z, transforms, num_data=NUM_DATA, devices=devices)


def training_step(
    *, side: str, components: int, num_inducing: int, rows: int, seed: int
) -> Callable[[], Any]:
    """The elbo + gradient step of one side, traced where there is a graph."""
    X, Y = random_data(rows, seed)
    if side == GPYTORCH:
        from benchmarks.hvgp_scaling.gpytorch_side import gpytorch_step

        return gpytorch_step(X, Y, random_points(components * num_inducing, seed))
    import tensorflow as tf

    from benchmarks._lib.graphs import elbo_and_gradient

    model = build_model(side, components=components, num_inducing=num_inducing, seed=seed)
    return elbo_and_gradient(model, (tf.constant(X), tf.constant(Y)))


def traced(
    *, side: str, components: int, num_inducing: int, rows: int, seed: int
) -> dict[str, float]:
    """Seconds to trace the step, and the operations in its graph; to be run in a fresh process."""
    import tensorflow as tf

    from benchmarks._lib.graphs import step_function, tracing

    X, Y = random_data(rows, seed)
    model = build_model(side, components=components, num_inducing=num_inducing, seed=seed)
    return tracing(step_function(model), tf.constant(X), tf.constant(Y))


def on_devices(
    *,
    num_devices: int,
    placed: bool,
    components: int,
    num_inducing: int,
    rows: int,
    seed: int,
    rounds: int,
) -> list[float]:
    """Seconds per step on one or two logical CPU devices, one thread for each; in a fresh process.

    Threads are set for a process: each operation has one, and as many operations run at a time as
    there are devices.

    :param placed: whether the blocks are placed on the devices, or computed in batches.
    """
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(num_devices)
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * num_devices
    )
    from benchmarks._lib.graphs import elbo_and_gradient
    from benchmarks._lib.timing import alternate

    X, Y = random_data(rows, seed)
    model = build_model(
        DISTINCT,
        components=components,
        num_inducing=num_inducing,
        seed=seed,
        devices=[f"CPU:{k}" for k in range(num_devices)] if placed else None,
    )
    step = elbo_and_gradient(model, (tf.constant(X), tf.constant(Y)))
    return alternate({"step": step}, rounds=rounds)["step"]


def _coregionalization(kernel: Any, Z: Array) -> Any:
    """GPflow's own model for a sum of kernels, each with its own inducing points.

    The components are latent GPs; a row of ones adds them up to one output.
    """
    import gpflow

    points = [gpflow.inducing_variables.InducingPoints(block) for block in Z]
    return gpflow.models.SVGP(
        gpflow.kernels.LinearCoregionalization(list(kernel.kernels), W=np.ones((1, len(Z)))),
        gpflow.likelihoods.Gaussian(variance=NOISE_VARIANCE),
        gpflow.inducing_variables.SeparateIndependentInducingVariables(points),
        num_latent_gps=len(Z),
        num_data=NUM_DATA,
    )
