"""Where likelihoods meet their targets: what is known of each, in every model, right or refused."""

from __future__ import annotations

import pickle
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.likelihoods import Gaussian

import interdomain as idm
from interdomain.diagnostics.candidates import _likelihood_code
from interdomain.diagnostics.prepared import prepare
from interdomain.diagnostics.recommend import _reasons
from interdomain.models import CollapsedSVGP, StructuredSGPR
from interdomain.models.targets import densities_of
from interdomain.training import Entrant, Race, RaceEntry, RacePoint
from interdomain.training.data import make_batches
from interdomain.training.validation import failing_likelihood

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, [12, 1])
Z = np.linspace(-1, 1, 4)[:, None]
KERNEL_VARIANCE = 1.5


def kernel() -> Any:
    made = gpflow.kernels.Matern52(variance=KERNEL_VARIANCE, lengthscales=0.5)
    gpflow.set_trainable(made, False)
    return made


def points() -> Any:
    made = gpflow.inducing_variables.InducingPoints(Z.copy())
    gpflow.set_trainable(made, False)
    return made


def svgp(likelihood: Any, num_latent_gps: int = 1) -> Any:
    return gpflow.models.SVGP(
        kernel(), likelihood, points(), num_latent_gps=num_latent_gps, num_data=len(X)
    )


def collapsed(likelihood: Any, Y: Any, **arguments: Any) -> CollapsedSVGP:
    return CollapsedSVGP((X, Y), kernel(), likelihood, points(), progress=False, **arguments)


MISSING = -999.0


class WithoutMissing(Gaussian):
    """Gaussian, where targets of -999 say nothing (GPflow #671)."""

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        noise = self._variance(X)
        each = -0.5 * (tf.math.log(2 * np.pi * noise) + ((Y - Fmu) ** 2 + Fvar) / noise)
        return tf.reduce_sum(tf.where(tf.equal(Y, MISSING), tf.zeros_like(each), each), axis=-1)


class Renamed(Gaussian):
    """Another constructor, and nothing else."""

    def __init__(self) -> None:
        super().__init__(0.2)


def with_method_replaced() -> Gaussian:
    likelihood = Gaussian(0.2)
    likelihood._variational_expectations = WithoutMissing._variational_expectations
    return likelihood


def test_whose_densities_a_likelihood_has() -> None:
    class Mixed(gpflow.base.Module):
        def _scalar_log_prob(self, X: Any, F: Any, Y: Any) -> Any:
            return F

    class OfAMixin(Mixed, Gaussian):
        """Its densities come before those of Gaussian."""

    for likelihood in (Gaussian(), Renamed(), gpflow.likelihoods.Bernoulli()):
        assert densities_of(likelihood) in (Gaussian, gpflow.likelihoods.Bernoulli)
    for other in (WithoutMissing(), OfAMixin(), with_method_replaced(), None, object()):
        assert densities_of(other) is None


@pytest.mark.parametrize("make", [WithoutMissing, with_method_replaced], ids=["class", "instance"])
def test_the_closed_form_is_for_the_densities_of_gaussian(make: Any) -> None:
    Y = np.where(np.arange(len(X))[:, None] % 3 == 0, MISSING, np.sin(3 * X))
    for call in (
        lambda: StructuredSGPR((X, Y), kernel(), points(), likelihood=make()),
        lambda: idm.training.start_at_optimum(svgp(make()), (X, Y)),
    ):
        with pytest.raises(ValueError, match="densities of its own; .*CollapsedSVGP"):
            call()
    for own in (Renamed(), Gaussian(0.2)):
        assert StructuredSGPR((X, X), kernel(), points(), likelihood=own).likelihood is own


def test_targets_that_are_missing_leave_the_others() -> None:
    """The model that is named takes them: one step gives the exact posterior of the others."""
    missing = np.arange(len(X)) % 3 == 0
    Y = np.where(missing[:, None], MISSING, np.sin(3 * X))
    model = collapsed(WithoutMissing(0.2), Y)
    model.assign_sites(model.pass_over_data().sites)
    K = lambda A, B: kernel()(A, B).numpy()  # noqa: E731
    Kzz, Kzx = K(Z, Z), K(Z, X[~missing])
    precision = Kzz + Kzx @ Kzx.T / 0.2
    expected = K(X, Z) @ np.linalg.solve(precision, Kzx @ Y[~missing]) / 0.2
    np.testing.assert_allclose(model.predict_f(X)[0], expected, atol=1e-5)


