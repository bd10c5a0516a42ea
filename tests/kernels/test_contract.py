"""GPflow's contract for a kernel, for every public kernel."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from tests.kernels.cases import CASES, KernelCase, core, double

each_case = pytest.mark.parametrize("case", CASES, ids=str)


def apart(case: KernelCase) -> float:
    """How far K(X, X) may be from K(X) at coinciding points, from the rounding of x . x alone: a
    root of it for each layer of order 0, and once for Matern-1/2."""
    if case.name.startswith("ArcCosine-order0"):
        return 2 * (1e-15) ** (0.5 ** int(case.name[-1]))
    return max(case.accuracy, 1e-12)


@each_case
@pytest.mark.parametrize("num_columns", [1, 2, 8, 19])
def test_positive_semidefinite(case: KernelCase, num_columns: int) -> None:
    num_columns = case.columns(num_columns)
    K = case.build(num_columns)(case.inputs(50, num_columns)).numpy()
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -1e-9 * eigenvalues[-1]


@each_case
@pytest.mark.parametrize("num_columns", [1, 3, 19])
def test_diagonal(case: KernelCase, num_columns: int) -> None:
    num_columns = case.columns(num_columns)
    kernel, X = case.build(num_columns), case.inputs(7, num_columns)
    diagonal = kernel(X, full_cov=False).numpy()
    assert np.all(diagonal > 0)
    np.testing.assert_allclose(np.diag(kernel(X)), diagonal, rtol=case.accuracy)


@each_case
def test_one_argument_or_two(case: KernelCase) -> None:
    D = case.columns(3)
    kernel, X = case.build(D), case.inputs(6, D)
    one, two = kernel(X).numpy(), kernel(X, X).numpy()
    away = ~np.eye(6, dtype=bool)
    np.testing.assert_allclose(one[away], two[away], rtol=1e-12)
    np.testing.assert_allclose(np.diag(one), np.diag(two), rtol=apart(case))
    np.testing.assert_allclose(kernel(X[:2], X[2:]).numpy(), one[:2, 2:], rtol=1e-12)


@each_case
def test_batch_dimensions(case: KernelCase) -> None:
    D = case.columns(2)
    kernel = case.build(D)
    X = case.inputs(24, D).reshape(2, 3, 4, D)
    X2 = case.inputs(10, D, seed=1).reshape(2, 5, D)
    K, cross, diagonal = kernel(X), kernel(X, X2), kernel(X, full_cov=False)
    assert K.shape == (2, 3, 4, 4)
    assert cross.shape == (2, 3, 4, 2, 5)
    assert diagonal.shape == (2, 3, 4)
    for i in range(2):
        for j in range(3):
            np.testing.assert_allclose(K[i, j], kernel(X[i, j]), rtol=1e-12)
            np.testing.assert_allclose(diagonal[i, j], kernel(X[i, j], full_cov=False), rtol=1e-12)
            for k in range(2):
                np.testing.assert_allclose(
                    cross[i, j, :, k], kernel(X[i, j], X2[k]), rtol=1e-11, atol=1e-13
                )


@each_case
def test_active_dims(case: KernelCase) -> None:
    X, X2 = case.inputs(4, 5), case.inputs(3, 5, seed=1)
    columns = [3, 1][: case.columns(2)]
    plain, sliced = case.build(len(columns)), case.build(len(columns))
    sliced.active_dims = columns
    np.testing.assert_allclose(sliced(X), plain(X[:, columns]), rtol=1e-12)
    np.testing.assert_allclose(sliced(X, X2), plain(X[:, columns], X2[:, columns]), rtol=1e-12)
    np.testing.assert_allclose(
        sliced(X, full_cov=False), plain(X[:, columns], full_cov=False), rtol=1e-12
    )


@each_case
def test_gradients(case: KernelCase) -> None:
    """Of every parameter, X and X2, against central differences."""
    D = case.columns(3)
    kernel = case.build(D)
    X, X2 = tf.Variable(case.inputs(4, D)), tf.Variable(case.inputs(3, D, seed=1))
    weights = np.random.default_rng(2).normal(size=(4, 3))
    variables = [*kernel.trainable_variables, X, X2]
    assert len(variables) >= 4

    @tf.function
    def objective() -> tf.Tensor:
        return tf.reduce_sum(weights * kernel(X, X2)) + tf.reduce_sum(weights[0] * kernel(X2)[0])

    with tf.GradientTape() as tape:
        value = objective()
    step = 1e-5
    for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
        start = np.array(variable.numpy())
        differences = np.zeros_like(start)
        for index in np.ndindex(*start.shape):
            ends = []
            for sign in (1, -1):
                moved = start.copy()
                moved[index] += sign * step
                variable.assign(moved)
                ends.append(float(objective()))
            differences[index] = (ends[0] - ends[1]) / (2 * step)
        variable.assign(start)
        scale = max(1.0, np.abs(differences).max())
        np.testing.assert_allclose(
            gradient, differences, rtol=1e-6, atol=1e-6 * scale, err_msg=variable.name
        )


@each_case
def test_gradients_at_coinciding_and_opposite_points(case: KernelCase) -> None:
    """Finite for all; and no noise in those of parameters that a coinciding pair ignores."""
    kernel = case.build(case.columns(2))
    if hasattr(core(kernel), "bias_variance"):
        core(kernel).bias_variance.assign(1e-6)  # so that x and -x are opposite on the sphere
    points = np.array([[1e3, 2e3], [-1e3, -2e3], [0.0, 0.0], [0.3, -0.2], [0.3, -0.2]])
    points = case.valid(points)[:, : case.columns(2)]
    X, X2 = tf.constant(points), tf.constant(points[::-1].copy())
    variables = kernel.trainable_variables
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([X, X2])
        cross, full = tf.reduce_sum(kernel(X, X2)), tf.reduce_sum(kernel(X))
    gradients = tape.gradient(cross, [X, X2, *variables]) + tape.gradient(full, [X, *variables])
    for gradient in gradients:
        assert np.all(np.isfinite(gradient))


@each_case
def test_the_diagonal_of_the_matrix_has_the_gradient_of_the_diagonal(case: KernelCase) -> None:
    D = case.columns(3)
    kernel, X = case.build(D), tf.constant(case.inputs(30, D))
    variables = kernel.trainable_variables
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        of_matrix = tf.reduce_sum(tf.linalg.diag_part(kernel(X)))
        of_diagonal = tf.reduce_sum(kernel(X, full_cov=False))
        of_cross = tf.reduce_sum(tf.linalg.diag_part(kernel(X, X)))
    expected = tape.gradient(of_diagonal, variables, unconnected_gradients="zero")
    tolerance = max(1e-10, 100 * case.accuracy)  # a sum of 30 derivatives
    for variable, e, g, c in zip(
        variables,
        expected,
        tape.gradient(of_matrix, variables, unconnected_gradients="zero"),
        tape.gradient(of_cross, variables, unconnected_gradients="zero"),
        strict=True,
    ):
        scale = max(1.0, np.abs(e).max())
        np.testing.assert_allclose(g, e, rtol=0, atol=tolerance * scale, err_msg=variable.name)
        # Of K(X, X) the rounding of x . x remains: amplified, never beyond a part in ten.
        assert np.abs(c - e).max() <= 0.1 * scale, variable.name
    np.testing.assert_allclose(
        tape.gradient(of_matrix, X),
        tape.gradient(of_diagonal, X, unconnected_gradients="zero"),
        atol=1e-10,
    )


@each_case
def test_compiled_with_an_unknown_number_of_points(case: KernelCase) -> None:
    D = case.columns(2)
    kernel = case.build(D)
    signature = [tf.TensorSpec([None, D], tf.float64)] * 2
    compiled = tf.function(lambda X, X2: (kernel(X, X2), kernel(X)), input_signature=signature)
    for num in (1, 5):
        X, X2 = case.inputs(num, D), case.inputs(num + 2, D, seed=1)
        cross, full = compiled(X, X2)
        np.testing.assert_allclose(cross, kernel(X, X2), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(full, kernel(X), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.name in ("ArcCosine-order1-depth2", "SphericalMatern32-power1")],
    ids=str,
)
def test_compiled_by_xla(case: KernelCase) -> None:
    kernel, X = case.build(2), tf.constant(case.inputs(5, 2))

    def value_and_gradients() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(kernel(X) ** 2)
        return [total, *tape.gradient(total, kernel.trainable_variables)]

    compiled = tf.function(value_and_gradients, jit_compile=True)()
    for actual, expected in zip(compiled, value_and_gradients(), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-8)


@each_case
def test_each_parameter_is_listed_once(case: KernelCase) -> None:
    D = case.columns(2)
    kernel = case.build(D)
    kernel(case.inputs(3, D))
    paths = list(gpflow.utilities.parameter_dict(kernel))
    rows = gpflow.utilities.tabulate_module_summary(kernel, tablefmt="plain").splitlines()[1:]
    assert len(rows) == len(paths) == len(kernel.parameters) == len(kernel.trainable_variables)
    names = [row.split()[0].rsplit(".", 1)[-1] for row in rows]
    assert sorted(names) == sorted(path.rsplit(".", 1)[-1] for path in paths)
    assert len(set(names)) == len(names)


@each_case
@pytest.mark.parametrize("way", ["copy.deepcopy", "gpflow.utilities.deepcopy", "pickle"])
def test_copies_are_equal_and_apart(case: KernelCase, way: str) -> None:
    D = case.columns(2)
    kernel, X = case.build(D), case.inputs(4, D)
    before = kernel(X).numpy()
    clone = {
        "copy.deepcopy": copy.deepcopy,
        "gpflow.utilities.deepcopy": gpflow.utilities.deepcopy,
        "pickle": lambda k: pickle.loads(pickle.dumps(k)),
    }[way](kernel)
    np.testing.assert_array_equal(clone(X), before)
    double(clone)
    np.testing.assert_allclose(clone(X), 2 * before, rtol=1e-12)
    np.testing.assert_array_equal(kernel(X), before)


@pytest.fixture
def single_precision() -> Iterator[None]:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        yield


@each_case
def test_single_precision(case: KernelCase, single_precision: None) -> None:
    D = case.columns(2)
    kernel, X = case.build(D), case.inputs(5, D).astype(np.float32)
    with tf.GradientTape() as tape:
        K, diagonal = kernel(X), kernel(X, full_cov=False)
        total = tf.reduce_sum(K) + tf.reduce_sum(kernel(X, X[:2]))
    assert K.dtype == diagonal.dtype == np.float32
    for gradient in tape.gradient(total, kernel.trainable_variables):
        assert gradient.dtype == np.float32
        assert np.all(np.isfinite(gradient))
    with gpflow.config.as_context(gpflow.config.Config(float=np.float64)):
        expected = case.build(D)(X.astype(float)).numpy()
    np.testing.assert_allclose(K, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    np.testing.assert_allclose(diagonal, np.diag(expected), rtol=1e-5)
