"""Fits of a DualSVGP: the optimum of SVGP for every likelihood, subsets, limits and resuming."""

from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow_probability as tfp

import interdomain as idm
from interdomain import fit
from interdomain.models.dual_svgp.parameters import slopes_of_prior, train_parameters
from tests.models.dual_svgp.test_dual_svgp import TARGETS, X, harmonics, model_of
from tests.parts import finite_rank, frozen, with_harmonics


def minimise(svgp: gpflow.models.SVGP, data: Any) -> None:
    gpflow.optimizers.Scipy().minimize(
        svgp.training_loss_closure(data, compile=False),
        svgp.trainable_variables,
        options={"maxiter": 200},
        compile=False,
    )


NEAR_ONE = tfp.distributions.LogNormal(np.float64(0.0), np.float64(0.1))
SLOW = [pytest.param(n, marks=pytest.mark.slow) for n in ("StudentT", "heteroskedastic")]


@pytest.mark.parametrize("name", ["Poisson", *SLOW])
def test_the_optimum_is_that_of_svgp(name: str) -> None:
    """L-BFGS on all parameters of the SVGP, q included, finds nothing better nearby: in closed
    form, where sites have negative precisions, and with two functions. A prior of a parameter
    counts as in gpflow's training loss."""
    model = model_of(name)
    if name == "Poisson":
        model.kernel.variance.prior = NEAR_ONE
    result = fit(model, progress=False, steps=80, options={"tolerance": 1e-5})
    assert result.converged, result.message
    svgp = model.to_svgp()
    data = (X, TARGETS[name][1])
    assert result.elbo == pytest.approx(float(svgp.elbo(data)), abs=1e-6)
    loss = float(svgp.training_loss(data))
    minimise(svgp, data)
    assert float(svgp.training_loss(data)) == pytest.approx(loss, abs=1e-5 * abs(loss))


def test_slopes_of_the_priors_of_a_likelihood() -> None:
    """Against differences."""
    model = model_of("StudentT")
    model.likelihood.scale.prior = NEAR_ONE
    variable, h = model.likelihood.scale.unconstrained_variable, 1e-3
    (slope,), ((curvature,),) = slopes_of_prior(model.likelihood, [variable])
    density = []
    for shift in (-h, h, h):
        density.append(float(model.likelihood.scale.log_prior_density()))
        variable.assign_add(shift)
    middle, low, again = density
    high = float(model.likelihood.scale.log_prior_density())
    assert middle == pytest.approx(again, rel=1e-9)
    assert slope == pytest.approx((high - low) / (2 * h), rel=1e-4)
    assert curvature == pytest.approx((high - 2 * middle + low) / h**2, rel=1e-4)


@pytest.mark.slow
def test_input_scales_are_trained_on_a_subset_and_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interdomain.models.dual_svgp.subset._TURNS", 2)
    rng = np.random.default_rng(1)
    rows = rng.normal(size=[300, 3])
    labels = (np.sin(2 * rows[:, :1]) + 0.3 * rng.normal(size=[300, 1]) > 0).astype(float)
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(3))
    block = finite_rank(*with_harmonics(kernel, 3, 3))
    model = model_of("probit", lambda: block, data=(rows, labels))
    result = fit(model, progress=False, options={"subset_size": 200, "tolerance": 0.5})
    assert result.converged
    names = {f"kernel.kernel.{name}" for name in ("weight_variances", "bias_variance")}
    assert set(result.frozen) == names
    assert not kernel.weight_variances.trainable
    scales = kernel.weight_variances.numpy()
    assert scales[0] > 3 * max(scales[1:])  # the only column that says anything
    probability, _ = model.predict_y(rows)
    assert np.mean((probability.numpy() > 0.5) == labels) > 0.85


