"""Turns of neighbours and features, which train a :class:`interdomain.models.VecchiaSGPR`."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Gaussian

from ..._arguments import Array
from ..._tracing import operation_by_operation
from ...core.parameters import frozen
from ...training.lbfgs import LBFGS, fit_by_lbfgs
from ...training.losses import NumericalBreakdown
from ...training.results import Ending, NonFiniteError
from ...training.run import Plan, Run, train
from ..noise import noise_variance_of
from .local_kernel import Conditionals
from .model import VecchiaSGPR
from .samples import chances_of_rows, check_offset, mean_square, sample_of

_OF_START, FEW, _MANY, _OF_NOISE = 256, 1_024, 4_096, 8_192
"""Rows whose conditional densities train the local kernel: at each start; at the best; in each
turn; and those that raise the noise before the first. Rare rows whose nearest ones contradict them
say how much of it there is."""

_MOST_ENTRIES = 2**23
"""Numbers in the covariances of these rows, at most."""

_STEPS_OF_START, _STEPS_OF_FEW, _STEPS = 6, 25, 12

_NOISE_SHARES = (0.02, 0.3, 0.9)
"""The shares of noise in the variance that the features leave, at the starts."""

_LENGTHSCALES = (1.0, 0.3)
"""Times those given, at the starts."""

_FACTOR = 4.0
"""Between levels of noise that are tried."""

_LEAST_VARIANCE = 100.0
"""The least variance of residuals at the starts, in lower bounds of the noise variance: residuals
of zero then have a start."""

_ENOUGH = 1e-3
"""Nats a row: turns end when the evidence rises by less."""


class Turns:
    """The local kernel and the noise, on samples of rows; then neighbours, a pass and the features'
    parameters without data; and again, until the evidence rises no more.

    :param explained: What features and mean explain of rows X, before the first turn.
    :ivar best: The highest log evidence so far.
    """

    exact = True

    def __init__(
        self,
        model: VecchiaSGPR,
        conditionals: Conditionals,
        seed: int,
        explained: Callable[[Array], Any],
    ) -> None:
        self._model, self._conditionals = model, conditionals
        self._seed, self._explained, self.best = seed, explained, -np.inf
        check_offset(model, explained)
        self._chances = chances_of_rows(model, explained)
        self.variables = tuple(model.trainable_variables)
        self.stored = {"model": model}
        self.described = {"method": "turns"}

    def train(self, run: Run) -> Ending:
        """Make the turns that are left, and leave the model at the best."""
        model = self._model
        self._start()
        while True:
            if not run.step:
                self._raise_noise(self.batch(_OF_NOISE, self._seed))
            self._lbfgs(self.batch(_MANY, self._seed + run.step), _STEPS)
            model.search()
            elbo = self._train_features()
            self._explained = model.explained
            gain, self.best = elbo - self.best, max(elbo, self.best)
            if gain >= 0:
                run.keep(run.step + 1)
                kept = model.kept_sums()
            ending = run.after_step(elbo)
            if not model.has_features and not model.mean_function.trainable_parameters:
                ending = Ending("converged", "without features one turn is all")
            elif gain < _ENOUGH * model.num_data:
                ending = Ending("converged", f"the last turn raised the evidence by {gain:.2g}")
            if ending is not None:
                if gain < 0:
                    run.restore()
                    model.take_sums(*kept)
                return ending

    def _start(self) -> None:
        """The best of several noise levels and lengthscales, after a few steps from each."""
        model, kernel = self._model, self._model.local_kernel
        variables = self._conditionals.trainable_variables
        # A common factor of lengthscales leaves neighbours as they are.
        trained, judged = self.batch(_OF_START, 0), self.batch(_OF_START, 1)
        least = _LEAST_VARIANCE * model.likelihood.variance_lower_bound
        total = max(mean_square(trained), least)
        given, tried = kernel.lengthscales.numpy(), []
        # The present values are the first start: a second fit goes on from these.
        starts = [None, *itertools.product(_NOISE_SHARES, _LENGTHSCALES)]
        for start in starts:
            if start is not None:
                share, factor = start
                _assign(kernel.lengthscales, factor * given)
                _assign(kernel.variance, (1 - share) * total)
                _assign_noise(model.likelihood, share * total)
            with contextlib.suppress(NonFiniteError):
                self._lbfgs(trained, _STEPS_OF_START)
                density = self._conditionals.maximum_log_likelihood_objective(judged)
                tried.append((float(density), [variable.numpy() for variable in variables]))
        if not tried:
            raise NumericalBreakdown(
                "no start of the local kernel has a finite density; are rows repeated whose "
                "targets differ, with a noise variance that is fixed and too small?"
            )
        for variable, value in zip(variables, max(tried, key=lambda t: t[0])[1], strict=True):
            variable.assign(value)
        self._lbfgs(self.batch(FEW, self._seed), _STEPS_OF_FEW)

    def _raise_noise(self, batch: tuple[tf.Tensor, ...]) -> None:
        """To the level, if there is one, at which many rows are likelier than at that of few."""
        likelihood = self._model.likelihood
        now = float(noise_variance_of(likelihood))
        most = max(mean_square(batch), now)
        levels = now * _FACTOR ** np.arange(max(1, np.ceil(np.log(most / now) / np.log(_FACTOR))))
        densities = list[float]()
        for level in levels:
            _assign_noise(likelihood, level)
            densities.append(float(self._conditionals.maximum_log_likelihood_objective(batch)))
            if len(densities) > 2 and densities[-1] < densities[-2] < densities[-3]:
                break  # beyond the best level they fall on
        _assign_noise(likelihood, levels[np.argmax(densities)])

    def _lbfgs(self, batch: tuple[tf.Tensor, ...], steps: int) -> None:
        method = LBFGS(self._conditionals, batch, {})
        train(self._conditionals, method, Plan(time.perf_counter(), steps))

    def batch(self, number: int, seed: int) -> tuple[tf.Tensor, ...]:
        """A sample of rows, with the residuals of features and mean: see :class:`Conditionals`."""
        number = min(number, max(256, _MOST_ENTRIES // (self._model.num_neighbours + 1) ** 2))
        X, Y, places, *near = sample_of(self._model, number, seed, self._chances)
        left = Y - np.asarray(self._explained(X))
        points, known, weights = near
        residuals = np.asarray(left, np.float64)[places]
        return tuple(map(tf.constant, (points, known, weights, residuals)))

    def _train_features(self) -> float:
        """What a pass has sums for, without data; and the evidence."""
        model = self._model
        block = () if model.has_features else (model.kernel, model.inducing_variable)
        unused = [parameter for part in block for parameter in part.parameters]
        with frozen([*model.feature_parameters.values(), *unused]), operation_by_operation():
            if model.trainable_variables:
                fit_by_lbfgs(model, steps=_STEPS)
            return float(model.elbo())


def _assign(parameter: Any, value: Any) -> None:
    if parameter.trainable:
        parameter.assign(value)


def _assign_noise(likelihood: Gaussian, variance: float) -> None:
    """A noise variance, above GPflow's lower bound."""
    variance = max(variance, 2 * likelihood.variance_lower_bound)
    if likelihood.variance is not None:
        _assign(likelihood.variance, variance)
    else:
        _assign(likelihood.scale, np.sqrt(variance))
