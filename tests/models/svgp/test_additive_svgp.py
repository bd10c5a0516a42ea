"""AdditiveSVGP equals a stock SVGP whose joint q(u) is block-diagonal."""

import copy
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.utilities import parameter_dict

from interdomain.inducing_variables import HarmonicInducingPoints, SumInducingVariables
from interdomain.kernels import HarmonicKernel
from interdomain.models import HVGP, AdditiveSVGP
from interdomain.transforms import Negation, Rotation
from tests.conformance.dense_twin import DenseTwin
from tests.conformance.helpers import (
    assert_close,
    assert_same_objective,
    change,
    value_and_gradients,
)

from .cases import (
    BY_NAME,
    assert_same_bound,
    assert_same_predictions,
    joint_svgp,
    make_additive,
    make_data,
    matern,
    points,
)

# Whitened or not, a diagonal q or a full one, and latent GPs: each case once, and each of the four
# forms with blocks of several kinds.
FORMS = [
    ("shared", True, True, 2),
    ("nested", True, True, 1),
    ("stock", True, False, 1),
    ("diagonal", True, False, 3),
    ("interval-unequal", True, False, 3),
    ("complete", False, True, 1),
    ("diagonal", False, True, 1),
    ("interval-equal", False, True, 1),
    ("mixed", False, False, 2),
    ("mixture", False, False, 1),
]


@pytest.mark.parametrize(("name", "whiten", "q_diag", "latent"), FORMS)
def test_bound_gradients_and_predictions(
    name: str, whiten: bool, q_diag: bool, latent: int
) -> None:
    case = BY_NAME[name]
    model = make_additive(case, whiten=whiten, q_diag=q_diag, num_latent_gps=latent)
    assert len(model.q_mu) == len(case.sizes)
    joint = joint_svgp(model, case.sizes)
    assert_same_bound(model, joint, make_data(latent))
    assert_same_predictions(model, joint, points(4, seed=3))


def test_blocks_on_devices() -> None:
    """One by one they are what they are in batches, ranks of their own included."""
    model = make_additive(BY_NAME["interval-equal"], whiten=False)
    placed = make_additive(BY_NAME["interval-equal"], whiten=False, devices=["CPU:0"])
    placed.kernel = model.kernel
    data, variables = make_data(), model.kernel.trainable_variables
    assert_same_objective(lambda: placed.elbo(data), lambda: model.elbo(data), variables)
    assert_close(placed.prior_kl(), model.prior_kl(), rtol=1e-12)
    for full_cov in (False, True):
        expected = model.predict_f(points(4), full_cov=full_cov)
        assert_close(placed.predict_f(points(4), full_cov=full_cov), expected, rtol=1e-11)


def test_minibatches() -> None:
    """The mean of the elbos of all batches is that of the whole, with ``num_data`` only."""
    X, Y = make_data(num_data=50)
    for num_data in (None, 50):
        model = make_additive(BY_NAME["stock"], num_data=num_data)
        whole = model.elbo((X, Y)).numpy()
        parts = [model.elbo((X[k : k + 25], Y[k : k + 25])).numpy() for k in (0, 25)]
        total = np.mean(parts) if num_data else sum(parts) + model.prior_kl().numpy()
        assert total == pytest.approx(whole, rel=1e-10), num_data


def stock() -> AdditiveSVGP:
    kernel = gpflow.kernels.Matern32(active_dims=[0]) + gpflow.kernels.Matern52(active_dims=[1])
    Z = np.random.default_rng(1).uniform(-2, 2, size=(6, 2))
    blocks = SumInducingVariables([InducingPoints(Z), InducingPoints(Z[:3])])
    return AdditiveSVGP(kernel, gpflow.likelihoods.Gaussian(0.1), blocks, whiten=False)


