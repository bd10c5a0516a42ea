"""Kernels whose ``active_dims`` are all columns of X in another order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, Matern32, SquaredExponential

from interdomain._tracing import operation_by_operation
from interdomain.core.columns import WholeRows, seen_columns, select_columns
from interdomain.core.diagonals import diagonal_terms
from interdomain.core.domains import boxes
from interdomain.core.pairs import Kuf_in_domain
from interdomain.inducing_variables import (
    ActivationFeatures,
    BoxFourierFeatures,
    HarmonicInducingPoints,
    HarmonizableFourierFeatures,
    InducingPatches,
    OrbitInducingPoints,
    SphericalHarmonics,
    SplineFeatures,
    SumInducingVariables,
)
from interdomain.kernels import (
    ArcCosine,
    ChannelAdditive,
    Convolutional,
    GlobeMatern52,
    HarmonicKernel,
    HarmonizableComponent,
    HarmonizableMixture,
    Invariant,
    MultiChannelConvolutional,
    Periodized,
    SpectralComponent,
    SpectralMixture,
    SphericalMatern52,
)
from interdomain.models import StructuredSGPR
from interdomain.sampling import sample_functions
from interdomain.tables import Additive, AdditiveFeatures, NumericColumn
from interdomain.transforms import Negation
from tests.conformance.helpers import assert_close

CYCLE = [2, 0, 1]
"""No missing selection and no double one is the same."""
RNG = np.random.default_rng(0)
Y = RNG.normal(size=[7, 1])
Z = RNG.normal(size=[3, 3])
Pair: TypeAlias = tuple[Kernel, InducingVariables]


def lifted(dims: Any) -> Pair:
    kernel = SphericalMatern52(weight_variances=[1.0, 2.0, 0.5], active_dims=dims)
    return kernel, SphericalHarmonics.for_kernel(kernel, 3, max_degree=2)


def globe(dims: Any) -> Pair:
    kernel = GlobeMatern52(active_dims=dims)
    return kernel, SphericalHarmonics.for_kernel(kernel, 2, max_degree=3)


def activations(dims: Any) -> Pair:
    kernel = ArcCosine(1, weight_variances=[1.2, 0.5, 2.0], active_dims=dims)
    return kernel, ActivationFeatures.random(3, 6, "relu", 2, seed=1)


def waves(dims: Any) -> Pair:
    base = Matern32(lengthscales=[0.9, 1.4, 2.0])
    kernel = Periodized(base, [-3.0, -4.0, -5.0], [3.0, 3.5, 6.0], active_dims=dims)
    return kernel, BoxFourierFeatures.for_kernel(kernel, 9)


def component(dims: Any, sign: float = 1.0) -> HarmonizableComponent:
    return HarmonizableComponent(
        [[0.2, -0.1 * sign, 0.3]], centre=[0.3, -0.2, sign], envelope=0.015, active_dims=dims
    )


def harmonizable(dims: Any) -> Pair:
    return component(dims), HarmonizableFourierFeatures([[0.2, -0.1, 0.0], [0.0, 0.3, 0.1]])


def mixture(dims: Any) -> Pair:
    features = harmonizable(dims)[1]
    kernel = HarmonizableMixture([component(dims), component(dims, -1.0)])
    return kernel, SumInducingVariables([features, features])


def peaks(dims: Any) -> Pair:
    kernel = SpectralMixture([SpectralComponent([0.1, f, -0.2]) for f in (0.2, 0.4)])
    if dims is not None:
        kernel.active_dims = dims
    return kernel, InducingPoints(placed(Z, dims))


def table(dims: Any) -> Pair:
    ends = ([-3.0, 3.0], [-4.0, 5.0], [-5.0, 4.0])
    columns = [NumericColumn(pair) for pair in ends]
    kernel = Additive(columns, ["main", (0, 2)], variances=[0.9, 0.5, 0.3, 0.4], active_dims=dims)
    return kernel, AdditiveFeatures(kernel, dict.fromkeys(kernel.effects, 1))


def patches(dims: Any) -> Pair:
    kernel = Convolutional(Matern32(), (3, 1), (2, 1), weights=[0.8, 1.3], active_dims=dims)
    return kernel, InducingPatches(Z[:, :2])


def patches_of_channels(dims: Any) -> Pair:
    bases = [Matern32(variance=0.5), Matern32(variance=2.0), Matern32(lengthscales=0.6)]
    kernel = MultiChannelConvolutional(bases, (1, 1, 3), (1, 1), active_dims=dims)
    return kernel, SumInducingVariables([InducingPatches(Z[:, :1])] * 3)


def channels(dims: Any) -> Pair:
    bases = [Matern32(variance=0.5), Matern32(variance=2.0), Matern32(lengthscales=0.6)]
    kernel = ChannelAdditive(bases, (1, 1, 3), active_dims=dims)
    return kernel, SumInducingVariables([InducingPoints(placed(Z, dims))] * 3)


def orbits(dims: Any) -> Pair:
    base = Matern32(lengthscales=[0.9, 1.4, 0.5])
    kernel = Invariant(base, Negation(0, centre=0.4), active_dims=dims)
    return kernel, OrbitInducingPoints(Z)


def harmonic(dims: Any) -> Pair:
    kernel = HarmonicKernel(Matern32(lengthscales=[0.9, 1.4, 0.5]), Negation(0, centre=0.4))
    if dims is not None:
        kernel.active_dims = dims
    return kernel, HarmonicInducingPoints.for_kernel(kernel, Z)


def harmonic_patches(dims: Any) -> Pair:
    kernel = HarmonicKernel(patches(dims)[0], Negation(0, centre=0.4))
    return kernel, HarmonicInducingPoints.for_kernel(kernel, Z[:, :2])


def splines(dims: Any) -> Pair:
    first, second, third = [0, 1, 2] if dims is None else dims
    kernel = Matern32(active_dims=[first]) * Matern32(active_dims=[second])
    kernel *= Matern32(lengthscales=2.0, active_dims=[third])
    return kernel, SplineFeatures([-4.0, -5.0, -6.0], [4.0, 5.0, 5.5], 4, degree=2)


def points(dims: Any) -> Pair:
    kernel = SquaredExponential(lengthscales=[0.9, 1.4, 2.0], active_dims=dims)
    return kernel, InducingPoints(placed(Z, dims))


def lines(dims: Any) -> Pair:
    kernel = gpflow.kernels.Linear(variance=[0.9, 1.4, 2.0], active_dims=dims)
    return kernel, InducingPoints(placed(Z, dims))


def reversed_waves(dims: Any) -> Pair:
    base = Matern32(lengthscales=[0.9, 1.4])
    kernel = Periodized(base, [-3.0, -4.0], [3.0, 3.5], active_dims=dims)
    return kernel, BoxFourierFeatures.for_kernel(kernel, 9)


CASES: list[tuple[Callable[[Any], Pair], Any]] = [
    (globe, [1, 0]),
    (reversed_waves, slice(None, None, -1)),
    *(
        (build, CYCLE)
        for build in (
            *(lifted, activations, waves, harmonizable, mixture, peaks),
            *(table, patches, patches_of_channels, channels, orbits, harmonic, harmonic_patches),
            *(splines, points, lines),
        )
    ),
]
WITHOUT_FUNCTIONS = (waves, reversed_waves, harmonizable, mixture, table)
"""Kernels from whose prior no function is drawn."""
IN_MODELS = (globe, waves)
"""For models: what they take of the others is compared by itself."""


def placed(rows: np.ndarray, dims: Any) -> np.ndarray:
    """Rows with all columns, of which ``active_dims`` selects these."""
    whole = np.empty_like(rows)
    whole[..., slice(None) if dims is None else dims] = rows
    return whole


def inputs(count: int, build: Callable[[Any], Pair]) -> np.ndarray:
    rows = np.random.default_rng(count).uniform(-1.5, 1.5, size=[count, 3])
    if build is globe:
        return rows[:, :2] * [50.0, 100.0]  # latitude and longitude
    return rows[:, :2] if build is reversed_waves else rows


def results(build: Callable[[Any], Pair], dims: Any, in_models: bool) -> dict[str, Any]:
    """Of everything that takes rows with all columns."""
    kernel, features = build(dims)
    X, X2 = (placed(inputs(count, build), dims) for count in (7, 4))
    domains = boxes(features, kernel, X.shape[1])
    terms = diagonal_terms(kernel)
    found = {
        "Kuu": Kuu(features, kernel),
        "Kuf": Kuf(features, kernel, X),
        "Kuf in the domain": Kuf_in_domain(features, kernel, X),
        "kernel": kernel(X, X2),
        "batches": kernel(np.stack([X2, X2[::-1]])),
        "diagonal": kernel(X, full_cov=False),
        "terms": [row(tf.constant(X)) * factor() for row, factor in terms],
        "boxes": [np.nan_to_num([box.lower, box.upper]) for box in domains],
        "columns": [X[:, box.columns] for box in domains],
    }
    found["presliced"] = found["kernel"]
    if isinstance(kernel, WholeRows) and dims is not None:
        found["presliced"] = kernel(*kernel.slice(X, X2), presliced=True)
    if build not in WITHOUT_FUNCTIONS:
        options = {"num_features": 8, "seed": 1, "input_dim": X.shape[1]}
        found["functions"] = sample_functions(kernel, 3, **options)(X)
    if in_models:
        svgp = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.2), features)
        svgp.q_mu.assign(np.cos(np.arange(float(features.num_inducing)))[:, None])
        with operation_by_operation():
            model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1)
            found["elbo"] = model.elbo()
            found["predictions"] = svgp.predict_f(X2), model.predict_f(X2)
    return found


def test_all_columns_in_another_order() -> None:
    """Equal to the kernel without ``active_dims`` on these columns, everywhere."""
    with disable_check_shapes():
        for build, dims in CASES:
            found, expected = (
                results(build, order, in_models=build in IN_MODELS) for order in (dims, None)
            )
            for what, value in expected.items():
                name = f"{build.__name__}: {what}"
                assert_close(found[what], value, rtol=1e-10, atol=1e-12, message=name)


def test_in_graphs_of_unknown_columns_and_in_sums() -> None:
    """GPflow hands K of a sum all columns."""
    (kernel, features), (plain, _) = waves(CYCLE), waves(None)
    rows = inputs(5, waves)
    X = placed(rows, CYCLE)
    both = gpflow.kernels.Constant(2.0) + kernel

    def of_rows(X: tf.Tensor) -> list[tf.Tensor]:
        selected = tf.reshape(kernel.slice(X, None)[0], tf.shape(X))  # of unknown number
        presliced = kernel(selected, presliced=True)
        values = [kernel(X), both.K(X) - 2, presliced]
        return [Kuf(features, kernel, X), *values, both.K_diag(X) - 2]

    unknown = tf.TensorSpec([None, None], tf.float64)
    compiled = tf.function(of_rows, input_signature=[unknown], autograph=False)
    K, diagonal = plain(rows), plain(rows, full_cov=False)
    expected = [Kuf(features, plain, rows), K, K, K, diagonal]
    with disable_check_shapes():
        for call in (of_rows, compiled):
            assert_close(call(tf.constant(X)), expected, rtol=1e-10)


def test_columns_of_slices() -> None:
    """Whatever GPflow takes as ``active_dims``: rows that are given selected are not selected
    again, graphs know how many columns there are if it does not depend on X."""
    X = RNG.normal(size=[4, 5])
    base = [Matern32(lengthscales=np.arange(1.0, count + 1)) for count in range(6)]
    slices = [(0, 2), (1, None), (-2, None), (None, -1), (None, None, -1), (None, None, 2)]
    slices += [(3, None, -2), (-1, -4, -2)]
    for dims in (*(slice(*ends) for ends in slices), [4], [3, 0, 3]):
        rows = X[:, dims]
        count = rows.shape[1]
        kernel = Periodized(base[count], [-9.0] * count, [9.0] * count, active_dims=dims)
        plain = Periodized(base[count], [-9.0] * count, [9.0] * count)
        with disable_check_shapes():
            for found in (kernel(X), kernel(rows, presliced=True)):
                assert_close(found, plain(rows), rtol=1e-10, message=str(dims))
        known = seen_columns(kernel, count)
        assert known is None or np.array_equal(X[:, known], rows), dims
    shapes = []

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float64)], autograph=False)
    def shapes_of(X: tf.Tensor) -> None:
        for ends in slices:
            kernel.active_dims = slice(*ends)
            shapes.append(select_columns(kernel, X).shape[-1])

    shapes_of(X)
    assert shapes == [2, None, 2, None, None, None, 2, 2]


def test_columns_that_X_does_not_have() -> None:
    """A GPU would take zeros for them."""
    kernel = SphericalMatern52(active_dims=[0, 3])
    for call in (kernel, kernel.K, kernel.K_diag):
        with pytest.raises(ValueError, match=r"4 or more columns for active_dims .*, found 2"):
            call(np.zeros([2, 2]))
    for dims in (slice(0, 2), [3, 1]):
        kernel.active_dims = dims
        with pytest.raises(ValueError, match=r"active_dims .* where presliced is True, found 3"):
            kernel(np.zeros([2, 3]), presliced=True)


def test_active_dims_of_a_decomposed_set_kernel() -> None:
    """The parts have those of the set kernel: others are refused."""
    kernel, _ = harmonic_patches(CYCLE)
    kernel.active_dims = CYCLE
    with pytest.raises(ValueError, match="active_dims .* set kernel.base_kernel.active_dims"):
        _ = kernel.kernels
