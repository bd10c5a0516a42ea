"""Sizes are checked before anything is built; the message says the cost, `allow_large` lifts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.inducing_variables import InducingPoints

from interdomain import _arguments, diagnostics, inducing_variables, kernels, models, sphere

HUGE = 10**9


def additive(**arguments: Any) -> models.AdditiveSVGP:
    kernel, points = gpflow.kernels.Matern32(), InducingPoints(np.zeros((200, 1)))
    return models.AdditiveSVGP(kernel, gpflow.likelihoods.Gaussian(), points, **arguments)


LIMITS: dict[str, tuple[Callable[[], Any], str]] = {
    "harmonics": (
        lambda: inducing_variables.SphericalHarmonics.for_kernel(kernels.ArcCosine(), 20, 12),
        r"^input_dim=20, max_degree=12: .* 225,792,861 harmonics .* 1.68e\+03 GiB.*allow_la",
    ),
    "degrees": (
        lambda: inducing_variables.SphericalHarmonics(3, range(HUGE)),
        r"max_degree: the quadrature for 1,000,000,000 degrees would take 7.45e\+09 GiB",
    ),
    "frequencies": (
        lambda: inducing_variables.IntervalFourierFeatures(0, 1, HUGE),
        r"num_frequencies: .* 2,000,000,001 features with 1,000 rows would take 1.49e\+04 GiB",
    ),
    "units": (
        lambda: inducing_variables.ActivationFeatures.random(2, HUGE, "relu", 3),
        "num_inducing, input_dim: 1,000,000,000 units over 2 columns would take .* GiB",
    ),
    "components": (
        lambda: inducing_variables.HarmonicInducingPoints(np.zeros((3, 1)), HUGE),
        "num_components: .* 3,000,000,000 points .* GiB",
    ),
    "latent GPs": (
        lambda: additive(num_latent_gps=HUGE),
        r"num_latent_gps: q_sqrt\[0\] of 1,000,000,000 latent GPs and 200 .* GiB",
    ),
    "layers": (
        lambda: kernels.ArcCosine(1, HUGE),
        "depth must be at most .* found 1,000,000,000 layers.*allow_large",
    ),
    "a spectrum": (
        lambda: diagnostics.spectrum(kernels.ArcCosine(), "relu", 3, HUGE),
        "max_degree: .* GiB",
    ),
    "number of harmonics": (
        lambda: sphere.num_harmonics(HUGE, HUGE),
        "degree: .*too many digits",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_cost_is_told_before_anything_is_built(name: str) -> None:
    """None of them would fit into the memory of a machine."""
    build, message = LIMITS[name]
    with pytest.raises(ValueError, match=message):
        build()


def test_a_keyword_lifts_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_arguments, "MAX_GIB", 1e-5)
    kernel = kernels.ArcCosine()
    box = kernels.Periodized(gpflow.kernels.Matern32(), 0.0, 1.0)
    for build in (
        lambda **a: inducing_variables.SphericalHarmonics(3, [0, 1], **a),
        lambda **a: inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, 3, **a),
        lambda **a: inducing_variables.IntervalFourierFeatures(0, 1, 3, **a),
        lambda **a: inducing_variables.PeriodicFourierFeatures(0, 1, [[0], [1]], **a),
        lambda **a: inducing_variables.PeriodicFourierFeatures.for_kernel(box, 3, **a),
        lambda **a: inducing_variables.ActivationFeatures.random(2, 3, "relu", 3, **a),
        lambda **a: inducing_variables.HarmonicInducingPoints(np.zeros((3, 1)), 2, **a),
        additive,
    ):
        with pytest.raises(ValueError, match="allow_large=True"):
            build()
        build(allow_large=True)
