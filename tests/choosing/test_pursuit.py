"""Features chosen by the data: those that made them are found, and no others are asked for."""

from typing import Any

import gpflow
import numpy as np
import pytest

from interdomain.choosing import Pursuit
from interdomain.choosing import pursuit as choosing_pursuit
from interdomain.core.dictionaries import Dictionary
from interdomain.core.finite_rank import block_of
from interdomain.core.pairs import dictionary_of
from interdomain.covariances import Kuu_operator
from interdomain.families.sphere.mathematics.dimensions import chains_of_degrees
from interdomain.inducing_variables import (
    BoxFourierFeatures,
    SphericalHarmonics,
    VariationalFourierFeatures,
)
from interdomain.kernels import (
    ArcCosine,
    FiniteRank,
    FreeSpectrum,
    Periodized,
    SphericalMatern32,
    SphericalMatern52,
    ZonalKernel,
)
from interdomain.models import StructuredSGPR
from interdomain.training.lbfgs import fit_by_lbfgs

RNG = np.random.default_rng(0)
X = RNG.normal(size=[150, 2])
NOISE = 0.1 * RNG.normal(size=[150, 1])
BOX = RNG.uniform(size=[150, 2])


def harmonic_model(
    rows: np.ndarray = X, Y: np.ndarray | None = None, *, finite_rank: bool = True
) -> StructuredSGPR:
    columns = rows.shape[1]
    kernel = SphericalMatern32(weight_variances=np.ones(columns))
    few = SphericalHarmonics.for_kernel(kernel, columns, 1)
    for parameter in kernel.parameters:
        gpflow.set_trainable(parameter, False)
    Y = np.sin(3 * rows[:, :1]) + NOISE if Y is None else Y
    prior = FiniteRank(kernel, few) if finite_rank else kernel
    return StructuredSGPR((rows, Y), prior, few, noise_variance=0.01)


def pursue(model: StructuredSGPR, num_inducing: int, steps: int = 0, **arguments: Any) -> Pursuit:
    defaults: dict[str, Any] = {"max_candidates": 200, "fill": False, "progress": False}
    if steps:
        defaults["train"] = lambda: fit_by_lbfgs(model, steps=steps)
    return choosing_pursuit.pursue(model, num_inducing, **(defaults | arguments))


@pytest.mark.filterwarnings("ignore:data. columns of X are far")
def test_harmonics_that_made_the_data_are_found_first() -> None:
    """Harmonics of degree 4 in six columns are found: 182, beside 112 of lower degrees."""
    sphere = np.random.default_rng(1).normal(size=[600, 7])
    rows = sphere[:, :6] / np.abs(sphere[:, 6:])  # so that they are uniform there
    truth = np.array([[0, 0, 0, 1, 2, 4], [-2, 2, 2, 2, 3, 4], [1, 4, 4, 4, 4, 4]])
    kernel = SphericalMatern32(weight_variances=np.ones(6), radial_power=0.0)
    few = SphericalHarmonics.for_kernel(kernel, 6, 1)
    # Which these are depends on the order of the columns.
    made, _ = block_of(dictionary_of(few, kernel).arranged(rows), truth)
    Y = gpflow.covariances.Kuf(made, kernel, rows).numpy().T @ np.ones([3, 1])
    Y += 0.1 * np.random.default_rng(2).normal(size=Y.shape)
    model = StructuredSGPR((rows, Y), FiniteRank(kernel, few), few, noise_variance=0.01)
    found = pursue(model, 11, max_candidates=400)
    assert found.reason == "num_inducing" and len(found.rounds) == 2
    assert sorted(found.atoms[8:].tolist()) == sorted(truth.tolist())
    assert model.inducing_variable.num_inducing == 11
    assert model.inducing_variable.column_order == made.column_order
    np.testing.assert_array_equal(model.inducing_variable.chains, found.atoms)
    assert model.kernel.inducing_variable is model.inducing_variable
    assert found.rounds[-1].elbo > found.rounds[0].elbo + 100
    assert "ended by num_inducing" in str(found)


def test_the_bound_of_a_whole_kernel_never_falls() -> None:
    """Every feature of it raises the bound; the noise is trained."""
    model = harmonic_model(finite_rank=False)
    found = pursue(model, 15, steps=2, least_gain=0.0, growth=2)
    assert np.all(np.diff([one.elbo for one in found.rounds]) > 0)
    assert [one.num_inducing for one in found.rounds] == [4, 8, 15]
    assert found.best == 2 and found.reason == "num_inducing"
    assert isinstance(model.kernel, SphericalMatern32)
    assert float(model.elbo()) == pytest.approx(found.rounds[-1].elbo)
    assert model.likelihood.variance != 0.01


