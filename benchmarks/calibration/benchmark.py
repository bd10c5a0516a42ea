"""Simulation-based calibration (Talts et al. 2018): ranks of the truth under the predictive.

Functions are drawn from a model's prior, at 40 rows and at held-out places, by dense kernel
matrices. Noise is added, and the model is conditioned on the rows at the true parameters. If its
predictive distribution of f is the posterior, the probability below the truth is uniform.
Functions are columns of Y; each counts at one place, so that ranks are independent.
waves, globe, table, splines, units   StructuredSGPR of waves, harmonics of the globe, features of
                        effects, splines, activation features.
means, space_time       rows that are means over boxes; five stations at eight times, by splines of
                        time, with predictions at other places and times.
neighbours, both        VecchiaSGPR of the ten nearest rows; with waves.
merged, weights         ten places of four rows each as ten rows; a noise variance for each row.
groups                  intercepts of four groups and the nearest rows; held-out rows have a fifth.
student_t               the nearest rows under Student-t noise: q is not the posterior.
svgp, hvgp, orthogonal  SVGP (one covariance for all functions), HVGP (rows and their negatives),
                        OrthogonalSVGP (base and orthogonal points far apart): q can be exact.
dual, poisson, labels   DualSVGP: Gaussian noise; counts and labels, for which q is approximate.
samples                 the rank among 99 functions of `sample_functions`.
effects, shares         `tables.effects`: an effect at a place; the rank of a share among draws.
Excluded: HVGP and AdditiveSVGP on other rows, and deep layers, whose q cannot be the posterior. The
distance is Kolmogorov's from uniform, p its p-value; "spread" is the standard deviation of the
truth's normal score, which is 1 if standard deviations are right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gpflow
import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import kstest

import interdomain as idm
from benchmarks._lib.data import Array
from benchmarks._lib.results import figures
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.tables import tabulated
from benchmarks.calibration.near import groups, merged, neighbours, student_t, weights
from benchmarks.calibration.truths import (
    NOISE,
    PLACES,
    ROWS,
    box_waves,
    drawn,
    exact,
    matern,
    noisy,
    square,
)

FUNCTIONS, AT_A_TIME = 10_000, 500
FEWER = {"dual": 1_000, "poisson": 1_000, "labels": 1_000, "effects": 200, "shares": 200}
FEWER["student_t"] = 200
"""Numbers of functions for models that need a fit of passes, or a report, for each function."""
REPORTS, REPORTS_AT_A_TIME = ("effects", "shares"), 20
ALONE = ("student_t",)
"""Models of one function each, because outputs of a row share the weight of its noise."""


def ranks(model: str, functions: int, seed: int) -> Array:
    """The truth's probabilities under the predictive, one for each function."""
    rng = np.random.default_rng(seed)
    each = 1 if model in ALONE else REPORTS_AT_A_TIME if model in REPORTS else AT_A_TIME
    parts = [min(each, functions - start) for start in range(0, functions, each)]
    return np.concatenate([MODELS[model](rng, part) for part in parts])


def verdict(found: Array) -> dict[str, float]:
    test = kstest(found, "uniform")
    spread = np.std(ndtri(np.clip(found, 1e-12, 1 - 1e-12)))
    return {"distance": float(test.statistic), "p": float(test.pvalue), "spread": float(spread)}


def globe_harmonics(_: Any = None) -> Any:
    kernel = idm.kernels.GlobeMatern32(lengthscale=0.5)
    return kernel, idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, 6)


def grid_splines(_: Any = None) -> Any:
    parts = [gpflow.kernels.Matern32(lengthscales=0.7, active_dims=[k]) for k in (0, 1)]
    features = idm.inducing_variables.SplineFeatures([-1, -1], [1, 1], 6, degree=2)
    return parts[0] * parts[1], features


def softplus_units(_: Any = None) -> Any:
    kernel = idm.kernels.ArcCosine(weight_variances=np.ones(2))
    directions = np.random.default_rng(1).normal(size=(20, 3))
    return kernel, idm.inducing_variables.ActivationFeatures(directions, "softplus", 6)


def table_features(X: Array) -> Any:
    kernel = idm.tables.Additive.from_data(X, effects=["main", (0, 1)])
    return kernel, idm.tables.AdditiveFeatures.for_kernel(kernel, 30)


def on_globe(rng: np.random.Generator, number: int) -> Array:
    latitudes = np.rad2deg(np.arcsin(rng.uniform(-1, 1, number)))
    return np.c_[latitudes, rng.uniform(-180, 180, number)]


