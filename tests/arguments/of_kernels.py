"""The public kernels, with arguments that are right and the kind of each."""

from __future__ import annotations

import gpflow
import numpy as np

from interdomain import kernels, transforms
from tests.arguments.kinds import (
    ACTIVE_DIMS,
    LARGE,
    NAME,
    SEED,
    Argument,
    array,
    boolean,
    choice,
    integer,
    integers,
    made,
    number,
    several,
)
from tests.arguments.parts import (
    Entry,
    X,
    Y,
    columns,
    component,
    entry,
    matern,
    points,
    zonal,
)

SCALAR = array(1.0, positive=True)
ZONAL: dict[str, Argument] = {
    "variance": SCALAR,
    "weight_variances": array([1.0], positive=True, optional=True),
    "bias_variance": array(1.0, positive=True, optional=True),
    "inputs": choice("euclidean"),
    "active_dims": ACTIVE_DIMS,
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
TABLE = {
    "effects": several(lambda: ["main", (0, 1)], without=("None",)),
    "kernel_class": Argument(lambda: gpflow.kernels.Matern32, made(matern).wrong),
    "lengthscales": SCALAR,
    "separate_lengthscales": boolean(),
    "name": NAME,
}
LABEL = Argument(lambda: "age", {"number": 3, "bytes": b"age", "list": ["age"]})
KERNELS: dict[str, Entry] = {
    "Additive": entry(
        kernels.Additive,
        TABLE,
        columns=several(columns),
        variances=SCALAR,
        constant_variance=SCALAR,
        active_dims=ACTIVE_DIMS,
    ),
    "Additive.from_data": entry(
        kernels.Additive.from_data,
        TABLE,
        X=array(X),
        names=several(lambda: ["age", "height"], without=("None",)),
        categorical=several(lambda: [], without=("empty",)),
        quantiles=Argument(lambda: None, {"text": "yes", "number": 2.0}),
        margin=number(0.5),
        active_dims=Argument(lambda: [0, 1], ACTIVE_DIMS.wrong),
    ),
    "CategoricalColumn": entry(kernels.CategoricalColumn, levels=array([1.0, 2.0]), label=LABEL),
    "CategoricalColumn.from_data": entry(
        kernels.CategoricalColumn.from_data, values=array([1.0, 2.0, 2.0, 1.0]), label=LABEL
    ),
    "NumericColumn": entry(
        kernels.NumericColumn,
        knots=array([0.0, 1.0]),
        positions=array([0.0, 1.0], optional=True),
        margin=number(0.5),
        label=LABEL,
    ),
    "NumericColumn.from_data": entry(
        kernels.NumericColumn.from_data,
        values=array([1.0, 2.0, 3.0]),
        quantiles=Argument(lambda: None, {"text": "yes", "number": 2.0}),
        margin=number(0.5),
        label=LABEL,
    ),
    "ArcCosine": entry(
        kernels.ArcCosine,
        ZONAL,
        order=integer(1, 0, huge=True),
        depth=integer(1, huge=True),
        allow_large=LARGE,
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
    **{
        name: entry(
            getattr(kernels, name),
            variance=SCALAR,
            lengthscale=array(1.0, positive=True, optional=True),
            active_dims=Argument(lambda: [0, 1], ACTIVE_DIMS.wrong),
            name=NAME,
        )
        for name in ("GlobeMatern12", "GlobeMatern32", "GlobeMatern52", "GlobeSquaredExponential")
    },
    "FreeSpectrum": entry(
        kernels.FreeSpectrum,
        {key: value for key, value in STATIONARY.items() if key != "lengthscale"},
        allow_large=LARGE,
        ratios=array([0.3, 0.1], positive=True),
        degrees=integers((0, 1, 3), optional=True, huge=True, least=0),
    ),
    "FreeSpectrum.from_kernel": entry(
        kernels.FreeSpectrum.from_kernel,
        kernel=made(zonal),
        input_dim=integer(1),
        max_degree=integer(3, huge=True),
        allow_large=LARGE,
        name=NAME,
    ),
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
    "FiniteRank": entry(
        kernels.FiniteRank, kernel=made(matern), inducing_variable=made(points), name=NAME
    ),
    "Periodized": entry(
        kernels.Periodized,
        COLUMN,
        base_kernel=made(matern),
        lower=array(0.0),
        upper=array(1.0),
    ),
    "Periodized.from_data": entry(
        kernels.Periodized.from_data,
        COLUMN,
        base_kernel=made(matern),
        X=array(X),
        margin=number(4.0),
        active_dims=Argument(lambda: [0, 1], ACTIVE_DIMS.wrong),
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
}
