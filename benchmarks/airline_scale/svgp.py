"""GPflow's SVGP with inducing points, trained on minibatches of memory-mapped rows.

The training ends when the log density on a sample of the test rows reaches that of another model,
or when its time is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

import interdomain as idm
from benchmarks._lib.data import Array
from benchmarks._lib.memory import peak_of_process
from benchmarks._lib.prediction import Predictor
from benchmarks._lib.regression import inducing_points, median_distance
from benchmarks._lib.row_files import open_rows
from benchmarks.airline_scale.fit import INITIAL_NOISE, SAMPLE_ROWS, errors_of, noisy_errors

_NO_END = 10**9  # steps


class RaceOverError(Exception):
    """Raised by the callback that evaluates a training, to end it."""


class Race:
    """A callback of `fit` that ends it when `evaluate` returns an "nlpd" that is low enough, or
    when the time for training, without evaluations, is over.

    :ivar curve: "step", "seconds" and what the evaluation returned, of each evaluation.
    :ivar reached: whether the target was reached.
    """

    def __init__(
        self,
        evaluate: Callable[[], Mapping[str, float]],
        *,
        target: float,
        budget: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._evaluate, self._target, self._budget = evaluate, target, budget
        self._clock, self._since = clock, clock()
        self._seconds = 0.0
        self.curve: list[dict[str, float]] = []
        self.reached = False

    def __call__(self, step: int, model: Any) -> None:
        self._seconds += self._clock() - self._since
        values = dict(self._evaluate())
        self.curve.append({"step": step, "seconds": self._seconds, **values})
        self.reached = values["nlpd"] <= self._target
        if self.reached or self._seconds >= self._budget:
            raise RaceOverError
        self._since = self._clock()


def minibatches(X: Array, Y: Array, batch_size: int, seed: int) -> tf.data.Dataset:
    """Neighbouring rows (the files are shuffled), the batches of every epoch in a new order; rows
    that do not fill a batch are left out. Endless."""

    def read(index: int) -> tuple[Array, Array]:
        rows = slice(index * batch_size, (index + 1) * batch_size)
        return np.array(X[rows]), np.array(Y[rows])

    def read_in_graph(index: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        inputs, targets = tf.numpy_function(read, [index], [tf.float64, tf.float64])
        return (
            tf.ensure_shape(inputs, [batch_size, X.shape[1]]),
            tf.ensure_shape(targets, [batch_size, Y.shape[1]]),
        )

    batches = len(X) // batch_size
    order = tf.data.Dataset.range(batches).shuffle(batches, seed=seed).repeat()
    return order.map(read_in_graph).prefetch(2)


def race(
    folder: str,
    num_inducing: int,
    batch_size: int,
    learning_rate: float,
    natural_gradient: float | None,
    every: int,
    target_nlpd: float,
    budget_seconds: float,
    seed: int,
) -> dict[str, Any]:
    """The training, from the choice of inducing points on; in a process of its own.

    :param natural_gradient: the step for q; None for Adam alone.
    :param every: steps from one evaluation to the next.
    """
    before = peak_of_process()
    rows = open_rows(Path(folder))
    X, Y = rows.X_test[:SAMPLE_ROWS], rows.Y_test[:SAMPLE_ROWS]
    found: dict[str, Any] = {}

    def evaluate() -> dict[str, float]:
        return noisy_errors(found["model"], found["predict"], X, Y)

    contest = Race(evaluate, target=target_nlpd, budget=budget_seconds)
    model = svgp_model(rows.X_train, num_inducing, seed)
    found["model"] = model
    found["predict"] = Predictor(model, X.shape[1], cached=False)
    try:
        idm.fit(
            model,
            minibatches(rows.X_train, rows.Y_train, batch_size, seed),
            steps=_NO_END,
            seed=seed,
            optimizer=learning_rate,
            natural_gradient=natural_gradient or False,
            callbacks=[contest],
            every=every,
            progress=False,
        )
    except RaceOverError:
        pass
    last = contest.curve[-1]
    return {
        "num_rows": len(rows.X_train),
        "test_rows": len(rows.X_test),
        "num_inducing": num_inducing,
        "target_nlpd": target_nlpd,
        "budget_seconds": budget_seconds,
        "reached": contest.reached,
        "seconds": last["seconds"],
        "steps": last["step"],
        "curve": contest.curve,
        "peak_bytes_before": before,
        "peak_bytes": peak_of_process(),
        **errors_of(model, rows),
    }


def svgp_model(X: Array, num_inducing: int, seed: int) -> gpflow.models.SVGP:
    """Matern-3/2 with a lengthscale per column, whitened; the points are the centres of k-means of
    the first rows, the lengthscales the median distance of these, the noise starts as VISH's."""
    sample = np.array(X[: 20 * num_inducing])
    lengthscales = np.full(X.shape[1], median_distance(sample, seed))
    return gpflow.models.SVGP(
        gpflow.kernels.Matern32(lengthscales=lengthscales),
        gpflow.likelihoods.Gaussian(variance=INITIAL_NOISE),
        inducing_points(sample, num_inducing, seed),
        num_data=len(X),
    )
