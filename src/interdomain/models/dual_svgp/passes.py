"""The passes that train a :class:`interdomain.models.DualSVGP`, and the steps between them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from ...training.losses import require
from ...training.results import Ending
from ...training.run import Run
from .model import DualSVGP
from .parameters import assign_add, slopes_of_prior, solution, train_parameters
from .row_sites import PassResult
from .sites import Sites

_BEGINNING = 0.01  # the variance of q in prior variances, without a better start

_WITHIN = 1.0  # in prior standard deviations: a nearer level of f is within the prior

# Shares of the bound. While it rises by more than the first, sites say nothing about parameters,
# which stay. A rise below the second shows a near optimum; a fall below the third is rounding.
_SETTLED, _NEAR, _ROUNDING = 0.1, 1e-3, 1e-10

# Shares of the way to the tangent sites. Parameters are trained above the first, and the fit ends
# below the second. Steps that were too long grow by the third factor when the bound rises.
_NO_TRAINING, _LEAST_SHARE, _GROWTH = 2.0**-3, 2.0**-6, 1.4

_LONGEST_STEP = 1.0
"""The longest step of a likelihood's unconstrained parameters between two passes."""

_LEAST_TOLERANCE, _TOLERANCE_OF_A_ROW = 0.01, 1e-6  # nats of the bound

_STEPS = 20
"""The number of steps of L-BFGS between two passes."""


class _Point(NamedTuple):
    """The sites of a model, with the result of the pass there.

    :ivar objective: The bound plus the log prior density of the parameters.
    """

    sites: Sites
    result: PassResult
    objective: float