def test_noise_of_each_column_is_no_single_noise() -> None:
    noise = Gaussian(np.array([0.1, 0.4]))
    Y = np.hstack([X, -X])
    with pytest.raises(ValueError, match="its noise is 2 variances"):
        StructuredSGPR((X, Y), kernel(), points(), likelihood=noise)
    with pytest.raises(ValueError, match="differs between the columns of Y"):
        idm.training.start_at_optimum(svgp(noise, 2), (X, Y))


SOURCES = RNG.integers(0, 2, X.shape).astype(float)
VALUES = np.sin(3 * X)


def by_source() -> Any:
    return gpflow.likelihoods.SwitchedLikelihood([Gaussian(0.05), Gaussian(0.4)])


def log_evidence(noise: Any) -> float:
    """Of VALUES under the prior of the points' projection, in NumPy."""
    Kzx, Kzz = kernel()(Z, X).numpy(), kernel()(Z).numpy()
    covariance = Kzx.T @ np.linalg.solve(Kzz + gpflow.default_jitter() * np.eye(len(Z)), Kzx)
    rest = KERNEL_VARIANCE - np.diag(covariance)
    covariance += np.diag(noise)
    alpha = np.linalg.solve(covariance, VALUES)
    determinant = np.linalg.slogdet(2 * np.pi * covariance)[1]
    return -0.5 * (float(np.sum(VALUES * alpha)) + determinant + np.sum(rest / noise))


class KnownNoise(gpflow.likelihoods.QuadratureLikelihood):
    """Values, and beside each the variance of its noise (GPflow's "varying noise")."""

    def __init__(self, latent_dim: int | None = 1, observation_dim: int | None = 2) -> None:
        super().__init__(None, latent_dim, observation_dim)

    @property
    def _quadrature_dim(self) -> int:
        return 1

    def _log_prob(self, X: Any, F: Any, Y: Any) -> Any:
        return gpflow.logdensities.gaussian(Y[..., 0], F[..., 0], Y[..., 1])


def test_noise_by_source_has_one_function() -> None:
    """GPflow #1712: the column that says which likelihood a row has is no function's."""
    Y = np.hstack([VALUES, SOURCES])
    noise = np.where(SOURCES[:, 0] == 1, 0.4, 0.05)
    told = np.hstack([VALUES, noise[:, None]])
    for model in (
        collapsed(by_source(), Y),
        collapsed(by_source(), Y, num_latent_gps=1),
        collapsed(KnownNoise(), told),
        collapsed(KnownNoise(None, None), told, num_latent_gps=1),
    ):
        assert model.num_latent_gps == 1
        model.assign_sites(model.pass_over_data().sites)
        assert model.elbo() == pytest.approx(log_evidence(noise), rel=1e-6)


def test_two_outputs_and_their_source() -> None:
    Y = np.hstack([VALUES, -VALUES, SOURCES])
    assert collapsed(by_source(), Y).num_latent_gps == 2
    assert collapsed(KnownNoise(None, None), Y).num_latent_gps == 3  # of nothing that says more
    with pytest.raises(ValueError, match="Y has 3 columns, .* SwitchedLikelihood .* take 2; pass"):
        collapsed(by_source(), Y, num_latent_gps=1)
    with pytest.raises(ValueError, match="Y has 2 columns, .* Gaussian likelihood take 1"):
        collapsed(Gaussian(), Y[:, :2], num_latent_gps=1)
    with pytest.raises(ValueError, match="num_latent_gps must be 1 for KnownNoise, found 2"):
        collapsed(KnownNoise(), Y[:, :2], num_latent_gps=2)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (np.hstack([VALUES, SOURCES + 1]), "one of the 2 likelihoods: 0, ..., 1, in the last"),
        (np.hstack([VALUES, SOURCES / 2]), "one of the 2 likelihoods: 0, ..., 1, in the last"),
        (np.hstack([VALUES, SOURCES]), "0 or 1 .* for Bernoulli, where the last column is 1"),
        (SOURCES, "Y has 1 columns, .* SwitchedLikelihood likelihood take 2"),
    ],
)
def test_rows_of_a_switched_likelihood(targets: Any, message: str) -> None:
    mixed = gpflow.likelihoods.SwitchedLikelihood([Gaussian(), gpflow.likelihoods.Bernoulli()])
    for call in (
        lambda: collapsed(mixed, targets).pass_over_data(),
        lambda: idm.training.fit(svgp(mixed), (X, targets), steps=1, progress=False),
    ):
        with pytest.raises(ValueError, match=message):
            call()


