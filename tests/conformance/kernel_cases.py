"""A way to build every public kernel, for the tests that run over all of them."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from interdomain.functionals import Mean
from interdomain.inducing_variables import BoxFourierFeatures
from interdomain.transforms import Negation
from tests.conformance.cases import trained_in_all


@dataclass(frozen=True)
class KernelCase:
    """A kernel on D columns, away from the special values of its parameters; all are trained.

    :param accuracy: How exactly the shape function is known to be computed (relative to one).
    :param min_columns: What D may be at least.
    :param max_columns: What D may be at most.
    :param valid: Makes inputs of this kernel from any.
    """

    kernel_class: type[gpflow.kernels.Kernel]
    build: Callable[[int], gpflow.kernels.Kernel]
    accuracy: float = 1e-12
    min_columns: int = 1
    max_columns: int = 100
    valid: Callable[[np.ndarray], np.ndarray] = lambda X: X

    def __str__(self) -> str:
        return self.kernel_class.__name__

    def columns(self, num_columns: int) -> int:
        """The given number of columns, within the limits of the case."""
        return max(self.min_columns, min(num_columns, self.max_columns))

    def inputs(self, num: int, num_columns: int, seed: int = 0) -> np.ndarray:
        return self.valid(inputs(num, num_columns, seed))


def column_variances(num_columns: int) -> np.ndarray:
    return np.linspace(0.6, 1.4, num_columns)


def _lifted(num_columns: int) -> dict[str, Any]:
    return {"weight_variances": column_variances(num_columns), "bias_variance": 0.8}


def _stationary(
    kernel_class: type[idm.kernels.ZonalKernel], radial_power: float, accuracy: float = 1e-13
) -> KernelCase:
    options = {"variance": 1.3, "lengthscale": 0.83, "radial_power": radial_power}
    return KernelCase(kernel_class, lambda D: kernel_class(**options, **_lifted(D)), accuracy)


FREE_DEGREES, FREE_RATIOS = (0, 1, 2, 4), (0.31, 0.12, 1e-3)


def _free_spectrum(num_columns: int) -> idm.kernels.FreeSpectrum:
    """A degree is left out, as by idm.kernels.ArcCosine; tested in sphere/test_zonal.py."""
    options = {"degrees": FREE_DEGREES, "variance": 1.3, "radial_power": 0.5}
    return idm.kernels.FreeSpectrum(FREE_RATIOS, **options, **_lifted(num_columns))


def _globe(kernel_class: type[idm.kernels.ZonalKernel], accuracy: float = 1e-7) -> KernelCase:
    """A kernel of angles in degrees, one for each column; tested in sphere/test_globe.py."""
    return KernelCase(
        kernel_class,
        lambda D: kernel_class(variance=1.3, lengthscale=0.6),
        accuracy,
        min_columns=2,
        max_columns=2,
        valid=lambda X: np.clip(40 * X, -90, 90),
    )


def _arc_cosine(num_columns: int, weight: float = 0.7) -> idm.kernels.ArcCosine:
    options = {"variance": 1.3, "weight_variances": weight, "bias_variance": 0.8}
    return idm.kernels.ArcCosine(1, **options)


def _plain() -> gpflow.kernels.Kernel:
    """A kernel with a closed form for its sums, on any columns."""
    return gpflow.kernels.Matern52(variance=1.3, lengthscales=1.7)


def _channels(num_columns: int) -> int:
    return next((count for count in (2, 3) if num_columns % count == 0), 1)


def _convolutional(num_columns: int) -> idm.kernels.Convolutional:
    """A kernel of images of one row; test_convolutional.py tests how patches are cut."""
    width = (num_columns + 1) // 2
    weights = column_variances(num_columns - width + 1)
    return idm.kernels.Convolutional(_plain(), (1, num_columns), (1, width), weights=weights)


def _multi_channel(num_columns: int) -> idm.kernels.MultiChannelConvolutional:
    channels = _channels(num_columns)
    image_shape = (1, num_columns // channels, channels)
    patch_shape = (1, (image_shape[1] + 1) // 2)
    return idm.kernels.MultiChannelConvolutional(_plain(), image_shape, patch_shape)


def _channel_additive(num_columns: int) -> idm.kernels.ChannelAdditive:
    channels = _channels(num_columns)
    return idm.kernels.ChannelAdditive(_plain(), (1, num_columns // channels, channels))


def _harmonizable(num_columns: int, **options: Any) -> idm.kernels.HarmonizableComponent:
    """A component of two frequencies, with a complex B; tested in test_harmonizable.py."""
    each = column_variances(num_columns)
    options |= {"centre": 0.2, "scales": 1.1, "envelope": 0.005 * each, "lag": 0.02}
    options["amplitudes"] = [[1.3, 0.2 + 0.4j], [0.2 - 0.4j, 0.9]]
    frequencies = 0.2 * np.stack([each, -0.5 * each])
    return trained_in_all(idm.kernels.HarmonizableComponent(frequencies, **options))


def _locally_stationary(num_columns: int) -> idm.kernels.LocallyStationaryGaussian:
    lag = 0.01 + 0.01 * np.eye(num_columns)
    options = {"variance": 1.3, "centre": 0.2, "envelope": 0.01, "lag": lag}
    return trained_in_all(idm.kernels.LocallyStationaryGaussian(num_columns, **options))


def _spectral(num_columns: int) -> idm.kernels.SpectralComponent:
    frequency = 0.3 * column_variances(num_columns)
    return idm.kernels.SpectralComponent(frequency, variance=1.3, lag=0.02)


def _periodized(num_columns: int) -> idm.kernels.Periodized:
    """Inputs are in the box and outside of it; tested in tests/families/waves."""
    lengthscales = 0.8 * column_variances(num_columns)
    base = gpflow.kernels.Matern52(variance=1.3, lengthscales=lengthscales)
    lower = -1.1 * column_variances(num_columns)
    return idm.kernels.Periodized(base, lower, lower + 3.0)


def _two_scales(num_columns: int) -> idm.kernels.TwoScales:
    """Tested in tests/core/test_two_scales.py."""
    lengthscales = 0.8 * column_variances(num_columns)
    return idm.kernels.TwoScales(1.3, lengthscales, ratio=7.0, share=0.4)


def _means_over_a_box(num_columns: int) -> idm.kernels.Functional:
    return idm.kernels.Functional(_box_of_waves(num_columns), Mean([0.2] * num_columns))


def _box_of_waves(num_columns: int) -> idm.kernels.FiniteRank:
    kernel = _periodized(num_columns)
    return idm.kernels.FiniteRank(kernel, BoxFourierFeatures.for_kernel(kernel, 40))


def _additive(num_columns: int) -> idm.tables.Additive:
    """All main effects, and the pairs of neighbours; tested in tests/tables."""
    ends = [[-1.5, 0.2 * k, 2.0] for k in range(num_columns)]
    columns = [idm.tables.NumericColumn(knots, [0.0, 0.5, 1.0]) for knots in ends]
    effects = ["main", *((k, k + 1) for k in range(num_columns - 1))]
    variances = column_variances(2 * num_columns - 1)
    return idm.tables.Additive(columns, effects, variances=variances, lengthscales=0.4)


CASES = [
    KernelCase(idm.kernels.ArcCosine, _arc_cosine, 1e-13),
    _stationary(idm.kernels.SphericalMatern12, radial_power=0.0, accuracy=1e-7),
    _stationary(idm.kernels.SphericalMatern32, radial_power=1.0, accuracy=1e-7),
    _stationary(idm.kernels.SphericalMatern52, radial_power=1.0, accuracy=1e-7),
    _stationary(idm.kernels.SphericalSquaredExponential, radial_power=2.0),
    _stationary(idm.kernels.ChordalSquaredExponential, radial_power=0.5),
    KernelCase(idm.kernels.FreeSpectrum, _free_spectrum, 1e-13),
    _globe(idm.kernels.GlobeMatern12),
    _globe(idm.kernels.GlobeMatern32),
    _globe(idm.kernels.GlobeMatern52),
    _globe(idm.kernels.GlobeSquaredExponential, accuracy=1e-13),
    KernelCase(  # what its base kernel is; the parts are tested in tests/families/harmonic
        idm.kernels.HarmonicKernel,
        lambda D: idm.kernels.HarmonicKernel(_arc_cosine(D, 1.0), Negation(0)),
        1e-13,
    ),
    KernelCase(idm.kernels.Convolutional, _convolutional),
    KernelCase(idm.kernels.MultiChannelConvolutional, _multi_channel),
    KernelCase(idm.kernels.ChannelAdditive, _channel_additive),
    KernelCase(idm.kernels.Invariant, lambda D: idm.kernels.Invariant(_plain(), Negation(0, 0.3))),
    KernelCase(idm.kernels.HarmonizableComponent, _harmonizable),
    KernelCase(
        idm.kernels.HarmonizableMixture,
        lambda D: idm.kernels.HarmonizableMixture([_harmonizable(D, local="matern52")]),
    ),
    KernelCase(idm.kernels.LocallyStationaryGaussian, _locally_stationary),
    KernelCase(idm.kernels.SpectralComponent, _spectral),
    KernelCase(idm.kernels.SpectralMixture, lambda D: idm.kernels.SpectralMixture([_spectral(D)])),
    KernelCase(idm.kernels.Periodized, _periodized, max_columns=4),
    KernelCase(idm.kernels.TwoScales, _two_scales),
    KernelCase(idm.tables.Additive, _additive, max_columns=4),
    KernelCase(idm.kernels.FiniteRank, _box_of_waves, max_columns=4),
    KernelCase(idm.kernels.Functional, _means_over_a_box, max_columns=4),
]
"""One of each class."""

SAME_KIND = (
    idm.kernels.SphericalMatern32,
    idm.kernels.SphericalMatern52,
    idm.kernels.GlobeMatern12,
    idm.kernels.GlobeMatern32,
    idm.kernels.GlobeMatern52,
    idm.kernels.GlobeSquaredExponential,
    idm.kernels.HarmonizableMixture,
    idm.kernels.LocallyStationaryGaussian,
    idm.kernels.SpectralMixture,
)
"""Classes that compute as another one does: other numbers or inputs, or a sum of it."""

KINDS = [case for case in CASES if case.kernel_class not in SAME_KIND]

ZONAL_CASES = [case for case in CASES if getattr(case.build(2), "inputs", None) == "euclidean"]
"""The cases of zonal kernels whose inputs are lifted."""


def public_kernel_classes() -> set[type[gpflow.kernels.Kernel]]:
    """All that a user can build."""
    public = (getattr(idm.kernels, name) for name in idm.kernels.__all__)
    classes = (c for c in public if inspect.isclass(c) and not inspect.isabstract(c))
    return {c for c in classes if issubclass(c, gpflow.kernels.Kernel)}


def inputs(num: int, num_columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(num, num_columns))
