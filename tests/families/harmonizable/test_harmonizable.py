"""Harmonizable kernels: the paper's formula, limits, validity, errors, and spectra."""

from functools import partial
from typing import Any

import gpflow
import numpy as np
import pytest

from interdomain.inducing_variables import HarmonizableFourierFeatures
from interdomain.kernels import (
    HarmonizableComponent,
    HarmonizableMixture,
    LocallyStationaryGaussian,
    SpectralComponent,
)
from tests.conformance.helpers import assert_close, assert_refused
from tests.conformance.kernel_cases import inputs

from .harmonizable_cases import (
    BEYOND,
    FORMS,
    HALF_WIDTH,
    STEP,
    Form,
    Values,
    as_matrix,
    component,
    grid,
    one_sided,
    real_kernel,
    real_kernel_of_pairs,
    transform_with_itself,
)

EACH_FORM = pytest.mark.parametrize("form", (*FORMS, *BEYOND), ids=str)


@EACH_FORM
def test_kernel(form: Form) -> None:
    """Of X alone, of X and X2, and its diagonal."""
    kernel = component(form)
    values = Values.of(kernel)
    X, X2 = inputs(7, form.dimension), inputs(4, form.dimension, seed=1)
    assert_close(kernel(X), real_kernel(values, X, X), rtol=1e-13)
    assert_close(kernel(X, X2), real_kernel(values, X, X2), rtol=1e-13)
    assert_close(kernel(X, full_cov=False), np.diag(real_kernel(values, X, X)), rtol=1e-13)


@pytest.mark.parametrize("form", FORMS[1::2], ids=str)
def test_parameters_are_those_asked_for(form: Form) -> None:
    """B = W W^H and lag survive their storage; by default the variance at the centre is one."""
    kernel = component(form)
    assert (kernel.amplitudes_imaginary is not None) == form.complex_amplitudes
    names = ("amplitudes", "centre", "scales", "envelope", "lag")
    given = {name: getattr(kernel, name).numpy() for name in names}
    again = HarmonizableComponent(kernel.frequencies.numpy(), **given)
    for name in names:
        assert_close(getattr(again, name), given[name], rtol=1e-13)
    kernel = HarmonizableComponent([[0.1], [0.4], [0.9]], centre=2.0)
    assert_close(kernel.amplitudes, np.eye(3) / 3, rtol=1e-14)
    assert kernel(np.array([[2.0]]), full_cov=False).numpy()[0] == pytest.approx(1.0)


def test_mixtures_are_sums() -> None:
    kernel = HarmonizableMixture([component(form) for form in FORMS if form.dimension == 2])
    X, w, v = (0.5 * inputs(4, 2, seed=seed) for seed in range(3))
    parts = kernel.kernels
    expected = sum(real_kernel(Values.of(part), X, w) for part in parts)
    assert_close(kernel(X, w), expected, rtol=1e-12)
    density = sum(part.generalized_spectral_density(w, v).numpy() for part in parts)
    assert_close(kernel.generalized_spectral_density(w, v), density, rtol=1e-12)
    assert_close(kernel.wigner(X, w), sum(part.wigner(X, w).numpy() for part in parts), rtol=1e-12)


LAGS = {"scalar": 0.1, "diagonal": [0.1, 0.2], "full": [[0.2, 0.05], [0.05, 0.1]]}
EACH_LAG = pytest.mark.parametrize("lag", LAGS.values(), ids=list(LAGS))


@EACH_LAG
def test_endless_window_is_a_spectral_component(lag: Any) -> None:
    """envelope -> 0 at the same lag: stationary, wherever the centre."""
    frequency = [0.4, -0.3]
    windowed = HarmonizableComponent(
        [frequency], amplitudes=[1.7], centre=[0.3, -2.0], envelope=1e-14, lag=lag
    )
    stationary = SpectralComponent(frequency, variance=1.7, lag=lag)
    X = inputs(8, 2)
    assert_close(windowed(X), stationary(X), rtol=1e-11)
    assert_close(windowed(X, full_cov=False), stationary(X, full_cov=False), rtol=1e-11)


