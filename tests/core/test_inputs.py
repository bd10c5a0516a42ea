"""Checks of how many columns X has: they give a user's kernel no made-up rows."""

import warnings

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints

from interdomain import fit
from interdomain.deep import DeepGP, Layer
from interdomain.inducing_variables import BoxFourierFeatures, SplineFeatures
from interdomain.kernels import FiniteRank, Periodized
from interdomain.models import DualSVGP, JointQ, StructuredSGPR, VecchiaSGPR
from interdomain.tables import Additive, AdditiveFeatures, CategoricalColumn, NumericColumn

RNG = np.random.default_rng(0)
X = RNG.uniform(2, 3, size=(40, 2))
Y = np.sin(5 * X[:, :1]) + 0.1 * RNG.normal(size=(40, 1))
ROWS = {"progress": False, "steps": 2}


class Watched(gpflow.kernels.Matern32):
    """Keeps the rows whose values it is given, outside of graphs."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.given: list[np.ndarray] = []

    def __call__(self, X, X2=None, **options):  # type: ignore[no-untyped-def]
        if tf.executing_eagerly():
            self.given += [np.asarray(part) for part in (X, X2) if part is not None]
        return super().__call__(X, X2, **options)


def test_kernels_see_rows_of_the_data_alone() -> None:
    """In models that hold data, models that are given them, and layers of deep models."""
    points, likelihood = InducingPoints(X[:5].copy()), gpflow.likelihoods.Gaussian(0.1)
    gpflow.set_trainable(points, False)

    def structured(kernel: Watched) -> None:
        StructuredSGPR((X, Y), kernel, points, noise_variance=0.1).elbo()

    def dual(kernel: Watched) -> None:
        DualSVGP((X, Y), kernel, likelihood, points).elbo()

    def vecchia(kernel: Watched) -> None:
        VecchiaSGPR((X, Y), local_kernel=kernel, num_neighbours=4).elbo()

    def stock(kernel: Watched) -> None:
        model = gpflow.models.SVGP(kernel, likelihood, points, num_data=len(X))
        fit(model, (X, Y), batch_size=20, **ROWS)

    def deep(kernel: Watched) -> None:
        layer = Layer(kernel, JointQ(kernel, points), num_data=len(X))
        fit(DeepGP([layer], likelihood), (X, Y), batch_size=20, **ROWS)

    known = {row.tobytes() for row in X}
    for run in (structured, dual, vecchia, stock, deep):
        kernel = Watched(lengthscales=[0.5, 0.5])
        run(kernel)
        rows = [row for part in kernel.given for row in part.reshape(-1, X.shape[1])]
        assert all(row.tobytes() in known for row in rows), f"{run.__name__}: {rows[:2]}"


def test_no_warning_of_rows_that_nobody_passed() -> None:
    """Boxes and categories without a one."""
    base = gpflow.kernels.Matern32(lengthscales=[0.5, 0.5])
    product = gpflow.kernels.Matern32(active_dims=[0]) * gpflow.kernels.Matern32(active_dims=[1])
    periodized = Periodized(base, [1.5, 1.5], [3.5, 3.5])
    columns = [
        NumericColumn.from_data(X[:, 0], label="x"),
        CategoricalColumn([0.0, 5.0], label="level"),
    ]
    additive = Additive(columns)
    levels = np.column_stack([X[:, 0], np.where(X[:, 1] > 2.5, 5.0, 0.0)])
    cases = [
        (X, periodized, BoxFourierFeatures.for_kernel(periodized, 20)),
        (X, product, SplineFeatures.from_data(X, [5, 5], 3)),
        (levels, additive, AdditiveFeatures.for_kernel(additive, 20)),
    ]
    for rows, kernel, features in cases:
        prior = FiniteRank(kernel, features)
        svgp = gpflow.models.SVGP(
            prior, gpflow.likelihoods.Gaussian(0.1), features, num_data=len(X)
        )
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "error", category=UserWarning, message="(?s).*(outside of the|none of its)"
            )
            StructuredSGPR((rows, Y), prior, features, noise_variance=0.1).elbo()
            fit(svgp, (rows, Y), batch_size=20, **ROWS)
