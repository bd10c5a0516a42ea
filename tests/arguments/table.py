"""Every public constructor, with arguments that are right and the kind of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints

from interdomain import inducing_variables, kernels, models, sphere, transforms
from tests.arguments.kinds import (
    ACTIVE_DIMS,
    LARGE,
    NAME,
    SEED,
    Argument,
    array,
    boolean,
    choice,
    function,
    integer,
    integers,
    made,
    number,
    several,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 2))
Y = RNG.normal(size=(20, 1))
IMAGES = RNG.normal(size=(6, 16))


def matern() -> gpflow.kernels.Kernel:
    return gpflow.kernels.Matern32()


@lru_cache
def zonal() -> kernels.ZonalKernel:
    return kernels.ArcCosine(max_degree=5)


def component() -> kernels.HarmonizableComponent:
    return kernels.HarmonizableComponent(np.ones([2, 1]))


@lru_cache
def harmonic() -> kernels.HarmonicKernel:
    return kernels.HarmonicKernel(matern(), transforms.Negation(0))


def convolutional() -> kernels.Convolutional:
    return kernels.Convolutional(matern(), (4, 4), (2, 2))


def likelihood() -> gpflow.likelihoods.Likelihood:
    return gpflow.likelihoods.Gaussian()


def constant() -> gpflow.mean_functions.MeanFunction:
    return gpflow.mean_functions.Constant()


def points() -> InducingPoints:
    return InducingPoints(X[:3])


SCALAR = array(1.0, positive=True, without=("rank 4",))
ZONAL: dict[str, Argument] = {
    "variance": SCALAR,
    "weight_variances": array([1.0], positive=True),
    "bias_variance": SCALAR,
    "max_degree": integer(3, 0, optional=True, huge=True),
    "active_dims": ACTIVE_DIMS,
    "allow_large": LARGE,
    "name": NAME,
}
STATIONARY = {
    **ZONAL,
    "lengthscale": array(1.0, positive=True, optional=True),
    "radial_power": number(1.0, sign="not negative"),
}
COLUMN = {"active_dims": ACTIVE_DIMS, "name": NAME}
PATCHES = {
    "image_shape": integers((4, 4), huge=True),
    "patch_shape": integers((2, 2)),
    "stride": integers((1, 1)),
    "padding": choice("VALID"),
    "weights": array(np.ones(9)),
    **COLUMN,
    "active_dims": Argument(lambda: None, ACTIVE_DIMS.wrong),
}
MODEL = {
    "likelihood": made(likelihood),
    "mean_function": made(constant, optional=True),
    "num_latent_gps": integer(1, huge=True),
    "whiten": boolean(True),
    "q_diag": boolean(),
    "num_data": integer(20, optional=True),
    "allow_large": LARGE,
}


def q_mu(shape: tuple[int, ...]) -> Argument:
    return array(np.zeros(shape), optional=True)


def q_of_blocks(*shape: int) -> Argument:
    argument = array(np.zeros([1, *shape]), optional=True)
    return Argument(lambda: [np.zeros(shape)], argument.wrong)


def q_sqrt(size: int) -> Argument:
    return array(np.eye(size)[None], optional=True)


Entry = tuple[Callable[..., Any], dict[str, Argument]]


def entry(make: Callable[..., Any], *arguments: dict[str, Argument], **more: Argument) -> Entry:
    joined: dict[str, Argument] = {}
    for group in arguments:
        joined |= group
    return make, joined | more


TABLE: dict[str, Entry] = {
    # kernels
    "ArcCosine": entry(
        kernels.ArcCosine, ZONAL, order=integer(1, 0, huge=True), depth=integer(1, huge=True)
    ),
    **{
        name: entry(getattr(kernels, name), STATIONARY)
        for name in (
            "SphericalMatern12",
            "SphericalMatern32",
            "SphericalMatern52",
            "SphericalSquaredExponential",
            "ChordalSquaredExponential",
        )
    },
    "ChannelAdditive": entry(
        kernels.ChannelAdditive,
        {"name": NAME, "active_dims": Argument(lambda: None, ACTIVE_DIMS.wrong)},
        base_kernels=several(lambda: [matern(), matern()]),
        patch_shape=integers((2, 2, 2)),
    ),
    "Convolutional": entry(
        kernels.Convolutional,
        PATCHES,
        base_kernel=made(matern),
        separate_channels=boolean(),
        location_kernel=made(matern, optional=True),
    ),
    "MultiChannelConvolutional": entry(
        kernels.MultiChannelConvolutional,
        PATCHES,
        image_shape=integers((4, 4, 2), huge=True),
        base_kernels=several(lambda: [matern(), matern()]),
        weights=array(np.ones([9, 2])),
    ),
    "GeneralizedSpectralMixture": entry(
        kernels.GeneralizedSpectralMixture,
        COLUMN,
        amplitude=function(tf.identity),
        lengthscale=function(tf.identity),
        frequency=function(tf.identity),
    ),
    "TimeInvertedFractionalBrownianMotion": entry(
        kernels.TimeInvertedFractionalBrownianMotion,
        COLUMN,
        hurst=array(0.5, positive=True),
        variance=array(1.0, positive=True),
    ),
    "HarmonicKernel": entry(
        kernels.HarmonicKernel,
        base_kernel=made(matern),
        transforms=several(lambda: [transforms.Negation(0)]),
        name=NAME,
    ),
    "Invariant": entry(
        kernels.Invariant,
        COLUMN,
        base_kernel=made(matern),
        transforms=several(lambda: [transforms.Rotation(4)]),
        num_samples=integer(2, 2, optional=True, huge=True),
        active_dims=Argument(lambda: None, ACTIVE_DIMS.wrong),
    ),
    "HarmonizableComponent": entry(
        kernels.HarmonizableComponent,
        COLUMN,
        frequencies=array([[1.0], [2.0]]),
        amplitudes=array([1.0, 2.0], optional=True, without=("complex",)),
        rank=integer(2, optional=True, huge=True),
        centre=array([0.0]),
        scales=array([1.0], positive=True),
        envelope=array([0.1], positive=True),
        lag=array([0.1], positive=True),
    ),
    "LocallyStationaryGaussian": entry(
        kernels.LocallyStationaryGaussian,
        COLUMN,
        dimension=integer(1, huge=True),
        variance=array(1.0, positive=True),
        centre=array([0.0]),
        envelope=array([0.1], positive=True),
        lag=array([0.1], positive=True),
        allow_large=LARGE,
    ),
    "HarmonizableMixture": entry(
        kernels.HarmonizableMixture, components=several(lambda: [component()]), name=NAME
    ),
    "HarmonizableMixture.from_data": entry(
        kernels.HarmonizableMixture.from_data,
        X=array(X),
        Y=array(Y),
        num_components=integer(2, huge=True),
        num_frequencies=integer(1, huge=True),
        centres=array(X[:2]),
        complex_amplitudes=boolean(),
        active_dims=Argument(lambda: [0, 1], ACTIVE_DIMS.wrong),
        seed=SEED,
        name=NAME,
    ),
    "SpectralComponent": entry(
        kernels.SpectralComponent,
        COLUMN,
        frequency=array([1.0]),
        variance=array(1.0, positive=True),
        lag=array([0.1], positive=True),
    ),
    "SpectralMixture": entry(
        kernels.SpectralMixture,
        components=several(lambda: [kernels.SpectralComponent(1.0)]),
        name=NAME,
    ),
    "SpectralMixture.from_data": entry(
        kernels.SpectralMixture.from_data,
        X=array(X),
        Y=array(Y),
        num_components=integer(2, huge=True),
        active_dims=Argument(lambda: [0, 1], ACTIVE_DIMS.wrong),
        seed=SEED,
        name=NAME,
    ),
    # inducing variables
    "ActivationFeatures": entry(
        inducing_variables.ActivationFeatures,
        Z=array(X[:3]),
        activation=choice("relu"),
        max_degree=integer(6, 0, huge=True),
        allow_large=LARGE,
        name=NAME,
    ),
    "ActivationFeatures.from_data": entry(
        inducing_variables.ActivationFeatures.from_data,
        kernel=made(zonal),
        X=array(X),
        num_inducing=integer(3, huge=True),
        activation=choice("relu"),
        max_degree=integer(6, 0, huge=True),
        seed=SEED,
        allow_large=LARGE,
        name=NAME,
    ),
    "ActivationFeatures.random": entry(
        inducing_variables.ActivationFeatures.random,
        input_dim=integer(2, huge=True),
        num_inducing=integer(3, huge=True),
        activation=choice("relu"),
        max_degree=integer(6, 0, huge=True),
        seed=SEED,
        allow_large=LARGE,
        name=NAME,
    ),
    "FourierFeatures": entry(
        inducing_variables.FourierFeatures, frequencies=array([[1.0], [2.0]]), name=NAME
    ),
    "FourierFeatures.for_kernel": entry(
        inducing_variables.FourierFeatures.for_kernel,
        kernel=made(component),
        num_frequencies=integer(2, huge=True),
    ),
    "HarmonicInducingPoints": entry(
        inducing_variables.HarmonicInducingPoints,
        Z=array(X[:3]),
        num_components=integer(2, huge=True),
        multiplicities=integers((1, 1), optional=True),
        allow_large=LARGE,
        name=NAME,
    ),
    "HarmonicInducingPoints.for_kernel": entry(
        inducing_variables.HarmonicInducingPoints.for_kernel,
        kernel=made(harmonic),
        Z=array(X[:3]),
        complete=boolean(),
        name=NAME,
    ),
    "HarmonicInducingPoints.from_data": entry(
        inducing_variables.HarmonicInducingPoints.from_data,
        kernel=made(harmonic),
        X=array(X),
        num_inducing=integer(3, huge=True),
        shared=boolean(),
        complete=boolean(),
        fold=boolean(),
        seed=SEED,
        name=NAME,
    ),
    "InducingPatches": entry(
        inducing_variables.InducingPatches,
        Z=array(IMAGES[:, :4]),
        locations=array(IMAGES[:, :2], optional=True),
        name=NAME,
    ),
    "InducingPatches.from_data": entry(
        inducing_variables.InducingPatches.from_data,
        kernel=made(convolutional),
        X=array(IMAGES),
        num_inducing=integer(3, huge=True),
        method=choice("unique"),
        seed=SEED,
        name=NAME,
    ),
    "OrbitInducingPoints": entry(inducing_variables.OrbitInducingPoints, Z=array(X[:3]), name=NAME),
    "IntervalFourierFeatures": entry(
        inducing_variables.IntervalFourierFeatures,
        lower=number(0.0, sign="any"),
        upper=number(1.0, sign="any"),
        num_frequencies=integer(3, 0, huge=True),
        allow_large=LARGE,
        name=NAME,
    ),
    "IntervalFourierFeatures.from_data": entry(
        inducing_variables.IntervalFourierFeatures.from_data,
        X=array(X[:, :1]),
        num_frequencies=integer(3, 0, huge=True),
        margin=number(0.25, sign="not negative"),
        allow_large=LARGE,
    ),
    "SphericalHarmonics": entry(
        inducing_variables.SphericalHarmonics,
        dimension=integer(3, 2, huge=True),
        degrees=integers((0, 1, 3), least=0, huge=True),
        allow_large=LARGE,
        name=NAME,
    ),
    "SphericalHarmonics.for_kernel": entry(
        inducing_variables.SphericalHarmonics.for_kernel,
        kernel=made(zonal),
        input_dim=integer(2, huge=True),
        max_degree=integer(4, 0, huge=True),
        allow_large=LARGE,
        name=NAME,
    ),
    "SumInducingVariables": entry(
        inducing_variables.SumInducingVariables,
        inducing_variables=several(lambda: [points()]),
        name=NAME,
    ),
    # models
    "AdditiveSVGP": entry(
        models.AdditiveSVGP,
        MODEL,
        kernel=made(matern),
        inducing_variable=made(points),
        q_mu=q_of_blocks(3, 1),
        q_sqrt=q_of_blocks(1, 3, 3),
        devices=several(lambda: ["CPU:0"], without=("None",)),
    ),
    "HVGP": entry(
        models.HVGP,
        MODEL,
        base_kernel=made(matern),
        Z=array(X[:3]),
        transforms=several(lambda: [transforms.Negation(0)]),
        complete=boolean(),
        q_mu=Argument(lambda: [np.zeros([3, 1])] * 2, q_of_blocks(3, 1).wrong),
        q_sqrt=Argument(lambda: [np.eye(3)[None]] * 2, q_of_blocks(1, 3, 3).wrong),
        devices=several(lambda: ["CPU:0"], without=("None",)),
    ),
    "OrthogonalSVGP": entry(
        models.OrthogonalSVGP,
        MODEL,
        kernel=made(matern),
        inducing_variable=made(points),
        orthogonal_inducing_variable=made(lambda: InducingPoints(X[5:7])),
        variant=choice("solve"),
        q_mu=q_mu((3, 1)),
        q_sqrt=q_sqrt(3),
        q_mu_orthogonal=q_mu((2, 1)),
        q_sqrt_orthogonal=q_sqrt(2),
    ),
    "OutOfCoreSGPR": entry(
        models.OutOfCoreSGPR,
        data=made(lambda: (X, Y)),
        kernel=made(matern),
        # An array is taken for inducing points.
        inducing_variable=made(points, without=("array",)),
        mean_function=made(constant, optional=True),
        noise_variance=number(0.1, optional=True),
        batch_size=integer(10, optional=True),
        on_invalid=choice("raise"),
        progress=boolean(),
        strategy=made(lambda: None, optional=True),
    ),
    # activations
    **{
        name: entry(getattr(sphere, name), sharpness=number(1.0))
        for name in ("Softplus", "GELU", "Erf")
    },
    "CustomActivation": entry(
        sphere.CustomActivation,
        function=function(tf.nn.relu),
        kinks=array([0.5], without=("empty",)),
    ),
    # transformations
    "ImageFlip": entry(
        transforms.ImageFlip, image_shape=integers((4, 4), huge=True), axis=integer(0, 0, huge=True)
    ),
    "ImageRotation90": entry(transforms.ImageRotation90, image_shape=integers((4, 4), huge=True)),
    "ImageTranslation": entry(
        transforms.ImageTranslation,
        image_shape=integers((4, 4), huge=True),
        shift=integers((1, 0), least=None),
    ),
    "LongitudeShift": entry(
        transforms.LongitudeShift,
        order=integer(4, 2, huge=True),
        coordinates=choice("degrees"),
    ),
    "Negation": entry(
        transforms.Negation,
        dims=integers((0, 1), optional=True, huge=True, least=0),
        centre=array([0.0, 0.0]),
    ),
    "Orthogonal": entry(
        transforms.Orthogonal,
        matrix=array(np.eye(2)[::-1]),
        order=integer(2, 2, optional=True, huge=True),
        centre=array([0.0, 0.0]),
    ),
    "Permutation": entry(transforms.Permutation, indices=integers((1, 0), huge=True, least=0)),
    "PrincipalNegation": entry(
        transforms.PrincipalNegation,
        directions=array([[1.0, 0.0]]),
        centre=array([0.0, 0.0]),
    ),
    "PrincipalNegation.from_data": entry(
        transforms.PrincipalNegation.from_data, X=array(X), num_groups=integer(2, huge=True)
    ),
    "Product": entry(transforms.Product, transforms=several(lambda: [transforms.Negation(0)])),
    "Rotation": entry(
        transforms.Rotation,
        order=integer(4, 2, huge=True),
        dims=integers((0, 1), huge=True, least=0),
        centre=array([0.0, 0.0]),
    ),
    "Translation": entry(
        transforms.Translation,
        order=integer(4, 2, huge=True),
        dims=integers((0, 1), huge=True, least=0),
        period=array([1.0, 1.0], positive=True),
    ),
}
"""By the name of the class, or of the class and its method."""
