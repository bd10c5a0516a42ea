"""Warnings of data that a model will learn nothing of: one for each cause, and no false ones."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
from gpflow.kernels import Matern32

from interdomain import fit
from interdomain import inducing_variables as iv
from interdomain.kernels import Convolutional, FiniteRank, Periodized, SphericalMatern32
from interdomain.models import DualSVGP, StructuredSGPR, VecchiaSGPR
from interdomain.training.scales import warn_of_data
from tests.parts import finite_rank, with_harmonics

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
Y = np.sin(3 * X[:, :1]) + 0.1 * RNG.normal(size=(60, 1))
CATEGORIES = np.stack([RNG.integers(0, 5_000, 60), RNG.integers(2_000, 2_025, 60)], axis=1)
LABELS = (Y > 0).astype(float)
QUIET = gpflow.likelihoods.Gaussian(1e-9, variance_lower_bound=1e-12)
IMAGES = RNG.uniform(0, 255.0, (60, 36))
IMAGES[:, 0] = 0.998 * 255.0  # a corner that hardly varies
IMAGES[0, 0] = 255.0


def svgp(kernel: Any, inducing_variable: Any = None, likelihood: Any = None) -> Any:
    features = X[:5].copy() if inducing_variable is None else inducing_variable
    likelihood = likelihood or gpflow.likelihoods.Gaussian()
    return gpflow.models.SVGP(kernel, likelihood, features, num_data=60)


def on_the_sphere(**parameters: Any) -> Any:
    return svgp(*finite_rank(*with_harmonics(SphericalMatern32(**parameters), 3)))


def sum_on_intervals() -> Any:
    intervals = [iv.VariationalFourierFeatures(-end, end, 3) for end in (1, 0.5)]
    kernel = Matern32(active_dims=[0]) + Matern32(active_dims=[1])
    return svgp(kernel, iv.SumInducingVariables(intervals))


def image_model() -> Any:
    kernel = Convolutional(Matern32(), (6, 6), (3, 3))
    return svgp(kernel, iv.InducingPatches.from_data(kernel, IMAGES, 5))


def regression(Y: np.ndarray) -> Any:
    return gpflow.models.GPR((X, Y), Matern32())


def caught(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    ours = [w for w in found if issubclass(w.category, UserWarning) and w.filename == __file__]
    return [str(warning.message) for warning in ours]


WRONG: dict[str, Any] = {
    "scaled": (lambda: svgp(Matern32()), (X * 1e4 + 1e6, Y), r"column 0 with.*X\.std.*Matern32"),
    "shrunk": (lambda: svgp(Matern32()), (X * 1e-4, Y), "column 0 with a size of 0.000"),
    "off the centre": (on_the_sphere, (X + 1e4, Y), r"column 0 with a size of 1e\+04"),
    "Y off the prior": (lambda: regression(Y + 1e3), None, r"Y is up to 1e\+03 .*Y\.std"),
    "Y below the noise": (
        lambda: regression(5 + 1e-4 * Y),
        None,
        r"column 0 of Y has a standard deviation of .*e-05.* 0\.001 \(a variance of 1e-06\)",
    ),
    "interval of a sum": (
        sum_on_intervals,
        (X, Y),
        r"[0-9]+ of 60 rows of X are outside of the interval \[-0\.5, 0\.5\] .*: column 1 goes "
        r"from .*from_data",
    ),
}

RIGHT: dict[str, Any] = {
    "on the sphere": (on_the_sphere, (X + 3, Y)),
    "lengthscales to match": (lambda: svgp(Matern32(lengthscales=5e3)), (X * 1e4 + 1e6, Y)),
    "a trained lengthscale": (lambda: svgp(Matern32(lengthscales=[1e-4, 1e5])), (X, Y)),
    "weights to match": (lambda: on_the_sphere(weight_variances=1e-8), (X * 1e4, Y)),
    "pixels are no columns": (image_model, (IMAGES, Y)),
    "categories and years": (lambda: svgp(Matern32()), (CATEGORIES.astype(float), Y)),
    "a constant column": (lambda: svgp(Matern32()), (np.append(X, 0 * X + 1, axis=1)[:, :2], Y)),
    "constant targets": (lambda: regression(Y), (X, 0 * Y + 0.1)),
    "small targets": (lambda: regression(Y), (X, 3e-3 * Y)),
    "less noise": (lambda: svgp(Matern32(variance=1e-8), likelihood=QUIET), (X, 1e-4 * Y)),
    "labels": (lambda: svgp(Matern32(), likelihood=gpflow.likelihoods.Bernoulli()), (X, LABELS)),
}


def test_each_cause_is_told_once_and_nothing_else() -> None:
    for name, (build, data, *message) in (WRONG | RIGHT).items():
        model = build()
        found = caught(lambda m=model, d=data: warn_of_data(m, *(d or m.data)))
        assert len(found) == len(message), (name, found)
        assert all(map(re.search, message, found)), (name, found)


def test_a_model_that_holds_rows_tells_once() -> None:
    def use() -> None:
        rows: Any = lambda: iter([(X * 1e4, Y)])  # noqa: E731
        model = StructuredSGPR(rows, Matern32(), X[:5].copy(), progress=False)
        fit(model, steps=1, progress=False, options={"subset_size": 30, "subset_steps": 1})

    (text,) = caught(use)
    assert "columns of X are far from standardised" in text


def test_every_model_says_that_Y_is_below_the_least_noise() -> None:
    """Where the kernel's variance is to match, nothing else is wrong."""
    data, kernel = (X, 1e-4 * Y), Matern32(variance=1e-8)
    likelihood, Z = gpflow.likelihoods.Gaussian(1e-5), X[:5].copy()
    quiet: Any = {"progress": False}
    near: Any = {"local_kernel": kernel, "num_neighbours": 3}
    models: list[Callable[[], Any]] = [
        lambda: fit(gpflow.models.GPR(data, kernel, noise_variance=1e-5), steps=1, **quiet),
        lambda: fit(gpflow.models.SGPR(data, kernel, Z, noise_variance=1e-5), steps=1, **quiet),
        lambda: fit(svgp(kernel, likelihood=likelihood), data, steps=1, batch_size=9, **quiet),
        lambda: StructuredSGPR(data, kernel, Z, **quiet),
        lambda: DualSVGP(data, kernel, likelihood, Z, **quiet),
        lambda: fit(VecchiaSGPR(data, likelihood=likelihood, **near), steps=1, **quiet),
    ]
    for make in models:
        texts = [text for text in caught(make) if "has a standard deviation of" in text]
        assert len(texts) == 1 and "least noise of the likelihood, 0.001 (a variance" in texts[0]


def test_a_lengthscale_that_outgrows_the_margin() -> None:
    """Only one that has grown: a short margin is the user's choice."""
    rows = np.linspace(0, 1, 40)[:, None]
    for lengthscale, margin, expected in ((0.05, 4.0, 1), (1.5, 4.0, 0), (1.5, 0.5, 0)):
        base = Matern32(lengthscales=lengthscale)
        kernel = Periodized.from_data(base, rows, margin=margin)
        features = iv.BoxFourierFeatures.for_kernel(kernel, 20)
        model = StructuredSGPR((rows, rows), FiniteRank(kernel, features), features)
        gpflow.set_trainable(kernel, bool(expected))
        found = caught(lambda model=model: fit(model, progress=False))
        texts = [text for text in found if "half of the box's margin" in text]
        assert len(texts) == expected
        assert all("lengthscale of column 0 of the box" in text for text in texts)