class Passes:
    """Alternating passes over the data and steps of q and the parameters: see :func:`.run.train`.

    The next step depends only on the best point so far and on the attributes in :attr:`_state`.
    Checkpoints store both, and a resumed fit repeats the pass at that point.

    :param trains: Whether parameters are trained; if False, only q is.
    :param begin: A function that is called before the first pass, to improve q.
    :ivar best: The best point so far; the model is at this point after each pass.
    :ivar seconds: The time of all passes, in seconds.
    """

    exact = converges = True
    best: _Point
    _run: Run
    _state = ("_share", "_halved", "_settled", "_near", "_exact")

    def __init__(
        self,
        model: DualSVGP,
        tolerance: float | None,
        *,
        trains: bool = True,
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        self._model, self._tolerance, self._begin = model, tolerance, begin
        trained = model.likelihood.trainable_parameters
        self._likelihood_variables = [p.unconstrained_variable for p in trained]
        parameters = [p.unconstrained_variable for p in model.trainable_parameters]
        mean_parameters = [] if model.mean_is_residual else model.mean_function.trainable_parameters
        self._mean_variables = [p.unconstrained_variable for p in mean_parameters if trains]
        self._trains = trains and bool(parameters)
        # The share of the way that a step goes; whether the last pass halved it; whether the bound
        # rises slowly enough to train parameters; whether the optimum is near; and whether the
        # last step went to unclipped tangent sites, with parameters trained.
        self._share, self._halved = 1.0, False
        self._settled = self._near = self._exact = False
        self.seconds = 0.0
        self._sites, kinds = model.site_variables(), (model.likelihood, model.inducing_variable)
        self.variables = (*parameters, *self._sites)
        self._progress = tf.Variable("", trainable=False)
        self.stored = {
            "parameters": [parameter.unconstrained_variable for parameter in model.parameters],
            "sites": list(self._sites),
            "progress": self._progress,
        }
        self.described = {
            "of": ", ".join(type(part).__name__ for part in kinds),
            "sites": [list(part.shape) for part in self._sites],
            "tolerance": tolerance,
        }

    def train(self, run: Run) -> Ending:
        """Make the remaining passes, and leave the model at the best point.

        :raises NumericalBreakdown: If the bound of the first pass is not finite.
        """
        model, self._run = self._model, run
        default = max(_LEAST_TOLERANCE, _TOLERANCE_OF_A_ROW * model.num_data)
        enough = self._enough = default if self._tolerance is None else self._tolerance
        gain, ending = np.inf, None
        if run.step:
            # The model drops its sites if a checkpoint has restored other features' parameters.
            model.assign_sites(Sites(*(part.numpy() for part in self._sites)))
            self.__dict__.update(json.loads(self._progress.numpy()))
            self.best = self._point(model.pass_over_data())
            run.keep(run.step)
        else:
            self._begin()
            if not any(np.any(part) for part in model.sites):
                self._start()
            gain, ending = self._pass()
        while True:
            if gain < enough and self._share == 1.0:
                if self._exact:
                    return Ending("converged", f"the last step raised the bound by {gain:.2g}")
                if self._near:
                    self._share /= 2  # a shorter step to the unclipped sites may be possible
            if ending is not None:
                return self._with_gain(ending, gain)
            if self._share < _LEAST_SHARE:
                return Ending("stalled", "no step raises the bound, however short it is")
            self._step()
            gain, ending = self._pass()

    def objective(self, step: int) -> float:
        """The bound at the present parameters and sites."""
        # The model drops its sites if a checkpoint has restored other features' parameters.
        self._model.assign_sites(Sites(*(part.numpy() for part in self._sites)))
        return self._model.pass_over_data().elbo

    def _with_gain(self, ending: Ending, gain: float) -> Ending:
        """The ending of a fit that ends by its steps, with the last pass's gain in its message."""
        if ending.reason != "steps":
            return ending
        what = (
            f"the last one raised the bound by {gain:.2g} nats"
            if gain < np.inf
            else ("the bound of the last one was lower" if self._run.step > 1 else "the first one")
        )
        enough = f"a rise below {self._enough:.2g} is convergence"
        return Ending("steps", f"{ending.message}; {what}, and {enough}")

    def _start(self) -> None:
        """Start from sites that are tangent at a separate q for each row, and train the parameters
        if the prior has to become wider. If the best level of f is near the prior mean, or the
        bound is not finite, start from a narrow prior as q: parameters then learn from rows that
        agree, not from single rows."""
        model = self._model
        is_far = model.start(_WITHIN)
        if any(np.any(part) for part in model.sites):
            if is_far and self._trains:
                train_parameters(model, _STEPS, factor=np.inf)
            self._step_of_mean(1.0)
            if model.has_q() and np.isfinite(model.pass_over_data().elbo):
                return
        model.shrink_q(_BEGINNING)

    def _pass(self) -> tuple[float, Ending | None]:
        """Make a pass, and go to the best point so far.

        :return: The gain of the bound, or infinity if the bound has fallen; and the ending of the
            fit, if this was the last pass.
        """
        begun, run = time.perf_counter(), self._run
        result = self._model.pass_over_data()
        self.seconds += time.perf_counter() - begun
        now, gain = self._point(result), np.inf
        best = self.best if run.step else now
        if not run.step:
            require(np.isfinite(result.elbo), f"the bound is {result.elbo}")
        if now.objective >= best.objective - _ROUNDING * abs(best.objective):
            if run.step:
                gain = now.objective - best.objective
                self._settled = self._settled or gain < max(
                    _SETTLED * abs(now.objective), self._enough
                )
                self._near = self._near or gain < 1 + _NEAR * abs(best.objective)
                if not self._halved:
                    self._share = min(1.0, _GROWTH * self._share)
            self._halved, self.best = False, now
            run.keep(run.step + 1)
        else:
            self._share /= 2
            self._halved = True
            # A fall after clipping negative precisions is a sign of a near optimum.
            self._near = self._near or best.result.sites is not best.result.clipped
            run.restore()
        self._progress.assign(json.dumps({name: getattr(self, name) for name in self._state}))
        return gain, run.after_step(result.elbo)

    def _point(self, result: PassResult) -> _Point:
        """The present point of the model, with the result of the pass there."""
        objective = result.elbo + float(self._model.log_prior_density())
        return _Point(self._model.sites, result, objective)

    def _step(self) -> None:
        """Make a step from the best point: q towards the tangent sites, and the parameters."""
        best, result, share = self.best.sites, self.best.result, self._share
        clipped = best.mixed(result.clipped, share)
        # Sites of negative precision may leave no Gaussian. Clipped sites are safer, and as fast
        # while the optimum is far, but they lead to another point.
        self._exact = self._near or result.sites is result.clipped
        self._model.assign_sites(best.mixed(result.sites, share) if self._exact else clipped)
        if not self._model.has_q():
            self._exact = False
            self._model.assign_sites(clipped)
        trains = self._settled and self._trains
        before = [variable.numpy() for variable in self._mean_variables]
        if trains and share > _NO_TRAINING:
            self._step_of_likelihood(result)
            if len(self._model.trainable_parameters) > len(self._likelihood_variables):
                train_parameters(self._model, _STEPS, share=share)
        for variable, value in zip(self._mean_variables, before, strict=True):
            variable.assign(value)
        self._step_of_mean(share)
        if not self._model.has_q():
            self._exact = False
            self._run.restore()
            self._model.assign_sites(clipped)
        self._exact = self._exact and (trains or not self._trains)

    def _step_of_mean(self, share: float) -> None:
        """Step with the mean function's weights, and with q, towards the maximum of log Z, which is
        quadratic in the weights."""
        model = self._model
        if not self._mean_variables:
            return
        # If a factorisation fails, there is no q, and the caller leaves this point.
        with suppress(tf.errors.InvalidArgumentError):
            slopes, curvatures = model.slopes_of_mean(self._mean_variables)
            prior_terms = slopes_of_prior(model.mean_function, self._mean_variables)
            slopes, curvatures = slopes + prior_terms[0], curvatures - prior_terms[1]
            assign_add(self._mean_variables, share * solution(curvatures, slopes))

    def _step_of_likelihood(self, result: PassResult) -> None:
        """Make a Newton step of the likelihood's parameters, of limited length, with the absolute
        values of the curvatures."""
        if not self._likelihood_variables:
            return
        prior_terms = slopes_of_prior(self._model.likelihood, self._likelihood_variables)
        slopes, curvatures = result.slopes + prior_terms[0], result.curvatures + prior_terms[1]
        curvatures, directions = np.linalg.eigh((curvatures + curvatures.T) / 2)
        scale = np.maximum(np.abs(curvatures), 1e-12 + 1e-8 * np.max(np.abs(curvatures)))
        step = self._share * directions @ ((directions.T @ slopes) / scale)
        step *= min(1.0, _LONGEST_STEP / max(float(np.max(np.abs(step))), 1e-300))
        assign_add(self._likelihood_variables, step)
