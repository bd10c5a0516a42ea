"""Natural gradients in fits: against GPflow's, for every kind of q, and out of the cone."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras

from interdomain import fit
from interdomain.kernels import SphericalMatern52
from interdomain.training.batches import Minibatches
from interdomain.training.gradient_steps import _parts
from interdomain.training.natural_gradients import NaturalGradients
from tests.parts import finite_rank, with_harmonics

NaturalGradient = gpflow.optimizers.NaturalGradient


def test_a_step_is_one_of_gpflow_and_one_of_adam(data, make_svgp):
    """Both from the gradient at the same parameters; two latent GPs."""
    data = data[0], np.hstack([data[1], data[1] ** 2])
    ours, theirs = make_svgp(num_latent_gps=2), make_svgp(num_latent_gps=2)
    batches = Minibatches(data, (float, float), 16, seed=3)
    natural, adam = NaturalGradient(0.2), tf_keras.optimizers.Adam(0.05)
    q = [theirs.q_mu, theirs.q_sqrt]
    others = [*theirs.kernel.trainable_variables, *theirs.likelihood.trainable_variables]
    others += theirs.inducing_variable.trainable_variables
    for step in range(4):
        batch = batches.batch(step)
        with tf.GradientTape() as tape:
            loss = theirs.training_loss(batch)
        gradients = tape.gradient(loss, others)
        natural.minimize(lambda batch=batch: theirs.training_loss(batch), [q])
        adam.apply_gradients(zip(gradients, others, strict=True))
    adam_and_natural = (NaturalGradient(0.2), 0.05)
    fit(ours, data, batch_size=16, steps=4, optimizer=adam_and_natural, options={"seed": 3})
    assert len(others) == len(ours.trainable_variables) - 2
    expected = gpflow.utilities.read_values(theirs)
    for path, value in gpflow.utilities.read_values(ours).items():
        np.testing.assert_allclose(value, expected[path], rtol=1e-7, atol=1e-9, err_msg=path)


def test_an_optimizer_that_has_nothing_to_update(data, make_svgp):
    model = make_svgp()
    gpflow.set_trainable(model, False)
    pair = (NaturalGradient(0.5), tf_keras.optimizers.Adam())
    assert fit(model, data, steps=1, optimizer=pair, progress=False).steps == 1


def test_means_that_explain_the_same_do_not_overshoot(data):
    """Where the rows are close together all harmonics are constants: sixteen of one kind, for which
    steps of any fixed size beyond an eighth diverge."""
    near = 0.05 * data[0], data[1] + 3
    kernel = SphericalMatern52(weight_variances=np.ones(2))
    prior, harmonics = finite_rank(*with_harmonics(kernel, 3))
    noise = gpflow.likelihoods.Gaussian(0.01)
    model = gpflow.models.SVGP(prior, noise, harmonics, q_diag=True)
    optimizer = NaturalGradient(0.5), 1e-6
    elbos = fit(model, near, steps=30, optimizer=optimizer, progress=False).elbos
    assert np.all(np.diff(elbos) > -1e-6 * np.abs(elbos[1:]))
    assert elbos[-1] > elbos[0] / 10


def test_steps_out_of_the_cone_are_halved():
    """GPflow's probit likelihood is not log-concave: precisions may fall below zero, where GPflow's
    optimizer fails on these minibatches."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    f = 2 * np.sin(2 * X[:, :1])
    data = X, (f + rng.normal(size=f.shape) > 0).astype(float)
    chosen = X[np.random.default_rng(1).permutation(200)[:10]]
    kernel = gpflow.kernels.Matern32(variance=4.0)
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Bernoulli(), chosen, num_data=200)
    before, natural = float(model.elbo(data)), NaturalGradient(0.1)
    options = {"seed": 5}
    fit(model, data, batch_size=10, steps=60, progress=False, optimizer=natural, options=options)
    assert float(model.elbo(data)) > before + 150


def test_the_default(data, make_svgp):
    """The default steps of each q with a latent GP for each column, also with a rate."""
    model, frozen = make_svgp(q_diag=True), make_svgp()
    gpflow.set_trainable(frozen.q_mu, False)
    classes = make_svgp(num_latent_gps=2)
    classes.likelihood = gpflow.likelihoods.Softmax(2)
    exact = gpflow.models.GPR(data, gpflow.kernels.SquaredExponential())
    for given, optimizer, size in [
        (model, None, None),
        (model, 0.01, None),
        (model, tf_keras.optimizers.Adam(), "no"),
        (model, (None, 0.01), "no"),
        (model, NaturalGradient(0.3), 0.3),
        (frozen, None, "no"),
        (frozen, (NaturalGradient(0.3), 0.1), 0.3),
        (classes, None, "no"),
        (exact, None, "no"),
    ]:
        chosen, _ = _parts(given, optimizer)
        assert (chosen._size if chosen.variables else "no") == size


def sizes(given, *diagonal):
    """The sizes of the steps of so many q's."""
    q_mu = gpflow.Parameter(np.zeros((2, 1)))
    roots = [gpflow.Parameter(np.ones((2, 1)) if d else np.eye(2)[None]) for d in diagonal]
    return NaturalGradients([(q_mu, root) for root in roots], given)


def test_the_default_rises_for_a_full_q_and_falls_for_a_diagonal_one():
    found = sizes(None, False, True)
    full, diagonal = np.array([found.sizes(step) for step in range(2000)]).T
    assert full[0] == pytest.approx(1e-3) and full[-1] == pytest.approx(0.1)
    assert np.all(np.diff(full) >= 0) and np.all(full[20:] == full[-1])
    assert diagonal[0] <= 0.1 and np.all(np.diff(diagonal) < 0)
    assert diagonal[-1] < 0.2 * diagonal[0]
    # Of many q's the steps are shorter.
    assert sizes(None, *[False] * 40).sizes(1000) == pytest.approx(np.full(40, 1 / 40))
    assert sizes(0.5, *[False] * 40).sizes(1000) == pytest.approx(np.full(40, 0.5))


def test_functions_and_schedules_are_given_the_steps_before():
    np.testing.assert_array_equal(sizes(lambda step: 1 / (1 + step), True).sizes(3), [0.25])
    decay = tf_keras.optimizers.schedules.ExponentialDecay
    np.testing.assert_allclose(sizes(decay(0.5, 1, 0.1), True, False).sizes(2), 0.005)
    given = (0.3, decay(0.3, 20, 0.5), decay(0.3, 10, 0.5))
    assert len({sizes(size, True).describe() for size in given}) == 3  # for a fit that is resumed


def test_wrong_sizes(data, make_bayesian_line):
    for given, message in [
        (0.0, r"must be in \(0, 1\], found 0\.0 at step 0; pass"),
        ("large", "must be a real number, found 'large'"),
    ]:
        with pytest.raises(ValueError, match=message):
            sizes(given, True)
    falling = NaturalGradient(lambda step: 0.15 - 0.1 * step)
    with pytest.raises(ValueError, match=r"found -0\.\d+ at step 2; pass such a number"):
        fit(make_bayesian_line(), data, steps=5, progress=False, optimizer=falling)
