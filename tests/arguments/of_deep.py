"""Layers of deep GPs, and the model."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from gpflow.inducing_variables import InducingPoints

from interdomain import deep, inducing_variables
from tests.arguments.kinds import (
    LARGE,
    NAME,
    SEED,
    boolean,
    choice,
    integer,
    integers,
    made,
    q_mu,
    q_of_blocks,
    q_sqrt,
    several,
)
from tests.arguments.parts import (
    Entry,
    X,
    constant,
    entry,
    likelihood,
    matern,
    points,
    zonal,
)

SAMPLES = {
    "num_samples": integer(2, optional=True),
    "name": NAME,
}
LAYER: dict[str, Any] = {
    "num_data": integer(20),
    "mean_function": made(constant, optional=True),
    "num_latent_gps": integer(1, huge=True, optional=True),
    "q_diag": boolean(),
    "whiten": boolean(True),
    "full_cov": boolean(),
    "full_output_cov": boolean(),
    "allow_large": LARGE,
    **SAMPLES,
}


@lru_cache
def layer() -> deep.StructuredLayer:
    return deep.StructuredLayer(matern(), points(), 20)


@lru_cache
def units() -> inducing_variables.ActivationFeatures:
    return inducing_variables.ActivationFeatures.random(2, 3, "relu", 4)


DEEP: dict[str, Entry] = {
    "StructuredLayer": entry(
        deep.StructuredLayer,
        LAYER,
        kernel=made(matern),
        inducing_variable=made(points),
        q_mu=q_mu((3, 1)),
        q_sqrt=q_sqrt(3),
    ),
    "AdditiveLayer": entry(
        deep.AdditiveLayer,
        LAYER,
        kernel=made(matern),
        inducing_variable=made(points),
        q_mu=q_of_blocks(3, 1),
        q_sqrt=q_of_blocks(1, 3, 3),
    ),
    "OrthogonalLayer": entry(
        deep.OrthogonalLayer,
        LAYER,
        kernel=made(matern),
        inducing_variable=made(points),
        orthogonal_inducing_variable=made(lambda: InducingPoints(X[5:7])),
        variant=choice("solve"),
        q_mu=q_mu((3, 1)),
        q_sqrt=q_sqrt(3),
        q_mu_orthogonal=q_mu((2, 1)),
        q_sqrt_orthogonal=q_sqrt(2),
    ),
    "ActivationLayer": entry(
        deep.ActivationLayer,
        LAYER,
        kernel=made(zonal),
        inducing_variable=made(units),
        q_mu=q_mu((3, 1)),
        q_sqrt=q_sqrt(3),
        finite_rank=boolean(),
    ),
    "ConvolutionalLayer": entry(
        deep.ConvolutionalLayer,
        SAMPLES,
        patch_layer=made(layer),
        image_shape=integers((2, 2), huge=True),
        patch_shape=integers((1, 2), huge=True),
        stride=integers((1, 1)),
        padding=choice("VALID"),
    ),
    "DeepGP": entry(
        deep.DeepGP,
        f_layers=several(lambda: [layer()]),
        likelihood=made(likelihood),
        num_samples=integer(1),
        num_prediction_samples=integer(4),
        seed=SEED,
    ),
}
