"""Passes of DualSVGP over rows whose sums of waves are tables, against dense ones."""

from collections.abc import Iterator
from typing import Any

import gpflow
import numpy as np
import pytest

import interdomain as idm
from interdomain.models.dual_svgp import row_sites
from interdomain.sums import waves as wave_sums
from tests import parts as built
from tests.parts import with_waves

from .test_dual_svgp import TARGETS, X, model_of, step


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Tables of few features, too, and a likelihood that takes the rows in two parts."""
    monkeypatch.setattr(wave_sums, "FEWEST", (1, 1, 1))
    monkeypatch.setattr(row_sites, "_ROWS_OF_LIKELIHOOD", 40)
    yield monkeypatch


def waves() -> tuple[Any, Any]:
    return with_waves(gpflow.kernels.Matern32(variance=1.5, lengthscales=[0.6, 0.8]), X, 25)


def finite_rank() -> tuple[Any, Any]:
    return built.finite_rank(*waves())


def passed(model: Any) -> tuple[Any, Any]:
    """A pass at a q that sites, which are not tangent, make; and what it is made by."""
    model.shrink_q(0.1)
    step(model, 0.3)
    return model.pass_over_data(), type(model._features.sums)


@pytest.mark.parametrize("parts", [waves, finite_rank])
@pytest.mark.parametrize("name", ["probit", "Poisson", "StudentT", "heteroskedastic"])
def test_a_pass_is_that_of_dense_sums(few: pytest.MonkeyPatch, name: str, parts: Any) -> None:
    """A pass with a linear mean, two latent GPs, and sites of negative precision."""
    latents = 2 if name == "heteroskedastic" else 1
    mean = gpflow.mean_functions.Linear(np.full([2, latents], 0.2), np.full(latents, 0.1))
    arguments: dict[str, Any] = {"mean_function": mean, "batch_size": 17}
    found, kind = passed(model_of(name, parts, **arguments))
    few.setattr(wave_sums, "FEWEST", (1_000,) * 3)
    dense, other_kind = passed(model_of(name, parts, **arguments))
    assert kind is wave_sums.WaveSums is not other_kind
    assert found.elbo == pytest.approx(dense.elbo, rel=1e-9)
    if name == "StudentT":
        assert found.sites is not found.clipped and dense.sites is not dense.clipped
    for some, others in ((found.sites, dense.sites), (found.clipped, dense.clipped)):
        for part, expected in zip(some, others, strict=True):
            scale = np.max(np.abs(expected), initial=0.0)
            np.testing.assert_allclose(part, expected, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(found.slopes, dense.slopes, rtol=1e-8)


def test_a_fit_and_single_precision(few: pytest.MonkeyPatch) -> None:
    """Sites of some rows are the same, too, and predictions of many."""
    X32, Y = X.astype(np.float32), TARGETS["probit"][1]
    elbos = []
    for dtype, fewest in ((np.float32, 1), (np.float64, 1), (np.float64, 1_000)):
        few.setattr(wave_sums, "FEWEST", (fewest,) * 3)
        with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
            model = model_of("probit", finite_rank, data=(X32, Y))
            idm.fit(model, steps=3, progress=False)
            elbos.append(float(model.elbo()))
            precisions, _ = model.sites_of(X32[:5], Y[:5])
            found = idm.predict_in_batches(model, X32, method="predict_y", progress=False)
            for part, expected in zip(found, model.predict_y(X32), strict=True):
                np.testing.assert_allclose(part, expected, rtol=0, atol=1e4 * np.finfo(dtype).eps)
    assert elbos[1] == pytest.approx(elbos[2], rel=1e-6)
    assert elbos[0] == pytest.approx(elbos[2], rel=1e-3) and precisions.shape == (1, 5)
