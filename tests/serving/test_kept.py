"""Results that predict_in_batches keeps with a model are up to date, and freed with the model."""

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import gpflow
import numpy as np
import pytest

import interdomain as idm
from interdomain import predict_in_batches
from tests.conformance.cases import CASES, POINTS
from tests.conformance.helpers import assert_close
from tests.serving.served_models import harmonics, points_svgp, rows, stationary, targets

pytestmark = pytest.mark.usefixtures("compiled_predictions")

X = rows(12, seed=5)
XNEW = rows(4, seed=6)


def sgpr() -> Any:
    kernel, features = harmonics()
    return idm.models.StructuredSGPR((X, targets(X)), kernel, features, progress=False)


def waves() -> Any:
    """With fewer waves than rows, so that these are predicted from tables."""
    kernel = idm.kernels.Periodized(gpflow.kernels.Matern32(), -4.0, 4.0)
    features = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, 40)
    data = np.linspace(-1, 1, 60)[:, None]
    return idm.models.StructuredSGPR((data, np.sin(data)), kernel, features, progress=False)


def dual() -> Any:
    kernel, features = harmonics()
    likelihood = gpflow.likelihoods.Bernoulli()
    labels = (targets(X) > 0) * 1.0
    return idm.models.DualSVGP((X, labels), kernel, likelihood, features, progress=False)


def vecchia() -> Any:
    local: Any = {"local_kernel": stationary(), "num_neighbours": 3, "progress": False}
    return idm.models.VecchiaSGPR((X, targets(X)), **local)


def gpr() -> Any:
    return gpflow.models.GPR((X, targets(X)), stationary())


def assign(path: str, factor: float = 0.7) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        parameter = gpflow.utilities.parameter_dict(model)[path]
        parameter.assign(factor * parameter.numpy())

    return change


def refit(model: Any) -> None:
    idm.fit(model, steps=2, progress=False)


def shared(model: Any) -> None:
    """A parameter that another model has, too, and trains there."""
    data = X, targets(X)
    other = gpflow.models.GPR(data, model.kernel)
    gpflow.optimizers.Scipy().minimize(
        other.training_loss, other.trainable_variables, compile=False, options={"maxiter": 1}
    )


Changes: TypeAlias = dict[Callable[[], Any], list[Callable[[Any], Any]]]

CHANGES: Changes = {
    points_svgp: [
        assign(".q_mu"),
        lambda model: setattr(model, "q_mu", gpflow.Parameter(np.ones((5, 1)))),
        lambda model: setattr(model, "likelihood", gpflow.likelihoods.Gaussian(3.0)),
    ],
    sgpr: [assign(".likelihood.variance")],
    vecchia: [lambda model: model.extend((XNEW + 0.1, targets(XNEW) + 1.0))],
    gpr: [lambda model: setattr(model, "data", (model.data[0], 1 + model.data[1]))],
}

MORE_CHANGES: Changes = {
    points_svgp: [
        assign(".kernel.variance"),
        assign(".inducing_variable.Z"),
        assign(".likelihood.variance"),
        shared,
        lambda model: setattr(model, "kernel", gpflow.kernels.Matern12()),
        lambda model: setattr(model, "likelihood", gpflow.likelihoods.StudentT()),
        lambda model: setattr(model, "whiten", False),
    ],
    sgpr: [assign(".kernel.weight_variances"), refit],
    dual: [
        lambda model: model.assign_sites(model.pass_over_data().clipped),  # a step
        assign(".kernel.variance"),
        refit,
    ],
    vecchia: [assign(".local_kernel.lengthscales"), lambda model: model.search(2)],
    gpr: [refit],
}


@pytest.mark.parametrize(
    "changes_of",
    [CHANGES, pytest.param(MORE_CHANGES, marks=pytest.mark.slow)],
    ids=["some", "more"],
)
def test_changed_models_predict_anew(changes_of: Changes) -> None:
    """One model is changed again and again, and predicts as it does without anything kept."""
    for make, changes in changes_of.items():
        model = make()
        before = predict_in_batches(model, XNEW, method="predict_y")
        for number, change in enumerate(changes):
            change(model)
            found = predict_in_batches(model, XNEW, method="predict_y")
            message = f"{make.__name__}, {number}"
            moved = [not np.allclose(*p, rtol=1e-6) for p in zip(found, before, strict=True)]
            assert any(moved), message
            assert_close(found, model.predict_y(XNEW), rtol=1e-7, message=message)
            before = found


def test_many_rows_and_few() -> None:
    """Predictions by waves at many rows use tables: both ways are kept."""
    model, few = waves(), np.linspace(-1, 1, 5)[:, None]
    many = np.linspace(-1, 1, 80)[:, None]
    for _ in range(2):
        for Xnew in (few, many):
            found = predict_in_batches(model, Xnew)
            assert_close(found, model.predict_f(Xnew), rtol=1e-5)
        model.likelihood.variance.assign(0.3)


def test_what_is_kept_goes_with_the_model() -> None:
    """No copy has it, and it keeps no model alive."""
    for make, copied in (
        (points_svgp, copy.deepcopy),
        (sgpr, lambda model: pickle.loads(pickle.dumps(model))),
    ):
        model = make()
        expected = predict_in_batches(model, XNEW)
        other = copied(model)
        for parameter in other.trainable_parameters:
            parameter.assign(1.1 * parameter)
        assert_close(predict_in_batches(other, XNEW), other.predict_f(XNEW), rtol=1e-7)
        assert_close(predict_in_batches(model, XNEW), expected, rtol=1e-12)
        reference = weakref.ref(model)
        del model, other
        gc.collect()
        assert reference() is None, make.__name__


AT_PLACES = np.c_[np.tile(POINTS[:, 1], 4), np.linspace(-2, 2, 12), np.tile(POINTS[:, 0], 4)]


def of_case(name: str) -> Any:
    """Splines, space and time, or levels of groups, each with sums of its own."""
    parts = next(case.build for case in CASES if case.name == name)()
    data = AT_PLACES, np.sin(AT_PLACES[:, :1])
    return idm.models.StructuredSGPR(data, *parts, progress=False)


@pytest.mark.parametrize(
    ("make", "new"),
    [
        *((sgpr, XNEW), (dual, XNEW), (waves, XNEW[:, :1])),
        *(
            (partial(of_case, name), AT_PLACES)
            for name in ("splines", "places-times-splines", "groups")
        ),
    ],
)
def test_a_q_is_freed_at_once(make: Callable[[], Any], new: Any) -> None:
    """Each pass of a DualSVGP makes a q with large arrays. A q that only a garbage collection frees
    adds to the memory of the next ones."""
    q = make().q()
    q.posterior.predict_f(new)
    reference = weakref.ref(q)
    gc.disable()
    try:
        del q
        assert reference() is None
    finally:
        gc.enable()


def test_the_jitter() -> None:
    model = points_svgp()
    before = predict_in_batches(model, XNEW)
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.3)):
        found = predict_in_batches(model, XNEW)
        assert_close(found, model.predict_f(XNEW), rtol=1e-9)
    assert not np.allclose(found[1], before[1], rtol=1e-3)
