"""Steps in closed form against GPflow's, which goes through the natural parameters, and by hand."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain.linalg.natural_gradients import diagonal_step, full_step


def problem(size, count, seed=0):
    """A batch of Gaussians, with the gradients of a loss whose optimum has positive precisions."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(count, size))
    root = np.linalg.cholesky(np.eye(size) + 0.5 * gram(rng, count, size))
    precision = np.eye(size) + gram(rng, count, size)
    target = rng.normal(size=(count, size, 1))
    mean_gradient = (precision @ mean[..., None] - target)[..., 0]
    # Of 1/2 tr(precision S) - 1/2 log det S.
    root_gradient = np.tril(precision @ root - np.swapaxes(np.linalg.inv(root), -1, -2))
    return mean, root, mean_gradient, root_gradient


def gram(rng, count, size):
    A = rng.normal(size=(count, size, size))
    return A @ np.swapaxes(A, -1, -2) / size


def step_of_gpflow(mean, root, mean_gradient, root_gradient, gamma):
    """By its optimizer, of a loss that has these gradients."""
    q_mu = gpflow.Parameter(mean.T)
    q_sqrt = gpflow.Parameter(root, transform=gpflow.utilities.triangular())

    def loss():
        linear = tf.reduce_sum(tf.convert_to_tensor(q_mu) * mean_gradient.T)
        return linear + tf.reduce_sum(tf.convert_to_tensor(q_sqrt) * root_gradient)

    gpflow.optimizers.NaturalGradient(gamma).minimize(loss, [(q_mu, q_sqrt)])
    return q_mu.numpy().T, q_sqrt.numpy()


def test_full_step_is_gpflows():
    for size, count, gamma in ((1, 1, 1.0), (5, 3, 0.1), (5, 3, 1.0), (20, 2, 0.1)):
        given = problem(size, count)
        expected = step_of_gpflow(*given, gamma)
        found = full_step(*given, tf.constant(gamma, tf.float64))
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
        assert np.all(np.triu(found[1], 1) == 0)


def test_a_diagonal_step_is_gpflows_of_each_coordinate():
    """Six Gaussians of one variable each."""
    given = problem(1, 6, seed=3)
    parts = [np.reshape(part, [6]) for part in given]
    for gamma in (0.4, 1.0):
        expected = step_of_gpflow(*given, gamma)
        found = diagonal_step(*parts, tf.constant(gamma, tf.float64))
        np.testing.assert_allclose(found[0], expected[0][:, 0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1][:, 0, 0], rtol=1e-12)


def test_a_step_out_of_the_cone_is_halved_for_its_own_gaussian():
    """A = 1 + t h with h = -3 and t = 1, 1/2, 1/4: the third is inside."""
    mean = np.array([[1.0, 2.0], [1.0, 2.0]])
    root = np.stack([np.diag([1.0, 2.0])] * 2)
    mean_gradient = np.ones((2, 2))
    root_gradient = np.stack([np.diag([-3.0, 0.0]), np.diag([1.0, 0.0])])
    size = tf.constant(1.0, tf.float64)
    new_mean, new_root = full_step(mean, root, mean_gradient, root_gradient, size)
    np.testing.assert_allclose(new_root[0], np.diag([2.0, 2.0]), rtol=1e-13)
    np.testing.assert_allclose(new_mean[0], [1 - 4 / 4, 2 - 4 / 4], atol=1e-13)
    np.testing.assert_allclose(new_root[1], np.diag([1 / np.sqrt(2), 2.0]), rtol=1e-13)
    np.testing.assert_allclose(new_mean[1], [1 - 0.5, 2 - 4], rtol=1e-13)


def test_a_coordinate_out_of_the_cone_goes_half_of_the_way():
    root = np.array([1.0, 1.0, 2.0])
    new_mean, new_root = diagonal_step(
        np.zeros(3), root, np.ones(3), np.array([-1.0, -30.0, 0.5]), tf.constant(1.0, tf.float64)
    )
    np.testing.assert_allclose(new_root, [np.sqrt(2), np.sqrt(2), np.sqrt(2)], rtol=1e-13)
    np.testing.assert_allclose(new_mean, [-0.5 * 2, -2 / 60, -2], rtol=1e-13)


@pytest.mark.parametrize(("dtype", "height"), [(tf.float64, 1e30), (tf.float32, 1e3)])
def test_steps_are_finite_for_all_finite_gradients(dtype, height):
    rng = np.random.default_rng(0)
    mean, mean_gradient = rng.normal(size=(2, 3, 4))
    root = np.stack([np.eye(4)] * 3)
    gradient = -height * np.abs(rng.normal(size=(3, 4, 4)))
    size = tf.constant(0.1, dtype)
    for step, given in (
        (full_step, (mean, root, mean_gradient, np.tril(gradient))),
        (diagonal_step, (mean, np.ones((3, 4)), mean_gradient, gradient[:, 0])),
    ):
        for part in step(*(tf.constant(one, dtype) for one in given), size):
            assert np.all(np.isfinite(part)), step


def test_gradients_that_are_not_finite_end_as_nan():
    mean, root, mean_gradient, root_gradient = problem(3, 2)
    root_gradient[0, 1, 1] = np.nan
    size = tf.constant(0.1, tf.float64)
    new_mean, new_root = full_step(mean, root, mean_gradient, root_gradient, size)
    assert np.all(np.isnan(new_mean[0])) and np.all(np.isfinite(new_mean[1]))
    assert np.all(np.isfinite(new_root[1]))
