"""GPflow's contract for a kernel, for every public kernel."""

import pickle

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern32

from interdomain import kernels
from interdomain.kernels import Invariant, SphericalMatern32
from interdomain.transforms import Negation
from tests.conformance.helpers import assert_slopes, compiled, double, value_and_gradients
from tests.conformance.kernel_cases import CASES, KINDS, KernelCase, inputs, public_kernel_classes

each_class = pytest.mark.parametrize("case", CASES, ids=str)
each_kind = pytest.mark.parametrize("case", KINDS, ids=str)
"""Without classes that compute as another one does: see SAME_KIND in `kernel_cases.py`."""


def test_every_public_kernel_has_a_case() -> None:
    public = public_kernel_classes()
    missing = public - {case.kernel_class for case in CASES}
    names = sorted(kernel_class.__name__ for kernel_class in missing)
    assert not missing, f"add {names} to CASES in tests/conformance/kernel_cases.py"
    assert kernels.ArcCosine in public and kernels.ZonalKernel not in public
    assert len({case.kernel_class for case in CASES}) == len(CASES)
    for case in CASES:
        assert type(case.build(case.columns(2))) is case.kernel_class


@each_class
def test_positive_semidefinite_with_its_diagonal(case: KernelCase) -> None:
    """Of one argument and of two."""
    for num_columns in sorted({case.columns(number) for number in (1, 8)}):
        kernel, X = case.build(num_columns), case.inputs(20, num_columns)
        columns = f"{num_columns} columns"
        K, diagonal = kernel(X).numpy(), kernel(X, full_cov=False).numpy()
        np.testing.assert_allclose(K, K.T, rtol=1e-12, err_msg=columns)
        eigenvalues = np.linalg.eigvalsh(K)
        assert eigenvalues[0] >= -1e-9 * eigenvalues[-1], columns
        assert np.all(diagonal > 0), columns
        np.testing.assert_allclose(np.diag(K), diagonal, rtol=case.accuracy, err_msg=columns)
        away, two = ~np.eye(20, dtype=bool), kernel(X, X).numpy()
        np.testing.assert_allclose(two[away], K[away], rtol=1e-12, err_msg=columns)
        # At coinciding points is the rounding of x . x, of which Matern-1/2 takes a root.
        np.testing.assert_allclose(np.diag(two), diagonal, rtol=max(case.accuracy, 1e-12))
        np.testing.assert_allclose(kernel(X[:2], X[2:]), K[:2, 2:], rtol=1e-12, err_msg=columns)


@each_kind
def test_batch_dimensions(case: KernelCase) -> None:
    D = case.columns(2)
    kernel = case.build(D)
    X = case.inputs(24, D).reshape(2, 3, 4, D)
    X2 = case.inputs(10, D, seed=1).reshape(2, 5, D)
    K, cross, diagonal = kernel(X), kernel(X, X2), kernel(X, full_cov=False)
    assert K.shape == (2, 3, 4, 4)
    assert cross.shape == (2, 3, 4, 2, 5)
    assert diagonal.shape == (2, 3, 4)
    rows, rows2 = X.reshape(-1, D), X2.reshape(-1, D)
    row_values = kernel(rows).numpy().reshape(6, 4, 6, 4)
    expected = row_values[range(6), :, range(6)].reshape(2, 3, 4, 4)
    np.testing.assert_allclose(K, expected, rtol=1e-12)
    expected = kernel(rows, full_cov=False).numpy().reshape(2, 3, 4)
    np.testing.assert_allclose(diagonal, expected, rtol=1e-12)
    expected = kernel(rows, rows2).numpy().reshape(2, 3, 4, 2, 5)
    np.testing.assert_allclose(cross, expected, rtol=1e-11, atol=1e-13)


@each_class
def test_active_dims(case: KernelCase) -> None:
    """K of what is no sum selects them, too: GPflow's Sum.K hands it all columns. K of a stationary
    kernel takes the selected columns, as GPflow's do."""
    X, X2 = case.inputs(4, 5), case.inputs(3, 5, seed=1)
    columns = [3, 1][: case.columns(2)]
    plain, sliced = case.build(len(columns)), case.build(len(columns))
    sliced.active_dims = columns
    expected = [
        plain(X[:, columns]),
        plain(X[:, columns], X2[:, columns]),
        plain(X[:, columns], full_cov=False),
    ]
    results = [[sliced(X), sliced(X, X2), sliced(X, full_cov=False)]]
    if not hasattr(sliced, "kernels") and not isinstance(sliced, gpflow.kernels.Stationary):
        results.append([sliced.K(X), sliced.K(X, X2), sliced.K_diag(X)])
    for result in results:
        for actual, desired in zip(result, expected, strict=True):
            np.testing.assert_allclose(actual, desired, rtol=1e-12)