CLASSES = np.digitize(X, [-0.3, 0.4])
ONE_HOT = np.eye(3)[CLASSES[:, 0]]


@pytest.mark.parametrize("likelihood", [gpflow.likelihoods.Softmax, gpflow.likelihoods.MultiClass])
def test_classes_are_numbers_and_not_columns(likelihood: Any) -> None:
    """GPflow #438, #1591, #2123; as floats, integers and, of two, booleans."""
    for rows in (ONE_HOT, ONE_HOT.astype(int), ONE_HOT > 0):
        for call in (
            lambda rows=rows: collapsed(likelihood(3), rows),
            lambda rows=rows: idm.training.fit(svgp(likelihood(3), 3), (X, rows), progress=False),
            lambda rows=rows: idm.training.fit(
                gpflow.models.VGP((X, rows), kernel(), likelihood(3)), progress=False
            ),
        ):
            with pytest.raises(ValueError, match=r"Y has 3 columns.*np.argmax\(Y, axis=1\)"):
                call()
    bounds = []
    for rows in (CLASSES, CLASSES.astype(float), CLASSES.astype(np.uint8)):
        model = collapsed(likelihood(3), rows)
        bounds.append(model.elbo())
        model.assign_sites(model.pass_over_data().clipped)
        prediction = np.argmax(model.predict_y(X)[0], axis=1)
        assert np.mean(prediction == CLASSES[:, 0]) > 0.9
    assert len(set(bounds)) == 1


def test_a_fit_takes_classes_of_any_type() -> None:
    """The batches of a step are what the likelihood takes."""
    pairs = {
        "Softmax": (gpflow.likelihoods.Softmax(3), 3, CLASSES, tf.int64),
        "two": (gpflow.likelihoods.Softmax(2), 2, CLASSES > 0, tf.int64),
        "MultiClass": (gpflow.likelihoods.MultiClass(3), 3, CLASSES, tf.float64),
        "Bernoulli": (gpflow.likelihoods.Bernoulli(), 1, CLASSES > 0, tf.float64),
        "Poisson": (gpflow.likelihoods.Poisson(), 1, CLASSES, tf.float64),
        "Gaussian": (Gaussian(), 1, CLASSES, tf.float64),
    }
    for name, (likelihood, num_latents, Y, dtype) in pairs.items():
        model = svgp(likelihood, num_latents)
        for given in (Y, Y.astype(float), Y.astype(np.int32)):
            slices = tf.data.Dataset.from_tensor_slices((X, given))
            for data, size in ((X, given), None), ((X, given), len(X)), (slices.batch(12), None):
                batch = make_batches(model, data, full_batch=False, batch_size=size, seed=0).batch(
                    0
                )
                assert batch[1].dtype == dtype, name
                in_order = np.argsort(batch[0][:, 0]), np.argsort(X[:, 0])
                np.testing.assert_array_equal(batch[1].numpy()[in_order[0]], Y[in_order[1]])
        assert np.isfinite(model.elbo(batch)), name


def test_every_batch_of_a_dataset_is_looked_at() -> None:
    wrong = np.where(np.arange(len(X))[:, None] == 7, 3, CLASSES)
    dataset = tf.data.Dataset.from_tensor_slices((X, wrong)).batch(6)
    model = svgp(gpflow.likelihoods.Softmax(3), 3)
    batches = make_batches(model, dataset, full_batch=False, batch_size=None, seed=0)
    batches.batch(0)
    with pytest.raises(ValueError, match="one of the 3 classes: .* Softmax, found 0, 1, ..., 3"):
        batches.batch(1)


def test_log_densities_of_classes_of_any_type() -> None:
    model = svgp(gpflow.likelihoods.Softmax(3), 3)
    densities = []
    for Y in (CLASSES, CLASSES.astype(float)):
        tf.random.set_seed(0)
        found = idm.serving.predict_in_batches(
            model, X, Y=Y, method="predict_log_density", progress=False
        )
        densities.append(found)
    np.testing.assert_array_equal(*densities)
    for wrong, message in ((ONE_HOT, "Y has 3 columns"), (CLASSES + 1, "one of the 3 classes")):
        with pytest.raises(ValueError, match=message):
            idm.serving.predict_in_batches(
                model, X, Y=wrong, method="predict_log_density", progress=False
            )


