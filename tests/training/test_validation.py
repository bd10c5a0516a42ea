"""Models and data that do not fit each other: one short message, before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern32
from gpflow.likelihoods import Gaussian, HeteroskedasticTFPConditional, MultiClass

from interdomain.inducing_variables import SphericalHarmonics, SumInducingVariables
from interdomain.kernels import SphericalMatern32
from interdomain.models import AdditiveSVGP, OrthogonalSVGP
from interdomain.training import fit
from interdomain.training.data import check_columns

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(20, 3)), rng.normal(size=(20, 1))
LABELS = (Y > 0).astype(int)


def sphere(columns: int) -> SphericalMatern32:
    return SphericalMatern32(weight_variances=np.ones(columns))


def harmonics(columns: int) -> SphericalHarmonics:
    return SphericalHarmonics.for_kernel(sphere(columns), columns, max_degree=1)


def points(columns: int) -> InducingPoints:
    return InducingPoints(rng.normal(size=(4, columns)))


def svgp(kernel: Any, inducing: Any, likelihood: Any = None, **options: Any) -> Any:
    likelihood = likelihood or Gaussian()
    return gpflow.models.SVGP(kernel, likelihood, inducing, num_data=len(X), **options)


def additive(*parts: Any) -> AdditiveSVGP:
    kernel = gpflow.kernels.Sum([kernel for kernel, _ in parts])
    blocks = SumInducingVariables([block for _, block in parts])
    return AdditiveSVGP(kernel, Gaussian(), blocks, num_data=len(X))


def orthogonal(kernel: Any, base: Any, other: Any) -> OrthogonalSVGP:
    return OrthogonalSVGP(kernel, Gaussian(), base, other, num_data=len(X))


MISFITS: list[tuple[Callable[[], Any], Any, str]] = [
    (lambda: svgp(Matern32(), points(4)), Y, "data: X has 3 .* pass X with 4 columns"),
    (
        lambda: svgp(Matern32(lengthscales=np.ones(4)), points(3)),
        Y,
        r"data: X has 3 columns, which do not fit InducingPoints and Matern32",
    ),
    (lambda: svgp(Matern32(), harmonics(3)), Y, "kernel: there is no covariance betw"),
    (
        lambda: additive((sphere(4), harmonics(4))),
        Y,
        "X must have 4 columns, one for each entry of weight_variances, found 3",
    ),
    (
        lambda: orthogonal(SphericalMatern32(), harmonics(4), points(4)),
        Y,
        "the kernel sees 3 columns of Xnew, but the inducing variable has dimension 5",
    ),
    (
        lambda: svgp(sphere(3), harmonics(3)),
        np.hstack([Y, Y, Y]),
        "data: Y has 3 .* take 1;",
    ),
    (
        lambda: svgp(sphere(3), harmonics(3), MultiClass(3), num_latent_gps=2),
        LABELS,
        "model.num_latent_gps: found 2, but a MultiClass likelihood is of 3 functions",
    ),
]


def test_misfits() -> None:
    for make, outputs, text in MISFITS:
        with pytest.raises(ValueError, match=text) as caught:
            check_columns(make(), (X.shape[1], outputs.shape[1]))
        assert len(str(caught.value)) < 300
        assert "{{" not in str(caught.value) and "\n" not in str(caught.value)


def test_misfits_are_found_before_anything_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: Any, **options: Any) -> None:
        raise AssertionError("something was compiled")

    monkeypatch.setattr("interdomain._tracing.compiled", never)
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(5)
    for data, arguments in (((X, Y), {}), ((X, Y), {"batch_size": 5}), (dataset, {})):
        with pytest.raises(ValueError, match="X has 3 columns, which do not fit InducingPoints"):
            fit(svgp(Matern32(), points(4)), data, steps=1, progress=False, **arguments)


def test_misfits_of_models_that_hold_their_data() -> None:
    for model, text in {
        gpflow.models.GPR((X, Y), Matern32(lengthscales=np.ones(4))): "do not fit Matern32; build",
        gpflow.models.SGPR((X, Y), Matern32(), points(4)): "pass X with 4 columns",
    }.items():
        with pytest.raises(ValueError, match=text):
            fit(model, steps=1, progress=False)


def test_what_fits_passes() -> None:
    """Kernels of some columns, several latent GPs, likelihoods of several functions."""
    for model, columns in (
        (svgp(Matern32(active_dims=[0, 2]), points(3)), (3, 1)),
        (svgp(SphericalMatern32(active_dims=[0, 2]), harmonics(2)), (3, 1)),
        (svgp(sphere(3), harmonics(3), num_latent_gps=2), (3, 2)),
        (svgp(sphere(3), harmonics(3), MultiClass(3), num_latent_gps=3), (3, 1)),
        (svgp(sphere(3), harmonics(3), HeteroskedasticTFPConditional(), num_latent_gps=2), (3, 1)),
        (svgp(sphere(3), harmonics(3)), (3, None)),
        (svgp(sphere(3), harmonics(3)), (None, None)),
        (
            svgp(
                sphere(3),
                harmonics(3),
                gpflow.likelihoods.SwitchedLikelihood([Gaussian(), Gaussian()]),
            ),
            (3, 2),
        ),
    ):
        check_columns(model, columns)
