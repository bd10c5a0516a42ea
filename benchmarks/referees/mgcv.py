"""Additive models of R's mgcv for 203 cars; statsmodels ships their fits.

The fits have bases, penalties, effects of four terms and their standard errors. The model is linear
in 24 coefficients; the precision of their prior is mgcv's penalty (a small one for coefficients
without penalty). Effects are predictions at rows that have only the columns of one term.
Differences are in mgcv's standard errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.data import Array, load_arrays

UNPENALISED = {"mgcv_gaussian": 1e-9, "mgcv_poisson": 1e-2}
"""The prior precision of coefficients without penalty: small, but large enough that the prior
expectation of a count is finite."""


def mgcv_gaussian(data_dir: str | None) -> dict[str, float]:
    """The differences of both models, without training: the optimal q of mgcv's parameters."""
    fit = load_arrays("mgcv_gaussian", data_dir)
    noise = gpflow.likelihoods.Gaussian(float(fit["scale"]))
    design, terms = whitened_design(fit, UNPENALISED["mgcv_gaussian"])
    data, prior = (design, fit["y"][:, None].astype(float)), linear_prior()
    models = {
        "StructuredSGPR": idm.models.StructuredSGPR(data, *prior, likelihood=noise),
        "DualSVGP": idm.models.DualSVGP(data, prior[0], noise, prior[1], progress=False),
    }
    found = dict[str, float]()
    for name, model in models.items():
        gpflow.set_trainable(model, False)
        if name == "DualSVGP":
            idm.fit(model, progress=False)
        found |= differences(name, model, fit, terms)
    return found


def mgcv_poisson(data_dir: str | None) -> dict[str, float]:
    fit = load_arrays("mgcv_poisson", data_dir)
    design, terms = whitened_design(fit, UNPENALISED["mgcv_poisson"])
    data, prior = (design, fit["y"][:, None].astype(float)), linear_prior()
    # Counts about the mean, so that the first q, the prior, has finite expected counts.
    mean = gpflow.functions.Constant(np.log(fit["y"].mean()))
    model = idm.models.DualSVGP(
        data, prior[0], gpflow.likelihoods.Poisson(), prior[1], mean_function=mean, progress=False
    )
    gpflow.set_trainable(model, False)
    idm.fit(model, progress=False)
    mean.c.assign(0.0)  # only the effects
    return differences("DualSVGP", model, fit, terms)


def linear_prior() -> tuple[Any, Any]:
    """A linear function of 24 columns, and its values at unit vectors: the coefficients."""
    values = gpflow.inducing_variables.InducingPoints(np.eye(24))
    return idm.kernels.FiniteRank(gpflow.kernels.Linear(), values), values


def whitened_design(fit: Mapping[str, Any], least: float) -> tuple[Array, list[Array]]:
    """The design in coordinates whose prior is standard normal, and for each of mgcv's terms this
    design with only the columns of the term."""
    precision = fit["penalty"] / float(fit["scale"])
    values, vectors = np.linalg.eigh(precision)
    root = vectors / np.sqrt(np.maximum(values, least))
    # Two columns of factors, then the splines of weight, then the splines of horsepower.
    sizes = [len(np.unique(fit["fuel"])) - 1, len(np.unique(fit["drive"])) - 1]
    smooth = (24 - 1 - sum(sizes) + 2) // 2
    ends = np.cumsum([1, *sizes, smooth])
    parts = np.split(np.arange(24), ends)[1:]
    X = np.asarray(fit["X"], float)
    masked = [np.where(np.isin(np.arange(24), part), X, 0.0) @ root for part in parts]
    return X @ root, masked


def differences(
    name: str, model: Any, fit: Mapping[str, Any], terms: Sequence[Array]
) -> dict[str, float]:
    """The largest differences of effects and of standard errors, in mgcv's standard errors."""
    moments = [model.predict_f(term) for term in terms]
    mean = np.stack([each[0].numpy()[:, 0] for each in moments], axis=1)
    deviation = np.sqrt(np.stack([each[1].numpy()[:, 0] for each in moments], axis=1))
    unit = np.maximum(fit["effects_se"], np.median(fit["effects_se"], axis=0) / 10)
    return {
        f"{name}: effects": float(np.max(np.abs(mean - fit["effects"]) / unit)),
        f"{name}: standard errors": float(np.max(np.abs(deviation - fit["effects_se"]) / unit)),
    }
