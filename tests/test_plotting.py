"""The pictures hold the data they are given."""

import sys
from collections.abc import Iterator

import gpflow
import numpy as np
import pytest
from gpflow.kernels import RBF
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from interdomain import diagnostics, plotting, tables
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import ArcCosine, SphericalMatern52
from interdomain.models import OrthogonalSVGP
from interdomain.tables import Additive, AdditiveFeatures
from interdomain.tables.report import Effects

pyplot.switch_backend("Agg")
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
    ax = found.plot()
    kernel, activation, missing = drawn(ax).values()
    np.testing.assert_array_equal(kernel, np.stack([np.arange(9), found.kernel_roots], axis=1))
    used = [0, 1, 2, 4, 6, 8]
    expected = np.stack([used, found.activation_coefficients[used]], axis=1)
    np.testing.assert_array_equal(activation, expected)
    np.testing.assert_array_equal(missing[:, 0], [3, 5, 7])
    assert f"missing: {found.missing_share:.2g} of the variance" in drawn(ax)
    ax.figure.canvas.draw()  # that the labels are mathematics that can be drawn


def test_harmonic_shares() -> None:
    kernel = SphericalMatern52(weight_variances=[0.3, 1.0, 0.01])
    inputs = np.random.default_rng(1).normal(size=(50, 3))
    harmonics = SphericalHarmonics.for_data(kernel, inputs, 40)
    found = diagnostics.harmonic_shares(harmonics, kernel, inputs, column_names=["a", "b", "c"])
    ax = found.plot()
    widths = np.reshape([bar.get_width() for bar in ax.patches], [max(found.degrees), -1])
    expected = np.sum(found.shares[found.degrees == 1, None] * found.raises[found.degrees == 1], 0)
    np.testing.assert_allclose(widths[0], expected, rtol=1e-12)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c, a", "b", "bias"]
    shares = diagnostics.harmonic_shares(SphericalHarmonics(4, [0]), kernel, inputs)
    assert not shares.plot().patches  # of the constant alone


def test_variance_terms() -> None:
    likelihood = gpflow.likelihoods.Gaussian()
    model = OrthogonalSVGP(RBF(lengthscales=0.5), likelihood, Z, W, num_latent_gps=2)
    model.q_sqrt.assign(np.stack([0.3 * np.eye(4), 0.6 * np.eye(4)]))
    model.q_sqrt_orthogonal.assign(np.stack([0.5 * np.eye(3), 0.8 * np.eye(3)]))
    terms = diagnostics.variance_terms(model, X)
    ax = terms.plot(X, latent=1)
    order = np.argsort(X[:, 0])
    *_, uncertain, explained, _, variance = drawn(ax).values()
    assert len(ax.lines) == 5
    for line, values in (
        (uncertain, terms.uncertain),
        (explained, terms.orthogonal_explained),
        (variance, model.predict_f(X)[1]),
    ):
        np.testing.assert_array_equal(line[:, 0], X[order, 0])
        np.testing.assert_allclose(line[:, 1], values.numpy()[order, 1], atol=1e-12)


@pytest.fixture(scope="module")
def report() -> Effects:
    """Of a table with columns of numbers, one with far values, and of levels."""
    rng = np.random.default_rng(0)
    table = np.column_stack(
        [rng.uniform(20, 80, 90), rng.lognormal(3.0, 1.5, 90), rng.choice([1.0, 2.0, 7.0], 90)]
    )
    wanted = ["main", "pairs", (0, 1, 2)]
    names = ["age in years", "income", "site"]
    kernel = Additive.from_data(table, wanted, names=names, categorical=["site"])
    features = AdditiveFeatures.for_kernel(kernel, 80)
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), features)
    model.q_mu.assign(rng.normal(size=[features.num_inducing, 1]))
    model.q_sqrt.assign(0.2 * model.q_sqrt)
    return tables.effects(model, table)


