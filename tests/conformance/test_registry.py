"""The registry is complete, and every entry is consistent with itself."""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

import interdomain
from interdomain import inducing_variables
from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import (
    HarmonicInducingPoints,
    InducingPatches,
    SphericalHarmonics,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import ArcCosine, Convolutional, HarmonicKernel, SphericalMatern32
from interdomain.linalg.bordered import Bordered
from interdomain.models import AdditiveSVGP
from interdomain.testing import check_family
from interdomain.transforms import ImageFlip

from .cases import CASES, KINDS, ONE_OF_EACH_KIND, REPRESENTATIVES, Case
from .helpers import assert_close, assert_same_objective, compiled, make_inputs, moved
from .test_multioutput import OURS

pytestmark = pytest.mark.usefixtures("no_jitter")
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def test_every_public_inducing_variable_and_kind_of_operator_has_a_case() -> None:
    """Inducing variables of several outputs wrap each of the cases in test_multioutput."""
    assert {case.kind for case in CASES} == set(KINDS)
    assert [case.kind for case in ONE_OF_EACH_KIND] == list(KINDS)
    assert len({case.name for case in CASES}) == len(CASES)
    covered = {type(parts(case)[1]) for case in REPRESENTATIVES} | set(OURS.values())
    public = {getattr(inducing_variables, name) for name in inducing_variables.__all__}
    missing = {c.__name__ for c in public - covered if not inspect.isabstract(c)}
    assert not missing, (
        f"public, but without a representative: {missing}; add a case to "
        "tests/conformance/cases.py with representative=True"
    )


def test_public_names_exist_and_are_sorted() -> None:
    modules = pkgutil.iter_modules(interdomain.__path__, "interdomain.")
    for package in ("interdomain", *(module.name for module in modules)):
        module = importlib.import_module(package)
        is_package = package == "interdomain" or hasattr(module, "__path__")
        assert hasattr(module, "__all__") or not is_package, f"{package} has no __all__"
        names = list(getattr(module, "__all__", []))
        assert names == sorted(set(names)), package
        for name in names:
            assert getattr(module, name, None) is not None, f"{package}.{name} does not exist"


def test_settings_cannot_be_replaced() -> None:
    """Sums over rows that were made with them would not notice."""
    for case in REPRESENTATIVES:
        features = case.build()[1]
        settings = {name for name, v in vars(features).items() if not isinstance(v, tf.Module)}
        assert settings
        for name in settings:
            if not name.startswith("_"):
                with pytest.raises(AttributeError, match=f"{name} of .* cannot be replaced; make"):
                    setattr(features, name, ())


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
    if isinstance(operator, (tf.linalg.LinearOperatorLowRankUpdate, Bordered)):
        return "low rank"
    return "full"


@each_case
def test_is_a_family(case: Case) -> None:
    """... of the structure and the jitter that the case says, which explains much of the kernel."""
    kernel, inducing_variable = parts(case)
    check_family(inducing_variable, kernel, make_inputs(case, 20))
    dense, operator = Kuu(inducing_variable, kernel), Kuu_operator(inducing_variable, kernel)
    assert kind_of(operator) == case.kind
    assert operator.is_positive_definite and operator.is_self_adjoint
    size = dense.shape[0]
    assert size == inducing_variable.num_inducing == inducing_variable.shape[0]
    scale = np.diag(dense) if case.relative_jitter else np.ones(size)
    added = Kuu(inducing_variable, kernel, jitter=0.5) - dense
    assert_close(added, 0.5 * np.diag(scale), rtol=1e-12)
    X = make_inputs(case, 60)
    features = Kuf(inducing_variable, kernel, X).numpy()
    explained = np.sum(features * np.linalg.solve(dense, features))
    assert 0.3 < explained / np.sum(kernel(X, full_cov=False)) < 1 + 1e-12


class Doubled(SphericalHarmonics):
    def Kuf(self, kernel: Any, X: Any) -> tf.Tensor:
        return 2 * super().Kuf(kernel, X)


class Unstructured(SphericalHarmonics):
    def Kuu(self, kernel: Any, *, jitter: float = 0.0) -> Any:
        return tf.linalg.LinearOperatorIdentity(self.num_inducing, dtype=tf.float64)


def test_what_is_wrong_with_a_family_is_named() -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    with pytest.raises(AssertionError, match="the features explain more of the kernel than there"):
        check_family(Doubled(3, [0, 1, 2]), SphericalMatern32(), X)
    with pytest.raises(TypeError, match=r"Kuu must return .* found LinearOperatorIdentity; return"):
        check_family(Unstructured(3, [0, 1, 2]), SphericalMatern32(), X)


# Graphs built before the number of columns of X, or even its rank, is known. Here of the models of
# this library; of SVGP with each class in test_classes.py.

UNKNOWN = {"columns": [None, None], "rank": None}
IMAGES, Y2 = np.split(np.random.default_rng(0).normal(size=(12, 7)), [6], axis=1)


def hvgp_of_patches() -> gpflow.models.SVGP:
    """The points say nothing of X, which they are not in the space of."""
    base = Convolutional(gpflow.kernels.SquaredExponential(), (3, 2), (1, 2))
    kernel = HarmonicKernel(base, ImageFlip((1, 2), 1))
    points = HarmonicInducingPoints.for_kernel(kernel, IMAGES[:4, :2])
    return AdditiveSVGP(kernel, gpflow.likelihoods.Gaussian(0.2), points)


def additive() -> gpflow.models.SVGP:
    """One block knows the number of columns, which another kernel needs."""
    first = Convolutional(gpflow.kernels.SquaredExponential(), (3, 2), (1, 2), active_dims=range(6))
    second, third = SphericalMatern32(), gpflow.kernels.Matern32(active_dims=slice(1, 2))
    blocks = [InducingPatches(IMAGES[:3, :2]), SphericalHarmonics(7, [0, 1])]
    features = SumInducingVariables([*blocks, VariationalFourierFeatures(-5, 5, 2)])
    return AdditiveSVGP(first + second + third, gpflow.likelihoods.Gaussian(0.2), features)


@pytest.mark.parametrize(("make", "unknown"), [(hvgp_of_patches, "columns"), (additive, "rank")])
def test_models_of_several_q(make: Callable[[], gpflow.models.SVGP], unknown: str) -> None:
    """The bound with its gradients, and predictions."""
    model, shape = moved(make()), UNKNOWN[unknown]
    variables = model.trainable_variables
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-6)):
        elbo = compiled(lambda X, Y: model.elbo((X, Y)), shape, shape)
        assert_same_objective(
            lambda: elbo(IMAGES, Y2), lambda: model.elbo((IMAGES, Y2)), variables, rtol=1e-7
        )
        function = compiled(model.posterior().predict_f, shape)
        for X in (IMAGES, *([IMAGES.reshape(3, 4, -1)] * (unknown == "rank"))):
            assert_close(function(X), model.predict_f(X))


def test_another_number_of_columns() -> None:
    """Rows of one number of columns are never taken for more rows of another."""
    noise, harmonics = gpflow.likelihoods.Gaussian(), SphericalHarmonics(3, [0, 1])
    model = gpflow.models.SVGP(ArcCosine(), noise, harmonics)
    for shape in UNKNOWN.values():
        with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible with expected sh"):
            compiled(model.predict_f, shape)(IMAGES)