def wave_data() -> np.ndarray:
    first, second = 2 * np.pi * BOX.T
    waves = np.cos(11 * first) + np.sin(9 * second) + np.cos(3 * first) * np.sin(5 * second)
    return waves[:, None] + NOISE


def test_frequencies_that_made_the_data_are_found_first() -> None:
    """Also where a round adds fewer features than any atom has. An atom for which there is no room
    is left."""
    base = gpflow.kernels.Matern12(lengthscales=[0.2, 0.2])
    kernel = Periodized(base, [0.0, 0.0], [1.0, 1.0], active_dims=[0, 1])
    constant = BoxFourierFeatures(kernel.lower, kernel.upper, [[0, 0]])
    model = StructuredSGPR((BOX, wave_data()), FiniteRank(kernel, constant), constant)
    model.likelihood.variance.assign(0.01)
    assert pursue(model, 2).reason == "num_inducing" and model.inducing_variable.num_inducing == 1
    found = pursue(model, 9, max_candidates=800, growth=1.1)
    rows = {tuple(row) for row in found.atoms.tolist()}
    assert rows == {(0, 0), (11, 0), (0, 9), (3, 5)}
    assert found.reason == "num_inducing" and model.inducing_variable.num_inducing == 9


def test_noise_asks_for_nothing() -> None:
    Y = 2 * np.random.default_rng(5).normal(size=[150, 1])
    model = harmonic_model(Y=Y)
    model.likelihood.variance.assign(4.0)
    found = pursue(model, 12, least_gain=4.0)
    assert found.reason == "elbo" and len(found.rounds) == 1
    assert model.inducing_variable.num_inducing == 4
    # What is left is filled with those of most prior variance, whatever y is.
    found = pursue(model, 12, least_gain=4.0, fill=True)
    assert found.reason == "elbo" and found.best == 1
    chosen = SphericalHarmonics.for_data(model.kernel.kernel, X, 12)
    assert sorted(found.atoms.tolist()) == sorted(chosen.chains.tolist())


def test_a_round_that_lowers_the_bound_is_undone() -> None:
    """With the features and the parameters of the best round again."""
    model = harmonic_model(X[:30], np.random.default_rng(3).normal(size=[30, 1]))
    model.likelihood.variance.assign(1.0)
    bounds = []

    def spoil() -> None:
        model.likelihood.variance.assign(1.0 if not bounds else 50.0)
        bounds.append(1)

    found = pursue(model, 16, growth=1.3, train=spoil, least_gain=0.0)
    assert found.reason == "elbo" and len(bounds) == 2 and found.best == 1
    assert float(model.likelihood.variance.numpy()) == pytest.approx(1.0)
    assert model.inducing_variable.num_inducing == found.rounds[1].num_inducing
    assert float(model.elbo()) == pytest.approx(found.rounds[1].elbo)


def test_in_float32() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        model = harmonic_model(
            X.astype(np.float32), (np.sin(3 * X[:, :1]) + NOISE).astype(np.float32)
        )
        found = pursue(model, 20, steps=2, growth=3)
        assert found.rounds[-1].elbo > found.rounds[0].elbo + 50
        assert model.inducing_variable.num_inducing > 8


def test_wrong_calls() -> None:
    small = harmonic_model()
    sums = StructuredSGPR(small.statistics, small.kernel, small.inducing_variable)
    with pytest.raises(ValueError, match="data: the model was built from SufficientStatistics"):
        pursue(sums, 10)


# The features that a model can choose from: which are next, which are likeliest, and whose.

ROWS = np.random.default_rng(0).normal(size=[50, 2])
SCALES = np.array([1.0, 0.01])


def harmonics_of(kernel: ZonalKernel, max_degree: int) -> SphericalHarmonics:
    return SphericalHarmonics.for_kernel(kernel, 2, max_degree)


def found(features: Any, kernel: Any) -> Dictionary:
    dictionary = dictionary_of(features, kernel)
    assert dictionary is not None
    return dictionary


def rows_of(atoms: np.ndarray) -> list[list[int]]:
    return sorted(atoms.tolist())


