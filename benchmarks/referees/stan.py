"""Posteriors of posteriordb, each known from 10,000 draws of Stan.

The squared exponential is represented by waves of a box that is wide enough. Of mixtures over
hyperparameters, means and variances are those of the law of total variance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from tensorflow_probability import bijectors, distributions, mcmc
from tqdm import tqdm, trange

import interdomain as idm
from benchmarks._lib.data import Array, load_arrays

WARMING_UP = 100  # draws of the chain, which begins at the mode
STEP_SIZE, LEAPFROGS = 0.18, (2, 12)  # of logarithms; how many, at random, so that none resonates
STEPS, SIZE = 60, 0.3  # of natural gradients on all rows

HYPERPARAMETERS = ("sdgp_1", "lscale_1", "sdgp_sigma_1", "lscale_sigma_1")
INTERCEPTS = {"f": (-13.0, 36.0), "g": (0.0, 10.0)}  # means and scales of their priors


def stan_regression(data_dir: str | None, draws: int) -> dict[str, float]:
    """StructuredSGPR at Stan's mean hyperparameters, and in a chain of its own."""
    stan = load_arrays("posteriordb_gp", data_dir)
    X, Y = stan["regr_x"][:, None], stan["regr_y"][:, None]
    mean, sd = stan["regr_hyper_mean"], stan["regr_hyper_sd"]
    with gpflow.config.as_context(gpflow.config.Config(positive_bijector="exp")):
        base, *prior = exact_waves(X)
        noise = gpflow.likelihoods.Gaussian(mean[2])
    model = idm.models.StructuredSGPR((X, Y), *prior, likelihood=noise)
    base.lengthscales.assign(mean[0])
    base.variance.assign(mean[1] ** 2)
    unit = stan["regr_f_sd_at_mean_hyper"]
    means, variances = (part[:, 0] for part in model.predict_f(X))
    found = {
        "log evidence, fixed": float(model.elbo() - stan["regr_logml_at_mean_hyper"]),
        "means, fixed": largest((means - stan["regr_f_mean_at_mean_hyper"]) / unit),
        "deviations, fixed": largest(np.sqrt(variances) / unit - 1),
    }
    base.lengthscales.prior = distributions.Gamma(np.float64(25), np.float64(4))
    base.variance.prior = bijectors.Square()(distributions.HalfNormal(np.float64(2)))
    noise.variance.prior = distributions.HalfNormal(np.float64(1))
    idm.fit(model, progress=False)
    chain, accepted = chain_of(model, [base.lengthscales, base.variance, noise.variance], X, draws)
    values, means, variances = chain
    values[:, 1] = np.sqrt(values[:, 1])  # Stan has alpha
    draws_of_stan = float(np.min(np.square(sd / stan["regr_hyper_mcse"])))
    found |= z_scores("hyperparameters", values, np.zeros_like(values), mean, sd, draws_of_stan)
    found |= z_scores("f", means, variances, stan["regr_f_mean"], stan["regr_f_sd"], draws_of_stan)
    return found | {"effective draws": float(min(effective(values))), "accepted": accepted}


def chain_of(
    model: Any, parameters: Sequence[Any], X: Array, draws: int
) -> tuple[list[Array], float]:
    """Hamiltonian Monte Carlo from the present parameters on: their values ``[n, 3]``, and means
    and variances of f at X, ``[n, N]``; and the share of proposals that were accepted."""
    helper = gpflow.optimizers.SamplingHelper(model.log_posterior_density, parameters)
    leapfrogs, rng = tf.Variable(LEAPFROGS[0]), np.random.default_rng(0)
    kernel = mcmc.HamiltonianMonteCarlo(helper.target_log_prob_fn, STEP_SIZE, leapfrogs)
    step = tf.function(kernel.one_step, autograph=False)
    predict = tf.function(lambda: model.predict_f(X), autograph=False)
    state: Any = [tf.convert_to_tensor(variable) for variable in helper.current_state]
    results, chain, accepted = kernel.bootstrap_results(state), [], 0
    for number in trange(WARMING_UP + draws, desc="chain", unit="draw", leave=False):
        leapfrogs.assign(rng.integers(*LEAPFROGS))
        try:
            state, results = step(state, results, seed=tf.constant([0, number]))
            accepted += int(results.is_accepted)
        except tf.errors.InvalidArgumentError:
            pass  # where nothing can be factorised the density is zero: the proposal is rejected
        for variable, value in zip(helper.current_state, state, strict=True):
            variable.assign(value)
        moments = [part.numpy()[:, 0] for part in predict()]
        chain.append([np.array([parameter.numpy() for parameter in parameters]), *moments])
    parts = zip(*chain[WARMING_UP:], strict=True)
    return [np.stack(part) for part in parts], accepted / len(chain)


