"""The pictures hold the data they are given."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import gpflow
import matplotlib
import numpy as np
import pytest
from gpflow.kernels import RBF

from interdomain import diagnostics, plotting
from interdomain.inducing_variables import (
    AdditiveFeatures,
    FourierFeatures,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import (
    Additive,
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
from matplotlib.collections import QuadMesh  # noqa: E402

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


@pytest.fixture(scope="module")
def of_table() -> diagnostics.Effects:
    """Of a table with columns of numbers, one with far values, and of levels."""
    rng = np.random.default_rng(0)
    table = np.column_stack(
        [rng.uniform(20, 80, 90), rng.lognormal(3.0, 1.5, 90), rng.choice([1.0, 2.0, 7.0], 90)]
    )
    wanted = ["main", "pairs", (0, 1, 2)]
    names = ["age in years", "income", "site"]
    kernel = Additive.from_data(table, wanted, names=names, categorical=["site"])
    features = AdditiveFeatures.for_kernel(kernel, 80)
    shape = [features.num_inducing, 1]
    weights = rng.normal(size=shape)
    root = 0.2 * np.eye(features.num_inducing)[None]
    model = gpflow.models.SVGP(
        kernel, gpflow.likelihoods.Gaussian(), features, q_mu=weights, q_sqrt=root
    )
    return diagnostics.effects(model, table)


def test_effect_of_a_column_of_numbers(of_table: diagnostics.Effects) -> None:
    figure, given = pyplot.subplots()
    assert plotting.effect(of_table, "income", given, label="f in mg") is given
    line = given.lines[1].get_xydata()
    mean, variance = of_table.of("income", line[:, 0])
    np.testing.assert_allclose(line[:, 1], mean)
    knots = of_table.columns[1].knots
    np.testing.assert_allclose(given.get_xlim(), knots[[0, -1]])  # in the column's units
    (band,) = given.collections
    height = np.ptp(band.get_datalim(given.transData).intervaly)
    spread = 2 * np.sqrt(variance)
    np.testing.assert_allclose(height, np.max(mean + spread) - np.min(mean - spread))
    assert given.get_xlabel() == "income" and given.get_ylabel() == "f in mg"
    k = of_table.names.index("income")
    share, deviation = of_table.shares[k], of_table.share_deviations[k]
    assert given.get_title() == f"income: {share:.1%} ± {deviation:.1%}"
    figure.canvas.draw()


def test_effect_of_levels(of_table: diagnostics.Effects) -> None:
    ax = plotting.effect(of_table, "site")
    mean, variance = of_table.of("site", [1.0, 2.0, 7.0])
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], mean)
    (bars,) = ax.collections
    segments = np.array(bars.get_segments())[:, :, 1]
    np.testing.assert_allclose(np.diff(segments)[:, 0], 4 * np.sqrt(variance))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "7"]


def test_maps_of_pairs(of_table: diagnostics.Effects) -> None:
    numbers = plotting.effect(of_table, ("age in years", "income"))
    values = image(numbers)
    columns = of_table.columns[:2]
    corner = [[columns[0].knots[0], columns[1].knots[-1]]]
    np.testing.assert_allclose(values[-1, 0], of_table.of((0, 1), corner)[0][0])
    low, high = numbers.collections[0].get_clim()
    assert low == -high and high == np.max(np.abs(values))
    assert (numbers.get_xlabel(), numbers.get_ylabel()) == ("age in years", "income")
    levels = plotting.effect(of_table, (1, 2))
    np.testing.assert_allclose(
        image(levels)[:, 0],
        of_table.of((1, 2), [[columns[1].knots[0], level] for level in (1.0, 2.0, 7.0)])[0],
    )
    assert [label.get_text() for label in levels.get_yticklabels()] == ["1", "2", "7"]
    for ax in (numbers, levels):
        assert len(ax.figure.axes) == 2 and ax.figure.axes[1].get_ylabel() == "effect"
        ax.figure.canvas.draw()


def test_the_largest_effects(of_table: diagnostics.Effects) -> None:
    figure = plotting.effects(of_table, 5, columns=2)
    panels = [ax for ax in figure.axes if ax.get_title()]
    drawable = [k for k in of_table.order if len(of_table.effects[k]) <= 2][:5]
    titles = [ax.get_title().replace("\n", " ") for ax in panels]
    for title, k in zip(titles, drawable, strict=True):
        assert title.startswith(of_table.names[k] + ": ")
    assert len({ax.get_ylim() for ax in panels if ax.get_ylabel() == "effect"}) == 1
    figure.canvas.draw()
    boxes = [ax.title.get_window_extent() for ax in panels]
    assert all(0 <= box.x0 and box.x1 <= figure.bbox.width for box in boxes)


def test_effect_shares(of_table: diagnostics.Effects) -> None:
    ax = plotting.effect_shares(of_table, num=4)
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths[:4], of_table.shares[list(of_table.order[:4])])
    np.testing.assert_allclose(sum(widths), 1)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[4] == "3 others" and labels[0] == of_table.names[of_table.order[0]]
    (bars,) = ax.collections
    ends = np.array(bars.get_segments())[:4, 1, 0]
    deviations = of_table.share_deviations[list(of_table.order[:4])]
    np.testing.assert_allclose(ends, widths[:4] + 2 * deviations)
    assert plotting.effect_shares(of_table, num=1).get_legend() is None
    ax = plotting.effect_shares(of_table)
    assert len(ax.patches) == 7
    colours = {"one column": "C0", "interaction": "C1"}
    for handle, text in zip(ax.get_legend().legend_handles, ax.get_legend().texts, strict=True):
        assert matplotlib.colors.same_color(handle.get_facecolor(), colours[text.get_text()])


LATITUDE, LONGITUDE = np.linspace(87.5, -87.5, 36), np.linspace(22.5, 377.5, 72)
HEIGHT = np.cos(np.radians(LATITUDE))[:, None] * np.cos(np.radians(LONGITUDE))  # of the first axis


def test_globe() -> None:
    """Seen around once: the grid is cut at the date line; what is north is on the northern disc."""
    axes = plotting.globe(
        LATITUDE, LONGITUDE, HEIGHT, coastline=HEIGHT, title="map", label="height (m)", vmin=-1
    )
    meshes = [c for c in axes.map.collections if isinstance(c, QuadMesh)]
    assert sum(np.size(mesh.get_array()) for mesh in meshes) == 2 * HEIGHT.size
    for mesh in meshes:
        east, north = np.moveaxis(np.degrees(mesh.get_coordinates()), -1, 0)
        assert -180.0001 < east.min() < east.max() < 180.0001 and np.ptp(north) == 180
        centre = (east[:-1, :-1] + east[1:, 1:]) / 2, (north[:-1, :-1] + north[1:, 1:]) / 2
        inside = np.diff(east, axis=1)[:-1] > 4.9
        expected = np.cos(np.radians(centre[0])) * np.cos(np.radians(centre[1]))
        np.testing.assert_allclose(np.asarray(mesh.get_array())[inside], expected[inside])
    for ax, pole in ((axes.north, 1), (axes.south, -1)):
        (mesh,) = (c for c in ax.collections if isinstance(c, QuadMesh))
        heights, places = np.asarray(mesh.get_array()), np.mean(mesh.get_coordinates()[..., 1])
        assert heights.shape[1] == len(LONGITUDE) and abs(places) < 0.05
        np.testing.assert_allclose(plotting.on_disc(90 * pole, 33.0, pole), 0, atol=1e-15)
    np.testing.assert_allclose(plotting.on_disc(60.0, 0.0, 1), [0, -2 * np.sin(np.pi / 12)])
    assert axes.map.get_title() == "map" and axes.map.figure.axes[-1].get_xlabel() == "height (m)"
    axes.map.figure.canvas.draw()


def test_errors(of_table: diagnostics.Effects) -> None:
    model = gpflow.models.SVGP(RBF(), gpflow.likelihoods.Gaussian(), Z)
    terms = diagnostics.variance_terms(model, X)
    with pytest.raises(ValueError, match=r"x must be \[N\] or .* N = 12, .* found shape \(5, 1\)"):
        plotting.variance_terms(X[:5], terms)
    with pytest.raises(ValueError, match="one or two columns to be drawn, found 'age in years x"):
        plotting.effect(of_table, (0, 1, 2))
    with pytest.raises(ValueError, match="report must be an Effects report, found .* pass"):
        plotting.effects(np.zeros(3))
    with pytest.raises(ValueError, match="latitude must be from -90 to 90 degrees, found 22.5 to"):
        plotting.globe(LONGITUDE, LATITUDE, HEIGHT.T)
    with pytest.raises(ValueError, match="longitude must increase by 360 degrees at most"):
        plotting.globe(LATITUDE, LONGITUDE[::-1], HEIGHT)
    with pytest.raises(ValueError, match=r"values must be \[H, W\] = \[36, 72\].* found .*72, 36"):
        plotting.globe(LATITUDE, LONGITUDE, HEIGHT.T)


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
    assert [other.get_ylabel() for other in ax.figure.axes] == ["x", "covariance"]


def test_generalized_spectral_density() -> None:
    w = FREQUENCIES[:, None]
    density = MIXTURE.generalized_spectral_density(w, w).numpy()
    for part, function in {"real": np.real, "imaginary": np.imag, "absolute": np.abs}.items():
        ax = plotting.generalized_spectral_density(MIXTURE, w, part=part, colour_bar=False)
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


def test_spectral_kernel_errors() -> None:
    one = FourierFeatures([[0.5]])
    message = (
        "must be FourierFeatures for each component of the kernel, found FourierFeatures for "
        "HarmonizableMixture; pass FourierFeatures.for_kernel"
    )
    with pytest.raises(ValueError, match=message):
        plotting.wigner(MIXTURE, PLACES, FREQUENCIES, inducing_variable=one)