def test_candidates_have_the_functions_of_the_likelihood() -> None:
    rows = np.linspace(-1, 1, 60)[:, None]
    values, source = np.sin(3 * rows), (np.arange(60)[:, None] % 2).astype(float)
    known = np.hstack([values, 0.1 + source])
    for likelihood, Y, num_latent in (
        (by_source(), np.hstack([values, source]), 1),
        (by_source(), np.hstack([values, -values, source]), 2),
        (KnownNoise(), known, 1),
        (gpflow.likelihoods.Softmax(3), np.digitize(values, [-0.5, 0.5]), 3),
    ):
        found = idm.diagnostics.candidates(rows, Y, likelihood)
        numbers = {name: one.arguments.get("num_latent") for name, one in found.items()}
        assert set(numbers.values()) == {num_latent}, numbers
        assert found["points"].entrant.build((rows, Y)).num_latent_gps == num_latent


@pytest.mark.parametrize(
    ("likelihood", "targets", "message"),
    [
        (gpflow.likelihoods.Softmax(3), np.eye(3)[np.arange(60) % 3], r"3 columns.*np\.argmax"),
        (gpflow.likelihoods.MultiClass(3), np.arange(60) % 4, "one of the 3 classes"),
        (gpflow.likelihoods.Bernoulli(), np.arange(60) % 3, "0 or 1"),
        (gpflow.likelihoods.Poisson(), np.arange(60) % 3 - 1, "counts"),
        (by_source(), np.arange(60) % 2, "SwitchedLikelihood likelihood take 2"),
    ],
)
def test_targets_of_a_table(likelihood: Any, targets: Any, message: str) -> None:
    rows = np.linspace(-1, 1, 60)[:, None]
    for call in (idm.diagnostics.candidates, idm.diagnostics.recommend):
        with pytest.raises(ValueError, match=message):
            call(rows, targets, likelihood)


def test_minus_one_and_one_are_labels_of_bernoulli_only() -> None:
    signs = np.where(np.arange(60) % 2, 1.0, -1.0)
    rows = np.linspace(-1, 1, 60)[:, None]
    for likelihood, least in (
        (gpflow.likelihoods.Bernoulli(), 0),
        (gpflow.likelihoods.StudentT(), -1),
    ):
        found = prepare(rows, signs, gaussian=False, likelihood=likelihood)
        assert found.Y.min() == least


def test_a_race_has_no_error_of_a_column_that_is_no_value() -> None:
    rows = np.linspace(-1, 1, 40)[:, None]
    Y = np.hstack([np.sin(rows), np.arange(40)[:, None] % 2])
    found = idm.training.race(
        {"points": Entrant(lambda data: svgp(by_source()), trained=True)},
        (rows, Y),
        1,
        progress=False,
    )
    point = found.entries["points"].trace[-1]
    assert np.isfinite(point.log_density) and np.isnan(point.rmse)


def standardised_rows() -> Any:
    rows = np.linspace(-1, 1, 60)[:, None]
    return rows / rows.std()


def rising_noise() -> Gaussian:
    return Gaussian(scale=gpflow.functions.Linear(A=[[0.1]], b=[0.5]))


def fixed_noise() -> Gaussian:
    likelihood = Gaussian(0.03)
    gpflow.set_trainable(likelihood, False)
    return likelihood


def noise_with_prior() -> Gaussian:
    likelihood = Gaussian(0.03)
    likelihood.variance.prior = tfp.distributions.Gamma(np.float64(2), np.float64(3))
    return likelihood


@pytest.mark.parametrize("make", [rising_noise, fixed_noise, noise_with_prior, WithoutMissing])
def test_a_gaussian_that_says_more_is_used(make: Any) -> None:
    rows, values = standardised_rows(), 5 * np.sin(3 * standardised_rows())
    likelihood = make()
    found = idm.diagnostics.candidates(rows, values, likelihood)
    assert {"exact", "effects and harmonics"}.isdisjoint(found)
    data = rows, values
    expected = np.asarray(likelihood.conditional_variance(rows, values))
    for name in ("waves", "points"):
        built = found[name].entrant.build(data)
        assert type(built.likelihood) is type(likelihood) and built.likelihood is not likelihood
        np.testing.assert_allclose(built.likelihood.conditional_variance(rows, values), expected)
        trainable = [parameter.trainable for parameter in likelihood.parameters]
        assert [parameter.trainable for parameter in built.likelihood.parameters] == trainable
        assert "likelihood = " not in found[name].code and ", likelihood," in found[name].code
        assert "Y - Y.mean" not in found[name].code


