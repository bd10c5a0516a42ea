"""Kernels whose ``active_dims`` are all columns of X in another order."""

from collections.abc import Callable, Iterator
from functools import partial
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
    BoxFourierFeatures,
    HarmonicInducingPoints,
    SplineFeatures,
)
from interdomain.kernels import (
    Convolutional,
    HarmonicKernel,
    Periodized,
    SpectralComponent,
    SpectralMixture,
    SphericalMatern52,
)
from interdomain.models import StructuredSGPR
from interdomain.sampling import sample_functions
from interdomain.transforms import Negation
from tests.conformance.cases import CASES
from tests.conformance.helpers import assert_close, compiled
from tests.conformance.kernel_cases import KINDS as KERNEL_KINDS
from tests.conformance.kernel_cases import KernelCase

CYCLE = [2, 0, 1]
"""No missing selection and no double one is the same."""
RNG = np.random.default_rng(0)
Y = RNG.normal(size=[7, 1])
Z = RNG.normal(size=[3, 3])
Pair: TypeAlias = tuple[Kernel, InducingVariables | None]


def waves(dims: Any) -> Pair:
    base = Matern32(lengthscales=[0.9, 1.4, 2.0])
    kernel = Periodized(base, [-3.0, -4.0, -5.0], [3.0, 3.5, 6.0], active_dims=dims)
    return kernel, BoxFourierFeatures.for_kernel(kernel, 9)


def reversed_waves(dims: Any) -> Pair:
    base = Matern32(lengthscales=[0.9, 1.4])
    kernel = Periodized(base, [-3.0, -4.0], [3.0, 3.5], active_dims=dims)
    return kernel, BoxFourierFeatures.for_kernel(kernel, 9)


def harmonic_patches(dims: Any) -> Pair:
    base = Convolutional(Matern32(), (3, 1), (2, 1), weights=[0.8, 1.3], active_dims=dims)
    kernel = HarmonicKernel(base, Negation(0, centre=0.4))
    return kernel, HarmonicInducingPoints.for_kernel(kernel, Z[:, :2])


def splines(dims: Any) -> Pair:
    first, second, third = [0, 1, 2] if dims is None else dims
    kernel = Matern32(active_dims=[first]) * Matern32(active_dims=[second])
    kernel *= Matern32(lengthscales=2.0, active_dims=[third])
    return kernel, SplineFeatures([-4.0, -5.0, -6.0], [4.0, 5.0, 5.5], 4, degree=2)


def points(dims: Any) -> Pair:
    kernel = SquaredExponential(lengthscales=[0.9, 1.4, 2.0], active_dims=dims)
    return kernel, InducingPoints(placed(Z, dims))


def peaks(dims: Any) -> Pair:
    kernel = SpectralMixture([SpectralComponent([0.1, f, -0.2]) for f in (0.2, 0.4)])
    kernel.active_dims = slice(None) if dims is None else dims
    return kernel, InducingPoints(placed(Z, dims))


def lines(dims: Any) -> Pair:
    kernel = gpflow.kernels.Linear(variance=[0.9, 1.4, 2.0], active_dims=dims)
    return kernel, InducingPoints(placed(Z, dims))


FEATURES = {
    "harmonics-chosen": CYCLE,
    "harmonics-globe": [1, 0],
    "harmonics-free-spectrum": [1, 0],
    "activation-relu": CYCLE,
    "patches": [5, 2, 0, 4, 1, 3],
    "channels": [3, 0, 1, 2],
    "orbits": [1, 0],
    "harmonic-negations": [1, 0],
    "harmonizable-mixture": [1, 0],
    "box-two-columns": [1, 0],
    "effects": [1, 0],
}
"""Cases of features, and an order of the columns that their kernels see."""
IN_MODELS = ("waves", "harmonics-globe")
"""For models: what they take of the others is compared by itself."""


def everything() -> Iterator[tuple[str, Callable[[Any], Pair], Any]]:
    """A name, what builds with ``active_dims`` or None, and an order of columns."""

    def with_dims(build: Callable[[], Pair]) -> Callable[[Any], Pair]:
        def built(dims: Any) -> Pair:
            kernel, features = build()
            kernel.active_dims = slice(None) if dims is None else dims
            return kernel, features

        return built

    for build in (waves, harmonic_patches, splines, points, peaks, lines):
        yield build.__name__, build, CYCLE
    yield "reversed_waves", reversed_waves, slice(None, None, -1)
    for case in CASES:
        if case.name in FEATURES:
            yield case.name, with_dims(case.build), FEATURES[case.name]
    for kernel_case in KERNEL_KINDS:
        dims = CYCLE if kernel_case.columns(3) == 3 else [1, 0]
        yield str(kernel_case), with_dims(partial(kernel_pair, kernel_case, len(dims))), dims