@EACH_LAG
def test_no_frequency_is_a_locally_stationary_gaussian(lag: Any) -> None:
    centre = np.array([0.3, -0.2])
    arguments = {"centre": centre, "envelope": [0.2, 0.3], "lag": lag}
    kernel = LocallyStationaryGaussian(2, variance=1.7, **arguments)
    several = HarmonizableComponent(
        np.zeros([3, 2]), amplitudes=np.full([3, 3], 1.7 / 9), **arguments
    )
    X, X2 = inputs(6, 2), inputs(5, 2, seed=1)
    mean, difference = (X[:, None] + X2) / 2 - centre, X[:, None] - X2
    exponent = np.einsum("nkd,de,nke->nk", mean, np.diag([0.2, 0.3]), mean)
    exponent += np.einsum("nkd,de,nke->nk", difference, as_matrix(np.array(lag), 2), difference)
    expected = 1.7 * np.exp(-2 * np.pi**2 * exponent)
    assert_close(kernel(X, X2), expected, rtol=1e-13)
    assert_close(several(X, X2), expected, rtol=1e-13)
    assert kernel.variance.numpy() == pytest.approx(1.7)
    assert not kernel.frequencies.trainable


def smallest_relative_eigenvalue(matrix: np.ndarray) -> float:
    values = np.linalg.eigvalsh(matrix)
    return values[0] / values[-1]


VALID = ("1d", "1d-rank-one", "2d-mixed", "2d-full", "2d-matern52", "2d-gsk", "1d-gsk-matern32")


@pytest.mark.parametrize("name", VALID)
def test_valid_for_every_value_of_the_variables(name: str) -> None:
    """Of random unconstrained variables, at inputs of every spread."""
    kernel = component(next(form for form in (*FORMS, *BEYOND) if form.name == name))
    draws = [*enumerate(np.geomspace(0.01, 3.0, 12)), (5279, 1.3125)]
    for seed, size in draws:  # of the last in "2d-mixed" all variances are below 1e-303, most are 0
        rng = np.random.default_rng(seed)
        for parameter in kernel.parameters:
            variable = parameter.unconstrained_variable
            variable.assign(size * rng.normal(size=variable.shape))
        K = kernel(rng.exponential() * rng.normal(size=(12, kernel.dimension))).numpy()
        assert np.all(np.isfinite(K))
        # An entry below the smallest normal number becomes 0, which moves an eigenvalue by as much.
        underflow = len(K) * np.finfo(K.dtype).tiny
        assert np.linalg.eigvalsh(K)[0] >= -1e-10 * np.max(np.diag(K)) - underflow
        margin = as_matrix(4 * kernel.lag.numpy(), kernel.dimension)
        if kernel.envelope is not None:
            margin -= as_matrix(kernel.envelope.numpy(), kernel.dimension)
        assert smallest_relative_eigenvalue(margin) >= -1e-13
        assert smallest_relative_eigenvalue(kernel.amplitudes.numpy()) >= -1e-13


def test_beyond_the_bound_the_formula_is_not_valid() -> None:
    """Why lag must be above envelope / 4: with a ratio of 1.01 the paper's kernel is no kernel."""
    values = Values(
        np.zeros([1, 1]), np.eye(1), np.zeros(1), np.ones(1), np.eye(1), np.eye(1) / 4.04
    )
    X = np.linspace(-1.5, 1.5, 40)[:, None]
    assert smallest_relative_eigenvalue(real_kernel(values, X, X)) < -1e-4
    with pytest.raises(ValueError, match="lag must be above envelope / 4"):
        HarmonizableComponent([[0.0]], envelope=1.0, lag=1 / 4.04)


