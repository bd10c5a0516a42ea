"""Counts of irregular districts, and the rate on a map that they are integrals of."""

from __future__ import annotations

import time
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

import interdomain as idm
from benchmarks._lib.data import Array
from benchmarks.functionals.rows import errors, numbered, predicted
from interdomain.functionals import Areas, Value

PER_DISTRICT = 30.0
"""The mean number of counts in a district."""


def expected_count(integral: tf.Tensor) -> tf.Tensor:
    """The expected count for the integral of f: the integral itself if it is one or more.

    Below one it is an exponential with the same value and slope. The log density of a count is
    therefore a concave function of the integral.
    """
    return tf.where(integral > 1.0, integral, tf.exp(tf.minimum(integral, 1.0) - 1.0))


class Map:
    """A square of pixels, divided into districts, with a rate and counts.

    :ivar pixels: The centres of the pixels, ``[Q, 2]``, and their district, ``[Q]``.
    :ivar rate: The rate at the pixels for an area of one, ``[Q]``; its mean over the map is the
        number of districts times ``PER_DISTRICT``.
    """

    def __init__(self, districts: int, side: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        middles = (np.arange(side) + 0.5) / side
        self.side = side
        self.pixels = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
        # Towns: half of the districts are near four places, and so are smaller.
        towns = rng.uniform(0.2, 0.8, (4, 2))[rng.integers(4, size=districts // 2)]
        seats = np.r_[
            np.clip(towns + rng.normal(scale=0.1, size=towns.shape), 0, 1),
            rng.uniform(size=(districts - len(towns), 2)),
        ]
        distances = np.square(self.pixels[:, None] - seats[None]).sum(axis=2)
        _, self.district = np.unique(distances.argmin(axis=1), return_inverse=True)
        hills = rng.normal(size=(40, 2)) * 6, rng.uniform(0, 2 * np.pi, 40)
        log_rate = 0.7 * np.sqrt(2 / 40) * np.cos(self.pixels @ hills[0].T + hills[1]).sum(axis=1)
        rate = np.exp(log_rate)
        self.rate = rate / rate.mean() * districts * PER_DISTRICT
        self.areas = np.bincount(self.district) / side**2
        means = np.bincount(self.district, self.rate) / side**2
        self.counts = rng.poisson(means).astype(float)

    @property
    def middles(self) -> Array:
        """The mean of the pixels of each district, ``[R, 2]``."""
        sums = [np.bincount(self.district, column) for column in self.pixels.T]
        return np.stack(sums, axis=1) / np.bincount(self.district)[:, None]


def trained(model: str, here: Map, num_inducing: int) -> Any:
    """A DualSVGP of the counts.

    f is the rate divided by its mean. A count is Poisson with the integral of the rate, which is a
    linear functional of f. (With an exponential link, the functional would be a mean of the log
    rate, whose exponential is below the mean rate.)
    """
    level = here.counts.sum()  # the area of the map is one
    if model == "areas":
        weights = np.full(len(here.pixels), level / here.side**2)
        districts = Areas(here.pixels, weights, here.district)
    else:  # a value times the area of the district
        districts = Areas(here.middles, level * here.areas, np.arange(len(here.areas)))
    base = gpflow.kernels.Matern32(variance=0.5, lengthscales=[0.2, 0.2])
    kernel = idm.kernels.Periodized.from_data(base, np.array([[0.0, 0.0], [1.0, 1.0]]))
    waves = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, num_inducing)
    rows = idm.kernels.Functional(idm.kernels.FiniteRank(kernel, waves), [Value(), districts])
    numbers = np.arange(len(here.counts), dtype=float)
    X = numbered(np.c_[numbers, np.zeros(len(numbers))], 1)
    fitted = idm.models.DualSVGP(
        (X, here.counts[:, None]),
        rows,
        gpflow.likelihoods.Poisson(invlink=expected_count),
        waves,
        mean_function=gpflow.functions.Constant(1.0),
        progress=False,
    )
    idm.fit(fitted, progress=False)
    return fitted


def counts(
    *, model: str, districts: int, side: int, num_inducing: int, seed: int, **_: Any
) -> dict[str, Any]:
    """Errors of a map of the rate, in multiples of the mean rate."""
    here, started = Map(districts, side, seed), time.process_time()
    scale = here.rate.mean()
    truth = (here.rate / scale)[:, None]
    if model == "repeat":  # the rate of the district
        guess = (here.counts / here.areas)[here.district][:, None]
        return {"all_rows": len(here.counts), **errors(truth, guess / scale)}
    fitted = trained(model, here, num_inducing)
    used = time.process_time() - started
    mean, variance = predicted(fitted, here.pixels, 0)
    level = here.counts.sum() / scale
    return {
        "cpu_seconds": used,
        "num_inducing": int(fitted.inducing_variable.num_inducing),
        "all_rows": len(here.counts),
        **errors(truth, level * mean, level**2 * variance),
    }