def stan_counts(data_dir: str | None, draws: int) -> dict[str, float]:
    """DualSVGP and Laplace's approximation, averaged over some of Stan's draws of the
    hyperparameters, at equal distances in its chains."""
    stan = load_arrays("posteriordb_gp", data_dir)
    X, Y = stan["pois_x"][:, None], stan["pois_k"][:, None].astype(float)
    base, prior, waves = exact_waves(X)
    likelihood = gpflow.likelihoods.Poisson()
    model = idm.models.DualSVGP((X, Y), prior, likelihood, waves, progress=False)
    gpflow.set_trainable(model, False)
    moments, laplace_moments = [], []
    hyper = stan["pois_hyper_thinned"]
    for length, alpha in tqdm(hyper[:: len(hyper) // draws], desc="counts", leave=False):
        base.lengthscales.assign(length)
        base.variance.assign(alpha**2)
        idm.fit(model, progress=False, options={"tolerance": 1e-4})
        moments.append([part.numpy()[:, 0] for part in model.predict_f(X)])
        laplace_moments.append(laplace(base(X).numpy(), Y[:, 0]))
    theirs = stan["pois_f_mean"], stan["pois_f_sd"]
    error = np.std([means for means, _ in moments], axis=0) / np.sqrt(len(moments))
    found = {"Monte Carlo error": largest(error / theirs[1])}
    for name, those in (("DualSVGP", moments), ("Laplace", laplace_moments)):
        found |= in_deviations(name, those, np.ones(len(those)), *theirs)
    return found


def laplace(K: Array, counts: Array) -> tuple[Array, Array]:
    """Mode and variances of Poisson counts whose log rates have the covariance K."""
    f, identity = np.log(counts + 0.5), np.eye(len(K))
    for _ in range(50):  # steps of Newton's method
        rate = np.exp(f)
        f = np.linalg.solve(identity + K * rate, K @ (rate * f + counts - rate))
    return f, np.diag(np.linalg.solve(identity + K * np.exp(f), K))


def stan_motorcycle(data_dir: str | None, draws: int) -> dict[str, float]:
    """SVGP with a latent GP each for the mean and the logarithm of the noise, on Stan's bases.

    Hyperparameters are Stan's means; then drawn from independent log-normal distributions of
    Stan's moments, with weights that make them draws from exp(bound) times the prior. Intercepts
    have normal priors with the scales of Stan's t distributions.
    """
    stan = load_arrays("posteriordb_gp", data_dir)
    moments_at = motorcycle_model(stan)
    places = [list(stan["mcycle_names"]).index(name) for name in HYPERPARAMETERS]
    mean, sd = stan["mcycle_mean"][places], stan["mcycle_sd"][places]
    spread = np.sqrt(np.log1p(np.square(sd / mean)))
    normal = np.random.default_rng(0).normal(size=(draws, len(mean)))
    drawn = np.exp(np.log(mean) - np.square(spread) / 2 + spread * normal)
    found, logs, mixture = compared(stan, "fixed", [moments_at(mean)[0]], np.ones(1)), [], []
    for values in tqdm(drawn, desc="motorcycle", leave=False):
        moments, bound = moments_at(values)
        mixture.append(moments)
        # The priors, up to a constant: half-t of deviations, inverse gamma of lengthscales.
        deviations, lengths = values[::2], values[1::2]
        prior = -2 * np.log1p((deviations / 36) ** 2 / 3)
        prior = prior - 2.124909 * np.log(lengths) - 0.0177 / lengths
        logs.append(bound + np.sum(prior) + np.sum(np.log(values)))
    weights = np.array(logs) + np.sum(np.square(normal), axis=1) / 2
    weights = np.exp(weights - np.max(weights))
    found |= compared(stan, "averaged", mixture, weights)
    return found | {"effective draws": float(np.sum(weights) ** 2 / np.sum(weights**2))}


def motorcycle_model(stan: Mapping[str, Any]) -> Callable[[Array], tuple[Array, float]]:
    """What gives means and variances of f and g, ``[2, N, 2]``, and the bound at given
    hyperparameters. Each latent GP is linear in its own columns of X."""
    Y = stan["mcycle_accel"][:, None]
    bases = [(stan[f"mcycle_basis_{name}"], stan[f"mcycle_sqrt_eig_{name}"]) for name in "fg"]
    sizes = [1 + len(frequencies) for _, frequencies in bases]
    units = np.split(np.eye(sum(sizes)), sizes[:1])
    values = [gpflow.inducing_variables.InducingPoints(rows) for rows in units]
    priors = [idm.kernels.FiniteRank(gpflow.kernels.Linear(), each) for each in values]
    exponential = gpflow.utilities.positive(base="exp")
    model = gpflow.models.SVGP(
        gpflow.kernels.SeparateIndependent(priors),
        gpflow.likelihoods.HeteroskedasticTFPConditional(scale_transform=exponential),
        idm.inducing_variables.SeparateIndependentInducingVariables(values),
        mean_function=gpflow.functions.Constant([INTERCEPTS["f"][0], INTERCEPTS["g"][0]]),
        num_latent_gps=2,
        num_data=len(Y),
    )
    gpflow.set_trainable(model, False)
    for parameter in (model.q_mu, model.q_sqrt):
        gpflow.set_trainable(parameter, True)
    # q begins with the noise of all rows together, and narrow.
    first = np.zeros(model.q_mu.shape), 0.1 * model.q_sqrt.numpy()
    first[0][0, 1] = np.log(Y.std()) / INTERCEPTS["g"][1]
    steps = gpflow.optimizers.NaturalGradient(SIZE)

    def moments_at(values: Array) -> tuple[Array, float]:
        columns = list[Array]()
        for (basis, frequencies), name, (sd, length) in zip(
            bases, "fg", np.split(values, 2), strict=True
        ):
            root = sd * np.sqrt(np.sqrt(2 * np.pi) * length)
            root = root * np.exp(-np.square(length * frequencies) / 4)
            columns += [np.full_like(Y, INTERCEPTS[name][1]), basis * root]
        X = np.concatenate(columns, axis=1)
        model.q_mu.assign(first[0])
        model.q_sqrt.assign(first[1])
        fitted = idm.fit(
            model, (X, Y), steps=STEPS, batch_size=len(Y), optimizer=steps, progress=False
        )
        return np.stack(model.predict_f(X)), float(fitted.elbos[-1])

    return moments_at


def compared(
    stan: Mapping[str, Any], how: str, moments: Sequence[Array], weights: Array
) -> dict[str, float]:
    """Both latent functions beside a chain that was run again on the same model as Stan's."""
    found = dict[str, float]()
    for number, name in enumerate("fg"):
        theirs = stan[f"mcycle_{name}_mean_rerun"], stan[f"mcycle_{name}_sd_rerun"]
        found |= in_deviations(
            f"{name}, {how}", [each[..., number] for each in moments], weights, *theirs
        )
    return found


def exact_waves(X: Array) -> tuple[Any, Any, Any]:
    """A squared exponential; waves as a prior that is this kernel to 1e-9 of its variance among
    rows of a range of 20, with lengthscales from 3 to 12; and the waves."""
    base = gpflow.kernels.SquaredExponential()
    box = idm.kernels.Periodized(base, X.min() - 40, X.max() + 40)
    periods = np.arange(41)[:, None]
    waves = idm.inducing_variables.BoxFourierFeatures(box.lower, box.upper, periods)
    return base, idm.kernels.FiniteRank(box, waves), waves


def effective(values: Array) -> Array:
    """The effective number of draws of each column of a chain."""
    return np.asarray(mcmc.effective_sample_size(values, filter_beyond_positive_pairs=True))


def z_scores(
    name: str, means: Array, variances: Array, mean: Array, deviation: Array, draws: float
) -> dict[str, float]:
    """The largest differences in means and deviations, in Monte Carlo errors of both sides.

    :param means: Of each draw of a chain, ``[n, K]``, with the variances about them.
    :param draws: The effective number of draws behind the other side.
    """

    def error(values: Array) -> Array:
        return np.asarray(values.std(axis=0) * np.sqrt(1 / effective(values) + 1 / draws))

    ours = means.mean(axis=0)
    squares = variances + np.square(means - ours)
    scores = (squares.mean(axis=0) - np.square(deviation)) / error(squares)
    return {
        f"{name}: largest z of means": largest((ours - mean) / error(means)),
        f"{name}: largest z of deviations": largest(scores),
        f"{name}: largest bias": largest((ours - mean) / deviation),
    }


def in_deviations(
    name: str, moments: Sequence[Any], weights: Array, mean: Array, deviation: Array
) -> dict[str, float]:
    """A mixture beside a mean and a deviation, in the latter.

    :param moments: Means and variances of each part, ``[2, K]``.
    """
    means, variances = np.moveaxis(np.asarray(moments), 1, 0)
    ours = np.average(means, axis=0, weights=weights)
    squares = np.average(variances + np.square(means - ours), axis=0, weights=weights)
    bias, ratio = (ours - mean) / deviation, np.sqrt(squares) / deviation
    return {
        f"{name}: largest bias": largest(bias),
        f"{name}: bias, root mean square": float(np.sqrt(np.mean(np.square(bias)))),
        f"{name}: deviations, median ratio": float(np.median(ratio)),
        f"{name}: deviations, least ratio": float(np.min(ratio)),
    }


def largest(values: Any) -> float:
    return float(np.max(np.abs(values)))
