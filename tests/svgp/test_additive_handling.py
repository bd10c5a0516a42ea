"""What users do with a model besides training: parameters, copies, compilation."""

from __future__ import annotations

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
from tests.conformance.helpers import assert_close, change

from .cases import BY_NAME, make_additive, make_data, matern, points


def make() -> AdditiveSVGP:
    return make_additive(BY_NAME["mixed"])


def test_each_parameter_is_shown_once() -> None:
    """Also after the model was used."""
    model = make()
    model.elbo(make_data())
    model.posterior().predict_f(points(2))
    parameters = parameter_dict(model)
    assert max(Counter(id(p) for p in parameters.values()).values()) == 1
    assert len(parameters) == len(model.parameters)
    names = {f".q.{q}[{t}]" for q in ("q_mu", "q_sqrt") for t in range(3)}
    assert {path for path in parameters if path.startswith(".q.q_")} == names


def test_copies(tmp_path: Path) -> None:
    """deepcopy, pickle, checkpoints: the same, and independent."""
    model, X = make(), points(4, seed=8)
    before = model.predict_f(X)
    saved = tf.train.Checkpoint(model=model).save(str(tmp_path / "checkpoint"))
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), make()]
    change(model)
    assert np.max(np.abs(model.predict_f(X)[0] - before[0])) > 1e-3
    tf.train.Checkpoint(model=copies[2]).restore(saved).assert_existing_objects_matched()
    for other in copies:
        assert_close(other.predict_f(X), before, rtol=1e-12)


# What AdditiveSVGP and HVGP refuse, and the models they build.


def additive(blocks: int = 2, **arguments: Any) -> AdditiveSVGP:
    """Two summands, with three and four inducing points."""
    sizes = (3, 4, 5)[:blocks]
    return AdditiveSVGP(
        matern() + gpflow.kernels.Matern52(),
        gpflow.likelihoods.Gaussian(),
        SumInducingVariables([InducingPoints(points(size)) for size in sizes]),
        **arguments,
    )


def hvgp(Z: Any, transforms: Any, kernel: Any = None, **arguments: Any) -> HVGP:
    return HVGP(kernel or matern(), gpflow.likelihoods.Gaussian(), Z, transforms, **arguments)


def test_errors() -> None:
    with pytest.raises(ValueError, match="has 1 blocks, but the kernel is a sum of 2"):
        additive(1)
    message = r"q_mu\[1\] must have shape \(4, 1\), found \(3, 1\); block 1 has 4 inducing"
    with pytest.raises(ValueError, match=message):
        additive(q_mu=[np.zeros((3, 1)), np.zeros((3, 1))])


@pytest.mark.parametrize(
    ("Z", "complete"), [(points(4), True), (points(4, 2), False)], ids=["shared", "own"]
)
def test_hvgp_equals_what_is_built_by_hand(Z: np.ndarray, complete: bool) -> None:
    """For a list of transformations, shared points and each part's own, complete or not."""
    transforms = [Negation(0), Rotation(3, (1, 2))]
    model = hvgp(Z, transforms, complete=complete, num_data=7, num_latent_gps=2)
    kernel = HarmonicKernel(matern(), transforms)
    assert kernel.multiplicities == (1, 2, 1, 2)
    points_of = HarmonicInducingPoints.for_kernel(kernel, Z, complete=complete)
    by_hand = AdditiveSVGP(
        kernel, gpflow.likelihoods.Gaussian(), points_of, num_data=7, num_latent_gps=2
    )
    assert_close(model.predict_f(points(5)), by_hand.predict_f(points(5)), rtol=1e-12)


def test_devices_by_default() -> None:
    assert additive().devices is None
    assert additive(devices="auto").devices is None  # no GPUs here
    (name,) = additive(devices=["CPU:0"]).devices
    assert name.endswith("/device:CPU:0")
