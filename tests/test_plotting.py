"""The pictures hold the data they are given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import gpflow
import matplotlib
import numpy as np
import pytest
from gpflow.kernels import RBF

from interdomain import diagnostics, plotting
from interdomain.inducing_variables import FourierFeatures, SphericalHarmonics, SumInducingVariables
from interdomain.kernels import (
    ArcCosine,
    HarmonizableComponent,
    HarmonizableMixture,
    SpectralComponent,
    SpectralMixture,
    SphericalMatern52,
)
from interdomain.models import OrthogonalSVGP

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

X = np.random.default_rng(0).normal(size=(12, 1))
Z = gpflow.inducing_variables.InducingPoints(np.linspace(-1.0, 1.0, 4)[:, None])
W = gpflow.inducing_variables.InducingPoints(np.linspace(-1.7, 1.5, 3)[:, None])


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    pyplot.close("all")


def drawn(ax: Axes) -> dict[str, np.ndarray]:
    """The points of every line, by its label."""
    return {str(line.get_label()): np.stack(line.get_data(), axis=1) for line in ax.lines}


def test_spectrum() -> None:
    found = diagnostics.spectrum(SphericalMatern52(), "relu", 2, 8)
    figure, given = pyplot.subplots()
    assert plotting.spectrum(found, given) is given
    kernel, activation, missing = drawn(given).values()
    np.testing.assert_array_equal(kernel, np.stack([found.degrees, found.kernel_roots], axis=1))
    used = [0, 1, 2, 4, 6, 8]
    np.testing.assert_array_equal(activation[:, 0], used)
    np.testing.assert_array_equal(activation[:, 1], found.activation_coefficients[used])
    np.testing.assert_array_equal(missing[:, 0], [3, 5, 7])
    assert given.get_yscale() == "log"
    labels = [text.get_text() for text in given.get_legend().get_texts()]
    assert "SphericalMatern52" in labels[0] and "ReLU()" in labels[1]
    assert labels[2] == f"missing: {found.missing_share:.2g} of the variance"
    figure.canvas.draw()  # that the labels are mathematics that can be drawn


def test_spectrum_without_missing_levels_on_new_axes() -> None:
    ax = plotting.spectrum(diagnostics.spectrum(ArcCosine(), "relu", 3, 6))
    assert len(ax.lines) == 2 and pyplot.get_fignums()


def test_variance_terms() -> None:
    likelihood = gpflow.likelihoods.Gaussian()
    model = OrthogonalSVGP(RBF(lengthscales=0.5), likelihood, Z, W, num_latent_gps=2)
    model.q_sqrt.assign(np.stack([0.3 * np.eye(4), 0.6 * np.eye(4)]))
    model.q_sqrt_orthogonal.assign(np.stack([0.5 * np.eye(3), 0.8 * np.eye(3)]))
    terms = diagnostics.variance_terms(model, X)
    ax = plotting.variance_terms(X, terms, latent=1)
    order = np.argsort(X[:, 0])
    expected = [
        terms.prior - terms.explained,
        terms.uncertain,
        terms.orthogonal_explained,
        terms.orthogonal_uncertain,
        model.predict_f(X)[1],
    ]
    lines = list(drawn(ax).values())
    assert len(lines) == len(expected)
    for line, values in zip(lines, expected, strict=True):
        np.testing.assert_array_equal(line[:, 0], X[order, 0])
        np.testing.assert_allclose(line[:, 1], values.numpy()[order, 1], atol=1e-12)
    assert [line.get_linestyle() for line in ax.lines] == ["-", "-", "--", "-", "-"]
    ax.figure.canvas.draw()


def test_variance_terms_without_orthogonal_variables() -> None:
    model = gpflow.models.SVGP(RBF(), gpflow.likelihoods.Gaussian(), Z)
    ax = plotting.variance_terms(X[:, 0], diagnostics.variance_terms(model, X))
    assert len(ax.lines) == 3


def test_harmonic_shares() -> None:
    kernel = SphericalMatern52(weight_variances=[0.3, 1.0, 0.01])
    inputs = np.random.default_rng(1).normal(size=(50, 3))
    harmonics = SphericalHarmonics.for_data(kernel, inputs, 40)
    names = ["a", "b", "c"]
    found = diagnostics.harmonic_shares(harmonics, kernel, inputs, column_names=names)
    ax = plotting.harmonic_shares(found)
    bars = np.array([[bar.get_x(), bar.get_width()] for bar in ax.patches])
    widths = bars[:, 1].reshape(len(found.degrees) - 1, -1)
    np.testing.assert_allclose(widths, found.shares.T[1:], rtol=1e-12)
    ends = np.sum(bars.reshape(*widths.shape, 2)[-1], axis=1)
    np.testing.assert_allclose(ends, found.coordinate_shares)
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c, a", "b", "bias"]
    assert "share of the prior variance" in ax.get_xlabel() and ax.get_ylabel()
    constant = SphericalHarmonics(4, [0])
    shares = diagnostics.harmonic_shares(constant, kernel, inputs)
    plotting.harmonic_shares(shares).figure.canvas.draw()


def test_errors() -> None:
    model = gpflow.models.SVGP(RBF(), gpflow.likelihoods.Gaussian(), Z)
    terms = diagnostics.variance_terms(model, X)
    with pytest.raises(ValueError, match=r"x must be \[N\] or .* N = 12, .* found shape \(5, 1\)"):
        plotting.variance_terms(X[:5], terms)
    with pytest.raises(ValueError, match="latent must be from 0 to 0, found 1"):
        plotting.variance_terms(X, terms, latent=1)


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = diagnostics.spectrum(ArcCosine(), "relu", 2, 3)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'interdomain\[plot\]'"):
        plotting.spectrum(found)


MIXTURE = HarmonizableMixture(
    [
        HarmonizableComponent([[0.5], [1.2]], centre=-0.4, envelope=0.3, lag=0.2),
        HarmonizableComponent([[0.9]], centre=1.1, envelope=0.3, lag=0.2),
    ]
)
PLACES = np.linspace(-2.0, 2.0, 7)
FREQUENCIES = np.linspace(0.0, 2.0, 5)


def image(ax: Axes) -> np.ndarray:
    (mesh,) = ax.collections
    return np.asarray(mesh.get_array())


def test_kernel_matrix() -> None:
    ax = plotting.kernel_matrix(MIXTURE, PLACES)
    np.testing.assert_allclose(image(ax), MIXTURE(PLACES[:, None]))


@pytest.mark.parametrize(
    ("part", "function"), [("real", np.real), ("imaginary", np.imag), ("absolute", np.abs)]
)
def test_generalized_spectral_density(part: Any, function: Any) -> None:
    w = FREQUENCIES[:, None]
    ax = plotting.generalized_spectral_density(MIXTURE, w, part=part, colour_bar=False)
    density = MIXTURE.generalized_spectral_density(w, w).numpy()
    np.testing.assert_allclose(image(ax), function(density))


def test_wigner_with_the_frequencies_of_each_component_over_its_centre() -> None:
    blocks = [FourierFeatures([[0.5], [-1.3]]), FourierFeatures([[0.8]])]
    ax = plotting.wigner(
        MIXTURE, PLACES, FREQUENCIES, inducing_variable=SumInducingVariables(blocks)
    )
    expected = MIXTURE.wigner(PLACES[:, None], FREQUENCIES[:, None]).numpy()
    np.testing.assert_allclose(image(ax), expected.T)
    first, second = (np.stack(line.get_data(), axis=1) for line in ax.lines)
    np.testing.assert_allclose(first, [[-0.4, 0.5], [-0.4, 1.3]])
    np.testing.assert_allclose(second, [[1.1, 0.8]])


def test_wigner_of_a_stationary_kernel_is_the_same_everywhere() -> None:
    kernel = SpectralMixture([SpectralComponent([0.7], lag=0.05)])
    values = image(plotting.wigner(kernel, PLACES, FREQUENCIES))
    np.testing.assert_allclose(values, np.repeat(values[:, :1], len(PLACES), axis=1))
    assert np.argmax(values[:, 0]) == 1  # 0.5, the nearest to 0.7 but for 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plotting.kernel_matrix(MIXTURE, np.zeros([3, 2])), "x must be"),
        (lambda: plotting.generalized_spectral_density(MIXTURE, PLACES, part="phase"), "part"),
        (
            lambda: plotting.wigner(
                MIXTURE, PLACES, FREQUENCIES, inducing_variable=FourierFeatures([[0.5]])
            ),
            "must be FourierFeatures for each component of the kernel, found FourierFeatures for "
            "HarmonizableMixture; pass FourierFeatures.for_kernel",
        ),
    ],
    ids=["columns", "part", "features"],
)
def test_spectral_kernel_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
