"""Turns of neighbours and features, which train a :class:`interdomain.models.VecchiaSGPR`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._arguments import Array
from ..._tracing import operation_by_operation
from ...core.parameters import frozen
from ...training.lbfgs import fit_by_lbfgs
from ...training.results import Ending
from ...training.run import Run
from .choice import LocalTraining
from .mean import solve_mean
from .model import VecchiaSGPR
from .reweighting import expected_squares, first_weights, train_noise, weights_of_squares
from .samples import Samples

_FEW, _MANY, _OF_NOISE, _OF_INTERVALS = 1_024, 4_096, 8_192, 512
"""Numbers of rows: to train the local kernel until neighbours settle; to train it after that and
to fit intervals; to raise the noise in the first turn, which needs many rows, since few rows
deviate from their nearest rows; and of a batch for intervals."""

_MOST_ENTRIES = 2**24
"""The largest number of entries in the covariances of these rows."""

_STEPS, _STEPS_OF_INTERVALS, _MOST_SEARCHES = 12, 6, 4

_SETTLED = 1.2
"""The factor of a lengthscale ratio's change below which neighbours are not searched again."""

_PASSES = 2
"""The number of passes in a turn that update the weights of rows under Student-t noise."""

_ENOUGH = 1e-3
"""The rise of the evidence, in nats a row, below which turns end."""


class Turns:
    """Turns that train a model until the evidence converges: the local kernel and the noise on
    samples of rows, then neighbours, a pass, and the features' parameters without data.

    :param explained: A function of rows X: the values of features and mean before the first turn.
    :param predict_at: See :class:`.Samples`.
    :ivar best: The highest log evidence so far.
    """

    exact = converges = True

    def __init__(
        self,
        model: VecchiaSGPR,
        training: LocalTraining,
        seed: int,
        explained: Callable[[Array], Any],
        predict_at: Any = None,
    ) -> None:
        self._model, self._training, self._seed = model, training, seed
        self._samples = Samples(model, explained, predict_at)
        self.best = -np.inf
        self.stored = {"model": model}
        self.described = {"method": "turns"}
        if model.has_student_t_noise:
            # Outliers among the neighbours would look like a rough function.
            model.weigh(first_weights(model))
            training.start(self._samples, choose=False)
            model.search()
            self._reweigh()
        training.start(self._samples)
        self.variables = tuple(model.trainable_variables)

    def train(self, run: Run) -> Ending:
        """Make the remaining turns, and leave the model at the best turn."""
        model, samples = self._model, self._samples
        while True:
            self._train_local(self._seed + run.step)
            if not run.step and self._training.restart(samples):
                self._train_local(self._seed)
            self._merge_nearby()
            elbo = self._train_features()
            samples.explained = model.explained
            if model.has_student_t_noise:
                elbo = self._reweigh()
            gain, self.best = elbo - self.best, max(elbo, self.best)
            if gain >= 0:
                run.keep(run.step + 1)
            ending = run.after_step(elbo)
            changes = model.has_features or model.has_student_t_noise
            if not changes and not model.mean_function.trainable_parameters:
                ending = Ending("converged", "without features one turn is all")
            elif gain < _ENOUGH * model.num_data:
                ending = Ending("converged", f"the last turn raised the evidence by {gain:.2g}")
            if ending is not None:
                if gain < 0:
                    run.restore()
                    model.search()
                    if model.has_student_t_noise:
                        model.reweight(_PASSES)
                return ending

    def _train_local(self, seed: int) -> None:
        """Train the local kernel and the noise, until the metric of neighbours has settled."""
        training, model = self._training, self._model
        for attempt in range(_MOST_SEARCHES):
            before = model.local.lengthscales
            training.train(self._samples.draw(self._number(_FEW), seed + attempt), _STEPS)
            training.give()
            training.search()
            factors = model.local.lengthscales / before
            if np.max(factors) < _SETTLED * np.min(factors):
                break
        if seed == self._seed:
            rows = self._samples.draw(self._number(_OF_NOISE), seed)
            training.raise_noise(rows, self._samples.mean_square)
        training.train(self._samples.draw(self._number(_MANY), seed), _STEPS)
        training.give()

    def _merge_nearby(self) -> None:
        """Search with nearby rows merged; if this merges rows for the first time, train again."""
        model, training = self._model, self._training
        before = len(model.ordered.merged.X)
        model.search()
        if not training.merges_nearby and len(model.ordered.merged.X) < before:
            training.merges_nearby = True
            self._train_local(self._seed)
            model.search()

    def _reweigh(self) -> float:
        """Make passes that weigh rows, train scale and degrees of freedom, and return the bound."""
        model = self._model
        for _ in range(_PASSES):
            squares = expected_squares(model)
            train_noise(model, squares)
            model.weigh(weights_of_squares(model, squares))
        self._training.take()
        return float(model.elbo())

    def _number(self, most: int) -> int:
        return _at_most(most, self._model.num_neighbours)

    def _train_features(self) -> float:
        """Train the parameters that need only the sums of a pass, and return the evidence."""
        model = self._model
        solve_mean(model)
        block = () if model.has_features else (model.kernel, model.inducing_variable)
        unused = [parameter for part in block for parameter in part.parameters]
        with frozen([*model.feature_parameters.values(), *unused]), operation_by_operation():
            if model.trainable_variables:
                fit_by_lbfgs(model, steps=_STEPS)
            return float(model.elbo())


def _at_most(most: int, neighbours: int) -> int:
    """The number ``most``, or the largest number whose covariances fit into memory."""
    return min(most, max(256, _MOST_ENTRIES // (neighbours + 1) ** 2))


def fit_intervals(
    model: VecchiaSGPR, training: LocalTraining, seed: int, predict_at: Any = None
) -> None:
    """Fit variances and noise to the errors of predictions of rows from their nearest other rows,
    with as many neighbours as predictions have.

    With Gaussian noise, variance and noise have one common factor, so that means stay as they are.

    :param predict_at: See :class:`.Samples`.
    """
    number, samples = model.num_prediction_neighbours, Samples(model, model.explained, predict_at)
    batches = samples.draw_apart(_MANY, seed, number, _at_most(_OF_INTERVALS, number))
    training.take()
    if model.has_student_t_noise:
        training.widen(next(batches), _STEPS_OF_INTERVALS)
        training.give()
        model.reweight(_PASSES)
    else:
        training.scale(batches)
        training.give()
