"""Kernels that a decomposition would be wrong for are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import gpflow
import numpy as np
import pytest
from gpflow.kernels import RBF, Kernel, Linear, Matern12, Matern32, Periodic

from interdomain.kernels import ArcCosine, HarmonicKernel
from interdomain.transforms import (
    CyclicTransform,
    ImageFlip,
    ImageRotation90,
    Negation,
    PrincipalNegation,
    Rotation,
    Translation,
)

X = np.random.default_rng(0).normal(size=(60, 3)) @ [[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0, 0, 0.5]]


def principal() -> CyclicTransform:
    return PrincipalNegation.from_data(X, 2)


NOT_INVARIANT: dict[str, tuple[Callable[[], Kernel], Callable[[], CyclicTransform]]] = {
    "ard-principal": (lambda: RBF(lengthscales=[0.5, 1.0, 2.0]), principal),
    "ard-rotation": (lambda: Matern32(lengthscales=[0.5, 1.0]), lambda: Rotation(4)),
    "slightly-ard": (lambda: RBF(lengthscales=[1.0, 1.001, 1.0]), principal),
    "tiny-lengthscales": (lambda: RBF(lengthscales=[1e-3, 2e-3]), lambda: Rotation(4)),
    "not-periodic": (RBF, lambda: Translation(4, 0, 2.0)),
    "other-period": (lambda: Periodic(RBF(), period=1.7), lambda: Translation(4, 0, 2.0)),
    "linear-centre": (Linear, lambda: Negation(0, centre=1.0)),
    "one-summand": (lambda: RBF() + Linear(), lambda: Negation(0, centre=1.0)),
}
INVARIANT: dict[str, tuple[Callable[[], Kernel], Callable[[], CyclicTransform]]] = {
    "ard-axis": (lambda: RBF(lengthscales=[0.5, 1.0, 2.0]), lambda: Negation(1, centre=3.0)),
    "equal-lengthscales": (lambda: RBF(lengthscales=[0.7, 0.7, 0.7]), principal),
    "ard-other-columns": (lambda: RBF(lengthscales=[0.7, 0.7, 2.0]), lambda: Rotation(3)),
    "periodic": (lambda: Periodic(RBF(), period=2.0), lambda: Translation(4, 0, 2.0)),
    "arc-cosine": (lambda: ArcCosine(1), lambda: Rotation(3)),
    "sum": (lambda: RBF() + Linear(), lambda: Negation(0)),
    "active-dims": (lambda: RBF(active_dims=[2]), lambda: Rotation(4)),
}


@pytest.mark.parametrize("name", NOT_INVARIANT)
def test_kernels_that_are_not_invariant(name: str) -> None:
    kernel, transform = NOT_INVARIANT[name]
    with pytest.raises(ValueError, match=r"base_kernel \(\w+\) is not invariant to .*ass "):
        HarmonicKernel(kernel(), transform())


@pytest.mark.parametrize("name", INVARIANT)
def test_kernels_that_are_invariant(name: str) -> None:
    """And all their parts are positive semi-definite, which those refused would not have."""
    kernel, transform = INVARIANT[name]
    harmonic = HarmonicKernel(kernel(), transform())
    for part in harmonic.kernels:
        assert np.linalg.eigvalsh(part(X[:20]))[0] > -1e-10
    total = sum(part(X[:20], X[20:]).numpy() for part in harmonic.kernels)
    np.testing.assert_allclose(total, harmonic(X[:20], X[20:]), atol=1e-12)


def test_lengthscales_that_part_in_training() -> None:
    kernel = HarmonicKernel(RBF(lengthscales=[0.7, 0.7, 0.7]), principal())
    kernel.base_kernel.lengthscales.assign([0.9, 0.9, 0.9])
    kernel.validate()
    kernel.base_kernel.lengthscales.assign([0.7, 0.9, 0.9])
    with pytest.raises(ValueError, match="is not invariant to PrincipalNegation"):
        kernel.validate()


@pytest.mark.parametrize("kernel_class", [Matern12, Linear])
def test_single_precision(kernel_class: type[Kernel]) -> None:
    """Its rounding is not taken for a kernel that is not invariant; a real one is found."""
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        HarmonicKernel(kernel_class(), [Rotation(7), Negation(2)])
        with pytest.raises(ValueError, match="is not invariant"):
            HarmonicKernel(RBF(lengthscales=[0.5, 1.0]), Rotation(7))


def test_errors() -> None:
    several = gpflow.kernels.SharedIndependent(RBF(), output_dim=2)
    not_commuting: Sequence[CyclicTransform] = [ImageRotation90((3, 3)), ImageFlip((3, 3), 0)]
    for base, transforms, message in (
        (RBF(), not_commuting, r"ImageRotation90\(.*\) and ImageFlip\(.*axis=0\), give points"),
        (several, Negation(0), "must have one output, found SharedIndependent; decom"),
        (Negation(0), RBF(), "base_kernel must be a GPflow kernel, found Negation"),
        (
            RBF(lengthscales=[1.0, 1.0]),
            ImageFlip((3, 4), 0),
            "cannot be evaluated on inputs of 12 columns, which Image",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            HarmonicKernel(base, transforms)