def kernel_pair(case: KernelCase, num_columns: int) -> Pair:
    return case.build(num_columns), None


def placed(rows: np.ndarray, dims: Any) -> np.ndarray:
    """Rows with all columns, of which ``active_dims`` selects these."""
    whole = np.empty_like(rows)
    whole[..., slice(None) if dims is None else dims] = rows
    return whole


def inputs(count: int, num_columns: int, name: str = "") -> np.ndarray:
    rows = np.random.default_rng(count).uniform(-1.5, 1.5, size=[count, num_columns])
    return 50 * rows if "lobe" in name else rows  # degrees


def results(name: str, build: Callable[[Any], Pair], dims: Any, columns: int) -> dict[str, Any]:
    """The results of everything that uses rows with all columns."""
    kernel, features = build(dims)
    X, X2 = (placed(inputs(count, columns, name), dims) for count in (7, 4))
    found = {
        "kernel": kernel(X, X2),
        "batches": kernel(np.stack([X2, X2[::-1]])),
        "diagonal": kernel(X, full_cov=False),
        "terms": [row(tf.constant(X)) * factor() for row, factor in diagonal_terms(kernel)],
    }
    found["presliced"] = found["kernel"]
    if isinstance(kernel, WholeRows) and dims is not None:
        found["presliced"] = kernel(*kernel.slice(X, X2), presliced=True)
    try:
        options = {"num_features": 4, "seed": 1, "input_dim": X.shape[1]}
        found["functions"] = sample_functions(kernel, 2, **options)(X)
    except ValueError as error:  # kernels from whose prior no function is drawn
        assert "predict_f_samples" in str(error), name
    if features is not None:
        domains = boxes(features, kernel, X.shape[1])
        found["Kuu"], found["Kuf"] = Kuu(features, kernel), Kuf(features, kernel, X)
        found["Kuf in the domain"] = Kuf_in_domain(features, kernel, X)
        found["boxes"] = [np.nan_to_num([box.lower, box.upper]) for box in domains]
        found["columns"] = [X[:, box.columns] for box in domains]
    if name in IN_MODELS:
        svgp = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.2), features)
        svgp.q_mu.assign(np.cos(np.arange(float(features.num_inducing)))[:, None])
        with operation_by_operation():
            model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1)
            found["elbo"] = model.elbo()
            found["predictions"] = svgp.predict_f(X2), model.predict_f(X2)
    return found


@pytest.mark.filterwarnings("ignore:Xnew. .* are outside of the box")
def test_all_columns_in_another_order() -> None:
    """Equal to the kernel without ``active_dims`` on these columns, everywhere."""
    num_drawn = 0
    with disable_check_shapes():
        for name, build, dims in everything():
            columns = 2 if isinstance(dims, slice) else len(dims)
            found, expected = (results(name, build, order, columns) for order in (dims, None))
            assert found.keys() == expected.keys()
            num_drawn += "functions" in found
            for what, value in expected.items():
                message = f"{name}: {what}"
                assert_close(found[what], value, rtol=1e-10, atol=1e-12, message=message)
    assert num_drawn == 26


def test_in_graphs_of_unknown_columns_and_in_sums() -> None:
    """GPflow hands K of a sum all columns."""
    (kernel, features), (plain, _) = waves(CYCLE), waves(None)
    rows = inputs(5, 3)
    X = placed(rows, CYCLE)
    both = gpflow.kernels.Constant(2.0) + kernel

    def row_values(X: tf.Tensor) -> list[tf.Tensor]:
        selected = tf.reshape(kernel.slice(X, None)[0], tf.shape(X))  # of unknown number
        presliced = kernel(selected, presliced=True)
        values = [kernel(X), both.K(X) - 2, presliced]
        return [Kuf(features, kernel, X), *values, both.K_diag(X) - 2]

    K, diagonal = plain(rows), plain(rows, full_cov=False)
    expected = [Kuf(features, plain, rows), K, K, K, diagonal]
    with disable_check_shapes():
        for call in (row_values, compiled(row_values, [None, None])):
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

    def shapes_of(X: tf.Tensor) -> None:
        for ends in slices:
            kernel.active_dims = slice(*ends)
            shapes.append(select_columns(kernel, X).shape[-1])

    compiled(shapes_of, [None, None])(X)
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