def test_one_block_at_a_time(data: tuple) -> None:
    """A step of size one for one block is its exact optimum given the others: coordinate ascent.
    For all blocks at once it is too far, as they explain the same data. A joint q is better."""
    model = stock()
    natural = gpflow.optimizers.NaturalGradient(gamma=1.0)
    elbos = [float(model.elbo(data))]
    for pair in model.variational_parameters:
        natural.minimize(model.training_loss_closure(data, compile=False), [pair])
        variables = [p.unconstrained_variable for p in pair]
        value, gradients = value_and_gradients(lambda: model.elbo(data), variables)
        elbos.append(float(value))
        assert max(float(np.max(np.abs(g))) for g in gradients) < 1e-5
    assert np.all(np.diff(elbos) > -1e-8), elbos
    twin, noise = DenseTwin(model.inducing_variable), model.likelihood.variance.numpy()
    assert elbos[-1] < gpflow.models.SGPR(data, model.kernel, twin, noise_variance=noise).elbo()


# What users do with a model besides training: parameters, copies, compilation.


def test_each_parameter_is_shown_once() -> None:
    """Also after the model was used."""
    model = make_additive(BY_NAME["mixed"])
    model.elbo(make_data())
    model.posterior().predict_f(points(2))
    parameters = parameter_dict(model)
    assert max(Counter(id(p) for p in parameters.values()).values()) == 1
    assert len(parameters) == len(model.parameters)
    names = {f".q.{q}[{t}]" for q in ("q_mu", "q_sqrt") for t in range(3)}
    assert {path for path in parameters if path.startswith(".q.q_")} == names


def test_copies(tmp_path: Path) -> None:
    """deepcopy, pickle, checkpoints: the same, and independent."""
    (model, other), X = (make_additive(BY_NAME["mixed"]) for _ in range(2)), points(4, seed=8)
    before = model.predict_f(X)
    saved = tf.train.Checkpoint(model=model).save(str(tmp_path / "checkpoint"))
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), other]
    change(model)
    assert np.max(np.abs(model.predict_f(X)[0] - before[0])) > 1e-3
    tf.train.Checkpoint(model=copies[2]).restore(saved).assert_existing_objects_matched()
    for other in copies:
        assert_close(other.predict_f(X), before, rtol=1e-12)


# What AdditiveSVGP and HVGP refuse, and the models they build.


def additive(**arguments: Any) -> AdditiveSVGP:
    """Two summands, with three and four inducing points."""
    return AdditiveSVGP(
        matern() + gpflow.kernels.Matern52(),
        gpflow.likelihoods.Gaussian(),
        SumInducingVariables([InducingPoints(points(size)) for size in (3, 4)]),
        **arguments,
    )


@pytest.mark.parametrize(
    ("Z", "complete"), [(points(4), True), (points(4, 2), False)], ids=["shared", "own"]
)
def test_hvgp_equals_what_is_built_by_hand(Z: np.ndarray, complete: bool) -> None:
    """For a list of transformations, shared points and each part's own, complete or not."""
    transforms = [Negation(0), Rotation(3, (1, 2))]
    noise, options = gpflow.likelihoods.Gaussian(), {"num_data": 7, "num_latent_gps": 2}
    model = HVGP(matern(), noise, Z, transforms, complete=complete, **options)
    kernel = HarmonicKernel(matern(), transforms)
    assert kernel.multiplicities == (1, 2, 1, 2)
    points_of = HarmonicInducingPoints.for_kernel(kernel, Z, complete=complete)
    by_hand = AdditiveSVGP(kernel, noise, points_of, **options)
    assert_close(model.predict_f(points(5)), by_hand.predict_f(points(5)), rtol=1e-12)


def test_devices_by_default_and_errors() -> None:
    assert additive().devices is None
    assert additive(devices="auto").devices is None  # no GPUs here
    (name,) = additive(devices=["CPU:0"]).devices
    assert name.endswith("/device:CPU:0")
    message = r"q_mu\[1\] must have shape \(4, 1\), found \(3, 1\); block 1 has 4 inducing"
    with pytest.raises(ValueError, match=message):
        additive(q_mu=[np.zeros((3, 1)), np.zeros((3, 1))])
