"""The registry is complete, and every entry is consistent with itself."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

import interdomain
from interdomain import inducing_variables
from interdomain.covariances import Kuu_operator

from .cases import CASES, KINDS, ONE_OF_EACH_KIND, REPRESENTATIVES, Case
from .helpers import assert_close, make_inputs
from .test_multioutput import OURS

PACKAGES = sorted(
    module.name for module in pkgutil.iter_modules(interdomain.__path__, "interdomain.")
)


def concrete_inducing_variables() -> list[type]:
    public = [getattr(inducing_variables, name) for name in inducing_variables.__all__]
    return [item for item in public if inspect.isclass(item) and not abstract(item)]


def abstract(item: type) -> bool:
    """The common base class has no abstract methods of its own that would mark it."""
    return inspect.isabstract(item) or item is inducing_variables.InterDomainInducingVariables


def test_every_public_inducing_variable_has_a_representative() -> None:
    """The classes of the library; GPflow's consumers are tested with the representatives alone.
    Those of several outputs wrap each of them in test_multioutput."""
    covered = {type(parts(case)[1]) for case in REPRESENTATIVES} | set(OURS.values())
    missing = {c.__name__ for c in concrete_inducing_variables() if c not in covered}
    assert not missing, (
        f"public, but without a representative: {missing}; add a case to "
        "tests/conformance/cases.py with representative=True"
    )


def test_every_kind_of_operator_has_a_case() -> None:
    assert {case.kind for case in CASES} == set(KINDS)
    assert [case.kind for case in ONE_OF_EACH_KIND] == list(KINDS)


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


@functools.cache
def parts(case: Case) -> tuple[Kernel, InducingVariables]:
    """Built once for the tests here, which change nothing of them."""
    return case.build()


def kind_of(operator: tf.linalg.LinearOperator) -> str:
    """One of KINDS."""
    if isinstance(operator, tf.linalg.LinearOperatorBlockDiag):
        inner = {kind_of(block) for block in operator.operators}
        if inner == {"diagonal"}:
            return "diagonal"
        return "low-rank blocks" if inner == {"low rank"} else "blocks"
    if isinstance(operator, tf.linalg.LinearOperatorDiag):
        return "diagonal"
    if isinstance(operator, tf.linalg.LinearOperatorLowRankUpdate):
        return "low rank"
    return "full"


def test_operator_is_kuu(case: Case) -> None:
    kernel, inducing_variable = parts(case)
    dense = Kuu(inducing_variable, kernel)
    operator = Kuu_operator(inducing_variable, kernel)
    assert_close(operator.to_dense(), dense, rtol=1e-15)
    assert_close(operator.cholesky().to_dense(), np.linalg.cholesky(dense), rtol=1e-12)
    assert isinstance(operator, tf.linalg.LinearOperatorDiag) == case.diagonal
    assert kind_of(operator) == case.kind
    assert operator.is_positive_definite and operator.is_self_adjoint


def test_jitter_is_added_to_kuu(case: Case) -> None:
    kernel, inducing_variable = parts(case)
    dense = Kuu(inducing_variable, kernel)
    size = dense.shape[0]
    assert size == inducing_variable.num_inducing == inducing_variable.shape[0]
    scale = np.diag(dense) if case.relative_jitter else np.ones(size)
    added = Kuu(inducing_variable, kernel, jitter=0.5) - dense
    assert_close(added, 0.5 * np.diag(scale), rtol=1e-12)


def test_features_explain_part_of_the_kernel(case: Case) -> None:
    """Kff - Kfu Kuu^{-1} Kuf is the covariance of f given u: it has no negative eigenvalue."""
    kernel, inducing_variable = parts(case)
    X = make_inputs(case, 60)
    features = Kuf(inducing_variable, kernel, X).numpy()
    explained = features.T @ np.linalg.solve(Kuu(inducing_variable, kernel).numpy(), features)
    covariance = kernel(X).numpy()
    residual = np.linalg.eigvalsh(covariance - explained)
    assert residual.min() > -1e-12 * np.trace(covariance)
    assert 0.3 < np.trace(explained) / np.trace(covariance) < 1 + 1e-12


def test_kuf_keeps_leading_dimensions(case: Case) -> None:
    kernel, inducing_variable = parts(case)
    X = make_inputs(case, 2, 3, 5)
    features = Kuf(inducing_variable, kernel, X)
    assert features.shape == (inducing_variable.num_inducing, 2, 3, 5)
    for i in range(2):
        for j in range(3):
            assert_close(features[:, i, j], Kuf(inducing_variable, kernel, X[i, j]), rtol=1e-14)