def test_effects_of_one_column(report: Effects) -> None:
    """Of numbers, in the column's units, and of levels; with two standard deviations."""
    _, given = pyplot.subplots()
    assert report.plot_effect("income", given, label="f in mg") is given
    line = given.lines[1].get_xydata()
    mean, variance = report.of("income", line[:, 0])
    np.testing.assert_allclose(line[:, 1], mean)
    (band,) = given.collections
    height = np.ptp(band.get_datalim(given.transData).intervaly)
    spread = 2 * np.sqrt(variance)
    np.testing.assert_allclose(height, np.max(mean + spread) - np.min(mean - spread))
    assert (given.get_xlabel(), given.get_ylabel()) == ("income", "f in mg")
    ax = report.plot_effect("site")
    mean, _ = report.of("site", [1.0, 2.0, 7.0])
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], mean)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "7"]


def test_maps_of_pairs(report: Effects) -> None:
    first, second, _ = report.columns
    numbers, levels = (report.plot_effect(pair) for pair in ((0, "income"), (1, 2)))
    corner = report.of((0, 1), [[first.knots[0], second.knots[-1]]])[0][0]
    np.testing.assert_allclose(image(numbers)[-1, 0], corner)
    assert (numbers.get_xlabel(), numbers.get_ylabel()) == ("age in years", "income")
    edge = [[second.knots[0], level] for level in (1.0, 2.0, 7.0)]
    np.testing.assert_allclose(image(levels)[:, 0], report.of((1, 2), edge)[0])


def test_the_largest_effects(report: Effects) -> None:
    """Those of three columns cannot be drawn; the axes of effects are the same."""
    figure = report.plot(5)
    panels = [ax for ax in figure.axes if ax.get_title()]
    drawable = [k for k in report.order if len(report.effects[k]) <= 2][:5]
    for ax, k in zip(panels, drawable, strict=True):
        assert ax.get_title().replace("\n", " ").startswith(report.names[k] + ": ")
    assert len({ax.get_ylim() for ax in panels if ax.get_ylabel() == "effect"}) == 1


LATITUDE, LONGITUDE = np.linspace(87.5, -87.5, 36), np.linspace(22.5, 377.5, 72)
HEIGHT = np.cos(np.radians(LATITUDE))[:, None] * np.cos(np.radians(LONGITUDE))  # of the first axis


def test_globe() -> None:
    """Seen around once: the grid is cut at the date line; what is north is on the northern disc."""
    oval, *discs = plotting.globe(
        LATITUDE, LONGITUDE, HEIGHT, coastline=HEIGHT, title="map", label="height (m)", vmin=-1
    )
    meshes = [c for c in oval.collections if isinstance(c, QuadMesh)]
    assert sum(np.size(mesh.get_array()) for mesh in meshes) == 2 * 36 * 73  # twice, closed
    for mesh in meshes:
        east, north = np.moveaxis(np.degrees(mesh.get_coordinates()), -1, 0)
        assert -180.0001 < east.min() < east.max() < 180.0001 and np.ptp(north) == 180
        centre = (east[:-1, :-1] + east[1:, 1:]) / 2, (north[:-1, :-1] + north[1:, 1:]) / 2
        inside = np.diff(east, axis=1)[:-1] > 4.9
        expected = np.cos(np.radians(centre[0])) * np.cos(np.radians(centre[1]))
        np.testing.assert_allclose(np.asarray(mesh.get_array())[inside], expected[inside])
    for ax, pole in zip(discs, (1, -1), strict=True):
        (mesh,) = (c for c in ax.collections if isinstance(c, QuadMesh))
        assert np.shape(mesh.get_array())[1] == len(LONGITUDE) + 1
        assert np.min(mesh.get_coordinates()[..., 1]) == pytest.approx(0, abs=1e-12)
        assert ax.get_rmax() == pytest.approx(2 * np.sin(np.pi / 12))  # of an equal-area projection
        assert ax.get_theta_direction() == pole
    assert oval.get_title() == "map" and oval.figure.axes[-1].get_xlabel() == "height (m)"
    oval.figure.canvas.draw()


def test_errors(report: Effects) -> None:
    for call, message in [
        (lambda: report.plot_effect((0, 1, 2)), "one or two columns .*, found 'age in years"),
        (lambda: plotting.globe(LONGITUDE, LATITUDE, HEIGHT.T), "latitude must be .*found 22.5 to"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = diagnostics.spectrum(ArcCosine(), "relu", 2, 3)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'interdomain\[plot\]'"):
        found.plot()


def image(ax: Axes) -> np.ndarray:
    (mesh,) = ax.collections
    return np.asarray(mesh.get_array())