def test_errors() -> None:
    make = partial(HarmonizableComponent, [[0.1, 0.2], [0.3, -0.4]])
    kernel, matern, envelope = make(), gpflow.kernels.Matern32(), [[0.5, 0.3], [0.3, 0.5]]
    definite = r"amplitudes must be positive semi-definite and not zero, .* pass for example W W\^H"
    above = "lag must be above envelope / 4, .*; pass a larger lag or a smaller envelope"
    others = r"must be HarmonizableComponent, found Matern32; add other kernels .* with \+"
    form = r"envelope and lag must be numbers or \[2\] with local='matern12'.*; pass its diagonal"
    assert_refused(
        [
            (lambda: make(amplitudes=[[1.0, 2.0], [2.0, 1.0]]), definite),
            (lambda: make(lag=np.eye(3)), r"lag must be a number, \[2\] or \[2, 2"),
            (lambda: make(envelope=envelope, lag=[0.15, 0.19]), above),
            (lambda: HarmonizableMixture([kernel, matern]), others),
            (lambda: make(local="matern"), "local must be .*matern12"),
            (lambda: make(local="matern12", lag=0.2 * np.eye(2)), form),
            (
                lambda: kernel(np.zeros([4, 3])),
                "X must have 2 columns, as frequencies have, found 3",
            ),
        ]
    )


# Spectra against integrals of the real kernel, by the trapezoid rule.


