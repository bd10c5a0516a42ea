"""A way to build every public kernel, for the tests that run over all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import gpflow
import numpy as np

import interdomain as idm
from interdomain.inducing_variables import PeriodicFourierFeatures
from interdomain.kernels import (
    Additive,
    ArcCosine,
    ChannelAdditive,
    ChordalSquaredExponential,
    Convolutional,
    FiniteRank,
    FreeSpectrum,
    GlobeMatern12,
    GlobeMatern32,
    GlobeMatern52,
    GlobeSquaredExponential,
    HarmonicKernel,
    HarmonizableComponent,
    HarmonizableMixture,
    Invariant,
    LocallyStationaryGaussian,
    MultiChannelConvolutional,
    NumericColumn,
    Periodized,
    SpectralComponent,
    SpectralMixture,
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    SphericalSquaredExponential,
    ZonalKernel,
)
from interdomain.transforms import Negation


@dataclass(frozen=True)
class KernelCase:
    """A kernel on D columns, away from the special values of its parameters; all are trained.

    :param accuracy: How exactly the shape function is known to be computed (relative to one).
    :param min_columns: What D may be at least.
    :param max_columns: What D may be at most.
    :param valid: Makes inputs of this kernel from any.
    """

    name: str
    kernel_class: type[gpflow.kernels.Kernel]
    build: Callable[[int], gpflow.kernels.Kernel]
    accuracy: float = 1e-13
    min_columns: int = 1
    max_columns: int = 100
    valid: Callable[[np.ndarray], np.ndarray] = lambda X: X

    def __str__(self) -> str:
        return self.name

    def columns(self, num_columns: int) -> int:
        """That many, or as many as there can be."""
        return max(self.min_columns, min(num_columns, self.max_columns))

    def inputs(self, num: int, num_columns: int, seed: int = 0) -> np.ndarray:
        return self.valid(inputs(num, num_columns, seed))


def column_variances(num_columns: int) -> np.ndarray:
    return np.linspace(0.6, 1.4, num_columns)


def _arc_cosine(num_columns: int) -> ArcCosine:
    return ArcCosine(1, 2, variance=1.3, weight_variances=0.7, bias_variance=0.8)


def _stationary(
    kernel_class: type[ZonalKernel], radial_power: float, accuracy: float = 1e-13
) -> KernelCase:
    return KernelCase(
        kernel_class.__name__,
        kernel_class,
        lambda D: kernel_class(
            variance=1.3,
            lengthscale=0.83,
            weight_variances=column_variances(D),
            bias_variance=0.8,
            radial_power=radial_power,
        ),
        accuracy,
    )


FREE_DEGREES, FREE_RATIOS = (0, 1, 2, 4), (0.31, 0.12, 1e-3)


def _free_spectrum(num_columns: int) -> FreeSpectrum:
    """A degree is left out, as by ArcCosine; tested in zonal/test_free_spectrum.py."""
    return FreeSpectrum(
        FREE_RATIOS,
        degrees=FREE_DEGREES,
        variance=1.3,
        weight_variances=column_variances(num_columns),
        bias_variance=0.8,
        radial_power=0.5,
    )


def _globe(kernel_class: type[ZonalKernel], accuracy: float = 1e-7) -> KernelCase:
    """Of angles in degrees, as many as the columns; tested in zonal/test_globe.py."""
    return KernelCase(
        kernel_class.__name__,
        kernel_class,
        lambda D: kernel_class(variance=1.3, lengthscale=0.6),
        accuracy,
        min_columns=2,
        max_columns=2,
        valid=lambda X: np.clip(40 * X, -90, 90),
    )


def _harmonic(num_columns: int) -> HarmonicKernel:
    """What its base kernel is; the parts are tested in tests/kernels/harmonic."""
    return HarmonicKernel(ArcCosine(1, variance=1.3, bias_variance=0.8), Negation(0))


def _plain() -> gpflow.kernels.Kernel:
    """A kernel with a closed form for its sums, on any columns."""
    return gpflow.kernels.Matern52(variance=1.3, lengthscales=1.7)


def _channels(num_columns: int) -> int:
    return next((count for count in (2, 3) if num_columns % count == 0), 1)


def _convolutional(num_columns: int) -> Convolutional:
    """Of images of one row; how its patches are cut is tested in test_convolutional.py."""
    patch_shape = (1, (num_columns + 1) // 2)
    num_patches = num_columns - patch_shape[1] + 1
    return Convolutional(
        _plain(), (1, num_columns), patch_shape, weights=column_variances(num_patches)
    )


def _multi_channel(num_columns: int) -> MultiChannelConvolutional:
    channels = _channels(num_columns)
    image_shape = (1, num_columns // channels, channels)
    patch_shape = (1, (image_shape[1] + 1) // 2)
    return MultiChannelConvolutional(_plain(), image_shape, patch_shape)


def _channel_additive(num_columns: int) -> ChannelAdditive:
    channels = _channels(num_columns)
    return ChannelAdditive(_plain(), (1, num_columns // channels, channels))


def trained(kernel: gpflow.kernels.Kernel) -> gpflow.kernels.Kernel:
    gpflow.set_trainable(kernel, True)
    return kernel


def _harmonizable(num_columns: int) -> HarmonizableComponent:
    """Of two frequencies, with a complex B; tested in test_harmonizable.py."""
    frequencies = np.stack([column_variances(num_columns), -0.5 * column_variances(num_columns)])
    return trained(
        HarmonizableComponent(
            0.2 * frequencies,
            amplitudes=[[1.3, 0.2 + 0.4j], [0.2 - 0.4j, 0.9]],
            centre=0.2,
            scales=1.1,
            envelope=0.005 * column_variances(num_columns),
            lag=0.02,
        )
    )


def _locally_stationary(num_columns: int) -> LocallyStationaryGaussian:
    return trained(
        LocallyStationaryGaussian(
            num_columns,
            variance=1.3,
            centre=0.2,
            envelope=0.01,
            lag=0.01 + 0.01 * np.eye(num_columns),
        )
    )


def _spectral(num_columns: int) -> SpectralComponent:
    return SpectralComponent(0.3 * column_variances(num_columns), variance=1.3, lag=0.02)


def _periodized(num_columns: int) -> Periodized:
    """Inputs are in the box and outside of it; tested in tests/kernels/periodic."""
    lengthscales = 0.8 * column_variances(num_columns)
    base = gpflow.kernels.Matern52(variance=1.3, lengthscales=lengthscales)
    lower = -1.1 * column_variances(num_columns)
    return Periodized(base, lower, lower + 3.0)


def _box_of_waves(num_columns: int) -> FiniteRank:
    kernel = _periodized(num_columns)
    return FiniteRank(kernel, PeriodicFourierFeatures.for_kernel(kernel, 40))


def _additive(num_columns: int) -> Additive:
    """All main effects, and the pairs of neighbours; tested in tests/kernels/additive."""
    columns = [NumericColumn([-1.5, 0.2 * k, 2.0], [0.0, 0.5, 1.0]) for k in range(num_columns)]
    pairs = [(k, k + 1) for k in range(num_columns - 1)]
    sizes = num_columns + len(pairs)
    return Additive(columns, ["main", *pairs], variances=column_variances(sizes), lengthscales=0.4)


def core(kernel: gpflow.kernels.Kernel) -> gpflow.kernels.Kernel:
    """The kernel that has the parameters."""
    if isinstance(kernel, (MultiChannelConvolutional, ChannelAdditive)):
        return kernel.base_kernels[0]
    if isinstance(kernel, (HarmonizableMixture, SpectralMixture)):
        return kernel.components[0]
    if isinstance(kernel, FiniteRank):
        return core(kernel.kernel)
    return getattr(kernel, "base_kernel", kernel)


@singledispatch
def double(kernel: gpflow.kernels.Kernel) -> None:
    """Make all its values twice as large."""
    kernel = core(kernel)
    if isinstance(kernel, HarmonizableComponent):
        double_roots(kernel.amplitudes_real, kernel.amplitudes_imaginary)
    else:
        kernel.variance.assign(2 * kernel.variance)


@double.register(Additive)
def double_additive(kernel: Additive) -> None:
    for variance in (kernel.constant_variance, kernel.variances):
        variance.assign(2 * variance.numpy())


def double_roots(*roots: gpflow.Parameter | None) -> None:
    """Those whose squares the values are proportional to."""
    for root in roots:
        if root is not None:
            root.assign(np.sqrt(2) * root.numpy())


CASES = [
    KernelCase("ArcCosine", ArcCosine, _arc_cosine),
    _stationary(SphericalMatern12, radial_power=0.0, accuracy=1e-7),
    _stationary(SphericalMatern32, radial_power=1.0, accuracy=1e-7),
    _stationary(SphericalMatern52, radial_power=1.0, accuracy=1e-7),
    _stationary(SphericalSquaredExponential, radial_power=2.0),
    _stationary(ChordalSquaredExponential, radial_power=0.5),
    KernelCase("FreeSpectrum", FreeSpectrum, _free_spectrum),
    _globe(GlobeMatern12),
    _globe(GlobeMatern32),
    _globe(GlobeMatern52),
    _globe(GlobeSquaredExponential, accuracy=1e-13),
    KernelCase("Harmonic", HarmonicKernel, _harmonic),
    KernelCase("Convolutional", Convolutional, _convolutional, accuracy=1e-12),
    KernelCase("MultiChannel", MultiChannelConvolutional, _multi_channel, accuracy=1e-12),
    KernelCase("ChannelAdditive", ChannelAdditive, _channel_additive, accuracy=1e-12),
    KernelCase(
        "Invariant", Invariant, lambda D: Invariant(_plain(), Negation(0, 0.3)), accuracy=1e-12
    ),
    KernelCase("Harmonizable", HarmonizableComponent, _harmonizable, accuracy=1e-12),
    KernelCase(
        "HarmonizableMixture",
        HarmonizableMixture,
        lambda D: HarmonizableMixture([_harmonizable(D)]),
        accuracy=1e-12,
    ),
    KernelCase("LocallyStationary", LocallyStationaryGaussian, _locally_stationary, accuracy=1e-12),
    KernelCase("Spectral", SpectralComponent, _spectral, accuracy=1e-12),
    KernelCase(
        "SpectralMixture",
        SpectralMixture,
        lambda D: SpectralMixture([_spectral(D)]),
        accuracy=1e-12,
    ),
    KernelCase("Periodized", Periodized, _periodized, accuracy=1e-12, max_columns=4),
    KernelCase("Additive", Additive, _additive, accuracy=1e-12, max_columns=4),
    KernelCase("FiniteRank", FiniteRank, _box_of_waves, accuracy=1e-12, max_columns=4),
]
"""One of each class."""

SAME_KIND = (
    SphericalMatern32,
    SphericalMatern52,
    GlobeMatern12,
    GlobeMatern32,
    GlobeMatern52,
    GlobeSquaredExponential,
    HarmonizableMixture,
    LocallyStationaryGaussian,
    SpectralMixture,
)
"""Classes that compute as another one does: other numbers or inputs, or a sum of it."""

KINDS = [case for case in CASES if case.kernel_class not in SAME_KIND]

ZONAL_CASES = [
    case
    for case in CASES
    if issubclass(case.kernel_class, ZonalKernel) and case.build(2).inputs == "euclidean"
]
"""Of inputs that are lifted."""


def public_kernel_classes() -> set[type[gpflow.kernels.Kernel]]:
    """All that a user can build."""
    public = (getattr(idm.kernels, name) for name in idm.kernels.__all__)
    return {
        member
        for member in public
        if inspect.isclass(member)
        and issubclass(member, gpflow.kernels.Kernel)
        and not inspect.isabstract(member)
    }


def inputs(num: int, num_columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(num, num_columns))
