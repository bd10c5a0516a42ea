"""Every public constructor, with arguments that are right and the kind of each."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian

from interdomain import distributed, inducing_variables, models, sphere, streaming, transforms
from tests.arguments.kinds import (
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
    q_mu,
    q_of_blocks,
    q_sqrt,
    several,
)
from tests.arguments.of_deep import DEEP
from tests.arguments.of_kernels import KERNELS
from tests.arguments.parts import (
    IMAGES,
    Entry,
    X,
    Y,
    additive,
    box,
    component,
    constant,
    convolutional,
    entry,
    harmonic,
    likelihood,
    matern,
    points,
    saved_statistics,
    statistics,
    zonal,
)

MODEL = {
    "likelihood": made(likelihood),
    "mean_function": made(constant, optional=True),
    "num_latent_gps": integer(1, huge=True, optional=True),
    "whiten": boolean(True),
    "q_diag": boolean(),
    "num_data": integer(20, optional=True),
    "allow_large": LARGE,
}


SPECTRUM = {"dimension": integer(3, 2), "lengthscale": number(0.5)}


@lru_cache
def product() -> Kernel:
    return box() * box()


@lru_cache
def waves() -> inducing_variables.PeriodicFourierFeatures:
    return inducing_variables.PeriodicFourierFeatures.for_kernel(box(), 5)


BOX_FEATURES = {
    "kernel": made(box),
    "num_inducing": integer(9, huge=True),
    "allow_large": LARGE,
    "name": NAME,
}
TABLE: dict[str, Entry] = {
    **KERNELS,
    **DEEP,
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
    "AdditiveFeatures": entry(
        inducing_variables.AdditiveFeatures,
        kernel=made(additive),
        frequencies=made(lambda: {(0,): 2, (1,): 3}),
        allow_large=LARGE,
        name=NAME,
    ),
    "AdditiveFeatures.for_kernel": entry(
        inducing_variables.AdditiveFeatures.for_kernel,
        kernel=made(additive),
        num_inducing=integer(9, huge=True),
        allow_large=LARGE,
        name=NAME,
    ),
    "PeriodicFourierFeatures": entry(
        inducing_variables.PeriodicFourierFeatures,
        lower=array(0.0),
        upper=array(1.0),
        frequencies=array([[0.0], [2.0]]),
        allow_large=LARGE,
        name=NAME,
    ),
    "PeriodicFourierFeatures.for_kernel": entry(
        inducing_variables.PeriodicFourierFeatures.for_kernel,
        BOX_FEATURES,
        tolerance=Argument(lambda: None, number(0.1, optional=True).wrong),
    ),
    "PeriodicFourierFeatures.from_data": entry(
        inducing_variables.PeriodicFourierFeatures.from_data, BOX_FEATURES, X=array(X)
    ),
    "ProductInducingVariables": entry(
        inducing_variables.ProductInducingVariables,
        inducing_variables=several(lambda: [points(), points()]),
        members=array([[2.0, 0.0], [0.0, 1.0]], optional=True),
        allow_large=LARGE,
        name=NAME,
    ),
    "ProductInducingVariables.for_kernel": entry(
        inducing_variables.ProductInducingVariables.for_kernel,
        kernel=made(product),
        inducing_variables=several(lambda: [waves(), waves()]),
        num_inducing=integer(3, huge=True),
        allow_large=LARGE,
        name=NAME,
    ),
    "SphericalHarmonics": entry(
        inducing_variables.SphericalHarmonics,
        dimension=integer(3, 2, huge=True),
        degrees=integers((0, 1, 3), least=0, huge=True, optional=True),
        chains=array([[2, 2], [0, 2]], optional=True),
        column_order=integers((1, 0), least=0, huge=True, optional=True),
        allow_large=LARGE,
        name=NAME,
    ),
    "SphericalHarmonics.for_data": entry(
        inducing_variables.SphericalHarmonics.for_data,
        kernel=made(zonal),
        X=array(X),
        num_inducing=integer(9, huge=True),
        max_degree=integer(3, 0, huge=True, optional=True),
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
    "SharedIndependentInducingVariables": entry(
        inducing_variables.SharedIndependentInducingVariables, inducing_variable=made(points)
    ),
    "SeparateIndependentInducingVariables": entry(
        inducing_variables.SeparateIndependentInducingVariables,
        inducing_variable_list=several(lambda: [points()]),
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
    "StructuredSGPR": entry(
        models.StructuredSGPR,
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
    "CollapsedSVGP": entry(
        models.CollapsedSVGP,
        data=made(lambda: (X, Y)),
        kernel=made(matern),
        likelihood=made(lambda: Gaussian()),
        inducing_variable=made(points, without=("array",)),
        mean_function=made(constant, optional=True),
        num_latent_gps=integer(1, optional=True),
        batch_size=integer(10, optional=True),
        on_invalid=choice("raise"),
        progress=boolean(),
        strategy=made(lambda: None, optional=True),
    ),
    # streaming and distributed
    "Shards": entry(streaming.Shards, parts=made(lambda: {"all": (X, Y)})),
    "Shards.split": entry(
        streaming.Shards.split, data=made(lambda: (X, Y)), number=integer(2, huge=True)
    ),
    "SufficientStatistics": entry(
        streaming.SufficientStatistics,
        num_rows=integer(20, 0),
        num_skipped=integer(0, 0),
        gram=made(lambda: statistics().gram),
        diagonal=made(lambda: statistics().diagonal),
        identity=made(lambda: statistics().identity),
        seconds=made(lambda: {}),
    ),
    "SufficientStatistics.load": entry(
        streaming.SufficientStatistics.load,
        # Text may be a path, of a file that is not there.
        path=made(saved_statistics, without=("text",)),
    ),
    "SufficientStatistics.from_arrays": entry(
        streaming.SufficientStatistics.from_arrays, arrays=made(lambda: statistics().to_arrays())
    ),
    "Workers": entry(distributed.Workers, strategy=made(lambda: None, optional=True)),
    # spectra
    "MaternSpectrum": entry(sphere.MaternSpectrum, SPECTRUM, nu=number(1.5)),
    "SquaredExponentialSpectrum": entry(sphere.SquaredExponentialSpectrum, SPECTRUM),
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