def test_a_gaussian_that_says_no_more_is_none() -> None:
    rows = standardised_rows()
    for likelihood in (None, Gaussian(), Gaussian(0.3), Gaussian(scale=0.2)):
        found = idm.diagnostics.candidates(rows, np.sin(3 * rows), likelihood)
        assert "exact" in found and found["exact"].likelihood is None


def test_a_function_of_x_is_of_the_x_that_models_have() -> None:
    rows = standardised_rows()
    for call in (idm.diagnostics.candidates, idm.diagnostics.recommend):
        with pytest.raises(ValueError, match=r"likelihood: a part .* function of X \(Linear"):
            call(2 * rows, np.sin(rows), rising_noise())


def test_reasons_name_noise_only_of_standardised_targets() -> None:
    models = {"points": svgp(rising_noise()), "waves": svgp(Gaussian(0.25))}
    for name, standardised in ("points", False), ("waves", False), ("waves", True):
        point = RacePoint(1.0, 1, -0.5, 0.1)
        race = Race({name: RaceEntry(name, models[name], (point,), 0.1, None)}, (1.0,), "cpu", 9, 2)
        said = " ".join(_reasons(name, race, 9, 1.0, standardised=standardised))
        assert ("Noise: 25% of the variance of Y" in said) == standardised


@pytest.mark.parametrize(
    "likelihood",
    [
        gpflow.likelihoods.Bernoulli(invlink=tf.sigmoid),
        gpflow.likelihoods.StudentT(df=5.0),
        gpflow.likelihoods.StudentT(scale=0.3),
        gpflow.likelihoods.Poisson(binsize=2.0),
        gpflow.likelihoods.MultiClass(3, invlink=gpflow.likelihoods.RobustMax(3, 0.1)),
        with_method_replaced(),
    ],
)
def test_settings_of_a_likelihood_are_not_left_out_of_the_code(likelihood: Any) -> None:
    assert _likelihood_code(likelihood) == "likelihood"


class WithoutEdges(gpflow.likelihoods.Ordinal):
    """GPflow's, as with versions of TensorFlow whose erf of infinity is NaN."""

    def _scalar_log_prob(self, X: Any, F: Any, Y: Any) -> Any:
        inside = super()._scalar_log_prob(X, F, tf.ones_like(Y))
        return tf.where(tf.equal(Y, 1), inside, np.nan)


class FlatWhereMissing(WithoutMissing):
    """Values that are finite, and slopes that are not: 0 times the slope of a root at zero."""

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        root = tf.sqrt(tf.where(tf.equal(Y, MISSING), tf.zeros_like(Fmu), tf.square(Y - Fmu)))
        return -tf.reduce_sum(root, axis=-1)


def edges() -> Any:
    return np.digitize(X, [-0.5, 0.5]).astype(float)


def test_a_likelihood_that_fails_alone_is_named() -> None:
    ordinal, missing = WithoutEdges(np.array([-0.5, 0.5])), FlatWhereMissing()
    Y = np.where(np.arange(len(X))[:, None] % 3 == 0, MISSING, VALUES)
    for likelihood, targets, shown in (ordinal, edges(), "0, 2"), (missing, Y, "-999"):
        said = failing_likelihood(svgp(likelihood), X, targets)
        kind = type(likelihood).__name__
        assert said is not None and f"density of {kind}, or its slope, is not finite" in said
        assert f"for Y = {shown}, although" in said
    for likelihood, targets in (ordinal, np.ones_like(X)), (WithoutMissing(), Y), (Gaussian(), X):
        assert failing_likelihood(svgp(likelihood), X, targets) is None


@pytest.mark.parametrize("method", ["l-bfgs", "adam"])
def test_a_fit_names_the_likelihood_that_fails(method: str) -> None:
    model = svgp(WithoutEdges(np.array([-0.5, 0.5])))
    with pytest.raises(idm.training.NonFiniteError, match="for Y = 0, 2, alth") as caught:
        idm.training.fit(model, (X, edges()), method=method, steps=2, progress=False)
    assert "standardised" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_passes_name_the_likelihood_that_fails() -> None:
    model = collapsed(WithoutEdges(np.array([-0.5, 0.5])), edges())
    with pytest.raises(ValueError, match="^likelihood: .* WithoutEdges, .* Y = 0, 2, although"):
        idm.training.fit_collapsed(model, progress=False)
    far = collapsed(gpflow.likelihoods.Poisson(), np.ones_like(X))
    far.kernel.variance.assign(1e5)
    with pytest.raises(ValueError, match="check the kernel's parameters"):
        idm.training.fit_collapsed(far, progress=False)
