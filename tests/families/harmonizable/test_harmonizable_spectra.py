"""Spectra of harmonizable kernels against integrals of the real kernel, by the trapezoid rule."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.helpers import assert_close

from .harmonizable_cases import (
    FORMS,
    Form,
    Values,
    component,
    grid,
    real_kernel_of_pairs,
    transform_with_itself,
)


def of_forms(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("form", [f for f in FORMS if f.name in names], ids=str)


def frequencies(count: int, dimension: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.8, 0.8, size=[count, dimension])


@of_forms("1d", "1d-real", "2d-mixed")
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


@of_forms("1d", "1d-real", "2d-full")
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
