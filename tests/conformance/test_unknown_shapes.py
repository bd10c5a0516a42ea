"""Graphs built before the number of columns of X, or even its rank, is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingPoints

from interdomain.inducing_variables import (
    ActivationFeatures,
    HarmonicInducingPoints,
    InducingPatches,
    IntervalFourierFeatures,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import ArcCosine, Convolutional, HarmonicKernel, SphericalMatern32
from interdomain.models import HVGP, AdditiveSVGP, OrthogonalSVGP, StructuredSGPR
from interdomain.transforms import ImageFlip, Negation

from .cases import CASES, ONE_OF_EACH_KIND, REPRESENTATIVES, Case
from .helpers import assert_close, make_data, make_inputs, make_svgp, value_and_gradients
from .selection import cases, in_turn, param

SHAPES = {"columns": [None, None], "rank": None}
Data = tuple[np.ndarray, np.ndarray]


def compiled(function: Callable[..., Any], shape: list[None] | None, *, inputs: int = 1) -> Any:
    signature = [tf.TensorSpec(shape, gpflow.default_float())] * inputs
    return tf.function(function, input_signature=signature, autograph=False)


def with_either_shape(selected: Iterable[Case], first: int) -> pytest.MarkDecorator:
    """One of the two in turn, both with one of each kind; in the quick tier, those with one."""
    return pytest.mark.parametrize(
        ("case", "unknown"),
        [
            param(case, unknown, id=f"{case.name}-{unknown}", quick=quick)
            for case, unknown, quick in in_turn(selected, SHAPES, ONE_OF_EACH_KIND, first)
        ],
    )


def assert_elbo_and_gradients(model: gpflow.models.SVGP, data: Data, unknown: str) -> None:
    variables = model.trainable_variables

    def objective(X: Any, Y: Any) -> Any:
        return value_and_gradients(lambda: model.elbo((X, Y)), variables)

    (value, gradients), expected = (
        compiled(objective, SHAPES[unknown], inputs=2)(*data),
        objective(*data),
    )
    assert_close(value, expected[0])
    for variable, gradient, reference in zip(variables, gradients, expected[1], strict=True):
        assert_close(gradient, reference, rtol=1e-7, message=variable.name)


def predictions(source: Any) -> Callable[[Any], Any]:
    def both(X: Any) -> Any:
        return source.predict_f(X), source.predict_f(X, full_cov=True)

    return both


@with_either_shape(REPRESENTATIVES, first=0)
def test_elbo(case: Case, unknown: str) -> None:
    assert_elbo_and_gradients(make_svgp(case, whiten=False), make_data(case), unknown)


@with_either_shape(REPRESENTATIVES, first=1)
def test_predictions(case: Case, unknown: str) -> None:
    """Of a model, and of its posterior with a cache; several sets of rows, if the rank says so."""
    model = make_svgp(case, num_latent_gps=2)
    leading = ((4,), (2, 3), (2, 1, 3)) if unknown == "rank" else ((4,), (1,))
    for source in (model, model.posterior()):
        function = compiled(predictions(source), SHAPES[unknown])
        for shape in leading:
            X = make_inputs(case, *shape)
            expected = predictions(model)(X)
            actual = function(X)
            assert_close(actual, expected, rtol=max(1e-8, case.kernel_rtol), message=str(shape))
            assert actual[0][0].shape == (*shape, 2)


@cases(ONE_OF_EACH_KIND, quick=ONE_OF_EACH_KIND[-1:])
def test_predicted_outputs(case: Case) -> None:
    model = make_svgp(case)
    X, Y = make_data(case)

    def outputs(X: Any, Y: Any) -> Any:
        return model.predict_y(X), model.predict_log_density((X, Y))

    for shape in SHAPES.values():
        assert_close(compiled(outputs, shape, inputs=2)(X, Y), outputs(X, Y))


@cases(CASES, quick=ONE_OF_EACH_KIND)
def test_features(case: Case) -> None:
    """Kuf, which stock models call themselves, and the kernel of any number of rows (of which some
    have to know the columns), with their gradients: all that models see of a case and X."""
    kernel, inducing_variable = case.build()
    variables = gpflow.models.SVGP(kernel, gaussian(), inducing_variable).trainable_variables

    def features(X: Any) -> Any:
        return Kuf(inducing_variable, kernel, X)

    def with_gradients(X: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(X)
            rows = tf.ensure_shape(X, [None, case.input_dim])
            values = features(X), kernel(rows), kernel(rows, full_cov=False)
            total = tf.add_n([tf.reduce_sum(tf.sin(value)) for value in values])
        return values, tape.gradient(total, [X, *variables], unconnected_gradients="zero")

    X = tf.constant(make_inputs(case, 5))
    values, gradients = compiled(with_gradients, SHAPES["columns"])(X)
    desired, desired_gradients = with_gradients(X)
    assert_close(values[0], desired[0], rtol=1e-12)
    assert_close(values[1:], desired[1:], rtol=max(1e-8, case.kernel_rtol))
    for gradient, reference in zip(gradients, desired_gradients, strict=True):
        assert_close(gradient, reference, rtol=max(1e-7, case.kernel_rtol))


rng = np.random.default_rng(0)
X2, Y2 = rng.normal(size=(12, 2)), rng.normal(size=(12, 1))
IMAGES = rng.normal(size=(12, 6))


def gaussian() -> gpflow.likelihoods.Likelihood:
    return gpflow.likelihoods.Gaussian(0.2)


def hvgp() -> gpflow.models.SVGP:
    return HVGP(gpflow.kernels.Matern32(), gaussian(), X2[:4], Negation())


def hvgp_of_patches() -> gpflow.models.SVGP:
    """The points say nothing of X, which they are not in the space of."""
    base = Convolutional(gpflow.kernels.SquaredExponential(), (3, 2), (1, 2))
    kernel = HarmonicKernel(base, ImageFlip((1, 2), 1))
    return AdditiveSVGP(
        kernel, gaussian(), HarmonicInducingPoints.for_kernel(kernel, IMAGES[:4, :2])
    )


def additive() -> gpflow.models.SVGP:
    """One block knows the number of columns, which another kernel needs."""
    first = Convolutional(gpflow.kernels.SquaredExponential(), (3, 2), (1, 2), active_dims=range(6))
    second, third = SphericalMatern32(), gpflow.kernels.Matern32(active_dims=slice(1, 2))
    blocks = [
        InducingPatches(IMAGES[:3, :2]),
        SphericalHarmonics(7, [0, 1]),
        IntervalFourierFeatures(-5, 5, 2),
    ]
    return AdditiveSVGP(first + second + third, gaussian(), SumInducingVariables(blocks))


def on_a_device() -> gpflow.models.SVGP:
    kernel = ArcCosine(0) + gpflow.kernels.Matern32()
    blocks = SumInducingVariables([SphericalHarmonics(3, [0, 1]), InducingPoints(X2[:3])])
    return AdditiveSVGP(kernel, gaussian(), blocks, devices=["CPU:0"])


def orthogonal() -> gpflow.models.SVGP:
    kernel = SphericalMatern32()
    units = ActivationFeatures.random(2, 3, "softplus", 4)
    return OrthogonalSVGP(kernel, gaussian(), SphericalHarmonics(3, [0, 1]), units)


def orthogonal_points() -> gpflow.models.SVGP:
    kernel = SphericalMatern32()
    return OrthogonalSVGP(kernel, gaussian(), SphericalHarmonics(3, [0, 1]), InducingPoints(X2[:3]))


MODELS = {
    "hvgp": (hvgp, X2),
    "hvgp-of-patches": (hvgp_of_patches, IMAGES),
    "additive": (additive, IMAGES),
    "on-a-device": (on_a_device, X2),
    "orthogonal": (orthogonal, X2),
    "orthogonal-points": (orthogonal_points, X2),
}
UNKNOWN = dict(zip(MODELS, ("rank", "columns", "rank", "columns", "columns", "rank"), strict=True))
QUICK_MODELS = (("hvgp", "rank"), ("orthogonal", "columns"))


@pytest.mark.parametrize(
    ("name", "unknown"),
    [param(*pair, id="-".join(pair), quick=pair in QUICK_MODELS) for pair in UNKNOWN.items()],
)
def test_models_of_several_q(name: str, unknown: str) -> None:
    make, X = MODELS[name]
    model = make()
    for mean, _ in model.variational_parameters:
        mean.assign(np.random.default_rng(1).normal(size=mean.shape))
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-6)):
        assert_elbo_and_gradients(model, (X, Y2), unknown)
        for source in (model, model.posterior()):
            function = compiled(predictions(source), SHAPES[unknown])
            assert_close(function(X), predictions(model)(X))
            if unknown == "rank":
                sets = X.reshape(3, 4, -1)
                assert_close(function(sets), predictions(model)(sets))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_out_of_core(shape: list[None] | None) -> None:
    kernel = ArcCosine()
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, 2)
    model = StructuredSGPR((X2, Y2), kernel, harmonics, progress=False)
    for source in (model, model.posterior()):
        assert_close(compiled(predictions(source), shape)(X2), predictions(model)(X2))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_another_number_of_columns(shape: list[None] | None) -> None:
    """Rows of one number of columns are never taken for more rows of another."""
    model = gpflow.models.SVGP(ArcCosine(), gaussian(), SphericalHarmonics(3, [0, 1]))
    function = compiled(model.predict_f, shape)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible with expected shape"):
        function(IMAGES)