def for_forms(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("form", [f for f in FORMS if f.name in names], ids=str)


def frequencies(count: int, dimension: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.8, 0.8, size=[count, dimension])


@for_forms("1d", "1d-real", "2d-mixed")
def test_generalized_spectral_density(form: Form) -> None:
    kernel = component(form)
    w, v = frequencies(5, form.dimension), frequencies(3, form.dimension, seed=1)
    w[0] = 0.0
    expected = transform_with_itself(Values.of(kernel), w, v)
    assert np.max(np.abs(expected.imag)) > 0.01 * np.max(np.abs(expected))
    density = kernel.generalized_spectral_density(w, v).numpy()
    assert_close(density, expected, rtol=1e-9)
    assert_close(kernel.generalized_spectral_density(v, w), density.conj().T, rtol=1e-13)
    assert_close(kernel.generalized_spectral_density(-w, -v), density.conj(), rtol=1e-13)


@for_forms("1d", "1d-real", "2d-full")
def test_wigner_distribution(form: Form) -> None:
    """``W(x, w) = int k(x + t/2, x - t/2) exp(-2 pi i w^T t) dt``."""
    kernel = component(form)
    values = Values.of(kernel)
    x = values.centre + frequencies(4, form.dimension)
    w = frequencies(5, form.dimension, seed=1)
    lags, volume = grid(form.dimension, 6.0, 0.1)
    waves = volume * np.exp(-2j * np.pi * lags @ w.T)
    expected = np.stack(
        [real_kernel_of_pairs(values, row + lags / 2, row - lags / 2) @ waves for row in x]
    )
    assert_close(expected.imag, np.zeros_like(expected.imag), atol=1e-9)
    assert_close(kernel.wigner(x, w), expected.real, rtol=1e-9)


@pytest.mark.parametrize("form", BEYOND, ids=str)
def test_spectra_beyond_the_gaussian(form: Form) -> None:
    """Both, against integrals that respect the kink; of the density those over ``(m, t)``, the mean
    and the difference of the inputs, for which ``w x - v x' = (w - v) m + (w + v) t / 2``."""
    kernel = component(form)
    values, D = Values.of(kernel), form.dimension
    x = values.centre + frequencies(3, D)
    w, v = frequencies(4, D, seed=1), frequencies(4, D, seed=2)
    lags, weights = one_sided(D, 14.0, 100)
    waves = weights[:, None] * np.exp(-2j * np.pi * lags @ w.T)
    expected = np.stack(
        [real_kernel_of_pairs(values, row + lags / 2, row - lags / 2) @ waves for row in x]
    )
    assert_close(kernel.wigner(x, w), expected.real, rtol=1e-10)
    if form.envelope == "none" or D > 1:
        return
    means, volume = grid(1, HALF_WIDTH, STEP)
    means = means + values.centre
    ends = [(means[:, None] + sign * lags / 2).reshape(-1, 1) for sign in (1, -1)]
    pairs = real_kernel_of_pairs(values, *ends).reshape(len(means), len(lags))
    apart, between = w[:, None] - v, (w[:, None] + v) / 2
    mean_waves = volume * np.exp(-2j * np.pi * apart * means[:, 0])
    lag_waves = weights * np.exp(-2j * np.pi * between * lags[:, 0])
    density = np.einsum("abm,mt,abt->ab", mean_waves, pairs, lag_waves)
    assert_close(kernel.generalized_spectral_density(w, v), density, rtol=1e-10)


def test_spectra_of_columns_are_products() -> None:
    """Of one real frequency at zero, under Matern functions."""
    w, v, x = (frequencies(3, 2, seed=seed) for seed in range(3))
    options: Any = {"local": "matern32", "lag": 0.2}
    whole = HarmonizableComponent(np.zeros([1, 2]), envelope=[0.2, 0.4], **options)
    parts = [HarmonizableComponent([[0.0]], envelope=size, **options) for size in (0.2, 0.4)]
    columns = [(part, slice(d, d + 1)) for d, part in enumerate(parts)]
    densities = [p.generalized_spectral_density(w[:, d], v[:, d]).numpy() for p, d in columns]
    assert_close(whole.generalized_spectral_density(w, v), np.prod(densities, axis=0), rtol=1e-13)
    wigners = [p.wigner(x[:, d], w[:, d]).numpy() for p, d in columns]
    assert_close(whole.wigner(x, w), np.prod(wigners, axis=0), rtol=1e-13)


@pytest.mark.parametrize("local", ["matern12", "matern32", "matern52"])
def test_narrow_and_endless_windows(local: Any) -> None:
    """The profiles of Matern functions tend to their spectral densities, over a range of windows
    that passes from one of their two formulas to the other."""
    w = np.linspace(-3, 3, 7)[:, None]
    order = int(local[-2])
    rate = np.sqrt(order) * 2 * np.pi * np.sqrt(0.05)
    scale = {1: 2.0, 3: 4.0, 5: 16 / 3}[order]
    expected = scale * rate**order / (rate**2 + (2 * np.pi * w[:, 0]) ** 2) ** ((order + 1) / 2)
    stationary = HarmonizableComponent([[0.0]], envelope=None, lag=0.05, local=local)
    at_zero = np.zeros([1, 1])
    assert_close(stationary.wigner(at_zero, w)[0], expected, rtol=1e-13)
    errors = []
    for envelope in (1e-2, 1e-3, 1e-4, 1e-5):
        windowed = HarmonizableComponent(
            [[0.0]], envelope=envelope, lag=0.05 + envelope / 4, local=local
        )
        errors.append(np.max(np.abs(windowed.wigner(at_zero, w)[0] - expected)))
    assert np.all(np.array(errors[1:]) < 0.2 * np.array(errors[:-1])), errors


def test_generalized_spectral_kernel() -> None:
    """Samo 2017: sums of cosines and of sines of a pair of frequencies."""
    pair, X = np.array([[0.3], [0.8]]), inputs(6, 1)
    kernel = HarmonizableComponent(
        pair, amplitudes=1.7 * np.ones([2, 2]), envelope=None, lag=0.02, local="matern32"
    )
    matern = gpflow.kernels.Matern32(lengthscales=1 / (2 * np.pi * np.sqrt(0.02)))
    waves = [np.sum(f(2 * np.pi * X @ pair.T), axis=1) for f in (np.cos, np.sin)]
    expected = 1.7 * matern(X).numpy() * sum(np.outer(wave, wave) for wave in waves)
    assert_close(kernel(X), expected, rtol=1e-13)
    with pytest.raises(NotImplementedError, match=r"pass an envelope .* wigner\(x, w\)"):
        kernel.generalized_spectral_density(pair, pair)
    for wrong in (kernel, HarmonizableComponent(pair, local="matern32")):
        with pytest.raises(NotImplementedError, match="Fourier features need .* inducing points"):
            HarmonizableFourierFeatures.for_kernel(wrong, 2)
        with pytest.raises(NotImplementedError, match="Fourier features need"):
            gpflow.covariances.Kuu(HarmonizableFourierFeatures(pair), wrong)
