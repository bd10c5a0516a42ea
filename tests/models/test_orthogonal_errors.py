"""What OrthogonalSVGP refuses, and what it warns of."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.inducing_variables import InducingPoints

from interdomain.inducing_variables import (
    HarmonicInducingPoints,
    SphericalHarmonics,
)
from interdomain.models import OrthogonalSVGP

from .cases import matern, points
from .orthogonal_cases import CASES, make_orthogonal, zonal

U, V = points(4), points(3, seed=1)


def model(**arguments: Any) -> OrthogonalSVGP:
    kernel = arguments.pop("kernel", matern())
    base = arguments.pop("base", InducingPoints(U))
    orthogonal = arguments.pop("orthogonal", InducingPoints(V))
    return OrthogonalSVGP(kernel, gpflow.likelihoods.Gaussian(), base, orthogonal, **arguments)


ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "variant": (
        lambda: model(variant="svgp"),
        "variant must be 'solve' or 'odvgp', found 'svgp'",
    ),
    "a root for odvgp": (
        lambda: model(variant="odvgp", q_sqrt_orthogonal=np.eye(3)[None]),
        "q_sqrt_orthogonal: with variant='odvgp' the covariance .* is the prior's; leave it out",
    ),
    "an array": (
        lambda: OrthogonalSVGP(matern(), gpflow.likelihoods.Gaussian(), InducingPoints(U), V),
        "^orthogonal_inducing_variable must be an inducing variable, found ndarray; pass",
    ),
    "pair": (
        lambda: model(
            kernel=zonal(),
            base=SphericalHarmonics(4, [0]),
            orthogonal=HarmonicInducingPoints(points(2, 3)),
        ),
        "no covariance between HarmonicInducingPoints and SphericalHarmonics under SphericalMat",
    ),
}


def test_errors() -> None:
    for build, message in ERRORS.values():
        with pytest.raises(ValueError, match=message):
            build()


def harmonics(degrees: list[int], base: list[int]) -> Callable[[], OrthogonalSVGP]:
    return lambda: model(
        kernel=zonal(),
        base=SphericalHarmonics(4, base),
        orthogonal=SphericalHarmonics(4, degrees),
    )


DETERMINED: dict[str, tuple[Callable[[], OrthogonalSVGP], str]] = {
    "all harmonics": (
        harmonics([0, 1], [0, 1, 2]),
        r"the base \(SphericalHarmonics\) determines 5 of its 5 variables \(SphericalHarmonics\): "
        "S_vf = 0, and the model is no more than an SVGP with the base. .*of other degrees",
    ),
    "some harmonics": (
        harmonics([0, 3], [0, 1]),
        r"determines 1 of its 17 variables .*S_vf = 0 for them \(rows \[0\]\.\.\.\)",
    ),
    "a point of the base": (
        lambda: model(orthogonal=InducingPoints(np.concatenate([V, U[2:3]]))),
        r"determines 1 of its 4 variables .*rows \[3\]",
    ),
}


@pytest.mark.parametrize("jitter", [0.0, 1e-6])
def test_variables_that_the_base_determines(jitter: float) -> None:
    config = gpflow.config.Config(jitter=jitter)
    for build, message in DETERMINED.values():
        with gpflow.config.as_context(config), pytest.warns(UserWarning, match=message) as caught:
            build()
        (warning,) = (w for w in caught if "orthogonal_inducing_variable" in str(w.message))
        assert warning.filename == __file__  # where the model is made


def test_the_collapse_is_what_the_warning_says() -> None:
    """All determined: with the usual jitter predictions are those of the SVGP with the base."""
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-6)), pytest.warns(UserWarning):
        both = harmonics([0, 1], [0, 1, 2])()
        rng = np.random.default_rng(0)
        both.q_mu.assign(rng.normal(size=both.q_mu.shape))
        both.q_mu_orthogonal.assign(rng.normal(size=(5, 1)))
        svgp = gpflow.models.SVGP(
            both.kernel, both.likelihood, both.inducing_variable, q_mu=both.q_mu.numpy()
        )
        for part, expected in zip(both.predict_f(U), svgp.predict_f(U), strict=True):
            np.testing.assert_allclose(part, expected, atol=1e-6)


def test_no_warning_otherwise() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for case in CASES:
            make_orthogonal(case)
        harmonics([1, 3], [0, 2])()