@each_kind
def test_gradients_and_compiled_with_an_unknown_number_of_points(case: KernelCase) -> None:
    """Gradients of every parameter, X and X2 against central differences along two directions. The
    number of columns is unknown as well to this library's kernels, but for Invariant."""
    D = case.columns(2)
    kernel = case.build(D)
    shape = [None, D if case.kernel_class is Invariant else None]
    graph = compiled(lambda X, X2: (kernel(X, X2), kernel(X, full_cov=False)), shape, shape)
    for num in (1, 5):
        points, points2 = case.inputs(num + 2, D, seed=1), case.inputs(num, D)
        cross, diagonal = graph(points, points2)
        np.testing.assert_allclose(cross, kernel(points, points2), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(diagonal, kernel(points, full_cov=False), rtol=1e-11)

    X, X2 = tf.Variable(case.inputs(4, D)), tf.Variable(case.inputs(3, D, seed=1))
    rng = np.random.default_rng(2)
    weights, weights2 = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    variables = [*kernel.trainable_variables, X, X2]
    assert len(variables) >= 4

    def objective() -> tf.Tensor:
        return tf.reduce_sum(weights * kernel(X, X2)) + tf.reduce_sum(weights2 * kernel(X2))

    assert_slopes(objective, variables, rng, atol=1e-6, num_directions=2)


@each_kind
def test_gradients_at_coinciding_and_opposite_points(case: KernelCase) -> None:
    """Finite for all."""
    kernel = case.build(case.columns(2))
    for path, parameter in gpflow.utilities.parameter_dict(kernel).items():
        if path.endswith("bias_variance"):
            parameter.assign(1e-6)  # so that x and -x are opposite on the sphere
    points = np.array([[1e3, 2e3], [-1e3, -2e3], [0.0, 0.0], [0.3, -0.2], [0.3, -0.2]])
    points = case.valid(points)[:, : case.columns(2)]
    X, X2 = tf.constant(points), tf.constant(points[::-1].copy())
    variables = [X, X2, *kernel.trainable_variables]
    for gradient in value_and_gradients(lambda: [kernel(X, X2), kernel(X)], variables)[1]:
        assert np.all(np.isfinite(gradient))


@each_kind
def test_the_diagonal_of_the_matrix_has_the_gradient_of_the_diagonal(case: KernelCase) -> None:
    D = case.columns(2)
    kernel, X = case.build(D), tf.constant(case.inputs(10, D))
    variables = kernel.trainable_variables
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        diagonals = (
            kernel(X, full_cov=False),
            *map(tf.linalg.diag_part, (kernel(X), kernel(X, X))),
        )
    (*expected, expected_X), (*found, found_X), (*crossed, _) = (
        tape.gradient(diagonal, [*variables, X], unconnected_gradients="zero")
        for diagonal in diagonals
    )
    tolerance = max(1e-10, 100 * case.accuracy)  # a sum of derivatives
    for variable, e, g, c in zip(variables, expected, found, crossed, strict=True):
        scale = max(1.0, np.abs(e).max())
        np.testing.assert_allclose(g, e, rtol=0, atol=tolerance * scale, err_msg=variable.name)
        # Of K(X, X) the rounding of x . x remains: amplified, never beyond a part in ten.
        assert np.abs(c - e).max() <= 0.1 * scale, variable.name
    np.testing.assert_allclose(found_X, expected_X, atol=1e-10)


@each_class
def test_each_parameter_is_listed_once(case: KernelCase) -> None:
    D = case.columns(2)
    kernel = case.build(D)
    kernel(case.inputs(3, D))
    paths = list(gpflow.utilities.parameter_dict(kernel))
    assert len(paths) == len(kernel.parameters) == len(kernel.trainable_variables)
    names = [path.rsplit(".", 1)[-1] for path in paths]
    assert len(set(names)) == len(names)
    for part in getattr(kernel, "kernels", []):  # views over the same parameters
        assert {id(p) for p in part.parameters} <= {id(p) for p in kernel.parameters}


@each_class
def test_copies_are_equal_and_apart(case: KernelCase) -> None:
    D = case.columns(2)
    kernel, X = case.build(D), case.inputs(2, D)
    before = kernel(X).numpy()
    for clone in (gpflow.utilities.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(clone(X), before)
        double(clone)
    np.testing.assert_allclose(clone(X), 2 * before, rtol=1e-12)
    np.testing.assert_array_equal(kernel(X), before)


@each_kind
def test_single_precision(case: KernelCase) -> None:
    D = case.columns(2)
    X = case.inputs(5, D).astype(np.float32)
    expected = case.build(D)(X.astype(float)).numpy()
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        kernel = case.build(D)
        (K, _), gradients = value_and_gradients(
            lambda: [kernel(X), kernel(X, X[:2])], kernel.trainable_variables
        )
        diagonal = kernel(X, full_cov=False)
    assert {value.dtype for value in (K, diagonal, *gradients)} == {tf.float32}
    assert all(np.all(np.isfinite(gradient)) for gradient in gradients)
    np.testing.assert_allclose(K, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    np.testing.assert_allclose(diagonal, np.diag(expected), rtol=1e-5)


def test_what_cannot_be_known() -> None:
    """In graphs that are built before the number of columns of X is known."""
    for kernel, shape in (
        (SphericalMatern32(weight_variances=[1.0, 1.0, 1.0, 1.0]), None),
        (Invariant(Matern32(), Negation()), [None, None]),
    ):
        with pytest.raises(ValueError, match=r"tf.ensure_shape\(X, \[None, D\]\)"):
            compiled(kernel, shape)(inputs(5, 4))
