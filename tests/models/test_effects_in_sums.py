"""Effects of columns beside other summands: a globe, harmonics, and points for what is left."""

from __future__ import annotations

import gpflow
import numpy as np
from gpflow.inducing_variables import InducingPoints

from interdomain.inducing_variables import (
    AdditiveFeatures,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import Additive, FiniteRank, GlobeMatern52, SphericalMatern52
from interdomain.models import OrthogonalSVGP, StructuredSGPR

RNG = np.random.default_rng(0)
# A place, and two columns of a table.
X = np.column_stack(
    [RNG.uniform(-90, 90, 40), RNG.uniform(-180, 180, 40), RNG.uniform(size=[40, 2])]
)
Y = np.sin(np.radians(X[:, :1])) + X[:, 2:3] * X[:, 3:] + 0.1 * RNG.normal(size=[40, 1])


def effects() -> tuple[Additive, AdditiveFeatures]:
    kernel = Additive.from_data(X[:, 2:], ["main", "pairs"], active_dims=[2, 3])
    return kernel, AdditiveFeatures(kernel, {(0,): 2, (1,): 2, (0, 1): 1})


def test_effects_harmonics_and_a_globe() -> None:
    """With a diagonal Kuu together; the bound is that of GPflow's dense model."""
    table, features = effects()
    globe = GlobeMatern52(active_dims=[0, 1])
    zonal = SphericalMatern52(weight_variances=[0.9, 0.7], active_dims=[2, 3])
    blocks = [
        features,
        SphericalHarmonics.for_kernel(globe, 2, max_degree=2),
        SphericalHarmonics.for_kernel(zonal, 2, max_degree=2),
    ]
    parts = [FiniteRank(table, features), globe, FiniteRank(zonal, blocks[2])]
    kernel, together = gpflow.kernels.Sum(parts), SumInducingVariables(blocks)
    model = StructuredSGPR((X, Y), kernel, together, noise_variance=0.1)
    dense = gpflow.models.SGPR((X, Y), kernel, together, noise_variance=0.1)
    np.testing.assert_allclose(model.elbo(), dense.elbo(), rtol=1e-9)
    for ours, theirs in zip(model.predict_f(X[:5]), dense.predict_f(X[:5]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)


def test_points_for_what_effects_leave() -> None:
    """OrthogonalSVGP: the variance falls by what points explain of the rest, ``Kff - Qff``."""
    table, features = effects()
    new, Z = X[:3], X[5:13]
    model = OrthogonalSVGP(table, gpflow.likelihoods.Gaussian(0.1), features, InducingPoints(Z))
    np.testing.assert_allclose(model.predict_f(new)[1][:, 0], table(new, full_cov=False))
    model.q_sqrt_orthogonal.assign(0.6 * model.q_sqrt_orthogonal.numpy())

    def rest(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        explained = FiniteRank(table, features)
        return (table(first, second) - explained(first, second)).numpy()

    cross = rest(new, Z)
    known = np.einsum("nk,km,nm->n", cross, np.linalg.inv(rest(Z, Z)), cross)
    expected = table(new, full_cov=False) - (1 - 0.6**2) * known
    np.testing.assert_allclose(model.predict_f(new)[1][:, 0], expected, rtol=1e-4)
    assert np.isfinite(model.elbo((X, Y)))
