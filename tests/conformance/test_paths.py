"""One answer from each public model: eagerly, compiled, in batches, and in float32.

Each kind of sums over rows has a family: dense (harmonics, points), tables (waves) and sparse
(splines). Every model is fitted, and then asked in all ways.
"""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints

import interdomain as idm
from interdomain.deep import DeepGP, Layer
from tests.conformance.helpers import compiled

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 0.9, size=(60, 1))
Y = np.round(np.exp(1 + np.sin(6 * X)))
NEW = RNG.uniform(0.1, 0.9, size=(5, 1))

Parts = tuple[gpflow.kernels.Kernel, Any]


def harmonics() -> Parts:
    kernel = idm.kernels.SphericalMatern52()
    features = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 1, max_degree=6)
    return idm.kernels.FiniteRank(kernel, features), features


def waves() -> Parts:
    kernel = idm.kernels.Periodized(gpflow.kernels.Matern32(lengthscales=0.3), [-1.0], [2.0])
    features = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, 21)
    return idm.kernels.FiniteRank(kernel, features), features


def splines() -> Parts:
    kernel = gpflow.kernels.Matern32(lengthscales=0.3)
    features = idm.inducing_variables.SplineFeatures([0.0], [1.0], [12], 2)
    return idm.kernels.FiniteRank(kernel, features), features


def points() -> Parts:
    inducing = InducingPoints(np.linspace(0, 1, 6)[:, None])
    return gpflow.kernels.Matern32(lengthscales=0.3), inducing


def structured(parts: Parts, data: Any) -> Any:
    return idm.models.StructuredSGPR(data, *parts, noise_variance=0.3)


def dual(parts: Parts, data: Any) -> Any:
    kernel, features = parts
    gpflow.set_trainable(kernel, False)
    gpflow.set_trainable(features, False)
    return idm.models.DualSVGP(data, kernel, gpflow.likelihoods.Poisson(), features)


def vecchia(parts: Parts | None, data: Any) -> Any:
    local = gpflow.kernels.Matern32(lengthscales=0.2, variance=0.5)
    options: dict[str, Any] = {"num_neighbours": 5, "noise_variance": 0.3}
    if parts is not None and isinstance(parts[1], InducingPoints):
        parts = idm.kernels.FiniteRank(*parts), parts[1]
    return idm.models.VecchiaSGPR(data, *(parts or ()), local_kernel=local, **options)


def svgp(parts: Parts, data: Any) -> Any:
    kernel, features = parts
    q = idm.models.JointQ(kernel, features)
    return idm.models.SVGP(kernel, gpflow.likelihoods.Poisson(), q, num_data=len(X))


def additive(parts: Parts, data: Any) -> Any:
    first, second = parts, points()
    blocks = idm.inducing_variables.SumInducingVariables([first[1], second[1]])
    kernel = first[0] + second[0]
    return idm.models.AdditiveSVGP(kernel, gpflow.likelihoods.Poisson(), blocks, num_data=len(X))


def hvgp(parts: None, data: Any) -> Any:
    base, Z = gpflow.kernels.Matern32(lengthscales=0.3), np.linspace(-0.4, 0.4, 4)[:, None]
    transform = idm.transforms.Negation(0, centre=0.5)
    noise = gpflow.likelihoods.Gaussian(0.3)
    return idm.models.HVGP(base, noise, Z, transform, num_data=len(X))


def orthogonal(parts: Parts, data: Any) -> Any:
    kernel, features = idm.kernels.SphericalMatern52(), parts[1]
    others = InducingPoints(np.linspace(0, 1, 3)[:, None])
    noise = gpflow.likelihoods.Poisson()
    return idm.models.OrthogonalSVGP(kernel, noise, features, others, num_data=len(X))


def deep(parts: Parts, data: Any) -> Any:
    kernel, features = parts
    layer = Layer(kernel, idm.models.JointQ(kernel, features), num_data=len(X))
    return DeepGP([layer], gpflow.likelihoods.Poisson())


MODELS: list[tuple[Callable[..., Any], Callable[[], Parts] | None]] = [
    (structured, harmonics),
    (structured, waves),
    (structured, splines),
    (structured, points),
    (dual, harmonics),
    (dual, waves),
    (dual, splines),
    (vecchia, None),
    (vecchia, harmonics),
    (vecchia, waves),
    (vecchia, points),
    (svgp, harmonics),
    (svgp, splines),
    (additive, waves),
    (hvgp, None),
    (orthogonal, harmonics),
    (deep, harmonics),
]


@pytest.mark.usefixtures("compiled_predictions")
@pytest.mark.parametrize("float_type", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize(
    ("make", "family"), MODELS, ids=lambda part: getattr(part, "__name__", "none")
)
def test_one_answer(make: Any, family: Any, float_type: Any) -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=float_type)):
        rtol, atol = (1e-8, 1e-10) if float_type is np.float64 else (2e-3, 2e-3)
        # Rows in another type are converted.
        data = X.astype(np.float32), Y.astype(float_type)
        model = make(family and family(), data)
        holds_data = isinstance(model, gpflow.models.training_mixins.InternalDataTrainingLossMixin)
        rows = tuple(tf.constant(part, float_type) for part in data)
        elbo_of = (lambda: model.elbo()) if holds_data else (lambda: model.elbo(rows))
        start = float(elbo_of())
        assert np.isfinite(start)
        options = {"parts": "both"} if make is vecchia and family is not None else {}
        given = None if holds_data else data
        fitted = idm.fit(model, given, steps=2, progress=False, options=options)
        assert np.isfinite(fitted.elbo)
        assert float(elbo_of()) >= start - rtol * abs(start)

        Xnew, Ynew = tf.constant(NEW, float_type), tf.constant(Y[:5], float_type)

        def answers(Xnew: tf.Tensor, Ynew: tf.Tensor) -> Any:
            density = model.predict_log_density((Xnew, Ynew))
            return elbo_of(), model.predict_f(Xnew), model.predict_y(Xnew), density

        expected = tf.nest.flatten(answers(Xnew, Ynew))
        assert all(part.dtype == float_type for part in expected)
        assert all(np.all(np.isfinite(part)) for part in expected)
        unknown = tf.nest.flatten(compiled(answers, [None, 1], [None, 1])(Xnew, Ynew))
        for one, other in zip(expected, unknown, strict=True):
            np.testing.assert_allclose(other, one, rtol=rtol, atol=atol, err_msg="unknown rows")
        known = tf.function(model.predict_f, autograph=False)(Xnew)
        for one, other in zip(expected[1:3], known, strict=True):
            np.testing.assert_allclose(other, one, rtol=rtol, atol=atol, err_msg="known rows")
        _, *functions = tf.nest.pack_sequence_as(answers(Xnew, Ynew), expected)
        targets: dict[str, Any] = {"predict_f": {}, "predict_y": {}}
        targets["predict_log_density"] = {"Y": Y[:5]}
        in_batches = [
            idm.predict_in_batches(model, NEW, method=name, batch_size=3, progress=False, **given)
            for name, given in targets.items()
        ]
        pairs = zip(tf.nest.flatten(functions), tf.nest.flatten(in_batches), strict=True)
        for one, other in pairs:
            np.testing.assert_allclose(other, one, rtol=rtol, atol=atol, err_msg="in batches")