def test_many_rows_begin_on_a_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    model, other_model = frozen(model_of("logit"), model_of("logit"))
    begun: list[int] = []
    draw = idm.models.DualSVGP.draw

    def counted(self: Any, size: int, **how: Any) -> Any:
        begun.append(size)
        return draw(self, size, **how)

    monkeypatch.setattr(idm.models.DualSVGP, "draw", counted)
    few = fit(model, progress=False, options={"subset_size": 10, "tolerance": 1e-3})
    assert begun[0] == 10
    begun.clear()
    other = fit(other_model, progress=False, options={"tolerance": 1e-3})
    assert not begun and few.elbo == pytest.approx(other.elbo, abs=1e-2)


def test_a_fit_that_is_resumed_goes_on(tmp_path: Any) -> None:
    """A resumed fit has the bounds of a fit that was not interrupted, one after the other."""
    arguments: dict[str, Any] = {"progress": False, "options": {"tolerance": 1e-3}}
    whole = fit(model_of("StudentT"), steps=4, **arguments)
    first = fit(model_of("StudentT"), checkpoint_dir=tmp_path, steps=2, **arguments)
    assert first.reason == "steps"
    assert first.checkpoint is not None and first.checkpoint.startswith(str(tmp_path))
    with pytest.raises(ValueError, match="another fit .tolerance: 0.001; now tolerance: None"):
        fit(model_of("StudentT"), checkpoint_dir=tmp_path, progress=False)
    second = fit(model_of("StudentT"), checkpoint_dir=tmp_path, steps=4, **arguments)
    assert (second.first_step, second.steps) == (2, 4)
    np.testing.assert_allclose(second.elbos, whole.elbos[2:], rtol=1e-9)
    assert second.elbo == pytest.approx(whole.elbo, rel=1e-9)


def test_limits_leave_the_best_point() -> None:
    model = model_of()
    assert fit(model, progress=False, options={"max_seconds": 1e-9}).reason == "max_seconds"
    result = fit(model, progress=False, steps=3)
    assert result.reason == "steps" and len(result.elbos) == 3
    assert result.elbo == max(result.elbos)
    assert result.elbo == pytest.approx(float(model.elbo()), rel=1e-12)


def test_wrong_arguments() -> None:
    model = model_of()
    for arguments, message in [
        ({"steps": 0}, "steps must be .* found 0"),
        ({"options": {"ftol": 0.1}}, "options: training a DualSVGP has no ftol; leave these out"),
        ({"batch_size": 10}, "batch_size: a DualSVGP holds its data .* leave batch_size out"),
        ({"optimizer": 0.1}, "optimizer: a DualSVGP is trained in passes, found 0.1; .*to_svgp"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit(**{"model": model, **arguments})


def test_parameters_change_by_a_factor_of_four_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """All go the same share of the way: that of logarithms, but of values of any sign."""
    mean = gpflow.mean_functions.Constant([-1.0])
    model = model_of("Poisson", mean_function=mean)
    kernel = model.kernel
    kernel.variance.assign(1.0)

    def fit(*_: Any, **__: Any) -> None:
        kernel.variance.assign(16.0)
        kernel.lengthscale.assign(0.6 / 2)
        mean.c.assign([-3.0])

    monkeypatch.setattr("interdomain.models.dual_svgp.parameters.fit_by_lbfgs", fit)
    train_parameters(model, 1)
    assert float(kernel.variance.numpy()) == pytest.approx(4.0)
    assert float(kernel.lengthscale.numpy()) == pytest.approx(0.6 / np.sqrt(2))
    np.testing.assert_allclose(mean.c, [-2.0])


def test_a_folder_of_other_features_is_refused(tmp_path: Path) -> None:
    """Other features of equal number and shapes are refused: sums over sites depend on features."""

    def model(part: slice) -> idm.models.DualSVGP:
        kernel, features = harmonics()
        some = idm.inducing_variables.SphericalHarmonics(3, chains=features.chains[part])
        return model_of("probit", lambda: (kernel, some))

    settings: dict[str, Any] = {"steps": 2, "progress": False}
    fit(model(slice(0, 9)), checkpoint_dir=tmp_path, **settings)
    with pytest.raises(ValueError, match="a checkpoint of another fit .inducing_variable.chains: "):
        fit(model(slice(7, 16)), checkpoint_dir=tmp_path, **settings)
