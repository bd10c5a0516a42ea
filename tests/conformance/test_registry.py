"""The registry is complete, and every entry is consistent with itself."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu

import interdomain
from interdomain import inducing_variables
from interdomain.covariances import Kuu_operator

from .cases import CASES, Case
from .helpers import assert_close, make_inputs

PACKAGES = sorted(
    module.name for module in pkgutil.iter_modules(interdomain.__path__, "interdomain.")
)


def concrete_inducing_variables() -> list[type]:
    public = [getattr(inducing_variables, name) for name in inducing_variables.__all__]
    return [item for item in public if inspect.isclass(item) and not abstract(item)]


def abstract(item: type) -> bool:
    """The common base class has no abstract methods of its own that would mark it."""
    return inspect.isabstract(item) or item is inducing_variables.InterDomainInducingVariables


@pytest.mark.parametrize("public_class", concrete_inducing_variables(), ids=lambda c: c.__name__)
def test_every_public_inducing_variable_has_a_case(public_class: type) -> None:
    covered = {type(case.build()[1]) for case in CASES}
    assert public_class in covered, (
        f"{public_class.__name__} is public, but has no case: add one to tests/conformance/cases.py"
    )


def test_case_names_are_distinct() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("package", ["interdomain", *PACKAGES])
def test_public_names_exist_and_are_sorted(package: str) -> None:
    module = importlib.import_module(package)
    if package == "interdomain" or hasattr(module, "__path__"):
        assert hasattr(module, "__all__"), f"{package} has no __all__"
    names = list(getattr(module, "__all__", []))
    assert names == sorted(set(names))
    for name in names:
        assert getattr(module, name, None) is not None, f"{package}.{name} does not exist"


def test_operator_is_kuu(case: Case) -> None:
    kernel, inducing_variable = case.build()
    dense = Kuu(inducing_variable, kernel)
    operator = Kuu_operator(inducing_variable, kernel)
    assert_close(operator.to_dense(), dense, rtol=1e-15)
    assert_close(operator.cholesky().to_dense(), np.linalg.cholesky(dense), rtol=1e-12)
    assert isinstance(operator, tf.linalg.LinearOperatorDiag) == case.diagonal
    assert operator.is_positive_definite and operator.is_self_adjoint


def test_jitter_is_added_to_kuu(case: Case) -> None:
    kernel, inducing_variable = case.build()
    dense = Kuu(inducing_variable, kernel)
    size = dense.shape[0]
    assert size == inducing_variable.num_inducing == inducing_variable.shape[0]
    scale = np.diag(dense) if case.relative_jitter else np.ones(size)
    added = Kuu(inducing_variable, kernel, jitter=0.5) - dense
    assert_close(added, 0.5 * np.diag(scale), rtol=1e-12)


def test_features_explain_part_of_the_kernel(case: Case) -> None:
    """Kff - Kfu Kuu^{-1} Kuf is the covariance of f given u: it has no negative eigenvalue."""
    kernel, inducing_variable = case.build()
    X = make_inputs(case, 60)
    features = Kuf(inducing_variable, kernel, X).numpy()
    explained = features.T @ np.linalg.solve(Kuu(inducing_variable, kernel).numpy(), features)
    covariance = kernel(X).numpy()
    residual = np.linalg.eigvalsh(covariance - explained)
    assert residual.min() > -1e-12 * np.trace(covariance)
    assert 0.3 < np.trace(explained) / np.trace(covariance) < 1 + 1e-12


def test_kuf_keeps_leading_dimensions(case: Case) -> None:
    kernel, inducing_variable = case.build()
    X = make_inputs(case, 2, 3, 5)
    features = Kuf(inducing_variable, kernel, X)
    assert features.shape == (inducing_variable.num_inducing, 2, 3, 5)
    for i in range(2):
        for j in range(3):
            assert_close(features[:, i, j], Kuf(inducing_variable, kernel, X[i, j]), rtol=1e-14)