def test_neighbours_of_harmonics_cross_degrees_that_the_kernel_lacks() -> None:
    """The arc-cosine kernel has degrees 0, 1, 2, 4, 6, ..."""
    own = found(harmonics_of(kernel := ArcCosine(), 2), kernel)
    whole = chains_of_degrees(3, (0, 1, 2))
    assert rows_of(own.neighbours(whole)) == rows_of(chains_of_degrees(3, [4]))
    # Not only where there is nothing nearer: (0, 2) is raised twice, across degree 3.
    some = np.array([[0, 0], [0, 1], [0, 2]])
    nearer = [[-1, 1], [-1, 2], [1, 1], [1, 2]]
    beyond = [[-2, 4], [-1, 4], [0, 4], [1, 4], [2, 4]]
    assert rows_of(own.neighbours(some)) == sorted(nearer + beyond)
    # Those of the first atom first.
    assert rows_of(own.neighbours(some[::-1], limit=5)) == beyond
    assert rows_of(own.neighbours(some, limit=2)) == [[-1, 1], [1, 1]]
    # Harmonics end with the kernel.
    own = found(SphericalHarmonics(3, [0, 1]), FreeSpectrum([0.5]))
    assert own.neighbours(own.atoms).shape == (0, 2)
    assert len(own.neighbours(own.atoms[:2])) == 2


def test_arranged_harmonics_span_the_same() -> None:
    kernel = SphericalMatern52(weight_variances=SCALES)
    own = found(harmonics_of(kernel, 2), kernel)
    arranged, _ = block_of(own.arranged(ROWS), own.atoms)
    assert isinstance(arranged, SphericalHarmonics) and arranged.column_order == (1, 0)
    before = FiniteRank(kernel, harmonics_of(kernel, 2))(ROWS)
    np.testing.assert_allclose(FiniteRank(kernel, arranged)(ROWS), before, atol=1e-12)
    # Chosen ones do not, and stay.
    chosen = found(SphericalHarmonics(3, chains=[[0, 0], [0, 2]]), kernel)
    assert chosen.arranged(ROWS) is chosen


def test_likeliest_harmonics_come_first() -> None:
    kernel = SphericalMatern52(weight_variances=SCALES)
    own = found(harmonics_of(kernel, 1), kernel).arranged(ROWS)
    many = own.likeliest(ROWS, 40)
    np.testing.assert_array_equal(own.likeliest(ROWS, 7), many[:7])
    harmonics, _ = block_of(own, many)
    features = gpflow.covariances.Kuf(harmonics, kernel, ROWS).numpy()
    shares = np.mean(features**2, axis=1) / Kuu_operator(harmonics, kernel).diag_part().numpy()
    assert np.mean(shares[:10]) > 10 * np.mean(shares[-10:])


def test_waves() -> None:
    kernel = Periodized(gpflow.kernels.Matern32(lengthscales=[2.0, 1.0]), [0.0, 0.0], [4.0, 4.0])
    own = found(BoxFourierFeatures.for_kernel(kernel, 9), kernel)
    np.testing.assert_array_equal(own.atoms, kernel.largest_frequencies(9))
    atoms = np.array([[1, 2], [0, 0], [0, 3]])
    assert own.neighbours(atoms).tolist() == [[2, 2], [1, 3], [1, 0], [0, 1], [0, 4]]
    assert own.neighbours(atoms, limit=3).tolist() == [[2, 2], [1, 3], [1, 0]]
    features, same = block_of(own, atoms)
    assert same is kernel and isinstance(features, BoxFourierFeatures)
    owners = own.owners(atoms)
    assert np.bincount(owners).tolist() == [4, 1, 2]
    np.testing.assert_array_equal((features.functions + 1) // 2, atoms[owners])
    assert not own.finite_rank
    # Those without variance are not likely.
    kernel = Periodized(gpflow.kernels.SquaredExponential(), 0.0, 4.0, active_dims=[0])
    likeliest = found(BoxFourierFeatures.for_kernel(kernel, 5), kernel).likeliest(ROWS, 1_000)
    assert 4 < len(likeliest) < 20
    np.testing.assert_array_equal(likeliest[:, 0], np.arange(len(likeliest)))


def test_others_have_none() -> None:
    points = gpflow.inducing_variables.InducingPoints(ROWS[:3])
    matern = gpflow.kernels.Matern32()
    assert dictionary_of(points, matern) is None
    assert dictionary_of(points, FiniteRank(matern, points)) is None
    assert dictionary_of(VariationalFourierFeatures(0.0, 1.0, 3), matern) is None