def structured(
    parts: Callable[..., Any], places: Callable[..., Array] = square
) -> Callable[..., Array]:
    """Ranks under StructuredSGPR, whose finite-rank kernel its features explain."""

    def found(rng: np.random.Generator, functions: int) -> Array:
        X, new = (places(rng, number) for number in (ROWS, PLACES))
        kernel, features = parts(X)
        made = idm.kernels.FiniteRank(kernel, features), features
        model = partial(idm.models.StructuredSGPR, noise_variance=NOISE)
        return exact(rng, functions, made[0], X, new, lambda data: model(data, *made))

    return found


def means(rng: np.random.Generator, functions: int) -> Array:
    """Ranks of values, under rows that are means over boxes."""
    box, waves = box_waves()
    parts = [idm.functionals.Mean([0.6, 0.3]), idm.functionals.Value()]
    kernel = idm.kernels.Functional(idm.kernels.FiniteRank(box, waves), parts)
    X, new = (np.c_[square(rng, n), np.full(n, k)] for k, n in enumerate((ROWS, PLACES)))
    model = partial(idm.models.StructuredSGPR, noise_variance=NOISE)
    return exact(rng, functions, kernel, X, new, lambda data: model(data, kernel, waves))


def space_time(rng: np.random.Generator, functions: int) -> Array:
    stations, hours = square(rng, 5), np.linspace(0, 9, ROWS // 5)
    X = np.c_[np.repeat(stations, len(hours), axis=0), np.tile(hours, 5)]
    new = np.c_[square(rng, PLACES), rng.uniform(0, 10, PLACES)]
    space = gpflow.kernels.Matern32(lengthscales=0.7, active_dims=[0, 1])
    time = gpflow.kernels.Matern32(lengthscales=2.0, active_dims=[2])
    splines = idm.inducing_variables.SplineFeatures(0, 10, 12, degree=2)
    places = idm.inducing_variables.FixedPlaces(stations)
    features = idm.inducing_variables.ProductInducingVariables([places, splines])
    kernel = space * idm.kernels.FiniteRank(time, splines)
    model = partial(idm.models.StructuredSGPR, noise_variance=NOISE)
    return exact(rng, functions, kernel, X, new, lambda data: model(data, kernel, features))


def optimal(model: Any, data: Any) -> Any:
    """Take one natural gradient step of size one: the optimum, for Gaussian noise."""
    for part in (model.kernel, model.likelihood, model.inducing_variable):
        gpflow.set_trainable(part, False)
    step = (gpflow.optimizers.NaturalGradient(1.0), None)
    idm.fit(model, data, steps=1, optimizer=step, progress=False)
    return model


def svgp(rng: np.random.Generator, functions: int) -> Array:
    """Ranks under a joint q of two features, with one covariance for all functions."""
    X, new = square(rng, ROWS), square(rng, PLACES)
    box, waves = box_waves()
    table, effects = table_features(X)
    kernel = idm.kernels.FiniteRank(box, waves) + idm.kernels.FiniteRank(table, effects)
    features = idm.inducing_variables.SumInducingVariables([waves, effects])
    q = idm.models.JointQ(kernel, features, num_latent_gps=functions, q_shared=True)
    model = idm.models.SVGP(kernel, gpflow.likelihoods.Gaussian(NOISE), q)
    return exact(rng, functions, kernel, X, new, partial(optimal, model))


def hvgp(rng: np.random.Generator, functions: int) -> Array:
    """Ranks for rows and their negatives: the even and the odd part have independent posteriors."""
    half, new, base = square(rng, ROWS // 2), square(rng, PLACES), matern()
    noise, negation = gpflow.likelihoods.Gaussian(NOISE), idm.transforms.Negation()
    model = idm.models.HVGP(base, noise, half, negation, num_latent_gps=functions)
    return exact(rng, functions, base, np.r_[half, -half], new, partial(optimal, model))


def orthogonal(rng: np.random.Generator, functions: int) -> Array:
    """Ranks for two independent groups of rows: base points, and orthogonal ones far away."""
    far, kernel = np.array([1e3, 0.0]), matern()
    base, other = square(rng, ROWS // 2), square(rng, ROWS // 2) + far
    new = square(rng, PLACES) + np.arange(PLACES)[:, None] % 2 * far
    noise = gpflow.likelihoods.Gaussian(NOISE)
    points = map(gpflow.inducing_variables.InducingPoints, (base, other))
    model = idm.models.OrthogonalSVGP(kernel, noise, *points, num_latent_gps=functions)
    return exact(rng, functions, kernel, np.r_[base, other], new, partial(optimal, model))


def dual(rng: np.random.Generator, functions: int, *, kind: str = "dual") -> Array:
    X, new = square(rng, ROWS), square(rng, PLACES)
    box, waves = box_waves()
    prior = idm.kernels.FiniteRank(box, waves)
    likelihood, observe = {
        "dual": (gpflow.likelihoods.Gaussian(NOISE), None),
        "poisson": (
            gpflow.likelihoods.Poisson(),
            lambda rng, f: rng.poisson(np.exp(f)).astype(float),
        ),
        "labels": (
            gpflow.likelihoods.Bernoulli(),
            lambda rng, f: (rng.uniform(size=f.shape) < ndtr(f)).astype(float),
        ),
    }[kind]

    def condition(data: Any) -> Any:
        model = idm.models.DualSVGP(data, prior, likelihood, waves, progress=False)
        gpflow.set_trainable(model, False)
        idm.fit(model, progress=False)
        return model

    return exact(rng, functions, prior, X, new, condition, observe=observe)


def samples(rng: np.random.Generator, functions: int) -> Array:
    """The truth's rank among functions of the posterior; within its rank the value is uniform."""
    X, new = square(rng, ROWS), square(rng, PLACES)
    box, waves = box_waves()
    prior = idm.kernels.FiniteRank(box, waves)
    f = drawn(rng, prior, np.r_[X, new], functions)
    Y = noisy(rng, f[:ROWS])
    model = idm.models.StructuredSGPR((X, Y), prior, waves, noise_variance=NOISE)
    values = np.asarray(idm.sample_functions(model, 99, seed=int(rng.integers(2**31)))(new))
    below, columns = np.sum(values < f[ROWS:], axis=0), np.arange(functions)
    return np.asarray(below[columns % PLACES, columns] + rng.uniform(size=functions)) / 100


def effects(rng: np.random.Generator, functions: int, *, shares: bool = False) -> Array:
    """Ranks of effects, or of shares; a report on the truth comes from a q of one function."""
    X, new = rng.uniform(0, 1, (ROWS, 3)), rng.uniform(0, 1, (PLACES, 3))
    kernel, features = table_features(X)
    prior = idm.kernels.FiniteRank(kernel, features)
    size = features.num_inducing
    weights = rng.normal(size=(size, functions))
    noise = gpflow.likelihoods.Gaussian(NOISE)
    known = gpflow.models.SVGP(
        prior,
        noise,
        features,
        num_latent_gps=functions,
        q_mu=weights,
        q_sqrt=np.tile(1e-9 * np.eye(size), [functions, 1, 1]),
    )
    Y = noisy(rng, known.predict_f(X)[0].numpy())
    model = idm.models.StructuredSGPR((X, Y), prior, features, noise_variance=NOISE)
    found = []
    for output in range(functions):
        which, place = output % len(kernel.effects), output % PLACES
        true, report = (
            idm.tables.effects(each, X, output=output, num_draws=number, seed=output)
            for each, number in ((known, 2), (model, 99))
        )
        if shares:
            shares_of_draws = report.variance_draws / report.variance_draws.sum(1, keepdims=True)
            below = np.sum(shares_of_draws[:, which] < true.shares[which])
            found.append((below + rng.uniform()) / 100)
        else:
            (truth, _), (mean, variance) = (each.at(new) for each in (true, report))
            score = (truth - mean)[place, which] / variance[place, which] ** 0.5
            found.append(ndtr(score))
    return np.array(found)


MODELS: Mapping[str, Callable[..., Array]] = {
    "waves": structured(box_waves),
    "globe": structured(globe_harmonics, on_globe),
    "table": structured(table_features),
    "splines": structured(grid_splines),
    "units": structured(softplus_units),
    "means": means,
    "space_time": space_time,
    "neighbours": neighbours,
    "both": partial(neighbours, both=True),
    "merged": merged,
    "weights": weights,
    "groups": groups,
    "student_t": student_t,
    "svgp": svgp,
    "hvgp": hvgp,
    "orthogonal": orthogonal,
    "dual": dual,
    "poisson": partial(dual, kind="poisson"),
    "labels": partial(dual, kind="labels"),
    "samples": samples,
    "effects": effects,
    "shares": partial(effects, shares=True),
}


class Calibration(Benchmark, models=MODELS):
    def configurations(self, arguments: Arguments) -> Configurations:
        for model in arguments.models or (("waves", "hvgp") if arguments.short else MODELS):
            number = 100 if arguments.short else FEWER.get(model, FUNCTIONS)
            yield {"model": model, "functions": number, "seed": 0}

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        return verdict(ranks(**configuration))

    def table(self, records: Records) -> str:
        return tabulated(
            figures(records),
            "model; functions = functions ,; distance = distance .4f; p = p .2g; "
            "spread = spread .3f",
        )
